package server

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/genproto/googleapis/rpc/status"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// executeBatchDML answers ExecuteBatchDml: statements run in order up to the
// first that fails; the reply holds the results of those before it, and its error as a status.
func (s *Server) executeBatchDML(ctx context.Context, req *spannerpb.ExecuteBatchDmlRequest, e *execution) (reply *spannerpb.ExecuteBatchDmlResponse, err error) {
	ses, err := s.session(req.Session)
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
	e.in(&sc)
	e.isBatch(req)
	ctx = e.metered(ctx)
	if sc.readOnly() || sc.isPartitioned() {
		return nil, usererror.BatchOutsideReadWrite()
	}
	once, err := s.onceBySeqno(ctx, sc.transaction, req.Seqno, s.tokens.batchFingerprint(req), func() (r replay) {
		reply, failure := s.runBatch(ctx, &sc, req, e)
		e.failure = failure
		if len(reply.ResultSets) == 0 {
			closing = &failure // the client does not learn the id of a transaction that begins here
		}
		if ctx.Err() != nil || usererror.IsAborted(failure) {
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

// runBatch runs the statements; failure is the error that stopped them, which the reply holds too.
func (s *Server) runBatch(ctx context.Context, sc *scope, req *spannerpb.ExecuteBatchDmlRequest, e *execution) (reply *spannerpb.ExecuteBatchDmlResponse, failure error) {
	reply = &spannerpb.ExecuteBatchDmlResponse{Status: &status.Status{}}
	for i, p := range req.Statements {
		out, err := s.runBatchStatement(ctx, sc, p, req.RequestOptions, e)
		if err != nil {
			st, _ := statusOf(err)
			reply.Status = st.Proto()
			return reply, err
		}
		rs := &spannerpb.ResultSet{
			Stats: &spannerpb.ResultSetStats{RowCount: &spannerpb.ResultSetStats_RowCountExact{RowCountExact: out.rowCount}},
		}
		if i == 0 {
			rs.Metadata = &spannerpb.ResultSetMetadata{RowType: &spannerpb.StructType{}, Transaction: sc.proto()}
		}
		reply.ResultSets = append(reply.ResultSets, rs)
	}
	return reply, nil
}

func (s *Server) runBatchStatement(ctx context.Context, sc *scope, p *spannerpb.ExecuteBatchDmlRequest_Statement, o *spannerpb.RequestOptions, e *execution) (out *dmlOutcome, err error) {
	text := sqlText{sql: p.GetSql(), params: p.GetParams(), types: p.GetParamTypes()}
	stmt, err := text.prepare(ctx, sc, database.Options{})
	if err != nil {
		return nil, err
	}
	if !stmt.Plan.IsDML() {
		return nil, usererror.BatchOnlyDML()
	}
	params, err := text.bind(stmt)
	if err != nil {
		return nil, err
	}
	ctx = e.batched(ctx, sc, stmt, o)
	defer func() { err = e.stop(err) }()
	out, err = s.runDML(ctx, sc, stmt, params, false, e)
	if err == nil {
		e.ran(out)
	}
	return out, err
}

// batchFingerprint covers the statements of a batch.
func (k tokenKey) batchFingerprint(req *spannerpb.ExecuteBatchDmlRequest) uint64 {
	f := k.fingerprint(fingerprintBatch)
	f.text(req.Session)
	for _, p := range req.Statements {
		f.text(p.GetSql())
		f.params(p.GetParams(), p.GetParamTypes())
	}
	return f.sum
}
