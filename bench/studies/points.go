package studies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// Points compares point reads, by READ and by SQL, with those of two other servers: one that does nothing but gRPC,
// and one that keeps no statistics. It compares commits of one row with an fsync on this machine. It needs the
// embedded server, because it reads the server's memory, kills the server at the end, and starts it again. With a
// control server (Settings.Control), it compares only the target with the control server.
func Points() harness.Benchmark {
	p := new(points)
	return harness.Benchmark{Name: "points", About: "Point reads beside a server that does nothing but gRPC, and one without statistics; commits beside the fsync of this machine.", Check: bench.Settings.CheckEmbedded, Prepare: p.prepare, After: p.after, Close: p.close, Figures: func(bench.Settings) []report.Figure { return pointsFigures }}
}

// points holds the servers and the file that Points has opened.
type points struct {
	ceiling *harness.Server
	off     *harness.ControlServer // keeps no statistics
	file    *os.File               // the file that the method sync writes
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

var pointsFigures = []report.Figure{
	{Name: "READ / ceiling server CPU, one row of 1 kB", Metric: report.ServerCPU, Left: report.RefTo(pointRead, viaREAD), Right: report.RefTo(pointRead, ceilingREAD), Target: 1.35},
	{Name: "SQL / READ server CPU, one row of 1 kB", Metric: report.ServerCPU, Left: report.RefTo(pointRead, viaSQL), Right: report.RefTo(pointRead, viaREAD), Target: 1.10},
	{Name: "statistics on / off, READ CPU", Metric: report.ServerCPU, Left: report.RefTo(pointRead, viaREAD), Right: report.RefTo(pointRead, offREAD), Target: 1.03},
	{Name: "statistics on / off, SQL CPU", Metric: report.ServerCPU, Left: report.RefTo(pointRead, viaSQL), Right: report.RefTo(pointRead, offSQL), Target: 1.03},
	{Name: "commit of one row - fsync", Metric: report.LatencyAdded, Left: report.RefTo(oneCommit, oneClient), Right: report.RefTo(oneCommit, plainFsync), Target: 400},
	{Name: "commits per second, 64 clients / 1 client", Metric: report.Throughput, Left: report.RefTo(oneCommit, manyClients), Right: report.RefTo(oneCommit, oneClient), Target: 12, AtLeast: true},
}

const pointsTable = "Points"

// PointsColumns lists the columns of the points table: an id and ten strings of PointsFieldLength characters, so that
// a row has 1 kB.
var PointsColumns = []string{"Id", "F0", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9"}

const PointsFieldLength = 100

func pointsDDL() string {
	var b strings.Builder
	b.WriteString("CREATE TABLE IF NOT EXISTS " + pointsTable + " (Id INT64 NOT NULL")
	for _, c := range PointsColumns[1:] {
		fmt.Fprintf(&b, ", %s STRING(%d)", c, PointsFieldLength)
	}
	b.WriteString(") PRIMARY KEY (Id)")
	return b.String()
}

func pointsRow(id int64) []*spanner.Mutation {
	values := make([]any, len(PointsColumns))
	values[0] = id
	for i, c := range PointsColumns[1:] {
		values[i+1] = harness.Letters(id, c, PointsFieldLength)
	}
	return []*spanner.Mutation{spanner.InsertOrUpdate(pointsTable, PointsColumns, values)}
}

// idleAfterLoad is how long the run waits for the server to finish flushes and compactions before it reads the
// server's memory.
const idleAfterLoad = 10 * time.Second

func (p *points) prepare(ctx context.Context, r *harness.Runner) ([]harness.Experiment, error) {
	if err := r.Target.CreateTables(ctx, pointsDDL()); err != nil {
		return nil, err
	}
	took, err := r.Fill(ctx, pointsTable, r.Rows, pointsRow)
	if err != nil {
		return nil, err
	}
	r.Fact("loaded %d rows of 1 kB in %.1f s (%.0f rows/s)", r.Rows, took.Seconds(), float64(r.Rows)/took.Seconds())
	select {
	case <-time.After(min(idleAfterLoad, r.Each)): // a small run leaves the server little to flush and compact
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if memory, err := r.Target.Process.PID().Resident(); err == nil {
		r.Fact("resident after load, idle: %d MiB (target <= 700 at 1,000,000 rows)", memory>>20)
	}
	if r.Control == "" {
		if err := p.startOthers(ctx, r); err != nil {
			return nil, err
		}
	}
	if p.file, err = os.Create(filepath.Join(r.Target.Root, "fsync")); err != nil {
		return nil, err
	}
	return []harness.Experiment{p.reads(r), p.commits(r)}, nil
}

// startOthers starts the ceiling and the server that keeps no statistics.
func (p *points) startOthers(ctx context.Context, r *harness.Runner) (err error) {
	if p.off, err = r.Target.StartControl(ctx, "", "--statistics=false"); err != nil {
		return err
	}
	p.ceiling = &harness.Server{Options: r.Target.Options}
	if err := p.ceiling.Start(ctx, "", "bench", "ceiling"); err != nil {
		return err
	}
	return p.ceiling.Connect(ctx, r.Target.DatabaseName)
}

func (p *points) reads(r *harness.Runner) harness.Experiment {
	read := harness.Path{Name: viaREAD, Method: "StreamingRead", Operation: pointByREAD(int64(r.Rows))}
	query := harness.Path{Name: viaSQL, Method: "ExecuteStreamingSql", Operation: pointBySQL(int64(r.Rows))}
	e := harness.Experiment{Name: pointRead, Title: "one row of 1 kB by its key", Paths: []harness.Path{read, query}}
	if p.off == nil { // the run compares only with the control server
		return e
	}
	e.Paths = []harness.Path{
		read.As(ceilingREAD, p.ceiling), read, read.As(offREAD, &p.off.Server),
		query.As(ceilingSQL, p.ceiling), query, query.As(offSQL, &p.off.Server),
	}
	e.Pairs = [][2]string{{viaREAD, ceilingREAD}, {viaSQL, ceilingSQL}, {viaSQL, viaREAD}, {viaREAD, offREAD}, {viaSQL, offSQL}}
	return e
}

func pointByREAD(rows int64) harness.Operation {
	return func(ctx context.Context, c harness.Call) (int, error) {
		_, err := c.Client.Single().ReadRow(ctx, pointsTable, spanner.Key{c.Int64N(rows)}, PointsColumns)
		return 1, err
	}
}

func pointBySQL(rows int64) harness.Operation {
	sql := "SELECT " + strings.Join(PointsColumns, ", ") + " FROM " + pointsTable + " WHERE Id = @id"
	return func(ctx context.Context, c harness.Call) (int, error) {
		return harness.ExpectRows(c.Client.Single().Query(ctx, spanner.Statement{SQL: sql, Params: map[string]any{"id": c.Int64N(rows)}}), 1)
	}
}

// manyCommitters is the number of clients in an experiment with concurrent commits, which should share fsyncs.
const manyCommitters = 64

func (p *points) commits(r *harness.Runner) harness.Experiment {
	commit := func(ctx context.Context, c harness.Call) (int, error) {
		_, err := c.Client.Apply(ctx, pointsRow(c.Int64N(int64(r.Rows))), spanner.ApplyAtLeastOnce())
		return 1, err
	}
	return harness.Experiment{
		Name: oneCommit, Title: "commit of one row of 1 kB",
		Paths: []harness.Path{
			{Name: plainFsync, Operation: p.sync, Clients: 1, Local: true},
			{Name: oneClient, Method: "Commit", Operation: commit, Clients: 1},
			{Name: manyClients, Method: "Commit", Operation: commit, Clients: manyCommitters},
		},
		Pairs: [][2]string{{oneClient, plainFsync}, {manyClients, oneClient}},
	}
}

// sync appends 300 bytes to a file and syncs the file. Its latency is the least that a durable commit can take on this
// machine.
func (p *points) sync(context.Context, harness.Call) (int, error) {
	if _, err := p.file.Write(make([]byte, 300)); err != nil {
		return 0, err
	}
	return 0, p.file.Sync()
}

// after runs when all experiments of the benchmark have been measured. It kills the server, as a crash would, starts
// the server again, and reports how long it takes until the server is ready.
func (p *points) after(ctx context.Context, r *harness.Runner) error {
	r.Target.Process.Kill()
	size, err := harness.DiskSize(r.Target.Data())
	if err != nil {
		return err
	}
	if err := r.Target.StartServer(ctx); err != nil {
		return err
	}
	r.Fact("start after kill -9 on %.2f GB: ready after %.3f s (target <= 0.5 at 1 GB)", float64(size)/1e9, r.Target.Process.Ready.Seconds())
	return r.Target.Connect(ctx)
}

// close stops the servers that startOthers has started and removes the file that the method sync has written.
func (p *points) close() error {
	var errs []error
	if p.ceiling != nil {
		errs = append(errs, p.ceiling.Stop())
	}
	if p.off != nil {
		errs = append(errs, p.off.Close())
	}
	if p.file != nil {
		errs = append(errs, p.file.Close(), os.Remove(p.file.Name()))
	}
	return errors.Join(errs...)
}
