"""Coursework: tasks, student notebooks, checks and grades.

A statement is meant by its label, as everywhere: thm-hsic-unbiased.
"""

import ast
import copy
import csv
import doctest
import functools
import inspect
import io
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import course_answers
import nbformat
import numpy as np
import pytest
import rkhs_lit
from nbclient import NotebookClient
from rkhs_course import grade, handout, judge
from rkhs_course.__main__ import main
from rkhs_course.masking import find, masked_sources, modules, stub
from rkhs_course.mistakes import MISTAKES
from rkhs_course.runner import reply
from rkhs_course.tasks import BY_NAME, TASKS, draws, encode, of_chapter, withheld
from tangle import ROOT, chapters

BOOK = ROOT / "book"
HEADLINES = "moore_aronszajn", "representer", "coco", "hsic", "bayes_rule"
NAMES = handout.statements(BOOK)
task = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


def verdict(task, function, seed="ada", **options):
    """The verdict on a function in the place of the student's."""
    names = judge.namespace(task.function, function)
    asked = judge.questions(task, seed, options.get("robust", False))
    answers = [reply(q["ask"], q["data"], names) for q in asked]
    return judge.verdict(task.name, seed, answers, NAMES[task.label], **options)


def books(task):
    """The book's function."""
    return functools.reduce(getattr, task.function.split("."), rkhs_lit)


WITHHELD = {chapter: [place.partition(":")[2] for place in withheld(of_chapter(chapter))
                      if place.startswith(f"{chapter}:")] for chapter in chapters()}


def without_body(source, name):
    """The parsed source, less what a function does."""
    tree = ast.parse(source)
    for other in (name,) if isinstance(name, str) else name:
        find(tree, other).body, find(tree, other).decorator_list = [ast.Pass()], []
    return ast.dump(tree)


def short(task):
    """An independent answer."""
    return getattr(course_answers, task.function.replace(".", "_"))


# The table


def test_every_chapter_has_a_task_and_the_headlines_have_three():
    counts = {chapter: len(of_chapter(chapter)) for chapter in chapters()}
    assert set(handout.chapters()) == set(counts) and min(counts.values()) >= 1
    assert all(counts[chapter] >= 3 for chapter in HEADLINES)


@task
def test_a_task_names_a_statement_of_its_chapter_and_has_a_hint(task):
    text = (BOOK / f"{task.chapter}.ipynb").read_text("utf-8")
    assert f":label: {task.label}" in text
    assert task.points > 0 and len(task.hint) > 40 and len(MISTAKES[task.name]) >= 1
    assert books(task).__module__ == f"rkhs_lit.{task.chapter}"


def test_tags_of_the_book_and_the_table_agree():
    """Which cells are tasks is said by the tag; the table has no more and no less."""
    for chapter in chapters():
        notebook = nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4)
        cells = handout.task_cells(notebook, chapter)
        cell = notebook.cells[next(iter(cells))]
        cell.metadata["tags"].remove("task")
        with pytest.raises(handout.HandoutError, match="has no tag"):
            handout.task_cells(notebook, chapter)


def test_a_tag_without_a_task_is_found():
    notebook = nbformat.read(BOOK / "pca.ipynb", as_version=4)
    notebook.cells[-1].metadata["tags"] = ["task"]
    with pytest.raises(handout.HandoutError, match="has no task"):
        handout.task_cells(notebook, "pca")


def test_statements_are_numbered_as_in_the_built_book(tmp_path):
    """One counter for a chapter; unnumbered parts have no chapter number."""
    (tmp_path / "_toc.yml").write_text(
        "root: book/intro\nparts:\n  - caption: A\n    chapters:\n"
        "      - file: book/zero\n  - caption: B\n    numbered: 2\n    chapters:\n"
        "      - file: book/one\n      - file: book/two\n")
    (tmp_path / "book").mkdir()
    text = ("```{prf:definition} D\n:label: def-D\n\nx\n```\n\n```{prf:proof}\nx\n```\n"
            "\n````{prf:theorem} T\n:label: thm-D\n\nx\n````")
    for page in ("zero", "one", "two"):
        cell = nbformat.v4.new_markdown_cell(text.replace("D", page))
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]),
                       tmp_path / "book" / f"{page}.ipynb")
    assert handout.statements(tmp_path / "book") == {
        "def-zero": "Definition 1 (zero)", "thm-zero": "Theorem 2 (T)",
        "def-one": "Definition 1.1 (one)", "thm-one": "Theorem 1.2 (T)",
        "def-two": "Definition 2.1 (two)", "thm-two": "Theorem 2.2 (T)"}


@task
def test_students_get_data_of_their_own(task):
    def drawn(seed):
        return [json.dumps({k: encode(v) for k, v in d.items()})
                for d in draws(task, seed)]

    assert drawn("ada") == drawn("ada") != drawn("bob")
    assert len({*drawn("ada"), *drawn("bob")}) == 6


# Checks


@task
def test_the_stub_fails(task):
    source = (ROOT / "rkhs_lit" / f"{task.chapter}.py").read_text("utf-8")
    names, masked = {}, stub(source, task.function)
    exec(compile(masked, "stub", "exec"), names)
    owner, *rest = task.function.split(".")
    blank = functools.reduce(getattr, rest, names[owner])
    assert blank.__doc__ == books(task).__doc__
    signatures = {ast.unparse(find(ast.parse(text), task.function).args)
                  for text in (source, masked)}
    assert len(signatures) == 1
    found = verdict(task, blank)
    assert not found.passed and "is not written yet" in found.message


