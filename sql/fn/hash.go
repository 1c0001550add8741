package fn

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"

	"github.com/dgryski/go-farm"

	"github.com/crowfoot-db/crowfoot/value"
)

var hashes = []record{
	{name: "farm_fingerprint", doc: "FarmHash's Fingerprint64, as a signed number.", overloads: hashOverloads("INT64", func(b []byte) value.Value {
		return value.OfInt64(int64(farm.Fingerprint64(b)))
	})},
	{name: "md5", doc: "The MD5 hash.", overloads: hashOverloads("BYTES", func(b []byte) value.Value {
		h := md5.Sum(b)
		return value.OfBytes(h[:])
	})},
	{name: "sha1", doc: "The SHA-1 hash.", overloads: hashOverloads("BYTES", func(b []byte) value.Value {
		h := sha1.Sum(b)
		return value.OfBytes(h[:])
	})},
	{name: "sha256", doc: "The SHA-256 hash.", overloads: hashOverloads("BYTES", func(b []byte) value.Value {
		h := sha256.Sum256(b)
		return value.OfBytes(h[:])
	})},
	{name: "sha512", doc: "The SHA-512 hash.", overloads: hashOverloads("BYTES", func(b []byte) value.Value {
		h := sha512.Sum512(b)
		return value.OfBytes(h[:])
	})},
}

func hashOverloads(result string, sum func([]byte) value.Value) []overload {
	hash := strict(func(_ *Context, a []value.Value) (value.Value, error) { return sum(a[0].AsBytes()), nil })
	return []overload{on("STRING -> "+result, hash), on("BYTES -> "+result, hash)}
}
