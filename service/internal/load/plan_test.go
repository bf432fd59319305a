package load

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

func TestUniformRequestsAreDueAtWholeIntervals(t *testing.T) {
	plan := mustPlan(t, Uniform, 34_000, 10*time.Second, 0)
	offset := plan.Offset(100_000)
	if plan.Planned != 340_000 || plan.Interval != 29_411 || offset != 2_941_100_000 {
		t.Fatalf("planned %d, interval %d, offset %d", plan.Planned, plan.Interval, offset)
	}
}

func TestPoissonArrivalsKeepRateAndDurationAndVaryLikeAPoissonProcess(t *testing.T) {
	duration := 20 * time.Second
	plan := mustPlan(t, Poisson, 1000, duration, 7)
	if plan.Planned != 20_000 {
		t.Fatalf("planned %d, want 20000", plan.Planned)
	}
	var sum, squares float64
	last := time.Duration(0)
	for seq := range plan.Planned {
		gap := plan.Offset(seq) - last
		last += gap
		if gap < 0 || last >= duration {
			t.Fatalf("request %d due at %s, after a gap of %s", seq, last, gap)
		}
		sum += float64(gap)
		squares += float64(gap) * float64(gap)
	}
	mean := sum / float64(plan.Planned)
	variation := math.Sqrt(squares/float64(plan.Planned)-mean*mean) / mean
	if math.Abs(mean-1e6) > 1e3 || math.Abs(variation-1) > 0.03 {
		t.Fatalf("mean gap %.0f ns, variation %.3f; want 1000000 and 1", mean, variation)
	}
}

func TestTheSameSeedGivesTheSameArrivals(t *testing.T) {
	first := mustPlan(t, Poisson, 500, time.Second, 3)
	second := mustPlan(t, Poisson, 500, time.Second, 3)
	if !slices.Equal(first.offsets, second.offsets) {
		t.Error("the same seed gave other arrivals")
	}
	other := mustPlan(t, Poisson, 500, time.Second, 4)
	if slices.Equal(first.offsets, other.offsets) {
		t.Error("another seed gave the same arrivals")
	}
}

func TestPrewarmingComesFirstAndPutsOffAllElse(t *testing.T) {
	for _, arrival := range []string{Uniform, Poisson} {
		bare := mustPlan(t, arrival, 1000, 3*time.Second, 7)
		plan := mustPlan(t, arrival, 1000, 3*time.Second, 7)
		if err := plan.Prewarm(50, 2*time.Second); err != nil {
			t.Fatal(err)
		}
		if plan.Planned != 3100 || plan.Offset(1) != 20*time.Millisecond ||
			plan.Offset(99) != 1980*time.Millisecond {
			t.Errorf("%s: %d requests, due %s, %s", arrival, plan.Planned, plan.Offset(1), plan.Offset(99))
		}
		for _, seq := range []uint64{0, 1, 2999} {
			if got, want := plan.Offset(100+seq), 2*time.Second+bare.Offset(seq); got != want {
				t.Errorf("%s: request %d due at %s, want %s", arrival, 100+seq, got, want)
			}
		}
	}
}

func TestPrewarmingWithoutARequestIsRefused(t *testing.T) {
	plan := mustPlan(t, Uniform, 10, time.Second, 0)
	if err := plan.Prewarm(1, time.Millisecond); err == nil {
		t.Fatal("accepted pre-warming of no requests")
	}
}

func TestAPlanWithoutRequestsIsRefused(t *testing.T) {
	if _, err := NewPlan(Uniform, 1, time.Millisecond, 0); err == nil {
		t.Fatal("accepted a plan of no requests")
	}
}

func TestThePlanDocumentSaysWhereItsOffsetsAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plan.json")
	plan := mustPlan(t, Poisson, 100, time.Second, 9)
	if err := plan.Write(path, 1_700_000_000_123_456_789); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got planDocument
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := planDocument{"ztbench/load-plan/1", "vegeta-paced", Poisson, 100, 10_000_000, 100,
		"1700000000123456789", 9, "plan.offsets.csv.gz", nil}
	if got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	lines := readGzipLines(t, filepath.Join(filepath.Dir(path), got.OffsetsFile))
	last := "99," + strconv.FormatInt(int64(plan.Offset(99)), 10)
	if len(lines) != 101 || lines[0] != "seq,offsetNs" || lines[100] != last {
		t.Fatalf("%d lines, first %q, last %q; want 101, last %q",
			len(lines), lines[0], lines[len(lines)-1], last)
	}
}

func readGzipLines(t *testing.T, path string) []string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if _, err := bufio.NewReader(unzipped).WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// Vegeta's own pacer is the known answer, on a clock that goes on by a nanosecond a request.
func TestPlanOfTheCommandLineCountsAsVegetaDoes(t *testing.T) {
	for _, rate := range []int{50, 1000, 3000, 18_000, 34_000, 42_000} {
		for _, duration := range []time.Duration{time.Second, 5 * time.Second, 7500 * time.Millisecond} {
			pacer := vegeta.ConstantPacer{Freq: rate, Per: time.Second}
			var sent uint64
			for elapsed := time.Duration(0); elapsed <= duration; elapsed++ {
				wait, _ := pacer.Pace(elapsed, sent)
				elapsed += max(wait, 0)
				sent++
			}
			plan, err := NewPlan(Uniform, rate, duration, 1)
			if err != nil {
				t.Fatal(err)
			}
			plan.ForCLI(duration)
			if plan.Planned != sent {
				t.Errorf("%d/s for %s: planned %d, vegeta sends %d", rate, duration, plan.Planned, sent)
			}
		}
	}
}
