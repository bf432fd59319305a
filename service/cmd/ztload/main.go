// Command ztload drives load: it writes targets, sends requests on time, and turns the records into
// rows. It judges nothing.
package main

import (
	"context"
	"log"
	"os"

	"ztbench/service/internal/load"
	"ztbench/service/internal/program"
)

const usage = `usage: ztload targets|attack|connect|encode|rows|split [flags]
  targets  write a vegeta targets file, one target for each token
  attack   send requests on a planned schedule, write vegeta records and the plan
  connect  send requests one after another, each on a connection of its own, write what each took
  encode   turn vegeta records into gzipped CSV rows
  rows     turn vegeta records into vegeta's CSV on standard output, without bodies and headers
  split    the same as encode, warm-up and measured requests apart, with the plan of the latter
"ztload COMMAND -help" lists the flags`

const commands = "targets, attack, connect, encode, rows or split"

func main() { program.Run("ztload", run) }

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return program.Usagef("command: missing, want %s\n%s", commands, usage)
	}
	switch command, rest := args[0], args[1:]; command {
	case "targets":
		return targets(rest)
	case "attack":
		return attack(ctx, rest)
	case "connect":
		return connect(ctx, rest)
	case "encode":
		return encode(rest)
	case "rows":
		return rows(rest)
	case "split":
		return split(rest)
	case "-help", "--help", "-h", "-version", "--version":
		return program.NewFlags("ztload").Read(args)
	default:
		return program.Usagef("command: unknown, %q, want %s", command, commands)
	}
}

func targets(args []string) error {
	var target, tokensFile, out string
	var headers program.Strings
	flags := program.NewFlags("ztload targets")
	flags.StringVar(&target, "url", "", "`URL` to GET")
	flags.StringVar(&tokensFile, "tokens", "", "`file` of bearer tokens, one a line")
	flags.Var(&headers, "header", "`\"name: value\"` for every target; may be repeated")
	flags.StringVar(&out, "out", "", "`file` to write")
	if err := flags.Read(args); err != nil {
		return err
	}
	err := program.Required(map[string]string{"url": target, "out": out}, "url", "out")
	if err != nil {
		return err
	}
	var tokens []string
	if tokensFile != "" {
		if tokens, err = load.ReadTokens(tokensFile); err != nil {
			return err
		}
	}
	program.LogStart("command=targets", "url="+target, "out="+out)
	return load.WriteTargets(out, target, headers, tokens)
}

func encode(args []string) error {
	var inputs program.Strings
	var out string
	flags := program.NewFlags("ztload encode")
	flags.Var(&inputs, "in", "`file` of vegeta gob records; may be repeated")
	flags.StringVar(&out, "out", "", "`file` to write, gzipped CSV")
	if err := flags.Read(args); err != nil {
		return err
	}
	err := program.Required(map[string]string{"in": inputs.String(), "out": out}, "in", "out")
	if err != nil {
		return err
	}
	program.LogStart("command=encode", "in="+inputs.String(), "out="+out)
	rows, err := load.Encode(inputs, out)
	if err == nil {
		log.Printf("done rows=%d", rows)
	}
	return err
}

func rows(args []string) error {
	var in string
	flags := program.NewFlags("ztload rows")
	flags.StringVar(&in, "in", "", "`file` of vegeta gob records of one attack")
	if err := flags.Read(args); err != nil {
		return err
	}
	if err := program.Required(map[string]string{"in": in}, "in"); err != nil {
		return err
	}
	return load.WriteRows(in, os.Stdout)
}
