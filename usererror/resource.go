package usererror

import "google.golang.org/grpc/codes"

// Types of resources in google.rpc.ResourceInfo; clients match on them.
const (
	SessionResource  = "type.googleapis.com/google.spanner.v1.Session"
	DatabaseResource = "type.googleapis.com/google.spanner.admin.database.v1.Database"
	InstanceResource = "type.googleapis.com/google.spanner.admin.instance.v1.Instance"
)

// InstanceNotFound: the instance does not exist.
func InstanceNotFound(name string) *Error {
	e := newError(codes.NotFound, "Instance not found: %s", name)
	e.Resource = &Resource{InstanceResource, name}
	return e
}

// InstanceExists: an instance with this name exists.
func InstanceExists(name string) *Error {
	return newError(codes.AlreadyExists, "Instance already exists: %s", name)
}

// DatabaseNotFound: the database does not exist. Clients match on the beginning of the text.
func DatabaseNotFound(name string) *Error {
	e := newError(codes.NotFound, "Database not found: %s", name)
	e.Resource = &Resource{DatabaseResource, name}
	return e
}

// DatabaseExists: a database with this name exists.
func DatabaseExists(name string) *Error {
	return newError(codes.AlreadyExists, "Database already exists: %s", name)
}

// TooManyDatabases: the instance has as many databases as it may have.
func TooManyDatabases(instance string, limit int) *Error {
	return newError(codes.ResourceExhausted, "Too many databases for instance %s: the limit is %d.", instance, limit)
}

// DropProtected: enable_drop_protection is set on the database.
func DropProtected(name string) *Error {
	return newError(codes.FailedPrecondition, "Database %s has drop protection enabled and cannot be dropped. Disable drop protection first.", name)
}
