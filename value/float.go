package value

import (
	"math"
	"strconv"
)

// AppendFloat64 appends a FLOAT64 as CAST to STRING prints it: with 15 significant digits if they identify the number,
// and otherwise with 17. The number is printed with an exponent if its absolute value is less than 10^-4 or at least
// 10^15 (10^17 if it has 17 digits). -0 is printed as 0. Spanner documents the form at
// https://docs.cloud.google.com/spanner/docs/reference/standard-sql/conversion_functions#cast-as-string.
func AppendFloat64(dst []byte, f float64) []byte {
	if f == 0 || f-f != 0 {
		return appendSpecialFloat(dst, f)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', 15, 64)
	if back, err := strconv.ParseFloat(string(dst[start:]), 64); err == nil && back == f {
		return dst
	}
	return strconv.AppendFloat(dst[:start], f, 'g', 17, 64)
}

// AppendFloat32 appends a FLOAT32 as CAST to STRING prints it: with 6 significant digits if they identify the number,
// else with 8 if they identify it, and otherwise with 9.
func AppendFloat32(dst []byte, f float32) []byte {
	if f == 0 || f-f != 0 {
		return appendSpecialFloat(dst, float64(f))
	}
	start := len(dst)
	for _, precision := range []int{6, 8} {
		dst = strconv.AppendFloat(dst[:start], float64(f), 'g', precision, 32)
		if back, err := strconv.ParseFloat(string(dst[start:]), 32); err == nil && float32(back) == f {
			return dst
		}
	}
	return strconv.AppendFloat(dst[:start], float64(f), 'g', 9, 32)
}

func appendSpecialFloat(dst []byte, f float64) []byte {
	switch {
	case f == 0:
		return append(dst, '0')
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	}
	return append(dst, "nan"...)
}
