package file

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// Format is a file format.
type Format string

// The formats.
const (
	CSV       Format = "csv"     // RFC 4180
	TBL       Format = "tbl"     // TPC-H's format: a | after each field, no header
	JSONLines Format = "jsonl"   // one object per line
	Parquet   Format = "parquet" // Apache Parquet
	Arrow     Format = "arrow"   // Apache Arrow's IPC file
	Avro      Format = "avro"    // Apache Avro's object container file
)

// Formats lists all formats.
var Formats = []Format{CSV, TBL, JSONLines, Parquet, Arrow, Avro}

// suffixes maps the suffixes of file names to formats.
var suffixes = map[string]Format{
	".csv": CSV, ".tbl": TBL, ".jsonl": JSONLines, ".ndjson": JSONLines, ".json": JSONLines, ".parquet": Parquet,
	".arrow": Arrow, ".feather": Arrow, ".ipc": Arrow, ".avro": Avro,
}

// FormatOf returns the format that a file's name indicates. It knows names such as customer.tbl, customer.tbl.3 (as
// TPC-H's dbgen names a part), and Singers.avro-00000-of-00002.
func FormatOf(name string) (Format, bool) {
	base := filepath.Base(name)
	for range 2 {
		suffix := filepath.Ext(base)
		if f, ok := suffixes[strings.ToLower(suffix)]; ok {
			return f, true
		}
		if i := strings.LastIndex(base, ".avro-"); i > 0 {
			return Avro, true
		}
		if strings.Trim(suffix, ".0123456789") != "" {
			break
		}
		base = strings.TrimSuffix(base, suffix)
	}
	return "", false
}

// Options configure how files are read. The zero value means: UTF-8, the format that the file's name indicates, all
// columns, and types inferred from the values.
type Options struct {
	Format Format // "" means that the file's name decides
	// Schema holds the columns to read from files without types (CSV, TBL, JSON lines), with the Spanner types in their
	// metadata. The reader assigns a file's columns to the columns of Schema by name, or by order if the file has no
	// names. If Schema is nil, types are inferred from the first rows.
	Schema *arrow.Schema
	// Columns replaces the names of the files' columns, in order; "-" leaves a column out. The members of JSON lines have
	// no order. For JSON lines, Columns therefore lists the members to read, and other members are ignored.
	Columns []string
	// Reject is called for each malformed row of text, by several readers concurrently. If it returns nil, the row is
	// left out. If it returns an error, or if Reject is nil, the reader ends with an error.
	Reject func(bulk.BadRow) error
	Text   TextOptions
	// Done lists parts of the files that must not be read, because their rows were read by an earlier run.
	Done []bulk.Extent
	// Generated names the columns that the database computes. If a file has such a column, the error message says that
	// the database computes the column, instead of saying that the column does not exist.
	Generated []string
}

// TextOptions describe the syntax of CSV and TBL files.
type TextOptions struct {
	Delimiter byte   // between fields; 0 is ',' in CSV and '|' in TBL
	NoHeader  bool   // true if the first line of a CSV file does not have the columns' names
	NoQuotes  bool   // true if quotes in CSV have no special meaning
	Null      string // an unquoted field with this text is NULL; the default is "" in CSV and \N in TBL
	Encoding  string // utf-8, iso-8859-1 or windows-1252; "" is utf-8
}

// Open returns a source that reads the files that match patterns. A pattern is a file name, or a pattern of
// filepath.Match. All files must have the same format and columns.
func Open(patterns []string, o Options) (bulk.Source, error) {
	names, err := Glob(patterns)
	if err != nil {
		return nil, err
	}
	if o.Format == "" {
		if o.Format, err = oneFormat(names); err != nil {
			return nil, err
		}
	}
	switch o.Format {
	case CSV, TBL:
		return openText(names, o)
	case JSONLines:
		return openJSONLines(names, o)
	}
	open := map[Format]func() (bulk.Source, error){
		Parquet: func() (bulk.Source, error) { return openColumnar(names, parquetFormat) },
		Arrow:   func() (bulk.Source, error) { return openColumnar(names, arrowFormat) },
		Avro:    func() (bulk.Source, error) { return openAvro(names) },
	}[o.Format]
	if open != nil {
		source, err := open()
		if err == nil && len(o.Columns) > 0 {
			source, err = choose(source, o.Columns)
		}
		if err == nil && len(o.Done) > 0 {
			source = &remaining{source, o.Done}
		}
		return source, err
	}
	return nil, fmt.Errorf("the format %s is not known", o.Format)
}

// Glob returns the names of the files that match patterns, each once, in the order of the patterns. A pattern that
// matches no file is an error.
func Glob(patterns []string) (names []string, err error) {
	for _, pattern := range patterns {
		matches := []string{pattern}
		if strings.ContainsAny(pattern, "*?[") {
			if matches, err = filepath.Glob(pattern); err != nil {
				return nil, fmt.Errorf("%s: %w", pattern, err)
			}
			if len(matches) == 0 {
				return nil, fmt.Errorf("no file matches %s", pattern)
			}
		}
		for _, name := range matches {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

func oneFormat(names []string) (format Format, err error) {
	for _, name := range names {
		f, ok := FormatOf(name)
		switch {
		case !ok:
			return "", fmt.Errorf("the name %s does not tell the format: say which of %v it is", name, Formats)
		case format != "" && f != format:
			return "", fmt.Errorf("%s is %s and %s is %s: read them one after the other", names[0], format, name, f)
		}
		format = f
	}
	return format, nil
}
