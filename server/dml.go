package server

import (
	"context"
	"encoding/binary"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// A dmlOutcome is the result of a DML statement: the row count, and the rows of THEN RETURN. It is complete before the
// first byte of the reply is sent, so that the server can send the same reply again if the client repeats the request.
type dmlOutcome struct {
	rowCount int64
	rows     []byte // all rows, as PartialResultSet.values elements
	ends     []rowEnd
	stats    exec.Stats
}

// rowEnd says where a row of a dmlOutcome ends. at is the offset of its end in dmlOutcome.rows. data is the data size
// in bytes of this row and all rows before it.
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

// bounds returns the start and the end of the current row.
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

// AppendColumn implements result.Rows. For column 0 it also adds the row's data size to r.data, the data size of all
// rows read so far.
func (r *storedRows) AppendColumn(dst []byte, i int) []byte {
	if start, end := r.bounds(); i == 0 {
		r.data += end.data - start.data
	}
	return append(dst, r.column(i)...)
}

// column returns the encoded value of column i of the current row.
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

// onceBySeqno calls the function run, which executes a request that writes in the scope's transaction, and returns its
// answer. If the transaction has already answered a request with the same seqno, onceBySeqno returns that answer and
// does not call run. While the transaction executes another writing request, onceBySeqno waits. The parameter request
// is the fingerprint of the request.
func (sc *scope) onceBySeqno(ctx context.Context, seqno int64, request uint64, run func() replay) (replay, error) {
	t, replays := sc.transaction, &sc.open.replays
	if err := t.acquire(ctx); err != nil {
		return replay{}, err
	}
	defer t.release()
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

// mayRepeat reports whether the server stores the answer to a request, so that the client gets the same answer if it
// sends the request again. A successful request is never run again, because that would write twice; so its answer is
// stored even if the client has given up. A failed request is run again if it failed because the client gave up, memory
// was short, or the transaction was aborted.
func mayRepeat(ctx context.Context, err error) bool {
	return err == nil || ctx.Err() == nil && !usererror.IsAborted(err) && !usererror.IsExhausted(err)
}

// runDML runs a statement in a read-write transaction. A failed statement changes nothing. If the statement broke a
// constraint, the transaction has ended, and the client can only roll back.
func (s *service) runDML(ctx context.Context, sc *scope, stmt *prepare.Statement, params []value.Value, profile bool, c *rpc.Call) (*dmlOutcome, error) {
	before := sc.writer.Savepoint()
	sc.writer.DML = true
	out := new(dmlOutcome)
	run := prepare.Run{Writer: c.Cost.Splits.Writer(sc.writer), Params: params, Profile: profile, Memory: &c.Rows}
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

func (s *service) collectDML(ctx context.Context, stmt *prepare.Statement, run prepare.Run, out *dmlOutcome) (err error) {
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

// fail ends the transaction because of err, an error that a retry cannot fix.
func (t *transaction) fail(err error) {
	if open, _ := t.current(); open != nil {
		open.tx.Fail(err)
		t.settle()
	}
}

// Tags of the fields of google.spanner.v1.ResultSetStats.
const (
	tagStatsExact      = 3 << 3
	tagStatsLowerBound = 4 << 3
)

// appendRowCount appends a ResultSetStats as a field of a message. The ResultSetStats holds only the row count n. tag
// is the tag of the ResultSetStats in the message, and kind is the tag of the row count in the ResultSetStats.
func appendRowCount(dst []byte, tag, kind byte, n int64) []byte {
	dst, mark := value.BeginField(dst, tag)
	dst = binary.AppendUvarint(append(dst, kind), uint64(n))
	return value.EndField(dst, mark)
}
