"""Identities of the chapter on low-rank factors."""

import copy
import pickle
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import iv
from scipy.stats import binom

from rkhs_lit import (
    Delta,
    FeatureKernel,
    Features,
    FourierFeatures,
    FunctionKernel,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    NystromFeatures,
    Pairs,
    Polynomial,
    RKHSFunction,
    Sinc,
    TensorProduct,
    inner,
    is_positive_definite,
    nystrom_features,
    parallel,
    pivoted_cholesky,
    power_function,
    project,
    random_fourier_features,
    rff_variance,
    spectral_sample,
    substrings,
)

EPS = np.finfo(float).eps
SPECTRAL = [
    Gaussian(0.7), Laplace(1.4), Matern(1.5, 0.8), Matern(2.5, 1.0), Matern(0.3, 1.0),
    Matern(4.2, 2.0), Sinc(1.3), 2.5 * Gaussian(1.0), Gaussian(1.0) * Laplace(2.0),
    Matern(1.5, 1.0) ** 3, 2.0 * Gaussian(0.4) + 0.5 * Laplace(1.0), Gaussian(1.0) ** 0,
]
names = lambda k: repr(k)[:45]  # noqa: E731


def sample(n=12, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


# -- random Fourier features ----------------------------------------------

FREQUENCIES = np.array([[0.5, -1.0], [1.3, 0.2], [2.2, 1.5]])


def kappa(delta):
    """The kernel whose spectral measure has three equally likely frequencies."""
    return np.cos(FREQUENCIES @ delta).mean()


def all_estimates(x, y, D, q):
    """z(x)'z(y) for every draw of q frequencies, and 8 values of each phase that matters."""
    alone = 2 * q - D
    # Eight equally spaced phases integrate cos(2b) and cos²(2b) exactly.
    phases = 2 * np.pi * np.arange(8) / 8
    for draw in product(range(3), repeat=q):
        for b in product(phases, repeat=alone):
            full = np.concatenate([np.zeros(q - alone), b])
            z = FourierFeatures(FREQUENCIES[list(draw)], full, D)
            yield (z(x[None]) @ z(y[None]).T)[0, 0]


@pytest.mark.parametrize("D, q", [(2, 1), (4, 2), (6, 3), (3, 2), (1, 1), (2, 2), (5, 3)])
def test_mean_and_variance_by_exact_enumeration(D, q):
    """thm-rff-unbiased, thm-rff-variance: all draws from a discrete spectral measure."""
    x, y = np.array([0.7, -0.1]), np.array([-0.4, 0.9])
    values = np.array(list(all_estimates(x, y, D, q)))
    k1, k2 = kappa(x - y), kappa(2 * (x - y))
    V = (1 + k2) / 2 - k1**2
    pairs, alone = D - q, 2 * q - D
    assert np.isclose(values.mean(), k1, rtol=1e-13)
    assert np.isclose(values.var(), (4 * pairs * V + alone * (V + 0.5)) / D**2, rtol=1e-12)
    if alone == 0:
        assert np.isclose(values.var(), (1 + k2 - 2 * k1**2) / D, rtol=1e-12)
    if pairs == 0:
        assert np.isclose(values.var(), (1 + k2 / 2 - k1**2) / D, rtol=1e-12)


def test_the_variances_in_rational_numbers():
    """thm-rff-variance: U takes the values 3/5 and -4/5, exactly."""
    values = [Fraction(3, 5), Fraction(-4, 5)]
    k1 = sum(values) / 2
    k2 = sum(2 * u * u - 1 for u in values) / 2  # cos 2α = 2 cos² α - 1
    V = sum(u * u for u in values) / 2 - k1**2
    assert V == (1 + k2) / 2 - k1**2
    # Two pairs of draws, D = 4: the average of two independent copies of U.
    averages = [(u + v) / 2 for u in values for v in values]
    variance = sum(a * a for a in averages) / 4 - k1**2
    assert variance == (1 + k2 - 2 * k1**2) / 4 == 2 * V / 4


def test_the_phase_adds_independent_noise():
    """lem-phase: Y = U + cos θ, and the law of θ does not depend on ω."""
    x, y = np.array([0.7, -0.1]), np.array([-0.4, 0.9])
    grid = 2 * np.pi * np.arange(64) / 64
    for omega in FREQUENCIES:
        Y = 2 * np.cos(omega @ x + grid) * np.cos(omega @ y + grid)
        noise = Y - np.cos(omega @ (x - y))
        for power, moment in ((1, 0), (2, 1 / 2), (3, 0), (4, 3 / 8), (6, 5 / 16)):
            assert np.isclose(np.mean(noise**power), moment, atol=1e-14)


def test_unbiased_by_quadrature_over_the_gaussian_spectral_measure():
    """thm-rff-unbiased on the line: the mean over ω of the library's own features."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    x = np.array([0.0, 0.3, -1.1, 2.0])
    mean = sum(w * (Z @ Z.T) for w, node in zip(weights, nodes)
               for Z in [FourierFeatures([[node / 0.8]], [0.0], 2)(x)]) / weights.sum()
    # Sixty Hermite nodes integrate these waves to rounding.
    assert np.allclose(mean, Gaussian(0.8)(x), atol=1e-12)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("k", SPECTRAL, ids=names)
def test_features_approximate_the_kernel_within_their_standard_error(k, paired):
    """thm-rff-unbiased, thm-rff-variance, for every kernel, also with k(0) ≠ 1."""
    X, Y, D = sample(5, 2), sample(4, 2, seed=1), 4000
    z = random_fourier_features(k, D, dim=2, rng=0, paired=paired)
    assert z(X).shape == (5, D)
    deviation = np.sqrt(rff_variance(k, X, Y, D, paired=paired))
    # 20 entries, fixed seed; five standard deviations.
    assert (np.abs(z(X) @ z(Y).T - k(X, Y)) <= 5 * deviation + 1e-12).all()
    assert is_positive_definite(z(X) @ z(X).T)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("k", [Gaussian(1.0), 3.0 * Laplace(1.0), Matern(0.2, 1.0)], ids=names)
@pytest.mark.parametrize("D", [6, 7])
def test_the_observed_variance_is_the_exact_one(k, paired, D):
    """thm-rff-variance, with the library's own draws."""
    x, y, repeats = np.array([[0.2, -0.3]]), np.array([[0.9, 0.4]]), 1000
    rng = np.random.default_rng(4)
    estimates = []
    for _ in range(repeats):
        z = random_fourier_features(k, D, dim=2, rng=rng, paired=paired)
        estimates.append((z(x) @ z(y).T)[0, 0])
    exact = rff_variance(k, x, y, D, paired=paired)[0, 0]
    # Bounded terms: a sample variance errs by about √(2/repeats), the mean by √(exact/repeats).
    assert abs(np.var(estimates) / exact - 1) < 4.5 * np.sqrt(2 / repeats)
    assert abs(np.mean(estimates) - k(x, y)[0, 0]) < 4.5 * np.sqrt(exact / repeats)


def test_the_paired_form_is_exact_on_the_diagonal_and_the_phase_form_is_not():
    """thm-rff-variance at δ = 0."""
    X = sample(30, 3)
    paired, phase = (random_fourier_features(2.0 * Gaussian(1.0), 50, dim=3, rng=0, paired=p)(X)
                     for p in (True, False))
    assert np.allclose(np.sum(paired**2, axis=1), 2.0, rtol=1e-13)
    assert np.abs(np.sum(phase**2, axis=1) - 2.0).max() > 0.05
    assert rff_variance(Gaussian(1.0), [0.0], [0.0], 50)[0, 0] == 0
    assert np.isclose(rff_variance(Gaussian(1.0), [0.0], [0.0], 50, paired=False)[0, 0], 0.01)


@pytest.mark.parametrize("k", [Gaussian(1.0), Laplace(0.5), Matern(0.5, 1.0), Matern(0.7, 1.0),
                               Matern(1.0, 1.0), Matern(1.5, 2.0), Matern(2.5, 1.0),
                               Matern(7.7, 1.0)], ids=names)
def test_pairs_win_at_every_distance_for_log_concave_kernels(k):
    """thm-pairs-win, part 1."""
    r = np.linspace(0, 6, 200)
    paired, phase = (rff_variance(k, [0.0], r, 10, paired=p)[0] for p in (True, False))
    visible = k([0.0], r)[0] > 1e-7
    assert (paired[visible] < phase[visible]).all()
    assert (k([0.0], 2 * r)[0] <= k([0.0], r)[0] ** 2 * (1 + 1e-9)).all()
    assert np.allclose((phase - paired) * 10, k([0.0], r)[0] ** 2 - k([0.0], 2 * r)[0] / 2)


@pytest.mark.parametrize("k", [Matern(0.05, 1.0), Matern(0.1, 1.0), Matern(0.3, 1.0)], ids=names)
def test_the_phase_form_wins_far_out_for_very_rough_kernels(k):
    """thm-pairs-win, part 2: the curves cross once."""
    r = np.geomspace(1e-6, 40, 400)
    ratio = k([0.0], 2 * r)[0] / (2 * k([0.0], r)[0] ** 2)
    assert ratio[0] < 1 < ratio[-1]
    assert np.sum(np.diff(ratio > 1)) == 1
    far = r[ratio > 1][:1]
    paired, phase = (rff_variance(k, [0.0], far, 10, paired=p)[0, 0] for p in (True, False))
    assert phase < paired


def test_phases_are_uniform_over_one_turn():
    """def-rff: the mean of exp(ib) is zero, and no phase is above 2π; pairs need none, and
    are made unless phases are asked for."""
    b = random_fourier_features(Gaussian(1.0), 4000, dim=1, rng=0, paired=False).phases
    # The real and the imaginary part of the mean have a variance of 1/8000.
    assert abs(np.exp(1j * b).mean()) < 5 / np.sqrt(4000)
    assert 0 <= b.min() < 0.01 and 6.27 < b.max() < 2 * np.pi
    z = random_fourier_features(Gaussian(1.0), 8, dim=1, rng=0)
    assert z.frequencies.shape == (4, 1) and not z.phases.any()


def test_pairs_and_phases_alternate_for_the_sinc():
    """thm-rff-variance: eq-paired-wins fails where k is near 0 and k(2δ) is not."""
    paired, phase = (rff_variance(Sinc(1.0), [0.0], [0.5, 1.2], 10, paired=p)[0]
                     for p in (True, False))
    assert paired[0] < phase[0] and phase[1] < paired[1]


def test_the_cosine_kernel_is_exact_with_one_pair():
    """ex-cosine-spectrum."""
    x = np.linspace(-3, 3, 9)
    for sign in (1, -1):
        Z = FourierFeatures([[sign * 1.7]], [0.0], 2)(x)
        assert np.allclose(Z @ Z.T, np.cos(1.7 * np.subtract.outer(x, x)), atol=1e-14)


def test_half_angle_formulas_give_both_waves():
    """def-rff: columns are cosines, then sines, for angles of every size."""
    omega = np.array([[1e-9], [0.5], [np.pi], [100.0], [1e6], [1e15]])
    x = np.array([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0])
    z = FourierFeatures(omega, np.zeros(6), 12, mass=3.0)(x)
    angle = x[:, None] * omega[:, 0]
    scale = np.sqrt(2 * 3.0 / 12)
    assert np.allclose(z[:, :6], scale * np.cos(angle), rtol=0, atol=4 * EPS)
    assert np.allclose(z[:, 6:], scale * np.sin(angle), rtol=0, atol=4 * EPS)


@pytest.mark.parametrize("D, q", [(8, 4), (7, 4), (4, 4)])
def test_many_points_in_tiles_equal_a_few_at_a_time(D, q):
    """def-rff: threads and tiles change nothing; phases are added once."""
    rng = np.random.default_rng(0)
    omega, b = rng.normal(size=(q, 2)), rng.uniform(0, 6, size=q)
    X = rng.normal(size=(1000, 2))
    z = FourierFeatures(omega, b, D)
    angle = X @ omega.T + b
    wanted = np.sqrt(2 / D) * np.hstack([np.cos(angle), np.sin(angle[:, :D - q])])
    assert np.allclose(z(X), wanted, atol=1e-14)
    assert np.allclose(z(X)[300:400], z(X[300:400]), atol=1e-14)


def test_the_map_fills_its_own_array_whatever_the_executor():
    """def-rff: inside ``parallel`` with processes too."""
    X, z = sample(3000), random_fourier_features(Gaussian(1.0), 6, dim=2, rng=0)
    alone = z(X)
    with ProcessPoolExecutor(1) as pool, parallel(pool):
        assert np.array_equal(z(X), alone)


@pytest.mark.parametrize("D", [1, 2, 3, 10, 11])
@pytest.mark.parametrize("paired", [True, False])
def test_the_map_has_the_number_of_features_asked_for(D, paired):
    """def-rff, also for an odd number in the paired form."""
    z = random_fourier_features(Gaussian(1.0), D, dim=3, rng=0, paired=paired)
    assert z(sample(4, 3)).shape == (4, D) and z.n_features == D
    assert len(z.frequencies) == ((D + 1) // 2 if paired else D)
    with pytest.raises(ValueError):
        z.frequencies[0, 0] = 1.0


def test_fourier_features_keep_whole_numbers_and_large_masses():
    """def-rff: a whole float is a number of features; a mass near the largest float."""
    x = np.array([0.0, 1.0])
    z = FourierFeatures([[1.0], [2.0]], [0.0, 0.0], 4.0)
    assert z.n_features == 4 and isinstance(z.n_features, int)
    assert np.array_equal(z(x), FourierFeatures([[1.0], [2.0]], [0.0, 0.0], 4)(x))
    large = FourierFeatures([[1.0]], [0.0], 1, 1e308)(x)
    assert np.allclose(large[:, 0], np.sqrt(2) * 1e154 * np.cos(x), rtol=1e-14)


def test_the_variance_scales_with_the_square_of_the_kernel_until_it_overflows():
    """thm-rff-variance, with κ(0) = c."""
    unit = rff_variance(Gaussian(1.0), [0.0], [1.0], 5)
    assert np.allclose(rff_variance(1e150 * Gaussian(1.0), [0.0], [1.0], 5), 1e300 * unit, rtol=1e-13)
    with pytest.raises(ValueError, match="^kernel gave a value that is not finite"):
        rff_variance(1e200 * Gaussian(1.0), [0.0], [1.0], 5)
    with pytest.raises(ValueError, match="^X must be finite"):   # 2x overflows
        rff_variance(Gaussian(1.0), [1e308], [1.0], 5)


@pytest.mark.parametrize("D", [1, 2, 6, 7])
@pytest.mark.parametrize("paired", [True, False])
def test_the_variance_has_the_formula_of_the_theorem(paired, D):
    """thm-rff-variance: a pair has V = (1 + κ(2δ))/2 - κ(δ)², a phase adds 1/2, in units of
    κ(0)² = 9."""
    X, Y = sample(3), sample(2, seed=1)
    k1, k2 = Gaussian(0.9)(X, Y), np.exp(-4 * np.sum((X[:, None] - Y) ** 2, axis=2) / 2 / 0.81)
    V, pairs = (1 + k2) / 2 - k1**2, D // 2 if paired else 0
    # A pair is 2/D times one cosine, a phase 1/D times the sum of two.
    wanted = 9 * (pairs * (2 / D) ** 2 * V + (D - 2 * pairs) * (V + 0.5) / D**2)
    found = rff_variance(3.0 * Gaussian(0.9), X, Y, D, paired=paired)
    assert np.allclose(found, wanted, rtol=1e-13)


def test_no_variance_is_negative_where_points_nearly_coincide():
    """thm-rff-variance: V is about δ⁴, and below rounding."""
    near = np.geomspace(1e-9, 1e-6, 3000)
    V = (1 + Gaussian(1.0)([0.0], 2 * near)) / 2 - Gaussian(1.0)([0.0], near) ** 2
    assert V.min() < 0
    found = rff_variance(Gaussian(1.0), [0.0], near, 2)
    assert found.min() == 0 and found.max() < 1e-15


def test_phases_win_for_a_narrow_bell_and_a_low_wide_one():
    """thm-rff-variance: eq-paired-wins can fail for smooth kernels."""
    k = 0.9 * Gaussian(0.1) + 0.1 * Gaussian(10.0)
    paired, phase = (rff_variance(k, [0.0], [1.0], 10, paired=p)[0, 0] for p in (True, False))
    assert phase < paired


# -- error bounds ---------------------------------------------------------


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=6), st.floats(-8, 8))
def test_hoeffdings_lemma_on_discrete_variables(values, s):
    """lem-hoeffding: E exp(s(Y - EY)) <= exp(s²(b-a)²/8)."""
    Y = np.array(values)
    left = np.mean(np.exp(s * (Y - Y.mean())))
    assert left <= np.exp(s**2 * np.ptp(Y) ** 2 / 8) * (1 + 1e-12)


