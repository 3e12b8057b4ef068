"""Sphinx extension: ``{speed}`` shows what ``make bench`` has measured.

Nothing on that page is typed: the table, the machine and the versions come from
``benchmarks/results.json``, and the tables of ``{scale}`` (constants, check,
plan) from ``benchmarks/scale.json``, which the runs write.
"""

import json
import math
import re

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from tangle import ROOT

RESULTS = ROOT / "benchmarks" / "results.json"
SCALE = ROOT / "benchmarks" / "scale.json"
HEADS = {
    "Task": 26, "Against": 16, "n": 8, "ours": 8, "peer / ours": 14,
    "ours / floor": 9, "MiB": 8, "growth": 8,
}


def significant(x, digits=2):
    """A number with so many significant digits, without an exponent."""
    if not x:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(x)))
    return f"{round(x, places):.{max(places, 0)}f}"


def growth(sizes):
    """The exponent p of time ≈ c nᵖ, by least squares in logarithms."""
    points = [(math.log(one["n"]), math.log(one["times"]["ours"])) for one in sizes]
    if len(points) < 2:
        return None
    a, b = (sum(column) / len(points) for column in zip(*points))
    return sum((x - a) * (y - b) for x, y in points) / sum((x - a) ** 2 for x, _ in points)


def together(text):
    """No line ends inside "d = 5" or "1e-3"."""
    return re.sub(r"(?<=\d)e-(?=\d)", "e\u2011", text.replace(" = ", "\u00a0=\u00a0"))


def fields(row):
    """The texts of a line of the table."""
    sizes, last = row["sizes"], row["sizes"][-1]
    times, power = last["times"], growth(sizes)
    ratios = [one["times"]["peer"] / one["times"]["ours"] for one in sizes if "peer" in one["times"]]
    return [
        together(row["title"]), together(row["peer"]), f"{last['n']:,}".replace(",", "\u00a0"),
        f"{significant(times['ours'])}\u00a0s", " / ".join(map(significant, ratios)) or "–",
        significant(times["ours"] / times["floor"]) if "floor" in times else "–",
        f"{last['memory']['ours']:.0f}", "–" if power is None else f"{power:.1f}",
    ]


def spaced(x):
    """A whole number in groups of three digits."""
    return f"{round(x):,}".replace(",", "\u00a0")


def amount(x, unit):
    """A number of seconds or bytes with the unit that suits it."""
    units = {"s": ((86400, "days"), (3600, "hours"), (60, "min"), (1, "s"), (1e-3, "ms"), (1e-6, "µs")),
             "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes"))}[unit]
    size, name = next((one for one in units if x >= one[0]), units[-1])
    return f"{significant(x / size)}\u00a0{name}"


def table(heads, rows):
    """A table of texts; heads maps the names of the columns to their widths."""
    def line(texts):
        row = nodes.row()
        row += [nodes.entry("", nodes.paragraph("", text)) for text in texts]
        return row

    group, body = nodes.tgroup(cols=len(heads)), nodes.tbody()
    group += [nodes.colspec(colwidth=width) for width in heads.values()]
    body += [line(texts) for texts in rows]
    group += [nodes.thead("", line(heads)), body]
    return nodes.table("", group, classes=["speed"])


class Speed(SphinxDirective):
    def run(self):
        self.env.note_dependency(str(RESULTS))
        found = json.loads(RESULTS.read_text("utf-8"))
        facts = dict(found["machine"])
        where = f"{facts.pop('processor')}, {facts.pop('cores')} cores"
        versions = ", ".join(f"{name} {version}" for name, version in facts.items())
        return [
            table(HEADS, map(fields, found["rows"].values())),
            nodes.paragraph("", f"Measured on {where}, with {versions}."),
        ]


def constants(found):
    """What the model is made of."""
    cost = found["constants"]
    one, two = cost["tile"]
    rows = [("c, a tile, one worker busy", amount(one, "s")),
            ("c, a tile, two workers busy", amount(two, "s")),
            (f"c, a tile in the middle of {spaced(found['plan']['n'])} points", amount(cost["far_tile"], "s")),
            ("sent with a run, besides the points", amount(cost["submission_bytes"], "B"))]
    rows += [(f"s and v, a run whose total has {amount(size, 'B')}", f"{amount(caller, 's')}, {amount(worker, 's')}")
             for size, caller, worker in cost["messages"]]
    rows += [("2ℓ, there and back on this machine", amount(cost["trip"], "s")),
             ("a, for each MB of points", amount(cost["point"] * 1e6, "s"))]
    return table({"What": 70, "Measured": 30}, rows)


def check(found):
    """Measured times beside the model's, by size, workers and latency."""
    runs = [run for size in found["runs"].values() for run in size]
    late = sorted({run["latency"] for run in runs})
    rows = []
    for n, workers in sorted({(run["n"], run["workers"]) for run in runs}):
        times = {run["latency"]: run for run in runs if (run["n"], run["workers"]) == (n, workers)}
        rows.append([spaced(n), str(workers)] + [
            f"{significant(times[x]['seconds'])} / {significant(times[x]['model'])}" for x in late])
    gaps = sorted(run["seconds"] / run["model"] for run in runs)
    middle = (gaps[len(gaps) // 2] + gaps[(len(gaps) - 1) // 2]) / 2
    heads = {"n": 16, "workers": 12} | {f"{x * 1000:.0f} ms late": 24 for x in late}
    return [table(heads, rows), nodes.paragraph("", (
        f"Seconds, measured / by the model. The measured time is {gaps[0]:.2f} to {gaps[-1]:.2f} times what "
        f"the model says, {middle:.2f} times in the middle of all {len(gaps)}."))]


def plan(found):
    """Ten million points and a hundred workers, line by line."""
    one = found["plan"]
    bounds, runs, workers = one["bounds"], one["runs"], one["workers"]
    sent = found["constants"]["point_bytes"] * one["n"]
    rows = [
        ("points n, workers w", f"{spaced(one['n'])}, {workers}"),
        ("tiles N, runs R", f"{spaced(one['tiles'])}, {spaced(runs)}"),
        ("one worker alone, N c", amount(one["alone"], "s")),
        ("a run, t", amount(one["run_seconds"], "s")),
        ("points, to each worker once", amount(sent, "B")),
        ("a total, from each run", amount(one["bytes"], "B")),
        ("all totals, to the caller", amount(one["bytes"] * runs, "B")),
        ("the caller for one of them, s", amount(one["caller_seconds"], "s")),
        ("bound by the work", amount(bounds["work"], "s")),
        ("bound by the caller", amount(bounds["caller"], "s")),
        ("bound by the runs under way", amount(bounds["window"], "s")),
        ("the plan: the largest of them", amount(one["model"], "s")),
        ("faster than one worker", f"{significant(one['alone'] / one['model'])} times"),
        ("workers that saturate the caller, t / s", spaced(one["limit"])),
        ("memory of the caller at worst, 2w totals", amount(one["memory"], "B")),
    ]
    return table({"What": 64, "How much": 36}, rows)


class Scale(SphinxDirective):
    required_arguments = 1

    def run(self):
        self.env.note_dependency(str(SCALE))
        parts = {"constants": constants, "check": check, "plan": plan}
        shown = parts[self.arguments[0]](json.loads(SCALE.read_text("utf-8")))
        return shown if isinstance(shown, list) else [shown]


def setup(app):
    app.add_directive("speed", Speed)
    app.add_directive("scale", Scale)
    return {"parallel_read_safe": True}
