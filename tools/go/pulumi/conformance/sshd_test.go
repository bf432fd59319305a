package conformance

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// sshServer is an OpenSSH server on the loopback with keys of its own.
type sshServer struct {
	port                 int
	hostKey, ecdsaKey    string // public, as in known_hosts
	clientKey, otherKey  string // private; the other one is not authorized
	otherHostKey, userID string
}

const sshdConfig = `Port %d
ListenAddress 127.0.0.1
HostKey %s
HostKey %s
AuthorizedKeysFile %s
PidFile none
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
MaxStartups 100:30:200
AcceptEnv ZTBENCH_* PULUMI_*
Subsystem sftp internal-sftp
`

// startSSHD starts a server that ends with the test.
func startSSHD(t *testing.T) *sshServer {
	t.Helper()
	binary := findSSHD(t)
	dir := t.TempDir()
	me, err := user.Current()
	must(t, err)
	s := &sshServer{port: freePort(t), userID: me.Username}
	var hostFile, ecdsaFile string
	hostFile, s.hostKey = newHostKey(t, dir, "ed25519")
	ecdsaFile, s.ecdsaKey = newHostKey(t, dir, "ecdsa")
	_, s.otherHostKey = newHostKey(t, t.TempDir(), "ed25519")
	clientFile, authorized := newHostKey(t, t.TempDir(), "ed25519")
	otherFile, _ := newHostKey(t, t.TempDir(), "ed25519")
	s.clientKey, s.otherKey = contentOf(t, clientFile), contentOf(t, otherFile)
	keys := filepath.Join(dir, "authorized_keys")
	must(t, os.WriteFile(keys, []byte(authorized+"\n"), 0o600))
	config := filepath.Join(dir, "sshd_config")
	text := fmt.Sprintf(sshdConfig, s.port, hostFile, ecdsaFile, keys)
	must(t, os.WriteFile(config, []byte(text), 0o600))

	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	cmd := exec.Command(binary, "-D", "-e", "-f", config)
	cmd.Stderr = log
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("sshd said:\n%s", contentOf(t, log.Name()))
		}
		log.Close()
	})
	eventually(t, "sshd listens", func() bool {
		conn, err := net.DialTimeout("tcp", s.address(), time.Second)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
	return s
}

// findSSHD fails the test where there is no server: a skipped conformance test
// would look like a passed one.
func findSSHD(t *testing.T) string {
	t.Helper()
	const binary = "/usr/sbin/sshd"
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("%s is missing: install it with "+
			"`node --import tsx tools/install.ts --with-tests` (Debian package openssh-server)", binary)
	}
	if os.Getuid() == 0 { // the service's unit would make it
		must(t, os.MkdirAll("/run/sshd", 0o755))
	}
	return binary
}

func (s *sshServer) address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// connection is what a stack gives as `connection`.
func (s *sshServer) connection() props {
	return props{
		"host": "127.0.0.1", "port": float64(s.port), "user": s.userID,
		"privateKey": secret(s.clientKey), "hostKey": s.hostKey, "dialErrorLimit": 2.0,
	}
}

// newHostKey writes a private key to dir and returns its file and public half.
func newHostKey(t *testing.T, dir, kind string) (file, public string) {
	t.Helper()
	var private any
	var err error
	if kind == "ecdsa" {
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		_, private, err = ed25519.GenerateKey(rand.Reader)
	}
	must(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	must(t, err)
	file = filepath.Join(dir, kind)
	must(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	return file, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func contentOf(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	must(t, err)
	return string(content)
}
