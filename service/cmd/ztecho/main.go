// Command ztecho is the service under test: it answers every request with the identity it speaks
// for, after the check that -auth names.
package main

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	"ztbench/service/internal/auth"
	"ztbench/service/internal/echo"
	"ztbench/service/internal/program"
)

const (
	keyAttempts  = 50
	maxBodyBytes = 1 << 20
)

type options struct {
	listen, admin, auth    string
	jwks, issuer, audience string
	keyDeadline            time.Duration
	bodyBytes              int
}

func main() { program.Run("ztecho", run) }

func run(ctx context.Context, args []string) error {
	o, err := readOptions(args)
	if err != nil {
		return err
	}
	program.LogStart("listen="+o.listen, "auth="+o.auth, "admin="+o.admin)
	guard, err := guardOf(ctx, o)
	if err != nil {
		return err
	}
	stats := new(echo.Stats)
	servers := map[net.Listener]*http.Server{}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	servers[listener] = echo.NewServer(stats, echo.Handler(stats, guard, o.bodyBytes))
	if o.admin != "" {
		listener, err := net.Listen("tcp", o.admin)
		if err != nil {
			return err
		}
		servers[listener] = &http.Server{Handler: stats.Admin(), ReadHeaderTimeout: 5 * time.Second}
	}
	if err := program.NotifyReady(); err != nil {
		return err
	}
	return program.Serve(ctx, servers)
}

func readOptions(args []string) (options, error) {
	var o options
	flags := program.NewFlags("ztecho")
	flags.StringVar(&o.listen, "listen", "", "`address` to serve on, host:port")
	flags.StringVar(&o.admin, "admin", "", "loopback `address` of /healthz and /stats; none if empty")
	flags.StringVar(&o.auth, "auth", "none", "none, jwt, identity or peer")
	flags.StringVar(&o.jwks, "jwks", "", "`URL` of the issuer's key set (jwt)")
	flags.StringVar(&o.issuer, "issuer", "", "the iss that tokens must have (jwt)")
	flags.StringVar(&o.audience, "audience", "", "the aud that tokens must have (jwt)")
	flags.DurationVar(&o.keyDeadline, "jwks-deadline", 15*time.Second, "time to get them (jwt)")
	flags.IntVar(&o.bodyBytes, "body-bytes", 256, "size of the body")
	if err := flags.Read(args); err != nil {
		return o, err
	}
	return o, o.check()
}

func (o options) check() error {
	if err := program.CheckListen("listen", o.listen); err != nil {
		return err
	}
	if o.admin != "" {
		if err := program.CheckLoopback("admin", o.admin); err != nil {
			return err
		}
	}
	if o.bodyBytes < 0 || o.bodyBytes > maxBodyBytes {
		return program.Usagef("-body-bytes: out of range, %d, want 0 to %d", o.bodyBytes, maxBodyBytes)
	}
	given := map[string]string{"jwks": o.jwks, "issuer": o.issuer, "audience": o.audience}
	switch o.auth {
	case "jwt":
		if err := program.Required(given, "jwks", "issuer", "audience"); err != nil {
			return err
		}
		if u, err := url.Parse(o.jwks); err != nil || u.Host == "" || u.Scheme != "http" {
			return program.Usagef("-jwks: not an http URL, %q", o.jwks)
		}
		if o.keyDeadline <= 0 {
			return program.Usagef("-jwks-deadline: not positive, %s", o.keyDeadline)
		}
	case "none", "identity", "peer":
		for _, name := range []string{"jwks", "issuer", "audience"} {
			if given[name] != "" {
				return program.Usagef("-%s: only used with -auth jwt, not with -auth %s", name, o.auth)
			}
		}
	default:
		return program.Usagef("-auth: unknown, %q, want none, jwt, identity or peer", o.auth)
	}
	return nil
}

func guardOf(ctx context.Context, o options) (echo.Guard, error) {
	switch o.auth {
	case "jwt":
		ctx, cancel := context.WithTimeout(ctx, o.keyDeadline)
		defer cancel()
		keys, err := auth.FetchKeys(ctx, o.jwks, keyAttempts)
		if err != nil {
			return nil, err
		}
		return auth.NewVerifier(keys, o.issuer, o.audience).RequireToken, nil
	case "identity":
		return auth.TrustHeaders, nil
	case "peer":
		return auth.TrustPeer, nil
	default:
		return nil, nil
	}
}
