package analyze

import (
	"fmt"
	"runtime"
	_ "unsafe" // for go:linkname

	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// A handle of the library points into the memory of an engine. Go's collector does not see how large what it points to is, and
// that memory never shrinks. The library has handles that it makes for its caller freed by finalizers, at some later collection: until then
// thousands of statements would pile up, and by then another engine may be the one that the finalizer finds. So such handles lose
// their finalizer at once (own), and what they point to is freed as soon as a statement is analyzed. The methods that
// do so are not exported, hence the linknames.
//
// The package librarytest checks that the library still has these methods, and that no handle here keeps its finalizer. It does not link
// them: should one be gone, its test says so, where everything else fails to link.

//go:linkname freeOutput github.com/goccy/go-googlesql.(*AnalyzerOutput).free
func freeOutput(*googlesql.AnalyzerOutput)

//go:linkname freeOptions github.com/goccy/go-googlesql.(*AnalyzerOptions).free
func freeOptions(*googlesql.AnalyzerOptions)

//go:linkname freeTypes github.com/goccy/go-googlesql.(*TypeFactory).free
func freeTypes(*googlesql.TypeFactory)

//go:linkname freeCatalog github.com/goccy/go-googlesql.(*SimpleCatalog).free
func freeCatalog(*googlesql.SimpleCatalog)

//go:linkname freeNames github.com/goccy/go-googlesql.(*MultiCatalog).free
func freeNames(*googlesql.MultiCatalog)

//go:linkname freeTable github.com/goccy/go-googlesql.(*SimpleTable).free
func freeTable(*googlesql.SimpleTable)

//go:linkname freeColumn github.com/goccy/go-googlesql.(*SimpleColumn).free
func freeColumn(*googlesql.SimpleColumn)

//go:linkname freeSequence github.com/goccy/go-googlesql.(*SimpleSequence).free
func freeSequence(*googlesql.SimpleSequence)

//go:linkname freeSignature github.com/goccy/go-googlesql.(*FunctionSignature).free
func freeSignature(*googlesql.FunctionSignature)

//go:linkname freeArgument github.com/goccy/go-googlesql.(*FunctionArgumentType).free
func freeArgument(*googlesql.FunctionArgumentType)

//go:linkname freeFunctionProto github.com/goccy/go-googlesql.(*TableValuedFunctionProto).free
func freeFunctionProto(*googlesql.TableValuedFunctionProto)

//go:linkname freeDeserializer github.com/goccy/go-googlesql.(*TypeDeserializer).free
func freeDeserializer(*googlesql.TypeDeserializer)

//go:linkname freePool github.com/goccy/go-googlesql.(*DescriptorPool).free
func freePool(*googlesql.DescriptorPool)

//go:linkname freeFile github.com/goccy/go-googlesql.(*FileDescriptorProto).free
func freeFile(*googlesql.FileDescriptorProto)

// own is get for a handle that the library has made for its caller. Its finalizer is taken away; the caller frees it, or gives it to
// another handle that does.
func own[T any](handle *T, err error) *T {
	if err != nil {
		panic(failure{err})
	}
	if handle == nil {
		panic(failure{fmt.Errorf("the library made no %T", handle)})
	}
	runtime.SetFinalizer(handle, nil)
	return handle
}

// free frees what a handle points to, unless the engine is thrown away with all that its memory holds.
func free[T any](e *engine, method func(*T), handle *T) {
	if !e.discard {
		method(handle)
	}
}

// failure is a panic that carries an error from deep in a tree up to run. Each accessor of the library returns an error, though none
// fails for a sound tree. As an error it is one that the user is not to see.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// get returns the value that an accessor of the library returned, or ends the analysis with its error.
func get[T any](v T, err error) T {
	if err != nil {
		panic(failure{err})
	}
	return v
}

// do ends the analysis if a setter of the library has failed.
func do(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// refuse ends the analysis with an error for the user.
func refuse(err *usererror.Error) { panic(failure{err}) }
