package file

import "bytes"

// quotes tracks whether a position in a text is within quotes, so that line ends within quotes can be recognized. It
// must begin at the start of a row. A quote is an opening quote only at the start of a field. Any other quote is
// malformed and does not affect the following rows. The reader and the function cut use these rules even for malformed
// rows, so that both divide a file into the same rows.
type quotes struct {
	delimiter byte
	last      byte // the byte before the current position
	within    bool // a quote is open
	closing   bool // the last byte was a quote, which is the closing one unless another quote follows
}

func newQuotes(delimiter byte) quotes { return quotes{delimiter: delimiter, last: '\n'} }

// open reports whether the current position is within quotes.
func (q *quotes) open() bool { return q.within && !q.closing }

// pass moves the position to the end of text, which must be the next part of the file.
func (q *quotes) pass(text []byte) {
	for len(text) > 0 {
		if q.closing {
			q.closing = false
			if text[0] == '"' {
				text = text[1:]
				continue
			}
			q.within = false
		}
		n := bytes.IndexByte(text, '"')
		if n < 0 {
			q.last = text[len(text)-1]
			return
		}
		if n > 0 {
			q.last = text[n-1]
		}
		switch {
		case q.within:
			q.closing = true
		case q.last == q.delimiter || q.last == '\n':
			q.within = true
		}
		q.last, text = '"', text[n+1:]
	}
}
