// Package null is a server that does as little as an HTTP/1.1 server can: it finds the end of each
// request's header and writes the same answer. What a load driver reaches against it is the
// ceiling of the driver and the path, not of a service.
package null

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// headerBytesMax bounds a request's header; load drivers send a few hundred bytes.
const headerBytesMax = 16 << 10

// idle is how long a connection may stay silent.
const idle = 5 * time.Minute

var headerEnd = []byte("\r\n\r\n")

// Answer is what every request gets: status 200 with a body of that many bytes.
func Answer(bodyBytes int) []byte {
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n",
		bodyBytes)
	return []byte(head + strings.Repeat("x", bodyBytes))
}

// Serve answers on a listener until ctx ends, and returns once every connection is closed.
// Requests must have no body.
func Serve(ctx context.Context, listener net.Listener, answer []byte) error {
	var open sync.WaitGroup
	defer open.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { listener.Close() })
	for {
		connection, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil && errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		stop := context.AfterFunc(ctx, func() { connection.Close() })
		open.Go(func() {
			defer stop()
			defer connection.Close()
			serve(connection, answer)
		})
	}
}

// serve answers one connection until it ends, is silent for too long or sends what is no request.
func serve(connection net.Conn, answer []byte) {
	buffer := make([]byte, headerBytesMax)
	held := 0
	for {
		if connection.SetReadDeadline(time.Now().Add(idle)) != nil {
			return
		}
		read, err := connection.Read(buffer[held:])
		if err != nil {
			return
		}
		held += read
		rest := buffer[:held]
		for {
			end := bytes.Index(rest, headerEnd)
			if end < 0 {
				break
			}
			if _, err := connection.Write(answer); err != nil {
				return
			}
			rest = rest[end+len(headerEnd):]
		}
		held = copy(buffer, rest)
		if held == len(buffer) {
			return
		}
	}
}
