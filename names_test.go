package crowfoot

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// retired holds identifiers that must not be used in the code, because readers had to look them up. For each
// identifier, it holds the names that replaced it. For each of these names, it holds a source: a document or a program
// that readers know and that uses the name.
var retired = map[string][]struct{ name, from string }{
	"Brief": {
		{"PointReads", "Spanner docs: point read; Cloud Spanner \"point reads\""},
	},
	"away": {
		{"timeout", "Go: context.WithTimeout(timeout)"},
		{"goAway", "HTTP/2: GOAWAY frame"},
		{"stalledServer", "gRPC/Pub/Sub: stalled server; pstest.Reactor"},
	},
	"flight": {
		{"flightSQL", "Arrow: flightsql.Client"},
		{"flightClient", "Arrow: flight.Client"},
		{"flightConn", "gRPC: ClientConn"},
		{"pending", "Pebble: commitPipeline pending; CockroachDB: pending txn"},
		{"dialFlight", "Go: net.Dial; bench has dialFlight too"},
		{"prepareCall", "Go: x/sync/singleflight \"call\""},
		{"newFlightClient", "Go: NewX constructor"},
		{"pendingCommit", "Pebble: commitQueue / pending batch"},
	},
	"gap": {
		{"interval", "queueing theory: inter-arrival interval"},
		{"emitUnchanged", "LSM merge iterators: emit"},
	},
	"goes": {
		{"continued", "Go: continue; TCP/HTTP continuation"},
		{"cascaded", "SQL: ON DELETE CASCADE"},
	},
	"grow": {
		{"tryGrow", "memory.Account.TryGrow; CockroachDB: BoundAccount.Grow"},
		{"fill", "Go: \"fill\" a buffer"},
		{"resize", "Arrow: Builder.Resize"},
		{"appendRow", "Go: append"},
		{"resizeStates", "Arrow: Builder.Resize"},
		{"acquireOrExtend", "Go: semaphore.Acquire; extend as in rangeTree.extend"},
		{"addWriteBytes", "size of the writes"},
		{"growBitmap", "Arrow: validity bitmap"},
	},
	"halfOf": {
		{"splitRows", "B-tree: split point"},
	},
	"hits": {
		{"recentHits", "cache hits (Pebble: CacheMetrics.Hits)"},
		{"runIntersects", "CockroachDB: opt.ColSet.Intersects"},
	},
	"keeper": {
		{"cacheBudget", "RocksDB/Pebble: cache size, memory.Budget"},
	},
	"land": {
		{"finish", "transaction finish (CockroachDB: EndTxn / finish)"},
	},
	"landed": {
		{"waitErr", "Go: xErr"},
		{"awaitCommits", "as awaitClock; PostgreSQL: wait for transactions"},
		{"finish", "as Oracle.finish"},
		{"commits", "PostgreSQL: commit counter (xactCompletionCount)"},
	},
	"lane": {
		{"feedRunner", "worker/runner of a feed (Kafka Connect: task; Go: runner)"},
	},
	"lay": {
		{"applyChange", "redo/delta apply (LSM: apply a delta)"},
		{"applyWrites", "database: apply writes"},
	},
	"meets": {
		{"intersects", "CockroachDB: opt.ColSet.Intersects"},
		{"mayOverlap", "CockroachDB: roachpb.Span.Overlaps; Bloom filter: MayContain"},
		{"want", "Go: table tests"},
		{"overlaps", "CockroachDB: roachpb.Span.Overlaps"},
	},
	"muchOf": {
		{"rewriteThreshold", "PostgreSQL: autovacuum_analyze_threshold"},
	},
	"outlived": {
		{"Obsolete", "Pebble: obsolete tables"},
		{"FindObsolete", "Pebble: collect obsolete files"},
		{"expired", "TTL: expired"},
	},
	"overcounted": {
		{"recount", "statistics: recount"},
	},
	"passOver": {
		{"recordNoOp", "databases: no-op statement"},
	},
	"presence": {
		{"connectivity", "gRPC: package connectivity"},
	},
	"secure": {
		{"lockNextKey", "InnoDB: next-key lock"},
	},
	"seen": {
		{"counts", "Go: word count idiom"},
		{"chosen", "sampling: chosen set"},
		{"parts", "set named by its elements"},
		{"hasValue", "SQL aggregates: \"no value yet\" flag"},
		{"scanned", "Go: bufio.Scanner"},
		{"keys", "set named by its elements"},
		{"visited", "graph traversal: visited set"},
		{"places", "set named by its elements (bulk.Place)"},
		{"variables", "environment variables"},
		{"rows", "set named by its elements"},
		{"delivered", "messaging: delivered"},
		{"lastKey", "LSM iterators: last key"},
		{"rowKeys", "set named by its elements"},
		{"entries", "index entries"},
		{"recorded", "change stream records"},
		{"roots", "Spanner: root table"},
		{"printed", "set named by what happened"},
		{"values", "column values"},
		{"progress", "schemachange.Operation.Progress"},
		{"partKeys", "set named by its elements"},
		{"count", "Go: count"},
		{"offsetCount", "count of the field offsets"},
		{"used", "Expr.Uses"},
		{"texts", "set named by its elements"},
		{"clauseTypes", "set named by its elements"},
		{"lastSent", "Go: last value of a counter"},
		{"reply", "gRPC: reply"},
		{"listed", "information schema lists"},
		{"visible", "PostgreSQL: visible rows"},
		{"ok", "Go: comma ok"},
		{"updated", "SQL: updated rows"},
		{"matched", "hash join: matched (PostgreSQL: HeapTupleHeaderHasMatch)"},
		{"buckets", "hash table: buckets"},
		{"filled", "array slots that are filled"},
		{"observedRead", "Jepsen/Elle: observed read"},
		{"received", "messaging: received"},
		{"called", "Go tests: channel closed at an event"},
	},
	"serve": {
		{"runServer", "Go: run"},
		{"startServer", "Go: start"},
		{"run", "as exportSettings.run"},
		{"handle", "Go: http.Handler; gRPC: handler"},
		{"handler", "Go: http.Handler"},
		{"runClients", "test clients"},
		{"grantWaiting", "PostgreSQL: ProcLockWakeup / GrantLock"},
	},
	"stretch": {
		{"currentLevels", "levels of the current run of operators"},
		{"extend", "interval tree: extend"},
	},
	"take": {
		{"reserve", "CockroachDB: BytesMonitor.reserveBytes"},
		{"scan", "Go: sql.Rows.Scan"},
		{"pop", "queue: pop"},
		{"nextTransaction", "Go: Next"},
		{"next", "Go: bytes.Buffer.Next"},
		{"fetch", "SQL: FETCH"},
		{"appendRows", "Arrow: builder append"},
		{"nextValue", "PostgreSQL: nextval"},
		{"wantNext", "Go tests: want"},
		{"drain", "Go/CockroachDB: drain a buffer"},
		{"emit", "dataflow: emit"},
		{"copyAnswer", "C interop: copy out"},
		{"tryAdmit", "CockroachDB: admission control; Go: TryLock"},
		{"setOtherBytes", "Go: setter"},
		{"get", "Go: sync.Pool.Get"},
		{"nextPlace", "ring buffer: next slot"},
		{"revoke", "SQL: REVOKE"},
		{"detachAccount", "C++/ORM: detach (hand over ownership)"},
		{"addToken", "lexer: token"},
		{"addArgs", "aggregate: Add(args)"},
		{"reset", "Go: bytes.Reader.Reset"},
		{"addKeyed", "sorter: add a keyed row"},
		{"popKey", "queue: pop"},
		{"appendTrue", "Go: append; selection vector"},
		{"accept", "Go: text/template/parse lexer.accept"},
		{"markUsed", "access path: used conditions"},
		{"addStep", "join order search: step"},
		{"allocBlock", "file systems: block allocation"},
		{"readChunk", "read a chunk"},
		{"begin", "BEGIN; CockroachDB: txn begin"},
		{"batchSize", "messaging: batch size"},
		{"popReady", "queue: pop"},
	},
	"takeBack": {
		{"revert", "git/PostgreSQL: revert"},
	},
	"taken": {
		{"issued", "load generators: operations issued"},
		{"used", "memory.Account.used"},
		{"submitted", "queues: submitted work"},
		{"dead", "the field that it copies"},
		{"reserved", "memory: reserved bytes"},
		{"added", "rows added"},
		{"next", "the counter's next"},
		{"values", "sequence values"},
		{"queryInTx", "Go: database/sql Tx.Query"},
		{"accepted", "callback result"},
		{"otherBytes", "disk usage of others"},
		{"reservedBytes", "CockroachDB: reserved bytes"},
		{"sequenceNeeds", "Catalog.SequenceNeeds"},
		{"existing", "SQL: existing object"},
		{"grown", "heap growth"},
		{"profiled", "sampling: profiled executions"},
		{"commitHandle", "handle of a pending commit"},
		{"handled", "Handler: handled"},
		{"popped", "queue: pop"},
	},
	"turn": {
		{"roundLatency", "benchmarks: round; Measure.latency"},
		{"runRound", "benchmarks: round"},
		{"work", "worker pools: work"},
		{"rotate", "log rotation; generational cache"},
		{"StepMu", "CockroachDB: Replica.raftMu (a mutex named by what it guards)"},
		{"sem", "Go: x/sync/semaphore"},
		{"mu", "Go: mu sync.Mutex"},
		{"awaitEarlier", "as Oracle.awaitClock"},
		{"acquireSlot", "Go: semaphore.Acquire"},
		{"slotCtx", "Go: ctx"},
		{"ready", "Go: x/sync/semaphore waiter.ready"},
		{"i", "Go: loop index"},
		{"ticker", "Go: time.Ticker"},
	},
	"flights": {
		{"pending", "Pebble: commitPipeline pending"},
		{"prepareGroup", "x/sync/singleflight: Group"},
	},
	"Land": {
		{"Finish", "CockroachDB: finish a transaction"},
	},
	"landings": {
		{"recentCommits", "Pebble: recent versions"},
	},
	"keptLandings": {
		{"keptCommits", "as recentCommits"},
	},
	"Landed": {
		{"Commits", "a count of commits"},
	},
	"Outlived": {
		{"Expired", "TTL: expired rows"},
	},
	"newKeeper": {
		{"NewBudget", "Go: NewX constructor"},
	},
	"takeSlowly": {
		{"nextValueSlow", "Go: the slow path of a lock, lockSlow"},
	},
	"takeChunk": {
		{"fetchChunk", "SQL: FETCH"},
	},
	"takeLocked": {
		{"reserveLocked", "as reserve"},
	},
	"tryTake": {
		{"tryReserve", "as reserve; Go: TryLock"},
	},
	"give": {
		{"release", "Go: semaphore.Release"},
		{"releaseBytes", "CockroachDB: BytesMonitor.releaseBytes"},
		{"put", "Go: sync.Pool.Put"},
		{"grant", "SQL: GRANT"},
		{"abandon", "as pendingCommit.abandon"},
		{"set", "Go setter"},
		{"send", "a stream: Send"},
	},
	"takeTurn": {
		{"acquire", "Go: semaphore.Acquire"},
	},
	"giveTurn": {
		{"release", "Go: semaphore.Release"},
	},
	"takeAgain": {
		{"reacquire", "Go: semaphore.Acquire, once more"},
	},
	"turnLength": {
		{"roundLength", "benchmarks: rounds"},
	},
	"addToTurn": {
		{"addToRound", "benchmarks: rounds"},
	},
	"lanes": {
		{"runners", "as feedRunner"},
	},
	"laneOver": {
		{"runnerOver", "as feedRunner"},
	},
	"newPresence": {
		{"newConnectivity", "gRPC: package connectivity"},
	},
	"errAway": {
		{"errUnavailable", "gRPC: UNAVAILABLE"},
	},
	"takeBackTentative": {
		{"revertTentative", "Git: revert"},
	},
	"takeBackInterrupted": {
		{"revertInterrupted", "Git: revert"},
	},
	"wasTaken": {
		{"wasAccepted", "HTTP: Accepted"},
	},
	"seenAt": {
		{"lastSentAt", "a connection: last sent at"},
	},
	"isBrief": {
		{"isPointReads", "Spanner: point read"},
	},
}

