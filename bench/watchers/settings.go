package watchers

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// Settings say what the benchmark writes, how it watches the changes, and what it compares. The flags have the
// names that the benchmark application of Google's Spanner Change Watcher uses.
type Settings struct {
	Load
	Watching
	Table string        `json:"table"`
	Index string        `json:"index"`   // name of the index that the polls should use; "" for none
	Rows  int           `json:"rows"`    // least number of rows in the table before the load
	Each  time.Duration `json:"each_ns"` // duration of the load of one run
	Mode  Mode          `json:"mode"`
	// Backlog is the number of changes that are written before the watchers of a run start.
	Backlog int  `json:"backlog,omitempty"`
	Drop    bool `json:"-"` // true to drop the table first if it exists

	bench.Endpoint
	// Create makes the run create the database if it is missing.
	Create         bool          `json:"-"`
	StatisticsWait time.Duration `json:"statistics_wait_ns"`
	bench.Outputs
	// Profile is a directory for profiles of the embedded server and of this program, which are taken during the load.
	// The profiles of a later load overwrite those of an earlier one. "" means none.
	Profile string `json:"-"`
	Simple  bool   `json:"-"` // true if the status on the screen is one line and no picture
}

// Load describes the transactions that the benchmark writes.
type Load struct {
	Transactions float64 `json:"transactions_per_second"`
	Mutations    int     `json:"mutations_per_transaction"` // mean number of rows that a transaction writes
	Updaters     int     `json:"updaters"`                  // highest number of transactions in progress
	Even         bool    `json:"even,omitempty"`            // true for equal intervals between transactions, not random
	Seed         uint64  `json:"seed"`
}

// Watching describes in which way the changes are watched.
type Watching struct {
	Source       Source        `json:"source"`
	Watchers     int           `json:"watchers"`
	PollInterval time.Duration `json:"poll_interval_ns"`
	Limit        int           `json:"limit"`
	NoHint       bool          `json:"no_table_hint,omitempty"`
	NoShards     bool          `json:"no_shard_provider,omitempty"`
	Reset        bool          `json:"reset_last_seen,omitempty"` // true to delete the checkpoints of earlier runs
	// Prune is the age that the commit timestamp of a delivered row must reach before the watcher sets it to NULL. This
	// also removes the row from the index. 0 means that the watcher never does this.
	Prune time.Duration `json:"prune_ns,omitempty"`
}

// Source says from where the watchers read changes.
type Source string

// The sources.
const (
	Poll   Source = "poll"   // queries of the table
	Stream Source = "stream" // a change stream, created if it is missing; Watchers is the number of its partitions
)

// Mode is the purpose of a run.
type Mode string

// The modes.
const (
	One      Mode = "one"      // watches in the way that the settings describe
	Compare  Mode = "compare"  // watches in the way of the settings and in the recommended one, at the same time
	Matrix   Mode = "matrix"   // repeats the published benchmark studyOfWatching: one setting after the other
	Capacity Mode = "capacity" // searches for the most rows per second with which the watchers keep up
)

const (
	// The default names of the table and the index. They are those in the benchmark application of Google's Spanner
	// Change Watcher.
	defaultWatchTable = "Singers"
	defaultWatchIndex = "Idx_Singers_ShardId_LastUpdated"
	// maxWatchMutations is the largest mean size of a transaction. It keeps a transaction of twice the mean size
	// within the limit of 80,000 mutations per commit: each row counts with eight columns, and its index entry with
	// two (https://cloud.google.com/spanner/quotas#limits-for).
	maxWatchMutations = 4000
	// maxUpdaters is the largest number of transactions in progress. It is far more than one machine can drive.
	maxUpdaters = 10_000
)

// Defaults returns the default settings of the benchmark application of Google's Spanner Change Watcher. For settings
// that this application does not have, it returns values of our own.
func Defaults() Settings {
	return Settings{
		Load:     Load{Transactions: 1, Mutations: 5, Updaters: 32, Seed: 1},
		Watching: Watching{Source: Poll, Watchers: 1, PollInterval: time.Second, Limit: 10_000},
		Table:    defaultWatchTable, Index: defaultWatchIndex, Rows: 1_000_000, Each: time.Minute, Mode: One,
		StatisticsWait: 75 * time.Second,
		Outputs:        bench.Outputs{Out: os.Stdout, Progress: os.Stderr},
	}
}

