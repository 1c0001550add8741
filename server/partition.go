package server

import (
	"bytes"
	"context"
	"encoding/binary"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/database/split"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/server/token"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A partition is the content of a partition token. It restricts a read or a query of one read-only transaction to a
// part of its keys.
type partition struct {
	whole bool // the partition is the whole read or query, which was not divided
	span  table.Span
}

// partitionVersion is the first byte of a partition token. Tokens are opaque to clients and have these fields, with
// their lengths in bytes:
//
//	version 1 | request fingerprint 8 | length 1 | transaction id | whole 1 | length of start uvarint | start | end | checksum 8
//
// The request fingerprint covers the session too.
const partitionVersion = 1

// token returns the token for a partition of a request in a transaction.
func (p partition) token(k token.Key, request uint64, transaction []byte) []byte {
	dst := []byte{partitionVersion}
	dst = binary.BigEndian.AppendUint64(dst, request)
	dst = append(append(dst, byte(len(transaction))), transaction...)
	whole := byte(0)
	if p.whole {
		whole = 1
	}
	dst = binary.AppendUvarint(append(dst, whole), uint64(len(p.span.Start)))
	dst = append(append(dst, p.span.Start...), p.span.End...)
	return k.Seal(dst, 0)
}

// parsePartition decodes a partition token and checks it. request and transaction are the fingerprint and the
// transaction id of the request that carries the token.
func parsePartition(k token.Key, data []byte, request uint64, transaction []byte) (*partition, error) {
	body, ok := k.Open(data)
	if !ok || len(body) < 10 || body[0] != partitionVersion {
		return nil, usererror.InvalidPartitionToken()
	}
	id := int(body[9])
	if len(body) < 10+id+1 {
		return nil, usererror.InvalidPartitionToken()
	}
	if binary.BigEndian.Uint64(body[1:]) != request || !bytes.Equal(body[10:10+id], transaction) {
		return nil, usererror.ForeignPartitionToken()
	}
	p := &partition{whole: body[10+id] == 1}
	rest := body[10+id+1:]
	start, n := binary.Uvarint(rest)
	if n <= 0 || start > uint64(len(rest)-n) {
		return nil, usererror.InvalidPartitionToken()
	}
	rest = rest[n:]
	p.span = table.Span{Start: bytes.Clone(rest[:start]), End: bytes.Clone(rest[start:])}
	return p, nil
}

// within returns those parts of the spans that lie in the partition.
func (p *partition) within(spans []table.Span) []table.Span {
	if p.whole {
		return spans
	}
	return table.Within(spans, p.span)
}

// restrict returns the key span to which the partition restricts a query, or nil if it does not restrict the query.
func (p *partition) restrict() *table.Span {
	if p.whole {
		return nil
	}
	return &p.span
}

// partitionRead answers PartitionRead.
func (s *service) partitionRead(ctx context.Context, req *spannerpb.PartitionReadRequest, c *rpc.Call) (reply *spannerpb.PartitionResponse, err error) {
	sc, err := s.openPartitioned(ctx, req.Session, req.Transaction, req.PartitionOptions)
	if err != nil {
		return nil, err
	}
	defer func() { sc.close(err) }()
	read := &spannerpb.ReadRequest{Table: req.Table, Index: req.Index, Columns: req.Columns, KeySet: req.KeySet}
	if err := checkReadFields(read); err != nil {
		return nil, err
	}
	planned, _, err := s.plannedRead(ctx, &sc, readRequest{ReadRequest: read})
	if err != nil {
		return nil, err
	}
	parts, err := cutPartitions(ctx, c, &sc, planned.Layout, planned.Spans, req.PartitionOptions)
	if err != nil {
		return nil, err
	}
	f := s.tokens.Read(req.Session, req.Table, req.Index, req.Columns, req.KeySet)
	return s.partitions(&sc, parts, f.Sum, req.Transaction), nil
}

// partitionQuery answers PartitionQuery.
func (s *service) partitionQuery(ctx context.Context, req *spannerpb.PartitionQueryRequest, c *rpc.Call) (reply *spannerpb.PartitionResponse, err error) {
	sc, err := s.openPartitioned(ctx, req.Session, req.Transaction, req.PartitionOptions)
	if err != nil {
		return nil, err
	}
	defer func() { sc.close(err) }()
	text := sqlText{sql: req.Sql, params: req.Params, types: req.ParamTypes}
	stmt, err := text.prepare(ctx, &sc, prepare.Options{Batch: true})
	if err != nil {
		return nil, err
	}
	if err := checkStatement(&sc, stmt); err != nil {
		return nil, err
	}
	if stmt.ChangeStream != nil {
		return nil, usererror.ChangeStreamPartitionQuery()
	}
	params, err := text.bind(stmt)
	if err != nil {
		return nil, err
	}
	if err := stmt.Plan.Partitionable(); err != nil {
		return nil, err
	}
	layout, spans, err := stmt.Driving(ctx, prepare.Run{View: sc.view(), Params: params, Memory: &c.Rows}, c.Cost.Began)
	if err != nil {
		return nil, err
	}
	parts, err := cutPartitions(ctx, c, &sc, layout, spans, req.PartitionOptions)
	if err != nil {
		return nil, err
	}
	f := s.tokens.Query(req.Session, req.Sql, req.Params, req.ParamTypes)
	return s.partitions(&sc, parts, f.Sum, req.Transaction), nil
}

// openPartitioned opens the read-only transaction in which partitions are read. If it succeeds, the caller must close
// the scope.
func (s *service) openPartitioned(ctx context.Context, name string, selector *spannerpb.TransactionSelector, o *spannerpb.PartitionOptions) (scope, error) {
	ses, err := s.sessions.find(name)
	if err != nil {
		return scope{}, err
	}
	if o.GetPartitionSizeBytes() < 0 || o.GetMaxPartitions() < 0 || o.GetMaxPartitions() > maxPartitions {
		return scope{}, usererror.InvalidPartitionOptions(maxPartitions)
	}
	if selector.GetBegin() == nil && selector.GetId() == nil {
		return scope{}, usererror.PartitionTransaction()
	}
	sc, err := s.openScope(ctx, scopeRequest{session: ses, selector: selector})
	if err == nil && !sc.readOnly() {
		err = usererror.PartitionTransaction()
	}
	if err != nil {
		sc.close(err)
	}
	return sc, err
}

// maxPartitions is the greatest max_partitions that a request can ask for:
// https://cloud.google.com/spanner/docs/reference/rpc/google.spanner.v1#partitionoptions.
const maxPartitions = 200_000

// partitionBytes is the approximate memory of a partition in bytes, without its keys. cutPartitions counts the bytes of
// the keys three times, because the keys are in a span, in the token, and in the encoded reply.
const partitionBytes = 256

// cutPartitions divides the key spans of a layout into partitions, and charges the call for the memory of the
// partitions and their tokens. If there are no spans, it returns one partition that is the whole read or query.
func cutPartitions(ctx context.Context, c *rpc.Call, sc *scope, l *table.Layout, spans []table.Span, o *spannerpb.PartitionOptions) ([]partition, error) {
	if len(spans) == 0 {
		return []partition{{whole: true}}, nil
	}
	list, err := sc.session.db.Splits().Partition(ctx, split.Partitioning{
		Layout: l, Spans: spans, View: sc.view(), Memory: &c.Memory, Bytes: o.GetPartitionSizeBytes(), Most: o.GetMaxPartitions(),
	})
	if err != nil {
		return nil, err
	}
	size := int64(0)
	for _, span := range list {
		size += partitionBytes + 3*int64(len(span.Start)+len(span.End))
	}
	if err := c.Memory.Grow(ctx, size); err != nil {
		return nil, err
	}
	parts := make([]partition, len(list))
	for i, span := range list {
		parts[i] = partition{span: span}
	}
	return parts, nil
}

// partitions returns the reply to PartitionRead or PartitionQuery, which has a token for each partition. The tokens are
// valid only in one transaction: the one that the reply names or, if it names none, the one that the request names.
func (s *service) partitions(sc *scope, parts []partition, request uint64, selector *spannerpb.TransactionSelector) *spannerpb.PartitionResponse {
	id := selector.GetId()
	if sc.reply.ID != nil {
		id = sc.reply.ID
	}
	reply := &spannerpb.PartitionResponse{Transaction: sc.reply.Proto()}
	for _, p := range parts {
		reply.Partitions = append(reply.Partitions, &spannerpb.Partition{PartitionToken: p.token(s.tokens, request, id)})
	}
	return reply
}
