package file

import (
	"encoding/base64"

	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/crowfoot-db/crowfoot/arrowmessage"
)

// checkArrowSchema checks the Arrow schema that the metadata of a Parquet file may contain. The schema is a
// flatbuffer, which Arrow's library would read without checks.
func checkArrowSchema(m *metadata.FileMetaData) error {
	text := m.KeyValueMetadata().FindValue("ARROW:schema")
	if text == nil {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(*text)
	if err != nil {
		return err
	}
	schema, err := arrowmessage.Unframed(b)
	if err != nil {
		return err
	}
	d, err := arrowmessage.NewDecoder(arrowmessage.Message{Metadata: schema}, atMost(largestBuffer))
	if err == nil {
		d.Close()
	}
	return err
}
