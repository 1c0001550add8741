package usererror

import (
	"strings"

	"google.golang.org/grpc/codes"
)

// Errors about interleaving. In these functions, the parameter child is the interleaved object: "Table T" or "Index I".

// ParentKeyMissing returns the error for a child whose key lacks a column of its parent's key.
func ParentKeyMissing(child, column string) *Error {
	of := ""
	if strings.HasPrefix(child, "Index ") {
		of = "index "
	}
	return newError(codes.FailedPrecondition, "%s does not reference %sparent key column %s.", child, of, column)
}

// ParentKeyPosition returns the error for a child whose key has a column of its parent's key, but not at the same
// position. The parameter position is the column's position in the child's key, counted from 0.
func ParentKeyPosition(child, column string, position int) *Error {
	return newError(codes.FailedPrecondition, "%s references parent key column %s at incorrect position %d.", child, column, position)
}

// ParentKeyOrder returns the error for a column of the child's key that sorts in another direction than in the parent's
// key. order is the direction in the parent's key.
func ParentKeyOrder(child, column, order string) *Error {
	return newError(codes.FailedPrecondition, "%s references parent key column %s with incorrect order %s.", child, column, order)
}

// ParentKeyType returns the error for a column of the child's key that has another type in the parent's key.
func ParentKeyType(child, column, have, want string) *Error {
	return newError(codes.FailedPrecondition, "%s references parent key column %s with incorrect type %s (should be %s).",
		child, column, have, want)
}

// ParentKeyLength returns the error for a column of the child's key that has another length in the parent's key.
func ParentKeyLength(child, column, have, want string) *Error {
	return newError(codes.FailedPrecondition, "%s references parent key column %s with incorrect length %s (should be %s).",
		child, column, have, want)
}

// ParentKeyNullability returns the error for a column of the child's key that is NOT NULL in only one of the two
// tables.
func ParentKeyNullability(child, column, parent, have string) *Error {
	return newError(codes.FailedPrecondition, "%s references parent key column %s that is %s, but child key is %s.",
		child, column, parent, have)
}

// ChildWithoutColumns returns the error for a table without columns that is interleaved in another.
func ChildWithoutColumns(table string) *Error {
	return newError(codes.FailedPrecondition, "Table %s adds no columns and is not a top level table.", table)
}

// OnDeleteWithoutParent returns the error for setting ON DELETE on a table that is not interleaved.
func OnDeleteWithoutParent(table string) *Error {
	return newError(codes.InvalidArgument, "Cannot SET ON DELETE on table %s that does not have an INTERLEAVE clause.", table)
}

// OnDeleteOfInterleaveIn returns the error for ON DELETE on a table that is INTERLEAVE IN, without PARENT.
func OnDeleteOfInterleaveIn(table string) *Error {
	return newError(codes.InvalidArgument, "Cannot SET ON DELETE on an INTERLEAVE IN table %s.", table)
}

// InterleaveChange returns the error for SET INTERLEAVE IN on a table that is not interleaved.
func InterleaveChange(table string) *Error {
	return newError(codes.InvalidArgument, "Cannot change interleaving behavior of table %s.", table)
}

// InterleaveParentChange returns the error for SET INTERLEAVE IN with a table that is not the current parent.
func InterleaveParentChange(table string) *Error {
	return newError(codes.InvalidArgument, "Cannot change the interleaving table of table %s.", table)
}

// InterleaveToCascade returns the error for SET INTERLEAVE IN PARENT ... ON DELETE CASCADE on a table that is
// INTERLEAVE IN.
func InterleaveToCascade(table string) *Error {
	return newError(codes.Unimplemented,
		"Altering the table %s from INTERLEAVE IN to INTERLEAVE IN PARENT ON DELETE CASCADE is not supported. Please migrate the table to INTERLEAVE IN PARENT ON DELETE NO ACTION first, then migrate it to ON DELETE CASCADE.",
		table)
}

// Errors about dropping objects.

