package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/crowfoot-db/crowfoot/value"
)

// errDangling is an encoded catalog in which an object refers to one that the catalog does not hold.
var errDangling = errors.New("reference to a missing object")

// Unmarshal decodes what Marshal made of a catalog and the version before it, which is nil for the first version. Expressions are compiled
// when they are first computed.
func Unmarshal(before *Catalog, e *Encoding, compiler Compiler) (*Catalog, error) {
	var s storedCatalog
	if err := json.Unmarshal(e.Catalog, &s); err != nil {
		return nil, fmt.Errorf("decode catalog: %w", err)
	}
	if s.Format != storageFormat {
		return nil, fmt.Errorf("decode catalog: unknown format %d, this program knows %d", s.Format, storageFormat)
	}
	if before == nil {
		before = NewCatalog()
	}
	l := loader{before.draft(nil, compiler)}
	l.Database, l.Version, l.NextID, l.Schemas, l.Options = s.Database, s.Version, s.NextID, s.Schemas, s.Options
	tables, err := l.loadObjects(e.Objects)
	if err != nil {
		return nil, fmt.Errorf("decode catalog: %w", err)
	}
	if err := l.load(tables); err != nil {
		return nil, fmt.Errorf("decode catalog: %w", err)
	}
	if err := l.loadChangeStreams(s.ChangeStreams); err != nil {
		return nil, fmt.Errorf("decode catalog: %w", err)
	}
	l.measure()
	return l.Catalog, nil
}

// loader builds a catalog from its encoding.
type loader struct{ *draft }

// loading is a table that is being loaded, and what is stored of it.
type loading struct {
	*Table
	stored storedTable
	before *Table // of the version before, or nil
}

// load puts tables in the places of those of the version before. Tables that others refer to are there before their references are resolved.
func (l *loader) load(encoded map[TableID][]byte) error {
	var list []loading
	var dropped []*Table
	for _, id := range slices.Sorted(maps.Keys(encoded)) {
		before := l.TableByID(id)
		if before != nil {
			l.leave(before)
		}
		if encoded[id] == nil {
			if before != nil {
				dropped = append(dropped, before)
			}
			continue
		}
		t := loading{before: before}
		if err := json.Unmarshal(encoded[id], &t.stored); err != nil {
			return err
		}
		if t.stored.ID != id {
			return fmt.Errorf("table %d is stored as %d", t.stored.ID, id)
		}
		var err error
		if t.Table, err = l.loadTable(t.stored); err != nil {
			return fmt.Errorf("table %s: %w", t.stored.Name, err)
		}
		l.adopt(t.Table)
		l.renamed = l.renamed || before != nil && before.Name != t.Name
		list = append(list, t)
	}
	for _, resolve := range []func(loading) error{l.loadParent, l.loadIndexes, l.loadForeignKeys, l.loadExpressions} {
		for _, t := range list {
			if err := resolve(t); err != nil {
				return fmt.Errorf("table %s: %w", t.stored.Name, err)
			}
		}
	}
	for _, t := range list {
		l.enter(t.Table)
	}
	for _, t := range dropped {
		if referrers := slices.Collect(l.referrersOf(t)); len(referrers) > 0 {
			return fmt.Errorf("table %s refers to table %s, which was dropped: %w", referrers[0].FullName(), t.FullName(), errDangling)
		}
	}
	l.renewCallers(encoded)
	return l.relinkAll(list)
}

// renewCallers makes expressions anew that call functions which are not as in the version before, of tables that are.
func (l *loader) renewCallers(encoded map[TableID][]byte) {
	var changed []*Function
	differences(l.old.objects, l.objects, func(_ TableID, before, after Object) {
		if f, ok := after.(*Function); ok && before != nil {
			changed = append(changed, f)
		}
	})
	if len(changed) == 0 { // nearly always: a start reads thousands of versions of thousands of tables
		return
	}
	calls := func(e *Expr) bool { return slices.ContainsFunc(changed, e.calls) }
	renewed := func(t *Table, e *Expr, want *value.Type) *Expr {
		if !calls(e) {
			return e
		}
		return l.expr(t, e.SQL, want, e.Uses, e.Functions)
	}
	for _, t := range slices.Collect(l.Tables()) {
		_, loaded := encoded[t.ID]
		if loaded || !t.calls(calls) {
			continue
		}
		t = l.own(t)
		for _, c := range t.Columns {
			c.Default, c.Generated = renewed(t, c.Default, c.Type), renewed(t, c.Generated, c.Type)
		}
		for _, c := range t.Checks {
			c.Expr = renewed(t, c.Expr, value.BoolType)
		}
	}
}

