package crossings

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Features of schemas and values.
const (
	interleaved      = "interleaved tables"
	floatKey         = "FLOAT64 in keys"
	numericKey       = "NUMERIC in keys"
	descending       = "DESC"
	namedSchema      = "named schemas"
	virtualColumn    = "generated columns"
	storedColumn     = "STORED columns"
	functions        = "functions"
	defaulted        = "DEFAULT"
	sequence         = "sequences"
	commitTimestamp  = "commit timestamps"
	protos           = "PROTO"
	indexed          = "indexes"
	unique           = "UNIQUE"
	nullFiltered     = "NULL_FILTERED"
	storing          = "STORING"
	interleavedIndex = "interleaved indexes"
	checks           = "CHECK"
	foreignKey       = "foreign keys"
	cascadingKey     = "cascading foreign keys"
	rowDeletion      = "row deletion policies"
	synonyms         = "synonyms"

	addedColumn      = "ADD COLUMN"
	droppedColumn    = "DROP COLUMN"
	alteredColumn    = "ALTER COLUMN"
	createdIndex     = "CREATE INDEX"
	droppedIndex     = "DROP INDEX"
	alteredIndex     = "ALTER INDEX"
	renamed          = "RENAME TO"
	createdTable     = "CREATE TABLE"
	droppedTable     = "DROP TABLE"
	replacedFunction = "CREATE OR REPLACE FUNCTION"
	columnarPolicy   = "columnar_policy"

	nulls      = "NULL"
	signedZero = "signed zeros"
	nan        = "NaN and infinities"
	empty      = "empty values"
	longText   = "long values"
	extreme    = "extreme values"
)

func init() {
	for _, name := range []string{
		interleaved, floatKey, numericKey, descending, namedSchema, virtualColumn, storedColumn, functions, defaulted, sequence, commitTimestamp, protos,
		indexed, unique, nullFiltered, storing, interleavedIndex, cascadingKey, nulls, signedZero, nan, empty, longText, extreme,
	} {
		add(feature{name: name})
	}
	for _, c := range []struct {
		name string
		draw func(*world, *model) *change
	}{
		{addedColumn, (*world).addColumn}, {droppedColumn, (*world).dropColumn}, {alteredColumn, (*world).alterColumn},
		{createdIndex, (*world).createIndex}, {droppedIndex, (*world).dropIndex}, {alteredIndex, (*world).alterIndex},
		{checks, (*world).changeCheck}, {foreignKey, (*world).changeForeignKey}, {rowDeletion, (*world).changePolicy}, {renamed, (*world).renameTable},
		{synonyms, (*world).changeSynonym}, {createdTable, (*world).createTable}, {droppedTable, (*world).dropTable},
		{replacedFunction, (*world).replaceFunction}, {columnarPolicy, (*world).changeColumnar},
	} {
		add(feature{name: c.name, change: func(w *world) *change { return c.draw(w, w.now().m) }})
	}
}

// itemDescriptors returns the descriptors of shop.Item.
func itemDescriptors(t *testing.T) []byte {
	t.Helper()
	data, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: proto.String("shop.proto"), Package: proto.String("shop"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Item"), Field: []*descriptorpb.FieldDescriptorProto{{
			Name: proto.String("id"), Number: proto.Int32(1), Type: descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}