// DropTableWithChildren returns the error for DROP TABLE of a table in which other tables are interleaved. children
// lists their names.
func DropTableWithChildren(table, children string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop table %s with interleaved tables: %s.", table, children)
}

// DropTableWithIndexes returns the error for DROP TABLE of a table that has indexes. indexes lists their names.
func DropTableWithIndexes(table, indexes string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop table %s with indices: %s.", table, indexes)
}

// DropTableReferenced returns the error for DROP TABLE of a table to which foreign keys of other tables refer.
func DropTableReferenced(table, foreignKeys string) *Error {
	return newError(codes.FailedPrecondition,
		"Cannot drop table `%s`. It is referenced by one or more foreign keys: %s. You must drop the foreign keys before dropping the table.",
		table, foreignKeys)
}

// DropSchemaInUse returns the error for DROP SCHEMA of a schema that is not empty. contents lists the schema's objects,
// in one line for each kind of object, with a line break before each line.
func DropSchemaInUse(schema, contents string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop schema %s while it has dependencies.%s", schema, contents)
}

// DropKeyColumn returns the error for DROP COLUMN of a key column.
func DropKeyColumn(table, column string) *Error {
	return newError(codes.InvalidArgument, "Cannot drop key column %s from table %s.", column, table)
}

// DropIndexedColumn returns the error for DROP COLUMN of a column that an index contains.
func DropIndexedColumn(table, column, index string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop column %s from table %s because it is used by index %s.",
		column, table, index)
}

// DropColumnInForeignKey returns the error for DROP COLUMN of a column that foreign keys use.
func DropColumnInForeignKey(table, column, foreignKeys string) *Error {
	return newError(codes.FailedPrecondition,
		"Cannot drop column `%s` from table `%s`. It is used by one or more foreign keys: %s. You must drop the foreign keys before dropping the column.",
		column, table, foreignKeys)
}

// DropColumnInGenerated returns the error for DROP COLUMN of a column that a generated column reads.
func DropColumnInGenerated(table, column, generated string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop column `%s` from table `%s` because it is referenced by generated column `%s`.",
		column, table, generated)
}

// DropColumnInCheck returns the error for DROP COLUMN of a column that a check constraint reads.
func DropColumnInCheck(column, check string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop column `%s` on which there is a dependent check constraint: %s.", column, check)
}

// DropManagedIndex returns the error for DROP INDEX of an index that the server created for foreign keys and that they
// still need.
func DropManagedIndex(index, foreignKeys string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop index `%s`. It is in use by foreign keys: %s.", index, foreignKeys)
}

// Errors about changing columns.

// AddNotNullColumn returns the error for ADD COLUMN ... NOT NULL without a default. Existing rows would have no value
// in the column.
func AddNotNullColumn(table, column string) *Error {
	return newError(codes.Unimplemented, "Cannot add NOT NULL column %s.%s to existing table %s.", table, column, table)
}

// AddKeyColumn returns the error for ADD COLUMN ... PRIMARY KEY.
func AddKeyColumn(table, column string) *Error {
	return newError(codes.InvalidArgument, "Cannot add primary key column %s.%s to existing table %s.", table, column, table)
}

// ChangeColumnType returns the error for a type change that is not allowed.
func ChangeColumnType(column, from, to string) *Error {
	return newError(codes.InvalidArgument, "Cannot change type of column `%s` from `%s` to `%s`", column, from, to)
}

// ChangeKeyColumn returns the error for a change that is not allowed for key columns.
func ChangeKeyColumn(column string) *Error {
	return newError(codes.InvalidArgument, "Cannot change key column %s.", column)
}

// ChangeParentKeyColumn returns the error for a change of a key column that is also in the parent's key.
func ChangeParentKeyColumn(column string) *Error {
	return newError(codes.InvalidArgument, "Cannot alter parent key column %s.", column)
}

// ChangeInheritedKeyColumn returns the error for a change of a key column that is also in the keys of child tables.
func ChangeInheritedKeyColumn(column string) *Error {
	return newError(codes.InvalidArgument, "Requested change to key column %s could not be made.", column)
}

