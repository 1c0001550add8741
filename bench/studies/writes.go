package studies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/google/uuid"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// Writes repeats the study that compares DML with mutations. Each commit inserts a fixed number of rows. The path with
// mutations sends a single Commit, as in the study. Another path uses the client's default, which adds a
// BeginTransaction as protection against replay.
//
// Without Settings.Study there are further paths: batch DML, one statement with many rows, THEN RETURN, the field
// last_statement, and BatchWrite. Keys are random UUIDs in a table that already has rows. The table stays in the
// database.
func Writes() harness.Benchmark {
	return harness.Benchmark{Name: "writes", About: writesAbout, Study: &studyOfWrites, Check: bench.Settings.CheckWrites, Prepare: prepareWrites, Figures: writesFigures}
}

const writesAbout = "Compared is how long the same inserts take from the client's call to the end of the commit, by DML and by mutations: lower is better."

const (
	viaMutation  = "mutation"
	viaProtected = "mutation, replay-protected"
	viaDML       = "DML"
	viaBatchDML  = "batch DML"
)

// writesFigures returns the published figures and Crowfoot's targets for the numbers of rows per commit in the
// settings.
func writesFigures(s bench.Settings) []report.Figure {
	list := slices.Clone(allWritesFigures)
	for i := range list {
		if s.RTT > 0 && list[i].Metric == report.MeanLatency {
			// With an added round-trip time, the ratio depends mainly on the number of round trips, so there is no
			// target.
			list[i].Target = 0
		}
	}
	return slices.DeleteFunc(list, func(f report.Figure) bool {
		if f.Left.Experiment == sequenceKeys {
			return s.Study
		}
		size := 1
		if f.Left.Experiment == harness.RowsPerCommit(bench.StudyBatch) {
			size = bench.StudyBatch
		}
		return !slices.Contains(s.Batches, size) || s.Study && f.Left.Path == viaBatchDML
	})
}

const meansBasis = "study: mean transaction latency at the client, Cloud Spanner over a network; ours: likewise, on one machine"

var (
	oneRow  = harness.RowsPerCommit(1)
	fourRow = harness.RowsPerCommit(bench.StudyBatch)
)

var allWritesFigures = []report.Figure{
	{Name: "DML / mutation, 1 row per commit", Metric: report.MeanLatency, Left: report.RefTo(oneRow, viaDML), Right: report.RefTo(oneRow, viaMutation),
		StudyLeft: 12_300, StudyRight: 3_700, Basis: meansBasis, Summed: true, Target: 1.75},
	{Name: "DML / mutation, 4 rows by 4 statements", Metric: report.MeanLatency, Left: report.RefTo(fourRow, viaDML), Right: report.RefTo(fourRow, viaMutation),
		StudyLeft: 50_000, StudyRight: 4_600, Basis: meansBasis, Summed: true, Target: 3.0},
	{Name: "DML / replay-protected mutation, 1 row per commit", Metric: report.MeanLatency, Left: report.RefTo(oneRow, viaDML), Right: report.RefTo(oneRow, viaProtected),
		Target: 1.25},
	{Name: "DML / replay-protected mutation, 4 rows by 4 statements", Metric: report.MeanLatency, Left: report.RefTo(fourRow, viaDML), Right: report.RefTo(fourRow, viaProtected),
		Target: 2.0},
	{Name: "batch DML / replay-protected mutation, 4 rows", Metric: report.MeanLatency, Left: report.RefTo(fourRow, viaBatchDML), Right: report.RefTo(fourRow, viaProtected),
		Target: 1.3},
	{Name: "DML / replay-protected mutation, server CPU, 1 row per commit", Metric: report.ServerCPU, Left: report.RefTo(oneRow, viaDML), Right: report.RefTo(oneRow, viaProtected),
		Target: 1.5},
	{Name: "key from a sequence / from the client, mutation, server CPU", Metric: report.ServerCPU, Left: report.RefTo(sequenceKeys, viaMutation+keyOfSequence),
		Right: report.RefTo(sequenceKeys, viaMutation+keyOfClient), Target: 1.1},
	{Name: "key from a sequence / from the client, DML, server CPU", Metric: report.ServerCPU, Left: report.RefTo(sequenceKeys, viaDML+keyOfSequence),
		Right: report.RefTo(sequenceKeys, viaDML+keyOfClient), Target: 1.1},
}

