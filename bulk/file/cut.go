package file

import (
	"bytes"
	"context"
	"io"
	"os"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// cutBuffer is how much of a file is looked at at once.
const cutBuffer = 1 << 18

// cut divides the rows of a text file into up to n ranges of bytes. It returns where they begin, and the end of the last.
func cut(ctx context.Context, f textFile, n int, quotes bool) ([]int64, error) {
	cuts := []int64{f.from}
	if n < 2 {
		return append(cuts, f.end), nil
	}
	file, err := os.Open(f.name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	at := func(i int) int64 { return f.from + (f.end-f.from)*int64(i)/int64(n) }
	within := make([]bool, n) // whether the i-th cut is within quotes
	if quotes {
		if within, err = oddQuotes(ctx, file, n, at); err != nil {
			return nil, err
		}
	}
	for i := 1; i < n; i++ {
		begin, err := nextRow(file, at(i)-1, f.end, within[i], quotes)
		if err != nil {
			return nil, err
		}
		if begin > cuts[len(cuts)-1] && begin < f.end {
			cuts = append(cuts, begin)
		}
	}
	return append(cuts, f.end), nil
}

// oddQuotes counts the quotes before each of n cuts, at the byte before it, and says which have an odd number.
func oddQuotes(ctx context.Context, file *os.File, n int, at func(i int) int64) ([]bool, error) {
	counts := make([]int, n+1)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n - 1 {
		group.Go(func() error {
			from := at(i)
			if i > 0 {
				from-- // the cut before is looked for from the byte before it
			}
			in := io.NewSectionReader(file, from, at(i+1)-1-from)
			buffer := make([]byte, cutBuffer)
			for ctx.Err() == nil {
				n, err := in.Read(buffer)
				counts[i+1] += bytes.Count(buffer[:n], []byte{'"'})
				if err == io.EOF {
					return nil
				}
				if err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	err := group.Wait()
	odd := make([]bool, n)
	for i, total := 1, 0; i < n; i++ {
		total += counts[i]
		odd[i] = total%2 == 1
	}
	return odd, err
}

// nextRow finds the first row that begins behind an offset: behind the next line end that is not within quotes.
func nextRow(file *os.File, from, end int64, within, quotes bool) (int64, error) {
	buffer := make([]byte, cutBuffer)
	for from < end {
		n, err := file.ReadAt(buffer[:min(int64(len(buffer)), end-from)], from)
		if err != nil && err != io.EOF {
			return 0, err
		}
		for i, c := range buffer[:n] {
			switch {
			case c == '"' && quotes:
				within = !within
			case c == '\n' && !within:
				return from + int64(i) + 1, nil
			}
		}
		if from += int64(n); n == 0 {
			break // the file has become shorter
		}
	}
	return end, nil
}
