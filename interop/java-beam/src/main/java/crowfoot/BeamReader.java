package crowfoot;

import com.google.cloud.NoCredentials;
import com.google.cloud.Timestamp;
import com.google.cloud.spanner.*;
import com.google.gson.JsonElement;
import com.google.gson.JsonParser;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.beam.runners.direct.DirectRunner;
import org.apache.beam.sdk.Pipeline;
import org.apache.beam.sdk.extensions.gcp.auth.NoopCredentialFactory;
import org.apache.beam.sdk.extensions.gcp.options.GcpOptions;
import org.apache.beam.sdk.io.gcp.spanner.SpannerConfig;
import org.apache.beam.sdk.io.gcp.spanner.SpannerIO;
import org.apache.beam.sdk.io.gcp.spanner.changestreams.model.DataChangeRecord;
import org.apache.beam.sdk.io.gcp.spanner.changestreams.model.Mod;
import org.apache.beam.sdk.options.PipelineOptionsFactory;
import org.apache.beam.sdk.options.ValueProvider.StaticValueProvider;
import org.apache.beam.sdk.transforms.DoFn;
import org.apache.beam.sdk.transforms.ParDo;

/** Apache Beam's SpannerIO, unchanged, reads a change stream while rows are written and the table is split and merged. */
public final class BeamReader {
  private static final String PROJECT = "interop";
  private static final Duration READING = Duration.ofSeconds(15);

  /** What the pipeline has read. Beam's direct runner stays in this process. */
  private static final Queue<DataChangeRecord> RECEIVED = new ConcurrentLinkedQueue<>();

  public static void main(String[] args) throws Exception {
    for (Handler h : Logger.getLogger("").getHandlers()) {
      h.setLevel(Level.WARNING);
    }
    DatabaseId id = DatabaseId.of(PROJECT, "beam-" + Long.toString(System.nanoTime(), 36), "app");
    SpannerOptions options =
        SpannerOptions.newBuilder()
            .setProjectId(PROJECT)
            .setEmulatorHost(System.getenv("SPANNER_EMULATOR_HOST"))
            .setCredentials(NoCredentials.getInstance())
            .build();
    try (Spanner spanner = options.getService()) {
      create(spanner, id);
      Orders orders = new Orders(spanner.getDatabaseClient(id));
      Timestamp start = now(spanner.getDatabaseClient(id));
      Timestamp end = after(start, READING);
      ExecutorService others = Executors.newFixedThreadPool(2);
      Future<?> writes = others.submit(() -> orders.writeUntil(end));
      Future<?> splits = others.submit(() -> splitAndMerge(spanner, id, start));
      read(id, start, end);
      writes.get();
      splits.get();
      others.shutdown();
      check(orders, end);
    }
    System.exit(0);
  }

  private static void create(Spanner spanner, DatabaseId id) throws Exception {
    InstanceConfig config = spanner.getInstanceAdminClient().listInstanceConfigs().iterateAll().iterator().next();
    InstanceInfo instance =
        InstanceInfo.newBuilder(id.getInstanceId()).setInstanceConfigId(config.getId()).setDisplayName("interop").setNodeCount(1).build();
    spanner.getInstanceAdminClient().createInstance(instance).get(1, TimeUnit.MINUTES);
    for (String database : List.of("app", "metadata")) {
      List<String> schema = database.equals("app") ? Orders.SCHEMA : List.of();
      spanner.getDatabaseAdminClient().createDatabase(id.getInstanceId().getInstance(), database, schema).get(1, TimeUnit.MINUTES);
    }
  }

  private static Timestamp now(DatabaseClient client) {
    try (ResultSet rs = client.singleUse().executeQuery(Statement.of("SELECT CURRENT_TIMESTAMP()"))) {
      rs.next();
      return rs.getTimestamp(0);
    }
  }

  private static Timestamp after(Timestamp t, Duration d) {
    return Timestamp.ofTimeSecondsAndNanos(t.getSeconds() + d.toSeconds(), t.getNanos());
  }

  private static Void splitAndMerge(Spanner spanner, DatabaseId id, Timestamp start) throws Exception {
    Orders.split(spanner, id, after(start, READING.dividedBy(2)), 100); // is merged while the stream is read
    Thread.sleep(READING.dividedBy(4).toMillis());
    Orders.split(spanner, id, after(start, READING.multipliedBy(4)), 50, 150);
    return null;
  }

