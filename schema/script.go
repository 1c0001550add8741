package schema

import (
	"strings"

	"github.com/cloudspannerecosystem/memefish"

	"github.com/crowfoot-db/crowfoot/fault"
)

// SplitScript cuts a file of DDL into its statements, which end in semicolons
// (the last one need not). Comments alone are no statement.
func SplitScript(text string) ([]string, error) {
	raw, err := memefish.SplitRawStatements("", text)
	if err != nil {
		return nil, fault.DDLSyntax(text, err.Error())
	}
	var list []string
	for _, s := range raw {
		if statement := strings.TrimSpace(s.Statement); statement != "" {
			list = append(list, statement)
		}
	}
	return list, nil
}
