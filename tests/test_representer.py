"""Identities of the chapter on the representer theorem."""

import copy
import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rkhs_lit import (
    Delta,
    FeatureKernel,
    Features,
    FunctionKernel,
    Gaussian,
    Laplace,
    Linear,
    Loss,
    Matern,
    Polynomial,
    RKHSFunction,
    Shifted,
    decompose,
    duality_gap,
    inner,
    interpolate,
    minimize_risk,
    norm,
    polynomial_features,
    project,
    regularised_risk,
    words,
)
from scipy.optimize import brentq, lsq_linear, minimize
from scipy.special import expit
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import HuberRegressor, LogisticRegression, QuantileRegressor
from sklearn.svm import SVC, SVR, LinearSVC

DELTA, TAU = 0.4, 0.8
ON_LABELS = ("hinge", "squared_hinge", "logistic")
LOSSES = [
    Loss("squared"), Loss("absolute"), Loss("huber", DELTA), Loss("quantile", TAU),
    Loss("hinge"), Loss("squared_hinge"), Loss("logistic"),
]
IDS = [loss.name for loss in LOSSES]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=IDS)

# The formulas of the chapter, written a second time: φ, φ*, and the interval.
PHI = {
    "squared": lambda s: s**2,
    "absolute": np.abs,
    "huber": lambda s: np.where(np.abs(s) <= DELTA, s**2, 2 * DELTA * np.abs(s) - DELTA**2),
    "quantile": lambda s: np.maximum(TAU * s, (TAU - 1) * s),
    "hinge": lambda s: np.maximum(0, s),
    "squared_hinge": lambda s: np.maximum(0, s) ** 2,
    "logistic": lambda s: np.log1p(np.exp(s - 1)),
}
INTERVAL = {
    "squared": (-np.inf, np.inf), "absolute": (-1, 1), "huber": (-2 * DELTA, 2 * DELTA),
    "quantile": (TAU - 1, TAU), "hinge": (0, 1), "squared_hinge": (0, np.inf),
    "logistic": (0, 1),
}


def conjugate(name, g):
    if name == "logistic":
        g = np.clip(g, 1e-300, 1 - 1e-16)
        return g + g * np.log(g) + (1 - g) * np.log1p(-g)
    return g**2 / 4 if name in ("squared", "huber", "squared_hinge") else 0 * g


