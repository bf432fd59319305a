package auth

import (
	"crypto/rsa"
	"errors"
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// Claims are those of the testbed's tokens. All of them are strings, so that every proxy can copy
// them into a header.
type Claims struct {
	User   string `json:"user_id"`
	Tenant string `json:"tenant_id"`
	Roles  string `json:"roles"`
	jwt.RegisteredClaims
}

// Verifier checks RS256 bearer tokens of one issuer for one audience.
type Verifier struct {
	keys   map[string]*rsa.PublicKey
	parser *jwt.Parser
}

var errUnknownKey = errors.New("no such key")

// NewVerifier returns a verifier with the keys as they are now; they are never fetched again.
func NewVerifier(keys map[string]*rsa.PublicKey, issuer, audience string) *Verifier {
	return &Verifier{keys, jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodRS256.Alg()}),
		jwt.WithIssuer(issuer), jwt.WithAudience(audience), jwt.WithExpirationRequired(),
	)}
}

// Verify returns the identity in the token, or the reason why it is refused.
func (v *Verifier) Verify(token string) (Identity, Reason, bool) {
	var claims Claims
	parsed, err := v.parser.ParseWithClaims(token, &claims, v.key)
	if err != nil {
		return Identity{}, reasonOf(parsed, err), false
	}
	if claims.User == "" || claims.Tenant == "" {
		return Identity{}, MissingClaim, false
	}
	return Identity{claims.User, claims.Tenant, claims.Roles}, 0, true
}

func (v *Verifier) key(token *jwt.Token) (any, error) {
	kid, _ := token.Header["kid"].(string)
	if key := v.keys[kid]; key != nil {
		return key, nil
	}
	return nil, errUnknownKey
}

func reasonOf(token *jwt.Token, err error) Reason {
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		return Malformed
	case errors.Is(err, errUnknownKey):
		return UnknownKey
	case token == nil, token.Method == nil, token.Method.Alg() != jwt.SigningMethodRS256.Alg():
		return Algorithm
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return Signature
	case errors.Is(err, jwt.ErrTokenExpired):
		return Expired
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return NotYetValid
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return Issuer
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return Audience
	default:
		return MissingClaim
	}
}

// RequireToken is the middleware around Verify. Identity headers of the caller are replaced by what
// the token says, so that nothing behind it can believe a forged one.
func (v *Verifier) RequireToken(next http.Handler, refusals *Refusals) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, reason, ok := bearer(r.Header)
		if !ok {
			refuse(w, refusals, reason)
			return
		}
		identity, reason, ok := v.Verify(token)
		if !ok {
			refuse(w, refusals, reason)
			return
		}
		identity.replaceIn(r.Header)
		next.ServeHTTP(w, r)
	})
}

func bearer(header http.Header) (string, Reason, bool) {
	switch values := header["Authorization"]; len(values) {
	case 0:
		return "", MissingToken, false
	case 1:
		scheme, token, found := strings.Cut(values[0], " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", MissingToken, false
		}
		return token, Malformed, found
	default:
		return "", DuplicateAuthorization, false
	}
}