  /** Runs a pipeline that reads the stream up to end. */
  private static void read(DatabaseId id, Timestamp start, Timestamp end) {
    SpannerConfig config =
        SpannerConfig.create()
            .withProjectId(PROJECT)
            .withInstanceId(id.getInstanceId().getInstance())
            .withDatabaseId(id.getDatabase())
            .withEmulatorHost(StaticValueProvider.of(System.getenv("SPANNER_EMULATOR_HOST")));
    GcpOptions options = PipelineOptionsFactory.as(GcpOptions.class);
    options.setRunner(DirectRunner.class);
    options.setCredentialFactoryClass(NoopCredentialFactory.class);
    Pipeline pipeline = Pipeline.create(options);
    pipeline
        .apply(
            SpannerIO.readChangeStream()
                .withSpannerConfig(config)
                .withChangeStreamName(Orders.STREAM)
                .withMetadataDatabase("metadata")
                .withInclusiveStartAt(start)
                .withInclusiveEndAt(end))
        .apply(ParDo.of(new Collect()));
    pipeline.run().waitUntilFinish();
  }

  private static final class Collect extends DoFn<DataChangeRecord, Void> {
    @ProcessElement
    public void process(@Element DataChangeRecord record) {
      RECEIVED.add(record);
    }
  }

  /** Compares what was read with what was written: each change once, those of an order in order, transactions whole. */
  private static void check(Orders orders, Timestamp end) {
    List<DataChangeRecord> records = new ArrayList<>(RECEIVED);
    records.sort(Comparator.comparing(DataChangeRecord::getCommitTimestamp).thenComparing(DataChangeRecord::getRecordSequence));
    Map<Long, List<Orders.Change>> got = new TreeMap<>();
    Map<String, List<DataChangeRecord>> transactions = new HashMap<>();
    Set<String> partitions = new HashSet<>();
    for (DataChangeRecord r : records) {
      same(r.getTransactionTag(), Orders.TAG);
      partitions.add(r.getPartitionToken());
      transactions.computeIfAbsent(r.getServerTransactionId(), id -> new ArrayList<>()).add(r);
      for (Mod mod : r.getMods()) {
        long key = Long.parseLong(values(mod.getKeysJson()).get("OrderId"));
        got.computeIfAbsent(key, k -> new ArrayList<>())
            .add(new Orders.Change(r.getCommitTimestamp(), r.getModType().name(), values(mod.getNewValuesJson())));
      }
    }
    Map<Long, List<Orders.Change>> want = new TreeMap<>();
    int changes = 0;
    for (var e : orders.changes.entrySet()) {
      List<Orders.Change> list = e.getValue().stream().filter(c -> c.at().compareTo(end) <= 0).toList();
      if (!list.isEmpty()) {
        want.put(e.getKey(), list);
        changes += list.size();
      }
    }
    same(got.keySet(), want.keySet());
    want.forEach((key, list) -> same(got.get(key), list));
    transactions.values().forEach(BeamReader::checkTransaction);
    if (partitions.size() == 1) {
      throw new AssertionError("the stream was not split");
    }
    System.out.printf(
        "ok   beam: %d changes in %d transactions, %d partitions%n", changes, transactions.size(), partitions.size());
  }

  /** All records of a transaction are there, and say how many they are, in how many partitions. */
  private static void checkTransaction(List<DataChangeRecord> records) {
    Map<String, Long> last = new HashMap<>(); // by partition, records that are the last ones
    for (DataChangeRecord r : records) {
      same(r.getNumberOfRecordsInTransaction(), (long) records.size());
      last.merge(r.getPartitionToken(), r.isLastRecordInTransactionInPartition() ? 1L : 0L, Long::sum);
    }
    same(records.get(0).getNumberOfPartitionsInTransaction(), (long) last.size());
    last.values().forEach(n -> same(n, 1L));
  }

  private static SortedMap<String, String> values(String json) {
    SortedMap<String, String> list = new TreeMap<>();
    if (json != null) {
      for (Map.Entry<String, JsonElement> e : JsonParser.parseString(json).getAsJsonObject().entrySet()) {
        list.put(e.getKey(), e.getValue().getAsString());
      }
    }
    return list;
  }

  private static void same(Object got, Object want) {
    if (!Objects.equals(got, want)) {
      throw new AssertionError("got " + got + ", want " + want);
    }
  }
}
