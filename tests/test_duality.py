"""Identities of the chapter on duality: Lagrange, Karush, Kuhn and Tucker, Fenchel."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rkhs_lit import Gaussian, Loss, conjugate, solve_qp
from scipy.optimize import minimize_scalar
from scipy.special import expit, xlogy
from sklearn.linear_model import Lasso

INF = np.inf
small_ints = st.integers(-5, 5)


def fractions(rng, *shape, denominator=7):
    whole = rng.integers(-9, 10, size=shape)
    return np.vectorize(lambda k: Fraction(int(k), denominator), otypes=[object])(whole)


def quadratic(rng, n, r):
    """Integer P = FF' of rank at most r, with its factor."""
    F = rng.integers(-2, 3, size=(n, r)).astype(float)
    return F @ F.T, F


# -- convex functions -------------------------------------------------------


def test_the_convexity_of_a_quadratic_is_that_of_its_matrix():
    """lem-duality-rules, part 4, in exact arithmetic."""
    rng = np.random.default_rng(0)
    for theta in (Fraction(1, 3), Fraction(4, 5)):
        P, q, x, y = (fractions(rng, *s) for s in ((4, 4), (4,), (4,), (4,)))
        P = P + P.T

        def f(v, P=P, q=q):
            return v @ P @ v / 2 + q @ v

        left = theta * f(x) + (1 - theta) * f(y) - f(theta * x + (1 - theta) * y)
        assert left == theta * (1 - theta) * (x - y) @ P @ (x - y) / 2


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_a_convex_function_lies_above_its_tangents(seed):
    """lem-duality-tangent, for a sum of quadratic and exponential functions."""
    rng = np.random.default_rng(seed)
    B, a = rng.normal(size=(3, 2)), rng.normal(size=3)
    x, y = rng.normal(size=(2, 3))

    def f(v):
        return np.sum((B.T @ v) ** 2) + np.exp(a @ v)

    slope = 2 * B @ (B.T @ x) + np.exp(a @ x) * a
    assert f(y) >= f(x) + slope @ (y - x) - 1e-9


# -- weak duality, games, saddle points --------------------------------------


