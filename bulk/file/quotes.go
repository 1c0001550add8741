package file

import "bytes"

// quotes tells, of a text that it passes from the begin of a row on, which line ends are within quotes. A quote opens only a field that begins with it; any other
// one is malformed and leaves the rows that follow alone. Readers and cuts agree on it, also about rows that are malformed.
type quotes struct {
	delimiter byte
	last      byte // before what follows
	within    bool // a quote is open
	closing   bool // the last byte was a quote, which closes the one that is open unless another follows
}

func newQuotes(delimiter byte) quotes { return quotes{delimiter: delimiter, last: '\n'} }

// open says whether the place that was reached is within quotes.
func (q *quotes) open() bool { return q.within && !q.closing }

// pass goes on behind a part of the text.
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
