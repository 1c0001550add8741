package stats

import (
	"time"

	"github.com/crowfoot-db/crowfoot/value"
)

// SplitPoint is a split point that a user added with AddSplitPoints.
type SplitPoint struct {
	Table     string
	Index     string // "" if the point splits the table itself
	Initiator string
	Key       string // the key of the point, formatted by KeyText
	Expires   time.Time
}

// DeletionPolicy is the progress of a table's row deletion policy.
type DeletionPolicy struct {
	Table     string
	Processed time.Time // when the last pass of the policy began; zero if there was none
	// Undeletable is the number of rows that could not be deleted. MinUndeletable is the oldest timestamp of these
	// rows, zero if there are none.
	Undeletable    int64
	MinUndeletable time.Time
}

// ColumnarPolicy is the progress of the columnar copy of a table or an index whose columnar_policy is 'enabled'.
type ColumnarPolicy struct {
	Table   string
	Index   string // "" if the copy is of the table itself
	Chunks  int64  // key ranges that have been copied
	Missing int64  // key ranges without a copy, or whose copy must be made again; reads take their rows from the row store
	Rows    int64  // rows in the chunks
	Bytes   int64  // bytes of the chunks, compressed
	// Changed is the approximate number of rows that have changed since they were copied to the columnar copy. Reads
	// take these rows from the row store.
	Changed int64
	// Oldest is the oldest of the timestamps of the copy's chunks; zero if there are no chunks. Reads find a row in
	// the copy if the row has not changed since Oldest.
	Oldest time.Time
}

// Task is a background task.
type Task struct {
	Name        string
	Processed   time.Time // time of its last successful run; zero if there was none
	Status      string    // status of its last run
	Undeletable int64
}

var splitPointColumns = []plainColumn{
	{"TABLE_NAME", value.StringType}, {"INDEX_NAME", value.StringType}, {"INITIATOR", value.StringType},
	{"SPLIT_KEY", value.StringType}, {"EXPIRE_TIME", value.TimestampType},
}

func (c *Collector) splitPointRows() [][]value.Value {
	return rowsOf(c.cfg.SplitPoints, func(p SplitPoint) []value.Value {
		return []value.Value{value.OfString(p.Table), stringOrNull(p.Index), value.OfString(p.Initiator), value.OfString(p.Key), timeOrNull(p.Expires)}
	})
}

var deletionPolicyColumns = []plainColumn{
	{"TABLE_NAME", value.StringType}, {"PROCESSED_WATERMARK", value.TimestampType},
	{"UNDELETABLE_ROWS", value.Int64Type}, {"MIN_UNDELETABLE_TIMESTAMP", value.TimestampType},
}

func (c *Collector) deletionPolicyRows() [][]value.Value {
	return rowsOf(c.cfg.DeletionPolicies, func(p DeletionPolicy) []value.Value {
		return []value.Value{value.OfString(p.Table), timeOrNull(p.Processed), value.OfInt64(p.Undeletable), timeOrNull(p.MinUndeletable)}
	})
}

var columnarPolicyColumns = []plainColumn{
	{"TABLE_NAME", value.StringType}, {"INDEX_NAME", value.StringType}, {"CHUNKS", value.Int64Type}, {"MISSING_CHUNKS", value.Int64Type},
	{"COPIED_ROWS", value.Int64Type}, {"USED_BYTES", value.Int64Type}, {"CHANGED_ROWS", value.Int64Type}, {"OLDEST_CHUNK_TIMESTAMP", value.TimestampType},
}

func (c *Collector) columnarPolicyRows() [][]value.Value {
	return rowsOf(c.cfg.ColumnarPolicies, func(p ColumnarPolicy) []value.Value {
		return []value.Value{
			value.OfString(p.Table), stringOrNull(p.Index), value.OfInt64(p.Chunks), value.OfInt64(p.Missing),
			value.OfInt64(p.Rows), value.OfInt64(p.Bytes), value.OfInt64(p.Changed), timeOrNull(p.Oldest),
		}
	})
}

var taskColumns = []plainColumn{
	{"TASK_NAME", value.StringType}, {"PROCESSED_WATERMARK", value.TimestampType},
	{"LAST_RUN_STATUS", value.StringType}, {"UNDELETABLE_ROWS", value.Int64Type},
}

func (c *Collector) taskRows() [][]value.Value {
	return rowsOf(c.cfg.Tasks, func(t Task) []value.Value {
		return []value.Value{value.OfString(t.Name), timeOrNull(t.Processed), stringOrNull(t.Status), value.OfInt64(t.Undeletable)}
	})
}

// rowsOf returns a row for each element that source returns, in the same order. It returns no rows if source is nil.
func rowsOf[T any](source func() []T, row func(T) []value.Value) [][]value.Value {
	if source == nil {
		return nil
	}
	var rows [][]value.Value
	for _, e := range source() {
		rows = append(rows, row(e))
	}
	return rows
}

func timeOrNull(t time.Time) value.Value {
	if t.IsZero() {
		return value.Null(value.Timestamp)
	}
	return value.OfTime(t)
}
