"""Ridge regression: leave points out without fitting again

The exported cells of the chapter ``book/ridge.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 3901ef2dda412834

# %% [1] Ridge regression: leave points out without fitting again
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from scipy.linalg import cho_solve, eigvalsh_tridiagonal, solve_triangular
from scipy.linalg.lapack import (dormqr, dpocon, dposv, dpotrf, dptsv,
                                 dsytrd, dsytrd_lwork)

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_sequence
from rkhs_lit.kernels import Gaussian, Kernel, squared_distances
from rkhs_lit.moore_aronszajn import Features, RKHSFunction


# %% [2] With features that cannot be listed
def ridge(kernel: Kernel, X, y, lam: float) -> RKHSFunction:
    """Kernel ridge regression, the minimiser of Σ (y_i - f(x_i))² + λ ‖f‖²;
    it has the weights (K + λI)⁻¹ y (:prf:ref:`thm-ridge-rkhs`).

    Parameters
    ----------
    kernel : Kernel
        Positive definite, on any kind of points.
    X : sequence of n points
        May repeat points.
    y : (n,) array
    lam : float
        The penalty λ > 0, not divided or multiplied by n: scikit-learn's
        ``KernelRidge(alpha=lam)``. One that is lost in the rounding
        errors of the Gram matrix is refused, and one that is near them
        gives a `PrecisionWarning` (:prf:ref:`prop-ridge-rounding`);
        `interpolate` is the limit λ → 0.

    Examples
    --------
    One point, with k(1, 1) = 1: the weight is y / (1 + λ).

    >>> ridge(Gaussian(1.0), [1.0], [3.0], 0.5)([1.0])
    array([2.])
    """
    Phi = Features(kernel, X)
    y = check.vector(y, "y", len(Phi))
    alpha = cho_solve(ridge_factor(Phi.gram(), lam), y)
    return Phi @ check.finite(alpha, "y")


# %% [3] Fine print
_EPS = np.finfo(float).eps


def _visible(K, lam, name, kernel):
    """K, λ and a bound of all eigenvalues of K, if λ is not below the
    rounding errors of K (:prf:ref:`prop-ridge-rounding`)."""
    K = check.real_array(K, "K", 2)
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be square, got shape {K.shape}")
    lam = check.positive(lam, name, " (for the limit 0 see interpolate)")
    with np.errstate(over="ignore"):
        size = float(check.finite(np.abs(K).sum(axis=1).max(), kernel))
    if lam < _EPS * size:
        raise ValueError(f"{name} must be at least {_EPS * size:.3g}, or "
                         "it is lost in the rounding errors of the Gram "
                         f"matrix, got {lam:.3g}")
    return K, lam, size


def _check_least(least, lam, size, name, kernel):
    """Refuse a negative eigenvalue of K, and warn if rounding may move
    the least one of K + λI by as much as it is."""
    if least < -1e-8 * size:
        raise ValueError(f"{kernel} must be positive definite, but its "
                         f"Gram matrix K has the eigenvalue {least:.6g}")
    check.certain(lam + max(least, 0.0), 64 * _EPS * size, "the least "
                  f"eigenvalue of the Gram matrix plus {name} I")


# %% [4] Fine print
def ridge_factor(K, lam: float, name: str = "lam",
                 kernel: str = "kernel") -> tuple[np.ndarray, bool]:
    """The Cholesky factor of K + λI for ``scipy.linalg.cho_solve``, where
    λ is visible beside rounding (:prf:ref:`prop-ridge-rounding`). Of the
    Gram matrix K the lower half is read; errors use these names."""
    K, lam, size = _visible(K, lam, name, kernel)
    small = 1e-8 * size
    for shift in [small, lam] if lam > small > 0 else [lam]:
        A = np.array(K, order="F")
        A.flat[::len(A) + 1] += shift
        L, failed = dpotrf(A, lower=1, overwrite_a=1)
        if failed and shift < lam:
            raise ValueError(f"{kernel} must be positive definite, but its "
                             "Gram matrix K has a negative eigenvalue")
        if failed:
            raise ValueError(f"{name} must be larger, or {kernel} is not "
                             "positive definite: the Gram matrix K plus "
                             f"{lam:.3g} I is singular up to rounding")
    least, _ = dpocon(L, size + lam, uplo="L")        # over size + λ
    check.certain(least * (size + lam), 64 * _EPS * size, "the least "
                  f"eigenvalue of the Gram matrix plus {name} I")
    return L, True


def ridge_spectrum(K, lam: float, name: str = "lam",
                   kernel: str = "kernel") -> tuple[np.ndarray, ...]:
    """d and U with K = U diag(d) U', for penalties of at least λ, which
    is visible beside rounding (:prf:ref:`prop-ridge-rounding`)."""
    K, lam, size = _visible(K, lam, name, kernel)
    d, U = np.linalg.eigh(K)
    _check_least(d[0], lam, size, name, kernel)
    return np.maximum(d, 0.0), U


# %% [5] Fine print
def _indices(index, n, name):
    listed = np.iterable(index) and not isinstance(index, dict)
    index = [*np.atleast_1d(check.plain_array(index, name))] if listed else (
        [None])
    if not all(isinstance(i, Integral) and 0 <= i < n for i in index):
        raise ValueError(f"{name} must be lists of whole numbers from 0 to "
                         f"{n - 1}, the indices of points")
    return np.array(index, dtype=int)


def _partition(folds, n, held=()):
    folds = folds if np.iterable(folds) else ()
    folds = tuple(_indices(F, n, "folds") for F in folds)
    used = np.sort(np.concatenate([*folds, held]))
    if not np.array_equal(used, np.arange(n)) or not all(map(len, folds)):
        raise ValueError("folds must be lists of indices, none empty, that "
                         "have each point once, but no point of the test")
    return folds


def split_folds(n: int, folds, test=0, rng=None) -> tuple:
    """The folds of n points, and a test set beside them, as arrays of
    indices; numbers are drawn, lists are checked
    (:prf:ref:`thm-ridge-fold`). Arguments as for `cross_validate`.

    >>> split_folds(5, [[0, 3], [1, 2]], test=[4])
    ((array([0, 3]), array([1, 2])), array([4]))
    """
    n, rng = check.whole(n, "n", 1), check.generator(rng)
    drawn, counted = isinstance(folds, Real), isinstance(test, Real)
    order = rng.permutation(n) if drawn else np.arange(n)
    held = (order[:check.whole(test, "test")] if counted
            else _indices(test, n, "test"))
    rest = order[~np.isin(order, held)]
    if len(rest) < 2 or len(rest) + len(held) != n or (
            counted and test and not drawn):
        raise ValueError(f"test must leave at least 2 of {n} points, name "
                         "none twice, and be a list where folds are")
    if not drawn:
        if len(parts := _partition(folds, n, held)) < 2:
            raise ValueError("folds must be at least 2")
        return parts, held
    m = check.whole(folds, "folds", 2)
    if m > len(rest):
        raise ValueError(f"folds must be at most the {len(rest)} training "
                         f"points, got {m}")
    return tuple(np.array_split(rest, m)), held


# %% [6] A linear smoother
def smoother_matrix(kernel: Kernel, X, lam: float) -> np.ndarray:
    """The symmetric (n, n) matrix S = K (K + λI)⁻¹ that turns data into
    fitted values: ``S @ y`` are those of ``ridge(kernel, X, y, lam)`` at X
    (:prf:ref:`prop-ridge-smoother`).

    Examples
    --------
    >>> smoother_matrix(Gaussian(1.0), [0.0, 100.0], 0.25).round(6)
    array([[0.8, 0. ],
           [0. , 0.8]])
    """
    Phi, lam = Features(kernel, X), check.positive(lam, "lam")
    d, U = ridge_spectrum(Phi.gram(), lam)
    return (U * (d / (d + lam))) @ U.T


# %% [7] How many parameters does it have?
def degrees_of_freedom(kernel: Kernel, X, lam: float) -> float:
    """The trace Σ d_j / (d_j + λ) of the smoother matrix of `ridge`,
    between 0 and n (:prf:ref:`def-ridge-df`).

    Examples
    --------
    >>> degrees_of_freedom(Gaussian(1.0), [0.0, 100.0], 0.25)
    1.6
    """
    Phi, lam = Features(kernel, X), check.positive(lam, "lam")
    d, _ = ridge_spectrum(Phi.gram(), lam)
    return float(np.sum(d / (d + lam)))


# %% [8] Every $\lambda$ from one eigendecomposition
@dataclass(frozen=True, eq=False, repr=False)
class RidgePath(check.Record):
    """Ridge fits for many penalties (:prf:ref:`prop-ridge-smoother`).

    Made by `ridge_path`. Row j of an array belongs to ``lams[j]``.

    Attributes
    ----------
    kernel, points : Kernel, sequence of n points
    lams, degrees_of_freedom, norms : (L,) arrays
        Penalties, traces of S_λ, and norms of the fits in the RKHS.
    weights, residuals, leave_one_out : (L, n) arrays
        (K + λI)⁻¹ y, the numbers y_i - f(x_i), and these where f was
        fitted without point i.
    """

    kernel: Kernel
    points: Sequence
    lams: np.ndarray
    weights: np.ndarray
    residuals: np.ndarray
    leave_one_out: np.ndarray
    degrees_of_freedom: np.ndarray
    norms: np.ndarray

    def __post_init__(self):
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __repr__(self):
        return (f"RidgePath({self.kernel}, n={len(self.points)}, "
                f"L={len(self.lams)})")

    def function(self, j: int) -> RKHSFunction:
        """The fit for ``lams[j]``."""
        L = len(self.lams)
        if (j := check.whole(j, "j", -L)) >= L:
            raise ValueError(f"j must be below {L}, the number of "
                             f"penalties, got {j}")
        return RKHSFunction(self.kernel, self.points, self.weights[j])

    def __call__(self, T) -> np.ndarray:
        """The values of all fits at the points T, an (L, m) array."""
        Phi = Features(self.kernel, self.points)
        Psi = Features(self.kernel, T, "T")
        return check.finite(Psi.dot(self.weights.T, Phi), "kernel").T


# %% [9] Every $\lambda$ from one eigendecomposition
def ridge_path(kernel: Kernel, X, y, lams) -> RidgePath:
    """Kernel ridge regression for many penalties, from one
    eigendecomposition (:prf:ref:`prop-ridge-smoother`).

    Parameters
    ----------
    kernel, X, y : as for `ridge`
    lams : (L,) array
        Penalties as for `ridge`, in any order. Beyond the decomposition
        each takes O(n²) operations.

    Examples
    --------
    >>> path = ridge_path(Gaussian(1.0), [0.0, 100.0], [1.0, 2.0], [1., 3.])
    >>> path.residuals.round(6)
    array([[0.5 , 1.  ],
           [0.75, 1.5 ]])
    """
    Phi, lams = Features(kernel, X), check.positives(lams, "lams")
    y = check.vector(y, "y", len(Phi))
    d, U = ridge_spectrum(Phi.gram(), lams.min(), "lams")
    lam = lams[:, None]
    c = lam / (d + lam)                      # the eigenvalues of R_λ
    with np.errstate(over="ignore", invalid="ignore"):
        z = U.T @ y
        r = (c * z) @ U.T
        alpha, left_out = r / lam, r / (c @ (U**2).T)
        norms = np.hypot.reduce(np.sqrt(d) * (z / (d + lam)), axis=1,
                                initial=0.0)
    for values in (r, alpha, left_out, norms):
        check.finite(values, "y")
    return RidgePath(kernel, Phi.points, lams, alpha, r, left_out,
                     np.sum(d / (d + lam), axis=1), norms)


# %% [10] Leaving points out without fitting again
def _left_out(y, U, c, folds, name="lams"):
    """The errors e_F = R_FF⁻¹ r_F of all folds, where R = U diag(c) U'."""
    r, W = U @ (c * (U.T @ y)), U * np.sqrt(c)
    e = np.empty(len(y))
    for F in folds:
        _, e[F], failed = dposv(W[F] @ W[F].T, r[F])
        if failed:
            raise ValueError(f"{name} must be larger: 1 - S is singular up "
                             "to rounding")
    return e


