package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/file"
)

// stateName is the name of the file that holds the state of an incomplete export. The file has a header with the
// snapshot and its partitions, and then a line for each complete file.
const stateName = "export.state"

const exportStateVersion = 1

type exportHeader struct {
	Version   int             `json:"version"`
	Database  string          `json:"database"`
	Timestamp time.Time       `json:"timestamp"`
	Format    file.Format     `json:"format"`
	Wanted    exportWanted    `json:"wanted"`
	Snapshot  []byte          `json:"snapshot"`
	Tables    []exportedTable `json:"tables"`
}

// exportWanted holds those options that must be the same when an export is continued.
type exportWanted struct {
	Tables     []string `json:"tables,omitempty"`
	Query      string   `json:"query,omitempty"`
	Timestamps int      `json:"timestamps"`
}

// exportedTable is a table, or the rows of a query, with the partitions that the server returned.
type exportedTable struct {
	Name       string   `json:"name"`
	Partitions [][]byte `json:"partitions"`
}

// exportFile describes a complete file.
type exportFile struct {
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	MD5    string `json:"md5"`
}

// queryName is the beginning of the names of the files with the rows of a query.
const queryName = "query"

// open continues the export in the directory, or begins one. It locks the directory so that no other export uses it.
func (e *exporter) open(ctx context.Context) error {
	name := filepath.Join(e.Dir, stateName)
	journal, lines, err := openJournal(name)
	if err != nil {
		return err
	}
	e.done = map[string]exportFile{}
	if len(lines) > 0 {
		err = e.resume(ctx, name, lines)
	} else if err = e.checkEmpty(); err == nil {
		if err = e.begin(ctx); err == nil {
			err = journal.append(e.state)
		}
	}
	switch {
	case err != nil && len(lines) == 0:
		return errors.Join(err, journal.remove())
	case err != nil:
		return errors.Join(err, journal.close())
	}
	e.journal = journal
	return nil
}

// checkEmpty returns an error if the directory contains more than the remains of an export that was killed early, since
// the exported files would be mixed with the other files.
func (e *exporter) checkEmpty() error {
	entries, err := os.ReadDir(e.Dir)
	if err != nil || len(entries) == 0 {
		return err
	}
	if slices.ContainsFunc(entries, func(f os.DirEntry) bool { return f.Name() == manifestName }) {
		return fmt.Errorf("%s has an export already, which is complete: name another directory", e.Dir)
	}
	left := slices.DeleteFunc(entries, func(f os.DirEntry) bool { // files of an export that was killed early may remain
		return f.Name() == stateName || strings.HasSuffix(f.Name(), partial)
	})
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("%s is not empty: name another directory", e.Dir)
}

func (e *exporter) wanted() exportWanted {
	return exportWanted{e.Tables, e.Query, int(e.Timestamps)}
}

// begin takes a snapshot and asks the server for partitions of the tables or of the query.
func (e *exporter) begin(ctx context.Context) (err error) {
	if e.snapshot, err = bulk.NewSnapshot(ctx, e.Client, e.Bound); err != nil {
		return err
	}
	e.state = exportHeader{Version: exportStateVersion, Database: e.Database, Format: e.Format, Wanted: e.wanted()}
	if e.state.Timestamp, err = e.snapshot.Timestamp(); err != nil {
		return err
	}
	if e.state.Snapshot, err = e.snapshot.MarshalBinary(); err != nil {
		return err
	}
	names, err := e.tables(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		rows, err := e.source(ctx, name)
		if err != nil {
			return err
		}
		partitions, err := rows.Partitions(ctx, filesPerWriter*max(e.Parallel, 1))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		t := exportedTable{Name: name}
		for _, p := range partitions {
			token, err := p.MarshalBinary()
			if err != nil {
				return err
			}
			t.Partitions = append(t.Partitions, token)
		}
		e.rows, e.state.Tables = append(e.rows, rows), append(e.state.Tables, t)
	}
	return nil
}

