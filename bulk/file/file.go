package file

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// Format is a form of files.
type Format string

// The formats.
const (
	CSV       Format = "csv"     // RFC 4180
	TBL       Format = "tbl"     // TPC-H's: fields that end with |, no header
	JSONLines Format = "jsonl"   // an object a line
	Parquet   Format = "parquet" // Apache Parquet
	Arrow     Format = "arrow"   // Apache Arrow's IPC file
	Avro      Format = "avro"    // Apache Avro's object container file
)

// Formats are all of them.
var Formats = []Format{CSV, TBL, JSONLines, Parquet, Arrow, Avro}

// suffixes are what names of files end with.
var suffixes = map[string]Format{
	".csv": CSV, ".tbl": TBL, ".jsonl": JSONLines, ".ndjson": JSONLines, ".json": JSONLines, ".parquet": Parquet,
	".arrow": Arrow, ".feather": Arrow, ".ipc": Arrow, ".avro": Avro,
}

// FormatOf tells the format by a file's name: customer.tbl, also customer.tbl.3 as dbgen names a part, and Singers.avro-00000-of-00002.
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

// Options say how files are read. The zero Options read files of UTF-8 by their names, with all columns and with types as they look.
type Options struct {
	Format Format // "" tells it by the name
	// Schema has the columns that are wanted of files without types (CSV, TBL, JSON lines), with the Spanner types of their metadata. They are found by their
	// names, or by their order in files without names. Without a Schema the types are inferred from the first rows.
	Schema *arrow.Schema
	// Columns are the names of the files' columns, in order, in place of those that they have; "-" leaves a column out. JSON lines have no order, and take none.
	Columns []string
	// Reject is called for each row of text that is malformed, at the same time by several readers. If it returns nil the row is left out. Without Reject, and if it
	// returns an error, the reader ends with an error.
	Reject func(bulk.BadRow) error
	Text   TextOptions
	// Done are parts of the files that are not read: their rows were.
	Done []bulk.Extent
	// Generated are names of columns that the database computes, which errors tell from those that it does not have.
	Generated []string
}

// TextOptions say how CSV and TBL are written.
type TextOptions struct {
	Delimiter byte   // between fields; ',' or '|' if it is 0
	NoHeader  bool   // the first line of a CSV file is not the columns' names
	NoQuotes  bool   // a quote in CSV is a character like others
	Null      string // what stands for NULL where it is not quoted: by default nothing in CSV, \N in TBL
	Encoding  string // utf-8, iso-8859-1 or windows-1252; "" is utf-8
}

// Open opens the files that patterns match: names, or globs of filepath.Match. They are of one format and have the same columns.
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

// Glob returns the files that patterns match, each once, in order. A pattern that matches none is an error.
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
