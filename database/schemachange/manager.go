package schemachange

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/database/background"
	"github.com/crowfoot-db/crowfoot/database/job"
	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/database/sequence"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Config configures the Manager of a database.
type Config struct {
	Name    string // name of the database, for errors
	Space   mvcc.Space
	Created time.Time // when the database was created; the streams of the first schema version begin then
	Store   kv.Store
	Rows    *mvcc.Versions
	Oracle  *txn.Oracle
	Clock   func() time.Time
	Log     *slog.Logger
	Task    *cpu.Task       // measures the CPU time of schema changes
	Prepare *prepare.Config // configures the Preparers of all versions

	Sequences  *sequence.Counters
	Streams    *changestream.Log
	Background *background.Work // a schema change runs within Background.WhileOpen
	// Bounds returns the bounds of the partitions of a change stream.
	Bounds func(*schema.Catalog, *schema.ChangeStream) [][]byte
	// Changed is called after a new schema version was published, before the schema change continues.
	Changed func()
	// Resumes reports whether an operation will be resumed after a restart. began is when the operation began.
	Resumes func(operation string, began time.Time) (bool, error)
}

// Manager holds the schema versions of a database and makes new ones.
//
// A schema change replaces the list of versions and never modifies the list. So a request that has a catalog may use it
// while a schema change publishes the next one.
type Manager struct {
	cfg      Config
	jobs     job.Runner                 // set by Begin
	versions atomic.Pointer[[]*Version] // oldest first, never empty
	Token    background.Token           // held while a schema change runs
	// interrupted is the schema change that the last process left unfinished and that its operation will resume; nil if
	// there is none. The next schema change sets it to nil, and either resumes the interrupted change or undoes it.
	interrupted atomic.Pointer[rowsChange]
}

// New returns the Manager of a new database whose schema is not stored yet. The first version is valid from timestamp 0
// on.
func New(cfg Config, first *schema.Catalog) *Manager {
	m := &Manager{cfg: cfg, Token: background.NewToken()}
	m.versions.Store(&[]*Version{m.newVersion(first, 0)})
	return m
}

// StoreFirst adds the first version of a new database to batch b, and commits all of b.
func (m *Manager) StoreFirst(b kv.Batch) error {
	return m.commitVersion(b, m.Newest(), nil, publication{}, kv.Batch.Commit)
}

// Open returns the Manager of a stored database. FindInterrupted must be called before transactions begin.
func Open(cfg Config) (*Manager, error) {
	m := &Manager{cfg: cfg, Token: background.NewToken()}
	list, err := m.loadVersions()
	if err != nil {
		return nil, err
	}
	m.versions.Store(&list)
	return m, nil
}

// Begin sets the runner of the jobs of schema changes. No schema change may run before.
func (m *Manager) Begin(jobs job.Runner) { m.jobs = jobs }

// Recover undoes the change that the last process left unfinished, unless its operation will resume it. If the store
// refuses the writes, Recover succeeds, and the next schema change undoes the unfinished one.
func (m *Manager) Recover(ctx context.Context) error {
	if m.interrupted.Load() != nil {
		return nil
	}
	if err := m.revertTentative(ctx); err != nil && !errors.Is(err, kv.ErrRefused) {
		return err
	}
	return nil
}

// Close frees the memory of what was prepared for all versions. No schema change may be running.
func (m *Manager) Close() {
	for _, v := range m.Versions() {
		v.Preparer.Close()
	}
}

// Versions returns the versions that are kept, oldest first. The caller must not modify the list.
func (m *Manager) Versions() []*Version { return *m.versions.Load() }

// Newest returns the newest version.
func (m *Manager) Newest() *Version {
	list := m.Versions()
	return list[len(list)-1]
}

// Catalog returns the catalog of the newest version.
func (m *Manager) Catalog() *schema.Catalog { return m.Newest().Catalog }

// Settled returns the newest version that is not tentative; nil if it is no longer kept.
func (m *Manager) Settled() *Version {
	for _, v := range slices.Backward(m.Versions()) {
		if !v.Tentative() {
			return v
		}
	}
	return nil
}

// SettledCatalog returns the newest catalog whose schema change has ended. If no such version is kept, it returns the
// newest catalog.
func (m *Manager) SettledCatalog() *schema.Catalog {
	if v := m.Settled(); v != nil {
		return v.Catalog
	}
	return m.Catalog()
}

// CatalogAt returns the schema that was valid at a timestamp, for reads at that timestamp. It fails if that version has
// been collected since the timestamp was chosen.
func (m *Manager) CatalogAt(at mvcc.Timestamp) (*schema.Catalog, error) {
	list := m.Versions()
	if newest := list[len(list)-1]; newest.At <= at {
		return newest.Catalog, nil
	}
	after := sort.Search(len(list), func(i int) bool { return list[i].At > at })
	if after == 0 {
		return nil, usererror.StalenessExceeded(at.Time(), list[0].At.Time())
	}
	return list[after-1].Catalog, nil
}

// Version returns the version of a catalog. It fails if the version was collected while its catalog was in use.
func (m *Manager) Version(c *schema.Catalog) (*Version, error) {
	list := m.Versions()
	if newest := list[len(list)-1]; newest.Catalog == c {
		return newest, nil
	}
	at, found := slices.BinarySearchFunc(list, c.Version, func(v *Version, number schema.Version) int {
		return cmp.Compare(v.Catalog.Version, number)
	})
	if found && list[at].Catalog == c {
		return list[at], nil
	}
	return nil, usererror.SchemaCollected(list[0].At.Time())
}