// TestRetiredNames fails if a retired identifier is declared or used, or if a name that replaced one is not used. An
// imported package may have a retired identifier as its name, because we cannot change that name: for example, Arrow's
// package flight.
func TestRetiredNames(t *testing.T) {
	used := map[string]bool{}
	eachFile(t, func(fset *token.FileSet, file *ast.File) {
		allowed := map[*ast.Ident]bool{file.Name: true}
		imported := map[string]bool{}
		for _, i := range file.Imports {
			from, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			imported[from[strings.LastIndexByte(from, '/')+1:]] = true
			if i.Name != nil {
				allowed[i.Name] = true
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && imported[x.Name] {
					allowed[x] = true
				}
			case *ast.Ident:
				used[n.Name] = true
				if len(retired[n.Name]) > 0 && !allowed[n] {
					t.Errorf("%s: %s is retired", fset.Position(n.Pos()), n.Name)
				}
			}
			return true
		})
	})
	for old, names := range retired {
		for _, n := range names {
			if !used[n.name] {
				t.Errorf("%s replaced %s, but nothing has this name", n.name, old)
			}
		}
	}
}

// eachFile parses every Go file of the module and calls visit with it.
func eachFile(t *testing.T, visit func(*token.FileSet, *ast.File)) {
	t.Helper()
	fset := token.NewFileSet()
	files := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		visit(fset, file)
		return nil
	})
	if err != nil || files < 500 {
		t.Errorf("%d files were read: %v", files, err)
	}
}

// TestBuiltinNames fails if a variable, a constant, a parameter or a function of a package has the name of a
// predeclared identifier, because it hides that identifier. Methods and fields hide nothing.
func TestBuiltinNames(t *testing.T) {
	eachFile(t, func(fset *token.FileSet, file *ast.File) {
		check := func(names ...*ast.Ident) {
			for _, n := range names {
				if types.Universe.Lookup(n.Name) != nil {
					t.Errorf("%s: %s hides a predeclared identifier", fset.Position(n.Pos()), n.Name)
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, left := range n.Lhs {
					if name, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
						check(name)
					}
				}
			case *ast.RangeStmt:
				for _, e := range []ast.Expr{n.Key, n.Value} {
					if name, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
						check(name)
					}
				}
			case *ast.ValueSpec:
				check(n.Names...)
			case *ast.TypeSpec:
				check(n.Name)
			case *ast.FuncDecl:
				if n.Recv == nil {
					check(n.Name)
				}
			case *ast.FuncType:
				for _, list := range []*ast.FieldList{n.TypeParams, n.Params, n.Results} {
					if list == nil {
						continue
					}
					for _, f := range list.List {
						check(f.Names...)
					}
				}
			}
			return true
		})
	})
}