def data(loss, n=14, d=2, seed=0):
    """Points, targets, and the a and c of the shortfalls s = a - c f(x)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + 0.5 * rng.standard_t(2, size=n)
    if loss.name in ON_LABELS:
        y = np.where(y > 0, 1.0, -1.0)
        return X, y, np.ones(n), y
    return X, y, y, np.ones(n)


def primal(loss, K, weights, a, c, lam):
    """The risk by the formulas above."""
    return np.sum(PHI[loss.name](a - c * (K @ weights))) + lam * weights @ K @ weights


def dual(loss, K, gamma, a, c, lam):
    u = c * gamma
    return np.sum(a * gamma - conjugate(loss.name, gamma)) - u @ K @ u / (4 * lam)


def exact_gap(loss, K, weights, a, c, lam):
    """P(f) - D(γ) as a fraction of P(f), in exact arithmetic on the floats given."""
    n, name, delta, tau = len(a), loss.name, Fraction(DELTA), Fraction(TAU)
    w, a, c = ([Fraction(v) for v in u.tolist()] for u in (weights, a, c))
    K, lam = [[Fraction(v) for v in row] for row in K.tolist()], Fraction(lam)
    phi = {
        "squared": lambda s: s**2, "absolute": abs, "hinge": lambda s: max(s, 0),
        "huber": lambda s: s**2 if abs(s) <= delta else 2 * delta * abs(s) - delta**2,
        "quantile": lambda s: max(tau * s, (tau - 1) * s),
        "squared_hinge": lambda s: max(s, 0) ** 2,
    }[name]
    low, high = {"huber": (-2 * delta, 2 * delta), "quantile": (tau - 1, tau)}.get(
        name, INTERVAL[name])
    g = [min(max(2 * lam * c[i] * w[i], low), high) for i in range(n)]
    u = [c[i] * g[i] for i in range(n)]
    f, f_gamma = ([sum(map(Fraction.__mul__, row, v)) for row in K] for v in (w, u))
    P = sum(phi(a[i] - c[i] * f[i]) + lam * w[i] * f[i] for i in range(n))
    D = sum(a[i] * g[i] - conjugate(name, g[i]) - u[i] * f_gamma[i] / (4 * lam)
            for i in range(n))
    return (P - D) / P


def wild(kernel, d=2, seed=0, n=10):
    rng = np.random.default_rng(seed)
    return RKHSFunction(kernel, 2 * rng.normal(size=(n, d)), rng.normal(size=n))


# -- The theorem ----------------------------------------------------------

PENALTIES = {
    "square": (lambda t: t**2, True), "norm": (lambda t: t, True), "root": (np.sqrt, True),
    "bounded": (lambda t: t / (1 + t), True), "flat": (lambda t: max(0.0, t - 2), False),
    "jump": (lambda t: float(t > 1), False), "ball": (lambda t: np.inf if t > 4 else 0.0, False),
}


@pytest.mark.parametrize("penalty", PENALTIES)
@given(st.integers(0, 10**6), st.integers(1, 6))
@settings(max_examples=8)
def test_projection_never_raises_the_risk(penalty, seed, n):
    """thm-representer, both parts, with a loss that is neither convex nor continuous."""
    omega, strict = PENALTIES[penalty]
    kernel, rng = Laplace(1.0), np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    f = wild(kernel, seed=seed)
    g = project(f, X)
    # The values agree to the conditioning of six points times rounding.
    assert np.allclose(f(X), g(X), atol=1e-9)
    assert np.isclose(norm(f) ** 2, norm(g) ** 2 + norm(f - g) ** 2)
    loss = np.sum(np.abs(np.round(f(X), 5) - y) > 0.5) + np.sin(f(X).prod())
    same = np.sum(np.abs(np.round(g(X), 5) - y) > 0.5) + np.sin(g(X).prod())
    assert np.isclose(loss, same, atol=1e-6)
    assert omega(norm(g)) <= omega(norm(f))
    if strict:
        assert omega(norm(g)) < omega(norm(f))


@given(st.integers(0, 10**6))
@settings(max_examples=20)
def test_the_risk_of_an_expansion_needs_only_the_gram_matrix(seed):
    """cor-representer-finite: L(Kα) + Ω(√α'Kα)."""
    loss = LOSSES[seed % 7]
    X, y, a, c = data(loss, seed=seed)
    weights = np.random.default_rng(seed).normal(size=14)
    f, K = RKHSFunction(Gaussian(1.0), X, weights), Gaussian(1.0)(X)
    expected = primal(loss, K, weights, a, c, 0.7)
    assert np.isclose(regularised_risk(f, X, y, loss, 0.7), expected, rtol=1e-12)


def test_a_flat_penalty_has_minimisers_outside_the_span_and_a_strict_one_has_not():
    """exm-flat-penalty, prop-all-minimisers."""
    kernel, x = Gaussian(0.5), np.array([-1.0, 0.2, 1.3])
    y = np.array([0.5, -0.4, 1.0])
    s = interpolate(kernel, x, y)
    R = 2 * norm(s)

    def risk(f, omega):
        return np.sum((y - f(x)) ** 2) + omega(norm(f))

    h = wild(kernel, d=1)
    h = h - project(h, x)
    for size, free in ((0.9, True), (1.2, False)):
        f = s + h * (size * np.sqrt(R**2 - norm(s) ** 2) / norm(h))
        assert norm(f - project(f, x)) > 0.5
        # 0 is the least value that this risk can have.
        assert (risk(f, lambda t: max(0.0, t - R)) < 1e-15) == free
        assert risk(f, lambda t: t) > risk(s, lambda t: t) + 0.1
    assert risk(s, lambda t: max(0.0, t - R)) < 1e-15


@pytest.mark.parametrize("omega, better", [(lambda t: -t, True), (lambda t: (t - 2) ** 2, True),
                                           (lambda t: max(t, 2.0), False)])
def test_penalties_that_decrease_or_rest_have_minimisers_outside(omega, better):
    """prop-representer-sharp: one data point, values s < t of the norm."""
    kernel = Laplace(1.0)
    k_x = RKHSFunction(kernel, [0.0], [2.0])
    h = RKHSFunction(kernel, [1.0], [1.0])
    h = h - project(h, [0.0])
    e, h = k_x / norm(k_x), h / norm(h)
    s, t = 1.0, 2.0
    f = s * e + np.sqrt(t**2 - s**2) * h
    assert np.isclose(norm(f), t) and abs(inner(e, h)) < 1e-12
    assert np.isclose(f([0.0])[0], s * e([0.0])[0])
    inside, outside = omega(norm(s * e)), omega(norm(f))
    assert outside < inside - 0.5 if better else np.isclose(outside, inside)


def test_counting_mistakes_has_no_minimiser():
    """prop-zero-one: the infimum is approached by shrinking, and not attained at zero."""
    X, y, _, _ = data(Loss("hinge"))
    f = interpolate(Laplace(1.0), X, y)
    risks = []
    for scale in (1.0, 1e-2, 1e-4, 1e-6):
        g = scale * f
        risks.append(np.sum(y * g(X) <= 0) + norm(g) ** 2)
    assert (np.diff(risks) < 0).all() and risks[-1] < 1e-9
    assert np.sum(y * (0 * f)(X) <= 0) == 14 and np.sum(y * (0 * f)(X) < 0) == 0


def test_a_penalty_that_is_not_strictly_convex_can_have_many_minimisers():
    """ex-norm-penalty, thm-risk-existence: Ω(t) = t and L(v) = max(-v, -5), exactly."""
    def risk(alpha):
        return max(-alpha, Fraction(-5)) + abs(alpha)

    alphas = [Fraction(i, 10) for i in range(-50, 101)]
    zero = [alpha for alpha in alphas if risk(alpha) == 0]
    assert min(map(risk, alphas)) == 0
    assert zero == [alpha for alpha in alphas if 0 <= alpha <= 5]


def test_the_minimiser_is_one_function_with_many_weights():
    """cor-risk-unique: weight moves between copies of a point, the function stays."""
    x, y = np.array([0.0, 0.0, 1.0]), np.array([1.0, 1.4, -1.0])
    f = minimize_risk(Gaussian(1.0), x, y, "squared", 0.1)
    g = RKHSFunction(Gaussian(1.0), x, f.weights + [3.0, -3.0, 0.0])
    assert norm(f - g) < 1e-7
    assert np.isclose(regularised_risk(g, x, y, "squared", 0.1),
                      regularised_risk(f, x, y, "squared", 0.1))


# -- The offset -----------------------------------------------------------


@every_loss
def test_projection_never_raises_the_risk_with_an_offset(loss):
    """thm-representer-offset: the values f(x_i) + b do not change."""
    X, y, a, c = data(loss)
    f, b = wild(Laplace(1.0)), 0.7
    g = project(f, X)

    def risk(f):
        return np.sum(loss(y, f(X) + b)) + 0.3 * norm(f) ** 2

    assert np.isclose(risk(f) - risk(g), 0.3 * norm(f - g) ** 2)
    assert risk(f) > risk(g) + 0.1


def test_an_offset_is_the_limit_of_a_constant_kernel():
    """thm-representer-offset with eq-ridge-offset: a bordered linear system."""
    X, y, _, _ = data(Loss("squared"))
    kernel, lam, y = Laplace(1.0), 0.3, y + 5
    K = kernel(X)
    bordered = np.block([[K + lam * np.eye(14), np.ones((14, 1))], [np.ones(14), 0.0]])
    *alpha, b = np.linalg.solve(bordered, np.append(y, 0))
    f, constant = decompose(minimize_risk(kernel + 1e6 * kernel**0, X, y, "squared", lam))
    assert np.isclose(constant(X[:1])[0], b, atol=1e-4)
    assert np.allclose(f.weights, alpha, atol=1e-5) and abs(f.weights.sum()) < 1e-5
    # The offset costs nothing: adding a constant to y moves only the offset.
    g, higher = decompose(minimize_risk(kernel + 1e6 * kernel**0, X, y + 1, "squared", lam))
    assert np.isclose(higher(X[:1])[0] - b, 1, atol=1e-4)
    assert np.allclose(f.weights, g.weights, atol=1e-5)


@pytest.mark.parametrize("name, peer", [("hinge", SVC), ("absolute", SVR)])
def test_an_almost_free_offset_agrees_with_machines_that_have_one(name, peer):
    """thm-representer-offset; libsvm minimises ½‖f‖² + C Σ ℓ with an offset, C = 1/2λ."""
    X, y, _, _ = data(Loss(name), n=40)
    lam, options = 0.5, {"epsilon": 0.0} if name == "absolute" else {}
    other = peer(C=1 / (2 * lam), gamma=0.5, tol=1e-9, **options).fit(X, y)
    value = other.decision_function(X) if name == "hinge" else other.predict(X)
    f = minimize_risk(Gaussian(1.0) + 1e5 * Gaussian(1.0) ** 0, X, y, name, lam)
    # b²/c costs λ b²/c: the function moves by less than 1e-3 (√(λ/c) and the solver's tol).
    assert np.allclose(f(X), value, atol=2e-3)


@every_loss
@pytest.mark.parametrize("lam", [1e-2, 0.5, 20.0])
def test_a_fit_with_a_free_offset_is_certified(loss, lam):
    """cor-risk-gap-offset and alg-certified-minimiser: P(f, b) - D(γ) with Σ c_i γ_i = 0."""
    X, y, a, c = data(loss, n=25)
    if loss.name not in ON_LABELS:
        y, a = y + 40, a + 40
    kernel = Laplace(1.0)
    g = minimize_risk(kernel, X, y, loss, lam, offset=True, tol=1e-9)
    K, alpha = kernel(X), g.function.weights
    gamma = np.clip(2 * lam * c * alpha, *INTERVAL[loss.name])
    risk = primal(loss, K, alpha, a - c * g.b, c, lam)
    assert np.isclose(risk, loss(y, g(X)).sum() + lam * norm(g.function) ** 2)
    assert abs(c @ gamma) <= 1e-10 * np.abs(gamma).sum()
    gap = risk - dual(loss, K, gamma, a, c, lam)
    # The dual value is a difference of numbers near Σ |a_i γ_i|.
    assert -1e-12 * np.abs(a * gamma).sum() < gap < 2e-9 * risk + 1e-12 * np.abs(a * gamma).sum()
    # No other function with any other offset does better.
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1, 1.0):
        other = alpha + size * rng.normal(size=25)
        b = g.b + size * rng.normal()
        assert primal(loss, K, other, a - c * b, c, lam) > risk * (1 - 2e-9)


