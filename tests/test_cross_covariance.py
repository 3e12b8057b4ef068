"""Numerical identities of the chapter "Cross-covariance"."""

import copy
import pickle
import sys
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm
from scipy.stats import chi2_contingency

from rkhs_lit import (Conjugated, Delta, FeatureKernel, FunctionKernel,
                      Features, Gaussian, Laplace, Linear, LowRank, Mapped,
                      Pairs, Polynomial, PrecisionWarning, RKHSFunction,
                      RKHSOperator, TensorProduct, centre,
                      cross_covariance, hs_inner, hs_norm, inner,
                      is_constant, lanczos, mean_embedding, norm, op_norm,
                      operator_core, polynomial_features,
                      regularised_solve, ridge, tensor, words)

module = sys.modules["rkhs_lit.cross_covariance"]
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=20, deadline=None)
k2, k3 = Polynomial(2), Polynomial(3)


def operator(rng, n=5, m=4, low_rank=False):
    """From the cubics on the line to the quadratics on the plane."""
    weights = (LowRank(rng.normal(size=(n, 2)), rng.normal(size=(m, 2)))
               if low_rank else rng.normal(size=(n, m)))
    return RKHSOperator(k2, rng.normal(size=(n, 2)), k3,
                        rng.normal(size=m), weights)


def plane_function(rng, n=3):
    return RKHSFunction(k2, rng.normal(size=(n, 2)), rng.normal(size=n))


def line_function(rng, n=3):
    return RKHSFunction(k3, rng.normal(size=n), rng.normal(size=n))


def matrix(h):
    """Coordinates of a function or operator in the listed features."""
    if isinstance(h, RKHSFunction):
        return polynomial_features(h.points, h.kernel.degree).T @ h.weights
    return (polynomial_features(h.X, h.k.degree).T @ np.asarray(h.weights)
            @ polynomial_features(h.Y, h.l.degree))


# Sums of a few dozen products of numbers of size at most 1e3.
close = dict(rtol=1e-9, atol=1e-9)


# --- Hilbert-Schmidt operators

@few
@given(seeds)
def test_hilbert_schmidt_norm_is_the_same_in_all_bases(seed):
    """thm-hilbert-schmidt 1: sums over bases of either space agree with
    hs_norm; the bases are drawn, the images are computed by A and A*."""
    rng = np.random.default_rng(seed)
    A = operator(rng)
    # Random orthonormal bases of the two feature spaces, as functions.
    points_l = rng.normal(size=4)
    points_k = rng.normal(size=(6, 2))
    P = polynomial_features(points_l, 3)
    Q = polynomial_features(points_k, 2)
    if max(np.linalg.cond(P), np.linalg.cond(Q)) > 1e5:
        return
    O = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    R = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    d = [RKHSFunction(k3, points_l, w) for w in np.linalg.solve(P.T, O).T]
    e = [RKHSFunction(k2, points_k, w) for w in np.linalg.solve(Q.T, R).T]
    square = hs_norm(A) ** 2
    by_d = sum(norm(A(g)) ** 2 for g in d)
    by_e = sum(norm(A.adjoint()(f)) ** 2 for f in e)
    by_both = sum(inner(f, A(g)) ** 2 for f in e for g in d)
    assert np.allclose([by_d, by_e, by_both], square, rtol=1e-5, atol=0)


@few
@given(seeds)
def test_operator_norm_is_at_most_the_hilbert_schmidt_norm(seed):
    """thm-hilbert-schmidt 2, and equality for rank one."""
    rng = np.random.default_rng(seed)
    A = operator(rng)
    assert op_norm(A) <= hs_norm(A) * (1 + 1e-12)
    t = tensor(plane_function(rng), line_function(rng))
    assert np.isclose(op_norm(t), hs_norm(t))


@few
@given(seeds)
def test_composition_bounds(seed):
    """thm-hilbert-schmidt 4."""
    rng = np.random.default_rng(seed)
    A, B = operator(rng), operator(rng)
    product_norm = hs_norm(A.adjoint() @ B)
    assert product_norm <= op_norm(A) * hs_norm(B) * (1 + 1e-9)
    assert product_norm <= hs_norm(A) * op_norm(B) * (1 + 1e-9)


@few
@given(seeds)
def test_rank_one_calculus(seed):
    """prop-rank-one 1 to 4."""
    rng = np.random.default_rng(seed)
    a, u = plane_function(rng), plane_function(rng)
    b, v = line_function(rng), line_function(rng)
    w = RKHSFunction(Gaussian(1.0), [0.3, 1.0], rng.normal(size=2))
    A = operator(rng)
    assert np.allclose(matrix(tensor(a, b)(v)), inner(b, v) * matrix(a),
                       **close)
    assert np.isclose(hs_norm(tensor(a, b)), norm(a) * norm(b), **close)
    assert np.isclose(hs_inner(A, tensor(a, b)), inner(a, A(b)), **close)
    assert np.isclose(hs_inner(tensor(u, v), tensor(a, b)),
                      inner(u, a) * inner(v, b), **close)
    assert np.allclose(matrix(tensor(a, b).adjoint()), matrix(tensor(b, a)))
    AB = tensor(a, b) @ tensor(v, w)
    wanted = inner(b, v) * inner(w, w)
    assert np.allclose(matrix(AB(w)), wanted * matrix(a), **close)
    assert (AB.k, AB.l) == (k2, Gaussian(1.0))


def test_rank_one_operators_span_all_matrices():
    """prop-rank-one 5: on features of dimension 6 and 4 the operators
    k_x ⊗ l_y span all 24 dimensions."""
    rng = np.random.default_rng(0)
    rows = [matrix(RKHSOperator(k2, [x], k3, [y], [[1.0]])).ravel()
            for x in rng.normal(size=(8, 2)) for y in rng.normal(size=6)]
    assert np.linalg.matrix_rank(rows) == 24


# --- the calculus

@few
@given(seeds, st.booleans(), st.booleans())
def test_calculus_agrees_with_matrices(seed, low_a, low_b):
    """thm-operator-calculus: all operations are those of the matrices in
    listed features, whichever way the weights are stored."""
    rng = np.random.default_rng(seed)
    A, B = operator(rng, 5, 4, low_a), operator(rng, 3, 6, low_b)
    a, b = matrix(A), matrix(B)
    g = line_function(rng)
    assert np.allclose(matrix(A(g)), a @ matrix(g), **close)
    assert np.allclose(matrix(A.adjoint()), a.T, **close)
    assert np.allclose(matrix(A @ B.adjoint()), a @ b.T, **close)
    assert np.allclose(matrix(A.adjoint() @ B), a.T @ b, **close)
    assert np.allclose(matrix(A + B), a + b, **close)
    assert np.allclose(matrix(2.5 * A - B / 4), 2.5 * a - b / 4, **close)
    assert np.allclose(matrix(-A), -a)
    assert np.isclose(hs_inner(A, B), np.sum(a * b), **close)
    assert np.isclose(hs_norm(A), np.linalg.norm(a), **close)
    assert np.isclose(op_norm(A), np.linalg.norm(a, 2), **close)


@few
@given(seeds)
def test_the_adjoint_of_synthesis_is_sampling(seed):
    """lem-synthesis: ⟨Φα, f⟩ = α'f(X), Φ*Φ = K, and A g = Φ W Ψ*g."""
    rng = np.random.default_rng(seed)
    A, f, g = operator(rng), plane_function(rng), line_function(rng)
    alpha = rng.normal(size=5)
    assert np.isclose(inner(A.Phi @ alpha, f), alpha @ f(A.X), **close)
    assert np.allclose(A.Phi.sample(f), f(A.X), **close)
    assert np.allclose(A.Phi.gram(), k2(A.X), **close)
    assert np.allclose(matrix(A(g)), matrix(A.Phi @ (A.weights @ g(A.Y))),
                       **close)


