"""Kernel PCA: principal components that are functions"""
# The exported cells of book/pca.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 9d41fbaa9b772cbb

# %% [1] Kernel PCA: principal components that are functions
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import blas, eigh, solve_triangular
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

import rkhs_lit.conventions as check
from rkhs_lit.kernels import TILE, Gaussian, Kernel
from rkhs_lit.low_rank import pivoted_cholesky
from rkhs_lit.moore_aronszajn import Features, RKHSFunction, as_function

# %% [2] Centring features that nobody sees
def centre(K) -> np.ndarray:
    """The Gram matrix H K H of the centred features, for the (n, n) Gram
    matrix K of n points (:prf:ref:`lem-centre`).

    >>> centre([[1.0, 0.0], [0.0, 1.0]])
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    G = check.real_array(K, "K", 2)
    if len(G) != len(G.T):
        raise ValueError(f"K must be square, got shape {G.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        C = G - G.mean(axis=1, keepdims=True)
        C -= C.mean(axis=0)
    return check.finite(C, "a sum over K")

# %% [3] The record
@dataclass(frozen=True, eq=False, repr=False)
class PrincipalComponents(check.Record):
    """Principal components f_1, ..., f_r of features, as expansions in the
    same points; made by `kernel_pca` (:prf:ref:`thm-kpca`)."""

    kernel: Kernel
    points: Sequence            #: the data, or landmarks
    weights: np.ndarray         #: those of f_l in column l
    mean_weights: np.ndarray    #: of the mean that was subtracted, or zeros
    offsets: np.ndarray         #: its inner products with f_1, ..., f_r
    eigenvalues: np.ndarray     #: λ_1 ≥ ... ≥ λ_r
    variance: float             #: λ_1 + λ_2 + ..., also beyond r

    def __post_init__(self):
        Phi = Features(self.kernel, self.points, "points")
        arrays = {name: check.frozen(value) for name, value in
                  vars(self).items() if isinstance(value, np.ndarray)}
        vars(self).update(arrays, points=Phi.points, features=Phi)

    def __repr__(self):
        return f"PrincipalComponents({self.kernel}, r={len(self.offsets)})"

    @property
    def components(self) -> tuple[RKHSFunction, ...]:
        """The orthogonal functions f_1, ..., f_r of norm one."""
        return tuple(self.features @ w for w in self.weights.T)

    @property
    def mean(self) -> RKHSFunction:
        """The mean that was subtracted, as a function."""
        return self.features @ self.mean_weights

    def transform(self, T) -> np.ndarray:
        """The scores ⟨f_l, k(t, ·) - mean⟩ of the points T, in rows
        (:prf:ref:`prop-kpca-score`)."""
        Psi = Features(self.kernel, T, "T")
        return Psi.dot(self.weights, self.features) - self.offsets

    def reconstruct(self, T) -> tuple[RKHSFunction, ...]:
        """For each point of T the function nearest to its feature among
        the mean plus combinations of the components
        (:prf:ref:`prop-kpca-score`)."""
        W = self.mean_weights + self.transform(T) @ self.weights.T
        return tuple(self.features @ w for w in W)

    def first(self, r: int) -> "PrincipalComponents":
        """The first r components only (:prf:ref:`thm-pca`)."""
        r, most = check.whole(r, "r", 1), len(self.eigenvalues)
        if r > most:
            raise ValueError(f"r must be at most {most}, got {r}")
        return replace(self, weights=self.weights[:, :r],
                       offsets=self.offsets[:r],
                       eigenvalues=self.eigenvalues[:r])

# %% [4] The record
def _dense(Phi, r, centred):
    """The r leading eigenvalues and eigenvectors of the centred Gram
    matrix, the means of the rows of K, and the trace."""
    K = Phi.gram()
    g, C = K.mean(axis=1), centre(K) if centred else K
    lam, alpha = eigh(C)
    size = abs(lam[-1]) + abs(g.sum())
    if lam[0] < -1e-8 * size:
        raise ValueError("kernel must be positive definite, but its Gram "
                         f"matrix has the eigenvalue {lam[0]:.6g}")
    lam, alpha = lam[::-1], alpha[:, ::-1]
    r = _count(lam, len(K), size, r)
    return lam[:r], alpha[:, :r], g, np.trace(C)

# %% [5] Fine print
def _count(lam, n, size, r):
    """r, or the number of falling eigenvalues above the rounding errors
    of n × n matrices of this size."""
    seen = int(np.sum(lam > 10 * n * np.finfo(float).eps * size))
    if seen == 0:
        raise ValueError("X must have features that vary by more than "
                         "rounding errors")
    if r is not None and r > seen:
        raise ValueError(f"n_components must be at most {seen}, in so many "
                         "directions do the features of X vary by more "
                         f"than rounding errors, got {r}")
    return seen if r is None else r


def _signs(scores):
    """In each column, the sign of the first entry of largest size."""
    size = np.abs(scores)
    top = (size >= (1 - 1e-6) * size.max(axis=0)).argmax(axis=0)
    return np.sign(scores[top, np.arange(scores.shape[1])])

# %% [6] The components of data
def kernel_pca(kernel: Kernel, X, n_components: int | None = None, *,
               centred: bool = True, solver: str = "auto",
               max_rank: int | None = None) -> PrincipalComponents:
    """Principal components f = Σ α_i k(x_i, ·) / √(nλ), of norm one, where
    HKH α = nλ α, or Kα = nλ α if not centred (:prf:ref:`thm-kpca`). The
    eigenvalues are the λ (scikit-learn's are nλ), and the largest score on
    X in absolute value is positive.

    By default all components are found, by the solver "dense";
    "iterative" finds the leading ones only, and is the default if n > 500
    and n_components < n / 20. With max_rank all features are projected on
    the span of so many landmarks (:prf:ref:`thm-kpca-low-rank`).

    >>> kernel_pca(Gaussian(1.0), [0.0, 9.0], 1).eigenvalues.round(6)
    array([0.5])
    """
    Phi, r = Features(kernel, X), n_components
    n, centred = Phi.n, check.flag(centred, "centred")
    check.choice(solver, "solver", ("auto", "dense", "iterative"))
    r = None if r is None else check.whole(r, "n_components", 1)
    if max_rank is not None:
        if solver != "auto":
            raise ValueError("solver must be 'auto' where max_rank is "
                             f"given, got {solver!r}")
        return _low_rank(Phi, r, centred, max_rank)
    few = solver == "auto" and r is not None and n > max(500, 20 * r)
    eigen = _iterative if few or solver == "iterative" else _dense
    n_lam, alpha, mu_X, trace = eigen(Phi, r, centred)   # HKH α = nλ α
    W = alpha * _signs(alpha) / np.sqrt(n_lam)           # f = Φα / √(nλ)
    return PrincipalComponents(kernel, Phi, W, np.full(n, centred / n),
                               centred * (mu_X @ W),     # ⟨mean, f⟩
                               n_lam / n, float(trace / n))

# %% [7] The leading components by products
_STORED, _EPS = 10_000, np.finfo(float).eps


def _iterative(Phi, r, centred):
    """As `_dense`, from products of the Gram matrix with vectors."""
    n = Phi.n
    if r is None or r >= n:
        raise ValueError("n_components must be less than the number of "
                         f"points, {n}, for the iterative solver, got {r}")
    size, Phi = Phi.unit()
    K = Phi.gram().T if n <= _STORED else None

    def product(v):
        return (Phi.dot(v) if K is None else K @ v if v.ndim == 2
                else blas.dsymv(1.0, K, v))                 # half of K

    def action(v):
        Kv = product(v - centred * v.mean(axis=0))
        return Kv - centred * Kv.mean(axis=0)

    g, trace = product(np.full(n, 1 / n)), Phi.diag().sum()
    total = trace - centred * g.sum()
    _count(np.array([total]), n, trace, None)
    A = LinearOperator((n, n), lambda v: action(v.ravel()), dtype=float)
    start = np.random.default_rng(0).normal(size=n)
    try:
        lam, alpha = eigsh(A, k=r, which="LA", v0=start)
    except ArpackError as error:
        raise ValueError("solver='iterative' did not converge, take "
                         f"'dense' or max_rank: {error}") from None
    lam, alpha = lam[::-1], alpha[:, ::-1]
    _count(lam, n, lam[0] + g.sum(), r)
    residuals = np.linalg.norm(action(alpha) - lam * alpha, axis=0)
    if not residuals.max() <= 1e-9 * lam[0] + 10 * n * _EPS * g.sum():
        raise ValueError("solver='iterative' gave residuals that are too "
                         "large, take 'dense' or max_rank")
    if lam.sum() > (1 + 1e-8) * total + 10 * n * _EPS * trace:
        raise ValueError("kernel must be positive definite, but the "
                         "leading eigenvalues exceed the trace")
    return size * lam, alpha, size * g, size * total

# %% [8] The components in a smaller space
def _low_rank(Phi, r, centred, max_rank):
    F, P = pivoted_cholesky(Phi.kernel, Phi, tol=0, max_rank=max_rank,
                            return_pivots=True)
    if r is not None and r > max_rank:
        raise ValueError(f"max_rank must be at least n_components = {r}, "
                         f"got {max_rank}")
    n, m = len(F), F.mean(axis=0) * centred
    scores = F - m
    lam, U = np.linalg.eigh(scores.T @ scores)
    lam, U, total = lam[::-1], U[:, ::-1], lam.sum()
    r = _count(lam, n, lam[:1].sum() + n * m @ m, r)
    lam, U = lam[:r], U[:, :r]
    U = U * _signs(scores @ U)
    W, mean = (solve_triangular(F[P], b, lower=True, trans="T")
               for b in (U, m))
    return PrincipalComponents(Phi.kernel, Phi[P], W, mean, m @ U, lam / n,
                               float(total / n))

# %% [9] Fine print: the climb
_NOISE = 16 * _EPS


def _bumps(Phi, W, Z):
    """For each row w of W, with Σ |w_i| = 1, and z of Z: the value f(z),
    σ²∇f(z) and its rounding error, and the safe D*(z)."""
    P = W * Features(Phi.kernel, Z, seen=Z).gram(Phi)
    f, size, X = P.sum(axis=1), np.abs(P), Phi.seen
    error = _NOISE * (size @ np.abs(X).max(axis=1)
                      + np.abs(f) * np.abs(Z).max(axis=1))
    safe = ((size.sum(axis=1) + f) / 2 + np.exp(-1.5) * (1 - W.sum(axis=1)))
    return f, P @ X - f[:, None] * Z, error, safe


def _uphill(Phi, W, Z, tol, max_steps):
    """Steps 2 to 4 of the algorithm, from each row of Z: where they end,
    and the rows that have not ended after max_steps."""
    Z, rows, sigma = Z.copy(), np.arange(len(Z)), Phi.kernel.sigma
    now = _bumps(Phi, W, Z)
    D = now[0]
    for steps in range(max_steps + 1):
        f, slope, error, safe = now
        going = np.abs(slope).max(axis=1) > np.maximum(tol * sigma * f,
                                                       error)
        rows, f, slope, error, safe, D = (
            a[going] for a in (rows, f, slope, error, safe, D))
        if rows.size == 0 or steps == max_steps:
            return Z, rows
        step = slope / D[:, None]
        new = _bumps(Phi, W[rows], Z[rows] + step)
        gain = np.sum(slope / sigma * (step / sigma), axis=1) / 4
        good = (new[0] >= f + gain - _NOISE) | (D >= safe)
        Z[rows[good]] += step[good]
        bend = (np.sum(step * (slope - new[1]), axis=1)
                / np.sum(step**2, axis=1))
        bend = np.where(bend > 0, np.maximum(bend, new[0] / 100), new[0])
        D = np.where(good, np.minimum(bend, new[3]),
                     np.minimum(4 * D, safe))
        now = [np.where(good if a.ndim == 1 else good[:, None], b, a)
               for a, b in zip((f, slope, error, safe), new)]

# %% [10] Fine print: the climb
def _higher(Phi, w, z, tol):
    """Step 5: from a stationary point z, a step in the direction in which
    the function bends upwards most, or None if it does so in none."""
    P = w * Features(Phi.kernel, z, seen=z).gram(Phi)[0]
    f, near, sigma, d = P.sum(), P != 0, Phi.kernel.sigma, z.shape[1]
    A = (Phi.seen[near] - z) / sigma
    (mu,), e = eigh((A.T * P[near]) @ A - f * np.eye(d),
                    subset_by_index=[d - 1, d - 1])
    t = 1.0
    while mu > tol * f and mu * t**2 / 4 > _NOISE:
        ends = z + t * sigma * np.outer([1, -1], e * _signs(e))
        values = _bumps(Phi, w[None], ends)[0]
        if values.max() >= f + mu * t**2 / 4:
            return ends[values.argmax()]
        t /= 2
    return None

# %% [11] From a function to a point
def modes(Phi: Features, W, start=None, *, tol: float = 1e-6,
          max_steps: int = 10_000) -> tuple[np.ndarray, np.ndarray]:
    """Local maxima z of the functions f = Φw, one for each row w of the
    (m, n) array W, by the safeguarded iteration of the fixed-point equation
    z = Σ w_i k(x_i, z) x_i / f(z), for a Gaussian kernel
    (:prf:ref:`alg-preimage`).

    Each climb begins at a row of `start`, by default at the highest of the
    points, and ends at a row of the first result, at least as high
    (:prf:ref:`cor-preimage-converges`). The second result says how: 0 at a
    local maximum, 1 if max_steps were not enough, 2 if the function is
    positive neither at its start nor at one of the points, of which the
    end is then the highest. Other arguments as for `preimage`."""
    if not (isinstance(Phi, Features) and isinstance(Phi.kernel, Gaussian)):
        raise ValueError(f"{getattr(Phi, 'name', 'Phi')} must have a "
                         "Gaussian kernel, got "
                         f"{getattr(Phi, 'kernel', Phi)}")
    W, X = check.as_points(W, "W"), Phi.seen
    if W.shape[1] != len(X):
        raise ValueError(f"W must have a column for each of {len(X)} "
                         f"points, got shape {W.shape}")
    for size in (np.max, np.sum):                # a sum may overflow
        total = size(np.abs(W), axis=1, keepdims=True)
        W = W / np.where(total > 0, total, 1.0)
    Z = np.array(X[Phi.dot(W.T).argmax(axis=0)] if start is None
                 else Features(Phi.kernel, start, "start").seen)
    if Z.shape != (len(W), X.shape[1]):
        raise ValueError(f"start must be {len(W)} points of {X.shape[1]} "
                         f"numbers, got shape {Z.shape}")
    tol = check.tolerance(tol)
    max_steps = check.whole(max_steps, "max_steps", 1)

    status, f = np.zeros(len(W), dtype=int), _bumps(Phi, W, Z)[0]
    lost = np.flatnonzero(f < 1e-10)                            # step 1
    if lost.size:
        values = Phi.dot(W[lost].T)
        best = values.max(axis=0)
        Z[lost] = np.where((best > f[lost])[:, None],
                           X[values.argmax(axis=0)], Z[lost])
        status[lost[np.maximum(best, f[lost]) <= 1e-14]] = 2
    rows = np.flatnonzero(status == 0)
    while rows.size:                                   # steps 2 to 5
        Z[rows], moving = _uphill(Phi, W[rows], Z[rows], tol, max_steps)
        status[rows[moving]] = 1
        left = {j: z for j in rows[status[rows] == 0] if (
            z := _higher(Phi, W[j], Z[j:j + 1], tol)) is not None}
        rows = np.array([*left], dtype=int)
        Z[rows] = [*left.values()] or Z[rows]
    return Z, status

# %% [12] From a function to a point
def preimage(f: RKHSFunction, start=None, *, tol: float = 1e-6,
             max_steps: int = 10_000) -> np.ndarray:
    """A point z whose feature k(z, ·) is near f: a maximum of f, because
    ‖k(z, ·) - f‖² = 1 - 2 f(z) + ‖f‖², found from the fixed-point equation
    z = Σ w_i k(x_i, z) x_i / f(z) of the Gaussian kernel, where w are the
    weights of f, of any signs (:prf:ref:`alg-preimage`).

    Without a start, or if f is next to zero there, it is the point of f at
    which f is largest. At the end no coordinate of the fixed-point step
    exceeds tol σ, and no eigenvalue of the second derivative tol f(z) / σ²;
    if max_steps are not enough for that, a ValueError says so.

    >>> f = RKHSFunction(Gaussian(1.0), [0.0, 0.5, 9.0], [1.0, 1.0, -1.0])
    >>> preimage(f, 2.0).round(4)
    array([0.25])
    """
    Phi = Features(as_function(f).kernel, f.features, "f")
    if start is not None:
        start = np.atleast_2d(check.real_array(start, "start"))
    Z, status = modes(Phi, f.weights[None], start, tol=tol,
                      max_steps=max_steps)
    _arrived(status, "f must be positive at start or at one of its points",
             max_steps)
    return Z[0]


def _arrived(status, wanted, max_steps, where=""):
    if status.max() == 2:
        raise ValueError(f"{wanted}, or no feature is near it{where}")
    if status.any():
        raise ValueError(f"max_steps must be larger: after {max_steps} "
                         f"steps {np.sum(status)} of {len(status)} points "
                         f"still move{where}")


def denoise(pca: PrincipalComponents, T, *, tol: float = 1e-6,
            max_steps: int = 10_000) -> np.ndarray:
    """Pre-images of the projections of k(t, ·) on the mean plus the
    components, for noisy points t in the rows of T, each of them also the
    start (:prf:ref:`alg-preimage`). A ValueError names a row whose
    projection has none, as may be far from the data. The kernel is
    Gaussian; tol and max_steps are those of `preimage`."""
    if not isinstance(pca, PrincipalComponents):
        raise ValueError("pca must be PrincipalComponents, got "
                         f"{type(pca).__name__}")
    Phi = Features(pca.kernel, pca.features, "pca")
    Psi, Z = Features(pca.kernel, T, "T"), []
    for a in range(0, Psi.n, TILE):
        start = Psi[a:a + TILE]
        W = pca.mean_weights + pca.transform(start) @ pca.weights.T
        z, status = modes(Phi, W, start, tol=tol, max_steps=max_steps)
        _arrived(status, "T must have projections that are positive at T "
                 "or at one of the points of pca", max_steps,
                 f": row {a + status.argmax()} of T")
        Z.append(z)
    return np.vstack(Z)
