package crowfoot

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/schema/syntax"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// script holds the DDL statements that Options give.
type script struct {
	file       string // name of the file with the statements; "" if they are Options.DDL
	statements []syntax.ScriptStatement
	// descriptors is the serialized FileDescriptorSet that the statements need, or nil.
	descriptors []byte
}

// ddl returns the statements of DDL or DDLFile, with the descriptors of ProtoDescriptorsFile.
func (o *Options) ddl() (s script, err error) {
	if file := o.ProtoDescriptorsFile; file != "" {
		if s.descriptors, err = os.ReadFile(file); err != nil {
			return s, &OptionError{"ProtoDescriptorsFile", file, err}
		}
	}
	if o.DDLFile == "" {
		for _, text := range o.DDL {
			s.statements = append(s.statements, syntax.ScriptStatement{Text: text})
		}
		return s, nil
	}
	if len(o.DDL) > 0 {
		return s, errors.New("crowfoot.Options: DDL and DDLFile exclude each other")
	}
	s.file = o.DDLFile
	text, err := os.ReadFile(s.file)
	if err != nil {
		return s, &OptionError{"DDLFile", s.file, err}
	}
	if s.statements, err = syntax.SplitScript(string(text)); err != nil {
		return s, s.errorAt(1, 1, err)
	}
	return s, nil
}

func (s script) texts() []string {
	var list []string
	for _, statement := range s.statements {
		list = append(list, statement.Text)
	}
	return list
}

func (s script) String() string {
	if s.file == "" {
		return "DDL"
	}
	return s.file
}

// locate adds the position of the failed statement, FILE:LINE:COLUMN, to err if err is a database.StatementError and
// the statements come from a file. Otherwise it returns err unchanged.
func (s script) locate(err error) error {
	var failed *database.StatementError
	if s.file == "" || !errors.As(err, &failed) {
		return err
	}
	statement := s.statements[failed.Index]
	return s.errorAt(statement.Line, statement.Column, err)
}

// errorAt returns err with a position in the DDL file. The parameters line and column give the position at which the
// text that err is about, such as a statement, begins. If err also says where in this text the fault is
// (usererror.Error.Place), errorAt adds the position of the fault instead, and the excerpt of the text that err holds.
func (s script) errorAt(line, column int, err error) error {
	var user *usererror.Error
	if !errors.As(err, &user) || user.Place == nil {
		return fmt.Errorf("%s:%d:%d: %w", s.file, line, column, err)
	}
	within := user.Place
	if within.Line > 1 {
		column = 1
	}
	place := fmt.Sprintf("%s:%d:%d", s.file, line+within.Line-1, column+within.Column-1)
	switch {
	case user.Syntax != "": // err itself is left out, because its message quotes the whole statement
		return fmt.Errorf("%s: syntax error: %s\n%s", place, user.Syntax, within.Excerpt)
	case within.Excerpt != "":
		return fmt.Errorf("%s: %w\n%s", place, err, within.Excerpt)
	}
	return fmt.Errorf("%s: %w", place, err)
}

// checkExisting warns if the schema of an existing database differs from the one that the script would create, or if
// the script could not be run in an empty database.
func (s *Server) checkExisting(ctx context.Context, d *database.Database, ddl script) {
	warning := ""
	same, err := s.registry.HasSchema(ctx, d, ddl.texts(), ddl.descriptors)
	switch {
	case err != nil:
		warning = fmt.Sprintf("%s is not run in %s, which exists already, and could not be run in an empty database: %v", ddl, d.Name(), ddl.locate(err))
	case !same:
		warning = fmt.Sprintf("%s is not run in %s, which exists already with another schema: send the statements that it lacks to UpdateDatabaseDdl", ddl, d.Name())
	default:
		s.log.Info(ddl.String()+" not run: the database exists already", "database", d.Name())
		return
	}
	s.log.Warn(warning)
	s.Warnings = append(s.Warnings, warning)
}
