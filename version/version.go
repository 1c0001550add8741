// Package version tells which version of Crowfoot runs, from the information that the Go toolchain writes into a
// program.
//
// A program that was built in a checkout (go build) knows the commit. A program that was built from a release (go
// install MODULE@VERSION, or a program that embeds Crowfoot) knows the version. A test (go test) or go run knows
// neither.
//
// Imports of this module: nothing.
package version

import (
	"regexp"
	"runtime"
	"runtime/debug"
)

// Unknown stands for a value that the build did not record.
const Unknown = "unknown"

// Info says which Crowfoot a program contains.
type Info struct {
	Version  string // v1.2.3 for a release, or Go's pseudo-version of a commit, or Unknown
	Commit   string // hash of the commit, or its first 12 digits, or Unknown
	Modified bool   // the checkout had changes that were not committed
	Go       string // version of the Go toolchain, such as go1.26.0
}

// Get says which Crowfoot this program contains.
func Get() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return Info{Version: Unknown, Commit: Unknown, Go: runtime.Version()}
	}
	return of(build)
}

const module = "github.com/crowfoot-db/crowfoot"

// of returns the Info from a program's build information, in which Crowfoot is the main module or a dependency. It uses
// the commit in the build settings only if Crowfoot is the main module, because the settings describe the checkout of
// the main module.
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

// pseudo matches a version that the go command makes from a commit: https://go.dev/ref/mod#pseudo-versions.
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
