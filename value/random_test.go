package value

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// seeds tests a property with several seeds, each in a subtest that is named after the seed.
func seeds(t *testing.T, property func(t *testing.T, r *rand.Rand)) {
	t.Helper()
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			property(t, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

var keyTypes = []*Type{
	BoolType, Int64Type, Float64Type, Float32Type, TimestampType, DateType, StringType, BytesType, NumericType, UUIDType,
}

var rowTypes = append([]*Type{
	JSONType, IntervalType, ArrayOf(Int64Type), ArrayOf(StringType), ArrayOf(NumericType),
	ArrayOf(StructOf(Field{"a", Int64Type}, Field{"", ArrayOf(BytesType)}, Field{"a", Float64Type})),
	StructOf(), StructOf(Field{"n", NumericType}, Field{"t", TimestampType}),
}, keyTypes...)

// randomValue returns a random value of type t. It often returns values at the limits between two forms of an
// encoding, such as numbers that just fit into a number of bytes.
func randomValue(r *rand.Rand, t *Type) Value {
	if r.IntN(10) == 0 {
		return Null(t.Kind)
	}
	switch t.Kind {
	case Bool:
		return OfBool(r.IntN(2) == 0)
	case Int64:
		return OfInt64(randomInt(r))
	case Float64:
		return OfFloat64(randomFloat(r))
	case Float32:
		return OfFloat32(float32(randomFloat(r)))
	case Timestamp:
		return randomTimestamp(r)
	case Date:
		return OfDate(int32(MinDate + r.IntN(MaxDate-MinDate+1)))
	case String:
		return OfString(randomString(r))
	case Bytes:
		return OfBytes(randomBytes(r))
	case Proto:
		return OfProto(randomBytes(r))
	case Numeric:
		return OfNumeric(randomDecimal(r))
	case UUID:
		var u [16]byte
		for i := range u {
			u[i] = byte(r.IntN(3) * 127)
		}
		return OfUUID(u)
	case JSON:
		return OfJSON(string(AppendJSONString(nil, randomString(r))))
	case Interval:
		return OfInterval(randomInterval(r))
	}
	return randomComposite(r, t)
}

func randomComposite(r *rand.Rand, t *Type) Value {
	if t.Kind == Array {
		elems := make([]Value, r.IntN(4))
		for i := range elems {
			elems[i] = randomValue(r, t.Elem)
		}
		return OfArray(elems)
	}
	fields := make([]Value, len(t.Fields))
	for i := range fields {
		fields[i] = randomValue(r, t.Fields[i].Type)
	}
	return OfStruct(fields)
}

func randomInt(r *rand.Rand) int64 {
	i := int64(r.Uint64() >> r.IntN(64))
	switch r.IntN(3) {
	case 0:
		return i
	case 1:
		return -i
	}
	return 1<<r.IntN(64) - int64(r.IntN(3))
}

func randomFloat(r *rand.Rand) float64 {
	special := []float64{0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0xFFF8_0000_0000_0001), math.Inf(1), math.Inf(-1),
		math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, 1, -1}
	if i := r.IntN(2 * len(special)); i < len(special) {
		return special[i]
	}
	if r.IntN(2) == 0 {
		return float64(randomInt(r)) / 8
	}
	return math.Float64frombits(r.Uint64())
}

func randomTimestamp(r *rand.Rand) Value {
	nanos := []int32{0, 999_999_999, 1, 123_000_000, r.Int32N(1e9)}
	seconds := []int64{MinTimestampSeconds, MaxTimestampSeconds, 0, -1, MinTimestampSeconds + r.Int64N(MaxTimestampSeconds-MinTimestampSeconds)}
	return OfTimestamp(seconds[r.IntN(len(seconds))], nanos[r.IntN(len(nanos))])
}

func randomBytes(r *rand.Rand) []byte {
	b := make([]byte, r.IntN(4)*r.IntN(60))
	for i := range b {
		b[i] = []byte{0, 1, 0xFE, 0xFF, byte(r.Uint32())}[r.IntN(5)]
	}
	return b
}

func randomString(r *rand.Rand) string {
	s := make([]rune, r.IntN(4)*r.IntN(60))
	for i := range s {
		s[i] = []rune("\x00\x01ab\"\\\né\u07ff€\uffff😀")[r.IntN(12)]
	}
	return string(s)
}

func randomDecimal(r *rand.Rand) Decimal {
	switch r.IntN(8) {
	case 0:
		return MaxDecimal
	case 1:
		return MinDecimal
	case 2:
		return Decimal{hi: 0, lo: 1<<63 - uint64(r.IntN(3)) + 1} // billionths near the greatest int64
	case 3:
		return Decimal{hi: -1, lo: 1<<63 - uint64(r.IntN(3)) + 1}
	}
	d := magnitude{r.Uint64() >> (1 + r.IntN(64)), r.Uint64() >> r.IntN(64)}.signed(r.IntN(2) == 0)
	if !d.InRange() {
		return Decimal{lo: d.lo}
	}
	return d
}

func randomInterval(r *rand.Rand) IntervalValue {
	i, _ := NewInterval(r.Int64N(2*maxIntervalMonths)-maxIntervalMonths, r.Int64N(2*maxIntervalDays)-maxIntervalDays,
		r.Int64N(2*maxIntervalSeconds)-maxIntervalSeconds, r.Int64N(1e9)*r.Int64N(2))
	return i
}
