package tpch

import (
	"iter"
	"strconv"
)

// CustomersPerScale is the number of customers at scale factor 1.
const CustomersPerScale = 150_000

// Customer is a row of CUSTOMER. The function Customers overwrites it with the next row, but a string that the caller
// has copied from one of its fields stays valid.
type Customer struct {
	Key     int64
	Name    string
	Address string
	Nation  int64
	Phone   string
	Balance int64 // in hundredths of the currency unit
	Segment string
	Comment string
}

// Customers yields the rows of CUSTOMER whose key k satisfies after < k <= until. It reuses the yielded Customer for
// the next row.
func Customers(after, until int64) iter.Seq[*Customer] {
	return func(yield func(*Customer) bool) {
		address, nation, phone := newStream(881155353, 9, after), newStream(1489529863, 1, after), newStream(1521138112, 3, after)
		balance, segment, comment := newStream(298370230, 1, after), newStream(1140279430, 1, after), newStream(1335826707, 2, after)
		text := pool()
		var c Customer
		var room []byte
		for c.Key = after + 1; c.Key <= until; c.Key++ {
			room = appendPadded(append(room[:0], "Customer#"...), c.Key, 9)
			n := len(room)
			room = address.appendAddress(room)
			m := len(room)
			c.Nation = nation.between(0, 24)
			room = strconv.AppendInt(room, 10+c.Nation, 10)
			for _, highest := range []int64{999, 999, 9999} {
				room = strconv.AppendInt(append(room, '-'), phone.between((highest+1)/10, highest), 10)
			}
			made := string(room)
			c.Name, c.Address, c.Phone = made[:n], made[n:m], made[m:]
			c.Balance = balance.between(-999_99, 9_999_99)
			c.Segment = segment.word(segments)
			c.Comment = comment.comment(text, 73)
			address.endRow()
			if !yield(&c) {
				return
			}
		}
	}
}

// AppendText appends the row to dst as a line of dbgen's file customer.tbl.
func (c *Customer) AppendText(dst []byte) []byte {
	dst = append(strconv.AppendInt(dst, c.Key, 10), '|')
	dst = append(append(dst, c.Name...), '|')
	dst = append(append(dst, c.Address...), '|')
	dst = append(strconv.AppendInt(dst, c.Nation, 10), '|')
	dst = append(append(dst, c.Phone...), '|')
	dst = append(AppendHundredths(dst, c.Balance), '|')
	dst = append(append(dst, c.Segment...), '|')
	return append(append(dst, c.Comment...), "|\n"...)
}

// AppendHundredths appends n/100 as a decimal with two places.
func AppendHundredths(dst []byte, n int64) []byte {
	if n < 0 {
		dst, n = append(dst, '-'), -n
	}
	dst = append(strconv.AppendInt(dst, n/100, 10), '.')
	return appendPadded(dst, n%100, 2)
}

// appendPadded appends a number, padded with zeros to a width.
func appendPadded(dst []byte, n int64, width int) []byte {
	for least := int64(10); width > 1; width, least = width-1, least*10 {
		if n < least {
			dst = append(dst, "000000000"[:width-1]...)
			break
		}
	}
	return strconv.AppendInt(dst, n, 10)
}
