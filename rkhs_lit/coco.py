"""COCO: the two functions that covary most"""
# The exported cells of book/coco.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 4445adcf1b0de2fb

# %% [1] COCO: the two functions that covary most
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
from scipy.linalg import eigh, solve_triangular, svd, svdvals
from scipy.linalg.blas import dsymv

import rkhs_lit.conventions as check
from rkhs_lit.cross_covariance import cross_covariance, lanczos
from rkhs_lit.kernels import Kernel
from rkhs_lit.low_rank import pivoted_cholesky
from rkhs_lit.mean_embedding import moved, squared_norm
from rkhs_lit.moore_aronszajn import (Features, RKHSFunction, as_function,
                                      paired)
from rkhs_lit.pca import centre
from rkhs_lit.tiles import reduce_runs
from rkhs_lit.two_samples import PermutationTest, permutation_pvalue

# %% [2] Each witness carries the other
@dataclass(frozen=True, eq=False)
class ConstrainedCovariance(check.Record):
    """COCO, not negative, and two functions f in H_k and g in H_l of norm
    one whose sample covariance it is (:prf:ref:`thm-coco-witnesses`)."""

    value: float
    f: RKHSFunction
    g: RKHSFunction

    def __post_init__(self):
        vars(self).update(value=check.nonnegative(self.value, "value"))
        as_function(self.f, "f"), as_function(self.g, "g")


def _leading(F, G):
    """COCO from factors of the centred Gram matrices, and the singular
    vectors u and v (:prf:ref:`thm-coco-spectral`)."""
    core = F.T @ G / len(F)
    lost = 4 * np.finfo(float).eps * np.linalg.norm(F) * np.linalg.norm(G)
    U, s, Vt = svd(core, full_matrices=False) if core.any() else (0, [0], 0)
    if s[0] <= lost:
        return 0.0, None, None
    f = F @ U[:, 0]
    sign = np.sign(f[np.abs(f).argmax()])
    return float(s[0]), sign * U[:, 0], sign * Vt[0]


def _from_range(Phi, Psi):
    """COCO with f and g (:prf:ref:`thm-coco-witnesses`), None if zero."""
    (r, F), (s, G) = _range_factor(Phi), _range_factor(Psi)
    gamma, u, v = _leading(F, G)
    n, traces = len(F), np.sum(F**2) + np.sum(G**2)
    if gamma**2 <= 4 * np.finfo(float).eps * traces / n:
        return None
    f, g = Phi @ (G @ v / (n * gamma * r)), Psi @ (F @ u / (n * gamma * s))
    return ConstrainedCovariance(gamma * r * s, f, g)

# %% [3] Fine print
def _near(Phi):
    """√c, and the map for k / c with moved features."""
    c, near = moved(Phi)[0].unit()
    return c**0.5, near


def _range_factor(Phi):
    """√c, and F with F F' = H K H / c, of full column rank."""
    r, near = _near(Phi)
    K, d = near.gram(), np.sqrt(near.diag())
    lam, V = eigh(centre(K))
    squared_norm(lam, max(lam[-1], 1.0), Phi.kernel_name)
    squared_norm(np.outer(d, d) - np.abs(K), 1.0, Phi.kernel_name)
    kept = lam > len(K) * np.finfo(float).eps
    F = V[:, kept] * np.sqrt(lam[kept])
    return r, F - F.mean(axis=0)           # weights will sum to zero


def _some_unit(Phi):
    """A function of norm one, or zero if the kernel is zero on X."""
    d = Phi.diag()
    return Phi[[d.argmax()]] @ [d.max() ** -0.5 if d.any() else 0.0]

# %% [4] Fine print
DENSE, STORED = 300, 5000


class _Stored(Kernel):
    """A Gram matrix as the kernel of its row numbers."""

    def __init__(self, K):
        self.K = K

    def _gram(self, X, Y):
        return self.K[np.ix_(X, Y)]

    def _diag(self, X):
        return self.K.diagonal()[X]

    def _dot(self, X, Y, W, name):                 # reads half of K
        return dsymv(1.0, self.K.T, W)


def _by_lanczos(Phi, Psi):
    """COCO with f and g, None if zero."""
    (r, X), (s, Y) = _near(Phi), _near(Psi)
    n, eps = X.n, np.finfo(float).eps
    if n <= STORED:
        X, Y = (Features(_Stored(F.gram()), np.arange(n), F.name,
                         F.kernel_name) for F in (X, Y))
    C = cross_covariance(X.kernel, Y.kernel, X, Y)
    (v, _), (w, _) = (                             # mean of ‖k_i - μ‖²
        squared_norm([F.diag().mean() - m, m], 1.0, F.kernel_name)
        for F in (X, Y) for m in [F.dot(np.ones(n)).mean() / n])
    zero = 4 * eps * (v + w)                       # as in _from_range
    theta, b = lanczos(C, zero) if min(v, w) > 4 * n * eps else (0.0, None)
    if theta <= zero:
        return None
    f = C(C.Psi @ b)                               # for ‖Ψb‖ = 1
    g = C.adjoint()(f)
    w, values = g.weights, C.Psi.dot(g.weights)
    sign = np.sign(w[np.abs(w).argmax()])          # n w = f - mean of f
    f_norm, g_norm = sign * np.sqrt([b @ values, w @ values])
    f, g = Phi @ (f.weights / (f_norm * r)), Psi @ (w / (g_norm * s))
    return ConstrainedCovariance(g_norm / f_norm * r * s, f, g)

