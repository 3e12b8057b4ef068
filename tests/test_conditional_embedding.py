"""Identities of the chapter on conditional embeddings."""

import copy
import dataclasses
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rkhs_lit import (
    ConditionalEmbedding,
    Delta,
    Features,
    Gaussian,
    GaussianEmbedding,
    Laplace,
    Linear,
    Mapped,
    Pairs,
    Polynomial,
    RKHSFunction,
    RKHSOperator,
    TensorProduct,
    conditional_embedding,
    cross_covariance,
    embedding_distance,
    embedding_leave_one_out,
    hermite_eigensystem,
    hs_norm,
    inner,
    mean_embedding,
    norm,
    one_point,
    op_norm,
    polynomial_features,
    regularised_solve,
    ridge,
    substrings,
    tensor,
    values_at,
)
from rkhs_lit.kernels import FeatureKernel
from scipy.linalg import eigh
from sklearn.kernel_ridge import KernelRidge

A, S = 0.8, 0.6                                   # Y = A X + S Z


def pairs(n=25, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, A * x + S * rng.normal(size=n)


def feature(kernel, t):
    return RKHSFunction(kernel, [t], [1.0])


def q_normal(x, z, a=A, s=S, sigma=1.0):
    v = sigma**2 + 2 * s**2
    return sigma / np.sqrt(v) * np.exp(-a**2 * np.subtract.outer(x, z) ** 2 / (2 * v))


def constant_kernel():
    return Mapped(Linear(), lambda X: np.ones(len(X)))


# -- the estimator ----------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([1e-3, 0.1, 5.0]))
def test_estimator_is_the_composition_of_regularised_operators(seed, n, lam):
    """thm-ce-estimator: C_YX (C_XX + λ)⁻¹ k_x, with operators that know no formula."""
    x, y = pairs(n, seed)
    k, l = Gaussian(0.7), Laplace(1.2)
    m = conditional_embedding(k, l, x, y, lam)
    C_xx = cross_covariance(k, k, x, x, centred=False)
    C_yx = cross_covariance(l, k, y, x, centred=False)
    for t in (0.3, -2.0):
        composed = C_yx(regularised_solve(C_xx, feature(k, t), lam))
        # Weights are at most 1/(nλ); rounding multiplies ε by that, with room.
        assert np.allclose(m(t).weights, composed.weights, rtol=1e-9, atol=1e-13 / lam)


def test_weights_solve_the_system_with_n_lambda():
    """thm-ce-estimator, part 1: (K + nλI) w = k_X(x), and not K + λI."""
    x, y = pairs(20)
    k, lam = Gaussian(1.0), 0.05
    T = np.linspace(-3, 3, 7)
    W = conditional_embedding(k, Linear(), x, y, lam).weights_at(T)
    assert W.shape == (20, 7)
    assert np.allclose((k(x) + 20 * lam * np.eye(20)) @ W, k(x, T))
    assert not np.allclose((k(x) + lam * np.eye(20)) @ W, k(x, T), atol=0.1)


def test_two_points_in_fractions():
    """thm-ce-estimator: linear kernels, x = 1, 2 and nλ = 1: (K + I)⁻¹ by hand."""
    # K + I = [[2, 2], [2, 5]], its inverse [[5, -2], [-2, 2]] / 6; k_X(3) = (3, 6).
    w = [Fraction(5 * 3 - 2 * 6, 6), Fraction(-2 * 3 + 2 * 6, 6)]
    assert w == [Fraction(1, 2), Fraction(1)]
    m = conditional_embedding(Linear(), Linear(), [1.0, 2.0], [4.0, -1.0], 0.5)
    assert np.allclose(m.weights_at([3.0])[:, 0], [float(v) for v in w])
    assert np.isclose(m(3.0)([1.0])[0], 0.5 * 4 - 1 * 1)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-2, 1.0]))
