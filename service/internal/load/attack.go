package load

import (
	"bufio"
	"context"
	"fmt"
	"os"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// bufferBytes is small on purpose: writing much at once would hold up the pacer on a single CPU.
const bufferBytes = 64 << 10

// Options are those of one attack.
type Options struct {
	Client              ClientOptions
	Workers, MaxWorkers uint64
	// MaxBody is how many bytes of a body are kept while it is read; the rest is read and dropped.
	MaxBody int64
	// Output is the file for vegeta's gob records.
	Output string
}

// Summary is what an attack came to.
type Summary struct {
	Sent, Failed uint64
	StartNs      int64
	Interrupted  bool
}

// Attack sends the plan's requests to the targets in turn and writes one gob record for each, in
// order of completion, without headers and body. When ctx ends it sends no more, waits for requests
// in flight (at most the client's time-out), and leaves a whole file.
func Attack(ctx context.Context, plan *Plan, targets []vegeta.Target, o Options) (Summary, error) {
	client, err := newClient(o.Client)
	if err != nil {
		return Summary{}, err
	}
	defer client.CloseIdleConnections()
	file, err := os.Create(o.Output)
	if err != nil {
		return Summary{}, fmt.Errorf("output: %w", err)
	}
	defer file.Close()
	timer, err := newTimer()
	if err != nil {
		return Summary{}, err
	}
	defer timer.close()
	pacer := newPacer(plan, timer)
	attacker := vegeta.NewAttacker(vegeta.Client(client), vegeta.Workers(o.Workers),
		vegeta.MaxWorkers(o.MaxWorkers), vegeta.MaxBody(o.MaxBody))
	halt := func() {
		pacer.stop()
		attacker.Stop()
	}
	defer context.AfterFunc(ctx, halt)()

	results := attacker.Attack(vegeta.NewStaticTargeter(targets...), pacer, 0, "")
	summary, err := record(results, file, halt)
	summary.StartNs = pacer.startNs()
	summary.Interrupted = ctx.Err() != nil
	return summary, err
}

// record drains results to the end even if it cannot write them, since the workers wait for it.
func record(results <-chan *vegeta.Result, file *os.File, halt func()) (Summary, error) {
	var summary Summary
	var failure error
	out := bufio.NewWriterSize(file, bufferBytes)
	encode := vegeta.NewEncoder(out)
	for result := range results {
		summary.Sent++
		if result.Error != "" {
			summary.Failed++
		}
		// Nobody reads them, and encoding them is work on the generator's CPU during measurement.
		result.Headers, result.Body = nil, nil
		if failure == nil {
			if failure = encode(result); failure != nil {
				halt()
			}
		}
	}
	if failure == nil {
		failure = out.Flush()
	}
	if failure != nil {
		return summary, fmt.Errorf("output: %w", failure)
	}
	return summary, nil
}
