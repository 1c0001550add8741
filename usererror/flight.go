package usererror

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
)

// Errors of Arrow Flight SQL, beside those of the requests that it is made of.

// FlightDatabaseMissing: a request does not say which database it is about.
func FlightDatabaseMissing(header string) *Error {
	return newError(codes.InvalidArgument, "The request does not name a database. Send the header %s: projects/PROJECT/instances/INSTANCE/databases/DATABASE; with ADBC, set the option adbc.flight.sql.rpc.call_header.%s; with JDBC, the URL parameter %s.", header, header, header)
}

// InvalidTicket: a ticket, or a handle of a prepared statement or a transaction, that this server has not given out, or that was changed.
func InvalidTicket(what string) *Error {
	return newError(codes.InvalidArgument, "Invalid %s: it was not given out by this server, or was changed.", what)
}

// UnknownFlightCommand: the server does not know this command of Flight SQL.
func UnknownFlightCommand(name string) *Error {
	return newError(codes.Unimplemented, "Unknown Flight SQL command: %s.", shorten(name))
}

// UnknownFlightAction: the server does not have this action.
func UnknownFlightAction(name string) *Error {
	return newError(codes.Unimplemented, "Unknown Flight action: %s. ListActions lists those that there are.", shorten(name))
}

// InvalidFlightDescriptor: what follows a descriptor's type is not a command of Flight SQL.
func InvalidFlightDescriptor(why string) *Error {
	return newError(codes.InvalidArgument, "Invalid FlightDescriptor: %s.", why)
}

// InvalidFlightHeader: a header has a value that the server does not take.
func InvalidFlightHeader(header, value, want string) *Error {
	return newError(codes.InvalidArgument, "Invalid header %s: %s. Expected %s.", header, shorten(value), want)
}

// ArrowOutOfRange: a value does not fit into the Arrow type of its column.
func ArrowOutOfRange(column, typ, value, arrow, instead string) *Error {
	return newError(codes.OutOfRange, "Column %s has the %s %s, which is out of the range of Arrow's %s. %s", column, typ, value, arrow, instead)
}

// FlightChangeStream: a query of a change stream, which may go on for ever, over Flight SQL.
func FlightChangeStream() *Error {
	return newError(codes.Unimplemented, "Change streams are not read over Arrow Flight SQL. Use ExecuteStreamingSql.")
}

// InvalidArrowData: what a client sent is not a stream of Arrow's record batches.
func InvalidArrowData(why string) *Error {
	return newError(codes.InvalidArgument, "Invalid Arrow data: %s.", why)
}

// FlightParameterCount: a batch of parameters has too many or too few columns.
func FlightParameterCount(want, got int) *Error {
	return newError(codes.InvalidArgument, "The statement has %d parameters, and the batch has %d columns.", want, got)
}

// FlightManyParameterRows: a query takes one row of parameters.
func FlightManyParameterRows() *Error {
	return newError(codes.InvalidArgument, "A query takes one row of parameters, and several were bound. Execute it once for each row.")
}

// FlightNotAnUpdate: a query was sent as an update.
func FlightNotAnUpdate() *Error {
	return newError(codes.InvalidArgument, "The statement is a query, which cannot be executed as an update.")
}

// FlightReturnsTooMuch: the rows of THEN RETURN are more than a ticket holds.
func FlightReturnsTooMuch(limit int) *Error {
	return newError(codes.InvalidArgument, "The statement returns more than %d MiB of rows, which Arrow Flight SQL has no room for. Change fewer rows at once, or read them afterwards.", limit>>20)
}

// FlightIngestUnsupported: a temporary table, or one of another catalog.
func FlightIngestUnsupported() *Error {
	return newError(codes.Unimplemented, "Bulk ingest writes tables of the database that the request names: there are no temporary tables and no other catalogs.")
}

// IngestTableExists: a table was to be made, and there is one of the name.
func IngestTableExists(name string) *Error {
	return newError(codes.AlreadyExists, "Table %s exists already.", name)
}

// IngestColumnType: a column to be made has a type that GoogleSQL does not have.
func IngestColumnType(column string, why error) *Error {
	return newError(codes.InvalidArgument, "Column %s: %v.", shorten(column), why)
}

// IngestValue: a value that a client sends for a column is none of its type. Rows count from 1.
func IngestValue(column, typ string, row int64, why error) *Error {
	return newError(codes.InvalidArgument, "Row %d: invalid value for column %s of type %s: %v.", row, shorten(column), typ, why)
}

// AfterIngest adds to err how many rows a bulk load had written before. The code stays.
func AfterIngest(err error, rows int64, inTransaction bool) error {
	var e *Error
	if rows == 0 || inTransaction || !errors.As(err, &e) {
		return err
	}
	then := *e
	then.Message = fmt.Sprintf("%s The %d rows before were committed and stay.", e.Message, rows)
	return &then
}
