"""Numerical identities of the chapter "COCO"."""

import copy
import pickle
import sys
from dataclasses import FrozenInstanceError
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import LinAlgError, block_diag, eigh
from scipy.optimize import minimize
from sklearn.cross_decomposition import PLSSVD

from rkhs_lit import (ConstrainedCovariance, Delta, FeatureKernel,
                      Features, FunctionKernel, Gaussian, Laplace, Linear,
                      PermutationTest, Polynomial, RKHSFunction, Sigmoid,
                      centre, coco, coco_test, cross_covariance, hs_norm,
                      inner, kernel_pca, norm, op_norm, pivoted_cholesky,
                      polynomial_features, words)

module = sys.modules["rkhs_lit.coco"]
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=20, deadline=None)
pairs_of_kernels = [(Gaussian(0.7), Laplace(1.0)),
                    (Polynomial(2), Polynomial(3)),
                    (Linear(), Gaussian(1.0))]


def covariance(c, X, Y):
    return np.cov(c.f(X), c.g(Y), bias=True)[0, 1]


def root(S):
    lam, V = np.linalg.eigh(S)
    return V * np.sqrt(np.maximum(lam, 0)) @ V.T


def range_factor(S):
    lam, V = np.linalg.eigh(S)
    kept = lam > len(S) * np.finfo(float).eps * lam[-1]
    return V[:, kept] * np.sqrt(lam[kept])


def check(c, k, l, X, Y, tol=1e-9):
    """All that the record promises."""
    assert np.isclose(covariance(c, X, Y), c.value, rtol=tol)
    assert np.allclose([norm(c.f), norm(c.g)], 1, atol=1e-8)
    assert c.f.kernel == k and c.g.kernel == l


@few
@given(seeds, st.sampled_from(pairs_of_kernels))
def test_witnesses_have_norm_one_and_covariance_coco(seed, kernels):
    """thm-coco-witnesses. Rounding: the value is at least 1e-4 of the
    kernels here, so nine digits are left."""
    rng = np.random.default_rng(seed)
    x, (k, l) = rng.normal(size=20), kernels
    y = x**2 + 0.3 * rng.normal(size=20)
    c = coco(k, l, x, y)
    check(c, k, l, x, y)
    assert np.isclose(inner(c.f, cross_covariance(k, l, x, y)(c.g)),
                      c.value)


@few
@given(seeds, st.sampled_from(pairs_of_kernels))
def test_coco_is_the_operator_norm(seed, kernels):
    """thm-coco-norm, with the bounds of eq-coco-bounds."""
    rng = np.random.default_rng(seed)
    (x, y), (k, l) = rng.normal(size=(2, 15)), kernels
    value = coco(k, l, x, y).value
    assert np.isclose(value, op_norm(cross_covariance(k, l, x, y)))
    assert np.isclose(value, coco(l, k, y, x).value)          # symmetric
    assert value <= hs_norm(cross_covariance(k, l, x, y)) * (1 + 1e-9)
    own = coco(k, k, x, x).value * coco(l, l, y, y).value
    assert value**2 <= own * (1 + 1e-9)


@few
@given(seeds)
def test_spectral_forms_agree(seed):
    """thm-coco-spectral. A root of a rounding error of 1e-16 is 1e-8:
    the forms with roots agree to six digits."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 12))
    k, l, n = Gaussian(1.0), Laplace(0.8), 12
    H = np.eye(n) - 1 / n
    K, L, Kc, Lc = k(x), l(y), H @ k(x) @ H, H @ l(y) @ H
    forms = [np.linalg.norm(root(K) @ H @ root(L), 2) / n,
             np.linalg.norm(root(Kc) @ root(Lc), 2) / n,
             np.sqrt(np.linalg.norm(root(Lc) @ Kc @ root(Lc), 2)) / n,
             np.sqrt(np.linalg.eigvals(Kc @ Lc).real.max()) / n]
    assert np.allclose(forms, coco(k, l, x, y).value, rtol=1e-6)


def test_listed_features_give_a_singular_value_of_numpy_cov():
    """thm-coco-norm, by the covariance matrix of features."""
    x, y = np.random.default_rng(1).normal(size=(2, 30))
    P, Q = polynomial_features(x, 2), polynomial_features(y, 3)
    matrix = np.cov(P.T, Q.T, bias=True)[:3, 3:]
    U, s, Vt = np.linalg.svd(matrix)
    c = coco(Polynomial(2), Polynomial(3), x, y)
    assert np.isclose(c.value, s[0])
    assert np.isclose(abs((c.f.weights @ P) @ U[:, 0]), 1)
    assert np.isclose(abs((c.g.weights @ Q) @ Vt[0]), 1)


def test_linear_kernels_agree_with_partial_least_squares():
    """thm-coco-norm; scikit-learn's PLSSVD as oracle."""
    rng = np.random.default_rng(2)
    A = rng.normal(size=(40, 3))
    B = A[:, :2] ** 2 + A[:, 1:] + 5
    c = coco(Linear(), Linear(), A, B)
    pls = PLSSVD(n_components=1, scale=False).fit(A, B)
    assert np.isclose(abs(c.f.weights @ A @ pls.x_weights_[:, 0]), 1)
    assert np.isclose(abs(c.g.weights @ B @ pls.y_weights_[:, 0]), 1)


