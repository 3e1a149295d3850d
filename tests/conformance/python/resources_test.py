"""Topics, subscriptions and policies: defaults, masks, pages, and what is refused with which code."""

import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.pubsub_v1 import PublisherClient as PlainPublisher

from server import PATIENCE


@pytest.fixture
def plain(server):
    """The generated client: sends what it is given, in one request."""
    return PlainPublisher(credentials=AnonymousCredentials(),
                          client_options={"api_endpoint": f"127.0.0.1:{server.port}"})


def test_a_new_subscription_has_the_defaults_of_the_service(rig):
    topic, name = rig.pair()
    subscription = rig.subscriber.get_subscription(subscription=name)
    assert subscription.topic == topic
    assert subscription.ack_deadline_seconds == 10
    assert subscription.message_retention_duration.total_seconds() == 7 * 86400
    assert subscription.expiration_policy.ttl.total_seconds() == 31 * 86400
    assert subscription.push_config.push_endpoint == ""
    assert not subscription.retain_acked_messages


def test_a_mask_changes_what_it_names_and_nothing_else(rig):
    _, name = rig.pair(labels={"team": "blue"})
    changed = rig.subscriber.update_subscription(request={
        "subscription": {"name": name, "ack_deadline_seconds": 33, "labels": {"team": "red"},
                         "retry_policy": {"minimum_backoff": Duration(seconds=2)}},
        "update_mask": FieldMask(paths=["ack_deadline_seconds", "retry_policy"])})
    assert changed.ack_deadline_seconds == 33
    assert dict(changed.labels) == {"team": "blue"}
    assert changed.retry_policy.minimum_backoff.total_seconds() == 2
    assert changed.retry_policy.maximum_backoff.total_seconds() == 600
    assert rig.subscriber.get_subscription(subscription=name) == changed


def test_a_topic_is_changed_by_a_mask(rig):
    topic, name = rig.pair()
    rig.publisher.update_topic(request={
        "topic": {"name": topic, "labels": {"team": "blue"},
                  "message_retention_duration": Duration(seconds=1200)},
        "update_mask": FieldMask(paths=["labels", "message_retention_duration"])})
    assert dict(rig.publisher.get_topic(topic=topic).labels) == {"team": "blue"}
    subscription = rig.subscriber.get_subscription(subscription=name)
    assert subscription.topic_message_retention_duration.total_seconds() == 1200


@pytest.mark.parametrize("paths", [[], ["topic"], ["filter"], ["enable_message_ordering"],
                                   ["ackDeadlineSeconds"], ["nonsense"]])
def test_a_mask_that_cannot_be_is_refused(rig, paths):
    _, name = rig.pair()
    with pytest.raises(exceptions.InvalidArgument):
        rig.subscriber.update_subscription(request={
            "subscription": {"name": name}, "update_mask": FieldMask(paths=paths)})


def test_lists_come_in_pages(rig):
    project = f"projects/{rig.unique('page').rsplit('/', 1)[1]}"
    topics = [f"{project}/topics/topic-{index}" for index in range(5)]
    for topic in topics:
        rig.create_topic(topic)
    pages = rig.publisher.list_topics(request={"project": project, "page_size": 2}).pages
    names = [[topic.name for topic in page.topics] for page in pages]
    assert [len(page) for page in names] == [2, 2, 1]
    assert sorted(sum(names, [])) == topics

    subscriptions = [f"{project}/subscriptions/subscription-{index}" for index in range(3)]
    for name in subscriptions:
        rig.create_subscription(name, topics[0])
    listed = rig.subscriber.list_subscriptions(request={"project": project, "page_size": 1})
    assert sorted(one.name for one in listed) == subscriptions
    of_topic = rig.publisher.list_topic_subscriptions(
        request={"topic": topics[0], "page_size": 2})
    assert sorted(of_topic) == subscriptions


def test_a_subscription_outlives_its_topic(rig):
    topic, name = rig.pair()
    rig.publish_all(topic, ["kept"])
    rig.publisher.delete_topic(topic=topic)
    assert rig.subscriber.get_subscription(subscription=name).topic == "_deleted-topic_"
    assert rig.collect(name).wait_for(1) == ["kept"]
    with pytest.raises(exceptions.NotFound):
        rig.publish(topic, "more").result(PATIENCE)


