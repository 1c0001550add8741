package server

import (
	"fmt"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/server/cost"
	"github.com/crowfoot-db/crowfoot/server/result"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/sql/plan"
)

// planned returns the result of a PLAN request: the plan and the parameters that the statement needs. Nothing runs.
func (q *queryRequest) planned(sc *scope, stmt *prepare.Statement) *result.Result {
	r := &result.Result{Transaction: &sc.reply, Columns: stmt.Columns, Undeclared: stmt.Undeclared}
	if r.Undeclared == nil {
		r.Undeclared = []plan.Param{}
	}
	r.AppendStats = func(dst []byte, tag byte) []byte {
		return appendMessage(dst, tag, &spannerpb.ResultSetStats{QueryPlan: stmt.Plan.Proto(nil, nil)})
	}
	return r
}

// appendStats appends the ResultSetStats that the query mode asks for. rowCount is the row count of a DML statement, or
// nil.
func (s *service) appendStats(dst []byte, tag byte, q queryRequest, stmt *prepare.Statement, run exec.Stats, bytes int64, rowCount *int64) []byte {
	p := &spannerpb.ResultSetStats{QueryStats: queryStats(q, stmt, run, bytes, q.call.Cost.Elapsed())}
	switch q.QueryMode {
	case spannerpb.ExecuteSqlRequest_PROFILE:
		p.QueryPlan = stmt.Plan.Proto(exec.NodeStatsProto(run), nil)
	case spannerpb.ExecuteSqlRequest_WITH_PLAN_AND_STATS:
		p.QueryPlan = stmt.Plan.Proto(nil, nil)
	}
	if rowCount != nil {
		p.RowCount = &spannerpb.ResultSetStats_RowCountExact{RowCountExact: *rowCount}
	}
	return appendMessage(dst, tag, p)
}

// queryStats returns the statistics of an execution, each value as a string. Names and units follow
// https://cloud.google.com/spanner/docs/query-execution-plans#query_execution_stats.
func queryStats(q queryRequest, stmt *prepare.Statement, run exec.Stats, bytes int64, elapsed time.Duration) *structpb.Struct {
	text, record := structpb.NewStringValue, &q.call.Cost
	return &structpb.Struct{Fields: map[string]*structpb.Value{
		"elapsed_time":             text(exec.Msecs(elapsed) + " msecs"),
		"cpu_time":                 text(exec.Msecs(record.CPU.SoFar()) + " msecs"),
		"locking_delay":            text(exec.Msecs(record.LockWait()) + " msecs"),
		"remote_server_calls":      text(fmt.Sprint(record.Splits.RemoteCalls())),
		"bytes_returned":           text(fmt.Sprint(bytes)),
		"query_plan_creation_time": text(exec.Msecs(stmt.PlanTime) + " msecs"),
		"rows_returned":            text(fmt.Sprint(run.RowsReturned)),
		"rows_scanned":             text(fmt.Sprint(run.RowsScanned)),
		"memory_peak_usage_bytes":  text(fmt.Sprint(run.MemoryPeak)),
		"memory_usage_percentage":  text(fmt.Sprintf("%.3f", cost.MemoryShare(run.MemoryPeak))),
		"query_text":               text(q.Sql),
	}}
}

// profileText returns, as JSON, the statement's plan with the statistics that each operator had in one execution.
func profileText(stmt *prepare.Statement, run exec.Stats) string {
	b, err := protojson.Marshal(stmt.Plan.Proto(exec.NodeStatsProto(run), stmt.Literals()))
	if err != nil {
		return "" // cannot happen: this package built the message
	}
	return string(b)
}

// appendMessage appends m as a field with this tag. It panics if m cannot be encoded, which cannot happen, because
// callers pass only messages that this package builds.
func appendMessage(dst []byte, tag byte, m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("marshal %T: %v", m, err))
	}
	return protowire.AppendBytes(append(dst, tag), b)
}
