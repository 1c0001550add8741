package stats

import (
	"cmp"
	"time"
)

// A family is one kind of statistics, such as those of queries. Each of its tallies counts the events of one subject,
// such as one SQL text. The family says how heavy each tally is, and how many tallies are kept per interval.
type family struct {
	name string // part of stored keys, so it never changes
	sums int    // number of sums that its tallies use; a later release may use more
	keep int    // number of tallies that are kept per interval
	// single says that each tally stands for one event, such as one profiled execution. Such tallies are never added up
	// to make a row, and their names are never cut. If their names differ, they are different subjects even if their
	// fingerprints are equal.
	single bool
	weight func(*tally) int64
	// peaks says that an interval longer than a minute shows, for each sum, the highest value that the sum has in any
	// minute of the interval, and not the total of these minutes. Such an interval leaves out tallies whose weight is
	// below longerFrom.
	peaks      bool
	longerFrom int64
	// minutes is how long one-minute intervals are kept. If it is 0, they are kept for resolution.retention.
	minutes time.Duration
}

// The families. Their numbers are indexes in set.boards.
const (
	queries = iota
	reads
	transactions
	locks
	profiles
	tableOperations
	columnOperations
	splitLoads
	tableSizes
	familyCount
)

var families = [familyCount]*family{
	queries:          {name: "query", sums: querySums, keep: keepTop, weight: queryWeight},
	reads:            {name: "read", sums: readSums, keep: keepTop, weight: readWeight},
	transactions:     {name: "txn", sums: txnSums, keep: keepTop, weight: txnWeight},
	locks:            {name: "lock", sums: lockSums, keep: keepTop, weight: firstSum},
	profiles:         {name: "profile", sums: profileSums, keep: keepProfiles, single: true, weight: firstSum},
	tableOperations:  {name: "table", sums: operationSums, keep: keepTables, weight: operationWeight},
	columnOperations: {name: "column", sums: operationSums, keep: keepColumns, weight: operationWeight},
	splitLoads:       {name: "split", sums: splitSums, keep: keepTop, weight: firstSum, peaks: true, longerFrom: warmSplit, minutes: splitMinutes},
	tableSizes:       {name: "size", sums: sizeSums, keep: keepTables, weight: firstSum},
}

// retention returns how long an interval of the family is kept after its end.
func (f *family) retention(r *resolution) time.Duration {
	if r.length == time.Minute && f.minutes != 0 {
		return f.minutes
	}
	return r.retention
}

func firstSum(t *tally) int64 { return t.sums[0] }

// heavierFirst compares tallies for sorting: heavier ones come first, and equally heavy ones are in a fixed order.
func (f *family) heavierFirst(a, b *tally) int {
	return cmp.Or(
		cmp.Compare(f.weight(b), f.weight(a)),
		cmp.Compare(b.sums[0], a.sums[0]),
		cmp.Compare(a.subject.name, b.subject.name),
		cmp.Compare(a.subject.tag, b.subject.tag),
		cmp.Compare(a.subject.fingerprint, b.subject.fingerprint),
		cmp.Compare(a.subject.kind, b.subject.kind),
	)
}

// key returns the key of the subject's tally in a board that is merged from others. (In a shard's board, a transaction
// without a tag has another key: the hash of its Footprint.)
func (f *family) key(s *subject) uint64 {
	if f.single {
		return subjectKey(s.fingerprint^fingerprint(s.name), s.kind)
	}
	return subjectKey(s.fingerprint, s.kind)
}
