"""Identities of the chapter on mean embeddings."""

import copy
import math
import pickle
import tracemalloc
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rkhs_lit import (
    Characteristic,
    Delta,
    Exponential,
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
    RKHSFunction,
    Sinc,
    TensorProduct,
    embedding_distance,
    embedding_error,
    embedding_inner,
    inner,
    interpolate,
    is_characteristic,
    mean_embedding,
    moved,
    norm,
    polynomial_features,
    riesz_representer,
    squared_norm,
    substrings,
)
from scipy.integrate import quad
from scipy.stats import multivariate_normal
from sklearn.neighbors import KernelDensity

KERNELS = [Gaussian(0.9), Laplace(1.2), Matern(1.5, 0.7), Polynomial(3), Linear(), Sinc(1.1),
           2.0 * Gaussian(0.4) + Linear()]
# Not positive definite: too similar, negative, too dissimilar, and definite for differences only.
names = lambda k: repr(k)[:45]  # noqa: E731


def sample(n=12, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def masses(n, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(n))


def hermite(m, root, n=40):
    """Points and weights for the normal distribution of m + root Z, by Gauss and Hermite."""
    z, w = np.polynomial.hermite_e.hermegauss(n)
    d = len(m)
    Z = np.array(list(product(z, repeat=d)))
    W = np.prod(list(product(w / w.sum(), repeat=d)), axis=1)
    return m + Z @ np.asarray(root).T, W


# -- existence --------------------------------------------------------------

X3, P3 = [0, 1, 3], [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
Q3 = [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]


def k2(s, t):
    return (1 + s * t) ** 2


def test_expectations_are_inner_products_in_exact_arithmetic():
    """thm-mean-embedding, parts 1, 3 and 4, on three points in fractions against the package."""
    mu, nu = (mean_embedding(Polynomial(2), X3, [float(w) for w in ws]) for ws in (P3, Q3))
    f = RKHSFunction(Polynomial(2), [5, -1], [2, -3])
    expected = sum(w * (2 * k2(5, s) - 3 * k2(-1, s)) for s, w in zip(X3, P3))
    assert expected == Fraction(641, 6)
    # A dozen roundings of numbers of this size.
    assert np.isclose(inner(f, mu), float(expected), rtol=1e-14)
    kernel_mean = sum(a * b * k2(s, t) for s, a in zip(X3, P3) for t, b in zip(X3, Q3))
    assert np.isclose(inner(mu, nu), float(kernel_mean), rtol=1e-14)
    assert np.isclose(embedding_inner(mu, nu), float(kernel_mean), rtol=1e-14)
    assert norm(mu) <= float(sum(w * (1 + s * s) for s, w in zip(X3, P3)))


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 999), st.sampled_from(KERNELS))
def test_mean_embedding_averages_the_kernel_and_every_function(seed, kernel):
    """thm-mean-embedding, parts 1 to 3, for a distribution on points."""
    X, p, T = sample(9, seed=seed), masses(9, seed), sample(5, seed=seed + 1)
    mu = mean_embedding(kernel, X, p)
    K = kernel(T, X)
    assert np.allclose(mu(T), K @ p, rtol=1e-12, atol=1e-13 * np.abs(K).max())
    f = RKHSFunction(kernel, T, sample(5, 1, seed=seed + 2)[:, 0])
    size = np.abs(f.weights) @ np.abs(K) @ p
    assert np.isclose(inner(f, mu), p @ f(X), rtol=0, atol=1e-13 * size)
    root = p @ np.sqrt(kernel.diag(X))
    assert norm(mu) <= root * (1 + 1e-12)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 999), st.sampled_from(KERNELS))
def test_inner_products_of_embeddings_are_expectations_of_the_kernel(seed, kernel):
    """thm-mean-embedding, part 4, eq-embedding-inner."""
    X, Y, p, q = sample(7, seed=seed), sample(4, seed=seed + 5), masses(7, seed), masses(4, seed)
    K = kernel(X, Y)
    value = embedding_inner(mean_embedding(kernel, X, p), mean_embedding(kernel, Y, q))
    assert np.isclose(value, p @ K @ q, rtol=0, atol=1e-13 * np.abs(K).max())


def test_functions_see_what_the_kernel_sees():
    """lem-measurable-rkhs for the σ-algebra made of [j, j + 1): k, k(x, x) and f are constant
    on each of these sets."""
    k, x = Mapped(Gaussian(1.0), np.floor), np.array([0.1, 0.9, 1.0, 1.5, 2.2, 2.9])
    y = np.floor(x)
    assert np.array_equal(k(x), k(y)) and np.array_equal(k.diag(x), k.diag(y))
    f = RKHSFunction(k, [0.3, 1.7, 2.5], [1.0, -2.0, 0.5])
    g = interpolate(k, [0.5, 1.5, 2.5], [3.0, 1.0, 2.0])
    assert np.array_equal(f(x), f(y)) and np.array_equal(g(x), g(y))
    assert np.allclose(g(x), [3, 3, 1, 1, 2, 2])


def test_equal_weights_are_the_default():
    """eq-finite-embedding for a sample."""
    X = sample(5)
    assert np.array_equal(mean_embedding(Gaussian(1.0), X).weights, np.full(5, 0.2))
    one = mean_embedding(Gaussian(1.0), X[:1])
    assert np.array_equal(one(X), Gaussian(1.0)(X, X[:1])[:, 0])


def test_the_representer_of_the_expectation_is_the_embedding():
    """thm-mean-embedding by thm-riesz: values and Gram matrix give the probabilities back."""
    X, p = sample(6), masses(6)
    K = Gaussian(1.0)(X)
    c = riesz_representer(K, mean_embedding(Gaussian(1.0), X, p)(X))
    # The condition of K, below 1e4, times the machine precision.
    assert np.linalg.cond(K) < 1e4 and np.allclose(c, p, atol=1e-11)


