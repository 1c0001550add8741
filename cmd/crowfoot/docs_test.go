package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// pages lists the documents whose blocks TestDocuments runs. For each document it has the languages of its blocks other
// than shell, SQL and Go. TestDocuments runs the documents that have no such languages if the environment variable
// CROWFOOT_TEST_DOCS is not set, and only the other documents if it is set. The script interop/docs installs what the
// languages need, and sets the variable to the class path of the Java programs. TestPages fails if a document is
// missing here.
var pages = map[string][]string{
	"README.md":                     nil,
	"docs/benchmarks.md":            nil,
	"docs/bulk.md":                  nil,
	"docs/clients.md":               {"java", "js", "python"},
	"docs/cloud-spanner.md":         nil,
	"docs/columnar.md":              nil,
	"docs/flight.md":                {"java", "python"},
	"docs/from-emulator.md":         nil,
	"docs/from-postgresql-mysql.md": nil,
	"docs/guide.md":                 {"python"},
	"docs/observe.md":               nil,
	"docs/operate.md":               nil,
	"docs/sql.md":                   {"python"},
	"docs/watch.md":                 nil,
}

// notRun lists the languages of blocks that are not run, because they are configuration or data.
var notRun = []string{"ini", "json", "yaml", "xml"}

// block is a fenced block of a document. The words after its fence say how it is run.
type block struct {
	line     int    // number of the opening fence's line in the document, from 1
	language string // sh, sql, a key of the map programs, or text: the expected output of the previous block
	server   bool   // "sh server": the block starts the server for the blocks that follow
	install  bool   // "sh install": the block installs a library; skipped for Go, because this checkout has the libraries
	text     string
}

// TestPages checks that the map pages contains every document that has blocks to run, and that every block has a
// language that is run, compared or skipped.
func TestPages(t *testing.T) {
	root := filepath.Join("..", "..")
	found := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			name, _ = filepath.Rel(root, name)
			found = append(found, filepath.ToSlash(name))
		}
	}
	for _, name := range found {
		blocks := readPage(t, name)
		needs, listed := pages[name]
		for _, b := range blocks {
			switch {
			case slices.Contains(notRun, b.language):
			case !listed:
				t.Errorf("%s:%d: the page is not in the list of those that are run", name, b.line)
			case b.language == "text", b.language == "sh", b.language == "sql", b.language == "go":
			case programs[b.language] != nil:
				if !slices.Contains(needs, b.language) {
					t.Errorf("%s:%d: the list does not say that the page needs %s", name, b.line, b.language)
				}
			default:
				t.Errorf("%s:%d: a block of language %q is neither run nor left alone", name, b.line, b.language)
			}
		}
	}
	for name := range pages {
		if !slices.Contains(found, name) {
			t.Errorf("the list has %s, which is not there", name)
		}
	}
}

// TestDocuments follows each document in an empty folder: it runs the blocks in their order, unchanged except for the
// ports, and compares their output with the text blocks that follow them.
func TestDocuments(t *testing.T) {
	interop := os.Getenv("CROWFOOT_TEST_DOCS") != ""
	for _, tool := range []string{"bash", "curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil && !interop {
			t.Skip(err)
		}
	}
	for name, needs := range pages {
		if interop != (len(needs) > 0) {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".md"), func(t *testing.T) {
			t.Parallel()
			p := openPage(t, name)
			for i, b := range p.blocks {
				if b.language == "text" || slices.Contains(notRun, b.language) || b.install && strings.HasPrefix(b.text, "go ") {
					continue
				}
				printed := p.run(b)
				if i+1 < len(p.blocks) && p.blocks[i+1].language == "text" {
					if want := p.blocks[i+1]; !matches(want.text, printed) {
						t.Errorf("%s:%d: it prints\n%s\nand not\n%s", name, want.line, printed, want.text)
					}
				}
			}
		})
	}
}

var fence = regexp.MustCompile("^( *)```(.*)$")

// readPage returns the fenced blocks of a document.
func readPage(t *testing.T, name string) (blocks []block) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	var open *block
	indent := ""
	line := 0
	for l := range strings.Lines(string(text)) {
		line++
		m := fence.FindStringSubmatch(strings.TrimRight(l, "\n"))
		switch {
		case m != nil && open == nil:
			words := append(strings.Fields(m[2]), "", "")
			indent = m[1]
			open = &block{line: line, language: words[0], server: words[1] == "server", install: words[1] == "install"}
		case m != nil:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(l, indent)
		}
	}
	if open != nil {
		t.Errorf("%s:%d: the block has no end", name, open.line)
	}
	return blocks
}

