#!/usr/bin/env python3
"""What `ordo map` costs per line, beside GNU parallel --keep-order and xargs.

Question it answers: for a command that does nothing, how much does the tool around it add? All
contenders of a case run back to back in an order rotated from round to round; medians count. A
second case pays no process per line: `ordo map --server` keeps two copies of `cat` running.
Outputs are compared with what they must be, in order.

usage: bench_map.py --ordo PROGRAM [--quick] [--out FILE]
"""

import argparse
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import measuring  # noqa: E402


class Contender:
    """A tool in a case: its command line, and whether its output keeps the order of the input."""

    def __init__(self, name, title, command, ordered=True):
        self.name = name
        self.title = title
        self.command = command
        self.ordered = ordered


def spawn_contenders(ordo, tail):
    """A process per line. `tail` is the command, {} standing for the line where it is used."""
    bare = [word for word in tail if word != "{}"]
    return [
        Contender("ordo", "ordo map -j2", [ordo, "map", "-j2", "--", *tail]),
        Contender("parallel", "parallel --keep-order -j2",
                  ["parallel", "--keep-order", "-j2", *tail]),
        Contender("xargs", "xargs -P2 -n1 (no order)", ["xargs", "-P2", "-n1", *bare], False),
    ]


def server_contenders(ordo):
    """Commands that live on: by line for ordo, by block of lines for parallel."""
    return [
        Contender("ordo", "ordo map -j2 --server cat",
                  [ordo, "map", "-j2", "--server", "--", "cat"]),
        Contender("parallel", "parallel --keep-order -j2 --pipe cat (blocks of 1 MB)",
                  ["parallel", "--keep-order", "-j2", "--pipe", "cat"]),
    ]


def expect(wanted, ordered):
    def check(output):
        if output == wanted:
            return None
        if not ordered and sorted(output.splitlines()) == sorted(wanted.splitlines()):
            return None
        return f"wrote {len(output)} bytes that are not the {len(wanted)} expected, in order"

    return check


def run_case(case, contenders, lines, echoes, settings):
    """Runs all rounds of a case; returns its results and the number of failures."""
    wanted = "".join(line + "\n" for line in lines).encode()
    one_wanted = (lines[0] + "\n").encode()
    runs = {contender.name: [] for contender in contenders}
    starts = {contender.name: [] for contender in contenders}
    failures = {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lines")
        one_path = os.path.join(folder, "one_line")
        for name, text in ((path, wanted), (one_path, one_wanted)):
            with open(name, "wb") as file:
                file.write(text)
        for round_number in range(settings["rounds"]):
            for i in range(len(contenders)):
                contender = contenders[(i + round_number) % len(contenders)]
                if contender.name in failures:
                    continue
                check = expect(wanted if echoes else b"", contender.ordered)
                check_one = expect(one_wanted if echoes else b"", contender.ordered)
                attempts = settings["attempts"]
                try:
                    runs[contender.name].append(
                        measuring.run_undisturbed(contender.command, path, check, attempts))
                    starts[contender.name].append(
                        measuring.run_undisturbed(contender.command, one_path, check_one, 1))
                except measuring.Failed as failed:
                    failures[contender.name] = str(failed)
    results = [
        summarise(case, contender, len(lines), runs[contender.name], starts[contender.name],
                  failures.get(contender.name))
        for contender in contenders
    ]
    return results, len(failures)


def summarise(case, contender, line_count, runs, starts, failure):
    result = {"kind": "map", "case": case, "contender": contender.name, "title": contender.title,
              "lines": line_count, "rounds": len(runs)}
    if failure:
        result["failure"] = failure
        return result
    seconds = [run["seconds"] for run in runs]
    start = measuring.median([run["seconds"] for run in starts])
    result.update({
        "us_per_line": measuring.median(seconds) / line_count * 1e6,
        "us_per_line_min": min(seconds) / line_count * 1e6,
        "us_per_line_max": max(seconds) / line_count * 1e6,
        "us_per_line_without_start":
            (measuring.median(seconds) - start) / max(1, line_count - 1) * 1e6,
        "cpu_us_per_line": measuring.median([run["cpu_s"] for run in runs]) / line_count * 1e6,
        "start_ms": start * 1e3,
        "lines_per_s": line_count / measuring.median(seconds),
        "disturbed":
            sum(run["foreign_share"] > measuring.FOREIGN_SHARE_MAX for run in runs),
    })
    return {key: round(value, 3) if isinstance(value, float) else value
            for key, value in result.items()}


def present(contenders):
    """Those whose program is installed; the others are named."""
    kept = []
    for contender in contenders:
        if shutil.which(contender.command[0]):
            kept.append(contender)
        else:
            print(f"bench_map: SKIPPED: {contender.title}: {contender.command[0]} is not installed",
                  file=sys.stderr)
    return kept


def print_table(results):
    print(f"\n{results[0]['case']}: {results[0]['lines']} lines")
    print(f"  {'':52} {'lines/s':>10} {'us/line':>10} {'cpu us':>10} {'start ms':>10}")
    for result in results:
        if "failure" in result:
            print(f"  {result['title']:52} FAILED: {result['failure']}")
            continue
        mark = "  disturbed" if result["disturbed"] else ""
        print(f"  {result['title']:52} {result['lines_per_s']:10.0f} {result['us_per_line']:10.1f} "
              f"{result['cpu_us_per_line']:10.1f} {result['start_ms']:10.1f}{mark}")


def main():
    parser = argparse.ArgumentParser(description="What ordo map costs per line.")
    parser.add_argument("--ordo", required=True, help="the ordo program")
    parser.add_argument("--quick", action="store_true", help="a smoke run of a few seconds")
    parser.add_argument("--out", help="result file, JSON lines")
    options = parser.parse_args()
    quick = options.quick
    settings = {"rounds": 1 if quick else 5, "attempts": 1 if quick else 3}
    few = [str(i) for i in range(1, (20 if quick else 1000) + 1)]
    many = [f"line {i:09d} of the input" for i in range(2_000 if quick else 200_000)]
    cases = [
        ("true", spawn_contenders(options.ordo, ["true"]), few, False),
        ("echo", spawn_contenders(options.ordo, ["echo", "{}"]), few, True),
        ("server", server_contenders(options.ordo), many, True),
    ]
    results = [measuring.describe_machine("quick" if quick else "full")]
    failures = 0
    for case, contenders, lines, echoes in cases:
        found, failed = run_case(case, present(contenders), lines, echoes, settings)
        print_table(found)
        results += found
        failures += failed
    if options.out:
        measuring.write_results(options.out, results)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
