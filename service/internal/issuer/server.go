package issuer

import (
	"encoding/json"
	"net/http"
	"runtime"
	"sync/atomic"
)

// Handler serves the key set at /jwks.json, counting the fetches, and the count at /stats.
func Handler(keySet []byte, tokens int) http.Handler {
	var fetches atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		fetches.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.Write(keySet)
	})
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{
			"jwksFetches": fetches.Load(),
			"tokens":      tokens,
			"gomaxprocs":  runtime.GOMAXPROCS(0),
			"goVersion":   runtime.Version(),
		})
	})
	return mux
}
