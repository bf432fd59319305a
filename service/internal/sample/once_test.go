package sample

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestScrapingOnceWritesOneBlockForEachEndpointAndNothingElse(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "asked.for: %s\n", r.URL.Path)
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "out.txt")
	err := ScrapeOnce([]Scrape{{Name: "stats", URL: server.URL + "/stats"}, {Name: "certs", URL: server.URL + "/certs"}}, path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^### \d{19} scrape stats\nasked\.for: /stats\n` +
		`### \d{19} scrape certs\nasked\.for: /certs\n$`)
	if !want.Match(text) {
		t.Errorf("%q does not match %s", text, want)
	}
}

func TestScrapingOnceFailsIfAnEndpointDoesNotAnswerAndKeepsTheOthers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/certs" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "out.txt")
	err := ScrapeOnce([]Scrape{{Name: "certs", URL: server.URL + "/certs"}, {Name: "stats", URL: server.URL + "/stats"}}, path)
	if err == nil || !strings.Contains(err.Error(), "scrape certs: ") {
		t.Errorf("%v", err)
	}
	text, _ := os.ReadFile(path)
	for _, head := range []string{" scrape certs error\n", " scrape stats\n"} {
		if !strings.Contains(string(text), head) {
			t.Errorf("%q is without %q", text, head)
		}
	}
}
