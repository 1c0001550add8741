package value

import "strconv"

// maxQuoted is the largest number of bytes of an invalid value that an error message shows.
const maxQuoted = 100

// quoted returns s in quotes for an error message. If s is longer than maxQuoted bytes, quoted shortens it.
func quoted(s string) string { return strconv.Quote(s[:min(len(s), maxQuoted)]) + ellipsis(s) }

// cut returns s without quotes. If s is longer than maxQuoted bytes, cut shortens it.
func cut(s string) string { return s[:min(len(s), maxQuoted)] + ellipsis(s) }

func ellipsis(s string) string {
	if len(s) > maxQuoted {
		return "..."
	}
	return ""
}
