"""Features and sources: HSIC put to use"""
# The exported cells of book/unmixing.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 6cab7bf6806db440

# %% [1] Features and sources: HSIC put to use
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import eigh

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points, as_sequence
from rkhs_lit.hsic import hsic
from rkhs_lit.kernels import Gaussian, Kernel, reduce_tiles
from rkhs_lit.mean_embedding import GaussianEmbedding, embedding_distance
from rkhs_lit.moore_aronszajn import Features, paired

# %% [2] Two classes
def balanced_labels(y) -> np.ndarray:
    """Numbers for two classes, with sum zero: 1/n₊ where y, a sequence of
    numbers or strings, has the larger of its two values, -1/n₋ elsewhere
    (:prf:ref:`thm-balanced-labels`).

    >>> balanced_labels(["no", "yes", "no", "no"]).round(3)
    array([-0.333,  1.   , -0.333, -0.333])
    """
    y = [*as_sequence(y, "y")]
    if not all(isinstance(label, (str, bytes)) for label in y):
        y = check.real_array(y, "y", 1)
    classes, which = np.unique(y, return_inverse=True)
    if len(classes) != 2:
        raise ValueError("y must have exactly two different values, got "
                         f"{len(classes)}")
    plus = which == 1
    return np.where(plus, 1 / plus.sum(), -1 / (~plus).sum())

# %% [3] Greedy selection
@dataclass(frozen=True)
class FeatureSelection(check.Record):
    """Columns that keep HSIC large (:prf:ref:`thm-hsic-unbiased`): the
    selected features in increasing order, the path of columns as they were
    added or removed, and the unbiased HSIC of the set after each of these
    steps. The names are those of the features in a data frame."""

    features: tuple[int, ...]
    path: tuple[int, ...]
    values: tuple[float, ...]
    names: tuple = ()


def select_features(k: Kernel, l: Kernel, X, Y, n_features: int, *,
                    direction: str = "backward") -> FeatureSelection:
    """Greedy selection of those `n_features` columns of X, an (n, d) array
    or a data frame with n >= 4, on which Y depends most
    (:prf:ref:`thm-hsic-unbiased`).

    The kernel k is applied to columns of X, so it must take vectors of any
    length. Backward removes columns from all, and finds those that matter
    together only; forward adds columns to none.
    """
    names, X = [*getattr(X, "columns", ())], as_points(X)
    d, m = X.shape[1], check.whole(n_features, "n_features", 1)
    if m > d:
        raise ValueError(f"n_features must be at most {d}, the number of "
                         f"columns of X, got {m}")
    check.choice(direction, "direction", ("backward", "forward"))
    forward, Psi = direction == "forward", paired(k, l, X, Y, 4)[1]
    chosen, path, values = set() if forward else {*range(d)}, [], []
    while len(chosen) != m:
        steps = [a for a in range(d) if (a in chosen) != forward]
        scores = [hsic(k, l, X[:, sorted(chosen ^ {a})], Psi)
                  for a in steps]
        best = int(np.argmax(scores))
        chosen ^= {steps[best]}
        path.append(steps[best])
        values.append(scores[best])
    features = tuple(sorted(chosen))
    return FeatureSelection(features, tuple(path), tuple(values),
                            tuple(names[a] for a in features if names))

# %% [4] Unmixing
def _visit(U, V, p, q, total, i, j):
    """Add what the tiles (i, j) contribute to M1 and M u for both."""
    K, L = U.gram(None, i, j), V.gram(None, i, j)
    tilted = (K * (L - np.add.outer(q[i] - q.mean(), q[j])),
              L * (K - np.add.outer(p[i] - p.mean(), p[j])))
    for row, (M, z) in enumerate(zip(tilted, (U.points, V.points))):
        total[row, i] += M.sum(axis=1)
        total[row + 2, i] += np.einsum("ij,j->i", M, z[j])
        if i != j:
            total[row, j] += M.sum(axis=0)
            total[row + 2, j] += np.einsum("ij,i->j", M, z[i])


def _unmix_objective(flat, k, Z):
    """HSIC_b of u = Z w and v = Z z for the unit vectors w and z along the
    halves of flat, and its gradient (:prf:ref:`prop-unmix-gradient`)."""
    W = flat.reshape(2, -1)
    length = np.linalg.norm(W, axis=1, keepdims=True)
    unit, n = W / length, len(Z)
    U, V = (Features(k, u) for u in unit @ Z.T)
    p, q = (F.dot(np.ones(n)) / n for F in (U, V))
    total = reduce_tiles(partial(_visit, U, V, p, q),
                         partial(np.zeros, (4, n)), n)
    pull = -2 / (n * k.sigma) ** 2 * (
        total[:2] * [U.points, V.points] - total[2:])
    slope = pull @ Z
    slope -= np.sum(slope * unit, axis=1, keepdims=True) * unit
    return float(total[0].sum()) / n**2, (slope / length).ravel()