def test_who_calls_what_is_withheld_is_told_so():
    """cor-ridge-loo gives no answer to thm-ridge-fold, and is not there."""
    def lazy(k, X, y, lam, folds):
        raise NotImplementedError("write me: leave_one_out has no body yet")

    found = verdict(BY_NAME["leave_fold_out"], lazy)
    assert not found.passed
    assert "leave_fold_out calls leave_one_out, which has no body yet" in found.message


@task
def test_the_book_passes_and_refuses_bad_input(task):
    found = verdict(task, None, robust=True)
    asked = any(q["spoilt"] for q in judge.questions(task, "ada", robust=True))
    assert found.passed and found.robust is (True if asked else None)
    assert asked or not task.robust or task.name in ("inner", "hs_inner")


@task
def test_a_short_answer_passes(task):
    """A correct answer in a few lines of NumPy is enough, for any data."""
    for seed in ("ada", "bob"):
        found = verdict(task, short(task), seed)
        assert found.passed, found.message


@pytest.mark.parametrize("name, cause", [
    (name, cause) for name, causes in MISTAKES.items() for cause in causes])
def test_a_wrong_answer_is_recognised(name, cause):
    task = BY_NAME[name]
    found = verdict(task, MISTAKES[name][cause])
    assert not found.passed
    assert found.message.startswith(f"{NAMES[task.label]} fails: `{task.ask}`")
    assert f"Likely cause: {cause}." in found.message
    assert task.hint in found.message


def spoiled(task, change):
    """The book's answers, changed."""
    names, answers = judge.namespace(task.function), []
    for question in judge.questions(task, "ada"):
        a = judge.numbers(reply(question["ask"], question["data"], names))
        a = np.asarray(change(a, judge.sample_size(question["data"])))
        answers.append({"shape": list(a.shape), "values": a.ravel().tolist()})
    return judge.verdict(task.name, "ada", answers)


@pytest.mark.parametrize("name, change, words", [
    ("cross_covariance", lambda a, n: -a, "Likely cause: the sign is wrong."),
    ("cross_covariance", lambda a, n: a.T, "the matrix is transposed"),
    ("leave_fold_out", lambda a, n: a**2, "Likely cause: the square root was forgotten"),
    ("mmd2_biased", lambda a, n: a * n**2, "too large by the factor n²"),
    ("hsic_null_moments", lambda a, n: a / n, "every number is 1/n of what it should"),
    ("ridge", lambda a, n: a * n / (n - 1), "too large by the factor n/(n-1)"),
    ("ridge", lambda a, n: a[:, None], "has the shape (4, 1), not (4,)"),
    ("ridge", lambda a, n: a * np.nan, "values that are not finite"),
    ("ridge", lambda a, n: a + 1e-3, "a discrepancy of 0.001"),
])
def test_mistakes_of_every_kind_are_recognised(name, change, words):
    found = spoiled(BY_NAME[name], change)
    assert not found.passed and words in found.message, found.message


def test_rounding_is_not_a_mistake_and_a_small_error_is():
    assert spoiled(BY_NAME["ridge"], lambda a, n: a * (1 + 1e-9)).passed
    assert not spoiled(BY_NAME["ridge"], lambda a, n: a * (1 + 1e-5)).passed


# Student notebooks


ANSWERS = Path(course_answers.__file__).read_text("utf-8")
IMPORTS = "\n".join(ast.unparse(node) for node in ast.parse(ANSWERS).body
                    if isinstance(node, (ast.Import, ast.ImportFrom)))


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory):
    out = tmp_path_factory.mktemp("coursework")
    assert main(["make", "--book", str(BOOK), "--out", str(out)]) == 0
    assert (out / "rkhs.mplstyle").exists()
    with open(out / "tasks.csv", newline="", encoding="utf-8") as file:
        assert [row["task"] for row in csv.DictReader(file)] == list(BY_NAME)
    return {path.stem: nbformat.read(path, as_version=4) for path in out.glob("*.ipynb")}


def test_there_is_a_notebook_for_each_chapter(notebooks):
    assert set(notebooks) == set(chapters())


@pytest.mark.parametrize("chapter", chapters())
def test_a_student_notebook_is_its_chapter_without_answers(notebooks, chapter):
    """Prose, figures and checks stay; bodies, solutions and their cells go."""
    book = nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4)
    text = "\n\n".join(cell.source for cell in notebooks[chapter].cells)
    assert "{solution" not in text and text.count("{exercise}") == "\n\n".join(
        cell.source for cell in book.cells).count("{exercise}") > 0
    cells = {cell.id: cell for cell in notebooks[chapter].cells}
    tasks, inside = handout.task_cells(book, chapter), False
    for i, cell in enumerate(book.cells):
        if cell.cell_type == "markdown":
            if "{solution-start}" in cell.source:
                inside = True
            if "{solution-end}" in cell.source:
                inside = False
            continue
        if inside:
            assert cell.id not in cells
        elif i in tasks:
            tree = ast.parse(cells[cell.id].source)
            for one in tasks[i]:
                documented, body = find(tree, one.function).body
                assert isinstance(documented.value, ast.Constant)
                assert isinstance(body, ast.Raise) and "write me" in ast.unparse(body)
        else:
            names = [name for name in WITHHELD[chapter] if handout.defines(cell, name)]
            found = cells[cell.id]
            assert found.source == cell.source or names and without_body(
                found.source, names) == without_body(cell.source, names)
            assert found.outputs == cell.outputs


