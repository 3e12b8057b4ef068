"""Guards: what must be true of every page, whatever it says.

One case for a rule and a notebook: its message names every place that breaks
the rule. The rules that concern style rather than truth are in tools/lint.py.
"""

import ast
import csv
import functools
import importlib
import re
import subprocess
import sys
import tomllib
from collections import Counter

import nbformat
import pytest
import rkhs_lit
from execute import METADATA, macros
from nbclient import NotebookClient
from tangle import MOVED, ROOT, chapters, pages, public_names, read_notebook

BOOK = ROOT / "book"
CHAPTERS = chapters()
NOTEBOOKS = {path.stem: read_notebook(path) for path in sorted(BOOK.glob("*.ipynb"))}
MARKDOWN = {path.stem: path.read_text("utf-8") for path in sorted(BOOK.glob("*.md"))}


def code_cells(name):
    """(place, cell) of the code cells of a notebook."""
    for number, cell in enumerate(NOTEBOOKS[name].cells, start=1):
        if cell.cell_type == "code":
            yield f"book/{name}.ipynb, cell {number}", cell


def none(found):
    """Fails with one line for each finding."""
    assert not (lines := list(found)), "\n".join(lines)


PUBLIC = {name: public_names(ROOT / "rkhs_lit" / f"{name}.py")[1] for name in CHAPTERS}


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
    counts = Counter(label for label, _ in LABELS)
    none(f"label {label!r}: {place}" for label, place in LABELS if counts[label] > 1)


# Notebooks


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_was_run_from_top_to_bottom(name):
    none(
        f"{place} has execution count {cell.execution_count}, not {expected}: "
        f'run `make execute CHAPTERS="{name}"`'
        for expected, (place, cell) in enumerate(code_cells(name), start=1)
        if cell.execution_count != expected
    )


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_carries_nothing_of_the_machine_it_ran_on(name):
    advice = f'run `make execute CHAPTERS="{name}"`'
    assert NOTEBOOKS[name].metadata == METADATA, f"book/{name}.ipynb: {advice}"
    none(
        f"book/{name}.ipynb, cell {number} stores timings: {advice}"
        for number, cell in enumerate(NOTEBOOKS[name].cells, start=1)
        if "execution" in cell.metadata
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


def alarms(cell):
    """Errors and warnings that the cell's outputs show."""
    for output in cell.outputs:
        if output.output_type == "error":
            yield f"raised {output.ename}"
        if output.get("name") == "stderr":
            yield f"wrote to stderr: {output.text}"
    for text in texts(cell):
        if re.search(r"\w*Warning\b", text):
            yield f"shows a warning: {text}"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_output_has_no_error_and_no_warning(name):
    cells = code_cells(name)
    none(f"{place} {alarm}" for place, cell in cells for alarm in alarms(cell))


NOISE = {
    # A bare power of ten, such as 1e-14, is a tolerance that somebody chose.
    "a rounding error": r"(?:\d\.\d*|[2-9])[eE]-(?:1[4-9]|[23]\d)\b|\d\.\d{15,}",
    "an address": r"\b0x[0-9a-fA-F]{6,}",
    "a path": r"(?<![\w.])/(?:home|root|tmp|Users|usr|opt|var|mnt)/|site-packages",
}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_output_shows_nothing_that_another_machine_would_not(name):
    none(
        f"{place} prints {what}: {match[0]}"
        for place, cell in code_cells(name)
        for text in texts(cell)
        for what, pattern in NOISE.items()
        for match in re.finditer(pattern, text)
    )


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_figures_have_alternative_text(name):
    none(
        f"{place} draws a figure; describe it in the cell's metadata: "
        '{"mystnb": {"image": {"alt": "..."}}}'
        for place, cell in code_cells(name)
        if any("image/png" in output.get("data", {}) for output in cell.outputs)
        and not cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "").strip()
    )


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_code_fits_the_column(name):
    none(
        f"{place}: {len(line)} characters, not 76: {line}"
        for place, cell in code_cells(name)
        for line in cell.source.splitlines()
        if len(line) > 76
    )


def test_a_picture_that_was_not_drawn_again_is_found(tmp_path):
    """The comparison of notebooks with fresh runs sees pictures too."""
    source = "import matplotlib.pyplot as plt\nplt.plot([0, 1])\nplt.show()"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    NotebookClient(notebook, kernel_name="python3").execute()
    (tmp_path / "conftest.py").write_text((BOOK / "conftest.py").read_text("utf-8"))
    nbformat.write(notebook, tmp_path / "same.ipynb")
    notebook.cells[0].source = source.replace("0,", "1, 0,")
    nbformat.write(notebook, tmp_path / "other.ipynb")
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-v"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert re.search(r"same.*::Cell 0 PASSED", run.stdout), run.stdout
    assert re.search(r"other.*::Cell 0 FAILED", run.stdout), run.stdout
    assert "The stored picture is not" in run.stdout


# Solutions


