"""Guards: what must be true of every page, whatever it says.

Each message names the place. The rules that concern style rather than truth
are in tools/lint.py.
"""

import ast
import csv
import importlib
import re
import subprocess
import sys
from collections import Counter

import nbformat
import pytest
import rkhs_lit
from execute import METADATA, macros
from nbclient import NotebookClient
from tangle import ROOT, chapters, pages, read_notebook

BOOK = ROOT / "book"
CHAPTERS = chapters()
NOTEBOOKS = {path.stem: read_notebook(path) for path in sorted(BOOK.glob("*.ipynb"))}
MARKDOWN = {path.stem: path.read_text("utf-8") for path in sorted(BOOK.glob("*.md"))}
CELLS = [
    pytest.param(cell, f"book/{name}.ipynb, cell {number}", id=f"{name}-{number}")
    for name, notebook in NOTEBOOKS.items()
    for number, cell in enumerate(notebook.cells, start=1)
    if cell.cell_type == "code"
]


def public_names(chapter):
    """Functions and classes without underscore that the chapter defines."""
    code = ast.parse((ROOT / "rkhs_lit" / f"{chapter}.py").read_text("utf-8"))
    kinds = ast.FunctionDef | ast.ClassDef
    found = [node.name for node in code.body if isinstance(node, kinds)]
    return [name for name in dict.fromkeys(found) if not name.startswith("_")]


PUBLIC = [(chapter, name) for chapter in CHAPTERS for name in public_names(chapter)]


def labels_of(text):
    """Labels that a piece of MyST defines."""
    return re.findall(
        r"^\s*:(?:label|name): *(\S+)\s*$"  # statements, exercises, figures
        r"|^\s*\$\$ *\(([^)\s]+)\)\s*$"  # equations
        r"|^\(([^)\s]+)\)=\s*$",  # sections
        text,
        re.M,
    )


def all_labels():
    """(label, place) for every label of the book."""
    for name, text in MARKDOWN.items():
        for groups in labels_of(text):
            yield "".join(groups), f"book/{name}.md"
    for name, notebook in NOTEBOOKS.items():
        for number, cell in enumerate(notebook.cells, start=1):
            place = f"book/{name}.ipynb, cell {number}"
            if cell.cell_type == "markdown":
                for groups in labels_of(cell.source):
                    yield "".join(groups), place
            figure = cell.metadata.get("mystnb", {}).get("figure", {})
            if "name" in figure:
                yield figure["name"], place


LABELS = list(all_labels())
KNOWN = {label for label, _ in LABELS}


# Pages


def test_every_page_is_in_the_table_of_contents_and_exists():
    written, listed = {*NOTEBOOKS, *MARKDOWN}, pages()
    assert len(listed) == len(set(listed)), "_toc.yml lists a page twice"
    assert written == set(listed), (
        f"not in _toc.yml: {sorted(written - set(listed))}; "
        f"in _toc.yml but not in book/: {sorted(set(listed) - written)}"
    )


def test_labels_are_unique():
    for label, count in Counter(label for label, _ in LABELS).items():
        places = [place for other, place in LABELS if other == label]
        assert count == 1, f"label {label!r} is defined in {'; '.join(places)}"


# Notebooks


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_was_run_from_top_to_bottom(name):
    cells = [
        (number, cell.execution_count)
        for number, cell in enumerate(NOTEBOOKS[name].cells, start=1)
        if cell.cell_type == "code"
    ]
    for expected, (number, count) in enumerate(cells, start=1):
        assert count == expected, (
            f"book/{name}.ipynb, cell {number} has execution count {count}, not "
            f'{expected}: run `make execute CHAPTERS="{name}"`'
        )


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_carries_nothing_of_the_machine_it_ran_on(name):
    advice = f'run `make execute CHAPTERS="{name}"`'
    assert NOTEBOOKS[name].metadata == METADATA, f"book/{name}.ipynb: {advice}"
    for number, cell in enumerate(NOTEBOOKS[name].cells, start=1):
        assert "execution" not in cell.metadata, (
            f"book/{name}.ipynb, cell {number} stores timings: {advice}"
        )


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_carries_the_macros_of_the_book(name):
    first = NOTEBOOKS[name].cells[0]
    assert first.id == "macros" and first.source == macros(), (
        f"book/{name}.ipynb does not have the macros of _config.yml in its first "
        f'cell: run `make execute CHAPTERS="{name}"`'
    )


def texts(cell):
    """Every text that the cell's outputs show."""
    for output in cell.outputs:
        yield output.get("text", "")
        for kind, data in output.get("data", {}).items():
            if kind.startswith("text/"):
                yield "".join(data)


@pytest.mark.parametrize("cell, place", CELLS)
def test_output_has_no_error_and_no_warning(cell, place):
    for output in cell.outputs:
        assert output.output_type != "error", f"{place} raised {output.ename}"
        assert output.get("name") != "stderr", f"{place} wrote to stderr: {output.text}"
    for text in texts(cell):
        assert not re.search(r"\w*Warning\b", text), f"{place} shows a warning: {text}"