// calls says whether some expression of the table is one that calls.
func (t *Table) calls(calls func(*Expr) bool) bool {
	return slices.ContainsFunc(t.Columns, func(c *Column) bool { return calls(c.Default) || calls(c.Generated) }) ||
		slices.ContainsFunc(t.Checks, func(c *Check) bool { return calls(c.Expr) })
}

// relinkAll makes tables that are as they were point at the new ones. What they need of these must be there.
func (l *loader) relinkAll(list []loading) error {
	for _, t := range list {
		if t.before != nil {
			l.relink(t.Table)
		}
	}
	var err error
	differences(l.old.tables, l.tables, func(_ TableID, _, t *Table) {
		if t != nil && !t.resolved() {
			err = fmt.Errorf("table %s: %w", t.FullName(), errDangling)
		}
	})
	return err
}

// resolved says whether all references of a table lead somewhere.
func (t *Table) resolved() bool {
	return (t.Parent != nil) == (t.Interleave != NotInterleaved) && !slices.ContainsFunc(t.ForeignKeys, func(fk *ForeignKey) bool {
		return fk.Referenced == nil || slices.Contains(fk.ReferencedColumns, nil)
	})
}

// loadTable makes a table without what refers to others, and without expressions.
func (l *loader) loadTable(s storedTable) (*Table, error) {
	t := &Table{ID: s.ID, Schema: s.Schema, Name: s.Name, NextColumn: s.NextColumn, ColumnarPolicy: s.Columnar, LocalityGroup: s.Locality, Synonym: s.Synonym}
	if s.ProtoBundle != 0 {
		t.ProtoBundle = l.ProtoBundle()
	}
	t.Columns = make([]*Column, len(s.Columns))
	for i, sc := range s.Columns {
		c, err := loadColumn(sc, t.ProtoBundle)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", sc.Name, err)
		}
		c.Ordinal = i
		t.Columns[i] = c
	}
	var err error
	if t.Key, err = t.loadKey(s.Key); err != nil {
		return nil, err
	}
	for i, p := range t.Key {
		p.Column.KeyOrdinal = i
	}
	if p := s.RowDeletion; p != nil {
		c, err := t.byID(p.Column)
		if err != nil {
			return nil, err
		}
		t.RowDeletionPolicy = &RowDeletionPolicy{Column: c, Days: p.Days}
	}
	for how, name := range interleaveNames {
		if name == s.Interleave {
			t.Interleave = how
		}
	}
	return t, nil
}

// loadParent finds the parent, which is older than the table.
func (l *loader) loadParent(t loading) error {
	if t.stored.Parent == 0 {
		return nil
	}
	if t.Parent = l.TableByID(t.stored.Parent); t.Parent == nil || t.Parent.ID >= t.ID {
		return errDangling
	}
	return nil
}

func loadColumn(s storedColumn, bundle *ProtoBundle) (*Column, error) {
	c := &Column{
		ID: s.ID, Name: shared(s.Name), MaxLength: s.Length, LengthIsMax: s.Max, VectorLength: s.VectorLength, NotNull: s.NotNull, Hidden: s.Hidden,
		AllowCommitTimestamp: s.CommitTimestamp, LocalityGroup: s.Locality, PlacementKey: s.PlacementKey, Stored: s.Stored, KeyOrdinal: -1,
	}
	if s.WriteOnly {
		c.State = ColumnWriteOnly
	}
	switch kind := value.Kind(s.Kind); kind {
	case value.String:
		c.Type = value.StringType
	case value.Bytes:
		c.Type = value.BytesType
	case value.Proto, value.Enum:
		c.Type = bundle.Type(s.TypeName)
	default:
		c.Type = scalarTypes[kind.String()]
	}
	if c.Type == nil || int(c.Type.Kind) != s.Kind {
		return nil, fmt.Errorf("unknown type %d", s.Kind)
	}
	if s.Array {
		c.Type = value.ArrayOf(c.Type)
	}
	return c, nil
}

