package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/text/encoding/charmap"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk"
)

// text is a source that reads CSV, TBL or JSON lines.
type text struct {
	json      bool
	files     []textFile
	reject    func(bulk.BadRow) error
	syntax    syntax
	names     []string // the columns of the files, in order
	targets   []int    // for each name, the index of the field in the schema; -1 if the column is left out
	schema    *arrow.Schema
	types     []*spannerpb.Type // the types of the schema's fields
	encoding  *charmap.Charmap  // nil is UTF-8
	generated []string          // columns that the database computes
	others    bool              // whether members of JSON lines that are not in names are ignored, rather than errors
	done      []bulk.Extent     // parts of the files that are left out
}

// textFile is a file with the range of its rows.
type textFile struct {
	name      string
	from, end int64
}

// syntax describes how text is written.
type syntax struct {
	delimiter byte
	quotes    bool   // a field may be in quotes, such as "a, ""b"""
	escapes   bool   // a field may have escapes with a backslash: \N, \n, \\ and \|
	terminal  bool   // the last field may be followed by a delimiter, too
	null      string // an unquoted field with this text is NULL
}

func syntaxOf(o Options) syntax {
	s := syntax{delimiter: ',', quotes: !o.Text.NoQuotes}
	if o.Format == TBL {
		s = syntax{delimiter: '|', escapes: true, terminal: true, null: `\N`}
	}
	if o.Text.Delimiter != 0 {
		s.delimiter = o.Text.Delimiter
	}
	if o.Text.Null != "" {
		s.null = o.Text.Null
	}
	return s
}

var encodings = map[string]*charmap.Charmap{
	"": nil, "utf-8": nil, "utf8": nil, "iso-8859-1": charmap.ISO8859_1, "latin1": charmap.ISO8859_1, "windows-1252": charmap.Windows1252,
}

func openText(names []string, o Options) (bulk.Source, error) {
	encoding, ok := encodings[strings.ToLower(o.Text.Encoding)]
	if !ok {
		return nil, fmt.Errorf("the encoding %q is not known: want utf-8, iso-8859-1 or windows-1252", o.Text.Encoding)
	}
	t := &text{done: o.Done, generated: o.Generated, reject: o.Reject, syntax: syntaxOf(o), encoding: encoding, names: o.Columns}
	if d := t.syntax.delimiter; d == '\n' || d == '\r' || d == '"' && t.syntax.quotes || d == '\\' && t.syntax.escapes {
		return nil, fmt.Errorf("%q cannot be a delimiter", d)
	}
	for _, name := range names {
		f, header, err := openTextFile(name, o.Format == CSV && !o.Text.NoHeader, t.syntax)
		if err != nil {
			return nil, err
		}
		switch {
		case len(o.Columns) > 0 || header == nil:
		case t.names == nil:
			t.names = header
		case !slices.Equal(t.names, header):
			return nil, fmt.Errorf("%s has the columns %v, and %s has %v: read them one after the other", names[0], t.names, name, header)
		}
		t.files = append(t.files, f)
	}
	var err error
	if o.Schema == nil {
		if o.Schema, err = t.infer(); err != nil {
			return nil, err
		}
	}
	return t, t.choose(o.Schema)
}

// openTextFile finds the range of bytes in which a file's rows are, and reads the header if the file has one.
func openTextFile(name string, hasHeader bool, s syntax) (f textFile, header []string, err error) {
	file, err := os.Open(name)
	if err != nil {
		return f, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return f, nil, err
	}
	if info.IsDir() {
		return f, nil, fmt.Errorf("%s is a directory, want a file", name)
	}
	f = textFile{name: name, end: info.Size()}
	in := bufio.NewReader(file)
	begin, _ := in.Peek(3)
	switch {
	case bytes.HasPrefix(begin, []byte("\xef\xbb\xbf")):
		f.from = 3
		in.Discard(3)
	case bytes.HasPrefix(begin, []byte("\xff\xfe")) || bytes.HasPrefix(begin, []byte("\xfe\xff")):
		return f, nil, fmt.Errorf("%s is UTF-16: convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)", name)
	}
	if !hasHeader || f.from == f.end {
		return f, nil, nil
	}
	line, err := in.ReadBytes('\n')
	if err != nil && err != io.EOF {
		return f, nil, fmt.Errorf("%s: %w", name, err)
	}
	f.from += int64(len(line))
	var row splitter
	if err := row.split(s, bytes.TrimRight(line, "\r\n")); err != nil {
		return f, nil, fmt.Errorf("%s:1: the header: %w", name, err)
	}
	for _, field := range row.fields {
		header = append(header, strings.TrimSpace(string(field.text)))
	}
	return f, header, nil
}

