"""Identities of the chapter on conditional independence."""

import copy
import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rkhs_lit import (
    ConditionalTest,
    Delta,
    Features,
    FunctionKernel,
    GammaTest,
    Gaussian,
    Laplace,
    Linear,
    Pairs,
    Polynomial,
    PrecisionWarning,
    RKHSFunction,
    RKHSOperator,
    TensorProduct,
    centre,
    conditional_covariance,
    conditional_hsic,
    conditional_independence_test,
    cross_covariance,
    hs_norm,
    hsic_biased,
    inner,
    is_characteristic,
    normalised_conditional_hsic,
    polynomial_features,
    substrings,
)
from rkhs_lit.kernels import FeatureKernel
from scipy.optimize import brentq
from scipy.stats import chi2_contingency, gamma

KERNELS = Gaussian(1.0), Laplace(1.5), Gaussian(0.8)


def triples(n=25, seed=0):
    rng = np.random.default_rng(seed)
    z, u, v = rng.normal(size=(3, n))
    return z**2 + u, z + z * u + v, z


def covariance(U, V):
    return (U - U.mean(axis=0)).T @ (V - V.mean(axis=0)) / len(U)


def grams(x, y, z, kernels=KERNELS):
    return [k(v) for k, v in zip(kernels, (x, y, z))]


def cells_of(counts):
    """A sample in which each triple occurs as often as the table says."""
    return np.array([c for c in product(*map(range, counts.shape))
                     for _ in range(counts[c])])


def observed_minus_expected(p):
    pz = p.sum(axis=(0, 1))
    q = sum(np.outer(p.sum(axis=1)[:, z], p.sum(axis=0)[:, z]) / pz[z]
            for z in range(p.shape[2]) if pz[z] > 0)
    return p.sum(axis=2) - q


# -- partial covariance -----------------------------------------------------


def regression_errors(V, Z):
    A = np.column_stack([np.ones(len(Z)), Z])
    return V - A @ np.linalg.lstsq(A, V, rcond=None)[0]


