package server

import (
	"context"
	"encoding/binary"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A scope is what one request reads, or writes, in: a snapshot of its own, or
// a transaction that other requests may share. It ends with the request.
type scope struct {
	session *session
	catalog *schema.Catalog
	// snapshot is set for read-only requests, transaction for others.
	snapshot    *txn.Snapshot
	transaction *transaction
	writer      *txn.Request   // of the transaction; nil if it is partitioned
	at          mvcc.Timestamp // of the snapshot
	// begun is the id of a transaction that this request began; the reply's metadata carries it.
	begun    []byte
	meter    txn.Meter // of the request, or nil
	multiUse bool      // the snapshot is that of a read-only transaction of several requests
	returnAt bool      // the reply's metadata carries at
	answered bool      // a part of the reply, with its metadata, has been sent
}

// scopeRequest is what the requests that run in a scope have in common.
type scopeRequest struct {
	session  *session
	selector *spannerpb.TransactionSelector
	tag      string      // of the transaction
	resume   *resumption // of a resume token, or nil
	meter    txn.Meter   // need not run while the request waits for a time to come; nil: there is none
}

// openScope finds or begins what a request runs in. The scope must be closed, also after an error.
func (s *Server) openScope(ctx context.Context, r scopeRequest) (sc scope, err error) {
	sc.session, sc.meter = r.session, r.meter
	var at mvcc.Timestamp // of a snapshot that is resumed
	if r.resume != nil {
		at = r.resume.at
	}
	switch sel := r.selector.GetSelector().(type) {
	case nil:
		err = s.openSnapshot(ctx, &sc, txn.Bound{Kind: txn.Strong}, at)
	case *spannerpb.TransactionSelector_SingleUse:
		err = s.openSingleUse(ctx, &sc, sel.SingleUse, at)
	case *spannerpb.TransactionSelector_Begin:
		err = s.openBegun(ctx, &sc, sel.Begin, r.tag, at)
	case *spannerpb.TransactionSelector_Id:
		err = s.openByID(ctx, &sc, sel.Id)
	}
	if err == nil && r.resume != nil && sc.at != at {
		err = usererror.ForeignResumeToken() // it is of another transaction
	}
	return sc, err
}

func (s *Server) openSnapshot(ctx context.Context, sc *scope, bound txn.Bound, resumeAt mvcc.Timestamp) (err error) {
	if resumeAt != 0 {
		bound = txn.Bound{Kind: txn.ReadTimestamp, Time: resumeAt.Time()}
	}
	if sc.meter != nil && !bound.Time.IsZero() && bound.Time.After(s.cfg.Clock()) {
		sc.meter.Pause()
		defer sc.meter.Resume()
	}
	if sc.snapshot, err = sc.session.db.Transactions().Snapshot(ctx, bound); err != nil {
		return err
	}
	sc.at = sc.snapshot.Timestamp()
	sc.catalog, err = sc.session.db.CatalogAt(sc.at)
	return err
}

func (s *Server) openSingleUse(ctx context.Context, sc *scope, o *spannerpb.TransactionOptions, resumeAt mvcc.Timestamp) error {
	if err := checkTransactionOptions(o); err != nil {
		return err
	}
	if o.GetReadOnly() == nil {
		return usererror.SingleUseWrite()
	}
	bound, err := boundOf(o.GetReadOnly())
	if err != nil {
		return err
	}
	sc.returnAt = o.GetReadOnly().GetReturnReadTimestamp()
	return s.openSnapshot(ctx, sc, bound, resumeAt)
}

func (s *Server) openBegun(ctx context.Context, sc *scope, o *spannerpb.TransactionOptions, tag string, resumeAt mvcc.Timestamp) error {
	if err := checkTransactionOptions(o); err != nil {
		return err
	}
	if ro := o.GetReadOnly(); ro != nil {
		bound, err := multiUseBound(ro)
		if err != nil {
			return err
		}
		if err := s.openSnapshot(ctx, sc, bound, resumeAt); err != nil {
			return err
		}
		sc.returnAt, sc.multiUse = ro.GetReturnReadTimestamp(), true
		sc.begun = s.tokens.newReadOnlyID(sc.session.name, sc.at)
		return nil
	}
	t := s.beginTransaction(sc.session, o, tag)
	sc.begun = t.id
	return sc.enter(ctx, t)
}

func (s *Server) openByID(ctx context.Context, sc *scope, id []byte) (err error) {
	if len(id) > 0 && id[0] == readOnlyID {
		at, ok := s.tokens.readOnlyTimestamp(id, sc.session.name)
		if !ok {
			return usererror.TransactionNotFound(id)
		}
		sc.multiUse = true
		return s.openSnapshot(ctx, sc, txn.Bound{}, at)
	}
	t, err := s.transaction(sc.session, id)
	if err != nil {
		return err
	}
	return sc.enter(ctx, t)
}

// enter makes the scope one of a transaction, if the transaction can still be used.
func (sc *scope) enter(ctx context.Context, t *transaction) error {
	sc.transaction, sc.catalog = t, t.catalog
	if t.partitioned { // its parts are transactions of their own
		sc.catalog = sc.session.db.Catalog()
		return nil
	}
	tx, err := t.current()
	if err != nil {
		return err
	}
	if err := tx.Enter(ctx); err != nil {
		return err
	}
	tx.Leave() // what the request reads and writes enters again
	sc.writer = tx.Request()
	return nil
}

// close ends the scope, with the error of the request. A transaction whose
// first request failed has not begun, unless the client has its id already and may go on with it.
func (sc *scope) close(err error) {
	if sc.snapshot != nil {
		sc.snapshot.Close()
	}
	if sc.transaction == nil || err == nil {
		return
	}
	if sc.begun != nil && !sc.answered {
		sc.transaction.forget()
	} else {
		sc.transaction.settle()
	}
}

// tooEarly is the error that resolving a request ended with. If the same goes well with the newest schema,
// the user reads at a time before that: the error says so.
func (sc *scope) tooEarly(err error, resolve func(*schema.Catalog) error) error {
	newest := sc.session.db.Catalog()
	if sc.snapshot == nil || sc.catalog == newest || resolve(newest) != nil {
		return err
	}
	return usererror.AtTimestamp(err, sc.at.Time())
}

// view is what the request reads.
func (sc *scope) view() table.View {
	if sc.snapshot != nil {
		return sc.snapshot
	}
	return sc.writer
}

// readOnly says whether the request may not write.
func (sc *scope) readOnly() bool { return sc.transaction == nil }

func (sc *scope) isPartitioned() bool {
	return sc.transaction != nil && sc.transaction.partitioned
}

// kind is the TRANSACTION_TYPE of what the request runs in.
func (sc *scope) kind() string {
	switch {
	case sc.transaction != nil:
		return "READ_WRITE"
	case sc.multiUse:
		return "READ_ONLY"
	}
	return "NONE"
}

// proto is the transaction as metadata carries it, nil if it carries none.
func (sc *scope) proto() *spannerpb.Transaction {
	if sc.begun == nil && !sc.returnAt {
		return nil
	}
	t := &spannerpb.Transaction{Id: sc.begun}
	if sc.returnAt {
		t.ReadTimestamp = timestamppb.New(sc.at.Time())
	}
	return t
}

// appendTransaction appends the ResultSetMetadata.transaction field, if there is one.
func (sc *scope) appendTransaction(dst []byte) []byte {
	if sc.begun == nil && !sc.returnAt {
		return dst
	}
	var room [64]byte
	body := room[:0]
	if sc.begun != nil {
		body = protowire.AppendBytes(append(body, tagTransactionID), sc.begun)
	}
	if sc.returnAt {
		var stamp [32]byte
		body = protowire.AppendBytes(append(body, tagTransactionReadTimestamp), appendTimestamp(stamp[:0], sc.at))
	}
	return protowire.AppendBytes(append(dst, tagMetadataTransaction), body)
}

const (
	tagTransactionID            = 1<<3 | 2
	tagTransactionReadTimestamp = 2<<3 | 2
	tagTimestampSeconds         = 1 << 3
	tagTimestampNanos           = 2 << 3
)

// appendTimestamp appends the body of a google.protobuf.Timestamp.
func appendTimestamp(dst []byte, at mvcc.Timestamp) []byte {
	t := at.Time()
	dst = binary.AppendUvarint(append(dst, tagTimestampSeconds), uint64(t.Unix()))
	return binary.AppendUvarint(append(dst, tagTimestampNanos), uint64(t.Nanosecond()))
}
