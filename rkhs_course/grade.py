"""Grades notebooks, each in a process of its own.

The process of a submission (``runner.py``) runs its cells and evaluates expressions
such as ``hsic_unbiased(K, L)``. It never holds a right answer. The numbers come back
through a pipe as JSON, and this process compares them. So a submission that changes
NumPy, the checker or anything else of its own process changes its own answers only.

What the isolation does. Everywhere: limits on time, memory, output, files and on the
reply; a directory of its own that is removed; an environment without your variables;
and a fence in Python that refuses connections, other programs, and files outside that
directory. Where Linux permits it (``unshare``): no network at all, a file system that
can only be read, and a file system without the other submissions. What it does not do:
without ``unshare`` the fence stops Python code, not a notebook that loads machine code
to get around it. Grade what you do not trust at all in a virtual machine. It does not
hide the answers either: the book is public.
"""

import csv
import functools
import io
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rkhs_course.handout import HandoutError, fingerprint, statements
from rkhs_course.judge import questions, verdict
from rkhs_course.masking import masked_sources
from rkhs_course.tasks import TASKS, of_chapter, withheld

LARGEST_FILE = 50_000_000              # bytes of a notebook
LARGEST_REPLY = 20_000_000             # bytes through the pipe
OUTPUT = 200_000                       # characters that a cell may print
MOST_QUESTIONS = 50                    # of one task
BESIDE = "tasks.csv", "timestamp.txt"  # what lies beside notebooks


@dataclass(frozen=True)
class Row:
    """One line of the table.

    `passed` and `points` are about the mathematics. `robust` says whether a NaN is
    refused, for a mark of its own if you want to give one."""

    student: str
    task: str
    points: int
    out_of: int
    passed: bool
    robust: bool | None
    message: str

    def __post_init__(self):           # nothing that a terminal would obey
        for field in ("student", "message"):
            text = "".join(c if c.isprintable() else " " for c in getattr(self, field))
            object.__setattr__(self, field, text)


class Unreadable(Exception):
    """What was submitted is not a notebook that can be graded."""


def read_submission(text):
    """(metadata, cells) of a notebook, read without trust."""
    try:
        notebook = json.loads(text)
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        found = []
        for number, cell in enumerate(cells, start=1):
            source = cell["source"]
            source = source if isinstance(source, str) else "".join(source)
            about = cell.get("metadata") or {}
            known = (about.get("rkhs_course") or {}).get("source")
            tags = about.get("tags") or []
            found.append({"number": number, "source": source, "skip": (
                known == fingerprint(source) and "export" not in tags)})
        metadata = (notebook.get("metadata") or {}).get("rkhs_course") or {}
        return dict(metadata), found
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(f"this is not a notebook ({type(error).__name__})") from None


def said(cells, task):
    """What the check of a task in the notebook calls its statement, "Theorem 23.7
    (Title)", for whoever grades without the book; or None."""
    call = re.compile(rf'rkhs_course\.check\(\s*"{task.name}",\s*'
                      r'"([A-Z][a-z]+ [\d.]+(?: \([^"\n]{1,120}\))?)"\s*\)')
    found = (call.search(cell["source"]) for cell in cells)
    return next((match[1] for match in found if match), None)


def chapter_of(metadata, cells):
    """The chapter that a submission is about, from its metadata, from its first
    cell, or from the functions that it defines."""
    if isinstance(name := metadata.get("chapter"), str) and of_chapter(name):
        return name
    text = "\n".join(cell["source"] for cell in cells)
    match = re.search(r"\bbegin\(\s*['\"](\w+)['\"]", text)
    if match and of_chapter(match[1]):
        return match[1]
    defined = set(re.findall(r"^(?:def|class) (\w+)", text, re.M))
    chapters = {t.chapter for t in TASKS if t.function.partition(".")[0] in defined}
    if len(chapters) == 1:
        return chapters.pop()
    raise Unreadable("it does not say which chapter it is about: give --chapter")


# The process of a submission

