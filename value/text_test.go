package value

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestCivilDatesAgreeWithTime(t *testing.T) {
	for days := int32(MinDate); days <= MaxDate; days++ {
		year, month, day := CivilOf(days)
		if DaysOf(year, month, day) != days {
			t.Fatalf("day %d is %d-%d-%d, which is day %d", days, year, month, day, DaysOf(year, month, day))
		}
		if days%97 == 0 || day >= 28 {
			want := time.Unix(int64(days)*secondsPerDay, 0).UTC()
			if y, m, d := want.Date(); y != year || int(m) != month || d != day {
				t.Fatalf("day %d is %d-%d-%d, want %v", days, year, month, day, want)
			}
			if last := want.AddDate(0, 0, 1).Day() == 1; last != (day == DaysIn(year, month)) {
				t.Fatalf("%v: the month has %d days", want, DaysIn(year, month))
			}
		}
	}
}

func TestTimestampTextRoundTrip(t *testing.T) {
	seeds(t, func(t *testing.T, r *rand.Rand) {
		for range 2000 {
			v := randomTimestamp(r)
			seconds, nanos := v.AsTimestamp()
			text := string(AppendTimestamp(nil, seconds, nanos))
			if want := time.Unix(seconds, int64(nanos)).UTC().Format(time.RFC3339Nano); text != want {
				t.Fatalf("printed %s, want %s", text, want)
			}
			back, err := ParseTimestampZ(text)
			if err != nil {
				t.Fatal(err)
			}
			mustEqual(t, TimestampType, back, v)
			zone, err := LoadZone([]string{"America/Los_Angeles", "Asia/Kolkata", "Australia/Lord_Howe", "+05:45"}[r.IntN(4)])
			if err != nil {
				t.Fatal(err)
			}
			back, err = ParseTimestamp(string(AppendTimestampIn(nil, seconds, nanos, zone)), time.UTC)
			if offset := ZoneOffset(seconds, zone); seconds+offset < MinTimestampSeconds || seconds+offset > MaxTimestampSeconds {
				continue // the local date of this time does not have a four-digit year
			}
			if err != nil {
				t.Fatal(err)
			}
			mustEqual(t, TimestampType, back, v)
		}
	})
}

// TestInstantOf checks the result of InstantOf: at that time, a clock in the zone must show the given local time,
// unless clocks in the zone skip that local time.
func TestInstantOf(t *testing.T) {
	for _, name := range []string{"America/Los_Angeles", "Pacific/Apia", "Europe/Dublin", "Africa/Monrovia"} {
		zone, err := LoadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		for local := int64(-3e9); local < 3e9; local += 1801 * 7 {
			at := InstantOf(local, zone)
			shown := at + offsetAt(at, zone)
			if shown == local {
				// A clock shows a local time twice when it is set back. Then InstantOf must return the earlier time.
				if earlier := at - 3600; earlier+offsetAt(earlier, zone) == local {
					t.Fatalf("%s: %v is not the earlier of two", name, time.Unix(at, 0).In(zone))
				}
				continue
			}
			if shown < local || shown-local > 24*3600 {
				t.Fatalf("%s: local %v became %v", name, time.Unix(local, 0).UTC(), time.Unix(at, 0).In(zone))
			}
			for probe := at - 30*3600; probe < at+30*3600; probe += 60 {
				if probe+offsetAt(probe, zone) == local {
					t.Fatalf("%s: local %v became %v, but %v shows it", name, time.Unix(local, 0).UTC(),
						time.Unix(at, 0).In(zone), time.Unix(probe, 0).In(zone))
				}
			}
		}
	}
}

func TestIntervalTextRoundTrip(t *testing.T) {
	seeds(t, func(t *testing.T, r *rand.Rand) {
		for range 2000 {
			i := randomInterval(r)
			for _, text := range []string{string(i.Append(nil)), string(i.AppendCanonical(nil))} {
				back, err := ParseInterval(text)
				if err != nil || back != i {
					t.Fatalf("%+v printed as %s, read as %+v, error %v", i, text, back, err)
				}
			}
			if neg := i.Neg(); neg.Neg() != i || !neg.InRange() {
				t.Fatalf("%+v negated is %+v", i, neg)
			}
			if sum, ok := i.Add(i.Neg()); !ok || sum != (IntervalValue{}) {
				t.Fatalf("%+v minus itself is %+v", i, sum)
			}
			if half, ok := i.Div(2); ok {
				if twice, ok := half.Mul(2); !ok || math.Abs(float64(i.Cmp(twice))) > 1 {
					t.Fatalf("%+v", half)
				}
			}
		}
	})
}