@given(st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_the_dual_function_is_concave_and_a_lower_bound_for_any_problem(seed):
    """thm-weak-duality: exactly, for tables of values f0, f1, f2, h on a finite set."""
    rng = np.random.default_rng(seed)
    f0, f1, f2, h = fractions(rng, 4, 12)
    h[:6] = Fraction(0)
    feasible = (f1 <= 0) & (f2 <= 0) & (h == 0)
    p_star = min(f0[feasible], default=None)

    def g(m):
        return min(f0 + m[0] * f1 + m[1] * f2 + m[2] * h)

    a, b = fractions(rng, 2, 3)
    theta = Fraction(2, 5)
    assert g(theta * a + (1 - theta) * b) >= theta * g(a) + (1 - theta) * g(b)
    prices = np.concatenate([np.abs(a[:2]), a[2:]])
    if p_star is not None:
        assert g(prices) <= p_star


def test_a_negative_price_is_no_lower_bound():
    """thm-weak-duality needs nonnegative multipliers: x² subject to x - 1 <= 0."""
    x = np.linspace(-3, 3, 601)
    assert (x**2 - 1.0 * (x - 1)).min() > 0 == (x[x <= 1] ** 2).min()


def test_the_dual_of_the_double_valley():
    """thm-weak-duality: d* = -9/4 at the price 1, and a gap, as in the text."""
    x = np.linspace(-2, 2, 4001)
    f0 = x**4 - 3 * x**2 + x
    best = minimize_scalar(lambda v: -(f0 - v * x).min(), bounds=(0, 3), method="bounded")
    assert np.isclose(best.x, 1, atol=1e-3) and np.isclose(-best.fun, -9 / 4, atol=1e-3)
    assert f0[x >= 0].min() > -1.08


@given(arrays(float, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=small_ints))
def test_whoever_moves_second_is_not_worse_off(table):
    """thm-max-min, for any table."""
    assert table.min(axis=0).max() <= table.max(axis=1).min()


def test_the_supremum_over_prices_is_the_objective_or_infinite():
    """thm-max-min: the primal problem is inf sup of the Lagrangian."""
    x, prices = np.linspace(-2, 2, 401), np.array([0.0, 1.0, 10.0, 1e6])
    L = x[:, None] ** 2 + prices * (1 - x[:, None])
    top = L.max(axis=1)
    assert np.array_equal(top[x >= 1], x[x >= 1] ** 2)
    assert (top[x < 0.99] > 1e3).all()


@pytest.mark.parametrize("seed", range(5))
def test_solution_and_multipliers_are_a_saddle_point(seed):
    """thm-saddle, for a quadratic programme and random opponents."""
    rng = np.random.default_rng(seed)
    n = 6
    P, _ = quadratic(rng, n, 3)
    q, A = rng.normal(size=n), rng.normal(size=(2, n))
    lower, upper = np.zeros(n), np.ones(n)
    b = A @ rng.random(n)
    found = solve_qp(P, q, A, b, lower, upper)

    def L(x, y, z, w):
        return (x @ P @ x / 2 + q @ x + y @ (A @ x - b)
                + z @ (lower - x) + w @ (x - upper))

    best = found.equality, found.at_lower, found.at_upper
    value = L(found.x, *best)
    assert np.isclose(value, found.objective, atol=1e-9)
    for _ in range(100):
        assert L(found.x + rng.normal(size=n), *best) >= value - 1e-9
        other = rng.normal(size=2), *rng.exponential(size=(2, n))
        assert L(found.x, *other) <= value + 1e-9


# -- strong duality and where it fails ----------------------------------------


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_no_gap_under_slater(seed):
    """thm-slater: c'x over a disc, where both sides have closed forms."""
    rng = np.random.default_rng(seed)
    c, radius = rng.normal(size=3), rng.uniform(0.5, 2)
    best = minimize_scalar(lambda t: c @ c / (4 * np.exp(t)) + np.exp(t) * radius**2)
    assert np.isclose(-best.fun, -radius * np.linalg.norm(c), rtol=1e-6)


def test_separation_of_zero_from_a_convex_hull():
    """lem-duality-separation: the closest point separates."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(15, 3)) + [1.5, 0, 1]
    hull = solve_qp(None, np.zeros(15), np.ones(15), 1, lower=0, factor=points)
    a = hull.x @ points
    assert a @ a > 1e-3
    assert (points @ a >= a @ a - 1e-7).all()


def test_a_convex_problem_without_slater_can_have_a_gap():
    """thm-slater is sharp: e^-x subject to x²/y <= 0 has p* = 1 and d* = 0."""
    for price in (0.0, 1.0, 1e3):
        x = 1e3 * (1 + price)
        assert np.exp(-x) + price * x**2 / x**3 < 2e-3


def test_a_convex_problem_without_slater_can_lack_multipliers():
    """thm-kkt, part 3, needs Slater: x subject to x² <= 0 has d* = p* = 0, not attained."""
    x = np.linspace(-2, 2, 400_001)
    for price in (1.0, 10.0, 100.0):
        value = (x + price * x**2).min()
        assert value < 0 and np.isclose(value, -1 / (4 * price), rtol=1e-6)


def test_kkt_points_of_a_problem_that_is_not_convex_need_not_be_minima():
    """thm-kkt, part 2, needs convexity: -x² on [-1, 2]."""
    for x, z, w in ((0, 0, 0), (-1, 2, 0), (2, 0, 4)):
        assert -2 * x - z + w == 0 and z * (x + 1) == 0 and w * (2 - x) == 0
    with pytest.raises(ValueError, match="^P must be positive semidefinite"):
        solve_qp([[-2.0]], [0.0], lower=-1, upper=2)


# -- Fenchel duality --------------------------------------------------------

ON_LABELS = ("hinge", "squared_hinge", "logistic")
# Loss, ends of the interval and q of φ* = q γ²/2; the logistic loss has an entropy.
FENCHEL = [
    (Loss("squared"), -INF, INF, 0.5), (Loss("absolute"), -1, 1, 0), (Loss("huber", 0.5), -1, 1, 0.5),
    (Loss("quantile", 0.75), -0.25, 0.75, 0), (Loss("hinge"), 0, 1, 0),
    (Loss("squared_hinge"), 0, INF, 0.5), (Loss("logistic"), 0, 1, 0),
]
fenchel_losses = pytest.mark.parametrize(
    ("loss", "low", "high", "q"), FENCHEL, ids=[row[0].name for row in FENCHEL])


def phi(loss, s):
    if loss.name in ON_LABELS:
        return loss(np.ones_like(s), 1 - s)
    return loss(s, np.zeros_like(s))


def star(loss, q, g):
    if loss.name == "logistic":
        return g + xlogy(g, g) + xlogy(1 - g, 1 - g)
    return q * g**2 / 2


@fenchel_losses
def test_conjugate_and_biconjugate_on_grids(loss, low, high, q):
    """exm-fenchel-losses, cor-fenchel-biconjugate: φ* from φ, and φ from φ*.

    The maxima lie on the grids and nothing is rounded, except for the logistic
    loss, where a grid of spacing h costs at most h²/32 on the way there; on the
    way back the curvature of the entropy at the three slopes is below 12.
    """
    s = np.arange(-32, 32 + 1 / 64, 1 / 64)
    lines = np.arange(-3, 3.125, 0.125)
    tops = np.array([np.max(g * s - phi(loss, s)) for g in lines])
    inside = (low <= lines) & (lines <= high)
    off = 2.0**-17 if loss.name == "logistic" else 0.0
    assert np.abs(tops - star(loss, q, lines))[inside].max() <= off
    assert (tops[~inside] > 3).all()               # at least 32 times 1/8
    gammas = np.linspace(max(low, -8), min(high, 8), 2**13 + 1)
    for v in (-1.5, 0.25, 2.0):
        back = np.max(v * gammas - star(loss, q, gammas))
        step = gammas[1] - gammas[0]
        assert 0 <= phi(loss, np.array([v]))[0] - back <= (1.5 * step**2 if off else 0)


@fenchel_losses
def test_fenchel_young_is_zero_exactly_at_subgradients(loss, low, high, q):
    """lem-fenchel-young: zero where γ lies between the one-sided slopes at s."""
    s = np.array([-2.0, -0.25, 0.0, 0.25, 1.0, 3.0])
    for g in np.linspace(max(low, -4), min(high, 4), 17):
        fy = phi(loss, s) + star(loss, q, g) - s * g
        left, right = ((phi(loss, s + e) - phi(loss, s)) / e for e in (-1e-7, 1e-7))
        touches = (left - 1e-6 <= g) & (g <= right + 1e-6)
        assert (fy >= -1e-14).all() and (np.abs(fy[touches]) <= 1e-11).all()
        assert (fy[~touches] > 1e-9).all()


def offset_problem(loss, seed=0, n=10):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-2, 2, n))
    y = np.sin(2 * X) + 3 + 0.5 * rng.normal(size=n)
    if loss.name in ON_LABELS:
        y = np.where(np.arange(n) % 3 == 0, -1.0, 1.0)
        return X, y, np.ones(n), y
    return X, y, y, np.ones(n)


@fenchel_losses
def test_the_gap_with_an_offset_is_a_sum_over_points(loss, low, high, q):
    """cor-fenchel-risk, part 2: any f of the span, any b, γ with Σ c_i γ_i = 0."""
    X, y, a, c = offset_problem(loss)
    K, lam, rng = Gaussian(0.8)(X), 0.3, np.random.default_rng(1)
    for _ in range(20):
        weights, b = rng.normal(size=10), rng.normal()
        # Inside of every interval, before and after it is balanced.
        gamma = rng.uniform(0.1, 0.2, size=10)
        if loss.name in ON_LABELS:
            gamma[y > 0] *= gamma[y < 0].sum() / gamma[y > 0].sum()
        else:
            gamma -= gamma.mean()
        s, f_gamma = a - c * (K @ weights + b), c * gamma / (2 * lam)
        P = loss(y, K @ weights + b).sum() + lam * weights @ K @ weights
        D = np.sum(a * gamma - star(loss, q, gamma)) - lam * f_gamma @ K @ f_gamma
        fy = phi(loss, s) + star(loss, q, gamma) - s * gamma
        away = weights - f_gamma
        assert (fy >= -1e-14).all()
        assert np.isclose(P - D, fy.sum() + lam * away @ K @ away, rtol=1e-11)


@fenchel_losses
def test_no_gap_remains_with_an_offset(loss, low, high, q):
    """thm-fenchel-duality, part 4, and thm-fenchel-offset: the multiplier is b."""
    X, y, a, c = offset_problem(loss)
    K, lam, n = Gaussian(0.8)(X), 0.3, 10
    Q = c[:, None] * K * c / (2 * lam)

    def risk(weights, b):
        return loss(y, K @ weights + b).sum() + lam * weights @ K @ weights

    if loss.name == "logistic":                    # smooth: Newton's equations for f and b
        v = np.zeros(n + 1)
        values = np.hstack([K, np.ones((n, 1))])
        for _ in range(30):
            p = expit(-y * (values @ v))           # γ, the slope at the shortfall
            H = values.T * (p * (1 - p)) @ values
            H[:n, :n] += 2 * lam * K
            g = -values.T @ (y * p)
            g[:n] += 2 * lam * K @ v[:n]
            v = v - np.linalg.lstsq(H, g, rcond=None)[0]
        gamma, b = expit(-y * (values @ v)), v[-1]
    else:
        found = solve_qp(Q + q * np.eye(n), -a, c[None], [0.0], low, high)
        gamma, b = found.x, found.equality[0]
    assert abs(gamma @ c) < 1e-8
    D = np.sum(a * gamma - star(loss, q, gamma)) - gamma @ Q @ gamma / 2
    assert np.isclose(risk(c * gamma / (2 * lam), b), D, rtol=1e-7)
    assert risk(c * gamma / (2 * lam), b + 0.3) > D + 1e-3


def test_one_label_leaves_no_minimiser_to_the_logistic_loss():
    """cor-fenchel-risk: γ = 0 is at the edge, there is no gap, and no best b."""
    ones, logistic = np.ones(4), Loss("logistic")
    risks = [logistic(ones, b * ones).sum() for b in (0.0, 10.0, 100.0, 500.0)]
    assert np.all(np.diff(risks) < 0) and 0 < risks[-1] < 1e-200
    assert Loss("hinge")(ones, ones).sum() == 0    # f = 0, b = 1


def test_a_loss_without_room_to_spare_keeps_a_gap():
    """thm-fenchel-duality, part 4: exp(-√(s₁s₂)) on the edge s₁ = 0."""
    def F(s1, s2):
        return np.exp(-np.sqrt(s1 * s2))

    u, v = np.random.default_rng(0).exponential(3, size=(2, 2, 2000))
    assert (F(*(u + v) / 2) <= (F(*u) + F(*v)) / 2 + 1e-12).all()
    assert (F(0.0, np.arange(5.0)) == 1).all()     # P(b) = 1
    m = np.logspace(1, 6, 6)
    bounds = -1 / m - F(1 / m, m**3)               # F*(-1, 0) is at least these
    assert np.all(np.diff(bounds) > 0) and -2e-6 < bounds[-1] < 0


@pytest.mark.parametrize("mu", [0.5, 3.0, 100.0])
def test_the_dual_of_the_lasso(mu):
    """ex-fenchel-rockafellar: a projection on a polyhedron; its multipliers are x."""
    rng = np.random.default_rng(0)
    A, a = rng.normal(size=(12, 4)), rng.normal(size=12)
    found = solve_qp(np.diag([0.5] * 12 + [0.0] * 4), np.append(-a, np.zeros(4)),
                     np.hstack([A.T, -np.eye(4)]), np.zeros(4),
                     lower=[-INF] * 12 + [-mu] * 4, upper=[INF] * 12 + [mu] * 4)
    x = found.equality
    rest = a - A @ x
    assert np.isclose(rest @ rest + mu * np.abs(x).sum(), -found.objective, rtol=1e-7)
    peer = Lasso(alpha=mu / 24, fit_intercept=False, tol=1e-12).fit(A, a)
    assert np.allclose(peer.coef_, x, atol=1e-6)

@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_the_conjugate_of_finitely_many_values_is_their_largest_line(seed):
    """def-fenchel-conjugate, lem-fenchel-young: brute force in two dimensions; F** <= F, with
    equality where a slope among those given is a subgradient."""
    rng = np.random.default_rng(seed)
    S, F = rng.normal(size=(9, 2)), rng.normal(size=9)
    F[3] = INF
    G = rng.normal(size=(7, 2))
    star = conjugate(S, F, G)
    for g, top in zip(G, star, strict=True):
        # Two products and a difference: a processor may round each of them otherwise.
        wanted = max(g @ s - v for s, v in zip(S, F, strict=True))
        assert abs(top - wanted) <= 8 * np.finfo(float).eps * (np.abs(g) @ np.abs(S).max(0) + 10)
    back = conjugate(G, star, S)
    assert (back <= F + 1e-12).all()
    touched = [np.argmax(G[j] @ S.T - F) for j in range(7)]
    assert np.allclose(back[touched], F[touched])


def test_the_conjugate_of_half_a_square_and_of_an_indicator():
    """lem-fenchel-young, part 5, and exm-fenchel-losses, "only zero": closed forms."""
    s = np.arange(-64, 65) / 8
    slopes = np.array([-2.0, 0.125, 3.0])
    assert np.array_equal(conjugate(s, s**2 / 2, slopes), slopes**2 / 2)
    only = np.where(s == 0, 0.0, INF)
    assert np.array_equal(conjugate(s, only, slopes), np.zeros(3))
    for bad in (np.full(129, INF), s[1:], np.append(s, 9.0), s[:, None],
                np.where(s == 0, -INF, 0), np.where(s == 0, np.nan, 0)):
        with pytest.raises(ValueError, match="^values must"):
            conjugate(s, bad, slopes)
    with pytest.raises(ValueError, match="^slopes must"):
        conjugate(s, s**2, np.ones((2, 2)))
    with pytest.raises(ValueError, match="^slopes must have 2 coordinates"):
        conjugate(np.ones((3, 2)), np.ones(3), slopes)
