package stats

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// schemaName is the name of the schema that contains the tables of statistics.
const schemaName = "SPANNER_SYS"

// plainColumn is a column of a table whose rows belong to no interval.
type plainColumn struct {
	name string
	typ  *value.Type
}

// plainTable is a table of current state, without intervals.
type plainTable struct {
	name    string
	columns []plainColumn
	notNull []string
	rows    func(*Collector) [][]value.Value
}

var plainTables = []plainTable{
	{"OLDEST_ACTIVE_QUERIES", oldestColumns, nil, (*Collector).oldestRows},
	{"ACTIVE_QUERIES_SUMMARY", summaryColumns, nil, (*Collector).summaryRows},
	{"ACTIVE_PARTITIONED_DMLS", partitionedColumns, nil, (*Collector).partitionedRows},
	{"USER_SPLIT_POINTS", splitPointColumns, nil, (*Collector).splitPointRows},
	{"ROW_DELETION_POLICIES", deletionPolicyColumns, []string{"TABLE_NAME", "UNDELETABLE_ROWS"}, (*Collector).deletionPolicyRows},
	{"COLUMNAR_POLICIES", columnarPolicyColumns, []string{"TABLE_NAME", "CHUNKS", "MISSING_CHUNKS", "COPIED_ROWS", "USED_BYTES", "CHANGED_ROWS"}, (*Collector).columnarPolicyRows},
	{"TASKS", taskColumns, []string{"TASK_NAME", "UNDELETABLE_ROWS"}, (*Collector).taskRows},
}

// intervalTable describes a group of tables with rows for each interval. The tables have the same columns, and each has
// another resolution, such as QUERY_STATS_TOP_MINUTE and QUERY_STATS_TOP_HOUR.
type intervalTable struct {
	name        string // name without the suffix of the resolution
	resolutions []int
	family      int
	columns     []column
	total       bool // each table has one row per interval, with the sum of all tallies
}

var (
	allResolutions = []int{byMinute, byTenMinutes, byHour}
	hourly         = []int{byHour}
)

var intervalTables = []intervalTable{
	{"QUERY_STATS_TOP", allResolutions, queries, queryColumns, false},
	{"QUERY_STATS_TOTAL", allResolutions, queries, totals(queryColumns), true},
	{"READ_STATS_TOP", allResolutions, reads, readStatsColumns, false},
	{"READ_STATS_TOTAL", allResolutions, reads, totals(readStatsColumns), true},
	{"TXN_STATS_TOP", allResolutions, transactions, txnColumns, false},
	{"TXN_STATS_TOTAL", allResolutions, transactions, totals(txnColumns), true},
	{"LOCK_STATS_TOP", allResolutions, locks, lockColumns, false},
	{"LOCK_STATS_TOTAL", allResolutions, locks, lockTotalColumns, true},
	{"QUERY_PROFILES_TOP", allResolutions, profiles, profileColumns, false},
	{"TABLE_OPERATIONS_STATS", allResolutions, tableOperations, tableOperationColumns, false},
	{"COLUMN_OPERATIONS_STATS", allResolutions, columnOperations, columnOperationColumns, false},
	{"SPLIT_STATS_TOP", allResolutions, splitLoads, splitStatsColumns("CPU_USAGE_SCORE"), false},
	{"SPLIT_HOTNESS_STATS_TOP", []int{byMinute}, splitLoads, splitStatsColumns("HOTNESS"), false},
	{"TABLE_SIZES_STATS", hourly, tableSizes, sizeColumns, false},
	{"TABLE_SIZES_STATS_PER_LOCALITY_GROUP", hourly, tableSizes, localitySizeColumns, false},
}

// suffixOf returns the end of the table's name for a resolution. The tables of sizes have intervals of an hour only,
// and their names end with _1HOUR; the names of other tables with such intervals end with _HOUR.
func (t *intervalTable) suffixOf(resolution int) string {
	if t.family == tableSizes {
		return "_1HOUR"
	}
	return resolutions[resolution].suffix
}