def test_weights_are_used_as_they_are():
    """thm-mean-embedding: linear in the measure, also for signed ones."""
    X, a, b = sample(5), sample(5, 1, 1)[:, 0], sample(5, 1, 2)[:, 0]
    k = Laplace(1.0)
    both = 2 * mean_embedding(k, X, a) - mean_embedding(k, X, b)
    assert np.allclose(mean_embedding(k, X, 2 * a - b)(X), both(X), atol=1e-14)


def test_embeddings_of_strings_and_pairs():
    """thm-mean-embedding on sets without structure; on pairs it embeds a joint distribution."""
    k = FeatureKernel(substrings(2))
    herbs = ["parsley", "sage", "rosemary", "thyme"]
    mu = mean_embedding(k, herbs)
    assert mu(["rosary", "age", "cup"]).tolist() == [1.5, 0.5, 0.0]
    pairs = Pairs(np.arange(4.0), herbs)
    joint = mean_embedding(TensorProduct(Gaussian(1.0), k), pairs)
    wanted = np.mean(Gaussian(1.0)(np.arange(4.0)) * k(herbs), axis=0)
    assert np.allclose(joint(pairs), wanted)


def test_an_embedding_cannot_be_changed_from_outside():
    X, p = sample(4), masses(4)
    mu = mean_embedding(Gaussian(1.0), X, p)
    before = mu([[0.0, 0.0]])[0]
    X[:], p[:] = 9.0, 0.0
    assert mu([[0.0, 0.0]])[0] == before


# -- closed forms -----------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
def test_embedding_is_the_density_of_a_noisy_variable(d, sigma):
    """prop-noisy-density, thm-gaussian-embedding, against SciPy's normal density."""
    rng = np.random.default_rng(d)
    m, C = rng.normal(size=d), rng.normal(size=(d, d))
    S, T = C @ C.T, rng.normal(size=(7, d))
    blurred = multivariate_normal(m, S + sigma**2 * np.eye(d)).pdf(T)
    wanted = (2 * np.pi * sigma**2) ** (d / 2) * blurred
    # The condition of S + σ²I is below 1e4 here.
    assert np.allclose(GaussianEmbedding(Gaussian(sigma), m, S)(T), wanted, rtol=1e-10, atol=0)


def test_a_sample_embeds_as_a_kernel_density_estimate():
    """prop-noisy-density for points, against scikit-learn."""
    X, T, sigma = sample(30, 3), sample(6, 3, 1), 0.6
    peer = KernelDensity(kernel="gaussian", bandwidth=sigma).fit(X)
    density = mean_embedding(Gaussian(sigma), X)(T) / (2 * np.pi * sigma**2) ** 1.5
    assert np.allclose(np.log(density), peer.score_samples(T), rtol=1e-10)


@pytest.mark.parametrize("root", [[[1.0, 0.0], [0.6, 0.4]], [[0.3, 0.0], [0.6, 0.0]],
                                  [[0.0, 0.0], [0.0, 0.0]]], ids=["full", "singular", "point"])
def test_gaussian_closed_forms_by_quadrature(root):
    """thm-gaussian-embedding: values, both kinds of inner product, distance."""
    k, other = Gaussian(0.8), ([0.4, 0.1], [[0.5, 0.0], [-0.2, 0.9]])
    C, D = np.array(root), np.array(other[1])
    m, r, T = np.array([0.5, -1.0]), np.array(other[0]), sample(6)
    mu, nu = GaussianEmbedding(k, m, C @ C.T), GaussianEmbedding(k, r, D @ D.T)
    mu_points, nu_points = mean_embedding(k, *hermite(m, C)), mean_embedding(k, *hermite(r, D))
    f = RKHSFunction(k, T, sample(6, 1, 1)[:, 0])
    # Forty nodes integrate these bells to ten digits.
    assert np.allclose(mu(T), mu_points(T), rtol=1e-9)
    for a, b, c, e in ((mu, mu, mu_points, mu_points), (mu, nu, mu_points, nu_points),
                       (nu, mu, nu_points, mu_points), (f, mu, f, mu_points),
                       (mu, f, mu_points, f)):
        assert np.isclose(embedding_inner(a, b), embedding_inner(c, e), rtol=1e-9)
    wanted = norm(mu_points - nu_points)
    for a, b in ((mu, nu), (mu_points, nu), (mu, nu_points), (mu_points, nu_points)):
        assert np.isclose(embedding_distance(a, b), wanted, rtol=1e-8)


def test_a_normal_distribution_without_variance_is_a_point():
    """thm-gaussian-embedding with S = 0."""
    k, T = Gaussian(0.7), sample(5)
    mu = GaussianEmbedding(k, T[0], 0.0)
    assert np.allclose(mu(T), k(T, T[:1])[:, 0], rtol=1e-14)
    point = RKHSFunction(k, T[:1], [1.0])
    for n in range(1, 60):                          # the root of rounding errors of either sign
        assert embedding_distance(mu, mean_embedding(k, np.repeat(T[:1], n, axis=0))) < 1e-7
    assert embedding_distance(mu, point) < 1e-7
    assert np.isclose(embedding_distance(mu, RKHSFunction(k, T[1:2], [1.0])),
                      np.sqrt(2 - 2 * k(T)[0, 1]))


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 999), st.floats(0.2, 5.0))
def test_closed_forms_scale_and_rotate_with_the_space(seed, factor):
    """thm-gaussian-embedding: lengths in units of σ and rotations do not matter."""
    rng = np.random.default_rng(seed)
    C, T, m = rng.normal(size=(3, 3)), rng.normal(size=(4, 3)), rng.normal(size=3)
    U, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    mu = GaussianEmbedding(Gaussian(1.0), m, C @ C.T)
    same = GaussianEmbedding(Gaussian(factor), factor * U @ m, factor**2 * U @ C @ C.T @ U.T)
    assert np.allclose(mu(T), same(factor * T @ U.T), rtol=1e-9)
    assert np.isclose(embedding_inner(mu, mu), embedding_inner(same, same), rtol=1e-9)


