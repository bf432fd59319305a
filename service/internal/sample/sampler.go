// Package sample reads the counters of a host as the kernel and the proxies print them, without
// parsing: that is left to the analysis, so that it can be redone.
//
// # Format
//
// A sample file is a sequence of blocks:
//
//	### <nanoseconds since 1970> <source>
//	<text, none or whole lines>
//
// The time is that of reading. A line of the text that would look like a head begins with a space
// instead. Sources:
//
//	sampler start             interval, units, number of CPUs; first block of a file
//	file PATH                 a file of the whole machine or network namespace
//	glob PATTERN              small files, a line "PATH CONTENT" each; none where none matches
//	unit NAME FILE            a file of the unit's control group
//	unit NAME pid PID FILE    /proc/PID/FILE; "tasks" is one line "TID run-ns wait-ns slices" for
//	                          each thread, "fds" the number of open files, "threads" one line
//	                          "TID CPU ALLOWED NAME" for each
//	unit NAME absent          there is no such control group at this moment
//	scrape NAME               the body that an HTTP endpoint answered with
//	SOURCE error              could not be read; the text says why
//	sampler cost              the sampler's own CPU time; last block of a file
//
// EdgeFiles, edge globs and "threads" are in the first and last sample only.
package sample

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// MachineFiles are read in every sample.
var MachineFiles = []string{
	"/proc/stat", "/proc/softirqs", "/proc/net/softnet_stat", "/proc/net/snmp", "/proc/net/netstat",
	"/proc/net/sockstat", "/proc/net/dev", "/proc/loadavg", "/proc/pressure/cpu",
}

// EdgeFiles hold what should not change while a run lasts.
var EdgeFiles = []string{
	"/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/osrelease", "/proc/vmstat",
	"/proc/sys/net/ipv4/ip_local_port_range",
	"/proc/sys/net/netfilter/nf_conntrack_count", "/proc/sys/net/netfilter/nf_conntrack_max",
	"/sys/devices/system/clocksource/clocksource0/current_clocksource",
	"/sys/devices/system/cpu/cpu0/microcode/version",
}

var (
	edgeGlobs = []string{
		"/sys/devices/system/cpu/cpu*/cpufreq/base_frequency",
		"/sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count",
		"/sys/class/thermal/thermal_zone*/temp",
		"/sys/class/net/*/carrier_changes",
	}
	// Of busy CPUs only does the frequency mean anything, so it is read while they are.
	steadyGlobs = []string{"/sys/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq"}
)

// Options say what is sampled.
type Options struct {
	Interval time.Duration
	// Units are those of the service manager; their groups are searched for.
	Units []string
	// Containers are sampled like units.
	Containers []Container
	// GroupRoot is where the hierarchies of control groups are, for containers.
	GroupRoot string
	Scrapes   []Scrape
	// ScrapeEvery is the time between scrapes; 0 scrapes in the first and last sample only.
	ScrapeEvery time.Duration
	// Files are read besides MachineFiles.
	Files []string
}

// Container is a unit whose control group is known by its path below each hierarchy.
type Container struct{ Unit, Path string }

// Cost is what sampling itself took.
type Cost struct {
	Samples  int
	CPU      time.Duration
	Duration time.Duration
}

// PerSample is the CPU time of one sample in microseconds.
func (c Cost) PerSample() int64 {
	if c.Samples == 0 {
		return 0
	}
	return c.CPU.Microseconds() / int64(c.Samples)
}

type sampler struct {
	options Options
	out     *os.File
	// buffer holds one sample, so that it is written at once.
	buffer []byte
	groups *groups
	cost   Cost
	// matched holds the files of each glob.
	matched map[string][]string
}

// Run appends a sample to out now, after each interval, and a last one when ctx ends. ready is
// called after the first.
func Run(ctx context.Context, o Options, out *os.File, ready func() error) (Cost, error) {
	groups, err := newGroups()
	if err != nil {
		return Cost{}, err
	}
	s := &sampler{options: o, out: out, groups: groups}
	return s.run(ctx, ready)
}

