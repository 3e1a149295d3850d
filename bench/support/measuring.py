"""What the benchmark scripts share: running a command under measurement, medians, result files.

A result file holds one JSON object per line. The first describes the machine; each other one is a
case with its numbers.
"""

import json
import os
import platform
import resource
import subprocess
import time

FOREIGN_SHARE_MAX = 0.05  # A run is disturbed when others took more of the processors than this.
BUSY_STEP_S = 0.02  # machine_busy_s() may be off by this much.


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def read_results(path):
    """The objects of a result file; an empty list when there is no such file."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def write_results(path, objects):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        for item in objects:
            file.write(json.dumps(item) + "\n")


def machine_busy_s():
    """Busy time of all processors so far, steal included; 0 where the system does not tell."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    except (OSError, ValueError):
        return 0.0
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def children_cpu_s():
    """Processor time of all ended children of this process, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def describe_machine(mode):
    """Says what was measured on, without names of hosts or people."""
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    return {
        "kind": "machine",
        "mode": mode,
        "processor": model,
        "processors": os.cpu_count(),
        "memory_gib": round(pages / 2**30, 1),
        "kernel": f"{platform.system()} {platform.release()}",
    }


class Failed(Exception):
    """A run that does not count: wrong status, wrong output, too slow."""


def run_once(command, stdin_path, check_output, timeout_s=120):
    """Runs the command over the file; returns seconds, cpu_s and foreign_share.

    `check_output` is given what the command wrote and returns why it is wrong, or None.
    """
    busy_before = machine_busy_s()
    own_before = time.process_time()
    children_before = children_cpu_s()
    begin = time.monotonic()
    with open(stdin_path, "rb") as stdin:
        try:
            done = subprocess.run(
                command, stdin=stdin, capture_output=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{command[0]}: not finished after {timeout_s} s") from late
    seconds = time.monotonic() - begin
    cpu = children_cpu_s() - children_before
    ours = cpu + (time.process_time() - own_before) + BUSY_STEP_S
    foreign = max(0.0, machine_busy_s() - busy_before - ours) / (seconds * os.cpu_count())
    if done.returncode != 0:
        message = done.stderr.decode(errors="replace").strip()[-300:]
        raise Failed(f"{' '.join(command)}: ended with status {done.returncode}: {message}")
    wrong = check_output(done.stdout)
    if wrong:
        raise Failed(f"{' '.join(command)}: {wrong}")
    return {"seconds": seconds, "cpu_s": cpu, "foreign_share": foreign}


def run_undisturbed(command, stdin_path, check_output, attempts_max):
    """Like run_once, repeated while others disturb it; the least disturbed run counts."""
    best = None
    for _ in range(attempts_max):
        run = run_once(command, stdin_path, check_output)
        if best is None or run["foreign_share"] < best["foreign_share"]:
            best = run
        if best["foreign_share"] <= FOREIGN_SHARE_MAX:
            break
    return best
