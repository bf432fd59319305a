package sample

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Where the unified hierarchy is: alone, or beside the old ones.
var unifiedRoots = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}

const (
	// maxDirectories bounds a search; a host has far fewer control groups.
	maxDirectories = 20_000
	maxDepth       = 8
	// maxSkips bounds how often a search is left out because the number of groups is as it was.
	maxSkips = 10
)

var errSearchTooLong = errors.New("search given up")

// groups finds the control group of a unit, and remembers it.
type groups struct {
	root  string
	found map[string]string
	// missed says of a unit that was not there how many groups there were.
	missed map[string]miss
}

type miss struct {
	count string
	skips int
}

func newGroups() (*groups, error) {
	for _, root := range unifiedRoots {
		if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
			return newGroupsAt(root), nil
		}
	}
	return nil, fmt.Errorf("control groups: no unified hierarchy at %s",
		strings.Join(unifiedRoots, ", "))
}

func newGroupsAt(root string) *groups {
	return &groups{root, map[string]string{}, map[string]miss{}}
}

// Directories of hierarchies below where all of them are: the unified one alone, or beside the older
// ones, one of which each controller may be in.
var (
	unifiedHierarchies = []string{"", "unified"}
	olderHierarchies   = []string{"cpu,cpuacct", "cpu", "cpuacct", "memory"}
)

func directoriesIn(root string, hierarchies []string, path string) []string {
	directories := make([]string, len(hierarchies))
	for i, hierarchy := range hierarchies {
		directories[i] = filepath.Join(root, hierarchy, path)
	}
	return directories
}

// find returns the unit's directory, or an empty string if there is none now.
func (g *groups) find(unit string) (string, error) {
	if path := g.found[unit]; path != "" {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		delete(g.found, unit)
	}
	path := filepath.Join(g.root, "system.slice", unit)
	if _, err := os.Stat(path); err != nil {
		count := g.count()
		last := g.missed[unit]
		if count != "" && count == last.count && last.skips < maxSkips {
			g.missed[unit] = miss{count, last.skips + 1}
			return "", nil
		}
		if path, err = g.search(unit); path == "" || err != nil {
			g.missed[unit] = miss{count: count}
			return "", err
		}
	}
	g.found[unit] = path
	return path, nil
}

// count is what the kernel says of the number of groups, or empty if it says nothing. It costs one
// read, where a search costs one for each group.
func (g *groups) count() string {
	text, err := os.ReadFile(filepath.Join(g.root, "cgroup.stat"))
	if err != nil {
		return ""
	}
	count, _, _ := strings.Cut(string(text), "\n")
	return count
}

// search looks at every group that is not below another unit. Two of the same name are an error.
func (g *groups) search(unit string) (string, error) {
	var found []string
	directories := 0
	var walk func(directory string, depth int) error
	walk = func(directory string, depth int) error {
		entries, err := os.ReadDir(directory)
		if err != nil {
			return nil // it went away meanwhile
		}
		for _, entry := range entries {
			if !entry.IsDir() {
				continue
			}
			if directories++; directories > maxDirectories || depth > maxDepth {
				return errSearchTooLong
			}
			path := filepath.Join(directory, entry.Name())
			if entry.Name() == unit {
				found = append(found, path)
			} else if err := walk(path, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(g.root, 1); err != nil {
		return "", fmt.Errorf("control group of %s: %w after %d", unit, err, directories)
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	default:
		return "", fmt.Errorf("control group of %s: ambiguous, %s", unit, strings.Join(found, ", "))
	}
}
