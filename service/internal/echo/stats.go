package echo

import (
	"encoding/json"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"

	"ztbench/service/internal/auth"
)

// Stats counts what the service saw since it started; safe for concurrent use.
type Stats struct {
	Refusals          auth.Refusals
	requests          atomic.Int64
	http1, http2      atomic.Int64
	accepted, openNow atomic.Int64
}

// count notes one request, whatever becomes of it.
func (s *Stats) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if r.ProtoMajor == 2 {
			s.http2.Add(1)
		} else {
			s.http1.Add(1)
		}
		next.ServeHTTP(w, r)
	})
}

// track is an http.Server's ConnState hook.
func (s *Stats) track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.accepted.Add(1)
		s.openNow.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.openNow.Add(-1)
	}
}

type statsReport struct {
	Requests    int64            `json:"requests"`
	Denied      map[string]int64 `json:"denied"`
	Protocols   map[string]int64 `json:"protocols"`
	Accepted    int64            `json:"connectionsAccepted"`
	Open        int64            `json:"connectionsOpen"`
	GoMaxProcs  int              `json:"gomaxprocs"`
	GoVersion   string           `json:"goVersion"`
	HeapBytes   uint64           `json:"heapBytes"`
	Collections uint32           `json:"garbageCollections"`
	PauseNs     uint64           `json:"garbagePauseNs"`
}

func (s *Stats) report() statsReport {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return statsReport{
		Requests:    s.requests.Load(),
		Denied:      s.Refusals.Snapshot(),
		Protocols:   map[string]int64{"HTTP/1.1": s.http1.Load(), "HTTP/2": s.http2.Load()},
		Accepted:    s.accepted.Load(),
		Open:        s.openNow.Load(),
		GoMaxProcs:  runtime.GOMAXPROCS(0),
		GoVersion:   runtime.Version(),
		HeapBytes:   memory.HeapAlloc,
		Collections: memory.NumGC,
		PauseNs:     memory.PauseTotalNs,
	}
}

// Admin serves /healthz and /stats, on an address of its own so that it is never measured.
func (s *Stats) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(s.report())
	})
	return mux
}
