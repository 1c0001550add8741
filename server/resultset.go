package server

import (
	"context"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// maxResultSet is what one message may hold: https://cloud.google.com/spanner/docs/reference/rpc/google.spanner.v1#executesql.
const maxResultSet = 10 << 20

// resultSet reads a result, from the position on, into one ResultSet message.
func (s *Server) resultSet(ctx context.Context, r *result, from position) (f *frame, err error) {
	if from.value > 0 || from.piece > 0 {
		return nil, usererror.ResumeWithinRow()
	}
	f = newFrame()
	defer func() {
		if err != nil {
			f.release()
		}
	}()
	f.data = r.appendMetadata(f.data, tagResultMetadata)
	if r.rows != nil {
		if err := r.skip(from.row); err != nil {
			return f, err
		}
		if err := f.appendRows(r); err != nil {
			return f, err
		}
	}
	if r.appendStats != nil {
		f.data = r.appendStats(f.data, tagResultStats)
	}
	return f, ctx.Err()
}

// appendRows appends all rows as ResultSet.rows.
func (f *frame) appendRows(r *result) error {
	for {
		ok, err := r.rows.Next()
		if !ok || err != nil {
			return err
		}
		f.data = appendResultRow(f.data, r.rows)
		r.sent++
		if len(f.data) > maxResultSet {
			return usererror.ResultTooLarge(maxResultSet)
		}
	}
}

// appendResultRow appends the current row as a ListValue. Its elements have the
// same form as those of PartialResultSet.values, but for the field number.
func appendResultRow(dst []byte, rows rowSource) []byte {
	dst, mark := value.BeginField(dst, tagResultRow)
	at := len(dst)
	dst = rows.AppendWire(dst)
	for at < len(dst) {
		dst[at] = tagListValue
		n, head := protowire.ConsumeVarint(dst[at+1:])
		if head < 0 {
			break // AppendWire made it
		}
		at += 1 + head + int(n)
	}
	return value.EndField(dst, mark)
}
