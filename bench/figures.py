"""The figures asked, each judged by the measured results alone."""

from dataclasses import dataclass

import broker_part
import bus_part
import dispatcher_part
import gateway_part
import rings_part
import wire_part

PASS = "pass"
SHORT = "short"
NOT_MEASURED = "not measured"

# Push and pop with the message by value and by pointer: as for the rivals, the better form counts.
OURS = ("ordo", "ordo_pointer")
RIVALS = ("tbb_pipeline", "tbb_pipeline_push", "tbb_flow", "tbb_flow_push", "mutex_and_map",
          "futures")
FED = ("tbb_pipeline_push", "tbb_flow_push", "mutex_and_map", "futures")
TBB = ("tbb_pipeline", "tbb_pipeline_push", "tbb_flow")

NS_MAX = {"empty": 45, "1us": 700}
SPEED_RATIO_MIN = 4
TEN_US_RATIO_MAX = 1.03
IDEAL_RATIO_MAX = 1.10
# Steady state: a handful of allocations per run (a growing log, say) is not one per item.
ALLOCATIONS_MAX = 0.001
RSS_GROWTH_BYTES_MAX = 1 << 20
MAP_RATIO_MAX = 0.5


@dataclass
class Figure:
    """One line of the table of figures."""

    what: str
    asked: str
    measured: str
    verdict: str


class Results:
    """The cases of the result files, found by what they are."""

    def __init__(self, cases):
        self.cases = [case for case in cases if "failure" not in case]

    def pool(self, group, workload, workers, contender):
        for case in self.cases:
            if (case["kind"], case.get("group"), case.get("workload"), case.get("workers"),
                    case.get("contender")) == ("pool", group, workload, workers, contender):
                return case
        return None

    def map(self, name, contender):
        for case in self.cases:
            if (case["kind"], case.get("case"), case.get("contender")) == ("map", name, contender):
                return case
        return None

    def best(self, group, workload, workers, metric, among):
        """The contender with the least of the metric, or None when none was measured."""
        found = [self.pool(group, workload, workers, name) for name in among]
        found = [case for case in found if case]
        return min(found, key=lambda case: case[metric]) if found else None


def judged(what, asked, measured, good):
    return Figure(what, asked, measured, PASS if good else SHORT)


def missing(what, asked):
    return Figure(what, asked, "", NOT_MEASURED)


def cost_figures(results):
    for workload, workers in (("empty", 2), ("empty", 8), ("1us", 2)):
        limit = NS_MAX[workload]
        what = f"{workload} work, {workers} workers, push/pop"
        asked = f"at most {limit} ns per item"
        ours = results.best("throughput", workload, workers, "ns_per_item", OURS)
        if not ours:
            yield missing(what, asked)
            continue
        yield judged(what, asked, f"{ours['ns_per_item']:.1f} ns ({ours['title']})",
                     ours["ns_per_item"] <= limit)


def rival_figures(results):
    for workers in (2, 8):
        what = f"empty work, {workers} workers, beside the best of TBB"
        asked = f"at least {SPEED_RATIO_MIN} times the items/s"
        ours = results.best("throughput", "empty", workers, "ns_per_item", OURS)
        rival = results.best("throughput", "empty", workers, "ns_per_item", TBB)
        if not ours or not rival:
            yield missing(what, asked)
            continue
        ratio = rival["ns_per_item"] / ours["ns_per_item"]
        yield judged(what, asked, f"{ratio:.2f} times ({rival['title']}: "
                     f"{rival['ns_per_item']:.1f} ns)", ratio >= SPEED_RATIO_MIN)
    for workers in (2, 8):
        what = f"10us work, {workers} workers, beside the best rival"
        asked = f"at most {TEN_US_RATIO_MAX:.2f} times its time"
        ours = results.pool("throughput", "10us", workers, "ordo")
        rival = results.best("throughput", "10us", workers, "ns_per_item", RIVALS)
        if not ours or not rival:
            yield missing(what, asked)
            continue
        ratio = ours["ns_per_item"] / rival["ns_per_item"]
        yield judged(what, asked, f"{ratio:.3f} times ({rival['title']}: "
                     f"{rival['ns_per_item']:.0f} ns)", ratio <= TEN_US_RATIO_MAX)


