package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// result is what a command printed, each without its last newline.
type result struct{ stdout, stderr string }

// capture collects a command's output and shows it line by line.
type capture struct {
	stdout, stderr *stream
	both           *sharedBuffer
}

func newCapture(log commandLog) *capture {
	both := &sharedBuffer{}
	return &capture{
		stdout: &stream{both: both, show: log.stdout},
		stderr: &stream{both: both, show: log.stderr},
		both:   both,
	}
}

func (c *capture) finish(ctx context.Context, script string, err error) (result, error) {
	c.stdout.flush()
	c.stderr.flush()
	if err != nil {
		var exit *ssh.ExitError
		reason := err.Error()
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			reason = "timed out"
		case ctx.Err() != nil:
			reason = "cancelled"
		case errors.As(err, &exit) && exit.Signal() == "":
			reason = fmt.Sprintf("exit status %d", exit.ExitStatus())
		}
		return result{}, fmt.Errorf("%s: running %q:\n%s", reason, script, c.both.String())
	}
	return result{
		stdout: strings.TrimSuffix(c.stdout.all.String(), "\n"),
		stderr: strings.TrimSuffix(c.stderr.all.String(), "\n"),
	}, nil
}

type sharedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *sharedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *sharedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// stream is one of a command's two outputs.
type stream struct {
	all  bytes.Buffer
	line []byte
	both io.Writer
	show func(line string) // nil: do not show
}

func (s *stream) Write(p []byte) (int, error) {
	s.all.Write(p)
	if _, err := s.both.Write(p); err != nil {
		return 0, err
	}
	if s.show != nil {
		s.line = append(s.line, p...)
		for {
			i := bytes.IndexByte(s.line, '\n')
			if i < 0 {
				break
			}
			s.show(string(s.line[:i]))
			s.line = s.line[i+1:]
		}
	}
	return len(p), nil
}

func (s *stream) flush() {
	if s.show != nil && len(s.line) > 0 {
		s.show(string(s.line))
		s.line = nil
	}
}
