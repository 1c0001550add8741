package bench

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
)

// MemorySettings say how hard Memory presses a server, and for how long.
type MemorySettings struct {
	For      time.Duration
	Heavy    int    // requests at once, of all kinds in turn
	Memory   string // of the server: --memory
	Server   string // its executable; "" is this program
	Dir      string // of its data; "" is a temporary one
	Kinds    []string
	Out      io.Writer // gets the result
	Progress io.Writer // gets a line every ten seconds
}

const (
	// lightClients send small requests beside the heavy ones.
	lightClients = 4
	// lightLimit is what 99 of 100 small requests may take at most.
	lightLimit = time.Second
	// drainLimit is how long heavy requests may go on when the time is over.
	drainLimit = 2 * time.Minute
	// watchEvery is how often the server's memory is looked at.
	watchEvery = 100 * time.Millisecond
)

// check says what is wrong with the settings.
func (s MemorySettings) check() error {
	if s.For <= 0 {
		return usageErrorf("--for is %v: want more than 0", s.For)
	}
	if s.Heavy < 1 || s.Heavy > maxClients {
		return usageErrorf("--heavy is %d: want from 1 to %d", s.Heavy, maxClients)
	}
	var names []string
	for _, k := range new(memoryLoad).kinds() {
		names = append(names, k.name)
	}
	for _, name := range s.Kinds {
		if !slices.Contains(names, name) {
			return usageErrorf("--kinds has %q: want of %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// Memory presses a server with the heaviest requests of each kind, many at once, beside clients with small ones. It fails if the server ends, if
// a request is answered anything but success or RESOURCE_EXHAUSTED, if one of a hundred small requests takes over a second, or if the server takes
// more memory than it was told.
func Memory(ctx context.Context, s MemorySettings) error {
	limit, err := memorySize(s.Memory)
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
	// By the variable and not the flag, so that an executable without either can be shown to fail.
	if err := os.Setenv("CROWFOOT_MEMORY", s.Memory); err != nil {
		return err
	}
	p, err := spawn(ctx, s.Server, "start", "--data", filepath.Join(s.Dir, "data"), "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--log-level", "error", "--database", memoryDatabase, "--ddl", memorySchema(s.Dir))
	if err != nil {
		return err
	}
	load, err := newMemoryLoad(ctx, p, s)
	if err != nil {
		p.kill()
		return err
	}
	defer load.close()
	watch := watchMemory(p, load, s.Progress)
	load.run(ctx, s)
	broken := watch.end(limit)
	select {
	case <-p.ended:
		broken = append(broken, fmt.Errorf("the server ended with %v", p.cmd.ProcessState))
	default:
		p.kill()
	}
	broken = append(broken, load.outcomes.report(s.Out)...)
	return errors.Join(broken...)
}

// A memoryWatch looks at a server's memory again and again.
type memoryWatch struct {
	stop, stopped chan struct{}
	peak          int64
}

func watchMemory(p *process, load *memoryLoad, out io.Writer) *memoryWatch {
	w := &memoryWatch{stop: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(w.stopped)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		shown := time.Now()
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
			}
			now, err := p.pid().anonymous()
			if err != nil {
				continue // it has ended
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

// end stops looking, and says whether the server took too much.
func (w *memoryWatch) end(limit int64) []error {
	close(w.stop)
	<-w.stopped
	if w.peak > limit {
		return []error{fmt.Errorf("the server took %d MiB of memory, and may take %d MiB", w.peak>>20, limit>>20)}
	}
	return nil
}

// outcomes are how requests ended, by kind.
type outcomes struct {
	mu     sync.Mutex
	byKind map[string]*outcome
}

type outcome struct {
	light bool
	codes map[codes.Code]int
	wrong error           // the first answer that breaks the rule
	took  []time.Duration // of each
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

// line sums up what has ended so far.
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

// report prints a line for each kind, and returns the rules that were broken.
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