@few
@given(seeds)
def test_adjoint_is_the_adjoint(seed):
    """cor-adjoint for operators over Gaussian and Laplace kernels."""
    rng = np.random.default_rng(seed)
    A = RKHSOperator(Gaussian(1.0), rng.normal(size=(4, 2)), Laplace(0.5),
                     rng.normal(size=3), rng.normal(size=(4, 3)))
    f = RKHSFunction(Gaussian(1.0), rng.normal(size=(2, 2)), [1.0, -2.0])
    g = RKHSFunction(Laplace(0.5), rng.normal(size=2), [0.5, 3.0])
    assert np.isclose(inner(f, A(g)), inner(A.adjoint()(f), g), **close)


@pytest.mark.parametrize("diagonal_a", [True, False])
@pytest.mark.parametrize("diagonal_b", [True, False])
def test_diagonal_and_dense_weights_are_one_operator(diagonal_a, diagonal_b):
    """thm-operator-calculus: results do not depend on how it is written;
    600 points, so that there are several tiles."""
    rng = np.random.default_rng(1)
    k, l = Gaussian(0.7), Laplace(1.0)
    ops = []
    for n, diagonal in ((600, diagonal_a), (300, diagonal_b)):
        X, Y = rng.normal(size=(n, 2)), rng.normal(size=n)
        W = LowRank(rng.normal(size=(n, 2)) / n, rng.normal(size=(n, 2)),
                    rng.normal(size=n) / n)
        ops.append(RKHSOperator(k, X, l, Y,
                                W if diagonal else np.asarray(W)))
    A, B = ops
    K, L = k(A.X, B.X), l(A.Y, B.Y)
    V, W = np.asarray(A.weights), np.asarray(B.weights)
    wanted = np.trace(V.T @ K @ W @ L.T)
    assert np.isclose(hs_inner(A, B), wanted, rtol=1e-10, atol=0)
    assert np.isclose(hs_inner(B, A), wanted, rtol=1e-10, atol=0)
    AB = A @ B.adjoint()
    assert np.allclose(np.asarray(AB.weights), V @ L @ W.T)
    total = A + B
    assert np.isclose(hs_inner(total, B),
                      wanted + hs_inner(B, B), rtol=1e-10, atol=0)
    assert len(total.X) == 900


@few
@given(seeds)
def test_sums_over_the_same_points_add_weights(seed):
    """thm-operator-calculus: two copies of the same points are the same
    points, in an array, a list of strings, or pairs."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(2, 3, 3))
    for points in (rng.normal(size=(3, 2)), ["a", "b", "cc"],
                   Pairs(["a", "b", "b"], [1.0, 2.0, 3.0]),
                   [np.zeros(2), np.ones(2), np.arange(2.0)]):
        k = (Gaussian(1.0) if isinstance(points, np.ndarray) else
             FunctionKernel(lambda s, t: float(repr(s) == repr(t))))
        copy = points.copy() if isinstance(points, (np.ndarray, list)) else (
            Pairs(list(points.first), list(points.second)))
        A = RKHSOperator(k, points, k, points, W[0])
        B = RKHSOperator(k, copy, k, copy, W[1])
        assert len((A + B).X) == 3
        assert np.allclose((A + B).weights, W[0] + W[1])
    D = RKHSOperator(k, points, k, points, LowRank(W[0], W[1], W[0, 0]))
    E = RKHSOperator(k, points, k, points, LowRank(W[1], W[1]))
    assert np.allclose((D + E).weights, W[0] @ W[1].T + np.diag(W[0, 0])
                       + W[1] @ W[1].T)
    assert isinstance((D + E).weights, LowRank)
    assert np.allclose((D + A).weights, np.asarray(D.weights) + W[0])


def test_sums_over_other_points_keep_both():
    """thm-operator-calculus, for a sum whose points differ in one place,
    or in their type."""
    A = RKHSOperator(Linear(), [1.0, 2.0], Linear(), [1.0], [[1.0], [1.0]])
    B = RKHSOperator(Linear(), [1.0, 3.0], Linear(), [1.0], [[1.0], [1.0]])
    one = RKHSFunction(Linear(), [1.0], [1.0])
    assert (A + B)(one)([1.0]) == 7.0
    assert len((A + B).X) == 4
    words_a = RKHSOperator(Delta(), ["a", 1], Delta(), ["a"], [[1.0], [2.0]])
    words_b = RKHSOperator(Delta(), ["a", "1"], Delta(), ["a"],
                           [[1.0], [2.0]])
    assert len((words_a + words_b).X) == 4
    shifted = RKHSOperator(Linear(), [1.0, 2.0], Linear(), [10.0],
                           [[1.0], [1.0]])
    assert (A + shifted)(one)([1.0]) == 3.0 + 30.0
    # 1 and 1.0 are two points to a kernel that looks at types.
    typed = FunctionKernel(lambda s, t: float(type(s) is type(t)))
    ones, floats = (RKHSOperator(typed, [one], typed, ["y"], [[1.0]])
                    for one in (1, 1.0))
    assert ((ones + floats).values([1, 1.0], ["y"]) == 1.0).all()
    # An array and a list with the same numbers may be joined.
    listed = RKHSOperator(Linear(), np.array([1.0, 2.0]), Linear(), [1.0],
                          [[1.0], [1.0]])
    assert (A + listed)(RKHSFunction(Linear(), [1.0], [1.0]))([1.0]) == 6.0
    # Diagonal weights beside weights that are not square.
    D = RKHSOperator(Linear(), [1.0, 2.0], Linear(), [3.0, 4.0], [1.0, 1.0])
    E = RKHSOperator(Linear(), [5.0], Linear(), [6.0, 7.0],
                     LowRank([1.0], [1.0, 1.0]))
    # x-values times y-values: 1·3 + 2·4 and 5·(6 + 7).
    assert (D + E)(one)([1.0]) == (E + D)(one)([1.0]) == 11.0 + 65.0
    assert np.asarray((D + D + E).weights).shape == (3, 4)
    square = RKHSOperator(Linear(), [5.0, 1.0], Linear(), [6.0, 7.0],
                          LowRank([1.0, 2.0], [1.0, 1.0]))
    assert (D + square)(one)([1.0]) == 11.0 + (5 + 2) * (6 + 7)
    assert isinstance((D + square).weights, LowRank)


def test_sum_of_a_list_and_numpy_factors():
    """def of the vector space: sum() works, NumPy numbers scale."""
    rng = np.random.default_rng(0)
    A, B = operator(rng), operator(rng)
    assert np.allclose(matrix(sum([A, B])), matrix(A) + matrix(B))
    assert np.allclose(matrix(np.float64(3.0) * A), 3 * matrix(A))
    for wrong in (lambda: A + 1.0, lambda: A - 1.0, lambda: A @ 2.0,
                  lambda: A * B, lambda: A / B, lambda: A @ np.eye(3)):
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize("columns", [(1, 2), (2, 1)])
def test_factors_of_another_rank_make_no_matrix(columns):
    """lem-centring-matrix: UV' needs as many columns in U as in V."""
    U, V = (np.ones((3, r)) for r in columns)
    with pytest.raises(ValueError, match="^V must have as many columns as U, got shapes"):
        LowRank(U, V)


def test_an_operator_has_no_multiple_by_one_over_zero():
    """thm-operator-calculus: operators are vectors, divided by numbers that are not zero."""
    A = RKHSOperator(Gaussian(1.0), [0.0, 1.0], Linear(), [1.0, 2.0], np.eye(2))
    for zero in (0, 0.0, -0.0):
        with pytest.raises(ValueError, match="^the divisor must not be 0"):
            A / zero
    assert np.array_equal((A / 4).weights, np.eye(2) / 4)
    assert np.array_equal((0 * A).weights, np.zeros((2, 2)))


