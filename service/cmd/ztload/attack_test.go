package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"ztbench/service/internal/load"
	"ztbench/service/internal/program"
)

var goodFlags = []string{
	"-targets", "t", "-output", "o", "-plan", "p", "-rate", "1000", "-duration", "10s",
}

func TestOpenConnectionsAreAsManyAsIdleOnesUnlessSaid(t *testing.T) {
	o, err := readAttackOptions(append(slices.Clone(goodFlags), "-connections", "8", "-h2c"))
	if err != nil || o.Client.MaxConnections != 8 || o.Client.Mode != load.H2C {
		t.Fatalf("%+v, %v", o.Client, err)
	}
}

func TestBadFlagsAreUsageErrorsThatNameTheFlag(t *testing.T) {
	for flags, want := range map[string]string{
		"-rate 0":                           "-rate",
		"-rate 1.5":                         "-rate",
		"-duration 0s":                      "-duration",
		"-duration 10":                      "-duration",
		"-arrival bursty":                   "-arrival",
		"-connections 0":                    "-connections",
		"-connections 8 -max-connections 4": "-max-connections",
		"-h2c -max-connections 64":          "-max-connections",
		"-h2c -http2":                       "-http2",
		"-workers 0":                        "-workers",
		"-workers 10 -max-workers 5":        "-max-workers",
		"-timeout 0s":                       "-timeout",
		"-cpus -1":                          "-cpus",
		"-max-body -2":                      "-max-body",
		"-prewarm 2s":                       "-prewarm",
		"-prewarm-rate 50":                  "-prewarm",
		"-prewarm -1s -prewarm-rate 50":     "-prewarm",
		"-plan=":                            "-plan",
		"-unknown":                          "-unknown",
	} {
		_, err := readAttackOptions(append(slices.Clone(goodFlags), strings.Fields(flags)...))
		var exit *program.Exit
		if !errors.As(err, &exit) || exit.Code != program.ExitUsage ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want a usage error that names %s", flags, err, want)
		}
	}
}

func TestTheSchemeMustGoWithTheVersion(t *testing.T) {
	plain := []vegeta.Target{{URL: "http://198.18.0.11/"}}
	secure := []vegeta.Target{{URL: "https://198.18.0.11/"}}
	for _, test := range []struct {
		mode    string
		targets []vegeta.Target
		ok      bool
	}{
		{load.HTTP1, plain, true}, {load.HTTP1, secure, true}, {load.H2C, plain, true},
		{load.H2C, secure, false}, {load.HTTP2, plain, false}, {load.HTTP2, secure, true},
	} {
		if err := checkScheme(test.mode, test.targets); (err == nil) != test.ok {
			t.Errorf("%s to %s: %v", test.mode, test.targets[0].URL, err)
		}
	}
}
