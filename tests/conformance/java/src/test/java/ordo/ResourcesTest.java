package ordo;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.google.api.gax.rpc.StatusCode.Code;
import com.google.cloud.pubsub.v1.Publisher;
import com.google.cloud.pubsub.v1.TopicAdminClient.ListTopicsPage;
import com.google.iam.v1.Binding;
import com.google.iam.v1.GetIamPolicyRequest;
import com.google.iam.v1.Policy;
import com.google.iam.v1.SetIamPolicyRequest;
import com.google.iam.v1.TestIamPermissionsRequest;
import com.google.protobuf.ByteString;
import com.google.protobuf.Duration;
import com.google.protobuf.FieldMask;
import com.google.pubsub.v1.DetachSubscriptionRequest;
import com.google.pubsub.v1.ExpirationPolicy;
import com.google.pubsub.v1.ListTopicsRequest;
import com.google.pubsub.v1.PubsubMessage;
import com.google.pubsub.v1.RetryPolicy;
import com.google.pubsub.v1.Subscription;
import com.google.pubsub.v1.Topic;
import com.google.pubsub.v1.UpdateSubscriptionRequest;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Topics, subscriptions and policies: defaults, masks, pages, and what is refused with which code. */
class ResourcesTest extends ServerTest {
  private static Duration seconds(long count) {
    return Duration.newBuilder().setSeconds(count).build();
  }

