// Package echo is the service under test: it says whom a request speaks for, in a body of fixed
// size, and counts what it saw.
package echo

import (
	"encoding/json"
	"strings"

	"ztbench/service/internal/auth"
)

const bodyEnd = "\"}\n"

// bodyWriter builds JSON bodies of the same length whatever the identity.
type bodyWriter struct {
	size    int
	padding string
}

func newBodyWriter(size int) bodyWriter { return bodyWriter{size, strings.Repeat("x", size)} }

// body returns a JSON object of exactly size bytes, or as long as the identity needs.
func (w bodyWriter) body(identity auth.Identity, proto string) []byte {
	b := make([]byte, 0, w.size+128)
	b = appendText(append(b, `{"user":`...), identity.User)
	b = appendText(append(b, `,"tenant":`...), identity.Tenant)
	b = appendText(append(b, `,"roles":`...), identity.Roles)
	b = appendText(append(b, `,"proto":`...), proto)
	b = append(b, `,"pad":"`...)
	if room := w.size - len(b) - len(bodyEnd); room > 0 {
		b = append(b, w.padding[:room]...)
	}
	return append(b, bodyEnd...)
}

func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			// Rare: only a caller's own header value can hold such bytes.
			quoted, _ := json.Marshal(text) // a string always marshals
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}
