package tpch

import (
	"iter"
	"strconv"
	"time"
)

// Numbers of rows at scale factor 1.
const (
	OrdersPerScale = 1_500_000
	clerksPerScale = 1000
	partsPerScale  = 200_000
)

// Order is a row of ORDERS. The function Orders overwrites it with the next row, but a string that the caller has
// copied from one of its fields stays valid.
type Order struct {
	Key          int64
	Customer     int64
	Status       string
	TotalPrice   int64 // in hundredths of the currency unit
	Date         int64 // days since 1970-01-01
	Priority     string
	Clerk        string
	ShipPriority int64
	Comment      string
}

// Dates are days since 1970-01-01. An order has at most maxLines lines. Each line is shipped at most maxShipDays days
// after the date of the order.
const (
	firstDate   = 8035 // 1992-01-01
	lastDate    = firstDate + 2557 - maxShipDays - 30 - 1
	currentDate = 9298 // 1995-06-17
	maxShipDays = 121
	maxLines    = 7
)

// Orders yields rows of ORDERS at a scale factor. Rows are numbered from 1, and Orders yields the rows whose number n
// satisfies after < n <= until. It reuses the yielded Order for the next row.
func Orders(scale float64, after, until int64) iter.Seq[*Order] {
	return func(yield func(*Order) bool) {
		date, customer, priority := newStream(1066728069, 1, after), newStream(851767375, 1, after), newStream(591449447, 1, after)
		clerk, comment := newStream(1171034773, 1, after), newStream(276090261, 2, after)
		lines := newLines(scale, after)
		customers, clerks := int64(CustomersPerScale*scale), max(int64(clerksPerScale*scale), clerksPerScale)
		text := pool()
		var o Order
		for n := after + 1; n <= until; n++ {
			o.Key = orderKey(n)
			o.Date = date.between(firstDate, lastDate)
			o.Customer = withOrders(customer.between(1, customers), customers)
			o.TotalPrice, o.Status = lines.order(o.Date)
			o.Priority = priority.word(priorities)
			o.Clerk = string(appendPadded([]byte("Clerk#"), clerk.between(1, clerks), 9))
			o.Comment = comment.comment(text, 49)
			if !yield(&o) {
				return
			}
		}
	}
}

// orderKey returns the key of order n. Of every 32 consecutive keys, the first 8 are used.
func orderKey(n int64) int64 { return n>>3<<5 | n&7 }

// withOrders returns the key of a customer that has orders. Every third customer has none. If key is the key of such a
// customer, withOrders returns a key near it. customers is the number of customers.
func withOrders(key, customers int64) int64 {
	for step := int64(1); key%3 == 0; step = -step {
		key = min(key+step, customers)
	}
	return key
}

// lines holds the streams for the columns of LINEITEM on which the price and status of an order depend.
type lines struct {
	count, quantity, discount, tax, part, shipDate stream
	parts                                          int64
}

func newLines(scale float64, after int64) *lines {
	column := func(seed int64) stream { return newStream(seed, maxLines, after) }
	return &lines{
		count: newStream(1434868289, 1, after), quantity: column(209208115), discount: column(554590007), tax: column(721958466),
		part: column(1808217256), shipDate: column(1769349045), parts: int64(partsPerScale * scale),
	}
}

// order generates the lines of the next order, and returns the order's price and status.
func (l *lines) order(date int64) (price int64, status string) {
	n, shipped := l.count.between(1, maxLines), int64(0)
	for range n {
		quantity, discount, tax := l.quantity.between(1, 50), l.discount.between(0, 10), l.tax.between(0, 8)
		part := l.part.between(1, l.parts)
		each := 90_000 + part/10%20_001 + part%1000*100
		price += each * quantity * (100 - discount) / 100 * (100 + tax) / 100
		if date+l.shipDate.between(1, maxShipDays) <= currentDate {
			shipped++
		}
	}
	for _, s := range []*stream{&l.quantity, &l.discount, &l.tax, &l.part, &l.shipDate} {
		s.endRow()
	}
	switch shipped {
	case n:
		return price, "F"
	case 0:
		return price, "O"
	}
	return price, "P"
}

// AppendText appends the row to dst as a line of dbgen's file orders.tbl.
func (o *Order) AppendText(dst []byte) []byte {
	dst = append(strconv.AppendInt(dst, o.Key, 10), '|')
	dst = append(strconv.AppendInt(dst, o.Customer, 10), '|')
	dst = append(append(dst, o.Status...), '|')
	dst = append(AppendHundredths(dst, o.TotalPrice), '|')
	dst = append(time.Unix(o.Date*24*60*60, 0).UTC().AppendFormat(dst, time.DateOnly), '|')
	dst = append(append(dst, o.Priority...), '|')
	dst = append(append(dst, o.Clerk...), '|')
	dst = append(strconv.AppendInt(dst, o.ShipPriority, 10), '|')
	return append(append(dst, o.Comment...), "|\n"...)
}
