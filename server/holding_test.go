package server

import (
	"strings"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"golang.org/x/net/http2"

	"github.com/crowfoot-db/crowfoot/memory"
)

// This file tests how much memory gRPC's library takes for a client that does not read, or does not finish its
// requests.

// TestUnreadReplies checks that replies are charged to the budget while their client does not open its flow-control
// window, although each reply is small. When the budget is used up, replies must be refused. All charges must end when
// the connection or the streams end, or when the client reads the replies.
func TestUnreadReplies(t *testing.T) {
	for name, end := range map[string]func(w *wire, streams uint32){
		"the connection ends": func(w *wire, _ uint32) { w.conn.Close() },
		"the streams end": func(w *wire, streams uint32) {
			for i := range streams {
				w.reset(2*i + 1)
			}
		},
		"the replies are read": func(w *wire, streams uint32) {
			w.mu.Lock()
			_ = w.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
			_ = w.framer.WriteWindowUpdate(0, 64*mib)
			w.mu.Unlock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, budget := newBudgetHarness(t, 4*mib)
			ses := h.session(true)
			w := newWire(t, dial(t, h.address))
			w.mu.Lock()
			h.ok(w.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
			w.mu.Unlock()
			go func() {
				for {
					if _, err := w.next(func(http2.Frame) bool { return false }); err != nil {
						return
					}
				}
			}()
			const streams = 300
			query := message(t, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT REPEAT('x', 30000)"})
			for i := range uint32(streams) {
				w.begin(2*i+1, []string{"ExecuteSql", "ExecuteStreamingSql"}[i%2])
				w.send(2*i+1, true, query, nil)
			}
			eventually(func() bool { return budget.Usage().Reserved > 3*mib && budget.Usage().Refused[memory.Stream] > 0 })
			h.session(false) // checks that small requests of other clients still work
			end(w, streams)
			returned(budget)
		})
	}
}

// TestUnfinishedRequests checks that the headers of a request are charged to the budget even if its message never
// arrives. When the budget is used up, the server must refuse requests. After the unfinished requests have ended, it
// must serve a new request.
func TestUnfinishedRequests(t *testing.T) {
	h, budget := newBudgetHarness(t, 4*mib)
	w := newWire(t, dial(t, h.address))
	const streams = 400
	refused := make(chan int)
	go func() {
		n := 0
		_, _ = w.next(func(f http2.Frame) bool {
			if m, ok := f.(*http2.MetaHeadersFrame); ok && m.StreamEnded() {
				n++
			}
			return n == streams/2
		})
		refused <- n
	}()
	for i := range uint32(streams) {
		if err := w.headers(2*i+1, "CreateSession", "x-long", strings.Repeat("x", 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	if n := <-refused; n != streams/2 {
		t.Errorf("%d requests were refused", n)
	}
	if n := budget.Usage().Refused[memory.Stream]; n < streams/2 || budget.Usage().Reserved < 3*mib {
		t.Errorf("%d requests were refused, %d bytes are taken", n, budget.Usage().Reserved)
	}
	h.session(false) // checks that small requests of other clients still work
	for i := range uint32(streams) {
		w.reset(2*i + 1)
	}
	returned(budget)
	w.begin(2*streams+1, "CreateSession")
	w.send(2*streams+1, true, message(t, &spannerpb.CreateSessionRequest{Database: testDatabase}), nil)
	if code, text := w.answered(2*streams + 1); code != "0" {
		t.Errorf("a later request: %s %s", code, text)
	}
}

// TestEmptyFrames checks that the server closes a connection whose client sends thousands of frames without content one
// after the other. The server must accept a few hundred such frames before and after a frame with content.
func TestEmptyFrames(t *testing.T) {
	h := newHarness(t)
	h.session(true)
	const flood, few = 5000, 900
	for name, frame := range map[string]func(w *wire) error{
		"content":    func(w *wire) error { return w.framer.WriteData(1, false, nil) },
		"priorities": func(w *wire) error { return w.framer.WritePriority(3, http2.PriorityParam{StreamDep: 1}) },
		"unknown":    func(w *wire) error { return w.framer.WriteRawFrame(0xfa, 0, 0, nil) },
		"headers":    func(w *wire) error { return w.framer.WriteContinuation(3, false, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t, dial(t, h.address))
			w.begin(1, "CreateSession")
			ended := make(chan error)
			go func() {
				_, err := w.next(isGoAway)
				ended <- err
			}()
			times := func(n int) {
				w.mu.Lock()
				defer w.mu.Unlock()
				for range n {
					_ = frame(w) // fails once the server has closed the connection
				}
			}
			if name == "headers" {
				w.mu.Lock()
				h.ok(w.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0x83}}))
				w.mu.Unlock()
			} else {
				times(few)
				w.send(1, false, announce(100)[:2], nil)
				times(few)
				w.send(1, false, announce(100)[2:], nil)
			}
			times(flood)
			<-ended
		})
	}
	h.session(true)
}

// TestPlainReplies: the reply to a compressed request is not compressed, because the server could not charge the memory
// of the compressed copy, which gRPC's library would hold, to the budget.
func TestPlainReplies(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	query := message(t, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT 1"})
	w := newWire(t, dial(t, h.address))
	for i, method := range []string{"ExecuteSql", "ExecuteStreamingSql"} {
		stream := uint32(2*i + 1)
		if err := w.headers(stream, method, "grpc-encoding", "gzip", "grpc-accept-encoding", "gzip"); err != nil {
			t.Fatal(err)
		}
		w.send(stream, true, query, nil)
		f, err := w.next(func(f http2.Frame) bool { return f.Header().Type == http2.FrameData })
		h.ok(err)
		if data := f.(*http2.DataFrame).Data(); len(data) == 0 || data[0] != 0 {
			t.Errorf("%s: the reply is compressed: %x", method, data)
		}
	}
}
