package table

import (
	"bytes"
	"slices"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// KeySet names rows of a table, or entries of an index, by key. It covers all rows that any of its fields covers. The
// values in Keys and Ranges have the types of the columns in Layout.Key.
type KeySet struct {
	All    bool
	Keys   [][]value.Value
	Ranges []KeyRange
}

// KeyRange holds the keys from Start to End in stored order: in a descending key part, larger values come first. A
// Start or End may have fewer parts than a key; it then means all keys that begin with these parts. StartOpen and
// EndOpen leave the keys at Start and at End out of the range.
type KeyRange struct {
	Start, End         []value.Value
	StartOpen, EndOpen bool
}

// Spans returns the sorted, disjoint spans that ks covers. A whole key of a table becomes a point (see Span.IsPoint),
// so that it is read with View.Get instead of View.Scan.
func (l *Layout) Spans(ks KeySet) ([]Span, error) {
	if ks.All {
		if err := l.checkKeySet(ks); err != nil {
			return nil, err
		}
		span, _ := l.Space()
		return []Span{span}, nil
	}
	spans := make([]Span, 0, len(ks.Keys)+len(ks.Ranges))
	arena := make([]byte, 0, 32*len(ks.Keys)+64*len(ks.Ranges))
	for _, k := range ks.Keys {
		if err := l.checkKey(k, l.declared); err != nil {
			return nil, err
		}
		var s Span
		s, arena = l.keySpan(k, arena)
		spans = append(spans, s)
	}
	for _, r := range ks.Ranges {
		if err := l.checkRange(r); err != nil {
			return nil, err
		}
		var s Span
		s, arena = l.rangeSpan(r, arena)
		if bytes.Compare(s.Start, s.End) < 0 {
			spans = append(spans, s)
		}
	}
	return mergeSpans(spans), nil
}

func (l *Layout) checkKeySet(ks KeySet) error {
	for _, k := range ks.Keys {
		if err := l.checkKey(k, l.declared); err != nil {
			return err
		}
	}
	for _, r := range ks.Ranges {
		if err := l.checkRange(r); err != nil {
			return err
		}
	}
	return nil
}

// checkKey returns an error if the key k has fewer values than the parameter least says, more values than a key of the
// layout has, or a pending commit timestamp. After its declared parts, the key of an index entry may give parts of the
// primary key, in the order of Layout.Key.
func (l *Layout) checkKey(k []value.Value, least int) error {
	if len(k) < least || len(k) > len(l.Key) {
		return usererror.WrongKeyParts(l.Name(), l.declared, len(k), keyText(k))
	}
	for i, v := range k {
		if v.IsPending() {
			return usererror.PendingInKeySet(l.Name(), l.Key[i].Column.Name)
		}
	}
	return nil
}

func (l *Layout) checkRange(r KeyRange) error {
	if err := l.checkKey(r.Start, 0); err != nil {
		return err
	}
	return l.checkKey(r.End, 0)
}

// keySpan returns the span of one key in a key set. It appends the span's bytes to arena.
func (l *Layout) keySpan(k []value.Value, arena []byte) (Span, []byte) {
	at := len(arena)
	arena = l.appendPrefix(arena, k)
	if len(k) == len(l.Key) {
		arena = append(arena, keyEnd)
		return Span{Start: arena[at:len(arena):len(arena)]}, arena
	}
	prefix := arena[at:]
	arena = append(arena, keyEnd)
	start := arena[at:len(arena):len(arena)]
	at = len(arena)
	arena = appendBound(arena, prefix, afterPrefix)
	return Span{Start: start, End: arena[at:len(arena):len(arena)]}, arena
}

func (l *Layout) rangeSpan(r KeyRange, arena []byte) (Span, []byte) {
	var s Span
	s.Start, arena = l.appendRangeBound(arena, r.Start, r.StartOpen)
	s.End, arena = l.appendRangeBound(arena, r.End, !r.EndOpen)
	return s, arena
}

// appendRangeBound makes the bound that lies before all rows whose keys begin with k. If the parameter after is true,
// it makes the bound behind these rows instead. It appends the bound's bytes to arena.
func (l *Layout) appendRangeBound(arena []byte, k []value.Value, after bool) (bound, out []byte) {
	at := len(arena)
	arena = l.appendPrefix(arena, k)
	switch {
	case after && len(k) == len(l.Key):
		arena = append(arena, afterRow)
	case after:
		arena = append(arena, afterPrefix)
	}
	arena = append(arena, keyEnd)
	return arena[at:len(arena):len(arena)], arena
}

// mergeSpans sorts spans and merges those that overlap, touch or repeat. The result reuses the memory of spans.
func mergeSpans(spans []Span) []Span {
	if !slices.IsSortedFunc(spans, compareSpans) {
		slices.SortFunc(spans, compareSpans)
	}
	merged := spans[:0]
	for _, s := range spans {
		last := len(merged) - 1
		if last < 0 || !merged[last].joins(s) {
			merged = append(merged, s)
			continue
		}
		if !s.IsPoint() && (merged[last].IsPoint() || bytes.Compare(s.End, merged[last].End) > 0) {
			merged[last].End = s.End
		}
	}
	return merged
}

func compareSpans(a, b Span) int { return bytes.Compare(a.Start, b.Start) }

// joins reports whether s and next can be merged: next overlaps s or begins where s ends. next must not start before
// s.
func (s Span) joins(next Span) bool {
	if s.IsPoint() {
		return bytes.Equal(s.Start, next.Start)
	}
	c := bytes.Compare(next.Start, s.End)
	return c < 0 || c == 0 && !next.IsPoint()
}

// Within returns the parts of spans that lie in the range limit. spans must be sorted and disjoint.
func Within(spans []Span, limit Span) []Span {
	var cut []Span
	for _, s := range spans {
		if s.IsPoint() {
			if bytes.Compare(s.Start, limit.Start) >= 0 && bytes.Compare(s.Start, limit.End) < 0 {
				cut = append(cut, s)
			}
			continue
		}
		if bytes.Compare(s.Start, limit.Start) < 0 {
			s.Start = limit.Start
		}
		if bytes.Compare(s.End, limit.End) > 0 {
			s.End = limit.End
		}
		if bytes.Compare(s.Start, s.End) < 0 {
			cut = append(cut, s)
		}
	}
	return cut
}

// After returns the parts of spans that a scan must still read when it has read the row at key: those that sort after
// that row, or in a reverse scan those before it. spans must be sorted and disjoint.
func After(spans []Span, key []byte, reverse bool) []Span {
	if reverse {
		return Within(spans, Span{End: key})
	}
	return Within(spans, Span{Start: afterKey(key), End: []byte{afterPrefix}})
}
