package crossings

import (
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A transaction is a read-write transaction that stays open while other steps are done.
type transaction struct {
	w       *world
	session string
	id      []byte
	seqno   int64
	token   *spannerpb.MultiplexedSessionPrecommitToken

	mode string
	// base is the state at the first statement, which is the snapshot of a transaction that reads without locks. It is
	// nil before that statement.
	base       *model
	operations []*operation // the operations that it has written
	reads      []transactionRead
}

// transactionRead is a query of a transaction with its answer. before is the number of operations that the transaction
// had written before the query.
type transactionRead struct {
	sql    string
	want   func(m *model) []string
	got    []string
	before int
}

const (
	pessimistic    = "pessimistic transactions"
	optimistic     = "optimistic transactions"
	repeatable     = "REPEATABLE_READ"
	oldTransaction = "old transactions"
)

func init() {
	for _, name := range []string{pessimistic, optimistic, repeatable} {
		add(feature{name: name})
	}
}

func statusOf(s *statuspb.Status) error { return status.ErrorProto(s) }

func (w *world) begin(options *spannerpb.TransactionOptions) (*transaction, error) {
	session, err := w.sessionOf(w.ctx, "")
	if err != nil {
		return nil, err
	}
	reply, err := w.data.BeginTransaction(w.ctx, &spannerpb.BeginTransactionRequest{Session: session, Options: options})
	if err != nil {
		return nil, err
	}
	return &transaction{w: w, session: session, id: reply.Id, token: reply.PrecommitToken}, nil
}

func (tx *transaction) selector() *spannerpb.TransactionSelector {
	return &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Id{Id: tx.id}}
}

func (tx *transaction) saw(token *spannerpb.MultiplexedSessionPrecommitToken) {
	if token != nil && (tx.token == nil || token.SeqNum > tx.token.SeqNum) {
		tx.token = token
	}
}

func (tx *transaction) execute(s statement) error {
	tx.seqno++
	params, types := s.bind()
	reply, err := tx.w.data.ExecuteSql(tx.w.ctx, &spannerpb.ExecuteSqlRequest{Session: tx.session, Transaction: tx.selector(), Sql: s.sql, Params: params, ParamTypes: types, Seqno: tx.seqno})
	tx.saw(reply.GetPrecommitToken())
	return err
}

func (tx *transaction) query(sql string) ([][]cell, error) {
	reply, err := tx.w.data.ExecuteSql(tx.w.ctx, &spannerpb.ExecuteSqlRequest{Session: tx.session, Transaction: tx.selector(), Sql: sql})
	if err != nil {
		return nil, err
	}
	tx.saw(reply.GetPrecommitToken())
	return cellsOf(reply.Rows), nil
}

func (tx *transaction) commit() (at time.Time, err error) {
	req := &spannerpb.CommitRequest{Session: tx.session, Transaction: &spannerpb.CommitRequest_TransactionId{TransactionId: tx.id}, PrecommitToken: tx.token}
	for {
		reply, err := tx.w.data.Commit(tx.w.ctx, req)
		if err != nil {
			return at, err
		}
		if token := reply.GetPrecommitToken(); token != nil {
			req.PrecommitToken = token
			continue
		}
		return reply.CommitTimestamp.AsTime(), nil
	}
}

func (tx *transaction) rollback() {
	_, _ = tx.w.data.Rollback(tx.w.ctx, &spannerpb.RollbackRequest{Session: tx.session, TransactionId: tx.id})
}

// transact begins a transaction that stays open for some steps, or does the next step of an open one.
func (w *world) transact() {
	if len(w.open) == 0 || len(w.open) < 3 && w.rng.IntN(3) == 0 {
		w.openOne()
		return
	}
	tx := pick(w.rng, w.open)
	switch n := w.rng.IntN(6); {
	case n < 2:
		tx.read()
	case n < 4:
		tx.write()
	default:
		tx.end()
	}
}

