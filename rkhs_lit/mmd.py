"""MMD: the distance between two distributions

The exported cells of the chapter ``book/mmd.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 520e4513bcd6da7a

# %% [1] MMD: the distance between two distributions
from dataclasses import dataclass

import numpy as np

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points
from rkhs_lit.kernels import Kernel, reduce_tiles, squared_distances
from rkhs_lit.mean_embedding import mean_embedding
from rkhs_lit.moore_aronszajn import RKHSFunction, _space


# %% [2] The code
def _mean(kernel, X, Y=None, *, distinct=False):
    """The average of k(x_i, y_j) over all pairs, or without Y of
    k(x_i, x_j), where `distinct` leaves out the pairs i = j."""
    n, m = len(X), len(X if Y is None else Y)
    pairs = n * (n - 1) if distinct else n * m

    def visit(total, i, j):
        K = kernel._block(X[i], (X if Y is None else Y)[j])
        part = K.sum() - (K.trace() if distinct and i == j else 0.0)
        total += part / pairs * (2 if Y is None and i != j else 1)

    with np.errstate(over="ignore", invalid="ignore"):
        total = reduce_tiles(visit, lambda: np.zeros(1), n,
                             None if Y is None else m)
    return float(check.finite(total, "the kernel")[0])


# %% [3] The code
def _suited(kernel, points, letter, name="the kernel"):
    """Points as the kernel wants them, or an error that names both."""
    try:
        return kernel._prepare(points, letter)
    except ValueError as error:
        if str(error).startswith(letter):
            raise
        raise ValueError(f"{letter} does not suit {name}: {error}"
                         ) from None


def _samples(kernel, X, Y, least):
    """A kernel with the same differences of features, and both samples
    as it wants them (:prf:ref:`lem-features-moved`)."""
    _space(kernel)
    check.same_columns(X, Y)
    prepared = []
    for name, points in (("X", X), ("Y", Y)):
        prepared.append(_suited(kernel, points, name))
        if len(prepared[-1]) < least:
            raise ValueError(f"{name} must hold at least {least} points, "
                             f"got {len(prepared[-1])}")
    try:
        kernel._block(prepared[0][:1], prepared[1][:1])
    except ValueError as error:
        raise ValueError(f"Y does not suit X: {error}") from None
    near = kernel._about(X, Y)
    return near, *(prepared if near is kernel else (
        near._prepare(X, "X"), near._prepare(Y, "Y")))


def _square(value, size):
    check.finite(value, "the kernel")
    # 1e-8 allows for kernels that are computed to eight digits.
    if value < -4e-8 * size:
        raise ValueError("kernel must be positive definite, but the "
                         f"squared distance of the means is {value:.6g}")
    return max(value, 0.0)


def _certain(value, xx, yy, xy, kernel, *samples):
    """The value xx + yy - 2 xy, with a warning if the rounding errors of
    these averages leave it in doubt beside the spread of the features."""
    errors = 4 * np.finfo(float).eps * np.abs([xx, yy, xy, xy])
    spread = max(kernel._diag(Z).mean() - mean
                 for Z, mean in zip(samples, (xx, yy)))
    return check.certain(value, float(errors.sum()), "MMD²", spread)


# %% [4] The code
def mmd2_biased(kernel: Kernel, X, Y) -> float:
    """The squared distance between the mean features of two samples
    (:prf:ref:`prop-mmd-feature-means`).

    It is the MMD² of the two empirical distributions, and estimates
    that of the distributions behind them with a positive bias
    (:prf:ref:`thm-mmd-unbiased`).

    Parameters
    ----------
    kernel : Kernel
        Positive definite, on any kind of points.
    X, Y : sequences of m and n points

    Returns
    -------
    float
        Not negative: 0 where rounding leaves a small negative number.
        Computed a tile at a time, no Gram matrix is stored.

    Examples
    --------
    With the linear kernel it is the squared difference of the means:

    >>> from rkhs_lit.kernels import Linear
    >>> mmd2_biased(Linear(), [1.0, 2.0, 6.0], [0.0, 2.0])
    4.0
    """
    kernel, X, Y = _samples(kernel, X, Y, 1)
    xx, yy, xy = _mean(kernel, X), _mean(kernel, Y), _mean(kernel, X, Y)
    size = max(abs(xx), abs(yy), abs(xy))
    return _certain(_square((xx - xy) + (yy - xy), size), xx, yy, xy,
                    kernel, X, Y)


# %% [5] The code
def witness(kernel: Kernel, X, Y) -> RKHSFunction:
    """The function μ_X - μ_Y, which tells two samples apart best
    (:prf:ref:`thm-mmd-three`).

    Parameters
    ----------
    kernel : Kernel
    X, Y : sequences of m and n points

    Returns
    -------
    RKHSFunction
        w. For a Gaussian kernel it is positive where X is denser after
        both are blurred (:prf:ref:`prop-mmd-blurred`). Its norm is the
        MMD of the samples, and of all functions of norm one
        w / norm(w) has the largest difference of means.

    Examples
    --------
    >>> from rkhs_lit.kernels import Gaussian
    >>> w = witness(Gaussian(1.0), [0.0, 0.0], [3.0])
    >>> w([0.0, 3.0]).round(6)                         # ±(1 - e^-4.5)
    array([ 0.988891, -0.988891])
    """
    _samples(kernel, X, Y, 1)                    # says what is wrong
    return mean_embedding(kernel, X) - mean_embedding(kernel, Y)


# %% [6] Estimating MMD without bias
def mmd2_unbiased(kernel: Kernel, X, Y) -> float:
    """Unbiased estimate of MMD² from two samples
    (:prf:ref:`thm-mmd-unbiased`).

    Parameters
    ----------
    kernel : Kernel
        Positive definite, on any kind of points.
    X, Y : sequences of m and n points
        Drawn independently, at least two of each.

    Returns
    -------
    float
        Often negative if the two distributions are equal, because its
        mean is then 0. Computed a tile at a time, no Gram matrix is stored.

    Examples
    --------
    >>> from rkhs_lit.kernels import Linear
    >>> mmd2_unbiased(Linear(), [1.0, 3.0], [1.0, 3.0])    # 3 + 3 - 2 · 4
    -2.0
    """
    kernel, X, Y = _samples(kernel, X, Y, 2)
    xx, yy = (_mean(kernel, Z, distinct=True) for Z in (X, Y))
    xy = _mean(kernel, X, Y)
    return _certain((xx - xy) + (yy - xy), xx, yy, xy, kernel, X, Y)


# %% [7] Rounding must not break ties
def permutation_pvalue(statistic: float, null_distribution, *,
                       tol: float = 0.0) -> float:
    """The p-value (1 + #{null >= statistic}) / (1 + B)
    (:prf:ref:`thm-permutation-level`).

    Parameters
    ----------
    statistic : float
        The value of the actual sample.
    null_distribution : (B,) array
        The values of B random permutations of it.
    tol : float
        Values that are smaller by at most this count as ties: twice
        the rounding error (:prf:ref:`prop-permutation-rounding`).

    Returns
    -------
    float
        In (0, 1]; if the sample is exchangeable, at most α with a
        probability of at most α.

    Examples
    --------
    >>> permutation_pvalue(2.0, [1.0, 2.0, 3.0])
    0.75
    """
    statistic = check.number(statistic, "statistic")
    null = _values(null_distribution)
    tol = check.nonnegative(tol, "tol")
    count = int(np.sum(null >= statistic - tol))
    return (1 + count) / (1 + len(null))


# %% [8] Rounding must not break ties
def _values(null_distribution):
    null = as_points(null_distribution, "null_distribution")
    if np.ndim(null_distribution) != 1:
        raise ValueError("null_distribution must be a list of numbers, got "
                         f"shape {np.shape(null_distribution)}")
    return null[:, 0]


# %% [9] Rounding must not break ties
@dataclass(frozen=True, eq=False, repr=False)
class PermutationTest:
    """What a permutation test has found
    (:prf:ref:`thm-permutation-level`).

    Attributes
    ----------
    statistic : float
        The value of the actual sample; large values speak against the
        hypothesis.
    pvalue : float
        In (0, 1], see `permutation_pvalue`.
    null_distribution : (B,) array
        The values of the permuted samples, read-only.
    """

    statistic: float
    pvalue: float
    null_distribution: np.ndarray

    def __post_init__(self):
        pvalue = check.number(self.pvalue, "pvalue")
        if not 0 < pvalue <= 1:
            raise ValueError(f"pvalue must be in (0, 1], got {pvalue}")
        null = _values(self.null_distribution).copy()
        null.setflags(write=False)
        object.__setattr__(self, "statistic",
                           check.number(self.statistic, "statistic"))
        object.__setattr__(self, "pvalue", pvalue)
        object.__setattr__(self, "null_distribution", null)

    def __repr__(self):
        return (f"PermutationTest(statistic={self.statistic:.6g}, pvalue="
                f"{self.pvalue:.6g}, B={len(self.null_distribution)})")


# %% [10] Thousands of splits, one matrix product
def _pooled(kernel, X, Y):
    """The Gram matrix of both samples, scaled to size one; the scale."""
    m, N = len(X), len(X) + len(Y)
    K = np.empty((N, N))
    K[:m, :m] = kernel(X)
    K[m:, m:] = kernel(Y)
    K[:m, m:] = kernel(X, Y)
    K[m:, :m] = K[:m, m:].T
    scale = float(max(K.max(), -K.min())) or 1.0
    K /= scale
    return K, scale


def _centre(K):
    # The second round removes what the first leaves by rounding.
    for _ in range(2):
        K -= K.mean(axis=0)
        K -= K.mean(axis=1, keepdims=True)


def _split_statistics(K, S, unbiased=False):
    """(N / mn)² s'Ks for the columns s of S, with a centred K, or the
    unbiased statistics (:prf:ref:`lem-split-form`)."""
    m, N = S[:, 0].sum(), len(S)
    n, q = N - m, np.einsum("ij,ij->j", S, K @ S)
    if not unbiased:
        return (N / (m * n)) ** 2 * q
    d, t = K.diagonal() @ S, K.trace()
    return ((q - d) / (m * (m - 1)) + (q - (t - d)) / (n * (n - 1))
            + 2 * q / (m * n))


# %% [11] Thousands of splits, one matrix product
def _ties(K):
    """What counts as a tie, from a centred Gram matrix of size one."""
    eps, largest = np.finfo(float).eps, float(max(K.max(), -K.min()))
    check.certain(largest, 16 * eps if largest else 0.0, "the largest entry"
                  " of the centred Gram matrix, in units of the kernel,")
    return (1e-10 + 4 * len(K) * eps) * largest + 16 * eps


def _random_splits(K, marks, B, rng, unbiased):
    """The statistics of B random reorderings of the marks."""
    null = np.empty(B)
    for first in range(0, B, 256):
        rows = np.tile(marks, (min(256, B - first), 1))
        S = rng.permuted(rows, axis=1).T
        null[first:first + 256] = _split_statistics(K, S, unbiased)
    return null


# %% [12] Thousands of splits, one matrix product
def mmd_test(kernel: Kernel, X, Y, *, n_permutations: int, rng,
             unbiased: bool = False) -> PermutationTest:
    """Test whether two samples come from one distribution
    (:prf:ref:`thm-permutation-level`).

    The statistic is `mmd2_biased` or `mmd2_unbiased`. For m = n they give
    the same p-value (:prf:ref:`prop-same-pvalue`), for a small sample
    beside a large one they see different things
    (:prf:ref:`prop-mmd-unbalanced`).

    Parameters
    ----------
    kernel : Kernel
        On any kind of points. It may be chosen by looking at the pooled
        points, but not at who is in which sample.
    X, Y : sequences of m and n points
    n_permutations : int
        The number B of random splits.
    rng : seed or numpy.random.Generator
    unbiased : bool
        Whether the statistic is the unbiased one, for m, n >= 2: take
        it if m and n are far apart.

    Returns
    -------
    PermutationTest
        If the distributions are equal, the p-value is at most α with a
        probability of at most α, for every sample size and every B.

    Examples
    --------
    >>> from rkhs_lit.kernels import Gaussian
    >>> x = np.arange(20.0)
    >>> mmd_test(Gaussian(5.0), x, x + 15, n_permutations=199, rng=0).pvalue
    0.005
    """
    unbiased = check.flag(unbiased, "unbiased")
    kernel = _samples(kernel, X, Y, 1 + unbiased)[0]
    B = check.whole(n_permutations, "n_permutations", 1)
    rng = check.generator(rng)
    K, scale = _pooled(kernel, X, Y)
    _centre(K)
    m, N = len(X), len(K)
    marks = 1.0 * ((np.arange(N) < m) == (2 * m <= N))    # the smaller
    statistic = float(_split_statistics(K, marks[:, None], unbiased)[0])
    null = _random_splits(K, marks, B, rng, unbiased)
    if not unbiased:
        _square(min(statistic, null.min()) * scale, scale)
        statistic, null = max(statistic, 0.0), np.maximum(null, 0.0)
    pvalue = permutation_pvalue(statistic, null,
                                tol=(1 + unbiased) * _ties(K))
    with np.errstate(over="ignore"):
        null = check.finite(null * scale, "the kernel")
    statistic = check.finite(statistic * scale, "the kernel")
    return PermutationTest(statistic, pvalue, null)


# %% [13] The median heuristic
def _squares(X, i, j):
    """Squared distances of the pairs in a tile, each pair once."""
    D = squared_distances(X[i], X[j])
    return D[np.triu_indices(len(D), 1)] if i == j else D.ravel()


def _squared_distance_of_rank(X, rank):
    """The squared distance that has `rank` smaller ones."""
    found = 0
    for shift in (48, 32, 16, 0):
        def visit(total, i, j):
            bits = _squares(X, i, j).view(np.int64) >> shift
            digits = bits[(bits >> 16) == found] & 0xFFFF
            total += np.bincount(digits, minlength=2**16)

        counts = reduce_tiles(visit, lambda: np.zeros(2**16, int), len(X))
        ends = np.cumsum(counts)
        digit = int(np.searchsorted(ends, rank, side="right"))
        rank -= int(ends[digit] - counts[digit])
        found = found << 16 | digit
    return float(np.int64(found).view(np.float64))


# %% [14] The median heuristic
def median_heuristic(X, *, max_points: int | None = None,
                     rng=None) -> float:
    """A bandwidth: the median distance between pairs of points
    (:prf:ref:`def-median-heuristic`).

    Parameters
    ----------
    X : (n, d) array
        At least two points; for a two-sample test the pooled sample.
    max_points : int, optional
        Use a random subsample of so many points. By default all pairs
        are used, in tiles, whatever n is.
    rng : seed or numpy.random.Generator
        For the subsample, needed with `max_points` only.

    Returns
    -------
    float
        σ > 0 for a kernel with a width. If more than half of the pairs
        coincide, the median is 0, and a ValueError is raised: choose σ
        by hand, or from the distinct points.

    Examples
    --------
    >>> median_heuristic([0.0, 1.0, 5.0])                # 1, 4 and 5
    4.0
    """
    X = as_points(X)
    if max_points is not None:
        size = check.whole(max_points, "max_points", 2)
        if rng is None:
            raise ValueError("rng must be given with max_points")
        rng = check.generator(rng)
        if len(X) > size:
            X = X[rng.choice(len(X), size, replace=False)]
    if len(X) < 2:
        raise ValueError("X must hold at least two points")
    # A power of two changes no digit, and makes the largest entry one.
    exponent = int(np.frexp(np.abs(X).max())[1])
    with np.errstate(over="ignore"):
        sigma = np.ldexp(_median_distance(np.ldexp(X, -exponent)), exponent)
    if not 0 < sigma < np.inf:
        raise ValueError("X must have a positive median distance, but it "
                         f"is {sigma}: more than half of the pairs "
                         "coincide beside the largest point, or the "
                         "points are too large")
    return float(sigma)


# %% [15] The median heuristic
def _median_distance(X):
    pairs = len(X) * (len(X) - 1) // 2
    if pairs <= 2**20:
        everything = slice(None)
        return np.median(np.sqrt(_squares(X, everything, everything)))
    ranks = {(pairs - 1) // 2, pairs // 2}
    return np.mean([np.sqrt(_squared_distance_of_rank(X, rank))
                    for rank in ranks])