def test_estimator_is_a_matrix_in_explicit_features(seed, lam):
    """thm-ce-estimator: polynomial kernels, Q'P/n (P'P/n + λ)⁻¹."""
    x, y = pairs(15, seed)
    P, Q = polynomial_features(x, 2), polynomial_features(y, 3)
    M = Q.T @ P / 15 @ np.linalg.inv(P.T @ P / 15 + lam * np.eye(P.shape[1]))
    m = conditional_embedding(Polynomial(2), Polynomial(3), x, y, lam)
    T, V = np.array([-1.0, 0.4]), np.array([0.0, 1.0, 2.0])
    wanted = polynomial_features(V, 3) @ M @ polynomial_features(T, 2).T
    got = np.column_stack([m(t)(V) for t in T])
    assert np.allclose(got, wanted, rtol=1e-7, atol=1e-7 * np.abs(wanted).max())
    assert np.allclose(m.operator().values(V, T), wanted, rtol=1e-6,
                       atol=1e-7 * np.abs(wanted).max())


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_expectation_is_an_inner_product_and_a_ridge_fit(seed):
    """thm-ce-estimator part 2, thm-ce-ridge: four roads, one from scikit-learn."""
    rng = np.random.default_rng(seed)
    x, y = pairs(18, seed)
    k, l, lam = Gaussian(1.0), Gaussian(0.6), 0.03
    m = conditional_embedding(k, l, x, y, lam)
    T = rng.normal(size=5)
    g = RKHSFunction(l, y, rng.normal(size=18))
    roads = [m.expectation(g, T), [inner(g, m(t)) for t in T],
             ridge(k, x, g(y), 18 * lam)(T),
             g.weights @ l(y) @ np.linalg.solve(k(x) + 18 * lam * np.eye(18), k(x, T)),
             KernelRidge(alpha=18 * lam, kernel="rbf", gamma=0.5).fit(
                 x[:, None], g(y)).predict(T[:, None])]
    assert np.allclose(roads, roads[0], atol=1e-9)


def test_expectation_takes_functions_values_and_tables():
    """thm-ce-ridge: general g, as a function of the points, as numbers, as rows."""
    x, y = pairs(30)
    m = conditional_embedding(Gaussian(1.0), Gaussian(1.0), x, y, 0.01)
    T = np.array([-1.0, 0.5])
    mean = m.expectation(y, T)
    assert mean.shape == (2,)
    assert np.allclose(mean, m.weights_at(T).T @ y)
    assert np.array_equal(m.expectation(lambda Y: Y, T), mean)
    assert np.array_equal(m.expectation(list(y), T), mean)
    both = m.expectation(lambda Y: np.column_stack([Y, Y**2]), T)
    assert both.shape == (2, 2) and np.allclose(both[:, 0], mean)
    assert np.allclose(both[:, 1], m.expectation(y**2, T))
    ones = m.expectation(np.ones(30, dtype=int), T)
    assert np.allclose(ones, m.weights_at(T).sum(axis=0))
    assert np.array_equal(m.expectation(np.zeros(30), T), [0.0, 0.0])


def test_general_functions_have_no_bound_by_the_norm_and_weights_have_signs():
    """sec-ce-expectations: what is lost for indicators."""
    l = Gaussian(1.0)
    gap = norm(feature(l, 0.0) - feature(l, 1e-4))
    assert gap < 2e-4                 # yet the indicator of y <= 0 changes by 1
    x, y = pairs(40)
    m = conditional_embedding(Gaussian(1.0), l, x, y, 0.01)
    w = m.weights_at([0.3])[:, 0]
    assert w.min() < 0
    levels = np.sort(y)
    cdf = m.expectation((y[:, None] <= levels).astype(float), [0.3])[0]
    assert np.allclose(cdf, [w[y <= r].sum() for r in levels])
    assert np.diff(cdf).min() < 0     # not a distribution function


def test_operator_minimises_the_vector_valued_ridge_functional():
    """thm-ce-ridge: F(A) = F(M) + Σ‖(A - M) k_i‖² + nλ‖A - M‖²."""
    x, y = pairs(12)
    k, l, lam = Gaussian(1.0), Laplace(1.0), 0.02
    M = conditional_embedding(k, l, x, y, lam).operator()
    assert isinstance(M, RKHSOperator) and M.k == l and M.l == k

    def F(operator):
        return sum(norm(feature(l, v) - operator(feature(k, u))) ** 2
                   for u, v in zip(x, y)) + 12 * lam * hs_norm(operator) ** 2

    rng = np.random.default_rng(1)
    for scale in (1e-3, 0.3):
        D = tensor(RKHSFunction(l, [0.1, 3.0], scale * rng.normal(size=2)),
                   RKHSFunction(k, [-1.0, 5.0], rng.normal(size=2)))
        rest = sum(norm(D(feature(k, u))) ** 2 for u in x) + 12 * lam * hs_norm(D) ** 2
        assert np.isclose(F(M + D) - F(M), rest, rtol=1e-6, atol=1e-10)


def test_delta_kernel_gives_shrunken_group_means():
    """ex-ce-groups: weights 1/(n_x + nλ) in the group, 0 at an unseen x."""
    x, y = list("aabac"), [1.0, 2.0, 3.0, 4.0, 5.0]
    m = conditional_embedding(Delta(), Gaussian(1.0), x, y, 0.4)
    assert np.allclose(m.weights_at(["a", "b", "z"]).T,
                       [[0.2, 0.2, 0, 0.2, 0], [0, 0, 1 / 3, 0, 0], np.zeros(5)])
    assert norm(m("z")) == 0.0


