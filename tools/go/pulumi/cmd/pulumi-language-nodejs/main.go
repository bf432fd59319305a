// Command pulumi-language-nodejs is a small Pulumi language host for Node.js
// programs. It implements the parts of the LanguageRuntime protocol that
// `pulumi up|preview|refresh|destroy|about|install` use, and nothing else: no
// policy packs, no code generation, no debugger.
//
// The official host is not published as an installable Go module. Where the
// official binary stands beside `pulumi` it is a drop-in replacement.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"

	"ztbench.local/tools/pulumi/internal/nodejs"
	"ztbench.local/tools/pulumi/internal/serving"
)

// version is set with -ldflags "-X main.version=...".
var version = "0.0.0-dev"

// engineCheckEvery is how often the host makes sure that its engine still lives.
const engineCheckEvery = 5 * time.Minute

func main() {
	if len(os.Args) > 1 && (os.Args[1] == "-version" || os.Args[1] == "--version") {
		fmt.Println(version)
		return
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pulumi-language-nodejs:", err)
		os.Exit(1)
	}
}

// run serves until the engine goes away or interrupts the process. The engine
// passes its own address as the last argument.
func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	engine := ""
	if len(args) > 0 {
		engine = args[len(args)-1]
		if err := rpcutil.Healthcheck(ctx, engine, engineCheckEvery, stop); err != nil {
			return fmt.Errorf("engine health check: %w", err)
		}
	}
	host := nodejs.NewHost(version, engine)
	defer host.Stop()
	return serving.Serve(ctx, os.Stdout, func(server *grpc.Server) {
		pulumirpc.RegisterLanguageRuntimeServer(server, host)
	})
}
