"""Identities of the chapter on the maximum mean discrepancy."""

import tracemalloc
import warnings
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rkhs_lit import (
    Delta,
    FeatureKernel,
    Features,
    FunctionKernel,
    Gaussian,
    GaussianEmbedding,
    Laplace,
    Linear,
    Mapped,
    Matern,
    Pairs,
    Polynomial,
    PrecisionWarning,
    RKHSFunction,
    TensorProduct,
    centre,
    embedding_distance,
    embedding_error,
    embedding_inner,
    gaussian_bumps,
    inner,
    mean_embedding,
    median_heuristic,
    mmd2_biased,
    mmd2_unbiased,
    moved,
    norm,
    normalised,
    polynomial_features,
    sample_maps,
    substrings,
    witness,
)
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from scipy.special import erfc
from scipy.stats import energy_distance
from sklearn.metrics.pairwise import rbf_kernel

EPS = np.finfo(float).eps
NUMBERS = st.integers(-400, 400).map(lambda v: v / 100)
# A difference of zero is in doubt: it may be a small one that rounding hides.
in_doubt = pytest.mark.filterwarnings("ignore::rkhs_lit.conventions.PrecisionWarning")
WORDS = ["aabab", "abba", "babba", "bb", "abab", "ba", "aab"]


def samples(m=12, n=9, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, d)), rng.normal(size=(n, d)) * 1.3 + 0.4


def block_means(K, m):
    """The biased statistic from the blocks of a Gram matrix."""
    return K[:m, :m].mean() + K[m:, m:].mean() - 2 * K[:m, m:].mean()


# -- three ways -----------------------------------------------------------


@given(st.integers(1, 7), st.integers(1, 7), st.sampled_from([0.0, 1.0, 2.5]), st.integers(0, 99))
def test_mmd_is_the_distance_between_the_means_of_explicit_features(m, n, c, seed):
    """prop-mmd-feature-means, with the monomials of a polynomial kernel."""
    X, Y = samples(m, n, seed=seed)
    gap = polynomial_features(X, 3, c).mean(axis=0) - polynomial_features(Y, 3, c).mean(axis=0)
    size = np.sum(polynomial_features(np.vstack([X, Y]), 3, c) ** 2)
    assert np.isclose(mmd2_biased(Polynomial(3, c), X, Y), gap @ gap, rtol=1e-9, atol=1e-13 * size)


@given(arrays(float, (5, 2), elements=NUMBERS), arrays(float, (3, 2), elements=NUMBERS))
@in_doubt
def test_mmd_is_the_sum_of_three_block_means(X, Y):
    """eq-mmd-biased, against scikit-learn's Gram matrix."""
    K = rbf_kernel(np.vstack([X, Y]), gamma=0.5 / 0.7**2)
    # scikit-learn's distances lose half of the digits for close points.
    assert np.isclose(mmd2_biased(Gaussian(0.7), X, Y), block_means(K, 5), atol=1e-7)


@pytest.mark.parametrize("kernel, X, Y", [
    (Gaussian(0.8), *samples()),
    (Matern(1.5, 1.0), *samples(300, 270, 1)),
    (Laplace(0.8), [0.0, 1.0, 1.0], [2.0]),
    (FeatureKernel(substrings(2)), WORDS[:4], WORDS[4:]),
    (Delta(), ["a", "b", "a"], ["b", "c"]),
    (TensorProduct(Linear(), Delta()), Pairs([1.0, 2.0], ["a", "b"]), Pairs([3.0], ["a"])),
], ids=["gaussian", "matern", "repeated", "strings", "delta", "pairs"])
def test_the_norm_of_the_witness_and_its_mean_difference_are_the_mmd(kernel, X, Y):
    """thm-mmd-three, parts 1 and 3, for points of every kind."""
    w, square = witness(kernel, X, Y), mmd2_biased(kernel, X, Y)
    assert isinstance(w, RKHSFunction) and len(w.points) == len(X) + len(Y)
    assert np.isclose(norm(w) ** 2, square, rtol=1e-10)
    assert np.isclose(w(X).mean() - w(Y).mean(), square, rtol=1e-10)
    assert np.allclose(w(X), kernel(X).mean(axis=1) - kernel(X, Y).mean(axis=1))


