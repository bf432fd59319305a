// Package probe asks the requests of a probe document, each on a connection of its own, and says
// what it saw. The documents are those of contracts/deployment.ts.
package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"time"

	"ztbench/service/internal/program"
)

const (
	requestSchema = "ztbench/probe-request/1"
	resultsSchema = "ztbench/probe-results/1"
	limitBytes    = 4 << 20
)

// When to stop asking.
const (
	UntilPositive = "positive"
	Once          = "once"
)

// Outcomes.
const (
	Status     = "status"
	Refused    = "refused"
	NoResponse = "no-response"
	Error      = "error"
)

// Request is the document on standard input.
type Request struct {
	Schema          string  `json:"schema"`
	DeadlineSeconds float64 `json:"deadlineSeconds"`
	Until           string  `json:"until"`
	Probes          []Probe `json:"probes"`
}

// Probe is one request and what must come of it.
type Probe struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Shows string `json:"shows"`
	Host  string `json:"host"`
	// NetworkNamespace is where whoever starts the prober puts it; it stays where it is.
	NetworkNamespace string `json:"networkNamespace"`

	URL            string            `json:"url"`
	HTTP           string            `json:"http"`
	Headers        map[string]string `json:"headers"`
	TokenFile      string            `json:"tokenFile"`
	TLS            *TLS              `json:"tls"`
	TimeoutSeconds float64           `json:"timeoutSeconds"`
	Expect         Expectation       `json:"expect"`
}

// TLS is how an https probe speaks: files are PEM, and the server must have the SPIFFE ID.
type TLS struct {
	CAFile   string   `json:"caFile"`
	ServerID string   `json:"serverId"`
	CertFile string   `json:"certFile"`
	KeyFile  string   `json:"keyFile"`
	ALPN     []string `json:"alpn"`
}

// Expectation is what must be observed.
type Expectation struct {
	Outcome string             `json:"outcome"`
	Status  int                `json:"status"`
	Header  *HeaderExpectation `json:"header"`
}

// HeaderExpectation is a response header with an exact value, a pattern, or both.
type HeaderExpectation struct {
	Name    string  `json:"name"`
	Value   *string `json:"value"`
	Matches *string `json:"matches"`
	pattern *regexp.Regexp
}

// Results is the document on standard output.
type Results struct {
	Schema  string   `json:"schema"`
	Results []Result `json:"results"`
}

// Result is what came of one probe.
type Result struct {
	ID         string      `json:"id"`
	Passed     bool        `json:"passed"`
	Observed   Observation `json:"observed"`
	DurationNs int64       `json:"durationNs"`
}

// Observation is what was seen. Header is the value of the expected header, if one was expected and
// the answer had it.
type Observation struct {
	Outcome string    `json:"outcome"`
	Status  int       `json:"status,omitempty"`
	Header  *string   `json:"header,omitempty"`
	Error   string    `json:"error,omitempty"`
	TLS     *TLSFacts `json:"tls,omitempty"`
}

// TLSFacts is what a handshake that succeeded has agreed on.
type TLSFacts struct {
	Version string `json:"version"`
	Cipher  string `json:"cipher"`
	Group   string `json:"group"`
	ALPN    string `json:"alpn"`
	KeyType string `json:"keyType"`
	Peer    string `json:"peer"`
}

// Read reads and checks a request document; name is for messages.
func Read(in io.Reader, name string) (Request, error) {
	var request Request
	text, err := io.ReadAll(io.LimitReader(in, limitBytes))
	if err != nil {
		return request, fmt.Errorf("%s: %w", name, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&request); err != nil {
		return request, program.BadDocumentf("%s: byte %d: %w", name, decoder.InputOffset(), err)
	}
	if decoder.More() {
		return request, program.BadDocumentf("%s: byte %d: more than one document",
			name, decoder.InputOffset())
	}
	if err := request.check(); err != nil {
		return request, program.BadDocumentf("%s: %w", name, err)
	}
	return request, nil
}

func (r *Request) check() error {
	switch {
	case r.Schema != requestSchema:
		return fmt.Errorf("schema: unknown, %q, want %q", r.Schema, requestSchema)
	case r.Until != UntilPositive && r.Until != Once:
		return fmt.Errorf("until: unknown, %q, want positive or once", r.Until)
	case r.DeadlineSeconds <= 0 || r.DeadlineSeconds > 3600:
		return fmt.Errorf("deadlineSeconds: out of range, %v, want up to 3600", r.DeadlineSeconds)
	case len(r.Probes) == 0:
		return fmt.Errorf("probes: empty, want at least one")
	}
	for i := range r.Probes {
		if err := r.Probes[i].check(); err != nil {
			return fmt.Errorf("probes.%d: %w", i, err)
		}
	}
	return nil
}

func (p *Probe) check() error {
	u, err := url.Parse(p.URL)
	switch {
	case p.ID == "":
		return fmt.Errorf("id: missing")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("url: not an http or https URL, %q", p.URL)
	case p.HTTP != "1.1" && p.HTTP != "2":
		return fmt.Errorf("http: unknown, %q, want 1.1 or 2", p.HTTP)
	case p.TLS != nil && (u.Scheme != "https" || p.TLS.CAFile == "" || p.TLS.ServerID == ""):
		return fmt.Errorf("tls: incomplete or not for %q, want https, caFile and serverId", p.URL)
	case p.TLS != nil && (p.TLS.CertFile == "") != (p.TLS.KeyFile == ""):
		return fmt.Errorf("tls: certFile and keyFile: one is missing, want both or none")
	case p.TimeoutSeconds <= 0 || p.TimeoutSeconds > 600:
		return fmt.Errorf("timeoutSeconds: out of range, %v, want up to 600", p.TimeoutSeconds)
	}
	return p.Expect.check()
}

func (e *Expectation) check() error {
	switch e.Outcome {
	case Status:
		if e.Status < 100 || e.Status > 599 {
			return fmt.Errorf("expect.status: out of range, %d, want 100 to 599", e.Status)
		}
	case Refused, NoResponse:
		if e.Status != 0 || e.Header != nil {
			return fmt.Errorf("expect: status or header given with outcome %q", e.Outcome)
		}
	default:
		return fmt.Errorf("expect.outcome: unknown, %q, want status, refused or no-response", e.Outcome)
	}
	if h := e.Header; h != nil {
		if h.Name == "" || h.Value == nil && h.Matches == nil {
			return fmt.Errorf("expect.header: incomplete, want a name and a value or matches")
		}
		if h.Matches != nil {
			pattern, err := regexp.Compile(*h.Matches)
			if err != nil {
				return fmt.Errorf("expect.header.matches: %w", err)
			}
			h.pattern = pattern
		}
	}
	return nil
}

// holds says whether the observation is the expected one.
func (e *Expectation) holds(seen Observation) bool {
	if seen.Outcome != e.Outcome || seen.Status != e.Status {
		return false
	}
	h := e.Header
	if h == nil {
		return true
	}
	if seen.Header == nil {
		return false
	}
	return (h.Value == nil || *h.Value == *seen.Header) &&
		(h.pattern == nil || h.pattern.MatchString(*seen.Header))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
