package watchers

import (
	"context"
	"fmt"
	"time"
)

// The poll intervals, and the limits of rows per poll, in the published benchmark studyOfWatching.
const (
	studyInterval = time.Second
	studyLimit    = 10_000
	burstInterval = 10 * time.Second
	burstLimit    = 1000
)

// burstLoad is a load with one large transaction every other second.
var burstLoad = Load{Transactions: 0.5, Mutations: 500}

// matrix runs an experiment for each row of the table in studyOfWatching, and then one for each of the two settings in
// the list bursts, with the load burstLoad.
func (w *watchRun) matrix(ctx context.Context) error {
	for _, e := range w.matrixExperiments() {
		if _, err := w.one(ctx, e); err != nil {
			return fmt.Errorf("%s, %s: %w", e.name, e.ways[0].text(), err)
		}
	}
	return nil
}

// matrixExperiments returns the experiments of the mode Matrix. The published benchmark studyOfWatching gives the load,
// the number of watchers, the poll interval and the limit of each experiment. All other values come from the settings.
func (w *watchRun) matrixExperiments() (list []watchExperiment) {
	add := func(name string, l Load, way Watching, p *Published) {
		load, watching := w.Load, w.Watching
		load.Transactions, load.Mutations = l.Transactions, l.Mutations
		watching.Watchers, watching.NoHint, watching.NoShards = way.Watchers, way.NoHint, way.NoShards
		watching.PollInterval, watching.Limit = way.PollInterval, way.Limit
		list = append(list, watchExperiment{name: name, load: load, ways: []Watching{watching}, lasts: w.Each, published: p})
	}
	for _, row := range publishedRows {
		add(row.Load, Load{Transactions: row.transactions, Mutations: row.mutations}, row.watching(), &row.Published)
	}
	for _, way := range bursts {
		add("bursts", burstLoad, way, nil)
	}
	return list
}

func (p publishedRow) watching() Watching {
	return Watching{Watchers: p.watchers, NoHint: p.noHint, NoShards: p.noShards, PollInterval: studyInterval, Limit: studyLimit}
}

// publishedFor returns the figures in that row of publishedRows which has this load and these settings. It returns nil
// if there is no such row.
func publishedFor(l Load, way Watching) *Published {
	for _, row := range publishedRows {
		same := row.transactions == l.Transactions && row.mutations == l.Mutations && row.watchers == way.Watchers &&
			row.noHint == way.NoHint && row.noShards == way.NoShards
		if same && way.PollInterval == studyInterval && way.Limit == studyLimit && way.Source == Poll {
			return &row.Published
		}
	}
	return nil
}

// loadName returns the name that studyOfWatching gives a load, such as "medium". For a load that is not in
// studyOfWatching, it makes a name from the numbers of transactions and of rows.
func loadName(l Load) string {
	for _, row := range publishedRows {
		if row.transactions == l.Transactions && row.mutations == l.Mutations {
			return row.Load
		}
	}
	return fmt.Sprintf("%g x %d", l.Transactions, l.Mutations)
}
