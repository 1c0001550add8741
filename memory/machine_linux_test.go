package memory

import (
	"slices"
	"testing"
)

func TestLimitFiles(t *testing.T) {
	const roots = 2 // limitFiles always returns the two files of the root first
	for membership, want := range map[string][]string{
		"":                               {},
		"0::/\n":                         {},
		"0::/a.slice/b.scope\n":          {"/sys/fs/cgroup/a.slice/b.scope/memory.max", "/sys/fs/cgroup/a.slice/memory.max"},
		"5:cpu:/x\n4:memory:/docker/1\n": {"/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes"},
		"nonsense":                       {},
	} {
		if got := limitFiles(membership)[roots:]; !slices.Equal(got, want) {
			t.Errorf("%q: %q", membership, got)
		}
	}
}
