package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk/file"
)

// manifestName is the name of the file that lists the files of an export.
const manifestName = "manifest.json"

// manifestVersion is the version of the manifests that this program writes. Manifests of early releases have no
// version.
const manifestVersion = 1

// largestManifest is the maximum size of a manifest in bytes. A manifest with 5,000 tables and the largest schema and
// proto bundle that a database can have takes about 30 MiB.
const largestManifest = 256 << 20

// Manifest lists the files of an export.
type Manifest struct {
	Version   int             `json:"version"`
	Database  string          `json:"database"`
	Timestamp time.Time       `json:"timestamp"` // the timestamp at which all rows were read
	Format    file.Format     `json:"format"`
	Query     string          `json:"query,omitempty"` // the exported query; "" if tables were exported
	Tables    []ManifestTable `json:"tables"`
	DDL       []string        `json:"ddl,omitempty"` // DDL of the whole database, in which sequences start after the values that they have given out
	// ProtoDescriptors holds the descriptors of the proto bundle that the statements in the field DDL create.
	ProtoDescriptors []byte `json:"protoDescriptors,omitempty"`
}

// ManifestTable describes an exported table, or the rows of a query.
type ManifestTable struct {
	Name    string           `json:"name"`
	Rows    int64            `json:"rows"`
	Columns []ManifestColumn `json:"columns"`
	Files   []ManifestFile   `json:"files"`
}

// ManifestColumn is a column, with its type as in DDL.
type ManifestColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
}

// ManifestFile is a file, with its checksum in hexadecimal digits.
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
	m := &Manifest{Version: manifestVersion, Database: e.Database, Timestamp: e.state.Timestamp.UTC(), Format: e.Format, Query: e.Query, DDL: e.DDL, ProtoDescriptors: e.ProtoDescriptors}
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

// readManifest reads and checks the manifest of a directory. It does not check the files themselves.
func readManifest(dir string) (*Manifest, error) {
	m := &Manifest{}
	if err := readJSON(filepath.Join(dir, manifestName), m); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, manifestName), err)
	}
	return m, nil
}

// check returns an error if Export could not have written the manifest.
func (m *Manifest) check() error {
	switch {
	case m.Version < 0 || m.Version > manifestVersion:
		return fmt.Errorf("its version is %d, and this crowfoot knows those up to %d", m.Version, manifestVersion)
	case m.Format != SpannerExport && !slices.Contains(file.Formats, m.Format):
		return fmt.Errorf("its format is %q: want one of %v", m.Format, append(file.Formats, SpannerExport))
	}
	tables, files := map[string]bool{}, map[string]bool{}
	for _, t := range m.Tables {
		if key := strings.ToLower(t.Name); tables[key] {
			return fmt.Errorf("it names table %s twice", t.Name)
		}
		tables[strings.ToLower(t.Name)] = true
		rows := int64(0)
		for _, f := range t.Files {
			if f.Rows < 0 || f.Bytes < 0 {
				return fmt.Errorf("it says that the file %s has %d rows and %d bytes", f.Name, f.Rows, f.Bytes)
			}
			if files[f.Name] {
				return fmt.Errorf("it names the file %s twice", f.Name)
			}
			files[f.Name] = true
			rows += f.Rows
		}
		if rows != t.Rows || len(t.Files) == 0 {
			return fmt.Errorf("it says that table %s has %d rows, and its %d files have %d", t.Name, t.Rows, len(t.Files), rows)
		}
	}
	return nil
}

func readJSON(name string, v any) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, largestManifest+1))
	switch {
	case err != nil:
		return err
	case len(text) > largestManifest:
		return fmt.Errorf("%s has more than %d MiB: no export writes that", name, largestManifest>>20)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s is damaged: %w", name, err)
	}
	return nil
}

// writeJSON writes v as JSON to a file. After a crash, the file exists completely or not at all.
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
