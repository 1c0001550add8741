package spill

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// BlockSize is the size of a block in bytes. A Writer or Reader takes about as much memory. Blocks are so large
	// that a disk spends its time on transferring bytes, not on seeking, and so small that dozens of blocks fit into
	// a small share of memory.
	BlockSize = 64 << 10

	blockHead = 4
	blockRoom = BlockSize - blockHead

	// claimBlocks is the number of blocks (4 MiB in total) for which a file reserves disk space at a time. It is
	// large, so that the file system is seldom asked for the free space.
	claimBlocks = 64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// File is the temporary file of one execution of a statement. Only one goroutine may use it.
type File struct {
	dir   *Dir
	file  vfs.File
	name  string
	named bool // the file still has its name, because the system does not allow the removal of an open file
	check func() error

	blocks  int64   // the number of blocks in the file
	claimed int64   // the number of blocks for which the file has reserved disk space
	free    []int64 // numbers of the blocks that belong to no list
	written Written
}

// Written counts the rows and bytes that have been written to a file.
type Written struct{ Rows, Bytes int64 }

// Plus returns the sum of w and v.
func (w Written) Plus(v Written) Written { return Written{w.Rows + v.Rows, w.Bytes + v.Bytes} }

// Less returns w minus v.
func (w Written) Less(v Written) Written { return Written{w.Rows - v.Rows, w.Bytes - v.Bytes} }

// Written returns the number of rows and bytes written to the file so far, including those in blocks that were freed
// since.
func (f *File) Written() Written { return f.written }

// Close removes the file. The lists in it must not be used afterwards.
func (f *File) Close() error {
	err := f.file.Close()
	if f.named {
		err = errors.Join(err, f.dir.fs.Remove(f.name))
	}
	f.dir.release(f.claimed * BlockSize)
	if err != nil {
		return f.dir.failed("close", err)
	}
	return nil
}

// allocBlock returns a block that belongs to no list: a freed block, or a new one at the end of the file.
func (f *File) allocBlock() (block int64, err error) {
	if n := len(f.free); n > 0 {
		block, f.free = f.free[n-1], f.free[:n-1]
		return block, nil
	}
	if f.blocks == f.claimed {
		if err := f.dir.claim(claimBlocks * BlockSize); err != nil {
			return 0, err
		}
		f.claimed += claimBlocks
	}
	f.blocks++
	return f.blocks - 1, nil
}

// write writes a block and returns its number. It writes the checksum into the first blockHead bytes of b.
func (f *File) write(b []byte) (block int64, err error) {
	if err := f.check(); err != nil {
		return 0, err
	}
	if block, err = f.allocBlock(); err != nil {
		return 0, err
	}
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[blockHead:], castagnoli))
	if _, err := f.file.WriteAt(b, block*BlockSize); err != nil {
		return 0, f.dir.failed("write", err)
	}
	f.written.Bytes += int64(len(b))
	return block, nil
}

// read reads n bytes of rows from a block and appends them to dst.
func (f *File) read(dst []byte, block int64, n int) ([]byte, error) {
	if err := f.check(); err != nil {
		return dst, err
	}
	var head [blockHead]byte
	at := len(dst)
	dst = append(dst, head[:]...)
	dst = append(dst, make([]byte, n)...)
	b := dst[at:]
	if _, err := f.file.ReadAt(b, block*BlockSize); err != nil && err != io.EOF {
		return dst, f.dir.failed("read", err)
	}
	if binary.BigEndian.Uint32(b) != crc32.Checksum(b[blockHead:], castagnoli) {
		return dst, f.dir.failed("read", fmt.Errorf("block %d is damaged", block))
	}
	return append(dst[:at], b[blockHead:]...), nil
}