def test_numbers_are_accepted_for_the_line_and_for_multiples_of_the_identity():
    k = Gaussian(1.0)
    assert np.isclose(GaussianEmbedding(k, 0.0, 3.0)([2.0])[0], np.exp(-0.5) / 2, rtol=1e-15)
    a = GaussianEmbedding(k, np.float64(1.0), np.array(2.0))
    assert np.array_equal(a([0.5]), GaussianEmbedding(k, [1.0], [[2.0]])([0.5]))
    b, T = GaussianEmbedding(k, [1, 2], 2), sample(3)
    assert np.array_equal(b(T), GaussianEmbedding(k, [1.0, 2.0], 2.0 * np.eye(2))(T))
    assert repr(b) == "GaussianEmbedding(Gaussian(sigma=1.0), d=2)"


def test_a_normal_embedding_cannot_be_changed_from_outside():
    m, S = np.zeros(2), np.eye(2)
    mu = GaussianEmbedding(Gaussian(1.0), m, S)
    m[:], S[:] = 5.0, 7.0
    assert np.isclose(mu([[0.0, 0.0]])[0], 0.5)
    with pytest.raises(ValueError):
        mu.mean[0] = 1.0
    with pytest.raises(ValueError):
        mu.covariance[0, 0] = 1.0


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_closed_forms_at_extreme_scales(scale):
    """thm-gaussian-embedding where squares are near the ends of the number range."""
    mu = GaussianEmbedding(Gaussian(scale), [0.0, scale], scale**2 * np.array([[1.0, 0.5],
                                                                               [0.5, 2.0]]))
    unit = GaussianEmbedding(Gaussian(1.0), [0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]])
    T = sample(4)
    assert np.allclose(mu(scale * T), unit(T), rtol=1e-12)
    assert np.isclose(embedding_inner(mu, mu), embedding_inner(unit, unit), rtol=1e-12)


def test_a_width_whose_square_is_nearly_zero():
    """thm-gaussian-embedding: 1e-320 has three digits only, so σ² must not be formed."""
    mu = GaussianEmbedding(Gaussian(1e-160), 0.0, 1e-300)
    assert np.isclose(mu([0.0])[0], 1e-10, rtol=1e-12, atol=0)


def test_distances_of_functions_with_huge_weights():
    """eq-embedding-square: a square that overflows is refused, and a small norm is not lost."""
    mu = GaussianEmbedding(Gaussian(1.0), 0.0, 1.0)
    f = RKHSFunction(Gaussian(1.0), [0.0, 1.0], [1.0, -2.0])
    for pair in ((1e200 * f, mu), (mu, 1e200 * f)):
        with pytest.raises(ValueError, match="not finite"):
            embedding_distance(*pair)
    assert np.isclose(embedding_distance(1e150 * f, mu), 1e150 * norm(f), rtol=1e-12)
    assert np.isclose(embedding_distance(1e-200 * f, mu), embedding_inner(mu, mu) ** 0.5)
    direct = norm(f) ** 2 - 2 * embedding_inner(f, mu) + embedding_inner(mu, mu)
    assert np.isclose(embedding_distance(f, mu) ** 2, direct, rtol=1e-12)


def test_far_points_have_value_zero_and_huge_variances_say_so():
    mu = GaussianEmbedding(Gaussian(1.0), [0.0, 0.0, 0.0], np.eye(3) + 0.5)
    far = [[1e200, 0.0, 0.0], [1.7e308, -1.7e308, 1.0], [0.0, 0.0, 0.0]]
    values = mu(far)
    assert values[0] == values[1] == 0 and values[2] > 0
    # Differences that overflow, in every coordinate of a correlated distribution.
    edge = GaussianEmbedding(Gaussian(1.0), np.full(3, -1.7e308), np.eye(3) + 0.5)
    values = edge([[1.7e308] * 3, [-1.7e308] * 3])
    assert values[0] == 0 and values[1] > 0
    for wide in (1e300, 1e308):
        flat = GaussianEmbedding(Gaussian(1e-5), 0.0, wide)
        with pytest.raises(ValueError, match="covariance"):
            flat([0.0])
    wide = GaussianEmbedding(Gaussian(1.0), 0.0, 1e308)
    with pytest.raises(ValueError, match="covariance"):
        embedding_inner(wide, wide)


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e100])
def test_a_covariance_is_symmetric_and_positive_semidefinite(scale):
    """thm-gaussian-embedding: [[1, c], [c, 1]] is a covariance if and only if |c| <= 1, in
    all units; a variance is not negative."""
    k, mean = Gaussian(1.0), [0.0, 0.0]
    for c in (1.0, -1.0):
        mu = GaussianEmbedding(k, mean, scale * np.array([[1.0, c], [c, 1.0]]))
        assert 0 <= mu([[0.0, 0.0]])[0] <= 1
        for bad in ([[1.0, 1.01 * c], [1.01 * c, 1.0]], [[1.0, c], [0.9 * c, 1.0]]):
            with pytest.raises(ValueError, match="^covariance must"):
                GaussianEmbedding(k, mean, scale * np.array(bad))
    with pytest.raises(ValueError, match="^covariance must"):
        GaussianEmbedding(k, 0.0, -scale)
    with pytest.raises(ValueError, match="^covariance must"):
        GaussianEmbedding(k, mean, 1e200 * np.array([[1.0, 2.0], [2.0, 1.0]]))


# -- the error law ----------------------------------------------------------


def law(points, p, k):
    square = sum(a * b * k(s, t) for s, a in zip(points, p) for t, b in zip(points, p))
    return sum(a * k(s, s) for s, a in zip(points, p)) - square


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_error_law_by_exact_enumeration(n):
    """thm-embedding-error in fractions: all 3^n samples with their probabilities."""
    expected = Fraction(0)
    for draw in product(range(3), repeat=n):
        gap = [Fraction(draw.count(i), n) - P3[i] for i in range(3)]
        expected += math.prod(P3[i] for i in draw) * sum(
            gap[i] * gap[j] * k2(X3[i], X3[j]) for i in range(3) for j in range(3))
    assert expected == law(X3, P3, k2) / n == Fraction(51, 4) / n