// page is a document whose blocks TestDocuments runs, with the shell and the server that run them.
type page struct {
	t      *testing.T
	name   string
	blocks []block

	dir, bin string
	input    io.Writer
	output   *bufio.Reader
	ports    *strings.Replacer // replaces the addresses in the document by those of the server
	http     string
	database string
	server   *exec.Cmd
}

func openPage(t *testing.T, name string) *page {
	p := &page{t: t, name: name, blocks: readPage(t, name), dir: t.TempDir(), bin: t.TempDir(), ports: strings.NewReplacer()}
	executable, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\n%s=1 exec %s \"$@\"\n", runMain, executable)
	if err := os.WriteFile(filepath.Join(p.bin, "crowfoot"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("bash")
	shell.Dir = p.dir
	shell.Env = append(os.Environ(), "PATH="+p.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "XDG_STATE_HOME="+t.TempDir())
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that the cleanup also kills the programs that the shell has started
	input, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	shell.Stdout, shell.Stderr = write, write
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	t.Cleanup(func() {
		syscall.Kill(-shell.Process.Pid, syscall.SIGKILL)
		shell.Wait()
		read.Close()
	})
	p.input, p.output = input, bufio.NewReader(read)
	return p
}

// run runs a block and returns its output. A block that starts a server has no output.
func (p *page) run(b block) string {
	p.t.Helper()
	text := p.ports.Replace(b.text)
	switch {
	case b.server:
		p.start(b, text)
		return ""
	case b.language == "sh":
		return p.shell(b, text)
	case b.language == "sql":
		return p.sql(b, text)
	}
	file, command := programs[b.language](p, b)
	if err := os.WriteFile(filepath.Join(p.dir, file), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return p.shell(b, command)
}

var publicClass = regexp.MustCompile(`public class (\w+)`)

// programs has, by language, a function that returns the file name and the command for the program of a block.
var programs = map[string]func(p *page, b block) (file, command string){
	"python": func(_ *page, b block) (file, command string) {
		file = fmt.Sprintf("block%d.py", b.line)
		return file, "python " + file
	},
	"js": func(_ *page, b block) (file, command string) {
		file = fmt.Sprintf("block%d.mjs", b.line)
		return file, "node " + file
	},
	"java": func(_ *page, b block) (file, command string) {
		file = publicClass.FindStringSubmatch(b.text)[1] + ".java"
		return file, "java --add-opens=java.base/java.nio=ALL-UNNAMED -cp \"$CROWFOOT_TEST_DOCS\" " + file
	},
	"go": func(p *page, b block) (file, command string) {
		file = fmt.Sprintf("block%d.go", b.line)
		if strings.Contains(b.text, "testing.T") {
			file = fmt.Sprintf("block%d_test.go", b.line)
			return file, fmt.Sprintf("(dir=$PWD; cd %q; go test \"$dir/%s\")", p.root(), file)
		}
		return file, fmt.Sprintf("(dir=$PWD; cd %q; go build -o \"$dir/block\" \"$dir/%s\") && ./block", p.root(), file)
	},
}

// root returns the folder of the checkout, in whose Go module the Go programs are built.
func (p *page) root() string {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		p.t.Fatal(err)
	}
	return root
}

// shell runs text in the shell of the document, without standard input. It returns what the shell printed to standard
// output and standard error.
func (p *page) shell(b block, text string) string {
	p.t.Helper()
	file := filepath.Join(p.bin, fmt.Sprintf("block%d.sh", b.line))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	end := fmt.Sprintf("end of block %d", b.line)
	fmt.Fprintf(p.input, "set -e; . %s </dev/null; set +e; echo; echo '%s'\n", file, end)
	var printed strings.Builder
	for {
		line, err := p.output.ReadString('\n')
		if line == end+"\n" {
			return strings.TrimSuffix(printed.String(), "\n") // without the line break that echo prints
		}
		printed.WriteString(line)
		if err != nil {
			p.t.Fatalf("%s:%d fails: it prints\n%s", p.name, b.line, printed.String())
		}
	}
}

// start stops the server that the document has started before. It then starts the server of the block b and finds out
// its ports.
func (p *page) start(b block, text string) {
	p.t.Helper()
	if p.server != nil {
		p.server.Process.Signal(syscall.SIGTERM)
		if err := p.server.Wait(); err != nil {
			p.t.Errorf("%s:%d: the server before: %v", p.name, b.line, err)
		}
	}
	words := strings.Fields(strings.ReplaceAll(text, "\\\n", " "))
	begin := slices.Index(words, "start")
	if begin < 0 {
		p.t.Fatalf("%s:%d starts no server", p.name, b.line)
	}
	for i, w := range words[:len(words)-1] {
		if w == "--database" || w == "-d" {
			p.database = words[i+1]
		}
	}
	cmd := exec.Command(os.Args[0], words[begin:]...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), runMain+"=1", "CROWFOOT_GRPC=127.0.0.1:0", "CROWFOOT_HTTP=127.0.0.1:0")
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	var grpc string
	if _, err := fmt.Fscanf(out, "crowfoot: ready grpc=%s http=%s\n", &grpc, &p.http); err != nil {
		cmd.Wait()
		p.t.Fatalf("%s:%d: %v: %s", p.name, b.line, err, log.String())
	}
	p.server = cmd
	p.ports = strings.NewReplacer("127.0.0.1:9010", grpc, "localhost:9010", grpc, "127.0.0.1:9020", p.http, "localhost:9020", p.http)
	fmt.Fprintf(p.input, "export CROWFOOT_HTTP=%s\n", p.http) // crowfoot checkpoint sends its request to this address
}

