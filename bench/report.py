#!/usr/bin/env python3
"""Writes docs/benchmarks.md and its plots from the result files, and from nothing else.

usage: report.py [--results FOLDER] [--docs FOLDER]
"""

import argparse
import os
import sys

BENCH = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, BENCH)
import broker_part  # noqa: E402
import bus_part  # noqa: E402
import dispatcher_part  # noqa: E402
import figures  # noqa: E402
import gateway_part  # noqa: E402
import plots  # noqa: E402
import rings_part  # noqa: E402
import wire_part  # noqa: E402
from support import measuring  # noqa: E402

WORKLOADS = (("empty", "Empty work"), ("1us", "1 us of processor time per item"),
             ("10us", "10 us of processor time per item"),
             ("skewed", "1 % of the items sleep 1 ms"))

INTRODUCTION = """# Benchmarks

Written by `./run bench` (`bench/report.py`) from the files in `bench/results/`; do not edit.
`bench/compare.py BEFORE AFTER` compares two result files.
"""

METHOD = """## How it was measured

- All contenders of a case run back to back in one go, each run in a process of its own, in an
  order that is rotated from round to round. The tables show medians over the rounds.
- A run during which other processes took more than 5 % of the processors is repeated, up to
  three times; a case that stayed disturbed is marked `*`.
- Waits are blocking for everybody. Window 1,024 unless said.
- Every run checks that all items came, once and in order, and fails otherwise.
- The item is a message of 64 bytes, moved the way each interface likes best.{messages}
- `workers` is what each contender takes as its number of workers. Ordo, mutex and map, and futures
  have a sending and a receiving thread besides; a TBB pipeline or flow graph does both on its
  workers, unless it is fed ("fed"), which is how a program that receives its items must use it.
- Processor time is that of the whole process (`getrusage`). Allocations are calls of `operator
  new` in the second half of a run; TBB has an allocator of its own, which this does not see.
- Latency runs from the time a message was due to be sent until it was released in order, so a
  sender held up by a full window counts against the contender. Outside the latency tables there is
  no pace, and the latency is mostly the time spent in a full window.
- The ideal is computed: so many workers and the window, no cost at all, and sleeps as long as they
  really are on this machine.
"""


def method_section(cases):
    ways = {}
    for case in cases:
        if case["kind"] == "pool" and case["message"] != "none":
            ways.setdefault(case["message"], {})[case["title"]] = True
    text = "".join(f"\n  By {way}: {'; '.join(titles)}." for way, titles in ways.items())
    return METHOD.replace("{messages}", text)


def table(header, rows, text_columns=1):
    """A table whose first columns are text and whose others are numbers."""
    rule = ["---" if i < text_columns else "---:" for i in range(len(header))]
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join(rule) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def starred(case):
    return "*" if case.get("disturbed") else ""


def number(value):
    """A number as people read it: three digits or whole."""
    if value == 0:
        return "0"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def machine_section(machines):
    lines = ["## The machine\n"]
    machine = {}
    for each in machines:
        machine.update({key: value for key, value in each.items() if key not in machine})
    facts = [f"{machine['processors']} x {machine['processor']}",
             f"{machine['memory_gib']:.0f} GiB memory", machine["kernel"]]
    facts += [machine[key] for key in ("compiler",) if key in machine]
    if "build" in machine:
        facts.append(f"{machine['build']} build")
    if machine.get("tbb", "none") != "none":
        facts.append(f"oneTBB {machine['tbb']} (fed through {machine['tbb_feed']})")
    lines.append(", ".join(facts) + ".\n")
    if any(each.get("mode") != "full" for each in machines):
        lines.append("**These are numbers of a smoke run: too short to mean anything.**\n")
    if machine.get("build", "Release") != "Release":
        lines.append("**This is not a plain Release build: the numbers do not count.**\n")
    return "\n".join(lines)