def test_the_law_of_unequal_weights():
    """ex-embedding-shrinkage in fractions: V Σ w² + (1 - Σ w)² ‖μ‖²."""
    w = [Fraction(1, 2), Fraction(1, 3), Fraction(-1, 5)]
    square = sum(a * b * k2(s, t) for s, a in zip(X3, P3) for t, b in zip(X3, P3))
    expected = Fraction(0)
    for draw in product(range(3), repeat=3):
        gap = [sum(w[j] for j in range(3) if draw[j] == i) - P3[i] for i in range(3)]
        expected += math.prod(P3[i] for i in draw) * sum(
            gap[i] * gap[j] * k2(X3[i], X3[j]) for i in range(3) for j in range(3))
    assert expected == law(X3, P3, k2) * sum(v * v for v in w) + (1 - sum(w)) ** 2 * square


@pytest.mark.parametrize("kernel", [Polynomial(2), Gaussian(1.0), Laplace(0.5)], ids=names)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_estimated_error_is_unbiased(kernel, n):
    """prop-error-estimate: the mean of `embedding_error` over all samples is V/n."""
    average = sum(float(math.prod(P3[i] for i in draw))
                  * embedding_error(kernel, [float(X3[i]) for i in draw])
                  for draw in product(range(3), repeat=n))
    p = np.array([float(w) for w in P3])
    V = p @ kernel.diag(np.array(X3)) - norm(mean_embedding(kernel, X3, p)) ** 2
    assert np.isclose(average, V / n, rtol=1e-12)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 999), st.sampled_from(KERNELS))
def test_the_estimated_error_has_three_forms(seed, kernel):
    """prop-error-estimate: eq-error-estimate and both forms of eq-error-positive."""
    X = sample(9, seed=seed)
    K, n = kernel(X), 9
    value = embedding_error(kernel, X)
    by_counting = (np.trace(K) / n - (K.sum() - np.trace(K)) / (n * (n - 1))) / n
    mu = mean_embedding(kernel, X)
    by_spread = sum(norm(RKHSFunction(kernel, X[i:i + 1], [1.0]) - mu) ** 2
                    for i in range(n)) / (n * (n - 1))
    size = np.trace(K) / n**2
    assert value >= 0
    # The difference of two means of kernel values, known to 1e-15 of these.
    assert np.isclose(value, by_counting, rtol=0, atol=1e-13 * size)
    assert np.isclose(value, by_spread, rtol=0, atol=1e-12 * size)


def test_for_the_linear_kernel_it_is_the_standard_error_of_the_mean():
    """prop-error-estimate for numbers and vectors, ex-linear-embedding."""
    X = sample(700, 3)                                   # more than one tile
    assert np.isclose(embedding_error(Linear(), X), X.var(axis=0, ddof=1).sum() / 700,
                      rtol=1e-12)


def test_far_from_the_origin_the_standard_error_is_as_exact():
    """eq-error-positive: a vector taken from all features changes no distance."""
    X = 1e8 + sample(50, 3)
    wanted = X.var(axis=0, ddof=1).sum() / 50
    for kernel in (Linear(), 0.5 * Linear() + 0.5 * Linear()):
        # Without the shift all digits are lost: squares are 1e16 and errors of them 1.
        assert np.isclose(embedding_error(kernel, X), wanted, rtol=1e-12)


@pytest.mark.parametrize("kernel", [Linear(), 2.5 * Linear(), Linear() + Gaussian(1.0),
                                    Mapped(Linear(), lambda X: 3 * X), Polynomial(2)], ids=names)
def test_moved_features_keep_their_differences(kernel):
    """lem-features-moved: distances of features and the distance of two means."""
    X, Y = sample(6), sample(5, seed=1)
    Phi, Psi = Features(kernel, X), Features(kernel, Y, "Y")
    near, other = moved(Phi, Psi)
    assert other.name == "Y" and len(other) == 5
    if kernel == Polynomial(2):
        assert near is Phi and other is Psi
    squares, gaps = [], []
    for F, G in ((Phi, Psi), (near, other)):
        squares.append(np.add.outer(F.diag(), G.diag()) - 2 * F.gram(G))
        gaps.append(F.gram().mean() + G.gram().mean() - 2 * F.gram(G).mean())
    assert np.allclose(*squares, atol=1e-12) and np.isclose(*gaps, atol=1e-12)


def test_records_survive_pickling_and_copying():
    """thm-gaussian-embedding, thm-finite-characteristic: copies are equal and read-only."""
    mu, verdict = GaussianEmbedding(Gaussian(1.0), [0.0, 1.0], 2.0), is_characteristic(
        Gaussian(1.0), sample(4))
    for remade in (lambda r: pickle.loads(pickle.dumps(r)), copy.deepcopy, copy.copy):
        nu, other = remade(mu), remade(verdict)
        assert np.array_equal(nu(sample(3)), mu(sample(3)))
        assert np.array_equal(other.p, verdict.p) and other.distance == verdict.distance
        for array in (nu.mean, nu.covariance, other.p, other.q):
            assert not array.flags.writeable
    assert "np.float64" not in repr(verdict)


