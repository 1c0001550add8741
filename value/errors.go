package value

import "strconv"

// maxQuoted is how much of a bad value an error shows.
const maxQuoted = 100

// quoted is s as errors show it: in quotes, cut off if long.
func quoted(s string) string {
	if len(s) > maxQuoted {
		return strconv.Quote(s[:maxQuoted]) + "..."
	}
	return strconv.Quote(s)
}
