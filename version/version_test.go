package version

import (
	"runtime/debug"
	"testing"
)

func TestOf(t *testing.T) {
	const hash = "6aeee8f3f2d7c1b0a9e8d7c6b5a4938271605f4e"
	checkout := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: hash}, {Key: "vcs.modified", Value: "true"}}
	for _, c := range []struct {
		name  string
		build debug.BuildInfo
		want  Info
	}{
		{"go build in a checkout", debug.BuildInfo{
			Main:     debug.Module{Path: module, Version: "v0.0.0-20261122004000-6aeee8f3f2d7+dirty"},
			Settings: checkout,
		}, Info{Version: "v0.0.0-20261122004000-6aeee8f3f2d7+dirty", Commit: hash, Modified: true}},
		{"go run", debug.BuildInfo{Main: debug.Module{Path: module, Version: "(devel)"}}, Info{Version: Unknown, Commit: Unknown}},
		{"go install of a release", debug.BuildInfo{Main: debug.Module{Path: module, Version: "v1.2.3"}}, Info{Version: "v1.2.3", Commit: Unknown}},
		{"go install of a commit", debug.BuildInfo{Main: debug.Module{Path: module, Version: "v1.2.4-0.20261122004000-6aeee8f3f2d7"}},
			Info{Version: "v1.2.4-0.20261122004000-6aeee8f3f2d7", Commit: "6aeee8f3f2d7"}},
		{"embedded in another program", debug.BuildInfo{
			Main:     debug.Module{Path: "example.com/app", Version: "v9.9.9"},
			Deps:     []*debug.Module{{Path: "example.com/other", Version: "v3.0.0"}, {Path: module, Version: "v1.2.3"}},
			Settings: checkout,
		}, Info{Version: "v1.2.3", Commit: Unknown}},
		{"embedded from a folder beside", debug.BuildInfo{
			Main: debug.Module{Path: "example.com/app"},
			Deps: []*debug.Module{{Path: module, Version: "v1.2.3", Replace: &debug.Module{Path: "../crowfoot"}}},
		}, Info{Version: Unknown, Commit: Unknown}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.build.GoVersion = "go1.26.0"
			c.want.Go = "go1.26.0"
			if got := of(&c.build); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestGet(t *testing.T) {
	if got := Get(); got.Go == "" || got.Version == "" || got.Commit == "" {
		t.Errorf("%+v has an empty field", got)
	}
}