# %% [5] Fine print
class _Anchored(Kernel):
    """The kernel with the features k(x, ·) - k(a, ·)."""

    def __init__(self, at_a):
        self.kernel, self.a = at_a.kernel, at_a.seen
        self._prepare = at_a.kernel._prepare

    def _gram(self, X, Y):
        k, a = self.kernel._gram, self.a
        return k(X, Y) - k(X, a) - k(a, Y) + k(a, a)

    def _diag(self, X):
        k, a = self.kernel._gram, self.a
        d = self.kernel._diag(X) - 2 * k(X, a)[:, 0] + k(a, a)[0]
        return np.maximum(d, 0.0)                     # rounding


def _pivot_factor(Phi, tol, max_rank):
    """√c, F with F F' ≈ H K H / c of low rank, and the map from u to
    the function with the centred values √c F u."""
    near, = moved(Phi)
    anchored, (c, near) = near.kernel != Phi.kernel, near.unit()
    r, a = c**0.5, int(near.diag().argmin())
    kernel = _Anchored(near[a:a + 1]) if anchored else near.kernel
    F, p = pivoted_cholesky(kernel, Phi.points, return_pivots=True,
                            max_rank=max_rank,
                            tol=0.0 if tol is None else tol)
    centred, eps = F - F.mean(axis=0), np.finfo(float).eps
    centred *= np.sum(centred**2, 0) > (4 * eps) ** 2 * np.sum(F**2, 0)

    def function(u):
        w = solve_triangular(F[p], u, trans="T", lower=True) / r
        return Phi[[*p, a]] @ [*w, -w.sum()] if anchored else Phi[p] @ w

    return r, centred, function

# %% [6] COCO as a function
def coco(k: Kernel, l: Kernel, X, Y, *, tol: float | None = None,
         max_rank: int | None = None) -> ConstrainedCovariance:
    """Constrained covariance of two or more pairs (x_i, y_i) with both
    witnesses, the operator norm of ``cross_covariance(k, l, X, Y)``
    (:prf:ref:`thm-coco-witnesses`).

    Above 300 points by Lanczos' method (:prf:ref:`prop-lanczos`), above
    5000 without a stored Gram matrix. A value that rounding hides is zero,
    and has any functions of norm one, or zero if the kernel is. For linear
    kernels points far from zero cost digits of ``f(X)``, not of the value.
    With `tol` or `max_rank`, options of pivoted Cholesky factors, in
    O(n r²) operations: a lower bound, for `tol` alone with an error of at
    most √(2 tol t u), where t and u are the means of k(x_i, x_i) and
    l(y_i, y_i), or of ‖k(x_i, ·) - k(a, ·)‖² for a point a if k has a
    linear part (:prf:ref:`thm-coco-low-rank`).

    >>> from rkhs_lit.kernels import Linear           # |covariance|
    >>> x, y = [0.0, 1.0, 5.0], [1.0, 0.0, -1.0]
    >>> round(coco(Linear(), Linear(), x, y).value, 6)
    1.666667
    """
    Phi, Psi = paired(k, l, X, Y, at_least=2)
    if tol is not None or max_rank is not None:
        (r, F, f), (s, G, g) = (_pivot_factor(M, tol, max_rank)
                                for M in (Phi, Psi))     # r, s: units
        gamma, u, v = _leading(F, G)                     # 0 if hidden
        found = gamma and ConstrainedCovariance(gamma * r * s, f(u), g(v))
    else:
        found = (_from_range if Phi.n <= DENSE else _by_lanczos)(Phi, Psi)
    return found or ConstrainedCovariance(0.0, *map(_some_unit, (Phi, Psi)))

# %% [7] A permutation test
def _norm(F, G, order):
    """The largest singular value of F' P_π G / n, in a list."""
    core = F.T @ G[order] / len(F)
    return [float(svdvals(core)[0]) if core.size else 0.0]


def coco_test(k: Kernel, l: Kernel, X, Y, *, n_permutations: int = 999,
              rng=None, tol: float | None = None,
              max_rank: int | None = None) -> PermutationTest:
    """Test whether two variables are independent, by B permutations of Y.
    If they are, the p-value is at most α with a probability of at most α,
    for every n and B (:prf:ref:`prop-coco-level`).

    The statistic is `coco`, from factors of r and s columns; a permutation
    takes O(n r s) operations. The kernels may be chosen by looking at the
    points of X and of Y, but not at who is paired with whom.

    >>> from rkhs_lit.kernels import Gaussian
    >>> x, k = np.linspace(-1, 1, 30), Gaussian(0.5)
    >>> coco_test(k, k, x, x**2, n_permutations=199, rng=0).pvalue
    0.005
    """
    Phi, Psi = paired(k, l, X, Y, at_least=2)
    B = check.whole(n_permutations, "n_permutations", 1)
    n, rng = Phi.n, check.generator(rng)
    order, dense = rng.permutation(n), tol is None and max_rank is None
    (r, F), (s, G) = (
        _range_factor(M) if dense else _pivot_factor(M, tol, max_rank)[:2]
        for M in (Phi, Psi[order]))

    orders = chain([np.argsort(order)],           # the pairs as they are
                   (rng.permutation(n) for _ in range(B)))
    statistic, *null = reduce_runs(partial(_norm, F, G), orders)
    null = np.array(null)
    ties = (1e-10 / n + 4 * np.finfo(float).eps) * (
        np.linalg.norm(F) * np.linalg.norm(G))
    pvalue = permutation_pvalue(statistic, null, tol=float(ties))
    return PermutationTest(statistic * r * s, pvalue, null * r * s)