@every_loss
def test_an_offset_is_that_of_a_large_constant_in_the_kernel(loss):
    """thm-representer-offset: the penalty λ b²/c of the constant kernel c tends to zero."""
    X, y, _, _ = data(loss, n=20)
    kernel, lam = Gaussian(1.0), 0.3
    g = minimize_risk(kernel, X, y, loss, lam, offset=True, tol=1e-10)
    near = minimize_risk(kernel + 1e4 * kernel**0, X, y, loss, lam)
    risk = loss(y, g(X)).sum() + lam * norm(g.function) ** 2
    above = regularised_risk(near, X, y, loss, lam) - risk
    assert -2e-8 * risk <= above <= 1e-4 * lam * g.b**2 + 2e-8 * risk
    # λ‖f - g‖² is at most the difference of the risks.
    apart = np.sqrt(1e-4 * g.b**2 + 2e-8 * risk / lam)
    assert np.abs(g.function(X) - decompose(near)[0](X)).max() <= apart


@pytest.mark.parametrize("name, peer", [("hinge", SVC), ("absolute", SVR)])
def test_a_free_offset_agrees_with_machines_that_have_one(name, peer):
    """thm-representer-offset against libsvm."""
    X, y, _, _ = data(Loss(name), n=40)
    lam, options = 0.5, {"epsilon": 0.0} if name == "absolute" else {}
    other = peer(C=1 / (2 * lam), gamma=0.5, tol=1e-9, **options).fit(X, y)
    value = other.decision_function(X) if name == "hinge" else other.predict(X)
    f = minimize_risk(Gaussian(1.0), X, y, name, lam, offset=True, tol=1e-10)
    # The certificate leaves √(G/2λ) in f, and libsvm's tolerance more than that.
    assert np.allclose(f(X), value, atol=1e-4)


@every_loss
def test_an_offset_follows_the_data(loss):
    """thm-representer-offset: y + c has the fit f + b + c; constant data need no function."""
    X, y, _, _ = data(loss)
    if loss.name in ON_LABELS:
        flipped, g = (minimize_risk(Laplace(1.0), X, s * y, loss, 0.3, offset=True, tol=1e-10)
                      for s in (-1, 1))
        assert np.allclose(flipped(X), -g(X), atol=1e-3)
        with pytest.raises(ValueError, match="y must have both labels"):
            minimize_risk(Laplace(1.0), X, np.ones(14), loss, 0.3, offset=True)
        return
    g, higher = (minimize_risk(Laplace(1.0), X, y + c, loss, 0.3, offset=True, tol=1e-10)
                 for c in (0.0, 1e3))
    assert np.allclose(higher(X) - 1e3, g(X), atol=1e-3)
    level = minimize_risk(Laplace(1.0), X, np.full(14, 0.1), loss, 0.3, offset=True)
    assert level.b == 0.1 and not level.function.weights.any()


def test_a_shifted_function_is_a_function_and_a_number():
    """thm-representer-offset: values f(t) + b; also after pickling."""
    f = RKHSFunction(Delta(), [1, 2], [0.5, -0.5])
    g = Shifted(f, 3)
    assert np.array_equal(g([1, 2, 9]), [3.5, 2.5, 3.0]) and isinstance(g.b, float)
    for other in (copy.deepcopy(g), pickle.loads(pickle.dumps(g))):
        assert np.array_equal(other([1, 2, 9]), g([1, 2, 9]))
    with pytest.raises(ValueError, match="function must be an RKHSFunction"):
        Shifted(g, 1.0)


@pytest.mark.parametrize("label", [False, True])
@pytest.mark.parametrize("drift", [1e-4, -1e-3])
def test_the_gap_with_an_offset_allows_for_weights_whose_sum_is_not_zero(monkeypatch, label, drift):
    """cor-risk-gap-offset: with Σ c_i γ_i = e ≠ 0 an offset b' changes the bound by b'e, and
    (1 + |b|)|e| covers all |b'| <= 1 + |b|."""
    loss = Loss("squared_hinge" if label else "squared")
    X, y, _, _ = data(loss)
    if not label:
        y = 2 * (y - y.min()) / np.ptp(y) - 1              # the unit is one, the level zero
    a, c = (np.ones(14), y) if label else (y, np.ones(14))
    K, lam, b = Laplace(1.0)(X), 0.3, 0.8
    f = minimize_risk(Laplace(1.0), X, y, loss, lam, offset=True, tol=1e-12)
    gamma = 2 * lam * c * f.function.weights
    gamma[np.argmax(gamma)] += c[np.argmax(gamma)] * drift
    monkeypatch.setattr("rkhs_lit.representer._follow_path", lambda *_: (gamma, b))
    risk = primal(loss, K, c * gamma / (2 * lam), a - b * c, c, lam)
    gap = risk - dual(loss, K, gamma, a - b * c, c, lam)
    wanted = (gap + (1 + b) * abs(c @ gamma)) / risk
    assert np.isclose(abs(c @ gamma), abs(drift))
    minimize_risk(Laplace(1.0), X, y, loss, lam, offset=True, tol=wanted * (1 + 1e-6))
    with pytest.raises(ValueError, match="cannot be reached"):
        minimize_risk(Laplace(1.0), X, y, loss, lam, offset=True, tol=wanted * (1 - 1e-6))


def test_weights_that_do_not_sum_to_zero_bound_nothing():
    """cor-risk-gap-offset: without Σ c_i γ_i = 0 a lower bound is passed by other offsets."""
    X, y, a, c = data(Loss("absolute"))
    K, lam, gamma = Gaussian(1.0)(X), 0.3, np.full(14, 0.9)
    low = dual(Loss("absolute"), K, gamma, a + 50, c, lam)
    zero = primal(Loss("absolute"), K, np.zeros(14), a, c, lam)       # f = 0, b = 50
    assert low > zero


@pytest.mark.parametrize("name, value", [("logistic", 10.179242), ("hinge", 6.904744)])
def test_the_numbers_of_the_programming_exercises(name, value):
    """ex-risk-logistic-newton and ex-risk-coordinates."""
    X = np.linspace(-2, 2, 30)
    y = np.sign(np.sin(3 * X) + np.cos(20 * X) / 2)
    f = minimize_risk(Gaussian(0.5), X, y, name, 0.1, tol=1e-10)
    assert abs(regularised_risk(f, X, y, name, 0.1) - value) < 1e-6


