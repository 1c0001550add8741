package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"cloud.google.com/go/spanner"
	admin "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"

	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/transfer"
)

// databaseDDL asks for the statements that define a database.
func databaseDDL(ctx context.Context, database string) ([]string, error) {
	client, err := admin.NewDatabaseAdminClient(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ddl, err := client.GetDatabaseDdl(ctx, &databasepb.GetDatabaseDdlRequest{Database: database})
	return ddl.GetStatements(), err
}

// define runs statements of DDL, and shows them.
func define(ctx context.Context, database string, statements []string) error {
	if len(statements) == 0 {
		return nil
	}
	fmt.Println(strings.Join(statements, ";\n") + ";")
	client, err := admin.NewDatabaseAdminClient(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	operation, err := client.UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{Database: database, Statements: statements})
	if err != nil {
		return err
	}
	return operation.Wait(ctx)
}

// createTable makes the table of --create, but where an import that was interrupted has made it.
func (s *importSettings) createTable(ctx context.Context, client *spanner.Client, names []string) error {
	if _, err := bulk.Describe(ctx, client, s.table); err == nil {
		if _, err := os.Stat(s.statePath(s.table)); err != nil {
			return fmt.Errorf("table %s is there already: leave out --create", s.table)
		}
		return nil
	}
	source, err := s.open(names, nil, nil)
	if err != nil {
		return err
	}
	defer source.Close()
	key := s.key
	if len(key) == 0 {
		key = []string{source.Schema().Field(0).Name}
	}
	ddl, err := transfer.CreateTable(s.table, source.Schema(), key)
	if err != nil {
		return err
	}
	return inServersWords(define(ctx, s.database, []string{ddl}))
}

// isFolder says whether the command line names a folder that Cloud Spanner, or --format spanner, exported.
func (s *importSettings) isFolder(files []string) bool {
	return len(files) == 1 && transfer.IsSpannerFolder(files[0])
}

// runFolder imports a folder.
func (s *importSettings) runFolder(ctx context.Context, dir string) error {
	switch {
	case s.table != "" || len(s.columns) > 0 || s.state != "" || s.rejects != "":
		return usageErrorf("%s is an export of a database: leave out --table, --columns, --state and --rejects", dir)
	}
	folder, err := transfer.OpenSpannerFolder(dir)
	if err != nil {
		return err
	}
	for _, what := range folder.LeftOut {
		fmt.Printf("left out %s: it is not made by import\n", what)
	}
	client, err := s.connection.connect(ctx, "crowfoot-import")
	if err != nil {
		return err
	}
	defer client.Close()
	there := []string{}
	if s.create {
		if there, err = databaseDDL(ctx, s.database); err == nil {
			err = define(ctx, s.database, transfer.Missing(folder.Before, there))
		}
		if err != nil {
			return inServersWords(err)
		}
	}
	for _, t := range folder.Tables {
		if err := s.loadTable(ctx, client, t); err != nil {
			return inServersWords(err)
		}
	}
	if s.create {
		if err := define(ctx, s.database, transfer.Missing(folder.After, there)); err != nil {
			return inServersWords(err)
		}
	}
	for _, t := range folder.Tables {
		if err := s.forget(t.Name); err != nil {
			return err
		}
	}
	return nil
}

// loadTable imports a table of a folder.
func (s *importSettings) loadTable(ctx context.Context, client *spanner.Client, t transfer.SpannerTable) error {
	if err := t.Verify(); err != nil {
		return err
	}
	table, err := bulk.Describe(ctx, client, t.Name)
	if err != nil {
		return err
	}
	return s.load(ctx, client, table, t.Files)
}
