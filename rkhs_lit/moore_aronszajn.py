"""Moore–Aronszajn: every kernel is a space of functions

The exported cells of the chapter ``book/moore_aronszajn.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: f7a6fec345e6a99d

# %% [1] Moore–Aronszajn: every kernel is a space of functions
import math
import operator
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from scipy.linalg import cholesky, solve_triangular

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points, as_sequence
from rkhs_lit.kernels import (TILE, Kernel, Linear, Mapped, Pairs, Sum,
                              is_positive_definite)
from rkhs_lit.riesz import GramSolution, gram_solve


# %% [2] Fine print
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


def _fixed(points, name):
    points = as_sequence(points, name)
    if isinstance(points, Pairs):
        parts = points.first, points.second
        fixed = [_fixed(part, name) for part in parts]
        same = all(map(operator.is_, parts, fixed))
        return points if same else Pairs(*fixed)
    if isinstance(points, (list, tuple)):
        return points if isinstance(points, _Fixed) else _Fixed(
            map(_copied, points))
    if isinstance(points, np.ndarray) and points.dtype.kind in "biuf" and (
            not np.isfinite(points).all()):
        raise ValueError(f"{name} must be finite")
    return _copied(points)


# %% [3] Fine print
def _rows(points, rows):
    if isinstance(points, Pairs):
        return Pairs(_rows(points.first, rows), _rows(points.second, rows))
    if isinstance(points, np.ndarray):
        some = points[rows]
        some.setflags(write=False)
        return some
    return _Fixed(points[rows] if isinstance(rows, slice) else
                  [points[i] for i in rows])


def _joined(a, b):
    if isinstance(a, Pairs) and isinstance(b, Pairs):
        return Pairs(_joined(a.first, b.first),
                     _joined(a.second, b.second))
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return [*a, *b]
    if a.ndim != b.ndim:                     # n points of the line
        a, b = (p.reshape(len(p), -1) for p in (a, b))
    return np.concatenate([a, b])


# %% [4] Fine print
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
    if isinstance(points, Pairs):
        points = np.column_stack([*map(_labels, (points.first,
                                                 points.second))])
    if isinstance(points, np.ndarray) and points.dtype.kind in "biuf":
        rows = points.reshape(len(points), -1)
        return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    seen = {}
    return np.array([seen.setdefault(_key(x), len(seen)) for x in points])


def _merged(f):
    """f with each of its points once."""
    _, first, group = np.unique(f.features.labels(), return_index=True,
                                return_inverse=True)
    if len(first) == len(group):
        return f
    parts = np.split(f.weights[np.argsort(group, kind="stable")],
                     np.cumsum(np.bincount(group))[:-1])
    return f.features[first] @ [math.fsum(part) for part in parts]


# %% [5] Functions as data
@dataclass(frozen=True, eq=False, repr=False)
class Features(check.Record):
    """The map Φ that makes a function from weights, Φα = Σ α_i k(x_i, ·)
    (:prf:ref:`def-synthesis`).

    The points, in an array, a list of any objects or `Pairs`, are checked,
    copied and prepared for the kernel when it is made, and never again;
    error messages call them and the kernel by the two names. ``len(Phi)``
    is their number n, ``Phi[rows]`` keeps some of them, ``Phi @ w`` is the
    function Φw.

    >>> Phi = Features(Linear(), [1.0, 2.0])
    >>> Phi.gram()
    array([[1., 2.],
           [2., 4.]])
    >>> (Phi @ [3.0, -1.0])([5.0])
    array([5.])
    """

    kernel: Kernel
    points: Sequence
    name: str = "X"
    kernel_name: str = "kernel"
    seen: Sequence | None = None      # the points as the kernel wants them
    columns: Sequence | None = None   # their names in a data frame

    def __post_init__(self):
        kernel, points, seen = self.kernel, self.points, self.seen
        columns = self.columns or getattr(points, "columns", None)
        if isinstance(points, Features):             # checked before
            if self.name == "X" and self.kernel_name == "kernel":
                vars(self).update(name=points.name,
                                  kernel_name=points.kernel_name)
            seen = points.seen if points.kernel is kernel else None
            points = points.points
        if seen is None:
            known = isinstance(kernel, Kernel)
            if not (known and kernel.positive_definite):
                wanted = "positive definite" if known else "a Kernel"
                raise ValueError(f"{self.kernel_name} must be {wanted}, "
                                 f"got {kernel!r}")
            if kernel._prepare is as_points:
                rows = as_points(points, self.name)
                points = np.array(rows).reshape(np.shape(points))
                points.setflags(write=False)
                seen = points.reshape(rows.shape)
            else:
                points = _fixed(points, self.name)
                seen = kernel._prepare(points, self.name)
        vars(self).update(points=points, seen=seen, columns=columns,
                          n=len(seen))

    def __repr__(self):
        return f"Features({self.kernel}, n={self.n})"

    def __len__(self):
        return self.n

    def __getitem__(self, rows) -> "Features":
        seen = points = _rows(self.seen, rows)
        if self.points is not self.seen:
            points = _rows(self.points, rows)
        return replace(self, points=points, seen=seen)

    def __matmul__(self, weights) -> "RKHSFunction":
        return RKHSFunction(self.kernel, self, weights)

    def labels(self) -> np.ndarray:
        """A number for each point, the same for equal points."""
        return _labels(self.points)

    def joined(self, other: "Features") -> "Features":
        """The map [Φ Ψ] for the points of both, one after the other."""
        other = Features(self.kernel, other, "other")
        self.gram(other, slice(1), slice(1))       # points of one kind
        return Features(self.kernel, _joined(self.points, other.points),
                        self.name, self.kernel_name, columns=self.columns)

    def gram(self, other: "Features | None" = None, rows=slice(None),
             columns=slice(None)) -> np.ndarray:
        """The Gram matrix Φ*Φ, or Φ*Ψ; or these rows and columns of it."""
        Psi = self if other is None else other
        if not isinstance(Psi, Features):
            raise ValueError("other must be Features, got "
                             f"{type(Psi).__name__}")
        if self.columns is not None:
            check.same_columns(self, Psi)
        d, e = (getattr(F.seen, "shape", ())[1:] for F in (self, Psi))
        if d and e and d != e:
            raise ValueError(f"{self.name} must have points in dimension "
                             f"{e[0]} like {Psi.name}, got dimension "
                             f"{d[0]}")
        X, Y = self.seen[rows], Psi.seen[columns]
        if other is None and rows == columns:     # half the work
            Y = X
        if len(X) * len(Y) > TILE**2:
            return self.kernel._matrix(X, Y, self.kernel_name)
        with np.errstate(over="ignore", invalid="ignore"):
            K = self.kernel._gram(X, Y)
        if not np.isfinite(K).all():
            raise ValueError(f"{self.kernel_name} gave a value that is not "
                             "finite: the points are too large")
        return K

    def dot(self, W, other: "Features | None" = None) -> np.ndarray:
        """The product Φ*Φ W, or Φ*Ψ W, without a stored Gram matrix."""
        Psi = self if other is None else other
        rows, W = as_points(W, "W"), np.asarray(W)
        if not isinstance(Psi, Features) or len(rows) != Psi.n:
            raise ValueError("W must have one row for each point of other, "
                             f"which are Features, got shape {W.shape}")
        with np.errstate(over="ignore", invalid="ignore"):
            if self.n * Psi.n <= TILE**2:
                values = self.gram(other) @ W
            else:
                self.gram(other, slice(1), slice(1))   # points of one kind
                values = self.kernel._dot(self.seen, Psi.seen, W,
                                          self.kernel_name)
        if not np.isfinite(values).all():
            raise ValueError("weights are too large: the sum over the "
                             "points overflows")
        return values

    def sample(self, f: "RKHSFunction") -> np.ndarray:
        """The values Φ*f of a function at the points."""
        as_function(f, "f", self.kernel)
        same = f.points is self.points
        return self.dot(f.weights, None if same else f.features)

    def diag(self) -> np.ndarray:
        """The diagonal of Φ*Φ, the numbers k(x_i, x_i)."""
        with np.errstate(over="ignore", invalid="ignore"):
            d = self.kernel._diag(self.seen)
        if not d.max() < np.inf:
            raise ValueError(f"{self.kernel_name} gave a value that is not "
                             "finite: the points are too large")
        if d.min() < 0:
            raise ValueError(
                f"{self.kernel_name} must be positive definite, but at two "
                f"equal points it is {d.min():.6g}")
        return d

    def unit(self) -> tuple[float, "Features"]:
        """c and the map for the kernel k / c, between one and two at its
        largest; c is a power of two, so that no digit changes."""
        largest = float(self.diag().max())
        c = 2.0 ** min(max(math.frexp(largest)[1] - 1, -1000), 1000)
        return (c, self) if c == 1 else (
            c, replace(self, kernel=1 / c * self.kernel))


# %% [6] Functions as data
def paired(k: Kernel, l: Kernel, X, Y, at_least: int = 1,
           ) -> tuple[Features, Features]:
    """The maps Φ and Ψ of pairs (x_i, y_i), at least so many
    (:prf:ref:`def-synthesis`).

    >>> Phi, Psi = paired(Linear(), Linear(), [1.0, 2.0], [3.0, 4.0])
    >>> Phi.gram() * Psi.gram()
    array([[ 9., 24.],
           [24., 64.]])
    """
    Phi, Psi = Features(k, X, "X", "k"), Features(l, Y, "Y", "l")
    if Phi.n != Psi.n:
        raise ValueError(f"Y must have as many points as X ({Phi.n}), got "
                         f"{Psi.n}")
    if Phi.n < at_least:
        raise ValueError(f"X must hold at least {at_least} points, got "
                         f"{Phi.n}")
    return Phi, Psi


# %% [7] Functions as data
@dataclass(frozen=True, eq=False, repr=False)
class RKHSFunction(check.Record, check.Vectors):
    """The function f = Σ α_i k(x_i, ·) (:prf:ref:`lem-expansion-inner`).

    Functions with one kernel can be added and multiplied by numbers.

    Parameters
    ----------
    kernel, points
        As in `Features`.
    weights : (n,) array
        The numbers α_i.

    >>> f = RKHSFunction(Linear(), [1.0, 2.0], [3.0, -1.0])   # t -> 1 t
    >>> (2 * f + f)([5.0, 7.0])
    array([15., 21.])
    """

    kernel: Kernel
    points: Sequence
    weights: np.ndarray

    def __post_init__(self):
        Phi = Features(self.kernel, self.points, "points")
        vars(self).update(
            points=Phi.points, features=Phi,
            weights=check.vector(self.weights, "weights", Phi.n))

    def __repr__(self):
        return f"RKHSFunction({self.kernel}, n={len(self.points)})"

    def __call__(self, T) -> np.ndarray:
        """Values at the points T, an array of as many numbers."""
        return Features(self.kernel, T, "T").dot(self.weights,
                                                 self.features)

    def __add__(self, other):
        if not isinstance(other, RKHSFunction):
            return NotImplemented
        as_function(other, "g", self.kernel)
        Phi, Psi = self.features, other.features
        if Phi.points is Psi.points:
            return Phi @ (self.weights + other.weights)
        return Phi.joined(Psi) @ np.concatenate([self.weights,
                                                 other.weights])

    def __mul__(self, c):
        if not isinstance(c, Real):
            return NotImplemented
        return self.features @ (check.number(c, "the factor")
                                * self.weights)

    def __truediv__(self, c):
        if not isinstance(c, Real):
            return NotImplemented
        if (c := check.number(c, "the divisor")) == 0:
            raise ValueError("the divisor must not be 0")
        with np.errstate(over="ignore"):  # infinite weights are refused
            return self.features @ (self.weights / c)


# %% [8] Functions as data
def as_function(f, name: str = "f", kernel: Kernel | None = None):
    """The function itself, if it is an `RKHSFunction`, and in the space
    of this kernel (:prf:ref:`lem-expansion-inner`)."""
    if not isinstance(f, RKHSFunction):
        raise ValueError(f"{name} must be an RKHSFunction, got "
                         f"{type(f).__name__}")
    if not (kernel is None or f.kernel is kernel or f.kernel == kernel):
        raise ValueError(f"{name} must have the same kernel, {kernel}, got "
                         f"{f.kernel}")
    return f


def inner(f: RKHSFunction, g: RKHSFunction) -> float:
    """The inner product Σ α_i β_j k(x_i, y_j) of two functions with the
    same kernel, a tile at a time (:prf:ref:`thm-moore-aronszajn`)."""
    g = as_function(g, "g", as_function(f).kernel)
    with np.errstate(over="ignore"):
        return float(check.finite(f.weights @ f.features.sample(g),
                                  "the sum over f and g"))


# %% [9] Functions as data
def _size(f):
    """The norm of f, and how far rounding can have moved it."""
    f = _merged(f)
    # With weights of size one no square overflows or vanishes.
    scale = float(np.abs(f.weights).max())
    if scale == 0:
        return 0.0, 0.0
    unit = f.weights / scale
    square = float(unit @ f.features.dot(unit))
    total = (np.abs(unit) @ np.sqrt(f.features.diag())) ** 2
    if square < -1e-8 * total:
        raise ValueError("f must have a positive definite kernel, but its "
                         f"squared norm is {square * scale * scale:.6g}")
    error = float((len(unit) + 4) * np.finfo(float).eps * total)
    low, size, high = (check.finite(max(q, 0.0) ** 0.5 * scale, "f")
                       for q in (square - error, square, square + error))
    return size, max(size - low, high - size)


# %% [10] Functions as data
def norm(f: RKHSFunction) -> float:
    """The norm of f in its RKHS, √⟨f, f⟩
    (:prf:ref:`lem-expansion-definite`).

    A `PrecisionWarning` says that terms cancel so far that no digit is
    certain (:prf:ref:`prop-norm-error`). A square below zero by more than
    that is evidence that the kernel is not positive definite, and raises
    a ValueError.
    """
    as_function(f)
    return check.certain(*_size(f), "norm(f)")


# %% [11] Projection and interpolation
def _solve(Phi, values) -> GramSolution:
    """K c = values, for a kernel that is right to eight digits."""
    return gram_solve(Phi.gram(), values, slack=1e-8,
                      name=f"{Phi.kernel_name} must be positive definite: "
                      "its Gram matrix")


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
    Phi = Features(kernel, X)
    y = check.vector(y, "y", Phi.n)
    found = _solve(Phi, y)
    if found.twins:
        i, j, _ = found.twins
        raise ValueError("y must be values that a function can have, but "
                         f"points {i} and {j} of X are the same to the "
                         f"kernel and y has {y[i]:.6g} and {y[j]:.6g}")
    s = Phi @ found.coefficients
    miss = np.abs(Phi.sample(s) - y).max()
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

    It has the values of f at X, and of all such functions the smallest
    norm. X may repeat points. A `PrecisionWarning` says that values which
    rounding hides leave no digit of it certain.
    """
    as_function(f)
    Phi = Features(f.kernel, X)
    found = _solve(Phi, Phi.sample(f))
    g = Phi @ found.coefficients
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
    Phi, at_T = Features(kernel, X), Features(kernel, T, "T")
    diagonal, n = at_T.diag(), Phi.n
    labels = Phi.joined(at_T).labels()
    known = np.isin(labels[n:], labels[:n])
    Phi = Phi[np.unique(labels[:n], return_index=True)[1]]
    kappa, roots = Phi.gram(at_T), np.sqrt(Phi.diag())
    found = _solve(Phi, kappa)
    c = found.coefficients
    # ‖k_t - Φc‖², whatever c is
    square = diagonal + np.sum(c * (Phi.dot(c) - 2 * kappa), axis=0)
    total = (np.sqrt(diagonal) + roots @ np.abs(c)) ** 2
    if (square < -1e-8 * total).any():
        worst = np.argmin(square + 1e-8 * total)
        raise ValueError("kernel must be positive definite, but at point "
                         f"{worst} of T the square of the distance is "
                         f"{square[worst]:.6g}")
    error = (Phi.n + 5) * np.finfo(float).eps * total
    sure = found.rank == np.count_nonzero(roots)
    doubt = ~known & ((square <= error) | (not sure))
    bound = np.minimum(np.maximum(square, 0.0) + error, diagonal)
    P = np.sqrt(np.where(known, 0.0, np.where(doubt, bound, square)))
    if doubt.any():
        j = doubt.argmax()
        check.certain(P[j], P[j], f"the power function at point {j} of T")
    return P


