"""Times every row of ``rows.py``, and writes what the book shows of it.

The numbers go to results.json beside this file, the figure to
book/_static/speed.png; the appendix "How fast, how large" shows both.

    python benchmarks/run.py                 all rows
    python benchmarks/run.py hsic svm        rows with one of these words

Every row and size has a process of its own. In it ours, the peer and the
floor take turns; the best time counts. Run with ``make bench`` on an
otherwise idle machine.
"""

import json
import platform
import resource
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
FIGURE = HERE.parent / "book" / "_static" / "speed.png"
PANELS = {"Gram matrices": "Gram matrix,", "HSIC": "HSIC,", "Permutation tests": "permutations",
          "PCA and ridge": ("PCA", "ridge"), "SVM": "SVM", "Conditioning": ("conditional", "Bayes")}


def peak_of(function):
    """How much memory a call takes beyond what there was, in MiB."""
    try:                                     # Linux: start the peak anew
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass

    def status(key):
        try:
            lines = Path("/proc/self/status").read_text().splitlines()
        except OSError:
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return next(int(line.split()[1]) for line in lines if line.startswith(key))

    before = status("VmRSS")
    function()
    return max(0, status("VmHWM") - before) / 1024


def measure(index, n):
    """Times, memory and the gap of a row at one size."""
    from rows import ROWS

    row = ROWS[index]
    calls = row.make(n)
    gap = calls.pop("gap", None)
    memory = {role: peak_of(call) for role, call in calls.items() if role != "floor"}
    times = dict.fromkeys(calls, float("inf"))
    for _ in range(row.repeats):
        for role, call in calls.items():
            start = time.perf_counter()
            call()
            seconds = (time.perf_counter() - start) / row.share.get(role, 1)
            times[role] = min(times[role], seconds)
    return dict(n=n, times=times, memory=memory, gap=gap and float(gap()))


def machine():
    from rows import CORES

    names = ("numpy", "scipy", "scikit-learn", "hyppo", "causal-learn", "pykeops")
    model = platform.processor() or platform.machine()
    try:
        model = next(line.split(":")[1].strip() for line in
                     Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line)
    except (OSError, StopIteration):
        pass
    return dict(processor=model, cores=CORES, python=platform.python_version(),
                **{name: version(name) for name in names})


def draw(rows):
    """Time against size, ours solid and the peer's dashed."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    plt.style.use(HERE.parent / "book" / "rkhs.mplstyle")
    figure, axes = plt.subplots(3, 2, figsize=(6.8, 9.6))
    for ax, (title, words) in zip(axes.flat, PANELS.items()):
        words = words if isinstance(words, tuple) else (words,)
        chosen = [row for row in rows.values() if len(row["sizes"]) > 1
                  and any(word in row["title"] for word in words)]
        for i, row in enumerate(chosen):
            for role, style in (("ours", "o-"), ("peer", "--")):
                points = [(one["n"], one["times"][role]) for one in row["sizes"]
                          if role in one["times"]]
                if points:
                    name = row["title"].removeprefix("Gaussian ") if role == "ours" else None
                    ax.loglog(*zip(*points), style, color=f"C{i % 7}", label=name, ms=4)
        ax.set(title=title, xlabel="n", ylabel="seconds")
        ax.xaxis.set_minor_formatter(NullFormatter())
        if chosen:
            low, high = ax.get_ylim()
            ax.set_ylim(low, high * (high / low) ** 0.35)     # room for the names
            ax.legend(fontsize=6.5, loc="upper left")
    figure.savefig(FIGURE)


def main(words):
    from rows import ROWS

    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": {}}
    found["machine"] = machine()
    for index, row in enumerate(ROWS):
        key = f"{row.title} / {row.peer}"
        if words and not any(word.lower() in key.lower() for word in words):
            continue
        sizes = []
        for n in row.sizes:
            done = subprocess.run([sys.executable, __file__, "--one", str(index), str(n)],
                                  capture_output=True, text=True)
            if done.returncode:
                print(f"{key}, n = {n}: failed\n{done.stderr[-800:]}", flush=True)
                break
            sizes.append(json.loads(done.stdout.splitlines()[-1]))
            times = sizes[-1]["times"]
            text = ", ".join(f"{role} {seconds:.3g} s" for role, seconds in times.items())
            ratio = times.get("peer", 0) / times["ours"]
            print(f"{key}, n = {n}: {text}, ratio {ratio:.2f}, "
                  f"{sizes[-1]['memory']['ours']:.0f} MiB", flush=True)
        if sizes:
            found["rows"][key] = dict(title=row.title, peer=row.peer, sizes=sizes)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    draw(found["rows"])


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(int(sys.argv[2]), int(sys.argv[3]))))
    else:
        main(sys.argv[1:])
