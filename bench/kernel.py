#!/usr/bin/env python3
"""Runs the micro-benchmarks of the kernel and keeps the numbers that a reader wants.

usage: kernel.py --bin FOLDER [--quick] [--out FILE]

Every program *_bench of the folder is one module's (see ordo_module in cmake/OrdoModule.cmake).
"""

import argparse
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import measuring  # noqa: E402

TO_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def run_module(program, quick):
    """Three rounds of each benchmark of the program, as result objects with their medians."""
    module = os.path.basename(program).removesuffix("_bench")
    command = [program, "--benchmark_format=json"]
    if quick:
        command += ["--benchmark_min_time=0.001", "--benchmark_filter=-/[0-9]{5,}"]
    else:
        command += ["--benchmark_min_time=0.05", "--benchmark_repetitions=3",
                    "--benchmark_enable_random_interleaving=true"]
    done = subprocess.run(command, capture_output=True, timeout=600, check=False)
    if done.returncode != 0:
        raise measuring.Failed(f"{module}_bench ended with status {done.returncode}: "
                               + done.stderr.decode(errors="replace").strip()[-300:])
    return condense(module, json.loads(done.stdout)["benchmarks"])


def condense(module, entries):
    """One object per benchmark from its repetitions; averages made by the program are left out."""
    runs = {}
    for entry in entries:
        if entry.get("run_type", "iteration") != "iteration":
            continue
        runs.setdefault(entry.get("run_name", entry["name"]), []).append(entry)
    results = []
    for name, repetitions in runs.items():
        wrong = next((run for run in repetitions if run.get("error_occurred")), None)
        if wrong:
            raise measuring.Failed(f"{module}: {name}: {wrong.get('error_message')}")
        times = [run["real_time"] * TO_NS[run["time_unit"]] for run in repetitions]
        result = {"kind": "kernel", "module": module, "name": name, "rounds": len(times),
                  "ns": round(measuring.median(times), 3), "ns_min": round(min(times), 3),
                  "ns_max": round(max(times), 3)}
        rates = [run["items_per_second"] for run in repetitions if "items_per_second" in run]
        if rates:
            result["items_per_s"] = round(measuring.median(rates))
        results.append(result)
    return results


def main():
    parser = argparse.ArgumentParser(description="Runs the micro-benchmarks of the kernel.")
    parser.add_argument("--bin", required=True, help="folder of the *_bench programs")
    parser.add_argument("--quick", action="store_true", help="a smoke run of the small sizes")
    parser.add_argument("--out", help="result file, JSON lines")
    options = parser.parse_args()
    results = [measuring.describe_machine("quick" if options.quick else "full")]
    programs = sorted(glob.glob(os.path.join(options.bin, "*_bench")))
    if not programs:
        print(f"kernel.py: no *_bench program in {options.bin}: build first", file=sys.stderr)
        return 1
    failures = 0
    for program in programs:
        try:
            found = run_module(program, options.quick)
        except (measuring.Failed, subprocess.TimeoutExpired, ValueError) as failed:
            print(f"kernel.py: FAILED: {failed}", file=sys.stderr)
            failures += 1
            continue
        for result in found:
            print(f"  {result['module']:10} {result['name']:60} {result['ns']:14.1f} ns")
        results += found
    if options.out:
        measuring.write_results(options.out, results)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
