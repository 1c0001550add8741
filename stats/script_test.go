package stats

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats/live"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestScripts checks what the tables show after the steps of the scripts in testdata. The scripts run on a store in
// memory and a clock that only they move. Their directives are:
//
//	columns                   print every table with its columns and their types
//	do                        run each line of the input with the method perform
//	rows TABLE [COLUMN...]    print the rows of a table, with the given columns or with all
//
// The clock starts at 2026-01-01 00:00:00.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "columns":
				return w.columns()
			case "do":
				var out strings.Builder
				for line := range strings.Lines(d.Input) {
					out.WriteString(w.perform(t, strings.TrimSpace(line)))
				}
				return out.String()
			case "rows":
				var names []string
				for _, a := range d.CmdArgs[1:] {
					names = append(names, a.Key)
				}
				return w.rows(t, d.CmdArgs[0].Key, names)
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

// world is a collector with everything that it depends on, which the test controls.
type world struct {
	fs    *vfs.MemFS
	store kv.Store
	now   time.Time
	c     *Collector
	sources
	footprint Footprint
	live      *live.Lists
	dml       *live.PartitionedDML
	running   map[string]*live.Query
	timeline  *live.TimelineRecorder
}

// sources holds what the functions in Sources return.
type sources struct {
	sizes    []TableSize
	splits   []SplitLoad
	points   []SplitPoint
	policies []DeletionPolicy
	tasks    []Task
}

var midnight = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld(t testing.TB) *world {
	w := &world{fs: vfs.NewCrashableMem(), now: midnight, running: map[string]*live.Query{}}
	w.openStore(t)
	t.Cleanup(func() { w.store.Close() })
	return w
}

func (w *world) openStore(t testing.TB) {
	s, err := pebble.Open("data", w.fs)
	if err != nil {
		t.Fatal(err)
	}
	w.store = s
	w.open()
}

func (w *world) open() {
	w.live = live.New(w.now)
	w.c = New(Config{
		Store: w.store, Space: 7, Clock: func() time.Time { return w.now }, Log: slog.New(slog.DiscardHandler), Live: w.live,
		Sources: Sources{
			Sizes:            func() ([]TableSize, error) { return w.sizes, nil },
			Splits:           func(time.Time) []SplitLoad { return w.splits },
			SplitPoints:      func() []SplitPoint { return w.points },
			DeletionPolicies: func() []DeletionPolicy { return w.policies },
			Tasks:            func() []Task { return w.tasks },
		},
	})
}

// perform runs one line of a script: a verb, fields of the form name=value, and after a colon an argument.
func (w *world) perform(t *testing.T, line string) string {
	line, rest, _ := strings.Cut(line, ": ")
	words := strings.Fields(line)
	f := fields{}
	for _, word := range words[1:] {
		name, v, ok := strings.Cut(word, "=")
		if !ok {
			v = "true"
		}
		f[name] = v
	}
	verb, ok := verbs[words[0]]
	if !ok {
		t.Fatalf("unknown line %q", line)
	}
	for range max(f.int("times"), 1) {
		if out := verb(w, t, f, rest); out != "" {
			return out + "\n"
		}
	}
	return ""
}