def test_the_moment_generating_function_of_a_random_wave():
    """thm-rff-hoeffding: E exp(s cos θ) = I_0(s) <= exp(s²/4)."""
    theta = 2 * np.pi * np.arange(400) / 400
    for s in (0.1, 1.0, 5.0, 20.0):
        assert np.isclose(np.mean(np.exp(s * np.cos(theta))), iv(0, s), rtol=1e-12)
        assert iv(0, s) <= np.exp(s**2 / 4)


@pytest.mark.parametrize("k", [Gaussian(1.0), Laplace(1.0), Matern(0.1, 1.0), Sinc(1.0)], ids=names)
@pytest.mark.parametrize("paired, rate", [(True, 4), (False, 3)])
def test_the_tail_bound_holds(k, paired, rate):
    """thm-rff-hoeffding: 2 exp(-D ε²/4) for pairs and 2 exp(-D ε²/3) for phases."""
    D, repeats = 40, 500
    x, y = np.array([[0.3]]), np.array([[1.5]])
    rng = np.random.default_rng(1)
    errors = np.empty(repeats)
    for i in range(repeats):
        z = random_fourier_features(k, D, dim=1, rng=rng, paired=paired)
        errors[i] = abs((z(x) @ z(y).T - k(x, y))[0, 0])
    for eps in (0.1, 0.2, 0.3, 0.4):
        bound = min(1.0, 2 * np.exp(-D * eps**2 / rate))
        # A frequency of repeated trials is above its probability by sampling only.
        assert np.mean(errors >= eps) <= bound + 3 * np.sqrt(bound / repeats)


