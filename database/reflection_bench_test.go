package database

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/crowfoot-db/crowfoot/schema"
)

// reflections are queries by which tools read the schema of one table, and of all tables. They come from SQLAlchemy's
// dialect for Spanner; from Spanner's JDBC driver, which Hibernate and Liquibase use; and from Django's backend. %s
// stands for the condition of the query in ofTable, or for nothing if the query is for all tables.
var reflections = map[string]string{
	"sqlalchemy-columns": `SELECT col.table_schema, col.table_name, col.column_name, col.spanner_type, col.is_nullable, col.generation_expression, col.column_default
FROM information_schema.columns AS col JOIN information_schema.tables AS t USING (TABLE_CATALOG, TABLE_SCHEMA, TABLE_NAME)
WHERE %s t.table_type IN ('BASE TABLE', 'VIEW') AND col.table_schema = '' AND col.table_catalog = ''
ORDER BY col.table_catalog, col.table_schema, col.table_name, col.ordinal_position`,
	"sqlalchemy-indexes": `SELECT i.table_schema, i.table_name, i.index_name,
  ARRAY(SELECT ic.column_name FROM information_schema.index_columns ic WHERE ic.index_name = i.index_name AND ic.table_catalog = i.table_catalog
    AND ic.table_schema = i.table_schema AND ic.table_name = i.table_name AND ic.column_ordering IS NOT NULL ORDER BY ic.ordinal_position) AS columns,
  i.is_unique,
  ARRAY(SELECT ic.column_ordering FROM information_schema.index_columns ic WHERE ic.index_name = i.index_name AND ic.table_catalog = i.table_catalog
    AND ic.table_schema = i.table_schema AND ic.table_name = i.table_name AND ic.column_ordering IS NOT NULL ORDER BY ic.ordinal_position) AS column_orderings
FROM information_schema.indexes AS i JOIN information_schema.tables AS t
  ON i.table_catalog = t.table_catalog AND i.table_schema = t.table_schema AND i.table_name = t.table_name
WHERE %s t.table_type IN ('BASE TABLE', 'VIEW') AND i.table_schema = '' AND i.index_type != 'PRIMARY_KEY' AND i.index_type != 'SEARCH' AND i.spanner_is_managed = FALSE
GROUP BY i.table_catalog, i.table_schema, i.table_name, i.index_name, i.is_unique ORDER BY i.index_name`,
	"sqlalchemy-primary-key": `SELECT tc.table_schema, tc.table_name, kcu.column_name
FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS AS tc JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE AS kcu USING (TABLE_CATALOG, TABLE_SCHEMA, CONSTRAINT_NAME)
JOIN information_schema.tables AS t ON tc.TABLE_CATALOG = t.TABLE_CATALOG AND tc.TABLE_SCHEMA = t.TABLE_SCHEMA AND tc.TABLE_NAME = t.TABLE_NAME
WHERE %s t.table_type IN ('BASE TABLE', 'VIEW') AND tc.table_schema = '' AND tc.CONSTRAINT_TYPE = "PRIMARY KEY"
ORDER BY tc.table_catalog ASC, tc.table_schema ASC, tc.table_name ASC, kcu.ordinal_position ASC`,
	"sqlalchemy-foreign-keys": `SELECT tc.table_schema, tc.table_name, tc.constraint_name, tc_uq.table_name, tc_uq.table_schema,
  ARRAY(SELECT (kcu.column_name, kcu_uq.column_name) FROM information_schema.key_column_usage AS kcu JOIN information_schema.key_column_usage AS kcu_uq
    ON kcu_uq.constraint_catalog = rc.unique_constraint_catalog AND kcu_uq.constraint_schema = rc.unique_constraint_schema
    AND kcu_uq.constraint_name = rc.unique_constraint_name AND kcu_uq.ordinal_position = kcu.ordinal_position
    WHERE kcu.constraint_catalog = tc.constraint_catalog AND kcu.constraint_schema = tc.constraint_schema AND kcu.constraint_name = tc.constraint_name
    ORDER BY kcu.ordinal_position)
FROM information_schema.table_constraints AS tc
JOIN information_schema.referential_constraints AS rc
  ON rc.constraint_catalog = tc.constraint_catalog AND rc.constraint_schema = tc.constraint_schema AND rc.constraint_name = tc.constraint_name
JOIN information_schema.table_constraints AS tc_uq
  ON tc_uq.constraint_catalog = rc.unique_constraint_catalog AND tc_uq.constraint_schema = rc.unique_constraint_schema AND tc_uq.constraint_name = rc.unique_constraint_name
JOIN information_schema.tables AS t ON t.table_catalog = tc.table_catalog AND t.table_schema = tc.table_schema AND t.table_name = tc.table_name
WHERE %s t.table_type IN ('BASE TABLE', 'VIEW') AND tc.table_schema = '' AND tc.constraint_type = "FOREIGN KEY"`,
	"jdbc-columns": `SELECT TABLE_CATALOG, TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, SPANNER_TYPE, IS_NULLABLE, COLUMN_DEFAULT, ORDINAL_POSITION, IS_IDENTITY, IS_GENERATED
FROM INFORMATION_SCHEMA.COLUMNS C
WHERE %s UPPER(C.TABLE_CATALOG) LIKE '' AND UPPER(C.TABLE_SCHEMA) LIKE '' AND UPPER(C.COLUMN_NAME) LIKE '%%'
ORDER BY TABLE_CATALOG, TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION`,
	"jdbc-indexes": `SELECT IDX.TABLE_CATALOG, IDX.TABLE_SCHEMA, IDX.TABLE_NAME, IDX.INDEX_NAME, ORDINAL_POSITION, COLUMN_NAME, SUBSTR(COLUMN_ORDERING, 1, 1)
FROM INFORMATION_SCHEMA.INDEXES IDX INNER JOIN INFORMATION_SCHEMA.INDEX_COLUMNS COL
  ON IDX.TABLE_CATALOG=COL.TABLE_CATALOG AND IDX.TABLE_SCHEMA=COL.TABLE_SCHEMA AND IDX.TABLE_NAME=COL.TABLE_NAME AND IDX.INDEX_NAME=COL.INDEX_NAME
WHERE %s UPPER(IDX.TABLE_CATALOG) LIKE '' AND UPPER(IDX.TABLE_SCHEMA) LIKE '' AND UPPER(IDX.INDEX_NAME) LIKE '%%'
ORDER BY IDX.TABLE_NAME, IS_UNIQUE DESC, IDX.INDEX_NAME, CASE WHEN ORDINAL_POSITION IS NULL THEN 0 ELSE ORDINAL_POSITION END`,
	"jdbc-imported-keys": `SELECT * FROM (
  SELECT PARENT.TABLE_NAME AS PKTABLE_NAME, PARENT_INDEX_COLUMNS.COLUMN_NAME AS PKCOLUMN_NAME, CHILD.TABLE_NAME AS FKTABLE_NAME, PARENT_INDEX_COLUMNS.ORDINAL_POSITION AS KEY_SEQ
  FROM INFORMATION_SCHEMA.TABLES PARENT
  INNER JOIN INFORMATION_SCHEMA.TABLES CHILD
    ON CHILD.TABLE_CATALOG=PARENT.TABLE_CATALOG AND CHILD.TABLE_SCHEMA=PARENT.TABLE_SCHEMA AND CHILD.PARENT_TABLE_NAME=PARENT.TABLE_NAME
  INNER JOIN INFORMATION_SCHEMA.INDEX_COLUMNS PARENT_INDEX_COLUMNS
    ON PARENT_INDEX_COLUMNS.TABLE_CATALOG=PARENT.TABLE_CATALOG AND PARENT_INDEX_COLUMNS.TABLE_SCHEMA=PARENT.TABLE_SCHEMA
    AND PARENT_INDEX_COLUMNS.TABLE_NAME=PARENT.TABLE_NAME AND PARENT_INDEX_COLUMNS.INDEX_NAME='PRIMARY_KEY'
  UNION ALL
  SELECT PARENT.TABLE_NAME AS PKTABLE_NAME, PARENT.COLUMN_NAME AS PKCOLUMN_NAME, CHILD.TABLE_NAME AS FKTABLE_NAME, CHILD.ORDINAL_POSITION AS KEY_SEQ
  FROM INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS CONSTRAINTS
  INNER JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE CHILD ON CONSTRAINTS.CONSTRAINT_CATALOG=CHILD.CONSTRAINT_CATALOG AND CONSTRAINTS.CONSTRAINT_SCHEMA= CHILD.CONSTRAINT_SCHEMA
    AND CONSTRAINTS.CONSTRAINT_NAME= CHILD.CONSTRAINT_NAME
  INNER JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE PARENT ON CONSTRAINTS.UNIQUE_CONSTRAINT_CATALOG=PARENT.CONSTRAINT_CATALOG
    AND CONSTRAINTS.UNIQUE_CONSTRAINT_SCHEMA=PARENT.CONSTRAINT_SCHEMA AND CONSTRAINTS.UNIQUE_CONSTRAINT_NAME=PARENT.CONSTRAINT_NAME
    AND PARENT.ORDINAL_POSITION=CHILD.POSITION_IN_UNIQUE_CONSTRAINT
) IMPORTED_KEYS
WHERE %s TRUE ORDER BY PKTABLE_NAME, KEY_SEQ`,
	"django-constraints": `SELECT tc.constraint_name, ccu.column_name, tc.constraint_type
FROM information_schema.table_constraints AS tc JOIN information_schema.constraint_column_usage AS ccu USING (constraint_name)
WHERE %s tc.table_schema = ''`,
	"django-key-columns": `SELECT tc.column_name AS col, ccu.column_name AS ref_col, ccu.table_name AS ref_table
FROM information_schema.key_column_usage AS tc JOIN information_schema.constraint_column_usage AS ccu ON ccu.constraint_name = tc.constraint_name
WHERE %s tc.constraint_name LIKE 'FK_%%'`,
}

