"""Sphinx extension: ``{speed}`` shows what ``make bench`` has measured.

Nothing on that page is typed: the table, the machine and the versions come from
``benchmarks/results.json``, which the run writes.
"""

import json
import math

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from tangle import ROOT

RESULTS = ROOT / "benchmarks" / "results.json"
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


def fields(row):
    """The texts of a line of the table."""
    sizes, last = row["sizes"], row["sizes"][-1]
    times, power = last["times"], growth(sizes)
    ratios = [one["times"]["peer"] / one["times"]["ours"] for one in sizes if "peer" in one["times"]]
    return [
        row["title"], row["peer"], f"{last['n']:,}".replace(",", "\u00a0"),
        f"{significant(times['ours'])}\u00a0s", " / ".join(map(significant, ratios)) or "–",
        significant(times["ours"] / times["floor"]) if "floor" in times else "–",
        f"{last['memory']['ours']:.0f}", "–" if power is None else f"{power:.1f}",
    ]


class Speed(SphinxDirective):
    def run(self):
        self.env.note_dependency(str(RESULTS))
        found = json.loads(RESULTS.read_text("utf-8"))
        group = nodes.tgroup(cols=len(HEADS))
        group += [nodes.colspec(colwidth=width) for width in HEADS.values()]
        body = nodes.tbody()
        body += [self.line(fields(row)) for row in found["rows"].values()]
        group += [nodes.thead("", self.line(HEADS)), body]
        facts = dict(found["machine"])
        where = f"{facts.pop('processor')}, {facts.pop('cores')} cores"
        versions = ", ".join(f"{name} {version}" for name, version in facts.items())
        return [
            nodes.table("", group, classes=["speed"]),
            nodes.paragraph("", f"Measured on {where}, with {versions}."),
        ]

    def line(self, texts):
        row = nodes.row()
        row += [nodes.entry("", nodes.paragraph("", text)) for text in texts]
        return row


def setup(app):
    app.add_directive("speed", Speed)
    return {"parallel_read_safe": True}
