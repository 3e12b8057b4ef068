"""Conditional independence: what remains when Z is known"""
# The exported cells of book/conditional_independence.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: ddc8c620c207823a

# %% [1] Conditional independence: what remains when Z is known
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, cho_factor, cho_solve, eigvalsh, lapack, svd

import rkhs_lit.conventions as check
from rkhs_lit.cross_covariance import (RKHSOperator, cross_covariance,
                                       regularised_solve)
from rkhs_lit.hsic import GammaTest, gamma_pvalue
from rkhs_lit.kernels import Kernel
from rkhs_lit.mean_embedding import moved, squared_norm
from rkhs_lit.moore_aronszajn import Features
from rkhs_lit.pca import centre
from rkhs_lit.ridge import ridge_factor

# %% [2] The conditional covariance operator
def conditional_covariance(kx: Kernel, ky: Kernel, kz: Kernel, X, Y, Z,
                           lam: float) -> RKHSOperator:
    """The regularised conditional covariance operator S from H_ky to H_kx
    of triples (x_i, y_i, z_i): ⟨f, S g⟩ is the covariance of f(x_i) and
    g(y_i) less the part that a ridge regression on z_i explains, with
    λ > 0 added to the covariance operator of Z
    (:prf:ref:`thm-conditional-limit`).

    With linear kernels and a small λ it is the partial covariance:

    >>> from rkhs_lit.kernels import Linear
    >>> k = Linear()
    >>> S = conditional_covariance(k, k, k, [1., 2., 3.], [1., 0., 2.],
    ...                            [0., 0., 3.], 1e-6)
    >>> S.values([1.0], [1.0]).round(4)             # -1/2 · 1/3
    array([[-0.1667]])
    """
    Phi, Psi, Theta = _triples(kx, ky, kz, X, Y, Z)
    Sxy = cross_covariance(kx, ky, Phi, Psi)
    Sxz = cross_covariance(kx, kz, Phi, Theta)
    Szz = cross_covariance(kz, kz, Theta, Theta)
    Szy = cross_covariance(kz, ky, Theta, Psi)
    return Sxy - Sxz @ regularised_solve(Szz, Szy, lam)


def _triples(kx, ky, kz, X, Y, Z, at_least=1):
    """The maps Φ, Ψ and Θ of triples, at least so many."""
    maps = [Features(kx, X, "X", "kx"), Features(ky, Y, "Y", "ky"),
            Features(kz, Z, "Z", "kz")]
    for F in maps:
        if F.n != maps[0].n or F.n < at_least:
            raise ValueError(f"{F.name} must have as many points as X, and "
                             f"at least {at_least}, got {F.n}")
    return maps

# %% [3] Gram matrices
def conditional_hsic(Kx, Ky, Kz, lam: float) -> float:
    """The squared norm ``hs_norm(conditional_covariance(...)) ** 2``, from
    Gram matrices, which are centred here (:prf:ref:`thm-conditional-gram`).
    λ > 0 regularises the operator: K_z + nλI in matrices. If Kz is
    constant, it is ``hsic_biased(Kx, Ky)``.

    >>> x, y, z = np.array([[1., 2., 3.], [1., 0., 2.], [0., 0., 3.]])
    >>> K = [np.outer(v, v) for v in (x, y, z)]
    >>> round(conditional_hsic(*K, 1e-9), 6)          # (-1/6)²
    0.027778
    """
    A, B, C = _centred(Kx=Kx, Ky=Ky, Kz=Kz)
    mu = check.positive(len(A) * check.positive(lam, "lam"), "n lam")
    factor = ridge_factor(C, mu, "n lam", "Kz")
    RA, RB = mu * cho_solve(factor, A), mu * cho_solve(factor, B)
    bound = float(np.trace(Kx)) * float(np.trace(Ky))
    return _trace(RA, RB, bound) / len(A) ** 2


