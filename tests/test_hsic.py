"""Identities of the chapter on the Hilbert–Schmidt independence criterion."""

import pickle
import re
import sys
import tracemalloc
from dataclasses import FrozenInstanceError
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from math import factorial, perm, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rkhs_lit import (
    BoundedHSIC,
    Delta,
    FeatureKernel,
    FunctionKernel,
    GammaTest,
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
    cross_covariance,
    gamma_pvalue,
    hs_norm,
    hsic,
    hsic_biased,
    hsic_gamma_test,
    hsic_gaussian,
    hsic_low_rank,
    hsic_null_moments,
    hsic_test,
    hsic_unbiased,
    mmd2_biased,
    paired,
    pivoted_cholesky,
    polynomial_features,
    tile_sums,
    words,
)
from scipy.spatial.distance import cdist
from scipy.stats import gamma

WORDS = ["a cat", "a dog and a cat", "birds", "the cat", "dog", "a bird and a dog", "the the", "a"]
WHOLE = st.integers(-9, 9)
# An HSIC of zero is in doubt: it may be a small one that rounding hides.
in_doubt = pytest.mark.filterwarnings("ignore::rkhs_lit.conventions.PrecisionWarning")


def sample(n=30, seed=0, d=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return x, x[:, :1] ** 2 + 0.5 * rng.normal(size=(n, 1))


def exact(M):
    return np.array(np.asarray(M).tolist(), dtype=object)


def symmetric(n, seed):
    M = np.random.default_rng(seed).integers(-9, 10, size=(n, n))
    return exact(M + M.T)


def whole_gram(n, seed):
    """A positive definite matrix of whole numbers."""
    M = np.random.default_rng(seed).integers(-3, 4, size=(n, 3))
    return exact(M @ M.T)


def tuples(K, L, indices):
    """Sum of K_ij (L_ij - 2 L_iq + L_qr) over some quadruples."""
    return sum(K[i, j] * (L[i, j] - 2 * L[i, q] + L[q, r]) for i, j, q, r in indices)


def shuffled(L, order):
    return L[np.ix_(order, order)]


# -- the population ---------------------------------------------------------

TABLE = exact([[4, 1], [1, 2], [0, 2]]) * Fraction(1, 10)
K3, L2 = exact([[2, 1, 0], [1, 2, 1], [0, 1, 2]]), exact([[3, 1], [1, 1]])


def test_population_hsic_is_a_minus_two_b_plus_d_and_an_mmd_and_a_norm():
    """thm-hsic-population, in fractions on a table; the expectations by enumeration."""
    px, py = TABLE.sum(axis=1), TABLE.sum(axis=0)
    cells = list(product(range(3), range(2)))
    A = sum(TABLE[a] * TABLE[b] * K3[a[0], b[0]] * L2[a[1], b[1]] for a in cells for b in cells)
    B = sum(TABLE[a] * px[s] * py[t] * K3[a[0], s] * L2[a[1], t]
            for a in cells for s in range(3) for t in range(2))
    D = (sum(px[i] * px[s] * K3[i, s] for i in range(3) for s in range(3))
         * sum(py[i] * py[s] * L2[i, s] for i in range(2) for s in range(2)))
    W = TABLE - np.multiply.outer(px, py)
    norm = np.trace(K3 @ W @ L2 @ W.T)
    gap = W.ravel()
    assert norm == A - 2 * B + D == gap @ np.kron(K3, L2) @ gap == Fraction(13, 100)
    # The same number from a sample of ten pairs with these frequencies.
    x, y = (np.repeat([c[s] for c in cells], [int(10 * TABLE[c]) for c in cells]) for s in (0, 1))
    assert hsic_biased(K3[np.ix_(x, x)], L2[np.ix_(y, y)]) == norm


def test_hsic_is_the_mmd_between_the_pairs_and_all_pairs_and_the_norm_of_the_operator():
    """thm-hsic-population and thm-hsic-biased for points of several kinds."""
    x, y = sample(25, d=2)
    for k, l, X, Y in ((Gaussian(0.7), Laplace(1.0), x, y), (Polynomial(2), Matern(1.5, 1.0), x, y),
                       (FeatureKernel(words), Delta(), WORDS, list("aabbabba"))):
        n = len(X)
        i, j = np.repeat(np.arange(n), n), np.tile(np.arange(n), n)
        def take(Z, index):
            return [Z[s] for s in index] if isinstance(Z, list) else Z[index]
        everyone = Pairs(take(X, i), take(Y, j))
        roads = [hsic_biased(k(X), l(Y)), hs_norm(cross_covariance(k, l, X, Y)) ** 2,
                 mmd2_biased(TensorProduct(k, l), Pairs(X, Y), everyone),
                 hsic(k, l, X, Y, unbiased=False)]
        assert np.allclose(roads, roads[0], rtol=1e-9)


def test_hsic_is_the_squared_covariance_of_explicit_features():
    """thm-hsic-biased: with listed features the operator is a covariance matrix."""
    x, y = sample(40, 1)
    P, Q = polynomial_features(x, 2), polynomial_features(y, 3)
    square = np.sum(np.cov(P.T, Q.T, bias=True)[:3, 3:] ** 2)
    assert np.isclose(hsic(Polynomial(2), Polynomial(3), x, y, unbiased=False), square, rtol=1e-9)
    covariance = np.cov(x[:, 0], y[:, 0], bias=True)[0, 1]
    assert np.isclose(hsic(Linear(), Linear(), x, y, unbiased=False), covariance**2, rtol=1e-10)


@given(st.integers(0, 200))
def test_hsic_of_a_table_with_characteristic_kernels_is_zero_for_products_only(seed):
    """thm-hsic-independence, part 1: HSIC >= the smallest eigenvalues times |W|²."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(6, 0.5)).reshape(3, 2)
    K, L = Gaussian(1.0)([0.0, 1.0, 2.5]), Laplace(1.0)([0.0, 2.0])
    W = P - np.outer(P.sum(axis=1), P.sum(axis=0))
    value = np.trace(K @ W @ L @ W.T)
    floor = np.linalg.eigvalsh(K)[0] * np.linalg.eigvalsh(L)[0] * np.sum(W**2)
    assert value >= floor * (1 - 1e-9) and (floor > 0 or np.allclose(W, 0))


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_twins_with_equal_embeddings_are_dependent_but_have_hsic_zero(degree):
    """thm-hsic-independence, part 2, with the binomial twins, exactly."""
    x = [j for j in range(degree + 2) for _ in range(perm(degree + 1, j) // factorial(j))]
    parity = [j % 2 for j in x]
    L = exact([[int(a == b) for b in parity] for a in parity])
    values = [hsic_biased(exact([[(1 + a * b) ** d for b in x] for a in x]), L)
              for d in (degree, degree + 1)]
    assert values[0] == 0 < values[1]


# -- the estimates, exactly -------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_the_v_statistic_is_the_sum_over_all_tuples_and_the_trace(n):
    """thm-hsic-biased, as equal fractions."""
    K, L = whole_gram(n, 1), whole_gram(n, 2)
    H = exact([[Fraction(n * (i == j) - 1, n) for j in range(n)] for i in range(n)])
    value = hsic_biased(K, L)
    assert isinstance(value, Fraction)
    assert value == Fraction(tuples(K, L, product(range(n), repeat=4)), n**4)
    assert value == np.trace(K @ H @ L @ H) / n**2


@pytest.mark.parametrize("n", [4, 5, 6, 7, 8])
def test_unbiased_hsic_equals_the_sum_over_distinct_tuples(n):
    """thm-hsic-unbiased: the O(n²) formula and all 4-tuples, as equal fractions."""
    K, L = symmetric(n, n), symmetric(n, n + 100)
    value = hsic_unbiased(K, L)
    assert isinstance(value, Fraction)
    assert value == Fraction(tuples(K, L, permutations(range(n), 4)), perm(n, 4))
    # The diagonals are not used.
    assert value == hsic_unbiased(K + np.diag(np.arange(n)).astype(object), L)


def test_the_three_u_statistics_by_their_own_tuples():
    """eq-hsic-u and lem-coincidences: each sum, and the seven kinds of coincidences."""
    n, K, L = 6, symmetric(6, 3), symmetric(6, 4)
    A = Fraction(sum(K[i, j] * L[i, j] for i, j in permutations(range(n), 2)), perm(n, 2))
    B = Fraction(sum(K[i, j] * L[i, q] for i, j, q in permutations(range(n), 3)), perm(n, 3))
    D = Fraction(sum(K[i, j] * L[q, r] for i, j, q, r in permutations(range(n), 4)), perm(n, 4))
    assert hsic_unbiased(K, L) == A - 2 * B + D
    K0, L0 = K.copy(), L.copy()
    np.fill_diagonal(K0, 0)
    np.fill_diagonal(L0, 0)
    S, T, U = (K0 * L0).sum(), K0.sum(axis=0) @ L0.sum(axis=0), K0.sum() * L0.sum()
    assert perm(n, 3) * B == T - S and perm(n, 4) * D == U - 4 * T + 2 * S
    kinds = {}
    for (i, j), (q, r) in product(permutations(range(n), 2), repeat=2):
        kind = q == i, q == j, r == i, r == j
        kinds[kind] = kinds.get(kind, 0) + 1
    assert len(kinds) == 7
    assert all(count == perm(n, 4 - sum(kind)) for kind, count in kinds.items())


@settings(max_examples=30)
@given(st.integers(4, 9), st.integers(0, 99), st.integers(-5, 5), st.integers(-5, 5))
def test_constants_and_linearity(n, seed, c, d):
    """Constants added to a matrix are invisible; both estimates are linear (thm-balanced-labels)."""
    K, L, M = whole_gram(n, seed), whole_gram(n, seed + 1), whole_gram(n, seed + 2)
    for f in (hsic_biased, hsic_unbiased):
        assert f(K + abs(c), L + abs(d)) == f(K, L) == f(L, K)
        assert f(K + 3 * M, L) == f(K, L) + 3 * f(M, L)
    order = np.random.default_rng(seed).permutation(n)
    assert hsic_unbiased(shuffled(K, order), shuffled(L, order)) == hsic_unbiased(K, L)


def enumeration(n):
    """Expectations of both estimates over all samples of a joint distribution, and what they
    should be."""
    values = [(0, 0), (1, 2), (2, 1), (1, 0)]
    c = exact([Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 8)])
    K = exact([[(1 + a * b) ** 2 for b, _ in values] for a, _ in values])
    L = exact([[1 + a * b for _, b in values] for _, a in values])
    h = c @ (K * L) @ c - 2 * (c @ ((K @ c) * (L @ c))) + (c @ K @ c) * (c @ L @ c)
    Kt, Lt = (M - (M @ c)[:, None] - (M @ c)[None] + c @ M @ c for M in (K, L))
    E = c @ (Kt.diagonal() * Lt.diagonal())
    J = (c @ Kt.diagonal()) * (c @ Lt.diagonal())
    u = b = total = Fraction(0)
    for s in combinations_with_replacement(range(4), n):
        orders = factorial(n) // prod(factorial(s.count(i)) for i in range(4))
        chance = orders * prod(c[i] for i in s)
        total += chance
        pick = np.ix_(s, s)
        u += chance * hsic_unbiased(K[pick], L[pick]) if n > 3 else 0
        b += chance * hsic_biased(K[pick], L[pick])
    assert total == 1
    return h, E, J, u, b


@pytest.mark.parametrize("n", [4, 5, 6])
def test_the_unbiased_estimate_has_the_right_mean_over_all_samples(n):
    """thm-hsic-no-bias, by exact enumeration."""
    h, _, _, mean, _ = enumeration(n)
    assert mean == h == Fraction(1899, 4096)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_bias_of_the_v_statistic(n):
    """thm-hsic-bias, by exact enumeration."""
    h, E, J, _, mean = enumeration(n)
    assert mean == (Fraction((n - 1) * (n**2 - 2 * n + 2), n**3) * h
                    + Fraction((n - 1) ** 2, n**3) * E + Fraction(n - 1, n**3) * J)


def test_the_bias_under_independence():
    """thm-hsic-bias, last claim: the mean of the V-statistic is (n-1) J / n², in fractions."""
    p, q, n = [Fraction(1, 3), Fraction(2, 3)], [Fraction(1, 4), Fraction(3, 4)], 3
    x, y = [0, 2], [1, 3]
    mean = Fraction(0)
    for s in product(product(range(2), repeat=2), repeat=n):
        K = exact([[x[a] * x[b] for b, _ in s] for a, _ in s])
        L = exact([[y[a] * y[b] for _, b in s] for _, a in s])
        mean += prod(p[a] * q[b] for a, b in s) * hsic_biased(K, L)
    J = prod(sum(w * v * v for w, v in zip(W, V)) - sum(w * v for w, v in zip(W, V)) ** 2
             for W, V in ((p, x), (q, y)))
    assert mean == Fraction(n - 1, n**2) * J


# -- floating point ---------------------------------------------------------


@settings(max_examples=30)
@given(st.integers(4, 12), st.integers(0, 99))
def test_floating_point_agrees_with_fractions(n, seed):
    """The two code paths of hsic_biased, hsic_unbiased and hsic_null_moments."""
    K, L = whole_gram(n, seed), whole_gram(n, seed + 7)
    Kf, Lf = K.astype(float), L.astype(float)
    size = float(np.abs(Kf).max() * np.abs(Lf).max()) + 1e-300
    for f in (hsic_biased, hsic_unbiased):
        assert abs(float(f(K, L)) - f(Kf, Lf)) <= 1e-13 * size
        assert isinstance(f(Kf, Lf), float)
        assert f(K, Lf) == f(Kf, Lf) == f(K.astype(int), Lf.tolist())
    for a, b, power in zip(hsic_null_moments(K, L), hsic_null_moments(Kf, Lf), (1, 2)):
        assert abs(float(a) - b) <= 1e-12 * size**power


def test_whole_numbers_of_any_size():
    """Exact matrices know no overflow; with a matrix of floats they become floats, scaled."""
    K, L = whole_gram(5, 1), whole_gram(5, 2)
    big = 10**400
    assert hsic_biased(big * K, L) == big * hsic_biased(K, L)
    assert hsic_unbiased(big * K, L) == big * hsic_unbiased(K, L)
    with pytest.raises(ValueError, match="K and L must be positive definite"):
        hsic_biased(-big * K, L)
    for f in (hsic_biased, hsic_unbiased, hsic_null_moments):
        with pytest.raises(ValueError, match="^L"):
            f(K.astype(float), big * L)
        assert np.allclose(f(10**100 * K, 1e-100 * L.astype(float)),
                           f(K.astype(float), L.astype(float)), rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1e7, 1e150])
def test_hsic_is_homogeneous_at_every_scale(scale):
    """No overflow and no lost digits for large or small kernels."""
    x, y = sample(20)
    K, L = Gaussian(1.0)(x), Laplace(1.0)(y)
    big, k = scale * K, scale * Gaussian(1.0)
    for f, u in ((hsic_biased, False), (hsic_unbiased, True)):
        assert np.isclose(f(big, L) / scale, f(K, L), rtol=1e-11)
        assert np.isclose(hsic(k, Laplace(1.0), x, y, unbiased=u) / scale, f(K, L), rtol=1e-11)
        assert np.isclose(f(big, L / scale), f(K, L), rtol=1e-11)
    test, other = (hsic_test(m, Laplace(1.0), x, y, n_permutations=50, rng=1)
                   for m in (k, Gaussian(1.0)))
    assert test.pvalue == other.pvalue and np.isclose(test.statistic / scale, other.statistic)
    fast, slow = (hsic_gamma_test(m, Laplace(1.0), x, y) for m in (k, Gaussian(1.0)))
    assert np.isclose(fast.pvalue, slow.pvalue, rtol=1e-6) and np.isclose(fast.std / scale,
                                                                         slow.std)


def test_a_wide_kernel_keeps_its_digits():
    """prop-hsic-bandwidth, part 2: constants do not cost digits; K~ is 1e-8 of K here."""
    x, y = sample(40)
    wide = Gaussian(1e4)
    square = np.cov(x[:, 0], y[:, 0], bias=True)[0, 1] ** 2
    # The entries of K are rounded to 1e-16 of which 1e-8 is left after centring.
    for value in (hsic(wide, wide, x, y, unbiased=False), hsic_biased(wide(x), wide(y)),
                  hsic_test(wide, wide, x, y, n_permutations=1, rng=0).statistic):
        assert np.isclose(1e16 * value, square, rtol=1e-5)
    a = hsic_test(Gaussian(1e6), Gaussian(1e6), x, x, n_permutations=99, rng=0)
    assert a.pvalue == 0.01


@pytest.mark.parametrize("widths", [(1.0, 4e7), (4e7, 1.0)])
def test_the_gamma_test_doubts_the_smaller_spread(widths):
    """thm-hsic-null-moments: tr(HKH)/n, in units of the kernel; one below 1e-14 is rounding."""
    x, y = sample(12)
    k, l = (Gaussian(s) for s in widths)
    K, L = k(x), l(y)
    spread = min(1 - K.mean(), 1 - L.mean())
    assert 0 < spread < 1e-14
    with pytest.warns(PrecisionWarning, match="^the spread of the features") as record:
        found = hsic_gamma_test(k, l, x, y)
    said = float(re.search("came out as (.*), but", str(record[0].message))[1])
    # Both are sums of entries near 1, which leave multiples of 2^-53.
    assert abs(said - spread) <= 4 * 2.0**-53 and 0 < said < 1e-14 and found.pvalue == 1


def test_a_gamma_test_with_wide_kernels_is_the_one_with_linear_kernels():
    """thm-hsic-null-moments: 1 - ‖x - y‖²/(2σ²) has the centred part ⟨x, y⟩/σ², and the
    p-value has no unit; what is left over is of the order of σ⁻²."""
    x, y = sample(20)
    y = y + 3 * x
    wide = hsic_gamma_test(Gaussian(1e4), Gaussian(1e4), x, y)
    line = hsic_gamma_test(Linear(), Linear(), x, y)
    assert np.isclose(wide.pvalue, line.pvalue, rtol=1e-4) and line.pvalue < 0.1
    assert np.isclose(1e16 * wide.statistic, line.statistic, rtol=1e-4)


def test_the_error_of_a_doubtful_estimate():
    """thm-hsic-biased, fine print: 16 ε times the largest k(x, x) times the spread of L, the
    same with K and L exchanged, and the product of the largest row means."""
    x, y = np.repeat([0.0, 1.0, 3.0], 3), np.tile([0.0, 1.0, 5.0], 3)       # independent
    k, l = Gaussian(2e3), Gaussian(4e3)
    K, L = k(x), l(y)
    p, q = 1 - K.mean(), 1 - L.mean()
    K, L = K - np.median(K), L - np.median(L)
    r, s = (np.abs(M.mean(axis=1)).max() for M in (K, L))
    error = 16 * np.finfo(float).eps * (q + p + r * s)
    with pytest.warns(PrecisionWarning, match=f"known to within {error:.2g} only"):
        hsic(k, l, x, y, unbiased=False)


def test_a_narrow_kernel_sees_nothing():
    """prop-hsic-bandwidth, part 1."""
    x, y = sample(30)
    tiny = Gaussian(1e-9)
    assert np.isclose(hsic(tiny, tiny, x, y, unbiased=False), 29 / 900, rtol=1e-13)
    assert abs(hsic(tiny, tiny, x, y)) < 1e-15
    result = hsic_test(tiny, tiny, x, y, n_permutations=20, rng=0)
    assert result.pvalue == 1 == hsic_gamma_test(tiny, tiny, x, y).pvalue
    assert np.allclose(result.null_distribution, 29 / 900)


@pytest.mark.parametrize("n", [4, 5, 60, 5000])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Gaussian(0.1), Laplace(1.0), Linear(), Polynomial(3)])
def test_low_rank_hsic_is_within_its_bound(n, kernel):
    """thm-hsic-low-rank: also at ranks that are far too small, and for points that repeat."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 2)).round(1)
    Y = 0.3 * X**2 + rng.normal(size=(n, 2))
    exact = hsic(kernel, Gaussian(1.0), X, Y)
    for tol, rank in ((1e-2, 100), (1e-6, 100), (1e-6, 3), (1e-11, 100)):
        found = hsic_low_rank(kernel, Gaussian(1.0), X, Y, tol=tol, max_rank=rank)
        assert abs(found.value - exact) <= found.error
        assert isinstance(found, BoundedHSIC) and max(found.ranks) <= rank
    sharp = hsic_low_rank(Linear(), Polynomial(2), X, Y)
    assert sharp.ranks == (2, min(n, 6)) and sharp.error < 1e-9 * np.abs(X).max() ** 2 * np.abs(Y).max() ** 4


def test_the_bound_counts_what_either_factor_misses():
    """thm-hsic-low-rank: one factor is exact, so only one term of the bound is left."""
    x = np.linspace(-2, 2, 300)
    smooth, line = Gaussian(0.3), Linear()
    for k, l in ((smooth, line), (line, smooth)):
        found = hsic_low_rank(k, l, x, x, max_rank=3)
        away = abs(found.value - hsic(k, l, x, x))
        assert 1e-4 < away <= found.error < 2.0


def test_the_bound_term_by_term():
    """thm-hsic-low-rank: ρ‖PL‖ + ρ'‖PK‖ + ρρ' over n(n - 3), for factors that miss nothing but
    the 1e-12 of the traces that is always allowed, and 16 ε times the centred traces."""
    x = np.arange(12.0)
    y = 5 * x % 12
    k, l, n, eps = Gaussian(1.0), Laplace(0.5), 12, np.finfo(float).eps
    K, L = k(x), l(y)
    found = hsic_low_rank(k, l, x, y, tol=1e-11)
    sizes = (n * (n - 3) * hsic_unbiased(M, M) for M in (K, L))
    p, q = map(np.sqrt, sizes)
    traces = (n - K.sum() / n) * (n - L.sum() / n)
    error = 1e-12 * n * (p + q) + (1e-12 * n) ** 2 + 16 * eps * traces
    assert np.isclose(found.error, error / (n * (n - 3)), rtol=1e-3, atol=0)
    assert found.ranks == (12, 12)
    assert np.isclose(found.value, hsic_unbiased(K, L), rtol=1e-9)


def test_the_bound_counts_the_points_that_no_round_was_content_with():
    """thm-hsic-low-rank: one huge point hides a whole coordinate from the search for landmarks, in
    every round; the bound must still hold what is missed at all points, not at 65536 of them."""
    n = 150_000
    first, seen = (np.linspace(0, n - 1, many).astype(int) for many in (4096, 2**16))
    signs = np.random.default_rng(0).choice([-1.0, 1.0], n)
    X = np.column_stack([np.zeros(n), signs])
    X[np.setdiff1d(first, seen)[1000], 0] = 1e6
    found = hsic_low_rank(Linear(), Linear(), X, signs)
    F, g = X - X.mean(axis=0), signs - signs.mean()      # unbiased HSIC from the linear factors
    a, b = np.sum(F**2, axis=1), g**2
    K1, L1, S = F @ F.sum(axis=0) - a, g * g.sum() - b, np.sum((F.T @ g) ** 2) - a @ b
    exact = (S - 2 * K1 @ L1 / (n - 2) + K1.sum() * L1.sum() / ((n - 1) * (n - 2))) / (n * (n - 3))
    assert found.ranks[0] == 1 and np.isclose(exact, 1.0, rtol=1e-3)
    assert 0.9 < abs(found.value - exact) <= found.error < 2.1


def test_the_rank_and_the_share_that_low_rank_hsic_aims_at(monkeypatch):
    """thm-hsic-low-rank: up to 500 columns, and all but a millionth of the traces."""
    module, seen = sys.modules["rkhs_lit.hsic"], []
    landmarks = module._landmarks
    monkeypatch.setattr(module, "_landmarks", lambda Phi, tol, rank: (
        seen.append((tol, rank)) or landmarks(Phi, tol, rank)))
    hsic_low_rank(Gaussian(1.0), Linear(), *sample(20))
    hsic_low_rank(Gaussian(1.0), Linear(), *sample(20), tol=0.1, max_rank=3)
    assert seen == [(1e-6, 500)] * 2 + [(0.1, 3)] * 2


def test_low_rank_hsic_finds_rare_points():
    """thm-hsic-low-rank: landmarks are looked for where most is missed."""
    x = np.concatenate([np.zeros(5000), [100.0, 200.0, 300.0]])
    found = hsic_low_rank(Gaussian(1.0), Gaussian(1.0), x, x, tol=1e-10)
    assert found.ranks == (4, 4)
    assert abs(found.value - hsic(Gaussian(1.0), Gaussian(1.0), x, x)) <= found.error < 1e-10


def test_unbiased_hsic_is_an_inner_product():
    """lem-hsic-u-inner, in fractions: the projection has row sums zero and gives the estimate."""
    rng = np.random.default_rng(0)
    n = 6
    K, L = (np.vectorize(Fraction, otypes=[object])(M + M.T)
            for M in rng.integers(-5, 6, size=(2, n, n)))

    def projected(M):
        M = M - np.diag(M.diagonal())
        rows = M.sum(axis=1)
        a = (rows - rows.sum() / Fraction(2 * (n - 1))) / Fraction(n - 2)
        A = np.add.outer(a, a)
        return M - A + np.diag(A.diagonal())

    assert not projected(K).sum(axis=1).any()
    assert (projected(K) * projected(L)).sum() == n * (n - 3) * hsic_unbiased(K, L)
    zero = K * 0
    assert not projected(np.add.outer(K[0], K[0])).any() and not projected(zero).any()


@pytest.mark.parametrize("n", [256, 257, 700])
def test_tiles_agree_with_gram_matrices(n):
    """prop-tiles: the streamed estimates are those of the matrices, over tile borders."""
    x, y = sample(n, d=2)
    k, l = Gaussian(1.0), Laplace(0.5)
    K, L = k(x), l(y)
    assert np.isclose(hsic(k, l, x, y), hsic_unbiased(K, L), rtol=1e-10)
    assert np.isclose(hsic(k, l, x, y, unbiased=False), hsic_biased(K, L), rtol=1e-11)
    fast = hsic_gamma_test(k, l, x, y)
    mean, variance = hsic_null_moments(K, L)
    assert np.isclose(fast.mean, mean, rtol=1e-10) and np.isclose(fast.std**2, variance, rtol=1e-7, atol=0)


@pytest.mark.parametrize("n", [5, 300])
def test_the_sums_over_tiles_are_those_of_the_matrices(n):
    """thm-hsic-unbiased, prop-tiles: tile_sums by matrices and by tiles, and the estimate that the
    theorem makes of them."""
    x, y = sample(n, d=2)
    Phi, Psi = paired(Gaussian(1.0), Laplace(0.5), x, y)
    K, L = Gaussian(1.0)(x) - 0.5, Laplace(0.5)(y) + 0.25
    *sums, S = tile_sums(Phi, Psi, less=(0.5, -0.25))
    for M, (diagonal, rows, squares) in zip((K, L), sums):
        assert np.allclose(diagonal, M.diagonal(), rtol=1e-12)
        assert np.allclose(rows, M.sum(axis=1), rtol=1e-12, atol=1e-12)
        assert np.isclose(squares, np.sum(M * M), rtol=1e-12)
    assert np.isclose(S, np.sum(K * L), rtol=1e-12)
    *fewer, same = tile_sums(Phi, Psi, less=(0.5, -0.25), squares=False)
    assert same == S and all((p[1] == q[1]).all() for p, q in zip(fewer, sums))
    assert (fewer[0][2] == 0) == (n > 256)
    (a, K1, _), (b, L1, _) = sums
    S, T, U = S - a @ b, (K1 - a) @ (L1 - b), (K1 - a).sum() * (L1 - b).sum()
    value = (S - 2 * T / (n - 2) + U / ((n - 1) * (n - 2))) / (n * (n - 3))
    assert np.isclose(value, hsic(Gaussian(1.0), Laplace(0.5), x, y), rtol=1e-9)
    (c, _, _), (d, _, _), S = tile_sums(Phi, Psi)
    assert (c == 1).all() and (d == 1).all()
    assert np.isclose(S, np.sum((K + 0.5) * (L - 0.25)), rtol=1e-12)
    with pytest.raises(ValueError, match="^Phi and Psi must"):
        tile_sums(Phi, Psi[:3])


@pytest.mark.parametrize("d", [1, 5, 20])
@pytest.mark.parametrize("reach", [0.01, 6.6, 6.7, 60.0])
def test_the_sums_of_gaussian_tiles_by_one_product_or_by_differences(d, reach):
    """eq-gaussian-exp2: on both sides of 6.66 bandwidths from the mean, and for points far from
    zero, as near to the sums of the entries as these are to those of fourteen digits."""
    X = np.random.default_rng(d).normal(size=(300, d))
    X = np.concatenate([X, -X])
    X *= reach / np.sqrt((X**2).sum(axis=1).max())
    for far in (0.0, 2.0**26):
        Z, k = (X + far) - far, Gaussian(1.0)         # what is left of X near 2**26
        K, one = np.exp(-cdist(Z, Z, "sqeuclidean") / 2), 1.0
        Phi, Psi = paired(k, Linear(), Z + far, np.zeros(600))
        (diagonal, K1, KK), _, S = tile_sums(Phi, Psi, less=(one, -one))
        assert (diagonal == 0).all() and np.isclose(S, np.sum(K - one), rtol=1e-12, atol=1e-11)
        assert np.allclose(K1, (K - one).sum(axis=1), rtol=1e-12, atol=1e-13)
        assert np.isclose(KK, np.sum((K - one) ** 2), rtol=1e-12, atol=1e-13)


def test_what_most_entries_have_in_common_is_taken_off_each():
    """prop-hsic-bandwidth, part 2, in tiles: HSIC of wide kernels is a covariance, squared, though
    the entries of K~ are 1e-6 of those of K."""
    x, y = sample(600)
    wide = Gaussian(1e3)
    square = np.cov(x[:, 0], y[:, 0], bias=True)[0, 1] ** 2
    # The next feature of x, its square, has the weight 1e-6 and a covariance ten times as large.
    assert np.isclose(1e12 * hsic(wide, wide, x, y, unbiased=False), square, rtol=1e-3)
    assert np.isclose(hsic(wide, wide, x, y), hsic_unbiased(wide(x), wide(y)), rtol=1e-6)


def test_features_may_be_handed_on():
    """def-synthesis: a map that was made before is as good as points."""
    x, y = sample(20)
    k, l = Gaussian(1.0), Laplace(1.0)
    Phi, Psi = paired(k, l, x, y)
    for f in (hsic, hsic_gamma_test):
        assert f(k, l, Phi, Psi) == f(k, l, x, y)
    assert hsic_test(k, l, Phi, Psi, rng=0).pvalue == hsic_test(k, l, x, y, rng=0).pvalue


def test_streaming_needs_no_gram_matrix():
    """hsic and hsic_gamma_test on 3000 points, whose matrix would take 72 MB."""
    x = np.random.default_rng(0).normal(size=3000)
    tracemalloc.start()
    hsic(Gaussian(1.0), Gaussian(1.0), x, x)
    hsic_gamma_test(Gaussian(1.0), Gaussian(1.0), x, x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e7


@pytest.mark.filterwarnings("error")
def test_repeated_points_and_constant_variables():
    """thm-hsic-biased, singular Gram matrices: duplicates are harmless, a constant has HSIC zero,
    and there is no doubt of it."""
    x = np.array([0.0, 0, 1, 1, 2, 2, 2])
    assert np.isclose(hsic(Gaussian(1.0), Delta(), x, x, unbiased=False),
                      hsic_biased(Gaussian(1.0)(x), Delta()(x)))
    constant = np.full(7, 3.3)
    for k in (Gaussian(1.0), Linear(), Delta(), Polynomial(3), 1e-9 * Polynomial(2) + Linear()):
        assert hsic(k, k, x, constant, unbiased=False) == 0 == hsic(k, k, constant, x)
        assert hsic_biased(k(x), np.full((7, 7), 1.3)) == 0 == hsic_unbiased(k(x), np.ones((7, 7)))
        assert hsic_test(k, k, x, constant, n_permutations=9, rng=0).pvalue == 1
        assert hsic_gamma_test(k, k, x, constant).pvalue == 1
    zero = 0.0 * Linear()
    assert hsic(zero, Linear(), x, x) == 0 == hsic(zero, Linear(), x, x, unbiased=False)
    assert hsic_test(zero, Linear(), x, x, n_permutations=9, rng=0).pvalue == 1
    assert hsic(Linear(), Linear(), [2.0], [3.0], unbiased=False) == 0


# -- many samples -----------------------------------------------------------


def test_the_estimates_tend_to_the_closed_form():
    """thm-hsic-no-bias and cor-hsic-consistent: 400 samples of 50 pairs; the bias by thm-hsic-bias."""
    rng, k, S = np.random.default_rng(0), Gaussian(1.0), np.array([[1.0, 0.6], [0.6, 1.0]])
    truth = hsic_gaussian(k, k, S)
    draws = [rng.multivariate_normal([0, 0], S, size=50).T for _ in range(400)]
    u, b = (np.array([hsic(k, k, x, y, unbiased=f) for x, y in draws]) for f in (True, False))
    assert abs(u.mean() - truth) < 4 * u.std() / 20
    assert b.mean() - truth > 10 * b.std() / 20 / 4
    assert np.abs(np.sqrt(b) - np.sqrt(truth)).mean() < 3 / np.sqrt(50)


# -- the test ---------------------------------------------------------------


@pytest.mark.parametrize("k, l", [(Gaussian(1.0), Gaussian(0.8)), (Delta(), Gaussian(1.0) + Delta()),
                                  (Linear(), Laplace(0.3)), (Polynomial(2), Linear())])
def test_the_null_distribution_is_that_of_permuted_points(k, l):
    """eq-hsic-permuted and prop-hsic-factors: both roads against the definition."""
    x, y = sample(70, d=2)
    result = hsic_test(k, l, x, y, n_permutations=40, rng=5)
    orders = np.random.default_rng(5).permuted(np.tile(np.arange(70), (40, 1)), axis=1)
    slow = np.array([hsic(k, l, x, y[o], unbiased=False) for o in orders])
    actual = hsic(k, l, x, y, unbiased=False)
    assert isinstance(result, PermutationTest)
    assert np.allclose(result.null_distribution, slow, rtol=1e-7)
    assert np.isclose(result.statistic, actual, rtol=1e-7)
    assert result.pvalue == (1 + np.sum(slow >= actual * (1 - 1e-9))) / 41


def test_factors_and_matrices_give_the_same_statistics_within_the_bound():
    """prop-hsic-factors, with factors that miss a lot: T^ <= T <= T^ + delta."""
    x, y = sample(80, d=2)
    k, l = Gaussian(0.7), Gaussian(0.7)
    K, L = centre(k(x)), centre(l(y))
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(80), (60, 1)), axis=1)
    exact_values = np.array([np.sum(K * shuffled(L, o)) for o in orders])
    for rank in (3, 8, 15):
        F, G = (pivoted_cholesky(m, z, tol=0, max_rank=rank) for m, z in ((k, x), (l, y)))
        e, f = 80 - np.sum(F**2), 80 - np.sum(G**2)
        F, G = F - F.mean(axis=0), G - G.mean(axis=0)
        low = np.array([np.sum((F.T @ G[o]) ** 2) for o in orders])
        delta = e * np.linalg.norm(G.T @ G) + f * np.linalg.norm(F.T @ F) + e * f
        assert (low <= exact_values + 1e-9).all() and (exact_values <= low + delta + 1e-9).all()


