package crowfoot;

import com.google.cloud.NoCredentials;
import com.google.cloud.Timestamp;
import com.google.cloud.spanner.*;
import java.util.*;
import java.util.concurrent.*;

/** A small application on the official Java client: schema, writes, reads, transactions, partitions, staleness. */
public final class Interop {
  private static final String PROJECT = "interop";
  private static int passed = 0;
  private static int failed = 0;

  private final Spanner spanner;
  private final DatabaseId id;
  private final DatabaseClient client;

  private interface Step {
    void run() throws Exception;
  }

  private Interop(Spanner spanner, DatabaseId id) {
    this.spanner = spanner;
    this.id = id;
    this.client = spanner.getDatabaseClient(id);
  }

  public static void main(String[] args) throws Exception {
    String instance = "java-" + Long.toString(System.nanoTime(), 36);
    SpannerOptions options =
        SpannerOptions.newBuilder()
            .setProjectId(PROJECT)
            .setEmulatorHost(System.getenv("SPANNER_EMULATOR_HOST"))
            .setCredentials(NoCredentials.getInstance())
            .build();
    try (Spanner spanner = options.getService()) {
      step("schema", () -> createDatabase(spanner, instance));
      Interop app = new Interop(spanner, DatabaseId.of(PROJECT, instance, "app"));
      step("mutations", app::mutations);
      step("dml", app::dml);
      step("batch dml", app::batchDml);
      step("read", app::read);
      step("query", app::query);
      step("errors", app::errors);
      step("what is missing", app::notFound);
      step("contention", app::contention);
      step("partitioned query", app::partitionedQuery);
      step("partitioned dml", app::partitionedDml);
      step("staleness", app::staleness);
      step("change stream", app::changeStream);
      step("drop", app::drop);
    }
    System.out.printf("%d passed, %d failed%n", passed, failed);
    System.exit(failed == 0 ? 0 : 1);
  }

  private static void step(String name, Step s) {
    try {
      s.run();
      passed++;
      System.out.println("ok   java " + name);
    } catch (Throwable t) {
      failed++;
      System.out.println("FAIL java " + name + ": " + t);
      t.printStackTrace(System.out);
    }
  }

  private static void same(Object got, Object want) {
    if (!Objects.equals(got, want)) {
      throw new AssertionError("got " + got + ", want " + want);
    }
  }

  private static void createDatabase(Spanner spanner, String instance) throws Exception {
    InstanceConfig config = spanner.getInstanceAdminClient().listInstanceConfigs().iterateAll().iterator().next();
    spanner
        .getInstanceAdminClient()
        .createInstance(
            InstanceInfo.newBuilder(InstanceId.of(PROJECT, instance))
                .setInstanceConfigId(config.getId())
                .setDisplayName("interop")
                .setNodeCount(1)
                .build())
        .get(1, TimeUnit.MINUTES);
    spanner
        .getDatabaseAdminClient()
        .createDatabase(
            instance,
            "app",
            List.of(
                "CREATE TABLE Singers (SingerId INT64 NOT NULL, Name STRING(100), Updated TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (SingerId)",
                "CREATE TABLE Albums (SingerId INT64 NOT NULL, AlbumId INT64 NOT NULL, Title STRING(MAX), Budget NUMERIC, Tags ARRAY<STRING(MAX)>) PRIMARY KEY (SingerId, AlbumId), INTERLEAVE IN PARENT Singers ON DELETE CASCADE"))
        .get(1, TimeUnit.MINUTES);
    spanner
        .getDatabaseAdminClient()
        .updateDatabaseDdl(
            instance,
            "app",
            List.of(
                "CREATE INDEX SingersByName ON Singers(Name) STORING (Updated)",
                "CREATE TABLE Counters (Name STRING(20) NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Name)"),
            null)
        .get(1, TimeUnit.MINUTES);
    same(spanner.getDatabaseAdminClient().getDatabaseDdl(instance, "app").size(), 4);
  }

