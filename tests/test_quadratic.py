"""Quadratic programmes: their three answers, the proofs, and the solver."""

from dataclasses import FrozenInstanceError
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rkhs_lit import Gaussian, QPSolution, solve_qp
from scipy.optimize import brentq, linprog, minimize
from sklearn.svm import SVC

INF = np.inf


def fractions(rng, *shape, denominator=7):
    whole = rng.integers(-9, 10, size=shape)
    return np.vectorize(lambda k: Fraction(int(k), denominator), otypes=[object])(whole)


def quadratic(rng, n, r):
    """Integer P = FF' of rank at most r, with its factor."""
    F = rng.integers(-2, 3, size=(n, r)).astype(float)
    return F @ F.T, F


def mixed_bounds(rng, n):
    lower = np.where(rng.random(n) < 0.3, -INF, rng.integers(-3, 1, n))
    upper = np.where(rng.random(n) < 0.4, INF, np.maximum(lower, -4) + rng.integers(0, 4, n))
    return lower, upper


def finite_sum(z, bound):
    return z @ np.where(z > 0, bound, 0.0)


def assert_kkt(found, P, q, A, b, lower, upper, tol=1e-7):
    """All of the KKT conditions, from the definition and in natural units."""
    x, y, z, w = found.x, found.equality, found.at_lower, found.at_upper
    assert found.status == "optimal"
    assert (z >= 0).all() and (w >= 0).all()
    assert not z[np.isinf(lower)].any() and not w[np.isinf(upper)].any()
    assert (lower <= x).all() and (x <= upper).all()
    size = 1 + max(np.abs(P @ x).max(), np.abs(q).max())
    left = P @ x + q - z + w + (A.T @ y if len(A) else 0)
    assert np.abs(left).max() <= tol * size
    assert len(A) == 0 or np.abs(A @ x - b).max() <= tol * (1 + np.abs(x).max())
    slack = np.concatenate([(x - lower)[z > 0] * z[z > 0], (upper - x)[w > 0] * w[w > 0]])
    assert np.abs(slack).max(initial=0) <= tol * size * (1 + np.abs(x).max())


# -- the dual of a quadratic programme ----------------------------------------


def test_the_gap_identity_in_exact_arithmetic():
    """prop-qp-dual, second part."""
    rng = np.random.default_rng(2)
    for _ in range(5):
        B, A = fractions(rng, 4, 4), fractions(rng, 2, 4)
        q, x, lower, upper, z, w = fractions(rng, 6, 4)
        b, y = fractions(rng, 2, 2)
        P = B @ B.T
        r = q + A.T @ y - z + w
        primal = x @ P @ x / 2 + q @ x
        dual = -x @ P @ x / 2 - b @ y + lower @ z - upper @ w
        right = ((x - lower) @ z + (upper - x) @ w + (P @ x + r) @ x + (b - A @ x) @ y)
        assert primal - dual == right


def test_the_dual_function_of_a_quadratic_programme():
    """prop-qp-dual, first part: the minimum of the Lagrangian, or minus infinity."""
    rng = np.random.default_rng(3)
    F = rng.normal(size=(4, 2))
    P = F @ F.T
    w = rng.normal(size=4)
    r = -P @ w
    value = minimize(lambda x: x @ P @ x / 2 + r @ x, np.zeros(4), jac=lambda x: P @ x + r).fun
    assert np.isclose(value, -w @ P @ w / 2, atol=1e-8)
    null = np.linalg.svd(P)[0][:, -1]
    outside = r + null                       # not in the range of P
    far = -1e6 * null
    assert far @ P @ far / 2 + outside @ far < -1e5


@pytest.mark.parametrize("seed", range(8))
def test_the_reported_gap_is_primal_less_dual(seed):
    """prop-qp-dual: with w = x, and both objectives from their definitions."""
    rng = np.random.default_rng(seed)
    n = 8
    P, _ = quadratic(rng, n, 4)
    q, A = rng.normal(size=n), rng.normal(size=(2, n))
    lower, upper = -rng.random(n), rng.random(n)
    b = A @ (lower + (upper - lower) * rng.random(n))
    found = solve_qp(P, q, A, b, lower, upper)
    x = found.x
    assert np.isclose(found.objective, x @ P @ x / 2 + q @ x, rtol=1e-12)
    dual = (-x @ P @ x / 2 - b @ found.equality + lower @ found.at_lower
            - upper @ found.at_upper)
    # Both objectives are of the order of ten: rounding is about 1e-14.
    assert abs(found.objective - dual - found.gap) < 1e-12
    assert -1e-12 < found.gap < 1e-11
    assert_kkt(found, P, q, A, b, lower, upper, tol=1e-9)


def test_the_gap_bounds_the_error_of_x():
    """cor-qp-error: for perturbed feasible points with repaired multipliers."""
    rng = np.random.default_rng(4)
    n = 6
    F = rng.normal(size=(n, n))
    P, q = F @ F.T, rng.normal(size=n)
    lower, upper = np.zeros(n), np.ones(n)
    best = solve_qp(P, q, lower=lower, upper=upper)
    for scale in (1e-1, 1e-3):
        x = np.clip(best.x + scale * rng.normal(size=n), lower, upper)
        r = P @ x + q
        gap = np.maximum(r, 0) @ (x - lower) + np.maximum(-r, 0) @ (upper - x)
        d = x - best.x
        excess = x @ P @ x / 2 + q @ x - best.objective
        assert d @ P @ d / 2 <= excess + 1e-12 <= gap + 2e-12


@pytest.mark.parametrize("seed", range(6))
def test_residuals_in_the_record_are_those_of_its_numbers(seed):
    """eq-qp-kkt: each field of the certificate from its definition."""
    rng = np.random.default_rng(seed)
    n = 7
    P, _ = quadratic(rng, n, 3)
    q, A = rng.integers(-3, 4, n).astype(float), rng.integers(-2, 3, (2, n)).astype(float)
    lower, upper = mixed_bounds(rng, n)
    b = A @ np.clip(rng.normal(size=n), lower, upper)
    found = solve_qp(P + np.eye(n), q, A, b, lower, upper)
    x, z, w = found.x, found.at_lower, found.at_upper
    left = (P + np.eye(n)) @ x + q + A.T @ found.equality - z + w
    assert np.isclose(found.stationarity, np.abs(left).max(), atol=1e-13)
    assert np.isclose(found.primal_residual, np.abs(A @ x - b).max(), atol=1e-13)
    products = np.concatenate([(x - lower)[z > 0] * z[z > 0], (upper - x)[w > 0] * w[w > 0]])
    assert np.isclose(found.complementarity, products.max(initial=0), atol=1e-13)
    assert found.direction is None and found.margin == 0
    assert 0 < found.iterations < 60


def test_the_gap_is_the_objective_less_that_of_the_dual():
    """prop-qp-dual: the sum that is reported, from the numbers of the record."""
    rng = np.random.default_rng(8)
    n = 5
    P, _ = quadratic(rng, n, 2)
    lower, upper = np.array([-1.0, -1, -INF, -1, -INF]), np.array([1.0, INF, 1, 1, INF])
    for _ in range(10):
        q, A, C = rng.normal(size=n), rng.normal(size=(2, n)), rng.normal(size=(3, n))
        x = rng.uniform(-1, 1, n)
        b, c = A @ x, C @ x + rng.random(3)
        found = solve_qp(P + np.eye(n), q, A, b, lower, upper, C=C, c=c)
        x, z, w = found.x, found.at_lower, found.at_upper
        dual = (-x @ (P + np.eye(n)) @ x / 2 - b @ found.equality - c @ found.inequality
                + finite_sum(z, lower) - finite_sum(w, upper))
        assert np.isclose(found.gap, found.objective - dual, atol=1e-12)


# -- three answers ------------------------------------------------------------


