"""Identities of the chapter on kernel PCA and pre-images."""

import copy
import pickle
import tracemalloc
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import rkhs_lit.pca as chapter
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rkhs_lit import (
    Delta,
    FeatureKernel,
    Features,
    FunctionKernel,
    Gaussian,
    Laplace,
    Linear,
    Pairs,
    Polynomial,
    PrincipalComponents,
    RKHSFunction,
    TensorProduct,
    centre,
    denoise,
    inner,
    kernel_pca,
    modes,
    norm,
    normalised,
    nystrom_features,
    pivoted_cholesky,
    polynomial_features,
    preimage,
    squared_distances,
    substrings,
)
from scipy.linalg import subspace_angles
from scipy.optimize import minimize
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, KernelPCA

SENTENCES = ["a rose is a rose", "a nose is no rose", "water under bridges", "under the bridge"]


def sample(n=20, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def orthonormal(n, r, rng):
    return np.linalg.qr(rng.normal(size=(n, r)))[0]


# -- Centring -------------------------------------------------------------


def test_centre_is_h_k_h_in_exact_arithmetic():
    """lem-centre, with integers whose means are exact in binary."""
    K = [[4, 8, -4, 0], [12, 4, 16, 8], [0, -8, 4, 4], [8, 0, 0, 32]]
    H = [[Fraction(i == j) - Fraction(1, 4) for j in range(4)] for i in range(4)]

    def times(A, B):
        return [[sum(a * b for a, b in zip(row, column)) for column in zip(*B)] for row in A]

    assert np.array_equal(centre(K), np.array(times(times(H, K), H), dtype=float))


@given(arrays(float, (6, 6), elements=st.floats(-1e3, 1e3)))
def test_centre_gives_zero_row_and_column_sums_and_is_idempotent(K):
    """lem-centre: H 1 = 0 and H² = H. Sums of 6 numbers below 4e3 round by 1e-11."""
    C = centre(K)
    assert np.allclose(C.sum(axis=0), 0, atol=1e-10)
    assert np.allclose(C.sum(axis=1), 0, atol=1e-10)
    assert np.allclose(centre(C), C, atol=1e-10)


def test_centred_gram_matrix_is_that_of_the_centred_features():
    """lem-centre, with the explicit features of a polynomial kernel."""
    X = sample(9)
    features = polynomial_features(X, 3)
    seen = features - features.mean(axis=0)
    assert np.allclose(centre(Polynomial(3)(X)), seen @ seen.T)


def test_centre_leaves_its_argument_alone_and_takes_one_pass_of_memory():
    """A centred matrix is one new matrix, not several."""
    K = Gaussian(1.0)(sample(600))
    copy = K.copy()
    tracemalloc.start()
    centre(K)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.array_equal(K, copy)
    assert peak < 1.5 * K.nbytes


def test_centre_computes_in_double_precision():
    """Means of single-precision numbers are not rounded to single precision."""
    K = Gaussian(1.0)(sample(7)).astype(np.float32)
    assert np.array_equal(centre(K), centre(K.astype(float)))
    assert np.array_equal(centre(np.eye(2, dtype=bool)), [[0.5, -0.5], [-0.5, 0.5]])


# -- PCA in a Hilbert space -----------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(2, 12))
def test_no_subspace_keeps_more_variance_or_loses_less(seed, r, n):
    """thm-pca, parts 2 and 3; errors of 1e-10 are 1e5 rounding errors."""
    rng = np.random.default_rng(seed)
    v = rng.normal(size=(n, 5)) * rng.uniform(0, 3, size=5)
    C = v.T @ v / n
    lam = np.linalg.eigvalsh(C)[::-1]
    U = orthonormal(5, r, rng)
    kept = np.trace(U.T @ C @ U)
    lost = np.mean(np.sum((v - v @ U @ U.T) ** 2, axis=1))
    assert np.isclose(lost, lam.sum() - kept)
    assert kept <= lam[:r].sum() + 1e-10
    assert lost >= lam[r:].sum() - 1e-10


def test_the_components_attain_the_bounds_one_at_a_time():
    """thm-pca, part 1, against a general optimiser on the sphere."""
    v = sample(30, 3) * [2.0, 1.0, 0.5]
    f = kernel_pca(Linear(), v, 3, centred=False)
    directions = np.array([g(np.eye(3)) for g in f.components])
    C, rng = v.T @ v / 30, np.random.default_rng(1)
    for r in range(3):
        left = np.eye(3) - directions[:r].T @ directions[:r]

        def negative(u, left=left):
            u = left @ u / np.linalg.norm(left @ u)
            return -u @ C @ u

        best = min(minimize(negative, rng.normal(size=3)).fun for _ in range(3))
        assert np.isclose(-best, f.eigenvalues[r], rtol=1e-8)
        assert np.isclose(directions[r] @ C @ directions[r], f.eigenvalues[r])


@given(st.integers(0, 10**6), st.integers(1, 6))
def test_every_subspace_has_a_direction_below_the_eigenvalue(seed, l):
    """thm-pca, part 4: the least Rayleigh quotient in a subspace of dimension l."""
    rng = np.random.default_rng(seed)
    v = rng.normal(size=(4, 6))
    C = v.T @ v / 4
    lam = np.linalg.eigvalsh(C)[::-1]
    U = orthonormal(6, l, rng)
    assert np.linalg.eigvalsh(U.T @ C @ U)[0] <= lam[l - 1] + 1e-10


@given(st.integers(0, 10**6))
def test_a_larger_operator_has_larger_eigenvalues(seed):
    """cor-pca-monotone."""
    rng = np.random.default_rng(seed)
    A, B = (x @ x.T for x in rng.normal(size=(2, 5, 2)))
    assert (np.linalg.eigvalsh(A + B) >= np.linalg.eigvalsh(A) - 1e-10).all()


@given(st.integers(0, 10**6))
def test_the_best_affine_subspace_passes_through_the_mean(seed):
    """prop-pca-affine."""
    rng = np.random.default_rng(seed)
    w, a = rng.normal(size=(7, 4)) + 3, rng.normal(size=4)
    U = orthonormal(4, 2, rng)
    off, mu = np.eye(4) - U @ U.T, w.mean(axis=0)
    distance = np.mean([np.linalg.lstsq(U, row - a)[1][0] for row in w])
    assert np.isclose(distance, np.mean(np.sum(((w - mu) @ off) ** 2, axis=1))
                      + (mu - a) @ off @ (mu - a))


def test_linear_kernel_pca_is_pca():
    """thm-kpca for the linear kernel, against scikit-learn's PCA."""
    X = sample(40, 4) * [3.0, 2.0, 1.0, 0.5] + 5
    ours, peer = kernel_pca(Linear(), X, 3), PCA(3).fit(X)
    T = sample(10, 4, seed=1)
    assert np.allclose(ours.eigenvalues * 40 / 39, peer.explained_variance_)
    assert np.allclose(abs(ours.transform(T)), abs(peer.transform(T)))
    shares = ours.eigenvalues / ours.variance
    assert np.allclose(shares, peer.explained_variance_ratio_)
    # A function of the linear kernel is an inner product with a vector.
    back = np.array([f(np.eye(4)) for f in ours.reconstruct(T)])
    assert np.allclose(back, peer.inverse_transform(peer.transform(T)))


# -- Kernel PCA -----------------------------------------------------------


def explicit(X, centred):
    features = polynomial_features(X, 2)
    mean = features.mean(axis=0) * centred
    return features, mean


@pytest.mark.parametrize("centred", [True, False])
def test_components_are_eigenvectors_of_the_covariance_operator(centred):
    """thm-kpca and C-6.3.2: the operator as a matrix on explicit features."""
    X, T = sample(12), sample(6, seed=1)
    features, mean = explicit(X, centred)
    C = (features - mean).T @ (features - mean) / 12
    p = 5 if centred else 6
    pca = kernel_pca(Polynomial(2), X, p, centred=centred)
    assert np.allclose(pca.eigenvalues, np.linalg.eigvalsh(C)[::-1][:p])
    assert np.isclose(pca.variance, np.trace(C))
    vectors = pca.weights.T @ features          # f = Σ w_i φ(x_i)
    assert np.allclose(vectors @ C, pca.eigenvalues[:, None] * vectors)
    assert np.allclose(pca.transform(T), (polynomial_features(T, 2) - mean) @ vectors.T)


@pytest.mark.parametrize("kernel", [Gaussian(0.8), Laplace(1.0), Polynomial(3)])
@pytest.mark.parametrize("centred", [True, False])
def test_components_are_orthonormal_functions(kernel, centred):
    """thm-kpca, part 1. The weights have size 1/√(nλ), so rounding is within 1e-7."""
    pca = kernel_pca(kernel, sample(25), 6, centred=centred)
    gram = [[inner(f, g) for g in pca.components] for f in pca.components]
    assert np.allclose(gram, np.eye(6), atol=1e-7)
    assert np.allclose([norm(f) for f in pca.components], 1)


def test_weights_of_centred_components_sum_to_zero():
    """prop-kpca-weights; uncentred ones need not."""
    X = sample(25)
    assert np.allclose(kernel_pca(Gaussian(1.0), X, 5).weights.sum(axis=0), 0, atol=1e-10)
    raw = kernel_pca(Gaussian(1.0), X, 5, centred=False)
    assert abs(raw.weights.sum(axis=0)).max() > 0.1


def test_scores_of_the_data_are_scaled_eigenvectors():
    """thm-kpca, part 4, and the sign rule."""
    X = sample(25)
    pca = kernel_pca(Gaussian(1.0), X, 5)
    scores, n = pca.transform(X), 25
    lam, alpha = np.linalg.eigh(centre(Gaussian(1.0)(X)))
    for l in range(5):
        a = alpha[:, -1 - l]
        assert np.allclose(abs(scores[:, l]), np.sqrt(n * pca.eigenvalues[l]) * abs(a))
        assert scores[np.argmax(abs(scores[:, l])), l] > 0
    assert np.allclose(scores.T @ scores / n, np.diag(pca.eigenvalues))
    assert np.allclose(scores.mean(axis=0), 0)


@given(st.integers(0, 10**6))
def test_the_equation_with_one_matrix_too_many(seed):
    """prop-kpca-squared: α' + α_0 solves it, and describes the same function."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 2))
    G = centre(Linear()(X))
    lam, alpha = np.linalg.eigh(G)
    longer = alpha[:, -1] + alpha[:, :4] @ rng.normal(size=4)
    assert np.allclose(G @ G @ longer, lam[-1] * G @ longer)
    assert not np.allclose(G @ longer, lam[-1] * longer)
    V = X - X.mean(axis=0)
    assert np.allclose(V.T @ longer, V.T @ alpha[:, -1])


@pytest.mark.parametrize("kernel, options", [
    (Gaussian(1.5), {"kernel": "rbf", "gamma": 1 / 4.5}),
    (Polynomial(3), {"kernel": "poly", "gamma": 1, "degree": 3, "coef0": 1}),
    (Linear(), {"kernel": "linear"}),
])
def test_scikit_learn_agrees_up_to_sign(kernel, options):
    """thm-kpca, prop-kpca-score: eigenvalues are n times ours there."""
    X, T = sample(60, 3), sample(20, 3, seed=1)
    ours, peer = kernel_pca(kernel, X, 3), KernelPCA(3, **options).fit(X)
    assert np.allclose(60 * ours.eigenvalues, peer.eigenvalues_, rtol=1e-10)
    theirs = peer.transform(T)
    sign = np.sign(np.sum(ours.transform(T) * theirs, axis=0))
    assert np.allclose(ours.transform(T), sign * theirs, atol=1e-9)


def test_new_points_are_centred_with_the_training_mean():
    """prop-kpca-score: a score is f(t) less the mean of f over the data."""
    X, T = sample(15), sample(4, seed=1) + 2
    pca = kernel_pca(Gaussian(1.0), X, 3)
    for l, f in enumerate(pca.components):
        assert np.allclose(pca.transform(T)[:, l], f(T) - f(X).mean())
        assert np.isclose(pca.offsets[l], inner(pca.mean, f))
    both = pca.transform(np.vstack([T, T + 1]))
    assert np.allclose(both[:4], pca.transform(T))


@pytest.mark.parametrize("centred", [True, False])
def test_reconstruction_is_the_nearest_function_of_the_affine_span(centred):
    """prop-kpca-score: distance by Pythagoras, and no other function is nearer."""
    X, T = sample(15), sample(3, seed=1)
    k = Gaussian(1.0)
    pca = kernel_pca(k, X, 4, centred=centred)
    rng = np.random.default_rng(2)
    for t, f in zip(T, pca.reconstruct(T)):
        k_t = RKHSFunction(k, t[None], [1.0])
        square = norm(k_t - f) ** 2
        score = pca.transform(t[None])[0]
        assert np.isclose(square, norm(k_t - pca.mean) ** 2 - score @ score)
        for shift in rng.normal(size=(5, 4)):
            g = f + RKHSFunction(k, pca.points, pca.weights @ shift)
            assert np.isclose(norm(k_t - g) ** 2, square + shift @ shift)


def test_all_components_reconstruct_the_data():
    """prop-kpca-score, r = p: nothing is left. Distances are roots of rounding errors."""
    X = sample(8)
    pca = kernel_pca(Gaussian(1.0), X)
    assert len(pca.eigenvalues) == 7
    for x, f in zip(X, pca.reconstruct(X)):
        assert norm(RKHSFunction(pca.kernel, x[None], [1.0]) - f) < 1e-6
    assert np.isclose(pca.eigenvalues.sum(), pca.variance)


def test_uncentred_eigenvalues_interlace():
    """thm-kpca-uncentred."""
    for seed in range(5):
        X = sample(20, seed=seed)
        pca = kernel_pca(Gaussian(1.0), X, 8)
        raw = kernel_pca(Gaussian(1.0), X, 8, centred=False)
        assert (pca.eigenvalues <= raw.eigenvalues + 1e-15).all()
        assert (raw.eigenvalues[1:] <= pca.eigenvalues[:-1] + 1e-15).all()
        square = norm(pca.mean) ** 2
        assert raw.eigenvalues[0] >= square
        assert np.isclose(raw.variance, pca.variance + square)
        assert np.isclose(square, Gaussian(1.0)(X).mean())
        assert norm(raw.mean) == 0 and not raw.offsets.any()


def test_the_order_of_the_points_does_not_matter():
    """thm-kpca: functions are the same, except perhaps for their sign."""
    X, T = sample(30), sample(5, seed=1)
    order = np.random.default_rng(2).permutation(30)
    a, b = kernel_pca(Gaussian(1.0), X, 4), kernel_pca(Gaussian(1.0), X[order], 4)
    assert np.allclose(a.transform(T), b.transform(T), atol=1e-9)


def test_the_sign_is_that_of_the_first_of_the_largest_scores():
    """Symmetric data have a tie, which the first point decides."""
    pca = kernel_pca(Linear(), [-2.0, -1.0, 1.0, 2.0], 1)
    assert np.allclose(pca.transform([-2.0, 2.0])[:, 0], [2, -2])
    for solver in ("dense", "iterative"):
        pca = kernel_pca(Linear(), [1.0, 2.0, 1.0, -7.0, 1.0], 1, solver=solver)
        assert pca.transform([-7.0])[0, 0] > 0


def test_two_points_by_hand():
    """ex-kpca-two-points: λ = d²/4, f = (k_x - k_y)/d."""
    k = Gaussian(1.0)
    d = np.sqrt(2 - 2 * np.exp(-0.5))
    pca = kernel_pca(k, [0.0, 1.0], 1)
    assert np.isclose(pca.eigenvalues[0], d**2 / 4)
    assert np.allclose(abs(pca.weights[:, 0]), 1 / d)
    assert np.allclose(abs(pca.transform([0.0, 1.0])), d / 2)


def test_a_wide_gaussian_kernel_is_linear():
    """ex-kpca-wide; the next term is of the order σ^-2."""
    X, sigma = sample(20), 1e3
    wide, linear = kernel_pca(Gaussian(sigma), X, 2), kernel_pca(Linear(), X, 2)
    assert np.allclose(sigma**2 * wide.eigenvalues, linear.eigenvalues, rtol=1e-4)
    assert np.allclose(sigma * abs(wide.transform(X)), abs(linear.transform(X)), atol=1e-3)


def test_the_first_uncentred_component_of_a_positive_kernel_is_positive():
    """ex-kpca-perron."""
    f = kernel_pca(Gaussian(0.5), sample(20), 1, centred=False).components[0]
    assert (f.weights > 0).all() and (f(sample(50, seed=1)) > 0).all()
    # Centred, a Gaussian component has integral zero; that of xy is x.
    f = kernel_pca(Gaussian(0.5), sample(20, 1), 1).components[0]
    grid = np.linspace(-8, 8, 4001)
    assert abs(f(grid).sum() * (grid[1] - grid[0])) < 1e-9 < abs(f(grid)).max()
    f = kernel_pca(Linear(), [1.0, 2.0, 4.0], 1).components[0]
    assert np.allclose(f([0.5, 1.0, 7.0]), [0.5, 1.0, 7.0])


def test_repeated_points_are_points_with_weights():
    """The covariance of a sample with repetitions, by hand for the linear kernel."""
    X = np.repeat(sample(6), [1, 3, 1, 2, 1, 1], axis=0)
    pca = kernel_pca(Linear(), X)
    assert np.allclose(pca.eigenvalues, np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1])
    twice = kernel_pca(Gaussian(1.0), np.vstack([X, X]), 5)
    assert np.allclose(twice.eigenvalues, kernel_pca(Gaussian(1.0), X, 5).eigenvalues)


def test_points_may_be_anything_with_a_kernel():
    """Strings and pairs go through all three roads."""
    k = normalised(FeatureKernel(substrings(2)))
    pca = kernel_pca(k, SENTENCES)
    assert len(pca.eigenvalues) == 3
    for s, f in zip(SENTENCES, pca.reconstruct(SENTENCES)):
        assert max(SENTENCES, key=lambda z, f=f: f([z])[0]) == s
    low = kernel_pca(k, SENTENCES, 2, max_rank=4)
    assert np.allclose(low.transform(SENTENCES), pca.transform(SENTENCES)[:, :2])
    pairs = Pairs(sample(8), list("aabbabab"))
    both = TensorProduct(Gaussian(1.0), Delta())
    parts = [kernel_pca(both, pairs, 2, **o) for o in (
        {"solver": "dense"}, {"solver": "iterative"}, {"max_rank": 8})]
    for other in parts[1:]:
        assert np.allclose(other.eigenvalues, parts[0].eigenvalues)
        assert np.allclose(other.transform(pairs), parts[0].transform(pairs))


@pytest.mark.parametrize("options", [{"solver": "dense"}, {"solver": "iterative"}, {"max_rank": 25}])
@pytest.mark.parametrize("c", [1e-200, 1e200])
def test_the_scale_of_the_kernel_does_not_matter(options, c):
    """c k has c times the eigenvalues, and √c times the scores."""
    X = sample(25)
    one, scaled = (kernel_pca(k, X, 3, **options) for k in (Gaussian(1.0), c * Gaussian(1.0)))
    assert np.allclose(scaled.eigenvalues / c, one.eigenvalues)
    assert np.allclose(scaled.transform(X) / np.sqrt(c), one.transform(X))
    assert np.isclose(scaled.variance / c, one.variance)
    assert np.isclose(norm(scaled.components[0]), 1)


def test_more_components_than_directions_are_refused():
    """lem-pca-spectrum: p = dim span; rounding is not a direction."""
    assert len(kernel_pca(Linear(), sample(30, 3)).eigenvalues) == 3
    assert len(kernel_pca(Linear(), sample(30, 3), centred=False).eigenvalues) == 3
    assert len(kernel_pca(Delta(), list("abcab")).eigenvalues) == 2
    for options in ({}, {"solver": "iterative"}, {"max_rank": 10}):
        with pytest.raises(ValueError, match="n_components must be at most 3, in so many"):
            kernel_pca(Linear(), sample(30, 3), 4, **options)
    with pytest.raises(ValueError, match="n_components must be at most 3, in so many"):
        kernel_pca(Gaussian(1.0), sample(4), 5)


@pytest.mark.parametrize("kernel, X", [
    (Gaussian(1.0), [1.0]), (Gaussian(1.0), [2.0, 2.0, 2.0]),
    (Gaussian(1.0), [1.0, 1.0 + 1e-12, 1.0 - 1e-12]), (0.0 * Gaussian(1.0), [0.0, 1.0, 2.0, 3.0])])
@pytest.mark.parametrize("options", [{}, {"max_rank": 2}, {"solver": "iterative"}])
def test_features_that_do_not_vary_are_refused(kernel, X, options):
    """thm-pca: the operator of features with one value is zero, and has no component; where they
    vary by 1e-3 it has one, with the variance (2/3) 1e-6."""
    if len(X) > 1 or "solver" not in options:
        with pytest.raises(ValueError, match="X must have features that vary"):
            kernel_pca(kernel, X, 1, **options)
    found = kernel_pca(Gaussian(1.0), [1.0, 1.001, 0.999], 1, **options)
    assert np.isclose(found.eigenvalues[0], 2e-6 / 3, rtol=1e-3, atol=0)


@pytest.mark.parametrize("options", [{}, {"solver": "iterative"}, {"max_rank": 5}])
def test_what_centring_cancels_counts_as_rounding(options):
    """prop-rounded-gram: variances of 1e-6 among products of 1e15 are lost, and it is said so;
    among products of 1e3 they are not."""
    noise = 1e-3 * sample(12)
    with pytest.raises(ValueError, match="X must have features that vary"):
        kernel_pca(Linear(), np.array([1e8 / 3, 1e8 / 7]) + noise, 1, **options)
    near = kernel_pca(Linear(), np.array([1e2 / 3, 1e2 / 7]) + noise, 1, **options)
    wanted = np.linalg.eigvalsh(np.cov(noise.T, bias=True))[-1]
    assert np.isclose(near.eigenvalues[0], wanted, rtol=1e-5, atol=0)


@pytest.mark.parametrize("options", [{}, {"solver": "iterative"}, {"max_rank": 3}])
def test_values_next_to_the_smallest_numbers(options):
    """Squares of 1e-155 have few digits left, but they do not overflow on division."""
    X = np.array([1.0, 2.0, -1.0, 3.0]) * 1e-155
    assert np.allclose(kernel_pca(Linear(), X, 1, **options).eigenvalues * 1e300,
                       2.1875e-10, rtol=1e-6, atol=0)


# -- Many points ----------------------------------------------------------


@given(st.integers(0, 10**6))
def test_what_a_residual_proves(seed):
    """lem-kpca-residual."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(6, 6))
    A = A + A.T
    lam, E = np.linalg.eigh(A)
    a = E[:, 2] + 0.05 * rng.normal(size=6)
    a /= np.linalg.norm(a)
    theta = a @ A @ a
    rho = np.linalg.norm(A @ a - theta * a)
    near = np.argmin(abs(lam - theta))
    assert abs(lam[near] - theta) <= rho + 1e-12
    gamma = np.delete(abs(lam - theta), near).min()
    off = np.linalg.norm(a - E[:, near] * (E[:, near] @ a))
    assert gamma * off <= rho + 1e-12


@pytest.mark.parametrize("centred", [True, False])
def test_iterative_and_dense_agree(centred):
    """lem-kpca-residual: residuals of 1e-9 λ_1 and gaps above 1e-3 λ_1."""
    X, T = sample(150, 3), sample(20, 3, seed=1)
    a, b = (kernel_pca(Gaussian(1.5), X, 5, centred=centred, solver=s)
            for s in ("dense", "iterative"))
    assert np.allclose(a.eigenvalues, b.eigenvalues, rtol=1e-10)
    assert np.allclose(a.transform(T), b.transform(T), atol=1e-7)
    assert np.isclose(a.variance, b.variance)


def test_auto_takes_the_iterative_road_for_few_of_many():
    """lem-kpca-residual: the default computes all eigenvalues of small matrices only."""
    X = sample(501)
    auto, dense, iterative = (kernel_pca(Gaussian(1.0), X, 25, solver=s)
                              for s in ("auto", "dense", "iterative"))
    assert np.array_equal(auto.weights, iterative.weights)
    assert not np.array_equal(auto.weights, dense.weights)
    for points, r in ((X[:500], 5), (X, 26)):
        auto, dense = (kernel_pca(Gaussian(1.0), points, r, solver=s) for s in ("auto", "dense"))
        assert np.array_equal(auto.weights, dense.weights)


def test_repeated_eigenvalues_are_found():
    """A regular polygon has double eigenvalues."""
    angle = 2 * np.pi * np.arange(120) / 120
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    a, b = (kernel_pca(Gaussian(0.5), X, 6, solver=s) for s in ("dense", "iterative"))
    assert np.allclose(a.eigenvalues, b.eigenvalues)
    assert np.allclose(a.eigenvalues[::2], a.eigenvalues[1::2])
    angles = subspace_angles(a.transform(X), b.transform(X))
    assert angles.max() < 1e-6


def test_iterations_beyond_the_store_stream_the_matrix(monkeypatch):
    """prop-tiles: the same numbers, and no n × n matrix."""
    X, n = sample(1200), 1200
    k = 3.0 * Gaussian(1.0)
    stored = kernel_pca(k, X, 2, solver="iterative")
    monkeypatch.setattr(chapter, "_STORED", 10)
    tracemalloc.start()
    streamed = kernel_pca(k, X, 2, solver="iterative")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.allclose(stored.eigenvalues, streamed.eigenvalues)
    assert np.allclose(stored.transform(X), streamed.transform(X), atol=1e-7)
    assert peak < 0.6 * 8 * n**2


def test_the_iterative_road_holds_one_matrix():
    """The centred matrix is never formed."""
    X, n = sample(1500), 1500
    tracemalloc.start()
    kernel_pca(Gaussian(1.0), X, 2, solver="iterative")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * 8 * n**2


def test_data_far_from_the_origin_by_products():
    """A variance of 1e-8 of the mean square; centring costs eight digits."""
    X = sample(60) * [1.0, 0.5] + 1e4
    a, b = (kernel_pca(Linear(), X, 2, solver=s) for s in ("dense", "iterative"))
    wanted = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    assert np.allclose(a.eigenvalues, wanted, rtol=1e-5)
    assert np.allclose(b.eigenvalues, wanted, rtol=1e-5)


def test_an_iteration_that_fails_says_so(monkeypatch):
    """lem-kpca-residual is checked, and no wrong vector is returned."""
    def gives_up(*args, **kwargs):
        raise ArpackNoConvergence("no convergence", np.empty(0), np.empty((0, 0)))

    def lies(A, k, **kwargs):
        rng = np.random.default_rng(0)
        return np.ones(k), orthonormal(A.shape[0], k, rng)

    fit = partial(kernel_pca, Gaussian(1.0), sample(30), 2)
    assert np.allclose(fit(solver="iterative").eigenvalues, fit(solver="dense").eigenvalues)
    for fake, message in ((gives_up, "did not converge"), (lies, "residuals")):
        monkeypatch.setattr(chapter, "eigsh", fake)
        with pytest.raises(ValueError, match=f"solver='iterative' .*{message}"):
            fit(solver="iterative")


def test_an_error_that_is_spread_over_all_points_is_seen(monkeypatch):
    """lem-kpca-residual: the residual is a norm; 3e-9 in the vector is less than 1e-9 at each of
    400 points, and refused."""
    def nearly(A, k, share=0.0, **kwargs):
        lam, alpha = eigsh(A, k=k, **kwargs)
        error = np.random.default_rng(0).choice([-1.0, 1.0], alpha.shape) / np.sqrt(len(alpha))
        return lam, alpha + share * error

    for share in (3e-10, 3e-9):
        monkeypatch.setattr(chapter, "eigsh", partial(nearly, share=share))
        if share < 1e-9:
            kernel_pca(Gaussian(1.0), sample(400), 2, solver="iterative")
        else:
            with pytest.raises(ValueError, match="residuals that are too large"):
                kernel_pca(Gaussian(1.0), sample(400), 2, solver="iterative")


@pytest.mark.parametrize("width", [2.0, 4.0])
def test_eigenvalues_of_landmarks_that_are_rounding_are_left_out(width):
    """lem-pca-spectrum: with all points as landmarks, and without a mean to compare with, as many
    directions are above rounding as in the whole matrix, or one that is next to the edge."""
    X = sample(40)
    whole, low = (kernel_pca(Gaussian(width), X, centred=False, **options).eigenvalues
                  for options in ({}, {"max_rank": 40}))
    assert len(whole) < 40 and abs(len(low) - len(whole)) <= 1
    assert low[-1] > 10 * 40 * np.finfo(float).eps * low[0]


@pytest.mark.parametrize("centred", [True, False])
def test_low_rank_components_are_pca_of_nystrom_features(centred):
    """thm-kpca-low-rank, part 1, by the features themselves."""
    X, T = sample(80), sample(10, seed=1)
    k = Gaussian(0.8)
    low = kernel_pca(k, X, 4, max_rank=15, centred=centred)
    P = pivoted_cholesky(k, X, tol=0, max_rank=15, return_pivots=True)[1]
    psi = nystrom_features(k, X[P])
    mean = psi(X).mean(axis=0) * centred
    C = (psi(X) - mean).T @ (psi(X) - mean) / 80
    lam, U = np.linalg.eigh(C)
    assert np.allclose(low.eigenvalues, lam[::-1][:4])
    assert np.isclose(low.variance, np.trace(C))
    assert np.allclose(abs(low.transform(T)), abs((psi(T) - mean) @ U[:, ::-1][:, :4]))
    assert np.array_equal(low.points, X[P])
    scores = low.transform(X)
    assert (scores[abs(scores).argmax(axis=0), np.arange(4)] > 0).all()


@pytest.mark.parametrize("centred", [True, False])
def test_low_rank_components_are_orthonormal_with_exact_variances(centred):
    """thm-kpca-low-rank, parts 1 and 2."""
    X = sample(80)
    low = kernel_pca(Gaussian(0.8), X, 4, max_rank=12, centred=centred)
    gram = [[inner(f, g) for g in low.components] for f in low.components]
    assert np.allclose(gram, np.eye(4), atol=1e-8)
    values = np.column_stack([f(X) for f in low.components])
    spread = values - values.mean(axis=0) * centred
    assert np.allclose(spread.T @ spread / 80, np.diag(low.eigenvalues), atol=1e-12)
    assert np.allclose(low.offsets, [inner(low.mean, f) for f in low.components])


def test_no_function_of_the_landmarks_varies_more():
    """thm-kpca-low-rank, part 2."""
    X, rng = sample(80), np.random.default_rng(1)
    low = kernel_pca(Gaussian(0.8), X, 1, max_rank=6)
    for w in rng.normal(size=(100, 6)):
        f = RKHSFunction(Gaussian(0.8), low.points, w)
        assert (f / norm(f))(X).var() <= low.eigenvalues[0] + 1e-12


@pytest.mark.parametrize("centred", [True, False])
def test_the_trace_bounds_what_the_low_rank_loses(centred):
    """thm-kpca-low-rank, part 3."""
    X = sample(60)
    exact = kernel_pca(Gaussian(0.8), X, centred=centred).eigenvalues
    for rank in (3, 10, 30):
        low = kernel_pca(Gaussian(0.8), X, max_rank=rank, centred=centred).eigenvalues
        F = pivoted_cholesky(Gaussian(0.8), X, tol=0, max_rank=rank)
        gaps = exact[:len(low)] - low
        assert (gaps >= -1e-13).all()
        assert exact.sum() - low.sum() <= (60 - np.sum(F**2)) / 60 + 1e-12


def test_full_rank_landmarks_change_nothing():
    """thm-kpca-low-rank with Π = I on the data."""
    X, T = sample(40), sample(10, seed=1)
    a, b = kernel_pca(Laplace(1.0), X, 6), kernel_pca(Laplace(1.0), X, 6, max_rank=40)
    assert np.allclose(a.eigenvalues, b.eigenvalues)
    assert np.allclose(a.transform(T), b.transform(T), atol=1e-8)


def test_the_low_rank_road_never_holds_an_n_by_n_matrix():
    """O(n rank) memory: 4000 points and rank 20."""
    X, n = sample(4000), 4000
    tracemalloc.start()
    low = kernel_pca(Gaussian(1.0), X, 3, max_rank=20)
    low.transform(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * 8 * n**2
    assert low.weights.shape == (20, 3)


# -- Kernels that are none ------------------------------------------------


def test_functions_that_are_no_kernels_are_refused():
    """prop-witness: negative eigenvalues are no variances; those of a triangle, which is a
    kernel where a parabola is none, are not."""
    fake = FunctionKernel(lambda s, t: max(0.0, 1 - (s - t) ** 2))
    triangle = FunctionKernel(lambda s, t: max(0.0, 1 - abs(s - t)))
    negative = FunctionKernel(lambda s, t: -s * t)
    big = FunctionKernel(lambda s, t: 1.0 if s == t else 3.0 * np.sign(s * t))
    X = np.linspace(0.1, 5, 40)
    for options in ({}, {"max_rank": 30}):
        with pytest.raises(ValueError, match="kernel must be positive definite"):
            kernel_pca(fake, X, 1, **options)
        assert 0 < kernel_pca(triangle, X, 1, **options).eigenvalues[0] < 1
    for options in ({}, {"solver": "iterative"}, {"max_rank": 30}):
        with pytest.raises(ValueError, match="kernel must be positive definite"):
            kernel_pca(negative, X, 1, **options)
    with pytest.raises(ValueError, match="kernel must be positive definite.*trace"):
        kernel_pca(big, np.linspace(-1, 1, 40), 1, solver="iterative")


# -- Pre-images -----------------------------------------------------------


def expansion(seed, n=8, d=2, sigma=0.7, signed=True):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=n)
    return RKHSFunction(Gaussian(sigma), rng.normal(size=(n, d)), w if signed else abs(w))


def gradient(f, z):
    bumps = f.weights * f.kernel(f.points, z[None])[:, 0]
    return bumps @ (f.points - z) / f.kernel.sigma**2


def safe(f, z):
    w, bumps = f.weights, f.weights * f.kernel(f.points, z[None])[:, 0]
    return np.maximum(bumps, 0).sum() + 2 * np.exp(-1.5) * np.maximum(-w, 0).sum()


def test_distances_between_features_are_values():
    """prop-preimage."""
    f = expansion(0)
    for z in sample(5, seed=1):
        k_z = RKHSFunction(f.kernel, z[None], [1.0])
        assert np.isclose(norm(k_z - f) ** 2, 1 - 2 * f(z[None])[0] + norm(f) ** 2)


@given(st.integers(0, 10**6), st.floats(0.01, 5))
def test_the_step_cannot_fall(seed, length):
    """thm-preimage-step: the lower bound, and the gain of a safe step."""
    f, rng = expansion(seed), np.random.default_rng(seed)
    z, delta = rng.normal(size=2) * 2, rng.normal(size=2) * length
    g, D, s2 = gradient(f, z), safe(f, z), f.kernel.sigma**2
    value, moved, climbed = f(np.array([z, z + delta, z + s2 * g / D]))
    assert moved >= value + g @ delta - D * delta @ delta / (2 * s2) - 1e-12
    assert climbed >= value + s2 * g @ g / (2 * D) - 1e-12
    assert value <= D * (1 + 8 * np.finfo(float).eps)      # sums in two orders


def test_the_constant_of_the_safe_step_is_the_best_possible():
    """thm-preimage-step: at distance √3 σ a negative bump bends down by 2e^-1.5."""
    f = RKHSFunction(Gaussian(1.0), [0.0], [-1.0])
    z, h = np.sqrt(3), 1e-4
    left, middle, right = f([z - h, z, z + h])
    assert np.isclose((left - 2 * middle + right) / h**2, -2 * np.exp(-1.5), rtol=1e-6)


@settings(max_examples=150)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 30), st.booleans(),
       st.sampled_from([0.2, 1.0, 4.0]), st.floats(0, 6))
