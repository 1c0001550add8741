package usererror

import (
	"strings"

	"google.golang.org/grpc/codes"
)

// Errors about views and functions. Their texts are those of Google's Spanner emulator.

// NoSQLSecurity returns the error for CREATE VIEW or CREATE FUNCTION without the clause SQL SECURITY. kind is "View" or
// "Function".
func NoSQLSecurity(kind, name string) *Error {
	return newError(codes.InvalidArgument, "%s `%s` is missing the SQL SECURITY clause.", kind, name)
}

// BadDefinition returns the error for a view or function whose SQL cannot be analyzed. kind is "view" or "function".
func BadDefinition(kind, name string, cause error) *Error {
	return newError(codes.InvalidArgument, "Error parsing the definition of %s `%s`: %s", kind, name, cause).quoting(cause)
}

// BadReplacement returns the error for CREATE OR REPLACE with SQL that cannot be analyzed. kind is "View" or
// "Function".
func BadReplacement(kind, name string, cause error) *Error {
	return newError(codes.FailedPrecondition, "Cannot replace %s `%s` because new definition is invalid with the following diagnostic message:\n\n%s",
		strings.ToUpper(kind), name, cause).quoting(cause)
}

// RecursiveReplacement returns the error for CREATE OR REPLACE with SQL that names the object itself, directly or
// through other objects.
func RecursiveReplacement(kind, name string) *Error {
	return newError(codes.FailedPrecondition, "Cannot replace %s `%s` because new definition is recursive.", strings.ToUpper(kind), name)
}

// TooDeepViews returns the error for a view or function that begins a chain of too many views and functions, each of
// which names the next. limit is the maximum length of a chain.
func TooDeepViews(name string, limit int) *Error {
	return newError(codes.FailedPrecondition, "The definition of `%s` is nested too deeply: the limit is %d levels of views and functions.", name, limit)
}

// DropUnderViews returns the error for a DROP of an object that views name. The parameter what is the kind and name of
// the object, such as "TABLE `t`" or "column `c`".
func DropUnderViews(what, views string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop %s on which there are dependent views: %s.", what, views)
}

// DropUnderFunction returns the error for a DROP of an object that functions name. The parameter what is the kind and
// name of the object.
func DropUnderFunction(what, functions string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop %s on which there is a dependent function: %s.", what, functions)
}

// DependentInvalid returns the error for a change that would make the SQL of a dependent view or function invalid.
// action is the change, such as "alter VIEW". cause is the name of the changed object.
func DependentInvalid(action, cause, kind, dependent, reason string) *Error {
	return newError(codes.FailedPrecondition,
		"Cannot %s `%s`. The new definition causes the definition of %s `%s` to become invalid with the following diagnostic message: %s",
		action, cause, strings.ToUpper(kind), dependent, reason)
}

// DependentRenamed returns the error for a change that would give an output column of a view another name.
func DependentRenamed(action, cause, view, from, to string) *Error {
	return newError(codes.FailedPrecondition,
		"Cannot %s `%s`. Action would implicitly change the name of an output column for VIEW `%s` from `%s` to `%s`.\nTip: Give explicit names to output columns in the VIEW definition before making this change.",
		action, cause, view, from, to)
}

// DependentRetyped returns the error for a change that would give an output column of a view another type.
func DependentRetyped(action, cause, view, from, to string) *Error {
	return newError(codes.FailedPrecondition,
		"Cannot %s `%s`. Action would implicitly change the type of an output column for VIEW `%s` from `%s` to `%s`.\nTip: Give explicit type to output columns in the VIEW definition before making this change by adding casts/conversions to the intended final output type.",
		action, cause, view, from, to)
}

// LockInDefinition returns the error for FOR UPDATE in the SQL of a view or function.
func LockInDefinition() *Error {
	return newError(codes.InvalidArgument, "Unexpected lock mode in function body query.")
}

// ViewWrite returns the error for DML on a view.
func ViewWrite(view string) *Error {
	return newError(codes.InvalidArgument, "Cannot modify view %s: views are read-only.", view)
}

// ViewForceIndex returns the error for a hint FORCE_INDEX on a view.
func ViewForceIndex(view string) *Error {
	return newError(codes.InvalidArgument, "The hint FORCE_INDEX does not apply to view %s: only tables have indexes.", view)
}

// SynonymExists returns the error for adding a synonym to a table that has one.
func SynonymExists(synonym, table string) *Error {
	return newError(codes.InvalidArgument, "Cannot add a synonym to table %s because the table already has a synonym %s.", table, synonym)
}

// SynonymNotFound returns the error for DROP SYNONYM of a synonym that the table does not have.
func SynonymNotFound(synonym, table string) *Error {
	return newError(codes.InvalidArgument, "SYNONYM %s does not exist on table %s.", synonym, table)
}

// NameInOtherSchema returns the error for giving a table, or its synonym, a new name in a schema that is not the
// table's schema.
func NameInOtherSchema(name, table string) *Error {
	return newError(codes.InvalidArgument, "The name %s is not in the schema of table %s. A table cannot be moved to another schema.", name, table)
}

// DropUnderColumn returns the error for DROP of a function that the expression of a column calls. column has the form
// "t.c".
func DropUnderColumn(what, column string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop %s on which there is a dependent column: %s.", what, column)
}

// DropUnderCheck returns the error for DROP of a function that a check constraint calls.
func DropUnderCheck(what, check string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop %s on which there is a dependent check constraint: %s.", what, check)
}

// BuiltInName returns the error for a function with the name of a built-in function.
func BuiltInName(kind, name string) *Error {
	return newError(codes.FailedPrecondition, "Cannot create a %s with the same name as builtin function `%s`. This may be supported in a future release.", kind, name)
}

// SafeFunction returns the error for the prefix SAFE. before a user-defined function.
func SafeFunction(name string) *Error {
	return newError(codes.InvalidArgument, "Function %s does not support SAFE error mode.", name)
}
