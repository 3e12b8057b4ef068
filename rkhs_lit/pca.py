"""Kernel PCA: principal components that are functions

The exported cells of the chapter ``book/pca.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: ccd5da442780522b

# %% [1] Kernel PCA: principal components that are functions
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.linalg.blas import dsymv
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points, as_sequence
from rkhs_lit.bochner import _take, pivoted_cholesky
from rkhs_lit.kernels import (TILE, Gaussian, Kernel, as_kernel,
                              gram_dot, squared_distances)
from rkhs_lit.moore_aronszajn import (Features, RKHSFunction,
                                      as_function)


# %% [2] Centring features that nobody sees
def centre(K) -> np.ndarray:
    """The Gram matrix H K H of the centred features
    (:prf:ref:`lem-centre`).

    Parameters
    ----------
    K : (n, n) array
        Gram matrix of n points.

    Returns
    -------
    (n, n) array
        Inner products of the features after their mean is subtracted.
        Rows and columns sum to zero.

    Examples
    --------
    >>> centre([[1.0, 0.0], [0.0, 1.0]])
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    G = as_points(K, "K")
    if np.shape(K) != (len(G), len(G)):
        raise ValueError(f"K must be square, got shape {np.shape(K)}")
    with np.errstate(over="ignore", invalid="ignore"):
        C = G - G.mean(axis=1, keepdims=True)
        C -= C.mean(axis=0)
    if not np.isfinite(C).all():
        raise ValueError("K must be smaller: the sums of its rows overflow")
    return C


# %% [3] The function
@dataclass(frozen=True, eq=False, repr=False)
class _Components:
    kernel: Kernel
    points: Sequence
    weights: np.ndarray
    mean_weights: np.ndarray
    offsets: np.ndarray
    eigenvalues: np.ndarray
    variance: float

    def __post_init__(self):
        mean = RKHSFunction(self.kernel, self.points, self.mean_weights)
        object.__setattr__(self, "points", mean.points)
        object.__setattr__(
            self, "variance", check.nonnegative(self.variance, "variance"))
        m, r = len(mean.points), np.size(self.eigenvalues)
        for name, shape in (("weights", (m, r)), ("mean_weights", (m,)),
                            ("offsets", (r,)), ("eigenvalues", (r,))):
            given = getattr(self, name)
            if np.shape(given) != shape:
                raise ValueError(f"{name} must have shape {shape}, got "
                                 f"{np.shape(given)}")
            values = as_points(given, name).reshape(shape).copy()
            values.setflags(write=False)
            object.__setattr__(self, name, values)

    def __repr__(self):
        return (f"PrincipalComponents({self.kernel}, "
                f"r={len(self.eigenvalues)})")

    def first(self, r: int) -> "PrincipalComponents":
        """The record of the first r components only
        (:prf:ref:`thm-pca`)."""
        if (r := check.whole(r, "r", 1)) > len(self.eigenvalues):
            raise ValueError("r must be at most "
                             f"{len(self.eigenvalues)}, got {r}")
        return replace(self, weights=self.weights[:, :r],
                       offsets=self.offsets[:r],
                       eigenvalues=self.eigenvalues[:r])

    def _function(self, w):
        return RKHSFunction(self.kernel, self.points, w)

    def _projections(self, T):
        return self.mean_weights + self.transform(T) @ self.weights.T


# %% [4] The function
class PrincipalComponents(_Components):
    """Principal components f_1, ..., f_r of features, as expansions in
    the same m points (:prf:ref:`thm-kpca`). Made by `kernel_pca`.

    Attributes
    ----------
    kernel : Kernel
    points : sequence of m points
        All the data, or landmarks.
    weights : (m, r) array
        In column l the weights of f_l.
    mean_weights : (m,) array
        Those of the features' mean; zeros if it was not subtracted.
    offsets : (r,) array
        The inner products of that mean with the components.
    eigenvalues : (r,) array
        Of the covariance operator, falling.
    variance : float
        The sum of all its eigenvalues, of which these are the largest.
        With landmarks, both are those of the projected features.
    """

    @property
    def components(self) -> tuple[RKHSFunction, ...]:
        """The functions f_1, ..., f_r: orthogonal, of norm one."""
        return tuple(map(self._function, self.weights.T))

    @property
    def mean(self) -> RKHSFunction:
        """The mean that was subtracted, as a function."""
        return self._function(self.mean_weights)

    def transform(self, T) -> np.ndarray:
        """The scores of the points T, one row for each of them
        (:prf:ref:`prop-kpca-score`)."""
        Phi, Psi = Features(self.kernel, self.points), Features(self.kernel,
                                                                T, "T")
        return Psi.dot(self.weights, Phi) - self.offsets

    def reconstruct(self, T) -> tuple[RKHSFunction, ...]:
        """For each point of T the function nearest to its feature among
        the mean plus combinations of the components
        (:prf:ref:`prop-kpca-score`)."""
        return tuple(map(self._function, self._projections(T)))


