"""Kernels on vectors: features one can list"""
# The exported cells of book/kernels.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: c9153c944d1ac81c

# %% [1] Kernels on vectors: features one can list
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement

import numpy as np
from scipy.spatial.distance import cdist

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points, as_sequence
from rkhs_lit.rules import (Conjugated, Definiteness, Delta, FeatureKernel,
                            FunctionKernel, Kernel, Linear, Mapped, Pairs,
                            Power, Product, Scaled, Sum, TensorProduct,
                            as_kernel, checked, is_positive_definite,
                            normalised, substrings, words)
from rkhs_lit.tiles import TILE, reduce_tiles

# %% [2] Polynomial kernels, and all their monomials
class _OnVectors(Kernel):
    _prepare = staticmethod(as_points)
    _diag = staticmethod(lambda X: np.ones(len(X)))        # k(x, x) = 1


class _OfProduct(_OnVectors):
    def _gram(self, X, Y):
        return self._of(X @ Y.T)

    def _diag(self, X):
        return self._of(np.sum(X**2, axis=1))


@dataclass(frozen=True)
class Polynomial(_OfProduct):
    """The kernel (⟨x, y⟩ + c)^degree for degree >= 1 and c >= 0, which
    is homogeneous if c = 0 (:prf:ref:`lem-polynomial`)."""

    degree: int = checked(partial(check.whole, least=1))
    c: float = checked(partial(
        check.nonnegative, why=": it is no kernel if c < 0"), default=1.0)

    def _of(self, z):
        return (z + self.c) ** self.degree


def polynomial_features(X, degree: int, c: float = 1.0) -> np.ndarray:
    """All monomials of n points, weighted so that their inner products are
    (⟨x, y⟩ + c)^degree (:prf:ref:`thm-monomials`): C(d + degree, degree)
    columns if c > 0, C(d + degree - 1, degree) if c = 0.

    The features of (xy + 1)² on the line are 1, √2 x and x²:

    >>> polynomial_features([3.0], 2) ** 2
    array([[ 1., 18., 81.]])
    """
    X, degree = as_points(X), check.whole(degree, "degree", 0)
    if check.nonnegative(c, "c") > 0:
        X = np.column_stack([np.full(len(X), math.sqrt(c)), X])
    multisets = list(combinations_with_replacement(range(X.shape[1]),
                                                   degree))
    weights = [math.factorial(degree) / math.prod(
        math.factorial(j) for j in Counter(chosen).values())
        for chosen in multisets]
    features = np.sqrt(weights) * np.ones((len(X), 1))
    with np.errstate(over="ignore"):
        for column in np.array(multisets, dtype=int).T:
            features *= X[:, column]
    return check.finite(features, "degree")

# %% [3] Volterra filters are linear
def lag_vectors(signal, memory: int) -> np.ndarray:
    """The last `memory` values at each time, newest first, as the rows of
    a (T - memory + 1, memory) array (:prf:ref:`prop-volterra`).

    >>> lag_vectors([1.0, 2.0, 3.0, 4.0], 2)
    array([[2., 1.],
           [3., 2.],
           [4., 3.]])
    """
    signal = check.vector(signal, "signal")
    memory = check.whole(memory, "memory", 1)
    if memory > len(signal):
        raise ValueError(f"memory must be at most the signal's length "
                         f"{len(signal)}, got {memory}")
    windows = np.lib.stride_tricks.sliding_window_view(signal, memory)
    return windows[:, ::-1].copy()

# %% [4] Taylor series
@dataclass(frozen=True)
class Exponential(_OfProduct):
    """The kernel exp⟨x, y⟩ (:prf:ref:`exm-exponential`)."""

    _of = staticmethod(np.exp)

# %% [5] Taylor series
def _terms(coefficients, radius, R):
    """The a_n that matter for |z| <= R."""
    if not callable(coefficients):
        return coefficients
    if R == 0:
        return [check.nonnegative(coefficients(0), "coefficients: a_0")]
    rho = 2 * R if radius == np.inf else math.sqrt(R) * radius**0.5
    ratio = math.log(R / rho)
    terms, largest, bound, size, last = [], -np.inf, -np.inf, np.inf, 0
    for n in range(100_000):
        a = check.nonnegative(coefficients(n), f"coefficients: a_{n}")
        terms.append(a)
        if a > 0:
            size, last = math.log(a) + n * math.log(R), n    # of a_n R^n
            largest = max(largest, size)
            bound = max(bound, size - n * ratio)           # of a_n rho^n
        tail = bound + (n + 1) * ratio - math.log1p(-R / rho)
        tiny = largest + math.log(np.finfo(float).eps)
        if n >= 20 and max(tail, size) < tiny:
            return terms
        if n > last + 50:
            raise ValueError("coefficients vanish before the series has "
                             "converged: they underflow or have a gap; "
                             "give them as a sequence")
    raise ValueError("X is too near the radius of convergence: the series "
                     "needs more than 100 000 terms")