def leave_fold_out(kernel: Kernel, X, y, lam: float, folds) -> np.ndarray:
    """Errors y_i - f(x_i) at the points of each fold, of the ridge fit f
    to all other points, without fitting again (:prf:ref:`thm-ridge-fold`).

    Parameters
    ----------
    kernel, X, y, lam : as for `ridge`
    folds : list of lists of indices
        Every point is in one fold.
    """
    Phi, lam = Features(kernel, X), check.positive(lam, "lam")
    y, folds = check.vector(y, "y", len(Phi)), _partition(folds, len(Phi))
    d, U = ridge_spectrum(Phi.gram(), lam)
    with np.errstate(over="ignore", invalid="ignore"):
        e = _left_out(y, U, lam / (d + lam), folds, "lam")
    return check.finite(e, "y")


def leave_one_out(kernel: Kernel, X, y, lam: float) -> np.ndarray:
    """Errors y_i - f(x_i), with the ridge fit f to all points but i, that
    is r_i / (1 - S_ii) (:prf:ref:`cor-ridge-loo`). Arguments of `ridge`.

    Examples
    --------
    Two points that the kernel cannot compare predict 0 for each other:

    >>> leave_one_out(Gaussian(1.0), [0.0, 100.0], [3.0, 5.0], 0.1)
    array([3., 5.])
    """
    Phi, lam = Features(kernel, X), check.positive(lam, "lam")
    y = check.vector(y, "y", len(Phi))
    d, U = ridge_spectrum(Phi.gram(), lam)
    c = lam / (d + lam)                      # the eigenvalues of R_λ
    with np.errstate(over="ignore", invalid="ignore"):
        return check.finite(U @ (c * (U.T @ y)) / (U**2 @ c), "y")


