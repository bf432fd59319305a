package sample

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

var (
	groupFiles = []string{"cpu.stat", "cpu.pressure", "memory.current", "memory.events", "cgroup.procs"}
	// Where the controllers are in older hierarchies; containers may be there and nowhere else.
	olderFiles   = []string{"cpu.stat", "cpuacct.usage", "memory.usage_in_bytes", "cgroup.procs"}
	processFiles = []string{"stat", "schedstat", "status"}
)

// unit appends what is known of a unit: its group's counters and those of each process in it.
func (s *sampler) unit(name string, edge bool) {
	source := "unit " + name
	directory, err := s.groups.find(name)
	if err != nil {
		s.failed(source, err)
		return
	}
	if directory == "" {
		s.head(source + " absent")
		return
	}
	s.group(source, []string{directory}, groupFiles, edge)
}

// container appends the same of a group that is named by its path.
func (s *sampler) container(c *Container, edge bool) {
	source := "unit " + c.Unit
	unified := directoriesIn(s.options.GroupRoot, unifiedHierarchies, c.Path)
	directories, files := directoriesIn(s.options.GroupRoot, olderHierarchies, c.Path), olderFiles
	// A group without controllers in the unified hierarchy has them in the older ones.
	if firstWith(unified, "memory.current") != "" {
		directories, files = unified, groupFiles
	}
	if !s.group(source, directories, files, edge) {
		s.head(source + " absent")
	}
}

// group appends each file from the first directory that has it, and what is known of the processes.
func (s *sampler) group(source string, directories, files []string, edge bool) (found bool) {
	var processes []byte
	for _, file := range files {
		path := firstWith(directories, file)
		if path == "" {
			continue // the kernel has the file only where the controller is on
		}
		found = true
		from := len(s.buffer)
		s.file(source+" "+file, path)
		if file == "cgroup.procs" {
			_, processes, _ = bytes.Cut(bytes.Clone(s.buffer[from:]), []byte("\n"))
		}
	}
	for pid := range bytes.FieldsSeq(processes) {
		if _, err := strconv.Atoi(string(pid)); err == nil {
			s.process(source, string(pid))
			if edge {
				threads := source + " pid " + string(pid) + " threads"
				s.threads(threads, "/proc/"+string(pid)+"/task")
			}
		}
	}
	return found
}

func firstWith(directories []string, file string) string {
	for _, directory := range directories {
		path := filepath.Join(directory, file)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

func (s *sampler) process(unit, pid string) {
	source, directory := unit+" pid "+pid+" ", "/proc/"+pid
	for _, file := range processFiles {
		s.file(source+file, filepath.Join(directory, file))
	}
	s.tasks(source+"tasks", directory+"/task")
	if count, err := openFiles(directory + "/fd"); err != nil {
		s.failed(source+"fds", err)
	} else {
		s.head(source + "fds")
		s.text(strconv.Itoa(count) + "\n")
	}
}

// tasks appends the scheduler's counters of each thread, a line each. The group's own counters lack
// the time that threads waited for a CPU.
func (s *sampler) tasks(source, directory string) {
	names, err := entryNames(directory)
	if err != nil {
		s.failed(source, err)
		return
	}
	s.head(source)
	for _, name := range names {
		from := len(s.buffer)
		s.buffer = append(append(s.buffer, name...), ' ')
		if s.read(directory+"/"+name+"/schedstat") != nil {
			s.buffer = s.buffer[:from] // the thread ended since it was listed
			continue
		}
		s.tidy(from)
	}
}

// openFiles counts descriptors. Newer kernels give the number as the directory's size; on older
// ones the size is 0 and the entries are counted.
func openFiles(directory string) (int, error) {
	var stat unix.Stat_t
	if err := unix.Stat(directory, &stat); err != nil {
		return 0, fmt.Errorf("stat %s: %w", directory, err)
	}
	if stat.Size > 0 {
		return int(stat.Size), nil
	}
	names, err := entryNames(directory)
	return len(names), err
}

func entryNames(directory string) ([]string, error) {
	file, err := os.Open(directory)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return file.Readdirnames(-1)
}
