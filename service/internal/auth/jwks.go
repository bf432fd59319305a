package auth

import (
	"context"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"time"
)

const (
	jwksLimitBytes = 1 << 20
	minKeyBits     = 2048
)

// ParseKeys reads a JWK set and returns its RS256 signing keys by key id. Keys of other kinds are
// passed over; a set without a usable key, or with a broken or repeated one, is an error.
func ParseKeys(set []byte) (map[string]*rsa.PublicKey, error) {
	var document struct {
		Keys []struct{ Kty, Use, Alg, Kid, N, E string }
	}
	if err := json.Unmarshal(set, &document); err != nil {
		return nil, fmt.Errorf("key set: not JSON: %w", err)
	}
	keys := map[string]*rsa.PublicKey{}
	for i, k := range document.Keys {
		if k.Kty != "RSA" || k.Use != "" && k.Use != "sig" || k.Alg != "" && k.Alg != "RS256" {
			continue
		}
		key, err := parseKey(k.N, k.E)
		if err != nil {
			return nil, fmt.Errorf("key set: key %d: %w", i+1, err)
		}
		if k.Kid == "" || keys[k.Kid] != nil {
			return nil, fmt.Errorf("key set: key %d: key id missing or repeated, %q", i+1, k.Kid)
		}
		keys[k.Kid] = key
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("key set: no RS256 key among %d", len(document.Keys))
	}
	return keys, nil
}

func parseKey(modulus, exponent string) (*rsa.PublicKey, error) {
	n, err := base64.RawURLEncoding.DecodeString(modulus)
	if err != nil {
		return nil, fmt.Errorf("modulus: %w", err)
	}
	e, err := base64.RawURLEncoding.DecodeString(exponent)
	if err != nil {
		return nil, fmt.Errorf("exponent: %w", err)
	}
	key := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	if bits := key.N.BitLen(); bits < minKeyBits {
		return nil, fmt.Errorf("modulus: too short, %d bits, at least %d", bits, minKeyBits)
	}
	if len(e) > 4 || key.E < 3 || key.E%2 == 0 {
		return nil, fmt.Errorf("exponent: not usable, %d bytes", len(e))
	}
	return key, nil
}

// FetchKeys gets and parses the key set at url. It tries at most attempts times, 200 ms apart, and
// gives up when ctx ends; an answer that is not a key set is final.
func FetchKeys(ctx context.Context, url string, attempts int) (map[string]*rsa.PublicKey, error) {
	var last error
	for range attempts {
		set, err := fetch(ctx, url)
		if err == nil {
			return ParseKeys(set)
		}
		last = err
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("key set: %s not fetched in time: %w", url, last)
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil, fmt.Errorf("key set: %s not fetched in %d attempts: %w", url, attempts, last)
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	// No proxy: an issuer on the lab's own network must never be asked for through one.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d, want 200", response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, jwksLimitBytes+1))
	if err == nil && len(body) > jwksLimitBytes {
		err = fmt.Errorf("longer than %d bytes", jwksLimitBytes)
	}
	return body, err
}