def test_the_phase_bound_is_wrong_for_pairs():
    """thm-rff-hoeffding: the constant 3 belongs to the phases. U = ±1 is the worst case."""
    D = 400
    # P(|mean of D/2 signs| >= ε), exactly, against the two bounds in the tail.
    N, eps = D // 2, 0.5
    exact = 2 * binom.sf(np.ceil(N * (1 + eps) / 2) - 1, N, 0.5)
    assert 2 * np.exp(-D * eps**2 / 3) < exact <= 2 * np.exp(-D * eps**2 / 4)


def test_the_root_mean_squared_error_falls_like_one_over_the_root_of_d():
    """thm-rff-variance: four times the features halve the error, exactly."""
    for paired in (True, False):
        v = [rff_variance(Gaussian(1.0), [0.0], [0.8], D, paired=paired)[0, 0]
             for D in (10, 40, 160)]
        assert np.allclose(np.sqrt(v[:-1]) / np.sqrt(v[1:]), 2)


def test_the_bound_for_all_pairs_of_a_sample_holds():
    """cor-rff-gram, at level 5 %."""
    X, k, D = sample(60), Gaussian(1.0), 600
    eps = np.sqrt(4 / D * np.log(60**2 / 0.05))
    for seed in range(20):
        Z = random_fourier_features(k, D, dim=2, rng=seed)(X)
        assert np.abs(Z @ Z.T - k(X)).max() < eps


