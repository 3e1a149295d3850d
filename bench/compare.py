#!/usr/bin/env python3
"""Compares two result files of the same benchmark: before and after a change.

usage: compare.py BEFORE AFTER [--noise SHARE] [--all]

A case is worse when its number grew by more than the noise: the larger of SHARE (5 % unless said)
and the spread between the rounds of either run. Exit status: 0 when nothing is worse, 1 when
something is (or failed, or is gone), 2 when the files cannot be compared.
"""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import measuring  # noqa: E402

# What names a case, and what is compared; a smaller number is better for all of them.
IDENTITY = ("kind", "group", "workload", "case", "module", "name", "contender", "workers", "window",
            "pipelining", "load", "producers", "batch", "waiting", "sync", "size", "outstanding",
            "keys", "handler_us", "lanes")
METRICS = {
    "pool": ("ns_per_item", "cpu_ns_per_item", "p99_us", "allocations_per_item",
             "rss_growth_bytes"),
    "map": ("us_per_line", "cpu_us_per_line", "start_ms"),
    "kernel": ("ns",),
    "gateway": ("us_per_request", "p99_us", "rss_growth_bytes"),
    "broker": ("us_per_message", "cpu_us_per_message", "p99_us", "serving_s",
               "rss_bytes_per_message"),
    "wire": ("us_per_message", "server_us_per_message", "p99_us", "rss_bytes_per_message",
             "start_s", "restart_s", "recovery_s"),
    "rings": ("ns_per_item",),
}
# Below this a metric counts as nothing: a ratio of two tiny numbers says nothing.
FLOOR = {"allocations_per_item": 0.01, "rss_growth_bytes": 1 << 20}


def identity(result):
    return tuple(result[field] for field in IDENTITY if field in result)


def spread(result, metric):
    """How far apart the rounds of a case lay, as a share; 0 where the file does not tell."""
    low, high = result.get(metric + "_min"), result.get(metric + "_max")
    return (high - low) / low if low and high else 0.0


def noise_of(before, after, noise):
    main = METRICS[before["kind"]][0]  # The metric whose spread is known stands for the others.
    return max(noise, spread(before, main), spread(after, main))


def compare_case(before, after, noise):
    """Yields (metric, before, after, ratio, allowed, verdict) for each metric both have."""
    for metric in METRICS[before["kind"]]:
        if metric not in before or metric not in after:
            continue
        floor = FLOOR.get(metric, 0.0)
        old, new = max(before[metric], floor), max(after[metric], floor)
        if old == 0:
            continue
        ratio = new / old
        allowed = noise_of(before, after, noise)
        verdict = "worse" if ratio > 1 + allowed else "better" if ratio < 1 / (1 + allowed) else ""
        yield metric, before[metric], after[metric], ratio, allowed, verdict


def load(path):
    results = {identity(result): result for result in measuring.read_results(path)
               if result["kind"] in METRICS}
    if not results:
        raise ValueError(f"{path} holds no results")
    return results


def compare(before, after, noise, show_all, write=print):
    """Writes the comparison; returns how many cases are worse, failed or gone."""
    bad = 0
    for case, old in before.items():
        label = " ".join(str(part) for part in case)
        new = after.get(case)
        if new is None or "failure" in new:
            write(f"{label}: {'gone' if new is None else 'FAILED: ' + new['failure']}")
            bad += 1
            continue
        for metric, old_value, new_value, ratio, allowed, verdict in compare_case(old, new, noise):
            bad += verdict == "worse"
            if verdict or show_all:
                write(f"{label:60} {metric:22} {old_value:12.6g} -> {new_value:12.6g}  "
                      f"x{ratio:.3f} (noise {allowed:.0%}) {verdict}")
    for case in after.keys() - before.keys():
        write(f"{' '.join(str(part) for part in case)}: new")
    return bad


def main():
    parser = argparse.ArgumentParser(description="Compares two result files.")
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--noise", type=float, default=0.05, help="share that is never counted")
    parser.add_argument("--all", action="store_true", help="also show what did not change")
    options = parser.parse_args()
    try:
        before, after = load(options.before), load(options.after)
    except (OSError, ValueError, json.JSONDecodeError) as wrong:
        print(f"compare.py: {wrong}", file=sys.stderr)
        return 2
    bad = compare(before, after, options.noise, options.all)
    print(f"{len(before)} cases compared, {bad} worse, failed or gone")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
