package load

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

func testOptions(t *testing.T, mode string) Options {
	return Options{
		Client: ClientOptions{
			Mode: mode, Connections: 4, MaxConnections: 4, Timeout: 5 * time.Second,
		},
		Workers: 16, MaxWorkers: 64, Output: filepath.Join(t.TempDir(), "out.gob"),
	}
}

func readRecords(t *testing.T, path string) map[uint64]vegeta.Result {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decode := vegeta.NewDecoder(file)
	records := map[uint64]vegeta.Result{}
	for {
		var result vegeta.Result
		if err := decode(&result); errors.Is(err, io.EOF) {
			return records
		} else if err != nil {
			t.Fatal(err)
		}
		records[result.Seq] = result
	}
}

func startServer(t *testing.T, handler http.HandlerFunc) (url string, connections *atomic.Int64) {
	server := httptest.NewUnstartedServer(handler)
	connections = new(atomic.Int64)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, connections
}

// The known answer of coordinated omission: with one worker a stall of 300 ms holds back the 30
// requests planned for that time. Vegeta's own latency shows it on one request; the plan on all.
func TestAStallIsSeenOnEveryRequestThatThePlanHadForIt(t *testing.T) {
	const stall, at = 300 * time.Millisecond, 10
	var count atomic.Int64
	url, _ := startServer(t, func(http.ResponseWriter, *http.Request) {
		if count.Add(1) == at {
			time.Sleep(stall)
		}
	})
	plan := mustPlan(t, Uniform, 100, time.Second, 0)
	options := testOptions(t, HTTP1)
	options.Workers, options.MaxWorkers = 1, 1
	targets := []vegeta.Target{{Method: http.MethodGet, URL: url}}
	summary, err := Attack(t.Context(), &plan, targets, options)
	if err != nil || summary.Sent != plan.Planned || summary.Failed != 0 {
		t.Fatalf("%+v, %v", summary, err)
	}
	slow, late := 0, 0
	for seq, r := range readRecords(t, options.Output) {
		lag := time.Duration(r.Timestamp.UnixNano()-summary.StartNs) - plan.Offset(seq)
		if lag < -10*time.Microsecond {
			t.Errorf("request %d left %s before it was due", seq, -lag)
		}
		if r.Latency >= stall/2 {
			slow++
		}
		if lag+r.Latency >= stall/2 {
			late++
		}
	}
	// Due in the first half of the stall: 15. A slow machine adds to both, but not so much to one.
	if slow < 1 || slow > 5 || late < 15 {
		t.Fatalf("slow by vegeta's latency %d, by the plan %d; want 1 and at least 15", slow, late)
	}
}

func TestHTTP2UsesAsManyConnectionsAsAskedFor(t *testing.T) {
	url, connections := startServer(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("asked by %s", r.Proto)
		}
		time.Sleep(20 * time.Millisecond) // so that many requests are in flight
	})
	plan := mustPlan(t, Poisson, 1000, 300*time.Millisecond, 1)
	targets := []vegeta.Target{{Method: http.MethodGet, URL: url}}
	summary, err := Attack(t.Context(), &plan, targets, testOptions(t, H2C))
	if err != nil || summary.Sent != plan.Planned || summary.Failed != 0 {
		t.Fatalf("%+v, %v", summary, err)
	}
	if got := connections.Load(); got != 4 {
		t.Fatalf("%d connections, want 4", got)
	}
}

func TestAnInterruptedAttackLeavesWholeRecordsOfWhatWasSent(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var count atomic.Int64
	url, _ := startServer(t, func(http.ResponseWriter, *http.Request) {
		if count.Add(1) == 20 {
			cancel()
		}
	})
	plan := mustPlan(t, Uniform, 100, time.Hour, 0)
	options := testOptions(t, HTTP1)
	targets := []vegeta.Target{{Method: http.MethodGet, URL: url}}
	summary, err := Attack(ctx, &plan, targets, options)
	if err != nil || !summary.Interrupted || summary.Sent < 20 || summary.Sent > 1000 {
		t.Fatalf("%+v, %v", summary, err)
	}
	if records := readRecords(t, options.Output); uint64(len(records)) != summary.Sent {
		t.Fatalf("%d records of %d requests", len(records), summary.Sent)
	}
}

func TestRefusedConnectionsAreRecordsWithAnError(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	url := server.URL
	server.Close()
	plan := mustPlan(t, Uniform, 100, 100*time.Millisecond, 0)
	options := testOptions(t, HTTP1)
	targets := []vegeta.Target{{Method: http.MethodGet, URL: url}}
	summary, err := Attack(t.Context(), &plan, targets, options)
	if err != nil || summary.Failed != plan.Planned {
		t.Fatalf("%+v, %v", summary, err)
	}
	for seq, r := range readRecords(t, options.Output) {
		if r.Code != 0 || r.Error == "" {
			t.Errorf("request %d: code %d, error %q", seq, r.Code, r.Error)
		}
	}
}
