package server

import (
	"context"
	"errors"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/server/cost"
	"github.com/crowfoot-db/crowfoot/server/result"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/stats/live"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A scope is the snapshot or the transaction in which one request reads and writes. A snapshot belongs to one request,
// but several requests may use the same transaction. The scope ends with the request.
type scope struct {
	session *session
	catalog *schema.Catalog
	// One of snapshot and transaction is set: snapshot for read-only requests, transaction for others.
	snapshot    *txn.Snapshot
	transaction *transaction
	open        *openTransaction // nil if the transaction is partitioned
	writer      *txn.Request     // nil if the transaction is partitioned
	multiUse    bool             // the snapshot belongs to a read-only transaction of several requests
	reply       result.Transaction
}

// scopeRequest has what openScope needs from a request.
type scopeRequest struct {
	session  *session
	selector *spannerpb.TransactionSelector
	tag      string             // tag of the transaction
	resume   *result.Resumption // from the resume token, or nil
}

// openScope opens a snapshot, begins a transaction, or finds the transaction that the request names. The caller must
// close the scope, even after an error.
func (s *service) openScope(ctx context.Context, r scopeRequest) (sc scope, err error) {
	sc.session = r.session
	sc.session.begin()
	var at mvcc.Timestamp // timestamp of a resumed snapshot
	if r.resume != nil {
		at = r.resume.At
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
	if err == nil && r.resume != nil && sc.reply.At != at {
		err = usererror.ForeignResumeToken() // the token belongs to a request in another transaction
	}
	return sc, err
}

func (s *service) openSnapshot(ctx context.Context, sc *scope, bound txn.Bound, resumeAt mvcc.Timestamp) (err error) {
	if resumeAt != 0 {
		bound = txn.Bound{Kind: txn.ReadTimestamp, Time: resumeAt.Time()}
	}
	if sc.snapshot, err = sc.session.db.Transactions().Snapshot(ctx, bound); err != nil {
		return err
	}
	sc.reply.At = sc.snapshot.Timestamp()
	sc.catalog, err = sc.session.db.CatalogAt(sc.reply.At)
	return err
}

func (s *service) openSingleUse(ctx context.Context, sc *scope, o *spannerpb.TransactionOptions, resumeAt mvcc.Timestamp) error {
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
	sc.reply.ReturnAt = o.GetReadOnly().GetReturnReadTimestamp()
	return s.openSnapshot(ctx, sc, bound, resumeAt)
}

func (s *service) openBegun(ctx context.Context, sc *scope, o *spannerpb.TransactionOptions, tag string, resumeAt mvcc.Timestamp) error {
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
		sc.reply.ReturnAt, sc.multiUse = ro.GetReturnReadTimestamp(), true
		sc.reply.ID = newReadOnlyID(s.tokens, sc.session.name, sc.reply.At)
		return nil
	}
	t := s.transactions.begin(sc.session, o, tag)
	sc.reply.ID = t.id
	return sc.enter(t)
}

func (s *service) openByID(ctx context.Context, sc *scope, id []byte) (err error) {
	if len(id) > 0 && id[0] == readOnlyID {
		at, ok := readOnlyTimestamp(s.tokens, id, sc.session.name)
		if !ok {
			return usererror.TransactionNotFound(id)
		}
		sc.multiUse = true
		return s.openSnapshot(ctx, sc, txn.Bound{}, at)
	}
	t, err := s.transactions.find(sc.session, id)
	if err != nil {
		return err
	}
	return sc.enter(t)
}

// enter makes t the transaction of the scope. It fails if t can no longer be used.
func (sc *scope) enter(t *transaction) error {
	sc.transaction, sc.catalog = t, sc.session.db.Catalog()
	t.usage.begin()
	if t.partitioned { // the statement runs in transactions of its own
		return nil
	}
	open, err := t.current()
	if err != nil {
		return err
	}
	if err := open.tx.Enter(); err != nil {
		return err
	}
	// Enter has only checked that the transaction can be used. Each read or write of the request enters it again.
	open.tx.Leave()
	sc.open, sc.writer = open, open.tx.Request()
	return nil
}

// dependOn makes the request's transaction depend on the parts of the schema that d names: a schema change that alters
// one of these parts then aborts the transaction. Call it before the request reads or writes. It does nothing for a
// snapshot or partitioned DML.
func (sc *scope) dependOn(ctx context.Context, d *schema.Dependencies) error {
	if sc.writer == nil {
		return nil
	}
	return sc.writer.DependOn(ctx, d, sc.catalog)
}

// allow checks that the session's role has the privileges in n. A session without a role has all privileges. If the
// role loses one of them before the transaction commits, the transaction is aborted.
func (sc *scope) allow(ctx context.Context, n *prepare.Needs) error {
	var tx *txn.Tx
	if sc.writer != nil {
		tx = sc.writer.Tx
	}
	return sc.session.db.Allow(ctx, tx, sc.catalog, sc.session.stored.Role, n)
}

// close ends the scope of a request; err is the error of the request, or nil. If the request began a transaction and
// failed before the client got the transaction's id, close forgets the transaction, because the client cannot use it.
func (sc *scope) close(err error) {
	sc.session.end()
	if sc.snapshot != nil {
		sc.snapshot.Close()
	}
	if sc.transaction == nil {
		return
	}
	sc.transaction.usage.end()
	if err == nil {
		return
	}
	if sc.reply.ID != nil && !sc.reply.Sent {
		sc.transaction.forget()
	} else {
		sc.transaction.settle()
	}
}

// tooEarly returns the error to report if names could not be resolved in the schema of the snapshot. err says why they
// could not. The function resolve tries to resolve them in a given schema. If it succeeds with the newest schema, the
// names are newer than the snapshot, so the error also gives the snapshot's timestamp.
func (sc *scope) tooEarly(err error, resolve func(*schema.Catalog) error) error {
	newest := sc.session.db.Catalog()
	if sc.snapshot == nil || sc.catalog == newest || resolve(newest) != nil {
		return err
	}
	return usererror.AtTimestamp(err, sc.reply.At.Time())
}

// readError converts err to an error for users. ErrCollected means that the stream waited so long for its client that
// the versions to be read next were deleted; readError turns it into an error that says so. Other errors stay as they
// are.
func (sc *scope) readError(err error) error {
	if errors.Is(err, mvcc.ErrCollected) {
		return usererror.StalenessExceeded(sc.reply.At.Time(), sc.session.db.EarliestVersion())
	}
	return err
}

// record tells the request's cost recorder which database and transaction the request runs in.
func (sc *scope) record(r *cost.Recorder) {
	if sc.open == nil {
		r.RunIn(sc.session.db, nil)
		return
	}
	r.RunIn(sc.session.db, sc.open)
}

// startStatement adds a statement of the request to the list of running statements. The request must remove it with
// StopStatement.
func (sc *scope) startStatement(ctx context.Context, c *rpc.Call, s *prepare.Statement, o *spannerpb.RequestOptions) context.Context {
	return c.StartStatement(ctx, sc.session.db.Live(), live.Query{
		SQL:         s.Text.SQL,
		Fingerprint: s.Text.Fingerprint,
		Tag:         o.GetRequestTag(),
		Session:     sc.session.id(),
		Priority:    o.GetPriority().String(),
		Transaction: sc.kind(),
	}, !sc.readOnly() || !s.PointReads)
}

// view returns the view that the request reads from.
func (sc *scope) view() table.View {
	if sc.snapshot != nil {
		return sc.snapshot
	}
	return sc.writer
}

// readOnly reports whether the request must not write, because it reads a snapshot.
func (sc *scope) readOnly() bool { return sc.transaction == nil }

func (sc *scope) isPartitioned() bool {
	return sc.transaction != nil && sc.transaction.partitioned
}

// kind returns the TRANSACTION_TYPE of the request's snapshot or transaction.
func (sc *scope) kind() string {
	switch {
	case sc.transaction != nil:
		return "READ_WRITE"
	case sc.multiUse:
		return "READ_ONLY"
	}
	return "NONE"
}
