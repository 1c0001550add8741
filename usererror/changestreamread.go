package usererror

import (
	"time"

	"google.golang.org/grpc/codes"
)

// Errors of queries that read a change stream. Their wording is Spanner's.

// ChangeStreamNotFound returns the error for a change stream that does not exist, or was dropped while a query read it.
func ChangeStreamNotFound(stream string) *Error {
	return newError(codes.NotFound, "Change Stream not found: %s", shorten(stream))
}

// ChangeStreamUnary returns the error for a query of a change stream by ExecuteSql.
func ChangeStreamUnary() *Error { return changeStreamRefused("the ExecuteSql API") }

// ChangeStreamPartitionQuery returns the error for PartitionQuery with a query of a change stream.
func ChangeStreamPartitionQuery() *Error { return changeStreamRefused("the PartitionQuery API") }

// ChangeStreamMultiUse returns the error for a query of a change stream in a transaction of several requests, or at a
// timestamp.
func ChangeStreamMultiUse() *Error { return changeStreamRefused("multi use transactions") }

func changeStreamRefused(by string) *Error {
	return newError(codes.InvalidArgument,
		"Change stream queries are not supported for %s. Change stream queries must be strong reads executed via single use transactions using the ExecuteStreamingSql API.", by)
}

// StreamStartNull returns the error for start_timestamp being NULL.
func StreamStartNull() *Error {
	return newError(codes.InvalidArgument, "start_timestamp must not be null.")
}

// StreamEndBeforeStart returns the error for an end_timestamp before the start_timestamp.
func StreamEndBeforeStart(start, end time.Time) *Error {
	return newError(codes.InvalidArgument,
		"If end_timestamp is specified, start_timestamp must be <= end_timestamp. Received start_timestamp: %s, end_timestamp: %s.", streamTime(start), streamTime(end))
}

// StreamHeartbeatNull returns the error for heartbeat_milliseconds being NULL.
func StreamHeartbeatNull() *Error {
	return newError(codes.InvalidArgument, "heartbeat_milliseconds must not be null.")
}

// StreamHeartbeatRange returns the error for a heartbeat_milliseconds that is not between least and most.
func StreamHeartbeatRange(least, most, heartbeat int64) *Error {
	return newError(codes.OutOfRange, "heartbeat_milliseconds must be within min %d and max %d. Received heartbeat_milliseconds: %d.", least, most, heartbeat)
}

// StreamReadOptions returns the error for read_options not being NULL.
func StreamReadOptions() *Error {
	return newError(codes.Unimplemented, "read_options must be null.")
}

// ChangeStreamCombined returns the error for a query of a change stream that does more than call the function
// READ_<stream>.
func ChangeStreamCombined(function string) *Error {
	return newError(codes.Unimplemented,
		"Change stream TVF must not be combined with any other SQL statements. Change stream records should be read using `SELECT ChangeRecord FROM %s(<args>)`.",
		shorten(function))
}

// ChangeStreamArgument returns the error for an argument of a change stream function that is not a literal or parameter
// of the right type. argument counts from 1.
func ChangeStreamArgument(function string, argument int) *Error {
	return newError(codes.InvalidArgument,
		"Invalid argument of change stream TVF %s. Argument %d is not a literal or parameter. Implicit type conversions are not supported.",
		shorten(function), argument)
}

// StreamStartInFuture returns the error for a start_timestamp that is after latest, the latest allowed one.
func StreamStartInFuture(earliest, latest, start time.Time) *Error {
	return newError(codes.OutOfRange,
		"Specified start_timestamp is too far in the future. Please specify a start_timestamp within the earliest read timestamp: %s, and the current maximum start timestamp: %s. Received start_timestamp: %s.",
		streamTime(earliest), streamTime(latest), streamTime(start))
}

// StreamStartTooOld returns the error for a start_timestamp before the retention period of the stream, or before its
// creation. A query also ends with this error if it reads so slowly that records are deleted before it reads them.
func StreamStartTooOld(earliest, start time.Time) *Error {
	return newError(codes.OutOfRange,
		"Specified start_timestamp is too far in the past. Please specify a start_timestamp within the earliest read timestamp: %s. Received start_timestamp: %s.",
		streamTime(earliest), streamTime(start))
}

// StreamStartOutsidePartition returns the error for a start_timestamp at which the partition did not exist. The
// arguments from and until are the start and end of the partition; until is zero if the partition has not ended.
func StreamStartOutsidePartition(from, until, start time.Time) *Error {
	last := "infinite-future"
	if !until.IsZero() {
		last = streamTime(until)
	}
	return newError(codes.OutOfRange,
		"Specified start_timestamp is invalid for the partition. Please specify a start_timestamp within %s and %s. Received start_timestamp: %s.",
		streamTime(from), last, streamTime(start))
}

// ForeignStreamToken returns the error for a partition_token that does not belong to the change stream.
func ForeignStreamToken(token string) *Error {
	return newError(codes.InvalidArgument,
		"Specified partition_token is invalid, as it does not belong to the Change Stream associated with the TVF. Received partition_token: %s.", shorten(token))
}

// PartitionExpired returns the error for a partition_token whose partition's records have all been deleted.
func PartitionExpired() *Error {
	return newError(codes.OutOfRange,
		"This partition is no longer valid. All Change Stream records associated with this partition have expired and have been deleted, as specified by the Change Stream retention period.")
}

func streamTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
