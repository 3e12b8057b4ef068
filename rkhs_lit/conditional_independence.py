"""Conditional independence: what remains when Z is known

The exported cells of the chapter ``book/conditional_independence.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: d1db52e71654b007

# %% [1] Conditional independence: what remains when Z is known
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, svd
from scipy.linalg.lapack import dpstrf
from scipy.optimize import brentq
from scipy.special import gammaincc

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points
from rkhs_lit.bochner import pivoted_cholesky
from rkhs_lit.cross_covariance import (RKHSOperator, _named_space, _power,
                                       cross_covariance, regularised_solve)
from rkhs_lit.hsic import GammaTest
from rkhs_lit.kernels import Kernel
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
def _null(M, fit, *grams):
    """For the sum of B * M, for each B = S L S: estimates of its mean
    and variance under the hypothesis (:prf:ref:`thm-ci-null`)."""
    SM = fit.R(M)
    h = cho_solve(fit.squares, np.sum(SM * fit.S, axis=1))
    hat = fit.R((SM - fit.S * h).T)                 # S (M - diag h) S
    np.fill_diagonal(hat, 0.0)
    D = np.sqrt(np.sum(fit.S**2, axis=0))
    hat /= np.outer(D, D)
    return [(h @ B.diagonal(), 2 * np.sum((hat * B) ** 2)) for B in grams]


def _gamma_tail(total, mean, variance):
    """Probability that a gamma variable is at least ``total``."""
    if not (mean > 0 and variance > 0):
        return 1.0
    return float(gammaincc(mean**2 / variance,
                           max(total, 0.0) * mean / variance))


# %% [9] Fine print
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


# %% [10] Fine print
def _freedom(d, ratio, n):
    """The degrees of freedom ν of :prf:ref:`lem-ci-freedom`."""
    s = ratio / (d + ratio)
    rest = n - 1 - len(d)           # directions that no z explains
    return (rest + s.sum()) ** 2 / (rest + s @ s)


class _Fit(NamedTuple):
    R: Callable             # B -> S B, from few columns if they do
    S: np.ndarray
    squares: tuple          # a Cholesky factor of S * S
    lam: float
    freedom: float
    share: float            # of n - 1, that the eigenvalues fill


def _regression(kz, Z, lam):
    """The regression on Z, for a given λ or by default."""
    F, scale, trace = _centred_factor(kz, Z, "kz")
    n, r = F.shape
    if r > n // 4:
        d, U = eigh(F @ F.T)                # the first: constants
        d, U = np.maximum(d[1:], 0.0), U[:, 1:]
    else:
        U, root, _ = svd(F, full_matrices=False)
        d = root**2
    if lam is not None:
        ratio = _ratio(trace, n, scale, lam, "kz")
    else:
        ratio = 1e-10 * trace or 1.0        # less is lost in rounding
        if _freedom(d, ratio, n) < n / 2:
            ends = math.log(ratio), math.log(1e3 * n * d.max())
            ratio = math.exp(brentq(lambda t: _freedom(
                d, math.exp(t), n) - n / 2, *ends))
    fit = (d / (d + ratio))[:, None]

    def R(B):
        B = B - B.mean(axis=0)
        return B - U @ (fit * (U.T @ B))

    S = R(np.eye(n))
    squares = S**2 + 1e-10 * S.max() ** 2 * np.eye(n)   # if singular
    share = d.sum() ** 2 / (d @ d) / (n - 1) if d.any() else 0.0
    return _Fit(R if r <= n // 4 else S.__matmul__, S, cho_factor(squares),
                ratio / n * scale, float(_freedom(d, ratio, n)), share)


# %% [11] Fine print
def _residual_features(kernel, X, name, R):
    """R H F with mean square one, and the square of its unit, which is
    zero if nothing but rounding errors is left."""
    F, scale, trace = _centred_factor(kernel, X, name)
    P = R(F)
    if np.sum(F * F) <= 1e-14 * trace or np.sum(P * P) <= 1e-24 * trace:
        return P, 0.0
    unit = float(np.sqrt(np.mean(P * P)))
    return P / unit, unit**2 * scale


def _weights(kz, Z):
    """The matrix of w(z_i, z_j) = (1 + m / mean of m(z, z)) / 2."""
    d = kz.diag(Z)
    top = d.max() or 1.0
    return 0.5 + kz(Z) / top / (np.mean(d / top) or 1.0) / 2


def _meet(P, Q):
    """Whether some triple has a residual of X and one of Y; P and Q
    have mean square one, so what is less is rounding."""
    return np.sum(P**2, axis=1) @ np.sum(Q**2, axis=1) > (
        1e-28 * P.size * Q.size / len(P))


def _record(T, mean, variance, pvalue, unit, *rest):
    """The record, from sums in the given unit."""
    with np.errstate(over="ignore"):
        values = check.finite(np.array([T, mean, math.sqrt(variance)])
                              * unit, "the product of kx and ky")
    return ConditionalTest(values[0], pvalue, *values[1:], *rest)


# %% [12] Fine print
def _probe(w):
    """Gram matrix of functions of Z that are finer than those of w."""
    size = np.sqrt(w.diagonal())
    g = (w / np.outer(size, size)) ** 4
    for _ in range(40):
        if g.mean() <= 0.6:
            break
        g = g * g
    return g


def _coordinates(Z):
    """If the points are vectors: for each coordinate that varies, the
    Gram matrix of a Gaussian kernel 0.7 standard deviations wide."""
    try:
        columns = as_points(Z).T
    except ValueError:                      # points of another kind
        return
    for v in columns if len(columns) > 1 else ():
        if v.min() < v.max():
            v = v / np.abs(v).max()
            v = v / (0.7 * v.std())
            yield np.exp(-np.subtract.outer(v, v) ** 2 / 2)


def _misfit(g, fit, residuals):
    """p-values: do the residuals depend on Z, by functions of g?"""
    left = np.vdot(fit.R(g), fit.S)         # trace of S g S
    return [_gamma_tail(np.vdot(V, g), *m) if left > 1e-12 * len(g)
            else 1.0 for V, m in zip(residuals, _null(g, fit, *residuals))]


def _objection(w, Z, fit, residuals, moments):
    """Why there can be no verdict; empty if there can."""
    if not min(moments) > 0:
        return "too little varies under the hypothesis"
    if fit.freedom < 10:
        return (f"the regressions on Z leave {fit.freedom:.1f} degrees "
                "of freedom, fewer than 10")
    if fit.share > 0.5:
        return "to kz hardly any two values of Z are alike"
    pvalues = np.array(_misfit(_probe(w), fit, residuals))
    single = [_misfit(g, fit, residuals) for g in _coordinates(Z)]
    if single:                              # half of the level to each
        pvalues = 2 * np.minimum(pvalues,
                                 len(single) * np.min(single, axis=0))
    if pvalues.max() < 0.01:
        return ("what is left of X and what is left of Y both still "
                "depend on Z: kz does not suit, or lam is too large")
    return ""


# %% [13] The test as a function
@dataclass(frozen=True)
class ConditionalTest(GammaTest):
    """What `conditional_independence_test` has found.

    Attributes
    ----------
    statistic, pvalue, mean, std : float
        As in `GammaTest`. The p-value is 1 if the test is undecided.
    lam : float
        The λ of the regressions on Z.
    freedom : float
        The degrees of freedom that they leave
        (:prf:ref:`lem-ci-freedom`).
    undecided : str
        Why the data and the kernel do not allow a verdict; empty if
        they do.
    """

    lam: float
    freedom: float
    undecided: str


# %% [14] The test as a function
def conditional_independence_test(kx: Kernel, ky: Kernel, kz: Kernel,
                                  X, Y, Z, *, lam: float | None = None
                                  ) -> ConditionalTest:
    """Test whether X and Y are independent given Z
    (:prf:ref:`prop-residual-statistic`, :prf:ref:`thm-ci-null`).

    Parameters
    ----------
    kx, ky, kz : Kernel
        Bounded and characteristic to see every dependence
        (:prf:ref:`thm-conditional-zero`).
    X, Y, Z : sequences of n >= 4 points
        The triples (x_i, y_i, z_i).
    lam : float, optional
        λ > 0 of the regressions on Z (K_z + nλI in matrices). Default:
        the least that leaves half of the degrees of freedom.

    Returns
    -------
    ConditionalTest
        With an approximate p-value: the regressions are not perfect,
        and a gamma distribution replaces the exact one. It is 1 where
        the test cannot tell; ``undecided`` says why. What is left by the
        regressions is checked against each coordinate of vectors Z, too.

    Examples
    --------
    >>> from rkhs_lit.kernels import Gaussian
    >>> rng, k = np.random.default_rng(0), Gaussian(1.0)
    >>> z, u = rng.normal(size=(2, 100))
    >>> conditional_independence_test(k, k, k, z + u, u, z).pvalue < 1e-6
    True
    """
    n = len(_triples(kx, ky, kz, X, Y, Z)[2])
    if n < 4:
        raise ValueError(f"X must hold at least 4 points, got {n}")
    fit = _regression(kz, Z, lam)
    P, p = _residual_features(kx, X, "kx", fit.R)
    Q, q = _residual_features(ky, Y, "ky", fit.R)
    A, B, w = P @ P.T, Q @ Q.T, _weights(kz, Z)
    T, moments, undecided = 0.0, np.zeros(2), (
        "nothing is left of X or of Y after the regression on Z")
    if p > 0 and q > 0 and _meet(P, Q):
        T = max(np.vdot(A * B, w), 0.0)
        moments = np.mean(_null(A * w, fit, B) + _null(B * w, fit, A),
                          axis=0)
        undecided = _objection(w, Z, fit, (A, B), moments)
    pvalue = 1.0 if undecided else _gamma_tail(T, *moments)
    return _record(T, *moments, pvalue, p * q / n**2, fit.lam, fit.freedom,
                   undecided)