def test_large_samples_go_in_tiles():
    """prop-error-estimate without the Gram matrix, with the same number."""
    X = sample(3000)
    tracemalloc.start()
    value = embedding_error(Gaussian(1.0), X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The Gram matrix would take 72 MB; a few tiles of 0.5 MB for each core do not.
    assert peak < 30e6
    K = Gaussian(1.0)(X)
    assert np.isclose(value, (3000 * np.trace(K) - K.sum()) / (3000**2 * 2999), rtol=1e-10)


def test_coinciding_points_have_no_error():
    """eq-error-positive: zero up to the rounding of kernel values, and never below."""
    assert embedding_error(Gaussian(1.0), np.full(300, 0.3)) == 0
    # prop-rounded-gram: -2 δ is no squared norm if it is below -1e-8 n².
    assert embedding_error(FunctionKernel(lambda s, t: 1 + 1.9e-8 * (s != t)), [0.0, 1.0]) == 0
    with pytest.raises(ValueError, match="^kernel must be positive definite"):
        embedding_error(FunctionKernel(lambda s, t: 1 + 2.1e-8 * (s != t)), [0.0, 1.0])
    assert embedding_error(Linear(), [0.0, 0.0]) == 0
    for seed in range(50):                     # the diagonal and the matrix round differently
        x = 1e9 * sample(1, 7, seed)
        assert 0 <= embedding_error(Linear(), np.repeat(x, 5, axis=0)) <= 1e-15 * np.sum(x**2)
    # Far points: every pair has squared distance 2.
    assert np.isclose(embedding_error(Gaussian(1.0), 100.0 * np.arange(50)), 1 / 50, rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_the_estimated_error_at_extreme_scales(scale):
    X = sample(20)
    assert np.isclose(embedding_error(Linear(), scale * X) / scale / scale,
                      embedding_error(Linear(), X), rtol=1e-12)
    assert np.isclose(embedding_error(1e307 * Gaussian(1.0), X) / 1e307,
                      embedding_error(Gaussian(1.0), X), rtol=1e-12)


def test_the_estimated_error_on_strings_and_pairs():
    k, texts = FeatureKernel(substrings(2)), ["banana", "ananas", "bandana", "cabana"]
    K = k(texts)
    wanted = (4 * np.trace(K) - K.sum()) / (16 * 3)
    assert np.isclose(embedding_error(k, texts), wanted, rtol=1e-14)
    pairs = Pairs(np.arange(4.0), texts)
    K = TensorProduct(Gaussian(1.0), k)(pairs)
    assert np.isclose(embedding_error(TensorProduct(Gaussian(1.0), k), pairs),
                      (4 * np.trace(K) - K.sum()) / (16 * 3), rtol=1e-14)


@pytest.mark.parametrize("d", [1, 30])
def test_the_error_law_by_simulation_against_the_closed_form(d):
    """thm-embedding-error with thm-gaussian-embedding: 300 samples of 20 points."""
    rng, k, n = np.random.default_rng(d), Gaussian(np.sqrt(d)), 20
    exact = GaussianEmbedding(k, np.zeros(d), 1.0)
    V = 1 - embedding_inner(exact, exact)
    assert np.isclose(V, 1 - (1 + 2 / d) ** (-d / 2), rtol=1e-12)
    X = rng.normal(size=(300, n, d))
    squares = np.array([embedding_distance(mean_embedding(k, x), exact) ** 2 for x in X])
    estimates = np.array([embedding_error(k, x) for x in X])
    for values in (squares, estimates):
        # Five standard errors of the average: one failure in a million seeds.
        assert abs(values.mean() - V / n) < 5 * values.std() / np.sqrt(300)


def test_the_distance_is_the_largest_error_of_an_average():
    """cor-uniform-average: no function of norm one does worse, and the difference attains it."""
    k, X = Gaussian(0.8), sample(15, 1)[:, 0]
    mu_hat, mu = mean_embedding(k, X), GaussianEmbedding(k, 0.0, 1.0)
    points, weights = hermite(np.zeros(1), np.eye(1))
    by_points = mean_embedding(k, points[:, 0], weights)
    distance = embedding_distance(mu_hat, mu)
    worst = (mu_hat - by_points) / norm(mu_hat - by_points)
    assert np.isclose(worst(X).mean() - embedding_inner(worst, mu), distance, rtol=1e-8)
    for seed in range(20):
        f = RKHSFunction(k, sample(6, 1, seed)[:, 0], sample(6, 1, seed + 50)[:, 0])
        assert abs(f(X).mean() - embedding_inner(f, mu)) <= norm(f) * distance * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e307])
def test_eight_digits_of_a_kernel_are_enough_at_every_scale(scale):
    """prop-error-estimate: a sum below zero within 1e-8 of the kernel's size is rounding."""
    def flawed(by):
        return FunctionKernel(lambda s, t: scale * (1.0 if s == t else 1.0 + by))

    assert embedding_error(flawed(1e-9), [1, 2, 3]) == 0
    with pytest.raises(ValueError, match="kernel must be positive definite"):
        embedding_error(flawed(1e-7), [1, 2, 3])


def test_points_are_looked_at_once():
    """def-synthesis: a map Φ that was made before is used as it is, with the same numbers."""
    calls = []
    k = Mapped(Gaussian(1.0), lambda X: calls.append(len(X)) or np.asarray(X))
    X = sample(6)
    Phi = Features(k, X)
    assert np.array_equal(mean_embedding(k, Phi).weights, np.full(6, 1 / 6))
    verdict = is_characteristic(k, Phi)
    assert calls == [6]
    assert np.array_equal(verdict.p, is_characteristic(k, X).p) and len(calls) == 2
    assert embedding_error(k, Phi) == embedding_error(Gaussian(1.0), X)


@pytest.mark.parametrize(("digits", "good"), [(10, True), (4, False)])
def test_a_kernel_may_be_computed_to_eight_digits(digits, good):
    """prop-rounded-gram: a wide Gaussian kernel, rounded, has an eigenvalue below zero by as much
    as an entry was changed; ten digits pass for rounding, four do not."""
    k, X = FunctionKernel(lambda s, t: round(np.exp(-(s - t) ** 2 / 50), digits)), np.arange(9.0)
    assert np.linalg.eigvalsh(k(X / 2))[0] < -(10.0 ** -(digits + 1))
    if good:
        assert not is_characteristic(k, X / 2)
    else:
        with pytest.raises(ValueError, match="^kernel must be positive definite"):
            is_characteristic(k, X / 2)


