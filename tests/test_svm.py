"""Identities of the chapter on support vector machines."""

import sys
import tracemalloc
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rkhs_lit import (
    SVM,
    Delta,
    FeatureKernel,
    FunctionKernel,
    Gaussian,
    Laplace,
    Linear,
    Pairs,
    Polynomial,
    RKHSFunction,
    Sigmoid,
    TensorProduct,
    inner,
    minimize_risk,
    norm,
    nu_svm,
    pair_steps,
    polynomial_features,
    solve_qp,
    substrings,
    svm,
)
from scipy.optimize import linprog, minimize
from sklearn.svm import SVC, NuSVC

seeds = st.integers(0, 10_000)


def sample(n=40, noise=0.7, seed=0, level=1.3):
    """A disc and what is around it, with noise in the labels; both occur."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(np.sum(X**2, axis=1) + noise * rng.normal(size=n) > level, 1, -1)
    y[:2] = 1, -1
    return X, y


def primal(f, b, X, y, C):
    return inner(f, f) / 2 + C * np.maximum(0, 1 - y * (f(X) + b)).sum()


def dual(kernel, alpha, X, y):
    f = RKHSFunction(kernel, X, alpha * y)
    return alpha.sum() - inner(f, f) / 2


def balanced(rng, y, C):
    """Weights in [0, C] with Σ α_i y_i = 0."""
    alpha = rng.uniform(0, C, size=len(y))
    sums = [alpha[y == s].sum() for s in (-1, 1)]
    for s, total in zip((-1, 1), sums):
        alpha[y == s] *= min(sums) / total
    return alpha


# -- Two weights at a time -----------------------------------------------------


def by_pairs(kernel, X, y, C, offset, tol=1e-9):
    """The dual by pairs alone, from zero; without offset with a point where k = 0."""
    K, y = kernel(X), np.asarray(y, dtype=float)
    low, high, t = np.minimum(0, C * y), np.maximum(0, C * y), y
    if not offset:
        K, t = np.pad(K, (0, 1)), np.append(t, 0.0)
        low, high = np.append(low, -np.inf), np.append(high, np.inf)
    a, t = pair_steps(K, t, 0 * t, low, high, tol, 10**6)
    assert t[a < high].max() - t[a > low].min() <= tol
    assert (low <= a).all() and (a <= high).all() and abs(a.sum()) < 1e-12 * (1 + C) * len(t)
    return (a * np.append(y, 1.0)[:len(a)])[:len(y)]


@given(seeds, st.sampled_from([0.02, 1.0, 30.0]), st.booleans(),
       st.sampled_from([Gaussian(0.5), Laplace(1.0), Polynomial(2)]))
@settings(max_examples=20, deadline=None)
def test_pairs_working_sets_and_programmes_agree(seed, C, offset, kernel):
    """thm-svm-pairs: three solvers of one dual, and the gap that part 1 promises."""
    X, y = sample(25, seed=seed)
    alpha = by_pairs(kernel, X, y, C, offset, 1e-7)
    machine = svm(kernel, X, y, C, offset=offset)
    Q = np.outer(y, y) * kernel(X)
    programme = solve_qp(Q, -np.ones(25), y[None] if offset else None,
                         [0.0] if offset else None, 0.0, C)
    # Part 1 with its factor for the machine without offset.
    room = 25 * C * 1e-7
    assert machine.dual - room <= dual(kernel, alpha, X, y) <= machine.dual + 1e-9 * machine.primal
    assert np.isclose(-programme.objective, machine.dual, rtol=1e-7)
    f = RKHSFunction(kernel, X, alpha * y)
    error = np.sqrt(2 * room * kernel.diag(X).max()) + 1e-6
    assert np.abs(f(X) - machine.function(X)).max() <= error


@given(seeds, st.sampled_from([0.1, 2.0]))
@settings(max_examples=20, deadline=None)
def test_a_pair_raises_the_dual_by_what_the_theorem_says(seed, C):
    """thm-svm-pairs, part 2: a step is as long as it can be, and gains at least half of s v."""
    X, y = sample(12, seed=seed)
    y, K = 1.0 * y, 2.0 * Gaussian(0.8)(X)
    low, high = np.minimum(0, C * y), np.maximum(0, C * y)
    a, t = np.zeros(12), y
    for _ in range(60):
        new, after = pair_steps(K, t, a, low, high, 1e-6, 1)
        e = new - a
        if not e.any():
            break
        i, j, s = e.argmax(), e.argmin(), e.max()
        assert np.count_nonzero(e) == 2 and np.isclose(e[i], -e[j])
        v, eta = t[i] - t[j], K[i, i] - 2 * K[i, j] + K[j, j]
        assert v > 1e-6 and t[i] == t[a < high].max()
        assert np.isclose(s, min(v / eta, high[i] - a[i], a[j] - low[j]))
        gain = y @ e - (new @ K @ new - a @ K @ a) / 2
        assert gain >= s * v / 2 - 1e-12
        if not s < v / eta * (1 - 1e-9):
            assert np.isclose(gain, v**2 / (2 * eta)) and gain >= v**2 / (8 * 2.0) - 1e-12
        assert np.allclose(after, y - K @ new)
        a, t = new, after
    assert np.allclose(a, a.clip(low, high), atol=0) and abs(a.sum()) < 1e-12


def test_no_violating_pair_means_optimal():
    """thm-svm-pairs, part 1, at the solution and beside it."""
    X, y = sample(30, seed=4)
    C, K = 2.0, Gaussian(0.7)(X)
    machine = svm(Gaussian(0.7), X, y, C)
    low, high = np.minimum(0, C * y), np.maximum(0, C * y)
    a = machine.alpha * y
    t = y - K @ a
    assert t[a < high].max() - t[a > low].min() < 1e-9
    rng = np.random.default_rng(0)
    for _ in range(20):
        a = balanced(rng, y, C) * y
        t = y - K @ a
        violation = t[a < high].max() - t[a > low].min()
        b = (t[a < high].max() + t[a > low].min()) / 2
        f = RKHSFunction(Gaussian(0.7), X, a)
        gap = primal(f, b, X, y, C) - dual(Gaussian(0.7), a * y, X, y)
        assert violation > 0 and 0 < gap <= 30 * C * violation / 2 + 1e-12


def test_the_dual_of_scikit_learn_for_three_thousand_points():
    """thm-svm-dual: SVC's weights are feasible, so its dual is no larger, and nearly as large."""
    X, y = sample(3000, noise=0.5)
    machine = svm(Gaussian(1.0), X, y, 1.0)
    assert machine.gap <= 1e-10 * machine.primal
    peer = SVC(C=1.0, gamma=0.5, tol=1e-6).fit(X, y)
    a = peer.dual_coef_[0]
    f = RKHSFunction(Gaussian(1.0), X[peer.support_], a)
    theirs = np.abs(a).sum() - inner(f, f) / 2
    assert np.isclose(theirs, machine.dual, rtol=1e-6)


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("width", [1.0, 0.1])
def test_pairs_and_free_weights_need_no_programme(width, C, monkeypatch):
    """thm-svm-pairs: a wide and a narrow kernel, with and without offset, to the last digits."""
    monkeypatch.setattr(sys.modules[svm.__module__], "solve_qp", None)
    X, y = sample(300, noise=0.5, seed=1)
    for offset in (True, False):
        machine = svm(Gaussian(width), X, y, C, offset=offset)
        assert machine.gap <= 1e-10 * machine.primal


def test_few_slack_points_and_many_free_weights_need_no_programme(monkeypatch):
    """thm-svm-pairs: nearly separable in 20 dimensions, where nearly all support is free."""
    monkeypatch.setattr(sys.modules[svm.__module__], "solve_qp", None)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1000, 20))
    noise = 0.5 * rng.normal(size=1000)
    y = np.where(X[:, :5].sum(axis=1) + X[:, 0] * X[:, 1] + noise > 0, 1, -1)
    machine = svm(Gaussian(4.0), X, y, 100.0)
    assert machine.gap <= 1e-10 * machine.primal


