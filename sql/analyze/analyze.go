// Package analyze turns the SQL text of a statement into a tree with resolved names, checked types, typed parameters
// and checked hints. Only this package may import GoogleSQL's analyzer. The comments call that analyzer "the library".
//
// An Analyzer serves one version of a schema. Many goroutines may use an Analyzer at once, because several instances
// of the library work side by side (engine.go). A heavy statement, one that needs much work, gets an instance for
// itself, so that no other statement waits for it (pool.go). The trees that the package returns do not refer to objects
// of the library. The error of a statement that cannot be analyzed depends on the cause:
//
//   - If GoogleSQL refuses the text, the error is INVALID_ARGUMENT, with GoogleSQL's message and the line and column.
//   - If the text uses a feature that Spanner has and Crowfoot lacks, the error is UNIMPLEMENTED. It names the feature.
//   - If the library itself breaks down, the error is INTERNAL. The next statement is analyzed as usual.
//
// The library does not bound the depth or the size of a text, so guard.go checks both before the library gets the text.
// guard.go and tally.go also check those of Spanner's limits that can be checked from the tokens of a text alone.
//
// Normalize and KindOf read a text without the library, in about a microsecond.
//
// This package does not fold constants beyond what the library folds, does not make plans, and does not analyze DDL
// statements.
//
// Imports of this module: memory, schema, sql/tree, stats/cpu, stats/distribution, usererror, value.
package analyze

