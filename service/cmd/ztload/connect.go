package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"ztbench/service/internal/load"
	"ztbench/service/internal/program"
)

// connectDocument is the series as JSON.
type connectDocument struct {
	Schema      string            `json:"schema"`
	Connections []load.Connection `json:"connections"`
}

func connect(ctx context.Context, args []string) error {
	var targetsFile, out string
	var count int
	var useHTTP2, useC bool
	client := load.ClientOptions{Mode: load.HTTP1}
	flags := program.NewFlags("ztload connect")
	flags.StringVar(&targetsFile, "targets", "", "`file` of targets; the first is asked")
	flags.StringVar(&out, "out", "", "`file` to write, *.json")
	flags.IntVar(&count, "count", 20, "requests, each on a connection of its own")
	flags.DurationVar(&client.Timeout, "timeout", 2*time.Second, "time for one request")
	flags.BoolVar(&useHTTP2, "http2", false, "HTTP/2 over TLS")
	flags.BoolVar(&useC, "h2c", false, "cleartext HTTP/2 by prior knowledge")
	if err := flags.Read(args); err != nil {
		return err
	}
	err := program.Required(map[string]string{"targets": targetsFile, "out": out}, "targets", "out")
	if err != nil {
		return err
	}
	if err := checkRanges(amount{"count", int64(count), 1, 1000}); err != nil {
		return err
	}
	switch {
	case useHTTP2 && useC:
		return program.Usagef("-http2, -h2c: both given, want one at most")
	case useHTTP2:
		client.Mode = load.HTTP2
	case useC:
		client.Mode = load.H2C
	}
	targets, err := load.ReadTargets(targetsFile)
	if err != nil {
		return err
	}
	found, err := load.Connect(ctx, &targets[0], count, client)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(connectDocument{"ztbench/connect/1", found}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}
