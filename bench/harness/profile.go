package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/crowfoot-db/crowfoot/bench/report"
)

// clientProfile is the file of this program's CPU profile, for go tool pprof.
const clientProfile = "client.pprof"

// traceTime is the longest duration of an execution trace, which records everything that the server's goroutines do.
// The trace is taken in the middle of the profiled time.
const traceTime = 2 * time.Second

// serverProfiles lists the profiles that are taken of the server, each with its file: CPU time, blocked goroutines,
// contended mutexes, and an execution trace.
var serverProfiles = []struct {
	file, name string
	most       time.Duration // the longest duration; 0 for no limit
}{
	{"server.pprof", "profile", 0},
	{"server-block.pprof", "block", 0},
	{"server-mutex.pprof", "mutex", 0},
	{"server.trace", "trace", traceTime},
}

// Profile takes profiles of this program and of the server, and writes them to the directory dir. The parameter lasts
// is the duration of each profile. Profile returns when the files are complete.
func (s *Server) Profile(ctx context.Context, dir string, lasts time.Duration) (err error) {
	if s.Process == nil || s.Process.HTTP == "" {
		return errors.New("only the embedded server can be profiled")
	}
	own, err := os.Create(filepath.Join(dir, clientProfile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	if err := pprof.StartCPUProfile(own); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range serverProfiles {
		time := lasts
		if p.most > 0 {
			time = min(time, p.most)
		}
		url := fmt.Sprintf("http://%s/debug/pprof/%s?seconds=%.0f", s.Process.HTTP, p.name, max(1, time.Seconds()))
		g.Go(func() error {
			if err := Wait(ctx, (lasts-time)/2); err != nil {
				return err
			}
			return fetch(ctx, url, filepath.Join(dir, p.file))
		})
	}
	return g.Wait()
}

// fetch requests a URL and writes the body of the answer to a file.
func fetch(ctx context.Context, url, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, reply.Status)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, reply.Body)
	return errors.Join(err, file.Close())
}

// missedProfileTime is the duration of the profiles that ProfilePath takes. A benchmark calls ProfilePath for paths
// that missed their targets.
const missedProfileTime = 5 * time.Second

// ProfilePath repeats a path's operation and profiles the target at the same time. It writes the profiles to dir.
func (r *Runner) ProfilePath(ctx context.Context, p Path, dir string) error {
	l := r.load(p, &report.Measure{Clients: 1})
	l.Duration = missedProfileTime
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.Run(ctx, func(report.Window) {}) })
	g.Go(func() error { return r.Target.Profile(ctx, dir, missedProfileTime) })
	return g.Wait()
}
