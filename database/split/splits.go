package split

import (
	"bytes"
	"slices"
	"sort"
	"time"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
)

// splits are the splits of a database at one moment. They are immutable.
//
// Split i holds the keys from bounds[i-1] up to, but not including, bounds[i]. The first split begins at the start of
// the database, and the last one ends at its end.
type splits struct {
	catalog *schema.Catalog // the splits are outdated when this is no longer the newest catalog
	until   time.Time       // the splits are outdated from this time on, when a point expires; zero: never
	bounds  [][]byte
}

// at returns the splits at time now, which must be close to the current time.
func (m *Manager) at(now time.Time) *splits {
	s := m.current.Load()
	if s == nil || s.catalog != m.cfg.Catalog() || !s.until.IsZero() && !now.Before(s.until) {
		s = m.compute(now)
	}
	return s
}

// compute computes the splits at time now from the user split points and the bounds found by size, and stores them in
// m.current.
func (m *Manager) compute(now time.Time) *splits {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &splits{catalog: m.cfg.Catalog()}
	for _, r := range m.points {
		if table.LayoutOf(s.catalog, r.Object) == nil || !r.live(now) {
			continue
		}
		s.bounds = append(s.bounds, r.key)
		if s.until.IsZero() || r.Expires.Before(s.until) {
			s.until = r.Expires
		}
	}
	s.bounds = union(s.bounds, m.sizeBounds)
	m.current.Store(s)
	return s
}

// union returns the keys of two lists, sorted and without duplicates.
func union(a, b [][]byte) [][]byte {
	list := slices.Concat(a, b)
	slices.SortFunc(list, bytes.Compare)
	return slices.CompactFunc(list, bytes.Equal)
}

// of returns the number of the split that a key lies in.
func (s *splits) of(key []byte) int {
	return sort.Search(len(s.bounds), func(i int) bool { return bytes.Compare(s.bounds[i], key) > 0 })
}

// before returns the number of the split that holds the last key before a bound. An empty bound is the end of all keys.
func (s *splits) before(bound []byte) int {
	if len(bound) == 0 {
		return len(s.bounds)
	}
	return sort.Search(len(s.bounds), func(i int) bool { return bytes.Compare(s.bounds[i], bound) >= 0 })
}

// holds reports whether a key lies in a split.
func (s *splits) holds(split int, key []byte) bool {
	return (split == 0 || bytes.Compare(s.bounds[split-1], key) <= 0) && (split == len(s.bounds) || bytes.Compare(key, s.bounds[split]) < 0)
}

// start returns the first key of a split; nil for the first split.
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

// boundTexts returns the texts of the two bounds of a split as SPLIT_START and SPLIT_LIMIT show them.
func (m *Manager) boundTexts(start, limit []byte) (from, to string) {
	from, to = stats.SplitBegin, stats.SplitEnd
	if start != nil {
		from = m.keyText(start)
	}
	if limit != nil {
		to = m.keyText(limit)
	}
	return from, to
}

// keyText returns the text of a key, or of the bound of a range, with the name of its table or index.
func (m *Manager) keyText(key []byte) string {
	l, vals := table.Locate(m.cfg.Catalog(), key)
	if l == nil {
		return ""
	}
	return stats.KeyText(l.Name(), vals, false)
}

// affected returns the names of the tables and indexes that can have rows in a split, sorted.
func (m *Manager) affected(start, limit []byte) []string {
	var names []string
	for l := range table.Layouts(m.cfg.Catalog()) {
		if l.Reaches(table.Span{Start: start, End: limit}) {
			names = append(names, l.Name())
		}
	}
	slices.Sort(names)
	return names
}
