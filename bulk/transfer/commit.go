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
	// maxMutations is the maximum number of mutations that the client puts into one commit. It is half of Spanner's
	// limit: https://cloud.google.com/spanner/quotas#limits_for_creating_reading_updating_and_deleting_data. The other
	// half is a reserve for mutations that a client cannot count, such as those for interleaved indexes and foreign
	// keys.
	maxMutations = 40_000
	// commitBytes is the number of bytes of rows at which the client sends a commit. Spanner's guide to bulk loading
	// recommends commits of 1 to 5 MB.
	commitBytes = 1 << 20
)

// rows holds encoded rows that are committed together.
type rows struct {
	encoded []byte
	ends    []int // the offset in encoded at which each row ends
	places  []place
	mayBeIn bool // whether an earlier attempt to commit, which got no answer, may have inserted the rows
}

// place says where a row comes from. The field of is a function. If it is called with the field row, it returns the
// row's place in the source, such as a file and a line.
type place struct {
	of  func(row int) bulk.Place
	row int
}

func (r *rows) len() int { return len(r.ends) }

// slice returns the rows with the indexes [from, end).
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

// mutations returns mutations that write the rows. With the mode Insert, Spanner's client library sends the last
// mutation twice: when it begins the transaction, and again with the commit. So with this mode the last mutation gets
// only one row.
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

// mutation returns a mutation that writes encoded rows. It sets the rows as unknown fields of the message, because the
// protobuf library sends unknown fields unchanged.
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

// commit commits rows, and rejects the rows that the server refuses. It returns how many of the rows are in the table
// afterwards.
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

// divide finds out which rows were the reason why the server refused a commit. To do so, it commits the two halves of
// the rows separately.
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

// isOfRow reports whether the content of a single row may have caused the error. If so, the other rows can be committed
// without that row.
func isOfRow(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange, codes.NotFound:
		return true
	}
	return false
}

// CallOptions returns call options for the ClientConfig of a client that is used for an import. Without them, the
// client would silently retry a commit for an hour if the server cannot be reached or has no space, for example on a
// full disk. With them, Import itself retries the commit, and so knows which commits may have succeeded without an
// answer.
func CallOptions() *vkit.CallOptions {
	never := func() gax.Retryer { return gax.OnCodes(nil, gax.Backoff{}) }
	return &vkit.CallOptions{Commit: []gax.CallOption{gax.WithRetry(never)}}
}

// AwayLimit is how long a server may be unreachable, for example because it restarts, before an import ends. The
// import can be continued later.
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

// repeat calls the function do, which commits rows, and calls it again while the server is busy or cannot be reached.
// The result unanswered is true if the connection broke during an attempt, so that this attempt may have succeeded.
// With InsertOrUpdate and Replace, repeating such an attempt changes nothing. With Insert, the repeated attempt may
// fail because it finds its own rows in the table. The caller must not count these rows as duplicates.
func repeat(ctx context.Context, do func() error) (unanswered bool, err error) {
	const (
		attempts = 8 // the maximum number of attempts while the server is busy
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
