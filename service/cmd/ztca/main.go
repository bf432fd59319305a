// Command ztca bootstraps the trust of a mesh. `ztca authority` makes an authority; `ztca request`
// makes a key and prints a request; `ztca sign` prints a chain for a request on standard input;
// `ztca accept` stores that chain beside the key; `ztca impostors` makes certificates that probes
// try. Keys are written to files and never printed.
package main

import (
	"context"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"ztbench/service/internal/ca"
	"ztbench/service/internal/program"
)

const inputBytes = 1 << 20

type verb struct {
	name string
	run  func(flags *program.Flags, args []string) error
}

var verbs = []verb{
	{"authority", authority},
	{"request", request},
	{"sign", sign},
	{"accept", accept},
	{"impostors", impostors},
}

func main() { program.Run("ztca", run) }

func run(_ context.Context, args []string) error {
	names := make([]string, len(verbs))
	for i, v := range verbs {
		if len(args) > 0 && v.name == args[0] {
			return v.run(program.NewFlags("ztca "+v.name), args[1:])
		}
		names[i] = v.name
	}
	if len(args) > 0 && strings.HasPrefix(args[0], "-") {
		return program.NewFlags("ztca " + strings.Join(names, "|")).Read(args)
	}
	return program.Usagef("verb: want one of %s", strings.Join(names, ", "))
}

func authority(flags *program.Flags, args []string) error {
	directory := flags.String("dir", "", "`directory` for the authority's files")
	if err := readFlags(flags, args, "dir", directory); err != nil {
		return err
	}
	made, err := ca.NewAuthority()
	if err != nil {
		return err
	}
	return made.Write(*directory)
}

func request(flags *program.Flags, args []string) error {
	directory := flags.String("dir", "", "`directory` for the key")
	if err := readFlags(flags, args, "dir", directory); err != nil {
		return err
	}
	text, err := ca.Request(*directory)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

func sign(flags *program.Flags, args []string) error {
	directory := flags.String("dir", "", "`directory` of the authority")
	name := flags.String("id", "", "SPIFFE `ID` that the certificate names")
	ttl := flags.Duration("ttl", 24*time.Hour, "life time; expired already if not positive")
	if err := readFlags(flags, args, "dir", directory); err != nil {
		return err
	}
	id, err := spiffeID("id", *name)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(os.Stdin, inputBytes))
	if err != nil {
		return err
	}
	opened, err := ca.Open(*directory)
	if err != nil {
		return err
	}
	chain, err := opened.Sign(text, id, *ttl)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(chain)
	return err
}

func accept(flags *program.Flags, args []string) error {
	directory := flags.String("dir", "", "`directory` of the key")
	if err := readFlags(flags, args, "dir", directory); err != nil {
		return err
	}
	chain, err := io.ReadAll(io.LimitReader(os.Stdin, inputBytes))
	if err != nil {
		return err
	}
	return ca.Accept(*directory, chain, time.Now())
}

func impostors(flags *program.Flags, args []string) error {
	var own, foreign program.Strings
	directory := flags.String("dir", "", "`directory` of the authority")
	out := flags.String("out", "", "`directory` for the certificates")
	flags.Var(&own, "own", "`NAME=ID` to be signed by the authority; may be repeated")
	flags.Var(&foreign, "foreign", "`NAME=ID` to be signed by another one; may be repeated")
	if err := readFlags(flags, args, "dir", directory); err != nil {
		return err
	}
	if *out == "" {
		return program.Usagef("-out: missing, a value is required")
	}
	var wanted []ca.Impostor
	for _, list := range []struct {
		texts   []string
		foreign bool
	}{{own, false}, {foreign, true}} {
		for _, text := range list.texts {
			name, uri, _ := strings.Cut(text, "=")
			id, err := spiffeID("own, -foreign", uri)
			if err != nil {
				return err
			}
			wanted = append(wanted, ca.Impostor{Name: name, ID: id, Foreign: list.foreign})
		}
	}
	opened, err := ca.Open(*directory)
	if err != nil {
		return err
	}
	return opened.WriteImpostors(*out, wanted)
}

func readFlags(flags *program.Flags, args []string, required string, value *string) error {
	if err := flags.Read(args); err != nil {
		return err
	}
	return program.Required(map[string]string{required: *value}, required)
}

func spiffeID(flagName, text string) (*url.URL, error) {
	id, err := url.Parse(text)
	if err != nil || id.Scheme != "spiffe" || id.Host == "" || id.Path == "" {
		return nil, program.Usagef("-%s: not a SPIFFE ID, %q, want spiffe://DOMAIN/PATH", flagName, text)
	}
	return id, nil
}
