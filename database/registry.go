package database

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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

// Config is what a Registry needs from outside.
type Config struct {
	Clock func() time.Time
	Log   *slog.Logger
	// NoStatistics says that nothing is collected for SPANNER_SYS.
	NoStatistics bool
	// Spill is where statements keep rows that are too many for memory; nil: those that need more fail.
	Spill *spill.Dir
	// Memory is charged what analyzing heavy statements takes; nil counts nothing.
	Memory *memory.Budget
}

// Registry holds every instance and database of one store.
//
// Look-ups of databases are lock-free: they happen in every request. Changes
// are serialised by mu and durable before they take effect.
type Registry struct {
	store    kv.Store
	versions *mvcc.Store
	oracle   *txn.Oracle
	cfg      Config
	account  *cpu.Account
	identity Identity

	mu        sync.Mutex
	instances map[string]*Instance
	creating  map[string]bool // names of databases that are being made, see Creation
	nextSpace mvcc.Space
	databases atomic.Pointer[map[string]*Database] // by name; replaced, never changed
	running   context.Context                      // until Close
	closing   context.CancelFunc
	tasks     sync.WaitGroup
	deleting  chan struct{} // holds a token while expired rows of a database are deleted
}

// Open upgrades a store to the last format, reads its metadata and opens its databases.
func Open(store kv.Store, cfg Config) (*Registry, error) {
	if err := upgrade(store, cfg.Log); err != nil {
		return nil, err
	}
	oracle, err := txn.NewOracle(store, cfg.Clock)
	if err != nil {
		return nil, fmt.Errorf("open timestamp oracle: %w", err)
	}
	r := &Registry{
		store:     store,
		versions:  mvcc.New(store),
		oracle:    oracle,
		cfg:       cfg,
		account:   cpu.NewAccount(),
		instances: map[string]*Instance{},
		creating:  map[string]bool{},
		nextSpace: 1,
		deleting:  make(chan struct{}, 1),
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

// CPU is the account of the process's CPU time: work in the background is measured by its tasks.
func (r *Registry) CPU() *cpu.Account { return r.account }

// AllDatabases lists the databases of all instances, in no order.
func (r *Registry) AllDatabases() []*Database {
	return slices.Collect(maps.Values(*r.databases.Load()))
}

// Names of tasks in the background, as metrics show them.
const (
	taskCollection   = "version_collection"
	taskRowDeletion  = "row_deletion_policy"
	taskSchemaChange = "schema_change"
	taskSplits       = "split_by_size"
	taskStatistics   = "statistics"
)

// Close stops background work and waits for it. The store stays open.
func (r *Registry) Close() error {
	r.closing()
	r.tasks.Wait()
	for _, d := range *r.databases.Load() {
		d.background.end()
		d.closeStatistics()
	}
	return r.oracle.Close()
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

// noDatabase says why there is no database of this name: the name is none, its instance does not exist, or the database does not.
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

// DropDatabase removes a database with everything in it.
func (r *Registry) DropDatabase(ctx context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := (*r.databases.Load())[name]
	if d == nil {
		return r.noDatabase(name)
	}
	if d.DropProtection() {
		return usererror.DropProtected(name)
	}
	return r.drop(d)
}

func (r *Registry) drop(d *Database) error {
	r.publish(func(m map[string]*Database) { delete(m, d.name) })
	d.close()
	b := meta.NewBatch(r.store)
	defer b.Close()
	if err := b.Delete(meta.Key(meta.Database, d.name)); err != nil {
		return err
	}
	for _, kind := range []string{meta.Operation, meta.Applied} {
		if err := b.DeleteRange(meta.Range(kind + d.name + "/")); err != nil {
			return err
		}
	}
	if err := b.DeleteRange(meta.Range(meta.OfSpace(meta.Schema, d.space))); err != nil {
		return err
	}
	if err := b.DeleteRange(meta.Range(meta.OfSpace(meta.Table, d.space))); err != nil {
		return err
	}
	if err := b.DeleteRange(meta.Range(meta.OfSpace(meta.SplitPoint, d.space))); err != nil {
		return err
	}
	if err := b.DeleteRange(meta.Range(meta.OfSpace(meta.Session, d.space))); err != nil {
		return err
	}
	if err := b.DeleteRange(stats.Range(d.space)); err != nil {
		return err
	}
	if err := d.rows.Drop(b); err != nil {
		return err
	}
	if err := b.Commit(); err != nil {
		return fmt.Errorf("drop database: %w", err)
	}
	return nil
}

// publish replaces the map of databases by a changed copy.
func (r *Registry) publish(change func(map[string]*Database)) {
	next := maps.Clone(*r.databases.Load())
	change(next)
	r.databases.Store(&next)
}

// newSpace gives out a key space. It is never given out again, so that no key
// of a dropped database can appear in a later one.
func (r *Registry) newSpace() (mvcc.Space, error) {
	space := r.nextSpace
	b := meta.NewBatch(r.store)
	defer b.Close()
	if err := b.Put(meta.Key(meta.NextSpace), binary.BigEndian.AppendUint32(nil, uint32(space+1))); err != nil {
		return 0, err
	}
	if err := b.Commit(); err != nil {
		return 0, fmt.Errorf("reserve key space: %w", err)
	}
	r.nextSpace++
	return space, nil
}
