package analyze

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// pool lends engines to statements. An engine is an instance of GoogleSQL's library. Light statements share a few
// engines, each of which keeps the schemas of earlier statements. A heavy statement gets a new engine, which takes
// 15 ms and 45 MiB to make. The engine is thrown away after the statement, with all of its memory. So no light
// statement waits for a heavy one, and the memory that the shared engines keep does not depend on the heaviest
// statement so far. If a heavy statement is taken for a light one, its analysis is stopped after lightTime and begins
// again on a new engine.
type pool struct {
	mu           sync.Mutex
	light, heavy queue
	idle         []*engine
	lent         map[*engine]bool
}

const (
	// lightEngines and heavyEngines are the numbers of light and heavy statements that are analyzed at once.
	lightEngines, heavyEngines = 2, 2
	// lightWeight is the maximum weight of a light statement. The library takes 5 to 20 us for a unit of weight.
	lightWeight = 5_000
	// lightTime is the CPU time that a light statement may use. A statement of lightWeight uses at most half of it.
	lightTime = 200 * time.Millisecond
	// slowWeight is the weight given to a light statement that took longer than lightTime, since its real weight is not
	// known.
	slowWeight = 200_000
	// A heavy statement is charged engineBytes of memory, and bytesByWeight bytes for each unit of its weight. Most
	// statements need fewer bytes per unit.
	engineBytes, bytesByWeight = 45 << 20, 256
)

// errSlow is the error that ends the analysis of a light statement which takes longer than lightTime.
var errSlow = errors.New("the statement takes longer than a light one may")

var engines = newPool()

func newPool() *pool {
	return &pool{light: queue{free: lightEngines}, heavy: queue{free: heavyEngines}, lent: map[*engine]bool{}}
}

// run waits until the statement may be analyzed, enters an engine, and calls f with the engine. It fails if ctx ends
// during the wait. If f refuses the statement, run returns a *usererror.Error. Another failure, such as a panic of the
// library, is returned as an error and does not harm other statements. The memory for a heavy statement's engine is
// charged to budget. If a light statement turns out to be heavy, run stops f and calls it again with a new engine.
func (p *pool) run(ctx context.Context, weight int, budget *memory.Budget, f func(*engine)) error {
	if weight > lightWeight {
		return p.runHeavy(ctx, weight, budget, f)
	}
	if err := p.wait(ctx, &p.light, weight); err != nil {
		return err
	}
	err := p.lend(ctx, false, f)
	p.done(&p.light)
	if errors.Is(err, errSlow) {
		return p.runHeavy(ctx, slowWeight, budget, f)
	}
	return err
}

func (p *pool) runHeavy(ctx context.Context, weight int, budget *memory.Budget, f func(*engine)) error {
	if err := p.wait(ctx, &p.heavy, weight); err != nil {
		return err
	}
	defer p.done(&p.heavy)
	var charged *memory.Account
	if budget != nil {
		charged = budget.Open(memory.Request)
		defer charged.Close()
	}
	if err := charged.Grow(ctx, min(engineBytes+int64(weight)*bytesByWeight, engineMemory)); err != nil {
		return err
	}
	return p.lend(ctx, true, f)
}

// wait adds a statement of this weight to the queue, and waits until the statement may be analyzed. It fails if ctx
// ends before that.
func (p *pool) wait(ctx context.Context, q *queue, weight int) error {
	p.mu.Lock()
	w := q.join(weight)
	p.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	default:
	}
	defer cpu.Waiting(ctx)()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	q.leave(w)
	return ctx.Err()
}

func (p *pool) done(q *queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q.done()
}

// lend calls f with an engine, and turns panics of the library into errors. If alone is set, the engine is a new one.
func (p *pool) lend(ctx context.Context, alone bool, f func(*engine)) (err error) {
	e := p.get(alone)
	defer func() { p.put(e) }()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
			if _, user := usererror.As(err); !user && !errors.Is(err, ctx.Err()) && err != errSlow {
				e.discard = true
				err = fmt.Errorf("analyzing a statement: %w", err)
			}
		default:
			e.discard = true
			err = fmt.Errorf("analyzing a statement: panic: %v\n%s", r, debug.Stack())
		}
	}()
	e.ctx, e.work, e.loaded = ctx, cpu.BeginSegment(), 0
	defer e.work.End()
	e.enter()
	defer e.leave()
	if e.core == nil {
		e.start()
	}
	f(e)
	return nil
}

// get returns an idle engine. If there is none, or if alone is set, get makes a new engine, which the caller must
// start.
func (p *pool) get(alone bool) *engine {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &engine{discard: alone}
	if last := len(p.idle) - 1; last >= 0 && !alone {
		e = p.idle[last]
		p.idle = p.idle[:last]
	}
	p.lent[e] = true
	return e
}

// put takes an engine back. It frees the schemas in the engine for which forget was called while the engine was lent.
func (p *pool) put(e *engine) {
	e.ctx = context.Background()
	for {
		p.mu.Lock()
		forgotten := e.forgotten
		e.forgotten = nil
		keep := !e.discard && e.core != nil && len(e.core.Memory) <= spareMemory && len(p.idle) < lightEngines
		if len(forgotten) == 0 || !keep {
			delete(p.lent, e)
			if keep {
				p.idle = append(p.idle, e)
			}
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		e.forget(forgotten)
	}
}

// forget frees the schema of an Analyzer in all engines. It frees the schema in idle engines at once; lent engines
// free it when they are given back.
func (p *pool) forget(a *Analyzer) {
	p.mu.Lock()
	for e := range p.lent {
		e.forgotten = append(e.forgotten, a)
	}
	var have []*engine
	p.idle = slices.DeleteFunc(p.idle, func(e *engine) bool {
		if e.libraries[a] == nil {
			return false
		}
		e.forgotten = append(e.forgotten, a)
		p.lent[e] = true
		have = append(have, e)
		return true
	})
	p.mu.Unlock()
	for _, e := range have {
		p.put(e)
	}
}

// queue holds the statements of one kind, light or heavy, that wait for their turn. A statement is analyzed only
// while it has a turn. There are lightEngines turns for light statements and heavyEngines turns for heavy ones.
type queue struct {
	free    int // number of turns that no statement has
	waiting []*waiter
}

// waiter is a statement that waits for its turn or has it.
type waiter struct {
	weight int
	passed int // number of later statements that got their turn before this one
	ready  chan struct{}
}

// maxPassed is the maximum number of later, lighter statements that may get their turn before an earlier, heavier
// one.
const maxPassed = 16

func (q *queue) join(weight int) *waiter {
	w := &waiter{weight: weight, ready: make(chan struct{})}
	q.waiting = append(q.waiting, w)
	q.next()
	return w
}

// leave removes a statement whose context has ended. If the statement already has its turn, leave gives the turn
// back.
func (q *queue) leave(w *waiter) {
	if at := slices.Index(q.waiting, w); at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
		return
	}
	q.done() // it already has its turn
}

// done gives a turn back.
func (q *queue) done() {
	q.free++
	q.next()
}

// next gives the free turns to the lightest waiting statements. If maxPassed statements have passed the first in the
// queue, the first gets the turn instead.
func (q *queue) next() {
	for q.free > 0 && len(q.waiting) > 0 {
		at := 0
		for i, w := range q.waiting {
			if w.weight < q.waiting[at].weight && q.waiting[0].passed < maxPassed {
				at = i
			}
		}
		for _, w := range q.waiting[:at] {
			w.passed++
		}
		close(q.waiting[at].ready)
		q.waiting = slices.Delete(q.waiting, at, at+1)
		q.free--
	}
}
