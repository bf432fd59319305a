package issuer

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ztbench/service/internal/auth"
	"ztbench/service/internal/program"
)

var testTerms = Terms{Issuer: "https://i.test", Audience: "echo", TTL: time.Hour, TokenBytes: 680}

var testMint = sync.OnceValues(func() (*Mint, error) { return NewMint(testTerms) })

func mustMint(t *testing.T) (*Mint, *auth.Verifier) {
	t.Helper()
	mint, err := testMint()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := auth.ParseKeys(mint.KeySet())
	if err != nil {
		t.Fatal(err)
	}
	return mint, auth.NewVerifier(keys, testTerms.Issuer, testTerms.Audience)
}

func readTokens(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: mode %v, %v; want 0600", path, info.Mode(), err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func TestValidTokensAreDistinctOfTheWishedLengthAndAccepted(t *testing.T) {
	mint, verifier := mustMint(t)
	directory := filepath.Join(t.TempDir(), "tokens")
	if err := WriteTokens(mint, directory, 12); err != nil {
		t.Fatal(err)
	}
	tokens, users := readTokens(t, filepath.Join(directory, "valid.txt")), map[string]bool{}
	for _, token := range tokens {
		identity, reason, ok := verifier.Verify(token)
		if !ok || identity.Tenant == "" || identity.Roles != "reader,writer" {
			t.Errorf("%+v, refused for %v", identity, reason)
		}
		if n := len(token); n < testTerms.TokenBytes-2 || n > testTerms.TokenBytes {
			t.Errorf("%d bytes, want %d or up to two less", n, testTerms.TokenBytes)
		}
		users[identity.User] = true
	}
	if len(tokens) != 12 || len(users) != 12 {
		t.Errorf("%d tokens of %d users, want 12 of 12", len(tokens), len(users))
	}
}

func TestEachBadTokenIsRefusedForTheOneThingThatIsWrongWithIt(t *testing.T) {
	mint, verifier := mustMint(t)
	directory := t.TempDir()
	if err := WriteTokens(mint, directory, 1); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]auth.Reason{
		"expired": auth.Expired, "bad-signature": auth.Signature,
		"wrong-audience": auth.Audience, "foreign-issuer": auth.Issuer,
	} {
		tokens := readTokens(t, filepath.Join(directory, name+".txt"))
		if _, reason, ok := verifier.Verify(tokens[0]); ok || reason != want || len(tokens) != 1 {
			t.Errorf("%s: accepted %v, reason %v; want %v", name, ok, reason, want)
		}
	}
}

func TestTokensThatCannotBeSoShortAreAUsageError(t *testing.T) {
	mint, _ := mustMint(t)
	short := *mint
	short.terms.TokenBytes = 400
	_, err := short.Valid(1)
	var exit *program.Exit
	if !errors.As(err, &exit) || exit.Code != program.ExitUsage {
		t.Fatalf("got %v, want a usage error", err)
	}
}

func TestTheKeySetIsServedAndFetchesAreCounted(t *testing.T) {
	mint, _ := mustMint(t)
	server := httptest.NewServer(Handler(mint.KeySet(), 5))
	defer server.Close()
	for range 2 {
		if _, err := auth.FetchKeys(t.Context(), server.URL+"/jwks.json", 1); err != nil {
			t.Fatal(err)
		}
	}
	response, err := http.Get(server.URL + "/stats")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var stats struct{ JwksFetches, Tokens int }
	if err := json.NewDecoder(response.Body).Decode(&stats); err != nil {
		t.Fatal(err)
	}
	if stats.JwksFetches != 2 || stats.Tokens != 5 {
		t.Fatalf("%+v, want 2 fetches and 5 tokens", stats)
	}
}