@few
@given(seeds)
def test_low_rank_is_its_matrix(seed):
    """LowRank: products, transpose, multiples."""
    rng = np.random.default_rng(seed)
    U, V, d = rng.normal(size=(4, 2)), rng.normal(size=(4, 2)), np.ones(4)
    for W, D in ((LowRank(U, V, d), U @ V.T + np.eye(4)),
                 (LowRank(U, V[:3]), U @ V[:3].T)):
        B, b = rng.normal(size=(D.shape[1], 5)), rng.normal(size=D.shape[1])
        C = rng.normal(size=(3, D.shape[0]))
        assert np.allclose(np.asarray(W), D)
        assert np.allclose(W @ B, D @ B) and np.allclose(W @ b, D @ b)
        assert np.allclose(C @ W, C @ D) and np.allclose(W.T, D.T)
        assert np.allclose(2 * W, 2 * D) and np.allclose(W / 4, D / 4)
        assert repr(D.shape) in repr(W)
        for wrong in (lambda: np.ones(2) * W, lambda: W * np.ones(2),
                      lambda: W / np.ones(2), lambda: W * "2"):
            with pytest.raises(TypeError):
                wrong()
        with pytest.raises(ValueError, match="divisor must not be 0"):
            W / 0
    for a, b in ((U, V[:3]), (U[:3], V)):
        with pytest.raises(ValueError, match="^diagonal must be None for a matrix that is not"):
            LowRank(a, b, np.ones(len(a)))


def test_values_are_inner_products():
    """thm-covariance-embedding: values(S, T) are ⟨k_s, A l_t⟩."""
    rng = np.random.default_rng(0)
    A = operator(rng)
    S, T = rng.normal(size=(3, 2)), rng.normal(size=2)
    wanted = [[inner(RKHSFunction(k2, [s], [1.0]),
                     A(RKHSFunction(k3, [t], [1.0]))) for t in T] for s in S]
    assert np.allclose(A.values(S, T), wanted)


# --- norms

@few
@given(seeds)
def test_norms_are_those_of_roots_of_gram_matrices(seed):
    """thm-operator-core with the symmetric roots of SciPy as the factors."""
    rng = np.random.default_rng(seed)
    x, y = np.arange(5.0), np.arange(4.0)
    k, l, W = Laplace(1.0), Gaussian(0.5), rng.normal(size=(5, 4))
    A = RKHSOperator(k, x, l, y, W)
    core = sqrtm(k(x)).real @ W @ sqrtm(l(y)).real
    assert np.isclose(op_norm(A), np.linalg.norm(core, 2), rtol=1e-10, atol=0)
    assert np.isclose(hs_norm(A), np.linalg.norm(core), rtol=1e-10, atol=0)


def test_singular_gram_matrices_and_repeated_points():
    """thm-operator-core: every point twice, a kernel with few features,
    and a kernel that vanishes at the points."""
    rng = np.random.default_rng(0)
    A = operator(rng, 30, 20)           # 6 and 4 features
    a = matrix(A)
    twice = RKHSOperator(k2, np.vstack([A.X, A.X]), k3,
                         np.concatenate([A.Y, A.Y]),
                         np.block([[A.weights, A.weights],
                                   [A.weights, A.weights]]) / 4)
    for B in (A, twice):
        assert np.isclose(op_norm(B), np.linalg.norm(a, 2), rtol=1e-9, atol=0)
        assert np.isclose(hs_norm(B), np.linalg.norm(a), rtol=1e-9, atol=0)
    zero = RKHSOperator(Linear(), [0.0, 0.0], Linear(), [1.0], [[1.0], [2.0]])
    assert hs_norm(zero) == op_norm(zero) == 0.0
    assert hs_norm(0 * A) == op_norm(0 * A) == 0.0
    cancels = RKHSOperator(Linear(), [1.0, 2.0], Linear(), [1.0],
                           [[2.0], [-1.0]])
    assert hs_norm(cancels) < 1e-15 and op_norm(cancels) < 1e-15


@few
@given(seeds)
def test_rank_one_with_a_factor_that_vanishes_has_norm_zero(seed):
    """thm-operator-core: f - f, written with its points in two orders,
    leaves rounding errors of either sign; its square is below 1e-15."""
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(2, 5))
    f = RKHSFunction(Gaussian(1.0), x, w)
    zero = f - RKHSFunction(Gaussian(1.0), x[::-1], w[::-1])
    for A in (tensor(zero, f), tensor(f, zero)):
        assert max(hs_norm(A), op_norm(A)) <= 1e-6 * norm(f) * np.abs(w).sum()


def test_rank_one_terms_of_opposite_sizes():
    """thm-operator-core: f ⊗ g written once plainly and once as
    (f/c) ⊗ (c g), which is 2 f ⊗ g."""
    rng = np.random.default_rng(0)
    f, g = plane_function(rng), line_function(rng)
    for c in (1e-200, 1e200):
        A = tensor(f / c, c * g) + tensor(f, g)
        for measure in (hs_norm, op_norm):
            assert np.isclose(measure(A), 2 * norm(f) * norm(g), rtol=1e-9,
                              atol=0)
    # 1e-100 d ⊗ 1e-100 d beside 0 ⊗ 1e200 d, for a unit vector d.
    A = RKHSOperator(Delta(), ["d"], Delta(), ["d"],
                     LowRank([[1e-100, 0.0]], [[1e-100, 1e200]]))
    for measure in (hs_norm, op_norm):
        assert np.isclose(measure(A), 1e-200, rtol=1e-9, atol=0)


