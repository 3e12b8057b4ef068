"""Conditional embeddings: a distribution for every x"""
# The exported cells of book/conditional_embedding.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 4a9e85bcf1ca0ba8

# %% [1] Conditional embeddings: a distribution for every x
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.linalg import cho_solve

import rkhs_lit.conventions as check
from rkhs_lit.cross_covariance import RKHSOperator
from rkhs_lit.kernels import Kernel, Pairs
from rkhs_lit.low_rank import pivoted_cholesky
from rkhs_lit.moore_aronszajn import (Features, RKHSFunction, as_function,
                                      paired)
from rkhs_lit.ridge import ridge_factor, ridge_spectrum

# %% [2] Fine print
def one_point(kernel: Kernel, x, name: str = "x",
              kernel_name: str = "kernel") -> Features:
    """The map α ↦ α k(x, ·) of one point x of any kind; a pair is `Pairs`
    of length one (:prf:ref:`def-synthesis`)."""
    X = x if isinstance(x, Pairs) else [x]
    if len(X) != 1:
        raise ValueError(f"{name} must be one point, got {len(X)} pairs")
    return Features(kernel, X, name, kernel_name)       # α ↦ α k(x, ·)


def values_at(g, Psi: Features, name: str = "g") -> np.ndarray:
    """The numbers g(y_i) at the points of Ψ, of a function of its space,
    of any function that makes n numbers (or n rows) of the points, or of
    the array of these numbers (:prf:ref:`thm-ce-ridge`)."""
    if not isinstance(Psi, Features):
        raise ValueError(f"Psi must be Features, got {type(Psi).__name__}")
    if isinstance(g, RKHSFunction):
        as_function(g, name, Psi.kernel)
        return Psi.dot(g.weights, Features(Psi.kernel, g.features, name))
    Y = Psi.points
    if isinstance(Y, tuple) and all(isinstance(y, Real) for y in Y):
        Y = np.array(Y)                      # so that g can compute
    values = g(Y) if callable(g) else g
    table = check.as_points(values, name)
    if len(table) != Psi.n:
        raise ValueError(f"{name} must have a row for each of {Psi.n} "
                         f"points, got shape {np.shape(values)}")
    return table[:, 0] if np.ndim(values) == 1 else table

# %% [3] One factor for all questions
@dataclass(frozen=True, eq=False, repr=False)
class ConditionalEmbedding(check.Record):
    """Estimates of the embeddings of Y given X = x, for all x
    (:prf:ref:`thm-ce-estimator`); made by `conditional_embedding`, with
    its arguments and the maps Φ and Ψ of the points as attributes."""

    k: Kernel
    l: Kernel
    X: Sequence
    Y: Sequence
    lam: float

    def __post_init__(self):
        Phi, Psi = paired(self.k, self.l, self.X, self.Y)
        lam = check.positive(self.lam, "lam")
        factor, lower = ridge_factor(Phi.gram(), Phi.n * lam, "n lam", "k")
        vars(self).update(X=Phi.points, Y=Psi.points, lam=lam, Phi=Phi,
                          Psi=Psi, factor=(check.frozen(factor), lower))

    def __repr__(self):
        return (f"ConditionalEmbedding({self.k} -> {self.l}, "
                f"n={self.Phi.n}, lam={self.lam:.6g})")

    def _solve(self, B, name="lam"):
        """(K + nλI)⁻¹ B"""
        return check.finite(cho_solve(self.factor, B), name)

    def __call__(self, x) -> RKHSFunction:
        """The embedding for one point x, a function of H_l."""
        k_x = one_point(self.k, x, "x", "k")
        return self.Psi @ self._solve(k_x.gram(self.Phi)[0])

    def weights_at(self, T) -> np.ndarray:
        """(K + nλI)⁻¹ k_X(t) for the points T, an (n, m) array."""
        at_T = Features(self.k, T, "T", "k")
        return self._solve(at_T.gram(self.Phi).T)

    def expectation(self, g, T) -> np.ndarray:
        """Estimates of E[g(Y) | X = t] for the points T. Here g is a
        function of H_l, a function that makes n numbers (or n rows of
        numbers) of the sequence Y, or the array of these numbers."""
        values, at_T = values_at(g, self.Psi), Features(self.k, T, "T", "k")
        return at_T.dot(self._solve(values, "g"), self.Phi)

    def transport(self, f: RKHSFunction) -> RKHSFunction:
        """The function C_YX (C_XX + λ)⁻¹ f of H_l, for f in H_k."""
        return self.Psi @ self._solve(self.Phi.sample(f), "f")

    def operator(self) -> RKHSOperator:
        """The operator C_YX (C_XX + λ)⁻¹ from H_k to H_l."""
        return RKHSOperator(self.l, self.Psi, self.k, self.Phi,
                            self._solve(np.eye(self.Phi.n)))


def conditional_embedding(k: Kernel, l: Kernel, X, Y,
                          lam: float) -> ConditionalEmbedding:
    """Estimate the embeddings of Y given X = x, for all x, by
    m(x) = Σ w_i(x) l(y_i, ·) with the weights w(x) = (K + nλI)⁻¹ k_X(x)
    (:prf:ref:`thm-ce-estimator`), from n pairs, with k on X and l on Y.
    The number λ > 0 is added to the operator C_XX, so nλ to K = k(X).

    With nλ = 1, a group of three points gets the weights 1/(3 + 1):

    >>> from rkhs_lit.kernels import Delta
    >>> m = conditional_embedding(Delta(), Delta(), list("aaabb"),
    ...                           list("uuvvv"), 0.2)
    >>> m("a")(["u", "v"]).round(6)
    array([0.5 , 0.25])
    """
    return ConditionalEmbedding(k, l, X, Y, lam)

# %% [4] Choosing lambda
def embedding_leave_one_out(k: Kernel, l: Kernel, X, Y, lams) -> np.ndarray:
    """Squared distances of l(y_i, ·) from the embedding at x_i that was
    estimated without pair i, in a row for each λ of a list
    (:prf:ref:`prop-ce-loo`). The mean of a row is the criterion to
    minimise. The other n - 1 pairs are fitted with the same nλ.

    Two points that the kernel cannot compare predict 0 for each other:

    >>> from rkhs_lit.kernels import Gaussian
    >>> embedding_leave_one_out(Gaussian(1.0), Gaussian(1.0),
    ...                         [0.0, 100.0], [3.0, 5.0], [0.1])
    array([[1., 1.]])
    """
    Phi, Psi = paired(k, l, X, Y)
    lams = check.positives(lams, "lams")
    check.positive(Phi.n * float(lams.max()), "n lams")
    shifts = Phi.n * lams
    d, U = ridge_spectrum(Phi.gram(), shifts.min(), "n lams", "k")
    G = pivoted_cholesky(l, Psi, tol=0)
    UG, found = U.T @ G, []                     # L = G G'
    with np.errstate(over="ignore", invalid="ignore"):
        for c in shifts[:, None] / (d + shifts[:, None]):
            RG, R_ii = U @ (c[:, None] * UG), U**2 @ c  # R = U diag(c) U'
            found.append(np.sum(RG**2, axis=1) / R_ii**2)
    return check.finite(np.array(found), "l")
