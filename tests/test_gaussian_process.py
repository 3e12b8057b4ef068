"""Identities of the chapter on Gaussian processes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rkhs_lit import (
    Delta,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    PrecisionWarning,
    gaussian_derivative,
    gp_posterior,
    interpolate,
    leave_one_out,
    log_marginal_likelihood,
    norm,
    pivoted_cholesky,
    polynomial_features,
    power_function,
    ridge,
)
from scipy.stats import chi2, multivariate_normal
from scipy.stats import norm as normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

KERNELS = [Gaussian(0.8), Laplace(1.5), Polynomial(2), Matern(1.5, 1.0), Linear(),
           2.5 * Gaussian(0.5) + Linear()]
names = lambda k: repr(k)[:40]  # noqa: E731
seeds = st.integers(0, 10_000)


def sample(n=15, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)


XY = sample(8)


@given(seeds)
def test_conditioning_of_normal_vectors(seed):
    """lem-normal-conditioning: joint density = conditional × marginal."""
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(5, 5))
    joint = M @ M.T + 0.5 * np.eye(5)
    A, B, C = joint[:2, :2], joint[2:, 2:], joint[:2, 2:]
    v = rng.normal(size=5)
    mean, covariance = C @ np.linalg.solve(B, v[2:]), A - C @ np.linalg.solve(B, C.T)
    left = multivariate_normal(np.zeros(5), joint).logpdf(v)
    right = (multivariate_normal(mean, covariance).logpdf(v[:2])
             + multivariate_normal(np.zeros(3), B).logpdf(v[2:]))
    assert np.isclose(left, right)


@pytest.mark.parametrize("k", KERNELS, ids=names)
@pytest.mark.parametrize("noise", [1e-3, 1.0])
def test_the_posterior_mean_is_the_ridge_fit(k, noise):
    """thm-gp-posterior: λ is the variance of the noise."""
    X, y = sample()
    T = np.vstack([sample(5, seed=4)[0], X[:2]])
    mean, covariance = gp_posterior(k, X, y, noise, T)
    assert np.allclose(mean, ridge(k, X, y, noise)(T), atol=1e-9)
    K, cross = k(X) + noise * np.eye(15), k(T, X)
    assert np.allclose(covariance, k(T) - cross @ np.linalg.solve(K, cross.T), atol=1e-9)
    assert np.array_equal(covariance, covariance.T)
    assert (covariance.diagonal() <= k.diag(T) + 1e-12).all()
    assert np.array_equal(covariance, gp_posterior(k, X, 5 - y, noise, T)[1])


def test_the_posterior_agrees_with_scikit_learn():
    """thm-gp-posterior: RBF(σ) and alpha = noise."""
    X, y = sample(25, 3)
    T = sample(6, 3, seed=2)[0]
    peer = GaussianProcessRegressor(ConstantKernel(2.0) * RBF(0.7), alpha=0.3,
                                    optimizer=None).fit(X, y)
    mean, covariance = gp_posterior(2.0 * Gaussian(0.7), X, y, 0.3, T)
    m, c = peer.predict(T, return_cov=True)
    assert np.allclose(mean, m) and np.allclose(covariance, c)


def test_weights_with_a_normal_prior():
    """prop-ridge-map: the posterior of w, seen through the features."""
    x = np.linspace(-1, 1, 7)
    y, noise, T = np.exp(x), 0.2, np.array([-0.5, 0.3])
    Phi, Phi_T = polynomial_features(x, 3), polynomial_features(T, 3)
    A = Phi.T @ Phi + noise * np.eye(4)
    w, W = np.linalg.solve(A, Phi.T @ y), noise * np.linalg.inv(A)
    mean, covariance = gp_posterior(Polynomial(3), x, y, noise, T)
    assert np.allclose(mean, Phi_T @ w)
    assert np.allclose(covariance, Phi_T @ W @ Phi_T.T)
    # The density, up to one constant.
    rng, logs = np.random.default_rng(0), []
    for v in rng.normal(size=(5, 4)):
        J = np.sum((y - Phi @ v) ** 2) + noise * v @ v
        logs.append(multivariate_normal(w, W).logpdf(v) + J / (2 * noise))
    assert np.allclose(logs, logs[0])


def test_posterior_by_simulation():
    """thm-gp-posterior from draws of the joint distribution, by regression."""
    rng = np.random.default_rng(0)
    points, noise, N = np.array([0.0, 0.7, 1.5, 0.4]), 0.3, 100_000
    draws = rng.normal(size=(N, 4)) @ np.linalg.cholesky(Gaussian(1.0)(points)).T
    y = draws[:, :3] + np.sqrt(noise) * rng.normal(size=(N, 3))
    slopes = np.linalg.lstsq(y, draws[:, 3])[0]
    left = draws[:, 3] - y @ slopes
    exact = [gp_posterior(Gaussian(1.0), points[:3], e, noise, points[3:])[0][0]
             for e in np.eye(3)]
    variance = gp_posterior(Gaussian(1.0), points[:3], np.zeros(3), noise, points[3:])[1][0, 0]
    # Slopes have errors near √(variance / N); five of them.
    assert np.allclose(slopes, exact, atol=5 * np.sqrt(variance / noise / N))
    assert np.isclose(left.var(), variance, rtol=5 * np.sqrt(2 / N))


@pytest.mark.parametrize("noise", [1e-2, 1.0])
def test_posterior_variance_is_a_power_function(noise):
    """prop-gp-power, at points that are not data."""
    X, y = sample(10)
    T = sample(6, seed=9)[0]
    _, covariance = gp_posterior(Laplace(1.0), X, y, noise, T)
    P = power_function(Laplace(1.0) + noise * Delta(), X, T)
    assert np.allclose(covariance.diagonal() + noise, P**2)
    _, sure = gp_posterior(Laplace(1.0), X, y, 1e-11, T)
    assert np.allclose(sure.diagonal(), power_function(Laplace(1.0), X, T) ** 2, atol=1e-9)


def test_leaving_out_is_conditioning():
    """prop-gp-loo: mean y_i - α_i/G_ii and variance 1/G_ii."""
    X, y = sample(9)
    k, noise = Gaussian(1.0), 0.2
    G = np.linalg.inv(k(X) + noise * np.eye(9))
    for i in range(9):
        mean, covariance = gp_posterior(k, np.delete(X, i, 0), np.delete(y, i), noise, X[i:i + 1])
        assert np.isclose(mean[0], y[i] - (G @ y)[i] / G[i, i])
        assert np.isclose(mean[0], y[i] - leave_one_out(k, X, y, noise)[i])
        assert np.isclose(covariance[0, 0] + noise, 1 / G[i, i])


@pytest.mark.parametrize("k", KERNELS, ids=names)
def test_the_evidence_is_a_normal_density(k):
    """thm-gp-evidence against SciPy."""
    X, y = sample()
    exact = multivariate_normal(np.zeros(15), k(X) + 0.4 * np.eye(15)).logpdf(y)
    value = log_marginal_likelihood(k, X, y, 0.4)
    assert isinstance(value, float) and np.isclose(value, exact)
    both = log_marginal_likelihood(k, X, y, 0.4, return_gradient=True)
    assert both[0] == value and both[1].shape == (1,)


@given(seeds, st.floats(0.3, 3), st.floats(0.1, 5), st.floats(0.05, 3))
@settings(max_examples=30)
def test_the_gradient_of_the_evidence(seed, sigma, scale, noise):
    """thm-gp-evidence: central differences, and scikit-learn's logarithmic gradient."""
    X, y = sample(8, seed=seed)
    value = lambda s, c, v: log_marginal_likelihood(c * Gaussian(s), X, y, v)  # noqa: E731
    _, gradient = log_marginal_likelihood(
        scale * Gaussian(sigma), X, y, noise, return_gradient=True,
        derivatives=[scale * gaussian_derivative(X, sigma), Gaussian(sigma)(X)])
    h = 1e-5
    steps = h * noise, h * sigma, h * scale
    differences = [
        (value(sigma, scale, noise + steps[0]) - value(sigma, scale, noise - steps[0])),
        (value(sigma + steps[1], scale, noise) - value(sigma - steps[1], scale, noise)),
        (value(sigma, scale + steps[2], noise) - value(sigma, scale - steps[2], noise))]
    # A difference quotient loses half of the digits.
    assert np.allclose(gradient, np.array(differences) / 2 / steps, rtol=1e-4, atol=1e-4)
    peer = GaussianProcessRegressor(ConstantKernel(scale, (1e-9, 1e9)) * RBF(sigma, (1e-9, 1e9)),
                                    alpha=noise, optimizer=None).fit(X, y)
    v, g = peer.log_marginal_likelihood(peer.kernel_.theta, eval_gradient=True)
    assert np.isclose(value(sigma, scale, noise), v)
    assert np.allclose(gradient[[2, 1]] * [scale, sigma], g, rtol=1e-7, atol=1e-9)


