package stats

import (
	"cmp"
	"time"
)

// A family is one kind of statistics. It says what the tallies count, how heavy each is, and how many are kept.
type family struct {
	name string // part of stored keys, so it never changes
	sums int    // number of a tally's sums that it uses; a later release may use more
	keep int    // number of tallies kept per interval
	// single says that each tally is one event. Such tallies also differ by name, are never added up, and are never cut.
	single bool
	weight func(*tally) int64
	// peaks says that a longer interval shows the highest minute instead of the sum, and only if that is at least longerFrom.
	peaks      bool
	longerFrom int64
	// minutes is the retention of one-minute intervals; 0 means that of the resolution.
	minutes time.Duration
}

// The families; the numbers index the boards of a set.
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

// heavierFirst compares tallies: the heaviest first, equally heavy ones in a fixed order.
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

// key returns a subject's key among closed tallies.
func (f *family) key(s *subject) uint64 {
	if f.single {
		return subjectKey(s.fingerprint^fingerprint(s.name), s.kind)
	}
	return subjectKey(s.fingerprint, s.kind)
}
