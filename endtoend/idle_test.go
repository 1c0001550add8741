package endtoend_test

import (
	"context"
	"testing"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"
)

// TestVanishedClient checks a transaction that holds a lock and whose client sends nothing more. Another transaction
// must get the lock when the first has been idle for ten seconds
// (https://cloud.google.com/spanner/docs/transactions#idle_transactions).
func TestVanishedClient(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	_, c := client(t)
	ctx := context.Background()
	if _, err := c.Apply(ctx, []*spanner.Mutation{spanner.Insert("T", []string{"K", "V"}, []any{1, 10})}); err != nil {
		t.Fatal(err)
	}
	vanished, err := spanner.NewReadWriteStmtBasedTransaction(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vanished.Update(ctx, spanner.NewStatement("UPDATE T SET V = 11 WHERE K = 1")); err != nil {
		t.Fatal(err)
	}
	_, err = c.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := tx.Update(ctx, spanner.NewStatement("UPDATE T SET V = V + 100 WHERE K = 1"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vanished.Commit(ctx); spanner.ErrCode(err) != codes.Aborted {
		t.Errorf("the vanished client comes back and its commit gives %v, want ABORTED", err)
	}
	row, err := c.Single().ReadRow(ctx, "T", spanner.Key{1}, []string{"V"})
	if err != nil {
		t.Fatal(err)
	}
	var v int64
	if err := row.Column(0, &v); err != nil || v != 110 {
		t.Errorf("V is %d, %v; want 110", v, err)
	}
}