var isDDL = regexp.MustCompile(`(?i)^\s*(CREATE|ALTER|DROP|GRANT|REVOKE|RENAME|ANALYZE)\b`)

// sql runs the statements of a block on the server of the document. Each statement ends with a semicolon; only a
// comment may follow on the same line.
func (p *page) sql(b block, text string) (printed string) {
	p.t.Helper()
	if p.database == "" {
		p.t.Fatalf("%s:%d: the page has started no server with a database", p.name, b.line)
	}
	database := "http://" + p.http + "/v1/" + p.database
	text = regexp.MustCompile(`(?m)--.*$`).ReplaceAllString(text, "")
	for _, statement := range strings.Split(text, ";") {
		statement = strings.TrimSpace(statement)
		switch {
		case statement == "":
		case isDDL.MatchString(statement):
			operation := p.request("PATCH", b, database+"/ddl", map[string]any{"statements": []string{statement}})
			for operation["done"] != true {
				operation = p.request("GET", b, fmt.Sprint("http://", p.http, "/v1/", operation["name"]), nil)
			}
			if operation["error"] != nil {
				p.t.Errorf("%s:%d: %s: %v", p.name, b.line, statement, operation["error"])
			}
		default:
			session := p.request("POST", b, database+"/sessions", map[string]any{})["name"]
			result := p.request("POST", b, fmt.Sprint("http://", p.http, "/v1/", session, ":executeSql"), map[string]any{"sql": statement})
			rows, _ := result["rows"].([]any)
			for _, row := range rows {
				values, _ := row.([]any)
				for i, v := range values {
					if i > 0 {
						printed += " | "
					}
					printed += fmt.Sprint(v)
				}
				printed += "\n"
			}
		}
	}
	return printed
}

func (p *page) request(method string, b block, url string, body any) (reply map[string]any) {
	p.t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(p.t.Context(), method, url, bytes.NewReader(encoded))
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&reply); err != nil {
		p.t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		p.t.Fatalf("%s:%d: %v", p.name, b.line, reply)
	}
	return reply
}

// matches reports whether a printed text is what a document shows. In the document, "..." within a line stands for any
// text, and a line "..." for any number of lines.
func matches(shown, printed string) bool {
	var pattern strings.Builder
	pattern.WriteString(`\A\s*`)
	for line := range strings.Lines(strings.TrimSpace(shown) + "\n") {
		line = strings.TrimRight(line, " \n")
		if strings.TrimSpace(line) == "..." {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, `.*`) + `[ \t]*\n`)
	}
	pattern.WriteString(`\s*\z`)
	return regexp.MustCompile(pattern.String()).MatchString(printed + "\n")
}

// TestMatches checks which texts the function matches accepts.
func TestMatches(t *testing.T) {
	for _, c := range []struct {
		shown, printed string
		want           bool
	}{
		{"a\nb", "a\nb\n", true},
		{"a", "a\nb\n", false},
		{"a ... b", "a 12 b", true},
		{"a ... b", "a 12 c", false},
		{"a\n...\nz", "a\nb\nc\nz", true},
		{"a\n...\nz", "a\nb\nc", false},
		{"1 | x", "1 | x\n", true},
		{"...\nz", "z", true},
	} {
		if matches(c.shown, c.printed) != c.want {
			t.Errorf("%q for %q: not %t", c.printed, c.shown, c.want)
		}
	}
}
