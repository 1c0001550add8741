package crowfoot;

import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import liquibase.Scope;
import liquibase.command.CommandScope;
import liquibase.ui.LoggerUIService;

/** Liquibase with Spanner's extension: the change log is run and rolled back by Liquibase's own commands, and the schema is reflected. */
public final class Migrate {
  private static int passed;
  private static int failed;

  private final String url;

  private Migrate(String url) {
    this.url = url;
  }

  private interface Action {
    void run() throws Exception;
  }

  private static void step(String name, Action action) {
    try {
      action.run();
      passed++;
      System.out.println("ok   liquibase " + name);
    } catch (Throwable e) { // the next step is tried in any case
      failed++;
      StringBuilder causes = new StringBuilder();
      for (Throwable cause = e; cause != null; cause = cause.getCause()) {
        causes.append("\n     ").append(cause);
      }
      System.out.println("FAIL liquibase " + name + causes);
    }
  }

  private void command(String name, Object... arguments) throws Exception {
    CommandScope command = new CommandScope(name.split(" ")).addArgumentValue("url", url);
    for (int i = 0; i < arguments.length; i += 2) {
      command.addArgumentValue((String) arguments[i], arguments[i + 1]);
    }
    command.execute();
  }

  private void expect(String query, String want) throws Exception {
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

  private static final String TABLES =
      "SELECT table_name FROM information_schema.tables WHERE table_schema = '' AND table_name NOT LIKE 'DATABASECHANGELOG%' ORDER BY 1";

  private void run() {
    String log = "changelog.xml";
    step("update to a tag", () -> {
      command("updateToTag", "changelogFile", log, "tag", "first");
      expect("SELECT full_name FROM singers ORDER BY id", "[Ann Lee, Bob O'Neil]");
      expect("SELECT name FROM countries ORDER BY code", "[Austria, France]");
    });
    step("update", () -> {
      command("update", "changelogFile", log);
      expect(TABLES, "[active_singers, albums, lands, singers, tickets]");
      expect("SELECT full_name FROM active_singers", "[Ann Lee]");
      expect("SELECT code FROM lands ORDER BY 1", "[at, fr]");
    });
    step("update with nothing to do", () -> command("update", "changelogFile", log));
    step("reflect", () -> {
      Path made = Files.createTempFile("reflected", ".xml");
      Files.delete(made);
      command("generateChangelog", "changelogFile", made.toString());
      String text = Files.readString(made);
      Files.delete(made);
      for (String part : List.of("tableName=\"albums\"", "indexName=\"albums_by_singer\"", "viewName=\"active_singers\"", "constraintName=\"fk_singers_lands\"")) {
        if (!text.contains(part)) {
          throw new AssertionError(part + " is not in " + text);
        }
      }
    });
    step("roll back to the tag", () -> {
      command("rollback", "changelogFile", log, "tag", "first");
      expect(TABLES, "[albums, countries, singers]");
    });
    step("update again", () -> command("update", "changelogFile", log));
    step("roll back all", () -> {
      command("rollbackCount", "changelogFile", log, "count", 100);
      expect(TABLES, "[]");
    });
  }

  public static void main(String[] args) throws Exception {
    String url = "jdbc:cloudspanner://" + System.getenv("SPANNER_EMULATOR_HOST")
        + "/projects/interop/instances/liquibase-" + ProcessHandle.current().pid() + "/databases/app?usePlainText=true;autoConfigEmulator=true";
    // Liquibase's messages go to its log instead of the standard output.
    Scope.child(Map.of(Scope.Attr.ui.name(), new LoggerUIService()), () -> new Migrate(url).run());
    System.out.println(passed + " passed, " + failed + " failed");
    System.exit(failed == 0 ? 0 : 1);
  }
}
