package spill_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

var types = []*value.Type{value.Int64Type, value.StringType}

func always() error { return nil }

func open(t *testing.T, fs vfs.FS) *spill.Dir {
	t.Helper()
	d, err := spill.Open(fs, "spill")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func create(t *testing.T, d *spill.Dir) *spill.File {
	t.Helper()
	f, err := d.Create(always)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// write writes a list of n rows. The rows have the numbers first, first+1 and so on, and texts of random length. The
// longest texts take up to three blocks.
func write(t *testing.T, f *spill.File, r *rand.Rand, first, n int) *spill.Rows {
	t.Helper()
	w := f.NewWriter(types)
	for i := range n {
		text := value.Null(value.String)
		if size := r.IntN(100); size == 99 {
			text = value.OfString(strings.Repeat("x", r.IntN(3*spill.BlockSize)))
		} else if size > 5 {
			text = value.OfString(strings.Repeat("y", size*size))
		}
		if err := w.Append([]value.Value{value.OfInt64(int64(first + i))}, text); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if rows.Len() != int64(n) {
		t.Fatalf("%d rows, want %d", rows.Len(), n)
	}
	return rows
}

// check reads a list and checks that it has n rows with the numbers first, first+1 and so on.
func check(t *testing.T, reader *spill.Reader, first, n int) {
	t.Helper()
	row := make([]value.Value, len(types))
	for i := range n {
		ok, err := reader.Next(row)
		if err != nil || !ok {
			t.Fatalf("row %d: %v %v", i, ok, err)
		}
		if got := row[0].AsInt64(); got != int64(first+i) {
			t.Fatalf("row %d is number %d, want %d", i, got, first+i)
		}
		if text := row[1]; !text.IsNull() && len(strings.Trim(text.AsString(), "xy")) > 0 {
			t.Fatalf("row %d has another text", i)
		}
	}
	if ok, err := reader.Next(row); ok || err != nil {
		t.Fatalf("after the last row: %v %v", ok, err)
	}
	reader.Close()
}

// TestRows checks that readers return the rows that were written, and that freed blocks are used again.
func TestRows(t *testing.T) {
	d := open(t, vfs.NewMem())
	f := create(t, d)
	r := rand.New(rand.NewPCG(1, 1))
	var lists []*spill.Rows
	for i := range 20 {
		lists = append(lists, write(t, f, r, i*1000, r.IntN(300)))
	}
	used := d.Used()
	for i, l := range lists {
		n := int(l.Len())
		check(t, l.Read(), i*1000, n)
		if i%2 == 0 {
			check(t, l.ReadLast(), i*1000, n)
		} else {
			l.Free()
		}
	}
	w := f.NewWriter(types)
	if err := w.Append([]value.Value{value.OfInt64(1)}, value.OfString(strings.Repeat("x", 20*spill.BlockSize))); err != nil {
		t.Fatal(err)
	}
	w.Drop()
	for i := range 10 {
		l := write(t, f, r, i, 200)
		check(t, l.ReadLast(), i, 200)
	}
	if d.Used() != used {
		t.Errorf("the file grew from %d to %d bytes, though blocks were free", used, d.Used())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if d.Used() != 0 {
		t.Errorf("%d bytes are claimed after the file was closed", d.Used())
	}
}

// TestFilesEnd checks that an open file has no name, and that Open removes files that an earlier process has left.
func TestFilesEnd(t *testing.T) {
	fs := vfs.NewMem()
	d := open(t, fs)
	f := create(t, d)
	defer f.Close()
	write(t, f, rand.New(rand.NewPCG(1, 1)), 0, 100)
	if names, err := fs.List("spill"); err != nil || len(names) > 0 {
		t.Errorf("the directory holds %v %v beside an open file", names, err)
	}
	left, err := fs.Create("spill/7", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	left.Close()
	open(t, fs)
	if names, err := fs.List("spill"); err != nil || len(names) > 0 {
		t.Errorf("the directory holds %v %v after it was opened again", names, err)
	}
}

// TestFileWithName checks that Close removes the file on a system where an open file cannot be removed.
func TestFileWithName(t *testing.T) {
	fs := vfs.NewMem()
	fs.UseWindowsSemantics(true)
	f := create(t, open(t, fs))
	check(t, write(t, f, rand.New(rand.NewPCG(1, 1)), 0, 100).Read(), 0, 100)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if names, err := fs.List("spill"); err != nil || len(names) > 0 {
		t.Errorf("the directory holds %v %v after the file was closed", names, err)
	}
}

// TestRoom checks that files take at most half of the free space of the disk, and release all of it when they are
// closed.
func TestRoom(t *testing.T) {
	fs := vfs.NewMem()
	d := open(t, fs)
	const free = 64 << 20
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: free, TotalBytes: 4 * free})
	f := create(t, d)
	w := f.NewWriter(types)
	text := value.OfString(strings.Repeat("z", 1<<20))
	var err error
	for err == nil {
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: uint64(free - f.Written().Bytes), TotalBytes: 4 * free})
		err = w.Append([]value.Value{value.OfInt64(1)}, text)
	}
	if usererror.CodeOf(err) != codes.ResourceExhausted {
		t.Errorf("%v, want RESOURCE_EXHAUSTED", err)
	}
	if took := f.Written().Bytes; took < free*3/8 || took > free/2 {
		t.Errorf("files took %d of %d free bytes", took, free)
	}
	if err := f.Close(); err != nil || d.Used() != 0 {
		t.Errorf("closed: %v, %d bytes are claimed", err, d.Used())
	}
}

// TestFullDisk checks that a write to a full disk fails with RESOURCE_EXHAUSTED, and that a write that fails for
// another reason returns INTERNAL.
func TestFullDisk(t *testing.T) {
	for _, c := range []struct {
		failure error
		code    codes.Code
	}{{syscall.ENOSPC, codes.ResourceExhausted}, {syscall.EIO, codes.Internal}} {
		armed := false
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if armed && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				return c.failure
			}
			return nil
		}))
		f := create(t, open(t, fs))
		armed = true
		w := f.NewWriter(types)
		err := w.Append([]value.Value{value.OfInt64(1)}, value.OfString(strings.Repeat("z", 1<<20)))
		if got := usererror.CodeOf(err); got != c.code {
			t.Errorf("%v: %s %v, want %s", c.failure, got, err, c.code)
		}
		armed = false
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDamage checks that reading a block fails if its bytes have changed on disk.
func TestDamage(t *testing.T) {
	damaged := &damagingFS{FS: vfs.NewMem()}
	f := create(t, open(t, damaged))
	defer f.Close()
	rows := write(t, f, rand.New(rand.NewPCG(1, 1)), 0, 1000)
	reader := rows.Read()
	row := make([]value.Value, len(types))
	damaged.now = true
	var err error
	for ok := true; ok && err == nil; {
		ok, err = reader.Next(row)
	}
	if err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("%v, want that a block is damaged", err)
	}
}

// damagingFS flips a bit in every block that is read. It does so only while the field called now is true.
type damagingFS struct {
	vfs.FS
	now bool
}

func (d *damagingFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.OpenReadWrite(name, category, opts...)
	return damagingFile{f, d}, err
}

type damagingFile struct {
	vfs.File
	fs *damagingFS
}

func (f damagingFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	if f.fs.now && n > 0 {
		b[n/2] ^= 4
	}
	return n, err
}

// TestCheck checks that the file neither writes nor reads once its check function returns an error, which it does when
// the statement has ended.
func TestCheck(t *testing.T) {
	ended := errors.New("ended")
	var now error
	f, err := open(t, vfs.NewMem()).Create(func() error { return now })
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := write(t, f, rand.New(rand.NewPCG(1, 1)), 0, 1000)
	now = ended
	if _, err := rows.Read().Next(make([]value.Value, len(types))); !errors.Is(err, ended) {
		t.Errorf("read: %v", err)
	}
	w := f.NewWriter(types)
	if err := w.Append([]value.Value{value.OfInt64(1)}, value.OfString(strings.Repeat("z", spill.BlockSize))); !errors.Is(err, ended) {
		t.Errorf("write: %v", err)
	}
}
