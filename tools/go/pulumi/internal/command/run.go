package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// terminationGrace is how long an ended command may take to clean up after
// itself before it is killed.
const terminationGrace = 2 * time.Second

// command is a script with everything needed to run it.
type command struct {
	script      string
	stdin       string
	logging     string
	env         map[string]string
	dir         string               // local only
	interpreter []string             // local only
	connection  resource.PropertyMap // remote only
}

func newCommand(op operation) (command, error) {
	cmd := command{
		stdin:   stringOr(op.inputs, "stdin", ""),
		logging: stringOr(op.inputs, "logging", "stdoutAndStderr"),
		dir:     stringOr(op.inputs, "dir", ""),
	}
	for _, verb := range op.verbs {
		if hasString(op.inputs, resource.PropertyKey(verb)) {
			cmd.script = stringOr(op.inputs, resource.PropertyKey(verb), "")
			break
		}
	}
	var err error
	if cmd.env, err = stringMap(op.inputs, "environment"); err != nil {
		return cmd, err
	}
	if cmd.interpreter, err = stringList(op.inputs, "interpreter"); err != nil {
		return cmd, err
	}
	if len(cmd.interpreter) == 0 {
		cmd.interpreter = []string{"/bin/sh", "-c"}
	}
	if op.previous != nil && boolOr(op.inputs, "addPreviousOutputInEnv", true) {
		if cmd.env == nil {
			cmd.env = map[string]string{}
		}
		cmd.env["PULUMI_COMMAND_STDOUT"] = stringOr(op.previous, "stdout", "")
		cmd.env["PULUMI_COMMAND_STDERR"] = stringOr(op.previous, "stderr", "")
	}
	cmd.connection, _ = object(op.inputs, "connection")
	return cmd, nil
}

// runLocal runs c in a process group of its own, so that ending it early also
// ends what it started.
func runLocal(ctx context.Context, c command, log commandLog) (result, error) {
	args := append(append([]string{}, c.interpreter...), c.script)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = terminationGrace // also bounds the wait for grandchildren that hold the pipes
	cmd.Dir = c.dir
	cmd.Env = os.Environ()
	for k, v := range c.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	if c.stdin != "" {
		cmd.Stdin = strings.NewReader(c.stdin)
	}
	out := newCapture(log)
	cmd.Stdout, cmd.Stderr = out.stdout, out.stderr
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // whoever ignored SIGTERM
	}
	return out.finish(ctx, c.script, err)
}

func runRemote(ctx context.Context, c command, log commandLog) (result, error) {
	client, err := dial(ctx, c.connection, log)
	if err != nil {
		return result{}, err
	}
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return result{}, fmt.Errorf("open an SSH session: %w", err)
	}
	defer session.Close()
	for k, v := range c.env {
		if err := session.Setenv(k, v); err != nil {
			return result{}, fmt.Errorf("the SSH server refused environment variable %s "+
				"(its AcceptEnv must list it): %w", k, err)
		}
	}
	if c.stdin != "" {
		session.Stdin = strings.NewReader(c.stdin)
	}
	out := newCapture(log)
	session.Stdout, session.Stderr = out.stdout, out.stderr

	finished := make(chan error, 1)
	go func() { finished <- session.Run(c.script) }()
	select {
	case err = <-finished:
	case <-ctx.Done():
		err = endRemote(client, finished)
	}
	return out.finish(ctx, c.script, err)
}

// endRemote ends a command early, so that nothing of it goes on unseen on the
// host. It returns in bounded time even if the host no longer answers.
func endRemote(client *ssh.Client, finished <-chan error) error {
	defer client.Close()
	for _, signal := range []string{"TERM", "KILL"} {
		go signalCommands(client, signal)
		select {
		case err := <-finished:
			return err
		case <-time.After(terminationGrace):
		}
	}
	client.Close()
	return <-finished
}

// signalScript signals the process groups of the connection's other sessions:
// their leaders are the other children of the server process that serves it.
const signalScript = `for f in $(grep -ls "^PPid:[[:space:]]*$PPID\$" /proc/[0-9]*/status); do
p=${f#/proc/}; p=${p%%/status}; [ "$p" = $$ ] || kill -%s -- "-$p"
done`

// signalCommands goes through a second session, since an OpenSSH server passes
// the protocol's own signal requests on for users other than root only.
func signalCommands(client *ssh.Client, signal string) {
	session, err := client.NewSession()
	if err != nil {
		return // the connection is gone, or the server allows one session only
	}
	defer session.Close()
	_ = session.Run(fmt.Sprintf(signalScript, signal))
}
