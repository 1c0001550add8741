package analyze

import (
	"strings"

	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats/distribution"
	"github.com/crowfoot-db/crowfoot/value"
)

// library is a catalog in GoogleSQL's analyzer. It holds the tables, change streams and other objects that texts may
// name, and the built-in functions and types.
type library struct {
	engine  *engine
	of      *Analyzer // the Analyzer whose schema's objects the catalog holds, or nil
	has     map[*schema.Table]bool
	reads   map[*schema.ChangeStream]bool // the change streams whose read functions the catalog has
	viewed  map[*schema.View]bool         // the views that the catalog has
	takes   map[*schema.Sequence]bool     // the sequences that the catalog has
	bodies  map[string]*body              // the user-defined functions that the catalog has, by lower-cased full name
	outputs []*googlesql.AnalyzerOutput   // the resolved texts of bodies
	types   *googlesql.TypeFactory
	root    *googlesql.SimpleCatalog
	names   *googlesql.MultiCatalog             // looks up names in l.root first, then in engine.builtIns.root
	whole   bool                                // root itself has the built-in functions and types
	schemas map[string]*googlesql.SimpleCatalog // the catalogs of the named schemas, by lower-cased name
	tables  []*schema.Table                     // a table's serialization id is its index in tables
	views   []*schema.View                      // a view's serialization id is -1 minus its index in views
	bundle  *schema.ProtoBundle                 // provides PROTO and ENUM types; may be nil
	pool    *descriptorPool                     // the descriptors of bundle, made when they are first needed
	named   map[string]bool                     // the types of the proto bundle that were added to root, by name

	// root refers to the objects in the three lists below. freeCatalog frees root but not these objects, so
	// library.free frees each of them.
	ownTables  []*googlesql.SimpleTable
	ownColumns []*googlesql.SimpleColumn

	ownSequences []*googlesql.SimpleSequence
}

// newLibrary makes a library without tables. The parameter of is the Analyzer whose tables are added later. The
// parameter bundle provides PROTO and ENUM types. Both may be nil.
func newLibrary(e *engine, of *Analyzer, bundle *schema.ProtoBundle) *library {
	l := &library{
		engine: e, of: of, types: own(googlesql.NewTypeFactory()), schemas: map[string]*googlesql.SimpleCatalog{},
		bundle: bundle, named: map[string]bool{},
		has: map[*schema.Table]bool{}, reads: map[*schema.ChangeStream]bool{}, viewed: map[*schema.View]bool{}, takes: map[*schema.Sequence]bool{},
		bodies: map[string]*body{},
	}
	l.root = own(googlesql.NewSimpleCatalog("", l.types))
	l.names = own(googlesql.NewMultiCatalogCreate("", []googlesql.CatalogNode{l.root, e.builtIns.root}))
	return l
}

// newBuiltIns makes a library with the functions, types and procedures of GoogleSQL and Spanner, which every text may
// name. Making these built-ins takes 5 ms of CPU time, and they need a megabyte. All libraries of an engine share them.
// So a library for a schema version, or for an expression or a view in DDL, costs no more than its own objects.
func newBuiltIns(e *engine) *library {
	l := &library{engine: e, types: own(googlesql.NewTypeFactory()), schemas: map[string]*googlesql.SimpleCatalog{}}
	l.root = own(googlesql.NewSimpleCatalog("", l.types))
	l.addBuiltIns()
	return l
}

// catalog returns the catalog in which GoogleSQL looks up names. That is usually l.names, which joins l.root with the
// shared built-ins. But GoogleSQL does not look for sequences in such a MultiCatalog. So a library with sequences has
// the built-ins in l.root itself, and catalog returns l.root.
func (l *library) catalog() *googlesql.Catalog {
	if l.whole {
		return l.root.Catalog
	}
	return l.names.Catalog
}

// addBuiltIns adds the built-in functions, types and procedures to l.root.
func (l *library) addBuiltIns() {
	if l.whole {
		return
	}
	l.whole = true
	do(l.root.AddBuiltinFunctionsAndTypes(&googlesql.BuiltinFunctionOptions{LanguageOptions: l.engine.language}))
	l.engine.pause()
	for _, f := range spannerFunctions {
		l.addFunction(f)
	}
	for _, name := range sequenceFunctions {
		l.addSequenceFunction(name)
	}
	for _, p := range spannerProcedures {
		signature := l.signature(p.signatures[0])
		do(l.root.AddOwnedProcedure(own(googlesql.NewProcedure([]string{p.name}, signature))))
		freeSignature(signature)
	}
}

// free frees the memory of l in its engine. No goroutine may be using l.
func (l *library) free() {
	if l.engine.discard {
		return
	}
	for _, o := range l.outputs {
		freeOutput(o)
	}
	freeNames(l.names)
	freeCatalog(l.root)
	for _, t := range l.ownTables {
		freeTable(t)
	}
	for _, c := range l.ownColumns {
		freeColumn(c)
	}
	for _, s := range l.ownSequences {
		freeSequence(s)
	}
	freeTypes(l.types)
	if l.pool != nil {
		l.pool.libraries--
	}
}

