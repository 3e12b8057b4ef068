"""The identities of the chapter on kernels, one test each."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from itertools import product as ordered

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from scipy.spatial.distance import cdist
from scipy.stats import poisson
from sklearn.metrics import pairwise

import rkhs_lit.kernels as module
from rkhs_lit import (
    BSpline,
    Conjugated,
    Delta,
    Exponential,
    FeatureKernel,
    Features,
    FunctionKernel,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Mapped,
    Polynomial,
    RKHSFunction,
    Scaled,
    Sigmoid,
    Sinc,
    Taylor,
    TensorProduct,
    as_points,
    as_sequence,
    gaussian_bumps,
    gaussian_features,
    gram_dot,
    is_positive_definite,
    lag_vectors,
    polynomial_features,
    squared_distances,
    words,
    whole,
)

EPS = np.finfo(float).eps

# Numbers of moderate size: identities are tested, not overflow.
numbers = st.floats(-3, 3, allow_subnormal=False).map(lambda v: round(v, 6))


def points(dimension=2, least=1, most=7):
    return st.integers(least, most).flatmap(
        lambda n: arrays(float, (n, dimension), elements=numbers))


KERNELS = [
    Linear(), Polynomial(3, 2.5), Polynomial(2, c=0.0), Gaussian(0.8), Laplace(1.3),
    Exponential(), Taylor([1.0, 0.0, 2.0]), Delta(), Sinc(1.5), BSpline(1.2),
    BSpline(2.0, degree=1), Linear() + Gaussian(1.0), 2.5 * Laplace(1.0),
    Linear() * Gaussian(1.0), Gaussian(2.0) ** 3,
    Mapped(Linear(), lambda X: np.sin(as_points(X))),
    Conjugated(Gaussian(1.0), lambda X: as_points(X).sum(axis=1)),
    FunctionKernel(lambda x, y: float(np.exp(-np.abs(x - y).sum()))),
]


def sample(n=9, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


# -- definition, points and Gram matrices ---------------------------------


@pytest.mark.parametrize("k", KERNELS, ids=lambda k: repr(k)[:40])
def test_gram_matrix_entries_symmetry_and_diagonal(k):
    """def-gram: K_ij = k(x_i, y_j), one entry at a time."""
    X, Y = sample(5), sample(4, seed=1)
    K = k(X, Y)
    assert isinstance(k, Kernel) and K.shape == (5, 4)
    for i in range(5):
        for j in range(4):
            assert np.isclose(K[i, j], k(X[i:i + 1], Y[j:j + 1])[0, 0], rtol=1e-12)
    assert np.array_equal(k(X), k(X).T)
    assert np.allclose(k(X), k(X, X), rtol=1e-12)
    assert np.allclose(k.diag(X), k(X).diagonal(), rtol=1e-12)


def test_a_one_dimensional_array_is_points_of_the_line():
    """def-points."""
    x = np.array([0.0, 1.0, 3.0])
    assert as_points(x).shape == (3, 1)
    assert as_points([1, 2]).dtype == float
    assert np.array_equal(Gaussian(1.0)(x), Gaussian(1.0)(x[:, None]))
    assert as_sequence(range(3)) == range(3)
    assert as_sequence({"b"}) == ["b"]


@pytest.mark.parametrize("k", KERNELS, ids=lambda k: repr(k)[:40])
def test_kernels_are_positive_definite_on_random_points(k):
    """lem-features-pd, on more points than features where there are few."""
    for seed in range(3):
        assert is_positive_definite(k(sample(40, seed=seed)))


# -- the check ------------------------------------------------------------


def test_the_check_accepts_kernels_with_ties_and_wide_gaussians():
    """prop-witness: rounding is not taken for a witness."""
    rng = np.random.default_rng(0)
    for n in (50, 300):
        ties = rng.integers(0, 3, size=(n, 2)).astype(float)
        for k in (Delta(), Gaussian(1.0), Laplace(1.0), Polynomial(3)):
            assert is_positive_definite(k(ties))
        assert is_positive_definite(Gaussian(20.0)(rng.normal(size=(n, 2))))


# -- tiles ----------------------------------------------------------------


@pytest.mark.parametrize("k", KERNELS[:4] + KERNELS[11:15], ids=repr)
def test_large_gram_matrices_agree_with_their_blocks(k):
    """prop-tiles: the matrix filled in tiles is the matrix."""
    X, Y = sample(600), sample(300, seed=1)
    pieces = np.vstack([k(X[i:i + 100], Y[:200]) for i in range(0, 600, 100)])
    assert np.allclose(k(X, Y)[:, :200], pieces, rtol=1e-12)
    K = k(X)
    assert np.array_equal(K, K.T)
    assert np.allclose(K[100:200, 400:600], k(X[100:200], X[400:600]), rtol=1e-12)


@pytest.mark.parametrize("shape", [(300,), (300, 4)])
def test_gram_dot_is_the_matrix_product(shape):
    """prop-tiles: K(X, Y) W without K."""
    X, Y = sample(700), sample(300, seed=1)
    W = np.random.default_rng(2).normal(size=shape)
    k = Gaussian(0.7)
    assert np.allclose(gram_dot(k, X, Y, W), k(X, Y) @ W, rtol=1e-10, atol=1e-12)
    V = np.random.default_rng(3).normal(size=(700, *shape[1:]))
    assert np.allclose(gram_dot(k, X, None, V), k(X) @ V, rtol=1e-10, atol=1e-12)


def test_a_failure_in_a_tile_reaches_the_caller():
    """prop-tiles: threads do not swallow errors; without them the matrix has the entries."""
    X = sample(600)
    entry = FunctionKernel(lambda x, y: np.nan if x[0] == y[0] == X[511, 0] else 0.0)
    with pytest.raises(ValueError, match="finite"):
        entry(X)
    assert not entry(X[:511]).any()
    X[511, 0] = np.nan
    with pytest.raises(ValueError, match="X must be finite, but row 511"):
        Gaussian(1.0)(X)


@pytest.mark.parametrize("call, entries", [
    (lambda k: gram_dot(k, sample(900), sample(1100), np.ones(1100)), 900 * 1100),
    (lambda k: gram_dot(k, sample(600), None, np.ones(600)), 600**2),
    (lambda k: k(sample(600)), 600**2),
    (lambda k: k(sample(100), sample(600)), 100 * 600),
])
def test_no_block_larger_than_a_tile_is_evaluated(monkeypatch, call, entries):
    """prop-tiles, and symmetric matrices are computed by half."""
    sizes = []
    original = Gaussian._gram

    def spy(self, X, Y):
        sizes.append((len(X), len(Y)))
        return original(self, X, Y)

    monkeypatch.setattr(Gaussian, "_gram", spy)
    call(Gaussian(1.0))
    assert max(a * b for a, b in sizes) <= module.TILE**2
    computed = sum(a * b for a, b in sizes)
    if entries == 600**2:      # three blocks of 256, 256 and 88 points
        diagonal = 2 * 256**2 + 88**2
        entries = diagonal + (entries - diagonal) // 2
    assert computed == entries


# -- documents, strings, any objects --------------------------------------


# -- closure rules --------------------------------------------------------


def test_rules_remember_that_a_part_is_not_positive_definite():
    """prop-sigmoid: a rule needs kernels as its parts."""
    s, k = Sigmoid(1.0, 0.0), Gaussian(1.0)
    for rule in (s + k, k * s, 2.0 * s, s**2, Mapped(s, np.sin),
                 Conjugated(s, np.sum), TensorProduct(k, s)):
        assert rule.positive_definite is False
    assert (k + k).positive_definite and (2.0 * k).positive_definite


# -- polynomials ----------------------------------------------------------


@given(points(3), points(3), st.integers(1, 4), st.sampled_from([0.0, 0.5, 2.0]))
def test_monomial_features_reproduce_the_polynomial_kernel(X, Y, m, c):
    """thm-monomials."""
    K = polynomial_features(X, m, c) @ polynomial_features(Y, m, c).T
    # Terms add up to at most (|x|·|y| + c)^m, to which rounding is relative.
    size = (np.abs(X) @ np.abs(Y).T + c) ** m
    assert (np.abs(K - Polynomial(m, c)(X, Y)) <= 200 * EPS * size).all()


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("m", [1, 2, 6])
def test_number_of_monomial_features(d, m):
    """thm-monomials: C(d+m, m) and C(d+m-1, m)."""
    X = np.ones((2, d))
    assert polynomial_features(X, m).shape == (2, math.comb(d + m, m))
    assert polynomial_features(X, m, 0.0).shape == (2, math.comb(d + m - 1, m))


def test_multinomial_weights_exactly():
    """thm-monomials in whole numbers."""
    x, y, m = (2, -3, 5), (7, 1, -4), 6
    total = sum(
        math.factorial(m) // math.prod(math.factorial(j) for j in Counter(s).values())
        * math.prod((1, *x)[i] * (1, *y)[i] for i in s)
        for s in combinations_with_replacement(range(4), m))
    assert total == (sum(a * b for a, b in zip(x, y)) + 1) ** m
    # The function's squared weights are these whole numbers.
    weights = np.sort(polynomial_features(np.ones((1, 3)), m)[0] ** 2)
    whole = sorted(math.factorial(m) // math.prod(
        math.factorial(j) for j in Counter(s).values())
        for s in combinations_with_replacement(range(4), m))
    assert np.allclose(weights, whole, rtol=1e-13)


def test_quadratic_map_of_the_plane():
    """thm-monomials: 1, √2 x1, √2 x2, x1², √2 x1x2, x2²."""
    r = math.sqrt(2)
    assert np.allclose(polynomial_features([[3.0, 5.0]], 2),
                       [[1, 3 * r, 5 * r, 9, 15 * r, 25]])
    assert np.allclose(polynomial_features([[3.0, 5.0]], 2, 0.0), [[9, 15 * r, 25]])


def test_polynomial_kernel_agrees_with_scikit_learn():
    """lem-polynomial."""
    X, Y = sample(6, 3), sample(5, 3, 1)
    peer = pairwise.polynomial_kernel(X, Y, degree=3, gamma=1, coef0=1.5)
    assert np.allclose(Polynomial(3, 1.5)(X, Y), peer, rtol=1e-12)


def test_circle_becomes_a_plane():
    """thm-monomials: x1² + x2² is linear in the quadratic features."""
    X = sample(50)
    Phi = polynomial_features(X, 2, 0.0)
    assert np.allclose(Phi @ [1, 0, 1], (X**2).sum(axis=1))


def test_volterra_filter_is_linear_in_its_parameters():
    """prop-volterra: nested sums against monomial features."""
    rng = np.random.default_rng(0)
    s, M = rng.normal(size=60), 2
    h = [rng.normal(size=(M,) * p) for p in range(4)]
    direct = np.array([
        sum(h[p][k] * math.prod(s[t - i] for i in k)
            for p in range(4) for k in np.ndindex(*(M,) * p))
        for t in range(M - 1, 60)])
    Phi = polynomial_features(lag_vectors(s, M), 3)
    w, *_ = np.linalg.lstsq(Phi, direct, rcond=None)
    assert np.allclose(Phi @ w, direct, atol=1e-9)
    # Superposition in the parameters, not in the signal.
    doubled = lag_vectors(2 * s, M)
    assert not np.allclose(polynomial_features(doubled, 3) @ w, 2 * direct)


def test_lag_vectors_are_the_last_values_newest_first():
    """prop-volterra."""
    s = np.arange(10.0)
    for t, row in enumerate(lag_vectors(s, 4)):
        assert np.array_equal(row, [t + 3, t + 2, t + 1, t])
    assert lag_vectors(s, 10).shape == (1, 10)


# -- series ---------------------------------------------------------------


def test_square_summable_features_define_a_kernel():
    """lem-l2: partial sums stay below the Cauchy–Schwarz bound, and converge
    to a closed form (φ_i(x) = x^i / i, k = Li2(xy))."""
    from scipy.special import spence

    x = np.array([-0.9, 0.3, 0.95])
    i = np.arange(1, 2000)
    Phi = x[:, None] ** i / i
    K = Phi @ Phi.T
    dilogarithm = spence(1 - np.outer(x, x))       # Σ (xy)^i / i²
    assert np.allclose(K, dilogarithm, rtol=1e-12)
    assert (np.abs(Phi) @ np.abs(Phi).T
            <= np.sqrt(np.outer(K.diagonal(), K.diagonal())) * (1 + 1e-12)).all()
    assert is_positive_definite(dilogarithm)


def test_taylor_series_against_closed_forms():
    """thm-taylor: exponential, geometric, logarithmic, hyperbolic cosine."""
    X = 0.6 * sample(12) / np.abs(sample(12)).max()
    z = X @ X.T
    cases = [
        (Taylor(lambda n: 1 / math.factorial(n)), np.exp(z)),
        (Taylor(lambda n: 1.0, radius=1.0), 1 / (1 - z)),
        (Taylor(lambda n: 1 / n if n else 0.0, radius=1.0), -np.log1p(-z)),
        (Taylor(lambda n: (n + 1) % 2 / math.factorial(n)), np.cosh(z)),
        (Taylor([0.0, 0.0, 1.0]), z**2),
    ]
    for k, expected in cases:
        assert np.allclose(k(X), expected, rtol=1e-13, atol=1e-15)
        assert np.allclose(k.diag(X), expected.diagonal(), rtol=1e-13, atol=1e-15)
    # Only a_0 counts where ⟨x, y⟩ is zero or next to it.
    k = Taylor(lambda n: 1.0, radius=0.1)
    assert k([[0.2, 0.0]], [[0.0, 0.2]]) == 1 and k([3e-162]) == 1


@pytest.mark.parametrize("R", [0.0, 0.5, 0.9, 0.999])
def test_taylor_series_stops_late_enough(R):
    """thm-taylor: the tail bound holds up to the radius."""
    x = math.sqrt(R)
    k = Taylor(lambda n: 1.0, radius=1.0)
    assert np.isclose(k.diag([x])[0], 1 / (1 - x * x), rtol=1e-11)


@pytest.mark.parametrize("R", [0.01, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("radius", [1.0, 2.0])
def test_taylor_series_stops_where_the_bound_of_the_tail_allows(R, radius):
    """thm-taylor: in units of the radius, with ρ = √R, the tail after a_n is at most
    √R^(n + 1) / (1 - √R), the largest term is one, and the last term R^n is smaller."""
    asked = []
    k = Taylor(lambda n: asked.append(n) or radius**-n, radius=radius)
    assert np.isclose(k.diag([math.sqrt(R * radius)])[0], 1 / (1 - R), rtol=1e-12)
    n = next(n for n in range(20, 9999) if R ** ((n + 1) / 2) / (1 - R**0.5)
             < np.finfo(float).eps)
    assert asked == list(range(n + 1))


@pytest.mark.parametrize("R", [0.5, 4.0, 9.0])
def test_an_entire_series_stops_where_the_bound_of_the_tail_allows(R):
    """thm-taylor: with ρ = 2R and B = max (2R)^n / n! the tail after a_n is at most
    B / 2^n; it and the last term are then below ε times the largest term."""
    asked = []
    Taylor(lambda n: asked.append(n) or 1 / math.factorial(n)).diag([math.sqrt(R)])
    terms = [R**n / math.factorial(n) for n in range(150)]
    B, small = max(t * 2.0**n for n, t in enumerate(terms)), np.finfo(float).eps * max(terms)
    n = next(n for n in range(20, 150) if max(B * 0.5**n, terms[n]) < small)
    assert asked == list(range(n + 1))


def test_taylor_kernel_refuses_points_outside_its_radius():
    """thm-taylor: ‖x‖² < r, where the geometric series is 1/(1 - x·y)."""
    k = Taylor(lambda n: 1.0, radius=1.0)
    for bad in ([[0.6, 0.8]], [2.0]):
        with pytest.raises(ValueError, match="radius of convergence"):
            k(bad)
        with pytest.raises(ValueError, match="radius of convergence"):
            k.diag(bad)
    with pytest.raises(ValueError, match="radius of convergence"):
        k([0.1], [1.5])
    with pytest.raises(ValueError, match="more than 100 000"):
        k([1 - 1e-9])
    inside = [[0.6, 0.79]]
    assert np.isclose(k(inside)[0, 0], 1 / (1 - 0.36 - 0.79**2), rtol=1e-9)
    assert np.isclose(k.diag(inside)[0], k(inside)[0, 0], rtol=1e-12)


def test_outside_its_radius_the_geometric_series_is_no_kernel():
    """thm-taylor fails without ‖x‖² < r."""
    x = np.array([0.5, 3.0])
    assert not is_positive_definite(1 / (1 - np.outer(x, x)))


def test_large_arguments_of_an_entire_series():
    """thm-taylor: right where it answers, and an error where coefficients
    underflow before the terms are small."""
    k = Taylor(lambda n: 1 / math.factorial(n))
    for x in (4.0, 8.0):
        assert np.isclose(k([x])[0, 0], math.exp(x * x), rtol=1e-13)
    for x in (12.0, 13.0, 20.0):
        with pytest.raises(ValueError, match="underflow or have a gap"):
            k([x])
    assert Taylor(lambda n: n + 1.0, radius=1.0)([0.0]) == 1
    # Fifty zeros in a row are taken for a gap, fifty-one are not.
    assert Taylor(lambda n: float(n in (0, 51)))([0.5]) == 1 + 0.25**51
    for places in ((0, 52), (52,)):
        with pytest.raises(ValueError, match="underflow or have a gap"):
            Taylor(lambda n: float(n in places))([0.5])
    gap = Taylor(lambda n: float(n in (0, 60)))
    with pytest.raises(ValueError, match="underflow or have a gap"):
        gap([1.05])
    # The error is rounding of f(R), also where f(⟨x, y⟩) is far smaller.
    assert abs(k([5.0], [-5.0])[0, 0] - math.exp(-25)) < 4 * EPS * math.exp(25)


def test_exponential_kernel():
    """exm-exponential, with a scale by the mapping rule."""
    X = sample()
    assert np.allclose(Exponential()(X), np.exp(X @ X.T), rtol=1e-14)
    scaled = Mapped(Exponential(), lambda X: math.sqrt(3.0) * X)
    assert np.allclose(scaled(X), np.exp(3.0 * (X @ X.T)), rtol=1e-11)
    with pytest.raises(ValueError, match="overflows"):
        Exponential()([30.0])


# -- the Gaussian kernel --------------------------------------------------


@given(points(3), st.floats(0.5, 4))
def test_gaussian_kernel_from_product_mapping_and_exponential(X, sigma):
    """thm-gaussian: the proof, run."""
    assembled = Conjugated(
        Mapped(Exponential(), lambda X: X / sigma),
        lambda X: np.exp(-np.sum(X**2, axis=1) / (2 * sigma**2)))
    # exp is evaluated at up to 27/σ² < 108, with relative error 108 ε.
    assert np.allclose(assembled(X), Gaussian(sigma)(X), rtol=1e3 * EPS, atol=1e-300)


def test_gaussian_kernel_agrees_with_scikit_learn():
    """thm-gaussian: gamma = 1/(2σ²)."""
    X, Y = sample(300, 5), sample(40, 5, 1)
    peer = pairwise.rbf_kernel(X, Y, gamma=1 / (2 * 1.7**2))
    assert np.allclose(Gaussian(1.7)(X, Y), peer, rtol=1e-11)


@given(points(2), st.floats(0.8, 3), st.integers(0, 9))
def test_gaussian_features_miss_a_poisson_tail(X, sigma, m):
    """thm-poisson: the bound, and equality on the diagonal."""
    Phi = gaussian_features(X, sigma, m)
    assert Phi.shape == (len(X), math.comb(2 + m, m))
    error = Gaussian(sigma)(X) - Phi @ Phi.T
    tail = poisson.sf(m, np.sum(X**2, axis=1) / sigma**2)
    assert np.allclose(error.diagonal(), tail, atol=1e-14)
    assert (np.abs(error) <= np.sqrt(np.outer(tail, tail)) + 1e-14).all()


def test_energy_of_gaussian_features_is_poisson():
    """thm-poisson: degree by degree."""
    x = np.array([[1.2, -0.7, 0.4]])
    lam = np.sum(x**2) / 0.9**2
    start = 0
    for n in range(12):
        size = math.comb(n + 2, n)
        block = gaussian_features(x, 0.9, 11)[0, start:start + size]
        assert np.isclose(np.sum(block**2), poisson.pmf(n, lam), rtol=1e-12)
        start += size


def test_gaussian_features_reach_machine_precision():
    """thm-poisson: degree 40 is enough within two widths."""
    X = sample(15) / np.abs(sample(15)).max() * 2
    Phi = gaussian_features(X, 1.0, 40)
    assert np.abs(Phi @ Phi.T - Gaussian(1.0)(X)).max() < 20 * EPS


@pytest.mark.parametrize("d", [1, 2, 3])
def test_gaussian_kernel_as_an_integral(d):
    """prop-gaussian-l2, by the trapezoidal rule on a grid."""
    axis = np.linspace(-8, 8, 41)
    T = np.array(np.meshgrid(*[axis] * d)).reshape(d, -1).T
    X = sample(4, d)
    bumps = gaussian_bumps(X, T, 1.1)
    integral = (axis[1] - axis[0]) ** d * bumps @ bumps.T
    assert np.allclose(integral, Gaussian(1.1)(X), rtol=1e-11)


@pytest.mark.parametrize("d", [1, 3, 7, 8, 64, 300])
def test_squared_distances_survive_cancellation(d, monkeypatch):
    """thm-gaussian: near duplicates far from the origin, all code paths."""
    rng = np.random.default_rng(0)
    X = 1e6 + rng.normal(size=(20, d))
    Y = X + 1e-3 * rng.normal(size=(20, d))
    expected = np.array([[np.sum((x - y) ** 2) for y in Y] for x in X])
    assert np.allclose(squared_distances(X, Y), expected, rtol=1e-9)
    assert (squared_distances(X, X).diagonal() == 0).all()
    spread = rng.normal(size=(20, d))
    calls = []
    monkeypatch.setattr(module, "cdist", lambda *a: calls.append(1) or cdist(*a))
    squared_distances(spread, -spread[:5])
    assert bool(calls) == (1 < d < 8)            # the fast paths are taken
    clusters = np.repeat([[-1e3], [1e3]], 10, axis=0) + rng.normal(size=(20, d))
    assert np.allclose(squared_distances(clusters, clusters),
                       cdist(clusters, clusters, "sqeuclidean"), rtol=1e-11)
    assert np.allclose(squared_distances(spread, -spread[:5]),
                       cdist(spread, -spread[:5], "sqeuclidean"), rtol=1e-12)
    one_twin = np.concatenate([spread, spread[3:4]])
    assert squared_distances(one_twin)[3, -1] == 0
    assert np.isinf(squared_distances(1e200 * spread, spread)).all()


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_squared_distances_of_twins_in_any_unit(unit):
    """thm-gaussian: what cancels does not depend on the unit of the points."""
    rng = np.random.default_rng(0)
    X = unit * rng.normal(size=(20, 10))
    Y = X + 1e-6 * unit * rng.normal(size=(20, 10))
    expected = [np.sum((x - y) ** 2) for x, y in zip(X, Y)]
    assert np.allclose(squared_distances(X, Y).diagonal(), expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize("kernel", [Gaussian(3.0), Laplace(3.0)])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("d", [9, 127, 128, 200])
def test_tiles_share_their_factors_without_losing_digits(kernel, offset, d):
    """thm-gaussian, prop-tiles: a matrix of many tiles is that of its rows,
    also for two clusters far apart and for points that nearly coincide.
    Squares right to 1e-11, of size about ten: entries right to 1e-10."""
    X = 3 / np.sqrt(d) * np.random.default_rng(1).normal(size=(600, d))
    X[300:] += offset
    X[1::2] = X[::2] + 1e-5 * X[1::2]
    rows = np.concatenate([kernel(X[i:i + 1], X) for i in range(600)])
    K = kernel(X)
    assert (K.diagonal() == 1).all()
    assert np.allclose(K, rows, rtol=1e-10, atol=1e-12)
    assert np.allclose(kernel(X, X[:450]), rows[:, :450], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("far", [0.0, 3.0, 1e3])
@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_entries_for_sums_are_those_of_the_matrix(sigma, far):
    """thm-gaussian, prop-tiles: what a sum over tiles adds up, near the mean of the points as
    powers of two, and where that would cost digits as the matrix itself."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    X[20:] += far
    Phi, i, j = Features(Gaussian(sigma), X), slice(0, 10), slice(5, 30)
    # A product of factors has errors of 1e-16 of its terms, here below 64.
    assert np.allclose(Phi.summands()(i, j), Phi.gram()[i, j], rtol=1e-13, atol=0)