def test_weights_at_a_bound_are_there_to_the_last_digit():
    """thm-svm-types: a weight that is C or zero up to rounding is C or zero, so that its point
    is of the right kind, also for a price of slack that no sum of floats hits by itself."""
    C = 7.3
    for seed in range(12):
        X, y = sample(200, seed=seed)
        alpha = svm(Linear(), X, y, C).alpha
        assert (alpha[alpha > (1 - 1e-13) * C] == C).all()
        assert not alpha[alpha < 1e-13 * C].any()


@given(seeds, st.sampled_from([1e-3, 0.1, 10.0]))
@settings(max_examples=20, deadline=None)
def test_a_linear_system_raises_the_dual_by_what_the_identity_says(seed, mu):
    """eq-svm-rise: e't = e'Ke + μ‖e‖², and the rise of D, for e by eq-svm-newton."""
    X, y = sample(20, seed=seed)
    k, rng = Gaussian(0.8), np.random.default_rng(seed)
    K, a = k(X), balanced(rng, y, 1.0) * y
    S = np.flatnonzero(rng.uniform(size=20) < 0.6)
    t, e = y - K @ a, np.zeros(20)
    A = K[np.ix_(S, S)] + mu * np.eye(len(S))
    u, v = np.linalg.solve(A, np.transpose([t[S], np.ones(len(S))])).T
    e[S] = u - u.sum() / v.sum() * v
    # A has a condition of at most 20 / mu, so that u and e have 10 digits.
    assert abs(e.sum()) < 1e-9
    assert np.isclose(e @ t, e @ K @ e + mu * e @ e, rtol=1e-9, atol=1e-9)
    rise = dual(k, (a + e) * y, X, y) - dual(k, a * y, X, y)
    assert np.isclose(rise, e @ K @ e / 2 + mu * e @ e, rtol=1e-8, atol=1e-9)


@given(seeds, st.integers(1, 6))
@settings(max_examples=20, deadline=None)
def test_stopped_entries_are_a_border_of_the_same_factor(seed, stopped):
    """eq-svm-border: the system without the stopped entries has the same solution."""
    X, _ = sample(15, seed=seed)
    rng, rest = np.random.default_rng(seed), np.arange(stopped, 15)
    A, t, c = Gaussian(0.8)(X) + 0.1 * np.eye(15), rng.normal(size=15), rng.normal(size=stopped)
    Z = np.column_stack([np.ones(15), np.eye(15)[:, :stopped]])
    W = np.linalg.solve(A, np.column_stack([t, Z]))
    nu = np.linalg.solve(Z.T @ W[:, 1:], Z.T @ W[:, 0] - np.append(0.0, c))
    e = W[:, 0] - W[:, 1:] @ nu
    u, v = np.linalg.solve(A[np.ix_(rest, rest)], np.column_stack(
        [t[rest] - A[rest, :stopped] @ c, np.ones(15 - stopped)])).T
    # The condition of A is at most 15.1 / 0.1.
    assert np.allclose(e[:stopped], c, atol=1e-11)
    assert np.allclose(e[rest], u - (u.sum() + c.sum()) / v.sum() * v, atol=1e-11)


def awkward(name):
    rng = np.random.default_rng(3)
    X, y = sample(400, seed=7)
    if name == "duplicates":
        rows = rng.integers(0, 60, size=400)
        return X[rows], np.where(rng.uniform(size=400) < 0.1, -y[rows], y[rows])
    if name == "heavy":
        y = np.where(np.arange(400) < 4, -1, 1)
    if name == "separable":
        X = X + 4.0 * y[:, None]
    return X, y


@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 1e4])
@pytest.mark.parametrize("name", ["duplicates", "heavy", "separable", "plain"])
def test_awkward_data_have_a_certificate(name, C):
    """lem-svm-gap: contradicting copies, a class of four points, a wide street, any C."""
    X, y = awkward(name)
    for kernel, offset in ((Gaussian(1.0), True), (Gaussian(0.1), False), (Linear(), True)):
        machine = svm(kernel, X, y, C, offset=offset)
        assert machine.gap <= 1e-9 * machine.primal
        f, b = machine.function, machine.b
        P, D = primal(f, b, X, y, C), dual(kernel, machine.alpha, X, y)
        assert np.isclose(P, machine.primal) and P - D <= 1e-8 * P


def test_more_points_than_a_working_set(monkeypatch):
    """thm-svm-pairs, part 3: working sets lead to the machine of all points, in less memory."""
    X, y = sample(1500, noise=0.5, seed=2)
    for offset in (True, False):
        whole = svm(Gaussian(1.0), X, y, 10.0, offset=offset)
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules[svm.__module__], "_MANY", 300)
            tracemalloc.start()
            parts = svm(Gaussian(1.0), X, y, 10.0, offset=offset)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < 1500**2 * 8 / 2
        assert parts.gap <= 1e-10 * parts.primal
        assert np.isclose(parts.dual, whole.dual, rtol=1e-9)
        assert np.allclose(parts.decision(X[:50]), whole.decision(X[:50]), atol=1e-5)


# -- Size -----------------------------------------------------------------


def test_two_thousand_points_and_a_large_C():
    """lem-svm-gap: the solver recovers where its steps become short."""
    X, y = sample(2000, noise=0.5)
    machine = svm(Gaussian(1.0), X, y, 100.0)
    assert machine.gap < 1e-9 * machine.primal


# -- Margins ---------------------------------------------------------------


def test_the_distance_from_a_hyperplane_is_the_value_over_the_norm():
    """lem-svm-distance: the nearest point of the hyperplane, in a feature space one can see."""
    rng = np.random.default_rng(0)
    f = RKHSFunction(Gaussian(1.0), rng.normal(size=(4, 2)), rng.normal(size=4))
    x, b = rng.normal(size=(1, 2)), 0.4
    k_x = RKHSFunction(Gaussian(1.0), x, [1.0])
    value = f(x)[0] + b
    foot = k_x - (value / norm(f) ** 2) * f
    assert np.isclose(inner(f, foot) + b, 0, atol=1e-12)
    assert np.isclose(norm(k_x - foot), abs(value) / norm(f))
    # Other points of the hyperplane are farther away.
    for seed in range(5):
        g = RKHSFunction(Gaussian(1.0), np.random.default_rng(seed).normal(size=(3, 2)),
                         np.random.default_rng(seed).normal(size=3))
        g = g - ((inner(f, g) + b) / norm(f) ** 2) * f
        assert norm(k_x - g) >= norm(k_x - foot)


def test_the_hard_margin_of_xor_in_exact_arithmetic():
    """thm-svm-hard, ex-svm-xor: α = 1/8, f = x1 x2, b = 0, ‖f‖² = 1/2."""
    X = list(product((-1, 1), repeat=2))
    y = [a * b for a, b in X]
    K = [[(1 + Fraction(a * c + b * d)) ** 2 for c, d in X] for a, b in X]
    alpha = Fraction(1, 8)
    for i in range(4):
        assert sum(alpha * y[i] * y[j] * K[i][j] for j in range(4)) == 1
    machine = svm(Polynomial(2), np.array(X, dtype=float), y, np.inf)
    assert np.allclose(machine.alpha, 1 / 8, atol=1e-12)
    assert abs(machine.b) < 1e-12
    assert np.isclose(norm(machine.function) ** 2, 1 / 2)
    T = np.random.default_rng(0).normal(size=(20, 2))
    assert np.allclose(machine.decision(T), T[:, 0] * T[:, 1])


