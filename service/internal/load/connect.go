package load

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// bodyBytesMax bounds what is read of an answer; bodies of a plan are at most a MiB.
const bodyBytesMax = 2 << 20

// Connection is what one request on a connection of its own took.
type Connection struct {
	// ConnectNs is the time until the connection stood, its TLS handshake not counted.
	ConnectNs int64 `json:"connectNs"`
	// HandshakeNs is the time that TLS took, 0 without it.
	HandshakeNs int64 `json:"handshakeNs"`
	// FirstByteNs is the time from a connection that stands to the first byte of the answer.
	FirstByteNs int64  `json:"firstByteNs"`
	Status      int    `json:"status"`
	Bytes       int    `json:"bytes"`
	SHA256      string `json:"sha256"`
	Error       string `json:"error,omitempty"`
}

// Connect sends count requests one after another, each on a new connection, and reads the answers
// whole. A request that failed is a result and no error; it is the last, since a path that is gone
// would cost a time-out each.
func Connect(
	ctx context.Context, target *vegeta.Target, count int, o ClientOptions,
) ([]Connection, error) {
	found := make([]Connection, 0, count)
	for range count {
		if err := ctx.Err(); err != nil {
			return found, fmt.Errorf("connect: %w", err)
		}
		one, err := connectOnce(ctx, target, o)
		if err != nil {
			one.Error = err.Error()
		}
		if found = append(found, one); err != nil {
			break
		}
	}
	return found, nil
}

func connectOnce(
	ctx context.Context, target *vegeta.Target, o ClientOptions,
) (one Connection, err error) {
	o.Connections, o.MaxConnections = 1, 1
	client, err := newClient(o)
	if err != nil {
		return one, err
	}
	defer client.CloseIdleConnections()
	var began, connected time.Time
	var answer firstByte
	request, err := target.Request()
	if err != nil {
		return one, err
	}
	secured := request.URL.Scheme == "https"
	trace := httptrace.ClientTrace{
		ConnectStart: func(string, string) { began = time.Now() },
		ConnectDone: func(string, string, error) {
			one.ConnectNs = time.Since(began).Nanoseconds()
			connected = time.Now()
		},
		GotConn: func(httptrace.GotConnInfo) {
			now := time.Now()
			answer.startAt(now)
			// The transport tells of no handshake that it makes for HTTP/2, so the time until the
			// connection is handed out counts.
			if secured {
				one.HandshakeNs = now.Sub(connected).Nanoseconds()
			}
		},
		GotFirstResponseByte: func() { answer.cameAt(time.Now()) },
	}
	response, err := client.Do(request.WithContext(httptrace.WithClientTrace(ctx, &trace)))
	if err != nil {
		return one, err
	}
	defer response.Body.Close()
	err = one.read(response)
	one.FirstByteNs = answer.elapsed().Nanoseconds()
	return one, err
}

// firstByte times an answer from when its connection was handed out, and not from when its request
// was written: over HTTP/2 the transport tells of that so late that answers seem to take no time.
// It tells of answers from a goroutine of its own.
type firstByte struct {
	mutex         sync.Mutex
	started, came time.Time
}

func (f *firstByte) startAt(at time.Time) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.started = at
}

func (f *firstByte) cameAt(at time.Time) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.came = at
}

// elapsed is 0 if either was never told of.
func (f *firstByte) elapsed() time.Duration {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.started.IsZero() || f.came.IsZero() {
		return 0
	}
	return f.came.Sub(f.started)
}

func (c *Connection) read(response *http.Response) error {
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(response.Body, bodyBytesMax))
	c.Status, c.Bytes = response.StatusCode, int(n)
	c.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return err
}