func (w *world) openOne() {
	o := readWrite()
	mode := pick(w.rng, []string{pessimistic, optimistic, optimistic, repeatable})
	switch mode {
	case pessimistic:
		o.GetReadWrite().ReadLockMode = spannerpb.TransactionOptions_ReadWrite_PESSIMISTIC
	case optimistic:
		o.GetReadWrite().ReadLockMode = spannerpb.TransactionOptions_ReadWrite_OPTIMISTIC
	case repeatable:
		o.IsolationLevel = spannerpb.TransactionOptions_REPEATABLE_READ
	}
	tx, err := w.begin(o)
	if err != nil {
		w.fail("begin: %v", err)
		return
	}
	tx.mode = mode
	w.note("T%x begins: %s", tx.id, mode)
	w.open = append(w.open, tx)
	tx.read()
}

// view returns the model that the transaction must see. If the transaction reads with locks, this is the newest state,
// and otherwise the state of its snapshot. To that state, view applies the transaction's own first operations. The
// parameter operations is their number.
func (tx *transaction) view(operations int) (*model, error) {
	m := tx.base
	if tx.mode == pessimistic {
		m = tx.w.now().m
	}
	return tx.on(m, operations)
}

// on returns a copy of a model after the transaction's first operations. The parameter operations is their number.
func (tx *transaction) on(m *model, operations int) (*model, error) {
	m = m.clone()
	for _, o := range tx.operations[:operations] {
		if err := m.apply(o, of(tx.mode, dml)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// first takes the present state as the transaction's snapshot, if the transaction has no snapshot yet.
func (tx *transaction) first() {
	if tx.base == nil {
		tx.base = tx.w.now().m
	}
}

func (tx *transaction) read() {
	w := tx.w
	r := w.anyQuery(w.now().m)
	tx.first()
	m, err := tx.view(len(tx.operations))
	if err != nil {
		tx.abandon("", err)
		return
	}
	want := r.want(m)
	rows, err := tx.query(r.what)
	w.note("T%x: %s: %v", tx.id, r.what, err)
	if err != nil {
		tx.abandon(r.what, err)
		return
	}
	got := lines(rows)
	if !slices.Equal(sorted(got), sorted(want)) {
		w.fail("%s, T%x: %s:\n%s\nand had to be\n%s", tx.mode, tx.id, r.what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	tx.reads = append(tx.reads, transactionRead{r.what, r.want, sorted(got), len(tx.operations)})
	features := r.features(m).and(tx.mode)
	if tx.mode != pessimistic && tx.base != w.now().m {
		features = features.and(staleRead)
	}
	w.met.count(features)
}

func (tx *transaction) write() {
	w := tx.w
	o := w.operation(w.now().m, insert, insertOrUpdate, updateWhere, updateWhere, removeWhere)
	if o == nil {
		return
	}
	if t := w.now().m.table(o.table); o.rows != nil {
		o.rows = o.rows[:1]
		for i, c := range o.rows[0] {
			if c == commitTime {
				o.rows[0][i] = cell{}
			}
		}
		if slices.ContainsFunc(t.columns, func(c *column) bool { return c.sequence }) {
			return
		}
	}
	tx.first()
	w.note("T%x: %s", tx.id, o)
	before, _ := tx.view(len(tx.operations))
	err := tx.execute(w.statements([]*operation{o})[0])
	var refused error
	if before != nil {
		refused = before.apply(o, of(tx.mode, dml))
	}
	switch {
	case err != nil:
		tx.refused(o.String(), err, refused)
	case refused != nil && tx.mode == pessimistic:
		w.fail("T%x: %s succeeded, and had to be refused: %v", tx.id, o, refused)
		tx.drop()
	case refused != nil:
		// The snapshot of the transaction does not allow the operation. But the transaction takes no locks, so its
		// statement may succeed. Either the writes of other transactions have made the operation valid, or the commit
		// would fail. The test does not find out which, and drops the transaction.
		tx.drop()
	default:
		tx.operations = append(tx.operations, o)
	}
}

// refused ends the transaction after a statement has failed with err. The argument refused is the error that the model
// expects, or nil.
func (tx *transaction) refused(what string, err, refused error) {
	if refused == nil {
		tx.abandon(what, err)
		return
	}
	if code := status.Code(err); code == codes.Internal || code == codes.Unknown {
		tx.w.fail("T%x: %s: %v", tx.id, what, err)
	}
	tx.drop()
}

// abandon ends the transaction after an error that the model does not predict. Such an error is allowed if the server
// has aborted the transaction, or if the database has changed since the transaction's snapshot.
func (tx *transaction) abandon(what string, err error) {
	w := tx.w
	w.note("T%x: %v", tx.id, err)
	code := status.Code(err)
	moved := tx.base != nil && tx.base != w.now().m // others have committed since, and their writes may be the reason
	if code != codes.Aborted && (!moved || code == codes.Internal || code == codes.Unknown) {
		w.fail("%s, T%x: %s: %v", tx.mode, tx.id, what, err)
	}
	w.counts["transactions aborted"]++
	tx.drop()
}

func (tx *transaction) drop() {
	tx.rollback()
	tx.w.open = slices.DeleteFunc(tx.w.open, func(o *transaction) bool { return o == tx })
}

// end commits the transaction and compares the outcome with the model. In the model, committed transactions run one
// after the other.
func (tx *transaction) end() {
	w := tx.w
	now := w.now().m
	w.note("T%x commits", tx.id)
	at, err := tx.commit()
	w.open = slices.DeleteFunc(w.open, func(o *transaction) bool { return o == tx })
	after, refused := tx.effect(now)
	if err != nil {
		w.note("-- %v", err)
		if refused == nil {
			tx.abandon("commit", err)
		}
		return
	}
	w.counts["transactions committed"]++
	if refused != nil {
		w.fail("%s, T%x committed, and had to be refused: %v\n%s", tx.mode, tx.id, refused, text(tx.operations))
		return
	}
	if len(tx.operations) == 0 {
		return
	}
	w.became(after, at)
}

// effect returns the model after the commit, or the reason why the commit must fail.
func (tx *transaction) effect(now *model) (*model, error) {
	if len(tx.operations) == 0 {
		return now, nil
	}
	saw := now
	if tx.base != nil && tx.mode != pessimistic {
		saw = tx.base
	}
	if wrote, err := tx.on(saw, len(tx.operations)); err == nil && sameRows(saw, wrote) {
		return now, nil // it has changed no rows
	}
	if tx.mode == repeatable {
		return tx.effectOnSnapshot(now)
	}
	for _, r := range tx.reads {
		m, err := tx.on(now, r.before)
		if err != nil {
			return nil, err
		}
		if want := sorted(r.want(m)); !slices.Equal(r.got, want) {
			return nil, refusal("what it has read has changed: " + r.sql + "\nwas\n" + strings.Join(r.got, "\n") + "\nand is\n" + strings.Join(want, "\n"))
		}
	}
	after, err := tx.on(now, len(tx.operations))
	if err == nil {
		err = after.broken(true)
	}
	return after, err
}

// effectOnSnapshot returns the effect of a transaction whose writes depend on its snapshot. It returns an error if
// another transaction has written the same rows since the snapshot.
func (tx *transaction) effectOnSnapshot(now *model) (*model, error) {
	wrote, err := tx.on(tx.base, len(tx.operations))
	if err != nil {
		return nil, err
	}
	after := now.clone()
	for _, t := range after.tables {
		was, is := tx.base.table(t.name), wrote.table(t.name)
		for _, key := range slices.Compact(slices.Sorted(slices.Values(append(sortedKeys(was.rows), sortedKeys(is.rows)...)))) {
			if was.rows[key] == is.rows[key] {
				continue
			}
			if t.rows[key] != was.rows[key] {
				return nil, refusal("another transaction has written " + t.name + " " + key)
			}
			if delete(t.rows, key); is.rows[key] != nil {
				t.rows[key] = is.rows[key]
			}
		}
	}
	return after, after.broken(true)
}

// endAll ends all open transactions.
func (w *world) endAll() {
	for len(w.open) > 0 {
		if w.open[0].end(); w.failed {
			return
		}
	}
}