def test_derivative_of_the_gaussian_gram_matrix():
    """thm-gp-evidence: k ‖x - y‖²/σ³, at every scale."""
    X, h = sample(6)[0], 1e-6
    difference = (Gaussian(0.9 + h)(X) - Gaussian(0.9 - h)(X)) / (2 * h)
    assert np.allclose(gaussian_derivative(X, 0.9), difference, atol=1e-9)
    for scale in (1e-120, 1e120):
        assert np.allclose(scale * gaussian_derivative(scale * X, scale * 0.9),
                           gaussian_derivative(X, 0.9))
    for sigma in (1e-100, 1e-150):
        assert np.array_equal(gaussian_derivative([0.0, 1e200], sigma), np.zeros((2, 2)))


def test_the_evidence_scores_one_step_predictions():
    """ex-gp-chain."""
    X, y = sample(8)
    k, noise = Laplace(1.0), 0.3
    total = normal(0, np.sqrt(k.diag(X[:1])[0] + noise)).logpdf(y[0])
    for i in range(1, 8):
        m, v = gp_posterior(k, X[:i], y[:i], noise, X[i:i + 1])
        total += normal(m[0], np.sqrt(v[0, 0] + noise)).logpdf(y[i])
    assert np.isclose(total, log_marginal_likelihood(k, X, y, noise))