@pytest.mark.parametrize("k", [Gaussian(1.0), Laplace(0.2)])
def test_blocks_of_permutations_do_not_matter(k):
    """eq-hsic-permuted: by factors and by matrices, many permutations begin like few."""
    x, y = sample(200, d=1)
    many, few = (hsic_test(k, k, x, y, n_permutations=B, rng=3) for B in (300, 100))
    assert np.array_equal(many.null_distribution[:100], few.null_distribution)
    assert many.statistic == few.statistic
    # Factors of 114 columns do not do for the second kernel: nothing may be missing.
    assert np.isclose(many.statistic, hsic(k, k, x, y, unbiased=False), rtol=1e-9)


def test_factors_where_the_rank_is_small_and_matrices_where_it_is_not(monkeypatch):
    """prop-hsic-factors: ranks of two and three of 60 points, and the full one of 200."""
    module, (x, y) = sys.modules["rkhs_lit.hsic"], sample(200)
    slow, wide = module._by_matrices, Laplace(0.2)
    monkeypatch.setattr(module, "_by_matrices", lambda *a: pytest.fail("there are factors"))
    result = hsic_test(3 * Polynomial(2), 5 * Polynomial(3), x[:60], y[:60], n_permutations=5, rng=0)
    assert np.isclose(result.statistic, 15 * hsic(Polynomial(2), Polynomial(3), x[:60], y[:60],
                                                  unbiased=False), rtol=1e-9)
    monkeypatch.setattr(module, "_by_matrices", slow)
    monkeypatch.setattr(module, "_by_factors", lambda *a: pytest.fail("factors miss too much"))
    for k, l in ((wide, wide), (wide, Polynomial(2)), (Polynomial(2), wide)):
        result = hsic_test(k, l, x, y, n_permutations=5, rng=0)
        assert np.isclose(result.statistic, hsic(k, l, x, y, unbiased=False), rtol=1e-9)


