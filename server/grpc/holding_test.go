package grpc

import (
	"context"
	"log/slog"
	"net"
	"runtime"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/mem"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/listener"
)

// TestStalled: a connection with charged replies is closed if its client reads nothing of them for listener.ReplyTime.
// It stays open if the client reads a little, if the charge is small, or if the budget has memory for other
// connections.
func TestStalled(t *testing.T) {
	const limit = int64(listener.ReplyTime / watchEvery)
	frame := append([]byte{0, 0, 1, byte(http2.FrameData), 0, 0, 0, 0, 1}, 'x')
	for name, c := range map[string]struct {
		held   int64
		reads  bool
		closed bool
	}{
		"nothing is taken": {freeHolding + 5*mib, false, true},
		"a little is":      {freeHolding + 5*mib, true, false},
		"there is room":    {freeHolding + mib, false, false},
		"little is held":   {freeHolding, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			all := newConnections(listener.NewConnections(1), memory.NewBudget(8*mib), slog.New(slog.DiscardHandler))
			client, server := net.Pipe()
			defer client.Close()
			go func() {
				for b := make([]byte, 64); ; {
					if _, err := client.Read(b); err != nil {
						return
					}
				}
			}()
			conn := open(t, all, server)
			if err := conn.held.reserve(context.Background(), c.held, nil); err != nil {
				t.Fatal(err)
			}
			for now := range 2*limit + 2 {
				if c.reads && now%limit == 0 {
					if _, err := conn.Write(frame); err != nil {
						t.Fatal(err)
					}
				}
				all.closeOverdue(now)
			}
			if n := all.count.Open(); c.closed != (n == 0) {
				t.Errorf("%d connections are open", n)
			}
			_ = conn.Close()
			if reserved := all.uploads.budget.Usage().Reserved; reserved != 0 {
				t.Errorf("%d bytes are taken after the end", reserved)
			}
		})
	}
}

const mib = 1 << 20

// open makes the listener accept raw, and returns the connection after its handshake.
func open(t *testing.T, all *connections, raw net.Conn) *connection {
	t.Helper()
	l := accepting{single{raw}, all.count}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := all.ServerHandshake(accepted); err != nil {
		t.Fatal(err)
	}
	return all.which(func(*connection) bool { return true })[0]
}

// single is a listener that accepts only one connection.
type single struct{ net.Conn }

func (s single) Accept() (net.Conn, error) { return s.Conn, nil }
func (s single) Addr() net.Addr            { return s.LocalAddr() }

// TestHoldingCostsNothingWhileItIsSmall: bytes within freeHolding are not charged, and reserving them allocates
// nothing.
func TestHoldingCostsNothingWhileItIsSmall(t *testing.T) {
	b := memory.NewBudget(8 * mib)
	h := newHolding(b)
	message := make([]byte, 4<<10)
	if n := testing.AllocsPerRun(100, func() {
		_ = h.reserve(context.Background(), int64(cap(message)), nil)
		h.release(int64(cap(message)))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if reserved := b.Usage().Reserved; reserved != 0 || h.bytes.Load() != 0 || h.room.Load() != freeHolding {
		t.Errorf("%d bytes are taken, %d held", reserved, h.bytes.Load())
	}
}

// TestHoldingLetsSmallOnesIn: when large accounts have taken all of the budget that they may take, a connection still
// gets the few bytes that the budget grants to small accounts, even if the connection has reserved much.
func TestHoldingLetsSmallOnesIn(t *testing.T) {
	b := memory.NewBudget(16 * mib)
	h := newHolding(b)
	if err := h.tryReserve(2 * mib); err != nil {
		t.Fatal(err)
	}
	other := b.Open(memory.Request)
	if !other.TryGrow(15*mib - b.Usage().Reserved + memory.FreeBytes) {
		t.Fatal("no room")
	}
	if other.TryGrow(mib / 4) {
		t.Fatal("there is room left for large accounts")
	}
	if err := h.tryReserve(mib / 4); err != nil {
		t.Error(err)
	}
	if err := h.tryReserve(2 * mib); err == nil {
		t.Error("much more is held than there is room for")
	}
	h.release(2*mib + mib/4)
	other.Close()
	if reserved := b.Usage().Reserved; reserved != 0 {
		t.Errorf("%d bytes are taken at the end", reserved)
	}
}

// TestForgottenMessage: a long message that gRPC's library drops without returning it stays charged until it is
// garbage.
func TestForgottenMessage(t *testing.T) {
	h := newHolding(memory.NewBudget(8 * mib))
	for range 2 {
		if err := h.reserve(context.Background(), 2*mib, nil); err != nil {
			t.Fatal(err)
		}
	}
	data := make([]byte, 2*mib)
	mem.NewBuffer(&data, h.poolOf(2*mib)).Free()
	if n := h.bytes.Load(); n != 2*mib {
		t.Errorf("%d bytes are held after one of two messages was written", n)
	}
	_ = h.poolOf(2 * mib)
	for h.bytes.Load() != 0 {
		runtime.GC()
	}
}
