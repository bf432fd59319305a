package probe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const serverID = "spiffe://test/server"

// identity writes a self-signed certificate and its key, which is also what others trust it by.
func identity(t *testing.T, name string) (certFile, keyFile string, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := url.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), URIs: []*url.URL{id}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	certFile, keyFile = filepath.Join(directory, "cert.pem"), filepath.Join(directory, "key.pem")
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile:  {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err = tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile, pair
}

// serve answers whoever shows a certificate that trusted has signed.
func serve(t *testing.T, pair tls.Certificate, trustedFile string) string {
	t.Helper()
	text, err := os.ReadFile(trustedFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	server := httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are meant to fail
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{pair},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func TestAHandshakeIsDescribedAndARefusedOneIsARefusal(t *testing.T) {
	serverCert, _, pair := identity(t, serverID)
	ownCert, ownKey, _ := identity(t, "spiffe://test/client")
	otherCert, otherKey, _ := identity(t, "spiffe://test/client")
	address := serve(t, pair, ownCert)
	for _, test := range []struct {
		what, cert, key, id, outcome, says string
	}{
		{"the right certificate", ownCert, ownKey, serverID, Status, ""},
		{"none", "", "", serverID, Refused, ""},
		{"one of another authority", otherCert, otherKey, serverID, Refused, ""},
		{"another server", ownCert, ownKey, "spiffe://test/other", Error, `is "spiffe://test/server"`},
	} {
		p := Probe{URL: address, HTTP: "2", TimeoutSeconds: 5, TLS: &TLS{
			CAFile: serverCert, ServerID: test.id, CertFile: test.cert, KeyFile: test.key,
			ALPN: []string{"istio", "h2"},
		}}
		seen := observe(context.Background(), &p, "")
		if seen.Outcome != test.outcome || !strings.Contains(seen.Error, test.says) {
			t.Errorf("%s: got %+v, want %s %q", test.what, seen, test.outcome, test.says)
		}
		if (seen.TLS != nil) != (test.outcome == Status) {
			t.Errorf("%s: facts %+v", test.what, seen.TLS)
		}
		want := TLSFacts{
			"TLSv1.3", "TLS_AES_128_GCM_SHA256", "X25519", "h2", "ecdsa-p256", serverID,
		}
		if seen.TLS != nil && *seen.TLS != want {
			t.Errorf("%s: facts %+v, want %+v", test.what, *seen.TLS, want)
		}
	}
}

func TestAConnectionThatIsClosedWithoutAnAnswerIsARefusal(t *testing.T) {
	for _, version := range []string{"1.1", "2"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				// Read first, so that the other side sees an end and no reset.
				conn.Read(make([]byte, 4096))
				conn.Close()
			}
		}()
		p := Probe{URL: "http://" + listener.Addr().String(), HTTP: version, TimeoutSeconds: 5}
		if seen := observe(context.Background(), &p, ""); seen.Outcome != Refused {
			t.Errorf("HTTP/%s: got %+v", version, seen)
		}
	}
}

func TestAnIncompleteTLSProbeIsABadDocument(t *testing.T) {
	for text, want := range map[string]string{
		`{"caFile":"a","serverId":"spiffe://a/b","certFile":"c","alpn":[]}`: "keyFile",
		`{"serverId":"spiffe://a/b","alpn":[]}`:                             "caFile",
	} {
		document := `{"schema":"ztbench/probe-request/1","deadlineSeconds":1,"until":"once","probes":[` +
			`{"id":"a","kind":"positive","shows":"","host":"h","url":"https://127.0.0.1:1/","http":"2",` +
			`"headers":{},"tls":` + text + `,"timeoutSeconds":1,"expect":{"outcome":"refused"}}]}`
		if _, err := Read(strings.NewReader(document), "test"); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
