package watchers

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// TestPace checks that the mean gap between transactions corresponds to the rate, and that the mean size of the
// transactions is Load.Mutations. The same seed must give the same transactions.
func TestPace(t *testing.T) {
	const n = 100_000
	for _, even := range []bool{false, true} {
		for _, m := range []int{1, 5, 200} {
			l := Load{Transactions: 50, Mutations: m, Even: even, Seed: 7}
			p, again := newPace(l), newPace(l)
			var last time.Duration
			rows, least, most, short := 0, m, m, 0
			for range n {
				due, size := p.next()
				if otherDue, otherSize := again.next(); otherDue != due || otherSize != size {
					t.Fatalf("the same seed gives %v, %d and %v, %d", due, size, otherDue, otherSize)
				}
				if due < last {
					t.Fatalf("%v is due after %v", due, last)
				}
				if due-last < 10*time.Millisecond {
					short++
				}
				last, rows, least, most = due, rows+size, min(least, size), max(most, size)
			}
			if rate := n / last.Seconds(); math.Abs(rate-l.Transactions) > 0.02*l.Transactions {
				t.Errorf("%+v: %.2f transactions per second", l, rate)
			}
			if mean := float64(rows) / n; math.Abs(mean-float64(m)) > 0.02*float64(m) {
				t.Errorf("%+v: %.2f rows on average", l, mean)
			}
			if least < 1 || most > 2*m || m > 1 && (least > 1 || most < 2*m) {
				t.Errorf("%+v: sizes from %d to %d", l, least, most)
			}
			// The test counts gaps that are shorter than half of the mean gap. If gaps are exponentially distributed,
			// the share 1 - e^(-1/2) of them is shorter than that. If all gaps are equal, none is.
			if want := n * (1 - math.Exp(-0.5)); !even && math.Abs(float64(short)-want) > 0.03*want || even && short > 0 {
				t.Errorf("%+v: %d of %d intervals are shorter than half of the mean", l, short, n)
			}
		}
	}
}

// TestSingerKeys checks that singerNumber computes the number of a change from the key that singerKey has computed from
// that number, and that the keys of successive numbers are far apart.
func TestSingerKeys(t *testing.T) {
	for _, number := range []int64{0, 1, 2, 36, 999_999, 17_000_000, keySpace/2 - 1, keySpace - 1} {
		key := singerKey(number)
		if key < 0 || key >= keySpace || singerNumber(key) != number {
			t.Errorf("number %d has the key %d, which has the number %d", number, key, singerNumber(key))
		}
	}
	parts := map[int64]bool{}
	for number := range int64(100_000) {
		parts[singerKey(number)>>11] = true // the key space has 2^20 parts
	}
	if len(parts) < 90_000 {
		t.Errorf("100,000 keys are in %d of a million parts of the key space", len(parts))
	}
	for _, foreign := range []int64{-1, keySpace, math.MaxInt64} {
		if n := singerNumber(foreign); n >= 0 {
			t.Errorf("the key %d, which no change writes, has the number %d", foreign, n)
		}
	}
}

