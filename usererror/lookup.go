package usererror

import (
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// Errors of READ requests and mutations that name an object which does not exist. SQL statements with the same mistake
// get INVALID_ARGUMENT: see sql.go.

// TableNotFound reports that no table has this name.
func TableNotFound(table string) *Error {
	return newError(codes.NotFound, "Table not found: %s", shorten(table))
}

// IndexNotFound reports that the table has no index with this name.
func IndexNotFound(index, table string) *Error {
	return newError(codes.NotFound, "No index %s was found for table %s.", shorten(index), table)
}

// ColumnNotFound reports that the table has no column with this name.
func ColumnNotFound(table, column string) *Error {
	return newError(codes.NotFound, "Column not found in table %s: %s", table, shorten(column))
}

// AtTimestamp adds the timestamp of a read to the text of err, which says that a name does not exist. The text then
// tells the user that the name is missing in the schema of that timestamp; the current schema may have it. The code of
// err stays the same.
func AtTimestamp(err error, at time.Time) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	then := *e
	then.Message = strings.TrimSuffix(e.Message, ".") + " at timestamp " + at.Format(time.RFC3339Nano)
	return &then
}
