package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/spanner"
)

// Access is the first study: SQL (ExecuteStreamingSql) against READ (StreamingRead) for one key, a range
// of rows, and scattered keys over several splits. It is run at one client after the other, as published,
// on a table of short rows; the tables stay in the database.
func Access() Benchmark {
	return Benchmark{name: "access", about: "The same rows by SQL (ExecuteStreamingSql) and by READ (StreamingRead).", prepare: prepareAccess, figures: accessFigures}
}

const (
	oneKey    = "one_key"
	rangeRead = "range"
	scattered = "scattered"
	viaSQL    = "SQL"
	viaREAD   = "READ"
)

// accessFigures are what the study published, in microseconds, and the gaps we want to leave; those of ten
// keys over four splits only for a run with as many.
func accessFigures(s Settings) []Figure {
	if s.Keys != studyKeys || s.Splits != studySplits {
		return allAccessFigures[:1]
	}
	return allAccessFigures
}

// The study's reads of several rows.
const (
	studyKeys   = 10
	studySplits = 4
)

var allAccessFigures = []Figure{
	{Name: "SQL / READ server CPU, one key", Metric: ServerCPU, Left: Ref{oneKey, viaSQL}, Right: Ref{oneKey, viaREAD},
		StudyLeft: 155, StudyRight: 150, Study: 1.03, Target: 1.05},
	{Name: "SQL / READ server CPU, range of ten", Metric: ServerCPU, Left: Ref{rangeRead, viaSQL}, Right: Ref{rangeRead, viaREAD},
		StudyLeft: 305, StudyRight: 168, Study: 1.8, Target: 1.10},
	{Name: "SQL / READ server CPU, ten scattered keys over four splits", Metric: ServerCPU, Left: Ref{scattered, viaSQL}, Right: Ref{scattered, viaREAD},
		StudyLeft: 1510, StudyRight: 570, Study: 2.6, Target: 1.15},
	{Name: "latency of ten scattered keys", Metric: MedianLatency, Left: Ref{scattered, viaSQL}, Right: Ref{scattered, viaREAD},
		StudyLeft: 2300},
	{Name: "SQL: server CPU of ten scattered keys / of one key", Metric: ServerCPU, Left: Ref{scattered, viaSQL}, Right: Ref{oneKey, viaSQL},
		StudyLeft: 1510, StudyRight: 155, Study: 10, Target: 2.5},
	{Name: "READ: server CPU of ten scattered keys / of one key", Metric: ServerCPU, Left: Ref{scattered, viaREAD}, Right: Ref{oneKey, viaREAD},
		StudyLeft: 570, StudyRight: 150, Study: 3.8, Target: 2.5},
}

const accessTable = "CrowfootBenchAccess"

// accessColumns are an id and four columns of a short row, about 250 bytes.
var accessColumns = []string{"Id", "Name", "Address", "Visits", "Balance"}

func accessRow(id int64) []*spanner.Mutation {
	return []*spanner.Mutation{spanner.InsertOrUpdate(accessTable, accessColumns, []any{
		id, letters(id, "Name", 100), letters(id, "Address", 100), id * 7, float64(id) / 8,
	})}
}

func prepareAccess(ctx context.Context, r *run) ([]experiment, error) {
	err := r.target.createTables(ctx, `CREATE TABLE IF NOT EXISTS `+accessTable+` (
  Id INT64 NOT NULL, Name STRING(100), Address STRING(100), Visits INT64, Balance FLOAT64) PRIMARY KEY (Id)`)
	if err != nil {
		return nil, err
	}
	full, err := r.target.filled(ctx, accessTable, r.Rows)
	if err != nil {
		return nil, err
	}
	if !full {
		if _, err := r.fill(ctx, accessTable, r.Rows, accessRow); err != nil {
			return nil, err
		}
	}
	if r.Splits > 1 {
		note, err := r.target.split(ctx, accessTable, r.splitKeys())
		if err != nil {
			return nil, err
		}
		r.fact("%s", note)
	}
	return r.accessExperiments(), nil
}

