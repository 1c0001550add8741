package transfer

import (
	"bufio"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"cloud.google.com/go/spanner"
	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/file"
)

// ExportOptions are the parameters of Export.
type ExportOptions struct {
	Client     *spanner.Client
	Database   string   // projects/P/instances/I/databases/D, for the manifest
	Tables     []string // names of the tables to export; empty means all tables
	Query      string   // a query whose rows are exported instead of tables
	Dir        string   // the directory for the files, which is created if it does not exist
	Format     file.Format
	Timestamps arrowtype.Timestamps
	Bound      spanner.TimestampBound // selects the timestamp of a new export; an export that continues keeps its own
	DataBoost  bool
	Parallel   int      // the number of files that are written concurrently
	DDL        []string // DDL of the database, for the manifest; the format SpannerExport needs it
	// ProtoDescriptors holds the descriptors of the database's proto bundle, for the manifest.
	ProtoDescriptors []byte
	Progress         *Progress
	// Flight, if not nil, is a connection to the server of Client. If the server supports Arrow Flight, the export
	// reads rows through it: see bulk.Snapshot.UseFlight.
	Flight grpc.ClientConnInterface
}

// ExportResult is the result of an export.
type ExportResult struct {
	Manifest *Manifest // nil if the export is not complete
	Files    int       // how many files the rows are written to; 0 if the export has not begun
	Complete int       // how many of these files are complete
	Resumed  int       // how many of the complete files an earlier run has written
	// Beside names the objects of the database that the layout of SpannerExport cannot represent. If all tables are
	// exported, manifest.json has the definitions of these objects.
	Beside []string
}

// filesPerWriter is how many files a large table is divided into for each concurrent writer. It is more than one so
// that all writers have work until the end.
const filesPerWriter = 2

// Export writes tables, or the rows of a query, at one timestamp to files in a directory. Each file gets its final
// name when it is complete and synced. The manifest, which names all files, is written last. If an earlier export in
// this directory was interrupted, Export continues it and writes the missing files.
func Export(ctx context.Context, o ExportOptions) (result ExportResult, err error) {
	e := &exporter{ExportOptions: o}
	if err := makeDir(o.Dir); err != nil {
		return result, err
	}
	err = e.open(ctx)
	if e.snapshot != nil {
		defer e.snapshot.Close()
	}
	if err != nil {
		return result, err
	}
	result.Resumed = len(e.done)
	if e.Flight != nil {
		e.snapshot.UseFlight(e.Flight)
	}
	if err = e.define(ctx); err != nil {
		return result, errors.Join(err, e.journal.close())
	}
	if e.records != nil {
		result.Beside = e.records.beside
	}
	result.Files, err = e.run(ctx)
	result.Complete = len(e.done)
	if err == nil {
		result.Manifest, err = e.finish()
	}
	if err != nil {
		return result, errors.Join(err, e.journal.close())
	}
	return result, e.journal.remove()
}

// makeDir creates a directory and its parents, and syncs them, so that they survive a loss of power.
func makeDir(name string) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil
	}
	if err := makeDir(filepath.Dir(name)); err != nil {
		return err
	}
	if err := os.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(name))
}

// exporter is a running export.
type exporter struct {
	ExportOptions
	snapshot *bulk.Snapshot
	journal  *journal
	state    exportHeader
	rows     []*bulk.Rows    // the sources of the rows, one for each of state.Tables
	records  *spannerRecords // the Avro schemas of the database's objects; nil unless Format is SpannerExport

	mu   sync.Mutex
	done map[string]exportFile // the complete files, by name
}

// part is a file to write.
type part struct {
	name    string
	schema  *arrow.Schema
	segment bulk.Segment     // reads the rows of the file; nil if the file gets no rows
	record  *file.AvroRecord // the Avro schema of the file; for SpannerExport only
}

