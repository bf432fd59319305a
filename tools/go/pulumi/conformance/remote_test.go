package conformance

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"
)

func TestRemoteCommandLivesOnItsHost(t *testing.T) {
	p, s := startPlugin(t), startSSHD(t)
	file := filepath.Join(t.TempDir(), "state")
	inputs := props{
		"connection": s.connection(),
		"create":     "echo created | tee " + file,
		"update":     "echo updated | tee " + file,
		"delete":     "rm " + file,
	}
	d := p.mustCreate(t, remoteCommand, inputs)
	if d.text("stdout") != "created" || contentOf(t, file) != "created\n" {
		t.Errorf("create printed %q", d.text("stdout"))
	}
	d = p.mustUpdate(t, d, with(inputs, props{"environment": props{"ZTBENCH_A": "b"}}))
	if d.text("stdout") != "updated" {
		t.Errorf("update printed %q", d.text("stdout"))
	}
	p.mustDelete(t, d)
	if isWritten(file)() {
		t.Error("delete left the file")
	}
}

func TestSecretConnectionAloneDoesNotMakeOutputsSecret(t *testing.T) {
	p, s := startPlugin(t), startSSHD(t)
	d := p.mustCreate(t, remoteCommand, props{"connection": s.connection(), "create": "echo x"})
	if d.outputs["stdout"].IsSecret() {
		t.Error("stdout is secret")
	}
	if !d.outputs["connection"].ContainsSecrets() {
		t.Error("the private key is no longer secret")
	}
}

func TestRemoteStdinReachesTheCommand(t *testing.T) {
	p, s := startPlugin(t), startSSHD(t)
	text := strings.Repeat("0123456789abcde\n", 1<<15) // 512 KiB: more than any pipe holds
	d := p.mustCreate(t, remoteCommand, props{
		"connection": s.connection(), "create": "wc -c", "stdin": text,
	})
	if got := d.text("stdout"); got != "524288" {
		t.Errorf("wc counted %q", got)
	}
}

func TestRemoteFailureTellsStatusAndOutput(t *testing.T) {
	p, s := startPlugin(t), startSSHD(t)
	_, err := p.create(t, remoteCommand, props{
		"connection": s.connection(), "create": "echo doing; echo broken >&2; exit 7",
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{"7", "doing", "broken"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

func TestRemoteEnvironment(t *testing.T) {
	p, s := startPlugin(t), startSSHD(t)
	inputs := props{"connection": s.connection(), "create": "echo $ZTBENCH_GREETING"}
	d := p.mustCreate(t, remoteCommand,
		with(inputs, props{"environment": props{"ZTBENCH_GREETING": "two words"}}))
	if got := d.text("stdout"); got != "two words" {
		t.Errorf("accepted variable: %q", got)
	}
	_, err := p.create(t, remoteCommand, with(inputs, props{"environment": props{"REFUSED": "x"}}))
	if err == nil || !strings.Contains(err.Error(), "REFUSED") {
		t.Errorf("refused variable: error %v", err)
	}
}

func TestRemoteTimeoutEndsTheRemoteProcess(t *testing.T) {
	standInOnly(t, "upstream has no timeout for a running command")
	p, s := startPlugin(t), startSSHD(t)
	pidFile := filepath.Join(t.TempDir(), "pid")
	started := time.Now()
	_, err := p.createWithin(t, remoteCommand, props{
		"connection": s.connection(), "create": "sleep 600 & echo $! >" + pidFile + "; wait",
	}, 1)
	if err == nil || !strings.Contains(err.Error(), "timed out") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(started); took > 7*time.Second {
		t.Errorf("took %s", took)
	}
	eventually(t, "remote process gone", func() bool { return !processLives(t, pidFile) })
}

func TestRemoteTimeoutKillsWhoIgnoresTheRequestToEnd(t *testing.T) {
	standInOnly(t, "upstream has no timeout for a running command")
	p, s := startPlugin(t), startSSHD(t)
	pidFile := filepath.Join(t.TempDir(), "pid")
	_, err := p.createWithin(t, remoteCommand, props{
		"connection": s.connection(),
		"create":     "trap '' TERM; echo $$ >" + pidFile + "; while :; do sleep 1; done",
	}, 0.5)
	if err == nil || !strings.Contains(err.Error(), "timed out") {
		t.Errorf("error %v", err)
	}
	eventually(t, "remote process gone", func() bool { return !processLives(t, pidFile) })
}

func TestCancelEndsTheRemoteProcess(t *testing.T) {
	standInOnly(t, "upstream leaves it running")
	p, s := startPlugin(t), startSSHD(t)
	pidFile := filepath.Join(t.TempDir(), "pid")
	ended := make(chan error, 1)
	go func() {
		_, err := p.create(t, remoteCommand, props{
			"connection": s.connection(), "create": "echo $$ >" + pidFile + "; sleep 600",
		})
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
	case <-time.After(8 * time.Second):
		t.Error("operation goes on")
	}
	eventually(t, "remote process gone", func() bool { return !processLives(t, pidFile) })
}