func TestIntervalArithmetic(t *testing.T) {
	parse := func(s string) IntervalValue {
		i, err := ParseInterval(s)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	div := func(s string, n int64) string {
		i, ok := parse(s).Div(n)
		if !ok {
			return "overflow"
		}
		return string(i.Append(nil))
	}
	for _, test := range []struct{ got, want string }{
		{div("P1Y1M", 2), "P6M15D"},
		{div("P1D", 7), "PT3H25M42.857142857S"},
		{div("P-1M", 4), "P-7DT-12H"},
		{div("PT1S", -3), "PT-0.333333333S"},
	} {
		if test.got != test.want {
			t.Errorf("got %s, want %s", test.got, test.want)
		}
	}
	if _, ok := parse("P10000Y").Add(parse("P1M")); ok {
		t.Error("no overflow")
	}
	if i, ok := parse("PT0.5S").Mul(math.MaxInt64); ok {
		t.Errorf("no overflow: %+v", i)
	}
}

func TestFloatTexts(t *testing.T) {
	for _, test := range []struct {
		f    float64
		want string
	}{
		{0, "0"},
		{math.Copysign(0, -1), "0"},
		{1, "1"},
		{-1.5, "-1.5"},
		{0.1, "0.1"},
		{0.1 + 0.2*1.0000000000000002, "0.30000000000000004"},
		{1e14, "100000000000000"},
		{1e15, "1e+15"},
		{0.0001, "0.0001"},
		{0.00001, "1e-05"},
		{1e100, "1e+100"},
		{12345678901234568, "12345678901234568"},
		{123456789012345680, "1.2345678901234568e+17"},
		{math.MaxFloat64, "1.7976931348623157e+308"},
		{math.SmallestNonzeroFloat64, "4.94065645841247e-324"},
		{math.NaN(), "nan"},
		{math.Inf(1), "inf"},
		{math.Inf(-1), "-inf"},
	} {
		if got := string(AppendFloat64(nil, test.f)); got != test.want {
			t.Errorf("%v printed as %s, want %s", test.f, got, test.want)
		}
	}
	for f, want := range map[float32]string{
		0.1: "0.1", 1e6: "1e+06", 123456: "123456", 16777216: "16777216", math.MaxFloat32: "3.4028235e+38", -0.25: "-0.25",
	} {
		if got := string(AppendFloat32(nil, f)); got != want {
			t.Errorf("%v printed as %s, want %s", f, got, want)
		}
	}
	seeds(t, func(t *testing.T, r *rand.Rand) {
		for range 2000 {
			f := randomFloat(r)
			if back, err := strconv.ParseFloat(string(AppendFloat64(nil, f)), 64); err != nil || back != f && f == f {
				t.Fatalf("%v printed as %s", f, AppendFloat64(nil, f))
			}
			small := float32(f)
			if back, err := strconv.ParseFloat(string(AppendFloat32(nil, small)), 32); err != nil || float32(back) != small && f == f {
				t.Fatalf("%v printed as %s", small, AppendFloat32(nil, small))
			}
		}
	})
}

func TestJSONDepth(t *testing.T) {
	nested := func(open, closed string, depth int) string {
		return strings.Repeat(open, depth) + "1" + strings.Repeat(closed, depth)
	}
	for _, pair := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
		text := nested(pair[0], pair[1], MaxJSONDepth)
		if got, err := ParseJSON(text); err != nil || got != text {
			t.Errorf("%d levels of %s: %v", MaxJSONDepth, pair[0], err)
		}
		if _, err := ParseJSON(nested(pair[0], pair[1], MaxJSONDepth+1)); err == nil {
			t.Errorf("%d levels of %s: no error", MaxJSONDepth+1, pair[0])
		}
		if _, err := ParseJSON(strings.Repeat(pair[0], 1_000_000)); err == nil {
			t.Errorf("a million levels of %s: no error", pair[0])
		}
	}
}

func TestErrorsShowLittleOfLongValues(t *testing.T) {
	long := strings.Repeat("\xff1", 1<<20)
	for _, k := range []Kind{Int64, Float64, Float32, Timestamp, Date, Bytes, Numeric, JSON, Interval, UUID} {
		if _, err := textFromWire(long, ScalarType(k)); err == nil || len(err.Error()) > 1000 {
			t.Errorf("%s: error %.100v", k, err)
		}
	}
	digits := "1" + strings.Repeat("0", 1<<20) + ".5"
	if _, err := ParseJSON(digits); err == nil || len(err.Error()) > 1000 {
		t.Errorf("JSON: error %.100v", err)
	}
}
