#!/usr/bin/env python3
"""Judges every history (*.jsonl) in a folder with tools/check_history.py, in one process.

Usage: check_histories.py FOLDER [--at-least N]
Exit status: 0 = all good, 1 = violations or too few histories, 2 = a history is malformed.
"""

import argparse
import importlib.util
import pathlib
import sys

CHECKER = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_history.py"


def load_checker():
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("check_history", CHECKER)
    checker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checker)
    return checker


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--at-least", type=int, default=1)
    options = arguments.parse_args()

    checker = load_checker()
    files = sorted(options.folder.glob("*.jsonl"))
    status, events = 0, 0
    for file in files:
        try:
            report = checker.check(file.read_text(encoding="utf-8").splitlines())
        except checker.Malformed as problem:
            print(f"{file}: malformed: {problem}")
            status = 2
            continue
        events += sum(report.stats.values())
        for violation in report.violations[:5]:
            print(f"{file}: {violation['code']} t={violation['t']} {violation['msg']}")
            status = max(status, 1)
    if len(files) < options.at_least:
        print(f"too few histories: {len(files)} found, at least {options.at_least} wanted")
        status = max(status, 1)
    print(f"{len(files)} histories, {events} events, {'OK' if status == 0 else 'VIOLATED'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
