package server

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/server/result"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// errPendingParam is the error for a parameter whose value is the commit timestamp, which is not known before the
// commit.
var errPendingParam = errors.New("a commit timestamp cannot be a parameter")

// A queryRequest is a checked ExecuteSql or ExecuteStreamingSql request.
type queryRequest struct {
	*spannerpb.ExecuteSqlRequest
	text        sqlText
	call        *rpc.Call
	session     *session
	fingerprint uint64
	streaming   bool               // the reply is a stream, not a single message
	partition   *partition         // parsed from the request's partition token; nil without a token
	divided     bool               // the server itself has divided the query into partitions
	resume      *result.Resumption // parsed from the request's resume token; nil without a token
}

// checkQuery finds the session of an ExecuteSql or ExecuteStreamingSql request, and validates the request except for
// the text of its SQL statement.
func (s *service) checkQuery(req *spannerpb.ExecuteSqlRequest, c *rpc.Call) (q queryRequest, err error) {
	q.ExecuteSqlRequest, q.call = req, c
	q.text = sqlText{sql: req.Sql, params: req.Params, types: req.ParamTypes}
	if q.session, err = s.sessions.find(req.Session); err != nil {
		return q, err
	}
	if err := checkQueryFields(req); err != nil {
		return q, err
	}
	if err := checkQueryOptions(req.QueryOptions, q.session.db); err != nil {
		return q, err
	}
	f := s.tokens.Query(req.Session, req.Sql, req.Params, req.ParamTypes)
	if len(req.PartitionToken) > 0 {
		if q.partition, err = parsePartition(s.tokens, req.PartitionToken, f.Sum, req.Transaction.GetId()); err != nil {
			return q, err
		}
		f.Bytes(req.PartitionToken)
	}
	f.Number(uint64(req.QueryMode))
	q.fingerprint = f.Sum
	if len(req.ResumeToken) > 0 {
		q.resume, err = result.ParseToken(s.tokens, req.ResumeToken, q.fingerprint)
	}
	return q, err
}

// showsPlan reports whether the reply contains the plan.
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

func (s *service) executeStreamingSQL(ctx context.Context, req *spannerpb.ExecuteSqlRequest, c *rpc.Call) error {
	q, err := s.checkQuery(req, c)
	if err != nil {
		return err
	}
	q.streaming = true
	return s.withQuery(ctx, q, func(r *result.Result) error {
		return r.Stream(ctx, c, s.tokens, q.fingerprint, q.resume.Position())
	})
}

func (s *service) executeSQL(ctx context.Context, req *spannerpb.ExecuteSqlRequest, c *rpc.Call) (reply *rpc.Frame, err error) {
	q, err := s.checkQuery(req, c)
	if err != nil {
		return nil, err
	}
	err = s.withQuery(ctx, q, func(r *result.Result) (err error) {
		reply, err = r.Set(ctx, c, q.resume.Position())
		return err
	})
	return reply, err
}

