package probe

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// newTLSConfig reads the files that a probe names; nil where it names none.
func newTLSConfig(p *Probe) (*tls.Config, error) {
	if p.TLS == nil {
		return nil, nil
	}
	text, err := os.ReadFile(p.TLS.CAFile)
	if err != nil {
		return nil, fmt.Errorf("roots: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("roots: no certificate in %s", p.TLS.CAFile)
	}
	config := &tls.Config{
		NextProtos:       p.TLS.ALPN,
		CurvePreferences: []tls.CurveID{tls.X25519},
		// The server's name is its SPIFFE ID, which is verified below; it has no other.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			return verifyServer(state.PeerCertificates, roots, p.TLS.ServerID)
		},
	}
	if p.TLS.CertFile == "" {
		return config, nil
	}
	certificate, err := tls.LoadX509KeyPair(p.TLS.CertFile, p.TLS.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	// Shown whatever authorities the server names: it is the server's answer that is wanted.
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &certificate, nil
	}
	return config, nil
}

func verifyServer(chain []*x509.Certificate, roots *x509.CertPool, id string) error {
	if len(chain) == 0 {
		return errors.New("server: shows no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	if found := spiffeIDOf(chain[0]); found != id {
		return fmt.Errorf("server: is %q, want %q", found, id)
	}
	return nil
}

func spiffeIDOf(c *x509.Certificate) string {
	if len(c.URIs) != 1 {
		return ""
	}
	return c.URIs[0].String()
}

func tlsFacts(state *tls.ConnectionState) *TLSFacts {
	if state == nil || len(state.PeerCertificates) == 0 {
		return nil
	}
	leaf := state.PeerCertificates[0]
	return &TLSFacts{
		// As Envoy writes it.
		Version: strings.ReplaceAll(tls.VersionName(state.Version), "TLS 1", "TLSv1"),
		Cipher:  tls.CipherSuiteName(state.CipherSuite),
		Group:   state.CurveID.String(),
		ALPN:    state.NegotiatedProtocol,
		KeyType: keyType(leaf),
		Peer:    spiffeIDOf(leaf),
	}
}

func keyType(c *x509.Certificate) string {
	switch key := c.PublicKey.(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("rsa-%d", key.N.BitLen())
	case *ecdsa.PublicKey:
		return "ecdsa-" + strings.ToLower(strings.ReplaceAll(key.Curve.Params().Name, "-", ""))
	default:
		return c.PublicKeyAlgorithm.String()
	}
}

// isAlert says whether the other side has refused the handshake.
func isAlert(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) && operation.Op == "remote error"
}
