package stats

import (
	"cmp"
	"slices"

	"github.com/crowfoot-db/crowfoot/stats/distribution"
)

// A subject is the SQL text, read, transaction, lock, profile, table, column or split whose events a tally counts.
type subject struct {
	// fingerprint and kind together identify the subject.
	fingerprint int64
	kind        uint8
	truncated   bool   // name is only the beginning of the SQL text
	name        string // the SQL text, the key of a lock, the profile, the table, or the start of a split
	tag         string // tag of the request or transaction; of a column, its name; of a split, its limit
	// lists holds the columns and tables of a read or a transaction (see readColumns), or the tables of a split and the
	// reasons why it cannot be split (see splitTables).
	lists [3][]string
}

// subjectKey returns the key under which a board has the tally of a subject.
func subjectKey(fingerprint int64, kind uint8) uint64 { return mix(uint64(fingerprint) + uint64(kind)) }

// size returns how many bytes of text the subject has.
func (s *subject) size() int {
	n := len(s.name) + len(s.tag)
	for _, l := range s.lists {
		for _, e := range l {
			n += len(e)
		}
	}
	return n
}

// better reports whether a row shows s rather than o. Both share the row because they have the same tag. The subject
// with more columns is better. If they have equally many, the one whose name sorts first is better, so that the choice
// does not depend on the order of events.
func (s *subject) better(o *subject) bool {
	columns, others := 0, 0
	for i := range s.lists {
		columns += len(s.lists[i])
		others += len(o.lists[i])
	}
	return columns > others || columns == others && s.name < o.name
}

// maxSums is the largest number of sums of any family.
const maxSums = querySums

// A tally counts the events of one subject in one interval, or of all subjects that have no tally of their own. All its
// counts can be added to those of another tally. Sums of durations are in nanoseconds; sums of percentages and of costs
// are in millionths.
type tally struct {
	subject subject
	sums    [maxSums]int64             // the family defines what each sum means
	dist    *distribution.Distribution // distribution of latencies; nil until a latency was observed
	written []written                  // sorted by table
	samples []LockRequest              // examples of lock requests, sorted; at most lockSamples
	shown   int                        // of a transaction: the number of accesses whose columns are in subject.lists
}

// written counts the rows that were inserted or updated in one table, and their bytes.
type written struct {
	table       string
	rows, bytes int64
}

// LockRequest says how one transaction took part in a lock wait: it held the lock or requested it.
type LockRequest struct {
	Column string // Table.Column
	Mode   string // ReaderShared, WriterShared, Exclusive or WriterSharedTimestamp
	Tag    string // tag of the transaction
}

// absorb adds the counts of o to t.
func (t *tally) absorb(o *tally) {
	for i, n := range o.sums {
		t.sums[i] += n
	}
	if o.dist != nil {
		t.distribution().Merge(o.dist)
	}
	for _, w := range o.written {
		t.wrote(w.table, w.rows, w.bytes)
	}
	for _, s := range o.samples {
		t.sample(s)
	}
}

// rise sets each sum of t to the higher of t's and o's, and adds the elements of o's lists to the lists of t.
func (t *tally) rise(o *tally) {
	for i, n := range o.sums {
		t.sums[i] = max(t.sums[i], n)
	}
	for i, l := range o.subject.lists {
		all := slices.Concat(t.subject.lists[i], l)
		slices.Sort(all)
		t.subject.lists[i] = slices.Compact(all)
	}
}

func (t *tally) distribution() *distribution.Distribution {
	if t.dist == nil {
		t.dist = new(distribution.Distribution)
	}
	return t.dist
}

// wrote counts rows that were written to a table, and their bytes.
func (t *tally) wrote(table string, rows, bytes int64) {
	i, found := slices.BinarySearchFunc(t.written, table, func(w written, name string) int { return cmp.Compare(w.table, name) })
	if !found {
		if len(t.written) == tallyTables {
			return
		}
		t.written = slices.Insert(t.written, i, written{table: table})
	}
	t.written[i].rows += rows
	t.written[i].bytes += bytes
}

// sample adds a lock request to the sorted samples, unless they contain an equal one or are full.
func (t *tally) sample(r LockRequest) {
	i, found := slices.BinarySearchFunc(t.samples, r, LockRequest.compare)
	if !found && len(t.samples) < lockSamples {
		t.samples = slices.Insert(t.samples, i, r)
	}
}

func (r LockRequest) compare(o LockRequest) int {
	return cmp.Or(cmp.Compare(r.Column, o.Column), cmp.Compare(r.Mode, o.Mode), cmp.Compare(r.Tag, o.Tag))
}

// reset makes t the empty tally of another subject. It reuses the memory of t.
func (t *tally) reset(s subject) {
	if t.dist != nil {
		*t.dist = distribution.Distribution{}
	}
	clear(t.written)
	clear(t.samples)
	*t = tally{subject: s, dist: t.dist, written: t.written[:0], samples: t.samples[:0]}
}
