package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/crowfoot-db/crowfoot/server/rest"
	"github.com/crowfoot-db/crowfoot/server/status"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/live"
	"github.com/crowfoot-db/crowfoot/stats/metrics"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// probes returns the handlers of the paths that the HTTP listener serves even while the server stops:
//
//	/healthz    whether the server runs and can read its data (200, or 503 with the reason)
//	/readyz     whether the server accepts requests: it is healthy by /healthz, and is not stopping
func (s *Server) probes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{"/healthz": reading(s.live), "/readyz": reading(s.ready)}
}

// reading returns a handler that refuses methods other than GET and HEAD.
func reading(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "It is asked for by GET.", http.StatusMethodNotAllowed)
			return
		}
		handler(w, r)
	}
}

// observing returns the handlers of the HTTP listener's paths about the server itself:
//
//	/checkpoint?to=DIR                       POST, from the server's own machine: makes a copy of the data directory
//	/metrics                                 Prometheus: use of the API by method, sessions, locks, aborts, background work, storage, the process
//	/debug/transactions?database=D&tag=T     timelines of the newest transactions with a tag, as JSON; durations in nanoseconds
//	/debug/pprof/profile?seconds=N           use of CPU time, for go tool pprof; other paths: heap, goroutine
//	/debug/pprof/block?seconds=N             waits of goroutines, for go tool pprof; other path: mutex
//	/debug/pprof/trace?seconds=N             activity of every goroutine, for go tool trace
func (s *Server) observing() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"/checkpoint":         s.checkpoint,
		"/metrics":            promhttp.HandlerFor(s.gatherer, promhttp.HandlerOpts{}).ServeHTTP,
		"/debug/transactions": s.timelines,

		"/debug/pprof/profile":   pprof.Profile,
		"/debug/pprof/heap":      pprof.Handler("heap").ServeHTTP,
		"/debug/pprof/goroutine": pprof.Handler("goroutine").ServeHTTP,
		"/debug/pprof/block":     waits(),
		"/debug/pprof/mutex":     mutexWaits(),
		"/debug/pprof/trace":     pprof.Trace,
	}
}

// live answers /healthz. A server that can read its data is healthy. If it refuses writes, the reply gives the reason.
func (s *Server) live(w http.ResponseWriter, _ *http.Request) {
	h := s.registry.Health()
	switch {
	case h.Reads != nil:
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "failed: %s\n", usererror.Text(h.Reads))
	case h.Writes != nil:
		fmt.Fprintf(w, "ok, but writes are refused: %s\n", usererror.Text(h.Writes))
	default:
		fmt.Fprintln(w, "ok")
	}
}

// ready answers /readyz: 503 if the server is stopping, and what live answers otherwise.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	select {
	case <-s.stopping:
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, "stopping")
	default:
		s.live(w, r)
	}
}

// Starting answers HTTP requests while the server opens its data. /healthz says that the process is alive, and /readyz
// that it is not ready. Any other request gets an error.
func Starting(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" {
		fmt.Fprintln(w, "starting")
		return
	}
	w.Header().Set("Retry-After", "1")
	if r.URL.Path != "/readyz" {
		rest.Refuse(w, usererror.ServerStarting())
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprintln(w, "starting")
}

// Metrics returns the source of the metrics that /metrics serves.
func (s *Server) Metrics() prometheus.Gatherer { return s.gatherer }

// newMetrics registers the metrics of the API's methods and returns them. It returns nil if the server keeps no
// statistics.
func newMetrics(to prometheus.Registerer, cfg Config) *metrics.Methods {
	if cfg.NoStatistics {
		return nil
	}
	metrics, err := metrics.NewMethods(to)
	if err != nil {
		panic("register metrics: " + err.Error()) // cannot happen: the names are constants
	}
	return metrics
}

// timelines answers /debug/transactions: the timelines of the newest transactions with a tag, as JSON.
func (s *Server) timelines(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("database")
	if name == "" {
		http.Error(w, "The parameter database is missing: projects/P/instances/I/databases/D.", http.StatusBadRequest)
		return
	}
	db, err := s.registry.Database(name)
	if err != nil {
		http.Error(w, status.Of(err).Message, rest.HTTPStatus(err))
		return
	}
	list := db.Live().Timelines(stats.Tag(r.URL.Query().Get("tag")))
	if list == nil {
		list = []live.Timeline{}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(list); err != nil {
		s.cfg.Log.Debug("client is gone", slog.Any("error", err))
	}
}
