"""The servers of the wire benchmark: each on a free port of the loopback, in a folder of its own.

    server = Redis(folder, "always")
    with server:                     # started, and answers
        client("port=%d" % server.port, "server=%d" % server.pid)

What a server writes goes to `log` in its folder. Only processes that were started here are ended.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

READY_S = 180
STOP_S = 60
RABBIT_PROGRAM = "/usr/lib/rabbitmq/bin/rabbitmq-server"
POSTGRES_FOLDERS = ("/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/16/bin",
                    "/usr/lib/postgresql/17/bin")


class Unready(Exception):
    """A server that did not start, or has ended."""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def accepts(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def answers(port, request, beginning):
    """Whether a server says what begins so when it is asked so."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as probe:
            probe.sendall(request)
            return probe.recv(64).startswith(beginning)
    except OSError:
        return False


def has_page(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=1) as page:
            return page.status == 200
    except (urllib.error.URLError, OSError):
        return False


def children_of(root):
    """The process and all below it."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
    tree = [root]
    for each in tree:
        tree += [child for child, parent in parents.items() if parent == each]
    return tree


def resident_bytes(root):
    """Memory of a process and those below it, pages that they share counted once."""
    total = 0
    for process in children_of(root):
        try:
            with open(f"/proc/{process}/smaps_rollup", encoding="ascii") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except (OSError, ValueError):
            continue
    return total * 1024


def cpu_s(root):
    """Processor time of a process and those below it."""
    total = 0
    for process in children_of(root):
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
                total += sum(map(int, file.read().rpartition(")")[2].split()[11:15]))
        except (OSError, ValueError):
            continue
    return total / os.sysconf("SC_CLK_TCK")


class Server:
    """One server; the kinds below say how it is started and when it is ready."""

    stop_signal = signal.SIGTERM
    needs = ()  # Programs, by path or name.

    def __init__(self, folder):
        self.folder = folder
        self.port = 0
        self.process = None
        self.start_s = 0.0

    @classmethod
    def missing(cls):
        """What is not installed; empty when it can be started."""
        return [need for need in cls.needs if not shutil.which(need)]

    def prepare(self):
        """Once, before the first start in a folder."""

    def command(self):
        raise NotImplementedError

    def environment(self):
        return os.environ.copy()

    def is_ready(self):
        return accepts(self.port)

    @property
    def pid(self):
        return self.process.pid

    def start(self):
        """Starts it, again if it was stopped; `start_s` is how long it took to answer."""
        if not os.path.isdir(self.folder):
            os.makedirs(self.folder)
            self.prepare()
        self.port = free_port()
        begin = time.monotonic()
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, env=self.environment())
        while not self.is_ready():
            if self.process.poll() is not None:
                raise Unready(f"{self.command()[0]} ended: {self.said()[-300:].strip()}")
            if time.monotonic() - begin > READY_S:
                self.kill()
                raise Unready(f"{self.command()[0]} is not ready after {READY_S} s")
            time.sleep(0.002)
        self.start_s = time.monotonic() - begin
        return self

    def said(self):
        """What it has written since it was started."""
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def told_port(self):
        """Of a server that takes a free port itself, and says which; 0 until then."""
        told = re.search(r"127\.0\.0\.1:(\d+)\s", self.said())
        return int(told[1]) if told else 0

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(self.stop_signal)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self):
        """As the machine's power would."""
        for process in reversed(children_of(self.process.pid)):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Ordo(Server):
    def __init__(self, folder, program):
        super().__init__(folder)
        self.program = program

    def command(self):
        return [self.program, "serve", "--listen", "127.0.0.1:0", "--data",
                os.path.join(self.folder, "data")]

    def is_ready(self):
        self.port = self.told_port()
        return self.port != 0 and has_page(self.port, "/readyz")


class Shell(Server):
    """libgrpc++ with a synced file behind it, or with nothing (`echo`)."""

    def __init__(self, folder, program, form):
        super().__init__(folder)
        self.program = program
        self.form = form

    def command(self):
        if self.form == "broker":
            return [self.program, "broker", os.path.join(self.folder, "file")]
        return [self.program, "echo", self.form]

    def is_ready(self):
        self.port = self.told_port()
        return self.port != 0 and accepts(self.port)


class Redis(Server):
    needs = ("redis-server",)

    def __init__(self, folder, sync):
        super().__init__(folder)
        self.sync = sync

    def command(self):
        return ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                "--daemonize", "no", "--dir", self.folder, "--appendonly", "yes",
                "--appendfsync", self.sync, "--auto-aof-rewrite-percentage", "0"]

    def is_ready(self):
        return answers(self.port, b"PING\r\n", b"+PONG")


