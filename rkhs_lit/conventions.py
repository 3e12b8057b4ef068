"""Conventions: what may go in, and what comes out"""
# The exported cells of book/conventions.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 3e2fc7b8046dfe49

# %% [1] Conventions: what may go in, and what comes out
import warnings
from collections.abc import Iterator, Sequence, Set
from numbers import Real

import numpy as np

# %% [2] Numbers
MAX = float(np.finfo(float).max)
TINY = 5e-324                            # the least positive float


def _refuse(value, name, wanted):
    try:
        shown = repr(value)
    except ValueError:                   # more digits than Python prints
        shown = "a number of thousands of digits"
    if len(shown) > 80:
        shown = shown[:60] + "..."
    raise ValueError(f"{name} must be {wanted}, got {shown}")


def number(value, name: str, wanted: str = "a finite number",
           low: float = -MAX, high: float = MAX) -> float:
    """A number between two bounds as a float (:prf:ref:`def-numbers`).

    >>> number(np.uint8(20), "sigma") ** 2
    400.0
    """
    try:
        x = float(value) if isinstance(value, Real) else np.nan
    except OverflowError:                # of a whole number or a fraction
        x = np.nan
    if not low <= x <= high:
        _refuse(value, name, wanted)
    return x

# %% [3] Numbers
def nonnegative(value, name: str, why: str = "") -> float:
    """A finite number x >= 0 as a float (:prf:ref:`def-numbers`)."""
    return number(value, name, "a finite nonnegative number" + why, 0.0)


def positive(value, name: str, why: str = "", *,
             infinite: bool = False) -> float:
    """A finite number x > 0, or inf if `infinite`, as a float
    (:prf:ref:`def-numbers`)."""
    return number(value, name, "a positive number" + why, TINY,
                  np.inf if infinite else MAX)

# %% [4] Numbers
def width(value, name: str) -> float:
    """A number x > 0 whose square is one too (:prf:ref:`def-numbers`)."""
    return number(value, name, "a positive number, and so its square",
                  TINY**0.5, MAX**0.5)


def tolerance(value, name: str = "tol", *, zero: bool = False) -> float:
    """A number between 0 and 1, or 0 itself if `zero`, as a float
    (:prf:ref:`def-numbers`)."""
    return number(value, name, "a number between 0 and 1",
                  0.0 if zero else TINY, 1 - 2.0**-53)


def whole(value, name: str, least: int = 0) -> int:
    """A whole number of at least `least` (:prf:ref:`def-numbers`)."""
    wanted = f"a whole number of at least {least}"
    if not number(value, name, wanted, least).is_integer():
        _refuse(value, name, wanted)
    return int(value)

# %% [5] Numbers
def flag(value, name: str) -> bool:
    """True or False (:prf:ref:`def-numbers`)."""
    if not isinstance(value, (bool, np.bool_)):
        _refuse(value, name, "True or False")
    return bool(value)


def choice(value, name: str, options: Sequence[str]) -> str:
    """One of a few words (:prf:ref:`def-numbers`)."""
    if not (isinstance(value, str) and value in options):
        _refuse(value, name, " or ".join(f'"{word}"' for word in options))
    return value


def function(value, name: str):
    """Something that can be called (:prf:ref:`def-numbers`)."""
    if not callable(value):
        _refuse(value, name, "a function")
    return value

# %% [6] Randomness
def generator(rng, name: str = "rng") -> np.random.Generator:
    """The generator that a seed stands for (:prf:ref:`def-rng`)."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        _refuse(rng, name, "a seed or a numpy Generator")

# %% [7] Points and arrays
def same_columns(X, Y) -> None:
    """Refuse two data frames, or other points with names in ``columns``,
    whose names differ (:prf:ref:`def-points`)."""
    ours, theirs = (getattr(Z, "columns", None) for Z in (X, Y))
    if ours is not None and theirs is not None and (
            tuple(ours) != tuple(theirs)):
        raise ValueError("points must have the same columns in the same "
                         f"order, got {(*ours,)} and {(*theirs,)}")


def same_dimension(Y, X, name: str = "Y", like: str = "X") -> None:
    """Refuse points Y of another dimension (:prf:ref:`def-points`)."""
    for d, e in zip(*(getattr(Z, "shape", ())[1:] for Z in (Y, X))):
        if d != e:
            hint = f": write [{name}] for a single point"
            raise ValueError(
                f"{name} must have points in dimension {e} like {like}, "
                f"got {d}{hint if d == 1 and len(Y) == e else ''}")


def _no_sequence(X, name):
    kind = type(X).__name__
    hint = (f"{kind}: write list({name})" if isinstance(X, (Iterator, Set))
            else f"single {kind}: write [{name}]")
    raise ValueError(f"{name} must be a sequence of points, got a {hint}")


def _masked(values):
    if isinstance(values, (list, tuple)):
        return any(map(_masked, values))
    return isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)


def plain_array(values, name: str) -> np.ndarray:
    """An array that is not masked, sparse or ragged; real numbers of
    Python's own types become floats (:prf:ref:`def-points`)."""
    if hasattr(values, "toarray"):
        raise ValueError(f"{name} must be dense: write {name}.toarray()")
    if _masked(values):
        raise ValueError(f"{name} must not have masked entries")
    try:
        array = np.asarray(values)
        real = array.dtype == object and all(isinstance(x, Real)
                                             for x in array.flat)
        return array.astype(float) if real else array
    except OverflowError:
        raise ValueError(f"{name} must be finite") from None
    except ValueError:
        raise ValueError(f"{name} must have rows of one length") from None

