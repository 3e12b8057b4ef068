"""Write the package from the book, or edits of the package into the book.

    python tools/tangle.py [NAME ...]              modules from chapters
    python tools/tangle.py --untangle [NAME ...]   chapters from modules
    python tools/tangle.py --check                 fail where they differ

Without names, an edit is carried only where the other side was not edited
since the two last agreed (the module keeps a fingerprint of that state), so
that carrying one chapter's edits undoes no other's. For the chapters named,
the book wins, or with ``--untangle`` the module.

A chapter is a notebook in ``_toc.yml`` with at least one code cell tagged
``export``. Its module holds exactly those cells, in order, each after a line
``# %% [ordinal] nearest heading above the cell``. The ordinal is what ties a
cell of the module to a cell of the notebook, so ``--untangle`` carries edits
made inside cells; cells are added, removed and moved in the notebook.

``rkhs_lit/__init__.py`` is written too: it gathers what the modules define
without an underscore.
"""

import argparse
import ast
import hashlib
import re
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import NamedTuple

import nbformat

ROOT = Path(__file__).resolve().parent.parent
DELIMITER = re.compile(r"^# %% \[(\d+)\] ?(.*)$", re.M)
HEADER = '''{raw}"""{title}"""
# The exported cells of book/{name}.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: {fingerprint}
'''


PACKAGE = '''{raw}"""Reproducing kernel Hilbert spaces: the package that the book builds.

Each module holds the exported cells of the chapter of the same name. In the
order of the book:

{chapters}
"""
# Generated from the modules by `make tangle`; the version is pyproject.toml's.

import sys as _sys

{imports}

__version__ = "{version}"
__all__ = [
{names}
]
{moved}'''

