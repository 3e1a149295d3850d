"""The plots of the report, drawn by gnuplot as SVG from the results."""

import os
import shutil
import subprocess
import sys
import tempfile

import bus_part
import dispatcher_part
import gateway_part
import wire_part

COLOURS = {
    "ordo": "#0b6e4f", "ordo_pointer": "#2ec4b6", "ordo_emit": "#6bbf59",
    "tbb_pipeline": "#1d4e89", "tbb_pipeline_push": "#7fb2f0", "tbb_flow": "#8e5572",
    "tbb_flow_push": "#c9a0b8",
    "mutex_and_map": "#d1495b", "futures": "#edae49", "one_thread": "#999999", "ideal": "#000000",
    "parallel": "#1d4e89", "xargs": "#999999",
}
COLOURS.update(bus_part.COLOURS)
COLOURS.update(dispatcher_part.COLOURS)
COLOURS.update(gateway_part.COLOURS)
COLOURS.update(wire_part.COLOURS)
LATENCY_POINTS = (("p10_us", 10), ("p25_us", 25), ("p50_us", 50), ("p75_us", 75), ("p90_us", 90),
                  ("p95_us", 95), ("p99_us", 99), ("p999_us", 99.9))
HEAD = """set terminal svg size 760,430 font "sans-serif,12" background "#ffffff"
set output "{output}"
set title "{title}"
set grid ytics lc "#dddddd"
set key outside right top
"""


def draw(script):
    """Returns why gnuplot refused, or None."""
    done = subprocess.run(["gnuplot"], input=script.encode(), capture_output=True, check=False)
    if done.returncode != 0 or b"error" in done.stderr.lower():
        return done.stderr.decode(errors="replace").strip()
    return None


def lines_script(title, output, series, axes):
    """One line per series: (name, label, [(x, y), ...])."""
    parts, data = [], []
    for name, label, points in series:
        dash = " dt 2" if name == "ideal" else ""
        parts.append(f'"-" using 1:2 with linespoints lw 2 pt 7 ps 0.6{dash} '
                     f'lc "{COLOURS.get(name, "#444444")}" title "{label}"')
        data.append("".join(f"{x} {y}\n" for x, y in points) + "e\n")
    return (HEAD.format(title=title, output=output) + axes + "plot " + ", ".join(parts) + "\n"
            + "".join(data))


def bars_script(title, output, bars, y_label):
    """One bar per (name, label, value)."""
    script = HEAD.format(title=title, output=output)
    script += "unset key\nset style fill solid 0.9\nset boxwidth 0.6\nset yrange [0:*]\n"
    script += f'set ylabel "{y_label}"\nset xtics rotate by -20 scale 0\n'
    script += f"set xrange [-0.6:{len(bars) - 0.4}]\n"
    script += 'plot "-" using 1:3:(column(4)):xtic(2) with boxes lc rgb variable, '
    script += '"-" using 1:2:3 with labels offset 0,0.6\n'
    for i, (name, label, value) in enumerate(bars):
        colour = int(COLOURS.get(name, "#444444")[1:], 16)
        script += f'{i} "{label}" {value} {colour}\n'
    script += "e\n"
    for i, (_, _, value) in enumerate(bars):
        script += f'{i} {value} "{value:.{2 if value < 100 else 0}f}"\n'
    return script + "e\n"


def contenders_of(cases):
    names = {}
    for case in cases:
        names.setdefault(case["contender"], case["title"])
    return names.items()


def throughput_plot(cases, workload, output):
    chosen = [case for case in cases if case["kind"] == "pool" and case["group"] == "throughput"
              and case["workload"] == workload and case["contender"] != "one_thread"]
    series = []
    for name, title in contenders_of(chosen):
        points = sorted((case["workers"], case["ns_per_item"]) for case in chosen
                        if case["contender"] == name)
        series.append((name, title, points))
    if not series:
        return None
    axes = ('set logscale x 2\nset logscale y\nset xlabel "workers"\n'
            'set ylabel "ns per item (log)"\n')
    heading = "1 % of items sleep 1 ms, and the ideal" if workload == "skewed" else \
        f"{workload} work"
    return lines_script(f"ns per item: {heading}; window 1,024", output, series, axes)


def latency_plot(cases, workers, output):
    chosen = [case for case in cases if case["kind"] == "pool" and case["group"] == "latency"
              and case["workers"] == workers and case["contender"] != "one_thread"]
    # Percentiles by the share that is still slower, so that the tail has room: 1 in 10, 1 in 100.
    series = [(case["contender"], case["title"],
               [(100 / (100 - percent), case[metric]) for metric, percent in LATENCY_POINTS])
              for case in chosen]
    if not series:
        return None
    axes = ('set logscale x\nset logscale y\nset ylabel "in-order latency, us (log)"\n'
            'set xlabel "percentile"\nset xtics ("p50" 2, "p90" 10, "p99" 100, '
            '"p99.9" 1000)\nset xrange [1:1300]\n')
    return lines_script(f"latency at 200,000 items/s, 1 us work, {workers} workers", output, series,
                        axes)


