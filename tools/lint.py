"""Softer rules of style, for `make lint`. Exits 1 if it finds anything.

Each finding is a suggestion to look again. What must hold without exception
is a test, in tests/test_book.py.
"""

import ast
import re
import sys

from tangle import ROOT, chapters, pages, read_notebook

BOOK = ROOT / "book"
LONGEST_CELL = 50
PHRASES = (
    "it is easy to see",
    "it is easily seen",
    "it can be shown",
    "it follows easily",
    "clearly",
    "obviously",
    "trivial",
    "trivially",
    "straightforward",
    "left to the reader",
    "simply",
    "of course",
)
# American -> British, for the words that such a book uses most.
SPELLINGS = {
    "behavior": "behaviour",
    "center": "centre",
    "centered": "centred",
    "centering": "centring",
    "color": "colour",
    "colors": "colours",
    "generalize": "generalise",
    "generalized": "generalised",
    "minimize": "minimise",
    "minimizes": "minimises",
    "minimizer": "minimiser",
    "modeling": "modelling",
    "neighbor": "neighbour",
    "neighbors": "neighbours",
    "normalize": "normalise",
    "normalized": "normalised",
    "optimize": "optimise",
    "recognize": "recognise",
    "regularization": "regularisation",
    "regularize": "regularise",
    "regularized": "regularised",
}
# What a chapter should have somewhere -> how it is recognised.
PARTS = {
    "an exercise": r"\{exercise",
    "a solution": r"\{solution",
    "a citation": r"\{cite",
    "a proof": r"\{prf:proof\}",
    "a summary": r"^#+ .*[Ss]ummary",
}


def prose_findings(text):
    """Weak phrases and American spellings in prose, code and maths left out."""
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]*\$|`[^`\n]*`", " ", text, flags=re.S)
    for phrase in PHRASES:
        if re.search(rf"\b{phrase}\b", text, re.I):
            yield f"says {phrase!r}"
    for american, british in SPELLINGS.items():
        if re.search(rf"\b{american}\b", text, re.I):
            yield f"{american!r} is {british!r} in British spelling"


def cell_findings(cell):
    """Findings in one cell of a notebook."""
    if cell.cell_type == "markdown":
        yield from prose_findings(cell.source)
        return
    found = [
        node.body[0]
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node)
    ]
    documented = sum(text.end_lineno - text.lineno + 1 for text in found)
    lines = len(cell.source.splitlines()) - documented
    # A long class may stand in one cell; its parts are methods with names.
    if lines > LONGEST_CELL and not re.match(r"(@dataclass.*\n)?class ", cell.source):
        yield f"has {lines} lines; split it with prose (limit {LONGEST_CELL})"
    if cell.source.rstrip().endswith(";"):
        yield "ends with ';', which not every kernel honours: use plt.show()"
    if "nbval-ignore-output" in cell.metadata.get("tags", []):
        yield "is not compared (nbval-ignore-output)"
    if re.search(r"\bnp\.random\.(?!default_rng|Generator)", cell.source):
        yield "uses NumPy's global random state: use np.random.default_rng"
    words = re.findall(r'"""[\s\S]*?"""|# .*', cell.source)
    yield from prose_findings("\n".join(words))


def chapter_findings(notebook):
    """What the chapter as a whole lacks."""
    cells = notebook.cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    for what, pattern in PARTS.items():
        if not re.search(pattern, text, re.M):
            yield f"has no {what.split(' ', 1)[1]}"
    if text.count("{exercise") > text.count("{solution"):
        yield "has exercises without a solution"
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    if not any(cell.metadata.get("mystnb", {}).get("figure") for cell in cells):
        yield "has no figure with a caption"
    if "plt." in code and 'plt.style.use("rkhs.mplstyle")' not in code:
        yield 'draws without plt.style.use("rkhs.mplstyle")'


def findings():
    """(place, finding) over the whole book."""
    for name in pages():
        path = BOOK / f"{name}.md"
        if path.exists():
            text = path.read_text("utf-8")
            yield from ((f"book/{name}.md", found) for found in prose_findings(text))
            continue
        notebook = read_notebook(BOOK / f"{name}.ipynb")
        if name in chapters():
            yield from ((f"book/{name}.ipynb", f) for f in chapter_findings(notebook))
        for number, cell in enumerate(notebook.cells, start=1):
            place = f"book/{name}.ipynb, cell {number}"
            yield from ((place, found) for found in cell_findings(cell))


def main():
    found = list(findings())
    for place, finding in found:
        print(f"{place}: {finding}")
    print(f"{len(found)} findings" if found else "nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