var verbs = map[string]func(w *world, t *testing.T, f fields, rest string) string{
	"clock": func(w *world, _ *testing.T, f fields, rest string) string {
		w.now = w.now.Add(f.duration("advance"))
		if at := f["at"]; at != "" {
			clock, _ := time.Parse("15:04:05", at)
			w.now = midnight.AddDate(0, 0, int(f.int("day"))).Add(clock.Sub(clock.Truncate(24 * time.Hour)))
		}
		return ""
	},
	"query": func(w *world, _ *testing.T, f fields, rest string) string {
		text := TextOf(rest)
		if statements := strings.Split(rest, ";"); len(statements) > 1 {
			text = BatchText(statements)
		}
		w.c.Query(&Query{
			Text: text, Tag: f["tag"], Kind: QueryKind(f.int("kind")), Outcome: Outcome(f.int("outcome")), InReadWrite: f["rw"] != "", Continues: f["continues"] != "",
			Statements: f.int("statements"), End: w.now.Add(f.duration("ended")), Latency: f.duration("latency"), CPU: f.duration("cpu"), PlanTime: f.duration("plan"),
			FilesystemDelay: f.duration("fs"), Rows: f.int("rows"), Bytes: f.int("bytes"), RowsScanned: f.int("scanned"),
			RowsWritten: f.int("written"), BytesWritten: f.int("byteswritten"), RowsSpooled: f.int("spooled"), RemoteCalls: f.int("remote"),
			MemoryPeak: f.int("memory"), MemoryShare: f.float("share"), DiskIOCost: f.float("io"), Accesses: f.accesses(),
		})
		return ""
	},
	"read": func(w *world, _ *testing.T, f fields, rest string) string {
		w.c.Read(&Read{
			Access: access(OpRead, rest), Tag: f["tag"], Partitioned: f["partitioned"] != "", Outcome: Outcome(f.int("outcome")), InReadWrite: f["rw"] != "", Continues: f["continues"] != "",
			End: w.now, CPU: f.duration("cpu"), LockingDelay: f.duration("locking"), ClientWait: f.duration("client"),
			LeaderRefreshDelay: f.duration("leader"), Rows: f.int("rows"), Bytes: f.int("bytes"), DiskIOCost: f.float("io"),
		})
		return ""
	},
	"touch": func(w *world, _ *testing.T, f fields, rest string) string {
		for _, a := range f.accesses() {
			w.footprint.Add(a)
		}
		if table := f["wrote"]; table != "" {
			w.footprint.Wrote(table, f.int("rows"), f.int("bytes"))
		}
		return ""
	},
	"commit": func(w *world, _ *testing.T, f fields, rest string) string {
		w.c.Transaction(&Transaction{
			Footprint: &w.footprint, Tag: f["tag"], Outcome: TxnOutcome(f.int("outcome")), Isolation: TxnIsolation(f.int("isolation")), Retry: f["retry"] != "",
			End: w.now, TotalLatency: f.duration("total"), CommitLatency: f.duration("commit"), Participants: f.int("participants"), Bytes: f.int("bytes"),
		})
		if f["keep"] == "" {
			w.footprint = Footprint{}
		}
		return ""
	},
	"mutate": func(w *world, _ *testing.T, f fields, _ string) string {
		w.c.Operations(w.now, f.accesses())
		return ""
	},
	"wait": func(w *world, _ *testing.T, f fields, rest string) string {
		l := LockWait{Key: rest, End: w.now, Wait: f.duration("for")}
		for _, tag := range strings.Split(f["tags"], ",") {
			l.Requests = append(l.Requests, LockRequest{Column: "Albums.Title", Mode: "Exclusive", Tag: tag})
		}
		w.c.LockWait(&l)
		return ""
	},
	"profile": func(w *world, _ *testing.T, f fields, rest string) string {
		w.c.Profile(&Profile{Text: Text{Fingerprint: f.int("fingerprint")}, Tag: f["tag"], Latency: f.duration("latency"), End: w.now, JSON: rest})
		return ""
	},
	"start": func(w *world, _ *testing.T, f fields, rest string) string {
		q := &live.Query{SQL: rest, Fingerprint: TextOf(rest).Fingerprint, Tag: f["tag"], Start: w.now, Session: f["session"], ClientAddress: f["client"], UserAgent: f["agent"],
			Priority: f["priority"], Transaction: f["transaction"]}
		q.Cancel = func(cause error) { q.Session = cause.Error() }
		w.running[f["name"]] = q
		w.live.Start(q)
		return ""
	},
	"finish": func(w *world, _ *testing.T, f fields, _ string) string {
		w.running[f["name"]].Finish()
		return ""
	},
	"cancel": func(w *world, _ *testing.T, f fields, _ string) string {
		id := f["id"]
		if q := w.running[f["name"]]; q != nil {
			id = q.ID()
		}
		if !w.live.CancelQuery(id) {
			return "not found"
		}
		return w.running[f["name"]].Session
	},
	"partitioned": func(w *world, _ *testing.T, f fields, rest string) string {
		switch {
		case f["start"] != "":
			w.dml = w.live.StartPartitioned(rest, TextOf(rest).Fingerprint, f["session"], f.int("start"), w.now)
		case f["rows"] != "":
			w.dml.Advance(f.int("rows"), w.now)
		case f["split"] != "":
			w.dml.Split(f.int("split"), w.now)
		default:
			w.dml.Finish()
		}
		return ""
	},
	"event": func(w *world, _ *testing.T, f fields, rest string) string {
		if tag := f["begin"]; tag != "" {
			w.timeline = w.live.StartTimeline(Tag(tag), w.now)
			return ""
		}
		if outcome := f["finish"]; outcome != "" {
			w.timeline.Finish(w.now, outcome)
			return ""
		}
		w.timeline.Add(w.now, live.Event{Kind: live.EventKind(f["kind"]), What: rest, Duration: f.duration("for"), LockWait: f.duration("lock"), Rows: f.int("rows")})
		return ""
	},
	"timelines": func(w *world, _ *testing.T, f fields, _ string) string {
		var lines []string
		for _, l := range w.live.Timelines(Tag(f["tag"])) {
			lines = append(lines, jsonText(l))
		}
		return strings.Join(lines, "\n")
	},
	"size": func(w *world, _ *testing.T, f fields, rest string) string {
		w.sizes = append(w.sizes, TableSize{rest, uint64(f.int("bytes"))})
		return ""
	},
	"split": func(w *world, _ *testing.T, f fields, rest string) string {
		start, limit, _ := strings.Cut(rest, " ")
		l := SplitLoad{Start: start, Limit: limit, Tables: []string{"Users"}, Score: f.int("score"), Unsplittable: []string{"HOT_ROW"}}
		if tables := f["tables"]; tables != "" {
			l.Tables = strings.Split(tables, ",")
		}
		switch reasons := f["reasons"]; reasons {
		case "":
		case "none":
			l.Unsplittable = nil
		default:
			l.Unsplittable = []string{reasons}
		}
		w.splits = append(w.splits, l)
		return ""
	},
	"coolSplits": func(w *world, _ *testing.T, _ fields, _ string) string {
		w.splits = nil
		return ""
	},
	"point": func(w *world, _ *testing.T, f fields, rest string) string {
		w.points = append(w.points, SplitPoint{Table: f["table"], Index: f["index"], Initiator: "CloudAddSplitPointsAPI", Key: rest, Expires: w.now})
		return ""
	},
	"policy": func(w *world, _ *testing.T, f fields, rest string) string {
		p := DeletionPolicy{Table: rest, Undeletable: f.int("undeletable")}
		if f["ran"] != "" {
			p.Processed = w.now
		}
		w.policies = append(w.policies, p)
		return ""
	},
	"task": func(w *world, _ *testing.T, f fields, rest string) string {
		w.tasks = append(w.tasks, Task{Name: rest, Processed: w.now, Status: f["status"], Undeletable: f.int("undeletable")})
		return ""
	},
	"advance": func(w *world, t *testing.T, _ fields, _ string) string {
		if err := w.c.Advance(); err != nil {
			t.Fatal(err)
		}
		return ""
	},
	// reopen closes the collector and the store, and opens them again.
	"reopen": func(w *world, t *testing.T, _ fields, _ string) string {
		if err := w.c.Close(); err != nil {
			t.Fatal(err)
		}
		w.store.Close()
		w.openStore(t)
		return ""
	},
	// crash opens another collector on the data that was synced, as after a power failure.
	"crash": func(w *world, t *testing.T, _ fields, _ string) string {
		crashed := w.fs.CrashClone(vfs.CrashCloneCfg{})
		w.store.Close()
		w.fs = crashed
		w.openStore(t)
		return ""
	},
	// kill opens another collector on the data that was written, synced or not, as after kill -9 of the process.
	"kill": func(w *world, _ *testing.T, _ fields, _ string) string {
		w.open()
		return ""
	},
}

