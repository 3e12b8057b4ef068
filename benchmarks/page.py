"""The table and the figure of the appendix "How fast, how large", from results.json."""

import json
import math
from pathlib import Path

HERE = Path(__file__).parent
BOOK = HERE.parent / "book"


def exponent(sizes, role):
    """The slope of log time against log n, by least squares."""
    known = [(math.log(s["n"]), math.log(s["times"][role])) for s in sizes
             if role in s["times"]]
    if len(known) < 2:
        return None
    x, y = (sum(p[i] for p in known) / len(known) for i in (0, 1))
    return (sum((a - x) * (b - y) for a, b in known)
            / sum((a - x) ** 2 for a, b in known))


def seconds(t):
    return f"{1000 * t:.3g} ms" if t < 1 else f"{t:.3g} s"


def points(n):
    return f"{n:,}".replace(",", "\u202f")


def ratio(r):
    return f"{r:.2g}" if r < 10 else f"{r:.0f}"


def joined(parts):
    return " / ".join(part for part in parts if part)


def table(found):
    """The rows in Markdown: times and memory at the largest size."""
    heads = ("what", "n", "ours", "peer", "peer / ours", "floor", "memory, ours / peer",
             "exponent, ours / peer")
    lines = [heads, ["---"] * len(heads)]
    for row in found["rows"].values():
        sizes, last = row["sizes"], row["sizes"][-1]
        times, memory = last["times"], last["memory"]
        slopes = [exponent(sizes, role) for role in ("ours", "peer")]
        lines.append((
            row["title"], joined(points(s["n"]) for s in sizes), seconds(times["ours"]),
            f"{row['peer']}: {seconds(times['peer'])}" if "peer" in times else "",
            joined(ratio(s["times"]["peer"] / s["times"]["ours"]) for s in sizes
                   if "peer" in s["times"]),
            seconds(times["floor"]) if "floor" in times else "",
            joined(f"{memory[role]:.0f} MiB" for role in ("ours", "peer") if role in memory),
            joined(f"{slope:.1f}" for slope in slopes if slope is not None)))
    return ["| " + " | ".join(line) + " |" for line in lines]


def figure(found, path):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    rows = [r for r in found["rows"].values() if len(r["sizes"]) > 1]
    columns, height = 3, -(-len(rows) // 3)
    fig, axes = plt.subplots(height, columns, layout="constrained", squeeze=False,
                             figsize=(9, 2.2 * height))
    for axis, row in zip(axes.flat, rows):
        for role, marker, line, colour in (("ours", "o", "-", "C0"), ("peer", "s", "--", "C1"),
                                           ("floor", "^", ":", "0.5")):
            known = [(s["n"], s["times"][role]) for s in row["sizes"] if role in s["times"]]
            if known:
                axis.loglog(*zip(*known), marker=marker, linestyle=line, color=colour, label=role)
        axis.set_title(row["title"], fontsize=9)
        axis.tick_params(labelsize=8)
        axis.minorticks_off()
        axis.set_xticks([s["n"] for s in row["sizes"]],
                        [points(s["n"]) for s in row["sizes"]])
    for axis in axes.flat[len(rows):]:
        axis.axis("off")
    axes.flat[0].legend(fontsize=8)
    fig.supxlabel("number of points n")
    fig.supylabel("seconds")
    fig.savefig(path, metadata={"Date": None})


def write():
    found = json.loads((HERE / "results.json").read_text())
    about = found["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in about.items()
                         if name not in ("processor", "cores"))
    text = [f"Measured on {about['cores']} cores of “{about['processor']}” with {versions}.", "",
            *table(found)]
    (BOOK / "speed_table.md").write_text("\n".join(text) + "\n")
    figure(found, BOOK / "_static" / "speed.svg")
