package main

import (
	"context"
	"fmt"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/file"
	"github.com/crowfoot-db/crowfoot/bulk/transfer"
)

// createTable creates the table that --create asks for. Before that, it records in the state that the import creates
// this table. So if the command is killed afterwards, the user can run it again, and it continues with this table.
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
	s.screen.clear()
	fmt.Println(ddl + ";")
	if err := s.define(ctx, []string{ddl}, nil); err != nil {
		return nil, err
	}
	return s.describe(ctx, client, s.table)
}
