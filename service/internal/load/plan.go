// Package load plans requests, sends them on time with vegeta's library, and turns its results into
// rows.
//
// # Time
//
// Request i is due at startNs + offset(i), where startNs is the wall clock reading of the moment
// vegeta calls the beginning of the attack. Vegeta stamps each result with that same beginning plus
// monotonic time passed, so timestampNs - (startNs + offset(seq)) is the lag of the generator: how
// late the request left, free of clock steps. Vegeta counts latency from the stamp, so lag plus
// latency is the response time seen by a user who meant to send on time. Vegeta keeps the beginning
// to itself; see pacer for how startNs is found and how exact it is.
package load

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ztbench/service/internal/program"
)

// Kinds of arrival.
const (
	Uniform = "uniform"
	Poisson = "poisson"
)

// Drivers that a plan document names.
const (
	pacedDriver = "vegeta-paced"
	cliDriver   = "vegeta"
)

// maxPlanned bounds memory: a planned Poisson request costs 8 bytes.
const maxPlanned = 100_000_000

// Plan says when each request is due.
type Plan struct {
	Arrival  string
	RateQPS  int
	Interval time.Duration
	Planned  uint64
	Seed     uint64
	// offsets is nil for uniform arrivals. They count from the end of the pre-warming.
	offsets []time.Duration
	slow    slowPart
}

// slowPart comes before all else, a few requests a second at even distances: connections, here and
// behind the target, are opened one at a time instead of all at once.
type slowPart struct {
	requests         uint64
	interval, length time.Duration
}

// NewPlan plans rate x duration requests. Uniform ones are due at whole multiples of the interval,
// floor(1e9 / rate) ns. Poisson ones are a Poisson process given its count: the same number in the
// same duration as uniform, so that treatments differ in arrival only.
func NewPlan(arrival string, rate int, duration time.Duration, seed uint64) (Plan, error) {
	planned := uint64(math.Round(float64(rate) * duration.Seconds()))
	plan := Plan{
		Arrival: arrival, RateQPS: rate, Interval: time.Second / time.Duration(rate),
		Planned: planned, Seed: seed,
	}
	if planned < 1 || planned > maxPlanned {
		return plan, program.Usagef("plan: out of range, %d requests, want 1 to %d",
			planned, maxPlanned)
	}
	if arrival == Poisson {
		plan.offsets = poissonOffsets(planned, duration, seed)
	}
	return plan, nil
}

// ForCLI makes it what vegeta's command line does with the same rate and duration: it sends one
// request for each interval that begins before the duration has passed. Since the interval is cut to
// whole nanoseconds, these are some more than rate x duration where the rate does not divide 1e9.
func (p *Plan) ForCLI(duration time.Duration) {
	p.Planned = uint64((duration + p.Interval - 1) / p.Interval)
}

// Prewarm puts rate x length requests at even distances before the others, which are all due length
// later. It is part of the same attack, so that the connections it opens are kept.
func (p *Plan) Prewarm(rate int, length time.Duration) error {
	requests := uint64(math.Round(float64(rate) * length.Seconds()))
	if requests < 1 || requests+p.Planned > maxPlanned {
		return program.Usagef("pre-warming: out of range, %d requests, want 1 to %d",
			requests, maxPlanned-p.Planned)
	}
	p.slow = slowPart{requests, time.Second / time.Duration(rate), length}
	p.Planned += requests
	return nil
}

// poissonOffsets uses that n+1 exponential gaps, scaled to fill the duration, have the joint
// distribution of a Poisson process with n arrivals in it.
func poissonOffsets(n uint64, duration time.Duration, seed uint64) []time.Duration {
	random := rand.New(rand.NewPCG(seed, 0))
	sums := make([]float64, n+1)
	sum := 0.0
	for i := range sums {
		sum += random.ExpFloat64()
		sums[i] = sum
	}
	offsets := make([]time.Duration, n)
	for i := range offsets {
		offsets[i] = time.Duration(sums[i] / sum * float64(duration))
	}
	return offsets
}

// Offset returns when request seq is due, counted from the start.
func (p *Plan) Offset(seq uint64) time.Duration {
	if seq < p.slow.requests {
		return time.Duration(seq) * p.slow.interval
	}
	seq -= p.slow.requests
	if p.offsets != nil {
		return p.slow.length + p.offsets[seq]
	}
	return p.slow.length + time.Duration(seq)*p.Interval
}

type planDocument struct {
	Schema      string `json:"schema"`
	Driver      string `json:"driver"`
	Arrival     string `json:"arrival"`
	RateQPS     int    `json:"rateQps"`
	IntervalNs  int64  `json:"intervalNs"`
	Planned     uint64 `json:"planned"`
	StartNs     string `json:"startNs,omitempty"`
	Seed        uint64 `json:"seed"`
	OffsetsFile string `json:"offsetsFile,omitempty"`
	// Prewarm counts among Planned; a plan of measured requests has none.
	Prewarm *prewarmDocument `json:"prewarm,omitempty"`
}

type prewarmDocument struct {
	Requests   uint64 `json:"requests"`
	IntervalNs int64  `json:"intervalNs"`
	LengthNs   int64  `json:"lengthNs"`
}

// Write writes the plan document, and beside it the offsets of arrivals that are not uniform
// (gzipped CSV: seq,offsetNs). A startNs of 0 means that the attack never began.
func (p *Plan) Write(path string, startNs int64) error {
	return p.writeAs(pacedDriver, path, startNs)
}

func (p *Plan) writeAs(driver, path string, startNs int64) error {
	document := planDocument{
		Schema: "ztbench/load-plan/1", Driver: driver, Arrival: p.Arrival, RateQPS: p.RateQPS,
		IntervalNs: int64(p.Interval), Planned: p.Planned, Seed: p.Seed,
	}
	if startNs != 0 {
		document.StartNs = strconv.FormatInt(startNs, 10)
	}
	if slow := p.slow; slow.requests > 0 {
		document.Prewarm = &prewarmDocument{slow.requests, int64(slow.interval), int64(slow.length)}
	}
	if p.offsets != nil {
		offsets := strings.TrimSuffix(path, ".json") + ".offsets.csv.gz"
		if err := p.writeOffsets(offsets); err != nil {
			return err
		}
		document.OffsetsFile = filepath.Base(offsets)
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	return program.WriteFile(path, append(text, '\n'), 0o644)
}

func (p *Plan) writeOffsets(path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("offsets: %w", err)
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	compressed := gzip.NewWriter(file)
	out := bufio.NewWriter(compressed)
	out.WriteString("seq,offsetNs\n")
	var line []byte
	for seq := range p.Planned {
		line = strconv.AppendUint(line[:0], seq, 10)
		line = append(line, ',')
		line = strconv.AppendInt(line, int64(p.Offset(seq)), 10)
		out.Write(append(line, '\n')) // bufio keeps the first error for Flush
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("offsets: %w", err)
	}
	if err := compressed.Close(); err != nil {
		return fmt.Errorf("offsets: %w", err)
	}
	return nil
}
