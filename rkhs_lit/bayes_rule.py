"""Bayes' rule: change the prior, keep the sample"""
# The exported cells of book/bayes_rule.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 383cc79360a63b61

# %% [1] Bayes' rule: change the prior, keep the sample
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

import rkhs_lit.conventions as check
from rkhs_lit.conditional_embedding import one_point, values_at
from rkhs_lit.cross_covariance import RKHSOperator
from rkhs_lit.kernels import Kernel
from rkhs_lit.low_rank import pivoted_cholesky
from rkhs_lit.mean_embedding import GaussianEmbedding
from rkhs_lit.moore_aronszajn import (Features, RKHSFunction, as_function,
                                      paired)
from rkhs_lit.ridge import ridge_factor, ridge_spectrum, split_folds

# %% [2] One complex solve of small size
METHODS = "squared", "clipped"
Embedding = RKHSFunction | GaussianEmbedding


def posterior_weights(G, w, phi, eps: float,
                      method: str = "squared") -> np.ndarray:
    """The weights ζ = Re ΛG (S + i√ε I)⁻¹ φ of a posterior, from the
    weights w of the prior, for K = G G', S = G'ΛG and a φ, or columns φ,
    with k_X(x) = G φ (:prf:ref:`thm-bayes-low-rank`). For "clipped" it is
    (S + εI)⁻¹, with the positive parts of w. No array is checked."""
    eps, shift = check.positive(eps, "eps"), 1j * math.sqrt(eps)
    if check.choice(method, "method", METHODS) == "clipped":
        w, shift = np.maximum(w, 0.0), eps
    with np.errstate(over="ignore", invalid="ignore"):
        LG = w[:, None] * G
        S = G.T @ LG
        size = np.abs(S).sum(axis=0).max()
        if not abs(shift) >= np.finfo(float).eps * size:
            raise ValueError("eps must be larger, or it is lost beside an "
                             f"operator of size {size:.3g}")
        # NumPy alone: in a loop, threads of two libraries would compete.
        R = np.linalg.solve(S + shift * np.eye(len(S)), phi)
        return check.finite(LG @ R.real, "eps")

# %% [3] Coordinates in the place of features
@dataclass(frozen=True, eq=False, repr=False)
class Coordinates(check.Record):
    """Vectors φ in the place of features (:prf:ref:`thm-bayes-low-rank`).

    ``phi(T)`` has the vectors φ(t) of the points T in its rows, and the
    (n, r) array ``phi.G`` those of the points X of Φ: K = G G' and
    k_X(t) = G φ(t), up to `tol` and `max_rank` of `pivoted_cholesky`."""

    Phi: Features
    tol: float
    max_rank: int | None = None

    def __post_init__(self):
        Phi = self.Phi
        if not isinstance(Phi, Features):
            raise ValueError(f"Phi must be Features, got {Phi!r}")
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

    def __call__(self, T) -> np.ndarray:
        """The vectors φ(t) of the points T, one in each row."""
        at_T = T if isinstance(T, Features) else Features(
            self.Phi.kernel, T, "T", self.Phi.kernel_name)
        return solve_triangular(self._R, at_T.gram(self._U).T, lower=True).T

    def of(self, f: Embedding, name: str = "f") -> np.ndarray:
        """The vector p with f(X) = G p, for f with the same kernel."""
        k = self.Phi.kernel
        exact = isinstance(f, GaussianEmbedding) and f.kernel == k
        values = (f(self._U.points) if exact else
                  values_at(as_function(f, name, k), self._U, name))
        return solve_triangular(self._R, values, lower=True)

