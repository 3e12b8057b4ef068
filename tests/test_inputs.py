"""Bad input: every public callable, every argument, every bad value of its kind.

The outcome is an error whose text names the argument, or, for a value that
may be right, a finite result. Callables and arguments are found by looking at
the package; `calls` has a good call of each, in which one argument is spoilt.
"""

import dataclasses
import inspect
import re
import warnings
from fractions import Fraction

import calls
import numpy as np
import pytest
import rkhs_lit
from rkhs_lit import Gaussian, PrecisionWarning, RKHSFunction, Sigmoid
from scipy.sparse import csr_array

# Bad values: {label: what it makes of the good value}. A question mark says
# that a result is right too, if it is finite and nothing else is said.


def spoilt(entry):
    """Puts the entry first in an array or list of the good value's shape."""

    def spoil(good):
        values = np.array(good, dtype=object)
        values.flat[0] = entry
        number = isinstance(entry, float)
        return values.astype(float) if number else values.tolist()

    return spoil


def always(value):
    return lambda good: value


def masked(good):
    values = np.ma.array(good, dtype=float, mask=False)
    values.mask.flat[0] = True
    return values


HUGE = 10**400
ODD = {
    "None": always(None),
    "object": always(object()),
    "text": always("abc"),
    "dict": always({}),
}
ENTRIES = {
    "nan": spoilt(np.nan),
    "inf": spoilt(np.inf),
    "-inf": spoilt(-np.inf),
    "huge": spoilt(HUGE),
    "None inside": spoilt(None),
    "text inside": spoilt("abc"),
    "list inside": spoilt([1.0, 2.0]),
    "complex": lambda good: np.array(good) + 1j,
    "texts": lambda good: np.array(good).astype(str),
    "masked": masked,
    "sparse": lambda good: csr_array(np.atleast_2d(good)),
    "empty": always([]),
    "no rows": lambda good: np.array(good)[:0],
}
NUMBER = {
    "nan": always(np.nan),
    "inf": always(np.inf),
    "-inf": always(-np.inf),
    "huge": always(HUGE),
    "complex": always(1j),
    "list": always([1.0, 2.0]),
    "array": always(np.ones(2)),
    "empty": always([]),
    "masked": always(np.ma.masked),
    **ODD,
}
ARRAY = {**ENTRIES, **ODD, "scalar": always(0.5)}
ROWS = {
    "cube": lambda good: np.stack([good, good], axis=-1)[..., None],
    "one?": lambda good: good[:1],
    "point?": lambda good: good[0],
    "short?": lambda good: good[:-1],
    "wide?": lambda good: np.column_stack([good, good]),
}
TABLE = {"vector": lambda good: np.array(good)[0], "cube": lambda good: [good]}
FUNCTION = {
    **ODD,
    "number": always(1.0),
    "array": always(np.ones(3)),
    "gives None": always(lambda *points: None),
    "gives text": always(lambda *points: "abc"),
    "gives nan": always(lambda points, *more: np.full(len(points), np.nan)),
    "gives complex": always(lambda points, *more: np.full(len(points), 1j)),
    "gives few": always(lambda points, *more: np.ones(len(points) + 1)),
}
BAD = {
    "points": {**ARRAY, **ROWS},
    # of points of any kind no more is known than that they are some
    "things": {**ODD, "scalar": always(0.5), "empty": always([]),
               "masked": masked},
    "point": {**{k: v for k, v in ENTRIES.items() if k != "no rows"}, **ODD,
              "cube": lambda good: np.ones((2, 2, 2)),
              "two?": lambda good: np.stack([good, good])},
    "vector": {**ARRAY, "short": lambda good: good[:-1],
               "table": lambda good: np.column_stack([good, good])},
    "labels": {**ARRAY, "short": lambda good: good[:-1],
               "zeros": lambda good: 0 * good, "three": lambda good: [
                   0, *good[1:]],
               "one class?": lambda good: np.abs(good)},
    "classes": {**ODD, "scalar": always(0.5), "empty": always([]),
                "masked": masked, "nan": spoilt(np.nan),
                "one class": np.abs, "three": lambda good: [0, *good[1:]]},
    "matrix": {**ARRAY, "cube": TABLE["cube"],
               "short?": lambda good: np.array(good)[:-1]},
    "gram": {**ARRAY, **TABLE, "tall": lambda good: np.array(good)[:, :-1],
             "lopsided": lambda good: np.array(good) + np.triu(np.ones_like(
                 good), 1),
             "indefinite?": lambda good: -np.array(good),
             "minor?": lambda good: np.array(good)[:-1, :-1]},
    "number": NUMBER,
    "positive": {**NUMBER, "zero": always(0.0), "negative": always(-1.0),
                 "tiny?": always(5e-324), "large?": always(1e308)},
    "nonnegative": {**NUMBER, "negative": always(-1.0)},
    "fraction": {**NUMBER, "zero?": always(0.0), "negative": always(-0.5),
                 "two": always(2.0)},
    "tolerance": {**NUMBER, "negative": always(-1e-3), "zero?": always(0.0),
                  "one?": always(1.0)},
    "whole": {**NUMBER, "half": always(1.5), "negative": always(-1),
              "zero?": always(0), "fraction": always(Fraction(1, 2))},
    "flag": {**ODD, "one": always(1), "zero": always(0.0),
             "list": always([True]), "array": always(np.ones(2, bool)),
             "nan": always(np.nan)},
    "choice": {**ODD, "number": always(1.0), "empty": always(""),
               "list": always([]), "nan": always(np.nan)},
    "rng": {**ODD, "negative": always(-1), "half": always(1.5),
            "nan": always(np.nan), "complex": always(1j), "huge?": always(HUGE)},
    "kernel": {**ODD, "number": always(1.0), "array": always(np.eye(2)),
               "class": always(Gaussian), "function": always(np.dot),
               "indefinite?": always(Sigmoid(1.0, -1.0))},
    "rkhs": {**ODD, "number": always(1.0), "array": always(np.eye(2)),
             "function": always(np.sum), "kernel": always(Gaussian(1.0)),
             "other space?": always(RKHSFunction(Gaussian(7.0), [[0.0]], [1.0]))},
    "operator": {**ODD, "number": always(1.0), "array": always(np.eye(2)),
                 "function": always(np.sum), "rkhs": always(calls.f)},
    "map": {**ODD, "number": always(1.0), "array": always(np.eye(2)),
            "function": always(np.sum), "kernel": always(Gaussian(1.0))},
    "function": FUNCTION,
    "grid": {**ENTRIES, **ODD, "scalar": always(0.5), "zero": spoilt(0.0),
             "negative": spoilt(-1.0), "table": lambda good: [[*good], [*good]]},
    "folds": {**ODD, "nan": always(np.nan), "half": always(1.5),
              "negative": always(-1), "huge": always(HUGE), "one?": always(1),
              "zero?": always(0), "too many": always(99), "empty": always([]),
              "out of range": always([[0, 1, 2, 3], [4, 5, 6, 99]]),
              "twice": always([[0, 1, 2, 3], [3, 4, 5, 6, 7]]),
              "halves": always([[0.5, 1.5], [2.5]]),
              "texts": always([["a"], ["b"]])},
    "document": {"None": always(None), "number": always(1.0),
                 "list": always(["a"]), "bytes": always(b"a")},
    "options": {},
    "anything": {},
}
# Argument -> kind; a callable's own row goes before.
KINDS = {
    "points": "X Y Z T S points states observations next_states nodes landmarks "
              "omega ys frequencies",
    "point": "x start mean",
    "vector": "y z weights signal phases values diagonal prior_weights W "
              "null_distribution",
    "matrix": "U V A B",
    "gram": "K L Kx Ky Kz gram covariance",
    "number": "statistic value error",
    "positive": "sigma lam eps noise width period nu C parameter",
    "nonnegative": "c a size",
    "whole": "degree n_components n_features n_permutations max_rank max_points "
             "max_steps n m dim rank memory p split held_out least ndim at_least "
             "r j n_points",
    "flag": "centred unbiased offset paired normalise return_pivots definite "
            "return_gradient infinite zero",
    "choice": "method direction solver estimate loss",
    "rng": "rng",
    "tolerance": "tol",
    "kernel": "kernel k l kx ky kz first second",
    "rkhs": "f g mu prior previous",
    "map": "Phi other pca",
    "function": "function features map basis coefficients visit",
    "grid": "lams epsilons eigenvalues",
    "folds": "folds",
    "document": "document",
    # words for messages, and what the package hands to itself
    "anything": "name kernel_name why seen options",
}
OWN = {
    "LowRank.U": "matrix",
}