def test_counts_of_a_quantile_fit_with_offset():
    """ex-quantile-count: n_- <= τ n <= n_- + n_0."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, size=61)
    y = np.sin(x) + rng.standard_t(2, size=61)
    for tau in (0.1, 0.5, 0.8):
        f = minimize_risk(Gaussian(1.0), x, y, Loss("quantile", tau), 0.3, offset=True)
        # Residuals that should be zero are so up to the accuracy of the values.
        r = y - f(x)
        assert np.sum(r < -1e-4) <= tau * 61 <= np.sum(r < 1e-4)


# -- The losses -----------------------------------------------------------


@every_loss
def test_losses_have_the_formulas_of_the_table(loss):
    """def-losses."""
    u = np.linspace(-5, 5, 201)
    if loss.name in ON_LABELS:
        for label in (-1.0, 1.0):
            expected = PHI[loss.name](1 - label * u)
            assert np.allclose(loss(np.full(201, label), u), expected, rtol=1e-13, atol=1e-15)
    else:
        for y in (-2.0, 0.0, 3.0):
            expected = PHI[loss.name](y - u)
            assert np.allclose(loss(np.full(201, y), u), expected, rtol=1e-13, atol=1e-15)


def test_the_logistic_loss_is_the_log_likelihood_of_a_coin():
    """def-losses: log(1 + e^-yz), also where e^z overflows."""
    z = np.array([-800.0, -1.0, 0.0, 2.0, 800.0])
    expected = [800.0, np.log1p(np.e), np.log(2), np.log1p(np.exp(-2)), 0.0]
    assert np.allclose(Loss("logistic")(np.ones(5), z), expected, rtol=1e-15)


def test_default_parameters_and_relations_between_losses():
    """def-losses: δ = 1, τ = 1/2; absolute is twice the median loss; Huber tends to squared."""
    assert Loss("huber") == Loss("huber", 1.0) and Loss("quantile") == Loss("quantile", 0.5)
    assert Loss("squared").parameter is None
    y, z = np.random.default_rng(0).normal(size=(2, 50))
    assert np.allclose(2 * Loss("quantile")(y, z), Loss("absolute")(y, z))
    assert np.allclose(Loss("huber", 100)(y, z), Loss("squared")(y, z))
    assert np.allclose(Loss("huber", 1e-9)(y, z) / 2e-9, Loss("absolute")(y, z), atol=1e-8)


@every_loss
def test_conjugates_by_brute_force(loss):
    """lem-loss-conjugates: the highest line of slope γ below φ, on a grid of s."""
    s = np.linspace(-50, 50, 200_001)
    phi = PHI[loss.name](s)
    low, high = np.clip(INTERVAL[loss.name], -3, 3)
    for g in np.linspace(low, high, 9)[1:-1]:
        assert np.isclose(np.max(g * s - phi), conjugate(loss.name, g), atol=1e-6)
    for end, step in zip(INTERVAL[loss.name], (-0.1, 0.1)):
        if np.isfinite(end):           # outside the interval the supremum is infinite
            assert np.max((end + step) * s - phi) > 4.5


# -- The certificate ------------------------------------------------------


@every_loss
@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.6, 4.0]))
@settings(max_examples=12)
def test_the_gap_is_the_risk_minus_the_dual(loss, seed, lam):
    """thm-risk-gap: P(f) - D(γ), for weights inside and outside the interval."""
    X, y, a, c = data(loss, n=7, seed=seed)
    kernel, rng = Laplace(1.0), np.random.default_rng(seed)
    K, weights = kernel(X), c * rng.uniform(-0.5, 1.5, size=7) / lam
    gamma = np.clip(2 * lam * c * weights, *INTERVAL[loss.name])
    gap = duality_gap(RKHSFunction(kernel, X, weights), y, loss, lam)
    expected = primal(loss, K, weights, a, c, lam) - dual(loss, K, gamma, a, c, lam)
    assert np.isclose(gap, expected, rtol=1e-9, atol=1e-12) and gap >= 0


@every_loss
def test_both_sides_of_the_gap_for_functions_outside_the_span(loss):
    """thm-risk-gap: Σ FY + λ‖f - f_γ‖² = P(f) - D(γ) for any f of the space."""
    X, y, a, c = data(loss)
    kernel, lam = Laplace(1.0), 0.4
    for seed in range(5):
        f = wild(kernel, seed=seed)
        gamma = np.random.default_rng(seed).uniform(0.01, 0.7, size=14)
        s = a - c * f(X)
        fy = PHI[loss.name](s) + conjugate(loss.name, gamma) - s * gamma
        assert (fy > -1e-14).all()
        f_gamma = RKHSFunction(kernel, X, c * gamma / (2 * lam))
        left = regularised_risk(f, X, y, loss, lam) - dual(loss, kernel(X), gamma, a, c, lam)
        assert np.isclose(left, fy.sum() + lam * norm(f - f_gamma) ** 2)


@every_loss
@pytest.mark.parametrize("lam", [0.05, 1.0])
def test_the_certificate_bounds_risk_norm_and_predictions(loss, lam):
    """thm-risk-certificate, eq-risk-band, with the optimum known to 1e-13."""
    X, y, _, c = data(loss, n=20)
    kernel = Matern(1.5, 1.0)
    T = 2 * np.random.default_rng(9).normal(size=(50, 2))
    best = minimize_risk(kernel, X, y, loss, lam, tol=1e-12)
    least = regularised_risk(best, X, y, loss, lam)
    low, high = INTERVAL[loss.name]
    for seed in range(6):
        noise = np.random.default_rng(seed).normal(size=20)
        moved = best.weights + 0.3**seed * noise
        for feasible in (True, False):
            w = c * np.clip(2 * lam * c * moved, low, high) / (2 * lam) if feasible else moved
            f = RKHSFunction(kernel, X, w)
            gap = duality_gap(f, y, loss, lam)
            assert gap >= regularised_risk(f, X, y, loss, lam) - least - 1e-9
            share = 2 if feasible else 1
            assert gap >= share * lam * norm(f - best) ** 2 - 1e-9
            band = np.sqrt(kernel.diag(T) * gap / (share * lam))
            assert (np.abs(f(T) - best(T)) <= band + 1e-5).all()


def test_the_gap_of_logistic_regression_is_a_divergence():
    """eq-logistic-gap: Kullback–Leibler between γ and the slope of the loss."""
    X, y, a, c = data(Loss("logistic"))
    lam, gamma = 0.5, np.linspace(0.05, 0.95, 14)
    f = RKHSFunction(Laplace(1.0), X, c * gamma / (2 * lam))
    p = 1 / (1 + np.exp(y * f(X)))
    kl = gamma * np.log(gamma / p) + (1 - gamma) * np.log((1 - gamma) / (1 - p))
    assert np.isclose(duality_gap(f, y, "logistic", lam), kl.sum(), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-4, 1e-8])
def test_a_small_gap_does_not_drown_in_rounding(scale):
    """eq-stable-gap: for the squared loss the gap is ‖y - Kα - λα‖², here far below ε P."""
    X, y, _, _ = data(Loss("squared"))
    K, lam = Laplace(1.0)(X), 0.5
    alpha = np.linalg.solve(K + lam * np.eye(14), y + scale)
    gap = duality_gap(RKHSFunction(Laplace(1.0), X, alpha), y, "squared", lam)
    assert np.isclose(gap, 14 * scale**2, rtol=1e-6, atol=0)


# -- The central path -----------------------------------------------------


@every_loss
@pytest.mark.parametrize("mu", [1.0, 1e-2, 1e-4])
def test_on_the_central_path_every_term_is_at_most_mu(loss, mu):
    """thm-risk-path, cor-risk-strong: the barrier problem solved by coordinate-wise roots."""
    X, y, a, c = data(loss, n=4)
    lam, K = 0.4, Laplace(1.0)(X)
    Q = K * np.outer(c, c) / (2 * lam)
    low, high = INTERVAL[loss.name]

    def slope(g, s):
        value = -s + (1 + np.log(g / (1 - g)) if loss.name == "logistic" else
                      g / 2 if loss.name in ("squared", "huber", "squared_hinge") else 0.0)
        value -= mu / (g - low) if np.isfinite(low) else 0.0
        return value + (mu / (high - g) if np.isfinite(high) else 0.0)

    ends = max(low, -60.0) + 1e-13, min(high, 60.0) - 1e-13
    gamma = np.full(4, 0.5 * (max(low, -1) + min(high, 1)))
    for _ in range(300):                  # Gauss–Seidel on a strictly convex function
        before = gamma.copy()
        for i in range(4):
            rest = a[i] - Q[i] @ gamma + Q[i, i] * gamma[i]
            gamma[i] = brentq(lambda g: slope(g, rest - Q[i, i] * g), *ends, xtol=1e-15)
        if np.abs(gamma - before).max() < 1e-14:
            break
    s = a - Q @ gamma
    assert np.allclose([slope(g, v) for g, v in zip(gamma, s)], 0, atol=1e-5)
    fy = PHI[loss.name](s) + conjugate(loss.name, gamma) - s * gamma
    assert (fy <= mu * (1 + 1e-6)).all()
    f = RKHSFunction(Laplace(1.0), X, c * gamma / (2 * lam))
    assert duality_gap(f, y, loss, lam) <= 4 * mu * (1 + 1e-6)


# -- minimize_risk against other roads ------------------------------------


@every_loss
@given(st.integers(0, 10**6), st.sampled_from([(1e-4, 1e-8), (1e-2, 1e-3), (0.3, 1e-10),
                                               (3.0, 0.3), (1e3, 0.9)]))
@settings(max_examples=10)
def test_every_result_is_certified(loss, seed, lam_and_tol):
    """alg-certified-minimiser: the gap that was asked for, in exact arithmetic."""
    lam, tol = lam_and_tol
    X, y, a, c = data(loss, n=1 + seed % 15, seed=seed)
    X[::3] = X[0]                                   # copies of one point
    kernel = (Gaussian(1.0), Laplace(0.5), Polynomial(2), Linear())[seed % 4]
    f = minimize_risk(kernel, X, y, loss, lam, tol=tol)
    K = kernel(X)
    # Weights at the border of the interval may be off by a rounding error.
    gamma = np.clip(2 * lam * c * f.weights, *INTERVAL[loss.name])
    assert np.allclose(gamma, 2 * lam * c * f.weights, rtol=1e-12, atol=1e-15)
    if loss.name == "logistic":
        value, bound = primal(loss, K, f.weights, a, c, lam), dual(loss, K, gamma, a, c, lam)
        # The difference of two sums of terms of size K/λ carries their rounding errors.
        rounding = 1e-13 * (1 + np.abs(K).max() / lam) * len(y)
        assert value - bound <= (tol + rounding) * value
    else:
        assert exact_gap(loss, K, f.weights, a, c, lam) <= tol
    assert 0 <= duality_gap(f, y, loss, lam) <= tol * regularised_risk(f, X, y, loss, lam) * (
        1 + 1e-6)


def test_rounding_errors_of_the_values_are_part_of_the_certificate():
    """thm-risk-gap: weights of 1e9 leave errors in f(x_i) that FY must not take for zero."""
    loss, lam, accepted = Loss("hinge"), 1e-10, 0
    for seed in range(9):
        X, y, a, c = data(loss, n=20, seed=seed)
        X[::3] = X[0] if seed % 2 else X[::3]
        kernel = (Gaussian(1.0), Polynomial(3), Laplace(1.0))[seed % 3]
        try:
            f = minimize_risk(kernel, X, y, loss, lam)
        except ValueError as error:
            assert str(error).startswith("tol = 1e-08 cannot be reached")
            continue
        accepted += 1
        assert exact_gap(loss, kernel(X), f.weights, a, c, lam) <= 1e-8
    assert accepted > 1


@pytest.mark.parametrize("n", [30, 120])
def test_the_allowance_covers_the_errors_of_the_values(n):
    """thm-risk-gap: for λ → ∞ the squared gap is Σ s², and grows with the allowed error of s."""
    X, kernel = np.random.default_rng(n).normal(size=(n, 2)), Gaussian(1.0)
    f = RKHSFunction(kernel, X, 1e6 * np.random.default_rng(1).choice([-1.0, 1.0], size=n))
    exact = [float(sum(Fraction(v) * Fraction(w) for v, w in zip(row, f.weights.tolist())))
             for row in kernel(X).tolist()]
    allowed = np.finfo(float).eps * np.abs(f.weights).sum()
    assert (np.abs(f(X) - exact) <= allowed).all()
    y = f(X) + 0.5 * f.weights                     # residuals λα: the gap is Σ e²
    assert np.isclose(duality_gap(f, y, "squared", 0.5), n * allowed**2, rtol=0.5, atol=0)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_allowance_looks_to_both_sides(sign):
    """eq-value-rounding: at a corner FY(s ± e, ±1) is 0 on one side and 2e on the other."""
    f = RKHSFunction(Linear(), [1.0], [0.5 * sign])
    gap = duality_gap(f, [0.5 * sign], "absolute", 1.0)
    assert gap == 2 * np.finfo(float).eps * 0.5


@pytest.mark.parametrize("lam", [1e-6, 1e-8])
def test_logistic_regression_with_little_penalty(lam):
    """thm-risk-path: Newton's method without the logarithms runs into the border here."""
    loss = Loss("logistic")
    for seed in (1, 4, 7):
        X, y, a, c = data(loss, n=20, seed=seed)
        f = minimize_risk(Polynomial(3), X, y, loss, lam)
        gamma = 2 * lam * c * f.weights
        # p is the slope of the loss, and by Pinsker KL >= 2(γ - p)².
        p = expit(-y * f(X))
        assert 2 * np.sum((gamma - p) ** 2) <= 1e-8 * regularised_risk(f, X, y, loss, lam)