@pytest.mark.parametrize("y", [[0, 2, 3, 7, 11], [0, 0, 1, 1, 5]])
def test_the_level_is_kept_over_all_pairings(y):
    """cor-hsic-level, by exact enumeration of all pairings, with and without ties."""
    K, L = (exact([[(1 + a * b) ** 2 for b in v] for a in v]) for v in ([-3, -1, 0, 2, 6], y))
    T = [hsic_biased(K, shuffled(L, o)) for o in permutations(range(5))]
    p = [Fraction(sum(t >= actual for t in T), 120) for actual in T]
    for alpha in {*p}:
        assert sum(v <= alpha for v in p) <= 120 * alpha
    if len({*y}) == 5:
        assert sorted(p) == [Fraction(j, 120) for j in range(1, 121)]


def test_ties_are_not_broken_by_rounding():
    """prop-permutation-rounding: with two classes of labels most permutations are tied."""
    x = np.array([0, 0, 0, 0, 1, 1, 1, 1.0])
    # The actual pairing attains the maximum, and so do 2 of the 70 different pairings.
    for k in (Delta(), Gaussian(0.37), Linear()):
        result = hsic_test(k, k, x, x, n_permutations=3000, rng=0)
        expected = 2 / 70
        assert abs(result.pvalue - expected) < 4 * np.sqrt(expected / 3000)


