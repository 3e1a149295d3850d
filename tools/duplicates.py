#!/usr/bin/env python3
"""Finds copied code: identical runs of at least 12 non-trivial lines in the sources of ordo/.

  tools/duplicates.py [--lines 12] [FOLDER ...]     default folder: ordo
  tools/duplicates.py --selftest

Lines are compared without indentation and comments. Blank lines, lone brackets, includes and
namespace lines are trivial: they neither count nor break a run. Exit status 1 when a run is found.
"""

import argparse
import collections
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRIVIAL = re.compile(r"^(|[{}()\[\];,]+|#.*|(inline )?namespace\b.*|public:|private:|using .*;)$")


def significant_lines(file):
    """The lines that count, as (line number, text without indentation and comment)."""
    lines = []
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), start=1):
        text = re.sub(r"\s*//.*$", "", line).strip()
        if not TRIVIAL.match(text):
            lines.append((number, text))
    return lines


def find(files, length):
    """Yields (file, first line, last line, other file, its first line) for each copied run."""
    contents = {file: significant_lines(file) for file in files}
    places = collections.defaultdict(list)
    for file, lines in contents.items():
        for start in range(len(lines) - length + 1):
            window = tuple(text for _, text in lines[start:start + length])
            places[window].append((file, start))
    covered = set()
    for file, lines in contents.items():
        for start in range(len(lines) - length + 1):
            window = tuple(text for _, text in lines[start:start + length])
            for other, other_start in places[window]:
                after = (str(other), other_start) > (str(file), start)
                apart = other != file or other_start >= start + length
                if not after or not apart or (file, start, other, other_start) in covered:
                    continue
                run = 0
                while (start + run < len(lines) and other_start + run < len(contents[other])
                       and lines[start + run][1] == contents[other][other_start + run][1]):
                    covered.add((file, start + run, other, other_start + run))
                    run += 1
                yield (file, lines[start][0], lines[start + run - 1][0],
                       other, contents[other][other_start][0])


def sources(folders):
    return sorted(f for folder in folders for s in ("*.h", "*.cc")
                  for f in pathlib.Path(folder).rglob(s))


def shown(file):
    return file.relative_to(ROOT) if file.is_relative_to(ROOT) else file


def selftest():
    run = [f"step_{n}(value);" for n in range(12)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "a.cc").write_text("\n".join(["int a;"] + run + ["int b;"]))
        (folder / "b.cc").write_text("\n".join(["int c;"] + ["  " + r + "  // same" for r in run]))
        (folder / "c.cc").write_text("\n".join(run[:11]))
        (folder / "d.cc").write_text("\n".join(["{", "}", "#include <map>", ""] * 20))
        found = list(find(sources([folder]), 12))
    expected = [("a.cc", 2, 13, "b.cc", 2)]
    got = [(f.name, first, last, other.name, start) for f, first, last, other, start in found]
    if got != expected:
        print(f"self-test failed: expected {expected}, found {got}")
        return 1
    print("self-test: the copied run was found, and nothing else")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", default=[str(ROOT / "ordo")])
    parser.add_argument("--lines", type=int, default=12)
    parser.add_argument("--selftest", action="store_true")
    arguments = parser.parse_args()
    if arguments.selftest:
        return selftest()
    count = 0
    for file, first, last, other, start in find(sources(arguments.folders), arguments.lines):
        file, other = shown(file), shown(other)
        print(f"{file}:{first}: lines {first} to {last} are a copy of {other}:{start}")
        count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