# %% [4] Coordinates in the place of features
def kernel_sum_rule(k: Kernel, l: Kernel, X, Y, prior: Embedding,
                    lam: float, eps: float | None = None, *,
                    tol: float = 1e-14) -> RKHSFunction:
    """The embedding Σ w_i k(x_i, ·) of X when Y has another distribution,
    with w = (L + nλI)⁻¹ prior(Y) (:prf:ref:`thm-kernel-sum-rule`). The
    n w_i estimate the density ratio at y_i; some may be negative.

    X are n effects (kernel k) of the causes Y (kernel l); the prior in H_l
    embeds the new distribution of Y. A low-rank factor of L may leave out
    the share `tol` of the trace; eps only gives all rules one signature.

    Of three days without sun two were rainy; sun makes all dry. If half
    of the days have sun:

    >>> from rkhs_lit.kernels import Delta
    >>> d = Delta()
    >>> half = RKHSFunction(d, ["sun", "cloud"], [0.5, 0.5])
    >>> X, Y = ["dry", "wet", "wet", "dry"], ["cloud"] * 3 + ["sun"]
    >>> mu = kernel_sum_rule(d, d, X, Y, half, 1e-12)
    >>> mu(["dry", "wet"]).round(6)
    array([0.666667, 0.333333])
    """
    Phi, Psi = paired(k, l, X, Y)
    phi, shift = Coordinates(Psi, tol), Psi.n * check.positive(lam, "lam")
    F, p = phi.G, phi.of(prior, "prior")
    factor = ridge_factor(F.T @ F, shift, "n lam", "l")
    with np.errstate(over="ignore", invalid="ignore"):
        return Phi @ check.finite(F @ cho_solve(factor, p), "prior")


def kernel_chain_rule(k: Kernel, l: Kernel, X, Y, prior: Embedding,
                      lam: float, eps: float | None = None, *,
                      tol: float = 1e-14) -> RKHSOperator:
    """The embedding Σ w_i k(x_i, ·) ⊗ l(y_i, ·) of (X, Y) when Y has
    another distribution (:prf:ref:`thm-kernel-chain-rule`): an operator
    from H_l to H_k, the uncentred cross-covariance operator under the
    prior. Arguments and weights are those of `kernel_sum_rule`."""
    w = kernel_sum_rule(k, l, X, Y, prior, lam, tol=tol).weights
    return RKHSOperator(k, X, l, Y, w)                  # Φ diag(w) Ψ*

# %% [5] Coordinates in the place of features
@dataclass(frozen=True, eq=False, repr=False)
class KernelPosterior(check.Record):
    """The embeddings of the posterior distributions of Y given X = x,
    for all x (:prf:ref:`thm-kbr-gram`), made by `kernel_bayes_rule`, or
    from known weights of the prior, the density ratio at y_i over n."""

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
        w = check.vector(self.prior_weights, "prior_weights", Phi.n)
        phi = Coordinates(Phi, self.tol)
        Z = posterior_weights(phi.G, w, np.eye(phi.G.shape[1]), self.eps,
                              self.method)
        vars(self).update(X=Phi.points, Y=Psi.points, prior_weights=w,
                          eps=float(self.eps), Psi=Psi, phi=phi,
                          Z=check.frozen(Z))

    def __repr__(self):
        return (f"KernelPosterior({self.k} -> {self.l}, n={self.Psi.n}, "
                f"{self.method}, eps={self.eps:.6g})")

    def weights_at(self, T) -> np.ndarray:
        """The (n, m) weights ζ(t) = Zφ(t) of posteriors at m points T."""
        return self.Z @ self.phi(T).T

    def __call__(self, x) -> RKHSFunction:
        """The function of H_l for one point x, of any kind."""
        k_x = one_point(self.k, x, "x", "k")
        return self.Psi @ (self.Z @ self.phi(k_x)[0])

    def expectation(self, g, T) -> np.ndarray:
        """Estimates of the posterior expectation of g(Y) for the points
        T; g as for `ConditionalEmbedding.expectation`."""
        phi, values = self.phi(T), values_at(g, self.Psi)
        with np.errstate(over="ignore", invalid="ignore"):
            return check.finite(phi @ (self.Z.T @ values), "g")


def kernel_bayes_rule(k: Kernel, l: Kernel, X, Y, prior: Embedding,
                      lam: float, eps: float, *, method: str = "squared",
                      tol: float = 1e-14) -> KernelPosterior:
    """The posterior embeddings Σ ζ_i(x) l(y_i, ·) of Y given X = x for
    another prior distribution of Y, with weights of any sign
    (:prf:ref:`thm-kernel-bayes-rule`). Other arguments as for
    `kernel_sum_rule`.

    The method is "squared", with (C² + εI)⁻¹ C for the operator C = C_XX
    of the prior, so that √ε compares with its eigenvalues, or "clipped",
    with (C + εI)⁻¹ and the positive parts of the weights. On the days of
    `kernel_sum_rule`, three dry ones of four have had sun:

    >>> from rkhs_lit.kernels import Delta
    >>> d = Delta()
    >>> half = RKHSFunction(d, ["sun", "cloud"], [0.5, 0.5])
    >>> X, Y = ["dry", "wet", "wet", "dry"], ["cloud"] * 3 + ["sun"]
    >>> posterior = kernel_bayes_rule(d, d, X, Y, half, 1e-12, 1e-24)
    >>> posterior("dry")(["sun", "cloud"]).round(6)
    array([0.75, 0.25])
    """
    w = kernel_sum_rule(k, l, X, Y, prior, lam, tol=tol).weights
    return KernelPosterior(k, l, X, Y, w, eps, method, tol)