# -- transport --------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-2, 1.0]))
def test_transport_is_the_quotient_of_operators(seed, lam):
    """thm-ce-estimator part 3, row A-8.3: C_YX (C_XX + λ)⁻¹ f, and both ways round."""
    x, y = pairs(14, seed)
    k, l = Gaussian(0.8), Laplace(1.0)
    f = RKHSFunction(k, [0.2, -1.0, 4.0], [1.0, -2.0, 0.5])
    g = RKHSFunction(l, [0.0, 0.7], [1.0, 3.0])
    m, back = conditional_embedding(k, l, x, y, lam), conditional_embedding(l, k, y, x, lam)
    C = {(u, v): cross_covariance(*p, *z, centred=False) for u, v, p, z in (
        ("x", "x", (k, k), (x, x)), ("y", "x", (l, k), (y, x)),
        ("y", "y", (l, l), (y, y)), ("x", "y", (k, l), (x, y)))}
    forth = C["y", "x"](regularised_solve(C["x", "x"], f, lam))
    assert m.transport(f).kernel == l
    tol = 1e-12 / lam
    assert np.allclose(m.transport(f).weights, forth.weights, rtol=0, atol=tol)
    assert np.allclose(m.operator()(f).weights, forth.weights, rtol=0, atol=tol)
    wanted = C["x", "y"](regularised_solve(C["y", "y"], g, lam))
    assert np.allclose(back.transport(g).weights, wanted.weights, rtol=0, atol=tol)
    assert np.allclose(back.transport(g).weights,
                       np.linalg.solve(l(y) + 14 * lam * np.eye(14), g(y)))


def test_transport_of_a_feature_is_the_embedding():
    """thm-ce-estimator: M k_x, by two methods of the record."""
    x, y = pairs(10)
    m = conditional_embedding(Gaussian(1.0), Gaussian(1.0), x, y, 0.1)
    assert np.allclose(m.transport(feature(m.k, 0.4)).weights, m(0.4).weights, atol=1e-14)


def test_transport_of_the_marginal_embedding_gives_the_other_marginal():
    """eq-ce-mixture: M μ_X = μ_Y, as λ vanishes."""
    x, y = pairs(8)
    k, l = Gaussian(0.3), Gaussian(1.0)
    gaps = [norm(conditional_embedding(k, l, x, y, lam).transport(mean_embedding(k, x))
                 - mean_embedding(l, y)) for lam in (1e-3, 1e-5, 1e-9)]
    assert gaps[2] < 1e-6 and gaps[1] < 0.05 * gaps[0]


# -- the population ---------------------------------------------------------


def table_operators(p, u, k, l, v):
    C_yx = RKHSOperator(l, v, k, u, p.T)
    C_xx = RKHSOperator(k, u, k, u, np.diag(p.sum(axis=1)))
    given = p / p.sum(axis=1, keepdims=True)
    M = RKHSOperator(l, v, k, u, np.linalg.solve(k(u), given).T)
    return C_yx, C_xx, M, given


def test_equation_of_conditional_expectations_on_tables():
    """thm-ce-equation: C_XX m_g = C_XY g and M C_XX = C_YX, on a finite set."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(8)).reshape(4, 2)
    u, v, k, l = np.array([0.0, 1.0, 2.5, 4.0]), ["a", "b"], Gaussian(1.0), Delta()
    C_yx, C_xx, M, given = table_operators(p, u, k, l, v)
    for i in range(4):
        assert np.allclose(M(feature(k, u[i]))(v), given[i])
    g = RKHSFunction(l, v, [2.0, -1.0])
    m_g = M.adjoint()(g)
    assert np.allclose(m_g(u), given @ [2.0, -1.0])
    assert norm(C_xx(m_g) - C_yx.adjoint()(g)) < 1e-12
    assert hs_norm(M @ C_xx - C_yx) < 1e-12


@pytest.mark.parametrize("k", [Gaussian(1.0), Laplace(0.7), Delta()])
def test_tables_give_the_conditional_frequencies_as_lambda_vanishes(k):
    """thm-ce-regularised part 3, with repeated points: the error falls like λ."""
    counts = np.array([[3, 1], [1, 2], [2, 3]])
    cells = [(i, j) for i in range(3) for j in range(2) for _ in range(counts[i, j])]
    x, y = np.array([0.0, 1.0, 3.0])[[c[0] for c in cells]], [c[1] for c in cells]
    given = counts / counts.sum(axis=1, keepdims=True)
    gaps = []
    for lam in (1e-3, 1e-5, 1e-7):
        m = conditional_embedding(k, Delta(), x, y, lam)
        found = np.array([m(t)([0, 1]) for t in (0.0, 1.0, 3.0)])
        gaps.append(np.abs(found - given).max())
    assert gaps[2] < 1e-5 and gaps[1] < 0.02 * gaps[0] and gaps[2] < 0.02 * gaps[1]


def test_least_constant_of_the_domination_is_the_squared_norm_of_the_operator():
    """thm-ce-domination: sup a'qa / a'ka = ‖M‖², on a finite set."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(12)).reshape(4, 3)
    u, v = np.array([0.0, 0.9, 2.0, 3.1]), np.array([0.0, 1.0, 5.0])
    k, l = Gaussian(1.0), Gaussian(2.0)
    M, given = table_operators(p, u, k, l, v)[2:]
    q = given @ l(v) @ given.T
    c = eigh(q, k(u), eigvals_only=True)[-1]
    assert np.isclose(op_norm(M) ** 2, c, rtol=1e-8)
    assert np.linalg.eigvalsh(c * k(u) - q).min() > -1e-10
    assert np.linalg.eigvalsh(0.99 * c * k(u) - q).min() < -1e-5