// TestDeliveries checks the figures that deliveries computes: how many changes are committed, delivered, lost and
// delivered twice, the latencies, and the lag. The test knows the right figures, because it chooses the times of all
// changes and deliveries itself.
func TestDeliveries(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	c := &changes{began: began, first: 100}
	if n := c.add(-1, 2); n != 100 { // the backlog: the changes 100 and 101
		t.Fatal(n)
	}
	c.add(10*time.Millisecond, 3)
	c.add(500*time.Millisecond, 1)
	c.commit(100, 2)
	c.commit(102, 3)
	d := newDeliveries(c, 2*time.Millisecond, time.Second) // the server's clock is 2 ms ahead
	d.add(99, at(0), at(60))                               // change 99 is from an earlier run
	d.add(100, at(-5), at(60))
	d.add(102, at(22), at(60)) // 40 ms after the commit, 50 ms after it was due
	d.add(103, at(22), at(80))
	d.add(103, at(22), at(90)) // change 103 is delivered a second time
	s := d.standing(at(100))
	if want := (standing{transactions: 2, committed: 5, delivered: 3, lag: s.lag}); s != want || s.behind() != 2 {
		t.Errorf("standing is %+v, want %+v", s, want)
	}
	if d.lost() != 2 || d.duplicated != 1 || d.unwritten != 1 {
		t.Errorf("%d lost, %d twice, %d not of this run", d.lost(), d.duplicated, d.unwritten)
	}
	if n := d.fromCommit.TotalCount(); n != 2 || d.fromCommit.Min() != 40_000 || (d.fromCommit.Max()+500)/1000 != 60 {
		t.Errorf("%d latencies from commit, %d to %d us", n, d.fromCommit.Min(), d.fromCommit.Max())
	}
	if (d.fromDue.Min()+500)/1000 != 50 || (d.fromDue.Max()+500)/1000 != 70 {
		t.Errorf("latencies from due are %d to %d us", d.fromDue.Min(), d.fromDue.Max())
	}
	d.add(101, at(-5), at(150))
	if lag := d.standing(at(150)).lag; lag != 140*time.Millisecond { // the lag of change 104, due at 10 ms
		t.Errorf("lag is %v", lag)
	}
	d.add(104, at(22), at(160))
	if s := d.standing(at(300)); s.lag != 0 || s.behind() != 0 || d.lost() != 0 { // change 105 is not yet due
		t.Errorf("when all is delivered, standing is %+v, %d lost", s, d.lost())
	}
}

// TestDivide checks that every shard value belongs to exactly one watcher, and that the watchers' numbers of shard
// values differ by at most one.
func TestDivide(t *testing.T) {
	for n := 1; n <= shardValues; n++ {
		s := side{Watching: Watching{Watchers: n}}
		next := int64(-18)
		parts := s.divide()
		for _, part := range parts {
			if len(part) < shardValues/n || len(part) > shardValues/n+1 {
				t.Errorf("%d watchers: one has %d shards", n, len(part))
			}
			for _, v := range part {
				if v != next {
					t.Fatalf("%d watchers: %d comes in place of %d", n, v, next)
				}
				next++
			}
		}
		if next != 19 || len(parts) != n {
			t.Errorf("%d watchers: %d parts until %d", n, len(parts), next)
		}
	}
}

// TestPollFigures checks that Share returns the CPU time of all polls per second of the run, and that IndexRows returns
// the number of index rows that a poll reads for each row that it returns.
func TestPollFigures(t *testing.T) {
	p := PollStatistics{Polls: 60, CPU: 0.0575, Rows: 500, RowsScanned: 1037}
	if got := p.Share(time.Minute); math.Abs(got-0.0575) > 1e-9 {
		t.Errorf("share %v", got)
	}
	if got := p.IndexRows(); math.Abs(got-1.074) > 1e-9 {
		t.Errorf("index rows per row %v", got)
	}
}

// TestGrows checks that a lag that rises and falls with each poll does not count as growing, and that a steadily
// rising lag does.
func TestGrows(t *testing.T) {
	began := time.Now()
	for name, c := range map[string]struct {
		lag  func(i int) time.Duration
		want bool
	}{
		"saw":   {func(i int) time.Duration { return time.Duration(i%10) * 110 * time.Millisecond }, false},
		"rises": {func(i int) time.Duration { return time.Duration(i) * 50 * time.Millisecond }, true},
		"falls": {func(i int) time.Duration { return time.Duration(600-i) * 50 * time.Millisecond }, false},
	} {
		s := side{Watching: Watching{PollInterval: time.Second}, deliveries: newDeliveries(&changes{began: began}, 0, time.Minute)}
		for i := range 600 {
			s.samples = append(s.samples, sample{at: began.Add(time.Duration(i) * 100 * time.Millisecond), lag: c.lag(i)})
		}
		if got := s.grows(time.Minute); got != c.want {
			t.Errorf("a lag that %s: grows is %v", name, got)
		}
	}
}

