// Package ca is a small certificate authority for bootstrapping a mesh: a root whose key is never
// stored, an intermediate that signs, and requests whose private keys never leave their host.
package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"ztbench/service/internal/program"
)

const (
	keyBits       = 2048
	authorityLife = 30 * 24 * time.Hour
	// The hosts' clocks need not agree to the second.
	clockSlack = time.Minute
)

// Names of the files that Istio expects of an authority that is plugged in.
const (
	RootFile  = "root-cert.pem"
	CertFile  = "ca-cert.pem"
	KeyFile   = "ca-key.pem"
	ChainFile = "cert-chain.pem"
)

// Authority signs leaves.
type Authority struct {
	root, cert *x509.Certificate
	key        crypto.Signer
}

// NewAuthority makes a root and an intermediate with RSA keys; the root's key is forgotten.
func NewAuthority() (*Authority, error) {
	return newAuthority(func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, keyBits) })
}

// newQuickAuthority does the same with keys that take no time to make.
func newQuickAuthority() (*Authority, error) { return newAuthority(newLeafKey) }

func newAuthority(newKey func() (crypto.Signer, error)) (*Authority, error) {
	rootKey, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("root key: %w", err)
	}
	key, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("intermediate key: %w", err)
	}
	template := authorityTemplate("ztbench root")
	root, err := create(template, template, rootKey.Public(), rootKey)
	if err != nil {
		return nil, err
	}
	template = authorityTemplate("ztbench intermediate")
	template.MaxPathLenZero = true
	cert, err := create(template, root, key.Public(), rootKey)
	if err != nil {
		return nil, err
	}
	return &Authority{root, cert, key}, nil
}

// Open reads what Write has written.
func Open(directory string) (*Authority, error) {
	root, err := readCertificates(filepath.Join(directory, RootFile))
	if err != nil {
		return nil, err
	}
	cert, err := readCertificates(filepath.Join(directory, CertFile))
	if err != nil {
		return nil, err
	}
	key, err := readKey(filepath.Join(directory, KeyFile))
	if err != nil {
		return nil, err
	}
	return &Authority{root[0], cert[0], key}, nil
}

// Write stores the authority under the names that Istio expects; only the key is secret.
func (a *Authority) Write(directory string) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return fmt.Errorf("authority: %w", err)
	}
	key, err := encodeKey(a.key)
	if err != nil {
		return err
	}
	return writeFiles(directory, map[string][]byte{
		RootFile:  encodeCertificates(a.root),
		CertFile:  encodeCertificates(a.cert),
		ChainFile: encodeCertificates(a.cert, a.root),
		KeyFile:   key,
	})
}

// Issue returns a chain for the public key: leaf, intermediate, root. A ttl that is not positive
// makes a certificate that has expired already.
func (a *Authority) Issue(public crypto.PublicKey, id *url.URL, ttl time.Duration) ([]byte, error) {
	now := time.Now()
	leaf, err := create(&x509.Certificate{
		NotBefore:   now.Add(-clockSlack + min(ttl, 0)),
		NotAfter:    now.Add(ttl),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		URIs:        []*url.URL{id},
	}, a.cert, public, a.key)
	if err != nil {
		return nil, err
	}
	return encodeCertificates(leaf, a.cert, a.root), nil
}

func authorityTemplate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:               pkix.Name{Organization: []string{"ztbench"}, CommonName: name},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(authorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
}

func create(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer,
) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

func newLeafKey() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func writeFiles(directory string, files map[string][]byte) error {
	for name, data := range files {
		mode := os.FileMode(0o644)
		if isSecret(name) {
			mode = 0o600
		}
		if err := program.WriteFile(filepath.Join(directory, name), data, mode); err != nil {
			return err
		}
	}
	return nil
}
