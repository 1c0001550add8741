package stats

import (
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/dgryski/go-farm"
)

// Text is the SQL text of a statement with its fingerprint. It is made once for a prepared statement.
type Text struct {
	SQL         string // the whole text
	Fingerprint int64
}

// TextOf makes a Text.
func TextOf(sql string) Text { return Text{SQL: sql, Fingerprint: fingerprint(sql)} }

// BatchText returns the text of a batch of DML: the statements, joined by semicolons. Where equal statements follow
// each other, the text has only one of them:
// https://cloud.google.com/spanner/docs/introspection/query-statistics#table_schema.
// BatchText may overwrite the elements of the slice statements.
func BatchText(statements []string) Text {
	return TextOf(strings.Join(slices.Compact(statements), ";"))
}

// fingerprint returns FarmHash's Fingerprint64 as a signed number. The SQL function FARM_FINGERPRINT returns the same
// number, so users can find the rows of a statement.
func fingerprint(s string) int64 {
	return int64(farm.Fingerprint64(unsafe.Slice(unsafe.StringData(s), len(s)))) // Fingerprint64 only reads the bytes
}

// fingerprintOf returns the fingerprint of tag, or the argument untagged if tag is empty.
func fingerprintOf(tag string, untagged int64) int64 {
	if tag == "" {
		return untagged
	}
	return fingerprint(tag)
}

// cut returns the beginning of s: at most n bytes, which end with a complete character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Tag returns the form of a client's tag that statistics show: its first maxTag characters without leading underscores,
// in which an underscore replaces each character that is not printable ASCII.
func Tag(tag string) string {
	if isTag(tag) {
		return tag
	}
	var room [maxTag]byte
	made := room[:0]
	for _, c := range tag {
		if c < ' ' || c > '~' {
			c = '_'
		}
		if c == '_' && len(made) == 0 {
			continue
		}
		if made = append(made, byte(c)); len(made) == maxTag {
			break
		}
	}
	return string(made)
}

// isTag reports whether the function Tag would return tag unchanged.
func isTag(tag string) bool {
	if len(tag) > maxTag || strings.HasPrefix(tag, "_") {
		return false
	}
	for i := range len(tag) {
		if tag[i] < ' ' || tag[i] > '~' {
			return false
		}
	}
	return true
}

// mix is the finaliser of MurmurHash3: every bit of the result depends on every bit of v.
func mix(v uint64) uint64 {
	v ^= v >> 33
	v *= 0xff51afd7ed558ccd
	v ^= v >> 33
	v *= 0xc4ceb9fe1a85ec53
	return v ^ v>>33
}
