"""Ridge regression: leave points out without fitting again

The exported cells of the chapter ``book/ridge.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: fec66d073f492a83

# %% [1] Ridge regression: leave points out without fitting again
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.linalg import (LinAlgError, cho_factor, cho_solve,
                          eigvalsh_tridiagonal, solve_triangular,
                          solveh_banded)
from scipy.linalg.lapack import dormqr, dpocon, dsytrd, dsytrd_lwork

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points, as_sequence
from rkhs_lit.kernels import Gaussian, Kernel, squared_distances
from rkhs_lit.moore_aronszajn import Features, RKHSFunction


# %% [2] With features that cannot be listed
def ridge(kernel: Kernel, X, y, lam: float) -> RKHSFunction:
    """Kernel ridge regression, the minimiser of
    Σ (y_i - f(x_i))² + λ ‖f‖² (:prf:ref:`thm-ridge-rkhs`).

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

    Returns
    -------
    RKHSFunction
        With the weights (K + λI)⁻¹ y.

    Examples
    --------
    One point, with k(1, 1) = 1: the weight is y / (1 + λ).

    >>> ridge(Gaussian(1.0), [1.0], [3.0], 0.5)([1.0])
    array([2.])
    """
    (Phi, y), lam = _data(kernel, X, y), _penalty(lam)
    alpha = cho_solve(ridge_factor(Phi.gram(), lam), y)
    return Phi @ _bounded(alpha)


# %% [3] Fine print
_EPS = np.finfo(float).eps
_MAX = float(np.finfo(float).max)


def _penalty(lam):
    return check.positive(lam, "lam", " (for the limit 0 see interpolate)")


def _size(K, kernel="kernel"):
    """A bound of all eigenvalues of K."""
    with np.errstate(over="ignore"):
        return check.finite(np.abs(K).sum(axis=1).max(), kernel)


def _check_visible(lam, size, name="lam", least=None):
    """Refuse λ below the rounding errors of K, and warn if they may
    move the least eigenvalue of K + λI by as much as it is, where that
    of K is known (:prf:ref:`prop-ridge-rounding`)."""
    if not lam >= _EPS * size:
        raise ValueError(f"{name} must be at least {_EPS * size:.3g}, or "
                         "it is lost in the rounding errors of the Gram "
                         f"matrix, got {lam:.3g}")
    if least is not None:
        check.certain(lam + least, 64 * _EPS * size, "the least eigenvalue"
                      f" of the Gram matrix plus {name} I")


# %% [4] Fine print
def _cholesky(A, shift, otherwise):
    """The Cholesky factor of A + shift I, or an error that says
    `otherwise`."""
    A = A.copy()
    A.flat[::len(A) + 1] += shift
    try:
        return cho_factor(A, lower=True, overwrite_a=True)
    except LinAlgError:
        raise ValueError(otherwise) from None


def ridge_factor(K, lam: float, name: str = "lam",
                 kernel: str = "kernel") -> tuple[np.ndarray, bool]:
    """The Cholesky factor of K + λI for ``scipy.linalg.cho_solve``, where
    λ is visible beside rounding (:prf:ref:`prop-ridge-rounding`); errors
    use these names."""
    size = _size(K, kernel)
    _check_visible(lam, size, name)
    if lam > (small := 1e-8 * size) > 0:
        _cholesky(K, small, f"{kernel} must be positive definite, but its "
                  "Gram matrix has a negative eigenvalue")
    factor = _cholesky(K, lam, f"{name} must be larger, or {kernel} is "
                       "not positive definite: the Gram matrix plus "
                       f"{lam:.3g} I is singular up to rounding")
    rcond, _ = dpocon(factor[0], size + lam, uplo="L")
    _check_visible(lam, size, name, rcond * (size + lam) - lam)
    return factor


# %% [5] Fine print
def _no_negative(least, size, kernel="kernel"):
    if least < -1e-8 * size:
        raise ValueError(f"{kernel} must be positive definite, but its Gram "
                         f"matrix has the eigenvalue {least:.6g}")


def _spectrum(K, kernel="kernel"):
    """Eigenvalues and eigenvectors of a Gram matrix."""
    size = _size(K, kernel)
    d, U = np.linalg.eigh(K)
    _no_negative(d[0], size, kernel)
    return np.maximum(d, 0.0), U, size


def ridge_spectrum(K, lam: float, name: str = "lam",
                   kernel: str = "kernel") -> tuple[np.ndarray, np.ndarray]:
    """d and U with K = U diag(d) U', for penalties of at least λ, which
    is visible beside rounding (:prf:ref:`prop-ridge-rounding`)."""
    d, U, size = _spectrum(K, kernel)
    _check_visible(lam, size, name, d[0])
    return d, U


def _shrinkage(d, size, lams, name="lams"):
    """The numbers λ / (d_j + λ), a row for each λ."""
    _check_visible(lams.min(), size, name, d[0])
    return lams[:, None] / (d + lams[:, None])


# %% [6] Fine print
def _data(kernel, X, y):
    Phi = Features(kernel, X)
    return Phi, check.vector(y, "y", len(Phi))


def _bounded(values):
    if not np.isfinite(values).all():
        raise ValueError("y is too large: a number made from it overflows")
    return values


def _at(kernel, T, compute):
    """compute(T), with errors that speak of T."""
    T = as_sequence(T, "T")
    try:
        return check.finite(compute(T), "kernel")
    except ValueError as error:
        kernel._prepare(T, "T")              # says what T must be
        raise ValueError(f"T does not suit the points X: {error}"
                         ) from None


# %% [7] Fine print
def _indices(index, n, name):
    index = check.plain_array(index, name)
    if index.size == 0:
        index = index.astype(int)
    if (index.ndim != 1 or index.dtype.kind not in "iu"
            or not ((0 <= index) & (index < n)).all()):
        raise ValueError(f"{name} must be a list of whole numbers from 0 "
                         f"to {n - 1} that index points, got {index!r}")
    return check.frozen(index)


def _partition(folds, n, held=()):
    if not np.iterable(folds):
        raise ValueError("folds must be a list of lists of indices, got "
                         f"{folds!r}")
    folds = tuple(_indices(F, n, "folds") for F in folds)
    used = np.bincount(np.concatenate([*folds, held]).astype(int),
                       minlength=n)
    if (used != 1).any() or not all(map(len, folds)):
        raise ValueError("folds must not be empty and must have each point "
                         "once, but those of the test set never")
    return folds


def _split(n, folds, test, rng):
    """Indices of the folds and of the test set."""
    drawn, counted = isinstance(folds, Real), isinstance(test, Real)
    if drawn and rng is None:
        raise ValueError("rng must be a seed or a numpy Generator, to draw "
                         "the folds and the test set")
    order = check.generator(rng).permutation(n) if drawn else np.arange(n)
    held = (order[:check.whole(test, "test")] if counted
            else _indices(test, n, "test"))
    rest = order[~np.isin(order, held)]
    if len(rest) < 2 or len(rest) + len(held) != n or (
            counted and test and not drawn):
        raise ValueError(f"test must leave at least 2 of {n} points, name "
                         "none twice, and be a list where folds are")
    if drawn:
        m = check.whole(folds, "folds", 2)
        if m > len(rest):
            raise ValueError(f"folds must be at most the {len(rest)} "
                             f"training points, got {m}")
        folds = tuple(map(check.frozen, np.array_split(rest, m)))
    elif len(folds := _partition(folds, n, held)) < 2:
        raise ValueError("folds must be at least 2")
    return folds, check.frozen(held)


# %% [8] Fine print
def _maps(kernels, X):
    """The map Φ of each kernel, for one copy of the points."""
    one = isinstance(kernels, Kernel) or not np.iterable(kernels)
    kernels = (kernels,) if one else tuple(kernels)
    if not kernels:
        raise ValueError("kernels must be a kernel or a list of kernels, "
                         "got an empty list")
    first = Features(kernels[0], X, "X", "kernels")
    return [Features(k, first, "X", "kernels") for k in kernels]


def _slopes(derivatives, n):
    if not np.iterable(derivatives):
        raise ValueError("derivatives must be a list of arrays, got "
                         f"{derivatives!r}")
    slopes = [as_points(D, "derivatives") for D in derivatives]
    for D in slopes:
        if D.shape != (n, n) or not np.allclose(
                D, D.T, rtol=1e-8, atol=1e-8 * np.abs(D).max()):
            raise ValueError(f"derivatives must be symmetric ({n}, {n}) "
                             f"arrays, got shape {D.shape}")
    return slopes


# %% [9] A linear smoother
def smoother_matrix(kernel: Kernel, X, lam: float) -> np.ndarray:
    """The matrix S = K (K + λI)⁻¹ that turns data into fitted values
    (:prf:ref:`prop-ridge-smoother`).

    Parameters
    ----------
    kernel : Kernel
    X : sequence of n points
    lam : float
        The penalty λ of `ridge`.

    Returns
    -------
    (n, n) array
        Symmetric, with ``S @ y`` the values of ``ridge(kernel, X, y,
        lam)`` at X. Its trace is `degrees_of_freedom`.

    Examples
    --------
    >>> smoother_matrix(Gaussian(1.0), [0.0, 100.0], 0.25).round(6)
    array([[0.8, 0. ],
           [0. , 0.8]])
    """
    lam = _penalty(lam)
    d, U = ridge_spectrum(Features(kernel, X).gram(), lam)
    return (U * (d / (d + lam))) @ U.T


# %% [10] How many parameters does it have?
def degrees_of_freedom(kernel: Kernel, X, lam: float) -> float:
    """The trace Σ d_j / (d_j + λ) of the smoother matrix
    (:prf:ref:`def-ridge-df`).

    Parameters
    ----------
    kernel : Kernel
    X : sequence of n points
    lam : float
        The penalty λ of `ridge`.

    Returns
    -------
    float
        Between 0 and n.

    Examples
    --------
    >>> degrees_of_freedom(Gaussian(1.0), [0.0, 100.0], 0.25)
    1.6
    """
    lam = _penalty(lam)
    d, _ = ridge_spectrum(Features(kernel, X).gram(), lam)
    return float(np.sum(d / (d + lam)))


# %% [11] Every $\lambda$ from one eigendecomposition
@dataclass(frozen=True, eq=False, repr=False)
class RidgePath:
    """Ridge fits for many penalties (:prf:ref:`prop-ridge-smoother`).

    Made by `ridge_path`. Row j of an array belongs to ``lams[j]``.

    Attributes
    ----------
    kernel : Kernel
    points : sequence of n points
    lams : (L,) array
    weights : (L, n) array
        The weights (K + λI)⁻¹ y.
    residuals : (L, n) array
        y_i - f(x_i).
    leave_one_out : (L, n) array
        y_i - f(x_i) where f was fitted without point i.
    degrees_of_freedom : (L,) array
    norms : (L,) array
        The norms of the fits in the RKHS.
    """

    kernel: Kernel
    points: Sequence
    lams: np.ndarray
    weights: np.ndarray
    residuals: np.ndarray
    leave_one_out: np.ndarray
    degrees_of_freedom: np.ndarray
    norms: np.ndarray

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


# %% [12] Every $\lambda$ from one eigendecomposition
def ridge_path(kernel: Kernel, X, y, lams) -> RidgePath:
    """Kernel ridge regression for many penalties, from one
    eigendecomposition (:prf:ref:`prop-ridge-smoother`).

    Parameters
    ----------
    kernel : Kernel
    X : sequence of n points
    y : (n,) array
    lams : (L,) array
        Penalties as for `ridge`, in any order.

    Returns
    -------
    RidgePath
        With weights, residuals, leave-one-out residuals, degrees of
        freedom and norms for every penalty. Takes O(n³ + L n²)
        operations.

    Examples
    --------
    >>> path = ridge_path(Gaussian(1.0), [0.0, 100.0], [1.0, 2.0], [1., 3.])
    >>> path.residuals.round(6)
    array([[0.5 , 1.  ],
           [0.75, 1.5 ]])
    """
    Phi, y = _data(kernel, X, y)
    lams = check.positives(lams, "lams")
    d, U = ridge_spectrum(Phi.gram(), lams.min(), "lams")
    lam = lams[:, None]
    c = lam / (d + lam)                      # the eigenvalues of R_λ
    with np.errstate(over="ignore", invalid="ignore"):
        z = U.T @ y
        r = (c * z) @ U.T
        arrays = (r / lam, r, r / (c @ (U**2).T),
                  np.sum(d / (d + lam), axis=1),
                  np.hypot.reduce(np.sqrt(d) * (z / (d + lam)), axis=1,
                                  initial=0.0))
    return RidgePath(kernel, Phi.points, lams,
                     *(check.frozen(_bounded(a)) for a in arrays))


# %% [13] Leaving points out without fitting again
def _left_out(y, U, c, folds, name="lams"):
    """The errors e_F = R_FF⁻¹ r_F of all folds, where R = U diag(c) U'."""
    r, W = U @ (c * (U.T @ y)), U * np.sqrt(c)
    e = np.empty(len(y))
    for F in folds:
        R_FF = _cholesky(W[F] @ W[F].T, 0.0, f"{name} must be larger: "
                         "1 - S is singular up to rounding")
        e[F] = cho_solve(R_FF, r[F], check_finite=False)
    return e


