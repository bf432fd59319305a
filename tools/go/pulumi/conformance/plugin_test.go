// Package conformance states what a command provider must do for the stacks of
// this repository. It speaks the provider protocol to a plugin process, so it
// can be run against upstream's plugin as well:
//
//	ZTBENCH_COMMAND_PLUGIN=/path/to/pulumi-resource-command go test ./conformance
//
// Tests that call standInOnly say where ours differs from upstream on purpose.
package conformance

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// patience bounds everything that a test waits for.
const patience = 20 * time.Second

var pluginPath = os.Getenv("ZTBENCH_COMMAND_PLUGIN")

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	if pluginPath != "" {
		return m.Run()
	}
	scratch, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	standIn := filepath.Join(scratch, "pulumi-resource-command")
	build := exec.Command("go", "build", "-ldflags", "-X main.version=1.2.1",
		"-o", standIn, "../cmd/pulumi-resource-command")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the stand-in: %v\n%s", err, out)
		return 1
	}
	pluginPath = standIn
	defer func() { pluginPath = "" }()
	return m.Run()
}

// standInOnly skips what upstream is known not to do.
func standInOnly(t *testing.T, difference string) {
	t.Helper()
	if os.Getenv("ZTBENCH_COMMAND_PLUGIN") != "" {
		t.Skip("ours differs from upstream on purpose: " + difference)
	}
}

// pluginProcess is a running plugin together with the engine that it reports to.
type pluginProcess struct {
	pulumirpc.ResourceProviderClient

	engine *engine
	cmd    *exec.Cmd
}

// startPlugin starts the plugin as the engine does; it ends with the test.
func startPlugin(t *testing.T) *pluginProcess {
	t.Helper()
	engine, address := startEngine(t)
	cmd := exec.Command(pluginPath, address)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	port, err := bufio.NewReader(stdout).ReadString('\n')
	must(t, err)
	conn, err := grpc.NewClient("127.0.0.1:"+strings.TrimSpace(port),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	p := &pluginProcess{
		ResourceProviderClient: pulumirpc.NewResourceProviderClient(conn), engine: engine, cmd: cmd,
	}
	_, err = p.Configure(bounded(t), &pulumirpc.ConfigureRequest{
		AcceptSecrets: true, AcceptResources: true,
	})
	must(t, err)
	return p
}

// engine records what a plugin tells the user.
type engine struct {
	pulumirpc.UnimplementedEngineServer

	mu    sync.Mutex
	lines []string
}

func startEngine(t *testing.T) (*engine, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	e, server := &engine{}, grpc.NewServer()
	pulumirpc.RegisterEngineServer(server, e)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return e, listener.Addr().String()
}

func (e *engine) Log(_ context.Context, req *pulumirpc.LogRequest) (*emptypb.Empty, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !req.GetEphemeral() {
		e.lines = append(e.lines, strings.TrimSuffix(req.GetMessage(), "\n"))
	}
	return &emptypb.Empty{}, nil
}

func (e *engine) shown() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.lines, "\n")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bounded is a context that ends when a test has waited long enough.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually polls until condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// processLives tells whether the process whose id is in file still runs.
func processLives(t *testing.T, file string) bool {
	t.Helper()
	pid := 0
	content, err := os.ReadFile(file)
	must(t, err)
	if _, err := fmt.Sscan(string(content), &pid); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(status), ") Z ")
}

func isWritten(file string) func() bool {
	return func() bool {
		content, err := os.ReadFile(file)
		return err == nil && strings.HasSuffix(string(content), "\n")
	}
}
