package bench

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
)

// Writes repeats the study of DML against mutations. It inserts rows, a fixed number per commit. A mutation here is a
// single Commit, as in the study. Another path is the client's default, which adds a BeginTransaction as protection
// against replay.
//
// Without Settings.Study there are further paths: batch DML, one statement with many rows, THEN RETURN, a last
// statement marked as such, and BatchWrite. Keys are random UUIDs in a table that already has rows. The table stays
// in the database.
func Writes() Benchmark {
	return Benchmark{name: "writes", about: writesAbout, study: &studyOfWrites, check: Settings.checkWrites, prepare: prepareWrites, figures: writesFigures}
}

const writesAbout = "Compared is how long the same inserts take from the client's call to the end of the commit, by DML and by mutations: lower is better."

const (
	viaMutation  = "mutation"
	viaProtected = "mutation, replay-protected"
	viaDML       = "DML"
	viaBatchDML  = "batch DML"
)

// writesFigures returns the published figures and Crowfoot's targets, for the numbers of rows in the settings.
func writesFigures(s Settings) []Figure {
	list := slices.Clone(allWritesFigures)
	for i := range list {
		if s.RTT > 0 && list[i].Metric == MeanLatency {
			list[i].Target = 0 // the ratio would depend on the round trips alone
		}
	}
	return slices.DeleteFunc(list, func(f Figure) bool {
		if f.Left.Experiment == sequenceKeys {
			return s.Study
		}
		size := 1
		if f.Left.Experiment == rowsPerCommit(studyBatch) {
			size = studyBatch
		}
		return !slices.Contains(s.Batches, size) || s.Study && f.Left.Path == viaBatchDML
	})
}

const meansBasis = "study: mean transaction latency at the client, Cloud Spanner over a network; ours: likewise, on one machine"

var (
	oneRow  = rowsPerCommit(1)
	fourRow = rowsPerCommit(studyBatch)
)

var allWritesFigures = []Figure{
	{Name: "DML / mutation, 1 row per commit", Metric: MeanLatency, Left: RefTo(oneRow, viaDML), Right: RefTo(oneRow, viaMutation),
		StudyLeft: 12_300, StudyRight: 3_700, Basis: meansBasis, summed: true, Target: 1.75},
	{Name: "DML / mutation, 4 rows by 4 statements", Metric: MeanLatency, Left: RefTo(fourRow, viaDML), Right: RefTo(fourRow, viaMutation),
		StudyLeft: 50_000, StudyRight: 4_600, Basis: meansBasis, summed: true, Target: 3.0},
	{Name: "DML / replay-protected mutation, 1 row per commit", Metric: MeanLatency, Left: RefTo(oneRow, viaDML), Right: RefTo(oneRow, viaProtected),
		Target: 1.25},
	{Name: "DML / replay-protected mutation, 4 rows by 4 statements", Metric: MeanLatency, Left: RefTo(fourRow, viaDML), Right: RefTo(fourRow, viaProtected),
		Target: 2.0},
	{Name: "batch DML / replay-protected mutation, 4 rows", Metric: MeanLatency, Left: RefTo(fourRow, viaBatchDML), Right: RefTo(fourRow, viaProtected),
		Target: 1.3},
	{Name: "DML / replay-protected mutation, server CPU, 1 row per commit", Metric: ServerCPU, Left: RefTo(oneRow, viaDML), Right: RefTo(oneRow, viaProtected),
		Target: 1.5},
	{Name: "key from a sequence / from the client, mutation, server CPU", Metric: ServerCPU, Left: RefTo(sequenceKeys, viaMutation+keyOfSequence),
		Right: RefTo(sequenceKeys, viaMutation+keyOfClient), Target: 1.1},
	{Name: "key from a sequence / from the client, DML, server CPU", Metric: ServerCPU, Left: RefTo(sequenceKeys, viaDML+keyOfSequence),
		Right: RefTo(sequenceKeys, viaDML+keyOfClient), Target: 1.1},
}

const writesTable = "CrowfootBenchWrites"

var writesColumns = []string{"Id", "Name", "Visits"}

const insertWrites = "INSERT INTO " + writesTable + " (Id, Name, Visits) VALUES "

func prepareWrites(ctx context.Context, r *run) ([]experiment, error) {
	if err := fillWrites(ctx, r); err != nil {
		return nil, err
	}
	var list []experiment
	for _, n := range r.Batches {
		e := experiment{name: rowsPerCommit(n), title: plural(n, "row") + " per commit", size: n, paths: writePaths(n)}
		if r.Study {
			e.paths = studyPaths(n)
		}
		e.pairs = against(e.paths)
		list = append(list, e)
	}
	if r.Study {
		return list, nil
	}
	keys, err := prepareSequenceKeys(ctx, r)
	return append(list, keys), err
}