# %% [11] Choosing $\lambda$ and the width
def _all_weights(K, y, lams):
    """The weights (K + λI)⁻¹ y, a column for each λ, by K = QTQ'."""
    K, lam, size = _visible(K, lams.min(), "lams", "kernel")
    work, _ = dsytrd_lwork(len(K), lower=1)
    A, d, e, tau, _ = dsytrd(K, lower=1, lwork=int(work))

    def turned(B, how):                      # Q'B ("T") or QB ("N")
        B = np.array(B, order="F")           # its first row stays
        B[1:] = dormqr("L", how, A[1:, :-1], tau, B[1:],
                       64 * B.shape[1] + 4160)[0]
        return B

    least = size and size * eigvalsh_tridiagonal(
        d / size, e / size, select="i", select_range=(0, 0))[0]
    _check_least(least, lam, size, "lams", "kernel")
    b = turned(y[:, None], "T")
    W = np.empty((len(K), len(lams)))
    for j, lam in enumerate(lams):           # (T + λI) w = Q'y
        _, _, W[:, j:j + 1], failed = dptsv(d + lam, e, b)
        if failed:
            raise ValueError("lams must be larger: the Gram matrix plus "
                             f"{lam:.3g} I is singular up to rounding")
    return turned(W, "N")


# %% [12] Choosing $\lambda$ and the width
def _errors_again(K, y, lams, folds):
    """Sums of squared errors, one fit of all λ for each fold."""
    total = np.zeros(len(lams))
    for F in folds:
        rest = np.setdiff1d(np.arange(len(y)), F)
        W = _all_weights(K[np.ix_(rest, rest)], y[rest], lams)
        total += np.sum((y[F, None] - K[np.ix_(F, rest)] @ W) ** 2, axis=0)
    return total


