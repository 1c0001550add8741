//go:build !nobench

package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/own"
)

func newBenchOwn() *cobra.Command {
	s := bench.Defaults()
	var files own.Files
	c := &cobra.Command{
		Use:   "own",
		Short: "Your own ways, from files: --sql, --read, --write",
		Long:  "Runs your own workload.\n\n" + own.FileHelp,
	}
	ownFlags(c.Flags(), &files)
	return benchCommand(c, &s, func() ([]harness.Benchmark, error) {
		if f := c.Flags().Lookup("rows"); originOf(f) == byFlag && files.Load == "" {
			return nil, usageErrorf("--rows has no effect without --load: so often the mutations of that file are made")
		}
		b, err := own.New(files)
		return []harness.Benchmark{b}, err
	})
}

func ownFlags(flags *pflag.FlagSet, files *own.Files) {
	for _, k := range []struct {
		kind  own.Kind
		usage string
	}{
		{own.SQLFile, "`FILE` of SQL, with parameters declared in comments: -- @id INT64 1..1000 (repeatable)"},
		{own.ReadFile, "`FILE` of a read: table T, columns A, B, keys @ids, range @a to @b (repeatable)"},
		{own.WriteFile, "`FILE` of mutations: insert T Id = @id, Name = 'x' (repeatable)"},
	} {
		flags.Func(string(k.kind), k.usage, func(name string) error {
			files.Paths = append(files.Paths, own.File{Kind: k.kind, Name: name})
			return nil
		})
	}
	flags.StringVar(&files.DDL, "ddl", "", "`FILE` of statements that make the tables")
	flags.StringVar(&files.Load, "load", "", "`FILE` of mutations to fill the tables with, once for each of --rows")
}