# %% [6] Choosing the parameters
@dataclass(frozen=True, eq=False, repr=False)
class BayesValidation(check.Record):
    """The choice of `validate_bayes_rule` (:prf:ref:`prop-kbr-scores`)."""

    lams: np.ndarray
    epsilons: np.ndarray
    ratio_scores: np.ndarray    #: the first score, for each λ
    risks: np.ndarray           #: the second, for each ε and the best λ
    lam: float                  #: has the least first score
    eps: float                  #: has the least risk

    def __repr__(self):
        return f"BayesValidation(lam={self.lam:.6g}, eps={self.eps:.6g})"


def validate_bayes_rule(k: Kernel, l: Kernel, X, Y, prior: Embedding,
                        lams, epsilons, *, method: str = "squared", folds=5,
                        rng=None, tol: float = 1e-14) -> BayesValidation:
    """Choose λ and ε of the kernel Bayes rule from two lists by
    cross-validation: λ by the first score, then ε by the second
    (:prf:ref:`prop-kbr-scores`). With the same lams and `folds` (as for
    `cross_validate`) the risks of both methods compare."""
    Phi, Psi = paired(k, l, X, Y)
    lams = check.positives(lams, "lams")
    epsilons = check.positives(epsilons, "epsilons")
    clipped = check.choice(method, "method", METHODS) == "clipped"
    shifts = epsilons if clipped else 1j * np.sqrt(epsilons)  # Re: s/(s²+ε)
    folds, _ = split_folds(Phi.n, folds, rng=rng)
    rests = [np.setdiff1d(np.arange(Phi.n), fold) for fold in folds]
    phi = Coordinates(Psi, tol)
    F, G, p = phi.G, Coordinates(Phi, tol).G, phi.of(prior, "prior")
    thetas, ratios = [], np.empty((len(lams), Phi.n))
    scores, risks = np.zeros(len(lams)), np.zeros(len(epsilons))
    with np.errstate(all="ignore"):
        for fold, rest in zip(folds, rests):       # the first score
            d, U = ridge_spectrum(F[rest].T @ F[rest] / len(rest),
                                  lams.min(), "lams", "l")
            theta = U @ ((U.T @ p)[:, None] / (d[:, None] + lams))
            ratios[:, fold] = (F[fold] @ theta).T
            scores += np.sum(ratios[:, fold] ** 2 / 2, axis=1)
            scores -= len(fold) * (p @ theta)
            thetas.append(theta)
        best = check.finite(scores, "prior").argmin()
        ratio = np.maximum(ratios[best], 0.0)
        if not ratio.any():
            raise ValueError("prior must have mass near the points Y, but "
                             "no estimate of the density ratio is positive")
        for fold, rest, theta in zip(folds, rests, thetas):    # the second
            w = F[rest] @ theta[:, best] / len(rest)
            LG = (np.maximum(w, 0.0) if clipped else w)[:, None] * G[rest]
            s, V = np.linalg.eigh(G[rest].T @ LG)
            if np.abs(shifts).min() < np.finfo(float).eps * np.abs(s).max():
                raise ValueError("epsilons must be larger, or the least is "
                                 "lost in the rounding of an operator")
            left, right = G[fold] @ V, F[rest].T @ LG @ V
            for j, shift in enumerate(shifts):
                miss = F[fold] - (left * (1 / (s + shift)).real) @ right.T
                risks[j] += ratio[fold] @ np.sum(miss**2, axis=1)
    risks = check.finite(risks / ratio.sum(), "epsilons")
    return BayesValidation(
        lams, epsilons, scores / Phi.n, risks, float(lams[best]),
        float(epsilons[risks.argmin()]))
