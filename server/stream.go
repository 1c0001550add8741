package server

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crowfoot-db/crowfoot/sql/plan"
)

// A frame is sent when it has flushBytes and more is to come. Values longer than chunkBytes are cut
// (see chunk.go), so that a message stays below flushBytes + chunkBytes, under gRPC's default limit of 4 MiB.
const (
	flushBytes = 256 << 10
	chunkBytes = 1 << 20
)

// rowSource is what a result is read from: rows of a table or of a statement.
// AppendWire appends the row that Next moved to as PartialResultSet.values elements, DataSize is how many bytes of
// data it has appended so far.
type rowSource interface {
	Next() (bool, error)
	AppendWire(dst []byte) []byte
	DataSize() int64
}

// A result is what a request answers: rows behind a scope.
type result struct {
	scope   *scope
	columns []plan.Column
	rows    rowSource // nil for none
	// appendStats appends the ResultSetStats field once all rows are read, if there is one; tag is the field's.
	appendStats func(dst []byte, tag byte) []byte
	// undeclared are the parameters of a PLAN request.
	undeclared []plan.Param
	sent       int64 // rows
}

// dataSize is how many bytes of data have been sent.
func (r *result) dataSize() int64 {
	if r.rows == nil {
		return 0
	}
	return r.rows.DataSize()
}

// skip passes over n rows, which the client has.
func (r *result) skip(n uint64) error {
	for range n {
		if ok, err := r.rows.Next(); !ok || err != nil {
			return err
		}
	}
	return nil
}

// appendMetadata appends the ResultSetMetadata field.
func (r *result) appendMetadata(dst []byte, tag byte) []byte {
	rowType := sizeRowType(r.columns)
	transaction := r.scope.appendTransaction(nil)
	size := 1 + protowire.SizeBytes(rowType) + len(transaction)
	var undeclared []byte
	if r.undeclared != nil {
		undeclared = appendUndeclared(r.undeclared)
		size += len(undeclared)
	}
	dst = protowire.AppendVarint(append(dst, tag), uint64(size))
	dst = protowire.AppendVarint(append(dst, tagMetadataRowType), uint64(rowType))
	dst = appendRowType(dst, r.columns)
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

// A streamer sends a result as PartialResultSets. Every one carries a token
// with which the client can have what follows it.
type streamer struct {
	*result
	ctx    context.Context
	tokens tokenKey
	out    sender
	token  resumption // from is the position behind what frame holds
	resume position   // where a resumed stream begins
	frame  *frame
	row    []byte // room for a row that has to be cut up
}

// stream sends a result. request is its fingerprint, resume where it begins.
func (s *Server) stream(ctx context.Context, r *result, request uint64, resume position, out sender) error {
	w := streamer{result: r, ctx: ctx, tokens: s.tokens, out: out, resume: resume, frame: newFrame()}
	w.token = resumption{request: request, at: r.scope.at, from: position{row: resume.row}}
	w.frame.data = r.appendMetadata(w.frame.data, tagPartialMetadata)
	if err := w.run(); err != nil {
		w.frame.release()
		return err
	}
	return nil
}

func (w *streamer) run() error {
	if w.rows != nil {
		if err := w.skip(w.resume.row); err != nil {
			return err
		}
		if err := w.appendRows(); err != nil {
			return err
		}
	}
	w.seal()
	if w.appendStats != nil {
		w.frame.data = w.appendStats(w.frame.data, tagPartialStats)
	}
	w.frame.data = append(w.frame.data, tagPartialLast, 1)
	return w.send()
}

func (w *streamer) appendRows() error {
	for {
		ok, err := w.rows.Next()
		if !ok || err != nil {
			return err
		}
		if len(w.frame.data) >= flushBytes {
			if err := w.next(); err != nil {
				return err
			}
		}
		if err := w.appendRow(); err != nil {
			return err
		}
	}
}

// appendRow adds the current row to the frame. A row that is too large, or
// begins in the middle, is added again value by value.
func (w *streamer) appendRow() error {
	start := len(w.frame.data)
	w.frame.data = w.rows.AppendWire(w.frame.data)
	w.sent++
	partly := w.resume.value > 0 || w.resume.piece > 0
	if partly || len(w.frame.data)-start > flushBytes {
		w.row = append(w.row[:0], w.frame.data[start:]...)
		w.frame.data = w.frame.data[:start]
		if err := w.appendValues(w.row); err != nil {
			return err
		}
		w.resume = position{}
	}
	w.token.from = position{row: w.token.from.row + 1}
	return nil
}

// appendValues adds a row value by value, cutting long values and frames.
func (w *streamer) appendValues(row []byte) error {
	for i := uint32(0); len(row) > 0; i++ {
		body, n := protowire.ConsumeBytes(row[1:])
		if n < 0 {
			return fmt.Errorf("malformed values: %w", protowire.ParseError(n))
		}
		row = row[1+n:]
		if i < w.resume.value {
			continue
		}
		w.token.from.value, w.token.from.piece = i, 0
		if len(w.frame.data) >= flushBytes {
			if err := w.next(); err != nil {
				return err
			}
		}
		if err := w.appendPieces(body); err != nil {
			return err
		}
		w.resume.piece = 0
	}
	return nil
}

// appendPieces adds one value, in pieces if it is long. All but the last piece end a frame.
func (w *streamer) appendPieces(body []byte) error {
	for piece := uint32(0); ; piece++ {
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
		w.frame.data = append(w.frame.data, tagPartialChunked, 1)
		if err := w.next(); err != nil {
			return err
		}
	}
	w.appendValue(body)
	return nil
}

func (w *streamer) appendValue(body []byte) {
	w.frame.data = protowire.AppendBytes(append(w.frame.data, tagPartialValue), body)
}

// next sends the frame and begins another.
func (w *streamer) next() error {
	w.seal()
	if err := w.send(); err != nil {
		return err
	}
	w.frame = newFrame()
	return w.ctx.Err()
}

// seal appends the token of what follows the frame.
func (w *streamer) seal() {
	var room [maxResumeToken]byte
	token := w.tokens.appendResumeToken(room[:0], w.token)
	w.frame.data = protowire.AppendBytes(append(w.frame.data, tagPartialToken), token)
}

// send gives the frame away.
func (w *streamer) send() error {
	f := *w.frame
	w.frame.data = nil
	if err := w.out.SendMsg(&f); err != nil {
		return err
	}
	w.scope.answered = true
	return nil
}
