"""Student notebooks from the chapters of the book.

Nothing is written twice: a student notebook is its chapter without the bodies of the
functions that are tasks, without solutions and the cells that run them, and with a
check below each task.
"""

import ast
import csv
import hashlib
import re
import shutil
from pathlib import Path

import nbformat

from rkhs_course.masking import find, stub
from rkhs_course.tasks import TASKS, of_chapter, withheld

TAG = "task"
MORE = "more"                          # cells that ask for more than a task does


class HandoutError(Exception):
    """The book does not have the expected form."""


def pages(book):
    """[(page, its number or None)] in the order of ``_toc.yml``."""
    toc = Path(book).parent / "_toc.yml"
    if not toc.exists():
        raise HandoutError(f"there is no {toc}: name the folder of the chapters with "
                           "--book")
    found, number, numbered = [], 0, False
    for line in toc.read_text(encoding="utf-8").splitlines():
        if re.match(r" *- caption:", line):
            numbered = False
        elif re.match(r" *numbered:", line):
            numbered = True
        elif match := re.match(r" *- file: *\S*?([^/\s]+)\s*$", line):
            number += numbered
            found.append((match[1], number if numbered else None))
    return found


STATEMENT = re.compile(r"^(`{3,}|:{3,})\{prf:(\w+)\} *(.*?)\n((?::.*\n)*)", re.M)


def statements(book):
    """{label: "Theorem 15.4 (Title)"} for the numbered statements of all chapters.

    All statements share one counter, which starts again in each chapter, as in the
    built book (`prf_realtyp_to_countertyp` in ``_config.yml``)."""
    found = {}
    for page, number in pages(book):
        path = Path(book) / f"{page}.ipynb"
        if not path.exists():
            continue
        count = 0
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type != "markdown":
                continue
            for _, kind, title, options in STATEMENT.findall(cell.source):
                if kind == "proof" or ":nonumber:" in options:
                    continue
                count += 1
                label = re.search(r":label: *(\S+)", options)
                if label:
                    chapter = "" if number is None else f"{number}."
                    name = f"{kind.title()} {chapter}{count}"
                    found[label[1]] = f"{name} ({title})" if title else name
    return found


def without_solutions(cells):
    """The cells, less solutions and the code cells that belong to them."""
    inside = False
    for cell in cells:
        if cell.cell_type != "markdown":
            if not inside:
                yield cell
            continue
        text, kept = cell.source, ""
        while text:
            if inside:
                end = re.search(r"^(`{3,})\{solution-end\}.*?^\1[^\S\n]*$\n?", text,
                                re.M | re.S)
                if not end:
                    break
                text, inside = text[end.end():], False
                continue
            start = re.search(r"^(`{3,})\{solution(-start)?\}.*?^\1[^\S\n]*$\n?", text,
                              re.M | re.S)
            if not start:
                kept += text
                break
            kept, inside = kept + text[: start.start()], bool(start[2])
            text = text[start.end():]
        if kept.strip():
            cell.source = kept.strip("\n")
            yield cell


def exported(cell):
    return cell.cell_type == "code" and "export" in cell.metadata.get("tags", [])


def defines(cell, function):
    return exported(cell) and find(ast.parse(cell.source), function) is not None


def task_cells(notebook, chapter):
    """{index of a cell: its tasks}; cells are marked by the tag ``task``."""
    found = {}
    for task in of_chapter(chapter):
        here = [i for i, cell in enumerate(notebook.cells)
                if defines(cell, task.function)]
        if len(here) != 1:
            raise HandoutError(f"{chapter}: {task.function} is defined in {len(here)} "
                               "exported cells, not in one")
        found.setdefault(here[0], []).append(task)
    tagged = {i for i, cell in enumerate(notebook.cells)
              if TAG in cell.metadata.get("tags", [])}
    for i in tagged ^ set(found):
        what = ("is tagged task but has no task in rkhs_course/tasks.py"
                if i in tagged else f"defines {found[i][0].function}, which is a task, "
                "but has no tag: run python -m rkhs_course mark")
        raise HandoutError(f"{chapter}: cell {i + 1} {what}")
    return found