@settings(max_examples=5, deadline=None)
@given(seeds)
def test_no_other_pair_of_functions_covaries_more(seed):
    """thm-coco-lagrange: a numerical optimiser finds the maximum."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 5))
    k, l = Gaussian(1.0), Gaussian(0.5)
    K, L = centre(k(x)), centre(l(y))

    def negative(w):
        a, b = w[:5], w[5:]
        return -a @ K @ L @ b / 5 / np.sqrt((a @ K @ a) * (b @ L @ b))

    value = coco(k, l, x, y).value
    start = rng.normal(size=(20, 10))
    assert max(-negative(w) for w in start) <= value * (1 + 1e-9)
    best = max(-minimize(negative, w).fun for w in start[:2])
    assert best <= value * (1 + 1e-9)
    assert best >= 0.5 * value            # a local maximum at least


@few
@given(seeds)
def test_witnesses_solve_the_generalised_eigenproblem(seed):
    """thm-coco-lagrange, eq-coco-eigenproblem and eq-coco-stationary:
    the multipliers agree."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 10))
    k, l, n = Gaussian(1.0), Laplace(1.0), 10
    c = coco(k, l, x, y)
    K, L = centre(k(x)), centre(l(y))
    a, b = c.f.weights, c.g.weights
    assert np.allclose(K @ L @ b / n, c.value * K @ a, atol=1e-10)
    assert np.allclose(L @ K @ a / n, c.value * L @ b, atol=1e-10)
    lam = a @ K @ L @ b / n / (a @ K @ a)
    gam = b @ L @ K @ a / n / (b @ L @ b)
    assert np.isclose(lam, gam) and np.isclose(lam, c.value)
    # Without the constraint the multipliers differ: by a factor four.
    lam = a @ K @ L @ (2 * b) / n / (a @ K @ a)
    gam = 2 * b @ L @ K @ a / n / (4 * b @ L @ b)
    assert np.isclose(lam, 4 * gam)


@few
@given(seeds)
def test_eigenvalues_on_the_range_come_in_pairs(seed):
    """thm-coco-pairs: ±σ/n, and zeros for what has no partner."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 9))
    k, l = Polynomial(3), Polynomial(2)
    F, G = range_factor(centre(k(x))), range_factor(centre(l(y)))
    core = F.T @ G / 9
    r, s = core.shape
    assert (r, s) == (3, 2)
    gamma, V = np.linalg.eigh(np.block([[np.zeros((r, r)), core],
                                        [core.T, np.zeros((s, s))]]))
    assert np.allclose(gamma, -gamma[::-1])
    assert abs(gamma[2]) < 1e-12 * gamma[-1] + 1e-15
    assert np.isclose(gamma[-1], coco(k, l, x, y).value)
    u, v = V[:r, -1], V[r:, -1]
    assert np.isclose(u @ u, v @ v)
    assert np.allclose(core @ v, gamma[-1] * u)
    assert np.allclose(core @ -v, -gamma[-1] * u)


def test_every_number_solves_the_singular_eigenproblem():
    """thm-coco-pairs, part 3: why the range is needed."""
    x, y = np.random.default_rng(3).normal(size=(2, 10))
    K, L = centre(Gaussian(1.0)(x)), centre(Gaussian(1.0)(y))
    Z = np.zeros((10, 10))
    A, B = np.block([[Z, K @ L / 10], [L @ K / 10, Z]]), block_diag(K, L)
    ones = np.concatenate([np.ones(10), np.zeros(10)])
    for gamma in (-1e6, 0.0, 1e6):
        assert np.abs(A @ ones - gamma * (B @ ones)).max() < 1e-8
    # Exact in binary numbers: the second pivot of B is 1 - 1 = 0.
    K = centre((2 * Delta())([0, 0, 1, 1]))
    B = block_diag(K, K)
    A = np.block([[0 * K, K @ K / 4], [K @ K / 4, 0 * K]])
    with pytest.raises(LinAlgError):
        eigh(A, B)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)),
                min_size=2, max_size=9))
def test_binary_variables_in_fractions(pairs):
    """exm-coco-binary, and thm-coco-pairs in exact arithmetic."""
    n = len(pairs)
    X, Y = [p[0] for p in pairs], [p[1] for p in pairs]
    p = Fraction(sum(a * b for a, b in pairs), n)
    value = 2 * abs(p - Fraction(sum(X) * sum(Y), n * n))
    c = coco(Delta(), Delta(), X, Y)
    assert np.isclose(c.value, float(value), atol=1e-14)
    if value == 0:
        assert c.value == 0.0
        return

    def centred(Z):
        D = [[Fraction(int(a == b)) for b in Z] for a in Z]
        rows = [sum(row) / n for row in D]
        mean = sum(rows) / n
        return [[D[i][j] - rows[i] - rows[j] + mean for j in range(n)]
                for i in range(n)]

    def apply(A, v):
        return [sum(a * b for a, b in zip(row, v)) for row in A]

    def half(Z):
        count = sum(Z)
        return [Fraction(1, count) if z else -Fraction(1, n - count)
                for z in Z]

    K, L, a, b = centred(X), centred(Y), half(X), half(Y)
    sign = 1 if p > Fraction(sum(X) * sum(Y), n * n) else -1
    b = [sign * w for w in b]
    for gamma, b in ((value, b), (-value, [-w for w in b])):
        assert ([w / n for w in apply(K, apply(L, b))]
                == [gamma * w for w in apply(K, a)])
        assert ([w / n for w in apply(L, apply(K, a))]
                == [gamma * w for w in apply(L, b)])


@few
@given(seeds)
def test_weights_of_one_witness_are_values_of_the_other(seed):
    """thm-coco-witnesses, eq-coco-witnesses."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 15))
    k, l = Gaussian(1.0), Laplace(1.0)
    c = coco(k, l, x, y)
    f, g = c.f(x), c.g(y)
    assert np.allclose(c.f.weights, (g - g.mean()) / (15 * c.value))
    assert np.allclose(c.g.weights, (f - f.mean()) / (15 * c.value))
    centred = f - f.mean()
    assert centred[np.abs(centred).argmax()] > 0      # the sign we chose