# %% [5] Fine print
def _whitened(X):
    """Points with mean zero and covariance I; the maps of directions
    back to those of X and forth."""
    if X.shape[1] < 2 or len(X) <= X.shape[1]:
        raise ValueError("X must have at least two columns and more rows "
                         f"than columns, got shape {X.shape}")
    Z = X - X.mean(axis=0)
    size = np.abs(Z).max(axis=0)
    lost = size <= 1e-13 * np.abs(X).max(axis=0)   # rounding of the mean
    Z = Z / np.where(lost, 1.0, size)
    lam, V = eigh(Z.T @ Z / len(Z))
    if lost.any() or lam[0] <= 1e-13 * lam[-1]:
        raise ValueError("X must have an invertible covariance matrix")
    root = np.sqrt(lam)
    return Z @ (V / root), (V / root).T / size, size[:, None] * (V * root)


def _directions(start, forth):
    """The rows of start as unit vectors for whitened points."""
    A = check.real_array(start, "start", ndim=2)
    if A.shape != (2, len(forth)):
        raise ValueError(f"start must have shape (2, {len(forth)}), got "
                         f"{A.shape}")
    with np.errstate(all="ignore"):
        W = A @ forth
        W = W / np.linalg.norm(W, axis=1, keepdims=True)
    if not np.isfinite(W).all() or np.linalg.matrix_rank(W, 1e-8) < 2:
        raise ValueError("start must have two rows that are not parallel")
    return W

# %% [6] The search
@dataclass(frozen=True, eq=False, repr=False)
class Unmixing(check.Record):
    """Two linear components ``(X - X.mean(axis=0)) @ matrix.T`` that are
    nearly independent, of variance one, and their biased HSIC as the value
    (:prf:ref:`prop-unmix-gradient`); the matrices on the path to it, the
    start first, and their values; whether the gradient became small."""

    matrix: np.ndarray
    value: float
    path: np.ndarray
    values: np.ndarray
    converged: bool

    def __post_init__(self):
        vars(self).update({name: check.frozen(vars(self)[name])
                           for name in ("matrix", "path", "values")})

    def __repr__(self):
        return (f"Unmixing(value={self.value:.6g}, steps="
                f"{len(self.values) - 1}, converged={self.converged})")


def hsic_unmix(k: Gaussian, X, start, *, tol: float = 1e-6,
               max_steps: int = 200) -> Unmixing:
    """Two linear functions of a vector that are as independent as
    possible: a local minimum of HSIC (:prf:ref:`prop-unmix-gradient`).

    X is an (n, d) array with d >= 2 and an invertible covariance matrix,
    `start` a (2, d) array with rows that are not parallel. Which of many
    minima is found depends on the start; for normal X there is a whole
    family (:prf:ref:`prop-unmix-normal`). Components are scaled to
    variance one, so a width of k near 1 is the median heuristic. Ends
    when the gradient has no entry above `tol`, or after `max_steps`.
    """
    if not isinstance(k, Gaussian):
        raise ValueError(f"k must be Gaussian, got {k}")
    Z, back, forth = _whitened(as_points(X))
    start = _directions(start, forth).ravel()
    tol = check.tolerance(tol, zero=True)
    max_steps = check.whole(max_steps, "max_steps", 1)
    path, values = [start], [_unmix_objective(start, k, Z)[0]]

    def note(intermediate_result):
        path.append(intermediate_result.x.copy())
        values.append(float(intermediate_result.fun))

    from scipy.optimize import minimize                # rare, slow

    found = minimize(_unmix_objective, start, (k, Z), "BFGS", jac=True,
                     callback=note,
                     options={"gtol": tol, "maxiter": max_steps})
    W = np.reshape(path, (len(path), 2, -1))
    path = W / np.linalg.norm(W, axis=2, keepdims=True) @ back
    return Unmixing(path[-1], values[-1], path, values,
                    bool(np.abs(found.jac).max() <= tol))

# %% [7] Normal variables: a closed form
def hsic_gaussian(k: Gaussian, l: Gaussian, covariance, *,
                  split: int = 1) -> float:
    """HSIC of a normal vector (X, Y) for Gaussian kernels, where X has the
    first `split` coordinates (:prf:ref:`prop-hsic-gaussian`).

    >>> S = [[1.0, 0.5], [0.5, 1.0]]
    >>> round(hsic_gaussian(Gaussian(1.0), Gaussian(1.0), S), 6)
    0.010763
    """
    for name, kernel in (("k", k), ("l", l)):
        if not isinstance(kernel, Gaussian):
            raise ValueError(f"{name} must be Gaussian, got {kernel}")
    zero = np.zeros(len(as_points(covariance, "covariance")))
    unit = Gaussian(1.0)
    S = GaussianEmbedding(unit, zero, covariance).covariance     # checked
    if check.whole(split, "split", 1) >= len(S):
        raise ValueError("split must leave a coordinate for Y: less than "
                         f"{len(S)}, got {split}")
    first = np.arange(len(S)) < split
    widths = np.where(first, k.sigma, l.sigma)
    with np.errstate(over="ignore"):
        S = S / widths / widths[:, None]
    apart = np.where(first == first[:, None], S, 0.0)
    return embedding_distance(GaussianEmbedding(unit, zero, S),
                              GaussianEmbedding(unit, zero, apart)) ** 2