// loadChangeStreams puts change streams in the places of those of the version before. One that is stored as it was before is the same.
func (l *loader) loadChangeStreams(stored []storedChangeStream) error {
	for _, old := range l.old.Streams {
		l.names = l.names.without(key("", old.Name))
	}
	l.Streams = nil
	for _, s := range stored {
		loaded, err := l.loadChangeStream(s)
		if err != nil {
			return fmt.Errorf("change stream %s: %w", s.Name, err)
		}
		for _, old := range l.old.Streams {
			if reflect.DeepEqual(old, loaded) {
				loaded = old
			}
		}
		l.Streams = append(l.Streams, loaded)
		l.enterChangeStream(loaded)
	}
	return nil
}

func (l *loader) loadChangeStream(stored storedChangeStream) (*ChangeStream, error) {
	s := &ChangeStream{ID: stored.ID, Name: stored.Name, All: stored.All, Options: stored.Options}
	for _, w := range stored.Tables {
		t := l.TableByID(w.Table)
		if t == nil {
			return nil, errDangling
		}
		if _, err := t.loadColumns(w.Columns); err != nil {
			return nil, err
		}
		s.Tables = append(s.Tables, WatchedTable(w))
	}
	s.obeyOptions()
	return s, nil
}

func (t *Table) byID(id ColumnID) (*Column, error) {
	if c := t.columnByID(id); c != nil {
		return c, nil
	}
	return nil, errDangling
}

func (t *Table) loadKey(stored []storedKeyPart) ([]KeyPart, error) {
	var key []KeyPart
	for _, s := range stored {
		c, err := t.byID(s.Column)
		if err != nil {
			return nil, err
		}
		key = append(key, KeyPart{Column: c, Desc: s.Desc})
	}
	return key, nil
}

