package file

import (
	"bytes"
	"context"
	"io"
	"os"
)

// cutBuffer is the number of bytes that cut reads from the file at once.
const cutBuffer = 1 << 18

// cut divides the rows of a text file into up to n ranges of bytes. It returns the offsets at which the ranges start,
// followed by the end of the last range. If the syntax has quotes, cut reads the file up to the start of the last
// range, since line ends within quotes do not end a row. Otherwise it reads only a part of the file before each start.
func cut(ctx context.Context, f textFile, n int, s syntax) ([]int64, error) {
	cuts := []int64{f.from}
	if n < 2 {
		return append(cuts, f.end), nil
	}
	file, err := os.Open(f.name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	c := cutter{file: file, at: f.from, end: f.end, buffer: make([]byte, cutBuffer), quoted: s.quotes, quotes: newQuotes(s.delimiter)}
	for i := 1; i < n; i++ {
		begin, err := c.next(ctx, f.from+(f.end-f.from)*int64(i)/int64(n))
		if err != nil {
			return nil, err
		}
		if begin > cuts[len(cuts)-1] && begin < f.end {
			cuts = append(cuts, begin)
		}
	}
	return append(cuts, f.end), nil
}

// cutter finds the starts of rows in a file.
type cutter struct {
	file    *os.File
	at, end int64 // the current offset, and the offset at which the rows end
	buffer  []byte
	quoted  bool   // whether the syntax has quotes
	quotes  quotes // if the syntax has quotes: whether the current offset is within quotes
}

// next returns the offset of the first row that begins at or after offset, or the end of the rows if there is none.
// Before the call, the cutter must be at the start of a row.
func (c *cutter) next(ctx context.Context, offset int64) (int64, error) {
	if c.at >= offset {
		return c.at, nil // no row begins between offset and c.at
	}
	if !c.quoted {
		c.at = offset - 1
	}
	for c.at < c.end {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		want := min(int64(len(c.buffer)), c.end-c.at)
		if c.at < offset-1 {
			want = min(want, offset-1-c.at)
		}
		n, err := c.file.ReadAt(c.buffer[:want], c.at)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if n == 0 {
			break // the file has become shorter
		}
		if c.at < offset-1 {
			c.quotes.pass(c.buffer[:n])
			c.at += int64(n)
			continue
		}
		if c.passRow(c.buffer[:n]) {
			return c.at, nil
		}
	}
	return c.end, nil
}

// passRow advances to the end of the first row that ends within the given text. If no row ends there, it advances to
// the end of the text and returns false.
func (c *cutter) passRow(text []byte) (ended bool) {
	for len(text) > 0 {
		n := bytes.IndexByte(text, '\n')
		line := text[:n+1]
		if n < 0 {
			line = text
		}
		if c.quoted {
			c.quotes.pass(line)
		}
		c.at += int64(len(line))
		if n >= 0 && !c.quotes.open() {
			return true
		}
		text = text[len(line):]
	}
	return false
}
