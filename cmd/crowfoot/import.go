package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/file"
	"github.com/crowfoot-db/crowfoot/bulk/transfer"
)

// importSettings are the values of the flags of import.
type importSettings struct {
	connection
	table, format, mode       string
	columns                   []string
	delimiter, null, encoding string
	noHeader, noQuotes        bool
	rejects, state            string
	create                    bool
	key                       []string
	maxRejects                int64
	mutations                 bool
	parallel                  int
}

func newImport() *cobra.Command {
	var s importSettings
	c := &cobra.Command{
		Use:   "import FILE...|FOLDER [flags]",
		Short: "Load files, or a folder that was exported",
		Long: `Loads FILEs, which may be globs in quotes, into a table: CSV, TPC-H's .tbl, JSON lines, Parquet, Arrow, or Avro.

Or loads a FOLDER that crowfoot export wrote, in any format, or Cloud Spanner, into the tables from which it was exported. With --create the database is made if it is not there, and all that the
folder has and the database has not: its tables first, and its indexes, foreign keys, views and change streams when the rows are in. A folder that is not complete, or not as it was exported, is refused.

The columns of the files are found in the table by their names: those of the header of CSV, or of --columns. Files without names (.tbl, or --no-header) have the columns
in the order of the table. Columns of the table that are not in the files get their default, or NULL.

Rows are written many a commit. If the import is interrupted, by a kill, too, or ended by a bad row, the same command goes on where it was, also when the files were corrected:
--state remembers what is in, by the text of the rows, and of text only what has changed is sent again; another changed file is sent again as a whole. With --mode
insert-or-update, the default, a row that is written twice is one row; with --mode insert a row whose key is in the table is a bad row. Where the database makes the
keys, by a sequence or GENERATE_UUID(), rows that were under way at an interruption may be in twice.

A bad row, one that is malformed or that the table refuses, ends the import, with file and line. --max-rejects lets so many be left out: they are in the file of --rejects,
with the reason, and the exit status is 0.

The database may be on any server: the one at --endpoint or SPANNER_EMULATOR_HOST (plain text: Crowfoot, Google's emulator), or on Cloud Spanner,
with the credentials of your environment. To a Crowfoot server rows go as columns, over Arrow Flight SQL, which takes less CPU time, and to others as mutations; the last line says
which way they went.`,
		Example: `  crowfoot import customer.tbl --table customer --database projects/p/instances/i/databases/d --endpoint 127.0.0.1:9010
  crowfoot import customer.parquet --table customer --create --key c_custkey --database projects/p/instances/i/databases/d
  crowfoot import exported-folder --create --database projects/p/instances/i/databases/d
  crowfoot import 'orders-*.csv' --table orders --max-rejects 100 --database projects/p/instances/i/databases/d`,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE:                  func(c *cobra.Command, files []string) error { return s.run(c.Context(), files) },
	}
	s.register(c.Flags())
	nameVariables(c.Flags(), "CROWFOOT_IMPORT")
	cobra.CheckErr(c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formatNames(), cobra.ShellCompDirectiveNoFileComp)))
	cobra.CheckErr(c.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(importModes, cobra.ShellCompDirectiveNoFileComp)))
	return c
}

var importModes = []string{string(transfer.InsertOrUpdate), string(transfer.Insert), string(transfer.Replace)}

func formatNames() (names []string) {
	for _, f := range file.Formats {
		names = append(names, string(f))
	}
	return names
}

