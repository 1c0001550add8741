package usererror

import (
	"strings"

	"google.golang.org/grpc/codes"
)

// Errors from evaluating well-formed expressions. The texts are those of GoogleSQL's reference implementation.

// Overflow reports that a result does not fit its type. operation is the computation, such as 9223372036854775807 + 1.
func Overflow(typ, operation string) *Error {
	return newError(codes.OutOfRange, "%s overflow: %s", typ, operation)
}

// DivisionByZero returns the error for a division by zero. division is the computation, such as 1 / 0.
func DivisionByZero(division string) *Error {
	return newError(codes.OutOfRange, "division by zero: %s", division)
}

// FloatingPoint reports that a function has no value for its argument. call is the call, such as LN(-1).
func FloatingPoint(call string) *Error {
	return newError(codes.OutOfRange, "Floating point error in function: %s", call)
}

// FloatingPointOverflow reports that the value of a function is too large for FLOAT64. call is the call, such as
// COSH(1000).
func FloatingPointOverflow(call string) *Error {
	return newError(codes.OutOfRange, "Floating point overflow in function: %s", call)
}

// NegativeSquareRoot returns the error for SQRT of a negative number.
func NegativeSquareRoot(x string) *Error {
	return newError(codes.OutOfRange, "Argument to SQRT cannot be negative: %s", x)
}

// NegativeShift returns the error for << or >> by a negative number of bits.
func NegativeShift() *Error {
	return newError(codes.OutOfRange, "Bitwise binary shift by negative offset.")
}

// NegativeShiftOfBytes returns the error for << or >> of BYTES by a negative number of bits.
func NegativeShiftOfBytes() *Error {
	return newError(codes.OutOfRange, "Bitwise shift by negative offset.")
}

// BadValue reports that a text is not a value of the type. A message is, for example, "Bad int64 value: abc". For
// numeric types typ is in lower case, as GoogleSQL writes it.
func BadValue(typ, text string) *Error {
	return newError(codes.OutOfRange, "Bad %s value: %s", typ, text)
}

// InvalidValue reports that a text is not a value of a calendar type. A message is, for example, "Invalid date:
// '2020-02-30'". The parameter what is the name of the type.
func InvalidValue(what, text string) *Error {
	return newError(codes.OutOfRange, "Invalid %s: '%s'", what, text)
}

// CastOutOfRange reports that a number does not fit into the type to which it is converted.
func CastOutOfRange(typ, number string) *Error {
	return newError(codes.OutOfRange, "%s out of range: %s", typ, number)
}

// FloatToInteger reports that NaN, an infinity or too large a number is converted to an integer.
func FloatToInteger(number string) *Error {
	return newError(codes.OutOfRange, "Illegal conversion of non-finite floating point number to an integer: %s", number)
}

// BytesNotUTF8 returns the error for a cast to STRING of BYTES that are not valid UTF-8.
func BytesNotUTF8() *Error {
	return newError(codes.OutOfRange, "Invalid cast of bytes to UTF8 string")
}

// NoCast reports that values of one type cannot be converted to the other type.
func NoCast(from, to string) *Error {
	return newError(codes.InvalidArgument, "Invalid cast from %s to %s", from, to)
}

// ArrayIndex returns the error for array[OFFSET(i)] or array[ORDINAL(i)] if the array has no such element.
func ArrayIndex(index int64) *Error {
	return newError(codes.OutOfRange, "Array index %d is out of bounds", index)
}

// UserError returns the error for a call of ERROR(text).
func UserError(text string) *Error {
	return newError(codes.OutOfRange, "%s", text)
}

// BadArgument returns the error of a function that refuses the value of an argument. sentence is the whole text.
func BadArgument(sentence string) *Error {
	return newError(codes.OutOfRange, "%s", sentence)
}

// BadRegexp reports that a text is not a regular expression in the syntax of RE2.
func BadRegexp(problem string) *Error {
	return newError(codes.OutOfRange, "Cannot parse regular expression: %s", problem)
}

// UnsupportedFunction reports that GoogleSQL has the function with these argument types but Crowfoot does not have it.
func UnsupportedFunction(name string, args []string) *Error {
	return newError(codes.Unimplemented, "Unsupported built-in function: %s(%s)", name, strings.Join(args, ", "))
}

// DateOverflow reports that adding to a date or timestamp, or subtracting from it, gives a date outside the years 1 to
// 9999.
func DateOverflow(doing string, n int64, part, typ, from string) *Error {
	return newError(codes.OutOfRange, "%s %d %s to %s %s causes overflow", doing, n, part, typ, from)
}

// NullSeparator reports that the separator of STRING_AGG is a parameter that is NULL.
func NullSeparator() *Error {
	return newError(codes.InvalidArgument, "Illegal NULL separator in STRING_AGG")
}

// IntervalRange returns the error for an interval outside of 10,000 years.
func IntervalRange() *Error {
	return newError(codes.OutOfRange, "Interval is out of range: years, months, days and time must each stay within 10000 years")
}

// TimestampRange returns the error for a timestamp before year 1 or after 9999.
func TimestampRange() *Error {
	return newError(codes.OutOfRange, "Timestamp is out of range: it must be from 0001-01-01 00:00:00 to 9999-12-31 23:59:59.999999999 UTC")
}

// DateRange returns the error for a date before year 1 or after 9999.
func DateRange() *Error {
	return newError(codes.OutOfRange, "Date is out of range: it must be from 0001-01-01 to 9999-12-31")
}

// PutOff returns an error with the code and message of an earlier error, which occurred in a branch of IF or CASE while
// an aggregate was computed. The server stored that error instead of returning it, because a query may fail with it
// only if the query takes the branch. PutOff is called when the query takes the branch.
func PutOff(code codes.Code, message string) *Error {
	return newError(code, "%s", message)
}

// AggregateOverflow reports that a sum does not fit its type.
func AggregateOverflow(typ string) *Error {
	return newError(codes.OutOfRange, "%s overflow", typ)
}

// QueryMemory returns the error for a statement whose rows take more than limit bytes of memory. Its code is
// OUT_OF_RANGE and not RESOURCE_EXHAUSTED: official clients repeat a unary call that fails with RESOURCE_EXHAUSTED
// until a time limit, and this statement would fail each time.
func QueryMemory(limit int64) *Error {
	return newError(codes.OutOfRange, "The query needs more memory than the %d bytes that one query may take. Filter, group or limit its rows earlier.", limit)
}

// NoRoomToSpill returns the error for a statement whose rows fit neither into memory nor into the disk space that
// temporary files may take.
func NoRoomToSpill() *Error {
	return newError(codes.ResourceExhausted, "The query needs more temporary disk space than there is. Filter, group or limit its rows earlier, or try again when other queries have ended.")
}

// ValueTooLarge returns the error for an expression whose value would exceed the size limit of values.
func ValueTooLarge(limit int) *Error {
	return newError(codes.OutOfRange, "The value is too large: the limit is %d bytes.", limit)
}
