// Package auth decides whom a request speaks for: because a JWT says so, or because a trusted proxy
// put it into headers.
package auth

import "sync/atomic"

// Reason is why a request was refused.
type Reason int

// The classes of refusal. Each refused request counts under exactly one.
const (
	MissingToken Reason = iota
	DuplicateAuthorization
	Malformed
	Algorithm
	UnknownKey
	Signature
	Expired
	NotYetValid
	Issuer
	Audience
	MissingClaim
	MissingIdentity
	reasons
)

var reasonNames = [reasons]string{
	"missing-token", "duplicate-authorization", "malformed", "algorithm", "unknown-key", "signature",
	"expired", "not-yet-valid", "issuer", "audience", "missing-claim", "missing-identity",
}

func (r Reason) String() string { return reasonNames[r] }

// Refusals counts refused requests by reason; safe for concurrent use.
type Refusals struct{ counts [reasons]atomic.Int64 }

// Add counts one refusal.
func (r *Refusals) Add(reason Reason) { r.counts[reason].Add(1) }

// Snapshot returns the counts by name; all names are present.
func (r *Refusals) Snapshot() map[string]int64 {
	counts := make(map[string]int64, reasons)
	for i := range r.counts {
		counts[reasonNames[i]] = r.counts[i].Load()
	}
	return counts
}