# %% [6] Taylor series
@dataclass(frozen=True)
class Taylor(_OfProduct):
    """The kernel Σ a_n ⟨x, y⟩^n with a_n >= 0 (:prf:ref:`thm-taylor`).

    A sequence of coefficients is the whole series, a function of n gives
    all a_n. Points must have ‖x‖² < radius, the radius of convergence.

    >>> geometric = Taylor(lambda n: 1.0, radius=1.0)   # 1 / (1 - xy)
    >>> geometric([0.5, 0.9], [0.5]).ravel().round(6)
    array([1.333333, 1.818182])
    """

    coefficients: Sequence | Callable
    radius: float = np.inf

    def __post_init__(self):
        vars(self).update(radius=check.positive(
            self.radius, "radius", infinite=True))
        if not callable(self.coefficients):
            vars(self).update(coefficients=tuple(check.nonnegative(
                a, f"coefficients: a_{n}") for n, a in enumerate(
                    as_sequence(self.coefficients, "coefficients"))))

    def _prepare(self, X, name):
        X = as_points(X, name)
        with np.errstate(over="ignore"):
            largest = np.sum(X**2, axis=1).max()
        if not largest < self.radius:
            raise ValueError(f"{name} must lie inside the radius of conver"
                             f"gence: ‖x‖² < {self.radius}, got "
                             f"{largest:.6g}")
        return X

    def _of(self, z):
        value, R = np.zeros_like(z), np.abs(z).max()
        for a in reversed(_terms(self.coefficients, self.radius, R)):
            value = value * z + a
        return value

