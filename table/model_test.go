package table

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

var seed = flag.Uint64("seed", 0, "replay TestModel with this seed only")

// modelDDL has every kind of key, interleaving and index.
const modelDDL = `
CREATE TABLE P (A INT64, S STRING(MAX), V INT64 NOT NULL DEFAULT (7)) PRIMARY KEY (A, S DESC);
CREATE TABLE Casc (A INT64, S STRING(MAX), B INT64, V INT64, W STRING(MAX)) PRIMARY KEY (A, S DESC, B DESC), INTERLEAVE IN PARENT P ON DELETE CASCADE;
CREATE TABLE Deep (A INT64, S STRING(MAX), B INT64, C STRING(MAX), V INT64) PRIMARY KEY (A, S DESC, B DESC, C), INTERLEAVE IN PARENT Casc ON DELETE CASCADE;
CREATE TABLE Block (A INT64, S STRING(MAX), V INT64) PRIMARY KEY (A, S DESC), INTERLEAVE IN PARENT P ON DELETE NO ACTION;
CREATE TABLE Plain (A INT64, S STRING(MAX), V INT64, W STRING(MAX)) PRIMARY KEY (S, A DESC);
CREATE TABLE Loose (A INT64, S STRING(MAX), B INT64, V INT64) PRIMARY KEY (A, S DESC, B), INTERLEAVE IN P;
CREATE INDEX PByV ON P (V DESC);
CREATE UNIQUE INDEX CascUnique ON Casc (V, W DESC);
CREATE NULL_FILTERED INDEX CascByW ON Casc (W) STORING (V);
CREATE UNIQUE NULL_FILTERED INDEX DeepUnique ON Deep (V);
CREATE INDEX CascIn ON Casc (A, S DESC, V), INTERLEAVE IN P;
`

// TestModel checks that random commits have the same results in a store as in the model, which holds rows in plain
// maps and implements the rules in a simple way. Both must agree on which commits fail, on every row and index entry,
// and on the rows in random key sets.
func TestModel(t *testing.T) {
	seeds := []uint64{*seed}
	if *seed == 0 {
		seeds = nil
		for i := range modelSeeds(60) {
			seeds = append(seeds, i+1)
		}
	}
	for _, s := range seeds {
		t.Run(fmt.Sprint(s), func(t *testing.T) { runModel(t, modelDDL, s, 120) })
	}
}

// floatDDL has FLOAT64 and FLOAT32 columns in every position of keys, index keys and entries' values. Its tests store
// floats that are equal in SQL but differ in their bytes, such as 0 and -0.
const floatDDL = `
CREATE TABLE K (F FLOAT64, H FLOAT32, V FLOAT64, W FLOAT32, A ARRAY<FLOAT64>) PRIMARY KEY (F, H DESC);
CREATE TABLE Child (F FLOAT64, H FLOAT32, B FLOAT64, V INT64) PRIMARY KEY (F, H DESC, B), INTERLEAVE IN PARENT K ON DELETE CASCADE;
CREATE TABLE Plain (F FLOAT64, V FLOAT64) PRIMARY KEY (F);
CREATE INDEX ByV ON K (V) STORING (W, A);
CREATE INDEX ByW ON K (W DESC, V);
CREATE UNIQUE NULL_FILTERED INDEX OneW ON K (W, F) STORING (V);
CREATE INDEX ByB ON Child (B DESC);
`

// TestModelOfFloats checks the same as TestModel, with zeros of both signs and several NaNs. Reads through an index
// must show the same values as reads of the table.
func TestModelOfFloats(t *testing.T) {
	for s := range modelSeeds(30) {
		t.Run(fmt.Sprint(s), func(t *testing.T) { runModel(t, floatDDL, s, 120) })
	}
}

// modelSeeds returns how many seeds a model test runs: the given number, or a sixth of it in a short test run.
func modelSeeds(all uint64) uint64 {
	if testing.Short() {
		return all / 6
	}
	return all
}