def test_normal_noise_around_a_line_is_dominated_up_to_a_bandwidth():
    """prop-ce-normal: bounded by σ_l/(aσ_k) on all grids if a²σ_k² <= σ_l² + 2s²."""
    def least(sigma, spacing, size=40):
        T = sigma * spacing * np.arange(-size, size + 1)
        return eigh(q_normal(T, T), Gaussian(sigma)(T), eigvals_only=True)[-1]

    border = np.sqrt(1 + 2 * S**2) / A
    for sigma in (0.7, 1.0, border):
        found = [least(sigma, h) for h in (1.0, 0.7)]
        bound = 1 / (A * sigma)
        # A grid of 81 points does not reach ω = 0, where the supremum is.
        assert 0.95 * bound < min(found) and max(found) <= bound * (1 + 1e-6)
    beyond = [least(1.2 * border, h) for h in (1.0, 0.8, 0.6)]
    assert beyond[0] < 0.5 * beyond[1] < 0.2 * beyond[2]


def test_conditional_embeddings_of_normal_pairs_have_the_stated_kernel():
    """eq-ce-normal against embeddings in closed form."""
    l = Gaussian(1.0)
    for x, z in ((0.0, 0.0), (0.3, -1.2), (2.0, 5.0)):
        mu, nu = (GaussianEmbedding(l, A * t + 7.0, S**2) for t in (x, z))
        square = (embedding_distance(mu, nu)) ** 2
        q = [q_normal([s], [t])[0, 0] for s, t in ((x, x), (z, z), (x, z))]
        assert np.isclose(square, q[0] + q[1] - 2 * q[2], atol=1e-12)


def test_regularised_population_solutions_obey_the_rates():
    """thm-ce-regularised, with the eigenvalues of thm-hermite: parts 2, 3 and 4."""
    system = hermite_eigensystem(1.0, 1.0, 40)
    lam_j = system.eigenvalues
    at_zero = GaussianEmbedding(Gaussian(1.0), 0.0, S**2)
    inside = system.coefficients(lambda t: at_zero(A * t))
    # The bump A exp(-x²/2τ²) has the squared norm A²τ²/√(2τ² - 1).
    tau2 = (1 + S**2) / A**2
    limit = np.sqrt(tau2 / np.sqrt(2 * tau2 - 1) / (1 + S**2))
    constant = system.coefficients(lambda t: np.ones(len(t)))
    norms = {}
    for name, c, size in (("in", inside, limit), ("out", constant, np.inf)):
        norms[name] = []
        for lam in (1e-1, 1e-3, 1e-5, 1e-7):
            h = lam_j / (lam_j + lam) * c
            norms[name].append(np.sqrt(np.sum(h**2 / lam_j)))
            square = np.sum((h - c) ** 2)
            assert square <= np.sum(c**2) and norms[name][-1] <= np.sqrt(np.sum(c**2) / lam)
            assert square <= lam / 4 * size**2
        assert (np.diff(norms[name]) > 0).all()
    assert np.isclose(norms["in"][-1], limit, rtol=1e-3)
    assert norms["out"][-1] > 1.2 * norms["out"][1]      # no limit in sight


def test_features_are_not_in_the_range_of_the_covariance_operator():
    """prop-ce-range: the squared norm of C⁻¹ k_x diverges for a normal X."""
    system = hermite_eigensystem(1.0, 1.0, 40)
    e = system.functions([0.7])[0]
    partial = np.cumsum(e**2 / system.eigenvalues)
    assert np.isclose(np.sum(system.eigenvalues * e**2), 1.0)
    assert partial[39] > 1e6 * partial[19]


# -- consistency ------------------------------------------------------------


