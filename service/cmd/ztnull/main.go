// Command ztnull answers every request alike and does nothing else: what a load driver reaches
// against it is the driver's own ceiling.
package main

import (
	"context"
	"net"

	"ztbench/service/internal/null"
	"ztbench/service/internal/program"
)

const maxBodyBytes = 1 << 20

func main() { program.Run("ztnull", run) }

func run(ctx context.Context, args []string) error {
	var listen string
	var bodyBytes int
	flags := program.NewFlags("ztnull")
	flags.StringVar(&listen, "listen", "", "`address` to serve on, host:port")
	flags.IntVar(&bodyBytes, "body-bytes", 256, "size of the body")
	if err := flags.Read(args); err != nil {
		return err
	}
	if err := program.CheckListen("listen", listen); err != nil {
		return err
	}
	if bodyBytes < 0 || bodyBytes > maxBodyBytes {
		return program.Usagef("-body-bytes: out of range, %d, want 0 to %d", bodyBytes, maxBodyBytes)
	}
	program.LogStart("listen=" + listen)
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	if err := program.NotifyReady(); err != nil {
		return err
	}
	return null.Serve(ctx, listener, null.Answer(bodyBytes))
}
