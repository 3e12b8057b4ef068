"""MMD: the distance between two distributions

The exported cells of the chapter ``book/mmd.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: ab6f918daa397dd9

# %% [1] MMD: the distance between two distributions
from dataclasses import dataclass

import numpy as np

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points
from rkhs_lit.kernels import Kernel, reduce_tiles, squared_distances
from rkhs_lit.mean_embedding import mean_embedding, moved, squared_norm
from rkhs_lit.moore_aronszajn import Features, RKHSFunction
from rkhs_lit.pca import centre


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
def _samples(kernel, X, Y, at_least=1):
    """The maps Φ and Ψ of two samples with points of one kind."""
    Phi, Psi = Features(kernel, X), Features(kernel, Y, "Y")
    for F in (Phi, Psi):
        if F.n < at_least:
            raise ValueError(f"{F.name} must hold at least {at_least} "
                             f"points, got {F.n}")
    Psi[:1].gram(Phi[:1])                  # refuses points of two kinds
    return Phi, Psi


def _certain(value, xx, yy, xy, Phi, Psi):
    """The value xx + yy - 2 xy, with a warning if the rounding errors of
    these averages leave it in doubt beside the spread of the features."""
    errors = 4 * np.finfo(float).eps * np.abs([xx, yy, xy, xy])
    spread = max(Phi.diag().mean() - xx, Psi.diag().mean() - yy)
    return check.certain(float(value), float(errors.sum()),
                         "MMD² of the kernel", spread)


def _orders(marks, B, rng):
    """The marks, then B random orders of them in blocks of 256 columns."""
    yield marks[:, None]
    for first in range(0, B, 256):
        rows = np.tile(marks, (min(256, B - first), 1))
        yield rng.permuted(rows, axis=1).T


# %% [4] The distance and the witness of two samples
def mmd2_biased(kernel: Kernel, X, Y) -> float:
    """The squared distance between the mean features of two samples of m
    and n points of any kind (:prf:ref:`prop-mmd-feature-means`).

    It is the MMD² of the two empirical distributions, and estimates that
    of the distributions behind them with a positive bias
    (:prf:ref:`thm-mmd-unbiased`). It is computed a tile at a time.

    With the linear kernel it is the squared difference of the means:

    >>> from rkhs_lit.kernels import Linear
    >>> mmd2_biased(Linear(), [1.0, 2.0, 6.0], [0.0, 2.0])
    4.0
    """
    Phi, Psi = moved(*_samples(kernel, X, Y))
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
    (:prf:ref:`prop-mmd-blurred`). Arguments as for `mmd2_biased`.

    >>> from rkhs_lit.kernels import Gaussian
    >>> w = witness(Gaussian(1.0), [0.0, 0.0], [3.0])
    >>> w([0.0, 3.0]).round(6)                         # ±(1 - e^-4.5)
    array([ 0.988891, -0.988891])
    """
    Phi, Psi = _samples(kernel, X, Y)
    return mean_embedding(kernel, Phi) - mean_embedding(kernel, Psi)


# %% [5] Estimating MMD without bias
def mmd2_unbiased(kernel: Kernel, X, Y) -> float:
    """Unbiased estimate of MMD² from two samples
    (:prf:ref:`thm-mmd-unbiased`).

    Arguments as for `mmd2_biased`, with at least two points of each
    sample, drawn independently. It is often negative if the two
    distributions are equal, because its mean is then 0.

    >>> from rkhs_lit.kernels import Linear
    >>> mmd2_unbiased(Linear(), [1.0, 3.0], [1.0, 3.0])    # 3 + 3 - 2 · 4
    -2.0
    """
    Phi, Psi = moved(*_samples(kernel, X, Y, at_least=2))
    xx, yy = (_mean(F, distinct=True) for F in (Phi, Psi))
    xy = _mean(Phi, Psi)
    return _certain((xx - xy) + (yy - xy), xx, yy, xy, Phi, Psi)


# %% [6] Rounding must not break ties
def permutation_pvalue(statistic: float, null_distribution, *,
                       tol: float = 0.0) -> float:
    """The p-value (1 + #{null >= statistic}) / (1 + B): if the sample is
    exchangeable, at most α with a probability of at most α
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

    Examples
    --------
    >>> permutation_pvalue(2.0, [1.0, 2.0, 3.0])
    0.75
    """
    statistic = check.number(statistic, "statistic")
    null = check.vector(null_distribution, "null_distribution")
    tol = check.number(tol, "tol", "a nonnegative number", 0.0)
    count = int(np.sum(null >= statistic - tol))
    return (1 + count) / (1 + len(null))


@dataclass(frozen=True, eq=False, repr=False)
class PermutationTest(check.Record):
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
        vars(self).update(
            statistic=check.number(self.statistic, "statistic"),
            pvalue=check.number(self.pvalue, "pvalue", "in (0, 1]",
                                check.TINY, 1.0),
            null_distribution=check.vector(self.null_distribution,
                                           "null_distribution"))

    def __repr__(self):
        return (f"PermutationTest(statistic={self.statistic:.6g}, pvalue="
                f"{self.pvalue:.6g}, B={len(self.null_distribution)})")