def test_squared_norms_are_clipped_to_eight_digits():
    """prop-rounded-gram: less than -1e-8 of the terms is no rounding error."""
    assert np.array_equal(squared_norm([3.0, -0.9e-8], 1.0), [3.0, 0.0])
    assert squared_norm(-0.9e-8, 1.0) == 0 and squared_norm(3.0, 1.0) == 3
    with pytest.raises(ValueError, match="^k must be positive definite"):
        squared_norm([3.0, -1.1e-8], 1.0, "k")


# -- characteristic kernels -------------------------------------------------


def distance_by_expectations(kernel, X, p, Y, q):
    return p @ kernel(X) @ p - 2 * p @ kernel(X, Y) @ q + q @ kernel(Y) @ q


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 999), st.sampled_from(KERNELS))
def test_the_squared_distance_is_three_expectations(seed, kernel):
    """eq-embedding-square."""
    X, Y, p, q = sample(6, seed=seed), sample(5, seed=seed + 9), masses(6, seed), masses(5, seed)
    gap = embedding_distance(mean_embedding(kernel, X, p), mean_embedding(kernel, Y, q))
    size = max(kernel.diag(X).max(), kernel.diag(Y).max())
    assert np.isclose(gap**2, distance_by_expectations(kernel, X, p, Y, q), rtol=0,
                      atol=1e-13 * size)


def test_strictly_definite_kernels_are_characteristic_on_finite_sets():
    """thm-finite-characteristic, with the pair that is hardest to tell apart."""
    X = sample(8)
    for k in (Gaussian(0.7), Laplace(1.0), Delta(), Polynomial(1) + 0.1 * Delta()):
        verdict = is_characteristic(k, X)
        assert verdict and isinstance(verdict, Characteristic) and verdict.characteristic
        p, q = verdict.p, verdict.q
        assert np.isclose(p.sum(), 1) and np.isclose(q.sum(), 1)
        assert not p.flags.writeable and not q.flags.writeable and type(verdict.distance) is float
        assert (p >= 0).all() and (q >= 0).all() and (p * q == 0).all()
        gap = (p - q) @ k(X) @ (p - q)
        assert np.isclose(verdict.distance**2, gap, rtol=1e-9)
        assert np.isclose(verdict.distance, norm(mean_embedding(k, X, p - q)), rtol=1e-9)
        for seed in range(20):                       # no pair is worse
            c = masses(8, seed) - masses(8, seed + 30)
            assert c @ k(X) @ c / (c @ c) >= gap / ((p - q) @ (p - q)) * (1 - 1e-9)


def test_the_first_point_belongs_to_p():
    """thm-finite-characteristic: the sign of an eigenvector does not decide which is p."""
    for seed in range(10):
        verdict = is_characteristic(Gaussian(0.7), sample(6, seed=seed))
        first = np.flatnonzero(verdict.p + verdict.q > 1e-5)[0]
        assert verdict.p[first] > 0 and verdict.q[first] == 0


def test_characteristic_does_not_need_a_regular_gram_matrix():
    """thm-finite-characteristic: only vectors with sum zero matter; not universal."""
    sign = FunctionKernel(lambda s, t: 1.0 if s == t else -1.0)
    verdict = is_characteristic(sign, [1, 2])
    assert verdict and np.isclose(verdict.distance, 2)
    zero = mean_embedding(sign, [1, 2], [1.0, 1.0])
    assert inner(zero, zero) == 0 and not zero([1, 2]).any()
    assert np.linalg.matrix_rank(sign([1, 2])) == 1
    # A constant added to a kernel changes nothing for differences.
    X = sample(6)
    a = is_characteristic(Gaussian(1.0), X)
    b = is_characteristic(Gaussian(1.0) + 50.0 * Gaussian(1.0) ** 0, X)
    assert np.allclose(a.p, b.p, atol=1e-9) and np.isclose(a.distance, b.distance, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1.5e308])
def test_the_verdict_does_not_depend_on_the_scale(scale):
    X = np.arange(4.0)
    assert is_characteristic(scale * Gaussian(1.0), X)
    assert not is_characteristic(scale / 200 * Polynomial(2), X)
    assert not is_characteristic(0.0 * Gaussian(1.0), X)
    # Two points with opposite features: the squared distance 4 scale may overflow.
    sign = FunctionKernel(lambda s, t: scale if s == t else -scale)
    assert np.isclose(is_characteristic(sign, [1, 2]).distance / np.sqrt(scale), 2)


def test_letter_counts_confuse_distributions_of_strings():
    """thm-finite-characteristic on strings, and ex-delta-boost."""
    letters, strings = FeatureKernel(substrings(1)), ["aa", "ab", "bb"]
    verdict = is_characteristic(letters, strings)
    assert not verdict and verdict.distance == 0
    assert np.allclose(verdict.p, [0.5, 0, 0.5]) and np.allclose(verdict.q, [0, 1, 0])
    more = is_characteristic(letters, [*strings, "c"])       # a bystander has no weight at all
    assert not more and more.p[3] == more.q[3] == 0
    assert is_characteristic(FeatureKernel(substrings(2)), strings)
    assert is_characteristic(letters + 0.1 * Delta(), strings)


def twins(d):
    """2^d p and 2^d q of prop-binomial-twins as whole numbers."""
    return [[math.comb(d + 1, j) * (j % 2 == r) for j in range(d + 2)] for r in (0, 1)]


@pytest.mark.parametrize("d", range(1, 9))
def test_binomial_twins_agree_up_to_degree_d_in_exact_arithmetic(d):
    """prop-binomial-twins: moments, distances and supports, in whole numbers."""
    even, odd = twins(d)
    assert sum(even) == sum(odd) == 2**d
    assert all(a * b == 0 for a, b in zip(even, odd))
    moment = lambda w, r: sum(a * j**r for j, a in enumerate(w))  # noqa: E731
    assert all(moment(even, r) == moment(odd, r) for r in range(d + 1))
    gap = Fraction(moment(even, d + 1) - moment(odd, d + 1), 2**d)
    assert gap == Fraction((-1) ** (d + 1) * math.factorial(d + 1), 2**d)
    c = [a - b for a, b in zip(even, odd)]
    for degree, wanted in ((d, 0), (d + 1, math.factorial(d + 1) ** 2)):
        form = sum(a * b * (1 + i * j) ** degree for i, a in enumerate(c)
                   for j, b in enumerate(c))
        assert form == wanted


