package server

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc/codes"
)

// TestFlightMetadata: commands about metadata return the content of INFORMATION_SCHEMA, in Flight SQL's schemas.
func TestFlightMetadata(t *testing.T) {
	h := newHarnessWith(t, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, []string{
		"CREATE SCHEMA more",
		"CREATE TABLE A (K INT64, L STRING(9)) PRIMARY KEY (L DESC, K)",
		"CREATE TABLE more.B (K INT64 NOT NULL, Tags ARRAY<UUID>, A1 INT64, A2 STRING(9), CONSTRAINT FromB FOREIGN KEY (A1, A2) REFERENCES A (K, L) ON DELETE CASCADE) PRIMARY KEY (K)",
	})
	f := h.newFlightClient()
	show := func(info *arrowflight.FlightInfo, err error) string {
		t.Helper()
		h.ok(err)
		rows, err := f.read(info)
		h.ok(err)
		return strings.Join(rows, " ")
	}
	text := func(s string) *string { return &s }
	tables := func(o *flightsql.GetTablesOpts) string { return show(f.GetTables(f.ctx, o)) }
	ref := func(schema, name string) flightsql.TableRef {
		return flightsql.TableRef{DBSchema: &schema, Table: name}
	}
	const key = "||A|K||more|B|A1|1|FromB|"
	for _, c := range []struct{ what, got, want string }{
		{"catalogs", show(f.GetCatalogs(f.ctx)), ""},
		{"schemas", show(f.GetDBSchemas(f.ctx, &flightsql.GetDBSchemasOpts{DbSchemaFilterPattern: text("m%")})), "|more"},
		{"tables", tables(&flightsql.GetTablesOpts{DbSchemaFilterPattern: text("")}), "||A|BASE TABLE"},
		{"tables by name", tables(&flightsql.GetTablesOpts{TableNameFilterPattern: text("_"), TableTypes: []string{"BASE TABLE", "VIEW"}}), "||A|BASE TABLE |more|B|BASE TABLE"},
		{"system", tables(&flightsql.GetTablesOpts{TableTypes: []string{"VIEW"}, DbSchemaFilterPattern: text("")}), ""},
		{"table types", show(f.GetTableTypes(f.ctx)), "BASE TABLE VIEW"},
		{"no tables", tables(&flightsql.GetTablesOpts{Catalog: text("other")}), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
	if got := show(f.GetPrimaryKeys(f.ctx, ref("", "A"))); !strings.HasPrefix(got, "||A|L|1|") || !strings.Contains(got, " ||A|K|2|") {
		t.Errorf("primary key: %q", got)
	}
	for what, got := range map[string]string{
		"imported": show(f.GetImportedKeys(f.ctx, ref("more", "B"))), "exported": show(f.GetExportedKeys(f.ctx, ref("", "A"))), "cross": show(f.GetCrossReference(f.ctx, ref("", "A"), ref("more", "B"))),
	} {
		if !strings.HasPrefix(got, key) || !strings.Contains(got, "|3|0 ||A|L||more|B|A2|2|FromB|") {
			t.Errorf("%s: %q", what, got)
		}
	}
	if got := show(f.GetExportedKeys(f.ctx, ref("more", "B"))); got != "" {
		t.Errorf("exported by B: %q", got)
	}
	if got := show(f.GetSqlInfo(f.ctx, []flightsql.SqlInfo{flightsql.SqlInfoFlightSqlServerName, flightsql.SqlInfoFlightSqlServerTransaction})); !strings.Contains(got, "Crowfoot") || strings.Count(got, " ") != 1 {
		t.Errorf("info: %q", got)
	}
	if got := show(f.GetSqlInfo(f.ctx, nil)); !strings.HasSuffix(got, " 574|[0,true]") && !strings.HasSuffix(got, " 574|[1,true]") {
		t.Errorf("info: %q", got)
	}
	kind := int32(-5)
	if got := show(f.GetXdbcTypeInfo(f.ctx, &kind)); !strings.HasPrefix(got, "INT64|-5|19|") {
		t.Errorf("types: %q", got)
	}
	_, err := f.GetCatalogs(h.ctx)
	h.fails(err, codes.InvalidArgument) // the request names no database

	info, err := f.GetTables(f.ctx, &flightsql.GetTablesOpts{IncludeSchema: true, TableNameFilterPattern: text("B")})
	h.ok(err)
	r, err := f.DoGet(f.ctx, info.Endpoint[0].Ticket)
	h.ok(err)
	defer r.Release()
	h.ok(skipTo(r))
	schema, err := arrowflight.DeserializeSchema(r.RecordBatch().Column(4).(interface{ Value(int) []byte }).Value(0), nil)
	h.ok(err)
	names := make([]string, schema.NumFields())
	for i, field := range schema.Fields() {
		names[i] = field.Name + " " + field.Type.ID().String()
	}
	if want := []string{"K " + arrow.INT64.String(), "Tags " + arrow.LIST.String(), "A1 " + arrow.INT64.String(), "A2 " + arrow.STRING.String()}; !slices.Equal(names, want) {
		t.Errorf("schema of B: %q", names)
	}
	for _, sql := range []string{"SELECT K FROM A", "DELETE FROM A WHERE TRUE THEN RETURN K"} {
		result, err := f.GetExecuteSchema(f.ctx, sql)
		h.ok(err)
		if s, err := arrowflight.DeserializeSchema(result.Schema, nil); err != nil || s.Field(0).Name != "K" {
			t.Errorf("%s: %v, %v", sql, s, err)
		}
	}
}

// skipTo moves the reader to its next batch. It returns an error only if reading failed, and nil at the end.
func skipTo(r *arrowflight.Reader) error {
	if !r.Next() {
		return r.Err()
	}
	return nil
}
