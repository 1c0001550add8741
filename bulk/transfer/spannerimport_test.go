package transfer

import (
	"testing"

	"github.com/twmb/avro"
)

// TestTableDDLOfProtos checks that the types PROTO<a.B> and ENUM<a.C> in a Cloud Spanner export become a.B and a.C in
// the DDL.
func TestTableDDLOfProtos(t *testing.T) {
	schema, err := avro.Parse(`{"type": "record", "name": "T", "spannerPrimaryKey_0": "` + "`K` ASC" + `", "fields": [
		{"name": "K", "type": {"type": "long", "sqlType": "INT64"}, "sqlType": "INT64"},
		{"name": "I", "type": ["null", "bytes"], "sqlType": "PROTO<shop.Item>"},
		{"name": "E", "type": ["null", "long"], "sqlType": "ENUM<shop.Kind>"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tableDDL("T", schema.Root())
	const want = "CREATE TABLE `T` (\n  `K` INT64 NOT NULL,\n  `I` shop.Item,\n  `E` shop.Kind\n) PRIMARY KEY (`K` ASC)"
	if err != nil || got != want {
		t.Errorf("%v: %s", err, got)
	}
}
