"""Conventions: what may go in, and what comes out

The exported cells of the chapter ``book/conventions.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 9b62fab6611a40fe

# %% [1] Conventions: what may go in, and what comes out
import warnings
from collections.abc import Sequence
from numbers import Real

import numpy as np


# %% [2] Numbers
def _as_float(value):
    try:
        return float(value) if isinstance(value, Real) else np.nan
    except OverflowError:                # of a whole number or a fraction
        return np.inf if value > 0 else -np.inf


def _refuse(value, name, wanted):
    try:
        shown = repr(value)
    except ValueError:                   # more digits than Python prints
        shown = "a number of thousands of digits"
    if len(shown) > 80:
        shown = shown[:60] + "..."
    raise ValueError(f"{name} must be {wanted}, got {shown}")


# %% [3] Numbers
def number(value, name: str) -> float:
    """A finite number as a float (:prf:ref:`def-numbers`).

    >>> number(np.uint8(20), "sigma") ** 2
    400.0
    """
    x = _as_float(value)
    if not np.isfinite(x):
        _refuse(value, name, "a finite number")
    return x


def nonnegative(value, name: str, why: str = "") -> float:
    """A finite number x >= 0 as a float (:prf:ref:`def-numbers`)."""
    x = _as_float(value)
    if not 0 <= x < np.inf:
        _refuse(value, name, "a finite nonnegative number" + why)
    return x


def positive(value, name: str, why: str = "", *,
             infinite: bool = False) -> float:
    """A finite number x > 0 as a float (:prf:ref:`def-numbers`).

    With ``infinite=True`` it may also be ``np.inf`` itself.
    """
    x = _as_float(value)
    if not (0 < x < np.inf or (infinite and x == value == np.inf)):
        _refuse(value, name, "a positive number" + why)
    return x


# %% [4] Numbers
def width(value, name: str) -> float:
    """A number x > 0 whose square is one too (:prf:ref:`def-numbers`)."""
    x = _as_float(value)
    if not (0 < x and 0 < x * x < np.inf):
        _refuse(value, name, "a positive number, and so its square")
    return x


def tolerance(value, name: str = "tol", *, zero: bool = False) -> float:
    """A number between 0 and 1, as a float (:prf:ref:`def-numbers`).

    Zero itself is refused unless ``zero=True``; 1 always is.
    """
    x = _as_float(value)
    if not (0 < x < 1 or (zero and x == 0)):
        _refuse(value, name, "a number between 0 and 1")
    return x


def whole(value, name: str, least: int = 0) -> int:
    """A whole number of at least `least` (:prf:ref:`def-numbers`).

    >>> whole(3.0, "degree")
    3
    """
    x = _as_float(value)
    if not (x.is_integer() and x >= least):
        _refuse(value, name, f"a whole number of at least {least}")
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
    """The generator that a seed stands for (:prf:ref:`def-rng`).

    >>> a, b = (generator(7).random() for _ in range(2))
    >>> a == b
    True
    """
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        _refuse(rng, name, "a seed or a numpy Generator")


# %% [7] Points and arrays
class _Named(np.ndarray):
    """Rows of a data frame, which remember the names of its columns.
    What is computed from them is a plain array."""

    columns = None

    def __array_finalize__(self, other):
        self.columns = getattr(other, "columns", None)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **how):
        def plain(arrays):
            return [a.view(np.ndarray) if isinstance(a, _Named) else a
                    for a in arrays]

        if out is not None:
            how["out"] = tuple(plain(out))
        return getattr(ufunc, method)(*plain(inputs), **how)


def _columns(values):
    columns = getattr(values, "columns", None)
    named = columns is not None and all(isinstance(c, str) for c in columns)
    return tuple(columns) if named else None


def with_columns(array: np.ndarray, values) -> np.ndarray:
    """The array, with the names of the columns of the data frame (or
    array with names) `values` (:prf:ref:`def-points`)."""
    if array.ndim == 2 and (columns := _columns(values)):
        array = array.view(_Named)
        array.columns = columns
    return array


def same_columns(X, Y) -> None:
    """Refuse two data frames whose columns differ in name or order
    (:prf:ref:`def-points`)."""
    ours, theirs = _columns(X), _columns(Y)
    if ours and theirs and ours != theirs:
        raise ValueError("points must have the same columns in the same "
                         f"order, got {ours} and {theirs}")


# %% [8] Points and arrays
def _masked(values):
    if isinstance(values, (list, tuple)):
        return any(_masked(value) for value in values)
    return np.ma.is_masked(values)


def plain_array(values, name: str) -> np.ndarray:
    """An array that is not masked, sparse or ragged; real numbers of
    Python's own types become floats (:prf:ref:`def-points`).

    >>> from fractions import Fraction
    >>> plain_array([Fraction(1, 4), 2], "weights")
    array([0.25, 2.  ])
    """
    if hasattr(values, "toarray"):
        raise ValueError(f"{name} must be a dense array: "
                         f"write {name}.toarray()")
    if _masked(values):
        raise ValueError(f"{name} must not have masked entries")
    try:
        array = with_columns(np.asarray(values), values)
    except ValueError:
        raise ValueError(f"{name} must have rows of one length") from None
    if array.dtype == object and all(isinstance(x, Real)
                                     for x in array.flat):
        floats = np.reshape([*map(_as_float, array.flat)], array.shape)
        array = with_columns(floats, array)
    return array


def _floats(values, name, wanted="real numbers"):
    array = plain_array(values, name)
    if array.dtype.kind not in "biuf":
        kinds = getattr(values, "dtypes", {})     # of a data frame
        text = [str(column) for column in getattr(values, "columns", ())
                if kinds[column].kind not in "biuf"]
        column = f", but column {text[0]!r} does not" if text else ""
        raise ValueError(f"{name} must hold {wanted}{column}")
    with np.errstate(over="ignore"):     # of numbers longer than a float
        return array.astype(float, copy=False)


# %% [9] Points and arrays
def real_array(values, name: str, ndim: int | None = None) -> np.ndarray:
    """Finite real numbers as an array of floats (:prf:ref:`def-points`).

    Parameters
    ----------
    values : array_like
        Not empty, not masked, not sparse.
    name : str
        What an error message calls the argument.
    ndim : int, optional
        The number of axes that the array must have.

    Returns
    -------
    array of floats
        `values` itself where it is one: make a copy before you write.
    """
    array = _floats(values, name)
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axes, got shape "
                         f"{array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape "
                         f"{array.shape}")
    if not np.isfinite(array).all():
        place = np.argwhere(~np.isfinite(array)).tolist()[0]
        raise ValueError(f"{name} must be finite, but entry {place} is not")
    return array


# %% [10] Points and arrays
def as_points(X, name: str = "X") -> np.ndarray:
    """Points of R^d as rows of a float array (:prf:ref:`def-points`).

    Parameters
    ----------
    X : array_like
        Shape (n, d), or (n,) for n points of the line.
    name : str
        What the error message calls the argument.

    Returns
    -------
    (n, d) array
        Finite floats, at least one row.
    """
    points = _floats(X, name, "real numbers, one point a row")
    if points.ndim == 1:
        points = points[:, None]
    if points.ndim != 2 or points.size == 0:
        raise ValueError(f"{name} must be an (n, d) array with at least "
                         f"one point, got shape {np.shape(X)}")
    if not np.isfinite(points).all():
        row = np.flatnonzero(~np.isfinite(points).all(axis=1))[0]
        raise ValueError(f"{name} must be finite, but row {row} is not")
    return points


# %% [11] Points and arrays
def as_sequence(X, name: str = "X"):
    """Points of any kind, checked to be a sequence that can be sliced
    (:prf:ref:`def-points`).

    Parameters
    ----------
    X : sequence
        Array, list, tuple or `Pairs`.
    name : str
        What the error message calls the argument.

    Returns
    -------
    sequence
        `X` itself, or an array or a list of its elements.
    """
    if isinstance(X, (str, bytes, dict)) or not hasattr(X, "__len__"):
        raise ValueError(f"{name} must be a sequence of points, got a "
                         f"single {type(X).__name__}")
    if isinstance(X, np.ndarray) and X.ndim == 0:
        raise ValueError(f"{name} must be a sequence, got a scalar")
    if len(X) == 0:
        raise ValueError(f"{name} must hold at least one point")
    if _masked(X):
        raise ValueError(f"{name} must not have masked entries")
    if hasattr(X, "__array__"):      # a data frame or a column of one,
        return with_columns(np.asarray(X), X)    # indexed by its labels
    return X if hasattr(X, "__getitem__") else list(X)


# %% [12] Points and arrays
def frozen(array) -> np.ndarray:
    """A copy that cannot be written to (:prf:ref:`def-points`)."""
    array = np.array(array)
    array.setflags(write=False)
    return array


def vector(values, name: str, n: int | None = None) -> np.ndarray:
    """One number for each of n points, read-only
    (:prf:ref:`def-points`)."""
    column = as_points(values, name)
    if np.ndim(values) != 1 or len(column) != (n or len(column)):
        many = "" if n is None else f" for each of {n} points"
        raise ValueError(f"{name} must be one number{many}, got shape "
                         f"{np.shape(values)}")
    return frozen(column[:, 0])


def positives(values, name: str) -> np.ndarray:
    """A list of positive numbers, read-only (:prf:ref:`def-numbers`)."""
    array = as_points(values, name)
    if np.ndim(values) != 1 or not (array > 0).all():
        raise ValueError(f"{name} must be a list of positive numbers, got "
                         f"shape {np.shape(values)} with the least value "
                         f"{array.min():.6g}")
    return frozen(array[:, 0])


# %% [13] Errors, results and records
def finite(values, name: str):
    """The values themselves, if all are finite (:prf:ref:`def-points`)."""
    if not np.isfinite(values).all():
        raise ValueError(f"{name} gave a value that is not finite: the "
                         "points are too large for it")
    return values


# %% [14] How many digits to believe
class PrecisionWarning(RuntimeWarning):
    """No digit of an answer is certain (:prf:ref:`def-precision`)."""


def certain(value: float, error: float, name: str,
            size: float = 0.0) -> float:
    """The value itself, with a `PrecisionWarning` if such an error leaves
    it in doubt, given the size of a value that matters
    (:prf:ref:`def-precision`).

    >>> certain(2.0, 1e-9, "norm")
    2.0
    """
    if error >= abs(value) and error > 1e-8 * size:
        warnings.warn(f"{name} came out as {value:.3g}, but is known to "
                      f"within {error:.2g} only", PrecisionWarning,
                      stacklevel=3)
    return value