@pytest.mark.parametrize("n, lam", [(100, 0.1), (400, 0.02)])
def test_error_bound_of_the_consistency_theorem_for_normal_pairs(n, lam):
    """thm-ce-consistency, eq-ce-bound: every quantity in closed form."""
    x, y = pairs(n, seed=4)
    k = Gaussian(1.0)
    m = conditional_embedding(k, k, x, y, lam)

    def gap(u, v, covariance):
        return embedding_distance(mean_embedding(k, np.column_stack([u, v])),
                                  GaussianEmbedding(k, [0.0, 0.0], covariance))

    D = gap(y, x, [[A**2 + S**2, A], [A, 1.0]]) + gap(x, x, np.ones((2, 2))) / np.sqrt(A)
    system = hermite_eigensystem(1.0, 1.0, 40)
    lam_j = system.eigenvalues
    grid = np.linspace(-9, 9, 721)
    mass = np.exp(-grid**2 / 2) / np.sqrt(2 * np.pi) / 40
    weighted = system.functions(grid).T * mass
    Q = weighted @ q_normal(grid, grid) @ weighted.T
    for t in (-1.5, 0.0, 1.0):
        e = system.functions([t])[0]
        bound = np.sqrt(np.sum(lam_j * e**2 * (lam / (lam_j + lam)) ** 2) / A)
        error = embedding_distance(m(t), GaussianEmbedding(k, A * t, S**2))
        assert error <= D / lam + bound
        # ‖M_λ k_t - μ‖ itself: ⟨M e_i, M e_j⟩ = Q_ij/(λ_i λ_j), Q_ij = E e_i(X) q e_j(X').
        shrunk = lam / (lam_j + lam) * e
        bias = np.sqrt(shrunk @ Q @ shrunk)
        assert 0.2 * bound < bias <= bound
        assert abs(error - bias) <= 0.1 * D / lam       # the first term is generous


def test_errors_fall_with_the_sample_for_normal_pairs():
    """thm-ce-consistency part 2, λ = 0.1 n^(-1/4), fixed seeds, mean of eight samples."""
    k, T = Gaussian(1.0), (-1.0, 0.0, 1.0)

    def error(n):
        return np.sqrt(np.mean([embedding_distance(
            conditional_embedding(k, k, *pairs(n, seed), 0.1 * n**-0.25)(t),
            GaussianEmbedding(k, A * t, S**2)) ** 2 for seed in range(8) for t in T]))

    small, large = error(30), error(480)
    # The bias falls at least like √λ, a factor 16^(-1/8) = 0.71.
    assert large < 0.7 * small and large < 0.12


