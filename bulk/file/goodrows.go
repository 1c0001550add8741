package file

import "github.com/apache/arrow-go/v18/arrow"

// goodRows cuts the bad rows out of a batch. The rest of the batch consists of slices of consecutive good rows.
type goodRows struct {
	batch arrow.RecordBatch
	rows  int
	bad   []int
	from  int // the first row that was not yet returned
	first int // the first row of the slice that was returned last
}

func (g *goodRows) set(batch arrow.RecordBatch, rows int, bad []int) {
	*g = goodRows{batch: batch, rows: rows, bad: bad}
}

func (g *goodRows) release() {
	if g.batch != nil {
		g.batch.Release()
		g.batch = nil
	}
}

// next returns the next slice of consecutive good rows, or nil after the last one.
func (g *goodRows) next() arrow.RecordBatch {
	for g.batch != nil {
		end := g.rows
		if len(g.bad) > 0 {
			end, g.bad = g.bad[0], g.bad[1:]
		}
		g.first = g.from
		switch g.from = end + 1; {
		case end > g.first && g.first == 0 && end == g.rows:
			batch := g.batch
			g.batch = nil
			return batch
		case end > g.first:
			return g.batch.NewSlice(int64(g.first), int64(end))
		case g.first >= g.rows:
			g.release()
		}
	}
	return nil
}
