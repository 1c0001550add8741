package usererror

import "google.golang.org/grpc/codes"

// Errors about the values, keys and mutations in a request.

// UnparsableColumnValue reports that a value in a mutation or key cannot be converted to the type of its column.
func UnparsableColumnValue(column, typ string, why error) *Error {
	return newError(codes.FailedPrecondition, "Invalid value for column %s in the request: Could not parse it as %s: %v.", column, typ, why)
}

// UnparsableParam reports that the value of a query parameter cannot be converted to the parameter's type.
func UnparsableParam(name, typ string, why error) *Error {
	return newError(codes.InvalidArgument, "Invalid value for bind parameter %s: expected %s: %v.", name, typ, why)
}

// InvalidParamType returns the error for a query parameter whose declared type does not exist.
func InvalidParamType(name string, why error) *Error {
	return newError(codes.InvalidArgument, "Invalid type for bind parameter %s: %v.", name, why)
}

// KeyRangeEndMissing returns the error for a key range that has no start or no end. Its argument is the text "start" or
// "end".
func KeyRangeEndMissing(which string) *Error {
	return newError(codes.InvalidArgument, "A key range must contain a closed or open %s.", which)
}

// EmptyMutation returns the error for a mutation without an operation.
func EmptyMutation() *Error {
	return newError(codes.InvalidArgument, "A mutation must contain one of insert, update, insert_or_update, replace and delete.")
}

// QueuesUnsupported returns the error for a mutation that sends or acknowledges a message of a queue.
func QueuesUnsupported() *Error {
	return newError(codes.Unimplemented, "Queues are not supported: mutations send and ack are not available.")
}

// NoColumns returns the error for a read that names no column.
func NoColumns() *Error {
	return newError(codes.InvalidArgument, "Invalid read request: at least one column must be specified.")
}

// MissingField reports that a required field of a request is empty.
func MissingField(field string) *Error {
	return newError(codes.InvalidArgument, "Invalid request: %s is required.", field)
}

// InvalidEnum returns the error for a field whose number is not a value of the field's enum.
func InvalidEnum(field string, n int32) *Error {
	return newError(codes.InvalidArgument, "Invalid request: unknown %s %d.", field, n)
}

// NegativeLimit returns the error for a read with a negative limit.
func NegativeLimit() *Error {
	return newError(codes.InvalidArgument, "Invalid read request: limit must be non-negative.")
}

// LimitWithPartition returns the error for a read of a partition with a limit.
func LimitWithPartition() *Error {
	return newError(codes.InvalidArgument, "Invalid read request: limit cannot be used with a partition_token.")
}

// OrderWithPartition returns the error for a read of a partition that asks for the order of the primary key. The server
// refuses the read, because the partitions together have no order.
func OrderWithPartition() *Error {
	return newError(codes.InvalidArgument, "Invalid read request: order_by PRIMARY_KEY cannot be used with a partition_token.")
}

// DataBoostWithoutPartition returns the error for data_boost_enabled in a request without a partition token.
func DataBoostWithoutPartition() *Error {
	return newError(codes.InvalidArgument, "data_boost_enabled can only be set with a partition_token.")
}

// PlanWithPartition returns the error for a query of a partition in a mode other than NORMAL.
func PlanWithPartition() *Error {
	return newError(codes.InvalidArgument, "PLAN and PROFILE query modes cannot be used with a partition_token.")
}

// InvalidPartitionToken returns the error for a partition token that this server did not make.
func InvalidPartitionToken() *Error {
	return newError(codes.InvalidArgument, "Invalid partition_token: it was not given out by this server.")
}

// ForeignPartitionToken reports that the token belongs to another session, transaction or request.
func ForeignPartitionToken() *Error {
	return newError(codes.InvalidArgument, "Invalid partition_token: it was created for a different session, transaction or request.")
}

// ResultTooLarge returns the error for a result that is too large for a reply of one message.
func ResultTooLarge(limit int) *Error {
	return newError(codes.FailedPrecondition, "The result exceeds the maximum size of %d bytes of a non-streaming call. Use the streaming call instead.", limit)
}

// InvalidPartitionOptions returns the error for partition_size_bytes or max_partitions out of range.
func InvalidPartitionOptions(limit int) *Error {
	return newError(codes.InvalidArgument, "Invalid partition_options: partition_size_bytes and max_partitions must be non-negative, max_partitions at most %d.", limit)
}