def test_bimodal_conditionals_are_seen_where_the_mean_sees_nothing():
    """sec-ce-puzzle: a noisy circle."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=400)
    y = rng.choice([-1, 1], size=400) * np.sqrt(1 - x**2) + 0.1 * rng.normal(size=400)
    m = conditional_embedding(Gaussian(0.3), Gaussian(0.2), x, y, 3e-4)
    low, middle, high = m(0.0)([-1.0, 0.0, 1.0])
    assert min(low, high) > 0.3 and abs(middle) < 0.05
    assert abs(m.expectation(y, [0.0])[0]) < 0.2


# -- leave-one-out ----------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 9))
def test_leave_one_out_is_what_fitting_again_gives(seed, n):
    """prop-ce-loo: with the penalty nλ for n - 1 pairs, that is λn/(n - 1)."""
    x, y = pairs(n, seed)
    k, l = Gaussian(0.9), Laplace(1.0)
    lams = [0.5, 1e-3, 0.02]
    got = embedding_leave_one_out(k, l, x, y, lams)
    assert got.shape == (3, n)
    for row, lam in zip(got, lams):
        for i in range(n):
            others = np.arange(n) != i
            m = conditional_embedding(k, l, x[others], y[others], lam * n / (n - 1))
            # ε/(nλ) is 1e-12 at worst; norms of differences lose half the digits.
            assert np.isclose(row[i], norm(feature(l, y[i]) - m(x[i])) ** 2, rtol=1e-6,
                              atol=1e-8)


def test_leave_one_out_of_one_pair_is_its_own_norm():
    """prop-ce-loo, n = 1: nothing is left to predict with."""
    assert np.allclose(embedding_leave_one_out(Linear(), Linear(), [2.0], [3.0], [0.1, 1.0]),
                       [[9.0], [9.0]])


def test_leave_one_out_equals_the_matrix_formula_also_with_repeated_points():
    """eq-ce-loo: (RLR)_ii / R_ii², for a singular K and a singular L."""
    x, y = pairs(10)
    x, y = np.repeat(x, 2), np.repeat(y, 2) + np.tile([0.0, 1.0], 10)
    y[5] = y[4]
    k, l, lam = Gaussian(1.0), Gaussian(1.0), 1e-2
    R = 20 * lam * np.linalg.inv(k(x) + 20 * lam * np.eye(20))
    wanted = np.diag(R @ l(y) @ R) / np.diag(R) ** 2
    assert np.allclose(embedding_leave_one_out(k, l, x, y, [lam])[0], wanted, rtol=1e-8)


def test_leave_one_out_on_strings_is_a_vote_of_neighbours():
    """prop-ce-loo, with kernels on strings."""
    x, y = ["aa", "aa", "b", "b"], ["u", "u", "v", "w"]
    got = embedding_leave_one_out(Delta(), Delta(), x, y, [0.25])[0]
    # nλ = 1: the one neighbour predicts l/2 of its own label.
    assert np.allclose(got, [0.25, 0.25, 1.25, 1.25])


def test_error_at_a_new_pair_is_the_risk_plus_a_constant():
    """prop-ce-risk, on a table: all expectations are sums."""
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(6)).reshape(3, 2)
    u, v, k, l = np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.5]), Gaussian(1.0), Gaussian(1.0)
    given = p / p.sum(axis=1, keepdims=True)
    A_op = conditional_embedding(k, l, [0.0, 2.0, 1.0], [1.0, 0.3, -1.0], 0.1)
    new = sum(p[i, j] * norm(feature(l, v[j]) - A_op(u[i])) ** 2
              for i in range(3) for j in range(2))
    mu = [mean_embedding(l, v, given[i]) for i in range(3)]
    risk = sum(p[i].sum() * norm(mu[i] - A_op(u[i])) ** 2 for i in range(3))
    constant = 1 - sum(p[i].sum() * norm(mu[i]) ** 2 for i in range(3))
    assert np.isclose(new, risk + constant)


def test_leave_one_out_finds_a_good_penalty_for_normal_pairs():
    """sec-ce-loo: the chosen λ is nearly as good as the best of the list."""
    x, y = pairs(150, seed=2)
    k, lams = Gaussian(1.0), np.logspace(-5, 0, 11)
    chosen = embedding_leave_one_out(k, k, x, y, lams).mean(axis=1).argmin()
    errors = [np.mean([embedding_distance(conditional_embedding(k, k, x, y, lam)(t),
                                          GaussianEmbedding(k, A * t, S**2)) ** 2
                       for t in (-1.0, 0.0, 1.0)]) for lam in lams]
    assert errors[chosen] < 3 * min(errors) < 0.1 * errors[-1]


# -- what breaks ------------------------------------------------------------


def test_a_constant_in_the_kernel_keeps_the_sum_of_the_weights():
    """sec-ce-breaks: k + c 1, on independent pairs, far from the data."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 200))
    k, sums = Gaussian(1.0), []
    for c in (0.0, 1.0, 100.0):
        m = conditional_embedding(k + c * constant_kernel(), k, x, y, 1e-3)
        sums.append(m.weights_at([0.0, 20.0]).sum(axis=0))
    sums = np.array(sums)
    assert np.allclose(sums[:, 0], 1.0, atol=0.02)
    assert sums[0, 1] < 1e-6 and 0.5 < sums[1, 1] < sums[2, 1] and sums[2, 1] > 0.95


