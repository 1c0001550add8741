package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/transfer"
)

// isFolder reports whether the command line names a folder instead of files. The command import accepts folders that
// crowfoot export or Cloud Spanner has written.
func isFolder(files []string) bool {
	if len(files) != 1 {
		return false
	}
	info, err := os.Stat(files[0])
	return err == nil && info.IsDir()
}

// checkFolder returns an error if the user has set a flag that has no effect on the import of a folder.
func (s *importSettings) checkFolder() error {
	for _, f := range []struct {
		given bool
		flag  string
	}{
		{s.table != "", "--table"}, {len(s.columns) > 0, "--columns"}, {s.format != "", "--format"}, {len(s.key) > 0, "--key"}, {s.state != "", "--state"}, {s.rejects != "", "--rejects"},
		{s.delimiter != "", "--delimiter"}, {s.noHeader, "--no-header"}, {s.noQuotes, "--no-quotes"}, {s.null != "", "--null"}, {!strings.EqualFold(s.encoding, "utf-8"), "--encoding"},
	} {
		if f.given {
			return usageErrorf("%s has no effect on a folder that was exported, which tells how its files are read: leave it out", f.flag)
		}
	}
	return nil
}

// runFolder imports a folder. With --create it also creates the database, tables and other objects that do not exist.
func (s *importSettings) runFolder(ctx context.Context, dir string) error {
	_, id, _ := strings.Cut(s.database, "/databases/")
	folder, err := transfer.OpenFolder(dir, id)
	if err != nil {
		return err
	}
	s.makesMissing = s.create
	return s.with(ctx, importAgent, func(ctx context.Context, client *spanner.Client) error {
		if !s.create {
			return s.loadFolder(ctx, client, dir, folder, nil)
		}
		if len(folder.NotMade) > 0 {
			fmt.Printf("left out %s: import does not make that\n", some(folder.NotMade, 5))
		}
		if len(folder.Others) > 0 {
			fmt.Printf("left out %s: the folder does not have all tables of its database\n", some(folder.Others, 5))
		}
		there, _, err := s.databaseDDL(ctx)
		if err != nil {
			return err
		}
		if err := s.make(ctx, transfer.Missing(folder.Before, there), folder.ProtoDescriptors); err != nil {
			return err
		}
		return s.loadFolder(ctx, client, dir, folder, transfer.Missing(folder.After, there))
	})
}

// make runs DDL statements and prints which objects they have created.
func (s *importSettings) make(ctx context.Context, statements []string, protos []byte) error {
	if err := s.define(ctx, statements, protos); err != nil {
		return err
	}
	if made := transfer.Made(statements); made != "" {
		fmt.Println("made " + made)
	}
	return nil
}

// loadFolder imports the tables of a folder. When all tables are imported, it runs the given DDL statements.
func (s *importSettings) loadFolder(ctx context.Context, client *spanner.Client, dir string, folder *transfer.Folder, after []string) error {
	created, err := s.created(ctx)
	if err != nil {
		return err
	}
	tables, err := s.tablesOf(ctx, client, dir, folder)
	if err != nil {
		return err
	}
	var states []*transfer.ImportState // the state files, which stay locked until the whole folder is imported
	defer func() {
		for _, state := range states {
			state.Close()
		}
	}()
	rows := int64(0)
	for i := range folder.Tables {
		state, err := s.openState(tables[i].Name)
		if err != nil {
			return err
		}
		states = append(states, state)
		n, err := s.loadTable(ctx, client, tables[i], state, &folder.Tables[i], created)
		if err != nil {
			return err
		}
		rows += n
	}
	if err := s.make(ctx, after, folder.ProtoDescriptors); err != nil {
		return err
	}
	for len(states) > 0 {
		if err := states[0].Finish(); err != nil {
			return err
		}
		states = states[1:]
	}
	fmt.Printf("%s is imported: %d tables with %d rows\n", dir, len(tables), rows)
	return nil
}

// tablesOf returns the tables of the database into which the tables of a folder are imported. It returns an error if
// one of them does not exist, or if its columns do not fit the exported columns.
func (s *importSettings) tablesOf(ctx context.Context, client *spanner.Client, dir string, folder *transfer.Folder) (tables []*bulk.TableInfo, err error) {
	there, err := s.describeAll(ctx, client)
	if err != nil {
		return nil, err
	}
	for _, t := range folder.Tables {
		table := there[strings.ToLower(t.Name)]
		switch {
		case table == nil && s.create:
			return nil, fmt.Errorf("the database has no table %s, and %s has no statement that makes it", t.Name, dir)
		case table == nil:
			return nil, fmt.Errorf("the database has no table %s: with --create the import makes what %s has and the database has not", t.Name, dir)
		}
		if err := t.Check(table); err != nil {
			return nil, err
		}
		tables = append(tables, table)
	}
	return tables, nil
}

// loadTable imports a table of a folder. It returns how many rows of the table's files are now in the database.
func (s *importSettings) loadTable(ctx context.Context, client *spanner.Client, table *bulk.TableInfo, state *transfer.ImportState, t *transfer.FolderTable, created time.Time) (int64, error) {
	if err := t.Verify(ctx); err != nil {
		return 0, err
	}
	return s.load(ctx, client, table, state, importSource{names: t.Files, reading: t.Reading, created: created, folder: t})
}
