package result

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/server/token"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// A frame is sent once it has so many bytes and another value follows: firstFlush the first, and each that follows twice as many as the one
// before, up to flushBytes. So a stream whose client does not read keeps little, and one whose client reads soon needs few messages. Values
// longer than chunkBytes are cut (see chunk.go). So a message has less than flushBytes + chunkBytes, which is below the 4 MiB that gRPC's clients
// accept by default.
const (
	firstFlush = 32 << 10
	flushBytes = 256 << 10
	chunkBytes = 1 << 20
)

// Rows are the rows of a read or of a statement, one after the other.
// AppendWire appends the row that Next moved to as elements of PartialResultSet.values, AppendColumn one of them; about how many bytes they will
// append Size and ColumnSize say. Fill moves to the rows that follow, of about size bytes, and appends them to columns; it returns how many they are, 0 at
// the end. DataSize is how many bytes of data have been appended so far.
type Rows interface {
	Next() (bool, error)
	Size() int
	AppendWire(dst []byte) []byte
	ColumnSize(i int) int
	AppendColumn(dst []byte, i int) []byte
	Fill(columns []value.Column, size int) (rows int, err error)
	DataSize() int64
}

// A Result is the rows that a request is answered with, what goes before them (metadata) and after them (statistics).
type Result struct {
	Transaction *Transaction // what the metadata says of it
	Columns     []plan.Column
	Rows        Rows     // nil for none
	RowCount    int64    // rows that a DML statement changed
	Live        LiveRows // in the place of Rows: those of a change stream
	// AppendStats appends the ResultSetStats field once all rows are read, if there is one; tag is the field's.
	AppendStats func(dst []byte, tag byte) []byte
	// Undeclared are the parameters of a PLAN request; nil for other requests.
	Undeclared []plan.Param
	Sent       int64 // rows, so far
	liveSize   int64 // bytes of live rows, so far
}

// DataSize is how many bytes of data have been sent.
func (r *Result) DataSize() int64 {
	if r.Rows == nil {
		return r.liveSize
	}
	return r.Rows.DataSize()
}

// skip reads n rows, which the client has already.
func (r *Result) skip(n uint64) error {
	for range n {
		if ok, err := r.Rows.Next(); !ok || err != nil {
			return err
		}
	}
	return nil
}

// appendMetadata appends the ResultSetMetadata field.
func (r *Result) appendMetadata(dst []byte, tag byte) []byte {
	rowType := sizeRowType(r.Columns)
	transaction := r.Transaction.appendTo(nil)
	size := 1 + protowire.SizeBytes(rowType) + len(transaction)
	var undeclared []byte
	if r.Undeclared != nil {
		undeclared = appendUndeclared(r.Undeclared)
		size += len(undeclared)
	}
	dst = protowire.AppendVarint(append(dst, tag), uint64(size))
	dst = protowire.AppendVarint(append(dst, tagMetadataRowType), uint64(rowType))
	dst = appendRowType(dst, r.Columns)
	dst = append(dst, transaction...)
	return append(dst, undeclared...)
}

func appendUndeclared(params []plan.Param) []byte {
	var body []byte
	for _, p := range params {
		body = appendField(body, p.Name, p.Type)
	}
	return protowire.AppendBytes([]byte{tagMetadataUndeclared}, body)
}

// A streamer sends a result as PartialResultSets. Every one carries a resume token, with which the
// client can ask for what follows it.
type streamer struct {
	*Result
	ctx    context.Context
	tokens token.Key
	call   *rpc.Call
	token  Resumption // from is the position behind what frame holds
	resume Position   // where a resumed stream begins
	flush  int        // the size from which the frame is sent
	frame  *rpc.Frame
	value  []byte // buffer for a value of a row that is added value by value
	// charged is what the call has been charged for value.
	charged int64
	rest    Rest // of the rows while a message waits
}

// Stream sends a result as the reply of a call. request is the call's fingerprint, resume where the stream begins.
func (r *Result) Stream(ctx context.Context, c *rpc.Call, tokens token.Key, request uint64, resume Position) error {
	w := streamer{Result: r, ctx: ctx, tokens: tokens, call: c, resume: resume, flush: firstFlush, frame: rpc.NewFrame()}
	w.token = Resumption{request: request, At: r.Transaction.At, from: resume, live: r.Live != nil}
	w.frame.Data = r.appendMetadata(w.frame.Data, tagPartialMetadata)
	if err := w.run(); err != nil {
		w.frame.Release()
		return err
	}
	return nil
}

func (w *streamer) run() error {
	if w.Live != nil {
		if err := w.appendLive(); err != nil {
			return err
		}
	}
	if w.Rows != nil {
		if err := w.skip(w.resume.row); err != nil {
			return err
		}
		if err := w.appendRows(); err != nil {
			return err
		}
	}
	w.seal()
	if w.AppendStats != nil {
		w.frame.Data = w.AppendStats(w.frame.Data, tagPartialStats)
	}
	w.frame.Data = append(w.frame.Data, tagPartialLast, 1)
	return w.send()
}

