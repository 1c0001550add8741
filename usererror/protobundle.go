package usererror

import "google.golang.org/grpc/codes"

// Proto bundles. Texts and codes are those of the emulator where it has them.

// ProtoBundleExists is CREATE PROTO BUNDLE in a database that has a bundle.
func ProtoBundleExists() *Error {
	return newError(codes.FailedPrecondition, "A proto bundle already exists in the database. Change it with ALTER PROTO BUNDLE.")
}

// NoProtoBundle is ALTER or DROP PROTO BUNDLE in a database without a bundle.
func NoProtoBundle() *Error {
	return newError(codes.FailedPrecondition, "Proto bundle does not exist in the database.")
}

// MissingProtoDescriptors is a statement that defines types in a request without descriptors.
func MissingProtoDescriptors() *Error {
	return newError(codes.InvalidArgument, "Contents of proto_descriptors cannot be empty.")
}

// BadProtoDescriptors are descriptors that cannot be read, or that do not fit together.
func BadProtoDescriptors(reason string) *Error {
	return newError(codes.InvalidArgument, "Could not parse contents of proto_descriptors: %s.", reason)
}

// ProtoBundleTooLarge are types whose files have more bytes than a bundle may. Spanner's text for it is not published.
func ProtoBundleTooLarge(size, limit int) *Error {
	return newError(codes.InvalidArgument, "The proto bundle of %d bytes exceeds the maximum size of %d bytes.", size, limit)
}

// MissingProtoDescriptor is a type of a bundle that no file defines.
func MissingProtoDescriptor(name string) *Error {
	return newError(codes.InvalidArgument, "Missing descriptor for `%s`.", name)
}

// ProtoTypeExists is a type that is inserted into a bundle that has it, or named twice.
func ProtoTypeExists(name string) *Error {
	return newError(codes.AlreadyExists, "Type already exists: `%s` in the proto bundle.", name)
}

// ProtoTypeToUpdateNotFound is UPDATE of a type that the bundle does not have.
func ProtoTypeToUpdateNotFound(name string) *Error {
	return newError(codes.NotFound, "Tried to update `%s` which does not already exist.", name)
}

// ProtoTypeToDeleteNotFound is DELETE of a type that the bundle does not have.
func ProtoTypeToDeleteNotFound(name string) *Error {
	return newError(codes.NotFound, "Tried to remove `%s` which does not already exist in the proto bundle.", name)
}

// ProtoTypeInUse is a type taken out of the bundle that a column has; column is table.column.
func ProtoTypeInUse(name, column string) *Error {
	return newError(codes.FailedPrecondition, "Removed type %s is still being used by column %s", name, column)
}

// ReservedProtoPackage is a type in a package of Spanner's own.
func ReservedProtoPackage(name, pkg string) *Error {
	return newError(codes.FailedPrecondition, "Message `%s` has reserved package `%s`.", name, pkg)
}

// ProtoExtensions is a message in which extensions are defined.
func ProtoExtensions(message string) *Error {
	return newError(codes.Unimplemented, "Message extensions are not supported for message `%s`.", message)
}

// ProtoMessageSet is a message in the wire format of message sets.
func ProtoMessageSet(message string) *Error {
	return newError(codes.Unimplemented, "Message type `%s` is not supported.", message)
}

// InvalidEnumColumnValue is a number that is written to an ENUM column and that its type does not have.
func InvalidEnumColumnValue(table, column string, number int64, typ string) *Error {
	return newError(codes.FailedPrecondition, "Invalid value for column %s in table %s: type %s has no value with the number %d.", column, table, typ, number)
}

// InvalidEnumValue is a number in an ENUM column that the type that it is to have does not have; column is table.column, key the row's.
func InvalidEnumValue(column string, number int64, typ, key string) *Error {
	return newError(codes.FailedPrecondition, "Enum validation on column %s failed at key %s because type %s cannot be set to %d", column, key, typ, number)
}
