package stats

import (
	"strings"
	"testing"
)

// TestTag checks that Tag returns each tag in the form that Cloud Spanner shows, also for tags that hostile clients
// send. For a usual tag it must not allocate memory.
func TestTag(t *testing.T) {
	long := strings.Repeat("x", maxTag)
	for tag, want := range map[string]string{
		"":                            "",
		"app=cart,env=dev":            "app=cart,env=dev",
		"App=Cart":                    "App=Cart",
		"_app":                        "app",
		"___":                         "",
		"a_b_":                        "a_b_",
		"a b~":                        "a b~",
		"caf\u00e9=1":                 "caf_=1",
		"\u00e9app":                   "app",
		"a\x00b\tc\nd\x7f":            "a_b_c_d_",
		"a\xffb":                      "a_b",
		long:                          long,
		long + "y":                    long,
		"_" + long:                    long,
		strings.Repeat("_", 1<<20):    "",
		strings.Repeat("\u00e9", 99):  "",
		"a" + strings.Repeat("é", 99): "a" + strings.Repeat("_", maxTag-1),
	} {
		if got := Tag(tag); got != want {
			t.Errorf("%.60q becomes %q, want %q", tag, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { Tag("app=cart,env=dev") }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// TestBatchText: where equal statements follow each other, the text of a batch has the statement once.
func TestBatchText(t *testing.T) {
	if got := BatchText([]string{"A", "A", "B", "A"}).SQL; got != "A;B;A" {
		t.Errorf("the text is %q", got)
	}
	if BatchText([]string{"A", "A"}) != BatchText([]string{"A"}) {
		t.Error("how often a statement is repeated tells batches apart")
	}
}