func (e *exporter) parts() (parts []part, err error) {
	for i, t := range e.state.Tables {
		n := max(len(t.Partitions), 1)
		for k := range n {
			p := part{name: fileName(t.Name, k, n, e.Format), schema: e.rows[i].Schema()}
			if e.Format == SpannerExport {
				if p.record = e.records.tables[strings.ToLower(t.Name)]; p.record == nil {
					return nil, fmt.Errorf("the DDL of the database has no table %s", t.Name)
				}
			}
			if k < len(t.Partitions) {
				of := &spanner.Partition{}
				if err := of.UnmarshalBinary(t.Partitions[k]); err != nil {
					return nil, fmt.Errorf("the state of the export is damaged: %w", err)
				}
				p.segment = e.rows[i].Partition(of, fmt.Sprintf("%s, partition %d of %d", t.Name, k+1, n))
			}
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// fileName returns the name of the k-th of a table's n files.
func fileName(table string, k, n int, format file.Format) string {
	if format == SpannerExport {
		return fmt.Sprintf("%s.avro-%05d-of-%05d", table, k, n)
	}
	return fmt.Sprintf("%s-%05d-of-%05d.%s", table, k, n, format)
}

// run writes the missing files. It returns the number of files that the export has in total.
func (e *exporter) run(ctx context.Context) (files int, err error) {
	parts, err := e.parts()
	if err != nil {
		return 0, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(e.Parallel, 1))
	e.Progress.addTotal(int64(len(parts)))
	for _, p := range parts {
		if e.isDone(p.name) {
			e.Progress.addDone(1)
			continue
		}
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			f, err := e.write(ctx, p)
			if err != nil {
				return err
			}
			e.Progress.addDone(1)
			return e.note(f)
		})
	}
	return len(parts), group.Wait()
}

func (e *exporter) newWriter(to io.Writer, p part) (file.Writer, error) {
	if p.record != nil {
		return file.NewAvroWriter(to, p.schema, *p.record)
	}
	return file.NewWriter(to, e.Format, p.schema)
}

// writeDefinition writes a file that has no rows, and whose schema defines an object of the database.
func (e *exporter) writeDefinition(r *file.AvroRecord) (exportFile, error) {
	name := r.Properties[0].Value // the property spannerName
	return e.write(context.Background(), part{name: fileName(name, 0, 1, SpannerExport), schema: arrow.NewSchema(nil, nil), record: r})
}

// partial is the suffix of an incomplete file's name.
const partial = ".partial"

// write writes a file, syncs it, and gives it its final name.
func (e *exporter) write(ctx context.Context, p part) (f exportFile, err error) {
	name := filepath.Join(e.Dir, p.name)
	out, err := os.Create(name + partial)
	if err != nil {
		return f, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", p.name, err), out.Close(), os.Remove(name+partial))
		}
	}()
	counted := &counter{to: out, sha256: sha256.New(), md5: md5.New()}
	buffered := bufio.NewWriterSize(counted, 1<<20)
	w, err := e.newWriter(buffered, p)
	if err != nil {
		return f, err
	}
	f.Name = p.name
	if p.segment != nil {
		err = bulk.EachOf(ctx, p.segment, func(batch arrow.RecordBatch, _ bulk.Reader) error {
			f.Rows += batch.NumRows()
			e.Progress.addRows(batch.NumRows())
			return w.Write(batch)
		})
	}
	for _, step := range []func() error{w.Close, buffered.Flush, out.Sync, out.Close} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		return f, err
	}
	f.Bytes, f.SHA256, f.MD5 = counted.bytes, hex.EncodeToString(counted.sha256.Sum(nil)), base64.StdEncoding.EncodeToString(counted.md5.Sum(nil))
	if err := os.Rename(name+partial, name); err != nil {
		return f, err
	}
	return f, syncDir(e.Dir)
}

// counter counts and hashes the bytes that are written. It also computes the MD5, which Spanner's own exports contain.
type counter struct {
	to          io.Writer
	bytes       int64
	sha256, md5 hash.Hash
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.bytes += int64(n)
	c.sha256.Write(b[:n])
	c.md5.Write(b[:n])
	return n, err
}
