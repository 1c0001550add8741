package crowfoot;

import com.google.cloud.NoCredentials;
import com.google.cloud.spanner.*;
import java.nio.file.*;
import java.util.List;

/**
 * A program on the official Java client that commits again and again while its server is restarted. See interop/restart.
 *
 * <p>usage: Restart DATABASE STOP. It adds one to its row of table Counters until the file STOP exists, and prints a line after each
 * commit. It fails on any error but one of the library's own, and if the row does not hold what was committed.
 */
public final class Restart {
  private static final String ID = "java";

  public static void main(String[] args) throws Exception {
    DatabaseId id = DatabaseId.of(args[0]);
    SpannerOptions options =
        SpannerOptions.newBuilder()
            .setProjectId(id.getInstanceId().getProject())
            .setEmulatorHost(System.getenv("SPANNER_EMULATOR_HOST"))
            .setCredentials(NoCredentials.getInstance())
            .build();
    try (Spanner spanner = options.getService()) {
      DatabaseClient client = spanner.getDatabaseClient(id);
      for (long n = 0; !Files.exists(Path.of(args[1])); n++) {
        long committed = n;
        while (!commit(client, committed)) {}
        System.out.println("committed " + (committed + 1));
        Thread.sleep(20);
      }
    } catch (SpannerException e) {
      e.printStackTrace();
      System.exit(1);
    }
    System.exit(0);
  }

  /**
   * Commits once, and says whether it is known to have. gRPC's Java library answers UNKNOWN, which the client does not repeat, if a
   * connection is closed at the moment at which it writes to it. Then the row tells whether the transaction was committed.
   */
  private static boolean commit(DatabaseClient client, long committed) {
    try {
      client.readWriteTransaction().run(tx -> add(tx, committed));
      return true;
    } catch (SpannerException e) {
      if (e.getErrorCode() != ErrorCode.UNKNOWN || !e.getMessage().contains("channel closed")) {
        throw e;
      }
    }
    try {
      return client.singleUse().readRow("Counters", Key.of(ID), List.of("N")).getLong(0) > committed;
    } catch (SpannerException e) {
      if (e.getErrorCode() != ErrorCode.UNKNOWN || !e.getMessage().contains("channel closed")) {
        throw e;
      }
      return false; // the transaction that follows fails if the row holds more
    }
  }

  private static Void add(TransactionContext tx, long committed) {
    long n = tx.readRow("Counters", Key.of(ID), List.of("N")).getLong(0);
    if (n != committed) {
      throw new IllegalStateException("the row holds " + n + " after " + committed + " commits");
    }
    tx.executeUpdate(
        Statement.newBuilder("UPDATE Counters SET N = N + 1 WHERE Id = @id").bind("id").to(ID).build());
    return null;
  }
}
