package flight

import (
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/crowfoot-db/crowfoot/version"
)

// The type codes of SqlInfo values, which are members of a union: see schema_ref.SqlInfo.
const (
	infoString arrow.UnionTypeCode = iota
	infoBool
	infoInt64
	infoInt32
)

// Numbers that SqlInfo values contain. Each is a member of one of Flight SQL's enumerations.
const (
	caseInsensitive = 1
	nullsFirst      = 2 // SQL_NULLS_SORTED_AT_START: with ASC, NULL comes first, as in Spanner
	serializable    = 4 // SQL_TRANSACTION_SERIALIZABLE; in a set of isolation levels it is the bit 1<<4
)

// serverInfo returns the server's SqlInfo values.
func serverInfo() map[flightpb.SqlInfo]any {
	v := version.Get()
	return map[flightpb.SqlInfo]any{
		flightpb.SqlInfo_FLIGHT_SQL_SERVER_NAME:                          "Crowfoot",
		flightpb.SqlInfo_FLIGHT_SQL_SERVER_VERSION:                       v.Version,
		flightpb.SqlInfo_FLIGHT_SQL_SERVER_ARROW_VERSION:                 arrow.PkgVersion,
		flightpb.SqlInfo_FLIGHT_SQL_SERVER_READ_ONLY:                     false,
		flightpb.SqlInfo_FLIGHT_SQL_SERVER_SQL:                           true,
		flightpb.SqlInfo_FLIGHT_SQL_SERVER_SUBSTRAIT:                     false,
		flightpb.SqlInfo_FLIGHT_SQL_SERVER_TRANSACTION:                   int32(flightpb.SqlSupportedTransaction_SQL_SUPPORTED_TRANSACTION_TRANSACTION),
		flightpb.SqlInfo_FLIGHT_SQL_SERVER_CANCEL:                        true,
		flightpb.SqlInfo_FLIGHT_SQL_SERVER_BULK_INGESTION:                true,
		flightpb.SqlInfo_FLIGHT_SQL_SERVER_INGEST_TRANSACTIONS_SUPPORTED: true,
		flightpb.SqlInfo_FLIGHT_SQL_SERVER_STATEMENT_TIMEOUT:             int32(0),
		flightpb.SqlInfo_FLIGHT_SQL_SERVER_TRANSACTION_TIMEOUT:           int32(0),
		flightpb.SqlInfo_SQL_DDL_CATALOG:                                 false,
		flightpb.SqlInfo_SQL_DDL_SCHEMA:                                  true,
		flightpb.SqlInfo_SQL_DDL_TABLE:                                   true,
		flightpb.SqlInfo_SQL_IDENTIFIER_CASE:                             int64(caseInsensitive),
		flightpb.SqlInfo_SQL_IDENTIFIER_QUOTE_CHAR:                       "`",
		flightpb.SqlInfo_SQL_QUOTED_IDENTIFIER_CASE:                      int64(caseInsensitive),
		flightpb.SqlInfo_SQL_ALL_TABLES_ARE_SELECTABLE:                   true,
		flightpb.SqlInfo_SQL_NULL_ORDERING:                               int64(nullsFirst),
		flightpb.SqlInfo_SQL_SEARCH_STRING_ESCAPE:                        "\\",
		flightpb.SqlInfo_SQL_EXTRA_NAME_CHARACTERS:                       "",
		flightpb.SqlInfo_SQL_SUPPORTS_COLUMN_ALIASING:                    true,
		flightpb.SqlInfo_SQL_NULL_PLUS_NULL_IS_NULL:                      true,
		flightpb.SqlInfo_SQL_SCHEMA_TERM:                                 "schema",
		flightpb.SqlInfo_SQL_PROCEDURE_TERM:                              "procedure",
		flightpb.SqlInfo_SQL_CATALOG_TERM:                                "catalog",
		flightpb.SqlInfo_SQL_CATALOG_AT_START:                            true,
		flightpb.SqlInfo_SQL_SELECT_FOR_UPDATE_SUPPORTED:                 true,
		flightpb.SqlInfo_SQL_CORRELATED_SUBQUERIES_SUPPORTED:             true,
		flightpb.SqlInfo_SQL_DEFAULT_TRANSACTION_ISOLATION:               int64(serializable),
		flightpb.SqlInfo_SQL_TRANSACTIONS_SUPPORTED:                      true,
		flightpb.SqlInfo_SQL_SUPPORTED_TRANSACTIONS_ISOLATION_LEVELS:     int32(1 << serializable),
		flightpb.SqlInfo_SQL_DATA_DEFINITION_CAUSES_TRANSACTION_COMMIT:   false,
		flightpb.SqlInfo_SQL_DATA_DEFINITIONS_IN_TRANSACTIONS_IGNORED:    false,
		flightpb.SqlInfo_SQL_BATCH_UPDATES_SUPPORTED:                     true,
		flightpb.SqlInfo_SQL_SAVEPOINTS_SUPPORTED:                        false,
		flightpb.SqlInfo_SQL_NAMED_PARAMETERS_SUPPORTED:                  true,
	}
}

