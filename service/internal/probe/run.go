package probe

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	pollInterval = 50 * time.Millisecond
	atOnce       = 8
)

// Run asks all probes, side by side. With UntilPositive it asks all again until all hold in the
// same round or the deadline passes; the results are those of the last round. A token file that is
// not there yet is a result, not an error, since what writes it may still be starting.
func Run(ctx context.Context, request *Request) Results {
	ctx, cancel := context.WithTimeout(ctx, seconds(request.DeadlineSeconds))
	defer cancel()
	results := round(ctx, request.Probes)
	for request.Until == UntilPositive && !AllPassed(results) {
		select {
		case <-ctx.Done():
			return Results{resultsSchema, results}
		case <-time.After(pollInterval):
		}
		latest := round(ctx, request.Probes)
		if ctx.Err() != nil && !AllPassed(latest) {
			// Cut off by the deadline: the round before says more about what is wrong.
			break
		}
		results = latest
	}
	return Results{resultsSchema, results}
}

// AllPassed says whether every probe saw what it expected.
func AllPassed(results []Result) bool {
	for i := range results {
		if !results[i].Passed {
			return false
		}
	}
	return true
}

func round(ctx context.Context, probes []Probe) []Result {
	results := make([]Result, len(probes))
	var wait sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range probes {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			token, err := readToken(probes[i].TokenFile)
			if err != nil {
				seen := Observation{Outcome: Error, Error: err.Error()}
				results[i] = Result{ID: probes[i].ID, Observed: seen}
				return
			}
			results[i] = ask(ctx, &probes[i], token)
		})
	}
	wait.Wait()
	return results
}

// readToken returns the first line of the file, or nothing if there is no file to read.
func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	if !lines.Scan() || lines.Text() == "" {
		return "", fmt.Errorf("token: no token in the first line of %s", path)
	}
	return lines.Text(), nil
}