// ChangeArrayNullability returns the error for NOT NULL added to an ARRAY column.
func ChangeArrayNullability(column string) *Error {
	return newError(codes.FailedPrecondition, "Cannot change ARRAY column %s to NOT NULL.", column)
}

// ChangeIndexedNullability returns the error for adding NOT NULL to a column in the key of an index, or for dropping NOT
// NULL there. The change is allowed if the index has no entries for rows with NULL in this column.
func ChangeIndexedNullability(column, index string) *Error {
	return newError(codes.FailedPrecondition,
		"Changing NOT NULL constraints on column %s is not allowed because it affects index %s.", column, index)
}

// ChangeForeignKeyColumn returns the error for a change of a column that foreign keys use. The parameter what is the
// text "nullability" or "type".
func ChangeForeignKeyColumn(what, column, table, foreignKeys string) *Error {
	return newError(codes.FailedPrecondition,
		"Cannot change the %s for column `%s` of table `%s`. It is used by one or more foreign keys: %s.", what, column, table, foreignKeys)
}

// ChangeTypeUnderGenerated returns the error for a type change of a column that a stored generated column reads.
func ChangeTypeUnderGenerated(column string) *Error {
	return newError(codes.FailedPrecondition,
		"Cannot change the data type of column `%s`, which has a dependent stored generated column.", column)
}

// ChangeTypeUnderCheck returns the error for a type change of a column that a check constraint reads.
func ChangeTypeUnderCheck(column, check string) *Error {
	return newError(codes.InvalidArgument, "Cannot change the data type of column `%s`, which is used by check constraint `%s`.", column, check)
}

// GeneratedToRegular returns the error for an ALTER COLUMN without an AS clause on a generated column.
func GeneratedToRegular(column string) *Error {
	return newError(codes.InvalidArgument, "Cannot convert generated column `%s` to a regular column.", column)
}

// RegularToGenerated returns the error for an ALTER COLUMN with an AS clause on a column that is not generated.
func RegularToGenerated(column string) *Error {
	return newError(codes.InvalidArgument, "Cannot convert column `%s` to a generated column.", column)
}

// ChangeGeneratedStored returns the error for a change of a generated column between stored and not stored.
func ChangeGeneratedStored(column string) *Error {
	return newError(codes.InvalidArgument, "Cannot change the STORED attribute for generated column `%s`.", column)
}

// ChangeGeneratedExpression returns the error for a new expression for a generated column whose values are stored (in
// rows, keys or index entries) or are read by a check constraint.
func ChangeGeneratedExpression(column string) *Error {
	return newError(codes.InvalidArgument,
		"Cannot change the expression of a generated column `%s` because it is stored or has other dependencies.", column)
}

// GeneratedValueChanges returns the error for a schema change that would change the value of a generated column in an
// existing row, if that value is stored.
func GeneratedValueChanges(column, key string) *Error {
	return newError(codes.FailedPrecondition,
		"The value of generated column `%s`, which is stored or has other dependencies, would change at key: %s", column, key)
}

// GeneratedValueChanging returns the error for a write of a row, during a schema change, if the schema change would
// change the stored value of a generated column in that row.
func GeneratedValueChanging(column string) *Error {
	return newError(codes.FailedPrecondition,
		"The value of generated column `%s`, which is stored or has other dependencies, would change by the schema change under way.", column)
}

// ChangeGeneratedType returns the error for a change of the type of a stored generated column.
func ChangeGeneratedType(column string) *Error {
	return newError(codes.InvalidArgument, "Cannot change the data type of a stored generated column `%s`.", column)
}

// DefaultOnGenerated returns the error for SET DEFAULT on a generated column.
func DefaultOnGenerated(column string) *Error {
	return newError(codes.FailedPrecondition, "Column %s with a DEFAULT value cannot be a generated column and vice versa.", column)
}