@pytest.mark.parametrize("d", range(1, 6))
def test_linear_and_polynomial_kernels_cannot_tell_the_twins_apart(d):
    """thm-polynomial-moments with prop-binomial-twins: the package finds the only pair."""
    even, odd = (np.array(w) / 2**d for w in twins(d))
    x = np.arange(d + 2.0)
    verdict = is_characteristic(Polynomial(d), x)
    # The eigenvector of a simple eigenvalue zero of a matrix with entries up to (1 + d²)^d.
    assert not verdict and np.allclose(verdict.p, even, atol=1e-9)
    assert np.allclose(verdict.q, odd, atol=1e-9)
    assert is_characteristic(Polynomial(d + 1), x) and is_characteristic(Gaussian(1.0), x)
    if d == 1:
        assert not is_characteristic(Linear(), x)
    same = mean_embedding(Polynomial(d), x, even)(x) - mean_embedding(Polynomial(d), x, odd)(x)
    assert np.array_equal(same, np.zeros(d + 2))         # whole numbers over 2^d: exact


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 999), st.integers(1, 4), st.sampled_from([0.0, 0.5, 1.0, 2.5]))
def test_polynomial_kernels_see_the_moments(seed, degree, c):
    """thm-polynomial-moments: the distance is a weighted sum of squared differences of moments."""
    X, Y, p, q = sample(6, seed=seed), sample(5, seed=seed + 9), masses(6, seed), masses(5, seed)
    k = Polynomial(degree, c)
    moments = (p @ polynomial_features(X, degree, c) - q @ polynomial_features(Y, degree, c))
    gap = embedding_distance(mean_embedding(k, X, p), mean_embedding(k, Y, q))
    size = max(k.diag(X).max(), k.diag(Y).max())
    assert np.isclose(gap**2, moments @ moments, rtol=0, atol=1e-12 * size)


def test_three_points_pass_for_a_normal_distribution_up_to_degree_five():
    """thm-polynomial-moments: sixth moments 9 and 15, so Polynomial(6) sees 6."""
    x, p = np.sqrt(3) * np.array([-1, 0, 1]), np.array([1, 4, 1]) / 6
    z, w = np.polynomial.hermite_e.hermegauss(20)
    for degree in range(1, 6):
        k = Polynomial(degree)
        mu = mean_embedding(k, x, p)
        gap = mu - mean_embedding(k, z, w / w.sum())
        assert abs(inner(gap, gap)) < 1e-12 * inner(mu, mu)
    k = Polynomial(6)
    assert np.isclose(norm(mean_embedding(k, x, p) - mean_embedding(k, z, w / w.sum())), 6)


@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_the_distance_is_an_integral_over_frequencies(sigma):
    """thm-characteristic-spectrum, part 1, for the Gaussian kernel by quadrature."""
    X, Y, p, q = np.array([0.0, 1.0, 2.5]), np.array([0.3, 2.0]), masses(3), masses(2, 1)

    def integrand(omega):
        gap = np.exp(1j * omega * X) @ p - np.exp(1j * omega * Y) @ q
        return abs(gap) ** 2 * sigma * np.exp(-((sigma * omega) ** 2) / 2) / np.sqrt(2 * np.pi)

    k = Gaussian(sigma)
    left = norm(mean_embedding(k, X, p) - mean_embedding(k, Y, q)) ** 2
    assert np.isclose(left, 2 * quad(integrand, 0, 12 / sigma, limit=200)[0], rtol=1e-8)


def test_two_normal_distributions_by_their_characteristic_functions():
    """thm-characteristic-spectrum against thm-gaussian-embedding."""
    sigma, (m, s), (r, t) = 0.7, (0.2, 1.0), (-0.5, 1.6)

    def integrand(omega):
        gap = np.exp(1j * omega * m - (s * omega) ** 2 / 2) - np.exp(
            1j * omega * r - (t * omega) ** 2 / 2)
        return abs(gap) ** 2 * sigma * np.exp(-((sigma * omega) ** 2) / 2) / np.sqrt(2 * np.pi)

    k = Gaussian(sigma)
    distance = embedding_distance(GaussianEmbedding(k, m, s**2), GaussianEmbedding(k, r, t**2))
    assert np.isclose(distance**2, 2 * quad(integrand, 0, 15)[0], rtol=1e-9)


def test_the_sinc_kernel_confuses_a_density_and_its_wavy_twin():
    """thm-characteristic-spectrum, part 3, and cor-characteristic-kernels."""
    h = 0.1
    x = np.arange(-500, 500, h) + h / 2
    p = (1 - np.cos(x)) / (np.pi * x**2)
    q = p * (1 + np.cos(2.5 * x))
    # The tails beyond 500 have the mass 2/(500 π).
    assert abs(h * p.sum() - 1) < 2e-3 and abs(h * q.sum() - 1) < 2e-3
    t = np.linspace(-6, 6, 25) + 0.01
    closed = (1 - np.cos(t)) / t**2
    mu_p, mu_q = (h * Sinc(np.pi)(t, x) @ density for density in (p, q))
    # The tail of the product with 1/(x - t) is of the order 1/500².
    assert np.abs(mu_p - closed).max() < 1e-5 and np.abs(mu_q - closed).max() < 1e-5
    seen = h * Gaussian(0.5)(t, x) @ (q - p)
    assert np.abs(seen).max() > 0.05
    # With a narrower sinc the frequencies reach the difference.
    assert np.abs(h * Sinc(1.0)(t, x) @ (q - p)).max() > 0.05


