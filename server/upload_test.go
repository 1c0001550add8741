package server

import (
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"golang.org/x/net/http2"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/memory"
)

// This file tests limits of messages that come in several frames. The client writes the frames itself.

// message returns m as a gRPC message: a header with the length, and the content.
func message(t *testing.T, m proto.Message) []byte {
	t.Helper()
	content, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return append(announce(len(content)), content...)
}

// announce returns the header of a gRPC message of the given length.
func announce(length int) []byte { return binary.BigEndian.AppendUint32([]byte{0}, uint32(length)) }

// send writes a DATA frame; if padding is not nil, the frame has that padding.
func (w *wire) send(stream uint32, end bool, data, padding []byte) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.framer.WriteDataPadded(stream, end, data, padding); err != nil {
		w.t.Fatal(err)
	}
}

// begin begins a request: it sends the headers for a method of google.spanner.v1.Spanner.
func (w *wire) begin(stream uint32, method string) {
	w.t.Helper()
	if err := w.headers(stream, method); err != nil {
		w.t.Fatal(err)
	}
}

// answered waits for the reply to a stream and returns its gRPC code and text. It stores replies to other streams that
// come before.
func (w *wire) answered(stream uint32) (code, text string) {
	w.t.Helper()
	if w.answers == nil {
		w.answers = map[uint32]http2.MetaHeadersFrame{}
	}
	for {
		if answer, ok := w.answers[stream]; ok {
			for _, field := range answer.RegularFields() {
				switch field.Name {
				case "grpc-status":
					code = field.Value
				case "grpc-message":
					text = field.Value
				}
			}
			return code, text
		}
		f, err := w.next(func(f http2.Frame) bool { m, ok := f.(*http2.MetaHeadersFrame); return ok && m.StreamEnded() })
		if err != nil {
			w.t.Fatalf("stream %d: %v", stream, err)
		}
		w.answers[f.Header().StreamID] = *f.(*http2.MetaHeadersFrame)
	}
}

// TestRefusedUpload: if the server refuses a message for lack of memory, the error says so and tells the client when to
// retry. If the message is larger than the server ever accepts, the error does not tell the client to retry.
func TestRefusedUpload(t *testing.T) {
	h, budget := newBudgetHarness(t, 64*mib)
	ses := h.session(true)
	held := budget.Open(memory.Transaction)
	held.TryGrow(40 * mib)
	long := &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT 1 -- " + strings.Repeat("x", 8*mib)}
	stream, err := h.data.ExecuteStreamingSql(h.ctx, long)
	h.ok(err)
	_, streaming := stream.Recv()
	_, commit := h.data.Commit(h.ctx, singleUse(ses, insertData(1, 6*mib)))
	for name, err := range map[string]error{"a stream": streaming, "a commit": commit} {
		h.fails(err, codes.ResourceExhausted)
		st := status.Convert(err)
		retry := false
		for _, d := range st.Details() {
			_, ok := d.(*errdetails.RetryInfo)
			retry = retry || ok
		}
		if !strings.Contains(st.Message(), "other requests have taken the 67108864 bytes") || !strings.Contains(st.Message(), "--memory") || !retry {
			t.Errorf("%s is refused with %q, %v", name, st.Message(), st.Details())
		}
	}
	_, err = h.data.Commit(h.ctx, singleUse(ses, insertData(1, 20*mib)))
	if st := status.Convert(err); st.Code() != codes.ResourceExhausted || !strings.Contains(st.Message(), "may take 62914560 bytes") || len(st.Details()) > 0 {
		t.Errorf("what never fits is refused with %q, %v", st.Message(), st.Details())
	}
	if n := budget.Usage().Refused[memory.Request]; n != 3 {
		t.Errorf("%d requests were refused", n)
	}
	held.Close()
	_, err = h.data.Commit(h.ctx, singleUse(ses, insertData(1, 6*mib)))
	h.ok(err)
	returned(budget)
}

// TestFramesOfAMessage: the server receives a message and charges for it, no matter how the client divides the message
// into frames.
func TestFramesOfAMessage(t *testing.T) {
	h, budget := newBudgetHarness(t, 64*mib)
	w := newWire(t, dial(t, h.address))
	padding := make([]byte, 200)
	whole := message(t, &spannerpb.CreateSessionRequest{Database: testDatabase, Session: &spannerpb.Session{Labels: map[string]string{"a": "b"}}})
	stream := uint32(1)
	for cut := range len(whole) {
		for _, padded := range [][]byte{nil, padding} {
			w.begin(stream, "CreateSession")
			w.send(stream, false, nil, padding) // a frame that has only padding
			w.send(stream, false, whole[:cut], padded)
			w.send(stream, false, nil, padded)
			w.send(stream, true, whole[cut:], padded)
			if code, text := w.answered(stream); code != "0" {
				t.Fatalf("cut at %d, %d bytes of padding: %s %s", cut, len(padded), code, text)
			}
			stream += 2
		}
	}
	for cut := 1; cut < messageHeaderBytes; cut++ {
		w.begin(stream, "Commit")
		w.send(stream, false, announce(8 * mib)[:cut], padding)
		w.send(stream, false, announce(8 * mib)[cut:], nil)
		eventually(func() bool { return budget.Usage().Reserved >= 31*mib })
		w.begin(stream+2, "Commit")
		w.send(stream+2, false, announce(9 * mib)[:cut], nil)
		w.send(stream+2, false, append(announce(9 * mib)[cut:], "beginning of a message"...), padding)
		if code, text := w.answered(stream + 2); code != "8" || !strings.Contains(text, "--memory") {
			t.Errorf("cut at %d: a message for which there is no room: %s %s", cut, code, text)
		}
		w.reset(stream)
		returned(budget)
		stream += 4
	}
}