def figures_section(cases):
    found = figures.all_figures(cases)
    passed = sum(figure.verdict == figures.PASS for figure in found)
    rows = [(figure.what, figure.asked, figure.measured,
             figure.verdict if figure.verdict == figures.PASS else f"**{figure.verdict}**")
            for figure in found]
    return (f"## The figures asked\n\n{passed} of {len(found)} pass.\n\n"
            + table(("figure", "asked", "measured", ""), rows, 4))


def plot_lines(drawn, prefix):
    return "".join(f"\n![{caption}](plots/{name})\n" for name, caption in drawn
                   if name.startswith(prefix))


def throughput_section(cases, drawn):
    parts = ["## Pool: cost per item\n"]
    for workload, title in WORKLOADS:
        chosen = [case for case in cases if case["kind"] == "pool"
                  and case["group"] == "throughput" and case["workload"] == workload]
        if not chosen:
            continue
        sizes = sorted({case["workers"] for case in chosen})
        by_place = {(case["contender"], case["workers"]): case for case in chosen}
        parts.append(f"### {title}\n\nns per item, by the number of workers.\n")
        rows = []
        for name, label in plots.contenders_of(chosen):
            row = [label]
            for size in sizes:
                case = by_place.get((name, size))
                row.append(number(case["ns_per_item"]) + starred(case) if case else "")
            rows.append(row)
        parts.append(table(["", *map(str, sizes)], rows))
        parts.append(detail_table(chosen, 8 if 8 in sizes else sizes[0]))
        parts.append(plot_lines(drawn, f"pool_{workload}."))
    return "\n".join(parts)


def detail_table(cases, workers):
    rows = []
    for case in cases:
        if case["workers"] != workers or case["contender"] == "ideal":
            continue
        rows.append((case["title"], number(case["items_per_s"]), number(case["cpu_ns_per_item"]),
                     number(case["p99_us"]), f"{case['allocations_per_item']:.3f}"))
    return f"At {workers} workers:\n\n" + table(
        ("", "items/s", "processor ns per item", "p99 in order, us", "allocations per item"), rows)


def latency_section(cases, drawn):
    parts = ["## Pool: latency at 200,000 items/s, 1 us work\n"]
    for workers in sorted({case["workers"] for case in cases
                           if case["kind"] == "pool" and case["group"] == "latency"}):
        chosen = [case for case in cases if case["kind"] == "pool" and case["group"] == "latency"
                  and case["workers"] == workers]
        rows = [(case["title"] + starred(case), number(case["p50_us"]), number(case["p99_us"]),
                 number(case["p999_us"]), number(case["max_us"]), number(case["items_per_s"]),
                 number(case["cpu_ns_per_item"])) for case in chosen]
        parts.append(f"{workers} workers; microseconds in order.\n")
        parts.append(table(("", "p50", "p99", "p99.9", "max", "items/s", "processor ns per item"),
                           rows))
    return "\n".join(parts) + plot_lines(drawn, "pool_latency")


def sleep_section(cases, drawn):
    chosen = [case for case in cases if case["kind"] == "pool" and case["group"] == "sleep"]
    ideal = next((case for case in chosen if case["contender"] == "ideal"), None)
    if not chosen or ideal is None:
        return ""
    rows = [(case["title"] + starred(case), f"{case['seconds']:.3f}",
             f"{case['ns_per_item'] / ideal['ns_per_item']:.3f}") for case in chosen]
    return (f"## Pool: {chosen[0]['items']:,.0f} items of random 0..5 ms sleep, "
            f"{chosen[0]['workers']} workers\n\n"
            + table(("", "seconds", "times the ideal"), rows) + plot_lines(drawn, "pool_sleep"))


def memory_section(cases):
    chosen = [case for case in cases if case["kind"] == "pool" and case["group"] == "memory"]
    if not chosen:
        return ""
    rows = [(case["title"] + starred(case), f"{case['items']:,.0f}",
             number(case["peak_rss_bytes"] / 1024), number(case["rss_growth_bytes"] / 1024),
             number(case["ns_per_item"])) for case in chosen]
    return ("## Pool: memory, empty work, window 64\n\nPeak resident size at the end, and how much "
            "of it came after the first 1 % of the items.\n\n"
            + table(("", "items", "peak KiB", "growth KiB", "ns per item"), rows))