func (t *Table) loadColumns(ids []ColumnID) ([]*Column, error) {
	var columns []*Column
	for _, id := range ids {
		c, err := t.byID(id)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	return columns, nil
}

func (l *loader) loadIndexes(t loading) error {
	for _, s := range t.stored.Indexes {
		if err := l.loadIndex(t.Table, s); err != nil {
			return fmt.Errorf("index %s: %w", s.Name, err)
		}
	}
	return nil
}

func (l *loader) loadIndex(t *Table, s storedIndex) (err error) {
	i := &Index{
		ID: s.ID, Schema: s.Schema, Name: s.Name, Table: t, Unique: s.Unique, NullFiltered: s.NullFiltered, Managed: s.Managed,
		ColumnarPolicy: s.Columnar, LocalityGroup: s.Locality,
	}
	if s.WriteOnly {
		i.State = IndexWriteOnly
	}
	if s.ValidateUnique {
		i.State = IndexValidateUnique
	}
	if i.Key, err = t.loadKey(s.Key); err != nil {
		return err
	}
	if i.Storing, err = t.loadColumns(s.Storing); err != nil {
		return err
	}
	if i.NotNullColumns, err = t.loadColumns(s.NotNull); err != nil {
		return err
	}
	if err := i.complete(); err != nil {
		return err
	}
	if s.Parent != 0 {
		if i.Parent = l.TableByID(s.Parent); i.Parent == nil {
			return errDangling
		}
	}
	t.Indexes = append(t.Indexes, i)
	return nil
}

func (l *loader) loadForeignKeys(t loading) error {
	for _, s := range t.stored.ForeignKeys {
		if err := l.loadForeignKey(t.Table, s); err != nil {
			return fmt.Errorf("foreign key %s: %w", s.Name, err)
		}
	}
	return nil
}

func (l *loader) loadForeignKey(t *Table, s storedForeignKey) (err error) {
	fk := &ForeignKey{
		Name: s.Name, NameGenerated: s.Generated, Table: t, Referenced: l.TableByID(s.Referenced),
		Cascade: s.Cascade, NotEnforced: s.NotEnforced, Index: t.indexByID(s.Index),
	}
	if fk.Referenced == nil {
		return errDangling
	}
	fk.ReferencedIndex = fk.Referenced.indexByID(s.ReferencedIndex)
	if s.Index != 0 && fk.Index == nil || s.ReferencedIndex != 0 && fk.ReferencedIndex == nil {
		return errDangling
	}
	if fk.Columns, err = t.loadColumns(s.Columns); err != nil {
		return err
	}
	if fk.ReferencedColumns, err = fk.Referenced.loadColumns(s.ReferencedColumns); err != nil {
		return err
	}
	t.ForeignKeys = append(t.ForeignKeys, fk)
	return nil
}

// loadExpressions makes the expressions of a table. If it is not stored what they read, as in format 1, all are compiled at once.
func (l *loader) loadExpressions(t loading) error {
	for _, s := range t.stored.Checks {
		uses, err := t.loadColumns(s.Uses)
		if err != nil {
			return err
		}
		t.Checks = append(t.Checks, &Check{Name: s.Name, NameGenerated: s.Generated, Expr: l.expr(t.Table, s.SQL, value.BoolType, uses, s.Calls)})
	}
	for i, s := range t.stored.Columns {
		c := t.Columns[i]
		switch {
		case s.Identity != nil:
			c.Identity = s.Identity
			c.Default = nextOf(t.Table, c, l.compiler)
		case s.Default != nil:
			c.Default = l.expr(t.Table, *s.Default, c.Type, nil, s.DefaultCalls)
		}
		if s.OnUpdate != nil && c.Default != nil {
			c.OnUpdate = &Expr{SQL: *s.OnUpdate, Eval: c.Default.Eval}
		}
		if s.Generated != nil {
			uses, err := t.loadColumns(s.GeneratedUses)
			if err != nil {
				return err
			}
			c.Generated = l.expr(t.Table, *s.Generated, c.Type, uses, s.GeneratedCalls)
		}
	}
	if t.hasUnknownUses() {
		return l.recompile(t.Table)
	}
	return nil
}

// hasUnknownUses says whether it is not stored what some expression reads. Every check reads a column. A generated column may read none: then
// it is compiled at once too, which does no harm.
func (t *Table) hasUnknownUses() bool {
	return slices.ContainsFunc(t.Checks, func(c *Check) bool { return len(c.Expr.Uses) == 0 }) ||
		slices.ContainsFunc(t.Columns, func(c *Column) bool { return c.Generated != nil && len(c.Generated.Uses) == 0 })
}

// expr is an expression that is compiled when it is first computed: a start with thousands of them does not wait for the analyzer.
func (l *loader) expr(t *Table, sql string, want *value.Type, uses []*Column, calls []TableID) *Expr {
	e := &storedExpr{compiler: l.compiler, catalog: l.Catalog, table: t, sql: sql, want: want, uses: uses}
	return &Expr{SQL: sql, Uses: uses, Functions: calls, Eval: e.compute}
}

// storedExpr is an expression that was stored. If it cannot be compiled, because there is no memory for example, it is tried again when it
// is next computed.
type storedExpr struct {
	compiler Compiler
	catalog  *Catalog // that it was loaded with
	table    *Table
	sql      string
	want     *value.Type
	uses     []*Column

	compiling sync.Mutex
	eval      atomic.Pointer[func([]value.Value) (value.Value, error)] // nil until it is compiled
}

func (e *storedExpr) compute(args []value.Value) (value.Value, error) {
	eval := e.eval.Load()
	if eval == nil {
		var err error
		if eval, err = e.compile(); err != nil {
			return value.Value{}, fmt.Errorf("compile stored expression %q of table %s: %w", e.sql, e.table.FullName(), err)
		}
	}
	return (*eval)(args)
}

func (e *storedExpr) compile() (*func([]value.Value) (value.Value, error), error) {
	e.compiling.Lock()
	defer e.compiling.Unlock()
	if eval := e.eval.Load(); eval != nil {
		return eval, nil
	}
	compiled, err := e.compiler.CompileExpr(e.catalog, e.table, e.sql, e.want)
	if err != nil {
		return nil, err
	}
	eval, err := compiled.reading(e.uses)
	if err != nil {
		return nil, err
	}
	e.eval.Store(&eval)
	return &eval, nil
}

// reading computes the expression from the values of columns in another order than that of Uses: the order in which a release finds
// the columns of an expression is its own.
func (e *Expr) reading(columns []*Column) (func([]value.Value) (value.Value, error), error) {
	if slices.Equal(e.Uses, columns) {
		return e.Eval, nil
	}
	places := make([]int, len(e.Uses))
	for i, c := range e.Uses {
		if places[i] = slices.Index(columns, c); places[i] < 0 {
			return nil, fmt.Errorf("expression %q reads column %s, which it did not read when it was stored", e.SQL, c.Name)
		}
	}
	return func(args []value.Value) (value.Value, error) {
		ordered := make([]value.Value, len(places))
		for i, at := range places {
			ordered[i] = args[at]
		}
		return e.Eval(ordered)
	}, nil
}
