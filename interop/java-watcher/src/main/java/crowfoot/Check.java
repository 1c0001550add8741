package crowfoot;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Callable;

/** Counts and prints which steps have passed. */
final class Check {
  private static final Duration PATIENCE = Duration.ofMinutes(1);

  private int passed;
  private int failed;

  interface Step {
    void run() throws Exception;
  }

  void step(String name, Step s) {
    try {
      s.run();
      done(name, null);
    } catch (Throwable t) {
      done(name, t);
    }
  }

  void done(String name, Throwable failure) {
    if (failure == null) {
      passed++;
      System.out.println("ok   java watcher: " + name);
      return;
    }
    failed++;
    System.out.println("FAIL java watcher: " + name + ": " + failure);
    failure.printStackTrace(System.out);
  }

  /** Prints the sum and returns the exit status. */
  int end() {
    System.out.printf("%d passed, %d failed%n", passed, failed);
    return failed == 0 ? 0 : 1;
  }

  static void same(Object got, Object want) {
    if (!Objects.equals(got, want)) {
      throw new AssertionError("got " + got + ", want " + want);
    }
  }

  /** Waits until something is true. */
  static void await(String what, Callable<Boolean> isTrue) throws Exception {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (!isTrue.call()) {
      if (System.nanoTime() > end) {
        throw new AssertionError("waited in vain until " + what);
      }
      Thread.sleep(5);
    }
  }
}
