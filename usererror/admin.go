package usererror

import "google.golang.org/grpc/codes"

// Errors of instance and database administration.

// Unimplemented returns the error for a method of the API that Crowfoot does not have.
func Unimplemented(method string) *Error {
	return newError(codes.Unimplemented, "Method %s is not implemented.", method)
}

// Unsupported returns the error for a feature that Spanner has but Crowfoot does not have. The parameter what names the
// feature and begins the message.
func Unsupported(what string) *Error {
	return newError(codes.Unimplemented, "%s is not supported.", what)
}

// OperationNotFound reports that no operation has this name: none ever had it, or the operation was deleted.
func OperationNotFound(name string) *Error {
	return newError(codes.NotFound, "Operation not found: %s", name)
}

// OperationExists reports that an operation with this operation_id exists.
func OperationExists(name string) *Error {
	return newError(codes.AlreadyExists, "Operation already exists: %s", name)
}

// InvalidOperationID returns the error for a malformed operation_id.
func InvalidOperationID(id string) *Error {
	return newError(codes.InvalidArgument, "Invalid operation_id: %s. It must begin with a lower-case letter and hold lower-case letters, digits and underscores only.", shorten(id))
}

// InstanceConfigNotFound reports that no instance configuration has this name.
func InstanceConfigNotFound(name string) *Error {
	return newError(codes.NotFound, "Instance config not found: %s", shorten(name))
}

// InvalidCapacity returns the error for a size that an instance cannot have.
func InvalidCapacity() *Error {
	return newError(codes.InvalidArgument, "Invalid instance size: node_count must be positive; processing_units must be a multiple of 100 below 1000 and a multiple of 1000 above.")
}

// AmbiguousCapacity reports that node_count and processing_units are both set, and differ.
func AmbiguousCapacity() *Error {
	return newError(codes.InvalidArgument, "Only one of node_count and processing_units may be set.")
}

// InvalidFieldMask returns the error for a field mask that names a field which cannot be updated.
func InvalidFieldMask(path string) *Error {
	return newError(codes.InvalidArgument, "Invalid field mask: %s cannot be updated.", shorten(path))
}
