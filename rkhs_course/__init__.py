"""Coursework for the book: tasks, checks and grades.

In a notebook that ``python -m rkhs_course`` has written::

    import rkhs_course
    rkhs_course.begin("hsic", student="ada")
    rkhs_course.check("hsic_unbiased")

`begin` masks the functions that are tasks, so that nothing in this process holds
their bodies, and `check` compares the student's function with the book's, in a
process of its own.

Beside a task other functions may be withheld that would give its answer away; they
come back when its check holds.

What the mask can do: whatever imports the function from ``rkhs_lit``, also a later
module of the package, calls the student's; ``help``, ``inspect`` and tracebacks show
a function without a body. What it cannot do: hide the answer from someone who goes and
reads it. The book is public, and so is the file of the installed package.
"""

import json
import subprocess
import sys

from rkhs_course.masking import (MaskedPackage, defined, masked_sources, modules,
                                 withhold)
from rkhs_course.runner import reply

__all__ = ["begin", "check", "mask", "withheld"]
_state = {"student": "", "masked": None, "package": None, "chapter": "",
          "held": set(), "lent": set(), "blank": {}}


def mask(*functions, withheld=None):
    """Give ``rkhs_lit`` without the bodies of these functions; a function asks for
    the one of its name in the notebook. Call it before anything imports the package.
    What is withheld with them has no body either (see `masking.masked_sources`).
    """
    wanted = {*functions, *(withheld or {})}
    if _state["masked"] is not None:
        if _state["masked"] == wanted:
            return
        raise RuntimeError("other functions are masked already: restart the kernel")
    if any(name.partition(".")[0] == "rkhs_lit" for name in sys.modules):
        raise RuntimeError("rkhs_lit was imported before: restart the kernel, and run "
                           "this cell first")
    _state["package"] = MaskedPackage(masked_sources(functions, withheld))
    _state["package"].install()
    _state["masked"] = wanted


def begin(chapter, student=""):
    """Start the coursework of a chapter: mask its tasks, and choose the data of the
    checks by the student's name."""
    from rkhs_course import tasks as table

    tasks = table.of_chapter(chapter)
    if not tasks:
        raise ValueError(f"no chapter with tasks is called {chapter!r}")
    mask(*dict.fromkeys(task.place for task in tasks), withheld=table.withheld(tasks))
    _state["student"], _state["chapter"] = str(student), chapter
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
    lend(task)


def lend(task):
    """The task is done: give back what was withheld for it, unless another task still
    needs it to be."""
    from rkhs_course import tasks as table

    if _state["package"] is None:
        return
    _state["held"].add(task.name)
    missing = table.withheld(one for one in table.of_chapter(task.chapter)
                             if one.name not in _state["held"])
    for place in table.withheld([task]).keys() - missing:
        module, _, name = place.partition(":")
        _state["package"].lend(f"rkhs_lit.{module}", name)
        if module == _state["chapter"]:
            _state["lent"].add(name)
            _give(name)


def withheld(function):
    """Of a function in a student notebook: blank, until the check holds with which it
    comes back."""
    wrapper = withhold(function)
    _state["blank"][function.__qualname__] = wrapper
    _give(function.__qualname__)
    return wrapper


def _give(name):
    if name in _state["blank"] and name in _state["lent"]:
        space = vars(sys.modules["__main__"])
        _state["blank"][name].book = defined(modules()[_state["chapter"]], name, space)