// totals returns the columns of a TOTAL table. The parameter columns holds the columns of the TOP table. totals leaves
// out those that only TOP tables have.
func totals(columns []column) []column {
	return slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.top })
}

// Tables returns the tables of SPANNER_SYS that show the collector's statistics. Their rows are computed when they are
// read. All collectors use the same columns in memory, because a process may have thousands of collectors.
func (c *Collector) Tables() []*schema.Table {
	columns := allColumns()
	list := make([]*schema.Table, 0, len(columns))
	add := func(name string, rows func() ([][]value.Value, error)) {
		list = append(list, &schema.Table{Schema: schemaName, Name: name, Columns: columns[len(list)], Rows: func(context.Context, map[string]map[string]bool) ([][]value.Value, error) {
			return rows()
		}})
	}
	for _, t := range intervalTables {
		for _, r := range t.resolutions {
			add(t.name+t.suffixOf(r), func() ([][]value.Value, error) { return c.intervalRows(&t, r) })
		}
	}
	for _, t := range plainTables {
		add(t.name, func() ([][]value.Value, error) { return t.rows(c), nil })
	}
	return list
}

// allColumns returns the columns of each table, in the order of the tables in Tables.
var allColumns = sync.OnceValue(func() (list [][]*schema.Column) {
	for _, t := range intervalTables {
		columns := newColumns(len(t.columns), func(i int) plainColumn { return plainColumn{t.columns[i].name, t.columns[i].typ} })
		for range t.resolutions {
			list = append(list, columns)
		}
	}
	for _, t := range plainTables {
		columns := newColumns(len(t.columns), func(i int) plainColumn { return t.columns[i] })
		for _, column := range columns {
			column.NotNull = slices.Contains(t.notNull, column.Name)
		}
		list = append(list, columns)
	}
	return list
})

func newColumns(n int, column func(int) plainColumn) (list []*schema.Column) {
	for i := range n {
		d := column(i)
		c := &schema.Column{ID: schema.ColumnID(i + 1), Ordinal: i, Name: d.name, Type: d.typ, KeyOrdinal: -1}
		scalar := d.typ
		if scalar.Kind == value.Array {
			scalar = scalar.Elem
		}
		switch scalar.Kind {
		case value.String:
			c.MaxLength, c.LengthIsMax = schema.MaxStringLength, true
		case value.Bytes:
			c.MaxLength, c.LengthIsMax = schema.MaxBytesLength, true
		}
		list = append(list, c)
	}
	return list
}

// intervalRows returns the rows of the intervals that have ended: the newest interval first, and within it the heaviest
// row first.
func (c *Collector) intervalRows(t *intervalTable, resolution int) ([][]value.Value, error) {
	if err := c.Advance(); err != nil {
		return nil, err
	}
	now, res := c.cfg.Clock(), &resolutions[resolution]
	var intervals [][][]value.Value
	err := c.each(resolution, t.family, now.Add(-families[t.family].retention(res)), now, func(end time.Time, r record) error {
		intervals = append(intervals, t.rows(end, res.length, r))
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(intervals)
	return slices.Concat(intervals...), nil
}

// rows returns the table's rows for one interval.
func (t *intervalTable) rows(end time.Time, length time.Duration, r record) [][]value.Value {
	if t.total {
		for _, one := range r.tallies {
			r.rest.absorb(one)
		}
		return [][]value.Value{t.row(row{end, length, r.rest})}
	}
	rows := make([][]value.Value, len(r.tallies))
	for i, one := range r.tallies {
		rows[i] = t.row(row{end, length, one})
	}
	return rows
}

func (t *intervalTable) row(r row) []value.Value {
	cells := make([]value.Value, len(t.columns))
	for i := range t.columns {
		cells[i] = t.columns[i].of(r)
	}
	return cells
}
