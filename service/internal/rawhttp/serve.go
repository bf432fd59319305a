// Package rawhttp serves HTTP/1.1 without a library, for programs that must cost next to nothing:
// all that it reads of a request is where its header ends, so requests must have no body.
package rawhttp

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// HeaderBytesMax bounds a request's header; load drivers send a few hundred bytes.
const HeaderBytesMax = 16 << 10

// idle is how long a connection may stay silent.
const idle = 5 * time.Minute

var headerEnd = []byte("\r\n\r\n")

// Serve hands each connection of a listener to handle, all side by side, until ctx ends, and
// returns once handle has returned for every one. A connection is closed after that, or when ctx
// ends.
func Serve(
	ctx context.Context, listener net.Listener, handle func(context.Context, net.Conn),
) error {
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
			handle(ctx, connection)
		})
	}
}

// Requests hands each request of a connection to handle, whole and one after another, until the
// connection ends, is silent for too long, sends what is no request, or handle fails.
func Requests(connection net.Conn, handle func(request []byte) error) {
	buffer := make([]byte, HeaderBytesMax)
	for held := 0; held < len(buffer); {
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
			end += len(headerEnd)
			if handle(rest[:end]) != nil {
				return
			}
			rest = rest[end:]
		}
		held = copy(buffer, rest)
	}
}
