package utility

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"

	"github.com/dgryski/go-farm"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// Hashes has the hash functions.
var Hashes = []fn.Record{
	{Name: "farm_fingerprint", Doc: "FarmHash's Fingerprint64, as a signed number.", Overloads: hashOverloads("INT64", func(b []byte) value.Value {
		return value.OfInt64(int64(farm.Fingerprint64(b)))
	})},
	{Name: "md5", Doc: "The MD5 hash.", Overloads: hashOverloads("BYTES", func(b []byte) value.Value {
		h := md5.Sum(b)
		return value.OfBytes(h[:])
	})},
	{Name: "sha1", Doc: "The SHA-1 hash.", Overloads: hashOverloads("BYTES", func(b []byte) value.Value {
		h := sha1.Sum(b)
		return value.OfBytes(h[:])
	})},
	{Name: "sha256", Doc: "The SHA-256 hash.", Overloads: hashOverloads("BYTES", func(b []byte) value.Value {
		h := sha256.Sum256(b)
		return value.OfBytes(h[:])
	})},
	{Name: "sha512", Doc: "The SHA-512 hash.", Overloads: hashOverloads("BYTES", func(b []byte) value.Value {
		h := sha512.Sum512(b)
		return value.OfBytes(h[:])
	})},
}

func hashOverloads(result string, sum func([]byte) value.Value) []fn.Overload {
	hash := fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) { return sum(a[0].AsBytes()), nil })
	return []fn.Overload{fn.On("STRING -> "+result, hash), fn.On("BYTES -> "+result, hash)}
}
