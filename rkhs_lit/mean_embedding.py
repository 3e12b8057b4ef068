"""Mean embeddings: a distribution is a point"""
# The exported cells of book/mean_embedding.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 8fd2ea84ff5cc31f

# %% [1] Mean embeddings: a distribution is a point
import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import eigh, helmert, solve_triangular
from scipy.linalg.lapack import dpotrf

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points
from rkhs_lit.kernels import (Gaussian, Kernel, Linear, Mapped, Scaled,
                              Sum, is_positive_definite, reduce_tiles)
from rkhs_lit.moore_aronszajn import Features, RKHSFunction, inner, norm

# %% [2] A sample is a distribution
def mean_embedding(kernel: Kernel, X, weights=None) -> RKHSFunction:
    """The mean embedding μ = Σ w_i k(x_i, ·) of points with weights:
    ⟨f, μ⟩ = Σ w_i f(x_i) for all f (:prf:ref:`thm-mean-embedding`).

    The weights are probabilities, by default 1/n each, as for a sample.
    Negative ones, or ones with another sum, embed a signed measure.

    >>> mu = mean_embedding(Gaussian(1.0), [0.0, 2.0], [0.75, 0.25])
    >>> mu([0.0]).round(6)                        # (3 + e^-2) / 4
    array([0.783834])
    """
    Phi = Features(kernel, X)
    return Phi @ (np.full(Phi.n, 1 / Phi.n) if weights is None else weights)

# %% [3] Closed forms for normal distributions
@np.errstate(over="ignore", invalid="ignore")
def _bell(sigma, A, T, m):
    """b_A(t - m) for the rows t of T."""
    L, failed = dpotrf(np.eye(len(A)) + A / sigma / sigma, lower=True)
    if failed or not np.isfinite(L).all():
        raise ValueError("covariance is too large for the width "
                         f"{sigma} of the kernel")
    z = solve_triangular(L, ((T - m) / sigma).T, lower=True,
                         check_finite=False)
    # A distance that overflows has a bell of height zero.
    square = np.nan_to_num(np.sum(z**2, axis=0), nan=np.inf)
    return np.exp(-square / 2 - np.log(L.diagonal()).sum())

# %% [4] Fine print
def _in_one_space(mu, nu):
    """Refuses two objects that have no inner product."""
    for name, f in (("mu", mu), ("nu", nu)):
        if not isinstance(f, (RKHSFunction, GaussianEmbedding)):
            raise ValueError(f"{name} must be an RKHSFunction or a "
                             f"GaussianEmbedding, got {type(f).__name__}")
    d, e = (f.mean.shape if isinstance(f, GaussianEmbedding)
            else getattr(f.features.seen, "shape", ())[1:]
            for f in (mu, nu))
    if mu.kernel != nu.kernel or (d and e and d != e):
        raise ValueError(f"nu must be in dimension {d} for {mu.kernel} "
                         f"like mu, got dimension {e} for {nu.kernel}")

# %% [5] Normal embeddings are data
@dataclass(frozen=True, eq=False, repr=False)
class GaussianEmbedding(check.Record):
    """The mean embedding μ(t) = E k(t, X) of a normal variable X for the
    Gaussian kernel, in closed form (:prf:ref:`thm-gaussian-embedding`).

    The mean is a vector of length d, or a number for d = 1, the covariance
    a positive definite (d, d) matrix, possibly singular, or a number that
    multiplies the identity.

    >>> mu = GaussianEmbedding(Gaussian(1.0), 0.0, 3.0)
    >>> mu([0.0, 2.0]).round(6)                # 1/2 and e^(-1/2) / 2
    array([0.5     , 0.303265])
    """

    kernel: Gaussian
    mean: np.ndarray
    covariance: np.ndarray

    def __post_init__(self):
        if not isinstance(self.kernel, Gaussian):
            raise ValueError(f"kernel must be Gaussian, got {self.kernel}")
        m = np.atleast_1d(check.real_array(self.mean, "mean"))
        m = check.vector(m, "mean")
        S = check.real_array(self.covariance, "covariance")
        S = S * np.eye(len(m)) if S.ndim == 0 else S
        if S.shape != (len(m), len(m)):
            raise ValueError("covariance must be a number or have shape "
                             f"{(len(m), len(m))}, got shape {S.shape}")
        verdict = is_positive_definite(S / (np.abs(S).max() or 1.0))
        if not verdict:
            raise ValueError("covariance must be positive definite, but "
                             f"scaled to size one {verdict.reason}")
        vars(self).update(mean=m, covariance=check.frozen(S / 2 + S.T / 2))

    def __repr__(self):
        return f"GaussianEmbedding({self.kernel}, d={len(self.mean)})"

    def __call__(self, T) -> np.ndarray:
        """Values at the points T, an array of as many numbers."""
        T = as_points(T, "T")
        check.same_dimension(T, self.mean[None], "T", "the mean")
        return _bell(self.kernel.sigma, self.covariance, T, self.mean)