def test_the_witness_attains_the_supremum_that_an_optimiser_finds():
    """thm-mmd-three, part 2: a maximisation that knows nothing of the solution."""
    k, X, Y = Laplace(1.0), np.array([-1.0, 0.2]), np.array([0.5, 2.0, 2.5])
    Z = np.concatenate([X, Y])
    K, gap = k(Z), k(Z, X).mean(axis=1) - k(Z, Y).mean(axis=1)
    found = minimize(lambda b: -b @ gap, np.ones(5), jac=lambda b: -gap, method="SLSQP",
                     options={"ftol": 1e-14},
                     constraints={"type": "ineq", "fun": lambda b: 1 - b @ K @ b,
                                  "jac": lambda b: -2 * K @ b})
    assert np.isclose(-found.fun, np.sqrt(mmd2_biased(k, X, Y)), rtol=1e-6)
    w = witness(k, X, Y)
    # The optimum is flat: an error of 1e-7 in the value is 1e-4 in f.
    assert np.allclose(K @ found.x, (w / norm(w))(Z), atol=1e-3)


@given(st.integers(0, 500))
def test_no_function_of_norm_one_has_a_larger_difference_of_means(seed):
    """thm-mmd-three, part 2: E f(X) - E f(Y) = <f, w> <= MMD."""
    rng = np.random.default_rng(seed)
    X, Y = samples(6, 5, seed=seed)
    f = RKHSFunction(Gaussian(0.9), rng.normal(size=(4, 2)), rng.normal(size=4))
    difference = f(X).mean() - f(Y).mean()
    assert np.isclose(difference, inner(f, witness(Gaussian(0.9), X, Y)), atol=1e-12)
    assert abs(difference) <= norm(f) * np.sqrt(mmd2_biased(Gaussian(0.9), X, Y)) + 1e-12


@given(arrays(float, (4, 3), elements=NUMBERS), arrays(float, (6, 3), elements=NUMBERS))
def test_the_linear_kernel_sees_the_difference_of_means(X, Y):
    """prop-mmd-two-features, part 1; also with every point a mean of others."""
    gap = X.mean(axis=0) - Y.mean(axis=0)
    assert np.isclose(mmd2_biased(Linear(), X, Y), gap @ gap, atol=1e-13 * (1 + np.sum(X**2)
                                                                           + np.sum(Y**2)))
    mu, nu = X.mean(axis=0)[None], Y.mean(axis=0)[None]
    assert np.allclose(witness(Linear(), X, Y)(np.eye(3)), gap, atol=1e-12)
    assert np.isclose(mmd2_biased(Linear(), mu, nu), gap @ gap, atol=1e-11)


def test_features_x_see_means_and_features_x_and_square_see_variances():
    """prop-mmd-two-features, part 2, on distributions with chosen moments."""
    both = Linear() + Linear() ** 2
    x = np.array([-1.0, 1.0])                                # mean 0, variance 1
    shifted, wide = x + 1.5, 2 * x
    shape = np.array([-2.0, 0, 0, 0, 0, 0, 0, 2.0])          # mean 0, variance 1
    assert np.isclose(mmd2_biased(Linear(), x, shifted), 2.25)
    assert np.isclose(mmd2_biased(both, x, shifted), 2.25 + 2.25**2)
    assert mmd2_biased(Linear(), x, wide) < 1e-15
    assert mmd2_biased(both, x, shape) < 1e-15
    assert np.isclose(mmd2_biased(both, x, wide), 9)
    assert mmd2_biased(Gaussian(1.0), x, shape) > 0.01