// sqlInfo returns the result of CommandGetSqlInfo: the values whose ids are in asked, or all values if asked is empty.
func sqlInfo(asked []uint32) arrow.RecordBatch {
	all := serverInfo()
	if len(asked) == 0 {
		for _, id := range slices.Sorted(maps.Keys(all)) {
			asked = append(asked, uint32(id))
		}
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema_ref.SqlInfo)
	union := b.Field(1).(*array.DenseUnionBuilder)
	for _, id := range asked {
		v, ok := all[flightpb.SqlInfo(id)]
		if !ok {
			continue
		}
		b.Field(0).(*array.Uint32Builder).Append(id)
		switch v := v.(type) {
		case string:
			union.Append(infoString)
			union.Child(int(infoString)).(*array.StringBuilder).Append(v)
		case bool:
			union.Append(infoBool)
			union.Child(int(infoBool)).(*array.BooleanBuilder).Append(v)
		case int64:
			union.Append(infoInt64)
			union.Child(int(infoInt64)).(*array.Int64Builder).Append(v)
		case int32:
			union.Append(infoInt32)
			union.Child(int(infoInt32)).(*array.Int32Builder).Append(v)
		}
	}
	return b.NewRecordBatch()
}

// A typeRow describes a type for CommandGetXdbcTypeInfo. size is in digits, characters or bytes, depending on the type;
// literals of the type stand between prefix and suffix.
type typeRow struct {
	name           string
	kind           flightpb.XdbcDataType
	size           int32
	prefix, suffix string
	fixed          bool // all values of the type have the same precision and scale
	scale          int32
}

// typeRows lists the types of GoogleSQL with their XdbcDataType.
var typeRows = []typeRow{
	{name: "INTERVAL", kind: flightpb.XdbcDataType_XDBC_INTERVAL, size: 64, prefix: "INTERVAL '", suffix: "'"},
	{name: "UUID", kind: flightpb.XdbcDataType_XDBC_CHAR, size: 36, prefix: "UUID '", suffix: "'"},
	{name: "NUMERIC", kind: flightpb.XdbcDataType_XDBC_DECIMAL, size: 38, prefix: "NUMERIC '", suffix: "'", fixed: true, scale: 9},
	{name: "INT64", kind: flightpb.XdbcDataType_XDBC_BIGINT, size: 19, fixed: true},
	{name: "FLOAT32", kind: flightpb.XdbcDataType_XDBC_REAL, size: 24},
	{name: "FLOAT64", kind: flightpb.XdbcDataType_XDBC_DOUBLE, size: 53},
	{name: "STRING", kind: flightpb.XdbcDataType_XDBC_VARCHAR, size: 2_621_440, prefix: "'", suffix: "'"},
	{name: "JSON", kind: flightpb.XdbcDataType_XDBC_LONGVARCHAR, size: 10 << 20, prefix: "JSON '", suffix: "'"},
	{name: "BYTES", kind: flightpb.XdbcDataType_XDBC_VARBINARY, size: 10 << 20, prefix: "b'", suffix: "'"},
	{name: "BOOL", kind: flightpb.XdbcDataType_XDBC_BIT, size: 1},
	{name: "DATE", kind: flightpb.XdbcDataType_XDBC_DATE, size: 10, prefix: "DATE '", suffix: "'"},
	{name: "TIMESTAMP", kind: flightpb.XdbcDataType_XDBC_TIMESTAMP, size: 30, prefix: "TIMESTAMP '", suffix: "'", scale: 9},
}

// typeInfo returns the result of CommandGetXdbcTypeInfo: the types whose XdbcDataType is kind. If kind is nil, it
// returns all types in ascending order of their XdbcDataType.
func typeInfo(kind *int32) arrow.RecordBatch {
	rows := slices.Clone(typeRows)
	slices.SortStableFunc(rows, func(a, b typeRow) int { return int(a.kind) - int(b.kind) })
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema_ref.XdbcTypeInfo)
	for _, t := range rows {
		if kind != nil && int32(t.kind) != *kind {
			continue
		}
		for i, v := range []any{
			t.name, int32(t.kind), t.size, t.prefix, t.suffix, nil, int32(flightpb.Nullable_NULLABILITY_NULLABLE), t.kind == flightpb.XdbcDataType_XDBC_VARCHAR,
			int32(flightpb.Searchable_SEARCHABLE_FULL), nil, t.fixed, nil, t.name, nil, t.scale, int32(t.kind), nil, nil, nil,
		} {
			appendAny(b.Field(i), v)
		}
	}
	return b.NewRecordBatch()
}

func appendAny(to array.Builder, v any) {
	switch v := v.(type) {
	case nil:
		to.AppendNull()
	case string:
		to.(*array.StringBuilder).Append(v)
	case int32:
		to.(*array.Int32Builder).Append(v)
	case bool:
		to.(*array.BooleanBuilder).Append(v)
	}
}
