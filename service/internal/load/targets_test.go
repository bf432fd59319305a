package load

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEachTokenBecomesATargetThatVegetaReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "targets.txt")
	headers := []string{"x-user-id: user-1", "x-tenant-id:tenant-1"}
	tokens := []string{"aa", "bb"}
	if err := WriteTargets(path, "http://198.18.0.11:8080/a", headers, tokens); err != nil {
		t.Fatal(err)
	}
	targets, err := ReadTargets(path)
	if err != nil || len(targets) != 2 {
		t.Fatalf("%d targets, %v", len(targets), err)
	}
	second := targets[1]
	if second.URL != "http://198.18.0.11:8080/a" || second.Method != "GET" ||
		second.Header.Get("Authorization") != "Bearer bb" ||
		second.Header.Get("X-Tenant-Id") != "tenant-1" {
		t.Fatalf("%+v", second)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestWithoutTokensThereIsOneTarget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "targets.txt")
	if err := WriteTargets(path, "http://198.18.0.11/", nil, nil); err != nil {
		t.Fatal(err)
	}
	if targets, err := ReadTargets(path); err != nil || len(targets) != 1 {
		t.Fatalf("%d targets, %v", len(targets), err)
	}
}

func TestBadURLsAndHeadersAreRefusedWithoutRepeatingTheValue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "targets.txt")
	for _, url := range []string{"", "host:80/", "ftp://host/", "http://"} {
		if err := WriteTargets(path, url, nil, nil); err == nil {
			t.Errorf("accepted the URL %q", url)
		}
	}
	for _, header := range []string{
		"secret", ": secret", "a:", "a b: secret", "a: secret\nb: c", "@f: secret",
	} {
		err := WriteTargets(path, "http://h/", []string{header}, nil)
		if err == nil || strings.Contains(err.Error(), "secret") && header != "secret" {
			t.Errorf("header %q: %v", header, err)
		}
	}
}

func TestABrokenTokenOrTargetsFileIsRefusedWithoutRepeatingIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file.txt")
	for _, text := range []string{"", "secret\n\nsecret\n", "secret secret\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadTokens(path); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("tokens %q: %v", text, err)
		}
	}
	for _, text := range []string{"", "# none\n", "GET http://h/\nsecret\n", "secret\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadTargets(path); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("targets %q: %v", text, err)
		}
	}
}
