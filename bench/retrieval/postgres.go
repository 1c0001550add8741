package retrieval

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// postgres is a PostgreSQL database.
type postgres struct {
	connections []*pgx.Conn
	backends    backends
}

// openPostgres opens connections to PostgreSQL. Each query runs in one server process, without parallel workers.
func openPostgres(ctx context.Context, dsn string, connections int) (relational, error) {
	p := &postgres{backends: backends{name: "postgres"}}
	for range connections {
		c, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.connections = append(p.connections, c)
		if _, err := c.Exec(ctx, "SET max_parallel_workers_per_gather = 0"); err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.backends.pids = append(p.backends.pids, harness.PID(c.PgConn().PID()))
	}
	return p, nil
}

func (p *postgres) rows(ctx context.Context, connection int, query string, each func(scan scanRow) error) error {
	rows, err := p.connections[connection].Query(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (p *postgres) exec(ctx context.Context, statement string) error {
	_, err := p.connections[0].Exec(ctx, statement)
	return err
}

// fill loads a file into a table with COPY. COPY does not allow a delimiter at the end of a line, so fill removes it.
func (p *postgres) fill(ctx context.Context, table, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines, to := io.Pipe()
	go func() { to.CloseWithError(withoutLastDelimiter(to, f)) }()
	_, err = p.connections[0].PgConn().CopyFrom(ctx, lines, "COPY "+table+" FROM STDIN (DELIMITER '|')")
	lines.CloseWithError(err) // ends the goroutine above, which writes to the pipe
	if err != nil {
		return err
	}
	return p.exec(ctx, "VACUUM ANALYZE "+table)
}

func withoutLastDelimiter(to io.Writer, from io.Reader) error {
	in, out := bufio.NewReaderSize(from, 1<<20), bufio.NewWriterSize(to, 1<<20)
	for {
		line, err := in.ReadSlice('\n')
		if err == io.EOF {
			return out.Flush()
		}
		if err == nil {
			_, err = out.Write(append(bytes.TrimSuffix(line, []byte("|\n")), '\n'))
		}
		if err != nil {
			return err
		}
	}
}

func (p *postgres) server() *harness.Server { return &harness.Server{CPU: p.backends.meter()} }

func (p *postgres) close() error {
	var errs []error
	for _, c := range p.connections {
		errs = append(errs, c.Close(context.Background()))
	}
	return errors.Join(errs...)
}