def test_the_exponential_kernel_embeds_as_the_moment_generating_function():
    """thm-mgf and prop-mgf-normal: values, norm by series and by quadrature, and V."""
    z, w = np.polynomial.hermite_e.hermegauss(80)
    w = w / w.sum()
    t = np.array([-1.0, 0.3, 1.5])
    for s in (0.2, 0.6):
        mu = mean_embedding(Exponential(), s * z, w)
        assert np.allclose(mu(t), np.exp(s**2 * t**2 / 2), rtol=1e-10)
        series = sum(s ** (4 * m) * math.comb(2 * m, m) / 4**m for m in range(200))
        assert np.isclose(norm(mu) ** 2, (1 - s**4) ** -0.5, rtol=1e-10)
        assert np.isclose(series, (1 - s**4) ** -0.5, rtol=1e-10)
        root = quad(lambda x: np.exp(x**2 / 2 - x**2 / (2 * s**2)), -30 * s, 30 * s)[0]
        assert np.isclose(root / (s * np.sqrt(2 * np.pi)), (1 - s**2) ** -0.5, rtol=1e-8)
    # E k(X, X) for s = 0.6.
    full = quad(lambda x: np.exp(x**2 - x**2 / 0.72), -20, 20)[0] / (0.6 * np.sqrt(2 * np.pi))
    assert np.isclose(full, (1 - 0.72) ** -0.5, rtol=1e-8)


def test_the_exponential_kernel_is_a_gaussian_kernel_on_another_measure():
    """thm-mgf: e^⟨x, y⟩ = g(x) k(x, y) g(y), so μ_P is g times the embedding of g P."""
    X, p, T = sample(5), masses(5), sample(4, seed=1)
    g = lambda Z: np.exp(np.sum(Z**2, axis=1) / 2)  # noqa: E731
    left = mean_embedding(Exponential(), X, p)(T)
    right = g(T) * mean_embedding(Gaussian(1.0), X, g(X) * p)(T)
    assert np.allclose(left, right, rtol=1e-12)
    assert is_characteristic(Exponential(), X)


def test_universal_and_characteristic_on_a_grid():
    """thm-universal-characteristic: functions near an indicator separate what it separates."""
    x = np.linspace(0, 1, 12)
    k = Gaussian(0.15)
    target = (x < 0.5) * 1.0
    f = interpolate(k, x, target)
    p, q = masses(12), masses(12, 1)
    gap = mean_embedding(k, x, p) - mean_embedding(k, x, q)
    assert np.isclose(inner(f, gap), target @ (p - q), atol=1e-6)
    assert norm(gap) >= abs(target @ (p - q)) / norm(f) * (1 - 1e-6)


def test_the_delta_kernel_sees_atoms():
    """What breaks: without atoms the squared norm is 1/n; with atoms it is Σ p²."""
    x = np.random.default_rng(0).normal(size=400)
    assert np.isclose(norm(mean_embedding(Delta(), x)) ** 2, 1 / 400)
    assert np.isclose(embedding_error(Delta(), x), 1 / 400)
    p = masses(5)
    assert np.isclose(norm(mean_embedding(Delta(), list("abcde"), p)) ** 2, p @ p)


def test_the_ends_of_the_bandwidth():
    """prop-bandwidth-limits, for normal distributions and for atoms."""
    S, R = np.array([[1.0, 0.3], [0.3, 2.0]]), np.array([[0.5, 0.0], [0.0, 1.0]])
    m, r = np.array([0.2, -0.4]), np.array([1.0, 0.0])
    wide, narrow = Gaussian(300.0), Gaussian(1e-4)
    mu, nu = GaussianEmbedding(wide, m, S), GaussianEmbedding(wide, r, R)
    # Relative corrections are of the order of moments over σ², 1e-4.
    gap = 300.0**2 * embedding_distance(mu, nu) ** 2
    assert np.isclose(gap, np.sum((m - r) ** 2), rtol=1e-3)
    assert np.isclose(300.0**2 * (1 - embedding_inner(mu, mu)), np.trace(S), rtol=1e-3)
    mu, nu = GaussianEmbedding(narrow, m, S), GaussianEmbedding(narrow, r, R)
    assert embedding_distance(mu, nu) < 1e-3
    assert np.isclose(1 - embedding_inner(mu, mu), 1, atol=1e-6)
    X, p, q = np.arange(4.0), masses(4), masses(4, 1)
    gap = norm(mean_embedding(narrow, X, p) - mean_embedding(narrow, X, q))
    assert np.isclose(gap**2, np.sum((p - q) ** 2))


def test_an_embedding_can_exist_without_the_condition():
    """exm-beyond-condition: E √k and E k diverge, ‖μ‖² tends to 6/π², μ is constant."""
    k, c = FunctionKernel(lambda i, j: float(i * i) if i == j else 0.0), 6 / np.pi**2
    i = np.arange(1, 60)
    mu = mean_embedding(k, i, c / i**2)
    assert np.allclose(mu(i), c)
    assert c - norm(mu) ** 2 < c**2 / 59                   # the tail of Σ 1/i²
    far = np.arange(1, 10**6)
    assert np.sum(c / far) > 8 and np.isclose(c**2 * np.sum(1 / far.astype(float) ** 2), c,
                                              atol=1e-6)


def test_the_points_of_a_finite_set_are_distinct():
    """thm-finite-characteristic: two equal points have one embedding; a little apart they
    have two."""
    k = Gaussian(1.0)
    for X in ([1.0, 2.0, 1.0], [[1.0, 2.0], [1.0, 2.0]]):
        with pytest.raises(ValueError, match="X.*distinct"):
            is_characteristic(k, X)
    with pytest.raises(ValueError, match="distinct"):
        is_characteristic(FeatureKernel(substrings(1)), ["a", "b", "a"])
    assert is_characteristic(k, [1.0, 2.0, 1.5])
    assert is_characteristic(FeatureKernel(substrings(1)), ["a", "b", "c"])


def test_points_that_cannot_be_hashed_are_taken_on_trust():
    k = FunctionKernel(lambda a, b: float(len(a & b)))
    assert is_characteristic(k, [{1}, {2}, {1, 3}])
    assert not is_characteristic(k, [{1}, {2}, {1, 2}, set()])
