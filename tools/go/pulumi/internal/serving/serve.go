// Package serving runs a gRPC plugin of the Pulumi engine: it prints the port
// that it listens on and serves until it is told to stop.
package serving

import (
	"context"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
)

// Serve registers services, writes the port to out, where the engine reads it,
// and returns when ctx ends. It must return promptly then: the engine waits up
// to five seconds for each plugin at the end of every operation.
func Serve(ctx context.Context, out io.Writer, register func(*grpc.Server)) error {
	stop := make(chan bool)
	defer context.AfterFunc(ctx, func() { close(stop) })()
	handle, err := rpcutil.ServeWithOptions(rpcutil.ServeOptions{
		Cancel: stop,
		Init: func(server *grpc.Server) error {
			register(server)
			return nil
		},
		Options: rpcutil.TracingServerInterceptorOptions(nil),
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, handle.Port); err != nil {
		return err
	}
	return <-handle.Done
}
