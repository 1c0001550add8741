//go:build !nobench

package main

import (
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/watchers"
)

func TestInterval(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1s": time.Second, "1.5s": 1500 * time.Millisecond, "60": time.Minute, "PT1S": time.Second, "PT10S": 10 * time.Second, "PT0.25S": time.Second / 4,
		"PT1M30S": 90 * time.Second, "PT2H": 2 * time.Hour, "P1D": 24 * time.Hour, "pt5s": 5 * time.Second, "0": 0,
	} {
		var i interval
		if err := i.Set(text); err != nil || time.Duration(i) != want {
			t.Errorf("%s is %v, %v", text, time.Duration(i), err)
		}
	}
	for _, text := range []string{"", "P", "PT", "P1DT", "PTS", "PT1", "1 s", "-1s", "-PT1S", "NaN", "Inf", "1e300", "P2D", "48h", "P1M"} {
		var i interval
		if err := i.Set(text); err == nil {
			t.Errorf("%q is %v", text, time.Duration(i))
		}
	}
}

// TestJavaNames checks that the flags of "bench watch" have the names and letters of the flags of Google's Java
// application for the same benchmark.
func TestJavaNames(t *testing.T) {
	t.Setenv("GOOGLE_CLOUD_PROJECT", "p")
	c := newBenchWatch()
	args := []string{"--instance", "i", "--database", "d", "--table", "T", "--index", "X", "--writeTransactionsPerSecond", "0.5", "--mutationsPerTransaction", "500",
		"--updateParallelism", "3", "--numWatchers", "1", "--disableShardProvider", "--disableTableHint", "--pollInterval", "PT10S", "--limit", "1000",
		"--fallbackToWithQuery", "30", "--resetLastSeenCommitTimestamp", "--dropExistingTable", "--simple"}
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	for letter, want := range map[string]string{"i": "i", "d": "d", "t": "T", "x": "X", "w": "0.5", "m": "500", "u": "3", "n": "1", "p": "10s", "l": "1000", "f": "30s", "r": "true", "s": "true"} {
		if f := c.Flags().ShorthandLookup(letter); f == nil || f.Value.String() != want {
			t.Errorf("-%s is %v, want %s", letter, f, want)
		}
	}
	s := watchers.Settings{Endpoint: bench.Endpoint{Database: "d"}}
	if err := findDatabase(&s, "i"); err != nil || s.Database != "projects/p/instances/i/databases/d" || !s.Create {
		t.Errorf("the database is %q, %v", s.Database, err)
	}
	for instance, database := range map[string]string{"i": "", "j": "projects/p/instances/i/databases/d"} {
		s := watchers.Settings{Endpoint: bench.Endpoint{Database: database}}
		if err := findDatabase(&s, instance); err == nil {
			t.Errorf("-i %s -d %q is %q", instance, database, s.Database)
		}
	}
}