def test_the_iteration_climbs_to_a_stationary_point(seed, d, n, signed, sigma, far):
    """cor-preimage-converges: finite, no lower than the start, gradient zero."""
    f, rng = expansion(seed, n, d, sigma, signed), np.random.default_rng(seed)
    f = replace(f, weights=f.weights * 10.0 ** rng.uniform(-3, 3, size=n))
    start = rng.normal(size=d) * far
    best = max(f(f.points).max(), f(start[None])[0])
    if best <= 1e-9 * abs(f.weights).sum():
        return
    z = preimage(f, start)
    value = f(z[None])[0]
    assert z.shape == (d,) and np.isfinite(z).all()
    assert value > 0
    assert value >= f(start[None])[0] - 1e-12 * abs(f.weights).sum()
    step = sigma**2 * gradient(f, z) / value
    # The gradient is a sum that may cancel down to its rounding errors.
    room = 1e-13 * abs(f.weights).sum() / value * (1 + abs(f.points).max())
    assert abs(step).max() <= 1.01e-6 * sigma + room


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("signed", [True, False])
def test_a_general_optimiser_finds_the_same_maximum(seed, signed):
    """prop-preimage, from the best of the points."""
    f = expansion(seed, signed=signed)
    f = f if f(f.points).max() > 0 else -f
    start = f.points[np.argmax(f(f.points))]
    other = minimize(lambda z: -f(z[None])[0], start, tol=1e-12)
    z = preimage(f, start, tol=1e-9)
    assert np.isclose(f(z[None])[0], -other.fun, rtol=1e-9)
    assert np.allclose(z, other.x, atol=1e-4)
    assert np.array_equal(z, preimage(f, tol=1e-9))


