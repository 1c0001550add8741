package bench

import (
	"context"
	"fmt"
	"slices"

	"cloud.google.com/go/spanner"
)

// Access is the study of SQL (ExecuteStreamingSql) against READ (StreamingRead): the same rows of the study's table for one
// key, a range, and scattered keys over several splits; and by a secondary index, which the study names without
// figures. With Settings.Study the calls come at the study's rates, without tags, each workload in an interval of the
// server's statistics of its own, and both ways are compared at saturation too. The table stays in the database.
func Access() Benchmark {
	return Benchmark{name: "access", about: accessAbout, check: Settings.checkAccess, study: &studyOfReads, prepare: prepareAccess, figures: accessFigures}
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

	// atSaturation ends the names of the experiments that look for the most operations per second.
	atSaturation = "_saturated"
)

// The study's reads of several rows.
const (
	studyKeys   = 10
	studySplits = 4
)

const (
	// studyClients send the operations of an open loop: enough that those due need not wait for those under way.
	studyClients = 64
	// saturatingClients keep a server of some cores busy in a closed loop.
	saturatingClients = 64
)

// studyRates are executions a second in the study: those of its ten minutes, of SQL, rounded. The workloads by an index are
// ours, at the lowest rate.
var studyRates = map[string]float64{oneKey: 4600, rangeRead: 4300, scattered: 1800, covering: 1800, backJoin: 1800}

// prepareAccess makes the study's table.
func prepareAccess(ctx context.Context, r *run) ([]experiment, error) {
	if err := r.makeUserTable(ctx); err != nil {
		return nil, err
	}
	full, err := r.target.filled(ctx, userTable, r.Rows)
	if err != nil {
		return nil, err
	}
	if !full {
		if _, err := r.fill(ctx, userTable, r.Rows, userRow); err != nil {
			return nil, err
		}
	}
	if r.Splits > 1 {
		note, err := r.target.split(ctx, userTable, r.splitKeys())
		if err != nil {
			return nil, err
		}
		r.fact("%s", note)
	}
	list := r.accessExperiments()
	if r.Study {
		list = asInStudy(list)
	}
	if r.Study && r.StatisticsWait > 0 {
		r.fact("each workload waits for an interval of the server's statistics for itself (--interval %s, four of them)", r.Interval)
	}
	return list, nil
}

// splitKeys cut the table into Splits equal parts.
func (r *run) splitKeys() (keys []string) {
	for i := 1; i < r.Splits; i++ {
		keys = append(keys, userKey(int64(r.Rows)*int64(i)/int64(r.Splits)))
	}
	return keys
}

func (r *run) accessExperiments() []experiment {
	a := access{int64(r.Rows), r.Keys, r.Splits}
	list := []experiment{
		{name: oneKey, title: "one key", paths: []path{
			query{allOf + "id=@id", a.oneKey}.path(1), read{draw: a.oneKeySet}.path(1)}},
		{name: rangeRead, title: fmt.Sprintf("range of %d rows", r.Keys), paths: []path{
			query{allOf + "id between @min and @max", a.ends}.path(a.keys), read{draw: a.rangeSet}.path(a.keys)}},
		{name: scattered, title: fmt.Sprintf("%d scattered keys over %d splits", r.Keys, r.Splits), paths: []path{
			query{allOf + "id in UNNEST(@id)", a.scatteredIDs}.path(a.keys), read{draw: a.scatteredSet}.path(a.keys)}},
		{name: covering, title: "one row by an index that covers the query", paths: a.coveringPaths()},
		{name: backJoin, title: "one row by an index that does not", paths: a.backJoinPaths()},
	}
	for i := range list {
		list[i].pairs = [][2]string{{viaSQL, viaREAD}}
	}
	return list
}

// asInStudy puts the workloads at saturation first, then all at the study's rates. Each of the study's has an interval of its own, as
// the statistics know READs of the same columns by one FPRINT; the two by an index share one.
func asInStudy(list []experiment) (all []experiment) {
	for _, e := range list {
		e.name, e.title, e.untagged = e.name+atSaturation, e.title+", at saturation", true
		e.paths = withClients(e.paths, saturatingClients)
		all = append(all, e)
	}
	for _, e := range list {
		e.rate, e.untagged, e.interval = studyRates[e.name], true, ownInterval
		if e.name == backJoin {
			e.interval = sameInterval
		}
		e.paths = withClients(e.paths, studyClients)
		all = append(all, e)
	}
	return all
}

func withClients(paths []path, n int) []path {
	paths = slices.Clone(paths)
	for i := range paths {
		paths[i].clients = n
	}
	return paths
}

// access draws what the workloads read.
type access struct {
	rows   int64
	keys   int
	splits int
}

func (a access) oneKey(c call) map[string]any { return map[string]any{"id": userKey(c.Int64N(a.rows))} }

func (a access) oneKeySet(c call) spanner.KeySet { return spanner.Key{userKey(c.Int64N(a.rows))} }

// first draws where a range begins that ends within the table.
func (a access) first(c call) int64 { return c.Int64N(a.rows - int64(a.keys) + 1) }

func (a access) ends(c call) map[string]any {
	first := a.first(c)
	return map[string]any{"min": userKey(first), "max": userKey(first + int64(a.keys) - 1)}
}

func (a access) rangeSet(c call) spanner.KeySet {
	first := a.first(c)
	return spanner.KeyRange{Start: spanner.Key{userKey(first)}, End: spanner.Key{userKey(first + int64(a.keys) - 1)}, Kind: spanner.ClosedClosed}
}

// scatter draws different keys, in turn from each of the splits.
func (a access) scatter(c call) []string {
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

func (a access) scatteredIDs(c call) map[string]any { return map[string]any{"id": a.scatter(c)} }

func (a access) scatteredSet(c call) spanner.KeySet {
	keys := a.scatter(c)
	sets := make([]spanner.KeySet, len(keys))
	for i, k := range keys {
		sets[i] = spanner.Key{k}
	}
	return spanner.KeySets(sets...)
}

// indexed draws a value of the index's column.
func (a access) indexed(c call) string { return userField(c.Int64N(a.rows), indexedBy) }

// allOf begins the study's queries.
const allOf = "select * from " + userTable + " where "

const byIndex = " from " + userTable + "@{force_index=" + userIndex + "} where " + indexedBy + "=@value"

func (a access) value(c call) map[string]any { return map[string]any{"value": a.indexed(c)} }

func (a access) valueSet(c call) spanner.KeySet { return spanner.Key{a.indexed(c)} }

func (a access) coveringPaths() []path {
	return []path{
		query{"select id, " + storedIn + byIndex, a.value}.path(1),
		read{index: userIndex, columns: []string{"id", storedIn}, draw: a.valueSet}.path(1),
	}
}

// backJoinPaths need columns that the index does not have. SQL joins back to the table; READ reads the key from the index,
// then the row from the table.
func (a access) backJoinPaths() []path {
	keys := read{index: userIndex, columns: []string{"id"}, draw: a.valueSet}
	both := path{name: viaREAD, method: "2 StreamingRead", asked: []asked{keys.asked(), read{}.asked()}}
	both.op = func(ctx context.Context, c call) (int, error) {
		var id string
		err := keys.rows(ctx, c).Do(func(row *spanner.Row) error { return row.Column(0, &id) })
		if err != nil {
			return 0, err
		}
		row := read{draw: func(call) spanner.KeySet { return spanner.Key{id} }}
		return rowsOf(row.rows(ctx, c), 1)
	}
	return []path{query{"select *" + byIndex, a.value}.path(1), both}
}
