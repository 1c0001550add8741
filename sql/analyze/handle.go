package analyze

import (
	"fmt"
	"runtime"
	_ "unsafe" // for go:linkname

	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// A handle of the library points to an object in the memory of an engine. Go's collector does not see the object's
// size, and an engine's memory never shrinks. The library sets a finalizer on each handle that it makes for its caller;
// the finalizer frees the object at some later collection. Until then the objects of thousands of statements would pile
// up. And a finalizer that runs while another engine is the current one would free memory of that engine. So the
// function own removes the finalizer of such a handle at once, and the function free frees the object as soon as a
// statement is analyzed. The library does not export the methods that free objects, hence the linknames.
//
// The package librarytest checks that the library still has these methods, and that this package calls own for every
// handle that the library makes for it. librarytest itself does not link the methods. So if a new version of the
// library lacks a method, every program that contains this package fails to link, but librarytest still runs and names
// the method.

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

// own returns a handle that the library has made for its caller, or ends the analysis with the error. It removes the
// handle's finalizer, so the caller must free the handle, or give it to an object of the library that frees it.
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

// free calls method, which frees the object of a handle. If the engine is discarded with all of its memory, free does
// nothing.
func free[T any](e *engine, method func(*T), handle *T) {
	if !e.discard {
		method(handle)
	}
}

// failure is the value of a panic that carries an error from deep in the walk through a tree up to pool.lend. The walk
// panics because it would otherwise have to return the error of each accessor of the library, though no accessor fails
// for a sound tree. Users see the error only if it wraps a usererror.Error.
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
