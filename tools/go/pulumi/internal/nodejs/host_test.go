package nodejs

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// project makes a project directory with a runner that exists and puts a fake
// `node` in front of PATH: a shell script with the given body.
func project(t *testing.T, node string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "node_modules/@pulumi/pulumi/cmd/run/index.js"), "", 0o644)
	write(t, filepath.Join(dir, "stacks/main.ts"), "", 0o644)
	bin := t.TempDir()
	write(t, filepath.Join(bin, "node"), "#!/bin/sh\n"+node+"\n", 0o755)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return dir
}

func write(t *testing.T, file, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func request(t *testing.T, dir string, options map[string]any) *pulumirpc.RunRequest {
	t.Helper()
	opts, err := structpb.NewStruct(options)
	if err != nil {
		t.Fatal(err)
	}
	return &pulumirpc.RunRequest{
		Project: "p", Stack: "s", MonitorAddress: "127.0.0.1:1", Parallel: 4, DryRun: true,
		Config:           map[string]string{"p:key": "value"},
		ConfigSecretKeys: []string{"p:key"},
		Info: &pulumirpc.ProgramInfo{
			RootDirectory: dir, ProgramDirectory: filepath.Join(dir, "stacks"), EntryPoint: "main.ts",
			Options: opts,
		},
	}
}

func run(t *testing.T, req *pulumirpc.RunRequest) *pulumirpc.RunResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	resp, err := NewHost("1.2.3", "127.0.0.1:2").Run(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestProgramGetsItsArgumentsAndConfiguration(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	dir := project(t, `{ echo "$@"; env; } >`+seen)
	if resp := run(t, request(t, dir, nil)); resp.GetError() != "" || resp.GetBail() {
		t.Fatal(resp)
	}
	content, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		dir + "/node_modules/@pulumi/pulumi/cmd/run/index.js --monitor 127.0.0.1:1 ",
		"--engine 127.0.0.1:2 ", "--project p ", "--stack s ", "--pwd " + dir + "/stacks ",
		"--root-directory " + dir + " ", "--dry-run ", "--parallel 4 main.ts\n",
		`PULUMI_CONFIG={"p:key":"value"}`, `PULUMI_CONFIG_SECRET_KEYS=["p:key"]`,
		"PULUMI_NODEJS_TYPESCRIPT=true",
	} {
		if !strings.Contains(string(content), want) {
			t.Errorf("lacks %q:\n%s", want, content)
		}
	}
}

func TestOptionsOfTheProjectAreHonoured(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	dir := project(t, `{ echo "$@"; env; } >`+seen)
	resp := run(t, request(t, dir, map[string]any{
		"nodeargs": `--import tsx --title "two words"`, "typescript": false, "packagemanager": "npm",
	}))
	if resp.GetError() != "" {
		t.Fatal(resp)
	}
	content, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(content), "--import tsx --title two words "+dir) {
		t.Errorf("arguments: %s", content)
	}
	if strings.Contains(string(content), "PULUMI_NODEJS_TYPESCRIPT") {
		t.Error("typescript: false is not honoured")
	}
}

func TestUnsupportedOptionIsNamed(t *testing.T) {
	dir := project(t, "exit 0")
	for option, value := range map[string]any{"packagemanager": "pnpm", "typescript": "no"} {
		resp := run(t, request(t, dir, map[string]any{option: value}))
		if !strings.Contains(resp.GetError(), option) {
			t.Errorf("%s: %q", option, resp.GetError())
		}
	}
}

func TestExitStatusSaysWhoReportsTheError(t *testing.T) {
	for status, c := range map[string]struct {
		bail bool
		err  string
	}{
		"0":  {false, ""},
		"32": {true, ""},
		"1":  {false, "exit status 1"},
	} {
		resp := run(t, request(t, project(t, "exit "+status), nil))
		if resp.GetBail() != c.bail || !strings.Contains(resp.GetError(), c.err) ||
			(c.err == "") != (resp.GetError() == "") {
			t.Errorf("status %s: %v", status, resp)
		}
	}
}

func TestMissingSDKIsExplained(t *testing.T) {
	dir := project(t, "exit 0")
	if err := os.RemoveAll(filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if resp := run(t, request(t, dir, nil)); !strings.Contains(resp.GetError(), "npm ci") {
		t.Error(resp)
	}
}

func TestCancelInterruptsTheProgram(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	dir := project(t, "touch "+started+"; exec sleep 600")
	host := NewHost("1.2.3", "")
	ended := make(chan *pulumirpc.RunResponse, 1)
	req := request(t, dir, nil)
	go func() {
		resp, _ := host.Run(context.Background(), req)
		ended <- resp
	}()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(started); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("program did not start")
		}
	}
	if _, err := host.Cancel(context.Background(), &emptypb.Empty{}); err != nil {
		t.Fatal(err)
	}
	select {
	case resp := <-ended:
		if resp.GetError() == "" {
			t.Error("an interrupted program counts as a success")
		}
	case <-time.After(10 * time.Second):
		t.Error("program goes on")
	}
}

func TestRequiredPackagesAreThePluginsOfDependencies(t *testing.T) {
	dir := project(t, "exit 0")
	write(t, filepath.Join(dir, "package.json"),
		`{"dependencies":{"@pulumi/command":"1.2.1","zx":"8.8.5","absent":"1.0.0"}}`, 0o644)
	for name, manifest := range map[string]string{
		"@pulumi/command": `{"version":"1.2.1","pulumi":{"resource":true,"name":"command"}}`,
		"zx":              `{"version":"8.8.5"}`,
	} {
		write(t, filepath.Join(dir, "node_modules", name, "package.json"), manifest, 0o644)
	}
	resp, err := NewHost("1.2.3", "").GetRequiredPackages(context.Background(),
		&pulumirpc.GetRequiredPackagesRequest{Info: request(t, dir, nil).GetInfo()})
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.GetPackages(); len(got) != 1 || got[0].GetName() != "command" ||
		got[0].GetVersion() != "1.2.1" || got[0].GetKind() != "resource" {
		t.Errorf("packages %v", got)
	}
}