def separable(n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.repeat([-1, 1], n // 2)
    return X + 2.5 * y[:, None], y


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_the_hard_margin_is_the_widest_street(seed):
    """thm-svm-hard: the constraints hold, and no direction and offset has a larger margin."""
    X, y = separable(seed=seed)
    machine = svm(Linear(), X, y, np.inf)
    w = (machine.alpha * y) @ X
    assert np.allclose(machine.margins, y * (X @ w + machine.b))
    assert machine.margins.min() >= 1 - 1e-9
    assert np.allclose(machine.margins[machine.support], 1, atol=1e-6)
    angles = np.linspace(0, 2 * np.pi, 720, endpoint=False)
    values = X @ np.array([np.cos(angles), np.sin(angles)])
    half_widths = (values[y > 0].min(axis=0) - values[y < 0].max(axis=0)) / 2
    margin = 1 / np.linalg.norm(w)
    assert half_widths.max() <= margin * (1 + 1e-9)
    # The best of 720 angles is off by at most half a degree and the spread of the points.
    assert half_widths.max() >= margin - 0.005 * np.abs(X).max() * 2


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_the_street_is_as_wide_as_the_distance_of_the_convex_hulls(seed):
    """thm-svm-hulls, with the distance by Frank and Wolfe's method as a bound from both sides."""
    X, y = separable(seed=seed)
    machine = svm(Linear(), X, y, np.inf)
    width = 2 / norm(machine.function)
    p, q = X[y > 0][0], X[y < 0][0]
    for step in range(400):
        d = p - q
        P, Q = X[y > 0][np.argmin(X[y > 0] @ d)], X[y < 0][np.argmax(X[y < 0] @ d)]
        move = (P - Q) - d
        t = np.clip(-(d @ move) / max(move @ move, 1e-300), 0, 1)
        p, q = p + t * (P - p), q + t * (Q - q)
    assert width <= np.linalg.norm(p - q) * (1 + 1e-9)
    assert width >= np.linalg.norm(p - q) * (1 - 0.05)
    bridge = (machine.alpha * y) @ X / (machine.alpha.sum() / 2)
    assert np.isclose(np.linalg.norm(bridge), width)


def test_separability_agrees_with_linear_programming():
    """thm-svm-hulls: the hulls are disjoint if and only if a hard margin exists."""
    found = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(6, 2)), rng.permutation([-1, -1, -1, 1, 1, 1])
        A = -np.column_stack([y[:, None] * X, y])
        possible = linprog(np.zeros(3), A_ub=A, b_ub=-np.ones(6), bounds=(None, None)).success
        found.add(possible)
        if possible:
            assert svm(Linear(), X, y, np.inf).gap < 1e-9
        else:
            with pytest.raises(ValueError, match="^C = inf asks for classes"):
                svm(Linear(), X, y, np.inf)
    assert found == {True, False}


def test_a_large_C_is_a_hard_margin_and_a_smaller_one_is_not():
    """cor-svm-large: from C = max α_i on."""
    X, y = separable()
    hard = svm(Linear(), X, y, np.inf)
    top = hard.alpha.max()
    for C in (top, 10 * top, 1e12, 1e100):
        soft = svm(Linear(), X, y, C)
        assert np.allclose(soft.decision(X), hard.decision(X), atol=1e-6)
        assert soft.C == C and soft.slack.max() < 1e-6
        assert soft.gap <= 1e-9 * soft.primal
    less = svm(Linear(), X, y, 0.9 * top)
    assert norm(less.function) < norm(hard.function) * (1 - 1e-3)


def test_inseparable_data_cost_at_least_2C():
    """cor-svm-large: the total slack is at least 2."""
    X, y = sample(noise=1.0)
    for C in (0.1, 10.0, 1000.0):
        machine = svm(Linear(), X, y, C)
        assert machine.slack.sum() >= 2 and machine.primal >= 2 * C
    # Two contradicting copies attain it.
    tight = svm(Gaussian(1.0), [0.0, 0.0], [1, -1], 3.0)
    assert np.isclose(tight.primal, 6.0) and np.isclose(tight.slack.sum(), 2.0)


def test_a_hard_margin_without_offset():
    """thm-svm-hulls, the remark on one hull: the smallest f with y_i f(x_i) >= 1."""
    X, y = sample(12, noise=0.0)
    machine = svm(Gaussian(0.5), X, y, np.inf, offset=False)
    assert machine.b == 0 and machine.b_interval == (0.0, 0.0)
    K = Gaussian(0.5)(X)
    assert np.allclose(machine.margins, y * (K @ (machine.alpha * y)))
    assert machine.margins.min() >= 1 - 1e-12
    # An optimiser that knows nothing of duality.
    found = minimize(lambda c: c @ K @ c / 2, y / 1.0, jac=lambda c: K @ c, method="SLSQP",
                     constraints={"type": "ineq", "fun": lambda c: y * (K @ c) - 1,
                                  "jac": lambda c: y[:, None] * K},
                     options={"ftol": 1e-14, "maxiter": 500})
    assert np.isclose(machine.primal, found.fun, rtol=1e-6)


# -- The gap -----------------------------------------------------------------


@pytest.mark.parametrize("nu", [0.3, 0.4])
def test_the_gap_of_weights_that_are_not_the_best(nu, monkeypatch):
    """lem-svm-gap: P - D, for weights a little towards equal ones, with price on points outside
    the margin and room on points inside."""
    X, y = sample(60)
    equal = np.where(y > 0, 1 / (y > 0).sum(), 1 / (y < 0).sum())

    def programme(*args, **kwargs):
        found = solve_qp(*args, **kwargs)
        return replace(found, x=found.x + 1e-7 * (equal - found.x))

    best = nu_svm(Gaussian(1.0), X, y, nu)
    monkeypatch.setattr(sys.modules[svm.__module__], "solve_qp", programme)
    machine = nu_svm(Gaussian(1.0), X, y, nu)
    assert machine.gap > 1e-8 * machine.primal > 100 * best.gap
    assert np.isclose(machine.gap, machine.primal - machine.dual, rtol=1e-4, atol=0)


@given(seeds, st.sampled_from([0.01, 1.0, 30.0]), st.booleans())
@settings(max_examples=30, deadline=None)
def test_the_gap_is_a_sum_over_points(seed, C, offset):
    """lem-svm-gap: both sides, for functions and weights that are not optimal."""
    rng = np.random.default_rng(seed)
    X, y = sample(15, seed=seed)
    k = Gaussian(0.8)
    f = RKHSFunction(k, rng.normal(size=(6, 2)), rng.normal(size=6))
    b = rng.normal() if offset else 0.0
    alpha = balanced(rng, y, C) if offset else rng.uniform(0, C, size=15)
    m = y * (f(X) + b)
    terms = (C - alpha) * np.maximum(0, 1 - m) + alpha * np.maximum(0, m - 1)
    away = norm(f - RKHSFunction(k, X, alpha * y)) ** 2 / 2
    left = primal(f, b, X, y, C) - dual(k, alpha, X, y)
    assert (terms >= 0).all()
    # Sums of about 15² products of numbers up to C², C and |m|.
    assert np.isclose(left, away + terms.sum(), rtol=1e-10, atol=1e-12 * (1 + C) ** 2 * 225)


@given(seeds, st.sampled_from([1e-5, 0.03, 1.0, 100.0]), st.booleans(),
       st.sampled_from([Gaussian(0.7), Linear(), Polynomial(3), Laplace(1.0)]))
@settings(max_examples=40, deadline=None)
def test_the_record_holds_what_it_says(seed, C, offset, kernel):
    """thm-svm-dual: P, D, the gap, f and b, recomputed from functions of other chapters."""
    X, y = sample(25, seed=seed)
    machine = svm(kernel, X, y, C, offset=offset)
    alpha, f, b = machine.alpha, machine.function, machine.b
    assert alpha.min() >= 0 and alpha.max() <= C
    if offset:
        assert abs(alpha @ y) <= 1e-12 * alpha.sum()
    else:
        assert b == 0
    assert len(f.points) == len(machine.support) == np.sum(alpha > 0)
    assert np.allclose(f.weights, (alpha * y)[machine.support])
    assert np.array_equal(f.points, X[machine.support])
    size = kernel.diag(X).max()
    assert np.allclose(machine.margins, y * (f(X) + b), atol=1e-10 * (1 + alpha.sum() * size))
    P, D = primal(f, b, X, y, C), dual(kernel, alpha, X, y)
    assert np.isclose(machine.primal, P) and np.isclose(machine.dual, D)
    assert machine.gap >= 0
    # P - D loses what P and D have in common, which is all but rounding.
    assert abs(machine.gap - (P - D)) <= 1e-11 * (P + alpha.sum())
    assert machine.gap <= 1e-10 * P
    assert np.allclose(machine.slack, np.maximum(0, 1 - machine.margins), atol=1e-6)
    assert (machine.slack[alpha < C] == 0).all()


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(3), Gaussian(3.0), Gaussian(0.05)],
                         ids=repr)