func (s *importSettings) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	s.connection.register(flags)
	flags.StringVar(&s.table, "table", "", "`TABLE` that gets the rows")
	flags.StringVar(&s.format, "format", "", "`FORMAT` of the files: "+strings.Join(formatNames(), ", ")+"; told by their names if it is left out")
	flags.StringSliceVar(&s.columns, "columns", nil, "`NAMES` of the files' columns in order, in place of those of a header; - is a column that is left out")
	flags.StringVar(&s.mode, "mode", importModes[0], "`MODE`: "+strings.Join(importModes, ", "))
	flags.StringVar(&s.delimiter, "delimiter", "", "`CHARACTER` between fields, or tab; a comma in CSV, a bar in .tbl if it is left out")
	flags.BoolVar(&s.noHeader, "no-header", false, "the first line of CSV is a row")
	flags.BoolVar(&s.noQuotes, "no-quotes", false, "quotes in CSV are characters like others")
	flags.StringVar(&s.null, "null", "", "`TEXT` that stands for NULL without quotes; nothing in CSV, \\N in .tbl if it is left out")
	flags.StringVar(&s.encoding, "encoding", "utf-8", "`ENCODING` of text: utf-8, iso-8859-1, windows-1252")
	flags.StringVar(&s.rejects, "rejects", "", "`FILE` of bad rows, as lines of JSON; ./DATABASE.TABLE.rejects.jsonl if it is left out")
	flags.Int64Var(&s.maxRejects, "max-rejects", 0, "how many rows may be bad before the import ends")
	flags.StringVar(&s.state, "state", "", "`FILE` that remembers what is in until the import is complete; one in $XDG_STATE_HOME/crowfoot/imports (~/.local/state/crowfoot/imports) for each table of each database if it is left out")
	flags.BoolVar(&s.create, "create", false, "make the table first, with the columns of the files, and show its DDL; types of text are inferred from the first rows. Of a folder: make the database and what it had")
	flags.StringSliceVar(&s.key, "key", nil, "`COLUMNS` of the primary key of --create; the first column if it is left out")
	flags.BoolVar(&s.mutations, "mutations", false, "write mutations over Spanner's API also where the server is Crowfoot, which takes columns over Arrow Flight SQL")
	flags.IntVar(&s.parallel, "parallel", 2, "how many parts of the files are read at once; twice as many commits are under way")
}

func (s *importSettings) check(files []string) error {
	switch {
	case len(files) == 0:
		return usageErrorf("import needs at least one file")
	case isFolder(files):
		if err := s.checkFolder(); err != nil {
			return err
		}
	case s.table == "":
		return usageErrorf("import needs --table TABLE")
	case len(s.key) > 0 && !s.create:
		return usageErrorf("--key needs --create")
	case s.format != "" && !slices.Contains(formatNames(), s.format):
		return usageErrorf("--format is %q: want one of %s", s.format, strings.Join(formatNames(), ", "))
	case !slices.Contains(importModes, s.mode):
		return usageErrorf("--mode is %q: want one of %s", s.mode, strings.Join(importModes, ", "))
	case s.delimiter != "tab" && len(s.delimiter) > 1:
		return usageErrorf("--delimiter is %q: want one character, or tab", s.delimiter)
	case s.maxRejects < 0:
		return usageErrorf("--max-rejects is %d: want at least 0", s.maxRejects)
	case s.parallel < 1:
		return usageErrorf("--parallel is %d: want at least 1", s.parallel)
	case s.rejects != "" && s.maxRejects == 0:
		return usageErrorf("--rejects has no effect without --max-rejects: the first bad row ends the import")
	}
	if !isFolder(files) {
		if err := s.checkText(files); err != nil {
			return err
		}
	}
	return s.connection.check("import")
}

// checkText returns an error if the user has set a flag for text files that has no effect on the format of the given
// files.
func (s *importSettings) checkText(files []string) error {
	format := file.Format(s.format)
	if format == "" {
		format, _ = file.FormatOf(files[0])
	}
	for _, f := range []struct {
		given bool
		flag  string
		of    []file.Format
	}{
		{s.delimiter != "", "--delimiter", []file.Format{file.CSV, file.TBL}},
		{s.noHeader, "--no-header", []file.Format{file.CSV}},
		{s.noQuotes, "--no-quotes", []file.Format{file.CSV}},
		{s.null != "", "--null", []file.Format{file.CSV, file.TBL}},
		{!strings.EqualFold(s.encoding, "utf-8"), "--encoding", []file.Format{file.CSV, file.TBL}},
	} {
		if f.given && format != "" && !slices.Contains(f.of, format) {
			return usageErrorf("%s has no effect on files of the format %s", f.flag, format)
		}
	}
	return nil
}

// run runs the import of the files that match the patterns, or of a folder.
func (s *importSettings) run(ctx context.Context, patterns []string) error {
	if err := s.check(patterns); err != nil {
		return err
	}
	if isFolder(patterns) {
		return s.runFolder(ctx, patterns[0])
	}
	names, err := file.Glob(patterns)
	if err != nil {
		return err
	}
	return s.with(ctx, importAgent, func(ctx context.Context, client *spanner.Client) error {
		return s.runFiles(ctx, client, names)
	})
}

// importAgent is the user agent that the command import sends to servers.
const importAgent = "crowfoot-import"

