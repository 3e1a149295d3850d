package ordo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.api.core.ApiFuture;
import com.google.api.gax.batching.BatchingSettings;
import com.google.cloud.pubsub.v1.Publisher;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Order within a key, freedom between keys, as users of the official Java client meet it. */
class OrderingTest extends ServerTest {
  @Test
  void threeMessagesOfOneKeyArriveAsFirstSecondThird() throws Exception {
    String topic = topic();
    BlockingQueue<String> inbox = collect(subscription(topic));
    publish(publisher(topic), "k", "first", "second", "third");
    expect(inbox, "first", "second", "third");
  }

  @Test
  void fiveOfOneKeyWithASlowHandlerAreNeverTwoAtOnce() throws Exception {
    String topic = topic();
    AtomicInteger active = new AtomicInteger();
    AtomicInteger most = new AtomicInteger();
    BlockingQueue<String> inbox = new LinkedBlockingQueue<>();
    receive(subscription(topic), (message, reply) -> {
      most.accumulateAndGet(active.incrementAndGet(), Math::max);
      try {
        Thread.sleep(50);
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
      }
      active.decrementAndGet();
      inbox.add(message.getData().toStringUtf8());
      reply.ack();
    });
    publish(publisher(topic), "k", "1", "2", "3", "4", "5");
    expect(inbox, "1", "2", "3", "4", "5");
    assertEquals(1, most.get());
  }

  @Test
  void threeKeysAreHandledAtOnce() throws Exception {
    String topic = topic();
    CyclicBarrier together = new CyclicBarrier(3);
    BlockingQueue<String> inbox = new LinkedBlockingQueue<>();
    receive(subscription(topic), (message, reply) -> {
      try {
        together.await(PATIENCE, TimeUnit.SECONDS);
        inbox.add("together");
      } catch (Exception error) {
        inbox.add(error.toString());
      }
      reply.ack();
    });
    Publisher publisher = publisher(topic);
    for (String key : List.of("a", "b", "c")) publish(publisher, key, key);
    expect(inbox, "together", "together", "together");
  }

  @Test
  void aNackBringsTheFirstAgainBeforeTheSecond() throws Exception {
    String topic = topic();
    String subscription = subscription(topic);
    publish(publisher(topic), "k", "first", "second");
    AtomicInteger count = new AtomicInteger();
    BlockingQueue<String> inbox = new LinkedBlockingQueue<>();
    receive(subscription, (message, reply) -> {
      inbox.add(message.getData().toStringUtf8());
      if (count.incrementAndGet() == 1) reply.nack();
      else reply.ack();
    });
    expect(inbox, "first", "first", "second");
  }

  @Test
  void aDeadlineOfOneSecondThatPassesBringsTheFirstAgainThenTheSecond() throws Exception {
    String topic = topic();
    String subscription = subscription(topic, settings -> settings.setAckDeadlineSeconds(1));
    publish(publisher(topic), "k", "first", "second");
    pullOne(subscription, "first");
    String again = pullOne(subscription, "first").getAckId();
    subscriptions.acknowledge(subscription, List.of(again));
    pullOne(subscription, "second");
  }

  @Test
  void aBlockedKeyDoesNotHoldUpAMessageWithoutOne() throws Exception {
    String topic = topic();
    CountDownLatch release = new CountDownLatch(1);
    BlockingQueue<String> inbox = new LinkedBlockingQueue<>();
    receive(subscription(topic), (message, reply) -> {
      try {
        if (!message.getOrderingKey().isEmpty()) release.await(PATIENCE, TimeUnit.SECONDS);
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
      }
      inbox.add(message.getData().toStringUtf8());
      reply.ack();
    });
    Publisher publisher = publisher(topic);
    publish(publisher, "k", "blocked", "behind");
    publish(publisher, "", "free");
    expect(inbox, "free");
    release.countDown();
    expect(inbox, "blocked", "behind");
  }

