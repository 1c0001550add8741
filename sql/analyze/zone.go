package analyze

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// The library has one default time zone, America/Los_Angeles, which it reads
// from the machine's zone database and cannot start without. A timestamp
// literal without a zone is in it. Where the database has another default, or
// the machine has no zone database, such literals are read again here, from
// their text.

// zoneFile is the library's zone in a zone database.
var zoneFile = filepath.FromSlash(schema.DefaultTimeZone)

// utcFile is the content of a zone file (RFC 8536, version 1) for UTC: the header, one type of local time, its name.
var utcFile = "TZif" + strings.Repeat("\x00", 16+4*4+3) + "\x01\x00\x00\x00\x04" + "\x00\x00\x00\x00\x00\x00" + "UTC\x00"

// initLibrary starts the library, on a machine without zone database with a stand-in for the one zone that it needs. It says
// whether the library has the zone itself.
func initLibrary() (zoned bool) {
	if _, err := os.Stat(filepath.Join(zoneDatabase(), zoneFile)); err == nil {
		do(googlesql.Init())
		return true
	}
	dir := get(os.MkdirTemp("", "zoneinfo"))
	defer os.RemoveAll(dir)
	do(os.MkdirAll(filepath.Dir(filepath.Join(dir, zoneFile)), 0o700))
	do(os.WriteFile(filepath.Join(dir, zoneFile), []byte(utcFile), 0o600))
	old, had := os.LookupEnv("TZDIR")
	do(os.Setenv("TZDIR", dir))
	do(googlesql.Init())
	if had {
		do(os.Setenv("TZDIR", old))
	} else {
		do(os.Unsetenv("TZDIR"))
	}
	freeOptions(get(googlesql.NewAnalyzerOptions2())) // reads the zone, once and for all
	return false
}

// zoneDatabase is where the library looks for zones.
func zoneDatabase() string {
	if dir := os.Getenv("TZDIR"); dir != "" {
		return dir
	}
	return "/usr/share/zoneinfo"
}

// zoneOf is the default time zone of a database, nil if the library goes by the same.
func zoneOf(c *schema.Catalog) *time.Location {
	name := c.Options.TimeZone()
	if name == schema.DefaultTimeZone && engine.zoned {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC // as for functions: a machine without zones has UTC
	}
	return zone
}

// rezone reads the timestamps in a literal again, in w.zone, if it is a timestamp or an array of timestamps.
func (w *walker) rezone(n *googlesql.ResolvedLiteral, v value.Value, t *value.Type) value.Value {
	if w.zone == nil || v.IsNull() || t.Kind != value.Timestamp && (t.Kind != value.Array || t.Elem.Kind != value.Timestamp) {
		return v
	}
	text := w.textOf(n)
	if text == "" {
		return v
	}
	texts := stringsIn(text)
	if t.Kind == value.Timestamp {
		return w.readAgain(v, texts)
	}
	elems := make([]value.Value, len(v.AsList()))
	copy(elems, v.AsList())
	for i, e := range elems {
		if !e.IsNull() {
			elems[i] = w.readAgain(e, texts)
			texts = texts[min(1, len(texts)):]
		}
	}
	return value.OfArray(elems)
}

// textOf is a literal as it stands in the statement; "" where the library did not note its place.
func (w *walker) textOf(n *googlesql.ResolvedLiteral) string {
	at := get(n.GetParseLocationRangeOrNULL())
	if at == nil {
		return ""
	}
	return w.sql[get(get(at.Start()).GetByteOffset()):get(get(at.End()).GetByteOffset())]
}

// readAgain reads the first text as a timestamp; v where there is none.
func (w *walker) readAgain(v value.Value, texts []string) value.Value {
	if len(texts) == 0 {
		return v
	}
	if again, err := value.ParseTimestamp(texts[0], w.zone); err == nil {
		return again
	}
	return v
}

// stringsIn are the contents of the string literals in a piece of SQL. Escapes, which no timestamp needs, stay as they are.
func stringsIn(sql string) []string {
	var texts []string
	s := scanner{sql: sql}
	for s.next() {
		at := quoteAt(s.token)
		if at < 0 || s.token[at] == '`' {
			continue
		}
		texts = append(texts, strings.Trim(s.token[at:], s.token[at:at+1]))
	}
	return texts
}