@pytest.mark.parametrize("share, ties", [(0.98, True), (1.02, False)])
def test_pairings_tie_that_differ_by_1e_10_of_the_largest_value(share, ties):
    """prop-permutation-rounding, on both sides of the tolerance of 1e-10 of the norms of the two
    centred Gram matrices: n² HSIC is (1 + d)², (1 - 2d)² and (2 - d)²."""
    d = share * 4e-10 / 6                          # both norms are two, so 6d is close to 4e-10
    result = hsic_test(Linear(), Linear(), [-1.0, 1 - d, d], [-1.0, 0.0, 1.0],
                       n_permutations=60, rng=0)
    below = 9 * (result.statistic - result.null_distribution)
    near, same = np.sum(below > d), np.sum(below <= d)
    assert np.allclose(below[below > d], 6 * d, rtol=1e-4, atol=0) and min(near, same) > 9
    assert result.pvalue == (1 + same + ties * near) / 61


def test_what_factors_miss_counts_as_a_tie():
    """prop-hsic-factors: a feature too small for the factor decides between two pairings."""
    a, b = [-1.0, 0.0, 1e-9, 1.0], [1.4e-6, -7e-7, 7e-7, 0.0]
    x, y = [(1 + 0.02 * s, t) for s, t in zip(a, b)], [0, 0, 1, 1]
    k = FunctionKernel(lambda s, t: s[0] * t[0] + s[1] * t[1])
    assert pivoted_cholesky(k, x, tol=1e-12).shape == (4, 1)
    X = np.vectorize(Fraction, otypes=[object])(np.array(x))
    L = exact([[int(s == t) for t in y] for s in y])
    T, other = hsic_biased(X @ X.T, L), hsic_biased(X @ X.T, shuffled(L, [0, 2, 1, 3]))
    f = X[:, :1]
    assert other > T and hsic_biased(f @ f.T, shuffled(L, [0, 2, 1, 3])) < hsic_biased(f @ f.T, L)
    result = hsic_test(k, Delta(), x, y, n_permutations=600, rng=0)
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(4), (600, 1)), axis=1)
    above = sum(hsic_biased(X @ X.T, shuffled(L, o)) >= T for o in orders)
    assert result.pvalue == (1 + above) / 601 and 0.6 < result.pvalue < 0.73