// withQuery runs a statement of any kind and passes its result to the function answer. The result is valid until answer
// returns.
func (s *service) withQuery(ctx context.Context, q queryRequest, answer func(*result.Result) error) (err error) {
	sc, err := s.openScope(ctx, scopeRequest{
		session:  q.session,
		selector: q.Transaction,
		tag:      q.RequestOptions.GetTransactionTag(),
		resume:   q.resume.Snapshot(),
	})
	defer func() {
		sc.close(err)
		if err != nil && q.QueryMode != spannerpb.ExecuteSqlRequest_PLAN {
			q.call.Cost.StartRefusedStatement(q.Sql, q.RequestOptions.GetRequestTag(), q.kind(&sc))
		}
	}()
	if err != nil {
		return err
	}
	record := &q.call.Cost
	sc.record(record)
	if err := checkDirectedRead(q.DirectedReadOptions, sc.readOnly()); err != nil {
		return err
	}
	opts := prepare.Options{Batch: q.partition != nil || sc.isPartitioned(), AllowUnbound: q.QueryMode == spannerpb.ExecuteSqlRequest_PLAN, Verbatim: q.showsPlan()}
	stmt, err := q.text.prepare(ctx, &sc, opts)
	if err != nil {
		return err
	}
	if err := checkStatement(&sc, stmt); err != nil {
		return err
	}
	if stmt.ChangeStream != nil {
		if err := q.checkChangeStream(); err != nil {
			return err
		}
	}
	if q.QueryMode == spannerpb.ExecuteSqlRequest_PLAN {
		return answer(q.planned(&sc, stmt))
	}
	params, err := q.text.bind(stmt)
	if err != nil {
		return err
	}
	if err := sc.dependOn(ctx, stmt.Dependencies); err != nil {
		return err
	}
	record.StartStatement(stmt, q.RequestOptions.GetRequestTag(), q.kind(&sc))
	if stmt.ChangeStream != nil {
		return s.answerChangeStream(ctx, q, &sc, stmt, params, answer)
	}
	ctx = sc.startStatement(ctx, q.call, stmt, q.RequestOptions)
	record.TrackSplits(stmt.PointRead)
	defer func() { err = q.call.StopStatement(err) }()
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

// kind returns the kind under which statistics count the statement. Partitioned queries and partitioned DML have kinds
// of their own, so that they are counted apart from other executions of the same SQL text.
func (q *queryRequest) kind(sc *scope) stats.QueryKind {
	switch {
	case sc.isPartitioned():
		return stats.PartitionedDML
	case q.partition != nil && !q.divided:
		return stats.PartitionedQuery
	}
	return stats.PlainQuery
}

// checkStatement returns an error if the scope's transaction does not allow the statement.
func checkStatement(sc *scope, stmt *prepare.Statement) error {
	switch dml := stmt.Plan.IsDML(); {
	case sc.isPartitioned() && !dml:
		return usererror.PartitionedOnlyDML()
	case sc.readOnly() && dml:
		return usererror.DMLReadOnly()
	case sc.readOnly() && stmt.TakesValues:
		return usererror.ReadWriteFunction("GET_NEXT_SEQUENCE_VALUE")
	case sc.readOnly() && stmt.Plan.ForUpdate:
		return usererror.ForUpdateReadOnly()
	case !sc.readOnly() && stmt.Plan.ReadsSystem():
		return usererror.SystemTableInReadWrite()
	}
	return nil
}

func (s *service) answerQuery(ctx context.Context, q queryRequest, sc *scope, stmt *prepare.Statement, params []value.Value, answer func(*result.Result) error) error {
	record := &q.call.Cost
	kept := q.partition == nil && sc.session.db.Stats().WantProfile()
	run := prepare.Run{View: record.Splits.View(sc.view()), Params: params, Memory: &q.call.Rows, Profile: kept || q.QueryMode == spannerpb.ExecuteSqlRequest_PROFILE}
	if q.partition != nil {
		run.Restrict = q.partition.restrict()
	}
	if role := sc.session.stored.Role; role != "" && stmt.Plan.ReadsSystem() {
		access, err := sc.session.db.Catalog().AccessOf(role)
		if err != nil {
			return err
		}
		run.Access = access
	}
	rows, err := stmt.Run(ctx, run, record.Began)
	if err != nil {
		return err
	}
	defer rows.Close()
	r := &result.Result{Transaction: &sc.reply, Columns: stmt.Columns, Rows: rows}
	if q.QueryMode != spannerpb.ExecuteSqlRequest_NORMAL {
		r.AppendStats = func(dst []byte, tag byte) []byte {
			return s.appendStats(dst, tag, q, stmt, rows.Stats(), r.DataSize(), nil)
		}
	}
	err = sc.readError(answer(r))
	ran := rows.Stats()
	record.SetReturned(r.Sent, r.DataSize())
	record.AddRun(ran)
	if kept {
		record.KeepProfile(func() string { return profileText(stmt, ran) })
	}
	return err
}

func (s *service) answerDML(ctx context.Context, q queryRequest, sc *scope, stmt *prepare.Statement, params []value.Value, answer func(*result.Result) error) error {
	profile := q.QueryMode == spannerpb.ExecuteSqlRequest_PROFILE
	once, err := sc.onceBySeqno(ctx, q.Seqno, q.fingerprint, func() (r replay) {
		r.dml, r.err = s.runDML(ctx, sc, stmt, params, profile, q.call)
		return r
	})
	if err == nil {
		err = once.err
	}
	if err != nil {
		return err
	}
	r := &result.Result{Transaction: &sc.reply, Columns: stmt.Columns, Rows: &storedRows{dmlOutcome: once.dml, columns: stmt.Columns}, RowCount: once.dml.rowCount}
	r.AppendStats = func(dst []byte, tag byte) []byte {
		if q.QueryMode == spannerpb.ExecuteSqlRequest_NORMAL {
			return appendRowCount(dst, tag, tagStatsExact, once.dml.rowCount)
		}
		return s.appendStats(dst, tag, q, stmt, once.dml.stats, r.DataSize(), &once.dml.rowCount)
	}
	err = answer(r)
	q.call.Cost.SetReturned(r.Sent, r.DataSize())
	return err
}

// answerPartitionedDML runs the statement of a partitioned DML transaction. Such a transaction can have only one
// statement.
func (s *service) answerPartitionedDML(ctx context.Context, q queryRequest, sc *scope, stmt *prepare.Statement, params []value.Value, answer func(*result.Result) error) error {
	if err := stmt.Plan.PartitionedDML(); err != nil {
		return err
	}
	t, record := sc.transaction, &q.call.Cost
	if err := t.acquire(ctx); err != nil {
		return err
	}
	defer t.release()
	this := partitionedStatement{q.fingerprint, q.Seqno}
	if t.statement != nil && *t.statement != this {
		return usererror.PartitionedSecondStatement()
	}
	changed, err := sc.session.db.PartitionedDML(ctx, database.PartitionedDML{
		Statement: stmt, Params: params, Session: sc.session.id(), Tracker: &record.Splits, Excluded: t.excluded,
		// Job is a name that identifies this execution in the database. If the client sends the statement again in the
		// same transaction, the database finds the earlier execution by this name and continues it.
		Job: fmt.Sprintf("%d.%d/%x", t.key.Start, t.key.Number, q.fingerprint),
	})
	if err != nil {
		return err
	}
	t.statement = &this
	record.AddRun(exec.Stats{RowsScanned: changed.RowsScanned, MemoryPeak: changed.MemoryPeak})
	record.AddWritten(changed.Rows, changed.BytesWritten)
	record.AddCommits(changed.Commits)
	return answer(&result.Result{Transaction: &sc.reply, Columns: stmt.Columns, AppendStats: func(dst []byte, tag byte) []byte {
		return appendRowCount(dst, tag, tagStatsLowerBound, changed.Rows)
	}})
}
