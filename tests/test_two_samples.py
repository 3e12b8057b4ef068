"""Identities of the chapter on the two-sample test."""

import copy
import pickle
import warnings
from dataclasses import FrozenInstanceError
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rkhs_lit import (
    Delta,
    FeatureKernel,
    FunctionKernel,
    Gaussian,
    Laplace,
    Linear,
    Mapped,
    Matern,
    Pairs,
    PermutationTest,
    Polynomial,
    PrecisionWarning,
    TensorProduct,
    centre,
    embedding_error,
    mmd2_biased,
    mmd2_unbiased,
    mmd_test,
    normalised,
    permutation_pvalue,
    split_statistics,
    substrings,
    witness,
)

EPS = np.finfo(float).eps
# A difference of zero is in doubt: it may be a small one that rounding hides.
in_doubt = pytest.mark.filterwarnings("ignore::rkhs_lit.conventions.PrecisionWarning")


def samples(m=12, n=9, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, d)), rng.normal(size=(n, d)) * 1.3 + 0.4


def block_means(K, m):
    """The biased statistic from the blocks of a Gram matrix."""
    return K[:m, :m].mean() + K[m:, m:].mean() - 2 * K[:m, m:].mean()


def all_marks(N, m):
    return np.array([[float(i in chosen) for chosen in combinations(range(N), m)]
                     for i in range(N)])


def pvalues_of_all_splits(K, m, tol=1e-10):
    T = split_statistics(centre(K), all_marks(len(K), m))
    return np.mean(T >= T[:, None] - tol, axis=1)


# -- the level ------------------------------------------------------------


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8), st.integers(0, 9))
def test_at_most_h_numbers_have_at_most_h_at_least_as_large(t, h):
    """lem-permutation-rank."""
    ranks = [sum(c >= b for c in t) for b in t]
    assert sum(r <= h for r in ranks) <= h


@pytest.mark.parametrize("values", [[0, 1, 2, 3], [0, 0, 1, 1], [2, 2, 2, 2], [0, 5, 5, 5]])
def test_level_by_enumeration_of_all_outcomes_of_random_permutations(values):
    """thm-permutation-level, part 1: each actual value and each draw of three others."""
    total = len(values) ** 4
    counts = {}
    for actual, *drawn in product(values, repeat=4):
        p = Fraction(permutation_pvalue(actual, np.array(drawn, float))).limit_denominator(4)
        counts[p] = counts.get(p, 0) + 1
    for alpha in counts:
        rejected = sum(c for p, c in counts.items() if p <= alpha)
        assert Fraction(rejected, total) <= alpha
    if len(set(values)) == 4:
        # Strictly larger values alone would exceed the level.
        strict = sum(all(b <= t[0] for b in t[1:]) for t in product(values, repeat=4))
        assert Fraction(strict, total) > Fraction(1, 4)


def test_level_for_all_permutations_of_a_sample():
    """thm-permutation-level, part 2, with every permutation and an odd statistic."""
    z = [0.0, 1.0, 1.0, 3.0, 7.0]
    T = [3 * a[0] + a[1] * a[2] - a[4] for a in permutations(z)]
    p = np.array([np.mean(np.array(T) >= t) for t in T])
    for alpha in np.unique(p):
        assert np.mean(p <= alpha) <= alpha + 1e-12


def test_level_for_a_group_of_permutations_of_paired_samples():
    """thm-permutation-level, part 2, for exchanges within pairs: all 64 as the actual one."""
    rng = np.random.default_rng(6)
    topics = 5 * np.arange(6.0)
    z = np.concatenate([topics + rng.normal(size=6), topics + rng.normal(size=6)])
    swaps = np.array(list(product([1.0, 0.0], repeat=6))).T
    K = centre(Gaussian(1.0)(z))
    T = split_statistics(K, np.concatenate([swaps, 1 - swaps]))
    p = np.mean(T >= T[:, None] - 1e-10, axis=1)
    assert np.array_equal(np.round(64 * np.sort(p)), np.repeat(np.arange(2, 65, 2), 2))
    # The other splits put near points together, which makes their MMD larger.
    assert split_statistics(K, all_marks(12, 6)).mean() > 1.2 * T.mean()


