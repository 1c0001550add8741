package server

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/server/result"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// checkChangeStream returns an error if a query of a change stream cannot run in this kind of request or transaction.
// The rules: https://cloud.google.com/spanner/docs/change-streams/details#query-syntax.
func (q *queryRequest) checkChangeStream() error {
	if !q.streaming {
		return usererror.ChangeStreamUnary()
	}
	switch sel := q.Transaction.GetSelector().(type) {
	case nil:
		return nil
	case *spannerpb.TransactionSelector_SingleUse:
		switch sel.SingleUse.GetReadOnly().GetTimestampBound().(type) {
		case nil, *spannerpb.TransactionOptions_ReadOnly_Strong:
			return nil
		}
	}
	return usererror.ChangeStreamMultiUse()
}

// answerChangeStream runs a query of a change stream. The statement's plan returns one row, whose columns are the
// arguments of the function that reads the change stream.
//
// The query may never end. As in Cloud Spanner, it is not listed as an active query
// (https://cloud.google.com/spanner/docs/introspection/oldest-active-queries). When it ends, QUERY_STATS counts it with
// its whole duration (https://cloud.google.com/spanner/docs/introspection/query-statistics). Metrics keep its latency
// separate from that of other requests (https://cloud.google.com/spanner/docs/metrics:
// read_request_latencies_by_change_stream). It is never logged as slow.
func (s *service) answerChangeStream(ctx context.Context, q queryRequest, sc *scope, stmt *prepare.Statement, params []value.Value, answer func(*result.Result) error) error {
	q.call.Cost.StartChangeStream()
	args, err := arguments(ctx, sc, stmt, params, q)
	if err != nil {
		return err
	}
	given := database.ChangeStreamArguments{Start: args[0], End: args[1], Token: args[2], Heartbeat: args[3], ReadOptions: args[4]}
	reader, err := sc.session.db.ReadChangeStream(ctx, stmt.ChangeStream, given, q.resume.Live(), &q.call.Rows)
	if err != nil {
		return err
	}
	r := &result.Result{Transaction: &sc.reply, Columns: stmt.Columns, Live: reader}
	if sc.session.stored.Role != "" {
		r.Live = allowedRows{reader, func() error { return sc.allow(ctx, stmt.Needs) }}
	}
	if q.QueryMode != spannerpb.ExecuteSqlRequest_NORMAL {
		r.AppendStats = func(dst []byte, tag byte) []byte {
			return s.appendStats(dst, tag, q, stmt, exec.Stats{RowsScanned: r.Sent, RowsReturned: r.Sent}, r.DataSize(), nil)
		}
	}
	err = answer(r)
	q.call.Cost.SetReturned(r.Sent, r.DataSize())
	q.call.Cost.AddRun(exec.Stats{RowsScanned: r.Sent})
	return err
}

// allowedRows are the rows of a change stream. Before each row, Next checks that the session's role may read the change
// stream; if the role has lost the right, the rows end with an error.
type allowedRows struct {
	result.LiveRows
	allow func() error
}

// Next implements result.LiveRows.
func (r allowedRows) Next() (ok bool, err error) {
	if ok, err = r.LiveRows.Next(); ok {
		err = r.allow()
	}
	return ok && err == nil, err
}
