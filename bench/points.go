package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
)

// Points compares point reads, by READ and by SQL, with those of two other servers: one that does nothing but gRPC,
// and one that keeps no statistics. It compares commits of one row with this machine's fsync. It needs the embedded
// server, because it reads its memory, kills it at the end, and starts it again. With a control server
// (Settings.Control) it compares only the two servers.
func Points() Benchmark {
	p := new(points)
	return Benchmark{name: "points", about: "Point reads beside a server that does nothing but gRPC, and one without statistics; commits beside the fsync of this machine.", check: Settings.checkEmbedded, prepare: p.prepare, after: p.after, close: p.close, figures: func(Settings) []Figure { return pointsFigures }}
}

// points holds the servers and the file that Points has opened.
type points struct {
	ceiling *server
	off     *controlServer // keeps no statistics
	file    *os.File       // the file that sync syncs
}

const (
	pointRead   = "point_read"
	oneCommit   = "commit"
	ceilingREAD = "READ, ceiling"
	ceilingSQL  = "SQL, ceiling"
	offREAD     = "READ, no statistics"
	offSQL      = "SQL, no statistics"
	plainFsync  = "fsync of 300 bytes"
	oneClient   = "mutation, 1 client"
	manyClients = "mutation, 64 clients"
)

var pointsFigures = []Figure{
	{Name: "READ / ceiling server CPU, one row of 1 kB", Metric: ServerCPU, Left: RefTo(pointRead, viaREAD), Right: RefTo(pointRead, ceilingREAD), Target: 1.35},
	{Name: "SQL / READ server CPU, one row of 1 kB", Metric: ServerCPU, Left: RefTo(pointRead, viaSQL), Right: RefTo(pointRead, viaREAD), Target: 1.10},
	{Name: "statistics on / off, READ CPU", Metric: ServerCPU, Left: RefTo(pointRead, viaREAD), Right: RefTo(pointRead, offREAD), Target: 1.03},
	{Name: "statistics on / off, SQL CPU", Metric: ServerCPU, Left: RefTo(pointRead, viaSQL), Right: RefTo(pointRead, offSQL), Target: 1.03},
	{Name: "commit of one row - fsync", Metric: LatencyAdded, Left: RefTo(oneCommit, oneClient), Right: RefTo(oneCommit, plainFsync), Target: 400},
	{Name: "commits per second, 64 clients / 1 client", Metric: Throughput, Left: RefTo(oneCommit, manyClients), Right: RefTo(oneCommit, oneClient), Target: 12, AtLeast: true},
}

const pointsTable = "Points"

