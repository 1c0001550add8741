package analyze

import (
	"context"
	"errors"
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/goccy/go-googlesql"
	wasm "github.com/goccy/googlesqlwasm2go"
	"github.com/goccy/googlesqlwasm2go/base"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// engine is an instance of GoogleSQL's library with memory of its own, in which the library keeps schemas and the
// current statement. An engine analyzes one statement at a time, for the goroutine to which the pool has lent it.
// Several engines can work at the same time.
//
// A handle is a Go object of the library that points to an object in an engine's memory. The methods of handles find
// their instance in one variable of the library's package (current). A goroutine sets that variable when it enters its
// engine. Until it leaves the engine, no other goroutine may use the handles of any engine. A goroutine leaves its
// engine while the library analyzes a statement, which is most of the time. While the goroutine walks through a large
// tree, it leaves for a moment now and then (pause), so that other goroutines can enter their engines.
type engine struct {
	module   *googlesql.Module
	core     *base.Module // the WebAssembly module that the field module wraps
	language *googlesql.LanguageOptions
	// definitions holds the language options for the texts of views and functions.
	definitions *googlesql.LanguageOptions
	zoned       bool // the library has found its default time zone on the machine (zone.go)
	builtIns    *library
	libraries   map[*Analyzer]*library // catalogs for the schemas of the statements so far
	pools       map[*schema.ProtoBundle]*descriptorPool

	discard   bool        // the engine is thrown away after the current statement; always true for a heavy statement
	forgotten []*Analyzer // Analyzers whose schemas this engine must still free; guarded by pool.mu

	ctx     context.Context // the context of the current statement
	entered time.Time
	steps   int           // number of calls of the method rest
	work    cpu.Segment   // CPU time of the current statement
	loaded  time.Duration // CPU time spent on loading the schema; the limit lightTime does not count it
}

const (
	// engineMemory is the most memory that one instance may take, in bytes. The library ends a statement that needs
	// more. Of the texts of BenchmarkHostile, only those in which each subquery doubles the columns of the subquery
	// before it can take more than 152 MiB.
	engineMemory = 256 << 20
	// spareMemory is the size in bytes beyond which an instance is thrown away after a statement, since its memory
	// never shrinks.
	spareMemory = 192 << 20
	// maxLibraries is the maximum number of schemas that an instance holds at once.
	maxLibraries = 16
	// restAfter is the time for which a goroutine stays in its engine before it lets other goroutines enter theirs.
	restAfter = 2 * time.Millisecond
	// stepsToRest is the number of calls of the method rest after which it looks at the clock once.
	stepsToRest = 16
)

// entering guards the variable current. A goroutine holds this mutex while it is in its engine.
var entering sync.Mutex

//go:linkname current github.com/goccy/go-googlesql.globalModule
var current *googlesql.Module

// startModule makes another instance of the library and sets the variable current to it.
//
//go:linkname startModule github.com/goccy/go-googlesql.initModule
func startModule() error

// invoke calls a function of an instance. Calls of different instances may run at the same time.
//
//go:linkname invoke github.com/goccy/go-googlesql.(*Module).invoke
func invoke(m *googlesql.Module, service, method int32, request []byte, function func(*base.Module, int32, int32) (int64, error)) ([]byte, error)

//go:linkname optionsHandle github.com/goccy/go-googlesql.(*AnalyzerOptions).rawPtr
func optionsHandle(*googlesql.AnalyzerOptions) uint64

//go:linkname catalogHandle github.com/goccy/go-googlesql.(*Catalog).rawPtr
func catalogHandle(*googlesql.Catalog) uint64

//go:linkname typesHandle github.com/goccy/go-googlesql.(*TypeFactoryBase).rawPtr
func typesHandle(*googlesql.TypeFactoryBase) uint64

//go:linkname outputOf github.com/goccy/go-googlesql.newAnalyzerOutputNoFinalizer
func outputOf(handle uint64) *googlesql.AnalyzerOutput

// start makes an instance of the library for the engine. The caller must have entered the engine.
func (e *engine) start() {
	e.zoned = initLibrary()
	e.module = current
	e.libraries, e.pools = map[*Analyzer]*library{}, map[*schema.ProtoBundle]*descriptorPool{}
	var core *base.Module
	get(invoke(e.module, 0, 0, nil, func(c *base.Module, _, _ int32) (int64, error) {
		core = c
		return 0, nil
	}))
	core.MaxMem = engineMemory
	e.language = newLanguage(googlesql.NameResolutionModeNameResolutionDefault, statementKinds)
	e.definitions = newLanguage(googlesql.NameResolutionModeNameResolutionStrict, definitionKinds)
	e.builtIns = newBuiltIns(e)
	e.core = core
	e.pause()
}

func newLanguage(names googlesql.NameResolutionMode, statements []googlesql.ResolvedNodeKind) *googlesql.LanguageOptions {
	l := own(googlesql.NewLanguageOptions())
	do(l.SetProductMode(googlesql.ProductModeProductExternal))
	do(l.SetNameResolutionMode(names))
	do(l.DisableAllLanguageFeatures())
	for _, f := range features {
		do(l.EnableLanguageFeature(f))
	}
	do(l.SetSupportedStatementKinds(statements))
	return l
}

// enter lets the goroutine use the handles of the engine until the goroutine calls leave. enter first waits until no
// other goroutine is in an engine.
func (e *engine) enter() {
	if !entering.TryLock() {
		over := cpu.Waiting(e.ctx)
		entering.Lock()
		over()
	}
	current = e.module
	e.entered = time.Now()
}

func (e *engine) leave() { entering.Unlock() }

// rest is called at each step of the walk through a tree. When the goroutine has been in its engine for restAfter, rest
// lets other goroutines enter their engines. Then it ends the analysis of a heavy statement whose context has ended, or
// of a light statement that has used more than lightTime (see pool).
func (e *engine) rest() {
	if e.steps++; e.steps%stepsToRest != 0 || time.Since(e.entered) <= restAfter {
		return
	}
	e.pause()
	if err := e.ctx.Err(); err != nil && e.discard {
		panic(failure{err})
	}
	if !e.discard && e.spent() > lightTime {
		panic(failure{errSlow})
	}
}

// pause leaves the engine and enters it again, so that goroutines that wait to enter their engines can do so.
func (e *engine) pause() {
	e.leave()
	e.enter()
}

// listed returns the elements of a list of the library. For a heavy statement (see pool) it gets the elements one by
// one and calls rest after each. For a light statement it gets all at once, which costs less.
func listed[T any](e *engine, all func() ([]T, error), size func() (int32, error), at func(int32) (T, error)) []T {
	if !e.discard {
		return get(all())
	}
	list := make([]T, get(size()))
	for i := range list {
		list[i] = get(at(int32(i)))
		e.rest()
	}
	return list
}

// library returns the engine's catalog for the schema of an Analyzer. It makes the catalog if there is none.
func (e *engine) library(a *Analyzer) *library {
	if e.libraries[a] == nil {
		e.makeRoom()
		e.libraries[a] = newLibrary(e, a, a.catalog.ProtoBundle())
	}
	return e.libraries[a]
}

// makeRoom frees one schema if the engine holds maxLibraries schemas. An engine can hold so many while tables are
// created one by one, because each new schema version that a statement uses stays in the engine.
func (e *engine) makeRoom() {
	if len(e.libraries) < maxLibraries {
		return
	}
	for a, l := range e.libraries {
		delete(e.libraries, a)
		l.free()
		return
	}
}

// forget frees the schemas of the listed Analyzers.
func (e *engine) forget(list []*Analyzer) {
	defer func() {
		if recover() != nil {
			e.discard = true // the library has broken down
		}
	}()
	e.enter()
	defer e.leave()
	for _, a := range list {
		if l := e.libraries[a]; l != nil {
			delete(e.libraries, a)
			l.free()
		}
	}
}

// Numbers of the library's call AnalyzeStatement, and of the fields in the call's request and reply.
const (
	analyzeService, analyzeMethod = 0, 2

	fieldText, fieldOptions, fieldCatalog, fieldTypes = 1, 2, 3, 4
	fieldOutput, fieldError                           = 2, 15
)

// analyze lets the library resolve a statement. Meanwhile other goroutines may enter their engines. If the library
// refuses the statement, analyze returns the library's error. The library stops when the context of a heavy statement
// ends, and when a light statement takes longer than lightTime (see pool); analyze then panics with a failure.
func (e *engine) analyze(sql string, options *googlesql.AnalyzerOptions, catalog *googlesql.Catalog, types *googlesql.TypeFactory) (*googlesql.AnalyzerOutput, error) {
	request := make([]byte, 0, len(sql)+64)
	request = protowire.AppendTag(request, fieldText, protowire.BytesType)
	request = protowire.AppendString(request, sql)
	request = appendHandle(request, fieldOptions, optionsHandle(options))
	request = appendHandle(request, fieldCatalog, catalogHandle(catalog))
	request = appendHandle(request, fieldTypes, typesHandle(types.TypeFactoryBase))

	e.leave()
	defer e.enter()
	stop, why := e.limit()
	defer stop() // if the library panics, its supervision must end too
	reply, err := invoke(e.module, analyzeService, analyzeMethod, request, wasm.Inv_0_2)
	interrupted := !stop()
	if !interrupted && err == nil {
		return outputIn(reply)
	}
	e.discard = true
	switch {
	case interrupted:
		err = why()
	// The library doubles its memory when it needs more. Here one more doubling would exceed the maximum.
	case uint64(len(e.core.Memory)) > e.core.MaxMem/2:
		err = usererror.SQLTooComplex(int64(e.core.MaxMem))
	}
	panic(failure{err})
}

// limit makes the library stop when the context of a heavy statement ends, or when a light statement has used
// lightTime (see pool). The function stop ends this supervision. It returns false if the library was stopped; the
// function why then returns the reason.
func (e *engine) limit() (stop func() bool, why func() error) {
	if e.discard {
		return context.AfterFunc(e.ctx, e.interrupt), e.ctx.Err
	}
	e.loaded = e.work.SoFar()
	return e.limitLight(), func() error { return errSlow }
}

// spent returns the CPU time that a light statement has used since it called the library.
func (e *engine) spent() time.Duration { return e.work.SoFar() - e.loaded }

// limitLight makes the library stop when a light statement has used lightTime of CPU. It measures CPU time, so that
// time in which other programs use the cores does not count.
func (e *engine) limitLight() (stop func() bool) {
	var mu sync.Mutex
	ended := false
	var look func()
	look = func() {
		mu.Lock()
		defer mu.Unlock()
		if ended {
			return
		}
		if left := lightTime - e.spent(); left > 0 {
			time.AfterFunc(max(left, time.Millisecond), look)
			return
		}
		ended = true
		e.interrupt()
	}
	timer := time.AfterFunc(lightTime, look)
	return func() bool {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		interrupted := ended
		ended = true
		return !interrupted
	}
}

// interrupt makes the library fail at its next indirect call, by emptying the module's table of functions. The
// instance is unusable after that. The library reads the length of the table without a lock and may see the change
// late. This race is intended.
//
//go:norace
func (e *engine) interrupt() { e.core.T0 = e.core.T0[:0] }

// appendHandle appends a handle as the library encodes it: a message whose field 1 is the handle's number.
func appendHandle(b []byte, field protowire.Number, handle uint64) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(protowire.SizeTag(1)+protowire.SizeVarint(handle)))
	b = protowire.AppendTag(b, 1, protowire.VarintType)
	return protowire.AppendVarint(b, handle)
}

// outputIn finds the statement, or the error, in a reply of the library.
func outputIn(reply []byte) (*googlesql.AnalyzerOutput, error) {
	for len(reply) > 0 {
		field, wireType, n := protowire.ConsumeTag(reply)
		if n < 0 {
			break
		}
		reply = reply[n:]
		value, n := protowire.ConsumeBytes(reply)
		switch {
		case wireType != protowire.BytesType:
			n = protowire.ConsumeFieldValue(field, wireType, reply)
		case field == fieldError:
			return nil, errors.New(string(value))
		case field == fieldOutput:
			_, _, n := protowire.ConsumeTag(value)
			if handle, n := protowire.ConsumeVarint(value[max(n, 0):]); n > 0 {
				return outputOf(handle), nil
			}
		}
		if n < 0 {
			break
		}
		reply = reply[n:]
	}
	panic(failure{errors.New("the library's reply has no statement")})
}