def test_independent_tables_and_only_they_have_coco_zero():
    """thm-coco-independence on finite sets: product tables."""
    product_sample = [(i, j) for i in range(3) for j in range(2)
                      for _ in range((i + 1) * (j + 1))]
    X, Y = [p[0] for p in product_sample], [p[1] for p in product_sample]
    for k in (Delta(), Gaussian(1.0)):
        assert coco(k, k, X, Y).value == pytest.approx(0, abs=1e-15)
        for i in range(3):
            X2, Y2 = X + [i], Y + [1]
            assert coco(k, k, X2, Y2).value > 1e-3


@pytest.mark.parametrize("points", [1, 1000])
def test_rounding_errors_are_not_taken_for_dependence(monkeypatch, points):
    """thm-coco-independence: grids are product tables. Their Gram
    matrices are singular, and rounding leaves spurious directions."""
    monkeypatch.setattr(module, "DENSE", points)
    k, l = Gaussian(1.0), Laplace(0.3)
    for m, seed in product(range(3, 9), range(3)):
        rng = np.random.default_rng(seed)
        x, y = (a.ravel() for a in np.meshgrid(rng.normal(size=m),
                                               rng.normal(size=m + 2)))
        for c in (coco(k, l, x, y), coco(k, l, x, y, tol=1e-9)):
            assert c.value == 0.0
            assert np.allclose([norm(c.f), norm(c.g)], 1)


def test_lanczos_gives_up_on_independent_data(monkeypatch):
    """prop-lanczos: no n steps to find that there is nothing."""
    monkeypatch.setattr(module, "DENSE", 1)
    calls = []
    l = FunctionKernel(lambda s, t: calls.append(1) or np.exp(-abs(s - t)))
    x, y = (a.ravel() for a in np.meshgrid(np.arange(10.0),
                                           np.arange(12.0) ** 0.5))
    assert coco(Gaussian(1.0), l, x, y).value == 0.0
    assert len(calls) < 15 * 120**2                  # not 120 products


def test_norms_of_witnesses_of_wide_kernels():
    """thm-coco-witnesses: the weights sum to zero. They are of the size
    σ, so that σ² n² ε = 1e-3 of the norm is lost when it is computed."""
    x, k = np.linspace(-1, 1, 6), Gaussian(1e5)
    c = coco(k, k, x, x)
    assert np.isclose(1e10 * c.value, np.var(x), rtol=1e-4)
    assert np.allclose([norm(c.f), norm(c.g)], 1, atol=1e-3)
    w = c.f.weights
    assert abs(w.sum()) < 1e-12 * np.abs(w).sum()


def test_kernels_that_are_not_characteristic_miss_dependence():
    """thm-coco-independence: the assumption is needed."""
    t = np.linspace(-1, 1, 21)
    assert coco(Linear(), Linear(), t, t**2).value == 0
    assert coco(Polynomial(2), Linear(), t, t**2).value > 0.05
    x = np.array([-1.0] * 4 + [1.0] * 4 + [-2.0] + [0.0] * 6 + [2.0])
    y = np.repeat([-1.0, 1.0], 8)
    assert coco(Polynomial(2), Polynomial(2), x, y).value < 1e-12
    assert coco(Gaussian(1.0), Gaussian(1.0), x, y).value > 0.1


def test_lanczos_finds_the_same_as_the_factors(monkeypatch):
    """prop-lanczos: the method for many points, on few."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(60, 2))
    y = x[:, 0] * x[:, 1] + 0.1 * rng.normal(size=60)
    for k, l in ((Gaussian(1.0), Gaussian(0.5)), (Laplace(1.0), Linear()),
                 (Linear(), Polynomial(2))):
        exact = coco(k, l, x, y)
        monkeypatch.setattr(module, "DENSE", 10)
        found = coco(k, l, x, y)
        monkeypatch.undo()
        assert np.isclose(found.value, exact.value, rtol=1e-10)
        check(found, k, l, x, y)
        # Functions are good to the root of the precision of the value.
        for d in (found.f - exact.f, found.g - exact.g):
            assert inner(d, d) < 1e-8


def test_lanczos_keeps_a_small_covariance(monkeypatch):
    """prop-lanczos: 1e-4 of the product of the deviations is far above rounding."""
    Z = np.random.default_rng(6).normal(size=(2, 60))
    x, y = Z - Z.mean(axis=1, keepdims=True)
    y = y - (x @ y) / (x @ x) * x + 1e-4 * x
    monkeypatch.setattr(module, "DENSE", 10)
    value = coco(Linear(), Linear(), x, y).value
    assert np.isclose(value, 1e-4 * np.mean(x**2), rtol=1e-9)


def test_lanczos_is_used_above_300_points():
    """prop-lanczos, without a stored Gram matrix."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, 1100)
    y = x**2 + 0.1 * rng.normal(size=1100)
    k, l = Polynomial(2), Polynomial(2)
    c = coco(k, l, x, y)
    matrix = np.cov(polynomial_features(x, 2).T,
                    polynomial_features(y, 2).T, bias=True)[:3, 3:]
    assert np.isclose(c.value, np.linalg.norm(matrix, 2), rtol=1e-10)
    check(c, k, l, x, y)


def test_lanczos_returns_zero_for_a_constant(monkeypatch):
    """thm-coco-norm: no covariance with a constant."""
    monkeypatch.setattr(module, "DENSE", 1)
    x, ones = np.linspace(-1, 1, 15), np.full(15, 3.0)
    for a, b in ((x, ones), (ones, x)):
        c = coco(Gaussian(1.0), Gaussian(1.0), a, b)
        assert c.value == 0.0
        assert np.isclose(norm(c.f), 1) and np.isclose(norm(c.g), 1)
    assert coco(Linear(), Linear(), x, x**2).value == 0.0
    for value in np.arange(0.1, 3, 0.3):           # rounding is not zero
        constant = np.full(15, value)
        assert coco(Polynomial(3), Linear(), constant, x).value == 0.0
        assert coco(Linear(), Polynomial(3), x, constant).value == 0.0