// fillWrites creates the table and its first rows.
func fillWrites(ctx context.Context, r *run) error {
	err := r.target.createTables(ctx, `CREATE TABLE IF NOT EXISTS `+writesTable+` (
  Id STRING(36) NOT NULL, Name STRING(100), Visits INT64) PRIMARY KEY (Id)`)
	if err != nil {
		return err
	}
	full, err := r.target.filled(ctx, writesTable, r.Rows)
	if err != nil || full {
		return err
	}
	_, err = r.fill(ctx, writesTable, r.Rows, func(int64) []*spanner.Mutation { return mutations(newUsers(1)) })
	return err
}

// user is a new row. Its key is not in the table yet.
type user struct {
	id     string
	name   string
	visits int64
}

func newUser() user {
	id := uuid.New()
	return user{id.String(), letters(int64(id.ID()), "Name", 100), int64(id.ID())}
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

// studyPaths returns the study's paths, which insert n rows in one commit, and the mutation with replay protection.
func studyPaths(n int) []path {
	return []path{
		{name: viaMutation, method: "Commit", op: applied(n, spanner.ApplyAtLeastOnce())},
		{name: viaProtected, method: "BeginTransaction, Commit", op: applied(n)},
		{name: viaDML, method: repeated("ExecuteSql", n) + ", Commit", op: dml(n, sayNothing)},
	}
}

// writePaths returns all paths that insert n rows in one commit. The first is the one to which the others are
// compared.
func writePaths(n int) []path {
	list := append(studyPaths(n),
		path{name: "DML, last_statement", method: repeated("ExecuteSql", n) + ", Commit", op: dml(n, sayLast)},
		path{name: "DML, THEN RETURN", method: repeated("ExecuteStreamingSql", n) + ", Commit", op: thenReturn(n)},
		path{name: "BatchWrite", method: "BatchWrite", op: batchWrite(n)},
	)
	if n == 1 {
		return list
	}
	return append(list,
		path{name: viaBatchDML, method: "ExecuteBatchDml, Commit", op: batchDML(n, sayNothing)},
		path{name: "batch DML, last_statements", method: "ExecuteBatchDml, Commit", op: batchDML(n, sayLast)},
		path{name: "DML of many rows", method: "ExecuteSql, Commit", op: manyRowDML(n)},
	)
}

func mutations(users []user) []*spanner.Mutation {
	list := make([]*spanner.Mutation, len(users))
	for i, u := range users {
		list[i] = u.mutation()
	}
	return list
}

func applied(n int, options ...spanner.ApplyOption) operation {
	return func(ctx context.Context, c call) (int, error) {
		_, err := c.client.Apply(ctx, mutations(newUsers(n)), append([]spanner.ApplyOption{spanner.TransactionTag(c.tag)}, options...)...)
		return n, err
	}
}

// dml sends one statement for each row.
func dml(n int, s saying) operation {
	return func(ctx context.Context, c call) (int, error) {
		users := newUsers(n)
		return n, transaction(ctx, c, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			for i, u := range users {
				_, err := tx.UpdateWithOptions(ctx, u.statement(), spanner.QueryOptions{RequestTag: c.tag, LastStatement: bool(s) && i == n-1})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func thenReturn(n int) operation {
	return func(ctx context.Context, c call) (int, error) {
		users := newUsers(n)
		return n, transaction(ctx, c, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			for _, u := range users {
				st := u.statement()
				st.SQL += " THEN RETURN Id"
				if _, err := rowsOf(tx.QueryWithOptions(ctx, st, spanner.QueryOptions{RequestTag: c.tag}), 1); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func batchDML(n int, s saying) operation {
	return func(ctx context.Context, c call) (int, error) {
		statements := make([]spanner.Statement, n)
		for i, u := range newUsers(n) {
			statements[i] = u.statement()
		}
		return n, transaction(ctx, c, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.BatchUpdateWithOptions(ctx, statements, spanner.QueryOptions{RequestTag: c.tag, LastStatement: bool(s)})
			return err
		})
	}
}

// manyRowDML inserts all rows with one statement.
func manyRowDML(n int) operation {
	var values []string
	for i := range n {
		values = append(values, fmt.Sprintf("(@id%d, @name%d, @visits%d)", i, i, i))
	}
	sql := insertWrites + strings.Join(values, ", ")
	return func(ctx context.Context, c call) (int, error) {
		st := spanner.Statement{SQL: sql, Params: make(map[string]any, 3*n)}
		for i, u := range newUsers(n) {
			st.Params[fmt.Sprint("id", i)], st.Params[fmt.Sprint("name", i)], st.Params[fmt.Sprint("visits", i)] = u.id, u.name, u.visits
		}
		return n, transaction(ctx, c, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.UpdateWithOptions(ctx, st, spanner.QueryOptions{RequestTag: c.tag})
			return err
		})
	}
}

// batchWrite sends the rows as one group, which the server commits as one transaction.
func batchWrite(n int) operation {
	return func(ctx context.Context, c call) (rows int, err error) {
		groups := []*spanner.MutationGroup{{Mutations: mutations(newUsers(n))}}
		it := c.client.BatchWriteWithOptions(ctx, groups, spanner.BatchWriteOptions{TransactionTag: c.tag})
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
