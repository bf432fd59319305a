package program

import (
	"fmt"
	"net"
	"os"
)

// NotifyReady tells the service manager that the program is ready, if one asked through
// NOTIFY_SOCKET. Without that variable it does nothing.
func NotifyReady() error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	// net takes "@name" for the abstract namespace, which is also systemd's way of writing it.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("readiness notice: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("READY=1")); err != nil {
		return fmt.Errorf("readiness notice: %w", err)
	}
	return nil
}