@few
@given(seeds, st.sampled_from([0.3, 1e-2, 1e-4, 1e-9]))
def test_low_rank_value_is_within_its_certificate(seed, tol):
    """thm-coco-low-rank, eq-coco-certificate; the kernels have mean
    diagonals 1 and 4."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 40))
    k, l = Gaussian(0.5), 4 * Laplace(1.0)
    exact, low = coco(k, l, x, y), coco(k, l, x, y, tol=tol)
    gap = exact.value**2 - low.value**2
    assert -1e-12 <= gap <= 2 * tol * 4 + 1e-12
    check(low, k, l, x, y, tol=1e-7)


def test_low_rank_witnesses_live_on_the_pivots():
    """thm-coco-low-rank, part 1: the best pair in the span."""
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 50))
    k, l = Gaussian(0.5), Gaussian(0.4)
    c = coco(k, l, x, y, max_rank=5)
    F, p = pivoted_cholesky(k, x, tol=0, max_rank=5, return_pivots=True)
    G, q = pivoted_cholesky(l, y, tol=0, max_rank=5, return_pivots=True)
    assert np.array_equal(c.f.points, x[p])
    assert np.array_equal(c.g.points, y[q])
    value = np.linalg.norm(F.T @ (G - G.mean(axis=0)), 2) / 50
    assert np.isclose(c.value, value)
    check(c, k, l, x, y)
    for _ in range(50):
        f = RKHSFunction(k, x[p], rng.normal(size=5))
        g = RKHSFunction(l, y[q], rng.normal(size=5))
        ratio = np.cov(f(x), g(y), bias=True)[0, 1] / norm(f) / norm(g)
        assert abs(ratio) <= c.value * (1 + 1e-9)


def test_second_moment_for_independent_variables_in_fractions():
    """thm-coco-bias, part 3: all samples of two variables with three
    values each, with exact expectations."""
    p, q = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], [
        Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)]
    n, hs, op = 3, Fraction(0), 0.0
    cells = list(product(range(3), range(3)))
    for sample in product(cells, repeat=n):
        chance = Fraction(1)
        for i, j in sample:
            chance *= p[i] * q[j]
        table = [[Fraction(sample.count((i, j)), n)
                  - Fraction(sum(s[0] == i for s in sample)
                             * sum(s[1] == j for s in sample), n * n)
                  for j in range(3)] for i in range(3)]
        hs += chance * sum(w * w for row in table for w in row)
        op += float(chance) * np.linalg.norm(
            np.array(table, dtype=float), 2) ** 2
    v_k, v_l = 1 - sum(w * w for w in p), 1 - sum(w * w for w in q)
    assert hs == Fraction(n - 1, n * n) * v_k * v_l
    top = [np.linalg.eigvalsh(np.diag(w) - np.outer(w, w))[-1]
           for w in (np.array(p, dtype=float), np.array(q, dtype=float))]
    assert (n - 1) / n**2 * top[0] * top[1] < op < float(hs)


def test_mean_of_coco_is_not_below_the_truth():
    """thm-coco-bias, part 1, by enumeration of all samples."""
    P = np.array([[0.4, 0.1], [0.1, 0.4]])
    true = np.linalg.norm(P - np.outer(P.sum(1), P.sum(0)), 2)
    cells, n, mean = list(product(range(2), range(2))), 3, 0.0
    for sample in product(cells, repeat=n):
        c = coco(Delta(), Delta(), [s[0] for s in sample],
                 [s[1] for s in sample])
        mean += np.prod([P[s] for s in sample]) * c.value
    assert mean >= (n - 1) / n * true


def test_limits_of_the_bandwidth():
    """prop-coco-bandwidth; the error for wide kernels is O(1/σ²)."""
    rng = np.random.default_rng(7)
    x, y = np.arange(12.0), rng.permutation(12) * 1.0
    narrow, wide = Gaussian(0.01), Gaussian(1e4)
    assert np.isclose(coco(narrow, narrow, x, y).value, 1 / 12)
    linear = abs(np.cov(x, y, bias=True)[0, 1])
    assert np.isclose(1e8 * coco(wide, wide, x, y).value, linear,
                      rtol=1e-5)


def test_coco_with_itself_is_kernel_pca():
    """ex-coco-self."""
    x = np.random.default_rng(8).normal(size=30)
    k = Gaussian(1.0)
    c, pca = coco(k, k, x, x), kernel_pca(k, x, 1)
    assert np.isclose(c.value, pca.eigenvalues[0])
    assert np.isclose(abs(inner(c.f, pca.components[0])), 1)
    assert norm(c.f - c.g) < 1e-6


def test_duplicate_points_and_singular_gram_matrices():
    """thm-coco-pairs: the range is what is left."""
    rng = np.random.default_rng(9)
    x, y = np.repeat(rng.normal(size=(2, 8)), 5, axis=1)
    for k in (Gaussian(1.0), Polynomial(2), Delta()):
        c = coco(k, k, x, y)
        check(c, k, k, x, y)
        assert np.isclose(c.value, coco(k, k, x[::5], y[::5]).value)


@pytest.mark.parametrize("scale", [1e-280, 1e-150, 1.0, 1e150, 1e280])
def test_coco_scales_with_the_kernels(scale):
    """def-coco: k and c k have functions of norm one that differ by √c."""
    x, y = np.random.default_rng(10).normal(size=(2, 12))
    k, l = Gaussian(1.0), Laplace(1.0)
    for options in ({}, {"tol": 1e-10}):
        base = coco(k, l, x, y, **options)
        c = coco(scale * k, l, x, y, **options)
        assert np.isclose(c.value / np.sqrt(scale), base.value)
        assert np.allclose(c.f(x) / np.sqrt(scale), base.f(x))
        assert np.allclose(c.g(y), base.g(y))
    both = coco_test(scale * k, l, x, y, n_permutations=9, rng=0)
    assert both.pvalue == coco_test(k, l, x, y, n_permutations=9,
                                    rng=0).pvalue
    assert np.isclose(both.statistic, coco(scale * k, l, x, y).value,
                      atol=0)


@pytest.mark.parametrize("options", [{}, {"tol": 1e-12}])
def test_the_statistics_of_a_test_have_the_units_of_both_kernels(options):
    """def-coco, prop-coco-level: √c √d times those of k and l."""
    x, y = np.random.default_rng(11).normal(size=(2, 12))
    k, l = Gaussian(1.0), Laplace(1.0)
    one = coco_test(k, l, x, y, n_permutations=9, rng=0, **options)
    two = coco_test(100 * k, 49 * l, x, y, n_permutations=9, rng=0, **options)
    assert np.isclose(two.statistic, 70 * one.statistic, rtol=1e-9)
    assert np.allclose(two.null_distribution, 70 * one.null_distribution, rtol=1e-9)


def test_constant_variables_have_coco_zero():
    """thm-coco-norm; the witnesses are still functions of norm one."""
    x, ones = np.linspace(0, 1, 6), np.full(6, 2.0)
    for options in ({}, {"tol": 1e-6}):
        c = coco(Gaussian(1.0), Gaussian(1.0), x, ones, **options)
        assert c.value == 0.0
        assert np.allclose([norm(c.f), norm(c.g)], 1)
        zero = coco(Linear(), Linear(), np.zeros(6), x, **options)
        assert zero.value == 0.0 and norm(zero.f) == 0.0
        assert np.isclose(norm(zero.g), 1)
    c = coco(9 * Gaussian(1.0), 4 * Gaussian(1.0), x, ones)
    assert np.allclose([norm(c.f), norm(c.g)], 1)
    result = coco_test(Gaussian(1.0), Gaussian(1.0), x, ones, n_permutations=9, rng=0)
    assert (result.pvalue, result.statistic) == (1.0, 0.0)


def test_large_offset_is_centred_away():
    """thm-coco-spectral, lem-features-moved with a linear kernel: 1e6 + x
    is as x is."""
    x, noise = np.random.default_rng(11).normal(size=(2, 20))
    y = x + noise
    for options in ({}, {"tol": 0.0}):
        moved = coco(Linear(), Linear(), x + 1e6, y, **options)
        assert np.isclose(moved.value, coco(Linear(), Linear(), x, y).value,
                          rtol=1e-2)
    assert np.allclose([norm(moved.f), norm(moved.g)], 1)
    value = abs(np.cov(x, noise, bias=True)[0, 1])
    for far in (1e6, 2.0**40):
        c = coco(Linear(), Linear(), x + far, noise)
        # Adding the offset rounds the points, taking it away does not.
        rounded = np.cov(x + far - far, noise, bias=True)[0, 1]
        assert np.isclose(c.value, abs(rounded), rtol=1e-12)
        for w in (c.f.weights, c.g.weights):
            assert abs(w.sum()) < 1e-15 * np.abs(w).sum()
    far, near = (coco_test(Linear(), Linear(), x + c, y, n_permutations=99,
                           rng=0).pvalue for c in (1e8, 0.0))
    assert far == near < 0.05
    low = coco(Linear(), Linear(), x + 1e6, noise, tol=0.0)
    assert np.isclose(low.value, value, rtol=1e-2)
    assert np.allclose([norm(low.f), norm(low.g)], 1)


@pytest.mark.parametrize("far", [1e8, 2.0**40])
@pytest.mark.parametrize("n, options", [
    (60, {}), (60, {"tol": 1e-12}), (60, {"max_rank": 2}), (1100, {}),
    (1100, {"tol": 1e-12})])
def test_every_method_keeps_its_digits_far_from_zero(n, options, far):
    """lem-features-moved, thm-coco-low-rank, prop-lanczos: with linear
    kernels COCO is the norm of the covariance matrix, wherever zero is,
    and f(x) = ⟨p, x⟩ with a unit vector p. Subtracting `far` is exact."""
    rng = np.random.default_rng(15)
    X = rng.normal(size=(n, 2)) + far
    Y = (X[:, :1] - far) * [1.0, 2.0] + rng.normal(size=(n, 2)) - 2 * far
    C = np.cov((X - far).T, (Y + 2 * far).T, bias=True)[:2, 2:]
    c = coco(Linear(), Linear(), X, Y, **options)
    p = c.f.weights @ (c.f.points - far)
    q = c.g.weights @ (c.g.points + 2 * far)
    assert np.isclose(np.linalg.norm(C, 2), c.value, rtol=1e-10)
    assert np.allclose([p @ p, q @ q, p @ C @ q], [1, 1, c.value])
    for w in (c.f.weights, c.g.weights):
        assert abs(w.sum()) < 1e-15 * np.abs(w).sum()


def test_low_rank_certificate_of_moved_features():
    """thm-coco-low-rank, part 2, with the features k_x - k_a of
    lem-features-moved: t and u are mean squared distances from a point."""
    rng = np.random.default_rng(16)
    x = rng.normal(size=50)
    y = np.sin(3 * x) + rng.normal(size=50)
    k, l = 0.1 * Linear() + Gaussian(0.5), Gaussian(0.3) + Linear()
    exact = coco(k, l, x + 1e6, y)
    t, u = ((K.diagonal()[:, None] - 2 * K + K.diagonal()).mean(axis=0)
            .max() for K in (k(x), l(y)))
    for tol in (0.3, 1e-1, 1e-2, 1e-4):
        low = coco(k, l, x + 1e6, y, tol=tol)
        gap = exact.value**2 - low.value**2
        assert -1e-12 <= gap <= 2 * tol * t * u
        f = RKHSFunction(k, low.f.points - 1e6, low.f.weights)
        assert np.isclose(abs(np.cov(f(x), low.g(y), bias=True)[0, 1]),
                          low.value, rtol=1e-6)
        assert np.allclose([norm(f), norm(low.g)], 1)
    assert gap > 1e-9                        # and that was no exact rank


def test_points_may_be_strings():
    """thm-coco-norm asks nothing of the points."""
    X = ["red wine", "white wine", "red car", "blue car", "red wine"]
    Y = ["a", "a", "b", "b", "a"]
    k = FeatureKernel(words)
    c = coco(k, Delta(), X, Y)
    check(c, k, Delta(), X, Y)
    check(coco(k, Delta(), X, Y, tol=0.0), k, Delta(), X, Y)
    assert np.isclose(c.value, op_norm(cross_covariance(k, Delta(), X, Y)))
    assert coco_test(k, Delta(), X, Y, n_permutations=5, rng=0,
                     tol=1e-3).pvalue > 0


def test_test_statistic_is_coco_and_permutes_y():
    """prop-coco-level: the null is that of other pairings."""
    rng = np.random.default_rng(12)
    x, y = rng.normal(size=(2, 4))
    k, l = Gaussian(1.0), Laplace(1.0)
    result = coco_test(k, l, x, y, n_permutations=200, rng=1)
    assert isinstance(result, PermutationTest)
    assert np.isclose(result.statistic, coco(k, l, x, y).value)
    possible = np.array([coco(k, l, x, y[list(p)]).value
                         for p in permutations(range(4))])
    nearest = np.abs(result.null_distribution[:, None] - possible)
    assert nearest.min(axis=1).max() < 1e-12
    assert len(set(nearest.argmin(axis=1))) == 24         # all occur
    expected = np.mean(possible >= result.statistic - 1e-9)
    # A share of 200 draws has a standard error of at most 0.036.
    assert abs(result.pvalue - expected) < 0.15
    low = coco_test(k, l, x, y, n_permutations=20, rng=1, tol=1e-12)
    assert np.isclose(low.statistic, result.statistic)


@pytest.mark.parametrize("options", [{"max_rank": 1}, {"tol": 0.3}])
def test_the_factors_of_a_test_have_the_rank_that_is_asked(options):
    """thm-coco-low-rank, prop-coco-level: a statistic of few columns, in any order of the
    pairs; and a test needs a permutation."""
    x, y = np.array([[-0.1, 1.0, 0.2, 3.0, 0.3], [0.4, 2.0, 0.3, 5.0, 0.2]])
    k, low = Gaussian(1.0), []
    for seed in range(4):
        low.append(coco_test(k, k, x, y, n_permutations=1, rng=seed, **options).statistic)
    whole = coco(k, k, x, y).value
    assert max(low) < 0.999 * whole and min(low) >= 0
    with pytest.raises(ValueError, match="^n_permutations"):
        coco_test(k, k, x, y, n_permutations=0)


def test_level_is_kept_over_all_pairings():
    """prop-coco-level: over all 24 equally likely orders of Y."""
    x, y = np.array([0.0, 1.0, 3.0, 4.0]), np.array([0.0, 2.0, 2.0, 5.0])
    k, B = Gaussian(1.0), 4
    low = {}
    for options in ({}, {"max_rank": 2}):
        count, total = 0, 0
        for seed in range(6):
            for p in permutations(range(4)):
                pvalue = coco_test(k, k, x, y[list(p)], n_permutations=B,
                                   rng=100 * seed, **options).pvalue
                assert pvalue in {(1 + c) / (1 + B) for c in range(B + 1)}
                count, total = count + (pvalue <= 0.4), total + 1
        low[bool(options)] = count / total
    # 144 tests with six seeds: four standard errors above 0.4.
    assert max(low.values()) <= 0.4 + 4 * 0.05


def test_eigenvalues_may_be_negative_to_eight_digits_of_the_largest():
    """thm-coco-pairs, prop-rounded-gram: 200 points, half of them at 1 and half at -1, have the
    eigenvalue 200 for st, and one of -4e-7 for a perturbation of entries of 2e-9."""
    s, v = np.resize([1.0, -1.0], 200), np.repeat([1.0, -1.0], 100)
    table = np.outer(s, s) - 2e-9 * np.outer(v, v)
    k = FunctionKernel(lambda i, j: table[int(i), int(j)])
    assert np.isclose(coco(k, Linear(), np.arange(200.0), s).value, 1.0)


@pytest.mark.parametrize("excess, refused", [(0.5e-8, False), (1.5e-8, True)])
def test_cauchy_schwarz_may_fail_by_eight_digits(excess, refused):
    """prop-rounded-gram: two points with k = 1 on the diagonal and -1 - 1.5e-8 beside it; the
    centred Gram matrix has no negative eigenvalue."""
    k = FunctionKernel(lambda s, t: 1.0 if s == t else -1.0 - excess)
    if refused:
        with pytest.raises(ValueError, match="^k must be"):
            coco(k, Linear(), [0.0, 1.0], [0.0, 1.0])
    else:
        assert np.isclose(coco(k, Linear(), [0.0, 1.0], [0.0, 1.0]).value, 1 / 2)


@pytest.mark.parametrize("share, zero", [(0.9, True), (1.1, False)])
def test_what_the_rounding_of_a_product_of_factors_hides_is_zero(share, zero):
    """thm-coco-spectral: a value of at most 4 ε |F| |G| counts as zero. The columns are exact
    here: both squared norms are 8, and F'G / 8 is that of x and y."""
    x, t = np.tile([1.0, -1], 4), np.repeat([1.0, -1.0], 4)
    value = np.round(32 * share) * np.finfo(float).eps
    found = coco(Linear(), Linear(), x, t + value * x, tol=0.0)
    assert found.value == (0.0 if zero else value)
    assert np.allclose([norm(found.f), norm(found.g)], 1)


