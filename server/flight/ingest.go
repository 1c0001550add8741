package flight

import (
	"context"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// primaryKeyHeader is the header that names the primary key columns, separated by commas, of a table that an ingest
// creates. Without the header the table gets hiddenKey.
const primaryKeyHeader = "primary-key"

// hiddenKey is the key column of a table that was created without primaryKeyHeader.
const hiddenKey = "flight_row_id"

// ingestModes maps the values of the header ingest-mode to the mutations that write the rows. Without the header rows
// are inserted.
var ingestModes = map[string]table.Op{
	"":                 table.Insert, // if the key of a row exists, the ingest fails
	"insert":           table.Insert,
	"insert-or-update": table.InsertOrUpdate, // if the row exists, the given columns are changed
	"replace":          table.Replace,        // if the row exists, it is deleted first
}

// An ingestion is the bulk load of a table. Without a transaction the rows are committed in chunks (chunk.go): if a
// chunk fails, the chunks before it stay, and the error gives their number of rows. In a transaction, or with
// commitsHeader, either all rows are written or none.
type ingestion struct {
	*Service
	ctx     context.Context
	call    *rpc.Call
	session string
	in      *spannerpb.TransactionSelector // transaction in which the rows are written; nil if there is none
	op      table.Op
	table   string // TABLE, or SCHEMA.TABLE for a table in a named schema
	whole   bool   // one commit writes all rows
	columns []string
	types   []*value.Type
	chunk   chunk
	written int64
}

// ingest answers CommandStatementIngest, which loads rows into a table.
func (s *Service) ingest(ctx context.Context, command *flightpb.CommandStatementIngest, up *upload, c *rpc.Call) error {
	t, err := s.statement("", command.TransactionId, c)
	if err != nil {
		return err
	}
	if command.Temporary || command.GetCatalog() != "" {
		return usererror.FlightIngestUnsupported()
	}
	g := &ingestion{Service: s, ctx: ctx, call: c, session: t.request.Session, in: t.request.Transaction, table: command.Table}
	if command.GetSchema() != "" {
		g.table = command.GetSchema() + "." + command.Table
	}
	var ok bool
	if g.op, ok = ingestModes[c.Metadata(ingestHeader)]; !ok || g.op == table.Replace && g.in != nil {
		return usererror.InvalidFlightHeader(ingestHeader, c.Metadata(ingestHeader), "insert, insert-or-update, or, without a transaction, replace")
	}
	switch c.Metadata(commitsHeader) {
	case "":
	case oneCommit:
		g.whole = g.in == nil
	default:
		return usererror.InvalidFlightHeader(commitsHeader, c.Metadata(commitsHeader), oneCommit)
	}
	begun := false
	err = up.each(ctx, func(batch arrow.RecordBatch, size int64) error {
		if !begun {
			begun = true
			if err := g.begin(command, batch.Schema()); err != nil {
				return err
			}
		}
		return g.addBatch(batch, size)
	})
	if err == nil {
		err = g.flush()
	}
	g.chunk.drop()
	if err != nil {
		return usererror.AfterIngest(err, g.written, g.in != nil)
	}
	return answerCount(c, g.written)
}

// begin creates the table, if the command asks for that, and finds the types of its columns.
func (g *ingestion) begin(command *flightpb.CommandStatementIngest, schema *arrow.Schema) error {
	for _, f := range schema.Fields() {
		g.columns = append(g.columns, f.Name)
	}
	d, err := g.describe()
	exists := err == nil || !g.isMissing()
	options := command.GetTableDefinitionOptions()
	var statements []string
	switch {
	case exists && options.GetIfExists() == flightpb.CommandStatementIngest_TableDefinitionOptions_TABLE_EXISTS_OPTION_REPLACE:
		statements = append(statements, "DROP TABLE "+quoted(g.table))
		exists = false
	case exists && options.GetIfExists() == flightpb.CommandStatementIngest_TableDefinitionOptions_TABLE_EXISTS_OPTION_FAIL:
		return usererror.IngestTableExists(g.table)
	case !exists && options.GetIfNotExist() != flightpb.CommandStatementIngest_TableDefinitionOptions_TABLE_NOT_EXIST_OPTION_CREATE:
		return err
	case exists && err != nil:
		return err
	}
	if !exists {
		statement, err := g.createTable(schema)
		if err != nil {
			return err
		}
		if err := g.api.UpdateSchema(g.ctx, g.session, append(statements, statement)...); err != nil {
			return err
		}
		if d, err = g.describe(); err != nil {
			return err
		}
	}
	for _, c := range d.Columns {
		g.types = append(g.types, c.Type)
	}
	return g.limitChunk()
}

// describe returns the description of a query that selects the columns of the ingest. The query gives the table an
// alias, because a column may have the same name as the table.
func (g *ingestion) describe() (*Description, error) {
	names := make([]string, len(g.columns))
	for i, name := range g.columns {
		names[i] = "t." + quoted(name)
	}
	return g.api.Describe(g.ctx, &spannerpb.ExecuteSqlRequest{Session: g.session, Sql: "SELECT " + strings.Join(names, ", ") + " FROM " + quoted(g.table) + " AS t"}, g.call)
}

// isMissing reports whether the table does not exist.
func (g *ingestion) isMissing() bool {
	_, err := g.api.Describe(g.ctx, &spannerpb.ExecuteSqlRequest{Session: g.session, Sql: "SELECT 1 FROM " + quoted(g.table)}, g.call)
	return err != nil
}

// quoted returns the name of a column or a table in GoogleSQL's quotes. A dot in the name separates a schema from its
// table, so the two parts are quoted separately.
func quoted(name string) string {
	return "`" + strings.ReplaceAll(strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name), ".", "`.`") + "`"
}

// createTable returns the statement that creates a table for rows of an Arrow schema.
func (g *ingestion) createTable(schema *arrow.Schema) (string, error) {
	var b strings.Builder
	b.WriteString("CREATE TABLE " + quoted(g.table) + " (")
	for _, f := range schema.Fields() {
		t, err := columnar.TypeOf(f)
		if err != nil {
			return "", usererror.IngestColumnType(f.Name, err)
		}
		b.WriteString(quoted(f.Name) + " " + columnType(t))
		if !f.Nullable {
			b.WriteString(" NOT NULL")
		}
		b.WriteString(", ")
	}
	header := g.call.Metadata(primaryKeyHeader)
	if header == "" {
		return b.String() + hiddenKey + " STRING(36) NOT NULL DEFAULT (GENERATE_UUID()) HIDDEN) PRIMARY KEY (" + hiddenKey + ")", nil
	}
	var key []string
	for _, name := range strings.Split(header, ",") {
		key = append(key, quoted(strings.TrimSpace(name)))
	}
	return strings.TrimSuffix(b.String(), ", ") + ") PRIMARY KEY (" + strings.Join(key, ", ") + ")", nil
}

// columnType returns the DDL text of a column's type.
func columnType(t *value.Type) string {
	switch t.Kind {
	case value.String, value.Bytes:
		return t.String() + "(MAX)"
	case value.Array:
		return "ARRAY<" + columnType(t.Elem) + ">"
	}
	return t.String()
}