@pytest.mark.parametrize("N, m, g", [(8, 4, 2), (7, 3, 1), (7, 5, 1), (6, 1, 1)])
def test_level_is_attained_exactly_for_distinct_points(N, m, g):
    """thm-permutation-level, part 3: the p-values are g/C, 2g/C, ..., each g times."""
    z = np.random.default_rng(5).normal(size=N)
    p = pvalues_of_all_splits(Gaussian(1.0)(z), m)
    C = comb(N, m)
    assert np.array_equal(np.round(np.sort(p) * C), np.repeat(np.arange(g, C + 1, g), g))


def test_p_values_of_the_test_are_valid_over_all_splits_with_ties():
    """thm-permutation-level, prop-permutation-rounding, through mmd_test itself."""
    z = np.array([0.1, 0.1, 0.1, 0.2, 0.2, 0.7])
    p = []
    for chosen in combinations(range(6), 3):
        rest = [i for i in range(6) if i not in chosen]
        p.append(mmd_test(Linear(), z[list(chosen)], z[rest], n_permutations=40, rng=3).pvalue)
    exact = pvalues_of_all_splits(Linear()(z), 3)
    # Each p-value estimates the exact one from 40 draws: four standard deviations.
    assert np.all(np.abs(np.array(p) - exact) < 4 * np.sqrt(0.25 / 40) + 1 / 41)


@pytest.mark.parametrize("kernel, z", [
    (Gaussian(1e-9), np.random.default_rng(0).normal(size=47)),
    (Linear(), np.full(47, 0.1)),
    (Delta(), list(range(47))),
    (3.7 * Laplace(1.0), np.full((47, 70), 1 / 3)),
    (Gaussian(1e9), np.random.default_rng(0).normal(size=47)),
    (Gaussian(3e7), np.random.default_rng(0).normal(size=47)),
    (Linear(), np.zeros(47)),
], ids=["narrow", "constant", "delta", "far", "wide", "noise", "zero"])
def test_statistics_that_are_equal_in_exact_arithmetic_count_as_ties(kernel, z):
    """prop-permutation-rounding: all splits tied, so the p-value is one."""
    for m in (13, 20, 23, 24, 30):
        result = mmd_test(kernel, z[:m], z[m:], n_permutations=99, rng=m)
        assert result.pvalue == 1.0


@pytest.mark.parametrize("sigma", [1e2, 1e4, 1e5])
def test_the_tolerance_leaves_wide_kernels_their_power(sigma):
    """prop-bandwidth-limits: a wide Gaussian kernel orders the splits like the linear one."""
    X, Y = samples(20, 15, 1)
    wide, linear = (mmd_test(k, X, Y + 0.3, n_permutations=199, rng=1)
                    for k in (Gaussian(sigma), Linear()))
    assert abs(wide.pvalue - linear.pvalue) <= 2 / 200 < linear.pvalue < 0.2


@pytest.mark.parametrize("offset", [1.0, 1e3, 1e6])
def test_rows_of_a_centred_matrix_add_to_zero_also_for_data_far_from_zero(offset):
    """lem-split-form uses that the centred matrix sends the vector of ones to zero."""
    K = centre(centre(Linear()(np.random.default_rng(2).normal(size=40) + offset)))
    for axis in (0, 1):
        # Two sums of forty entries of at most the largest.
        assert np.abs(K.sum(axis=axis)).max() <= 4 * 40 * EPS * np.abs(K).max()


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e3, 1e5])
def test_exchanging_the_samples_is_a_tie_also_for_data_far_from_zero(offset):
    """lem-split-form: for m = n each value occurs twice."""
    z = np.random.default_rng(2).normal(size=8) + offset
    K = Linear()(z)
    scale = np.abs(K).max()
    K = centre(centre(K / scale))
    tol = (1e-10 + 4 * 8 * EPS) * np.abs(K).max() + 16 * EPS     # that of mmd_test
    T = split_statistics(K, all_marks(8, 4))
    # The splits come in lexicographic order: the last is the complement of the first.
    assert np.all(np.abs(T - T[::-1]) <= tol)
    ties = np.sum(np.abs(T - T[:, None]) <= tol, axis=1)
    assert np.array_equal(ties, np.full(70, 2))


