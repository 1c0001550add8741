package flight

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// primaryKeyHeader names the columns of the primary key of a table that an ingest makes, separated by commas. Without it the table gets a hidden key.
const primaryKeyHeader = "primary-key"

// hiddenKey is the column that is the key of a table whose creator named none.
const hiddenKey = "flight_row_id"

// A chunk of rows is written by one commit, or in a transaction by one batch of statements: as many as have chunkBytes, and no more than chunkValues values, each of
// which is a mutation, with as many again for indexes.
const (
	chunkBytes  = 2 << 20
	chunkValues = 20_000
	// chunkFactor is how many bytes a byte of a chunk takes as a message, as values, and as what is written.
	chunkFactor = 16
)

// An ingestion is the bulk load of a table. Without a transaction each chunk is committed by itself: when one fails, those before it stay, and the error
// says how many rows they were. In a transaction all rows are written or none.
type ingestion struct {
	*Service
	ctx     context.Context
	call    *rpc.Call
	session string
	in      *spannerpb.TransactionSelector // nil if there is no transaction
	table   string                         // with its schema
	columns []string
	types   []*value.Type
	chunk   []*structpb.ListValue
	bytes   int // of chunk
	written int64
}

// ingest answers CommandStatementIngest.
func (s *Service) ingest(ctx context.Context, command *flightpb.CommandStatementIngest, up *upload, c *rpc.Call) error {
	t, err := s.statement("", command.TransactionId, c)
	if err != nil {
		return err
	}
	if command.Temporary || command.GetCatalog() != "" {
		return usererror.FlightIngestUnsupported()
	}
	table := command.Table
	if command.GetSchema() != "" {
		table = command.GetSchema() + "." + command.Table
	}
	g := &ingestion{Service: s, ctx: ctx, call: c, session: t.request.Session, in: t.request.Transaction, table: table}
	begun := false
	err = up.each(func(batch arrow.RecordBatch) error {
		if !begun {
			begun = true
			if err := g.begin(command, batch.Schema()); err != nil {
				return err
			}
		}
		return g.addBatch(batch)
	})
	if err == nil {
		err = g.flush()
	}
	if err != nil {
		return usererror.AfterIngest(err, g.written, g.in != nil)
	}
	return answerCount(c, g.written)
}

// begin makes the table if it is to be made, and finds the types of its columns.
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
	return nil
}

// describe is what is known of the columns that come.
func (g *ingestion) describe() (*Description, error) {
	names := make([]string, len(g.columns))
	for i, name := range g.columns {
		names[i] = quoted(name)
	}
	return g.api.Describe(g.ctx, &spannerpb.ExecuteSqlRequest{Session: g.session, Sql: "SELECT " + strings.Join(names, ", ") + " FROM " + quoted(g.table)}, g.call)
}

// isMissing says whether there is no such table.
func (g *ingestion) isMissing() bool {
	_, err := g.api.Describe(g.ctx, &spannerpb.ExecuteSqlRequest{Session: g.session, Sql: "SELECT 1 FROM " + quoted(g.table)}, g.call)
	return err != nil
}

// quoted is a name, which may have a schema, as GoogleSQL takes any name.
func quoted(name string) string {
	return "`" + strings.ReplaceAll(strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name), ".", "`.`") + "`"
}

// createTable is the statement that makes a table for columns of Arrow's.
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

// columnType is the type of a column of a table.
func columnType(t *value.Type) string {
	switch t.Kind {
	case value.String, value.Bytes:
		return t.String() + "(MAX)"
	case value.Array:
		return "ARRAY<" + columnType(t.Elem) + ">"
	}
	return t.String()
}

// addBatch adds the rows of a batch.
func (g *ingestion) addBatch(batch arrow.RecordBatch) error {
	for row := range int(batch.NumRows()) {
		list, err := g.row(batch, row)
		if err != nil {
			return err
		}
		g.chunk = append(g.chunk, list)
		g.bytes += proto.Size(list)
		if g.bytes >= chunkBytes || len(g.chunk)*len(g.columns) >= chunkValues {
			if err := g.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// row is a row of a batch as mutations carry it.
func (g *ingestion) row(batch arrow.RecordBatch, row int) (list *structpb.ListValue, err error) {
	defer refuseMalformed(&err)
	list = &structpb.ListValue{Values: make([]*structpb.Value, len(g.columns))}
	for i, col := range batch.Columns() {
		v, err := columnar.ValueAt(col, row, g.types[i])
		if err != nil {
			return nil, usererror.IngestValue(g.columns[i], g.types[i].String(), g.written+int64(len(g.chunk))+1, err)
		}
		if list.Values[i], err = wireValue(v, g.types[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// flush writes the chunk.
func (g *ingestion) flush() error {
	if len(g.chunk) == 0 {
		return nil
	}
	account := g.call.Memory.Beside(memory.Request)
	defer account.Close()
	if err := account.Grow(g.ctx, int64(g.bytes)*chunkFactor); err != nil {
		return err
	}
	write := g.commitChunk
	if g.in != nil {
		write = g.insertChunk
	}
	if err := write(); err != nil {
		return err
	}
	g.written += int64(len(g.chunk))
	g.chunk, g.bytes = nil, 0
	return nil
}

// commitChunk commits the chunk as mutations. A transaction of mutations alone is aborted only by others that are older: they have ended soon.
func (g *ingestion) commitChunk() (err error) {
	for range commitAttempts {
		_, err = g.api.Commit(g.ctx, &spannerpb.CommitRequest{
			Session:     g.session,
			Transaction: &spannerpb.CommitRequest_SingleUseTransaction{SingleUseTransaction: readWrite(nil)},
			Mutations: []*spannerpb.Mutation{{Operation: &spannerpb.Mutation_Insert{
				Insert: &spannerpb.Mutation_Write{Table: g.table, Columns: g.columns, Values: slices.Clone(g.chunk)},
			}}},
		}, g.call)
		if !usererror.IsAborted(err) {
			return err
		}
	}
	return err
}

// insertChunk inserts the chunk in the transaction.
func (g *ingestion) insertChunk() error {
	names, marks := make([]string, len(g.columns)), make([]string, len(g.columns))
	types := make(map[string]*spannerpb.Type, len(g.columns))
	for i, name := range g.columns {
		param := "p" + strconv.Itoa(i+1)
		names[i], marks[i], types[param] = quoted(name), "@"+param, g.types[i].Proto()
	}
	sql := "INSERT INTO " + quoted(g.table) + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(marks, ", ") + ")"
	req := &spannerpb.ExecuteBatchDmlRequest{Session: g.session, Transaction: g.in, Seqno: g.seqno.Add(1)}
	for _, row := range g.chunk {
		params := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(row.Values))}
		for i, v := range row.Values {
			params.Fields[marks[i][1:]] = v
		}
		req.Statements = append(req.Statements, &spannerpb.ExecuteBatchDmlRequest_Statement{Sql: sql, Params: params, ParamTypes: types})
	}
	_, err := g.runBatch(g.ctx, req, g.call)
	return err
}
