"""Two samples: a test whose level is exact"""
# The exported cells of book/two_samples.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: d7d7ee673136141f

# %% [1] Two samples: a test whose level is exact
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg.blas import dtrmm

import rkhs_lit.conventions as check
from rkhs_lit.kernels import Kernel
from rkhs_lit.mean_embedding import moved, squared_norm
from rkhs_lit.mmd import sample_maps
from rkhs_lit.pca import centre
from rkhs_lit.tiles import reduce_runs

# %% [2] Rounding must not break ties
def permutation_pvalue(statistic: float, null_distribution, *,
                       tol: float = 0.0) -> float:
    """The p-value (1 + #{null >= statistic}) / (1 + B) of a statistic with
    its values for B random permutations. If the sample is exchangeable, it
    is at most α with a probability of at most α
    (:prf:ref:`thm-permutation-level`).

    Values that are smaller by at most `tol` count as ties: twice the
    rounding error (:prf:ref:`prop-permutation-rounding`).

    >>> permutation_pvalue(2.0, [1.0, 2.0, 3.0])
    0.75
    """
    statistic = check.number(statistic, "statistic")
    null = check.vector(null_distribution, "null_distribution")
    tol = check.number(tol, "tol", "a nonnegative number", 0.0)
    count, B = int(np.sum(null >= statistic - tol)), len(null)
    return (1 + count) / (1 + B)


@dataclass(frozen=True, eq=False, repr=False)
class PermutationTest(check.Record):
    """What a permutation test has found (:prf:ref:`thm-permutation-level`):
    the statistic of the actual sample, of which large values speak against
    the hypothesis, the p-value of `permutation_pvalue`, and the statistics
    of the B permuted samples, read-only."""

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

# %% [3] Thousands of splits, one matrix product
@np.errstate(over="ignore", invalid="ignore")
def split_statistics(K, S, unbiased: bool = False) -> np.ndarray:
    """MMD², biased or `unbiased`, of all splits of a pooled sample, from
    its centred Gram matrix K, of which the upper half is read; a column of
    S marks a first sample with ones (:prf:ref:`lem-split-form`).

    >>> from rkhs_lit.pca import centre
    >>> split_statistics(centre([[1.0, 0.0], [0.0, 1.0]]), [[1], [0]])
    array([2.])
    """
    K, S = check.real_array(K, "K", 2), check.real_array(S, "S", 2)
    N, m = len(S), S.sum(axis=0)
    at_least = 1 + check.flag(unbiased, "unbiased")
    if K.shape != (N, N):
        raise ValueError("K must have a row and a column for each row of S"
                         f" ({N}), got shape {K.shape}")
    if (S != S * S).any() or min(m.min(), N - m.max()) < at_least:
        raise ValueError(f"S must mark at least {at_least} points in each "
                         "column with 1, and as many with 0")
    return check.finite(np.array(_splits(K, unbiased, S)), "K")


def _splits(K, unbiased, S):
    """The formulas of the lemma, with half a product; a list."""
    d, t = K.diagonal() @ S, K.trace()
    q = 2 * np.einsum("ij,ij->j", S, dtrmm(1.0, K.T, S, lower=1)) - d
    m = S.sum(axis=0)
    n = len(S) - m
    T = ((q - d) / (m * (m - 1)) + (q - (t - d)) / (n * (n - 1))
         + 2 * q / (m * n) if unbiased else (len(S) / (m * n)) ** 2 * q)
    return T.tolist()

# %% [4] Fine print
def _orders(marks, B, rng):
    """The marks, then B random orders of them in blocks of 256 columns."""
    yield marks[:, None]
    for first in range(0, B, 256):
        rows = np.tile(marks, (min(256, B - first), 1))
        yield rng.permuted(rows, axis=1).T

# %% [5] The test
def mmd_test(kernel: Kernel, X, Y, *, n_permutations: int = 999,
             rng=None, unbiased: bool = False) -> PermutationTest:
    """Test whether two samples come from one distribution. If they do, the
    p-value is at most α with a probability of at most α, for all sample
    sizes and every number `n_permutations` of random splits
    (:prf:ref:`thm-permutation-level`).

    The kernel may be chosen by looking at the pooled points, but not at
    who is in which sample. The statistic is `mmd2_biased`, or for
    ``unbiased=True`` `mmd2_unbiased`. For m = n they give the same p-value
    (:prf:ref:`prop-same-pvalue`); take the second if m and n are far apart
    (:prf:ref:`prop-mmd-unbalanced`).

    >>> from rkhs_lit.kernels import Gaussian
    >>> x = np.arange(20.0)
    >>> mmd_test(Gaussian(5.0), x, x + 15, n_permutations=199, rng=0).pvalue
    0.005
    """
    unbiased = check.flag(unbiased, "unbiased")
    Phi, Psi = moved(*sample_maps(kernel, X, Y, 1 + unbiased))
    B = check.whole(n_permutations, "n_permutations", 1)
    rng = check.generator(rng)

    c, both = Phi.joined(Psi).unit()
    K = centre(both.gram())                               # HKH / c
    K -= K.mean(axis=1, keepdims=True)                    # for rounding
    m, N = Phi.n, both.n
    marks = 1.0 * ((np.arange(N) < m) == (2 * m <= N))    # the smaller
    T = np.array(reduce_runs(partial(_splits, K, unbiased),
                             _orders(marks, B, rng)))
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
