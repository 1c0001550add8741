package stats

import (
	"cmp"
	"time"
)

// A family is one kind of statistics: what its tallies count, which of them are heavy, and how many are kept.
type family struct {
	name string // in keys of the store: never changed
	sums int    // how many of a tally's sums it uses; a later release may use more
	keep int    // how many tallies of an interval are kept
	// single tallies are single events: they are told apart by name too, never added up, and never cut.
	single bool
	weight func(*tally) int64
	// peaks says that minutes do not add up: a longer interval shows the highest of them, if that is at least longerFrom.
	peaks      bool
	longerFrom int64
	// minutes is how long intervals of a minute are kept; 0: as long as those of other families.
	minutes time.Duration
}

// The families; their numbers are places in a set.
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

// retention is how long an interval of the family is kept after its end.
func (f *family) retention(r *resolution) time.Duration {
	if r.length == time.Minute && f.minutes != 0 {
		return f.minutes
	}
	return r.retention
}

func firstSum(t *tally) int64 { return t.sums[0] }

// heavierFirst orders tallies: the heaviest first, equal ones in an order that never changes.
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

// key is a subject's key among closed tallies.
func (f *family) key(s *subject) uint64 {
	if f.single {
		return subjectKey(s.fingerprint^fingerprint(s.name), s.kind)
	}
	return subjectKey(s.fingerprint, s.kind)
}