@pytest.mark.parametrize("chapter", ["coco", "hsic", "unmixing"])
def test_the_chapter_runs_on_with_short_answers(notebooks, chapter):
    """After the checks (thm-coco-spectral, thm-hsic-unbiased) the chapter's own cells run, too,
    but for those whose note says that they ask for more."""
    notebook = copy.deepcopy(notebooks[chapter])
    for one in of_chapter(chapter):
        for cell in notebook.cells:
            if handout.defines(cell, one.function) and answer(one.function) not in cell.source:
                cell.source += "\n\n\n" + IMPORTS + "\n" + answer(one.function)
    NotebookClient(notebook, kernel_name="python3", timeout=300,
                   resources={"metadata": {"path": BOOK}}).execute()
    for cell in notebook.cells:
        if cell.id.startswith("check-"):
            assert "holds" in cell.outputs[0].text


@pytest.mark.parametrize("chapter", chapters())
def test_cells_carry_what_nbgrader_needs(notebooks, chapter):
    about = [cell.metadata["nbgrader"] for cell in notebooks[chapter].cells
             if "nbgrader" in cell.metadata]
    keys = {"schema_version", "grade_id", "grade", "solution", "locked", "task",
            "cell_type"}
    assert all(keys <= set(one) and one["schema_version"] == 3 for one in about)
    ids = [one["grade_id"] for one in about]
    assert len(ids) == len(set(ids))
    assert {one["grade_id"]: one["points"] for one in about if one["grade"]} == {
        f"check-{task.name}": task.points for task in of_chapter(chapter)}


