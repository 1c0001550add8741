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
	// BlockSize is the size of a block in bytes. It is also about what a Writer or Reader takes in memory: large enough that a
	// disk spends its time moving bytes, small enough that dozens of them fit into a small share.
	BlockSize = 64 << 10

	blockHead = 4
	blockRoom = BlockSize - blockHead

	// claimBlocks is how many blocks a file claims at a time, so that the disk is seldom asked for its room: 4 MiB.
	claimBlocks = 64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// File is the temporary file of one execution of a statement. It belongs to one goroutine.
type File struct {
	dir   *Dir
	file  vfs.File
	name  string
	named bool // the file could not be removed while it is open
	check func() error

	blocks  int64   // that the file has
	claimed int64   // that the disk has room for
	free    []int64 // blocks of no list
	written Written
}

// Written is what has been written to a file.
type Written struct{ Rows, Bytes int64 }

// Plus is w and v together.
func (w Written) Plus(v Written) Written { return Written{w.Rows + v.Rows, w.Bytes + v.Bytes} }

// Less is w without v.
func (w Written) Less(v Written) Written { return Written{w.Rows - v.Rows, w.Bytes - v.Bytes} }

// Written is what has been written to the file so far, including what was freed since.
func (f *File) Written() Written { return f.written }

// Close removes the file. Its lists must not be used any more.
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

// take finds a block for n more bytes of a list.
func (f *File) take() (block int64, err error) {
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

// write writes a block, whose first bytes are left for the head.
func (f *File) write(b []byte) (block int64, err error) {
	if err := f.check(); err != nil {
		return 0, err
	}
	if block, err = f.take(); err != nil {
		return 0, err
	}
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[blockHead:], castagnoli))
	if _, err := f.file.WriteAt(b, block*BlockSize); err != nil {
		return 0, f.dir.failed("write", err)
	}
	f.written.Bytes += int64(len(b))
	return block, nil
}

// read reads the rows of a block to the end of dst, n bytes.
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
