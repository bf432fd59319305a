// Command pulumi-resource-command is a stand-in for the official plugin of the
// npm package @pulumi/command. It serves the same resource types and invoke
// with the same inputs and outputs:
//
//	command:local:Command   command:remote:Command   command:remote:CopyToRemote
//	command:local:run       (CopyFile, assetPaths and archivePaths are refused)
//
// The official plugin is not published as an installable Go module. Where it
// can be had it replaces this one. The tests in ../../conformance say what both
// must do, and mark what this one does differently on purpose.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"

	"ztbench.local/tools/pulumi/internal/command"
	"ztbench.local/tools/pulumi/internal/serving"
)

// version is set with -ldflags "-X main.version=...".
var version = "0.0.0-dev"

func main() {
	if len(os.Args) > 1 && (os.Args[1] == "-version" || os.Args[1] == "--version") {
		fmt.Println(version)
		return
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pulumi-resource-command:", err)
		os.Exit(1)
	}
}

// run serves until the engine interrupts the process, which it does at the end
// of each deployment. That also ends the operations that are under way. The
// engine passes its address as the last argument.
func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	engine := ""
	if len(args) > 0 {
		engine = args[len(args)-1]
	}
	provider, err := command.NewProvider(ctx, version, engine)
	if err != nil {
		return err
	}
	return serving.Serve(ctx, os.Stdout, func(server *grpc.Server) {
		pulumirpc.RegisterResourceProviderServer(server, plugin.NewProviderServer(provider))
	})
}
