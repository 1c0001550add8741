package table

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/cloudspannerecosystem/memefish"
	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/tidwall/btree"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// mapWriter is a Writer that keeps its rows in a sorted map. It calls trace, if that is set, for each write.
type mapWriter struct {
	rows    *btree.Map[string, string]
	pending map[string]pendingRow
	gets    int
	scans   int
	skips   int
	steps   int
	// captured counts the calls of Capture.
	captured int
	trace    func(op string, key, val []byte)
	// failAt makes a call fail: each call subtracts one, and the call that reaches 0 fails. If failAt begins at 0, no
	// call fails.
	failAt int
}

// pendingRow holds the positions of pending commit timestamps in the key and in the value of a row.
type pendingRow struct{ key, val []Pending }

func newMemory() *mapWriter {
	return &mapWriter{rows: &btree.Map[string, string]{}, pending: map[string]pendingRow{}}
}

var errInjected = errors.New("injected")

// fails counts down failAt for one call and reports whether this call must fail.
func (m *mapWriter) fails() bool {
	m.failAt--
	return m.failAt == 0
}

func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

func (m *mapWriter) Get(_ context.Context, key []byte, _ Lock) ([]byte, bool, error) {
	m.gets++
	if m.fails() {
		return nil, false, errInjected
	}
	checkBound(key)
	val, ok := m.rows.Get(unsafe.String(unsafe.SliceData(key), len(key)))
	return bytesOf(val), ok, nil
}

// checkBound panics if a bound does not end in 00, because package mvcc could take such a bound for a key with a
// version.
func checkBound(key []byte) {
	if len(key) == 0 || key[len(key)-1] != keyEnd {
		panic(fmt.Sprintf("key or bound %x does not end in 00", key))
	}
}

func (m *mapWriter) Scan(_ context.Context, span Span, opts ScanOptions) (Cursor, error) {
	m.scans++
	if m.fails() {
		return nil, errInjected
	}
	checkBound(span.Start)
	checkBound(span.End)
	c := &memoryCursor{m: m, iter: m.rows.Copy().Iter(), end: string(span.End), start: string(span.Start), reverse: opts.Reverse}
	return c, nil
}

func (m *mapWriter) Put(_ context.Context, key, val []byte, pendingKey, pending []Pending) error {
	checkBound(key)
	if m.fails() {
		return errInjected
	}
	m.rows.Set(string(key), string(val))
	delete(m.pending, string(key))
	if len(pendingKey)+len(pending) > 0 {
		m.pending[string(key)] = pendingRow{append([]Pending(nil), pendingKey...), append([]Pending(nil), pending...)}
	}
	if m.trace != nil {
		m.trace("put", key, val)
	}
	return nil
}

func (m *mapWriter) Delete(_ context.Context, key []byte) error {
	checkBound(key)
	if m.fails() {
		return errInjected
	}
	m.rows.Delete(string(key))
	delete(m.pending, string(key))
	if m.trace != nil {
		m.trace("delete", key, nil)
	}
	return nil
}

