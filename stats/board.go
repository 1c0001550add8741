package stats

import (
	"slices"
	"strings"
)

// A board holds the tallies of one family (such as queries) in one interval. A tally counts the events of one subject
// (such as one SQL text). The function family.weight says how heavy a tally is. A full board keeps the heavier half
// of its tallies and adds the others to the tally rest. So the size of a board is limited, heavy tallies stay however
// many light subjects come, and the sum of tallies and rest is always the total.
type board struct {
	family  *family
	tallies map[uint64]*tally
	rest    tally
	texts   int // total size in bytes of the subjects of tallies (see subject.size)
	free    []*tally
}

func newBoard(f *family) *board { return &board{family: f, tallies: map[uint64]*tally{}} }

// add creates the tally of a subject. If the board is full, add first calls shed, which makes room.
func (b *board) add(key uint64, s subject) *tally {
	s.own()
	if size := s.size(); len(b.tallies) >= max(boardTallies, b.family.keep) || b.texts > 0 && b.texts+size > boardTexts {
		b.shed()
	}
	b.texts += s.size()
	t := b.fresh(s)
	b.tallies[key] = t
	return t
}

// own replaces the subject's texts by copies, because the caller's memory may be reused, and cuts the name to the
// length that rows show.
func (s *subject) own() {
	if name := cut(s.name, maxText); len(name) < len(s.name) {
		s.name, s.truncated = name, true
	}
	s.name, s.tag = strings.Clone(s.name), strings.Clone(s.tag)
}

func (b *board) fresh(s subject) *tally {
	if n := len(b.free); n > 0 {
		t := b.free[n-1]
		b.free = b.free[:n-1]
		t.reset(s)
		return t
	}
	return &tally{subject: s}
}

// keyed is a tally together with its key in a board.
type keyed struct {
	key uint64
	*tally
}

// shed adds the lighter tallies to rest. It keeps at most half of the tallies, and at most half of the bytes of text
// that a board may have (boardTexts).
func (b *board) shed() {
	list := make([]keyed, 0, len(b.tallies))
	for k, t := range b.tallies {
		list = append(list, keyed{k, t})
	}
	slices.SortFunc(list, func(x, y keyed) int { return b.family.heavierFirst(x.tally, y.tally) })
	kept, texts := 0, 0
	for _, k := range list {
		size := k.subject.size()
		if kept < len(list)/2 && texts+size <= boardTexts/2 {
			kept++
			texts += size
			continue
		}
		b.rest.absorb(k.tally)
		delete(b.tallies, k.key)
		k.subject = subject{}
		b.free = append(b.free, k.tally)
	}
	b.texts = texts
}

// merge adds the tallies of the board o, which the caller must not use afterwards. The board b may then have too many
// tallies; the method closed later adds the lightest ones to rest.
func (b *board) merge(o *board) {
	b.rest.absorb(&o.rest)
	for _, t := range o.tallies {
		b.mergeTally(t)
	}
}

// mergeRecord adds the tallies of r, the stored form of a board. The caller must not use r afterwards.
func (b *board) mergeRecord(r record) {
	b.rest.absorb(r.rest)
	for _, t := range r.tallies {
		b.mergeTally(t)
	}
}

func (b *board) mergeTally(t *tally) {
	key := b.family.key(&t.subject)
	have := b.tallies[key]
	switch {
	case have == nil:
		b.tallies[key] = t
	case b.family.peaks:
		have.rise(t)
	case !b.family.single:
		if t.subject.better(&have.subject) {
			have.subject = t.subject
		}
		have.absorb(t)
	case b.family.weight(t) > b.family.weight(have):
		b.tallies[key] = t
	}
}

// closed returns the record to store when the board's interval is over: the heaviest tallies in order, and the sum of
// all others.
func (b *board) closed() record {
	r := record{rest: &b.rest}
	list := make([]*tally, 0, len(b.tallies))
	for _, t := range b.tallies {
		list = append(list, t)
	}
	slices.SortFunc(list, b.family.heavierFirst)
	texts := 0
	for _, t := range list {
		if len(r.tallies) == b.family.keep || b.family.single && texts+t.subject.size() > fullTexts {
			b.rest.absorb(t)
			continue
		}
		if texts += t.subject.size(); texts > fullTexts {
			texts -= t.subject.shorten()
		}
		r.tallies = append(r.tallies, t)
	}
	return r
}

// shorten cuts the subject's name to shortText bytes and returns the number of bytes it removed.
func (s *subject) shorten() int {
	before := len(s.name)
	s.name = strings.Clone(cut(s.name, shortText))
	s.truncated = s.truncated || len(s.name) < before
	return before - len(s.name)
}