def test_squared_loss_is_ridge_regression():
    """prop-risk-ridge-svm 1: (K + λI)α = y, and scikit-learn's KernelRidge."""
    X, y, _, _ = data(Loss("squared"), n=40)
    for lam in (1e-3, 0.2, 50.0):
        f = minimize_risk(Gaussian(1.0), X, y, "squared", lam)
        alpha = np.linalg.solve(Gaussian(1.0)(X) + lam * np.eye(40), y)
        # Condition number at most 40/λ = 4e4.
        assert np.allclose(f.weights, alpha, rtol=1e-9, atol=1e-11)
        peer = KernelRidge(alpha=lam, kernel="rbf", gamma=0.5).fit(X, y)
        assert np.allclose(f(X + 0.1), peer.predict(X + 0.1), atol=1e-9)


BOXES = [loss for loss in LOSSES if loss.name != "logistic"]


@pytest.mark.parametrize("loss", BOXES, ids=[loss.name for loss in BOXES])
@pytest.mark.parametrize("lam", [0.05, 0.5, 5.0])
def test_the_dual_solved_as_bounded_least_squares(loss, lam):
    """prop-risk-ridge-svm 2 and its like: min ½‖Aγ - A⁻ᵀa‖² on a box, by SciPy's BVLS."""
    X, y, a, c = data(loss, n=30)
    kernel = Laplace(1.0)
    q = 0.5 if loss.name in ("squared", "huber", "squared_hinge") else 0.0
    Q = kernel(X) * np.outer(c, c) / (2 * lam) + q * np.eye(30)
    A = np.linalg.cholesky(Q).T
    gamma = lsq_linear(A, np.linalg.solve(A.T, a), INTERVAL[loss.name], method="bvls",
                       tol=1e-14, max_iter=1000).x
    f = minimize_risk(kernel, X, y, loss, lam, tol=1e-10)
    assert np.allclose(f.weights, c * gamma / (2 * lam), atol=1e-5 / lam)
    assert np.allclose(f(X), kernel(X) @ (c * gamma / (2 * lam)), atol=1e-5)


