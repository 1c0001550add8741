package usererror

import "google.golang.org/grpc/codes"

// SequenceExhausted is a sequence whose counter has come to its end, or whose skip range leaves no further value.
func SequenceExhausted(name string) *Error {
	return newError(codes.FailedPrecondition, "Sequence %s is exhausted", name)
}

// SequenceNotFound is a function whose argument names no sequence.
func SequenceNotFound(name string) *Error {
	return newError(codes.InvalidArgument, "Sequence not found: %s", name)
}

// ReadWriteFunction is a query in a read-only transaction that calls a function which writes.
func ReadWriteFunction(function string) *Error {
	return newError(codes.InvalidArgument, "The following functions can only be used in a read-write or partitioned-dml transaction. "+
		"Current transaction type is ReadOnly: %s", function)
}

// SequenceFormMixed is a sequence whose properties are set as clauses and as options.
func SequenceFormMixed(name string) *Error {
	return newError(codes.InvalidArgument, "The sequence properties can only be set in either clauses and options for the sequence %s", name)
}

// SequenceClauseTwice is a clause that stands twice in one statement.
func SequenceClauseTwice() *Error {
	return newError(codes.InvalidArgument, "A clause of a sequence can only be specified once.")
}

// SequenceKindMissing is CREATE SEQUENCE without a kind in a database that sets no default.
func SequenceKindMissing() *Error {
	return newError(codes.InvalidArgument, "The sequence does not have a valid sequence kind. Please specify the sequence kind explicitly "+
		"or set the database option `default_sequence_kind`.")
}

// BadSequenceKind is a kind of sequences that does not exist.
func BadSequenceKind(kind string) *Error {
	return newError(codes.FailedPrecondition, "Invalid Sequence Kind: %s.", kind)
}

// SequenceOptionNotFound is an option that sequences do not have.
func SequenceOptionNotFound(option string) *Error {
	return newError(codes.FailedPrecondition, "Unsupported sequence option: %s.", option)
}

// SequenceOptionType is an option of a sequence whose value is of the wrong type.
func SequenceOptionType(option, typ string) *Error {
	return newError(codes.FailedPrecondition, "Option %s can only take a %s value.", option, typ)
}

// BadSequenceStart is a counter that would start below 1 or beyond INT64.
func BadSequenceStart() *Error {
	return newError(codes.FailedPrecondition, "`start_with_counter` has to be a positive INT64 number")
}

// SequenceSkipRangeHalf is a skip range with one end.
func SequenceSkipRangeHalf() *Error {
	return newError(codes.FailedPrecondition, "`skip_range_min` and `skip_range_max` have to be set together")
}

// SequenceSkipRangeOrder is a skip range that ends before it begins.
func SequenceSkipRangeOrder() *Error {
	return newError(codes.FailedPrecondition, "`skip_range_min` has to be lesser than or equal to `skip_range_max`")
}

// SequenceSkipRangeNegative is a skip range that has no value of a sequence.
func SequenceSkipRangeNegative() *Error {
	return newError(codes.FailedPrecondition, "The sequence skipped range has to contain at least one positive value")
}

// DropSequenceInDefault is DROP SEQUENCE of a sequence that the DEFAULT of a column names; column is "t.c".
func DropSequenceInDefault(name, column string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop SEQUENCE `%s` on which there are dependent columns: %s.", name, column)
}

// Identity columns.

// IdentityType is an identity column of a type other than INT64.
func IdentityType(table, column string) *Error {
	return newError(codes.InvalidArgument, "Identity column %s.%s must be of type INT64.", table, column)
}

// IdentityKindMissing is an identity column without a kind in a database that sets no default. Clients know the text: Google's Java client
// sets the option then and tries again.
func IdentityKindMissing(column string) *Error {
	return newError(codes.InvalidArgument, "The sequence kind of an identity column %s is not specified. Please specify the sequence kind explicitly "+
		"or set the database option `default_sequence_kind`.", column)
}

// NotIdentity is ALTER IDENTITY of a column that is no identity column.
func NotIdentity(table, column string) *Error {
	return newError(codes.InvalidArgument, "Column is not an identity column in table %s: %s", table, column)
}

// AlterToIdentity is ALTER COLUMN that would make an identity column of another one.
func AlterToIdentity(table, column string) *Error {
	return newError(codes.InvalidArgument, "Cannot alter column `%s.%s` to an identity column.", table, column)
}

// DropIdentity is ALTER COLUMN that would make an ordinary column of an identity column.
func DropIdentity(table, column string) *Error {
	return newError(codes.InvalidArgument, "Cannot alter column `%s.%s` to drop the identity property.", table, column)
}

// IdentityToDefault is ALTER COLUMN that would give an identity column a DEFAULT or make it generated.
func IdentityToDefault(table, column string) *Error {
	return newError(codes.InvalidArgument, "Cannot alter an identity column `%s.%s` to a generated or default column.", table, column)
}

// BadColumnIdentifier is an argument of GET_TABLE_COLUMN_IDENTITY_STATE that is not the path of a column.
func BadColumnIdentifier(path string) *Error {
	return newError(codes.InvalidArgument, "The column identifier's format is invalid: %s. "+
		"It should be either \"<schema>.<table>.<column>\" or \"<table>.<column>\".", path)
}

// IdentityTableNotFound is an argument of GET_TABLE_COLUMN_IDENTITY_STATE that names no table.
func IdentityTableNotFound(table string) *Error {
	return newError(codes.InvalidArgument, "Table not found for the GET_TABLE_COLUMN_IDENTITY_STATE function: %s", table)
}

// IdentityColumnNotFound is an argument of GET_TABLE_COLUMN_IDENTITY_STATE that names no identity column.
func IdentityColumnNotFound(table, column string) *Error {
	return newError(codes.InvalidArgument, "Identity column not found in table %s: %s", table, column)
}
