package studies

import (
	"context"
	"fmt"
	"slices"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// Access repeats studyOfReads, the published study that compares SQL (ExecuteStreamingSql) with READ (StreamingRead).
// Both read the same rows of usertable, a table like the study's. The study has three workloads: they read one key, a
// range of keys, and scattered keys of several splits. In two further workloads, both read by a secondary index; the
// study mentions such reads but gives no figures for them.
//
// With Settings.Study the clients send calls without tags, first at saturation and then at the study's rates. At these
// rates, each workload of the study has an interval of the server's statistics to itself. The table stays in the
// database after the run.
func Access() harness.Benchmark {
	return harness.Benchmark{Name: "access", About: accessAbout, Check: bench.Settings.CheckAccess, Study: &studyOfReads, Prepare: prepareAccess, Figures: accessFigures, Published: publishedAverages}
}

const accessAbout = "Compared is what the same rows cost, in CPU of the server and in latency, read by SQL (ExecuteStreamingSql) and by READ (StreamingRead): lower is better."

const (
	oneKey    = "one_key"
	rangeRead = "range"
	scattered = "scattered"
	covering  = "index_covering"
	backJoin  = "index_not_covering"
	viaSQL    = "SQL"
	viaREAD   = "READ"

	// atSaturation is the end of the names of the experiments that measure how many operations per second are possible
	// at most.
	atSaturation = "_saturated"
)

const (
	// studyClients is the number of clients that send the operations of an open loop. It is so large that an operation
	// that is due does not have to wait for operations in progress.
	studyClients = 64
	// saturatingClients is the number of clients of a closed loop. It is enough to keep a server of a few cores busy.
	saturatingClients = 64
)

// studyRates holds how many operations per second each workload has in studyOfReads: its SQL executions in ten minutes,
// divided by 600 and rounded. The study gives no rates for reads by an index, so these get the study's lowest rate.
var studyRates = map[string]float64{oneKey: 4600, rangeRead: 4300, scattered: 1800, covering: 1800, backJoin: 1800}

// prepareAccess creates and fills usertable, splits it, and returns the experiments.
func prepareAccess(ctx context.Context, r *harness.Runner) ([]harness.Experiment, error) {
	if err := makeUserTable(ctx, r); err != nil {
		return nil, err
	}
	full, err := r.Target.Filled(ctx, userTable, r.Rows)
	if err != nil {
		return nil, err
	}
	if !full {
		if _, err := r.Fill(ctx, userTable, r.Rows, userRow); err != nil {
			return nil, err
		}
	}
	if r.Splits > 1 {
		note, err := r.Target.AddSplitPoints(ctx, userTable, splitKeys(r))
		if err != nil {
			return nil, err
		}
		r.Fact("%s", note)
	}
	list := accessExperiments(r)
	if r.Study {
		list = asInStudy(list)
	}
	if r.Study && r.StatisticsWait > 0 {
		r.Fact("each workload waits for an interval of the server's statistics for itself (--interval %s, four of them)", r.Interval)
	}
	return list, nil
}

// splitKeys returns the keys at which the table is split into Splits equal parts.
func splitKeys(r *harness.Runner) (keys []string) {
	for i := 1; i < r.Splits; i++ {
		keys = append(keys, userKey(int64(r.Rows)*int64(i)/int64(r.Splits)))
	}
	return keys
}

func accessExperiments(r *harness.Runner) []harness.Experiment {
	a := access{int64(r.Rows), r.Keys, r.Splits}
	list := []harness.Experiment{
		{Name: oneKey, Title: "one key", Paths: []harness.Path{
			query{allOf + "id=@id", a.oneKey}.path(1), read{draw: a.oneKeySet}.path(1)}},
		{Name: rangeRead, Title: fmt.Sprintf("range of %d rows", r.Keys), Paths: []harness.Path{
			query{allOf + "id between @min and @max", a.ends}.path(a.keys), read{draw: a.rangeSet}.path(a.keys)}},
		{Name: scattered, Title: fmt.Sprintf("%d scattered keys over %d splits", r.Keys, r.Splits), Paths: []harness.Path{
			query{allOf + "id in UNNEST(@id)", a.scatteredIDs}.path(a.keys), read{draw: a.scatteredSet}.path(a.keys)}},
		{Name: covering, Title: "one row by an index that covers the query", Paths: a.coveringPaths()},
		{Name: backJoin, Title: "one row by an index that does not", Paths: a.backJoinPaths()},
	}
	for i := range list {
		list[i].Pairs = [][2]string{{viaSQL, viaREAD}}
	}
	return list
}

// asInStudy returns the experiments at saturation, followed by all experiments at the study's rates. At these rates,
// each workload of the study gets an interval of the server's statistics of its own. In one interval, the statistics
// could not tell the workloads apart, because all READs of the same columns have one FPRINT. The two workloads that
// read by an index share an interval, because they read different columns.
func asInStudy(list []harness.Experiment) (all []harness.Experiment) {
	for _, e := range list {
		e.Name, e.Title, e.Untagged = e.Name+atSaturation, e.Title+", at saturation", true
		e.Paths = withClients(e.Paths, saturatingClients)
		all = append(all, e)
	}
	for _, e := range list {
		e.Rate, e.Untagged, e.Interval = studyRates[e.Name], true, harness.OwnInterval
		if e.Name == backJoin {
			e.Interval = harness.SameInterval
		}
		e.Paths = withClients(e.Paths, studyClients)
		all = append(all, e)
	}
	return all
}

func withClients(paths []harness.Path, n int) []harness.Path {
	paths = slices.Clone(paths)
	for i := range paths {
		paths[i].Clients = n
	}
	return paths
}

// access chooses at random the keys and values that the workloads read.
type access struct {
	rows   int64
	keys   int
	splits int
}

func (a access) oneKey(c harness.Call) map[string]any {
	return map[string]any{"id": userKey(c.Int64N(a.rows))}
}

func (a access) oneKeySet(c harness.Call) spanner.KeySet {
	return spanner.Key{userKey(c.Int64N(a.rows))}
}

// first returns a random start for a range, such that the range ends within the table.
func (a access) first(c harness.Call) int64 { return c.Int64N(a.rows - int64(a.keys) + 1) }

func (a access) ends(c harness.Call) map[string]any {
	first := a.first(c)
	return map[string]any{"min": userKey(first), "max": userKey(first + int64(a.keys) - 1)}
}

func (a access) rangeSet(c harness.Call) spanner.KeySet {
	first := a.first(c)
	return spanner.KeyRange{Start: spanner.Key{userKey(first)}, End: spanner.Key{userKey(first + int64(a.keys) - 1)}, Kind: spanner.ClosedClosed}
}

// scatter returns different random keys, one from each split in turn.
func (a access) scatter(c harness.Call) []string {
	keys := make([]string, 0, a.keys)
	for len(keys) < a.keys {
		split := int64(len(keys) % a.splits)
		first, end := a.rows*split/int64(a.splits), a.rows*(split+1)/int64(a.splits)
		if k := userKey(first + c.Int64N(end-first)); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

func (a access) scatteredIDs(c harness.Call) map[string]any {
	return map[string]any{"id": a.scatter(c)}
}

func (a access) scatteredSet(c harness.Call) spanner.KeySet {
	keys := a.scatter(c)
	sets := make([]spanner.KeySet, len(keys))
	for i, k := range keys {
		sets[i] = spanner.Key{k}
	}
	return spanner.KeySets(sets...)
}

// indexed returns a random value of the indexed column.
func (a access) indexed(c harness.Call) string { return userField(c.Int64N(a.rows), indexedBy) }

// allOf is the text with which the queries in studyOfReads begin.
const allOf = "select * from " + userTable + " where "

const byIndex = " from " + userTable + "@{force_index=" + userIndex + "} where " + indexedBy + "=@value"

func (a access) value(c harness.Call) map[string]any { return map[string]any{"value": a.indexed(c)} }

func (a access) valueSet(c harness.Call) spanner.KeySet { return spanner.Key{a.indexed(c)} }

func (a access) coveringPaths() []harness.Path {
	return []harness.Path{
		query{"select id, " + storedIn + byIndex, a.value}.path(1),
		read{index: userIndex, columns: []string{"id", storedIn}, draw: a.valueSet}.path(1),
	}
}

// backJoinPaths returns paths that read columns which the index does not store. SQL joins the index with the table.
// READ reads the key from the index, and then the row from the table.
func (a access) backJoinPaths() []harness.Path {
	keys := read{index: userIndex, columns: []string{"id"}, draw: a.valueSet}
	both := harness.Path{Name: viaREAD, Method: "2 StreamingRead", StatisticsKeys: []harness.StatisticsKey{keys.asked(), read{}.asked()}}
	both.Operation = func(ctx context.Context, c harness.Call) (int, error) {
		var id string
		err := keys.rows(ctx, c).Do(func(row *spanner.Row) error { return row.Column(0, &id) })
		if err != nil {
			return 0, err
		}
		row := read{draw: func(harness.Call) spanner.KeySet { return spanner.Key{id} }}
		return harness.ExpectRows(row.rows(ctx, c), 1)
	}
	return []harness.Path{query{"select *" + byIndex, a.value}.path(1), both}
}
