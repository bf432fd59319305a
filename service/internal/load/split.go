package load

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"ztbench/service/internal/program"
)

// Names of the files that Split writes.
const (
	requestsFile = "requests.csv.gz"
	warmupFile   = "warmup.csv.gz"
	loadPlanFile = "load-plan.json"
)

// SplitSummary is what Split found. The instants are wall clock readings of the host that sent.
type SplitSummary struct {
	Rows       uint64 `json:"rows"`
	WarmupRows uint64 `json:"warmupRows"`
	// FromNs is when measuring began: when its first request was due if the driver told its start,
	// else when the first one left.
	FromNs int64 `json:"fromNs,string"`
	// ToNs is when the last answer was there, or given up.
	ToNs int64 `json:"toNs,string"`
}

// Split cuts the records of one attack in two at the first request that plan has due at or after
// warmup, which counts from the end of the pre-warming. Measuring begins there: its rows count from 0 again, and the plan document written beside
// them has its start moved to that request, so that together they read like an attack of their own,
// on connections that are warm. The rows before keep their numbers. planFile is the document of the
// attack; without it the driver was the vegeta command line, which does not tell when it began.
func Split(
	in string, plan *Plan, warmup time.Duration, planFile, directory string,
) (SplitSummary, error) {
	var summary SplitSummary
	startNs, err := readStart(planFile)
	if err != nil {
		return summary, err
	}
	measured, first, err := plan.after(plan.slow.length + warmup)
	if err != nil {
		return summary, err
	}
	if startNs != 0 {
		startNs += int64(plan.Offset(first))
		summary.FromNs = startNs
	}
	if err := splitRows(in, first, directory, &summary); err != nil {
		return summary, err
	}
	if summary.Rows == 0 {
		return summary, program.BadDocumentf("%s: no record of a measured request, %d of the warm-up",
			in, summary.WarmupRows)
	}
	driver := pacedDriver
	if planFile == "" {
		driver = cliDriver
	}
	return summary, measured.writeAs(driver, filepath.Join(directory, loadPlanFile), startNs)
}

// after returns the part of the plan that is due at or after the given offset, which must not lie
// within the pre-warming, counted from its own first request, and the number of that request in the whole plan.
func (p *Plan) after(offset time.Duration) (rest Plan, first uint64, err error) {
	for first < p.Planned && p.Offset(first) < offset {
		first++
	}
	if first == p.Planned {
		return rest, first, program.Usagef("-warmup: nothing is due after %s", offset)
	}
	rest = *p
	rest.Planned -= first
	rest.slow = slowPart{}
	if p.offsets != nil {
		rest.offsets = make([]time.Duration, rest.Planned)
		for i := range rest.offsets {
			rest.offsets[i] = p.Offset(first+uint64(i)) - p.Offset(first)
		}
	}
	return rest, first, nil
}

func splitRows(in string, first uint64, directory string, summary *SplitSummary) error {
	warm, err := createRows(filepath.Join(directory, warmupFile))
	if err != nil {
		return err
	}
	defer warm.abandon()
	rows, err := createRows(filepath.Join(directory, requestsFile))
	if err != nil {
		return err
	}
	defer rows.abandon()
	told := summary.FromNs != 0
	_, err = decodeFile(in, func(result *vegeta.Result) error {
		if result.Seq < first {
			summary.WarmupRows++
			return warm.write(result)
		}
		sent := result.Timestamp.UnixNano()
		if !told && (summary.Rows == 0 || sent < summary.FromNs) {
			summary.FromNs = sent
		}
		if done := sent + int64(result.Latency); done > summary.ToNs {
			summary.ToNs = done
		}
		summary.Rows++
		result.Seq -= first
		return rows.write(result)
	})
	if err != nil {
		return err
	}
	if err := warm.finish(); err != nil {
		return err
	}
	return rows.finish()
}

// readStart returns startNs of a plan document, or 0 if there is no document.
func readStart(planFile string) (int64, error) {
	if planFile == "" {
		return 0, nil
	}
	text, err := os.ReadFile(planFile)
	if err != nil {
		return 0, fmt.Errorf("plan: %w", err)
	}
	var document planDocument
	if err := json.Unmarshal(text, &document); err != nil {
		return 0, program.BadDocumentf("%s: not a plan document: %w", planFile, err)
	}
	start, err := strconv.ParseInt(document.StartNs, 10, 64)
	if err != nil || start <= 0 {
		return 0, program.BadDocumentf("%s: startNs: not the start of an attack, %q",
			planFile, document.StartNs)
	}
	return start, nil
}
