package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/archive"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
)

func textAsset(t *testing.T, text string) *asset.Asset {
	t.Helper()
	a, err := asset.FromText(text)
	must(t, err)
	return a
}

func TestCopyOfAStringMakesTheFileAndItsDirectories(t *testing.T) {
	p, s := startPlugin(t), startSSHD(t)
	target := filepath.Join(t.TempDir(), "a", "b", "file")
	d := p.mustCreate(t, copyToRemote, props{
		"connection": s.connection(), "source": textAsset(t, "content\n"), "remotePath": target,
	})
	if got := contentOf(t, target); got != "content\n" {
		t.Errorf("content %q", got)
	}
	p.mustDelete(t, d)
	if !isWritten(target)() {
		t.Error("delete removed the copy: the stacks count on it staying")
	}
}

func TestCopyOfAFileGoesToAPathOrIntoADirectory(t *testing.T) {
	p, s := startPlugin(t), startSSHD(t)
	local := filepath.Join(t.TempDir(), "local")
	must(t, os.WriteFile(local, []byte("bytes\x00\xff"), 0o600))
	source, err := asset.FromPath(local)
	must(t, err)
	dir := t.TempDir()
	for target, want := range map[string]string{
		filepath.Join(dir, "named"): filepath.Join(dir, "named"),
		dir:                         filepath.Join(dir, "local"),
	} {
		p.mustCreate(t, copyToRemote, props{
			"connection": s.connection(), "source": source, "remotePath": target,
		})
		if got := contentOf(t, want); got != "bytes\x00\xff" {
			t.Errorf("%s: content %q", want, got)
		}
	}
}

func TestCopyOfADirectoryKeepsItsTree(t *testing.T) {
	p, s := startPlugin(t), startSSHD(t)
	local := filepath.Join(t.TempDir(), "tree")
	must(t, os.MkdirAll(filepath.Join(local, "sub"), 0o755))
	must(t, os.WriteFile(filepath.Join(local, "top"), []byte("1"), 0o600))
	must(t, os.WriteFile(filepath.Join(local, "sub", "leaf"), []byte("2"), 0o600))
	for source, below := range map[string]string{local: "tree", local + "/": "."} {
		tree, err := archive.FromPath(source)
		must(t, err)
		dir := t.TempDir()
		p.mustCreate(t, copyToRemote, props{
			"connection": s.connection(), "source": tree, "remotePath": dir,
		})
		if got := contentOf(t, filepath.Join(dir, below, "sub", "leaf")); got != "2" {
			t.Errorf("%s: leaf %q", source, got)
		}
		if got := contentOf(t, filepath.Join(dir, below, "top")); got != "1" {
			t.Errorf("%s: top %q", source, got)
		}
	}
}

func TestChangedSourceIsCopiedAgain(t *testing.T) {
	p, s := startPlugin(t), startSSHD(t)
	target := filepath.Join(t.TempDir(), "file")
	inputs := props{
		"connection": s.connection(), "source": textAsset(t, "old"), "remotePath": target,
	}
	d := p.mustCreate(t, copyToRemote, inputs)
	changed := with(inputs, props{"source": textAsset(t, "new, longer")})
	if changes, replaces := p.diff(t, d, changed); !changes || replaces {
		t.Errorf("changes %t, replaces %t", changes, replaces)
	}
	p.mustUpdate(t, d, changed)
	if got := contentOf(t, target); got != "new, longer" {
		t.Errorf("content %q", got)
	}
}

func TestCopyToAPlaceThatCannotBeFails(t *testing.T) {
	p, s := startPlugin(t), startSSHD(t)
	_, err := p.create(t, copyToRemote, props{
		"connection": s.connection(), "source": textAsset(t, "x"), "remotePath": "/proc/none/file",
	})
	if err == nil {
		t.Error("no error")
	}
}