@in_doubt
def test_rounding_of_the_kernel_is_no_evidence():
    """Below the last digit of the entries of K there is nothing to see, even for y = x."""
    x = sample(30)[0]
    for k in (Gaussian(3e7), Laplace(1e16)):
        assert hsic_test(k, k, x, x, n_permutations=50, rng=0).pvalue == 1


def test_dependence_is_found_and_independence_mostly_not():
    """thm-hsic-power: the smallest p-value for a parabola, and few false alarms."""
    rng, k = np.random.default_rng(0), Gaussian(0.5)
    x = rng.uniform(-1, 1, size=200)
    y = x**2 + 0.1 * rng.normal(size=200)
    found = hsic_test(k, k, x, y, n_permutations=199, rng=0)
    assert found.pvalue == 1 / 200 and abs(np.corrcoef(x, y)[0, 1]) < 0.2
    pvalues = [hsic_test(k, k, rng.normal(size=40), rng.normal(size=40), n_permutations=19,
                         rng=rng).pvalue for _ in range(200)]
    # Binomial with mean 10 and standard deviation 3.1.
    assert sum(p <= 0.05 for p in pvalues) <= 22
    assert hsic_test(FeatureKernel(words), FeatureKernel(words), WORDS, WORDS, n_permutations=99,
                     rng=0).pvalue == 0.01


