package usererror

import "google.golang.org/grpc/codes"

// Errors about proto bundles. Texts and codes are those of Google's Spanner emulator, if it has the error.

// ProtoBundleExists returns the error for CREATE PROTO BUNDLE in a database that has a bundle.
func ProtoBundleExists() *Error {
	return newError(codes.FailedPrecondition, "A proto bundle already exists in the database. Change it with ALTER PROTO BUNDLE.")
}

// NoProtoBundle returns the error for ALTER or DROP PROTO BUNDLE in a database without a bundle.
func NoProtoBundle() *Error {
	return newError(codes.FailedPrecondition, "Proto bundle does not exist in the database.")
}

// MissingProtoDescriptors returns the error for a statement that defines proto types in a request whose
// proto_descriptors is empty.
func MissingProtoDescriptors() *Error {
	return newError(codes.InvalidArgument, "Contents of proto_descriptors cannot be empty.")
}

// BadProtoDescriptors returns the error for proto_descriptors that cannot be decoded, or whose files do not fit
// together.
func BadProtoDescriptors(reason string) *Error {
	return newError(codes.InvalidArgument, "Could not parse contents of proto_descriptors: %s.", reason)
}

// ProtoBundleTooLarge returns the error for proto types whose files have more than limit bytes. The text is Crowfoot's
// own, because Spanner's text is not published.
func ProtoBundleTooLarge(size, limit int) *Error {
	return newError(codes.InvalidArgument, "The proto bundle of %d bytes exceeds the maximum size of %d bytes.", size, limit)
}

// MissingProtoDescriptor returns the error for a type that a bundle should contain but that no proto file defines.
func MissingProtoDescriptor(name string) *Error {
	return newError(codes.InvalidArgument, "Missing descriptor for `%s`.", name)
}

// ProtoTypeExists returns the error for inserting a type into a proto bundle that already has the type, and for a type
// that a statement names twice.
func ProtoTypeExists(name string) *Error {
	return newError(codes.AlreadyExists, "Type already exists: `%s` in the proto bundle.", name)
}

// ProtoTypeToUpdateNotFound returns the error for UPDATE of a type that the bundle does not have.
func ProtoTypeToUpdateNotFound(name string) *Error {
	return newError(codes.NotFound, "Tried to update `%s` which does not already exist.", name)
}

// ProtoTypeToDeleteNotFound returns the error for DELETE of a type that the bundle does not have.
func ProtoTypeToDeleteNotFound(name string) *Error {
	return newError(codes.NotFound, "Tried to remove `%s` which does not already exist in the proto bundle.", name)
}

// ProtoTypeInUse returns the error for removing a type from the bundle while a column has that type. column has the
// form table.column.
func ProtoTypeInUse(name, column string) *Error {
	return newError(codes.FailedPrecondition, "Removed type %s is still being used by column %s", name, column)
}

// ReservedProtoPackage returns the error for a type in a proto package that is reserved for Spanner.
func ReservedProtoPackage(name, pkg string) *Error {
	return newError(codes.FailedPrecondition, "Message `%s` has reserved package `%s`.", name, pkg)
}

// ProtoExtensions returns the error for a message in which extensions are defined.
func ProtoExtensions(message string) *Error {
	return newError(codes.Unimplemented, "Message extensions are not supported for message `%s`.", message)
}

// ProtoMessageSet returns the error for a message type that uses the wire format of message sets.
func ProtoMessageSet(message string) *Error {
	return newError(codes.Unimplemented, "Message type `%s` is not supported.", message)
}

// InvalidEnumColumnValue returns the error for writing a number to an ENUM column whose type has no value with that
// number.
func InvalidEnumColumnValue(table, column string, number int64, typ string) *Error {
	return newError(codes.FailedPrecondition, "Invalid value for column %s in table %s: type %s has no value with the number %d.", column, table, typ, number)
}

// InvalidEnumValue returns the error for changing the type of an ENUM column if an existing row has a number that the
// new type does not have. column has the form table.column; key is the key of that row.
func InvalidEnumValue(column string, number int64, typ, key string) *Error {
	return newError(codes.FailedPrecondition, "Enum validation on column %s failed at key %s because type %s cannot be set to %d", column, key, typ, number)
}