@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_logistic_loss_against_general_optimisers(lam):
    """def-losses: scikit-learn on explicit features and SciPy on the weights."""
    X, y, a, c = data(Loss("logistic"), n=25)
    f = minimize_risk(Polynomial(2), X, y, "logistic", lam, tol=1e-12)
    Phi = polynomial_features(X, 2)
    peer = LogisticRegression(C=1 / (2 * lam), fit_intercept=False, tol=1e-12, max_iter=10000)
    assert np.allclose(f(X), Phi @ peer.fit(Phi, y).coef_[0], atol=1e-3)
    result = minimize(lambda w: np.logaddexp(0, -y * (Phi @ w)).sum() + lam * w @ w,
                      np.zeros(6), method="BFGS", options={"gtol": 1e-9})
    assert np.isclose(regularised_risk(f, X, y, "logistic", lam), result.fun, rtol=1e-9)
    assert np.allclose(f(X), Phi @ result.x, atol=1e-5)


@pytest.mark.parametrize("name", ["hinge", "squared_hinge"])
def test_the_support_vector_machine_without_offset(name):
    """prop-risk-ridge-svm 2: scikit-learn's LinearSVC on explicit features, C = 1/2λ."""
    X, y, _, _ = data(Loss(name), n=30)
    lam, Phi = 0.3, polynomial_features(X, 2)
    peer = LinearSVC(C=1 / (2 * lam), loss=name, fit_intercept=False, dual=True, tol=1e-10,
                     max_iter=10**6).fit(Phi, y)
    f = minimize_risk(Polynomial(2), X, y, name, lam)
    assert np.allclose(f(X), Phi @ peer.coef_[0], atol=1e-5)


def test_hinge_weights_are_exactly_zero_or_at_the_bound_where_they_should_be():
    """prop-risk-ridge-svm 2: margin above one means weight 0, below one the weight 1/2λ."""
    X, y, _, _ = data(Loss("hinge"), n=60)
    f = minimize_risk(Gaussian(1.0), X, y, "hinge", 0.25)
    margin = y * f(X)
    zero, full = f.weights == 0, np.isclose(y * f.weights, 2.0, rtol=1e-14)
    assert zero.sum() > 5 and full.sum() > 5
    assert (margin[zero] > 1 - 1e-9).all() and (margin[full] < 1 + 1e-9).all()
    assert np.allclose(margin[~zero & ~full], 1, atol=1e-9)


def test_huber_loss_against_scikit_learn():
    """def-losses: given its scale σ, HuberRegressor has δ = εσ and λ = ασ."""
    X, y, _, _ = data(Loss("huber"), n=50, d=3)
    peer = HuberRegressor(epsilon=1.2, alpha=0.7, fit_intercept=False, tol=1e-9,
                          max_iter=10000).fit(X, y)
    loss = Loss("huber", 1.2 * peer.scale_)
    f = minimize_risk(Linear(), X, y, loss, 0.7 * peer.scale_)
    assert np.allclose(f(X), X @ peer.coef_, atol=1e-5)
    assert 5 < np.sum(np.abs(y - f(X)) > loss.parameter) < 45


@pytest.mark.parametrize("tau", [0.2, 0.5, 0.9])
def test_quantile_loss_against_a_linear_program(tau):
    """def-losses: for small λ the risk tends to that of QuantileRegressor without penalty."""
    X, y, _, _ = data(Loss("quantile"), n=50, d=3)
    w = QuantileRegressor(quantile=tau, alpha=0.0, fit_intercept=False).fit(X, y).coef_
    loss, lam = Loss("quantile", tau), 1e-5
    least = np.sum(loss(y, X @ w))
    f = minimize_risk(Linear(), X, y, loss, lam)
    assert np.sum(loss(y, f(X))) >= least * (1 - 1e-9)
    # P* <= P(w): the loss is at most λ‖w‖² above the program's.
    assert regularised_risk(f, X, y, loss, lam) <= least + lam * w @ w + 1e-8 * least


def fitted(k, y, lam, loss):
    """The weight for one point with k(x, x) = k, exactly; ex-risk-delta."""
    t = {"huber": Fraction(2, 5), "quantile": Fraction(4, 5)}.get(loss.name)

    def clip(value, low, high):
        return max(low, min(high, value))

    if loss.name == "squared":
        return y / (k + lam)
    if loss.name == "absolute":
        return clip(y / k, -1 / (2 * lam), 1 / (2 * lam))
    if loss.name == "huber":
        return clip(y / (k + lam), -t / lam, t / lam)
    if loss.name == "quantile":
        return clip(y / k, (t - 1) / (2 * lam), t / (2 * lam))
    if loss.name == "hinge":
        return y * min(1 / k, 1 / (2 * lam))
    return y / (k + lam)                                       # squared hinge


@pytest.mark.parametrize("loss", BOXES, ids=[loss.name for loss in BOXES])
@given(st.lists(st.fractions(-5, 5, max_denominator=20), min_size=1, max_size=6),
       st.fractions(Fraction(1, 10), 3, max_denominator=10),
       st.fractions(Fraction(1, 10), 3, max_denominator=10))
@settings(max_examples=10)
def test_one_point_at_a_time_in_exact_arithmetic(loss, y, k, lam):
    """ex-risk-delta: for the delta kernel each weight has a closed form."""
    if loss.name in ON_LABELS:
        y = [Fraction(1) if v >= 0 else Fraction(-1) for v in y]
    f = minimize_risk(float(k) * Delta(), list(range(len(y))), np.array(y, dtype=float), loss,
                      float(lam))
    expected = [float(fitted(k, v, lam, loss)) for v in y]
    risk = regularised_risk(f, list(range(len(y))), np.array(y, dtype=float), loss, float(lam))
    # By thm-risk-certificate k Σ(α_i - α_i*)² <= G/2λ with G <= 1e-8 P.
    error = np.sum((f.weights - expected) ** 2)
    assert error <= 1e-8 * risk / (2 * float(lam) * float(k)) + 1e-24


def test_one_point_and_the_logistic_loss():
    """def-losses: 2λα = 1/(1 + e^{kα}), by bisection."""
    for k, lam in ((1.0, 0.5), (30.0, 0.01), (0.01, 5.0)):
        f = minimize_risk(k * Linear(), [1.0], [1.0], "logistic", lam, tol=1e-12)
        alpha = brentq(lambda v: 2 * lam * v - expit(-k * v), 0, 1 / lam, xtol=1e-15)
        assert np.isclose(f.weights[0], alpha, rtol=1e-6)