// splitKeys cut the table into Splits equal parts.
func (r *run) splitKeys() (keys []int64) {
	for i := 1; i < r.Splits; i++ {
		keys = append(keys, int64(r.Rows)*int64(i)/int64(r.Splits))
	}
	return keys
}

func (r *run) accessExperiments() []experiment {
	a := access{int64(r.Rows), r.Keys, r.Splits}
	list := []experiment{
		{name: oneKey, title: "one key", paths: a.paths(a.oneKeySQL, a.oneKeyREAD)},
		{name: rangeRead, title: fmt.Sprintf("range of %d rows", r.Keys), paths: a.paths(a.rangeSQL, a.rangeREAD)},
		{name: scattered, title: fmt.Sprintf("%d scattered keys over %d splits", r.Keys, r.Splits), paths: a.paths(a.scatteredSQL, a.scatteredREAD)},
	}
	for i := range list {
		list[i].pairs = [][2]string{{viaSQL, viaREAD}}
	}
	return list
}

// access makes the requests of the study.
type access struct {
	rows   int64
	keys   int
	splits int
}

func (a access) paths(sql, read operation) []path {
	return []path{{name: viaSQL, method: "ExecuteStreamingSql", op: sql}, {name: viaREAD, method: "StreamingRead", op: read}}
}

var selectAccess = "SELECT " + strings.Join(accessColumns, ", ") + " FROM " + accessTable + " WHERE "

func (a access) query(ctx context.Context, c call, want int, where string, params map[string]any) (int, error) {
	st := spanner.Statement{SQL: selectAccess + where, Params: params}
	return rowsOf(c.client.Single().QueryWithOptions(ctx, st, spanner.QueryOptions{RequestTag: c.tag}), want)
}

func (a access) read(ctx context.Context, c call, want int, keys spanner.KeySet) (int, error) {
	return rowsOf(c.client.Single().ReadWithOptions(ctx, accessTable, keys, accessColumns, &spanner.ReadOptions{RequestTag: c.tag}), want)
}

func (a access) oneKeySQL(ctx context.Context, c call) (int, error) {
	return a.query(ctx, c, 1, "Id = @id", map[string]any{"id": c.Int64N(a.rows)})
}

func (a access) oneKeyREAD(ctx context.Context, c call) (int, error) {
	return a.read(ctx, c, 1, spanner.Key{c.Int64N(a.rows)})
}

// first draws where a range begins that ends within the table.
func (a access) first(c call) int64 { return c.Int64N(a.rows - int64(a.keys) + 1) }

func (a access) rangeSQL(ctx context.Context, c call) (int, error) {
	first := a.first(c)
	return a.query(ctx, c, a.keys, "Id BETWEEN @first AND @last", map[string]any{"first": first, "last": first + int64(a.keys) - 1})
}

func (a access) rangeREAD(ctx context.Context, c call) (int, error) {
	first := a.first(c)
	return a.read(ctx, c, a.keys, spanner.KeyRange{Start: spanner.Key{first}, End: spanner.Key{first + int64(a.keys) - 1}, Kind: spanner.ClosedClosed})
}

// scatter draws different keys, in turn from each of the splits.
func (a access) scatter(c call) []int64 {
	keys := make([]int64, 0, a.keys)
	for len(keys) < a.keys {
		split := int64(len(keys) % a.splits)
		first, end := a.rows*split/int64(a.splits), a.rows*(split+1)/int64(a.splits)
		if k := first + c.Int64N(end-first); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

func (a access) scatteredSQL(ctx context.Context, c call) (int, error) {
	return a.query(ctx, c, a.keys, "Id IN UNNEST(@ids)", map[string]any{"ids": a.scatter(c)})
}

func (a access) scatteredREAD(ctx context.Context, c call) (int, error) {
	keys := a.scatter(c)
	sets := make([]spanner.KeySet, len(keys))
	for i, k := range keys {
		sets[i] = spanner.Key{k}
	}
	return a.read(ctx, c, a.keys, spanner.KeySets(sets...))
}
