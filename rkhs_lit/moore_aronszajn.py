"""Moore–Aronszajn: every kernel is a space of functions

The exported cells of the chapter ``book/moore_aronszajn.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: c91b673015d954fa

# %% [1] Moore–Aronszajn: every kernel is a space of functions
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points, as_sequence
from rkhs_lit.kernels import (Kernel, Linear, Mapped, Pairs, Sum, gram_dot,
                              is_positive_definite)
from rkhs_lit.riesz import riesz_representer


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
def norm(f: RKHSFunction) -> float:
    """The norm of f in its RKHS, √⟨f, f⟩
    (:prf:ref:`lem-expansion-definite`).

    Parameters
    ----------
    f : RKHSFunction

    Returns
    -------
    float
        0 where rounding leaves a small negative square. A square below
        that is evidence that the kernel is not positive definite, and
        raises a ValueError.
    """
    _function(f, "f")
    # With weights of size one no square overflows or vanishes.
    scale = float(np.abs(f.weights).max())
    if scale == 0:
        return 0.0
    unit = f.weights / scale
    square = float(_finite_sum(unit @ gram_dot(f.kernel, f.points, None,
                                               unit)))
    # 1e-8 allows for kernels that are computed to eight digits.
    diagonal = f.kernel.diag(f.points)
    size = np.abs(unit) @ np.sqrt(np.abs(diagonal))
    if square < -1e-8 * size**2 or diagonal.min() < 0:
        raise ValueError("f must have a positive definite kernel, but its "
                         f"squared norm is {square * scale * scale:.6g}")
    return float(_finite_sum(max(square, 0.0) ** 0.5 * scale))


# %% [9] Projection and interpolation
def _visible(K):
    """Eigenvalues lam and columns W with W' K W = diag(lam), for the
    directions in which K is larger than its rounding errors."""
    d = np.sqrt(np.maximum(K.diagonal(), 0.0))
    d[d == 0] = 1.0
    lam, U = eigh(K / d[:, None] / d)
    if lam[0] < -1e-8 * abs(lam[-1]):
        raise ValueError("kernel must be positive definite, but its Gram "
                         f"matrix has the scaled eigenvalue {lam[0]:.6g}")
    kept = lam > len(K) * np.finfo(float).eps * lam[-1]
    return lam[kept], U[:, kept] / d[:, None]


def _one_value_each(K, y):
    """Points with equal rows of K are one point to the functions."""
    _, first, group = np.unique(K, axis=0, return_index=True,
                                return_inverse=True)
    twin = first[group.reshape(-1)]
    gap = np.abs(y - y[twin])
    wrong = np.flatnonzero(gap > 1e-9 * np.maximum(abs(y), abs(y[twin])))
    if wrong.size:
        i, j = twin[wrong[0]], wrong[0]
        raise ValueError("y must be values that a function can have, but "
                         f"points {i} and {j} of X are the same to the "
                         f"kernel and y has {y[i]:.6g} and {y[j]:.6g}")


# %% [10] Projection and interpolation
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
        s with s(x_i) = y_i; where the Gram matrix is singular up to
        rounding, up to a millionth of the largest value.

    Examples
    --------
    >>> s = interpolate(Linear(), [1.0, 2.0], [3.0, 6.0])
    >>> s([10.0]).round(6)
    array([30.])
    """
    X = as_sequence(X)
    y = check.vector(y, "y", len(X))
    blank = RKHSFunction(kernel, X, np.zeros(len(X)))
    K = kernel(X)
    try:
        c = riesz_representer(K, y)
    except ValueError:
        lam, W = _visible(K)
        _one_value_each(K, y)
        c = W @ (W.T @ y / lam)
        miss = np.abs(K @ c - y).max()
        if miss > 1e-6 * np.abs(y).max():
            raise ValueError(
                "y must be values that a function of the space can have at "
                f"X, but the nearest misses them by {miss:.3g}") from None
    return replace(blank, weights=c)


# %% [11] Projection and interpolation
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
        with the smallest norm.
    """
    _function(f, "f")
    X = as_sequence(X)
    lam, W = _visible(f.kernel(X))
    return RKHSFunction(f.kernel, X, W @ (W.T @ f(X) / lam))


# %% [12] How wrong can an interpolant be?
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
        P(t) >= 0, the distance of k(t, ·) from span{k(x_i, ·)}; 0 where
        rounding leaves a small negative square. A square below that
        raises a ValueError: the kernel is not positive definite.
    """
    _space(kernel)
    X, T = as_sequence(X), as_sequence(T, "T")
    lam, W = _visible(kernel(X))
    parts = ((W / np.sqrt(lam)).T @ kernel(X, T)) ** 2
    diagonal = kernel.diag(T)
    square = diagonal - parts.sum(axis=0)
    # Each eigenvalue is known up to n ε times the largest.
    doubt = len(X) * np.finfo(float).eps * lam.max(initial=0.0) / lam
    least = -1e-8 * np.abs(diagonal) - doubt @ parts
    if (square < least).any() or diagonal.min() < 0:
        worst = np.argmin(square - least)
        raise ValueError("kernel must be positive definite, but at point "
                         f"{worst} of T the square of the distance is "
                         f"{square[worst]:.6g}")
    return np.sqrt(np.maximum(square, 0.0))


# %% [13] From a space to its kernel
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


# %% [14] From a space to its kernel
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


# %% [15] The norm in a sum of spaces
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