def test_the_uniform_bound_holds_on_a_grid():
    """thm-rff-uniform, with its two events separately."""
    k, R, D, d = Gaussian(1.0), 2.0, 2000, 2
    m1 = np.sqrt(np.pi / 2)
    u = np.linspace(-R, R, 25)
    ball = np.array([p for p in product(u, u) if np.hypot(*p) <= R])
    eps, r, alpha = 0.3, 1e-4, 0.9
    bound = (2 * (3 * R / r) ** d * np.exp(-D * (alpha * eps) ** 2 / 4)
             + 2 * r * m1 / ((1 - alpha) * eps))
    assert bound < 0.02
    for seed in range(20):
        z = random_fourier_features(k, D, dim=d, rng=seed)
        error = (z(ball) @ z(np.zeros((1, 2))).T - k(ball, np.zeros((1, 2))))[:, 0]
        assert np.abs(error).max() < eps
        # The slope between neighbours is at most the Lipschitz constant of the proof.
        L = np.linalg.norm(z.frequencies, axis=1).mean() + m1
        steps = np.linalg.norm(ball[1:] - ball[:-1], axis=1)
        assert (np.abs(np.diff(error)) <= L * steps + 1e-12).all()


@given(st.integers(0, 1000), st.floats(0.01, 10))
def test_a_fit_with_features_is_the_fit_with_their_gram_matrix(seed, lam):
    """prop-feature-fit: both formulas, and the bound on the change of the fit."""
    rng = np.random.default_rng(seed)
    Z, y, A = rng.normal(size=(9, 4)), rng.normal(size=9), rng.normal(size=(9, 9))
    K_hat, K = Z @ Z.T, A @ A.T
    fit = K_hat @ np.linalg.solve(K_hat + lam * np.eye(9), y)
    w = np.linalg.solve(Z.T @ Z + lam * np.eye(4), Z.T @ y)
    assert np.allclose(Z @ w, fit, rtol=1e-8, atol=1e-8)
    change = np.linalg.norm(fit - K @ np.linalg.solve(K + lam * np.eye(9), y))
    assert change <= np.linalg.norm(K_hat - K, 2) / lam * np.linalg.norm(y) + 1e-8


