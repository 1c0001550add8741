package exec

import (
	"time"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// Env is what one run of a plan works on.
type Env struct {
	View   table.View   // what queries read
	Writer table.Writer // what DML reads and writes; View may then be nil
	// Params are the values of Plan.Params, in that order.
	Params []value.Value
	// Columns, if set, gives the rows of scans column by column. For a scan of which it returns nil, View gives them.
	Columns func(ColumnRead) (ColumnSource, error)
	// Functions is the time, zone and randomness that functions see.
	Functions *fn.Context
	// Restrict, if set, restricts the driving scan (Plan.Driving) to the keys of a span: one partition of a query.
	Restrict *table.Span
	// Spill is where operators keep rows that are too many for memory; nil: a run that needs more memory fails. They spill when they have more
	// than SpillAbove bytes of rows; 0 is most of MaxMemory.
	Spill      *spill.Dir
	SpillAbove int64
	// Profile asks for statistics of each operator (Stats.Nodes), with times by Clock.
	Profile bool
	Clock   func() time.Time
	// Memory is charged the rows that the run keeps; nil counts nothing.
	Memory *memory.Account
}

// Rows is the result of a run. Next moves to the next row; Values and AppendWire
// are about the row that Next moved to.
type Rows interface {
	Next() (bool, error)
	// AppendWire appends the row as elements of google.spanner.v1.PartialResultSet.values.
	AppendWire(dst []byte) []byte
	// AppendColumn is AppendWire for one column.
	AppendColumn(dst []byte, i int) []byte
	// Size is about how many bytes AppendWire will append, ColumnSize AppendColumn.
	Size() int
	ColumnSize(i int) int
	// Fill moves to the rows that follow, of about size bytes, and appends their values to columns. It returns how many rows; 0 at the end.
	Fill(columns []value.Column, size int) (rows int, err error)
	// DataSize is the size in bytes of the values that have been appended so far, without their wire coding.
	DataSize() int64
	// Values appends the row's values.
	Values(dst []value.Value) []value.Value
	// Columns are the columns of the result; none for DML without THEN RETURN.
	Columns() []plan.Column
	// RowCount is how many rows a DML statement changed.
	RowCount() int64
	// Stats is what the run has cost so far.
	Stats() Stats
	Close() error
}

// Stats is what a run has cost.
type Stats struct {
	RowsScanned  int64 // read from tables and indexes
	RowsReturned int64
	Mutations    int64         // that DML adds to those that a commit limits
	MemoryPeak   int64         // bytes of the rows that were kept at once; see MaxMemory
	Spilled      spill.Written // to temporary files
	BytesWritten int64         // by DML, index entries included
	Written      []table.Written
	// Nodes, with Env.Profile, are the statistics of each operator.
	Nodes  map[plan.Node]*NodeStats
	Chunks int64 // of columnar copies that were read
}

// NodeStats is what one operator of a plan has cost, its inputs included.
type NodeStats struct {
	Scan       bool  // the operator is a Scan
	Rows       int64 // that the operator produced
	Scanned    int64 // rows that a Scan read
	Chunks     int64 // of a columnar copy that a Scan read
	Executions int64
	Latency    time.Duration
	CPU        time.Duration // of the thread's clock, without waits
	SelfCPU    time.Duration // the part of CPU that is not its inputs'
	Spilled    spill.Written // by the operator itself
}
