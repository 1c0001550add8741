package soak

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// Settings say how long Run keeps a server under load, and how often it ends and restarts the server.
type Settings struct {
	For      time.Duration
	Life     time.Duration // how long each server process runs before Run ends it and starts the next
	Memory   string        // the server's --memory
	Server   string        // the server's executable; "" for this program
	Dir      string        // directory for the server's data; "" for a temporary one
	Out      io.Writer     // gets the result
	Progress io.Writer     // gets a line for each life of the server; a life is the time of one process
}

const (
	// sampleEvery is the time between two samples of the server.
	sampleEvery = 5 * time.Second
	// soakGrowth and soakSlack limit the growth of memory. A life is the time of one server process. At the end of the
	// last life, the server may use at most soakGrowth times the memory of an earlier life, plus soakSlack bytes. The
	// slack allows for garbage that was not collected yet, whose amount differs from moment to moment.
	soakGrowth = 1.25
	soakSlack  = 64 << 20
	// soakMore is the largest increase that the number of goroutines or connections may have. Some increase is allowed
	// because the numbers differ from moment to moment, as requests come and go.
	soakMore = 100
)

// Run runs a server under mixed load while its clients stay connected. It ends and restarts the server again and again,
// by kill and by SIGTERM in turn. It fails if a client gets an error that it should not get, or if a commit is lost or
// takes effect twice. It also fails if the server has more memory, goroutines or connections in its last life than in
// earlier ones, by more than soakGrowth, soakSlack and soakMore allow.
func Run(ctx context.Context, s Settings) error {
	if s.Life <= 0 || s.For < 3*s.Life {
		return bench.UsageErrorf("a soak of %v has room for fewer than three lives of %v: the first is for warming up, and the others are compared", s.For, s.Life)
	}
	if s.Dir == "" {
		dir, err := os.MkdirTemp("", "crowfoot-bench-soak")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		s.Dir = dir
	}
	k := &soak{Settings: s}
	if err := k.start(ctx); err != nil {
		return err
	}
	defer func() { k.server.Kill() }()
	load, err := newSoakLoad(ctx, k.server.GRPC)
	if err != nil {
		return err
	}
	k.load = load
	err = k.lives(ctx)
	k.report()
	return errors.Join(append([]error{err, load.end(context.WithoutCancel(ctx))}, k.grown()...)...)
}

// soak is the state of one call of Run.
type soak struct {
	Settings
	server *harness.Process
	load   *soakLoad
	ended  []life
}

// life holds what was measured during the life of one process of the server.
type life struct {
	end       string // how Run ends the process: "kill -9" or "SIGTERM"
	recovered time.Duration
	last      state
	peak      int64 // highest memory, in bytes
}

// state is a sample of the server.
type state struct {
	memory      int64 // RssAnon, in bytes
	goroutines  int
	connections int // open sockets
	files       int // other open files
}

// start starts the server. A server that is started again listens on the addresses of the previous one.
func (k *soak) start(ctx context.Context) (err error) {
	grpc, http := "127.0.0.1:0", "127.0.0.1:0"
	if k.server != nil {
		grpc, http = k.server.GRPC, k.server.HTTP
	}
	k.server, err = harness.StartProcess(ctx, k.Server, "start", "--data", filepath.Join(k.Dir, "data"), "--grpc", grpc, "--http", http, "--memory", k.Memory, "--log-level", "error")
	return err
}

// lives starts and ends the server again and again until the time is over.
func (k *soak) lives(ctx context.Context) error {
	fmt.Fprintln(k.Progress, soakHead)
	over := time.Now().Add(k.For)
	for time.Until(over) > 0 && ctx.Err() == nil {
		l := life{end: "kill -9"}
		if len(k.ended)%2 == 1 {
			l.end = "SIGTERM"
		}
		if err := k.live(ctx, &l); err != nil {
			return err
		}
		if err := k.again(ctx, &l); err != nil {
			return fmt.Errorf("after %s: %w", l.end, err)
		}
		k.ended = append(k.ended, l)
		fmt.Fprintln(k.Progress, l.line(len(k.ended)))
	}
	return context.Cause(ctx)
}

// soakHead names the columns of the text that the method life.line returns.
var soakHead = fmt.Sprintf("%-5s %-8s %10s %10s %11s %11s %6s %9s", "life", "end", "memory MiB", "peak MiB", "goroutines", "connections", "files", "recovery")