# %% [5] The function
def _count(lam, n, size, r):
    """How many components to return: r, or as many as there are falling
    eigenvalues above the rounding errors of n × n matrices of this size."""
    seen = int(np.sum(lam > 10 * n * np.finfo(float).eps * size))
    if seen == 0:
        raise ValueError("X must have features that vary by more than "
                         "rounding errors")
    if r is not None and r > seen:
        raise ValueError(f"n_components must be at most {seen}, in so many "
                         "directions do the features of X vary by more "
                         f"than rounding errors, got {r}")
    return seen if r is None else r


# %% [6] The function
def _signs(scores):
    """In each column, the sign of the first entry of largest size."""
    size = np.abs(scores)
    top = (size >= (1 - 1e-6) * size.max(axis=0)).argmax(axis=0)
    return np.sign(scores[top, np.arange(scores.shape[1])])


def _dense(K, r, centred):
    """Eigenvalues and eigenvectors of the centred K, the means of the
    rows of K, and the trace."""
    g = K.mean(axis=1)
    C = centre(K) if centred else K
    lam, alpha = eigh(C)
    size = abs(lam[-1]) + abs(g.sum())
    if lam[0] < -1e-8 * size:
        raise ValueError("kernel must be positive definite, but its Gram "
                         f"matrix has the eigenvalue {lam[0]:.6g}")
    lam, alpha = lam[::-1], alpha[:, ::-1]
    r = _count(lam, len(K), size, r)
    return lam[:r], alpha[:, :r], g, np.trace(C)


# %% [7] The function
def _from_gram(kernel, X, centred, lam, alpha, g, total):
    """The record, from eigenvalues lam and eigenvectors alpha of the Gram
    matrix; g are the values of the mean at X."""
    n = len(X)
    W = alpha * _signs(alpha) / np.sqrt(lam)
    mean = np.full(n, centred / n)
    return PrincipalComponents(kernel, X, W, mean, centred * (g @ W),
                               lam / n, float(total / n))


# %% [8] The function
def kernel_pca(kernel: Kernel, X, n_components: int | None = None, *,
               centred: bool = True, solver: str = "auto",
               rank: int | None = None) -> PrincipalComponents:
    """Principal components of the features k(x_i, ·)
    (:prf:ref:`thm-kpca`).

    Parameters
    ----------
    kernel : Kernel
        Positive definite, on any kind of points.
    X : sequence of n points
    n_components : int, optional
        More than there are is an error; by default all of them.
    centred : bool
        Whether the mean of the features is subtracted.
    solver : "auto", "dense" or "iterative"
        All eigenvalues of the Gram matrix, or the leading ones only;
        "auto" takes the latter if n > 500 and n_components < n / 20.
    rank : int, optional
        Use this many landmarks instead of a Gram matrix: O(n rank)
        memory (:prf:ref:`thm-kpca-low-rank`).

    Returns
    -------
    PrincipalComponents
        With ``.eigenvalues`` of the covariance operator (scikit-learn's
        are n times larger), ``.components`` and ``.transform(T)``. The
        score on X that is largest in absolute value is positive.

    Examples
    --------
    >>> kernel_pca(Gaussian(1.0), [0.0, 9.0], 1).eigenvalues.round(6)
    array([0.5])
    """
    as_kernel(kernel, definite=True)
    X, r = as_sequence(X), n_components
    r = None if r is None else check.whole(r, "n_components", 1)
    road = _road(solver, rank, len(X), r, centred)
    if road == "low-rank":
        return _low_rank(kernel, X, r, centred,
                         check.whole(rank, "rank", 1))
    parts = (_dense(kernel(X), r, centred) if road == "dense"
             else _iterative(kernel, X, r, centred))
    return _from_gram(kernel, X, centred, *parts)


