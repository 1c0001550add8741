package bench

import (
	"context"
	"fmt"

	"cloud.google.com/go/spanner"
)

// transaction runs f and commits. The caller draws the rows before, so that a retry inserts the same rows.
func transaction(ctx context.Context, c call, f func(context.Context, *spanner.ReadWriteTransaction) error) error {
	_, err := c.client.ReadWriteTransactionWithOptions(ctx, f, spanner.TransactionOptions{TransactionTag: c.tag})
	return err
}

func repeated(method string, n int) string {
	if n == 1 {
		return method
	}
	return fmt.Sprintf("%d %s", n, method)
}

// saying is true if the last statement of a transaction is marked as the last. The server may then leave checks to
// the commit.
type saying bool

const (
	sayNothing saying = false
	sayLast    saying = true
)

// rowsPerCommit returns the name of the experiment with n rows per commit.
func rowsPerCommit(n int) string { return fmt.Sprintf("rows_%d", n) }