def test_exchanging_the_samples_changes_the_statistic_by_far_less_than_a_tie():
    """prop-permutation-rounding: rows of the centred matrix sum to zero, also where its
    entries are 1e-10 of those of the Gram matrix."""
    for seed in range(5):
        z = np.random.default_rng(seed).normal(size=(2, 100)) + 1e4
        k = Polynomial(2, 1e4)
        there, back = (mmd_test(k, X, Y, n_permutations=1, rng=0).statistic
                       for X, Y in (z, z[::-1]))
        # Its rounding error alone would be about ε times the largest entry.
        assert abs(there - back) < 1e-3 * EPS * k.diag(z[0]).max()


def test_equal_points_are_tied_in_every_dimension():
    """prop-permutation-rounding: repeated points, by BLAS and by distances."""
    rng = np.random.default_rng(0)
    for d, kernel in ((3, Linear()), (100, Linear()), (100, Gaussian(10.0)), (3, Gaussian(1.0))):
        a, b = rng.normal(size=(2, d))
        z = np.array([a] * 5 + [b] * 5)
        result = mmd_test(kernel, z[::2], z[1::2], n_permutations=400, rng=0)
        # Only the number of a's in the first sample matters: 5 - j and j are alike.
        assert len(np.unique((result.null_distribution / result.null_distribution.max())
                             .round(9))) == 3
        # The actual split has three a's against two: the smallest value, so all reach it.
        assert result.pvalue == 1.0, (d, kernel)
        marks = np.random.default_rng(0).permuted(
            np.tile(np.arange(10) < 5, (400, 1)), axis=1)
        of_kind_a = np.all(np.concatenate([z[::2], z[1::2]]) == a, axis=1)
        count = (marks & of_kind_a).sum(axis=1)
        assert np.allclose(result.null_distribution / result.statistic, (2 * count - 5) ** 2)


# -- the statistics of all splits -----------------------------------------


def test_the_quadratic_form_is_the_statistic_of_every_split():
    """lem-split-form, and its complement."""
    X, Y = samples(5, 3)
    Z = np.vstack([X, Y])
    K = Matern(1.5, 1.0)(Z)
    centred = centre(K)
    marks = all_marks(8, 5)
    T = split_statistics(centred, marks)
    for s, t in zip(marks.T.astype(bool), T):
        order = np.concatenate([np.flatnonzero(s), np.flatnonzero(~s)])
        assert np.isclose(t, block_means(K[np.ix_(order, order)], 5))
        assert np.isclose(t, mmd2_biased(Matern(1.5, 1.0), Z[s], Z[~s]))
    assert np.allclose(split_statistics(centred, 1 - marks), T)


@pytest.mark.parametrize("unbiased", [False, True])
def test_half_a_product_gives_the_statistics_of_the_whole_one(unbiased):
    """eq-split-half and lem-split-form: only the upper half of the matrix is read."""
    rng = np.random.default_rng(4)
    K = centre(Laplace(1.0)(rng.normal(size=(30, 2))))
    S = rng.permuted(np.tile(np.arange(30) < 11, (20, 1)), axis=1).T * 1.0
    q, d, m, n = np.sum(S * (K @ S), axis=0), K.diagonal() @ S, 11, 19
    wanted = (30 / (m * n)) ** 2 * q
    if unbiased:
        wanted = ((q - d) / (m * (m - 1)) + (q - np.trace(K) + d) / (n * (n - 1))
                  + 2 * q / (m * n))
    for matrix in (K, np.triu(K), np.asfortranarray(K)):
        assert np.allclose(split_statistics(matrix, S, unbiased), wanted, rtol=1e-12)
    assert not np.allclose(split_statistics(np.tril(K), S, unbiased), wanted)


@pytest.mark.parametrize("m, n", [(4, 4), (3, 5), (5, 2), (1, 6)])
def test_the_mean_over_all_splits(m, n):
    """lem-permutation-mean, and the bound of thm-permutation-power."""
    z = np.random.default_rng(1).normal(size=m + n)
    K, N = Laplace(1.0)(z), m + n
    p = pvalues_of_all_splits(K, m)
    H = np.eye(N) - 1 / N
    T = split_statistics(centre(K), all_marks(N, m))
    expected = N / ((N - 1) * m * n) * np.trace(H @ Laplace(1.0)(z) @ H)
    assert np.isclose(T.mean(), expected)
    assert np.all(p <= 2 / T * (1 / m + 1 / n) + 1e-12)


