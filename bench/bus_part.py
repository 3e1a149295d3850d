"""The bus's part of the report: its figures, its section of docs/benchmarks.md and its plots."""

MODES = (("full", "all queues full: a frame that nobody gets"),
         ("polled", "drained by another thread that never sleeps"),
         ("threads", "drained by a sleeping thread for each subscriber"),
         ("alone", "drained between bursts by the publishing thread itself"))
SIZES = (10, 100)
NS_MAX = {("drained", 10): 250, ("full", 10): 30, ("drained", 100): 1000, ("full", 100): 200}
DRAINED = ("polled", "threads")
PRIORITY_NS_MAX = 20
PRIORITIES = ("critical", "high", "normal", "best_effort")
HIGH_DROPPED_MAX = 10
COLOURS = {"ordo": "#0b6e4f", "ordo_equal": "#6bbf59", "rings": "#1d4e89", "locks": "#d1495b",
           "signals": "#8e5572", "go_cached": "#edae49", "go_sorted": "#f4d58d",
           "critical": "#0b6e4f", "high": "#1d4e89", "normal": "#edae49", "best_effort": "#d1495b"}


def bus_cases(cases, group):
    return [case for case in cases if case["kind"] == "bus" and case["group"] == group]


def find(cases, mode, subscribers, contender):
    for case in bus_cases(cases, "publish"):
        if (case["mode"], case["subscribers"], case["contender"]) == (mode, subscribers, contender):
            return case
    return None


def worst_drained(cases, subscribers, contender="ordo"):
    """The dearer of the two ways of draining: the figure has to hold for both."""
    found = [find(cases, mode, subscribers, contender) for mode in DRAINED]
    found = [case for case in found if case]
    return max(found, key=lambda case: case["ns_per_publish"]) if found else None


def publish_figures(cases):
    """(what, asked, measured or None, whether it is good) for each."""
    for (mode, subscribers), limit in NS_MAX.items():
        what = f"bus: publish to {subscribers}, " + ("all queues full" if mode == "full"
                                                     else "draining consumers")
        case = (find(cases, mode, subscribers, "ordo") if mode == "full"
                else worst_drained(cases, subscribers))
        asked = f"at most {limit} ns"
        if case is None:
            yield what, asked, None, False
            continue
        ns = case["ns_per_publish"]
        yield what, asked, f"{ns:.1f} ns ({case['mode']})", ns <= limit
    for subscribers in SIZES:
        for mode in ("full", *DRAINED):
            ours = find(cases, mode, subscribers, "ordo")
            equal = find(cases, mode, subscribers, "ordo_equal")
            what = f"bus: what priorities cost, {subscribers} subscribers, {mode}"
            asked = f"at most {PRIORITY_NS_MAX} ns"
            if not ours or not equal:
                yield what, asked, None, False
                continue
            more = ours["ns_per_publish"] - equal["ns_per_publish"]
            yield what, asked, f"{more:.1f} ns more than with one priority", more <= PRIORITY_NS_MAX


def overload_figure(cases):
    """The first load at which the machine does not suffice for all."""
    what = "bus: dropped under overload, by priority"
    asked = f"critical 0 %, high below {HIGH_DROPPED_MAX} %, normal between, best_effort most"
    tried = [case for case in bus_cases(cases, "overload") if case["load"] > 1]
    if not tried:
        return what, asked, None, False
    case = min(tried, key=lambda item: item["load"])
    shares = [case[f"dropped_{name}"] for name in PRIORITIES]
    good = (shares[0] < 0.005 and shares[1] < HIGH_DROPPED_MAX and shares == sorted(shares))
    return (what, asked, " / ".join(f"{share:.1f}" for share in shares)
            + f" % at {case['load']:.2f} times what there is", good)


def all_figures(cases):
    yield from publish_figures(cases)
    yield overload_figure(cases)


def section(cases, table, number, plot_lines):
    """Its part of the report; `table`, `number` and `plot_lines` are those of report.py."""
    chosen = bus_cases(cases, "publish")
    if not chosen:
        return ""
    parts = ["## Bus: publishing one frame\n",
             "ns per publish; a frame of 64 bytes, queues of 128. Bursts of 32 are timed; after "
             "each the publisher waits until every subscriber has every frame, and a run in which "
             "one is missing fails. For Ordo the figures count with mixed priorities. "
             "critical_timeout is 0: with it a publish to a full critical queue waits.\n"]
    names = {}
    for case in chosen:
        names.setdefault(case["contender"], case["title"])
    header = [""] + [f"{mode}, {size}" for mode, _ in MODES for size in SIZES]
    rows = []
    for name, title in names.items():
        found = [find(chosen, mode, size, name) for mode, _ in MODES for size in SIZES]
        rows.append([title] + [number(case["ns_per_publish"]) + ("*" if case["disturbed"] else "")
                               if case else "" for case in found])
    parts.append(table(header, rows))
    parts.append("".join(f"- {mode}: {title}\n" for mode, title in MODES))
    parts.append(plot_lines("bus_publish"))
    loads = bus_cases(cases, "overload")
    if loads:
        parts.append("## Bus: who loses under overload\n\nFour subscribers, one of each priority, "
                     "each of which burns the same processor time for every frame, 10,000 frames "
                     "a second, queues of 256, 256, 64 and 64, critical_timeout 20 ms; percent of "
                     "the frames dropped, by the demand as a multiple of what the machine has.\n")
        parts.append(table(("load", *PRIORITIES),
                           [(f"{case['load']:.2f}" + ("*" if case["disturbed"] else ""),
                             *(f"{case[f'dropped_{name}']:.2f}" for name in PRIORITIES))
                            for case in loads]))
        parts.append(plot_lines("bus_overload"))
    return "\n".join(parts)


def overload_series(cases):
    """[(name, label, [(load, percent), ...]), ...], or nothing."""
    loads = bus_cases(cases, "overload")
    return [(name, name, [(case["load"], case[f"dropped_{name}"]) for case in loads])
            for name in PRIORITIES] if loads else []


def publish_bars(cases):
    """[(name, label, ns), ...] for 100 subscribers."""
    return [(case["contender"], case["title"], case["ns_per_publish"])
            for case in bus_cases(cases, "publish")
            if case["mode"] == "polled" and case["subscribers"] == 100]