def kind_of(name, argument):
    own = OWN.get(f"{name}.{argument}")
    return own or next(kind for kind, names in KINDS.items()
                       if argument in names.split())


def arguments(name):
    """{argument: its default} of a callable."""
    found = inspect.signature(calls.target(name)).parameters.values()
    return {p.name: p.default for p in found if p.kind is not p.VAR_POSITIONAL}


def numbers(value, path="result"):
    """(path, numbers) of a result and of its parts."""
    if isinstance(value, (float, int, complex, np.number, np.ndarray)):
        if np.asarray(value).dtype.kind in "fc":
            yield path, value
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from numbers(part, f"{path}[{i}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from numbers(getattr(value, field.name), f"{path}.{field.name}")


def named(argument, text):
    """Whether the text names the argument, as a word of its own."""
    if argument == "a":  # no article
        return text.startswith("a must")
    return re.search(rf"(?<!\w){re.escape(argument)}(?!\w)", text)


def outcome(name, argument, label, value):
    """What is wrong with the answer to this value, or None."""
    good = calls.made(name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", PrecisionWarning)
            result = calls.call(name, **{argument: value})
    except Warning as warning:
        return f"warns: {warning!r}"
    except (ValueError, TypeError) as error:
        partners = arguments(name) if label in PARTNERS else ()
        if not any(named(a, str(error)) for a in (argument, *partners)):
            return f"does not name it: {error!r}"
    except Exception as error:
        return f"raises {error!r}"
    else:
        if not label.endswith("?"):
            return "is accepted"
        if type(result) is not type(good):
            return f"gives a {type(result).__name__}"
        allowed = {p for p, x in numbers(good) if not np.isfinite(x).all()}
        for path, x in numbers(result):
            if not np.isfinite(x).all() and path not in allowed:
                return f"{path} is not finite"


# Of two arguments that do not fit together a message may name the other.
PARTNERS = {"short", "short?", "one?", "point?", "wide?", "minor?", "two?",
            "other space?", "tall"}


def wrongs(name):
    """(argument, label) -> what is wrong, over all bad values."""
    found = {}
    for argument, default in arguments(name).items():
        good = calls.GOOD[name].get(argument, default)
        for label, make in BAD[kind_of(name, argument)].items():
            if label == "None" and (default is None or good is None):
                continue
            what = outcome(name, argument, label, make(good))
            if what:
                found[argument, label] = what
    return found
