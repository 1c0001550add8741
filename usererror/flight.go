package usererror

import (
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
