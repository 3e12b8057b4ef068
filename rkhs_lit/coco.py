"""COCO: the two functions that covary most

The exported cells of the chapter ``book/coco.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 36f987771618c444

# %% [1] COCO: the two functions that covary most
import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve_triangular, svd, svdvals

import rkhs_lit.conventions as check
from rkhs_lit.bochner import _take, pivoted_cholesky
from rkhs_lit.cross_covariance import (DENSE, _lanczos, _power,
                                       cross_covariance)
from rkhs_lit.kernels import Kernel, gram_dot
from rkhs_lit.mmd import PermutationTest, permutation_pvalue
from rkhs_lit.moore_aronszajn import RKHSFunction, as_function
from rkhs_lit.pca import centre


# %% [2] The code
@dataclass(frozen=True, eq=False, repr=False)
class ConstrainedCovariance:
    """COCO and two functions that attain it
    (:prf:ref:`thm-coco-witnesses`).

    Attributes
    ----------
    value : float
        Not negative: the sample covariance of f(x_i) and g(y_i).
    f : RKHSFunction
        In H_k, of norm one.
    g : RKHSFunction
        In H_l, of norm one.
    """

    value: float
    f: RKHSFunction
    g: RKHSFunction

    def __post_init__(self):
        value = check.number(self.value, "value")
        if value < 0:
            raise ValueError(f"value must not be negative, got {value}")
        object.__setattr__(self, "value", value)
        as_function(self.f, "f")
        as_function(self.g, "g")

    def __repr__(self):
        return (f"ConstrainedCovariance(value={self.value:.6g}, "
                f"f={self.f}, g={self.g})")


# %% [3] The code
def _scaled(kernel, X, name):
    """A power of two r and the kernel k / r², of size one on X."""
    diagonal = kernel.diag(X)
    if diagonal.min() < 0:
        raise ValueError(f"{name} must be positive definite, but it is "
                         f"{diagonal.min():.6g} at two equal points")
    r = max(_power(math.sqrt(diagonal.max())), 2.0**-500)
    return r, r**-2 * kernel


def _sample(k, l, X, Y, moved=np.inf):
    """Checked points, and both kernels scaled to size one; up to `moved`
    points with features moved to zero (:prf:ref:`lem-features-moved`)."""
    C = cross_covariance(k, l, X, Y)
    if len(C.X) < 2:
        raise ValueError("X must hold at least two points, got "
                         f"{len(C.X)}")
    if len(C.X) <= moved:
        k, l = k._about(C.X), l._about(C.Y)
    return C.X, C.Y, *_scaled(k, C.X, "k"), *_scaled(l, C.Y, "l")


def _range_factor(kernel, X, name):
    """F with F F' = the centred Gram matrix, of full column rank."""
    K = kernel(X)
    d = np.sqrt(K.diagonal())
    size = float(d.max()) ** 2
    gap = float((np.abs(K) - np.outer(d, d)).max())
    lam, V = eigh(centre(K))
    # 1e-8 allows for kernels that are computed to eight digits.
    if gap > 1e-8 * size or lam[0] < -1e-8 * max(lam[-1], size):
        raise ValueError(f"{name} must be positive definite, but its Gram "
                         "matrix is not")
    kept = lam > len(K) * np.finfo(float).eps * size
    F = V[:, kept] * np.sqrt(lam[kept])
    return F - F.mean(axis=0)              # weights will sum to zero


# %% [4] The code
def _top(F, G):
    """COCO from factors, with the singular vectors u and v."""
    if not F.size or not G.size:
        return 0.0, None, None
    U, s, Vt = svd(F.T @ G / len(F), full_matrices=False)
    if s[0] <= 4 * np.finfo(float).eps * (np.linalg.norm(F)
                                          * np.linalg.norm(G)):
        return 0.0, None, None             # rounding of the product
    values = F @ U[:, 0]
    sign = np.sign(values[np.abs(values).argmax()])  # a choice: f > 0
    return float(s[0]), sign * U[:, 0], sign * Vt[0]