@pytest.mark.parametrize("singular", [False, True])
def test_linear_kernels_give_the_partial_covariance_as_lambda_vanishes(singular):
    """thm-partial-covariance, eq-ci-linear-error: with an error of order λ."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(50, 3)) + 2.0
    if singular:
        Z[:, 2] = Z[:, 0] - Z[:, 1]
    X, Y = (Z @ rng.normal(size=(3, 2)) + rng.normal(size=(50, 2)) for _ in range(2))
    partial = regression_errors(X, Z).T @ regression_errors(Y, Z) / 50
    formula = covariance(X, Y) - covariance(X, Z) @ np.linalg.pinv(
        covariance(Z, Z), rcond=1e-10) @ covariance(Z, Y)
    assert np.allclose(partial, formula)
    k, gaps = Linear(), []
    for lam in (1e-3, 1e-5):
        S = conditional_covariance(k, k, k, X, Y, Z, lam).values(np.eye(2), np.eye(2))
        gaps.append(np.abs(S - partial).max())
    assert gaps[1] < 0.02 * gaps[0] < 0.02
    # eps / λ = 1e-11 of rounding at most.
    assert np.isclose(conditional_hsic(k(X), k(Y), k(Z), 1e-7), np.sum(partial**2), rtol=1e-4)


def test_normal_variables_have_the_partial_covariance_at_every_z():
    """thm-partial-covariance, part 3, in fractions: condition a normal vector by Schur."""
    # Precision matrix of (X, Y | Z) = block of the inverse covariance matrix.
    Sigma = np.array([[Fraction(4), Fraction(1), Fraction(2)],
                      [Fraction(1), Fraction(3), Fraction(1)],
                      [Fraction(2), Fraction(1), Fraction(2)]])
    partial = Sigma[:2, :2] - np.outer(Sigma[:2, 2], Sigma[2, :2]) / Sigma[2, 2]
    precision = np.linalg.inv(Sigma.astype(float))[:2, :2]
    assert partial[0, 1] == 0                       # independent given Z
    assert np.allclose(np.linalg.inv(precision), partial.astype(float))


# -- the operator -----------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1e-1, 2.0]))
def test_operator_is_what_ridge_regression_leaves(seed, lam):
    """thm-conditional-limit, part 1: Cov(f, g) less a regression in explicit features."""
    x, y, z = triples(15, seed)
    F, G, E = (polynomial_features(v, 2) for v in (x, y, z))
    S = covariance(F, G) - covariance(F, E) @ np.linalg.solve(
        covariance(E, E) + lam * np.eye(3), covariance(E, G))
    k = Polynomial(2)
    operator = conditional_covariance(k, k, k, x, y, z, lam)
    assert isinstance(operator, RKHSOperator)
    got = operator.values(x, y)
    scale = np.abs(F @ S @ G.T).max() + np.abs(F).max() * np.abs(G).max()
    assert np.allclose(got, F @ S @ G.T, rtol=0, atol=1e-7 * scale)


def test_reading_maps_in_explicit_features():
    """lem-reading-maps: J_X is the matrix of the centred features over √n."""
    x, y, z = triples()
    k = Polynomial(2)
    Jx, Jy = ((F - F.mean(axis=0)) / 5 for F in (polynomial_features(v, 2) for v in (x, y)))
    assert np.sum(Jx**2) <= np.mean(k.diag(x))
    C = cross_covariance(k, k, x, y)
    assert np.allclose(C.values(x, y), polynomial_features(x, 2) @ Jx.T @ Jy
                       @ polynomial_features(y, 2).T)
    S, adjoint = (conditional_covariance(k, k, k, *v, z, 0.1) for v in ((x, y), (y, x)))
    assert np.allclose(S.adjoint().values(y, x), adjoint.values(y, x))


def test_characteristic_kernels_and_constants_give_all_functions():
    """lem-characteristic-dense: on a finite set the span of k_z and 1 has every function."""
    z = np.arange(4.0)
    for k in (Delta(), Gaussian(2.0), Laplace(0.5), Polynomial(3)):
        assert is_characteristic(k, z)
        assert np.linalg.matrix_rank(np.column_stack([k(z), np.ones(4)])) == 4
    assert not is_characteristic(Polynomial(2), z)
    assert np.linalg.matrix_rank(np.column_stack([Polynomial(2)(z), np.ones(4)])) == 3


def test_regularised_operators_approach_the_table_of_the_population():
    """thm-conditional-limit, part 2, prop-conditional-table."""
    counts = np.random.default_rng(1).integers(0, 4, size=(3, 2, 3))
    cells = cells_of(counts)
    table = observed_minus_expected(counts / counts.sum())
    for kz in (Delta(), Gaussian(0.7), Laplace(2.0)):
        gaps = [np.abs(conditional_covariance(
            Delta(), Delta(), kz, *cells.T, lam).values(range(3), range(2)) - table).max()
            for lam in (1e-2, 1e-4, 1e-6)]
        assert gaps[2] < 1e-4 and gaps[2] < 0.05 * gaps[1] < 0.05 * gaps[0]


def test_diagonal_is_the_least_squares_error_and_the_conditional_variance():
    """thm-conditional-variance: parts 1 and 2, on a finite set."""
    rng = np.random.default_rng(2)
    z = np.repeat(np.arange(4), 6)
    y = rng.normal(size=24) + z**2
    g = RKHSFunction(Gaussian(1.0), y[:3], [1.0, -2.0, 0.5])
    S = conditional_covariance(g.kernel, g.kernel, Gaussian(0.8), y, y, z, 1e-7)
    within = np.mean([np.var(g(y)[z == i]) for i in range(4)])
    assert np.isclose(inner(g, S(g)), within, rtol=1e-3)
    # Not dense: a linear kernel on Z leaves the error of a straight line.
    S = conditional_covariance(g.kernel, g.kernel, Linear(), y, y, z, 1e-8)
    line = np.mean(regression_errors(g(y), z) ** 2)
    assert np.isclose(inner(g, S(g)), line, rtol=1e-4) and line > 1.01 * within


def test_what_a_poor_kernel_leaves_is_the_unexplained_covariance():
    """thm-conditional-variance, part 3 (eq-ci-leftover)."""
    z = np.repeat([-1.0, 0.0, 1.0, 2.0], 5)
    rng = np.random.default_rng(3)
    x, y = z**2 + rng.normal(size=20), z**2 - z + rng.normal(size=20)
    S = conditional_covariance(Linear(), Linear(), Linear(), x, y, z, 1e-8)
    a, b = (np.array([v[z == t].mean() for t in z]) for v in (x, y))
    expected = np.mean((x - a) * (y - b))
    leftover = np.mean(regression_errors(a, z) * regression_errors(b, z))
    assert np.isclose(S.values([1.0], [1.0])[0, 0], expected + leftover, rtol=1e-5)
    assert abs(leftover) > 0.1


def test_conditional_mean_in_the_space_solves_the_normal_equation():
    """thm-conditional-variance, part 4: C_ZZ h = C_ZY g on a table."""
    z = np.repeat([0, 1], [3, 5])
    y = np.array([0, 0, 1, 0, 1, 1, 1, 1])
    g = RKHSFunction(Gaussian(1.0), [0.0, 1.0], [3.0, -1.0])
    means = [g(y)[z == i].mean() for i in (0, 1)]
    h = RKHSFunction(Delta(), [0, 1], means)          # h(z) = E[g(Y) | Z = z]
    Czz = cross_covariance(Delta(), Delta(), z, z)
    Czy = cross_covariance(Delta(), g.kernel, z, y)
    assert np.allclose(Czz(h)([0, 1]), Czy(g)([0, 1]))
    S = conditional_covariance(g.kernel, g.kernel, Delta(), y, y, z, 1e-9)
    assert np.isclose(inner(g, S(g)), np.var(g(y) - h(z)))


def test_form_shrinks_with_lambda_and_stays_below_the_variance():
    """ex-ci-monotone."""
    _, y, z = triples()
    g = RKHSFunction(Gaussian(1.0), y[:4], [1.0, 1.0, -1.0, 2.0])
    forms = [inner(g, conditional_covariance(g.kernel, g.kernel, Gaussian(0.5), y, y, z, lam)(g))
             for lam in (1e-4, 1e-2, 1.0, 1e3)]
    assert np.all(np.diff(forms) > 0) and 0 < forms[0] and forms[-1] < np.var(g(y))
    assert np.isclose(forms[-1], np.var(g(y)), rtol=1e-2)


# -- what zero says ---------------------------------------------------------


def exact_weights(p):
    """p_xy - Σ_z p_xz p_yz / p_z for a dictionary, in fractions."""
    def total(*at):
        return sum((v for c, v in p.items()
                    if all(a is None or a == b for a, b in zip(at, c))), Fraction(0))

    xs, ys, zs = ({c[i] for c in p} for i in range(3))
    return {(x, y): total(x, y, None) - sum(
        total(x, None, z) * total(None, y, z) / total(None, None, z) for z in zs)
        for x in xs for y in ys}


def test_zero_operator_without_conditional_independence_and_its_repair():
    """thm-conditional-zero, exm-xor: exactly, and through operators."""
    xor = {(x, (x + z) % 2, z): Fraction(1, 4) for x, z in product((0, 1), repeat=2)}
    assert set(exact_weights(xor).values()) == {0}
    pairs = exact_weights({((x, z), y, z): v for (x, y, z), v in xor.items()})
    assert sum(w**2 for w in pairs.values()) == Fraction(1, 8)
    x, y, z = np.array(list(xor)).T
    d = Delta()
    assert hs_norm(conditional_covariance(d, d, d, x, y, z, 1e-4)) < 1e-10
    S = conditional_covariance(TensorProduct(d, d), d, d, Pairs(x, z), y, z, 1e-6)
    assert np.isclose(hs_norm(S) ** 2, 1 / 8, rtol=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=6, max_size=6))
def test_conditionally_independent_tables_have_operator_zero(c):
    """thm-conditional-zero: both operators vanish, exactly."""
    pz = [Fraction(1, 3), Fraction(2, 3)]
    px = [Fraction(c[i], c[i] + c[i + 1]) for i in (0, 1)]
    py = [Fraction(c[i], c[i] + c[i + 2]) for i in (2, 3)]
    p = {(x, y, z): pz[z] * (px[z] if x else 1 - px[z]) * (py[z] if y else 1 - py[z])
         for x, y, z in product((0, 1), repeat=3)}
    assert set(exact_weights(p).values()) == {0}
    assert set(exact_weights({((x, z), y, z): v for (x, y, z), v in p.items()}).values()) == {0}


def test_product_of_characteristic_kernels_can_be_blind():
    """thm-conditional-zero, part 3, exm-signs."""
    x, z = np.array([-1.0, -1, 1, 1]), np.array([-1.0, 1, -1, 1])
    k, one = Linear(), FunctionKernel(lambda s, t: 1.0)
    blind = conditional_covariance(TensorProduct(k, k), k, k, Pairs(x, z), x, z, 1e-6)
    seeing = conditional_covariance(TensorProduct(k, one + k), k, k, Pairs(x, z), x, z, 1e-6)
    assert hs_norm(blind) < 1e-10 and np.isclose(hs_norm(seeing), 1.0)
    # The test uses the second kernel, so it sees Y = X given Z.
    x, z = np.tile(x, 10), np.tile(z, 10)
    assert conditional_independence_test(k, k, k, x, x, z).pvalue < 1e-6


# -- Gram matrices ----------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-4, 1e-2, 1.0]))
def test_gram_form_is_the_squared_norm_of_the_operator(seed, lam):
    """thm-conditional-gram, parts 1 and 2, with uncentred input."""
    x, y, z = triples(12, seed)
    S = conditional_covariance(*KERNELS, x, y, z, lam)
    value = conditional_hsic(*grams(x, y, z), lam)
    # eps / λ of rounding in the operator.
    assert np.isclose(value, hs_norm(S) ** 2, rtol=1e-6, atol=1e-12)
    Kx, Ky, Kz = map(centre, grams(x, y, z))
    Q = Kz @ np.linalg.inv(Kz + 12 * lam * np.eye(12))
    trace = np.trace(Kx @ Ky - 2 * Kx @ Q @ Ky + Kx @ Q @ Ky @ Q) / 144
    assert np.isclose(value, trace, rtol=1e-7, atol=1e-12)
    R = np.eye(12) - Q
    a, b = np.random.default_rng(seed).normal(size=(2, 12))
    a, b = a - a.mean(), b - b.mean()
    form = inner(RKHSFunction(KERNELS[0], x, a), S(RKHSFunction(KERNELS[1], y, b)))
    assert np.isclose(form, a @ Kx @ R @ Ky @ b / 12, rtol=1e-6, atol=1e-10)


def test_constant_z_gives_hsic():
    """thm-conditional-gram: with no information in Z nothing is removed."""
    x, y, z = triples()
    Kx, Ky, _ = grams(x, y, z)
    expected = hsic_biased(Kx, Ky)
    assert np.isclose(conditional_hsic(Kx, Ky, np.full((25, 25), 2.0), 0.1), expected)
    assert np.isclose(conditional_hsic(Kx, Ky, np.zeros((25, 25)), 1e-9), expected)
    found = conditional_independence_test(*KERNELS[:2], Delta(), x, y, np.zeros(25))
    assert np.isclose(found.statistic, expected)


def test_delta_kernel_on_distinct_points_shrinks_hsic():
    """thm-conditional-gram: share (nλ / (1 + nλ))² of HSIC."""
    x, y, z = triples()
    Kx, Ky, _ = grams(x, y, z)
    for lam in (1e-6, 1e-2, 3.0):
        share = (25 * lam / (1 + 25 * lam)) ** 2
        assert np.isclose(conditional_hsic(Kx, Ky, np.eye(25), lam), share * hsic_biased(Kx, Ky), atol=0)


def test_normalised_norm_in_explicit_features():
    """thm-conditional-gram, part 3."""
    x, y, z = triples()
    F, G, E = (polynomial_features(v, 2) for v in (x, y, z))

    def root(C):
        lam, V = np.linalg.eigh(C + 0.05 * np.eye(3))
        return V / np.sqrt(lam) @ V.T

    S = covariance(F, G) - covariance(F, E) @ root(covariance(E, E)) @ root(
        covariance(E, E)) @ covariance(E, G)
    V = root(covariance(F, F)) @ S @ root(covariance(G, G))
    k = Polynomial(2)
    assert np.isclose(normalised_conditional_hsic(k(x), k(y), k(z), 0.05), np.sum(V**2))


def test_normalised_norm_of_a_table_is_the_same_for_all_kernels():
    """thm-normalised-operator, part 3, eq-ci-chi-square; Pearson's χ² without Z."""
    counts = np.random.default_rng(4).integers(1, 5, size=(3, 2, 3))
    x, y, z = cells_of(counts).T
    p = counts / counts.sum()
    exact = np.sum(observed_minus_expected(p) ** 2
                   / np.outer(p.sum(axis=(1, 2)), p.sum(axis=(0, 2))))
    for k in (Delta(), Gaussian(1.0), 100.0 * Laplace(0.5)):
        assert np.isclose(normalised_conditional_hsic(k(x), k(y), k(z), 1e-8), exact, rtol=1e-4)
        chi = chi2_contingency(counts.sum(axis=2), correction=False).statistic / len(x)
        flat = np.ones((len(x), len(x)))
        assert np.isclose(normalised_conditional_hsic(k(x), k(y), flat, 1e-8), chi, rtol=1e-4)