func TestWatchSettings(t *testing.T) {
	for want, change := range map[string]func(*Settings){
		"-w must be a positive number": func(s *Settings) { s.Transactions = 0 },
		"not NaN":                      func(s *Settings) { s.Transactions = math.NaN() },
		"not +Inf":                     func(s *Settings) { s.Transactions = math.Inf(1) },
		"-w 0.001 writes less than one transaction in 1": func(s *Settings) { s.Transactions = 0.001 },
		"-m must be from 1":                              func(s *Settings) { s.Mutations = 0 },
		"-u must be from 1":                              func(s *Settings) { s.Updaters = 0 },
		"-n must be at least 1":                          func(s *Settings) { s.Watchers = 0 },
		"-n must be at most 37 watchers, not 38":         func(s *Settings) { s.Watchers = 38 },
		"--disable-shard-provider goes with one watcher": func(s *Settings) { s.Watchers, s.NoShards = 2, true },
		"-p must be a positive":                          func(s *Settings) { s.PollInterval = 0 },
		"-l must be at least 1":                          func(s *Settings) { s.Limit = 0 },
		"--rows must be from 0":                          func(s *Settings) { s.Rows = -1 },
		"--backlog must be from 0":                       func(s *Settings) { s.Backlog = -1 },
		"--seconds must be positive":                     func(s *Settings) { s.Each = 0 },
		"--table needs a name":                           func(s *Settings) { s.Table = "" },
		"--source must be poll or stream":                func(s *Settings) { s.Source = "queue" },
		"do not go with --source stream":                 func(s *Settings) { s.Source, s.NoHint = Stream, true },
		"-n must be at most 100 partitions, not 101":     func(s *Settings) { s.Source, s.Watchers = Stream, 101 },
		"choose --disable-table-hint":                    func(s *Settings) { s.Mode = Compare },
		"--profile is /nope: there is no such directory": func(s *Settings) { s.Profile = "/nope" },
		"--matrix polls":                                 func(s *Settings) { s.Source, s.Mode = Stream, Matrix },
		"--backlog does not go with --matrix":            func(s *Settings) { s.Backlog, s.Mode = 1, Matrix },
		"--endpoint needs --database":                    func(s *Settings) { s.Address = "localhost:1" },
	} {
		s := Defaults()
		change(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error that says %q, got %v", want, err)
		}
	}
	if err := Defaults().Check(); err != nil {
		t.Error(err)
	}
}

// TestBuckets checks that each latency is counted in the first bucket whose upper end is at least this latency.
func TestBuckets(t *testing.T) {
	h := report.NewHistogram()
	for _, us := range []int64{100, 900, 3000, 3900, 9000, 9001} {
		h.RecordValue(us)
	}
	want := []Bucket{{1000, 2}, {2000, 0}, {4000, 2}, {8000, 0}, {16_000, 2}}
	if got := bucketsOf(h); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	h.Reset()
	h.RecordValue(100_000)
	if got := bucketsOf(h); !slices.Equal(got, []Bucket{{128_000, 1}}) {
		t.Errorf("one latency: %v", got)
	}
	if got := bucketsOf(report.NewHistogram()); got != nil {
		t.Errorf("no latency: %v", got)
	}
}

// TestMatrix checks that the mode Matrix has seventeen experiments: one for each of the fifteen rows of the table in
// studyOfWatching, with the settings published there, and two for the load burstLoad, with the settings in the list
// bursts.
func TestMatrix(t *testing.T) {
	w := watchRun{Settings: Defaults()}
	list := w.matrixExperiments()
	if len(list) != 17 {
		t.Fatalf("%d experiments", len(list))
	}
	for i, e := range list {
		s := Defaults()
		s.Load, s.Watching = e.load, e.ways[0]
		if err := s.Check(); err != nil {
			t.Errorf("%s, %s: %v", e.name, e.ways[0].text(), err)
		}
		if i < 15 && (e.published == nil || publishedFor(e.load, e.ways[0]) != e.published && *publishedFor(e.load, e.ways[0]) != *e.published) {
			t.Errorf("%s, %s: published is %v, found again %v", e.name, e.ways[0].text(), e.published, publishedFor(e.load, e.ways[0]))
		}
	}
	if a, b := list[15].ways[0], list[16].ways[0]; list[15].load.Mutations != 500 || a.Limit != 1000 || a.PollInterval != 10*time.Second || b.Limit != 10_000 || b.PollInterval != time.Second {
		t.Errorf("bursts are %+v and %+v", list[15], list[16])
	}
}