def _some_unit(kernel, X):
    """A function of norm one, or zero if the kernel is zero on X."""
    diagonal = kernel.diag(X)
    i = int(diagonal.argmax())
    weight = diagonal[i] ** -0.5 if diagonal[i] > 0 else 0.0
    return RKHSFunction(kernel, _take(X, [i]), [weight])


def _from_range(X, Y, k, l):
    """COCO with the weights of f and g, by factors on the range."""
    F, G = _range_factor(k, X, "k"), _range_factor(l, Y, "l")
    gamma, u, v = _top(F, G)
    n = len(F)
    traces = (F**2).sum() + (G**2).sum()
    if gamma**2 <= 4 * np.finfo(float).eps * traces / n:
        return 0.0, None, None
    return gamma, G @ v / (n * gamma), F @ u / (n * gamma)


# %% [5] The code
def coco(k: Kernel, l: Kernel, X, Y, *, tol: float | None = None,
         max_rank: int | None = None) -> ConstrainedCovariance:
    """Constrained covariance with both witnesses
    (:prf:ref:`thm-coco-witnesses`).

    It is the operator norm of ``cross_covariance(k, l, X, Y)``. Up to a
    thousand points from factors on the range of the centred Gram
    matrices, above that by Lanczos' method in O(n²) operations a step,
    without a stored Gram matrix (:prf:ref:`prop-lanczos`).

    Parameters
    ----------
    k, l : Kernel
        Positive definite, on any kind of points.
    X, Y : sequences of n points
        The pairs (x_i, y_i), at least two.
    tol, max_rank : float and int, optional
        If one is given, use pivoted Cholesky factors with these options
        in O(n r²) operations. The value is then a lower bound, for
        `tol` alone with an error of at most √(2 tol t u), where t and u
        are the means of k(x_i, x_i) and l(y_i, y_i)
        (:prf:ref:`thm-coco-low-rank`).

    Returns
    -------
    ConstrainedCovariance
        With ``value``, ``f`` and ``g``. A value that is lost in the
        rounding errors of the Gram matrices is returned as zero; then
        f and g are any functions of norm one, or zero if the kernel is
        zero on all points.

    Examples
    --------
    With linear kernels it is the absolute value of the covariance:

    >>> from rkhs_lit.kernels import Linear
    >>> round(coco(Linear(), Linear(), [0.0, 1.0, 5.0], [1.0, 0.0, -1.0]
    ...            ).value, 6)
    1.666667
    """
    low_rank = tol is not None or max_rank is not None
    # Features may be moved where the weights of f and g sum to zero.
    X, Y, r, k_unit, s, l_unit = _sample(k, l, X, Y,
                                         0 if low_rank else DENSE)
    if low_rank:
        gamma, f, g = _from_pivots(X, Y, k_unit, l_unit, tol, max_rank)
    else:
        method = _from_range if len(X) <= DENSE else _by_lanczos
        gamma, a, b = method(X, Y, k_unit, l_unit)
        f, g = (X, a), (Y, b)
    if gamma == 0:
        return ConstrainedCovariance(0.0, _some_unit(k, X),
                                     _some_unit(l, Y))
    # Functions of norm one for k / r² have r times the weights for k.
    return ConstrainedCovariance(gamma * r * s,
                                 RKHSFunction(k, f[0], f[1] / r),
                                 RKHSFunction(l, g[0], g[1] / s))


# %% [6] The code
def _spread(kernel, X, name):
    """The mean of ‖k_i - μ‖² over the points, or 0 for rounding."""
    n = len(X)
    mean = gram_dot(kernel, X, None, np.full(n, 1 / n)).mean()
    spread = float(kernel.diag(X).mean() - mean)
    if min(mean, spread) < -1e-8:        # both are squared norms
        raise ValueError(f"{name} must be positive definite, but a "
                         "squared norm is negative")
    return spread if spread > 4 * n * np.finfo(float).eps else 0.0


