package conformance

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestHostKeyIsPinned(t *testing.T) {
	p, s := startPlugin(t), startSSHD(t)
	for name, key := range map[string]string{"ed25519": s.hostKey, "ecdsa": s.ecdsaKey} {
		_, err := p.create(t, remoteCommand, props{
			"connection": with(s.connection(), props{"hostKey": key}), "create": "true",
		})
		if err != nil {
			t.Errorf("right %s key: %v", name, err)
		}
	}
	started := time.Now()
	_, err := p.create(t, remoteCommand, props{
		"connection": with(s.connection(), props{"hostKey": s.otherHostKey, "dialErrorLimit": 10.0}),
		"create":     "true",
	})
	if err == nil {
		t.Fatal("wrong key: the command ran")
	}
	if !strings.Contains(err.Error(), "host key") {
		t.Errorf("wrong key: error %v", err)
	}
	if strings.Contains(err.Error(), "2 time") || time.Since(started) > 5*time.Second {
		t.Errorf("wrong key: tried again, %s, %v", time.Since(started), err)
	}
}

func TestMalformedHostKeyIsRefused(t *testing.T) {
	p, s := startPlugin(t), startSSHD(t)
	_, err := p.create(t, remoteCommand, props{
		"connection": with(s.connection(), props{"hostKey": "ssh-ed25519"}), "create": "true",
	})
	if err == nil || !strings.Contains(err.Error(), "hostKey") {
		t.Errorf("error %v", err)
	}
}

func TestUnauthorizedKeyFailsInBoundedTime(t *testing.T) {
	p, s := startPlugin(t), startSSHD(t)
	_, err := p.create(t, remoteCommand, props{
		"connection": with(s.connection(), props{"privateKey": s.otherKey, "dialErrorLimit": 1.0}),
		"create":     "true",
	})
	if err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
		t.Errorf("error %v", err)
	}
}

// countingListener accepts connections and hands them to treat.
func countingListener(t *testing.T, treat func(net.Conn)) (port float64, count *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	count = &atomic.Int32{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			treat(conn)
		}
	}()
	return float64(listener.Addr().(*net.TCPAddr).Port), count
}

func TestDialErrorLimitCountsTheRetries(t *testing.T) {
	p := startPlugin(t)
	port, count := countingListener(t, func(conn net.Conn) { conn.Close() })
	_, err := p.create(t, remoteCommand, props{
		"connection": props{"host": "127.0.0.1", "port": port, "dialErrorLimit": 2.0},
		"create":     "true",
	})
	if err == nil {
		t.Fatal("no error")
	}
	if got := count.Load(); got != 3 {
		t.Errorf("%d attempts, want 1 and 2 retries", got)
	}
}

func TestPerDialTimeoutBoundsASilentServer(t *testing.T) {
	p := startPlugin(t)
	port, count := countingListener(t, func(conn net.Conn) {
		t.Cleanup(func() { conn.Close() }) // never answers
	})
	started := time.Now()
	_, err := p.create(t, remoteCommand, props{
		"connection": props{
			"host": "127.0.0.1", "port": port, "perDialTimeout": 1.0, "dialErrorLimit": 1.0,
		},
		"create": "true",
	})
	if err == nil {
		t.Fatal("no error")
	}
	took := time.Since(started)
	if count.Load() != 2 || took < time.Second || took > 6*time.Second {
		t.Errorf("%d attempts in %s", count.Load(), took)
	}
}

func TestTimeoutBoundsDialling(t *testing.T) {
	standInOnly(t, "upstream goes on dialling")
	p := startPlugin(t)
	port, _ := countingListener(t, func(conn net.Conn) { conn.Close() })
	started := time.Now()
	_, err := p.createWithin(t, remoteCommand, props{
		"connection": props{"host": "127.0.0.1", "port": port, "dialErrorLimit": -1.0},
		"create":     "true",
	}, 1)
	if err == nil || time.Since(started) > 4*time.Second {
		t.Errorf("%s, error %v", time.Since(started), err)
	}
}

func TestProxyIsPassedThrough(t *testing.T) {
	p, jump, target := startPlugin(t), startSSHD(t), startSSHD(t)
	d := p.mustCreate(t, remoteCommand, props{
		"connection": with(target.connection(), props{"proxy": jump.connection()}),
		"create":     "echo ${SSH_CONNECTION##* }",
	})
	if got := d.text("stdout"); got != strings.TrimPrefix(target.address(), "127.0.0.1:") {
		t.Errorf("ran at port %s, not at the target's", got)
	}
}
