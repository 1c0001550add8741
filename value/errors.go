package value

import "strconv"

// maxQuoted is how much of a bad value an error shows.
const maxQuoted = 100

// quoted is s as errors show it: in quotes, cut off if long.
func quoted(s string) string { return strconv.Quote(s[:min(len(s), maxQuoted)]) + ellipsis(s) }

// cut is s, cut off if long.
func cut(s string) string { return s[:min(len(s), maxQuoted)] + ellipsis(s) }

func ellipsis(s string) string {
	if len(s) > maxQuoted {
		return "..."
	}
	return ""
}
