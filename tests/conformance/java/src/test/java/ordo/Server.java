package ordo;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** `ordo serve` as a child; ORDO_PROGRAM names the program. */
final class Server {
  private final int port = freePort();
  private final Path directory;
  private Process child;

  Server() throws IOException {
    directory = Files.createTempDirectory("ordo-conformance-");
    run();
  }

  // A port below those that the kernel gives to clients: a client that tries again and again to reach
  // a server that is down may be given its port, and then talks to itself.
  private static int freePort() {
    while (true) {
      int port = ThreadLocalRandom.current().nextInt(10_000, 30_000);
      try (ServerSocket probe = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
        return port;
      } catch (IOException taken) {
        continue;
      }
    }
  }

  String address() {
    return "127.0.0.1:" + port;
  }

  private void run() throws IOException {
    List<String> words = List.of(System.getenv("ORDO_PROGRAM"), "serve", "--listen", address(), "--data",
        directory.resolve("data").toString(), "--min-ack-deadline", "1s");
    child = new ProcessBuilder(words).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    BufferedReader lines = child.inputReader();
    String line = lines.readLine();
    while (line != null && !line.contains("PUBSUB_EMULATOR_HOST")) {
      line = lines.readLine();
    }
    if (line == null) throw new IOException("the server did not start");
  }

  /** Ends it without a word, and starts it again on the same port and data. */
  void crash() throws Exception {
    child.destroyForcibly().waitFor();
    run();
  }

  /** Ends it as an operator does; gives the exit status. */
  int stop() throws Exception {
    child.destroy();
    if (!child.waitFor(1, TimeUnit.MINUTES)) child.destroyForcibly();
    try (var files = Files.walk(directory)) {
      for (Path path : files.sorted(Comparator.reverseOrder()).toList()) Files.delete(path);
    }
    return child.waitFor();
  }
}
