package harness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/crowfoot-db/crowfoot/bench/report"
)

// Operation is one unit of work of a client: a read, or a whole transaction. It returns the number of rows that were
// read or written.
type Operation func(ctx context.Context, c Call) (rows int, err error)

// Call holds what an operation receives from the client that runs it.
type Call struct {
	*rand.Rand                 // the client's own generator of random numbers
	Client     *spanner.Client // of the path's server; nil without a server
	// Tag is the request or transaction tag, by which the server's statistics distinguish paths; "" for none.
	Tag string
}

// recorder collects the latencies and row counts of all clients between two updates of the screen.
type recorder struct {
	mu     sync.Mutex
	window *hdrhistogram.Histogram // latencies in microseconds
	rows   int64
}

func (r *recorder) add(d time.Duration, rows int) {
	d = min(max(d, time.Microsecond), report.MaxLatency)
	r.mu.Lock()
	r.window.RecordValue(d.Microseconds()) // cannot fail: the value is within the range
	r.rows += int64(rows)
	r.mu.Unlock()
}

// swap returns the histogram of latencies and the row count that the recorder has collected so far. From then on, the
// recorder collects latencies in the histogram that the caller passes, which is empty, and counts rows from 0.
func (r *recorder) swap(empty *hdrhistogram.Histogram) (full *hdrhistogram.Histogram, rows int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	full, rows = r.window, r.rows
	r.window, r.rows = empty, 0
	return full, rows
}

// LoadGenerator repeats an operation for a time, or a number of times. Each call of its method Run is one turn.
//
// In a closed loop (Rate 0), each client sends its next operation when the last one is answered. In an open loop,
// operations are due at even intervals, even while the server is slow. A client that is free takes the operation that
// has been due longest, and the latency counts from the time when the operation was due. This corrects for coordinated
// omission: if the server stalls, the latencies of all operations that had to wait include the stall.
type LoadGenerator struct {
	Operation   Operation
	Client      *spanner.Client
	tag         string
	Clients     int
	Rate        float64         // operations per second of all clients; 0 is a closed loop
	Duration    time.Duration   // the duration of a turn, if count is 0
	count       int64           // operations of a turn, in a closed loop; 0 to stop by time
	cpu         CPUMeter        // meter of the server's CPU time; may be nil
	own         CPUMeter        // meter of the client's CPU time; nil if the client is this program
	between     bool            // true if the server's CPU time between two turns counts for the later turn
	ServerEnded <-chan struct{} // closes if the server's process ends; may be nil

	began    time.Time
	used     time.Duration // the server's CPU time at the end of the last turn; 0 before the first
	issued   atomic.Int64  // operations of this turn that clients have begun, in an open loop or if count is set
	recorder recorder
}

const (
	// Tick is the time between two updates of the screen.
	Tick = 500 * time.Millisecond
	// Overtime is how long the last operations of a turn may still take after the turn's end before the run fails.
	Overtime = 30 * time.Second
)

// Run starts the clients and waits until the turn is over. A window is the time between two updates of the screen.
// After each window, Run calls show with its results, always from the same goroutine.
func (l *LoadGenerator) Run(ctx context.Context, show func(report.Window)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.recorder.window = report.NewHistogram()
	spare := report.NewHistogram()
	w := report.Window{}
	cpu, err := l.readCPU()
	if err != nil {
		return err
	}
	if l.between && l.used > 0 {
		cpu = l.used
	}
	own := l.clientCPU()
	l.began = time.Now()
	last := l.began
	closeWindow := func() error {
		now := time.Now()
		used, err := l.readCPU()
		if err != nil {
			return err
		}
		ours := l.clientCPU()
		full, rows := l.recorder.swap(spare)
		w = report.Window{Latency: full, Rows: rows, Elapsed: now.Sub(last), CPU: used - cpu, Own: ours - own, Share: l.share(now)}
		last, cpu, own, l.used = now, used, ours, used
		show(w)
		w.Latency.Reset()
		spare = w.Latency
		return nil
	}
	if l.count == 0 {
		defer time.AfterFunc(l.Duration+Overtime, func() {
			cancel(fmt.Errorf("an operation had no answer %v after the end of its turn", Overtime))
		}).Stop()
	}
	done := l.start(ctx, cancel)
	t := time.NewTicker(Tick)
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			if l.ends(now) {
				// Less than half a tick is left. That is too short for a window of its own, so this window continues to
				// the end of the turn.
				continue
			}
			if err := closeWindow(); err != nil {
				cancel(err)
			}
		case <-l.ServerEnded:
			return ErrServerEnded
		case <-done:
			return errors.Join(context.Cause(ctx), closeWindow())
		}
	}
}

