package main

import (
	"context"
	"io"
	"net"
	"time"

	"ztbench/service/internal/rawhttp"
)

type proxy struct {
	to    string
	delay time.Duration
}

// pass passes on one connection, on one of its own, until either side closes it: each request
// whole, late by the delay. Requests must have no body.
func (p proxy) pass(ctx context.Context, client net.Conn) {
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "tcp", p.to)
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	defer server.Close()
	go func() {
		_, _ = io.Copy(client, server)
		client.Close()
	}()
	rawhttp.Requests(client, func(request []byte) error {
		spin(p.delay)
		_, err := server.Write(request)
		return err
	})
}

// spin waits on the monotonic clock without giving the CPU away: a sleep would end when the kernel
// gets round to it, some tens of microseconds late, which is not a known answer.
func spin(delay time.Duration) {
	for start := time.Now(); time.Since(start) < delay; {
	}
}
