package auth

import (
	"net/http"
	"strings"
)

// Names of the identity headers between whoever authenticates and whoever believes it. They are in
// Go's canonical form, so that they index http.Header directly.
const (
	UserHeader   = "X-User-Id"
	TenantHeader = "X-Tenant-Id"
	RolesHeader  = "X-User-Roles"
	PeerHeader   = "X-Forwarded-Client-Cert"
)

// Identity is whom a request speaks for.
type Identity struct{ User, Tenant, Roles string }

// IdentityOf reads the identity headers; whether they may be believed is the middleware's business.
func IdentityOf(header http.Header) Identity {
	return Identity{header.Get(UserHeader), header.Get(TenantHeader), header.Get(RolesHeader)}
}

func (i Identity) replaceIn(header http.Header) {
	header[UserHeader] = []string{i.User}
	header[TenantHeader] = []string{i.Tenant}
	header[RolesHeader] = []string{i.Roles}
}

// TrustHeaders requires the user header, which a proxy in front has verified, and believes the
// rest. A user header given twice is refused, since two programs might read different ones.
func TrustHeaders(next http.Handler, refusals *Refusals) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if users := r.Header[UserHeader]; len(users) != 1 || users[0] == "" {
			refuse(w, refusals, MissingIdentity)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// TrustPeer requires the header in which a sidecar tells whose certificate the caller has shown, and
// takes the SPIFFE ID in it for the user. Of several certificates the last is the one that the
// sidecar itself has seen; those before it are what the caller says.
func TrustPeer(next http.Handler, refusals *Refusals) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		values := r.Header[PeerHeader]
		if len(values) == 0 {
			refuse(w, refusals, MissingIdentity)
			return
		}
		peer := lastPeer(values[len(values)-1])
		if peer == "" {
			refuse(w, refusals, MissingIdentity)
			return
		}
		Identity{User: peer}.replaceIn(r.Header)
		next.ServeHTTP(w, r)
	})
}

// lastPeer returns the URI of the last certificate in a list like `By=a;URI=b,By=a;Subject="x,y"`.
func lastPeer(list string) string {
	peer, start, quoted := "", 0, false
	for i := 0; i <= len(list); i++ {
		end := i == len(list)
		switch {
		case !end && list[i] == '\\' && quoted:
			i++
		case !end && list[i] == '"':
			quoted = !quoted
		case end || !quoted && (list[i] == ';' || list[i] == ','):
			if value, found := strings.CutPrefix(list[start:min(i, len(list))], "URI="); found {
				peer = value
			}
			if !end && list[i] == ',' {
				peer = ""
			}
			start = i + 1
		}
	}
	return peer
}

func refuse(w http.ResponseWriter, refusals *Refusals, reason Reason) {
	refusals.Add(reason)
	// The class stays in the statistics: a caller learns no more than that it was refused.
	http.Error(w, "unauthorized", http.StatusUnauthorized)
}
