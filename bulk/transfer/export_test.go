package transfer_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/file"
	"github.com/crowfoot-db/crowfoot/bulk/transfer"
	"github.com/crowfoot-db/crowfoot/clienttest"
)

func exportOptions(client *spanner.Client, dir string, format file.Format) transfer.ExportOptions {
	return transfer.ExportOptions{Client: client, Database: clienttest.Database, Dir: dir, Format: format, Bound: spanner.StrongRead(), Parallel: 2, Timestamps: arrowtype.Text}
}

// TestExportResumes checks that an export can continue after a write has failed as on a full disk. The failed export
// must end with an error that names the file, and must not write a manifest. Then the test deletes the rows of the
// table. When the same export is started again, it must continue at its old timestamp and write all rows.
func TestExportResumes(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	client := clienttest.Connect(t, customerDDL)
	const rows = 10_000
	if _, _, err := (load{table: "customer"}).run(t.Context(), t, client, customers(t, rows)); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// The export writes the table to one, two, three or four files. In each case, one of the files cannot be written.
	for _, name := range []string{"00000-of-00001", "00001-of-00002", "00001-of-00003", "00001-of-00004"} {
		if err := os.Symlink("/dev/full", filepath.Join(dir, "customer-"+name+".csv.partial")); err != nil {
			t.Fatal(err)
		}
	}
	o := exportOptions(client, dir, file.CSV)
	_, err := transfer.Export(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "customer-") || !strings.Contains(err.Error(), "no space left on device") {
		t.Fatalf("a full disk: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err == nil {
		t.Fatal("there is a manifest of an export that is not complete")
	}
	links, err := filepath.Glob(filepath.Join(dir, "*.partial"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range links {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Apply(t.Context(), []*spanner.Mutation{spanner.Delete("customer", spanner.AllKeys())}); err != nil {
		t.Fatal(err)
	}
	whole, err := filepath.Glob(filepath.Join(dir, "*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range whole { // complete files that are lost must be written again
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	result, err := transfer.Export(t.Context(), o)
	if err != nil || result.Manifest.Tables[0].Rows != rows {
		t.Fatalf("%+v, %v", result, err)
	}
	for _, f := range result.Manifest.Tables[0].Files {
		content, err := os.ReadFile(filepath.Join(dir, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != f.SHA256 || int64(len(content)) != f.Bytes || int64(strings.Count(string(content), "\n"))-1 != f.Rows {
			t.Errorf("%s is not what the manifest says: %+v", f.Name, f)
		}
	}
	if _, err := transfer.Export(t.Context(), o); err == nil || !strings.Contains(err.Error(), "has an export already") {
		t.Errorf("into a complete export: %v", err)
	}
	o.Format = file.TBL
	if _, err := transfer.Export(t.Context(), o); err == nil {
		t.Error("another format went into the directory")
	}
}

// TestExportOnce checks that an export that names a table twice is refused, since two writers would write the same
// files.
func TestExportOnce(t *testing.T) {
	o := exportOptions(clienttest.Connect(t, customerDDL), t.TempDir(), file.CSV)
	o.Tables = []string{"customer", "Customer"}
	if _, err := transfer.Export(t.Context(), o); err == nil || !strings.Contains(err.Error(), "named twice") {
		t.Errorf("a table twice: %v", err)
	}
}

// TestLongArrays checks that a batch has few rows if the rows have long arrays. This limits the memory of a batch, and
// keeps every column below 2 GiB, the limit of Arrow's offsets.
func TestLongArrays(t *testing.T) {
	client := clienttest.Connect(t, "CREATE TABLE T (K INT64, A ARRAY<STRING(MAX)>) PRIMARY KEY (K)")
	const rows = 8
	elem := strings.Repeat("x", bulk.BatchBytes/4)
	for k := range rows {
		if _, err := client.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("T", []string{"K", "A"}, []any{k, []string{elem, elem}})}); err != nil {
			t.Fatal(err)
		}
	}
	snapshot, err := bulk.NewSnapshot(t.Context(), client, spanner.StrongRead())
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	table, err := snapshot.Table(t.Context(), "T", bulk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	read := int64(0)
	err = bulk.Each(t.Context(), table, 1, func(_ context.Context, _ int, batch arrow.RecordBatch) error {
		if read += batch.NumRows(); batch.NumRows() > 2 {
			t.Errorf("a batch has %d rows of %d bytes", batch.NumRows(), 2*len(elem))
		}
		return nil
	})
	if err != nil || read != rows {
		t.Errorf("read %d rows, %v", read, err)
	}
}
