package retrieval

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// pythonReader is a Python program that reads the rows with the libraries that are installed.
//
//go:embed retrieval.py
var pythonReader string

// The paths that use Python's libraries.
const (
	pyarrowParquet = "Parquet to Arrow, pyarrow"
	pyarrowOwn     = "Parquet of pyarrow to Arrow, pyarrow"
	duckdbParquet  = "Parquet to Arrow, DuckDB"
	viaADBC        = "Flight SQL, ADBC (Python)"
)

// ownCodec is pyarrow's default codec for Parquet.
const ownCodec = "Snappy"

// startPython starts pythonReader with the Python that the user has named.
func (b *retrieval) startPython(ctx context.Context, r *harness.Runner) (err error) {
	const flag, all = "--python PATH", "pyarrow, DuckDB, ADBC"
	if b.Python == "" {
		b.lacks(all, flag)
		return nil
	}
	if b.python, err = startWorker(ctx, b.Python, "-c", pythonReader); err != nil {
		return fmt.Errorf("--python: %w", err)
	}
	b.workerFacts(r, b.python, "pip install it for "+b.Python)
	if b.python.can("pyarrow") {
		b.rewritten = filepath.Join(r.Target.Root, b.table.name+".pyarrow.parquet")
		b.temporary = append(b.temporary, b.rewritten)
		r.Screen.Note("writing Parquet by pyarrow")
		_, err := b.whole(b.python.ask(ctx, "pyarrow_rewrite", b.file(parquetTitle).name, b.rewritten))
		return b.orWithout(ctx, r, b.python, "pyarrow", err)
	}
	return nil
}

// orWithout handles err, the failure of a library before any measurement. It adds the failure to the report, and lets
// the run continue without the library.
func (b *retrieval) orWithout(ctx context.Context, r *harness.Runner, w *worker, library string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	r.Fact(report.FailurePrefix+"%s: %s", library, report.OneLine(err))
	delete(w.has, library)
	return nil
}

// workerFacts adds to the report which libraries a worker has, and which it lacks. The parameter remedy says how to
// get the missing libraries.
func (b *retrieval) workerFacts(r *harness.Runner, w *worker, remedy string) {
	for _, name := range slices.Sorted(maps.Keys(w.has)) {
		r.Fact("%s %s", name, w.has[name])
	}
	for _, name := range w.lacking {
		b.lacks(name, remedy)
	}
}

// fromPython returns paths that read the rows of the table with Python's libraries, using n threads.
func (b *retrieval) fromPython(n int) (paths []harness.Path) {
	threads, parquet := fmt.Sprint(n), b.file(parquetTitle)
	if b.python.can("pyarrow") {
		paths = append(paths, b.byWorker(b.python, pyarrowParquet, parquet.codec, "pyarrow_parquet", parquet.name, threads),
			b.byWorker(b.python, pyarrowOwn, ownCodec, "pyarrow_parquet", b.rewritten, threads))
	}
	if b.python.can("duckdb") {
		paths = append(paths, b.byWorker(b.python, duckdbParquet, parquet.codec, "duckdb_parquet", parquet.name, threads))
	}
	return paths
}

// fromADBC returns a path that reads the target's rows with Arrow's ADBC driver for Python.
func (b *retrieval) fromADBC() (paths []harness.Path) {
	if !b.python.can("adbc") {
		return nil
	}
	p := b.byWorker(b.python, viaADBC, flightCodec, "adbc", b.address, b.flightSQL.database, b.table.query())
	p.Method, p.Local = "DoGet", false
	return []harness.Path{p}
}

// byWorker returns a path whose operation is a request to a worker. The worker's process is the client of the path, so
// its CPU time is the client's.
func (b *retrieval) byWorker(w *worker, name, codec string, request ...string) harness.Path {
	return harness.Path{Name: name, Codec: codec, Clients: 1, Local: true, Foreign: true, ClientCPU: w.cpu, Operation: func(ctx context.Context, _ harness.Call) (int, error) {
		return b.whole(w.ask(ctx, request...))
	}}
}

// can reports whether the worker has a library. The worker may be nil.
func (w *worker) can(library string) bool { return w != nil && w.has[library] != "" }
