"""MMD: the distance between two distributions"""
# The exported cells of book/mmd.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: eba56ecf010a2b98

# %% [1] MMD: the distance between two distributions
from functools import partial

import numpy as np

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points
from rkhs_lit.kernels import Kernel, reduce_tiles, squared_distances
from rkhs_lit.mean_embedding import mean_embedding, moved, squared_norm
from rkhs_lit.moore_aronszajn import Features, RKHSFunction

# %% [2] One distance, three ways
def _mean(Phi, Psi=None, *, distinct=False):
    """The average of the entries of Φ*Ψ, or without Ψ of Φ*Φ, where
    `distinct` leaves out the diagonal."""
    m, n = Phi.n, (Psi or Phi).n
    total = Phi.dot(np.ones(n), Psi).sum()
    if distinct:
        total, m = total - Phi.diag().sum(), m - 1
    return float(total) / (m * n)

# %% [3] Fine print
def sample_maps(kernel: Kernel, X, Y, at_least: int = 1,
                ) -> tuple[Features, Features]:
    """The maps Φ and Ψ of two samples, with points of one kind and at
    least so many in each (:prf:ref:`def-synthesis`)."""
    Phi, Psi = Features(kernel, X), Features(kernel, Y, "Y")
    for F in (Phi, Psi):
        if F.n < at_least:
            raise ValueError(f"{F.name} must hold at least {at_least} "
                             f"points, got {F.n}")
    Psi.gram(Phi, slice(1), slice(1))      # refuses points of two kinds
    return Phi, Psi


def _certain(value, xx, yy, xy, Phi, Psi):
    """The value xx + yy - 2 xy, with a warning if the rounding errors of
    these averages leave it in doubt beside the spread of the features."""
    error = 4 * np.finfo(float).eps * (abs(xx) + abs(yy) + 2 * abs(xy))
    spread = max(Phi.diag().mean() - xx, Psi.diag().mean() - yy)
    return check.certain(float(value), error, "MMD² of the kernel", spread)

# %% [4] The distance and the witness of two samples
def mmd2_biased(kernel: Kernel, X, Y) -> float:
    """The squared distance between the mean features of two samples of m
    and n points of any kind (:prf:ref:`prop-mmd-feature-means`).

    It is the MMD² of the two empirical distributions, and estimates that
    of the distributions behind them with a positive bias
    (:prf:ref:`thm-mmd-unbiased`). With the linear kernel it is the squared
    difference of the means:

    >>> from rkhs_lit.kernels import Linear
    >>> mmd2_biased(Linear(), [1.0, 2.0, 6.0], [0.0, 2.0])
    4.0
    """
    Phi, Psi = moved(*sample_maps(kernel, X, Y))
    xx, yy, xy = _mean(Phi), _mean(Psi), _mean(Phi, Psi)
    square = squared_norm((xx - xy) + (yy - xy),
                          4 * max(map(abs, (xx, yy, xy))))
    return _certain(square, xx, yy, xy, Phi, Psi)


def witness(kernel: Kernel, X, Y) -> RKHSFunction:
    """The function w = μ_X - μ_Y, which tells two samples apart best
    (:prf:ref:`thm-mmd-three`).

    Its norm is the MMD of the samples, and of all functions of norm one
    w / norm(w) has the largest difference of means. For a Gaussian kernel
    it is positive where X is denser after both are blurred
    (:prf:ref:`prop-mmd-blurred`).

    >>> from rkhs_lit.kernels import Gaussian
    >>> w = witness(Gaussian(1.0), [0.0, 0.0], [3.0])
    >>> w([0.0, 3.0]).round(6)                         # ±(1 - e^-4.5)
    array([ 0.988891, -0.988891])
    """
    Phi, Psi = sample_maps(kernel, X, Y)
    return mean_embedding(kernel, Phi) - mean_embedding(kernel, Psi)

# %% [5] Estimating MMD without bias
def mmd2_unbiased(kernel: Kernel, X, Y) -> float:
    """Unbiased estimate of MMD² from two samples of at least two points,
    drawn independently (:prf:ref:`thm-mmd-unbiased`).

    It is often negative if the two distributions are equal, because its
    mean is then 0.

    >>> from rkhs_lit.kernels import Linear
    >>> mmd2_unbiased(Linear(), [1.0, 3.0], [1.0, 3.0])    # 3 + 3 - 2 · 4
    -2.0
    """
    Phi, Psi = moved(*sample_maps(kernel, X, Y, at_least=2))
    xx, yy = (_mean(F, distinct=True) for F in (Phi, Psi))
    xy = _mean(Phi, Psi)
    return _certain((xx - xy) + (yy - xy), xx, yy, xy, Phi, Psi)

# %% [6] The median heuristic
def _squares(X, i=slice(None), j=slice(None)):
    """Squared distances of the pairs in a tile, each pair once."""
    D = squared_distances(X[i], X[j])
    return D[np.triu_indices(len(D), 1)] if i == j else D.ravel()


def _count(X, shift, found, total, i, j):
    """Counts the next 16 bits of the squares that begin with `found`."""
    bits = _squares(X, i, j).view(np.int64) >> shift
    digits = bits[(bits >> 16) == found] & 0xFFFF
    total += np.bincount(digits, minlength=2**16)


def _square_of_rank(X, rank):
    """The squared distance that has `rank` smaller ones."""
    found = 0
    for shift in (48, 32, 16, 0):
        counts = reduce_tiles(partial(_count, X, shift, found),
                              partial(np.zeros, 2**16, int), len(X))
        ends = np.cumsum(counts)
        digit = int(np.searchsorted(ends, rank, side="right"))
        rank -= int(ends[digit] - counts[digit])
        found = found << 16 | digit
    return float(np.int64(found).view(np.float64))


def median_heuristic(X, *, max_points: int | None = None,
                     rng=None) -> float:
    """A bandwidth, the median of the distances ‖x_i - x_j‖ for i < j
    (:prf:ref:`def-median-heuristic`).

    For a two-sample test X is the pooled sample. `max_points` takes the
    median for a random subsample of so many points; by default all pairs
    are used, in tiles. A median of 0 is refused: choose the bandwidth by
    hand, or from the distinct points.

    >>> median_heuristic([0.0, 1.0, 5.0])                # 1, 4 and 5
    4.0
    """
    X = as_points(X)
    if max_points is not None:
        size = check.whole(max_points, "max_points", 2)
        rng = check.generator(rng)
        if len(X) > size:
            X = X[rng.choice(len(X), size, replace=False)]
    if len(X) < 2:
        raise ValueError("X must hold at least two points")
    # A power of two changes no digit, and makes the largest entry one.
    exponent = int(np.frexp(np.abs(X).max())[1])
    X, pairs = np.ldexp(X, -exponent), len(X) * (len(X) - 1) // 2
    ranks = sorted({(pairs - 1) // 2, pairs // 2})   # in the middle
    squares = (np.partition(_squares(X), ranks)[ranks] if pairs <= 2**20
               else [_square_of_rank(X, rank) for rank in ranks])
    with np.errstate(over="ignore"):
        sigma = float(np.ldexp(np.mean(np.sqrt(squares)), exponent))
    if not 0 < sigma < np.inf:
        raise ValueError("X must have a positive median distance, but it "
                         f"is {sigma}: more than half of the pairs "
                         "coincide beside the largest point, or the "
                         "points are too large")
    return sigma
