"""Ridge regression: leave points out without fitting again"""
# The exported cells of book/ridge.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 5da7b0234f7be7a3

# %% [1] Ridge regression: leave points out without fitting again
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.linalg import cho_solve, eigvalsh_tridiagonal
from scipy.linalg.lapack import (dormqr, dpocon, dposv, dpotrf, dptsv,
                                 dsytrd)

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points
from rkhs_lit.kernels import Gaussian, Kernel
from rkhs_lit.moore_aronszajn import Features, RKHSFunction
from rkhs_lit.representer import Shifted

# %% [2] Fine print
_EPS = float(np.finfo(float).eps)


def ridge_factor(K, lam: float, name: str = "lam",
                 kernel: str = "kernel") -> tuple[np.ndarray, bool]:
    """The Cholesky factor of K + λI for ``scipy.linalg.cho_solve``, where
    λ is visible beside rounding (:prf:ref:`prop-ridge-rounding`). Of the
    Gram matrix K the lower half is read; errors use these names."""
    K = as_points(K, "K")
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be square, got shape {K.shape}")
    with np.errstate(over="ignore"):
        bound = float(np.abs(K).sum(axis=1).max())    # of all eigenvalues
    lam = check.number(
        lam, name, f"at least 2**-52 times {bound:.6g}, positive and "
        f"finite, or it is lost in rounding errors of {kernel} (the limit "
        "0 is interpolate)", max(_EPS * bound, check.TINY),
        check.MAX - bound)
    flaw = 1e-8 * bound
    for shift in [flaw, lam] if lam > flaw > 0 else [lam]:
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
    mu = dpocon(L, bound + lam, uplo="L")[0] * (bound + lam)
    if mu <= 64 * _EPS * bound:
        check.certain(mu, 64 * _EPS * bound, "the least eigenvalue of the "
                      f"Gram matrix plus {name} I")
    return L, True


def _check_visible(least, K, lam, name="lams", kernel="kernel"):
    """Refuse a λ that is lost beside K, and an eigenvalue below zero."""
    with np.errstate(over="ignore"):
        bound = check.finite(np.abs(K).sum(axis=1).max(), kernel)
    if lam < _EPS * bound:
        raise ValueError(f"{name} must be at least 2**-52 times {bound:.6g}"
                         f", or it is lost in rounding errors of {kernel}")
    if least < -1e-8 * bound:
        raise ValueError(f"{kernel} must be positive definite, but its "
                         f"Gram matrix K has the eigenvalue {least:.6g}")
    check.certain(max(least, 0.0) + lam, 64 * _EPS * bound, "the least "
                  f"eigenvalue of the Gram matrix plus {name} I")


def ridge_spectrum(K, lam: float, name: str = "lam",
                   kernel: str = "kernel") -> tuple[np.ndarray, ...]:
    """d and U with K = U diag(d) U', for penalties of at least λ, which
    is visible beside rounding (:prf:ref:`prop-ridge-rounding`); as in
    `ridge_factor`, but d_j > -1e-8 ‖K‖ counts as zero for any λ."""
    K, lam = check.real_array(K, "K", 2), check.positive(lam, name)
    if len(K) != len(K.T):
        raise ValueError(f"K must be square, got shape {K.shape}")
    d, U = np.linalg.eigh(K)
    _check_visible(d[0], K, lam, name, kernel)
    return np.maximum(d, 0.0), U

# %% [3] Fine print
def _indices(index, n, name):
    empty = np.array_equal(index, [])
    index = np.empty(0) if empty else check.vector(index, name)
    if (index != np.clip(np.rint(index), 0, n - 1)).any():
        raise ValueError(f"{name} must be lists of whole numbers from 0 to "
                         f"{n - 1}, the indices of points")
    return index.astype(int)