@pytest.mark.parametrize("dense, share, zero", [
    (300, 0.9, True), (300, 1.1, False), (1, 0.9, True), (1, 3.0, False)])
def test_how_small_a_square_counts_as_zero(monkeypatch, dense, share, zero):
    """thm-coco-independence: COCO² is not told from zero up to 4 ε (tr HKH + tr HLH) / n, here
    4 ε (1/2 + 1), for features of s/√2 and of t + r s: COCO = r/√2."""
    monkeypatch.setattr(module, "DENSE", dense)
    s, t = np.array([1.0, -1, 1, -1]), np.array([1.0, 1, -1, -1])
    r = np.sqrt(12 * share * np.finfo(float).eps)
    k, l = FunctionKernel(lambda a, b: 1 + a * b / 2), FunctionKernel(lambda a, b: a * b)
    for found in (coco(k, l, s, t + r * s), coco(l, k, t + r * s, s)):
        # Of the norms, whose squares are divided by COCO², one digit is left here.
        value = 0.0 if zero else r / np.sqrt(2)
        assert np.isclose(found.value, value, rtol=0.1, atol=0)
        assert np.allclose([norm(found.f), norm(found.g)], 1, atol=0.1)


def test_a_feature_that_hardly_varies_is_kept():
    """thm-coco-low-rank: 1 + 1e-9 s is no constant."""
    s = np.array([1.0, -1, 1, -1, 1, -1])
    k = FunctionKernel(lambda a, b: (1 + 1e-9 * a) * (1 + 1e-9 * b))
    assert np.isclose(coco(k, Linear(), s, s, tol=1e-6).value, 1e-9, rtol=1e-6, atol=0)


