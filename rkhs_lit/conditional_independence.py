"""Conditional independence: what remains when Z is known

The exported cells of the chapter ``book/conditional_independence.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: d572f76a4a804a34

# %% [1] Conditional independence: what remains when Z is known
import math

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, svd
from scipy.linalg.lapack import dpstrf
from scipy.special import gammaincc

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points
from rkhs_lit.bochner import pivoted_cholesky
from rkhs_lit.cross_covariance import (RKHSOperator, _named_space, _power,
                                       cross_covariance, regularised_solve)
from rkhs_lit.hsic import GammaTest
from rkhs_lit.kernels import Kernel, reduce_tiles
from rkhs_lit.mmd import _suited
from rkhs_lit.pca import centre


# %% [2] The conditional covariance operator
def _triples(kx, ky, kz, X, Y, Z):
    """The three lists of points, as the kernels want them."""
    prepared = []
    for name, kernel, letter, points in (
            ("kx", kx, "X", X), ("ky", ky, "Y", Y), ("kz", kz, "Z", Z)):
        _named_space(kernel, name)
        prepared.append(_suited(kernel, points, letter, name))
        n, m = len(prepared[0]), len(prepared[-1])
        if n != m:
            raise ValueError(f"{letter} must have as many points as X "
                             f"({n}), got {m}")
        with np.errstate(over="ignore", invalid="ignore"):
            d = np.asarray(kernel._diag(prepared[-1]), float)
            check.finite(d, name)
        if d.min() < 0:
            raise ValueError(f"{name} must be positive definite, but at "
                             f"two equal points it is {d.min():.6g}")
    return prepared


# %% [3] The conditional covariance operator
def conditional_covariance(kx: Kernel, ky: Kernel, kz: Kernel, X, Y, Z,
                           lam: float) -> RKHSOperator:
    """The regularised conditional covariance operator of a sample
    (:prf:ref:`thm-conditional-limit`).

    Parameters
    ----------
    kx, ky, kz : Kernel
        Positive definite, on any kind of points.
    X, Y, Z : sequences of n points
        The triples (x_i, y_i, z_i).
    lam : float
        The number λ > 0 that is added to the covariance operator of Z.

    Returns
    -------
    RKHSOperator
        S from H_ky to H_kx: ⟨f, S g⟩ is the covariance of f(x_i) and
        g(y_i) less the part that a ridge regression on z_i explains.

    Examples
    --------
    With linear kernels and a small λ it is the partial covariance:

    >>> from rkhs_lit.kernels import Linear
    >>> k = Linear()
    >>> S = conditional_covariance(k, k, k, [1., 2., 3.], [1., 0., 2.],
    ...                            [0., 0., 3.], 1e-6)
    >>> S.values([1.0], [1.0]).round(4)             # -1/2 · 1/3
    array([[-0.1667]])
    """
    _triples(kx, ky, kz, X, Y, Z)
    lam = check.positive(lam, "lam")
    Sxy = cross_covariance(kx, ky, X, Y)
    Sxz = cross_covariance(kx, kz, X, Z)
    Szz = cross_covariance(kz, kz, Z, Z)
    Szy = cross_covariance(kz, ky, Z, Y)
    return Sxy - Sxz @ regularised_solve(Szz, Szy, lam)


# %% [4] Gram matrices
def _centred_gram(K, name):
    """The centred matrix divided by a scale, and the scale."""
    matrix = as_points(K, name)
    if np.ndim(K) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} must be a square Gram matrix, got shape "
                         f"{np.shape(K)}")
    scale = _power(float(max(matrix.max(), -matrix.min()))) or 1.0
    matrix = matrix / scale
    if np.abs(matrix - matrix.T).max() > 1e-8:
        raise ValueError(f"{name} must be symmetric, as Gram matrices are")
    if matrix.diagonal().min() < -1e-8:
        raise ValueError(f"{name} must be positive definite, but has a "
                         "negative entry on its diagonal")
    return centre(matrix), scale


def _centred_grams(Kx, Ky, Kz):
    pairs = [_centred_gram(K, name) for K, name in (
        (Kx, "Kx"), (Ky, "Ky"), (Kz, "Kz"))]
    n = len(pairs[0][0])
    for (K, _), name in zip(pairs[1:], ("Ky", "Kz")):
        if len(K) != n:
            raise ValueError(f"{name} must have the shape of Kx, ({n}, "
                             f"{n}), got {K.shape}")
    return pairs


# %% [5] Gram matrices
def _ratio(trace, n, scale, lam, name):
    """The number n λ in units of the scale of a Gram matrix."""
    lam = check.positive(lam, "lam")
    with np.errstate(over="ignore", under="ignore"):
        ratio = n * (float(lam) / scale)
    if ratio == 0 or trace > 1e12 * ratio:
        raise ValueError(f"lam must be larger: {lam:g} is lost in the "
                         f"rounding errors of {name}")
    return ratio


def _residual_maker(K, scale, lam, name):
    """The map B -> R B of :eq:`eq-ci-residual-matrix`, and K / n λ."""
    n = len(K)
    K = K / _ratio(np.trace(K), n, scale, lam, name)
    try:
        factor = cho_factor(np.eye(n) + K)
    except LinAlgError:
        raise ValueError(f"{name} must be positive definite") from None
    return (lambda B: cho_solve(factor, B)), K


def _squared_norm(A, B, bound):
    """tr(A B), which is not negative, checked."""
    value = float(np.einsum("ij,ji->", A, B))
    if value < -1e-8 * bound - 1e-14:
        raise ValueError("Kx and Ky must be positive definite, but the "
                         "squared norm is negative")
    return max(value, 0.0)


# %% [6] Gram matrices
def conditional_hsic(Kx, Ky, Kz, lam: float) -> float:
    """The squared norm of the conditional covariance operator, from
    Gram matrices (:prf:ref:`thm-conditional-gram`).

    Parameters
    ----------
    Kx, Ky, Kz : (n, n) arrays
        Gram matrices of the three variables; they are centred here.
    lam : float
        λ > 0 regularises the operator: K_z + nλI in matrices.

    Returns
    -------
    float
        ``hs_norm(conditional_covariance(...)) ** 2``. If Kz is constant,
        it is ``hsic_biased(Kx, Ky)``.

    Examples
    --------
    >>> x, y, z = np.array([[1., 2., 3.], [1., 0., 2.], [0., 0., 3.]])
    >>> K = [np.outer(v, v) for v in (x, y, z)]
    >>> round(conditional_hsic(*K, 1e-9), 6)          # (-1/6)²
    0.027778
    """
    (A, a), (B, b), (C, c) = _centred_grams(Kx, Ky, Kz)
    R, _ = _residual_maker(C, c, lam, "Kz")
    n, bound = len(A), np.trace(A) * np.trace(B)
    value = _squared_norm(R(A), R(B), bound) / n**2
    with np.errstate(over="ignore"):
        return float(check.finite(value * a * b,
                                  "the product of Kx and Ky"))


# %% [7] Gram matrices
def normalised_conditional_hsic(Kx, Ky, Kz, lam: float) -> float:
    """The squared norm of the normalised conditional covariance operator
    (:prf:ref:`thm-normalised-operator`, :prf:ref:`thm-conditional-gram`).

    Parameters
    ----------
    Kx, Ky, Kz : (n, n) arrays
        Gram matrices of the three variables; they are centred here.
    lam : float
        λ > 0 is added to all three covariance operators.

    Returns
    -------
    float
        Between 0 and the smaller rank of the centred Kx and Ky. For
        few values of X, Y and Z and λ → 0 it does not depend on the
        kernels, provided that they are characteristic.

    Examples
    --------
    Without a third variable and for tables it is Pearson's χ²/n:

    >>> K = np.kron(np.eye(2), np.ones((3, 3)))
    >>> round(normalised_conditional_hsic(K, K, np.ones((6, 6)), 1e-9), 6)
    1.0
    """
    (A, a), (B, b), (C, c) = _centred_grams(Kx, Ky, Kz)
    R, _ = _residual_maker(C, c, lam, "Kz")
    parts = []
    for K, scale, name in (A, a, "Kx"), (B, b, "Ky"):
        solve, ratio = _residual_maker(K, scale, lam, name)
        parts.append(R(solve(ratio)))
    return _squared_norm(*parts, len(A))


# %% [8] A test
def _dense_factor(K, name):
    """Pivoted Cholesky of a whole matrix, in blocks."""
    L, pivots, rank, _ = dpstrf(K, lower=1)
    F = np.empty((len(K), rank))
    F[pivots - 1] = np.tril(L)[:, :rank]
    left = K.diagonal() - np.sum(F * F, axis=1)
    if left.min() < -1e-8:
        raise ValueError(f"{name} must be positive definite, but what is "
                         "left of its Gram matrix has the diagonal entry "
                         f"{left.min():.6g}")
    return F


def _factor(kernel, X, scale, name):
    """A factor of the Gram matrix divided by the scale."""
    n = len(X)
    if n > 200:                     # smaller ones are quicker whole
        try:
            F = pivoted_cholesky(kernel, X, tol=1e-13, max_rank=n // 4)
        except ValueError as error:
            raise ValueError(str(error).replace("kernel", name, 1)
                             ) from None
        if F.shape[1] < n // 4:
            return F / math.sqrt(scale)
    return _dense_factor(kernel(X) / scale, name)


def _centred_factor(kernel, X, name):
    """A centred factor of the Gram matrix divided by a scale; the scale;
    and the trace of that matrix before centring."""
    d = kernel.diag(X)
    scale = _power(float(d.max())) or 1.0
    F = _factor(kernel, X, scale, name)
    if F.shape[1] == 0:
        F = np.zeros((len(d), 1))
    for _ in range(2):              # the second round removes rounding
        F = F - F.mean(axis=0)
    return F, scale, float(np.sum(d / scale))


# %% [9] A test
def _regression(kz, Z, lam):
    """The map B -> R B, from few columns if they are enough."""
    F, scale, trace = _centred_factor(kz, Z, "kz")
    n, r = F.shape
    ratio = _ratio(trace, n, scale, lam, "kz")
    if r > n // 4:
        return _residual_maker(F @ F.T, scale, lam, "kz")[0]
    U, s, _ = svd(F, full_matrices=False)
    shrink = (s**2 / (s**2 + ratio))[:, None]
    return lambda B: B - U @ (shrink * (U.T @ B))


def _residual_features(kernel, X, name, R):
    """R H F with mean square one, and the square of its unit, which is
    zero if nothing but rounding errors is left."""
    F, scale, trace = _centred_factor(kernel, X, name)
    P = R(F)
    if np.sum(F * F) <= 1e-14 * trace or np.sum(P * P) <= 1e-24 * trace:
        return P, 0.0
    unit = float(np.sqrt(np.mean(P * P)))
    return P / unit, unit**2 * scale


# %% [10] A test
def _weighted_sums(P, Q, kz, Z):
    """Sum of W, trace of W and sum of the squares of W."""
    d = np.asarray(kz._diag(Z), float)
    c = float(np.mean(d / d.max()) * d.max()) if d.max() > 0 else 1.0

    def visit(total, i, j):
        W = (P[i] @ P[j].T) * (Q[i] @ Q[j].T)
        W *= 0.5 + kz._block(Z[i], Z[j]) / c / 2
        twice = 1 if i == j else 2
        total += twice * W.sum(), twice * np.vdot(W, W)

    sums = reduce_tiles(visit, lambda: np.zeros(2), len(P))
    diagonal = np.sum(P**2, axis=1) * np.sum(Q**2, axis=1) * (
        0.5 + d / c / 2)
    return float(sums[0]), float(diagonal.sum()), float(sums[1])


def _gamma_test(total, diagonal, squares, n, unit):
    """The record, from the three sums and the unit of W."""
    T, mean, std = (v / n**2 for v in (max(total, 0.0), diagonal,
                                       math.sqrt(2 * squares)))
    pvalue = float(gammaincc((mean / std) ** 2, T * mean / std**2))
    with np.errstate(over="ignore"):
        values = check.finite(np.array([T, mean, std]) * unit,
                         "the product of kx and ky")
    return GammaTest(values[0], pvalue, *values[1:])


# %% [11] A test
def conditional_independence_test(kx: Kernel, ky: Kernel, kz: Kernel,
                                  X, Y, Z, *, lam: float = 1e-6
                                  ) -> GammaTest:
    """Test whether X and Y are independent given Z
    (:prf:ref:`prop-residual-statistic`, :prf:ref:`thm-ci-null`).

    Parameters
    ----------
    kx, ky, kz : Kernel
        Bounded and characteristic to see every dependence
        (:prf:ref:`thm-conditional-zero`).
    X, Y, Z : sequences of n >= 4 points
        The triples (x_i, y_i, z_i).
    lam : float
        λ > 0 of the regressions on Z, with K_z + nλI in matrices; for
        kernels with values near one. Large n need a smaller λ.

    Returns
    -------
    GammaTest
        Its mean and std are estimates under the hypothesis. Its p-value
        is approximate: the regressions are not perfect, and a gamma
        distribution replaces the exact one. If nothing but rounding is
        left of X or of Y after the regression on Z, it is 1. But the
        small error that λ leaves counts as a residual: variables that
        are functions of Z, or nearly so, look dependent.

    Examples
    --------
    >>> from rkhs_lit.kernels import Gaussian
    >>> rng, k = np.random.default_rng(0), Gaussian(1.0)
    >>> z, u = rng.normal(size=(2, 100))
    >>> conditional_independence_test(k, k, k, z + u, u, z).pvalue < 1e-6
    True
    """
    prepared = _triples(kx, ky, kz, X, Y, Z)[2]
    if (n := len(prepared)) < 4:
        raise ValueError(f"X must hold at least 4 points, got {n}")
    R = _regression(kz, Z, lam)
    P, p = _residual_features(kx, X, "kx", R)
    Q, q = _residual_features(ky, Y, "ky", R)
    sums = _weighted_sums(P, Q, kz, prepared)
    # P and Q have mean square one: a smaller trace is rounding.
    if p == 0 or q == 0 or sums[1] <= 1e-28 * P.size * Q.size / n:
        return GammaTest(0.0, 1.0, 0.0, 0.0)
    return _gamma_test(*sums, n, p * q)