def test_gaussian_mmd_is_the_squared_difference_of_blurred_densities():
    """prop-mmd-blurred in one and two dimensions; both lines."""
    t = np.linspace(-12, 12, 1201)
    X, Y = samples(5, 4, 1)
    gap = gaussian_bumps(X, t, 0.8).mean(axis=0) - gaussian_bumps(Y, t, 0.8).mean(axis=0)
    assert np.isclose(mmd2_biased(Gaussian(0.8), X, Y), 0.02 * gap @ gap, rtol=1e-10)
    sigma, s = 0.8, 0.8 / np.sqrt(2)

    def density(points, t, width):
        D = np.sum((t[:, None] - points) ** 2, axis=2)
        return np.mean(np.exp(-D / (2 * width**2)), axis=1) / (2 * np.pi * width**2)

    X, Y = samples(3, 2, 2)
    u = np.arange(-6, 6, 0.1)
    grid = np.array(list(product(u, u)))
    square = 0.01 * np.sum((density(X, grid, s) - density(Y, grid, s)) ** 2)
    assert np.isclose(mmd2_biased(Gaussian(sigma), X, Y), 2 * np.pi * sigma**2 * square, rtol=1e-8)
    few = grid[::500]
    assert np.allclose(witness(Gaussian(sigma), X, Y)(few), 2 * np.pi * sigma**2 * (
        density(X, few, sigma) - density(Y, few, sigma)))


def laplace_embedding(t, b, sigma):
    parts = [np.exp(v * t / b) * erfc((sigma / b + v * t / sigma) / np.sqrt(2)) for v in (-1, 1)]
    return sigma * np.sqrt(2 * np.pi) / (4 * b) * np.exp(sigma**2 / (2 * b**2)) * sum(parts)


@pytest.mark.parametrize("b, sigma", [(np.sqrt(0.5), np.sqrt(0.5)), (1.3, 0.4), (0.5, 1.1)])
def test_the_embedding_of_a_laplace_distribution(b, sigma):
    """prop-laplace-embedding, by quadrature."""
    for t in (0.0, 0.7, -2.0):
        integral = quad(lambda x: np.exp(-abs(x) / b) / (2 * b)
                        * np.exp(-((x - t) / sigma) ** 2 / 2), -40, 40, points=[0, t])[0]
        assert np.isclose(laplace_embedding(t, b, sigma), integral, rtol=1e-7)


def test_the_witness_of_forty_thousand_draws_streams_and_is_near_the_truth():
    """fig-mmd-witness: N(0, 1) against Laplace(0, √.5) with σ² = .5."""
    n, b = 40_000, np.sqrt(0.5)
    rng, k = np.random.default_rng(1), Gaussian(np.sqrt(0.5))
    X, Y = rng.normal(size=n), rng.laplace(0, b, size=n)
    assert np.isclose(quad(lambda x: x**2 * np.exp(-x / b) / b, 0, 60)[0], 1)  # the variance
    tracemalloc.start()
    w = witness(k, X, Y)
    t = np.linspace(-4, 4, 100)
    values = w(t)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6                        # 80 000 × 100 numbers would be 64 MB
    truth = GaussianEmbedding(k, 0.0, 1.0)(t) - laplace_embedding(t, b, b)
    # Every value is within ‖ŵ - w‖, whose square has the mean (V_P + V_Q)/n < 2/n.
    assert np.abs(values - truth).max() < 3 * np.sqrt(2 / n)
    assert truth[50] < -0.07 and truth[np.abs(t - 1.5).argmin()] > 0.04 and truth[0] < 0


# -- estimators -----------------------------------------------------------


@in_doubt
def test_unbiased_and_bias_by_enumeration_in_fractions():
    """thm-mmd-unbiased, parts 1 and 2: all samples of a small case, exactly."""
    K = [[Fraction((1 + s * t) ** 2) for t in (0, 1, 3)] for s in (0, 1, 3)]
    p = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    q = [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]

    def form(a, c):
        return sum(a[i] * K[i][j] * c[j] for i in range(3) for j in range(3))

    true = form(p, p) + form(q, q) - 2 * form(p, q)
    V = [sum(a[i] * K[i][i] for i in range(3)) - form(a, a) for a in (p, q)]
    for m, n in ((2, 2), (3, 2), (2, 3)):
        means = [Fraction(0), Fraction(0)]
        in_floats = np.zeros(2)
        for S in product(range(3), repeat=m):
            for T in product(range(3), repeat=n):
                chance = prod(p[i] for i in S) * prod(q[i] for i in T)
                xx, yy = (sum(K[i][j] for i in U for j in U) for U in (S, T))
                dx, dy = (sum(K[i][i] for i in U) for U in (S, T))
                xy = sum(K[i][j] for i in S for j in T)
                values = [(xx - dx) / (m * (m - 1)) + (yy - dy) / (n * (n - 1))
                          - Fraction(2, m * n) * xy,
                          xx / m**2 + yy / n**2 - Fraction(2, m * n) * xy]
                means = [a + chance * v for a, v in zip(means, values)]
                X, Y = [[0, 1, 3][i] for i in S], [[0, 1, 3][i] for i in T]
                ours = [f(Polynomial(2), X, Y) for f in (mmd2_unbiased, mmd2_biased)]
                # Ten terms of at most 100.
                assert np.allclose(ours, [float(v) for v in values], rtol=0, atol=1e-12)
                in_floats += float(chance) * np.array(ours)
        assert means == [true, true + V[0] / m + V[1] / n]
        assert np.allclose(in_floats, [float(v) for v in means], rtol=1e-12)


