package conformance

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

func TestCreateRunsTheCommandAndKeepsBothOutputs(t *testing.T) {
	p := startPlugin(t)
	d := p.mustCreate(t, localCommand, props{"create": "echo out; echo err >&2"})
	if d.text("stdout") != "out" || d.text("stderr") != "err" {
		t.Errorf("stdout %q, stderr %q", d.text("stdout"), d.text("stderr"))
	}
	if d.id == "" {
		t.Error("no id")
	}
}

func TestUpdateRunsUpdateOrElseCreate(t *testing.T) {
	p := startPlugin(t)
	for _, c := range []struct {
		inputs props
		want   string
	}{
		{props{"create": "echo created", "update": "echo updated"}, "updated"},
		{props{"create": "echo created again"}, "created again"},
	} {
		d := p.mustCreate(t, localCommand, props{"create": "echo created"})
		if got := p.mustUpdate(t, d, c.inputs).text("stdout"); got != c.want {
			t.Errorf("update of %v printed %q, want %q", c.inputs, got, c.want)
		}
	}
}

func TestPreviousOutputIsInTheEnvironmentUnlessRefused(t *testing.T) {
	p := startPlugin(t)
	show := "echo \"[$PULUMI_COMMAND_STDOUT]\""
	d := p.mustCreate(t, localCommand, props{"create": "echo first"})
	if got := p.mustUpdate(t, d, props{"create": show}).text("stdout"); got != "[first]" {
		t.Errorf("by default: %q", got)
	}
	refused := props{"create": show, "addPreviousOutputInEnv": false}
	if got := p.mustUpdate(t, d, refused).text("stdout"); got != "[]" {
		t.Errorf("when refused: %q", got)
	}
}

func TestDeleteRunsDeleteOnlyIfThereIsOne(t *testing.T) {
	p := startPlugin(t)
	mark := filepath.Join(t.TempDir(), "mark")
	p.mustDelete(t, p.mustCreate(t, localCommand, props{"create": "true"}))
	p.mustDelete(t, p.mustCreate(t, localCommand, props{"create": "true", "delete": "touch " + mark}))
	if _, err := os.Stat(mark); err != nil {
		t.Error("delete did not run:", err)
	}
}

func TestOnlyTriggersReplace(t *testing.T) {
	p := startPlugin(t)
	inputs := props{"create": "true", "triggers": []any{"a"}, "environment": props{"K": "v"}}
	d := p.mustCreate(t, localCommand, inputs)
	for name, c := range map[string]struct {
		changes           props
		changed, replaced bool
	}{
		"nothing":     {props{}, false, false},
		"trigger":     {props{"triggers": []any{"b"}}, true, true},
		"new trigger": {props{"triggers": []any{"a", "b"}}, true, true},
		"create":      {props{"create": "echo"}, true, false},
		"environment": {props{"environment": props{"K": "w"}}, true, false},
		"delete":      {props{"delete": "true"}, true, false},
	} {
		changed, replaced := p.diff(t, d, with(inputs, c.changes))
		if changed != c.changed || replaced != c.replaced {
			t.Errorf("%s: changes %t, replaces %t", name, changed, replaced)
		}
	}
}

func TestSecretInputsMakeOutputsSecret(t *testing.T) {
	p := startPlugin(t)
	for name, c := range map[string]struct {
		inputs props
		secret bool
	}{
		"plain":       {props{"create": "echo x"}, false},
		"environment": {props{"create": "echo x", "environment": props{"K": secret("v")}}, true},
		"stdin":       {props{"create": "cat", "stdin": secret("x")}, true},
		"create":      {props{"create": secret("echo x")}, true},
	} {
		d := p.mustCreate(t, localCommand, c.inputs)
		if got := d.outputs["stdout"].IsSecret(); got != c.secret {
			t.Errorf("%s: stdout secret %t, want %t", name, got, c.secret)
		}
	}
}