# Everything becomes read-only; the submissions are covered; the directory of this one
# is a small disc in memory. A second user namespace gives up the right to undo it.
JAIL = r"""
set -e
mount -t proc proc /proc 2>/dev/null || true
mount -t tmpfs -o size=1m none /dev/shm 2>/dev/null || true
for place in "$@"; do
  if [ -d "$place" ]; then mount -t tmpfs -o size=4k,mode=555 none "$place"
  elif [ -e "$place" ]; then mount --bind /dev/null "$place"; fi
done
for place in $(cut -d' ' -f5 /proc/self/mountinfo); do
  case $place in /proc*|/sys*|/dev*) ;;
  *) mount -o remount,bind,ro "$place" 2>/dev/null || true ;; esac
done
mount -t tmpfs -o size=64m,mode=777 none "$WORK"
cd "$WORK"
exec unshare --user -- "$PYTHON" -I "$RUNNER"
"""
UNSHARE = ["unshare", "--user", "--map-root-user", "--mount", "--net", "--pid", "--fork",
           "--kill-child", "--", "sh", "-c", JAIL, "sh"]


PROBE = """
import os, sys
open("x", "w").close()
try:
    open(os.path.join({1!r}, "y"), "w").close()
except OSError:
    sys.exit(bool(os.listdir({0!r})))
sys.exit(2)
"""


@functools.cache
def jailed():
    """Whether this machine lets us make namespaces as we need them."""
    if not shutil.which("unshare"):
        return False
    with tempfile.TemporaryDirectory() as place:
        other = Path(place, "other")
        other.mkdir()
        (other / "secret").touch()
        (work := Path(place, "work")).mkdir()
        runner = Path(place, "probe.py")
        runner.write_text(PROBE.format(str(other), str(place)), encoding="utf-8")
        environment = {**environ(work), "RUNNER": str(runner)}
        try:
            run = subprocess.run([*UNSHARE, str(other)], env=environment, timeout=20,
                                 capture_output=True)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return run.returncode == 0 and not (work / "x").exists()


def environ(work):
    """The environment of a submission: nothing of yours but the search path."""
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(work),
            "TMPDIR": str(work), "LANG": "C.UTF-8", "MPLBACKEND": "Agg",
            "MPLCONFIGDIR": str(work), "IPYTHONDIR": str(work), "WORK": str(work),
            "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1", "PYTHON": sys.executable,
            "RUNNER": str(Path(__file__).with_name("runner.py"))}


def limits(seconds, megabytes):
    """For the child, before it becomes Python."""
    def apply():
        import resource

        def at_most(kind, value):
            hard = resource.getrlimit(kind)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            try:
                resource.setrlimit(kind, (value, value))
            except (OSError, ValueError):            # not on this system
                pass

        at_most(resource.RLIMIT_AS, megabytes * 2**20)
        at_most(resource.RLIMIT_CPU, int(seconds) + 5)
        at_most(resource.RLIMIT_FSIZE, 50 * 2**20)
        at_most(resource.RLIMIT_CORE, 0)
        at_most(resource.RLIMIT_NOFILE, 256)

    return apply


def read_lines(pipe, process, seconds):
    """(lines, why it ended): what comes through the pipe, up to the limits."""
    data, deadline = b"", time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return data, f"it took more than {seconds:g} s"
        if not select.select([pipe], [], [], min(left, 1.0))[0]:
            if process.poll() is not None:
                return data, None
            continue
        part = os.read(pipe, 2**16)
        if not part:
            return data, None
        data += part
        if len(data) > LARGEST_REPLY:
            return data, "its reply was too long"


