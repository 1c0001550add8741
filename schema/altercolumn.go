package schema

import (
	"slices"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/schema/syntax"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

func (d *draft) alterColumn(t *Table, s *ast.AlterColumn) error {
	c, err := t.column(s.Name)
	if err != nil {
		return err
	}
	switch a := s.Alteration.(type) {
	case *ast.AlterColumnType:
		return d.redefineColumn(t, c, a)
	case *ast.AlterColumnSetOptions:
		return d.setColumnOptions(t, c, a.Options)
	case *ast.AlterColumnSetDefault:
		if c.Generated != nil {
			return usererror.DefaultOnGenerated(c.Name)
		}
		if c.PlacementKey {
			return usererror.PlacementKeyColumn(t.FullName() + "." + c.Name)
		}
		if c.Identity != nil {
			return usererror.IdentityToDefault(t.FullName(), c.Name)
		}
		d.setDefault(c, a.DefaultExpr)
		if err := c.checkVector(t.FullName() + "." + c.Name); err != nil {
			return err
		}
	case *ast.AlterColumnDropDefault:
		if c.Identity != nil { // an identity column has no default that could be dropped
			return d.nothing()
		}
		if c.OnUpdate != nil {
			return usererror.OnUpdateWithoutDefault(c.Name)
		}
		c.Default = nil
	case *ast.AlterColumnSetOnUpdate:
		c.OnUpdate = &Expr{SQL: d.src.InParens(a.OnUpdate.On, a.OnUpdate.Rparen)}
	case *ast.AlterColumnDropOnUpdate:
		c.OnUpdate = nil
	case *ast.AlterColumnAlterIdentity:
		if err := d.alterIdentity(t, c, a.Alteration); err != nil {
			return err
		}
	}
	if err := d.compileColumn(t, c); err != nil {
		return err
	}
	return checkGenerated(t)
}

func (d *draft) setColumnOptions(t *Table, c *Column, o *ast.Options) error {
	old := *c
	if err := d.setOptionsOf(c, t.FullName()+"."+c.Name, o); err != nil {
		return err
	}
	if err := c.checkTimestampDefault(); err != nil {
		return err
	}
	if !c.AllowCommitTimestamp || old.AllowCommitTimestamp {
		return nil
	}
	if fks := d.foreignKeysWith(t, c); fks != "" {
		return usererror.ChangeForeignKeyColumn("allow_commit_timestamp option", c.Name, t.FullName(), fks)
	}
	d.validate(ValidateCommitTimestamp, t, c, &old)
	return d.recompile(t) // expressions that read the column may no longer be valid
}

func (d *draft) validate(kind ValidationKind, t *Table, c, old *Column) {
	d.change.Validations = append(d.change.Validations, Validation{Kind: kind, Table: t, Column: c, Old: old})
}

// redefineColumn runs an ALTER COLUMN statement that gives the column a type, such as ALTER COLUMN c STRING(10). If the
// statement does not repeat NOT NULL or the DEFAULT of the column, the column loses them. It always loses ON UPDATE.
func (d *draft) redefineColumn(t *Table, c *Column, s *ast.AlterColumnType) error {
	if t.Parent != nil && c.KeyOrdinal >= 0 && c.KeyOrdinal < len(t.Parent.Key) {
		return usererror.ChangeParentKeyColumn(t.FullName() + "." + c.Name)
	}
	old := *c
	if err := d.setType(t, c, s.Type); err != nil {
		return err
	}
	c.NotNull, c.Default, c.OnUpdate = s.NotNull, nil, nil
	if err := d.redefineIdentity(t, c, s); err != nil {
		return err
	}
	if s.DefaultExpr != nil {
		if old.Generated != nil {
			return usererror.DefaultOnGenerated(c.Name)
		}
		d.setDefault(c, s.DefaultExpr)
	}
	if err := c.checkVector(t.FullName() + "." + c.Name); err != nil {
		return err
	}
	if c.AllowCommitTimestamp && c.Type.Kind != value.Timestamp {
		return usererror.ChangeColumnType(c.Name, old.SpannerType(), c.SpannerType())
	}
	if c.PlacementKey && (c.Type.Kind != value.String || !c.NotNull || c.Default != nil || s.GeneratedExpr != nil) {
		return usererror.PlacementKeyColumn(t.FullName() + "." + c.Name)
	}
	if err := d.redefineGenerated(t, c, &old, s.GeneratedExpr); err != nil {
		return err
	}
	if err := d.checkRedefinition(t, c, &old); err != nil {
		return err
	}
	d.validateRedefinition(t, c, &old)
	return d.recompile(t)
}

// redefineGenerated checks the AS clause s of an ALTER COLUMN statement that gives the column a type. If the statement
// has no AS clause, s is nil. It is then an error if the column was a generated one before.
func (d *draft) redefineGenerated(t *Table, c, old *Column, s *ast.GeneratedColumnExpr) error {
	where := t.FullName() + "." + c.Name
	switch {
	case s == nil && old.Generated == nil:
		return nil
	case s == nil:
		return usererror.GeneratedToRegular(where)
	case old.Generated == nil:
		return usererror.RegularToGenerated(where)
	case !s.Stored.Invalid() != old.Stored:
		return usererror.ChangeGeneratedStored(where)
	}
	c.Generated = &Expr{SQL: d.src.InParens(s.As, s.Rparen)}
	if syntax.Canonical(c.Generated.SQL) == syntax.Canonical(old.Generated.SQL) {
		if c.Stored && !c.Type.Equal(old.Type) {
			return usererror.ChangeGeneratedType(where)
		}
		return nil
	}
	if t.holds(c) {
		return usererror.ChangeGeneratedExpression(where)
	}
	return nil
}

// holds reports whether rows, keys or index entries store values of a generated column, or values computed from them.
// It also returns true if a CHECK constraint reads the column, because the existing rows were checked with these
// values.
func (t *Table) holds(c *Column) bool {
	return c.Stored || c.KeyOrdinal >= 0 || slices.ContainsFunc(t.Indexes, func(i *Index) bool { return i.has(c) }) ||
		slices.ContainsFunc(t.Checks, func(ck *Check) bool { return slices.Contains(ck.Expr.Uses, c) }) ||
		slices.ContainsFunc(t.Columns, func(g *Column) bool { return g.reads(c) && t.holds(g) })
}

// reads reports whether c is generated by an expression that reads the column other.
func (c *Column) reads(other *Column) bool {
	return c.Generated != nil && slices.Contains(c.Generated.Uses, other)
}

// checkRedefinition returns an error unless the definition of the column may change from old to c.
func (d *draft) checkRedefinition(t *Table, c, old *Column) error {
	where := t.FullName() + "." + c.Name
	if t.expiresBy(c) && !isTimestamp(c) {
		return usererror.RowDeletionPolicyColumn(c.Name, t.FullName())
	}
	if !convertible(old.Type, c.Type) {
		return usererror.ChangeColumnType(c.Name, old.SpannerType(), c.SpannerType())
	}
	sameType := c.Type.Equal(old.Type)
	sameLength := c.MaxLength == old.MaxLength && c.LengthIsMax == old.LengthIsMax
	if c.KeyOrdinal >= 0 {
		changes := !sameType || c.NotNull != old.NotNull
		switch {
		case (changes || !sameLength) && len(d.Children(t)) > 0:
			return usererror.ChangeInheritedKeyColumn(where)
		case changes:
			return usererror.ChangeKeyColumn(where)
		}
	}
	if c.NotNull != old.NotNull {
		if err := d.checkNullability(t, c, where); err != nil {
			return err
		}
	}
	if sameType {
		return nil
	}
	return d.checkTypeReaders(t, c)
}

// convertible reports whether the stored values of a column can stay as they are when its type changes. Rows and
// index keys encode STRING and BYTES alike, and INT64 and ENUM alike. Rows encode PROTO like BYTES; a PROTO cannot be
// in a key.
func convertible(from, to *value.Type) bool {
	if from.Kind == value.Array && to.Kind == value.Array {
		return convertible(from.Elem, to.Elem)
	}
	return from.Equal(to) || conversions[[2]value.Kind{from.Kind, to.Kind}]
}

var conversions = map[[2]value.Kind]bool{
	{value.String, value.Bytes}: true, {value.Bytes, value.String}: true,
	{value.Bytes, value.Proto}: true, {value.Proto, value.Bytes}: true, {value.Proto, value.Proto}: true,
	{value.Int64, value.Enum}: true, {value.Enum, value.Int64}: true, {value.Enum, value.Enum}: true,
}

func (d *draft) checkNullability(t *Table, c *Column, where string) error {
	if c.NotNull && c.Type.Kind == value.Array {
		return usererror.ChangeArrayNullability(where)
	}
	if fks := d.foreignKeysWith(t, c); fks != "" {
		return usererror.ChangeForeignKeyColumn("nullability", c.Name, t.FullName(), fks)
	}
	for _, i := range t.Indexes {
		if i.keys(c) && !slices.Contains(i.NotNullColumns, c) {
			return usererror.ChangeIndexedNullability(c.Name, i.FullName())
		}
	}
	return nil
}

// checkTypeReaders refuses a new type for a column that a foreign key, a CHECK constraint, or a generated column with
// stored values uses.
func (d *draft) checkTypeReaders(t *Table, c *Column) error {
	if fks := d.foreignKeysWith(t, c); fks != "" {
		return usererror.ChangeForeignKeyColumn("type", c.Name, t.FullName(), fks)
	}
	for _, g := range t.Columns {
		if g.reads(c) && t.holds(g) {
			return usererror.ChangeTypeUnderGenerated(c.Name)
		}
	}
	for _, ck := range t.Checks {
		if slices.Contains(ck.Expr.Uses, c) {
			return usererror.ChangeTypeUnderCheck(c.Name, ck.Name)
		}
	}
	return nil
}

// maxUTF8 is the largest number of bytes in one character.
const maxUTF8 = 4

// validateRedefinition adds to the draft's Change the conditions that existing values must meet before the column can
// change from old to c.
func (d *draft) validateRedefinition(t *Table, c, old *Column) {
	if c.Generated != nil && !c.Stored {
		return
	}
	if c.NotNull && !old.NotNull {
		d.validate(ValidateNotNull, t, c, old)
	}
	if c.VectorLength != 0 && c.VectorLength != old.VectorLength {
		d.validate(ValidateVectorLength, t, c, old)
	}
	was, is := elementOf(old.Type).Kind, elementOf(c.Type).Kind
	longest := old.MaxLength
	switch {
	case was == value.String && is == value.Bytes:
		longest *= maxUTF8
	case was == value.Proto && is == value.Bytes:
		longest = MaxBytesLength
	case is == value.Proto:
		longest = 0
	}
	switch {
	case was == value.Bytes && is == value.String:
		d.validate(ValidateUTF8, t, c, old)
	case is == value.Enum && !elementOf(old.Type).Equal(elementOf(c.Type)):
		d.validate(ValidateEnum, t, c, old)
	case c.MaxLength < longest:
		d.validate(ValidateLength, t, c, old)
	}
}
