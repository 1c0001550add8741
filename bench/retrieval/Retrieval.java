import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.Statement;
import java.sql.Types;

/**
 * Reads tables with SPL and with JDBC drivers for `crowfoot bench retrieval`: one request a line, as worker.go describes. The libraries are those of the class path. It names none of their
 * classes at compile time, so that each may be missing.
 */
public final class Retrieval {
  /** As many rows as the study takes in one fetch. */
  private static final int FETCH = 10_000;

  private static final String FLIGHT = "org.apache.arrow.driver.jdbc.ArrowFlightJdbcDriver";
  private static final String SPANNER = "com.google.cloud.spanner.jdbc.JdbcDriver";
  private static final String SPL = "com.scudata.expression.Expression";

  public static void main(String[] args) throws Exception {
    // What libraries print goes to standard output and is no reply.
    PrintStream replies = new PrintStream(new FileOutputStream("/dev/fd/3"), true, StandardCharsets.UTF_8);
    replies.println(String.join("\t", "ready", found("SPL", SPL), found("flight-sql-jdbc-driver", FLIGHT), found("google-cloud-spanner-jdbc", SPANNER)));
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = requests.readLine()) != null; ) {
      try {
        replies.println("rows\t" + read(line.split("\t")));
      } catch (Throwable e) { // the reader of the reply judges it
        Throwable cause = e.getCause() == null ? e : e.getCause();
        replies.println("error\t" + (e + ": " + cause).replaceAll("\\s+", " "));
      }
    }
    System.exit(0); // drivers leave threads behind
  }

  /** The name of a library, and its version if the class path has it. */
  private static String found(String name, String className) {
    try {
      Class<?> c = Class.forName(className);
      String jar = c.getProtectionDomain().getCodeSource().getLocation().getPath();
      return name + " " + jar.replaceAll(".*/|\\.jar$", "");
    } catch (ClassNotFoundException e) {
      return name;
    }
  }

  private static long read(String[] request) throws Exception {
    return switch (request[0]) {
      case "spl" -> spl(request[1]);
      case "spl_write" -> splWrite(request[1], request[2]);
      case "jdbc" -> jdbc(request[1], request[2]);
      default -> throw new IllegalArgumentException("no request " + request[0]);
    };
  }

  /** What an expression of SPL is. */
  private static Object calculate(String expression) throws Exception {
    Class<?> contextClass = Class.forName("com.scudata.dm.Context");
    Class<?> expressionClass = Class.forName(SPL);
    Object context = contextClass.getConstructor().newInstance();
    Object parsed = expressionClass.getConstructor(contextClass, String.class).newInstance(context, expression);
    return expressionClass.getMethod("calculate", contextClass).invoke(parsed, context);
  }

  /** Reads the cursor that an expression of SPL is. */
  private static long spl(String expression) throws Exception {
    Object cursor = calculate(expression);
    Method fetch = Class.forName("com.scudata.dm.cursor.ICursor").getMethod("fetch", int.class);
    Method length = Class.forName("com.scudata.dm.Sequence").getMethod("length");
    long rows = 0;
    for (Object batch; (batch = fetch.invoke(cursor, FETCH)) != null; ) {
      int n = (int) length.invoke(batch);
      if (n == 0) {
        break;
      }
      rows += n;
    }
    cursor.getClass().getMethod("close").invoke(cursor);
    return rows;
  }

  /** Calculates an expression that writes a file, and reads it again by another. */
  private static long splWrite(String write, String read) throws Exception {
    calculate(write);
    return spl(read);
  }

  /** Reads a query's rows into arrays of objects, of which it keeps the last. */
  private static long jdbc(String url, String query) throws Exception {
    try (Connection c = DriverManager.getConnection(url); Statement s = c.createStatement()) {
      s.setFetchSize(FETCH);
      try (ResultSet r = s.executeQuery(query)) {
        ResultSetMetaData columns = r.getMetaData();
        int[] types = new int[columns.getColumnCount()];
        for (int i = 0; i < types.length; i++) {
          types[i] = columns.getColumnType(i + 1);
        }
        Object[][] kept = new Object[FETCH][];
        long rows = 0;
        while (r.next()) {
          Object[] row = new Object[types.length];
          for (int i = 0; i < types.length; i++) {
            row[i] = value(r, types[i], i + 1);
          }
          kept[(int) (rows++ % FETCH)] = row;
        }
        return rows;
      }
    }
  }

  private static Object value(ResultSet r, int type, int column) throws Exception {
    return switch (type) {
      case Types.BIGINT -> r.getLong(column);
      case Types.DOUBLE -> r.getDouble(column);
      case Types.DATE -> r.getDate(column);
      default -> r.getString(column);
    };
  }
}
