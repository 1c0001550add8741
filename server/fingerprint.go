package server

import (
	"hash/maphash"
	"math"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// A fingerprint identifies what a request asks for, so that a token cannot be
// used with another request. What may differ when a client sends a request
// again (transaction selector, tags, the token itself) is not part of it.
//
// Parts are mixed in order; the entries of maps are summed, since their order means nothing.
type fingerprint struct {
	seed maphash.Seed
	sum  uint64
}

func (k tokenKey) fingerprint(kind uint64) fingerprint { return fingerprint{seed: k.seed, sum: kind} }

// mix is the finaliser of MurmurHash3: every bit of v changes every bit of the result.
func mix(v uint64) uint64 {
	v ^= v >> 33
	v *= 0xff51afd7ed558ccd
	v ^= v >> 33
	v *= 0xc4ceb9fe1a85ec53
	return v ^ v>>33
}

func (f *fingerprint) number(v uint64) { f.sum = mix(f.sum*31 + v + 1) }
func (f *fingerprint) text(s string)   { f.number(maphash.String(f.seed, s)) }
func (f *fingerprint) bytes(b []byte)  { f.number(maphash.Bytes(f.seed, b)) }

// Kinds of requests, so that equal fields of different kinds differ.
const (
	fingerprintRead = iota + 1
	fingerprintQuery
	fingerprintBatch
)

// readFingerprint covers a read in a session, but for the limit and the partition token.
func (k tokenKey) readFingerprint(session, table, index string, columns []string, keys *spannerpb.KeySet) fingerprint {
	f := k.fingerprint(fingerprintRead)
	f.text(session)
	f.text(table)
	f.text(index)
	for _, c := range columns {
		f.text(c)
	}
	f.keySet(keys)
	return f
}

// queryFingerprint covers a statement in a session, but for the partition token.
func (k tokenKey) queryFingerprint(session, sql string, params *structpb.Struct, types map[string]*spannerpb.Type) fingerprint {
	f := k.fingerprint(fingerprintQuery)
	f.text(session)
	f.text(sql)
	f.params(params, types)
	return f
}

func (f *fingerprint) params(params *structpb.Struct, types map[string]*spannerpb.Type) {
	var sum uint64
	for name, v := range params.GetFields() {
		entry := fingerprint{seed: f.seed}
		entry.text(name)
		entry.value(v)
		sum += entry.sum
	}
	for name, t := range types {
		entry := fingerprint{seed: f.seed, sum: 1}
		entry.text(name)
		entry.typ(t)
		sum += entry.sum
	}
	f.number(sum)
}

func (f *fingerprint) typ(t *spannerpb.Type) {
	f.number(uint64(t.GetCode()))
	if e := t.GetArrayElementType(); e != nil {
		f.typ(e)
	}
	for _, field := range t.GetStructType().GetFields() {
		f.text(field.GetName())
		f.typ(field.GetType())
	}
}

func (f *fingerprint) keySet(keys *spannerpb.KeySet) {
	if keys.GetAll() {
		f.number(1)
	}
	for _, k := range keys.GetKeys() {
		f.list(k)
	}
	for _, r := range keys.GetRanges() {
		switch s := r.GetStartKeyType().(type) {
		case *spannerpb.KeyRange_StartClosed:
			f.number(2)
			f.list(s.StartClosed)
		case *spannerpb.KeyRange_StartOpen:
			f.number(3)
			f.list(s.StartOpen)
		}
		switch e := r.GetEndKeyType().(type) {
		case *spannerpb.KeyRange_EndClosed:
			f.number(4)
			f.list(e.EndClosed)
		case *spannerpb.KeyRange_EndOpen:
			f.number(5)
			f.list(e.EndOpen)
		}
	}
}

func (f *fingerprint) list(l *structpb.ListValue) {
	f.number(uint64(len(l.GetValues())))
	for _, v := range l.GetValues() {
		f.value(v)
	}
}

func (f *fingerprint) value(v *structpb.Value) {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		f.text(k.StringValue)
	case *structpb.Value_NumberValue:
		f.number(math.Float64bits(k.NumberValue))
	case *structpb.Value_BoolValue:
		if k.BoolValue {
			f.number(2)
		} else {
			f.number(3)
		}
	case *structpb.Value_ListValue:
		f.list(k.ListValue)
	case *structpb.Value_StructValue:
		f.params(k.StructValue, nil)
	default:
		f.number(4)
	}
}