def ask(cells, tasks, seed, *, seconds, cell_seconds, megabytes, hidden=()):
    """Run a submission; what `sorted_replies` says, and why it was stopped."""
    sources = masked_sources([task.place for task in tasks], withheld(tasks))
    asked = [{**q, "number": i} for task in tasks
             for i, q in enumerate(questions(task, seed, robust=True))]
    here = Path(__file__).resolve().parent
    package = Path(sys.modules["rkhs_lit"].__file__).resolve().parent
    stems = [name.rpartition(".")[2] for name in sources]
    hidden = [*map(str, hidden), *map(str, [here / "mistakes.py", *(
        path for stem in stems for pattern in (f"{stem}.py", f"__pycache__/{stem}.*")
        for path in package.glob(pattern))])]
    reader, writer = os.pipe()
    job = {"cells": cells, "masked": sources, "questions": asked, "pipe": writer,
           "mask": (here / "masking.py").read_text(encoding="utf-8"),
           "path": [str(package.parent)], "output": OUTPUT, "seconds": cell_seconds or seconds / 4,
           "hidden": hidden}
    with (tempfile.TemporaryFile() as job_file,
          tempfile.TemporaryDirectory(prefix="rkhs-", ignore_cleanup_errors=True) as work):
        job_file.write(json.dumps(job).encode())
        job_file.seek(0)
        environment = environ(work)
        command = ([*UNSHARE, *hidden] if jailed() else
                   [sys.executable, "-I", environment["RUNNER"]])
        process = subprocess.Popen(
            command, cwd=work, env=environment, stdin=job_file,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[writer],
            start_new_session=True, preexec_fn=limits(seconds, megabytes))
        os.close(writer)
        try:
            data, end = read_lines(reader, process, seconds)
        finally:
            os.close(reader)
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
    return (*sorted_replies(data, tasks), end)


def sorted_replies(data, tasks):
    """({task: replies}, {cell: error}, whether all were asked) from the lines that
    came back; whatever does not have the expected form is passed over. The third is
    None if no line came: the process did not start."""
    replies, errors, done = {task.name: {} for task in tasks}, {}, None
    for line in data.splitlines():
        try:
            line = json.loads(line)
            if "errors" in line:
                errors = {int(k): str(v)[:300] for k, v in line["errors"].items()}
            elif "task" in line and isinstance(line["reply"], dict):
                if 0 <= (number := int(line["number"])) < MOST_QUESTIONS:
                    replies[line["task"]].setdefault(number, line["reply"])
            done = bool(done or line.get("done") is True)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError,
                RecursionError):
            continue
    return replies, errors, done


def grade_text(student, text, *, names=None, seed="", seconds=120.0, cell_seconds=None,
               megabytes=2048, hidden=(), chapter=None):
    """The rows of one submission, given as the text of a notebook. A cell and an
    answer may take a quarter of the time each, if no other limit is given."""
    import rkhs_lit  # noqa: F401  (its place is looked up in `ask`)

    names = names or {}
    try:
        metadata, cells = read_submission(text)
        chapter = chapter or chapter_of(metadata, cells)
    except Unreadable as error:
        lost = [(task.name, task.points) for task in of_chapter(chapter)] if chapter else []
        return [Row(student, name, 0, points, False, None, str(error))
                for name, points in lost or [("", 0)]]
    tasks = of_chapter(chapter)
    if not tasks:
        raise HandoutError(f"no chapter with tasks is called {chapter}")
    seed = f"{seed}/{student}"
    replies, errors, done, end = ask(cells, tasks, seed, seconds=seconds,
                                     cell_seconds=cell_seconds, megabytes=megabytes,
                                     hidden=hidden)
    rows = []
    for task in tasks:
        some = replies[task.name]
        answers = [some.get(i) for i in range(MOST_QUESTIONS if some else 0)]
        statement = names.get(task.label) or said(cells, task)
        found = verdict(task.name, seed, answers, statement, robust=True)
        message = found.message
        if not answers and not done:
            why = end or ("its process did not start (is the limit of memory too "
                          "small?)" if done is None else
                          "its process ended before this question")
            message = f"There is no answer: {why}."
        if not found.passed:
            message += broken_cells(cells, errors, task)
        rows.append(Row(student, task.name, task.points * found.passed, task.points,
                        found.passed, found.robust, message))
    return rows


def broken_cells(cells, errors, task):
    """What to say of cells that failed: of the one that defines the function, or if
    no cell defines it, of the first."""
    name = task.function.partition(".")[0]
    defining = [cell["number"] for cell in cells if re.search(
        rf"^(?:def|class) {name}\b", cell["source"], re.M)]
    if not defining:
        defining = sorted(errors)[:1]
    failed = [f" Cell {n} failed: {errors[n]}." for n in defining if n in errors]
    return "".join(failed)


