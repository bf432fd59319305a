package load

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

func TestEachRequestHasAConnectionOfItsOwnAndItsBodyIsReadWhole(t *testing.T) {
	for _, mode := range []string{HTTP1, H2C} {
		t.Run(mode, func(t *testing.T) { connectsThrice(t, mode) })
	}
}

func connectsThrice(t *testing.T, mode string) {
	body := strings.Repeat("x", 300)
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(3 * time.Millisecond)
			w.Write([]byte(body))
		}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	target := vegeta.Target{Method: "GET", URL: server.URL}
	found, err := Connect(t.Context(), &target, 3, ClientOptions{Mode: mode, Timeout: time.Second})
	if err != nil || len(found) != 3 {
		t.Fatalf("%v, %v", found, err)
	}
	if opened.Load() != 3 {
		t.Errorf("%d connections", opened.Load())
	}
	sum := sha256.Sum256([]byte(body))
	for _, one := range found {
		if one.Status != 200 || one.Bytes != 300 || one.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%+v", one)
		}
		if one.ConnectNs <= 0 || one.FirstByteNs < 3_000_000 || one.HandshakeNs != 0 {
			t.Errorf("%+v", one)
		}
	}
}

func TestARefusedConnectionIsAResult(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	target := vegeta.Target{Method: "GET", URL: server.URL}
	found, err := Connect(t.Context(), &target, 1, ClientOptions{Mode: HTTP1, Timeout: time.Second})
	if err != nil || len(found) != 1 || found[0].Error == "" || found[0].Status != 0 {
		t.Fatalf("%+v, %v", found, err)
	}
}

func TestAnAnswerIsTimedFromItsConnectionIfBothAreToldOf(t *testing.T) {
	at := time.Now()
	var unconnected, silent, usual firstByte
	unconnected.cameAt(at)
	silent.startAt(at)
	usual.startAt(at)
	usual.cameAt(at.Add(time.Millisecond))
	for name, c := range map[string]struct {
		answer *firstByte
		want   time.Duration
	}{
		"never connected": {&unconnected, 0},
		"never answered":  {&silent, 0},
		"usual":           {&usual, time.Millisecond},
	} {
		if took := c.answer.elapsed(); took != c.want {
			t.Errorf("%s: %s, want %s", name, took, c.want)
		}
	}
}