GATE = re.compile(r"^(`{3,})\{solution(-start)?\} *(\S+)(.*?)(?:^\1$|\Z)", re.M | re.S)


def solutions(name):
    """(label, text, whether a code cell belongs to it) of a notebook."""
    cells = NOTEBOOKS[name].cells
    for cell, after in zip(cells, [*cells[1:], None]):
        for match in GATE.finditer(cell.source):
            inside = match[2] and cell.source[match.end() :]
            yield match[3], match[0] + (inside or ""), bool(
                match[2] and after and after.cell_type == "code"
            )


def claim(text):
    """Code or a number in a solution, or None."""
    fenced = re.search(r"^(`{3,}|~{3,}) *(?:python|\{code)", text, re.M)
    spans = re.findall(r"(?<!`)`([^`]+)`(?!`)", re.sub(r"\{[\w:]+\}`[^`]*`", "", text))
    calls = [span for span in spans if re.search(r"\w\([^)]+\)", span)]
    number = re.search(r"(?<![\w.])\d+\.\d", text)
    found = fenced or number or calls
    return found[0] if found else None


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_code_and_numbers_of_a_solution_are_executed(name):
    none(
        f"book/{name}.ipynb, solution of {label}, says {claim(text)!r}: compute it in "
        "a code cell between solution-start and solution-end"
        for label, text, executed in solutions(name)
        if claim(text) and not executed
    )


# Exercises


EXERCISE = re.compile(r"^(`{3,})\{exercise(?:-start)?\}[^\n]*\n(?::[^\n]*\n)*\s*([^\n]*)", re.M)
KIND = re.compile(r"\*(Proof|By hand|Numerical|Programming), ★{1,3}, \d+ minutes\.\*")


def exercises(name):
    """The label, the first line and the code of the solution of each exercise."""
    label, first, code = None, None, ""
    for cell in NOTEBOOKS[name].cells:
        if cell.cell_type == "code":
            code += cell.source + "\n"
            continue
        for match in EXERCISE.finditer(cell.source):
            if label:
                yield label, first, code
            label, first, code = re.search(r"^:label: (\S+)", match[0], re.M)[1], match[2], ""
        if re.search(r"^## (?!Exercises)", cell.source, re.M) and label:
            yield label, first, code
            label = None
    if label:
        yield label, first, code


@pytest.mark.parametrize("name", CHAPTERS)
def test_exercises_say_what_they_ask_for_and_programs_are_checked(name):
    """The first line has the kind, the difficulty and the time; two programming
    exercises or more have a solution with a function and a check of it."""
    found = list(exercises(name))
    none(f"book/{name}.ipynb, {label}: begins {first!r}, not like '*Programming, ★★, 20 minutes.*'"
         for label, first, _ in found if not KIND.match(first))
    checked = [label for label, first, code in found
               if "Programming" in first and "def " in code and "assert" in code]
    assert len(checked) >= 2, f"book/{name}.ipynb has {len(checked)} programming exercises with a check"


# Chapters


