package bench

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// operation is one request of a client; r is the client's own source of random keys.
type operation func(ctx context.Context, r *rand.Rand) error

// result is what a load has shown, over all its rounds.
type result struct {
	operations int64
	elapsed    time.Duration
	cpu        time.Duration           // of the server
	latency    *hdrhistogram.Histogram // microseconds
}

// Latencies are kept from 1 us to a minute with three digits.
func newResult() *result {
	return &result{latency: hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 3)}
}

func (r *result) perSecond() float64 { return float64(r.operations) / r.elapsed.Seconds() }

// cpuPerOperation is the server's CPU time of one operation.
func (r *result) cpuPerOperation() time.Duration {
	if r.operations == 0 {
		return 0
	}
	return r.cpu / time.Duration(r.operations)
}

func (r *result) quantile(q float64) time.Duration {
	return time.Duration(r.latency.ValueAtQuantile(q)) * time.Microsecond
}

// drive lets clients repeat an operation for a while, closed loop, and adds what happened to r.
func (r *result) drive(ctx context.Context, p *process, clients int, d time.Duration, op operation) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	before, err := p.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	for i := range clients {
		wg.Go(func() {
			own := newResult()
			err := own.client(ctx, began.Add(d), rand.New(rand.NewPCG(uint64(i), uint64(began.UnixNano()))), op)
			mu.Lock()
			defer mu.Unlock()
			r.operations += own.operations
			r.latency.Merge(own.latency)
			if err != nil && failed == nil {
				failed = err
				cancel()
			}
		})
	}
	wg.Wait()
	r.elapsed += time.Since(began)
	after, err := p.cpu()
	if failed != nil {
		return failed
	}
	r.cpu += after - before
	return err
}

// client repeats the operation until the time is up.
func (r *result) client(ctx context.Context, until time.Time, random *rand.Rand, op operation) error {
	last := time.Now()
	for last.Before(until) {
		if err := op(ctx, random); err != nil {
			return err
		}
		now := time.Now()
		r.latency.RecordValue(max(1, now.Sub(last).Microseconds()))
		r.operations++
		last = now
	}
	return ctx.Err()
}
