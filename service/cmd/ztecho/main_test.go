package main

import (
	"errors"
	"strings"
	"testing"

	"ztbench/service/internal/program"
)

const jwt = "-listen :8080 -auth jwt -issuer i -audience a -jwks "

func TestFlagsThatGoTogetherAreAccepted(t *testing.T) {
	for _, flags := range []string{
		"-listen :8080",
		"-listen 198.18.0.12:8080 -auth identity -admin 127.0.0.1:8081 -body-bytes 0",
		jwt + "http://198.18.0.13:8090/jwks.json",
	} {
		if _, err := readOptions(strings.Fields(flags)); err != nil {
			t.Errorf("%s: %v", flags, err)
		}
	}
}

func TestBadFlagsAreUsageErrorsThatNameTheFlag(t *testing.T) {
	for flags, want := range map[string]string{
		"":                                         "-listen",
		"-listen host":                             "-listen",
		"-listen :8080 -auth basic":                "-auth",
		"-listen :8080 -auth jwt":                  "-jwks",
		"-listen :8080 -issuer i":                  "-issuer",
		"-listen :8080 -admin 0.0.0.0:8081":        "-admin",
		"-listen :8080 -body-bytes -1":             "-body-bytes",
		jwt + "ftp://h/":                           "-jwks",
		jwt + "http://h/ -jwks-deadline 0s":        "-jwks-deadline",
		"-listen :8080 -auth jwt -jwks http://h/ ": "-issuer",
	} {
		_, err := readOptions(strings.Fields(flags))
		var exit *program.Exit
		if !errors.As(err, &exit) || exit.Code != program.ExitUsage ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want a usage error that names %s", flags, err, want)
		}
	}
}