def test_interpolants_of_draws_have_chi_squared_norms():
    """prop-gp-draws: ‖s_n‖² is a sum of n squares of standard normal variables."""
    points, n = np.linspace(0, 3, 12), 12
    L = np.linalg.cholesky(Laplace(1.0)(points))
    xi = np.random.default_rng(0).normal(size=(40, n))
    for row in xi:
        f = L @ row
        for m in (1, 5, 12):
            square = norm(interpolate(Laplace(1.0), points[:m], f[:m])) ** 2
            assert np.isclose(square, np.sum(row[:m] ** 2))
    assert chi2(80).cdf(8) < 1e-20             # small norms become impossible


def test_repeated_data():
    """ex-ridge-repeats."""
    X, y = sample(10)
    T, k = sample(4, seed=1)[0], Gaussian(1.0)
    X3, y3 = np.tile(X, (3, 1)), np.tile(y, 3)
    assert np.allclose(ridge(k, X3, y3, 0.6)(T), ridge(k, X, y, 0.2)(T))
    assert np.allclose(gp_posterior(k, X3, y3, 0.6, T)[1], gp_posterior(k, X, y, 0.2, T)[1])


def test_variances_are_never_negative():
    """thm-gp-posterior where the posterior is sure up to rounding."""
    x = np.linspace(-10, 10, 60)
    size = np.abs(Linear()(x)).sum(axis=1).max()
    for factor in (1.1, 2.0, 3.0):
        noise = factor * np.finfo(float).eps * size
        with pytest.warns(PrecisionWarning):
            _, covariance = gp_posterior(Linear(), x, np.sin(x), noise, np.linspace(-10, 10, 101))
        assert (covariance.diagonal() >= 0).all()


