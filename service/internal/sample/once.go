package sample

import (
	"errors"
	"fmt"
	"os"
)

// ScrapeOnce appends a block for each endpoint to a file. Unlike in a series of samples, where a
// gap does little harm, an endpoint that does not answer is an error; its block says why as well.
func ScrapeOnce(scrapes []Scrape, path string) error {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	s := &sampler{out: out}
	var failures []error
	for i := range scrapes {
		if err := s.scrape(&scrapes[i]); err != nil {
			failures = append(failures, fmt.Errorf("scrape %s: %w", scrapes[i].Name, err))
		}
	}
	failures = append(failures, s.flush(), out.Close())
	return errors.Join(failures...)
}