@pytest.mark.parametrize("kernel, X, Y", [
    (Gaussian(0.8), *samples()),
    (Linear(), *samples(270, 300, 1)),
    (normalised(FeatureKernel(substrings(2))), WORDS[:4], WORDS[4:]),
], ids=["gaussian", "linear", "strings"])
def test_the_two_estimates_differ_by_the_errors_of_the_embeddings(kernel, X, Y):
    """thm-mmd-unbiased, part 3."""
    difference = mmd2_biased(kernel, X, Y) - mmd2_unbiased(kernel, X, Y)
    assert np.isclose(difference, embedding_error(kernel, X) + embedding_error(kernel, Y),
                      rtol=1e-10)


def test_unbiased_estimate_equals_the_sum_over_distinct_pairs_across_tiles():
    """eq-mmd-unbiased with more points than a tile holds, and unequal numbers."""
    X, Y = samples(530, 300)
    Kx, Ky, Kxy = Laplace(1.0)(X), Laplace(1.0)(Y), Laplace(1.0)(X, Y)
    np.fill_diagonal(Kx, 0.0)
    np.fill_diagonal(Ky, 0.0)
    expected = Kx.sum() / (530 * 529) + Ky.sum() / (300 * 299) - 2 * Kxy.mean()
    assert np.isclose(mmd2_unbiased(Laplace(1.0), X, Y), expected, rtol=1e-10)
    assert np.isclose(mmd2_biased(Laplace(1.0), X, Y), block_means(
        Laplace(1.0)(np.vstack([X, Y])), 530), rtol=1e-10)


def test_unbiased_estimate_can_be_negative_and_biased_cannot():
    """thm-mmd-unbiased: of a sample with itself."""
    X = samples()[0]
    assert mmd2_biased(Gaussian(1.0), X, X.copy()) == 0
    assert np.isclose(mmd2_unbiased(Gaussian(1.0), X, X), -2 * embedding_error(Gaussian(1.0), X))


def test_rounding_never_makes_the_biased_estimate_negative():
    """prop-mmd-feature-means: a sample against itself in another order."""
    values = []
    for seed in range(40):
        X = samples(30, seed=seed)[0]
        values.append(mmd2_biased(Laplace(1.0), X, X[::-1]))
    # Sums of 900 terms of at most one, in two orders.
    assert min(values) == 0 and max(values) < 900 * EPS


def test_estimates_converge_to_the_closed_form_for_normal_distributions():
    """cor-mmd-consistent, thm-gaussian-embedding: within the bound on the error."""
    k, rng = Gaussian(1.0), np.random.default_rng(3)
    S = np.array([[1.0, 0.5], [0.5, 1.0]])
    mu, nu = GaussianEmbedding(k, np.zeros(2), 1.0), GaussianEmbedding(k, [0.5, 0.0], S)
    true = embedding_distance(mu, nu)
    V = [1 - embedding_inner(e, e) for e in (mu, nu)]
    for n in (50, 800):
        gaps, unbiased = [], []
        for _ in range(20):
            X, Y = rng.normal(size=(n, 2)), rng.multivariate_normal([0.5, 0.0], S, size=n)
            gaps.append(abs(np.sqrt(mmd2_biased(k, X, Y)) - true))
            unbiased.append(mmd2_unbiased(k, X, Y))
        assert np.mean(gaps) <= sum(np.sqrt(v / n) for v in V)
        error = np.std(unbiased) / np.sqrt(20)
        assert abs(np.mean(unbiased) - true**2) < 4 * error