func (m *mapWriter) PutRun(ctx context.Context, r *Run, fresh bool) ([]byte, error) {
	for i := range r.Len() {
		if _, ok := m.rows.Get(string(r.Key(i))); ok && fresh {
			return r.Key(i), nil
		}
	}
	for i := range r.Len() {
		if err := m.Put(ctx, r.Key(i), r.Value(i), nil, nil); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Capture counts the change and discards it. The tests of package changestream check what happens with changes.
func (m *mapWriter) Capture(_ context.Context, c *Change) (int, error) {
	m.captured++
	return 0, nil
}

// commit replaces the pending timestamps in keys and values by ts.
func (m *mapWriter) commit(ts mvcc.Timestamp) {
	for key, p := range m.pending {
		val, _ := m.rows.Delete(key)
		k, v := []byte(key), []byte(val)
		for _, p := range p.key {
			p.Fill(k, ts)
		}
		for _, p := range p.val {
			p.Fill(v, ts)
		}
		m.rows.Set(string(k), string(v))
	}
	clear(m.pending)
}

// attempt runs f. If f fails, attempt undoes the writes of f.
func (m *mapWriter) attempt(f func() error) error {
	before := m.rows.Copy()
	err := f()
	if err != nil {
		m.rows = before
		clear(m.pending)
	}
	return err
}

type memoryCursor struct {
	m          *mapWriter
	iter       btree.MapIter[string, string]
	start, end string
	reverse    bool
	begun      bool
	seek       string
	err        error
}

func (c *memoryCursor) Next() bool {
	c.m.steps++
	if c.m.fails() {
		c.err = errInjected
	}
	if c.err != nil {
		return false
	}
	ok := false
	switch {
	case c.reverse && !c.begun:
		// The first call of Next in reverse moves to the last key before c.end.
		if ok = c.iter.Seek(c.end); ok {
			ok = c.iter.Prev()
		} else {
			ok = c.iter.Last()
		}
	case c.reverse:
		ok = c.iter.Prev()
	case !c.begun:
		ok = c.iter.Seek(c.start)
	case c.seek > c.iter.Key():
		ok = c.iter.Seek(c.seek)
	default:
		ok = c.iter.Next()
	}
	c.begun = true
	return ok && c.iter.Key() >= c.start && c.iter.Key() < c.end
}

func (c *memoryCursor) SkipTo(key []byte) {
	c.m.skips++
	checkBound(key)
	c.seek = string(key)
}
func (c *memoryCursor) Key() []byte             { return bytesOf(c.iter.Key()) }
func (c *memoryCursor) Value() []byte           { return bytesOf(c.iter.Value()) }
func (c *memoryCursor) Err() error              { return c.err }
func (c *memoryCursor) Version() mvcc.Timestamp { return 0 }
func (c *memoryCursor) Close() error            { return nil }

// tinySQL compiles the few expressions that the tests use: columns, literals, +, ||, comparisons, UPPER, a counter
// NEXT() and PENDING_COMMIT_TIMESTAMP().
type tinySQL struct {
	schema.Compiler
	next *int64
}

func (s tinySQL) CompileExpr(_ *schema.Catalog, t *schema.Table, sql string, want *value.Type) (*schema.Expr, error) {
	tree, err := memefish.ParseExpr("", sql)
	if err != nil {
		return nil, err
	}
	e := &schema.Expr{SQL: sql}
	eval, err := s.compile(t, e, tree)
	if err != nil {
		return nil, err
	}
	e.Eval = func(args []value.Value) (value.Value, error) {
		v := eval(args)
		if v.IsNull() {
			return value.Null(want.Kind), nil
		}
		return v, nil
	}
	return e, nil
}

type evaluator func(args []value.Value) value.Value

func (s tinySQL) compile(t *schema.Table, e *schema.Expr, tree ast.Expr) (evaluator, error) {
	constant := func(v value.Value) (evaluator, error) {
		return func([]value.Value) value.Value { return v }, nil
	}
	switch n := tree.(type) {
	case *ast.ParenExpr:
		return s.compile(t, e, n.Expr)
	case *ast.IntLiteral:
		var i int64
		fmt.Sscan(n.Value, &i)
		return constant(value.OfInt64(i))
	case *ast.StringLiteral:
		return constant(value.OfString(n.Value))
	case *ast.Ident:
		c := t.Column(n.Name)
		if c == nil {
			return nil, fmt.Errorf("no column %s", n.Name)
		}
		at := len(e.Uses)
		e.Uses = append(e.Uses, c)
		return func(args []value.Value) value.Value { return args[at] }, nil
	case *ast.CallExpr:
		return s.compileCall(t, e, n)
	case *ast.BinaryExpr:
		l, err := s.compile(t, e, n.Left)
		if err != nil {
			return nil, err
		}
		r, err := s.compile(t, e, n.Right)
		if err != nil {
			return nil, err
		}
		return operate(n.Op, l, r), nil
	}
	return nil, fmt.Errorf("unsupported expression %s", tree.SQL())
}

func (s tinySQL) compileCall(t *schema.Table, e *schema.Expr, n *ast.CallExpr) (evaluator, error) {
	switch strings.ToUpper(n.Func.SQL()) {
	case "PENDING_COMMIT_TIMESTAMP":
		return func([]value.Value) value.Value { return value.PendingCommitTimestamp() }, nil
	case "NEXT":
		return func([]value.Value) value.Value { *s.next++; return value.OfInt64(*s.next) }, nil
	case "UPPER":
		arg, err := s.compile(t, e, n.Args[0].(*ast.ExprArg).Expr)
		if err != nil {
			return nil, err
		}
		return func(args []value.Value) value.Value {
			v := arg(args)
			if v.IsNull() {
				return v
			}
			return value.OfString(strings.ToUpper(v.AsString()))
		}, nil
	}
	return nil, fmt.Errorf("unsupported function %s", n.Func.SQL())
}

func operate(op ast.BinaryOp, l, r evaluator) evaluator {
	return func(args []value.Value) value.Value {
		a, b := l(args), r(args)
		if a.IsNull() || b.IsNull() {
			return value.Value{}
		}
		t := &value.Type{Kind: a.Kind()}
		switch op {
		case ast.OpAdd:
			return value.OfInt64(a.AsInt64() + b.AsInt64())
		case ast.OpConcat:
			return value.OfString(a.AsString() + b.AsString())
		case ast.OpGreater:
			return value.OfBool(value.Compare(a, b, t) > 0)
		case ast.OpLess:
			return value.OfBool(value.Compare(a, b, t) < 0)
		}
		panic("unsupported operator " + string(op))
	}
}

// testNow is the current time in the tests.
var testNow = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
