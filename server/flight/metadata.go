package flight

import (
	"context"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/server/result"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// A listing is a query of INFORMATION_SCHEMA that answers a command about metadata. schema is the schema of the reply.
// The query returns the columns of the schema, but where the schema has an integer type of less than 64 bits, the query
// returns INT64. A parameter that is NULL filters nothing.
type listing struct {
	schema *arrow.Schema
	sql    string
	params map[string]*string
}

// Queries of the listings. A database has one catalog, whose name is "".
const (
	schemataQuery = `SELECT CATALOG_NAME, SCHEMA_NAME FROM INFORMATION_SCHEMA.SCHEMATA
WHERE (@catalog IS NULL OR CATALOG_NAME = @catalog) AND (@schema IS NULL OR SCHEMA_NAME LIKE @schema) ORDER BY 1, 2`
	tablesQuery = `SELECT TABLE_CATALOG, TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM INFORMATION_SCHEMA.TABLES
WHERE (@catalog IS NULL OR TABLE_CATALOG = @catalog) AND (@schema IS NULL OR TABLE_SCHEMA LIKE @schema) AND (@table IS NULL OR TABLE_NAME LIKE @table)
AND (@types IS NULL OR TABLE_TYPE IN UNNEST(SPLIT(@types, "\n"))) ORDER BY 1, 2, 3, 4`
	keysQuery = `SELECT c.TABLE_CATALOG, c.TABLE_SCHEMA, k.TABLE_NAME, k.COLUMN_NAME, k.ORDINAL_POSITION, c.CONSTRAINT_NAME
FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS c JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE k USING (CONSTRAINT_SCHEMA, CONSTRAINT_NAME)
WHERE c.CONSTRAINT_TYPE = 'PRIMARY KEY' AND (@catalog IS NULL OR c.TABLE_CATALOG = @catalog) AND (@schema IS NULL OR c.TABLE_SCHEMA = @schema) AND c.TABLE_NAME = @table ORDER BY 1, 2, 3, 5`
	// The numbers in the CASE expressions are those of Flight SQL's enumeration UpdateDeleteRules.
	foreignKeysQuery = `SELECT p.TABLE_CATALOG, p.TABLE_SCHEMA, p.TABLE_NAME, p.COLUMN_NAME, f.TABLE_CATALOG, f.TABLE_SCHEMA, f.TABLE_NAME, f.COLUMN_NAME,
f.ORDINAL_POSITION, r.CONSTRAINT_NAME, r.UNIQUE_CONSTRAINT_NAME, CASE r.UPDATE_RULE WHEN 'CASCADE' THEN 0 ELSE 3 END, CASE r.DELETE_RULE WHEN 'CASCADE' THEN 0 ELSE 3 END
FROM INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS r
JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE f ON f.CONSTRAINT_SCHEMA = r.CONSTRAINT_SCHEMA AND f.CONSTRAINT_NAME = r.CONSTRAINT_NAME
JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE p ON p.CONSTRAINT_SCHEMA = r.UNIQUE_CONSTRAINT_SCHEMA AND p.CONSTRAINT_NAME = r.UNIQUE_CONSTRAINT_NAME AND p.ORDINAL_POSITION = f.POSITION_IN_UNIQUE_CONSTRAINT
WHERE (@pkCatalog IS NULL OR p.TABLE_CATALOG = @pkCatalog) AND (@pkSchema IS NULL OR p.TABLE_SCHEMA = @pkSchema) AND (@pkTable IS NULL OR p.TABLE_NAME = @pkTable)
AND (@fkCatalog IS NULL OR f.TABLE_CATALOG = @fkCatalog) AND (@fkSchema IS NULL OR f.TABLE_SCHEMA = @fkSchema) AND (@fkTable IS NULL OR f.TABLE_NAME = @fkTable)
ORDER BY 1, 2, 3, 5, 6, 7, 10, 9`
)

// listingOf returns the listing that answers a command. It returns nil if the command is not about metadata, or is
// answered without a query.
func listingOf(command proto.Message) *listing {
	switch q := command.(type) {
	case *flightpb.CommandGetCatalogs:
		return &listing{schema: schema_ref.Catalogs, sql: "SELECT DISTINCT CATALOG_NAME FROM INFORMATION_SCHEMA.SCHEMATA"}
	case *flightpb.CommandGetDbSchemas:
		return &listing{schema_ref.DBSchemas, schemataQuery, map[string]*string{"catalog": q.Catalog, "schema": q.DbSchemaFilterPattern}}
	case *flightpb.CommandGetTables:
		params := map[string]*string{"catalog": q.Catalog, "schema": q.DbSchemaFilterPattern, "table": q.TableNameFilterPattern, "types": nil}
		if len(q.TableTypes) > 0 {
			params["types"] = proto.String(strings.Join(q.TableTypes, "\n"))
		}
		return &listing{schema_ref.Tables, tablesQuery, params}
	case *flightpb.CommandGetTableTypes:
		return &listing{schema: schema_ref.TableTypes, sql: "SELECT DISTINCT TABLE_TYPE FROM INFORMATION_SCHEMA.TABLES ORDER BY 1"}
	case *flightpb.CommandGetPrimaryKeys:
		return &listing{schema_ref.PrimaryKeys, keysQuery, map[string]*string{"catalog": q.Catalog, "schema": q.DbSchema, "table": &q.Table}}
	case *flightpb.CommandGetExportedKeys:
		return foreignKeys(q.Catalog, q.DbSchema, &q.Table, nil, nil, nil)
	case *flightpb.CommandGetImportedKeys:
		return foreignKeys(nil, nil, nil, q.Catalog, q.DbSchema, &q.Table)
	case *flightpb.CommandGetCrossReference:
		return foreignKeys(q.PkCatalog, q.PkDbSchema, &q.PkTable, q.FkCatalog, q.FkDbSchema, &q.FkTable)
	}
	return nil
}

func foreignKeys(pkCatalog, pkSchema, pkTable, fkCatalog, fkSchema, fkTable *string) *listing {
	return &listing{schema_ref.CrossReference, foreignKeysQuery, map[string]*string{
		"pkCatalog": pkCatalog, "pkSchema": pkSchema, "pkTable": pkTable, "fkCatalog": fkCatalog, "fkSchema": fkSchema, "fkTable": fkTable,
	}}
}

// metadataSchema returns the schema of the reply to a command about metadata, or nil for other commands.
func metadataSchema(command proto.Message) *arrow.Schema {
	switch q := command.(type) {
	case *flightpb.CommandGetSqlInfo:
		return schema_ref.SqlInfo
	case *flightpb.CommandGetXdbcTypeInfo:
		return schema_ref.XdbcTypeInfo
	case *flightpb.CommandGetTables:
		if q.IncludeSchema {
			return schema_ref.TablesWithIncludedSchema
		}
	}
	if l := listingOf(command); l != nil {
		return l.schema
	}
	return nil
}

// metadataInfo returns the FlightInfo for a command about metadata. The command does not run now. DoGet runs it later,
// and it then reads the database as it is at that time.
func (s *Service) metadataInfo(command proto.Message, schema *arrow.Schema, c *rpc.Call) (*flightpb.FlightInfo, error) {
	session, err := s.session(c)
	if err != nil {
		return nil, err
	}
	o, err := optionsOf(c)
	if err != nil {
		return nil, err
	}
	t := &ticket{kind: ticketCommand, options: o, request: &spannerpb.ExecuteSqlRequest{Session: session}}
	packed, err := anypb.New(command)
	if err != nil {
		return nil, err
	}
	if t.data, err = proto.Marshal(packed); err != nil {
		return nil, err
	}
	sealed, err := t.seal(s.tokens)
	if err != nil {
		return nil, err
	}
	info := &flightpb.FlightInfo{TotalRecords: unknown, TotalBytes: unknown, Endpoint: []*flightpb.FlightEndpoint{{Ticket: &flightpb.Ticket{Ticket: sealed}}}}
	info.Schema, err = schemaBytes(schema)
	return info, err
}

// getMetadata answers DoGet for a ticket that holds a command about metadata.
func (s *Service) getMetadata(ctx context.Context, t *ticket, c *rpc.Call) error {
	command, err := commandOf(t.data, c)
	if err != nil {
		return err
	}
	var r arrow.RecordBatch
	switch q := command.(type) {
	case *flightpb.CommandGetSqlInfo:
		r = sqlInfo(q.Info)
	case *flightpb.CommandGetXdbcTypeInfo:
		r = typeInfo(q.DataType)
	default:
		if r, err = s.list(ctx, t, listingOf(command), c); err != nil {
			return err
		}
		if q, ok := command.(*flightpb.CommandGetTables); ok && q.IncludeSchema {
			if r, err = s.withSchemas(ctx, t, r, c); err != nil {
				return err
			}
		}
	}
	w := newWriter(ctx, c, r.Schema())
	if err := w.Write(r); err != nil {
		return err
	}
	return w.finish()
}

// list runs the query of a listing and returns its rows.
func (s *Service) list(ctx context.Context, t *ticket, l *listing, c *rpc.Call) (r arrow.RecordBatch, err error) {
	req := &spannerpb.ExecuteSqlRequest{Session: t.request.Session, Sql: l.sql, Params: &structpb.Struct{Fields: map[string]*structpb.Value{}}, ParamTypes: map[string]*spannerpb.Type{}}
	for name, text := range l.params {
		req.ParamTypes[name] = &spannerpb.Type{Code: spannerpb.TypeCode_STRING}
		if req.Params.Fields[name] = structpb.NewNullValue(); text != nil {
			req.Params.Fields[name] = structpb.NewStringValue(*text)
		}
	}
	err = s.api.Query(ctx, req, c, func(res *result.Result) error {
		batch := columnar.NewBatch(columnsOf(res.Columns), t.options)
		total := 0
		for {
			rows, err := fill(batch, res.Rows, fullBatch)
			if err != nil {
				return err
			}
			if rows == 0 {
				break
			}
			total += rows
		}
		res.Sent += int64(total)
		if err := c.Memory.Grow(ctx, batch.Size()); err != nil {
			return err
		}
		r = narrow(batch.Record(total), l.schema)
		return nil
	})
	return r, err
}

// narrow converts a record with INT64 columns to a schema that has narrower integers for some of them.
func narrow(r arrow.RecordBatch, schema *arrow.Schema) arrow.RecordBatch {
	columns := make([]arrow.Array, r.NumCols())
	for i, col := range r.Columns() {
		columns[i] = col
		wide, ok := col.(*array.Int64)
		if !ok {
			continue
		}
		switch schema.Field(i).Type.ID() {
		case arrow.INT32:
			b := array.NewInt32Builder(memory.DefaultAllocator)
			for _, v := range wide.Int64Values() {
				b.Append(int32(v))
			}
			columns[i] = b.NewArray()
		case arrow.UINT8:
			b := array.NewUint8Builder(memory.DefaultAllocator)
			for _, v := range wide.Int64Values() {
				b.Append(uint8(v))
			}
			columns[i] = b.NewArray()
		}
	}
	return array.NewRecordBatch(schema, columns, r.NumRows())
}

// withSchemas adds to a list of tables a column with the Arrow schema of each table.
func (s *Service) withSchemas(ctx context.Context, t *ticket, tables arrow.RecordBatch, c *rpc.Call) (arrow.RecordBatch, error) {
	b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	schemas, names := tables.Column(1).(*array.String), tables.Column(2).(*array.String)
	for i := range int(tables.NumRows()) {
		name := names.Value(i)
		if schemas.Value(i) != "" {
			name = schemas.Value(i) + "." + name
		}
		d, err := s.api.Describe(ctx, &spannerpb.ExecuteSqlRequest{Session: t.request.Session, Sql: "SELECT * FROM " + quoted(name)}, c)
		if usererror.CodeOf(err) == codes.PermissionDenied { // the session's role may not read all columns
			d, err = new(Description), nil
		}
		if err != nil {
			return nil, err
		}
		data, err := schemaBytes(columnar.Schema(columnsOf(d.Columns), t.options))
		if err != nil {
			return nil, err
		}
		if err := c.Memory.Grow(ctx, int64(len(data))); err != nil {
			return nil, err
		}
		b.Append(data)
	}
	return array.NewRecordBatch(schema_ref.TablesWithIncludedSchema, append(tables.Columns()[:4:4], b.NewArray()), tables.NumRows()), nil
}