@task
def test_a_check_stands_below_what_the_books_function_calls(notebooks, task):
    """A chapter may define helpers of its function further down, as hsic does."""
    ids = [cell.id for cell in notebooks[task.chapter].cells]
    sources = [cell.source for cell in notebooks[task.chapter].cells]
    check = ids.index(f"check-{task.name}")
    # The chapters call another thing `check`.
    assert sources[check].startswith("rkhs_course.check(")
    book = ast.parse((ROOT / "rkhs_lit" / f"{task.chapter}.py").read_text("utf-8"))
    helpers = {node.name for node in book.body if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(find(book, task.function)):
        if isinstance(node, ast.Name) and node.id in helpers:
            for below in sources[check:]:
                assert f"\ndef {node.id}(" not in "\n" + below


# What stands beside a task

# Of a function in the cell of a task, or called by nothing but tasks and what is
# withheld with them: why it may keep its body.
MAY_STAY = {
    "checks what comes in, or says what is wrong": """
        conventions:real_array riesz:_contradiction riesz:_flaw riesz:_judge
        riesz:_scaled_gram riesz:_system interpolation:_judge mmd:_certain
        fourier_series:_coefficients mercer:_measure mercer:_values
        representer:_in_units quadratic:_checked quadratic:_scaled quadratic:_units
        quadratic:_answer quadratic:_semidefinite hsic:_gram_pair hsic:_estimate
        conditional_independence:_centred two_samples:PermutationTest.__post_init__
        filtering:KernelBayesFilter.__post_init__""",
    "shows or keeps a result": """
        two_samples:PermutationTest.__repr__ svm_choice:SVMCrossValidation.__repr__
        conditional_embedding:ConditionalEmbedding.__repr__
        filtering:KernelBayesFilter.__repr__ svm:_machine coco:_some_unit""",
    "is a type of data, with which answers are written": """
        rules:Conjugated._diag rules:Conjugated._gram rules:Conjugated._prepare
        kernels:Polynomial._of kernels:_OfProduct._diag kernels:_OfProduct._gram
        conditional_embedding:conditional_embedding""",
    "computes something else": """
        low_rank:random_fourier_features mean_embedding:_less mean_embedding:_moved
        mean_embedding:moved mean_embedding:squared_norm
        conditional_independence:_trace filtering:KernelBayesFilter._estimates
        filtering:KernelBayesFilter.locate coco:_range_factor coco:_pivot_factor
        moore_aronszajn:_merged representer:_dual_matrix hsic:_landmarks hsic:tile_sums
        quadratic:_cone quadratic:_farkas quadratic:_feasible quadratic:_ray
        quadratic:_nearest""",
    "is an algorithm that the chapter runs before the task": """
        quadratic:_interior_point svm:pair_steps""",
    "does nothing but call what is withheld": """
        filtering:KernelBayesFilter.filter filtering:KernelBayesFilter.step
        filtering:KernelBayesFilter.update""",
    "is the definition, in the first sentences of the chapter": "mmd:witness",
}
STAYS = {place for places in MAY_STAY.values() for place in places.split()}


def definitions(source):
    """{name: the definition} of the functions and methods in a source."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}": part for part in node.body
                      if isinstance(part, ast.FunctionDef)}
    return found


def mentions(node):
    """The names, and parts of names, in a piece of code."""
    return {part.id if isinstance(part, ast.Name) else part.attr for part in ast.walk(node)
            if isinstance(part, (ast.Name, ast.Attribute))}


@functools.cache
def callers(chapter):
    """{function of the chapter: who calls it, in the whole package}."""
    found, books = {}, modules()
    own = definitions(books[chapter])
    for stem, source in books.items():
        known = set(own) if stem == chapter else {
            name.name for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ImportFrom) for name in node.names}
        for name, node in definitions(source).items():
            for other in own:
                last = other.rpartition(".")[2]
                if last in mentions(node) and (stem, name) != (chapter, other) and (
                        other in known or "." in other):
                    found.setdefault(other, set()).add(f"{stem}:{name}")
    return found


@pytest.mark.parametrize("chapter", chapters())
def test_no_helper_of_a_task_and_nothing_in_its_cell_keeps_the_answer(chapter):
    """What stands in the same cell, or is called by nothing but masked functions, is
    withheld as well, or has a reason to stay."""
    tasks = of_chapter(chapter)
    masked = {task.place for task in tasks} | set(withheld(tasks))
    beside = {name for name, who in callers(chapter).items() if who <= masked}
    book = nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4)
    for i in handout.task_cells(book, chapter):
        beside |= set(definitions(book.cells[i].source))
    beside = {f"{chapter}:{name}" for name in beside}
    assert beside - masked - STAYS == set()


def test_nothing_stays_without_need():
    """The list of what may keep its body does not go stale, and masks nothing."""
    books = {stem: definitions(source) for stem, source in modules().items()}
    for place in STAYS | set(withheld(TASKS)):
        stem, _, name = place.partition(":")
        assert name in books[stem], place
    assert not STAYS & set(withheld(TASKS))


@pytest.mark.parametrize("chapter", chapters())
def test_no_other_function_of_the_package_answers_a_task(chapter):
    """One call of a public function, or of any function of the chapter, with the same
    arguments, is not enough."""
    run = subprocess.run([sys.executable, Path(course_answers.__file__).with_name(
        "course_siblings.py"), chapter], env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True, capture_output=True)
    assert run.returncode == 0, run.stderr
    for name, tried in json.loads(run.stdout).items():
        data = judge.plain(next(draws(BY_NAME[name], "ada")))
        task = BY_NAME[name]
        right = judge.numbers(reply(task.ask, data, judge.namespace(task.function)))
        assert [place for place, answers in tried.items() for answer in answers
                if judge.close(judge.numbers(answer), right, task.rtol)] == []


@pytest.mark.parametrize("chapter", [name for name in chapters() if WITHHELD[name]])
def test_cells_above_a_check_do_without_what_it_brings_back(notebooks, chapter):
    """Or they say that they wait for it; also where it is called by way of others."""
    found = [definitions(cell.source) for cell in notebooks[chapter].cells
             if handout.exported(cell)]
    book = {name: node for some in found for name, node in some.items()}
    undone = {task.name: task for task in of_chapter(chapter)}
    told = False
    for cell in notebooks[chapter].cells:
        if cell.id.startswith("check-"):
            undone.pop(cell.id.removeprefix("check-"))
        elif cell.cell_type == "code" and not handout.exported(cell) and not told:
            code = re.sub(r"^[%!].*$", "pass", cell.source, flags=re.M)
            missing = {place.partition(":")[2] for place, line
                       in withheld(undone.values()).items() if not line}
            todo, reached = mentions(ast.parse(code)), set()
            while todo:
                name = todo.pop()
                for other in book:
                    if other == name and other not in reached:
                        reached.add(other)
                        todo |= mentions(book[other])
            assert not reached & missing, cell.source
        told = cell.id.startswith("waits-")


LENT = '''
import rkhs_course
rkhs_course.begin("ridge")
import numpy as np
import rkhs_lit, sys
from rkhs_lit import Gaussian, RKHSFunction, leave_one_out
from rkhs_lit.ridge import *

def says(action):
    try:
        return action()
    except NotImplementedError as error:
        print(error)

x = np.linspace(-1, 1, 6)
says(lambda: leave_one_out(Gaussian(1.0), x, x, 0.1))
left_out = sys.modules["rkhs_lit.ridge"]._left_out
says(lambda: left_out(x, np.eye(6), np.ones(6), np.arange(6)))

@rkhs_course.withheld
def leave_one_out(kernel, X, y, lam):
    raise NotImplementedError("write me: leave_one_out has no body yet")

{answer}
rkhs_course.check("leave_fold_out", "Theorem 1")

@rkhs_course.withheld                                # a cell that is run again
def _left_out(y, U, c, folds, name="lams"):
    raise NotImplementedError("write me: _left_out has no body yet")

print(leave_one_out(Gaussian(1.0), [0.0, 100.0], [3.0, 5.0], 0.1),
      rkhs_lit.leave_one_out(Gaussian(1.0), [0.0, 100.0], [3.0, 5.0], 0.1))
print(*(np.allclose(f(x, np.eye(6), np.ones(6), np.arange(6)), x)
        for f in (left_out, _left_out)))
says(lambda: rkhs_lit.ridge_path(Gaussian(1.0), x, x, [0.1]))
'''


def test_what_was_withheld_comes_back_when_the_check_holds(tmp_path):
    """cor-ridge-loo: in the notebook and in the package; what another task withholds
    does not (thm-ridge-rkhs)."""
    text = LENT.replace("{answer}", answer("leave_fold_out"))
    (tmp_path / "student.py").write_text(text, encoding="utf-8")
    run = subprocess.run([sys.executable, "student.py"], cwd=tmp_path, text=True,
                         env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "2 tasks, 8 points: ridge, leave_fold_out", "write me: leave_one_out has no body yet", "write me: _left_out has no body yet",
        "Theorem 1: holds.", "[3. 5.] [3. 5.]", "True True",
        "write me: ridge_path has no body yet"]


def test_unknown_chapters_are_refused(capsys, tmp_path):
    assert main(["make", "nowhere", "--book", str(BOOK), "--out", str(tmp_path)]) == 1
    assert main(["--book", str(tmp_path), "--out", str(tmp_path)]) == 1
    assert "nowhere" in (text := capsys.readouterr().err) and "_toc.yml" in text


def answered(source, function):
    """The source of a cell with a short answer in the place of the stub."""
    node, lines = find(ast.parse(source), function), source.splitlines()
    text = inspect.getsource(getattr(course_answers, function.replace(".", "_")))
    text = text.replace(function.replace(".", "_"), function.rpartition(".")[2], 1)
    indent = " " * node.col_offset
    lines[node.lineno - 1 : node.end_lineno] = [indent + line for line in text.splitlines()]
    return "\n".join(lines)


@pytest.mark.parametrize("chapter", ["conditional_embedding", "bayes_rule"])
def test_with_short_answers_the_rest_of_the_notebook_runs(chapter, tmp_path):
    """thm-ce-estimator, thm-bayes-low-rank: tasks that are formulas carry the chapter; the
    cells of its last sections only repeat the first ones on more data."""
    cells = ["import matplotlib\nmatplotlib.use('agg')"]
    for cell in handout.student_notebook(BOOK, chapter, NAMES).cells:
        if re.match(r"(?:\([\w-]+\)=\n)?## (?:At work|With more data)", cell.source):
            break
        if cell.cell_type == "code":
            source = cell.source
            for one in of_chapter(chapter):
                if handout.defines(cell, one.function):
                    source = f"{IMPORTS}\n{answered(source, one.function)}"
            cells.append(source)
    (tmp_path / "student.py").write_text("\n\n".join(cells), encoding="utf-8")
    (tmp_path / "rkhs.mplstyle").write_bytes((BOOK / "rkhs.mplstyle").read_bytes())
    run = subprocess.run([sys.executable, "student.py"], cwd=tmp_path, text=True,
                         env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True)
    assert run.returncode == 0, run.stderr[-2000:]


# The masked package

STUDENT = '''
import inspect, sys
import rkhs_course
rkhs_course.begin("pca", student="ada")
import numpy as np
import rkhs_lit
from rkhs_lit import Gaussian, hsic_test
from rkhs_lit.pca import centre as masked

def says(action):
    try:
        action()
    except (NotImplementedError, AssertionError) as error:
        print(type(error).__name__, error)

x = np.linspace(-1, 1, 40)
k = Gaussian(0.01)                                  # a Gram matrix of full rank
for f in (masked, rkhs_lit.centre, sys.modules["rkhs_lit.hsic"].centre):
    says(lambda: f(np.eye(3)))                      # nobody has written it
    text = inspect.getsource(f) + inspect.getsource(inspect.getmodule(f))
    assert "write me: centre" in text
    assert "G - G.mean" not in inspect.getsource(f) and "H K H" in f.__doc__
says(lambda: hsic_test(k, k, x, x, n_permutations=9, rng=0))

def centre(K):
    centre.calls += 1
    return K - K.mean(axis=0)
centre.calls = 0

hsic_test(k, k, x, x, n_permutations=9, rng=0)      # a later chapter
print("called", centre.calls)
says(lambda: rkhs_course.check("centre", "Lemma 8.1 (Centred Gram matrix)"))
centre = lambda K: K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
rkhs_course.check("centre", "Lemma 8.1 (Centred Gram matrix)")
'''


def test_a_notebook_never_holds_the_answer_and_is_told_what_is_wrong(tmp_path):
    """lem-centre: the masked `centre` is the student's, also inside `hsic_test`."""
    (tmp_path / "student.py").write_text(STUDENT, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "student.py"], cwd=tmp_path, text=True,
                         env=environment, capture_output=True)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[0] == "1 task, 2 points: centre"
    assert lines[1:5] == ["NotImplementedError write me: centre has no body yet"] * 4
    assert lines[5] == "called 2"
    assert lines[6].startswith("AssertionError Lemma 8.1 (Centred Gram matrix) fails:")
    assert "only the columns were centred" in lines[6]
    assert lines[7] == "Lemma 8.1 (Centred Gram matrix): holds."


