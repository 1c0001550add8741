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

// Env is what one run of a plan is given: the data, the parameters and the limits.
type Env struct {
	View   table.View   // what queries read
	Writer table.Writer // what DML reads and writes; View may then be nil
	// Params are the values of Plan.Params, in that order.
	Params []value.Value
	// Columns, if set, opens a source that gives the rows of a scan column by column. If it returns nil for a scan, the rows come from View.
	Columns func(ColumnRead) (ColumnSource, error)
	// Functions holds the time, the time zone and the source of randomness for functions.
	Functions *fn.Context
	// Restrict, if set, restricts the driving scan (Plan.Driving) to the keys of one span. The run then computes one partition of a query.
	Restrict *table.Span
	// Spill creates the temporary files of operators whose rows do not fit into memory. If it is nil, a run that needs more memory fails. Operators
	// spill when the run keeps more than SpillAbove bytes of rows. If SpillAbove is 0, that is three quarters of MaxMemory.
	Spill      *spill.Dir
	SpillAbove int64
	// Profile makes the run collect statistics of each operator (Stats.Nodes). Clock tells the time for them.
	Profile bool
	Clock   func() time.Time
	// Memory is the account that is charged for the rows that the run keeps. If it is nil, nothing is charged.
	Memory *memory.Account
}

// Rows is the result of a run. Next moves to the next row. Values, AppendWire and Size are about that row.
type Rows interface {
	Next() (bool, error)
	// AppendWire appends the row as elements of google.spanner.v1.PartialResultSet.values.
	AppendWire(dst []byte) []byte
	// AppendColumn is AppendWire for one column.
	AppendColumn(dst []byte, i int) []byte
	// Size estimates how many bytes AppendWire will append, and ColumnSize how many AppendColumn will append.
	Size() int
	ColumnSize(i int) int
	// Fill moves over the next rows, of about size bytes together, and appends their values to columns. It returns the number of these rows, 0 at
	// the end.
	Fill(columns []value.Column, size int) (rows int, err error)
	// DataSize returns the size in bytes of all values that have been appended so far, without their wire encoding.
	DataSize() int64
	// Values appends the row's values.
	Values(dst []value.Value) []value.Value
	// Columns are the columns of the result; none for DML without THEN RETURN.
	Columns() []plan.Column
	// RowCount returns how many rows a DML statement changed.
	RowCount() int64
	// Stats returns what the run has cost so far.
	Stats() Stats
	Close() error
}

// Stats is what a run has cost.
type Stats struct {
	RowsScanned  int64 // read from tables and indexes
	RowsReturned int64
	Mutations    int64         // mutations of a DML statement, which count towards the limit of a commit
	MemoryPeak   int64         // the most bytes of rows that were kept at once; see MaxMemory
	Spilled      spill.Written // rows and bytes written to temporary files
	BytesWritten int64         // bytes that DML wrote, index entries included
	Written      []table.Written
	// Nodes, with Env.Profile, are the statistics of each operator.
	Nodes  map[plan.Node]*NodeStats
	Chunks int64 // chunks of columnar copies that were read
}

// NodeStats is what one operator of a plan has cost, its inputs included.
type NodeStats struct {
	Scan       bool  // the operator is a Scan
	Rows       int64 // rows that the operator returned
	Scanned    int64 // rows that a Scan read
	Chunks     int64 // chunks of a columnar copy that a Scan read
	Executions int64
	Latency    time.Duration
	CPU        time.Duration // CPU time of the thread, without waits
	SelfCPU    time.Duration // CPU without the time of the inputs
	Spilled    spill.Written // rows and bytes that the operator itself spilled, without its inputs
}