def test_a_column_that_is_constant_up_to_rounding_is_none():
    """thm-coco-low-rank: nothing covaries with a constant, in units of all sizes."""
    x = np.linspace(-1, 1, 15)
    for value in np.arange(0.1, 3, 0.6):
        for c in (1.0, 1e-200):
            for k, l, a, b in ((c * Polynomial(3), Linear(), np.full(15, value), x),
                               (Linear(), c * Polynomial(3), x, np.full(15, value))):
                assert coco(k, l, a, b, tol=1e-9).value == 0.0
                result = coco_test(k, l, a, b, n_permutations=9, rng=0, tol=1e-9)
                assert result.pvalue == 1.0 and result.statistic == 0.0


@pytest.mark.parametrize("options", [{}, {"tol": 0.0}])
@pytest.mark.parametrize("share, ties", [(0.98, True), (1.02, False)])
def test_pairings_tie_that_differ_by_1e_10_of_the_largest_value(share, ties, options):
    """prop-permutation-rounding, on both sides of the tolerance of 1e-10 |F| |G| / n: the values
    are 1 + d, 1 - 2d and 2 - d, over three."""
    d = share * 2e-10 / 3                          # |F| |G| is two
    result = coco_test(Linear(), Linear(), [-1.0, 1 - d, d], [-1.0, 0.0, 1.0],
                       n_permutations=60, rng=0, **options)
    below = result.statistic - result.null_distribution
    near, same = np.sum(below > d / 2), np.sum(below <= d / 2)
    assert np.allclose(below[below > d / 2], d, rtol=1e-4, atol=0) and min(near, same) > 9
    assert result.pvalue == (1 + same + ties * near) / 61


