package nodejs

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// GetRequiredPackages reports the provider plugins of the program's direct
// npm dependencies, so that a missing plugin fails before the program starts.
func (h *Host) GetRequiredPackages(
	_ context.Context, req *pulumirpc.GetRequiredPackagesRequest,
) (*pulumirpc.GetRequiredPackagesResponse, error) {
	resp := &pulumirpc.GetRequiredPackagesResponse{}
	dir := req.GetInfo().GetProgramDirectory()
	manifestPath, err := findUp(dir, "package.json")
	if err != nil {
		return resp, nil
	}
	var manifest packageJSON
	if err := readJSON(manifestPath, &manifest); err != nil {
		return nil, err
	}
	for name := range manifest.Dependencies {
		relative := filepath.Join("node_modules", filepath.FromSlash(name), "package.json")
		path, err := findUp(dir, relative)
		if err != nil {
			continue // not installed: the program's own import reports it better
		}
		var dep packageJSON
		if err := readJSON(path, &dep); err != nil {
			return nil, err
		}
		if !dep.Pulumi.Resource {
			continue
		}
		resp.Packages = append(resp.Packages, &pulumirpc.PackageDependency{
			Kind:    "resource",
			Name:    firstNonEmpty(dep.Pulumi.Name, strings.TrimPrefix(dep.Name, "@pulumi/")),
			Version: firstNonEmpty(dep.Pulumi.Version, dep.Version),
			Server:  dep.Pulumi.Server,
		})
	}
	return resp, nil
}

func (h *Host) GetProgramDependencies(
	_ context.Context, req *pulumirpc.GetProgramDependenciesRequest,
) (*pulumirpc.GetProgramDependenciesResponse, error) {
	resp := &pulumirpc.GetProgramDependenciesResponse{}
	path, err := findUp(req.GetInfo().GetProgramDirectory(), "package.json")
	if err != nil {
		return resp, nil
	}
	var manifest packageJSON
	if err := readJSON(path, &manifest); err != nil {
		return nil, err
	}
	for name, version := range manifest.Dependencies {
		dependency := &pulumirpc.DependencyInfo{Name: name, Version: version}
		resp.Dependencies = append(resp.Dependencies, dependency)
	}
	return resp, nil
}

type packageJSON struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Dependencies map[string]string `json:"dependencies"`
	Pulumi       struct {
		Resource bool   `json:"resource"`
		Name     string `json:"name"`
		Version  string `json:"version"`
		Server   string `json:"server"`
	} `json:"pulumi"`
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// findUp returns the first existing dir/name, dir/../name, ... up to the root.
func findUp(dir, name string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no %s in %s or above", name, dir)
		}
		dir = parent
	}
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
