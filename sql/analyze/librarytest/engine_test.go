package librarytest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEngine checks that the library's source still has the code on which sql/analyze/engine.go depends: the variable
// globalModule, in which handles find their instance, the functions that make and call instances, and the message that
// requests the analysis of a statement.
func TestEngine(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", library).Output()
	if err != nil {
		t.Fatal(err)
	}
	source := sourceOf(t, strings.TrimSpace(string(dir)))
	for _, want := range []string{
		"globalModule *Module\n",
		"func module() *Module {\n\tif globalModule == nil {",
		"func initModule() (retErr error) {",
		"globalModule = m\n",
		"func (m *Module) invoke(serviceID, methodID int32, req []byte, call func(*base.Module, int32, int32) (int64, error)) ([]byte, error) {\n\tm.mu.Lock()",
		"func (h *AnalyzerOptions) rawPtr() uint64 { return h.ptr }",
		"func (h *Catalog) rawPtr() uint64 { return h.ptr }",
		"func (h *TypeFactoryBase) rawPtr() uint64 { return h.ptr }",
		"func newAnalyzerOutputNoFinalizer(ptr uint64) *AnalyzerOutput {",
		`	buf = pbAppendString(buf, 1, sql)
	buf = pbAppendHandlePtr(buf, 2, optionsIn)
	buf = pbAppendHandlePtr(buf, 3, catalog)
	buf = pbAppendHandlePtr(buf, 4, typeFactory)
	resp, err := invokeMethod(0, 2, buf, wasm2go.Inv_0_2)
	if err != nil {
		return nil, err
	}
	ptr := readPtrAtField(resp, 2)
`,
	} {
		if !strings.Contains(source, want) {
			t.Errorf("the library has no longer %q, on which ../engine.go depends", want)
		}
	}
}

// TestOwned checks that sql/analyze passes the result of each call of a function of package googlesql to the function
// own. If the result is a handle, own removes its finalizer.
func TestOwned(t *testing.T) {
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	owned := 0
	for _, name := range files {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		makers := map[ast.Node]bool{} // the calls that are arguments of the function own
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "own" {
				makers[call.Args[0]] = true
				owned++
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := f.X.(*ast.Ident); ok && x.Name == "googlesql" && !makers[call] {
				t.Errorf("%s: googlesql.%s is not within own(...)", fset.Position(call.Pos()), f.Sel.Name)
			}
			return true
		})
	}
	if owned == 0 {
		t.Error("no call of own was found")
	}
}
