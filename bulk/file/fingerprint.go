package file

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// Version identifies the content of a file without reading the file.
type Version struct {
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// VersionOf returns the current version of a file.
func VersionOf(name string) (Version, error) {
	info, err := os.Stat(name)
	if err != nil {
		return Version{}, err
	}
	return Version{info.Size(), info.ModTime().UTC()}, nil
}

// Fingerprint identifies the content of an extent of a text file. With it, Find can find the rows of the extent after
// the file has changed.
type Fingerprint struct {
	Bytes int64  `json:"bytes"`
	First uint32 `json:"first"` // the CRC-32 of the first line
	Sum   string `json:"sum"`   // the SHA-256 of the bytes; "" for a file that is not text, which Find ignores
}

var firstTable = crc32.MakeTable(crc32.Castagnoli)

// IsText reports whether the files are text, so that Find can find their rows by content.
func (o Options) IsText(names ...string) bool {
	format := o.Format
	if format == "" {
		format, _ = oneFormat(names)
	}
	return format == CSV || format == TBL || format == JSONLines
}

// Fingerprint returns the fingerprint of an extent. The result is the zero Fingerprint if the file is not text.
func (o Options) Fingerprint(e bulk.Extent) (f Fingerprint, err error) {
	if !o.IsText(e.File) {
		return f, nil
	}
	file, err := os.Open(e.File)
	if err != nil {
		return f, err
	}
	defer file.Close()
	f.Bytes = e.To - e.From
	in := bufio.NewReaderSize(io.NewSectionReader(file, e.From, f.Bytes), int(min(f.Bytes, cutBuffer)))
	sum := sha256.New()
	for more := true; more; {
		line, err := in.ReadSlice('\n')
		f.First = crc32.Update(f.First, firstTable, line)
		sum.Write(line)
		if more = errors.Is(err, bufio.ErrBufferFull); !more && err != nil && err != io.EOF {
			return f, err
		}
	}
	_, err = io.Copy(sum, in)
	f.Sum = hex.EncodeToString(sum.Sum(nil))
	return f, err
}

// Head returns the SHA-256 of the bytes before the first row of a text file, such as a header. The caller compares it
// with an earlier one to detect that the header has changed, because a header decides what the values in the rows mean.
func (o Options) Head(name string) (string, error) {
	if !o.IsText(name) {
		return "", nil
	}
	f, _, err := o.begin(name)
	if err != nil {
		return "", err
	}
	head, err := o.Fingerprint(bulk.Extent{File: name, To: f.from})
	return head.Sum, err
}

func (o Options) begin(name string) (f textFile, s syntax, err error) {
	if o.Format == "" {
		if o.Format, err = oneFormat([]string{name}); err != nil {
			return f, s, err
		}
	}
	if s = syntaxOf(o); o.Format == JSONLines {
		s = syntax{delimiter: ','}
	}
	f, _, err = openTextFile(name, o.Format == CSV && !o.Text.NoHeader, s)
	return f, s, err
}

// findEffort limits the work of Find, which would otherwise take very long for a file of equal lines. Find may compare
// this many bytes for each byte of the file, where a file of less than 64 MiB counts as 64 MiB. Find adds cutBuffer
// bytes to the size of each comparison, because even a comparison of few bytes has a cost.
const findEffort = 4

// Find finds extents of a text file by their fingerprints, wherever they now are in the file. extents[i] has the
// fingerprint prints[i], or is empty if Find has not found an extent with this fingerprint. Find finds each extent at
// most once, and only if it consists of whole rows.
func (o Options) Find(name string, prints []Fingerprint) (extents []bulk.Extent, err error) {
	extents = make([]bulk.Extent, len(prints))
	byFirst := map[uint32][]int{}
	for i, p := range prints {
		if p.Sum != "" && p.Bytes > 0 {
			byFirst[p.First] = append(byFirst[p.First], i)
		}
	}
	if len(byFirst) == 0 || !o.IsText(name) {
		return extents, nil
	}
	begin, s, err := o.begin(name)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := &lineReader{file: file, at: begin.from, end: begin.end, buffer: make([]byte, 0, lineBuffer), lines: &lineCounter{name: name}}
	within := newQuotes(s.delimiter)
	for effort := findEffort * max(begin.end, 64<<20); effort > 0; {
		if _, err := lines.next(); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		line, at := lines.buffer[lines.begin:lines.following], lines.from()
		if !within.open() {
			found := -1
			first := crc32.Checksum(line, firstTable)
			for k, i := range byFirst[first] {
				e := bulk.Extent{File: name, From: at, To: at + prints[i].Bytes}
				if !endsRow(file, e.To, begin.end) {
					continue
				}
				effort -= prints[i].Bytes + cutBuffer
				got, err := o.Fingerprint(e)
				if err != nil {
					return nil, err
				}
				if got == prints[i] {
					extents[i], found = e, i
					byFirst[first] = append(byFirst[first][:k:k], byFirst[first][k+1:]...)
					break
				}
			}
			if found >= 0 { // continue after the extent that was found, where a row begins
				lines.at, lines.buffer, lines.begin, lines.following = extents[found].To, lines.buffer[:0], 0, 0
				within = newQuotes(s.delimiter)
				continue
			}
		}
		if s.quotes {
			within.pass(line)
		}
	}
	return extents, nil
}

// endsRow reports whether an offset is directly after a line end, or at the end of the file.
func endsRow(file *os.File, at, end int64) bool {
	var last [1]byte
	_, err := file.ReadAt(last[:], at-1)
	return err == nil && at <= end && (at == end || bytes.Equal(last[:], []byte{'\n'}))
}
