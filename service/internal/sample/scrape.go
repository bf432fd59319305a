package sample

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"ztbench/service/internal/program"
)

const (
	scrapeTimeout = 2 * time.Second
	scrapeBytes   = 16 << 20
)

// Scrape is an HTTP endpoint whose answer is part of a sample.
type Scrape struct{ Name, URL string }

var scrapeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]*$`)

// ParseScrape reads NAME=URL.
func ParseScrape(text string) (Scrape, error) {
	name, address, found := strings.Cut(text, "=")
	u, err := url.Parse(address)
	if !found || !scrapeName.MatchString(name) || err != nil || u.Scheme != "http" || u.Host == "" {
		return Scrape{}, program.Usagef("-scrape: not a scrape, %q, want NAME=http://host:port/path",
			text)
	}
	return Scrape{name, address}, nil
}

// No proxy, no kept connection: the endpoint is on this host, and idle between samples.
var scrapeClient = http.Client{
	Timeout:   scrapeTimeout,
	Transport: &http.Transport{DisableKeepAlives: true},
}

func (s *sampler) scrape(target *Scrape) error {
	source := "scrape " + target.Name
	body, err := get(target.URL)
	if err != nil {
		s.failed(source, err)
		return err
	}
	s.head(source)
	s.text(string(body))
	return nil
}

func get(address string) ([]byte, error) {
	response, err := scrapeClient.Get(address)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: status %d, want 200", address, response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, scrapeBytes+1))
	if err == nil && len(body) > scrapeBytes {
		err = fmt.Errorf("%s: longer than %d bytes", address, scrapeBytes)
	}
	return body, err
}
