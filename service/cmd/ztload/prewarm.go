package main

import (
	"time"

	"ztbench/service/internal/load"
	"ztbench/service/internal/program"
)

// prewarmOptions say how an attack begins: at a low rate, so that connections open one at a time.
type prewarmOptions struct {
	rate   int
	length time.Duration
}

func (o *prewarmOptions) addTo(flags *program.Flags) {
	flags.IntVar(&o.rate, "prewarm-rate", 0, "requests per second of the pre-warming")
	flags.DurationVar(&o.length, "prewarm", 0, "length of the pre-warming before the plan; 0: none")
}

func (o *prewarmOptions) check() error {
	if o.length < 0 || (o.length > 0) != (o.rate > 0) {
		return program.Usagef("-prewarm, -prewarm-rate: %s and %d do not go together, want both or none",
			o.length, o.rate)
	}
	return checkRanges(amount{"prewarm-rate", int64(o.rate), 0, maxRate})
}

// newPlan plans an attack with its pre-warming.
func (o *prewarmOptions) newPlan(
	arrival string, rate int, duration time.Duration, seed uint64,
) (load.Plan, error) {
	plan, err := load.NewPlan(arrival, rate, duration, seed)
	if err == nil && o.length > 0 {
		err = plan.Prewarm(o.rate, o.length)
	}
	return plan, err
}
