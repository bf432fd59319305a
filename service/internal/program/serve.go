package program

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// CheckListen returns a usage error unless address is host:port with a port number.
func CheckListen(flagName, address string) error {
	if address == "" {
		return Usagef("-%s: missing, host:port is required", flagName)
	}
	if _, err := net.ResolveTCPAddr("tcp", address); err != nil {
		return Usagef("-%s: not an address, %q, want host:port", flagName, address)
	}
	return nil
}

// CheckLoopback returns a usage error unless address is host:port on a loopback address.
func CheckLoopback(flagName, address string) error {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil || !resolved.IP.IsLoopback() {
		return Usagef("-%s: not a loopback address, %q, want 127.0.0.1:port", flagName, address)
	}
	return nil
}

// Serve runs the servers on their listeners until ctx ends, then gives requests in flight two
// seconds. It returns nil after a shutdown that was asked for.
func Serve(ctx context.Context, servers map[net.Listener]*http.Server) error {
	failed := make(chan error, len(servers))
	for listener, server := range servers {
		go func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve %s: %w", listener.Addr(), err)
			}
		}()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	grace, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, server := range servers {
		if server.Shutdown(grace) != nil {
			server.Close()
		}
	}
	return err
}
