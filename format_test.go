package crowfoot_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"

	"github.com/crowfoot-db/crowfoot"
	"github.com/crowfoot-db/crowfoot/kv"
)

// TestFormats opens a stored data directory of every released format. Each was left by a killed process of that
// release. This release upgrades it. A client must then read the same from it as it did from the old release, also
// after another start.
func TestFormats(t *testing.T) {
	for f := kv.FirstFormat; f <= kv.LastFormat; f++ {
		want, err := os.ReadFile(formatFile(f, "txt"))
		if errors.Is(err, os.ErrNotExist) && f == kv.LastFormat {
			continue // its directory is stored when the release is made
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint(f), func(t *testing.T) {
			data := t.TempDir()
			unpackFormat(t, formatFile(f, "tgz"), data)
			for _, when := range []string{"upgraded", "started again"} {
				s, err := crowfoot.Start(t.Context(), crowfoot.Options{Data: data})
				if err != nil {
					t.Fatal(err)
				}
				t.Setenv("SPANNER_EMULATOR_HOST", s.GRPC)
				if got := dumpFormat(t); got != string(want) {
					t.Errorf("%s: %s", when, firstDifference(got, string(want)))
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if mark, err := os.ReadFile(filepath.Join(data, "CROWFOOT")); err != nil || string(mark) != fmt.Sprintf("crowfoot data directory, format %d\n", kv.LastFormat) {
					t.Errorf("%s: the mark says %q, %v", when, mark, err)
				}
			}
		})
	}
}

func unpackFormat(t *testing.T, file, dir string) {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	packed, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, h.Name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// dumpFormat prints the schema and the rows of the databases, and the rows as read through each index.
func dumpFormat(t *testing.T) string {
	t.Helper()
	ctx := context.Background()
	admin, err := database.NewDatabaseAdminClient(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	out := new(strings.Builder)
	for _, name := range formatDatabases {
		fmt.Fprintf(out, "== %s\n", name)
		ddl, err := admin.GetDatabaseDdl(ctx, &databasepb.GetDatabaseDdlRequest{Database: name})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range ddl.Statements {
			fmt.Fprintln(out, s)
		}
		dumpRows(t, out, name)
	}
	return out.String()
}

func dumpRows(t *testing.T, out io.Writer, name string) {
	t.Helper()
	c, err := spanner.NewClientWithConfig(context.Background(), name, spanner.ClientConfig{DisableNativeMetrics: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const columns = `SELECT TABLE_NAME, INDEX_NAME, STRING_AGG(COLUMN_NAME, ',' ORDER BY ORDINAL_POSITION)
		FROM INFORMATION_SCHEMA.INDEX_COLUMNS WHERE TABLE_SCHEMA = '' GROUP BY 1, 2 ORDER BY 1, 2`
	err = c.Single().Query(context.Background(), spanner.NewStatement(columns)).Do(func(r *spanner.Row) error {
		var tableName, index, keys string
		if err := r.Columns(&tableName, &index, &keys); err != nil {
			return err
		}
		if index == "PRIMARY_KEY" {
			sql := "SELECT * FROM " + tableName
			return dump(out, sql, c.Single().Query(context.Background(), spanner.NewStatement(sql)))
		}
		return dump(out, "index "+index, c.Single().ReadUsingIndex(context.Background(), tableName, index, spanner.AllKeys(), strings.Split(keys, ",")))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func dump(out io.Writer, title string, rows *spanner.RowIterator) error {
	fmt.Fprintf(out, "-- %s\n", title)
	return rows.Do(func(r *spanner.Row) error {
		var line []string
		for i := range r.Size() {
			var v spanner.GenericColumnValue
			if err := r.Column(i, &v); err != nil {
				return err
			}
			text, err := json.Marshal(v.Value.AsInterface())
			if err != nil {
				return err
			}
			if len(text) > 500 {
				text = fmt.Appendf(text[:20], "... (%d bytes, CRC %08x)", len(text), crc32.ChecksumIEEE(text))
			}
			line = append(line, string(text))
		}
		_, err := fmt.Fprintln(out, strings.Join(line, " | "))
		return err
	})
}

// firstDifference returns the first line in which two texts differ.
func firstDifference(got, want string) string {
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			return fmt.Sprintf("line %d:\n%.300s\nwant\n%.300s", i+1, gotLines[i], wantLines[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(gotLines), len(wantLines))
}
