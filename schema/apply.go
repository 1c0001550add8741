package schema

// Apply runs one DDL statement: it returns the catalog after it and what
// existing data needs. The receiver stays as it is. Errors are *fault.Error.
func (c *Catalog) Apply(stmt string, compiler Compiler) (*Catalog, *Change, error) {
	return nil, nil, nil
}

// CheckSyntax finds the error that makes a whole UpdateDatabaseDdl call fail
// before any of its statements runs: text that does not parse.
func CheckSyntax(stmt string) error { return nil }

// DatabaseName returns the id in a CREATE DATABASE statement.
func DatabaseName(stmt string) (string, error) { return "", nil }

// DDL prints the catalog as the statements that make it again, as GetDatabaseDdl does.
func (c *Catalog) DDL() []string { return nil }

// Marshal encodes the catalog for storage, IDs and all.
func (c *Catalog) Marshal() ([]byte, error) { return nil, nil }

// Unmarshal decodes what Marshal made and compiles the expressions in it.
func Unmarshal(data []byte, compiler Compiler) (*Catalog, error) { return nil, nil }