def test_the_first_step_is_the_fixed_point_map():
    """eq-preimage-fixed: with positive weights it is accepted as it is."""
    f, start = expansion(3, signed=False), np.array([0.3, 0.1])
    bumps = f.weights * f.kernel(start[None], f.points)[0]
    step = bumps @ f.points / bumps.sum() - start
    wanted = start + step
    after = gradient(f, wanted) * f.kernel.sigma / f(wanted[None])[0]
    assert np.allclose(preimage(f, start, tol=1.001 * abs(after).max(), max_steps=1), wanted)


def test_the_feature_of_a_point_has_this_pre_image():
    """prop-preimage: f = k_x, exactly."""
    x = np.array([0.3, -2.0, 5.0])
    f = RKHSFunction(Gaussian(1.3), x[None], [1.0])
    assert np.allclose(preimage(f, x + 0.5), x, atol=1e-12)
    assert np.array_equal(preimage(f), x)


def test_a_denominator_that_vanishes_does_no_harm():
    """cor-preimage-converges, where the plain iteration runs away to NaN."""
    f = RKHSFunction(Gaussian(1.0), [0.0, 1.0], [1.0, -0.9])
    z = 0.604
    with np.errstate(invalid="ignore"):
        for _ in range(2):
            bumps = f.weights * f.kernel([z], f.points)[0]
            z = bumps @ f.points / bumps.sum()
    assert np.isnan(z)
    best = minimize(lambda t: -f(t)[0], [-0.5], tol=1e-12).x
    assert np.allclose(preimage(f, 0.604), best, atol=1e-5)
    # Here f(start) < 0: the plain step would go down.
    assert f([0.7])[0] < 0
    assert np.allclose(preimage(f, 0.7), best, atol=1e-5)


