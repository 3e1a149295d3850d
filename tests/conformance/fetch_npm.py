#!/usr/bin/env python3
"""Brings the npm packages of a lock file into a folder: what `npm ci` does, without npm.

Usage: fetch_npm.py package-lock.json FOLDER
  FOLDER/node_modules then has exactly the packages of the lock file, each checked against its
  SHA-512 there; no script of theirs is run. Once there, they stay, and nothing is asked of anybody.
  The variable npm_config_registry names another registry than npm's own.
Exit status: 0 = they are there; 77 = the registry is out of reach; 1 = anything else.

Debian's npm depends on hundreds of packages; this needs node alone, and that only to use them.
"""

import base64
import concurrent.futures
import fcntl
import hashlib
import io
import json
import os
import pathlib
import shutil
import sys
import tarfile
import threading
import urllib.error
import urllib.request

REGISTRY = "https://registry.npmjs.org"
PAUSES = (1, 2, 4, 8)  # Seconds between attempts.

given_up = threading.Event()  # One package could not be had: the others need not be tried.


class OutOfReach(Exception):
    pass


def download(url):
    for pause in (*PAUSES, None):
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                return response.read()
        except (urllib.error.URLError, OSError) as problem:
            if isinstance(problem, urllib.error.HTTPError) and problem.code == 404:
                raise
            if pause is None or given_up.wait(pause):
                raise OutOfReach(f"{url}: {problem}") from problem


def unpack(archive, folder):
    """The files of a package, without the folder that all of them are in."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for entry in files:
            parts = pathlib.PurePosixPath(entry.name).parts[1:]
            if not entry.isfile() or not parts or ".." in parts:
                continue
            path = folder.joinpath(*parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files.extractfile(entry).read())


def fetch(registry, place, entry, folder):
    name = entry.get("name", place.rsplit("node_modules/", maxsplit=1)[1])
    url = f"{registry}/{name}/-/{name.rsplit('/', maxsplit=1)[-1]}-{entry['version']}.tgz"
    archive = download(url)
    wanted = entry["integrity"].removeprefix("sha512-")
    if base64.b64encode(hashlib.sha512(archive).digest()).decode() != wanted:
        raise ValueError(f"{url} is not what the lock file names")
    unpack(archive, folder / place)


def fetch_all(packages, folder):
    registry = os.environ.get("npm_config_registry", REGISTRY).rstrip("/")
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        jobs = [threads.submit(fetch, registry, *package, folder) for package in packages.items()]
        try:
            for job in concurrent.futures.as_completed(jobs):
                job.result()
        except Exception:
            given_up.set()
            threads.shutdown(cancel_futures=True)
            raise


def main():
    lock_file, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    text = lock_file.read_text(encoding="utf-8")
    packages = {place: entry for place, entry in json.loads(text)["packages"].items() if place}
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # The tests of several builds may run at once.
        done = folder / "fetched.json"
        if done.exists() and done.read_text(encoding="utf-8") == text:
            return 0
        done.unlink(missing_ok=True)
        shutil.rmtree(folder / "node_modules", ignore_errors=True)
        try:
            fetch_all(packages, folder)
        except OutOfReach as problem:
            print(f"SKIPPED: npm's registry is out of reach: {problem}", file=sys.stderr)
            return 77
        done.write_text(text, encoding="utf-8")
        print(f"{len(packages)} packages fetched into {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
