"""Coursework for the book: tasks, checks and grades.

In a notebook that ``python -m rkhs_course`` has written::

    import rkhs_course
    rkhs_course.begin("hsic", student="ada")
    rkhs_course.check("hsic_unbiased")

`begin` masks the functions that are tasks, so that nothing in this process holds
their bodies, and `check` compares the student's function with the book's, in a
process of its own.

What the mask can do: whatever imports the function from ``rkhs_lit``, also a later
module of the package, calls the student's; ``help``, ``inspect`` and tracebacks show
a function without a body. What it cannot do: hide the answer from someone who goes and
reads it. The book is public, and so is the file of the installed package.
"""

import json
import subprocess
import sys

from rkhs_course.masking import MaskedPackage, masked_sources
from rkhs_course.runner import reply

__all__ = ["begin", "check", "mask"]
_state = {"student": "", "masked": None}


def mask(*functions):
    """Give ``rkhs_lit`` without the bodies of these functions; a function asks for
    the one of its name in the notebook. Call it before anything imports the package.
    """
    if _state["masked"] is not None:
        if _state["masked"] == set(functions):
            return
        raise RuntimeError("other functions are masked already: restart the kernel")
    if any(name.partition(".")[0] == "rkhs_lit" for name in sys.modules):
        raise RuntimeError("rkhs_lit was imported before: restart the kernel, and run "
                           "this cell first")
    MaskedPackage(masked_sources(functions)).install()
    _state["masked"] = set(functions)


def begin(chapter, student=""):
    """Start the coursework of a chapter: mask its tasks, and choose the data of the
    checks by the student's name."""
    from rkhs_course.tasks import of_chapter

    tasks = of_chapter(chapter)
    if not tasks:
        raise ValueError(f"no chapter with tasks is called {chapter!r}")
    mask(*dict.fromkeys(task.function for task in tasks))
    _state["student"] = str(student)
    total, many = sum(task.points for task in tasks), "s" * (len(tasks) > 1)
    print(f"{len(tasks)} task{many}, {total} points: "
          + ", ".join(task.name for task in tasks))


def check(name, statement=None):
    """Compare the function in the notebook with the book's, on data of your own.

    Prints that the statement holds, or raises an AssertionError that says which
    identity fails, by how much, and what may have gone wrong."""
    from rkhs_course.judge import questions
    from rkhs_course.tasks import BY_NAME

    if name not in BY_NAME:
        raise ValueError(f"no task is called {name!r}")
    task, seed = BY_NAME[name], _state["student"]
    namespace = vars(sys.modules["__main__"])
    answers = [reply(q["ask"], q["data"], namespace) for q in questions(task, seed)]
    job = {"task": name, "seed": seed, "answers": answers, "statement": statement}
    run = subprocess.run([sys.executable, "-m", "rkhs_course.judge"], text=True,
                         input=json.dumps(job), capture_output=True)
    if run.returncode:
        raise RuntimeError(f"the check could not be made:\n{run.stderr[-2000:]}")
    found = json.loads(run.stdout)
    if not found["passed"]:
        raise AssertionError(found["message"])
    print(found["message"])
