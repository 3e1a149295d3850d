"""The broker's part of the report: its figures and its section of docs/benchmarks.md."""

SIZES = (100, 1024)
BATCHES = (1, 100, 1000)
SYNCS = ("commit", "interval", "os")
RAW_SHARE_MIN = 0.4  # Of the messages/s of appending and syncing the same bytes.
KEYED_PER_S_MIN = 200_000
BACKLOG = 1_000_000
SERVING_S_MAX = 2
RSS_PER_MESSAGE_MAX = 200
BLOCKED_RATIO = 0.1  # Throughput and p99 within this of the run without blocked keys.


def broker_cases(cases, group, **fields):
    return [case for case in cases if case["kind"] == "broker" and case["group"] == group
            and all(case[name] == value for name, value in fields.items())]


def one(cases, group, **fields):
    """The case that is so, or None when it was not measured."""
    found = broker_cases(cases, group, **fields)
    return found[0] if found else None


def raw_figure(cases):
    """(what, asked, measured or None, whether it is good), like the others."""
    what = "broker: durable publish, batches of 100, 1 KiB, beside append and fdatasync"
    asked = f"at least {RAW_SHARE_MIN:.0%} of its messages/s"
    ours = one(cases, "publish", contender="ordo", sync="commit", size=1024, batch=100)
    raw = one(cases, "publish", contender="raw", sync="commit", size=1024, batch=100)
    if ours is None or raw is None:
        return what, asked, None, False
    share = ours["messages_per_s"] / raw["messages_per_s"]
    return (what, asked, f"{share:.0%} ({ours['messages_per_s']:,.0f} and "
            f"{raw['messages_per_s']:,.0f})", share >= RAW_SHARE_MIN)


def keyed_figure(cases):
    what = "broker: 1,000 keys, one in flight each, 100 B, end to end in process, durable"
    asked = f"at least {KEYED_PER_S_MIN:,} messages/s"
    found = [case for case in broker_cases(cases, "flow", sync="commit", size=100)
             if case["keys"] == 1000]
    if not found:
        return what, asked, None, False
    best = max(found, key=lambda case: case["messages_per_s"])
    return (what, asked, f"{best['messages_per_s']:,.0f} (batches of {best['batch']:,})",
            best["messages_per_s"] >= KEYED_PER_S_MIN)


def backlog_figures(cases):
    found = [case for case in broker_cases(cases, "backlog") if case["messages"] >= BACKLOG]
    for what, asked, metric, most, unit in (
            (f"broker: restart with {BACKLOG:,} messages, until the first is delivered",
             f"at most {SERVING_S_MAX} s", "serving_s", SERVING_S_MAX, "s"),
            (f"broker: resident memory with {BACKLOG:,} messages waiting",
             f"below {RSS_PER_MESSAGE_MAX} bytes per message", "rss_bytes_per_message",
             RSS_PER_MESSAGE_MAX, "bytes")):
        if not found:
            yield what, asked, None, False
            continue
        worst = max(found, key=lambda case, metric=metric: case[metric])
        yield (what, asked, f"{worst[metric]:.3g} {unit} (messages of {worst['size']:,} B)",
               worst[metric] <= most)


def blocked_figures(cases):
    with_them, without = (one(cases, "blocked", contender=name) for name in ("with", "without"))
    for metric, title, worse in (("messages_per_s", "messages/s", -1), ("p99_us", "p99", 1)):
        what = f"broker: {title} beside 1,000 blocked keys with 1,000,000 messages behind them"
        asked = f"within {BLOCKED_RATIO:.0%} of the run without"
        if with_them is None or without is None:
            yield what, asked, None, False
            continue
        change = with_them[metric] / without[metric] - 1
        yield (what, asked, f"{change:+.1%} ({with_them[metric]:,.0f} and {without[metric]:,.0f})",
               round(change * worse, 4) <= BLOCKED_RATIO)


def all_figures(cases):
    yield raw_figure(cases)
    yield keyed_figure(cases)
    yield from backlog_figures(cases)
    yield from blocked_figures(cases)


METHOD = """## Broker, in process

`ordo::Broker` on its RocksDB store with the defaults (4 partitions, 2 threads), a new directory for
each run. The limit beside it: the same bytes appended to a file in the same folder, which has room
allocated ahead (`fallocate`), in one `write` for each batch, with an `fdatasync` after each
(`commit`), every 50 ms (`interval`) or never (`os`). A publish includes encoding its messages.
Processor time is that of the whole process, RocksDB's threads included.
"""


def starred(case):
    return "*" if case["disturbed"] else ""


