"""The gateway's part of the report: its figures, its section of docs/benchmarks.md and its plots."""

PIPELININGS = (1, 16, 64)
LOADS = (0.1, 0.5, 0.9)
OURS = ("ordo_binary", "ordo_text")
# What keeps a value under a key, whoever asks. PING is in the tables: it does nothing at all.
REDIS = ("redis_set", "redis_get", "benchmark_set", "benchmark_get")
# Of the requests/s of redis, at least, by pipelining; from 16 on: more than redis.
RATIO_MIN = {1: 0.8, 16: 1.0, 64: 1.0}
IDS_MIN = 1_000_000
RSS_GROWTH_BYTES_MAX = 1 << 20
COLOURS = {"ordo_binary": "#0b6e4f", "ordo_text": "#6bbf59", "ordo_two": "#2ec4b6",
           "redis_set": "#d1495b", "redis_get": "#edae49", "redis_ping": "#f4d58d", "benchmark_set": "#8e5572",
           "benchmark_get": "#c9a0b8", "echo": "#999999"}


def gateway_cases(cases, group):
    return [case for case in cases if case["kind"] == "gateway" and case["group"] == group]


def best(cases, pipelining, names):
    """The contender with the most requests/s, or None when none was measured."""
    found = [case for case in gateway_cases(cases, "closed")
             if case["pipelining"] == pipelining and case["contender"] in names]
    return max(found, key=lambda case: case["requests_per_s"]) if found else None


def redis_figures(cases):
    """(what, asked, measured or None, whether it is good) for each."""
    for pipelining in PIPELININGS:
        least = RATIO_MIN[pipelining]
        what = f"gateway: 50 connections, pipelining {pipelining}, beside the best of redis"
        asked = f"at least {least} times its requests/s" if least < 1 else "more requests/s"
        ours, rival = best(cases, pipelining, OURS), best(cases, pipelining, REDIS)
        if ours is None or rival is None:
            yield what, asked, None, False
            continue
        ratio = ours["requests_per_s"] / rival["requests_per_s"]
        yield (what, asked, f"{ratio:.2f} times ({ours['title']}: {ours['requests_per_s']:,.0f}; "
               f"{rival['title']}: {rival['requests_per_s']:,.0f})",
               ratio > least if least == 1 else ratio >= least)


def memory_figure(cases):
    what = f"gateway: memory after {IDS_MIN:,} ids used once each"
    asked = "where it began"
    found = gateway_cases(cases, "ids")
    if not found:
        return what, asked, None, False
    case = found[0]
    growth = case["rss_growth_bytes"]
    return (what, asked, f"{growth / 1024:.0f} KiB more after {case['requests']:,.0f} ids",
            growth <= RSS_GROWTH_BYTES_MAX and case["requests"] >= IDS_MIN)


def all_figures(cases):
    yield from redis_figures(cases)
    yield memory_figure(cases)


METHOD = """## Gateway: orders over TCP

`ordo gateway` with its defaults (4 partitions, one I/O thread), redis-server without persistence and
a bare epoll echo server, each started anew for each run, and driven over 50 connections of the
loopback by the same client, one epoll thread; the rows of redis-benchmark are redis driven by its
own client. What ours is asked to do: orders, NEW, then FILL and STATUS in turn, then CANCEL, 1,000
at a time; redis: SET and GET of 3 bytes under 1,000 keys; echo: the bytes of our binary requests.
Every answer is checked: its order within its id, that it is the right decision, that none is
missing or refused; a run with a wrong one fails. Client and server share the two cores; `server` and
`client` are the cores each kept busy.
"""


def contenders_of(cases):
    names = {}
    for case in cases:
        names.setdefault(case["contender"], case["title"])
    return names


def microseconds(case, metric, number):
    return number(case[metric]) if metric in case and case[metric] else ""


def closed_section(cases, table, number):
    parts = []
    for pipelining in PIPELININGS:
        chosen = [case for case in gateway_cases(cases, "closed")
                  if case["pipelining"] == pipelining]
        if not chosen:
            continue
        parts.append(f"### Closed loop, pipelining {pipelining}\n\nEach connection sends "
                     f"{pipelining} and waits for all answers. Microseconds.\n"
                     if pipelining > 1 else
                     "### Closed loop, pipelining 1\n\nEach connection waits for its answer. "
                     "Microseconds.\n")
        rows = [(case["title"] + ("*" if case["disturbed"] else ""),
                 number(case["requests_per_s"]),
                 *(microseconds(case, metric, number)
                   for metric in ("p50_us", "p99_us", "p999_us")),
                 *(f"{case[metric]:.2f}" if metric in case else ""
                   for metric in ("server_cores", "client_cores"))) for case in chosen]
        parts.append(table(("", "requests/s", "p50", "p99", "p99.9", "server", "client"), rows))
    return parts


def open_section(cases, table, number):
    chosen = gateway_cases(cases, "open")
    if not chosen:
        return []
    parts = ["### Open loop: latency by load\n\nRequests are due at even times, 16 together on the "
             "connections in turn, at a share of what the same contender did at pipelining 16; "
             "microseconds from the time a request was due until it was answered.\n"]
    header = ["", *(f"{metric} at {load:.0%}" for load in LOADS
                    for metric in ("requests/s", "p50", "p99", "p99.9"))]
    rows = []
    for name, title in contenders_of(chosen).items():
        row = [title]
        for load in LOADS:
            case = next((case for case in chosen
                         if case["contender"] == name and case["load"] == load), None)
            row += [""] * 4 if case is None else [
                number(case["requests_per_s"]) + ("*" if case["disturbed"] else ""),
                number(case["p50_us"]), number(case["p99_us"]), number(case["p999_us"])]
        rows.append(row)
    parts.append(table(header, rows))
    return parts


def section(cases, table, number, plot_lines):
    """Its part of the report; `table`, `number` and `plot_lines` are those of report.py."""
    if not gateway_cases(cases, "closed"):
        return ""
    return "\n".join([METHOD, *closed_section(cases, table, number), plot_lines("gateway_closed"),
                      *open_section(cases, table, number), plot_lines("gateway_open")])


def closed_series(cases):
    """[(name, label, [(pipelining, requests/s), ...]), ...]"""
    chosen = gateway_cases(cases, "closed")
    return [(name, title, sorted((case["pipelining"], case["requests_per_s"]) for case in chosen
                                 if case["contender"] == name))
            for name, title in contenders_of(chosen).items()]


def open_series(cases):
    """[(name, label, [(percent of the peak, p99 in us), ...]), ...]"""
    chosen = gateway_cases(cases, "open")
    return [(name, title, sorted((100 * case["load"], case["p99_us"]) for case in chosen
                                 if case["contender"] == name))
            for name, title in contenders_of(chosen).items()]
