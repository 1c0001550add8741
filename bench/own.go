package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"cloud.google.com/go/spanner"
)

// Files are a user's own workload: each file is one way to a result, and they take turns.
type Files struct {
	Paths []File
	DDL   string // file of statements that make the tables; "" if they are there
	Load  string // file of mutations that fill them, once for each of Settings.Rows; "" is none
}

// File is a workload file of a kind.
type File struct {
	Kind Kind
	Name string
}

// Kind is what a workload file holds.
type Kind string

// The kinds, named as their flags: see sqlFile, readFile and writeFile for what stands in them.
const (
	SQLFile   Kind = "sql"
	ReadFile  Kind = "read"
	WriteFile Kind = "write"
)

// workload is a file that has been read.
type workload interface {
	path(*spanner.Client) path
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

// Own compares the user's own ways with each other, all with the first. The files are read at once, so that
// a mistake in them does not wait for a server.
func Own(files Files) (Benchmark, error) {
	if len(files.Paths) == 0 {
		return Benchmark{}, errors.New("own needs at least one file: --sql, --read or --write")
	}
	o := own{files: files}
	for _, f := range files.Paths {
		w, err := f.open()
		if err != nil {
			return Benchmark{}, err
		}
		o.workloads = append(o.workloads, w)
	}
	if files.DDL != "" {
		text, err := os.ReadFile(files.DDL)
		if err != nil {
			return Benchmark{}, err
		}
		o.ddl = splitDDL(string(text))
	}
	if files.Load != "" {
		w, err := openWrite(files.Load)
		if err != nil {
			return Benchmark{}, err
		}
		o.load = w
	}
	return Benchmark{name: "own", about: "Your own ways to a result; all are held against the first.", prepare: o.prepare}, nil
}

type own struct {
	files     Files
	workloads []workload
	ddl       []string
	load      *writeFile
}

// splitDDL cuts statements that end with a ; at the end of a line.
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

func (o own) prepare(ctx context.Context, r *run) ([]experiment, error) {
	if r.target.process != nil && o.ddl == nil {
		return nil, errors.New("the embedded server has no tables: name a file by --ddl, or a --database")
	}
	if o.ddl != nil {
		if err := r.target.createTables(ctx, o.ddl...); err != nil {
			return nil, err
		}
	}
	if o.load != nil {
		row := func(i int64) []*spanner.Mutation {
			return o.load.draw(call{rand.New(rand.NewPCG(uint64(i), loadSeed)), ""})
		}
		if _, err := r.fill(ctx, o.load.name, r.Rows, row); err != nil {
			return nil, err
		}
	}
	e := experiment{name: "own", title: "own workload"}
	seen := map[string]int{}
	for _, w := range o.workloads {
		p := w.path(r.target.client)
		if seen[p.name]++; seen[p.name] > 1 {
			p.name = fmt.Sprintf("%s (%d)", p.name, seen[p.name])
		}
		e.paths = append(e.paths, p)
	}
	e.pairs = against(e.paths)
	return []experiment{e}, nil
}

// loadSeed makes the rows that are loaded the same in every run, as far as their rules allow.
const loadSeed = 1
