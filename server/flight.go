package server

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/server/flight"
	"github.com/crowfoot-db/crowfoot/server/result"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/sql/analyze"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// A flightAPI answers the requests of Arrow Flight SQL, which package flight has translated to requests of Spanner's
// API. All requests for one database and role run in one multiplexed session.
type flightAPI struct {
	*service
	mu    sync.Mutex
	names map[flightSession]string // names of the sessions
}

// flightSession is the key of a session in flightAPI.names. All requests for the same database and role use the same
// session.
type flightSession struct{ database, role string }

func newFlightAPI(s *service) *flightAPI {
	return &flightAPI{service: s, names: map[flightSession]string{}}
}

// flightLabel is the label that marks the sessions of Flight SQL.
const flightLabel = "flight-sql"

// flightSessionAge is the greatest age at which a session is used for new tickets. A ticket becomes useless when the
// versions of the data that it reads are deleted, which is at most 7 days after the ticket was made (the longest
// version_retention_period). A session lives for multiplexedSessionLife, 28 days, so it outlives every version that its
// tickets can read.
const flightSessionAge = 7 * 24 * time.Hour

// Session implements flight.API.
func (a *flightAPI) Session(name, role string) (string, error) {
	db, err := a.sessions.registry.Database(name)
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := flightSession{name, role}
	if ses, err := a.sessions.find(a.names[key]); err == nil && a.isFresh(ses) {
		return ses.name, nil
	}
	ses := a.existing(db, role)
	if ses == nil {
		list, err := a.sessions.create(db, &spannerpb.Session{Multiplexed: true, CreatorRole: role, Labels: map[string]string{flightLabel: "true"}}, 1)
		if err != nil {
			return "", err
		}
		ses = list[0]
	}
	a.names[key] = ses.name
	return ses.name, nil
}

func (a *flightAPI) isFresh(ses *session) bool {
	return a.clock().Sub(ses.stored.Created) < flightSessionAge
}

// existing returns the newest Flight SQL session of the database and role that can be used for new tickets, or nil. It
// also finds sessions that an earlier process of the server created, although a.names does not have them yet.
func (a *flightAPI) existing(db *database.Database, role string) (newest *session) {
	a.sessions.each(db.Name(), func(ses *session) {
		_, ours := ses.stored.Labels[flightLabel]
		if ours && ses.stored.Multiplexed && ses.stored.Role == role && a.isFresh(ses) && (newest == nil || ses.stored.Created.After(newest.stored.Created)) {
			newest = ses
		}
	})
	return newest
}

// Describe implements flight.API.
func (a *flightAPI) Describe(ctx context.Context, req *spannerpb.ExecuteSqlRequest, c *rpc.Call) (*flight.Description, error) {
	ses, err := a.sessions.find(req.Session)
	if err != nil {
		return nil, err
	}
	return a.describe(ctx, ses, req, c, nil)
}

// Announce implements flight.API.
func (a *flightAPI) Announce(ctx context.Context, req *spannerpb.ExecuteSqlRequest, c *rpc.Call) (*flight.Description, error) {
	q, err := a.checkQuery(req, c)
	if err != nil {
		return nil, err
	}
	if req.QueryMode == spannerpb.ExecuteSqlRequest_PLAN {
		return a.describe(ctx, q.session, req, c, nil)
	}
	tag := req.RequestOptions.GetRequestTag()
	d, err := a.describe(ctx, q.session, req, c, func(sc *scope, stmt *prepare.Statement) error {
		if err := checkStatement(sc, stmt); err != nil {
			return err
		}
		if _, err := q.text.bind(stmt); err != nil {
			return err
		}
		c.Cost.AnnounceStatement(stmt, tag, q.kind(sc))
		return nil
	})
	if err != nil {
		c.Cost.StartRefusedStatement(req.Sql, tag, q.kind(&scope{}))
	}
	return d, err
}

