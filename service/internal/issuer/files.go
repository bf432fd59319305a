package issuer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ztbench/service/internal/program"
)

// WriteTokens writes valid.txt with count tokens, one a line, and a file with one token for each
// kind that must be refused. The files are readable by their owner only; each is replaced whole.
func WriteTokens(mint *Mint, directory string, count int) error {
	valid, err := mint.Valid(count)
	if err != nil {
		return err
	}
	files, err := mint.Refused()
	if err != nil {
		return err
	}
	files["valid"] = strings.Join(valid, "\n")
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return fmt.Errorf("token directory: %w", err)
	}
	for name, text := range files {
		path := filepath.Join(directory, name+".txt")
		if err := program.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}