def test_dependence_is_found():
    """prop-coco-level; the alternative."""
    t, k = np.linspace(-1, 1, 40), Gaussian(0.5)
    for options in ({}, {"tol": 1e-6}, {"max_rank": 8}):
        assert coco_test(k, k, t, t**2, n_permutations=99, rng=0,
                         **options).pvalue == 0.01


def test_ties_count_against_rejection():
    """prop-permutation-rounding: narrow kernels tie all pairings."""
    x, y = np.arange(10.0), np.arange(10.0) ** 2
    k = Gaussian(1e-3)
    assert coco_test(k, k, x, y, n_permutations=19, rng=0).pvalue == 1.0
    one = coco_test(Delta(), Delta(), x, y, n_permutations=19, rng=0)
    assert one.pvalue == 1.0


def test_same_seed_same_test():
    """prop-coco-level: randomness comes from rng only."""
    x, y = np.random.default_rng(13).normal(size=(2, 10))
    a, b, c = (coco_test(Gaussian(1.0), Gaussian(1.0), x, y,
                         n_permutations=20, rng=r).null_distribution
               for r in (0, np.random.default_rng(0), 1))
    assert np.array_equal(a, b) and not np.array_equal(a, c)


def test_record_is_frozen_and_checked():
    """thm-coco-witnesses: the record."""
    f = RKHSFunction(Linear(), [1.0], [1.0])
    c = ConstrainedCovariance(1, f, f)
    assert c.value == 1.0 and "value=1" in repr(c)
    with pytest.raises(FrozenInstanceError):
        c.value = 2.0
    for value in (-1.0, np.nan, np.inf, "1", None):
        with pytest.raises(ValueError, match="value"):
            ConstrainedCovariance(value, f, f)
    with pytest.raises(ValueError, match="^f must"):
        ConstrainedCovariance(1.0, 3, f)
    with pytest.raises(ValueError, match="^g must"):
        ConstrainedCovariance(1.0, f, 3)


