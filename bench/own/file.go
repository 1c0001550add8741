package own

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// file is a workload file. It describes one operation and its parameters. There are three kinds of files, each with a
// flag of its own. All kinds have these lines:
//
//   - A line that begins with -- or # is a comment. In a file of SQL, however, declarations follow --.
//   - A line that begins with @ declares a parameter. The comment of the struct "parameter" has the syntax.
//   - "repeat N" makes the operation N times as large: N statements or mutations of one transaction, N keys or
//     ranges of one read. Each repetition draws new values of its parameters.
//
// The comments of sqlFile, readFile and writeFile describe the lines that only one kind of files has.
type file struct {
	name       string
	parameters []parameter
	repeat     int
	body       []bodyLine
}

// bodyLine is a line that is neither a comment nor a declaration. sqlFile, readFile or writeFile parses it.
type bodyLine struct {
	number int
	text   string
}

// maxRepeat is the largest N of "repeat N". It keeps one operation within Spanner's limits for a request.
const maxRepeat = 10_000

// openFile reads a workload file. words lists the directives that only this kind of file has, such as batch. If a
// comment line consists of such a directive, openFile keeps the directive as a body line.
func openFile(path string, words ...string) (*file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &file{name: filepath.Base(path), repeat: 1}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if err := f.line(number, strings.TrimRight(line, "\r\n"), words); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
	}
	if len(f.body) == 0 {
		return nil, fmt.Errorf("%s: there is nothing to do in it", path)
	}
	return f, nil
}

func (f *file) line(number int, line string, words []string) error {
	text := strings.TrimSpace(line)
	if text == "" {
		return nil
	}
	inner := strings.TrimLeft(text, "-# ")
	comment := strings.HasPrefix(text, "--") || strings.HasPrefix(text, "#")
	fields := strings.Fields(inner)
	switch {
	case comment && len(fields) == 0:
		return nil
	case strings.HasPrefix(inner, "@") && (comment || !slices.Contains(words, onlyBehindComments)):
		return f.declare(inner)
	case len(fields) == 2 && fields[0] == "repeat":
		return f.setRepeat(fields[1])
	case comment && slices.Contains(words, fields[0]) && len(fields) == 1:
		f.body = append(f.body, bodyLine{number, fields[0]})
	case comment:
	default:
		f.body = append(f.body, bodyLine{number, line})
	}
	return nil
}

// onlyBehindComments is one of the words that openFile takes. It says that a parameter can be declared only in a
// comment, because a line of SQL may itself begin with @.
const onlyBehindComments = "--"

func (f *file) declare(text string) error {
	p, err := parseParameter(text)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(f.parameters, func(q parameter) bool { return q.name == p.name }) {
		return fmt.Errorf("parameter @%s is declared twice", p.name)
	}
	f.parameters = append(f.parameters, p)
	return nil
}

func (f *file) setRepeat(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxRepeat {
		return fmt.Errorf("repeat is from 1 to %d, not %q", maxRepeat, text)
	}
	f.repeat = n
	return nil
}

// argument is a value in a read or write file: a parameter or a literal.
type argument struct {
	parameter string // "" for a literal
	literal   any
}

func (a argument) value(drawn map[string]any) any {
	if a.parameter != "" {
		return drawn[a.parameter]
	}
	return a.literal
}

// argument parses a value: @name, 'text', a number, true, false or null.
func (f *file) argument(text string) (a argument, err error) {
	text = strings.TrimSpace(text)
	if name, ok := strings.CutPrefix(text, "@"); ok {
		if !slices.ContainsFunc(f.parameters, func(p parameter) bool { return p.name == name }) {
			return a, fmt.Errorf("parameter @%s is not declared", name)
		}
		return argument{parameter: name}, nil
	}
	if len(text) >= 2 && text[0] == '\'' && text[len(text)-1] == '\'' {
		return argument{literal: text[1 : len(text)-1]}, nil
	}
	switch strings.ToLower(text) {
	case "true", "false":
		return argument{literal: strings.EqualFold(text, "true")}, nil
	case "null":
		return a, nil
	}
	if n, err := parseInteger(text); err == nil {
		return argument{literal: n}, nil
	}
	if n, err := parseFloat(text); err == nil {
		return argument{literal: n}, nil
	}
	return a, fmt.Errorf("a value is @parameter, 'text', a number, true, false or null, not %q", text)
}

// arguments parses a list of values separated by commas. A comma inside quotes is part of a text.
func (f *file) arguments(text string) (list []argument, err error) {
	for _, part := range splitOutsideQuotes(text) {
		a, err := f.argument(part)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

// splitOutsideQuotes splits the text at commas that are outside quotes.
func splitOutsideQuotes(text string) (parts []string) {
	quoted := false
	last := 0
	for i, c := range text {
		switch {
		case c == '\'':
			quoted = !quoted
		case c == ',' && !quoted:
			parts = append(parts, text[last:i])
			last = i + 1
		}
	}
	return append(parts, text[last:])
}