func (l life) line(number int) string {
	return fmt.Sprintf("%-5d %-8s %10d %10d %11d %11d %6d %7.1f s", number, l.end, l.last.memory>>20, l.peak>>20, l.last.goroutines, l.last.connections, l.last.files, l.recovered.Seconds())
}

// report prints the last lives of the server, and how much the clients did in all lives.
func (k *soak) report() {
	fmt.Fprintln(k.Out, soakHead)
	first := max(0, len(k.ended)-(report.SummaryLines-2))
	for i, l := range k.ended[first:] {
		fmt.Fprintln(k.Out, l.line(first+i+1))
	}
	fmt.Fprintln(k.Out, k.load.line())
}

// live samples the server until its life is over, and stores the last sample in l.
func (k *soak) live(ctx context.Context, l *life) error {
	over, tick := time.NewTimer(k.Life), time.NewTicker(sampleEvery)
	defer over.Stop()
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			now, err := k.sample(ctx)
			if err != nil {
				return err
			}
			l.last, l.peak = now, max(l.peak, now.memory)
			if err := k.load.failed(); err != nil {
				return errors.New("a client has failed") // load.end returns the reason
			}
		case <-over.C:
			return nil
		case <-k.server.Ended:
			return fmt.Errorf("the server ended with %v", k.server.Command.ProcessState)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// again ends the server's process in the way that l.end names, and starts a new process. Then it waits until the
// workers get answers from the new process, and records in l how long they had to wait.
func (k *soak) again(ctx context.Context, l *life) error {
	if l.end == "SIGTERM" {
		if err := k.server.Stop(); err != nil {
			return err
		}
	} else {
		k.server.Kill()
	}
	began := time.Now()
	if err := k.start(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := k.load.recover(ctx); err != nil {
		return err
	}
	l.recovered = time.Since(began)
	return nil
}

func (k *soak) sample(ctx context.Context) (now state, err error) {
	if now.memory, err = k.server.PID().Anonymous(); err != nil {
		return now, err
	}
	if now.goroutines, err = k.goroutines(ctx); err != nil {
		return now, err
	}
	now.connections, now.files, err = descriptors(k.server.PID())
	return now, err
}

// goroutines reads the number of goroutines from the server's metrics.
func (k *soak) goroutines(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, harness.MetricsURL(k.server.HTTP), nil)
	if err != nil {
		return 0, err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	for lines := bufio.NewScanner(reply.Body); lines.Scan(); {
		if number, ok := strings.CutPrefix(lines.Text(), "go_goroutines "); ok {
			return strconv.Atoi(number)
		}
	}
	return 0, errors.New("the server's metrics have no go_goroutines")
}

// descriptors counts the open sockets and the other open files of a process.
func descriptors(p harness.PID) (sockets, files int, err error) {
	dir := fmt.Sprintf("/proc/%d/fd", p)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, 0, fmt.Errorf("read open files (Linux only): %w", err)
	}
	for _, e := range entries {
		target, _ := os.Readlink(filepath.Join(dir, e.Name())) // fails if the file has been closed meanwhile
		if strings.HasPrefix(target, "socket:") {
			sockets++
		} else {
			files++
		}
	}
	return sockets, files, nil
}

// grown compares the last life with the lowest values of the earlier lives, and returns an error for each quantity
// that has grown. It ignores the first life, because the server warms up in it.
func (k *soak) grown() (broken []error) {
	if len(k.ended) < 3 {
		return nil // the first life does not count, and the last one needs an earlier life to be compared with
	}
	least := func(of func(life) int64) int64 {
		return of(slices.MinFunc(k.ended[1:], func(a, b life) int { return int(of(a) - of(b)) }))
	}
	last := k.ended[len(k.ended)-1]
	for _, c := range []struct {
		what  string
		of    func(life) int64
		limit func(least int64) int64
	}{
		{"memory", func(l life) int64 { return l.last.memory }, func(n int64) int64 { return int64(soakGrowth*float64(n)) + soakSlack }},
		{"goroutines", func(l life) int64 { return int64(l.last.goroutines) }, func(n int64) int64 { return n + soakMore }},
		{"connections", func(l life) int64 { return int64(l.last.connections) }, func(n int64) int64 { return n + soakMore }},
	} {
		if before := least(c.of); c.of(last) > c.limit(before) {
			broken = append(broken, fmt.Errorf("%s grew from %d to %d", c.what, before, c.of(last)))
		}
	}
	return broken
}
