"""Identities of the chapter on the Riesz representation theorem."""

import itertools
import math
import re
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import legendre
from rkhs_lit import (
    Delta,
    GramSolution,
    RKHSFunction,
    gram_solve,
    inner,
    is_positive_definite,
    norm,
    riesz_representer,
)
from rkhs_lit.conventions import PrecisionWarning
from scipy.linalg import cholesky, invhilbert, null_space, solve_triangular
from scipy.signal import savgol_coeffs

EPS = np.finfo(float).eps
SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(1, 7)


def inner_product(n, rng):
    """A Gram matrix with condition number at most (n + 1)², about: the
    solutions are then good to 1e-12, and the tests allow 1e-9."""
    F = rng.uniform(-1, 1, size=(n, n))
    return F.T @ F + np.eye(n)


def dependent(n, rank, rng):
    """Elements with whole coordinates: rank and Gram matrix are exact."""
    B = rng.integers(-3, 4, size=(rank, n))
    return B, (B.T @ B).astype(float)


def monomial_gram(n):
    degree = np.add.outer(np.arange(n), np.arange(n))
    return np.where(degree % 2 == 0, 2 / (degree + 1), 0.0)


def hilbert_matrix(n):
    return 1 / (np.add.outer(np.arange(n), np.arange(n)) + 1.0)


# Riesz representation


@settings(deadline=None)
@given(SEEDS, SIZES)
def test_the_functional_is_the_inner_product_with_its_representer(seed, n):
    """thm-riesz: l(f) = <f, g> for all f."""
    rng = np.random.default_rng(seed)
    G, l = inner_product(n, rng), rng.normal(size=n)
    c = riesz_representer(G, l)
    f = rng.normal(size=(20, n))
    np.testing.assert_allclose(f @ G @ c, f @ l, rtol=1e-9, atol=1e-9)


@settings(deadline=None)
@given(SEEDS, SIZES)
def test_the_representer_is_unique(seed, n):
    """thm-riesz: the inner product with g gives g back, and nothing else."""
    rng = np.random.default_rng(seed)
    G, g = inner_product(n, rng), rng.normal(size=n)
    np.testing.assert_allclose(riesz_representer(G, G @ g), g, atol=1e-9)


@settings(deadline=None)
@given(SEEDS, SIZES)
def test_norm_of_the_functional_is_the_norm_of_the_representer(seed, n):
    """thm-riesz, prop-operator-norm-gram: a functional is an operator to R,
    whose norm is the singular value of the row l R^-1."""
    rng = np.random.default_rng(seed)
    G, l = inner_product(n, rng), rng.normal(size=n)
    c = riesz_representer(G, l)
    row = solve_triangular(cholesky(G), l, trans="T")
    operator_norm = np.linalg.svd(row[None], compute_uv=False)[0]
    assert np.isclose(np.sqrt(c @ G @ c), operator_norm, rtol=1e-9)
    assert np.isclose(l @ c, operator_norm**2, rtol=1e-9)


@settings(deadline=None)
@given(SEEDS, SIZES)
def test_norm_of_the_functional_is_attained_at_the_representer(seed, n):
    """exm-inner-functional: no f exceeds |l(f)|/|f| = |g|, and g attains it."""
    rng = np.random.default_rng(seed)
    G, l = inner_product(n, rng), rng.normal(size=n)
    c = riesz_representer(G, l)

    def ratio(f):
        return np.abs(f @ l) / np.sqrt(np.sum((f @ G) * f, axis=-1))

    assert np.isclose(ratio(c), np.sqrt(l @ c), rtol=1e-9)
    others = np.vstack([rng.normal(size=(50, n)), np.eye(n)])
    assert np.all(ratio(others) <= ratio(c) * (1 + 1e-9))


@settings(deadline=None)
@given(SEEDS, SIZES)
def test_dual_space_is_isometric(seed, n):
    """cor-riesz-dual: J is linear, and <g, h> is l applied to h."""
    rng = np.random.default_rng(seed)
    G, l, m = inner_product(n, rng), *rng.normal(size=(2, n))
    g, h = riesz_representer(G, l), riesz_representer(G, m)
    np.testing.assert_allclose(riesz_representer(G, 2 * l - 3 * m), 2 * g - 3 * h,
                               atol=1e-9)
    assert np.isclose(g @ G @ h, l @ h, atol=1e-9)
    assert np.isclose(l @ h, m @ g, atol=1e-9)


@settings(deadline=None)
@given(SEEDS, SIZES)
def test_the_representer_does_not_depend_on_the_basis(seed, n):
    """thm-riesz-gram: another basis of the space, the same element."""
    rng = np.random.default_rng(seed)
    G, l = inner_product(n, rng), rng.normal(size=n)
    T = rng.uniform(-1, 1, size=(n, n)) + 2 * n * np.eye(n)
    other = riesz_representer(T.T @ G @ T, T.T @ l)
    np.testing.assert_allclose(T @ other, riesz_representer(G, l), atol=1e-9)


def test_the_proof_by_the_kernel_gives_the_same_representer():
    """thm-riesz: drop a perpendicular onto the null space, adjust the length."""
    rng = np.random.default_rng(0)
    n = 5
    G, l = inner_product(n, rng), rng.uniform(1, 2, size=n)
    f0 = np.eye(n)[0]
    B = np.eye(n)[:, 1:] - np.outer(f0, l[1:] / l[0])
    u = f0 - B @ riesz_representer(B.T @ G @ B, B.T @ G @ f0)
    assert np.allclose(l @ B, 0) and np.allclose(B.T @ G @ u, 0)
    g = (l @ u) / (u @ G @ u) * u
    np.testing.assert_allclose(riesz_representer(G, l), g, rtol=1e-10)


# Exact arithmetic


@pytest.mark.parametrize("n", range(1, 9))
def test_hilbert_matrix_representers_are_whole_numbers(n):
    """thm-riesz-gram: SciPy's exact inverse of the Hilbert matrix has the
    representers of the coordinate functionals in its columns. Error: a few
    n times the condition number (below 2e10) times the precision."""
    exact = invhilbert(n, exact=True)
    found = riesz_representer(hilbert_matrix(n), np.eye(n))
    error = np.abs(found - exact.astype(float)).max() / np.abs(exact).max()
    assert error <= n * np.linalg.cond(hilbert_matrix(n)) * EPS
    fractions = [[Fraction(1, i + j + 1) for j in range(n)] for i in range(n)]
    for i, k in itertools.product(range(n), range(n)):
        column = (int(exact[j, k]) for j in range(n))
        assert sum(a * b for a, b in zip(fractions[i], column)) == (i == k)


