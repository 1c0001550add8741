package usererror

import "google.golang.org/grpc/codes"

// SequenceExhausted returns the error for a sequence that has no further value: its counter has reached the end, or all
// further values are in its skip range.
func SequenceExhausted(name string) *Error {
	return newError(codes.FailedPrecondition, "Sequence %s is exhausted", name)
}

// SequenceNotFound returns the error for a function whose argument should name a sequence but does not.
func SequenceNotFound(name string) *Error {
	return newError(codes.InvalidArgument, "Sequence not found: %s", name)
}

// ReadWriteFunction returns the error for a query in a read-only transaction that calls a function which writes.
func ReadWriteFunction(function string) *Error {
	return newError(codes.InvalidArgument, "The following functions can only be used in a read-write or partitioned-dml transaction. "+
		"Current transaction type is ReadOnly: %s", function)
}

// SequenceFormMixed returns the error for a sequence whose properties are set both as clauses and as options.
func SequenceFormMixed(name string) *Error {
	return newError(codes.InvalidArgument, "The sequence properties can only be set in either clauses and options for the sequence %s", name)
}

// SequenceClauseTwice returns the error for a clause that a statement has twice.
func SequenceClauseTwice() *Error {
	return newError(codes.InvalidArgument, "A clause of a sequence can only be specified once.")
}

// SequenceKindMissing returns the error for CREATE SEQUENCE without a kind if the database has no default kind.
func SequenceKindMissing() *Error {
	return newError(codes.InvalidArgument, "The sequence does not have a valid sequence kind. Please specify the sequence kind explicitly "+
		"or set the database option `default_sequence_kind`.")
}

// BadSequenceKind returns the error for a sequence kind that does not exist.
func BadSequenceKind(kind string) *Error {
	return newError(codes.FailedPrecondition, "Invalid Sequence Kind: %s.", kind)
}

// SequenceOptionNotFound returns the error for an option that sequences do not have.
func SequenceOptionNotFound(option string) *Error {
	return newError(codes.FailedPrecondition, "Unsupported sequence option: %s.", option)
}

// SequenceOptionType returns the error for an option of a sequence whose value is of the wrong type.
func SequenceOptionType(option, typ string) *Error {
	return newError(codes.FailedPrecondition, "Option %s can only take a %s value.", option, typ)
}

// BadSequenceStart returns the error for a start of a sequence's counter that is below 1 or beyond INT64.
func BadSequenceStart() *Error {
	return newError(codes.FailedPrecondition, "`start_with_counter` has to be a positive INT64 number")
}

// SequenceSkipRangeHalf returns the error for a skip range of which only one end is given.
func SequenceSkipRangeHalf() *Error {
	return newError(codes.FailedPrecondition, "`skip_range_min` and `skip_range_max` have to be set together")
}

// SequenceSkipRangeOrder returns the error for a skip range that ends before it begins.
func SequenceSkipRangeOrder() *Error {
	return newError(codes.FailedPrecondition, "`skip_range_min` has to be lesser than or equal to `skip_range_max`")
}

// SequenceSkipRangeNegative returns the error for a skip range without any positive value.
func SequenceSkipRangeNegative() *Error {
	return newError(codes.FailedPrecondition, "The sequence skipped range has to contain at least one positive value")
}

// DropSequenceInDefault returns the error for DROP SEQUENCE of a sequence that the DEFAULT of a column names. column
// has the form "t.c".
func DropSequenceInDefault(name, column string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop SEQUENCE `%s` on which there are dependent columns: %s.", name, column)
}

// Errors about identity columns.

// IdentityType returns the error for an identity column of a type other than INT64.
func IdentityType(table, column string) *Error {
	return newError(codes.InvalidArgument, "Identity column %s.%s must be of type INT64.", table, column)
}

// IdentityKindMissing returns the error for an identity column without a sequence kind if the database has no default
// kind. Google's Java client recognises the text: it then sets the database option and tries again.
func IdentityKindMissing(column string) *Error {
	return newError(codes.InvalidArgument, "The sequence kind of an identity column %s is not specified. Please specify the sequence kind explicitly "+
		"or set the database option `default_sequence_kind`.", column)
}

// NotIdentity returns the error for ALTER IDENTITY of a column that is not an identity column.
func NotIdentity(table, column string) *Error {
	return newError(codes.InvalidArgument, "Column is not an identity column in table %s: %s", table, column)
}

// AlterToIdentity returns the error for ALTER COLUMN that would turn a column that is not an identity column into one.
func AlterToIdentity(table, column string) *Error {
	return newError(codes.InvalidArgument, "Cannot alter column `%s.%s` to an identity column.", table, column)
}

// DropIdentity returns the error for ALTER COLUMN that would turn an identity column into an ordinary one.
func DropIdentity(table, column string) *Error {
	return newError(codes.InvalidArgument, "Cannot alter column `%s.%s` to drop the identity property.", table, column)
}

// IdentityToDefault returns the error for ALTER COLUMN that would give an identity column a DEFAULT or make it
// generated.
func IdentityToDefault(table, column string) *Error {
	return newError(codes.InvalidArgument, "Cannot alter an identity column `%s.%s` to a generated or default column.", table, column)
}

// BadColumnIdentifier returns the error for an argument of GET_TABLE_COLUMN_IDENTITY_STATE that is not the path of a
// column.
func BadColumnIdentifier(path string) *Error {
	return newError(codes.InvalidArgument, "The column identifier's format is invalid: %s. "+
		"It should be either \"<schema>.<table>.<column>\" or \"<table>.<column>\".", path)
}

// IdentityTableNotFound returns the error for an argument of GET_TABLE_COLUMN_IDENTITY_STATE whose table does not
// exist.
func IdentityTableNotFound(table string) *Error {
	return newError(codes.InvalidArgument, "Table not found for the GET_TABLE_COLUMN_IDENTITY_STATE function: %s", table)
}

// IdentityColumnNotFound returns the error for an argument of GET_TABLE_COLUMN_IDENTITY_STATE whose column is not an
// identity column.
func IdentityColumnNotFound(table, column string) *Error {
	return newError(codes.InvalidArgument, "Identity column not found in table %s: %s", table, column)
}