# %% [14] Leaving points out without fitting again
def leave_fold_out(kernel: Kernel, X, y, lam: float, folds) -> np.ndarray:
    """Errors at the points of each fold of a fit to all other points,
    without fitting again (:prf:ref:`thm-ridge-fold`).

    Parameters
    ----------
    kernel : Kernel
    X : sequence of n points
    y : (n,) array
    lam : float
        The penalty λ of `ridge`.
    folds : list of lists of indices
        Every point is in one fold.

    Returns
    -------
    (n,) array
        y_i - f(x_i), where f is the ridge fit to the points outside the
        fold of i.
    """
    (Phi, y), lam = _data(kernel, X, y), _penalty(lam)
    folds = _partition(folds, len(y))
    d, U = ridge_spectrum(Phi.gram(), lam)
    with np.errstate(over="ignore", invalid="ignore"):
        return _bounded(_left_out(y, U, lam / (d + lam), folds, "lam"))


# %% [15] Leaving points out without fitting again
def leave_one_out(kernel: Kernel, X, y, lam: float) -> np.ndarray:
    """Leave-one-out residuals r_i / (1 - S_ii), without fitting again
    (:prf:ref:`cor-ridge-loo`).

    Parameters
    ----------
    kernel : Kernel
    X : sequence of n points
    y : (n,) array
    lam : float
        The penalty λ of `ridge`.

    Returns
    -------
    (n,) array
        y_i - f(x_i), where f is the ridge fit to all points but i.

    Examples
    --------
    Two points that the kernel cannot compare predict 0 for each other:

    >>> leave_one_out(Gaussian(1.0), [0.0, 100.0], [3.0, 5.0], 0.1)
    array([3., 5.])
    """
    (Phi, y), lam = _data(kernel, X, y), _penalty(lam)
    d, U = ridge_spectrum(Phi.gram(), lam)
    c = lam / (d + lam)                      # the eigenvalues of R_λ
    with np.errstate(over="ignore", invalid="ignore"):
        return _bounded(U @ (c * (U.T @ y)) / (U**2 @ c))


