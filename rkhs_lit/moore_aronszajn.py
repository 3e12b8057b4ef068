"""Moore–Aronszajn: every kernel is a space of functions"""
# The exported cells of book/moore_aronszajn.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 918aa541b59ebb23

# %% [1] Moore–Aronszajn: every kernel is a space of functions
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real

import numpy as np
from scipy.linalg import cholesky, solve_triangular

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points, as_sequence
from rkhs_lit.kernels import (TILE, Kernel, Linear, Mapped, Pairs,
                              is_positive_definite)

# %% [2] Fine print
class _Fixed(tuple):
    """A list of points that its maker cannot change any more."""


def _copied(item):
    if isinstance(item, list):
        return [*map(_copied, item)]
    shared = isinstance(item, np.ndarray) and (
        item.flags.writeable or item.base is not None)
    return check.frozen(item) if shared else item


def _fixed(points, name):
    points = as_sequence(points, name)
    if isinstance(points, Pairs):
        return Pairs(_fixed(points.first, name),
                     _fixed(points.second, name))
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
        return Pairs(_joined(a.first, b.first), _joined(a.second, b.second))
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return [*a, *b]
    if a.ndim != b.ndim:                     # n points of the line
        a, b = (p.reshape(len(p), -1) for p in (a, b))
    return np.concatenate([a, b])


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
        points = [*zip(_labels(points.first), _labels(points.second))]
    elif isinstance(points, np.ndarray) and points.dtype.kind in "biuf":
        points = points + 0                  # where -0.0 is 0.0
    first = {}
    return np.array([first.setdefault(_key(x), i)
                     for i, x in enumerate(points)])

# %% [4] Fine print
def _merged(f):
    """f with each of its points once."""
    labels = f.features.labels()
    first, many = np.unique(labels, return_counts=True)
    if len(first) == len(labels):
        return f
    parts = np.split(f.weights[np.argsort(labels, kind="stable")],
                     np.cumsum(many)[:-1])
    return f.features[first] @ [*map(math.fsum, parts)]


def norm_and_error(f: "RKHSFunction") -> tuple[float, float]:
    """The norm of f, and how far rounding can have moved it
    (:prf:ref:`prop-norm-error`)."""
    f = _merged(as_function(f))
    # With weights of size one no square overflows or vanishes.
    scale = float(np.abs(f.weights).max()) or 1.0
    unit = f.weights / scale
    square = float(unit @ f.features.dot(unit))
    total = (np.abs(unit) @ np.sqrt(f.features.diag())) ** 2
    if square < -1e-8 * total:
        raise ValueError("f must have a positive definite kernel, but its "
                         f"squared norm is {square * scale * scale:.6g}")
    error = float((len(unit) + 4) * np.finfo(float).eps * total)
    size = max(square, 0.0) ** 0.5
    error /= max(size, error ** 0.5) or 1.0
    return tuple(check.finite(q * scale, "f") for q in (size, error))

# %% [5] Fine print
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


def paired(k: Kernel, l: Kernel, X, Y, at_least: int = 1,
           ) -> "tuple[Features, Features]":
    """The maps Φ and Ψ of pairs (x_i, y_i), at least so many
    (:prf:ref:`def-synthesis`).

    >>> paired(Linear(), Linear(), [1.0, 2.0], [3.0, 4.0])[1].diag()
    array([ 9., 16.])
    """
    Phi, Psi = Features(k, X, "X", "k"), Features(l, Y, "Y", "l")
    if Phi.n != Psi.n:
        raise ValueError(f"Y must have as many points as X ({Phi.n}), got "
                         f"{Psi.n}")
    if Phi.n < at_least:
        raise ValueError(f"X must hold at least {at_least} points, got "
                         f"{Phi.n}")
    return Phi, Psi