  @Test
  void aMaskChangesWhatItNamesAndNothingElse() {
    String name = subscription(topic(), settings -> settings.putLabels("team", "blue"));
    Subscription changed = subscriptions.updateSubscription(
        Subscription.newBuilder().setName(name).setAckDeadlineSeconds(33).putLabels("team", "red").build(),
        FieldMask.newBuilder().addPaths("ack_deadline_seconds").build());
    assertEquals(33, changed.getAckDeadlineSeconds());
    assertEquals(Map.of("team", "blue"), changed.getLabelsMap());
    assertEquals(seconds(7 * 86_400), changed.getMessageRetentionDuration());
    assertEquals(seconds(31 * 86_400), changed.getExpirationPolicy().getTtl());
    assertEquals(changed, subscriptions.getSubscription(name));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "topic", "filter", "enable_message_ordering", "nonsense"})
  void aMaskThatCannotBeIsRefused(String path) {
    UpdateSubscriptionRequest.Builder request = UpdateSubscriptionRequest.newBuilder()
        .setSubscription(Subscription.newBuilder().setName(subscription(topic())));
    if (!path.isEmpty()) request.setUpdateMask(FieldMask.newBuilder().addPaths(path));
    expectCode(Code.INVALID_ARGUMENT, () -> subscriptions.updateSubscription(request.build()));
  }

  @Test
  void listsComeInPages() {
    String project = "projects/pages-of-java";
    List<String> names = new ArrayList<>();
    for (int index = 0; index < 5; ++index) {
      names.add(topics.createTopic(project + "/topics/topic-" + index).getName());
    }
    List<Integer> sizes = new ArrayList<>();
    List<String> listed = new ArrayList<>();
    ListTopicsRequest request = ListTopicsRequest.newBuilder().setProject(project).setPageSize(2).build();
    for (ListTopicsPage page : topics.listTopics(request).iteratePages()) {
      int before = listed.size();
      for (Topic topic : page.getValues()) listed.add(topic.getName());
      sizes.add(listed.size() - before);
    }
    Collections.sort(listed);
    assertEquals(names, listed);
    assertEquals(List.of(2, 2, 1), sizes);
    names.forEach(topics::deleteTopic);
  }

  @Test
  void whatDoesNotExistOrExistsAlreadyIsSaidSo() {
    String topic = topic();
    String subscription = subscription(topic);
    expectCode(Code.ALREADY_EXISTS, () -> topics.createTopic(topic));
    expectCode(Code.ALREADY_EXISTS, () -> subscriptions.createSubscription(
        Subscription.newBuilder().setName(subscription).setTopic(topic).build()));
    expectCode(Code.NOT_FOUND, () -> subscription(unique("topic")));
    expectCode(Code.NOT_FOUND, () -> topics.getTopic(unique("topic")));
    expectCode(Code.NOT_FOUND, () -> subscriptions.pull(unique("subscription"), 1));
    expectCode(Code.INVALID_ARGUMENT, () -> topics.createTopic("projects/test/topics/googly"));
  }

  static List<Subscription> settingsOutOfBounds() {
    return List.of(
        Subscription.newBuilder().setAckDeadlineSeconds(601).build(),
        Subscription.newBuilder().setAckDeadlineSeconds(-1).build(),
        Subscription.newBuilder().setMessageRetentionDuration(seconds(60)).build(),
        Subscription.newBuilder()
            .setExpirationPolicy(ExpirationPolicy.newBuilder().setTtl(seconds(3600))).build(),
        Subscription.newBuilder()
            .setRetryPolicy(RetryPolicy.newBuilder().setMinimumBackoff(seconds(601))).build(),
        Subscription.newBuilder().setFilter("nonsense(").build());
  }

  @ParameterizedTest
  @MethodSource("settingsOutOfBounds")
  void settingsOutOfBoundsAreRefused(Subscription settings) {
    String topic = topic();
    expectCode(Code.INVALID_ARGUMENT, () -> subscriptions.createSubscription(
        settings.toBuilder().setName(unique("subscription")).setTopic(topic).build()));
  }

  static List<List<PubsubMessage>> requestsOutOfBounds() {
    PubsubMessage one = message("x", "");
    return List.of(
        List.of(),
        List.of(PubsubMessage.getDefaultInstance()),
        List.of(message("x", "a"), message("x", "b")),
        List.of(PubsubMessage.newBuilder().putAttributes("goog-mine", "").build()),
        List.of(PubsubMessage.newBuilder().putAttributes("long", "v".repeat(1025)).build()),
        Collections.nCopies(1001, one),
        List.of(PubsubMessage.newBuilder().setData(ByteString.copyFrom(new byte[10_000_001])).build()));
  }

  @ParameterizedTest(name = "{index}")
  @MethodSource("requestsOutOfBounds")
  void requestsOutOfBoundsAreRefusedAndNothingOfThemIsStored(List<PubsubMessage> messages)
      throws Exception {
    String topic = topic();
    String subscription = subscription(topic);
    expectCode(Code.INVALID_ARGUMENT, () -> topics.publish(topic, messages));
    publish(publisher(topic), "", "the next");
    pullOne(subscription, "the next");
  }

  @Test
  void aSubscriptionOutlivesItsTopicAndADetachedOneRefusesToBePulled() throws Exception {
    String topic = topic();
    String name = subscription(topic);
    Publisher publisher = publisher(topic);
    publish(publisher, "", "kept");
    topics.deleteTopic(topic);
    assertEquals("_deleted-topic_", subscriptions.getSubscription(name).getTopic());
    pullOne(name, "kept");
    topics.detachSubscription(DetachSubscriptionRequest.newBuilder().setSubscription(name).build());
    expectCode(Code.FAILED_PRECONDITION, () -> subscriptions.pull(name, 1));
  }

  @Test
  void aPolicyIsKeptAndEveryPermissionGranted() {
    String topic = topic();
    Binding viewer = Binding.newBuilder()
        .setRole("roles/pubsub.viewer").addMembers("user:somebody@example.com").build();
    Policy before = topics.getIamPolicy(GetIamPolicyRequest.newBuilder().setResource(topic).build());
    topics.setIamPolicy(SetIamPolicyRequest.newBuilder()
        .setResource(topic).setPolicy(before.toBuilder().addBindings(viewer)).build());
    Policy kept = topics.getIamPolicy(GetIamPolicyRequest.newBuilder().setResource(topic).build());
    assertEquals(List.of(viewer), kept.getBindingsList());
    List<String> asked = List.of("pubsub.topics.get", "pubsub.topics.publish");
    assertEquals(asked, topics.testIamPermissions(TestIamPermissionsRequest.newBuilder()
        .setResource(topic).addAllPermissions(asked).build()).getPermissionsList());
  }
}