def map_section(cases, drawn):
    parts = ["## ordo map\n"]
    titles = {"true": "`true` for each line", "echo": "`echo {}` for each line, output checked",
              "server": "`cat` kept running (`--server`), output checked"}
    for name, title in titles.items():
        chosen = [case for case in cases if case["kind"] == "map" and case["case"] == name]
        if not chosen:
            continue
        rows = [(f"`{case['title'].split(' (')[0]}`" + starred(case), number(case["lines_per_s"]),
                 number(case["us_per_line"]), number(case["us_per_line_without_start"]),
                 number(case["cpu_us_per_line"]), number(case["start_ms"])) for case in chosen]
        parts.append(f"### {title}, {chosen[0]['lines']:,} lines\n")
        parts.append(table(("", "lines/s", "us per line", "without start", "processor us per line",
                            "start ms"), rows))
    notes = sorted({f"`{case['title'].split(' (')[0]}`: {case['title'].split(' (')[1][:-1]}."
                    for case in cases if case["kind"] == "map" and " (" in case["title"]})
    parts.append("\n".join(notes) + "\n")
    return "\n".join(parts) + plot_lines(drawn, "map_") if len(parts) > 2 else ""


def kernel_section(cases):
    chosen = [case for case in cases if case["kind"] == "kernel"]
    if not chosen:
        return ""
    rows = [(case["module"], f"`{case['name']}`", number(case["ns"]),
             number(case["items_per_s"]) if "items_per_s" in case else "") for case in chosen]
    return ("## Kernel micro-benchmarks\n\nTime of one iteration, and items per second where the "
            "benchmark counts items.\n\n"
            + table(("module", "benchmark", "ns", "items/s"), rows, 2))


def failure_section(cases):
    failed = [case for case in cases if "failure" in case]
    if not failed:
        return ""
    rows = [(case.get("title", case["kind"]), case.get("workload", case.get("case", "")),
             str(case.get("workers", "")), case["failure"]) for case in failed]
    return "## Failed runs\n\n" + table(("", "case", "workers", "why"), rows, 4)


def write_report(results_folder, docs_folder):
    """Returns the path of the report. REQUIRES: at least one result file with its machine."""
    found = []
    for name in ("pool.json", "dispatcher.json", "bus.json", "gateway.json",
                 "broker.json", "wire.json", "map.json", "rings.json", "kernel.json"):
        found += measuring.read_results(os.path.join(results_folder, name))
    machines = [item for item in found if item["kind"] == "machine"]
    cases = [item for item in found if item["kind"] != "machine"]
    if not machines or not cases:
        raise RuntimeError(f"no results in {results_folder}: run the benchmarks first")
    drawn = plots.draw_all(cases, os.path.join(docs_folder, "plots"))
    good = [case for case in cases if "failure" not in case]
    sections = [INTRODUCTION, machine_section(machines), figures_section(cases),
                failure_section(cases), method_section(good), throughput_section(good, drawn),
                latency_section(good, drawn), sleep_section(good, drawn), memory_section(good),
                *(part.section(good, table, number, lambda prefix: plot_lines(drawn, prefix))
                  for part in (dispatcher_part, bus_part, gateway_part, broker_part, wire_part)),
                map_section(good, drawn),
                rings_part.section(good, table, number, None), kernel_section(good)]
    path = os.path.join(docs_folder, "benchmarks.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(section.rstrip("\n") + "\n" for section in sections if section))
    return path


def main():
    parser = argparse.ArgumentParser(description="Writes docs/benchmarks.md from the results.")
    parser.add_argument("--results", default=os.path.join(BENCH, "results"))
    parser.add_argument("--docs", default=os.path.join(BENCH, "..", "docs"))
    options = parser.parse_args()
    os.makedirs(options.docs, exist_ok=True)
    try:
        print(f"wrote {write_report(options.results, options.docs)}")
    except (RuntimeError, KeyError) as wrong:
        print(f"report.py: {wrong!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
