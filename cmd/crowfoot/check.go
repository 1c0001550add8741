package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/crowfoot-db/crowfoot"
)

// shownFindings is how many findings of each kind are printed. Further findings are only counted.
const shownFindings = 10

func newCheck() *cobra.Command {
	var data string
	c := &cobra.Command{
		Use:   "check [flags]",
		Short: "Look for damage in a data directory",
		Long: `Reads everything in a data directory that no server has open, and changes nothing in it: the checksums of all files, and
the rows of all tables, which are compared with the schema, indexes, parent rows, foreign keys, CHECK constraints and generated columns.

It prints what is wrong. The exit status is 0 if nothing is, 65 if something is, 64 if the command line is wrong, and 1 if the data could not be read.`,
		Example:               "  crowfoot check --data ./crowfoot-data",
		DisableFlagsInUseLine: true,
		Args:                  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			// Nothing is logged, because the findings include the messages of the storage engine.
			slog.SetDefault(slog.New(slog.DiscardHandler))
			r := checkReport{out: c.OutOrStdout(), progress: progressOf(os.Stderr)}
			if err := crowfoot.Check(c.Context(), data, r.begin, r.found); err != nil {
				return err
			}
			return r.end()
		},
	}
	c.Flags().StringVar(&data, "data", "./crowfoot-data", "`DIR` of the data")
	nameVariables(c.Flags(), "CROWFOOT")
	cobra.CheckErr(c.MarkFlagDirname("data"))
	return c
}

// progressOf returns the writer for progress: f if it is a terminal, and otherwise one that discards everything.
func progressOf(f *os.File) io.Writer {
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		return f
	}
	return io.Discard
}

// checkReport prints the findings of a check.
type checkReport struct {
	out, progress io.Writer
	kinds         []string // kinds of findings, in the order of their first occurrence
	counts        map[string]int
	total         int
}

// begin shows, as a status line, what is being read.
func (r *checkReport) begin(what string) { fmt.Fprintf(r.progress, "\r\x1b[K%s", what) }

func (r *checkReport) found(f crowfoot.Finding) {
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	if !slices.Contains(r.kinds, f.Kind) {
		r.kinds = append(r.kinds, f.Kind)
	}
	r.total++
	if r.counts[f.Kind]++; r.counts[f.Kind] <= shownFindings {
		fmt.Fprint(r.progress, "\r\x1b[K")
		fmt.Fprintf(r.out, "%s: %s: %s\n", f.Kind, f.Where, f.Detail)
	}
}

// end prints the number of findings of each kind. It returns an error if there are findings.
func (r *checkReport) end() error {
	fmt.Fprint(r.progress, "\r\x1b[K")
	if r.total == 0 {
		fmt.Fprintln(r.out, "crowfoot: the data is sound")
		return nil
	}
	for _, kind := range r.kinds {
		fmt.Fprintf(r.out, "%d of kind %q\n", r.counts[kind], kind)
	}
	return statusError{errors.New("the data is damaged: go back to a copy that is sound, or start a server on it to read what is not damaged"), exitDamaged}
}
