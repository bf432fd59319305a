package load

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// Vegeta's own encoder is the known answer: all columns but those of bodies and headers agree.
func TestRowsAreTheCSVOfVegeta(t *testing.T) {
	results := someResults()
	for i := range results {
		results[i].Attack, results[i].Method, results[i].URL = "night, one", "GET", `http://a/"b"`
		results[i].BytesIn, results[i].BytesOut = 256, 7
	}
	in := filepath.Join(t.TempDir(), "in.gob")
	writeRecords(t, in, results...)
	var ours, theirs bytes.Buffer
	if err := WriteRows(in, &ours); err != nil {
		t.Fatal(err)
	}
	encode := vegeta.NewCSVEncoder(&theirs)
	for i := range results {
		if err := encode(&results[i]); err != nil {
			t.Fatal(err)
		}
	}
	want, err := csv.NewReader(&theirs).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(&ours).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		want[i][11] = "" // headers
		if strings.Join(got[i], "|") != strings.Join(want[i], "|") {
			t.Errorf("row %d: %q, want %q", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
}

func TestRowsOfACutFileEndWithItsPosition(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.gob")
	whole := writeRecords(t, in, someResults()...)
	if err := os.WriteFile(in, whole[:len(whole)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := WriteRows(in, &out)
	if err == nil || !strings.Contains(err.Error(), "broken or cut off: record 4, which begins at") {
		t.Fatalf("got %v", err)
	}
}
