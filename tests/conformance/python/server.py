"""`ordo serve` as a child of the tests."""

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

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

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="ordo-conformance-")
        self.port = free_port()
        self.run()

    def run(self):
        words = [os.environ["ORDO_PROGRAM"], "serve", "--listen", f"127.0.0.1:{self.port}",
                 "--data", os.path.join(self.directory, "data"), "--min-ack-deadline", "1s"]
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
    server = Server()
    os.environ["PUBSUB_EMULATOR_HOST"] = f"127.0.0.1:{server.port}"
    yield server
    assert server.stop() == 0
