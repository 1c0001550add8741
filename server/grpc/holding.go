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
	// freeHolding is the number of bytes that the streams of one connection can take without a charge: thirty small
	// requests at once, or their replies. So most connections do not touch the budget, which all connections share.
	// freeHolding is small because each of listener.MaxGRPC connections can take freeHolding bytes outside the budget.
	freeHolding = 256 << 10
	// streamBytes is the memory in bytes that gRPC's library takes for an open stream, except for its headers: its
	// context, its metadata as a map, and the stack of the goroutine that waits for its message.
	streamBytes = 8 << 10
	// headerFactor is an upper bound for the factor by which the text of a compressed header grows when it is
	// decompressed: the shortest code for a byte has five bits (https://www.rfc-editor.org/rfc/rfc7541#appendix-B).
	headerFactor = 2
)

// A holding counts the bytes that gRPC's library keeps in memory for the streams of a connection: headers until the
// stream ends, and reply messages until they are written. A client can make the library keep them for long if it does
// not read, or does not finish its requests. So bytes beyond freeHolding are charged to the budget.
type holding struct {
	budget *memory.Budget
	bytes  atomic.Int64 // number of bytes that the library keeps
	room   atomic.Int64 // highest value of the field bytes without a new charge: freeHolding plus what account has

	mu      sync.Mutex
	account *memory.Account
	closed  bool // the connection has ended, and its memory is garbage
}

func newHolding(budget *memory.Budget) *holding {
	h := &holding{budget: budget, account: budget.Open(memory.Stream)}
	h.room.Store(freeHolding)
	return h
}

// reserve counts n more bytes. charged is the account of the message that has these bytes, or nil. If the budget has no
// memory left, reserve waits as memory.Account.Grow does.
func (h *holding) reserve(ctx context.Context, n int64, charged *memory.Account) error {
	if now := h.bytes.Add(n); charged == nil && now <= h.room.Load() || h.settle(charged) {
		return nil
	}
	more := h.budget.Open(memory.Stream)
	if err := more.Grow(ctx, n+memory.FreeBytes); err != nil {
		h.release(n)
		return err
	}
	h.settle(more)
	return nil
}

// tryReserve counts n more bytes, or fails with RESOURCE_EXHAUSTED if the budget has no memory left. If the budget
// refuses them to the connection's account, tryReserve asks again with a new account: the budget grants a few bytes to
// a small account even when it grants none to a large one.
func (h *holding) tryReserve(n int64) error {
	if h.bytes.Add(n) <= h.room.Load() || h.settle(nil) {
		return nil
	}
	more := h.budget.Open(memory.Stream)
	if more.TryGrow(n + memory.FreeBytes) {
		h.settle(more)
		return nil
	}
	h.release(n)
	return more.Refusal(n)
}

// release takes back n bytes that were reserved.
func (h *holding) release(n int64) {
	h.bytes.Add(-n)
	if h.room.Load() > freeHolding {
		h.settle(nil)
	}
}

// settle first adds the account in its argument, unless that is nil, to the account of the connection. Then it adapts
// the charge of the connection's account to the counted bytes, and reports whether the charge covers them.
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

// isWanted reports whether the connection has memory of the budget while the budget is short: while requests wait for
// memory, or more than half of the budget is taken.
func (h *holding) isWanted() bool {
	if h.room.Load() <= freeHolding {
		return false
	}
	u := h.budget.Usage()
	return u.Waiting > 0 || u.Reserved > u.Limit/2
}

// close closes the account. Call it when the connection has ended.
func (h *holding) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.account.Close()
}

// poolOf returns the pool to which gRPC's library returns a message of n bytes. If a client cancels a stream just when
// the library gets a message, the library drops the message without returning it. Then nobody calls Put, and the bytes
// would stay counted until the connection ends. For a long message a cleanup therefore releases the bytes when the
// message is garbage.
func (h *holding) poolOf(n int) mem.BufferPool {
	if n <= memory.FreeBytes {
		return h
	}
	m := &heldMessage{&heldOnce{holding: h, n: int64(n)}}
	runtime.AddCleanup(m, (*heldOnce).release, m.held)
	return m
}

// A heldMessage is the pool for one message that is longer than memory.FreeBytes.
type heldMessage struct{ held *heldOnce }

// Get implements mem.BufferPool.
func (m *heldMessage) Get(n int) *[]byte { return rpc.Buffers.Get(n) }

// Put implements mem.BufferPool.
func (m *heldMessage) Put(b *[]byte) {
	m.held.release()
	rpc.Buffers.Put(b)
}

// heldOnce is a number of reserved bytes, which the first call of release releases.
type heldOnce struct {
	holding *holding
	n       int64
	given   atomic.Bool
}

func (o *heldOnce) release() {
	if o.given.CompareAndSwap(false, true) {
		o.holding.release(o.n)
	}
}

// Get implements mem.BufferPool. The library calls Put when it has written a message or dropped it.
func (h *holding) Get(n int) *[]byte { return rpc.Buffers.Get(n) }

// Put implements mem.BufferPool.
func (h *holding) Put(b *[]byte) {
	h.release(int64(cap(*b)))
	rpc.Buffers.Put(b)
}
