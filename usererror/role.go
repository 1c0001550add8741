package usererror

import "google.golang.org/grpc/codes"

// RoleNotFound returns the error for a session whose creator_role does not exist, or a request in a session whose role
// was dropped. Its wording is Cloud Spanner's, known from the integration tests of the official Go and Ruby clients.
func RoleNotFound(role string) *Error {
	return newError(codes.PermissionDenied, "Role not found: %s.", role)
}

// MissingPrivilege returns the error for a request that needs a privilege which the session's role does not have. kind
// is the kind of object: "table", "view", ... The wording is Cloud Spanner's, known from the integration tests of the
// official Go and Ruby clients.
func MissingPrivilege(role, kind, name string) *Error {
	return newError(codes.PermissionDenied, "Role %s does not have required privileges on %s %s.", role, kind, name)
}

// RoleSchemaChange returns the error for DDL in a session that has a role.
func RoleSchemaChange(role string) *Error {
	return newError(codes.PermissionDenied, "Role %s does not have required privileges to change the schema.", role)
}

// ReservedRoleName returns the error for CREATE ROLE with a name that is reserved for system roles.
func ReservedRoleName(name string) *Error {
	return newError(codes.InvalidArgument, "Invalid Role name: %s. The name public and names that begin with spanner_ are reserved for system roles.", name)
}

// DropSystemRole returns the error for DROP ROLE of a role that every database has.
func DropSystemRole(role string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop system role %s.", role)
}

// DropRoleWithPrivileges returns the error for DROP ROLE of a role that still has privileges. target is an object on
// which the role has a privilege.
func DropRoleWithPrivileges(role, target string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop role %s. It has privileges on %s, which must be revoked first.", role, target)
}

// DropGrantedColumn returns the error for DROP COLUMN of a column on which privileges are granted by name.
func DropGrantedColumn(table, column, roles string) *Error {
	return newError(codes.FailedPrecondition,
		"Cannot drop column `%s` from table `%s` on which fine-grained access privileges are granted to roles: %s. You must revoke them before dropping the column.",
		column, table, roles)
}

// GrantPublicRole returns the error for GRANT ROLE public. Such a grant would change nothing, because every role is a
// member of public.
func GrantPublicRole() *Error {
	return newError(codes.FailedPrecondition, "Cannot grant role public: every role is a member of it.")
}

// GrantToSystemRole returns the error for a GRANT to a system role, whose privileges cannot be changed.
func GrantToSystemRole(role string) *Error {
	return newError(codes.FailedPrecondition, "Cannot grant to system role %s.", role)
}

// RoleCycle returns the error for a GRANT ROLE by which a role would become a member of itself.
func RoleCycle(role, member string) *Error {
	return newError(codes.FailedPrecondition, "Cannot grant role %s to role %s: %[1]s is a member of %[2]s.", role, member)
}

// GrantOnGeneratedColumn returns the error for GRANT of INSERT or UPDATE on a generated column.
func GrantOnGeneratedColumn(privilege, table, column string) *Error {
	return newError(codes.FailedPrecondition, "Cannot grant %s on generated column %s.%s.", privilege, table, column)
}
