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
	// maxMutations is half of the limit of a commit:
	// https://cloud.google.com/spanner/quotas#limits_for_creating_reading_updating_and_deleting_data. The other half is a reserve for mutations
	// that a client cannot count, such as those for interleaved indexes and foreign keys.
	maxMutations = 40_000
	// commitBytes is the size of a commit. Spanner's guide to bulk loading recommends 1 to 5 MB.
	commitBytes = 1 << 20
)

// rows are encoded rows that are committed together.
type rows struct {
	encoded []byte
	ends    []int // the end of each row in encoded
	places  []place
	mayBeIn bool // an unanswered attempt may have inserted them
}

// place says where a row comes from: of returns the place of the given row of a batch.
type place struct {
	of  func(row int) bulk.Place
	row int
}

func (r *rows) len() int { return len(r.ends) }

// slice returns the rows in the range [from, end).
func (r *rows) slice(from, end int) *rows {
	s := &rows{places: r.places[from:end], mayBeIn: r.mayBeIn}
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
	table   *bulk.TableInfo
	columns []bulk.ColumnInfo
	mode    Mode
	reject  func(bulk.BadRow) error
}

// mutations returns mutations that write the rows. With Insert, the client sends one mutation again when it begins the transaction, and it
// chooses the last of its kind. So the last one holds only one row.
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

// mutation returns a mutation that writes encoded rows. The protobuf library sends unknown fields unchanged, so the rows are set as unknown
// fields.
func (c *committer) mutation(encoded []byte) (*spanner.Mutation, error) {
	write := &spannerpb.Mutation_Write{Table: c.table.Name, Columns: columnNames(c.columns)}
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

// commit commits rows, and rejects those that the server refuses. It returns how many rows are in the table.
func (c *committer) commit(ctx context.Context, r *rows) (written int, err error) {
	if r.len() == 0 {
		return 0, nil
	}
	m, err := c.mutations(r)
	if err != nil {
		return 0, err
	}
	unanswered, err := repeat(ctx, func() error { return c.apply(ctx, m) })
	r.mayBeIn = r.mayBeIn || unanswered && c.mode == Insert
	switch {
	case err == nil:
		return r.len(), nil
	case !isOfRow(err):
		return 0, err
	case r.mayBeIn && status.Code(err) == codes.AlreadyExists:
		left, err := c.withoutInserted(ctx, r)
		if err != nil {
			return 0, err
		}
		written, err := c.commit(ctx, left)
		return r.len() - left.len() + written, err
	}
	return c.divide(ctx, r, err)
}

// divide finds the rows for which the server has refused a commit. It commits each half by itself.
func (c *committer) divide(ctx context.Context, r *rows, refused error) (written int, err error) {
	if r.len() == 1 {
		if err := c.checkTable(ctx, refused); err != nil {
			return 0, err
		}
		return 0, c.reject(bulk.BadRow{Place: r.places[0].of(r.places[0].row), Reason: status.Convert(refused).Message()})
	}
	half := r.len() / 2
	for _, part := range []*rows{r.slice(0, half), r.slice(half, r.len())} {
		n, err := c.commit(ctx, part)
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}

// isOfRow reports whether the content of a row may have caused an error. Then the other rows can be committed without it.
func isOfRow(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange, codes.NotFound:
		return true
	}
	return false
}

// CallOptions are for the ClientConfig of a client that imports. By default, the client silently retries a commit for an hour if the server is
// away or has no room for it, for example on a full disk. With these options Import retries it, and knows which commits may have succeeded
// without an answer.
func CallOptions() *vkit.CallOptions {
	never := func() gax.Retryer { return gax.OnCodes(nil, gax.Backoff{}) }
	return &vkit.CallOptions{Commit: []gax.CallOption{gax.WithRetry(never)}}
}

// AwayLimit is how long a server may be away, for example to restart, before an import ends. The import can be continued later.
const AwayLimit = 5 * time.Minute

// apply commits mutations.
func (c *committer) apply(ctx context.Context, m []*spanner.Mutation) error {
	options := []spanner.ApplyOption{spanner.TransactionTag("crowfoot-import")}
	if c.mode != Insert {
		options = append(options, spanner.ApplyAtLeastOnce())
	}
	_, err := c.client.Apply(ctx, m, options...)
	return err
}

// repeat calls do, which commits rows, and again while the server is busy or away. unanswered says that the server went away during an attempt,
// which may have succeeded. With InsertOrUpdate and Replace, repeating such an attempt changes nothing. With Insert, the repeated attempt finds
// its own rows in the table.
func repeat(ctx context.Context, do func() error) (unanswered bool, err error) {
	const (
		attempts = 8 // the maximum number while the server is busy
		first    = 100 * time.Millisecond
		most     = 5 * time.Second
	)
	begin, busy := time.Now(), 0
	for wait := first; ; wait = min(2*wait, most) {
		err := do()
		if err == nil || ctx.Err() != nil {
			return unanswered, err
		}
		switch status.Code(err) {
		case codes.Unavailable:
			unanswered = true
			if time.Since(begin) > AwayLimit {
				return unanswered, fmt.Errorf("the server has been away for %v: %w", AwayLimit, err)
			}
		case codes.ResourceExhausted, codes.Aborted:
			if busy++; busy == attempts {
				return unanswered, fmt.Errorf("after %d attempts: %w", attempts, err)
			}
		default:
			return unanswered, err
		}
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-ctx.Done():
			return unanswered, ctx.Err()
		}
	}
}
