package endtoend_test

import (
	"bytes"
	"context"
	"testing"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/clienttest"
)

// maxCell is the size in bytes of the largest value: https://cloud.google.com/spanner/quotas#tables.
const maxCell = 10 << 20

// cells starts a server with a table that has a BYTES column, and returns a client of it.
func cells(t *testing.T) *spanner.Client {
	t.Helper()
	return clienttest.Connect(t, "CREATE TABLE Cells (K INT64, B BYTES(MAX)) PRIMARY KEY (K)")
}

func cell(k int, b []byte) *spanner.Mutation {
	return spanner.InsertOrUpdate("Cells", []string{"K", "B"}, []any{k, b})
}

func cellStatement(k int, b []byte) spanner.Statement {
	return spanner.Statement{SQL: "INSERT INTO Cells (K, B) VALUES (@k, @b)", Params: map[string]any{"k": k, "b": b}}
}

// TestLargestCell checks that the largest value can be written in every way, and can be read.
func TestLargestCell(t *testing.T) {
	c := cells(t)
	ctx := context.Background()
	b := bytes.Repeat([]byte{0xa5}, maxCell)
	inTransaction := func(do func(context.Context, *spanner.ReadWriteTransaction) error) error {
		_, err := c.ReadWriteTransaction(ctx, do)
		return err
	}
	for k, write := range []func(k int) error{
		func(k int) error {
			_, err := c.Apply(ctx, []*spanner.Mutation{cell(k, b)})
			return err
		},
		func(k int) error {
			_, err := c.Apply(ctx, []*spanner.Mutation{cell(k, b)}, spanner.ApplyAtLeastOnce())
			return err
		},
		func(k int) error {
			return inTransaction(func(_ context.Context, tx *spanner.ReadWriteTransaction) error {
				return tx.BufferWrite([]*spanner.Mutation{cell(k, b)})
			})
		},
		func(k int) error {
			return inTransaction(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				_, err := tx.Update(ctx, cellStatement(k, b))
				return err
			})
		},
		func(k int) error {
			return inTransaction(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				_, err := tx.BatchUpdate(ctx, []spanner.Statement{cellStatement(k, b)})
				return err
			})
		},
	} {
		if err := write(k); err != nil {
			t.Fatalf("way %d to write: %v", k, err)
		}
		row, err := c.Single().ReadRow(ctx, "Cells", spanner.Key{k}, []string{"B"})
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		if err := row.Column(0, &got); err != nil || !bytes.Equal(got, b) {
			t.Errorf("way %d to write: %d bytes read, %v", k, len(got), err)
		}
	}
	if _, err := c.Apply(ctx, []*spanner.Mutation{cell(9, append(b, 0))}); spanner.ErrCode(err) != codes.FailedPrecondition {
		t.Errorf("a larger value: %v", err)
	}
}

// TestTooMuchToWrite checks that the client does not retry a write that can never succeed.
func TestTooMuchToWrite(t *testing.T) {
	c := cells(t)
	ctx := context.Background()
	b := make([]byte, maxCell)
	for _, n := range []int{10, 12} { // 10 cells have too many bytes for a commit; the message with 12 is too long
		var rows []*spanner.Mutation
		for k := range n {
			rows = append(rows, cell(k, b))
		}
		if _, err := c.Apply(ctx, rows); spanner.ErrCode(err) != codes.InvalidArgument {
			t.Errorf("%d cells: %v", n, err)
		}
	}
	wide := spanner.Statement{SQL: "SELECT LENGTH(@a) + LENGTH(@b)", Params: map[string]any{"a": b, "b": b}}
	if err := c.Single().Query(ctx, wide).Do(func(*spanner.Row) error { return nil }); spanner.ErrCode(err) != codes.InvalidArgument {
		t.Errorf("two parameters: %v", err)
	}
}