def _errors_at_once(K, y, lams, folds):
    """The same, from the eigendecomposition of the whole."""
    d, U = ridge_spectrum(K, lams.min(), "lams")
    c = lams[:, None] / (d + lams[:, None])
    if len(folds) == len(y):
        left_out = ((c * (U.T @ y)) @ U.T) / (c @ (U**2).T)
    else:
        left_out = np.array([_left_out(y, U, row, folds) for row in c])
    return np.sum(left_out**2, axis=1)


# %% [13] Choosing $\lambda$ and the width
@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(check.Record):
    """What cross-validation found (:prf:ref:`alg-ridge-cv`).

    Made by `cross_validate`.

    Attributes
    ----------
    kernels : tuple of q kernels
    lams : (L,) array
    errors : (q, L) array
        The mean squared error at training points left out.
    kernel, lam, function : Kernel, float, RKHSFunction
        The chosen ones, and the fit of the whole training set with both.
    test_error : float or None
        Its mean squared error on the test set, where there is one.
    train, test, folds : arrays of indices, and a tuple of such arrays
    """

    kernels: tuple
    lams: np.ndarray
    errors: np.ndarray
    kernel: Kernel
    lam: float
    function: RKHSFunction
    test_error: float | None
    train: np.ndarray
    test: np.ndarray
    folds: tuple

    def __post_init__(self):
        for array in (self.lams, self.errors, self.train, self.test,
                      *self.folds):
            array.setflags(write=False)

    def __repr__(self):
        return (f"CrossValidation({self.kernel}, lam={self.lam:.6g}, "
                f"error={self.errors.min():.6g})")