@pytest.mark.parametrize("m, n", [(30, 20), (20, 30), (25, 25), (1, 9)])
def test_null_distribution_is_that_of_a_loop_over_the_same_splits(m, n):
    """mmd_test against the sums from scratch, across blocks of permutations."""
    X, Y = samples(m, n)
    result = mmd_test(Laplace(1.0), X, Y, n_permutations=300, rng=7)
    smaller = np.arange(m + n) < m if m <= n else np.arange(m + n) >= m
    marks = np.random.default_rng(7).permuted(np.tile(smaller, (300, 1)), axis=1)
    K, loop = Laplace(1.0)(np.vstack([X, Y])), []
    for s in marks:
        order = np.concatenate([np.flatnonzero(s), np.flatnonzero(~s)])
        loop.append(block_means(K[np.ix_(order, order)], min(m, n)))
    assert np.allclose(result.null_distribution, loop, rtol=1e-9)
    assert np.isclose(result.statistic, mmd2_biased(Laplace(1.0), X, Y), rtol=1e-10)
    expected = (1 + np.sum(np.array(loop) >= block_means(K, m) - 1e-12)) / 301
    assert result.pvalue == expected


def test_both_estimates_have_the_same_p_value_for_equal_sizes():
    """prop-same-pvalue: an affine relation over all splits."""
    Z = samples(8, 1)[0]
    k, biased, unbiased = Gaussian(1.0), [], []
    for s in all_marks(8, 4).T.astype(bool):
        biased.append(mmd2_biased(k, Z[s], Z[~s]))
        unbiased.append(mmd2_unbiased(k, Z[s], Z[~s]))
    slope, offset = np.polyfit(biased, unbiased, 1)
    assert np.isclose(slope, 7 / 6)
    assert np.allclose(unbiased, slope * np.array(biased) + offset, atol=1e-12)


def test_the_test_finds_differences_and_keeps_its_level():
    """thm-permutation-level and thm-permutation-power, by simulation with a stated error."""
    rng = np.random.default_rng(4)
    null, power = [], []
    for _ in range(300):
        X = rng.normal(size=15)
        null.append(mmd_test(Gaussian(1.0), X, rng.normal(size=10), n_permutations=19,
                             rng=rng).pvalue)
        power.append(mmd_test(Gaussian(1.0), X, rng.normal(size=10) + 3, n_permutations=19,
                              rng=rng).pvalue)
    # Four standard deviations of a share of 300 with probability 1/20 and 1/2.
    assert np.mean(np.array(null) <= 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 300)
    assert abs(np.mean(np.array(null) <= 0.5) - 0.5) < 4 * np.sqrt(0.25 / 300)
    assert np.mean(np.array(power) == 0.05) > 0.97


def test_the_test_works_for_strings_and_pairs():
    """thm-permutation-level asks nothing of the points."""
    k = normalised(FeatureKernel(substrings(2)))
    X, Y = ["abab", "ababab", "baba", "abaab"], ["cdcd", "dcdc", "cddc", "ccdd"]
    result = mmd_test(k, X, Y, n_permutations=500, rng=0)
    assert abs(result.pvalue - 2 / 70) < 4 * np.sqrt(2 / 70 / 500) + 1 / 501
    pairs = mmd_test(TensorProduct(Gaussian(1.0), k), Pairs([0.0, 1.0, 2.0, 3.0], X),
                     Pairs([0.0, 1.0, 2.0, 3.0], Y), n_permutations=50, rng=0)
    assert 0 < pairs.pvalue <= 1
    assert witness(k, X, Y)(["aba"])[0] > 0 > witness(k, X, Y)(["cdc"])[0]


@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e100, 1e200])
def test_the_p_value_does_not_depend_on_the_scale_of_the_kernel(scale):
    """mmd_test scales the Gram matrix before it adds anything."""
    X, Y = samples()
    one, other = (mmd_test(c * Gaussian(1.0), X, Y, n_permutations=99, rng=0)
                  for c in (1.0, scale))
    assert one.pvalue == other.pvalue
    assert np.isclose(other.statistic, scale * one.statistic)
    assert np.allclose(other.null_distribution, scale * one.null_distribution, rtol=1e-10)