// describe returns the description of a statement. If the statement is a query and the argument query is not nil,
// describe also calls the argument query, with the prepared statement and the scope in which to run it.
func (a *flightAPI) describe(ctx context.Context, ses *session, req *spannerpb.ExecuteSqlRequest, c *rpc.Call, query func(*scope, *prepare.Statement) error) (d *flight.Description, err error) {
	selector := req.Transaction
	if selector == nil {
		strong := &spannerpb.TransactionOptions_ReadOnly{TimestampBound: &spannerpb.TransactionOptions_ReadOnly_Strong{Strong: true}}
		selector = &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Begin{
			Begin: &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_ReadOnly_{ReadOnly: strong}},
		}}
	}
	sc, err := a.openScope(ctx, scopeRequest{session: ses, selector: selector})
	defer func() { sc.close(err) }()
	if err != nil {
		return nil, err
	}
	sc.record(&c.Cost)
	if analyze.KindOf(req.Sql) == analyze.OtherKind && ses.db.CheckSyntax([]string{req.Sql}) == nil {
		return &flight.Description{IsDDL: true}, nil
	}
	text := sqlText{sql: req.Sql, params: req.Params, types: req.ParamTypes}
	stmt, err := text.prepare(ctx, &sc, prepare.Options{AllowUnbound: req.QueryMode == spannerpb.ExecuteSqlRequest_PLAN})
	if err != nil {
		return nil, err
	}
	if stmt.ChangeStream != nil {
		return nil, usererror.FlightChangeStream()
	}
	if query != nil && !stmt.Plan.IsDML() {
		if err := query(&sc, stmt); err != nil {
			return nil, err
		}
	}
	d = &flight.Description{Columns: stmt.Columns, IsDML: stmt.Plan.IsDML(), Transaction: sc.reply.ID}
	d.IsPartitionable = !d.IsDML && stmt.Procedure == "" && stmt.Plan.Driving() != nil && !stmt.PointReads && stmt.Plan.Partitionable() == nil
	_, names := analyze.Parameters(req.Sql)
	for _, name := range names {
		if i := slices.IndexFunc(stmt.Undeclared, func(p plan.Param) bool { return strings.EqualFold(p.Name, name) }); i >= 0 {
			d.Parameters = append(d.Parameters, stmt.Undeclared[i])
		}
	}
	if sc.snapshot != nil {
		d.Expires = sc.reply.At.Time().Add(sc.session.db.Retention())
	}
	return d, nil
}

// Query implements flight.API.
func (a *flightAPI) Query(ctx context.Context, req *spannerpb.ExecuteSqlRequest, c *rpc.Call, answer func(*result.Result) error) error {
	q, err := a.checkQuery(req, c)
	if err != nil {
		return err
	}
	q.streaming = true
	return a.withQuery(ctx, q, answer)
}

// Fetch implements flight.API.
func (a *flightAPI) Fetch(ctx context.Context, f flight.Fetch, c *rpc.Call, answer func(*result.Result) error) error {
	c.Cost.Continue()
	q, err := a.checkQuery(f.ExecuteSqlRequest, c)
	if err != nil {
		return err
	}
	q.streaming, q.divided = true, f.Divided
	return a.withQuery(ctx, q, answer)
}

// AnnounceRead implements flight.API.
func (a *flightAPI) AnnounceRead(ctx context.Context, req *spannerpb.ReadRequest, c *rpc.Call) (columns []plan.Column, err error) {
	r, err := a.checkRead(req)
	if err != nil {
		return nil, err
	}
	sc, err := a.openScope(ctx, scopeRequest{session: r.session, selector: req.Transaction})
	defer func() { sc.close(err) }()
	if err != nil {
		return nil, err
	}
	sc.record(&c.Cost)
	read, projection, err := a.plannedRead(ctx, &sc, r)
	if err != nil {
		return nil, err
	}
	c.Cost.AnnounceRead(projection, req.RequestOptions.GetRequestTag(), r.partition != nil)
	return readColumns(nil, read.Projection), nil
}

// FetchRead implements flight.API.
func (a *flightAPI) FetchRead(ctx context.Context, req *spannerpb.ReadRequest, c *rpc.Call, answer func(*result.Result) error) error {
	c.Cost.Continue()
	r, err := a.checkRead(req)
	if err != nil {
		return err
	}
	return a.withRead(ctx, r, c, answer)
}

