package database

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestVerify damages undamaged data in one way at a time, by writes that bypass the checks of package table. It
// compares the findings of Verify with the expected ones.
func TestVerify(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(b *bed, w table.Writer) error
		want   []string
	}{
		{"none", func(*bed, table.Writer) error { return nil }, nil},
		{"index entry deleted", func(b *bed, w table.Writer) error { return w.Delete(b.t.Context(), b.entry("ByV", 20, 2)) },
			[]string{"row without its index entry: ByV: row {Int64(2)} of T"}},
		{"surplus index entry", func(b *bed, w table.Writer) error {
			return w.Put(b.t.Context(), b.entry("ByV", 77, 99), []byte{1}, nil, nil)
		}, []string{"index entry without its row: ByV: {Int64(77), Int64(99)}"}},
		{"index entry of another value", func(b *bed, w table.Writer) error {
			return w.Put(b.t.Context(), b.entry("ByV", 21, 2), []byte{1}, nil, nil)
		}, []string{"index entry without its row: ByV: {Int64(21), Int64(2)}: its row has other values"}},
		{"another stored value", func(b *bed, w table.Writer) error {
			return w.Put(b.t.Context(), b.entry("ByV", 20, 2), []byte{1}, nil, nil)
		}, []string{"index entry that differs from its row: ByV: {Int64(20), Int64(2)}"}},
		{"two entries of a unique index", func(b *bed, w table.Writer) error {
			return w.Put(b.t.Context(), b.entry("UniqueByV", 10, 2), []byte{1}, nil, nil)
		}, []string{"two entries of a UNIQUE index with one key: UniqueByV: {Int64(10), Int64(2)}", "index entry without its row: UniqueByV: {Int64(10), Int64(2)}: its row has other values"}},
		{"parent row deleted", func(b *bed, w table.Writer) error { return w.Delete(b.t.Context(), b.row("Parents", 2)) },
			[]string{"row without its parent row: Children: {Int64(2), Int64(1)}", "row that refers to a row that does not exist: T: {Int64(2)}: Refers"}},
		{"wrong generated column", func(b *bed, w table.Writer) error {
			return w.Put(b.t.Context(), b.row("T", 2), storedRow(b, "T", map[string]int64{"V": 20, "G": 41, "R": 2}), nil, nil)
		}, []string{"wrong value of a generated column: T: {Int64(2)}: column G"}},
		{"broken CHECK", func(b *bed, w table.Writer) error {
			return w.Put(b.t.Context(), b.row("Children", 2, 1), storedRow(b, "Children", map[string]int64{"N": -1}), nil, nil)
		}, []string{"row that breaks a CHECK constraint: Children: {Int64(2), Int64(1)}: Positive"}},
		{"NULL in a column that takes none", func(b *bed, w table.Writer) error {
			return w.Put(b.t.Context(), b.row("Children", 2, 1), []byte{1}, nil, nil)
		}, []string{"value that its column may not have: Children: {Int64(2), Int64(1)}: Cannot specify a null value for column: N in table: Children"}},
		{"malformed row", func(b *bed, w table.Writer) error {
			return w.Put(b.t.Context(), b.row("Children", 2, 1), []byte{9, 9}, nil, nil)
		}, []string{"malformed row or entry: Children: {Int64(2), Int64(1)}: malformed stored row: 0909"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := verified(t)
			b.write(func(w table.Writer) error { return c.damage(b, w) })
			if got := b.verify(); !slices.Equal(got, c.want) {
				t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// verified returns a database with every kind of constraint, and valid rows.
func verified(t *testing.T) *bed {
	b := create(t,
		"CREATE TABLE Parents (P INT64, V INT64) PRIMARY KEY (P)",
		"CREATE TABLE Children (P INT64, C INT64, N INT64 NOT NULL, CONSTRAINT Positive CHECK (N > 0)) PRIMARY KEY (P, C), INTERLEAVE IN PARENT Parents",
		"CREATE TABLE T (K INT64, V INT64, G INT64 AS (V * 2) STORED, R INT64, CONSTRAINT Refers FOREIGN KEY (R) REFERENCES Parents (P)) PRIMARY KEY (K)",
		"CREATE INDEX ByV ON T(V) STORING (R)",
		"CREATE NULL_FILTERED INDEX ByVNotNull ON T(V DESC)",
		"CREATE UNIQUE INDEX UniqueByV ON T(V)",
	)
	b.write(func(w table.Writer) error {
		c := b.db.Catalog()
		var list []table.Mutation
		for _, m := range []struct {
			table   string
			columns []string
			rows    [][]value.Value
		}{
			{"Parents", []string{"P", "V"}, ints([]int64{1, 0}, []int64{2, 0}, []int64{3, 0})},
			{"Children", []string{"P", "C", "N"}, ints([]int64{1, 1, 1}, []int64{2, 1, 1})},
			{"T", []string{"K", "V", "R"}, ints([]int64{1, 10, 1}, []int64{2, 20, 2}, []int64{3, 30, 3})},
			{"T", []string{"K"}, ints([]int64{4})},
		} {
			mutation := table.Mutation{Op: table.Insert, Table: c.Table(m.table), Rows: m.rows}
			for _, name := range m.columns {
				mutation.Columns = append(mutation.Columns, mutation.Table.Column(name))
			}
			list = append(list, mutation)
		}
		tables, err := b.db.Tables(c)
		if err == nil {
			_, err = table.Apply(t.Context(), w, tables, list, time.Now())
		}
		return err
	})
	return b
}

// TestVerifyVirtualKey checks that Verify finds nothing wrong with rows whose key has a generated column, nor with
// their index entries, children and referring rows. It must report a row whose key differs from the computed one.
func TestVerifyVirtualKey(t *testing.T) {
	b := create(t,
		"CREATE TABLE T (Id INT64 NOT NULL, V INT64, Shard INT64 AS (MOD(V, 10))) PRIMARY KEY (Shard, Id), OPTIONS (columnar_policy = 'enabled')",
		"CREATE TABLE C (Shard INT64, Id INT64 NOT NULL, N INT64 AS (Id * 2)) PRIMARY KEY (Shard, Id, N), INTERLEAVE IN PARENT T",
		"CREATE INDEX ByN ON C(N)",
	)
	if err := b.insert("T", [2]int64{1, 13}, [2]int64{2, 22}); err != nil {
		t.Fatal(err)
	}
	if err := b.insert("C", [2]int64{3, 1}, [2]int64{2, 2}); err != nil {
		t.Fatal(err)
	}
	if found := b.verify(); found != nil {
		t.Errorf("found %q", found)
	}
	b.write(func(w table.Writer) error {
		return w.Put(b.t.Context(), b.row("T", 4, 9), storedRow(b, "T", map[string]int64{"V": 15}), nil, nil)
	})
	if found := b.verify(); len(found) != 1 || !strings.Contains(found[0], "wrong value of a generated column") {
		t.Errorf("found %q", found)
	}
}

// TestVerifyPlacement checks that Verify accepts rows whose PLACEMENT KEY column names a placement of the schema, and
// reports a row that names another.
func TestVerifyPlacement(t *testing.T) {
	b := create(t,
		"CREATE PLACEMENT Europe OPTIONS (instance_partition = 'eu')",
		"CREATE TABLE Users (K INT64 NOT NULL, Place STRING(MAX) NOT NULL PLACEMENT KEY) PRIMARY KEY (K)",
	)
	if err := b.commit("INSERT INTO Users (K, Place) VALUES (1, 'default'), (2, 'Europe')"); err != nil {
		t.Fatal(err)
	}
	if found := b.verify(); found != nil {
		t.Errorf("found %q", found)
	}
	b.write(func(w table.Writer) error {
		place, c := value.OfString("Nowhere"), b.db.Catalog().Table("Users").Column("Place")
		row := []byte{1, byte(c.ID), byte(value.RowSize(place, c.Type))}
		return w.Put(b.t.Context(), b.row("Users", 3), value.AppendRow(row, place, c.Type), nil, nil)
	})
	if found := b.verify(); len(found) != 1 || !strings.Contains(found[0], "value that its column may not have: Users: {Int64(3)}") {
		t.Errorf("found %q", found)
	}
}

func ints(rows ...[]int64) (list [][]value.Value) {
	for _, r := range rows {
		var row []value.Value
		for _, n := range r {
			row = append(row, value.OfInt64(n))
		}
		list = append(list, row)
	}
	return list
}

// write calls f with the writer of a transaction, and commits the transaction. f may bypass the checks of package
// table.
func (b *bed) write(f func(w table.Writer) error) {
	b.t.Helper()
	tx := b.db.Transactions().Begin(txn.Options{})
	if _, err := tx.Commit(context.Background(), f, txn.CommitOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) row(tableName string, key ...int64) []byte {
	return table.TableLayout(b.db.Catalog().Table(tableName)).AppendKey(nil, ints(key)[0])
}

func (b *bed) entry(index string, key ...int64) []byte {
	return table.IndexLayout(b.db.Catalog().Index(index)).AppendKey(nil, ints(key)[0])
}

// storedRow returns the stored value of a row with these columns, in the format that table/rowvalue.go describes.
func storedRow(b *bed, tableName string, columns map[string]int64) []byte {
	row := []byte{1}
	for _, c := range b.db.Catalog().Table(tableName).Columns {
		if n, ok := columns[c.Name]; ok {
			v := value.OfInt64(n)
			row = append(row, byte(c.ID), byte(value.RowSize(v, c.Type)))
			row = value.AppendRow(row, v, c.Type)
		}
	}
	return row
}

func (b *bed) verify() (found []string) {
	b.t.Helper()
	cfg := Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}
	err := Verify(b.t.Context(), b.Registry.store, cfg, Verification{
		Begin: func(string, string) {},
		Found: func(_ string, f table.Finding) {
			found = append(found, fmt.Sprintf("%s: %s: %s", f.Kind, f.Object, f.Detail))
		},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}
