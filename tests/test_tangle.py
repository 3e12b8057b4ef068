"""The tangle script: book to package, package to book, and its messages."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from tangle import TangleError, chapters, main, module_text

EXPORT = {"metadata": {"tags": ["export"]}}
SIDES = ["book/circles.ipynb", "rkhs_lit/circles.py"]
CODE = ["import math", "def area(r):\n    return math.pi * r**2", "ANSWER = 42"]


@pytest.fixture
def book(tmp_path):
    """A root with one chapter, `circles`, and one page that exports nothing."""
    (tmp_path / "book").mkdir()
    (tmp_path / "rkhs_lit").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "_toc.yml").write_text(
        "root: book/home\nparts:\n  - chapters:\n      - file: book/circles\n"
    )
    cells = [
        new_markdown_cell("# Circles\n\nAnd $\\pi$."),
        new_code_cell(CODE[0], **EXPORT),
        new_code_cell(
            "1 + 1",
            execution_count=2,
            outputs=[new_output("execute_result", {"text/plain": "2"}, execution_count=2)],
        ),
        new_markdown_cell("## The area\n\n```python\n# not a heading\n```"),
        new_code_cell(CODE[1], **EXPORT),
        new_code_cell(CODE[2], **EXPORT),
    ]
    write(tmp_path, "circles", cells)
    write(tmp_path, "home", [new_markdown_cell("# Home")])
    return tmp_path


def write(root, name, cells):
    nbformat.write(new_notebook(cells=cells), root / "book" / f"{name}.ipynb")


def edit(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_module_holds_the_exported_cells_verbatim_and_says_where_they_are(book):
    assert main([], book) == 0
    text = (book / "rkhs_lit" / "circles.py").read_text()
    assert text.startswith('"""Circles"""\n') and "book/circles.ipynb" in text
    found = [text.index(f"{head}\n{code}\n") for head, code in zip(
        ("# %% [1] Circles", "# %% [2] The area", "# %% [3] The area"), CODE
    )]
    assert found == sorted(found)
    assert "1 + 1" not in text
    compile(text, "circles.py", "exec")


def test_only_notebooks_with_exported_cells_are_chapters(book):
    assert chapters(book) == ["circles"]
    main([], book)
    assert not (book / "rkhs_lit" / "home.py").exists()


def test_check_passes_after_tangling_and_a_second_run_writes_nothing(book, capsys):
    main([], book)
    capsys.readouterr()
    assert main(["--check"], book) == 0
    assert main([], book) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("side", SIDES)
def test_one_character_changed_on_either_side_is_found_and_named(book, capsys, side):
    main([], book)
    edit(book / side, "r**2", "r**3")
    assert main(["--check"], book) == 1
    message = capsys.readouterr().err
    for part in ("circles.ipynb", "cell 5", "The area", "r**2", "r**3"):
        assert part in message


def test_a_changed_title_and_a_missing_module_are_found(book, capsys):
    assert main(["--check"], book) == 1
    assert "circles.py does not exist" in capsys.readouterr().err
    main([], book)
    edit(book / "book/circles.ipynb", "# Circles", "# Discs")
    assert main(["--check"], book) == 1
    assert "the title" in capsys.readouterr().err


def test_an_edit_in_the_module_goes_back_and_leaves_outputs_alone(book, capsys):
    main([], book)
    edit(book / "rkhs_lit/circles.py", "ANSWER = 42\n", "ANSWER = 43\n\n\n\n")
    before = nbformat.read(book / "book/circles.ipynb", as_version=4)
    assert main(["--untangle"], book) == 0
    assert "cell 6 (The area)" in capsys.readouterr().out
    after = nbformat.read(book / "book/circles.ipynb", as_version=4)
    assert after.cells[5].source == "ANSWER = 43"
    before.cells[5].source = "ANSWER = 43"
    assert before == after
    assert main(["--check"], book) == 0


@pytest.mark.parametrize("mode, wins", [([], 44), (["--untangle"], 43)])
def test_where_both_sides_changed_the_chapter_must_be_named(book, capsys, mode, wins):
    main([], book)
    edit(book / "rkhs_lit/circles.py", "ANSWER = 42", "ANSWER = 43")
    edit(book / "book/circles.ipynb", "ANSWER = 42", "ANSWER = 44")
    before = [(book / side).read_text() for side in SIDES]
    assert main(mode, book) == 1
    assert 'both edited: make tangle CHAPTERS="circles"' in capsys.readouterr().out
    assert before == [(book / side).read_text() for side in SIDES]
    assert main([*mode, "circles"], book) == 0
    assert f"ANSWER = {wins}" in module_text(book / "book/circles.ipynb")
    assert main(["--check"], book) == 0


@pytest.mark.parametrize("mode", [[], ["--untangle"]])
def test_carrying_one_chapter_does_not_undo_an_edit_of_another(book, capsys, mode):
    toc = book / "_toc.yml"
    toc.write_text(toc.read_text() + "      - file: book/discs\n")
    write(book, "discs", [new_markdown_cell("# D"), new_code_cell("x = 1", **EXPORT)])
    main([], book)
    capsys.readouterr()
    edit(book / SIDES[1 - bool(mode)], "ANSWER = 42", "ANSWER = 43")
    edit(book / ("rkhs_lit/discs.py" if mode else "book/discs.ipynb"), "x = 1", "x = 2")
    before = [(book / side).read_text() for side in SIDES]
    assert main(mode, book) == 1
    assert "was edited, and is left as it is" in capsys.readouterr().out
    assert before == [(book / side).read_text() for side in SIDES]
    assert "x = 2" in module_text(book / "book/discs.ipynb")
    assert "x = 2" in (book / "rkhs_lit/discs.py").read_text()


def test_a_name_that_is_no_chapter_is_refused(book, capsys):
    assert main(["squares"], book) == 1
    assert "no chapter is called squares" in capsys.readouterr().err


def test_a_chapter_missing_from_the_table_of_contents_is_named(book, capsys):
    write(book, "discs", [new_markdown_cell("# D"), new_code_cell("x = 1", **EXPORT)])
    assert main([], book) == 1
    assert "discs.ipynb exports cells but is not in _toc.yml" in capsys.readouterr().err


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("# %% [2] The area", "# %% [3] The area", "expected '# %% [2] ...'"),
        ("# %% [2] The area", "# %% [two] The area", "expected '# %% [2] ...'"),
        ("# %% [2] The area\n", "", "has 2 cells but|expected '# %% [2] ...'"),
        ("ANSWER = 42", "ANSWER = 42\n# %% [4] More\nx = 1", "has 4 cells but"),
        ("# %% [1]", "import os\n# %% [1]", "belongs to no cell"),
    ],
)
def test_a_module_without_the_expected_form_is_refused(book, capsys, old, new, message):
    main([], book)
    edit(book / "rkhs_lit/circles.py", old, new)
    before = (book / "book/circles.ipynb").read_text()
    assert main(["--untangle"], book) == 1
    error = capsys.readouterr().err
    assert "circles.py" in error
    assert any(part in error for part in message.split("|"))
    assert (book / "book/circles.ipynb").read_text() == before


def test_a_module_with_no_delimiters_is_refused(book, capsys):
    (book / "rkhs_lit/circles.py").write_text("x = 1\n")
    assert main(["--untangle"], book) == 1
    assert "starts a cell" in capsys.readouterr().err


def test_a_module_without_a_chapter_is_refused(book, capsys):
    (book / "rkhs_lit/squares.py").write_text("x = 1\n")
    assert main(["--check"], book) == 1
    assert "squares.py has no chapter" in capsys.readouterr().err


@pytest.mark.parametrize(
    "cells, message",
    [
        ([new_markdown_cell("# T", **EXPORT)], "cell 1 is tagged export but"),
        ([new_code_cell("x = 1", **EXPORT)], "before any title"),
        (
            [new_markdown_cell("## Not a title"), new_code_cell("x = 1", **EXPORT)],
            "before any title",
        ),
        ([new_markdown_cell("# T"), new_code_cell("\n", **EXPORT)], "empty"),
        (
            [new_markdown_cell("# T"), new_code_cell("# %% [1] no", **EXPORT)],
            "kept for the boundaries",
        ),
    ],
)
def test_a_notebook_without_the_expected_form_is_refused(book, cells, message):
    write(book, "circles", cells)
    with pytest.raises(TangleError, match=message):
        module_text(book / "book/circles.ipynb")


@pytest.mark.parametrize("text", ["", "not json", "{}", '{"cells": 3}'])
def test_a_file_that_is_no_notebook_is_refused(book, capsys, text):
    (book / "book/circles.ipynb").write_text(text)
    assert main(["--check"], book) == 1
    assert "circles.ipynb: not a valid notebook" in capsys.readouterr().err


def test_a_title_with_a_backslash_makes_a_module_without_warnings(book):
    edit(book / "book/circles.ipynb", "# Circles", "# Circles and $\\\\pi$")
    assert main([], book) == 0
    text = (book / "rkhs_lit/circles.py").read_text()
    assert text.startswith('r"""Circles and $\\pi$"""\n')
    compile(text, "circles.py", "exec")


def test_the_package_gathers_the_public_names_of_the_modules(book, capsys):
    """Imports, `__all__`, the version and the docstring, and none goes stale."""
    edit(book / "book/circles.ipynb", "ANSWER = 42", "def _half(r):\\n    return r / 2")
    assert main([], book) == 0
    path = book / "rkhs_lit/__init__.py"
    text = path.read_text()
    assert "from rkhs_lit.circles import (\n    area,\n)" in text
    assert '__version__ = "1.2.3"' in text
    assert '__all__ = [\n    "area",\n]' in text
    assert "rkhs_lit.circles -- Circles\n    area\n" in text
    assert "half" not in text
    assert main(["--check"], book) == 0
    capsys.readouterr()
    edit(book / "book/circles.ipynb", "def area", "def surface")
    assert main(["circles"], book) == 0
    assert "wrote rkhs_lit/__init__.py" in capsys.readouterr().out
    assert '"surface"' in path.read_text()
    edit(path, '    "surface",\n', "")
    assert main(["--check"], book) == 1
    assert "rkhs_lit/__init__.py" in capsys.readouterr().err


def test_a_module_with_a_slip_is_named(book, capsys):
    main([], book)
    edit(book / "book/circles.ipynb", "def area(r):", "def area(r:")
    assert main([], book) == 1
    assert "rkhs_lit/circles.py" in capsys.readouterr().err