// Check returns an error if the settings are not valid.
func (s Settings) Check() error {
	switch {
	case s.Table == "":
		return errors.New("--table needs a name")
	case s.Rows < 0 || s.Rows >= keySpace/2:
		return fmt.Errorf("--rows must be from 0 to %d", keySpace/2-1)
	case s.Backlog < 0 || s.Backlog >= keySpace/4:
		return fmt.Errorf("--backlog must be from 0 to %d", keySpace/4-1)
	case s.Each <= 0:
		return errors.New("--seconds must be positive")
	case s.Profile != "" && s.Database != "":
		return errors.New("--profile is for the embedded server and does not go with --database")
	case s.Mode == Compare && s.recommended():
		return errors.New("--compare sets a way of watching beside the recommended one, and this is the recommended one: choose --disable-table-hint, --disable-shard-provider, --prune or --source stream")
	case s.Mode == Matrix && s.Source != Poll:
		return errors.New("--matrix polls, as the published table does, and does not go with --source stream")
	case s.Mode != One && s.Backlog > 0:
		return fmt.Errorf("--backlog does not go with --%s", s.Mode)
	}
	if info, err := os.Stat(s.Profile); s.Profile != "" && (err != nil || !info.IsDir()) {
		return fmt.Errorf("--profile is %s: there is no such directory", s.Profile)
	}
	for _, check := range []func() error{s.Load.check, s.Watching.check, s.writes, s.Endpoint.Check} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (l Load) check() error {
	switch {
	case !(l.Transactions > 0) || math.IsInf(l.Transactions, 0):
		return fmt.Errorf("-w must be a positive number of transactions per second, not %g: nothing would be written", l.Transactions)
	case l.Mutations < 1 || l.Mutations > maxWatchMutations:
		return fmt.Errorf("-m must be from 1 to %d mutations per transaction, not %d", maxWatchMutations, l.Mutations)
	case l.Updaters < 1 || l.Updaters > maxUpdaters:
		return fmt.Errorf("-u must be from 1 to %d updaters, not %d", maxUpdaters, l.Updaters)
	}
	return nil
}

func (w Watching) check() error {
	switch {
	case w.Source != Poll && w.Source != Stream:
		return fmt.Errorf("--source must be %s or %s, not %q", Poll, Stream, w.Source)
	case w.Source == Stream && (w.NoHint || w.NoShards || w.Prune > 0):
		return errors.New("--disable-table-hint, --disable-shard-provider and --prune are for polls and do not go with --source stream")
	case w.Source == Stream && w.Watchers > harness.MaxSplitsPerRequest:
		return fmt.Errorf("-n must be at most %d partitions, not %d", harness.MaxSplitsPerRequest, w.Watchers)
	case w.Watchers < 1:
		return fmt.Errorf("-n must be at least 1 watcher, not %d", w.Watchers)
	case w.NoShards && w.Watchers > 1:
		return errors.New("--disable-shard-provider goes with one watcher: without shards there is nothing to divide among several")
	case w.Source == Poll && w.Watchers > shardValues:
		return fmt.Errorf("-n must be at most %d watchers, not %d: there are so many shards to divide among them", shardValues, w.Watchers)
	case w.PollInterval <= 0:
		return errors.New("-p must be a positive duration")
	case w.Prune < 0:
		return errors.New("--prune must not be negative")
	case w.Limit < 1:
		return fmt.Errorf("-l must be at least 1 change per poll, not %d", w.Limit)
	}
	return nil
}

// writes returns an error if a load would have less than one transaction on average.
func (s Settings) writes() error {
	if s.Mode != Matrix && s.Transactions*s.Each.Seconds() < 1 {
		return fmt.Errorf("-w %g writes less than one transaction in %v: nothing would be measured", s.Transactions, s.Each)
	}
	return nil
}

// recommended reports whether this is the way of watching that studyOfWatching, the published benchmark, recommends: by
// polls, with a shard provider and a table hint.
func (w Watching) recommended() bool { return w.text() == recommended }

const recommended = "recommended"

// text lists how this way of watching differs from the recommended one.
func (w Watching) text() string {
	var differs []string
	for _, of := range []struct {
		is   bool
		text string
	}{{w.Source == Stream, "change stream"}, {w.NoHint, "no table hint"}, {w.NoShards, "no shard provider"}, {w.Prune > 0, "pruned"}} {
		if of.is {
			differs = append(differs, of.text)
		}
	}
	return cmp.Or(strings.Join(differs, ", "), recommended)
}