const writesTable = "CrowfootBenchWrites"

var writesColumns = []string{"Id", "Name", "Visits"}

const insertWrites = "INSERT INTO " + writesTable + " (Id, Name, Visits) VALUES "

func prepareWrites(ctx context.Context, r *harness.Runner) ([]harness.Experiment, error) {
	if err := fillWrites(ctx, r); err != nil {
		return nil, err
	}
	var list []harness.Experiment
	for _, n := range r.Batches {
		e := harness.Experiment{Name: harness.RowsPerCommit(n), Title: report.Plural(n, "row") + " per commit", Size: n, Paths: writePaths(n)}
		if r.Study {
			e.Paths = studyPaths(n)
		}
		e.Pairs = harness.AgainstFirst(e.Paths)
		list = append(list, e)
	}
	if r.Study {
		return list, nil
	}
	keys, err := prepareSequenceKeys(ctx, r)
	return append(list, keys), err
}

// fillWrites creates the table and its first rows.
func fillWrites(ctx context.Context, r *harness.Runner) error {
	err := r.Target.CreateTables(ctx, `CREATE TABLE IF NOT EXISTS `+writesTable+` (
  Id STRING(36) NOT NULL, Name STRING(100), Visits INT64) PRIMARY KEY (Id)`)
	if err != nil {
		return err
	}
	full, err := r.Target.Filled(ctx, writesTable, r.Rows)
	if err != nil || full {
		return err
	}
	_, err = r.Fill(ctx, writesTable, r.Rows, func(int64) []*spanner.Mutation { return mutations(newUsers(1)) })
	return err
}

// user is a row to insert. Its key is not in the table yet.
type user struct {
	id     string
	name   string
	visits int64
}

func newUser() user {
	id := uuid.New()
	return user{id.String(), harness.Letters(int64(id.ID()), "Name", 100), int64(id.ID())}
}

func newUsers(n int) []user {
	list := make([]user, n)
	for i := range list {
		list[i] = newUser()
	}
	return list
}

func (u user) mutation() *spanner.Mutation {
	return spanner.Insert(writesTable, writesColumns, []any{u.id, u.name, u.visits})
}

func (u user) statement() spanner.Statement {
	return spanner.Statement{SQL: insertWrites + "(@id, @name, @visits)", Params: map[string]any{"id": u.id, "name": u.name, "visits": u.visits}}
}

// studyPaths returns the paths of studyOfWrites, which insert n rows in one commit: by mutations and by DML. It also
// returns a path that the study does not have: mutations with replay protection.
func studyPaths(n int) []harness.Path {
	return []harness.Path{
		{Name: viaMutation, Method: "Commit", Operation: applied(n, spanner.ApplyAtLeastOnce())},
		{Name: viaProtected, Method: "BeginTransaction, Commit", Operation: applied(n)},
		{Name: viaDML, Method: harness.Repeated("ExecuteSql", n) + ", Commit", Operation: dml(n, harness.SayNothing)},
	}
}

// writePaths returns all paths that insert n rows in one commit. The other paths are compared with the first one.
func writePaths(n int) []harness.Path {
	list := append(studyPaths(n),
		harness.Path{Name: "DML, last_statement", Method: harness.Repeated("ExecuteSql", n) + ", Commit", Operation: dml(n, harness.SayLast)},
		harness.Path{Name: "DML, THEN RETURN", Method: harness.Repeated("ExecuteStreamingSql", n) + ", Commit", Operation: thenReturn(n)},
		harness.Path{Name: "BatchWrite", Method: "BatchWrite", Operation: batchWrite(n)},
	)
	if n == 1 {
		return list
	}
	return append(list,
		harness.Path{Name: viaBatchDML, Method: "ExecuteBatchDml, Commit", Operation: batchDML(n, harness.SayNothing)},
		harness.Path{Name: "batch DML, last_statements", Method: "ExecuteBatchDml, Commit", Operation: batchDML(n, harness.SayLast)},
		harness.Path{Name: "DML of many rows", Method: "ExecuteSql, Commit", Operation: manyRowDML(n)},
	)
}

