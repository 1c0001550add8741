package crowfoot;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPairGenerator;
import java.util.Base64;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** Runs the integration tests that the library is published with. Those that Google calls stress tests are left out: they run for minutes. */
final class PublishedTests {
  private static final String PACKAGE = "com.google.cloud.spanner.watcher.it.";
  private static final String[] CLASSES = {
    "ITSpannerTableTailerTest", "ITSpannerDatabaseTailerTest", "ITSpannerTableChangeSetPollerTest", "ITSpannerDatabaseChangeSetPollerTest"
  };
  private static final int COUNT = 9; // a library with fewer tests is another library

  static void run(Check check, String project) throws Exception {
    Path credentials = serviceAccount(project);
    try {
      System.setProperty("spanner.project", project);
      System.setProperty("spanner.credentials", credentials.toString());
      JUnitCore core = new JUnitCore();
      Listener listener = new Listener(check);
      core.addListener(listener);
      for (String name : CLASSES) {
        core.run(Class.forName(PACKAGE + name));
      }
      Check.same(listener.finished, COUNT);
    } finally {
      Files.delete(credentials);
    }
  }

  /** A credentials file of a service account that does not exist. The tests read one before the client sees that it talks to an emulator and drops it. */
  private static Path serviceAccount(String project) throws Exception {
    KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
    generator.initialize(2048);
    String key = Base64.getEncoder().encodeToString(generator.generateKeyPair().getPrivate().getEncoded());
    String json =
        String.format(
            "{\"type\": \"service_account\", \"project_id\": \"%s\", \"private_key_id\": \"0\", \"client_id\": \"0\", \"client_email\": \"test@example.com\","
                + " \"private_key\": \"-----BEGIN PRIVATE KEY-----\\n%s\\n-----END PRIVATE KEY-----\\n\"}",
            project, key);
    Path file = Files.createTempFile("service-account", ".json");
    return Files.write(file, json.getBytes(StandardCharsets.UTF_8));
  }

  /** Counts each test, and the setting up of a class if that fails. */
  private static final class Listener extends RunListener {
    private final Check check;
    private int finished;
    private Throwable failure;

    Listener(Check check) {
      this.check = check;
    }

    @Override
    public void testFailure(Failure f) {
      failure = f.getException();
      if (f.getDescription().isSuite()) {
        testFinished(f.getDescription());
      }
    }

    @Override
    public void testFinished(Description d) {
      finished++;
      check.done("Google's " + d.getTestClass().getSimpleName() + "." + d.getMethodName(), failure);
      failure = null;
    }
  }

  private PublishedTests() {}
}
