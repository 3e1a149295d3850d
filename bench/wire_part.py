"""The wire's part of the report: its figures, its section of docs/benchmarks.md and its plots."""

SIZES = (100, 1024)
BATCHES = (1, 10, 100, 1000)
OURS = ("ordo", "ordo_lean")
SYNCED_PEERS = ("redis_always", "rabbit", "postgres")
UNSYNCED_PEERS = ("redis_everysec", "nats")
PEER_RATIO_MIN = 2.5  # Of the messages/s of the best peer that syncs, at batches of 100.
POSTGRES_RATIO_MIN = 2  # At batches of 1,000.
KEYED_PER_S_MIN = {0: 200_000, 1000: 150_000}
SYNC_RATIO_MAX = 1.3  # Of one fdatasync and one bare call.
PACED_P50_US_MAX = 600
BACKLOG = 1_000_000
COLOURS = {"ordo_lean": "#2ec4b6", "shell": "#999999", "redis_always": "#d1495b",
           "redis_everysec": "#edae49", "rabbit": "#8e5572", "postgres": "#1d4e89",
           "nats": "#7fb2f0"}


def wire_cases(cases, group, **fields):
    return [case for case in cases if case["kind"] == "wire" and case["group"] == group
            and all(case.get(name) == value for name, value in fields.items())]


def best(cases, names, metric="messages_per_s", least=False):
    """The case of these contenders with the most (or least) of the metric, or None."""
    found = [case for case in cases if case["contender"] in names]
    if not found:
        return None
    return (min if least else max)(found, key=lambda case: case[metric])


def ratio_figure(what, asked, ours, rival, least, strict=False):
    """(what, asked, measured or None, whether it is good), like the others."""
    if ours is None or rival is None:
        return what, asked, None, False
    ratio = ours["messages_per_s"] / rival["messages_per_s"]
    return (what, asked, f"{ratio:.2f} times ({ours['title']}: {ours['messages_per_s']:,.0f}; "
            f"{rival['title']}: {rival['messages_per_s']:,.0f})",
            ratio > least if strict else ratio >= least)


def flow_figures(cases):
    for size in SIZES:
        found = wire_cases(cases, "flow", size=size, batch=100)
        ours = best(found, ("ordo",))
        what = f"wire: publish, receive, acknowledge, batches of 100, {size:,} B, beside "
        yield ratio_figure(what + "the best that syncs",
                           f"at least {PEER_RATIO_MIN} times its messages/s", ours,
                           best(found, SYNCED_PEERS), PEER_RATIO_MIN)
        yield ratio_figure(what + "the best that does not", "more messages/s", ours,
                           best(found, UNSYNCED_PEERS), 1, strict=True)
        yield ratio_figure(what + "a gRPC shell over a synced file, same client",
                           "at least its messages/s", ours, best(found, ("shell",)), 1)
    found = wire_cases(cases, "flow", size=100, batch=1000)
    yield ratio_figure("wire: the same, batches of 1,000, 100 B, beside PostgreSQL",
                       f"at least {POSTGRES_RATIO_MIN} times its messages/s",
                       best(found, ("ordo",)), best(found, ("postgres",)), POSTGRES_RATIO_MIN)


def keyed_figures(cases):
    for handler_us, least in KEYED_PER_S_MIN.items():
        handler = f"{handler_us / 1000:g} ms" if handler_us else "immediate"
        what = f"wire: 1,000 keys, one in flight each, 100 B, {handler} handler"
        asked = f"at least {least:,} messages/s"
        ours = best(wire_cases(cases, "keyed", handler_us=handler_us), ("ordo",))
        if ours is None:
            yield what, asked, None, False
            continue
        yield (what, asked, f"{ours['messages_per_s']:,.0f}", ours["messages_per_s"] >= least)


def sync_figures(cases):
    sync = wire_cases(cases, "sync")
    disk = best(wire_cases(cases, "fsync"), ("disk",))
    for name, echoes in (("ordo", ("echo_cq1", "echo_cq2", "echo_callback")),
                         ("ordo_lean", ("echo_cq1_lean", "echo_cq2_lean", "echo_callback_lean"))):
        ours = best(sync, (name,))
        echo = best(wire_cases(cases, "unary", window=1), echoes, "p50_us", least=True)
        title = "a lean client" if name == "ordo_lean" else "libgrpc++'s client"
        what = f"wire: p50 of one durable publish by {title}, beside an fdatasync and a bare call"
        asked = f"at most {SYNC_RATIO_MAX} times both"
        if ours is None or echo is None or disk is None:
            yield what, asked, None, False
            continue
        floor = disk["p50_us"] + echo["p50_us"]
        yield (what, asked, f"{ours['p50_us'] / floor:.2f} times ({ours['p50_us']:.0f} us; "
               f"{disk['p50_us']:.0f} and {echo['p50_us']:.0f} us)",
               ours["p50_us"] <= SYNC_RATIO_MAX * floor)
    ours = best(sync, OURS, "p50_us", least=True)
    for name in ("redis_always", "postgres"):
        rival = best(sync, (name,))
        title = rival["title"] if rival else name
        what = f"wire: p50 of one durable publish, beside {title}"
        if ours is None or rival is None:
            yield what, "below its", None, False
            continue
        yield (what, "below its", f"{ours['p50_us']:.0f} us ({ours['title']}) and "
               f"{rival['p50_us']:.0f} us", ours["p50_us"] < rival["p50_us"])