  private void mutations() {
    List<Mutation> rows = new ArrayList<>();
    for (long i = 1; i <= 20; i++) {
      rows.add(
          Mutation.newInsertBuilder("Singers").set("SingerId").to(i).set("Name").to("singer " + i)
              .set("Updated").to(Value.COMMIT_TIMESTAMP).build());
      rows.add(
          Mutation.newInsertBuilder("Albums").set("SingerId").to(i).set("AlbumId").to(1L).set("Title").to("album " + i)
              .set("Budget").to(new java.math.BigDecimal("12.5")).set("Tags").toStringArray(Arrays.asList("a", null, "c")).build());
    }
    Timestamp ts = client.write(rows);
    Struct row = client.singleUse().readRow("Singers", Key.of(7L), List.of("Name", "Updated"));
    same(row.getString(0), "singer 7");
    same(row.getTimestamp(1), ts);
    CommitResponse once =
        client.writeAtLeastOnceWithOptions(
            List.of(Mutation.newInsertOrUpdateBuilder("Counters").set("Name").to("c").set("N").to(0L).build()));
    if (once.getCommitTimestamp().compareTo(ts) <= 0) {
      throw new AssertionError("commit timestamps do not rise");
    }
  }

  private void dml() {
    Long n =
        client.readWriteTransaction().run(
            tx -> {
              long inserted =
                  tx.executeUpdate(
                      Statement.newBuilder("INSERT INTO Singers (SingerId, Name) VALUES (@id, @name)")
                          .bind("id").to(100L).bind("name").to("by dml").build());
              try (ResultSet rs = tx.executeQuery(Statement.of("SELECT Name FROM Singers WHERE SingerId = 100"))) {
                same(rs.next(), true);
                same(rs.getString(0), "by dml");
              }
              return inserted;
            });
    same(n, 1L);
    String back =
        client.readWriteTransaction().run(
            tx -> {
              try (ResultSet rs = tx.executeQuery(Statement.of("UPDATE Singers SET Name = 'changed' WHERE SingerId = 100 THEN RETURN Name"))) {
                rs.next();
                return rs.getString(0);
              }
            });
    same(back, "changed");
  }

  private void batchDml() {
    long[] counts =
        client.readWriteTransaction().run(
            tx ->
                tx.batchUpdate(
                    List.of(
                        Statement.of("INSERT INTO Singers (SingerId, Name) VALUES (101, 'x')"),
                        Statement.of("UPDATE Singers SET Name = 'y' WHERE SingerId IN (100, 101)"),
                        Statement.of("DELETE FROM Singers WHERE SingerId = 101"))));
    same(Arrays.toString(counts), "[1, 2, 1]");
  }

  private void read() {
    try (ResultSet rs = client.singleUse().read("Albums", KeySet.range(KeyRange.closedOpen(Key.of(3L), Key.of(6L))), List.of("SingerId", "Title", "Budget", "Tags"))) {
      List<Long> got = new ArrayList<>();
      while (rs.next()) {
        got.add(rs.getLong(0));
        same(rs.getBigDecimal(2).stripTrailingZeros().toPlainString(), "12.5");
        same(rs.getStringList(3), Arrays.asList("a", null, "c"));
      }
      same(got, List.of(3L, 4L, 5L));
    }
    Struct byName = client.singleUse().readRowUsingIndex("Singers", "SingersByName", Key.of("singer 9"), List.of("SingerId"));
    same(byName.getLong(0), 9L);
  }

  private void query() {
    Statement s =
        Statement.newBuilder("SELECT s.SingerId, a.Title FROM Singers s JOIN Albums a USING (SingerId) WHERE s.SingerId IN UNNEST(@ids) ORDER BY s.SingerId")
            .bind("ids").toInt64Array(new long[] {2, 4, 999}).build();
    try (ReadOnlyTransaction tx = client.readOnlyTransaction();
        ResultSet rs = tx.executeQuery(s)) {
      List<String> got = new ArrayList<>();
      while (rs.next()) {
        got.add(rs.getLong(0) + " " + rs.getString("Title"));
      }
      same(got, List.of("2 album 2", "4 album 4"));
    }
  }