# %% [16] Choosing $\lambda$ and the width
def _tridiagonal(K):
    """The diagonals of T = Q'KQ, and functions for Q'B and QB."""
    n = len(K)
    if n == 1:
        return K[0].copy(), np.empty(0), np.copy, np.copy
    work, _ = dsytrd_lwork(n, lower=1)
    A, d, e, tau, _ = dsytrd(K, lower=1, lwork=int(work))

    def turned(B, how):
        # The reflections act on all rows but the first.
        B = np.array(B, order="F")
        B[1:] = dormqr("L", how, A[1:, :-1], tau, B[1:],
                       64 * B.shape[1] + 4160)[0]
        return B

    return d, e, lambda B: turned(B, "T"), lambda B: turned(B, "N")


def _all_weights(K, y, lams):
    """The weights (K + λI)⁻¹ y, a column for each λ."""
    d, e, transposed, forward = _tridiagonal(K)
    unit = (size := _size(K)) or 1.0
    least = unit * eigvalsh_tridiagonal(      # T has the eigenvalues of K
        d / unit, e / unit, select="i", select_range=(0, 0))[0]
    _no_negative(least, size)
    _check_visible(lams.min(), size, "lams", max(least, 0.0))
    if len(K) == 1:
        return y / (d + lams[None])
    b, off = transposed(y[:, None])[:, 0], np.append(e, 0.0)
    try:
        return forward(np.column_stack([
            solveh_banded([d + lam, off], b, lower=True) for lam in lams]))
    except LinAlgError:
        raise ValueError("lams must be larger: the Gram matrix plus "
                         f"{lams.min():.3g} I is singular up to rounding"
                         ) from None


