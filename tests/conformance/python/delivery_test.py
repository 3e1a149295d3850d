"""Deliveries: acknowledged, refused, expired, filtered, dead, sought and replayed."""

import threading
import time
from datetime import timedelta

import grpc
import pytest
from google.api_core import exceptions
from google.cloud.pubsub_v1 import SubscriberClient
from google.cloud.pubsub_v1.subscriber.exceptions import AcknowledgeStatus
from google.protobuf.duration_pb2 import Duration
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

from conftest import Inbox
from server import PATIENCE, eventually


def texts(received):
    return [one.message.data.decode() for one in received]


def nothing_waits(rig, subscription):
    """True when a pull that does not wait gets nothing."""
    request = {"subscription": subscription, "max_messages": 10, "return_immediately": True}
    with pytest.warns(DeprecationWarning):
        return not rig.subscriber.pull(request=request).received_messages


def test_a_message_comes_as_it_was_published(rig):
    topic, subscription = rig.pair()
    message_id = rig.publish(topic, "grüße", "k", colour="blue", empty="").result(PATIENCE)
    [received] = rig.pull(subscription)
    message = received.message
    assert (message.message_id, message.data.decode(), message.ordering_key) == (
        message_id, "grüße", "k")
    assert dict(message.attributes) == {"colour": "blue", "empty": ""}
    assert message.publish_time.timestamp() == pytest.approx(time.time(), abs=PATIENCE)
    assert received.delivery_attempt == 0


def test_a_message_may_have_attributes_and_no_data(rig):
    topic, subscription = rig.pair()
    rig.publish(topic, "", colour="blue").result(PATIENCE)
    [received] = rig.pull(subscription)
    assert received.message.data == b""
    assert dict(received.message.attributes) == {"colour": "blue"}


def test_a_message_of_almost_ten_megabytes(rig, server):
    topic, subscription = rig.pair()
    data = b"x" * 9_990_000
    rig.publisher.publish(topic, data).result(PATIENCE)
    # With PUBSUB_EMULATOR_HOST this client takes no more than 4 MB, unless it is given a channel.
    channel = grpc.insecure_channel(
        f"127.0.0.1:{server.port}", options=[("grpc.max_receive_message_length", -1)])
    inbox = Inbox()

    def handle(message):
        inbox.append(message.data)
        message.ack()

    with SubscriberClient(transport=SubscriberGrpcTransport(channel=channel)) as subscriber:
        rig.receive(subscription, handle, subscriber)
        assert inbox.wait_for(1) == [data]


def test_acknowledged_messages_do_not_come_again(rig):
    topic, subscription = rig.pair(ack_deadline_seconds=1)
    rig.publish_all(topic, ["only"])
    received = rig.pull(subscription)
    rig.acknowledge(subscription, received)
    rig.acknowledge(subscription, received)  # Once more is no error.
    rig.publish_all(topic, ["next"])
    assert texts(rig.pull(subscription)) == ["next"]
    time.sleep(1.2)
    assert texts(rig.pull(subscription)) == ["next"]


def test_a_deadline_can_be_extended_and_given_up(rig):
    topic, subscription = rig.pair(ack_deadline_seconds=4)
    rig.publish_all(topic, ["one"], "k")
    [received] = rig.pull(subscription)
    change = {"subscription": subscription, "ack_ids": [received.ack_id]}
    rig.subscriber.modify_ack_deadline(request={**change, "ack_deadline_seconds": 600})
    time.sleep(4.2)
    assert nothing_waits(rig, subscription)
    rig.subscriber.modify_ack_deadline(request={**change, "ack_deadline_seconds": 0})
    assert texts(rig.pull(subscription)) == ["one"]


def test_no_more_messages_are_outstanding_than_the_client_wants(rig):
    topic, subscription = rig.pair()
    held, lock, most, count = [], threading.Lock(), [0], [0]

    def handle(message):
        with lock:
            held.append(message)
            count[0] += 1
            most[0] = max(most[0], len(held))

    rig.receive(subscription, handle, max_messages=3)
    rig.publish_all(topic, [str(index) for index in range(10)])
    while count[0] < 10:
        eventually("three, or the last", lambda: len(held) == 3 or count[0] == 10)
        with lock:
            done, held[:] = list(held), []
        for message in done:
            message.ack()
    assert most[0] <= 3


def test_a_filter_lets_through_what_it_names(rig):
    topic, subscription = rig.pair(filter='attributes.colour = "blue" AND NOT attributes:old')
    for data, attributes in [("1", {"colour": "red"}), ("2", {"colour": "blue"}), ("3", {}),
                             ("4", {"colour": "blue", "old": "yes"}), ("5", {"colour": "blue"})]:
        rig.publish(topic, data, "k", **attributes).result(PATIENCE)
    assert rig.collect(subscription).wait_for(2) == ["2", "5"]
    eventually("nothing else", lambda: nothing_waits(rig, subscription))


def test_a_nacked_message_comes_again_after_its_back_off_and_before_its_successor(rig):
    topic, subscription = rig.pair(retry_policy={
        "minimum_backoff": Duration(seconds=1), "maximum_backoff": Duration(seconds=2)})
    times, inbox = [], Inbox()

    def handle(message):
        times.append(time.monotonic())
        if len(times) == 1:
            message.nack()
        else:
            message.ack()
        inbox.append(message.data.decode())

    rig.publish_all(topic, ["first", "second"], "k")
    rig.receive(subscription, handle)
    assert inbox.wait_for(3) == ["first", "first", "second"]
    assert times[1] - times[0] >= 0.9