# %% [7] The Gaussian kernel, and two of its feature maps
def _product(A, B):
    """A @ B, in blocks so small that BLAS starts no threads, which would
    be in the way of those that the tiles run on."""
    AB, rows = np.empty((len(A), B.shape[1])), max(32, 250_000 // B.size)
    few = max(8, 250_000 // (rows * len(B)))
    for i in range(0, len(A), rows):
        for j in range(0, B.shape[1], few):
            np.matmul(A[i:i + rows], B[:, j:j + few],
                      out=AB[i:i + rows, j:j + few])
    return AB


def _factors(X, Y):
    """Two matrices whose product ‖a‖² - 2⟨a, b⟩ + ‖b‖² has the squared
    distances of the rows of X and of Y, moved by the mean of Y."""
    d, c = X.shape[1], Y.mean(axis=0)
    A, B = np.ones((len(X), d + 2)), np.ones((d + 2, len(Y)))
    np.subtract(X, c, out=A[:, :d])
    np.subtract(Y.T, c[:, None], out=B[:d])
    A[:, d] = np.einsum("ij,ij->i", A[:, :d], A[:, :d])
    B[-1] = np.einsum("ij,ij->j", B[:d], B[:d])
    B[:d] *= -2
    return A, B


def _squares(X, Y, factors=None):
    (n, d), m = X.shape, len(Y)
    if d == 1:                                   # (x - y)², as a product
        D = np.column_stack([X, np.ones(n)]) @ [np.ones(m), -Y[:, 0]]
        return np.square(D, out=D)
    if d >= 8:
        A, B, *D = factors or _factors(X, Y)
        D = D[0] if D else _product(A, B)
        near = 1e-3 * (A[:, d].max() + B[-1].max())
        if D.min() >= near:
            return D
        i, j = np.nonzero(~(D >= near))
        if len(i) <= n + m:             # cancelled: the differences instead
            D[i, j] = np.sum((X[i] - Y[j]) ** 2, axis=1)
            return D
    return cdist(X, Y, "sqeuclidean")


def squared_distances(X, Y=None) -> np.ndarray:
    """The (n, m) matrix of ‖x_i - y_j‖², or of ‖x_i - x_j‖², accurate
    also for points that nearly coincide (:prf:ref:`thm-gaussian`)."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _squares(*Linear()._both(X, Y))


class _OfDistance(_OnVectors):
    def _tile(self, X, Y, K):
        if X.shape[1] < 8:
            return super()._tile(X, Y, K)
        A, B = _factors(X, Y)                   # once, for all the tiles
        if X.shape[1] < 128:
            return lambda i, j: self._gram(X[i], Y[j], (A[i], B[:, j]))
        for a in range(0, len(X), 2 * TILE):    # and the products
            b = a if X is Y else 0
            np.matmul(A[a:a + 2 * TILE], B[:, b:], K[a:a + 2 * TILE, b:])
        return lambda i, j: self._gram(X[i], Y[j], (A[i], B[:, j], K[i, j]))


def _powers(A, B, i, j):
    E = _product(A[i], B[:, j])
    return np.exp2(E, out=E)


@dataclass(frozen=True)
class Gaussian(_OfDistance):
    """The kernel exp(-‖x - y‖² / (2σ²)) (:prf:ref:`thm-gaussian`); in
    scikit-learn's words gamma = 1 / (2σ²).

    >>> Gaussian(1.0)([0.0, 2.0]).round(6)
    array([[1.      , 0.135335],
           [0.135335, 1.      ]])
    """

    sigma: float = checked(check.width)

    def _gram(self, X, Y, factors=None):
        D = _squares(X, Y, factors)
        D *= -0.5 / self.sigma**2
        return np.exp(D, out=D)

    def _summands(self, X):
        """The entries K(X)[i, j] for two slices, good enough for sums."""
        A, B = _factors(X, X)
        A *= -0.5 / math.log(2) / self.sigma**2          # AB is log2 K
        return partial(_powers, A, B) if A[:, -2].min() >= -32 else None

# %% [8] Features one can list, and a Poisson law
def gaussian_features(X, sigma: float, degree: int) -> np.ndarray:
    """The C(d + m, m) features of the Gaussian kernel of degree 0, ..., m;
    the error is a Poisson tail (:prf:ref:`thm-poisson`)."""
    z = as_points(X) / check.width(sigma, "sigma")
    degree = check.whole(degree, "degree", 0)
    envelope = np.exp(-np.sum(z**2, axis=1, keepdims=True) / 2)
    return envelope * np.hstack([
        polynomial_features(z, n, c=0) / math.sqrt(math.factorial(n))
        for n in range(degree + 1)])

# %% [9] Features one can draw
def gaussian_bumps(X, T, sigma: float) -> np.ndarray:
    """The (n, m) matrix of values Φ(x_i)(t_j) of the feature functions in
    L2, bumps of width σ/√2 (:prf:ref:`prop-gaussian-l2`)."""
    sigma, T = check.width(sigma, "sigma"), as_points(T, "T")
    D, d = squared_distances(X, T), T.shape[1]
    return (2 / (np.pi * sigma**2)) ** (d / 4) * np.exp(-D / sigma**2)

# %% [10] More kernels on $\R^d$ from features
@dataclass(frozen=True)
class Laplace(_OfDistance):
    """The kernel exp(-‖x - y‖ / σ) (:prf:ref:`prop-laplace`), Euclidean;
    scikit-learn's ``laplacian_kernel`` sums absolute differences."""

    sigma: float = checked(check.width)

    def _gram(self, X, Y, factors=None):
        return np.exp(-np.sqrt(_squares(X, Y, factors)) / self.sigma)


@dataclass(frozen=True)
class _ByCoordinate(_OnVectors):
    width: float = checked(check.width, default=1.0)

    def _gram(self, X, Y):
        return math.prod(self._profile(np.subtract.outer(x, y) / self.width)
                         for x, y in zip(X.T, Y.T))


@dataclass(frozen=True)
class Sinc(_ByCoordinate):
    """Π_i sinc((x_i - y_i) / width) (:prf:ref:`prop-sinc`)."""

    _profile = staticmethod(np.sinc)

# %% [11] More kernels on $\R^d$ from features
@dataclass(frozen=True)
class BSpline(_ByCoordinate):
    """Π_i b_p((x_i - y_i) / width) / b_p(0) for odd degree p
    (:prf:ref:`prop-bspline`), with knots at the distance `width`."""

    degree: int = checked(partial(check.whole, least=1), default=3)

    def __post_init__(self):
        super().__post_init__()
        if self.degree % 2 == 0:
            raise ValueError(f"degree must be odd, got {self.degree}: "
                             "even B-splines are not positive definite")

    def _profile(self, t):
        from scipy.interpolate import BSpline as SplineBasis   # rare, slow

        half = (self.degree + 1) / 2
        spline = SplineBasis.basis_element(np.arange(-half, half + 1),
                                           extrapolate=False)
        return np.nan_to_num(spline(t)) / spline(0.0)

# %% [12] Gram matrices too large to store
def gram_dot(kernel: Kernel, X, Y, W) -> np.ndarray:
    """The product K(X, Y) W, a tile at a time, for m points Y and m rows W;
    ``Y=None`` stands for K(X), half computed (:prf:ref:`prop-tiles`)."""
    X, Y = as_kernel(kernel)._both(X, Y)
    W = check.real_array(W, "W")
    if W.shape[:1] != (len(Y),):
        raise ValueError(f"W must have one row for each of {len(Y)} points,"
                         f" got shape {W.shape}")
    return kernel._dot(X, Y, W)

# %% [13] The sigmoid "kernel"
@dataclass(frozen=True)
class Sigmoid(_OfProduct):
    """tanh(a ⟨x, y⟩ + c): *not* positive definite for any a > 0
    (:prf:ref:`prop-sigmoid`)."""

    a: float = checked(check.positive)
    c: float = checked(check.number)
    positive_definite = False

    def _of(self, z):
        return np.tanh(self.a * z + self.c)