# %% [17] Choosing $\lambda$ and the width
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


# %% [18] Choosing $\lambda$ and the width
@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation:
    """What cross-validation found (:prf:ref:`alg-ridge-cv`).

    Made by `cross_validate`.

    Attributes
    ----------
    kernels : tuple of q kernels
    lams : (L,) array
    errors : (q, L) array
        The mean squared error at training points left out.
    kernel : Kernel
        The chosen one.
    lam : float
        The chosen one.
    function : RKHSFunction
        The fit of the whole training set with both.
    test_error : float or None
        Its mean squared error on the test set, where there is one.
    train : array of int
        Indices of the training set.
    test : array of int
        Indices of the test set.
    folds : tuple of arrays of int
        Indices of the folds.
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

    def __repr__(self):
        return (f"CrossValidation({self.kernel}, lam={self.lam:.6g}, "
                f"error={self.errors.min():.6g})")


# %% [19] Choosing $\lambda$ and the width
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
    rng : seed or numpy.random.Generator, to draw folds and test set
        None draws others each time.

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
    maps, lams = _maps(kernels, X), check.positives(lams, "lams")
    n = len(maps[0])
    y = check.vector(y, "y", n)
    folds, test = _split(n, folds, test, check.generator(rng))
    train = np.sort(np.concatenate(folds))
    inside = [np.searchsorted(train, F) for F in folds]
    sums = _errors_again if len(folds) <= 8 else _errors_at_once
    with np.errstate(over="ignore", invalid="ignore"):
        errors = _bounded(np.array([
            sums(Phi[train].gram(), y[train], lams, inside)
            for Phi in maps]) / len(train))
        best, j = np.unravel_index(errors.argmin(), errors.shape)
        Phi, lam = maps[best], float(lams[j])
        f = ridge(Phi.kernel, Phi[train].points, y[train], lam)
        test_error = None if len(test) == 0 else float(_bounded(
            np.mean((y[test] - Phi[test].sample(f)) ** 2)))
    return CrossValidation(
        tuple(Psi.kernel for Psi in maps), lams, check.frozen(errors),
        Phi.kernel, lam, f, test_error, check.frozen(train), test, folds)


# %% [20] The Bayesian view
def gp_posterior(kernel: Kernel, X, y, noise: float,
                 T) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the covariance of a Gaussian process at points T,
    given noisy values at X (:prf:ref:`thm-gp-posterior`).

    Parameters
    ----------
    kernel : Kernel
        The covariance of the process.
    X : sequence of n points
        May repeat points.
    y : (n,) array
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
    (Phi, y), noise = _data(kernel, X, y), check.positive(noise, "noise")
    Psi = Features(kernel, T, "T")
    K_tx, K_tt = (check.finite(K, "kernel")
                  for K in (Psi.gram(Phi), Psi.gram()))
    L, _ = factor = ridge_factor(Phi.gram(), noise, "noise")
    V = solve_triangular(L, K_tx.T, lower=True)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = _bounded(K_tx @ cho_solve(factor, y))
    covariance = K_tt - V.T @ V
    # No variance is negative: rounding where the posterior is sure.
    variance = np.maximum(covariance.diagonal(), 0.0)
    np.fill_diagonal(covariance, variance)
    i = np.argmin(variance - 4 * _EPS * K_tt.diagonal())
    check.certain(variance[i], 4 * _EPS * K_tt[i, i],
                  f"the variance at point {i} of T")
    return mean, covariance


# %% [21] Choosing parameters by the evidence
def gaussian_derivative(X, sigma: float) -> np.ndarray:
    """The derivative of the Gaussian Gram matrix with respect to its
    width (:prf:ref:`thm-gp-evidence`).

    Parameters
    ----------
    X : (n, d) array
    sigma : float

    Returns
    -------
    (n, n) array
        exp(-‖x_i - x_j‖² / (2σ²)) ‖x_i - x_j‖² / σ³, for
        `log_marginal_likelihood`.

    Examples
    --------
    >>> gaussian_derivative([0.0, 2.0], 1.0).round(6)
    array([[0.      , 0.541341],
           [0.541341, 0.      ]])
    """
    X = as_points(X)
    sigma = check.width(sigma, "sigma")
    with np.errstate(over="ignore"):
        q = np.minimum(squared_distances(X, X) / sigma**2, 1e4)
    return np.exp(-q / 2) * q / sigma


# %% [22] Choosing parameters by the evidence
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
    (Phi, y), noise = _data(kernel, X, y), check.positive(noise, "noise")
    n, slopes = len(y), _slopes(derivatives, len(y))
    if slopes and not return_gradient:
        raise ValueError("derivatives are for return_gradient=True")
    L, _ = factor = ridge_factor(Phi.gram(), noise, "noise")
    with np.errstate(over="ignore", invalid="ignore"):
        alpha = cho_solve(factor, y)
        half = solve_triangular(L, y, lower=True)
        value = float(_bounded(-half @ half / 2 - np.log(L.diagonal()).sum()
                               - n / 2 * np.log(2 * np.pi)))
        if not return_gradient:
            return value
        P = cho_solve(factor, np.eye(n))
        gradient = [alpha @ dC @ alpha - np.sum(P * dC)
                    for dC in (np.eye(n), *slopes)]
    return value, _bounded(np.array(gradient) / 2)