def sleep_plot(cases, output):
    chosen = [case for case in cases if case["kind"] == "pool" and case["group"] == "sleep"]
    ideal = next((case for case in chosen if case["contender"] == "ideal"), None)
    if ideal is None:
        return None
    bars = [(case["contender"], case["title"], case["ns_per_item"] / ideal["ns_per_item"])
            for case in chosen]
    return bars_script("random sleeps of 0..5 ms, 16 workers: time as a multiple of the ideal",
                       output, bars, "times the ideal")


def map_plot(cases, output):
    bars = [(case["contender"], case["title"].split(" (")[0], case["us_per_line"])
            for case in cases if case["kind"] == "map" and case["case"] == "true"]
    if not bars:
        return None
    return bars_script("a process per line: `true` over the input", output, bars, "us per line")


def dispatcher_plot(cases, distribution, output):
    series = dispatcher_part.cost_series(cases, distribution)
    if not series:
        return None
    axes = 'set logscale x\nset logscale y\nset xlabel "keys"\nset ylabel "ns per event (log)"\n'
    return lines_script(f"ns per event by the number of keys, {distribution}", output, series, axes)


def bus_publish_plot(cases, output):
    bars = bus_part.publish_bars(cases)
    if not bars:
        return None
    return bars_script("publish to 100 subscribers that drain", output, bars, "ns per publish")


def bus_overload_plot(cases, output):
    series = bus_part.overload_series(cases)
    if not series:
        return None
    axes = ('set yrange [0:100]\nset xlabel "demand as a multiple of what the machine has"\n'
            'set ylabel "percent of the frames dropped"\n')
    return lines_script("who loses under overload", output, series, axes)


def gateway_closed_plot(cases, output):
    series = gateway_part.closed_series(cases)
    if not series:
        return None
    axes = ('set logscale x 2\nset logscale y\nset xlabel "pipelining"\n'
            'set ylabel "requests/s (log)"\n')
    return lines_script("requests/s over 50 connections", output, series, axes)


def gateway_open_plot(cases, output):
    series = gateway_part.open_series(cases)
    if not series:
        return None
    axes = ('set logscale y\nset xrange [0:100]\nset xlabel "percent of its own peak"\n'
            'set ylabel "p99 from the intended time, us (log)"\n')
    return lines_script("p99 by load, open loop", output, series, axes)


def wire_plot(cases, group, size, output):
    series = wire_part.batch_series(cases, group, size)
    if not series:
        return None
    axes = ('set logscale x\nset logscale y\nset xlabel "messages of a request"\n'
            'set ylabel "messages/s (log)"\n')
    words = {"publish": "publish", "flow": "publish, receive, acknowledge"}[group]
    return lines_script(f"{words}, messages of {size:,} B", output, series, axes)


def draw_all(cases, folder):
    """Draws every plot there are results for; returns [(file name, caption), ...]."""
    cases = [case for case in cases if "failure" not in case]
    wanted = [(f"pool_{name}.svg", f"ns per item, {name} work",
               lambda output, name=name: throughput_plot(cases, name, output))
              for name in ("empty", "1us", "10us", "skewed")]
    wanted += [(f"pool_latency_{workers}.svg", f"latency percentiles, {workers} workers",
                lambda output, workers=workers: latency_plot(cases, workers, output))
               for workers in (2, 8)]
    wanted += [("pool_sleep.svg", "random sleeps against the ideal",
                lambda output: sleep_plot(cases, output)),
               ("map_overhead.svg", "ordo map against other tools",
                lambda output: map_plot(cases, output))]
    wanted += [(f"dispatcher_{name}.svg", f"ns per event by the number of keys, {name}",
                lambda output, name=name: dispatcher_plot(cases, name, output))
               for name in ("uniform", "zipf")]
    wanted += [("bus_publish.svg", "ns per publish to 100 subscribers",
                lambda output: bus_publish_plot(cases, output)),
               ("bus_overload.svg", "percent dropped by load and priority",
                lambda output: bus_overload_plot(cases, output)),
               ("gateway_closed.svg", "requests/s by pipelining",
                lambda output: gateway_closed_plot(cases, output)),
               ("gateway_open.svg", "p99 by load, open loop",
                lambda output: gateway_open_plot(cases, output))]
    wanted += [(f"wire_{group}_{size}.svg", f"messages/s by batch, {group}, {size} B",
                lambda output, group=group, size=size: wire_plot(cases, group, size, output))
               for group in ("publish", "flow") for size in wire_part.SIZES]
    if not shutil.which("gnuplot"):
        print("report.py: SKIPPED: no plots: gnuplot is not installed", file=sys.stderr)
        return []
    os.makedirs(folder, exist_ok=True)
    drawn = []
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for name, caption, make in wanted:
            output = os.path.join(scratch, name)
            script = make(output)
            if script is None:
                continue
            if wrong := draw(script):
                raise RuntimeError(f"gnuplot could not draw {name}: {wrong}")
            os.replace(output, os.path.join(folder, name))
            drawn.append((name, caption))
    return drawn