  private void errors() {
    same(code(() -> client.write(List.of(Mutation.newInsertBuilder("Singers").set("SingerId").to(1L).build()))), ErrorCode.ALREADY_EXISTS);
    same(code(() -> client.singleUse().readRow("Nowhere", Key.of(1L), List.of("x"))), ErrorCode.NOT_FOUND);
    same(
        code(
            () -> {
              try (ResultSet rs = client.singleUse().executeQuery(Statement.of("SELECT nothing FROM Singers"))) {
                rs.next();
              }
            }),
        ErrorCode.INVALID_ARGUMENT);
  }

  /** What is missing has exceptions of its own, by which the client knows that sessions are gone for good. */
  private void notFound() {
    String instance = id.getInstanceId().getInstance();
    same(thrown(() -> query(spanner.getDatabaseClient(DatabaseId.of(PROJECT, instance, "none")))).getClass(), DatabaseNotFoundException.class);
    same(thrown(() -> query(spanner.getDatabaseClient(DatabaseId.of(PROJECT, "none", "none")))).getClass(), InstanceNotFoundException.class);
    same(thrown(() -> spanner.getDatabaseAdminClient().getDatabase(instance, "none")).getClass(), DatabaseNotFoundException.class);
    same(thrown(() -> spanner.getInstanceAdminClient().getInstance("none")).getClass(), InstanceNotFoundException.class);
  }

  private static void query(DatabaseClient of) {
    try (ResultSet rs = of.singleUse().executeQuery(Statement.of("SELECT 1"))) {
      rs.next();
    }
  }

  private static ErrorCode code(Step s) {
    return thrown(s).getErrorCode();
  }

  private static SpannerException thrown(Step s) {
    try {
      s.run();
    } catch (SpannerException e) {
      return e;
    } catch (Exception e) {
      throw new AssertionError(e);
    }
    throw new AssertionError("no error");
  }

