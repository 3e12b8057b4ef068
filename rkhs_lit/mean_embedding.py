"""Mean embeddings: a distribution is a point

The exported cells of the chapter ``book/mean_embedding.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: af68a4e848b8fa6f

# %% [1] Mean embeddings: a distribution is a point
import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.linalg import (LinAlgError, cholesky, eigh, helmert,
                          solve_triangular)

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points, as_sequence
from rkhs_lit.kernels import (Delta, Gaussian, Kernel, is_positive_definite,
                              reduce_tiles)
from rkhs_lit.moore_aronszajn import (RKHSFunction, _finite_sum, _space,
                                      inner, norm)


# %% [2] The function
def mean_embedding(kernel: Kernel, X, weights=None) -> RKHSFunction:
    """The mean embedding Σ w_i k(x_i, ·) of points with weights
    (:prf:ref:`thm-mean-embedding`).

    Parameters
    ----------
    kernel : Kernel
    X : sequence of n points
    weights : (n,) array, optional
        The probabilities of the points, by default 1/n each: then the
        result estimates the embedding of the distribution from which
        the points were drawn. Weights are used as they are; negative
        ones, or ones with another sum, embed a signed measure.

    Returns
    -------
    RKHSFunction
        μ with ⟨f, μ⟩ = Σ w_i f(x_i) for all f of the space.

    Examples
    --------
    >>> mu = mean_embedding(Gaussian(1.0), [0.0, 2.0], [0.75, 0.25])
    >>> mu([0.0]).round(6)                        # (3 + e^-2) / 4
    array([0.783834])
    """
    _space(kernel)
    X = as_sequence(X)
    n = len(X)
    weights = (np.full(n, 1 / n) if weights is None
               else check.vector(weights, "weights", n))
    try:
        return RKHSFunction(kernel, X, weights)
    except ValueError as error:
        kernel._prepare(X, "X")              # says what X must be
        raise ValueError(f"X does not suit the kernel: {error}") from None


# %% [3] Closed forms for normal distributions
def _bell(sigma, A, D):
    """b_A(δ) for the rows δ of D."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.eye(len(A)) + A / sigma / sigma
        try:
            L = cholesky(scaled, lower=True)
        except (LinAlgError, ValueError):     # ValueError: not finite
            raise ValueError("covariance is too large for the width "
                             f"{sigma} of the kernel") from None
        z = solve_triangular(L, (D / sigma).T, lower=True,
                             check_finite=False)
        square = np.sum(z**2, axis=0)
    # A distance that overflows has a bell of height zero.
    square = np.where(np.isfinite(square), square, np.inf)
    return np.exp(-square / 2 - np.log(L.diagonal()).sum())


# %% [4] Closed forms for normal distributions
def _mean_vector(mean):
    if isinstance(mean, Real) or getattr(mean, "ndim", 1) == 0:
        mean = [mean]
    column = as_points(mean, "mean")
    if np.ndim(mean) != 1:
        raise ValueError("mean must be a number or a vector, got shape "
                         f"{np.shape(mean)}")
    return column[:, 0].copy()


def _covariance_matrix(covariance, d):
    if isinstance(covariance, Real) or getattr(covariance, "ndim", 1) == 0:
        variance = as_points([covariance], "covariance")[0, 0]
        covariance = variance * np.eye(d)
    S = as_points(covariance, "covariance")
    if np.shape(covariance) != (d, d):
        raise ValueError(f"covariance must be a number or have shape "
                         f"({d}, {d}) like mean, got shape "
                         f"{np.shape(covariance)}")
    # Scaled, so that no product of entries overflows.
    verdict = is_positive_definite(S / (np.abs(S).max() or 1.0))
    if not verdict:
        raise ValueError("covariance must be symmetric and positive def"
                         "inite, but scaled to size one "
                         f"{verdict.reason}")
    return S / 2 + S.T / 2