// pointsColumns are an id and ten strings of fieldLength: a row of 1 kB.
var pointsColumns = []string{"Id", "F0", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9"}

const fieldLength = 100

func pointsDDL() string {
	var b strings.Builder
	b.WriteString("CREATE TABLE IF NOT EXISTS " + pointsTable + " (Id INT64 NOT NULL")
	for _, c := range pointsColumns[1:] {
		fmt.Fprintf(&b, ", %s STRING(%d)", c, fieldLength)
	}
	b.WriteString(") PRIMARY KEY (Id)")
	return b.String()
}

func pointsRow(id int64) []*spanner.Mutation {
	values := make([]any, len(pointsColumns))
	values[0] = id
	for i, c := range pointsColumns[1:] {
		values[i+1] = letters(id, c, fieldLength)
	}
	return []*spanner.Mutation{spanner.InsertOrUpdate(pointsTable, pointsColumns, values)}
}

// idleAfterLoad is the time for the server to finish flushes and compactions before its memory is read.
const idleAfterLoad = 10 * time.Second

func (p *points) prepare(ctx context.Context, r *run) ([]experiment, error) {
	if err := r.target.createTables(ctx, pointsDDL()); err != nil {
		return nil, err
	}
	took, err := r.fill(ctx, pointsTable, r.Rows, pointsRow)
	if err != nil {
		return nil, err
	}
	r.fact("loaded %d rows of 1 kB in %.1f s (%.0f rows/s)", r.Rows, took.Seconds(), float64(r.Rows)/took.Seconds())
	select {
	case <-time.After(min(idleAfterLoad, r.Each)): // a small run has little to finish
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if memory, err := r.target.process.pid().resident(); err == nil {
		r.fact("resident after load, idle: %d MiB (target <= 700 at 1,000,000 rows)", memory>>20)
	}
	if r.Control == "" {
		if err := p.startOthers(ctx, r); err != nil {
			return nil, err
		}
	}
	if p.file, err = os.Create(filepath.Join(r.target.root, "fsync")); err != nil {
		return nil, err
	}
	return []experiment{p.reads(r), p.commits(r)}, nil
}

// startOthers starts the server without statistics and the ceiling.
func (p *points) startOthers(ctx context.Context, r *run) (err error) {
	if p.off, err = r.target.control(ctx, "", "--statistics=false"); err != nil {
		return err
	}
	p.ceiling = &server{options: r.target.options}
	if err := p.ceiling.start(ctx, "", "bench", "ceiling"); err != nil {
		return err
	}
	return p.ceiling.connect(ctx, r.target.database)
}

func (p *points) reads(r *run) experiment {
	read := path{name: viaREAD, method: "StreamingRead", op: pointByREAD(int64(r.Rows))}
	query := path{name: viaSQL, method: "ExecuteStreamingSql", op: pointBySQL(int64(r.Rows))}
	e := experiment{name: pointRead, title: "one row of 1 kB by its key", paths: []path{read, query}}
	if p.off == nil { // the run compares only with the control server
		return e
	}
	e.paths = []path{
		read.as(ceilingREAD, p.ceiling), read, read.as(offREAD, &p.off.server),
		query.as(ceilingSQL, p.ceiling), query, query.as(offSQL, &p.off.server),
	}
	e.pairs = [][2]string{{viaREAD, ceilingREAD}, {viaSQL, ceilingSQL}, {viaSQL, viaREAD}, {viaREAD, offREAD}, {viaSQL, offSQL}}
	return e
}

func pointByREAD(rows int64) operation {
	return func(ctx context.Context, c call) (int, error) {
		_, err := c.client.Single().ReadRow(ctx, pointsTable, spanner.Key{c.Int64N(rows)}, pointsColumns)
		return 1, err
	}
}

func pointBySQL(rows int64) operation {
	sql := "SELECT " + strings.Join(pointsColumns, ", ") + " FROM " + pointsTable + " WHERE Id = @id"
	return func(ctx context.Context, c call) (int, error) {
		return rowsOf(c.client.Single().Query(ctx, spanner.Statement{SQL: sql, Params: map[string]any{"id": c.Int64N(rows)}}), 1)
	}
}

// manyCommitters is the number of clients whose commits should share fsyncs.
const manyCommitters = 64

func (p *points) commits(r *run) experiment {
	commit := func(ctx context.Context, c call) (int, error) {
		_, err := c.client.Apply(ctx, pointsRow(c.Int64N(int64(r.Rows))), spanner.ApplyAtLeastOnce())
		return 1, err
	}
	return experiment{
		name: oneCommit, title: "commit of one row of 1 kB",
		paths: []path{
			{name: plainFsync, op: p.sync, clients: 1, local: true},
			{name: oneClient, method: "Commit", op: commit, clients: 1},
			{name: manyClients, method: "Commit", op: commit, clients: manyCommitters},
		},
		pairs: [][2]string{{oneClient, plainFsync}, {manyClients, oneClient}},
	}
}

// sync appends 300 bytes to a file and syncs it. Its latency is the cost of durability on this machine.
func (p *points) sync(context.Context, call) (int, error) {
	if _, err := p.file.Write(make([]byte, 300)); err != nil {
		return 0, err
	}
	return 0, p.file.Sync()
}

// after kills the server as a crash does, and reports the time until it is ready again.
func (p *points) after(ctx context.Context, r *run) error {
	r.target.process.kill()
	size, err := diskSize(r.target.data())
	if err != nil {
		return err
	}
	if err := r.target.spawn(ctx); err != nil {
		return err
	}
	r.fact("start after kill -9 on %.2f GB: ready after %.3f s (target <= 0.5 at 1 GB)", float64(size)/1e9, r.target.process.ready.Seconds())
	return r.target.connect(ctx)
}

// close stops the servers that startOthers has started and removes the file.
func (p *points) close() error {
	var errs []error
	if p.ceiling != nil {
		errs = append(errs, p.ceiling.stop())
	}
	if p.off != nil {
		errs = append(errs, p.off.close())
	}
	if p.file != nil {
		errs = append(errs, p.file.Close(), os.Remove(p.file.Name()))
	}
	return errors.Join(errs...)
}