func runModel(t *testing.T, ddl string, seed uint64, steps int) {
	script := newScript()
	if err := script.ddl(ddl); err != nil {
		t.Fatal(err)
	}
	m := newModel(script.catalog, rand.New(rand.NewPCG(seed, 1)))
	ctx := context.Background()
	outcomes := map[codes.Code]int{}
	for step := range steps {
		muts := m.randomCommit()
		want := m.commit(muts)
		err := script.m.attempt(func() error {
			_, err := Apply(ctx, script.m, NewDescriptors(script.catalog), m.someAsColumns(muts), testNow)
			return err
		})
		m.agree(t, err, want, muts)
		outcomes[usererror.CodeOf(err)]++
		script.m.commit(mvcc.Timestamp(step + 1))
		m.compare(t, script.m, fmt.Sprintf("step %d", step))
		m.compareKeySet(t, script.m)
	}
	m.verify(t, script.m)
	if outcomes[codes.OK] < steps/5 || len(outcomes) < 3 {
		t.Errorf("random commits do not try enough: %v", outcomes)
	}
}

// verify checks that a Verifier finds nothing wrong in the stored data.
func (m *model) verify(t *testing.T, store *mapWriter) {
	t.Helper()
	v := Verifier{View: store, Tables: NewDescriptors(m.catalog), Now: testNow, Report: func(f Finding) { t.Error(f) }}
	for tab := range m.catalog.Tables() {
		if _, err := v.Rows(t.Context(), tab); err != nil {
			t.Fatal(err)
		}
		for _, x := range tab.Indexes {
			if _, err := v.Entries(t.Context(), x); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// agree checks that the error of a commit is one of those that the model allows.
func (m *model) agree(t *testing.T, err error, want []codes.Code, muts []Mutation) {
	t.Helper()
	if !slices.Contains(want, usererror.CodeOf(err)) {
		t.Fatalf("%v\ngot %v, want one of %v", muts, err, want)
	}
}

// model holds the expected rows of all tables in maps, by the text of their keys.
type model struct {
	catalog *schema.Catalog
	r       *rand.Rand
	rows    map[*schema.Table]map[string][]value.Value
}

func newModel(c *schema.Catalog, r *rand.Rand) *model {
	m := &model{catalog: c, r: r, rows: map[*schema.Table]map[string][]value.Value{}}
	for t := range c.Tables() {
		m.rows[t] = map[string][]value.Value{}
	}
	return m
}

var (
	modelTexts  = []string{"", "a", "a\x00", "b"}
	modelFloats = []float64{0, math.Copysign(0, -1), math.NaN(), -math.NaN(), 1.5}
)

func (m *model) randomValue(t *value.Type) value.Value {
	if m.r.IntN(8) == 0 {
		return value.Null(t.Kind)
	}
	if t.Kind == value.Array {
		elems := make([]value.Value, m.r.IntN(3))
		for i := range elems {
			elems[i] = m.randomValue(t.Elem)
		}
		return value.OfArray(elems)
	}
	values := modelValues(t)
	return values[m.r.IntN(len(values))]
}

// modelValues returns the non-NULL values of a type from which the model's random rows are made.
func modelValues(t *value.Type) (values []value.Value) {
	switch t.Kind {
	case value.String:
		for _, s := range modelTexts {
			values = append(values, value.OfString(s))
		}
	case value.Float64:
		for _, f := range modelFloats {
			values = append(values, value.OfFloat64(f))
		}
	case value.Float32:
		for _, f := range modelFloats {
			values = append(values, value.OfFloat32(float32(f)))
		}
	default:
		for i := range int64(4) {
			values = append(values, value.OfInt64(i-1))
		}
	}
	return values
}

func (m *model) anyTable() *schema.Table {
	tables := slices.Collect(m.catalog.Tables())
	return tables[m.r.IntN(len(tables))]
}

func (m *model) randomCommit() []Mutation {
	var muts []Mutation
	for range 1 + m.r.IntN(4) {
		t := m.anyTable()
		mut := Mutation{Op: Op(m.r.IntN(5)), Table: t}
		if m.r.IntN(3) > 0 {
			mut.Op = InsertOrUpdate
		}
		if mut.Op == Delete {
			if m.r.IntN(3) > 0 {
				mut.Keys.Keys = append(mut.Keys.Keys, m.randomKey(TableLayout(t), len(t.Key)))
			} else {
				mut.Keys = m.randomKeySet(TableLayout(t), 1)
			}
		} else {
			m.randomRows(&mut)
		}
		muts = append(muts, mut)
	}
	return muts
}

func (m *model) randomRows(mut *Mutation) {
	for _, c := range mut.Table.Columns {
		if c.KeyOrdinal >= 0 || m.r.IntN(3) > 0 {
			mut.Columns = append(mut.Columns, c)
		}
	}
	m.r.Shuffle(len(mut.Columns), func(i, j int) { mut.Columns[i], mut.Columns[j] = mut.Columns[j], mut.Columns[i] })
	for range 1 + m.r.IntN(2) {
		from := mut.Table.Parent
		if from == nil || mut.Op == Update || m.r.IntN(4) == 0 {
			from = mut.Table
		}
		known := m.randomRow(from)
		row := make([]value.Value, len(mut.Columns))
		for i, c := range mut.Columns {
			row[i] = m.randomValue(c.Type)
			if known != nil && c.KeyOrdinal >= 0 && c.KeyOrdinal < len(from.Key) {
				row[i] = known[from.Key[c.KeyOrdinal].Column.Ordinal]
			}
		}
		mut.Rows = append(mut.Rows, row)
	}
}

// someAsColumns returns a copy of muts. In the copy, a random half of the mutations that are not deletes have their
// input as columns (see asColumns).
func (m *model) someAsColumns(muts []Mutation) []Mutation {
	muts = slices.Clone(muts)
	for i := range muts {
		if mut := &muts[i]; mut.Op != Delete && m.r.IntN(2) == 0 {
			*mut = asColumns(*mut)
		}
	}
	return muts
}

// asColumns returns an equal mutation whose input comes as columns (Mutation.Sources) instead of rows.
func asColumns(mut Mutation) Mutation {
	mut.Count, mut.Sources = len(mut.Rows), make([]value.Source, len(mut.Columns))
	for i, c := range mut.Columns {
		s := valueSource{typ: c.Type}
		for _, row := range mut.Rows {
			s.values = append(s.values, row[i])
		}
		mut.Sources[i] = s
	}
	mut.Rows = nil
	return mut
}

// valueSource is a value.Source that holds the values of one column.
type valueSource struct {
	values []value.Value
	typ    *value.Type
}

func (s valueSource) IsNull(row int) bool       { return s.values[row].IsNull() }
func (s valueSource) Value(row int) value.Value { return s.values[row] }
func (s valueSource) RowSize(row int) int       { return value.RowSize(s.values[row], s.typ) }

func (s valueSource) IsShort(row int, limit int64) bool {
	return limit == 0 || int64(len(s.values[row].AsBytes())) <= limit
}

func (s valueSource) AppendRow(dst []byte, row int) []byte {
	return value.AppendRow(dst, s.values[row], s.typ)
}

func (s valueSource) AppendKey(dst []byte, row int, desc bool) []byte {
	return value.AppendKey(dst, s.values[row], desc)
}

// randomRow returns a random row that t has in the model. It returns nil if t has no rows, and otherwise in
// one of five calls.
func (m *model) randomRow(t *schema.Table) []value.Value {
	if len(m.rows[t]) == 0 || m.r.IntN(5) == 0 {
		return nil
	}
	keys := slices.Sorted(maps.Keys(m.rows[t]))
	return m.rows[t][keys[m.r.IntN(len(keys))]]
}

func (m *model) randomKey(l *Layout, parts int) []value.Value {
	key := make([]value.Value, parts)
	for i := range key {
		key[i] = m.randomValue(l.Key[i].Column.Type)
	}
	return key
}

func (m *model) randomKeySet(l *Layout, most int) KeySet {
	ks := KeySet{All: m.r.IntN(20) == 0}
	for range m.r.IntN(most + 1) {
		ks.Keys = append(ks.Keys, m.randomKey(l, l.declared+m.r.IntN(len(l.Key)-l.declared+1)))
	}
	for range m.r.IntN(most + 1) {
		r := KeyRange{StartOpen: m.r.IntN(2) == 0, EndOpen: m.r.IntN(2) == 0}
		r.Start = m.randomKey(l, m.r.IntN(len(l.Key)+1))
		if r.End = m.randomKey(l, m.r.IntN(len(l.Key)+1)); m.r.IntN(3) > 0 {
			copy(r.End, r.Start)
			if n := min(len(r.End), len(r.Start)); n > 0 {
				r.End[n-1] = m.randomValue(l.Key[n-1].Column.Type)
			}
		}
		ks.Ranges = append(ks.Ranges, r)
	}
	return ks
}

func modelKey(t *schema.Table, row []value.Value) string { return keyText(keyOf(row, t.Key)) }

// commit applies mutations to the model. It returns the codes of which the real commit must return one: OK, or the
// codes for all constraints that the commit violates.
func (m *model) commit(muts []Mutation) []codes.Code {
	before := map[*schema.Table]map[string][]value.Value{}
	for t, rows := range m.rows {
		before[t] = map[string][]value.Value{}
		for k, row := range rows {
			before[t][k] = row
		}
	}
	code, deleted := codes.OK, map[string]bool{}
	for i := range muts {
		if code = m.mutate(&muts[i], deleted); code != codes.OK {
			m.rows = before
			return []codes.Code{code}
		}
	}
	if failures := m.violations(); len(failures) > 0 {
		m.rows = before
		return failures
	}
	return []codes.Code{codes.OK}
}

func (m *model) mutate(mut *Mutation, deleted map[string]bool) codes.Code {
	t := mut.Table
	if mut.Op == Delete {
		for k, row := range m.rows[t] {
			if m.inKeySet(TableLayout(t), mut.Keys, row) {
				m.delete(t, k)
			}
		}
		for _, c := range m.everyKey(TableLayout(t)) {
			if m.inKeySet(TableLayout(t), mut.Keys, c) {
				deleted[t.Name+modelKey(t, c)] = true
			}
		}
		return codes.OK
	}
	for _, vals := range mut.Rows {
		if code := m.mutateRow(mut, vals, deleted); code != codes.OK {
			return code
		}
	}
	return codes.OK
}

// everyKey returns rows that together have all keys that random rows can have.
func (m *model) everyKey(l *Layout) [][]value.Value {
	rows := [][]value.Value{make([]value.Value, len(l.Table.Columns))}
	for _, p := range l.Key {
		values := append([]value.Value{value.Null(p.Column.Type.Kind)}, modelValues(p.Column.Type)...)
		var next [][]value.Value
		for _, row := range rows {
			for _, v := range values {
				row := slices.Clone(row)
				row[p.Column.Ordinal] = v
				next = append(next, row)
			}
		}
		rows = next
	}
	return rows
}

func (m *model) mutateRow(mut *Mutation, vals []value.Value, deleted map[string]bool) codes.Code {
	t := mut.Table
	row := make([]value.Value, len(t.Columns))
	given := make([]bool, len(t.Columns))
	for i, c := range mut.Columns {
		row[c.Ordinal], given[c.Ordinal] = vals[i], true
		if c.KeyOrdinal >= 0 {
			row[c.Ordinal] = value.AsKey(vals[i]) // a key holds 0 in place of -0, and one NaN in place of all NaNs
		}
		if c.NotNull && vals[i].IsNull() {
			return codes.FailedPrecondition
		}
	}
	key := modelKey(t, row)
	old, exists := m.rows[t][key]
	switch {
	case mut.Op == Insert && exists:
		return codes.AlreadyExists
	case mut.Op == Update && !exists && deleted[t.Name+key]:
		return codes.InvalidArgument
	case mut.Op == Update && !exists:
		return codes.NotFound
	case mut.Op == Replace && exists:
		if !m.deleteChildren(t, key) {
			return codes.FailedPrecondition
		}
	}
	for i, c := range t.Columns {
		switch {
		case given[i]:
		case exists && mut.Op != Replace:
			row[i] = old[i]
		case c.Default != nil:
			row[i] = value.OfInt64(7)
		default:
			row[i] = value.Null(c.Type.Kind)
		}
	}
	m.rows[t][key] = row
	return codes.OK
}

// delete deletes a row and all rows that ON DELETE CASCADE deletes with it.
func (m *model) delete(t *schema.Table, key string) {
	m.deleteChildren(t, key)
	delete(m.rows[t], key)
}

// deleteChildren deletes the children of a row in tables with ON DELETE CASCADE. It returns false if the row has
// children in tables with ON DELETE NO ACTION.
func (m *model) deleteChildren(t *schema.Table, key string) bool {
	free := true
	for _, child := range m.catalog.Children(t) {
		for k, row := range m.rows[child] {
			if keyText(keyOf(row, child.Key[:len(t.Key)])) != key {
				continue
			}
			switch child.Interleave {
			case schema.InterleaveCascade:
				m.delete(child, k)
			case schema.InterleaveNoAction:
				free = false
			}
		}
	}
	return free
}

// violations returns the codes of all constraints that are violated at the end of a commit.
func (m *model) violations() []codes.Code {
	var failures []codes.Code
	for t := range m.catalog.Tables() {
		for _, row := range m.rows[t] {
			if t.Interleave != schema.InterleaveNoAction && t.Interleave != schema.InterleaveCascade {
				break
			}
			if m.rows[t.Parent][keyText(keyOf(row, t.Key[:len(t.Parent.Key)]))] == nil {
				failures = append(failures, codes.NotFound, codes.FailedPrecondition)
			}
		}
		for _, x := range t.Indexes {
			keys := map[string]bool{}
			for _, row := range m.rows[t] {
				if key := indexKeyText(row, x.Key); x.Unique && newIndexTarget(x).holds(row) {
					if keys[key] {
						failures = append(failures, codes.AlreadyExists)
					}
					keys[key] = true
				}
			}
		}
	}
	return failures
}

// indexKeyText returns the text of an index key. Equal values have the same text.
func indexKeyText(row []value.Value, key []schema.KeyPart) string {
	parts := slices.Clone(keyOf(row, key))
	for i := range parts {
		parts[i] = value.AsKey(parts[i])
	}
	return keyText(parts)
}

// compareParts compares two keys, or first parts of keys, in stored order. If one has fewer parts than the other, it
// compares only that many parts.
func compareParts(parts []schema.KeyPart, a, b []value.Value) int {
	for i, p := range parts[:min(len(a), len(b))] {
		c := value.Compare(a[i], b[i], p.Column.Type)
		if p.Desc {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func (m *model) inKeySet(l *Layout, ks KeySet, row []value.Value) bool {
	if ks.All {
		return true
	}
	key := keyOf(row, l.Key)
	for _, k := range ks.Keys {
		if compareParts(l.Key, key, k) == 0 {
			return true
		}
	}
	for _, r := range ks.Ranges {
		start, end := compareParts(l.Key, key, r.Start), compareParts(l.Key, key, r.End)
		if (start > 0 || start == 0 && !r.StartOpen) && (end < 0 || end == 0 && !r.EndOpen) {
			return true
		}
	}
	return false
}

// read returns the expected result of reading a key set of a table or index: rows in key order.
func (m *model) read(t *schema.Table, x *schema.Index, ks KeySet) [][]value.Value {
	l := TableLayout(t)
	if x != nil {
		l = IndexLayout(x)
	}
	var rows [][]value.Value
	for _, row := range m.rows[t] {
		if (x == nil || newIndexTarget(x).holds(row)) && m.inKeySet(l, ks, row) {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b []value.Value) int {
		return compareParts(l.Key, keyOf(a, l.Key), keyOf(b, l.Key))
	})
	return rows
}

// compare reads all tables and indexes of store and compares them with the model. It also checks that the store holds
// nothing else.
func (m *model) compare(t *testing.T, store *mapWriter, what string) {
	t.Helper()
	total := 0
	for tab := range m.catalog.Tables() {
		total += m.compareRead(t, store, tab, nil, KeySet{All: true}, what)
		for _, x := range tab.Indexes {
			total += m.compareRead(t, store, tab, x, KeySet{All: true}, what)
		}
	}
	if store.rows.Len() != total {
		t.Fatalf("%s: %d keys stored, %d rows and entries", what, store.rows.Len(), total)
	}
}

// compareKeySet reads a random key set and compares the result with the model. The read is forward or reverse, with or
// without a limit, and either complete or resumed in the middle.
func (m *model) compareKeySet(t *testing.T, store *mapWriter) {
	t.Helper()
	tab := m.anyTable()
	var x *schema.Index
	l := TableLayout(tab)
	if n := len(tab.Indexes); n > 0 && m.r.IntN(2) == 0 {
		x = tab.Indexes[m.r.IntN(n)]
		l = IndexLayout(x)
	}
	ks := m.randomKeySet(l, 4)
	m.compareRead(t, store, tab, x, ks, fmt.Sprintf("key set %v of %s", ks, l.Name()))
}

func (m *model) compareRead(t *testing.T, store *mapWriter, tab *schema.Table, x *schema.Index, ks KeySet, what string) int {
	t.Helper()
	columns := tab.Columns
	if x != nil {
		columns = entryColumns(x)
	}
	want := m.read(tab, x, ks)
	reverse := m.r.IntN(3) == 0
	if reverse {
		slices.Reverse(want)
	}
	n := len(want)
	var limit int64
	if n > 1 && m.r.IntN(3) == 0 {
		limit = 1 + m.r.Int64N(int64(n))
		want = want[:limit]
	}
	p, err := NewProjection(tab, x, columns)
	if err != nil {
		t.Fatal(err)
	}
	spans, err := p.Spans(ks)
	if err != nil {
		t.Fatal(err)
	}
	resume := m.r.IntN(n + 1)
	read := Read{Projection: p, Spans: spans, Reverse: reverse, Limit: limit}
	got := readAll(t, store, read, resume)
	if text := rowsText(columns, want, true); text != rowsText(columns, got, false) {
		t.Fatalf("%s: %s reverse=%v limit=%d resume=%d\ngot\n%swant\n%s", what, p.Name(), reverse, limit, resume, rowsText(columns, got, false), text)
	}
	return n
}

// readAll returns all rows of read. If resume is above 0, readAll stops after that number of rows and continues with
// a new Read.
func readAll(t *testing.T, store *mapWriter, read Read, resume int) [][]value.Value {
	t.Helper()
	var got [][]value.Value
	rows := read.Open(context.Background(), store)
	for {
		ok, err := rows.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return got
		}
		vals := rows.Values(nil)
		var wire []byte
		for i, v := range vals {
			wire = v.AppendWireField(wire, wireTag, read.Columns[i].Type)
		}
		if of := rows.AppendWire(nil); !bytes.Equal(of, wire) {
			t.Fatalf("%v on the wire: %q, want %q", vals, of, wire)
		}
		got = append(got, vals)
		if len(got) == resume && (read.Limit == 0 || read.Limit > int64(resume)) {
			read.Spans = After(read.Spans, rows.Key(), read.Reverse)
			if read.Limit > 0 {
				read.Limit -= int64(resume)
			}
			rows = read.Open(context.Background(), store)
		}
	}
}

// rowsText formats rows as text. The values of a row are indexed by Ordinal if byOrdinal is set, else in the order of
// columns.
func rowsText(columns []*schema.Column, rows [][]value.Value, byOrdinal bool) string {
	var b strings.Builder
	for _, row := range rows {
		for i, c := range columns {
			if byOrdinal {
				i = c.Ordinal
			}
			b.WriteString(show(row[i], c.Type) + " ")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
