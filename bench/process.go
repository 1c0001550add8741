package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server in a process of its own, so that its CPU is its alone.
type process struct {
	cmd   *exec.Cmd
	grpc  string        // address, from the ready line
	ready time.Duration // from start to the ready line
}

// startupLimit is how long a server may take until it prints its ready line.
const startupLimit = time.Minute

// spawn runs this very program with other arguments and waits for its ready line.
func spawn(ctx context.Context, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self, args...)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line := make(chan string, 1)
	go func() {
		s := bufio.NewScanner(out)
		s.Scan()
		line <- s.Text()
	}()
	select {
	case text := <-line:
		p.ready = time.Since(began)
		_, after, found := strings.Cut(text, "grpc=")
		if !found {
			return nil, errors.Join(fmt.Errorf("server did not start: %q", text), p.stop())
		}
		p.grpc, _, _ = strings.Cut(after, " ")
		return p, nil
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), p.stop())
	case <-time.After(startupLimit):
		return nil, errors.Join(fmt.Errorf("server printed no ready line within %v", startupLimit), p.stop())
	}
}

// stop asks the process to end and waits.
func (p *process) stop() error {
	p.cmd.Process.Signal(syscall.SIGTERM)
	return p.cmd.Wait()
}

// kill ends it at once, as a crash does.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// clockTick is the unit of CPU times in /proc/PID/stat: sysconf(_SC_CLK_TCK), 100 on every Linux there is.
const clockTick = time.Second / 100

// cpu is the CPU time, user and system, that the process has used (proc(5), /proc/PID/stat fields 14 and 15).
func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time (Linux only): %w", err)
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name before may hold blanks
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0, fmt.Errorf("unknown form of /proc/PID/stat: %q", text)
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("unknown form of /proc/PID/stat: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// resident is the memory of the process in RAM, in bytes (VmRSS).
func (p *process) resident() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read memory (Linux only): %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("no VmRSS in /proc/PID/status")
}

// diskSize adds up the files below a directory, in bytes.
func diskSize(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
