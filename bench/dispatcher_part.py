"""The dispatcher's part of the report: its figures, its section of docs/benchmarks.md, its plots."""

KEYS = (10, 1_000, 100_000, 1_000_000)
DISTRIBUTIONS = (("uniform", "uniform"), ("zipf", "Zipf, exponent 0.99"))
NS_MAX = {"ordo": 150, "ordo_striped": 60}
FLAT_RATIO_MAX = 1.5
STRANDS_RATIO_MIN = 8
LIFE_NS_MAX = 500
BLOCKED_P99_US_MAX = 1_000
COLOURS = {"ordo_striped": "#6bbf59", "strands": "#1d4e89", "tbb_nodes": "#8e5572",
           "striped_mutex": "#d1495b", "one_mutex": "#f4a6a0", "go_per_key": "#edae49",
           "go_hashed": "#f4d58d"}


def dispatcher_cases(cases, group):
    return [case for case in cases if case["kind"] == "dispatcher" and case["group"] == group]


def find(cases, group, contender, distribution="uniform", keys=None):
    for case in dispatcher_cases(cases, group):
        if (case["contender"], case["distribution"]) == (contender, distribution) and \
                keys in (None, case["keys"]):
            return case
    return None


def over_all(cases, contender):
    """Its throughput cases, every number of keys and distribution."""
    return [case for case in dispatcher_cases(cases, "throughput")
            if case["contender"] == contender]


def cost_figures(cases):
    for name, title in (("ordo", "elastic"), ("ordo_striped", "striped")):
        what = f"dispatcher, {title}: empty work, 2 threads, 10 to 1,000,000 keys"
        asked = f"at most {NS_MAX[name]} ns per event"
        found = over_all(cases, name)
        if not found:
            yield what, asked, None, False
            continue
        costs = [case["ns_per_event"] for case in found]
        yield (what, asked, f"{min(costs):.0f} to {max(costs):.0f} ns over {len(costs)} cases",
               max(costs) <= NS_MAX[name])
    found = over_all(cases, "ordo")
    what, asked = "dispatcher, elastic: flat in the number of keys", \
        f"dearest at most {FLAT_RATIO_MAX} times the cheapest of 1,000 keys and more"
    large = [case["ns_per_event"] for case in found if case["keys"] >= 1_000]
    ratio = max(large) / min(large) if large else 0
    yield what, asked, f"{ratio:.2f} times" if large else None, ratio <= FLAT_RATIO_MAX


def strand_figure(cases):
    what = "dispatcher, elastic: beside Asio strands, one per key"
    asked = f"at least {STRANDS_RATIO_MIN} times the events/s"
    ratios = []
    for ours in over_all(cases, "ordo"):
        rival = find(cases, "throughput", "strands", ours["distribution"], ours["keys"])
        if rival:
            ratios.append(rival["ns_per_event"] / ours["ns_per_event"])
    if not ratios:
        return what, asked, None, False
    return (what, asked, f"{min(ratios):.1f} to {max(ratios):.1f} times over {len(ratios)} cases",
            min(ratios) >= STRANDS_RATIO_MIN)


def life_figure(cases):
    what, asked = "dispatcher: a key created and retired", f"below {LIFE_NS_MAX} ns"
    case = find(cases, "life", "ordo", "once")
    if case is None:
        return what, asked, None, False
    return what, asked, f"{case['ns_per_event']:.0f} ns", case["ns_per_event"] < LIFE_NS_MAX


def blocked_figure(cases):
    what = "dispatcher: p99 of the others beside one blocked key of 1,000, 100,000 events/s, 8 threads"
    asked = f"below {BLOCKED_P99_US_MAX} us"
    case = find(cases, "blocked", "ordo")
    if case is None or "p99_us" not in case:
        return what, asked, None, False
    return what, asked, f"{case['p99_us']:.0f} us", case["p99_us"] < BLOCKED_P99_US_MAX


def all_figures(cases):
    yield from cost_figures(cases)
    yield strand_figure(cases)
    yield life_figure(cases)
    yield blocked_figure(cases)


def cell(case, number):
    return number(case["ns_per_event"]) + ("*" if case["disturbed"] else "") if case else ""


def section(cases, table, number, plot_lines):
    """Its part of the report; `table`, `number` and `plot_lines` are those of report.py."""
    chosen = dispatcher_cases(cases, "throughput")
    if not chosen:
        return ""
    names = {}
    for case in chosen:
        names.setdefault(case["contender"], case["title"])
    parts = ["## Dispatcher: cost per event\n",
             "ns per event, empty work, an event of 64 bytes, one thread that dispatches and 2 "
             "workers, at most 32,768 events ahead. Strands, nodes and goroutines are made "
             "beforehand, which is not timed; Ordo makes its lanes as it goes. The hashed and "
             "striped ones tie keys together.\n"]
    for distribution, title in DISTRIBUTIONS:
        sizes = [keys for keys in KEYS
                 if find(cases, "throughput", "ordo", distribution, keys) is not None]
        if not sizes:
            continue
        parts.append(f"### Keys drawn {title}\n")
        parts.append(table(["", *(f"{keys:,} keys" for keys in sizes)],
                           [[label, *(cell(find(cases, "throughput", name, distribution, keys),
                                           number) for keys in sizes)]
                            for name, label in names.items()]))
        parts.append(plot_lines(f"dispatcher_{distribution}"))
    lives = dispatcher_cases(cases, "life")
    if lives:
        parts.append("### Every event a new key\n\nns from the creation of a key over its one event "
                     "to its end.\n")
        parts.append(table(["", "ns per key"], [[case["title"], cell(case, number)]
                                                for case in lives]))
    parts.append(latency_table(cases, table, number))
    return "\n".join(parts)


def latency_table(cases, table, number):
    rows = []
    for case in dispatcher_cases(cases, "blocked"):
        quiet = find(cases, "undisturbed", case["contender"]) or {}
        rows.append([case["title"] + ("*" if case["disturbed"] else ""),
                     *(number(source.get(metric, 0)) for source in (quiet, case)
                       for metric in ("p50_us", "p99_us", "p999_us"))])
    if not rows:
        return ""
    return ("### One blocked key among 1,000\n\n100,000 events/s on 8 threads; the handler of one "
            "key sleeps 5 ms for each of its events. Microseconds of all the others, from the time "
            "an event was due to be dispatched; without and with the blocked key.\n\n"
            + table(["", "p50", "p99", "p99.9", "p50, blocked", "p99, blocked", "p99.9, blocked"],
                    rows))


def cost_series(cases, distribution):
    """[(name, label, [(keys, ns), ...]), ...], or nothing."""
    series = {}
    for case in dispatcher_cases(cases, "throughput"):
        if case["distribution"] == distribution:
            name = case["contender"]
            series.setdefault(name, (name, case["title"], []))[2].append(
                (case["keys"], case["ns_per_event"]))
    return [(name, label, sorted(points)) for name, label, points in series.values()]