// runFiles imports files into the table that --table names.
func (s *importSettings) runFiles(ctx context.Context, client *spanner.Client, names []string) error {
	created, err := s.created(ctx)
	if err != nil {
		return err
	}
	name := s.table
	table, missing := s.describe(ctx, client, name)
	switch {
	case missing == nil:
		name = table.Name
	case !s.create:
		return missing
	}
	state, err := s.openState(name)
	if err != nil {
		return err
	}
	if err = s.runTable(ctx, client, table, state, importSource{names: names, reading: s.reading(), created: created}); err != nil {
		return errors.Join(err, state.Close())
	}
	return state.Finish()
}

// importSource says which files are imported into one table, and how they are read.
type importSource struct {
	names   []string
	reading file.Options          // options for reading the files
	created time.Time             // when the database was created; zero if unknown
	folder  *transfer.FolderTable // the table to which the files belong in an exported folder; nil if no folder is imported
}

// runTable imports files into a table. A nil table means that --create was given and the table does not exist. Then
// runTable first creates it.
func (s *importSettings) runTable(ctx context.Context, client *spanner.Client, table *bulk.TableInfo, state *transfer.ImportState, from importSource) (err error) {
	switch {
	case table != nil && s.create && !state.Creates():
		return fmt.Errorf("table %s is there already: leave out --create", s.table)
	case table == nil:
		if table, err = s.createTable(ctx, client, state, from.names); err != nil {
			return err
		}
	}
	_, err = s.load(ctx, client, table, state, from)
	return err
}

// openState opens the file with the state of imports into a table.
func (s *importSettings) openState(table string) (*transfer.ImportState, error) {
	target := transfer.ImportTarget{Server: s.server.server, Database: s.database, Table: table}
	name := s.state
	if name == "" {
		dir, err := stateDir()
		if err != nil {
			return nil, fmt.Errorf("there is no directory for the state of imports: %w (name a file with --state)", err)
		}
		sum := sha256.Sum256([]byte(target.String()))
		name = filepath.Join(dir, fmt.Sprintf("%.100s-%x.jsonl", target.Table, sum[:8]))
	}
	state, err := transfer.OpenImportState(name, target)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		err = fmt.Errorf("the state of the import cannot be kept: %w (name another file with --state)", err)
	}
	return state, err
}

// stateDir returns the directory for the state files of imports, according to the XDG Base Directory Specification:
// https://specifications.freedesktop.org/basedir-spec/latest.
func stateDir() (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "crowfoot", "imports"), nil
}

// rejectsPath returns the name of the file for rows that cannot be written to a table. It contains the name of the
// database, so that imports into several databases can run in one folder.
func (s *importSettings) rejectsPath(table string) string {
	return cmp.Or(s.rejects, path.Base(s.database)+"."+table+".rejects.jsonl")
}

// plan finds out, from the state, which rows of the files are already in the table.
func (s *importSettings) plan(ctx context.Context, client *spanner.Client, table *bulk.TableInfo, state *transfer.ImportState, from importSource) (plan transfer.ImportPlan, err error) {
	if state.HasRows() { // someone may have deleted the imported rows from the table
		switch has, err := hasRows(ctx, client, table); {
		case err != nil:
			return plan, err
		case !has:
			if err := state.Forget(); err != nil {
				return plan, err
			}
		}
	}
	if plan, err = state.Begin(s.way(table, from), from.names, from.reading); err != nil || plan.Again == "" {
		return plan, err
	}
	s.screen.clear()
	if plan.Rows > 0 {
		fmt.Printf("%s: the %d rows that are in and have not changed are not sent again\n", plan.Again, plan.Rows)
	} else {
		fmt.Printf("%s: all rows are sent again\n", plan.Again)
	}
	return plan, nil
}

