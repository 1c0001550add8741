package transfer

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk/file"
)

// manifestName is the file that lists what an export wrote.
const manifestName = "manifest.json"

// Manifest lists the files of an export.
type Manifest struct {
	Database  string          `json:"database"`
	Timestamp time.Time       `json:"timestamp"` // at which everything was read
	Format    file.Format     `json:"format"`
	Tables    []ManifestTable `json:"tables"`
	DDL       []string        `json:"ddl,omitempty"` // of the whole database
}

// ManifestTable is a table, or the rows of a query.
type ManifestTable struct {
	Name    string           `json:"name"`
	Rows    int64            `json:"rows"`
	Columns []ManifestColumn `json:"columns"`
	Files   []ManifestFile   `json:"files"`
}

// ManifestColumn is a column, with its type as DDL says it.
type ManifestColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
}

// ManifestFile is a file, with the checksum of its bytes in hexadecimal digits.
type ManifestFile struct {
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func manifestColumn(f arrow.Field) ManifestColumn {
	ddl, ok := f.Metadata.GetValue(arrowtype.TypeKey)
	if !ok {
		ddl = f.Type.String()
	}
	return ManifestColumn{f.Name, ddl, f.Nullable}
}

// finish writes the manifest.
func (e *exporter) finish() (*Manifest, error) {
	m := &Manifest{Database: e.Database, Timestamp: e.state.Timestamp.UTC(), Format: e.Format, DDL: e.DDL}
	for i, t := range e.state.Tables {
		table := ManifestTable{Name: t.Name, Columns: columnsOf(e.rows[i].Schema())}
		n := max(len(t.Partitions), 1)
		for k := range n {
			f := e.done[fileName(t.Name, k, n, e.Format)]
			table.Rows += f.Rows
			table.Files = append(table.Files, ManifestFile{f.Name, f.Rows, f.Bytes, f.SHA256})
		}
		m.Tables = append(m.Tables, table)
	}
	if e.Format == SpannerExport {
		if err := e.finishSpanner(); err != nil {
			return nil, err
		}
	}
	return m, writeJSON(filepath.Join(e.Dir, manifestName), m)
}

// writeJSON writes a file that is there completely or not at all.
func writeJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.Create(name + partial)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name+partial))
	}
	if err := os.Rename(name+partial, name); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}