def test_the_masked_source_differs_in_the_body_only():
    source, names, _ = masked_sources(["hsic_unbiased"])["rkhs_lit.hsic"]
    book = (ROOT / "rkhs_lit" / "hsic.py").read_text("utf-8")
    assert names == ["hsic_unbiased"]
    ours, theirs = ast.parse(source), ast.parse(book)
    for tree in (ours, theirs):
        find(tree, "hsic_unbiased").body = []
    assert ast.dump(ours) == ast.dump(theirs)
    with pytest.raises(ValueError, match="no function nothing"):
        masked_sources(["nothing"])


# Grading


def notebook(*cells, **metadata):
    """The text of a submission."""
    found = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, cells)])
    found.metadata["rkhs_course"] = metadata
    return nbformat.writes(found)


def answer(function):
    return inspect.getsource(getattr(course_answers, function))


TRICKS = '''
import os, shutil, socket, subprocess, sys
breaches = []

def attempt(name, action):
    try:
        action()
    except BaseException:
        return
    breaches.append(name)

other = {other!r}
attempt("read another submission", lambda: open(other).read(1) or 1 / 0)
attempt("list the submissions", lambda: os.listdir(os.path.dirname(other))[0])
attempt("remove a submission", lambda: os.remove(other))
attempt("remove the folder", lambda: shutil.rmtree(os.path.dirname(other)))
attempt("overwrite a submission", lambda: open(other, "w").write("x"))
attempt("write elsewhere", lambda: open({elsewhere!r}, "w").write("x"))
attempt("go round by a directory", lambda: os.open(os.path.basename(other), os.O_RDONLY,
        dir_fd=os.open(os.path.dirname(other), os.O_RDONLY)))
attempt("connect", lambda: socket.create_connection(("127.0.0.1", {port}), timeout=2))
attempt("start a program", lambda: subprocess.run(["true"], check=True))
attempt("stop the grader", lambda: os.kill(os.getppid(), 9))
attempt("read the answer", lambda: "value" in open({module!r}).read() or 1 / 0)
attempt("import the mistakes", lambda: __import__("rkhs_course.mistakes"))
attempt("take much memory", lambda: np.empty(3 * 10**9, dtype=np.int8))
attempt("print without end", lambda: [print("x" * 1000) for _ in range(10**4)])
attempt("see the environment", lambda: os.environ["RKHS_SECRET"])
open("mine.txt", "w").write("allowed")
'''
CELLS = [
    "while True:\n    print('x' * 1000)",
    "while True:\n    pass",
    "raise SystemExit('so long')",
    "def broken(:",
    "%matplotlib inline\n!rm -rf /",
    "import json, numpy as np\n"
    "json.dumps = np.allclose = np.abs = lambda *a, **k: True\n"
    "import rkhs_lit, sys\nsys.modules['rkhs_lit'] = rkhs_lit.Gaussian = None",
]


