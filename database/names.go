package database

import (
	"regexp"
	"strings"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Forms of the names of resources:
// https://cloud.google.com/spanner/docs/reference/rpc/google.spanner.admin.database.v1. Unlike in Cloud Spanner, an id
// may be a single letter, for examples and tests.
var (
	projectName  = regexp.MustCompile(`^projects/[^/]+$`)
	instanceName = regexp.MustCompile(`^projects/[^/]+/instances/[a-z](?:[-a-z0-9]{0,62}[a-z0-9])?$`)
	databaseName = regexp.MustCompile(`^projects/[^/]+/instances/[a-z](?:[-a-z0-9]{0,62}[a-z0-9])?/databases/[a-z](?:[a-z0-9_-]{0,28}[a-z0-9])?$`)
)

// CheckProjectName fails unless name is projects/P.
func CheckProjectName(name string) error { return checkName("project", projectName, name) }

// CheckInstanceName fails unless name is projects/P/instances/I with a valid id.
func CheckInstanceName(name string) error { return checkName("instance", instanceName, name) }

// CheckDatabaseName fails unless name is projects/P/instances/I/databases/D with valid ids.
func CheckDatabaseName(name string) error { return checkName("database", databaseName, name) }

func checkName(kind string, form *regexp.Regexp, name string) error {
	if !form.MatchString(name) {
		return usererror.InvalidResourceName(kind, name)
	}
	return nil
}

// databaseID returns the last part of a database's name.
func databaseID(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
