package server

import (
	"encoding/json"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// keySet converts the KeySet of a request. l is the layout of the table or index whose keys the KeySet names.
func keySet(l *table.Layout, p *spannerpb.KeySet) (table.KeySet, error) {
	ks := table.KeySet{All: p.GetAll()}
	if n := len(p.GetKeys()); n > 0 {
		ks.Keys = make([][]value.Value, n)
	}
	for i, k := range p.GetKeys() {
		var err error
		if ks.Keys[i], err = keyParts(l, k); err != nil {
			return ks, err
		}
	}
	for _, r := range p.GetRanges() {
		kr, err := keyRange(l, r)
		if err != nil {
			return ks, err
		}
		ks.Ranges = append(ks.Ranges, kr)
	}
	return ks, nil
}

func keyRange(l *table.Layout, p *spannerpb.KeyRange) (r table.KeyRange, err error) {
	var start, end *structpb.ListValue
	switch k := p.GetStartKeyType().(type) {
	case *spannerpb.KeyRange_StartClosed:
		start = k.StartClosed
	case *spannerpb.KeyRange_StartOpen:
		start, r.StartOpen = k.StartOpen, true
	default:
		return r, usererror.KeyRangeEndMissing("start")
	}
	switch k := p.GetEndKeyType().(type) {
	case *spannerpb.KeyRange_EndClosed:
		end = k.EndClosed
	case *spannerpb.KeyRange_EndOpen:
		end, r.EndOpen = k.EndOpen, true
	default:
		return r, usererror.KeyRangeEndMissing("end")
	}
	if r.Start, err = keyParts(l, start); err != nil {
		return r, err
	}
	r.End, err = keyParts(l, end)
	return r, err
}

// keyParts converts the values of a key, or of a key prefix. It refuses too many values; the layout refuses too few.
func keyParts(l *table.Layout, p *structpb.ListValue) ([]value.Value, error) {
	columns := l.KeySetColumns()
	parts := p.GetValues()
	if len(parts) > len(columns) {
		return nil, usererror.WrongKeyParts(l.Name(), len(columns), len(parts), keyText(p))
	}
	key := make([]value.Value, len(parts))
	for i, part := range parts {
		v, err := columnValue(part, columns[i].Column)
		if err != nil {
			return nil, err
		}
		key[i] = v
	}
	return key, nil
}

// columnValue converts a value that a key or a mutation has for column c.
func columnValue(p *structpb.Value, c *schema.Column) (value.Value, error) {
	v, err := value.FromWire(p, c.Type)
	if err != nil {
		return v, usererror.UnparsableColumnValue(c.Name, c.Type.String(), err)
	}
	return v, nil
}

// keyText formats a key for an error.
func keyText(p *structpb.ListValue) string {
	b, err := json.Marshal(p.AsSlice()) // protojson would add spaces at random
	if err != nil {
		return "?"
	}
	return string(b)
}
