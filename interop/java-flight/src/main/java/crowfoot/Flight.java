package crowfoot;

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** A small application on Arrow's Flight SQL driver for JDBC: queries, parameters, updates, types, metadata, errors. */
public final class Flight {
  private static int failures;

  public static void main(String[] args) throws Exception {
    String url = "jdbc:arrow-flight-sql://" + System.getenv("SPANNER_EMULATOR_HOST") + "/?useEncryption=false&database=" + args[0];
    try (Connection c = DriverManager.getConnection(url)) {
      run("updates", () -> updates(c));
      run("types", () -> types(c));
      run("parameters", () -> parameters(c));
      run("manyRows", () -> manyRows(c));
      run("metadata", () -> metadata(c));
      run("errors", () -> errors(c));
      run("drop", () -> drop(c));
    }
    System.exit(failures == 0 ? 0 : 1);
  }

  private interface Step {
    void run() throws Exception;
  }

  private static void run(String name, Step step) {
    try {
      step.run();
      System.out.println("ok " + name);
    } catch (Throwable e) {
      failures++;
      System.out.println("FAIL " + name);
      e.printStackTrace(System.out);
    }
  }

  private static void same(Object got, Object want) {
    if (!String.valueOf(got).equals(String.valueOf(want))) {
      throw new AssertionError("got " + got + ", want " + want);
    }
  }

  private static void updates(Connection c) throws SQLException {
    try (Statement s = c.createStatement()) {
      s.executeUpdate(
          "CREATE TABLE JdbcTypes (Id INT64 NOT NULL, Flag BOOL, Double FLOAT64, Price NUMERIC, Name STRING(MAX), Data BYTES(MAX), Day DATE, At1 TIMESTAMP, Doc JSON,"
              + " Uid UUID, Tags ARRAY<STRING(MAX)>) PRIMARY KEY (Id)");
      same(
          s.executeUpdate(
              "INSERT INTO JdbcTypes (Id, Flag, Double, Price, Name, Data, Day, At1, Doc, Uid, Tags) VALUES (1, true, 1.5, 12.5, 'ÿ', b'\\x00\\xff', '2024-02-29',"
                  + " '2024-02-29T01:02:03.000004Z', JSON '{\"a\": 1}', '00112233-4455-6677-8899-aabbccddeeff', ['x', NULL])"),
          1);
    }
  }

  private static void types(Connection c) throws SQLException {
    try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT * FROM JdbcTypes")) {
      same(r.next(), true);
      same(r.getLong("Id"), 1);
      same(r.getBoolean("Flag"), true);
      same(r.getDouble("Double"), 1.5);
      same(r.getBigDecimal("Price").compareTo(new BigDecimal("12.5")), 0);
      same(r.getString("Name"), "ÿ");
      same(r.getBytes("Data").length, 2);
      same(r.getDate("Day").toLocalDate(), "2024-02-29");
      same(r.getTimestamp("At1").toInstant(), "2024-02-29T01:02:03.000004Z");
      same(r.getString("Doc"), "{\"a\":1}");
      same(((Object[]) r.getArray("Tags").getArray())[0], "x");
      same(r.next(), false);
    }
  }

  private static void parameters(Connection c) throws SQLException {
    try (PreparedStatement p = c.prepareStatement("INSERT INTO JdbcTypes (Id, Name) VALUES (?, ?)")) {
      p.setLong(1, 2);
      p.setString(2, "two");
      same(p.executeUpdate(), 1);
      for (long id = 3; id < 6; id++) {
        p.setLong(1, id);
        p.setString(2, "row " + id);
        p.addBatch();
      }
      same(IntStream.of(p.executeBatch()).sum(), 3);
    }
    try (PreparedStatement p = c.prepareStatement("SELECT Name FROM JdbcTypes WHERE Id >= ? AND Name LIKE ? ORDER BY Id")) {
      p.setLong(1, 4);
      p.setString(2, "row%");
      List<String> names = new ArrayList<>();
      try (ResultSet r = p.executeQuery()) {
        while (r.next()) {
          names.add(r.getString(1));
        }
      }
      same(names, "[row 4, row 5]");
    }
  }

  private static void manyRows(Connection c) throws SQLException {
    try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT n, CONCAT('row ', CAST(n AS STRING)) FROM UNNEST(GENERATE_ARRAY(1, 200000)) n")) {
      long rows = 0;
      while (r.next()) {
        rows++;
        same(r.getString(2), "row " + r.getLong(1));
      }
      same(rows, 200000);
    }
  }

  private static void metadata(Connection c) throws SQLException {
    DatabaseMetaData m = c.getMetaData();
    same(m.getDatabaseProductName(), "Crowfoot");
    try (ResultSet r = m.getTables(null, "", "Jdbc%", null)) {
      same(r.next(), true);
      same(r.getString("TABLE_NAME"), "JdbcTypes");
      same(r.next(), false);
    }
    List<String> columns = new ArrayList<>();
    try (ResultSet r = m.getColumns(null, "", "JdbcTypes", "%")) {
      while (r.next()) {
        columns.add(r.getString("COLUMN_NAME"));
      }
    }
    same(columns, "[Id, Flag, Double, Price, Name, Data, Day, At1, Doc, Uid, Tags]");
    try (ResultSet r = m.getPrimaryKeys(null, "", "JdbcTypes")) {
      same(r.next(), true);
      same(r.getString("COLUMN_NAME"), "Id");
    }
  }

  private static void errors(Connection c) throws SQLException {
    try (Statement s = c.createStatement()) {
      try {
        s.executeQuery("SELECT Nothing FROM JdbcTypes");
        throw new AssertionError("no error");
      } catch (SQLException e) {
        same(e.toString().contains("Unrecognized name: Nothing") || String.valueOf(e.getCause()).contains("Unrecognized name: Nothing"), true);
      }
    }
  }

  private static void drop(Connection c) throws SQLException {
    try (Statement s = c.createStatement()) {
      s.executeUpdate("DROP TABLE JdbcTypes");
    }
  }
}