  private void contention() throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(8);
    List<Future<?>> all = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      all.add(
          pool.submit(
              () ->
                  client.readWriteTransaction().run(
                      tx -> {
                        long n = tx.readRow("Counters", Key.of("c"), List.of("N")).getLong(0);
                        tx.buffer(Mutation.newUpdateBuilder("Counters").set("Name").to("c").set("N").to(n + 1).build());
                        return null;
                      })));
    }
    for (Future<?> f : all) {
      f.get(1, TimeUnit.MINUTES);
    }
    pool.shutdown();
    same(client.singleUse().readRow("Counters", Key.of("c"), List.of("N")).getLong(0), 40L);
  }

  private void partitionedQuery() {
    BatchClient batch = spanner.getBatchClient(id);
    try (BatchReadOnlyTransaction tx = batch.batchReadOnlyTransaction(TimestampBound.strong())) {
      Set<Long> seen = new TreeSet<>();
      for (Partition p : tx.partitionQuery(PartitionOptions.getDefaultInstance(), Statement.of("SELECT SingerId FROM Albums"))) {
        try (ResultSet rs = tx.execute(p)) {
          while (rs.next()) {
            same(seen.add(rs.getLong(0)), true);
          }
        }
      }
      same(seen.size(), 20);
      int rows = 0;
      for (Partition p : tx.partitionRead(PartitionOptions.getDefaultInstance(), "Singers", KeySet.all(), List.of("SingerId"))) {
        try (ResultSet rs = tx.execute(p)) {
          while (rs.next()) {
            rows++;
          }
        }
      }
      same(rows, 21);
    }
  }

  private void partitionedDml() {
    same(client.executePartitionedUpdate(Statement.of("UPDATE Albums SET Title = 'same' WHERE AlbumId = 1")) >= 20, true);
  }

  private void staleness() throws Exception {
    Timestamp before;
    try (ReadOnlyTransaction tx = client.readOnlyTransaction()) {
      tx.readRow("Counters", Key.of("c"), List.of("N"));
      before = tx.getReadTimestamp();
    }
    client.write(List.of(Mutation.newUpdateBuilder("Counters").set("Name").to("c").set("N").to(1000L).build()));
    same(client.singleUse(TimestampBound.ofReadTimestamp(before)).readRow("Counters", Key.of("c"), List.of("N")).getLong(0), 40L);
    same(client.singleUse().readRow("Counters", Key.of("c"), List.of("N")).getLong(0), 1000L);
    client.singleUse(TimestampBound.ofMaxStaleness(10, TimeUnit.SECONDS)).readRow("Counters", Key.of("c"), List.of("N"));
    // Then there was no such table; Singers is one that the database was created with.
    TimestampBound then = TimestampBound.ofExactStaleness(30, TimeUnit.MINUTES);
    same(code(() -> client.singleUse(then).readRow("Counters", Key.of("c"), List.of("N"))), ErrorCode.NOT_FOUND);
    same(client.singleUse(then).readRow("Singers", Key.of(1L), List.of("SingerId")), null);
  }

  /** Reads a change stream from the token of its first partition to its last record, while the partition ends and others begin. */
  private void changeStream() throws Exception {
    DatabaseAdminClient admin = spanner.getDatabaseAdminClient();
    String instance = id.getInstanceId().getInstance();
    List<String> ddl =
        List.of(
            "CREATE TABLE Orders (Id INT64 NOT NULL, Amount NUMERIC, Tags ARRAY<STRING(MAX)>) PRIMARY KEY (Id)",
            "CREATE CHANGE STREAM OrderChanges FOR Orders");
    admin.updateDatabaseDdl(instance, id.getDatabase(), ddl, null).get(1, TimeUnit.MINUTES);
    Mutation order =
        Mutation.newInsertBuilder("Orders").set("Id").to(1L).set("Amount").to(new java.math.BigDecimal("12.5"))
            .set("Tags").toStringArray(Arrays.asList("a", null)).build();
    Timestamp start = client.writeWithOptions(List.of(order), Options.tag("app=interop")).getCommitTimestamp();
    client.readWriteTransaction().run(
        tx -> tx.executeUpdate(Statement.of("UPDATE Orders SET Amount = 13 WHERE Id = 1")));
    Timestamp end = client.write(List.of(Mutation.delete("Orders", Key.of(1L))));

    List<Struct> first = readChangeStream(null, start, end);
    List<String> changes = new ArrayList<>();
    for (Struct record : first) {
      Struct children = record.getStructList("child_partitions_record").get(0);
      for (Struct child : children.getStructList("child_partitions")) {
        for (Struct r : readChangeStream(child.getString("token"), start, end)) {
          r.getStructList("data_change_record").forEach(c -> changes.add(change(c)));
        }
      }
    }
    same(
        changes,
        List.of(
            "INSERT app=interop {\"Id\":\"1\"} {} {\"Amount\":\"12.5\",\"Tags\":[\"a\",null]}",
            "UPDATE  {\"Id\":\"1\"} {\"Amount\":\"12.5\"} {\"Amount\":\"13\"}",
            "DELETE  {\"Id\":\"1\"} {\"Amount\":\"13\",\"Tags\":[\"a\",null]} {}"));
    same(code(() -> readChangeStream("no token", start, end)), ErrorCode.INVALID_ARGUMENT);
    admin.updateDatabaseDdl(instance, id.getDatabase(), List.of("DROP CHANGE STREAM OrderChanges"), null).get(1, TimeUnit.MINUTES);
  }

  private List<Struct> readChangeStream(String token, Timestamp start, Timestamp end) {
    Statement read =
        Statement.newBuilder(
                "SELECT ChangeRecord FROM READ_OrderChanges (start_timestamp => @start, end_timestamp => @end,"
                    + " partition_token => @token, heartbeat_milliseconds => 1000)")
            .bind("start").to(start).bind("end").to(end).bind("token").to(token).build();
    List<Struct> records = new ArrayList<>();
    try (ResultSet rs = client.singleUse().executeQuery(read)) {
      while (rs.next()) {
        records.addAll(rs.getStructList(0));
      }
    }
    return records;
  }

  private static String change(Struct record) {
    Struct mod = record.getStructList("mods").get(0);
    return String.join(
        " ", record.getString("mod_type"), record.getString("transaction_tag"),
        mod.getJson("keys"), mod.getJson("old_values"), mod.getJson("new_values"));
  }

  private void drop() {
    spanner.getDatabaseAdminClient().dropDatabase(id.getInstanceId().getInstance(), "app");
    same(code(() -> spanner.getDatabaseAdminClient().getDatabase(id.getInstanceId().getInstance(), "app")), ErrorCode.NOT_FOUND);
  }
}
