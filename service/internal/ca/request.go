package ca

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

const leafKeyFile = "key.pem"

// Request makes a key in the directory and returns a request to sign its public half.
func Request(directory string) ([]byte, error) {
	key, err := newLeafKey()
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, new(x509.CertificateRequest), key)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	text, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	if err := writeFiles(directory, map[string][]byte{leafKeyFile: text}); err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: requestBlock, Bytes: der}), nil
}

// Sign issues a chain for whoever holds the key of the request. Whom it names is decided by the
// caller, never by the request.
func (a *Authority) Sign(request []byte, id *url.URL, ttl time.Duration) ([]byte, error) {
	block, _ := pem.Decode(request)
	if block == nil || block.Type != requestBlock {
		return nil, errors.New("request: no certificate request in it, want one in PEM")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	if err := parsed.CheckSignature(); err != nil {
		return nil, fmt.Errorf("request: not made by the holder of its key: %w", err)
	}
	return a.Issue(parsed.PublicKey, id, ttl)
}

// Accept stores a chain beside the key that Request has made, once it is sure that they belong
// together and that the chain is valid now.
func Accept(directory string, chain []byte, now time.Time) error {
	key, err := readKey(filepath.Join(directory, leafKeyFile))
	if err != nil {
		return err
	}
	certificates, err := decodeCertificates(chain, "chain")
	if err != nil {
		return err
	}
	if len(certificates) < 2 {
		return errors.New("chain: a single certificate, want a leaf, its signers and the root")
	}
	leaf := certificates[0]
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(leaf.PublicKey) {
		return fmt.Errorf("chain: not for the key in %s", directory)
	}
	if now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		return fmt.Errorf("certificate of %s: not valid at %s, valid from %s to %s", identityOf(leaf),
			now.UTC().Format(time.RFC3339), leaf.NotBefore.UTC().Format(time.RFC3339),
			leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return writeFiles(directory, map[string][]byte{
		ChainFile: encodeCertificates(certificates[:len(certificates)-1]...),
		RootFile:  encodeCertificates(certificates[len(certificates)-1]),
	})
}

func identityOf(leaf *x509.Certificate) string {
	if len(leaf.URIs) == 0 {
		return "nobody"
	}
	return leaf.URIs[0].String()
}
