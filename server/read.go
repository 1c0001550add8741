package server

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/server/result"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A readRequest is a checked Read or StreamingRead request.
type readRequest struct {
	*spannerpb.ReadRequest
	session     *session
	fingerprint uint64
	partition   *partition         // parsed from the request's partition token; nil without a token
	resume      *result.Resumption // parsed from the request's resume token; nil without a token
}

// checkRead finds the session of a read and validates the request, except for the names of the table and its columns.
func (s *service) checkRead(req *spannerpb.ReadRequest) (r readRequest, err error) {
	r.ReadRequest = req
	if r.session, err = s.sessions.find(req.Session); err != nil {
		return r, err
	}
	if err := checkReadFields(req); err != nil {
		return r, err
	}
	f := s.tokens.Read(req.Session, req.Table, req.Index, req.Columns, req.KeySet)
	if len(req.PartitionToken) > 0 {
		if r.partition, err = parsePartition(s.tokens, req.PartitionToken, f.Sum, req.Transaction.GetId()); err != nil {
			return r, err
		}
		f.Bytes(req.PartitionToken)
	}
	f.Number(uint64(req.Limit))
	r.fingerprint = f.Sum
	if len(req.ResumeToken) > 0 {
		r.resume, err = result.ParseToken(s.tokens, req.ResumeToken, r.fingerprint)
	}
	return r, err
}

func checkReadFields(req *spannerpb.ReadRequest) error {
	if err := checkRequestOptions(req.RequestOptions); err != nil {
		return err
	}
	switch {
	case req.Table == "":
		return usererror.MissingField("table")
	case len(req.Columns) == 0:
		return usererror.NoColumns()
	case req.KeySet == nil:
		return usererror.MissingField("key_set")
	case req.Limit < 0:
		return usererror.NegativeLimit()
	}
	if _, ok := spannerpb.ReadRequest_OrderBy_name[int32(req.OrderBy)]; !ok {
		return usererror.InvalidEnum("order_by", int32(req.OrderBy))
	}
	if _, ok := spannerpb.ReadRequest_LockHint_name[int32(req.LockHint)]; !ok {
		return usererror.InvalidEnum("lock_hint", int32(req.LockHint))
	}
	if len(req.PartitionToken) == 0 {
		if req.DataBoostEnabled {
			return usererror.DataBoostWithoutPartition()
		}
		return nil
	}
	if req.Limit > 0 {
		return usererror.LimitWithPartition()
	}
	if req.OrderBy == spannerpb.ReadRequest_ORDER_BY_PRIMARY_KEY {
		return usererror.OrderWithPartition()
	}
	return nil
}

// withRead opens the rows of a read and passes the result to the function answer. The result is valid until answer
// returns.
func (s *service) withRead(ctx context.Context, r readRequest, c *rpc.Call, answer func(*result.Result) error) (err error) {
	sc, err := s.openScope(ctx, scopeRequest{
		session:  r.session,
		selector: r.Transaction,
		tag:      r.RequestOptions.GetTransactionTag(),
		resume:   r.resume,
	})
	defer func() { sc.close(err) }()
	if err != nil {
		return err
	}
	sc.record(&c.Cost)
	if sc.isPartitioned() {
		return usererror.PartitionedOnlyDML()
	}
	if err := checkDirectedRead(r.DirectedReadOptions, sc.readOnly()); err != nil {
		return err
	}
	read, projection, err := s.plannedRead(ctx, &sc, r)
	if err != nil {
		return err
	}
	if err := sc.dependOn(ctx, projection.Dependencies); err != nil {
		return err
	}
	c.Cost.StartRead(projection, r.RequestOptions.GetRequestTag(), r.partition != nil)
	c.Cost.TrackSplits(len(read.Spans) == 1 && read.Spans[0].IsPoint())
	read.Memory = &c.Memory
	rows, err := r.open(ctx, read, c.Cost.Splits.View(sc.view()), projection.Copied)
	if err != nil {
		return err
	}
	defer rows.Close()
	var room [16]plan.Column
	res := result.Result{Transaction: &sc.reply, Columns: readColumns(room[:0], read.Projection), Rows: rows}
	err = sc.readError(answer(&res))
	c.Cost.SetRead(res.Sent, res.DataSize())
	return err
}

// openRows are rows that the caller must close.
type openRows interface {
	result.Rows
	Close() error
}

// open opens the rows of a read. If copied is true, it reads from the table's columnar copy where that is cheaper.
func (r *readRequest) open(ctx context.Context, read table.Read, view table.View, copied bool) (openRows, error) {
	if copied {
		if rows, err := r.session.db.ReadColumns(ctx, read, view); rows != nil || err != nil {
			return rows, err
		}
	}
	return read.Open(ctx, view), nil
}

// plannedRead resolves the names and keys of a read, and checks that the session's role may read the columns.
func (s *service) plannedRead(ctx context.Context, sc *scope, r readRequest) (table.Read, *prepare.Projection, error) {
	projection, err := sc.session.db.Projection(sc.catalog, r.Table, r.Index, r.Columns)
	if err != nil {
		return table.Read{}, nil, sc.tooEarly(err, func(c *schema.Catalog) error {
			_, err := sc.session.db.Projection(c, r.Table, r.Index, r.Columns)
			return err
		})
	}
	needs := projection.Needs
	if len(r.KeySet.Keys)+len(r.KeySet.Ranges) > 0 {
		needs = projection.KeyNeeds
	}
	if err := sc.allow(ctx, needs); err != nil {
		return table.Read{}, nil, err
	}
	keys, err := keySet(projection.Layout, r.KeySet)
	if err != nil {
		return table.Read{}, nil, err
	}
	spans, err := projection.Spans(keys)
	if err != nil {
		return table.Read{}, nil, err
	}
	if r.partition != nil {
		spans = r.partition.within(spans)
	}
	read := table.Read{Projection: projection.Projection, Spans: spans, Limit: r.Limit}
	if r.LockHint == spannerpb.ReadRequest_LOCK_HINT_EXCLUSIVE {
		read.Lock = table.LockExclusive
	}
	return read, projection, nil
}

func readColumns(dst []plan.Column, p *table.Projection) []plan.Column {
	for _, c := range p.Columns {
		dst = append(dst, plan.Column{Name: c.Name, Type: c.Type})
	}
	return dst
}

func (s *service) streamingRead(ctx context.Context, req *spannerpb.ReadRequest, c *rpc.Call) error {
	r, err := s.checkRead(req)
	if err != nil {
		return err
	}
	return s.withRead(ctx, r, c, func(res *result.Result) error {
		return res.Stream(ctx, c, s.tokens, r.fingerprint, r.resume.Position())
	})
}

func (s *service) read(ctx context.Context, req *spannerpb.ReadRequest, c *rpc.Call) (reply *rpc.Frame, err error) {
	r, err := s.checkRead(req)
	if err != nil {
		return nil, err
	}
	err = s.withRead(ctx, r, c, func(res *result.Result) (err error) {
		reply, err = res.Set(ctx, c, r.resume.Position())
		return err
	})
	return reply, err
}
