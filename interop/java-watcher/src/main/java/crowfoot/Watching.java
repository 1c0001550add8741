package crowfoot;

import com.google.cloud.NoCredentials;
import com.google.cloud.Timestamp;
import com.google.cloud.spanner.*;
import com.google.cloud.spanner.watcher.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.LongStream;

/** Google's Spanner Change Watcher, unchanged: its own tests, and an application that watches a table by a computed shard column. */
public final class Watching {
  private static final String PROJECT = "interop";
  private static final String TABLE = "Singers";
  private static final String INDEX = "Idx_Singers_ShardId_LastModified";
  private static final long[] SHARDS = LongStream.rangeClosed(-18, 18).toArray();

  private final Spanner spanner;
  private final DatabaseId id;
  private DatabaseClient client;
  private long rows; // so many have been committed; their keys count up

  private Watching(Spanner spanner, DatabaseId id) {
    this.spanner = spanner;
    this.id = id;
  }

  public static void main(String[] args) throws Exception {
    Logger.getLogger("").setLevel(Level.WARNING); // the library logs each start and end of a watcher
    Check check = new Check();
    String instance = "watcher-" + Long.toString(System.nanoTime(), 36);
    SpannerOptions options =
        SpannerOptions.newBuilder()
            .setProjectId(PROJECT)
            .setEmulatorHost(System.getenv("SPANNER_EMULATOR_HOST"))
            .setCredentials(NoCredentials.getInstance())
            .build();
    try (Spanner spanner = options.getService()) {
      Watching app = new Watching(spanner, DatabaseId.of(PROJECT, instance, "app"));
      check.step("a missing database", app::missingDatabase);
      check.step("shards of a computed column", app::shards);
      check.step("a restart of the watcher", app::restart);
      check.step("several watchers", app::severalWatchers);
      check.step("falling back to WITH", app::fallBack);
      check.step("any shard that is not null", app::notNull);
      check.step("no table hint, no shards", app::neither);
      check.step("taking turns with crowfoot watch", app::takeTurns);
      check.step("beside crowfoot watch", app::besideCrowfoot);
    }
    check.step("Google's nine tests have run", () -> PublishedTests.run(check, PROJECT));
    System.exit(check.end());
  }

  /** The client tells a missing instance and database from other errors by their details, and the library makes them then. */
  private void missingDatabase() throws Exception {
    boolean made = false;
    while (client == null) {
      DatabaseClient candidate = spanner.getDatabaseClient(id);
      try (ResultSet rs = candidate.singleUse().executeQuery(Statement.of("SELECT 1"))) {
        rs.next();
        client = candidate;
      } catch (InstanceNotFoundException | DatabaseNotFoundException e) {
        Check.same(made, false);
        SpannerEmulatorUtil.maybeCreateInstanceAndDatabase(spanner, id);
        made = true;
      }
    }
    Check.same(made, true);
    spanner
        .getDatabaseAdminClient()
        .updateDatabaseDdl(
            id.getInstanceId().getInstance(),
            id.getDatabase(),
            List.of(
                "CREATE TABLE `Singers` (\n  `SingerId` INT64 NOT NULL,\n  `Name` STRING(100),\n  `Processed` BOOL,\n"
                    + "  `LastModified` TIMESTAMP OPTIONS (allow_commit_timestamp=true),\n"
                    + "  `ShardId` INT64 AS (CASE WHEN Processed THEN NULL ELSE MOD(FARM_FINGERPRINT(Name), 19) END) STORED,\n"
                    + ") PRIMARY KEY (`SingerId`)",
                "CREATE NULL_FILTERED INDEX `" + INDEX + "` ON `Singers` (`ShardId`, `LastModified`)",
                "CREATE TABLE Others (Id INT64 NOT NULL, LastModified TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)"),
            null)
        .get(1, TimeUnit.MINUTES);
    DatabaseId none = DatabaseId.of(id.getInstanceId(), "none");
    try (ResultSet rs = spanner.getDatabaseClient(none).singleUse().executeQuery(Statement.of("SELECT 1"))) {
      rs.next();
      throw new AssertionError("a database that does not exist was queried");
    } catch (DatabaseNotFoundException e) {
      Check.same(e.getResourceName(), none.getName());
    }
  }