# -- more kernels ---------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_integrals_of_features_are_kernels(seed):
    """lem-mixture: a'Ka is the integral of the square of the a_i phi_w(x_i), in fractions for
    min(x, y), the integral of two steps, and by quadrature for 1/(x + y), that of e^(-wx)."""
    rng = np.random.default_rng(seed)
    x = sorted(Fraction(int(n), 7) for n in rng.choice(np.arange(1, 60), 6, replace=False))
    a = [Fraction(int(n), 3) for n in rng.integers(-9, 10, size=6)]
    form = sum(p * q * min(s, t) for p, s in zip(a, x) for q, t in zip(a, x))
    ends = [Fraction(0), *x]
    integral = sum((ends[i + 1] - ends[i]) * sum(a[i:]) ** 2 for i in range(6))
    assert form == integral >= 0
    points, weights = np.array(x, dtype=float), np.array(a, dtype=float)
    smallest = FunctionKernel(min)
    assert np.isclose(weights @ smallest([*points]) @ weights, float(form))

    K = FunctionKernel(lambda s, t: 1 / (s + t))([*points])
    value, error = quad(lambda w: (weights @ np.exp(-w * points)) ** 2, 0, np.inf)
    assert np.isclose(weights @ K @ weights, value, rtol=1e-7, atol=10 * error)


