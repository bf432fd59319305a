package ca

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func id(t *testing.T, text string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// opened returns an authority as it comes back from its files.
func opened(t *testing.T) *Authority {
	t.Helper()
	made, err := newQuickAuthority()
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	if err := made.Write(directory); err != nil {
		t.Fatal(err)
	}
	found, err := Open(directory)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func requested(t *testing.T) (directory string, request []byte) {
	t.Helper()
	directory = t.TempDir()
	request, err := Request(directory)
	if err != nil {
		t.Fatal(err)
	}
	return directory, request
}

func TestASignedRequestIsAcceptedAndNamesWhomTheCallerSaid(t *testing.T) {
	authority := opened(t)
	directory, request := requested(t)
	name := id(t, "spiffe://test/ns/a/sa/b")
	chain, err := authority.Sign(request, name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := Accept(directory, chain, time.Now()); err != nil {
		t.Fatal(err)
	}
	signed, err := readCertificates(filepath.Join(directory, ChainFile))
	if err != nil {
		t.Fatal(err)
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	root, err := readCertificates(filepath.Join(directory, RootFile))
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(root[0])
	between.AddCert(signed[1])
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	options := x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: usages}
	if _, err := signed[0].Verify(options); err != nil {
		t.Error(err)
	}
	if got := identityOf(signed[0]); got != name.String() {
		t.Errorf("names %s, want %s", got, name)
	}
}

func TestAChainForAnotherKeyIsNotAccepted(t *testing.T) {
	authority := opened(t)
	directory, _ := requested(t)
	_, other := requested(t)
	chain, err := authority.Sign(other, id(t, "spiffe://test/a"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := Accept(directory, chain, time.Now()); err == nil ||
		!strings.Contains(err.Error(), "not for the key") {
		t.Errorf("got %v", err)
	}
}

func TestAChainIsAcceptedOnlyWhileItIsValid(t *testing.T) {
	authority := opened(t)
	directory, request := requested(t)
	for _, test := range []struct {
		ttl  time.Duration
		when time.Time
	}{
		{-time.Hour, time.Now()},
		{time.Hour, time.Now().Add(2 * time.Hour)},
		{time.Hour, time.Now().Add(-2 * time.Hour)},
	} {
		chain, err := authority.Sign(request, id(t, "spiffe://test/a"), test.ttl)
		if err != nil {
			t.Fatal(err)
		}
		if err := Accept(directory, chain, test.when); err == nil ||
			!strings.Contains(err.Error(), "certificate of spiffe://test/a: not valid at") {
			t.Errorf("%v: got %v", test, err)
		}
	}
}

func TestARequestThatItsHolderDidNotSignIsRefused(t *testing.T) {
	authority := opened(t)
	_, request := requested(t)
	block, _ := pem.Decode(request)
	block.Bytes[len(block.Bytes)-1] ^= 1
	if _, err := authority.Sign(pem.EncodeToMemory(block), id(t, "spiffe://test/a"), time.Hour); err ==
		nil {
		t.Error("signed")
	}
	if _, err := authority.Sign([]byte("nothing"), id(t, "spiffe://test/a"), time.Hour); err == nil {
		t.Error("signed nothing")
	}
}

func TestKeysAreReadableByTheirOwnerOnlyAndTheRootHasNone(t *testing.T) {
	made, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	if key, ok := made.key.(*rsa.PrivateKey); !ok || key.N.BitLen() != keyBits {
		t.Errorf("key is %T", made.key)
	}
	directory := t.TempDir()
	if err := made.Write(directory); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	secrets := 0
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "PRIVATE KEY") {
			secrets++
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s: mode %v", entry.Name(), info.Mode())
			}
		}
	}
	if secrets != 1 {
		t.Errorf("%d keys, want that of the intermediate alone", secrets)
	}
}

func TestImpostorsAreSignedByWhomTheyShouldBe(t *testing.T) {
	authority := opened(t)
	directory := t.TempDir()
	name := id(t, "spiffe://test/a")
	err := authority.WriteImpostors(directory, []Impostor{{"own", name, false}, {"other", name, true}})
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{"own-cert.pem": true, "other-cert.pem": false} {
		chain, err := readCertificates(filepath.Join(directory, file))
		if err != nil {
			t.Fatal(err)
		}
		if got := chain[0].CheckSignatureFrom(authority.cert) == nil; got != want {
			t.Errorf("%s: signed by the authority: %v, want %v", file, got, want)
		}
	}
}
