package crowfoot;

import crowfoot.first.First;
import crowfoot.second.Second;
import java.util.function.Consumer;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

/** Hibernate with Spanner's dialect: it creates a schema from entities, updates it to other entities, validates it, and drops it. The mode "create" is left out: it drops a sequence first, also one that is not there. */
public final class Map {
  private static final Steps STEPS = new Steps("hibernate");

  private Map() {}

  /** Opens a session factory, which does to the schema what mode says, and runs work in a transaction. */
  private static void in(String mode, Class<?>[] entities, Consumer<Session> work) {
    Configuration configuration = new Configuration()
        .setProperty("hibernate.dialect", "com.google.cloud.spanner.hibernate.SpannerDialect")
        .setProperty("hibernate.connection.driver_class", "com.google.cloud.spanner.jdbc.JdbcDriver")
        .setProperty("hibernate.connection.url", STEPS.url())
        .setProperty("hibernate.hbm2ddl.auto", mode);
    for (Class<?> entity : entities) {
      configuration.addAnnotatedClass(entity);
    }
    try (SessionFactory factory = configuration.buildSessionFactory()) {
      factory.inTransaction(work);
    }
  }

  public static void main(String[] args) {
    Consumer<Session> nothing = session -> {};
    STEPS.step("create", () -> in("create-only", First.ENTITIES, First::write));
    STEPS.step("reflect", () -> {
      STEPS.expect("SELECT index_name FROM information_schema.indexes WHERE table_name = 'Singer' AND NOT spanner_is_managed ORDER BY 1", "[PRIMARY_KEY, singers_by_mail, singers_by_name]");
      STEPS.expect("SELECT is_identity FROM information_schema.columns WHERE table_name = 'Singer' AND column_name = 'id'", "[YES]");
      STEPS.expect("SELECT parent_table_name FROM information_schema.tables WHERE table_name = 'Track'", "[Album]");
      STEPS.expect("SELECT name FROM information_schema.sequences", "[venue_ids]");
    });
    STEPS.step("validate", () -> in("validate", First.ENTITIES, nothing));
    STEPS.step("update", () -> in("update", Second.ENTITIES, Second::write));
    STEPS.step("update with nothing to do", () -> in("update", Second.ENTITIES, nothing));
    STEPS.step("validate the update", () -> in("validate", Second.ENTITIES, nothing));
    STEPS.step("drop", () -> {
      in("drop", Second.ENTITIES, nothing);
      STEPS.expect("SELECT table_name FROM information_schema.tables WHERE table_schema = ''", "[]");
      STEPS.expect("SELECT name FROM information_schema.sequences", "[]");
    });
    STEPS.step("create anew", () -> in("create-only", First.ENTITIES, First::write));
    STEPS.end();
  }
}