# %% [5] Closed forms for normal distributions
@dataclass(frozen=True, eq=False, repr=False)
class GaussianEmbedding:
    """The mean embedding of a normal distribution for the Gaussian
    kernel, in closed form (:prf:ref:`thm-gaussian-embedding`).

    Parameters
    ----------
    kernel : Gaussian
    mean : (d,) array, or a number for d = 1
    covariance : (d, d) array, or a number that multiplies the identity
        Positive definite, possibly singular.

    Examples
    --------
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
        m = _mean_vector(self.mean)
        S = _covariance_matrix(self.covariance, len(m))
        for name, value in (("mean", m), ("covariance", S)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __repr__(self):
        return f"GaussianEmbedding({self.kernel}, d={len(self.mean)})"

    def __call__(self, T) -> np.ndarray:
        """Values at the points T, an array of as many numbers."""
        T = as_points(T, "T")
        if T.shape[1] != len(self.mean):
            raise ValueError(f"T must have points in dimension "
                             f"{len(self.mean)}, got {T.shape[1]}")
        with np.errstate(over="ignore"):
            D = T - self.mean
        return _bell(self.kernel.sigma, self.covariance, D)


# %% [6] Closed forms for normal distributions
def _check_embeddings(mu, nu):
    for name, value in (("mu", mu), ("nu", nu)):
        if not isinstance(value, (RKHSFunction, GaussianEmbedding)):
            raise ValueError(f"{name} must be an RKHSFunction or a "
                             "GaussianEmbedding, got "
                             f"{type(value).__name__}")
    if not (mu.kernel is nu.kernel or mu.kernel == nu.kernel):
        raise ValueError("nu must have the same kernel as mu, got "
                         f"{nu.kernel} and {mu.kernel}")
    if isinstance(mu, RKHSFunction) and isinstance(nu, RKHSFunction):
        try:
            mu.kernel(mu.points[:1], nu.points[:1])
        except ValueError as error:
            raise ValueError(f"nu does not suit mu: {error}") from None
        return
    d, e = (len(value.mean) if isinstance(value, GaussianEmbedding)
            else as_points(value.points).shape[1] for value in (mu, nu))
    if d != e:
        raise ValueError(f"nu must be in dimension {d} like mu, got {e}")


# %% [7] Closed forms for normal distributions
def embedding_inner(mu: RKHSFunction | GaussianEmbedding,
                    nu: RKHSFunction | GaussianEmbedding) -> float:
    """⟨μ, ν⟩, which is E k(X, Y) for two embeddings and E f(X) for a
    function f and an embedding (:prf:ref:`thm-mean-embedding`).

    Parameters
    ----------
    mu, nu : RKHSFunction or GaussianEmbedding
        With the same kernel.

    Returns
    -------
    float

    Examples
    --------
    >>> mu = GaussianEmbedding(Gaussian(1.0), 0.0, 1.5)
    >>> round(embedding_inner(mu, mu), 6)                # (1 + 3)^(-1/2)
    0.5
    """
    _check_embeddings(mu, nu)
    if isinstance(mu, GaussianEmbedding):
        mu, nu = nu, mu
    if isinstance(mu, GaussianEmbedding):
        with np.errstate(over="ignore"):
            D = (mu.mean - nu.mean)[None]
            A = mu.covariance + nu.covariance
        return float(_bell(mu.kernel.sigma, A, D)[0])
    if isinstance(nu, GaussianEmbedding):
        values = nu(mu.points)
        with np.errstate(over="ignore", invalid="ignore"):
            return float(_finite_sum(mu.weights @ values))
    return inner(mu, nu)


# %% [8] Closed forms for normal distributions
def embedding_distance(mu: RKHSFunction | GaussianEmbedding,
                       nu: RKHSFunction | GaussianEmbedding) -> float:
    """The distance ‖μ - ν‖ (:prf:ref:`cor-uniform-average`).

    Parameters
    ----------
    mu, nu : RKHSFunction or GaussianEmbedding
        With the same kernel.

    Returns
    -------
    float
        With a GaussianEmbedding it is the root of a difference: below
        1e-7 of the larger norm it is mostly rounding.
    """
    _check_embeddings(mu, nu)
    if isinstance(mu, RKHSFunction) and isinstance(nu, RKHSFunction):
        return norm(mu - nu)
    if isinstance(mu, GaussianEmbedding):
        mu, nu = nu, mu
    scale = 1.0
    if isinstance(mu, RKHSFunction):     # so that no square overflows
        scale = max(scale, float(np.abs(mu.weights).max()))
        mu = mu / scale
    square = (embedding_inner(mu, mu) - 2 * embedding_inner(mu, nu) / scale
              + embedding_inner(nu, nu) / scale / scale)
    return math.sqrt(max(square, 0.0)) * scale


# %% [9] The error from the sample itself
def embedding_error(kernel: Kernel, X) -> float:
    """Unbiased estimate of E‖μ̂ - μ‖², the mean squared error of
    ``mean_embedding(kernel, X)`` (:prf:ref:`prop-error-estimate`).

    Parameters
    ----------
    kernel : Kernel
    X : sequence of n points
        Drawn independently from one distribution; n at least 2.

    Returns
    -------
    float
        Not negative. The root is the standard error of the embedding,
        and `n` times the number estimates V = E k(X, X) - ‖μ‖².

    Examples
    --------
    >>> from rkhs_lit.kernels import Linear
    >>> round(embedding_error(Linear(), [1.0, 2.0, 6.0]), 6)    # 7 / 3
    2.333333
    """
    _space(kernel)
    X = as_sequence(X)
    kernel = kernel._about(X)            # features at the same distances
    X = kernel._prepare(X, "X")
    n = len(X)
    if n < 2:
        raise ValueError("X must hold at least two points")
    with np.errstate(over="ignore", invalid="ignore"):
        diagonal = check.finite(kernel._diag(X), "the kernel")
    scale = float(np.abs(diagonal).max()) or 1.0
    half = diagonal / scale / 2

    def visit(total, i, j):
        K = kernel._block(X[i], X[j]) / scale
        part = np.sum(np.add.outer(half[i], half[j]) - K)
        total += part if i == j else 2 * part

    total = float(reduce_tiles(visit, lambda: np.zeros(1), n)[0])
    # total = n Σ |k_i|² - |Σ k_i|², and neither it nor |Σ k_i|² can be
    # negative; 1e-8 allows for kernels computed to eight digits.
    most = 2 * n * half.sum()
    if not -1e-8 * n**2 <= total <= most + 1e-8 * n**2 or half.min() < 0:
        raise ValueError("kernel must be positive definite, but the sum of "
                         f"squared distances is {2 * total * scale:.6g} "
                         f"and that of k(x, x) {diagonal.sum():.6g}")
    return max(total, 0.0) / n**2 / (n - 1) * scale


# %% [10] On finite sets it is a property of a matrix
@dataclass(frozen=True, eq=False)
class Characteristic:
    """Verdict on a kernel on a finite set, with the pair of
    distributions that is hardest to tell apart
    (:prf:ref:`thm-finite-characteristic`).

    True in a condition if the kernel is characteristic.

    Attributes
    ----------
    characteristic : bool
        Whether different distributions have different embeddings.
    p : (n,) array
        Probabilities of the points; of `p` and `q` the one with the
        first point that has any.
    q : (n,) array
        Probabilities that vanish wherever `p` does not.
    distance : float
        The distance of their embeddings, 0 if the verdict is False.
    """

    characteristic: bool
    p: np.ndarray
    q: np.ndarray
    distance: float

    def __bool__(self) -> bool:
        return self.characteristic


# %% [11] On finite sets it is a property of a matrix
def _distinct(X):
    try:
        keys = Delta()._prepare(X, "X")
    except ValueError:
        return                   # not hashable: the caller must know
    if len(set(keys)) < len(keys):
        raise ValueError("X must hold distinct points, but one occurs "
                         "twice")


def _least_difference(K):
    """The smallest eigenvalue of K on vectors with sum zero, its unit
    eigenvector, and what counts as zero."""
    n = len(K)
    B = helmert(n)
    tol = n * np.finfo(float).eps * np.abs(K).sum(axis=1).max()
    # 1e-8 allows for kernels that are computed to eight digits.
    verdict = is_positive_definite(K, max(tol, 1e-8))
    if not verdict:
        raise ValueError("kernel must be positive definite, but for its "
                         "Gram matrix, scaled to size one, "
                         f"{verdict.reason}")
    (smallest,), v = eigh(B @ K @ B.T, subset_by_index=[0, 0])
    c = (v[:, 0] @ B).round(14)               # entries of 1e-17 are zero
    first = np.flatnonzero(np.abs(c) > 1e-6)[0]
    return smallest, np.sign(c[first]) * c, tol


# %% [12] On finite sets it is a property of a matrix
def is_characteristic(kernel: Kernel, X) -> Characteristic:
    """Whether a kernel is characteristic on the finite set X
    (:prf:ref:`thm-finite-characteristic`).

    Parameters
    ----------
    kernel : Kernel
    X : sequence of n distinct points
        At least two. A kernel that is characteristic on X may fail on
        a larger set; one that fails on X fails on every larger set.

    Returns
    -------
    Characteristic
        With a pair for which ‖μ_p - μ_q‖ / ‖p - q‖ is least.
        Eigenvalues below n ε times the largest sum of a row of the Gram
        matrix count as zero: points that nearly coincide can make a
        characteristic kernel fail in this sense.

    Examples
    --------
    >>> from rkhs_lit.kernels import Linear
    >>> verdict = is_characteristic(Linear(), [0.0, 1.0, 2.0])
    >>> bool(verdict), verdict.p.round(6), verdict.q.round(6)
    (False, array([0.5, 0. , 0.5]), array([0., 1., 0.]))
    """
    _space(kernel)
    X = as_sequence(X)
    n = len(X)
    if n < 2:
        raise ValueError("X must hold at least two points")
    _distinct(X)
    K = kernel(X)
    scale = float(np.abs(K).max()) or 1.0
    smallest, c, tol = _least_difference(K / scale)
    positive, negative = np.maximum(c, 0.0), np.maximum(-c, 0.0)
    s = float(positive.sum())
    p, q = positive / s, negative / negative.sum()
    for probabilities in (p, q):
        probabilities.setflags(write=False)
    strict = bool(smallest > tol)
    distance = (math.sqrt(smallest) * math.sqrt(scale) / s if strict
                else 0.0)
    return Characteristic(strict, p, q, distance)
