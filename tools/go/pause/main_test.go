package main

import (
	"os"
	"syscall"
	"testing"
	"time"
)

const deadline = 10 * time.Second

func TestEndsWhenToldTo(t *testing.T) {
	for _, last := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		signals := make(chan os.Signal)
		ended := make(chan struct{})
		go func() {
			pause(signals)
			close(ended)
		}()
		signals <- syscall.SIGCHLD
		signals <- syscall.SIGCHLD // taken, so the first one did not end it
		signals <- last
		select {
		case <-ended:
		case <-time.After(deadline):
			t.Fatalf("%v did not end it", last)
		}
	}
}

func TestReapsWhatOthersLeft(t *testing.T) {
	child, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(time.Millisecond) {
		reap()
		if syscall.Kill(child, 0) == syscall.ESRCH {
			return
		}
	}
	t.Fatalf("process %d is still there", child)
}
