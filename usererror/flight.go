package usererror

import (
	"fmt"

	"google.golang.org/grpc/codes"
)

// Errors of Arrow Flight SQL. A request that is translated to requests of Spanner's API can also have the errors of
// those requests.

// FlightDatabaseMissing reports that a request does not name its database.
func FlightDatabaseMissing(header string) *Error {
	return newError(codes.InvalidArgument, "The request does not name a database. Send the header %s: projects/PROJECT/instances/INSTANCE/databases/DATABASE; with ADBC, set the option adbc.flight.sql.rpc.call_header.%s; with JDBC, the URL parameter %s.", header, header, header)
}

// InvalidTicket returns the error for a ticket, or for a handle of a prepared statement or a transaction, that this
// server did not make or that was changed. The parameter what says which of these it is, as text for the user.
func InvalidTicket(what string) *Error {
	return newError(codes.InvalidArgument, "Invalid %s: it was not given out by this server, or was changed.", what)
}

// UnknownFlightCommand reports that the server does not know this command of Flight SQL.
func UnknownFlightCommand(name string) *Error {
	return newError(codes.Unimplemented, "Unknown Flight SQL command: %s.", shorten(name))
}

// UnknownFlightAction reports that the server does not have this action.
func UnknownFlightAction(name string) *Error {
	return newError(codes.Unimplemented, "Unknown Flight action: %s. ListActions lists those that there are.", shorten(name))
}

// InvalidFlightDescriptor reports that a FlightDescriptor does not contain a command of Flight SQL. why says what is
// wrong.
func InvalidFlightDescriptor(why string) *Error {
	return newError(codes.InvalidArgument, "Invalid FlightDescriptor: %s.", why)
}

// InvalidFlightHeader reports that a header has a value that the server does not accept. want says what it accepts.
func InvalidFlightHeader(header, value, want string) *Error {
	return newError(codes.InvalidArgument, "Invalid header %s: %s. Expected %s.", header, shorten(value), want)
}

// ArrowOutOfRange reports that a value does not fit into the Arrow type of its column. The last argument is a sentence
// that says what the user can do.
func ArrowOutOfRange(column, typ, value, arrow, instead string) *Error {
	return newError(codes.OutOfRange, "Column %s has the %s %s, which is out of the range of Arrow's %s. %s", column, typ, value, arrow, instead)
}

// FlightChangeStream returns the error for a query of a change stream over Flight SQL. The server refuses the query,
// because it may never end.
func FlightChangeStream() *Error {
	return newError(codes.Unimplemented, "Change streams are not read over Arrow Flight SQL. Use ExecuteStreamingSql.")
}

// InvalidArrowData reports that a client sent data that is not a stream of Arrow record batches.
func InvalidArrowData(why string) *Error {
	return newError(codes.InvalidArgument, "Invalid Arrow data: %s.", why)
}

// FlightParameterCount reports that a batch of parameters has more or fewer columns than the statement has parameters.
func FlightParameterCount(want, got int) *Error {
	return newError(codes.InvalidArgument, "The statement has %d parameters, and the batch has %d columns.", want, got)
}

// FlightManyParameterRows reports that several rows of parameters were bound to a query, which can have only one.
func FlightManyParameterRows() *Error {
	return newError(codes.InvalidArgument, "A query takes one row of parameters, and several were bound. Execute it once for each row.")
}

// FlightNotAnUpdate reports that a query was sent as an update.
func FlightNotAnUpdate() *Error {
	return newError(codes.InvalidArgument, "The statement is a query, which cannot be executed as an update.")
}

// FlightReturnsTooMuch reports that the rows of THEN RETURN do not fit into a ticket. limit is the largest number of
// bytes that fit.
func FlightReturnsTooMuch(limit int) *Error {
	return newError(codes.InvalidArgument, "The statement returns more than %d MiB of rows, which Arrow Flight SQL has no room for. Change fewer rows at once, or read them afterwards.", limit>>20)
}

// FlightIngestUnsupported returns the error for a bulk load into a temporary table or into a table of another catalog.
func FlightIngestUnsupported() *Error {
	return newError(codes.Unimplemented, "Bulk ingest writes tables of the database that the request names: there are no temporary tables and no other catalogs.")
}

// IngestTableExists reports that a bulk load should create a table, but a table has that name already.
func IngestTableExists(name string) *Error {
	return newError(codes.AlreadyExists, "Table %s exists already.", name)
}

// IngestColumnType reports that a bulk load should create a column of a type that GoogleSQL does not have.
func IngestColumnType(column string, why error) *Error {
	return newError(codes.InvalidArgument, "Column %s: %v.", shorten(column), why)
}

// IngestValue reports that a value from a client cannot be converted to the type of its column. row counts from 1.
func IngestValue(column, typ string, row int64, why error) *Error {
	return newError(codes.InvalidArgument, "Row %d: invalid value for column %s of type %s: %v.", row, shorten(column), typ, why)
}

// AfterIngest adds to the text of err the number of rows that a bulk load committed before it failed. The code of err
// stays the same. AfterIngest returns err unchanged if rows is 0 or the bulk load is part of a transaction.
func AfterIngest(err error, rows int64, inTransaction bool) error {
	e, ok := As(err)
	if rows == 0 || inTransaction || !ok {
		return err
	}
	then := *e
	then.Message = fmt.Sprintf("%s The %d rows before were committed and stay.", e.Message, rows)
	return &then
}
