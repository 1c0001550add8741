package memory

import (
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine returns the bytes of memory that this process may use: those of the machine, or fewer if a container limits them. It returns 0 if
// they are not known.
func Machine() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	total := int64(info.Totalram) * int64(info.Unit)
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		membership = nil // then only the limits at the root are read
	}
	for _, name := range limitFiles(string(membership)) {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		// "max", or a number beyond the machine's memory, is no limit.
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			total = min(total, limit)
		}
	}
	return total
}

// limitFiles returns the names of the files with the memory limits of a process's control group and of all groups above it. membership is the
// content of /proc/self/cgroup. Lines that name the memory controller are of version 1 of control groups, the others of version 2:
// https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files. Inside a container, its own group is mounted as the root.
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
