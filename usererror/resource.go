package usererror

import "google.golang.org/grpc/codes"

// Types of resources in google.rpc.ResourceInfo. Clients compare them with these texts.
const (
	SessionResource  = "type.googleapis.com/google.spanner.v1.Session"
	DatabaseResource = "type.googleapis.com/google.spanner.admin.database.v1.Database"
	InstanceResource = "type.googleapis.com/google.spanner.admin.instance.v1.Instance"
)

// InstanceNotFound reports that the instance does not exist.
func InstanceNotFound(name string) *Error {
	e := newError(codes.NotFound, "Instance not found: %s", name)
	e.Resource = &Resource{InstanceResource, name}
	return e
}

// InstanceExists reports that an instance with this name exists.
func InstanceExists(name string) *Error {
	return newError(codes.AlreadyExists, "Instance already exists: %s", name)
}

// DatabaseNotFound reports that the database does not exist. Clients recognise the error by the beginning of its text.
func DatabaseNotFound(name string) *Error {
	e := newError(codes.NotFound, "Database not found: %s", name)
	e.Resource = &Resource{DatabaseResource, name}
	return e
}

// DatabaseExists reports that a database with this name exists.
func DatabaseExists(name string) *Error {
	return newError(codes.AlreadyExists, "Database already exists: %s", name)
}

// TooManyDatabases reports that the instance already has the maximum number of databases. limit is that maximum.
func TooManyDatabases(instance string, limit int) *Error {
	return newError(codes.ResourceExhausted, "Too many databases for instance %s: the limit is %d.", instance, limit)
}

// DropProtected reports that enable_drop_protection is set on the database.
func DropProtected(name string) *Error {
	return newError(codes.FailedPrecondition, "Database %s has drop protection enabled and cannot be dropped. Disable drop protection first.", name)
}
