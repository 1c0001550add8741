package transfer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

const edgesDDL = `CREATE TABLE A (K INT64, B BOOL, I INT64, F FLOAT64, G FLOAT32, N NUMERIC, S STRING(MAX), Y BYTES(MAX), D DATE, T TIMESTAMP, J JSON, U UUID,
  AB ARRAY<BOOL>, AI ARRAY<INT64>, AF ARRAY<FLOAT64>, AG ARRAY<FLOAT32>, AN ARRAY<NUMERIC>, AX ARRAY<STRING(MAX)>, AY ARRAY<BYTES(MAX)>, AD ARRAY<DATE>, AZ ARRAY<TIMESTAMP>,
  AJ ARRAY<JSON>, AU ARRAY<UUID>) PRIMARY KEY (K)`

// edgeRows lists values at the limits of the types, in SQL, for each column of edgesDDL.
var edgeRows = map[string][]string{
	"B": {"TRUE", "FALSE"},
	"I": {"0", "-9223372036854775808", "9223372036854775807"},
	"F": {"0.0", "-0.0", "1.7976931348623157e308", "5e-324", "CAST('nan' AS FLOAT64)", "CAST('inf' AS FLOAT64)", "CAST('-inf' AS FLOAT64)", "0.1"},
	"G": {"CAST(0 AS FLOAT32)", "CAST(3.4028235e38 AS FLOAT32)", "CAST(1e-45 AS FLOAT32)", "CAST('nan' AS FLOAT32)", "CAST('-inf' AS FLOAT32)", "CAST(0.1 AS FLOAT32)"},
	"N": {"NUMERIC '0'", "NUMERIC '99999999999999999999999999999.999999999'", "NUMERIC '-99999999999999999999999999999.999999999'", "NUMERIC '0.000000001'", "NUMERIC '1.5'"},
	"S": {"''", "'NULL'", `'\\N'`, `'"'`, `'""'`, "','", "'|'", `'\\'`, `'\\n'`, `'\n'`, `'\r\n'`, `'\t'`, "' a '", "'é 🐦'", `'\x00\x01'`, `'a"b,c\n|\\'`},
	"Y": {"b''", `b'\x00\xff'`, `b'\n'`},
	"D": {"DATE '0001-01-01'", "DATE '1969-12-31'", "DATE '2024-02-29'", "DATE '9999-12-31'"},
	"T": {"TIMESTAMP '1677-09-21T00:12:43.145224193Z'", "TIMESTAMP '2262-04-11T23:47:16.854775807Z'", "TIMESTAMP '1969-12-31T23:59:59.999999Z'",
		"TIMESTAMP '0001-01-01T00:00:00Z'", "TIMESTAMP '9999-12-31T23:59:59.999999999Z'"},
	"J":  {"JSON 'null'", "JSON '1'", `JSON '"a"'`, `JSON '{"a":[1,null,{"b":"é|,\\\\\\""}]}'`, "JSON '[]'"},
	"U":  {"CAST('00000000-0000-0000-0000-000000000000' AS UUID)", "CAST('ffffffff-ffff-ffff-ffff-ffffffffffff' AS UUID)"},
	"AB": {"[]", "[TRUE, NULL, FALSE]"},
	"AI": {"[]", "[NULL, -9223372036854775808]"},
	"AF": {"[CAST('nan' AS FLOAT64), NULL, 1.5]"},
	"AG": {"[CAST('-inf' AS FLOAT32), NULL, CAST(0.1 AS FLOAT32)]"},
	"AN": {"[NUMERIC '-0.000000001', NULL]"},
	"AX": {"[]", `['', NULL, 'a\n"|,\\', '[]']`},
	"AY": {`[b'', b'\x00\xff', NULL]`},
	"AD": {"[DATE '0001-01-01', NULL]"},
	"AZ": {"[TIMESTAMP '2026-11-22T10:00:00.123456789Z', NULL]"},
	"AJ": {`[JSON '{"a":1}', JSON 'null', NULL]`},
	"AU": {"[CAST('4192bff0-e1e0-43ce-a4db-912808c32493' AS UUID), NULL]"},
}

// tableText returns the rows of a table, each as a line of JSON.
func tableText(t *testing.T, client *spanner.Client, table string) (lines []string) {
	t.Helper()
	snapshot, err := bulk.NewSnapshot(t.Context(), client, spanner.StrongRead())
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	rows, err := snapshot.Table(t.Context(), table, bulk.Options{Timestamps: arrowtype.Text})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	w, err := file.NewWriter(&text, file.JSONLines, rows.Schema())
	if err == nil {
		err = bulk.Each(t.Context(), rows, 1, func(_ context.Context, _ int, batch arrow.RecordBatch) error { return w.Write(batch) })
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines = slices.Collect(strings.Lines(text.String()))
	slices.Sort(lines)
	return lines
}

// TestEveryValue checks that every value of edgeRows is unchanged when it is exported and then imported into another
// table, in each format. Each value is in a row of its own, whose other columns are NULL.
func TestEveryValue(t *testing.T) {
	client := clienttest.Connect(t, edgesDDL, strings.Replace(edgesDDL, "TABLE A", "TABLE Copy", 1))
	insert := func(k int, column, value string) {
		sql := fmt.Sprintf("INSERT INTO A (K, %s) VALUES (%d, %s)", column, k, value)
		_, err := client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.Update(ctx, spanner.NewStatement(sql))
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	k := 0
	for column, values := range edgeRows {
		for _, v := range values {
			k++
			insert(k, column, v)
		}
	}
	want := tableText(t, client, "A")
	if len(want) != k {
		t.Fatalf("%d rows of %d", len(want), k)
	}
	for _, format := range file.Formats {
		dir := filepath.Join(t.TempDir(), string(format))
		o := exportOptions(client, dir, format)
		o.Tables = []string{"A"}
		if _, err := transfer.Export(t.Context(), o); err != nil {
			t.Errorf("%s: %v", format, err)
			continue
		}
		names, err := filepath.Glob(filepath.Join(dir, "A-*"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Apply(t.Context(), []*spanner.Mutation{spanner.Delete("Copy", spanner.AllKeys())}); err != nil {
			t.Fatal(err)
		}
		if result, bad, err := (load{table: "Copy", mode: transfer.Insert}).run(t.Context(), t, client, names...); err != nil || result.Rows != int64(k) {
			t.Errorf("%s: %+v, %v, %v", format, result, bad, err)
			continue
		}
		for i, got := range tableText(t, client, "Copy") {
			if got != want[i] {
				t.Errorf("%s: %s, want %s", format, got, want[i])
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}