def needed(notebook, start, function):
    """The index of the last exported cell that defines something on which the
    book's own function depends: from there on it can be called."""
    where, uses = {}, {}
    for i, cell in enumerate(notebook.cells):
        if exported(cell):
            for node in ast.parse(cell.source).body:
                names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                targets = [node.name] if hasattr(node, "name") else [
                    t.id for target in getattr(node, "targets", [])
                    for t in ast.walk(target) if isinstance(t, ast.Name)]
                for name in targets:
                    where[name], uses[name] = i, names
    reached, todo = set(), [function.partition(".")[0]]
    while todo:
        name = todo.pop()
        if name in where and name not in reached:
            reached.add(name)
            todo += uses[name]
    return max([start, *(where[name] for name in reached)])


def fingerprint(source):
    return hashlib.sha256(source.encode()).hexdigest()[:12]


def nbgrader(name, points=None):
    """Metadata of a cell for nbgrader: a solution, or a test with points."""
    test = points is not None
    known = dict(schema_version=3, grade_id=name, grade=test, solution=not test,
                 locked=test, task=False, cell_type="code")
    return {"nbgrader": {**known, **({"points": points} if test else {})}}


def task_text(tasks, names):
    """The markdown above a task."""
    parts = []
    for task in tasks:
        about = f" {task.scope}" if task.scope else ""
        parts.append(
            f"**Task `{task.name}`** ({task.points} points). Write the body of "
            f"`{task.function}`, so that {names[task.label]} holds.{about}\n\n"
            f"<details><summary>Hint</summary>\n\n{task.hint}\n\n</details>")
    return "\n\n".join(parts)


OPENING = """\
**Coursework.** This is the chapter with {count} of its functions left for you to
write: {functions}. Run the cells from the top. A cell that says *Task* tells you what
to do, the cell `rkhs_course.check(...)` below it compares your function with the book's on random
data, and the chapter's own checks try it once more. Put your name or number into the
next cell: it decides which data you get.

Points are for the mathematics: a few lines of NumPy can earn them. Some of the
chapter's own cells ask for more than the task does (singular Gram matrices, points
that are no vectors, every attribute of a result). Such a cell may fail with a short
answer, and that costs no points. It is an invitation to read the documentation of the
function again.

What would give an answer away has no body either: it comes back by itself as soon as the
check holds. Cells in which the chapter computes the same numbers a second time, in another
way, stay where they are. They belong to the text, and you may read them."""

ASKS_MORE = """\
*The next cell asks for more than the task does. With a short answer it may fail, which
costs no points.*"""

WAITS = """\
*The next cell needs {names}, which comes back when the check of {tasks} holds. Run it
again then.*"""

# `check` and other short names belong to the chapters.
BEGIN = """\
import rkhs_course

rkhs_course.begin("{chapter}", student="")"""


def hide(notebook, chapter):
    """Take the bodies of what is withheld with the tasks of a chapter; {name: the tasks
    with which it comes back}."""
    tasks, own, found = of_chapter(chapter), f"{chapter}:", {}
    for place, instead in withheld(tasks).items():
        if not place.startswith(own):
            continue
        name = place.removeprefix(own)
        waits = [task for task in tasks if place in withheld([task])]
        if not instead:
            found[name.rpartition(".")[2]] = waits
        why = " and ".join(f"`{task.name}`" for task in waits)
        for cell in notebook.cells:
            if defines(cell, name):
                cell.source = marked(stub(cell.source, name, f"Comes with {why}.",
                                          instead), name)
    return found


def marked(source, name):
    """The source with a decorator, so that the check can give the function back."""
    node, lines = find(ast.parse(source), name), source.splitlines()
    top = min([node.lineno, *(part.lineno for part in node.decorator_list)])
    lines.insert(top - 1, " " * node.col_offset + "@rkhs_course.withheld")
    return "\n".join(lines)


def waits(cell, hidden, undone):
    """What to say above a cell of the chapter that uses what is withheld, or None."""
    if cell.cell_type != "code" or exported(cell):
        return None
    names = [name for name, tasks in hidden.items()
             if re.search(rf"\b{name}\(", cell.source) and set(tasks) & undone]
    tasks = dict.fromkeys(task.name for name in names for task in hidden[name])
    return WAITS.format(names=", ".join(f"`{name}`" for name in names),
                        tasks=" and ".join(f"`{task}`" for task in tasks)
                        ) if names else None


