package exec

import (
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/sql/plan"
)

// NodeStatsProto returns the function that gives plan.Plan's Proto the execution_stats of each operator. As in Spanner, every number is a string.
func NodeStatsProto(s Stats) func(plan.Node) *structpb.Struct {
	return func(n plan.Node) *structpb.Struct {
		stats := s.Nodes[n]
		if stats == nil {
			return nil
		}
		return stats.proto()
	}
}

func (s *NodeStats) proto() *structpb.Struct {
	total := func(n, unit string) *structpb.Value {
		return object(map[string]*structpb.Value{"total": structpb.NewStringValue(n), "unit": structpb.NewStringValue(unit)})
	}
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	fields := map[string]*structpb.Value{
		"rows":     total(count(s.Rows), "rows"),
		"latency":  total(Msecs(s.Latency), "msecs"),
		"cpu_time": total(Msecs(s.CPU), "msecs"),
		// Spanner does not have self_cpu_time. It is cpu_time without the time of the operator's inputs.
		"self_cpu_time":     total(Msecs(s.SelfCPU), "msecs"),
		"execution_summary": object(map[string]*structpb.Value{"num_executions": structpb.NewStringValue(count(s.Executions))}),
	}
	if s.Scan {
		fields["scanned_rows"] = total(count(s.Scanned), "rows")
		fields["filtered_rows"] = total(count(s.Scanned-s.Rows), "rows")
	}
	if s.Chunks > 0 {
		fields["columnar_chunks"] = total(count(s.Chunks), "chunks")
	}
	if s.Spilled.Rows > 0 {
		fields["Rows Spooled"] = total(count(s.Spilled.Rows), "rows")
		fields["Disk Usage (KBytes)"] = total(count((s.Spilled.Bytes+1023)/1024), "KBytes")
	}
	return &structpb.Struct{Fields: fields}
}

func object(fields map[string]*structpb.Value) *structpb.Value {
	return structpb.NewStructValue(&structpb.Struct{Fields: fields})
}

// Msecs formats a duration as plans do: milliseconds with two digits after the point.
func Msecs(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 2, 64)
}
