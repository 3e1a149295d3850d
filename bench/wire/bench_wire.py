#!/usr/bin/env python3
"""`ordo serve` beside other message systems, over the loopback, clients included.

Questions it answers: how many messages a second are published durably, and published, received and
acknowledged, by batches of 1 to 1,000? How long does one durable publish take, and how long a
message at 5,000 a second from end to end? What do 1,000 keys with one message in flight each do?
What does the HTTP front cost beside gRPC's own library? How much memory does a backlog take, and
how long a start and a restart?

All contenders of a heat run back to back in an order rotated from round to round; medians count.
Every run checks that each message came once, in order within its key; see bench/wire/load.h.

usage: bench_wire.py --bin FOLDER --dir FOLDER [--quick | --smoke] [--only HEAT] [--contender NAME]
                     [--rounds N] [--out FILE]

--dir is where the servers store: the disk matters. --only takes the beginning of a heat's name.
--quick takes two minutes; --smoke a few seconds: `ordo serve` alone, by the client of our own.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import servers  # noqa: E402
from support import measuring  # noqa: E402

RUN_S_MAX = 120
BATCHES = (1, 10, 100, 1000)
SIZES = (100, 1024)
# What an answer to a publish means.
SYNCED, UNSYNCED, NOTHING = "fsync", "no fsync", ""


class Contender:
    """A system, its client, and what it can take part in."""

    def __init__(self, name, title, driver, server, promise, groups, lanes=()):
        self.name, self.title, self.driver, self.server = name, title, driver, server
        self.promise, self.groups, self.lanes = promise, groups, lanes


FLOWS = ("publish", "flow", "drain", "sync", "paced")
ALL = (*FLOWS, "keyed", "backlog")


def contenders_of(programs):
    """All there are. `server` makes one in a folder; those of one name may share it."""
    ordo, shell = (os.path.join(programs, name) for name in ("ordo", "bench_wire_shell"))
    found = [
        Contender("ordo", "Ordo", "grpc", lambda folder: servers.Ordo(folder, ordo), SYNCED,
                  (*ALL, "unary")),
        Contender("ordo_lean", "Ordo, lean client", "lean",
                  lambda folder: servers.Ordo(folder, ordo), SYNCED,
                  (*FLOWS, "keyed", "unary")),
        Contender("shell", "gRPC shell", "grpc",
                  lambda folder: servers.Shell(folder, shell, "broker"), SYNCED,
                  (*FLOWS, "keyed")),
        Contender("redis_always", "Redis Streams, always", "redis",
                  lambda folder: servers.Redis(folder, "always"), SYNCED, ALL, (16, 1000)),
        Contender("rabbit", "RabbitMQ, quorum queue", "rabbit", servers.Rabbit, SYNCED, ALL, (16,)),
        Contender("postgres", "PostgreSQL queue", "postgres", servers.Postgres, SYNCED,
                  (*FLOWS, "backlog")),
        Contender("redis_everysec", "Redis Streams, everysec", "redis",
                  lambda folder: servers.Redis(folder, "everysec"), UNSYNCED, ALL, (16, 1000)),
        Contender("nats", "NATS JetStream", "nats", servers.Nats, UNSYNCED, ALL, (16,)),
    ]
    for form, title in (("cq1", "libgrpc++, one queue"), ("cq2", "libgrpc++, two queues"),
                        ("callback", "libgrpc++, callbacks")):
        for driver in ("grpc", "lean"):
            found.append(Contender(
                f"echo_{form}" + ("_lean" if driver == "lean" else ""),
                title + (", lean client" if driver == "lean" else ""), driver,
                lambda folder, form=form: servers.Shell(folder, shell, form), NOTHING, ("unary",)))
    found.append(Contender("disk", "append and fdatasync", "lean", None, SYNCED, ("fsync",)))
    return found


class Heat:
    """What the contenders of a group are asked to do: the mode and its arguments; see load.h."""

    def __init__(self, group, mode, **arguments):
        self.group, self.mode, self.arguments = group, mode, arguments

    def name(self):
        fields = ("size", "batch", "handler_us", "window")
        parts = [str(self.arguments[field]) for field in fields if field in self.arguments]
        return "/".join([self.group, *parts])


def window_of(batch):
    return max(10, 1000 // batch)


def heats_of(settings):
    seconds, count = settings["seconds"], settings["count"]
    heats = [Heat(group, group, size=size, batch=batch, window=window_of(batch), seconds=seconds)
             for group in ("publish", "flow") for size in settings["sizes"]
             for batch in settings["batches"]]
    heats.append(Heat("drain", "drain", size=100, batch=100, window=10, count=count * 50))
    heats.append(Heat("sync", "sync", size=100, batch=1, window=1, count=count))
    heats.append(Heat("fsync", "fsync", size=256, count=count))
    heats.append(Heat("paced", "paced", size=100, batch=100, window=100, rate=5000,
                      count=int(5000 * seconds)))
    heats += [Heat("keyed", "flow", size=100, batch=100, keys=1000, handler_us=handler_us,
                   window=10, seconds=seconds) for handler_us in (0, 1000)]
    heats += [Heat("unary", "unary", window=window, count=count * (5 if window == 1 else 20))
              for window in (1, 16, 64)]
    return heats


SETTINGS = {
    "full": {"rounds": 5, "seconds": 2, "count": 4000, "sizes": SIZES, "batches": BATCHES,
             "backlog": 1_000_000, "idle_s": 10},
    "quick": {"rounds": 1, "seconds": 0.4, "count": 500, "sizes": (100,), "batches": (100,),
              "backlog": 20_000, "idle_s": 0.5},
    "smoke": {"rounds": 1, "seconds": 0.1, "count": 50, "sizes": (100,), "batches": (1, 100),
              "backlog": 2_000, "idle_s": 0.1},
}


def arguments_of(heat, lanes):
    """As the driver takes them."""
    arguments = dict(heat.arguments)
    if "handler_us" in arguments:
        arguments["handler_ns"] = arguments.pop("handler_us") * 1000
    if lanes:
        arguments["lanes"] = lanes
    return arguments


def run_driver(programs, driver, mode, **arguments):
    """The measures of one run. Raises Failed when it does not count."""
    command = [os.path.join(programs, f"bench_wire_{driver}"), mode]
    command += [f"{name}={value}" for name, value in arguments.items()]
    try:
        done = subprocess.run(command, capture_output=True, timeout=RUN_S_MAX, check=False)
    except subprocess.TimeoutExpired as late:
        raise measuring.Failed(f"not finished after {RUN_S_MAX} s") from late
    pairs = (line.partition("=") for line in done.stdout.decode().splitlines())
    measures = {name: float(value) for name, _, value in pairs if value}
    if done.returncode != 0:
        wrong = {name: value for name, value in measures.items() if value and name in
                 ("lost", "repeated", "disordered", "overlapping")}
        raise measuring.Failed(done.stderr.decode(errors="replace").strip()[-300:] or str(wrong))
    return measures


class Session:
    """One run of the benchmark."""

    def __init__(self, options, settings):
        self.options, self.settings = options, settings
        self.results = [measuring.describe_machine(options.mode)]
        self.kept = {}  # Servers that are slow to start serve all heats.
        self.failures = 0
        self.chosen = [contender for contender in contenders_of(options.bin)
                       if self.is_wanted(contender)]

    def is_wanted(self, contender):
        if self.options.contender and contender.name not in self.options.contender:
            return False
        if self.options.mode == "smoke" and contender.name not in ("ordo_lean", "disk"):
            return False
        programs = [f"bench_wire_{contender.driver}"]
        missing = []
        if contender.server:
            server = contender.server(self.options.dir)
            missing += server.missing()
            if isinstance(server, servers.Shell):
                programs.append("bench_wire_shell")
        missing += [program for program in programs
                    if not os.path.exists(os.path.join(self.options.bin, program))]
        if missing:
            print(f"bench_wire.py: SKIPPED: {contender.title}: no {', '.join(missing)}",
                  file=sys.stderr)
        return not missing

    def is_asked(self, name):
        return not self.options.only or name.startswith(self.options.only)

    def run_once(self, contender, heat, lanes):
        """In a server of its own, unless starting it takes long."""
        arguments = arguments_of(heat, lanes)
        driver, programs = contender.driver, self.options.bin
        if contender.server is None:
            return run_driver(programs, driver, heat.mode, folder=self.folder, **arguments)
        if contender.name in self.kept:
            server = self.kept[contender.name]
            return run_driver(programs, driver, heat.mode, port=server.port, server=server.pid,
                              **arguments)
        server = contender.server(os.path.join(self.folder, contender.name))
        if isinstance(server, (servers.Rabbit, servers.Postgres)):
            self.kept[contender.name] = server
            server.start()
            return self.run_once(contender, heat, lanes)
        with server:
            return run_driver(programs, driver, heat.mode, port=server.port, server=server.pid,
                              **arguments)

    def run_least_disturbed(self, contender, heat, lanes):
        best = None
        for _ in range(3 if self.settings["rounds"] > 1 else 1):
            run = self.run_once(contender, heat, lanes)
            if best is None or run["foreign_share"] < best["foreign_share"]:
                best = run
            if best["foreign_share"] <= measuring.FOREIGN_SHARE_MAX:
                break
        return best

    def run_heat(self, heat):
        entries = [(contender, lanes) for contender in self.chosen if heat.group in contender.groups
                   for lanes in (contender.lanes if heat.group == "keyed" and contender.lanes
                                 else (0,))]
        runs, failures = [[] for _ in entries], {}
        for round_number in range(self.settings["rounds"]):
            for i in range(len(entries)):
                index = (i + round_number) % len(entries)
                contender, lanes = entries[index]
                if index in failures:
                    continue
                try:
                    runs[index].append(self.run_least_disturbed(contender, heat, lanes))
                except measuring.Failed as wrong:
                    failures[index] = str(wrong)
                except servers.Unready as wrong:  # It need not be tried again and again.
                    failures[index] = str(wrong)
                    self.chosen = [each for each in self.chosen if each is not contender]
        if entries:
            print(f"\n{heat.name()}", flush=True)
        for index, (contender, lanes) in enumerate(entries):
            self.report(heat, contender, lanes, runs[index], failures.get(index))

    def report(self, heat, contender, lanes, runs, failure):
        title = contender.title + (f", {lanes:,} lanes" if lanes else "")
        case = {"kind": "wire", "group": heat.group, "contender": contender.name, "title": title,
                "promise": contender.promise,
                **{name: value for name, value in heat.arguments.items()
                   if name in ("size", "batch", "window", "keys", "handler_us", "rate")},
                "lanes": lanes, "rounds": len(runs)}
        if failure:
            case["failure"] = failure
            self.failures += 1
            print(f"  {title:36} FAILED: {failure}", flush=True)
        else:
            names = runs[0].keys()
            case.update({name: measuring.median([run[name] for run in runs]) for name in names})
            for metric in ("messages_per_s", "us_per_message"):
                values = [run[metric] for run in runs]
                case[f"{metric}_min"], case[f"{metric}_max"] = min(values), max(values)
            case["disturbed"] = int(case["foreign_share"] > measuring.FOREIGN_SHARE_MAX)
            print(f"  {title:36} {case['messages_per_s']:12,.0f}/s  server "
                  f"{case['server_us_per_message']:7.2f} us  client "
                  f"{case['client_us_per_message']:7.2f} us  p50 {case.get('p50_us', 0):8.1f}  p99 "
                  f"{case.get('p99_us', 0):9.1f}{'  disturbed' if case['disturbed'] else ''}",
                  flush=True)
        self.results.append(case)

    def run_backlog(self):
        """Cold start, idle, a backlog, a restart after a stop and after a kill."""
        print("\nbacklog", flush=True)
        for contender in self.chosen:
            if "backlog" not in contender.groups and self.options.mode != "smoke" \
                    or contender.server is None:
                continue
            case = {"kind": "wire", "group": "backlog", "contender": contender.name,
                    "title": contender.title, "promise": contender.promise, "size": 100,
                    "messages": self.settings["backlog"]}
            try:
                case.update(self.measure_backlog(contender))
                print(f"  {contender.title:36} start {case['start_s']:.3f} s, idle "
                      f"{case['idle_rss_bytes'] / 2**20:.0f} MiB {case['idle_cpu_share']:.2%}, "
                      f"{case['rss_bytes_per_message']:.0f} B/message, restart "
                      f"{case['restart_s']:.3f} s, after kill {case['recovery_s']:.3f} s",
                      flush=True)
            except (measuring.Failed, servers.Unready) as wrong:
                case["failure"] = str(wrong)
                self.failures += 1
                print(f"  {contender.title:36} FAILED: {wrong}", flush=True)
            self.results.append(case)

    def measure_backlog(self, contender):
        server = contender.server(os.path.join(self.folder, f"{contender.name}_backlog"))
        try:
            server.start()
            if isinstance(server, (servers.Rabbit, servers.Postgres)):
                server.stop()  # What it makes at its first start is not part of a start.
                server.start()
            case = {"start_s": server.start_s}
            time.sleep(min(2, self.settings["idle_s"]))
            before = servers.cpu_s(server.pid)
            time.sleep(self.settings["idle_s"])
            case["idle_cpu_share"] = (servers.cpu_s(server.pid) - before) / self.settings["idle_s"]
            case["idle_rss_bytes"] = servers.resident_bytes(server.pid)
            filled = run_driver(self.options.bin, contender.driver, "fill", port=server.port,
                                server=server.pid, size=100, batch=1000, window=4,
                                count=self.settings["backlog"])
            case["filled_per_s"] = filled["messages_per_s"]
            case["rss_bytes"] = servers.resident_bytes(server.pid)
            case["rss_bytes_per_message"] = (
                max(0, case["rss_bytes"] - case["idle_rss_bytes"]) / self.settings["backlog"])
            server.stop()
            server.start()
            case["restart_s"] = server.start_s
            case["restart_rss_bytes"] = servers.resident_bytes(server.pid)
            server.kill()
            server.start()
            case["recovery_s"] = server.start_s
            return case
        finally:
            server.__exit__()

    def run(self):
        with tempfile.TemporaryDirectory(dir=self.options.dir, prefix="wire-") as self.folder:
            try:
                for heat in heats_of(self.settings):
                    if self.is_asked(heat.name()):
                        self.run_heat(heat)
            finally:
                for server in self.kept.values():
                    server.__exit__()
            if self.is_asked("backlog"):
                self.run_backlog()
        if self.options.out:
            measuring.write_results(self.options.out, self.results)
        return 1 if self.failures else 0


def main():
    parser = argparse.ArgumentParser(description="ordo serve beside other message systems.")
    parser.add_argument("--bin", required=True, help="folder of ordo and the drivers")
    parser.add_argument("--dir", required=True, help="folder on the disk to measure on")
    parser.add_argument("--quick", dest="mode", action="store_const", const="quick",
                        default="full")
    parser.add_argument("--smoke", dest="mode", action="store_const", const="smoke")
    parser.add_argument("--only", default="", help="the beginning of a heat's name")
    parser.add_argument("--contender", action="append", help="only this one; may be repeated")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--out")
    options = parser.parse_args()
    options.bin, options.dir = os.path.abspath(options.bin), os.path.abspath(options.dir)
    settings = dict(SETTINGS[options.mode])
    if options.rounds:
        settings["rounds"] = options.rounds
    return Session(options, settings).run()


if __name__ == "__main__":
    sys.exit(main())
