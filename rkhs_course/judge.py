"""Compares answers with the book's, and says what may have gone wrong.

A submission never runs here: what is judged are plain numbers that came out of
another process. ``python -m rkhs_course.judge`` reads answers as JSON from standard
input, so that a notebook can ask without loading the right answers itself.
"""

import json
import re
import sys
import warnings
from dataclasses import dataclass

import numpy as np

from rkhs_course.runner import reply
from rkhs_course.tasks import BY_NAME, draws, encode


@dataclass(frozen=True)
class Verdict:
    """What the check of one task has found.

    Attributes
    ----------
    task : str
    passed : bool
    message : str
        One paragraph.
    robust : bool or None
        Whether a NaN in any array is refused with a ValueError; None if that was not
        asked, or if no argument is an array.
    """

    task: str
    passed: bool
    message: str
    robust: bool | None = None


def plain(data):
    """Data as they are sent: through JSON, so that all see the same numbers."""
    return json.loads(json.dumps({name: encode(v) for name, v in data.items()}))


def questions(task, seed, robust=False):
    """The questions of a task for one student, for `runner.reply`: those about its
    mathematics, and, if wanted, those with a NaN in an array."""
    some = [plain(data) for data in draws(task, seed)]
    for data in some:
        yield {"task": task.name, "ask": task.ask, "data": data, "spoilt": False}
    for name in spoilt_names(some[0]) if robust and task.robust else ():
        bad = json.loads(json.dumps(some[0]))
        bad[name]["array"][0] = float("nan")
        yield {"task": task.name, "ask": task.ask, "data": bad, "spoilt": True}


def spoilt_names(data):
    return [n for n, v in data.items() if isinstance(v, dict) and "array" in v]


def namespace(function, replacement=None):
    """The names of ``rkhs_lit``, with one function or method replaced."""
    import rkhs_lit

    names = dict(vars(rkhs_lit))
    if replacement is not None:
        owner, _, last = function.rpartition(".")
        if owner:
            replacement = type(owner, (names[owner],), {last: replacement})
            last = owner
        names[last] = replacement
    return names


def numbers(answer):
    """The array in a reply, or None."""
    if not isinstance(answer, dict) or "values" not in answer:
        return None
    try:
        return np.array(answer["values"], dtype=float).reshape(answer["shape"])
    except (TypeError, ValueError, OverflowError):
        return None


def close(a, b, rtol):
    """Whether two arrays agree, relative to the largest number of b."""
    if a is None or b is None or a.shape != b.shape:
        return False
    with np.errstate(all="ignore"):
        return bool(np.all(np.abs(a - b) <= rtol * max(np.abs(b).max(), 1e-300)))


def general_causes(n):
    """Mistakes that need no function: (cause, what it makes of the right answer)."""
    yield "the sign is wrong", lambda a: -a
    yield "the matrix is transposed", lambda a: a.T if a.ndim == 2 else a + np.nan
    yield "the square root was forgotten", lambda a: a**2
    yield "a square root too many was taken", lambda a: np.sqrt(a)
    factors = {"n": n, "n²": n**2, "1/n": 1 / n, "1/n²": 1 / n**2, "2": 2, "1/2": 0.5,
               "n/(n-1)": n / (n - 1), "(n-1)/n": (n - 1) / n,
               "(n/(n-1))²": (n / (n - 1)) ** 2, "n-1": n - 1, "1/(n-1)": 1 / (n - 1)}
    for name, c in factors.items():
        yield (f"every number is too large by the factor {name}" if c > 1 else
               f"every number is {name} of what it should be"), lambda a, c=c: c * a


def sample_size(data):
    """n: the length of the first array, also inside a function or an operator."""
    for value in data.values():
        if isinstance(value, dict) and "shape" in value:
            return max(value["shape"][0] if value["shape"] else 1, 2)
    for value in data.values():
        for part in value["args"] if isinstance(value, dict) and "args" in value else ():
            if isinstance(part, dict) and "shape" in part:
                return max(part["shape"][0], 2)
    return 2