# %% [6] Normal embeddings are data
@np.errstate(over="ignore", invalid="ignore")
def embedding_inner(mu: RKHSFunction | GaussianEmbedding,
                    nu: RKHSFunction | GaussianEmbedding) -> float:
    """⟨μ, ν⟩ for one kernel: E k(X, Y) for two embeddings, and E f(X) for
    a function f and an embedding
    (:prf:ref:`thm-mean-embedding`, :prf:ref:`thm-gaussian-embedding`).

    >>> mu = GaussianEmbedding(Gaussian(1.0), 0.0, 1.5)
    >>> round(embedding_inner(mu, mu), 6)                # (1 + 3)^(-1/2)
    0.5
    """
    _in_one_space(mu, nu)
    match mu, nu:
        case RKHSFunction(), RKHSFunction():
            return inner(mu, nu)
        case RKHSFunction(), _:                  # ⟨Σ w_i k(x_i, ·), ν⟩
            value = mu.weights @ nu(mu.points)
        case _, RKHSFunction():
            value = nu.weights @ mu(nu.points)
        case _:                                  # b_{S + R}(m - r)
            value, = _bell(mu.kernel.sigma, mu.covariance + nu.covariance,
                           mu.mean[None], nu.mean)
    return float(check.finite(value, "the sum over mu and nu"))


def embedding_distance(mu: RKHSFunction | GaussianEmbedding,
                       nu: RKHSFunction | GaussianEmbedding) -> float:
    """The distance ‖μ - ν‖ (:prf:ref:`cor-uniform-average`), for a
    GaussianEmbedding the root of a difference: below 1e-7 of the larger
    norm it is mostly rounding."""
    _in_one_space(mu, nu)
    if isinstance(mu, RKHSFunction) and isinstance(nu, RKHSFunction):
        return norm(mu - nu)
    square = (embedding_inner(mu, mu) - 2 * embedding_inner(mu, nu)
              + embedding_inner(nu, nu))
    return math.sqrt(max(square, 0.0))

# %% [7] Points far from zero
def moved(Phi: Features, *others: Features) -> list[Features]:
    """The maps with features k(x, ·) - h, for one h near the points of
    all (:prf:ref:`lem-features-moved`); the maps themselves where no such
    h leaves a simple kernel.

    >>> Phi, = moved(Features(Linear(), [1e9, 1e9 + 1, 1e9 + 3]))
    >>> Phi.diag()
    array([1., 0., 4.])
    """
    maps = [Phi, *others]
    if not all(isinstance(F, Features) for F in maps):
        raise ValueError("Phi and others must be Features")
    if not isinstance(Phi.kernel, (Linear, Scaled, Sum, Mapped)):
        return maps
    near = _moved(Phi.kernel, [F.points for F in maps])
    return maps if near == Phi.kernel else [
        Features(near, F, F.name, F.kernel_name) for F in maps]


def squared_norm(value, size: float, name: str = "kernel"):
    """max(value, 0), for squared norms from terms of this size: a kernel
    that is positive definite to eight digits makes none that is less than
    -1e-8 times the size (:prf:ref:`prop-rounded-gram`).

    >>> squared_norm([2.0, -1e-17], 1.0)
    array([2., 0.])
    """
    if np.min(value) < -1e-8 * size:
        raise ValueError(f"{name} must be positive definite, but a squared "
                         "norm is negative")
    return np.maximum(value, 0) if np.ndim(value) else max(value, 0.0)


def _less(c, X):
    return as_points(X) - c


