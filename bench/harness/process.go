package harness

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

	"github.com/crowfoot-db/crowfoot/bench"
)

// Process is a server that runs in a process of its own. So the CPU time of the process is the CPU time of the server.
type Process struct {
	Command *exec.Cmd
	GRPC    string        // gRPC address from the ready line
	HTTP    string        // HTTP address from the ready line; "" for none
	Ready   time.Duration // from start to the ready line
	Ended   chan struct{} // closes when the process has ended, for any reason
}

// StartupTimeout is the longest time that a server may take to print its ready line.
const StartupTimeout = time.Minute

// StartProcess starts an executable and waits for its ready line. "" stands for the executable of this program.
func StartProcess(ctx context.Context, executable string, args ...string) (p *Process, err error) {
	if executable == "" {
		if executable, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	p = &Process{Command: exec.Command(executable, args...), Ended: make(chan struct{})}
	p.Command.Stderr = os.Stderr
	Detach(p.Command) // Ctrl-C must reach only this program, which first reports and then stops the server
	out, err := p.Command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := p.Command.Start(); err != nil {
		return nil, err
	}
	line := make(chan string, 1)
	go func() {
		s := bufio.NewScanner(out)
		s.Scan()
		line <- s.Text()
		p.Command.Wait()
		close(p.Ended)
	}()
	select {
	case text := <-line:
		p.Ready = time.Since(began)
		if err := p.addresses(text); err != nil {
			return nil, errors.Join(err, p.Stop())
		}
		return p, nil
	case <-ctx.Done():
		p.Kill()
		return nil, ctx.Err()
	case <-time.After(StartupTimeout):
		p.Kill()
		return nil, fmt.Errorf("server printed no ready line within %v", StartupTimeout)
	}
}

// addresses takes the addresses from the ready line: "crowfoot: ready grpc=HOST:PORT http=HOST:PORT".
func (p *Process) addresses(line string) error {
	for _, word := range strings.Fields(line) {
		if address, ok := strings.CutPrefix(word, "grpc="); ok {
			p.GRPC = address
		}
		if address, ok := strings.CutPrefix(word, "http="); ok {
			p.HTTP = address
		}
	}
	if p.GRPC == "" {
		return fmt.Errorf("%s did not start a server: it said %q", p.Command.Path, line)
	}
	return nil
}

// Stop asks the process to end and waits until it has ended.
func (p *Process) Stop() error {
	p.Command.Process.Signal(syscall.SIGTERM)
	<-p.Ended
	if !p.Command.ProcessState.Success() {
		return fmt.Errorf("the server ended with %v", p.Command.ProcessState)
	}
	return nil
}

// Kill ends the process at once, as a crash does.
func (p *Process) Kill() {
	p.Command.Process.Kill()
	<-p.Ended
}

func (p *Process) PID() PID { return PID(p.Command.Process.Pid) }

// CPUMeter returns the CPU time that a server has used since its start.
type CPUMeter func() (time.Duration, error)

// PID is the ID of a process on this machine.
type PID int

// Resident returns the memory that the process has in RAM, in bytes (VmRSS of proc(5)).
func (p PID) Resident() (int64, error) { return p.status("VmRSS:") }

// Anonymous returns the part of the resident memory that does not belong to files, in bytes (RssAnon). Pages of files
// do not count, because the system can free them and read them again at any time.
func (p PID) Anonymous() (int64, error) { return p.status("RssAnon:") }

// status returns a size from /proc/PID/status, in bytes.
func (p PID) status(name string) (int64, error) {
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

// DiskSize returns the total size of the files below a directory, in bytes.
func DiskSize(dir string) (int64, error) {
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

// MemorySize parses a size such as 2GiB and returns it in bytes.
func MemorySize(text string) (int64, error) {
	number, ok := strings.CutSuffix(text, "GiB")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(v > 0 && v <= 1<<20) {
		return 0, bench.UsageErrorf("--memory is %q: want a size such as 2GiB", text)
	}
	return int64(v * (1 << 30)), nil
}

// MemoryInterval is the time between two readings of the server's memory.
const MemoryInterval = 100 * time.Millisecond