NOISE = {
    # A bare power of ten, such as 1e-14, is a tolerance that somebody chose.
    "a rounding error": r"(?:\d\.\d*|[2-9])[eE]-(?:1[4-9]|[23]\d)\b|\d\.\d{15,}",
    "an address": r"\b0x[0-9a-fA-F]{6,}",
    "a path": r"(?<![\w.])/(?:home|root|tmp|Users|usr|opt|var|mnt)/|site-packages",
}


@pytest.mark.parametrize("cell, place", CELLS)
def test_output_shows_nothing_that_another_machine_would_not(cell, place):
    for text in texts(cell):
        for what, pattern in NOISE.items():
            match = re.search(pattern, text)
            assert not match, f"{place} prints {what}: {match[0]}"


@pytest.mark.parametrize("cell, place", CELLS)
def test_figures_have_alternative_text(cell, place):
    if any("image/png" in output.get("data", {}) for output in cell.outputs):
        image = cell.metadata.get("mystnb", {}).get("image", {})
        assert image.get("alt", "").strip(), (
            f"{place} draws a figure; describe it in the cell's metadata: "
            '{"mystnb": {"image": {"alt": "..."}}}'
        )


@pytest.mark.parametrize("cell, place", CELLS)
def test_code_fits_the_column(cell, place):
    for line in cell.source.splitlines():
        assert len(line) <= 76, f"{place}: {len(line)} characters, not 76: {line}"


def test_a_picture_that_was_not_drawn_again_is_found(tmp_path):
    """The comparison of notebooks with fresh runs sees pictures too."""
    source = "import matplotlib.pyplot as plt\nplt.plot([0, 1])\nplt.show()"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    NotebookClient(notebook, kernel_name="python3").execute()
    (tmp_path / "conftest.py").write_text((BOOK / "conftest.py").read_text("utf-8"))
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q"]
    for code, passes in ((source, True), (source.replace("0,", "1, 0,"), False)):
        notebook.cells[0].source = code
        nbformat.write(notebook, tmp_path / "figure.ipynb")
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert (run.returncode == 0) is passes, run.stdout
        assert passes or "The stored picture is not" in run.stdout


# Solutions


def solutions():
    """(notebook, label, text, whether a code cell belongs to it)."""
    gate = re.compile(r"^(`{3,})\{solution(-start)?\} *(\S+)(.*?)(?:^\1$|\Z)", re.M | re.S)
    for name, notebook in NOTEBOOKS.items():
        for cell, after in zip(notebook.cells, [*notebook.cells[1:], None]):
            for match in gate.finditer(cell.source):
                inside = match[2] and cell.source[match.end() :]
                yield name, match[3], match[0] + (inside or ""), bool(
                    match[2] and after and after.cell_type == "code"
                )


@pytest.mark.parametrize(
    "name, label, text, executed",
    [pytest.param(*found, id=found[1]) for found in solutions()],
)
def test_code_and_numbers_of_a_solution_are_executed(name, label, text, executed):
    fenced = re.search(r"^(`{3,}|~{3,}) *(?:python|\{code)", text, re.M)
    spans = re.findall(r"(?<!`)`([^`]+)`(?!`)", re.sub(r"\{[\w:]+\}`[^`]*`", "", text))
    calls = [span for span in spans if re.search(r"\w\([^)]+\)", span)]
    number = re.search(r"(?<![\w.])\d+\.\d", text)
    claim = fenced or number or calls
    assert executed or not claim, (
        f"book/{name}.ipynb, solution of {label}, says {claim[0]!r}: compute it in a "
        "code cell between solution-start and solution-end"
    )


# Chapters