def student_notebook(book, chapter, names):
    """The student notebook of a chapter."""
    notebook = nbformat.read(Path(book) / f"{chapter}.ipynb", as_version=4)
    tasks = task_cells(notebook, chapter)
    ends = {}                          # index -> the tasks checked below that cell
    for i, some in tasks.items():
        end = max(needed(notebook, i, task.function) for task in some)
        ends.setdefault(end, []).extend(some)
    before, after = {}, {}             # by the ids of cells
    for i, some in tasks.items():
        cell = notebook.cells[i]
        before[cell.id] = some
        for function in dict.fromkeys(task.function for task in some):
            cell.source = stub(cell.source, function, "Write the body here.")
    hidden, undone = hide(notebook, chapter), set(of_chapter(chapter))
    for i, some in ends.items():
        after[notebook.cells[i].id] = some
    cells = []
    for cell in without_solutions(notebook.cells):
        if some := before.get(cell.id):
            text = task_text(some, names)
            cells.append(nbformat.v4.new_markdown_cell(text, id=f"about-{some[0].name}"[:64]))
            cell.metadata.update(nbgrader(some[0].name))
        if MORE in cell.metadata.get("tags", []):
            cells.append(nbformat.v4.new_markdown_cell(ASKS_MORE, id=f"more-{cell.id}"[:64]))
            cell.metadata["tags"].append("raises-exception")   # Run All goes on
        if text := waits(cell, hidden, undone):
            cells.append(nbformat.v4.new_markdown_cell(text, id=f"waits-{cell.id}"[:64]))
            cell.metadata.setdefault("tags", []).append("raises-exception")
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.metadata["rkhs_course"] = {"source": fingerprint(cell.source)}
        cells.append(cell)
        for task in after.get(cell.id, ()):
            undone.discard(task)
            source = (f'rkhs_course.check("{task.name}",\n'
                      f'                  "{names[task.label]}")')
            check = nbformat.v4.new_code_cell(source, id=f"check-{task.name}"[:64])
            check.metadata.update(nbgrader(f"check-{task.name}", task.points))
            check.metadata["rkhs_course"] = {"source": fingerprint(source)}
            cells.append(check)
    functions = list(dict.fromkeys(task.function for task in of_chapter(chapter)))
    listed = ", ".join(f"`{name}`" for name in functions)
    title = next(i for i, cell in enumerate(cells) if cell.source.startswith("# "))
    begin = nbformat.v4.new_code_cell(BEGIN.format(chapter=chapter), id="begin")
    text = OPENING.format(count=len(functions), functions=listed)
    cells[title + 1 : title + 1] = [
        nbformat.v4.new_markdown_cell(text, id="coursework"), begin]
    notebook.cells = cells
    notebook.metadata["rkhs_course"] = {
        "chapter": chapter, "tasks": [task.name for task in of_chapter(chapter)]}
    nbformat.validate(notebook)
    return notebook


def chapters():
    """The chapters that have tasks."""
    return list(dict.fromkeys(task.chapter for task in TASKS))


def write(book, out, wanted=()):
    """Write the student notebooks; the paths."""
    book, out = Path(book), Path(out)
    if unknown := sorted(set(wanted) - set(chapters())):
        raise HandoutError(f"no chapter with tasks is called {', '.join(unknown)}")
    names = statements(book)
    out.mkdir(parents=True, exist_ok=True)
    for style in book.glob("*.mplstyle"):
        shutil.copy(style, out)
    paths = []
    for chapter in chapters():
        if wanted and chapter not in wanted:
            continue
        path = out / f"{chapter}.ipynb"
        nbformat.write(student_notebook(book, chapter, names), path)
        paths.append(path)
    with open(out / "tasks.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["task", "chapter", "function", "points", "statement"])
        for task in TASKS:
            rows.writerow([task.name, task.chapter, task.function, task.points,
                           names[task.label]])
    return paths


def mark(book):
    """Put the tag ``task`` on the cells that the table names, and on no other; the
    chapters that changed."""
    changed = []
    for path in sorted(Path(book).glob("*.ipynb")):
        notebook, edited = nbformat.read(path, as_version=4), False
        functions = [task.function for task in of_chapter(path.stem)]
        for cell in notebook.cells:
            tags = list(cell.metadata.get("tags", []))
            wanted = any(defines(cell, function) for function in functions)
            if wanted != (TAG in tags):
                cell.metadata["tags"] = ([*tags, TAG] if wanted else
                                         [tag for tag in tags if tag != TAG])
                edited = True
        if edited:
            nbformat.write(notebook, path)
            changed.append(path.stem)
    return changed
