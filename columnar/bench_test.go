package columnar

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// customers makes TPC-H's table customer with the given number of rows, and a columnar copy of the table.
func customers(b *testing.B, rows int) (*harness, Source, *Copy) {
	h := newHarness(b, vfs.NewMem(), `CREATE TABLE customer (c_custkey INT64 NOT NULL, c_name STRING(25), c_address STRING(40), c_nationkey INT64, c_phone STRING(15),
		c_acctbal FLOAT64, c_mktsegment STRING(10), c_comment STRING(117)) PRIMARY KEY (c_custkey)`)
	b.Cleanup(h.close)
	tab := h.catalog.Table("customer")
	rng := rand.New(rand.NewPCG(1, 2))
	for from := 0; from < rows; from += 5000 {
		m := table.Mutation{Op: table.InsertOrUpdate, Table: tab, Columns: tab.Columns}
		for i := from; i < min(from+5000, rows); i++ {
			m.Rows = append(m.Rows, customer(rng, i))
		}
		if !h.commit(m) {
			b.Fatal("refused")
		}
	}
	src := h.source(tab, nil, h.now)
	return h, src, h.build(src)
}

var (
	segments = []string{"AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"}
	words    = strings.Fields(`carefully final packages sleep furiously above the express regular requests blithely ironic accounts are slyly unusual deposits
		haggle quickly along even theodolites nag according to special pending foxes wake bold ideas boost fluffily`)
)

func customer(rng *rand.Rand, i int) []value.Value {
	address := make([]byte, 10+rng.IntN(31))
	for j := range address {
		address[j] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ,"[rng.IntN(64)]
	}
	var comment []string
	for size, want := 0, 29+rng.IntN(75); size < want; {
		w := words[rng.IntN(len(words))]
		comment, size = append(comment, w), size+len(w)+1
	}
	nation := rng.IntN(25)
	return []value.Value{
		value.OfInt64(int64(i)), value.OfString(fmt.Sprintf("Customer#%09d", i)), value.OfString(string(address)), value.OfInt64(int64(nation)),
		value.OfString(fmt.Sprintf("%d-%03d-%03d-%04d", nation+10, 100+rng.IntN(900), 100+rng.IntN(900), 1000+rng.IntN(9000))),
		value.OfFloat64(float64(rng.IntN(1_100_000)-100_000) / 100), value.OfString(segments[rng.IntN(5)]), value.OfString(strings.Join(comment, " ")),
	}
}

// cpuTime returns the CPU time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// BenchmarkRead reads rows of a copy into Arrow's arrays. One operation is a row.
func BenchmarkRead(b *testing.B) {
	const rows = 150_000
	h, src, c := customers(b, rows)
	for _, col := range c.dir.chunks[0].columns {
		b.Logf("column %d of a chunk of %d rows takes %d bytes, stored in %d", col.ID, c.dir.chunks[0].rows, col.Size, col.Bytes)
	}
	tab := src.Table
	for _, columns := range []string{"c_custkey", "c_acctbal", "c_nationkey", "c_custkey c_acctbal", "c_name", "c_address", "c_phone", "c_mktsegment", "c_comment", "all"} {
		var list []*schema.Column
		for name := range strings.FieldsSeq(columns) {
			if name == "all" {
				list = tab.Columns
				break
			}
			list = append(list, tab.Column(name))
		}
		p, err := table.NewProjection(tab, nil, list)
		if err != nil {
			b.Fatal(err)
		}
		read := Read{Projection: p, At: h.now}
		read.Spans, _ = p.Spans(table.KeySet{All: true})
		b.Run(columns, func(b *testing.B) { readAll(b, h, c, read, rows) })
	}
}

// BenchmarkReadChanged reads rows of a copy after some of the rows have changed. One operation is a row.
func BenchmarkReadChanged(b *testing.B) {
	const rows = 150_000
	h, src, c := customers(b, rows)
	rng := rand.New(rand.NewPCG(3, 4))
	for _, every := range []int{10_000, 100, 10} {
		m := table.Mutation{Op: table.InsertOrUpdate, Table: src.Table, Columns: src.Table.Columns}
		for i := 0; i < rows; i += every {
			if m.Rows = append(m.Rows, customer(rng, i)); len(m.Rows) == 5000 || i+every >= rows {
				if !h.commit(m) {
					b.Fatal("refused")
				}
				m.Rows = nil
			}
		}
		read := Read{Projection: src.Projection, At: h.now}
		read.Spans, _ = src.Spans(table.KeySet{All: true})
		b.Run(fmt.Sprint("one of ", every), func(b *testing.B) { readAll(b, h, c, read, rows) })
	}
}

func readAll(b *testing.B, h *harness, c *Copy, read Read, rows int) {
	before := cpuTime(b)
	done := 0
	for ; done < b.N; done += rows {
		r := c.Open(context.Background(), h.view(h.now), read)
		for {
			n, err := r.Next()
			if err != nil {
				b.Fatal(err)
			}
			if n == 0 {
				break
			}
		}
		_ = r.Close()
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(done), "cpu-ns/op")
}

// BenchmarkWrite writes chunks anew from the existing chunks. One operation is a row.
func BenchmarkWrite(b *testing.B) {
	const rows = 150_000
	_, src, c := customers(b, rows)
	before := cpuTime(b)
	done := 0
	for done < b.N {
		for _, ch := range c.Chunks() {
			if _, err := c.Write(context.Background(), src, ch.Span); err != nil {
				b.Fatal(err)
			}
		}
		done += rows
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(done), "cpu-ns/op")
}

// BenchmarkDrop measures how long it takes to drop copies with different numbers of chunks.
func BenchmarkDrop(b *testing.B) {
	for _, chunks := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(chunks), func(b *testing.B) {
			h := newHarness(b, vfs.NewMem(), "CREATE TABLE T (K INT64) PRIMARY KEY (K)")
			defer h.close()
			for b.Loop() {
				c := h.copies.Make(1)
				list := make([]*chunk, chunks)
				for i := range list {
					list[i] = &chunk{blobs: &blobs{number: uint64(i)}, start: binary.BigEndian.AppendUint32(nil, uint32(i)), end: binary.BigEndian.AppendUint32(nil, uint32(i+1))}
				}
				c.publish(list)
				c.acquire() // as if a Reader were open, so that nothing is erased
				if err := h.copies.Drop(1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