@pytest.mark.parametrize("points, weights, start", [
    ([-1.8, 0.6, -1.5, 2.9], [-0.2, 0.5, -0.9, -0.6], 0.8),
    ([-0.6, -1.6, 1.8, 2.9], [0.0, -0.6, 0.1, -0.2], 0.9),
    ([-3.0, -0.9], [-0.9, 0.1], -0.5),
    ([1.9, -1.5, 0.1], [0.1, 0.9, -0.7], 2.3),
])
def test_the_safe_denominator_is_needed(points, weights, start):
    """thm-preimage-step: with the positive part of D* alone these fall or circle."""
    f = RKHSFunction(Gaussian(1.0), points, weights)
    z = preimage(f, start, max_steps=300)
    assert f(z)[0] >= f([start])[0] > 0


@pytest.mark.parametrize("points, weights, start", [
    ([0.5, 2.3, -2.0], [0.2, -0.9, -0.5], 0.4),
    ([0.8, 2.7, -1.7], [0.2, -0.6, -0.9], 1.0),
    ([0.5, 2.0, -1.9, 1.9], [0.2, -0.5, -0.4, -0.1], 0.0),
])
def test_no_step_falls_where_most_weights_are_negative(points, weights, start):
    """thm-preimage-step: the safe denominator counts the bend of every hollow around."""
    f = RKHSFunction(Gaussian(1.0), points, weights)
    heights = [f([start])[0]]
    for steps in range(1, 6):
        ends, _ = modes(f.features, np.array([weights]), [start], max_steps=steps)
        heights.append(f(ends)[0])
    assert heights[0] > 0 and np.diff(heights).min() >= -1e-15


