"""Write the package from the book, or edits of the package into the book.

    python tools/tangle.py              modules from chapters: the book wins
    python tools/tangle.py --check      fail where book and package differ
    python tools/tangle.py --untangle   chapters from modules: the module wins

A chapter is a notebook in ``_toc.yml`` with at least one code cell tagged
``export``. Its module holds exactly those cells, in order, each after a line
``# %% [ordinal] nearest heading above the cell``. The ordinal is what ties a
cell of the module to a cell of the notebook, so ``--untangle`` carries edits
made inside cells; cells are added, removed and moved in the notebook.
"""

import argparse
import ast
import re
import sys
from pathlib import Path
from typing import NamedTuple

import nbformat

ROOT = Path(__file__).resolve().parent.parent
DELIMITER = re.compile(r"^# %% \[(\d+)\] ?(.*)$", re.M)
HEADER = '''{raw}"""{title}

The exported cells of the chapter ``book/{name}.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
'''


class TangleError(Exception):
    """A notebook or a module that does not have the expected form."""


class Cell(NamedTuple):
    """One exported cell: its place in the notebook, its heading, its code."""

    index: int
    heading: str
    source: str


def short(path):
    """The last two parts of a path: enough to find it in the project."""
    return "/".join(Path(path).parts[-2:])


def pages(root=ROOT):
    """Names of the pages in book/, in the order of ``_toc.yml``."""
    toc = (root / "_toc.yml").read_text(encoding="utf-8")
    return re.findall(r"^[ -]*(?:root|file): *book/(\S+)", toc, re.M)


def read_notebook(path):
    """The notebook at path, or a TangleError that says what is wrong."""
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except FileNotFoundError:
        raise TangleError(f"{short(path)}: there is no such notebook") from None
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise TangleError(f"{short(path)}: not a valid notebook: {reason}") from None
    return notebook


def headings(markdown):
    """(level, text) of the headings of a markdown cell, fences left out."""
    prose = re.sub(r"^(`{3,}|~{3,}|:{3,}).*?^\1", "", markdown, flags=re.M | re.S)
    found = re.findall(r"^(#{1,6}) +(.*?)[ #]*$", prose, re.M)
    return [(len(marks), text) for marks, text in found]


def exported_cells(path):
    """(title, cells) of the notebook at path."""
    title, heading, cells = None, "", []
    for index, cell in enumerate(read_notebook(path).cells, start=1):
        place = f"{short(path)}: cell {index}"
        if "export" not in cell.metadata.get("tags", []):
            if cell.cell_type == "markdown":
                for level, heading in headings(cell.source):
                    if level == 1 and title is None:
                        title = heading
            continue
        if cell.cell_type != "code":
            raise TangleError(
                f"{place} is tagged export but is a {cell.cell_type} cell"
            )
        if not cell.source.strip():
            raise TangleError(f"{place} is tagged export but is empty")
        if DELIMITER.search(cell.source):
            raise TangleError(
                f"{place} contains a line that starts with '# %% [', which "
                "is kept for the boundaries between cells"
            )
        if title is None:
            raise TangleError(
                f"{place} is exported before any title: start the chapter "
                "with a markdown cell '# Title'"
            )
        # Blank lines at a cell's ends carry nothing and would make the
        # boundaries in the module ambiguous.
        cells.append(Cell(index, heading, cell.source.strip("\n")))
    return title, cells


def chapters(root=ROOT):
    """Names of the chapters, in the order of ``_toc.yml``."""
    notebooks = [root / "book" / f"{name}.ipynb" for name in pages(root)]
    return [p.stem for p in notebooks if p.exists() and exported_cells(p)[1]]


def module_text(path):
    """The module that the notebook at path defines."""
    title, cells = exported_cells(path)
    header = HEADER.format(
        raw="r" if "\\" in title else "", title=title, name=path.stem
    )
    parts = [
        f"# %% [{number}] {cell.heading}\n{cell.source}\n"
        for number, cell in enumerate(cells, start=1)
    ]
    return header + "\n" + "\n\n".join(parts)