def test_norm_of_a_difference_keeps_its_digits():
    """hs_norm: where the trace cancels the core takes over. The trace
    alone would leave 1e-8; here A - B has a norm of 1e-12 by itself."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    A = cross_covariance(Gaussian(1.0), Laplace(1.0), x, y)
    dense = RKHSOperator(A.k, x[::-1], A.l, y[::-1],
                         np.asarray(A.weights)[::-1, ::-1])
    small = tensor(RKHSFunction(A.k, x[:1], [1e-12]),
                   RKHSFunction(A.l, y[:1], [1.0]))
    assert np.isclose(hs_norm(A - dense + small), 1e-12, rtol=1e-2, atol=0)


@few
@given(seeds)
def test_moved_features_have_the_same_eigenvalues(seed):
    """lem-operator-moved in fractions: W'KW and WLW', of which the singular
    values and the inner product are made, do not see h and g."""
    rng = np.random.default_rng(seed)

    def whole(*shape):
        return rng.integers(-9, 10, size=shape).astype(object) * Fraction(1)

    P, Q, W, V = whole(5, 2), whole(4, 3), whole(5, 4), whole(5, 4)
    for M in (W, V):                          # rows and columns sum to zero
        M -= M.sum(axis=0) / Fraction(5)
        M -= M.sum(axis=1)[:, None] / Fraction(4)
    h, g = whole(2), whole(3)
    K, L = P @ P.T, Q @ Q.T
    Kh, Lg = (P - h) @ (P - h).T, (Q - g) @ (Q - g).T
    assert (W.T @ K @ W == W.T @ Kh @ W).all()
    assert (W @ L @ W.T == W @ Lg @ W.T).all()
    assert np.trace(W.T @ K @ V @ L) == np.trace(W.T @ Kh @ V @ Lg)


@pytest.mark.parametrize("k", [Linear(), 2.5 * Linear(), Linear() + Gaussian(
    1.0), Mapped(Linear(), lambda X: 3 * X)], ids=["linear", "scaled", "sum",
                                                   "mapped"])
@pytest.mark.parametrize("n", [40, 1100])
def test_norms_of_centred_operators_far_from_zero(k, n):
    """lem-operator-moved: quarters are exact near 1e8, so both norms and
    the inner product are those of the points near zero."""
    rng = np.random.default_rng(n)
    x = rng.integers(0, 9, size=(n, 2)) / 4
    y = x[:, 0] + rng.integers(0, 9, size=n) / 4
    near = cross_covariance(k, k, x, y)
    for shift, other in ((1e8, -1e8), (0.0, 1e8), (1e8, 0.0)):
        far = cross_covariance(k, k, x + shift, y + other)
        assert np.isclose(hs_norm(far), hs_norm(near), rtol=1e-9, atol=0)
        assert np.isclose(op_norm(far), op_norm(near), rtol=1e-9, atol=0)
        assert np.isclose(hs_inner(far, 3 * far), 3 * hs_norm(near) ** 2,
                          rtol=1e-9, atol=0)
    if n == 40:
        W = np.asarray(near.weights)[:30] @ np.diag(x[:, 0] + 1)
        W -= W.mean(axis=0)                     # the columns sum to zero
        near, far = (RKHSOperator(k, x[:30] + a, k, y, W)
                     for a in (0, 1e8))
        for measure in (hs_norm, op_norm):
            assert np.isclose(measure(near), measure(far), rtol=1e-9,
                              atol=0)


def test_small_norms_of_many_points_are_in_doubt_below_their_rounding_only():
    """def-precision: of features of size one, more than a thousand, the root of a sum of 1e-16
    is certain to 3e-8; a covariance of 1e-5 has digits, one of 5e-9 has none."""
    k, x, y = Gaussian(1.0), np.tile([0.0, 1.0], 550), np.repeat([0.0, 1.0], 550)
    small = cross_covariance(k, k, x, y + 1e-4 * x)
    few = cross_covariance(k, k, x[526:574], (y + 1e-4 * x)[526:574])
    assert np.isclose(hs_norm(small), hs_norm(few), rtol=1e-3)
    assert np.isclose(op_norm(small), op_norm(few), rtol=1e-3)
    lost = cross_covariance(k, k, x, y + 3e-8 * x)
    for measure in (hs_norm, op_norm):
        with pytest.warns(PrecisionWarning, match="came out as"):
            measure(lost)


@pytest.mark.parametrize("n", [30, 1100])
def test_norms_that_are_lost_far_from_zero_say_so(n):
    """def-precision: polynomial features near 1e9 cannot be moved."""
    rng = np.random.default_rng(n)
    x, y = rng.integers(0, 9, size=(2, n)) / 4 + 1e9
    for A in (cross_covariance(k2, k2, x, y),
              cross_covariance(k2, k2, x, y - 1e9)):
        for measure in (hs_norm, op_norm):
            with pytest.warns(PrecisionWarning, match="came out as"):
                measure(A)
    lost = RKHSOperator(k2, x[:5], Linear(), [1.0], [[1.0], [1], [-1], [-1],
                                                     [0.0]])
    with pytest.warns(PrecisionWarning):
        hs_norm(lost)


def test_norms_that_are_zero_are_not_in_doubt():
    """def-precision, thm-empirical-covariance: a constant variable, equal
    operators, weights and kernels that vanish: no warning (all warnings are
    errors here), and nothing but rounding."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 50))
    assert is_constant(Features(Linear(), [2.0, 2.0]))
    assert is_constant(Features(Linear(), [2.0]))
    assert not is_constant(Features(Delta(), ["a", "b"]))
    for k in (Gaussian(1.0), Linear(), k2, Delta()):
        for constant in (np.full(50, 3.3), np.full(50, 1e9)):
            C = cross_covariance(k, Gaussian(1.0), constant, x)
            size = op_norm(cross_covariance(k, k, constant, constant,
                                            centred=False))
            for measure in (hs_norm, op_norm):
                assert measure(C) <= 1e-7 * size**0.5
    A = cross_covariance(Gaussian(1.0), Laplace(1.0), x, y)
    same = RKHSOperator(A.k, x[::-1], A.l, y[::-1], A.weights)
    for B in (A - same, A - A, 0 * A):
        assert max(hs_norm(B), op_norm(B)) < 1e-14


@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e100, 1e200])
def test_norms_are_homogeneous_at_all_scales(scale):
    """hs_norm, op_norm: weights, kernels and factors of extreme size."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    k, l = Gaussian(1.0), Laplace(1.0)
    C = cross_covariance(k, l, x, y)
    dense = RKHSOperator(k, x, l, y, np.asarray(C.weights))
    thin = tensor(RKHSFunction(k, x, np.ones(20)),
                  RKHSFunction(l, y, np.ones(20)))
    lopsided = RKHSOperator(k, x, l, y, LowRank(
        np.full(20, scale), np.full(20, 1 / scale)))
    for measure in (hs_norm, op_norm):
        for A in (C, dense, thin):
            one = measure(A)
            assert np.isclose(measure(scale * A), scale * one, rtol=1e-9, atol=0)
            both = RKHSOperator(scale * k, x, scale * l, y, A.weights)
            assert np.isclose(measure(both), scale * one, rtol=1e-9, atol=0)
            mixed = RKHSOperator(scale * k, x, (1 / scale) * l, y, A.weights)
            assert np.isclose(measure(mixed), one, rtol=1e-9, atol=0)
        assert np.isclose(measure(lopsided), measure(thin), rtol=1e-9, atol=0)
    # A kernel of size 1e-170 with weights to match.
    tiny = RKHSOperator(1e-170 * k, x, 1e-170 * l, y, 1e170 * dense.weights)
    assert np.isclose(hs_norm(tiny), hs_norm(C), rtol=1e-9, atol=0)
    apart = RKHSOperator(1e-300 * k, x, 1e300 * l, y,
                         1e-200 * dense.weights)
    assert np.isclose(hs_norm(apart), 1e-200 * hs_norm(C), rtol=1e-9, atol=0)
    assert np.isclose(hs_inner(apart, 1e200 * apart),
                      1e-200 * hs_norm(C) ** 2, rtol=1e-9, atol=0)


def test_norms_with_the_smallest_kernels():
    """hs_norm, op_norm, hs_inner: k(x, x) down to 1e-307."""
    for size in (1e-299, 1e-303, 1e-307):
        A = RKHSOperator(size * Delta(), ["a"], Delta(), ["b"], [[3.0]])
        for measure in (hs_norm, op_norm):
            assert np.isclose(measure(A), 3 * size**0.5, rtol=1e-12, atol=0)
        assert np.isclose(hs_inner(A, A), 9 * size, rtol=1e-12, atol=0)
    # 1e-315 is a subnormal number, with about eight digits.
    A = RKHSOperator(1e-315 * Delta(), ["a"], Delta(), ["b"], [[3.0]])
    assert np.isclose(hs_norm(A), 3 * 1e-315**0.5, rtol=1e-7, atol=0)


def test_norms_with_features_of_very_different_sizes():
    """thm-operator-core: 2 e ⊗ e + d ⊗ d with unit vectors e and d, where
    d is written as a feature of size 1e12 with a small weight."""
    k = TensorProduct(Delta(), Linear())
    points = Pairs(["e", "d"], [1.0, 1e12])
    for weights in ([2.0, 1e-24], np.diag([2.0, 1e-24])):
        A = RKHSOperator(k, points, k, points, weights)
        assert np.isclose(op_norm(A), 2.0, rtol=1e-12, atol=0)
        assert np.isclose(hs_norm(A), 5**0.5, rtol=1e-12, atol=0)


def test_lanczos_agrees_with_the_core(monkeypatch):
    """prop-lanczos: above DENSE points the operator norm is iterated;
    relative 1e-9 for a residual of 1e-12."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = x[:, 0] + rng.normal(size=300)
    k, l = Gaussian(0.5), Laplace(2.0)
    dense = RKHSOperator(k, x, l, y[:250], rng.normal(size=(300, 250)))
    repeated = RKHSOperator(k, np.vstack([x, x]), l, np.tile(y, 2),
                            np.full(600, 1 / 600))
    few_features = cross_covariance(Polynomial(2), Linear(), x, y)
    for A in (cross_covariance(k, l, x, y), dense, repeated, few_features):
        exact, trace = op_norm(A), hs_norm(A)
        with monkeypatch.context() as patch:
            patch.setattr(module, "DENSE", 10)
            assert np.isclose(op_norm(A), exact, rtol=1e-9, atol=0)
            assert np.isclose(hs_norm(A), trace, rtol=1e-9, atol=0)
            assert np.isclose(op_norm(1e200 * A), 1e200 * exact, rtol=1e-9, atol=0)


