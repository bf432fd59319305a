// Package issuer makes keys and tokens for one testbed run, and serves the public half.
package issuer

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"ztbench/service/internal/auth"
	"ztbench/service/internal/program"
)

const keyBits = 2048

// Terms are what all tokens of an issuer have in common.
type Terms struct {
	Issuer, Audience string
	TTL              time.Duration
	// TokenBytes is the wished length; base64 makes it come out up to two bytes shorter.
	TokenBytes int
}

// Mint signs tokens with a key of its own. A second key, which is in no key set, makes tokens that
// look right and must be refused.
type Mint struct {
	terms        Terms
	key, foreign *rsa.PrivateKey
	kid          string
	now          time.Time
}

// NewMint makes the keys, some tenths of a second of work.
func NewMint(terms Terms) (*Mint, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	foreign, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, fmt.Errorf("foreign key: %w", err)
	}
	// Distinct per run: a cache that holds the keys of an earlier run must miss.
	kid := make([]byte, 8)
	rand.Read(kid)
	return &Mint{terms, key, foreign, base64.RawURLEncoding.EncodeToString(kid), time.Now()}, nil
}

// KeySet returns the public signing key as a JWK set.
func (m *Mint) KeySet() []byte {
	encode := base64.RawURLEncoding.EncodeToString
	set, _ := json.Marshal(map[string]any{"keys": []map[string]string{{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": m.kid,
		"n": encode(m.key.N.Bytes()), "e": encode(big.NewInt(int64(m.key.E)).Bytes()),
	}}}) // strings only: it always marshals
	return set
}

// Valid returns count tokens that differ in user and token id.
func (m *Mint) Valid(count int) ([]string, error) {
	tokens := make([]string, count)
	for i := range tokens {
		var err error
		if tokens[i], err = m.sign(m.key, m.claims(i)); err != nil {
			return nil, err
		}
	}
	return tokens, nil
}

// Refused returns one token of each kind that must be refused, by name. In each, one thing only is
// wrong, so that a refusal shows that just this is checked.
func (m *Mint) Refused() (map[string]string, error) {
	expired, audience, issuer := m.claims(0), m.claims(0), m.claims(0)
	age := m.terms.TTL + time.Hour
	for _, date := range []**jwt.NumericDate{
		&expired.IssuedAt, &expired.NotBefore, &expired.ExpiresAt,
	} {
		*date = jwt.NewNumericDate((*date).Add(-age))
	}
	audience.Audience = jwt.ClaimStrings{m.terms.Audience + ".wrong"}
	issuer.Issuer = m.terms.Issuer + ".foreign"
	tokens := map[string]string{}
	for name, how := range map[string]struct {
		key    *rsa.PrivateKey
		claims *auth.Claims
	}{
		"expired":        {m.key, expired},
		"wrong-audience": {m.key, audience},
		"foreign-issuer": {m.key, issuer},
		"bad-signature":  {m.foreign, m.claims(0)},
	} {
		token, err := m.sign(how.key, how.claims)
		if err != nil {
			return nil, err
		}
		tokens[name] = token
	}
	return tokens, nil
}

func (m *Mint) claims(i int) *auth.Claims {
	return &auth.Claims{
		User:   fmt.Sprintf("user-%06d", i),
		Tenant: fmt.Sprintf("tenant-%02d", i%16),
		Roles:  "reader,writer",
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:   m.terms.Issuer,
			Audience: jwt.ClaimStrings{m.terms.Audience},
			IssuedAt: jwt.NewNumericDate(m.now),
			// A minute back, since the hosts' clocks need not agree to the second.
			NotBefore: jwt.NewNumericDate(m.now.Add(-time.Minute)),
			ExpiresAt: jwt.NewNumericDate(m.now.Add(m.terms.TTL)),
			ID:        fmt.Sprintf("%06d", i),
		},
	}
}

// sign pads the token id until the token has the wished length.
func (m *Mint) sign(key *rsa.PrivateKey, claims *auth.Claims) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	token.Header["kid"] = m.kid
	unsigned, err := token.SigningString()
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	signature := base64.RawURLEncoding.EncodedLen(key.Size()) + len(".")
	missing := m.terms.TokenBytes - len(unsigned) - signature
	if missing < 0 {
		return "", program.Usagef("-token-bytes: too few, %d, want at least %d for these claims",
			m.terms.TokenBytes, len(unsigned)+signature)
	}
	claims.ID += strings.Repeat("0", base64.RawURLEncoding.DecodedLen(missing))
	signed, err := token.SignedString(key)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	return signed, nil
}
