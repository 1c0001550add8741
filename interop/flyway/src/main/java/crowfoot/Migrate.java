package crowfoot;

import java.util.Arrays;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.FlywayException;
import org.flywaydb.core.api.MigrationInfo;

/** Flyway with Spanner's extension: migrations of DDL and rows, and each of its commands. */
public final class Migrate {
  private static final Steps STEPS = new Steps("flyway");

  private static final String TABLES =
      "SELECT table_name FROM information_schema.tables WHERE table_schema = '' AND table_name != 'flyway_schema_history' ORDER BY 1";

  private static final Logger LOG = Logger.getLogger("org.flywaydb"); // held, so that its level stays

  private Migrate() {}

  private static Flyway flyway(String... locations) {
    return Flyway.configure().dataSource(STEPS.url(), null, null).locations(locations).cleanDisabled(false).load();
  }

  private static String states(Flyway flyway) {
    return Arrays.toString(Arrays.stream(flyway.info().all()).map(MigrationInfo::getState).toArray());
  }

  public static void main(String[] args) {
    LOG.setLevel(Level.OFF);
    Flyway first = flyway("classpath:db/migration");
    Flyway later = flyway("classpath:db/migration", "classpath:db/later");
    STEPS.step("migrate", () -> {
      Steps.same(first.migrate().migrationsExecuted, 4);
      STEPS.expect(TABLES, "[album_titles, albums, concerts, names, singers]");
      STEPS.expect("SELECT name FROM names ORDER BY name", "[Ann, Bo]");
      STEPS.expect("SELECT title FROM album_titles", "[One; two]");
    });
    STEPS.step("migrate with nothing to do", () -> Steps.same(first.migrate().migrationsExecuted, 0));
    STEPS.step("info and validate", () -> {
      Steps.same(states(first), "[SUCCESS, SUCCESS, SUCCESS, SUCCESS]");
      first.validate();
    });
    STEPS.step("a migration that fails", () -> {
      try {
        later.migrate();
      } catch (FlywayException e) {
        STEPS.expect("SELECT country FROM singers", "[at, at]");
        Steps.same(states(later).contains("FAILED"), true);
        return;
      }
      throw new AssertionError("it succeeds");
    });
    STEPS.step("repair", () -> {
      later.repair();
      Steps.same(states(later).contains("FAILED"), false);
    });
    STEPS.step("clean", () -> {
      later.clean();
      STEPS.expect(TABLES, "[]");
    });
    STEPS.step("baseline", () -> {
      first.baseline();
      STEPS.expect("SELECT type FROM flyway_schema_history", "[BASELINE]");
    });
    STEPS.end();
  }
}
