package value

import "strconv"

// maxQuoted is the number of bytes of a bad value that an error shows.
const maxQuoted = 100

// quoted returns s in quotes for an error, shortened if it is long.
func quoted(s string) string { return strconv.Quote(s[:min(len(s), maxQuoted)]) + ellipsis(s) }

// cut returns s, shortened if it is long.
func cut(s string) string { return s[:min(len(s), maxQuoted)] + ellipsis(s) }

func ellipsis(s string) string {
	if len(s) > maxQuoted {
		return "..."
	}
	return ""
}