def _by_lanczos(X, Y, k, l):
    """COCO with the weights of f and g, without a Gram matrix."""
    n, v, w = len(X), _spread(k, X, "k"), _spread(l, Y, "l")
    if v == 0 or w == 0:
        return 0.0, None, None
    zero = 4 * np.finfo(float).eps * (v + w)       # as in _from_range
    b = _lanczos(cross_covariance(k, l, X, Y), zero)[1]
    if b is None:
        return 0.0, None, None
    g_values = gram_dot(l, Y, None, b)
    size = math.sqrt(b @ g_values)
    a = (g_values - g_values.mean()) / (n * size)    # f = C g, times γ
    f_values = gram_dot(k, X, None, a)
    square = a @ f_values
    if square <= zero:
        return 0.0, None, None
    gamma = math.sqrt(square)
    sign = np.sign((f_values - f_values.mean())[
        np.abs(f_values - f_values.mean()).argmax()])
    return gamma, sign * a / gamma, sign * b / size


# %% [7] The code
def _pivot_factor(kernel, X, name, tol, max_rank):
    """A centred factor of low rank, its pivots, and their triangle."""
    try:
        F, pivots = pivoted_cholesky(
            kernel, X, tol=0.0 if tol is None else tol, max_rank=max_rank,
            return_pivots=True)
    except ValueError as error:
        raise ValueError(str(error).replace("kernel", name, 1)) from None
    return F - F.mean(axis=0), pivots, F[pivots]


def _from_pivots(X, Y, k, l, tol, max_rank):
    """COCO of the functions in the span of the pivots' features."""
    F, p, S = _pivot_factor(k, X, "k", tol, max_rank)
    G, q, T = _pivot_factor(l, Y, "l", tol, max_rank)
    gamma, u, v = _top(F, G)
    if gamma == 0:
        return 0.0, None, None
    return (gamma,
            (_take(X, p), solve_triangular(S, u, trans="T", lower=True)),
            (_take(Y, q), solve_triangular(T, v, trans="T", lower=True)))


# %% [8] A permutation test
def coco_test(k: Kernel, l: Kernel, X, Y, *, n_permutations: int, rng,
              tol: float | None = None,
              max_rank: int | None = None) -> PermutationTest:
    """Test whether two variables are independent
    (:prf:ref:`prop-coco-level`).

    The statistic is COCO, from factors of r and s columns that are
    computed once; a permutation takes O(n r s) operations and the
    singular values of an r × s matrix.

    Parameters
    ----------
    k, l : Kernel
        On any kind of points. They may be chosen by looking at the
        points of X and at those of Y, but not at who is paired with
        whom.
    X, Y : sequences of n points
        The pairs (x_i, y_i), at least two.
    n_permutations : int
        The number B of random permutations of Y.
    rng : seed or numpy.random.Generator
    tol, max_rank : float and int, optional
        If one is given, the factors have low rank, see `coco`. Without
        them two n × n matrices are decomposed.

    Returns
    -------
    PermutationTest
        For independent variables the p-value is at most α with a
        probability of at most α, for every n and B.

    Examples
    --------
    >>> from rkhs_lit.kernels import Gaussian
    >>> x = np.linspace(-1, 1, 30)
    >>> coco_test(Gaussian(0.5), Gaussian(0.5), x, x**2,
    ...           n_permutations=199, rng=0).pvalue
    0.005
    """
    X, Y, r, k, s, l = _sample(k, l, X, Y)
    B = check.whole(n_permutations, "n_permutations", 1)
    rng = check.generator(rng)
    n, order = len(X), rng.permutation(len(X))
    F = _either_factor(k, X, "k", tol, max_rank)
    G = _either_factor(l, _take(Y, order), "l", tol, max_rank)
    statistic = _paired_norm(F, G, np.argsort(order))
    null = np.array([_paired_norm(F, G, rng.permutation(n))
                     for _ in range(B)])
    ties = (1e-10 + 4 * n * np.finfo(float).eps) / n * (
        np.linalg.norm(F) * np.linalg.norm(G))
    pvalue = permutation_pvalue(statistic, null, tol=float(ties))
    return PermutationTest(statistic * r * s, pvalue, null * r * s)


# %% [9] A permutation test
def _either_factor(kernel, X, name, tol, max_rank):
    if tol is None and max_rank is None:
        return _range_factor(kernel, X, name)
    return _pivot_factor(kernel, X, name, tol, max_rank)[0]


def _paired_norm(F, G, order):
    core = F.T @ G[order] / len(F)
    return float(svdvals(core)[0]) if core.size else 0.0
