"""Interpolation: the shortest function through the data"""
# The exported cells of book/interpolation.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 328ab45905bfd804

# %% [1] Interpolation: the shortest function through the data
import warnings

import numpy as np

import rkhs_lit.conventions as check
from rkhs_lit.kernels import Kernel, Linear, Sum
from rkhs_lit.moore_aronszajn import (Features, RKHSFunction, as_function,
                                      norm_and_error)
from rkhs_lit.riesz import GramSolution, gram_solve

# %% [2] Fine print
def _solve(Phi, values) -> GramSolution:
    """K c = values, for a kernel that is right to eight digits."""
    return gram_solve(Phi.gram(), values, slack=1e-8,
                      name=f"{Phi.kernel_name} must be positive definite: "
                      "its Gram matrix")


def _judge(found, y, miss):
    """Refuse values that no function has; warn of those that are missed."""
    if found.twins:
        i, j, _ = found.twins
        raise ValueError("y must be values that a function can have, but "
                         f"points {i} and {j} of X are the same to the "
                         f"kernel and y has {y[i]:.6g} and {y[j]:.6g}")
    if miss <= 1e-6 * np.abs(y).max():
        return
    if found.missing[0] > 0:
        raise ValueError(
            "y must be values that a function of the space can have at X, "
            f"but the nearest misses them by {miss:.3g}: no function of "
            f"norm below {found.least_norm[0]:.3g} has them, and whether a "
            "longer one has cannot be decided at this precision")
    warnings.warn(f"y is missed by {miss:.3g}: the weights are so large "
                  "that the sums cancel", check.PrecisionWarning,
                  stacklevel=3)

# %% [3] The interpolant on a computer
def interpolate(kernel: Kernel, X, y) -> RKHSFunction:
    """The interpolant of minimal norm, s with s(x_i) = y_i
    (:prf:ref:`thm-interpolant`).

    Points may repeat and the Gram matrix may be singular, as long as some
    function of the space has the values y. They are met to a millionth of
    the largest, or a ValueError or a `PrecisionWarning` says why not; if
    the matrix is singular up to rounding, s need not be the shortest.

    >>> s = interpolate(Linear(), [1.0, 2.0], [3.0, 6.0])
    >>> s([10.0]).round(6)
    array([30.])
    """
    Phi = Features(kernel, X)
    y = check.vector(y, "y", Phi.n)
    found = _solve(Phi, y)                           # K c = y
    s = Phi @ found.coefficients
    _judge(found, y, np.abs(Phi.sample(s) - y).max())
    return s

# %% [4] The interpolant on a computer
def project(f: RKHSFunction, X) -> RKHSFunction:
    """Orthogonal projection of f on span{k(x_i, ·)}, which has the values
    of f at X (:prf:ref:`thm-rkhs-projection`).

    A `PrecisionWarning` says that rounding hides values which decide it.
    """
    Phi = Features(as_function(f).kernel, X)
    found = _solve(Phi, Phi.sample(f))               # K c = f(X)
    g = Phi @ found.coefficients
    if found.hidden[0] > 0:
        check.certain(norm_and_error(g)[0], sum(norm_and_error(f - g)),
                      "the norm of the projection")
    return g

# %% [5] How wrong can an interpolant be?
def power_function(kernel: Kernel, X, T) -> np.ndarray:
    """The largest error at the points T of the interpolant at X, for a
    function of norm 1 (:prf:ref:`thm-power-function`).

    It is the distance P(t) of k(t, ·) from span{k(x_i, ·)}, or a bound of
    it with a `PrecisionWarning`, where rounding leaves no digit certain.
    """
    Phi, at_T = Features(kernel, X), Features(kernel, T, "T")
    first = Phi.joined(at_T).labels()
    known = first[Phi.n:] < Phi.n                    # P is 0 at X
    Phi = Phi[np.unique(first[:Phi.n])]
    diagonal, roots = at_T.diag(), np.sqrt(Phi.diag())
    kappa = Phi.gram(at_T)
    found = _solve(Phi, kappa)
    c = found.coefficients                           # K⁺ κ(t)
    # ‖k_t - Φc‖², whatever c is
    square = diagonal + np.sum(c * (Phi.dot(c) - 2 * kappa), axis=0)
    total = (np.sqrt(diagonal) + roots @ np.abs(c)) ** 2
    if (square < -1e-8 * total).any():
        raise ValueError("kernel must be positive definite, but at point "
                         f"{square.argmin()} of T the square of the "
                         f"distance is {square.min():.6g}")
    error = (Phi.n + 5) * np.finfo(float).eps * total
    sure = found.rank == np.count_nonzero(roots)
    doubt = ~known & ((square <= error) | (not sure))
    bound = np.minimum(np.maximum(square, 0.0) + error, diagonal)
    P = np.sqrt(np.where(known, 0.0, np.where(doubt, bound, square)))
    if doubt.any():
        j = doubt.argmax()
        check.certain(P[j], P[j], f"the power function at point {j} of T")
    return P

# %% [6] The norm in a sum of spaces
def decompose(f: RKHSFunction) -> tuple[RKHSFunction, RKHSFunction]:
    """The cheapest f = f1 + f2 for f with a kernel ``k1 + k2``: functions
    with the kernels k1 and k2, and ‖f‖² = ‖f1‖² + ‖f2‖²
    (:prf:ref:`thm-sum-rkhs`).

    >>> f = RKHSFunction(Linear() + Linear(), [1.0], [3.0])
    >>> f1, f2 = decompose(f)
    >>> f([2.0]), f1([2.0]), f2([2.0])
    (array([12.]), array([6.]), array([6.]))
    """
    as_function(f)
    if not isinstance(f.kernel, Sum):
        raise ValueError("f must have a kernel that is a sum k1 + k2, got "
                         f"{f.kernel}")
    return tuple(RKHSFunction(k, f.points, f.weights)
                 for k in (f.kernel.first, f.kernel.second))
