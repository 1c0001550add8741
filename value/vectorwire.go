package value

import "encoding/base64"

// AppendVectorsWire appends value i of each vector as a whole field (see Value.AppendWireField). size is the sum of
// the DataSize of these values.
func AppendVectorsWire(dst []byte, tag byte, vectors []*Vector, i int) (out []byte, size int) {
	for _, v := range vectors {
		switch {
		case v.Nulls != nil && v.Nulls[i]:
			dst = NullField(dst, tag)
		case v.Offsets != nil:
			text := v.Text[v.Offsets[i]:v.Offsets[i+1]]
			if size += len(text); inBase64(v.Type.Kind) {
				dst = appendBytesField(dst, tag, text)
			} else {
				dst = appendTextField(dst, tag, text)
			}
		case v.Ints != nil && v.Type.Kind == Int64:
			dst = appendIntField(dst, tag, v.Ints[i])
			size += FixedSize(Int64)
		default:
			var n int
			dst, n = v.appendOtherWire(dst, tag, i)
			size += n
		}
	}
	return dst, size
}

// inBase64 reports whether the wire form of the kind is base64.
func inBase64(k Kind) bool { return k == Bytes || k == Proto }

func (v *Vector) appendOtherWire(dst []byte, tag byte, i int) (out []byte, size int) {
	if v.Decimals != nil && v.Decimals[i].isShort() {
		return appendShortDecimalField(dst, tag, v.Decimals[i]), numericSize(decimalSize(v.Decimals[i]))
	}
	x := v.Peek(i)
	return x.AppendWireField(dst, tag, v.Type), x.DataSize(v.Type)
}

// VectorsWireSize returns an upper bound of the bytes that AppendVectorsWire appends.
func VectorsWireSize(vectors []*Vector, i int) int {
	n := 0
	for _, v := range vectors {
		switch {
		case v.Offsets != nil && inBase64(v.Type.Kind):
			n += wireHeads + base64.StdEncoding.EncodedLen(int(v.Offsets[i+1]-v.Offsets[i]))
		case v.Offsets != nil:
			n += wireHeads + int(v.Offsets[i+1]-v.Offsets[i])
		case v.Values != nil:
			n += v.Values[i].WireSize()
		default:
			n += wireDigit
		}
	}
	return n
}
