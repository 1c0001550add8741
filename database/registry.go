package database

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/columnar"
	"github.com/crowfoot-db/crowfoot/database/background"
	"github.com/crowfoot-db/crowfoot/database/cache"
	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Config configures a Registry.
type Config struct {
	Clock func() time.Time
	Log   *slog.Logger
	// NoStatistics turns off the statistics of SPANNER_SYS.
	NoStatistics bool
	// Spill stores rows of statements that need more memory than they may use. If it is nil, such statements fail.
	Spill *spill.Dir
	// Memory is the budget to which the memory for analyzing heavy statements is charged. If it is nil, this memory is
	// not counted.
	Memory *memory.Budget
	// Kept is the budget for memory that outlives a request: prepared statements and sessions. If it is nil, this
	// memory is not counted.
	Kept *memory.Budget
}

// Registry holds every instance and database of one store.
//
// Every request looks up a database, so this look-up takes no lock. mu serialises changes of instances and databases; a
// change is durable before requests see it. A goroutine that waits for long work does not hold mu meanwhile.
type Registry struct {
	store       kv.Store
	versions    *mvcc.Store
	oracle      *txn.Oracle
	cfg         Config
	account     *cpu.Account
	identity    Identity
	cacheBudget *cache.Budget

	mu        sync.Mutex
	instances map[string]*Instance
	creating  map[string]bool     // names of databases that are being made: see Creation
	dropping  map[string]*Dropped // databases that are being erased, by name
	nextSpace mvcc.Space
	databases atomic.Pointer[map[string]*Database] // by name; the map is replaced, never changed
	running   context.Context                      // context of background work; Close ends it
	closing   context.CancelFunc
	tasks     sync.WaitGroup
	deleting  background.Token // held while expired rows of a database are deleted
	copying   background.Token // held while a chunk of a columnar copy is written
}

// Open upgrades a store to the latest format, reads its metadata and opens its databases.
func Open(store kv.Store, cfg Config) (*Registry, error) {
	if err := upgrade(store, cfg.Log); err != nil {
		return nil, err
	}
	oracle, err := txn.NewOracle(store, cfg.Clock)
	if err != nil {
		return nil, fmt.Errorf("open timestamp oracle: %w", err)
	}
	r := &Registry{
		store:       store,
		versions:    mvcc.New(store),
		oracle:      oracle,
		cfg:         cfg,
		account:     cpu.NewAccount(),
		cacheBudget: cache.NewBudget(cfg.Kept),
		instances:   map[string]*Instance{},
		creating:    map[string]bool{},
		dropping:    map[string]*Dropped{},
		nextSpace:   1,
		deleting:    background.NewToken(),
		copying:     background.NewToken(),
	}
	if cfg.NoStatistics {
		r.account = cpu.NoAccount()
	}
	if err := r.identify(); err != nil {
		return nil, err
	}
	r.running, r.closing = context.WithCancel(context.Background())
	databases := map[string]*Database{}
	if err := r.load(databases); err != nil {
		return nil, err
	}
	r.databases.Store(&databases)
	if r.instances[DefaultInstance] == nil {
		if _, err := r.CreateInstance(Instance{Name: DefaultInstance, DisplayName: "default", NodeCount: 1, ProcessingUnits: 1000}); err != nil {
			return nil, err
		}
	}
	r.tasks.Go(func() { r.collectGarbage(r.running) })
	r.tasks.Go(func() { r.splitBySize(r.running) })
	for _, d := range databases {
		d.begin(r.running)
	}
	return r, nil
}

func (r *Registry) load(databases map[string]*Database) error {
	if err := r.eraseOrphans(); err != nil {
		return err
	}
	err := meta.Each(r.store, meta.Instance, func(_ string, data []byte) error {
		i := new(Instance)
		if err := json.Unmarshal(data, i); err != nil {
			return fmt.Errorf("read instance: %w", err)
		}
		i.configure()
		r.instances[i.Name] = i
		return nil
	})
	if err != nil {
		return err
	}
	err = meta.Each(r.store, meta.NextSpace, func(_ string, data []byte) error {
		r.nextSpace = mvcc.Space(binary.BigEndian.Uint32(data))
		return nil
	})
	if err != nil {
		return err
	}
	return meta.Each(r.store, meta.Database, func(_ string, data []byte) error {
		var rec databaseRecord
		if err := json.Unmarshal(data, &rec); err != nil {
			return fmt.Errorf("read database: %w", err)
		}
		d, err := r.openDatabase(rec)
		if err != nil {
			return fmt.Errorf("open %s: %w", rec.Name, err)
		}
		databases[rec.Name] = d
		return nil
	})
}

// CPU returns the account of the process's CPU time. It measures each task of background work separately.
func (r *Registry) CPU() *cpu.Account { return r.account }

