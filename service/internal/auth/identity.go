package auth

import "net/http"

// Names of the identity headers between whoever authenticates and whoever believes it. They are in
// Go's canonical form, so that they index http.Header directly.
const (
	UserHeader   = "X-User-Id"
	TenantHeader = "X-Tenant-Id"
	RolesHeader  = "X-User-Roles"
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

func refuse(w http.ResponseWriter, refusals *Refusals, reason Reason) {
	refusals.Add(reason)
	// The class stays in the statistics: a caller learns no more than that it was refused.
	http.Error(w, "unauthorized", http.StatusUnauthorized)
}
