package usererror

import "google.golang.org/grpc/codes"

// RoleNotFound is a session, or a request in it, whose creator_role does not exist, or not any more.
// Source: the integration tests of the official Go and Ruby clients, which run against Cloud Spanner.
func RoleNotFound(role string) *Error {
	return newError(codes.PermissionDenied, "Role not found: %s.", role)
}

// MissingPrivilege is a request for which the session's role lacks a privilege; kind is "table", "view", ...
// Source: as of RoleNotFound.
func MissingPrivilege(role, kind, name string) *Error {
	return newError(codes.PermissionDenied, "Role %s does not have required privileges on %s %s.", role, kind, name)
}

// RoleSchemaChange is DDL in a session that has a role.
func RoleSchemaChange(role string) *Error {
	return newError(codes.PermissionDenied, "Role %s does not have required privileges to change the schema.", role)
}

// ReservedRoleName is a CREATE ROLE with a name that system roles have or may get.
func ReservedRoleName(name string) *Error {
	return newError(codes.InvalidArgument, "Invalid Role name: %s. The name public and names that begin with spanner_ are reserved for system roles.", name)
}

// DropSystemRole is a DROP ROLE of a role that every database has.
func DropSystemRole(role string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop system role %s.", role)
}

// DropRoleWithPrivileges is a DROP ROLE of a role that still has privileges; target is what one of them is on.
func DropRoleWithPrivileges(role, target string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop role %s. It has privileges on %s, which must be revoked first.", role, target)
}

// DropGrantedColumn is a DROP COLUMN of a column that privileges are granted on by its name.
func DropGrantedColumn(table, column, roles string) *Error {
	return newError(codes.FailedPrecondition,
		"Cannot drop column `%s` from table `%s` on which fine-grained access privileges are granted to roles: %s. You must revoke them before dropping the column.",
		column, table, roles)
}

// GrantPublicRole is GRANT ROLE public: every role has its privileges.
func GrantPublicRole() *Error {
	return newError(codes.FailedPrecondition, "Cannot grant role public: every role is a member of it.")
}

// GrantToSystemRole is a GRANT to a system role that has its privileges for good.
func GrantToSystemRole(role string) *Error {
	return newError(codes.FailedPrecondition, "Cannot grant to system role %s.", role)
}

// RoleCycle is a GRANT ROLE that would make a role a member of itself.
func RoleCycle(role, member string) *Error {
	return newError(codes.FailedPrecondition, "Cannot grant role %s to role %s: %[1]s is a member of %[2]s.", role, member)
}

// GrantOnGeneratedColumn is a GRANT of INSERT or UPDATE on a generated column.
func GrantOnGeneratedColumn(privilege, table, column string) *Error {
	return newError(codes.FailedPrecondition, "Cannot grant %s on generated column %s.%s.", privilege, table, column)
}