type fields map[string]string

func (f fields) int(name string) int64 {
	n, _ := strconv.ParseInt(f[name], 10, 64)
	return n
}

func (f fields) float(name string) float64 {
	n, _ := strconv.ParseFloat(f[name], 64)
	return n
}

func (f fields) duration(name string) time.Duration {
	d, _ := time.ParseDuration(f[name])
	return d
}

// accesses parses fields such as reads=Table.A,B writes=Table@Index1@Index2.C deletes=Table. The columns after the dot
// are columns of the table and of each of the indexes.
func (f fields) accesses() (list []*Access) {
	for name, op := range map[string]Op{"reads": OpQuery, "writes": OpWrite, "deletes": OpDelete, "replaces": OpReplace, "checks": OpCheck} {
		if v := f[name]; v != "" {
			list = append(list, access(op, v))
		}
	}
	return list
}

func access(op Op, text string) *Access {
	target, columns, _ := strings.Cut(text, ".")
	targets := strings.Split(target, "@")
	var list []string
	if columns != "" {
		list = strings.Split(columns, ",")
	}
	var entries []*Access
	for _, index := range targets[1:] {
		entries = append(entries, NewAccess(op, index, list))
	}
	return NewAccess(op, targets[0], list, entries...)
}

func (w *world) columns() string {
	var b strings.Builder
	for _, t := range w.c.Tables() {
		b.WriteString(t.Name + "\n")
		for _, c := range t.Columns {
			fmt.Fprintf(&b, "  %s %s", c.Name, c.Type)
			if c.NotNull {
				b.WriteString(" NOT NULL")
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func (w *world) table(t testing.TB, name string) *schema.Table {
	for _, table := range w.c.Tables() {
		if table.Name == name {
			return table
		}
	}
	t.Fatalf("there is no table %s", name)
	return nil
}

// rows formats the rows of a table. If columns are given, each row is one line with the values of these columns.
// Otherwise each column of each row has a line of its own.
func (w *world) rows(t testing.TB, name string, columns []string) string {
	table := w.table(t, name)
	rows, err := table.Rows(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, r := range rows {
		sep := ""
		for i, c := range table.Columns {
			if r[i].Kind() != c.Type.Kind {
				t.Errorf("%s.%s is a %s, not a %s", name, c.Name, r[i].Kind(), c.Type)
			}
			if len(columns) == 0 {
				fmt.Fprintf(&b, "%s: %s\n", c.Name, show(r[i]))
				continue
			}
			for _, want := range columns {
				if c.Name == want {
					b.WriteString(sep + show(r[i]))
					sep = " | "
				}
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func show(v value.Value) string {
	if v.IsNull() {
		return "NULL"
	}
	switch v.Kind() {
	case value.Int64:
		return strconv.FormatInt(v.AsInt64(), 10)
	case value.Float64:
		return strconv.FormatFloat(v.AsFloat64(), 'g', 10, 64)
	case value.Bool:
		return strconv.FormatBool(v.AsBool())
	case value.Timestamp:
		return v.AsTime().Format("2006-01-02 15:04:05")
	case value.Bytes:
		return strconv.Quote(string(v.AsBytes()))
	case value.Array, value.Struct:
		var parts []string
		for _, e := range v.AsList() {
			parts = append(parts, show(e))
		}
		open, end := "[", "]"
		if v.Kind() == value.Struct {
			open, end = "(", ")"
		}
		return open + strings.Join(parts, " ") + end
	}
	return v.AsString()
}