# -- pivoted Cholesky -----------------------------------------------------


def residuals(kernel, X, ranks):
    K = kernel(X)
    for r in ranks:
        F, P = pivoted_cholesky(kernel, X, tol=0, max_rank=r, return_pivots=True)
        yield r, F, P, K, K - F @ F.T


@given(st.integers(0, 10_000), st.integers(0, 4))
def test_subtracting_a_column_leaves_a_positive_definite_matrix_of_lower_rank(seed, p):
    """lem-schur-residual, in whole numbers: nothing is rounded."""
    rng = np.random.default_rng(seed)
    A = rng.integers(-3, 4, size=(5, 3))
    K = A @ A.T
    if K[p, p] == 0:
        return
    R = K[p, p] * K - np.outer(K[:, p], K[p])  # K_pp times the residual
    assert not R[p].any() and not R[:, p].any()
    assert np.linalg.matrix_rank(R) == np.linalg.matrix_rank(K) - 1
    assert is_positive_definite(R, tol=1e-9 * max(1, np.abs(R).max()))


@pytest.mark.parametrize("k", [Gaussian(0.7), Laplace(1.0), Matern(1.5, 1.0), Linear() + Gaussian(1.0),
                               Polynomial(3)], ids=names)
def test_every_claim_about_the_residual(k):
    """thm-pivoted-cholesky, parts 1, 2, 3 and 5."""
    X = sample(60)
    n, last = len(X), np.inf
    lam = np.linalg.eigvalsh(k(X))[::-1]
    for r, F, P, K, R in residuals(k, X, (1, 2, 4, 8)):
        small = 1e-11 * np.abs(K).max()
        assert F.shape == (n, r) and len(set(P)) == r
        assert is_positive_definite(R, tol=n * small)
        assert np.abs(R[P]).max() < small
        assert np.array_equal(F[P], np.tril(F[P])) and (F[P].diagonal() > 0).all()
        assert np.abs(R).max() <= R.diagonal().max() + small
        trace = np.trace(R)
        assert np.linalg.norm(R, 2) <= trace + small
        assert trace < last and trace <= (1 - 1 / n) ** r * np.trace(K) + small
        assert trace >= lam[r:].sum() - n * small
        last = trace


def test_the_residual_is_the_schur_complement_of_the_pivots():
    """thm-pivoted-cholesky, part 4."""
    for _, _, P, K, R in residuals(Laplace(1.0), sample(40), (1, 5, 15)):
        rest = K - K[:, P] @ np.linalg.solve(K[np.ix_(P, P)], K[P])
        assert np.allclose(R, rest, atol=1e-12)


def test_pivots_are_the_largest_diagonal_entries_of_the_residuals():
    """thm-pivoted-cholesky: the choice of the pivot, step by step, from the full matrix."""
    X = sample(50)
    R = Gaussian(0.6)(X)
    F, P = pivoted_cholesky(Gaussian(0.6), X, tol=0, max_rank=12, return_pivots=True)
    for f, p in zip(F.T, P):
        assert np.isclose(R[p, p], R.diagonal().max())
        assert np.allclose(f, R[:, p] / np.sqrt(R[p, p]), atol=1e-12)
        R = R - np.outer(f, f)


def test_complete_factor_is_the_ordinary_cholesky_factor_of_the_permuted_matrix():
    """thm-pivoted-cholesky at full rank, against LAPACK."""
    X = sample(30)
    F, P = pivoted_cholesky(Laplace(1.0), X, tol=0, return_pivots=True)
    assert sorted(P) == list(range(30))
    assert np.allclose(F[P], np.linalg.cholesky(Laplace(1.0)(X)[np.ix_(P, P)]), atol=1e-12)


def test_the_factor_in_rational_numbers():
    """thm-pivoted-cholesky: the matrix (4 2 0; 2 10 3; 0 3 5), by hand."""
    K = np.array([[4.0, 2.0, 0.0], [2.0, 10.0, 3.0], [0.0, 3.0, 5.0]])
    k = FunctionKernel(lambda i, j: K[int(i), int(j)])
    F, P = pivoted_cholesky(k, [0, 1, 2], tol=0, max_rank=2, return_pivots=True)
    # First pivot 10; the residual's diagonal is 4 - 4/10 and 5 - 9/10, so the next is index 2.
    assert list(P) == [1, 2]
    first = [Fraction(2) ** 2 / 10, Fraction(10), Fraction(9, 10)]  # squares of the column
    assert np.allclose(F[:, 0] ** 2, [float(v) for v in first])
    corner = Fraction(0) - Fraction(2 * 3, 10)
    assert np.allclose(F[0, 1] ** 2, float(corner**2 / (5 - Fraction(9, 10))))