def imports(source):
    """(module, name or None) for each import in the source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((module, alias.name) for alias in node.names)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_chapter_imports_only_earlier_chapters(chapter):
    earlier = [f"rkhs_lit.{name}" for name in CHAPTERS[: CHAPTERS.index(chapter)]]
    for number, cell in enumerate(NOTEBOOKS[chapter].cells, start=1):
        if cell.cell_type != "code":
            continue
        for module, name in imports(cell.source):
            place = f"book/{chapter}.ipynb, cell {number}, imports {name or module}"
            if module == "rkhs_lit" and name:
                exported = "export" in cell.metadata.get("tags", [])
                assert not exported, (
                    f"{place} from rkhs_lit: the package imports this module in "
                    "turn, so name the chapter's module instead"
                )
                module = getattr(rkhs_lit, name).__module__
            if module.startswith((".", "rkhs_lit")):
                assert module in earlier, (
                    f"{place} from {module}, which is no earlier chapter; "
                    f"earlier are {', '.join(earlier) or 'none'}"
                )


# Public names


@pytest.mark.parametrize("chapter, name", PUBLIC)
def test_public_name_is_exported_by_the_package(chapter, name):
    found = getattr(importlib.import_module(f"rkhs_lit.{chapter}"), name)
    assert getattr(rkhs_lit, name, None) is found, (
        f"rkhs_lit/__init__.py does not export {name} of rkhs_lit.{chapter}"
    )


@pytest.mark.parametrize("chapter, name", PUBLIC)
def test_public_name_has_a_docstring_that_names_a_statement(chapter, name):
    found = getattr(importlib.import_module(f"rkhs_lit.{chapter}"), name)
    # Not inspect.getdoc: a class must not inherit its base class's statement.
    text = found.__doc__ or ""
    labels = re.findall(r":(?:prf:ref|eq):`(?:[^`<]*<)?([^`>]+)>?`", text)
    place = f"rkhs_lit.{chapter}.{name}"
    assert labels, f"the docstring of {place} names no :prf:ref:`label` or :eq:`label`"
    for label in labels:
        assert label in KNOWN, f"{place} refers to {label!r}, which no page defines"


@pytest.mark.parametrize("chapter, name", PUBLIC)
def test_public_name_is_tested(chapter, name):
    path = ROOT / "tests" / f"test_{chapter}.py"
    assert path.exists(), f"tests/{path.name} does not exist"
    assert re.search(rf"\b{name}\b", path.read_text("utf-8")), (
        f"tests/{path.name} does not mention {name}"
    )


def test_the_reference_lists_the_modules_in_the_order_of_the_book():
    listed = re.findall(r"automodule:: rkhs_lit\.(\w+)", MARKDOWN["api"])
    assert listed == CHAPTERS, f"book/api.md lists {listed}; the chapters are {CHAPTERS}"


# Concordance


def concordance():
    with open(BOOK / "concordance.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def names_of_tests():
    """{file name: names of its test functions}."""
    return {
        path.name: {
            node.name
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        }
        for path in (ROOT / "tests").glob("test_*.py")
    }


TESTS = names_of_tests()
ROWS = [
    pytest.param(row, f"book/concordance.csv, line {line} ({row['id']})", id=row["id"])
    for line, row in enumerate(concordance(), start=2)
]
# What a row must name, given the forms that it promises.
NEEDS = {
    "proof": "label",
    "prose": "label",
    "figure": "label",
    "function": "function",
    "test": "test",
}


def test_concordance_has_its_columns_and_unique_ids():
    with open(BOOK / "concordance.csv", newline="", encoding="utf-8") as file:
        head = next(csv.reader(file))
    assert head == "id where what chapter form label function test".split()
    ids = [row["id"] for row in concordance()]
    assert len(ids) == len(set(ids)), f"twice: {Counter(ids).most_common(1)}"


# How many results of each source the book owes its reader, by the letter of id.
OWED = {"G": 39, "A": 27, "W": 25, "N": 16, "M": 14, "V": 10, "C": 8, "R": 5}


def test_concordance_has_every_result_of_the_sources():
    found = Counter(row["id"].partition("-")[0] for row in concordance())
    assert found == OWED, "book/concordance.csv lost or gained a row"


@pytest.mark.parametrize("chapter", [c for c in CHAPTERS if c != "conventions"])
def test_chapter_has_a_row_in_the_concordance(chapter):
    assert chapter in {row["chapter"] for row in concordance()}, (
        f"book/concordance.csv has no row for {chapter}: enter what it proves"
    )


@pytest.mark.parametrize("row, place", ROWS)
def test_concordance_row_names_the_chapter_that_has_the_result(row, place):
    home = f"book/{row['chapter']}.ipynb"
    places = [where for label, where in LABELS if label in row["label"].split()]
    assert any(where.startswith(home) for where in places), (
        f"{place}: none of its labels is defined in {home}"
    )


@pytest.mark.parametrize("row, place", ROWS)
def test_concordance_row_is_complete(row, place):
    assert None not in row and None not in row.values(), f"{place}: wrong no. of fields"
    assert all(row[key] for key in ("id", "where", "what")), f"{place}: empty field"
    assert row["chapter"] in CHAPTERS, f"{place}: no chapter {row['chapter']!r}"
    forms = row["form"].split("+")
    for form in forms:
        assert form in NEEDS, f"{place}: unknown form {form!r}"
        assert row[NEEDS[form]].split(), f"{place}: {form} promised, no {NEEDS[form]}"
    if "figure" in forms:
        assert "fig-" in row["label"], f"{place}: figure promised, no fig- label"


@pytest.mark.parametrize("row, place", ROWS)
def test_concordance_row_resolves(row, place):
    for label in row["label"].split():
        assert label in KNOWN, f"{place}: no page defines the label {label!r}"
    for name in row["function"].split():
        assert name.partition(".")[0] in {public for _, public in PUBLIC}, (
            f"{place}: {name!r} is not a public name of rkhs_lit"
        )
        found = rkhs_lit
        for attribute in name.split("."):
            found = getattr(found, attribute, None)
            assert found is not None, f"{place}: rkhs_lit has no {name!r}"
    for test in row["test"].split():
        file, _, name = test.rpartition("::")
        where = TESTS.get(file, set()) if file else set().union(*TESTS.values())
        assert name in where, f"{place}: no test is called {test!r}"