def test_many_points_with_and_without_a_thin_factor(kernel):
    """thm-pivoted-cholesky in the service of thm-svm-dual: the machine of the full matrix."""
    X, y = sample(320, seed=5)
    machine = svm(kernel, X, y, 1.0)
    assert machine.gap <= 1e-11 * machine.primal
    Q = np.outer(y, y) * kernel(X)
    alpha = solve_qp(Q, -np.ones(320), y, 0.0, 0.0, 1.0).x
    assert np.allclose(y * machine.function(X), Q @ alpha, atol=1e-7)


@given(seeds, st.sampled_from([0.05, 1.0, 50.0]))
@settings(max_examples=30, deadline=None)
def test_three_kinds_of_points(seed, C):
    """thm-svm-types, and the sets cover all points."""
    X, y = sample(30, seed=seed)
    machine = svm(Gaussian(0.9), X, y, C)
    m, alpha = machine.margins, machine.alpha
    tol = 1e-7
    assert np.allclose(m[machine.on_margin], 1, atol=tol)
    assert (m[machine.inside_margin] <= 1 + tol).all()
    assert (m[alpha == 0] >= 1 - tol).all()
    assert (alpha[machine.inside_margin] == C).all()
    assert np.array_equal(np.sort(np.concatenate([machine.on_margin, machine.inside_margin])),
                          machine.support)
    assert set(np.flatnonzero(machine.slack > tol)) <= set(machine.inside_margin)
    assert np.sum(m <= 0) <= machine.slack.sum() + tol


@given(seeds, st.sampled_from([0.3, 5.0]), st.booleans())
@settings(max_examples=20, deadline=None)
def test_points_without_weight_may_leave_or_move(seed, C, offset):
    """thm-svm-types, part 4."""
    X, y = sample(30, seed=seed)
    machine = svm(Gaussian(0.9), X, y, C, offset=offset)
    keep = machine.support
    few = svm(Gaussian(0.9), X[keep], y[keep], C, offset=offset)
    T = np.random.default_rng(seed).normal(size=(20, 2))
    assert np.allclose(few.function(T), machine.function(T), atol=1e-7)
    moved = X.copy()
    others = np.setdiff1d(np.arange(30), keep)
    for i in others:                           # to the place of another of its class
        moved[i] = X[others[y[others] == y[i]][0]]
    again = svm(Gaussian(0.9), moved, y, C, offset=offset)
    assert np.allclose(again.function(T), machine.function(T), atol=1e-7)


@given(seeds, st.sampled_from([0.1, 2.0]))
@settings(max_examples=20, deadline=None)
def test_the_gap_is_an_error_bar(seed, C):
    """cor-svm-error: for weights that are wrong, at points never seen."""
    rng = np.random.default_rng(seed)
    X, y = sample(20, seed=seed)
    k = 2.0 * Gaussian(0.8)
    best = svm(k, X, y, C)
    mix = rng.uniform(0.5, 1)
    alpha = mix * best.alpha + (1 - mix) * balanced(rng, y, C)
    f = RKHSFunction(k, X, alpha * y)
    b = best.b + 0.1 * rng.normal()
    gap = primal(f, b, X, y, C) - dual(k, alpha, X, y)
    T = rng.normal(size=(50, 2))
    assert (np.abs(f(T) - best.function(T)) <= np.sqrt(gap * k.diag(T)) + 1e-7).all()
    away = norm(f - RKHSFunction(k, X, best.alpha * y)) ** 2 / 2
    assert away <= primal(f, b, X, y, C) - best.primal + 1e-9
    assert away <= best.dual - dual(k, alpha, X, y) + 1e-9


# -- Other roads to the same machine --------------------------------------------


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_without_offset_it_is_the_regularised_hinge_risk(C):
    """def-c-svm, prop-svm-beta: Σ hinge + ‖f‖²/(2C)."""
    X, y = sample()
    T = np.random.default_rng(1).normal(size=(30, 2))
    f = minimize_risk(Gaussian(0.8), X, y, "hinge", 1 / (2 * C))
    machine = svm(Gaussian(0.8), X, y, C, offset=False)
    # minimize_risk stops at a relative gap of 1e-8, and f errs by its root.
    room = np.sqrt(1e-8 * machine.primal) + 1e-9
    assert np.allclose(machine.decision(T), f(T), atol=room)


def test_the_dual_in_coefficients_with_a_singular_gram_matrix():
    """prop-svm-beta: the optimum over β by a general optimiser; many β, one function."""
    X, y = np.array([0.0, 0.0, 1.0, 1.0, 2.0]), np.array([1, 1, -1, 1, -1])
    K, C = Gaussian(1.0)(X), 2.0
    assert np.linalg.matrix_rank(K) == 3
    machine = svm(Gaussian(1.0), X, y, C, offset=False)
    start = np.zeros(10)
    start[5:] = 1
    found = minimize(
        lambda v: v[:5] @ K @ v[:5] / 2 + C * v[5:].sum(), start, method="SLSQP",
        bounds=[(None, None)] * 5 + [(0, None)] * 5, options={"ftol": 1e-14, "maxiter": 500},
        constraints={"type": "ineq", "fun": lambda v: y * (K @ v[:5]) - 1 + v[5:]})
    assert np.isclose(found.fun, machine.primal, rtol=1e-8)
    assert np.allclose(K @ found.x[:5], machine.decision(X), atol=1e-4)


@pytest.mark.parametrize("kernel", [Gaussian(0.8), Linear(), Polynomial(2)])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_the_machine_of_scikit_learn(kernel, C):
    """thm-svm-dual: SVC's decision values to 1e-3, and a far smaller gap."""
    X, y = sample(80)
    T = np.random.default_rng(1).normal(size=(40, 2))
    machine = svm(kernel, X, y, C)
    peer = SVC(C=C, kernel="precomputed", tol=1e-5).fit(kernel(X), y)
    theirs = peer.decision_function(kernel(T, X))
    assert np.abs(theirs - machine.decision(T)).max() < 1e-3
    assert np.array_equal(machine.predict(T)[np.abs(theirs) > 1e-3],
                          np.where(theirs > 0, 1, -1)[np.abs(theirs) > 1e-3])
    loose = SVC(C=C, kernel="precomputed").fit(kernel(X), y)       # its default tolerance
    alpha = np.zeros(80)
    alpha[loose.support_] = np.abs(loose.dual_coef_[0])
    f = RKHSFunction(kernel, X, alpha * y)
    gap = primal(f, loose.intercept_[0], X, y, C) - dual(kernel, alpha, X, y)
    assert machine.gap < 1e-5 * gap
    assert machine.primal <= primal(f, loose.intercept_[0], X, y, C)


def test_two_points_by_hand():
    """thm-svm-offset, the example: α = min(C, 1/2), and an interval of offsets for C < 1/2."""
    for C in (0.1, 0.2, 0.49, 0.5, 0.7, 100.0):
        machine = svm(Linear(), [-1.0, 1.0], [-1, 1], C)
        a = min(C, 0.5)
        assert np.allclose(machine.alpha, a, rtol=1e-10)
        assert np.isclose(machine.decision([3.0])[0], 6 * a)
        assert np.isclose(machine.primal, 2 * C - 2 * C**2 if C < 0.5 else 0.5)
        reach = max(0.0, 1 - 2 * C)
        assert np.allclose(machine.b_interval, [-reach, reach], atol=1e-12)
        assert abs(machine.b) < 1e-12


