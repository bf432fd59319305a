package echo

import (
	"net/http"
	"time"

	"ztbench/service/internal/auth"
)

// Guard puts a check in front of the echo; nil lets every request pass.
type Guard func(next http.Handler, refusals *auth.Refusals) http.Handler

// Handler answers every path with the identity, in the X-User-Id header and in a JSON body of
// bodyBytes.
func Handler(stats *Stats, guard Guard, bodyBytes int) http.Handler {
	bodies := newBodyWriter(bodyBytes)
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		identity := auth.IdentityOf(r.Header)
		header := w.Header()
		header["Content-Type"] = []string{"application/json"}
		if identity.User != "" {
			header[auth.UserHeader] = []string{identity.User}
		}
		w.Write(bodies.body(identity, r.Proto))
	})
	if guard != nil {
		handler = guard(handler, &stats.Refusals)
	}
	return stats.count(handler)
}

// NewServer returns a server for HTTP/1.1 and cleartext HTTP/2 by prior knowledge.
func NewServer(stats *Stats, handler http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           handler,
		Protocols:         protocols,
		ConnState:         stats.track,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       5 * time.Minute,
	}
}
