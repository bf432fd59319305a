package sample

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
)

// edges appends what is read at the begin and the end of a series only. A file that a kernel does
// not have is left out: the analysis says so where it would need it.
func (s *sampler) edges() {
	for _, path := range EdgeFiles {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		s.file("file "+path, path)
	}
	s.globs(edgeGlobs)
}

// globs appends the files that match each pattern; a pattern that matches none has no block.
func (s *sampler) globs(patterns []string) {
	for _, pattern := range patterns {
		paths := s.matches(pattern)
		if len(paths) == 0 {
			continue
		}
		s.head("glob " + pattern)
		for _, path := range paths {
			from := len(s.buffer)
			s.buffer = append(append(s.buffer, path...), ' ')
			if s.read(path) != nil {
				s.buffer = s.buffer[:from] // it went away, or has no value now
				continue
			}
			s.tidy(from)
		}
	}
}

// matches remembers what a pattern matched first: CPUs and NICs stay, searching costs.
func (s *sampler) matches(pattern string) []string {
	if s.matched == nil {
		s.matched = map[string][]string{}
	}
	paths, known := s.matched[pattern]
	if !known {
		paths, _ = filepath.Glob(pattern) // the patterns are ours, and well-formed
		s.matched[pattern] = paths
	}
	return paths
}

// threads appends where each thread of a process may run, and where it ran last.
func (s *sampler) threads(source, directory string) {
	names, err := entryNames(directory)
	if err != nil {
		s.failed(source, err)
		return
	}
	s.head(source)
	for _, name := range names {
		status, err := os.ReadFile(filepath.Join(directory, name, "status"))
		if err != nil {
			continue // the thread ended since it was listed
		}
		stat, err := os.ReadFile(filepath.Join(directory, name, "stat"))
		if err != nil {
			continue
		}
		s.text(name + " " + lastCPU(stat) + " " + statusField(status, "Cpus_allowed_list") + " " +
			statusField(status, "Name") + "\n")
	}
}

// lastCPU is field 39 of a stat file: the 37th after the name, which may hold anything.
func lastCPU(stat []byte) string {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const processor = 39 - 3
	if len(fields) <= processor {
		return "?"
	}
	return string(fields[processor])
}

func statusField(status []byte, name string) string {
	for line := range bytes.Lines(status) {
		if key, value, found := bytes.Cut(line, []byte(":")); found && string(key) == name {
			return string(bytes.TrimSpace(value))
		}
	}
	return "?"
}