@pytest.mark.parametrize("n", range(1, 8))
def test_evaluation_at_the_end_has_norm_n(n):
    """thm-riesz-gram, section 'a famous matrix': the norm of f(0) on degrees
    below n in L2[0, 1] is n. Condition numbers up to 5e8 leave 6 digits."""
    c = riesz_representer(hilbert_matrix(n), np.eye(n)[0])
    assert np.isclose(c[0], n**2, rtol=1e-6)


def evaluation_norm(N):
    m = N // 2
    return Fraction((2 * m + 1) ** 2 * math.comb(2 * m, m) ** 2, 2 * 16**m)


@pytest.mark.parametrize("N", range(12))
def test_evaluation_at_zero_has_the_closed_form_norm(N):
    """prop-evaluation-norm; condition numbers up to 1e8 leave 7 digits."""
    c = riesz_representer(monomial_gram(N + 1), np.eye(N + 1)[0])
    assert np.isclose(c[0], float(evaluation_norm(N)), rtol=1e-7)


def test_evaluation_at_zero_is_unbounded_like_n_over_pi():
    """prop-evaluation-norm: the sum of Legendre squares, in fractions, is the
    closed form, and closed form times pi / N tends to 1 like 1 + 3 / (2 N)."""
    total = Fraction(0)
    for m in range(60):
        total += Fraction(4 * m + 1, 2) * Fraction(math.comb(2 * m, m), 4**m) ** 2
        assert total == evaluation_norm(2 * m) == evaluation_norm(2 * m + 1)
    for N in (200, 2000):
        assert abs(float(evaluation_norm(N)) * math.pi / N - 1) < 2 / N


def test_polynomial_representers_by_quadrature():
    """thm-riesz: value, slope and integral of a polynomial as one integral."""
    n = 7
    i = np.arange(n)
    values = np.column_stack([0.3**i, i == 1, 1 / (i + 1)])
    C = riesz_representer(monomial_gram(n), values)
    nodes, weights = legendre.leggauss(n)  # exact up to degree 13
    f = np.polynomial.Polynomial([1, 1, -3, 0, 0, 2, 0.5])
    wanted = [f(0.3), f.deriv()(0), f.integ()(1) - f.integ()(0)]
    curves = np.polynomial.polynomial.polyval(nodes, C)
    np.testing.assert_allclose(curves @ (weights * f(nodes)), wanted, rtol=1e-10)


# Inner products


@settings(deadline=None)
@given(SEEDS, SIZES, SIZES)
def test_cauchy_schwarz_holds_without_definiteness(seed, n, rank):
    """lem-semi-cauchy-schwarz: <f, g>² <= <f, f> <g, g> with equality at f = g,
    where <f, g> = l(f); elements of norm zero are orthogonal to everything."""
    rng = np.random.default_rng(seed)
    B, G = dependent(n, rank, rng)
    l = G @ rng.integers(-3, 4, size=n)
    c = riesz_representer(G, l)
    f = rng.integers(-5, 6, size=(30, n))
    squares = np.sum((f @ G) * f, axis=1)
    scale = np.abs(l).sum() ** 2 + 1.0
    assert np.all((f @ l) ** 2 <= squares * (l @ c) + 1e-9 * scale * (1 + squares))
    assert np.isclose((c @ l) ** 2, (c @ G @ c) * (l @ c), atol=1e-9 * scale)
    null = f[squares == 0]
    assert np.array_equal(null @ l, np.zeros(len(null)))


@settings(deadline=None)
@given(SEEDS, SIZES)
def test_the_dual_norm_obeys_the_parallelogram_law_and_polarisation(seed, n):
    """prop-parallelogram, for functionals: |l|² = l(g)."""
    rng = np.random.default_rng(seed)
    G, l, m = inner_product(n, rng), *rng.normal(size=(2, n))

    def square(v):
        return v @ riesz_representer(G, v)

    assert np.isclose(square(l + m) + square(l - m), 2 * square(l) + 2 * square(m))
    polarised = (square(l + m) - square(l - m)) / 4
    assert np.isclose(l @ riesz_representer(G, m), polarised, atol=1e-9)


@pytest.mark.parametrize("p, left", [(1, 8), (2, 4), (np.inf, 2)])
def test_only_the_euclidean_norm_obeys_the_parallelogram_law(p, left):
    """exm-l1-no-inner: 8, 4 and 2 against 2 + 2."""
    e1, e2 = np.eye(2)
    found = np.linalg.norm(e1 + e2, p) ** 2 + np.linalg.norm(e1 - e2, p) ** 2
    assert round(found, 12) == left


# Cauchy sequences without a limit


def test_heron_fractions_are_cauchy_and_miss_the_root_of_two():
    """exm-rational-hole: the error is squared at every step and never zero."""
    x, sequence = Fraction(1), []
    for _ in range(8):
        sequence.append(x)
        x = (x + 2 / x) / 2
    for n, x in enumerate(sequence[1:], start=1):
        assert x**2 > 2
        tail = [abs(x - y) for y in sequence[n:]]
        assert max(tail) <= Fraction(1, 2) ** (2**n - 1)
    assert abs(float(sequence[-1]) - math.sqrt(2)) <= 2 * EPS


@pytest.mark.parametrize("n, m", [(1, 1), (1, 2), (2, 7), (5, 40), (30, 31)])
def test_distance_of_two_ramps(n, m):
    """exm-ramps, against Gauss quadrature on the pieces, where both ramps
    are linear and three nodes are exact."""
    nodes, weights = legendre.leggauss(3)
    breaks = sorted({0, 1, *(0.5 + s / (2 * k) for s in (-1, 1) for k in (n, m))})
    total = 0.0
    for a, b in itertools.pairwise(breaks):
        x = (a + b) / 2 + (b - a) / 2 * nodes
        ramps = [np.clip(0.5 + k * (x - 0.5), 0, 1) for k in (n, m)]
        total += (b - a) / 2 * weights @ (ramps[0] - ramps[1]) ** 2
    assert np.isclose(total, (1 - n / m) ** 2 / (12 * n), rtol=1e-12, atol=1e-15)


