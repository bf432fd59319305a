// Package program holds what every program of the testbed does alike: flags, exit codes, the start
// line, signals and the readiness notice to systemd.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

// Version is what -version prints.
const Version = "0.1.0"

// Exit codes shared by all programs.
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitBadDocument = 3
	ExitInterrupted = 130
)

// Exit is an error that knows the exit code it deserves.
type Exit struct {
	Code int
	Err  error
}

func (e *Exit) Error() string { return e.Err.Error() }
func (e *Exit) Unwrap() error { return e.Err }

// Usagef returns an error that ends the program with code 2.
func Usagef(format string, args ...any) error {
	return &Exit{ExitUsage, fmt.Errorf(format, args...)}
}

// BadDocumentf returns an error that ends the program with code 3.
func BadDocumentf(format string, args ...any) error {
	return &Exit{ExitBadDocument, fmt.Errorf(format, args...)}
}

// Interrupted is returned by work that a signal ended; the program exits with code 130.
var Interrupted = &Exit{ExitInterrupted, errors.New("interrupted: a signal ended the work")}

// Run is the whole of main: it calls body with the arguments and a context that the first SIGINT or
// SIGTERM cancels (a second one kills), prints an error once, and exits.
func Run(name string, body func(ctx context.Context, args []string) error) {
	log.SetFlags(0)
	log.SetPrefix(name + ": ")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := body(ctx, os.Args[1:])
	if code := exitCode(err); code != 0 {
		log.Print(err)
		os.Exit(code)
	}
}

func exitCode(err error) int {
	var exit *Exit
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &exit):
		return exit.Code
	default:
		return ExitFailed
	}
}

// Flags is a flag set whose errors come back as usage errors, and which knows -version.
type Flags struct {
	*flag.FlagSet
	version bool
}

// NewFlags returns an empty set for the named program or subcommand.
func NewFlags(name string) *Flags {
	f := &Flags{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError)}
	f.SetOutput(io.Discard)
	f.BoolVar(&f.version, "version", false, "print the version and exit")
	return f
}

// Read parses args. It returns flag.ErrHelp once help or version has been printed on stdout.
func (f *Flags) Read(args []string) error {
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(os.Stdout)
		fmt.Printf("usage: %s [flags]\n", f.Name())
		f.PrintDefaults()
		return flag.ErrHelp
	case err != nil:
		return Usagef("flags: %w (%s -help lists them)", err, f.Name())
	case f.version:
		fmt.Printf("%s %s\n", f.Name(), Version)
		return flag.ErrHelp
	case f.NArg() > 0:
		return Usagef("arguments: unexpected %q, only flags are allowed", f.Arg(0))
	}
	return nil
}

// Required returns a usage error that names the first flag whose value is empty.
func Required(values map[string]string, order ...string) error {
	for _, name := range order {
		if values[name] == "" {
			return Usagef("-%s: missing, a value is required", name)
		}
	}
	return nil
}

// LogStart prints the one start line: what really runs, before any work. The facts are printed as
// given, so they must not hold a secret.
func LogStart(facts ...string) {
	log.Printf("start version=%s go=%s gomaxprocs=%d cpus=%d pid=%d %s",
		Version, runtime.Version(), runtime.GOMAXPROCS(0), runtime.NumCPU(), os.Getpid(),
		strings.Join(facts, " "))
}