// TestCapacityTarget checks that the report compares the target with the highest rate that the watchers have held, and
// not with rates that they have not held.
func TestCapacityTarget(t *testing.T) {
	s := Defaults()
	s.Mode = Capacity
	for _, c := range []struct {
		held []bool
		want string
	}{{[]bool{false, false}, ""}, {[]bool{true, false}, "met 50000 rows/s"}, {[]bool{true, true}, "met 60000 rows/s"}} {
		r := Report{Settings: s}
		for i, held := range c.held {
			r.Results = append(r.Results, &Result{Watching: s.Watching, Seconds: 10, Changes: 500_000 + int64(i)*100_000, Held: held})
		}
		r.complete()
		got := ""
		for _, f := range r.Figures {
			if f.Name == "most rows held" {
				got += f.verdict() + " " + f.text(f.Ours)
			}
		}
		if got != c.want {
			t.Errorf("%v: %s, want %s", c.held, got, c.want)
		}
	}
}

// TestSearchRate checks that the search for the capacity ends, and that the capacity lies between the rates of its
// last two full runs. This must be so even if the watchers hold higher or lower rates in probes than in full runs.
func TestSearchRate(t *testing.T) {
	for _, limit := range []float64{3, 700, 8123, 40_000} {
		for _, probed := range []float64{0.8, 1, 1.3} {
			var full []float64
			tries := 0
			found, err := searchRate(100, func(rate float64, isFull bool) (bool, error) {
				tries++
				if !isFull {
					return rate <= limit*probed, nil
				}
				full = append(full, rate)
				return rate <= limit, nil
			})
			if limit < 10 { // so far below the first rate of 100 that the full runs do not reach it
				if found || len(full) != capacityRuns {
					t.Errorf("limit %v: found %v with %v", limit, found, full)
				}
				continue
			}
			if err != nil || !found || len(full) < 2 || tries > 25 {
				t.Fatalf("limit %v: found %v in %d tries, %v, %v", limit, found, tries, full, err)
			}
			a, b := full[len(full)-2], full[len(full)-1]
			if low, high := min(a, b), max(a, b); low > limit || high < limit || low < limit*slower*0.999 {
				t.Errorf("limit %v: between %v and %v", limit, low, high)
			}
		}
	}
}

// TestLimitText checks that the text names what limited a rate.
func TestLimitText(t *testing.T) {
	cores := float64(runtime.NumCPU())
	for want, r := range map[string]Result{
		"a watcher was reading for 50% of the time":                       {Reading: 0.5},
		"the writers were 3.0 s late in the end: they were the limit":     {Late: 3, Reading: 0.5},
		"the server had 0.10 and this program, which writes and watches,": {Cores: &Cores{0.1, 0.2}},
		"CPU was the limit": {Cores: &Cores{cores / 2, cores / 2}},
	} {
		r.Watching.PollInterval = time.Second
		if got := r.limitText(); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestWatchStatus checks that the status shows no figures before there are any.
func TestWatchStatus(t *testing.T) {
	s := watchStatus{title: "light, recommended", passed: 1500 * time.Millisecond, lasts: time.Minute}
	for _, text := range append(s.picture(), s.line()) {
		if strings.Contains(text, "0.000") {
			t.Error(text)
		}
	}
	s.delivered, s.p50, s.p99, s.reads, s.readTime = 1, 453_887, 796_159, 2, 100*time.Millisecond
	want := "light, recommended, 2 of 60 s: 0 transactions, 0 changes, 1 delivered, 0 behind, lag 0.0 s, p99 to callback 0.796 s, average read 0.0500 s"
	if got := s.line(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for _, text := range s.picture() {
		if len(text) > harness.ScreenWidth {
			t.Errorf("%q does not fit", text)
		}
	}
}