# What chapters defined before they were divided: imports from there, and results
# that were pickled then, still find it. {where it was: names}}
MOVED = {
    "bochner": "FourierFeatures NystromFeatures nystrom_features pivoted_cholesky "
    "random_fourier_features rff_variance",
    "duality": "QPSolution solve_qp",
    "hsic": "FeatureSelection Unmixing balanced_labels hsic_gaussian hsic_unmix "
    "select_features",
    "kernels": "Conjugated Definiteness Delta FeatureKernel FunctionKernel Kernel Linear Mapped "
    "Pairs Power Product Scaled Sum TensorProduct as_points as_sequence "
    "is_positive_definite normalised reduce_tiles substrings words",
    "mercer": "fourier_coefficients spectral_inner spectral_norm",
    "mmd": "PermutationTest mmd_test permutation_pvalue",
    "moore_aronszajn": "decompose interpolate power_function project",
    "ridge": "gaussian_derivative gp_posterior log_marginal_likelihood",
}
OLD_PLACES = '''
# Names that have moved to another chapter are found where they were as well.
for _home, _names in {{
{rows}
}}.items():
    vars(_sys.modules[f"rkhs_lit.{{_home}}"]).update(
        {{_name: globals()[_name] for _name in _names}}
    )
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


def fingerprint(sources):
    """A few letters that stand for the sources of all cells."""
    return hashlib.sha256("\0".join(sources).encode()).hexdigest()[:16]


def module_text(path):
    """The module that the notebook at path defines."""
    title, cells = exported_cells(path)
    header = HEADER.format(
        raw="r" if "\\" in title else "",
        title=title,
        name=path.stem,
        fingerprint=fingerprint([cell.source for cell in cells]),
    )
    parts = [
        f"# %% [{number}] {cell.heading}\n{cell.source}\n"
        for number, cell in enumerate(cells, start=1)
    ]
    return header + "\n" + "\n".join(parts)


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
    apart = [i for i in range(shared) if ours[i] != theirs[i]]
    # The fingerprint differs whenever a cell does, and says nothing of it.
    words = [i for i in apart if not ours[i].startswith("# Cells: ")]
    line = (words or ([shared] if len(ours) != len(theirs) else apart))[0]
    number = len(DELIMITER.findall("\n".join(ours[: line + 1])))
    cell = exported_cells(notebook)[1][number - 1]
    place = f"cell {cell.index}, under {cell.heading!r}" if number else "the title"
    book, code = [*ours, "(ends here)"][line], [*theirs, "(ends here)"][line]
    return (
        f"{short(notebook)} and {short(module)} differ in {place}, line "
        f"{line + 1} of the module:\n  book:   {book}\n  module: {code}"
    )


def edited(notebook, module):
    """Which sides changed since they last agreed: (book, module)."""
    book = fingerprint([cell.source for cell in exported_cells(notebook)[1]])
    code = fingerprint(module_cells(module))
    if book == code:
        return False, False
    last = re.search(r"^# Cells: (\w+)$", module.read_text("utf-8"), re.M)
    return not last or book != last[1], not last or code != last[1]


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


def left_alone(notebook, module, back):
    """Why a chapter that nobody named is not carried; None if it is."""
    book, code = edited(notebook, module)
    ours, theirs, place = (code, book, notebook) if back else (book, code, module)
    if not theirs:
        return None
    if not ours:
        way = "make tangle" if back else "make untangle"
        return f"{short(place)} was edited, and is left as it is: {way} carries it"
    return (
        f"{short(notebook)} and {short(module)} were both edited: "
        f'make tangle CHAPTERS="{module.stem}" takes the book, '
        f'make untangle CHAPTERS="{module.stem}" the module'
    )


def public_names(path):
    """(title, names) of a module: what it defines without an underscore."""
    try:
        code = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise TangleError(f"{short(path)}: {error}") from None
    kinds = ast.FunctionDef | ast.ClassDef
    found = {node.name for node in code.body if isinstance(node, kinds)}
    title = (ast.get_docstring(code) or "").partition("\n")[0]
    return title, sorted(name for name in found if not name.startswith("_"))


def moved_text(public):
    """The end of rkhs_lit/__init__.py, given {chapter: its public names}."""
    everything = {name for found in public.values() for name in found}
    rows = {
        home: [name for name in found.split() if name in everything]
        for home, found in MOVED.items()
        if home in public
    }
    return OLD_PLACES.format(
        rows="\n".join(
            f'    "{home}": [\n'
            + "".join(f'        "{name}",\n' for name in found)
            + "    ],"
            for home, found in rows.items()
        )
    )


def package_text(root, names):
    """The file rkhs_lit/__init__.py, given the chapters in their order."""
    modules = {name: public_names(root / "rkhs_lit" / f"{name}.py") for name in names}
    with open(root / "pyproject.toml", "rb") as file:
        version = tomllib.load(file)["project"]["version"]
    chapters = "\n\n".join(
        f"rkhs_lit.{name} -- {title}\n"
        + textwrap.indent(textwrap.fill(", ".join(found), 75), "    ")
        for name, (title, found) in modules.items()
    )
    return PACKAGE.format(
        raw="r" if "\\" in chapters else "",
        chapters=chapters,
        imports="\n".join(
            f"from rkhs_lit.{name} import (\n"
            + "".join(f"    {public},\n" for public in modules[name][1])
            + ")"
            for name in sorted(modules)
            if modules[name][1]
        ),
        version=version,
        names="\n".join(
            f'    "{public}",'
            for public in sorted(n for _, found in modules.values() for n in found)
        ),
        moved=moved_text({name: found for name, (_, found) in modules.items()}),
    )


def gather(root, names, check):
    """Write the package's names, or say that they are not what they should be."""
    path, text = root / "rkhs_lit" / "__init__.py", package_text(root, names)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return None
    if not check:
        path.write_text(text, encoding="utf-8")
        return f"wrote {short(path)}"
    return f"{short(path)} does not gather the public names of the modules"


def strays(root, names):
    """What looks like a chapter or a module but is not one."""
    for path in sorted((root / "rkhs_lit").glob("*.py")):
        if path.stem not in {"__init__", *names}:
            yield (
                f"rkhs_lit/{path.name} has no chapter: no notebook of that name "
                "with exported cells is in _toc.yml"
            )
    for path in sorted((root / "book").glob("*.ipynb")):
        if path.stem not in pages(root) and exported_cells(path)[1]:
            yield f"{short(path)} exports cells but is not in _toc.yml: list it there"


def carry(notebook, module, back, named):
    """Carry the edits of one chapter; lines that say what was done."""
    if module.exists():
        reason = None if named else left_alone(notebook, module, back)
        if reason:
            return [reason]
        lines = [
            f"{short(notebook)}: cell {cell.index} ({cell.heading})"
            for cell in (untangle(notebook, module) if back else [])
        ]
    else:
        lines = []
    if difference(notebook, module):
        module.write_text(module_text(notebook), encoding="utf-8")
        lines.append(f"wrote {short(module)}")
    return lines


def main(arguments=None, root=ROOT):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--untangle", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args(arguments)
    failures = 0
    try:
        names = chapters(root)
        for stray in strays(root, names):
            raise TangleError(stray)
        if unknown := sorted(set(options.names) - set(names)):
            raise TangleError(f"no chapter is called {', '.join(unknown)}")
        for name in options.names or names:
            notebook = root / "book" / f"{name}.ipynb"
            module = root / "rkhs_lit" / f"{name}.py"
            if options.check:
                if found := difference(notebook, module):
                    failures += 1
                    print(found, file=sys.stderr)
                continue
            for line in carry(notebook, module, options.untangle, bool(options.names)):
                print(line)
            failures += difference(notebook, module) is not None
        if not (options.check and failures) and (
            found := gather(root, names, options.check)
        ):
            failures += options.check
            print(found, file=sys.stderr if options.check else sys.stdout)
    except TangleError as error:
        print(error, file=sys.stderr)
        return 1
    if failures and options.check:
        print(
            "`make tangle` carries edits of the book, `make untangle` of the module.",
            file=sys.stderr,
        )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