func (l *library) addTable(t *schema.Table) {
	table := own(googlesql.NewSimpleTable(t.Name, int64(len(l.tables))))
	do(table.SetFullName(t.FullName()))
	l.tables = append(l.tables, t)
	l.ownTables = append(l.ownTables, table)
	for _, c := range t.Columns {
		if c.State == schema.ColumnWriteOnly {
			// A column that is still being added is left out. Such columns come last, so the other columns keep their
			// ordinals.
			continue
		}
		writable := c.Generated == nil
		// A hidden column becomes a pseudo column of GoogleSQL, so that SELECT * leaves it out.
		column := own(googlesql.NewSimpleColumn(t.FullName(), c.Name, l.typeOf(l.types, c.Type), c.Hidden, writable))
		l.ownColumns = append(l.ownColumns, column)
		do(table.AddColumn2(column, false))
	}
	if key := keyOrdinals(t); len(key) > 0 {
		do(table.SetPrimaryKey(key))
	}
	do(l.in(t.Schema).AddTable2(t.Name, table))
	if t.Synonym != "" {
		do(l.in(t.Schema).AddTable2(t.Synonym, table))
	}
}

// addView adds a view. To GoogleSQL it is a table without a key.
func (l *library) addView(v *schema.View) {
	table := own(googlesql.NewSimpleTable(v.Name, int64(-1-len(l.views))))
	do(table.SetFullName(v.FullName()))
	l.views = append(l.views, v)
	l.ownTables = append(l.ownTables, table)
	for _, c := range v.Columns {
		column := own(googlesql.NewSimpleColumn(v.FullName(), c.Name, l.typeOf(l.types, c.Type), false, true))
		l.ownColumns = append(l.ownColumns, column)
		do(table.AddColumn2(column, false))
	}
	do(l.in(v.Schema).AddTable2(v.Name, table))
}

func keyOrdinals(t *schema.Table) []int32 {
	key := make([]int32, len(t.Key))
	for i, part := range t.Key {
		key[i] = int32(part.Column.Ordinal)
	}
	return key
}

// in returns the catalog for the schema called name. That is l.root for the default schema "", and otherwise a catalog
// within l.root, which is made when it is first needed.
func (l *library) in(name string) *googlesql.SimpleCatalog {
	if name == "" {
		return l.root
	}
	lower := strings.ToLower(name)
	if l.schemas[lower] == nil {
		l.schemas[lower] = get(l.root.MakeOwnedSimpleCatalog(name))
	}
	return l.schemas[lower]
}

// function is a function or procedure of Spanner that GoogleSQL itself does not have.
type function struct {
	schema     string // name of the schema that has the function; "" for the default schema
	name       string
	signatures []signature
}

type signature struct {
	result *value.Type // nil for a procedure
	args   []*value.Type
}

var spannerFunctions = []function{
	{"", "pending_commit_timestamp", []signature{{value.TimestampType, nil}}},
	{"", "get_table_column_identity_state", []signature{{value.Int64Type, []*value.Type{value.StringType}}}},
	{"", "bit_reverse", []signature{{value.Int64Type, []*value.Type{value.Int64Type, value.BoolType}}}},
	{"SPANNER_SYS", "DISTRIBUTION_PERCENTILE", []signature{
		{value.Float64Type, []*value.Type{distribution.Type.Elem, value.Float64Type}},
		{value.Float64Type, []*value.Type{value.StringType, value.Float64Type}},
	}},
}

var spannerProcedures = []function{
	{"", "cancel_query", []signature{{nil, []*value.Type{value.StringType}}}},
	{"", "compact_all", []signature{{nil, nil}}},
}

func (l *library) addFunction(f function) {
	path := []string{f.name}
	if f.schema != "" {
		path = []string{f.schema, f.name}
	}
	signatures := make([]*googlesql.FunctionSignature, len(f.signatures))
	for i, s := range f.signatures {
		signatures[i] = l.signature(s)
	}
	do(l.in(f.schema).AddOwnedFunction(own(googlesql.NewFunction2(path, spannerGroup, googlesql.FunctionEnums_ModeScalar, signatures))))
	for _, s := range signatures {
		freeSignature(s)
	}
}

func (l *library) signature(s signature) *googlesql.FunctionSignature {
	result := own(googlesql.NewFunctionArgumentType4(googlesql.SignatureArgumentKindArgTypeVoid, 1))
	if s.result != nil {
		freeArgument(result)
		result = own(googlesql.NewFunctionArgumentType3(l.typeOf(l.types, s.result), 1))
	}
	args := make([]*googlesql.FunctionArgumentType, len(s.args))
	for i, t := range s.args {
		args[i] = own(googlesql.NewFunctionArgumentType3(l.typeOf(l.types, t), 1))
	}
	// NewFunctionSignature3 copies result and args, so that they can be freed.
	signature := own(googlesql.NewFunctionSignature3(result, args, 0))
	freeArgument(result)
	for _, arg := range args {
		freeArgument(arg)
	}
	return signature
}
