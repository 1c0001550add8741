package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/crowfoot-db/crowfoot/version"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show version and commit",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), versionLine())
			return err
		},
	}
}

// versionLine returns the version of this program in one line: crowfoot v1.2.3, commit 0123456789ab, go1.26.0,
// linux/amd64.
func versionLine() string {
	v := version.Get()
	commit := v.Commit
	if v.Modified {
		commit += " with changes"
	}
	return fmt.Sprintf("crowfoot %s, commit %s, %s, %s/%s", v.Version, commit, v.Go, runtime.GOOS, runtime.GOARCH)
}
