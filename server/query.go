package server

import (
	"context"
	"errors"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// errPendingParam is why spanner.commit_timestamp() is no parameter.
var errPendingParam = errors.New("a commit timestamp cannot be a parameter")

// A queryRequest is an ExecuteSql or ExecuteStreamingSql that has been checked.
type queryRequest struct {
	*spannerpb.ExecuteSqlRequest
	text        sqlText
	execution   *execution
	session     *session
	fingerprint uint64
	partition   *partition  // of a partition token
	resume      *resumption // of a resume token, or nil
	began       time.Time
}

// checkQuery finds what is wrong with a statement's request before the text is looked at.
func (s *Server) checkQuery(req *spannerpb.ExecuteSqlRequest, e *execution) (q queryRequest, err error) {
	q.ExecuteSqlRequest, q.execution = req, e
	q.text = sqlText{sql: req.Sql, params: req.Params, types: req.ParamTypes}
	q.began = e.began
	if q.session, err = s.session(req.Session); err != nil {
		return q, err
	}
	if err := checkQueryFields(req); err != nil {
		return q, err
	}
	if err := checkQueryOptions(req.QueryOptions, q.session.db); err != nil {
		return q, err
	}
	f := s.tokens.queryFingerprint(req.Session, req.Sql, req.Params, req.ParamTypes)
	if len(req.PartitionToken) > 0 {
		if q.partition, err = s.tokens.partition(req.PartitionToken, f.sum, req.Transaction.GetId()); err != nil {
			return q, err
		}
		f.bytes(req.PartitionToken)
	}
	f.number(uint64(req.QueryMode))
	q.fingerprint = f.sum
	if len(req.ResumeToken) > 0 {
		q.resume, err = s.tokens.resumption(req.ResumeToken, q.fingerprint)
	}
	return q, err
}

// showsPlan says whether the reply has the plan.
func (q *queryRequest) showsPlan() bool {
	switch q.QueryMode {
	case spannerpb.ExecuteSqlRequest_PLAN, spannerpb.ExecuteSqlRequest_PROFILE, spannerpb.ExecuteSqlRequest_WITH_PLAN_AND_STATS:
		return true
	}
	return false
}

func checkQueryFields(req *spannerpb.ExecuteSqlRequest) error {
	if err := checkRequestOptions(req.RequestOptions); err != nil {
		return err
	}
	if _, ok := spannerpb.ExecuteSqlRequest_QueryMode_name[int32(req.QueryMode)]; !ok {
		return usererror.InvalidEnum("query_mode", int32(req.QueryMode))
	}
	if len(req.PartitionToken) == 0 {
		if req.DataBoostEnabled {
			return usererror.DataBoostWithoutPartition()
		}
		return nil
	}
	if req.QueryMode != spannerpb.ExecuteSqlRequest_NORMAL {
		return usererror.PlanWithPartition()
	}
	return nil
}

func (s *Server) executeStreamingSQL(ctx context.Context, req *spannerpb.ExecuteSqlRequest, e *execution) error {
	q, err := s.checkQuery(req, e)
	if err != nil {
		return err
	}
	return s.withQuery(ctx, q, func(r *result) error {
		return s.stream(ctx, r, q.fingerprint, q.resume.position(), e)
	})
}

func (s *Server) executeSQL(ctx context.Context, req *spannerpb.ExecuteSqlRequest, e *execution) (reply *frame, err error) {
	q, err := s.checkQuery(req, e)
	if err != nil {
		return nil, err
	}
	err = s.withQuery(ctx, q, func(r *result) (err error) {
		reply, err = s.resultSet(ctx, r, q.resume.position())
		return err
	})
	return reply, err
}

// withQuery runs a statement of any kind and calls answer with its result.
func (s *Server) withQuery(ctx context.Context, q queryRequest, answer func(*result) error) (err error) {
	sc, err := s.openScope(ctx, scopeRequest{
		session:  q.session,
		selector: q.Transaction,
		tag:      q.RequestOptions.GetTransactionTag(),
		resume:   q.resume,
		meter:    &q.execution.cpu,
	})
	defer func() {
		sc.close(err)
		if err != nil && q.QueryMode != spannerpb.ExecuteSqlRequest_PLAN {
			q.execution.failed(q, &sc)
		}
	}()
	if err != nil {
		return err
	}
	q.execution.in(&sc)
	ctx = q.execution.metered(ctx)
	if err := checkDirectedRead(q.DirectedReadOptions, sc.readOnly()); err != nil {
		return err
	}
	opts := database.Options{Batch: q.partition != nil || sc.isPartitioned(), AllowUnbound: q.QueryMode == spannerpb.ExecuteSqlRequest_PLAN, Verbatim: q.showsPlan()}
	stmt, err := q.text.prepare(ctx, &sc, opts)
	if err != nil {
		return err
	}
	if err := checkStatement(&sc, stmt); err != nil {
		return err
	}
	if q.QueryMode == spannerpb.ExecuteSqlRequest_PLAN {
		return answer(q.planned(&sc, stmt))
	}
	params, err := q.text.bind(stmt)
	if err != nil {
		return err
	}
	ctx = q.execution.isQuery(ctx, q, &sc, stmt)
	q.execution.track(stmt.Point)
	defer func() { err = q.execution.stop(err) }()
	switch {
	case stmt.Procedure != "":
		return s.answerCall(ctx, q, &sc, stmt, params, answer)
	case sc.isPartitioned():
		return s.answerPartitionedDML(ctx, q, &sc, stmt, params, answer)
	case stmt.Plan.IsDML():
		return s.answerDML(ctx, q, &sc, stmt, params, answer)
	}
	return s.answerQuery(ctx, q, &sc, stmt, params, answer)
}

// kind tells rows of one text apart in statistics.
func (q *queryRequest) kind(sc *scope) stats.QueryKind {
	switch {
	case sc.isPartitioned():
		return stats.PartitionedDML
	case q.partition != nil:
		return stats.PartitionedQuery
	}
	return stats.PlainQuery
}

// checkStatement refuses statements that the transaction does not allow.
func checkStatement(sc *scope, stmt *database.Statement) error {
	switch dml := stmt.Plan.IsDML(); {
	case sc.isPartitioned() && !dml:
		return usererror.PartitionedOnlyDML()
	case sc.readOnly() && dml:
		return usererror.DMLReadOnly()
	case sc.readOnly() && stmt.Plan.ForUpdate:
		return usererror.ForUpdateReadOnly()
	case !sc.readOnly() && stmt.Plan.ReadsSystem():
		return usererror.SystemTableInReadWrite()
	}
	return nil
}

func (s *Server) answerQuery(ctx context.Context, q queryRequest, sc *scope, stmt *database.Statement, params []value.Value, answer func(*result) error) error {
	e := q.execution
	kept := q.partition == nil && sc.session.db.Stats().WantProfile()
	run := database.Run{View: e.tracker.View(sc.view()), Params: params, Profile: kept || q.QueryMode == spannerpb.ExecuteSqlRequest_PROFILE}
	if q.partition != nil {
		run.Restrict = q.partition.restrict()
	}
	rows, err := stmt.Run(ctx, run, q.began)
	if err != nil {
		return err
	}
	defer rows.Close()
	r := &result{scope: sc, columns: stmt.Plan.Columns, rows: rows}
	if q.QueryMode != spannerpb.ExecuteSqlRequest_NORMAL {
		r.appendStats = func(dst []byte, tag byte) []byte {
			return s.appendStats(dst, tag, q, stmt, rows.Stats(), r.dataSize(), nil)
		}
	}
	err = answer(r)
	ran := rows.Stats()
	e.query.Rows, e.query.Bytes = r.sent, r.dataSize()
	e.used(ran)
	if kept {
		e.profile = func() string { return profileText(stmt, ran) }
	}
	return err
}

func (s *Server) answerDML(ctx context.Context, q queryRequest, sc *scope, stmt *database.Statement, params []value.Value, answer func(*result) error) error {
	profile := q.QueryMode == spannerpb.ExecuteSqlRequest_PROFILE
	once, err := s.onceBySeqno(ctx, sc.transaction, q.Seqno, q.fingerprint, func() (r replay) {
		r.dml, r.err = s.runDML(ctx, sc, stmt, params, profile, q.execution)
		if r.err == nil {
			q.execution.ran(r.dml)
		}
		return r
	})
	if err == nil {
		err = once.err
	}
	if err != nil {
		return err
	}
	r := &result{scope: sc, columns: stmt.Plan.Columns, rows: &storedRows{dmlOutcome: once.dml}}
	r.appendStats = func(dst []byte, tag byte) []byte {
		if q.QueryMode == spannerpb.ExecuteSqlRequest_NORMAL {
			return appendRowCount(dst, tag, tagStatsExact, once.dml.rowCount)
		}
		return s.appendStats(dst, tag, q, stmt, once.dml.stats, r.dataSize(), &once.dml.rowCount)
	}
	err = answer(r)
	q.execution.query.Rows, q.execution.query.Bytes = r.sent, r.dataSize()
	return err
}

// answerPartitionedDML runs the one statement of a partitioned DML transaction.
func (s *Server) answerPartitionedDML(ctx context.Context, q queryRequest, sc *scope, stmt *database.Statement, params []value.Value, answer func(*result) error) error {
	if err := stmt.Plan.PartitionedDML(); err != nil {
		return err
	}
	t := sc.transaction
	if err := t.takeTurn(ctx); err != nil {
		return err
	}
	defer t.giveTurn()
	if t.spent {
		return usererror.PartitionedSecondStatement()
	}
	changed, err := sc.session.db.PartitionedDML(ctx, stmt, params, sc.session.id(), &q.execution.tracker)
	if err != nil {
		return err
	}
	t.spent = true
	q.execution.used(exec.Stats{RowsScanned: changed.RowsScanned, MemoryPeak: changed.MemoryPeak})
	q.execution.query.RowsWritten, q.execution.query.BytesWritten, q.execution.commits = changed.Rows, changed.BytesWritten, changed.Commits
	return answer(&result{scope: sc, columns: stmt.Plan.Columns, appendStats: func(dst []byte, tag byte) []byte {
		return appendRowCount(dst, tag, tagStatsLowerBound, changed.Rows)
	}})
}