def exact_solve(M, rhs):
    n = len(M)
    T = [list(row) + [r] for row, r in zip(M, rhs, strict=True)]
    for k in range(n):
        pivot = next((i for i in range(k, n) if T[i][k] != 0), None)
        if pivot is None:
            return None
        T[k], T[pivot] = T[pivot], T[k]
        T[k] = [v / T[k][k] for v in T[k]]
        for i in range(n):
            if i != k:
                T[i] = [v - T[i][k] * w for v, w in zip(T[i], T[k], strict=True)]
    return np.array([row[-1] for row in T])


def by_enumeration(P, q, A, b, lower, upper):
    """The value of a programme with positive definite P, in exact fractions."""
    n, p = len(q), len(b)
    for guess in product((-1, 0, 1), repeat=n):
        g = np.array(guess)
        if any(g[i] < 0 and lower[i] is None or g[i] > 0 and upper[i] is None for i in range(n)):
            continue
        x = np.array([Fraction(0) if s == 0 else (lower[i] if s < 0 else upper[i])
                      for i, s in enumerate(guess)])
        inner = np.flatnonzero(g == 0)
        M = np.block([[P[np.ix_(inner, inner)], A[:, inner].T],
                      [A[:, inner], np.full((p, p), Fraction(0))]])
        found = exact_solve(M, np.concatenate([-(q + P @ x)[inner], b - A @ x]))
        if found is None:
            continue
        x[inner] = found[:len(inner)]
        r = P @ x + q + A.T @ found[len(inner):]
        inside = all((lower[i] is None or lower[i] <= x[i])
                     and (upper[i] is None or x[i] <= upper[i]) for i in range(n))
        if inside and (r * (g <= 0) >= 0).all() and (r * (g >= 0) <= 0).all():
            return x, x @ P @ x / 2 + q @ x
    return None


@pytest.mark.parametrize("seed", range(12))
def test_against_all_subsets_of_the_bounds_in_exact_fractions(seed):
    """thm-qp-trichotomy, part 3."""
    rng = np.random.default_rng(seed)
    n, p = 4, seed % 2
    B = fractions(rng, n, n, denominator=3)
    P = B @ B.T + np.diag([Fraction(1, 2)] * n)
    q, A = 3 * fractions(rng, n, denominator=2), fractions(rng, p, n)
    lower = [None if rng.random() < 0.3 else Fraction(-1) for _ in range(n)]
    upper = [None if rng.random() < 0.3 else Fraction(1, 3) for _ in range(n)]
    b = A @ np.array([Fraction(1, 5)] * n)
    exact, value = by_enumeration(P, q, A, b, lower, upper)
    found = solve_qp(P.astype(float), q.astype(float),
                     A.astype(float) if p else None, b.astype(float) if p else None,
                     [-INF if v is None else float(v) for v in lower],
                     [INF if v is None else float(v) for v in upper])
    # P is at least 1/2, so the error of x is at most 2 sqrt(gap): cor-qp-error.
    assert np.allclose(found.x, exact.astype(float), atol=1e-6)
    assert np.isclose(found.objective, float(value), rtol=1e-9, atol=1e-9)


def answer_by_linear_programmes(P, q, A, b, lower, upper):
    """The status, from two linear programmes that HiGHS solves."""
    n = len(q)
    bounds = np.column_stack([lower, upper])
    A_eq, b_eq = (A, b) if len(A) else (None, None)
    if linprog(np.zeros(n), A_eq=A_eq, b_eq=b_eq, bounds=bounds).status == 2:
        return "infeasible"
    cone = np.column_stack([np.where(np.isinf(lower), -1, 0), np.where(np.isinf(upper), 1, 0)])
    rows = np.vstack([P, A]) if len(A) else P
    ray = linprog(q, A_eq=rows, b_eq=np.zeros(len(rows)), bounds=cone)
    return "unbounded" if ray.fun < -1e-9 else "optimal"


