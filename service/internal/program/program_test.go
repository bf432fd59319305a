package program

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestEachErrorHasItsExitCode(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{flag.ErrHelp, 0},
		{errors.New("disk full"), ExitFailed},
		{Usagef("-x: missing"), ExitUsage},
		{fmt.Errorf("more: %w", BadDocumentf("file: broken")), ExitBadDocument},
		{Interrupted, ExitInterrupted},
	} {
		if got := exitCode(test.err); got != test.want {
			t.Errorf("%v: exit code %d, want %d", test.err, got, test.want)
		}
	}
}

func TestUnknownFlagsAndArgumentsAreUsageErrors(t *testing.T) {
	for _, args := range [][]string{{"-unknown"}, {"argument"}, {"-n", "x"}} {
		flags := NewFlags("test")
		flags.Int("n", 0, "a number")
		if err := flags.Read(args); exitCode(err) != ExitUsage {
			t.Errorf("%v: %v, want a usage error", args, err)
		}
	}
}

func TestAddressesAreChecked(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:80": true, ":8080": true, "": false, "host": false, "127.0.0.1:99999": false,
	} {
		if err := CheckListen("listen", address); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
	for address, ok := range map[string]bool{
		"127.0.0.1:80": true, ":80": false, "198.18.0.11:80": false,
	} {
		if err := CheckLoopback("admin", address); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestReadinessIsToldToTheSocketThatAsks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	if err := NotifyReady(); err != nil {
		t.Fatal(err)
	}
	if err := socket.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 100)
	n, err := socket.Read(text)
	if err != nil || string(text[:n]) != "READY=1" {
		t.Fatalf("got %q, %v", text[:n], err)
	}
}

func TestAFileIsReplacedWholeAndNoneIsLeftBehind(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "file")
	for _, text := range []string{"first", "second"} {
		if err := WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Fatalf("got %q, %v; want %q", got, err, text)
		}
	}
	if entries, err := os.ReadDir(directory); err != nil || len(entries) != 1 {
		t.Fatalf("%d files, %v; want 1", len(entries), err)
	}
}
