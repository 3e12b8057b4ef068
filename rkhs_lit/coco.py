"""COCO: the two functions that covary most

The exported cells of the chapter ``book/coco.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 6ccc9c5606d2bdcd

# %% [1] COCO: the two functions that covary most
import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve_triangular, svd, svdvals

import rkhs_lit.conventions as check
from rkhs_lit.cross_covariance import cross_covariance, lanczos
from rkhs_lit.kernels import Kernel
from rkhs_lit.low_rank import pivoted_cholesky
from rkhs_lit.mean_embedding import embedding_error, moved, squared_norm
from rkhs_lit.two_samples import PermutationTest, permutation_pvalue
from rkhs_lit.moore_aronszajn import RKHSFunction, as_function, paired
from rkhs_lit.pca import centre


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
        as_function(self.f, "f")
        as_function(self.g, "g")


def _leading(F, G):
    """COCO from factors of the centred Gram matrices, and the singular
    vectors u and v (:prf:ref:`thm-coco-spectral`)."""
    zero = 4 * np.finfo(float).eps * np.linalg.norm(F) * np.linalg.norm(G)
    if zero == 0:
        return 0.0, None, None
    U, s, Vt = svd(F.T @ G / len(F), full_matrices=False)
    if s[0] <= zero:
        return 0.0, None, None
    f = F @ U[:, 0]
    sign = np.sign(f[np.abs(f).argmax()])
    return float(s[0]), sign * U[:, 0], sign * Vt[0]


def _from_range(Phi, Psi):
    """COCO with f and g (:prf:ref:`thm-coco-witnesses`)."""
    (r, F), (s, G) = _range_factor(Phi), _range_factor(Psi)
    gamma, u, v = _leading(F, G)
    n, traces = len(F), np.sum(F**2) + np.sum(G**2)
    if gamma**2 <= 4 * np.finfo(float).eps * traces / n:
        return 0.0, None, None
    return (gamma * r * s, Phi @ (G @ v / (n * gamma * r)),
            Psi @ (F @ u / (n * gamma * s)))


# %% [3] Fine print
def _near(Phi):
    """√c, and the map for k / c with moved features."""
    c, near = moved(Phi)[0].unit()
    return math.sqrt(c), near


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
    i = int(d.argmax())
    return Phi[i:i + 1] @ [d[i] ** -0.5 if d[i] > 0 else 0.0]


# %% [4] Fine print
def _by_lanczos(Phi, Psi):
    """COCO with f and g, without a Gram matrix."""
    (r, X), (s, Y) = _near(Phi), _near(Psi)
    C = cross_covariance(X.kernel, Y.kernel, X, Y)
    n, eps = X.n, np.finfo(float).eps              # mean of ‖k_i - μ‖²
    v, w = ((n - 1) * embedding_error(F.kernel, F) for F in (X, Y))
    zero = 4 * eps * (v + w)                       # as in _from_range
    theta, b = lanczos(C, zero) if min(v, w) > 4 * n * eps else (0.0, None)
    if theta <= zero:
        return 0.0, None, None
    f = C(C.Psi @ b)                               # for ‖Ψb‖ = 1
    g = C.adjoint()(f)
    w, values = g.weights, C.Psi.sample(g)
    sign = np.sign(w[np.abs(w).argmax()])          # n w = f - mean of f
    f_norm, g_norm = sign * np.sqrt([b @ values, w @ values])
    return (g_norm / f_norm * r * s, Phi @ (f.weights / (f_norm * r)),
            Psi @ (w / (g_norm * s)))


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
    r, a = math.sqrt(c), int(near.diag().argmin())
    kernel = _Anchored(near[a:a + 1]) if anchored else near.kernel
    F, p = pivoted_cholesky(kernel, Phi.points, max_rank=max_rank,
                            tol=0.0 if tol is None else tol,
                            return_pivots=True)
    centred = F - F.mean(axis=0)
    centred *= (np.linalg.norm(centred, axis=0)       # more than rounding
                > 4 * np.finfo(float).eps * np.linalg.norm(F, axis=0))

    def function(u):
        w = solve_triangular(F[p], u, trans="T", lower=True) / r
        return Phi[[*p, a]] @ [*w, -w.sum()] if anchored else Phi[p] @ w

    return r, centred, function


# %% [6] COCO as a function
DENSE = 300


def coco(k: Kernel, l: Kernel, X, Y, *, tol: float | None = None,
         max_rank: int | None = None) -> ConstrainedCovariance:
    """Constrained covariance of two or more pairs (x_i, y_i) with both
    witnesses, the operator norm of ``cross_covariance(k, l, X, Y)``
    (:prf:ref:`thm-coco-witnesses`).

    Above 300 points by Lanczos' method in O(n²) operations a step,
    without a stored Gram matrix (:prf:ref:`prop-lanczos`). A value that is
    lost in the rounding errors of the Gram matrices is returned as zero;
    then f and g are any functions of norm one, or zero if the kernel is
    zero on all points. For linear kernels points far from zero cost digits
    of ``f(X)``, not of the value.

    If `tol` or `max_rank` is given, pivoted Cholesky factors with these
    options take O(n r²) operations. The value is then a lower bound, for
    `tol` alone with an error of at most √(2 tol t u), where t and u are
    the means of k(x_i, x_i) and l(y_i, y_i), or of ‖k(x_i, ·) - k(a, ·)‖²
    for a point a if k has a linear part (:prf:ref:`thm-coco-low-rank`).

    With linear kernels it is the absolute value of the covariance:

    >>> from rkhs_lit.kernels import Linear
    >>> round(coco(Linear(), Linear(), [0.0, 1.0, 5.0], [1.0, 0.0, -1.0]
    ...            ).value, 6)
    1.666667
    """
    Phi, Psi = paired(k, l, X, Y, at_least=2)
    if tol is not None or max_rank is not None:
        (r, F, f), (s, G, g) = (_pivot_factor(M, tol, max_rank)
                                for M in (Phi, Psi))
        gamma, u, v = _leading(F, G)
        if gamma > 0:
            return ConstrainedCovariance(gamma * r * s, f(u), g(v))
    else:
        exact = _from_range if Phi.n <= DENSE else _by_lanczos
        gamma, f, g = exact(Phi, Psi)
        if gamma > 0:
            return ConstrainedCovariance(gamma, f, g)
    return ConstrainedCovariance(0.0, _some_unit(Phi), _some_unit(Psi))


# %% [7] A permutation test
def coco_test(k: Kernel, l: Kernel, X, Y, *, n_permutations: int = 999,
              rng=None, tol: float | None = None,
              max_rank: int | None = None) -> PermutationTest:
    """Test whether two variables are independent, by B permutations of Y.
    If they are, the p-value is at most α with a probability of at most α,
    for every n and B (:prf:ref:`prop-coco-level`).

    The statistic is COCO with the arguments of `coco`, from factors of r
    and s columns that are computed once; a permutation takes O(n r s)
    operations. The kernels may be chosen by looking at the points of X and
    at those of Y, but not at who is paired with whom.

    >>> from rkhs_lit.kernels import Gaussian
    >>> x = np.linspace(-1, 1, 30)
    >>> coco_test(Gaussian(0.5), Gaussian(0.5), x, x**2,
    ...           n_permutations=199, rng=0).pvalue
    0.005
    """
    Phi, Psi = paired(k, l, X, Y, at_least=2)
    B = check.whole(n_permutations, "n_permutations", 1)
    n, rng = Phi.n, check.generator(rng)
    order, dense = rng.permutation(n), tol is None and max_rank is None
    (r, F), (s, G) = (
        _range_factor(M) if dense else _pivot_factor(M, tol, max_rank)[:2]
        for M in (Phi, Psi[order]))

    def T(order):
        core = F.T @ G[order] / n
        return float(svdvals(core)[0]) if core.size else 0.0

    statistic = T(np.argsort(order))
    null = np.array([T(rng.permutation(n)) for _ in range(B)])
    ties = (1e-10 / n + 4 * np.finfo(float).eps) * (
        np.linalg.norm(F) * np.linalg.norm(G))
    pvalue = permutation_pvalue(statistic, null, tol=float(ties))
    return PermutationTest(statistic * r * s, pvalue, null * r * s)