def test_lanczos_values_are_lower_bounds_near_an_eigenvalue():
    """prop-lanczos after t = 1, 2, 3 steps, with functions and inner
    products of the package; the eigenvalues come from listed features."""
    rng = np.random.default_rng(0)
    A = operator(rng, 8, 7)
    squares = np.linalg.svd(matrix(A), compute_uv=False) ** 2
    u = [line_function(rng)]
    u[0] = u[0] / norm(u[0])
    for _ in range(3):
        w = A.adjoint()(A(u[-1]))
        for _ in range(2):
            w = w - sum(inner(h, w) * h for h in u)
        u.append(w / norm(w))
    for t in (1, 2, 3):
        T = np.array([[inner(a, A.adjoint()(A(b))) for b in u[:t]]
                      for a in u[:t]])
        assert np.allclose(np.triu(T, 2), 0, atol=1e-6 * squares[0])
        theta, s = np.linalg.eigh(T)
        beta = inner(u[t], A.adjoint()(A(u[t - 1])))
        assert theta[-1] <= squares[0] * (1 + 1e-12)
        gap = np.abs(squares - theta[-1]).min()
        assert gap <= abs(beta * s[-1, -1]) + 1e-9 * squares[0]


def test_lanczos_on_a_matrix():
    """prop-lanczos: delta kernels make the operator a matrix, and the
    weights are its right singular vector."""
    M = np.random.default_rng(0).normal(size=(6, 6))
    names = list("abcdef")
    A = RKHSOperator(Delta(), names, Delta(), names, M)
    theta, b = lanczos(A)
    assert np.isclose(np.sqrt(theta), np.linalg.norm(M, 2), rtol=1e-10,
                      atol=0)
    assert np.allclose(M.T @ (M @ b), theta * b, rtol=0, atol=1e-9)
    assert np.isclose(b @ b, 1)
    zero = RKHSOperator(Delta(), names, Delta(), names, 0 * M)
    assert lanczos(zero) == (0.0, None)


def test_lanczos_stops_when_the_eigenvalue_is_known(monkeypatch):
    """prop-lanczos: the last entry of the eigenvector says how good it is. One eigenvalue above
    a dense rest needs few steps, although the others are not known by then."""
    module, steps = sys.modules["rkhs_lit.cross_covariance"], []
    solve = module.eigh_tridiagonal
    monkeypatch.setattr(module, "eigh_tridiagonal", lambda *a: steps.append(1) or solve(*a))
    d = np.append(np.linspace(0, 0.7, 199), 1.0)
    theta, b = lanczos(RKHSOperator(Delta(), range(200), Delta(), range(200), d))
    assert 12 < len(steps) < 40
    assert np.isclose(theta, 1, rtol=1e-14) and np.isclose(abs(b[-1]), 1, rtol=1e-12)


def test_lanczos_goes_on_until_the_eigenvalue_is_found_or_hopeless():
    """prop-lanczos: close eigenvalues take more than ten steps, which are made unless all
    that was found by then is at most `zero`; the unit of the kernel does not matter."""
    n, d = 60, np.linspace(0.5, 1, 60)
    A = RKHSOperator(Delta(), range(n), Delta(), range(n), np.diag(d))
    assert np.isclose(lanczos(A)[0], 1, rtol=1e-9)
    assert np.isclose(lanczos(A, 0.9)[0], 1, rtol=1e-9)
    assert 0.9 < lanczos(A, 1.5)[0] < 1 - 1e-4
    tiny = 1e-40 * Delta()
    theta, b = lanczos(RKHSOperator(tiny, range(n), tiny, range(n), np.diag(d)))
    assert np.isclose(theta / 1e-80, 1, rtol=1e-9) and np.isclose(b @ b, 1e40)


def test_many_points_hold_no_square_matrix():
    """hs_norm, op_norm of 2000 pairs: weights stay of rank one beside a
    diagonal. The traced memory stays below one Gram matrix (32 MB)."""
    import tracemalloc

    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    tracemalloc.start()
    C = cross_covariance(Gaussian(1.0), Gaussian(1.0), x,
                         x + rng.normal(size=2000))
    assert op_norm(C) < hs_norm(C) < 2 * op_norm(C)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(C.weights, LowRank)
    assert peak < 20e6


# --- the cross-covariance operator

def tables():
    return st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3),
                    min_size=2, max_size=4).filter(
        lambda rows: sum(map(sum, rows)) > 0)


@few
@given(tables(), seeds)
def test_covariance_of_a_table_is_observed_minus_expected(rows, seed):
    """prop-contingency and thm-cross-covariance, in exact arithmetic: the
    moments of f(X) g(Y) over the table against ⟨f, C g⟩."""
    total = sum(map(sum, rows))
    p = [[Fraction(c, total) for c in row] for row in rows]
    q = [sum(row) for row in p]
    r = [sum(column) for column in zip(*p)]
    rng = np.random.default_rng(seed)
    x, y = np.arange(len(rows)) * 0.5, np.arange(3) - 1.0
    k, l = Polynomial(2), Gaussian(1.0)
    f = RKHSFunction(k, rng.normal(size=3), rng.normal(size=3))
    g = RKHSFunction(l, rng.normal(size=3), rng.normal(size=3))
    fx, gy = [[Fraction(v) for v in h] for h in (f(x), g(y))]
    moment = sum(p[i][j] * fx[i] * gy[j]
                 for i in range(len(rows)) for j in range(3))
    covariance = moment - sum(map(lambda a, b: a * b, q, fx)) * sum(
        map(lambda a, b: a * b, r, gy))
    P = np.array(p, dtype=float)
    uncentred = RKHSOperator(k, x, l, y, P)
    mu_x = RKHSFunction(k, x, np.array(q, dtype=float))
    mu_y = RKHSFunction(l, y, np.array(r, dtype=float))
    C = uncentred - tensor(mu_x, mu_y)
    assert np.isclose(inner(f, uncentred(g)), float(moment), **close)
    assert np.isclose(inner(f, C(g)), float(covariance), **close)
    W = np.array([[float(p[i][j] - q[i] * r[j]) for j in range(3)]
                  for i in range(len(rows))])
    assert np.allclose(np.asarray(C.weights), W)
    # A sample with each cell as often as its count has the same operator.
    cells = [(i, j) for i, row in enumerate(rows) for j, c in enumerate(row)
             for _ in range(c)]
    sample = cross_covariance(k, l, x[[i for i, _ in cells]],
                              y[[j for _, j in cells]])
    assert hs_norm(sample - C) < 1e-7 * (1 + hs_norm(C))
    assert np.isclose(inner(f, sample(g)), float(covariance), **close)


@few
@given(seeds, st.booleans())
def test_empirical_operator_gives_the_sample_covariance(seed, centred):
    """thm-empirical-covariance: ⟨f, C g⟩ from Gram matrices, from the
    operator, from its adjoint, and from numpy.cov."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    X, Y = rng.normal(size=(n, 2)), rng.normal(size=n)
    k, l = Gaussian(1.0), Laplace(0.5)
    C = cross_covariance(k, l, X, Y, centred=centred)
    alpha, beta = rng.normal(size=(2, n))
    f, g = RKHSFunction(k, X, alpha), RKHSFunction(l, Y, beta)
    H = np.eye(n) - (1 / n if centred else 0)
    shift = (f(X).mean(), g(Y).mean()) if centred else (0.0, 0.0)
    wanted = np.mean((f(X) - shift[0]) * (g(Y) - shift[1]))
    assert np.isclose(inner(f, C(g)), wanted, **close)
    assert np.isclose(inner(g, C.adjoint()(f)), wanted, **close)
    assert np.isclose(alpha @ k(X) @ H @ l(Y) @ beta / n, wanted, **close)
    assert np.allclose(np.asarray(C.weights), H / n)
    # The function that comes out, at new points: Cov(k(t, X), g(Y)).
    T = rng.normal(size=(3, 2))
    assert np.allclose(C(g)(T), ((k(T, X) - k(T, X).mean(
        axis=1, keepdims=True) * centred) * g(Y)).mean(axis=1), **close)


def test_empirical_operator_is_the_covariance_matrix_of_features():
    """thm-empirical-covariance against numpy.cov on listed features."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=30)
    C = cross_covariance(k2, k3, X, Y)
    P, Q = polynomial_features(X, 2), polynomial_features(Y, 3)
    wanted = np.cov(P.T, Q.T, bias=True)[:6, 6:]
    assert np.allclose(matrix(C), wanted)
    assert np.isclose(hs_norm(C), np.linalg.norm(wanted))
    assert np.isclose(op_norm(C), np.linalg.norm(wanted, 2))
    adjoint = cross_covariance(k3, k2, Y, X)
    assert np.allclose(matrix(C.adjoint()), matrix(adjoint))