def _partition(folds, n, held=(), least=1):
    folds = tuple(_indices(F, n, "folds")
                  for F in check.as_sequence(folds, "folds"))
    used = np.sort(np.concatenate([*folds, held]))
    if len(folds) < least or not (np.array_equal(used, np.arange(n))
                                  and all(map(len, folds))):
        raise ValueError(f"folds must be at least {least}, none empty, and "
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
    if drawn:
        folds = np.array_split(rest, min(check.whole(folds, "folds", 2),
                                         n + 1))
    return _partition(folds, n, held, 2), held

# %% [4] The fit on numbers, words and bumps
def ridge(kernel: Kernel, X, y, lam: float, *, offset: bool = False,
          ) -> RKHSFunction | Shifted | tuple:
    """Kernel ridge regression, the minimiser of Σ (y_i - f(x_i))² + λ ‖f‖²;
    it has the weights (K + λI)⁻¹ y (:prf:ref:`thm-ridge-rkhs`). For y with
    m columns it is a tuple of m fits, and with ``offset=True`` a fit is a
    sum f + b, where the number b is free (:prf:ref:`prop-ridge-offset`).

    The penalty λ > 0 is not divided or multiplied by n, as scikit-learn's
    ``KernelRidge(alpha=lam)``. Beside the rounding errors of K it is
    refused, or gives a `PrecisionWarning` (:prf:ref:`prop-ridge-rounding`);
    `interpolate` is the limit 0. The points may be of any kind.

    >>> ridge(Gaussian(1.0), [1.0], [3.0], 0.5)([1.0])   # 3 k / (k + λ)
    array([2.])
    """
    Phi, Y = Features(kernel, X), as_points(y, "y")
    if len(Y) != Phi.n:
        raise ValueError("y must be one number, or one row, for each of "
                         f"{Phi.n} points, got shape {np.shape(y)}")
    factor = ridge_factor(Phi.gram(), lam)
    alpha = cho_solve(factor, Y)                  # C⁻¹ Y, C = K + λI
    if offset is not False and check.flag(offset, "offset"):
        u = cho_solve(factor, np.ones((Phi.n, 1)))        # C⁻¹ 1
        b = alpha.sum(axis=0) / u.sum()
        alpha -= u * b                            # C⁻¹ (Y - 1b')
    if not np.isfinite(alpha).all():
        raise ValueError("y gave weights that are not finite")
    fits = tuple(RKHSFunction(kernel, Phi, a) for a in alpha.T)
    if offset:
        fits = tuple(map(Shifted, fits, b))
    return fits if np.ndim(y) == 2 else fits[0]

# %% [5] A linear smoother
def smoother_matrix(kernel: Kernel, X, lam: float) -> np.ndarray:
    """The symmetric (n, n) matrix S = K (K + λI)⁻¹ that turns data into
    fitted values: ``S @ y`` are those of ``ridge(kernel, X, y, lam)`` at X
    (:prf:ref:`prop-ridge-smoother`).

    >>> smoother_matrix(Gaussian(1.0), [0.0, 100.0], 0.25).round(6)
    array([[0.8, 0. ],
           [0. , 0.8]])
    """
    Phi, lam = Features(kernel, X), check.positive(lam, "lam")
    d, U = ridge_spectrum(Phi.gram(), lam)         # K = U diag(d) U'
    return (U * (d / (d + lam))) @ U.T

# %% [6] How many parameters does it have?
def degrees_of_freedom(kernel: Kernel, X, lam: float) -> float:
    """The trace Σ d_j / (d_j + λ) of the smoother matrix of `ridge`,
    between 0 and n (:prf:ref:`def-ridge-df`).

    >>> degrees_of_freedom(Gaussian(1.0), [0.0, 100.0], 0.25)
    1.6
    """
    Phi, lam = Features(kernel, X), check.positive(lam, "lam")
    d, _ = ridge_spectrum(Phi.gram(), lam)         # K = U diag(d) U'
    return float(np.sum(d / (d + lam)))            # tr K(K + λI)⁻¹

# %% [7] Every $\lambda$ from one eigendecomposition
@dataclass(frozen=True, eq=False, repr=False)
class RidgePath(check.Record):
    """Ridge fits for many penalties (:prf:ref:`prop-ridge-smoother`), made
    by `ridge_path`. Row j of an array belongs to ``lams[j]``: `weights` are
    (K + λI)⁻¹ y, `residuals` the y_i - f(x_i), `leave_one_out` these for an
    f fitted without point i, `degrees_of_freedom` the traces of S_λ, and
    `norms` those of the fits in the RKHS."""

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
        return Features(self.kernel, T, "T").dot(self.weights.T, Phi).T


def ridge_path(kernel: Kernel, X, y, lams) -> RidgePath:
    """The ridge fits to one (n,) array y for many penalties, in any order,
    from one eigendecomposition (:prf:ref:`prop-ridge-smoother`,
    :prf:ref:`cor-ridge-loo`); each takes O(n²) operations more.

    >>> path = ridge_path(Gaussian(1.0), [0.0, 100.0], [1.0, 2.0], [1., 3.])
    >>> path.residuals.round(6)
    array([[0.5 , 1.  ],
           [0.75, 1.5 ]])
    """
    Phi, lams = Features(kernel, X), check.positives(lams, "lams")
    y = check.vector(y, "y", Phi.n)
    d, U = ridge_spectrum(Phi.gram(), lams.min(), "lams")
    lam = lams[:, None]
    shrink = lam / (d + lam)                      # the eigenvalues of R_λ
    with np.errstate(over="ignore", invalid="ignore"):
        z = U.T @ y
        r = (shrink * z) @ U.T                       # residuals R y
        alpha, left_out = r / lam, r / (shrink @ (U**2).T)   # by R_ii
        norms = np.hypot.reduce(np.sqrt(d) * (z / (d + lam)), axis=1,
                                initial=0.0)
    for values in (alpha, left_out, norms):
        check.finite(values, "y")
    return RidgePath(kernel, Phi.points, lams, alpha, r, left_out,
                     np.sum(d / (d + lam), axis=1), norms)

# %% [8] Leaving points out without fitting again
def _left_out(y, U, c, folds, name="lams"):
    """The errors e_F = R_FF⁻¹ r_F of all folds, where R = U diag(c) U'."""
    r, W, e = U @ (c * (U.T @ y)), U * np.sqrt(c), np.empty(len(y))
    if len(folds) == len(y):                 # numbers R_ii
        return r / np.sum(W**2, axis=1)
    for F in folds:
        _, e[F], failed = dposv(W[F] @ W[F].T, r[F])
        if failed:
            raise ValueError(f"{name} must be larger: 1 - S is singular up "
                             "to rounding")
    return e


def leave_fold_out(kernel: Kernel, X, y, lam: float, folds) -> np.ndarray:
    """Errors y_i - f(x_i) at the points of each fold, of the ridge fit f
    to all other points, without fitting again (:prf:ref:`thm-ridge-fold`);
    folds are lists of indices that have every point once."""
    Phi, lam = Features(kernel, X), check.positive(lam, "lam")
    y, folds = check.vector(y, "y", Phi.n), _partition(folds, Phi.n)
    d, U = ridge_spectrum(Phi.gram(), lam)         # K = U diag(d) U'
    with np.errstate(over="ignore", invalid="ignore"):
        e = _left_out(y, U, lam / (d + lam), folds, "lam")
    return check.finite(e, "y")


def leave_one_out(kernel: Kernel, X, y, lam: float) -> np.ndarray:
    """Errors y_i - f(x_i), with the ridge fit f to all points but i, that
    is r_i / (1 - S_ii) (:prf:ref:`cor-ridge-loo`).

    Two points that the kernel cannot compare predict 0 for each other:

    >>> leave_one_out(Gaussian(1.0), [0.0, 100.0], [3.0, 5.0], 0.1)
    array([3., 5.])
    """
    Phi, lam = Features(kernel, X), check.positive(lam, "lam")
    y = check.vector(y, "y", Phi.n)
    d, U = ridge_spectrum(Phi.gram(), lam)         # K = U diag(d) U'
    c = lam / (d + lam)                      # the eigenvalues of R_λ
    with np.errstate(over="ignore", invalid="ignore"):
        return check.finite(U @ (c * (U.T @ y)) / (U**2 @ c), "y")

# %% [9] Choosing $\lambda$ and the width
def _all_weights(K, y, lams):
    """The weights (K + λI)⁻¹ y, a column for each λ, by K = QTQ'."""
    A, d, e, tau, _ = dsytrd(K, lower=1, lwork=64 * len(K))
    unit = np.abs(d).max() or 1.0            # T has the eigenvalues of K
    least = unit * eigvalsh_tridiagonal(d / unit, e / unit, select="i",
                                        select_range=(0, 0))[0]
    _check_visible(least, K, lams.min())

    def turned(B, how):                      # Q'B ("T") or QB ("N")
        B = np.array(B, order="F")           # its first row stays
        B[1:] = dormqr("L", how, A[1:, :-1], tau, B[1:],
                       64 * B.shape[1] + 4160)[0]
        return B

    b, W = turned(y[:, None], "T"), np.empty((len(y), len(lams)))
    for j, lam in enumerate(lams):           # (T + λI) w = Q'y
        _, _, W[:, j:j + 1], failed = dptsv(d + lam, e, b)
        if failed:
            raise ValueError("lams must be larger: the Gram matrix plus "
                             f"{lam:.3g} I is singular up to rounding")
    return turned(W, "N")


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
    return np.array([np.sum(_left_out(y, U, lam / (d + lam), folds) ** 2)
                     for lam in lams])

# %% [10] Choosing $\lambda$ and the width
@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(check.Record):
    """What `cross_validate` found (:prf:ref:`alg-ridge-cv`): the chosen
    `kernel` and `lam`, and the `function` fitted with both to the points
    `train`, with its mean squared `test_error` at the points `test`, if
    there are any. ``errors[q, j]``, for ``kernels[q]`` and ``lams[j]``, is
    the mean squared error at training points left out; for folds of one
    size, the mean over `folds` of scikit-learn's ``GridSearchCV``."""

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


def cross_validate(kernels: Kernel | Sequence[Kernel], X, y, lams, *,
                   folds=5, test=0, rng=None) -> CrossValidation:
    """Choose a kernel and a penalty from lists by cross-validation, and
    measure the fit on a test set (:prf:ref:`alg-ridge-cv`).

    `folds` is the number m of folds, drawn at random (as many as training
    points: leave-one-out), or a list of lists of indices, to keep points
    together. `test` is how many points to hold out, or a list of them.

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
    y, lams = check.vector(y, "y", Phi.n), check.positives(lams, "lams")
    folds, test = split_folds(Phi.n, folds, test, rng)

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

# %% [11] At work: who will get worse?
@dataclass(frozen=True, eq=False)
class Standardisation(check.Record):
    """The map t -> (t - means) / scales, made by `standardise`; `columns`
    are the names in a data frame (:prf:ref:`prop-standardise`)."""

    means: np.ndarray
    scales: np.ndarray
    columns: tuple | None = None

    def __call__(self, T) -> np.ndarray:
        """Points T, old or new, in units of the data."""
        check.same_columns(self, T)
        Z = as_points(T, "T")
        if len(Z.T) != len(self.means):
            raise ValueError(f"T must have {len(self.means)} columns, as "
                             f"the data had, got shape {np.shape(T)}")
        with np.errstate(over="ignore"):
            Z = check.finite((Z - self.means) / self.scales, "T")
        return Z.reshape(np.shape(T))


def standardise(X) -> Standardisation:
    """The map that gives each column of X the mean 0 and the standard
    deviation 1, a constant column its old scale, and treats other points
    alike (:prf:ref:`prop-standardise`).

    >>> s = standardise([[1.0, 7.0], [3.0, 7.0]])
    >>> s([[5.0, 8.0]])
    array([[3., 1.]])
    """
    Z, columns = as_points(X), getattr(X, "columns", None)
    constant = Z.max(axis=0) == Z.min(axis=0)
    with np.errstate(over="ignore"):
        means = check.finite(np.where(constant, Z[0], Z.mean(axis=0)), "X")
        size = np.abs(Z - means).max(axis=0) + constant
        spread = np.sqrt(np.mean(((Z - means) / size) ** 2, axis=0))
        scales = check.finite(size * (spread + constant), "X")
    return Standardisation(means, scales,
                           None if columns is None else (*columns,))