@given(seeds, st.sampled_from([0.01, 0.05, 0.3]))
@settings(max_examples=30, deadline=None)
def test_the_interval_of_offsets(seed, C):
    """thm-svm-offset: all of it is optimal, and nothing beyond."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2))
    y = np.repeat([-1, 1], 6)
    machine = svm(Gaussian(1.0), X, y, C)
    low, high = machine.b_interval
    assert low <= machine.b <= high
    for b in (low, (low + high) / 2, high):
        assert primal(machine.function, b, X, y, C) <= machine.primal * (1 + 1e-12)
    for b in (low - 1e-3, high + 1e-3):
        assert primal(machine.function, b, X, y, C) > machine.primal * (1 + 1e-9)
    if len(machine.on_margin):
        t = y - machine.function(X)
        assert low == high and np.allclose(t[machine.on_margin], machine.b, atol=1e-9)
    else:
        assert np.isclose(machine.b, (low + high) / 2)


def test_both_kinds_of_interval_occur():
    """thm-svm-offset: balanced classes and a small C leave no margin support vector."""
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.repeat([-1, 1], 6)
    none = svm(Gaussian(1.0), X, y, 0.05)
    some = svm(Gaussian(1.0), X, y, 5.0)
    assert len(none.on_margin) == 0 and none.b_interval[0] < none.b_interval[1] - 0.1
    assert len(some.on_margin) > 0 and some.b_interval[0] == some.b_interval[1]


@given(seeds, st.sampled_from([1e-200, 1e-100, 1e-3, 7.0, 1e100, 1e200]), st.booleans())
@settings(max_examples=20, deadline=None)
def test_the_unit_of_the_kernel_does_not_matter(seed, c, offset):
    """prop-svm-scale."""
    X, y = sample(20, seed=seed)
    T = np.random.default_rng(seed).normal(size=(10, 2))
    one = svm(Gaussian(1.0), X, y, 0.7, offset=offset)
    other = svm(c * Gaussian(1.0), X, y, 0.7 / c, offset=offset)
    assert np.allclose(other.decision(T), one.decision(T), atol=1e-8)
    assert np.allclose(other.alpha * c, one.alpha, atol=1e-7)
    assert np.isclose(other.primal * c, one.primal)


@given(seeds, st.sampled_from([0.5, 0.99, 1e-3, 1e-9, 1e-250]))
@settings(max_examples=20, deadline=None)
def test_a_small_C_only_scales_the_function(seed, factor):
    """prop-svm-small: f is proportional to C below 1/(nκ)."""
    X, y = sample(21, seed=seed)
    edge = 1 / (21 * 3.0)
    one = svm(3.0 * Gaussian(1.0), X, y, 0.999 * edge)
    other = svm(3.0 * Gaussian(1.0), X, y, 0.999 * edge * factor)
    assert np.allclose(other.alpha / factor, one.alpha, rtol=1e-6, atol=1e-9 * edge)
    fewer = 1 if np.sum(y == 1) < np.sum(y == -1) else -1
    assert (other.alpha[y == fewer] == other.C).all()
    assert other.gap <= 1e-12 * other.primal
    # Just above the threshold the general programme must agree.
    above = svm(3.0 * Gaussian(1.0), X, y, 1.001 * edge)
    scaled = above.alpha / 1.001 * 0.999
    assert np.allclose(scaled, one.alpha, rtol=1e-4, atol=1e-5 * edge)


def test_equal_classes_and_a_small_C_give_the_difference_of_means():
    """prop-svm-small: all weights are C."""
    X, y = np.random.default_rng(0).normal(size=(14, 2)), np.tile([-1, 1], 7)
    machine = svm(Gaussian(1.0), X, y, 0.9 / 14)
    assert (machine.alpha == machine.C).all()
    K = Gaussian(1.0)(X)
    means = K[:, y > 0].mean(axis=1) - K[:, y < 0].mean(axis=1)
    assert np.allclose(machine.function(X), 7 * machine.C * means)


# -- The ν-SVM -------------------------------------------------------------------


def nu_primal(f, b, rho, X, y, nu):
    return inner(f, f) / 2 - nu * rho + np.maximum(0, rho - y * (f(X) + b)).mean()


@given(seeds, st.booleans())
@settings(max_examples=30, deadline=None)
def test_the_gap_of_the_nu_machine(seed, offset):
    """thm-nu-dual, part 1, and the last sentence of thm-nu-c."""
    rng = np.random.default_rng(seed)
    X, y = sample(14, seed=seed)
    k, n = Gaussian(0.8), 14
    f = RKHSFunction(k, rng.normal(size=(5, 2)), rng.normal(size=5))
    b, rho = (rng.normal() if offset else 0.0), rng.uniform(0.1, 2)
    alpha = balanced(rng, y, 1 / n) if offset else rng.uniform(0, 1 / n, size=n)
    nu, m = alpha.sum(), y * (f(X) + b)
    f_alpha = RKHSFunction(k, X, alpha * y)
    left = nu_primal(f, b, rho, X, y, nu) + norm(f_alpha) ** 2 / 2
    terms = (1 / n - alpha) * np.maximum(0, rho - m) + alpha * np.maximum(0, m - rho)
    assert np.isclose(left, norm(f - f_alpha) ** 2 / 2 + terms.sum(), atol=1e-12)
    C = 1 / (n * rho)
    c_gap = primal(f / rho, b / rho, X, y, C) - dual(k, alpha / rho, X, y)
    assert np.isclose(left, rho**2 * c_gap, atol=1e-11)


@given(seeds, st.floats(0.05, 1.0), st.booleans())
@settings(max_examples=40, deadline=None)
def test_nu_lies_between_two_fractions(seed, share, offset):
    """thm-nu-fractions, also inside each class; thm-nu-dual, part 4."""
    X, y = sample(30, seed=seed)
    k = Gaussian(0.4)
    most = 2 * min(np.sum(y == 1), np.sum(y == -1)) / 30 if offset else 1.0
    nu = share * most
    machine = nu_svm(k, X, y, nu, offset=offset)
    assert machine.nu == nu
    groups = [(np.full(30, True), nu)]
    if offset:
        groups += [(y == s, nu / 2) for s in (-1, 1)]
    else:
        assert machine.b == 0
    room = 1e-9
    for group, bound in groups:
        errors = np.sum(machine.margins[group] < 1 - 1e-7) / 30
        top = np.sum(machine.alpha[group] == machine.C) / 30
        support = np.sum(machine.alpha[group] > 0) / 30
        assert errors <= top + room and top <= bound + room and bound <= support + room
    rho = machine.rho
    assert np.isclose(rho * machine.alpha.sum(), nu)
    assert np.isclose(machine.C, 1 / (30 * rho))
    slack = np.maximum(0, 1 - machine.margins)
    assert np.isclose(nu, rho * norm(machine.function) ** 2 + slack.mean())
    # The value of the ν-SVM at its own scale, from both sides.
    f = rho * machine.function
    P = nu_primal(f, rho * machine.b, rho, X, y, nu)
    assert np.isclose(P, -norm(f) ** 2 / 2, rtol=1e-9, atol=1e-12)
    assert machine.gap <= 1e-9 * machine.primal


@given(seeds, st.floats(0.1, 0.95), st.booleans())
@settings(max_examples=20, deadline=None)
def test_a_nu_machine_is_a_C_machine_and_back(seed, share, offset):
    """thm-nu-c, parts 1 and 2."""
    X, y = sample(24, seed=seed)
    k = Gaussian(0.5)
    most = 2 * min(np.sum(y == 1), np.sum(y == -1)) / 24 if offset else 1.0
    machine = nu_svm(k, X, y, share * most, offset=offset)
    same = svm(k, X, y, machine.C, offset=offset)
    T = np.random.default_rng(seed).normal(size=(10, 2))
    assert np.allclose(same.function(T), machine.function(T), atol=1e-6)
    assert np.isclose(same.primal, machine.primal)
    low, high = same.b_interval
    assert low - 1e-6 <= machine.b <= high + 1e-6
    low, high = machine.b_interval
    assert low <= machine.b <= high
    back = nu_svm(k, X, y, same.alpha.sum() / (machine.C * 24), offset=offset)
    assert np.allclose(back.function(T) * back.rho, machine.function(T) * machine.rho, atol=1e-6)


def test_a_larger_nu_is_a_smaller_C():
    """thm-nu-c, part 3."""
    X, y = sample(40)
    most = 2 * min(np.sum(y == 1), np.sum(y == -1)) / 40
    rho = [nu_svm(Gaussian(0.8), X, y, nu).rho for nu in np.linspace(0.2, most, 15)]
    assert np.all(np.diff(rho) >= -1e-12)
    # Here all weights of one class are 0 or h, and their sum is 1 up to rounding.
    exact = nu_svm(Gaussian(0.8), X, y, np.linspace(0.2, most, 15)[-2])
    assert np.isin(exact.alpha[y < 0], [0.0, exact.C]).all()


@pytest.mark.parametrize("nu", [0.35, 0.45, 0.65])
def test_the_nu_machine_of_scikit_learn(nu):
    """thm-nu-c: NuSVC returns the machine divided by ρ. νn/2 is no whole number here."""
    X, y = sample(90, seed=2)
    T = np.random.default_rng(1).normal(size=(40, 2))
    machine = nu_svm(Gaussian(0.8), X, y, nu)
    peer = NuSVC(nu=nu, gamma=1 / (2 * 0.8**2), tol=1e-7).fit(X, y)
    assert np.abs(peer.decision_function(T) - machine.decision(T)).max() < 1e-3
    alpha = np.zeros(90)
    alpha[peer.support_] = np.abs(peer.dual_coef_[0])
    assert np.isclose(nu / alpha.sum(), machine.rho, rtol=1e-4)
    loose = NuSVC(nu=nu, gamma=1 / (2 * 0.8**2)).fit(X, y)
    alpha = np.zeros(90)
    alpha[loose.support_] = np.abs(loose.dual_coef_[0])
    rho = nu / alpha.sum()
    f = RKHSFunction(Gaussian(0.8), X, alpha * rho * y)
    gap = nu_primal(f, rho * loose.intercept_[0], rho, X, y, nu) + norm(f) ** 2 / 2
    assert machine.gap * machine.rho**2 < 1e-5 * gap


def test_the_largest_nu_is_feasible_and_more_is_unbounded():
    """thm-nu-dual: ν_max = 2 min(n₊, n₋)/n, and the ray along which P_ν falls."""
    X, y = sample(30)
    few = min(np.sum(y == 1), np.sum(y == -1))
    most, s = 2 * few / 30, 1 if np.sum(y == 1) > 15 else -1
    machine = nu_svm(Gaussian(1.0), X, y, most)
    assert (machine.alpha[y == -s] == machine.C).all()
    assert machine.gap < 1e-12
    with pytest.raises(ValueError, match=f"^nu must be a positive number of at most {most:.6g}"):
        nu_svm(Gaussian(1.0), X, y, most + 1e-6)
    zero = RKHSFunction(Gaussian(1.0), X[:1], [0.0])
    for rho in (1.0, 100.0):
        assert np.isclose(nu_primal(zero, s * rho, rho, X, y, most + 0.1), -0.1 * rho)
        assert np.isclose(nu_primal(zero, 0.0, rho, X, y, 1.1), -0.1 * rho)
    everything = nu_svm(Gaussian(1.0), X, y, 1.0, offset=False)
    assert (everything.alpha == everything.C).all()


def test_a_nu_close_to_the_largest_one():
    """thm-nu-dual: no interior is left, but the answer is continuous."""
    X, y = sample(30)
    most = 2 * min(np.sum(y == 1), np.sum(y == -1)) / 30
    exact = nu_svm(Gaussian(1.0), X, y, most)
    for less in (1e-14, 1e-11, 1e-8, 1e-5):
        near = nu_svm(Gaussian(1.0), X, y, most * (1 - less))
        f, g = exact.rho * exact.function(X), near.rho * near.function(X)
        assert np.allclose(f, g, atol=1e-6 + 10 * less)


def test_a_nu_below_two_over_n_is_the_hard_margin():
    """prop-nu-small, for separable data."""
    X, y = separable(20)
    hard = svm(Linear(), X, y, np.inf)
    for nu in (0.09, 0.03, 1e-6):
        soft = nu_svm(Linear(), X, y, nu)
        assert np.allclose(soft.decision(X), hard.decision(X), atol=1e-7)
        assert np.isclose(soft.rho, nu / hard.alpha.sum())
    # At 2/n the only support vectors may be at their bound, and ρ is not unique.
    edge = nu_svm(Linear(), X, y, 0.1)
    assert np.allclose(edge.rho * edge.function(X), 0.1 / hard.alpha.sum() * hard.function(X))
    assert edge.gap < 1e-12


def test_a_nu_that_is_too_small_is_refused_and_a_larger_one_is_not():
    """prop-nu-small: the reduced hulls meet below some ν."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=40) > 0, 1, -1)
    most = 2 * min(np.sum(y == 1), np.sum(y == -1)) / 40
    fate = []
    for nu in np.linspace(0.02, most, 12):
        try:
            nu_svm(Linear(), X, y, nu)
            fate.append(True)
        except ValueError as error:
            assert str(error).startswith(f"nu = {nu}")
            fate.append(False)
    assert fate[0] is False and fate[-1] is True
    assert fate == sorted(fate)
    # The limit is the share of the weights for a large C.
    share = svm(Linear(), X, y, 1e6).alpha.sum() / (1e6 * 40)
    assert fate == [nu > share for nu in np.linspace(0.02, most, 12)]


