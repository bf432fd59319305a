package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// ask sends one request on a fresh connection. token is sent as bearer token unless empty.
func ask(ctx context.Context, p *Probe, token string) Result {
	began := time.Now()
	seen := observe(ctx, p, token)
	return Result{p.ID, p.Expect.holds(seen), seen, int64(time.Since(began))}
}

func observe(parent context.Context, p *Probe, token string) Observation {
	ctx, cancel := context.WithTimeout(parent, seconds(p.TimeoutSeconds))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL, nil)
	if err != nil {
		return Observation{Outcome: Error, Error: err.Error()}
	}
	for name, value := range p.Headers {
		request.Header.Set(name, value)
		if strings.EqualFold(name, "host") {
			request.Host = value
		}
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	var connection connectionState
	security, err := newTLSConfig(p)
	if err != nil {
		return Observation{Outcome: Error, Error: err.Error()}
	}
	transport := newTransport(p, security, &connection)
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return failure(parent, err, &connection, p.TimeoutSeconds)
	}
	response.Body.Close()
	seen := Observation{
		Outcome: Status, Status: response.StatusCode, TLS: tlsFacts(response.TLS),
	}
	if expected := p.Expect.Header; expected != nil {
		if values := response.Header.Values(expected.Name); len(values) > 0 {
			all := strings.Join(values, ", ")
			seen.Header = &all
		}
	}
	return seen
}

// failure classes an error. Only a connection that nobody took counts as no response: a service
// that takes it and hangs is no proof that the network drops packets.
func failure(parent context.Context, err error, connection *connectionState, timeout float64,
) Observation {
	connected := connection.made.Load()
	late := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT)
	switch {
	case parent.Err() != nil:
		return Observation{Outcome: Error, Error: "the deadline of all probes passed first"}
	case connection.ended.Load(), endedByPeer(err), isAlert(err):
		return Observation{Outcome: Refused, Error: err.Error()}
	case late && !connected:
		return Observation{Outcome: NoResponse, Error: fmt.Sprintf("no connection in %v s", timeout)}
	case late:
		return Observation{Outcome: Error, Error: fmt.Sprintf("connected, no answer in %v s", timeout)}
	default:
		return Observation{Outcome: Error, Error: err.Error()}
	}
}

// newTransport speaks one version only and asks no proxy. RoundTrip follows no redirects.
func newTransport(p *Probe, security *tls.Config, connection *connectionState) *http.Transport {
	protocols := new(http.Protocols)
	if p.HTTP == "2" {
		protocols.SetHTTP2(true)
		protocols.SetUnencryptedHTTP2(true)
	} else {
		protocols.SetHTTP1(true)
	}
	// A second more than the request has, so that it is the request's time-out that is seen.
	dialer := &net.Dialer{Timeout: seconds(p.TimeoutSeconds) + time.Second}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		connection.made.Store(true)
		return watchedConn{conn, &connection.ended}, nil
	}
	return &http.Transport{
		Protocols: protocols, DialContext: dial, TLSClientConfig: security, DisableCompression: true,
	}
}