def ideal_figures(results):
    cases = (("throughput", "skewed", 8, "1 % of items sleep 1 ms"),
             ("throughput", "skewed", 32, "1 % of items sleep 1 ms"),
             ("sleep", "random", 16, "random sleep of 0..5 ms"))
    for group, workload, workers, title in cases:
        what = f"{title}, {workers} workers"
        asked = f"at most {IDEAL_RATIO_MAX:.2f} times the ideal time"
        ours = results.pool(group, workload, workers, "ordo")
        ideal = results.pool(group, workload, workers, "ideal")
        if not ours or not ideal:
            yield missing(what, asked)
            continue
        ratio = ours["ns_per_item"] / ideal["ns_per_item"]
        yield judged(what, asked, f"{ratio:.3f} times ({ours['seconds']:.3f} s)",
                     ratio <= IDEAL_RATIO_MAX)


def latency_figures(results):
    """Beside all rivals, and beside those that are fed from another thread as ours is."""
    for workers in (2, 8):
        for among, asked in ((RIVALS, "at or below every rival's"),
                             (FED, "at or below every rival's that is fed")):
            what = f"p99 in order at 200,000 items/s, 1 us work, {workers} workers"
            ours = results.pool("latency", "paced", workers, "ordo")
            rival = results.best("latency", "paced", workers, "p99_us", among)
            if not ours or not rival:
                yield missing(what, asked)
                continue
            yield judged(what, asked, f"{ours['p99_us']:.0f} us ({rival['title']}: "
                         f"{rival['p99_us']:.0f} us)", ours["p99_us"] <= rival["p99_us"])


def memory_figures(results):
    what, asked = "allocations in steady state", "none per item"
    ours = [case for case in results.cases if case["kind"] == "pool"
            and case["contender"] in (*OURS, "ordo_emit") and case["group"] == "throughput"]
    if ours:
        most = max(case["allocations_per_item"] for case in ours)
        yield judged(what, asked, f"{most:.5f} per item in the worst of {len(ours)} cases",
                     most <= ALLOCATIONS_MAX)
    else:
        yield missing(what, asked)
    for name in ("ordo", "ordo_emit"):
        what, asked = f"memory over the whole run, window 64 ({name})", "flat"
        case = results.pool("memory", "empty", 2, name)
        if not case:
            yield missing(what, asked)
            continue
        growth = case["rss_growth_bytes"]
        yield judged(what, asked, f"{growth / 1024:.0f} KiB more after {case['items']:,.0f} items",
                     growth <= RSS_GROWTH_BYTES_MAX)


def map_figures(results):
    what = "ordo map -j2 true, 1,000 lines, beside GNU parallel --keep-order -j2"
    asked = f"at most {MAP_RATIO_MAX} of its overhead per item"
    ours, rival = results.map("true", "ordo"), results.map("true", "parallel")
    if not ours or not rival:
        yield missing(what, asked)
        return
    # With the start of the tool spread over the lines and without: the worse of the two counts.
    ratio = max(ours[metric] / rival[metric]
                for metric in ("us_per_line", "us_per_line_without_start"))
    yield judged(what, asked, f"{ratio:.2f} ({ours['us_per_line']:.0f} us and "
                 f"{rival['us_per_line']:.0f} us)", ratio <= MAP_RATIO_MAX)


def part_figures(part, results):
    for what, asked, measured, good in part.all_figures(results.cases):
        yield missing(what, asked) if measured is None else judged(what, asked, measured, good)


def all_figures(cases):
    results = Results(cases)
    figures = []
    for part in (cost_figures, rival_figures, ideal_figures, latency_figures, memory_figures,
                 map_figures):
        figures += part(results)
    for part in (dispatcher_part, bus_part, gateway_part, broker_part, wire_part, rings_part):
        figures += part_figures(part, results)
    return figures
