package formats

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
)

// Dump returns, as text, the schema and the rows of the databases that Databases names. It reads the rows of each table
// directly, and again through each index. SPANNER_EMULATOR_HOST must have the server's address.
func Dump(ctx context.Context) (string, error) {
	admin, err := database.NewDatabaseAdminClient(ctx)
	if err != nil {
		return "", err
	}
	defer admin.Close()
	out := new(strings.Builder)
	for _, name := range Databases {
		fmt.Fprintf(out, "== %s\n", name)
		ddl, err := admin.GetDatabaseDdl(ctx, &databasepb.GetDatabaseDdlRequest{Database: name})
		if err != nil {
			return "", err
		}
		for _, s := range ddl.Statements {
			fmt.Fprintln(out, s)
		}
		if err := dumpRows(ctx, out, name); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

func dumpRows(ctx context.Context, out io.Writer, name string) error {
	c, err := spanner.NewClientWithConfig(ctx, name, spanner.ClientConfig{DisableNativeMetrics: true})
	if err != nil {
		return err
	}
	defer c.Close()
	const columns = `SELECT TABLE_NAME, INDEX_NAME, STRING_AGG(COLUMN_NAME, ',' ORDER BY ORDINAL_POSITION)
		FROM INFORMATION_SCHEMA.INDEX_COLUMNS WHERE TABLE_SCHEMA = '' GROUP BY 1, 2 ORDER BY 1, 2`
	return c.Single().Query(ctx, spanner.NewStatement(columns)).Do(func(r *spanner.Row) error {
		var tableName, index, keys string
		if err := r.Columns(&tableName, &index, &keys); err != nil {
			return err
		}
		if index == "PRIMARY_KEY" {
			sql := "SELECT * FROM " + tableName
			return dump(out, sql, c.Single().Query(ctx, spanner.NewStatement(sql)))
		}
		return dump(out, "index "+index, c.Single().ReadUsingIndex(ctx, tableName, index, spanner.AllKeys(), strings.Split(keys, ",")))
	})
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
