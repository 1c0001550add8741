package schema

import (
	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// interleave interleaves a new table in the parent that the statement names.
func (d *draft) interleave(t *Table, s *ast.Cluster) error {
	parent, err := d.find(s.TableName)
	if err != nil {
		return err
	}
	if t.Interleave, err = interleaveOf(t, s.Enforced, s.OnDelete); err != nil {
		return err
	}
	if len(t.Columns) == 0 {
		return usererror.ChildWithoutColumns(t.FullName())
	}
	if len(parent.Path()) > MaxInterleaveDepth {
		return usererror.TooDeepInterleaving(t.FullName(), MaxInterleaveDepth)
	}
	if err := checkParentKey("Table "+t.FullName(), t.Key, parent, false); err != nil {
		return err
	}
	if err := checkExpiringAncestors(t, t.Interleave, parent); err != nil {
		return err
	}
	t.Parent = parent
	return nil
}

// interleaveOf returns the kind of interleaving that a clause INTERLEAVE IN [PARENT] ... [ON DELETE ...] asks for.
// enforced is true if the clause contains PARENT.
func interleaveOf(t *Table, enforced bool, onDelete ast.OnDeleteAction) (Interleave, error) {
	switch {
	case !enforced && onDelete != "":
		return 0, usererror.OnDeleteOfInterleaveIn(t.FullName())
	case !enforced:
		return InterleaveIn, nil
	case onDelete == ast.OnDeleteCascade:
		return InterleaveCascade, nil
	}
	return InterleaveNoAction, nil
}

// checkParentKey returns an error unless key begins with the primary key of parent. The columns must have the same
// names, directions, types and lengths. They must also agree in NOT NULL, unless nullFiltered is true: key is then that
// of a NULL_FILTERED index, whose entries never have NULL in the key. child is "Table t" or "Index i", for errors.
func checkParentKey(child string, key []KeyPart, parent *Table, nullFiltered bool) error {
	for i, p := range parent.Key {
		at := findPart(key, p.Column.Name)
		if at < 0 {
			return usererror.ParentKeyMissing(child, p.Column.Name)
		}
		if at != i {
			return usererror.ParentKeyPosition(child, p.Column.Name, at)
		}
		have, want := key[i].Column, p.Column
		switch {
		case key[i].Desc != p.Desc:
			return usererror.ParentKeyOrder(child, want.Name, direction(p.Desc))
		case !have.Type.Equal(want.Type):
			return usererror.ParentKeyType(child, want.Name, have.Type.String(), want.Type.String())
		case have.MaxLength != want.MaxLength || have.LengthIsMax != want.LengthIsMax:
			return usererror.ParentKeyLength(child, want.Name, have.lengthSQL(), want.lengthSQL())
		case have.NotNull != want.NotNull && !nullFiltered:
			return usererror.ParentKeyNullability(child, want.Name, nullability(want.NotNull), nullability(have.NotNull))
		}
	}
	return nil
}

func direction(desc bool) string {
	if desc {
		return "DESC"
	}
	return "ASC"
}

func nullability(notNull bool) string {
	if notNull {
		return "not null"
	}
	return "nullable"
}

// setOnDelete runs ALTER TABLE ... SET ON DELETE.
func (d *draft) setOnDelete(t *Table, s *ast.SetOnDelete) error {
	switch {
	case t.Parent == nil:
		return usererror.OnDeleteWithoutParent(t.FullName())
	case t.Interleave == InterleaveIn:
		return usererror.OnDeleteOfInterleaveIn(t.FullName())
	}
	to := InterleaveNoAction
	if s.OnDelete == ast.OnDeleteCascade {
		to = InterleaveCascade
	}
	if err := checkExpiringAncestors(t, to, t.Parent); err != nil {
		return err
	}
	t.Interleave = to
	return nil
}

// setInterleaveIn runs ALTER TABLE ... SET INTERLEAVE IN. The statement can change only whether a row must have a
// parent row, and what happens when its parent row is deleted. The parent table, and so the keys of the rows, must stay
// the same.
func (d *draft) setInterleaveIn(t *Table, s *ast.SetInterleaveIn) error {
	parent, err := d.find(s.TableName)
	if err != nil {
		return err
	}
	if t.Parent == nil {
		return usererror.InterleaveChange(t.FullName())
	}
	if t.Parent != parent {
		return usererror.InterleaveParentChange(t.FullName())
	}
	to, err := interleaveOf(t, s.Enforced, s.OnDelete)
	if err != nil {
		return err
	}
	if t.Interleave == InterleaveIn && to == InterleaveCascade {
		return usererror.InterleaveToCascade(t.FullName())
	}
	if err := checkExpiringAncestors(t, to, t.Parent); err != nil {
		return err
	}
	if t.Interleave == InterleaveIn && to == InterleaveNoAction {
		d.change.Validations = append(d.change.Validations, Validation{Kind: ValidateParents, Table: t})
	}
	t.Interleave = to
	return nil
}

func findPart(key []KeyPart, name string) int {
	for i, p := range key {
		if sameName(p.Column.Name, name) {
			return i
		}
	}
	return -1
}