def test_a_nu_machine_without_margin_support_vectors():
    """thm-nu-fractions, the remark: ρ is the middle of [2, 4], and b has an interval."""
    machine = nu_svm(Linear(), [-2.0, -1.0, 1.0, 2.0], [-1, -1, 1, 1], 0.5)
    assert np.allclose(machine.alpha, [0, 1 / 3, 1 / 3, 0]) and len(machine.on_margin) == 0
    assert np.isclose(machine.C, 1 / 3) and np.isclose(machine.rho, 3 / 4)
    assert np.allclose(machine.b_interval, [-1 / 3, 1 / 3]) and abs(machine.b) < 1e-12
    assert machine.gap < 1e-15


# -- The method at work ------------------------------------------------------------


def test_a_blob_in_a_noisy_circle():
    """fig-svm-blob: a hard margin in feature space, none in the plane, and SVC's machine."""
    rng = np.random.default_rng(0)
    angle = 2 * np.pi * np.arange(50) / 50
    X = np.vstack([0.2 * rng.normal(size=(50, 2)),
                   np.column_stack([np.cos(angle), np.sin(angle)])
                   + 0.2 * rng.normal(size=(50, 2))])
    y = np.repeat([-1, 1], 50)
    machine = svm(Gaussian(np.sqrt(0.1)), X, y, np.inf)
    assert (machine.predict(X) == y).all() and machine.margins.min() >= 1 - 1e-12
    assert 4 < len(machine.support) < 60
    peer = SVC(C=1e7, gamma=5.0, tol=1e-7).fit(X, y)
    # libsvm keeps kernel values in single precision.
    assert np.allclose(peer.decision_function(X), machine.decision(X), atol=1e-3)
    with pytest.raises(ValueError, match="^C = inf"):
        svm(Linear(), X, y, np.inf)


