package stats

import (
	"time"

	"github.com/crowfoot-db/crowfoot/value"
)

// SplitPoint is one that a user asked for with AddSplitPoints.
type SplitPoint struct {
	Table     string
	Index     string // "" for the table itself
	Initiator string
	Key       string // see KeyText
	Expires   time.Time
}

// DeletionPolicy is how far the row deletion policy of a table has come.
type DeletionPolicy struct {
	Table     string
	Processed time.Time // zero if it never ran
	// Undeletable rows could not be deleted; MinUndeletable is the oldest timestamp of them, zero if there are none.
	Undeletable    int64
	MinUndeletable time.Time
}

// Task is a background task.
type Task struct {
	Name        string
	Processed   time.Time // zero if it never ran
	Status      string    // of its last run
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

var taskColumns = []plainColumn{
	{"TASK_NAME", value.StringType}, {"PROCESSED_WATERMARK", value.TimestampType},
	{"LAST_RUN_STATUS", value.StringType}, {"UNDELETABLE_ROWS", value.Int64Type},
}

func (c *Collector) taskRows() [][]value.Value {
	return rowsOf(c.cfg.Tasks, func(t Task) []value.Value {
		return []value.Value{value.OfString(t.Name), timeOrNull(t.Processed), stringOrNull(t.Status), value.OfInt64(t.Undeletable)}
	})
}

// rowsOf makes a row of everything that a source gives, in its order.
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