def submissions(paths):
    """[(student, path)]: files as they are, and what is in folders. In a folder of
    folders, one for each student, as nbgrader has them, a student is the folder."""
    for path in map(Path, paths):
        if path.is_dir():
            for file in sorted(p for p in path.rglob("*") if p.is_file()):
                parts = file.relative_to(path).parts
                if any(part.startswith(".") for part in parts) or (
                        file.suffix == ".mplstyle" or file.name in BESIDE):
                    continue
                yield (parts[0] if len(parts) > 1 else file.stem), file
        else:
            yield path.stem, path


def private(paths):
    """What a submission must not see: the folders of the submissions, or the files
    where a folder holds what Python needs as well."""
    needed = [Path(p).resolve() for p in (sys.prefix, sys.base_prefix, __file__,
                                          tempfile.gettempdir(), *sys.path) if p]
    for path in map(Path, paths):
        folder = (path if path.is_dir() else path.parent).resolve()
        if not any(place.is_relative_to(folder) for place in needed):
            yield str(folder)
        else:
            yield from (str(file.resolve()) for _, file in submissions([path]))


def grade(paths, *, names=None, seed="", progress=None, hidden=(), **options):
    """The rows of all submissions. All files are read before the first one runs."""
    texts = []
    for student, path in submissions(paths):
        try:
            if path.stat().st_size > LARGEST_FILE:
                raise OSError("the file is too large")
            texts.append((student, path.read_bytes().decode("utf-8", "replace"), None))
        except OSError as error:
            texts.append((student, "", f"it cannot be read: {error}"))
    hidden = [*private(paths), *hidden]
    rows = []
    for student, text, problem in texts:
        if progress:
            progress(student)
        if problem:
            rows.append(Row(student, "", 0, 0, False, None, problem))
            continue
        rows += grade_text(student, text, names=names, seed=seed, hidden=hidden,
                           **options)
    return rows


# Tables


def as_text(rows):
    """The table, with messages folded to the width of a page."""
    import textwrap

    lines = []
    for student in dict.fromkeys(row.student for row in rows):
        own = [row for row in rows if row.student == student]
        total = sum(r.points for r in own), sum(r.out_of for r in own)
        lines.append(f"{student}: {total[0]} of {total[1]} points")
        for row in own:
            mark = "passed" if row.passed else "failed"
            robust = ", refuses NaN" if row.robust else ""
            head = f"  {row.task or '-':24} {row.points} of {row.out_of}  {mark}{robust}"
            lines.append(head)
            if not row.passed:
                lines += textwrap.wrap(row.message, 88, initial_indent="      ",
                                       subsequent_indent="      ")
    return "\n".join(lines)


FIELDS = list(Row.__dataclass_fields__)


def as_csv(rows):
    out = io.StringIO()
    table = csv.DictWriter(out, FIELDS, lineterminator="\n")
    table.writeheader()
    for row in rows:
        cells = asdict(row)
        for field in ("student", "message"):     # no formula for a spreadsheet
            if cells[field][:1] in tuple("=+-@\t\r"):
                cells[field] = "'" + cells[field]
        table.writerow(cells)
    return out.getvalue()


def as_json(rows):
    return json.dumps([asdict(row) for row in rows], ensure_ascii=False, indent=1) + "\n"


def command(options, book):
    """``python -m rkhs_course grade``"""
    try:
        names = statements(book)
    except HandoutError:
        names = {}
    missing = [path for path in options.paths if not Path(path).exists()]
    if missing or (options.chapter and not of_chapter(options.chapter)):
        print(f"there is no {missing[0]}" if missing else
              f"no chapter with tasks is called {options.chapter}", file=sys.stderr)
        return 2
    if not jailed():
        print("Without namespaces (unshare) on this machine: submissions run behind a "
              "fence in Python only.", file=sys.stderr)
    rows = grade(options.paths, names=names, seed=options.seed, chapter=options.chapter,
                 seconds=options.seconds, megabytes=options.megabytes,
                 hidden=[str(book.resolve())] if book.is_dir() else [],
                 progress=lambda who: print(f"{who} ...", file=sys.stderr))
    if not options.quiet:
        print(as_text(rows))
    for path, form in ((options.csv, as_csv), (options.json, as_json)):
        if path:
            Path(path).write_text(form(rows), encoding="utf-8")
    return 0
