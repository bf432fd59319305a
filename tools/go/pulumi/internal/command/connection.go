package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

const (
	firstDialPause = 100 * time.Millisecond
	dialPauseRatio = 1.5
	maxDialPause   = 5 * time.Second
)

// dial connects to the host that an input `connection` describes, through its
// proxy if it has one.
func dial(
	ctx context.Context, connection resource.PropertyMap, log commandLog,
) (*ssh.Client, error) {
	direct := func(ctx context.Context, network, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	proxy, ok := object(connection, "proxy")
	if !ok {
		return dialOne(ctx, connection, direct, log)
	}
	jump, err := dialOne(ctx, proxy, direct, log)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	client, err := dialOne(ctx, connection, jump.DialContext, log)
	if err != nil {
		jump.Close()
		return nil, err
	}
	go func() {
		_ = client.Wait()
		jump.Close()
	}()
	return client, nil
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dialOne makes one SSH connection, trying again up to dialErrorLimit times.
func dialOne(
	ctx context.Context, connection resource.PropertyMap, dial dialFunc, log commandLog,
) (*ssh.Client, error) {
	address := net.JoinHostPort(
		stringOr(connection, "host", ""), strconv.Itoa(int(numberOr(connection, "port", 22))))
	config, err := clientConfig(connection)
	if err != nil {
		return nil, fmt.Errorf("connection to %s: %w", address, err)
	}
	limit := int(numberOr(connection, "dialErrorLimit", 10))
	perDial := time.Duration(numberOr(connection, "perDialTimeout", 15) * float64(time.Second))

	pause := firstDialPause
	for failures := 1; ; failures++ {
		client, err := dialOnce(ctx, address, config, dial, perDial)
		if err == nil {
			return client, nil
		}
		if errors.Is(err, errHostKey) || ctx.Err() != nil || (limit >= 0 && failures > limit) {
			return nil, fmt.Errorf("connection to %s failed %d time(s): %w", address, failures, err)
		}
		log.status(fmt.Sprintf("connection to %s failed (%d of %d): %v", address, failures, limit+1, err))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(time.Duration(float64(pause)*dialPauseRatio), maxDialPause)
	}
}

func dialOnce(
	ctx context.Context, address string, config *ssh.ClientConfig,
	dial dialFunc, timeout time.Duration,
) (*ssh.Client, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	// The handshake has no context of its own: closing the socket ends it.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	sshConn, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return ssh.NewClient(sshConn, channels, requests), nil
}

var errHostKey = errors.New("host key mismatch")

func clientConfig(connection resource.PropertyMap) (*ssh.ClientConfig, error) {
	config := &ssh.ClientConfig{
		User:            stringOr(connection, "user", "root"),
		HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	}
	if line := stringOr(connection, "hostKey", ""); line != "" {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("hostKey: %w", err)
		}
		check := ssh.FixedHostKey(key)
		config.HostKeyAlgorithms = hostKeyAlgorithms(key.Type())
		config.HostKeyCallback = func(hostname string, remote net.Addr, offered ssh.PublicKey) error {
			if err := check(hostname, remote, offered); err != nil {
				return fmt.Errorf("%w: expected %s, the server offered %s",
					errHostKey, ssh.FingerprintSHA256(key), ssh.FingerprintSHA256(offered))
			}
			return nil
		}
	}
	if key := stringOr(connection, "privateKey", ""); key != "" {
		signer, err := parsePrivateKey(key, stringOr(connection, "privateKeyPassword", ""))
		if err != nil {
			return nil, fmt.Errorf("privateKey: %w", err)
		}
		config.Auth = append(config.Auth, ssh.PublicKeys(signer))
	}
	if password := stringOr(connection, "password", ""); password != "" {
		config.Auth = append(config.Auth, ssh.Password(password), ssh.KeyboardInteractive(
			func(_, _ string, questions []string, _ []bool) ([]string, error) {
				answers := make([]string, len(questions))
				for i := range answers {
					answers[i] = password
				}
				return answers, nil
			}))
	}
	if socket := stringOr(connection, "agentSocketPath", os.Getenv("SSH_AUTH_SOCK")); socket != "" {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return nil, fmt.Errorf("SSH agent: %w", err)
		}
		config.Auth = append(config.Auth, ssh.PublicKeysCallback(agent.NewClient(conn).Signers))
	}
	return config, nil
}

// hostKeyAlgorithms makes the server offer the kind of key that is expected.
func hostKeyAlgorithms(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return []string{keyType}
}

func parsePrivateKey(key, password string) (ssh.Signer, error) {
	if password != "" {
		return ssh.ParsePrivateKeyWithPassphrase([]byte(key), []byte(password))
	}
	return ssh.ParsePrivateKey([]byte(key))
}
