package crowfoot_test

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/kv"
)

var writeFormat = flag.String("write-format", "", "executable of a release that stores a data directory, for TestFormats of later ones")

// formatDatabases are the databases of a stored data directory. The second is empty.
var formatDatabases = []string{"projects/p/instances/i/databases/music", "projects/p/instances/other/databases/small"}

// TestWriteFormat is a tool for releases and tests nothing. It makes a release's executable write a data directory,
// kills it, and stores the directory and the rows that a client reads from it:
//
//	go test . -run TestWriteFormat -write-format /path/of/crowfoot
func TestWriteFormat(t *testing.T) {
	if *writeFormat == "" {
		t.Skip("runs when a release is made")
	}
	data := filepath.Join(t.TempDir(), "data")
	for _, fill := range []func(*testing.T, *formatClients){fillFormat, changeFormat} { // the first data are in tables, the rest in the log
		server := startExecutable(t, data)
		clients := connectFormat(t)
		fill(t, clients)
		clients.close()
		kill(t, server)
	}
	mark, err := os.ReadFile(filepath.Join(data, "CROWFOOT"))
	if err != nil {
		t.Fatal(err)
	}
	var format kv.Format
	if _, err := fmt.Sscanf(string(mark), "crowfoot data directory, format %d\n", &format); err != nil {
		t.Fatalf("the mark says %q: %v", mark, err)
	}
	storeFormat(t, data, formatFile(format, "tgz"))

	startExecutable(t, data)
	if err := os.WriteFile(formatFile(format, "txt"), []byte(dumpFormat(t)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// formatFile returns the path of a format's file in testdata: tgz is the directory, txt the rows in it.
func formatFile(f kv.Format, ending string) string {
	return filepath.Join("testdata", "formats", fmt.Sprintf("%d.%s", f, ending))
}

// startExecutable starts the release's executable and points clients at it.
func startExecutable(t *testing.T, data string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(*writeFormat, "start", "--data", data, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0",
		"--database", formatDatabases[0], "--database", formatDatabases[1])
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	var address, http string
	if _, err := fmt.Sscanf(line, "crowfoot: ready grpc=%s http=%s", &address, &http); err != nil {
		t.Fatalf("ready line %q: %v", line, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SPANNER_EMULATOR_HOST", address)
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// formatSchema creates tables with every type and every kind of constraint and index.
var formatSchema = []string{
	`CREATE TABLE Types (
		Id INT64 NOT NULL, B BOOL, I INT64, F32 FLOAT32, F64 FLOAT64, N NUMERIC, S STRING(MAX), Short STRING(10), Y BYTES(MAX),
		D DATE, T TIMESTAMP, J JSON, U UUID,
		Bools ARRAY<BOOL>, Ints ARRAY<INT64>, Floats32 ARRAY<FLOAT32>, Floats ARRAY<FLOAT64>, Numbers ARRAY<NUMERIC>, Strings ARRAY<STRING(MAX)>, Blobs ARRAY<BYTES(MAX)>,
		Days ARRAY<DATE>, Times ARRAY<TIMESTAMP>, Jsons ARRAY<JSON>, Uuids ARRAY<UUID>,
		Changed TIMESTAMP OPTIONS (allow_commit_timestamp = true)
	) PRIMARY KEY (Id DESC)`,
	`CREATE TABLE Keys (B BOOL, I INT64, F64 FLOAT64, N NUMERIC, S STRING(MAX), Y BYTES(MAX), D DATE, T TIMESTAMP, U UUID, V INT64)
		PRIMARY KEY (B, I DESC, F64, N DESC, S, Y DESC, D, T DESC, U)`,
	`CREATE TABLE Singers (
		SingerId INT64 NOT NULL, First STRING(100) NOT NULL, Last STRING(100) NOT NULL DEFAULT ('unknown'),
		Name STRING(MAX) AS (CONCAT(First, ' ', Last)) STORED, Initial STRING(MAX) AS (SUBSTR(First, 1, 1)),
		CONSTRAINT HasName CHECK (LENGTH(First) > 0)
	) PRIMARY KEY (SingerId)`,
	`CREATE TABLE Albums (SingerId INT64 NOT NULL, AlbumId INT64 NOT NULL, Title STRING(MAX), Price NUMERIC)
		PRIMARY KEY (SingerId, AlbumId DESC), INTERLEAVE IN PARENT Singers ON DELETE CASCADE`,
	`CREATE TABLE Songs (SingerId INT64 NOT NULL, AlbumId INT64 NOT NULL, Track INT64 NOT NULL, Seconds INT64)
		PRIMARY KEY (SingerId, AlbumId DESC, Track), INTERLEAVE IN PARENT Albums ON DELETE NO ACTION`,
	`CREATE TABLE Concerts (Venue STRING(36) NOT NULL DEFAULT (GENERATE_UUID()), SingerId INT64, Day DATE,
		CONSTRAINT Performer FOREIGN KEY (SingerId) REFERENCES Singers (SingerId) ON DELETE CASCADE) PRIMARY KEY (Venue)`,
	`CREATE TABLE Sessions (Id STRING(MAX), Until TIMESTAMP) PRIMARY KEY (Id), ROW DELETION POLICY (OLDER_THAN(Until, INTERVAL 30 DAY))`,
	`CREATE UNIQUE INDEX SingersByName ON Singers(Last, First DESC)`,
	`CREATE NULL_FILTERED INDEX AlbumsByTitle ON Albums(Title) STORING (Price)`,
	`CREATE INDEX SongsBySeconds ON Songs(SingerId, AlbumId DESC, Seconds DESC), INTERLEAVE IN Albums`,
	`ALTER DATABASE music SET OPTIONS (version_retention_period = '2h')`,
	`CREATE CHANGE STREAM Everything FOR ALL OPTIONS (retention_period = '7d')`,
	`CREATE CHANGE STREAM Names FOR Singers(First, Last)`,
}

// formatLaterSchema changes tables that already have rows.
var formatLaterSchema = []string{
	`ALTER TABLE Singers ADD COLUMN Born DATE DEFAULT (DATE '1970-01-01')`,
	`ALTER TABLE Singers ADD COLUMN Gone STRING(MAX)`,
	`CREATE INDEX SingersByBorn ON Singers(Born) STORING (Name)`,
	`CREATE INDEX Dropped ON Albums(Price)`,
	`CREATE TABLE DroppedTable (K INT64) PRIMARY KEY (K)`,
	`ALTER TABLE Albums ADD COLUMN Cents INT64 AS (CAST(Price * 100 AS INT64)) STORED`,
	`ALTER TABLE Concerts ALTER COLUMN Day DATE NOT NULL`,
	`ALTER TABLE Singers ADD CONSTRAINT NotBefore CHECK (Born >= DATE '1900-01-01')`,
	`ALTER TABLE Singers DROP COLUMN Gone`,
	`DROP INDEX Dropped`,
	`DROP TABLE DroppedTable`,
}

// formatClients are clients of the first database.
type formatClients struct {
	*spanner.Client
	admin *database.DatabaseAdminClient
}

func connectFormat(t *testing.T) *formatClients {
	t.Helper()
	ctx := context.Background()
	admin, err := database.NewDatabaseAdminClient(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c, err := spanner.NewClientWithConfig(ctx, formatDatabases[0], spanner.ClientConfig{DisableNativeMetrics: true})
	if err != nil {
		t.Fatal(err)
	}
	return &formatClients{Client: c, admin: admin}
}

func (c *formatClients) close() {
	c.Close()
	_ = c.admin.Close()
}

func (c *formatClients) changeSchema(t *testing.T, statements []string) {
	t.Helper()
	op, err := c.admin.UpdateDatabaseDdl(context.Background(), &databasepb.UpdateDatabaseDdlRequest{Database: formatDatabases[0], Statements: statements})
	if err != nil {
		t.Fatal(err)
	}
	if err := op.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func fillFormat(t *testing.T, c *formatClients) {
	t.Helper()
	c.changeSchema(t, formatSchema)
	apply(t, c, typeRows())
	apply(t, c, musicRows())
}

func changeFormat(t *testing.T, c *formatClients) {
	t.Helper()
	ctx := context.Background()
	c.changeSchema(t, formatLaterSchema)
	for _, dml := range []string{
		"UPDATE Singers SET Born = DATE '1980-05-05', Last = CONCAT(Last, '!') WHERE MOD(SingerId, 4) = 1",
		"DELETE FROM Singers WHERE SingerId = 3", // with its concerts
		"DELETE FROM Songs WHERE SingerId = 5 AND Track > 2",
		"INSERT INTO Types (Id, Changed) VALUES (100, PENDING_COMMIT_TIMESTAMP())",
	} {
		if _, err := c.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.Update(ctx, spanner.NewStatement(dml))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.PartitionedUpdate(ctx, spanner.NewStatement("UPDATE Songs SET Seconds = Seconds + 1 WHERE TRUE")); err != nil {
		t.Fatal(err)
	}
	key := &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("4")}}
	if _, err := c.admin.AddSplitPoints(ctx, &databasepb.AddSplitPointsRequest{Database: formatDatabases[0], SplitPoints: []*databasepb.SplitPoints{
		{Table: "Singers", Keys: []*databasepb.SplitPoints_Key{{KeyParts: key}}, ExpireTime: timestamppb.New(time.Now().Add(24 * time.Hour))},
	}}); err != nil {
		t.Fatal(err)
	}
}

func apply(t *testing.T, c *formatClients, rows []*spanner.Mutation) {
	t.Helper()
	if _, err := c.Apply(context.Background(), rows); err != nil {
		t.Fatal(err)
	}
}

// typeRows returns rows with ordinary values, NULLs, and the limits of every type.
func typeRows() []*spanner.Mutation {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)
	day := civil.Date{Year: 2024, Month: 2, Day: 29}
	number := big.NewRat(-123456789, 1000)
	const uuid = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	json := spanner.NullJSON{Value: map[string]any{"a": []any{1.5, "x", nil}, "b": true}, Valid: true}
	rows := []*spanner.Mutation{
		spanner.InsertMap("Types", map[string]any{"Id": 1}),
		spanner.InsertMap("Types", map[string]any{
			"Id": 2, "B": true, "I": int64(-1 << 63), "F32": float32(1.25), "F64": -1e300, "N": number, "S": "Grüße\x00\n", "Short": "0123456789", "Y": []byte{0, 255, 1},
			"D": day, "T": at, "J": json, "U": uuid,
			"Bools": []bool{true, false}, "Ints": []int64{1, -1}, "Floats32": []float32{0.5}, "Floats": []float64{}, "Numbers": []*big.Rat{number}, "Strings": []string{"", "x"},
			"Blobs": [][]byte{{1}, {}}, "Days": []civil.Date{day}, "Times": []time.Time{at}, "Jsons": []spanner.NullJSON{json, {}}, "Uuids": []string{uuid}, "Changed": spanner.CommitTimestamp,
		}),
		spanner.InsertMap("Types", map[string]any{"Id": 3, "S": longText(70_000), "Y": []byte(longText(40_000))}), // larger than a block of the log
	}
	for i := range 6 {
		rows = append(rows, spanner.InsertMap("Keys", map[string]any{
			"B": i%2 == 0, "I": int64(i/2) - 1, "F64": float64(i) / 3, "N": big.NewRat(int64(i), 4), "S": fmt.Sprint("s", i), "Y": []byte{byte(i), 0, 255},
			"D": day, "T": at, "U": uuid, "V": i,
		}))
	}
	return append(rows, spanner.InsertMap("Keys", map[string]any{"V": -1})) // its key has NULLs
}

func longText(n int) string { return string(slices.Repeat([]byte("abcdefghij"), n/10)) }

func musicRows() []*spanner.Mutation {
	var rows []*spanner.Mutation
	for s := range int64(8) {
		rows = append(rows, spanner.InsertMap("Singers", map[string]any{"SingerId": s, "First": fmt.Sprint("First", s), "Last": fmt.Sprint("Last", s%3)}),
			spanner.InsertMap("Concerts", map[string]any{"Venue": fmt.Sprint("venue", s), "SingerId": s, "Day": civil.Date{Year: 2026, Month: 5, Day: int(s) + 1}}))
		if s == 3 {
			continue // this singer has no albums, and is deleted
		}
		for a := range int64(2) {
			album := map[string]any{"SingerId": s, "AlbumId": a, "Price": big.NewRat(s, 2)}
			if a == 0 {
				album["Title"] = fmt.Sprint("Title", s)
			}
			rows = append(rows, spanner.InsertMap("Albums", album))
			for track := range int64(4) {
				rows = append(rows, spanner.InsertMap("Songs", map[string]any{"SingerId": s, "AlbumId": a, "Track": track, "Seconds": 100 + track*s}))
			}
		}
	}
	return append(rows, spanner.InsertMap("Sessions", map[string]any{"Id": "lasting", "Until": time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)}))
}

// storeFormat packs a data directory.
func storeFormat(t *testing.T, dir, file string) {
	t.Helper()
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	packed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(packed)
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []interface{ Close() error }{w, packed} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