def test_the_test_repeats_with_a_seed_and_leaves_its_input_alone():
    """rng= is a seed or a Generator; samples are not changed."""
    X, Y = samples()
    before = X.copy(), Y.copy()
    a, b = (mmd_test(Gaussian(1.0), X, Y, n_permutations=50, rng=r)
            for r in (3, np.random.default_rng(3)))
    assert np.array_equal(a.null_distribution, b.null_distribution)
    c = mmd_test(Gaussian(1.0), X, Y, n_permutations=50, rng=4)
    assert not np.array_equal(a.null_distribution, c.null_distribution)
    assert np.array_equal(X, before[0]) and np.array_equal(Y, before[1])
    assert len(np.unique(a.null_distribution)) > 45


def test_the_test_has_defaults():
    """def-rng: 999 splits, and fresh randomness."""
    X, Y = samples()
    one, other = mmd_test(Gaussian(1.0), X, Y), mmd_test(Gaussian(1.0), X, Y)
    assert len(one.null_distribution) == 999
    assert not np.array_equal(one.null_distribution, other.null_distribution)


def test_rounding_tolerance_only_enlarges_the_p_value():
    """prop-permutation-rounding."""
    null = [1.0, 2.0 - 1e-12, 2.0, 3.0]
    assert permutation_pvalue(2.0, null) == 3 / 5
    assert permutation_pvalue(2.0, null, tol=1e-11) == 4 / 5
    assert permutation_pvalue(2.0, null, tol=1.0) == 1.0
    assert permutation_pvalue(9.0, null) == 1 / 5
    for number in (Fraction(5, 2), np.float32(2.5)):
        assert permutation_pvalue(number, null) == 2 / 5
    with pytest.raises(ValueError, match="^tol must be a nonnegative number"):
        permutation_pvalue(2.0, null, tol=-0.5)


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("share, ties", [(0.98, True), (1.02, False)])
def test_splits_tie_that_differ_by_1e_10_of_the_largest_entry(share, ties, unbiased):
    """prop-permutation-rounding, on both sides of the tolerance: the splits of 1 + d, 1, -1 and
    -1 - d in which the first goes with a negative point have MMD² of d² and of zero. The largest
    entry is one, and the unbiased estimates are 3/2 times as far apart (prop-same-pvalue)."""
    gap = share * (1 + unbiased) * 1e-10
    d = np.sqrt(gap / (1.5 if unbiased else 1))
    result = mmd_test(Linear(), [1 + d, -1.0], [1.0, -1 - d], n_permutations=60, rng=0,
                      unbiased=unbiased)
    below = result.statistic - result.null_distribution
    lower, least = np.sum(below > gap / 2), np.sum(below <= gap / 2)
    assert np.allclose(below[below > gap / 2], gap, rtol=1e-4) and min(lower, least) > 9
    assert result.pvalue == (1 + least + ties * lower) / 61


@pytest.mark.parametrize("defect, refused", [(0.9e-8, False), (1.1e-8, True)])
def test_kernels_that_are_positive_definite_to_eight_digits_are_tested(defect, refused):
    """prop-rounded-gram: 1 + d (1 - st) has MMD² = -4 d for the points 1 and -1; four entries
    of size one go into it."""
    kernel = FunctionKernel(lambda s, t: 1 + defect * (1 - s * t))
    if refused:
        with pytest.raises(ValueError, match="^kernel must be positive definite"):
            mmd_test(kernel, [1.0], [-1.0], n_permutations=5, rng=0)
    else:
        assert mmd_test(kernel, [1.0], [-1.0], n_permutations=5, rng=0).statistic == 0


# -- the record -----------------------------------------------------------


