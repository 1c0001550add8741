package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk/file"
	"github.com/crowfoot-db/crowfoot/bulk/transfer"
)

// exportSettings are the values of the flags of export.
type exportSettings struct {
	connection
	to, format, query, timestamps, at string
	parallel                          int
	dataBoost                         bool
}

func newExport() *cobra.Command {
	var s exportSettings
	c := &cobra.Command{
		Use:   "export [TABLE...] --to DIR [flags]",
		Short: "Write tables into files",
		Long: `Writes TABLEs, or all tables, or the rows of --query, into files of a directory, all as they are at one timestamp: CSV, TPC-H's .tbl, JSON lines, Parquet, Arrow,
or Avro.

Each table is divided into partitions, which are read at once, each into a file TABLE-00000-of-00004.csv. A file appears under its name when it is complete, and manifest.json,
which has the timestamp, the schema, and of each file the number of rows and the checksum, appears when all are. If the export is interrupted, by a kill, too, the same command
goes on with the files that are missing, at the same timestamp, as long as the database keeps its rows (its version retention period). crowfoot import DIR --create makes a database of the directory.

From a Crowfoot server the rows come as columns, over Arrow Flight SQL, from others over Spanner's API. The database may be on any server: the one at --endpoint or SPANNER_EMULATOR_HOST (plain text: Crowfoot, Google's emulator), or on Cloud Spanner,
with the credentials of your environment.`,
		Example: `  crowfoot export customer --to customers --format csv --database projects/p/instances/i/databases/d --endpoint 127.0.0.1:9010
  crowfoot export --to backup --format parquet --database projects/p/instances/i/databases/d`,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE:                  func(c *cobra.Command, tables []string) error { return s.run(c.Context(), tables) },
	}
	s.register(c.Flags())
	nameVariables(c.Flags(), "CROWFOOT_EXPORT")
	cobra.CheckErr(c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(exportFormats(), cobra.ShellCompDirectiveNoFileComp)))
	cobra.CheckErr(c.RegisterFlagCompletionFunc("timestamps", cobra.FixedCompletions(timestampNames, cobra.ShellCompDirectiveNoFileComp)))
	return c
}

// exportFormats returns the values of --format.
func exportFormats() []string { return append(formatNames(), string(transfer.SpannerExport)) }

// timestampNames are the values of --timestamps, indexed by arrowtype's constants.
var timestampNames = []string{arrowtype.Nanoseconds: "ns", arrowtype.Microseconds: "us", arrowtype.Text: "text"}

func (s *exportSettings) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	s.connection.register(flags)
	flags.StringVar(&s.to, "to", "", "`DIR` that gets the files; it is made, or empty, or has an export that was interrupted")
	flags.StringVar(&s.format, "format", string(file.CSV), "`FORMAT` of the files: "+strings.Join(exportFormats(), ", ")+" (the layout of Cloud Spanner's own exports: Avro with the definitions of tables)")
	flags.StringVar(&s.query, "query", "", "`SQL` whose rows are written, in place of tables; it must be one that can be partitioned")
	flags.StringVar(&s.timestamps, "timestamps", "", "`HOW` timestamps are written: ns (from 1677 to 2262), us (all, without what is below a microsecond), or text (all); ns in Parquet and Arrow and text in other formats if it is left out")
	flags.StringVar(&s.at, "at", "", "`TIMESTAMP` at which everything is read, such as 2026-11-22T10:00:00Z; now if it is left out")
	flags.BoolVar(&s.dataBoost, "data-boost", false, "read with Spanner Data Boost")
	flags.IntVar(&s.parallel, "parallel", 2, "how many files are written at once")
}

