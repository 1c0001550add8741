package crowfoot;

import com.google.cloud.Timestamp;
import com.google.cloud.spanner.*;
import com.google.protobuf.ListValue;
import com.google.spanner.admin.database.v1.DatabaseName;
import com.google.spanner.admin.database.v1.SplitPoints;
import java.util.*;

/** A table that a change stream watches, written at random, and what the stream must say of it. */
final class Orders {
  static final String STREAM = "AllChanges";
  static final String TAG = "app=orders";
  static final List<String> SCHEMA =
      List.of(
          "CREATE TABLE Orders (OrderId INT64 NOT NULL, Amount INT64, Note STRING(MAX)) PRIMARY KEY (OrderId)",
          "CREATE CHANGE STREAM " + STREAM + " FOR ALL");

  private static final int KEYS = 200;
  private static final int MOST_KEYS_WRITTEN = 4; // in a transaction

  private final DatabaseClient client;
  private final Random random = new Random(1);
  private final Set<Long> present = new HashSet<>();
  /** For each order its changes, oldest first. */
  final Map<Long, List<Change>> changes = new TreeMap<>();

  /** What a transaction has done to an order; values are those that were written, as text. */
  record Change(Timestamp at, String type, SortedMap<String, String> values) {}

  Orders(DatabaseClient client) {
    this.client = client;
  }

  /** Commits transactions until one is later than end. */
  void writeUntil(Timestamp end) {
    Timestamp at;
    do {
      at = write();
    } while (at.compareTo(end) <= 0);
  }

  private Timestamp write() {
    Map<Long, Change> planned = new TreeMap<>();
    for (int i = random.nextInt(MOST_KEYS_WRITTEN); i >= 0; i--) {
      long key = random.nextInt(KEYS);
      planned.computeIfAbsent(key, this::plan);
    }
    Timestamp at = random.nextBoolean() ? mutate(planned) : execute(planned);
    planned.forEach(
        (key, change) ->
            changes.computeIfAbsent(key, k -> new ArrayList<>()).add(new Change(at, change.type, change.values)));
    return at;
  }

  private Change plan(long key) {
    SortedMap<String, String> values = new TreeMap<>();
    if (present.add(key)) {
      values.put("Amount", String.valueOf(random.nextInt(1000)));
      values.put("Note", "näh \"" + random.nextInt(1000) + "\"");
      return new Change(null, "INSERT", values);
    }
    if (random.nextInt(4) == 0) {
      present.remove(key);
      return new Change(null, "DELETE", values);
    }
    values.put("Amount", String.valueOf(random.nextInt(1000)));
    return new Change(null, "UPDATE", values);
  }

  private Timestamp mutate(Map<Long, Change> planned) {
    List<Mutation> list = new ArrayList<>();
    planned.forEach(
        (key, change) -> {
          if (change.type.equals("DELETE")) {
            list.add(Mutation.delete("Orders", Key.of(key)));
            return;
          }
          boolean insert = change.type.equals("INSERT");
          Mutation.WriteBuilder m = insert ? Mutation.newInsertBuilder("Orders") : Mutation.newUpdateBuilder("Orders");
          m.set("OrderId").to(key).set("Amount").to(Long.parseLong(change.values.get("Amount")));
          if (insert) {
            m.set("Note").to(change.values.get("Note"));
          }
          list.add(m.build());
        });
    return client.writeWithOptions(list, Options.tag(TAG)).getCommitTimestamp();
  }

  private Timestamp execute(Map<Long, Change> planned) {
    TransactionRunner runner = client.readWriteTransaction(Options.tag(TAG));
    runner.run(
        tx -> {
          planned.forEach((key, change) -> tx.executeUpdate(statement(key, change)));
          return null;
        });
    return runner.getCommitTimestamp();
  }

  private static Statement statement(long key, Change change) {
    String sql =
        switch (change.type) {
          case "INSERT" -> "INSERT INTO Orders (OrderId, Amount, Note) VALUES (@key, @amount, @note)";
          case "UPDATE" -> "UPDATE Orders SET Amount = @amount WHERE OrderId = @key";
          default -> "DELETE FROM Orders WHERE OrderId = @key";
        };
    Statement.Builder s = Statement.newBuilder(sql).bind("key").to(key);
    if (change.values.containsKey("Amount")) {
      s.bind("amount").to(Long.parseLong(change.values.get("Amount")));
    }
    if (change.values.containsKey("Note")) {
      s.bind("note").to(change.values.get("Note"));
    }
    return s.build();
  }

  /** Splits the table at some keys; the points are gone after expires. */
  static void split(Spanner spanner, DatabaseId id, Timestamp expires, long... keys) throws Exception {
    SplitPoints.Builder points = SplitPoints.newBuilder().setTable("Orders").setExpireTime(expires.toProto());
    for (long key : keys) {
      com.google.protobuf.Value part = com.google.protobuf.Value.newBuilder().setStringValue(String.valueOf(key)).build();
      points.addKeys(SplitPoints.Key.newBuilder().setKeyParts(ListValue.newBuilder().addValues(part)));
    }
    try (var admin = spanner.createDatabaseAdminClient()) {
      admin.addSplitPoints(
          DatabaseName.of(id.getInstanceId().getProject(), id.getInstanceId().getInstance(), id.getDatabase()),
          List.of(points.build()));
    }
  }
}
