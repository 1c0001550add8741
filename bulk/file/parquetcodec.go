package file

import (
	"fmt"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// boundedCodec decompresses a page into at most the number of bytes that the page's header claims. checkRowGroup has
// checked that number before. The library's own codecs for Snappy and Zstandard trust the compressed data: they would
// allocate the size that the data claims or expands to.
type boundedCodec struct {
	compress.Codec
	decode func(dst, src []byte) ([]byte, error)
}

func (c boundedCodec) DecodeWithError(dst, src []byte) ([]byte, error) { return c.decode(dst, src) }

func init() {
	for compression, decode := range map[compress.Compression]func(dst, src []byte) ([]byte, error){
		compress.Codecs.Snappy: decodeSnappy, compress.Codecs.Zstd: decodeZstd,
	} {
		codec, err := compress.GetCodec(compression)
		if err != nil {
			panic(err) // the library has both codecs
		}
		compress.RegisterCodec(compression, boundedCodec{codec, decode})
	}
}

func decodeSnappy(dst, src []byte) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return nil, err
	}
	if n > len(dst) {
		return nil, fmt.Errorf("a page of %d bytes becomes %d", len(dst), n)
	}
	return snappy.Decode(dst, src)
}

var zstdDecoder = newZstdDecoder()

func newZstdDecoder() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderConcurrency(0))
	if err != nil {
		panic(err) // the options are constant and valid
	}
	return d
}

func decodeZstd(dst, src []byte) ([]byte, error) { return zstdDecoder.DecodeAll(src, dst[:0:len(dst)]) }