// options checks the flags and returns the options for an export of the given tables.
func (s *exportSettings) options(tables []string) (o transfer.ExportOptions, err error) {
	o = transfer.ExportOptions{Database: s.database, Tables: tables, Query: s.query, Dir: s.to, Format: file.Format(s.format), DataBoost: s.dataBoost,
		Parallel: s.parallel, Bound: spanner.StrongRead(), Progress: &transfer.Progress{}}
	switch {
	case s.to == "":
		return o, usageErrorf("export needs --to DIR")
	case !slices.Contains(exportFormats(), s.format):
		return o, usageErrorf("--format is %q: want one of %s", s.format, strings.Join(exportFormats(), ", "))
	case s.timestamps != "" && !slices.Contains(timestampNames, s.timestamps):
		return o, usageErrorf("--timestamps is %q: want one of %s", s.timestamps, strings.Join(timestampNames, ", "))
	case s.query != "" && len(tables) > 0:
		return o, usageErrorf("--query and TABLEs contradict each other")
	case s.parallel < 1:
		return o, usageErrorf("--parallel is %d: want at least 1", s.parallel)
	}
	if s.at != "" {
		at, err := time.Parse(time.RFC3339Nano, s.at)
		if err != nil {
			return o, usageErrorf("--at is %q: want a timestamp such as 2026-11-22T10:00:00Z", s.at)
		}
		o.Bound = spanner.ReadTimestamp(at)
	}
	o.Timestamps = arrowtype.Text
	if o.Format == file.Parquet || o.Format == file.Arrow {
		o.Timestamps = arrowtype.Nanoseconds
	}
	if s.timestamps != "" {
		o.Timestamps = arrowtype.Timestamps(slices.Index(timestampNames, s.timestamps))
	}
	if o.Format == transfer.SpannerExport && (s.query != "" || s.timestamps == "ns") {
		return o, usageErrorf("--format spanner has neither --query nor --timestamps ns")
	}
	return o, s.connection.check("export")
}

// run exports the given tables, or all tables if none are given.
func (s *exportSettings) run(ctx context.Context, tables []string) error {
	o, err := s.options(tables)
	if err != nil {
		return err
	}
	return s.with(ctx, "crowfoot-export", func(ctx context.Context, client *spanner.Client) error {
		o.Client = client
		flightConn, err := s.dialFlight()
		if err != nil {
			return err
		}
		if flightConn != nil {
			defer flightConn.Close()
			o.Flight = flightConn
		}
		if o.DDL, o.ProtoDescriptors, err = s.databaseDDL(ctx); err != nil {
			return err
		}
		return s.write(ctx, o)
	})
}

// write writes the files of the export and prints the result.
func (s *exportSettings) write(ctx context.Context, o transfer.ExportOptions) error {
	s.screen.follow("exported", o.Progress)
	begin := time.Now()
	result, err := transfer.Export(ctx, o)
	s.screen.clear()
	if err != nil {
		what := "nothing was exported"
		if result.Files > 0 {
			what = fmt.Sprintf("the export into %s is not complete: %d of %d files are\nthe same command goes on with the others, at the same timestamp", s.to, result.Complete, result.Files)
		}
		return s.incomplete(ctx, err, what)
	}
	rows := int64(0)
	for _, t := range result.Manifest.Tables {
		rows += t.Rows
	}
	fmt.Printf("exported %s from %d tables at %s into %s", moved(o.Progress.Rows(), time.Since(begin)), len(result.Manifest.Tables),
		result.Manifest.Timestamp.Format(time.RFC3339Nano), s.to)
	if result.Resumed > 0 {
		fmt.Printf(", which has %d rows with the %d files that were complete before", rows, result.Resumed)
	}
	fmt.Println()
	if n := len(result.Beside); n > 0 {
		where := "crowfoot import takes it from manifest.json"
		if len(o.Tables) > 0 {
			where = "it is left out"
		}
		fmt.Printf("the layout of Cloud Spanner's exports has no place for %s: %s\n", some(result.Beside, 5), where)
	}
	return nil
}

// some formats a list of names, such as "A, B and 3 more". The text has the first names, up to the given number, and
// the number of the others.
func some(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
