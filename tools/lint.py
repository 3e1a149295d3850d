#!/usr/bin/env python3
"""Runs clang-tidy on every source of the product that a build folder compiles, in parallel.

  tools/lint.py --tool clang-tidy-19 --build build/release --jobs 2 [FILE ...]

A file that was clean is not looked at again until its preprocessed text, the options it is compiled
with, .clang-tidy or the tool changes. The verdicts are kept for all clones of this repository, as
ccache keeps objects: in $XDG_CACHE_HOME/ordo/lint (~/.cache), for 30 days after their last use.
Findings are printed as file:line:column; exit status 1 when there is one.

Tests, benchmarks and examples are left to the compiler's warnings and the sanitizers: reading them
takes three times as long as reading the product, and what is found there is mostly GoogleTest.
"""

import argparse
import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = "ordo/"
VERDICTS = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache",
                        "ordo", "lint")
KEPT_SECONDS = 30 * 24 * 3600


def is_product(path):
    return path.startswith(FOLDER) and not path.endswith(("_test.cc", "_bench.cc"))


def entries(build, only):
    """One (path relative to the root, compile command) per source of ours, each file once."""
    seen = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        if not file.is_relative_to(ROOT) or file.is_relative_to(build.resolve()):
            continue
        path = file.relative_to(ROOT).as_posix()
        if is_product(path) and (not only or path in only):
            seen.setdefault(path, entry)
    return sorted(seen.items())


def fingerprint(entry, salt):
    """A hash of everything the verdict on this file depends on, the same in every clone."""
    command = shlex.split(entry["command"])
    if command[0].endswith("ccache"):
        command = command[1:]
    output = command.index("-o")
    preprocess = command[:output] + command[output + 2:]
    preprocess.remove("-c")
    text = subprocess.run(preprocess + ["-E", "-o", "-"], cwd=entry["directory"],
                          capture_output=True, check=False)
    if text.returncode != 0:
        return None
    digest = hashlib.sha256(salt)
    digest.update(shlex.join(preprocess).replace(str(ROOT), ".").encode())
    digest.update(text.stdout.replace(str(ROOT).encode(), b"."))
    return digest.hexdigest()


def lint(path, entry, arguments, salt):
    start = time.monotonic()
    mark = fingerprint(entry, salt)
    if mark and (VERDICTS / mark).exists():
        (VERDICTS / mark).touch()
        return path, True, "", 0.0
    # The options are g++'s; those that clang does not know say nothing about our code.
    command = [arguments.tool, "-p", str(arguments.build), "--quiet",
               "--extra-arg=-Wno-unknown-warning-option"]
    result = subprocess.run(command + [str(ROOT / path)], capture_output=True, text=True,
                            check=False)
    clean = result.returncode == 0
    if clean and mark:
        (VERDICTS / mark).touch()
    errors = "" if clean else re.sub(r"(?m)^\d+ warnings.*generated\.\n", "", result.stderr)
    return path, clean, result.stdout + errors, time.monotonic() - start


def forget_old_verdicts():
    for verdict in VERDICTS.iterdir():
        with contextlib.suppress(FileNotFoundError):  # Another clone may do the same.
            if time.time() - verdict.stat().st_mtime > KEPT_SECONDS:
                verdict.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", default="clang-tidy-19")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--times", action="store_true", help="print the slowest files")
    parser.add_argument("files", nargs="*", help="relative to the root; default: all")
    arguments = parser.parse_args()
    version = subprocess.run([arguments.tool, "--version"], capture_output=True, check=True).stdout
    salt = version + (ROOT / ".clang-tidy").read_bytes() + pathlib.Path(__file__).read_bytes()

    VERDICTS.mkdir(parents=True, exist_ok=True)
    forget_old_verdicts()
    failed, times = 0, []
    work = entries(arguments.build, set(arguments.files))
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as executor:
        futures = [executor.submit(lint, path, entry, arguments, salt) for path, entry in work]
        for future in concurrent.futures.as_completed(futures):
            path, clean, output, seconds = future.result()
            times.append((seconds, path))
            if not clean:
                failed += 1
                print(output.replace(str(ROOT) + "/", "").strip())
    if arguments.times:
        for seconds, path in sorted(times, reverse=True)[:10]:
            print(f"{seconds:6.1f} s  {path}")
    checked = sum(1 for seconds, _ in times if seconds > 0)
    print(f"clang-tidy: {len(work)} files, {checked} looked at, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
