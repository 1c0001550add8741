package value

import "encoding/binary"

// appendTextField appends a text as a whole field (see AppendWireField). It computes the length first, so that it does
// not have to move a long text afterwards.
func appendTextField(dst []byte, tag byte, text []byte) []byte {
	if n := len(text); n < 1<<7-2 {
		return append(append(dst, tag, byte(n+2), wireString, byte(n)), text...)
	}
	dst = appendWireHead(dst, tag, 1+uvarintSize(uint64(len(text)))+len(text))
	return append(appendWireHead(dst, wireString, len(text)), text...)
}

// A numberField is a buffer for a field that holds the text of a number. It is filled from the end to the start, with
// the tag and the length last.
type numberField struct {
	b  [48]byte
	at int // the index in b of the first byte of the written part
}

// appendIntField appends a whole number as a whole field (see AppendWireField).
func appendIntField(dst []byte, tag byte, i int64) []byte {
	var f numberField
	f.at = len(f.b)
	f.digits(magnitude64(i))
	return f.appendTo(dst, tag, i < 0)
}

// isShort reports whether the number of billionths of d fits into a sign and 64 bits.
func (d Decimal) isShort() bool { return d.hi == 0 || d.hi == -1 && d.lo > 0 }

// appendShortDecimalField appends a number for which isShort is true as a whole field (see AppendWireField), with the
// text that Append prints.
func appendShortDecimalField(dst []byte, tag byte, d Decimal) []byte {
	var f numberField
	f.at = len(f.b)
	u := d.lo
	if d.hi < 0 {
		u = -u
	}
	whole, fraction := u/decimalOne, uint32(u%decimalOne)
	if fraction != 0 {
		f.fraction(fraction)
	}
	f.digits(whole)
	return f.appendTo(dst, tag, d.hi < 0)
}

// digitPairs holds the two digits of each number from 00 to 99, one pair after the other.
const digitPairs = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899"

// digits writes the digits of a whole number.
func (f *numberField) digits(u uint64) {
	at := f.at
	for u >= 100 {
		pair := u % 100 * 2
		u /= 100
		at -= 2
		f.b[at], f.b[at+1] = digitPairs[pair], digitPairs[pair+1]
	}
	if u >= 10 {
		at -= 2
		f.b[at], f.b[at+1] = digitPairs[u*2], digitPairs[u*2+1]
	} else {
		at--
		f.b[at] = '0' + byte(u)
	}
	f.at = at
}

// fraction writes a point and a fraction, given in billionths, without zeros at the end.
func (f *numberField) fraction(billionths uint32) {
	digits, at := decimalScale, f.at
	if billionths%10_000_000 == 0 { // a shortcut, because most fractions have at most 2 digits
		billionths /= 10_000_000
		digits = 2
	}
	for billionths%10 == 0 {
		billionths /= 10
		digits--
	}
	for ; digits > 0; digits-- {
		at--
		f.b[at] = '0' + byte(billionths%10)
		billionths /= 10
	}
	at--
	f.b[at] = '.'
	f.at = at
}

// appendTo appends the field to dst. If negative is set, it puts a minus sign before the number. The field must be
// shorter than 128 bytes.
func (f *numberField) appendTo(dst []byte, tag byte, negative bool) []byte {
	at := f.at
	if negative {
		at--
		f.b[at] = '-'
	}
	n := byte(len(f.b) - at)
	at -= 4
	head := uint32(tag) | uint32(n+2)<<8 | wireString<<16 | uint32(n)<<24
	binary.LittleEndian.PutUint32(f.b[at:], head)
	return append(dst, f.b[at:]...)
}
