package own

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// sqlFile is a file of SQL:
//
//	-- @id INT64 1..100000
//	-- @name STRING letters 20
//	UPDATE Singers SET Name = @name WHERE Id = @id
//
// A statement ends at the end of the file or with a ; at the end of a line. Statements with DML run in one read-write
// transaction. Several queries run in one read-only transaction. A comment line may hold "batch" or "last_statement".
// With "batch" all DML runs in one ExecuteBatchDml. With "last_statement" the request of the last statement has the
// field last_statement set.
type sqlFile struct {
	*file
	statements []sqlStatement
	write      bool
	batch      bool
	last       harness.Saying
}

type sqlStatement struct {
	text    string
	dml     bool
	returns bool     // true if the statement returns rows: it is a query, or it has THEN RETURN
	uses    []string // names of the parameters in text
}

const (
	wordBatch = "batch"
	wordLast  = "last_statement"
)

var (
	dmlForm    = regexp.MustCompile(`(?i)^\s*(@\{[^}]*\}\s*)?(INSERT|UPDATE|DELETE)\b`)
	returnForm = regexp.MustCompile(`(?i)\bTHEN\s+RETURN\b`)
	useForm    = regexp.MustCompile(`@([A-Za-z_][A-Za-z0-9_]*)`)
)

func openSQL(path string) (*sqlFile, error) {
	f, err := openFile(path, wordBatch, wordLast, onlyBehindComments)
	if err != nil {
		return nil, err
	}
	s := &sqlFile{file: f}
	var text []string
	for _, line := range f.body {
		switch strings.TrimSpace(line.text) {
		case wordBatch:
			s.batch = true
			continue
		case wordLast:
			s.last = harness.SayLast
			continue
		}
		rest, ends := strings.CutSuffix(strings.TrimRight(line.text, " \t"), ";")
		if text = append(text, rest); ends {
			s.add(strings.Join(text, "\n"))
			text = nil
		}
	}
	s.add(strings.Join(text, "\n"))
	return s, s.check(path)
}

func (s *sqlFile) add(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	st := sqlStatement{text: text, dml: dmlForm.MatchString(text), returns: true}
	if st.dml {
		st.returns = returnForm.MatchString(text)
		s.write = true
	}
	for _, m := range useForm.FindAllStringSubmatch(text, -1) {
		st.uses = append(st.uses, m[1])
	}
	s.statements = append(s.statements, st)
}

func (s *sqlFile) check(path string) error {
	if len(s.statements) == 0 {
		return fmt.Errorf("%s: there is no statement in it", path)
	}
	for _, st := range s.statements {
		if s.batch && (!st.dml || st.returns) {
			return fmt.Errorf("%s: batch is for DML without THEN RETURN only", path)
		}
	}
	return nil
}

// draw returns the statements of one operation, with new values of the parameters. Each statement gets only the
// parameters that its text names.
func (s *sqlFile) draw(c harness.Call) (list []spanner.Statement) {
	for range s.repeat {
		values := drawAll(s.parameters, c.Rand)
		for _, st := range s.statements {
			out := spanner.Statement{SQL: st.text, Params: make(map[string]any, len(st.uses))}
			for _, name := range st.uses {
				if v, ok := values[name]; ok {
					out.Params[name] = v
				}
			}
			list = append(list, out)
		}
	}
	return list
}

func (s *sqlFile) path() harness.Path {
	p := harness.Path{Name: s.name, Method: "ExecuteStreamingSql", Operation: s.query}
	n := len(s.statements) * s.repeat
	switch {
	case s.batch:
		p.Operation, p.Method = s.batchDML, "ExecuteBatchDml, Commit"
	case s.write:
		p.Operation, p.Method = s.transaction, harness.Repeated("ExecuteSql", n)+", Commit"
	case n > 1:
		p.Operation, p.Method = s.queries, "BeginTransaction, "+harness.Repeated("ExecuteStreamingSql", n)
	}
	return p
}

func (s *sqlFile) query(ctx context.Context, c harness.Call) (rows int, err error) {
	return harness.Drain(c.Client.Single().QueryWithOptions(ctx, s.draw(c)[0], spanner.QueryOptions{RequestTag: c.Tag}))
}

func (s *sqlFile) queries(ctx context.Context, c harness.Call) (rows int, err error) {
	tx := c.Client.ReadOnlyTransaction()
	defer tx.Close()
	for _, st := range s.draw(c) {
		n, err := harness.Drain(tx.QueryWithOptions(ctx, st, spanner.QueryOptions{RequestTag: c.Tag}))
		if err != nil {
			return rows, err
		}
		rows += n
	}
	return rows, nil
}

func (s *sqlFile) transaction(ctx context.Context, c harness.Call) (rows int, err error) {
	list := s.draw(c)
	err = harness.InTransaction(ctx, c, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		rows = 0 // after an abort the client calls this function again, and only the rows of the last call count
		for i, st := range list {
			o := spanner.QueryOptions{RequestTag: c.Tag, LastStatement: bool(s.last) && i == len(list)-1}
			n, err := s.execute(ctx, tx, s.statements[i%len(s.statements)], st, o)
			if err != nil {
				return err
			}
			rows += n
		}
		return nil
	})
	return rows, err
}

// execute runs one statement of a read-write transaction. It returns the number of rows that the statement changed or
// returned.
func (s *sqlFile) execute(ctx context.Context, tx *spanner.ReadWriteTransaction, kind sqlStatement, st spanner.Statement, o spanner.QueryOptions) (int, error) {
	if kind.returns {
		return harness.Drain(tx.QueryWithOptions(ctx, st, o))
	}
	n, err := tx.UpdateWithOptions(ctx, st, o)
	return int(n), err
}

func (s *sqlFile) batchDML(ctx context.Context, c harness.Call) (rows int, err error) {
	list := s.draw(c)
	err = harness.InTransaction(ctx, c, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		counts, err := tx.BatchUpdateWithOptions(ctx, list, spanner.QueryOptions{RequestTag: c.Tag, LastStatement: bool(s.last)})
		rows = 0 // after an abort the client calls this function again, and only the rows of the last call count
		for _, n := range counts {
			rows += int(n)
		}
		return err
	})
	return rows, err
}