// load imports files into a table and prints the result. It returns how many rows of the files are now in the table.
func (s *importSettings) load(ctx context.Context, client *spanner.Client, table *bulk.TableInfo, state *transfer.ImportState, from importSource) (rows int64, err error) {
	rejects, err := transfer.OpenRejects(s.rejectsPath(table.Name), s.maxRejects)
	if err != nil {
		return 0, err
	}
	defer rejects.Close()
	plan, err := s.plan(ctx, client, table, state, from)
	if err != nil {
		return 0, err
	}
	if !plan.Rejects {
		if err := rejects.Forget(); err != nil {
			return 0, err
		}
	}
	schema, err := table.Schema(arrowtype.Text)
	if err != nil {
		return 0, err
	}
	reading := from.reading
	reading.Schema, reading.Generated, reading.Reject, reading.Done = schema, generated(table), rejects.Add, plan.Done
	source, err := file.Open(from.names, reading)
	if err != nil {
		return 0, err
	}
	defer source.Close()
	o := transfer.ImportOptions{Client: client, Table: table, Source: source, Mode: transfer.Mode(s.mode), Parallel: s.parallel, Rejects: rejects, State: state}
	if !s.mutations {
		flightConn, err := s.connection.dialFlight()
		if err != nil {
			return 0, err
		}
		if flightConn != nil {
			defer flightConn.Close()
			o.Flight = flightConn
		}
	}
	o.Progress = &transfer.Progress{}
	s.screen.follow("imported", o.Progress)
	begin := time.Now()
	result, err := transfer.Import(ctx, o)
	s.screen.clear()
	leftOut := ""
	if n := rejects.Count(); n > 0 {
		leftOut = fmt.Sprintf("left out %d bad rows: %s", n, s.rejectsPath(table.Name))
	}
	if err != nil {
		if !result.Begun {
			return 0, s.incomplete(ctx, err, "nothing was imported into "+table.Name)
		}
		what := fmt.Sprintf("the import into %s is not complete: %d rows are in", table.Name, result.Rows+plan.Rows)
		if leftOut != "" {
			what += "; " + leftOut
		}
		corrected := ", also when the file was corrected"
		if from.folder != nil { // the user cannot correct the files of a folder, because they have checksums
			corrected = ""
		}
		return 0, s.incomplete(ctx, err, what+"\nthe same command goes on"+corrected+": it does not send again what is in and has not changed ("+state.Path()+" remembers that)")
	}
	way := "by mutations"
	if result.Flight {
		way = "over Arrow Flight SQL"
	}
	fmt.Printf("imported %s into %s %s", moved(result.Rows, time.Since(begin)), table.Name, way)
	if plan.Rows > 0 {
		fmt.Printf(", beside %d that were in before", plan.Rows)
	}
	fmt.Println()
	if leftOut != "" {
		fmt.Println(leftOut)
	}
	rows = result.Rows + plan.Rows
	if read := rows + rejects.Count(); from.folder != nil && !plan.Bad && from.folder.Rows >= 0 && read != from.folder.Rows {
		return rows, fmt.Errorf("the manifest says that table %s has %d rows, and its files have %d", table.Name, from.folder.Rows, read)
	}
	return rows, nil
}

// generated returns the names of the columns that the database computes.
func generated(t *bulk.TableInfo) (names []string) {
	for _, c := range t.Columns {
		if c.Generated {
			names = append(names, c.Name)
		}
	}
	return names
}

// moved formats the number of rows that were transferred, and the rows per second.
func moved(rows int64, took time.Duration) string {
	return fmt.Sprintf("%d rows in %.1f s (%.0f/s)", rows, took.Seconds(), float64(rows)/max(took.Seconds(), 1e-9))
}

// reading returns the options for reading the files.
func (s *importSettings) reading() file.Options {
	o := file.Options{Format: file.Format(s.format), Columns: s.columns, Text: file.TextOptions{NoHeader: s.noHeader, NoQuotes: s.noQuotes, Null: s.null, Encoding: s.encoding}}
	switch {
	case s.delimiter == "tab":
		o.Text.Delimiter = '\t'
	case s.delimiter != "":
		o.Text.Delimiter = s.delimiter[0]
	}
	return o
}

// way returns everything that decides which rows are written, except the content of the files. If the result differs
// from the result for the previous import, all rows are sent again.
func (s *importSettings) way(table *bulk.TableInfo, from importSource) transfer.ImportWay {
	return transfer.ImportWay{Created: from.created, Definition: table.Definition(), Mode: transfer.Mode(s.mode),
		Reading: []string{string(from.reading.Format), strings.Join(from.reading.Columns, ","), s.delimiter, s.null, s.encoding, fmt.Sprint(s.noHeader, s.noQuotes)}}
}

// hasRows reports whether a table has at least one row.
func hasRows(ctx context.Context, client *spanner.Client, table *bulk.TableInfo) (has bool, err error) {
	err = client.Single().ReadWithOptions(ctx, table.Name, spanner.AllKeys(), []string{table.Columns[0].Name}, &spanner.ReadOptions{Limit: 1}).Do(
		func(*spanner.Row) error { has = true; return nil })
	return has, err
}
