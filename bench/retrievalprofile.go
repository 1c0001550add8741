package bench

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// missedProfileTime is the time for which a path is profiled.
const missedProfileTime = 5 * time.Second

// profileMissed repeats the paths of the target that have missed a figure's target, and profiles them.
func (b *retrieval) profileMissed(ctx context.Context, r *run) error {
	if b.Profile == "" {
		return nil
	}
	profiled := map[Ref]bool{}
	for _, f := range r.report.fill(retrievalName, b.figures()) {
		p, ok := b.pathOf(f.Left)
		if f.verdict() != missed || profiled[f.Left] || !ok || p.local || p.on != nil {
			continue
		}
		profiled[f.Left] = true
		dir := filepath.Join(b.Profile, tag(f.Left.Experiment, f.Left.Path))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := r.profilePath(ctx, p, dir); err != nil {
			return err
		}
		r.fact("target missed: %s; profiles of %s are in %s", f.Name, p.name, dir)
	}
	return nil
}

// profilePath repeats a path and profiles the target meanwhile. It writes the profiles to dir.
func (r *run) profilePath(ctx context.Context, p path, dir string) error {
	l := r.load(p, &Measure{Clients: 1})
	l.lasts = missedProfileTime
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.run(ctx, func(window) {}) })
	g.Go(func() error { return r.target.profile(ctx, dir, missedProfileTime) })
	return g.Wait()
}

// pathOf finds the path that ref names.
func (b *retrieval) pathOf(ref Ref) (path, bool) {
	for _, e := range b.experiments {
		for _, p := range e.paths {
			if ref == (Ref{e.name, p.name}) {
				return p, true
			}
		}
	}
	return path{}, false
}
