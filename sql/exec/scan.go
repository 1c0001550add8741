package exec

import (
	"context"
	"unsafe"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// A scan reads the rows of a table or the entries of an index. The planner has divided the scan's condition into two
// parts. The seeks are conditions on the first columns of the key: they become ranges of keys before anything is
// read. The residual is the rest of the condition: the scan computes it for each row that it has read.
//
// For each scan of a plan, one keyScan is compiled, which all runs of the plan share. A scan is opened in two steps:
//
//  1. locate computes the ranges (place) from parameters and from columns of enclosing rows. Scans of one whole key
//     are the most frequent, so they have a faster function, locatePoint. A skip scan looks up the values of the key
//     column that has no condition (seek.go).
//  2. The rows are opened in one of three ways, which return the same rows:
//     - by rows: table.Rows decodes one row at a time. This is best for few rows, for locks, and for a LIMIT that
//       ends early.
//     - by vectors: many rows at a time are decoded into columns, and the residual is computed for whole columns
//       (nextVectors). A scan changes from rows to vectors when its batches have grown to vectorsFrom rows, or when
//       the residual has dropped vectorsFrom rows of one batch.
//     - by columns: a ColumnSource reads the rows from a columnar copy of the table, if there is one and reading it is
//       cheaper (columnsource.go).
//
// In a nested loop the same operator is opened once for each outer row. So open reuses the slices of the place, and
// the iterator of the store (Reopen).

// keyScan is a compiled plan.Scan of a stored table or index.
type keyScan struct {
	node       *plan.Scan
	projection *table.Projection
	seeks      []seekCode
	residual   *condition
	limit      eval
	// partial says that a LIMIT or EXISTS can close the scan before it has read all its rows.
	partial bool
	// point computes the values of the whole key, if the scan reads at most one row. Otherwise it is nil.
	point []partCode
	// columnar says that the scan is allowed to read from a ColumnSource.
	columnar bool
	skip     *skipCode // finds the values of the skipped key part; nil if the scan is not a skip scan
}

func (c *compiler) keyScan(n *plan.Scan) (*keyScan, error) {
	p, err := table.NewProjection(n.Table, n.Index, n.Columns)
	if err != nil {
		return nil, err
	}
	s := &keyScan{node: n, projection: p, partial: c.partial || n.Limit != nil, columnar: n.MayReadColumnar() && plan.Independent(n)}
	for i := range n.Seeks {
		code, err := c.seek(&n.Seeks[i], p.Layout)
		if err != nil {
			return nil, err
		}
		s.seeks = append(s.seeks, code)
	}
	if len(s.seeks) == 1 && s.seeks[0].isPoint() && n.Limit == nil {
		s.point = s.seeks[0].parts
	}
	if n.Skips() {
		if s.skip, err = newSkip(s); err != nil {
			return nil, err
		}
	}
	if s.residual, err = c.condition(n.Residual); err != nil {
		return nil, err
	}
	if n == c.driving {
		c.prog.driving = s
	}
	s.limit, err = c.optional(n.Limit)
	return s, err
}

// place describes which rows a scan reads after it is opened. The fields one, key, vals, room and bytes are memory for
// the key of a scan that reads one whole key. They are part of the place, so that such a scan need not allocate them.
type place struct {
	spans []table.Span
	// rests is nil unless a skip scan reads all values of the skipped key part in one range (see skipCode). The scan
	// then returns a row only if the bytes of its key after the skipped part lie in one of the spans of rests.
	rests []table.Span
	limit int64 // the greatest number of rows to return; -1 without a limit
	one   [1]table.Span
	key   []byte
	vals  []value.Value
	room  [4]value.Value
	bytes [64]byte
}

// locate sets p to the keys and the limit of the rows that the scan reads. It computes them from parameters and from
// columns of enclosing rows.
func (s *keyScan) locate(r *run, p *place) error {
	var err error
	if p.limit, err = optionalLimit(r, s.limit); err != nil {
		return err
	}
	switch {
	case p.limit == 0:
		p.spans, p.rests = nil, nil
		return nil
	case s.point != nil:
		err = s.locatePoint(r, p)
	case s.skip != nil:
		err = s.skip.locate(r, p)
	default:
		set := table.KeySet{All: s.seeks == nil}
		for i := range s.seeks {
			if err := s.seeks[i].add(r, &set, nil); err != nil {
				return err
			}
		}
		p.spans, err = s.projection.Spans(set)
	}
	if err == nil && r.env.Restrict != nil && (s == r.prog.read || s.node == r.driving) {
		p.spans = table.Within(p.spans, *r.env.Restrict)
	}
	return err
}

// Driving returns the layout of the table or index that the driving scan (see plan.Plan.Driving) reads, and the spans
// of keys that this scan reads with the parameters of env. A query is partitioned by dividing these spans. The layout
// is nil if there is no driving scan. For a skip scan, Driving returns the span of all keys, because such a scan finds
// its spans only while it reads.
func (p *Program) Driving(ctx context.Context, env Env) (*table.Layout, []table.Span, error) {
	s := p.driving
	if s == nil {
		return nil, nil, nil
	}
	layout := s.projection.Layout
	if s.skip != nil {
		space, _ := layout.Space()
		return layout, []table.Span{space}, nil
	}
	r := p.start(ctx, env, new(run))
	var place place
	err := s.locate(r, &place)
	if e := r.end(); err == nil {
		err = e
	}
	return layout, place.spans, err
}

func (s *keyScan) locatePoint(r *run, p *place) error {
	p.spans = nil
	if p.vals == nil {
		p.vals, p.key = p.room[:0], p.bytes[:0]
	}
	p.vals = p.vals[:0]
	for i := range s.point {
		part := &s.point[i]
		if part.null {
			p.vals = append(p.vals, value.Value{})
			continue
		}
		v, err := part.values[0](r, nil)
		if err != nil || !part.nullSafe && equalsNothing(v) {
			return err
		}
		p.vals = append(p.vals, v)
	}
	p.key = s.projection.AppendKey(p.key[:0], p.vals)
	p.one[0] = table.Span{Start: p.key}
	p.spans = p.one[:]
	return nil
}

// read returns the table.Read that reads the rows that p describes.
func (s *keyScan) read(r *run, p *place) table.Read {
	read := table.Read{Projection: s.projection, Reverse: s.node.Reverse, Spans: p.spans, Limit: s.stored(p), Partial: s.partial, Memory: r.env.Memory}
	if s.node.Exclusive {
		read.Lock = table.LockExclusive
	}
	return read
}

// stored returns the greatest number of stored rows that the scan needs to read. It returns 0, which means all, if
// there is no LIMIT or if a condition can drop rows after they are read.
func (s *keyScan) stored(p *place) int64 {
	if p.limit > 0 && s.residual == nil && p.rests == nil {
		return p.limit
	}
	return 0
}

// scanOp reads rows of a table or entries of an index.
type scanOp struct {
	*keyScan
	place   place
	rows    *table.Rows
	columns *columnScan // used instead of rows when the scan reads a ColumnSource; nil until it first does
	left    int64       // the number of rows that the limit still allows; -1 without a limit
	chosen  chosen
	decodes bool         // the scan is allowed to decode rows into vectors
	vectors *scanVectors // nil until the scan first decodes rows into vectors
	out     batch
	ahead   held // the bytes that the run is charged for rows that the scan has read ahead
}

func (c *compiler) scan(n *plan.Scan, columns bool) (maker, error) {
	if n.Table.Rows != nil {
		return c.systemScan(n)
	}
	s, err := c.keyScan(n)
	if err != nil {
		return nil, err
	}
	out := c.batch(len(n.Columns))
	if n.Merge > 0 {
		return func(*run) operator { return &mergeScanOp{keyScan: s, out: out} }, nil
	}
	columns = columns || s.residual != nil && s.residual.vector != nil && n.Index == nil
	columns = columns && s.point == nil && s.skip == nil && !s.partial && !n.Exclusive
	return func(*run) operator {
		return &scanOp{keyScan: s, decodes: columns, out: out}
	}, nil
}

func (o *scanOp) open(r *run) error {
	o.out.reset()
	if err := o.locate(r, &o.place); err != nil {
		return err
	}
	o.left = o.place.limit
	if o.vectors != nil {
		o.vectors.err = nil
	}
	if err := o.closeColumns(); err != nil {
		return err
	}
	if o.byColumns(r) {
		if err := o.openColumns(r); o.isByColumns() || err != nil {
			return err
		}
	}
	if o.rows != nil {
		return o.rows.Reopen(o.place.spans, o.stored(&o.place))
	}
	o.rows = r.openRows(o.read(r, &o.place))
	return nil
}

func (o *scanOp) next(r *run) (*batch, error) {
	if o.isByColumns() {
		return o.nextColumns(r)
	}
	if o.decodes && o.out.target >= vectorsFrom {
		return o.nextVectors(r)
	}
	o.out.begin()
	passed := 0 // the number of rows that the residual condition has dropped since the batch was begun
	if o.out.vals == nil {
		expected := min(expectedRows, o.out.target)
		if o.point != nil {
			expected = 1
		}
		o.out.vals = make([]value.Value, 0, o.out.width*expected)
	}
	for !o.out.full() && o.left != 0 {
		ok, err := o.rows.Next()
		if err != nil {
			return nil, err
		}
		if !ok {
			o.left = 0
			break
		}
		r.stats.RowsScanned++
		if o.place.rests != nil && !o.skip.within(o.rows.Key(), o.place.rests) {
			if err := o.out.pass(r); err != nil {
				return nil, err
			}
			continue
		}
		o.out.vals = o.rows.Values(o.out.vals)
		o.out.n++
		if o.node.Index != nil {
			o.out.written(o.rows.Version())
		}
		if o.residual != nil {
			pass, err := isTrue(o.residual.eval, r, o.out.row(o.out.n-1))
			if err != nil {
				return nil, err
			}
			if !pass {
				if err := o.out.drop(r); err != nil {
					return nil, err
				}
				if passed++; o.decodes && passed >= vectorsFrom {
					return o.vectorsAfter(r)
				}
				continue
			}
		}
		if o.node == r.target.scan {
			if err := r.target.add(r, o.rows.Stored()); err != nil {
				return nil, err
			}
		}
		if o.left > 0 {
			o.left--
		}
		if o.rows.IsLarge() {
			break // the memory of a large row is charged only until o.rows finds the next row, so the batch ends here
		}
	}
	return o.out.some(), nil
}

// vectorsAfter makes the scan decode rows into vectors from the next batch on, because the condition drops most rows.
// It returns the current batch of flat rows if that has any rows, else the first batch of vectors.
func (o *scanOp) vectorsAfter(r *run) (*batch, error) {
	o.out.target = max(o.out.target, vectorsFrom)
	if o.out.n > 0 {
		return &o.out, nil
	}
	return o.nextVectors(r)
}

// expectedRows is the number of rows for which the first batch of a range scan allocates memory. If more rows come,
// the slice grows.
const expectedRows = 8

func (o *scanOp) close() error {
	o.left = 0
	err := o.closeColumns()
	if o.rows != nil {
		if e := o.rows.Close(); err == nil {
			err = e
		}
	}
	return err
}

// readAhead implements lookahead, for scans that read one whole key. Other scans do not read ahead.
func (o *scanOp) readAhead(r *run, n int, since mvcc.Timestamp, bind func(i int)) error {
	view, ok := r.view.(table.BatchView)
	if !ok || o.point == nil {
		return nil
	}
	if o.rows == nil {
		o.rows = r.openRows(o.read(r, &place{}))
	}
	o.rows.Forget()
	for i := range n {
		bind(i)
		if o.locate(r, &o.place) != nil {
			break // open will return the same error when the scan is opened for this row
		}
		for _, s := range o.place.spans {
			o.rows.Expect(s.Start)
		}
	}
	kept, err := o.rows.ReadAhead(view, since)
	if err != nil {
		return err
	}
	r.memory.release(&o.ahead)
	return r.memory.keepBytes(&o.ahead, max(0, int64(kept)-freeAhead))
}

// freeAhead is the number of bytes of rows that a scan may read ahead without being charged for them. A small query
// reads ahead no more bytes than this, so it is never charged for reading ahead. The uncharged bytes of a large query
// are few, too, because no query has many scans that read ahead.
const freeAhead = 32 << 10

// systemOp reads the rows of a system table.
type systemOp struct {
	node     *plan.Scan
	wanted   [][]eval // wanted[i] computes the values of node.Wanted[i]
	residual eval
	limit    eval
	rows     [][]value.Value
	left     int64
	out      batch
	held     held // the bytes that the run is charged for the rows of the table, until the operator is opened again
}

func (c *compiler) systemScan(n *plan.Scan) (maker, error) {
	residual, err := c.optional(n.Residual)
	if err != nil {
		return nil, err
	}
	limit, err := c.optional(n.Limit)
	if err != nil {
		return nil, err
	}
	wanted := make([][]eval, len(n.Wanted))
	for i, w := range n.Wanted {
		if wanted[i], err = c.exprs(w.Values); err != nil {
			return nil, err
		}
	}
	return func(*run) operator {
		return &systemOp{node: n, wanted: wanted, residual: residual, limit: limit, out: newBatch(len(n.Columns))}
	}, nil
}

func (o *systemOp) open(r *run) error {
	var err error
	if o.left, err = optionalLimit(r, o.limit); err != nil {
		return err
	}
	o.out.reset()
	want, err := o.want(r)
	if err != nil {
		return err
	}
	if o.rows, err = o.node.Table.Rows(r.ctx, want); err != nil {
		return err
	}
	r.memory.release(&o.held)
	return r.memory.keepBytes(&o.held, int64(len(o.rows))*(rowOverhead+int64(len(o.node.Table.Columns))*int64(unsafe.Sizeof(value.Value{}))))
}

// want returns, for each column that the query compares with constants, the set of these constants. The query needs
// only rows that have one of the constants in the column. NULL is left out, since it equals no value.
func (o *systemOp) want(r *run) (map[string]map[string]bool, error) {
	want := make(map[string]map[string]bool, len(o.wanted))
	for i, evals := range o.wanted {
		set := make(map[string]bool, len(evals))
		for _, e := range evals {
			v, err := e(r, nil)
			if err != nil {
				return nil, err
			}
			values := []value.Value{v}
			if o.node.Wanted[i].Array && !v.IsNull() {
				values = v.AsList()
			}
			for _, v := range values {
				if !v.IsNull() {
					set[v.AsString()] = true
				}
			}
		}
		want[o.node.Wanted[i].Column.Name] = set
	}
	return want, nil
}

func (o *systemOp) close() error { o.rows = nil; return nil }

func (o *systemOp) next(r *run) (*batch, error) {
	o.out.begin()
	for len(o.rows) > 0 && !o.out.full() && o.left != 0 {
		row := o.rows[0]
		o.rows = o.rows[1:]
		r.stats.RowsScanned++
		made := o.out.appendRow()
		for i, c := range o.node.Columns {
			made[i] = row[c.Ordinal]
		}
		pass, err := isTrue(o.residual, r, made)
		if err != nil {
			return nil, err
		}
		if !pass {
			if err := o.out.drop(r); err != nil {
				return nil, err
			}
			continue
		}
		if o.left > 0 {
			o.left--
		}
	}
	return o.out.some(), nil
}
