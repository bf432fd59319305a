package load

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"ztbench/service/internal/program"
)

func writeRecords(t testing.TB, path string, results ...vegeta.Result) []byte {
	t.Helper()
	var out bytes.Buffer
	encode := vegeta.NewEncoder(&out)
	for i := range results {
		if err := encode(&results[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func someResults() []vegeta.Result {
	at := time.Unix(1_700_000_000, 123_456_789)
	return []vegeta.Result{
		{Seq: 0, Timestamp: at, Latency: 1500 * time.Microsecond, Code: 200},
		{Seq: 2, Timestamp: at.Add(2), Latency: 5 * time.Second, Error: `Get "http://a,b": time-out`},
		{Seq: 1, Timestamp: at.Add(1), Latency: 1, Code: 503, Error: "503 one\nline, two"},
		{Seq: 3, Timestamp: at.Add(3), Latency: 7, Code: 200},
	}
}

func TestEncodedRowsAreTheRecordsInTheirOrder(t *testing.T) {
	directory := t.TempDir()
	in, out := filepath.Join(directory, "in.gob"), filepath.Join(directory, "out.csv.gz")
	writeRecords(t, in, someResults()...)
	rows, err := Encode([]string{in}, out)
	if err != nil || rows != 4 {
		t.Fatalf("%d rows, %v", rows, err)
	}
	file, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(unzipped).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"seq", "timestampNs", "latencyNs", "code", "error"},
		{"0", "1700000000123456789", "1500000", "200", ""},
		{"2", "1700000000123456791", "5000000000", "0", `Get "http://a,b": time-out`},
		{"1", "1700000000123456790", "1", "503", "503 one\nline, two"},
		{"3", "1700000000123456792", "7", "200", ""},
	}
	for i := range want {
		if strings.Join(got[i], "|") != strings.Join(want[i], "|") {
			t.Errorf("row %d is %q, want %q", i, got[i], want[i])
		}
	}
}

func TestATruncatedFileIsRefusedWithItsPositionAndNoRowsAreLeft(t *testing.T) {
	directory := t.TempDir()
	in, out := filepath.Join(directory, "in.gob"), filepath.Join(directory, "out.csv.gz")
	three := len(writeRecords(t, in, someResults()[:3]...))
	whole := writeRecords(t, in, someResults()...)
	for _, cut := range []int{0, 1, 40, three + 1, len(whole) - 1} {
		if err := os.WriteFile(in, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Encode([]string{in}, out)
		var exit *program.Exit
		if !errors.As(err, &exit) || exit.Code != program.ExitBadDocument {
			t.Errorf("cut at %d: %v; want exit code 3", cut, err)
		}
		if cut == len(whole)-1 && !strings.Contains(err.Error(), "record 4, which begins at byte") {
			t.Errorf("no position in %q", err)
		}
		if left, _ := filepath.Glob(filepath.Join(directory, "out*")); len(left) != 0 {
			t.Errorf("cut at %d: left %v", cut, left)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	directory := b.TempDir()
	in := filepath.Join(directory, "in.gob")
	results := make([]vegeta.Result, 100_000)
	for i := range results {
		at := time.Unix(1_700_000_000, int64(i)*1_000_000)
		results[i] = vegeta.Result{
			Seq: uint64(i), Timestamp: at, Latency: time.Duration(200_000 + i*7919%90_000), Code: 200,
			Method: "GET", URL: "http://198.18.0.12:8080/",
		}
	}
	writeRecords(b, in, results...)
	for b.Loop() {
		if _, err := Encode([]string{in}, filepath.Join(directory, "out.csv.gz")); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(results)*b.N)/b.Elapsed().Seconds(), "rows/s")
}