def normalised_conditional_hsic(Kx, Ky, Kz, lam: float) -> float:
    """The squared norm of the normalised conditional covariance operator
    (:prf:ref:`thm-normalised-operator`, :prf:ref:`thm-conditional-gram`).

    Arguments as in `conditional_hsic`; λ > 0 is added to all three
    covariance operators. The value is between 0 and the smaller rank of
    the centred Kx and Ky. For few values of X, Y and Z and λ → 0 it does
    not depend on the kernels, provided that they are characteristic.

    Without a third variable and for tables it is Pearson's χ²/n:

    >>> K = np.kron(np.eye(2), np.ones((3, 3)))
    >>> round(normalised_conditional_hsic(K, K, np.ones((6, 6)), 1e-9), 6)
    1.0
    """
    A, B, C = _centred(Kx=Kx, Ky=Ky, Kz=Kz)
    mu = check.positive(len(A) * check.positive(lam, "lam"), "n lam")
    x, y, z = (ridge_factor(K, mu, "n lam", name)
               for K, name in ((A, "Kx"), (B, "Ky"), (C, "Kz")))
    RNx = mu * cho_solve(z, cho_solve(x, A))
    RNy = mu * cho_solve(z, cho_solve(y, B))
    return _trace(RNx, RNy, len(A))


def _centred(**grams):
    """The centred Gram matrices, checked under their names."""
    n = len(check.real_array(grams["Kx"], "Kx", 2))
    for name, K in grams.items():
        K = check.real_array(K, name, 2)
        size = max(K.max(), -K.min())
        if K.shape != (n, n) or np.abs(K - K.T).max() > 1e-8 * size or (
                K.diagonal().min() < -1e-8 * size):
            raise ValueError(f"{name} must be a Gram matrix of {n} points, "
                             "symmetric with a diagonal that is not "
                             f"negative, got shape {K.shape}")
        yield centre(K)


@np.errstate(over="ignore", invalid="ignore")
def _trace(A, B, bound):
    """tr(A B), which is a squared norm."""
    value = check.finite(np.einsum("ij,ji->", A, B), "a sum over Kx and Ky")
    return squared_norm(float(value), bound, "Kx and Ky")