def test_the_sum_of_the_weights_is_an_embedding_in_the_space_of_constants():
    """sec-ce-breaks: weights do not depend on l; with l = 1 their sum is the estimate."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 150))
    k, T, sums = Gaussian(1.0) + constant_kernel(), [0.0, 4.0], []
    for lam in (1e-2, 1e-4, 1e-6):
        m = conditional_embedding(k, Gaussian(1.0), x, y, lam)
        judge = conditional_embedding(k, constant_kernel(), x, y, lam)
        sums.append(m.weights_at(T).sum(axis=0))
        assert np.allclose([judge(t)([9.0])[0] for t in T], sums[-1])
    assert np.all(np.diff(sums, axis=0)[:, 1] > 0) and np.max(sums) < 1.05


def test_limits_of_lambda_with_repeated_points():
    """sec-ce-breaks: by heart, the mean over repetitions, and zero."""
    x, y = np.array([0.0, 1.0, 1.0, 3.0]), np.array([1.0, 0.0, 2.0, 5.0])
    k = Gaussian(1.0)
    W = conditional_embedding(k, k, x, y, 1e-10).weights_at([0.0, 1.0])
    assert np.allclose(W, [[1, 0], [0, 0.5], [0, 0.5], [0, 0]], atol=1e-6)
    assert norm(conditional_embedding(k, k, x, y, 1e9)(1.0)) < 1e-8


def test_repeating_all_pairs_changes_nothing():
    """thm-ce-estimator: the operators of the doubled sample are the same (the n in nλ)."""
    x, y = pairs(15)
    k, l = Gaussian(1.0), Laplace(1.0)
    once = conditional_embedding(k, l, x, y, 0.03)
    twice = conditional_embedding(k, l, np.tile(x, 2), np.tile(y, 2), 0.03)
    for t in (-1.0, 0.2):
        assert np.allclose(once(t)(y), twice(t)(y), rtol=0, atol=1e-12)


# -- points of any kind, scales, records ------------------------------------


def test_points_of_any_kind():
    """thm-ce-estimator asks nothing of the sets: words, vectors, pairs."""
    words = ["station", "nation", "notion", "clarify", "notify", "modify"]
    kinds = ["noun"] * 3 + ["verb"] * 3
    m = conditional_embedding(FeatureKernel(substrings(3)), Delta(), words, kinds, 0.1)
    noun, verb = m("motion")(["noun", "verb"])
    assert noun > 2 * abs(verb)
    noun, verb = m("purify")(["noun", "verb"])
    assert verb > 2 * abs(noun)
    assert np.allclose(m.expectation(lambda Y: [w == "noun" for w in Y], ["motion"]),
                       m("motion")(["noun"]))

    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    m = conditional_embedding(Gaussian(1.0), Linear(), X, X[:, :2], 0.1)
    wanted = np.linalg.solve(Gaussian(1.0)(X) + 1.2 * np.eye(12), Gaussian(1.0)(X, X[:1]))
    assert np.allclose(m(X[0]).weights, wanted[:, 0])
    assert np.allclose(m([*X[0]]).weights, wanted[:, 0])

    tags = list("ab" * 6)
    k = TensorProduct(Gaussian(1.0), Delta())
    m = conditional_embedding(k, Linear(), Pairs(X, tags), X, 0.1)
    at = Pairs(X[:1], tags[:1])
    assert np.allclose(m(at).weights, m.weights_at(at)[:, 0])
    with pytest.raises(ValueError, match="^x must be one point"):
        m(Pairs(X[:2], tags[:2]))


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scale_of_the_kernels_does_not_matter(scale):
    """thm-ce-estimator: c·k with cλ gives the same weights; l only scales the function."""
    x, y = pairs(12)
    k = Gaussian(1.0)
    m = conditional_embedding(k, k, x, y, 0.02)
    scaled = conditional_embedding(scale * k, scale * k, x, y, scale * 0.02)
    assert np.allclose(m.weights_at([0.3]), scaled.weights_at([0.3]), rtol=1e-9)
    assert np.allclose(scaled(0.3)([0.5]) / scale, m(0.3)([0.5]), rtol=1e-9)
    ours = embedding_leave_one_out(k, k, x, y, [0.02])
    theirs = embedding_leave_one_out(scale * k, scale * k, x, y, [scale * 0.02])
    assert np.allclose(theirs / scale, ours, rtol=1e-9)


def test_one_pair_and_one_number():
    """thm-ce-estimator with n = 1: the weight k(x, t)/(k(x, x) + λ)."""
    m = conditional_embedding(Linear(), Linear(), [2.0], [3.0], 1.0)
    assert np.allclose(m.weights_at([5.0]), [[2.0]])
    assert np.isclose(m(np.float64(5.0))([1.0])[0], 6.0)
    assert np.isclose(m(np.array(5.0))([1.0])[0], 6.0)
    assert np.isclose(m(5)([1])[0], 6.0)


def test_record_is_frozen_keeps_copies_and_can_be_pickled():
    """ConditionalEmbedding: later changes of the data do not reach it."""
    x, y = pairs(6)
    m = conditional_embedding(Gaussian(1.0), Gaussian(1.0), x, y, 0.1)
    assert isinstance(m, ConditionalEmbedding)
    before = m(0.3)([0.0, 1.0])
    x[:], y[:] = 0.0, 0.0
    assert np.array_equal(m(0.3)([0.0, 1.0]), before)
    for twin in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m)):
        assert np.array_equal(twin(0.3)([0.0, 1.0]), before) and repr(twin) == repr(m)
        assert not twin.factor[0].flags.writeable
    with pytest.raises(dataclasses.FrozenInstanceError):
        m.lam = 1.0
    for array in (m.X, m.Y, m.factor[0]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    other = dataclasses.replace(m, lam=0.2)
    assert not np.allclose(other(0.3)([0.0, 1.0]), before)
    assert "n=6" in repr(m) and "lam=0.1" in repr(m)


# -- what is refused ---------------------------------------------------------

K = Gaussian(1.0)


def test_a_penalty_that_no_one_can_see_or_that_overflows_is_refused():
    """prop-ridge-rounding, for the number nλ beside K: rounding errors of K are 2^-52 of its
    size, and a penalty above them counts."""
    for lam in (0.0, 1e-18, 1.5e308):
        with pytest.raises(ValueError, match="lam"):
            conditional_embedding(K, K, [0.0, 1.0], [0.0, 1.0], lam)
        with pytest.raises(ValueError, match="lams"):
            embedding_leave_one_out(K, K, [0.0, 1.0], [0.0, 1.0], [lam, 0.1])
    for lam in (1e-14, 1e300):
        weights = conditional_embedding(K, K, [0.0, 1.0], [0.0, 1.0], lam).weights_at([0.0])
        wanted = np.linalg.solve(K([0.0, 1.0]) / lam + 2 * np.eye(2), K([0.0, 1.0], [0.0]) / lam)
        assert np.allclose(weights, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


def test_one_point_is_a_list_of_one():
    """def-synthesis, for a single point of any kind, under the caller's name."""
    for kernel, x in ((K, 0.3), (K, [0.3, 0.1]), (Delta(), "a")):
        assert np.array_equal(one_point(kernel, x).gram(), kernel([x]))
    for bad in (np.nan, "a", None, [[1.0], [2.0]]):
        with pytest.raises(ValueError, match="^y must"):
            one_point(K, bad, "y")
    with pytest.raises(ValueError, match="^x must be one point, got 2"):
        one_point(TensorProduct(K, K), Pairs([0.0, 1.0], [0.0, 1.0]))


