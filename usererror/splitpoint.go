package usererror

import (
	"time"

	"google.golang.org/grpc/codes"
)

// Errors of AddSplitPoints, in the service's wording:
// https://cloud.google.com/spanner/docs/create-manage-split-points#possible_error_scenarios.

// InvalidSplitPoint: object is the table or index; why says what is wrong with the split point.
func InvalidSplitPoint(object, why string) *Error {
	return newError(codes.InvalidArgument, "A split point of %s is invalid, due to %s.", object, why)
}

// SplitPointTwice: point is its key, with the name of its table or index.
func SplitPointTwice(point string) *Error {
	return newError(codes.InvalidArgument, "The request contains duplicate split points: %s.", shorten(point))
}

// SplitIndexNotFound: a split point of an index without its table, and no table has such an index.
func SplitIndexNotFound(index string) *Error {
	return newError(codes.NotFound, "Index not found: %s", shorten(index))
}

// TooManySplitPoints: more than a request may hold.
func TooManySplitPoints(limit int) *Error {
	return newError(codes.InvalidArgument, "Too many split points: one request can hold at most %d.", limit)
}

// SplitPointsExhausted: more than a database may have.
func SplitPointsExhausted(limit int) *Error {
	return newError(codes.ResourceExhausted, "Too many split points: a database can have at most %d. Let some expire first.", limit)
}

// InvalidSplitExpiry: an expire_time that is not a valid timestamp, or too late.
func InvalidSplitExpiry(limit time.Duration) *Error {
	return newError(codes.InvalidArgument, "The expire_time of split points must be a valid timestamp at most %d days in the future.", limit/(24*time.Hour))
}