# %% [15] From a space to its kernel
@dataclass(frozen=True, eq=False)
class _OrthonormalBasis(check.Record):
    """The values e(x) = L⁻¹ b(x) at points."""

    functions: Sequence[Callable]
    L: np.ndarray

    def __call__(self, X):
        if isinstance(X, (list, tuple)) and isinstance(
                X[0], (Real, list, np.ndarray)):
            X = np.asarray(X)
        parts = [check.real_array(b(X), "basis") for b in self.functions]
        n, p = len(X), len(self.L)
        for b in parts:
            if b.shape[:1] != (n,) or b.size != n * p / len(parts):
                raise ValueError(f"basis must give one row for each of {n} "
                                 f"points, {p} numbers in all, got shape "
                                 f"{b.shape}")
        B = np.hstack([b.reshape(n, -1) for b in parts])
        return solve_triangular(self.L, B.T, lower=True).T


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
    if G.shape != (len(G), len(G)):
        raise ValueError(f"gram must be square, got shape {G.shape}")
    verdict = is_positive_definite(G)
    if not verdict.strict:
        raise ValueError("gram must be strictly positive definite, as it "
                         "is for linearly independent functions, but "
                         f"{verdict.reason}")
    listed = isinstance(basis, (list, tuple)) and len(basis) == len(G)
    functions = tuple(basis) if listed else (basis,)
    if not all(map(callable, functions)):
        raise ValueError(f"basis must be a function, or a list of {len(G)} "
                         "functions to match gram")
    L = check.frozen(cholesky(G, lower=True))
    return Mapped(Linear(), _OrthonormalBasis(functions, L))


# %% [16] The norm in a sum of spaces
def decompose(f: RKHSFunction) -> tuple[RKHSFunction, RKHSFunction]:
    """The cheapest f = f1 + f2 in a sum of RKHSs: for f with a kernel
    ``k1 + k2`` functions with the kernels k1 and k2, and
    ‖f‖² = ‖f1‖² + ‖f2‖² (:prf:ref:`thm-sum-rkhs`).

    >>> f = RKHSFunction(Linear() + Linear(), [1.0], [3.0])
    >>> f1, f2 = decompose(f)
    >>> f([2.0]), f1([2.0]), f2([2.0])
    (array([12.]), array([6.]), array([6.]))
    """
    as_function(f)
    if not isinstance(f.kernel, Sum):
        raise ValueError("f must have a kernel that is a sum k1 + k2, got "
                         f"{f.kernel}")
    return tuple(RKHSFunction(k, f.points, f.weights)
                 for k in (f.kernel.first, f.kernel.second))
