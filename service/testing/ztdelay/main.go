// Command ztdelay is a proxy with a known cost, for tests alone and never put on a host: it holds
// each request back for a given time, so that what a ladder attributes to it can be checked.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"ztbench/service/internal/program"
	"ztbench/service/internal/rawhttp"
)

const maxDelay = time.Second

func main() { program.Run("ztdelay", run) }

func run(ctx context.Context, args []string) error {
	var listen, to string
	var delay time.Duration
	flags := program.NewFlags("ztdelay")
	flags.StringVar(&listen, "listen", "", "`address` to serve on, host:port; port 0 is any")
	flags.StringVar(&to, "to", "", "`address` to pass requests on to, host:port")
	flags.DurationVar(&delay, "delay", 0, "time that each request is held back")
	if err := flags.Read(args); err != nil {
		return err
	}
	if err := program.CheckListen("listen", listen); err != nil {
		return err
	}
	if err := program.CheckListen("to", to); err != nil {
		return err
	}
	if delay < 0 || delay > maxDelay {
		return program.Usagef("-delay: out of range, %s, want 0s to %s", delay, maxDelay)
	}
	program.LogStart("listen="+listen, "to="+to, "delay="+delay.String())
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	// Whoever asked for any port must be told which it is.
	fmt.Fprintln(os.Stdout, listener.Addr())
	return rawhttp.Serve(ctx, listener, proxy{to: to, delay: delay}.pass)
}