def paced_figure(cases):
    what = "wire: p50 from end to end at 5,000 messages/s, durable"
    asked = f"below {PACED_P50_US_MAX} us"
    ours = best(wire_cases(cases, "paced"), OURS, "p50_us", least=True)
    if ours is None:
        return what, asked, None, False
    return (what, asked, f"{ours['p50_us']:.0f} us ({ours['title']})",
            ours["p50_us"] < PACED_P50_US_MAX)


def unary_figures(cases):
    for window in (1, 16, 64):
        found = wire_cases(cases, "unary", window=window)
        for name, tail in (("ordo", ""), ("ordo_lean", "_lean")):
            echoes = tuple(f"echo_{form}{tail}" for form in ("cq1", "cq2", "callback"))
            client = "a lean client" if tail else "libgrpc++'s client"
            yield ratio_figure(f"wire: small calls, {window} under way, by {client}, beside "
                               "libgrpc++'s own echo", "more calls/s", best(found, (name,)),
                               best(found, echoes), 1, strict=True)


def backlog_figures(cases):
    found = [case for case in wire_cases(cases, "backlog", contender="ordo")
             if case["messages"] >= BACKLOG]
    case = found[0] if found else None
    for what, asked, metric, most, scale, unit in (
            ("cold start", "below 0.5 s", "start_s", 0.5, 1, "s"),
            ("idle memory", "below 50 MB", "idle_rss_bytes", 50e6, 1e-6, "MB"),
            ("idle processor", "below 1 % of a core", "idle_cpu_share", 0.01, 100, "%"),
            (f"memory with {BACKLOG:,} messages of 100 B", "below 200 bytes per message",
             "rss_bytes_per_message", 200, 1, "bytes"),
            (f"restart with {BACKLOG:,} messages", "below 2 s", "restart_s", 2, 1, "s"),
            (f"restart with {BACKLOG:,} messages after kill -9", "below 2 s", "recovery_s", 2, 1,
             "s")):
        what = f"wire: ordo serve, {what}"
        if case is None:
            yield what, asked, None, False
            continue
        yield what, asked, f"{case[metric] * scale:.3g} {unit}", case[metric] < most


def all_figures(cases):
    yield from flow_figures(cases)
    yield from keyed_figures(cases)
    yield from sync_figures(cases)
    yield paced_figure(cases)
    yield from unary_figures(cases)
    yield from backlog_figures(cases)


METHOD = """## Wire: the broker as a server, beside others

`ordo serve` with its defaults beside other message systems of the distribution, each driven over
the loopback by its own client library in C or C++, on the same two cores. `fsync`: an answer to a
publish means that it is on stable storage. `gRPC shell` is the Pub/Sub API on libgrpc++ with a file
that is appended to and synced before the answer, and nothing else behind it; Ordo and it are driven
by the same libgrpc++ client. `Ordo, lean client` is driven by one of our own on libnghttp2. Fresh
servers for each run, but for RabbitMQ and PostgreSQL. At batch N a request has N messages (Redis: N
pipelined commands; PostgreSQL: N rows; RabbitMQ and NATS know no batches, and send N in a row), and
max(10, 1,000 / N) requests are under way. Every run checks that each message came once. `server`
and `client` are microseconds of processor time for each message.
"""


def starred(case):
    return "*" if case["disturbed"] else ""


