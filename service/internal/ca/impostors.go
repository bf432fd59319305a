package ca

import (
	"fmt"
	"net/url"
	"os"
	"time"
)

const impostorLife = 24 * time.Hour

// Impostor is a certificate to try: by another authority of the same names if it is foreign.
type Impostor struct {
	Name    string
	ID      *url.URL
	Foreign bool
}

// WriteImpostors stores for each NAME-cert.pem and NAME-key.pem, and the root to check servers by.
func (a *Authority) WriteImpostors(directory string, impostors []Impostor) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return fmt.Errorf("impostors: %w", err)
	}
	foreign, err := newQuickAuthority()
	if err != nil {
		return err
	}
	files := map[string][]byte{RootFile: encodeCertificates(a.root)}
	for _, impostor := range impostors {
		key, err := newLeafKey()
		if err != nil {
			return fmt.Errorf("key: %w", err)
		}
		signer := a
		if impostor.Foreign {
			signer = foreign
		}
		chain, err := signer.Issue(key.Public(), impostor.ID, impostorLife)
		if err != nil {
			return err
		}
		files[impostor.Name+"-cert.pem"] = chain
		if files[impostor.Name+"-key.pem"], err = encodeKey(key); err != nil {
			return err
		}
	}
	return writeFiles(directory, files)
}
