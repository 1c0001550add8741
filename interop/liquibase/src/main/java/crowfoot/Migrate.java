package crowfoot;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import liquibase.Scope;
import liquibase.command.CommandScope;
import liquibase.ui.LoggerUIService;

/** Liquibase with Spanner's extension: the change log is run and rolled back by Liquibase's own commands, and the schema is reflected. */
public final class Migrate {
  private static final Steps STEPS = new Steps("liquibase");

  private Migrate() {}

  private static void command(String name, Object... arguments) throws Exception {
    CommandScope command = new CommandScope(name.split(" ")).addArgumentValue("url", STEPS.url());
    for (int i = 0; i < arguments.length; i += 2) {
      command.addArgumentValue((String) arguments[i], arguments[i + 1]);
    }
    command.execute();
  }

  private static final String TABLES =
      "SELECT table_name FROM information_schema.tables WHERE table_schema = '' AND table_name NOT LIKE 'DATABASECHANGELOG%' ORDER BY 1";

  private static void run() {
    String log = "changelog.xml";
    STEPS.step("update to a tag", () -> {
      command("updateToTag", "changelogFile", log, "tag", "first");
      STEPS.expect("SELECT full_name FROM singers ORDER BY id", "[Ann Lee, Bob O'Neil]");
      STEPS.expect("SELECT name FROM countries ORDER BY code", "[Austria, France]");
    });
    STEPS.step("update", () -> {
      command("update", "changelogFile", log);
      STEPS.expect(TABLES, "[active_singers, albums, lands, singers, tickets]");
      STEPS.expect("SELECT full_name FROM active_singers", "[Ann Lee]");
      STEPS.expect("SELECT code FROM lands ORDER BY 1", "[at, fr]");
    });
    STEPS.step("update with nothing to do", () -> command("update", "changelogFile", log));
    STEPS.step("reflect", () -> {
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
    STEPS.step("roll back to the tag", () -> {
      command("rollback", "changelogFile", log, "tag", "first");
      STEPS.expect(TABLES, "[albums, countries, singers]");
    });
    STEPS.step("update again", () -> command("update", "changelogFile", log));
    STEPS.step("roll back all", () -> {
      command("rollbackCount", "changelogFile", log, "count", 100);
      STEPS.expect(TABLES, "[]");
    });
  }

  public static void main(String[] args) throws Exception {
    // Liquibase's messages go to its log instead of the standard output.
    Scope.child(Map.of(Scope.Attr.ui.name(), new LoggerUIService()), Migrate::run);
    STEPS.end();
  }
}