  /** Commits n transactions of random size at once from several threads, and tells when each row was committed. */
  private Map<Long, Timestamp> write(int n) throws Exception {
    Random random = new Random(rows);
    ExecutorService writers = Executors.newFixedThreadPool(8);
    List<Future<Map<Long, Timestamp>>> commits = new ArrayList<>();
    for (int i = 0; i < n; i++) {
      long from = rows;
      rows += 1 + random.nextInt(40);
      long to = rows;
      commits.add(writers.submit(() -> commit(from, to)));
    }
    Map<Long, Timestamp> all = new HashMap<>();
    for (Future<Map<Long, Timestamp>> c : commits) {
      all.putAll(c.get());
    }
    writers.shutdown();
    return all;
  }

  private Map<Long, Timestamp> commit(long from, long to) {
    List<Mutation> mutations = new ArrayList<>();
    for (long key = from; key < to; key++) {
      mutations.add(
          Mutation.newInsertBuilder(TABLE).set("SingerId").to(key).set("Name").to("singer " + key).set("LastModified").to(Value.COMMIT_TIMESTAMP).build());
    }
    Timestamp at = client.write(mutations);
    Map<Long, Timestamp> committed = new HashMap<>();
    for (long key = from; key < to; key++) {
      committed.put(key, at);
    }
    return committed;
  }

  private Timestamp now() {
    try (ResultSet rs = client.singleUse().executeQuery(Statement.of("SELECT CURRENT_TIMESTAMP"))) {
      rs.next();
      return rs.getTimestamp(0);
    }
  }

  private SpannerTableTailer.Builder builder(CommitTimestampRepository repository) {
    return SpannerTableTailer.newBuilder(spanner, TableId.of(id, TABLE))
        .setPollInterval(org.threeten.bp.Duration.ofMillis(10))
        .setLimit(100)
        .setCommitTimestampRepository(repository);
  }

  private SpannerTableTailer.Builder sharded(CommitTimestampRepository repository, long... shards) {
    return builder(repository).setTableHint("@{FORCE_INDEX=`" + INDEX + "`}").setShardProvider(FixedShardProvider.create("ShardId", Value.int64Array(shards)));
  }

  /** A repository in a table of its own, so that no watcher goes on where another one has stopped. */
  private CommitTimestampRepository repository(String table, Timestamp initial) {
    return SpannerCommitTimestampRepository.newBuilder(spanner, id).setCommitTimestampsTable(table).setInitialCommitTimestamp(initial).build();
  }

  /** What watchers have delivered: each row once, with its commit timestamp, in the order of timestamps and keys. */
  private static final class Delivery {
    private final SpannerTableTailer tailer;
    private final Map<Long, Timestamp> got = new ConcurrentHashMap<>();
    private final Set<String> statements = ConcurrentHashMap.newKeySet();
    private volatile AssertionError error;
    private Timestamp lastTime = Timestamp.MIN_VALUE;
    private long lastKey;

    Delivery(SpannerTableTailer.Builder builder) {
      tailer = builder.build();
      tailer.addCallback(this::rowChange);
      tailer.startAsync().awaitRunning();
    }

    private void rowChange(TableId table, SpannerTableChangeWatcher.Row row, Timestamp at) {
      long key = row.getLong("SingerId");
      int order = at.compareTo(lastTime);
      if (got.put(key, at) != null) {
        error = new AssertionError(key + " came twice");
      } else if (order < 0 || order == 0 && key <= lastKey) {
        error = new AssertionError(key + " at " + at + " came after " + lastKey + " at " + lastTime);
      } else if (!row.getString("Name").equals("singer " + key) || !row.getTimestamp("LastModified").equals(at)) {
        error = new AssertionError("the row of " + key + " is " + row.asStruct());
      }
      lastTime = at;
      lastKey = key;
      statements.add(tailer.getLastPollStatement().getSql());
    }

