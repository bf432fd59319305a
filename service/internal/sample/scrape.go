package sample

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ztbench/service/internal/program"
)

const (
	scrapeTimeout = 2 * time.Second
	scrapeBytes   = 16 << 20
)

// Scrape is an HTTP endpoint whose answer is part of a sample.
type Scrape struct {
	Name, URL string
	// Namespace is the path of the network namespace that it is asked from; empty: our own.
	Namespace string
}

var scrapeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]*$`)

// ParseScrape reads NAME=URL, or NAME=URL@NAMESPACE.
func ParseScrape(text string) (Scrape, error) {
	name, address, found := strings.Cut(text, "=")
	address, namespace, isInside := strings.Cut(address, "@")
	if isInside && !strings.HasPrefix(namespace, "/") {
		return Scrape{}, program.Usagef("-scrape: not a path of a namespace, %q, want @/PATH", text)
	}
	u, err := url.Parse(address)
	if !found || !scrapeName.MatchString(name) || err != nil || u.Scheme != "http" || u.Host == "" {
		return Scrape{}, program.Usagef("-scrape: not a scrape, %q, want NAME=http://host:port/path",
			text)
	}
	return Scrape{name, address, namespace}, nil
}

// clientFor asks without a proxy and keeps no connection: the endpoint is on this host, and idle
// between samples.
func clientFor(namespace string) *http.Client {
	transport := &http.Transport{DisableKeepAlives: true}
	if namespace != "" {
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialFrom(ctx, namespace, network, address)
		}
	}
	return &http.Client{Timeout: scrapeTimeout, Transport: transport}
}

// dialFrom connects from another network namespace: a socket stays in the one it was made in. The
// thread that was there is given up if it cannot come back.
func dialFrom(ctx context.Context, namespace, network, address string) (net.Conn, error) {
	runtime.LockOSThread()
	own, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	defer unix.Close(own)
	other, err := unix.Open(namespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("network namespace %s: %w", namespace, err)
	}
	defer unix.Close(other)
	if err := unix.Setns(other, unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("network namespace %s: %w", namespace, err)
	}
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, network, address)
	if back := unix.Setns(own, unix.CLONE_NEWNET); back == nil {
		runtime.UnlockOSThread()
	}
	return connection, err
}

func (s *sampler) scrape(target *Scrape) error {
	source := "scrape " + target.Name
	body, err := get(clientFor(target.Namespace), target.URL)
	if err != nil {
		s.failed(source, err)
		return err
	}
	s.head(source)
	s.text(string(body))
	return nil
}

func get(client *http.Client, address string) ([]byte, error) {
	response, err := client.Get(address)
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
