package pebble

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroupLimits say how much memory a container may have: of version 2 and of version 1, as they are mounted inside it
// (https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files). "max", or a number beyond the machine's memory, is no limit.
var cgroupLimits = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// machineMemory is how many bytes of memory this process may use; 0 if the system does not say.
func machineMemory() uint64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	memory := uint64(info.Totalram) * uint64(info.Unit)
	for _, name := range cgroupLimits {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
			memory = min(memory, limit)
		}
	}
	return memory
}