@given(st.floats(1e-8, 0.5), st.integers(0, 50))
@settings(max_examples=25)
def test_the_trace_tolerance_is_met_and_not_a_column_too_late(tol, seed):
    """thm-pivoted-cholesky: stops at the first rank with tr(K - FF') <= tol tr(K)."""
    X, k = sample(40, seed=seed), Gaussian(1.0)
    K = k(X)
    F = pivoted_cholesky(k, X, tol=tol)
    assert np.trace(K - F @ F.T) <= tol * 40 * (1 + 1e-6)
    shorter = F[:, :-1]
    assert np.trace(K - shorter @ shorter.T) > tol * 40 * (1 - 1e-6)


def matrix_kernel(K):
    return FunctionKernel(lambda i, j: K[int(i)][int(j)])


def test_a_trace_that_is_just_small_enough_ends_the_search():
    """thm-pivoted-cholesky: stops when tr(K - FF') <= tol tr(K), here with equality."""
    assert pivoted_cholesky(Delta(), list("abcd"), tol=0.5).shape == (4, 2)
    assert pivoted_cholesky(Delta(), list("abcd"), tol=0.49).shape == (4, 3)


def test_what_is_rounding_is_no_pivot():
    """thm-pivoted-cholesky: after r columns, entries of at most 16 (r + 1) ε max K_ii."""
    for r, size in ((1, 1.0), (2, 4.0)):
        K = size * np.eye(r + 1)
        for least, rank in ((16 * (r + 1) * EPS, r), (16 * (r + 1) * EPS * (1 + EPS), r + 1)):
            K[r, r] = size * least
            assert pivoted_cholesky(matrix_kernel(K), range(r + 1), tol=0).shape[1] == rank


def test_a_negative_residual_within_rounding_is_zero_and_a_visible_one_no_kernel():
    """thm-pivoted-cholesky, part 1: eight digits of the largest entry; what is negative does
    not hide what is left elsewhere."""
    for off, good in ((1e-10, True), (4e-9, True), (6e-9, False), (1e-4, False)):
        k = matrix_kernel([[1, 1 + off, 0], [1 + off, 1, 0], [0, 0, 1e-12]])
        if good:
            F, P = pivoted_cholesky(k, range(3), tol=0, return_pivots=True)
            assert list(P) == [0, 2] and np.allclose(F @ F.T, k(range(3)), atol=2.1 * off)
        else:
            with pytest.raises(ValueError, match="kernel must be positive definite"):
                pivoted_cholesky(k, range(3), tol=0)


def test_singular_gram_matrices():
    """thm-pivoted-cholesky, part 3: as many steps as the rank, no more."""
    X = sample(40)
    for k, rank in ((Linear(), 2), (Polynomial(2), 6), (Polynomial(3), 10),
                    (Polynomial(2, c=0.0), 3)):
        F = pivoted_cholesky(k, X, tol=0)
        assert F.shape[1] == rank
        assert np.allclose(F @ F.T, k(X), atol=1e-10 * np.abs(k(X)).max())
    twice = np.vstack([X, X, X])
    assert pivoted_cholesky(Laplace(1.0), twice, tol=0).shape[1] == 40
    assert pivoted_cholesky(Gaussian(1.0), np.zeros((5, 2)), tol=0).shape == (5, 1)
    assert pivoted_cholesky(Linear(), np.zeros((5, 2))).shape == (5, 0)
    assert pivoted_cholesky(Delta(), list("abcab"), tol=0).shape == (5, 3)


def test_points_of_any_kind():
    """thm-pivoted-cholesky asks nothing of the points."""
    texts = ["kernel", "kernels", "colonel", "matrix", "kernel"]
    spectrum = FeatureKernel(substrings(2))
    F, P = pivoted_cholesky(spectrum, texts, tol=0, return_pivots=True)
    assert np.allclose(F @ F.T, spectrum(texts)) and F.shape == (5, 4) and len(P) == 4
    pairs = Pairs(np.array([0.0, 1.0, 2.0, 1.0]), ["a", "b", "a", "b"])
    k = TensorProduct(Gaussian(1.0), Delta())
    F = pivoted_cholesky(k, pairs, tol=0)
    assert np.allclose(F @ F.T, k(pairs)) and F.shape == (4, 3)
    phi = nystrom_features(k, pairs)
    assert np.allclose(phi(pairs) @ phi(pairs).T, k(pairs))


def test_few_columns_and_little_memory():
    """thm-pivoted-cholesky: n r kernel values and O(n r) memory, not n²."""
    counted = []

    class Counting(Gaussian):
        def _gram(self, X, Y):
            counted.append(len(X) * len(Y))
            return super()._gram(X, Y)

    X, r = sample(20_000), 10
    tracemalloc.start()
    F = pivoted_cholesky(Counting(1.0), X, tol=0, max_rank=r)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert F.shape == (20_000, r) and sum(counted) == 20_000 * r
    assert peak < 4 * 8 * 20_000 * (r + 10)  # the matrix would take 3200 MB


