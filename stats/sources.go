package stats

import (
	"fmt"
	"time"

	"github.com/crowfoot-db/crowfoot/value"
)

// Sources are functions that return data of other packages. Such data is computed when it is needed, not recorded. If a
// function is nil, its tables are empty.
type Sources struct {
	// Sizes returns the sizes of tables and indexes. It is called once an hour.
	Sizes func() ([]TableSize, error)
	// Splits returns the load of splits in the minute that has just ended. It is called once a minute.
	Splits func(end time.Time) []SplitLoad
	// The functions that follow are called when their tables are read.
	SplitPoints      func() []SplitPoint
	DeletionPolicies func() []DeletionPolicy
	ColumnarPolicies func() []ColumnarPolicy
	Tasks            func() []Task
}

// TableSize is the size in bytes of a table or an index, including old versions.
type TableSize struct {
	Table string
	Bytes uint64
}

// SplitLoad is the load of a split in one minute.
type SplitLoad struct {
	Start, Limit string   // bounds of the split's range of keys: formatted by KeyText, or SplitBegin and SplitEnd
	Tables       []string // the tables with rows in the split
	Score        int64    // CPU use of the split, 0 to 100
	Unsplittable []string // reasons why the split cannot be divided further, such as HOT_ROW
}

// How tables show the beginning and the end of a database's key range.
const (
	SplitBegin = "<begin>"
	SplitEnd   = "<end>"
)

// These constants say what each element of tally.sums means in the statistics of splits and of table sizes.
const (
	splitScore = iota
	splitSums
)

const (
	sizeBytes = iota
	sizeSums
)

// Indexes of subject.lists for a split.
const (
	splitTables = iota
	splitReasons
)

// sampleSplits adds a set with the load of the splits in the given minute, which has just ended, to the list in the
// parameter sets, and returns the list.
func (c *Collector) sampleSplits(sets []*set, minute int64) []*set {
	if c.cfg.Splits == nil {
		return sets
	}
	loads := c.cfg.Splits(endOf(minute))
	if len(loads) == 0 {
		return sets
	}
	s := &set{minute: minute}
	b := s.board(splitLoads)
	for _, l := range loads {
		one := tally{subject: subject{
			fingerprint: fingerprint(l.Start + "\x00" + l.Limit),
			name:        l.Start, tag: l.Limit, lists: [3][]string{l.Tables, l.Unsplittable},
		}}
		one.sums[splitScore] = l.Score
		b.mergeTally(&one)
	}
	return append(sets, s)
}

// sampleSizes stores the sizes of tables for the last full hour, unless they are stored already. For a new database,
// the first full hour is the first that ends after the collector was made.
func (c *Collector) sampleSizes(now time.Time) error {
	end := resolutions[byHour].ends(now)
	if c.cfg.Sizes == nil || !end.After(c.sized) {
		return nil
	}
	stored, err := c.newest(byHour, tableSizes)
	if err != nil {
		return err
	}
	fresh := stored.Unix() == 0 && !end.After(c.opened) // the database did not exist when that hour ended
	if fresh || !end.After(stored) {
		c.sized = end
		return nil
	}
	sizes, err := c.cfg.Sizes()
	if err != nil {
		return fmt.Errorf("measure tables: %w", err)
	}
	b := newBoard(families[tableSizes])
	for _, s := range sizes {
		one := tally{subject: subject{fingerprint: fingerprint(s.Table), name: s.Table}}
		one.sums[sizeBytes] = int64(s.Bytes)
		b.mergeTally(&one)
	}
	batch := c.cfg.Store.NewBatch()
	defer batch.Close()
	if err := batch.Put(c.key(byHour, tableSizes, end), b.closed().encode(families[tableSizes])); err != nil {
		return err
	}
	c.sized = end
	return batch.Commit()
}

// A split with a score of at least warmSplit counts as warm. The SPLIT_STATS tables for intervals of ten minutes and of
// an hour show only the splits that were warm in at least one minute of the interval. splitMinutes is how long
// SPLIT_STATS keeps intervals of one minute, which is longer than other statistics tables keep theirs:
// https://cloud.google.com/spanner/docs/introspection/hot-split-statistics#view-event-aggregation.
const (
	warmSplit    = 50
	splitMinutes = 24 * time.Hour
)

// splitStatsColumns returns the columns of SPLIT_STATS. The older table SPLIT_HOTNESS_STATS has the score under the
// name HOTNESS.
func splitStatsColumns(scoreName string) []column {
	return []column{
		intervalEnd,
		nameColumn("SPLIT_START"),
		tagColumn("SPLIT_LIMIT"),
		list("AFFECTED_TABLES", splitTables),
		sum(scoreName, splitScore),
		list("UNSPLITTABLE_REASONS", splitReasons),
	}
}

func bytesColumn(name string, share float64) column {
	return column{name: name, typ: value.Float64Type, of: func(r row) value.Value {
		return value.OfFloat64(float64(r.sums[sizeBytes]) * share)
	}}
}

// sizeColumns are the columns of the table of sizes. All data counts as SSD, in the only locality group, default.
var sizeColumns = []column{
	intervalEnd,
	nameColumn("TABLE_NAME"),
	bytesColumn("USED_BYTES", 1),
	bytesColumn("USED_SSD_BYTES", 1),
	bytesColumn("USED_HDD_BYTES", 0),
}

var localitySizeColumns = []column{
	intervalEnd,
	nameColumn("TABLE_NAME"),
	text("LOCALITY_GROUP", func(*subject) string { return "default" }),
	bytesColumn("USED_SSD_BYTES", 1),
	bytesColumn("USED_HDD_BYTES", 0),
}
