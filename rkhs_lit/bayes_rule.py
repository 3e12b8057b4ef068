"""Bayes' rule: change the prior, keep the sample

The exported cells of the chapter ``book/bayes_rule.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 6825c9cc12133bda

# %% [1] Bayes' rule: change the prior, keep the sample
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import (LinAlgError, LinAlgWarning, cho_factor,
                          cho_solve, eigh, lu_factor, lu_solve,
                          solve_triangular)

import rkhs_lit.conventions as check
from rkhs_lit.bochner import NystromFeatures, _take, pivoted_cholesky
from rkhs_lit.conditional_embedding import (_KERNEL, _bounded, _one_point,
                                            _reworded, _sample, _shift,
                                            _table)
from rkhs_lit.cross_covariance import RKHSOperator, _power, _same_space
from rkhs_lit.kernels import Kernel
from rkhs_lit.mean_embedding import GaussianEmbedding
from rkhs_lit.moore_aronszajn import RKHSFunction
from rkhs_lit.ridge import _at, _check_visible, ridge_factor, _penalty, _split


# %% [2] One complex solve of small size
def _low_rank(kernel, X, tol, max_rank=None):
    """A factor G with G G' = K(X), and a function that gives the
    features of points T with G features(T)' = k(X, T)."""
    G, pivots = pivoted_cholesky(kernel, X, tol=tol, max_rank=max_rank,
                                 return_pivots=True)
    if len(pivots) == 0:                     # the kernel is zero at X
        return np.zeros((len(G), 0)), lambda T: np.zeros((len(T), 0))
    features = NystromFeatures(kernel, _take(X, pivots), G[pivots])
    return np.ascontiguousarray(G), features


def _posterior_weights(G, w, phi, eps, method):
    """The weights ζ of the posterior, from the weights w of the prior
    (:prf:ref:`thm-bayes-low-rank`)."""
    H, A = _shifted(G, w, eps, method)
    # NumPy alone: in a loop, the threads of NumPy's and of SciPy's BLAS
    # would get in each other's way.
    with np.errstate(over="ignore", invalid="ignore"):
        return _finite_weights(H @ np.linalg.solve(A, phi).real)


def _shifted(G, w, eps, method):
    """ΛG, and S + i√ε I or, for "clipped", S + εI."""
    clipped = method == "clipped"
    with np.errstate(over="ignore", invalid="ignore"):
        H = (np.maximum(w, 0.0) if clipped else w)[:, None] * G
        S = G.T @ H
    shift = _shift_beside(S, eps, method)
    A = S if clipped else S.astype(complex)
    A.flat[::len(A) + 1] += shift if clipped else 1j * shift
    return H, A


def _finite_weights(weights):
    return _bounded(weights, "eps must be larger: the weights overflow")


# %% [3] One complex solve of small size
def _shift_beside(S, eps, method, name="eps"):
    """√ε or ε, if it is not lost beside S."""
    shift = eps if method == "clipped" else math.sqrt(eps)
    size = np.abs(S).sum(axis=0).max(initial=0.0)
    if not shift >= np.finfo(float).eps * size:
        raise ValueError(f"{name} must be larger, or it is lost in the "
                         "rounding errors of an operator of size "
                         f"{size:.3g}")
    return shift


def _factorised(A):
    """LU factors of a complex matrix, Cholesky factors of a real one."""
    if len(A) == 0:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", LinAlgWarning)
            return lu_factor(A) if np.iscomplexobj(A) else cho_factor(
                A, lower=True)
    except (LinAlgError, LinAlgWarning):
        raise ValueError("eps must be larger: the operator plus its shift "
                         "is singular up to rounding") from None


def _shifted_solve(factor, phi):
    """(S + εI)⁻¹ φ, or the real part of (S + i√ε I)⁻¹ φ."""
    if factor is None:
        return np.zeros(phi.shape)
    if np.iscomplexobj(factor[0]):
        return lu_solve(factor, phi).real
    return cho_solve(factor, phi)


# %% [4] One complex solve of small size
METHODS = "squared", "clipped"


def _called(name, compute):
    """compute(), with errors that speak of the argument `name`."""
    with _reworded(_KERNEL, name):
        return compute()


# %% [5] One complex solve of small size
def _prior_weights(l, Y, prior, lam, tol):
    """The weights w = F (F'F + nλI)⁻¹ p of the prior."""
    _is_prior(prior, l)
    shift = _shift(len(Y), _penalty(lam))
    F, features = _called("l", lambda: _low_rank(l, Y, tol))
    p = _coordinates(prior, features)
    if len(p) == 0:                          # the kernel is zero at Y
        return np.zeros(len(Y))
    with np.errstate(over="ignore", invalid="ignore"):
        factor = _called("l", lambda: ridge_factor(F.T @ F, shift, "n lam"))
        return _bounded(F @ cho_solve(factor, p),
                        "lam must be larger: the weights overflow")


