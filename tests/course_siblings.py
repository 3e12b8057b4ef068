"""What a student would try who does not do a task: call one other function.

    python course_siblings.py CHAPTER

In the masked package of a chapter each task is answered by one call of another function
with the same arguments, or the same Gram matrices as kernels; a part of what it returns
will do. The numbers go out as JSON, {task: {"module:function": [answers]}}.
"""

import inspect
import json
import signal
import sys
import warnings

import numpy as np
import rkhs_course
from rkhs_course.judge import plain
from rkhs_course.masking import reach
from rkhs_course.runner import reply
from rkhs_course.tasks import draws, of_chapter

SECONDS = 0.5


def functions(chapter):
    """{"module:name": function}: the public ones of the package, and all of the chapter."""
    found = {}
    for name, module in sorted(sys.modules.items()):
        stem = name.removeprefix("rkhs_lit.")
        if stem == name:
            continue
        for key, value in vars(module).items():
            if getattr(value, "__module__", None) != name or (
                    key[0] == "_" and stem != chapter):
                continue
            found[f"{stem}:{key}"] = value
            if inspect.isclass(value):
                found |= {f"{stem}:{key}.{part}": method
                          for part, method in vars(value).items()
                          if inspect.isfunction(method) and part[:2] != "__"}
    return found


def stored(args):
    """Kernels of which all square arguments are Gram matrices, and their points."""
    from rkhs_lit.coco import _Stored

    grams = [a for a in args if isinstance(a, np.ndarray) and a.ndim == 2
             and a.shape[0] == a.shape[1]]
    rest = [a for a in args if all(a is not G for G in grams)]
    return [*map(_Stored, grams), *[np.arange(len(G)) for G in grams], *rest]


def parts(value):
    """What a call returns, and its parts."""
    yield value
    if isinstance(value, (tuple, list)):
        yield from value[:3]
    else:
        for name in sorted(getattr(value, "__dict__", {})):
            yield getattr(value, name)


class Slow(Exception):
    pass


def stop(*_):
    raise Slow


def answered(call, args, options, change):
    """The parts of one call, or none."""
    try:
        return [*parts(call(*change(args), **options))]
    except (Exception, SystemExit, RecursionError):
        return []


def main(chapter):
    import rkhs_lit

    space = sys.modules["__main__"]
    signal.signal(signal.SIGALRM, stop)
    found = {}
    for task in of_chapter(chapter):
        data = plain(next(draws(task, "ada")))
        answers = found[task.name] = {}
        owner, _, last = task.function.rpartition(".")
        for place, call in functions(chapter).items():
            if place == task.place:
                continue
            for change in (list, lambda args: args[:-1], stored):
                count = 1
                number = 0
                while number < min(count, 12):
                    def student(*args, **options):
                        nonlocal count
                        some = answered(call, list(args), options, change)
                        count = len(some)
                        return some[number]

                    names = dict(vars(rkhs_lit))
                    if owner:
                        student = type(owner, (reach(rkhs_lit, owner),), {last: student})
                    names[owner or last] = student
                    setattr(space, owner or last, student)
                    try:
                        signal.setitimer(signal.ITIMER_REAL, SECONDS)
                        answer = reply(task.ask, data, names)
                    except Slow:
                        break
                    finally:
                        signal.setitimer(signal.ITIMER_REAL, 0)
                    number += 1
                    if "values" in answer:
                        answers.setdefault(place, []).append(answer)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    out, sys.stdout = sys.stdout, sys.stderr
    rkhs_course.begin(sys.argv[1])
    with np.errstate(all="ignore"):
        sys.stdout = out
        main(sys.argv[1])
