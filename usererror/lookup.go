package usererror

import (
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// Errors of READ requests and mutations that name an object that does not exist. For the same mistakes in SQL the code
// is INVALID_ARGUMENT, see sql.go.

// TableNotFound reports that no table has this name.
func TableNotFound(table string) *Error {
	return newError(codes.NotFound, "Table not found: %s", shorten(table))
}

// IndexNotFound reports that the table has no index of this name.
func IndexNotFound(index, table string) *Error {
	return newError(codes.NotFound, "No index %s was found for table %s.", shorten(index), table)
}

// ColumnNotFound reports that the table has no column of this name.
func ColumnNotFound(table, column string) *Error {
	return newError(codes.NotFound, "Column not found in table %s: %s", table, shorten(column))
}

// AtTimestamp adds the read timestamp to err, which says that the schema of that time does not have a name. It keeps
// the code.
func AtTimestamp(err error, at time.Time) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	then := *e
	then.Message = strings.TrimSuffix(e.Message, ".") + " at timestamp " + at.Format(time.RFC3339Nano)
	return &then
}
