"""Open the chapters in JupyterLab.

    python tools/lab.py [OPTION ...]    options are handed on to JupyterLab

JupyterLab sees one notebook at a time. The small extension beside this script
shows which cells are exported, and the numbers that the book gives to statements,
equations and figures.
"""

import json
import os
import re
import sys
from pathlib import Path

import yaml
from tangle import ROOT, read_notebook
from threads import BLOCK

HERE = Path(__file__).resolve().parent / "lab"
EXERCISE = re.compile(r"^(`{3,})\{exercise(?:-start)?\}.*?^:label: (\S+)", re.S | re.M)
SECTION = re.compile(r"^\((\S+)\)=\n+#+ +(.*?) *$", re.M)
EQUATION = re.compile(r"^\s*\$\$ *\((\S+)\) *$", re.M)


def labels():
    """Label -> [number as the book shows it, notebook]."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    found, number, before = {}, 0, {}      # counts of pages without a number go on
    for part in toc["parts"]:
        pages = [page for entry in part["chapters"]
                 for page in (entry, *entry.get("sections", ()))]
        for entry in pages:
            path = ROOT / f"{entry['file']}.ipynb"
            number += "numbered" in part
            if not path.exists():
                continue
            prefix = f"{number}." if "numbered" in part else ""
            cells = read_notebook(path).cells
            text = "\n".join(c.source for c in cells if c.cell_type == "markdown")
            figures = [c.metadata.get("mystnb", {}).get("figure", {}).get("name") for c in cells]
            stated = [block for block in BLOCK.findall(text) if block[1] != "proof"]
            kinds = {
                "Fig.": [name for name in figures if name],
                "Exercise": [label for _, label in EXERCISE.findall(text)],
                "": EQUATION.findall(text),
            }
            first = {} if prefix else before
            for i, (_, kind, _, body) in enumerate(stated, start=first.get("stated", 0) + 1):
                if label := re.search(r"^:label: (\S+)", body, re.M):
                    found[label[1]] = [f"{kind.title()} {prefix}{i}", path.name]
            for kind, names in kinds.items():
                for i, label in enumerate(names, start=first.get(kind, 0) + 1):
                    word = f"{kind} {prefix}{i}" if kind else f"({prefix}{i})"
                    found[label] = [word, path.name]
            if not prefix:
                for kind, names in {**kinds, "stated": stated}.items():
                    before[kind] = before.get(kind, 0) + len(names)
            for label, title in SECTION.findall(text):
                found[label] = [title, path.name]
    return found


def main(options):
    (HERE / "rkhs-book/static/labels.json").write_text(json.dumps(labels()), "utf-8")
    os.chdir(ROOT / "book")
    # Without the first two options JupyterLab asks the internet for news.
    os.execv(sys.executable, [
        sys.executable, "-m", "jupyterlab", "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        f"--LabApp.extra_labextensions_path={HERE}", *options,
    ])


if __name__ == "__main__":
    main(sys.argv[1:])
