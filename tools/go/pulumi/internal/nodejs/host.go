// Package nodejs is a Pulumi language host that runs Node.js programs.
package nodejs

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// exitAlreadyReported is the status with which the Node SDK says "I have shown
// the user the error, print nothing more".
const exitAlreadyReported = 32

// Host implements pulumirpc.LanguageRuntimeServer.
type Host struct {
	pulumirpc.UnimplementedLanguageRuntimeServer

	version    string
	engine     atomic.Value // string: address of the engine
	runCtx     context.Context
	cancelRuns context.CancelFunc
}

// NewHost makes a host for the engine at the given address ("" until Handshake).
func NewHost(version, engine string) *Host {
	ctx, cancel := context.WithCancel(context.Background())
	h := &Host{version: version, runCtx: ctx, cancelRuns: cancel}
	h.engine.Store(engine)
	return h
}

// Stop interrupts the programs that are running.
func (h *Host) Stop() { h.cancelRuns() }

func (h *Host) Handshake(
	_ context.Context, req *pulumirpc.LanguageHandshakeRequest,
) (*pulumirpc.LanguageHandshakeResponse, error) {
	h.engine.Store(req.GetEngineAddress())
	return &pulumirpc.LanguageHandshakeResponse{}, nil
}

func (h *Host) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: h.version}, nil
}

func (h *Host) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	h.cancelRuns()
	return &emptypb.Empty{}, nil
}

// Run executes the program under node and waits for it.
func (h *Host) Run(ctx context.Context, req *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {
	opts, err := parseOptions(req.GetInfo())
	if err != nil {
		return &pulumirpc.RunResponse{Error: err.Error()}, nil
	}
	runner, err := findUp(
		req.GetInfo().GetProgramDirectory(), "node_modules/@pulumi/pulumi/cmd/run/index.js")
	if err != nil {
		return &pulumirpc.RunResponse{
			Error: "@pulumi/pulumi is not installed: run `npm ci` in the project directory",
		}, nil
	}
	env, err := programEnv(req, opts)
	if err != nil {
		return &pulumirpc.RunResponse{Error: err.Error()}, nil
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.runCtx, cancel)()

	args := append(append([]string{}, opts.nodeArgs...), runner)
	args = append(args, programArgs(req, h.engine.Load().(string))...)
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = env
	// Plain writers rather than the files themselves: node would otherwise
	// switch the descriptors that it shares with this process to non-blocking.
	cmd.Stdout = struct{ io.Writer }{os.Stdout}
	cmd.Stderr = struct{ io.Writer }{os.Stderr}

	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return &pulumirpc.RunResponse{}, nil
	case errors.As(err, &exit) && exit.ExitCode() == exitAlreadyReported:
		return &pulumirpc.RunResponse{Bail: true}, nil
	case errors.As(err, &exit):
		return &pulumirpc.RunResponse{Error: "program failed: " + exit.Error()}, nil
	default:
		return &pulumirpc.RunResponse{Error: "program could not be started: " + err.Error()}, nil
	}
}