class Nats(Server):
    needs = ("nats-server",)

    def command(self):
        path = os.path.join(self.folder, "config")
        self.monitor = free_port()
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"listen: 127.0.0.1:{self.port}\nhttp: 127.0.0.1:{self.monitor}\n"
                       f'jetstream {{ store_dir: "{self.folder}/data", max_mem: 1G, '
                       "max_file: 8G }\n"
                       "max_pending: 256MB\n")
        return ["nats-server", "-c", path]

    def is_ready(self):
        return has_page(self.monitor, "/healthz")


class Rabbit(Server):
    needs = (RABBIT_PROGRAM, "epmd")

    def __init__(self, folder):
        super().__init__(folder)
        self.ports = [free_port(), free_port()]  # Of its name server, and of other nodes.

    def prepare(self):
        os.makedirs(os.path.join(self.folder, "home"))
        with open(os.path.join(self.folder, "plugins"), "w", encoding="utf-8") as file:
            file.write("[].\n")

    def command(self):
        with open(os.path.join(self.folder, "rabbitmq.conf"), "w", encoding="utf-8") as file:
            file.write(f"listeners.tcp.default = 127.0.0.1:{self.port}\n"
                       "vm_memory_high_watermark.absolute = 8GB\n"
                       "disk_free_limit.absolute = 1GB\nlog.console = true\n"
                       "log.console.level = warning\nlog.file = false\n")
        return [RABBIT_PROGRAM]

    def environment(self):
        folder = self.folder
        return {**os.environ, "HOME": f"{folder}/home", "RABBITMQ_NODENAME": "wire@localhost",
                "RABBITMQ_MNESIA_BASE": f"{folder}/data", "RABBITMQ_LOG_BASE": folder,
                "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq.conf",
                "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins",
                "RABBITMQ_PID_FILE": f"{folder}/erlang.pid",
                "RABBITMQ_GENERATED_CONFIG_DIR": f"{folder}/generated",
                "RABBITMQ_FEATURE_FLAGS_FILE": f"{folder}/feature_flags",
                "ERL_EPMD_PORT": str(self.ports[0]), "ERL_EPMD_ADDRESS": "127.0.0.1",
                "RABBITMQ_DIST_PORT": str(self.ports[1]),
                "RABBITMQ_SERVER_ERL_ARGS":
                    "+P 1048576 -kernel inet_dist_use_interface {127,0,0,1}"}

    def is_ready(self):
        return answers(self.port, b"AMQP\x00\x00\x09\x01", b"\x01")

    def stop(self):
        super().stop()
        # The name server that it started, a process of its own.
        subprocess.run(["epmd", "-port", str(self.ports[0]), "-kill"], capture_output=True,
                       check=False)


class Postgres(Server):
    needs = ("runuser", "setpriv") if os.getuid() == 0 else ()
    stop_signal = signal.SIGINT

    def __init__(self, folder):
        super().__init__(folder)
        self.data = os.path.join(folder, "data")

    @classmethod
    def programs(cls):
        return next((folder for folder in POSTGRES_FOLDERS if os.path.isdir(folder)), None)

    @classmethod
    def missing(cls):
        return super().missing() + ([] if cls.programs() else ["postgres"])

    # It refuses to run as root.
    def prepare(self):
        os.mkdir(self.data)
        init = [f"{self.programs()}/initdb", "-D", self.data, "-A", "trust", "-U", "postgres",
                "--no-sync"]
        if os.getuid() == 0:
            shutil.chown(self.data, "postgres")
            for folder in (self.folder, os.path.dirname(self.folder)):
                os.chmod(folder, 0o755)
            init = ["runuser", "-u", "postgres", "--", *init]
        done = subprocess.run(init, capture_output=True, check=False, cwd="/")
        if done.returncode != 0:
            raise Unready(done.stderr.decode(errors="replace")[-300:])

    def command(self):
        settings = {"listen_addresses": "127.0.0.1", "port": self.port,
                    "unix_socket_directories": "", "shared_buffers": "1GB", "fsync": "on",
                    "synchronous_commit": "on", "wal_sync_method": "fdatasync",
                    "max_wal_size": "4GB", "checkpoint_timeout": "30min"}
        command = [f"{self.programs()}/postgres", "-D", self.data]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        if os.getuid() == 0:
            return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]
        return command

    # While it starts it answers too, but with an error.
    def is_ready(self):
        words = b"\x00\x03\x00\x00user\x00postgres\x00database\x00postgres\x00\x00"
        return answers(self.port, (len(words) + 4).to_bytes(4, "big") + words, b"R")
