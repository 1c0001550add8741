package bench_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/watchers"
)

// smallWatch returns the settings of a very short run of the watch benchmark against a server in this process, and the
// run's output.
func smallWatch(t *testing.T) (watchers.Settings, *strings.Builder) {
	t.Helper()
	s := watchers.Defaults()
	run, _ := small(t)
	out := new(strings.Builder)
	s.Endpoint, s.Report, s.JSON, s.Out, s.Progress = run.Endpoint, run.Report, run.JSON, out, io.Discard
	s.Transactions, s.Mutations, s.Updaters, s.Rows, s.Each, s.PollInterval, s.StatisticsWait = 100, 5, 4, 2500, 500*time.Millisecond, 10*time.Millisecond, 0
	return s, out
}

// delivered checks that a result reports every change as delivered exactly once.
func delivered(t *testing.T, r *watchers.Result) {
	t.Helper()
	if r.Changes == 0 || r.Delivered != r.Changes || r.Lost != 0 || r.Duplicated != 0 || r.Unwritten != 0 {
		t.Errorf("%s, %s: of %d changes %d were delivered, %d lost, %d delivered twice, %d more delivered", r.Name, r.Setting, r.Changes, r.Delivered, r.Lost, r.Duplicated, r.Unwritten)
	}
	if r.FromCommit.P50 == 0 || r.FromCommit.Max < r.FromCommit.P99 || r.FromDue.P50 == 0 || r.Reads == 0 {
		t.Errorf("%s, %s: figures are missing: %+v", r.Name, r.Setting, *r)
	}
}

// TestWatch checks that several watchers with small pages, which share the changes, deliver each change exactly once. A
// second run on the same table must do the same.
func TestWatch(t *testing.T) {
	s, out := smallWatch(t)
	s.Watchers, s.Limit = 3, 20
	for i := range 2 {
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		r, err := watchers.Run(t.Context(), s)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if len(r.Results) != 1 {
			t.Fatalf("%d results", len(r.Results))
		}
		delivered(t, r.Results[0])
		if filled := strings.Contains(strings.Join(r.Facts, "\n"), "loaded at"); filled != (i == 0) {
			t.Errorf("run %d: filled is %v", i, filled)
		}
	}
	text, _, _ := strings.Cut(out.String()[1:], "crowfoot bench watch") // the text of the first run
	checkText(t, text, "delivered", "changes lost", "p99", "random times")
	checkPage(t, s.Report, "Delivery", "prefers-color-scheme", "How this was measured", "commit p50", "<b>0</b>")
	figures, err := os.ReadFile(s.JSON)
	if err != nil {
		t.Fatal(err)
	}
	var r watchers.Report
	if err := json.Unmarshal(figures, &r); err != nil || len(r.Results) != 1 || r.Partial != "" {
		t.Errorf("JSON has %+v, %v", r, err)
	}
}

// TestWatchCompare checks that two sets of watchers each deliver all changes if they watch at the same time in
// different ways.
func TestWatchCompare(t *testing.T) {
	for _, change := range []func(*watchers.Settings){
		func(s *watchers.Settings) { s.NoHint = true },
		func(s *watchers.Settings) { s.NoShards = true },
	} {
		s, out := smallWatch(t)
		s.Mode = watchers.Compare
		change(&s)
		r, err := watchers.Run(t.Context(), s)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if len(r.Results) != 2 || r.Results[1].Setting != "recommended" || r.Results[0].Setting == "recommended" {
			t.Fatalf("results are %+v", r.Results)
		}
		delivered(t, r.Results[0])
		delivered(t, r.Results[1])
	}
}

// TestWatchBacklog checks that watchers also deliver changes that were written before the watchers started. The report
// must say how long this took.
func TestWatchBacklog(t *testing.T) {
	s, out := smallWatch(t)
	s.Backlog, s.Limit = 3000, 100
	r, err := watchers.Run(t.Context(), s)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	delivered(t, r.Results[0])
	if c := r.Results[0].CatchUp; c.Changes < 3000 || c.Seconds <= 0 || c.PerSecond() <= 0 {
		t.Errorf("catching up: %+v", c)
	}
	if r.Results[0].Changes < 3001 || !strings.Contains(out.String(), "caught up") {
		t.Errorf("%d changes\n%s", r.Results[0].Changes, out)
	}
}