# %% [14] Choosing $\lambda$ and the width
def cross_validate(kernels: Kernel | Sequence[Kernel], X, y, lams, *,
                   folds=5, test=0, rng=None) -> CrossValidation:
    """Choose a kernel and a penalty by cross-validation, and measure
    the result on a held-out test set (:prf:ref:`alg-ridge-cv`).

    Parameters
    ----------
    kernels : Kernel, or list of kernels
    X, y, lams : as for `ridge_path`
    folds : int, or list of lists of indices
        The number m of folds, drawn at random (as many as training
        points: leave-one-out), or the folds, to keep points together.
    test : int, or list of indices
        How many points to hold out for the test, or which.
    rng : seed or numpy.random.Generator, optional
        To draw folds and test set.

    Returns
    -------
    CrossValidation
        Its errors are means over all points left out; for folds of one
        size, the means over folds of scikit-learn's ``GridSearchCV``.

    Examples
    --------
    >>> x = np.arange(20.0)
    >>> found = cross_validate([Gaussian(0.1), Gaussian(5.0)], x, x % 7,
    ...                        [0.1, 1.0], folds=4, test=5, rng=0)
    >>> found.errors.shape, len(found.train), len(found.test)
    ((2, 2), 15, 5)
    """
    kernels = tuple(kernels) if np.iterable(kernels) else (kernels,)
    if not kernels:
        raise ValueError("kernels must hold at least one kernel")
    Phi = Features(kernels[0], X, "X", "kernels")
    maps = [Features(k, Phi, "X", "kernels") for k in kernels]
    y, lams = check.vector(y, "y", len(Phi)), check.positives(lams, "lams")
    folds, test = split_folds(len(y), folds, test, rng)
    if len(folds) < 2:
        raise ValueError("folds must be at least 2")

    train = np.sort(np.concatenate(folds))
    inside = [np.searchsorted(train, F) for F in folds]
    few = len(folds) <= 8 and max(map(len, folds)) < len(train) - 1
    sums = _errors_again if few else _errors_at_once
    with np.errstate(over="ignore", invalid="ignore"):
        errors = check.finite(np.array([
            sums(Phi[train].gram(), y[train], lams, inside)
            for Phi in maps]) / len(train), "y")
        best, j = np.unravel_index(errors.argmin(), errors.shape)
        Phi, lam = maps[best], float(lams[j])
        f = ridge(Phi.kernel, Phi[train], y[train], lam)
        test_error = None if len(test) == 0 else float(check.finite(
            np.mean((y[test] - Phi[test].sample(f)) ** 2), "y"))
    return CrossValidation(kernels, lams, errors, Phi.kernel, lam, f,
                           test_error, train, test, folds)