@pytest.mark.parametrize("alone", [False, True], ids=["namespaces", "fence"])
def test_a_hostile_notebook_harms_nobody_and_keeps_its_points(
        tmp_path, monkeypatch, alone):
    """It prints and loops without end, exits, asks for memory, breaks the checker and
    attacks the others; the right answer in it (thm-hsic-unbiased) still counts."""
    if alone:
        monkeypatch.setattr(grade, "jailed", lambda: False)
    elif not grade.jailed():
        pytest.skip("this machine permits no namespaces")
    monkeypatch.setenv("RKHS_SECRET", "token")
    with socket.create_server(("127.0.0.1", 0)) as server:
        folder = tmp_path / "submissions"
        folder.mkdir()
        other, elsewhere = folder / "zoe.ipynb", tmp_path / "elsewhere.txt"
        other.write_text("not a notebook", encoding="utf-8")
        tricks = TRICKS.format(other=str(other), elsewhere=str(elsewhere),
                               port=server.getsockname()[1],
                               module=str(Path(rkhs_lit.__file__).parent / "hsic.py"))
        count = ("def hsic_biased(K, L):\n    return float(len(breaches))\n\n"
                 "def hsic_null_moments(K, L):\n    while True:\n        pass")
        (folder / "mallory.ipynb").write_text(notebook(
            IMPORTS, answer("hsic_unbiased"), tricks, count, *CELLS, chapter="hsic"),
            encoding="utf-8")
        rows = grade.grade([folder], names=NAMES, seconds=60, cell_seconds=2)
        server.settimeout(0.01)
        with pytest.raises(TimeoutError):
            server.accept()
    by_task = {row.task: row for row in rows if row.student == "mallory"}
    assert by_task["hsic_unbiased"].points == 4, by_task["hsic_unbiased"].message
    assert "is 0 where" in by_task["hsic_biased"].message
    assert "Theorem" in by_task["hsic_biased"].message
    assert "Timeout: took more than 2 s" in by_task["hsic_null_moments"].message
    assert rows[-1].student == "zoe" and "not a notebook" in rows[-1].message
    assert other.read_text("utf-8") == "not a notebook" and not elsewhere.exists()


def test_a_grader_without_the_book_calls_statements_as_the_notebook_does():
    """But believes nothing that does not look like the name of one."""
    task = next(t for t in TASKS if t.name == "hsic_biased")
    call = 'rkhs_course.check("hsic_biased",\n                  "{}")'
    for title, known in [("Theorem 23.4 (The V-statistic)", True), ("Lemma 7", True),
                         ("the answer is 42", False), ("Theorem 1 (a\x1b[31m)", True)]:
        cells = [{"source": "1 + 1"}, {"source": call.format(title)}]
        assert grade.said(cells, task) == (title if known else None)
    assert grade.said([{"source": "1 + 1"}], task) is None


def test_what_is_no_notebook_loses_the_points_of_the_chapter_that_is_graded():
    rows = grade.grade_text("ada", "no notebook", chapter="hsic")
    assert [row.task for row in rows] == [t.name for t in TASKS if t.chapter == "hsic"]
    assert sum(row.points for row in rows) == 0 < sum(row.out_of for row in rows)
    assert all(row.message.startswith("this is not a notebook") for row in rows)
    (row,) = grade.grade_text("ada", "no notebook")
    assert (row.task, row.points, row.out_of) == ("", 0, 0)