def test_the_squared_hinge_is_a_hard_margin_with_a_delta_kernel():
    """ex-svm-squared."""
    X, y = sample(25)
    C = 0.8
    soft = svm(Gaussian(0.7) + (1 / (2 * C)) * Delta(), X, y, np.inf, offset=False)
    f = RKHSFunction(Gaussian(0.7), soft.function.points, soft.function.weights)
    g = minimize_risk(Gaussian(0.7), X, y, "squared_hinge", 1 / (2 * C))
    T = np.random.default_rng(1).normal(size=(20, 2))
    assert np.allclose(f(T), g(T), atol=1e-4)


def test_a_constant_in_the_kernel_replaces_the_offset():
    """ex-svm-constant: ‖f_a - f*‖ <= |b*|/√a."""
    X, y = sample(40)
    k, T = Gaussian(0.8), np.random.default_rng(1).normal(size=(20, 2))
    best = svm(k, X, y, 2.0)
    for a in (1.0, 100.0, 1e4):
        plain = svm(k + a * k**0, X, y, 2.0, offset=False)
        f = RKHSFunction(k, X, plain.alpha * y)
        away = norm(f - RKHSFunction(k, X, best.alpha * y))
        assert away <= abs(best.b) / np.sqrt(a) + 1e-9
    assert np.abs(plain.decision(T) - best.decision(T)).max() < 0.05


def test_leave_one_out_errors_are_at_most_the_support_vectors():
    """ex-svm-loo."""
    X, y = sample(25)
    machine = svm(Gaussian(0.8), X, y, 2.0, offset=False)
    wrong = [svm(Gaussian(0.8), np.delete(X, i, 0), np.delete(y, i), 2.0,
                 offset=False).predict(X[[i]])[0] != y[i] for i in range(25)]
    assert 0 < sum(wrong) <= len(machine.support) < 25
    assert set(np.flatnonzero(wrong)) <= set(machine.support)


def test_points_may_be_anything():
    """def-c-svm: strings and pairs, with the support vectors of their own kind."""
    words = ["uno", "due", "tre", "one", "two", "three"]
    machine = svm(FeatureKernel(substrings(1)), words, [1, 1, 1, -1, -1, -1], 10.0)
    assert set(machine.function.points) <= set(words)
    assert (machine.predict(words) == [1, 1, 1, -1, -1, -1]).all()
    pairs = Pairs(np.arange(6.0), words)
    both = TensorProduct(Gaussian(2.0), FeatureKernel(substrings(1)))
    machine = nu_svm(both, pairs, [1, 1, 1, -1, -1, -1], 0.5)
    assert machine.decision(pairs).shape == (6,)
    line = svm(Gaussian(1.0), [0.0, 1.0, 2.0], [-1, 1, 1], 1.0)
    assert line.decision([0.5]).shape == (1,)


# -- Corners ------------------------------------------------------------------------


@pytest.mark.parametrize("label", [-1, 1])
@pytest.mark.parametrize("C", [1e-9, 2.0, np.inf])
def test_one_class_with_offset_is_a_constant(label, C):
    """thm-svm-offset, the remark: f = 0 and a half-line of offsets."""
    machine = svm(Gaussian(1.0), [0.0, 1.0, 4.0], [label] * 3, C)
    assert (machine.decision([7.0, -100.0]) == label).all()
    assert (machine.predict([7.0]) == label).all()
    assert machine.primal == machine.dual == machine.gap == 0
    assert machine.b_interval == ((1.0, np.inf) if label > 0 else (-np.inf, -1.0))
    assert len(machine.support) == 0 and norm(machine.function) == 0


def test_one_class_without_offset_is_a_problem_like_any_other():
    """thm-svm-dual without offset."""
    X = [0.0, 1.0, 4.0]
    machine = svm(Gaussian(1.0), X, [1, 1, 1], np.inf, offset=False)
    assert np.allclose(machine.margins[machine.support], 1) and machine.margins.min() > 1 - 1e-12
    soft = svm(Gaussian(1.0), X, [1, 1, 1], 0.2, offset=False)
    assert (soft.alpha == 0.2).all()
    with pytest.raises(ValueError, match="^nu must be a positive number of at most 0"):
        nu_svm(Gaussian(1.0), X, [1, 1, 1], 0.1)


def test_contradicting_copies():
    """lem-svm-slack: two copies with both labels have a total slack of at least 2."""
    X, y = [0.0, 0.0, 3.0, -3.0], [1, -1, 1, -1]
    machine = svm(Gaussian(1.0), X, y, 5.0)
    assert np.allclose(machine.slack, [1, 1, 0, 0], atol=1e-9)
    assert (machine.alpha[:2] == 5.0).all() and machine.gap < 1e-12
    with pytest.raises(ValueError, match="^C = inf"):
        svm(Gaussian(1.0), X, y, np.inf)


@given(seeds, st.sampled_from([0.02, 1.0, 40.0]))
@settings(max_examples=15, deadline=None)
def test_repeated_points_count_as_a_larger_C(seed, C):
    """def-c-svm: all points twice with C/2 is all points once with C."""
    X, y = sample(15, seed=seed)
    once = svm(Gaussian(0.8), X, y, C)
    twice = svm(Gaussian(0.8), np.vstack([X, X]), np.concatenate([y, y]), C / 2)
    T = np.random.default_rng(seed).normal(size=(10, 2))
    assert np.allclose(once.function(T), twice.function(T), atol=1e-7)
    assert np.isclose(once.primal, twice.primal)


@pytest.mark.parametrize("C", [1e-300, 1e-12, 1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Gaussian(1e-3), Gaussian(100.0), Linear(),
                                    Polynomial(4)], ids=repr)
def test_the_gap_is_small_for_every_C(kernel, C):
    """thm-svm-dual, for tiny and for large C."""
    X, y = sample(50, noise=1.0)
    for offset in (True, False):
        machine = svm(kernel, X, y, C, offset=offset)
        assert machine.gap <= 1e-8 * machine.primal
        if offset:
            assert abs(machine.alpha @ y) <= 1e-10 * machine.alpha.sum()


def test_a_C_that_is_too_large_is_refused():
    """cor-svm-large: no digits are left in f, and the message names C; a smaller C has the gap of
    the theorem."""
    X, y = sample(40, noise=1.0)
    with pytest.raises(ValueError, match=r"^C = 1e\+15 is too large for these data"):
        svm(Linear(), X, y, 1e15)
    with pytest.raises(ValueError, match=r"^C = 1e\+200 is out of proportion"):
        svm(1e150 * Linear(), X, y, 1e200)
    with pytest.raises(ValueError, match=r"^C = 1e\+100 is too large for these data"):
        svm(Linear(), [[0.0, 0], [1, 0], [0, 1], [1, 1]], [1, -1, -1, 1], 1e100)
    with pytest.raises(ValueError, match="^C = 1e-300 is out of proportion"):
        svm(1e-100 * Linear(), X, y, 1e-300)
    for kernel, C in ((Linear(), 1e5), (1e150 * Linear(), 1e-145), (1e-100 * Linear(), 1e-10)):
        machine = svm(kernel, X, y, C)
        assert 0 <= machine.gap <= 1e-6 * machine.primal


def test_a_kernel_that_is_zero_at_all_points():
    """thm-svm-dual: only b is left, the majority."""
    machine = svm(Linear(), np.zeros((5, 2)), [1, 1, 1, -1, -1], 2.0)
    assert machine.b == 1 and np.isclose(machine.primal, 8.0)
    assert (machine.decision(np.zeros((2, 2))) == 1).all()
    plain = svm(Linear(), np.zeros((5, 2)), [1, 1, 1, -1, -1], 2.0, offset=False)
    assert np.isclose(plain.primal, 10.0) and plain.gap < 1e-12


