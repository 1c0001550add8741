package retrieval

import (
	"context"
	"os"
	"path/filepath"

	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// profileMissed runs a path of the measured server again, with profiles, if a figure of this path has missed its
// target. It does nothing if the settings name no directory for profiles.
func (b *retrieval) profileMissed(ctx context.Context, r *harness.Runner) error {
	if b.Profile == "" {
		return nil
	}
	profiled := map[report.Ref]bool{}
	for _, f := range r.Results.Fill(retrievalName, b.figures()) {
		p, ok := b.pathOf(f.Left)
		if f.Verdict() != report.Missed || profiled[f.Left] || !ok || p.Local || p.Server != nil {
			continue
		}
		profiled[f.Left] = true
		dir := filepath.Join(b.Profile, harness.Tag(f.Left.Experiment, f.Left.Path))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := r.ProfilePath(ctx, p, dir); err != nil {
			return err
		}
		r.Fact("target missed: %s; profiles of %s are in %s", f.Name, p.Name, dir)
	}
	return nil
}

// pathOf returns the path that ref names; the boolean is false if there is none.
func (b *retrieval) pathOf(ref report.Ref) (harness.Path, bool) {
	for _, e := range b.experiments {
		for _, p := range e.Paths {
			if ref == report.RefTo(e.Name, p.Name) {
				return p, true
			}
		}
	}
	return harness.Path{}, false
}