  @Test
  void twoSubscriptionsGetEverythingInOrderEachByItself() throws Exception {
    String topic = topic();
    BlockingQueue<String> one = collect(subscription(topic));
    BlockingQueue<String> other = collect(subscription(topic));
    publish(publisher(topic), "k", "1", "2", "3");
    expect(one, "1", "2", "3");
    expect(other, "1", "2", "3");
  }

  @Test
  void twentyMessagesOverFiveKeysThroughABatchingPublisher() throws Exception {
    String topic = topic();
    Numbers numbers = new Numbers();
    numbers.receive(subscription(topic));
    Publisher publisher = closing(publisherOf(topic)
        .setBatchingSettings(BatchingSettings.newBuilder().setElementCountThreshold(100L)
            .setRequestByteThreshold(100_000L).setDelayThresholdDuration(Duration.ofMillis(100)).build())
        .build());
    HashSet<String> ids = new HashSet<>();
    for (ApiFuture<String> future : numbers.publish(publisher, 20)) ids.add(future.get());
    assertEquals(20, ids.size());
    eventually("all of them", numbers::areComplete);
    numbers.expectOrder();
  }

  @Test
  void aKeyThatFailedIsPausedByTheClientUntilItIsResumed() throws Exception {
    String topic = topic();
    BlockingQueue<String> inbox = collect(subscription(topic));
    Publisher publisher = publisher(topic);
    assertThrows(ExecutionException.class, () -> publish(publisher, "k", ""));
    assertThrows(ExecutionException.class, () -> publish(publisher, "k", "refused"));
    publisher.resumePublish("k");
    publish(publisher, "k", "after");
    expect(inbox, "after");
  }

  @Test
  void aKeyOf1024BytesPassesAndOneByteMoreIsRefused() throws Exception {
    String topic = topic();
    String subscription = subscription(topic);
    String key = "é".repeat(512);
    publish(publisher(topic), key, "fits");
    assertEquals(key, pullOne(subscription, "fits").getMessage().getOrderingKey());
    ExecutionException error =
        assertThrows(ExecutionException.class, () -> publish(publisher(topic), key + "x", "no"));
    assertTrue(error.getMessage().contains("1024 bytes"), error.getMessage());
  }

  @Test
  void clientsGoOnByThemselvesAfterCrashesAndNothingIsLost() throws Exception {
    String topic = topic();
    Numbers numbers = new Numbers();
    numbers.receive(subscription(topic));
    Publisher publisher = publisher(topic);
    for (int round = 0; round < 2; ++round) {
      List<ApiFuture<String>> futures = numbers.publish(publisher, 50);
      server.crash();
      for (ApiFuture<String> future : futures) future.get(PATIENCE, TimeUnit.SECONDS);
    }
    eventually("all of them", numbers::areComplete);
    numbers.expectOrder();
  }

  /** Numbers, published over five keys, and what of them has come. */
  private final class Numbers {
    private final Map<String, List<Integer>> published = new TreeMap<>();
    private final Map<String, List<Integer>> got = new TreeMap<>();
    private int total = 0;

    List<ApiFuture<String>> publish(Publisher publisher, int count) {
      List<ApiFuture<String>> futures = new ArrayList<>();
      for (int index = 0; index < count; ++index, ++total) {
        String key = "key-" + total % 5;
        published.computeIfAbsent(key, unseen -> new ArrayList<>()).add(total);
        futures.add(publisher.publish(message(Integer.toString(total), key)));
      }
      return futures;
    }

    void receive(String subscription) {
      OrderingTest.this.receive(subscription, (message, reply) -> {
        add(message.getOrderingKey(), Integer.parseInt(message.getData().toStringUtf8()));
        reply.ack();
      });
    }

    private synchronized void add(String key, int number) {
      List<Integer> list = got.computeIfAbsent(key, unseen -> new ArrayList<>());
      if (!list.contains(number)) list.add(number); // After a crash the last ones may come again.
    }

    synchronized boolean areComplete() {
      return got.values().stream().mapToInt(List::size).sum() == total;
    }

    synchronized void expectOrder() {
      assertEquals(published, got);
    }
  }
}
