package retrieval

import (
	"io"
	"iter"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bench/tpch"
)

// widthRows is the number of rows from which the average length of a row as text is computed.
const widthRows = 10_000

// averageText returns the average length of the rows as text, in bytes.
func averageText[R interface{ AppendText(dst []byte) []byte }](rows iter.Seq[R]) float64 {
	bytes, n := 0, 0
	var line []byte
	for r := range rows {
		line = r.AppendText(line[:0])
		bytes, n = bytes+len(line), n+1
	}
	return float64(bytes) / float64(max(n, 1))
}

// writeText writes rows as text.
func writeText[R interface{ AppendText(dst []byte) []byte }](w io.Writer, rows iter.Seq[R]) error {
	var line []byte
	for r := range rows {
		line = r.AppendText(line[:0])
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// customer is a row of the table customer as a Go program would hold it.
type customer struct {
	Key                    int64
	Name, Address          string
	Nation                 int64
	Phone                  string
	Balance                float64
	MarketSegment, Comment string
}

func customerMutations(t *retrievedTable, _, first, last int64) (list []*spanner.Mutation) {
	for c := range tpch.Customers(first, last) {
		list = append(list, spanner.InsertOrUpdate(t.name, t.columns,
			[]any{c.Key, c.Name, c.Address, c.Nation, c.Phone, float64(c.Balance) / 100, c.Segment, c.Comment}))
	}
	return list
}

// kept is the number of objects that a reader keeps, which are those of the last rows. So the reader builds every
// object, like a program that uses the objects, but does not hold all of them in memory.
const kept = 10_000

func customerObjects(it *spanner.RowIterator) (rows int64, err error) {
	objects := make([]customer, kept)
	err = it.Do(func(r *spanner.Row) error {
		c := &objects[rows%kept]
		rows++
		return r.Columns(&c.Key, &c.Name, &c.Address, &c.Nation, &c.Phone, &c.Balance, &c.MarketSegment, &c.Comment)
	})
	return rows, err
}

// order is a row of the table orders.
type order struct {
	Key, Customer   int64
	Status          string
	TotalPrice      float64
	Date            civil.Date
	Priority, Clerk string
	ShipPriority    int64
	Comment         string
}

// orderScale returns the scale factor of TPC-H at which the table has this number of orders.
func orderScale(rows int64) float64 { return float64(rows) / tpch.OrdersPerScale }

func orderMutations(t *retrievedTable, rows, first, last int64) (list []*spanner.Mutation) {
	epoch := civil.Date{Year: 1970, Month: 1, Day: 1}
	for o := range tpch.Orders(orderScale(rows), first, last) {
		list = append(list, spanner.InsertOrUpdate(t.name, t.columns,
			[]any{o.Key, o.Customer, o.Status, float64(o.TotalPrice) / 100, epoch.AddDays(int(o.Date)), o.Priority, o.Clerk, o.ShipPriority, o.Comment}))
	}
	return list
}

func orderObjects(it *spanner.RowIterator) (rows int64, err error) {
	objects := make([]order, kept)
	err = it.Do(func(r *spanner.Row) error {
		o := &objects[rows%kept]
		rows++
		return r.Columns(&o.Key, &o.Customer, &o.Status, &o.TotalPrice, &o.Date, &o.Priority, &o.Clerk, &o.ShipPriority, &o.Comment)
	})
	return rows, err
}