@pytest.mark.parametrize("y", [[-3, -1, 0, 2, 6], [0, 2, 3, 7, 11], [0, 0, 1, 1, 5]])
def test_the_bound_for_the_share_of_permutations(y):
    """eq-hsic-pvalue-bound over all pairings, with Markov's step on the way, in fractions."""
    K, L = (exact([[(1 + a * b) ** 2 for b in v] for a in v]) for v in ([-3, -1, 0, 2, 6], y))
    T = [hsic_biased(K, shuffled(L, o)) for o in permutations(range(5))]
    for actual in {*T}:
        share = Fraction(sum(t >= actual for t in T), 120)
        assert share * actual <= hsic_null_moments(K, L)[0]
        assert share * actual <= Fraction(max(K.diagonal()) * max(L.diagonal()), 4)


# -- the null distribution --------------------------------------------------


@pytest.mark.parametrize("n", [4, 5, 6])
def test_mean_and_variance_over_all_permutations(n):
    """thm-hsic-null-moments, as equal fractions over all n! permutations."""
    K, L = whole_gram(n, 5), whole_gram(n, 6)
    T = [hsic_biased(K, shuffled(L, o)) for o in permutations(range(n))]
    mean = sum(T) / len(T)
    assert hsic_null_moments(K, L) == (mean, sum(t * t for t in T) / len(T) - mean**2)


