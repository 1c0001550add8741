package retrieval

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"cloud.google.com/go/spanner"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bulk"
	bulkfile "github.com/crowfoot-db/crowfoot/bulk/file"
)

// retrievedFile is a file that holds the rows of the table.
type retrievedFile struct {
	title  string
	codec  string
	format bulkfile.Format
	name   string
}

const (
	textTitle    = "text (TBL)"
	parquetTitle = "Parquet"
	arrowTitle   = "Arrow IPC"
)

// fileFormats lists the formats of the files that the run reads, with the compression that package bulk/file uses for
// each.
var fileFormats = []retrievedFile{
	{title: textTitle, codec: "none", format: bulkfile.TBL},
	{title: parquetTitle, codec: "zstd", format: bulkfile.Parquet},
	{title: arrowTitle, codec: "LZ4", format: bulkfile.Arrow},
}

// file returns the file with the given title.
func (b *retrieval) file(title string) retrievedFile {
	return b.files[slices.IndexFunc(b.files, func(f retrievedFile) bool { return f.title == title })]
}

// writeFiles writes a file in each format. The text file is the output of TPC-H's generator; the other files are made
// from the text file.
func (b *retrieval) writeFiles(ctx context.Context, r *harness.Runner) error {
	snapshot, err := bulk.NewSnapshot(ctx, r.Target.Client, spanner.StrongRead())
	if err != nil {
		return err
	}
	defer snapshot.Close()
	table, err := snapshot.Table(ctx, b.table.name, bulk.Options{})
	if err != nil {
		return err
	}
	b.schema = table.Schema()
	for _, f := range fileFormats {
		r.Screen.Note("writing " + b.table.name + " as " + f.title)
		f.name = filepath.Join(r.Target.Root, b.table.name+"."+string(f.format))
		b.files = append(b.files, f)
		if err := b.writeFile(ctx, f); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
		info, err := os.Stat(f.name)
		if err != nil {
			return err
		}
		r.Fact("%s of %s, codec %s: %.0f MB", f.title, b.table.name, f.codec, float64(info.Size())/1e6)
	}
	return nil
}

func (b *retrieval) writeFile(ctx context.Context, f retrievedFile) (err error) {
	out, err := os.Create(f.name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if f.format == bulkfile.TBL {
		w := bufio.NewWriterSize(out, 1<<20)
		return errors.Join(b.table.writeText(w, b.rows), w.Flush())
	}
	w, err := bulkfile.NewWriter(out, f.format, b.schema)
	if err != nil {
		return err
	}
	err = b.eachBatch(ctx, b.files[0], 1, w.Write)
	return errors.Join(err, w.Close())
}

// eachBatch reads a file with n readers and calls visit with each batch.
func (b *retrieval) eachBatch(ctx context.Context, f retrievedFile, n int, visit func(arrow.RecordBatch) error) error {
	source, err := bulkfile.Open([]string{f.name}, bulkfile.Options{Schema: b.schema})
	if err != nil {
		return err
	}
	err = bulk.Each(ctx, source, n, func(_ context.Context, _ int, batch arrow.RecordBatch) error { return visit(batch) })
	return errors.Join(err, source.Close())
}

// fromFiles returns paths that read the rows of the table from files with n readers.
func (b *retrieval) fromFiles(n int) (paths []harness.Path) {
	for _, f := range b.files {
		paths = append(paths, harness.Path{Name: f.title, Codec: f.codec, Clients: 1, Local: true, Operation: func(ctx context.Context, _ harness.Call) (int, error) {
			var rows atomic.Int64
			err := b.eachBatch(ctx, f, n, func(batch arrow.RecordBatch) error {
				rows.Add(batch.NumRows())
				return nil
			})
			return b.whole(rows.Load(), err)
		}})
	}
	return paths
}