    void awaitRows(int n) throws Exception {
      Check.await(n + " rows are delivered", () -> error != null || got.size() >= n || !tailer.isRunning());
    }

    /** Waits for n rows, ends the watcher and gives all that it has delivered. */
    Map<Long, Timestamp> end(int n) throws Exception {
      awaitRows(n);
      Thread.sleep(100); // for rows that come twice
      tailer.stopAsync().awaitTerminated();
      if (error != null) {
        throw error;
      }
      return got;
    }
  }

  private void shards() throws Exception {
    CommitTimestampRepository seen = repository("SeenShards", Timestamp.MIN_VALUE);
    Delivery delivery = new Delivery(sharded(seen, SHARDS));
    Map<Long, Timestamp> want = write(200);
    Check.same(delivery.end(want.size()), want);
    Timestamp last = Collections.max(want.values());
    Check.same(seen.get(TableId.of(id, TABLE), Value.int64Array(SHARDS)), last);
    try (ResultSet rs = client.singleUse().executeQuery(Statement.of("SELECT TABLE_NAME, SHARD_ID_STRING, LAST_SEEN_COMMIT_TIMESTAMP FROM SeenShards"))) {
      rs.next();
      Check.same(rs.getString(0), TABLE);
      Check.same(rs.getString(1).split(",").length, SHARDS.length);
      Check.same(rs.getTimestamp(2), last);
      Check.same(rs.next(), false);
    }
  }

  private void restart() throws Exception {
    CommitTimestampRepository seen = repository("SeenByTwo", now());
    Delivery before = new Delivery(sharded(seen, SHARDS));
    Map<Long, Timestamp> first = write(20);
    Check.same(before.end(first.size()), first);
    Map<Long, Timestamp> second = write(20); // while no watcher runs
    Delivery after = new Delivery(sharded(seen, SHARDS));
    second.putAll(write(20));
    Check.same(after.end(second.size()), second);
  }

  private void severalWatchers() throws Exception {
    CommitTimestampRepository seen = repository("SeenBySeveral", now());
    List<Delivery> deliveries = new ArrayList<>();
    for (int i = 0; i < SHARDS.length; i += 10) {
      deliveries.add(new Delivery(sharded(seen, Arrays.copyOfRange(SHARDS, i, Math.min(i + 10, SHARDS.length)))));
    }
    Map<Long, Timestamp> want = write(100);
    Check.await("all rows are delivered", () -> deliveries.stream().mapToInt(d -> d.got.size()).sum() >= want.size());
    Map<Long, Timestamp> got = new HashMap<>();
    for (Delivery d : deliveries) {
      for (Map.Entry<Long, Timestamp> e : d.end(0).entrySet()) {
        Check.same(got.put(e.getKey(), e.getValue()), null);
      }
    }
    Check.same(got, want);
  }

  /** A watcher that is some seconds behind when it has read a full page asks for one list of changes for each shard. */
  private void fallBack() throws Exception {
    CommitTimestampRepository seen = repository("SeenBehind", now());
    Map<Long, Timestamp> want = write(100);
    long last = Collections.max(want.values()).getSeconds();
    Check.await("the changes are old", () -> Timestamp.now().getSeconds() > last + 1);
    Delivery delivery = new Delivery(sharded(seen, SHARDS).setFallbackToWithQuerySeconds(0));
    Check.same(delivery.end(want.size()), want);
    Check.same(delivery.statements.stream().anyMatch(s -> s.startsWith("WITH")), true);
  }

  private void notNull() throws Exception {
    Delivery delivery =
        new Delivery(
            builder(repository("SeenNotNull", now())).setTableHint("@{FORCE_INDEX=`" + INDEX + "`}").setShardProvider(NotNullShardProvider.create("ShardId")));
    Map<Long, Timestamp> want = write(50);
    Check.same(delivery.end(want.size()), want);
  }

