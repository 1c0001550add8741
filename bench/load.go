package bench

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
)

// operation is one unit of work of a client: a read, or a whole transaction. It says how many rows it read or wrote.
type operation func(ctx context.Context, c call) (rows int, err error)

// call is what an operation gets from the client that runs it.
type call struct {
	*rand.Rand                 // the client's own
	client     *spanner.Client // of the server that the path uses; nil without a server
	tag        string          // of the request or transaction, so that the server's statistics tell paths apart; "" is none
}

// A histogram keeps latencies from 1 us to ten minutes, with three significant digits.
const (
	latencyDigits = 3
	latencyMax    = 10 * time.Minute
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, latencyMax.Microseconds(), latencyDigits)
}

// recorder collects what all clients have done between two ticks.
type recorder struct {
	mu     sync.Mutex
	window *hdrhistogram.Histogram // latencies in microseconds
	rows   int64
}

func (r *recorder) add(d time.Duration, rows int) {
	d = min(max(d, time.Microsecond), latencyMax)
	r.mu.Lock()
	r.window.RecordValue(d.Microseconds()) // cannot fail: the value is within the range
	r.rows += int64(rows)
	r.mu.Unlock()
}

// swap takes what was collected and gives an empty histogram for what follows.
func (r *recorder) swap(empty *hdrhistogram.Histogram) (full *hdrhistogram.Histogram, rows int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	full, rows = r.window, r.rows
	r.window, r.rows = empty, 0
	return full, rows
}

// window is what happened between two ticks.
type window struct {
	latency *hdrhistogram.Histogram // valid until the next window
	rows    int64
	elapsed time.Duration
	cpu     time.Duration // of the server; 0 if the run cannot see its process
	own     time.Duration // CPU time of the client; 0 if the system does not tell
	share   float64       // how much of the turn is over at the window's end, from 0 to 1
}

func (w window) perSecond() float64 { return float64(w.latency.TotalCount()) / w.elapsed.Seconds() }

// load repeats an operation for a time, or a number of times.
//
// In a closed loop (rate 0) each client sends an operation when its last one is
// answered. In an open loop operations are due at even intervals, also while the
// server is slow; a client that is late takes the oldest one due, and its latency
// counts from when it was due. That is the correction for coordinated omission:
// a stall of the server is seen by all the operations that had to wait for it.
type load struct {
	op      operation
	client  *spanner.Client
	tag     string
	clients int
	rate    float64         // operations per second of all clients; 0 is a closed loop
	lasts   time.Duration   // of a turn, if count is 0
	count   int64           // operations of a turn of a closed loop; 0 goes by the time
	cpu     meter           // of the server; may be nil
	own     meter           // of the client, where it is not in this program; nil is this program
	between bool            // a turn counts the CPU time since the end of the one before
	server  <-chan struct{} // closes if the server's process ends; may be nil

	began    time.Time
	used     time.Duration // the server's CPU time at the end of the last turn; 0 before the first
	taken    atomic.Int64  // operations handed out, in an open loop or by count
	recorder recorder
}

const (
	// tick is how often the screen moves on.
	tick = 500 * time.Millisecond
	// overtime is how long the last operations of a turn may take before the run fails.
	overtime = 30 * time.Second
)

// run sets the clients to work and calls show with every window, from one goroutine.
func (l *load) run(ctx context.Context, show func(window)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.recorder.window = newHistogram()
	spare := newHistogram()
	w := window{}
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
		w = window{full, rows, now.Sub(last), used - cpu, ours - own, l.share(now)}
		last, cpu, own, l.used = now, used, ours, used
		show(w)
		w.latency.Reset()
		spare = w.latency
		return nil
	}
	if l.count == 0 {
		defer time.AfterFunc(l.lasts+overtime, func() {
			cancel(fmt.Errorf("an operation had no answer %v after the end of its round", overtime))
		}).Stop()
	}
	done := l.start(ctx, cancel)
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			if l.ends(now) {
				continue // what is left belongs to this window: a few milliseconds make none of their own
			}
			if err := closeWindow(); err != nil {
				cancel(err)
			}
		case <-l.server:
			return errServerEnded
		case <-done:
			return errors.Join(context.Cause(ctx), closeWindow())
		}
	}
}

// ends says whether a turn of a fixed time will be over within half a tick.
func (l *load) ends(now time.Time) bool {
	return l.count == 0 && l.lasts-now.Sub(l.began) < tick/2
}

// share is how much of the turn is over, from 0 to 1.
func (l *load) share(now time.Time) float64 {
	if l.count > 0 {
		return min(1, float64(l.taken.Load())/float64(l.count))
	}
	return min(1, now.Sub(l.began).Seconds()/l.lasts.Seconds())
}

// clientCPU is the CPU time of the client; 0 if the system does not tell.
func (l *load) clientCPU() time.Duration {
	if l.own == nil {
		return ownCPU()
	}
	used, err := l.own()
	if err != nil {
		return 0
	}
	return used
}

// ownCPU is the CPU time of this program; 0 if the system does not tell.
func ownCPU() time.Duration {
	used, err := pid(os.Getpid()).cpu()
	if err != nil {
		return 0
	}
	return used
}

func (l *load) readCPU() (time.Duration, error) {
	if l.cpu == nil {
		return 0, nil
	}
	used, err := l.cpu()
	if err != nil {
		select {
		case <-l.server:
			return 0, errServerEnded // which is why
		default:
		}
	}
	return used, err
}

var errServerEnded = errors.New("the server's process ended")

// start sets the clients to work; the channel closes when all have stopped.
func (l *load) start(ctx context.Context, cancel context.CancelCauseFunc) <-chan struct{} {
	var clients sync.WaitGroup
	for i := range l.clients {
		clients.Go(func() {
			c := call{rand.New(rand.NewPCG(uint64(i), uint64(l.began.UnixNano()))), l.client, l.tag}
			client := l.closed
			if l.rate > 0 {
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

func (l *load) closed(ctx context.Context, c call) error {
	last := time.Now()
	for l.more(last) {
		rows, err := l.op(ctx, c)
		if err != nil {
			return err
		}
		now := time.Now()
		l.recorder.add(now.Sub(last), rows)
		last = now
	}
	return nil
}

// more says whether a client of a closed loop sends another operation.
func (l *load) more(now time.Time) bool {
	if l.count > 0 {
		return l.taken.Add(1) <= l.count
	}
	return now.Sub(l.began) < l.lasts
}

func (l *load) open(ctx context.Context, c call) error {
	for time.Since(l.began) < l.lasts {
		due := time.Duration(float64(l.taken.Add(1)-1) / l.rate * float64(time.Second))
		if due >= l.lasts {
			return nil
		}
		counts := due
		if wait := due - time.Since(l.began); wait > 0 {
			select {
			case <-time.After(wait):
				counts = time.Since(l.began) // a timer is up to a millisecond late, which is not the server's fault
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		rows, err := l.op(ctx, c)
		if err != nil {
			return err
		}
		l.recorder.add(time.Since(l.began)-counts, rows)
	}
	return nil
}

// unsent is how many operations were due and never sent, as the server was too slow for the rate.
func (l *load) unsent() int64 {
	return max(0, int64(l.rate*l.lasts.Seconds())-l.taken.Load())
}
