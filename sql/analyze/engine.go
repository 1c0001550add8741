package analyze

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	_ "unsafe" // for go:linkname

	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A handle of the library points into a memory that the library manages itself. Go's collector does not see how large that is,
// and it never shrinks. The library frees what a handle points to in the handle's finalizer, that is at some later collection: until
// then thousands of statements would pile up. So large objects are freed here as soon as a statement is analyzed. The methods that
// do so are not exported, hence the linknames. They empty the handle, so that the finalizer finds nothing left to free.
//
// The package librarytest checks that the library still has these methods. It does not link them: should one be gone, its test says
// so, where everything else fails to link.

//go:linkname freeOutput github.com/goccy/go-googlesql.(*AnalyzerOutput).free
func freeOutput(*googlesql.AnalyzerOutput)

//go:linkname freeOptions github.com/goccy/go-googlesql.(*AnalyzerOptions).free
func freeOptions(*googlesql.AnalyzerOptions)

//go:linkname freeTypes github.com/goccy/go-googlesql.(*TypeFactory).free
func freeTypes(*googlesql.TypeFactory)

//go:linkname freeCatalog github.com/goccy/go-googlesql.(*SimpleCatalog).free
func freeCatalog(*googlesql.SimpleCatalog)

//go:linkname freeTable github.com/goccy/go-googlesql.(*SimpleTable).free
func freeTable(*googlesql.SimpleTable)

//go:linkname freeColumn github.com/goccy/go-googlesql.(*SimpleColumn).free
func freeColumn(*googlesql.SimpleColumn)

// engine is the library, of which a process has one. It runs one call at a time. A goroutine takes its turn for a whole analysis, so
// that two statements do not wait for each other at every one of their thousands of short calls.
var engine = struct {
	turn     chan struct{} // holds one element while a goroutine has its turn, which guards all else
	started  bool
	zoned    bool // the library has its default time zone: see zone.go
	language *googlesql.LanguageOptions
}{turn: make(chan struct{}, 1)}

// failure is a panic that carries an error from deep in a tree up to run. Each accessor of the library returns an error, though none
// fails for a sound tree.
type failure struct{ err error }

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

// run calls f when it is its turn to use the library; it fails if ctx ends before. What f refuses comes back as a *usererror.Error.
// Everything else that goes wrong, panics of the library included, is an error of this statement alone.
func run(ctx context.Context, f func()) (err error) {
	if err := takeTurn(ctx); err != nil {
		return err
	}
	defer func() { <-engine.turn }()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.err
			if user := (*usererror.Error)(nil); !errors.As(err, &user) {
				err = fmt.Errorf("analyzing a statement: %w", err)
			}
		default:
			err = fmt.Errorf("analyzing a statement: panic: %v\n%s", r, debug.Stack())
		}
	}()
	start()
	f()
	return nil
}

// takeTurn waits for the turn to use the library.
func takeTurn(ctx context.Context) error {
	select {
	case engine.turn <- struct{}{}:
		return nil
	default:
	}
	defer cpu.Waiting(ctx)()
	select {
	case engine.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func start() {
	if engine.started {
		return
	}
	zoned := initLibrary()
	l := get(googlesql.NewLanguageOptions())
	do(l.SetProductMode(googlesql.ProductModeProductExternal))
	do(l.SetNameResolutionMode(googlesql.NameResolutionModeNameResolutionDefault))
	do(l.DisableAllLanguageFeatures())
	for _, f := range features {
		do(l.EnableLanguageFeature(f))
	}
	do(l.SetSupportedStatementKinds(statementKinds))
	engine.language, engine.zoned, engine.started = l, zoned, true
}