@pytest.mark.parametrize("r", [0.0, 0.3, 1.0, 4.0])
def test_laplace_kernel_is_a_mixture_of_gaussians(r):
    """prop-laplace: equation eq-laplace by quadrature."""
    value, _ = quad(lambda v: 2 / math.sqrt(math.pi) * math.exp(-v * v)
                    * Gaussian(math.sqrt(2) * 1.5 * v)([0.0], [r])[0, 0], 0, 8,
                    epsabs=1e-12)
    assert np.isclose(Laplace(1.5)([0.0], [r])[0, 0], value, atol=1e-9)


def test_laplace_kernel_on_the_line_agrees_with_scikit_learn():
    """prop-laplace: in one dimension the two norms are one."""
    x = sample(20, 1)
    assert np.allclose(Laplace(0.7)(x), pairwise.laplacian_kernel(x, gamma=1 / 0.7))
    X = sample(20, 2)
    assert not np.allclose(Laplace(0.7)(X), pairwise.laplacian_kernel(X, gamma=1 / 0.7))
    assert np.allclose(Laplace(0.7)(X), np.exp(-cdist(X, X) / 0.7))


@pytest.mark.parametrize("p", [1, 3, 5])
def test_bspline_kernel_is_an_autocorrelation(p):
    """prop-bspline: b_p = b_q * b_q with p = 2q + 1, on a fine grid."""
    h = 1 / 400
    box = np.full(400, 1.0)                       # midpoints of [-1/2, 1/2]
    spline = box
    for _ in range((p - 1) // 2):
        spline = h * np.convolve(spline, box)
    whole = h * np.correlate(spline, spline, "full")
    lags = h * (np.arange(len(whole)) - len(whole) // 2)
    value = BSpline(degree=p)(lags, [0.0])[:, 0]
    # Midpoint sums are within h of the integrals for continuous splines.
    assert np.allclose(value, whole / whole.max(), atol=2 * h)


def test_cubic_bspline_values():
    """prop-bspline: 1, 1/4, 0 at distances 0, 1, 2, and 23/32 at 1/2."""
    assert np.allclose(BSpline(degree=3)([0.0], [0.0, 0.5, 1.0, 2.0, 9.0]),
                       [[1, 23 / 32, 1 / 4, 0, 0]])
    assert np.allclose(BSpline(2.0, degree=1)([0.0], [0.5, 1.0, 3.0]), [[0.75, 0.5, 0]])


def test_sinc_kernels_from_frequencies_and_from_the_sphere():
    """prop-sinc: both averages of cosines, by Gauss–Legendre."""
    omega, weight = np.polynomial.legendre.leggauss(40)
    for r in (0.3, 1.7, 4.4):
        band = np.sum(weight / 2 * np.cos(np.pi * omega * r))
        assert np.isclose(Sinc()([0.0], [r])[0, 0], band, rtol=1e-10)
    # On the sphere the height is uniform: average over all directions.
    phi = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    z, azimuth = np.meshgrid(omega, phi, indexing="ij")
    s = np.stack([np.sqrt(1 - z**2) * np.cos(azimuth),
                  np.sqrt(1 - z**2) * np.sin(azimuth), z], axis=-1)
    delta = np.array([1.0, -2.0, 0.5])
    average = np.sum(weight[:, None] / 2 / 64 * np.cos(s @ delta))
    r = np.linalg.norm(delta)
    assert np.isclose(average, np.sin(r) / r, rtol=1e-10)


def test_products_over_coordinates_work_in_every_dimension():
    """prop-bspline and prop-sinc with thm-product, on the very points at
    which the radial functions fail."""
    grid = 0.7 * np.array(list(np.ndindex(6, 6)), dtype=float)
    cross = 3 * np.vstack([np.zeros((1, 4)), np.eye(4), -np.eye(4)])
    assert is_positive_definite(BSpline(degree=1)(grid))
    assert is_positive_definite(Sinc(np.pi)(cross))


def test_series_of_a_kernel_on_sets():
    """cor-series: 2^|A∩B| counts the common subsets."""
    sets = [frozenset(s) for s in ("", "a", "ab", "bcd", "abcd", "acd")]
    common = FunctionKernel(lambda A, B: 2.0 ** len(A & B))
    K = common(sets)
    subsets = [frozenset(c) for r in range(5) for c in combinations("abcd", r)]
    Phi = np.array([[float(S <= A) for S in subsets] for A in sets])
    assert np.array_equal(K, Phi @ Phi.T) and is_positive_definite(K)
    exponential = np.exp(FunctionKernel(lambda A, B: len(A & B))(sets))
    assert is_positive_definite(exponential)


def test_ordered_features_of_the_polynomial_kernel():
    """thm-monomials: (d+1)^m ordered products, all with weight one."""
    x, y = np.array([1.0, 0.3, -2.0]), np.array([1.0, 1.7, 0.4])
    for m in (1, 2, 5):
        Phi = [np.prod(np.array(list(ordered(z, repeat=m))), axis=1) for z in (x, y)]
        assert len(Phi[0]) == 3**m
        assert np.isclose(Phi[0] @ Phi[1], Polynomial(m)([x[1:]], [y[1:]])[0, 0])


def test_numbers_in_the_exercises():
    """ex-poisson, ex-min, ex-limit."""
    for radius, m in ((1.0, 9), (2.0, 17), (4.0, 38)):
        missing = [1 - np.sum(gaussian_features([[radius, 0.0]], 1.0, n) ** 2)
                   for n in (m - 1, m)]
        assert missing[1] <= 1e-6 < missing[0]
    s = np.sort(np.random.default_rng(0).uniform(0, 5, 10))
    assert is_positive_definite(np.minimum.outer(s, s)).strict
    corner = [[1, 1, Fraction(1, 2)], [1, 1, 1], [Fraction(1, 2), 1, 1]]
    (a, b, c), (d, e, f), (g, h, i) = corner
    assert a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) == Fraction(-1, 4)


# -- what breaks ----------------------------------------------------------


@given(st.floats(0.1, 2), st.floats(-2, 2), st.floats(-2, 2))
def test_pairs_at_which_the_sigmoid_without_constant_fails(a, x, y):
    """prop-sigmoid, the paragraph below its figure: xy ≠ 0 and x ≠ ±y."""
    K = Sigmoid(a, 0.0)([x, y])
    det = K[0, 0] * K[1, 1] - K[0, 1] ** 2
    if x * y == 0 or abs(x) == abs(y):
        assert abs(det) <= 1e-15
    elif min(abs(x), abs(y)) > 1e-3 and abs(abs(x) - abs(y)) > 1e-2:
        # So far from the lines of zeros, rounding cannot hide the sign.
        assert det < 0
    assert not is_positive_definite(Sigmoid(a, 0.0)([1.0, 2.0]))
    assert is_positive_definite(Sigmoid(a, 0.0)([1.0, 0.0]))


@given(st.floats(0.01, 5), st.floats(-3, 2))
def test_the_sigmoid_fails_for_all_parameters(a, c):
    """prop-sigmoid: two points are enough."""
    x = math.sqrt(max(0.5 - c, 0.1) / a)          # a x² + c >= 0.1, < 3
    y = (20 + abs(c)) / (a * x)                   # tanh(a x y + c) = 1 - 1e-17
    K = Sigmoid(a, c)([x, y])
    assert not is_positive_definite(K, tol=1e-12)
    assert np.allclose(Sigmoid(a, c).diag([x, y]), K.diagonal())


def test_sigmoid_agrees_with_scikit_learn_and_is_marked():
    """prop-sigmoid."""
    X = sample()
    assert np.allclose(Sigmoid(0.5, -1.0)(X),
                       pairwise.sigmoid_kernel(X, gamma=0.5, coef0=-1.0))
    assert Sigmoid(0.5, -1.0).positive_definite is False
    assert Gaussian(1.0).positive_definite is True


def test_even_bsplines_fail_on_the_line():
    """exm-box: the box has 1 - √2; degrees 2, 4 and 6 fail too."""
    box = (np.abs(np.subtract.outer([0, 0.4, 0.8], [0, 0.4, 0.8])) <= 0.5) * 1.0
    assert np.isclose(is_positive_definite(box).value, 1 - math.sqrt(2))
    from scipy.interpolate import BSpline as Spline

    t = np.arange(60) / 3
    for p in (2, 4, 6):
        knots = np.arange(p + 2) - (p + 1) / 2
        spline = Spline.basis_element(knots, extrapolate=False)
        K = np.nan_to_num(spline(np.subtract.outer(t, t)))
        assert not is_positive_definite(K, tol=1e-6)


@pytest.mark.parametrize("m", [2, 5, 12])
def test_checkerboard_against_the_radial_hat(m):
    """exm-hat: equation eq-hat, and failure from m = 5 on."""
    grid = 0.7 * np.array(list(np.ndindex(m, m)), dtype=float)
    K = np.maximum(0, 1 - cdist(grid, grid))
    a = (-1.0) ** np.add.outer(np.arange(m), np.arange(m)).ravel()
    formula = m**2 - 1.2 * m * (m - 1) + 4 * (m - 1) ** 2 * (1 - 0.7 * math.sqrt(2))
    assert np.isclose(a @ K @ a, formula)
    assert bool(is_positive_definite(K)) == (m < 5)


def test_radial_sinc_in_three_four_and_five_dimensions():
    """exm-sinc."""
    for d, holds in ((1, True), (2, True), (3, True), (4, False), (5, False)):
        cross = 3 * np.vstack([np.zeros((1, d)), np.eye(d), -np.eye(d)])
        K = np.sinc(cdist(cross, cross) / np.pi)
        assert bool(is_positive_definite(K)) == holds
    simplex = 4.4934 / math.sqrt(2) * np.eye(6)
    K = np.sinc(cdist(simplex, simplex) / np.pi)
    assert np.isclose(np.ones(6) @ K @ np.ones(6), 6 + 30 * math.sin(4.4934) / 4.4934)
    assert not is_positive_definite(K)


# -- corners --------------------------------------------------------------


@pytest.mark.parametrize("wrong, right, name", [
    (lambda: BSpline(1.0, degree=2), lambda: BSpline(1.0, degree=3)([0.0]), "degree"),
    (lambda: FeatureKernel(lambda x: {x: np.inf})(["a"]),
     lambda: FeatureKernel(lambda x: {x: 1e100})(["a"]), "features"),
    (lambda: FeatureKernel(lambda x: {"w": x})([1e200]),
     lambda: FeatureKernel(lambda x: {"w": x})([1e100]), "kernel"),
    (lambda: FeatureKernel(words)([1, 2]), lambda: FeatureKernel(words)(["1", "2"]), "document"),
    (lambda: Delta()([{"a"}]), lambda: Delta()([frozenset("a")]), "X"),
    (lambda: Linear()([[1e200, 1e200]], [[1e200, -1e200]]),
     lambda: Linear()([[1e100, 1e100]], [[1e100, 1e100]]), "kernel"),
    (lambda: Scaled(1e300, Linear())([1e10]), lambda: Scaled(1e200, Linear())([1e10]), "kernel"),
    (lambda: (Linear() * Delta())([1e200, 1.0]), lambda: (Linear() * Delta())([1e100, 1.0]),
     "kernel"),
    (lambda: Taylor(lambda n: -1.0)([1.0]), lambda: Taylor([1.0])([1.0]), "coefficients"),
])
def test_where_a_kernel_ends(wrong, right, name):
    """def-kernel: a kernel has finite values and knows its points; a spline of even degree
    and a series with a negative coefficient are none."""
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        wrong()
    assert np.isfinite(right()).all() and right()[0, 0] > 0


def test_masked_entries_are_refused():
    """as_sequence, as_points: a masked entry is a missing number."""
    bad = np.ma.masked_array([1.0, -999.0], mask=[0, 1])
    for check in (as_points, as_sequence):
        with pytest.raises(ValueError, match="^T must not have masked"):
            check(bad, "T")
        assert len(check(np.ma.masked_array([1.0, 2.0]), "T")) == 2


def test_a_taylor_kernel_is_fixed_and_equal_to_its_like():
    """thm-taylor: later changes of the caller's list do not reach it."""
    mine, array = [1.0, 2.0], np.array([1, 2])
    k, l = Taylor(mine), Taylor(array)
    before = k([1.0, 2.0])
    mine[0] = array[0] = -5
    assert np.array_equal(k([1.0, 2.0]), before)
    assert np.array_equal(l([1.0, 2.0]), before)
    assert k == l == Taylor((1, 2)) != Taylor([1.0, 3.0])
    assert hash(k) == hash(l) and len({k, l}) == 1
    f = RKHSFunction(k, [1.0], [1.0]) + RKHSFunction(l, [2.0], [1.0])
    assert np.array_equal(f([1.0]), before.sum(axis=1)[:1])
    assert Taylor([1.0], np.float32(np.inf)) == Taylor([1])
    with pytest.raises(ValueError, match="^radius must be a positive number"):
        Taylor([1.0], 10**400)


