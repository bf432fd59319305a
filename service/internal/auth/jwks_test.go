package auth

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func keyText(kid, kty, alg string, modulus []byte) string {
	return fmt.Sprintf(`{"kty":%q,"use":"sig","alg":%q,"kid":%q,"n":%q,"e":"AQAB"}`,
		kty, alg, kid, base64.RawURLEncoding.EncodeToString(modulus))
}

func set(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }

func TestKeysOfOtherKindsArePassedOver(t *testing.T) {
	n := testKey().N.Bytes()
	keys, err := ParseKeys([]byte(set(
		keyText("a", "EC", "ES256", n), keyText("b", "RSA", "RS512", n),
		keyText("c", "RSA", "RS256", n),
	)))
	if err != nil || len(keys) != 1 || keys["c"] == nil || keys["c"].E != 65537 {
		t.Fatalf("%v, %v", keys, err)
	}
}

func TestAKeySetThatCannotBeTrustedIsRefused(t *testing.T) {
	n := testKey().N.Bytes()
	one := keyText("a", "RSA", "RS256", n)
	for name, text := range map[string]string{
		"not JSON":        "<html>",
		"no key":          set(),
		"no RSA key":      set(keyText("a", "EC", "ES256", n)),
		"repeated key id": set(one, one),
		"no key id":       set(keyText("", "RSA", "RS256", n)),
		"short modulus":   set(keyText("a", "RSA", "RS256", n[:128])),
		"broken modulus":  set(strings.Replace(one, `"n":"`, `"n":"!`, 1)),
		"exponent of one": set(strings.Replace(one, "AQAB", "AQ", 1)),
	} {
		if keys, err := ParseKeys([]byte(text)); err == nil {
			t.Errorf("%s: got %d keys", name, len(keys))
		}
	}
}

func TestFetchingTriesAgainUntilTheIssuerIsUp(t *testing.T) {
	var asked atomic.Int64
	text := set(keyText("a", "RSA", "RS256", testKey().N.Bytes()))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Write([]byte(text))
	}))
	defer server.Close()
	if _, err := FetchKeys(t.Context(), server.URL, 2); err == nil {
		t.Error("got keys after two attempts, though only the third can succeed")
	}
	if _, err := FetchKeys(t.Context(), server.URL, 2); err != nil {
		t.Error(err)
	}
}

func TestFetchingEndsAtItsDeadline(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := FetchKeys(ctx, server.URL, 1000); err == nil || time.Since(began) > 10*time.Second {
		t.Fatalf("%v after %s", err, time.Since(began))
	}
}