# %% [9] The function
def _road(solver, rank, n, r, centred):
    if solver not in ("auto", "dense", "iterative"):
        raise ValueError("solver must be 'auto', 'dense' or 'iterative', "
                         f"got {solver!r}")
    if not isinstance(centred, (bool, np.bool_)):
        raise ValueError(f"centred must be True or False, got {centred!r}")
    if r is not None and r > n:
        raise ValueError(f"n_components must be at most {n}, the number of "
                         f"points, got {r}")
    if rank is not None:
        if solver != "auto":
            raise ValueError("solver must be 'auto' where a rank is given, "
                             f"got {solver!r}")
        return "low-rank"
    if solver == "iterative" and (r is None or r >= n):
        raise ValueError("n_components must be less than the number of "
                         f"points, {n}, for the iterative solver, got {r}")
    if solver == "auto":
        few = r is not None and n > 500 and 20 * r < n
        return "iterative" if few else "dense"
    return solver


# %% [10] The leading components by products
def _krylov(action, n, r, removed):
    """Eigenvalues and eigenvectors of a symmetric matrix, meant to be the
    r largest. Each value is within its small residual of an eigenvalue
    (:prf:ref:`lem-kpca-residual`); that none is missed is not proved.
    Centring has removed a part of this size."""
    A = LinearOperator((n, n), matvec=lambda v: action(v.ravel()),
                       dtype=float)
    start = np.random.default_rng(0).normal(size=n)
    try:
        lam, alpha = eigsh(A, k=r, which="LA", v0=start)
    except ArpackError as error:
        raise ValueError("solver='iterative' did not converge, take "
                         f"'dense' or a rank: {error}") from None
    lam, alpha = lam[::-1], alpha[:, ::-1]
    _count(lam, n, lam[0] + removed, r)
    residuals = np.linalg.norm(action(alpha) - lam * alpha, axis=0)
    rounding = 10 * n * np.finfo(float).eps * removed
    if not residuals.max() <= 1e-9 * lam[0] + rounding:
        raise ValueError("solver='iterative' gave residuals that are too "
                         "large, take 'dense' or a rank")
    return lam, alpha


# %% [11] The leading components by products
_STORED = 10_000


def _iterative(kernel, X, r, centred):
    """As _dense, from products of the Gram matrix with vectors."""
    n, d = len(X), kernel.diag(X)
    if d.min() < 0 or d.max() < np.finfo(float).tiny:
        return _dense(kernel(X), r, centred)     # says what is wrong
    size = d.max()
    K = np.ascontiguousarray(kernel(X)) if n <= _STORED else None

    def product(v):
        if K is None:
            return gram_dot(kernel, X, None, v / size)
        if v.ndim == 1:                  # reads one triangle only
            return dsymv(1 / size, K.T, v)
        return K @ (v / size)

    def centred_product(v):
        Kv = product(v - v.mean(axis=0))
        return Kv - Kv.mean(axis=0)

    action = centred_product if centred else product
    g = product(np.full(n, 1 / n))
    lam, alpha = _krylov(action, n, r, g.sum())
    trace = d.sum() / size
    total = trace - centred * g.sum()
    rounding = 10 * n * np.finfo(float).eps * trace
    if lam.sum() > (1 + 1e-8) * total + rounding:
        raise ValueError("kernel must be positive definite, but the "
                         "leading eigenvalues exceed the trace")
    return size * lam, alpha, size * g, size * total


# %% [12] The components in a smaller space
def _low_rank(kernel, X, r, centred, rank):
    if r is not None and r > rank:
        raise ValueError(f"rank must be at least n_components = {r}, got "
                         f"{rank}")
    F, P = pivoted_cholesky(kernel, X, tol=0, max_rank=rank,
                            return_pivots=True)
    n, m = len(F), F.mean(axis=0) * centred
    scores = F - m
    lam, U = np.linalg.eigh(scores.T @ scores)
    lam, U = lam[::-1], U[:, ::-1]
    total = lam.sum()
    r = _count(lam, n, lam[:1].sum() + n * m @ m, r)
    lam, U = lam[:r], U[:, :r]
    U = U * _signs(scores @ U)
    L = F[P]
    W, mean = (solve_triangular(L, b, lower=True, trans="T")
               for b in (U, m))
    return PrincipalComponents(kernel, _take(X, P), W, mean, m @ U, lam / n,
                               float(total / n))


