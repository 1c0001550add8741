package bench

import (
	"context"
	"os"
	"path/filepath"
)

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

// pathOf finds the path that ref names.
func (b *retrieval) pathOf(ref Ref) (path, bool) {
	for _, e := range b.experiments {
		for _, p := range e.paths {
			if ref == RefTo(e.name, p.name) {
				return p, true
			}
		}
	}
	return path{}, false
}
