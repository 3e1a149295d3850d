"""Order within a key, freedom between keys, as users of the official Python client meet it."""

import threading
import time
from collections import defaultdict

from google.cloud import pubsub_v1

from conftest import Inbox, Overlap
from server import PATIENCE, eventually


def texts(received):
    return [one.message.data.decode() for one in received]


def test_three_messages_of_one_key_arrive_as_first_second_third(rig):
    topic, subscription = rig.pair()
    inbox = rig.collect(subscription)
    rig.publish_all(topic, ["first", "second", "third"], "k")
    assert inbox.wait_for(3) == ["first", "second", "third"]


def test_five_of_one_key_with_a_slow_handler_are_never_two_at_once(rig):
    topic, subscription = rig.pair()
    overlap, inbox = Overlap(), Inbox()

    def handle(message):
        with overlap:
            time.sleep(0.05)
            inbox.append(message.data.decode())
        message.ack()

    rig.receive(subscription, handle)
    rig.publish_all(topic, "12345", "k")
    assert inbox.wait_for(5) == list("12345")
    assert overlap.most == 1


def test_three_keys_are_handled_at_once(rig):
    topic, subscription = rig.pair()
    together = threading.Barrier(3)
    inbox = Inbox()

    def handle(message):
        together.wait(PATIENCE)
        inbox.append(message.data.decode())
        message.ack()

    rig.receive(subscription, handle)
    for key in "abc":
        rig.publish(topic, key, key)
    assert sorted(inbox.wait_for(3)) == ["a", "b", "c"]


def test_a_nack_brings_the_first_again_before_the_second(rig):
    topic, subscription = rig.pair()
    inbox = Inbox()

    def handle(message):
        inbox.append(message.data.decode())
        if len(inbox) == 1:
            message.nack()
        else:
            message.ack()

    rig.publish_all(topic, ["first", "second"], "k")
    rig.receive(subscription, handle)
    assert inbox.wait_for(3) == ["first", "first", "second"]


def test_a_deadline_of_one_second_that_passes_brings_the_first_again_then_the_second(rig):
    topic, subscription = rig.pair(ack_deadline_seconds=1)
    rig.publish_all(topic, ["first", "second"], "k")
    assert texts(rig.pull(subscription)) == ["first"]
    again = rig.pull(subscription)
    assert texts(again) == ["first"]
    rig.acknowledge(subscription, again)
    assert texts(rig.pull(subscription)) == ["second"]


def test_a_blocked_key_does_not_hold_up_a_message_without_one(rig):
    topic, subscription = rig.pair()
    held, inbox = threading.Event(), Inbox()

    def handle(message):
        if message.ordering_key:
            held.wait(PATIENCE)
        inbox.append(message.data.decode())
        message.ack()

    rig.receive(subscription, handle)
    rig.publish_all(topic, ["blocked", "behind"], "k")
    rig.publish(topic, "free")
    assert inbox.wait_for(1) == ["free"]
    held.set()
    assert inbox.wait_for(3) == ["free", "blocked", "behind"]


def test_two_subscriptions_get_everything_in_order_each_by_itself(rig):
    topic, subscription = rig.pair()
    inboxes = [rig.collect(subscription), rig.collect(rig.subscription(topic))]
    rig.publish_all(topic, "12345", "k")
    for inbox in inboxes:
        assert inbox.wait_for(5) == list("12345")


def test_keys_on_a_subscription_without_ordering_do_not_wait_for_each_other(rig):
    topic, subscription = rig.pair(enable_message_ordering=False)
    rig.publish_all(topic, ["1", "2", "3"], "k")
    got = []
    while len(got) < 3:
        got += texts(rig.pull(subscription))
    assert sorted(got) == ["1", "2", "3"]


def test_20_messages_over_5_keys_through_a_batching_publisher(rig):
    topic, subscription = rig.pair()
    batching = pubsub_v1.PublisherClient(
        batch_settings=pubsub_v1.types.BatchSettings(max_messages=100, max_latency=0.1),
        publisher_options=pubsub_v1.types.PublisherOptions(enable_message_ordering=True))
    futures = [batching.publish(topic, str(index).encode(), ordering_key=f"key-{index % 5}")
               for index in range(20)]
    assert len({future.result(PATIENCE) for future in futures}) == 20
    batching.stop()

    got = by_key(rig, subscription, 20)
    assert got == {f"key-{key}": list(range(key, 20, 5)) for key in range(5)}


def test_3000_messages_over_1000_keys_arrive_in_order_of_their_keys(rig):
    topic, subscription = rig.pair()
    futures = [rig.publish(topic, str(round_), f"key-{key}")
               for round_ in range(3) for key in range(1000)]
    for future in futures:
        future.result(PATIENCE)
    got = by_key(rig, subscription, 3000)
    assert got == {f"key-{key}": [0, 1, 2] for key in range(1000)}


def by_key(rig, subscription, count):
    """The numbers that come, in the order they come, for each key."""
    got, lock, seen = defaultdict(list), threading.Lock(), Inbox()

    def handle(message):
        with lock:
            got[message.ordering_key].append(int(message.data))
            seen.append(None)
        message.ack()

    rig.receive(subscription, handle)
    seen.wait_for(count)
    return got


def test_message_ids_rise_within_a_key(rig):
    topic, _ = rig.pair()
    ids = [int(one) for one in rig.publish_all(topic, "abcdefgh", "k")]
    assert ids == sorted(set(ids))


def test_a_key_that_failed_is_paused_by_the_client_until_it_is_resumed(rig):
    topic, subscription = rig.pair()
    inbox = rig.collect(subscription)
    assert rig.publish(topic, "", "k").exception(PATIENCE) is not None
    assert rig.publish(topic, "refused", "k").exception(PATIENCE) is not None
    rig.publisher.resume_publish(topic, "k")
    rig.publish_all(topic, ["after"], "k")
    assert inbox.wait_for(1) == ["after"]


def test_a_key_of_1024_bytes_passes_and_one_byte_more_is_refused(rig):
    topic, subscription = rig.pair()
    key = "é" * 512
    rig.publish_all(topic, ["fits"], key)
    received = rig.pull(subscription)
    assert [one.message.ordering_key for one in received] == [key]
    error = rig.publish(topic, "too long", key + "x").exception(PATIENCE)
    assert "1024 bytes" in str(error)


def test_clients_go_on_by_themselves_after_crashes_and_nothing_is_lost(rig, server):
    topic, subscription = rig.pair()
    got, lock = defaultdict(list), threading.Lock()

    def handle(message):
        number = int(message.data)
        with lock:
            if number not in got[message.ordering_key]:
                got[message.ordering_key].append(number)
        message.ack()

    rig.receive(subscription, handle)
    published = 0
    for _ in range(2):
        futures = []
        for _ in range(50):
            futures.append(rig.publish(topic, str(published), f"key-{published % 5}"))
            published += 1
        server.crash()
        for future in futures:
            future.result(PATIENCE)
    eventually("all of them", lambda: sum(map(len, list(got.values()))) == published)
    assert got == {f"key-{key}": list(range(key, published, 5)) for key in range(5)}
