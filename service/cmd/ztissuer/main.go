// Command ztissuer makes a signing key and tokens, writes the tokens into a directory, and serves
// the key set. It never prints a token or a key.
package main

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"ztbench/service/internal/issuer"
	"ztbench/service/internal/program"
)

const (
	maxTokens     = 100_000
	maxTokenBytes = 16 << 10
)

type options struct {
	directory, listen string
	count             int
	terms             issuer.Terms
}

func main() { program.Run("ztissuer", run) }

func run(ctx context.Context, args []string) error {
	o, err := readOptions(args)
	if err != nil {
		return err
	}
	program.LogStart("listen="+o.listen, "dir="+o.directory, "tokens="+strconv.Itoa(o.count))
	mint, err := issuer.NewMint(o.terms)
	if err != nil {
		return err
	}
	// The files come first: once the port answers, the tokens are there.
	if err := issuer.WriteTokens(mint, o.directory, o.count); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	if err := program.NotifyReady(); err != nil {
		return err
	}
	handler := issuer.Handler(mint.KeySet(), o.count)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	return program.Serve(ctx, map[net.Listener]*http.Server{listener: server})
}

func readOptions(args []string) (options, error) {
	var o options
	flags := program.NewFlags("ztissuer")
	flags.StringVar(&o.directory, "dir", "", "`directory` for the token files")
	flags.StringVar(&o.listen, "listen", "", "`address` to serve on, host:port")
	flags.IntVar(&o.count, "count", 200, "number of valid tokens")
	flags.StringVar(&o.terms.Issuer, "issuer", "", "iss of the tokens")
	flags.StringVar(&o.terms.Audience, "audience", "", "aud of the tokens")
	flags.DurationVar(&o.terms.TTL, "ttl", 24*time.Hour, "life time of the tokens")
	flags.IntVar(&o.terms.TokenBytes, "token-bytes", 680, "length of a token")
	if err := flags.Read(args); err != nil {
		return o, err
	}
	return o, o.check()
}

func (o options) check() error {
	err := program.Required(map[string]string{
		"dir": o.directory, "issuer": o.terms.Issuer, "audience": o.terms.Audience,
	}, "dir", "issuer", "audience")
	if err != nil {
		return err
	}
	if err := program.CheckListen("listen", o.listen); err != nil {
		return err
	}
	switch {
	case o.count < 1 || o.count > maxTokens:
		return program.Usagef("-count: out of range, %d, want 1 to %d", o.count, maxTokens)
	case o.terms.TTL < time.Minute:
		return program.Usagef("-ttl: too short, %s, want 1m or more", o.terms.TTL)
	case o.terms.TokenBytes < 1 || o.terms.TokenBytes > maxTokenBytes:
		return program.Usagef("-token-bytes: out of range, %d, want 1 to %d",
			o.terms.TokenBytes, maxTokenBytes)
	}
	return nil
}
