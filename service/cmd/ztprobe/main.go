// Command ztprobe reads a probe request from standard input, asks the probes, and prints the
// results. It exits with 1 if one of them did not see what it expected.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"ztbench/service/internal/probe"
	"ztbench/service/internal/program"
)

var errFailed = errors.New("probes: not all saw what they expected, the results name them")

func main() { program.Run("ztprobe", run) }

func run(ctx context.Context, args []string) error {
	flags := program.NewFlags("ztprobe")
	if err := flags.Read(args); err != nil {
		return err
	}
	request, err := probe.Read(os.Stdin, "standard input")
	if err != nil {
		return err
	}
	program.LogStart("until=" + request.Until)
	results := probe.Run(ctx, &request)
	if ctx.Err() != nil {
		return program.Interrupted
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(results); err != nil {
		return err
	}
	if !probe.AllPassed(results.Results) {
		return errFailed
	}
	return nil
}