func (s *sampler) run(ctx context.Context, ready func() error) (Cost, error) {
	o := &s.options
	s.start()
	if err := s.take(true, true); err != nil {
		return s.cost, err
	}
	if err := ready(); err != nil {
		return s.cost, err
	}
	ticker := time.NewTicker(o.Interval)
	defer ticker.Stop()
	scraped := time.Now()
	for {
		select {
		case <-ctx.Done():
			return s.finish()
		case <-ticker.C:
		}
		due := o.ScrapeEvery > 0 && time.Since(scraped) >= o.ScrapeEvery-o.Interval/2
		if due {
			scraped = time.Now()
		}
		if err := s.take(due, false); err != nil {
			return s.cost, err
		}
	}
}

func (s *sampler) start() {
	s.head("sampler start")
	s.text(fmt.Sprintf("interval_ns %d\ncpus %d\nunits %s\n",
		s.options.Interval, runtime.NumCPU(), strings.Join(s.names(), " ")))
}

func (s *sampler) names() []string {
	names := slices.Clone(s.options.Units)
	for i := range s.options.Containers {
		names = append(names, s.options.Containers[i].Unit)
	}
	return names
}

func (s *sampler) finish() (Cost, error) {
	err := s.take(true, true)
	s.head("sampler cost")
	s.text(fmt.Sprintf("samples %d\ncpu_usec %d\nwall_usec %d\n",
		s.cost.Samples, s.cost.CPU.Microseconds(), s.cost.Duration.Microseconds()))
	if flushed := s.flush(); err == nil {
		err = flushed
	}
	return s.cost, err
}

// take reads everything once and writes it.
func (s *sampler) take(scrape, edge bool) error {
	cpu, began := cpuTime(), time.Now()
	for _, unit := range s.options.Units {
		s.unit(unit, edge)
	}
	for i := range s.options.Containers {
		s.container(&s.options.Containers[i], edge)
	}
	s.globs(steadyGlobs)
	if edge {
		s.edges()
	}
	for _, files := range [][]string{MachineFiles, s.options.Files} {
		for _, path := range files {
			s.file("file "+path, path)
		}
	}
	if scrape {
		for i := range s.options.Scrapes {
			_ = s.scrape(&s.options.Scrapes[i]) // the block says it
		}
	}
	err := s.flush()
	s.cost.Samples++
	s.cost.CPU += cpuTime() - cpu
	s.cost.Duration += time.Since(began)
	return err
}

func (s *sampler) flush() error {
	_, err := s.out.Write(s.buffer)
	s.buffer = s.buffer[:0]
	if err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	return nil
}

func (s *sampler) head(source string) {
	s.buffer = append(s.buffer, "### "...)
	s.buffer = strconv.AppendInt(s.buffer, time.Now().UnixNano(), 10)
	s.buffer = append(s.buffer, ' ')
	s.buffer = append(append(s.buffer, source...), '\n')
}

func (s *sampler) text(text string) {
	from := len(s.buffer)
	s.buffer = append(s.buffer, text...)
	s.tidy(from)
}

// tidy makes what was appended since from whole lines, none of which looks like a head.
func (s *sampler) tidy(from int) {
	text := s.buffer[from:]
	if bytes.HasPrefix(text, []byte("###")) || bytes.Contains(text, []byte("\n###")) {
		quoted := bytes.ReplaceAll(append([]byte("\n"), text...), []byte("\n###"), []byte("\n ###"))
		s.buffer = append(s.buffer[:from], quoted[1:]...)
	}
	if last := len(s.buffer); last > from && s.buffer[last-1] != '\n' {
		s.buffer = append(s.buffer, '\n')
	}
}

func (s *sampler) failed(source string, err error) {
	s.head(source + " error")
	s.text(err.Error() + "\n")
}

// file appends a block with the content of a file.
func (s *sampler) file(source, path string) {
	before := len(s.buffer)
	s.head(source)
	from := len(s.buffer)
	if err := s.read(path); err != nil {
		s.buffer = s.buffer[:before]
		s.failed(source, err)
		return
	}
	s.tidy(from)
}

// read appends a file to the buffer. It goes round package os, whose files want to be polled.
func (s *sampler) read(path string) error {
	fd, err := openFile(path)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	for {
		if cap(s.buffer)-len(s.buffer) < 4096 {
			s.buffer = append(s.buffer, make([]byte, 16<<10)...)[:len(s.buffer)]
		}
		n, err := unix.Read(fd, s.buffer[len(s.buffer):cap(s.buffer)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return &os.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return nil
		default:
			s.buffer = s.buffer[:len(s.buffer)+n]
		}
	}
}

func openFile(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// cpuTime is what this process has used so far, in user and kernel mode.
func cpuTime() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
