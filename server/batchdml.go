package server

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/server/status"
	"github.com/crowfoot-db/crowfoot/sql/analyze"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// executeBatchDML answers ExecuteBatchDml. The statements run in order until one fails. The reply holds the results of
// the successful statements; its status is the error of the failed one.
func (s *service) executeBatchDML(ctx context.Context, req *spannerpb.ExecuteBatchDmlRequest, c *rpc.Call) (reply *spannerpb.ExecuteBatchDmlResponse, err error) {
	ses, err := s.sessions.find(req.Session)
	if err != nil {
		return nil, err
	}
	if err := checkBatch(req); err != nil {
		return nil, err
	}
	sc, err := s.openScope(ctx, scopeRequest{session: ses, selector: req.Transaction, tag: req.RequestOptions.GetTransactionTag()})
	closing := &err
	defer func() { sc.close(*closing) }()
	if err != nil {
		return nil, err
	}
	sc.record(&c.Cost)
	c.Cost.StartBatch(textsOf(req), req.RequestOptions.GetRequestTag())
	if sc.readOnly() || sc.isPartitioned() {
		return nil, usererror.BatchOutsideReadWrite()
	}
	once, err := sc.onceBySeqno(ctx, req.Seqno, s.tokens.Batch(req).Sum, func() (r replay) {
		before, mutations := sc.writer.Savepoint(), sc.open.mutations
		reply, failure := s.runBatch(ctx, &sc, req, c)
		c.Failure = failure
		if len(reply.ResultSets) == 0 {
			// The reply has no result that could hold the id of a transaction that begins here. With an error,
			// sc.close forgets this transaction.
			closing = &failure
		}
		if !mayRepeat(ctx, failure) {
			// The reply is not stored, so if the client resends the batch, the server runs all its statements again.
			sc.writer.RollbackTo(before)
			sc.open.mutations = mutations
			return replay{err: failure}
		}
		return replay{batch: reply}
	})
	if err == nil {
		err = once.err
	}
	if err != nil {
		return nil, err
	}
	return once.batch.(*spannerpb.ExecuteBatchDmlResponse), nil
}

func textsOf(req *spannerpb.ExecuteBatchDmlRequest) []string {
	texts := make([]string, len(req.Statements))
	for i, p := range req.Statements {
		texts[i] = p.GetSql()
	}
	return texts
}

func checkBatch(req *spannerpb.ExecuteBatchDmlRequest) error {
	if err := checkRequestOptions(req.RequestOptions); err != nil {
		return err
	}
	if req.Transaction.GetSelector() == nil {
		return usererror.MissingField("transaction")
	}
	if len(req.Statements) == 0 {
		return usererror.MissingField("statements")
	}
	return nil
}

// runBatch runs the statements in order until one fails. failure is the error of the failed statement, or nil; the
// status of the reply is made from it.
func (s *service) runBatch(ctx context.Context, sc *scope, req *spannerpb.ExecuteBatchDmlRequest, c *rpc.Call) (reply *spannerpb.ExecuteBatchDmlResponse, failure error) {
	reply = &spannerpb.ExecuteBatchDmlResponse{Status: status.Of(nil)}
	for i := range req.Statements {
		out, err := s.runBatchStatement(ctx, sc, i, req, c)
		if err != nil {
			reply.Status = status.Of(err)
			return reply, err
		}
		rs := &spannerpb.ResultSet{
			Stats: &spannerpb.ResultSetStats{RowCount: &spannerpb.ResultSetStats_RowCountExact{RowCountExact: out.rowCount}},
		}
		if i == 0 {
			rs.Metadata = &spannerpb.ResultSetMetadata{RowType: &spannerpb.StructType{}, Transaction: sc.reply.Proto()}
		}
		reply.ResultSets = append(reply.ResultSets, rs)
	}
	return reply, nil
}

// batchResultBytes is the approximate memory in bytes of one statement's result in a batch: a ResultSet message with
// its statistics, and the encoded form of this message.
const batchResultBytes = 512

// runBatchStatement runs statement i of a batch.
func (s *service) runBatchStatement(ctx context.Context, sc *scope, i int, req *spannerpb.ExecuteBatchDmlRequest, c *rpc.Call) (out *dmlOutcome, err error) {
	p := req.Statements[i]
	if !analyze.KindOf(p.GetSql()).DML() {
		return nil, usererror.NotDML(i, p.GetSql())
	}
	if err := c.Memory.Grow(ctx, batchResultBytes); err != nil {
		return nil, err
	}
	text := sqlText{sql: p.GetSql(), params: p.GetParams(), types: p.GetParamTypes()}
	stmt, err := text.prepare(ctx, sc, prepare.Options{})
	if err != nil {
		return nil, err
	}
	params, err := text.bind(stmt)
	if err != nil {
		return nil, err
	}
	if err := sc.dependOn(ctx, stmt.Dependencies); err != nil {
		return nil, err
	}
	c.Cost.AddToBatch(stmt)
	c.Cost.TrackSplits(false)
	ctx = sc.startStatement(ctx, c, stmt, req.RequestOptions)
	defer func() { err = c.StopStatement(err) }()
	return s.runDML(ctx, sc, stmt, params, false, c)
}
