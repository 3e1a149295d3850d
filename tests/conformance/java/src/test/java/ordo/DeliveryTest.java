package ordo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.api.gax.batching.FlowControlSettings;
import com.google.api.gax.core.NoCredentialsProvider;
import com.google.api.gax.rpc.ApiException;
import com.google.api.gax.rpc.NotFoundException;
import com.google.api.gax.rpc.StatusCode;
import com.google.cloud.pubsub.v1.AckReplyConsumerWithResponse;
import com.google.cloud.pubsub.v1.AckResponse;
import com.google.cloud.pubsub.v1.MessageReceiverWithAckResponse;
import com.google.cloud.pubsub.v1.Publisher;
import com.google.cloud.pubsub.v1.Subscriber;
import com.google.protobuf.ByteString;
import com.google.protobuf.Duration;
import com.google.protobuf.Timestamp;
import com.google.pubsub.v1.CreateSnapshotRequest;
import com.google.pubsub.v1.DeadLetterPolicy;
import com.google.pubsub.v1.PubsubMessage;
import com.google.pubsub.v1.RetryPolicy;
import com.google.pubsub.v1.SeekRequest;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** Deliveries: acknowledged, refused, filtered, dead, sought and replayed. */
class DeliveryTest extends ServerTest {
  @Test
  void aMessageComesAsItWasPublished() throws Exception {
    String topic = topic();
    String subscription = subscription(topic);
    PubsubMessage sent = PubsubMessage.newBuilder().setData(ByteString.copyFromUtf8("grüße"))
        .putAttributes("colour", "blue").putAttributes("empty", "").setOrderingKey("k").build();
    String id = publisher(topic).publish(sent).get(PATIENCE, TimeUnit.SECONDS);
    BlockingQueue<PubsubMessage> inbox = new LinkedBlockingQueue<>();
    receive(subscription, (message, reply) -> {
      inbox.add(message);
      reply.ack();
    });
    PubsubMessage got = inbox.poll(PATIENCE, TimeUnit.SECONDS);
    assertEquals(id, got.getMessageId());
    assertEquals(System.currentTimeMillis() / 1000, got.getPublishTime().getSeconds(), PATIENCE);
    assertEquals(sent, got.toBuilder().clearMessageId().clearPublishTime().build());
  }

  @Test
  void messagesOfAlmostTenMegabytesAndOfAttributesAlone() throws Exception {
    String topic = topic();
    String subscription = subscription(topic);
    Publisher publisher = publisher(topic);
    String large = "x".repeat(9_990_000);
    publish(publisher, "k", large);
    publisher.publish(PubsubMessage.newBuilder().putAttributes("colour", "blue").setOrderingKey("k").build())
        .get(PATIENCE, TimeUnit.SECONDS);
    expect(collect(subscription), large, "");
  }

  @Test
  void aPublisherMayCompress() throws Exception {
    String topic = topic();
    BlockingQueue<String> inbox = collect(subscription(topic));
    Publisher publisher = closing(
        publisherOf(topic).setEnableCompression(true).setCompressionBytesThreshold(100).build());
    String text = "compressed ".repeat(1000);
    publish(publisher, "k", text);
    expect(inbox, text);
  }

  @Test
  void noMoreMessagesAreOutstandingThanTheClientWants() throws Exception {
    String topic = topic();
    AtomicInteger active = new AtomicInteger();
    AtomicInteger most = new AtomicInteger();
    BlockingQueue<String> inbox = new LinkedBlockingQueue<>();
    running(subscriberOf(subscription(topic), (message, reply) -> {
      most.accumulateAndGet(active.incrementAndGet(), Math::max);
      Thread.yield();
      active.decrementAndGet();
      inbox.add("");
      reply.ack();
    }).setFlowControlSettings(
        FlowControlSettings.newBuilder().setMaxOutstandingElementCount(3L).build()).build());
    Publisher publisher = publisher(topic);
    for (int index = 0; index < 20; ++index) publish(publisher, "", Integer.toString(index));
    expect(inbox, Collections.nCopies(20, "").toArray(String[]::new));
    assertTrue(most.get() <= 3, most + " were outstanding");
  }

  @Test
  void aFilterLetsThroughWhatItNames() throws Exception {
    String topic = topic();
    BlockingQueue<String> inbox = collect(
        subscription(topic, settings -> settings.setFilter("attributes.colour = \"blue\" OR attributes:all")));
    Publisher publisher = publisher(topic);
    List<Map<String, String>> attributes = List.of(
        Map.of("colour", "red"), Map.of("colour", "blue"), Map.of("all", ""), Map.of());
    for (int index = 0; index < attributes.size(); ++index) {
      publisher.publish(message(Integer.toString(index), "k").toBuilder()
          .putAllAttributes(attributes.get(index)).build()).get(PATIENCE, TimeUnit.SECONDS);
    }
    publisher.publish(message("last", "k").toBuilder().putAttributes("all", "").build()).get();
    expect(inbox, "1", "2", "last");
  }

  @Test
  void aNackedMessageComesAgainAfterItsBackOffAndBeforeItsSuccessor() throws Exception {
    String topic = topic();
    String subscription = subscription(topic, settings -> settings.setRetryPolicy(
        RetryPolicy.newBuilder().setMinimumBackoff(Duration.newBuilder().setSeconds(1))
            .setMaximumBackoff(Duration.newBuilder().setSeconds(2))));
    AtomicLong nacked = new AtomicLong();
    AtomicLong waited = new AtomicLong();
    BlockingQueue<String> inbox = new LinkedBlockingQueue<>();
    receive(subscription, (message, reply) -> {
      if (nacked.compareAndSet(0, System.nanoTime())) {
        reply.nack();
      } else {
        waited.compareAndSet(0, System.nanoTime() - nacked.get());
        reply.ack();
      }
      inbox.add(message.getData().toStringUtf8());
    });
    publish(publisher(topic), "k", "first", "second");
    expect(inbox, "first", "first", "second");
    assertTrue(waited.get() >= 900_000_000L, "again after " + waited + " ns");
  }

