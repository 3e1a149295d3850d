package ordo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.fail;

import com.google.api.core.ApiFuture;
import com.google.api.gax.core.NoCredentialsProvider;
import com.google.api.gax.grpc.GrpcTransportChannel;
import com.google.api.gax.rpc.ApiException;
import com.google.api.gax.rpc.FixedTransportChannelProvider;
import com.google.api.gax.rpc.NotFoundException;
import com.google.api.gax.rpc.StatusCode;
import com.google.api.gax.rpc.TransportChannelProvider;
import com.google.cloud.pubsub.v1.MessageReceiver;
import com.google.cloud.pubsub.v1.Publisher;
import com.google.cloud.pubsub.v1.Subscriber;
import com.google.cloud.pubsub.v1.SubscriptionAdminClient;
import com.google.cloud.pubsub.v1.SubscriptionAdminSettings;
import com.google.cloud.pubsub.v1.TopicAdminClient;
import com.google.cloud.pubsub.v1.TopicAdminSettings;
import com.google.protobuf.ByteString;
import com.google.pubsub.v1.PubsubMessage;
import com.google.pubsub.v1.ReceivedMessage;
import com.google.pubsub.v1.Subscription;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** What the tests share: a server and clients for each class, topics and subscriptions for each test. */
@Timeout(value = 3, unit = TimeUnit.MINUTES)
abstract class ServerTest {
  static final long PATIENCE = 60; // Seconds: far more than anything takes.
  private static final AtomicInteger serial = new AtomicInteger();

  static Server server;
  static TransportChannelProvider channels;
  static TopicAdminClient topics;
  static SubscriptionAdminClient subscriptions;
  private static ManagedChannel channel;

  private final Deque<Runnable> cleanup = new ArrayDeque<>();

  @BeforeAll
  static void start() throws Exception {
    server = new Server();
    channel = ManagedChannelBuilder.forTarget(server.address()).usePlaintext()
        .maxInboundMessageSize(20 << 20).build();
    channels = FixedTransportChannelProvider.create(GrpcTransportChannel.create(channel));
    topics = TopicAdminClient.create(TopicAdminSettings.newBuilder()
        .setTransportChannelProvider(channels)
        .setCredentialsProvider(NoCredentialsProvider.create()).build());
    subscriptions = SubscriptionAdminClient.create(SubscriptionAdminSettings.newBuilder()
        .setTransportChannelProvider(channels)
        .setCredentialsProvider(NoCredentialsProvider.create()).build());
  }

  @AfterAll
  static void stop() throws Exception {
    topics.close();
    subscriptions.close();
    channel.shutdownNow().awaitTermination(PATIENCE, TimeUnit.SECONDS);
    assertEquals(0, server.stop());
  }

  @AfterEach
  void clean() {
    while (!cleanup.isEmpty()) {
      try {
        cleanup.pop().run();
      } catch (NotFoundException gone) {
        continue; // The test has done it.
      }
    }
  }

  static String unique(String kind) {
    return "projects/test/" + kind + "s/" + kind + "-" + serial.incrementAndGet();
  }

  String topic() {
    String name = unique("topic");
    topics.createTopic(name);
    cleanup.push(() -> topics.deleteTopic(name));
    return name;
  }

  /** Ordered, unless `settings` say otherwise. */
  String subscription(String topic, Consumer<Subscription.Builder> settings) {
    Subscription.Builder wanted = Subscription.newBuilder()
        .setName(unique("subscription")).setTopic(topic).setEnableMessageOrdering(true);
    settings.accept(wanted);
    String name = subscriptions.createSubscription(wanted.build()).getName();
    cleanup.push(() -> subscriptions.deleteSubscription(name));
    return name;
  }

  String subscription(String topic) {
    return subscription(topic, unchanged -> {});
  }

  Publisher.Builder publisherOf(String topic) {
    return Publisher.newBuilder(topic).setChannelProvider(channels)
        .setCredentialsProvider(NoCredentialsProvider.create()).setEnableMessageOrdering(true);
  }

  Publisher publisher(String topic) throws Exception {
    return closing(publisherOf(topic).build());
  }

  Publisher closing(Publisher publisher) {
    cleanup.push(() -> {
      publisher.shutdown();
      try {
        publisher.awaitTermination(PATIENCE, TimeUnit.SECONDS);
      } catch (InterruptedException error) {
        throw new IllegalStateException(error);
      }
    });
    return publisher;
  }

  static PubsubMessage message(String text, String key) {
    return PubsubMessage.newBuilder().setData(ByteString.copyFromUtf8(text)).setOrderingKey(key).build();
  }

  /** Waits until all are stored, and gives their ids. */
  static List<String> publish(Publisher publisher, String key, String... texts) throws Exception {
    List<ApiFuture<String>> futures = new ArrayList<>();
    for (String text : texts) futures.add(publisher.publish(message(text, key)));
    List<String> ids = new ArrayList<>();
    for (ApiFuture<String> future : futures) ids.add(future.get(PATIENCE, TimeUnit.SECONDS));
    return ids;
  }

  Subscriber.Builder subscriberOf(String subscription, MessageReceiver receiver) {
    return Subscriber.newBuilder(subscription, receiver).setChannelProvider(channels)
        .setCredentialsProvider(NoCredentialsProvider.create());
  }

  Subscriber receive(String subscription, MessageReceiver receiver) {
    return running(subscriberOf(subscription, receiver).build());
  }

  Subscriber running(Subscriber subscriber) {
    subscriber.startAsync().awaitRunning();
    cleanup.push(() -> {
      if (subscriber.isRunning()) subscriber.stopAsync().awaitTerminated();
    });
    return subscriber;
  }

  /** The texts of all that comes, acknowledged. */
  BlockingQueue<String> collect(String subscription) {
    BlockingQueue<String> inbox = new LinkedBlockingQueue<>();
    receive(subscription, (message, reply) -> {
      inbox.add(message.getData().toStringUtf8());
      reply.ack();
    });
    return inbox;
  }

  /** Takes one for each of `texts`, in their order. */
  static void expect(BlockingQueue<String> inbox, String... texts) throws InterruptedException {
    for (String text : texts) assertEquals(text, inbox.poll(PATIENCE, TimeUnit.SECONDS));
  }

  static void eventually(String what, BooleanSupplier condition) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE);
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() > end) fail("never: " + what);
      Thread.sleep(5);
    }
  }

  /** One call that waits for messages; there can be one only. */
  static ReceivedMessage pullOne(String subscription, String text) {
    List<ReceivedMessage> received = subscriptions.pull(subscription, 10).getReceivedMessagesList();
    assertEquals(List.of(text),
        received.stream().map(one -> one.getMessage().getData().toStringUtf8()).toList());
    return received.get(0);
  }

  static ApiException expectCode(StatusCode.Code code, Executable call) {
    ApiException error = assertThrows(ApiException.class, call);
    assertEquals(code, error.getStatusCode().getCode(), error.getMessage());
    return error;
  }
}