def test_statistics_of_many_points_do_not_hold_a_gram_matrix():
    """prop-tiles: two thousand points a sample, in a few megabytes."""
    X, Y = samples(2000, 2000)
    tracemalloc.start()
    mmd2_biased(Gaussian(1.0), X, Y)
    mmd2_unbiased(Gaussian(1.0), X, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12e6                        # one block would be 32 MB


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e150])
def test_estimates_scale_with_the_kernel_and_with_linear_data(scale):
    """prop-mmd-two-features: MMD² of c k is c MMD², and of c X is c² MMD²."""
    X, Y = samples()
    for f in (mmd2_biased, mmd2_unbiased):
        assert np.isclose(f(scale * Gaussian(1.0), X, Y), scale * f(Gaussian(1.0), X, Y), atol=0)
        assert np.isclose(f(Linear(), scale * X, scale * Y), scale**2 * f(Linear(), X, Y), atol=0)


# -- the metric -----------------------------------------------------------


@given(st.integers(0, 10_000))
def test_mmd_is_a_metric_and_bounds_expectations_on_a_finite_set(seed):
    """thm-mmd-metric and eq-mmd-weak with f = g, for weights on four points."""
    rng = np.random.default_rng(seed)
    x, k = [0.0, 0.5, 1.2, 2.0], Gaussian(0.6)
    p, q, r = rng.dirichlet(np.ones(4), size=3)
    mu, nu, xi = (mean_embedding(k, x, w) for w in (p, q, r))
    assert norm(mu - xi) <= norm(mu - nu) + norm(nu - xi) + 1e-12
    assert np.isclose(norm(mu - nu), norm(nu - mu))
    # The smallest eigenvalue of the Gram matrix keeps different vectors apart.
    smallest = np.linalg.eigvalsh(k(x))[0]
    assert norm(mu - nu) ** 2 >= smallest * np.sum((p - q) ** 2) - 1e-12
    g = rng.normal(size=4)
    size = np.sqrt(g @ np.linalg.solve(k(x), g))
    assert abs(g @ (p - q)) <= size * norm(mu - nu) + 1e-9


def test_mmd_tends_to_zero_with_weak_convergence_only():
    """cor-mmd-weak: point masses at 1/r and grids."""
    k = Gaussian(0.5)
    fine = (np.arange(1024) + 0.5) / 1024
    masses = [mmd2_biased(k, [1 / r], [0.0]) for r in (1, 10, 100)]
    assert np.allclose(masses, 2 - 2 * np.exp(-2 / np.array([1.0, 10, 100]) ** 2), rtol=1e-9)
    grids = [mmd2_biased(k, (np.arange(r) + 0.5) / r, fine) for r in (1, 4, 16)]
    assert grids[0] > 20 * grids[1] > 400 * grids[2]
    assert mmd2_biased(k, [0.25], [0.75]) > 0.1


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6),
       st.lists(st.integers(0, 30), min_size=1, max_size=6))
@in_doubt
def test_the_kernel_min_gives_the_area_between_distribution_functions(a, b):
    """prop-mmd-cdf: in whole numbers, and SciPy's energy distance."""
    area = sum((Fraction(sum(x <= u for x in a), len(a)) - Fraction(sum(y <= u for y in b),
                                                                    len(b))) ** 2
               for u in range(30))
    ours = mmd2_biased(FunctionKernel(min), [float(x) for x in a], [float(y) for y in b])
    assert np.isclose(ours, float(area), atol=1e-12)
    assert np.isclose(ours, energy_distance(a, b) ** 2 / 2, atol=1e-12)