def test_features_are_made_once():
    """thm-pivoted-cholesky: the features of a point are computed once, not for every column."""
    seen = []

    def features(text):
        seen.append(text)
        return substrings(2)(text)

    texts = ["kernel", "kernels", "colonel", "matrix"]
    k = FeatureKernel(features)
    Phi = Features(k, texts)
    F, P = pivoted_cholesky(k, Phi, tol=0, return_pivots=True)
    phi = nystrom_features(k, Phi)
    assert seen == texts
    assert np.array_equal(F, pivoted_cholesky(k, texts, tol=0)) and len(P) == 4
    assert np.allclose(phi(Phi)[P], F[P]) and seen == 2 * texts


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_the_factor_does_not_depend_on_the_scale(scale):
    """thm-pivoted-cholesky: F is multiplied by √c, the pivots stay."""
    X = sample(60)
    F, P = pivoted_cholesky(Gaussian(1.0), X, return_pivots=True)
    G, Q = pivoted_cholesky(scale * Gaussian(1.0), X, return_pivots=True)
    assert np.array_equal(P, Q)
    # Residuals of 1e-6 keep ten digits.
    assert np.allclose(G / np.sqrt(scale), F, rtol=1e-8, atol=1e-9)


def test_storage_grows_past_its_first_block():
    """thm-pivoted-cholesky with more than 64 columns, and a rank that is no power of two."""
    X = sample(150)
    for max_rank in (63, 64, 65, 129, 150, 500):
        F = pivoted_cholesky(Laplace(0.5), X, tol=0, max_rank=max_rank)
        assert F.shape == (150, min(max_rank, 150))
    assert np.allclose(F @ F.T, Laplace(0.5)(X), atol=1e-12)


# -- Nyström features -----------------------------------------------------


@pytest.mark.parametrize("k", [Gaussian(1.0), Laplace(1.0), Matern(2.5, 1.0), Polynomial(2)],
                         ids=names)
def test_nystrom_is_the_formula_with_the_pseudo_inverse(k):
    """thm-nystrom: eq-nystrom, with repeated landmarks."""
    U, X, Y = sample(6), sample(20, seed=1), sample(15, seed=2)
    phi = nystrom_features(k, np.vstack([U, U[:2]]))
    formula = k(X, U) @ np.linalg.pinv(k(U), hermitian=True) @ k(U, Y)
    # The pseudo-inverse loses the condition number of K_uu.
    assert np.allclose(phi(X) @ phi(Y).T, formula, atol=1e-8)
    assert phi(X).shape == (20, 6) and isinstance(phi, NystromFeatures)


def test_nystrom_is_the_inner_product_of_projections():
    """thm-nystrom: eq-nystrom-projection, with the functions of the RKHS themselves."""
    k, U, X = Laplace(1.0), sample(5), sample(4, seed=1)
    phi = nystrom_features(k, U)
    K = phi(X) @ phi(X).T
    functions = [RKHSFunction(k, x[None], [1.0]) for x in X]
    for (i, f), (j, g) in product(enumerate(functions), repeat=2):
        assert np.isclose(K[i, j], inner(project(f, U), project(g, U)), atol=1e-12)
        rest = inner(f - project(f, U), g - project(g, U))
        assert np.isclose(k(X)[i, j] - K[i, j], rest, atol=1e-12)


@given(st.integers(0, 500))
@settings(max_examples=25)
def test_the_error_is_a_kernel_bounded_by_power_functions(seed):
    """thm-nystrom: eq-nystrom-error; the diagonal error is never negative."""
    k, U, X = Gaussian(1.0), sample(4, seed=seed), sample(12, seed=seed + 1)
    phi = nystrom_features(k, U)
    R = k(X) - phi(X) @ phi(X).T
    P = power_function(k, U, X)
    assert R.diagonal().min() > -1e-13
    assert np.allclose(R.diagonal(), P**2, atol=1e-10)
    assert (np.abs(R) <= np.outer(P, P) + 1e-9).all()
    assert is_positive_definite(R, tol=1e-10)


def test_landmarks_are_reproduced_and_more_of_them_help():
    """thm-nystrom: exact where a point is a landmark; P decreases."""
    k, U, X = Matern(1.5, 1.0), sample(10), sample(30, seed=1)
    phi = nystrom_features(k, U)
    assert np.allclose(phi(U) @ phi(X).T, k(U, X), atol=1e-12)
    before = np.zeros(30)
    for m in (1, 3, 6, 10):
        after = np.sum(nystrom_features(k, U[:m])(X) ** 2, axis=1)
        assert (after >= before - 1e-12).all() and (after <= 1 + 1e-12).all()
        before = after


def test_nystrom_features_of_the_pivots_are_the_factor():
    """thm-nystrom with thm-pivoted-cholesky, part 4: the two methods are one."""
    X, k = sample(80), Laplace(1.0)
    F, P = pivoted_cholesky(k, X, tol=0, max_rank=20, return_pivots=True)
    assert np.allclose(nystrom_features(k, X[P])(X), F, atol=1e-10)
    # Each new pivot has the largest power function so far.
    for r in (1, 5, 19):
        power = power_function(k, X[P[:r]], X)
        assert np.isclose(power[P[r]], power.max())


def test_nystrom_is_stable_for_nearly_singular_landmarks():
    """thm-nystrom: a Gram matrix of condition number 1e18 and more."""
    k = Gaussian(3.0)
    U, X = np.linspace(0, 1, 60), np.linspace(-0.2, 1.2, 50)
    phi = nystrom_features(k, U)
    assert phi(X).shape[1] < 20
    assert np.abs(phi(X) @ phi(X).T - k(X)).max() < 1e-9
    assert repr(phi).startswith("NystromFeatures(Gaussian(sigma=3.0), r=")