ALONE = """
import os, shutil, socket, subprocess, sys
attempts = [
    lambda: os.listdir({other!r})[0],
    lambda: open({elsewhere!r}, "w"),
    lambda: socket.create_connection(("127.0.0.1", {port}), timeout=2),
    lambda: subprocess.run(["umount", {other!r}], check=True, stderr=-3),
    lambda: subprocess.run(["unshare", "-rm", "umount", {other!r}], check=True,
                           stderr=-3),
    lambda: os.listdir("/proc/{parent}"),
]
breaches = 0
for i, attempt in enumerate(attempts):
    try:
        attempt()
    except Exception:
        continue
    breaches |= 1 << i
open("mine", "w").close()
sys.exit(breaches)
"""


def test_the_namespaces_hold_without_the_fence(tmp_path):
    """Against programs that are not Python, too."""
    if not grade.jailed():
        pytest.skip("this machine permits no namespaces")
    (other := tmp_path / "other").mkdir()
    (other / "secret").touch()
    (work := tmp_path / "work").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        (tmp_path / "alone.py").write_text(ALONE.format(
            other=str(other), elsewhere=str(tmp_path / "x"), parent=os.getpid(),
            port=server.getsockname()[1]), encoding="utf-8")
        environment = {**grade.environ(work), "RUNNER": str(tmp_path / "alone.py")}
        run = subprocess.run([*grade.UNSHARE, str(other)], env=environment)
    assert run.returncode == 0 and not (tmp_path / "x").exists()


FORGER = r'''
import os
line = b'{"task": "hsic_biased", "number": %d, "reply": {"shape": [], "values": [1]}}'
fds = []
for number in range(9):
    for fd in range(3, 64):
        try:
            os.write(fd, line % number + b"\nnonsense\n[]\n" + b'{"task": 3}\n')
            fds.append(fd)
        except OSError:
            pass
for worse in (b'{"task": "hsic_unbiased", "number": 1e99, "reply": {}}',
              b'{"task": "hsic_unbiased", "number": 999999999, "reply": {}}',
              b'{"task": "hsic_unbiased", "number": 0, "reply": {"shape": [],'
              b' "values": [1' + b"0" * 400 + b']}}',
              b'{"task": "hsic_null_moments", "number": 0, "reply":'
              b' {"error": "\u001b[2J gone"}}', b"[" * 9999):
    for fd in set(fds):
        os.write(fd, worse + b"\n")
os._exit(0)
'''
STUBBORN = """
import signal
while True:
    try:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        while True:
            pass
    except BaseException:
        pass
"""


def test_forged_replies_and_sudden_ends_give_no_points():
    rows = grade.grade_text("eve", notebook(FORGER, chapter="hsic"), seconds=30)
    assert sum(row.points for row in rows) == 0
    assert "is 1 where" in rows[0].message
    assert "the answer cannot be read" in rows[1].message
    assert " [2J gone" in rows[2].message and rows[2].message.isprintable()
    rows = grade.grade_text("eve", notebook("import os\nos._exit(0)", chapter="pca"))
    assert "process ended before this question" in rows[0].message


def test_a_notebook_that_cannot_be_stopped_from_within_is_stopped():
    rows = grade.grade_text("max", notebook(STUBBORN, chapter="pca"), seconds=4)
    assert [row.message for row in rows] == [
        "There is no answer: it took more than 4 s."]


@pytest.mark.parametrize("text", [
    "", "hello", "[]", "{}", '{"cells": 3}', '{"cells": [{"cell_type": "code"}]}',
    '{"cells": [{"cell_type": "code", "source": [1]}]}', "[" * 100_000,
    '{"cells": [], "metadata": {}}'])
def test_what_is_not_a_notebook_gets_a_row_and_no_points(text):
    row, = grade.grade_text("x", text)
    assert row.points == row.out_of == 0 and not row.passed and row.message


def test_a_full_submission_gets_full_points_in_every_form(tmp_path, notebooks, capsys):
    """The student notebook of a chapter with short answers in its cells; the class of
    the filter keeps its cell, with one method written."""
    found = nbformat.from_dict(notebooks["filtering"])
    method = answer("KernelBayesFilter_predict").replace("KernelBayesFilter_", "")
    lines = [f"    {line}" for line in method.splitlines()[1:]]
    for cell in found.cells:
        if cell.source.startswith("def unit_mass"):
            cell.source = answer("unit_mass")
        if "def predict" in cell.source:
            blank = next(line for line in cell.source.splitlines()
                         if "write me: KernelBayesFilter.predict" in line)
            cell.source = "import numpy as np\n" + cell.source.replace(
                blank, "\n".join(lines))
    folder = tmp_path / "ada"                      # as nbgrader has them
    folder.mkdir()
    nbformat.write(found, folder / "filtering.ipynb")
    assert main(["grade", str(tmp_path), "--book", str(BOOK), "--seed", "2027", "--csv",
                 str(tmp_path / "t.csv"), "--json", str(tmp_path / "t.json")]) == 0
    assert "ada: 6 of 6 points" in capsys.readouterr().out
    rows = json.loads((tmp_path / "t.json").read_text("utf-8"))
    assert [(row["student"], row["task"], row["points"]) for row in rows] == [
        ("ada", "unit_mass", 2), ("ada", "filter_predict", 4)]
    table = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text("utf-8"))))
    assert [row["passed"] for row in table] == ["True", "True"]
    assert "student task points out_of passed robust message".split() == list(table[0])


