package usererror

import "google.golang.org/grpc/codes"

// NoRowDeletionPolicy returns the error for REPLACE or DROP ROW DELETION POLICY of a table that has none.
func NoRowDeletionPolicy(table string) *Error {
	return newError(codes.InvalidArgument, "ROW DELETION POLICY does not exist on table %s.", table)
}

// RowDeletionPolicyExists returns the error for ADD ROW DELETION POLICY to a table that has one.
func RowDeletionPolicyExists(column, table string) *Error {
	return newError(codes.InvalidArgument, "Cannot create ROW DELETION POLICY because there is already one on column named %s in table %s.", column, table)
}

// RowDeletionPolicyColumnNotFound returns the error for a row deletion policy on a column that does not exist.
func RowDeletionPolicyColumnNotFound(column, table string) *Error {
	return newError(codes.InvalidArgument, "Cannot create ROW DELETION POLICY because there is no column named %s in table %s.", column, table)
}

// RowDeletionPolicyColumnType returns the error for a row deletion policy on a column that is not a TIMESTAMP.
func RowDeletionPolicyColumnType(column, table string) *Error {
	return newError(codes.InvalidArgument, "Cannot create ROW DELETION POLICY because column %s in table %s is not of type TIMESTAMP.", column, table)
}

// RowDeletionPolicyInterval returns the error for a row deletion policy whose number of days is not an INT64.
func RowDeletionPolicyInterval(days, table string) *Error {
	return newError(codes.InvalidArgument, "Cannot create ROW DELETION POLICY because the interval of %s days in table %s is out of range.", days, table)
}

// RowDeletionPolicyColumn returns the error for dropping the column of a row deletion policy, or for changing its type.
func RowDeletionPolicyColumn(column, table string) *Error {
	return newError(codes.InvalidArgument, "ROW DELETION POLICY will break if drop/alter column named %s in table %s. "+
		"Row Deletion Policy must be set on column of type TIMESTAMP.", column, table)
}

// RowDeletionPolicyChild returns the error for a row deletion policy on a table with a child that is ON DELETE NO
// ACTION.
func RowDeletionPolicyChild(table, child string) *Error {
	return newError(codes.InvalidArgument, "Cannot create row deletion policy on %s because there is a descendant Table %s with ON DELETE NO ACTION.", table, child)
}

// ChildOfRowDeletionPolicy returns the error for ON DELETE NO ACTION on a table that has an ancestor with a row
// deletion policy.
func ChildOfRowDeletionPolicy(table, ancestor string) *Error {
	return newError(codes.InvalidArgument, "Cannot create or alter table %s with ON DELETE NO ACTION because "+
		"there is a row deletion policy on ancestor table %s.", table, ancestor)
}

// RowDeletionPolicyForeignKey returns the error for a row deletion policy on a table to which foreign keys refer. The
// foreign keys would forbid the deletions of the policy.
func RowDeletionPolicyForeignKey(table, foreignKeys string) *Error {
	return newError(codes.InvalidArgument, "Cannot add a row deletion policy to table `%s`. It is referenced by one or more foreign keys: %s.", table, foreignKeys)
}
