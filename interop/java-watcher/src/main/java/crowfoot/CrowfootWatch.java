package crowfoot;

import com.google.cloud.Timestamp;
import java.io.BufferedReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A process of crowfoot watch, whose lines are rows with an INT64 key of which each comes once. */
final class CrowfootWatch {
  private static final Pattern LINE = Pattern.compile("\\{\"commit_timestamp\":\"([^\"]+)\".*?\"keys\":\\{\"[^\"]+\":(\\d+)\\}.*");

  private final Process process;
  private final Thread reader;
  private final Map<Long, Timestamp> got = new ConcurrentHashMap<>();
  private volatile AssertionError error;

  /** The executable is $CROWFOOT, the server that of $SPANNER_EMULATOR_HOST. */
  CrowfootWatch(String... arguments) throws Exception {
    List<String> command = new ArrayList<>(List.of(System.getenv("CROWFOOT"), "watch", "--interval", "10ms", "--repository", "spanner"));
    command.addAll(List.of(arguments));
    process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    reader = new Thread(this::read);
    reader.start();
  }

  private void read() {
    Timestamp last = Timestamp.MIN_VALUE;
    try (BufferedReader lines = process.inputReader()) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        Matcher m = LINE.matcher(line);
        Check.same(m.matches(), true);
        Timestamp at = Timestamp.parseTimestamp(m.group(1));
        if (got.put(Long.valueOf(m.group(2)), at) != null || at.compareTo(last) < 0) {
          throw new AssertionError("this came twice or late: " + line);
        }
        last = at;
      }
    } catch (Exception e) {
      error = new AssertionError(e);
    } catch (AssertionError e) {
      error = e;
    }
  }

  boolean has(Set<Long> keys) {
    return error != null || got.keySet().containsAll(keys) || !process.isAlive();
  }

  void awaitRows(int n) throws Exception {
    Check.await("crowfoot watch has printed " + n + " rows", () -> error != null || got.size() >= n || !process.isAlive());
  }

  /** Has it end in order and gives all that it has printed. */
  Map<Long, Timestamp> end() throws Exception {
    process.toHandle().destroy(); // Process.destroy would close the standard output, too
    if (!process.waitFor(1, TimeUnit.MINUTES)) {
      process.destroyForcibly();
      throw new AssertionError("crowfoot watch does not end");
    }
    reader.join();
    if (error != null) {
      throw error;
    }
    Check.same(process.exitValue(), 0);
    return got;
  }
}