def test_an_indefinite_function_breaks_weak_duality_and_is_refused():
    """thm-svm-dual needs ‖f‖² >= 0."""
    K, y = Sigmoid(1.0, 0.0)([1.0, 9.0]), np.array([-1.0, 1.0])
    alpha = np.full(2, 100.0)
    assert alpha.sum() - (alpha * y) @ K @ (alpha * y) / 2 > 200.0       # P(0, 1)
    box = FunctionKernel(lambda s, t: float(abs(s - t) <= 1))
    negative = FunctionKernel(lambda s, t: -1.0)
    empty = FunctionKernel(lambda s, t: float(s != t))
    for fit, parameter in ((svm, 1.0), (svm, np.inf), (nu_svm, 0.5)):
        for kernel in (Sigmoid(1.0, 0.0), box, negative, empty):
            with pytest.raises(ValueError, match="^kernel must be positive definite"):
                fit(kernel, [0.0, 0.8, 1.6], [-1, 1, 1], parameter)


def test_an_indefinite_function_is_refused_where_the_weights_need_no_solver():
    """thm-svm-dual: a small C, the largest ν and a single class fix the weights at once; a
    triangle is a kernel where a box is none."""
    box = FunctionKernel(lambda s, t: float(abs(s - t) <= 1))
    triangle = FunctionKernel(lambda s, t: max(0.0, 1 - abs(s - t)))
    x, even, odd = [0.0, 0.8, 1.6, 2.4], [-1, 1, -1, 1], [-1, 1, 1, 1]
    for call in (lambda k: svm(k, x, even, 0.01), lambda k: svm(k, x, odd, 0.01),
                 lambda k: svm(k, x, [1] * 4, 1.0), lambda k: nu_svm(k, x, even, 1.0),
                 lambda k: nu_svm(k, x, odd, 1.0, offset=False)):
        with pytest.raises(ValueError, match="^kernel must be positive definite"):
            call(box)
        assert abs(call(triangle).gap) <= 1e-9


def test_an_indefinite_function_does_not_hide_behind_a_thin_factor():
    """thm-pivoted-cholesky: with diagonal entries of zero the trace of what is left is zero; a
    kernel with such a diagonal is zero beside it."""
    hollow = FunctionKernel(lambda s, t: float(s == t < 10) + 0.5 * float(s != t and s + t > 40))
    labels = np.where(np.random.default_rng(0).uniform(size=300) < 0.5, 1, -1)
    with pytest.raises(ValueError, match="^kernel must be positive definite"):
        svm(hollow, np.arange(300.0), labels, 1.0)
    few = FunctionKernel(lambda s, t: float(s == t < 10))
    machine = svm(few, np.arange(300.0), labels, 1.0)
    assert abs(machine.gap) <= 1e-6 * machine.primal and machine.decision([400.0])[0] == machine.b


@pytest.mark.parametrize("seed", range(5))
def test_a_hard_margin_never_claims_more_than_it_has(seed):
    """thm-svm-hard: ‖f‖²/2 bounds the minimum from above only if all m_i >= 1."""
    X, y = separable(20, seed=seed)
    machine = svm(Linear(), X, y, np.inf)
    assert machine.margins.min() >= 1 and machine.gap <= 1e-9 * machine.primal


def test_the_record_cannot_be_changed_from_outside():
    """thm-svm-dual: a frozen record with its own arrays."""
    X, y = sample(10)
    X = X.copy()
    machine = svm(Gaussian(1.0), X, y, 1.0)
    before = machine.decision([[0.3, 0.4]])
    X[:] = 0
    assert np.array_equal(machine.decision([[0.3, 0.4]]), before)
    with pytest.raises(FrozenInstanceError):
        machine.b = 1.0
    for array in (machine.alpha, machine.margins):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    assert repr(machine) == f"SVM(Gaussian(sigma=1.0), n=10, support={len(machine.support)})"
    alpha = np.zeros(2)
    record = SVM(machine.function, 0.0, (0.0, 0.0), alpha, 1.0, np.zeros(2), 0.0, 0.0, 0.0)
    alpha[0] = 5
    assert record.alpha[0] == 0 and record.nu is None and record.rho is None
    with pytest.raises(ValueError, match="^function "):
        SVM("f", 0.0, (0.0, 0.0), alpha, 1.0, np.zeros(2), 0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="^margins "):
        SVM(machine.function, 0.0, (0.0, 0.0), alpha, 1.0, np.zeros(3), 0.0, 0.0, 0.0)
    for bad in ([np.nan], 3.0, None, [[1.0]]):
        with pytest.raises(ValueError, match="^alpha "):
            SVM(machine.function, 0.0, (0.0, 0.0), bad, 1.0, np.zeros(1), 0.0, 0.0, 0.0)


def test_a_decision_of_zero_is_called_plus_one():
    """SVM.predict."""
    machine = svm(Linear(), [-1.0, 1.0], [-1, 1], 10.0)
    assert (machine.predict([-1.0, 0.0, 1.0]) == [-1, 1, 1]).all()


# -- Fenchel duality ----------------------------------------------------------


def fenchel_pair(R, a, B, w, lam, F, gamma, f, b):
    """P and D of def-fenchel-problem for a conjugate that is 0 at γ; f and r_i as coordinates."""
    assert np.allclose(B.T @ gamma, w, atol=1e-9 * (1 + np.abs(gamma).sum()))
    f_gamma = R.T @ gamma / (2 * lam)
    P = F(a - R @ f - B @ b) + w @ b + lam * f @ f
    return P, a @ gamma - lam * f_gamma @ f_gamma


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0, np.inf])
@pytest.mark.parametrize("offset", [True, False])
def test_the_machine_solves_the_general_dual(C, offset):
    """thm-fenchel-duality with C s₊, or "never above zero"; coordinates of explicit features."""
    X, y = sample(24, seed=3)
    X = X + 2.0 * y[:, None]                       # separable
    R = y[:, None] * polynomial_features(X, 2)
    machine = svm(Polynomial(2), X, y, C, offset=offset)
    f = R.T @ machine.alpha
    B, w = (y[:, None], np.zeros(1)) if offset else (np.zeros((24, 0)), np.zeros(0))

    def F(s):
        if C == np.inf:
            assert s.max() <= 1e-8
            return 0.0
        return C * np.maximum(s, 0).sum()

    assert machine.alpha.min() >= 0 and machine.alpha.max() <= C      # F* = 0
    P, D = fenchel_pair(R, np.ones(24), B, w, 0.5, F, machine.alpha, f,
                        np.array([machine.b] * offset))
    assert np.isclose(P, machine.primal, rtol=1e-8) and np.isclose(D, machine.dual, rtol=1e-8)
    assert np.isclose(P, D, rtol=1e-7)


@pytest.mark.parametrize("share", [0.2, 0.6, 1.0])
def test_the_nu_machine_solves_the_general_dual(share):
    """thm-nu-dual as thm-fenchel-duality: free parameters b and ρ, prices 0 and -ν."""
    X, y = sample(24, seed=5)
    nu = share * 2 * min((y > 0).sum(), (y < 0).sum()) / 24
    machine = nu_svm(Polynomial(2), X, y, nu)
    rho, R = machine.rho, y[:, None] * polynomial_features(X, 2)
    gamma, B = rho * machine.alpha, np.column_stack([y, -np.ones(24)])
    assert gamma.min() >= 0 and gamma.max() <= 1 / 24 + 1e-12
    P, D = fenchel_pair(R, np.zeros(24), B, np.array([0, -nu]), 0.5,
                        lambda s: np.maximum(s, 0).sum() / 24, gamma,
                        R.T @ gamma, rho * np.array([machine.b, 1.0]))
    assert np.isclose(P, D, rtol=1e-7) and D < 0
    # One more loss forbids ρ < 0: its price α₀ <= 0 turns the equation into Σ α_i >= ν.
    more = fenchel_pair(np.vstack([R, np.zeros(R.shape[1])]), np.zeros(25),
                        np.vstack([B, [0, -1]]), np.array([0, -nu]), 0.5,
                        lambda s: np.maximum(s[:-1], 0).sum() / 24 + (0 if s[-1] >= 0 else np.inf),
                        np.append(1.5 * gamma, -0.5 * nu), R.T @ gamma,
                        rho * np.array([machine.b, 1.0]))
    assert more[0] == P and more[1] < D            # feasible with a larger sum, and worse