// ends reports whether a turn of fixed length will be over within half a tick.
func (l *LoadGenerator) ends(now time.Time) bool {
	return l.count == 0 && l.Duration-now.Sub(l.began) < Tick/2
}

// share returns the fraction of the turn that is over, from 0 to 1.
func (l *LoadGenerator) share(now time.Time) float64 {
	if l.count > 0 {
		return min(1, float64(l.issued.Load())/float64(l.count))
	}
	return min(1, now.Sub(l.began).Seconds()/l.Duration.Seconds())
}

// clientCPU returns the CPU time of the client, or 0 if the system does not report it.
func (l *LoadGenerator) clientCPU() time.Duration {
	if l.own == nil {
		return OwnCPU()
	}
	used, err := l.own()
	if err != nil {
		return 0
	}
	return used
}

// OwnCPU returns the CPU time of this program, or 0 if the system does not report it.
func OwnCPU() time.Duration {
	used, err := PID(os.Getpid()).CPU()
	if err != nil {
		return 0
	}
	return used
}

func (l *LoadGenerator) readCPU() (time.Duration, error) {
	if l.cpu == nil {
		return 0, nil
	}
	used, err := l.cpu()
	if err != nil {
		select {
		case <-l.ServerEnded:
			return 0, ErrServerEnded // the reason why the CPU time cannot be read
		default:
		}
	}
	return used, err
}

var ErrServerEnded = errors.New("the server's process ended")

// start starts the clients. The channel closes when all have stopped.
func (l *LoadGenerator) start(ctx context.Context, cancel context.CancelCauseFunc) <-chan struct{} {
	var clients sync.WaitGroup
	for i := range l.Clients {
		clients.Go(func() {
			c := Call{rand.New(rand.NewPCG(uint64(i), uint64(l.began.UnixNano()))), l.Client, l.tag}
			client := l.closed
			if l.Rate > 0 {
				client = l.open
			}
			if err := client(ctx, c); err != nil {
				cancel(err)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		clients.Wait()
		close(done)
	}()
	return done
}

func (l *LoadGenerator) closed(ctx context.Context, c Call) error {
	last := time.Now()
	for l.more(last) {
		rows, err := l.Operation(ctx, c)
		if err != nil {
			return err
		}
		now := time.Now()
		l.recorder.add(now.Sub(last), rows)
		last = now
	}
	return nil
}

// more reports whether a client of a closed loop sends another operation.
func (l *LoadGenerator) more(now time.Time) bool {
	if l.count > 0 {
		return l.issued.Add(1) <= l.count
	}
	return now.Sub(l.began) < l.Duration
}

func (l *LoadGenerator) open(ctx context.Context, c Call) error {
	for time.Since(l.began) < l.Duration {
		due := time.Duration(float64(l.issued.Add(1)-1) / l.Rate * float64(time.Second))
		if due >= l.Duration {
			return nil
		}
		counts := due
		if wait := due - time.Since(l.began); wait > 0 {
			select {
			case <-time.After(wait):
				// The timer is up to a millisecond late. This delay is not the server's, so the latency counts from now
				// and not from the due time.
				counts = time.Since(l.began)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		rows, err := l.Operation(ctx, c)
		if err != nil {
			return err
		}
		l.recorder.add(time.Since(l.began)-counts, rows)
	}
	return nil
}

// unsent returns the number of operations that were due but were never sent, because the server was too slow for the
// rate.
func (l *LoadGenerator) unsent() int64 {
	return max(0, int64(l.Rate*l.Duration.Seconds())-l.issued.Load())
}