def throughput_section(cases, table, number, group, title):
    parts = []
    for size in SIZES:
        chosen = wire_cases(cases, group, size=size)
        batches = [batch for batch in BATCHES if any(case["batch"] == batch for case in chosen)]
        if not batches:
            continue
        rows = []
        for name, label, promise in names_of(chosen):
            row = [label, promise]
            for batch in batches:
                case = best([each for each in chosen if each["batch"] == batch], (name,))
                row.append(number(case["messages_per_s"]) + starred(case) if case else "")
            case = best([each for each in chosen if each["batch"] == 100], (name,))
            row += [number(case[f"{side}_us_per_message"]) if case else ""
                    for side in ("server", "client")]
            rows.append(row)
        parts += [f"### {title}, {size:,} B\n\nMessages/s by batch; processor time at 100.\n",
                  table(("", "", *(f"{batch:,}" for batch in batches), "server", "client"), rows,
                        2)]
    return parts


def names_of(cases):
    names = {}
    for case in cases:
        names.setdefault(case["contender"], (case["title"], case["promise"]))
    return [(name, *rest) for name, rest in names.items()]


def plain_section(cases, table, number, title, words, columns):
    """One row for each case; columns are (header, metric)."""
    if not cases:
        return []
    rows = [(case["title"] + starred(case), case["promise"],
             *(number(case[metric]) if metric in case else "" for _, metric in columns))
            for case in cases]
    return [f"### {title}\n\n{words}\n",
            table(("", "", *(header for header, _ in columns)), rows, 2)]


def backlog_section(cases, table, number):
    chosen = wire_cases(cases, "backlog")
    if not chosen:
        return []
    rows = [(case["title"], case["promise"], f"{case['start_s']:.3f}",
             number(case["idle_rss_bytes"] / 1e6), f"{case['idle_cpu_share']:.2%}",
             number(case["rss_bytes"] / 1e6), number(case["rss_bytes_per_message"]),
             f"{case['restart_s']:.3f}", f"{case['recovery_s']:.3f}") for case in chosen]
    return ["### Start, idle, a backlog\n\nSeconds until a request is answered; memory (shared "
            f"pages once) before and after {chosen[0]['messages']:,} messages of 100 B were stored; "
            "restart with them, after a stop and after kill -9.\n",
            table(("", "", "start", "idle MB", "idle core", "MB", "bytes per message", "restart",
                   "after kill"), rows, 2)]


def section(cases, table, number, plot_lines):
    """Its part of the report; `table`, `number` and `plot_lines` are those of report.py."""
    if not any(case["kind"] == "wire" for case in cases):
        return ""
    latency = (("p10", "p10_us"), ("p50", "p50_us"), ("p90", "p90_us"), ("p99", "p99_us"),
               ("p99.9", "p999_us"))
    costs = (("messages/s", "messages_per_s"), ("server", "server_us_per_message"),
             ("client", "client_us_per_message"))
    parts = [METHOD,
             *throughput_section(cases, table, number, "publish", "Publish"),
             plot_lines("wire_publish"),
             *throughput_section(cases, table, number, "flow", "Publish, receive, acknowledge"),
             plot_lines("wire_flow"),
             *plain_section(wire_cases(cases, "drain"), table, number, "Receive and acknowledge",
                            "Messages of 100 B that were stored before.", costs)]
    for handler_us in KEYED_PER_S_MIN:
        parts += plain_section(
            wire_cases(cases, "keyed", handler_us=handler_us), table, number,
            f"1,000 keys, one in flight each, handler of {handler_us / 1000:g} ms",
            "A request has 100 messages of one key, 10 are under way, and at most 100,000 messages "
            "between publisher and consumer. Systems without order by key have lanes, each with "
            "one message in flight.", costs)
    parts += plain_section(wire_cases(cases, "sync") + wire_cases(cases, "fsync"), table, number,
                           "One publish of 100 B after the other",
                           "Microseconds. The last row is the disk alone.", latency)
    parts += plain_section(wire_cases(cases, "paced"), table, number,
                           "From end to end at 5,000 messages/s",
                           "From when a message was due to be sent until it was received; the last "
                           "column until its publish was answered. Microseconds.",
                           (*latency, ("answered p50", "publish_p50_us")))
    for window in (1, 16, 64):
        parts += plain_section(
            wire_cases(cases, "unary", window=window), table, number,
            f"Small calls, {window} under way",
            "The health service's Check, which stores nothing, beside libgrpc++'s own server.",
            (("calls/s", "messages_per_s"), ("p50", "p50_us"), ("p99", "p99_us"),
             ("server", "server_us_per_message"), ("client", "client_us_per_message")))
    parts += backlog_section(cases, table, number)
    return "\n".join(part for part in parts if part)


def batch_series(cases, group, size):
    """[(name, label, [(batch, messages/s), ...]), ...]"""
    chosen = wire_cases(cases, group, size=size)
    return [(name, label, sorted((case["batch"], case["messages_per_s"]) for case in chosen
                                 if case["contender"] == name))
            for name, label, _ in names_of(chosen)]
