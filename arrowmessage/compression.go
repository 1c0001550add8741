package arrowmessage

import (
	"bytes"
	"encoding/binary"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// A codec decompresses a buffer into dst. The caller gives dst the size that the message claims for the result.
type codec func(dst, compressed []byte) error

// codecs maps the number of a compression in Arrow's metadata to the codec.
var codecs = map[uint8]codec{0: decompressLZ4, 1: decompressZstd}

// lz4Readers holds readers for reuse, since each reader has a buffer of up to 4 MiB.
var lz4Readers = sync.Pool{New: func() any { return lz4.NewReader(nil) }}

func decompressLZ4(dst, compressed []byte) error {
	r := lz4Readers.Get().(*lz4.Reader)
	r.Reset(bytes.NewReader(compressed))
	_, err := io.ReadFull(r, dst)
	r.Reset(nil)
	lz4Readers.Put(r)
	return err
}

// zstdDecoder decompresses Zstandard. Many goroutines may use it at once. It writes into the given buffer. A frame
// claims a size for its window and a size for its content, but neither claim can make zstdDecoder allocate memory in
// addition to that buffer.
var zstdDecoder = newZstdDecoder()

func newZstdDecoder() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true), zstd.WithDecoderConcurrency(0))
	if err != nil {
		panic(err) // NewReader never fails with these constant options
	}
	return d
}

func decompressZstd(dst, compressed []byte) error {
	b, err := zstdDecoder.DecodeAll(compressed, dst[:0:len(dst)])
	if err == nil && len(b) != len(dst) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// notCompressed is stored in the first 8 bytes of a buffer that is not compressed. A compressed buffer has its length
// after decompression there.
const notCompressed = -1

// unpackedSize returns the size that a compressed buffer claims to have after decompression, or notCompressed.
func unpackedSize(compressed []byte) int64 {
	if len(compressed) < 8 {
		fail("a compressed buffer has %d bytes", len(compressed))
	}
	n := int64(binary.LittleEndian.Uint64(compressed))
	if n < notCompressed || n > mostUnpacked {
		fail("a compressed buffer says that it becomes %d bytes", n)
	}
	return n
}

// unpack decompresses a buffer. The caller must have charged for the decompressed size.
func (c codec) unpack(compressed []byte) []byte {
	n := unpackedSize(compressed)
	if n == notCompressed {
		return compressed[8:]
	}
	b := make([]byte, n)
	if err := c(b, compressed[8:]); err != nil {
		fail("a compressed buffer of %d bytes cannot be decompressed to %d: %v", len(compressed), n, err)
	}
	return b
}
