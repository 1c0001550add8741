package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// variable is the key of an annotation that flags have. The annotation's value is the name of the flag's environment
// variable.
const variable = "variable"

// nameVariables gives each flag an environment variable, and adds the variable's name to the flag's description. With
// the prefix CROWFOOT, --log-level gets CROWFOOT_LOG_LEVEL. An empty variable counts as not set.
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

// readVariables gives the values of environment variables to those flags that the command line does not set.
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

// origin says where a flag's value comes from. If two flags contradict each other, the one with the greater origin
// wins.
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

// written returns the name by which the user has set a flag: --data, or CROWFOOT_DATA.
func written(f *pflag.Flag) string {
	if originOf(f) == byVariable {
		return variableOf(f)
	}
	return "--" + f.Name
}
