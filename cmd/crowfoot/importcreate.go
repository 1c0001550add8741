package main

import (
	"context"
	"fmt"
	"strings"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/file"
	"github.com/crowfoot-db/crowfoot/bulk/transfer"
)

// createTable makes the table of --create. The state remembers that it does, so that an import that is killed afterwards goes on with the table.
func (s *importSettings) createTable(ctx context.Context, client *spanner.Client, state *transfer.ImportState, names []string) (*bulk.TableInfo, error) {
	source, err := file.Open(names, s.reading())
	if err != nil {
		return nil, err
	}
	defer source.Close()
	key := s.key
	if len(key) == 0 {
		key = []string{source.Schema().Field(0).Name}
	}
	ddl, err := transfer.CreateTable(s.table, source.Schema(), key)
	if err != nil {
		return nil, err
	}
	if err := state.Create(); err != nil {
		return nil, err
	}
	if err := s.define(ctx, []string{ddl}, nil); err != nil {
		return nil, err
	}
	return s.describe(ctx, client, s.table)
}

// isFolder says whether the command line names a folder that Cloud Spanner, or --format spanner, exported.
func (s *importSettings) isFolder(files []string) bool {
	return len(files) == 1 && transfer.IsSpannerFolder(files[0])
}

// runFolder imports a folder.
func (s *importSettings) runFolder(ctx context.Context, client *spanner.Client, dir string) error {
	switch {
	case s.table != "" || len(s.columns) > 0 || s.state != "" || s.rejects != "":
		return usageErrorf("%s is an export of a database: leave out --table, --columns, --state and --rejects", dir)
	}
	_, id, _ := strings.Cut(s.database, "/databases/")
	folder, err := transfer.OpenSpannerFolder(dir, id)
	if err != nil {
		return err
	}
	for _, what := range folder.LeftOut {
		fmt.Printf("left out %s: it is not made by import\n", what)
	}
	there := []string{}
	if s.create {
		if there, _, err = s.databaseDDL(ctx); err == nil {
			err = s.define(ctx, transfer.Missing(folder.Before, there), folder.ProtoDescriptors)
		}
		if err != nil {
			return err
		}
	}
	var states []*transfer.ImportState // locked until the whole folder is in
	defer func() {
		for _, state := range states {
			state.Close()
		}
	}()
	for _, t := range folder.Tables {
		state, err := s.openState(t.Name)
		if err != nil {
			return err
		}
		states = append(states, state)
		if err := s.loadTable(ctx, client, state, t); err != nil {
			return err
		}
	}
	if s.create {
		if err := s.define(ctx, transfer.Missing(folder.After, there), nil); err != nil {
			return err
		}
	}
	for len(states) > 0 {
		if err := states[0].Finish(); err != nil {
			return err
		}
		states = states[1:]
	}
	return nil
}

// loadTable imports a table of a folder.
func (s *importSettings) loadTable(ctx context.Context, client *spanner.Client, state *transfer.ImportState, t transfer.SpannerTable) error {
	if err := t.Verify(); err != nil {
		return err
	}
	table, err := s.describe(ctx, client, t.Name)
	if err != nil {
		return err
	}
	return s.load(ctx, client, table, state, t.Files)
}
