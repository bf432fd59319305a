package command

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pkg/sftp"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// copy uploads the `source` asset or directory to `remotePath` over SFTP.
func (p *Provider) copy(ctx context.Context, op operation) error {
	connection, _ := object(op.inputs, "connection")
	client, err := dial(ctx, connection, p.log.forCommand(op.urn, "none"))
	if err != nil {
		return err
	}
	defer client.Close()
	defer context.AfterFunc(ctx, func() { client.Close() })()
	remote, err := sftp.NewClient(client)
	if err != nil {
		return fmt.Errorf("start SFTP: %w", err)
	}
	defer remote.Close()

	target := stringOr(op.inputs, "remotePath", "")
	switch source := plain(op.inputs["source"]); {
	case source.IsAsset() && source.AssetValue().IsText():
		return uploadReader(remote, strings.NewReader(source.AssetValue().Text), target)
	case source.IsAsset() && source.AssetValue().IsPath():
		return uploadFile(remote, source.AssetValue().Path, target)
	case source.IsArchive() && source.ArchiveValue().IsPath():
		return uploadTree(remote, source.ArchiveValue().Path, target)
	default:
		return fmt.Errorf("source must be a StringAsset, a FileAsset or a FileArchive of a local path")
	}
}

// uploadTree copies dir to target/<base of dir>, or with a trailing slash on
// dir its contents to target, as rsync does. A file is copied as it is.
func uploadTree(remote *sftp.Client, dir, target string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return uploadFile(remote, dir, target)
	}
	if !strings.HasSuffix(dir, "/") {
		target = path.Join(target, filepath.Base(dir))
	}
	return filepath.WalkDir(dir, func(local string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, local)
		if err != nil {
			return err
		}
		to := path.Join(target, filepath.ToSlash(rel))
		if entry.IsDir() {
			return remote.MkdirAll(to)
		}
		return uploadFile(remote, local, to)
	})
}

func uploadFile(remote *sftp.Client, local, target string) error {
	if info, err := remote.Stat(target); err == nil && info.IsDir() {
		target = path.Join(target, filepath.Base(local))
	}
	f, err := os.Open(local)
	if err != nil {
		return err
	}
	defer f.Close()
	return uploadReader(remote, f, target)
}

func uploadReader(remote *sftp.Client, content io.Reader, target string) error {
	if err := remote.MkdirAll(path.Dir(target)); err != nil {
		return fmt.Errorf("create directory %s: %w", path.Dir(target), err)
	}
	f, err := remote.Create(target)
	if err != nil {
		return fmt.Errorf("create %s: %w", target, err)
	}
	if _, err := io.Copy(f, content); err != nil {
		f.Close()
		return fmt.Errorf("write %s: %w", target, err)
	}
	return f.Close()
}

// sameCopy tells whether an update leaves both content and target as they are.
func sameCopy(olds, news resource.PropertyMap) bool {
	return olds["source"].DeepEquals(news["source"]) &&
		olds["remotePath"].DeepEquals(news["remotePath"])
}