# %% [13] The way back: pre-images
def _slope(X, W, Z):
    """In units of σ, for each row w of W and z of Z: the value f(z), its
    gradient, the part of f(z) with positive weights, and the rounding
    error of the gradient."""
    P = W * np.exp(-squared_distances(Z, X) / 2)
    f = P.sum(axis=1)
    error = 16 * np.finfo(float).eps * (
        np.abs(P) @ np.abs(X).max(axis=1) + abs(f) * np.abs(Z).max(axis=1))
    return f, P @ X - f[:, None] * Z, np.maximum(P, 0).sum(axis=1), error


# %% [14] The way back: pre-images
def _uphill(X, W, Z, tol, max_steps, where):
    """From each row of Z up to a stationary point of its function."""
    Z, rows = Z.copy(), np.arange(len(Z))
    caution = 2 * np.exp(-1.5) * np.maximum(-W, 0).sum(axis=1)
    now = _slope(X, W, Z)
    D = now[0]
    for left in range(max_steps, -1, -1):
        f, slope, positive, error = now
        going = np.abs(slope).max(axis=1) > np.maximum(tol * f, error)
        if not going.any():
            return Z
        if left == 0:
            raise ValueError(f"max_steps must be larger: after {max_steps} "
                             f"steps {going.sum()} of {len(Z)} points "
                             f"still move{where(rows[going][0])}")
        rows, f, slope, positive, error, D = (
            a[going] for a in (rows, f, slope, positive, error, D))
        step, safe = slope / D[:, None], positive + caution[rows]
        new = _slope(X, W[rows], Z[rows] + step)
        gain = np.sum(slope * step, axis=1) / 4
        good = (new[0] >= f + gain - _NOISE) | (D >= safe)
        Z[rows[good]] += step[good]
        D = np.where(good, _bend(step, slope, new, caution[rows]),
                     np.minimum(4 * D, safe))
        now = [np.where(good if a.ndim == 1 else good[:, None], b, a)
               for a, b in zip((f, slope, positive, error), new)]


_NOISE = 16 * np.finfo(float).eps


def _bend(step, slope, new, caution):
    """The next denominator: the curvature along the last step."""
    f, slope_new, positive, _ = new
    bend = (np.sum(step * (slope - slope_new), axis=1)
            / np.sum(step**2, axis=1))
    bend = np.where(bend > 0, np.maximum(bend, f / 100), f)
    return np.minimum(bend, positive + caution)


# %% [15] The way back: pre-images
def _higher(X, w, z, tol):
    """From a stationary point z of a function, a step in the direction
    in which it bends upwards most, or None if it does so in none."""
    P = w * np.exp(-squared_distances(z[None], X)[0] / 2)
    f, d, near = P.sum(), len(z), P != 0
    A = X[near] - z
    (mu,), e = eigh((A.T * P[near]) @ A - f * np.eye(d),
                    subset_by_index=[d - 1, d - 1])
    t = 1.0
    while mu > tol * f and mu * t**2 / 4 > _NOISE:
        ends = z + t * np.outer([1, -1], e * _signs(e))
        values = _slope(X, w, ends)[0]
        if values.max() >= f + mu * t**2 / 4:
            return ends[values.argmax()]
        t /= 2
    return None


