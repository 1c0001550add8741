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

// A frame is sent when it is large enough and another value follows. The first frame needs firstFlush bytes, and each
// next one twice as many as the frame before, but at most flushBytes. So a stream whose client does not read takes
// little memory, and a stream whose client reads quickly needs few messages. Values longer than chunkBytes are cut (see
// chunk.go). So a message has less than flushBytes + chunkBytes, which is below the 4 MiB that gRPC clients accept by
// default.
const (
	firstFlush = 32 << 10
	flushBytes = 256 << 10
	chunkBytes = 1 << 20
)

// Rows are the rows of a read or of a statement, one after the other. Next moves to the next row. AppendWire appends
// the current row as elements of PartialResultSet.values; AppendColumn appends one of these elements. Size and
// ColumnSize estimate how many bytes AppendWire and AppendColumn will append. Fill reads the next rows, which together
// have about size bytes, and appends their values to columns. It returns the number of these rows, or 0 at the end.
// DataSize returns the number of bytes of data appended so far.
type Rows interface {
	Next() (bool, error)
	Size() int
	AppendWire(dst []byte) []byte
	ColumnSize(i int) int
	AppendColumn(dst []byte, i int) []byte
	Fill(columns []value.Column, size int) (rows int, err error)
	DataSize() int64
}

// A Result is the reply to a request: rows, with metadata before them and statistics after them.
type Result struct {
	Transaction *Transaction // the transaction that the metadata describes
	Columns     []plan.Column
	Rows        Rows     // nil if the reply has no rows
	RowCount    int64    // rows that a DML statement changed
	Live        LiveRows // rows of a change stream, instead of Rows
	// AppendStats appends the ResultSetStats field with the given tag. It is called after all rows were read. It is nil
	// if the reply has no statistics.
	AppendStats func(dst []byte, tag byte) []byte
	// Undeclared holds the parameters of a PLAN request whose types were not declared; nil for other requests.
	Undeclared []plan.Param
	Sent       int64 // number of rows sent so far
	liveSize   int64 // size in bytes of the rows of the change stream sent so far
}

// DataSize returns how many bytes of data were sent so far.
func (r *Result) DataSize() int64 {
	if r.Rows == nil {
		return r.liveSize
	}
	return r.Rows.DataSize()
}

// skip reads n rows and drops them, because the client already has them.
func (r *Result) skip(n uint64) error {
	for range n {
		if ok, err := r.Rows.Next(); !ok || err != nil {
			return err
		}
	}
	return nil
}

// appendMetadata appends the ResultSetMetadata field with the given tag.
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

// A streamer sends a result as PartialResultSets. Each has a resume token, with which the client can ask for what
// follows it in the stream.
type streamer struct {
	*Result
	ctx    context.Context
	tokens token.Key
	call   *rpc.Call
	token  Resumption // its position is after the content of frame
	resume Position   // where a resumed stream begins
	flush  int        // size in bytes from which the frame is sent
	frame  *rpc.Frame
	value  []byte // buffer for a value of a row that is appended value by value
	// charged is how many bytes the call was charged for the buffer in the field value.
	charged int64
	rest    Rest // releases the rows while a message waits for the client
}

// Stream sends a result as the reply of a call. request is the fingerprint of the call's request. resume is the
// position at which the stream begins.
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

// nextIfFull sends the frame if it is long enough. But a stream that was resumed within a value sends no frame before
// the next piece of the value: the Python client takes the first value of the next message for that piece, and fails if
// the message has no value.
func (w *streamer) nextIfFull() error {
	if len(w.frame.Data) < w.flush || w.resume.piece > 0 {
		return nil
	}
	return w.next()
}

// appendRow adds the current row to the frame. If the row is large, or the client already has a part of it, appendRow
// adds it value by value.
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

// appendColumns adds the current row value by value. It sends each frame that is full, and cuts long values.
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

// appendColumn adds the value of column i of the row. It charges the call for the buffer w.value before it encodes the
// value there.
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

// chargeValue charges the call for the buffer w.value, which will have n bytes. The charge stays until the call ends.
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

// appendPieces adds one encoded value, in pieces if it is long. Each piece except the last one ends its frame.
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

// next sends the frame and begins another one.
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

// send sends the frame, which the transport owns from then on.
func (w *streamer) send() error {
	if err := w.frame.Charge(w.ctx, w.call); err != nil {
		return err
	}
	f := *w.frame
	w.frame.Data = nil
	if w.Transaction.Sent { // the first message never waits for the client
		w.rest.Begin(w.Rows)
	}
	err := w.call.Send(&f)
	w.rest.End()
	if err == nil {
		w.Transaction.Sent = true
	}
	return err
}
