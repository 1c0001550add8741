package result

import (
	"context"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// maxResultSet is how many bytes a reply of one message can have:
// https://cloud.google.com/spanner/docs/reference/rpc/google.spanner.v1#executesql.
const maxResultSet = 10 << 20

// Set reads a result into one ResultSet message. from is the position of the first row. Set returns an error if that
// position is within a row.
func (r *Result) Set(ctx context.Context, c *rpc.Call, from Position) (f *rpc.Frame, err error) {
	if from.value > 0 || from.piece > 0 {
		return nil, usererror.ResumeWithinRow()
	}
	f = rpc.NewFrame()
	defer func() {
		if err != nil {
			f.Release()
		}
	}()
	f.Data = r.appendMetadata(f.Data, tagResultMetadata)
	if r.Rows != nil {
		if err := r.skip(from.row); err != nil {
			return f, err
		}
		if err := r.appendRows(ctx, f, c); err != nil {
			return f, err
		}
	}
	if r.AppendStats != nil {
		f.Data = r.AppendStats(f.Data, tagResultStats)
	}
	return f, ctx.Err()
}

// appendRows appends all rows as elements of ResultSet.rows. It charges for each row before it appends the row.
func (r *Result) appendRows(ctx context.Context, f *rpc.Frame, c *rpc.Call) error {
	for {
		ok, err := r.Rows.Next()
		if !ok || err != nil {
			return err
		}
		if err := f.Reserve(ctx, c, r.Rows.Size()); err != nil {
			return err
		}
		f.Data = appendResultRow(f.Data, r.Rows)
		r.Sent++
		if err := f.Charge(ctx, c); err != nil {
			return err
		}
		if len(f.Data) > maxResultSet {
			return usererror.ResultTooLarge(maxResultSet)
		}
	}
}

// appendResultRow appends the current row as a ListValue. AppendWire appends each element with the tag of
// PartialResultSet.values, which appendResultRow replaces by the tag of ListValue.values.
func appendResultRow(dst []byte, rows Rows) []byte {
	dst, mark := value.BeginField(dst, tagResultRow)
	at := len(dst)
	dst = rows.AppendWire(dst)
	for at < len(dst) {
		dst[at] = tagListValue
		n, head := protowire.ConsumeVarint(dst[at+1:])
		if head < 0 {
			break // cannot happen: AppendWire appends well-formed values
		}
		at += 1 + head + int(n)
	}
	return value.EndField(dst, mark)
}
