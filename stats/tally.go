package stats

import (
	"cmp"
	"slices"

	"github.com/crowfoot-db/crowfoot/stats/distribution"
)

// A subject is the thing that a tally counts. Its fields distinguish its row from others.
type subject struct {
	// fingerprint and kind together are the identity.
	fingerprint int64
	kind        uint8
	truncated   bool   // name is cut
	name        string // the text, key, table, or profile
	tag         string // the tag, or column
	lists       [3][]string
}

// subjectKey returns a subject's key on a board.
func subjectKey(fingerprint int64, kind uint8) uint64 { return mix(uint64(fingerprint) + uint64(kind)) }

// size returns the bytes of text that the subject holds.
func (s *subject) size() int {
	n := len(s.name) + len(s.tag)
	for _, l := range s.lists {
		for _, e := range l {
			n += len(e)
		}
	}
	return n
}

// better reports whether a row shows s instead of o, of two subjects with the same tag. It prefers the one with more columns,
// then the first by name, so that the choice is always the same.
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

// A tally counts the events of one subject in one interval, or of all subjects that have no tally of their own. Everything in it
// adds up. Durations are in nanoseconds, shares in millionths.
type tally struct {
	subject subject
	sums    [maxSums]int64             // the family defines the meaning of each
	dist    *distribution.Distribution // nil until something is observed
	written []written                  // by table
	samples []LockRequest              // at most lockSamples
	shown   int                        // number of accesses of the transaction whose columns the subject lists
}

// written counts the rows inserted and updated in one table.
type written struct {
	table       string
	rows, bytes int64
}

// LockRequest is one transaction's part in a lock wait: it held the lock or requested it.
type LockRequest struct {
	Column string // Table.Column
	Mode   string // ReaderShared, WriterShared, Exclusive or WriterSharedTimestamp
	Tag    string // of the transaction
}

// absorb adds the counts of o.
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

// rise sets each sum of t to the higher one of t and o, and adds the lists of o to the lists of t.
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

// wrote counts rows written to a table.
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

// sample keeps a lock request, in order, if no equal one is kept and there is room.
func (t *tally) sample(r LockRequest) {
	i, found := slices.BinarySearchFunc(t.samples, r, LockRequest.compare)
	if !found && len(t.samples) < lockSamples {
		t.samples = slices.Insert(t.samples, i, r)
	}
}

func (r LockRequest) compare(o LockRequest) int {
	return cmp.Or(cmp.Compare(r.Column, o.Column), cmp.Compare(r.Mode, o.Mode), cmp.Compare(r.Tag, o.Tag))
}

// reset makes t the empty tally of another subject, and keeps its memory.
func (t *tally) reset(s subject) {
	if t.dist != nil {
		*t.dist = distribution.Distribution{}
	}
	clear(t.written)
	clear(t.samples)
	*t = tally{subject: s, dist: t.dist, written: t.written[:0], samples: t.samples[:0]}
}