func TestInputsReachTheCommand(t *testing.T) {
	p := startPlugin(t)
	dir := t.TempDir()
	d := p.mustCreate(t, localCommand, props{
		"create":      "pwd; echo $GREETING; cat; echo $0",
		"dir":         dir,
		"environment": props{"GREETING": "two words"},
		"stdin":       "from stdin\n",
		"interpreter": []any{"/bin/sh", "-ec"},
	})
	want := strings.Join([]string{dir, "two words", "from stdin", "/bin/sh"}, "\n")
	if got := d.text("stdout"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFailureTellsStatusAndOutput(t *testing.T) {
	p := startPlugin(t)
	_, err := p.create(t, localCommand, props{"create": "echo doing; echo broken >&2; exit 3"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{"exit status 3", "doing", "broken"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

func TestLinesAreShownAsLoggingAsks(t *testing.T) {
	for logging, want := range map[string]string{
		"stdoutAndStderr": "out\nerr", "stdout": "out", "stderr": "err", "none": "",
	} {
		p := startPlugin(t)
		// The pause keeps the order of two independent streams.
		p.mustCreate(t, localCommand, props{
			"create": "echo out; sleep 0.2; echo err >&2", "logging": logging,
		})
		eventually(t, logging+": shows "+want, func() bool { return p.engine.shown() == want })
	}
}

func TestVeryLongLinePasses(t *testing.T) {
	standInOnly(t, "a line above 64 KiB blocks upstream")
	p := startPlugin(t)
	d := p.mustCreate(t, localCommand, props{"create": "head -c 1000000 /dev/zero | tr '\\0' x"})
	if got := len(d.text("stdout")); got != 1000000 {
		t.Errorf("%d bytes", got)
	}
}

func TestTimeoutEndsTheWholeLocalProcessGroup(t *testing.T) {
	standInOnly(t, "upstream leaves the processes that a command started")
	p := startPlugin(t)
	pidFile := filepath.Join(t.TempDir(), "pid")
	script := "sleep 600 & echo $! >" + pidFile + "; wait"
	started := time.Now()
	_, err := p.createWithin(t, localCommand, props{"create": script}, 0.5)
	if err == nil || !strings.Contains(err.Error(), "timed out") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	eventually(t, "process gone", func() bool { return !processLives(t, pidFile) })
}

func TestCancelEndsOperationsUnderWay(t *testing.T) {
	standInOnly(t, "upstream finishes them")
	p := startPlugin(t)
	pidFile := filepath.Join(t.TempDir(), "pid")
	ended := make(chan error, 1)
	go func() {
		_, err := p.create(t, localCommand, props{"create": "echo $$ >" + pidFile + "; sleep 600"})
		ended <- err
	}()
	eventually(t, "command started", isWritten(pidFile))
	_, err := p.Cancel(bounded(t), &emptypb.Empty{})
	must(t, err)
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "cancelled") {
			t.Errorf("error %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("operation goes on")
	}
	eventually(t, "process gone", func() bool { return !processLives(t, pidFile) })
}

func TestInterruptEndsThePluginAtOnce(t *testing.T) {
	p := startPlugin(t)
	started := time.Now()
	must(t, p.cmd.Process.Signal(os.Interrupt))
	_, _ = p.cmd.Process.Wait()
	// The engine waits up to 5 s for each plugin at the end of every operation.
	if took := time.Since(started); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	p := startPlugin(t)
	if got := p.complaints(t, localCommand, props{"create": "true"}); len(got) != 0 {
		t.Errorf("good inputs: %v", got)
	}
	got := p.complaints(t, localCommand, props{"creat": "true"})
	if !slices.Equal(got, []string{"creat"}) {
		t.Errorf("misspelt input: %v", got)
	}
	got = p.complaints(t, remoteCommand, props{"create": "true"})
	if !slices.Equal(got, []string{"connection"}) {
		t.Errorf("missing connection: %v", got)
	}
}

func TestPreviewRunsNothing(t *testing.T) {
	p := startPlugin(t)
	mark := filepath.Join(t.TempDir(), "mark")
	resp, err := p.Create(bounded(t), &pulumirpc.CreateRequest{
		Urn: urnOf(localCommand), Name: "it", Type: localCommand, Preview: true,
		Properties: marshal(t, props{"create": "touch " + mark}),
	})
	must(t, err)
	if out := unmarshal(t, resp.GetProperties())["stdout"]; !out.IsComputed() {
		t.Errorf("stdout %v, want unknown", out)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command ran")
	}
}

func TestRunFunctionReturnsOutput(t *testing.T) {
	p := startPlugin(t)
	resp, err := p.Invoke(context.Background(), &pulumirpc.InvokeRequest{
		Tok: "command:local:run", Args: marshal(t, props{"command": "echo ran"}),
	})
	must(t, err)
	if got := unmarshal(t, resp.GetReturn())["stdout"]; got.StringValue() != "ran" {
		t.Errorf("stdout %v", got)
	}
}
