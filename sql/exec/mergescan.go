package exec

import (
	"bytes"

	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

const (
	// maxStreams is the greatest number of streams that a scan merges, because each stream holds a cursor over all
	// levels of the store. If there are more streams, the scan reads one after the other and sorts the rows.
	maxStreams = 1000
	// streamBytes estimates the bytes of memory that the cursor of one stream takes. It was measured with a store
	// that has only a memtable.
	streamBytes = 16 << 10
)

// mergeScanOp reads a table or index in the order of the key parts in plan.Scan.MergeKey. If MergeKey is nil, the order
// is that of the key parts after the first n, where n is plan.Scan.Merge. All rows that have the same values in the
// first n parts form a stream. The rows of one stream are in the wanted order already, so the operator only needs to
// merge the streams. It reads the next row of a stream only when another row is needed, so it reads from each stream at
// most one row that it does not return.
type mergeScanOp struct {
	*keyScan
	place   place
	streams []stream
	heap    []int // indexes of the streams that have a row; the stream with the next row to return is first
	begun   bool
	held    held
	sorted  *sortedScan // used instead of streams if the scan cannot merge, as with more than maxStreams; else nil
	left    int64       // the number of rows that the limit still allows; -1 without a limit
	out     batch
}

// stream holds the rows whose keys have the same values in the first n parts, where n is plan.Scan.Merge.
type stream struct {
	rows   *table.Rows
	prefix int    // the length in bytes of the first plan.Scan.Merge parts of each key
	key    []byte // the bytes by which the current row is merged; see appendKey
}

func (o *mergeScanOp) open(r *run) error {
	if err := o.locate(r, &o.place); err != nil {
		return err
	}
	if err := o.close(); err != nil {
		return err
	}
	if o.sorted != nil {
		o.sorted.sorter.reset(r, 0)
	}
	o.out.reset()
	o.left, o.begun, o.sorted, o.heap = o.place.limit, false, nil, o.heap[:0]
	r.memory.release(&o.held)
	groups := o.groups(o.place.spans)
	if o.place.rests != nil || len(groups) > maxStreams {
		o.sorted = newSortedScan(r, o)
		return nil
	}
	if err := r.memory.keepBytes(&o.held, int64(len(groups))*streamBytes); err != nil {
		return err
	}
	return o.openStreams(r, groups)
}

// groups divides spans, which are sorted, into one group for each stream: the keys in the spans of a group have the
// same values in the first plan.Scan.Merge parts.
func (o *mergeScanOp) groups(spans []table.Span) [][]table.Span {
	var list [][]table.Span
	for len(spans) > 0 {
		prefix := spans[0].Start[:o.prefixLen(spans[0].Start)]
		n := 1
		for n < len(spans) && bytes.HasPrefix(spans[n].Start, prefix) {
			n++
		}
		list = append(list, spans[:n])
		spans = spans[n:]
	}
	return list
}

func (o *mergeScanOp) prefixLen(key []byte) int { return o.projection.PrefixLen(key, o.node.Merge) }

func (o *mergeScanOp) openStreams(r *run, groups [][]table.Span) error {
	for i, spans := range groups {
		prefix := o.prefixLen(spans[0].Start)
		// table.Ranges turns single keys into ranges. The row of a single key would be valid only until the next such row
		// is read, but the merge keeps the current rows of all streams.
		spans = table.Ranges(spans)
		if i < len(o.streams) {
			o.streams[i].prefix = prefix
			if err := o.streams[i].rows.Reopen(spans, 0); err != nil {
				return err
			}
			continue
		}
		read := o.read(r, &place{spans: spans})
		o.streams = append(o.streams, stream{rows: r.openRows(read), prefix: prefix})
	}
	for i := range groups {
		o.heap = append(o.heap, i)
	}
	return nil
}

func (o *mergeScanOp) close() error {
	var err error
	for i := range o.streams {
		if e := o.streams[i].rows.Close(); err == nil {
			err = e
		}
	}
	if o.sorted != nil {
		if e := o.sorted.rows.Close(); err == nil {
			err = e
		}
	}
	return err
}

func (o *mergeScanOp) next(r *run) (*batch, error) {
	if o.sorted != nil {
		return o.nextSorted(r)
	}
	o.out.begin()
	for !o.out.full() && o.left != 0 {
		rows, err := o.advance(r)
		if err != nil {
			return nil, err
		}
		if rows == nil {
			o.left = 0
			break
		}
		pass, err := o.add(r, rows)
		if err != nil {
			return nil, err
		}
		if pass && o.left > 0 {
			o.left--
		}
	}
	return o.out.some(), nil
}

// add adds the current row of a cursor to the batch. If the residual condition is not TRUE for this row, add leaves
// the row out and returns pass = false.
func (o *mergeScanOp) add(r *run, rows *table.Rows) (pass bool, err error) {
	o.out.vals = rows.Values(o.out.vals)
	o.out.n++
	if o.node.Index != nil {
		o.out.written(rows.Version())
	}
	if o.residual == nil {
		return true, nil
	}
	pass, err = isTrue(o.residual.eval, r, o.out.row(o.out.n-1))
	if err == nil && !pass {
		err = o.out.drop(r)
	}
	return pass, err
}

// advance moves the operator to its next row. It returns the cursor of the stream that has this row, or nil at the
// end.
func (o *mergeScanOp) advance(r *run) (*table.Rows, error) {
	if !o.begun {
		if err := o.begin(r); err != nil {
			return nil, err
		}
	} else if len(o.heap) > 0 {
		more, err := o.advanceStream(r, &o.streams[o.heap[0]])
		if err != nil {
			return nil, err
		}
		if !more {
			last := len(o.heap) - 1
			o.heap[0], o.heap = o.heap[last], o.heap[:last]
		}
		sink(o.heap, 0, o.before)
	}
	if len(o.heap) == 0 {
		return nil, nil
	}
	return o.streams[o.heap[0]].rows, nil
}

// begin reads the first row of each stream and makes the heap.
func (o *mergeScanOp) begin(r *run) error {
	o.begun = true
	have := o.heap[:0]
	for _, i := range o.heap {
		more, err := o.advanceStream(r, &o.streams[i])
		if err != nil {
			return err
		}
		if more {
			have = append(have, i)
		}
	}
	o.heap = have
	for i := len(o.heap)/2 - 1; i >= 0; i-- {
		sink(o.heap, i, o.before)
	}
	return r.check()
}

func (o *mergeScanOp) advanceStream(r *run, s *stream) (bool, error) {
	more, err := s.rows.Next()
	if !more || err != nil {
		return false, err
	}
	r.stats.RowsScanned++
	if o.node.MergeKey == nil {
		s.key = s.rows.Key()[s.prefix:]
	} else {
		s.key = o.appendKey(s.key[:0], s.rows)
	}
	return true, nil
}

// appendKey appends the bytes by which the scan merges the current row of a cursor. These are the key parts in
// plan.Scan.MergeKey if that is set, else the key without its first plan.Scan.Merge parts.
func (o *mergeScanOp) appendKey(dst []byte, rows *table.Rows) []byte {
	if o.node.MergeKey == nil {
		key := rows.Key()
		return append(dst, key[o.prefixLen(key):]...)
	}
	for _, m := range o.node.MergeKey {
		dst = rows.AppendKeyPart(dst, m.Part, m.Inverted)
	}
	return dst
}

// before reports whether the current row of stream i comes before that of stream j. It compares the bytes by which the
// rows are merged (see appendKey). If these are equal, the row of the stream with the lower number comes first, or last
// in a reverse scan. The streams are numbered in the order of their keys, so rows that are equal by these bytes come in
// the order of their whole keys.
func (o *mergeScanOp) before(i, j int) bool {
	d := bytes.Compare(o.streams[i].key, o.streams[j].key)
	if d == 0 {
		d = i - j
	}
	return d < 0 != o.node.Reverse
}

// sortedScan replaces the merge of a mergeScanOp, for instance if there are more than maxStreams streams. It reads one
// stream after the other, and sorts the rows by the bytes that appendKey returns. The rows and their order are the
// same as with a merge.
type sortedScan struct {
	rows   *table.Rows
	sorter sorter
	key    []value.Value // the sort key of the current row, a single value
	bytes  []byte        // the bytes of key
	done   bool
}

func newSortedScan(r *run, o *mergeScanOp) *sortedScan {
	read := o.read(r, &place{spans: o.place.spans})
	read.Partial = false
	by := &ordering{keys: []tree.SortKey{{Desc: o.node.Reverse}}, types: []*value.Type{value.BytesType}, tags: make([]collation, 1)}
	s := &sortedScan{rows: read.Open(r.ctx, r.view), key: make([]value.Value, 1), sorter: newSorter(by, plan.Types(o.node))}
	s.sorter.reset(r, o.place.limit)
	return s
}

func (o *mergeScanOp) nextSorted(r *run) (*batch, error) {
	s := o.sorted
	if !s.done {
		if err := o.sort(r, s); err != nil {
			return nil, err
		}
		s.done = true
	}
	o.out.begin()
	if err := o.out.fill(s.sorter.nextRow); err != nil {
		return nil, err
	}
	return o.out.some(), nil
}

func (o *mergeScanOp) sort(r *run, s *sortedScan) error {
	o.out.begin()
	for {
		ok, err := s.rows.Next()
		if err != nil {
			return err
		}
		if !ok {
			return s.sorter.finish(r)
		}
		r.stats.RowsScanned++
		key := o.appendKey(s.bytes[:0], s.rows)
		s.bytes, s.key[0] = key, value.OfBytes(key)
		if o.place.rests != nil && !o.skip.within(s.rows.Key(), o.place.rests) || s.sorter.tooLate(s.key) {
			if err := o.out.pass(r); err != nil {
				return err
			}
			continue
		}
		pass, err := o.add(r, s.rows)
		if err != nil {
			return err
		}
		if !pass {
			continue
		}
		row := o.out.row(0)
		s.sorter.keys = append(s.sorter.keys, value.OfBytes(bytes.Clone(key)))
		if err := s.sorter.addKeyed(r, row, int64(len(key))); err != nil {
			return err
		}
		if err := o.out.drop(r); err != nil {
			return err
		}
	}
}