// ofTable holds the conditions that restrict a query to one table.
var ofTable = map[string]string{
	"sqlalchemy-columns": "col.table_name IN ('Table7') AND", "sqlalchemy-indexes": "i.table_name IN ('Table7') AND", "sqlalchemy-primary-key": "tc.table_name IN ('Table7') AND",
	"sqlalchemy-foreign-keys": "tc.table_name IN ('Table8') AND", "jdbc-columns": "UPPER(C.TABLE_NAME) LIKE 'TABLE7' AND", "jdbc-indexes": "UPPER(IDX.TABLE_NAME) LIKE 'TABLE7' AND",
	"jdbc-imported-keys": "UPPER(FKTABLE_NAME) LIKE 'TABLE8' AND", "django-constraints": "tc.table_name = 'Table7' AND", "django-key-columns": "tc.table_name = 'Table8' AND",
}

// BenchmarkReflection reports the CPU time of each query in the map reflections, for one table and for all tables of a
// database. The database has 5,000 tables with 20 columns each. Run it with -benchtime 1x.
func BenchmarkReflection(b *testing.B) {
	for b.Loop() {
		bed := create(b, append(tableStatements(0, schema.MaxTables), "CREATE INDEX ByColumn7 ON Table7(Column7)", "CREATE INDEX ByColumn8 ON Table8(Column8)")...)
		var names []string
		for name := range reflections {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			for _, condition := range []string{ofTable[name], ""} {
				sql, what := fmt.Sprintf(reflections[name], condition), name+"-of-one"
				if condition == "" {
					what = name
				}
				bed.query(sql)
				before := cpuSeconds(b)
				bed.query(sql)
				b.ReportMetric((cpuSeconds(b)-before)*1000, what+"-ms")
			}
		}
	}
}

func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Skip(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
