package probe

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
)

// connectionState is what became of the connection of a probe.
type connectionState struct {
	made atomic.Bool
	// The other side ended it.
	ended atomic.Bool
}

// watchedConn notes when the other side ends the connection. What the transport then says depends
// on what was under way, and need not name the reason.
type watchedConn struct {
	net.Conn
	ended *atomic.Bool
}

func (c watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.note(err)
}

func (c watchedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.note(err)
}

func (c watchedConn) note(err error) error {
	if endedByPeer(err) {
		c.ended.Store(true)
	}
	return err
}

// endedByPeer says whether the other side has refused the connection or ended it.
func endedByPeer(err error) bool {
	for _, kind := range []error{
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	// HTTP/2 over TLS does not tell what ended a connection before a request was sent on it, by any
	// other means than this.
	return err != nil && strings.HasSuffix(err.Error(), "client conn could not be established")
}
