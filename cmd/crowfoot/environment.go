package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// variable is the annotation of a flag that names its environment variable.
const variable = "variable"

// nameVariables gives each flag a variable, and says so in its description: with the prefix CROWFOOT, --log-level is
// CROWFOOT_LOG_LEVEL. A variable that is empty counts as not set.
func nameVariables(flags *pflag.FlagSet, prefix string) {
	flags.VisitAll(func(f *pflag.Flag) {
		name := prefix + "_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		f.Annotations = map[string][]string{variable: {name}}
		f.Usage = fmt.Sprintf("%s [%s]", f.Usage, name)
	})
}

func variableOf(f *pflag.Flag) string {
	if names := f.Annotations[variable]; len(names) > 0 {
		return names[0]
	}
	return ""
}

// readVariables sets the flags that the command line leaves out.
func readVariables(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if err != nil || originOf(f) != byVariable {
			return
		}
		if wrong := f.Value.Set(os.Getenv(variableOf(f))); wrong != nil {
			err = wrongValue(f, variableOf(f), os.Getenv(variableOf(f)), wrong)
		}
	})
	return err
}

// origin is where the value of a flag comes from; the larger wins where two flags contradict each other.
type origin int

const (
	byDefault origin = iota
	byVariable
	byFlag
)

func originOf(f *pflag.Flag) origin {
	switch {
	case f.Changed:
		return byFlag
	case variableOf(f) != "" && os.Getenv(variableOf(f)) != "":
		return byVariable
	}
	return byDefault
}

// written is how the user wrote a flag: --data, or CROWFOOT_DATA.
func written(f *pflag.Flag) string {
	if originOf(f) == byVariable {
		return variableOf(f)
	}
	return "--" + f.Name
}

// forgetVariables removes the variables of flags from the environment, so that programs started by this one do not read them.
func forgetVariables(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) { os.Unsetenv(variableOf(f)) })
}