# %% [7] Thousands of splits, one matrix product
def split_statistics(K, S, unbiased: bool = False) -> np.ndarray:
    """MMD² of all splits of a pooled sample, from its centred Gram matrix
    K; a column of S marks the points of a first sample with ones
    (:prf:ref:`lem-split-form`).

    >>> from rkhs_lit.pca import centre
    >>> split_statistics(centre([[1.0, 0.0], [0.0, 1.0]]), [[1], [0]])
    array([2.])
    """
    K, S = check.real_array(K, "K", 2), check.real_array(S, "S", 2)
    N, m = len(S), S.sum(axis=0)
    n, at_least = N - m, 1 + check.flag(unbiased, "unbiased")
    if K.shape != (N, N):
        raise ValueError("K must have a row and a column for each row of S"
                         f" ({N}), got shape {K.shape}")
    if (S != S * S).any() or min(m.min(), n.min()) < at_least:
        raise ValueError(f"S must mark at least {at_least} points in each "
                         "column with 1, and as many with 0")
    q = np.einsum("ij,ij->j", S, K @ S)
    if not unbiased:
        return (N / (m * n)) ** 2 * q
    d, t = K.diagonal() @ S, K.trace()
    return ((q - d) / (m * (m - 1)) + (q - (t - d)) / (n * (n - 1))
            + 2 * q / (m * n))


# %% [8] Thousands of splits, one matrix product
def mmd_test(kernel: Kernel, X, Y, *, n_permutations: int = 999,
             rng=None, unbiased: bool = False) -> PermutationTest:
    """Test whether two samples come from one distribution. If they do, the
    p-value is at most α with a probability of at most α, for all sample
    sizes and every B (:prf:ref:`thm-permutation-level`).

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
    rng : seed or numpy.random.Generator, optional
    unbiased : bool
        Whether the statistic is the unbiased one, for m, n >= 2: take
        it if m and n are far apart.

    Examples
    --------
    >>> from rkhs_lit.kernels import Gaussian
    >>> x = np.arange(20.0)
    >>> mmd_test(Gaussian(5.0), x, x + 15, n_permutations=199, rng=0).pvalue
    0.005
    """
    unbiased = check.flag(unbiased, "unbiased")
    Phi, Psi = moved(*_samples(kernel, X, Y, 1 + unbiased))
    B = check.whole(n_permutations, "n_permutations", 1)
    rng = check.generator(rng)

    c, both = Phi.joined(Psi).unit()
    K = centre(centre(both.gram()))       # HKH / c, twice for rounding
    m, N = Phi.n, both.n
    marks = 1.0 * ((np.arange(N) < m) == (2 * m <= N))    # the smaller
    T = np.concatenate([split_statistics(K, S, unbiased)
                        for S in _orders(marks, B, rng)])
    if not unbiased:
        T = squared_norm(T, 4)

    eps, largest = np.finfo(float).eps, float(max(K.max(), -K.min()))
    error = 16 * eps * float(both.diag().max())           # of an entry
    check.certain(largest, error if largest else 0.0, "the largest entry"
                  " of the centred Gram matrix, in units of the kernel,")
    tie = (1e-10 + 4 * N * eps) * largest + error
    pvalue = permutation_pvalue(T[0], T[1:], tol=(1 + unbiased) * tie)
    with np.errstate(over="ignore"):
        T = check.finite(c * T, "the kernel")
    return PermutationTest(T[0], pvalue, T[1:])


# %% [9] The median heuristic
def _squares(X, i=slice(None), j=slice(None)):
    """Squared distances of the pairs in a tile, each pair once."""
    D = squared_distances(X[i], X[j])
    return D[np.triu_indices(len(D), 1)] if i == j else D.ravel()


def _square_of_rank(X, rank):
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


def median_heuristic(X, *, max_points: int | None = None,
                     rng=None) -> float:
    """A bandwidth σ > 0: the median distance between pairs of points
    (:prf:ref:`def-median-heuristic`).

    Parameters
    ----------
    X : (n, d) array
        At least two points; for a two-sample test the pooled sample. If
        more than half of the pairs coincide, the median 0 is refused:
        choose σ by hand, or from the distinct points.
    max_points : int, optional
        Use a random subsample of so many points. By default all pairs
        are used, in tiles, whatever n is.
    rng : seed or numpy.random.Generator, optional
        For the subsample.

    Examples
    --------
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
    middle = {(pairs - 1) // 2, pairs // 2}           # one rank or two
    if pairs <= 2**20:
        squares = np.partition(_squares(X), [*middle])[[*middle]]
    else:
        squares = [_square_of_rank(X, rank) for rank in middle]
    with np.errstate(over="ignore"):
        sigma = np.ldexp(np.mean(np.sqrt(squares)), exponent)
    if not 0 < sigma < np.inf:
        raise ValueError("X must have a positive median distance, but it "
                         f"is {sigma}: more than half of the pairs "
                         "coincide beside the largest point, or the "
                         "points are too large")
    return float(sigma)