def _moved(k, samples):
    """A kernel with the features of k less one vector, if one is known
    that the samples are near to."""
    if isinstance(k, Scaled):
        return k.c * _moved(k.kernel, samples)
    if isinstance(k, Sum):
        return _moved(k.first, samples) + _moved(k.second, samples)
    if isinstance(k, Mapped):
        return Mapped(_moved(k.kernel, [*map(k.map, samples)]), k.map)
    if not isinstance(k, Linear):
        return k
    X = np.concatenate([*map(as_points, samples)])
    c = np.sort(X, axis=0)[len(X) // 2]
    return Mapped(k, partial(_less, c))


def _visit(Phi, k, total, i, j):                   # ‖k_x - k_y‖² / 2
    part = np.sum(np.add.outer(k[i], k[j]) / 2 - Phi.gram(None, i, j))
    total += part if i == j else 2 * part


def embedding_error(kernel: Kernel, X) -> float:
    """Unbiased estimate of E‖μ̂ - μ‖², the mean squared error of
    ``mean_embedding(kernel, X)`` (:prf:ref:`prop-error-estimate`), from
    n >= 2 independent points.

    The root is the standard error of the embedding, and n times the number
    estimates V = E k(X, X) - ‖μ‖².

    >>> round(embedding_error(Linear(), [1.0, 2.0, 6.0]), 6)    # 7 / 3
    2.333333
    """
    Phi, = moved(Features(kernel, X))    # V does not see k_x - h for k_x
    c, Phi = Phi.unit()
    n, k = Phi.n, Phi.diag()
    if n < 2:
        raise ValueError("X must hold at least two points")

    total = float(reduce_tiles(partial(_visit, Phi, k),
                               partial(np.zeros, 1), n)[0])
    # total = n Σ ‖k_x‖² - ‖Σ k_x‖², where neither side can be negative.
    total, _ = squared_norm([total, n * k.sum() - total],
                            n**2 * k.max(), Phi.kernel_name)
    return float(total) / n**2 / (n - 1) * c

# %% [8] On finite sets it is a property of a matrix
@dataclass(frozen=True, eq=False)
class Characteristic(check.Record):
    """True in a condition if different distributions on a finite set have
    different embeddings (:prf:ref:`thm-finite-characteristic`); with the
    pair p, q that is hardest to tell apart, nowhere both positive, and the
    distance of their embeddings."""

    characteristic: bool
    p: np.ndarray
    q: np.ndarray
    distance: float

    def __bool__(self) -> bool:
        return self.characteristic


def is_characteristic(kernel: Kernel, X) -> Characteristic:
    """Whether a kernel is characteristic on the set X of n >= 2 distinct
    points, and a pair for which ‖μ_p - μ_q‖ / ‖p - q‖ is least
    (:prf:ref:`thm-finite-characteristic`).

    One that fails on X fails on every larger set. Eigenvalues below n ε
    times the largest sum of a row of the Gram matrix count as zero: points
    that nearly coincide can make a characteristic kernel fail.

    >>> verdict = is_characteristic(Linear(), [0.0, 1.0, 2.0])
    >>> bool(verdict), verdict.p.round(6), verdict.q.round(6)
    (False, array([0.5, 0. , 0.5]), array([0., 1., 0.]))
    """
    Phi = Features(kernel, X)
    if (n := Phi.n) < 2 or len(set(Phi.labels())) < n:
        raise ValueError("X must hold at least two points, all distinct")
    scale, Phi = Phi.unit()
    K, B = Phi.gram(), helmert(n)
    tol = n * np.finfo(float).eps * np.abs(K).sum(axis=1).max()
    # 1e-8 allows for kernels computed to eight digits.
    verdict = is_positive_definite(K, max(tol, 1e-8 * np.abs(K).max()))
    if not verdict:
        raise ValueError("kernel must be positive definite, but of its "
                         f"Gram matrix in units {verdict.reason}")
    (smallest,), v = eigh(B @ K @ B.T, subset_by_index=[0, 0])
    c = (v[:, 0] @ B).round(14)               # entries of 1e-17 are zero
    c *= np.sign(c[np.abs(c) > 1e-6][0])
    p, q = np.maximum(c, 0.0), np.maximum(-c, 0.0)
    strict, s = bool(smallest > tol), float(p.sum())
    return Characteristic(
        strict, p / s, q / q.sum(),
        math.sqrt(smallest) * math.sqrt(scale) / s if strict else 0.0)
