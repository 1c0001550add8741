package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

func newCheckpoint() *cobra.Command {
	var to, address string
	c := &cobra.Command{
		Use:   "checkpoint --to DIR [flags]",
		Short: "Have a running server copy its data directory",
		Long: `Asks the server that runs on this machine for a copy of its data directory, as it is at one moment, while it goes on serving. The copy
is complete and on disk when the command ends, and "crowfoot start --data DIR" starts a server on it. On one file system it takes next to no
space at first: files that do not change any more are hard links.

DIR must not exist, and the directory that it is made in must. It belongs to the server's user, who alone can read it. If the command is ended, what was
copied is removed. The exit status is 1 if no copy was made, and also if damage is known of what was copied.`,
		Example:               "  crowfoot checkpoint --to /backup/monday",
		DisableFlagsInUseLine: true,
		Args:                  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if to == "" {
				return usageErrorf("checkpoint needs --to DIR")
			}
			whole, err := filepath.Abs(to)
			if err != nil {
				return err
			}
			if err := askForCheckpoint(c.Context(), address, whole); err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), "crowfoot: the copy is in", whole)
			return nil
		},
	}
	c.Flags().StringVar(&to, "to", "", "`DIR` to make")
	c.Flags().StringVar(&address, "http", "127.0.0.1:9020", "`HOST:PORT` of the server's REST API")
	nameVariables(c.Flags(), "CROWFOOT")
	cobra.CheckErr(c.MarkFlagDirname("to"))
	return c
}

// askForCheckpoint asks the server for a checkpoint and returns when it is complete.
func askForCheckpoint(ctx context.Context, address, to string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/checkpoint?to="+url.QueryEscape(to), nil)
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(request)
	if errors.As(err, new(*net.OpError)) {
		return fmt.Errorf("no server answers at %s, which --http names: %w", address, err)
	}
	if err != nil {
		return fmt.Errorf("what answers at %s is not the REST API of a Crowfoot server, whose address --http names: %w", address, err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, 10_000))
	if err != nil {
		return err
	}
	says := strings.TrimSpace(string(text))
	switch {
	case reply.StatusCode == http.StatusOK && says == to:
		return nil
	case reply.StatusCode == http.StatusOK || says == "":
		return fmt.Errorf("what answers at %s is no Crowfoot server, whose address --http names: it answers %s to a request for a copy", address, reply.Status)
	}
	return fmt.Errorf("the server answers %s: %s", reply.Status, says)
}
