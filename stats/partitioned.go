package stats

import (
	"slices"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/value"
)

// ActiveDML is a partitioned DML that runs now.
type ActiveDML struct {
	text    Text
	session string
	start   time.Time
	all     *partitionedDMLs

	mu       sync.Mutex
	total    int64
	complete int64
	trivial  int64
	rows     int64
	updated  time.Time
}

// partitionedDMLs are those that run now, oldest first.
type partitionedDMLs struct {
	mu   sync.Mutex
	list []*ActiveDML
}

// StartPartitioned registers a partitioned DML over a number of partitions. It must be finished.
func (c *Collector) StartPartitioned(text Text, session string, partitions int64) *ActiveDML {
	now := c.cfg.Clock()
	d := &ActiveDML{text: text, session: session, start: now, updated: now, total: partitions, all: &c.partitioned}
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	d.all.list = append(d.all.list, d)
	return d
}

// Split notes that there are more partitions than it began with.
func (d *ActiveDML) Split(more int64, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.total += more
	d.updated = now
}

// Advance notes that a partition is complete, with the rows it changed.
func (d *ActiveDML) Advance(rows int64, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.complete++
	if rows == 0 {
		d.trivial++
	}
	d.rows += rows
	d.updated = now
}

// Finish takes it out.
func (d *ActiveDML) Finish() {
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	d.all.list = slices.DeleteFunc(d.all.list, func(o *ActiveDML) bool { return o == d })
}

var partitionedColumns = []plainColumn{
	{"TEXT", value.StringType}, {"TEXT_FINGERPRINT", value.Int64Type}, {"SESSION_ID", value.StringType},
	{"NUM_PARTITIONS_TOTAL", value.Int64Type}, {"NUM_PARTITIONS_COMPLETE", value.Int64Type},
	{"NUM_TRIVIAL_PARTITIONS_COMPLETE", value.Int64Type}, {"PROGRESS", value.Float64Type}, {"ROWS_PROCESSED", value.Int64Type},
	{"START_TIMESTAMP", value.TimestampType}, {"LAST_UPDATE_TIMESTAMP", value.TimestampType},
}

func (c *Collector) partitionedRows() [][]value.Value {
	c.partitioned.mu.Lock()
	defer c.partitioned.mu.Unlock()
	var rows [][]value.Value
	for _, d := range c.partitioned.list {
		rows = append(rows, d.row())
	}
	return rows
}

func (d *ActiveDML) row() []value.Value {
	d.mu.Lock()
	defer d.mu.Unlock()
	return []value.Value{
		value.OfString(cut(d.text.SQL, maxText)),
		value.OfInt64(d.text.Fingerprint),
		value.OfString(d.session),
		value.OfInt64(d.total),
		value.OfInt64(d.complete),
		value.OfInt64(d.trivial),
		value.OfFloat64(d.progress()),
		value.OfInt64(d.rows),
		value.OfTime(d.start),
		value.OfTime(d.updated),
	}
}

// progress is the share, in percent, of complete partitions among those that are not trivial, as far as that is known:
// https://cloud.google.com/spanner/docs/introspection/active-partitioned-dmls#table_schema.
func (d *ActiveDML) progress() float64 {
	if d.total == d.trivial {
		return 0
	}
	return 100 * float64(d.complete-d.trivial) / float64(d.total-d.trivial)
}
