package memory

import (
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine returns how many bytes of memory this process may use: all of the machine, or fewer if a container limits
// them. It returns 0 if that is not known.
func Machine() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	total := int64(info.Totalram) * int64(info.Unit)
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		membership = nil // then only the limits at the root of the control groups are read
	}
	for _, name := range limitFiles(string(membership)) {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		// The word "max", or a number beyond the machine's memory, means that there is no limit.
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			total = min(total, limit)
		}
	}
	return total
}

// limitFiles returns the names of the files with the memory limits of the process's control group and of all groups
// above it. membership is the content of /proc/self/cgroup. Its line "0::PATH" names the group in version 2 of control
// groups (https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files). A line whose controller is
// "memory" names the group in version 1. limitFiles ignores other lines. Inside a container, the container's own group
// is mounted as the root, so the result always has the files of the root, too.
func limitFiles(membership string) []string {
	files := []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}
	for line := range strings.Lines(membership) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number:controllers:path
		if len(parts) != 3 {
			continue
		}
		root, file := "", ""
		switch {
		case parts[0] == "0" && parts[1] == "":
			root, file = "/sys/fs/cgroup", "memory.max"
		case parts[1] == "memory":
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for group := path.Clean("/" + parts[2]); group != "/"; group = path.Dir(group) {
			files = append(files, path.Join(root, group, file))
		}
	}
	return files
}
