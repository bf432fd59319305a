package load

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"ztbench/service/internal/program"
)

// writeAttack writes records of rate 1000 in order of completion, each sent when it was due.
func writeAttack(
	t *testing.T, plan *Plan, start time.Time, seqs ...uint64,
) (records, document string) {
	t.Helper()
	directory := t.TempDir()
	records, document = filepath.Join(directory, "in.gob"), filepath.Join(directory, "plan.json")
	var results []vegeta.Result
	for _, seq := range seqs {
		at := start.Add(plan.Offset(seq))
		results = append(results, vegeta.Result{Seq: seq, Timestamp: at, Latency: 100, Code: 200})
	}
	writeRecords(t, records, results...)
	if err := plan.Write(document, start.UnixNano()); err != nil {
		t.Fatal(err)
	}
	return records, document
}

func readRows(t *testing.T, path string) []string {
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
	rows, err := csv.NewReader(unzipped).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, len(rows)-1)
	for i, row := range rows[1:] {
		lines[i] = strings.Join(row, ",")
	}
	return lines
}

func readPlan(t *testing.T, directory string) (document planDocument) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(directory, loadPlanFile))
	if err == nil {
		err = json.Unmarshal(text, &document)
	}
	if err != nil {
		t.Fatal(err)
	}
	return document
}

var someStart = time.Unix(1_700_000_000, 0)

func TestPrewarmingIsDroppedWithTheWarmup(t *testing.T) {
	for _, arrival := range []string{Uniform, Poisson} {
		bare := mustPlan(t, arrival, 1000, 5*time.Millisecond, 1)
		plan := mustPlan(t, arrival, 1000, 5*time.Millisecond, 1)
		if err := plan.Prewarm(100, 30*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		records, document := writeAttack(t, &plan, someStart, 0, 1, 2, 3, 4, 5, 6, 7)
		out := t.TempDir()
		warmup := bare.Offset(2) // three slow requests and two fast ones go
		summary, err := Split(records, &plan, warmup, document, out)
		if err != nil {
			t.Fatal(err)
		}
		from := someStart.Add(30*time.Millisecond + bare.Offset(2)).UnixNano()
		if summary.Rows != 3 || summary.WarmupRows != 5 || summary.FromNs != from {
			t.Errorf("%s: %+v, want 3 rows after 5, from %d", arrival, summary, from)
		}
		if got := readPlan(t, out); got.Planned != 3 || got.Prewarm != nil {
			t.Errorf("%s: plan %+v", arrival, got)
		}
	}
}

func TestMeasuredRequestsCountFromZeroAndTheirPlanStartsWithThem(t *testing.T) {
	plan, err := NewPlan(Uniform, 1000, 5*time.Millisecond, 1)
	if err != nil {
		t.Fatal(err)
	}
	records, document := writeAttack(t, &plan, someStart, 0, 2, 1, 4, 3)
	out := t.TempDir()
	// 1.5 ms is between two requests: what is due later is measured.
	summary, err := Split(records, &plan, 1500*time.Microsecond, document, out)
	if err != nil {
		t.Fatal(err)
	}
	want := SplitSummary{3, 2, someStart.UnixNano() + 2_000_000, someStart.UnixNano() + 4_000_100}
	if summary != want {
		t.Errorf("summary %+v, want %+v", summary, want)
	}
	warm := readRows(t, filepath.Join(out, warmupFile))
	if strings.Join(warm, " ") != "0,1700000000000000000,100,200, 1,1700000000001000000,100,200," {
		t.Errorf("warm-up rows %q", warm)
	}
	rows := readRows(t, filepath.Join(out, requestsFile))
	if strings.Join(rows, " ") != "0,1700000000002000000,100,200, 2,1700000000004000000,100,200, "+
		"1,1700000000003000000,100,200," {
		t.Errorf("measured rows %q", rows)
	}
	got := readPlan(t, out)
	if got.Planned != 3 || got.StartNs != "1700000000002000000" || got.Driver != pacedDriver {
		t.Errorf("plan %+v", got)
	}
}

func TestRequestsThatArriveAtRandomKeepTheirDueTimes(t *testing.T) {
	plan, err := NewPlan(Poisson, 1000, 50*time.Millisecond, 3)
	if err != nil {
		t.Fatal(err)
	}
	var seqs []uint64
	for seq := range plan.Planned {
		seqs = append(seqs, seq)
	}
	records, document := writeAttack(t, &plan, someStart, seqs...)
	out := t.TempDir()
	summary, err := Split(records, &plan, 20*time.Millisecond, document, out)
	if err != nil {
		t.Fatal(err)
	}
	first := plan.Planned - summary.Rows
	offsets := readRows(t, filepath.Join(out, "load-plan.offsets.csv.gz"))
	if uint64(len(offsets)) != summary.Rows || offsets[0] != "0,0" {
		t.Fatalf("%d offsets, first %q, for %d rows", len(offsets), offsets[0], summary.Rows)
	}
	if plan.Offset(first) < 20*time.Millisecond || plan.Offset(first-1) >= 20*time.Millisecond {
		t.Errorf("cut at request %d, due %s", first, plan.Offset(first))
	}
	if want := someStart.Add(plan.Offset(first)).UnixNano(); summary.FromNs != want {
		t.Errorf("measured from %d, want %d", summary.FromNs, want)
	}
}

func TestTheCommandLineOfVegetaTellsNoStartSoTheFirstRowIsTaken(t *testing.T) {
	plan, err := NewPlan(Uniform, 1000, 4*time.Millisecond, 1)
	if err != nil {
		t.Fatal(err)
	}
	records, _ := writeAttack(t, &plan, someStart, 0, 1, 3, 2)
	out := t.TempDir()
	summary, err := Split(records, &plan, 2*time.Millisecond, "", out)
	if err != nil || summary.FromNs != someStart.UnixNano()+2_000_000 {
		t.Fatalf("%+v, %v", summary, err)
	}
	if got := readPlan(t, out); got.StartNs != "" || got.Driver != cliDriver || got.Planned != 2 {
		t.Errorf("plan %+v", got)
	}
}

func TestAnAttackThatEndedInItsWarmupIsRefused(t *testing.T) {
	plan, err := NewPlan(Uniform, 1000, 4*time.Millisecond, 1)
	if err != nil {
		t.Fatal(err)
	}
	records, document := writeAttack(t, &plan, someStart, 0, 1)
	_, err = Split(records, &plan, 2*time.Millisecond, document, t.TempDir())
	var exit *program.Exit
	if !errors.As(err, &exit) || exit.Code != program.ExitBadDocument {
		t.Errorf("%v", err)
	}
}