def test_the_energy_distance_is_an_mmd_in_the_plane():
    """ex-energy-distance, and for the delta kernel ex-mmd-delta."""
    X, Y = samples(7, 5)

    def distance(A, B):
        return np.mean(np.linalg.norm(A[:, None] - B, axis=2))

    k = FunctionKernel(lambda s, t: (np.linalg.norm(s) + np.linalg.norm(t)
                                     - np.linalg.norm(s - t)) / 2)
    energy = distance(X, Y) - distance(X, X) / 2 - distance(Y, Y) / 2
    assert np.isclose(mmd2_biased(k, X, Y), energy)
    a, b = ["x", "y", "y", "z"], ["y", "z"]
    assert np.isclose(mmd2_biased(Delta(), a, b), 1 / 16 + 0 + 1 / 16)


def test_mmd_of_a_sum_of_kernels_is_the_sum():
    """ex-mmd-sum."""
    X, Y = samples()
    total = mmd2_biased(Gaussian(0.3) + Laplace(2.0), X, Y)
    assert np.isclose(total, mmd2_biased(Gaussian(0.3), X, Y) + mmd2_biased(Laplace(2.0), X, Y))


# -- the median heuristic -------------------------------------------------


@given(st.integers(2, 9), st.integers(1, 3), st.integers(0, 99))
def test_median_heuristic_is_the_median_of_all_distances(n, d, seed):
    """def-median-heuristic, for odd and even numbers of pairs."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    assert np.isclose(median_heuristic(X), np.median(pdist(X)), rtol=1e-14)


@pytest.mark.parametrize("n", [1449, 1500])
@pytest.mark.parametrize("kind", ["normal", "ties", "two values", "tiny"])
def test_median_by_counting_agrees_with_sorting(n, kind):
    """def-median-heuristic in tiles: even and odd numbers of pairs, and ties."""
    rng = np.random.default_rng(0)
    X = {"normal": rng.normal(size=(n, 2)), "ties": rng.integers(0, 4, size=(n, 2)),
         "two values": np.repeat([[0.0], [1.0]], [n // 10, n - n // 10], axis=0)
         + rng.permutation(n)[:, None] * 1e-3,
         "tiny": rng.normal(size=(n, 1)) * 1e-160}[kind]
    assert np.isclose(median_heuristic(X), np.median(pdist(X * 1.0)) if kind != "tiny"
                      else np.median(pdist(X * 1e160)) * 1e-160, rtol=1e-14, atol=0)


def test_median_by_counting_averages_the_two_middle_distances():
    """def-median-heuristic: an even number of pairs with a gap in the middle."""
    # 1450 points in two clusters; b between-pairs and w within-pairs.
    n = 1450
    a = next(a for a in range(1, n) if 2 * a * (n - a) >= n * (n - 1) // 2)
    X = np.concatenate([np.arange(a) * 1e-6, 10 + np.arange(n - a) * 1e-6])
    assert np.isclose(median_heuristic(X), np.median(pdist(X[:, None])), rtol=1e-12)


def test_median_heuristic_streams():
    """def-median-heuristic: 4000 points have eight million pairs."""
    X = samples(4000, 1)[0]
    tracemalloc.start()
    sigma = median_heuristic(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6                        # all distances would be 64 MB
    # Of |x - x'| with x - x' normal of variance 2: the median is √(4 ln 2).
    assert abs(sigma - np.sqrt(4 * np.log(2))) < 0.05
    few = median_heuristic(X, max_points=400, rng=0)
    assert abs(few - sigma) < 0.15 and few != sigma
    assert few == median_heuristic(X, max_points=400, rng=np.random.default_rng(0))
    assert median_heuristic(X[:50], max_points=50, rng=0) == median_heuristic(X[:50])


@pytest.mark.parametrize("scale", [1e-150, 1e-10, 1e10, 1e150, 1e300])
def test_median_heuristic_follows_the_unit(scale):
    """def-median-heuristic: no square overflows or vanishes."""
    X = samples()[0]
    assert np.isclose(median_heuristic(scale * X), scale * median_heuristic(X), rtol=1e-13, atol=0)
    assert np.isclose(median_heuristic(X + 1e6), median_heuristic(X), rtol=1e-8)


def test_median_heuristic_ignores_order_and_accepts_whole_numbers():
    """def-median-heuristic: a function of the set of points."""
    X = samples()[0]
    assert median_heuristic(X[::-1]) == median_heuristic(X)
    assert median_heuristic([0, 1, 5]) == 4.0
    assert median_heuristic(np.array([3, 1])) == 2.0


def test_a_subsample_has_a_distance():
    """def-median-heuristic: one point has none, and neither has a subsample of one."""
    with pytest.raises(ValueError, match="^max_points must be a whole number of at least 2"):
        median_heuristic([0.0, 1.0, 5.0], max_points=1)
    with pytest.raises(ValueError, match="^X must hold at least two points"):
        median_heuristic([0.0])


def test_a_subsample_takes_no_point_twice():
    """def-median-heuristic with max_points: two of three points, in all ways."""
    found = {median_heuristic([0.0, 1.0, 5.0], max_points=2, rng=seed) for seed in range(20)}
    assert found == {1.0, 4.0, 5.0}
    assert median_heuristic([0.0, 1.0, 5.0], max_points=2) in found


# -- bad input ------------------------------------------------------------

GOOD = [0.0, 1.0, 3.0]


@in_doubt
def test_a_result_that_overflows_is_refused_and_one_that_does_not_is_found():
    function = mmd2_biased
    """prop-mmd-feature-means at the end of the range: neither inf nor NaN is returned."""
    large = 1.5e308 * Gaussian(1.0)
    assert function(large, [0.0], [0.0]) == 0
    assert np.isclose(function(large, [0.0], [1.0]), 1.5e308 * (2 - 2 * np.exp(-0.5)))
    with pytest.raises(ValueError, match="kernel .*is not finite"):
        function(large, [0.0], [50.0])


def test_the_maps_of_two_samples_have_their_points_and_names():
    """def-synthesis for two samples of one kind; too few points are refused by name."""
    Phi, Psi = sample_maps(Linear(), [1.0, 2.0, 6.0], [0.0, 2.0], 2)
    assert np.array_equal(Phi.gram(Psi), np.outer([1.0, 2, 6], [0.0, 2]))
    assert (Phi.name, Psi.name) == ("X", "Y")
    with pytest.raises(ValueError, match="^Y must hold at least 3 points, got 2"):
        sample_maps(Linear(), GOOD, [0.0, 2.0], 3)


@pytest.mark.parametrize("X, Y, name", [([1.0], GOOD, "^X"), (GOOD, [1.0], "^Y")])
def test_the_unbiased_estimate_needs_two_points_of_each(X, Y, name):
    with pytest.raises(ValueError, match=name):
        mmd2_unbiased(Gaussian(1.0), X, Y)
    assert mmd2_biased(Gaussian(1.0), X, Y) > 0


@pytest.mark.parametrize("defect, refused", [(0.9e-8, False), (1.1e-8, True)])
def test_kernels_that_are_positive_definite_to_eight_digits_have_a_distance(defect, refused):
    """prop-rounded-gram: 1 + d (1 - st) has MMD² = -4 d for the points 1 and -1; four entries
    of size one go into it."""
    kernel = FunctionKernel(lambda s, t: 1 + defect * (1 - s * t))
    if refused:
        with pytest.raises(ValueError, match="^kernel must be positive definite"):
            mmd2_biased(kernel, [1.0], [-1.0])
    else:
        with pytest.warns(PrecisionWarning):          # is it zero, or a little more?
            assert mmd2_biased(kernel, [1.0], [-1.0]) == 0
    assert np.isclose(mmd2_unbiased(kernel, [1.0, 1.0], [-1.0, -1.0]), -4 * defect, atol=0)


@pytest.mark.parametrize("X, match, good, width", [
    ([1.0, 1.0, 1.0], "^X must have a positive median", [1.0, 1.0, 2.0], 1.0),
    ([0.0, 0.0, 0.0, 0.0, 1.0], "^X must have a positive median", [0.0, 0.0, 0.0, 1.0, 1.0], 1.0),
    (np.zeros(1500), "^X must have a positive median", np.repeat([0.0, 2.0], 750), 2.0),
    ([1.7e308, -1.7e308], "^X must have a positive median.*too large", [8e307, -8e307], 1.6e308),
    ([0.0, 1e-200, 2e-200, 3e-200, 1e10], "^X must have a positive median.*coincide beside",
     [0.0, 1e-200, 2e-200, 3e-200], 1.5e-200),
])
def test_a_median_that_is_no_width_is_refused(X, match, good, width):
    """def-median-heuristic: half of the pairs coincide, or are too far apart; one pair fewer
    makes a width."""
    with pytest.raises(ValueError, match=match):
        median_heuristic(X)
    assert np.isclose(median_heuristic(good), width, rtol=1e-14, atol=0)


AFFINE = [Linear(), 2.5 * Linear(), Linear() + Gaussian(1.0), Mapped(Linear(), lambda X: 3 * X)]


@pytest.mark.parametrize("kernel", AFFINE, ids=["linear", "scaled", "sum", "mapped"])
def test_points_far_from_zero_cost_no_digits(kernel):
    """lem-features-moved: the points may be moved where the features move by one vector."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, y = rng.integers(0, 5, size=(12, 2)) * 1.0, rng.integers(1, 6, size=(9, 2)) * 1.0
        for f in (mmd2_biased, mmd2_unbiased, lambda k, X, Y: embedding_error(k, X)):
            for far in (np.array([1e8, -1e8]), 1e12):
                assert np.isclose(f(kernel, x + far, y + far), f(kernel, x, y), rtol=1e-12)


