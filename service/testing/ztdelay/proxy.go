package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// headerBytesMax bounds a request's header; load drivers send a few hundred bytes.
const headerBytesMax = 16 << 10

var headerEnd = []byte("\r\n\r\n")

type proxy struct {
	to    string
	delay time.Duration
}

// serve passes connections on until ctx ends, each to one of its own, and returns once all of them
// are closed.
func serve(ctx context.Context, listener net.Listener, p proxy) error {
	var open sync.WaitGroup
	defer open.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { listener.Close() })
	for {
		client, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil && errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		open.Go(func() { p.pass(ctx, client) })
	}
}

// pass passes on one connection until either side closes it.
func (p proxy) pass(ctx context.Context, client net.Conn) {
	defer client.Close()
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "tcp", p.to)
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() {
		client.Close()
		server.Close()
	})
	defer stop()
	defer server.Close()
	go func() {
		_, _ = io.Copy(client, server)
		client.Close()
	}()
	p.requests(client, server)
}

// requests passes on each request whole, late by the delay. Requests must have no body.
func (p proxy) requests(client io.Reader, server io.Writer) {
	buffer := make([]byte, headerBytesMax)
	held := 0
	for held < len(buffer) {
		read, err := client.Read(buffer[held:])
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
			spin(p.delay)
			if _, err := server.Write(rest[:end]); err != nil {
				return
			}
			rest = rest[end:]
		}
		held = copy(buffer, rest)
	}
}

// spin waits on the monotonic clock without giving the CPU away: a sleep would end when the kernel
// gets round to it, some tens of microseconds late, which is not a known answer.
func spin(delay time.Duration) {
	for start := time.Now(); time.Since(start) < delay; {
	}
}