# %% [4] A test
def _null(M, fit, *grams):
    """For the sum of B * M, for each B = S L S: estimates of its mean
    and variance under the hypothesis (:prf:ref:`thm-ci-null`)."""
    n, SM = len(M), fit.times(M)
    diagonal = np.einsum("ij,ij->i", SM, fit.S)     # of S M S
    if diagonal.sum() <= 1e-12 * fit.sizes.sum():   # M is constant
        return [(0.0, 0.0)] * len(grams)
    h, d = cho_solve(fit.squares, diagonal), 1 / fit.sizes
    SM -= fit.S * h                                 # S (M - diag h)
    variances = np.zeros(len(grams))
    for j in range(0, n, step := -(-n // 8)):       # half of the matrix
        I, rows = slice(j, j + step), slice(j, n)
        hat = fit.times(SM[I].T, rows)              # S (M - diag h) S
        np.fill_diagonal(hat, 0.0)
        V = np.array([hat * B[rows, I] for B in grams]) ** 2
        variances += (4 * d[rows] @ V - 2 * d[I] @ V[:, :step]) @ d[I]
    return [*zip((h @ B.diagonal() for B in grams), variances)]

# %% [5] Fine print
def _factor(Phi):
    """c, the Gram matrix K of k / c, all with moved features, and a lower
    triangle L with LL' = K in this order of the points."""
    c, Phi = moved(Phi)[0].unit()
    K = Phi.gram()
    L, pivots, rank, _ = lapack.dpstrf(K.T, lower=1)
    L, order = np.tril(L[:, :max(rank, 1)]), pivots - 1
    squared_norm(K.diagonal()[order] - np.einsum("ij,ij->i", L, L), 1.0,
                 Phi.kernel_name)
    return c, K, L, order


def _freedom(d, ratio, n):
    """The degrees of freedom ν of :prf:ref:`lem-ci-freedom`."""
    s = ratio / (d + ratio)
    rest = n - 1 - len(d)           # directions that no z explains
    return float((rest + s.sum()) ** 2 / (rest + s @ s))


class _Fit(NamedTuple):
    S: np.ndarray
    U: np.ndarray | None    # S = H - U diag(s) U', if few columns do
    s: np.ndarray | None
    sizes: np.ndarray       # the diagonal of S S
    squares: tuple          # a Cholesky factor of S * S
    lam: float
    freedom: float
    share: float            # of n - 1, that the eigenvalues fill

    def times(self, B, rows=slice(None)):       # these rows of S B
        if self.U is None:
            return self.S[rows] @ B
        return (B[rows] - B.mean(axis=0)
                - (self.U[rows] * self.s) @ (self.U.T @ B))

# %% [6] Fine print
def _regression(Theta, lam):
    """The regression on Z, for a given λ or by default."""
    c, K, L, order = _factor(Theta)
    (n, rank), trace, U, s = L.shape, K.trace(), None, None
    if thin := 4 * rank <= n:
        F = L[np.argsort(order)]
        for _ in range(2):              # the second round removes rounding
            F = F - F.mean(axis=0)
    G = F.T @ F if thin else centre(K)      # its eigenvalues d are those
    ratio = 1e-10 * trace or 1.0            # of HKH; less is rounding
    if lam is not None:
        ratio = check.number(n * check.positive(lam, "lam") / c, "n lam")
        if not trace < 1e12 * ratio:
            raise ValueError(f"lam must be larger: {lam} is lost in the "
                             "rounding errors of kz")
    else:
        d = np.maximum(eigvalsh(G)[-(n - 1):], 0.0)  # less one: constants
        if _freedom(d, ratio, n) < n / 2:
            from scipy.optimize import brentq          # rare, slow
            ratio = math.exp(brentq(
                lambda t: _freedom(d, math.exp(t), n) - n / 2,
                math.log(ratio), math.log(1e3 * n * d.max())))
    if thin:
        U, s, _ = svd(F, full_matrices=False)
        s = s**2 / (s**2 + ratio)
        S = np.eye(n) - 1 / n - (U * s) @ U.T
    else:
        C = (G + trace / n) / ratio             # of S, but for constants
        C.flat[::n + 1] += 1                    # and I, the inverse
        L, _ = cho_factor(C.T, lower=True, overwrite_a=True)
        S, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
        S = centre(np.tril(S) + np.tril(S, -1).T)
    squares = S * S
    sizes = squares.sum(axis=0)
    squares.flat[::n + 1] += 1e-10 * S.max() ** 2       # if singular
    share = np.trace(G) ** 2 / (np.sum(G * G) or 1.0) / (n - 1)
    return _Fit(S, U, s, sizes, cho_factor(squares.T, overwrite_a=True),
                float(ratio / n * c),
                float(S.trace() ** 2 / sizes.sum()), share)

# %% [7] Fine print
def _residual_gram(Phi, fit):
    """S K S in units of its mean diagonal entry, and the unit; zero if
    nothing but rounding errors is left."""
    c, K, L, order = _factor(Phi)
    n, trace = len(K), K.trace()
    if fit.U is None and L.shape == K.shape:        # half of the product
        P = blas.dtrmm(1.0, L, fit.S[order].T, 1, 1, overwrite_b=1)
    else:
        P = fit.times(L[np.argsort(order)])
    unit = float(np.linalg.norm(P)) ** 2 / n
    if trace - n * K.mean() <= 1e-14 * trace or unit <= 1e-24 * trace / n:
        return np.zeros((n, n)), 0.0
    P /= math.sqrt(unit)
    return P @ P.T, unit * c

# %% [8] Fine print
def _finer(w, Z):
    """Gram matrices of functions of Z that are finer than those of w, and
    of functions of each coordinate that varies, if Z has several."""
    size = np.sqrt(w.diagonal())
    g = (w / np.outer(size, size)) ** 2
    for _ in range(41):
        g = g * g
        if g.mean() <= 0.6:
            break
    yield g
    vectors = isinstance(Z, np.ndarray) and Z.dtype.kind in "biuf"
    several = vectors and Z.ndim == 2 and len(Z.T) > 1
    for v in Z.T.astype(float) if several else ():
        if v.min() < v.max():
            v = v / np.abs(v).max()
            v = v / (0.7 * v.std())
            yield np.exp(-np.subtract.outer(v, v) ** 2 / 2)


def _objection(w, Z, fit, residuals, moments):
    """Why there can be no verdict; empty if there can."""
    if not min(moments) > 0:
        return "too little varies under the hypothesis"
    if fit.freedom < 10:
        return (f"the regressions on Z leave {fit.freedom:.1f} degrees "
                "of freedom, fewer than 10")
    if fit.share > 0.5:
        return "to kz hardly any two values of Z are alike"
    pvalues, *single = [np.array([
        gamma_pvalue(np.vdot(V, g), *m) for V, m in zip(
            residuals, _null(g, fit, *residuals))]) for g in _finer(w, Z)]
    if single:                              # half of the level to each
        pvalues = 2 * np.minimum(pvalues,
                                 len(single) * np.min(single, axis=0))
    if pvalues.max() < 0.01:
        return ("what is left of X and what is left of Y both still "
                "depend on Z: kz does not suit, or lam is too large")
    return ""

# %% [9] The test as a function
@dataclass(frozen=True)
class ConditionalTest(GammaTest):
    """What `conditional_independence_test` has found: a `GammaTest`, the λ
    of the regressions on Z, the degrees of freedom (tr S)² / tr S² that
    they leave (:prf:ref:`lem-ci-freedom`), and why the data and the kernel
    leave it undecided; empty, if they do not, and else the p-value is 1.
    """

    lam: float                  #: of the regressions on Z
    freedom: float              #: (tr S)² / tr S²
    undecided: str              #: why, or empty


def conditional_independence_test(kx: Kernel, ky: Kernel, kz: Kernel,
                                  X, Y, Z, *, lam: float | None = None
                                  ) -> ConditionalTest:
    """Test whether X and Y are independent given Z, from n >= 4 triples
    (:prf:ref:`prop-residual-statistic`, :prf:ref:`thm-ci-null`).

    Kernels that are bounded and characteristic see every dependence
    (:prf:ref:`thm-conditional-zero`). The λ > 0 of the regressions on Z
    (K_z + nλI) is by default the least to keep half the degrees of freedom.

    The p-value is approximate: regressions are not perfect, and a gamma
    distribution replaces the exact one; values below 1 % can be twice as
    frequent. It is 1 where the test cannot tell; see ``undecided``.

    >>> from rkhs_lit.kernels import Gaussian
    >>> rng, k = np.random.default_rng(0), Gaussian(1.0)
    >>> z, u = rng.normal(size=(2, 100))
    >>> conditional_independence_test(k, k, k, z + u, u, z).pvalue < 1e-6
    True
    """
    Phi, Psi, Theta = _triples(kx, ky, kz, X, Y, Z, at_least=4)
    n, fit, m = Theta.n, _regression(Theta, lam), Theta.unit()[1].gram()
    (A, a), (B, b) = _residual_gram(Phi, fit), _residual_gram(Psi, fit)
    if not A.diagonal() @ B.diagonal() > 1e-28 * n:
        return ConditionalTest(
            0.0, 1.0, 0.0, 0.0, fit.lam, fit.freedom,
            "nothing is left of X or of Y after the regression on Z")
    w = 0.5 + m / (m.diagonal().mean() or 1.0) / 2
    T = max(np.vdot(A * B, w), 0.0)
    moments = np.mean(_null(A * w, fit, B) + _null(B * w, fit, A), axis=0)
    undecided = _objection(w, Theta.points, fit, (A, B), moments)
    pvalue = 1.0 if undecided else gamma_pvalue(T, *moments)
    (mean, variance), unit = moments, check.finite(
        a * b / n**2, "the product of kx and ky")
    return ConditionalTest(T * unit, pvalue, mean * unit,
                           math.sqrt(variance) * unit, fit.lam, fit.freedom,
                           undecided)