def test_a_start_that_sees_nothing_is_replaced_by_the_best_point():
    """alg-preimage, step 1."""
    f = RKHSFunction(Gaussian(1.0), [0.0, 10.0, 20.0], [1.0, 3.0, -2.0])
    for lost in (-1e3, 20.0, 1e200):
        assert np.allclose(preimage(f, lost), [10.0])
    assert np.allclose(preimage(f, 1.0), [0.0], atol=1e-8)      # not lost


def test_a_faint_start_is_kept_where_no_point_is_better():
    """alg-preimage, step 1: f < 0 at both points, and positive to their right."""
    f = RKHSFunction(Gaussian(1.0), [0.0, 0.5], [-1.0, 0.85])
    assert f([0.0, 0.5]).max() < 0 < f([7.2])[0] < 1e-9
    assert np.allclose(preimage(f, 7.2), preimage(f, 2.0), atol=1e-5)


def test_without_a_start_the_best_point_is_taken():
    f = RKHSFunction(Gaussian(1.0), [0.0, 10.0, 20.0], [1.0, 3.0, 2.0])
    assert np.allclose(preimage(f), [10.0], atol=1e-8)


def test_rounding_ends_the_iteration_where_the_tolerance_cannot():
    """The gradient is known up to the rounding of its terms only."""
    f = expansion(3)
    start = f.points[np.argmax(f(f.points))] + 1e6
    far = RKHSFunction(f.kernel, f.points + 1e6, f.weights)
    z = preimage(far, start, tol=1e-100, max_steps=100)
    assert np.allclose(z, preimage(far, start), atol=1e-5)


