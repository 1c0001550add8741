package own

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// readFile is a file that describes one StreamingRead:
//
//	@ids ARRAY<INT64> 10 of 1..100000
//	table   Singers
//	columns Id, Name
//	keys    @ids
//
// The rows are selected by one or more lines: "key @a, @b" (one key, with its parts), "keys @list" (one key for each
// element), "range @a, @b to @c, @d" (both ends included) and "all". The lines "index Name" and "limit 10" are
// optional.
type readFile struct {
	*file
	table   string
	index   string
	limit   int
	columns []string
	sets    []func(drawn map[string]any) spanner.KeySet
}

func openRead(path string) (*readFile, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	r := &readFile{file: f}
	for _, line := range f.body {
		if err := r.word(strings.TrimSpace(line.text)); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, line.number, err)
		}
	}
	if r.table == "" || len(r.columns) == 0 || len(r.sets) == 0 {
		return nil, fmt.Errorf("%s: a read needs a table, columns, and a key, keys, a range or all", path)
	}
	return r, nil
}

func (r *readFile) word(text string) (err error) {
	word, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "table":
		r.table = rest
	case "index":
		r.index = rest
	case "columns":
		for _, c := range strings.Split(rest, ",") {
			r.columns = append(r.columns, strings.TrimSpace(c))
		}
	case "limit":
		if r.limit, err = strconv.Atoi(rest); err != nil || r.limit < 1 {
			return fmt.Errorf("a limit is a positive number, not %q", rest)
		}
	case "all":
		r.sets = append(r.sets, func(map[string]any) spanner.KeySet { return spanner.AllKeys() })
	case "key":
		return r.key(rest)
	case "keys":
		return r.keys(rest)
	case "range":
		return r.keyRange(rest)
	default:
		return fmt.Errorf("unknown word %q: there are table, index, columns, key, keys, range, all, limit, repeat", word)
	}
	return nil
}

func keyOf(parts []argument, drawn map[string]any) spanner.Key {
	k := make(spanner.Key, len(parts))
	for i, p := range parts {
		k[i] = p.value(drawn)
	}
	return k
}

func (r *readFile) key(text string) error {
	parts, err := r.arguments(text)
	r.sets = append(r.sets, func(drawn map[string]any) spanner.KeySet { return keyOf(parts, drawn) })
	return err
}

func (r *readFile) keys(text string) error {
	list, err := r.argument(text)
	if err == nil && list.parameter == "" {
		err = fmt.Errorf("keys needs an array parameter, not %q", text)
	}
	r.sets = append(r.sets, func(drawn map[string]any) spanner.KeySet {
		values := reflect.ValueOf(list.value(drawn))
		if values.Kind() != reflect.Slice {
			return spanner.Key{list.value(drawn)} // a parameter that is not an array is a single key
		}
		sets := make([]spanner.KeySet, values.Len())
		for i := range sets {
			sets[i] = spanner.Key{values.Index(i).Interface()}
		}
		return spanner.KeySets(sets...)
	})
	return err
}

func (r *readFile) keyRange(text string) error {
	first, last, ok := strings.Cut(text, " to ")
	if !ok {
		return fmt.Errorf("a range is first to last, not %q", text)
	}
	from, err := r.arguments(first)
	if err != nil {
		return err
	}
	to, err := r.arguments(last)
	r.sets = append(r.sets, func(drawn map[string]any) spanner.KeySet {
		return spanner.KeyRange{Start: keyOf(from, drawn), End: keyOf(to, drawn), Kind: spanner.ClosedClosed}
	})
	return err
}

// draw returns the key set of one operation, with new values of the parameters.
func (r *readFile) draw(c harness.Call) spanner.KeySet {
	var sets []spanner.KeySet
	for range r.repeat {
		drawn := drawAll(r.parameters, c.Rand)
		for _, s := range r.sets {
			sets = append(sets, s(drawn))
		}
	}
	if len(sets) == 1 {
		return sets[0]
	}
	return spanner.KeySets(sets...)
}

func (r *readFile) path() harness.Path {
	return harness.Path{Name: r.name, Method: "StreamingRead", Operation: func(ctx context.Context, c harness.Call) (int, error) {
		return harness.Drain(c.Client.Single().ReadWithOptions(ctx, r.table, r.draw(c), r.columns,
			&spanner.ReadOptions{Index: r.index, Limit: r.limit, RequestTag: c.Tag}))
	}}
}