const messageHeaderBytes = 5

// reset cancels a request.
func (w *wire) reset(stream uint32) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.framer.WriteRSTStream(stream, http2.ErrCodeCancel); err != nil {
		w.t.Fatal(err)
	}
}

// TestSecondMessage: a unary request has one message. The server does not receive a second message, whichever frame it
// begins in.
func TestSecondMessage(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	w := newWire(t, dial(t, h.address))
	query := message(t, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT 1"})
	second := append(announce(300*mib), "beginning"...)
	w.begin(1, "ExecuteStreamingSql")
	w.send(1, false, query, nil)
	w.send(1, false, second, nil)
	w.begin(3, "ExecuteStreamingSql")
	w.send(3, false, append(query, second...), nil)
	w.begin(5, "ExecuteSql")
	w.send(5, false, append(query, query...), nil)
	for _, stream := range []uint32{1, 3, 5} {
		if code, text := w.answered(stream); code != "12" {
			t.Errorf("stream %d: answered %s %s", stream, code, text)
		}
	}
	w.begin(7, "ExecuteSql")
	w.send(7, false, query, nil)
	if code, text := w.answered(7); code != "0" {
		t.Errorf("a later request: %s %s", code, text)
	}
	_ = w.framer.WriteData(7, false, second) // data of a request that was answered already, which the server drops
	w.begin(9, "ExecuteSql")
	w.send(9, true, query, nil)
	if code, text := w.answered(9); code != "0" {
		t.Errorf("a later request: %s %s", code, text)
	}
}

// TestManyShortUploads: the server also limits the memory of many short messages that arrive at the same time. When the
// budget is used up, messages are refused. In the end all memory is released.
func TestManyShortUploads(t *testing.T) {
	h, budget := newBudgetHarness(t, 64*mib)
	w := newWire(t, dial(t, h.address))
	const streams, length = 100, 900 << 10
	refused := make(chan int, 1)
	go func() {
		n := 0
		_, _ = w.next(func(f http2.Frame) bool {
			if m, ok := f.(*http2.MetaHeadersFrame); ok && m.StreamEnded() {
				n++
			}
			return n == streams-17-18 // 17 messages are charged 3.5 MiB each, and 18 may arrive without a charge
		})
		refused <- n
	}()
	for i := range uint32(streams) {
		w.begin(2*i+1, "Commit")
		w.send(2*i+1, false, append(announce(length), make([]byte, 100)...), nil)
	}
	if n := <-refused; n != streams-17-18 {
		t.Errorf("%d requests were refused", n)
	}
	if reserved := budget.Usage().Reserved; reserved < 59*mib {
		t.Errorf("%d bytes are taken", reserved)
	}
	h.session(false) // checks that small requests still work
	w.conn.Close()
	returned(budget)
	w = newWire(t, dial(t, h.address))
	w.begin(1, "Commit")
	w.send(1, false, announce(length), nil)
	eventually(func() bool { return budget.Usage().Reserved >= 3*mib })
	w.conn.Close()
	returned(budget)
}

// slowUpload returns a client that announces a long message and sends n bytes of it every ten seconds, by the test's
// clock.
func slowUpload(n int) func(t *testing.T, grpc, http *pipes) error {
	return func(t *testing.T, grpc, _ *pipes) error {
		w := newWire(t, grpc.dial())
		ended, sent := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(sent)
			// WriteData gets a new framer, because another goroutine may use w.framer at the same time, to reply to
			// settings.
			if w.headers(1, "Commit") != nil || http2.NewFramer(w.conn, nil).WriteData(1, false, announce(100*mib)) != nil {
				return
			}
			for data := make([]byte, n); n > 0; {
				w.mu.Lock()
				err := w.framer.WriteData(1, false, data)
				w.mu.Unlock()
				if err != nil {
					return
				}
				select {
				case <-time.After(10 * time.Second):
				case <-ended:
					return
				}
			}
		}()
		_, err := w.next(func(http2.Frame) bool { return false })
		close(ended)
		<-sent
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
}