// tables returns the names of the tables to export. If the rows of a query are exported, it returns queryName instead.
func (e *exporter) tables(ctx context.Context) (names []string, err error) {
	if e.Query != "" {
		return []string{queryName}, nil
	}
	for _, name := range e.Tables { // a given name may be a synonym, or differ from the table's name in case
		t, err := bulk.Describe(ctx, e.Client, name)
		if err != nil {
			return nil, err
		}
		names = append(names, t.Name)
	}
	if len(e.Tables) > 0 {
		return names, checkOnce(names)
	}
	all, err := bulk.DescribeAll(ctx, e.Client)
	for _, t := range all {
		names = append(names, t.Name)
	}
	if len(names) == 0 && err == nil && e.Format != SpannerExport {
		err = errors.New("the database has no tables")
	}
	return names, err
}

// checkOnce returns an error if a table is named twice, because two writers would then write the same files.
func checkOnce(tables []string) error {
	keys := map[string]bool{}
	for _, name := range tables {
		key := strings.ToLower(name)
		if keys[key] {
			return fmt.Errorf("table %s is named twice", name)
		}
		keys[key] = true
	}
	return nil
}

func (e *exporter) source(ctx context.Context, name string) (*bulk.Rows, error) {
	o := bulk.Options{Timestamps: e.Timestamps, DataBoost: e.DataBoost}
	if e.Query != "" {
		return e.snapshot.Query(ctx, spanner.NewStatement(e.Query), o)
	}
	return e.snapshot.Table(ctx, name, o)
}

// resume restores the state of an export from lines, the contents of its state file.
func (e *exporter) resume(ctx context.Context, name string, lines []byte) (err error) {
	header, files, _ := bytes.Cut(lines, []byte{'\n'})
	if err := json.Unmarshal(header, &e.state); err != nil || e.state.Version != exportStateVersion {
		return fmt.Errorf("%s is not the state of an export", name)
	}
	if why := e.difference(); why != "" {
		return fmt.Errorf("%s has an export that was interrupted, and %s: name another directory, or delete it", e.Dir, why)
	}
	for line := range bytes.Lines(files) {
		var f exportFile
		if err := json.Unmarshal(line, &f); err != nil {
			return fmt.Errorf("%s is damaged: %s", name, line)
		}
		if info, err := os.Stat(filepath.Join(e.Dir, f.Name)); err == nil && info.Size() == f.Bytes {
			e.done[f.Name] = f // any other file is missing or has a wrong size, and is written again
		}
	}
	if e.snapshot, err = bulk.OpenSnapshot(e.Client, e.state.Snapshot); err != nil {
		return err
	}
	for _, t := range e.state.Tables {
		rows, err := e.source(ctx, t.Name)
		if err != nil {
			return fmt.Errorf("the export of %s cannot go on: %w (delete %s to begin anew)", e.state.Timestamp.UTC().Format(time.RFC3339Nano), err, e.Dir)
		}
		e.rows = append(e.rows, rows)
	}
	return nil
}

// difference says how the options of this export differ from those of the interrupted export, which the state file
// holds. It returns "" if they do not differ.
func (e *exporter) difference() string {
	was, is := e.state.Wanted, e.wanted()
	switch {
	case e.state.Database != e.Database:
		return fmt.Sprintf("that is of %s, this one of %s", e.state.Database, e.Database)
	case e.state.Format != e.Format:
		return fmt.Sprintf("that is in the format %s, this one in %s", e.state.Format, e.Format)
	case was.Query != is.Query || !slices.Equal(was.Tables, is.Tables):
		return fmt.Sprintf("that is of %s, this one of %s", was, is)
	case was.Timestamps != is.Timestamps:
		return "that writes timestamps in another way (--timestamps)"
	}
	return ""
}

func (w exportWanted) String() string {
	switch {
	case w.Query != "":
		return "the query " + w.Query
	case len(w.Tables) > 0:
		return strings.Join(w.Tables, ", ")
	}
	return "all tables"
}

// isDone reports whether a file is complete. It may be called while other files are written.
func (e *exporter) isDone(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.done[name]
	return ok
}

// note records that a file is complete.
func (e *exporter) note(f exportFile) error {
	e.mu.Lock()
	e.done[f.Name] = f
	e.mu.Unlock()
	return e.journal.append(f)
}

func columnsOf(s *arrow.Schema) (columns []ManifestColumn) {
	for _, f := range s.Fields() {
		columns = append(columns, manifestColumn(f))
	}
	return columns
}