  @Test
  void aDeadLetterComesAfterFiveAttemptsWithItsKeyAndItsOrigin() throws Exception {
    String dead = topic();
    String letters = subscription(dead);
    String topic = topic();
    String subscription = subscription(topic, settings -> settings.setDeadLetterPolicy(
        DeadLetterPolicy.newBuilder().setDeadLetterTopic(dead).setMaxDeliveryAttempts(5)));
    List<Integer> attempts = Collections.synchronizedList(new ArrayList<>());
    BlockingQueue<String> inbox = new LinkedBlockingQueue<>();
    receive(subscription, (message, reply) -> {
      String text = message.getData().toStringUtf8();
      if (text.equals("poison")) {
        attempts.add(Subscriber.getDeliveryAttempt(message));
        reply.nack();
      } else {
        inbox.add(text);
        reply.ack();
      }
    });
    publish(publisher(topic), "k", "poison", "behind it");
    PubsubMessage letter = pullOne(letters, "poison").getMessage();
    expect(inbox, "behind it");
    assertEquals(List.of(1, 2, 3, 4, 5), attempts);
    assertEquals("k", letter.getOrderingKey());
    assertEquals("5", letter.getAttributesOrThrow("CloudPubSubDeadLetterSourceDeliveryCount"));
    assertTrue(subscription.endsWith(
        "/" + letter.getAttributesOrThrow("CloudPubSubDeadLetterSourceSubscription")));
  }

  @Test
  void exactlyOnceTellsWhetherAnAckCounted() throws Exception {
    String topic = topic();
    String subscription = subscription(topic, settings -> settings.setEnableExactlyOnceDelivery(true));
    BlockingQueue<AckReplyConsumerWithResponse> replies = new LinkedBlockingQueue<>();
    MessageReceiverWithAckResponse receiver = (message, reply) -> replies.add(reply);
    running(Subscriber.newBuilder(subscription, receiver).setChannelProvider(channels)
        .setCredentialsProvider(NoCredentialsProvider.create()).build());
    publish(publisher(topic), "k", "once");
    assertEquals(AckResponse.SUCCESSFUL,
        replies.poll(PATIENCE, TimeUnit.SECONDS).nack().get(PATIENCE, TimeUnit.SECONDS));
    assertEquals(AckResponse.SUCCESSFUL,
        replies.poll(PATIENCE, TimeUnit.SECONDS).ack().get(PATIENCE, TimeUnit.SECONDS));
  }

  @Test
  void exactlyOnceRefusesTheAckOfAnOlderDeliveryAndSaysWhich() throws Exception {
    String topic = topic();
    String subscription = subscription(
        topic, settings -> settings.setEnableExactlyOnceDelivery(true).setAckDeadlineSeconds(1));
    publish(publisher(topic), "k", "once");
    String old = pullOne(subscription, "once").getAckId();
    pullOne(subscription, "once");
    ApiException error = expectCode(StatusCode.Code.INVALID_ARGUMENT,
        () -> subscriptions.acknowledge(subscription, List.of(old)));
    assertEquals("EXACTLY_ONCE_ACKID_FAILURE", error.getReason());
    assertEquals(Map.of(old, "PERMANENT_FAILURE_INVALID_ACK_ID"), error.getMetadata());
  }

  @Test
  void aSeekBringsBackWhatWasAcknowledged() throws Exception {
    String topic = topic();
    String subscription = subscription(topic, settings -> settings.setRetainAckedMessages(true));
    String snapshot = subscriptions.createSnapshot(CreateSnapshotRequest.newBuilder()
        .setName(unique("snapshot")).setSubscription(subscription).build()).getName();
    publish(publisher(topic), "k", "1", "2");
    Timestamp first = null;
    for (String text : List.of("1", "2")) {
      var received = pullOne(subscription, text);
      if (first == null) first = received.getMessage().getPublishTime();
      subscriptions.acknowledge(subscription, List.of(received.getAckId()));
    }
    SeekRequest seek = SeekRequest.newBuilder().setSubscription(subscription).build();
    for (SeekRequest to : List.of(
        seek.toBuilder().setTime(first).build(), seek.toBuilder().setSnapshot(snapshot).build())) {
      subscriptions.seek(to);
      for (String text : List.of("1", "2")) {
        subscriptions.acknowledge(subscription, List.of(pullOne(subscription, text).getAckId()));
      }
    }
    subscriptions.deleteSnapshot(snapshot);
    assertThrows(NotFoundException.class, () -> subscriptions.getSnapshot(snapshot));
  }

  @Test
  void aSubscriberOfADeletedSubscriptionFailsWithNotFound() throws Exception {
    String topic = topic();
    String subscription = subscription(topic);
    ConcurrentLinkedQueue<String> seen = new ConcurrentLinkedQueue<>();
    Subscriber subscriber = receive(subscription, (message, reply) -> {
      reply.ack();
      seen.add("");
    });
    publish(publisher(topic), "", "here");
    eventually("the first", () -> !seen.isEmpty());
    subscriptions.deleteSubscription(subscription);
    eventually("the end", () -> !subscriber.isRunning());
    Throwable failure = subscriber.failureCause();
    assertInstanceOf(NotFoundException.class, failure, failure.toString());
  }
}
