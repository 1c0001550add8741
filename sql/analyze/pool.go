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

// pool lends engines to statements. Light statements share a few engines, each of which keeps the schemas that it has seen. A heavy
// statement gets a new one, which takes 15 ms and 45 MiB, and which is thrown away afterwards with all that the statement has taken. So
// no statement waits for a heavier one, and the memory that the library keeps does not depend on the heaviest statement it has seen. A
// statement that was taken for a light one, and is not, is stopped after lightTime and analyzed again as a heavy one.
type pool struct {
	mu           sync.Mutex
	light, heavy queue
	idle         []*engine
	lent         map[*engine]bool
}

const (
	// lightEngines and heavyEngines are how many light and heavy statements are analyzed at once.
	lightEngines, heavyEngines = 2, 2
	// lightWeight is the most that a light statement weighs. The library takes 5 to 20 us for a unit of weight.
	lightWeight = 5_000
	// lightTime is how much CPU time a light statement may use. One of lightWeight uses half of it.
	lightTime = 200 * time.Millisecond
	// slowWeight is what a statement that took longer weighs: more than it seems, but it is not known how much.
	slowWeight = 200_000
	// An engine takes engineBytes, and bytesByWeight for each unit of a statement's weight. Most statements need less of the latter.
	engineBytes, bytesByWeight = 45 << 20, 256
)

// errSlow ends the analysis of a light statement that takes longer than lightTime.
var errSlow = errors.New("the statement takes longer than a light one may")

var engines = newPool()

func newPool() *pool {
	return &pool{light: queue{free: lightEngines}, heavy: queue{free: heavyEngines}, lent: map[*engine]bool{}}
}

// run calls f with an engine that it has entered, when it is the statement's turn; it fails if ctx ends before. What f refuses comes back
// as a *usererror.Error. Everything else that goes wrong, panics of the library included, is an error of this statement alone. An engine for
// a heavy statement is charged to the budget. If a light statement turns out to be heavy, f is stopped and called again.
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

// wait waits for the turn of a statement.
func (p *pool) wait(ctx context.Context, q *queue, weight int) error {
	p.mu.Lock()
	w := q.join(weight)
	p.mu.Unlock()
	select {
	case <-w.turn:
		return nil
	default:
	}
	defer cpu.Waiting(ctx)()
	select {
	case <-w.turn:
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

// lend calls f with an engine.
func (p *pool) lend(ctx context.Context, alone bool, f func(*engine)) (err error) {
	e := p.take(alone)
	defer func() { p.give(e) }()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
			if user := (*usererror.Error)(nil); !errors.As(err, &user) && !errors.Is(err, ctx.Err()) && err != errSlow {
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

// take finds an engine, or makes one, which is not started yet. An engine for a statement alone is a new one.
func (p *pool) take(alone bool) *engine {
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

// give takes an engine back, and frees the schemas that were forgotten meanwhile.
func (p *pool) give(e *engine) {
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

// forget frees the schema of an Analyzer in all engines, at once in those that are idle.
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
		p.give(e)
	}
}

// queue are the statements of one kind that wait for their turn.
type queue struct {
	free    int // turns
	waiting []*waiter
}

// waiter is a statement that waits, or that has its turn.
type waiter struct {
	weight int
	passed int // by how many statements that came later
	turn   chan struct{}
}

// maxPassed is how many lighter statements that came later may pass a heavier one.
const maxPassed = 16

func (q *queue) join(weight int) *waiter {
	w := &waiter{weight: weight, turn: make(chan struct{})}
	q.waiting = append(q.waiting, w)
	q.next()
	return w
}

// leave takes out a statement whose context has ended.
func (q *queue) leave(w *waiter) {
	if at := slices.Index(q.waiting, w); at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
		return
	}
	q.done() // it has got its turn meanwhile
}

// done gives a turn back.
func (q *queue) done() {
	q.free++
	q.next()
}

// next gives the free turns away: to the lightest statement that waits, or to the one that came first if it was passed often enough.
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
		close(q.waiting[at].turn)
		q.waiting = slices.Delete(q.waiting, at, at+1)
		q.free--
	}
}