func (w *streamer) appendRows() error {
	for {
		ok, err := w.Rows.Next()
		if !ok || err != nil {
			return err
		}
		if err := w.nextIfFull(); err != nil {
			return err
		}
		if err := w.appendRow(); err != nil {
			return err
		}
	}
}

// nextIfFull sends the frame if it is long enough. A resumed stream that goes on within a value sends no frame before the next piece of it: the
// Python client takes the first value of the next message for that piece, and fails if there is none.
func (w *streamer) nextIfFull() error {
	if len(w.frame.Data) < w.flush || w.resume.piece > 0 {
		return nil
	}
	return w.next()
}

// appendRow adds the current row to the frame. A row that is too large, or of which the client has
// a part already, is added value by value instead.
func (w *streamer) appendRow() error {
	partly := w.resume.value > 0 || w.resume.piece > 0
	if partly || w.Rows.Size() > flushBytes {
		if err := w.appendColumns(); err != nil {
			return err
		}
		w.resume = Position{}
	} else {
		w.frame.Data = w.Rows.AppendWire(w.frame.Data)
	}
	w.Sent++
	w.token.from = Position{row: w.token.from.row + 1}
	return nil
}

// appendColumns adds a row value by value, cutting long values and frames.
func (w *streamer) appendColumns() error {
	for i := int(w.resume.value); i < len(w.Columns); i++ {
		w.token.from.value, w.token.from.piece = uint32(i), w.resume.piece
		if err := w.nextIfFull(); err != nil {
			return err
		}
		if err := w.appendColumn(i); err != nil {
			return err
		}
		w.resume.piece = 0
	}
	return nil
}

// appendColumn adds one value. The buffer for it is charged before it is encoded.
func (w *streamer) appendColumn(i int) error {
	if n := w.Rows.ColumnSize(i); n > cap(w.value) {
		if err := w.chargeValue(n); err != nil {
			return err
		}
		w.value = make([]byte, 0, n)
	}
	w.value = w.Rows.AppendColumn(w.value[:0], i)
	if err := w.chargeValue(cap(w.value)); err != nil {
		return err
	}
	body, n := protowire.ConsumeBytes(w.value[1:])
	if n < 0 {
		return fmt.Errorf("malformed value: %w", protowire.ParseError(n))
	}
	return w.appendPieces(body)
}

// chargeValue charges the call for a buffer of n bytes for values, until the call ends.
func (w *streamer) chargeValue(n int) error {
	more := int64(n) - w.charged
	if more <= 0 {
		return nil
	}
	if err := w.call.Memory.Grow(w.ctx, more); err != nil {
		return err
	}
	w.charged += more
	return nil
}

// appendPieces adds one value, in pieces if it is long. All but the last piece end a frame.
func (w *streamer) appendPieces(body []byte) error {
	for piece := uint32(0); ; piece++ {
		if piece >= w.resume.piece {
			if err := w.frame.Reserve(w.ctx, w.call, min(len(body), chunkBytes)+maxResumeToken); err != nil {
				return err
			}
		}
		head, tail, ok := cut(body, chunkBytes)
		if !ok {
			break
		}
		body = tail
		if piece < w.resume.piece {
			continue
		}
		w.appendValue(head)
		w.token.from.piece = piece + 1
		w.frame.Data = append(w.frame.Data, tagPartialChunked, 1)
		if err := w.next(); err != nil {
			return err
		}
	}
	w.appendValue(body)
	return nil
}

func (w *streamer) appendValue(body []byte) {
	w.frame.Data = protowire.AppendBytes(append(w.frame.Data, tagPartialValue), body)
}

// next sends the frame and begins another.
func (w *streamer) next() error {
	w.seal()
	w.flush = min(2*w.flush, flushBytes)
	if err := w.send(); err != nil {
		return err
	}
	w.frame = rpc.NewFrame()
	return w.ctx.Err()
}

// seal appends the resume token to the frame.
func (w *streamer) seal() {
	var room [maxResumeToken]byte
	token := w.token.appendToken(room[:0], w.tokens)
	w.frame.Data = protowire.AppendBytes(append(w.frame.Data, tagPartialToken), token)
}

// send sends the frame, which belongs to the transport then.
func (w *streamer) send() error {
	if err := w.frame.Charge(w.ctx, w.call); err != nil {
		return err
	}
	f := *w.frame
	w.frame.Data = nil
	if w.Transaction.Sent { // the first message never waits
		w.rest.Begin(w.Rows)
	}
	err := w.call.Send(&f)
	w.rest.End()
	if err == nil {
		w.Transaction.Sent = true
	}
	return err
}