def test_a_dead_letter_comes_after_five_attempts_with_its_key_and_its_origin(rig):
    dead = rig.topic()
    letters = rig.subscription(dead)
    topic, subscription = rig.pair(
        dead_letter_policy={"dead_letter_topic": dead, "max_delivery_attempts": 5})
    attempts, inbox = [], Inbox()

    def handle(message):
        if message.data == b"poison":
            attempts.append(message.delivery_attempt)
            message.nack()
        else:
            inbox.append(message.data.decode())
            message.ack()

    rig.receive(subscription, handle)
    rig.publish(topic, "poison", "k", colour="blue").result(PATIENCE)
    rig.publish(topic, "behind it", "k").result(PATIENCE)
    [letter] = rig.pull(letters)
    assert attempts == [1, 2, 3, 4, 5]
    assert inbox.wait_for(1) == ["behind it"]
    message = letter.message
    assert (message.data, message.ordering_key) == (b"poison", "k")
    assert message.attributes["colour"] == "blue"
    assert message.attributes["CloudPubSubDeadLetterSourceDeliveryCount"] == "5"
    assert subscription.endswith("/" + message.attributes["CloudPubSubDeadLetterSourceSubscription"])


def test_exactly_once_tells_whether_an_ack_counted(rig):
    topic, subscription = rig.pair(enable_exactly_once_delivery=True)
    messages = Inbox()
    rig.receive(subscription, messages.append)
    rig.publish_all(topic, ["once"], "k")
    messages.wait_for(1)
    assert messages[0].nack_with_response().result(PATIENCE) == AcknowledgeStatus.SUCCESS
    messages.wait_for(2)
    assert messages[1].ack_with_response().result(PATIENCE) == AcknowledgeStatus.SUCCESS


def test_exactly_once_refuses_the_ack_of_an_older_delivery_and_says_which(rig):
    topic, subscription = rig.pair(enable_exactly_once_delivery=True, ack_deadline_seconds=1)
    rig.publish_all(topic, ["once"], "k")
    [old] = rig.pull(subscription)
    [new] = rig.pull(subscription)
    with pytest.raises(exceptions.InvalidArgument) as caught:
        rig.acknowledge(subscription, [old])
    assert caught.value.reason == "EXACTLY_ONCE_ACKID_FAILURE"
    assert caught.value.domain == "pubsub.googleapis.com"
    assert caught.value.metadata == {old.ack_id: "PERMANENT_FAILURE_INVALID_ACK_ID"}
    rig.acknowledge(subscription, [new])  # Also when it is late: it is of the newest delivery.


def test_a_seek_to_a_time_brings_back_what_was_published_since(rig):
    topic, subscription = rig.pair(retain_acked_messages=True)
    rig.publish_all(topic, ["old", "first", "second"], "k")
    times = {}
    for _ in range(3):
        [received] = rig.pull(subscription)
        times[received.message.data] = received.message.publish_time
        rig.acknowledge(subscription, [received])
    rig.subscriber.seek(request={"subscription": subscription, "time": times[b"old"]})
    assert rig.collect(subscription).wait_for(3) == ["old", "first", "second"]


def test_a_seek_past_everything_drops_what_waits(rig):
    topic, subscription = rig.pair()
    rig.publish_all(topic, ["1", "2"], "k")
    [received] = rig.pull(subscription)
    after = received.message.publish_time + timedelta(hours=1)
    rig.subscriber.seek(request={"subscription": subscription, "time": after})
    assert nothing_waits(rig, subscription)
    rig.acknowledge(subscription, [received])  # Stale now, and no error.
    rig.publish_all(topic, ["3"], "k")
    assert texts(rig.pull(subscription)) == ["3"]


def test_a_snapshot_brings_back_what_was_acknowledged_after_it(rig):
    topic, subscription = rig.pair()
    rig.publish_all(topic, ["1", "2"], "k")
    name = rig.unique("snapshot")
    snapshot = rig.subscriber.create_snapshot(
        request={"name": name, "subscription": subscription})
    assert snapshot.topic == topic
    inbox = rig.collect(subscription)
    assert inbox.wait_for(2) == ["1", "2"]
    rig.subscriber.seek(request={"subscription": subscription, "snapshot": name})
    assert inbox.wait_for(4) == ["1", "2", "1", "2"]
    assert list(rig.publisher.list_topic_snapshots(topic=topic)) == [name]
    rig.subscriber.delete_snapshot(snapshot=name)
    with pytest.raises(exceptions.NotFound):
        rig.subscriber.get_snapshot(snapshot=name)


def test_a_stream_of_a_deleted_subscription_ends_with_not_found(rig):
    _, subscription = rig.pair()
    stream = rig.receive(subscription, lambda message: message.ack())
    rig.subscriber.delete_subscription(subscription=subscription)
    with pytest.raises(exceptions.NotFound):
        stream.result(PATIENCE)


def test_a_detached_subscription_refuses_to_be_pulled(rig):
    topic, subscription = rig.pair()
    rig.publisher.detach_subscription(request={"subscription": subscription})
    assert rig.subscriber.get_subscription(subscription=subscription).detached
    with pytest.raises(exceptions.FailedPrecondition):
        rig.pull(subscription)
    assert list(rig.publisher.list_topic_subscriptions(topic=topic)) == []


def test_a_closed_subscriber_gives_back_what_it_has_not_handled(rig):
    topic, subscription = rig.pair()
    begun, go_on = threading.Event(), threading.Event()

    def handle(message):
        begun.set()
        go_on.wait(PATIENCE)
        message.nack()

    stream = rig.receive(subscription, handle)
    rig.publish_all(topic, ["1", "2"], "k")
    assert begun.wait(PATIENCE)
    go_on.set()
    stream.cancel()
    stream.result(PATIENCE)
    assert rig.collect(subscription).wait_for(2) == ["1", "2"]
