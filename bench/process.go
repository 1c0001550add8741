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

// process is a server in its own process. The CPU time of the process is therefore the server's.
type process struct {
	cmd   *exec.Cmd
	grpc  string        // gRPC address from the ready line
	http  string        // HTTP address from the ready line; "" for none
	ready time.Duration // from start to the ready line
	ended chan struct{} // closes when the process has ended, for any reason
}

// startupLimit is the longest time that a server may take to print its ready line.
const startupLimit = time.Minute

// spawn starts an executable ("" is this very program) and waits for its ready line.
func spawn(ctx context.Context, executable string, args ...string) (p *process, err error) {
	if executable == "" {
		if executable, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	p = &process{cmd: exec.Command(executable, args...), ended: make(chan struct{})}
	p.cmd.Stderr = os.Stderr
	detach(p.cmd) // Ctrl-C stops this program alone, which stops the server after reporting
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
		p.cmd.Wait()
		close(p.ended)
	}()
	select {
	case text := <-line:
		p.ready = time.Since(began)
		if err := p.addresses(text); err != nil {
			return nil, errors.Join(err, p.stop())
		}
		return p, nil
	case <-ctx.Done():
		p.kill()
		return nil, ctx.Err()
	case <-time.After(startupLimit):
		p.kill()
		return nil, fmt.Errorf("server printed no ready line within %v", startupLimit)
	}
}

// addresses reads the ready line: "crowfoot: ready grpc=HOST:PORT http=HOST:PORT".
func (p *process) addresses(line string) error {
	for _, word := range strings.Fields(line) {
		if address, ok := strings.CutPrefix(word, "grpc="); ok {
			p.grpc = address
		}
		if address, ok := strings.CutPrefix(word, "http="); ok {
			p.http = address
		}
	}
	if p.grpc == "" {
		return fmt.Errorf("%s did not start a server: it said %q", p.cmd.Path, line)
	}
	return nil
}

// stop asks the process to end and waits until it has ended.
func (p *process) stop() error {
	p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.ended
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("the server ended with %v", p.cmd.ProcessState)
	}
	return nil
}

// kill ends the process at once, as a crash does.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.ended
}

func (p *process) pid() pid { return pid(p.cmd.Process.Pid) }

// meter returns the CPU time that a server has used since its start.
type meter func() (time.Duration, error)

// pid is the ID of a process on this machine.
type pid int

// resident returns the memory of the process in RAM, in bytes (VmRSS of proc(5)).
func (p pid) resident() (int64, error) { return p.status("VmRSS:") }

// anonymous returns the part of resident that does not belong to files, in bytes (RssAnon). The system could reread
// the pages of files at any time, so they do not count.
func (p pid) anonymous() (int64, error) { return p.status("RssAnon:") }

// status returns a size from /proc/PID/status, in bytes.
func (p pid) status(name string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p))
	if err != nil {
		return 0, fmt.Errorf("read memory (Linux only): %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("no " + name + " in /proc/PID/status")
}

// diskSize returns the total size of the files below a directory, in bytes.
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

// memorySize parses a size such as 2GiB and returns it in bytes.
func memorySize(text string) (int64, error) {
	number, ok := strings.CutSuffix(text, "GiB")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(v > 0 && v <= 1<<20) {
		return 0, usageErrorf("--memory is %q: want a size such as 2GiB", text)
	}
	return int64(v * (1 << 30)), nil
}

// watchEvery is the time between two readings of the server's memory.
const watchEvery = 100 * time.Millisecond
