package main

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/endtoend/formats"
)

// clients has a client of the first database in formats.Databases, and a client for its schema changes.
type clients struct {
	*spanner.Client
	admin *database.DatabaseAdminClient
}

func connect(ctx context.Context) (*clients, error) {
	admin, err := database.NewDatabaseAdminClient(ctx)
	if err != nil {
		return nil, err
	}
	c, err := spanner.NewClientWithConfig(ctx, formats.Databases[0], spanner.ClientConfig{DisableNativeMetrics: true})
	if err != nil {
		return nil, err
	}
	return &clients{Client: c, admin: admin}, nil
}

func (c *clients) close() {
	c.Close()
	_ = c.admin.Close()
}

func (c *clients) changeSchema(ctx context.Context, statements []string) error {
	op, err := c.admin.UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{Database: formats.Databases[0], Statements: statements})
	if err != nil {
		return err
	}
	return op.Wait(ctx)
}

func fill(ctx context.Context, c *clients) error {
	if err := c.changeSchema(ctx, firstSchema); err != nil {
		return err
	}
	if _, err := c.Apply(ctx, typeRows()); err != nil {
		return err
	}
	_, err := c.Apply(ctx, musicRows())
	return err
}

func change(ctx context.Context, c *clients) error {
	if err := c.changeSchema(ctx, laterSchema); err != nil {
		return err
	}
	for _, dml := range []string{
		"UPDATE Singers SET Born = DATE '1980-05-05', Last = CONCAT(Last, '!') WHERE MOD(SingerId, 4) = 1",
		"DELETE FROM Singers WHERE SingerId = 3", // also deletes the singer's concerts
		"DELETE FROM Songs WHERE SingerId = 5 AND Track > 2",
		"INSERT INTO Types (Id, Changed) VALUES (100, PENDING_COMMIT_TIMESTAMP())",
	} {
		if _, err := c.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.Update(ctx, spanner.NewStatement(dml))
			return err
		}); err != nil {
			return err
		}
	}
	if _, err := c.PartitionedUpdate(ctx, spanner.NewStatement("UPDATE Songs SET Seconds = Seconds + 1 WHERE TRUE")); err != nil {
		return err
	}
	key := &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("4")}}
	_, err := c.admin.AddSplitPoints(ctx, &databasepb.AddSplitPointsRequest{Database: formats.Databases[0], SplitPoints: []*databasepb.SplitPoints{
		{Table: "Singers", Keys: []*databasepb.SplitPoints_Key{{KeyParts: key}}, ExpireTime: timestamppb.New(time.Now().Add(24 * time.Hour))},
	}})
	return err
}

// typeRows returns rows for the tables Types and Keys. The rows of Types have NULLs, ordinary values, extreme values
// and long values.
func typeRows() []*spanner.Mutation {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)
	day := civil.Date{Year: 2024, Month: 2, Day: 29}
	number := big.NewRat(-123456789, 1000)
	const uuid = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	json := spanner.NullJSON{Value: map[string]any{"a": []any{1.5, "x", nil}, "b": true}, Valid: true}
	rows := []*spanner.Mutation{
		spanner.InsertMap("Types", map[string]any{"Id": 1}),
		spanner.InsertMap("Types", map[string]any{
			"Id": 2, "B": true, "I": int64(-1 << 63), "F32": float32(1.25), "F64": -1e300, "N": number, "S": "Grüße\x00\n", "Short": "0123456789", "Y": []byte{0, 255, 1},
			"D": day, "T": at, "J": json, "U": uuid,
			"Bools": []bool{true, false}, "Ints": []int64{1, -1}, "Floats32": []float32{0.5}, "Floats": []float64{}, "Numbers": []*big.Rat{number}, "Strings": []string{"", "x"},
			"Blobs": [][]byte{{1}, {}}, "Days": []civil.Date{day}, "Times": []time.Time{at}, "Jsons": []spanner.NullJSON{json, {}}, "Uuids": []string{uuid}, "Changed": spanner.CommitTimestamp,
		}),
		spanner.InsertMap("Types", map[string]any{"Id": 3, "S": longText(70_000), "Y": []byte(longText(40_000))}), // larger than a block of the log
	}
	for i := range 6 {
		rows = append(rows, spanner.InsertMap("Keys", map[string]any{
			"B": i%2 == 0, "I": int64(i/2) - 1, "F64": float64(i) / 3, "N": big.NewRat(int64(i), 4), "S": fmt.Sprint("s", i), "Y": []byte{byte(i), 0, 255},
			"D": day, "T": at, "U": uuid, "V": i,
		}))
	}
	return append(rows, spanner.InsertMap("Keys", map[string]any{"V": -1})) // all columns of its key are NULL
}

func longText(n int) string { return string(slices.Repeat([]byte("abcdefghij"), n/10)) }

func musicRows() []*spanner.Mutation {
	var rows []*spanner.Mutation
	for s := range int64(8) {
		rows = append(rows, spanner.InsertMap("Singers", map[string]any{"SingerId": s, "First": fmt.Sprint("First", s), "Last": fmt.Sprint("Last", s%3)}),
			spanner.InsertMap("Concerts", map[string]any{"Venue": fmt.Sprint("venue", s), "SingerId": s, "Day": civil.Date{Year: 2026, Month: 5, Day: int(s) + 1}}))
		if s == 3 {
			continue // this singer gets no albums, because the function change deletes the singer
		}
		for a := range int64(2) {
			album := map[string]any{"SingerId": s, "AlbumId": a, "Price": big.NewRat(s, 2)}
			if a == 0 {
				album["Title"] = fmt.Sprint("Title", s)
			}
			rows = append(rows, spanner.InsertMap("Albums", album))
			for track := range int64(4) {
				rows = append(rows, spanner.InsertMap("Songs", map[string]any{"SingerId": s, "AlbumId": a, "Track": track, "Seconds": 100 + track*s}))
			}
		}
	}
	return append(rows, spanner.InsertMap("Sessions", map[string]any{"Id": "lasting", "Until": time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)}))
}
