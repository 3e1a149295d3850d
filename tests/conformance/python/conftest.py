"""What every test of this folder needs of the official client."""

import os
import threading

import pytest
from google.api_core import exceptions

from server import PATIENCE, eventually, server  # noqa: F401 (the fixture)


class Rig:
    """Clients, and topics and subscriptions with names of their own, which go with it."""

    serial = 0

    def __init__(self):
        from google.cloud import pubsub_v1  # The client looks for the server when it is made.
        self.publisher = pubsub_v1.PublisherClient(
            publisher_options=pubsub_v1.types.PublisherOptions(enable_message_ordering=True))
        self.subscriber = pubsub_v1.SubscriberClient()
        self.streams = []
        self.made = []

    def close(self):
        for stream in self.streams:
            stream.cancel()
        for stream in self.streams:
            try:
                stream.result(PATIENCE)
            except Exception:  # How it ended is looked at by the test.
                pass
        for delete, name in reversed(self.made):
            try:
                delete(request=name)
            except exceptions.NotFound:
                pass
        self.publisher.stop()
        self.subscriber.close()

    @staticmethod
    def unique(kind):
        Rig.serial += 1
        return f"projects/test/{kind}s/{kind}-{os.getpid()}-{Rig.serial}"

    def topic(self, **settings):
        name = self.unique("topic")
        self.create_topic(name, **settings)
        return name

    def create_topic(self, name, **settings):
        self.publisher.create_topic(request={"name": name, **settings})
        self.made.append((self.publisher.delete_topic, {"topic": name}))

    def subscription(self, topic, **settings):
        return self.create_subscription(
            self.unique("subscription"), topic, **{"enable_message_ordering": True, **settings})

    def create_subscription(self, name, topic, **settings):
        self.subscriber.create_subscription(request={"name": name, "topic": topic, **settings})
        self.made.append((self.subscriber.delete_subscription, {"subscription": name}))
        return name

    def pair(self, **settings):
        topic = self.topic()
        return topic, self.subscription(topic, **settings)

    def publish(self, topic, data, key="", **attributes):
        return self.publisher.publish(topic, data.encode(), ordering_key=key, **attributes)

    def publish_all(self, topic, texts, key=""):
        return [one.result(PATIENCE) for one in [self.publish(topic, text, key) for text in texts]]

    def receive(self, subscription, handle, subscriber=None, **flow):
        from google.cloud import pubsub_v1
        stream = (subscriber or self.subscriber).subscribe(
            subscription, handle,
            flow_control=pubsub_v1.types.FlowControl(**flow) if flow else ())
        self.streams.append(stream)
        return stream

    def collect(self, subscription, **flow):
        """The texts of all that comes, acknowledged."""
        texts = Inbox()

        def handle(message):
            texts.append(message.data.decode())
            message.ack()

        self.receive(subscription, handle, **flow)
        return texts

    def pull(self, subscription, count=10):
        return list(self.subscriber.pull(
            request={"subscription": subscription, "max_messages": count},
            timeout=PATIENCE).received_messages)

    def acknowledge(self, subscription, received):
        self.subscriber.acknowledge(request={
            "subscription": subscription, "ack_ids": [one.ack_id for one in received]})


class Inbox(list):
    def wait_for(self, count):
        eventually(f"{count} messages", lambda: len(self) >= count)
        return list(self)


@pytest.fixture
def rig(server):
    rig = Rig()
    yield rig
    rig.close()


class Overlap:
    """How many were inside at once, at most."""

    def __init__(self):
        self.lock = threading.Lock()
        self.now = self.most = 0

    def __enter__(self):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_):
        with self.lock:
            self.now -= 1