# %% [16] The way back: pre-images
def _modes(kernel, X, W, Z, tol, max_steps, wanted, where=lambda j: ""):
    """Pre-images of the functions with weights W[j] at the points X, from
    the starts Z[j]. An error says what was wanted of the functions, and
    where this failed."""
    sigma = kernel.sigma
    with np.errstate(over="ignore"):
        X, Z = X / sigma, Z / sigma
    if not (np.isfinite(X).all() and np.isfinite(Z).all()):
        raise ValueError("start (or T) and the points must be smaller: "
                         "divided by the width of the kernel they overflow")
    peak = np.abs(W).max(axis=1, keepdims=True)
    W = W / np.where(peak > 0, peak, 1.0)
    W = W / np.maximum(np.abs(W).sum(axis=1, keepdims=True), 1.0)
    f = _slope(X, W, Z)[0]
    lost = np.flatnonzero(f < 1e-10)
    if lost.size:
        at_points = gram_dot(Gaussian(1.0), X, None, W[lost].T)
        best = at_points.max(axis=0)
        none = lost[np.maximum(best, f[lost]) <= 1e-14]
        if none.size:
            raise ValueError(f"{wanted}, or no feature is near it"
                             f"{where(none[0])}")
        Z[lost] = np.where((best > f[lost])[:, None],
                           X[at_points.argmax(axis=0)], Z[lost])
    rows = np.arange(len(Z))
    while rows.size:
        Z[rows] = _uphill(X, W[rows], Z[rows], tol, max_steps,
                          lambda j: where(rows[j]))
        left = {j: z for j in rows
                if (z := _higher(X, W[j], Z[j], tol)) is not None}
        rows = np.array([*left], dtype=int)
        Z[rows] = [*left.values()] or Z[rows]
    return sigma * Z


# %% [17] The way back: pre-images
def preimage(f: RKHSFunction, start=None, *, tol: float = 1e-6,
             max_steps: int = 10_000) -> np.ndarray:
    """A point z whose feature k(z, ·) is near f, by the safeguarded
    fixed-point iteration (:prf:ref:`alg-preimage`).

    Parameters
    ----------
    f : RKHSFunction
        With a Gaussian kernel and weights of any signs.
    start : (d,) array, optional
        Where to begin; a number, if the points are on the line. If f is
        next to zero there, and without a start, the point of f at which
        f is largest.
    tol : float
        Stop when no coordinate of the fixed-point step exceeds tol σ.
    max_steps : int
        A ValueError says if these were not enough.

    Returns
    -------
    (d,) array
        A local maximum z of f with f(z) >= f(start): besides, no
        eigenvalue of the second derivative exceeds tol f(z) / σ².

    Examples
    --------
    >>> f = RKHSFunction(Gaussian(1.0), [0.0, 0.5, 9.0], [1.0, 1.0, -1.0])
    >>> preimage(f, 2.0).round(4)
    array([0.25])
    """
    as_function(f)
    tol, max_steps = _patience(f.kernel, tol, max_steps, "f")
    X, w = as_points(f.points, "f"), f.weights[None]
    if start is None:
        Z = X[np.argmax(f(X))][None]
    else:
        Z = as_points([start] if np.isscalar(start) else start, "start").T
        if np.ndim(start) > 1 or Z.shape[1] != X.shape[1]:
            raise ValueError(f"start must be one point of {X.shape[1]} "
                             f"numbers, got shape {np.shape(start)}")
    return _modes(f.kernel, X, w, Z, tol, max_steps,
                  "f must be positive at start or at one of its points")[0]


# %% [18] The way back: pre-images
def denoise(pca: PrincipalComponents, T, *, tol: float = 1e-6,
            max_steps: int = 10_000) -> np.ndarray:
    """Pre-images of the projections of features on principal components
    (:prf:ref:`alg-preimage`).

    Parameters
    ----------
    pca : PrincipalComponents
        Of a Gaussian kernel.
    T : (m, d) array
        Noisy points. Each is also the start of its pre-image.
    tol, max_steps
        As for `preimage`.

    Returns
    -------
    (m, d) array
        A ValueError names a row of T whose projection has no pre-image,
        as that of a point far from the data may have none.
    """
    if not isinstance(pca, PrincipalComponents):
        raise ValueError("pca must be PrincipalComponents, got "
                         f"{type(pca).__name__}")
    tol, max_steps = _patience(pca.kernel, tol, max_steps, "pca")
    T, X = as_points(T, "T"), as_points(pca.points, "pca")
    wanted = ("T must have projections that are positive at T or at one "
              "of the points of pca")
    return np.vstack([
        _modes(pca.kernel, X, pca._projections(T[a:a + TILE]),
               T[a:a + TILE], tol, max_steps, wanted,
               lambda j: f": row {a + j} of T")
        for a in range(0, len(T), TILE)])


# %% [19] The way back: pre-images
def _patience(kernel, tol, max_steps, name):
    if not isinstance(kernel, Gaussian):
        raise ValueError(f"{name} must have a Gaussian kernel, got "
                         f"{kernel}")
    tol = check.tolerance(tol)
    return tol, check.whole(max_steps, "max_steps", 1)