@every_loss
def test_orthogonal_functions_only_add_to_the_risk(loss):
    """thm-representer: P(f + h) = P(f) + λ‖h‖² for h orthogonal to the span."""
    X, y, _, _ = data(loss, n=25)
    kernel, lam = Laplace(1.0), 0.2
    f = minimize_risk(kernel, X, y, loss, lam)
    risk = regularised_risk(f, X, y, loss, lam)
    for seed in range(10):
        h = wild(kernel, seed=seed)
        h = h - project(h, X)
        more = regularised_risk(f + h, X, y, loss, lam)
        assert np.isclose(more, risk + lam * norm(h) ** 2, rtol=1e-9)
        assert norm(h) > 0.1


@every_loss
def test_no_function_of_the_space_has_a_smaller_risk(loss):
    """thm-risk-gap: neighbours in the span and functions far from it."""
    X, y, _, _ = data(loss, n=15)
    kernel, lam = Gaussian(1.0), 0.2
    f = minimize_risk(kernel, X, y, loss, lam, tol=1e-10)
    risk, rng = regularised_risk(f, X, y, loss, lam), np.random.default_rng(5)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        near = RKHSFunction(kernel, X, f.weights + size * rng.normal(size=15))
        far = f + size * wild(kernel, seed=int(1 / size))
        for g in (near, far):
            assert regularised_risk(g, X, y, loss, lam) >= (
                risk + lam * norm(g - f) ** 2) * (1 - 1e-7)


def test_the_weights_are_prices_of_the_data():
    """ex-risk-prices: the derivative of the least risk by y_i is 2λα_i."""
    X, y, _, _ = data(Loss("huber"))
    loss, lam, h = Loss("huber", DELTA), 0.3, 1e-4

    def least(y):
        f = minimize_risk(Laplace(1.0), X, y, loss, lam, tol=1e-12)
        return regularised_risk(f, X, y, loss, lam)

    f = minimize_risk(Laplace(1.0), X, y, loss, lam, tol=1e-12)
    for i in (0, 5, 9):
        e = h * np.eye(14)[i]
        quotient = (least(y + e) - least(y - e)) / (2 * h)
        assert np.isclose(quotient, 2 * lam * f.weights[i], atol=1e-4)


# -- Scales, singular kernels, other points -------------------------------