  private void neither() throws Exception {
    Delivery delivery = new Delivery(builder(repository("SeenAlone", now())));
    Map<Long, Timestamp> want = write(50);
    Check.same(delivery.end(want.size()), want);
  }

  /** The table in which crowfoot watch keeps its checkpoints, too. */
  private CommitTimestampRepository shared() {
    return SpannerCommitTimestampRepository.newBuilder(spanner, id).setInitialCommitTimestamp(now()).build();
  }

  /**
   * While rows are written, the library and crowfoot watch deliver them by turns, each from where the other was stopped at a random moment. crowfoot watch
   * would begin now if it did not find the checkpoint.
   */
  private void takeTurns() throws Exception {
    CommitTimestampRepository seen = shared();
    AtomicBoolean stop = new AtomicBoolean();
    ExecutorService writer = Executors.newSingleThreadExecutor();
    Future<Map<Long, Timestamp>> writing = writer.submit(() -> writeUntil(stop));
    Random random = new Random(1);
    Map<Long, Timestamp> got = new HashMap<>();
    int again = 0;
    try {
      for (int turn = 0; turn < 6; turn++) {
        Map<Long, Timestamp> part = turn % 2 == 0 ? libraryTurn(seen, random) : crowfootTurn(random);
        for (Map.Entry<Long, Timestamp> e : part.entrySet()) {
          again += got.put(e.getKey(), e.getValue()) == null ? 0 : 1;
        }
      }
    } finally {
      stop.set(true);
      writer.shutdown();
    }
    Map<Long, Timestamp> want = writing.get();
    Set<Long> missing = new HashSet<>(want.keySet());
    missing.removeAll(got.keySet());
    CrowfootWatch rest = crowfoot();
    Check.await(missing.size() + " rows that are left are delivered", () -> rest.has(missing));
    got.putAll(rest.end());
    want.forEach((key, at) -> Check.same(got.get(key), at));
    Check.same(got.size(), want.size());
    System.out.printf("     %d rows in 7 turns, %d of them came again with a later watcher%n", got.size(), again);
  }

  /** Commits single rows: when the library is stopped within a transaction, it never delivers the rest. */
  private Map<Long, Timestamp> writeUntil(AtomicBoolean stop) throws Exception {
    Map<Long, Timestamp> all = new HashMap<>();
    for (; !stop.get(); rows++) {
      all.putAll(commit(rows, rows + 1));
      Thread.sleep(1); // so that watchers are up to date now and then
    }
    return all;
  }

  private Map<Long, Timestamp> libraryTurn(CommitTimestampRepository seen, Random random) throws Exception {
    Delivery delivery = new Delivery(sharded(seen, SHARDS));
    delivery.awaitRows(1 + random.nextInt(150));
    return delivery.end(0);
  }

  private Map<Long, Timestamp> crowfootTurn(Random random) throws Exception {
    CrowfootWatch watch = crowfoot();
    watch.awaitRows(1 + random.nextInt(150));
    return watch.end();
  }

  private CrowfootWatch crowfoot() throws Exception {
    return new CrowfootWatch(TABLE, "--database", id.getName(), "--limit", "100", "--shard-column", "ShardId", "--shard-values", "-18..18");
  }

  /** Both keep their checkpoints in one table at the same time, for different tables. */
  private void besideCrowfoot() throws Exception {
    CrowfootWatch others = new CrowfootWatch("Others", "--database", id.getName(), "--from", "beginning");
    Delivery delivery = new Delivery(builder(shared()));
    Map<Long, Timestamp> wantOthers = new HashMap<>();
    Map<Long, Timestamp> want = new HashMap<>();
    for (long key = 0; key < 50; key++) {
      want.putAll(write(2));
      wantOthers.put(key, client.write(List.of(Mutation.newInsertBuilder("Others").set("Id").to(key).set("LastModified").to(Value.COMMIT_TIMESTAMP).build())));
    }
    others.awaitRows(wantOthers.size());
    Check.same(others.end(), wantOthers);
    Check.same(delivery.end(want.size()), want);
  }
}