def publish_section(cases, table, number):
    rows = []
    for sync in SYNCS:
        for size in SIZES:
            for batch in BATCHES:
                ours, raw = (one(cases, "publish", contender=name, sync=sync, size=size,
                                 batch=batch) for name in ("ordo", "raw"))
                if ours is None or raw is None:
                    continue
                rows.append((f"{sync}, {size:,} B, batch {batch:,}{starred(ours)}",
                             number(ours["messages_per_s"]), number(raw["messages_per_s"]),
                             f"{ours['messages_per_s'] / raw['messages_per_s']:.0%}",
                             number(ours["cpu_us_per_message"]), number(ours["p50_us"]),
                             number(raw["p50_us"])))
    if not rows:
        return []
    return ["### Publish, one batch at a time\n\nThe next batch is published when the one before "
            "was answered. Processor time per message and p50 of a batch in microseconds.\n",
            table(("", "messages/s", "file", "share", "processor", "p50", "p50, file"), rows)]


def latency_section(cases, table, number):
    chosen = broker_cases(cases, "latency")
    if not chosen:
        return []
    rows = [(f"{case['title']}, {case['outstanding']:,} outstanding{starred(case)}",
             number(case["messages_per_s"]), number(case["p10_us"]), number(case["p50_us"]),
             number(case["p99_us"]), number(case.get("publishes_per_commit", 1)))
            for case in chosen]
    return ["### Single durable publishes of 100 B\n\nSo many publishers, each waiting for its "
            "answer; the committer stores what waits in one write. The last row is one fdatasync. "
            "Microseconds.\n",
            table(("", "messages/s", "p10", "p50", "p99", "publishes per write"), rows)]


def consume_section(cases, table, number):
    chosen = broker_cases(cases, "consume")
    if not chosen:
        return []
    rows = [(f"{case['sync']}, {case['size']:,} B{starred(case)}",
             number(case["delivered_per_s"]), number(case["deliver_cpu_us_per_message"]),
             number(case["acked_per_s"]), number(case["ack_cpu_us_per_message"]))
            for case in chosen]
    return ["### Deliver, then acknowledge\n\n200,000 messages stored before, delivered to one "
            "stream; then acknowledged by 100 at a time and confirmed, 64 requests under way. "
            "Processor microseconds per message.\n",
            table(("", "delivered/s", "processor", "acknowledged/s", "processor"), rows)]


def flow_section(cases, table, number):
    chosen = broker_cases(cases, "flow")
    if not chosen:
        return []
    rows = [(f"{case['sync']}, {case['size']:,} B, "
             + (f"{case['keys']:,} keys, " if case["keys"] else "no keys, ")
             + f"batch {case['batch']:,}{starred(case)}",
             number(case["messages_per_s"]), number(case["cpu_us_per_message"]),
             number(case["p50_us"]), number(case["p99_us"])) for case in chosen]
    return ["### Published, delivered, acknowledged\n\nOne publishing thread, one stream that "
            "acknowledges at once; at most 20,000 messages between the two. With keys: ordered, "
            "one in flight for each. Microseconds; latency from publish to delivery, mostly the "
            "time spent in the full window.\n",
            table(("", "messages/s", "processor", "p50", "p99"), rows)]


def blocked_section(cases, table, number):
    chosen = broker_cases(cases, "blocked")
    if not chosen:
        return []
    rows = [(case["title"] + starred(case), number(case["messages_per_s"]),
             number(case["cpu_us_per_message"]), number(case["p50_us"]), number(case["p99_us"]),
             number(case["memory_bytes"] / 1024)) for case in chosen]
    return ["### Beside blocked keys\n\n1,000 keys whose first message nobody acknowledges, with "
            "1,000,000 messages in all behind them, and 1,000 other keys that flow in batches of "
            "10, at most 2,000 messages under way.\n",
            table(("", "messages/s", "processor us", "p50 us", "p99 us", "partitions' KiB"), rows)]


def backlog_section(cases, table, number):
    chosen = broker_cases(cases, "backlog")
    if not chosen:
        return []
    rows = [(f"{case['messages']:,.0f} of {case['size']:,} B{starred(case)}",
             number(case["idle_rss_bytes"] / 2**20), number(case["rss_bytes"] / 2**20),
             number(case["rss_bytes_per_message"]), number(case["open_s"]),
             number(case["serving_s"]), number(case["serving_cpu_s"]))
            for case in chosen]
    return ["### A backlog\n\nResident size of the process before and after they were published, "
            "without a consumer. Then it is killed: the seconds until another has opened the "
            "directory, and until it delivers the first, and its processor time.\n",
            table(("", "MiB before", "MiB after", "bytes per message", "open s", "serving s",
                   "processor s"), rows)]


def section(cases, table, number, _plot_lines):
    """Its part of the report; `table` and `number` are those of report.py."""
    parts = []
    for part in (publish_section, latency_section, consume_section, flow_section, blocked_section,
                 backlog_section):
        parts += part(cases, table, number)
    return "\n".join([METHOD, *parts]) if parts else ""
