package librarytest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	library = "github.com/goccy/go-googlesql"
	linking = "../handle.go" // the file with the go:linkname directives for methods that free objects
)

// TestLinknames checks that the library has each method that sql/analyze links to. The method must still free the
// object of its handle, and only once.
func TestLinknames(t *testing.T) {
	links := linknames(t)
	if len(links) == 0 {
		t.Fatalf("%s has no go:linkname of %s: this test is no longer needed", linking, library)
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", library).Output()
	if err != nil {
		t.Fatalf("go list -m %s: %v", library, err)
	}
	version, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	source := sourceOf(t, dir)
	for _, l := range links {
		if wrong := l.check(source); wrong != "" {
			t.Errorf("%s %s: %s.\n%s links %s to it. Until that is put right, whatever contains sql/analyze fails to link "+
				"(\"relocation target %s.(*%s).%s not defined\") or frees memory twice. See in the library what %s frees now, and link to that; "+
				"if the library has an exported way to free a %s, use it and drop the directive.",
				library, version, wrong, linking, l.local, library, l.receiver, l.method, l.finalizer(), l.receiver)
		}
	}
}

// TestBroken checks that link.check finds each way in which the library may have changed.
func TestBroken(t *testing.T) {
	l := link{local: "freeOutput", receiver: "Output", method: "free"}
	const sound = "func (h *Output) free() {\n\tif h.ptr != 0 {\n\t\trelease(h)\n\t\th.ptr = 0\n\t}\n}\n\nfunc newOutput() { runtime.SetFinalizer(h, (*Output).free) }\n"
	for _, c := range []struct{ source, want string }{
		{sound, ""},
		{strings.ReplaceAll(sound, "free()", "release()"), "it has no method (*Output).free"},
		{strings.Replace(sound, "free()", "free(now bool)", 1), "(*Output).free has parameters or results: func(now bool)"},
		{strings.Replace(sound, "free()", "free() error", 1), "(*Output).free has parameters or results: func() error"},
		{strings.Replace(sound, "h.ptr = 0", "", 1), "(*Output).free does not set h.ptr = 0, by which the finalizer would see that the handle is empty"},
		{strings.Replace(sound, "h.ptr != 0", "true", 1), "(*Output).free does not look at h.ptr != 0, so that a second call would free again"},
		{strings.Replace(sound, "SetFinalizer", "AddCleanup", 1), "it does not free a Output by runtime.SetFinalizer(h, (*Output).free)"},
	} {
		if got := l.check(c.source); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// link is one go:linkname directive. It links a function of sql/analyze, whose name is in the field local, to the
// library's method (*receiver).method.
type link struct{ local, receiver, method string }

var directive = regexp.MustCompile(`^//go:linkname (\w+) ` + regexp.QuoteMeta(library) + `\.\(\*(\w+)\)\.(\w+)$`)

// linknames reads the go:linkname directives of sql/analyze. It checks that each stands above a function whose only
// parameter is the method's receiver.
func linknames(t *testing.T) []link {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, linking, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var links []link
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body != nil || f.Doc == nil {
			continue
		}
		m := directive.FindStringSubmatch(f.Doc.List[len(f.Doc.List)-1].Text)
		if m == nil {
			t.Errorf("%s: %s has no body and no go:linkname of %s", fset.Position(f.Pos()), f.Name.Name, library)
			continue
		}
		l := link{local: m[1], receiver: m[2], method: m[3]}
		if got, want := signature(f.Type), fmt.Sprintf("func(*googlesql.%s)", l.receiver); l.local != f.Name.Name || got != want {
			t.Errorf("%s: %s is %s, not %s", fset.Position(f.Pos()), f.Name.Name, got, want)
		}
		links = append(links, l)
	}
	return links
}

// sourceOf returns the text of the library's source files.
func sourceOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// check returns what is wrong with the linked method in the library's source; "" if nothing is.
func (l link) check(source string) string {
	name := fmt.Sprintf("(*%s).%s", l.receiver, l.method)
	begins := regexp.MustCompile(fmt.Sprintf(`(?m)^func \(\w+ \*%s\) %s\(`, l.receiver, l.method)).FindStringIndex(source)
	if begins == nil {
		return "it has no method " + name
	}
	text, _, _ := strings.Cut(source[begins[0]:], "\n}\n")
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+text+"\n}\n", 0)
	if err != nil {
		return name + " does not parse: " + err.Error()
	}
	if got := signature(file.Decls[0].(*ast.FuncDecl).Type); got != "func()" {
		return name + " has parameters or results: " + got
	}
	if !strings.Contains(text, "if h.ptr != 0 {") {
		return name + " does not look at h.ptr != 0, so that a second call would free again"
	}
	if !strings.Contains(text, "h.ptr = 0\n") {
		return name + " does not set h.ptr = 0, by which the finalizer would see that the handle is empty"
	}
	if !strings.Contains(source, l.finalizer()) {
		return fmt.Sprintf("it does not free a %s by %s", l.receiver, l.finalizer())
	}
	return ""
}

// finalizer returns the statement of the library that sets the linked method as the finalizer of a handle.
func (l link) finalizer() string {
	return fmt.Sprintf("runtime.SetFinalizer(h, (*%s).%s)", l.receiver, l.method)
}

// signature prints the type of a function.
func signature(f *ast.FuncType) string {
	var b strings.Builder
	if err := printer.Fprint(&b, token.NewFileSet(), f); err != nil {
		return err.Error()
	}
	return b.String()
}