def test_the_record_is_frozen_and_owns_its_array():
    """PermutationTest: a result that cannot change afterwards."""
    null = np.array([1.0, 2.0])
    record = PermutationTest(1.5, 2 / 3, null)
    null[0] = 9.0
    assert record.null_distribution[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        record.null_distribution[0] = 3.0
    with pytest.raises(FrozenInstanceError):
        record.pvalue = 0.0
    assert repr(record) == "PermutationTest(statistic=1.5, pvalue=0.666667, B=2)"
    assert isinstance(PermutationTest(1, 1, [0]).statistic, float)


def test_the_record_survives_pickling_and_copying():
    """thm-permutation-level: copies of a result are equal and read-only."""
    record = mmd_test(Gaussian(1.0), *samples(), n_permutations=9, rng=0)
    for remade in (lambda r: pickle.loads(pickle.dumps(r)), copy.deepcopy, copy.copy):
        other = remade(record)
        assert (other.statistic, other.pvalue) == (record.statistic, record.pvalue)
        assert np.array_equal(other.null_distribution, record.null_distribution)
        assert not other.null_distribution.flags.writeable


def test_choosing_the_best_of_several_bandwidths_breaks_the_level():
    """What breaks: each bandwidth alone is valid, the best of them is not."""
    z = np.array([-1.3, -0.9, -0.2, 0.1, 0.4, 1.1, 1.7, 2.2])
    every = np.array([pvalues_of_all_splits(Gaussian(s)(z), 4) for s in (0.1, 0.5, 1.0, 3.0, 10)])
    alpha = 4 / 70 + 1e-12
    assert (np.mean(every <= alpha, axis=1) <= alpha).all()
    assert np.mean(every.min(axis=0) <= alpha) > alpha


# -- corners --------------------------------------------------------------


@in_doubt
def test_a_statistic_that_overflows_is_refused():
    """prop-mmd-feature-means at the end of the range: neither inf nor NaN is returned."""
    def function(*a):
        return mmd_test(*a, n_permutations=5, rng=0).statistic

    large = 1.5e308 * Gaussian(1.0)
    assert function(large, [0.0], [0.0]) == 0
    assert np.isclose(function(large, [0.0], [1.0]), 1.5e308 * (2 - 2 * np.exp(-0.5)))
    with pytest.raises(ValueError, match="kernel .*is not finite"):
        function(large, [0.0], [50.0])


@pytest.mark.parametrize("n, S, unbiased", [
    (2, [[1.0], [1.0]], False),
    (2, [[1.0], [0.0]], True),
    (2, [[1.0, 1.0], [0.0, 1.0]], False),
    (2, [[0.5, 1.0], [0.5, 0.0]], False),
    (4, [[2.0], [0.0], [0.0], [0.0]], False),
    (4, [[-1.0], [1.0], [1.0], [0.0]], False),
])
def test_marks_are_zeros_and_ones_with_samples_of_one_size(n, S, unbiased):
    """lem-split-form: neither sample is empty, and for the unbiased form each has two points."""
    with pytest.raises(ValueError, match="^S"):
        split_statistics(centre(np.eye(n)), S, unbiased)
    # Of an even split with an identity: 2/m - 2/(m n), less the diagonal without bias.
    half = np.repeat([1.0, 0.0], 2)[:, None]
    biased, other = (split_statistics(centre(np.eye(4)), half, u)[0] for u in (False, True))
    assert np.isclose(biased, 1) and np.isclose(other, 0)


AFFINE = [Linear(), 2.5 * Linear(), Linear() + Gaussian(1.0), Mapped(Linear(), lambda X: 3 * X)]


@pytest.mark.parametrize("kernel", AFFINE, ids=["linear", "scaled", "sum", "mapped"])
def test_points_far_from_zero_cost_the_test_no_digits(kernel):
    """lem-features-moved: the points may be moved where the features move by one vector."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, y = rng.integers(0, 5, size=(12, 2)) * 1.0, rng.integers(1, 6, size=(9, 2)) * 1.0
        for f in (lambda *a: mmd_test(*a, n_permutations=99, rng=0).statistic,
                  lambda *a: mmd_test(*a, n_permutations=99, rng=0).pvalue):
            for far in (np.array([1e8, -1e8]), 1e12):
                assert np.isclose(f(kernel, x + far, y + far), f(kernel, x, y), rtol=1e-12)


@pytest.mark.parametrize("kernel", [Polynomial(2), Linear() ** 2 + Linear()],
                         ids=["polynomial", "sum"])
def test_digits_that_the_test_cannot_keep_are_missed(kernel):
    """def-precision: a polynomial kernel sees where the points are, and has no digits left."""
    x, y = 1e8 + np.array([0.0, 1, 3, 2, 2]), 1e8 + np.array([2.0, 0, 1, 4, 4])
    with pytest.warns(PrecisionWarning):
        mmd_test(kernel, x, y, n_permutations=9, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mmd_test(kernel, x - 1e8, y - 1e8, n_permutations=9, rng=0)


def test_the_unbiased_test_permutes_the_unbiased_estimate():
    """eq-split-unbiased: the statistic and its null distribution from scratch."""
    X, Y = samples(5, 20)
    Z, k = np.concatenate([X, Y]), Laplace(1.0)
    result = mmd_test(k, X, Y, n_permutations=50, rng=3, unbiased=True)
    first = np.random.default_rng(3).permuted(np.tile(np.arange(25) < 5, (50, 1)), axis=1)
    slow = np.array([mmd2_unbiased(k, Z[s], Z[~s]) for s in first])
    assert np.allclose(result.null_distribution, slow, rtol=0, atol=1e-14)
    assert np.isclose(result.statistic, mmd2_unbiased(k, X, Y), rtol=1e-12)
    assert result.pvalue == (1 + np.sum(slow >= result.statistic - 1e-12)) / 51
    # The mark is on the smaller sample: the order of the samples does not matter.
    turned = mmd_test(k, Y, X, n_permutations=50, rng=3, unbiased=True)
    assert np.isclose(turned.statistic, result.statistic, rtol=1e-12)


@given(st.integers(2, 5), st.integers(2, 5), st.integers(0, 99))
def test_the_mean_of_the_unbiased_statistic_over_all_splits_is_zero(m, n, seed):
    """prop-mmd-unbalanced, part 1, and eq-split-unbiased against the definition."""
    Z = np.random.default_rng(seed).normal(size=(m + n, 2))
    k, marks = Gaussian(1.0), all_marks(m + n, m)
    K = centre(k(Z))
    T = split_statistics(K, marks, unbiased=True)
    assert abs(T.mean()) < 1e-13
    first = marks[:, 0] == 1
    assert np.isclose(T[0], mmd2_unbiased(k, Z[first], Z[~first]), atol=1e-13)
    gap = split_statistics(K, marks[:, :1])[0] - T[0]
    assert np.isclose(gap, embedding_error(k, Z[first]) + embedding_error(k, Z[~first]))


def test_equal_sizes_have_one_pvalue():
    """prop-same-pvalue through the test itself."""
    for seed in range(10):
        X, Y = samples(8, 8, seed=seed)
        assert mmd_test(Gaussian(1.0), X, Y, n_permutations=99, rng=seed).pvalue == mmd_test(
            Gaussian(1.0), X, Y, n_permutations=99, rng=seed, unbiased=True).pvalue


def test_the_excess_over_the_null_in_fractions():
    """prop-mmd-unbalanced, part 2: all samples of three points, all splits, exactly."""
    K = [[2 * (s == t) + (1 + s * t) for t in (0, 1, 3)] for s in (0, 1, 3)]
    p = [Fraction(2, 3), Fraction(1, 6), Fraction(1, 6)]
    q = [Fraction(1, 5), Fraction(1, 5), Fraction(3, 5)]
    form = lambda a, c: sum(a[i] * K[i][j] * c[j]  # noqa: E731
                            for i in range(3) for j in range(3))
    true = form(p, p) + form(q, q) - 2 * form(p, q)
    V = [sum(a[i] * K[i][i] for i in range(3)) - form(a, a) for a in (p, q)]
    for m, n in ((2, 4), (3, 2)):
        N, excess = m + n, Fraction(0)
        for Z in product(range(3), repeat=N):
            chance = prod(p[i] for i in Z[:m]) * prod(q[i] for i in Z[m:])
            values = []
            for first in combinations(range(N), m):
                a = [n if i in first else -m for i in range(N)]         # times 1/mn
                w = [sum(v for v, z in zip(a, Z, strict=True) if z == t) for t in range(3)]
                values.append(form(w, w))
            gap = values[0] - Fraction(sum(values), len(values))
            excess += chance * gap / (m * n) ** 2
        spread = (Fraction(1, m) - Fraction(1, n)) * (V[0] - V[1])
        assert excess == Fraction(N - 2, N - 1) * true + spread


def test_five_against_a_hundred_points():
    """prop-mmd-unbalanced: the spread of the small sample speaks in the biased statistic."""
    rng, found = np.random.default_rng(0), {}
    for sd in (0.15, 4.0):
        found[sd] = np.zeros(2)
        for _ in range(100):
            X, Y = rng.normal(0, sd, size=5), rng.normal(size=100)
            found[sd] += [mmd_test(Gaussian(1.0), X, Y, n_permutations=59, rng=rng,
                                   unbiased=u).pvalue <= 0.05 for u in (False, True)]
    # Shares of about 0.04 and 0.27, and 0.85 and 0.67: differences of over three deviations.
    assert found[0.15][0] <= 10 < 15 <= found[0.15][1]
    assert found[4.0][0] > found[4.0][1] + 5