def test_many_signed_weights_in_a_flat_place():
    """Convergence where negative weights make the safe step tiny."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    w = rng.normal(size=300) * 50 + 1
    f = RKHSFunction(Gaussian(1.0), X, w)
    z = preimage(f, max_steps=300)
    assert f(z[None])[0] >= f(X).max()
    assert abs(gradient(f, z)).max() <= 1.01e-6 * f(z[None])[0]


@pytest.mark.parametrize("c", [1e-250, 1e250])
def test_units_do_not_matter(c):
    """Weights and lengths may be measured in any unit."""
    f, start = expansion(2), np.array([0.2, 0.4])
    z = preimage(f, start)
    assert np.allclose(preimage(c * f, start), z)
    s = c ** (1 / 4)
    g = RKHSFunction(Gaussian(0.7 * s), f.points * s, f.weights)
    assert np.allclose(preimage(g, start * s) / s, z)


@pytest.mark.parametrize("c", [2.0**-60, 2.0**60])
def test_every_step_is_the_same_in_other_units(c):
    """alg-preimage: powers of two change no digit of any step, nor the tests of step 3."""
    rng = np.random.default_rng(6)
    X, W, T = rng.normal(size=(30, 2)), rng.normal(size=(20, 30)), rng.normal(size=(20, 2))
    for steps in (1, 4, 10_000):
        Z, status = modes(Features(Gaussian(0.7), X), W, T, max_steps=steps)
        moved, codes = modes(Features(Gaussian(0.7 * c), c * X), W, c * T, max_steps=steps)
        assert np.array_equal(moved / c, Z) and np.array_equal(codes, status)


def test_points_far_from_the_origin():
    """Moving everything moves the pre-image; 1e6 costs six digits."""
    f, start = expansion(2), np.array([0.2, 0.4])
    g = RKHSFunction(f.kernel, f.points + 1e6, f.weights)
    assert np.allclose(preimage(g, start + 1e6) - 1e6, preimage(f, start), atol=1e-6)
    huge = RKHSFunction(Gaussian(1.0), [0.0, 1e200], [1.0, 2.0])
    assert np.array_equal(preimage(huge, 1e100), [1e200])
    assert np.allclose(preimage(huge, 0.5), [0.0], atol=1e-8)
    narrow = RKHSFunction(Gaussian(1e-150), [1e200], [1.0])
    assert np.array_equal(preimage(narrow, 0.0), [1e200])


def test_a_function_without_maximum_has_no_pre_image():
    """prop-preimage: a function that is negative everywhere; minus it has a maximum."""
    f = RKHSFunction(Gaussian(1.0), [0.0, 1.0], [-1.0, -2.0])
    for start in (None, 0.5, 100.0):
        with pytest.raises(ValueError, match="f must be positive at start"):
            preimage(f, start)
    with pytest.raises(ValueError, match="f must be positive at start"):
        preimage(0 * f, 0.5)
    z = preimage(-f, 0.5)
    assert 0 < z[0] < 1 and -f(z)[0] >= -f(z + 0.01)[0] and -f(z)[0] >= -f(z - 0.01)[0]


@pytest.mark.parametrize("start", [[0.0], [1e-9], [0.3]])
def test_a_preimage_is_no_minimum(start):
    """prop-preimage-escape: halfway between two bumps the gradient vanishes."""
    f = RKHSFunction(Gaussian(1.0), [-3.0, 3.0], [1.0, 1.0])
    z = preimage(f, start)
    assert np.isclose(abs(z[0]), 3.0, atol=1e-5)
    assert f(z)[0] > f([start])[0]


def test_a_climb_along_an_axis_of_symmetry_does_not_end_in_a_saddle():
    """prop-preimage-escape, in the plane, in space, and for a batch."""
    f = RKHSFunction(Gaussian(1.0), [[-3.0, 0.0], [3.0, 0.0]], [1.0, 1.0])
    assert np.allclose(abs(preimage(f, [0.0, 2.0])), [3.0, 0.0], atol=1e-4)
    corners = 3.0 * np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    g = RKHSFunction(Gaussian(1.0), corners, np.ones(4))
    for sigma in (1.0, 7.0):
        h = RKHSFunction(Gaussian(sigma), sigma * corners, np.ones(4))
        z = preimage(h, np.zeros(3)) / sigma
        assert np.allclose(abs(z), 3.0, atol=1e-4) and g([z])[0] > 0.99
    pca = kernel_pca(Gaussian(1.0), corners, 3)
    Z = denoise(pca, np.vstack([np.zeros((1, 3)), 0.9 * corners]))
    assert np.allclose(abs(Z), 3.0, atol=1e-4)


def test_a_flat_maximum_is_left_in_peace():
    """cor-preimage-converges: two bumps at the distance 2σ, curvature zero."""
    for gap in (1.0, 0.9):
        f = RKHSFunction(Gaussian(1.0), [-gap, gap], [1.0, 1.0])
        assert np.array_equal(preimage(f, 0.0), [0.0])
    f = RKHSFunction(Gaussian(1.0), [-1.01, 1.01], [1.0, 1.0])
    assert abs(preimage(f, 0.0)[0]) > 0.1


@pytest.mark.parametrize("half, weights", [
    ([0.2, 0.8, 1.9], [-0.5, 0.8, -0.5]),
    ([2.5, 1.6, 2.9, 0.7], [-0.6, 0.5, -0.8, -0.1]),
])
def test_a_step_out_of_a_hollow_does_not_leap_over_the_hills(half, weights):
    """alg-preimage, step 5: from the hollow at the centre of symmetry, where a step of σ would
    go below it, and from there to infinity."""
    points = np.concatenate([half, -np.array(half)])
    f = RKHSFunction(Gaussian(1.0), points, weights * 2)
    end = preimage(f, 0.0)
    assert f(end)[0] > f([0.0])[0] > 0 and abs(end[0]) < 3
    assert np.allclose(preimage(f, 1.01 * end), end, atol=1e-4)


def test_a_maximum_that_is_flat_up_to_rounding_is_left_in_peace():
    """alg-preimage, step 5: two bumps at the distance 2σ (1 + 1e-8) have a hollow of curvature
    1e-8 between them, but no step out of it rises by more than rounding errors."""
    f = RKHSFunction(Gaussian(1.0), [-1 - 1e-8, 1 + 1e-8], [1.0, 1.0])
    assert np.array_equal(preimage(f, 0.0, tol=1e-9), [0.0])


def test_second_derivative_at_random_preimages_is_nonpositive():
    """cor-preimage-converges: on a lattice, where symmetric starts are common."""
    found = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 4))
        half = rng.integers(-3, 4, size=(3, d)).astype(float)
        X, w = np.vstack([half, -half]), np.tile(rng.integers(-1, 4, size=3), 2)
        f = RKHSFunction(Gaussian(1.0), X, w)
        start = rng.integers(-1, 2, size=d).astype(float)
        if f([start])[0] < 0.01:
            continue
        z = preimage(f, start)
        P = w * f.kernel(X, z[None])[:, 0]
        bend = np.linalg.eigvalsh((P * (X - z).T) @ (X - z) - P.sum() * np.eye(d))
        slope = P @ (X - z)
        assert bend.max() <= 1e-6 * P.sum()
        assert abs(slope).max() <= 2e-6 * P.sum() and f([z])[0] >= f([start])[0] - 1e-12
        found += 1
    assert found > 80


def test_denoise_names_the_row_that_has_no_pre_image():
    """prop-preimage: without centring a far point is projected on zero."""
    X = sample(30)
    pca = kernel_pca(Gaussian(0.5), X, 10, centred=False)
    T = np.vstack([X] * 10)
    T[270] = [1e3, 0.0]
    with pytest.raises(ValueError, match="^T must have projections .*: row 270 of T$"):
        denoise(pca, T)
    with pytest.raises(ValueError, match="^max_steps must be larger.*: row 0 of T$"):
        denoise(pca, X + 0.1, max_steps=1)
    # With centring the projection of a far point is that of zero.
    pca = kernel_pca(Gaussian(0.5), X, 10)
    zero, = pca.reconstruct([[1e3, 0.0]])
    assert np.allclose(denoise(pca, [[1e3, 0.0]])[0], preimage(zero), atol=1e-4)


def test_denoise_names_its_own_argument_where_a_projection_vanishes():
    """prop-preimage: uncentred, the projection of a point far from all data is zero, that of a
    point among them is not."""
    pca = kernel_pca(Gaussian(1.0), sample(6), 2, centred=False)
    with pytest.raises(ValueError, match="T must have projections that are positive"):
        denoise(pca, [[50.0, 50.0]])
    assert np.isfinite(denoise(pca, sample(6)[:1])).all()


def test_impatience_is_reported():
    """alg-preimage ends, and says so if it may not."""
    f = expansion(3, signed=False)
    with pytest.raises(ValueError, match="max_steps must be larger: after 2 .* 1 of 1"):
        preimage(f, [2.0, 2.0], max_steps=2)
    z = preimage(f, [2.0, 2.0])
    assert f(z[None])[0] > f([[2.0, 2.0]])[0] and np.abs(gradient(f, z)).max() < 1e-4


def test_only_functions_with_a_gaussian_kernel_have_pre_images_here():
    """prop-preimage: the fixed point and the safe step are those of the Gaussian kernel."""
    for kernel in (Laplace(1.0), Gaussian(1.0) + Gaussian(2.0), 2.0 * Gaussian(1.0)):
        with pytest.raises(ValueError, match="f must have a Gaussian kernel"):
            preimage(RKHSFunction(kernel, [0.0], [1.0]), 0.5)
        with pytest.raises(ValueError, match="pca must have a Gaussian kernel"):
            denoise(kernel_pca(kernel, [0.0, 1.0], 1), [0.5])
        with pytest.raises(ValueError, match="X must have a Gaussian kernel"):
            modes(Features(kernel, [0.0, 1.0]), [[1.0, 1.0]])
    assert np.isclose(preimage(RKHSFunction(Gaussian(1.0), [0.25], [1.0]), 0.5)[0], 0.25)


# -- Many functions at once -----------------------------------------------


def test_modes_are_pre_images_one_by_one():
    """alg-preimage: rows do not disturb each other, with and without starts."""
    rng = np.random.default_rng(4)
    X, W, T = rng.normal(size=(12, 2)), rng.normal(size=(9, 12)), rng.normal(size=(9, 2))
    Phi = Features(Gaussian(0.8), X)
    for starts in (T, None):
        Z, status = modes(Phi, W, starts)
        alone = [preimage(Phi @ w, None if starts is None else t) for w, t in zip(W, T)]
        assert not status.any() and np.allclose(Z, alone, atol=1e-5)


def test_modes_climb_and_end_at_stationary_points():
    """cor-preimage-converges: f(z) >= f(start), and no slope is left."""
    rng = np.random.default_rng(5)
    X, W, T = rng.normal(size=(12, 2)), rng.normal(size=(40, 12)), rng.normal(size=(40, 2))
    Phi = Features(Gaussian(0.8), X)
    Z, status = modes(Phi, W, T)
    for w, t, z, code in zip(W, T, Z, status):
        f = Phi @ w
        assert f([z])[0] >= f([t])[0] - 1e-12
        if code == 0:
            assert abs(gradient(f, z)).max() * 0.8 <= 2e-6 * f([z])[0]
        else:                        # negative at the start and at all points
            assert code == 2 and f(X).max() - 1e-12 <= f([z])[0] <= 0
    assert np.sum(status == 0) > 30


def test_modes_say_which_functions_have_none():
    """prop-preimage: a negative function has no maximum; its best point is returned."""
    X = np.array([0.0, 1.0, 2.0])
    W = [[1.0, 0.2, 0.0], [-1.0, -1.0, -1.5], [0.0, 0.5, 1.0]]
    Z, status = modes(Features(Gaussian(1.0), X), W, [[0.5], [1.0], [2.0]])
    assert status.tolist() == [0, 2, 0] and Z[1, 0] == 0.0
    slow, status = modes(Features(Gaussian(1.0), X), W, [[0.5], [1.0], [2.0]], max_steps=1)
    assert status.tolist() == [1, 2, 1]
    for w, z, t in zip(W, slow, ([0.5], [1.0], [2.0])):
        f = Features(Gaussian(1.0), X) @ w
        assert f(z)[0] >= f(t)[0]


# -- Denoising ------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"centred": False}, {"max_rank": 12}])
def test_denoise_takes_pre_images_of_reconstructions(options):
    """alg-preimage, with all points at once."""
    X, T = sample(40), sample(7, seed=1)
    pca = kernel_pca(Gaussian(1.0), X, 5, **options)
    one_by_one = [preimage(f, t) for f, t in zip(pca.reconstruct(T), T)]
    assert np.allclose(denoise(pca, T), one_by_one, atol=1e-5)


def test_denoise_works_in_slabs_and_leaves_its_argument_alone():
    """More points than fit in a slab, one of them far away."""
    pca = kernel_pca(Gaussian(1.0), sample(20), 3)
    T = sample(300, seed=1)
    T[280] = 1e3
    copy = T.copy()
    Z = denoise(pca, T)
    assert Z.shape == T.shape and np.isfinite(Z).all()
    assert np.array_equal(T, copy)
    assert np.allclose(Z[250:], denoise(pca, T[250:]), atol=1e-6)
    assert np.allclose(denoise(kernel_pca(Gaussian(1.0), [0.0, 1.0, 3.0], 2), [0.2]).shape, (1, 1))


def test_kernel_pca_finds_the_circle():
    """fig-preimage-ring: the error is the radius, known to be one."""
    rng = np.random.default_rng(0)

    def ring(n, noise):
        angle = rng.uniform(0, 2 * np.pi, size=n)
        return np.column_stack([np.cos(angle), np.sin(angle)]) + noise * rng.normal(size=(n, 2))

    T = ring(100, 0.25)
    Z = denoise(kernel_pca(Gaussian(0.5), ring(300, 0.1), 8), T)
    before, after = (np.sqrt(np.mean((np.linalg.norm(A, axis=1) - 1) ** 2)) for A in (T, Z))
    assert after < 0.25 * before


def test_kernel_pca_cleans_digits_better_than_pca():
    """G-6.2: mean squared error on test pictures, σ and r fixed beforehand."""
    data, rng = load_digits().data, np.random.default_rng(1)
    order = rng.permutation(len(data))
    train, test = data[order[:700]], data[order[700:850]]
    T = test + 4 * rng.normal(size=test.shape)
    ours = denoise(kernel_pca(Gaussian(25.0), train, 300), T, tol=1e-4)
    errors = []
    for r in range(1, 65):
        peer = PCA(r).fit(train)
        errors.append(np.mean((peer.inverse_transform(peer.transform(T)) - test) ** 2))
    error = np.mean((ours - test) ** 2)
    assert error < 0.65 * min(errors)
    nearest = train[squared_distances(T, train).argmin(axis=1)]
    assert error < np.mean((nearest - test) ** 2)      # it is no look-up


# -- Arguments and the record ---------------------------------------------


def test_kernel_pca_refuses_contradictions():
    """lem-kpca-residual: Lanczos' method finds fewer components than there are points, a factor
    of rank r has no more than r, and it is solved in its own way."""
    fit = partial(kernel_pca, Gaussian(1.0), sample(5))
    with pytest.raises(ValueError, match="solver must be 'auto' where max_rank"):
        fit(2, solver="dense", max_rank=3)
    for r in (None, 5):
        with pytest.raises(ValueError, match="n_components must be less"):
            fit(r, solver="iterative")
    with pytest.raises(ValueError, match="max_rank must be at least n_components = 4"):
        fit(4, max_rank=3)
    assert np.allclose(fit(4, solver="iterative").eigenvalues, fit(4, solver="dense").eigenvalues)
    assert len(fit(3, max_rank=3).eigenvalues) == 3


def test_the_first_components_are_a_record_of_their_own():
    """thm-pca: components do not depend on how many are asked for."""
    X, T = sample(20), sample(5, seed=1)
    five, two = (kernel_pca(Gaussian(1.0), X, r) for r in (5, 2))
    first = five.first(2)
    assert isinstance(first, PrincipalComponents)
    assert np.allclose(first.transform(T), two.transform(T))
    assert np.allclose(first.eigenvalues, two.eigenvalues)
    assert first.variance == five.variance
    assert len(first.components) == 2 and len(five.components) == 5
    for a, b in zip(first.reconstruct(T), two.reconstruct(T)):
        assert np.allclose(a.weights, b.weights)
    for bad in (0, 6, 1.5, "a"):
        with pytest.raises(ValueError, match="r must be"):
            five.first(bad)


def test_the_record_cannot_be_changed_from_outside():
    X = sample(6)
    pca = kernel_pca(Gaussian(1.0), X, 2)
    before = pca.transform([[0.1, 0.2]])
    X[:] = 0
    assert np.array_equal(pca.transform([[0.1, 0.2]]), before)
    for values in (pca.weights, pca.eigenvalues, pca.offsets, pca.mean_weights):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1.0
    weights = np.ones((6, 2))
    other = replace(pca, weights=weights)
    weights[0] = 7
    assert other.weights[0, 0] == 1
    with pytest.raises(FrozenInstanceError):
        pca.variance = 1.0
    assert repr(pca) == "PrincipalComponents(Gaussian(sigma=1.0), r=2)"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy,
                                   lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_of_the_record_are_equal_and_read_only(again):
    """thm-kpca: the components of a copy are those of the original."""
    pca = kernel_pca(Gaussian(1.0), sample(6), 2)
    other, T = again(pca), sample(3, seed=1)
    assert np.array_equal(other.transform(T), pca.transform(T))
    for name in ("weights", "mean_weights", "offsets", "eigenvalues"):
        assert not getattr(other, name).flags.writeable
    assert "np.float64" not in repr(other)


def test_a_features_may_stand_for_the_points():
    """def-synthesis: points are prepared once, and handed on."""
    X, T = sample(20), sample(5, seed=1)
    for options in ({}, {"solver": "iterative"}, {"max_rank": 9}):
        a, b = (kernel_pca(Gaussian(1.0), points, 3, **options)
                for points in (X, Features(Gaussian(1.0), X)))
        assert np.array_equal(a.transform(T), b.transform(Features(Gaussian(1.0), T)))


@given(st.integers(0, 1000))
@settings(max_examples=20)
def test_the_plain_iteration_reaches_the_pre_image(seed):
    """eq-preimage-fixed: with positive weights z <- Σ w_i k(x_i, z) x_i / f(z) climbs to it."""
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(5, 2)), rng.uniform(0.5, 1.5, size=5)
    f = RKHSFunction(Gaussian(2.0), X, w)                  # wide: one maximum
    z = start = X[0]
    for _ in range(400):
        bumps = w * f.kernel(z[None], X)[0]
        z = bumps @ X / bumps.sum()
    assert np.allclose(z, preimage(f, start), atol=1e-4)


@pytest.mark.parametrize("n", [3, 9])
def test_all_data_are_equally_unusual(n):
    """ex-kpca-whiten: Σ_l s_l(x_i)² / λ_l = n - 1 where HKH has rank n - 1."""
    x = np.linspace(-2, 2, n)
    X = np.column_stack([x, np.sin(2 * x)])
    pca = kernel_pca(Gaussian(1.0), X)
    assert np.allclose(np.sum(pca.transform(X) ** 2 / pca.eigenvalues, axis=1), n - 1)


def test_products_alone_find_the_leading_eigenvalues():
    """ex-kpca-power: centre, multiply, centre, orthonormalise."""
    K = Gaussian(1.0)(sample(12))
    V = np.linalg.qr(np.random.default_rng(0).normal(size=(12, 2)))[0]
    for _ in range(300):
        V = K @ (V - V.mean(axis=0))
        V = np.linalg.qr(V - V.mean(axis=0))[0]
    found = np.linalg.eigvalsh(V.T @ K @ V)[::-1] / 12
    assert np.allclose(found, kernel_pca(Gaussian(1.0), sample(12), 2).eigenvalues, rtol=1e-6)