def imports(source):
    """(module, name or None) for each import in the source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((module, alias.name) for alias in node.names)


def wrong_imports(chapter):
    """Imports from this chapter or a later one, or through the package."""
    earlier = [f"rkhs_lit.{name}" for name in CHAPTERS[: CHAPTERS.index(chapter)]]
    for place, cell in code_cells(chapter):
        for module, name in imports(cell.source):
            what = f"{place}, imports {name or module}"
            if module == "rkhs_lit" and name:
                if "export" in cell.metadata.get("tags", []):
                    yield (
                        f"{what} from rkhs_lit: the package imports this module in "
                        "turn, so name the chapter's module instead"
                    )
                module = getattr(rkhs_lit, name).__module__
            if module.startswith((".", "rkhs_lit")) and module not in earlier:
                yield f"{what} from {module}, which is no earlier chapter"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_chapter_imports_only_earlier_chapters(chapter):
    none(wrong_imports(chapter))


# Public names


def test_the_package_offers_what_the_chapters_define():
    """Each name once, and the object itself; no more and no less."""
    defined = [name for names in PUBLIC.values() for name in names]
    assert sorted(defined) == rkhs_lit.__all__
    none(
        f"rkhs_lit.{name} is not that of rkhs_lit.{chapter}"
        for chapter, names in PUBLIC.items()
        for name in names
        if getattr(rkhs_lit, name)
        is not getattr(importlib.import_module(f"rkhs_lit.{chapter}"), name)
    )


def test_names_that_moved_to_another_chapter_are_found_where_they_were():
    """So that imports from there and results that were pickled then still work."""
    none(
        f"rkhs_lit.{home}.{name} is not rkhs_lit.{name}, or has not moved"
        for home, names in MOVED.items()
        for name in names.split()
        if name in PUBLIC[home]
        or getattr(importlib.import_module(f"rkhs_lit.{home}"), name)
        is not getattr(rkhs_lit, name)
    )


def test_the_package_has_one_version_and_says_that_it_is_typed():
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)
    assert rkhs_lit.__version__ == project["project"]["version"]
    assert project["tool"]["setuptools"]["package-data"] == {"rkhs_lit": ["py.typed"]}
    assert (ROOT / "rkhs_lit" / "py.typed").exists()


def test_help_lists_the_chapters_and_their_functions():
    chapters = re.split(r"^rkhs_lit\.", rkhs_lit.__doc__, flags=re.M)[1:]
    assert [text.partition(" ")[0] for text in chapters] == CHAPTERS
    for text, names in zip(chapters, PUBLIC.values()):
        assert re.findall(r"\w+", text.partition("\n")[2]) == names


def wrong_docstrings(chapter):
    """Docstrings that name no statement, or one that is nowhere."""
    module = importlib.import_module(f"rkhs_lit.{chapter}")
    for name in PUBLIC[chapter]:
        # Not inspect.getdoc: a class must not inherit its base class's statement.
        text = getattr(module, name).__doc__ or ""
        labels = re.findall(r":(?:prf:ref|eq):`(?:[^`<]*<)?([^`>]+)>?`", text)
        if not labels:
            yield f"the docstring of {name} names no :prf:ref:`label` or :eq:`label`"
        for label in set(labels) - KNOWN:
            yield f"{name} refers to {label!r}, which no page defines"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_public_names_have_docstrings_that_name_a_statement(chapter):
    none(wrong_docstrings(chapter))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_public_names_are_tested(chapter):
    text = (ROOT / "tests" / f"test_{chapter}.py").read_text("utf-8")
    none(
        f"tests/test_{chapter}.py does not mention {name}"
        for name in PUBLIC[chapter]
        if not re.search(rf"\b{name}\b", text)
    )


# Statements

# A definition claims nothing: what it means is tested by the statements that use it.
STATEMENT = re.compile(r"\b(?:thm|lem|prop|cor|alg)-[\w-]*\w")


@functools.cache
def cited():
    """The statements that the tests of the chapters name."""
    files = [ROOT / "tests" / f"test_{chapter}.py" for chapter in CHAPTERS]
    return {label for file in files for label in STATEMENT.findall(file.read_text("utf-8"))}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_statement_is_cited_by_a_test(name):
    stated = {
        label
        for label, place in LABELS
        if place.startswith(f"book/{name}.") and STATEMENT.fullmatch(label)
    }
    none(f"no test cites {label}" for label in sorted(stated - cited()))


def test_statements_that_tests_cite_exist():
    none(f"a test cites {label}, which no page states" for label in cited() - KNOWN)


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
    (row, f"book/concordance.csv, line {line} ({row['id']})")
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


def test_every_chapter_has_a_row_in_the_concordance():
    missing = {*CHAPTERS} - {row["chapter"] for row in concordance()}
    missing -= {"conventions", "tiles", "two_samples"}  # of their own, not of the sources
    none(f"no row for {chapter}: enter what it proves" for chapter in missing)


def test_concordance_rows_name_the_chapter_that_has_the_result():
    homes = {label: place.partition(".")[0] for label, place in LABELS}
    none(
        f"{place}: none of its labels is defined in book/{row['chapter']}.ipynb"
        for row, place in ROWS
        if f"book/{row['chapter']}" not in map(homes.get, row["label"].split())
    )


def gaps(row):
    """What a row of the concordance lacks."""
    if None in row or None in row.values():
        yield "wrong no. of fields"
        return
    if not all(row[key] for key in ("id", "where", "what")):
        yield "empty field"
    if row["chapter"] not in CHAPTERS:
        yield f"no chapter {row['chapter']!r}"
    forms = row["form"].split("+")
    for form in forms:
        if form not in NEEDS:
            yield f"unknown form {form!r}"
        elif not row[NEEDS[form]].split():
            yield f"{form} promised, no {NEEDS[form]}"
    if "figure" in forms and "fig-" not in row["label"]:
        yield "figure promised, no fig- label"


def test_concordance_rows_are_complete():
    none(f"{place}: {gap}" for row, place in ROWS for gap in gaps(row))


def dangling(row):
    """What a row of the concordance names and nobody has."""
    for label in row["label"].split():
        if label not in KNOWN:
            yield f"no page defines the label {label!r}"
    for name in row["function"].split():
        first, *rest = name.split(".")
        found = getattr(rkhs_lit, first, None) if first in rkhs_lit.__all__ else None
        for attribute in rest:
            found = getattr(found, attribute, None)
        if found is None:
            yield f"{name!r} is not a public name of rkhs_lit"
    for test in row["test"].split():
        file, _, name = test.rpartition("::")
        where = TESTS.get(file, set()) if file else set().union(*TESTS.values())
        if name not in where:
            yield f"no test is called {test!r}"


def test_concordance_rows_resolve():
    none(f"{place}: {what}" for row, place in ROWS for what in dangling(row))