# %% [8] Points and arrays
def as_points(X, name: str = "X") -> np.ndarray:
    """Points of R^d as the rows of an (n, d) array of finite floats
    (:prf:ref:`def-points`): `X` itself where it is one, and one column
    for n points of the line."""
    points = X
    if type(X) is not np.ndarray or X.dtype != float:
        points = plain_array(X, name)
    if points.ndim == 0:
        _no_sequence(X, name)
    if points.dtype != float:
        if points.dtype.kind not in "biuf":
            kinds = getattr(X, "dtypes", {})      # of a data frame
            text = [column for column in getattr(X, "columns", ())
                    if kinds[column].kind not in "biuf"]
            column = f", but column {text[0]!r} does not" if text else ""
            raise ValueError(f"{name} must hold real numbers, one point a "
                             f"row{column}")
        with np.errstate(over="ignore"):          # numbers of 16 bytes
            points = points.astype(float, copy=False)
    if points.ndim == 1:
        points = points[:, None]
    if points.ndim != 2 or points.size == 0:
        raise ValueError(f"{name} must hold at least one point, in an "
                         f"(n, d) array, got shape {np.shape(X)}")
    if not np.isfinite(points).all():
        row = np.flatnonzero(~np.isfinite(points).all(axis=1))[0]
        raise ValueError(f"{name} must be finite, but row {row} is not")
    return points if points.flags.forc else points.copy()


def real_array(values, name: str, ndim: int | None = None) -> np.ndarray:
    """Finite numbers as an array of floats with at most two axes, or with
    `ndim` (:prf:ref:`def-points`)."""
    array = plain_array(values, name)
    if array.ndim not in ((0, 1, 2) if ndim is None else (ndim,)):
        raise ValueError(f"{name} must have {ndim or '1 or 2'} axes, got "
                         f"shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape "
                         f"{array.shape}")
    return as_points(np.atleast_1d(array), name).reshape(array.shape)

# %% [9] Points and arrays
def as_sequence(X, name: str = "X"):
    """Points of any kind, in an array, list, tuple or `Pairs`: `X` itself,
    or an array or a list of its elements (:prf:ref:`def-points`)."""
    if hasattr(X, "__array__") or hasattr(X, "toarray") or _masked(X):
        X = plain_array(X, name)         # also a data frame or a column
    if (isinstance(X, (str, bytes, dict)) or not hasattr(X, "__len__")
            or (isinstance(X, np.ndarray) and X.ndim == 0)):
        _no_sequence(X, name)
    if len(X) == 0:
        raise ValueError(f"{name} must hold at least one point")
    return X if hasattr(X, "__getitem__") else list(X)

# %% [10] Points and arrays
def frozen(array) -> np.ndarray:
    """A copy that cannot be written to (:prf:ref:`def-points`)."""
    array = np.array(array)
    array.setflags(write=False)
    return array


def vector(values, name: str, n: int | None = None) -> np.ndarray:
    """One number for each of n points, read-only
    (:prf:ref:`def-points`)."""
    column = np.array(as_points(values, name)[:, 0])
    if np.ndim(values) != 1 or len(column) != (n or len(column)):
        wanted = "a list of numbers" if n is None else (
            f"one number for each of {n} points")
        raise ValueError(f"{name} must be {wanted}, got shape "
                         f"{np.shape(values)}")
    column.setflags(write=False)
    return column


def positives(values, name: str) -> np.ndarray:
    """A list of positive numbers, read-only (:prf:ref:`def-numbers`)."""
    array = vector(values, name)
    if array.min() <= 0:
        raise ValueError(f"{name} must be a list of positive numbers, got "
                         f"{array.min():.6g} among them")
    return array

# %% [11] Errors, results and records
def finite(values, name: str):
    """The values themselves, if all are finite (:prf:ref:`def-results`)."""
    if not np.isfinite(values).all():
        raise ValueError(f"{name} gave a value that is not finite: it "
                         "overflows, the numbers are too large")
    return values

# %% [12] Errors, results and records
class Record:
    """What comes out: its arrays are read-only, also in a copy and after
    pickling (:prf:ref:`def-results`)."""

    __array_ufunc__ = None       # array == record compares no entries

    def __post_init__(self):
        for value in vars(self).values():
            for part in value if isinstance(value, tuple) else [value]:
                if isinstance(part, np.ndarray):
                    part.setflags(write=False)

    def __setstate__(self, state):
        vars(self).update(state)
        Record.__post_init__(self)


class Vectors:
    """Elements of a vector space: a subclass says what ``f + g`` and
    ``f * c`` are, the rest follows (:prf:ref:`def-results`)."""

    __array_ufunc__ = None       # NumPy numbers leave c * f to this class

    def __radd__(self, other):           # sum(vectors) starts from 0
        zero = isinstance(other, Real) and other == 0
        return self if zero else NotImplemented

    def __rmul__(self, c):
        return self * c

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        same = isinstance(other, type(self))
        return self + -other if same else NotImplemented

# %% [13] How many digits to believe
class PrecisionWarning(RuntimeWarning):
    """No digit of an answer is certain (:prf:ref:`def-precision`)."""


def certain(value: float, error: float, name: str,
            size: float = 0.0) -> float:
    """The value itself, with a `PrecisionWarning` if such an error leaves
    it in doubt, given the size of a value that matters
    (:prf:ref:`def-precision`)."""
    if not np.isfinite(value):
        raise ValueError(f"{name} is not finite: it overflows, the numbers "
                         "are too large")
    if error >= abs(value) and error > 1e-8 * size:
        warnings.warn(f"{name} came out as {value:.3g}, but is known to "
                      f"within {error:.2g} only", PrecisionWarning,
                      stacklevel=3)
    return value
