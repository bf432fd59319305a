package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strings"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"ztbench/service/internal/program"
)

// WriteTargets writes a targets file in vegeta's http format: one GET of url for each token, or a
// single one without tokens. The file is readable by its owner only, as it may hold tokens.
func WriteTargets(path, target string, headers, tokens []string) error {
	if u, err := url.Parse(target); err != nil || u.Host == "" ||
		u.Scheme != "http" && u.Scheme != "https" {
		return program.Usagef("-url: not an http or https URL, %q", target)
	}
	var common bytes.Buffer
	fmt.Fprintf(&common, "GET %s\n", target)
	for _, header := range headers {
		name, value, err := parseHeader(header)
		if err != nil {
			return err
		}
		fmt.Fprintf(&common, "%s: %s\n", name, value)
	}
	var out bytes.Buffer
	if len(tokens) == 0 {
		out.Write(common.Bytes())
		out.WriteByte('\n')
	}
	for _, token := range tokens {
		out.Write(common.Bytes())
		fmt.Fprintf(&out, "Authorization: Bearer %s\n\n", token)
	}
	return program.WriteFile(path, out.Bytes(), 0o600)
}

func parseHeader(header string) (name, value string, err error) {
	name, value, found := strings.Cut(header, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !found || name == "" || value == "" || strings.ContainsAny(header, "\r\n") ||
		strings.ContainsAny(name, " \t@#") {
		// The value is not repeated: it may be a secret.
		return "", "", program.Usagef("-header: not a header, %q, want \"name: value\"", name)
	}
	return textproto.CanonicalMIMEHeaderKey(name), value, nil
}

// ReadTokens returns the lines of a token file.
func ReadTokens(path string) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	defer file.Close()
	var tokens []string
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		token := lines.Text()
		if token == "" || strings.ContainsAny(token, " \t\r") {
			return nil, program.BadDocumentf("%s:%d: not a token, %d bytes", path, number, len(token))
		}
		tokens = append(tokens, token)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("tokens: %s: %w", path, err)
	}
	if len(tokens) == 0 {
		return nil, program.BadDocumentf("%s:1: no token, the file is empty", path)
	}
	return tokens, nil
}

// ReadTargets reads all of a targets file, so that none is parsed during the attack.
func ReadTargets(path string) ([]vegeta.Target, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("targets: %w", err)
	}
	defer file.Close()
	var targets []vegeta.Target
	next := vegeta.NewHTTPTargeter(file, nil, http.Header{})
	for {
		var target vegeta.Target
		err := next.Decode(&target)
		if errors.Is(err, vegeta.ErrNoTargets) {
			break
		}
		if err != nil {
			// Vegeta's message quotes the line, which may hold a token.
			return nil, program.BadDocumentf("%s: target %d: not in vegeta's http format",
				path, len(targets)+1)
		}
		targets = append(targets, target)
	}
	if len(targets) == 0 {
		return nil, program.BadDocumentf("%s: no target in it", path)
	}
	return targets, nil
}
