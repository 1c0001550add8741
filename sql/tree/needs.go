package tree

import (
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
)

// Needs returns the privileges that a role must have to run a statement: SELECT on all columns that the statement
// reads, and INSERT, UPDATE or DELETE on what it writes. Source:
// https://cloud.google.com/spanner/docs/fgac-privileges.
func Needs(s Statement, c *schema.Catalog) []schema.Need {
	n := needs{catalog: c, targets: map[int]targetColumn{}}
	n.visitor = visitor{scan: n.scan, expr: n.expr}
	switch s := s.(type) {
	case *Query:
		n.scans(s.Scan)
	case *Insert:
		n.insert(s)
	case *Update:
		n.update(s)
	case *Delete:
		n.delete(s)
	case *Procedure:
		n.list = append(n.list, schema.Need{Kind: "procedure", Name: s.Name, Member: schema.SysReaderRole})
		n.exprs(s.Args...)
	case *ChangeStreamRead:
		n.changeStream(s.Stream)
	}
	return n.list
}

// needs collects the privileges that a statement needs.
type needs struct {
	visitor
	catalog *schema.Catalog
	list    []schema.Need
	// targets holds the columns of the table that the statement writes. The key of a column in this map is the Col.ID
	// by which expressions refer to it.
	targets map[int]targetColumn
}

type targetColumn struct {
	table  *schema.Table
	column *schema.Column
}

// add adds a need to the list. If the list has a need for the same privilege on the same object, and both needs name
// columns or neither does, add puts the columns of both into one need.
func (n *needs) add(need schema.Need) {
	same := func(o schema.Need) bool {
		return o.On == need.On && o.Privilege == need.Privilege && o.AnyColumn == need.AnyColumn && o.Member == need.Member && o.Name == need.Name
	}
	at := slices.IndexFunc(n.list, same)
	if at < 0 || (len(n.list[at].Columns) == 0) != (len(need.Columns) == 0) {
		n.list = append(n.list, need)
		return
	}
	for _, c := range need.Columns {
		if !slices.Contains(n.list[at].Columns, c) {
			n.list[at].Columns = append(n.list[at].Columns, c)
		}
	}
}

// table adds the need for a privilege p on the given columns of a table, or on the whole table if no columns are
// given.
func (n *needs) table(t *schema.Table, p schema.Privilege, columns ...*schema.Column) {
	n.add(schema.TableNeed(t, p, columns...))
}

// scan adds the needs of reading a table or a view. The result tells whether the visitor must visit the scans below s.
// It is false for a view with its definer's rights, since the reader needs no privileges on what such a view reads.
func (n *needs) scan(s Scan) (enter bool) {
	switch s := s.(type) {
	case *TableScan:
		n.tableScan(s)
	case *ViewScan:
		v := s.View
		n.add(schema.Need{Kind: "view", Name: v.FullName(), Schema: v.Schema, On: v.ID, Privilege: schema.PrivilegeSelect})
		return !v.Definer
	}
	return true
}

// tableScan adds the needs of reading a table. A scan without columns, such as the scan of COUNT(*), needs SELECT on
// any one column.
func (n *needs) tableScan(s *TableScan) {
	if len(s.Columns) > 0 {
		n.table(s.Table, schema.PrivilegeSelect, s.Columns...)
		return
	}
	need := schema.TableNeed(s.Table, schema.PrivilegeSelect)
	need.AnyColumn = true
	n.add(need)
}

// expr adds the privileges that an expression needs: SELECT on the column to which it refers if that is a column of
// the table that the statement writes, and the privileges of a function that uses a sequence or an identity column (see
// the method call).
func (n *needs) expr(e Expr) {
	switch e := e.(type) {
	case *Ref:
		if c, ok := n.targets[e.Col.ID]; ok {
			n.table(c.table, schema.PrivilegeSelect, c.column)
		}
	case *Call:
		n.call(e)
	}
}