def module_cells(path):
    """The cells' sources in the module at path."""
    text = path.read_text(encoding="utf-8")
    first, *pieces = re.split(r"^(?=# %% \[)", text, flags=re.M)
    if not pieces:
        raise TangleError(f"{short(path)}: no line '# %% [1] ...' starts a cell")
    if len(ast.parse(first).body) != 1:  # a docstring, and nothing else
        raise TangleError(
            f"{short(path)}: the code above '# %% [1]' belongs to no "
            "cell; move it into one"
        )
    sources = []
    for number, piece in enumerate(pieces, start=1):
        line, _, source = piece.partition("\n")
        match = DELIMITER.fullmatch(line)
        if not match or int(match[1]) != number:
            raise TangleError(
                f"{short(path)}: expected '# %% [{number}] ...' where it "
                f"says {line!r}"
            )
        sources.append(source.strip("\n"))
    return sources


def difference(notebook, module):
    """None if the module is what the notebook says, else where they part."""
    wanted = module_text(notebook)
    if not module.exists():
        return f"{short(notebook)} exports cells but {short(module)} does not exist"
    found = module.read_text(encoding="utf-8")
    if found == wanted:
        return None
    ours, theirs = wanted.split("\n"), found.split("\n")
    shared = min(len(ours), len(theirs))
    line = next((i for i in range(shared) if ours[i] != theirs[i]), shared)
    number = len(DELIMITER.findall("\n".join(ours[: line + 1])))
    cell = exported_cells(notebook)[1][number - 1]
    place = f"cell {cell.index}, under {cell.heading!r}" if number else "the title"
    book, code = [*ours, "(ends here)"][line], [*theirs, "(ends here)"][line]
    return (
        f"{short(notebook)} and {short(module)} differ in {place}, line "
        f"{line + 1} of the module:\n  book:   {book}\n  module: {code}"
    )


def untangle(notebook, module):
    """Carry the module's cells into the notebook; list the cells changed."""
    cells, sources = exported_cells(notebook)[1], module_cells(module)
    if len(cells) != len(sources):
        raise TangleError(
            f"{short(module)} has {len(sources)} cells but {short(notebook)} exports "
            f"{len(cells)}: add and remove cells in the notebook"
        )
    changed = [(c, s) for c, s in zip(cells, sources) if c.source != s]
    content = read_notebook(notebook)
    for cell, source in changed:
        content.cells[cell.index - 1].source = source
    if changed:
        nbformat.write(content, notebook)
    return [cell for cell, _ in changed]


def main(arguments=None, root=ROOT):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--untangle", action="store_true")
    options = parser.parse_args(arguments)
    try:
        names = chapters(root)
        orphans = {p.stem for p in (root / "rkhs_lit").glob("*.py")}
        for name in sorted(orphans - {"__init__", *names}):
            raise TangleError(
                f"rkhs_lit/{name}.py has no chapter: no notebook of that name "
                "with exported cells is in _toc.yml"
            )
        failures = 0
        for name in names:
            notebook = root / "book" / f"{name}.ipynb"
            module = root / "rkhs_lit" / f"{name}.py"
            if options.check:
                if found := difference(notebook, module):
                    failures += 1
                    print(found, file=sys.stderr)
                continue
            if options.untangle and module.exists():
                for cell in untangle(notebook, module):
                    print(f"{short(notebook)}: cell {cell.index} ({cell.heading})")
            if difference(notebook, module):
                module.write_text(module_text(notebook), encoding="utf-8")
                print(f"wrote {short(module)}")
    except TangleError as error:
        print(error, file=sys.stderr)
        return 1
    if failures:
        print(
            "`make tangle` takes the book's side, `make untangle` the module's.",
            file=sys.stderr,
        )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
