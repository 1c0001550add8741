package tpch

import (
	"crypto/md5"
	"encoding/hex"
	"testing"
)

// TestTables checks that the tables at scale factor 0.01 are byte for byte the files of tpchgen-cli 4.0.0, which is
// tested against dbgen itself (https://github.com/clflushopt/tpchgen-rs). The test generates each table in three parts
// of different sizes and joins them, because any range of rows must be right.
func TestTables(t *testing.T) {
	var customers, orders []byte
	for _, r := range [][2]int64{{0, 1}, {1, 777}, {777, CustomersPerScale / 100}} {
		for c := range Customers(r[0], r[1]) {
			customers = c.AppendText(customers)
		}
	}
	for _, r := range [][2]int64{{0, 8}, {8, 12_345}, {12_345, OrdersPerScale / 100}} {
		for o := range Orders(0.01, r[0], r[1]) {
			orders = o.AppendText(orders)
		}
	}
	for _, file := range []struct {
		name string
		got  []byte
		want string
	}{
		{"customer.tbl", customers, "a8aa97edad6d47b183a569759fbd3eec"},
		{"orders.tbl", orders, "c8d2008fb47f47f9e56543d4cb0f4e6a"},
	} {
		if sum := md5.Sum(file.got); hex.EncodeToString(sum[:]) != file.want {
			t.Errorf("%s has the MD5 sum %x, want %s; it begins\n%.300s", file.name, sum, file.want, file.got)
		}
	}
}
