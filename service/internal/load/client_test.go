package load

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

func startTLS(t *testing.T, handler http.HandlerFunc) (url, rootsFile string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are expected
	server.StartTLS()
	t.Cleanup(server.Close)
	rootsFile = filepath.Join(t.TempDir(), "roots.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	if err := os.WriteFile(rootsFile, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return server.URL, rootsFile
}

func TestTLSTargetsAreAskedInTheVersionAskedFor(t *testing.T) {
	for mode, want := range map[string]int{HTTP1: 1, HTTP2: 2} {
		var other atomic.Int64
		url, roots := startTLS(t, func(_ http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != want {
				other.Add(1)
			}
		})
		plan := mustPlan(t, Uniform, 500, 100*time.Millisecond, 0)
		options := testOptions(t, mode)
		options.Client.RootsFile = roots
		targets := []vegeta.Target{{Method: http.MethodGet, URL: url}}
		summary, err := Attack(t.Context(), &plan, targets, options)
		if err != nil || summary.Sent != plan.Planned || summary.Failed != 0 || other.Load() != 0 {
			t.Errorf("%s: %+v, %v, %d requests in another version", mode, summary, err, other.Load())
		}
	}
}

func TestAnUntrustedCertificateFailsEveryRequest(t *testing.T) {
	url, _ := startTLS(t, func(http.ResponseWriter, *http.Request) {})
	plan := mustPlan(t, Uniform, 100, 50*time.Millisecond, 0)
	targets := []vegeta.Target{{Method: http.MethodGet, URL: url}}
	summary, err := Attack(t.Context(), &plan, targets, testOptions(t, HTTP2))
	if err != nil || summary.Failed != plan.Planned {
		t.Fatalf("%+v, %v", summary, err)
	}
}

func TestAProxyNamedByTheEnvironmentIsNotAsked(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	client, err := newClient(ClientOptions{Mode: HTTP1, Connections: 1, MaxConnections: 1})
	if err != nil {
		t.Fatal(err)
	}
	if client.Transport.(*http.Transport).Proxy != nil {
		t.Fatal("the client asks the environment for a proxy")
	}
}

func TestRootsThatAreNoCertificatesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(path, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{path, path + ".none"} {
		options := ClientOptions{Mode: HTTP2, Connections: 1, RootsFile: file}
		if _, err := newClient(options); err == nil {
			t.Errorf("accepted %s", file)
		}
	}
}
