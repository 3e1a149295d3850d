"""The rings' part of the report: their figures and their section of docs/benchmarks.md."""

HEATS = ((1, 1), (1, 64), (2, 1), (2, 64))  # Producers, and items pushed together.
WAITINGS = ("spin", "yield", "block")
# (producers, batch, waiting) -> ns, at most. In batches the waiting does not matter.
NS_MAX = {(1, 1, "spin"): 35, (1, 1, "block"): 70, (1, 64, "spin"): 8, (2, 1, "yield"): 70,
          (2, 1, "block"): 110}
WORDS = {"spin": "spinning", "yield": "yielding", "block": "blocking"}
OURS = ("ordo_spsc", "ordo_mpsc")


def ring_cases(cases, producers, batch, waiting):
    return [case for case in cases if case["kind"] == "rings" and case["waiting"] == waiting
            and (case["producers"], case["batch"]) == (producers, batch)]


def cheapest(cases, ours):
    found = [case for case in cases if (case["contender"] in OURS) == ours]
    return min(found, key=lambda case: case["ns_per_item"]) if found else None


def all_figures(cases):
    """(what, asked, measured or None, whether it is good) for each."""
    for (producers, batch, waiting), limit in NS_MAX.items():
        what = f"ring: {'two producers' if producers == 2 else 'one producer'}, " + (
            f"batches of {batch}" if batch > 1 else WORDS[waiting])
        asked = f"at most {limit} ns per item"
        chosen = ring_cases(cases, producers, batch, waiting)
        ours, rival = cheapest(chosen, True), cheapest(chosen, False)
        if ours is None:
            yield what, asked, None, False
            continue
        beside = f"; best rival {rival['title']}: {rival['ns_per_item']:.1f} ns" if rival else ""
        yield (what, asked, f"{ours['ns_per_item']:.1f} ns ({ours['title']}{beside})",
               ours["ns_per_item"] <= limit)


def section(cases, table, number, _plot_lines):
    """Its part of the report; `table` and `number` are those of report.py."""
    names = {}
    for case in cases:
        if case["kind"] == "rings":
            names.setdefault(case["contender"], case["title"])
    if not names:
        return ""
    columns = [(*heat, waiting) for heat in HEATS for waiting in WAITINGS
               if ring_cases(cases, *heat, waiting)]
    rows = []
    for name, title in names.items():
        row = [title]
        for column in columns:
            case = next((case for case in ring_cases(cases, *column)
                         if case["contender"] == name), None)
            row.append(number(case["ns_per_item"]) + ("*" if case["disturbed"] else "")
                       if case else "")
        rows.append(row)
    lines = [case["line_ns"] for case in cases if case["kind"] == "rings" and "line_ns" in case]
    trip = f" (here {min(lines):.0f} to {max(lines):.0f} ns)" if lines else ""
    header = ["", *(f"{producers} x {batch}, {waiting}" for producers, batch, waiting in columns)]
    return ("## Rings: from thread to thread\n\nns per item of 64 bytes, by producers x items "
            "pushed together, and by what a side does that has to wait. Capacity 4,096; the "
            "consumer on one core, the producers on the other. Every item is checked. How long a "
            f"cache line takes there and back between the cores{trip} decides most of it and may "
            "change within minutes on a rented machine: it is measured before each run, and a run "
            "with more than 150 ns is repeated, or marked.\n\n" + table(header, rows))