// choose finds, for each column of the files, the field with the same name in a schema. The parameter wanted is this
// schema. The fields that choose finds become the schema of the source. choose returns an error if the given schema has
// no field for a column of the files.
func (t *text) choose(wanted *arrow.Schema) error {
	if t.names == nil {
		for _, f := range wanted.Fields() {
			t.names = append(t.names, f.Name)
		}
	}
	var fields []arrow.Field
	for _, name := range t.names {
		if name == "-" {
			t.targets = append(t.targets, -1)
			continue
		}
		at := slices.IndexFunc(wanted.Fields(), func(f arrow.Field) bool { return strings.EqualFold(f.Name, name) })
		if at < 0 {
			return fmt.Errorf("%s: %w", t.files[0].name, t.notWanted(name))
		}
		field := wanted.Field(at)
		if slices.ContainsFunc(fields, func(f arrow.Field) bool { return f.Name == field.Name }) {
			return fmt.Errorf("%s has the column %s twice", t.files[0].name, name)
		}
		_, typ, err := arrowtype.SpannerType(field)
		if err != nil {
			return err
		}
		t.targets = append(t.targets, len(fields))
		fields, t.types = append(fields, field), append(t.types, typ)
	}
	if len(fields) == 0 {
		return errors.New("no column is wanted")
	}
	t.schema = arrow.NewSchema(fields, nil)
	return nil
}

// notWanted returns the error for a column of the files that the schema does not have.
func (t *text) notWanted(name string) error {
	leaveOut := "name the files' columns, with - for one that is left out"
	if t.json {
		leaveOut = "name the columns that are wanted to leave it out"
	}
	if slices.ContainsFunc(t.generated, func(g string) bool { return strings.EqualFold(g, name) }) {
		return fmt.Errorf("column %s is generated: the database computes it, and takes no values (%s)", name, leaveOut)
	}
	return fmt.Errorf("the table has no column %s (%s)", name, leaveOut)
}

func (t *text) Schema() *arrow.Schema { return t.schema }

func (t *text) Close() error { return nil }

// smallestSegment is approximately the minimum number of bytes in a segment, unless the file is smaller. To begin a
// segment takes some time. With smaller segments, this would be more time than reading them concurrently saves.
const smallestSegment = 1 << 16

func (t *text) Segments(ctx context.Context, n int) (segments []bulk.Segment, err error) {
	var files []textFile
	total := int64(0)
	for _, f := range t.files {
		for _, e := range (bulk.Extent{File: f.name, From: f.from, To: f.end}).Without(t.done) {
			files = append(files, textFile{f.name, e.From, e.To})
			total += e.To - e.From
		}
	}
	size := max(total/int64(max(n, 1)), smallestSegment)
	for _, f := range files {
		cuts, err := cut(ctx, f, int((f.end-f.from+size/2)/size), t.syntax)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		for i, from := range cuts[:len(cuts)-1] {
			segments = append(segments, &textSegment{t, f.name, from, cuts[i+1]})
		}
	}
	return segments, nil
}

// textSegment is a range of bytes of a file. It begins at the start of a row.
type textSegment struct {
	of        *text
	name      string
	from, end int64
}

func (s *textSegment) Bytes() int64 { return s.end - s.from }

func (s *textSegment) Extent() bulk.Extent { return bulk.Extent{File: s.name, From: s.from, To: s.end} }

func (s *textSegment) String() string {
	return fmt.Sprintf("%s, bytes %d to %d", s.name, s.from, s.end)
}

func (s *textSegment) Open(context.Context) (bulk.Reader, error) { return newTextReader(s) }