def likely_cause(task, asked, got, right):
    """The known mistake that makes these numbers on all data sets, or None."""
    from rkhs_course.mistakes import MISTAKES

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for cause, wrong in MISTAKES[task.name].items():
            names = namespace(task.function, wrong)
            values = [numbers(reply(task.ask, data, names)) for data in asked]
            if all(close(g, v, 10 * task.rtol) for g, v in zip(got, values)):
                return cause
        sizes = map(sample_size, asked)
        for several in zip(*(general_causes(n) for n in sizes)):
            values = [change(a) for (_, change), a in zip(several, right)]
            if all(close(g, v, 10 * task.rtol) for g, v in zip(got, values)):
                return several[0][0]
    return None




def discrepancy(task, got, right):
    """Which number is most in error, and by how much, in words."""
    if got.shape != right.shape:
        turned = got.shape == right.shape[::-1] and right.ndim == 2
        return (f"`{task.ask}` has the shape {got.shape}, not {right.shape}"
                + (": the matrix is transposed" if turned else ""))
    if not np.isfinite(got).all():
        return f"`{task.ask}` has values that are not finite"
    error = np.abs(got - right)
    i = np.unravel_index(error.argmax(), error.shape)
    place = f", at the index {tuple(map(int, i))}," if right.ndim else ""
    share = 100 * error[i] / max(np.abs(right).max(), 1e-300)
    share = f"{share:.2g}" if share < 10 else f"{share:.0f}"
    return (f"`{task.ask}`{place} is {got[i]:.6g} where {right[i]:.6g} is right, a "
            f"discrepancy of {error[i]:.2g} ({share} % of the largest value)")


def verdict(name, seed, answers, statement=None, robust=False):
    """The verdict on the replies to `questions(...)`, in their order."""
    task = BY_NAME[name]
    statement = statement or task.label
    asked = list(questions(task, seed, robust))
    answers = [*answers, *[{"error": "there was no answer"}] * len(asked)][: len(asked)]
    firm = [a for a, q in zip(answers, asked) if q["spoilt"]]
    refused = all(isinstance(a, dict) and a.get("kind") == "ValueError" for a in firm)
    robust = bool(firm)
    asked = [q["data"] for q in asked if not q["spoilt"]]
    answers = answers[: len(asked)]
    got = [numbers(answer) for answer in answers]
    names = namespace(task.function)
    right = [numbers(reply(task.ask, data, names)) for data in asked]
    if any(a is None for a in right):
        raise RuntimeError(f"the book's own {task.function} fails on {task.name}")
    failed = [i for i, a in enumerate(right) if not close(got[i], a, task.rtol)]
    if not failed:
        return Verdict(name, True, f"{statement}: holds.", refused if robust else None)
    first = failed[0]
    parts = [f"{statement} fails:"]
    if got[first] is None:
        error = answers[first].get("error") if isinstance(answers[first], dict) else None
        error = str(error or "the answer cannot be read")[:300]
        if blank := re.search(r"write me: (\S+) has no body", error):
            parts = [f"{statement}: {task.function} "
                     + ("is not written yet." if blank[1] == task.function else
                        f"calls {blank[1]}, which has no body yet either.")]
        else:
            parts.append(f"`{task.ask}` gives no numbers: {error}.")
    else:
        parts.append(discrepancy(task, got[first], right[first]) + ".")
        if cause := likely_cause(task, asked, got, right):
            parts.append(f"Likely cause: {cause}.")
        elif len(failed) < len(right):
            parts.append(f"It holds on {len(right) - len(failed)} of {len(right)} "
                         "data sets.")
    parts.append(f"Hint: {task.hint}")
    return Verdict(name, False, " ".join(parts), False if robust else None)


def main():
    job = json.load(sys.stdin)
    found = verdict(job["task"], job["seed"], job["answers"], job.get("statement"))
    json.dump({"passed": found.passed, "message": found.message}, sys.stdout)


if __name__ == "__main__":
    main()
