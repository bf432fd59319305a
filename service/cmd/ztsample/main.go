// Command ztsample appends the counters of this host, raw, to a file: once at start, after each
// interval, and a last time when it is told to stop.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"ztbench/service/internal/program"
	"ztbench/service/internal/sample"
)

var (
	unitName      = regexp.MustCompile(`^[A-Za-z0-9:_.\\@-]+\.(service|scope|slice)$`)
	containerName = regexp.MustCompile(`^[A-Za-z0-9_.-]+\.container$`)
)

func main() { program.Run("ztsample", run) }

func run(ctx context.Context, args []string) error {
	options, path, once, err := readOptions(args)
	if err != nil {
		return err
	}
	if once {
		return sample.ScrapeOnce(options.Scrapes, path)
	}
	program.LogStart("interval="+options.Interval.String(), "out="+path,
		"units="+strings.Join(options.Units, ","))
	out, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	defer out.Close()
	cost, err := sample.Run(ctx, options, out, program.NotifyReady)
	log.Printf("done samples=%d cpuUsecPerSample=%d", cost.Samples, cost.PerSample())
	return err
}

func readOptions(args []string) (o sample.Options, out string, once bool, err error) {
	var units, scrapes, files program.Strings
	flags := program.NewFlags("ztsample")
	flags.DurationVar(&o.Interval, "interval", time.Second, "time between samples")
	flags.StringVar(&out, "out", "", "`file` to append to")
	flags.Var(&units, "unit", "systemd `unit` to sample, or NAME.container=/PATH; may be repeated")
	flags.StringVar(&o.GroupRoot, "group-root", "/sys/fs/cgroup",
		"`directory` of the hierarchies that have the groups of containers")
	flags.Var(&scrapes, "scrape", "`NAME=URL[@NAMESPACE]` to get at start and end; may be repeated")
	flags.DurationVar(&o.ScrapeEvery, "scrape-every", 0, "time between scrapes; 0: start and end")
	flags.Var(&files, "file", "`path` to read in every sample; may be repeated")
	flags.BoolVar(&once, "once", false, "do nothing but scrape, one time; that must succeed")
	if err := flags.Read(args); err != nil {
		return o, out, once, err
	}
	for _, text := range units {
		name, path, isContainer := strings.Cut(text, "=")
		if isContainer {
			o.Containers = append(o.Containers, sample.Container{Unit: name, Path: path})
		} else {
			o.Units = append(o.Units, name)
		}
	}
	o.Files = files
	for _, text := range scrapes {
		scrape, err := sample.ParseScrape(text)
		if err != nil {
			return o, out, once, err
		}
		o.Scrapes = append(o.Scrapes, scrape)
	}
	if once && (len(o.Scrapes) == 0 || len(units)+len(o.Files) > 0) {
		return o, out, once, program.Usagef("-once: goes with -scrape, and not with -unit or -file")
	}
	return o, out, once, check(o, out)
}

func check(o sample.Options, out string) error {
	if err := program.Required(map[string]string{"out": out}, "out"); err != nil {
		return err
	}
	if o.Interval < 10*time.Millisecond || o.Interval > time.Hour {
		return program.Usagef("-interval: out of range, %s, want 10ms to 1h", o.Interval)
	}
	if o.ScrapeEvery != 0 && o.ScrapeEvery < o.Interval {
		return program.Usagef("-scrape-every: %s, less than -interval %s", o.ScrapeEvery, o.Interval)
	}
	seen := map[string]bool{}
	for _, unit := range o.Units {
		if !unitName.MatchString(unit) || seen[unit] {
			return program.Usagef("-unit: not a unit, or given twice, %q, want NAME.service", unit)
		}
		seen[unit] = true
	}
	for i := range o.Containers {
		c := &o.Containers[i]
		if !containerName.MatchString(c.Unit) || seen[c.Unit] || !filepath.IsLocal(
			strings.TrimPrefix(c.Path, "/")) || !strings.HasPrefix(c.Path, "/") {
			return program.Usagef("-unit: not a container, or given twice, %q, want NAME.container=/PATH",
				c.Unit+"="+c.Path)
		}
		seen[c.Unit] = true
	}
	for _, file := range o.Files {
		if !strings.HasPrefix(file, "/") || strings.ContainsAny(file, "\n") {
			return program.Usagef("-file: not an absolute path, %q", file)
		}
	}
	return nil
}
