package crowfoot;

import crowfoot.first.First;
import crowfoot.second.Second;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

/** Hibernate with Spanner's dialect: it creates a schema from entities, updates it to other entities, validates it, and drops it. The mode "create" is left out: it drops a sequence first, also one that is not there. */
public final class Map {
  private static int passed;
  private static int failed;

  private final String url;

  private Map(String url) {
    this.url = url;
  }

  private interface Action {
    void run() throws Exception;
  }

  private static void step(String name, Action action) {
    try {
      action.run();
      passed++;
      System.out.println("ok   hibernate " + name);
    } catch (Throwable e) { // the next step is tried in any case
      failed++;
      StringBuilder causes = new StringBuilder();
      for (Throwable cause = e; cause != null; cause = cause.getCause()) {
        causes.append("\n     ").append(cause);
      }
      System.out.println("FAIL hibernate " + name + causes);
    }
  }

  /** Opens a session factory, which does to the schema what mode says, and runs work in a transaction. */
  private void in(String mode, Class<?>[] entities, Consumer<Session> work) {
    Configuration configuration = new Configuration()
        .setProperty("hibernate.dialect", "com.google.cloud.spanner.hibernate.SpannerDialect")
        .setProperty("hibernate.connection.driver_class", "com.google.cloud.spanner.jdbc.JdbcDriver")
        .setProperty("hibernate.connection.url", url)
        .setProperty("hibernate.hbm2ddl.auto", mode);
    for (Class<?> entity : entities) {
      configuration.addAnnotatedClass(entity);
    }
    try (SessionFactory factory = configuration.buildSessionFactory()) {
      factory.inTransaction(work);
    }
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

  private void run() {
    Consumer<Session> nothing = session -> {};
    step("create", () -> in("create-only", First.ENTITIES, First::write));
    step("reflect", () -> {
      expect("SELECT index_name FROM information_schema.indexes WHERE table_name = 'Singer' AND NOT spanner_is_managed ORDER BY 1", "[PRIMARY_KEY, singers_by_mail, singers_by_name]");
      expect("SELECT is_identity FROM information_schema.columns WHERE table_name = 'Singer' AND column_name = 'id'", "[YES]");
      expect("SELECT parent_table_name FROM information_schema.tables WHERE table_name = 'Track'", "[Album]");
      expect("SELECT name FROM information_schema.sequences", "[venue_ids]");
    });
    step("validate", () -> in("validate", First.ENTITIES, nothing));
    step("update", () -> in("update", Second.ENTITIES, Second::write));
    step("update with nothing to do", () -> in("update", Second.ENTITIES, nothing));
    step("validate the update", () -> in("validate", Second.ENTITIES, nothing));
    step("drop", () -> {
      in("drop", Second.ENTITIES, nothing);
      expect("SELECT table_name FROM information_schema.tables WHERE table_schema = ''", "[]");
      expect("SELECT name FROM information_schema.sequences", "[]");
    });
    step("create anew", () -> in("create-only", First.ENTITIES, First::write));
  }

  public static void main(String[] args) {
    new Map("jdbc:cloudspanner://" + System.getenv("SPANNER_EMULATOR_HOST") + "/projects/interop/instances/hibernate-" + ProcessHandle.current().pid()
        + "/databases/app?usePlainText=true;autoConfigEmulator=true").run();
    System.out.println(passed + " passed, " + failed + " failed");
    System.exit(failed == 0 ? 0 : 1);
  }
}