import (
	"context"
	"strings"
	"time"

	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Analyzer analyzes statements over one version of a schema.
type Analyzer struct {
	catalog *schema.Catalog
	system  map[string]*schema.Table // the system tables, by full name in lower case
	memory  *memory.Budget           // memory of heavy statements is charged to this budget; nil: it is not charged
}

// New makes an Analyzer for a catalog and system tables. The memory that heavy statements need for their analysis is
// charged to budget, which may be nil.
func New(catalog *schema.Catalog, budget *memory.Budget, system ...*schema.Table) *Analyzer {
	a := &Analyzer{catalog: catalog, memory: budget, system: make(map[string]*schema.Table, len(system))}
	for _, t := range system {
		a.system[strings.ToLower(t.FullName())] = t
	}
	return a
}

// Release frees the memory that GoogleSQL's library holds for the schema. The caller calls it when the schema is no
// longer current. The Analyzer stays usable: the next statement hands the schema to the library again.
func (a *Analyzer) Release() {
	engines.forget(a)
}

// Options control the analysis of a statement.
type Options struct {
	// AllowUnbound accepts parameters in the text that are missing from the argument params of Statement, and infers
	// their types. It is for QueryMode PLAN.
	AllowUnbound bool
}

// Statement analyzes one statement. params holds the types of the request's parameters by name; the type is nil for a
// parameter without a declared type. Statement fails with ctx's error if ctx ends while the statement waits for its
// turn to be analyzed, or during the analysis if the statement is a heavy one (see pool).
func (a *Analyzer) Statement(ctx context.Context, sql string, params map[string]*value.Type, opts Options) (tree.Statement, *Findings, error) {
	weight, err := guard(sql, a.columns)
	if err != nil {
		return nil, nil, pointed(sql, err)
	}
	w := &walker{catalog: a.catalog, allowUnbound: opts.AllowUnbound}
	w.declare(params)
	var stmt tree.Statement
	err = a.with(ctx, weight, sql, func(l *library) {
		stmt = w.analyze(l, sql)
	})
	if err != nil {
		return nil, nil, pointed(sql, err)
	}
	return stmt, &Findings{Inferred: w.inferred, Objects: w.objects}, nil
}

// Findings are the results of an analysis besides the tree.
type Findings struct {
	// Inferred holds the types of the parameters without a declared type, by lower-cased name. It lacks parameters that
	// the statement does not use.
	Inferred map[string]*value.Type
	// Objects are the views, functions and sequences that the statement uses, directly or through views and functions.
	Objects []schema.Object
}

// with calls f and passes it a library that holds the schema objects whose names occur in sql.
func (a *Analyzer) with(ctx context.Context, weight int, sql string, f func(*library)) error {
	named := a.namesIn(sql)
	return engines.run(ctx, weight+a.weightOf(named.views), a.memory, func(e *engine) {
		l := e.library(a)
		l.addNamed(named)
		f(l)
	})
}

// columns returns how many columns the table or view called name has; 0 if there is no such table or view.
func (a *Analyzer) columns(name string) int {
	if t := a.table(name); t != nil {
		return len(t.Columns)
	}
	if v := a.catalog.View(name); v != nil {
		return len(v.Columns)
	}
	return 0
}

// walker turns one statement that GoogleSQL's library has resolved into a tree.
type walker struct {
	catalog *schema.Catalog
	lib     *library
	sql     string
	zone    *time.Location // the time zone of timestamp literals that name none; nil: GoogleSQL's default zone
	zeros   bool           // sql contains a negative zero

	declared     map[string]*value.Type // types of the parameters by lower-cased name; nil: no type given
	inferred     map[string]*value.Type
	allowUnbound bool
	// literals is for LiteralTypes. Its keys are the byte offsets in sql at which literals end. Each value points to
	// the place where the type of that literal must be stored.
	literals map[int]**value.Type

	definition *definition // the objects that sql names, if sql defines a view or function; nil in a statement
	nested     bool        // sql is the text of a view or function that the user's statement names

	args    map[string]tree.Expr // if sql is a function's text: its arguments by lower-cased parameter name
	columns map[int32]tree.Col   // the columns met so far in sql, by GoogleSQL's column id
	base    int                  // added to GoogleSQL's column ids, which are unique only within sql
	fields  int                  // number of fields of the type that typeOf converts, nested fields included
	*progress
}

// progress is the state that the walk through a statement's text shares with the walks through the texts of its views
// and functions.
type progress struct {
	counts  counts
	nextCol int             // the lowest ID of a tree.Col that is still free
	objects []schema.Object // the views, functions and sequences found so far, each once
}

func (w *walker) declare(params map[string]*value.Type) {
	w.declared = make(map[string]*value.Type, len(params))
	for name, t := range params {
		w.declared[strings.ToLower(name)] = t
	}
}

// analyze analyzes a statement. The pool of engines may stop a call and repeat it, so analyze first discards the
// results of an earlier call.
func (w *walker) analyze(l *library, sql string) (stmt tree.Statement) {
	w.begin()
	w.resolve(l, sql, func(n googlesql.ResolvedStatementNode) { stmt = w.statement(n) })
	return stmt
}

// begin discards the results of an analysis that the pool has stopped.
func (w *walker) begin() { w.inferred, w.progress = map[string]*value.Type{}, &progress{} }

// resolve lets the library resolve a text, and then calls walk with the resolved statement.
func (w *walker) resolve(l *library, sql string, walk func(googlesql.ResolvedStatementNode)) {
	w.enter(l, sql)
	types := own(googlesql.NewTypeFactory())
	defer free(l.engine, freeTypes, types)
	options := w.options(types)
	defer free(l.engine, freeOptions, options)
	out, err := l.engine.analyze(sql, options, l.catalog(), types)
	if err != nil && l.suggest(err) {
		out, err = l.engine.analyze(sql, options, l.catalog(), types)
	}
	if err != nil {
		panic(failure{w.refusal(err)})
	}
	defer free(l.engine, freeOutput, out)
	w.checkWindow()
	w.base = w.nextCol
	w.nextCol += int(get(out.MaxColumnId())) + 1
	walk(get(out.ResolvedStatement()))
}

// enter prepares w for the walk through a text.
func (w *walker) enter(l *library, sql string) {
	w.columns = map[int32]tree.Col{}
	w.lib, w.sql, w.zone, w.zeros = l, sql, zoneOf(w.catalog, l.engine), hasNegativeZero(sql)
}

// options returns the library's settings for one statement, with its declared parameters.
func (w *walker) options(types *googlesql.TypeFactory) *googlesql.AnalyzerOptions {
	language := w.lib.engine.language
	if w.definition != nil {
		language = w.lib.engine.definitions
	}
	o := own(googlesql.NewAnalyzerOptions(language))
	do(o.SetErrorMessageMode(googlesql.ErrorMessageModeErrorMessageOneLine))
	do(o.SetParameterMode(googlesql.ParameterModeParameterNamed))
	do(o.SetAllowUndeclaredParameters(true))
	do(o.SetPruneUnusedColumns(true))
	if w.zone != nil {
		do(o.SetFoldLiteralCast(false))
	}
	if w.zone != nil || w.zeros || w.literals != nil {
		do(o.SetParseLocationRecordType(googlesql.ParseLocationRecordTypeParseLocationRecordFullNodeScope))
	}
	for _, r := range rewritesOff {
		do(o.EnableRewrite(r, false))
	}
	assumed := procedureParameters(w.sql)
	for name, t := range w.declared {
		if t != nil {
			delete(assumed, name)
			do(o.AddQueryParameter(name, w.lib.typeOf(types, t)))
		}
	}
	for name, t := range assumed {
		do(o.AddQueryParameter(name, w.lib.typeOf(types, t)))
	}
	return o
}

// col translates a column of the resolved statement.
func (w *walker) col(c *googlesql.ResolvedColumn) tree.Col {
	w.lib.engine.rest()
	id := get(c.ColumnId())
	if col, ok := w.columns[id]; ok {
		return col
	}
	col := tree.Col{ID: w.base + int(id), Name: get(c.Name()), Type: w.typeOf(get(c.Type()))}
	w.columns[id] = col
	return col
}

func (w *walker) cols(list []*googlesql.ResolvedColumn) []tree.Col {
	cols := make([]tree.Col, len(list))
	for i, c := range list {
		cols[i] = w.col(c)
	}
	return cols
}

// unsupported ends the analysis with UNIMPLEMENTED: the statement uses a feature that the tree cannot express.
func unsupported(feature string) { refuse(usererror.SQLUnimplemented(feature)) }
