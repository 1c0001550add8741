package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
)

// checkpoint answers /checkpoint: it copies the data directory to a new directory, which the request names, on the
// server's machine. It refuses requests from other machines, because only programs on this machine can use that
// directory.
func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) {
	to := r.URL.Query().Get("to")
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "A copy is asked for by POST.", http.StatusMethodNotAllowed)
	case !fromThisMachine(r):
		http.Error(w, "Copies of the data directory can only be asked for on the server's own machine.", http.StatusForbidden)
	case !filepath.IsAbs(to):
		http.Error(w, "The parameter to is missing: the whole path of the directory to make.", http.StatusBadRequest)
	case s.cfg.Checkpoint == nil:
		http.Error(w, "The server keeps its data in memory, and has no directory to copy.", http.StatusBadRequest)
	default:
		if err := s.cfg.Checkpoint(r.Context(), to); err != nil {
			s.cfg.Log.Warn("checkpoint failed", "to", to, "error", err.Error())
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s.cfg.Log.Info("checkpoint made", "to", to)
		fmt.Fprintln(w, to)
	}
}

// fromThisMachine reports whether the client has a loopback address, and so is a program on this machine.
func fromThisMachine(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