@few
@given(seeds)
def test_squared_norm_is_the_trace_of_centred_gram_matrices(seed):
    """thm-empirical-covariance: tr(K̃ L̃)/n², with repeated points."""
    rng = np.random.default_rng(seed)
    X, Y = rng.integers(0, 4, size=(2, 15)).astype(float)
    k, l = Gaussian(1.0), Laplace(2.0)
    wanted = np.trace(centre(k(X)) @ centre(l(Y))) / 15**2
    got = hs_norm(cross_covariance(k, l, X, Y)) ** 2
    assert np.isclose(got, wanted, rtol=1e-9, atol=1e-14)


@few
@given(seeds)
def test_operator_is_the_mean_embedding_of_pairs(seed):
    """thm-covariance-embedding: values, inner products and norms agree
    with functions of pairs; centred, with the product of the marginals."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 6))
    k, l = Gaussian(1.0), Laplace(1.0)
    both = TensorProduct(k, l)
    C = cross_covariance(k, l, x, y, centred=False)
    joint = mean_embedding(both, Pairs(x, y))
    S, T = rng.normal(size=3), rng.normal(size=2)
    grid = Pairs(np.repeat(S, 2), np.tile(T, 3))
    assert np.allclose(C.values(S, T).ravel(), joint(grid))
    assert np.isclose(hs_norm(C), norm(joint))
    f = RKHSFunction(k, S, rng.normal(size=3))
    g = RKHSFunction(l, T, rng.normal(size=2))
    fg = RKHSFunction(both, grid, np.outer(f.weights, g.weights).ravel())
    assert np.allclose(fg(Pairs(x, y)), f(x) * g(y))
    assert np.isclose(hs_inner(C, tensor(f, g)), inner(joint, fg), **close)
    marginals = mean_embedding(both, Pairs(np.repeat(x, 6), np.tile(y, 6)))
    assert np.isclose(hs_norm(cross_covariance(k, l, x, y)),
                      norm(joint - marginals), rtol=1e-6, atol=0)


def test_error_and_bias_by_enumeration():
    """prop-covariance-error, exactly: all samples of size n from a table
    with six cells, delta kernels, so operators are their tables."""
    p = [[Fraction(2, 10), Fraction(1, 10)], [Fraction(3, 10),
         Fraction(2, 10)], [Fraction(1, 10), Fraction(1, 10)]]
    cells = list(product(range(3), range(2)))
    q = [sum(row) for row in p]
    r = [sum(column) for column in zip(*p)]
    for n in (1, 2, 3):
        error, mean = Fraction(0), {c: Fraction(0) for c in cells}
        for sample in product(cells, repeat=n):
            chance = Fraction(1)
            table = {c: Fraction(sample.count(c), n) for c in cells}
            for i, j in sample:
                chance *= p[i][j]
            rows = [sum(table[i, j] for j in range(2)) for i in range(3)]
            columns = [sum(table[i, j] for i in range(3)) for j in range(2)]
            error += chance * sum((table[i, j] - p[i][j]) ** 2
                                  for i, j in cells)
            for i, j in cells:
                mean[i, j] += chance * (table[i, j] - rows[i] * columns[j])
        assert error == (1 - sum(p[i][j] ** 2 for i, j in cells)) / n
        for i, j in cells:
            assert mean[i, j] == (p[i][j] - q[i] * r[j]) * (n - 1) / n
    # The package builds the same table from a sample.
    sample = [(0, 0), (0, 0), (2, 1), (1, 0)]
    C = cross_covariance(Delta(), Delta(), *zip(*sample))
    table = np.zeros((3, 2))
    for c in sample:
        table[c] += 1 / 4
    wanted = table - np.outer(table.sum(axis=1), table.sum(axis=0))
    assert np.allclose(C.values(range(3), range(2)), wanted)


def test_gaussian_closed_form():
    """The population operator of normal variables: quadrature as a table
    of weights against the closed form, to ten digits."""
    Sigma = np.array([[1.0, 0.7], [0.7, 1.0]])
    D = np.diag([0.8, 1.2]) ** 2
    nodes, w = np.polynomial.hermite_e.hermegauss(60)
    w = w / w.sum()
    root = np.linalg.cholesky(Sigma)
    z = np.array([root @ [a, b] for a in nodes for b in nodes])
    C = RKHSOperator(Gaussian(0.8), z[:, 0], Gaussian(1.2), z[:, 1],
                     np.outer(w, w).ravel())
    u, v = 0.4, -1.1
    t = np.array([u, v])
    exact = np.sqrt(np.linalg.det(D) / np.linalg.det(D + Sigma)) * np.exp(
        -t @ np.linalg.solve(D + Sigma, t) / 2)
    assert np.isclose(C.values([u], [v])[0, 0], exact, rtol=1e-10, atol=0)


def test_covariance_operator_is_positive_with_the_trace_of_the_gram_matrix():
    """thm-hilbert-covariance 4 and ex-trace-covariance: ⟨f, C f⟩ is a
    variance, C is its own adjoint, its trace is tr(K̃)/n, and the bound
    ‖C_XY‖² ≤ E‖ξ - m‖² E‖η - m‖² holds."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 25))
    k, l = Gaussian(0.5), Laplace(1.0)
    C = cross_covariance(k, k, x, x)
    for _ in range(5):
        f = RKHSFunction(k, rng.normal(size=4), rng.normal(size=4))
        assert np.isclose(inner(f, C(f)), np.var(f(x)), **close)
    assert hs_norm(C - C.adjoint()) < 1e-15
    core = operator_core(C)
    trace = np.trace(centre(k(x))) / 25
    assert np.isclose(np.trace(core), trace)
    other = np.trace(centre(l(y))) / 25
    assert hs_norm(cross_covariance(k, l, x, y)) ** 2 <= trace * other