// call adds the needs of functions of sequences and identity columns. The first argument of such a function names the
// sequence or column. If that argument is not a constant, it may name any sequence or column, so the role must be a
// member of schema.InfoReaderRole, which may read information about all of them.
func (n *needs) call(e *Call) {
	p, ok := sequencePrivileges[e.Func.Name]
	if !ok {
		return
	}
	name, known := e.Args[0].(*Literal)
	if known && !name.Value.IsNull() {
		text := name.Value.AsString()
		if s := n.catalog.Sequence(text); s != nil {
			n.add(schema.SequenceNeed(s, p))
		} else if dot := strings.LastIndexByte(text, '.'); dot > 0 {
			if t := n.catalog.Table(text[:dot]); t != nil && t.Column(text[dot+1:]) != nil {
				n.table(t, p, t.Column(text[dot+1:]))
			}
		}
		return
	}
	n.add(schema.Need{Kind: "function", Name: e.Func.Name, Member: schema.InfoReaderRole})
}

// sequencePrivileges holds, for each function that uses a sequence or an identity column, the privilege that it needs
// on the sequence or column. Source: https://cloud.google.com/spanner/docs/fgac-sequences.
var sequencePrivileges = map[string]schema.Privilege{
	"get_next_sequence_value":         schema.PrivilegeUpdate,
	"get_internal_sequence_state":     schema.PrivilegeSelect,
	"get_table_column_identity_state": schema.PrivilegeSelect,
}

// target records that s is the scan of the table that the statement writes. If an expression refers to a column of s,
// the statement also reads that column.
func (n *needs) target(s *TableScan) {
	if s == nil {
		return
	}
	for i, c := range s.Out {
		n.targets[c.ID] = targetColumn{s.Table, s.Columns[i]}
	}
}

func (n *needs) returning(r *Returning) {
	if r != nil {
		n.target(r.Scan)
		n.exprs(r.Exprs...)
	}
}

func (n *needs) insert(s *Insert) {
	n.table(s.Table, schema.PrivilegeInsert, s.Columns...)
	if s.Mode == InsertOrUpdate {
		n.table(s.Table, schema.PrivilegeUpdate, s.Columns...)
	}
	given := slices.Clone(s.Columns)
	for _, row := range s.Rows {
		n.exprs(row...)
		// A nil Expr is DEFAULT: the statement gives the column no value.
		given = slices.DeleteFunc(given, func(c *schema.Column) bool { return row[slices.Index(s.Columns, c)] == nil })
	}
	for _, need := range n.catalog.DefaultNeeds(s.Table, given) {
		n.add(need)
	}
	if s.Query != nil {
		n.scans(s.Query.Scan)
	}
	if c := s.Conflict; c != nil {
		n.target(c.Old)
		n.assignments(s.Table, c.Set)
		n.exprs(c.Where)
	}
	n.returning(s.Return)
}

func (n *needs) update(s *Update) {
	n.target(s.Scan)
	n.assignments(s.Table, s.Set)
	n.exprs(s.Where)
	n.scans(s.From)
	n.returning(s.Return)
}

func (n *needs) assignments(t *schema.Table, list []Assignment) {
	for _, a := range list {
		n.table(t, schema.PrivilegeUpdate, a.Column)
		if a.Value == nil { // a nil Value is DEFAULT
			for _, need := range n.catalog.SequenceNeeds(a.Column) {
				n.add(need)
			}
		}
		n.exprs(a.Value)
	}
}

func (n *needs) delete(s *Delete) {
	n.target(s.Scan)
	n.table(s.Table, schema.PrivilegeDelete)
	n.exprs(s.Where)
	n.returning(s.Return)
}

// changeStream adds the needs of reading a change stream: SELECT on the stream, and EXECUTE on the stream's read
// function.
// Source: https://cloud.google.com/spanner/docs/fgac-change-streams.
func (n *needs) changeStream(s *schema.ChangeStream) {
	n.add(schema.Need{Kind: "change stream", Name: s.Name, On: schema.TableID(s.ID), Privilege: schema.PrivilegeSelect})
	n.add(schema.Need{Kind: "table function", Name: schema.ReadFunctionPrefix + s.Name, On: schema.TableID(s.ID), Privilege: schema.PrivilegeExecute})
}
