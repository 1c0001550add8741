package transfer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"cloud.google.com/go/spanner"
	vkit "cloud.google.com/go/spanner/apiv1"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/bulk"
)

const (
	// maxMutations is half of what a commit may have: https://cloud.google.com/spanner/quotas#limits_for_creating_reading_updating_and_deleting_data.
	// The other half is for what a client cannot count, as interleaved indexes and foreign keys.
	maxMutations = 40_000
	// commitBytes is a commit of the size that Spanner's guide to bulk loading recommends, 1 to 5 MB.
	commitBytes = 1 << 20
)

// rows are encoded rows that are committed together.
type rows struct {
	encoded []byte
	ends    []int // of each row in encoded
	places  []place
	first   int64 // number of the first row in the segment
}

// place is where a row comes from: a row of a batch.
type place struct {
	of  func(row int) bulk.Place
	row int
}

func (r *rows) len() int { return len(r.ends) }

// slice is rows from to end.
func (r *rows) slice(from, end int) *rows {
	s := &rows{places: r.places[from:end], first: r.first + int64(from)}
	begin := 0
	if from > 0 {
		begin = r.ends[from-1]
	}
	for _, e := range r.ends[from:end] {
		s.ends = append(s.ends, e-begin)
	}
	s.encoded = r.encoded[begin:r.ends[end-1]]
	return s
}

// committer commits rows to a table.
type committer struct {
	client  *spanner.Client
	table   string
	columns []string
	mode    Mode
	reject  func(bulk.BadRow) error
}

// mutations are mutations of rows. A transaction that is begun to insert repeats one of them, by the client's choice the last of the kind: then that has one row.
func (c *committer) mutations(r *rows) (list []*spanner.Mutation, err error) {
	parts := []*rows{r}
	if n := r.len(); c.mode == Insert && n > 1 {
		parts = []*rows{r.slice(0, n-1), r.slice(n-1, n)}
	}
	for _, part := range parts {
		m, err := c.mutation(part.encoded)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// mutation is a mutation of rows as they are on the wire. The library of protocol buffers sends fields that it does not know as they are: that is what
// the rows are to it.
func (c *committer) mutation(encoded []byte) (*spanner.Mutation, error) {
	write := &spannerpb.Mutation_Write{Table: c.table, Columns: c.columns}
	write.ProtoReflect().SetUnknown(encoded)
	m := &spannerpb.Mutation{}
	switch c.mode {
	case Insert:
		m.Operation = &spannerpb.Mutation_Insert{Insert: write}
	case Replace:
		m.Operation = &spannerpb.Mutation_Replace{Replace: write}
	default:
		m.Operation = &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: write}
	}
	return spanner.WrapMutation(m)
}

// commit commits rows, and rejects those that the server refuses. sentBefore is how many rows of the segment may have been committed by a run before.
// It returns how many rows are in the table.
func (c *committer) commit(ctx context.Context, r *rows, sentBefore int64) (written int, err error) {
	m, err := c.mutations(r)
	if err != nil {
		return 0, err
	}
	err = c.apply(ctx, m)
	switch {
	case err == nil:
		return r.len(), nil
	case !isOfRow(err):
		return 0, err
	case r.len() > 1: // the half that is good is committed at once
		half := r.len() / 2
		first, err := c.commit(ctx, r.slice(0, half), sentBefore)
		if err != nil {
			return first, err
		}
		second, err := c.commit(ctx, r.slice(half, r.len()), sentBefore)
		return first + second, err
	case status.Code(err) == codes.AlreadyExists && r.first < sentBefore:
		return 1, nil
	}
	return 0, c.reject(bulk.BadRow{Place: r.places[0].of(r.places[0].row), Reason: status.Convert(err).Message()})
}

// isOfRow says whether an error may be due to what is in a row, so that others can be committed without it.
func isOfRow(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange, codes.NotFound:
		return true
	}
	return false
}

// CallOptions are for the ClientConfig of a client that imports. By its own the client repeats a commit for an hour where the server has no room for it, as when its disk is
// full, and says nothing; with these it does so only while the server is away, and Import ends with the server's words after some attempts.
func CallOptions() *vkit.CallOptions {
	away := func() gax.Retryer {
		return gax.OnCodes([]codes.Code{codes.Unavailable}, gax.Backoff{Initial: 250 * time.Millisecond, Max: 5 * time.Second, Multiplier: 1.3})
	}
	return &vkit.CallOptions{Commit: []gax.CallOption{gax.WithRetry(away)}}
}

// apply commits mutations, again where the server is busy or away. A commit that was done and not answered is done again, which changes nothing with
// InsertOrUpdate and Replace.
func (c *committer) apply(ctx context.Context, m []*spanner.Mutation) error {
	const (
		attempts = 8
		first    = 100 * time.Millisecond // doubled with each attempt: less than half a minute in all
	)
	for attempt := 0; ; attempt++ {
		options := []spanner.ApplyOption{spanner.TransactionTag("crowfoot-import")}
		if c.mode != Insert {
			options = append(options, spanner.ApplyAtLeastOnce())
		}
		_, err := c.client.Apply(ctx, m, options...)
		code := status.Code(err)
		if err == nil || ctx.Err() != nil || code != codes.ResourceExhausted && code != codes.Unavailable && code != codes.Aborted {
			return err
		}
		if attempt == attempts-1 {
			return fmt.Errorf("after %d attempts: %w", attempts, err)
		}
		wait := first << attempt
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
