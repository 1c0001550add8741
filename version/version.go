// Package version says which Crowfoot runs, from what the Go toolchain wrote into the program when it was built.
//
// A program that was built in a checkout (go build) knows the commit, one that was built from a release (go install
// MODULE@VERSION, or a program that embeds Crowfoot) the version, and a test (go test) or go run neither.
//
// Imports of this module: nothing.
package version

import (
	"regexp"
	"runtime"
	"runtime/debug"
)

// Unknown stands for what the build did not record.
const Unknown = "unknown"

// Info is what a build knows of itself.
type Info struct {
	Version  string // a release, v1.2.3, or Go's pseudo-version of a commit; or Unknown
	Commit   string // hash, whole or its first 12 digits; or Unknown
	Modified bool   // the checkout had changes that were not committed
	Go       string // the toolchain, go1.26.0
}

// Get returns the Crowfoot in this program.
func Get() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return Info{Version: Unknown, Commit: Unknown, Go: runtime.Version()}
	}
	return of(build)
}

const module = "github.com/crowfoot-db/crowfoot"

// of reads a program's build information, in which Crowfoot is the main module or a dependency. Only the main module has a
// checkout: the settings' commit of another program that embeds Crowfoot is that program's.
func of(build *debug.BuildInfo) Info {
	info := Info{Version: Unknown, Commit: Unknown, Go: build.GoVersion}
	if build.Main.Path != module {
		for _, d := range build.Deps {
			if d.Path == module {
				info.setVersion(d)
			}
		}
		return info
	}
	info.setVersion(&build.Main)
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Commit = s.Value
		case "vcs.modified":
			info.Modified = s.Value == "true"
		}
	}
	return info
}

// pseudo is a version that the go command makes of a commit: https://go.dev/ref/mod#pseudo-versions.
var pseudo = regexp.MustCompile(`[-.]\d{14}-([0-9a-f]{12})(\+|$)`)

func (i *Info) setVersion(m *debug.Module) {
	if m.Replace != nil {
		m = m.Replace
	}
	if m.Version == "" || m.Version == "(devel)" {
		return
	}
	i.Version = m.Version
	if found := pseudo.FindStringSubmatch(m.Version); found != nil {
		i.Commit = found[1]
	}
}
