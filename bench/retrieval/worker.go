package retrieval

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// worker is a process that runs a program in another language, which reads tables. The process first writes a line
// with the libraries that it has found. Then it answers each line of its input with one line. The answers go to file
// descriptor 3, because libraries in the process may print to standard output, even from C. Tabs separate the fields:
//
//	ready  pyarrow 26.0.1  duckdb 2.0.0
//	> parquet  /tmp/customer.parquet  1
//	rows  1500000
//	> parquet  /tmp/missing.parquet  1
//	error  No such file
type worker struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	lines   chan string       // the worker's answers; closed when the process has ended
	stderr  *lastBytes        // keeps what the process writes to standard error and to standard output
	lacking []string          // libraries that the worker could use but does not have
	has     map[string]string // versions of the libraries that the worker has, by name
}

// startWorker starts a program and waits until it is ready.
func startWorker(ctx context.Context, name string, args ...string) (*worker, error) {
	w := &worker{cmd: exec.Command(name, args...), lines: make(chan string, 1), stderr: new(lastBytes), has: map[string]string{}}
	harness.Detach(w.cmd) // so that Ctrl-C ends only this program
	w.cmd.Stdout, w.cmd.Stderr = w.stderr, w.stderr
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, answers, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	w.cmd.ExtraFiles = []*os.File{answers} // becomes file descriptor 3 of the worker, to which it writes its answers
	err = w.cmd.Start()
	answers.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	w.in = in
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			w.lines <- s.Text()
		}
		out.Close()
		w.cmd.Wait()
		close(w.lines)
	}()
	ctx, cancel := context.WithTimeout(ctx, harness.StartupTimeout)
	defer cancel()
	found, err := w.reply(ctx, "ready")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), w.stop())
	}
	for _, library := range found {
		name, version, ok := strings.Cut(library, " ")
		if w.has[name] = version; !ok {
			delete(w.has, name)
			w.lacking = append(w.lacking, name)
		}
	}
	return w, nil
}

// ask sends a request and returns the number of rows that the worker read.
func (w *worker) ask(ctx context.Context, request ...string) (int64, error) {
	if _, err := fmt.Fprintln(w.in, strings.Join(request, "\t")); err != nil {
		return 0, errors.Join(err, w.stderr.err())
	}
	fields, err := w.reply(ctx, "rows")
	if err != nil {
		return 0, fmt.Errorf("%s: %w", request[0], err)
	}
	return strconv.ParseInt(strings.Join(fields, ""), 10, 64)
}

// reply waits for an answer of the given kind and returns the other fields of the line. If ctx ends first, it kills
// the process, because nothing else would stop the request.
func (w *worker) reply(ctx context.Context, kind string) ([]string, error) {
	select {
	case line, ok := <-w.lines:
		if !ok {
			return nil, errors.Join(errors.New("the process has ended"), w.stderr.err())
		}
		fields := strings.Split(line, "\t")
		if fields[0] != kind {
			return nil, errors.New(strings.TrimPrefix(line, "error\t"))
		}
		return fields[1:], nil
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), w.cmd.Process.Kill())
	}
}

// cpu returns the CPU time of the process.
func (w *worker) cpu() (time.Duration, error) { return harness.PID(w.cmd.Process.Pid).CPU() }

// stop ends the process by closing its standard input. The worker may be nil.
func (w *worker) stop() error {
	if w == nil {
		return nil
	}
	err := w.in.Close()
	select {
	case <-w.ended():
	case <-time.After(workerStopLimit):
		err = errors.Join(err, w.cmd.Process.Kill())
		<-w.ended()
	}
	return err
}

// workerStopLimit is the longest time that a worker may take to end before it is killed. A Java driver has threads of
// its own, which may keep the process running.
const workerStopLimit = 5 * time.Second

// ended returns a channel that closes when the process has ended. It discards further answers.
func (w *worker) ended() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		for range w.lines {
		}
		close(done)
	}()
	return done
}

// lastBytes is a writer that keeps the last maxLastBytes bytes written to it.
type lastBytes struct {
	mu   sync.Mutex
	text []byte
}

// maxLastBytes is a number of bytes that is enough for an error message.
const maxLastBytes = 2 << 10

func (l *lastBytes) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if over := len(l.text) - maxLastBytes; over > 0 {
		l.text = append(l.text[:0], l.text[over:]...)
	}
	return len(p), nil
}

// err returns the written text as an error, or nil if nothing was written.
func (l *lastBytes) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.text) == 0 {
		return nil
	}
	return errors.New(strings.TrimSpace(string(l.text)))
}
