"""Bayes' rule: change the prior, keep the sample

The exported cells of the chapter ``book/bayes_rule.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 2e1e0a455f6a313e

# %% [1] Bayes' rule: change the prior, keep the sample
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy.linalg import cho_solve, eigh, solve_triangular

import rkhs_lit.conventions as check
from rkhs_lit.bochner import pivoted_cholesky
from rkhs_lit.conditional_embedding import one_point, values_at
from rkhs_lit.cross_covariance import RKHSOperator
from rkhs_lit.kernels import Kernel
from rkhs_lit.mean_embedding import GaussianEmbedding
from rkhs_lit.moore_aronszajn import (Features, RKHSFunction, as_function,
                                      paired)
from rkhs_lit.ridge import ridge_factor, ridge_spectrum, split_folds


# %% [2] One complex solve of small size
METHODS = "squared", "clipped"


def _resolvent(G, w, eps, method, name="eps"):
    """ΛG, and the matrix S + i√ε I or, for "clipped", S + εI."""
    clipped = method == "clipped"
    with np.errstate(over="ignore", invalid="ignore"):
        LG = (np.maximum(w, 0.0) if clipped else w)[:, None] * G
        S = G.T @ LG
    shift = eps if clipped else 1j * math.sqrt(eps)
    size = np.abs(S).sum(axis=0).max()
    if not abs(shift) >= np.finfo(float).eps * size:
        raise ValueError(f"{name} must be larger, or it is lost beside an "
                         f"operator of size {size:.3g}")
    return LG, S + shift * np.eye(len(S))


def posterior_weights(G, w, phi, eps: float,
                      method: str = "squared") -> np.ndarray:
    """The weights ζ = Re ΛG (S + i√ε I)⁻¹ φ of a posterior, from the
    weights w of the prior, for K = G G', S = G'ΛG and a φ, or columns φ,
    with k_X(x) = G φ (:prf:ref:`thm-bayes-low-rank`); ε and the method
    as for `kernel_bayes_rule`."""
    LG, A = _resolvent(G, w, eps, method)
    # NumPy alone: in a loop, the threads of NumPy's and of SciPy's BLAS
    # would get in each other's way.
    with np.errstate(over="ignore", invalid="ignore"):
        return check.finite(LG @ np.linalg.solve(A, phi).real, "eps")


# %% [3] Coordinates in the place of features
@dataclass(frozen=True, eq=False, repr=False)
class Coordinates(check.Record):
    """Vectors φ in the place of features (:prf:ref:`thm-bayes-low-rank`).

    ``phi(Psi)`` has the vectors φ(t) of the points of Ψ in its rows.

    Parameters
    ----------
    Phi : Features
        The map of the points X.
    tol, max_rank : as for `pivoted_cholesky`

    Attributes
    ----------
    G : (n, r) array
        The vectors of X: K = G G' and k_X(t) = G φ(t).
    """

    Phi: Features
    tol: float
    max_rank: int | None = None

    def __post_init__(self):
        Phi = self.Phi
        G, pivots = pivoted_cholesky(Phi.kernel, Phi, tol=self.tol,
                                     max_rank=self.max_rank,
                                     return_pivots=True)
        R = G[pivots]                            # triangular
        if len(pivots) == 0:                     # the kernel is zero at X
            G, R, pivots = np.zeros((len(G), 1)), np.eye(1), [0]
        vars(self).update(G=check.frozen(np.ascontiguousarray(G)),
                          _R=check.frozen(R), _U=Phi[pivots])

    def __repr__(self):
        return f"Coordinates({self.Phi}, r={len(self._R)})"

    def __call__(self, Psi: Features) -> np.ndarray:
        return solve_triangular(self._R, Psi.gram(self._U).T, lower=True).T

    def of(self, f: RKHSFunction | GaussianEmbedding,
           name: str = "f") -> np.ndarray:
        """The vector p with f(X) = G p, for f with the same kernel."""
        k = self.Phi.kernel
        if isinstance(f, GaussianEmbedding) and f.kernel == k:
            values = f(self._U.points)
        else:
            values = values_at(as_function(f, name, k), self._U, name)
        return solve_triangular(self._R, values, lower=True)


# %% [4] Coordinates in the place of features
def _prior_weights(Psi, prior, lam, tol):
    """The weights w = F (F'F + nλI)⁻¹ p of the prior."""
    phi = Coordinates(Psi, tol)
    F, p = phi.G, phi.of(prior, "prior")
    shift = check.positive(len(F) * check.positive(lam, "lam"), "n lam")
    factor = ridge_factor(F.T @ F, shift, "n lam", "l")
    with np.errstate(over="ignore", invalid="ignore"):
        return check.finite(F @ cho_solve(factor, p), "prior")


# %% [5] Coordinates in the place of features
def kernel_sum_rule(k: Kernel, l: Kernel, X, Y,
                    prior: RKHSFunction | GaussianEmbedding, lam: float,
                    eps: float | None = None, *, tol: float = 1e-14
                    ) -> RKHSFunction:
    """The embedding of X when Y has another distribution, by the kernel
    sum rule (:prf:ref:`thm-kernel-sum-rule`).

    Parameters
    ----------
    k, l : Kernel
        On the points X and on the points Y.
    X, Y : sequences of n points
        The pairs (x_i, y_i), effects and causes.
    prior : RKHSFunction or GaussianEmbedding
        The embedding in H_l of the new distribution of Y.
    lam : float
        λ > 0, added to the operator C_YY: nλ beside the Gram matrix.
    eps : optional
        Not used: so that all three rules take the same arguments.
    tol : float
        The share of the trace of a Gram matrix that its low-rank factor
        may leave out.

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
    Phi, Psi = paired(k, l, X, Y)
    return Phi @ _prior_weights(Psi, prior, lam, tol)


# %% [6] Coordinates in the place of features
def kernel_chain_rule(k: Kernel, l: Kernel, X, Y,
                      prior: RKHSFunction | GaussianEmbedding, lam: float,
                      eps: float | None = None, *, tol: float = 1e-14
                      ) -> RKHSOperator:
    """The embedding of (X, Y) when Y has another distribution, by the
    kernel chain rule (:prf:ref:`thm-kernel-chain-rule`).

    All arguments are those of `kernel_sum_rule`. The operator from H_l
    to H_k is Σ w_i k(x_i, ·) ⊗ l(y_i, ·), an estimate of the uncentred
    cross-covariance operator under the prior.
    """
    Phi, Psi = paired(k, l, X, Y)
    w = _prior_weights(Psi, prior, lam, tol)
    return RKHSOperator(k, Phi, l, Psi, w)


# %% [7] Coordinates in the place of features
@dataclass(frozen=True, eq=False, repr=False)
class KernelPosterior(check.Record):
    """The embeddings of the posterior distributions of Y given X = x,
    for all x (:prf:ref:`thm-kbr-gram`).

    Made by `kernel_bayes_rule`, or from weights of the prior that are
    known. ``posterior(x)`` is a function of H_l.

    Parameters
    ----------
    k, l, X, Y, eps, method, tol : as for `kernel_bayes_rule`
    prior_weights : (n,) array
        The numbers w_i: the density ratio at y_i, divided by n.
    """

    k: Kernel
    l: Kernel
    X: Sequence
    Y: Sequence
    prior_weights: np.ndarray
    eps: float
    method: str = "squared"
    tol: float = 1e-14

    def __post_init__(self):
        Phi, Psi = paired(self.k, self.l, self.X, self.Y)
        w = check.vector(self.prior_weights, "prior_weights", len(Phi))
        eps = check.positive(self.eps, "eps")
        check.choice(self.method, "method", METHODS)
        phi = Coordinates(Phi, self.tol)
        Z = posterior_weights(phi.G, w, np.eye(phi.G.shape[1]), eps,
                              self.method)
        vars(self).update(X=Phi.points, Y=Psi.points, prior_weights=w,
                          eps=eps, Psi=Psi, phi=phi, Z=check.frozen(Z))

    def __repr__(self):
        return (f"KernelPosterior({self.k} -> {self.l}, n={len(self.Psi)}, "
                f"{self.method}, eps={self.eps:.6g})")

    def weights(self, T) -> np.ndarray:
        """The weights ζ(t) = Zφ(t) of the posteriors at the points T, an
        (n, m) array."""
        return self.Z @ self.phi(Features(self.k, T, "T", "k")).T

    def __call__(self, x) -> RKHSFunction:
        """The function of H_l for one point x, of any kind."""
        return self.Psi @ (self.Z @ self.phi(one_point(self.k, x))[0])

    def expectation(self, g, T) -> np.ndarray:
        """Estimates of the posterior expectation of g(Y) for the points
        T; g as for `ConditionalEmbedding.expectation`."""
        values = values_at(g, self.Psi)
        size = np.abs(values).max() or 1.0       # so that none overflows
        phi = self.phi(Features(self.k, T, "T", "k"))
        with np.errstate(over="ignore", invalid="ignore"):
            return check.finite(size * (phi @ (self.Z.T @ (values / size))),
                                "g")


# %% [8] Coordinates in the place of features
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
        The number ε > 0 beside the square of the operator C = C_XX of
        the prior (so that √ε compares with its eigenvalues), or, for
        "clipped", beside that operator itself.
    method : str
        "squared" for (C² + εI)⁻¹ C, or "clipped" for (C + εI)⁻¹ with
        the positive parts of the weights.
    tol : float
        As for `kernel_sum_rule`, for both Gram matrices. Takes O(n r²)
        operations for the rank r.

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
    Phi, Psi = paired(k, l, X, Y)
    w = _prior_weights(Psi, prior, lam, tol)
    return KernelPosterior(k, l, Phi, Psi, w, eps, method, tol)


# %% [9] Choosing the parameters
def _ratio_scores(F, p, lams, folds):
    """The first score for every λ, and the estimates of the density
    ratio at the points left out, a row for each λ."""
    n, scores = len(F), np.zeros(len(lams))
    ratios = np.empty((len(lams), n))
    for fold in folds:
        rest = np.setdiff1d(np.arange(n), fold)
        d, U = ridge_spectrum(F[rest].T @ F[rest] / len(rest), lams.min(),
                              "lams", "l")
        theta = U @ ((U.T @ p)[:, None] / (d[:, None] + lams))
        ratios[:, fold] = (F[fold] @ theta).T
        scores += np.sum(ratios[:, fold] ** 2 / 2, axis=1)
        scores -= len(fold) * (p @ theta)
    return scores / n, ratios


def _risks(F, G, p, ratio, lam, epsilons, folds, method):
    """The second score for every ε."""
    n, risks = len(F), np.zeros(len(epsilons))
    shifts = epsilons if method == "clipped" else 1j * np.sqrt(epsilons)
    for fold in folds:
        rest = np.setdiff1d(np.arange(n), fold)
        factor = ridge_factor(F[rest].T @ F[rest], len(rest) * lam, "n lam",
                              "l")
        w = F[rest] @ cho_solve(factor, p)
        LG, _ = _resolvent(G[rest], w, epsilons.min(), method, "epsilons")
        s, V = eigh(G[rest].T @ LG)
        left, right = G[fold] @ V, F[rest].T @ LG @ V
        for j, shift in enumerate(shifts):
            miss = F[fold] - (left * (1 / (s + shift)).real) @ right.T
            risks[j] += ratio[fold] @ np.sum(miss**2, axis=1)
    return risks


# %% [10] Choosing the parameters
@dataclass(frozen=True, eq=False, repr=False)
class BayesValidation(check.Record):
    """Parameters of the kernel Bayes rule chosen on points left out by
    `validate_bayes_rule` (:prf:ref:`prop-kbr-scores`).

    Attributes
    ----------
    lams, epsilons : (a,) and (b,) arrays
    ratio_scores : (a,) array
        The first score of each λ, half the mean squared error of the
        density ratio up to a constant.
    risks : (b,) array
        The second score of each ε, for the chosen λ.
    lam, eps : float
        Those with the least score and the least risk.
    """

    lams: np.ndarray
    epsilons: np.ndarray
    ratio_scores: np.ndarray
    risks: np.ndarray
    lam: float
    eps: float

    def __post_init__(self):
        names = "lams", "epsilons", "ratio_scores", "risks"
        vars(self).update({name: check.frozen(getattr(self, name))
                           for name in names})

    def __repr__(self):
        return f"BayesValidation(lam={self.lam:.6g}, eps={self.eps:.6g})"


# %% [11] Both parameters, one after the other
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
    rng : seed or numpy.random.Generator, optional
        To draw the folds.

    Returns
    -------
    BayesValidation
        Its ``lam`` and ``eps`` are for `kernel_bayes_rule`. With the
        same lams and folds, risks of both methods can be compared.
    """
    Phi, Psi = paired(k, l, X, Y)
    lams = check.positives(lams, "lams")
    epsilons = check.positives(epsilons, "epsilons")
    check.choice(method, "method", METHODS)
    folds, _ = split_folds(len(Phi), folds, rng=rng)
    phi = Coordinates(Psi, tol)
    F, G, p = phi.G, Coordinates(Phi, tol).G, phi.of(prior, "prior")
    with np.errstate(all="ignore"):
        scores, ratios = _ratio_scores(F, p, lams, folds)
        best = check.finite(scores, "prior").argmin()
        lam, ratio = float(lams[best]), np.maximum(ratios[best], 0.0)
        if not ratio.any():
            raise ValueError("prior must have mass near the points Y, but "
                             "no estimate of the density ratio is positive")
        risks = check.finite(_risks(F, G, p, ratio / ratio.sum(), lam,
                                    epsilons, folds, method), "epsilons")
    return BayesValidation(lams, epsilons, scores, risks, lam,
                           float(epsilons[risks.argmin()]))
