package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"ztbench/service/internal/load"
	"ztbench/service/internal/program"
)

const (
	maxRate        = 1_000_000
	maxConnections = 60_000
	maxWorkers     = 1_000_000
)

type attackOptions struct {
	load.Options
	targets, plan  string
	arrival        string
	rate           int
	duration       time.Duration
	prewarm        prewarmOptions
	seed           uint64
	cpus           int
	useHTTP2, useC bool
}

func attack(ctx context.Context, args []string) error {
	o, err := readAttackOptions(args)
	if err != nil {
		return err
	}
	targets, err := load.ReadTargets(o.targets)
	if err != nil {
		return err
	}
	if err := checkScheme(o.Client.Mode, targets); err != nil {
		return err
	}
	plan, err := o.prewarm.newPlan(o.arrival, o.rate, o.duration, o.seed)
	if err != nil {
		return err
	}
	tuneRuntime(o.cpus)
	program.LogStart("command=attack", "mode="+o.Client.Mode, "arrival="+o.arrival,
		"rate="+strconv.Itoa(o.rate), "duration="+o.duration.String(),
		"prewarm="+o.prewarm.length.String(), "planned="+strconv.FormatUint(plan.Planned, 10),
		"connections="+strconv.Itoa(o.Client.Connections))
	summary, err := load.Attack(ctx, &plan, targets, o.Options)
	err = errors.Join(err, plan.Write(o.plan, summary.StartNs))
	log.Printf("done planned=%d sent=%d failed=%d startNs=%d",
		plan.Planned, summary.Sent, summary.Failed, summary.StartNs)
	if err == nil && summary.Interrupted {
		return program.Interrupted
	}
	return err
}

// tuneRuntime lets garbage pile up to a bound: a collection on the generator's CPU delays requests.
func tuneRuntime(cpus int) {
	if cpus > 0 {
		runtime.GOMAXPROCS(cpus)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(1000)
	}
}

func readAttackOptions(args []string) (attackOptions, error) {
	var o attackOptions
	flags := program.NewFlags("ztload attack")
	flags.StringVar(&o.targets, "targets", "", "`file` of targets in vegeta's http format")
	flags.StringVar(&o.Output, "output", "", "`file` for vegeta's gob records")
	flags.StringVar(&o.plan, "plan", "", "`file` for the plan document, *.json")
	flags.IntVar(&o.rate, "rate", 0, "requests per second")
	flags.DurationVar(&o.duration, "duration", 0, "length of the plan, without pre-warming")
	o.prewarm.addTo(flags)
	flags.StringVar(&o.arrival, "arrival", load.Uniform, "uniform or poisson")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of poisson arrivals")
	flags.IntVar(&o.Client.Connections, "connections", 32,
		"connections that may idle; with HTTP/2: all there are")
	flags.IntVar(&o.Client.MaxConnections, "max-connections", 0,
		"connections that may be open; 0 means as many as -connections")
	flags.Uint64Var(&o.Workers, "workers", 64, "requests in flight that are provided for")
	flags.Uint64Var(&o.MaxWorkers, "max-workers", 4000,
		"requests in flight at most; then sending waits")
	flags.DurationVar(&o.Client.Timeout, "timeout", 5*time.Second, "time for one request")
	flags.BoolVar(&o.useHTTP2, "http2", false, "HTTP/2 over TLS")
	flags.BoolVar(&o.useC, "h2c", false, "cleartext HTTP/2 by prior knowledge")
	flags.StringVar(&o.Client.RootsFile, "root-certs", "", "`file` of PEM certificates to trust")
	flags.IntVar(&o.cpus, "cpus", 0, "GOMAXPROCS; 0 leaves it alone")
	flags.Int64Var(&o.MaxBody, "max-body", 0, "bytes of a body to keep while it is read; -1: all")
	if err := flags.Read(args); err != nil {
		return o, err
	}
	err := o.check()
	if o.Client.MaxConnections == 0 {
		o.Client.MaxConnections = o.Client.Connections
	}
	switch {
	case o.useHTTP2:
		o.Client.Mode = load.HTTP2
	case o.useC:
		o.Client.Mode = load.H2C
	default:
		o.Client.Mode = load.HTTP1
	}
	return o, err
}

func (o *attackOptions) check() error {
	err := program.Required(map[string]string{
		"targets": o.targets, "output": o.Output, "plan": o.plan,
	}, "targets", "output", "plan")
	if err != nil {
		return err
	}
	if o.arrival != load.Uniform && o.arrival != load.Poisson {
		return program.Usagef("-arrival: unknown, %q, want uniform or poisson", o.arrival)
	}
	if o.useHTTP2 && o.useC {
		return program.Usagef("-http2, -h2c: both given, want one at most")
	}
	most, connections := o.Client.MaxConnections, o.Client.Connections
	if most != 0 && (most < connections || (o.useHTTP2 || o.useC) && most != connections) {
		return program.Usagef("-max-connections: %d does not go with -connections %d, want at least "+
			"as many, and with HTTP/2 as many", most, connections)
	}
	if o.duration <= 0 || o.Client.Timeout <= 0 {
		return program.Usagef("-duration, -timeout: not positive, %s and %s",
			o.duration, o.Client.Timeout)
	}
	if err := o.prewarm.check(); err != nil {
		return err
	}
	if o.MaxBody < -1 {
		return program.Usagef("-max-body: out of range, %d, want -1 or more", o.MaxBody)
	}
	return checkRanges(
		amount{"rate", int64(o.rate), 1, maxRate},
		amount{"connections", int64(connections), 1, maxConnections},
		amount{"max-connections", int64(most), 0, maxConnections},
		amount{"workers", int64(o.Workers), 1, maxWorkers},
		amount{"max-workers", int64(o.MaxWorkers), int64(o.Workers), maxWorkers},
		amount{"cpus", int64(o.cpus), 0, 1024},
	)
}

type amount struct {
	name              string
	value, from, upTo int64
}

func checkRanges(amounts ...amount) error {
	for _, a := range amounts {
		if a.value < a.from || a.value > a.upTo {
			return program.Usagef("-%s: out of range, %d, want %d to %d", a.name, a.value, a.from, a.upTo)
		}
	}
	return nil
}

func checkScheme(mode string, targets []vegeta.Target) error {
	want := map[string]string{load.HTTP2: "https", load.H2C: "http"}[mode]
	for i := range targets {
		u, err := url.Parse(targets[i].URL)
		if err != nil {
			return program.BadDocumentf("target %d: not a URL: %w", i+1, err)
		}
		if want != "" && u.Scheme != want {
			return fmt.Errorf("target %d: %s needs %s, got %q", i+1, mode, want, u.Scheme)
		}
	}
	return nil
}
