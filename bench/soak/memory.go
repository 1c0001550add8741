package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// MemorySettings say how much load Memory puts on a server, and for how long.
type MemorySettings struct {
	For      time.Duration
	Heavy    int    // number of clients that send heavy requests, one at a time, and go through the kinds in turn
	Memory   string // the server's --memory
	Server   string // the server's executable; "" for this program
	Dir      string // directory for the server's data; "" for a temporary one
	Kinds    []string
	Out      io.Writer // gets the result
	Progress io.Writer // gets a line every ten seconds
}

const (
	// lightClients is the number of clients that send small requests at the same time as the heavy ones.
	lightClients = 4
	// lightLimit is the highest p99 latency that small requests may have.
	lightLimit = time.Second
	// drainLimit is the longest time that requests in progress may still take when the duration of the test is over.
	drainLimit = 2 * time.Minute
)

// check returns an error if the settings are not valid.
func (s MemorySettings) check() error {
	if s.For <= 0 {
		return bench.UsageErrorf("--for is %v: want more than 0", s.For)
	}
	if s.Heavy < 1 || s.Heavy > bench.MaxClients {
		return bench.UsageErrorf("--heavy is %d: want from 1 to %d", s.Heavy, bench.MaxClients)
	}
	var names []string
	for _, k := range new(memoryLoad).kinds() {
		names = append(names, k.name)
	}
	for _, name := range s.Kinds {
		if !slices.Contains(names, name) {
			return bench.UsageErrorf("--kinds has %q: want of %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// Memory sends a server the heaviest requests of each kind, many at the same time, while other clients send small
// ones. It returns an error in four cases: the server ends, a request gets an answer that its kind does not permit,
// more than one in a hundred small requests takes over a second, or the server uses more memory than --memory allows.
// A request of any kind may succeed or get RESOURCE_EXHAUSTED.
func Memory(ctx context.Context, s MemorySettings) error {
	limit, err := harness.MemorySize(s.Memory)
	if err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	if s.Dir == "" {
		dir, err := os.MkdirTemp("", "crowfoot-bench-memory")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		s.Dir = dir
	}
	// The environment variable sets the memory limit, and not the flag --memory, so that the test can also run an older
	// executable that knows neither of them. Such an executable would refuse an unknown flag, but ignores the variable
	// and starts. The test then shows that it uses more memory than the limit.
	if err := os.Setenv("CROWFOOT_MEMORY", s.Memory); err != nil {
		return err
	}
	p, err := harness.StartProcess(ctx, s.Server, "start", "--data", filepath.Join(s.Dir, "data"), "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--log-level", "error", "--database", memoryDatabase, "--ddl", memorySchema(s.Dir))
	if err != nil {
		return err
	}
	load, err := newMemoryLoad(ctx, p, s)
	if err != nil {
		p.Kill()
		return err
	}
	defer load.close()
	watch := watchMemory(p, load, s.Progress)
	load.run(ctx, s)
	broken := watch.end(limit)
	select {
	case <-p.Ended:
		broken = append(broken, fmt.Errorf("the server ended with %v", p.Command.ProcessState))
	default:
		p.Kill()
	}
	broken = append(broken, load.outcomes.report(s.Out)...)
	return errors.Join(broken...)
}

// memoryWatch reads the memory of a server at short intervals.
type memoryWatch struct {
	stop, stopped chan struct{}
	peak          int64
}

func watchMemory(p *harness.Process, load *memoryLoad, out io.Writer) *memoryWatch {
	w := &memoryWatch{stop: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(w.stopped)
		tick := time.NewTicker(harness.MemoryInterval)
		defer tick.Stop()
		shown := time.Now()
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
			}
			now, err := p.PID().Anonymous()
			if err != nil {
				continue // the process has ended
			}
			w.peak = max(w.peak, now)
			if time.Since(shown) >= 10*time.Second {
				shown = time.Now()
				fmt.Fprintf(out, "%s  memory %5d MiB, at most %5d MiB; %s\n", shown.Format(time.TimeOnly), now>>20, w.peak>>20, load.outcomes.line())
			}
		}
	}()
	return w
}

// end stops the readings of the memory. It returns an error if the server used more memory than limit, in bytes.
func (w *memoryWatch) end(limit int64) []error {
	close(w.stop)
	<-w.stopped
	if w.peak > limit {
		return []error{fmt.Errorf("the server took %d MiB of memory, and may take %d MiB", w.peak>>20, limit>>20)}
	}
	return nil
}

// outcomes counts the answers to the requests, by kind of request.
type outcomes struct {
	mu     sync.Mutex
	byKind map[string]*outcome
}

type outcome struct {
	light bool
	codes map[codes.Code]int
	wrong error           // the first answer that is not permitted
	took  []time.Duration // the latency of each request
}

func (o *outcomes) add(kind string, light bool, took time.Duration, err error, permitted ...codes.Code) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.byKind[kind]
	if k == nil {
		k = &outcome{light: light, codes: map[codes.Code]int{}}
		o.byKind[kind] = k
	}
	code := status.Code(err)
	k.codes[code]++
	k.took = append(k.took, took)
	if code != codes.OK && code != codes.ResourceExhausted && !slices.Contains(permitted, code) && k.wrong == nil {
		k.wrong = fmt.Errorf("%s: %w", kind, err)
	}
}

// line returns a one-line summary of the requests that have ended so far.
func (o *outcomes) line() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	heavy, light, refused := 0, 0, 0
	for _, k := range o.byKind {
		if k.light {
			light += len(k.took)
		} else {
			heavy += len(k.took)
		}
		refused += k.codes[codes.ResourceExhausted]
	}
	return fmt.Sprintf("%d heavy and %d small requests, %d refused", heavy, light, refused)
}

// report prints a line for each kind of request. It returns an error for each kind that had an answer which is not
// permitted, and for each kind of small requests whose p99 latency exceeds lightLimit.
func (o *outcomes) report(out io.Writer) (broken []error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, kind := range slices.Sorted(maps.Keys(o.byKind)) {
		k := o.byKind[kind]
		slices.Sort(k.took)
		at := func(share float64) time.Duration { return k.took[min(int(share*float64(len(k.took))), len(k.took)-1)] }
		fmt.Fprintf(out, "%-16s %8d  median %8v  p99 %8v  max %8v  %d refused\n", kind, len(k.took), at(0.5).Round(time.Millisecond/10),
			at(0.99).Round(time.Millisecond/10), at(1).Round(time.Millisecond/10), k.codes[codes.ResourceExhausted])
		if k.wrong != nil {
			broken = append(broken, k.wrong)
		}
		if k.light && at(0.99) > lightLimit {
			broken = append(broken, fmt.Errorf("%s: one of a hundred takes %v", kind, at(0.99)))
		}
	}
	return broken
}