// TestWatchCreatesDatabase checks that a run with Settings.Create creates a missing database in an existing instance,
// as the benchmark application of Google's Spanner Change Watcher does.
func TestWatchCreatesDatabase(t *testing.T) {
	s, out := smallWatch(t)
	s.Database, s.Create, s.Rows = strings.TrimSuffix(s.Database, "/d")+"/other", true, 0
	r, err := watchers.Run(t.Context(), s)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	delivered(t, r.Results[0])
}

// TestStreamWrites checks that the benchmark stream-writes measures commits to a table with a change stream and to a
// table without one, and compares them.
func TestStreamWrites(t *testing.T) {
	s, out := small(t)
	s.PID = os.Getpid()
	s.Batches = []int{1, 5}
	r, err := harness.Run(t.Context(), s, watchers.StreamWrites())
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(r.Measures) != 4 || len(r.Figures) != 2 || r.Figures[1].Ours == nil || r.Figures[1].Target != 1.35 {
		t.Errorf("%d measures, figures %+v", len(r.Measures), r.Figures)
	}
}

// TestWatchEmbedded runs the watch benchmark with an embedded server and checks that profiles of this server are
// written.
func TestWatchEmbedded(t *testing.T) {
	s, out := smallWatch(t)
	s.Endpoint, s.Profile = bench.Endpoint{}, t.TempDir()
	r, err := watchers.Run(t.Context(), s)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	delivered(t, r.Results[0])
	for _, name := range []string{"server.pprof", "client.pprof"} {
		if text, err := os.ReadFile(filepath.Join(s.Profile, name)); err != nil || len(text) == 0 {
			t.Errorf("%s has %d bytes, %v", name, len(text), err)
		}
	}
}

// TestWatchStream checks that watchers of a change stream with several partitions deliver each change once. It tests
// this with a backlog, and while other watchers poll the table.
func TestWatchStream(t *testing.T) {
	for _, change := range []func(*watchers.Settings){
		func(s *watchers.Settings) { s.Watchers, s.Backlog = 4, 300 },
		func(s *watchers.Settings) { s.Mode = watchers.Compare },
	} {
		s, out := smallWatch(t)
		s.Source = watchers.Stream
		change(&s)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		r, err := watchers.Run(t.Context(), s)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, result := range r.Results {
			delivered(t, result)
		}
		if s.Backlog > 0 && r.Results[0].CatchUp.Reads == 0 {
			t.Errorf("catching up: %+v", r.Results[0].CatchUp)
		}
	}
}

// TestWatchDrop checks that a run with Drop drops the table together with its change stream and creates both again.
func TestWatchDrop(t *testing.T) {
	s, out := smallWatch(t)
	s.Source, s.Drop = watchers.Stream, true
	for range 2 {
		r, err := watchers.Run(t.Context(), s)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		delivered(t, r.Results[0])
	}
}

// TestWatchReset checks that a watcher continues where an earlier watcher of the same shards stopped. With Reset, it
// must not deliver changes of earlier runs.
func TestWatchReset(t *testing.T) {
	s, out := smallWatch(t)
	run := func(count int, reset bool) int64 {
		t.Helper()
		s.Watchers, s.Reset = count, reset
		r, err := watchers.Run(t.Context(), s)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if m := r.Results[0]; m.Delivered != m.Changes || m.Lost+m.Duplicated != 0 {
			t.Errorf("%d watchers: of %d changes %d were delivered, %d lost, %d twice", count, m.Changes, m.Delivered, m.Lost, m.Duplicated)
		}
		return r.Results[0].Unwritten
	}
	run(1, false)
	run(2, false)
	if run(1, false) == 0 {
		t.Error("the first watcher did not get what was written while others watched")
	}
	run(2, false)
	if n := run(1, true); n > 0 {
		t.Errorf("%d changes of earlier runs were delivered after a reset", n)
	}
}
