package server

import (
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// mutations converts the mutations of a commit.
func mutations(c *schema.Catalog, list []*spannerpb.Mutation) ([]table.Mutation, error) {
	muts := make([]table.Mutation, len(list))
	for i, p := range list {
		var err error
		if muts[i], err = mutation(c, p); err != nil {
			return nil, err
		}
	}
	return muts, nil
}

func mutation(c *schema.Catalog, p *spannerpb.Mutation) (table.Mutation, error) {
	switch op := p.GetOperation().(type) {
	case *spannerpb.Mutation_Insert:
		return write(c, table.Insert, op.Insert)
	case *spannerpb.Mutation_Update:
		return write(c, table.Update, op.Update)
	case *spannerpb.Mutation_InsertOrUpdate:
		return write(c, table.InsertOrUpdate, op.InsertOrUpdate)
	case *spannerpb.Mutation_Replace:
		return write(c, table.Replace, op.Replace)
	case *spannerpb.Mutation_Delete_:
		return deletion(c, op.Delete)
	case *spannerpb.Mutation_Send_, *spannerpb.Mutation_Ack_:
		return table.Mutation{}, usererror.QueuesUnsupported()
	}
	return table.Mutation{}, usererror.EmptyMutation()
}

// mutationTable returns the table with this name, if mutations may write it.
func mutationTable(c *schema.Catalog, name string) (*schema.Table, error) {
	t := c.TableOrSynonym(name)
	if t == nil || t.Rows != nil {
		return nil, usererror.TableNotFound(name)
	}
	return t, nil
}

func write(c *schema.Catalog, op table.Op, p *spannerpb.Mutation_Write) (table.Mutation, error) {
	t, columns, err := columnsNamed(c, p.GetTable(), p.GetColumns())
	if err != nil {
		return table.Mutation{}, err
	}
	m := table.Mutation{Op: op, Table: t, Columns: columns}
	m.Rows = make([][]value.Value, len(p.GetValues()))
	for i, row := range p.GetValues() {
		if m.Rows[i], err = mutationRow(m.Columns, row.GetValues()); err != nil {
			return m, err
		}
	}
	return m, nil
}

// columnsNamed returns a table that a mutation may write, and those of its columns that have the given names.
func columnsNamed(c *schema.Catalog, name string, names []string) (t *schema.Table, columns []*schema.Column, err error) {
	if t, err = mutationTable(c, name); err != nil {
		return nil, nil, err
	}
	columns = make([]*schema.Column, len(names))
	for i, name := range names {
		if columns[i] = t.Column(name); columns[i] == nil {
			return nil, nil, usererror.ColumnNotFound(t.FullName(), name)
		}
	}
	return t, columns, nil
}

func mutationRow(columns []*schema.Column, values []*structpb.Value) ([]value.Value, error) {
	if len(values) != len(columns) {
		return nil, usererror.ValueCount(len(columns), len(values))
	}
	row := make([]value.Value, len(values))
	for i, p := range values {
		v, err := columnValue(p, columns[i])
		if err != nil {
			return nil, err
		}
		row[i] = v
	}
	return row, nil
}

func deletion(c *schema.Catalog, p *spannerpb.Mutation_Delete) (table.Mutation, error) {
	t, err := mutationTable(c, p.GetTable())
	if err != nil {
		return table.Mutation{}, err
	}
	m := table.Mutation{Op: table.Delete, Table: t}
	m.Keys, err = keySet(table.TableLayout(t), p.GetKeySet())
	return m, err
}
