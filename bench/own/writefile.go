package own

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// writeFile is a file of mutations, which one commit writes:
//
//	@id   STRING uuid
//	@name STRING letters 20
//	insert Singers Id = @id, Name = @name, Visits = 0
//	delete Albums key @id, 7
//
// A line is insert, update, insert_or_update or replace with a table and columns, or a delete with a key. With the
// line "at_least_once" the write is a single Commit call without replay protection, so a retry may apply it twice.
type writeFile struct {
	*file
	mutations   []func(drawn map[string]any) *spanner.Mutation
	atLeastOnce bool
}

var writeForm = regexp.MustCompile(`^(\w+)\s+([\w.]+)\s+(.*)$`)

// writeWords holds the functions that make the mutations with columns, by the word in the file.
var writeWords = map[string]func(table string, columns []string, values []any) *spanner.Mutation{
	"insert":           spanner.Insert,
	"update":           spanner.Update,
	"insert_or_update": spanner.InsertOrUpdate,
	"replace":          spanner.Replace,
}

func openWrite(path string) (*writeFile, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	w := &writeFile{file: f}
	for _, line := range f.body {
		if err := w.word(strings.TrimSpace(line.text)); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, line.number, err)
		}
	}
	if len(w.mutations) == 0 {
		return nil, fmt.Errorf("%s: there is no mutation in it", path)
	}
	return w, nil
}

func (w *writeFile) word(text string) error {
	if text == "at_least_once" {
		w.atLeastOnce = true
		return nil
	}
	m := writeForm.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("a mutation is a word, a table, and columns or a key, not %q", text)
	}
	word, table, rest := m[1], m[2], m[3]
	if key, ok := strings.CutPrefix(rest, "key "); ok && word == "delete" {
		parts, err := w.arguments(key)
		w.mutations = append(w.mutations, func(drawn map[string]any) *spanner.Mutation { return spanner.Delete(table, keyOf(parts, drawn)) })
		return err
	}
	mutation, ok := writeWords[word]
	if !ok {
		return fmt.Errorf("unknown mutation %q: there are insert, update, insert_or_update and replace TABLE COLUMN = VALUE, and delete TABLE key VALUE", word)
	}
	columns, values, err := w.assignments(rest)
	w.mutations = append(w.mutations, func(drawn map[string]any) *spanner.Mutation { return mutation(table, columns, keyOf(values, drawn)) })
	return err
}

// assignments parses "Column = value, ...".
func (w *writeFile) assignments(text string) (columns []string, values []argument, err error) {
	for _, part := range splitOutsideQuotes(text) {
		column, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, nil, fmt.Errorf("a column is set as Column = value, not %q", strings.TrimSpace(part))
		}
		a, err := w.argument(value)
		if err != nil {
			return nil, nil, err
		}
		columns, values = append(columns, strings.TrimSpace(column)), append(values, a)
	}
	return slices.Clip(columns), values, nil
}

// draw returns the mutations of one operation, with new values of the parameters.
func (w *writeFile) draw(c harness.Call) (list []*spanner.Mutation) {
	for range w.repeat {
		drawn := drawAll(w.parameters, c.Rand)
		for _, m := range w.mutations {
			list = append(list, m(drawn))
		}
	}
	return list
}

func (w *writeFile) path() harness.Path {
	p := harness.Path{Name: w.name, Method: "BeginTransaction, Commit"}
	if w.atLeastOnce {
		p.Method = "Commit"
	}
	p.Operation = func(ctx context.Context, c harness.Call) (int, error) {
		options := []spanner.ApplyOption{spanner.TransactionTag(c.Tag)}
		if w.atLeastOnce {
			options = append(options, spanner.ApplyAtLeastOnce())
		}
		list := w.draw(c)
		_, err := c.Client.Apply(ctx, list, options...)
		return len(list), err
	}
	return p
}
