package token

import (
	"math"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/types/known/structpb"
)

// A Fingerprint is a hash of a request. A token contains the fingerprint of its request, so that the token cannot be
// used with another request. The fingerprint does not cover fields that may differ when a client resends the request
// (transaction selector, tags, the token itself).
//
// Fields are hashed in order. The hashes of a map's entries are added up, because entries have no order. The
// fingerprint of a request is the same after a restart.
type Fingerprint struct{ Sum uint64 }

func (k Key) fingerprint(kind uint64) Fingerprint { return Fingerprint{k.k0 + kind} }

// mix is the finaliser of MurmurHash3: each bit of the result depends on all bits of v.
func mix(v uint64) uint64 {
	v ^= v >> 33
	v *= 0xff51afd7ed558ccd
	v ^= v >> 33
	v *= 0xc4ceb9fe1a85ec53
	return v ^ v>>33
}

// Number adds a number to the fingerprint.
func (f *Fingerprint) Number(v uint64) { f.Sum = mix(f.Sum*31 + v + 1) }

// Bytes adds bytes, such as a partition token, to the fingerprint.
func (f *Fingerprint) Bytes(b []byte) { f.Number(xxhash.Sum64(b)) }

func (f *Fingerprint) text(s string) { f.Number(xxhash.Sum64String(s)) }

// Kinds of requests. The kind is part of the hash's initial value, so requests of different kinds have different
// fingerprints even if their fields are equal.
const (
	fingerprintRead = iota + 1
	fingerprintQuery
	fingerprintBatch
)

// Read returns the fingerprint of a read in a session. It leaves out the limit and the partition token; the caller adds
// them if its token depends on them.
func (k Key) Read(session, table, index string, columns []string, keys *spannerpb.KeySet) Fingerprint {
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

// Query returns the fingerprint of a statement in a session. It leaves out the partition token; the caller adds it if
// its token depends on it.
func (k Key) Query(session, sql string, params *structpb.Struct, types map[string]*spannerpb.Type) Fingerprint {
	f := k.fingerprint(fingerprintQuery)
	f.text(session)
	f.text(sql)
	f.params(params, types)
	return f
}

// Batch returns the fingerprint of a batch of DML in a session.
func (k Key) Batch(req *spannerpb.ExecuteBatchDmlRequest) Fingerprint {
	f := k.fingerprint(fingerprintBatch)
	f.text(req.Session)
	for _, p := range req.Statements {
		f.text(p.GetSql())
		f.params(p.GetParams(), p.GetParamTypes())
	}
	return f
}

func (f *Fingerprint) params(params *structpb.Struct, types map[string]*spannerpb.Type) {
	var sum uint64
	for name, v := range params.GetFields() {
		entry := Fingerprint{}
		entry.text(name)
		entry.value(v)
		sum += entry.Sum
	}
	for name, t := range types {
		entry := Fingerprint{1}
		entry.text(name)
		entry.typ(t)
		sum += entry.Sum
	}
	f.Number(sum)
}

func (f *Fingerprint) typ(t *spannerpb.Type) {
	f.Number(uint64(t.GetCode()))
	if e := t.GetArrayElementType(); e != nil {
		f.typ(e)
	}
	for _, field := range t.GetStructType().GetFields() {
		f.text(field.GetName())
		f.typ(field.GetType())
	}
}

func (f *Fingerprint) keySet(keys *spannerpb.KeySet) {
	if keys.GetAll() {
		f.Number(1)
	}
	for _, k := range keys.GetKeys() {
		f.list(k)
	}
	for _, r := range keys.GetRanges() {
		switch s := r.GetStartKeyType().(type) {
		case *spannerpb.KeyRange_StartClosed:
			f.Number(2)
			f.list(s.StartClosed)
		case *spannerpb.KeyRange_StartOpen:
			f.Number(3)
			f.list(s.StartOpen)
		}
		switch e := r.GetEndKeyType().(type) {
		case *spannerpb.KeyRange_EndClosed:
			f.Number(4)
			f.list(e.EndClosed)
		case *spannerpb.KeyRange_EndOpen:
			f.Number(5)
			f.list(e.EndOpen)
		}
	}
}

func (f *Fingerprint) list(l *structpb.ListValue) {
	f.Number(uint64(len(l.GetValues())))
	for _, v := range l.GetValues() {
		f.value(v)
	}
}

func (f *Fingerprint) value(v *structpb.Value) {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		f.text(k.StringValue)
	case *structpb.Value_NumberValue:
		f.Number(math.Float64bits(k.NumberValue))
	case *structpb.Value_BoolValue:
		if k.BoolValue {
			f.Number(2)
		} else {
			f.Number(3)
		}
	case *structpb.Value_ListValue:
		f.list(k.ListValue)
	case *structpb.Value_StructValue:
		f.params(k.StructValue, nil)
	default:
		f.Number(4)
	}
}