# %% [15] The Bayesian view
def gp_posterior(kernel: Kernel, X, y, noise: float,
                 T) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the covariance of a Gaussian process at points T,
    given noisy values at X (:prf:ref:`thm-gp-posterior`).

    Parameters
    ----------
    kernel, X, y : as for `ridge`
        The kernel is the covariance of the process.
    noise : float
        The *variance* of the noise, the λ of `ridge` and the ``alpha``
        of scikit-learn's ``GaussianProcessRegressor``.
    T : sequence of m points

    Returns
    -------
    mean : (m,) array
        The values of ``ridge(kernel, X, y, noise)`` at T.
    covariance : (m, m) array
        Of f(T); for new observations add `noise` to the diagonal.

    Examples
    --------
    >>> mean, covariance = gp_posterior(Gaussian(1.0), [0.0], [2.0], 1.0,
    ...                                 [0.0, 100.0])
    >>> mean, covariance
    (array([1., 0.]), array([[0.5, 0. ],
           [0. , 1. ]]))
    """
    Phi, Psi = Features(kernel, X), Features(kernel, T, "T")
    y = check.vector(y, "y", len(Phi))
    K_tx, K_tt = Psi.gram(Phi), Psi.gram()
    L, _ = factor = ridge_factor(Phi.gram(), noise, "noise")
    V = solve_triangular(L, K_tx.T, lower=True)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = check.finite(K_tx @ cho_solve(factor, y), "y")
    covariance = K_tt - V.T @ V
    # No variance is negative: rounding where the posterior is sure.
    variance = np.maximum(covariance.diagonal(), 0.0)
    np.fill_diagonal(covariance, variance)
    i = np.argmin(variance - 4 * _EPS * K_tt.diagonal())
    check.certain(variance[i], 4 * _EPS * K_tt[i, i],
                  f"the variance at point {i} of T")
    return mean, covariance


# %% [16] Choosing parameters by the evidence
def gaussian_derivative(X, sigma: float) -> np.ndarray:
    """The derivative exp(-q/2) q / σ, q = ‖x_i - x_j‖² / σ², of the
    Gaussian Gram matrix with respect to its width, for
    `log_marginal_likelihood` (:prf:ref:`thm-gp-evidence`).

    Examples
    --------
    >>> gaussian_derivative([0.0, 2.0], 1.0).round(6)
    array([[0.      , 0.541341],
           [0.541341, 0.      ]])
    """
    k = Gaussian(sigma)
    X = Features(k, X).seen
    with np.errstate(over="ignore"):
        q = np.minimum(squared_distances(X, X) / k.sigma**2, 1e4)
    return np.exp(-q / 2) * q / k.sigma


def log_marginal_likelihood(kernel: Kernel, X, y, noise: float, *,
                            derivatives=(), return_gradient: bool = False):
    """The log density of noisy values of a Gaussian process, and its
    gradient (:prf:ref:`thm-gp-evidence`).

    Parameters
    ----------
    kernel, X, y, noise : as for `gp_posterior`
    derivatives : list of (n, n) arrays
        Derivatives of the Gram matrix with respect to parameters of the
        kernel, such as `gaussian_derivative`.
    return_gradient : bool

    Returns
    -------
    value : float
    gradient : (1 + p,) array
        Only with ``return_gradient=True``: the derivative with respect
        to `noise`, and one for each of the p `derivatives`.

    Examples
    --------
    >>> round(log_marginal_likelihood(Gaussian(1.0), [0.0], [0.0], 1.0), 6)
    -1.265512
    """
    Phi = Features(kernel, X)
    n, y = len(Phi), check.vector(y, "y", len(Phi))
    check.flag(return_gradient, "return_gradient")
    if not isinstance(derivatives, (list, tuple, np.ndarray)):
        derivatives = [derivatives]
    slopes = [check.real_array(D, "derivatives", 2) for D in derivatives]
    for D in slopes:
        if D.shape != (n, n) or not np.allclose(
                D, D.T, rtol=1e-8, atol=1e-8 * np.abs(D).max()):
            raise ValueError(f"derivatives must be symmetric ({n}, {n}) "
                             f"arrays, got shape {D.shape}")
    if slopes and not return_gradient:
        raise ValueError("derivatives are for return_gradient=True")

    L, _ = factor = ridge_factor(Phi.gram(), noise, "noise")
    with np.errstate(over="ignore", invalid="ignore"):
        alpha = cho_solve(factor, y)
        half = solve_triangular(L, y, lower=True)
        value = float(check.finite(
            -half @ half / 2 - np.log(L.diagonal()).sum()
            - n / 2 * np.log(2 * np.pi), "y"))
        if not return_gradient:
            return value
        P = cho_solve(factor, np.eye(n))
        gradient = [alpha @ dC @ alpha - np.sum(P * dC)
                    for dC in (np.eye(n), *slopes)]
    return value, check.finite(np.array(gradient) / 2, "y")