# %% [6] One complex solve of small size
def _is_prior(prior, l):
    if not isinstance(prior, (RKHSFunction, GaussianEmbedding)):
        raise ValueError("prior must be an RKHSFunction or a "
                         f"GaussianEmbedding, got {type(prior).__name__}")
    if not _same_space(prior.kernel, l):
        raise ValueError(f"prior must have the kernel {l}, got "
                         f"{prior.kernel}")


def _coordinates(prior, features):
    """The vector p with prior(Y) = F p."""
    if not isinstance(features, NystromFeatures):
        return np.zeros(0)
    try:
        values = prior(features.landmarks)
    except ValueError as error:
        raise ValueError("prior does not suit the points Y: "
                         f"{error}") from None
    return solve_triangular(features.factor, values, lower=True)


# %% [7] One complex solve of small size
def kernel_sum_rule(k: Kernel, l: Kernel, X, Y,
                    prior: RKHSFunction | GaussianEmbedding, lam: float,
                    eps: float | None = None, *, tol: float = 1e-14
                    ) -> RKHSFunction:
    """The embedding of X when Y has another distribution, by the kernel
    sum rule (:prf:ref:`thm-kernel-sum-rule`).

    Parameters
    ----------
    k, l : Kernel
        Positive definite, on the points X and on the points Y.
    X, Y : sequences of n points
        The pairs (x_i, y_i), effects and causes.
    prior : RKHSFunction or GaussianEmbedding
        The embedding in H_l of the new distribution of Y.
    lam : float
        The number λ > 0 that is added to the operator C_YY, so that nλ
        is added to the Gram matrix of Y.
    eps : optional
        Not used: so that all three rules take the same arguments.
    tol : float
        The share of the trace of the Gram matrix that its low-rank
        factor may leave out.

    Returns
    -------
    RKHSFunction
        Σ w_i k(x_i, ·) in H_k with w = (L + nλI)⁻¹ prior(Y). The n w_i
        estimate the density ratio at y_i; some may be negative.

    Examples
    --------
    Of three days without sun two were rainy; sun makes all dry. If half
    of the days have sun:

    >>> from rkhs_lit.kernels import Delta
    >>> d = Delta()
    >>> half = RKHSFunction(d, ["sun", "cloud"], [0.5, 0.5])
    >>> mu = kernel_sum_rule(d, d, ["dry", "wet", "wet", "dry"],
    ...                      ["cloud", "cloud", "cloud", "sun"], half,
    ...                      1e-12)
    >>> mu(["dry", "wet"]).round(6)
    array([0.666667, 0.333333])
    """
    X, Y = _sample(k, l, X, Y)
    w = _prior_weights(l, Y, prior, lam, check.tolerance(tol, zero=True))
    return RKHSFunction(k, X, w)


# %% [8] One complex solve of small size
def kernel_chain_rule(k: Kernel, l: Kernel, X, Y,
                      prior: RKHSFunction | GaussianEmbedding, lam: float,
                      eps: float | None = None, *, tol: float = 1e-14
                      ) -> RKHSOperator:
    """The embedding of (X, Y) when Y has another distribution, by the
    kernel chain rule (:prf:ref:`thm-kernel-chain-rule`).

    Parameters
    ----------
    k, l, X, Y, prior, lam, eps, tol : as for `kernel_sum_rule`

    Returns
    -------
    RKHSOperator
        Σ w_i k(x_i, ·) ⊗ l(y_i, ·) from H_l to H_k, an estimate of the
        uncentred cross-covariance operator under the prior.
    """
    X, Y = _sample(k, l, X, Y)
    w = _prior_weights(l, Y, prior, lam, check.tolerance(tol, zero=True))
    return RKHSOperator(k, X, l, Y, w)


# %% [9] One complex solve of small size
class _Posterior:
    def __post_init__(self):
        X, Y = _sample(self.k, self.l, self.X, self.Y)
        w = check.vector(self.prior_weights, "prior_weights", len(X))
        eps = check.positive(self.eps, "eps")
        tol = check.tolerance(self.tol, zero=True)
        check.choice(self.method, "method", METHODS)
        G, features = _called("k", lambda: _low_rank(self.k, X, tol))
        H, A = _shifted(G, w, eps, self.method)
        factor = _factorised(A)
        for array in (H, *(factor or ())):
            if isinstance(array, np.ndarray):
                array.setflags(write=False)
        for name, value in (("X", X), ("Y", Y), ("prior_weights", w),
                            ("eps", eps), ("_weighted", H),
                            ("_factor", factor), ("_features", features)):
            object.__setattr__(self, name, value)

    def __repr__(self):
        return (f"KernelPosterior({self.k} -> {self.l}, n={len(self.X)}, "
                f"{self.method}, eps={self.eps:.6g})")

    def _averages(self, values, phi):
        """Σ ζ_i g(y_i) for the values g(y_i), a row for each row of phi."""
        size = _power(np.abs(values).max()) or 1.0
        c = _shifted_solve(self._factor, self._weighted.T @ (values / size))
        with np.errstate(over="ignore", invalid="ignore"):
            return _bounded(size * (phi @ c), "g is too large: its "
                            "expectations overflow")


