package auth

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestThePeerIsTheLastCertificateThatTheSidecarTellsOf(t *testing.T) {
	for list, want := range map[string]string{
		`By=spiffe://t/s;Hash=ab;Subject="";URI=spiffe://t/client`: "spiffe://t/client",
		`URI=spiffe://t/admin,By=x;URI=spiffe://t/client`:          "spiffe://t/client",
		`URI=spiffe://t/client;Subject="CN=a,URI=spiffe://t/b"`:    "spiffe://t/client",
		`Subject="a\",URI=spiffe://t/b";URI=spiffe://t/client`:     "spiffe://t/client",
		`URI=spiffe://t/admin,By=x;Hash=ab`:                        "",
		`By=x;Hash=ab`:                                             "",
		``:                                                         "",
	} {
		if got := lastPeer(list); got != want {
			t.Errorf("%s: got %q, want %q", list, got, want)
		}
	}
}

func TestARequestWithoutAPeerIsRefusedAndAForgedUserReplaced(t *testing.T) {
	var refusals Refusals
	var seen Identity
	guarded := TrustPeer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = IdentityOf(r.Header)
	}), &refusals)
	ask := func(header http.Header) int {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Header = header
		response := httptest.NewRecorder()
		guarded.ServeHTTP(response, request)
		return response.Code
	}
	if got := ask(http.Header{UserHeader: {"admin"}}); got != http.StatusUnauthorized {
		t.Errorf("without a peer: %d", got)
	}
	header := http.Header{UserHeader: {"admin"}, PeerHeader: {"URI=spiffe://t/client"}}
	if got := ask(header); got != http.StatusOK || seen.User != "spiffe://t/client" {
		t.Errorf("with a peer: %d, user %q", got, seen.User)
	}
}
