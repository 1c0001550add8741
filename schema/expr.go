package schema

import (
	"errors"
	"strings"

	"github.com/cloudspannerecosystem/memefish/token"

	"github.com/crowfoot-db/crowfoot/schema/syntax"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// nonDeterministic lists the functions whose result differs from call to call.
var nonDeterministic = map[string]bool{
	"RAND": true, "GENERATE_UUID": true, "NEW_UUID": true, "CURRENT_TIMESTAMP": true, "CURRENT_DATE": true,
	"PENDING_COMMIT_TIMESTAMP": true, "PENDING_COMMIT_TIMESTAMP_INT64": true,
	"GET_NEXT_SEQUENCE_VALUE": true, "GET_INTERNAL_SEQUENCE_STATE": true, "GET_TABLE_COLUMN_IDENTITY_STATE": true,
}

// survey reads the tokens of an expression. It returns the first non-deterministic function that the expression calls,
// or "". It returns an error if the expression contains a subquery. The parameter where holds the kind of expression in
// this error, such as "check constraints". A function that is called without parentheses is not found if t has a column
// of that name.
func survey(t *Table, sql, where string) (function string, err error) {
	lexer := syntax.NewLexer(sql)
	last := ""
	for {
		if err := lexer.Next(); err != nil {
			return "", err
		}
		kind := lexer.Token.Kind
		if kind == "SELECT" || kind == "GRAPH_TABLE" {
			// Users see this text as a sentence in a longer message, such as that of usererror.BadCheck.
			return "", errors.New("Cannot use non-scalar expressions inside " + where + ".")
		}
		called := kind == "(" || strings.HasPrefix(last, "CURRENT_") && t.Column(last) == nil
		if called && nonDeterministic[last] && function == "" {
			function = last
		}
		if kind == token.TokenEOF {
			return function, nil
		}
		last = strings.ToUpper(lexer.Token.Raw)
	}
}

// compile compiles the text of an expression over the columns of t.
func (d *draft) compile(t *Table, sql string, want *value.Type) (*Expr, error) {
	d.bindProtos(t, sql)
	e, err := d.compiler.CompileExpr(d.Catalog, t, sql, want)
	if err == nil {
		e.bundle = t.ProtoBundle
	}
	return e, err
}

// compileDefault compiles the column's DEFAULT.
func (d *draft) compileDefault(t *Table, c *Column) error {
	if _, err := survey(t, c.Default.SQL, "column default values"); err != nil {
		return usererror.BadDefault(t.FullName(), c.Name, err)
	}
	e, err := d.compile(t, c.Default.SQL, c.Type)
	if err != nil {
		return usererror.BadDefault(t.FullName(), c.Name, err)
	}
	if len(e.Uses) > 0 {
		return usererror.DefaultReadsColumn(c.Name)
	}
	c.Default = e
	return c.checkTimestampDefault()
}

// pendingTimestamp is the expression PENDING_COMMIT_TIMESTAMP() as syntax.Words returns it.
const pendingTimestamp = "PENDING_COMMIT_TIMESTAMP ( )"

// checkTimestampDefault checks the column's DEFAULT. If the column has allow_commit_timestamp, the DEFAULT must be
// PENDING_COMMIT_TIMESTAMP(); otherwise it must be another expression.
func (c *Column) checkTimestampDefault() error {
	if c.Default == nil {
		return nil
	}
	switch isPending := strings.ToUpper(syntax.Words(c.Default.SQL)) == pendingTimestamp; {
	case c.AllowCommitTimestamp && !isPending:
		return usererror.CommitTimestampDefault(c.Name)
	case isPending && !c.AllowCommitTimestamp:
		return usererror.PendingTimestampDefault(c.Name)
	}
	return nil
}

// compileOnUpdate compiles the column's ON UPDATE. The expression must be PENDING_COMMIT_TIMESTAMP(), and equal the
// column's DEFAULT word for word.
func (d *draft) compileOnUpdate(t *Table, c *Column) error {
	sql := syntax.Words(c.OnUpdate.SQL)
	switch {
	case c.KeyOrdinal >= 0:
		return usererror.OnUpdateOfKey(t.FullName(), c.Name)
	case c.Default == nil:
		return usererror.OnUpdateWithoutDefault(c.Name)
	case syntax.Words(c.Default.SQL) != sql:
		return usererror.OnUpdateNotDefault(c.Name)
	case strings.ToUpper(sql) != pendingTimestamp:
		return usererror.OnUpdateExpression()
	}
	c.OnUpdate = &Expr{SQL: c.OnUpdate.SQL, Uses: c.Default.Uses, Functions: c.Default.Functions, Eval: c.Default.Eval, bundle: c.Default.bundle}
	return nil
}

// compileGenerated compiles the expression e of the column's AS (e).
func (d *draft) compileGenerated(t *Table, c *Column) error {
	where := "generated columns"
	if c.Stored {
		where = "stored generated columns"
	}
	function, err := survey(t, c.Generated.SQL, where)
	if err != nil {
		return usererror.BadGenerated(t.FullName(), c.Name, err)
	}
	if function != "" {
		return usererror.NonDeterministic(function, "generated column `"+t.FullName()+"."+c.Name+"`")
	}
	if !c.Stored && c.NotNull {
		return usererror.BadGenerated(t.FullName(), c.Name, errors.New("a generated column that is not STORED cannot be NOT NULL"))
	}
	if !c.Stored && c.MaxLength > 0 && !c.LengthIsMax {
		return usererror.BadGenerated(t.FullName(), c.Name, errors.New("a generated column that is not STORED must have length MAX"))
	}
	e, err := d.compile(t, c.Generated.SQL, c.Type)
	if err != nil {
		return usererror.BadGenerated(t.FullName(), c.Name, err)
	}
	if f := e.unstable(); f != "" {
		return usererror.NonDeterministic(f, "generated column `"+t.FullName()+"."+c.Name+"`")
	}
	for _, u := range e.Uses {
		if u.AllowCommitTimestamp {
			return usererror.GeneratedReadsCommitTimestamp(u.Name)
		}
	}
	c.Generated = e
	return nil
}

// checkGenerated checks which columns the table's generated columns read. The caller has compiled the generated
// columns.
func checkGenerated(t *Table) error {
	for _, c := range t.Columns {
		if c.Generated == nil {
			continue
		}
		if err := checkCycle(c); err != nil {
			return err
		}
		if c.KeyOrdinal >= 0 {
			if err := checkGeneratedKey(t, c); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkGeneratedKey(t *Table, c *Column) error {
	where := t.FullName() + "." + c.Name
	others := 0
	for _, u := range c.Generated.Uses {
		switch {
		case u.Generated != nil:
			return usererror.GeneratedKey(where, "it reads the generated column "+u.Name)
		case u.KeyOrdinal >= 0:
		case u.Default != nil:
			return usererror.GeneratedKey(where, "it reads the non-key column "+u.Name+", which has a DEFAULT")
		default:
			others++
		}
	}
	if others > 1 {
		return usererror.GeneratedKey(where, "it reads more than one non-key column")
	}
	return nil
}

// checkCycle returns an error if the values of a generated column depend on the column itself, directly or through other
// generated columns.
func checkCycle(start *Column) error {
	visited := map[*Column]bool{}
	var visit func(c *Column, path string) error
	visit = func(c *Column, path string) error {
		for _, u := range c.Generated.Uses {
			if u == start {
				return usererror.GeneratedCycle(path)
			}
			if u.Generated == nil || visited[u] {
				continue
			}
			visited[u] = true
			if err := visit(u, path+","+u.Name); err != nil {
				return err
			}
		}
		return nil
	}
	return visit(start, start.Name)
}

// compileColumn compiles the expressions of the column: DEFAULT, ON UPDATE, AS.
func (d *draft) compileColumn(t *Table, c *Column) error {
	switch {
	case c.Identity != nil:
		c.Default = nextOf(t, c, d.compiler)
	case c.Default != nil:
		if err := d.compileDefault(t, c); err != nil {
			return err
		}
	}
	if c.OnUpdate != nil {
		if err := d.compileOnUpdate(t, c); err != nil {
			return err
		}
	}
	if c.Generated != nil {
		return d.compileGenerated(t, c)
	}
	return nil
}

// givenName returns the constraint's name as errors about its expression show it.
func (c *Check) givenName() string {
	if c.NameGenerated {
		return "<unnamed>"
	}
	return c.Name
}

// compileCheck compiles a CHECK constraint.
func (d *draft) compileCheck(t *Table, c *Check) error {
	function, err := survey(t, c.Expr.SQL, "check constraints")
	if err != nil {
		return usererror.BadCheck(t.FullName(), c.givenName(), c.Expr.SQL, err)
	}
	if function != "" {
		return usererror.NonDeterministic(function, "check constraint `"+t.FullName()+"."+c.Name+"`")
	}
	e, err := d.compile(t, c.Expr.SQL, value.BoolType)
	if err != nil {
		return usererror.BadCheck(t.FullName(), c.givenName(), c.Expr.SQL, err)
	}
	if f := e.unstable(); f != "" {
		return usererror.NonDeterministic(f, "check constraint `"+t.FullName()+"."+c.Name+"`")
	}
	regular := 0
	for _, u := range e.Uses {
		if u.AllowCommitTimestamp {
			return usererror.CheckReadsCommitTimestamp(u.Name)
		}
		if u.Generated == nil {
			regular++
		}
	}
	if regular == 0 {
		return usererror.CheckReadsNoColumn(t.FullName(), c.Name, c.Expr.SQL)
	}
	c.Expr = e
	return nil
}

// recompile compiles every expression of the table again. The caller has changed something that the expressions use,
// such as the type of a column, the table's name, or a function.
func (d *draft) recompile(t *Table) error {
	for _, c := range t.Columns {
		if err := d.compileColumn(t, c); err != nil {
			return err
		}
	}
	for _, c := range t.Checks {
		if err := d.compileCheck(t, c); err != nil {
			return err
		}
	}
	return checkGenerated(t)
}