@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1e6, 1e150])
def test_units_do_not_matter(scale):
    """def-losses: y and δ in other units give f in other units; absolute with λ/scale."""
    X, y, _, _ = data(Loss("squared"))
    kernel, lam = Laplace(1.0), 0.3
    for loss, other, lam2 in (("squared", "squared", lam), ("absolute", "absolute", lam / scale),
                              (Loss("huber", 0.4), Loss("huber", 0.4 * scale), lam)):
        f = minimize_risk(kernel, X, y, loss, lam)
        g = minimize_risk(kernel, X, scale * y, other, lam2)
        assert np.allclose(g.weights / scale, f.weights, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
@every_loss
def test_the_scale_of_the_kernel_does_not_matter(loss, scale):
    """def-losses: the space of ck has norms divided by √c, so λ goes with c."""
    X, y, _, _ = data(loss)
    f = minimize_risk(Laplace(1.0), X, y, loss, 0.3)
    g = minimize_risk(scale * Laplace(1.0), X, y, loss, 0.3 * scale)
    assert np.allclose(g.weights * scale, f.weights, rtol=1e-6, atol=1e-7)


@every_loss
def test_copies_singular_and_zero_kernels(loss):
    """cor-risk-unique: a copy of a point counts as a second datum; a zero kernel fits 0."""
    X, y, _, _ = data(loss, n=8)
    if loss.name not in ON_LABELS:
        twice = minimize_risk(Gaussian(1.0), np.vstack([X, X]), np.append(y, y), loss, 0.4)
        once = minimize_risk(Gaussian(1.0), X, y, loss, 0.2)
        assert np.allclose(twice(X), once(X), atol=1e-4)
    contradiction = minimize_risk(Gaussian(1.0), [[0.0, 0.0]] * 2, [1.0, -1.0], loss, 0.3)
    if loss.name != "quantile":
        assert abs(contradiction([[0.0, 0.0]])[0]) < 1e-4
    assert norm(minimize_risk(0 * Linear(), X, y, loss, 0.2)) == 0
    one = minimize_risk(Linear(), X[:, :1], y, loss, 0.2)       # rank one
    assert duality_gap(one, y, loss, 0.2) <= 1e-8 * regularised_risk(one, X[:, :1], y, loss, 0.2)


def test_copies_with_contradictory_labels_and_little_penalty():
    """alg-certified-minimiser: Q/H overwhelms the one on the diagonal, and a floor helps."""
    rng = np.random.default_rng(51)
    n, d = int(rng.integers(1, 60)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d))
    X[rng.integers(0, n, size=n // 2)] = X[0]
    y = np.where(X[:, 0] + rng.standard_t(1.2, size=n) > 0, 1.0, -1.0)
    for seed in range(6):
        labels = y * np.where(np.random.default_rng(seed).random(n) < 0.1, -1, 1)
        f = minimize_risk(Polynomial(3), X, labels, "hinge", 1e-6, tol=1e-6)
        assert duality_gap(f, labels, "hinge", 1e-6) <= 1e-6 * regularised_risk(
            f, X, labels, "hinge", 1e-6)


def test_a_wide_huber_loss_is_the_squared_loss_and_a_narrow_one_the_absolute():
    """def-losses: δ → ∞ and δ → 0."""
    X, y, _, _ = data(Loss("squared"))
    kernel = Laplace(1.0)
    for delta in (1e3, 1e100):
        wide = minimize_risk(kernel, X, y, Loss("huber", delta), 0.3)
        assert np.allclose(wide(X), minimize_risk(kernel, X, y, "squared", 0.3)(X), atol=1e-6)
    for delta in (1e-6, 1e-100):
        narrow = minimize_risk(kernel, X, y, Loss("huber", delta), 0.3 * 2 * delta)
        assert np.allclose(narrow(X), minimize_risk(kernel, X, y, "absolute", 0.3)(X),
                           atol=1e-3)


def test_zero_data_have_the_zero_fit():
    """cor-risk-unique: all y equal to zero."""
    for name in ("squared", "absolute", "huber", "quantile"):
        f = minimize_risk(Gaussian(1.0), [1.0, 2.0], [0.0, 0.0], name, 0.1)
        assert norm(f) == 0 == duality_gap(f, [0.0, 0.0], name, 0.1)


def test_points_of_any_kind():
    """thm-representer: the set is arbitrary, here documents."""
    texts = ["a cat and a dog", "a dog barks", "stocks fall", "stocks and bonds"]
    y = [1, 1, -1, -1]
    f = minimize_risk(FeatureKernel(words), texts, y, "hinge", 0.1)
    assert (np.sign(f(["the dog", "bonds fall"])) == [1, -1]).all()
    assert regularised_risk(f, texts, y, "hinge", 0.1) > 0


def test_fits_take_and_keep_a_features():
    """def-synthesis, thm-representer: minimize_risk of Φ is a Φw, with the certificate of Φw."""
    X, y, _, _ = data(Loss("huber"))
    Phi = Features(Laplace(1.0), X)
    f, g = (minimize_risk(Laplace(1.0), points, y, "huber", 0.2) for points in (Phi, X))
    assert np.array_equal(f.weights, g.weights) and f.points is not X
    assert regularised_risk(f, Features(f.kernel, f.features), y, "huber", 0.2) == (
        regularised_risk(g, X, y, "huber", 0.2))


@every_loss
def test_losses_are_values(loss):
    """def-losses: records that can be copied, pickled and printed."""
    for other in (pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss), eval(repr(loss))):
        assert other == loss and hash(other) == hash(loss)


def test_large_data_have_small_units():
    """eq-risk-gap in units of the data: squares of 1e200 are never formed."""
    X, y, _, _ = data(Loss("squared"))
    f = minimize_risk(Laplace(1.0), X, y, "squared", 0.3)
    g = minimize_risk(Laplace(1.0), X, 1e200 * y, "squared", 0.3)
    assert np.allclose(g.weights / 1e200, f.weights, rtol=1e-9)


def test_what_cannot_be_certified_is_refused():
    """alg-certified-minimiser: an error that names tol and what was reached, not an answer;
    with a larger λ the gap is below tol times the risk."""
    x = np.linspace(0, 5, 30)
    with pytest.raises(ValueError, match="tol = 1e-08 cannot be reached.*lam = 1e-14"):
        minimize_risk(Gaussian(1.0), x, np.cos(3 * x), "absolute", 1e-14)
    f = minimize_risk(Gaussian(1.0), x, np.cos(3 * x), "absolute", 1e-3)
    risk = regularised_risk(f, x, np.cos(3 * x), "absolute", 1e-3)
    assert duality_gap(f, np.cos(3 * x), "absolute", 1e-3) <= 2e-8 * risk
    with pytest.raises(ValueError, match="^kernel / lam gave a value that is not finite"):
        minimize_risk(1e200 * Linear(), x, x, "squared", 1e-150)
    assert minimize_risk(1e100 * Linear(), x, x, "squared", 1e100).weights.any()


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_where_the_ends_are_known_the_rest_is_solved_exactly(seed, offset):
    """alg-certified-minimiser, last step: though one digit is asked for, a piecewise
    quadratic loss gives all of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2))
    y = np.sign(X[:, 0] + 0.8 * rng.normal(size=30))
    rough, fine = (minimize_risk(Gaussian(1.0), X, y, "squared_hinge", 0.5, tol=tol,
                                 offset=offset) for tol in (1e-2, 1e-12))
    np.testing.assert_allclose(rough(X), fine(X), rtol=0, atol=1e-12)


def test_a_looser_tolerance_gives_a_larger_gap():
    """alg-certified-minimiser: the search stops when the certificate says so."""
    X, y, _, _ = data(Loss("logistic"), n=40)
    gaps = [duality_gap(minimize_risk(Laplace(1.0), X, y, "logistic", 1e-3, tol=tol), y,
                        "logistic", 1e-3) for tol in (0.5, 1e-6, 1e-13)]
    assert gaps[0] > gaps[1] > gaps[2]


def test_a_result_does_not_change_with_its_data():
    """def-losses: a loss is a value; the data of a fit are copied."""
    X, y, _, _ = data(Loss("squared"))
    f = minimize_risk(Laplace(1.0), X, y, "squared", 0.1)
    before = f([[0.0, 0.0]])[0]
    X[:], y[:] = 9.0, 9.0
    assert f([[0.0, 0.0]])[0] == before
    with pytest.raises(FrozenInstanceError):
        Loss("huber").parameter = 3.0
    assert len({Loss("huber"), Loss("huber", 1), Loss("huber", 2)}) == 2


def test_integer_and_list_input():
    """def-losses: labels may be integers, points lists."""
    f = minimize_risk(Linear(), [1, 2], [1, 3], "squared", 2)
    assert np.allclose(f.weights, np.linalg.solve([[3, 2], [2, 6]], [1, 3]))
    g = minimize_risk(Linear(), [[1], [-2]], [1, -1], Loss("squared_hinge"), 1)
    assert np.isclose(g([[1.0]])[0], 0.5)        # w minimises (1 - w)² + (1 - 2w)₊² + w²


# -- What is refused ------------------------------------------------------


@pytest.mark.parametrize("name, wrong, right", [
    ("huber", 0.0, 1e-9), ("quantile", 1.0, 0.999), ("quantile", 0.0, 0.001)])
def test_a_loss_has_a_convex_phi(name, wrong, right):
    """def-losses: δ > 0, 0 < τ < 1, and no parameter for the others; convex on a grid."""
    with pytest.raises(ValueError, match="^parameter"):
        Loss(name, wrong)
    with pytest.raises(ValueError, match="^parameter must be None"):
        Loss("squared", right)
    values = Loss(name, right)(np.zeros(41), np.linspace(-2, 2, 41))
    assert (np.diff(values, 2) >= -1e-12).all() and (values >= 0).all() and values.any()


@pytest.mark.parametrize("wrong, right", [
    (lambda s, t: 1.0 if s == t else 2.0, lambda s, t: 1.0 if s == t else 0.9),
    (lambda s, t: -1.0 if s == t else 0.0, lambda s, t: 1.0 if s == t else 0.0),
    (lambda s, t: -1e-12 * (s == t), lambda s, t: 1e-12 * (s == t)),
    (lambda s, t: s * t * (s == t == 0) + (s != t), lambda s, t: 1.0 + (s == t)),
])
def test_a_function_that_is_no_kernel_is_refused(wrong, right):
    """thm-representer needs a norm: the risk of an indefinite form may be unbounded below, and
    with a norm it is at most that of 0."""
    x, y = [0.0, 1.0], [1.0, -1.0]
    with pytest.raises(ValueError, match="^kernel must be positive definite"):
        minimize_risk(FunctionKernel(wrong), x, y, "squared", 1.0)
    f = minimize_risk(FunctionKernel(right), x, y, "squared", 1.0)
    assert regularised_risk(f, x, y, "squared", 1.0) <= regularised_risk(0 * f, x, y, "squared", 1.0)


def test_weights_beyond_all_floats_are_refused():
    """def-losses: the weights are of the size of y / λ, for a loss that grows like a square; a
    number that is a float."""
    f = RKHSFunction(Gaussian(1.0), [0.0], [1e160])
    for y, lam in ((1e200, 1e-150), (1e-200, 1e150)):
        for attempt in (lambda: duality_gap(f, [y], "squared", lam),
                        lambda: minimize_risk(Gaussian(1.0), [0.0], [y], "squared", lam)):
            with pytest.raises(ValueError, match="^y / lam must be"):
                attempt()
    for y, lam in ((1e100, 1e-3), (1e-100, 1e50)):
        found = minimize_risk(Gaussian(1.0), [0.0], [y], "squared", lam)
        assert np.isclose(found.weights[0], y / (1 + lam), rtol=1e-9, atol=0)


def test_numbers_that_overflow_are_reported():
    """thm-risk-gap: a gap or a risk that is no float is an error, not infinity."""
    f, g = (RKHSFunction(Gaussian(1.0), [0.0, 1.0], [c, 1.0]) for c in (1e200, 1e100))
    for attempt, size in ((lambda f: duality_gap(f, [1.0, 1.0], "squared", 1.0), 1e200),
                          (lambda f: regularised_risk(f, [0.0], [1.0], "squared", 1.0), 2e200)):
        with pytest.raises(ValueError, match="overflow"):
            attempt(f)
        assert size / 2 < attempt(g) < 10 * size