// PartitionQuery implements flight.API.
func (a *flightAPI) PartitionQuery(ctx context.Context, req *spannerpb.PartitionQueryRequest, c *rpc.Call) (*spannerpb.PartitionResponse, error) {
	return a.partitionQuery(ctx, req, c)
}

// ExecuteBatchDML implements flight.API.
func (a *flightAPI) ExecuteBatchDML(ctx context.Context, req *spannerpb.ExecuteBatchDmlRequest, c *rpc.Call) (*spannerpb.ExecuteBatchDmlResponse, error) {
	return a.executeBatchDML(ctx, req, c)
}

// BeginTransaction implements flight.API.
func (a *flightAPI) BeginTransaction(ctx context.Context, req *spannerpb.BeginTransactionRequest, c *rpc.Call) (*spannerpb.Transaction, error) {
	return a.begin(ctx, req, c)
}

// Commit implements flight.API.
func (a *flightAPI) Commit(ctx context.Context, req *spannerpb.CommitRequest, c *rpc.Call) (*spannerpb.CommitResponse, error) {
	return a.commit(ctx, req, c)
}

// Load implements flight.API.
func (a *flightAPI) Load(ctx context.Context, l *flight.Load, c *rpc.Call) error {
	ses, err := a.sessions.find(l.Session)
	if err != nil {
		return err
	}
	ses.begin()
	defer ses.end()
	c.Cost.AddMutations(int64(l.Rows))
	opts := a.transactions.options(ses, &spannerpb.TransactionOptions{}, "")
	_, err = a.commitOnce(ctx, ses, opts, int64(l.Rows), func(catalog *schema.Catalog) ([]table.Mutation, error) {
		m, err := loaded(catalog, l)
		return []table.Mutation{m}, err
	}, 0, c)
	return err
}

// loaded returns the mutation that writes the rows of l. In l, the rows are given column by column.
func loaded(catalog *schema.Catalog, l *flight.Load) (m table.Mutation, err error) {
	t, columns, err := columnsNamed(catalog, l.Table, l.Columns)
	if err != nil {
		return m, err
	}
	m = table.Mutation{Op: l.Op, Table: t, Columns: columns, Sources: make([]value.Source, len(columns)), Count: l.Rows}
	for i, col := range columns {
		if m.Sources[i], err = l.Source(i, col.Type); err != nil {
			return m, err
		}
	}
	return m, nil
}

// LoadLimit implements flight.API.
func (a *flightAPI) LoadLimit(l *flight.Load) (rows int, err error) {
	ses, err := a.sessions.find(l.Session)
	if err != nil {
		return 0, err
	}
	catalog := ses.db.Catalog()
	t, columns, err := columnsNamed(catalog, l.Table, l.Columns)
	if err != nil {
		return 0, err
	}
	tables, err := ses.db.Tables(catalog)
	if err != nil {
		return 0, err
	}
	n, err := table.RowMutations(tables, t, l.Op, columns)
	if err != nil {
		return 0, err
	}
	return max(1, int(table.MaxMutations/n)), nil
}

// Rollback implements flight.API.
func (a *flightAPI) Rollback(ctx context.Context, req *spannerpb.RollbackRequest) error {
	_, err := a.rollback(ctx, req)
	return err
}

// TransactionState implements flight.API.
func (a *flightAPI) TransactionState(session string, id []byte) flight.TransactionState {
	ses, err := a.sessions.find(session)
	if err != nil {
		return flight.TransactionLost
	}
	t, err := a.transactions.find(ses, id)
	if err != nil {
		return flight.TransactionLost
	}
	t.settle()
	switch open, outcome := t.current(); {
	case open != nil:
		return flight.TransactionOpen
	case t.known() != nil || outcome == errRolledBack:
		return flight.TransactionEnded
	}
	return flight.TransactionLost
}

// UpdateSchema implements flight.API.
func (a *flightAPI) UpdateSchema(ctx context.Context, session string, statements ...string) error {
	ses, err := a.sessions.find(session)
	if err != nil {
		return err
	}
	if role := ses.stored.Role; role != "" {
		return usererror.RoleSchemaChange(role)
	}
	if err := ses.db.CheckSchema(ctx, statements); err != nil {
		return err
	}
	return ses.db.UpdateSchema(ctx, statements, nil)
}