@pytest.mark.parametrize("seed", range(90))
def test_status_and_certificate_of_programmes_of_all_kinds(seed):
    """thm-qp-trichotomy and prop-qp-projection, with a matrix and with a factor."""
    rng = np.random.default_rng(seed)
    n, p = rng.integers(1, 7), rng.integers(0, 4)
    P, F = quadratic(rng, n, 1 + seed % 3)
    if seed % 3 == 0:
        P, F = 0 * P, 0 * F
    q, A = rng.integers(-2, 3, n).astype(float), rng.integers(-2, 3, (p, n)).astype(float)
    lower, upper = mixed_bounds(rng, n)
    b = A @ np.clip(rng.integers(-2, 3, n), lower, upper)
    if seed % 5 == 0:
        b = b + rng.integers(0, 2, p)
    want = answer_by_linear_programmes(P, q, A, b, lower, upper)
    values = []
    for matrix, factor in ((P, None), (None, F)):
        found = solve_qp(matrix, q, A if p else None, b if p else None, lower, upper,
                         factor=factor)
        assert found.status == want
        values.append(found.objective)
        y, z, w, d = found.equality, found.at_lower, found.at_upper, found.direction
        if want == "optimal":
            assert_kkt(found, P, q, A, b, lower, upper)
        elif want == "infeasible":
            assert found.objective == found.gap == INF and d is None
            left = (A.T @ y if p else 0) - z + w
            assert (z >= 0).all() and (w >= 0).all() and np.abs(left).max() < 1e-8
            assert np.isclose(np.abs(left).max(), found.stationarity, atol=1e-12)
            margin = finite_sum(z, lower) - finite_sum(w, upper) - b @ y
            assert margin > 0 and np.isclose(margin, found.margin)
        else:
            assert found.objective == -INF and found.gap == INF
            assert np.abs(P @ d).max() < 1e-8 and np.abs(A @ d).max(initial=0) < 1e-8
            assert (d[np.isfinite(lower)] >= 0).all() and (d[np.isfinite(upper)] <= 0).all()
            assert np.isclose(-q @ d, found.margin) and found.margin > 0
            assert np.abs(A @ found.x - b).max(initial=0) < 1e-8
            assert (lower <= found.x).all() and (found.x <= upper).all()
            assert not y.any() and not z.any() and not w.any()
    assert values[0] == values[1] or np.isclose(*values, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("seed", range(15))
def test_linear_programmes_against_highs(seed):
    """thm-qp-trichotomy with P = 0."""
    rng = np.random.default_rng(seed)
    n, p = 12, 4
    q, A = rng.normal(size=n), rng.normal(size=(p, n))
    b = A @ rng.random(n)
    upper = np.where(rng.random(n) < 0.5, 1.0, 3.0)
    found = solve_qp(np.zeros((n, n)), q, A, b, 0, upper)
    other = linprog(q, A_eq=A, b_eq=b, bounds=np.column_stack([np.zeros(n), upper]))
    assert np.isclose(found.objective, other.fun, rtol=1e-9)
    # Generic linear programmes have one dual solution; HiGHS has the other sign.
    assert np.allclose(found.equality, -other.eqlin.marginals, atol=1e-6)
    assert np.allclose(found.at_lower, other.lower.marginals, atol=1e-6)
    assert np.allclose(found.at_upper, -other.upper.marginals, atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_small_programmes_against_slsqp(seed):
    """thm-qp-trichotomy: a method that knows nothing of duality."""
    rng = np.random.default_rng(seed)
    n = 8
    F = rng.normal(size=(n, n))
    P, q, A = F @ F.T, rng.normal(size=n), rng.normal(size=(2, n))
    b = A @ rng.random(n)
    found = solve_qp(P, q, A, b, 0, 1)
    other = minimize(
        lambda x: x @ P @ x / 2 + q @ x, np.full(n, 0.5), method="SLSQP", bounds=[(0, 1)] * n,
        jac=lambda x: P @ x + q, options={"ftol": 1e-13, "maxiter": 1000},
        constraints={"type": "eq", "fun": lambda x: A @ x - b, "jac": lambda x: A})
    assert other.success
    assert np.isclose(found.objective, other.fun, rtol=1e-6, atol=1e-8)
    assert np.allclose(found.x, other.x, atol=1e-4)


def test_farkas_in_exact_numbers():
    """lem-farkas: x >= 0 with x + y = -1 has the combination 1·(x + y) as a contradiction."""
    found = solve_qp(np.eye(2), [0, 0], [[1.0, 1.0]], [-1.0], lower=0)
    assert found.status == "infeasible"
    assert found.equality[0] > 0
    assert np.allclose(found.at_lower, found.equality[0])
    assert np.isclose(found.margin, found.equality[0])


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_the_shortfall_is_the_distance_to_what_the_box_can_give(seed):
    """prop-qp-projection, part 1: for one equation the shortfall has a closed form."""
    rng = np.random.default_rng(seed)
    a, upper = rng.normal(size=5), rng.random(5) + 0.1
    reach = np.maximum(a, 0) @ upper
    found = solve_qp(np.eye(5), np.zeros(5), a, reach + 0.5, 0, upper)
    assert found.status == "infeasible"
    assert np.isclose(found.primal_residual, 0.5, rtol=1e-5)
    assert np.isclose(found.margin, 0.5 * abs(found.equality[0]), rtol=1e-5)


def test_the_direction_is_the_projection_of_steepest_descent():
    """prop-qp-projection, part 2: for x >= 0 and P = 0 it is the positive part of -q."""
    q = np.array([1.0, -2.0, -1.0, 0.5])
    found = solve_qp(np.zeros((4, 4)), q, lower=0)
    want = np.maximum(-q, 0)
    assert found.status == "unbounded"
    assert np.allclose(found.direction, want / want.max(), atol=1e-7)
    free = solve_qp(np.diag([1.0, 0, 0, 0]), q)
    assert np.allclose(free.direction, [0, 1, 0.5, -0.25], atol=1e-9)


# -- shadow prices, the path, the step -----------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_multipliers_bound_the_optimum_of_changed_programmes(seed):
    """prop-shadow-price, with changes of right sides and bounds."""
    rng = np.random.default_rng(seed)
    n = 6
    P, _ = quadratic(rng, n, 3)
    q, A = rng.normal(size=n), rng.normal(size=(2, n))
    b, lower, upper = A @ np.full(n, 0.4), np.zeros(n), np.ones(n)
    found = solve_qp(P, q, A, b, lower, upper)
    for size in (1e-3, 0.1):
        db, dl, du = (size * rng.normal(size=k) for k in (2, n, n))
        other = solve_qp(P, q, A, b + db, lower + dl, upper + du)
        bound = (found.objective - found.equality @ db + found.at_lower @ dl
                 - found.at_upper @ du)
        assert other.objective >= bound - 1e-9


def test_the_price_is_the_slope_of_the_optimum():
    """prop-shadow-price: difference quotients of the three stations of the text."""
    P, q, upper = np.diag([0.2, 0.1, 0.1]), np.array([10.0, 20, 40]), np.array([40.0, 60, 80])

    def value(demand, upper=upper):
        return solve_qp(P, q, np.ones(3), demand, 0, upper).objective

    found = solve_qp(P, q, np.ones(3), 90, 0, upper)
    assert np.isclose(found.objective, 1685) and np.allclose(found.x, [40, 50, 0], atol=1e-6)
    slope = (value(90.01) - value(89.99)) / 0.02
    assert np.isclose(slope, -found.equality[0], rtol=1e-6) and np.isclose(slope, 25, rtol=1e-6)
    more = (value(90, upper + [0.01, 0, 0]) - value(90, upper - [0.01, 0, 0])) / 0.02
    assert np.isclose(more, -found.at_upper[0], rtol=1e-6) and np.isclose(more, -7, rtol=1e-6)


@given(st.floats(0.01, 10), st.floats(-5, 5), st.floats(1e-4, 10))
@settings(max_examples=40, deadline=None)
def test_the_gap_on_the_central_path(curvature, slope, mu):
    """thm-qp-path: on [0, 1] the path is a root, and the gap is 2 mu."""
    x = brentq(lambda v: curvature * v + slope - mu / v + mu / (1 - v), 1e-12, 1 - 1e-12,
               xtol=1e-15)
    z, w = mu / x, mu / (1 - x)
    primal, dual = curvature * x**2 / 2 + slope * x, -curvature * x**2 / 2 - w
    # The root is known to 1e-15, relative to its distance from the ends.
    assert np.isclose(primal - dual, 2 * mu, rtol=1e-6, atol=1e-8)
    assert np.isclose(curvature * x + slope - z + w, 0, atol=1e-4 * (z + w))
    best = solve_qp([[curvature]], [slope], lower=0, upper=1).objective
    assert best - 1e-9 <= primal <= best + 2 * mu + 1e-9


@pytest.mark.parametrize("rank", [20, 150])
@pytest.mark.parametrize("free", [False, True])
def test_the_step_leads_to_one_answer_in_blocks_of_all_kinds(rank, free):
    """prop-qp-step: with P and with a factor, with and without bounds."""
    rng = np.random.default_rng(5)
    n = 150
    F, q, A = rng.normal(size=(n, rank)), rng.normal(size=n), rng.normal(size=(2, n))
    lower, upper = np.full(n, -1.0), np.full(n, 1.0)
    if free:
        lower[0], upper[0], F[0, 0] = -INF, INF, 3.0
    b = A @ rng.uniform(-0.5, 0.5, n)
    one = solve_qp(F @ F.T, q, A, b, lower, upper)
    other = solve_qp(None, q, A, b, lower, upper, factor=F)
    assert one.status == other.status == "optimal"
    assert np.isclose(one.objective, other.objective, rtol=1e-12)
    assert max(one.gap, other.gap) < 1e-12 * abs(one.objective)
    assert np.allclose(F.T @ one.x, F.T @ other.x, atol=1e-9)


def test_two_identities_of_the_homogeneous_model():
    """lem-qp-embedding, in exact arithmetic: the second with a solution made on purpose."""
    rng = np.random.default_rng(12)
    for tau_star in (Fraction(2, 3), Fraction(0)):
        n, p, N = 4, 2, 3
        B, A, E = fractions(rng, n, 2), fractions(rng, p, n), fractions(rng, n, N)
        x_star = fractions(rng, n)
        if tau_star == 0:
            B = B - np.outer(x_star, x_star @ B) / (x_star @ x_star)     # P x* = 0
        P = B @ B.T
        y_star, z_star = fractions(rng, p), np.abs(fractions(rng, N))
        s_star, kappa_star = np.abs(fractions(rng, N)), Fraction(1, 4)
        # q, b, e and an offset of each line that make v* a solution: the residuals are
        # affine in the offsets, which cancel like q, b and e.
        q, b, e = fractions(rng, n), fractions(rng, p), fractions(rng, N)

        def lines(x, y, z, tau, s, kappa, P=P, A=A, E=E, q=q, b=b, e=e):
            curve = x @ P @ x / tau if tau else Fraction(0)
            return (P @ x + A.T @ y - E @ z + tau * q, A @ x - tau * b,
                    E.T @ x - tau * e - s, q @ x + b @ y - e @ z + curve + kappa)

        def paired(v, rho):
            x, y, z, tau, _, _ = v
            return -x @ rho[0] + y @ rho[1] - z @ rho[2] + tau * rho[3]

        v = (fractions(rng, n), fractions(rng, p), fractions(rng, N), Fraction(3, 5),
             fractions(rng, N), Fraction(2, 7))
        star = x_star, y_star, z_star, tau_star, s_star, kappa_star
        x, _, z, tau, s, kappa = v
        assert s @ z + tau * kappa == paired(v, lines(*v))
        left = s @ z_star + z @ s_star + tau * kappa_star + kappa * tau_star
        # With v* no solution, its own residuals come in; eq-qp-embedding-monotone has zero.
        both = paired(star, lines(*v)) + paired(v, lines(*star))
        square = ((tau_star * x - tau * x_star) @ P @ (tau_star * x - tau * x_star)
                  / (tau * tau_star) if tau_star else Fraction(0))
        assert both == left + square


def test_the_model_ends_with_one_of_three_answers():
    """thm-qp-embedding: a solution, a proof that there is no point, or a direction."""
    for b, q, answer in ((1.0, [1, 1], "optimal"), (3.0, [1, 1], "infeasible"),
                         (1.0, [1, -1], "unbounded")):
        found = solve_qp(np.zeros((2, 2)), q, [1, 0], b, 0, [2, INF])
        assert found.status == answer and (found.margin > 0) == (answer != "optimal")
        if answer == "optimal":
            assert np.array_equal(found.x, [1, 0]) and found.gap == 0
        if answer == "infeasible":
            y, z, w = found.equality, found.at_lower, found.at_upper
            assert np.array_equal([y[0], 0] - z + w, [0, 0])
            # Two products and their sum, which a processor may round in one step.
            assert np.isclose(found.margin, -2 * w[0] - 3 * y[0], rtol=1e-15, atol=0)
        if answer == "unbounded":
            assert np.array_equal(found.direction, [0, 1])


@pytest.mark.parametrize(("lower", "upper"), [(0.0, INF), (-INF, 1.0), (0.0, 1.0)])
def test_the_path_for_one_sided_and_two_sided_bounds(lower, upper):
    """thm-qp-path: x²/2 - q x, with N mu as the gap."""
    for mu in (1.0, 1e-3):
        for q in (-1.5, 0.4, 2.0):
            sides = [(sign, edge) for sign, edge in ((1.0, lower), (-1.0, -upper))
                     if np.isfinite(edge)]

            def slope(v, q=q, mu=mu, sides=sides):
                return v - q - sum(sign * mu / (sign * v - edge) for sign, edge in sides)

            inside = (max(lower, -50.0) + 1e-9, min(upper, 50.0) - 1e-9)
            x = brentq(slope, *inside, xtol=1e-14)
            primal, dual = x * x / 2 - q * x, -x * x / 2
            for sign, edge in sides:
                dual += edge * mu / (sign * x - edge)
            assert np.isclose(primal - dual, len(sides) * mu, rtol=1e-5)


def test_without_strict_multipliers_there_is_no_path():
    """thm-qp-path, second condition: 0 over x >= 0 has solutions, and no path."""
    x = np.logspace(-3, 6, 200)
    assert (np.diff(-np.log(x)) < 0).all()             # the barrier has no minimum
    assert solve_qp([[0.0]], [0.0], lower=0).status == "optimal"


# -- hard cases ------------------------------------------------------------------


def test_the_corrector_does_not_run_in_circles():
    """alg-qp: the programme of the text on which the whole correction has a cycle."""
    found = solve_qp([[1, -1, -1], [-1, 3, 1], [-1, 1, 1]], [-2, -1, 1],
                     [[2, 2, -2], [-1, 2, -1]], [-8, -3], [-2, -INF, 1], [-1, 0, INF])
    exact, value = by_enumeration(
        *(np.vectorize(Fraction)(v) for v in (
            [[1, -1, -1], [-1, 3, 1], [-1, 1, 1]], [-2, -1, 1], [[2, 2, -2], [-1, 2, -1]],
            [-8, -3])), [Fraction(-2), None, Fraction(1)], [Fraction(-1), Fraction(0), None])
    assert np.allclose(found.x, exact.astype(float), atol=1e-6)
    assert np.isclose(found.objective, float(value)) and found.gap < 1e-9


def test_a_small_programme_takes_about_ten_steps():
    """alg-qp: where predictor and corrector both aim well, a step gains about a digit."""
    steps = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        F, C = rng.normal(size=(5, 3)), rng.normal(size=(7, 5))
        c = C @ rng.normal(size=5) + 3 * rng.random(7)
        found = solve_qp(F @ F.T, rng.normal(size=5), lower=-1, upper=1, C=C, c=c)
        steps.append(found.iterations)
    assert max(steps) <= 13 and np.mean(steps) < 10


@pytest.mark.parametrize("power", range(4))
def test_a_factor_of_any_size_stands_for_its_square(power):
    """eq-qp: the units of F are the root of those of P, odd powers of two included."""
    rng = np.random.default_rng(10)
    F = 2.0 ** (power / 2) * rng.normal(size=(6, 2))
    q = rng.normal(size=6)
    bound = 2.0 ** (-20 - power)                 # small boxes: q sets the units
    thin = solve_qp(None, q, lower=-bound, upper=bound, factor=F)
    full = solve_qp(F @ F.T, q, lower=-bound, upper=bound)
    assert np.isclose(thin.objective, full.objective, rtol=1e-10)
    assert np.allclose(thin.at_upper - thin.at_lower, -q - F @ (F.T @ thin.x), atol=1e-9)


def test_flat_directions_do_not_spoil_the_accuracy():
    """eq-qp-gap: a variable without cost may run away; the others must not notice."""
    found = solve_qp(np.diag([0.0, 1.0]), [0, -1], lower=1)
    assert np.isclose(found.x[1], 1, atol=1e-5) and found.gap < 1e-9
    # Here the thin factor alone does not arrive, and the full matrix does.
    F = np.array([[0, 0, -1, -1, 1], [0, -1, -1, 0, 0], [1, 0, 1, 1, 0], [-1, -1, 1, 0, -1],
                  [0, 0, 0, 0, 0], [0, -1, -1, 0, -1], [1, -1, -1, -1, 0]])
    thin = solve_qp(None, [-1, 0, 0, -1, 0, 0, 0], lower=[-3, -INF, 0, -1, 0, -2, -2],
                    upper=[0, 2, INF, 0, INF, INF, 1], factor=F)
    assert thin.status == "optimal" and abs(thin.objective) < 1e-9 and thin.gap < 1e-9


def svm_dual(n=60, seed=0, duplicates=True):
    rng = np.random.default_rng(seed)
    y = np.repeat([-1.0, 1.0], n // 2)
    X = rng.normal(size=(n, 2)) + 0.5 * y[:, None]
    if duplicates:
        X[5:15] = X[0]
        X[-6:] = X[1]
    return X, y


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_support_vector_duals_of_any_scale(C):
    """cor-qp-error: singular Gram matrices, six orders of magnitude either way."""
    X, y = svm_dual()
    Q = Gaussian(1.0)(X) * np.outer(y, y)
    found = solve_qp(Q, -np.ones(60), y, 0, 0, C)
    # Px is rounded to 1e-16 |P||x|, and each error is multiplied by a slack of up to C.
    rounding = 1e-16 * np.abs(Q).sum() * C * C
    assert -rounding <= found.gap <= 1e-11 * abs(found.objective) + 100 * rounding
    assert found.gap < 1e-8 * abs(found.objective)
    # Without the corrector the method takes up to 36 steps here.
    assert found.iterations < 34
    if C == 1.0:
        peer = SVC(C=C, kernel="rbf", gamma=0.5, tol=1e-9).fit(X, y)
        a = np.zeros(60)
        a[peer.support_] = np.abs(peer.dual_coef_[0])
        assert np.isclose(found.objective, a @ Q @ a / 2 - a.sum(), rtol=1e-7)


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_a_thin_factor_gives_the_same_answer(C):
    """alg-qp with P = FF': the linear kernel."""
    X, y = svm_dual(duplicates=False)
    F = X * y[:, None]
    thin = solve_qp(None, -np.ones(60), y, 0, 0, C, factor=F)
    full = solve_qp(F @ F.T, -np.ones(60), y, 0, 0, C)
    assert np.isclose(thin.objective, full.objective, rtol=1e-8)
    assert thin.gap < 1e-8 * abs(thin.objective)
    left = F @ (F.T @ thin.x) - 1 + thin.equality * y - thin.at_lower + thin.at_upper
    assert np.abs(left).max() < 1e-8 * max(1, C)


@pytest.mark.parametrize("size", [1e-200, 1e-100, 1e100, 1e200])
@pytest.mark.parametrize("unit", [1e-50, 1.0, 1e50])
def test_units_do_not_matter(size, unit):
    """eq-qp: objective times `size`, variables times `unit`, one row times 1e30."""
    rng = np.random.default_rng(6)
    n = 5
    P, F = quadratic(rng, n, 3)
    q, A = rng.normal(size=n), rng.normal(size=(2, n))
    b = A @ np.full(n, 0.3)
    plain = solve_qp(P, q, A, b, 0, 1)
    row = np.array([1.0, 1e30])
    for matrix, factor in ((P * (size / unit / unit), None),
                           (None, F * (np.sqrt(size) / unit))):
        found = solve_qp(matrix, q * (size / unit), A * row[:, None], b * row * unit, 0, unit,
                         factor=factor)
        assert found.status == "optimal"
        assert np.isclose(found.objective / size, plain.objective, rtol=1e-9)
        assert np.allclose(found.x / unit, plain.x, atol=1e-6)
        assert np.allclose(found.equality * row / size * unit, plain.equality, atol=1e-6)
        assert np.allclose(found.at_lower / size * unit, plain.at_lower, atol=1e-6)
        assert abs(found.gap / size) < 1e-9


def test_units_of_the_two_proofs():
    """eq-qp-infeasible and eq-qp-unbounded with large and small numbers."""
    for unit in (1e-100, 1e100):
        none = solve_qp(np.eye(2), [0, 0], [[1e50, 1e50]], [3e50 * unit], 0, unit)
        y, w = none.equality, none.at_upper
        assert none.status == "infeasible" and np.isclose(1e50 * y[0] + w[0], 0)
        assert np.isclose(none.margin, -unit * w.sum() - 3e50 * unit * y[0])
        assert none.margin > 0
        falls = solve_qp(np.zeros((2, 2)), [unit, -unit], [1.0, 1.0], 1.0)
        assert falls.status == "unbounded" and np.isclose(falls.margin, 2 * unit, atol=0)
        assert np.isclose(falls.x.sum(), 1)
        v = np.array([1.0, 1 / 3, 0.7])
        curved = solve_qp(None, [0, unit**0.5, 0], factor=v[:, None] * unit**0.5)
        size = np.abs(np.outer(v, v) * unit @ curved.direction).max()
        assert curved.status == "unbounded" and size <= 1e-14 * unit
        assert curved.stationarity <= 1e-14 * unit


def test_fixed_variables_and_their_multipliers():
    """eq-qp with l = u: the variable is taken out, and has a price all the same."""
    P, q = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-1.0, 1.0])
    found = solve_qp(P, q, lower=[-INF, 3.0], upper=[INF, 3.0])
    assert np.allclose(found.x, [-1, 3]) and found.x[1] == 3
    assert np.allclose(found.at_lower - found.at_upper, P @ found.x + q)
    all_fixed = solve_qp(P, q, [1, 1], 3, [1, 2], [1, 2])
    assert all_fixed.status == "optimal" and np.array_equal(all_fixed.x, [1, 2])
    assert np.isclose(all_fixed.objective, 8) and all_fixed.gap == 0
    wrong = solve_qp(P, q, [1, 1], 4, [1, 2], [1, 2])
    y = wrong.equality[0]
    assert wrong.status == "infeasible"
    assert np.allclose(wrong.at_lower - wrong.at_upper, y)
    assert np.isclose((wrong.at_lower - wrong.at_upper) @ [1, 2] - 4 * y, wrong.margin)
    assert wrong.margin > 0


def test_crossed_bounds_are_infeasible():
    """eq-qp-infeasible for a lower bound above an upper one."""
    found = solve_qp(np.eye(3), np.zeros(3), lower=[0, 2, 0], upper=[1, 1.5, 1])
    assert found.status == "infeasible" and found.margin == 0.5
    assert np.array_equal(found.at_lower, [0, 1, 0])
    assert np.array_equal(found.at_upper, [0, 1, 0])


def test_dependent_and_contradictory_equations():
    """thm-qp-trichotomy does not ask for independent rows."""
    A = np.array([[1.0, 1, 1], [2, 2, 2], [0, 0, 0], [1, 0, -1]])
    found = solve_qp(np.eye(3), np.zeros(3), A, [1, 2, 0, 0])
    assert np.allclose(found.x, 1 / 3)
    assert np.allclose(found.x + A.T @ found.equality, 0)
    wrong = solve_qp(np.eye(3), np.zeros(3), A, [1, 3, 0, 0])
    assert wrong.status == "infeasible" and not wrong.at_lower.any()
    assert np.abs(A.T @ wrong.equality).max() < 1e-12
    assert np.isclose(-np.array([1, 3, 0, 0]) @ wrong.equality, wrong.margin)
    zero = solve_qp(np.eye(3), np.zeros(3), A, [1, 2, 1e-3, 0])
    assert zero.status == "infeasible"
    inside = solve_qp(np.eye(3), np.zeros(3), A, [1, 3, 0, 0], lower=2)
    assert inside.status == "infeasible" and (inside.x >= 2).all()


def test_programmes_without_room():
    """thm-qp-trichotomy, part 3: no point is strictly within the bounds."""
    # x1 + x3 = 1 and x1 + 2 x3 = 2 leave only x1 = 0, x3 = 1, both on their bounds.
    P = np.array([[2.0, 1, 2], [1, 1, 1], [2, 1, 2]])
    found = solve_qp(P, [-1, -2, 2], [[1, 0, 1], [1, 0, 2]], [1, 2], [-INF, 1, 1], [0, 3, 3])
    assert np.allclose(found.x, [0, 1, 1], atol=1e-6)
    assert np.isclose(found.objective, 2.5) and found.gap < 1e-9
    # The only point of the simplex with x1 = 1.
    found = solve_qp(np.zeros((3, 3)), [1, 2, 3], [[1, 1, 1], [1, 0, 0]], [1, 1], lower=0)
    assert np.allclose(found.x, [1, 0, 0], atol=1e-9)
    found = solve_qp(np.eye(2), [0, 0], [1, 1], 0, lower=0)
    assert np.allclose(found.x, 0, atol=1e-8)
    # Multipliers that could run away to infinity: only (1, -2, x) is feasible.
    P, q = np.array([[4.0, 1, -1], [1, 1, 0], [-1, 0, 3]]), np.array([-12.0, 2, 4])
    found = solve_qp(P, q, [[0, -2, 0], [-2, -2, 0]], [4, 2], [-2, -2, -INF], [1, INF, -1])
    assert np.allclose(found.x, [1, -2, -1], atol=1e-6)
    assert found.gap < 1e-9 and np.abs(found.equality).max() < 1e7


def test_a_flat_objective_and_solutions_that_are_not_unique():
    """thm-qp-trichotomy with P singular: the value is unique, the solution need not be."""
    ones = np.ones((4, 4))
    found = solve_qp(ones, -np.ones(4), lower=0, upper=1)
    assert np.isclose(found.objective, -0.5) and np.isclose(found.x.sum(), 1)
    free = solve_qp(ones, -np.ones(4))
    assert np.isclose(free.objective, -0.5) and free.status == "optimal"
    nothing = solve_qp(np.zeros((2, 2)), [0, 0], lower=-1, upper=[0, INF])
    assert nothing.status == "optimal" and nothing.objective == 0
    square = solve_qp(np.zeros((2, 2)), [1, 1], np.eye(2), [3, 4])
    assert np.allclose(square.x, [3, 4]) and np.allclose(square.equality, -1)
    assert np.isclose(solve_qp(None, [1.0, 1.0], factor=[[1.0], [1.0]]).objective, -0.5)


def test_an_unbounded_programme_whose_slope_is_hidden_by_rounding():
    """eq-qp-unbounded: far out, Px = -q can hold by rounding alone."""
    P = np.array([[3.0, 1, 0, 1], [1, 3, 2, 1], [0, 2, 2, 0], [1, 1, 0, 1]])
    found = solve_qp(P, [-2, 2, 2, -1], lower=[1, -INF, -INF, -INF])
    assert found.status == "unbounded"
    assert np.abs(P @ found.direction).max() < 1e-9


def test_variables_on_different_scales():
    """eq-qp: each variable has its own curvature."""
    found = solve_qp(np.diag([1e20, 1.0, 1e-10]), [1.0, 1.0, 1.0], lower=-1e12)
    assert np.allclose(found.x * [1e20, 1, 1e-10], -1, rtol=1e-6)
    with pytest.raises(ValueError, match="^P must be positive semidefinite.*a'Pa = -1 "):
        solve_qp(np.diag([1e20, -1.0]), [0, 0])


def test_bounds_out_of_reach_count_as_infinite():
    """eq-qp: 1e308 is no wall, unless the objective runs into it."""
    assert np.allclose(solve_qp(np.eye(2), [1, 1], lower=-1e308, upper=1e308).x, -1)
    assert np.allclose(solve_qp(0 * np.eye(2), [1, 1], lower=-1, upper=1e308).x, -1)
    for far in 10.0 ** np.arange(4, 70, 6):
        assert np.allclose(solve_qp([[1.0]], [-1.0], lower=0, upper=far).x, 1)
    assert np.isclose(solve_qp([[1.0]], [-9.77e-40], lower=0, upper=1).x[0], 9.77e-40, atol=0)
    with pytest.raises(ValueError, match="lower and upper must be of the size"):
        solve_qp(np.zeros((2, 2)), [-1, 1], lower=-1, upper=1e200)


def test_answers_that_overflow_are_refused():
    """prop-qp-dual in floats: x = -q/P and the objective -q²/2P are floats, or an error
    says that they are none."""
    with pytest.raises(ValueError, match="overflow"):
        solve_qp([[1e-300]], [1e300])
    with pytest.raises(ValueError, match="overflow"):
        solve_qp([[1e-200]], [1e100])                 # x = -1e300, objective -5e399
    found = solve_qp([[1e-100]], [1e100])
    assert np.isclose(found.x[0], -1e200) and np.isclose(found.objective, -5e299)


def test_the_record_is_fixed_and_the_input_untouched():
    """QPSolution holds its own arrays."""
    P, q, A, b = np.eye(2), np.ones(2), np.ones((1, 2)), np.ones(1)
    lower, upper = np.zeros(2), np.full(2, 2.0)
    copies = [v.copy() for v in (P, q, A, b, lower, upper)]
    found = solve_qp(P, q, A, b, lower, upper)
    for v, copy in zip((P, q, A, b, lower, upper), copies, strict=True):
        assert np.array_equal(v, copy) and v.flags.writeable
    assert isinstance(found, QPSolution)
    with pytest.raises(FrozenInstanceError):
        found.gap = 0.0
    with pytest.raises(ValueError, match="read-only"):
        found.x[0] = 1.0
    q[:] = 7
    assert np.isclose(found.objective, 1.25)
    direction = solve_qp(np.zeros((1, 1)), [1.0]).direction
    with pytest.raises(ValueError, match="read-only"):
        direction[0] = 0.0
    assert type(found.gap) is float and type(found.objective) is float


def test_integers_scalars_and_single_rows():
    """One equation may be a vector and a number; whole numbers are numbers."""
    for A, b in (([1, 1], 1), ([[1, 1]], [1]), (np.array([[1, 1]]), np.array([1.0]))):
        found = solve_qp([[1, 0], [0, 1]], [0, -3], A, b, 0)
        assert np.allclose(found.x, [0, 1]) and np.allclose(found.equality, [2])
    assert np.isclose(solve_qp([[2]], [-4], upper=1).x[0], 1)
    assert np.isclose(solve_qp([[2]], [-4], lower=[3]).x[0], 3)


@pytest.mark.parametrize(("name", "change"), [
    ("P", {"P": np.ones((2, 3))}),
    ("P", {"P": np.eye(3)}),
    ("P", {"P": 1.0}),
    ("P", {"P": [1.0, 2.0]}),
    ("P", {"P": [[1, 2], [0, 1]]}),
    ("P", {"P": [[0, 1], [1, 0]]}),
    ("P", {"P": [[1, 2], [2, 1]]}),
    ("P", {"P": [[1, np.nan], [np.nan, 1]]}),
    ("P", {"P": [["a", "b"], ["c", "d"]]}),
    ("P", {"P": np.eye(2) * 1j}),
    ("P", {"P": [[1, 2], [3]]}),
    ("P", {"P": None}),
    ("P", {"factor": np.ones((2, 1))}),
    ("factor", {"P": None, "factor": np.ones((3, 1))}),
    ("factor", {"P": None, "factor": np.ones(2)}),
    ("factor", {"P": None, "factor": [[1.0], [INF]]}),
    ("q", {"q": 1.0}),
    ("q", {"q": np.ones((2, 1))}),
    ("q", {"q": []}),
    ("q", {"q": [1, INF]}),
    ("q", {"q": [None, 1]}),
    ("P", {"q": [1, 2, 3]}),
    ("A", {"A": np.ones((1, 3))}),
    ("A", {"A": np.ones((2, 1))}),
    ("A", {"A": np.ones((1, 1, 2))}),
    ("A", {"A": [1, np.nan]}),
    ("A", {"A": None}),
    ("b", {"b": None}),
    ("b", {"b": [1, 2]}),
    ("b", {"b": [[1]]}),
    ("b", {"b": [INF]}),
    ("C", {"c": 1}),
    ("C", {"C": np.ones((1, 3)), "c": 1}),
    ("C", {"C": [1, np.nan], "c": 1}),
    ("c", {"C": [1, 1]}),
    ("c", {"C": [1, 1], "c": [1, 2]}),
    ("c", {"C": [1, 1], "c": INF}),
    ("lower", {"lower": [0, 0, 0]}),
    ("lower", {"lower": INF}),
    ("lower", {"lower": [0, np.nan]}),
    ("lower", {"lower": "0"}),
    ("lower", {"lower": [None, 0]}),
    ("lower", {"lower": [[0], [0, 1]]}),
    ("upper", {"upper": [[1, 1]]}),
    ("upper", {"upper": -INF}),
    ("upper", {"upper": np.nan}),
    ("upper", {"upper": 1j}),
])
def test_bad_input_is_named(name, change):
    """Every argument of solve_qp."""
    good = {"P": np.eye(2), "q": [1, 1], "A": [1, 1], "b": 1, "lower": 0, "upper": 1}
    assert solve_qp(**good).status == "optimal"
    with pytest.raises(ValueError, match=f"^{name} must"):
        solve_qp(**{**good, **change})


# -- nothing false -----------------------------------------------------------------


def test_a_curved_direction_is_no_proof():
    """eq-qp-unbounded asks for Pd = 0, not for a small Pd."""
    for small in (1e-11, 1e-5, 1e-15):
        found = solve_qp(np.diag([small, 1.0]), [-1.0, -1.0], lower=0)
        assert found.status == "optimal" and np.allclose(found.x, [1 / small, 1], rtol=1e-12)


def test_a_wrong_sign_beside_an_infinite_bound_is_no_proof():
    """eq-qp-infeasible: 1e-9 x1 + x2 = 10 with x2 <= 1 needs a large x1."""
    found = solve_qp(np.eye(2), [0, 0], [[1e-9, 1.0]], [10.0], 0, [INF, 1.0])
    assert found.status == "optimal" and np.allclose(found.x, [9e9, 1], rtol=1e-12)
    fixed = solve_qp(np.eye(2), [0, 0], [[1e-9, 1.0]], [10.0], 0, [1e9, 1.0])
    assert fixed.status == "infeasible" and fixed.margin > 0


def test_small_coordinates_beside_large_ones():
    """eq-qp-kkt holds for each coordinate on its own scale."""
    found = solve_qp(np.eye(2), [-1e8, -1.0], lower=0)
    assert found.status == "optimal" and np.array_equal(found.x, [1e8, 1])


def test_a_price_that_is_small_beside_the_others_still_closes_its_bound():
    """thm-qp-trichotomy: the last cost is 1e-5 beside 200, and its bound is met all the same."""
    found = solve_qp(
        np.zeros((4, 4)), [-200, -0.02, 1e-4, -1e-5], lower=[-INF, -100, -1e4, -INF],
        upper=[INF, 0, 1e4, 2e5], C=[100, -0.01, -1e-4, 0], c=2)
    assert found.status == "optimal"
    assert found.x.tolist() == [0.03, 0.0, 1e4, 2e5]
    assert np.allclose(found.at_upper, [0, 0.04, 1e-4, 1e-5], rtol=1e-12, atol=0)
    assert np.isclose(found.inequality[0], 2, rtol=1e-12) and found.gap == 0
    # A box, and costs from 1e-5 to 1e4: each variable alone.
    P = np.diag([0, 1e6, 0, 1e8])
    found = solve_qp(P, [-1e-5, 1e2, -0.2, 1e4], lower=[1e5, -INF, 0, -INF],
                     upper=[3e5, INF, 20, INF])
    assert found.status == "optimal"
    assert np.allclose(found.x, [3e5, -1e-4, 20, -1e-4], rtol=1e-14)


def test_strictly_convex_programmes_of_condition_1e10():
    """thm-qp-trichotomy, part 3: forty of forty."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        Q = np.linalg.qr(rng.normal(size=(6, 6)))[0]
        P = Q * np.logspace(0, -10, 6) @ Q.T
        P, q = (P + P.T) / 2, rng.normal(size=6)
        found = solve_qp(P, q, lower=0)
        assert found.status == "optimal"
        r = P @ found.x + q
        terms = np.abs(P) @ found.x + np.abs(q)
        assert (r >= -1e-14 * terms).all() and (found.x >= 0).all()
        assert (np.abs(r)[found.x > 0] <= 1e-14 * terms[found.x > 0]).all()


def test_inequalities_and_their_multipliers():
    """eq-qp with Cx <= c: the same as with slacks, and as with the sign reversed."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        n, m = 5, 4
        P, F = quadratic(rng, n, 3)
        q, C = rng.normal(size=n), rng.normal(size=(m, n))
        c = C @ rng.random(n) + 0.1
        slack = np.zeros((n + m, n + m))
        slack[:n, :n] = P
        long = solve_qp(slack, np.append(q, np.zeros(m)), np.hstack([C, np.eye(m)]), c,
                        0, np.append(np.ones(n), np.full(m, INF)))
        for matrix, factor in ((P, None), (None, F)):
            found = solve_qp(matrix, q, lower=0, upper=1, C=C, c=c, factor=factor)
            assert found.status == "optimal" and (found.inequality >= 0).all()
            assert np.isclose(found.objective, long.objective, rtol=1e-9)
            assert (C @ found.x <= c + 1e-12).all()
            assert found.complementarity < 1e-12
            left = P @ found.x + q + C.T @ found.inequality - found.at_lower + found.at_upper
            assert np.abs(left).max() < 1e-12
    two = solve_qp(np.eye(2), [-2, -1], C=[[1, 1], [1, -1]], c=[1, 0])
    assert np.allclose(two.x, 0.5) and np.allclose(two.inequality, [1, 0.5])
    none = solve_qp(np.eye(1), [0], C=[[1], [-1]], c=[1, -2])
    assert none.status == "infeasible" and np.isclose(none.margin, none.inequality[0])
    falls = solve_qp(np.zeros((2, 2)), [-1, 0], C=[[1, -1]], c=[1])
    assert falls.status == "unbounded" and falls.direction[0] <= falls.direction[1]
    assert falls.complementarity == 0                  # there are no multipliers


@pytest.mark.parametrize("seed", range(3))
def test_an_inequality_with_room_has_no_price(seed):
    """thm-qp-trichotomy, part 3: of a multiplier and its slack one is zero, exactly."""
    rng = np.random.default_rng(seed)
    F, C = rng.normal(size=(20, 20)), rng.normal(size=(15, 20))
    c = C @ rng.normal(size=20) + 3 * rng.random(15)
    found = solve_qp(F @ F.T, rng.normal(size=20), C=C, c=c)
    room = c - C @ found.x > 1e-6
    assert 0 < room.sum() < 15 and found.status == "optimal"
    assert not found.inequality[room].any() and (found.inequality[~room] > 0).all()


@pytest.mark.parametrize("n", [2, 40])
def test_a_contradiction_of_one_percent_is_proved(n):
    """eq-qp-infeasible, for few variables and for many: Σ x = 1 and Σ x = 1.01."""
    found = solve_qp(np.eye(n), np.zeros(n), np.ones((2, n)), [1, 1.01])
    y = found.equality
    assert found.status == "infeasible" and y[0] == -y[1]
    assert np.isclose(found.margin, -y @ [1, 1.01]) and found.margin > 0


def test_a_programme_that_rounding_has_changed_is_not_decided():
    """eq-qp-unbounded: vv' rounded is not of rank one; its factor is."""
    v = np.array([1.0, 1 / 3, 0.7])
    found = solve_qp(np.outer(v, v), [0, 1.0, 0])
    assert found.status == "not decided" and "no proof" in found.reason
    assert solve_qp(None, [0, 1.0, 0], factor=v[:, None]).status == "unbounded"


@pytest.mark.parametrize("seed", [9, 12, 16, 19, 24])
def test_points_that_run_away_are_no_solutions(seed):
    """eq-qp-infeasible: with x and multipliers of 1e13 all relative residuals are small."""
    rng = np.random.default_rng(seed)
    n, p, m = 40, 6, 10
    F = rng.integers(-2, 3, (n, rng.choice([0, 1, 20]))).astype(float)
    A, C = (rng.integers(-3, 4, (k, n)).astype(float) for k in (p, m))
    lower = np.where(rng.random(n) < 0.4, -INF, rng.integers(-3, 1, n))
    upper = np.where(rng.random(n) < 0.4, INF, np.maximum(lower, -3) + rng.integers(0, 5, n))
    x = np.clip(rng.integers(-2, 3, n), lower, upper)
    b, c = A @ x, C @ x + rng.integers(0, 3, m)
    y, lam = rng.integers(-2, 3, p), rng.integers(0, 3, m)
    C = np.vstack([C, -(A.T @ y + C.T @ lam)])          # contradicts the other rows
    c = np.append(c, -(y @ b + lam @ c) - 0.01)
    q = rng.integers(-9, 10, n).astype(float)
    assert solve_qp(F @ F.T, q, A, b, lower, upper, C=C, c=c).status == "infeasible"


def test_the_gap_away_from_the_optimum():
    """eq-qp-gap holds for all x and multipliers: here for a point that solves nothing."""
    v = np.array([1.0, 1 / 3, 0.7])
    P, q = np.outer(v, v), np.array([0, 1.0, 0])
    found = solve_qp(P, q)
    square, linear = found.x @ P @ found.x, q @ found.x
    assert found.status == "not decided"
    assert np.isclose(found.gap, square + linear, rtol=1e-6,
                      atol=1e-12 * (np.abs(found.x) @ P @ np.abs(found.x) + abs(linear)))


def exact_rows(A, b):
    """Indices of independent rows, or None if the rows contradict each other."""
    done, keep = [], []
    for i, (a, t) in enumerate(zip(A, b, strict=True)):
        row = [*a, t]
        for j, other in done:
            row = [r - row[j] * o for r, o in zip(row, other, strict=True)]
        j = next((k for k, r in enumerate(row[:-1]) if r != 0), None)
        if j is None and row[-1] != 0:
            return None
        if j is not None:
            done.append((j, [r / row[j] for r in row]))
            keep.append(i)
    return keep


def exact_minimum(P, q, A, b, G, h):
    """Minimiser for Ax = b, Gx <= h and positive definite P, or None: all subsets."""
    n, keep = len(q), exact_rows(A, b)
    if keep is None:
        return None
    A, b = [A[i] for i in keep], [b[i] for i in keep]
    for size in range(n - len(b) + 1):
        for tight in combinations(range(len(h)), size):
            R = A + [G[i] for i in tight]
            M = ([[*P[i], *(row[i] for row in R)] for i in range(n)]
                 + [[*row, *[Fraction(0)] * len(R)] for row in R])
            v = exact_solve(M, [-t for t in q] + b + [h[i] for i in tight])
            if v is not None and (v[n + len(b):] >= 0).all() and all(
                    sum(g * t for g, t in zip(row, v, strict=False)) <= top
                    for row, top in zip(G, h, strict=True)):
                return v[:n]
    return None


def exact_answer(P, q, A, b, C, c, lower, upper, strict):
    """The status, and the solution if P is positive definite, in fractions."""
    def exact(v):
        return [exact(t) if np.ndim(t) else Fraction(float(t)) for t in v]

    n = len(q)
    unit = exact(np.eye(n))
    A, b = exact(A), exact(b)
    G, h = exact(C), exact(c)
    for i in range(n):
        for sign, edge in ((-1, -lower[i]), (1, upper[i])):
            if np.isfinite(edge):
                G.append([sign * t for t in unit[i]])
                h.append(Fraction(float(edge)))
    if strict:
        x = exact_minimum(exact(P), exact(q), A, b, G, h)
        return ("infeasible" if x is None else "optimal"), x
    if exact_minimum(unit, [Fraction(0)] * n, A, b, G, h) is None:
        return "infeasible", None
    rows = A + exact(P)                     # prop-qp-projection, part 2
    d = exact_minimum(unit, exact(q), rows, [Fraction(0)] * len(rows), G, [Fraction(0)] * len(h))
    return ("unbounded" if d.any() else "optimal"), None


def wild_programme(rng):
    """Up to three variables, of scales up to 2^40, with bounds and rows of all kinds."""
    n, strict, k = rng.integers(1, 4), rng.random() < 0.5, rng.choice([0, 3, 10, 20, 40])

    def scale(*size, k=k):
        return 2.0 ** rng.integers(-k, k + 1, size)

    S = scale(n)
    if strict:
        Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        P = Q * 10.0 ** -rng.uniform(0, 10, n) @ Q.T
        P = (P + P.T) / 2
    else:
        P, _ = quadratic(rng, n, rng.integers(0, n + 1))
    p, m = rng.integers(0, min(n, 2) + 1) * (rng.random() < 0.6), rng.integers(0, 3)
    q = rng.integers(-3, 4, n) * scale(n) * S
    A, C = (rng.integers(-3, 4, (r, n)) * scale(r, 1) / S for r in (p, m))
    lower = np.where(rng.random(n) < 0.45, -INF, rng.integers(-3, 2, n) * scale(n, k=k // 2) * S)
    upper = np.where(rng.random(n) < 0.5, INF, np.where(np.isfinite(lower), lower, 0)
                     + rng.integers(0, 4, n) * scale(n, k=k // 2) * S)
    x = np.clip(rng.integers(-2, 3, n) * S, lower, upper)
    b = A @ x if rng.random() < 0.7 else rng.integers(-3, 4, p) * scale(p)
    c = (C @ x + rng.integers(0, 2, m) * scale(m) if rng.random() < 0.7
         else rng.integers(-3, 4, m) * scale(m))
    return P * S * S[:, None], q, A, b, C, c, lower, upper, strict


def test_no_false_answer_on_programmes_of_all_scales():
    """thm-qp-trichotomy: 250 programmes against all subsets of constraints in fractions."""
    seen, given = {}, 0
    for seed in range(250):
        programme = wild_programme(np.random.default_rng([11, seed]))
        P, q, A, b, C, c, lower, upper, strict = programme
        found = solve_qp(P, q, A if len(b) else None, b if len(b) else None, lower, upper,
                         C=C if len(c) else None, c=c if len(c) else None)
        want, x = exact_answer(*programme)
        seen[want] = seen.get(want, 0) + 1
        if found.status == "not decided":
            given += 1
            continue
        assert found.status == want, seed
        if x is not None:
            x = x.astype(float)
            assert np.allclose(found.x, x, rtol=1e-9, atol=1e-9 * np.abs(x).max()), seed
    assert min(seen.values()) > 20 and len(seen) == 3
    assert given <= 10


VICES = {
    "redundant and scaled rows": dict(
        P=np.zeros((3, 3)), q=[1, 2, 0], A=[[1, 1, 1], [1e8, 1e8, 1e8], [2, 2, 2]],
        b=[1, 1e8, 2], lower=0, value=0),
    "an inequality as two": dict(
        P=np.eye(2), q=[-1, -1], C=[[1, 1], [-1, -1]], c=[1, -1], value=-0.75),
    "free variables and a linear objective": dict(
        P=np.zeros((3, 3)), q=[1, -1, 0], A=[[1, -1, 0], [0, 1, -1]], b=[0, 1], value=0),
    "a degenerate corner": dict(
        P=np.zeros((2, 2)), q=[-1, -1], C=[[1, 0], [0, 1], [1, 1], [1, 2], [2, 1]],
        c=[1, 1, 2, 3, 3], lower=0, value=-2),
    "a chain of tiny and huge coefficients": dict(
        P=np.zeros((3, 3)), q=[1, 0, 0], A=[[1e-6, -1, 0], [0, 1e6, -1]], b=[0, 0],
        lower=[-INF, -INF, 1e6], value=1e6),
    "a box thinner than rounding elsewhere": dict(
        P=np.diag([1, 1e-8]), q=[0, -1], lower=[1, 0], upper=[1 + 1e-12, 1e9], value=0.5 - 5e7),
    "a flat optimum": dict(
        P=np.ones((4, 4)), q=-np.ones(4), lower=-1e3, upper=1e3, value=-0.5),
}


@pytest.mark.parametrize("name", VICES)
def test_programmes_with_vices(name):
    """thm-qp-trichotomy, on small programmes that are hard for one reason each."""
    programme = dict(VICES[name])
    value = programme.pop("value")
    found = solve_qp(**programme)
    assert found.status == "optimal"
    assert np.isclose(found.objective, value, rtol=1e-9, atol=1e-9)


def test_a_larger_linear_programme_with_inequalities_and_free_variables():
    """alg-qp beyond the reach of exact arithmetic: against HiGHS, degenerate and scaled."""
    rng = np.random.default_rng(21)
    n, p, m = 60, 15, 40
    A, C = rng.integers(-2, 3, (p, n)).astype(float), rng.integers(-2, 3, (m, n)).astype(float)
    A[-1] = A[0] + A[1]
    x = rng.integers(0, 3, n)
    b, c = A @ x, C @ x + rng.integers(0, 2, m)
    lower, upper = np.where(np.arange(n) < 10, -INF, 0), np.where(np.arange(n) < 30, INF, 5)
    q = A.T @ rng.normal(size=p) - C.T @ rng.random(m) + np.where(np.arange(n) < 10, 0, 0.1)
    units, rows = 10.0 ** rng.integers(-4, 5, n), 10.0 ** rng.integers(-4, 5, p)
    other = linprog(q, A_ub=C, b_ub=c, A_eq=A, b_eq=b, bounds=np.column_stack([lower, upper]))
    found = solve_qp(np.zeros((n, n)), q * units, rows[:, None] * A * units, rows * b,
                     lower / units, upper / units, C=C * units, c=c)
    assert other.status == 0 and found.status == "optimal"
    assert np.isclose(found.objective, other.fun, rtol=1e-8)
    assert np.abs(A @ (units * found.x) - b).max() < 1e-8
    assert (C @ (units * found.x) <= c + 1e-8).all()


def test_how_far_a_matrix_may_be_from_symmetric_and_from_semidefinite():
    """eq-qp up to rounding: ten units of it, or n; and n of the row sums for an eigenvalue."""
    eps = np.finfo(float).eps
    for n, most in ((2, 10), (20, 20)):
        for odd, refused in ((most - 0.5, False), (most + 0.5, True)):
            P = np.eye(n) + 0.5 * (np.eye(n, k=1) + np.eye(n, k=-1)) / 2
            P[0, 1] += odd * eps
            if refused:
                with pytest.raises(ValueError, match=r"^P must be symmetric, but P\[0, 1\]"):
                    solve_qp(P, np.ones(n), lower=0)
            else:
                assert solve_qp(P, np.ones(n), lower=0).status == "optimal"
    for over, refused in ((6, False), (10, True)):
        P = np.array([[1, 1 + over * eps], [1 + over * eps, 1]])
        if refused:
            with pytest.raises(ValueError, match="^P must be positive semidefinite"):
                solve_qp(P, [1, 1], lower=0)
        else:
            assert np.array_equal(solve_qp(P, [1, 1], lower=0).x, [0, 0])