def test_representers_of_a_half_integral_approach_the_step():
    """exm-no-representer: on polynomials the representers of the integral
    over [1/2, 1] are a Cauchy sequence whose limit, the step, is no polynomial
    and not continuous: |g_N|² increases to 1/2, |g_M - g_N|² is the
    difference of squares, and 1/2 is not reached."""
    def functional(N):
        k = np.arange(N)
        return np.diff([0.5 ** (k + 1), np.ones(N)], axis=0)[0] / (k + 1)

    squares, old = [], None
    for N in (1, 2, 4, 6, 8):
        l, G = functional(N), hilbert_matrix(N)
        c = riesz_representer(G, l)
        squares.append(l @ c)
        if old is not None:
            step = c - np.pad(old, (0, N - len(old)))
            # Coefficients up to 1e4, errors of 1e10 EPS relative to them.
            assert np.isclose(step @ G @ step, squares[-1] - squares[-2],
                              atol=1e-6)
        old = c
    assert np.all(np.diff(squares) > 1e-3) and squares[-1] < 0.5
    # The degrees 0, 1 by hand: representers 1/2 and 3 x / 2 - 1 / 4.
    np.testing.assert_allclose(squares[:2], [1 / 4, 7 / 16], rtol=1e-12)


# Limits


def dual(G, *functionals):
    """Inner product and norm of functionals, by their representers."""
    def pair(l, m):
        return l @ riesz_representer(G, m)

    return pair, lambda l: np.sqrt(pair(l, l)), *functionals


@settings(deadline=None)
@given(SEEDS, SIZES)
def test_equality_in_cauchy_schwarz_means_dependence(seed, n):
    """thm-cauchy-schwarz: what |l|² |m|² exceeds <l, m>² by is |l|² times the squared
    distance of m from the line through l, so zero for m = tl and else not; and the norm
    obeys the triangle inequality."""
    rng = np.random.default_rng(seed)
    pair, size, l, m = dual(inner_product(n, rng), *rng.normal(size=(2, n)))
    rest = m - pair(l, m) / pair(l, l) * l
    excess = (size(l) * size(m)) ** 2 - pair(l, m) ** 2
    assert np.isclose(excess, pair(l, l) * pair(rest, rest), rtol=1e-9, atol=1e-9)
    assert (excess > 1e-9) == (n > 1)
    assert np.isclose(abs(pair(l, -3 * l)), size(l) * size(-3 * l))
    assert size(l + m) <= size(l) + size(m) + 1e-9
    with pytest.raises(ValueError, match="Cauchy"):
        gram_solve([[pair(l, l), 1.001 * size(l) * size(m)],
                    [1.001 * size(l) * size(m), pair(m, m)]], [1.0, 0.0])


@settings(deadline=None)
@given(SEEDS, SIZES)
def test_a_convergent_sequence_is_cauchy_and_bounded(seed, n):
    """lem-cauchy-first: l_i = l + m / 2^i has one limit, distances |m| |2^-i - 2^-j|, a
    bound |l| + |m|, and norms whose distance to |l| is at most |m| / 2^i."""
    rng = np.random.default_rng(seed)
    _, size, l, m = dual(inner_product(n, rng), *rng.normal(size=(2, n)))
    steps = 2.0 ** -np.arange(30)
    l_i = l + steps[:, None] * m
    sizes = np.array([size(v) for v in l_i])
    assert np.all(sizes <= size(l) + size(m) + 1e-9)
    assert np.all(np.abs(sizes - size(l)) <= steps * size(m) + 1e-9)
    for i, j in itertools.combinations(range(0, 30, 7), 2):
        assert np.isclose(size(l_i[i] - l_i[j]), size(m) * (steps[i] - steps[j]), rtol=1e-6)
        assert abs(sizes[i] - sizes[j]) <= size(l_i[i] - l_i[j]) + 1e-9
    # Another limit l + h would have to be at a distance of zero.
    assert size(l_i[-1] - (l + m)) > size(m) / 2 > size(l_i[-1] - l)


@settings(deadline=None)
@given(SEEDS, SIZES)
def test_inner_products_of_limits_are_limits(seed, n):
    """lem-inner-continuous: the bound of the proof holds, and the values converge."""
    rng = np.random.default_rng(seed)
    pair, size, f, g, h, e = dual(inner_product(n, rng), *rng.normal(size=(4, n)))
    for t in (1.0, 1e-2, 1e-4, 1e-6):
        f_n, g_n = f + t * h, g + t * e
        gap = abs(pair(f_n, g_n) - pair(f, g))
        bound = size(f_n) * size(g_n - g) + size(f_n - f) * size(g)
        assert gap <= bound + 1e-9
    assert gap <= 1e-5 * (size(f) + size(g) + 1) * (size(h) + size(e))


def test_square_summable_sequences_have_their_limits():
    """thm-l2-complete: the inner product is the sum of x_a y_a, also over words as a; the
    sequences (1, 1/2, ..., 1/n, 0, ...) are Cauchy, and their limit x, found coordinate by
    coordinate, has the norm pi / sqrt 6, so that it is in the space, and in norm."""
    x = RKHSFunction(Delta(), ["a", "b", "c"], [1.0, 2.0, 3.0])
    y = RKHSFunction(Delta(), ["c", "d", "b"], [4.0, 5.0, 6.0])
    assert inner(x, y) == 2 * 6 + 3 * 4

    def cut(n):
        i = np.arange(1, n + 1)
        return RKHSFunction(Delta(), i, 1 / i)

    total, x = np.pi**2 / 6, {n: cut(n) for n in (10, 100, 1000)}
    for m, n in itertools.combinations(x, 2):
        assert norm(x[n] - x[m]) ** 2 <= 1 / m - 1 / n     # 1/i² < 1/(i-1) - 1/i
        np.testing.assert_array_equal(x[n](np.arange(1, m + 1)), x[m](np.arange(1, m + 1)))
    for n in x:
        rest = total - norm(x[n]) ** 2                      # |x - x_n|²
        assert 1 / (n + 1) < rest < 1 / n


# What a limit can leave


