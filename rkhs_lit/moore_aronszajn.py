"""Moore–Aronszajn: every kernel is a space of functions

The exported cells of the chapter ``book/moore_aronszajn.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 3b4292a2c8872611

# %% [1] Moore–Aronszajn: every kernel is a space of functions
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from scipy.linalg import cholesky, solve_triangular

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points, as_sequence
from rkhs_lit.kernels import (Kernel, Linear, Mapped, Pairs, Sum, gram_dot,
                              is_positive_definite)
from rkhs_lit.riesz import GramSolution, gram_solve


# %% [2] The type `RKHSFunction`
class _Fixed(tuple):
    """A list of points that its maker cannot change any more."""


def _copied(item):
    if isinstance(item, list):
        return [*map(_copied, item)]
    if isinstance(item, np.ndarray) and (item.flags.writeable
                                         or item.base is not None):
        item = item.copy()
        item.setflags(write=False)
    return item


def _fixed(points):
    points = as_sequence(points, "points")
    if isinstance(points, Pairs):
        first, second = _fixed(points.first), _fixed(points.second)
        same = first is points.first and second is points.second
        return points if same else Pairs(first, second)
    if isinstance(points, (list, tuple)):
        return points if isinstance(points, _Fixed) else _Fixed(
            map(_copied, points))
    if isinstance(points, np.ndarray) and points.dtype.kind in "biuf" and (
            not np.isfinite(points).all()):
        raise ValueError("points must be finite")
    return _copied(points)


# %% [3] The type `RKHSFunction`
def _joined(a, b):
    if isinstance(a, Pairs) and isinstance(b, Pairs):
        return Pairs(_joined(a.first, b.first),
                     _joined(a.second, b.second))
    check.same_columns(a, b)
    numeric = [isinstance(p, np.ndarray) and p.dtype.kind in "biuf"
               for p in (a, b)]
    if not any(numeric):
        return [*a, *b]
    if not all(numeric) or a.ndim != b.ndim:
        rows = as_points(a, "points"), as_points(b, "points")
        flat = np.ndim(a) == np.ndim(b) == 1
        a, b = (p[:, 0] for p in rows) if flat else rows
    if a.shape[1:] != b.shape[1:]:
        raise ValueError("points must have one dimension, got "
                         f"{a.shape[1:]} and {b.shape[1:]}")
    return check.with_columns(np.concatenate([a, b]), a)


# %% [4] The type `RKHSFunction`
class _VectorSpace:
    # NumPy numbers must leave ``c * f`` to this class.
    __array_ufunc__ = None

    def __add__(self, other):
        if not isinstance(other, RKHSFunction):
            return NotImplemented
        _one_space(self, other)
        if self.points is other.points:
            return replace(self, weights=self.weights + other.weights)
        return RKHSFunction(self.kernel, _joined(self.points, other.points),
                            np.concatenate([self.weights, other.weights]))

    def __radd__(self, other):
        # sum(functions) starts from the number 0.
        return self if isinstance(other, Real) and other == 0 else (
            NotImplemented)

    def __mul__(self, c):
        if not isinstance(c, Real):
            return NotImplemented
        c = check.number(c, "the factor")
        return replace(self, weights=c * self.weights)

    __rmul__ = __mul__

    def __truediv__(self, c):
        if not isinstance(c, Real):
            return NotImplemented
        if (c := check.number(c, "the divisor")) == 0:
            raise ValueError("the divisor must not be 0")
        with np.errstate(over="ignore"):  # infinite weights are refused
            return replace(self, weights=self.weights / c)

    def __neg__(self):
        return -1 * self

    def __sub__(self, other):
        return self + -other if isinstance(other, RKHSFunction) else (
            NotImplemented)


# %% [5] The type `RKHSFunction`
@dataclass(frozen=True, eq=False, repr=False)
class RKHSFunction(_VectorSpace):
    """The function f = Σ α_i k(x_i, ·) (:prf:ref:`lem-expansion-inner`).

    Functions with one kernel can be added and multiplied by numbers.

    Parameters
    ----------
    kernel : Kernel
        Positive definite.
    points : sequence of n points
        An array, a list of any objects, or `Pairs`.
    weights : (n,) array
        The numbers α_i.

    Examples
    --------
    >>> f = RKHSFunction(Linear(), [1.0, 2.0], [3.0, -1.0])   # t -> 1 t
    >>> (2 * f + f)([5.0, 7.0])
    array([15., 21.])
    """

    kernel: Kernel
    points: Sequence
    weights: np.ndarray

    def __post_init__(self):
        _space(self.kernel)
        points = _fixed(self.points)
        weights = check.vector(self.weights, "weights", len(points))
        self.kernel._prepare(points, "points")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "weights", weights)

    def __repr__(self):
        return f"RKHSFunction({self.kernel}, n={len(self.points)})"

    def __call__(self, T) -> np.ndarray:
        """Values at the points T, an array of as many numbers."""
        return _values(self, as_sequence(T, "T"))


# %% [6] The type `RKHSFunction`
def _space(kernel):
    if not isinstance(kernel, Kernel):
        raise ValueError("kernel must be a Kernel, got "
                         f"{type(kernel).__name__}")
    if not kernel.positive_definite:
        raise ValueError(f"kernel must be positive definite, but {kernel} "
                         "is known not to be: some expansions would have a "
                         "negative squared norm")


def _values(f, T):
    try:
        values = gram_dot(f.kernel, T, f.points, f.weights)
    except ValueError as error:
        f.kernel._prepare(T, "T")            # says what T must be
        raise ValueError(f"T does not suit the points of f: {error}"
                         ) from None
    return _finite_sum(values)


def _finite_sum(values):
    if not np.isfinite(values).all():
        raise ValueError("weights are too large: the sum over the points "
                         "overflows")
    return values


# %% [7] The type `RKHSFunction`
def _function(f, name):
    if not isinstance(f, RKHSFunction):
        raise ValueError(f"{name} must be an RKHSFunction, got "
                         f"{type(f).__name__}")


def _one_space(f, g):
    if not (f.kernel is g.kernel or f.kernel == g.kernel):
        raise ValueError("f and g must have the same kernel, got "
                         f"{f.kernel} and {g.kernel}")


def inner(f: RKHSFunction, g: RKHSFunction) -> float:
    """The inner product Σ α_i β_j k(x_i, y_j)
    (:prf:ref:`thm-moore-aronszajn`).

    Parameters
    ----------
    f, g : RKHSFunction
        With the same kernel.

    Returns
    -------
    float
        Computed a tile at a time: no Gram matrix is stored.
    """
    _function(f, "f")
    _function(g, "g")
    _one_space(f, g)
    # One list of points has a symmetric Gram matrix: half the work.
    Y = None if f.points is g.points else g.points
    g_at_x = gram_dot(f.kernel, f.points, Y, g.weights)
    return float(_finite_sum(f.weights @ g_at_x))


# %% [8] The type `RKHSFunction`
def _key(x):
    if isinstance(x, np.ndarray):
        return x.shape, x.tobytes()
    if isinstance(x, (list, tuple)):
        return tuple(map(_key, x))
    try:
        hash(x)
    except TypeError:
        return id(x)
    return x


def _labels(points):
    """A number for each point, the same for equal points."""
    if isinstance(points, Pairs):
        points = np.column_stack([*map(_labels, (points.first,
                                                 points.second))])
    if isinstance(points, np.ndarray) and points.dtype.kind in "biuf":
        rows = points.reshape(len(points), -1)
        return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    seen = {}
    return np.array([seen.setdefault(_key(x), len(seen)) for x in points])


def _rows(points, rows):
    if isinstance(points, Pairs):
        return Pairs(_rows(points.first, rows), _rows(points.second, rows))
    return points[rows] if isinstance(points, np.ndarray) else [
        points[i] for i in rows]


def _merged(f):
    """f with each of its points once."""
    _, first, group = np.unique(_labels(f.points), return_index=True,
                                return_inverse=True)
    if len(first) == len(group):
        return f
    parts = np.split(f.weights[np.argsort(group, kind="stable")],
                     np.cumsum(np.bincount(group))[:-1])
    return RKHSFunction(f.kernel, _rows(f.points, first),
                        [math.fsum(part) for part in parts])


# %% [9] The type `RKHSFunction`
def _size(f):
    """The norm of f, and how far rounding can have moved it."""
    f = _merged(f)
    # With weights of size one no square overflows or vanishes.
    scale = float(np.abs(f.weights).max())
    if scale == 0:
        return 0.0, 0.0
    unit = f.weights / scale
    square = float(_finite_sum(unit @ gram_dot(f.kernel, f.points, None,
                                               unit)))
    diagonal = f.kernel.diag(f.points)
    total = (np.abs(unit) @ np.sqrt(np.abs(diagonal))) ** 2
    if square < -1e-8 * total or diagonal.min() < 0:
        raise ValueError("f must have a positive definite kernel, but its "
                         f"squared norm is {square * scale * scale:.6g}")
    error = float((len(unit) + 4) * np.finfo(float).eps * total)
    low, size, high = (float(_finite_sum(max(q, 0.0) ** 0.5 * scale))
                       for q in (square - error, square, square + error))
    return size, max(size - low, high - size)


# %% [10] The type `RKHSFunction`
def norm(f: RKHSFunction) -> float:
    """The norm of f in its RKHS, √⟨f, f⟩
    (:prf:ref:`lem-expansion-definite`).

    Parameters
    ----------
    f : RKHSFunction

    Returns
    -------
    float
        With a `PrecisionWarning` where terms cancel so far that no digit
        is certain (:prf:ref:`prop-norm-error`). A square below zero by
        more than that is evidence that the kernel is not positive
        definite, and raises a ValueError.
    """
    _function(f, "f")
    return check.certain(*_size(f), "norm(f)")


# %% [11] Projection and interpolation
def _solve(kernel, X, values) -> GramSolution:
    K = kernel(X)
    try:
        return gram_solve(K, values)
    except ValueError:
        pass
    try:                  # the kernel may be right to eight digits only
        return gram_solve(K, values, tol=1e-8)
    except ValueError as error:
        raise ValueError("kernel must be positive definite, but of its Gram"
                         f" matrix one finds: {error}") from None


# %% [12] Projection and interpolation
def interpolate(kernel: Kernel, X, y) -> RKHSFunction:
    """The interpolant of minimal norm (:prf:ref:`thm-interpolant`).

    Parameters
    ----------
    kernel : Kernel
    X : sequence of n points
        May repeat points, and the Gram matrix may be singular, as long
        as some function of the space has the values y.
    y : (n,) array

    Returns
    -------
    RKHSFunction
        s with s(x_i) = y_i up to a millionth of the largest value,
        or a ValueError, or a `PrecisionWarning`. Where the Gram matrix
        is singular up to rounding, s need not be the interpolant of
        minimal norm, only nearly an interpolant and short.

    Examples
    --------
    >>> s = interpolate(Linear(), [1.0, 2.0], [3.0, 6.0])
    >>> s([10.0]).round(6)
    array([30.])
    """
    X = as_sequence(X)
    y = check.vector(y, "y", len(X))
    blank = RKHSFunction(kernel, X, np.zeros(len(X)))
    found = _solve(kernel, X, y)
    if found.twins:
        i, j, _ = found.twins
        raise ValueError("y must be values that a function can have, but "
                         f"points {i} and {j} of X are the same to the "
                         f"kernel and y has {y[i]:.6g} and {y[j]:.6g}")
    s = replace(blank, weights=found.coefficients)
    miss = np.abs(s(X) - y).max()
    if miss > 1e-6 * np.abs(y).max() and found.missing[0] > 0:
        raise ValueError(
            "y must be values that a function of the space can have at X, "
            f"but the nearest misses them by {miss:.3g}: no function of "
            f"norm below {found.least_norm[0]:.3g} has them, and whether a "
            "longer one has cannot be decided at this precision")
    if miss > 1e-6 * np.abs(y).max():
        warnings.warn(f"y is missed by {miss:.3g}: the weights are so "
                      "large that the sums cancel", check.PrecisionWarning,
                      stacklevel=2)
    return s


# %% [13] Projection and interpolation
def project(f: RKHSFunction, X) -> RKHSFunction:
    """Orthogonal projection of f on span{k(x_i, ·)}
    (:prf:ref:`thm-rkhs-projection`).

    Parameters
    ----------
    f : RKHSFunction
    X : sequence of n points
        May repeat points.

    Returns
    -------
    RKHSFunction
        With the values of f at X, and of all such functions the one
        with the smallest norm; with a `PrecisionWarning` where values
        that rounding hides leave no digit of it certain.
    """
    _function(f, "f")
    X = as_sequence(X)
    found = _solve(f.kernel, X, f(X))
    g = RKHSFunction(f.kernel, X, found.coefficients)
    if found.hidden[0] > 0:
        check.certain(_size(g)[0], sum(_size(f - g)),
                      "the norm of the projection")
    return g


# %% [14] How wrong can an interpolant be?
def power_function(kernel: Kernel, X, T) -> np.ndarray:
    """The largest error of interpolation at X for a function of norm 1
    (:prf:ref:`thm-power-function`).

    Parameters
    ----------
    kernel : Kernel
    X : sequence of n points
        Where the function is known.
    T : sequence of m points
        Where the error is wanted.

    Returns
    -------
    (m,) array
        P(t) >= 0, the distance of k(t, ·) from span{k(x_i, ·)}. Where
        rounding leaves no digit of it certain, an upper bound of it,
        with a `PrecisionWarning`. A square below zero by more than
        rounding raises a ValueError: the kernel is not positive definite.
    """
    _space(kernel)
    X, T = _fixed(as_sequence(X)), as_sequence(T, "T")
    diagonal = kernel.diag(T)
    labels = _labels(_joined(X, _fixed(T)))
    known = np.isin(labels[len(X):], labels[:len(X)])
    X = _rows(X, np.unique(labels[:len(X)], return_index=True)[1])
    kappa, roots = kernel(X, T), np.sqrt(np.abs(kernel.diag(X)))
    found = _solve(kernel, X, kappa)
    c = found.coefficients
    # ‖k_t - Σ c_i k_{x_i}‖², whatever c is
    square = diagonal + np.sum(c * (gram_dot(kernel, X, None, c)
                                    - 2 * kappa), axis=0)
    total = (np.sqrt(np.abs(diagonal)) + roots @ np.abs(c)) ** 2
    if (square < -1e-8 * total).any() or diagonal.min() < 0:
        worst = np.argmin(square + 1e-8 * total)
        raise ValueError("kernel must be positive definite, but at point "
                         f"{worst} of T the square of the distance is "
                         f"{square[worst]:.6g}")
    error = (len(X) + 5) * np.finfo(float).eps * total
    sure = found.rank == np.count_nonzero(roots)
    doubt = ~known & ((square <= error) | (not sure))
    bound = np.minimum(np.maximum(square, 0.0) + error, diagonal)
    P = np.sqrt(np.where(known, 0.0, np.where(doubt, bound, square)))
    if doubt.any():
        j = doubt.argmax()
        check.certain(P[j], P[j], f"the power function at point {j} of T")
    return P


# %% [15] From a space to its kernel
def kernel_from_basis(basis: Callable | Sequence[Callable],
                      gram) -> Kernel:
    """The reproducing kernel b(x)' G⁻¹ b(y) of a space of functions
    (:prf:ref:`thm-basis-kernel`).

    Parameters
    ----------
    basis : function, or list of p functions
        A function takes n points and returns their (n, p) array of
        values; a function in a list returns the n values of one basis
        function. A transposed array is refused unless n = p, where the
        mistake cannot be seen.
    gram : (p, p) array
        Inner products of the basis functions, strictly positive definite.

    Returns
    -------
    Kernel

    Examples
    --------
    Straight lines on [-1, 1] with the inner product ∫ f g:

    >>> lines = kernel_from_basis([np.ones_like, lambda x: x],
    ...                           [[2.0, 0.0], [0.0, 2 / 3]])
    >>> lines([0.0, 1.0])
    array([[0.5, 0.5],
           [0.5, 2. ]])
    """
    G = as_points(gram, "gram")
    p = len(G)
    if G.shape != (p, p):
        raise ValueError(f"gram must be square, got shape {G.shape}")
    verdict = is_positive_definite(G)
    if not verdict.strict:
        raise ValueError("gram must be strictly positive definite, as it "
                         "is for linearly independent functions, but "
                         f"{verdict.reason}")
    L, values = cholesky(G, lower=True), _basis_values(basis, p)
    return Mapped(Linear(), lambda X: solve_triangular(
        L, values(X).T, lower=True).T)


# %% [16] From a space to its kernel
def _basis_values(basis, p):
    listed = isinstance(basis, (list, tuple)) and len(basis) == p
    functions = [*basis] if listed else [basis]
    if not all(map(callable, functions)):
        raise ValueError(f"basis must be a function, or a list of {p} "
                         "functions to match gram")

    def values(X):
        if isinstance(X, (list, tuple)) and isinstance(
                X[0], (Real, list, np.ndarray)):
            X = np.asarray(X)
        n = len(X)
        columns = [check.plain_array(b(X), "basis").astype(float)
                   for b in functions]
        for column in columns:
            if column.ndim not in (1, 2) or len(column) != n:
                raise ValueError(f"basis must give one row for each of {n} "
                                 f"points, got shape {column.shape}")
        B = np.hstack([column.reshape(n, -1) for column in columns])
        if B.shape != (n, p) or not np.isfinite(B).all():
            raise ValueError(f"basis must give {p} finite numbers for each "
                             f"of {n} points, got shape {B.shape}")
        return B

    return values


# %% [17] The norm in a sum of spaces
def decompose(f: RKHSFunction) -> tuple[RKHSFunction, RKHSFunction]:
    """The cheapest f = f1 + f2 in a sum of RKHSs
    (:prf:ref:`thm-sum-rkhs`).

    Parameters
    ----------
    f : RKHSFunction
        With a kernel ``k1 + k2``.

    Returns
    -------
    f1, f2 : RKHSFunction
        With the kernels k1 and k2, and ‖f‖² = ‖f1‖² + ‖f2‖².

    Examples
    --------
    >>> f = RKHSFunction(Linear() + Linear(), [1.0], [3.0])
    >>> f1, f2 = decompose(f)
    >>> f([2.0]), f1([2.0]), f2([2.0])
    (array([12.]), array([6.]), array([6.]))
    """
    _function(f, "f")
    if not isinstance(f.kernel, Sum):
        raise ValueError("f must have a kernel that is a sum k1 + k2, got "
                         f"{f.kernel}")
    return (RKHSFunction(f.kernel.first, f.points, f.weights),
            RKHSFunction(f.kernel.second, f.points, f.weights))
