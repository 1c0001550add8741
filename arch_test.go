package crowfoot

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/crowfoot-db/crowfoot"

// TestImports checks that the last line of every package comment names exactly those packages of this module that the
// package imports.
func TestImports(t *testing.T) {
	for dir, files := range packages(t) {
		said, ok := saidImports(files)
		if !ok {
			t.Errorf("%s: its package comment has no line \"Imports of this module: ...\"", dir)
			continue
		}
		actual := realImports(files)
		for _, p := range actual {
			if !slices.Contains(said, p) {
				t.Errorf("%s imports %s without saying so in its package comment", dir, p)
			}
		}
		for _, p := range said {
			if !slices.Contains(actual, p) {
				t.Errorf("%s says that it imports %s, and does not", dir, p)
			}
		}
	}
}

// TestDownward checks that a package imports only packages of its own layer or of a lower one. The tree at the top of
// ARCHITECTURE.md has the layers. Packages that are not in the tree may import any package.
func TestDownward(t *testing.T) {
	layers := layersOf(t)
	for dir, files := range packages(t) {
		layer, ok := layers[dir]
		if !ok {
			continue
		}
		for _, p := range realImports(files) {
			if below, ok := layers[p]; ok && below < layer {
				t.Errorf("%s imports %s, which stands in a higher layer", dir, p)
			}
		}
	}
}

var pathWord = regexp.MustCompile("[a-z]+(?:/[a-z]+)+")

// layersOf returns the layer of each package in the tree of ARCHITECTURE.md. The highest layer has the number 0. A line
// that has only bars and no package separates a layer from the next lower one.
func layersOf(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tree, _ := strings.Cut(string(text), "from top to bottom")
	tree, _, _ = strings.Cut(tree, "**Beside the path.**")
	layers, layer := map[string]int{}, 0
	for line := range strings.Lines(tree) {
		if !strings.HasPrefix(line, "    ") {
			continue
		}
		if strings.Trim(line, " |\n") == "" {
			layer++
			continue
		}
		// A line has the names of packages, separated by commas. After two spaces, a description of these packages
		// follows. A word of the description that contains a slash may be the name of one more package of this layer.
		names, description, _ := strings.Cut(strings.TrimLeft(strings.TrimRight(line, "\n"), " |`-"), "  ")
		list := append(strings.Split(names, ", "), pathWord.FindAllString(description, -1)...)
		for _, name := range list {
			if _, known := layers[name]; !known && isPackage(name) {
				layers[name] = layer
			}
		}
	}
	if len(layers) < 50 || layer < 5 {
		t.Fatalf("the tree has only %d packages in %d layers", len(layers), layer)
	}
	return layers
}

// isPackage reports whether a folder of this module has Go files.
func isPackage(dir string) bool {
	files, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*.go"))
	return err == nil && len(files) > 0
}

// TestTransports checks that server/grpc, the gRPC transport, is the only package of the server that uses gRPC's
// library. The other packages of the server may import only one package of this library, codes.
func TestTransports(t *testing.T) {
	const library, codes, transport = "google.golang.org/grpc", "google.golang.org/grpc/codes", "server/grpc"
	checked := 0
	for dir, files := range packages(t) {
		if dir == transport || dir != "server" && !strings.HasPrefix(dir, "server/") {
			continue
		}
		checked++
		for _, f := range files {
			for _, i := range f.Imports {
				if p, _ := strconv.Unquote(i.Path.Value); p != codes && (p == library || strings.HasPrefix(p, library+"/")) {
					t.Errorf("%s imports %s; server/rpc.Transport is what stands between", dir, p)
				}
			}
		}
	}
	if checked < 5 {
		t.Errorf("checked only %d packages", checked)
	}
}

// packages parses the files of every package of the module, except tests. It returns them by folder.
func packages(t *testing.T) map[string][]*ast.File {
	t.Helper()
	found := map[string][]*ast.File{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && name != ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(name))
		found[dir] = append(found[dir], f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("found only %d packages", len(found))
	}
	return found
}

var importsLine = regexp.MustCompile(`(?s)Imports of this module: (.*?)\.\n`)

// saidImports returns the imports that a package comment names. They are paths relative to the module; "." is the
// module's root package. It returns false if no comment has the line "Imports of this module: ...".
func saidImports(files []*ast.File) ([]string, bool) {
	for _, f := range files {
		if f.Doc == nil {
			continue
		}
		m := importsLine.FindStringSubmatch(f.Doc.Text() + "\n")
		if m == nil {
			continue
		}
		list := strings.Join(strings.Fields(m[1]), " ")
		if list == "nothing" {
			return nil, true
		}
		return strings.Split(list, ", "), true
	}
	return nil, false
}

