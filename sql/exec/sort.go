package exec

import (
	"slices"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"

	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// ordering is a compiled ORDER BY.
type ordering struct {
	keys  []tree.SortKey
	evals []eval
	// computed tells, for each key, whether it is computed from the row. If not, it is a column of the row (see
	// isComputed).
	computed []bool
	types    []*value.Type
	tags     []collation
}

// collation tells how the strings of a sort key are compared. The zero value compares them by code point.
type collation struct {
	tag     language.Tag
	options []collate.Option
	set     bool
}

func (c *compiler) ordering(keys []tree.SortKey) (*ordering, error) {
	o := &ordering{keys: keys}
	for _, k := range keys {
		f, err := c.expr(k.Expr)
		if err != nil {
			return nil, err
		}
		o.evals, o.computed = append(o.evals, f), append(o.computed, isComputed(k.Expr))
		o.types = append(o.types, k.Expr.Type())
		tag, err := collationOf(k.Collation)
		if err != nil {
			return nil, err
		}
		o.tags = append(o.tags, tag)
	}
	return o, nil
}

// collationOf parses the name of a collation: a locale, which may be followed by an attribute such as ci, which
// ignores case. An example is 'und:ci'
// (https://cloud.google.com/spanner/docs/reference/standard-sql/collation-concepts).
func collationOf(name string) (collation, error) {
	if name == "" || name == "binary" || name == "unicode" {
		return collation{}, nil
	}
	locale, attribute := name, ""
	for i := range name {
		if name[i] == ':' {
			locale, attribute = name[:i], name[i+1:]
			break
		}
	}
	if locale == "unicode" {
		locale = "und"
	}
	tag, err := language.Parse(locale)
	if err != nil || attribute != "" && attribute != "ci" && attribute != "cs" {
		return collation{}, usererror.InvalidCollation(name)
	}
	c := collation{tag: tag, set: true}
	if attribute == "ci" {
		c.options = append(c.options, collate.IgnoreCase)
	}
	return c, nil
}

// comparer compares the sort keys of rows. Only one goroutine may use it, since its collators have buffers.
type comparer struct {
	*ordering
	collators []*collate.Collator
}

func (o *ordering) comparer() *comparer {
	c := &comparer{ordering: o, collators: make([]*collate.Collator, len(o.keys))}
	for i, t := range o.tags {
		if t.set {
			c.collators[i] = collate.New(t.tag, t.options...)
		}
	}
	return c
}

func (c *comparer) compare(a, b []value.Value) int {
	for i := range c.keys {
		if d := c.compareKey(i, a[i], b[i]); d != 0 {
			return d
		}
	}
	return 0
}

func (c *comparer) compareKey(i int, a, b value.Value) int {
	k := &c.keys[i]
	if a.IsNull() || b.IsNull() {
		switch {
		case a.IsNull() && b.IsNull():
			return 0
		case a.IsNull() == k.NullsFirst:
			return -1
		}
		return 1
	}
	var d int
	if col := c.collators[i]; col != nil {
		d = col.CompareString(a.AsString(), b.AsString())
	} else {
		d = value.Compare(a, b, c.types[i])
	}
	if k.Desc {
		return -d
	}
	return d
}

// append computes the sort keys of a row and appends them to keys.
func (o *ordering) append(r *run, keys, row []value.Value) ([]value.Value, error) {
	for _, f := range o.evals {
		v, err := f(r, row)
		if err != nil {
			return keys, err
		}
		keys = append(keys, v)
	}
	return keys, nil
}

// sortOp sorts its input.
type sortOp struct {
	in     operator
	limit  eval
	sorter sorter
	sorted bool
	out    batch
}

func (c *compiler) sort(n *plan.Sort) (maker, error) {
	if n.Major > 0 {
		return c.minorSort(n)
	}
	in, err := c.whole(n.Input)
	if err != nil {
		return nil, err
	}
	code, err := c.sortCode(n)
	if err != nil {
		return nil, err
	}
	return func(r *run) operator {
		return &sortOp{in: in(r), limit: code.limit, sorter: code.sorter(), out: newBatch(len(code.types))}
	}, nil
}

// sortCode is a compiled plan.Sort without its input.
type sortCode struct {
	order *ordering
	limit eval
	types []*value.Type
}

func (c *compiler) sortCode(n *plan.Sort) (*sortCode, error) {
	order, err := c.ordering(n.Keys)
	if err != nil {
		return nil, err
	}
	limit, err := c.optional(n.Limit)
	if err != nil {
		return nil, err
	}
	return &sortCode{order, limit, plan.Types(n)}, nil
}

func (s *sortCode) sorter() sorter { return newSorter(s.order, s.types) }

func (o *sortOp) open(r *run) error {
	limit, err := optionalLimit(r, o.limit)
	if err != nil {
		return err
	}
	o.sorter.reset(r, limit)
	o.sorted = false
	o.out.reset()
	return nil
}

func (o *sortOp) close() error { return o.in.close() }

func (o *sortOp) next(r *run) (*batch, error) {
	if !o.sorted {
		if err := drain(r, o.in, func(row []value.Value) error { return o.sorter.addBy(r, row) }); err != nil {
			return nil, err
		}
		if err := o.sorter.finish(r); err != nil {
			return nil, err
		}
		o.sorted = true
	}
	o.out.begin()
	if err := o.out.fill(o.sorter.nextRow); err != nil {
		return nil, err
	}
	return o.out.some(), nil
}

// minorSortOp sorts an input that is already sorted by the first sort keys (the field major is their number). It
// collects rows that are equal by these keys, sorts them by the other sort keys, and returns them before it reads
// further rows. So with a limit it need not read the whole input.
type minorSortOp struct {
	in     operator
	limit  eval
	major  int
	sorter sorter
	out    batch

	from *batch // the current batch of the input
	at   int    // index of the next row in the batch from
	left int64  // the number of rows that the limit still allows; -1 without a limit
	full bool   // the method collect has filled the sorter, and the sorter has sorted its rows
	done bool   // the input has no more rows

	// first holds the sort keys of the first row that is in the sorter, and keys those of the next row of the input.
	first, keys []value.Value
}

func (c *compiler) minorSort(n *plan.Sort) (maker, error) {
	in, err := c.input(n.Input, c.partial || n.Limit != nil)
	if err != nil {
		return nil, err
	}
	code, err := c.sortCode(n)
	if err != nil {
		return nil, err
	}
	out := c.batch(len(code.types))
	return func(r *run) operator {
		return &minorSortOp{in: in(r), limit: code.limit, major: n.Major, sorter: code.sorter(), out: out}
	}, nil
}

func (o *minorSortOp) open(r *run) error {
	var err error
	if o.left, err = optionalLimit(r, o.limit); err != nil {
		return err
	}
	o.sorter.reset(r, o.left)
	o.from, o.at, o.full, o.done = nil, 0, false, false
	o.out.reset()
	return o.in.open(r)
}

func (o *minorSortOp) close() error { return o.in.close() }

func (o *minorSortOp) next(r *run) (*batch, error) {
	o.out.begin()
	for !o.out.full() && o.left != 0 {
		if !o.full {
			more, err := o.collect(r)
			if err != nil {
				return nil, err
			}
			if !more {
				o.left = 0
				break
			}
			o.full = true
		}
		row, ok, err := o.sorter.nextRow()
		if err != nil {
			return nil, err
		}
		if !ok {
			o.clear(r)
			continue
		}
		o.out.add(row, nil)
		if o.left > 0 {
			o.left--
		}
	}
	return o.out.some(), nil
}

// clear empties the sorter before it gets the next rows that are equal by the first o.major sort keys. If the sorter
// has not spilled, clear keeps the sorter's memory and reuses it for these rows. Usually they are few, so a sorter that
// did not reuse its memory would allocate very often.
func (o *minorSortOp) clear(r *run) {
	if o.full = false; o.sorter.merged != nil {
		o.sorter.reset(r, o.left)
		return
	}
	o.sorter.empty(r)
	o.sorter.at, o.sorter.last, o.sorter.limit = 0, nil, o.left
}

// collect fills the sorter with the next rows that are equal by the first o.major sort keys. It returns false if the
// input has no more rows.
func (o *minorSortOp) collect(r *run) (bool, error) {
	o.first = o.first[:0]
	for !o.done {
		if o.from == nil || o.at == o.from.n {
			var err error
			if o.from, err = r.pullRows(o.in); err != nil {
				return false, err
			}
			o.at, o.done = 0, o.from == nil
			continue
		}
		row := o.from.row(o.at)
		var err error
		if o.keys, err = o.sorter.append(r, o.keys[:0], row); err != nil {
			return false, err
		}
		if len(o.first) == 0 {
			o.first = append(o.first, o.keys...)
		} else if !o.equal(o.first, o.keys) {
			break
		}
		if err := o.sorter.addWith(r, row, o.keys); err != nil {
			return false, err
		}
		o.at++
	}
	if len(o.first) == 0 {
		return false, nil
	}
	return true, o.sorter.finish(r)
}

// equal reports whether two rows with the sort keys a and b are equal by the first o.major of these keys.
func (o *minorSortOp) equal(a, b []value.Value) bool {
	for i := range o.major {
		if o.sorter.compareKey(i, a[i], b[i]) != 0 {
			return false
		}
	}
	return true
}

// sorter sorts rows by their sort keys. Rows with equal sort keys stay in the order in which they were added. If
// the rows do not fit into memory, sorter writes sorted lists to disk and merges them at the end.
type sorter struct {
	*comparer
	types      []*value.Type // the types of the columns of a row, followed by those of its sort keys
	width      int           // the number of columns of a row
	rows, keys []value.Value
	order      []int32
	limit      int64 // the greatest number of rows to return; -1 without a limit
	// last is nil until addKeyed drops rows for the first time. From then on, it holds the sort keys of the last row
	// that addKeyed kept. addKeyed keeps limit rows, so a further row that does not come before these keys comes after
	// limit rows, and is dropped too.
	last []value.Value
	held held

	runs   []*spill.Rows
	merged *merge // nil if all rows are in memory
	at     int64  // the number of rows that nextRow has returned
}

// newSorter returns a sorter for rows with columns of these types.
func newSorter(order *ordering, types []*value.Type) sorter {
	return sorter{comparer: order.comparer(), types: slices.Concat(types, order.types), width: len(types), limit: -1}
}

// reset removes all rows and sets the limit. A limit of -1 means that there is none.
func (s *sorter) reset(r *run, limit int64) {
	r.memory.release(&s.held)
	free(s.runs)
	if s.merged != nil {
		s.merged.close(r)
	}
	s.rows, s.keys, s.order, s.limit, s.last = nil, nil, nil, limit, nil
	s.runs, s.merged, s.at = nil, nil, 0
}

// addBy computes the sort keys of a row and adds the row.
func (s *sorter) addBy(r *run, row []value.Value) error {
	var err error
	if s.keys, err = s.append(r, s.keys, row); err != nil {
		return err
	}
	keys := s.keys[len(s.keys)-len(s.comparer.keys):]
	if s.tooLate(keys) {
		s.keys = s.keys[:len(s.keys)-len(keys)]
		return nil
	}
	return s.addKeyed(r, row, besideRow(keys, s.computed))
}

// addWith adds a row. The method append must have computed the row's sort keys.
func (s *sorter) addWith(r *run, row, keys []value.Value) error {
	if s.tooLate(keys) {
		return nil
	}
	s.keys = append(s.keys, keys...)
	return s.addKeyed(r, row, besideRow(keys, s.computed))
}

// tooLate reports whether a row with these sort keys is certainly not among the first s.limit rows.
func (s *sorter) tooLate(keys []value.Value) bool {
	return s.last != nil && s.compare(keys, s.last) >= 0
}

// addKeyed adds a row whose sort keys are the last values of s.keys. The keys take keyBytes bytes of memory beside the
// row. If there are far more than s.limit rows, addKeyed drops those that come after the first s.limit rows. If the
// rows take too much memory, it spills them.
func (s *sorter) addKeyed(r *run, row []value.Value, keyBytes int64) error {
	if err := s.keep(r, row, keyBytes); err != nil {
		return err
	}
	// This tests n >= fullBatch+2*s.limit. It computes no sum, which could overflow because the limit may be the largest
	// integer.
	if n := int64(len(s.order)); s.limit >= 0 && n >= fullBatch && (n-fullBatch)/2 >= s.limit {
		s.sort()
		r.memory.shrink(&s.held, float64(s.limit)/float64(len(s.order)))
		s.cut()
		if s.limit > 0 {
			s.last = slices.Clone(s.keysOf(len(s.order) - 1))
		}
	}
	return s.makeRoom(r)
}

// add adds a row with its sort keys. It does not spill rows, even if they take too much memory: the caller must call
// makeRoom for that.
func (s *sorter) add(r *run, row, keys []value.Value) error {
	s.keys = append(s.keys, keys...)
	return s.keep(r, row, rowBytes(keys))
}

// keep adds a row to the rows in memory. The row's sort keys are the last values of s.keys, and take keyBytes bytes
// of memory beside the row.
func (s *sorter) keep(r *run, row []value.Value, keyBytes int64) error {
	s.rows = append(s.rows, row...)
	s.order = append(s.order, int32(len(s.order)))
	return r.memory.keepBytes(&s.held, rowOverhead+rowBytes(row)+keyBytes)
}

// makeRoom spills the rows if they take too much memory.
func (s *sorter) makeRoom(r *run) error {
	if !r.memory.full(s.held) {
		return nil
	}
	return s.spill(r)
}

func (s *sorter) row(i int) []value.Value {
	at := int(s.order[i]) * s.width
	return s.rows[at : at+s.width]
}

// keysOf returns the sort keys of the row that row(i) returns.
func (s *sorter) keysOf(i int) []value.Value {
	n := len(s.comparer.keys)
	at := int(s.order[i]) * n
	return s.keys[at : at+n]
}

func (s *sorter) sort() {
	n := len(s.comparer.keys)
	if n == 0 {
		return
	}
	slices.SortStableFunc(s.order, func(i, j int32) int {
		a, b := int(i)*n, int(j)*n
		return s.compare(s.keys[a:a+n], s.keys[b:b+n])
	})
}

// cut keeps the first s.limit of the sorted rows, and drops all others.
func (s *sorter) cut() {
	if s.limit < 0 || int64(len(s.order)) <= s.limit {
		return
	}
	var rows, keys []value.Value
	for i := range int(s.limit) {
		rows = append(rows, s.row(i)...)
		keys = append(keys, s.keysOf(i)...)
	}
	s.rows, s.keys, s.order = rows, keys, s.order[:s.limit]
	for i := range s.order {
		s.order[i] = int32(i)
	}
}

// spill sorts the rows in memory and writes them to a list on disk.
func (s *sorter) spill(r *run) error {
	s.sort()
	s.cut()
	w, err := r.newList(s.types)
	if err != nil {
		return err
	}
	for i := range s.order {
		if err := w.Append(s.row(i), s.keysOf(i)...); err != nil {
			return err
		}
	}
	list, err := w.Finish()
	if err != nil {
		return err
	}
	s.runs = append(s.runs, list)
	s.empty(r)
	return nil
}

// empty removes the rows in memory. Lists on disk stay.
func (s *sorter) empty(r *run) {
	clear(s.rows)
	clear(s.keys)
	s.rows, s.keys, s.order = s.rows[:0], s.keys[:0], s.order[:0]
	r.memory.release(&s.held)
}

// finish sorts the rows. It must be called after the last row is added; nextRow then returns the rows in order.
func (s *sorter) finish(r *run) error {
	if len(s.runs) == 0 {
		s.sort()
		s.cut()
		return nil
	}
	if len(s.order) > 0 {
		if err := s.spill(r); err != nil {
			return err
		}
	}
	s.rows, s.keys, s.order = nil, nil, nil
	runs := s.runs
	s.runs = nil
	var err error
	s.merged, err = r.newMerge(s.types, func(a, b []value.Value) int { return s.compare(a[s.width:], b[s.width:]) }, runs)
	return err
}

// nextRow returns the next row, which is valid until the next call.
func (s *sorter) nextRow() (row []value.Value, ok bool, err error) {
	s.at++
	if s.merged == nil {
		if s.at > int64(len(s.order)) {
			return nil, false, nil
		}
		return s.row(int(s.at - 1)), true, nil
	}
	if s.limit >= 0 && s.at > s.limit {
		return nil, false, nil
	}
	if row, ok, err = s.merged.nextRow(); !ok {
		return nil, false, err
	}
	return row[:s.width], true, nil
}
