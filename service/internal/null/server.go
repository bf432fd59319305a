// Package null is a server that does as little as an HTTP/1.1 server can: it finds the end of each
// request's header and writes the same answer. What a load driver reaches against it is the
// ceiling of the driver and the path, not of a service.
package null

import (
	"context"
	"fmt"
	"net"
	"strings"

	"ztbench/service/internal/rawhttp"
)

// Answer is what every request gets: status 200 with a body of that many bytes.
func Answer(bodyBytes int) []byte {
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n",
		bodyBytes)
	return []byte(head + strings.Repeat("x", bodyBytes))
}

// Serve answers on a listener until ctx ends, and returns once every connection is closed.
// Requests must have no body.
func Serve(ctx context.Context, listener net.Listener, answer []byte) error {
	return rawhttp.Serve(ctx, listener, func(_ context.Context, connection net.Conn) {
		rawhttp.Requests(connection, func([]byte) error {
			_, err := connection.Write(answer)
			return err
		})
	})
}