def test_the_books_own_cells_get_full_points(notebooks):
    """Also where a chapter defines the types that the data are made of
    (thm-moore-aronszajn); and a NaN is refused."""
    book = nbformat.read(BOOK / "moore_aronszajn.ipynb", as_version=4)
    sources = {cell.id: cell.source for cell in book.cells}
    found = nbformat.from_dict(notebooks["moore_aronszajn"])
    for cell in found.cells:
        if "write me" in cell.source:
            cell.source = sources[cell.id]
    rows = grade.grade_text("book", nbformat.writes(found))
    assert [row.points for row in rows] == [3, 2, 4], rows
    assert [row.robust for row in rows] == [None, None, True]


def test_the_table_holds_no_formula_for_a_spreadsheet():
    row = grade.Row("=1+1", "centre", 0, 2, False, None, "@SUM(A1)")
    assert grade.as_csv([row]).splitlines()[1].startswith("'=1+1,")
    assert "'@SUM" in grade.as_csv([row])


def test_the_command_says_what_it_cannot_find(capsys):
    assert main(["grade", "nowhere.ipynb"]) == 2
    assert main(["tasks"]) == 0
    seen = capsys.readouterr()
    assert "there is no nowhere.ipynb" in seen.err and "hsic_unbiased" in seen.out


# The page "Teaching from this book"


PAGE = (BOOK / "teaching.md").read_text("utf-8")


def test_the_lab_sheets_give_what_they_say():
    """All cells of the three sheets, in order."""
    blocks = re.findall(r"^( *)```pycon\n(.*?)^\1```$", PAGE, re.M | re.S)
    assert len(blocks) == 12
    names, runner = {}, doctest.DocTestRunner(verbose=False)
    for number, (_, text) in enumerate(blocks, start=1):
        parsed = doctest.DocTestParser().get_doctest(
            text, names, f"block {number}", "book/teaching.md", 0)
        found = io.StringIO()
        runner.run(parsed, out=found.write, clear_globs=False)
        names = parsed.globs
        assert not found.getvalue(), found.getvalue()


def test_the_syllabus_has_every_chapter_after_those_that_it_needs():
    rows = re.findall(r"^\| (\d+) \|(.*?)\|(.*?)\|(.*)\|$", PAGE, re.M)
    assert [int(week) for week, *_ in rows] == list(range(1, 11))
    week = {name: int(number) for number, names, *_ in rows
            for name in re.findall(r"{doc}`(\w+)`", names)}
    assert set(week) == set(chapters())
    for name in week:
        code = ast.parse((ROOT / "rkhs_lit" / f"{name}.py").read_text("utf-8"))
        for node in ast.walk(code):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("rkhs_lit."):
                assert week[node.module.partition(".")[2]] <= week[name]
    for number, _, _, tasks in rows:
        named = re.findall(r"`(\w+)`", tasks)
        assert named and all(week[BY_NAME[t].chapter] == int(number) for t in named)


def test_the_page_quotes_a_check_as_notebooks_have_it(notebooks):
    quoted = re.search(r"^rkhs_course\.check\(.*?\)$", PAGE, re.M | re.S)[0]
    assert quoted in [cell.source for cell in notebooks["hsic"].cells]


# With scikit-learn


def test_scikit_learn_takes_our_kernels_as_they_are():
    """A Kernel is a function of two samples, which is what SVC asks for."""
    from sklearn.base import clone
    from sklearn.datasets import load_iris
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

    X, y = load_iris(return_X_y=True)
    ours = SVC(kernel=rkhs_lit.Gaussian(1.0), C=2.0).fit(X[::2], y[::2])
    theirs = SVC(kernel="rbf", gamma=0.5, C=2.0).fit(X[::2], y[::2])
    np.testing.assert_allclose(ours.decision_function(X[1::2]),
                               theirs.decision_function(X[1::2]), atol=1e-6)
    assert ours.score(X[1::2], y[1::2]) > 0.9
    for machine in (NuSVC(kernel=rkhs_lit.Laplace(2.0), nu=0.2),
                    SVR(kernel=rkhs_lit.Polynomial(2)),
                    OneClassSVM(kernel=rkhs_lit.Gaussian(1.0) + rkhs_lit.Linear())):
        assert machine.fit(X, y).predict(X[:3]).shape == (3,)
    assert "Gaussian" in repr(clone(ours))           # so a grid search can vary it
    with pytest.raises(ValueError):                  # asks pair by pair
        KernelRidge(kernel=rkhs_lit.Gaussian(1.0)).fit(X, y)
    k, lam = rkhs_lit.Gaussian(1.0) + rkhs_lit.Linear(), 0.3
    theirs = KernelRidge(alpha=lam, kernel="precomputed").fit(k(X[::2]), X[::2, 0])
    np.testing.assert_allclose(rkhs_lit.ridge(k, X[::2], X[::2, 0], lam)(X[1::2]),
                               theirs.predict(k(X[1::2], X[::2])), atol=1e-8)