# %% [6] Functions as data
@dataclass(frozen=True, eq=False, repr=False)
class Features(check.Record):
    """The map Φ that makes a function from weights, Φα = Σ α_i k(x_i, ·)
    (:prf:ref:`def-synthesis`).

    The n = ``len(Phi)`` points, an array, a list of any objects or
    `Pairs`, are checked and copied once, here; errors call them and the
    kernel by the two names. ``Phi[rows]`` keeps some of them.

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
        names = getattr(points, "columns", None)
        if isinstance(points, Features):             # checked before
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
        vars(self).update(
            points=points, seen=seen, n=len(seen),
            columns=self.columns if names is None else tuple(names))

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
        """For each point the place of the first that is equal to it."""
        return _labels(self.points)

    def joined(self, other: "Features") -> "Features":
        """The map [Φ Ψ] for the points of both, one after the other."""
        other = Features(self.kernel, other, "other")
        other.gram(self, slice(1), slice(1))       # points of one kind
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
        if d != e:
            check.same_dimension(self.seen, Psi.seen, self.name, Psi.name)
        X, same = self.seen[rows], Psi is self and rows == columns
        Y = X if same else Psi.seen[columns]      # half the work if same
        if len(X) * len(Y) > TILE**2:
            return self.kernel._matrix(X, Y, self.kernel_name)
        with np.errstate(over="ignore", invalid="ignore"):
            K = self.kernel._gram(X, Y)
        if not np.isfinite(K).all():
            raise ValueError(f"{self.kernel_name} gave a value that is not "
                             "finite: it overflows")
        return K

    def summands(self) -> Callable:
        """What gives the entries of Φ*Φ for two slices of the points, as
        exact as a sum over many of them needs (:prf:ref:`prop-tiles`)."""
        return self.kernel._summands(self.seen) or partial(self.gram, None)

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
        if not 0 <= d.min() <= d.max() < np.inf:
            raise ValueError(
                f"{self.kernel_name} must be positive definite and finite, "
                f"but k(x, x) ranges from {d.min():.6g} to {d.max():.6g}")
        return d

    def unit(self) -> tuple[float, "Features"]:
        """c and the map for the kernel k / c, between one and two at its
        largest; c is a power of two, so that no digit changes."""
        largest = float(self.diag().max())
        c = 2.0 ** min(max(math.frexp(largest)[1] - 1, -1000), 1000)
        return (c, self) if c == 1 else (
            c, replace(self, kernel=1 / c * self.kernel))

# %% [7] Functions as data
@dataclass(frozen=True, eq=False, repr=False)
class RKHSFunction(check.Record, check.Vectors):
    """The function f = Σ α_i k(x_i, ·) (:prf:ref:`lem-expansion-inner`).

    Kernel and points are those of a `Features`, the weights the numbers
    α_i. Such functions can be added and multiplied by numbers.

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
        a, b = self.weights, other.weights
        if self.points is other.points:
            return self.features @ (a + b)
        return self.features.joined(other.features) @ np.append(a, b)

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
def inner(f: RKHSFunction, g: RKHSFunction) -> float:
    """The inner product Σ α_i β_j k(x_i, y_j) of two functions with the
    same kernel, a tile at a time (:prf:ref:`thm-moore-aronszajn`)."""
    g = as_function(g, "g", as_function(f).kernel)
    with np.errstate(over="ignore"):
        return float(check.finite(f.weights @ f.features.sample(g),
                                  "the sum over f and g"))

# %% [9] Functions as data
def norm(f: RKHSFunction) -> float:
    """The norm of f in its RKHS, √⟨f, f⟩
    (:prf:ref:`lem-expansion-definite`).

    A `PrecisionWarning` says that terms cancel and no digit is certain; a
    square below zero by more than eight digits raises a ValueError.
    """
    return check.certain(*norm_and_error(f), "norm(f)")

# %% [10] From a space to its kernel
@dataclass(frozen=True)
class _OrthonormalBasis:
    """The values e(x) = L⁻¹ b(x) at points."""

    functions: tuple[Callable, ...]
    L: tuple[tuple[float, ...], ...]       # its rows

    def __call__(self, X):
        if isinstance(X, (list, tuple)) and isinstance(
                X[0], (Real, list, np.ndarray)):
            X = np.asarray(X)
        parts = [check.real_array(b(X), "basis") for b in self.functions]
        n, p, shapes = len(X), len(self.L), {b.shape for b in parts}
        if {s[:1] for s in shapes} != {(n,)} or (
                sum(b.size for b in parts) != n * p):
            raise ValueError(f"basis must give one row for each of {n} "
                             f"points, {p} numbers in all, got {shapes}")
        B = np.column_stack(parts)
        return solve_triangular(self.L, B.T, lower=True).T


def kernel_from_basis(basis: Callable | Sequence[Callable], gram) -> Kernel:
    """The reproducing kernel b(x)' G⁻¹ b(y) of a space of functions
    (:prf:ref:`thm-basis-kernel`).

    The basis is a function that takes n points and returns an (n, p) array
    of values, or a list of p functions that return n values each; `gram`
    has the inner products of the p functions.

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
        raise ValueError("gram must be strictly positive definite, as for "
                         f"independent functions, but {verdict.reason}")
    listed = isinstance(basis, (list, tuple)) and len(basis) == len(G)
    functions = tuple(basis) if listed else (basis,)
    if not all(map(callable, functions)):
        raise ValueError(f"basis must be a function, or a list of {len(G)} "
                         "functions to match gram")
    L = tuple(map(tuple, cholesky(G, lower=True).tolist()))
    return Mapped(Linear(), _OrthonormalBasis(functions, L))