@few
@given(seeds)
def test_centring_matrix(seed):
    """lem-centring-matrix: exact for n = 2 to 7, and the centred features
    have the Gram matrix H K H."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    H = [[Fraction(int(i == j)) - Fraction(1, n) for j in range(n)]
         for i in range(n)]
    HH = [[sum(H[i][s] * H[s][j] for s in range(n)) for j in range(n)]
          for i in range(n)]
    assert HH == H == [list(column) for column in zip(*H)]
    assert all(sum(row) == 0 for row in H)
    assert sum(H[i][i] for i in range(n)) == n - 1
    H = np.array(H, dtype=float)
    assert np.linalg.matrix_rank(H) == n - 1
    X = rng.normal(size=n)
    mu = mean_embedding(Laplace(1.0), X)
    features = [RKHSFunction(Laplace(1.0), [x], [1.0]) - mu for x in X]
    gram = [[inner(f, g) for g in features] for f in features]
    assert np.allclose(gram, H @ Laplace(1.0)(X) @ H)
    C = cross_covariance(Delta(), Delta(), range(n), range(n))
    assert np.allclose(n * np.asarray(C.weights), H)
    assert np.allclose(C.weights @ np.ones(n), 0)


def test_chi_square_is_a_hilbert_schmidt_norm():
    """ex-chi-square against SciPy."""
    counts = np.array([[12, 5, 3], [4, 9, 7]])
    p = counts / counts.sum()
    q, r = p.sum(axis=1), p.sum(axis=0)

    def delta_over(mass):
        return Conjugated(Delta(), lambda i: mass[np.asarray(i)] ** -0.5)

    x = np.repeat([0, 0, 0, 1, 1, 1], counts.ravel())
    y = np.repeat([0, 1, 2, 0, 1, 2], counts.ravel())
    C = cross_covariance(delta_over(q), delta_over(r), x, y)
    wanted = chi2_contingency(counts, correction=False).statistic
    assert np.isclose(len(x) * hs_norm(C) ** 2, wanted)


def test_strings_and_pairs_are_points():
    """thm-cross-covariance asks nothing of the sets."""
    texts = ["a cat", "a dog", "two cats and a dog"]
    k, l = FeatureKernel(words), TensorProduct(Delta(), Linear())
    pairs = Pairs(["x", "y", "x"], [1.0, 2.0, 3.0])
    C = cross_covariance(k, l, texts, pairs)
    f = RKHSFunction(k, ["a cat and a dog"], [1.0])
    g = RKHSFunction(l, Pairs(["x"], [2.0]), [1.0])
    assert np.isclose(inner(f, C(g)),
                      np.cov(f(texts), g(pairs), bias=True)[0, 1])
    assert np.isclose(hs_norm(C) ** 2, np.trace(
        centre(k(texts)) @ centre(l(pairs))) / 9)
    assert len((C + C).X) == 3


# --- regularised equations

@few
@given(seeds, st.sampled_from([1e-6, 1e-2, 10.0]))
def test_regularised_solve_solves(seed, lam):
    """thm-regularised-solve: the residual, for functions and operators,
    on and off the points, for covariance and rank-one operators. Rounding
    is divided by lam."""
    rng = np.random.default_rng(seed)
    k, l = Gaussian(1.0), Laplace(1.0)
    X, Y = rng.normal(size=(8, 2)), rng.normal(size=8)
    f = RKHSFunction(k, rng.normal(size=(3, 2)), rng.normal(size=3))
    positive = RKHSOperator(k, X, k, X, np.diag(rng.uniform(size=8)))
    T = np.vstack([X, f.points])
    for A in (cross_covariance(k, k, X, X), positive, tensor(f, f),
              cross_covariance(k, k, X, X, centred=False)):
        for g in (f, RKHSFunction(k, X, Y)):
            h = regularised_solve(A, g, lam)
            assert np.allclose(A(h)(T) + lam * h(T), g(T), rtol=1e-8,
                               atol=1e-8)
            assert norm(h) <= norm(g) / lam * (1 + 1e-9)
        for B in (cross_covariance(k, l, X, Y), tensor(f, RKHSFunction(
                l, Y[:2], [1.0, 2.0]))):
            S = regularised_solve(A, B, lam)
            got = (A @ S + lam * S).values(T, Y)
            assert np.allclose(got, B.values(T, Y), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_regularised_solve_of_a_triangular_matrix(lam):
    """thm-regularised-solve: with the delta kernel the weights are the matrix. A triangular one
    of entries of all sizes is balanced, and its rows and columns stay where they are."""
    W = np.array([[1.0, 0, 0], [2e9, 3, 0], [5, 7e-9, 2]])
    A = RKHSOperator(Delta(), range(3), Delta(), range(3), W)
    h = regularised_solve(A, RKHSFunction(Delta(), range(3), [1.0, 2.0, 3.0]), lam)
    value = h(range(3))
    error = W @ value + lam * value - [1, 2, 3]
    # Rounding is divided by lam.
    assert (np.abs(error) <= 1e-14 / lam * (W @ np.abs(value) + 3)).all()


def test_regularised_solve_in_listed_features():
    """thm-regularised-solve against a linear system in the features, also
    for an operator that is neither symmetric nor over one list of points."""
    rng = np.random.default_rng(0)
    A = RKHSOperator(k2, rng.normal(size=(4, 2)), k2, rng.normal(size=(7, 2)),
                     rng.normal(size=(4, 7)))
    f, a = plane_function(rng), matrix(A)
    h = regularised_solve(A, f, 0.7)
    assert np.allclose(matrix(h), np.linalg.solve(a + 0.7 * np.eye(6),
                                                  matrix(f)))
    thin = tensor(f, plane_function(rng)) + tensor(plane_function(rng), f)
    h = regularised_solve(thin, f, 0.7)
    assert np.allclose(matrix(h), np.linalg.solve(
        matrix(thin) + 0.7 * np.eye(6), matrix(f)))
    B = operator(rng)
    S = regularised_solve(A, B, 0.7)
    assert np.allclose(matrix(S), np.linalg.solve(a + 0.7 * np.eye(6),
                                                  matrix(B)))


def test_regularised_solve_at_all_scales():
    """thm-regularised-solve: (c A + c λ)⁻¹ = (A + λ)⁻¹ / c, and dense
    weights whose entries differ by the sizes of their points."""
    rng = np.random.default_rng(0)
    X, k = rng.normal(size=6), Gaussian(1.0)
    C, f = cross_covariance(k, k, X, X), RKHSFunction(k, X[:2], [1.0, 2.0])
    wanted = regularised_solve(C, f, 0.1)(X)
    for c in (1e-200, 1e200):
        for weights in (c * C.weights, c * np.asarray(C.weights)):
            h = regularised_solve(RKHSOperator(k, X, k, X, weights), f,
                                  0.1 * c)
            assert np.allclose(c * h(X), wanted, rtol=1e-9, atol=0)
    # A = 1·1 + 1e-20·1e10·1e10 = 2, so (A + 1) h = 1 has the slope 1/3.
    one, points = RKHSFunction(Linear(), [1.0], [1.0]), [1.0, 1e10]
    for weights in ([1.0, 1e-20], np.diag([1.0, 1e-20])):
        A = RKHSOperator(Linear(), points, Linear(), points, weights)
        assert np.isclose(regularised_solve(A, one, 1.0)([1.0])[0], 1 / 3)


def test_regularised_solve_keeps_digits_and_refuses_what_rounding_covers():
    """thm-regularised-solve with Q = ΨH: against the symmetric system of
    R = H / sqrt(n), whose unknowns have no part along the vector of ones.
    Without H the two would agree to three digits only."""
    rng = np.random.default_rng(0)
    n, k, lam = 25, Gaussian(1.0), 1e-10
    x = rng.normal(size=n)
    f = RKHSFunction(k, x[:3] + 0.1, [1.0, -2.0, 3.0])
    R = (np.eye(n) - 1 / n) / n**0.5
    c = R @ np.linalg.solve(R @ k(x) @ R + lam * np.eye(n), R @ f(x))
    T = np.linspace(-2, 2, 7)
    wanted = (f(T) - k(T, x) @ c) / lam
    for weights in (np.asarray, lambda W: W):
        C = cross_covariance(k, k, x, x)
        C = RKHSOperator(k, x, k, x, weights(C.weights))
        got = regularised_solve(C, f, lam)(T)
        assert np.abs(got - wanted).max() < 1e-6 * np.abs(wanted).max()
    # Entries near 1e4 are rounded to 1e-12, above lam.
    k, x = Linear() + Gaussian(1.0), x + 100
    with pytest.raises(ValueError, match="^lam must be larger"):
        regularised_solve(cross_covariance(k, k, x, x), RKHSFunction(
            k, x[:1], [1.0]), 1e-13)


def test_ridge_regression_is_a_quotient_of_covariances():
    """thm-regularised-solve and thm-ridge-rkhs: lam there is n lam here."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 30))
    k, l = Gaussian(0.7), Gaussian(1.0)
    g = RKHSFunction(l, [0.0, 1.0], [1.0, 2.0])
    C_xx = cross_covariance(k, k, x, x, centred=False)
    C_xy = cross_covariance(k, l, x, y, centred=False)
    fit = ridge(k, x, g(y), 30 * 0.05)
    T = np.linspace(-2, 2, 9)
    assert np.allclose(regularised_solve(C_xx, C_xy(g), 0.05)(T), fit(T))
    assert np.allclose(regularised_solve(C_xx, C_xy, 0.05)(g)(T), fit(T))
    h = regularised_solve(C_xx, C_xy(g), 0.05)
    assert len(h.points) == 30                # the same points, once


# --- corners


def test_diagonal_weights_need_as_many_x_as_y():
    """RKHSOperator: a vector of weights is a diagonal."""
    A = RKHSOperator(Linear(), [1.0, 2.0], Linear(), [3.0, 4.0], [1, 2])
    assert A(RKHSFunction(Linear(), [1.0], [1.0]))([1.0]) == 3 + 2 * 2 * 4
    with pytest.raises(ValueError, match="^weights"):
        RKHSOperator(Linear(), [1.0, 2.0], Linear(), [3.0], [1.0, 2.0])