func realImports(files []*ast.File) []string {
	var list []string
	for _, f := range files {
		for _, i := range f.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			if p != module && !strings.HasPrefix(p, module+"/") {
				continue
			}
			p = strings.TrimPrefix(strings.TrimPrefix(p, module), "/")
			if p == "" {
				p = "."
			}
			if !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// TestEmbeddedLinksNoCommandLine checks that a program which embeds Crowfoot links none of these: the libraries of the
// command line, the packages bulk and bench, the libraries for Parquet and Avro files, and the drivers of the databases
// with which benchmarks compare Crowfoot.
func TestEmbeddedLinksNoCommandLine(t *testing.T) {
	list, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(list)) {
		for _, prefix := range []string{"github.com/spf13/", module + "/bulk", module + "/bench", "github.com/apache/arrow-go/v18/parquet", "github.com/apache/thrift",
			"github.com/twmb/avro", "github.com/jackc/", "github.com/go-sql-driver/"} {
			if strings.HasPrefix(name, prefix) {
				t.Errorf("package crowfoot links %s", name)
			}
		}
	}
	if !strings.Contains(string(list), module+"/server\n") {
		t.Errorf("package crowfoot does not link its own packages: %s", list)
	}
}

// TestWithoutBenchmarks checks that a command built with the tag nobench contains neither the benchmarks nor the
// drivers of the databases with which benchmarks compare Crowfoot.
func TestWithoutBenchmarks(t *testing.T) {
	list, err := exec.Command("go", "list", "-deps", "-tags", "nobench", "./cmd/crowfoot").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(list)) {
		for _, prefix := range []string{module + "/bench/", "github.com/jackc/", "github.com/go-sql-driver/"} {
			if strings.HasPrefix(name, prefix) {
				t.Errorf("with the tag nobench, the command links %s", name)
			}
		}
	}
	if !strings.Contains(string(list), module+"/server\n") {
		t.Errorf("the command does not link the server: %s", list)
	}
}

var (
	codeSpan = regexp.MustCompile("`([a-z]+(?:/[a-z_]+)*(?:/[a-z_]+\\.go)?)(?::([A-Za-z.]+))?`")
	link     = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	fence    = regexp.MustCompile("(?ms)^```.*?^```\n")
)

// documents returns the names of the documents that TestMap checks.
func documents(t *testing.T) []string {
	t.Helper()
	list := []string{"ARCHITECTURE.md", "README.md", "CHANGELOG.md", "bench/README.md", "interop/README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < 5 {
			t.Fatalf("%s: %d pages, %v", pattern, len(found), err)
		}
		for _, name := range found {
			list = append(list, filepath.ToSlash(name))
		}
	}
	return list
}

// TestMap checks that every path, function, page and section that the documents name exists.
func TestMap(t *testing.T) {
	named := 0
	for _, doc := range documents(t) {
		text := prose(t, doc)
		for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
			file, name := m[1], m[2]
			if !strings.Contains(file, "/") && (name == "" || !strings.Contains(file, ".")) {
				continue // the code span is a word, not a path
			}
			code, err := os.ReadFile(file)
			if info, statErr := os.Stat(file); statErr == nil && info.IsDir() {
				named++
				continue
			}
			if err != nil {
				if name == "" && !strings.HasSuffix(file, ".go") && !strings.HasPrefix(path.Base(doc), "ARCHITECTURE") && path.Dir(doc) != "docs/architecture" {
					continue // because documents for users name paths on the users' machines
				}
				t.Errorf("%s names %s: %v", doc, file, err)
				continue
			}
			named++
			if i := strings.LastIndexByte(name, '.'); i >= 0 {
				name = name[i+1:]
			}
			if name != "" && !regexp.MustCompile(`(?m)\b`+name+`\b`).Match(code) {
				t.Errorf("%s names %s in %s, which does not have it", doc, name, file)
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			named++
			target := doc
			if m[1] != "" {
				target = path.Join(path.Dir(doc), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links %s: %v", doc, m[1], err)
			} else if m[2] != "" && !slices.Contains(sections(t, target), m[2]) {
				t.Errorf("%s links section %s of %s, which does not have it", doc, m[2], target)
			}
		}
	}
	if named < 500 {
		t.Errorf("the documents name only %d paths", named)
	}
}

// prose returns the text of a document without its code blocks.
func prose(t *testing.T, doc string) string {
	t.Helper()
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	return fence.ReplaceAllString(string(text), "")
}

var notInAnchor = regexp.MustCompile(`[^\pL\pN _-]`)

// sections returns the anchors of a document's headings, as Markdown renderers compute them.
func sections(t *testing.T, doc string) (anchors []string) {
	t.Helper()
	for line := range strings.Lines(prose(t, doc)) {
		if heading := strings.TrimLeft(line, "#"); heading != line && strings.HasPrefix(heading, " ") {
			anchor := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			anchors = append(anchors, strings.ReplaceAll(anchor, " ", "-"))
		}
	}
	return anchors
}

// TestClientVersions checks that docs/clients.md names the versions that the files in interop install.
func TestClientVersions(t *testing.T) {
	page := prose(t, "docs/clients.md")
	for file, pattern := range map[string]string{
		"go.mod":                           `cloud.google.com/go/spanner v(\S+)`,
		"interop/official-go":              `version=v(\S+)`,
		"interop/clients":                  `newest_java=(\S+)`,
		"interop/run":                      `\[java-(\d+\.\d+)\]`,
		"interop/java-beam/pom.xml":        `<beam.version>(\S+)<`,
		"interop/python/requirements.txt":  `==(\S+)`,
		"interop/alembic/requirements.txt": `==(\S+)`,
		"interop/django/requirements.txt":  `==(\S+)`,
		"interop/flyway/pom.xml":           `flyway-gcp-spanner</artifactId>\s*<version>(\S+)<`,
		"interop/gorm/go.mod":              `gorm.io/gorm v(\S+)`,
		"interop/gorm/requirements.txt":    `==(\S+)`,
		"interop/hibernate/pom.xml":        `hibernate-dialect</artifactId>\s*<version>(\S+)<`,
		"interop/liquibase/pom.xml":        `liquibase-spanner</artifactId>\s*<version>(\S+)<`,
		"interop/node/package.json":        `spanner": "(.+)"`,
		"interop/typeorm/package.json":     `(?:spanner|typeorm)": "(.+)"`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s names no version", file)
		}
		for _, f := range found {
			if !strings.Contains(page, " "+f[1]) {
				t.Errorf("docs/clients.md does not name version %s of %s", f[1], file)
			}
		}
	}
}