# %% [10] One complex solve of small size
@dataclass(frozen=True, eq=False, repr=False)
class KernelPosterior(_Posterior):
    """The embeddings of the posterior distributions of Y given X = x,
    for all x (:prf:ref:`thm-kbr-gram`).

    Made by `kernel_bayes_rule`, or from weights of the prior that are
    known. ``posterior(x)`` is a function of H_l.

    Parameters
    ----------
    k, l : Kernel
    X, Y : sequences of n points
    prior_weights : (n,) array
        The numbers w_i: the density ratio at y_i, divided by n.
    eps, method, tol : as for `kernel_bayes_rule`
    """

    k: Kernel
    l: Kernel
    X: Sequence
    Y: Sequence
    prior_weights: np.ndarray
    eps: float
    method: str = "squared"
    tol: float = 1e-14

    def weights(self, T) -> np.ndarray:
        """The weights ζ(t) of the posteriors at the points T, an (n, m)
        array."""
        phi = _at(self.k, T, self._features)
        with np.errstate(over="ignore", invalid="ignore"):
            return _finite_weights(self._weighted @ _shifted_solve(
                self._factor, phi.T))

    def __call__(self, x) -> RKHSFunction:
        """The function of H_l for one point x, of any kind."""
        with _reworded("^T ", "x must be one point like those of X, but as "
                       "a list of one, T "):
            w = self.weights(_one_point(x))
        return RKHSFunction(self.l, self.Y, w[:, 0])

    def expectation(self, g, T) -> np.ndarray:
        """Estimates of the posterior expectation of g(Y) for the points
        T: g is a function of H_l, or any function that takes Y and
        returns n numbers (or n rows), or these numbers."""
        return self._averages(_table(g, self.l, self.Y),
                              _at(self.k, T, self._features))


# %% [11] One complex solve of small size
def kernel_bayes_rule(k: Kernel, l: Kernel, X, Y,
                      prior: RKHSFunction | GaussianEmbedding, lam: float,
                      eps: float, *, method: str = "squared",
                      tol: float = 1e-14) -> KernelPosterior:
    """The posterior embeddings of Y given X = x for another prior
    distribution of Y (:prf:ref:`thm-kernel-bayes-rule`).

    Parameters
    ----------
    k, l, X, Y, prior, lam : as for `kernel_sum_rule`
    eps : float
        The number ε > 0: added to the square of the operator C_XX of
        the prior (so that √ε compares with its eigenvalues), or, for
        "clipped", to that operator itself.
    method : str
        "squared" for (C² + εI)⁻¹ C, or "clipped" for (C + εI)⁻¹ with
        the positive parts of the weights.
    tol : float
        The share of the traces of the Gram matrices that their low-rank
        factors may leave out. Takes O(n r²) operations for the rank r.

    Returns
    -------
    KernelPosterior
        posterior(x) is Σ ζ_i(x) l(y_i, ·), with weights of any sign.

    Examples
    --------
    As for `kernel_sum_rule`: three dry days of four have had sun.

    >>> from rkhs_lit.kernels import Delta
    >>> d = Delta()
    >>> half = RKHSFunction(d, ["sun", "cloud"], [0.5, 0.5])
    >>> posterior = kernel_bayes_rule(
    ...     d, d, ["dry", "wet", "wet", "dry"],
    ...     ["cloud", "cloud", "cloud", "sun"], half, 1e-12, 1e-24)
    >>> posterior("dry")(["sun", "cloud"]).round(6)
    array([0.75, 0.25])
    """
    X, Y = _sample(k, l, X, Y)
    w = _prior_weights(l, Y, prior, lam, check.tolerance(tol, zero=True))
    return KernelPosterior(k, l, X, Y, w, eps, method, tol)


# %% [12] Choosing the parameters
def _ratio_scores(F, p, lams, folds):
    """The first score for every λ, and the estimates of the density
    ratio at the points left out, a row for each λ."""
    n, scores = len(F), np.zeros(len(lams))
    ratios = np.empty((len(lams), n))
    for fold in folds:
        rest = np.setdiff1d(np.arange(n), fold)
        C = F[rest].T @ F[rest] / len(rest)
        _check_visible(lams.min(), np.abs(C).sum(axis=0).max(initial=0.0),
                       "lams")
        d, U = eigh(C)
        theta = U @ ((U.T @ p)[:, None] / (np.maximum(d, 0)[:, None]
                                           + lams))
        ratios[:, fold] = (F[fold] @ theta).T
        scores += np.sum(ratios[:, fold] ** 2 / 2, axis=1)
        scores -= len(fold) * (p @ theta)
    return scores / n, ratios