def test_operators_do_not_change_with_their_makers_arrays():
    """Frozen records hold copies."""
    X, W = np.array([1.0, 2.0]), np.eye(2)
    U = np.ones((2, 1))
    A = RKHSOperator(Linear(), X, Linear(), X, W)
    B = RKHSOperator(Linear(), X, Linear(), X, LowRank(U, U, X))
    one = RKHSFunction(Linear(), [1.0], [1.0])
    before = A(one)([1.0]), B(one)([1.0])
    X[:], W[:], U[:] = 9.0, 9.0, 9.0
    assert (A(one)([1.0]), B(one)([1.0])) == before
    for array in (A.weights, A.X, B.weights.U, B.weights.diagonal):
        with pytest.raises(ValueError):
            array[0] = 1.0
    with pytest.raises(AttributeError):
        A.weights = W
    for operator in (A, B):
        for again in (copy.deepcopy(operator), pickle.loads(pickle.dumps(
                operator))):
            assert again(one)([1.0]) == operator(one)([1.0])
            assert not np.asarray(again.X).flags.writeable
    for again in (copy.copy(B.weights), pickle.loads(pickle.dumps(B.weights))):
        assert np.array_equal(again, B.weights)
        assert not again.U.flags.writeable


def test_operators_refuse_functions_of_other_spaces():
    """thm-operator-calculus: A @ B, A + B and <A, B> are defined for operators between the same
    spaces only, those of one kernel and of points of one dimension; then A @ A* is an operator."""
    rng = np.random.default_rng(0)
    A, g = operator(rng), line_function(rng)
    with pytest.raises(ValueError, match="^B must have .*degree=3.* got"):
        A @ A
    assert hs_norm(A @ A.adjoint()) > 0 and hs_norm(A + A) > hs_norm(A)
    for wrong in (lambda: A + A.adjoint(), lambda: A - A.adjoint(),
                  lambda: hs_inner(A, A.adjoint())):
        with pytest.raises(ValueError, match="^B must have the kernel"):
            wrong()
    one_space_differs = RKHSOperator(A.k, A.X, Gaussian(1.0), A.Y, A.weights)
    for B in (one_space_differs, one_space_differs.adjoint()):
        with pytest.raises(ValueError, match="^B must have the kernel"):
            (A if B.k == A.k else A.adjoint()) + B
    # The same kernel on the line and on the plane.
    line = RKHSOperator(k3, [1.0], k3, [1.0], [[1.0]])
    plane = RKHSOperator(k3, [[1.0, 2.0]], k3, [[1.0, 2.0]], [[1.0]])
    mixed = RKHSOperator(k3, [1.0], k3, [[1.0, 2.0]], [[1.0]])
    for wrong in (lambda: line + plane, lambda: hs_inner(line, plane),
                  lambda: line + mixed, lambda: hs_inner(mixed, line),
                  lambda: line @ plane,
                  lambda: regularised_solve(line, plane, 1.0),
                  lambda: regularised_solve(mixed, g, 1.0)):
        with pytest.raises(ValueError, match="dimension|of one length"):
            wrong()
    assert hs_norm(line @ mixed @ plane) > 0


def test_norms_refuse_what_is_no_operator(monkeypatch):
    """def-hs: the square of a norm is not negative where both kernels are kernels, whatever the
    solver; and it is a float, or an error says that it is none."""
    big, less = (RKHSOperator(c * Linear(), [1.0], c * Linear(), [1.0], [[c]])
                 for c in (1e300, 1e70))
    for measure in (hs_norm, op_norm, lambda a: hs_inner(a, a)):
        with pytest.raises(ValueError, match="too large"):
            measure(big)
        assert np.isfinite(measure(less))
    hostile = FunctionKernel(lambda s, t: 1.0 if s == t else -2.0)
    bad = RKHSOperator(hostile, ["a", "b"], Linear(), [1.0], [[1.0], [1.0]])
    negative = RKHSOperator(FunctionKernel(lambda s, t: -1.0), ["a"],
                            Linear(), [1.0], [[1.0]])
    for wrong, value in product((bad, negative), (hs_norm, op_norm)):
        for A, name in ((wrong, "k"), (wrong.adjoint(), "l")):
            with pytest.raises(ValueError, match=f"^(the kernels of A|{name}) must .*posit"):
                value(A)
    monkeypatch.setattr(module, "DENSE", 0)
    # Lanczos' method meets a negative square in either space.
    names = list("abcdefgh")
    wide = RKHSOperator(hostile, names, Delta(), names, np.ones(8))
    for measure, wrong in ((hs_norm, bad), (op_norm, wide),
                           (op_norm, wide.adjoint())):
        with pytest.raises(ValueError, match="squared norm is negative"):
            measure(wrong)
    kind = FunctionKernel(lambda s, t: 1.0 if s == t else -1 / 7)    # the last that is a kernel
    A = RKHSOperator(kind, names, Delta(), names, np.ones(8))
    assert np.isclose(op_norm(A), np.sqrt(8 / 7))


def test_overflow_is_refused_and_never_silent():
    """thm-operator-calculus in floats: weights of 1e307 in every rule are a ValueError and no
    infinity, and those of 1e150 and of 1e10 give what the rule says."""
    k = Gaussian(1.0)
    zeros = np.zeros(30)
    big, less = (RKHSOperator(k, zeros, k, zeros, np.full((30, 30), c)) for c in (1e307, 1e150))
    one = RKHSFunction(k, [0.0], [1.0])
    for attempt in (lambda A: A(one), lambda A: A @ A,
                    lambda A: 10 * A + 10 * A,
                    lambda A: A.values([0.0], [0.0])):
        with pytest.raises(ValueError, match="^(weights|A gave)"):
            attempt(big)
        attempt(less)
    with pytest.raises(ValueError, match="^(weights|A gave)"):
        regularised_solve(big, one, 1.0)
    level = 1e-140 * less              # A 1 = 900 c 1 on constants, here with c = 1e10
    assert np.isclose(regularised_solve(level, one, 9e12)([0.0])[0], 1 / 1.8e13, atol=0)
    assert np.isclose((10 * less + 10 * less).values([0.0], [0.0])[0, 0], 900 * 2e151)


def test_regularised_solve_refuses_bad_input():
    """regularised_solve: every argument, and an operator that is not
    positive and cannot be inverted."""
    rng = np.random.default_rng(0)
    A, f = operator(rng), plane_function(rng)
    square = A @ A.adjoint()
    with pytest.raises(ValueError, match="^A must be"):
        regularised_solve(f, f, 1.0)
    with pytest.raises(ValueError, match="^A must have the kernel"):
        regularised_solve(A, f, 1.0)
    for wrong in (line_function(rng), "f", None, A.adjoint()):
        with pytest.raises(ValueError, match="^f must"):
            regularised_solve(square, wrong, 1.0)
    for lam in (0.0, -1.0, np.nan, np.inf, "1", None):
        with pytest.raises(ValueError, match="^lam must"):
            regularised_solve(square, f, lam)
    unit = RKHSFunction(Delta(), ["a"], [1.0])
    with pytest.raises(ValueError, match="weights"):     # 1e10 / 1e-300
        regularised_solve(0 * tensor(unit, unit), 1e10 * unit, 1e-300)
    for minus in (RKHSOperator(Delta(), ["a"], Delta(), ["a"], [[-1.0]]),
                  -1.0 * tensor(unit, unit)):
        with pytest.raises(ValueError, match="^lam must be larger"):
            regularised_solve(minus, unit, 1.0)
        assert np.isclose(regularised_solve(minus, unit, 3.0)(["a"]), 0.5)


def test_repr_names_the_spaces():
    """An operator prints short."""
    A = operator(np.random.default_rng(0))
    assert repr(A) == ("RKHSOperator(Polynomial(degree=3, c=1.0) -> "
                       "Polynomial(degree=2, c=1.0), n=5, m=4)")
