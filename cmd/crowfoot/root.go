package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageTemplate is the template for the part of every command's help that follows the description.
const usageTemplate = `Usage:
  {{.UseLine}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}

"{{.Root.Name}} help{{if .HasParent}} {{.Name}}{{end}} COMMAND" tells more of each.{{else if .HasAvailableFlags}}

Flags, each with the environment variable that sets it where the flag is not given:
{{.Flags.FlagUsages | trimTrailingWhitespaces}}{{end}}
`

func newRoot() *cobra.Command {
	root := group(&cobra.Command{
		Use:           "crowfoot COMMAND",
		Short:         "A database server that speaks Cloud Spanner's API",
		Long:          "Crowfoot is a database server that speaks Cloud Spanner's API.",
		Version:       versionLine(),
		SilenceErrors: true, // because main prints errors
		SilenceUsage:  true,
	})
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetUsageTemplate(usageTemplate)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if wrong := (*pflag.InvalidValueError)(nil); errors.As(err, &wrong) {
			return wrongValue(wrong.GetFlag(), "--"+wrong.GetFlag().Name, wrong.GetValue(), wrong.Unwrap())
		}
		return usageErrorf("%w (%s --help lists the flags)", err, c.CommandPath())
	})
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return readVariables(c.Flags()) }
	root.SetHelpCommand(newHelp())
	root.AddCommand(newStart(), newCheck(), newCheckpoint(), newBench(), newWatch(), newImport(), newExport(), newVersion(), newMan())
	return root
}

// checkHelp returns an error if the command line asks for help about a command that does not exist. Without this check,
// cobra would print the help of the parent command.
func checkHelp(root *cobra.Command, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "__complete") || !slices.ContainsFunc(args, func(a string) bool { return a == "-h" || a == "--help" }) {
		return nil
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	found, rest, err := root.Find(args)
	if err != nil || !found.HasSubCommands() || strings.HasPrefix(rest[0], "-") {
		return err
	}
	return unknownCommand(found, rest[0])
}

// group sets up the command c, which only has subcommands. If the user runs c without a subcommand, it prints its help
// and fails.
func group(c *cobra.Command) *cobra.Command {
	c.DisableFlagsInUseLine = true
	c.SuggestionsMinimumDistance = 2
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(c, args[0])
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		c.SetOut(c.ErrOrStderr())
		if err := c.Help(); err != nil {
			return err
		}
		return usageErrorf("%s needs a command", c.CommandPath())
	}
	return c
}

func unknownCommand(c *cobra.Command, name string) error {
	meant := ""
	if like := c.SuggestionsFor(name); len(like) > 0 {
		meant = fmt.Sprintf("; did you mean %s?", strings.Join(like, " or "))
	}
	return usageErrorf("unknown command %q%s (%s --help lists the commands)", below(c)+name, meant, c.CommandPath())
}

// noArguments returns an error if there are arguments after the flags.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageErrorf("%stakes no argument %q", below(c), strings.Join(args, " "))
	}
	return nil
}

// below returns the path from the root to a command, with a space after each name: "bench own ".
func below(c *cobra.Command) string {
	if !c.HasParent() {
		return ""
	}
	return below(c.Parent()) + c.Name() + " "
}

var singleDash = regexp.MustCompile(`^-[a-z][a-z-]+(=|$)`)

// doubleDashes adds a second dash to long flags that have only one. So users can write one dash or two, as in programs
// that use the flag package of Go's standard library. Flags of one letter such as -w 50 are not changed. They cannot be
// written together, as in -wm.
func doubleDashes(args []string) []string {
	changed := make([]string, len(args))
	for i, arg := range args {
		if singleDash.MatchString(arg) {
			arg = "-" + arg
		}
		changed[i] = arg
	}
	return changed
}
