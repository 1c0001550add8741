package avro

import (
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	adminapi "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/twmb/avro"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot"
	"github.com/crowfoot-db/crowfoot/watch"
)

const databaseName = "projects/p/instances/i/databases/d"

// changeOf returns a change of table music.T. values lists column names, each followed by the column's value as text.
func changeOf(kind watch.Kind, values ...string) *watch.Change {
	c := &watch.Change{Kind: kind, Table: watch.TableID{Database: databaseName, Schema: "music", Name: "T"}}
	for i := 0; i < len(values); i += 2 {
		c.Values.Columns = append(c.Values.Columns, watch.Column{Name: values[i], Type: scalar(sppb.TypeCode_INT64)})
		c.Values.Values = append(c.Values.Values, structpb.NewStringValue(values[i+1]))
	}
	c.Key = watch.Row{Columns: []watch.Column{{Name: "K", Type: scalar(sppb.TypeCode_INT64)}}, Values: []*structpb.Value{structpb.NewStringValue("1")}}
	return c
}

// TestEncoder checks that the schema is that of the table, even after the table has changed, and that records of a
// stream may lack columns.
func TestEncoder(t *testing.T) {
	crowfoot.ForTest(t, databaseName, "CREATE SCHEMA music", "CREATE TABLE music.T (K INT64 NOT NULL, A INT64 NOT NULL, B INT64) PRIMARY KEY (K)")
	client, err := spanner.NewClient(t.Context(), databaseName)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	rows, records := NewEncoder(client), NewStreamEncoder(client)
	check := func(e *Encoder, c *watch.Change, wantRow, wantSchema string) {
		t.Helper()
		text, err := e.Schema(t.Context(), c.Table)
		if err != nil {
			t.Fatal(err)
		}
		schema, err := avro.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		data, err := e.Encode(t.Context(), nil, c)
		if err != nil {
			t.Fatal(err)
		}
		var row map[string]any
		if _, err := schema.Decode(data, &row); err != nil || fmt.Sprint(row) != wantRow || !strings.Contains(text, wantSchema) {
			t.Errorf("%v, %v in %s; want %s in %s", row, err, text, wantRow, wantSchema)
		}
	}
	check(rows, changeOf(watch.Upsert, "K", "1", "A", "2", "B", "3"), "map[A:2 B:3 K:1]",
		`"name":"T","namespace":"music","fields":[{"name":"K","type":"long"},{"name":"A","type":"long"},{"name":"B","type":["null","long"],"default":null}]`)
	check(records, changeOf(watch.Update, "B", "3"), "map[A:<nil> B:3 K:1]",
		`"fields":[{"name":"K","type":"long"},{"name":"A","type":["null","long"],"default":null},{"name":"B","type":["null","long"],"default":null}]`)
	check(records, changeOf(watch.Delete), "map[A:<nil> B:<nil> K:1]", `"name":"T"`)
	if _, err := rows.Encode(t.Context(), nil, changeOf(watch.Upsert, "K", "1", "B", "3")); err == nil || !strings.Contains(err.Error(), "column A is NULL") {
		t.Errorf("a row without a column that is NOT NULL: %v", err)
	}
	admin, err := adminapi.NewDatabaseAdminClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	op, err := admin.UpdateDatabaseDdl(t.Context(), &databasepb.UpdateDatabaseDdlRequest{Database: databaseName, Statements: []string{"ALTER TABLE music.T ADD COLUMN C INT64"}})
	if err == nil {
		err = op.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	check(rows, changeOf(watch.Upsert, "K", "1", "A", "2", "B", "3", "C", "4"), "map[A:2 B:3 C:4 K:1]", `{"name":"C","type":["null","long"],"default":null}]`)
	if text, err := rows.Schema(t.Context(), watch.TableID{Name: "None"}); err == nil || !strings.Contains(err.Error(), "the columns of table None: ") {
		t.Errorf("the schema of a table that there is not: %s, %v", text, err)
	}
}

// TestEncoderOfSomeColumns encodes changes of feeds that read different columns of one table. The encoder must ask the
// database only once for each list of columns, even if the feeds' changes alternate.
func TestEncoderOfSomeColumns(t *testing.T) {
	crowfoot.ForTest(t, databaseName, "CREATE SCHEMA music", "CREATE TABLE music.T (K INT64 NOT NULL, A INT64, B INT64) PRIMARY KEY (K)")
	client, err := spanner.NewClient(t.Context(), databaseName)
	if err != nil {
		t.Fatal(err)
	}
	e := NewEncoder(client)
	a, b := changeOf(watch.Upsert, "K", "1", "A", "2"), changeOf(watch.Upsert, "B", "3", "K", "1")
	for i, c := range []*watch.Change{a, b, a, b, changeOf(watch.Upsert, "K", "1", "A", "2")} {
		if i == 2 {
			client.Close() // from now on, Encode fails if it queries the database
		}
		if _, err := e.Encode(t.Context(), nil, c); err != nil {
			t.Errorf("turn %d: %v", i, err)
		}
	}
}
