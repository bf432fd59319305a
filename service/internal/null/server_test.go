package null

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"ztbench/service/internal/rawhttp"
)

func start(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, listener, Answer(256)) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(5 * time.Second):
			t.Error("the server does not end")
		}
	})
	return listener.Addr().String()
}

func TestAnswersAHTTPClientOverOneConnection(t *testing.T) {
	address := start(t)
	dialled := 0
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			dialled++
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}}
	for range 3 {
		answer, err := client.Get("http://" + address + "/any")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || len(body) != 256 {
			t.Fatalf("status %d, %d bytes, %v", answer.StatusCode, len(body), err)
		}
	}
	if dialled != 1 {
		t.Errorf("dialled %d times, want once", dialled)
	}
	client.CloseIdleConnections()
}

func TestAnswersEachRequestOnceHoweverItsBytesArrive(t *testing.T) {
	connection, err := net.Dial("tcp", start(t))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	request := "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	// Two and a half requests, cut inside a header's end.
	text := request + request + request
	for _, part := range []string{text[:len(request)-2], text[len(request)-2 : 2*len(request)+5]} {
		if _, err := io.WriteString(connection, part); err != nil {
			t.Fatal(err)
		}
	}
	reader := bufio.NewReader(connection)
	read := func() {
		t.Helper()
		answer, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, answer.Body)
	}
	read()
	read()
	connection.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := reader.ReadByte(); err == nil {
		t.Fatal("half a request was answered")
	}
	connection.SetReadDeadline(time.Time{})
	io.WriteString(connection, text[2*len(request)+5:])
	read()
}

func TestClosesAConnectionWhoseHeaderHasNoEnd(t *testing.T) {
	connection, err := net.Dial("tcp", start(t))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(5 * time.Second))
	io.WriteString(connection, strings.Repeat("x", rawhttp.HeaderBytesMax))
	if _, err := connection.Read(make([]byte, 1)); err == nil {
		t.Fatal("what is no request was answered")
	}
}
