package main

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/grpc/codes"
)

// changeRecord is an element of the array that a change stream query returns, as the documentation defines it:
// https://cloud.google.com/spanner/docs/change-streams/details.
type changeRecord struct {
	DataChanges []*dataChange `spanner:"data_change_record"`
	Heartbeats  []*struct {
		At time.Time `spanner:"timestamp"`
	} `spanner:"heartbeat_record"`
	ChildPartitions []*struct {
		Start      time.Time `spanner:"start_timestamp"`
		Sequence   string    `spanner:"record_sequence"`
		Partitions []*struct {
			Token   string   `spanner:"token"`
			Parents []string `spanner:"parent_partition_tokens"`
		} `spanner:"child_partitions"`
	} `spanner:"child_partitions_record"`
}

type dataChange struct {
	At            time.Time `spanner:"commit_timestamp"`
	Sequence      string    `spanner:"record_sequence"`
	TransactionID string    `spanner:"server_transaction_id"`
	Last          bool      `spanner:"is_last_record_in_transaction_in_partition"`
	Table         string    `spanner:"table_name"`
	Columns       []*struct {
		Name       string           `spanner:"name"`
		Type       spanner.NullJSON `spanner:"type"`
		PrimaryKey bool             `spanner:"is_primary_key"`
		Ordinal    int64            `spanner:"ordinal_position"`
	} `spanner:"column_types"`
	Mods []*struct {
		Keys      spanner.NullJSON `spanner:"keys"`
		NewValues spanner.NullJSON `spanner:"new_values"`
		OldValues spanner.NullJSON `spanner:"old_values"`
	} `spanner:"mods"`
	Type       string `spanner:"mod_type"`
	Capture    string `spanner:"value_capture_type"`
	Records    int64  `spanner:"number_of_records_in_transaction"`
	Partitions int64  `spanner:"number_of_partitions_in_transaction"`
	Tag        string `spanner:"transaction_tag"`
	System     bool   `spanner:"is_system_transaction"`
}

// changeStream checks the records of three transactions that changed a row. To read a partition, a query needs the
// partition's token. changeStream gets the token from the result of a first query, whose token is NULL.
func (a *app) changeStream(ctx context.Context) error {
	err := a.ddl(ctx, "CREATE TABLE Orders (Id INT64 NOT NULL, Amount NUMERIC, Tags ARRAY<STRING(MAX)>) PRIMARY KEY (Id)",
		"CREATE CHANGE STREAM OrderChanges FOR Orders")
	if err != nil {
		return err
	}
	order := spanner.Insert("Orders", []string{"Id", "Amount", "Tags"}, []any{1, spanner.NullNumeric{}, []spanner.NullString{{StringVal: "a", Valid: true}, {}}})
	start, err := a.client.Apply(ctx, []*spanner.Mutation{order}, spanner.TransactionTag("app=interop"))
	if err != nil {
		return err
	}
	_, err = a.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := tx.Update(ctx, spanner.NewStatement("UPDATE Orders SET Amount = 13 WHERE Id = 1"))
		return err
	})
	if err != nil {
		return err
	}
	end, err := a.client.Apply(ctx, []*spanner.Mutation{spanner.Delete("Orders", spanner.Key{1})})
	if err != nil {
		return err
	}
	first, err := a.readChangeStream(ctx, spanner.NullString{}, start, end)
	if err != nil {
		return err
	}
	var changes []string
	for _, r := range first {
		for _, p := range r.ChildPartitions[0].Partitions {
			records, err := a.readChangeStream(ctx, spanner.NullString{StringVal: p.Token, Valid: true}, start, end)
			if err != nil {
				return err
			}
			for _, r := range records {
				for _, c := range r.DataChanges {
					m := c.Mods[0]
					changes = append(changes, fmt.Sprint(c.Type, " ", c.Tag, " ", m.Keys, " ", m.OldValues, " ", m.NewValues))
				}
			}
		}
	}
	if err := same(changes, []string{
		`INSERT app=interop {"Id":"1"} {} {"Amount":null,"Tags":["a",null]}`,
		`UPDATE  {"Id":"1"} {"Amount":null} {"Amount":"13"}`,
		`DELETE  {"Id":"1"} {"Amount":"13","Tags":["a",null]} {}`,
	}); err != nil {
		return err
	}
	_, err = a.readChangeStream(ctx, spanner.NullString{StringVal: "no token", Valid: true}, start, end)
	if err := same(spanner.ErrCode(err), codes.InvalidArgument); err != nil {
		return err
	}
	return a.ddl(ctx, "DROP CHANGE STREAM OrderChanges")
}

func (a *app) readChangeStream(ctx context.Context, token spanner.NullString, start, end time.Time) (list []*changeRecord, err error) {
	read := spanner.Statement{
		SQL: "SELECT ChangeRecord FROM READ_OrderChanges (start_timestamp => @start, end_timestamp => @end, partition_token => @token, " +
			"heartbeat_milliseconds => 1000)",
		Params: map[string]any{"start": start, "end": end, "token": token},
	}
	err = a.client.Single().Query(ctx, read).Do(func(row *spanner.Row) error {
		var records []*changeRecord
		err := row.Column(0, &records)
		list = append(list, records...)
		return err
	})
	return list, err
}

func (a *app) ddl(ctx context.Context, statements ...string) error {
	op, err := a.databases.UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{Database: a.name, Statements: statements})
	if err != nil {
		return err
	}
	return op.Wait(ctx)
}
