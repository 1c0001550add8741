package usererror

import (
	"time"

	"google.golang.org/grpc/codes"
)

// Errors of AddSplitPoints. Their wording is Cloud Spanner's:
// https://cloud.google.com/spanner/docs/create-manage-split-points#possible_error_scenarios.

// InvalidSplitPoint reports that a split point of a table or index is invalid. object is the table or index; why says
// what is wrong.
func InvalidSplitPoint(object, why string) *Error {
	return newError(codes.InvalidArgument, "A split point of %s is invalid, due to %s.", object, why)
}

// SplitPointTwice reports that a request names a split point twice. point is its key, with the name of its table or
// index.
func SplitPointTwice(point string) *Error {
	return newError(codes.InvalidArgument, "The request contains duplicate split points: %s.", shorten(point))
}

// SplitIndexNotFound reports that a split point names an index without naming its table, and no table has such an
// index.
func SplitIndexNotFound(index string) *Error {
	return newError(codes.NotFound, "Index not found: %s", shorten(index))
}

// TooManySplitPoints reports that a request has more than limit split points.
func TooManySplitPoints(limit int) *Error {
	return newError(codes.InvalidArgument, "Too many split points: one request can hold at most %d.", limit)
}

// SplitPointsExhausted reports that a database would have more than limit split points.
func SplitPointsExhausted(limit int) *Error {
	return newError(codes.ResourceExhausted, "Too many split points: a database can have at most %d. Let some expire first.", limit)
}

// InvalidSplitExpiry returns the error for an expire_time that is not a valid timestamp, or that is too far in the
// future. limit is the longest allowed time from now to the expire_time.
func InvalidSplitExpiry(limit time.Duration) *Error {
	return newError(codes.InvalidArgument, "The expire_time of split points must be a valid timestamp at most %d days in the future.", limit/(24*time.Hour))
}