def vanishing(n):
    """Coefficients of f_n = 1 - g/g(0), for the representer g of p -> p(0) on degrees < n
    with the inner product ∫ p q over [0, 1]: it is 0 at 0, and n² = g(0)."""
    g = riesz_representer(hilbert_matrix(n), np.eye(n)[0])
    return np.eye(n)[0] - g / g[0]


def test_a_subset_that_lacks_a_limit_is_not_closed():
    """lem-closed-complete: f_n is in {p: p(0) = 0}, |f_n - f_m|² = 1/n² - 1/m², a Cauchy
    sequence, but |f_n - 1| = 1/n, and 1 is not in this set: it is neither complete nor
    closed. Among the degrees < N the set is closed, and 1 has the distance 1/N from it."""
    f, one, G = np.zeros((7, 6)), np.eye(6)[0], hilbert_matrix(6)
    for n in range(1, 7):
        f[n, :n] = vanishing(n)
    np.testing.assert_allclose(f[:, 0], 0, atol=1e-12)
    for n in range(1, 7):
        assert np.isclose((one - f[n]) @ G @ (one - f[n]), 1 / n**2, rtol=1e-7)
        for m in range(n, 7):
            square = (f[n] - f[m]) @ G @ (f[n] - f[m])
            assert np.isclose(square, 1 / n**2 - 1 / m**2, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("n", range(2, 8))
def test_a_finite_dimensional_subspace_keeps_a_distance(n):
    """prop-finite-complete: x, ..., x^(n-1) span a closed subspace, 1 is not in it and not
    in its closure, its distance 1/n is positive; coefficients are bounded by norms."""
    G = hilbert_matrix(n)
    p = riesz_representer(G[1:, 1:], G[1:, 0])
    square = G[0, 0] - p @ G[1:, 0]
    assert np.isclose(square, 1 / n**2, rtol=1e-5)
    # A Cauchy sequence has Cauchy coordinates: |c_0| = |f(0)| <= n |f|, with equality.
    f = np.concatenate([[1.0], -p])
    assert np.isclose(1.0, n * np.sqrt(f @ G @ f), rtol=1e-5)
    others = np.random.default_rng(n).normal(size=(50, n))
    sizes = np.sqrt(np.sum((others @ G) * others, axis=1))
    assert np.all(np.abs(others[:, 0]) <= n * sizes * (1 + 1e-6))


# Operators


@settings(deadline=None)
@given(SEEDS, SIZES, SIZES)
def test_operator_norm_is_the_largest_singular_value(seed, n, m):
    """prop-operator-norm-gram, cor-adjoint: the norm of A is the root of the
    largest eigenvalue of A* A, with A* from Riesz."""
    rng = np.random.default_rng(seed)
    G_V, G_W = inner_product(n, rng), inner_product(m, rng)
    M = rng.normal(size=(m, n))
    R_V, R_W = cholesky(G_V), cholesky(G_W)
    whole = solve_triangular(R_V, (R_W @ M).T, trans="T").T
    norm = np.linalg.svd(whole, compute_uv=False)[0]

    adjoint = riesz_representer(G_V, M.T @ G_W)
    f, h = rng.normal(size=n), rng.normal(size=m)
    assert np.isclose((M @ f) @ G_W @ h, f @ G_V @ (adjoint @ h), atol=1e-8)
    largest = np.linalg.eigvals(adjoint @ M).real.max()
    assert np.isclose(np.sqrt(largest), norm, rtol=1e-6)
    a = rng.normal(size=(n, 50))
    ratios = np.linalg.norm(R_W @ M @ a, axis=0) / np.linalg.norm(R_V @ a, axis=0)
    assert np.all(ratios <= norm * (1 + 1e-9))


@settings(deadline=None)
@given(SEEDS, SIZES, SIZES)
def test_the_operator_norm_is_a_norm(seed, n, m):
    """prop-operator-norm: |A + B| <= |A| + |B|, |tA| = |t| |A|, and |A| bounds what A does
    to any f, so that only A = 0 has the norm zero."""
    rng = np.random.default_rng(seed)
    G_V, G_W = inner_product(n, rng), inner_product(m, rng)

    def size(M):                               # the root of the norm of A* A
        adjoint = riesz_representer(G_V, M.T @ G_W)
        return np.sqrt(max(np.linalg.eigvals(adjoint @ M).real.max(), 0.0))

    A, B = rng.normal(size=(2, m, n))
    assert size(A + B) <= (size(A) + size(B)) * (1 + 1e-9)
    assert np.isclose(size(-2.5 * A), 2.5 * size(A), rtol=1e-9)
    assert size(A) > 0 == size(0 * A)
    f = rng.normal(size=n)
    assert np.sqrt(A @ f @ G_W @ A @ f) <= size(A) * np.sqrt(f @ G_V @ f) * (1 + 1e-9)


@settings(deadline=None)
@given(SEEDS, SIZES, st.floats(0.01, 100.0))
def test_continuity_at_one_point_bounds_a_functional(seed, n, epsilon):
    """thm-bounded-continuous: the largest ball around f0 on which l moves by
    at most epsilon has radius delta, and |l| = epsilon / delta."""
    rng = np.random.default_rng(seed)
    G, l, f0 = inner_product(n, rng), *rng.normal(size=(2, n))
    c = riesz_representer(G, l)
    delta = epsilon / np.sqrt(l @ c)
    h = rng.normal(size=(40, n))
    h *= delta / np.sqrt(np.sum((h @ G) * h, axis=1, keepdims=True))
    moved = np.abs((f0 + h) @ l - f0 @ l)
    assert np.all(moved <= epsilon * (1 + 1e-9) + 1e-12)
    furthest = delta * c / np.sqrt(c @ G @ c)
    assert np.isclose((f0 + furthest) @ l - f0 @ l, epsilon, rtol=1e-6)


def test_differentiation_is_bounded_for_every_degree_but_not_uniformly():
    """thm-bounded-continuous: the norm on degree 1 is sqrt 3; it grows."""
    norms = []
    for n in range(1, 8):
        M = np.diag(np.arange(1.0, n + 1), k=1)[:n]
        adjoint = riesz_representer(monomial_gram(n + 1), M.T @ monomial_gram(n))
        norms.append(np.sqrt(np.linalg.eigvals(adjoint @ M).real.max()))
    assert np.isclose(norms[0], np.sqrt(3)) and np.isclose(norms[1], np.sqrt(15))
    assert np.all(np.diff(norms) > 1)
    # x^n alone: ‖n x^(n-1)‖² / ‖x^n‖² = n² (2n + 1)/(2n - 1), in fractions and as a bound.
    for n, size in enumerate(norms, start=1):
        square = Fraction(2 * n * n, 2 * n - 1) / Fraction(2, 2 * n + 1)
        assert square == Fraction(n * n * (2 * n + 1), 2 * n - 1) > n * n
        assert size >= np.sqrt(float(square)) * (1 - 1e-12)


# Projection


@settings(deadline=None)
@given(SEEDS, st.integers(2, 8), st.integers(1, 6))
def test_projection_is_the_closest_point(seed, n, m):
    """thm-projection, prop-projection-gram; also onto dependent elements."""
    rng = np.random.default_rng(seed)
    G, f = inner_product(n, rng), rng.normal(size=n)
    B = rng.integers(-2, 3, size=(n, m)).astype(float)
    p = B @ riesz_representer(B.T @ G @ B, B.T @ G @ f)

    def square(v):
        return np.sum((v @ G) * v, axis=-1)

    np.testing.assert_allclose(B.T @ G @ (f - p), 0, atol=1e-8)
    others = rng.normal(size=(30, m)) @ B.T
    assert np.all(square(f - p) <= square(f - (p + 0.1 * others)) + 1e-9)
    assert np.isclose(square(f), square(p) + square(f - p), rtol=1e-9)


@settings(deadline=None)
@given(SEEDS, st.integers(2, 8), st.integers(1, 6))
def test_the_complement_of_the_complement_is_the_span(seed, n, m):
    """cor-dense-complement: the projections on M and on its complement add up to the
    identity, so that M is its own double complement; M is everything exactly where its
    complement is zero."""
    rng = np.random.default_rng(seed)
    G, B = inner_product(n, rng), rng.integers(-2, 3, size=(n, m)).astype(float)

    def projection(B):
        return B @ riesz_representer(B.T @ G @ B, B.T @ G)

    complement = null_space(B.T @ G)
    P = projection(B)
    Q = projection(complement) if complement.size else np.zeros((n, n))
    np.testing.assert_allclose(P + Q, np.eye(n), atol=1e-8)
    double = null_space(complement.T @ G) if complement.size else np.eye(n)
    assert double.shape[1] == np.linalg.matrix_rank(B)
    np.testing.assert_allclose(P @ double, double, atol=1e-8)
    assert np.allclose(P, np.eye(n)) == (complement.shape[1] == 0)


def test_sum_norm_has_many_closest_points():
    """thm-closest-point fails in the sum norm: a segment is closest."""
    t = np.linspace(-1, 2, 301)
    distance = np.abs(np.column_stack([t - 1, t])).sum(axis=1)
    closest = t[np.isclose(distance, distance.min())]
    assert np.isclose(distance.min(), 1)
    assert np.isclose(closest.min(), 0) and np.isclose(closest.max(), 1)
    euclidean = np.hypot(t - 1, t)
    assert np.isclose(t[np.isclose(euclidean, euclidean.min())], 0.5).all()


def test_slope_weights_are_those_of_savitzky_and_golay():
    """eq-slope-filter: SciPy computes the same representers."""
    h, degree, step = 6, 3, 0.1
    basis = np.vander(np.arange(-h, h + 1) / h, degree + 1, increasing=True)
    for deriv in range(degree + 1):
        values = np.zeros(degree + 1)
        values[deriv] = math.factorial(deriv) / (h * step) ** deriv
        weights = basis @ riesz_representer(basis.T @ basis, values)
        wanted = savgol_coeffs(2 * h + 1, degree, deriv=deriv, delta=step, use="dot")
        np.testing.assert_allclose(weights, wanted, rtol=1e-9, atol=1e-11)


# Dependent elements


@settings(deadline=None)
@given(SEEDS, st.integers(2, 8), st.integers(1, 8))
def test_dependent_elements_get_the_shortest_coefficients(seed, n, rank):
    """thm-riesz-gram, 2: the pseudo-inverse, an independent road."""
    rng = np.random.default_rng(seed)
    _, G = dependent(n, rank, rng)
    values = G @ rng.integers(-3, 4, size=(n, 2))  # exact: no cancellation
    c = riesz_representer(G, values)
    np.testing.assert_allclose(G @ c, values, atol=1e-8 * (1 + np.abs(values).max()))
    shortest = np.linalg.pinv(G, rcond=1e-12, hermitian=True) @ values
    np.testing.assert_allclose(c, shortest, rtol=1e-6, atol=1e-6)


@settings(deadline=None)
@given(SEEDS, st.integers(2, 8), st.integers(1, 7))
def test_contradictory_values_have_no_representer(seed, n, rank):
    """thm-riesz-gram, 1: a value at an element of norm zero; without it there is one."""
    rng = np.random.default_rng(seed)
    _, G = dependent(n, min(rank, n - 1), rng)
    null = np.linalg.eigh(G)[1][:, 0]  # eigenvalue 0: fewer rows than columns
    consistent = G @ rng.integers(-3, 4, size=n)  # exact: no cancellation
    found = G @ riesz_representer(G, consistent)
    assert np.allclose(found, consistent, rtol=0, atol=1e-8 * (1 + np.abs(consistent).max()))
    values = consistent + 1e-3 * (1 + np.abs(consistent).max()) * null
    with pytest.raises(ValueError, match=r"^values must .* no representer"):
        riesz_representer(G, values)
    both = np.column_stack([consistent, values])
    with pytest.raises(ValueError, match=r"^values\[:, 1\] must"):
        riesz_representer(G, both)


def test_a_contradiction_of_one_part_in_a_billion_is_found():
    """thm-riesz-gram, 1: equal elements with nearly equal values."""
    ones = np.ones((2, 2))
    np.testing.assert_allclose(riesz_representer(ones, [3.0, 3.0]), [1.5, 1.5])
    with pytest.raises(ValueError, match="values"):
        riesz_representer(ones, [1.0, 1.0 + 1e-9])
    with pytest.raises(ValueError, match="elements 0 and 1 they are 3 and 2: there is no rep"):
        riesz_representer(ones, [3.0, 2.0])


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_a_contradiction_has_no_unit(unit):
    """thm-riesz-gram, 1: values at equal elements differ or agree in any unit, up to rounding."""
    ones = np.ones((2, 2))
    with pytest.raises(ValueError, match="at elements 0 and 1 they are"):
        riesz_representer(ones, unit * np.array([3.0, 2.0]))
    assert gram_solve(ones, unit * np.array([3.0, 2.0])).twins == (0, 1, 0)
    near = gram_solve(ones, unit * np.array([3.0, 3.0 * (1 + 4 * EPS)]))
    assert near.twins is None and np.allclose(near.coefficients, 1.5 * unit)


@pytest.mark.parametrize(("near", "rank"), [(38, 1), (42, 2)])
def test_what_counts_as_zero_by_default(near, rank):
    """prop-hidden: 10 n ε beside the largest eigenvalue, which is 40 ε for two elements whose
    inner product is 1 - near ε, with the eigenvalue near ε."""
    c = 1 - near * EPS
    assert gram_solve([[1.0, c], [c, 1.0]], [1.0, 1.0]).rank == rank


def test_elements_that_are_zero_get_the_coefficient_zero():
    """thm-riesz-gram, 2: also where the whole space is zero."""
    G = np.diag([4.0, 0.0, 1.0])
    np.testing.assert_allclose(riesz_representer(G, [8, 0, 3]), [2, 0, 3])
    assert np.array_equal(riesz_representer(np.zeros((2, 2)), [0, 0]), [0, 0])
    for gram, values in ((G, [8, 1, 3]), (np.zeros((2, 2)), [0, 1])):
        with pytest.raises(ValueError, match="no representer"):
            riesz_representer(gram, values)


@pytest.mark.parametrize("square", [1e-40, 0.0, -1e-17])
def test_elements_that_are_rounding_errors_count_as_zero(square):
    """thm-riesz-gram, 2: 1e-16 is noise beside an element of norm one."""
    c = riesz_representer([[1.0, 1e-16], [1e-16, square]], [3.0, 3e-16])
    np.testing.assert_allclose(c, [3.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 1.0, 1e4, 1e9])
def test_the_scale_of_the_elements_does_not_matter(scale):
    """thm-riesz-gram: b_i -> t_i b_i changes c_i to c_i / t_i, whether the
    elements are independent or not."""
    t = np.array([1.0, scale, 1.0])
    G = np.array([[2.0, 1, 0], [1, 2, 1], [0, 1, 2]])
    l = np.array([1.0, -1.0, 2.0])
    c = riesz_representer(G * np.outer(t, t), l * t)
    np.testing.assert_allclose(c * t, riesz_representer(G, l), rtol=1e-12)

    equal = np.outer(t, t) * np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    twice = np.pad(equal, ((0, 1), (0, 1)))
    twice[3], twice[:, 3] = twice[2], twice[:, 2]
    twice[3, 3] = twice[2, 2]
    c = riesz_representer(twice, [1.0, scale, 4.0, 4.0])
    np.testing.assert_allclose(c, [1, 1 / scale, 2, 2], rtol=1e-12)


@pytest.mark.parametrize("n", [4, 9, 30])
def test_centred_elements_work_although_they_are_dependent(n):
    """thm-riesz-gram, 2: b_i minus their mean add up to zero, one of them is
    zero up to rounding, and the coefficients of least norm add up to zero."""
    x = np.linspace(-1, 1, n)
    B = np.column_stack([x, np.cos(3 * x), x**2 - 0.1 * x])
    B = np.vstack([B, B.mean(axis=0)])
    B -= B.mean(axis=0)
    G = B @ B.T
    values = B @ [1.0, 2.0, 3.0]
    c = riesz_representer(G, values)
    size = np.abs(values).max()
    np.testing.assert_allclose(G @ c, values, atol=1e-9 * size)
    assert abs(c.sum()) <= 1e-9 * np.abs(c).sum()
    assert abs(B[-1]).max() < 1e-15 and abs(c[-1]) <= 1e-9 * np.abs(c).sum()


def test_smooth_values_have_a_representer_where_rough_ones_have_none():
    """thm-riesz-gram: fifty bumps so wide that they are dependent up to
    rounding. Their own combinations are read back; noise is refused."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 50)
    G = np.exp(-(x[:, None] - x) ** 2 / 2)
    smooth = G @ rng.normal(size=50)
    c = riesz_representer(G, smooth)
    np.testing.assert_allclose(G @ c, smooth, atol=1e-9 * np.abs(smooth).max())
    assert np.linalg.norm(c) < 1e3
    # The sine needs weights of 1e9; rounding then leaves three digits of it.
    for rough in (rng.normal(size=50), np.sin(6 * x)):
        with pytest.raises(ValueError, match="no representer"):
            riesz_representer(G, rough)


def test_tol_decides_what_is_dependent():
    """thm-riesz-gram: two elements at an angle of 1e-4."""
    G = np.array([[1.0, 1 - 5e-9], [1 - 5e-9, 1.0]])
    apart = riesz_representer(G, [1.0, 1.0 + 1e-7])
    np.testing.assert_allclose(apart, [0.5 - 10, 0.5 + 10], rtol=1e-6)
    together = riesz_representer(G, [1.0, 1.0 + 1e-7], tol=1e-6)
    np.testing.assert_allclose(together, [0.5, 0.5], rtol=1e-6)


# Digits that rounding has taken


def solve_exactly(G, l):
    """Gauss elimination in fractions; None for a singular matrix."""
    n = len(l)
    rows = [[*map(Fraction, row), Fraction(v)] for row, v in zip(G, l)]
    for k in range(n):
        pivot = max(range(k, n), key=lambda r: abs(rows[r][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        if rows[k][k] == 0:
            return None
        for r in range(n):
            if r != k and rows[r][k]:
                factor = rows[r][k] / rows[k][k]
                rows[r] = [v - factor * w for v, w in zip(rows[r], rows[k])]
    return [row[n] / row[k] for k, row in enumerate(rows)]


@pytest.mark.parametrize("n", range(9, 15))
@pytest.mark.parametrize("values", ["first", "ones"])
def test_hilbert_matrices_get_an_answer_or_a_warning(n, values):
    """prop-hidden: the squared norm of f(0) and of f(1) is n², the sum of the inverse
    matrix. Three digits up to n = 10, then rounding in the matrix decides."""
    l = np.eye(n)[0] if values == "first" else np.ones(n)
    G = hilbert_matrix(n)
    if n <= 10:
        assert np.isclose(l @ riesz_representer(G, l), n**2, rtol=1e-3)
        return
    with pytest.warns(PrecisionWarning, match="^values at comb.* none of their digits"):
        c = riesz_representer(G, l)
    assert c.shape == (n,) and gram_solve(G, l).least_norm[0] <= n
    if n == 11:
        assert np.isclose(l @ c, 121, rtol=0.02)
    with pytest.warns(PrecisionWarning, match=r"^values\[:, 1\] at"):
        riesz_representer(G, np.column_stack([G[0], l]))


def near_singular(kind, n, rng):
    """Gram matrices in fractions: Hilbert-like, of the kernel 1/(1 - st), and of vectors
    of which two nearly coincide."""
    if kind == 0:
        shift = int(rng.integers(1, 30))
        return [[Fraction(1, i + j + shift) for j in range(n)] for i in range(n)]
    if kind == 1:
        x = [Fraction(int(v), 1000) for v in rng.integers(-999, 1000, size=n)]
        return [[1 / (1 - s * t) for t in x] for s in x]
    B = [[Fraction(int(v)) for v in row] for row in rng.integers(-3, 4, size=(n, n))]
    small = Fraction(1, 10 ** int(rng.integers(0, 9)))
    B[0] = [a + small * b for a, b in zip(B[-1], B[0])]
    return [[sum(a * b for a, b in zip(r, q)) for q in B] for r in B]


def test_no_representer_is_wrong_in_silence():
    """thm-riesz-gram, prop-hidden: 250 ill-conditioned systems in fractions. What is
    returned without a warning is within 5 % of the representer, as an element; what is
    refused has a norm above the bound of the message."""
    rng = np.random.default_rng(0)
    silent = refused = 0
    for trial in range(250):
        n = int(rng.integers(2, 12))
        G = near_singular(trial % 3, n, rng)
        l = [Fraction(int(v)) for v in rng.integers(-9, 10, size=n)]
        if trial % 2:
            D = [Fraction(10) ** int(e) for e in rng.integers(-4, 5, size=n)]
            G = [[g * s * t for g, t in zip(row, D)] for row, s in zip(G, D)]
            l = [sum(g * a for g, a in zip(row, l)) for row in G]
        exact = solve_exactly(G, l)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                c = riesz_representer(np.array(G, dtype=float), np.array(l, dtype=float))
        except PrecisionWarning:
            continue
        except ValueError as error:
            bound = re.search(r"norm below (\S+),", str(error))
            refused += 1
            assert exact is None or sum(
                a * b for a, b in zip(exact, l)) >= Fraction(bound[1]) ** 2 * Fraction(99, 100)
            continue
        if exact is None:
            continue
        silent += 1
        wrong = [Fraction(a) - b for a, b in zip(c.tolist(), exact)]
        square = sum(a * b * G[i][j] for i, a in enumerate(wrong) for j, b in enumerate(wrong))
        assert square <= Fraction(25, 10_000) * sum(a * b for a, b in zip(exact, l))
    assert silent > 100 and refused > 10


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (4,)])
def test_inner_products_of_n_elements_fill_a_square(shape):
    """thm-riesz-gram: G has n rows and n columns; others are refused, whatever the values."""
    with pytest.raises(ValueError, match="gram must be square"):
        riesz_representer(np.ones(shape), np.ones(shape[0]))
    assert np.allclose(riesz_representer(np.eye(2), [1.0, 2.0]), [1.0, 2.0])


def test_what_is_refused_is_refused_with_a_bound_that_holds():
    """prop-hidden: (1, 0), (1, 1e-9) and (1, 0, 1) have the float Gram matrix of two equal
    elements and a third; the values 1, 2, 1 belong to the representer (1, 1e9, 0)."""
    G = np.array([[1.0, 1, 1], [1, 1 + 1e-18, 1], [1, 1, 2]])
    with pytest.raises(ValueError, match="elements 0 and 1 they are 1 and 2"):
        riesz_representer(G, [1.0, 2, 1])
    G[0, 2] = G[2, 0] = 1 + 2 * EPS      # one rounding tells them apart
    found = gram_solve(G, [1.0, 2, 1])
    assert 1e6 < found.least_norm[0] < 1e9 and found.missing[0] > 0.1
    with pytest.raises(ValueError, match="cannot be decided at this precision"):
        riesz_representer(G, [1.0, 2, 1])


def test_a_matrix_that_is_symmetric_to_few_digits_is_read_to_few_digits():
    """prop-hidden: (1, 0), twice, and (1, t) with t = 1e-5 have the eigenvalue 2 t²/3. In a
    matrix that is symmetric to 1e-10 it is not told from zero, in an exact one it is."""
    v = np.array([[1.0, 0.0], [1.0, 0.0], [np.cos(1e-5), np.sin(1e-5)]])
    G, skew = v @ v.T, np.zeros((3, 3))
    skew[0, 2], skew[2, 0] = 1e-10, -1e-10
    assert gram_solve(G, [1.0, 1.0, 1.0], slack=1e-8).rank == 2
    assert gram_solve(G + skew, [1.0, 1.0, 1.0], slack=1e-8).rank == 1


@pytest.mark.parametrize("size", [1e-200, 1e-6, 1.0, 1e200])
def test_the_share_that_is_missing_and_its_bound_in_numbers(size):
    """prop-hidden: at (1, -1)/√2, of norm zero, the values 3 and 2 are 1/√2, a share of
    1/√26; twice the root of (n + 10) ε times the largest eigenvalue, n = 2, divides it."""
    found = gram_solve([[1.0, 1.0], [1.0, 1.0]], [3 * size, 2 * size])
    assert np.isclose(found.missing[0], 1 / np.sqrt(26), rtol=1e-12)
    assert np.isclose(found.least_norm[0] / size, np.sqrt(1 / 2) / np.sqrt(4 * 24 * EPS))
    assert found.missing[0] == found.hidden[0] and found.rank == 1


def test_a_warning_points_to_the_line_that_asked():
    """prop-hidden: the file of the caller, not the one of the package."""
    with pytest.warns(PrecisionWarning) as record:
        riesz_representer(hilbert_matrix(12), np.ones(12))
    assert record[0].filename == __file__


def test_a_gram_solution_says_what_is_sure():
    """prop-hidden: nothing hidden for independent or exactly dependent elements."""
    for G, l in ((np.eye(3), [1.0, 2, 3]), (np.ones((3, 3)), [2.0, 2, 2])):
        found = gram_solve(G, l)
        assert isinstance(found, GramSolution)
        assert found.rank == np.linalg.matrix_rank(G)
        np.testing.assert_allclose(G @ found.coefficients, l, rtol=1e-14)
        assert not found.hidden.any() and not found.missing.any()
        assert not found.least_norm.any() and found.twins is None
    assert gram_solve(np.ones((3, 3)), [2.0, 2, 3]).twins == (0, 2, 0)


def test_both_judges_of_a_gram_matrix_agree():
    """prop-witness, thm-riesz-gram: 2 x 2 matrices of all scales, against the sign of the
    determinant in fractions."""
    rng = np.random.default_rng(1)
    verdicts = []
    for _ in range(300):
        a, c = 10.0 ** rng.integers(-12, 13, size=2)
        b = np.sqrt(a) * np.sqrt(c) * rng.choice([0.1, 0.9, 0.999, 1.001, 1.1, 10])
        if b <= 1e-14 * max(a, c):       # lost beside the larger entry
            continue
        K = [[a, b], [b, c]]
        positive = Fraction(a) * Fraction(c) > Fraction(b) ** 2
        assert bool(is_positive_definite(K)) == positive
        try:
            riesz_representer(K, [a, b])
            assert positive
        except ValueError as error:
            assert not positive and "gram must" in str(error)
        verdicts.append(positive)
    assert 0.2 < np.mean(verdicts) < 0.8


# Form of the answer


def test_several_functionals_at_once_are_the_single_ones():
    """thm-riesz-gram, column by column; input is not changed."""
    rng = np.random.default_rng(0)
    G, l = inner_product(4, rng), rng.normal(size=(4, 3))
    copies = G.copy(), l.copy()
    C = riesz_representer(G, l)
    assert C.shape == (4, 3) and riesz_representer(G, l[:, :1]).shape == (4, 1)
    for column, values in zip(C.T, l.T):
        single = riesz_representer(G, values)
        assert single.shape == (4,)
        np.testing.assert_allclose(single, column, rtol=1e-12)
    assert np.array_equal(G, copies[0]) and np.array_equal(l, copies[1])


def test_lists_of_whole_numbers_are_welcome():
    """thm-riesz-gram: 2 c = 1 in a line."""
    assert riesz_representer([[2]], [1]) == pytest.approx([0.5])
    found = riesz_representer([[2, 0], [0, 4]], [True, False])
    np.testing.assert_allclose(found, [0.5, 0.0])


# Corners

I2 = np.eye(2)


@pytest.mark.parametrize(
    "gram, message, near",
    [
        ([[1.0, 0.5], [0.5 + 1e-9, 1.0]], "symmetric", [[1.0, 0.5], [0.5 + 1e-16, 1.0]]),
        ([[1.0, 2.0], [2.0, 1.0]], "Cauchy–Schwarz", [[1.0, 1.0], [1.0, 1.0]]),
        ([[1e-300, 1e300], [1e300, 1e-300]], "Cauchy–Schwarz", [[1e-300, 0.0], [0.0, 1e-300]]),
        ([[1.0, 0.0], [0.0, -1.0]], "the eigenvalue -1", [[1.0, 0.0], [0.0, 1e-6]]),
        (-I2, "the eigenvalue -1", I2),
        ([[0.0, 1.0], [1.0, 1.0]], "a'Ga >= 0", [[1.0, 1.0], [1.0, 1.0]]),
    ],
)
def test_gram_must_be_a_gram_matrix(gram, message, near):
    """def-inner-product: symmetric, a'Ga >= 0, and so Cauchy–Schwarz; with values of an element,
    here G(1, 1), the representer has them."""
    with pytest.raises(ValueError, match=f"^gram .*{message}"):
        riesz_representer(gram, [1.0, 1.0])
    values = np.array(near) @ [1.0, 1.0]
    assert np.allclose(np.array(near) @ riesz_representer(near, values), values, rtol=1e-8, atol=0)


def test_indefinite_gram_with_harmless_pairs_is_found():
    """thm-riesz-gram asks for a Gram matrix: every pair obeys Cauchy–Schwarz; the smallest
    eigenvalue is 1 - c √2, for c = 1 and for c = 0.7."""
    for c in (1.0, 0.7):
        gram = [[1.0, c, 0], [c, 1, c], [0, c, 1]]
        if c == 1:
            with pytest.raises(ValueError, match=r"^gram .* eigenvalue -0\.414214"):
                riesz_representer(gram, [1.0, 1.0, 1.0])
        else:
            found = riesz_representer(gram, [1.0, 1.0, 1.0])
            assert np.allclose(found, np.linalg.solve(gram, np.ones(3)))


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("gram, value", [(1e-300, 1e200), (1e-250, 1e80)])
def test_overflow_is_an_error_not_an_infinity(n, gram, value):
    """thm-riesz-gram in floats: in the values per unit of norm, or only in the coefficients;
    with values smaller by 1e-200 there are coefficients."""
    with pytest.raises(ValueError, match="^values, divided by gram, .* not finite"):
        riesz_representer(np.full((n, n), gram), [value] * n)
    found = riesz_representer(np.full((n, n), gram), [1e-200 * value] * n)
    assert np.isclose(found.sum(), 1e-200 * value / gram, rtol=1e-12, atol=0)


@pytest.mark.parametrize("value", [1e-300, 1e300])
def test_large_and_small_values_are_no_problem_by_themselves(value):
    """thm-riesz-gram: c is linear in l."""
    found = riesz_representer([[1.0, 1.0], [1.0, 1.0]], [value, value])
    np.testing.assert_allclose(found, [value / 2, value / 2], rtol=1e-12)
    np.testing.assert_allclose(riesz_representer([[2.0]], [value]), [value / 2])
