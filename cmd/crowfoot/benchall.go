//go:build !nobench

package main

import (
	"github.com/spf13/cobra"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/studies"
)

func newBenchAll() *cobra.Command {
	s := bench.Defaults()
	s.Clients = []int{1, 8} // one client, as in the study that --study repeats; then eight at once
	c := &cobra.Command{Use: "all", Short: "Both access and writes"}
	studyFlag(c.Flags(), &s)
	accessFlags(c.Flags(), &s)
	writesFlags(c.Flags(), &s)
	return benchCommand(c, &s, these(studies.Access(), studies.Writes()))
}
