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

// The library has one default time zone, America/Los_Angeles, in which it reads timestamp literals that name no zone.
// It reads that zone from the machine's zone database, and does not start without one. If the machine has none,
// initLibrary gives the library a substitute, with which the library reads these literals as UTC. In two cases rezone
// must read the literals again from their text: the user's database has another default time zone, or the machine has
// no zone database.

// zoneFile is the path of the library's default zone within a zone database.
var zoneFile = filepath.FromSlash(schema.DefaultTimeZone)

// utcFile is the content of a zone file (RFC 8536, version 1) for UTC: the header, one type of local time, and its
// name.
var utcFile = "TZif" + strings.Repeat("\x00", 16+4*4+3) + "\x01\x00\x00\x00\x04" + "\x00\x00\x00\x00\x00\x00" + "UTC\x00"

// initLibrary starts an instance of the library. If the machine has no zone database, initLibrary gives the library a
// file that says UTC for the library's default zone, and returns false.
func initLibrary() (zoned bool) {
	if _, err := os.Stat(filepath.Join(zoneDatabase(), zoneFile)); err == nil {
		do(startModule())
		return true
	}
	dir := get(os.MkdirTemp("", "zoneinfo"))
	defer os.RemoveAll(dir)
	do(os.MkdirAll(filepath.Dir(filepath.Join(dir, zoneFile)), 0o700))
	do(os.WriteFile(filepath.Join(dir, zoneFile), []byte(utcFile), 0o600))
	old, had := os.LookupEnv("TZDIR")
	do(os.Setenv("TZDIR", dir))
	do(startModule())
	if had {
		do(os.Setenv("TZDIR", old))
	} else {
		do(os.Unsetenv("TZDIR"))
	}
	// The library reads the file of its default zone when it makes the first options, and never again.
	freeOptions(own(googlesql.NewAnalyzerOptions2()))
	return false
}

// zoneDatabase returns the directory in which the library looks for zones.
func zoneDatabase() string {
	if dir := os.Getenv("TZDIR"); dir != "" {
		return dir
	}
	return "/usr/share/zoneinfo"
}

// zoneOf returns the default time zone of a database, or nil if the library of e reads timestamps in that zone
// anyway.
func zoneOf(c *schema.Catalog, e *engine) *time.Location {
	name := c.Options.TimeZone()
	if name == schema.DefaultTimeZone && e.zoned {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC // never happens: the name was checked when the database got this time zone
	}
	return zone
}

// rezone reads a literal again in w.zone if it is a timestamp or an array of timestamps. v is the value that the
// library has read.
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

// textOf returns the text of a literal in the statement, or "" if the library did not record where the literal
// stands.
func (w *walker) textOf(n *googlesql.ResolvedLiteral) string {
	at := get(n.GetParseLocationRangeOrNULL())
	if at == nil {
		return ""
	}
	return w.sql[get(get(at.Start()).GetByteOffset()):get(get(at.End()).GetByteOffset())]
}

// readAgain reads the first of texts as a timestamp in w.zone. It returns v if there is no such text, or if the
// text is not a timestamp.
func (w *walker) readAgain(v value.Value, texts []string) value.Value {
	if len(texts) == 0 {
		return v
	}
	if again, err := value.ParseTimestamp(texts[0], w.zone); err == nil {
		return again
	}
	return v
}

// stringsIn returns the contents of the string literals in a piece of SQL. It does not replace escapes, because no
// timestamp needs any.
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
