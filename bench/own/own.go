package own

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// Files describes a user's own workload. Each file of Paths is one way to the same result, and the ways take turns.
type Files struct {
	Paths []File
	DDL   string // file of statements that create the tables; "" if they exist
	Load  string // file of mutations that fill the tables, run Settings.Rows times; "" for none
}

// File is the name of a workload file, and its kind.
type File struct {
	Kind Kind
	Name string
}

// Kind is the kind of a workload file.
type Kind string

// The kinds of workload files, which have the names of their flags. The comments of sqlFile, readFile and writeFile
// describe the syntax.
const (
	SQLFile   Kind = "sql"
	ReadFile  Kind = "read"
	WriteFile Kind = "write"
)

// FileHelp explains the syntax of workload files to a user.
const FileHelp = `Each file is one way to a result; the ways take turns, and all are held against the first.

  --sql FILE     -- @id INT64 1..100000
                 SELECT Name FROM Singers WHERE Id = @id

  --read FILE    @ids ARRAY<INT64> 10 of 1..100000
                 table   Singers
                 columns Id, Name
                 keys    @ids

  --write FILE   @id   STRING uuid
                 @name STRING letters 20
                 insert Singers Id = @id, Name = @name

In SQL, statements end with ; at the end of a line; DML runs in one transaction. Comments may
hold the lines "batch" (one ExecuteBatchDml) and "last_statement". A read has lines "key @a, @b",
"keys @list", "range @a to @b" (both included) or "all", and may have "index NAME" and "limit N".
A write has lines insert, update, insert_or_update, replace TABLE Column = value, ...; and
delete TABLE key @a, @b; "at_least_once" leaves the transaction out. "repeat N" makes N of it
in one operation, drawn anew. A value is @parameter, 'text', a number, true, false or null.

Parameters are drawn for each operation:

  @id    INT64     1..1000             both ends included; also FLOAT64, DATE, TIMESTAMP
  @new   INT64     sequence 1          counts up, over all clients
  @last  INT64     @id + 9             from a parameter above
  @key   STRING    uuid
  @text  STRING    letters 100
  @user  STRING    user-%06d 1..1000   a number in a text
  @kind  STRING    one of red, green   also INT64, FLOAT64
  @blob  BYTES     16
  @flag  BOOL
  @at    TIMESTAMP now
  @ids   ARRAY<INT64> 10 of 1..1000    ten different ones
`

// workload is a workload file that has been parsed.
type workload interface {
	path() harness.Path
}

func (f File) open() (workload, error) {
	switch f.Kind {
	case SQLFile:
		return openSQL(f.Name)
	case ReadFile:
		return openRead(f.Name)
	}
	return openWrite(f.Name)
}

// New returns a benchmark that compares each of the user's ways with the first one. It reads the files at once, so
// that a mistake in a file is reported before a server starts.
func New(files Files) (harness.Benchmark, error) {
	if len(files.Paths) == 0 {
		return harness.Benchmark{}, bench.UsageErrorf("own needs at least one file: --sql, --read or --write")
	}
	o := own{files: files}
	for _, f := range files.Paths {
		w, err := f.open()
		if err != nil {
			return harness.Benchmark{}, bench.AsUsageError(err)
		}
		o.workloads = append(o.workloads, w)
	}
	if files.DDL != "" {
		text, err := os.ReadFile(files.DDL)
		if err != nil {
			return harness.Benchmark{}, bench.AsUsageError(err)
		}
		o.ddl = splitDDL(string(text))
	}
	if files.Load != "" {
		w, err := openWrite(files.Load)
		if err != nil {
			return harness.Benchmark{}, bench.AsUsageError(err)
		}
		o.load = w
	}
	return harness.Benchmark{Name: "own", About: "Your own ways to a result; all are held against the first.", Check: o.check, Prepare: o.prepare}, nil
}

type own struct {
	files     Files
	workloads []workload
	ddl       []string
	load      *writeFile
}

// splitDDL splits a text into statements. A statement ends with a ; at the end of a line.
func splitDDL(text string) (list []string) {
	var statement []string
	add := func() {
		if s := strings.TrimSpace(strings.Join(statement, "\n")); s != "" {
			list = append(list, s)
		}
		statement = nil
	}
	for line := range strings.Lines(text) {
		rest, ends := strings.CutSuffix(strings.TrimRight(line, " \t\r\n"), ";")
		if statement = append(statement, rest); ends {
			add()
		}
	}
	add()
	return list
}

func (o own) check(s bench.Settings) error {
	if s.Database == "" && o.ddl == nil {
		return errors.New("the embedded server has no tables: name a file by --ddl, or a --database")
	}
	return nil
}

func (o own) prepare(ctx context.Context, r *harness.Runner) ([]harness.Experiment, error) {
	if o.ddl != nil {
		if err := r.Target.CreateTables(ctx, o.ddl...); err != nil {
			return nil, err
		}
	}
	if o.load != nil {
		row := func(i int64) []*spanner.Mutation {
			return o.load.draw(harness.Call{Rand: rand.New(rand.NewPCG(uint64(i), loadSeed))})
		}
		if _, err := r.Fill(ctx, o.load.name, r.Rows, row); err != nil {
			return nil, err
		}
	}
	e := harness.Experiment{Name: "own", Title: "own workload"}
	counts := map[string]int{}
	for _, w := range o.workloads {
		p := w.path()
		if counts[p.Name]++; counts[p.Name] > 1 {
			p.Name = fmt.Sprintf("%s (%d)", p.Name, counts[p.Name])
		}
		e.Paths = append(e.Paths, p)
	}
	e.Pairs = harness.AgainstFirst(e.Paths)
	return []harness.Experiment{e}, nil
}

// loadSeed is the seed for random values while the tables are filled. Because it is fixed, every run loads the same
// rows, except for values of the rules uuid and now.
const loadSeed = 1
