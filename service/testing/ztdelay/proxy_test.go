package main

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"ztbench/service/internal/null"
	"ztbench/service/internal/rawhttp"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// start serves a proxy before a null server until the test ends.
func start(t *testing.T, delay time.Duration) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	front, back := listen(t), listen(t)
	done := make(chan error, 2)
	go func() { done <- null.Serve(ctx, back, null.Answer(8)) }()
	go func() { done <- rawhttp.Serve(ctx, front, proxy{back.Addr().String(), delay}.pass) }()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	return front.Addr().String()
}

// ask sends requests one after another on one connection, and returns how long each took.
func ask(t *testing.T, address string, count int) []time.Duration {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	answers := bufio.NewReader(connection)
	took := make([]time.Duration, count)
	for i := range took {
		began := time.Now()
		if _, err := connection.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := answers.Discard(8); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("answer: %v, status %d", err, answer.StatusCode)
		}
		took[i] = time.Since(began)
	}
	return took
}

func TestEachRequestIsHeldBackForTheDelayAndAnswered(t *testing.T) {
	took := ask(t, start(t, 3*time.Millisecond), 20)
	if least := slices.Min(took); least < 3*time.Millisecond {
		t.Errorf("a request took %s, want 3ms at least", least)
	}
}

func TestRequestsThatCameTogetherAreHeldBackOneByOne(t *testing.T) {
	connection, err := net.Dial("tcp", start(t, 5*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	began := time.Now()
	request := "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	// The second one comes in two parts.
	for _, part := range []string{request + request[:10], request[10:]} {
		if _, err := connection.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	answers := bufio.NewReader(connection)
	for range 2 {
		if _, err := http.ReadResponse(answers, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := answers.Discard(8); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took < 10*time.Millisecond {
		t.Errorf("two requests took %s, want 10ms at least", took)
	}
}

func TestWithoutDelayNothingIsWaitedFor(t *testing.T) {
	began := time.Now()
	spin(0)
	if took := time.Since(began); took > 100*time.Millisecond {
		t.Errorf("took %s", took)
	}
}
