package echo

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"

	"ztbench/service/internal/auth"
)

func start(t *testing.T, guard Guard, bodyBytes int) (url string, stats *Stats) {
	t.Helper()
	stats = new(Stats)
	server := NewServer(stats, Handler(stats, guard, bodyBytes))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return "http://" + listener.Addr().String() + "/any/path", stats
}

func get(t *testing.T, url string, http2 bool, headers map[string]string) (*http.Response, string) {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func TestTheIdentityComesBackOverBothVersionsInABodyOfFixedSize(t *testing.T) {
	url, stats := start(t, nil, 256)
	headers := map[string]string{
		"x-user-id": "user-1", "x-tenant-id": "t-1", "x-user-roles": `a,"b"`,
	}
	for http2, proto := range map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"} {
		response, body := get(t, url, http2, headers)
		var got struct{ User, Tenant, Roles, Proto string }
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if got.User != "user-1" || got.Tenant != "t-1" || got.Roles != `a,"b"` || got.Proto != proto {
			t.Errorf("%s: body says %+v", proto, got)
		}
		if len(body) != 256 || response.Header.Get("X-User-Id") != "user-1" {
			t.Errorf("%s: %d bytes, header %q", proto, len(body), response.Header.Get("X-User-Id"))
		}
	}
	report := stats.report()
	if report.Requests != 2 || report.Protocols["HTTP/2"] != 1 || report.Accepted != 2 {
		t.Errorf("%+v", report)
	}
}

func TestARequestWithoutIdentityIsAnsweredWithoutTheHeader(t *testing.T) {
	url, _ := start(t, nil, 0)
	response, body := get(t, url, false, nil)
	_, there := response.Header[auth.UserHeader]
	if there || response.StatusCode != http.StatusOK || body == "" {
		t.Fatalf("%v, %q", response.Header, body)
	}
}

func TestWithIdentityTheUserHeaderIsRequiredAndRefusalsAreCounted(t *testing.T) {
	url, stats := start(t, auth.TrustHeaders, 64)
	if response, _ := get(t, url, true, nil); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d without identity, want 401", response.StatusCode)
	}
	response, _ := get(t, url, true, map[string]string{"x-user-id": "user-1"})
	if response.StatusCode != http.StatusOK || response.Header.Get("x-user-id") != "user-1" {
		t.Errorf("status %d, user %q", response.StatusCode, response.Header.Get("x-user-id"))
	}
	report := stats.report()
	if report.Requests != 2 || report.Denied["missing-identity"] != 1 {
		t.Errorf("%+v", report)
	}
}
