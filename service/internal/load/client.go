package load

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// Connection modes.
const (
	HTTP1 = "http/1.1"
	HTTP2 = "http2"
	H2C   = "h2c"
)

// ClientOptions say how requests reach the target.
type ClientOptions struct {
	Mode string
	// Connections is how many may stay idle (HTTP/1.1), or how many there are (HTTP/2).
	Connections int
	// MaxConnections bounds the open ones (HTTP/1.1).
	MaxConnections int
	Timeout        time.Duration
	// RootsFile holds PEM certificates to trust instead of the system's, if not empty.
	RootsFile string
}

// newClient differs from the one vegeta would make in two ways: it never asks a proxy named by the
// environment, and it spreads HTTP/2 over a fixed number of connections. Vegeta's own uses one, so
// that a single worker thread of the proxy under test would do all the work.
func newClient(o ClientOptions) (*http.Client, error) {
	roots, err := readRoots(o.RootsFile)
	if err != nil {
		return nil, err
	}
	count := o.Connections
	if o.Mode == HTTP1 {
		count = 1
	}
	pool := &transports{members: make([]*http.Transport, count)}
	for i := range pool.members {
		pool.members[i] = newTransport(o, roots)
	}
	var transport http.RoundTripper = pool
	if count == 1 {
		transport = pool.members[0]
	}
	return &http.Client{
		Transport: transport,
		Timeout:   o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}, nil
}

func newTransport(o ClientOptions, roots *x509.CertPool) *http.Transport {
	protocols := new(http.Protocols)
	transport := &http.Transport{
		DialContext:     (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext,
		Protocols:       protocols,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	switch o.Mode {
	case HTTP1:
		protocols.SetHTTP1(true)
		transport.MaxIdleConnsPerHost = o.Connections
		transport.MaxConnsPerHost = o.MaxConnections
		return transport
	case HTTP2:
		protocols.SetHTTP2(true)
	case H2C:
		protocols.SetUnencryptedHTTP2(true)
	}
	transport.MaxIdleConnsPerHost = 1
	transport.MaxConnsPerHost = 1
	// Wait for a free stream rather than open a connection that nobody planned.
	transport.HTTP2 = &http.HTTP2Config{StrictMaxConcurrentRequests: true}
	return transport
}

func readRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("root certificates: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("root certificates: no PEM certificate in %s", file)
	}
	return roots, nil
}

// transports deals requests out to its members in turn.
type transports struct {
	members []*http.Transport
	next    atomic.Uint64
}

func (t *transports) RoundTrip(request *http.Request) (*http.Response, error) {
	turn := (t.next.Add(1) - 1) % uint64(len(t.members))
	return t.members[turn].RoundTrip(request)
}

func (t *transports) CloseIdleConnections() {
	for _, member := range t.members {
		member.CloseIdleConnections()
	}
}
