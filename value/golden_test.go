package value

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// goldenTypes maps the names in golden files to types.
var goldenTypes = func() map[string]*Type {
	types := map[string]*Type{}
	for _, t := range rowTypes {
		types[strings.ReplaceAll(t.String(), " ", "_")] = t
	}
	return types
}()

// TestCodings compares the bytes of keys, stored payloads and wire forms with golden files. Keys and payloads are
// stored on users' disks, so their bytes may change only with a new format version.
func TestCodings(t *testing.T) {
	eachLine(t, "testdata/codings", func(d *datadriven.TestData, line string) string {
		var name string
		d.ScanArgs(t, "type", &name)
		typ := goldenTypes[name]
		if typ == nil {
			d.Fatalf(t, "unknown type %s", name)
		}
		var pv structpb.Value
		if err := protojson.Unmarshal([]byte(line), &pv); err != nil {
			d.Fatalf(t, "%v", err)
		}
		v, err := FromWire(&pv, typ)
		if err != nil {
			return err.Error()
		}
		switch d.Cmd {
		case "key":
			return fmt.Sprintf("%x", AppendKey(nil, v, d.HasArg("desc")))
		case "row":
			return fmt.Sprintf("%x", AppendRow(nil, v, typ))
		case "wire":
			return fmt.Sprintf("%x", v.AppendWire(nil, typ))
		}
		d.Fatalf(t, "unknown command")
		return ""
	})
}

// TestTexts compares how texts are parsed, and how the resulting values are printed, with golden files.
func TestTexts(t *testing.T) {
	eachLine(t, "testdata/texts", func(d *datadriven.TestData, line string) string {
		line = strings.NewReplacer(`\ff`, "\xff", `\.`, " ").Replace(line)
		if d.Cmd == "wire" {
			return goldenWire(t, d, line)
		}
		out, err := parseAndPrint(t, d, line)
		if err != nil {
			return "error: " + err.Error()
		}
		return string(out)
	})
}

func goldenWire(t *testing.T, d *datadriven.TestData, line string) string {
	var name string
	d.ScanArgs(t, "type", &name)
	pv := structpb.NewStringValue(line)
	if !d.HasArg("string") {
		if err := protojson.Unmarshal([]byte(line), pv); err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	v, err := FromWire(pv, goldenTypes[name])
	switch {
	case err != nil:
		return "error: " + err.Error()
	case v.IsPending():
		return "pending commit timestamp"
	}
	return fmt.Sprintf("%q", v.AppendWire(nil, goldenTypes[name]))
}

func parseAndPrint(t *testing.T, d *datadriven.TestData, line string) ([]byte, error) {
	switch d.Cmd {
	case "date":
		days, err := ParseDate(line)
		return AppendDate(nil, days), err
	case "timestamp":
		zone, err := LoadZone(DefaultZone)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		v, err := ParseTimestamp(line, zone)
		seconds, nanos := v.AsTimestamp()
		return AppendTimestampIn(append(AppendTimestamp(nil, seconds, nanos), " = "...), seconds, nanos, zone), err
	case "timestamp-z":
		v, err := ParseTimestampZ(line)
		seconds, nanos := v.AsTimestamp()
		return AppendTimestampIn(append(AppendTimestamp(nil, seconds, nanos), " = "...), seconds, nanos, time.UTC), err
	case "numeric":
		n, err := ParseDecimal(line)
		if _, strict := ParseDecimalStrict(line); err == nil && strict != nil {
			return append(n.Append(nil), " (rounded)"...), nil
		}
		return n.Append(nil), err
	case "interval":
		i, err := ParseInterval(line)
		return i.AppendCanonical(append(i.Append(nil), " = "...)), err
	case "json":
		text, err := ParseJSON(line)
		return []byte(text), err
	case "json-rounding":
		text, err := ParseJSONRounding(line)
		return []byte(text), err
	case "uuid":
		u, err := ParseUUID(line)
		return AppendUUID(nil, u), err
	}
	d.Fatalf(t, "unknown command")
	return nil, nil
}

// eachLine runs a golden file. Each case has a command and lines of input. run is called for each line of input and
// returns a line of output.
func eachLine(t *testing.T, path string, run func(d *datadriven.TestData, line string) string) {
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		for line := range strings.SplitSeq(d.Input, "\n") {
			fmt.Fprintf(&out, "%s -> %s\n", line, run(d, line))
		}
		return out.String()
	})
}
