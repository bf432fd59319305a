package probe

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The shape of contracts/deployment.ts, all keys given.
const document = `{
  "schema": "ztbench/probe-request/1", "deadlineSeconds": 10, "until": "once",
  "probes": [{
    "id": "no-token", "kind": "negative", "shows": "a request without token is refused",
    "host": "client", "url": "http://127.0.0.1:1/", "http": "1.1", "headers": {"x-a": "b"},
    "tokenFile": "/none", "timeoutSeconds": 2,
    "expect": {"outcome": "status", "status": 200, "header": {"name": "x-user-id", "matches": "^u"}}
  }]
}`

func TestTheContractsDocumentIsRead(t *testing.T) {
	request, err := Read(strings.NewReader(document), "test")
	if err != nil {
		t.Fatal(err)
	}
	if p := request.Probes[0]; p.ID != "no-token" || p.Expect.Header.pattern == nil {
		t.Fatalf("%+v", p)
	}
}

func TestABadDocumentIsRefusedNamingTheKey(t *testing.T) {
	for change, want := range map[string]string{
		`"until": "once"|"until": "never"`:           "until",
		`"deadlineSeconds": 10|"deadlineSeconds": 0`: "Seconds",
		`"http": "1.1"|"http": "3"`:                  "probes.0: http",
		`http://127|ftp://127`:                       "probes.0: url",
		`"status": 200|"status": 20`:                 "probes.0: expect.status",
		`"matches": "^u"|"matches": "("`:             "matches",
		`"matches": "^u"|"match": "^u"`:              "match",
		`"outcome": "status"|"outcome": "refused"`:   "expect",
		`request/1|request/2`:                        "schema",
		`}]|}],`:                                     "byte",
	} {
		from, to, _ := strings.Cut(change, "|")
		_, err := Read(strings.NewReader(strings.Replace(document, from, to, 1)), "test")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want it to name %s", change, err, want)
		}
	}
}

func once(probes ...Probe) []Result {
	for i := range probes {
		probes[i].ID = "p"
		if probes[i].HTTP == "" {
			probes[i].HTTP = "1.1"
		}
		if probes[i].TimeoutSeconds == 0 {
			probes[i].TimeoutSeconds = 5
		}
	}
	request := Request{DeadlineSeconds: 20, Until: Once, Probes: probes}
	return Run(context.Background(), &request).Results
}

func TestAStatusAndAHeaderAreCompared(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-User-Id", r.Header.Get("X-Given"))
		if r.Header.Get("Authorization") != "Bearer token-1" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("token-1\ntoken-2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	given := map[string]string{"x-given": "user-1"}
	value := func(v string) Expectation {
		return Expectation{Status, 200, &HeaderExpectation{Name: "x-user-id", Value: &v}}
	}
	results := once(
		Probe{URL: server.URL, Expect: Expectation{Outcome: Status, Status: 401}},
		Probe{URL: server.URL, Expect: Expectation{Outcome: Status, Status: 200}},
		Probe{URL: server.URL, Headers: given, TokenFile: tokens, Expect: value("user-1")},
		Probe{URL: server.URL, Headers: given, TokenFile: tokens, Expect: value("user-2")},
		Probe{URL: server.URL, TokenFile: tokens + ".none", Expect: value("user-1")},
	)
	for i, want := range []bool{true, false, true, false, false} {
		if results[i].Passed != want {
			t.Errorf("probe %d: want passed %v, got %+v", i, want, results[i])
		}
	}
	printed, err := json.Marshal(results)
	if err != nil || strings.Contains(string(printed), "token-1") {
		t.Errorf("results hold the token, or %v", err)
	}
	if seen := results[3].Observed.Header; seen == nil || *seen != "user-1" {
		t.Errorf("header seen %v, want user-1", seen)
	}
}

func TestEachProbeHasItsOwnConnectionInItsOwnVersion(t *testing.T) {
	var connections, second atomic.Int64
	count := func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 {
			second.Add(1)
		}
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(count))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	ok := Expectation{Outcome: Status, Status: 200}
	results := once(
		Probe{URL: server.URL, Expect: ok}, Probe{URL: server.URL, HTTP: "2", Expect: ok},
		Probe{URL: server.URL, HTTP: "2", Expect: ok},
	)
	if !AllPassed(results) || connections.Load() != 3 || second.Load() != 2 {
		t.Fatalf("%+v, %d connections, %d over HTTP/2; want 3 and 2",
			results, connections.Load(), second.Load())
	}
}

func TestAClosedPortIsRefused(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	url := server.URL
	server.Close()
	results := once(
		Probe{URL: url, Expect: Expectation{Outcome: Refused}},
		Probe{URL: url, Expect: Expectation{Outcome: NoResponse}},
		Probe{URL: url, Expect: Expectation{Outcome: Status, Status: 403}},
	)
	if !results[0].Passed || results[1].Passed || results[2].Passed {
		t.Fatalf("%+v", results)
	}
}

func TestDroppedPacketsAreNoResponseButAHangingServiceIsAnError(t *testing.T) {
	hang := make(chan bool)
	wait := func(http.ResponseWriter, *http.Request) { <-hang }
	hanging := httptest.NewServer(http.HandlerFunc(wait))
	defer hanging.Close()
	defer close(hang)
	expect := Expectation{Outcome: NoResponse}
	results := once(
		Probe{URL: "http://" + droppingAddress(t), TimeoutSeconds: 0.3, Expect: expect},
		Probe{URL: hanging.URL, TimeoutSeconds: 0.3, Expect: expect},
	)
	if !results[0].Passed || results[1].Passed || results[1].Observed.Outcome != Error {
		t.Fatalf("%+v", results)
	}
}

// droppingAddress is a listener whose accept queue is full: the kernel drops what comes next.
func droppingAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	raw, err := listener.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	// Listening again changes the queue's length.
	if err := raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), 0) }); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		conn, err := net.DialTimeout("tcp", listener.Addr().String(), 200*time.Millisecond)
		if err != nil {
			return listener.Addr().String()
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Fatal("the accept queue does not fill up")
	return ""
}

func TestUntilPositiveAsksAgainUntilAllHold(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	request := Request{DeadlineSeconds: 10, Until: UntilPositive, Probes: []Probe{{
		ID: "p", URL: server.URL, HTTP: "1.1", TimeoutSeconds: 1,
		Expect: Expectation{Outcome: Status, Status: 200},
	}}}
	results := Run(t.Context(), &request).Results
	if !results[0].Passed || asked.Load() != 4 {
		t.Fatalf("%+v after %d requests", results, asked.Load())
	}
}

func TestUntilPositiveEndsAtTheDeadlineWithWhatWasSeenLast(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	request := Request{DeadlineSeconds: 0.3, Until: UntilPositive, Probes: []Probe{{
		ID: "p", URL: server.URL, HTTP: "1.1", TimeoutSeconds: 1,
		Expect: Expectation{Outcome: Status, Status: 200},
	}}}
	began := time.Now()
	results := Run(t.Context(), &request).Results
	if results[0].Passed || results[0].Observed.Status != 404 || time.Since(began) > 5*time.Second {
		t.Fatalf("%+v after %s", results, time.Since(began))
	}
}
