package sample

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var headPattern = regexp.MustCompile(`^### (\d{19}) (.+)$`)

type block struct {
	at           int64
	source, text string
}

// blocks reads a sample file the way the package comment describes it.
func blocks(t *testing.T, text string) []block {
	t.Helper()
	var all []block
	for line := range strings.Lines(text) {
		if head := headPattern.FindStringSubmatch(strings.TrimSuffix(line, "\n")); head != nil {
			at, err := strconv.ParseInt(head[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, block{at, head[2], ""})
			continue
		}
		if len(all) == 0 || !strings.HasSuffix(line, "\n") {
			t.Fatalf("stray line %q", line)
		}
		all[len(all)-1].text += line
	}
	return all
}

func textOf(t *testing.T, all []block, source string) string {
	t.Helper()
	for i := range all {
		if all[i].source == source {
			return all[i].text
		}
	}
	t.Fatalf("no block %q", source)
	return ""
}

func count(all []block, source string) int {
	n := 0
	for i := range all {
		if all[i].source == source {
			n++
		}
	}
	return n
}

// fakeGroup makes a control group of regular files, this process in it.
func fakeGroup(t *testing.T, directory string) {
	t.Helper()
	if err := os.MkdirAll(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"cpu.stat": "usage_usec 42\n", "cgroup.procs": fmt.Sprintf("%d\n", os.Getpid()),
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func newTestSampler(t *testing.T, o Options) (s *sampler, root, path string) {
	t.Helper()
	root, path = t.TempDir(), filepath.Join(t.TempDir(), "samples.txt")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return &sampler{options: o, out: out, groups: newGroupsAt(root)}, root, path
}

func take(t *testing.T, s *sampler, path string) []block {
	t.Helper()
	if err := s.out.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.out.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.take(true, true); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return blocks(t, string(text))
}

func TestAUnitsGroupAndItsProcessesAreSampled(t *testing.T) {
	s, root, path := newTestSampler(t, Options{Units: []string{"a.service"}})
	fakeGroup(t, filepath.Join(root, "system.slice", "a.service"))
	all := take(t, s, path)
	if got := textOf(t, all, "unit a.service cpu.stat"); got != "usage_usec 42\n" {
		t.Errorf("cpu.stat is %q", got)
	}
	pid := fmt.Sprintf("unit a.service pid %d ", os.Getpid())
	if got := textOf(t, all, pid+"status"); !strings.Contains(got, "\nVmRSS:") {
		t.Errorf("status is %q", got)
	}
	main := fmt.Sprintf("%d ", os.Getpid())
	if got := textOf(t, all, pid+"tasks"); !strings.Contains(got, main) ||
		len(strings.Fields(strings.SplitN(got, "\n", 2)[0])) != 4 {
		t.Errorf("tasks are %q", got)
	}
	fds, err := strconv.Atoi(strings.TrimSpace(textOf(t, all, pid+"fds")))
	if err != nil || fds < 3 || fds > 1000 {
		t.Errorf("%d open files, %v", fds, err)
	}
	if n := count(all, "unit a.service memory.current"); n != 0 {
		t.Errorf("%d blocks of a file that is not there", n)
	}
}

func TestAContainersGroupIsSampledInWhicheverHierarchyItsControllersAre(t *testing.T) {
	const path = "/kubepods/pod1/c1"
	for _, hierarchies := range []map[string][]string{
		{"": {"cpu.stat", "memory.current", "cgroup.procs", "cgroup.controllers"}},
		{
			"cpu,cpuacct": {"cpu.stat", "cpuacct.usage", "cgroup.procs"},
			"memory":      {"memory.usage_in_bytes", "cgroup.procs"},
			"unified":     {"cgroup.procs", "cgroup.controllers"},
		},
	} {
		s, root, out := newTestSampler(t, Options{
			Containers: []Container{{Unit: "a.container", Path: path}},
		})
		s.options.GroupRoot = root
		if count(take(t, s, out), "unit a.container absent") != 1 {
			t.Error("not absent before it came")
		}
		want := 0
		for hierarchy, files := range hierarchies {
			directory := filepath.Join(root, hierarchy, path)
			if err := os.MkdirAll(directory, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				text := "7\n"
				if file == "cgroup.procs" {
					text = fmt.Sprintf("%d\n", os.Getpid())
				} else if file != "cgroup.controllers" {
					want++
				}
				if err := os.WriteFile(filepath.Join(directory, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		all, found := take(t, s, out), 0
		for _, file := range append(groupFiles, "cpuacct.usage", "memory.usage_in_bytes") {
			if file != "cgroup.procs" {
				found += count(all, "unit a.container "+file)
			}
		}
		if found != want {
			t.Errorf("%d counters, want %d", found, want)
		}
		if n := count(all, "unit a.container cgroup.procs"); n != 1 {
			t.Errorf("%d lists of processes, want 1", n)
		}
		textOf(t, all, fmt.Sprintf("unit a.container pid %d status", os.Getpid()))
	}
}

func TestAScrapeIsAskedFromTheNamespaceThatItNames(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "here")
	}))
	defer server.Close()
	scrape, err := ParseScrape("proxy=" + server.URL + "@/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	missing := Scrape{Name: "none", URL: server.URL, Namespace: filepath.Join(t.TempDir(), "no")}
	s, _, path := newTestSampler(t, Options{Scrapes: []Scrape{scrape, missing}})
	all := take(t, s, path)
	if os.Geteuid() == 0 {
		if got := textOf(t, all, "scrape proxy"); got != "here\n" {
			t.Errorf("answer is %q", got)
		}
	}
	if got := textOf(t, all, "scrape none error"); !strings.Contains(got, "network namespace") {
		t.Errorf("error is %q", got)
	}
	if _, err := ParseScrape("proxy=http://127.0.0.1:1/@relative"); err == nil {
		t.Error("a path that is not absolute is taken")
	}
}

func TestAUnitThatComesAndGoesIsAbsentMeanwhile(t *testing.T) {
	s, root, path := newTestSampler(t, Options{Units: []string{"a.service"}})
	deep := filepath.Join(root, "host", "payload", "a.service")
	absent := "unit a.service absent"
	if count(take(t, s, path), absent) != 1 {
		t.Error("not absent before it came")
	}
	fakeGroup(t, deep)
	all := take(t, s, path)
	if count(all, absent) != 0 || count(all, "unit a.service cpu.stat") != 1 {
		t.Error("not sampled while it was there")
	}
	if err := os.RemoveAll(deep); err != nil {
		t.Fatal(err)
	}
	if count(take(t, s, path), absent) != 1 {
		t.Error("not absent after it went")
	}
}

func TestAMissingUnitIsSearchedForAgainWhenTheNumberOfGroupsChanges(t *testing.T) {
	s, root, path := newTestSampler(t, Options{Units: []string{"a.service"}})
	setCount := func(n int) {
		text := fmt.Sprintf("nr_descendants %d\nnr_dying_descendants %d\n", n, time.Now().UnixNano())
		if err := os.WriteFile(filepath.Join(root, "cgroup.stat"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	setCount(1)
	take(t, s, path)
	fakeGroup(t, filepath.Join(root, "other.slice", "a.service"))
	setCount(2)
	if n := count(take(t, s, path), "unit a.service cpu.stat"); n != 1 {
		t.Errorf("found %d times once there was one more group, want 1", n)
	}
}

func TestTwoGroupsOfOneNameAreAnErrorInTheSample(t *testing.T) {
	s, root, path := newTestSampler(t, Options{Units: []string{"a.service"}})
	fakeGroup(t, filepath.Join(root, "x", "a.service"))
	fakeGroup(t, filepath.Join(root, "y", "a.service"))
	got := textOf(t, take(t, s, path), "unit a.service error")
	if !strings.Contains(got, "ambiguous") {
		t.Errorf("error is %q", got)
	}
}

func TestFilesAndAnswersCannotForgeAHead(t *testing.T) {
	forged := "### 1700000000000000000 file /proc/stat\nx\n### no end"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(forged))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _, path := newTestSampler(t, Options{
		Scrapes: []Scrape{{Name: "proxy", URL: server.URL}}, Files: []string{file, file + ".none"},
	})
	all := take(t, s, path)
	want := " ### 1700000000000000000 file /proc/stat\nx\n ### no end\n"
	for _, source := range []string{"scrape proxy", "file " + file} {
		if got := textOf(t, all, source); got != want {
			t.Errorf("%s is %q, want %q", source, got, want)
		}
	}
	if n := count(all, "file /proc/stat"); n != 1 {
		t.Errorf("%d blocks of /proc/stat, want 1", n)
	}
	textOf(t, all, "file "+file+".none error")
}

func TestTheFirstAndTheLastSampleScrapeAndTheCostComesLast(t *testing.T) {
	var scrapes atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		scrapes.Add(1)
	}))
	defer server.Close()
	s, _, path := newTestSampler(t, Options{
		Interval: 10 * time.Millisecond, Scrapes: []Scrape{{Name: "proxy", URL: server.URL}},
	})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	ready := false
	cost, err := s.run(ctx, func() error { ready = true; return nil })
	if err != nil || !ready {
		t.Fatalf("ready %v, %v", ready, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := blocks(t, string(text))
	samples := count(all, "file /proc/stat")
	if all[0].source != "sampler start" || all[len(all)-1].source != "sampler cost" {
		t.Errorf("first block %q, last %q", all[0].source, all[len(all)-1].source)
	}
	if scrapes.Load() != 2 || samples != cost.Samples || samples < 2 {
		t.Errorf("%d scrapes, %d samples, cost of %d; want 2, and equal",
			scrapes.Load(), samples, cost.Samples)
	}
	for i := range all[1:] {
		if all[i+1].at < all[i].at {
			t.Errorf("block %d is older than the one before", i+1)
		}
	}
}

func BenchmarkSample(b *testing.B) {
	out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	s := &sampler{out: out, groups: newGroupsAt(b.TempDir())}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.take(false, false); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(s.cost.PerSample()), "cpu-us/sample")
}

func TestThreadsAndWhatShouldNotChangeAreInEdgeSamplesOnly(t *testing.T) {
	s, root, path := newTestSampler(t, Options{Units: []string{"a.service"}})
	fakeGroup(t, filepath.Join(root, "system.slice", "a.service"))
	all := take(t, s, path)
	threads := textOf(t, all, fmt.Sprintf("unit a.service pid %d threads", os.Getpid()))
	line := regexp.MustCompile(`(?m)^\d+ \d+ [0-9,-]+ \S`)
	if !line.MatchString(threads) {
		t.Errorf("threads are %q", threads)
	}
	if boot := textOf(t, all, "file /proc/sys/kernel/random/boot_id"); len(boot) != 37 {
		t.Errorf("boot is %q", boot)
	}
	if err := s.out.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if err := s.take(false, false); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), "boot_id") ||
		strings.Contains(string(text), " threads") {
		t.Errorf("%v, %.200s", err, text)
	}
}