def test_what_does_not_exist_is_not_found(rig):
    topic = rig.unique("topic")
    with pytest.raises(exceptions.NotFound):
        rig.publisher.get_topic(topic=topic)
    with pytest.raises(exceptions.NotFound):
        rig.publisher.delete_topic(topic=topic)
    with pytest.raises(exceptions.NotFound):
        rig.subscription(topic)
    with pytest.raises(exceptions.NotFound):
        rig.pull(rig.unique("subscription"))
    with pytest.raises(exceptions.NotFound):
        rig.receive(rig.unique("subscription"), lambda _: None).result(PATIENCE)


def test_what_exists_already_exists(rig):
    topic, name = rig.pair()
    with pytest.raises(exceptions.AlreadyExists):
        rig.publisher.create_topic(name=topic)
    with pytest.raises(exceptions.AlreadyExists):
        rig.subscriber.create_subscription(name=name, topic=topic)


@pytest.mark.parametrize("settings", [
    {"ack_deadline_seconds": 601},
    {"ack_deadline_seconds": -1},
    {"message_retention_duration": Duration(seconds=60)},
    {"message_retention_duration": Duration(seconds=32 * 86400)},
    {"expiration_policy": {"ttl": Duration(seconds=3600)}},
    {"retry_policy": {"minimum_backoff": Duration(seconds=601)}},
    {"filter": "nonsense("},
    {"filter": 'attributes:a AND attributes:b OR attributes:c'},
], ids=str)
def test_settings_out_of_bounds_are_refused(rig, settings):
    with pytest.raises(exceptions.InvalidArgument):
        rig.pair(**settings)


@pytest.mark.parametrize("name", ["ab", "googly", "1abc", "with space", "a" * 256])
def test_names_out_of_bounds_are_refused(rig, name):
    with pytest.raises(exceptions.InvalidArgument):
        rig.publisher.create_topic(name=f"projects/test/topics/{name}")


@pytest.mark.parametrize("messages", [
    [],
    [{"data": b""}],
    [{"data": b"x", "ordering_key": "a"}, {"data": b"x", "ordering_key": "b"}],
    [{"data": b"x", "attributes": {"": "no name"}}],
    [{"data": b"x", "attributes": {"goog-mine": "taken"}}],
    [{"data": b"x", "attributes": {"n" * 257: "long name"}}],
    [{"data": b"x", "attributes": {"long": "v" * 1025}}],
    [{"data": b"x", "attributes": {f"n{index}": "" for index in range(101)}}],
    [{"data": b"x"}] * 1001,
    [{"data": b"x" * 10_000_001}],
], ids=["none", "empty", "mixed keys", "unnamed", "reserved", "long name", "long value",
        "101 attributes", "1001 messages", "over 10 MB"])
def test_requests_out_of_bounds_are_refused_and_nothing_of_them_is_stored(rig, plain, messages):
    topic, subscription = rig.pair()
    with pytest.raises(exceptions.InvalidArgument):
        plain.publish(request={"topic": topic, "messages": messages}, timeout=PATIENCE)
    rig.publish_all(topic, ["the next"])
    [received] = rig.pull(subscription)
    assert received.message.data == b"the next"


def test_a_policy_is_kept_and_every_permission_granted(rig):
    topic, subscription = rig.pair()
    for client, resource in [(rig.publisher, topic), (rig.subscriber, subscription)]:
        policy = client.get_iam_policy(request={"resource": resource})
        policy.bindings.add(role="roles/pubsub.viewer", members=["user:somebody@example.com"])
        client.set_iam_policy(request={"resource": resource, "policy": policy})
        kept = client.get_iam_policy(request={"resource": resource})
        assert [binding.role for binding in kept.bindings] == ["roles/pubsub.viewer"]
        asked = ["pubsub.topics.publish", "pubsub.subscriptions.consume"]
        granted = client.test_iam_permissions(
            request={"resource": resource, "permissions": asked})
        assert list(granted.permissions) == asked