def test_the_fifteen_patterns_of_a_centred_matrix():
    """thm-hsic-null-moments: the sum of M_ij M_kl over each pattern of coincidences."""
    n, M = 5, whole_gram(5, 9) * Fraction(1)
    M = M - M.mean(axis=1, keepdims=True)
    M = M - M.mean(axis=0)
    t, q, s = M.trace(), (M.diagonal() ** 2).sum(), (M * M).sum()
    sums = {}
    for index in product(range(n), repeat=4):
        pattern = tuple(index.index(v) for v in index)
        i, j, k, l = index
        sums[pattern] = sums.get(pattern, 0) + M[i, j] * M[k, l]
    expected = {(0, 0, 0, 0): q, (0, 0, 2, 2): t * t - q, (0, 1, 0, 1): s - q, (0, 1, 1, 0): s - q,
                (0, 0, 0, 3): -q, (0, 0, 2, 0): -q, (0, 1, 0, 0): -q, (0, 1, 1, 1): -q,
                (0, 0, 2, 3): 2 * q - t * t, (0, 1, 2, 2): 2 * q - t * t, (0, 1, 0, 3): 2 * q - s,
                (0, 1, 1, 3): 2 * q - s, (0, 1, 2, 0): 2 * q - s, (0, 1, 2, 1): 2 * q - s,
                (0, 1, 2, 3): t * t + 2 * s - 6 * q}
    assert sums == expected and len(sums) == 15


def test_the_gamma_test_uses_the_exact_moments_and_the_gamma_tail():
    """hsic_gamma_test against SciPy's gamma distribution and permutations."""
    x, y = sample(60)
    k, l = Gaussian(1.0), Gaussian(0.7)
    mean, variance = hsic_null_moments(k(x), l(y))
    result = hsic_gamma_test(k, l, x, y)
    assert isinstance(result, GammaTest)
    assert np.isclose(result.statistic, hsic_biased(k(x), l(y)), rtol=1e-10)
    assert np.isclose(result.pvalue, gamma.sf(result.statistic, mean**2 / variance,
                                              scale=variance / mean), rtol=1e-6)
    assert np.isclose(result.null_distribution.sf(result.statistic), result.pvalue, rtol=1e-6)
    null = hsic_test(k, l, x, y, n_permutations=2000, rng=0).null_distribution
    assert abs(null.mean() - result.mean) < 4 * result.std / np.sqrt(2000)
    assert abs(null.std() / result.std - 1) < 0.15
    with pytest.raises(FrozenInstanceError):
        result.pvalue = 0.0


@pytest.mark.parametrize("mean, std", [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (-1.0, 1.0)])
def test_no_gamma_distribution_without_a_mean_and_a_deviation(mean, std):
    """thm-hsic-null-moments: both parameters are positive, and then they are those of the gamma
    distribution."""
    with pytest.raises(ValueError, match="^null_distribution needs a positive mean"):
        GammaTest(1.0, 1.0, mean, std).null_distribution  # noqa: B018
    found = GammaTest(1.0, 1.0, 1e-9 + abs(mean), 1e-9 + std).null_distribution
    assert np.allclose([found.mean(), found.std()], [1e-9 + abs(mean), 1e-9 + std], atol=0)


