package usererror

import "google.golang.org/grpc/codes"

// TooManyChangeStreams returns the error for a new change stream in a database that already has the maximum number of
// change streams. limit is that maximum.
func TooManyChangeStreams(stream string, limit int) *Error {
	return newError(codes.FailedPrecondition,
		"Cannot add Change Stream %s : because the maximum number of Change Streams per Database (limit %d) has been reached.", stream, limit)
}

// TooManyWatchers returns the error for creating or altering a change stream, if more than limit change streams would
// then watch the same object. watched is this object: a table, a column "t.c", or ALL for the whole database.
func TooManyWatchers(stream string, limit int, watched string) *Error {
	return newError(codes.FailedPrecondition,
		"Failed to create or alter Change Stream %s : because it is not allowed to have more than %d Change Streams tracking the same table or non-key column or ALL: %s.",
		stream, limit, watched)
}

// WatchedTableNotFound returns the error for a FOR clause with a table that does not exist or that cannot be watched.
func WatchedTableNotFound(stream, table string) *Error {
	return newError(codes.FailedPrecondition,
		"Change Stream %s cannot track %s because either Change Streams do not track database objects of this type, or this Table does not exist.",
		stream, table)
}

// WatchedColumnNotFound returns the error for a FOR clause with a column that does not exist.
func WatchedColumnNotFound(stream, table, column string) *Error {
	return newError(codes.FailedPrecondition, "Change Stream %s cannot track column %s because it does not exist in Table %s.", stream, column, table)
}

// WatchedKeyColumn returns the error for a FOR clause that lists a column of the primary key.
func WatchedKeyColumn(stream, table, column string) *Error {
	return newError(codes.FailedPrecondition,
		"The FOR clause of Change Stream %s should not list the primary key column %s of Table %s. Please list non-key columns only, because primary key columns are always tracked if the table is tracked.",
		stream, column, table)
}

// WatchedGeneratedColumn returns the error for a FOR clause that lists a generated column that is not stored. column
// has the form "t.c".
func WatchedGeneratedColumn(stream, column string) *Error {
	return newError(codes.FailedPrecondition,
		"Change Stream %s does not support tracking Column %s. Generated Columns that are neither STORED nor part of the primary key are not supported for tracking.",
		stream, column)
}

// WatchedTwice returns the error for a FOR clause that lists a table twice.
func WatchedTwice(stream, table string) *Error {
	return newError(codes.FailedPrecondition, "Change Stream %s should not list Table %s more than once in the FOR clause.", stream, table)
}

// WatchedColumnTwice returns the error for a FOR clause that lists a column twice.
func WatchedColumnTwice(stream, table, column string) *Error {
	return newError(codes.FailedPrecondition, "Change Stream %s should not list Column %s of Table %s more than once in the FOR clause.", stream, column, table)
}

// NothingWatched returns the error for DROP FOR ALL of a change stream that has no FOR clause.
func NothingWatched(stream string) *Error {
	return newError(codes.FailedPrecondition,
		"The ALTER CHANGE STREAM DROP FOR clause cannot be applied on Change Stream %s, because it does not have a FOR clause and it does not track any database object.",
		stream)
}

// UnknownChangeStreamOption returns the error for an option that change streams do not have. options lists the options
// that they have.
func UnknownChangeStreamOption(option, options string) *Error {
	return newError(codes.FailedPrecondition, "Invalid Change Stream Option: %s. Supported options are %s.", option, options)
}

// BadChangeStreamOption returns the error for a change stream option with a wrong value. want says which values are
// allowed.
func BadChangeStreamOption(option, value, want string) *Error {
	return newError(codes.FailedPrecondition, "Invalid %s: %s. %s.", option, value, want)
}

// DropWatchedTable returns the error for DROP TABLE of a table that change streams name.
func DropWatchedTable(table string, count int, streams string) *Error {
	return newError(codes.FailedPrecondition,
		"Cannot drop table %s. Table %[1]s is tracked by %d Change Stream: %s. Tables explicitly tracked by a Change Stream cannot be dropped. Please drop the Change Stream or modify its FOR clause to stop tracking the table explicitly before dropping the table.",
		table, count, streams)
}

// DropWatchedColumn returns the error for DROP COLUMN of a column that change streams name. column has the form "t.c".
func DropWatchedColumn(column string, count int, streams string) *Error {
	return newError(codes.FailedPrecondition,
		"Cannot drop column %s. Column %[1]s is tracked by %d Change Stream: %s. Columns explicitly tracked by a Change Stream cannot be dropped. Please alter the Change Stream to stop tracking the column before dropping the column.",
		column, count, streams)
}
