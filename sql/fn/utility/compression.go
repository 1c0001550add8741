package utility

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// Compression has the functions of the compression format Zstandard.
var Compression = []fn.Record{
	{Name: "zstd_compress", Doc: "ZSTD_COMPRESS(text, level): compressed by Zstandard, at a level from -5 to 22.", Overloads: []fn.Overload{
		fn.On("STRING, ?INT64 -> BYTES", fn.Strict(zstdCompress)),
		fn.On("BYTES, ?INT64 -> BYTES", fn.Strict(zstdCompress)),
	}},
	{Name: "zstd_decompress_to_bytes", Doc: "ZSTD_DECOMPRESS_TO_BYTES(bytes, size_limit): what was compressed by Zstandard.",
		Overloads: []fn.Overload{fn.On("BYTES, ?INT64 -> BYTES", fn.Strict(zstdToBytes))}},
	{Name: "zstd_decompress_to_string", Doc: "ZSTD_DECOMPRESS_TO_STRING(bytes, size_limit): the text that was compressed by Zstandard.",
		Overloads: []fn.Overload{fn.On("BYTES, ?INT64 -> STRING", fn.Strict(zstdToString))}},
}

// zstdLevel is the default compression level of Zstandard. zstdMinLevel and zstdMaxLevel are the lowest and the highest
// level that GoogleSQL accepts.
const (
	zstdLevel    = 3
	zstdMinLevel = -5
	zstdMaxLevel = 22
)

func zstdCompress(_ *fn.Context, a []value.Value) (value.Value, error) {
	level := int64(zstdLevel)
	if len(a) > 1 {
		level = a[1].AsInt64()
	}
	if level < zstdMinLevel || level > zstdMaxLevel {
		return fn.BadArgument(fmt.Sprintf("ZSTD compression level must be between %d and %d, but was %d", zstdMinLevel, zstdMaxLevel, level))
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(int(level))), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return value.Value{}, err
	}
	defer encoder.Close()
	return fn.OfBytes(encoder.EncodeAll(a[0].AsBytes(), nil))
}

// zstdSizeLimit is the maximum size in bytes of a decompressed text if the call does not set one. A cell of a table
// has the same size limit (https://cloud.google.com/spanner/quotas).
const zstdSizeLimit = 10 << 20

func zstdDecompress(a []value.Value) ([]byte, error) {
	limit := int64(zstdSizeLimit)
	if len(a) > 1 {
		limit = a[1].AsInt64()
	}
	if limit <= 0 {
		_, err := fn.BadArgument(fmt.Sprintf("ZSTD size limit must be positive, but was %d", limit))
		return nil, err
	}
	decoder, err := zstd.NewReader(bytes.NewReader(a[0].AsBytes()), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(zstdMaxWindow))
	if err != nil {
		_, err = fn.BadArgument("ZSTD decompression failed: " + err.Error())
		return nil, err
	}
	defer decoder.Close()
	// One byte more than the limit is read, so that a text that is too long is noticed.
	text, err := io.ReadAll(io.LimitReader(decoder, min(limit, zstdMaxOutput)+1))
	switch {
	case err != nil:
		_, err = fn.BadArgument("ZSTD decompression failed: " + err.Error())
	case int64(len(text)) > min(limit, zstdMaxOutput):
		_, err = fn.BadArgument(fmt.Sprintf("ZSTD output exceeds the size limit of %d bytes", min(limit, zstdMaxOutput)))
	}
	return text, err
}

// A small compressed text may decompress to a large one. zstdMaxOutput bounds the size in bytes of the result, even
// if a call asks for a larger limit; zstdMaxWindow bounds the decoder's window in bytes.
const (
	zstdMaxOutput = 100 << 20
	zstdMaxWindow = 64 << 20
)

func zstdToBytes(_ *fn.Context, a []value.Value) (value.Value, error) {
	text, err := zstdDecompress(a)
	return value.OfBytes(text), err
}

func zstdToString(_ *fn.Context, a []value.Value) (value.Value, error) {
	text, err := zstdDecompress(a)
	if err == nil && !utf8.Valid(text) {
		return fn.BadArgument("ZSTD output is not valid UTF8 string")
	}
	return value.OfString(string(text)), err
}
