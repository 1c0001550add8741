package value

import "strconv"

// maxQuoted is the largest number of bytes of an invalid value that an error message shows.
const maxQuoted = 100

// quoted returns s in quotes for an error message. It shortens s if it is long.
func quoted(s string) string { return strconv.Quote(s[:min(len(s), maxQuoted)]) + ellipsis(s) }

// cut returns s, shortened if it is long.
func cut(s string) string { return s[:min(len(s), maxQuoted)] + ellipsis(s) }

func ellipsis(s string) string {
	if len(s) > maxQuoted {
		return "..."
	}
	return ""
}