def _risk_sums(F, G, p, ratio, lam, epsilons, folds, method):
    """The sums of the second score for every ε."""
    n, total = len(F), np.zeros(len(epsilons))
    for fold in folds:
        rest = np.setdiff1d(np.arange(n), fold)
        factor = ridge_factor(F[rest].T @ F[rest], len(rest) * lam, "n lam")
        w = F[rest] @ cho_solve(factor, p)
        if method == "clipped":
            w = np.maximum(w, 0.0)
        S = G[rest].T @ (w[:, None] * G[rest])
        s, V = eigh(S)
        out = (F[rest].T @ (w[:, None] * G[rest])) @ V
        for j, eps in enumerate(epsilons):
            shift = _shift_beside(S, eps, method, "epsilons")
            c = ((1 / (s + 1j * shift)).real if method == "squared"
                 else 1 / (np.maximum(s, 0) + shift))
            miss = F[fold] - (G[fold] @ V * c) @ out.T
            total[j] += ratio[fold] @ np.sum(miss**2, axis=1)
    return total


# %% [13] Choosing the parameters
@dataclass(frozen=True, eq=False, repr=False)
class BayesValidation:
    """Parameters of the kernel Bayes rule chosen on points left out
    (:prf:ref:`prop-kbr-scores`).

    Made by `validate_bayes_rule`.

    Attributes
    ----------
    lams : (a,) array
    epsilons : (b,) array
    ratio_scores : (a,) array
        The first score of each λ, half the mean squared error of the
        density ratio up to a constant.
    risks : (b,) array
        The second score of each ε, for the chosen λ.
    lam : float
        The λ with the least score.
    eps : float
        The ε with the least risk.
    """

    lams: np.ndarray
    epsilons: np.ndarray
    ratio_scores: np.ndarray
    risks: np.ndarray
    lam: float
    eps: float

    def __repr__(self):
        return f"BayesValidation(lam={self.lam:.6g}, eps={self.eps:.6g})"


# %% [14] Choosing the parameters
def validate_bayes_rule(k: Kernel, l: Kernel, X, Y,
                        prior: RKHSFunction | GaussianEmbedding, lams,
                        epsilons, *, method: str = "squared", folds=5,
                        rng=None, tol: float = 1e-14) -> BayesValidation:
    """Choose λ and ε of the kernel Bayes rule by cross-validation
    (:prf:ref:`prop-kbr-scores`).

    Parameters
    ----------
    k, l, X, Y, prior, method, tol : as for `kernel_bayes_rule`
    lams, epsilons : lists of positive numbers
    folds : int, or list of lists of indices
        The number of folds, drawn at random, or the folds.
    rng : seed or numpy.random.Generator, to draw the folds

    Returns
    -------
    BayesValidation
        Its ``lam`` and ``eps`` are for `kernel_bayes_rule`. With the
        same lams and folds, risks of both methods can be compared.
    """
    F, G, p = _factors_of(k, l, X, Y, prior, tol)
    lams = check.positives(lams, "lams")
    epsilons = check.positives(epsilons, "epsilons")
    check.choice(method, "method", METHODS)
    folds, _ = _split(len(F), folds, 0, rng)
    with np.errstate(all="ignore"):
        scores, ratios = _ratio_scores(F, p, lams, folds)
        best = _bounded(scores, "prior must be smaller, or lams larger: "
                        "the scores overflow").argmin()
        lam, ratio = float(lams[best]), np.maximum(ratios[best], 0.0)
        if not ratio.sum() > 0:
            raise ValueError("prior must have mass near the points Y, but "
                             "no estimate of the density ratio is positive")
        ratio /= ratio.sum()
        risks = _bounded(_risk_sums(F, G, p, ratio, lam, epsilons, folds,
                                    method),
                         "epsilons must be larger: the scores overflow")
    return BayesValidation(lams, epsilons, check.frozen(scores),
                           check.frozen(risks), lam,
                           float(epsilons[risks.argmin()]))


# %% [15] Choosing the parameters
def _factors_of(k, l, X, Y, prior, tol):
    """The factors F of L and G of K, and the prior's coordinates p."""
    X, Y = _sample(k, l, X, Y)
    _is_prior(prior, l)
    tol = check.tolerance(tol, zero=True)
    F, features = _called("l", lambda: _low_rank(l, Y, tol))
    G, _ = _called("k", lambda: _low_rank(k, X, tol))
    return F, G, _coordinates(prior, features)