// AllDatabases lists the databases of all instances, in no order.
func (r *Registry) AllDatabases() []*Database {
	return slices.Collect(maps.Values(*r.databases.Load()))
}

// Names of background tasks, as metrics show them.
const (
	taskCollection   = "version_collection"
	taskCopies       = "columnar_policy"
	taskRowDeletion  = "row_deletion_policy"
	taskSchemaChange = "schema_change"
	taskSplits       = "split_by_size"
	taskStatistics   = "statistics"
)

// KeepSessions charges n bytes for new sessions. multiplexed says whether the new sessions are multiplexed ones.
// KeepSessions fails with RESOURCE_EXHAUSTED if all sessions together would then take more than the part of Config.Kept
// that is for sessions.
func (r *Registry) KeepSessions(n int64, multiplexed bool) error {
	return r.cacheBudget.KeepSessions(n, multiplexed)
}

// FreeSessions gives back n bytes that KeepSessions has charged.
func (r *Registry) FreeSessions(n int64) { r.cacheBudget.FreeSessions(n) }

// Kept returns the bytes that prepared statements and sessions use, and the limit of these bytes.
func (r *Registry) Kept() memory.Usage {
	if r.cfg.Kept == nil {
		return memory.Usage{}
	}
	return r.cfg.Kept.Usage()
}

// Close stops background work and waits for it to end. It does not close the store.
func (r *Registry) Close() error {
	r.closing()
	r.tasks.Wait()
	var failed error
	for _, d := range *r.databases.Load() {
		d.background.End()
		d.closeStatistics()
		failed = errors.Join(failed, d.sequences.Close())
	}
	return errors.Join(failed, r.oracle.Close())
}

// Database finds a database by its full name, projects/P/instances/I/databases/D.
func (r *Registry) Database(name string) (*Database, error) {
	if d := (*r.databases.Load())[name]; d != nil {
		return d, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return nil, r.noDatabase(name)
}

// noDatabase returns the error for a database that was not found: the name is invalid, its instance does not exist, or
// the database does not.
func (r *Registry) noDatabase(name string) error {
	if err := CheckDatabaseName(name); err != nil {
		return err
	}
	instance, _, _ := strings.Cut(name, "/databases/")
	if _, err := r.instance(instance); err != nil {
		return err
	}
	return usererror.DatabaseNotFound(name)
}

// Databases lists the databases of an instance by name.
func (r *Registry) Databases(instance string) ([]*Database, error) {
	if _, err := r.Instance(instance); err != nil {
		return nil, err
	}
	return r.databasesOf(instance), nil
}

func (r *Registry) databasesOf(instance string) []*Database {
	var list []*Database
	for name, d := range *r.databases.Load() {
		if strings.HasPrefix(name, instance+"/databases/") {
			list = append(list, d)
		}
	}
	sort.Slice(list, func(a, b int) bool { return list[a].Name() < list[b].Name() })
	return list
}

// erase adds to batch b the deletion of all stored data of the database that has this key space, except its record and
// its operations. From this call on, every new read of the key space fails with the error in the parameter gone, even
// in a request that began earlier.
func (r *Registry) erase(b kv.Batch, space mvcc.Space, gone error) error {
	for _, kind := range []string{meta.Schema, meta.Table, meta.Counter, meta.SplitPoint, meta.Session} {
		if err := b.DeleteRange(meta.Range(meta.OfSpace(kind, space))); err != nil {
			return err
		}
	}
	if err := errors.Join(b.DeleteRange(stats.Range(space)), changestream.Erase(b, space), columnar.Erase(b, space)); err != nil {
		return err
	}
	return r.versions.Drop(b, space, gone)
}

// eraseOrphans erases the key spaces of dropped databases. If the store refuses writes at the moment, a later start
// erases them.
func (r *Registry) eraseOrphans() error {
	b := meta.NewBatch(r.store)
	defer b.Close()
	some := false
	err := meta.Each(r.store, meta.Orphan, func(name string, _ []byte) error {
		some = true
		space, err := strconv.ParseUint(strings.TrimPrefix(name, meta.Orphan), 10, 32)
		if err != nil {
			return fmt.Errorf("read number of key space: %w", err)
		}
		return errors.Join(r.erase(b, mvcc.Space(space), mvcc.ErrCollected), b.Delete(meta.Key(name)))
	})
	if err != nil || !some {
		return err
	}
	if err := b.Commit(); err != nil && !errors.Is(err, kv.ErrRefused) {
		return fmt.Errorf("erase key spaces of no database: %w", err)
	}
	return nil
}

func orphanKey(space mvcc.Space) []byte {
	return meta.Key(meta.Orphan, strconv.FormatUint(uint64(space), 10))
}

// publish replaces the map of databases by a changed copy. The caller holds mu.
func (r *Registry) publish(change func(map[string]*Database)) {
	next := maps.Clone(*r.databases.Load())
	change(next)
	r.databases.Store(&next)
}
