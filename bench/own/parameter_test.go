package own

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/civil"
)

func TestParameters(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	above, began := map[string]any{"id": int64(5)}, time.Now()
	for line, check := range map[string]func(any) bool{
		"@a INT64 3..4": func(v any) bool { return v == int64(3) || v == int64(4) },
		"@a INT64 -9223372036854775808..9223372036854775807": func(v any) bool { _, ok := v.(int64); return ok },
		"@a INT64 sequence 7":                                func(v any) bool { return v.(int64) >= 7 && v.(int64) < 107 },
		"@a INT64 @id + 9":                                   func(v any) bool { return v == int64(14) },
		"@a INT64 @id - 9":                                   func(v any) bool { return v == int64(-4) },
		"@a INT64 one of 1, 5":                               func(v any) bool { return v == int64(1) || v == int64(5) },
		"@a FLOAT64 0.5..1":                                  func(v any) bool { return v.(float64) >= 0.5 && v.(float64) <= 1 },
		"@a BOOL":                                            func(v any) bool { _, ok := v.(bool); return ok },
		"@a STRING uuid":                                     func(v any) bool { return len(v.(string)) == 36 },
		"@a STRING letters 12":                               func(v any) bool { return len(v.(string)) == 12 },
		"@a STRING user-%06d 1..9":                           func(v any) bool { return strings.HasPrefix(v.(string), "user-00000") },
		"@a STRING one of red, green":                        func(v any) bool { return v == "red" || v == "green" },
		"@a BYTES 3":                                         func(v any) bool { return len(v.([]byte)) == 3 },
		"@a DATE 2024-02-28..2024-03-01":                     func(v any) bool { return v.(civil.Date).Year == 2024 },
		"@a TIMESTAMP now":                                   func(v any) bool { return !v.(time.Time).Before(began) && !v.(time.Time).After(time.Now()) },
		"@a TIMESTAMP 2024-01-01T00:00:00Z..2024-01-01T00:00:00Z": func(v any) bool { return v.(time.Time).Unix() == 1704067200 },
		"@a ARRAY<INT64> 3 of 1..3":                               func(v any) bool { l := v.([]int64); return len(l) == 3 && l[0]+l[1]+l[2] == 6 },
		"@a ARRAY<STRING> 2 of uuid":                              func(v any) bool { return len(v.([]string)) == 2 },
		"@a ARRAY<INT64> 5 of one of 1, 2":                        func(v any) bool { return len(v.([]int64)) == 2 },
	} {
		p, err := parseParameter(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		for range 100 {
			if v := p.draw(r, above); !check(v) {
				t.Errorf("%s drew %v", line, v)
				break
			}
		}
	}
}

func TestParameterErrors(t *testing.T) {
	for _, line := range []string{
		"@a", "@a INT64", "@a INT64 x..y", "@a INT64 2..1", "@a INT64 1", "@a INT64 sequence x", "@a INT64 one of x", "@a WHAT 1..2",
		"@a FLOAT64 NaN..1", "@a FLOAT64 2..1", "@a BOOL yes", "@a STRING", "@a STRING words 3", "@a STRING letters -1", "@a STRING letters 99999999999",
		"@a STRING user-%s 1..2", "@a STRING %d%d 1..2", "@a BYTES x", "@a DATE 2024-13-01..2024-12-31", "@a DATE 2024-02-02..2024-02-01",
		"@a TIMESTAMP 5..6", "@a TIMESTAMP 0001-01-01T00:00:00Z..9999-12-31T00:00:00Z",
		"@a ARRAY<INT64> 1..2", "@a ARRAY<BYTES> 2 of 3", "@a ARRAY<BOOL> 2 of", "@a ARRAY<WHAT> 2 of 3", "@a ARRAY<INT64> 99999999 of 1..2", "@1 INT64 1..2",
	} {
		if _, err := parseParameter(line); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
}
