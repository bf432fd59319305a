package auth

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	testIssuer   = "https://issuer.test"
	testAudience = "echo"
	testKid      = "k1"
)

var testKey, otherKey = sync.OnceValue(newKey), sync.OnceValue(newKey)

func newKey() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

func newTestVerifier() *Verifier {
	keys := map[string]*rsa.PublicKey{testKid: &testKey().PublicKey}
	return NewVerifier(keys, testIssuer, testAudience)
}

func goodClaims() jwt.MapClaims {
	return jwt.MapClaims{
		"iss": testIssuer, "aud": testAudience, "exp": time.Now().Add(time.Hour).Unix(),
		"user_id": "user-7", "tenant_id": "tenant-3", "roles": "reader,writer",
	}
}

func signed(t testing.TB, method jwt.SigningMethod, kid string, key any, claims jwt.Claims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	if kid != "" {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func good(t testing.TB) string {
	return signed(t, jwt.SigningMethodRS256, testKid, testKey(), goodClaims())
}

func TestAValidTokenGivesTheIdentityInIt(t *testing.T) {
	identity, _, ok := newTestVerifier().Verify(good(t))
	if want := (Identity{"user-7", "tenant-3", "reader,writer"}); !ok || identity != want {
		t.Fatalf("got %v, %v; want %v", identity, ok, want)
	}
}

func TestEachWrongTokenIsRefusedForItsOwnReason(t *testing.T) {
	with := func(name string, value any) jwt.MapClaims {
		claims := goodClaims()
		claims[name] = value
		if value == nil {
			delete(claims, name)
		}
		return claims
	}
	rs := func(claims jwt.MapClaims) string {
		return signed(t, jwt.SigningMethodRS256, testKid, testKey(), claims)
	}
	publicKey, err := x509.MarshalPKIXPublicKey(&testKey().PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good(t), ".")
	otherPayload := strings.Split(rs(with("user_id", "root")), ".")[1]
	now := time.Now()
	tests := map[string]struct {
		token string
		want  Reason
	}{
		"algorithm none": {signed(t, jwt.SigningMethodNone, testKid,
			jwt.UnsafeAllowNoneSignatureType, goodClaims()), Algorithm},
		"HS256 with the public key as secret": {
			signed(t, jwt.SigningMethodHS256, testKid, publicKey, goodClaims()), Algorithm},
		"RS512 with the right key": {
			signed(t, jwt.SigningMethodRS512, testKid, testKey(), goodClaims()), Algorithm},
		"unknown key id": {
			signed(t, jwt.SigningMethodRS256, "k2", testKey(), goodClaims()), UnknownKey},
		"no key id": {signed(t, jwt.SigningMethodRS256, "", testKey(), goodClaims()), UnknownKey},
		"another key under our key id": {
			signed(t, jwt.SigningMethodRS256, testKid, otherKey(), goodClaims()), Signature},
		"payload exchanged":      {parts[0] + "." + otherPayload + "." + parts[2], Signature},
		"signature cut off":      {parts[0] + "." + parts[1] + ".", Signature},
		"two segments":           {parts[0] + "." + parts[1], Malformed},
		"not base64":             {"a!." + parts[1] + "." + parts[2], Malformed},
		"no text":                {"", Malformed},
		"wrong issuer":           {rs(with("iss", "https://other.test")), Issuer},
		"wrong audience":         {rs(with("aud", "other")), Audience},
		"expired":                {rs(with("exp", now.Add(-time.Second).Unix())), Expired},
		"not yet valid":          {rs(with("nbf", now.Add(time.Hour).Unix())), NotYetValid},
		"no expiry":              {rs(with("exp", nil)), MissingClaim},
		"no issuer":              {rs(with("iss", nil)), MissingClaim},
		"no audience":            {rs(with("aud", nil)), MissingClaim},
		"no user":                {rs(with("user_id", nil)), MissingClaim},
		"empty tenant":           {rs(with("tenant_id", "")), MissingClaim},
		"roles are not a string": {rs(with("roles", []string{"admin"})), Malformed},
	}
	verifier := newTestVerifier()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, reason, ok := verifier.Verify(test.token); ok || reason != test.want {
				t.Errorf("accepted %v, reason %v; want %v", ok, reason, test.want)
			}
		})
	}
}

func TestTheMiddlewareReplacesForgedIdentityHeaders(t *testing.T) {
	var seen Identity
	var copies int
	next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen, copies = IdentityOf(r.Header), len(r.Header.Values("x-user-id"))
	})
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("Authorization", "Bearer "+good(t))
	request.Header.Add("x-user-id", "root")
	request.Header.Add("x-user-id", "admin")
	request.Header.Set("x-tenant-id", "all")
	request.Header.Set("x-user-roles", "admin")
	newTestVerifier().RequireToken(next, new(Refusals)).ServeHTTP(httptest.NewRecorder(), request)
	want := Identity{"user-7", "tenant-3", "reader,writer"}
	if seen != want || copies != 1 {
		t.Fatalf("next saw %v with %d user headers; want %v with 1", seen, copies, want)
	}
}

func TestTheMiddlewareAnswers401AndCountsTheReason(t *testing.T) {
	token := good(t)
	tests := map[string]struct {
		authorization []string
		want          Reason
	}{
		"no header":         {nil, MissingToken},
		"basic credentials": {[]string{"Basic dTpw"}, MissingToken},
		"scheme only":       {[]string{"Bearer"}, Malformed},
		"two headers":       {[]string{"Bearer " + token, "Bearer " + token}, DuplicateAuthorization},
		"two tokens in one": {[]string{"Bearer " + token + ", Bearer " + token}, Malformed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var refusals Refusals
			reached := false
			next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true })
			request := httptest.NewRequest(http.MethodGet, "/", nil)
			request.Header["Authorization"] = test.authorization
			recorder := httptest.NewRecorder()
			newTestVerifier().RequireToken(next, &refusals).ServeHTTP(recorder, request)
			count := refusals.Snapshot()[test.want.String()]
			if recorder.Code != http.StatusUnauthorized || reached || count != 1 {
				t.Errorf("status %d, next reached %v, refusals %v; want 401, false, one %v",
					recorder.Code, reached, refusals.Snapshot(), test.want)
			}
		})
	}
}

func BenchmarkRequireToken(b *testing.B) {
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	handler := newTestVerifier().RequireToken(next, new(Refusals))
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("Authorization", "Bearer "+good(b))
	recorder := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		handler.ServeHTTP(recorder, request)
	}
	if recorder.Code != http.StatusOK {
		b.Fatalf("status %d", recorder.Code)
	}
}

func BenchmarkTrustHeaders(b *testing.B) {
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	handler := TrustHeaders(next, new(Refusals))
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("X-User-Id", "user-7")
	recorder := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		handler.ServeHTTP(recorder, request)
	}
}