func mutations(users []user) []*spanner.Mutation {
	list := make([]*spanner.Mutation, len(users))
	for i, u := range users {
		list[i] = u.mutation()
	}
	return list
}

func applied(n int, options ...spanner.ApplyOption) harness.Operation {
	return func(ctx context.Context, c harness.Call) (int, error) {
		_, err := c.Client.Apply(ctx, mutations(newUsers(n)), append([]spanner.ApplyOption{spanner.TransactionTag(c.Tag)}, options...)...)
		return n, err
	}
}

// dml returns an operation that inserts n rows with one statement for each row.
func dml(n int, s harness.Saying) harness.Operation {
	return func(ctx context.Context, c harness.Call) (int, error) {
		users := newUsers(n)
		return n, harness.InTransaction(ctx, c, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			for i, u := range users {
				_, err := tx.UpdateWithOptions(ctx, u.statement(), spanner.QueryOptions{RequestTag: c.Tag, LastStatement: bool(s) && i == n-1})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func thenReturn(n int) harness.Operation {
	return func(ctx context.Context, c harness.Call) (int, error) {
		users := newUsers(n)
		return n, harness.InTransaction(ctx, c, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			for _, u := range users {
				st := u.statement()
				st.SQL += " THEN RETURN Id"
				if _, err := harness.ExpectRows(tx.QueryWithOptions(ctx, st, spanner.QueryOptions{RequestTag: c.Tag}), 1); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func batchDML(n int, s harness.Saying) harness.Operation {
	return func(ctx context.Context, c harness.Call) (int, error) {
		statements := make([]spanner.Statement, n)
		for i, u := range newUsers(n) {
			statements[i] = u.statement()
		}
		return n, harness.InTransaction(ctx, c, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.BatchUpdateWithOptions(ctx, statements, spanner.QueryOptions{RequestTag: c.Tag, LastStatement: bool(s)})
			return err
		})
	}
}

// manyRowDML returns an operation that inserts all n rows with one statement.
func manyRowDML(n int) harness.Operation {
	var values []string
	for i := range n {
		values = append(values, fmt.Sprintf("(@id%d, @name%d, @visits%d)", i, i, i))
	}
	sql := insertWrites + strings.Join(values, ", ")
	return func(ctx context.Context, c harness.Call) (int, error) {
		st := spanner.Statement{SQL: sql, Params: make(map[string]any, 3*n)}
		for i, u := range newUsers(n) {
			st.Params[fmt.Sprint("id", i)], st.Params[fmt.Sprint("name", i)], st.Params[fmt.Sprint("visits", i)] = u.id, u.name, u.visits
		}
		return n, harness.InTransaction(ctx, c, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.UpdateWithOptions(ctx, st, spanner.QueryOptions{RequestTag: c.Tag})
			return err
		})
	}
}

// batchWrite returns an operation that sends n rows as one group, which the server commits in one transaction.
func batchWrite(n int) harness.Operation {
	return func(ctx context.Context, c harness.Call) (rows int, err error) {
		groups := []*spanner.MutationGroup{{Mutations: mutations(newUsers(n))}}
		it := c.Client.BatchWriteWithOptions(ctx, groups, spanner.BatchWriteOptions{TransactionTag: c.Tag})
		err = it.Do(func(answer *spannerpb.BatchWriteResponse) error {
			rows += n
			return status.FromProto(answer.GetStatus()).Err()
		})
		if err == nil && rows == 0 {
			err = errors.New("BatchWrite answered nothing")
		}
		return rows, err
	}
}
