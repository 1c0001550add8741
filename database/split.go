package database

import (
	"bytes"
	"slices"
	"sort"
	"time"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
)

// splits are the splits of a database at one moment: ranges of keys that a service of many servers would hand
// to this server or that. They are cut at the split points of users, and where a table has grown large. One process serves
// them all: what they decide is where partitions begin, how many calls an execution would make, and what is reported as hot.
//
// Split i holds the keys from bounds[i-1] up to bounds[i]; the first begins, the last ends with the database. Immutable.
type splits struct {
	catalog *schema.Catalog // it is out of date with another one,
	until   time.Time       // and when its first point has expired; zero for never
	bounds  [][]byte
}

// splits are those of now.
func (d *Database) splits(now time.Time) *splits {
	s := d.points.splits.Load()
	if s == nil || s.catalog != d.Catalog() || !s.until.IsZero() && !now.Before(s.until) {
		s = d.split(now)
	}
	return s
}

// split finds the splits anew.
func (d *Database) split(now time.Time) *splits {
	d.points.mu.Lock()
	defer d.points.mu.Unlock()
	v := d.newest()
	s, objects := &splits{catalog: v.catalog}, v.objects()
	for _, r := range d.points.list {
		if objects[r.Object] == nil || !r.live(now) {
			continue
		}
		s.bounds = append(s.bounds, r.key)
		if s.until.IsZero() || r.Expires.Before(s.until) {
			s.until = r.Expires
		}
	}
	s.bounds = united(s.bounds, d.points.cuts)
	d.points.splits.Store(s)
	return s
}

// united are the keys of two lists, in order, each once.
func united(a, b [][]byte) [][]byte {
	list := slices.Concat(a, b)
	slices.SortFunc(list, bytes.Compare)
	return slices.CompactFunc(list, bytes.Equal)
}

// of is the number of the split that a key lies in.
func (s *splits) of(key []byte) int {
	return sort.Search(len(s.bounds), func(i int) bool { return bytes.Compare(s.bounds[i], key) > 0 })
}

// before is the number of the split with the last key before a bound; an empty one is the end of all keys.
func (s *splits) before(bound []byte) int {
	if len(bound) == 0 {
		return len(s.bounds)
	}
	return sort.Search(len(s.bounds), func(i int) bool { return bytes.Compare(s.bounds[i], bound) >= 0 })
}

// holds says whether a key lies in a split.
func (s *splits) holds(split int, key []byte) bool {
	return (split == 0 || bytes.Compare(s.bounds[split-1], key) <= 0) && (split == len(s.bounds) || bytes.Compare(key, s.bounds[split]) < 0)
}

// Participants are the splits that a transaction has written in, at least one.
func (d *Database) Participants(tx *txn.Tx, now time.Time) int64 {
	s := d.splits(now)
	if len(s.bounds) == 0 {
		return 1
	}
	n, at := int64(0), 0
	tx.EachWrite(func(key []byte) {
		if n == 0 || !s.holds(at, key) {
			n, at = n+1, s.of(key)
		}
	})
	return max(n, 1)
}

// start is where a split begins, limit where it ends; nil for the ends of the database.
func (s *splits) start(split int) []byte {
	if split == 0 {
		return nil
	}
	return s.bounds[split-1]
}

func (s *splits) limit(split int) []byte {
	if split == len(s.bounds) {
		return nil
	}
	return s.bounds[split]
}

// boundTexts print the ends of a split as SPLIT_START and SPLIT_LIMIT.
func (d *Database) boundTexts(start, limit []byte) (from, to string) {
	from, to = stats.SplitBegin, stats.SplitEnd
	if start != nil {
		_, from = d.locate(start, false)
	}
	if limit != nil {
		_, to = d.locate(limit, false)
	}
	return from, to
}

// affected are the tables and indexes whose rows can be in a split, by name.
func (d *Database) affected(start, limit []byte) []string {
	var names []string
	for _, l := range d.newest().objects() {
		if l.Reaches(table.Span{Start: start, End: limit}) {
			names = append(names, l.Name())
		}
	}
	slices.Sort(names)
	return names
}