def test_factors_that_miss_too_much_are_not_used():
    """prop-hsic-factors: 80 landmarks of 100 miss a thousandth of a Laplace kernel, beside a
    linear kernel whose factor is short; the statistic is that of the whole matrices."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    y = x + rng.normal(size=100)
    found = hsic_test(Laplace(1.0), Linear(), x, y, n_permutations=1, rng=0)
    exact = hsic(Laplace(1.0), Linear(), x, y, unbiased=False)
    assert np.isclose(found.statistic, exact, rtol=1e-10)


def test_a_kernel_that_is_zero_has_no_rank():
    """thm-hsic-low-rank: its HSIC is zero, without any column and without error."""
    found = hsic_low_rank(Gaussian(1.0), 0.0 * Gaussian(1.0), np.arange(5.0), np.arange(5.0))
    assert (found.value, found.error, found.ranks) == (0.0, 0.0, (0, 0))


def test_the_gamma_tail_matches_two_moments():
    """thm-hsic-null-moments: SciPy's gamma tail; nothing that varies, nothing to object to."""
    for T, m, v in ((2.0, 1.0, 0.5), (0.3, 2.0, 7.0), (-1.0, 1.0, 1.0)):
        assert np.isclose(gamma_pvalue(T, m, v), gamma.sf(T, m**2 / v, scale=v / m), rtol=1e-12)
    assert gamma_pvalue(2.0, 1.0, 0.0) == gamma_pvalue(2.0, 0.0, 1.0) == 1
    assert gamma_pvalue(2.0, -1e-20, 1.0) == gamma_pvalue(2.0, 1.0, -1e-20) == 1   # rounding


def test_the_level_of_the_gamma_test_is_near_its_nominal_value():
    """Calibration: 400 samples of independent variables, level 0.05 within four standard errors."""
    rng, k = np.random.default_rng(1), Gaussian(1.0)
    p = np.array([hsic_gamma_test(k, k, rng.normal(size=60), rng.normal(size=60)).pvalue
                  for _ in range(400)])
    assert abs(np.mean(p <= 0.05) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 400)
    assert abs(np.mean(p <= 0.5) - 0.5) < 4 * np.sqrt(0.25 / 400)


def test_distance_covariance_is_four_times_hsic():
    """ex-hsic-distance-covariance, from double-centred distance matrices."""
    x, y = sample(20, d=2)
    k = FunctionKernel(lambda s, t: (np.linalg.norm(s) + np.linalg.norm(t)
                                     - np.linalg.norm(np.subtract(s, t))) / 2)
    square = np.mean(centre(cdist(x, x)) * centre(cdist(y, y)))
    assert np.isclose(square, 4 * hsic(k, k, x, y, unbiased=False), rtol=1e-9)


# -- bad input --------------------------------------------------------------

G4 = np.eye(4)
K1 = Gaussian(1.0)


def test_hsic_of_kernels_is_not_negative():
    """thm-hsic-biased: tr(KHLH) >= 0 for Gram matrices, in floats and in fractions; 1 on the
    diagonal and c beside it is one for n = 4 if and only if -1/3 <= c <= 1."""
    for c, positive in ((3.0, False), (1.0, True)):
        K = np.where(np.eye(4) > 0, 1.0, c)
        for one, other in ((K, G4), (exact(K.astype(int)), exact(np.eye(4, dtype=int)))):
            if positive:
                assert hsic_biased(one, other) == 0
                continue
            with pytest.raises(ValueError, match="K and L must be positive definite"):
                hsic_biased(one, other)
    triangle = exact(np.triu(np.ones((4, 4), int)))
    for f in (hsic_biased, hsic_unbiased, hsic_null_moments):
        with pytest.raises(ValueError, match="^K must be square and symmetric"):
            f(triangle, triangle)
    with pytest.raises(ValueError, match="^HSIC of K and L is not finite"):
        hsic_biased(1e200 * G4, 1e200 * G4)
    assert np.isclose(hsic_biased(1e150 * G4, 1e150 * G4), 1e300 * hsic_biased(G4, G4))


def test_records_cannot_be_changed():
    x, y = sample(20, d=2)
    for value, name in ((hsic_gamma_test(K1, K1, x, y), "std"),
                        (hsic_low_rank(K1, K1, x, y), "error")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, 0)
        assert pickle.loads(pickle.dumps(value)) == value and "np." not in repr(value)


@settings(max_examples=20)
@given(st.lists(WHOLE, min_size=4, max_size=8), st.integers(0, 99))
@in_doubt
def test_whole_numbers_and_lists_are_points_too(x, seed):
    y = np.random.default_rng(seed).integers(-9, 10, size=len(x))
    assert np.isclose(hsic(Linear(), Linear(), x, y.tolist()),
                      hsic_unbiased(np.outer(x, x), np.outer(y, y)), atol=1e-9)


@pytest.mark.parametrize("k", [Linear(), 2.5 * Linear(), Linear() + Gaussian(1.0),
                               Mapped(Linear(), lambda X: 3 * X)],
                         ids=["linear", "scaled", "sum", "mapped"])
def test_points_far_from_zero_cost_no_digits(k):
    """lem-features-moved: the points of a variable may be moved."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 5, size=(14, 2)) * 1.0
        y = x[:, :1] + rng.integers(0, 4, size=(14, 1))
        for f in (hsic, lambda *a: hsic(*a, unbiased=False),
                  lambda *a: hsic_test(*a, n_permutations=49, rng=0).statistic,
                  lambda *a: hsic_test(*a, n_permutations=49, rng=0).pvalue,
                  lambda *a: hsic_gamma_test(*a).std, lambda *a: hsic_gamma_test(*a).pvalue):
            near = f(k, k, x, y)
            assert np.isclose(f(k, k, x + [1e8, -1e8], y - 1e8), near, rtol=1e-10)
            assert np.isclose(f(k, k, x, y + 1e12), near, rtol=1e-10)


def test_linear_hsic_of_far_points_in_fractions():
    """thm-hsic-biased, thm-hsic-unbiased: points near 1e8, the matrices in fractions."""
    x, y = 1e8 + np.array([0.0, 1, 3, 2, 0.5]), np.array([2.0, 0, 1, 4, 1]) - 1e8
    K, L = (np.multiply.outer(*2 * [np.array(list(map(Fraction, z.tolist())))]) for z in (x, y))
    assert np.isclose(hsic(Linear(), Linear(), x, y), float(hsic_unbiased(K, L)), rtol=1e-13)
    assert np.isclose(hsic(Linear(), Linear(), x, y, unbiased=False), float(hsic_biased(K, L)),
                      rtol=1e-13)


def test_digits_that_a_matrix_or_a_polynomial_has_lost_are_missed():
    """def-precision: no estimate from Gram matrices whose centred parts are rounding errors."""
    x, y = 1e8 + np.array([0.0, 1, 3, 2, 0.5, 7]), 1e8 + np.array([2.0, 0, 1, 4, 1, 0])
    K, L, k = np.outer(x, x), np.outer(y, y), Polynomial(2)
    for call in (lambda: hsic_biased(K, L), lambda: hsic_unbiased(K, L),
                 lambda: hsic(k, k, x, y), lambda: hsic(k, k, x, y, unbiased=False),
                 lambda: hsic_test(k, k, x, y, n_permutations=9, rng=0),
                 lambda: hsic_gamma_test(k, k, x, y)):
        with pytest.warns(PrecisionWarning):
            call()
