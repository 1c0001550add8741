package grpc

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/mem"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/rpc"
)

const (
	// freeHolding is what the streams of one connection may hold without a charge: thirty small requests at once, or their replies. So most
	// connections touch nothing that connections share. It is small since there may be listener.MaxGRPC of them.
	freeHolding = 256 << 10
	// streamBytes is what an open stream takes in gRPC's library beside its headers: its context, its metadata as a map, and the stack of the
	// goroutine that waits for its message.
	streamBytes = 8 << 10
	// headerFactor is how many bytes a byte of a compressed header can become: the shortest codes have five bits
	// (https://www.rfc-editor.org/rfc/rfc7541#appendix-B).
	headerFactor = 2
)

// A holding is what the streams of a connection hold in gRPC's library: headers until the stream ends, and messages of replies until they are written.
// A client that does not read, or does not go on with its requests, decides how long that is. What is beyond freeHolding is charged.
type holding struct {
	budget *memory.Budget
	bytes  atomic.Int64 // held
	room   atomic.Int64 // for bytes: freeHolding, and what account was charged

	mu      sync.Mutex
	account *memory.Account
	closed  bool // what the library still has is garbage
}

func newHolding(budget *memory.Budget) *holding {
	h := &holding{budget: budget, account: budget.Open(memory.Stream)}
	h.room.Store(freeHolding)
	return h
}

// take holds n bytes more, for which a message's own account may have been charged. If there is no room it waits as memory.Account.Grow does.
func (h *holding) take(ctx context.Context, n int64, charged *memory.Account) error {
	if now := h.bytes.Add(n); charged == nil && now <= h.room.Load() || h.settle(charged) {
		return nil
	}
	more := h.budget.Open(memory.Stream)
	if err := more.Grow(ctx, n+memory.FreeBytes); err != nil {
		h.give(n)
		return err
	}
	h.settle(more)
	return nil
}

// tryTake holds n bytes more if there is room. Its error is RESOURCE_EXHAUSTED. A few bytes find room as a small account does, also if the connection
// holds much.
func (h *holding) tryTake(n int64) error {
	if h.bytes.Add(n) <= h.room.Load() || h.settle(nil) {
		return nil
	}
	more := h.budget.Open(memory.Stream)
	if more.TryGrow(n + memory.FreeBytes) {
		h.settle(more)
		return nil
	}
	h.give(n)
	return more.Refusal(n)
}

// give ends the holding of n bytes.
func (h *holding) give(n int64) {
	h.bytes.Add(-n)
	if h.room.Load() > freeHolding {
		h.settle(nil)
	}
}

// settle adds what more was charged, if it is not nil, and charges what is held. It says whether there is room for that.
func (h *holding) settle(more *memory.Account) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		more.Close()
		return true
	}
	if more != nil {
		h.account.Add(more)
	}
	fits, lacking := true, max(h.bytes.Load()-freeHolding, 0)-h.account.Used()
	if lacking > 0 {
		fits = h.account.TryGrow(lacking)
	} else {
		h.account.Shrink(-lacking)
	}
	h.room.Store(freeHolding + h.account.Used())
	return fits
}

// isWanted says whether the budget was charged, and is short of what was charged: others wait, or half of it is taken.
func (h *holding) isWanted() bool {
	if h.room.Load() <= freeHolding {
		return false
	}
	u := h.budget.Usage()
	return u.Waiting > 0 || u.Taken > u.Limit/2
}

// close gives everything back. The connection has ended.
func (h *holding) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.account.Close()
}

// poolOf is what the library gives a message of n bytes back to. When a client cancels a stream at the moment at which the library is given a
// message, the library forgets the message: what a long one holds ends then when it is garbage.
func (h *holding) poolOf(n int) mem.BufferPool {
	if n <= memory.FreeBytes {
		return h
	}
	m := &heldMessage{&heldOnce{holding: h, n: int64(n)}}
	runtime.AddCleanup(m, (*heldOnce).give, m.held)
	return m
}

// A heldMessage holds a message above memory.FreeBytes.
type heldMessage struct{ held *heldOnce }

// Get implements mem.BufferPool.
func (m *heldMessage) Get(n int) *[]byte { return rpc.Buffers.Get(n) }

// Put implements mem.BufferPool.
func (m *heldMessage) Put(b *[]byte) {
	m.held.give()
	rpc.Buffers.Put(b)
}

// heldOnce is held until give is called first.
type heldOnce struct {
	holding *holding
	n       int64
	given   atomic.Bool
}

func (o *heldOnce) give() {
	if o.given.CompareAndSwap(false, true) {
		o.holding.give(o.n)
	}
}

// Get implements mem.BufferPool, whose Put is called when the library has written a message or dropped it.
func (h *holding) Get(n int) *[]byte { return rpc.Buffers.Get(n) }

// Put implements mem.BufferPool.
func (h *holding) Put(b *[]byte) {
	h.give(int64(cap(*b)))
	rpc.Buffers.Put(b)
}
