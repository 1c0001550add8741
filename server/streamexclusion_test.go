package server

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/api/iterator"
)

// TestExcludedFromChangeStreams: each kind of transaction of the official client can ask to be excluded from change
// streams. A change stream with the option allow_txn_exclusion leaves such a transaction out.
func TestExcludedFromChangeStreams(t *testing.T) {
	x, created := newStreamTraffic(t)
	row := func(k int64) *spanner.Mutation { return spanner.InsertMap("Plain", map[string]any{"K": k}) }
	apply := func(k int64, opts ...spanner.ApplyOption) (at time.Time) {
		t.Helper()
		at, err := x.client.Apply(x.ctx, []*spanner.Mutation{row(k)}, opts...)
		x.ok(err)
		return at
	}
	// The change stream records this transaction nevertheless, because it does not have the option yet.
	apply(1, spanner.ExcludeTxnFromChangeStreams())
	x.ok(x.database().UpdateSchema(x.ctx, []string{"ALTER CHANGE STREAM Everything SET OPTIONS (allow_txn_exclusion = true)"}, nil))
	apply(2, spanner.ExcludeTxnFromChangeStreams())
	apply(3, spanner.ExcludeTxnFromChangeStreams(), spanner.ApplyAtLeastOnce())
	_, err := x.client.ReadWriteTransactionWithOptions(x.ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := tx.Update(ctx, spanner.NewStatement("INSERT INTO Plain (K) VALUES (4)"))
		return err
	}, spanner.TransactionOptions{ExcludeTxnFromChangeStreams: true})
	x.ok(err)
	groups := []*spanner.MutationGroup{{Mutations: []*spanner.Mutation{row(5)}}, {Mutations: []*spanner.Mutation{row(6)}}}
	batch := x.client.BatchWriteWithOptions(x.ctx, groups, spanner.BatchWriteOptions{ExcludeTxnFromChangeStreams: true})
	for err == nil {
		_, err = batch.Next()
	}
	if !errors.Is(err, iterator.Done) {
		t.Fatal(err)
	}
	_, err = x.client.PartitionedUpdateWithOptions(x.ctx, spanner.NewStatement("UPDATE Plain SET V = 'p' WHERE TRUE"), spanner.QueryOptions{ExcludeTxnFromChangeStreams: true})
	x.ok(err)
	end := spanner.NullTime{Time: apply(7), Valid: true}

	var got []string
	for _, token := range x.initial(created) {
		x.ok(x.partition(x.ctx, created, end, partitionToken(token), func(r *changeRecord) { got = append(got, r.text()) }))
	}
	if want := []string{"INSERT Plain map[K:1] map[]", "INSERT Plain map[K:7] map[]"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
