"""The server under test, and what every test of this folder needs of the official client."""

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import pytest
from google.api_core import exceptions

PATIENCE = 60  # Seconds: far more than anything takes.


def free_port():
    """A port below those that the kernel gives to clients: a client that tries again and again to
    reach a server that is down may be given its port, and then talks to itself."""
    while True:
        port = random.randrange(10_000, 30_000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Server:
    """`ordo serve` as a child; ORDO_PROGRAM names the program."""

    def __init__(self, *options):
        self.options = options
        self.directory = tempfile.mkdtemp(prefix="ordo-conformance-")
        self.port = free_port()
        self.run()

    def run(self):
        words = [os.environ["ORDO_PROGRAM"], "serve", "--listen", f"127.0.0.1:{self.port}",
                 "--data", os.path.join(self.directory, "data"), "--min-ack-deadline", "1s",
                 *self.options]
        self.child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        for line in self.child.stdout:
            if "PUBSUB_EMULATOR_HOST" in line:
                return
        raise RuntimeError("the server did not start")

    def crash(self):
        """Ends it without a word, and starts it again on the same port and data."""
        self.child.kill()
        self.child.wait(PATIENCE)
        self.child.stdout.close()
        self.run()

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        status = self.child.wait(PATIENCE)
        self.child.stdout.close()
        shutil.rmtree(self.directory, ignore_errors=True)
        return status


def eventually(what, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.005)


@pytest.fixture(scope="session")
def server():
    server = Server(*os.environ.get("ORDO_SERVE_OPTIONS", "").split())
    os.environ["PUBSUB_EMULATOR_HOST"] = f"127.0.0.1:{server.port}"
    yield server
    assert server.stop() == 0


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
