package server

import (
	"context"
	"encoding/binary"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// A dmlOutcome is the result of a DML statement: the row count, and the rows of THEN RETURN.
// It is complete before the first byte is sent, so that the same reply can be sent again.
type dmlOutcome struct {
	rowCount int64
	rows     []byte // of all rows, as PartialResultSet.values elements
	ends     []rowEnd
	stats    exec.Stats
}

// rowEnd is where a row ends in the bytes of all rows, and how many bytes of data the rows up to it have.
type rowEnd struct {
	at   int
	data int64
}

// storedRows is a result.Rows over the rows of a dmlOutcome.
type storedRows struct {
	*dmlOutcome
	columns []plan.Column
	next    int
	data    int64
}

func (r *storedRows) Next() (bool, error) {
	if r.next == len(r.ends) {
		return false, nil
	}
	r.next++
	return true, nil
}

// bounds are where the current row begins and ends.
func (r *storedRows) bounds() (start, end rowEnd) {
	if r.next > 1 {
		start = r.ends[r.next-2]
	}
	return start, r.ends[r.next-1]
}

func (r *storedRows) AppendWire(dst []byte) []byte {
	start, end := r.bounds()
	r.data += end.data - start.data
	return append(dst, r.rows[start.at:end.at]...)
}

// AppendColumn counts the data of the whole row with its first column.
func (r *storedRows) AppendColumn(dst []byte, i int) []byte {
	if start, end := r.bounds(); i == 0 {
		r.data += end.data - start.data
	}
	return append(dst, r.column(i)...)
}

// column is an element of the current row.
func (r *storedRows) column(i int) []byte {
	start, end := r.bounds()
	row := r.rows[start.at:end.at]
	for ; ; i-- {
		_, n := protowire.ConsumeBytes(row[1:])
		if i == 0 {
			return row[:1+n]
		}
		row = row[1+n:]
	}
}

func (r *storedRows) Size() int {
	start, end := r.bounds()
	return end.at - start.at
}

func (r *storedRows) ColumnSize(i int) int { return len(r.column(i)) }

func (r *storedRows) DataSize() int64 { return r.data }

// Fill implements result.Rows.
func (r *storedRows) Fill(columns []value.Column, size int) (rows int, err error) {
	for ; size > 0 && r.next < len(r.ends); rows++ {
		r.next++
		size -= r.Size()
		for i, to := range columns {
			body, _ := protowire.ConsumeBytes(r.AppendColumn(nil, i)[1:])
			var wire structpb.Value
			if err := proto.Unmarshal(body, &wire); err != nil {
				return rows, err
			}
			v, err := value.FromWire(&wire, r.columns[i].Type)
			if err != nil {
				return rows, err
			}
			if err := to.AppendValue(v); err != nil {
				return rows, err
			}
		}
	}
	return rows, nil
}

// onceBySeqno runs a writing request of a transaction, or returns the answer that a request with the same seqno got before.
// Other writing requests of the transaction wait meanwhile.
func (sc *scope) onceBySeqno(ctx context.Context, seqno int64, request uint64, run func() replay) (replay, error) {
	t, replays := sc.transaction, &sc.open.replays
	if err := t.takeTurn(ctx); err != nil {
		return replay{}, err
	}
	defer t.giveTurn()
	if answer, ok, err := replays.find(seqno, request); ok || err != nil {
		if err != nil && usererror.CodeOf(err) == codes.InvalidArgument && seqno < replays.last {
			t.fail(err)
		}
		return answer, err
	}
	answer := run()
	answer.request = request
	if mayRepeat(ctx, answer.err) {
		replays.keep(seqno, answer)
	}
	return answer, nil
}

// mayRepeat says whether an answer is kept for the request when it comes again. What succeeded is kept even if the client gave up meanwhile: run
// again, it would write twice. If a request failed because the client gave up, because there was no memory, or because the transaction was
// aborted, it is run again.
func mayRepeat(ctx context.Context, err error) bool {
	return err == nil || ctx.Err() == nil && !usererror.IsAborted(err) && !usererror.IsExhausted(err)
}

// runDML runs a statement in a read-write transaction. A statement that fails changes nothing. If it broke a constraint,
// the transaction has ended and the client must roll back.
func (s *service) runDML(ctx context.Context, sc *scope, stmt *database.Statement, params []value.Value, profile bool, c *rpc.Call) (*dmlOutcome, error) {
	before := sc.writer.Savepoint()
	sc.writer.DML = true
	out := new(dmlOutcome)
	run := database.Run{Writer: c.Cost.Splits.Writer(sc.writer), Params: params, Profile: profile, Memory: &c.Rows}
	if err := s.collectDML(ctx, stmt, run, out); err != nil {
		sc.writer.RollbackTo(before)
		if usererror.IsConstraint(err) {
			sc.transaction.fail(err)
		}
		return nil, err
	}
	sc.open.mutations += out.stats.Mutations
	sc.open.wrote(out.stats.Written)
	c.Cost.AddRun(out.stats)
	c.Cost.AddWritten(out.rowCount, out.stats.BytesWritten)
	return out, nil
}

func (s *service) collectDML(ctx context.Context, stmt *database.Statement, run database.Run, out *dmlOutcome) (err error) {
	rows, err := stmt.Run(ctx, run, s.clock())
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := rows.Close(); err == nil {
			err = closeErr
		}
	}()
	for {
		ok, err := rows.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		out.rows = rows.AppendWire(out.rows)
		out.ends = append(out.ends, rowEnd{len(out.rows), rows.DataSize()})
	}
	out.rowCount = rows.RowCount()
	out.stats = rows.Stats()
	return nil
}

// fail ends the transaction with an error that is not to be retried.
func (t *transaction) fail(err error) {
	if open, _ := t.current(); open != nil {
		open.tx.Fail(err)
		t.settle()
	}
}

// Tags of google.spanner.v1.ResultSetStats.
const (
	tagStatsExact      = 3 << 3
	tagStatsLowerBound = 4 << 3
)

// appendRowCount appends a ResultSetStats field with nothing but a row count.
func appendRowCount(dst []byte, tag, kind byte, n int64) []byte {
	dst, mark := value.BeginField(dst, tag)
	dst = binary.AppendUvarint(append(dst, kind), uint64(n))
	return value.EndField(dst, mark)
}
