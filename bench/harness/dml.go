package harness

import (
	"context"
	"fmt"

	"cloud.google.com/go/spanner"
)

// InTransaction runs f in a read-write transaction and commits. The client calls f again if the server aborts the
// transaction. So the caller must choose the random values of the rows before it calls InTransaction, and not in f:
// only then does a retry insert the same rows.
func InTransaction(ctx context.Context, c Call, f func(context.Context, *spanner.ReadWriteTransaction) error) error {
	_, err := c.Client.ReadWriteTransactionWithOptions(ctx, f, spanner.TransactionOptions{TransactionTag: c.Tag})
	return err
}

func Repeated(method string, n int) string {
	if n == 1 {
		return method
	}
	return fmt.Sprintf("%d %s", n, method)
}

// Saying is true if the request of a transaction's last statement has the field last_statement set. The server may then
// postpone checks to the commit.
type Saying bool

const (
	SayNothing Saying = false
	SayLast    Saying = true
)

// RowsPerCommit returns the name of the experiment with n rows per commit.
func RowsPerCommit(n int) string { return fmt.Sprintf("rows_%d", n) }
