package crowfoot;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.util.ArrayList;
import java.util.List;

/** What the applications on libraries above JDBC have in common: a database of their own, and steps whose results are printed. */
public final class Steps {
  private final String client;
  private final String url;
  private int passed;
  private int failed;

  /** Names a database that the driver creates, with its instance, when a connection is opened. */
  Steps(String client) {
    this.client = client;
    this.url = "jdbc:cloudspanner://" + System.getenv("SPANNER_EMULATOR_HOST") + "/projects/interop/instances/" + client + "-" + ProcessHandle.current().pid()
        + "/databases/app?usePlainText=true;autoConfigEmulator=true";
  }

  interface Action {
    void run() throws Exception;
  }

  String url() {
    return url;
  }

  /** Runs a step; after one that fails the next is tried, too. */
  void step(String name, Action action) {
    try {
      action.run();
      passed++;
      System.out.println("ok   " + client + " " + name);
    } catch (Throwable e) {
      failed++;
      StringBuilder causes = new StringBuilder();
      for (Throwable cause = e; cause != null; cause = cause.getCause()) {
        causes.append("\n     ").append(cause);
      }
      System.out.println("FAIL " + client + " " + name + causes);
    }
  }

  /** Compares the first column of a query's rows, as a list. */
  void expect(String query, String want) throws Exception {
    try (Connection connection = DriverManager.getConnection(url); ResultSet rows = connection.createStatement().executeQuery(query)) {
      List<String> got = new ArrayList<>();
      while (rows.next()) {
        got.add(rows.getString(1));
      }
      if (!got.toString().equals(want)) {
        throw new AssertionError(query + ": got " + got + ", want " + want);
      }
    }
  }

  public static void same(Object got, Object want) {
    if (!want.equals(got)) {
      throw new AssertionError("got " + got + ", want " + want);
    }
  }

  /** Prints how many steps passed, and ends the process. */
  void end() {
    System.out.println(passed + " passed, " + failed + " failed");
    System.exit(failed == 0 ? 0 : 1);
  }
}
