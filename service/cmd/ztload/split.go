package main

import (
	"encoding/json"
	"os"
	"time"

	"ztbench/service/internal/load"
	"ztbench/service/internal/program"
)

func split(args []string) error {
	var in, out, planFile, arrival string
	var rate int
	var duration, warmup time.Duration
	var seed uint64
	var prewarm prewarmOptions
	flags := program.NewFlags("ztload split")
	flags.StringVar(&in, "in", "", "`file` of vegeta gob records of one attack")
	flags.StringVar(&out, "out", "",
		"`directory` for requests.csv.gz, warmup.csv.gz and load-plan.json")
	flags.StringVar(&planFile, "plan", "", "plan document of the attack, `file`; none for the CLI")
	flags.StringVar(&arrival, "arrival", load.Uniform, "arrival of the attack, uniform or poisson")
	flags.IntVar(&rate, "rate", 0, "rate of the attack")
	flags.DurationVar(&duration, "duration", 0, "length of the attack, warm-up included")
	prewarm.addTo(flags)
	flags.Uint64Var(&seed, "seed", 1, "seed of the attack")
	flags.DurationVar(&warmup, "warmup", 0, "what is due so long after the pre-warming does not count")
	if err := flags.Read(args); err != nil {
		return err
	}
	if err := program.Required(map[string]string{"in": in, "out": out}, "in", "out"); err != nil {
		return err
	}
	if arrival != load.Uniform && arrival != load.Poisson {
		return program.Usagef("-arrival: unknown, %q, want uniform or poisson", arrival)
	}
	if err := checkRanges(amount{"rate", int64(rate), 1, maxRate}); err != nil {
		return err
	}
	if err := prewarm.check(); err != nil {
		return err
	}
	if warmup < 0 || warmup >= duration {
		return program.Usagef("-warmup: out of range, %s, want 0s to less than -duration %s",
			warmup, duration)
	}
	plan, err := prewarm.newPlan(arrival, rate, duration, seed)
	if err != nil {
		return err
	}
	if planFile == "" {
		if arrival != load.Uniform {
			return program.Usagef("-arrival: %s, but vegeta's command line knows uniform only", arrival)
		}
		plan.ForCLI(duration)
	}
	summary, err := load.Split(in, &plan, warmup, planFile, out)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(summary)
}