def test_normalised_operator_is_a_contraction_with_the_stated_factorisation():
    """thm-normalised-operator, parts 1 and 2, for matrices of full rank."""
    rng = np.random.default_rng(5)
    M = rng.normal(size=(9, 9))
    Sigma = M @ M.T
    x, y, z = slice(0, 2), slice(2, 5), slice(5, 9)

    def root(C, power):
        lam, V = np.linalg.eigh(C)
        return V * lam**power @ V.T

    def V(a, b):
        return root(Sigma[a, a], -0.5) @ Sigma[a, b] @ root(Sigma[b, b], -0.5)

    assert np.linalg.norm(V(x, y), 2) <= 1
    S = Sigma[x, y] - Sigma[x, z] @ np.linalg.solve(Sigma[z, z], Sigma[z, y])
    given = V(x, y) - V(x, z) @ V(z, y)
    assert np.allclose(root(Sigma[x, x], 0.5) @ given @ root(Sigma[y, y], 0.5), S)
    # A sample with this covariance: the function has never seen the two factors.
    points = root(Sigma, 0.5) @ np.hstack([np.eye(9), -np.eye(9)]) * 3.0
    k = Linear()
    value = normalised_conditional_hsic(*(k(points[s].T) for s in (x, y, z)), 1e-9)
    assert np.isclose(value, np.sum(given**2), rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_values_scale_with_the_kernels(scale):
    """eq-conditional-hsic: bilinear in K_x and K_y, and homogeneous in (K_z, λ)."""
    x, y, z = triples()
    Kx, Ky, Kz = grams(x, y, z)
    value = conditional_hsic(Kx, Ky, Kz, 0.01)
    assert np.isclose(conditional_hsic(scale * Kx, Ky, Kz, 0.01) / scale, value)
    assert np.isclose(conditional_hsic(Kx, scale * Ky, Kz, 0.01) / scale, value)
    assert np.isclose(conditional_hsic(Kx, Ky, scale * Kz, scale * 0.01), value)
    kx, ky, kz = KERNELS
    one = conditional_independence_test(kx, ky, kz, x, y, z, lam=0.01)
    two = conditional_independence_test(scale * kx, ky, scale * kz, x, y, z, lam=scale * 0.01)
    assert np.isclose(one.pvalue, two.pvalue)
    assert np.isclose(one.statistic, two.statistic / scale)
    assert np.isclose(one.std, two.std / scale)


# -- the test ---------------------------------------------------------------


def residual_matrices(kernels, x, y, z, lam):
    """S, A, B and w of prop-residual-statistic, as they are written there."""
    n, (Kx, Ky, Kz) = len(x), grams(x, y, z, kernels)
    S = centre(n * lam * np.linalg.inv(centre(Kz) + n * lam * np.eye(n)))
    return S, S @ Kx @ S, S @ Ky @ S, (1 + Kz / np.trace(Kz) * n) / 2


def plain_moments(M, S, B):
    """thm-ci-null, eq-ci-estimates: Σ h_i B_ii, and 2 Σ over j ≠ k of the squares."""
    G = S @ M @ S
    h = np.linalg.solve(S * S, np.diag(G))
    D = np.diag(np.diag(S @ S) ** -0.5)
    W = (G - S @ np.diag(h) @ S) * (D @ B @ D)
    return h @ np.diag(B), 2 * (np.sum(W**2) - np.sum(np.diag(W) ** 2))


@pytest.mark.parametrize("kernels", [
    KERNELS, (Linear(), Linear(), Polynomial(2)), (Polynomial(2), 3.0 * Gaussian(2.0), Linear()),
    (Gaussian(1.0), 2.0 * Laplace(1.0), 3.0 * Laplace(0.5))])
@pytest.mark.parametrize("n", [30, 300])
def test_statistic_and_moments_are_those_of_the_theorem(kernels, n):
    """prop-residual-statistic, thm-ci-null; for n = 300 smooth kernels need few columns, and
    Laplace kernels all of them."""
    x, y, z = triples(n)
    S, A, B, w = residual_matrices(kernels, x, y, z, 1e-2)
    found = conditional_independence_test(*kernels, x, y, z, lam=1e-2)
    mean, variance = np.mean([plain_moments(A * w, S, B), plain_moments(B * w, S, A)], axis=0)
    assert np.isclose(found.statistic, np.sum(A * B * w) / n**2, rtol=1e-6)
    assert np.isclose(found.mean, mean / n**2, rtol=1e-6)
    assert np.isclose(found.std, np.sqrt(variance) / n**2, rtol=1e-6)
    assert found.lam == pytest.approx(1e-2)
    assert np.isclose(found.freedom, np.trace(S) ** 2 / np.sum(S**2))
    assert isinstance(found, GammaTest) and isinstance(found, ConditionalTest)
    null = found.null_distribution
    assert np.isclose(null.mean(), found.mean) and np.isclose(null.std(), found.std)
    misfits = []
    for V in (A, B):
        g = (w / np.sqrt(np.outer(np.diag(w), np.diag(w)))) ** 4
        assert g.mean() <= 0.6
        m, v = plain_moments(g, S, V)
        misfits.append(gamma(m**2 / v, scale=v / m).sf(np.sum(V * g)))
    if found.undecided:
        assert max(misfits) < 0.01 and found.pvalue == 1
    else:
        assert max(misfits) >= 0.01 and np.isclose(null.sf(found.statistic), found.pvalue)


def test_residual_operator_has_the_stated_moments():
    """prop-residual-statistic, eq-ci-residual-operator, in explicit features."""
    x, y, z = triples()
    F, G = polynomial_features(x, 2), polynomial_features(y, 2)
    k = Polynomial(2)
    R = 0.5 * np.linalg.inv(centre(k(z)) + 0.5 * np.eye(25))      # nλ = 25 · 0.02
    E = np.column_stack([np.ones(25), polynomial_features(z, 2)
                         / np.sqrt(np.mean(k.diag(z)))]) / np.sqrt(2)
    F, G = (R @ (V - V.mean(axis=0)) for V in (F, G))
    D = np.einsum("ia,ib,ic->abc", F, E, G) / 25
    found = conditional_independence_test(k, k, k, x, y, z, lam=0.02)
    assert np.isclose(found.statistic, np.sum(D**2))


def test_null_moments_by_visiting_all_samples():
    """thm-ci-null in fractions: three errors of different sizes, 27 samples, S not a projection."""
    vectors = [(3, 0), (-1, 2), (-2, -2)]
    sizes = Fraction(1), Fraction(2), Fraction(1, 3)
    S = np.array([[Fraction(v, 7) for v in row] for row in ((4, -1, -2), (-1, 3, -1), (-2, -1, 5))])
    M = np.array([[Fraction(v) for v in row] for row in ((5, 1, 2), (1, 3, -1), (2, -1, 4))])
    G = S @ M @ S
    a, b, c = S * S                              # inverted by Cramer's rule
    h = np.array([np.cross(b, c), np.cross(c, a), np.cross(a, b)]).T / (
        a @ np.cross(b, c)) @ G.diagonal()
    hat = G - S @ np.diag(h) @ S
    assert set(hat.diagonal()) == {0} and G[0, 0] != 0
    pairs = [(j, k) for j, k in product(range(3), repeat=2) if j != k]
    total, centred, naive = [], [], []
    for s in product(range(3), repeat=3):
        eta = np.array([[size * t for t in vectors[i]] for size, i in zip(sizes, s)])
        L = eta @ eta.T
        B = S @ L @ S
        total.append(np.sum(B * M))
        centred.append(total[-1] - h @ B.diagonal())
        naive.append(M.diagonal() @ B.diagonal())
        assert centred[-1] == sum(hat[j, k] * L[j, k] for j, k in pairs)

    def mean(v):
        return sum(v) / len(v)

    norm = mean([Fraction(p * p + q * q) for p, q in vectors])
    square = mean([Fraction(p * t + q * u) ** 2 for p, q in vectors for t, u in vectors])
    assert mean(total) == sum(G[k, k] * sizes[k] ** 2 for k in range(3)) * norm
    assert mean(centred) == 0
    assert mean([v * v for v in centred]) == 2 * square * sum(
        (hat[j, k] * sizes[j] * sizes[k]) ** 2 for j, k in pairs)
    assert mean(naive) != mean(total)            # residuals taken as independent


def test_default_lam_leaves_half_of_the_degrees_of_freedom():
    """lem-ci-freedom: ν grows with λ from the residual dimension to n - 1."""
    rng = np.random.default_rng(0)
    x, y, z = rng.normal(size=80), rng.normal(size=80), rng.normal(size=(80, 3))
    k, kz = Gaussian(1.0), Gaussian(2.0)
    found = conditional_independence_test(k, k, kz, x, y, z)
    assert np.isclose(found.freedom, 40) and not found.undecided
    same = conditional_independence_test(k, k, kz, x, y, z, lam=found.lam)
    assert np.isclose(same.pvalue, found.pvalue, rtol=1e-6)
    left = [conditional_independence_test(k, k, kz, x, y, z, lam=lam).freedom
            for lam in (1e-9, 1e-7, 1e-5, 1e-3, 1e-1, 10.0, 1e4)]
    assert np.all(np.diff(left) > 0) and np.isclose(left[-1], 79, atol=0.1)
    # A linear kernel has three directions: more than half is left for every λ.
    assert np.isclose(conditional_independence_test(k, k, Linear(), x, y, z).freedom, 76)


def test_the_test_says_when_it_cannot_tell():
    """conditional_independence_test: each reason, and the neighbour case that is decided."""
    rng = np.random.default_rng(0)
    z, u, v = rng.normal(size=(3, 100))
    x, y, k = z + u / 2, z + v / 2, Gaussian(1.0)
    alike = conditional_independence_test(k, k, Delta(), x, y, z)
    assert "alike" in alike.undecided and alike.pvalue == 1
    assert "alike" in conditional_independence_test(k, k, Gaussian(1e-4), x, y, z).undecided
    groups = np.round(2 * z)                      # values that repeat
    assert not conditional_independence_test(k, k, Delta(), x, y, groups).undecided
    assert not conditional_independence_test(k, k, Delta(), x, y, np.zeros(100)).undecided
    few = conditional_independence_test(k, k, k, x, y, np.column_stack([z, u, v]), lam=1e-10)
    assert "degrees of freedom" in few.undecided and few.freedom < 10 and few.pvalue == 1
    poor = conditional_independence_test(k, k, Linear(), z**2 + u / 2, z**2 + v / 2, z)
    assert "still depend on Z" in poor.undecided and poor.pvalue == 1
    assert "still depend" in conditional_independence_test(k, k, k, x, y, z, lam=10.0).undecided
    wide = conditional_independence_test(
        k, k, Gaussian(1000.0), z**2 + u / 2, z**2 + v / 2, z)
    assert "still depend on Z" in wide.undecided
    assert not conditional_independence_test(k, k, k, x, y, z).undecided
    # One regression that fails does no harm: the product of the two errors counts.
    assert not conditional_independence_test(k, k, Linear(), z**2 + u / 2, z + v, z).undecided


@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_ten_degrees_of_freedom_are_enough(lam):
    """lem-ci-freedom: for a linear kernel of z and n points ν is between n - 2 and n - 1, and
    for a constant z it is n - 1."""
    rng, k = np.random.default_rng(0), Gaussian(1.0)
    for n in (11, 12):
        x, y, z = rng.normal(size=(3, n))
        found = conditional_independence_test(k, k, Linear(), x, y, z, lam=lam)
        assert n - 2 < found.freedom < n - 1
        assert ("fewer than 10" in found.undecided) == (n == 11)


def test_the_check_sees_a_wave_along_one_of_five_coordinates():
    """sec-ci-undecided: a wave that X and Y share, too fine for kz; it stays silent if X and Y
    are independent of Z, and if X alone has the wave."""
    rng, undecided = np.random.default_rng(0), np.zeros(3, int)
    k, kz = Gaussian(1.0), Gaussian(np.sqrt(10))
    for _ in range(30):
        z = rng.normal(size=(100, 5))
        u, v = rng.normal(size=(2, 100))
        wave = np.cos(4 * z[:, 0])
        for i, (x, y) in enumerate(((wave + u / 2, wave + v / 2), (u, v), (wave + u / 2, v))):
            found = conditional_independence_test(k, k, kz, x, y, z)
            undecided[i] += "still depend" in found.undecided and found.pvalue == 1
    assert undecided[0] >= 24 and np.all(undecided[1:] <= 2)


def test_pictures_and_small_integers_go_through_the_check():
    """sec-ci-undecided: only vectors have coordinates, whatever type of number they hold."""
    rng = np.random.default_rng(0)
    Z, u, v = rng.normal(size=(40, 3, 2)), *rng.normal(size=(2, 40))
    k, flat = Gaussian(1.0), Gaussian(2.0)
    pictures = FunctionKernel(lambda a, b: np.exp(-np.sum((a - b) ** 2) / 8))
    one = conditional_independence_test(k, k, pictures, u, v, Z, lam=1e-2)
    rows = conditional_independence_test(k, k, flat, u, v, Z.reshape(40, 6), lam=1e-2)
    assert np.isclose(one.statistic, rows.statistic) and np.isclose(one.std, rows.std)
    small = rng.choice([-128, 0, 127], size=(40, 2)).astype(np.int8)
    same = [conditional_independence_test(k, k, Delta(), u, v, z, lam=1e-2)
            for z in (small, small.astype(float))]
    assert same[0] == same[1]


def test_the_check_by_coordinates_is_that_of_the_theorem():
    """sec-ci-undecided: p-values of thm-ci-null, for any units of the coordinates; one of
    them is constant, and does not count."""
    units, verdicts = np.array([1, 1e200, 1e-200, 3, 1, 0.1]), set()
    kernels = Gaussian(1.0), Gaussian(1.0), FunctionKernel(
        lambda s, t: float(np.exp(-np.sum(((s - t) / units) ** 2) / 20)))
    for seed in range(12):
        rng = np.random.default_rng(seed)
        z = np.column_stack([rng.normal(size=(60, 5)), np.ones(60)])
        wave = (1 + seed) / 12 * np.cos(3 * z[:, 1])
        x, y = (wave + rng.normal(size=60) / 2 for _ in range(2))
        found = conditional_independence_test(*kernels, x, y, z * units, lam=1e-2)
        S, A, B, w = residual_matrices(kernels, x, y, z * units, 1e-2)
        singles = [np.exp(-np.subtract.outer(t, t) ** 2 / (2 * 0.49 * t.var()))
                   for t in z.T[:5]]
        g = (w / np.sqrt(np.outer(np.diag(w), np.diag(w)))) ** 4
        while g.mean() > 0.6:
            g = g * g

        def tails(V):
            for M in (g, *singles):
                m, v = plain_moments(M, S, V)
                yield gamma(m**2 / v, scale=v / m).sf(np.sum(V * M))

        both = max(2 * min(p, 5 * min(rest)) for p, *rest in map(tails, (A, B)))
        assert bool(found.undecided) == (both < 0.01)
        verdicts.add(bool(found.undecided))
    assert verdicts == {False, True}


@pytest.mark.parametrize("coordinates", [False, True])
def test_the_two_ways_to_check_share_the_level(coordinates):
    """sec-ci-undecided: a wave along one coordinate, or a wave of the sum of all, is made so
    strong that 2 min(p, d min p_j) is a bit more or less than 1 %: factors 1 and 4 are refuted."""
    rng, k = np.random.default_rng(3), Gaussian(1.0)
    kz = Gaussian(2.0 if coordinates else 0.8)
    z = rng.normal(size=(80, 3))
    u, v = rng.normal(size=(2, 80)) / 2
    wave = np.cos(3 * z[:, 1]) if coordinates else np.cos(2 * z.sum(axis=1))
    singles = [np.exp(-np.subtract.outer(t, t) ** 2 / (2 * 0.49 * t.var())) for t in z.T]

    def both(strength):
        x, y = strength * wave + u, strength * wave + v
        S, A, B, w = residual_matrices((k, k, kz), x, y, z, 0.1)
        g = (w / np.sqrt(np.outer(np.diag(w), np.diag(w)))) ** 4
        while g.mean() > 0.6:
            g = g * g
        found = []
        for V in (A, B):
            moments = [plain_moments(M, S, V) for M in (g, *singles)]
            p, *rest = [gamma(m**2 / v, scale=v / m).sf(np.sum(V * M))
                        for M, (m, v) in zip((g, *singles), moments)]
            found.append((2 * p, 2 * 3 * min(rest)))
        larger = max(found, key=min)
        assert (larger[1] < larger[0]) == coordinates or min(larger) > 0.1
        return min(larger)

    for level in (0.014, 0.007):
        strength = brentq(lambda s: np.log(both(s) / level), 0.0, 5.0, rtol=1e-6)
        found = conditional_independence_test(
            k, k, kz, strength * wave + u, strength * wave + v, z, lam=0.1)
        assert ("still depend" in found.undecided) == (level < 0.01)


def test_the_check_works_however_small_the_residuals_are():
    """sec-ci-undecided: a rough kernel with the least λ leaves residuals of 1e-10, and what they
    do not explain shows all the same."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 10))
    u, v = rng.normal(size=(2, 200)) / 2
    found = conditional_independence_test(
        Laplace(1.0), Laplace(1.0), Laplace(3.0), z[:, 0] + u, z[:, 0] + v, z)
    assert found.statistic < 1e-25 and "still depend" in found.undecided


@pytest.mark.parametrize("far", [2.0**27, 2.0**40])
def test_linear_kernels_keep_their_digits_far_from_zero(far):
    """lem-features-moved: S K S does not change if features are moved."""
    rng, k = np.random.default_rng(0), Linear()
    z, u, v = np.round(rng.normal(size=(3, 50)) * 1024) / 1024
    near, moved = (conditional_independence_test(k, k, k, z + u + c, z + v + c, z, lam=1e-3)
                   for c in (0.0, far))
    assert np.isclose(near.statistic, moved.statistic, rtol=1e-9)
    assert np.isclose(near.pvalue, moved.pvalue, rtol=1e-6)


@pytest.mark.parametrize("d", [1, 5])
def test_level_with_fitted_residuals(d):
    """thm-ci-null: of 200 samples of size 100 at 5 %, 2 to 21 rejections have probability
    0.998 for an exact test; without the degrees of freedom there are 52 for d = 5."""
    rng, false = np.random.default_rng(0), np.zeros(2)
    for _ in range(200):
        z = rng.normal(size=(100, d))
        u, v = rng.normal(size=(2, 100))
        kz = Gaussian(np.sqrt(2 * d))
        s = z.sum(axis=1) / np.sqrt(d)
        for i, (x, y) in enumerate(((u, v), (s + u, s + v))):
            false[i] += conditional_independence_test(
                Gaussian(1.0), Gaussian(1.0), kz, x, y, z).pvalue <= 0.05
    assert np.all(false >= 2) and np.all(false <= 21)


def test_little_noise_gives_no_false_alarms():
    """sec-ci-noise: undecided with a wide kernel, decided and in order with a narrow one."""
    rng, false, undecided = np.random.default_rng(0), np.zeros(2), np.zeros(2)
    for _ in range(60):
        z, u, v = rng.normal(size=(3, 100))
        for i, width in enumerate((1.0, 0.4)):
            found = conditional_independence_test(
                Gaussian(1.0), Gaussian(1.0), Gaussian(width), z**2 + u / 20, z**2 + v / 20, z)
            false[i] += found.pvalue <= 0.05
            undecided[i] += bool(found.undecided)
    assert np.all(false <= 9) and undecided[1] <= 9      # binom.ppf(0.999, 60, 0.05) = 9


def test_level_and_power():
    """thm-ci-null: rejections at 5 % in 100 runs, with a bound of 99.9 % for the level."""
    rng, k = np.random.default_rng(0), Gaussian(1.0)
    false = right = 0
    for _ in range(100):
        z, u, v = rng.normal(size=(3, 60))
        x = np.sin(z) + u / 2
        false += conditional_independence_test(k, k, k, x, z + v / 2, z).pvalue <= 0.05
        right += conditional_independence_test(k, k, k, x, z * u + v / 2, z).pvalue <= 0.05
    assert false <= 13                    # binom.ppf(0.999, 100, 0.05) = 13
    assert right >= 80


def test_the_pair_finds_what_the_average_hides():
    """thm-conditional-zero: the test on the sample of exclusive or."""
    x, z = np.tile([0, 0, 1, 1], 10), np.tile([0, 1, 0, 1], 10)
    y = (x + z) % 2
    d = Delta()
    assert conditional_hsic(d(x), d(y), d(z), 1e-3) < 1e-12
    found = conditional_independence_test(d, d, d, x, y, z, lam=1e-8)
    # Weights ±1/8 on (x, z, y), and the kernel ½(1 + δ) on z.
    assert np.isclose(found.statistic, 1 / 16) and found.pvalue < 1e-3


def test_order_of_the_triples_and_of_x_and_y_does_not_matter():
    """ex-ci-symmetric."""
    x, y, z = triples(40)
    kx, ky, kz = KERNELS
    one = conditional_independence_test(kx, ky, kz, x, y, z)
    p = np.random.default_rng(0).permutation(40)
    for other in (conditional_independence_test(kx, ky, kz, x[p], y[p], z[p]),
                  conditional_independence_test(ky, kx, kz, y, x, z)):
        assert np.isclose(one.pvalue, other.pvalue, rtol=1e-5)
        assert np.isclose(one.statistic, other.statistic, rtol=1e-6)


def test_nothing_left_is_no_evidence():
    """conditional_independence_test: a constant variable, or a function in the space of Z."""
    x, y, z = triples()
    k = Gaussian(1.0)
    for found in (conditional_independence_test(k, k, k, np.zeros(25), y, z),
                  conditional_independence_test(k, Delta(), k, x, ["a"] * 25, z)):
        assert (found.statistic, found.pvalue, found.mean, found.std) == (0, 1, 0, 0)
        assert "nothing is left" in found.undecided


def test_residuals_that_never_meet_are_no_evidence():
    """prop-residual-statistic: W = 0 although neither X nor Y is constant."""
    k = Linear()
    found = conditional_independence_test(
        k, k, Delta(), [1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0], np.zeros(4))
    assert (found.statistic, found.pvalue) == (0, 1) and "nothing is left" in found.undecided


@pytest.mark.parametrize("place", range(3))
def test_indefinite_kernels_are_found_at_every_size(place):
    """thm-conditional-limit asks for kernels: whole matrices (n = 30) and columns (n = 300); the
    cosine of a difference is one, that of a product is none."""
    wrong = FunctionKernel(lambda s, t: float(np.cos(9 * s * t)) if s != t else 1.0)
    right = FunctionKernel(lambda s, t: float(np.cos(9 * (s - t))))
    for n in (30, 300):
        kernels, points = [Gaussian(1.0)] * 3, triples(n)
        kernels[place] = wrong
        with pytest.raises(ValueError, match=f"{('kx', 'ky', 'kz')[place]} must be positive"):
            conditional_independence_test(*kernels, *points)
        kernels[place] = right
        assert 0 <= conditional_independence_test(*kernels, *points).pvalue <= 1


def test_points_of_other_kinds_and_repeated_points():
    """DESIGN: strings and duplicates work through every estimator."""
    texts = ["aab", "ab", "abb", "b", "bba", "aab"] * 3
    k = FeatureKernel(substrings(1))
    x, y = np.repeat(np.arange(6.0), 3), np.tile([0, 1, 1], 6)
    found = conditional_independence_test(Gaussian(1.0), Delta(), k, x, y, texts, lam=0.1)
    _, A, B, w = residual_matrices((Gaussian(1.0), Delta(), k), x, y, texts, 0.1)
    assert np.isclose(found.statistic, np.sum(A * B * w) / 18**2, atol=1e-12)
    S = conditional_covariance(k, Delta(), Gaussian(1.0), texts, y, x, 0.1)
    value = conditional_hsic(k(texts), Delta()(y), Gaussian(1.0)(x), 0.1)
    assert np.isclose(hs_norm(S) ** 2, value, atol=1e-12)


# -- corners ----------------------------------------------------------------


def test_one_coordinate_is_the_same_as_a_list_of_numbers():
    """sec-ci-undecided: a table with one column has no coordinates to look at one by one."""
    k, verdicts = Gaussian(1.0), set()
    for seed in range(25):
        z, u, v = np.random.default_rng(seed).normal(size=(3, 40))
        x, y = 0.6 * z**2 + u, 0.6 * z**2 + v
        one, other = (conditional_independence_test(k, k, Linear(), x, y, Z)
                      for Z in (z, z[:, None]))
        assert one.undecided == other.undecided
        verdicts.add(bool(one.undecided))
    assert verdicts == {False, True}


@pytest.mark.parametrize(("share", "alike"), [(0.49, False), (0.505, True)])
def test_when_hardly_any_two_values_are_alike(share, alike):
    """sec-ci-undecided: (tr G)² / tr G² counts the eigenvalues of the centred matrix; it is at
    most n - 1, and half of that is too many."""
    rng, k = np.random.default_rng(0), Gaussian(1.0)
    x, y, z = rng.normal(size=(3, 40))

    def excess(sigma):
        G = centre(Gaussian(sigma)(z))
        return np.trace(G) ** 2 / np.sum(G * G) / 39 - share

    sigma = brentq(excess, 1e-4, 1.0)
    found = conditional_independence_test(k, k, Gaussian(sigma), x, y, z)
    assert ("alike" in found.undecided) == alike


@pytest.mark.parametrize(("d", "freedom"), [(10, 29), (22, 20), (35, 20)])
def test_default_lam_for_a_linear_kernel_in_many_dimensions(d, freedom):
    """lem-ci-freedom: d coordinates of z take d of n - 1 = 39 degrees of freedom as λ vanishes,
    and the default gives back what is missing to one half of n."""
    rng, k = np.random.default_rng(0), Gaussian(1.0)
    x, y, Z = rng.normal(size=40), rng.normal(size=40), rng.normal(size=(40, d))
    found = conditional_independence_test(k, k, Linear(), x, y, Z)
    assert np.isclose(found.freedom, freedom, rtol=1e-6)


@pytest.mark.parametrize(("width", "left"), [(1.5e7, False), (5e6, True)])
def test_features_that_vary_by_rounding_only_are_no_evidence(width, left):
    """prop-rounded-gram: the variance of the features is 1/width² beside their square, one."""
    rng, k = np.random.default_rng(0), Gaussian(1.0)
    x, y, z = rng.normal(size=(3, 30))
    found = conditional_independence_test(Gaussian(width), k, Linear(), x / x.std(), y, z)
    assert ("nothing is left" not in found.undecided) == left


def test_a_negative_diagonal_is_refused():
    """thm-conditional-gram: k(x, x) is a squared norm, and rounding is eight digits below."""
    good = np.diag([1.0, 2.0, 3.0])
    for least, fine in ((-1e-9, True), (-0.1, False)):
        K = np.diag([1.0, 2.0, 3.0 * least])
        if fine:
            assert np.isfinite(conditional_hsic(K, good, good, 1e-3))
        else:
            with pytest.raises(ValueError, match="^Kx must be a Gram matrix of 3 points"):
                conditional_hsic(K, good, good, 1e-3)


def test_indefinite_matrices_and_lost_lam_are_refused():
    """thm-conditional-gram: R exists, and the squared norm is not negative."""
    indefinite = np.array([[0.0, 1.0, -1.0], [1.0, 0.0, 1.0], [-1.0, 1.0, 0.0]])
    good, matrices = np.diag([1.0, 2.0, 3.0]), grams(*triples(6))
    with pytest.raises(ValueError, match="Kz must be positive definite"):
        conditional_hsic(good, good, indefinite, 1e-3)
    with pytest.raises(ValueError, match="Kx must be positive definite"):
        normalised_conditional_hsic(indefinite, good, good, 1e-3)
    sign = centre(indefinite)
    with pytest.raises(ValueError, match="Kx and Ky must be positive definite"):
        conditional_hsic(sign - np.diag(np.diag(sign)), good * 0 + np.outer(
            [1, -1, 0], [1, -1, 0]), good, 1e3)
    with pytest.raises(ValueError, match="lam must be larger"):
        conditional_independence_test(*KERNELS, *triples(10), lam=1e-15)
    with pytest.raises(ValueError, match="lam must be at least"):
        conditional_hsic(*matrices, 1e-17)
    with pytest.warns(PrecisionWarning, match="lam"):
        conditional_hsic(*matrices, 1e-15)
    with pytest.raises(ValueError, match="lam must be at least"):
        normalised_conditional_hsic(matrices[0], 1e20 * matrices[1], matrices[2], 0.1)
    with pytest.raises(ValueError, match="too large"):
        conditional_hsic(1e300 * matrices[0], 1e300 * matrices[1], matrices[2], 0.1)


def test_records_survive_pickling_and_copying():
    """thm-ci-null: the record is data; maps that were made before do as well as points."""
    x, y, z = triples()
    found = conditional_independence_test(*KERNELS, x, y, z)
    maps = [Features(k, v) for k, v in zip(KERNELS, (x, y, z))]
    for other in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found),
                  conditional_independence_test(*KERNELS, *maps)):
        assert other == found and "float64" not in repr(other)