@pytest.mark.parametrize("k", [Linear(), Polynomial(2), Delta(), Linear() + Gaussian(1.0),
                               Gaussian(1.0) * Linear(), 2 * Linear(), Linear() ** 2,
                               TensorProduct(Gaussian(1.0), Gaussian(1.0)),
                               0.0 * Gaussian(1.0), 0 * Gaussian(1.0) + 0 * Laplace(1.0)], ids=names)
def test_kernels_without_known_spectral_measure_are_refused(k):
    """thm-bochner: a continuous translation-invariant kernel that is not zero has a
    distribution of frequencies; any positive multiple in a sum is enough."""
    for function in (lambda k: spectral_sample(k, 5, dim=1, rng=0),
                     lambda k: random_fourier_features(k, 5, dim=1, rng=0)([0.0]),
                     lambda k: rff_variance(k, [0.0], [1.0], 5)):
        with pytest.raises(ValueError, match="kernel"):
            function(k)
        assert np.isfinite(function(0 * Gaussian(1.0) + 1e-9 * Laplace(1.0))).all()


@pytest.mark.parametrize("q", [1, 2, 3])
def test_q_frequencies_make_q_to_2q_features(q):
    """def-rff: cosines, and a sine for some or all of them."""
    omega, b = np.arange(1.0, q + 1)[:, None], np.zeros(q)
    for D in (q - 1, 2 * q + 1):
        with pytest.raises(ValueError, match="^n_features "):
            FourierFeatures(omega, b, D)
    for D in range(q, 2 * q + 1):
        assert FourierFeatures(omega, b, D)([0.0, 1.0]).shape == (2, D)
    with pytest.raises(ValueError, match="^phases "):
        FourierFeatures(omega, np.zeros(q + 1), q)


def test_points_that_the_waves_cannot_take():
    """def-rff: another dimension, and angles that overflow."""
    z = FourierFeatures([[2.0, 1.0]], [0.0], 2)
    assert np.isfinite(z([[8e307, 0.0]])).all()
    for bad in (sample(3, 3), [[1e308, 0.0]]):
        with pytest.raises(ValueError, match="^X "):
            z(bad)


def test_feature_maps_are_pickled_and_copied_read_only():
    """def-rff, thm-nystrom: the copy is the same function, and as frozen."""
    X = sample(9)
    maps = (random_fourier_features(2.0 * Laplace(1.0), 7, dim=2, rng=0),
            nystrom_features(Matern(1.5, 1.0), X[:4]))
    for z in maps:
        for twin in (pickle.loads(pickle.dumps(z)), copy.copy(z), copy.deepcopy(z)):
            assert type(twin) is type(z) and np.array_equal(twin(X), z(X))
            arrays_ = [v for v in vars(twin).values() if isinstance(v, np.ndarray)]
            assert len(arrays_) == 2 and not any(v.flags.writeable for v in arrays_)
        assert "np.float64" not in repr(z)


def test_without_a_seed_every_draw_is_fresh():
    """def-rff, thm-bochner: rng=None."""
    assert not np.array_equal(*(spectral_sample(Gaussian(1.0), 4, dim=2) for _ in range(2)))
    one, two = (random_fourier_features(Gaussian(1.0), 4, dim=2) for _ in range(2))
    assert not np.array_equal(one.frequencies, two.frequencies)


@pytest.mark.parametrize("wrong, right", [
    (lambda s, t: max(0.0, 1 - (s - t) ** 2), lambda s, t: max(0.0, 1 - abs(s - t))),
    (lambda s, t: -1.0, lambda s, t: 1.0),
    (lambda s, t: 1.0 if s == t else 2.0, lambda s, t: 1.0 if s == t else 0.99),
], ids=["parabola", "negative", "too large off the diagonal"])
def test_functions_that_are_no_kernels_are_found_out(wrong, right):
    """thm-pivoted-cholesky, part 1, needs positive definiteness: a triangle has it, a
    parabola has not."""
    X = np.linspace(0, 5, 40)
    with pytest.raises(ValueError, match="kernel must be positive definite"):
        pivoted_cholesky(FunctionKernel(wrong), X, tol=0)
    F = pivoted_cholesky(FunctionKernel(right), X, tol=0)
    assert np.allclose(F @ F.T, FunctionKernel(right)(X), atol=1e-12)


def test_landmarks_without_features_are_named():
    """thm-nystrom: a span of zeros has no features, one landmark that is not zero has one."""
    with pytest.raises(ValueError, match=r"landmarks must have k\(u, u\) > 0"):
        nystrom_features(Linear(), np.zeros((3, 2)))
    phi = nystrom_features(Linear(), [[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]])
    assert np.allclose(abs(phi([[1.0, 0.0]])), 0.6) and phi([[1.0, 0.0]]).shape == (1, 1)


def test_a_nystrom_record_does_not_change_with_its_input():
    """thm-nystrom: landmarks and factor are copies."""
    U = np.array([0.0, 1.0])
    L = np.linalg.cholesky(Gaussian(1.0)(U))
    phi = NystromFeatures(Gaussian(1.0), U, L)
    before = phi([0.3, 2.0])
    U[0], L[0, 0] = 9.0, 7.0
    assert np.array_equal(phi([0.3, 2.0]), before)
    with pytest.raises(ValueError):
        phi.landmarks[0] = 5.0