def test_a_variance_lost_in_rounding_is_in_doubt():
    """thm-gp-posterior: k(t, t) - V'V has no digit below the precision of k."""
    with pytest.warns(PrecisionWarning, match="variance at point 1 of T"):
        gp_posterior(Gaussian(1.0), [0.0], [1.0], 3e-16, [5.0, 0.0])
    # 4 ε k(t, t) is 8e-15 at t = 3, where the largest share of it is missing.
    with pytest.warns(PrecisionWarning, match="variance at point 1 of.*within 8e-15 only"):
        gp_posterior(Linear(), [1.0], [0.0], 5e-16, [1.0, 3.0, 2.0])


def test_draws_by_matherons_rule():
    """ex-gp-matheron: f_t - K_tx C⁻¹ (f_x + ε) has the posterior covariance."""
    X, _ = sample(6)
    T, k, noise = sample(4, seed=1)[0], Laplace(1.0), 0.3
    joint = np.zeros((16, 16))
    joint[:10, :10] = k(np.vstack([X, T]))
    joint[10:, 10:] = noise * np.eye(6)
    A = np.hstack([-k(T, X) @ np.linalg.inv(k(X) + noise * np.eye(6)), np.eye(4)])
    A = np.hstack([A, A[:, :6]])                       # the errors enter like f_x
    assert np.allclose(A @ joint @ A.T, gp_posterior(k, X, np.zeros(6), noise, T)[1])


def test_greedy_measurements_are_pivots():
    """ex-gp-design: without noise the variance is the diagonal of the remainder."""
    T, k, chosen = sample(12)[0], Laplace(1.0), []
    _, pivots = pivoted_cholesky(k, T, tol=0, max_rank=6, return_pivots=True)
    for p in pivots:
        if chosen:
            _, C = gp_posterior(k, T[chosen], np.zeros(len(chosen)), 1e-12, T)
            assert np.argmax(C.diagonal()) == p
        chosen.append(p)


def test_the_variance_that_is_named_is_the_one_in_doubt():
    """thm-gp-posterior: 25 of 125 is certain, 3e-16 of 1 is not."""
    with pytest.warns(PrecisionWarning, match="the variance at point 1 of T"):
        gp_posterior(Linear(), [[1.0, 0.0]], [1.0], 3e-16, [[10.0, 5.0], [1.0, 0.0]])


@pytest.mark.parametrize("shape", [(4, 4), (6, 6), (5, 6), (6, 5), (1, 5)])
def test_a_derivative_has_the_shape_of_the_gram_matrix(shape):
    """thm-gp-evidence: tr((K + σ²I)⁻¹ D) for an n × n matrix D, no smaller and no larger one."""
    x = np.arange(5.0)
    with pytest.raises(ValueError, match=r"^derivatives must be symmetric \(5, 5\) arrays"):
        log_marginal_likelihood(Gaussian(1.0), x, x, 0.1, derivatives=[np.ones(shape)],
                                return_gradient=True)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_a_derivative_is_symmetric_to_eight_digits(size):
    """thm-gp-evidence: relative to its largest entry; then tr(...)/2 is the gradient, for which
    the gradient must be asked."""
    x, y, D = [0.0, 1.0], [1.0, 2.0], size * np.ones((2, 2))
    K = Gaussian(1.0)(x) + 0.1 * np.eye(2)
    a = np.linalg.solve(K, y)
    for slant, good in ((5e-9, True), (2e-8, False)):
        D[0, 1] = size * (1 + slant)
        if good:
            gradient = log_marginal_likelihood(Gaussian(1.0), x, y, 0.1, derivatives=[D],
                                               return_gradient=True)[1]
            wanted = a @ D @ a / 2 - np.trace(np.linalg.solve(K, D)) / 2
            assert np.isclose(gradient[-1], wanted, rtol=1e-7, atol=0)
        else:
            with pytest.raises(ValueError, match="^derivatives must be symmetric"):
                log_marginal_likelihood(Gaussian(1.0), x, y, 0.1, derivatives=[D],
                                        return_gradient=True)
    with pytest.raises(ValueError, match="derivatives"):
        log_marginal_likelihood(Gaussian(1.0), *XY, 1.0, derivatives=[np.eye(8)])