@pytest.mark.parametrize("kernel", [*AFFINE, Polynomial(2), FeatureKernel(substrings(2))],
                         ids=["linear", "scaled", "sum", "mapped", "polynomial", "strings"])
def test_moved_features_keep_their_differences(kernel):
    """lem-features-moved: HKH stays, whole samples and both together; the linear K gets small."""
    X, Y = samples(6, 5)
    if isinstance(kernel, FeatureKernel):
        X, Y = WORDS[:4], WORDS[4:]
    Phi, Psi = Features(kernel, X), Features(kernel, Y, "Y")
    near, other = moved(Phi, Psi)
    assert other.name == "Y" and len(other) == len(Y)
    pooled = [np.block([[F.gram(), F.gram(G)], [G.gram(F), G.gram()]])
              for F, G in ((Phi, Psi), (near, other))]
    assert np.allclose(centre(pooled[0]), centre(pooled[1]), atol=1e-12)
    assert np.allclose(centre(moved(Phi)[0].gram()), centre(Phi.gram()), atol=1e-12)
    if kernel == Linear():
        far = moved(Features(kernel, X + 2**20))[0].gram()
        assert np.allclose(far, moved(Phi)[0].gram(), atol=1e-8)


def test_a_value_below_the_rounding_of_its_terms_is_in_doubt():
    """def-precision: below 4ε times the sum 1 + 1 + 2 of the averages, here two points."""
    for steps, in_doubt_of in ((7, True), (9, False)):      # MMD² = 2 · steps · ε
        k = FunctionKernel(lambda s, t, near=1 + steps * EPS: near if s == t else 1.0)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            assert mmd2_biased(k, [0.0], [1.0]) == 2 * steps * EPS
        assert any(w.category is PrecisionWarning for w in heard) == in_doubt_of


def test_the_linear_statistics_of_far_points_in_fractions():
    """prop-mmd-two-features: the squared difference of the means, of points near 1e8."""
    x, y = 1e8 + np.array([0.25, 1.5, 3.0]), 1e8 + np.array([2.0, 0.5])
    mean = lambda z: sum(map(Fraction, z.tolist())) / len(z)  # noqa: E731
    assert np.isclose(mmd2_biased(Linear(), x, y), float((mean(x) - mean(y)) ** 2), rtol=1e-14)


@pytest.mark.parametrize("kernel", [Polynomial(2), Linear() ** 2 + Linear()],
                         ids=["polynomial", "sum"])
def test_digits_that_cannot_be_kept_are_missed(kernel):
    """def-precision: a polynomial kernel sees where the points are, and has no digits left."""
    x, y = 1e8 + np.array([0.0, 1, 3, 2, 2]), 1e8 + np.array([2.0, 0, 1, 4, 4])
    for f in (mmd2_biased, mmd2_unbiased):
        with pytest.warns(PrecisionWarning):
            f(kernel, x, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            f(kernel, x - 1e8, y - 1e8)
