package usererror

import "google.golang.org/grpc/codes"

// Errors about the values, keys and mutations that a request holds.

// UnparsableColumnValue: a mutation or key gives a value that is none of its column's type.
func UnparsableColumnValue(column, typ string, why error) *Error {
	return newError(codes.FailedPrecondition, "Invalid value for column %s in the request: could not parse it as %s: %v.", column, typ, why)
}

// UnparsableParam: a query parameter whose value is none of its type.
func UnparsableParam(name, typ string, why error) *Error {
	return newError(codes.InvalidArgument, "Invalid value for bind parameter %s: expected %s: %v.", name, typ, why)
}

// InvalidParamType: a declared parameter type that does not exist.
func InvalidParamType(name string, why error) *Error {
	return newError(codes.InvalidArgument, "Invalid type for bind parameter %s: %v.", name, why)
}

// KeyRangeEndMissing: which is start or end.
func KeyRangeEndMissing(which string) *Error {
	return newError(codes.InvalidArgument, "A key range must contain a closed or open %s.", which)
}

// EmptyMutation: a mutation without an operation.
func EmptyMutation() *Error {
	return newError(codes.InvalidArgument, "A mutation must contain one of insert, update, insert_or_update, replace and delete.")
}

// QueuesUnsupported: send and ack.
func QueuesUnsupported() *Error {
	return newError(codes.Unimplemented, "Queues are not supported: mutations send and ack are not available.")
}

// NoColumns: a read of no column.
func NoColumns() *Error {
	return newError(codes.InvalidArgument, "Invalid read request: at least one column must be specified.")
}

// MissingField: a required field of a request is empty.
func MissingField(field string) *Error {
	return newError(codes.InvalidArgument, "Invalid request: %s is required.", field)
}

// InvalidEnum: a number that the enum does not have.
func InvalidEnum(field string, n int32) *Error {
	return newError(codes.InvalidArgument, "Invalid request: unknown %s %d.", field, n)
}

// NegativeLimit: a read of fewer than no rows.
func NegativeLimit() *Error {
	return newError(codes.InvalidArgument, "Invalid read request: limit must be non-negative.")
}

// LimitWithPartition: a partition is read as a whole.
func LimitWithPartition() *Error {
	return newError(codes.InvalidArgument, "Invalid read request: limit cannot be used with a partition_token.")
}

// OrderWithPartition: partitions have no common order.
func OrderWithPartition() *Error {
	return newError(codes.InvalidArgument, "Invalid read request: order_by PRIMARY_KEY cannot be used with a partition_token.")
}

// DataBoostWithoutPartition: Data Boost is for partitioned reads and queries.
func DataBoostWithoutPartition() *Error {
	return newError(codes.InvalidArgument, "data_boost_enabled can only be set with a partition_token.")
}

// PlanWithPartition: query modes other than NORMAL are not for partitions.
func PlanWithPartition() *Error {
	return newError(codes.InvalidArgument, "PLAN and PROFILE query modes cannot be used with a partition_token.")
}

// InvalidPartitionToken: no server gave this out, or not this one.
func InvalidPartitionToken() *Error {
	return newError(codes.InvalidArgument, "Invalid partition_token: it was not given out by this server.")
}

// ForeignPartitionToken: the token belongs to another session, transaction or request.
func ForeignPartitionToken() *Error {
	return newError(codes.InvalidArgument, "Invalid partition_token: it was created for a different session, transaction or request.")
}

// ResultTooLarge: more than one message holds.
func ResultTooLarge(limit int) *Error {
	return newError(codes.FailedPrecondition, "The result exceeds the maximum size of %d bytes of a non-streaming call. Use the streaming call instead.", limit)
}

// InvalidPartitionOptions: sizes or counts out of range.
func InvalidPartitionOptions(limit int) *Error {
	return newError(codes.InvalidArgument, "Invalid partition_options: partition_size_bytes and max_partitions must be non-negative, max_partitions at most %d.", limit)
}