def test_result_does_not_change_with_the_data():
    """The functions keep their own copy of the points."""
    x, y = np.random.default_rng(14).normal(size=(2, 8))
    for options in ({}, {"max_rank": 3}):
        a, b = x.copy(), y.copy()
        c = coco(Gaussian(1.0), Gaussian(1.0), a, b, **options)
        before = c.f([0.0]), c.g([0.0])
        a[:], b[:] = 0.0, 0.0
        assert (c.f([0.0]), c.g([0.0])) == before


@pytest.mark.parametrize("points", ["numbers", "words"])
def test_stored_gram_matrices_and_tiles_give_the_same_witnesses(points, monkeypatch):
    """prop-lanczos: each product reads a stored matrix, or computes its entries again."""
    rng = np.random.default_rng(3)
    u = rng.integers(0, 9, size=400) + 0.1 * rng.normal(size=400)
    x, k = (u, Gaussian(1.0)) if points == "numbers" else ([f"{v:.0f}" for v in u], Delta())
    y, found = u**2 / 9 + rng.normal(size=400), []
    for stored in (400, 399):
        monkeypatch.setattr(module, "STORED", stored)
        found.append(coco(k, Linear() + Gaussian(2.0), x, 1e6 + y))
    a, b = found
    # The iterations stop at a residual of 1e-13.
    assert np.isclose(a.value, b.value, rtol=1e-12)
    assert np.allclose(a.f.weights, b.f.weights, rtol=0, atol=1e-8 * np.abs(b.f.weights).max())
    assert np.allclose(a.g.weights, b.g.weights, rtol=0, atol=1e-8 * np.abs(b.g.weights).max())
    assert a.f.kernel == k and len(a.f.points) == 400


def test_lanczos_refuses_kernels_that_are_not_positive_definite(
        monkeypatch):
    """prop-lanczos: a squared norm is not negative; that of a triangle,
    which is a kernel where a parabola is none, never is."""
    x = np.linspace(-1, 1, 12)
    triangle = FunctionKernel(lambda s, t: max(0.0, 1 - abs(s - t)))
    wanted = coco(triangle, Gaussian(1.0), x, x).value
    monkeypatch.setattr(module, "DENSE", 1)
    found = coco(triangle, Gaussian(1.0), x, x).value
    assert np.isclose(found, wanted, rtol=1e-6)
    # Minus a Gaussian plus a constant: only differences are negative.
    dent = FunctionKernel(lambda s, t: 2 - np.exp(-(s - t) ** 2))
    wrong = FunctionKernel(lambda s, t: 1.0 if s == t else -2.0)
    # Its means are positive, but some squared norms are not.
    mixed = FunctionKernel(lambda s, t: np.exp(-(s - t) ** 2) - 3 * s**3
                           * t**3 + 3 * s * t)
    for bad in (dent, wrong, mixed):
        with pytest.raises(ValueError, match="^k must be positive"):
            coco(bad, Gaussian(1.0), x, x)
        with pytest.raises(ValueError, match="^l must be positive"):
            coco(Gaussian(1.0), bad, x, x)


hostile = FunctionKernel(lambda s, t: 1.0 if s == t else -2.0)
hidden = FunctionKernel(lambda s, t: -abs(float(s) - float(t)))
negative = FunctionKernel(lambda s, t: -1.0)
table = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
subtle = FunctionKernel(lambda s, t: table[int(s), int(t)])
G1, three = Gaussian(1.0), np.array([0.0, 1.0, 2.0])


@pytest.mark.parametrize("function", [
    coco, lambda *a, **o: coco_test(*a, n_permutations=3, rng=0, **o)])
@pytest.mark.parametrize("bad", [Sigmoid(1.0, 0.0), hostile, hidden, subtle,
                                 negative])
def test_functions_that_are_not_positive_definite_are_refused(function,
                                                              bad):
    """thm-coco-pairs: eigenvalues of Gram matrices are not negative, and
    those of `hidden` are negative before it is centred only; one that is
    no less than 0 is no harm."""
    with pytest.raises(ValueError, match="^k must be positive"):
        function(bad, G1, three, three)
    with pytest.raises(ValueError, match="^l must be positive"):
        function(G1, bad, three, three)
    if bad is not hidden:            # which shows no pivot at all
        for kernels in ((bad, G1), (G1, bad)):
            with pytest.raises(ValueError, match="must be positive"):
                function(*kernels, three, three, tol=0.0)
    edge = FunctionKernel(lambda s, t: 1.0 if s == t else -0.5)
    assert np.linalg.eigvalsh(edge(three))[0] < 1e-12
    found = function(edge, G1, three, three)
    value = getattr(found, "value", getattr(found, "statistic", None))
    assert value > 0.1


def test_defaults_and_maps_that_were_made_before():
    """prop-coco-level with 999 permutations; def-synthesis."""
    x = np.linspace(-1, 1, 12)
    found = coco_test(G1, G1, x, x**2)
    assert len(found.null_distribution) == 999
    Phi = Features(G1, x)
    assert coco(G1, G1, Phi, x**2).value == coco(G1, G1, x, x**2).value


def test_records_survive_pickling_and_copying():
    """thm-coco-witnesses: the record is data."""
    c = coco(G1, G1, three, three)
    for other in (pickle.loads(pickle.dumps(c)), copy.deepcopy(c)):
        assert other.value == c.value and "float64" not in repr(other)
        assert np.array_equal(other.f([0.5]), c.f([0.5]))