def test_values_at_the_points():
    """thm-ce-ridge: the numbers g(y_i), however g is given; functions of other spaces are not."""
    Psi = Features(K, [0.0, 1.0, 3.0], "Y", "l")
    f = RKHSFunction(K, [0.5], [2.0])
    assert np.allclose(values_at(f, Psi), f(Psi.points))
    assert np.array_equal(values_at(np.cos, Psi), np.cos([0.0, 1.0, 3.0]))
    assert values_at(np.eye(3), Psi).shape == (3, 3)
    words, counts = (Features(Delta(), Y) for Y in (list("aba"), [1, 2, 4]))
    assert np.array_equal(values_at(lambda Y: Y**2, counts), [1, 4, 16])
    assert np.array_equal(values_at(lambda Y: [Y.count(y) for y in Y], words), [2, 1, 2])
    for bad in (RKHSFunction(Laplace(1.0), [0.0], [1.0]), RKHSFunction(K, [[0.0, 1.0]], [1.0]),
                [1.0, 2.0], [1.0] * 4, lambda Y: Y[:2], "abc", 3.0, np.ones((3, 2, 2))):
        with pytest.raises(ValueError, match=r"\bg\b"):
            values_at(bad, Psi)
    m = conditional_embedding(K, K, Psi, Psi, 0.1)
    for bad in (np.cos, RKHSFunction(Laplace(1.0), [0.0], [1.0])):
        with pytest.raises(ValueError, match="^f must"):
            m.transport(bad)


def test_large_values_have_expectations_as_long_as_these_are_numbers():
    """thm-ce-estimator, part 2, for values near the largest float."""
    x, y = pairs(5)
    m = conditional_embedding(Linear(), K, x, y, 0.1)
    assert np.allclose(m.expectation(1e308 * np.sign(x), [0.1]) / 1e308,
                       m.expectation(np.sign(x), [0.1]))
    with pytest.raises(ValueError, match="^weights are too large"):
        m.expectation(1e308 * np.sign(x), [100.0])
    with pytest.raises(ValueError, match="^f gave"):
        conditional_embedding(K, K, [0.0, 0.1, 0.2], y[:3], 1e-9).transport(
            RKHSFunction(K, [0.5], [1.7e308]))
    # The line through two points, extended to the third: ‖l_2 - 2 l_1 + l_0‖² is 6 l(y, y).
    with pytest.raises(ValueError, match="^l "):
        embedding_leave_one_out(K, 5e307 * K, [0.0, 0.1, 0.2], [0.0, 9.0, 18.0], [1e-9])


def test_a_list_of_numbers_is_an_array_for_g():
    """ConditionalEmbedding.expectation: g may compute with the numbers it is given."""
    x, y = [0.0, 1.0, 2.0], [1.0, 3.0, 2.0]
    m = conditional_embedding(Gaussian(1.0), Gaussian(1.0), x, y, 0.1)
    found = m.expectation(lambda y: y**2, [0.5])
    assert np.array_equal(found, m.expectation([1.0, 9.0, 4.0], [0.5]))


def test_an_expectation_is_a_sum_with_the_weights():
    """thm-ce-estimator, part 2: both orders of the same product, to rounding."""
    rng = np.random.default_rng(3)
    x, y, t = rng.normal(size=(3, 25))
    m = conditional_embedding(Gaussian(0.8), Gaussian(1.0), x, y, 0.05)
    assert np.allclose(m.expectation(np.sin, t), m.weights_at(t).T @ np.sin(y), rtol=1e-10,
                       atol=1e-12)
