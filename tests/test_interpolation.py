"""Identities of the chapter on interpolation."""

import math
import re
import warnings
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import legendre
from scipy.interpolate import RBFInterpolator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from rkhs_lit import (
    Delta,
    FeatureKernel,
    FunctionKernel,
    Gaussian,
    Laplace,
    Linear,
    Polynomial,
    RKHSFunction,
    Sum,
    decompose,
    inner,
    interpolate,
    is_positive_definite,
    kernel_from_basis,
    norm,
    polynomial_features,
    power_function,
    project,
    riesz_representer,
    substrings,
)
from rkhs_lit.conventions import PrecisionWarning

KERNELS = [Gaussian(0.8), Laplace(1.5), Polynomial(3, 0.5), Linear(), Gaussian(1.0) + Linear()]
MINIMUM = FunctionKernel(min)            # its RKHS has the inner product ∫ f'g'
seeds = st.integers(0, 10_000)

# Rounding in a sum of n products of numbers of size s is below n ε s; the
# functions here have at most 100 terms of size 100.
CLOSE = dict(rtol=1e-10, atol=1e-10)


def random_function(kernel, rng, n=6, d=2):
    return RKHSFunction(kernel, rng.normal(size=(n, d)), rng.normal(size=n))


def polygon(knots, values):
    """The expansion in min(s, t) that is linear between the knots."""
    slopes = np.diff(values, prepend=0.0) / np.diff(knots, prepend=0.0)
    return RKHSFunction(MINIMUM, knots, slopes - np.append(slopes[1:], 0.0))


def section(kernel, x):
    """The function k(x, ·)."""
    return RKHSFunction(kernel, np.atleast_2d(x), [1.0])


def szego(s, t):
    """The kernel 1 / (1 - st) of the Hardy space on (-1, 1)."""
    return 1 / (1 - s * t)


def solve_exactly(G, l):
    """Gauss–Jordan elimination in fractions."""
    rows = [[*row, v] for row, v in zip(G, l)]
    for k in range(len(rows)):
        for r in range(len(rows)):
            if r != k:
                factor = rows[r][k] / rows[k][k]
                rows[r] = [v - factor * w for v, w in zip(rows[r], rows[k])]
    return [row[-1] / row[k] for k, row in enumerate(rows)]


def quietly(function, *arguments):
    """The value, and whether it came with a PrecisionWarning."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        value = function(*arguments)
    return value, any(w.category is PrecisionWarning for w in heard)


def legendre_kernel(n):
    return kernel_from_basis(
        lambda x: legendre.legvander(x, n), np.diag(2 / (2 * np.arange(n + 1) + 1))
    )


def monomial_kernel(n):
    powers = np.arange(n + 1)
    degree = np.add.outer(powers, powers)
    gram = np.where(degree % 2 == 0, 2 / (degree + 1), 0)
    return kernel_from_basis(lambda x: np.power.outer(x, powers), gram)


# Projection, interpolation, power function


@settings(max_examples=30, deadline=None)
@given(seeds, st.sampled_from(KERNELS))
def test_projection_is_orthogonal_and_satisfies_pythagoras(seed, kernel):
    """thm-rkhs-projection, with a point that comes twice."""
    rng = np.random.default_rng(seed)
    f, X = random_function(kernel, rng, n=8), rng.normal(size=(4, 2))
    X = np.vstack([X, X[:1]])
    g = project(f, X)
    size = norm(f) + 1e-3
    # Errors of 1e-16 divided by the smallest eigenvalue that is kept.
    for x in X:
        k_x = section(kernel, x)
        assert abs(inner(f - g, k_x)) < 1e-6 * size * max(norm(k_x), 1)
    assert np.allclose(g(X), f(X), rtol=1e-6, atol=1e-6 * size)
    rest, again = f - g, project(g, X) - g
    assert np.isclose(norm(f) ** 2, norm(g) ** 2 + inner(rest, rest), rtol=1e-5, atol=1e-6)
    assert inner(again, again) < 1e-8 * size**2


def test_projection_on_own_points_is_the_function():
    """thm-rkhs-projection."""
    f = random_function(Laplace(1.0), np.random.default_rng(7))
    assert np.allclose(project(f, f.points).weights, f.weights)


def test_a_point_where_all_functions_vanish_adds_nothing():
    """thm-rkhs-projection, thm-power-function: k(0, 0) = 0 for min(s, t)."""
    x, t = np.arange(1, 9) / 8, np.linspace(0, 1, 9)
    f = polygon(x, x**2)
    with_zero, without = project(f, [0.0, 0.3, 0.7]), project(f, [0.3, 0.7])
    assert np.allclose(with_zero(t), without(t))
    P = power_function(MINIMUM, [0.0, 0.3], t)
    assert np.allclose(P, power_function(MINIMUM, [0.3], t), atol=1e-7)
    assert not project(f, [0.0])(t).any()


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_interpolant_has_the_smallest_norm(seed):
    """thm-interpolant: other interpolants cost ‖f - s‖² more; ‖s‖² = y'c."""
    rng = np.random.default_rng(seed)
    k, x, y = Laplace(0.5), np.sort(rng.uniform(size=5)) + np.arange(5), rng.normal(size=5)
    s = interpolate(k, x, y)
    assert np.allclose(s(x), y) and np.isclose(norm(s) ** 2, y @ s.weights)
    h = RKHSFunction(k, rng.uniform(0, 5, size=7), rng.normal(size=7))
    other = s + h - project(h, x)
    assert np.allclose(other(x), y)
    assert np.isclose(norm(other) ** 2, norm(s) ** 2 + norm(other - s) ** 2)


def test_interpolant_in_the_min_space_is_the_polygon():
    """thm-interpolant, prop-min-rkhs: nothing has a smaller ∫ f'²."""
    x, y = np.array([0.2, 0.5, 0.9]), np.array([1.0, -0.5, 0.7])
    s, t = interpolate(MINIMUM, x, y), np.linspace(0, 1, 50)
    assert np.allclose(s(t), np.interp(t, [0, *x], [0, *y]))
    assert np.allclose(s.weights, polygon(x, y).weights)
    through_zero = interpolate(MINIMUM, [0.0, *x], [0.0, *y])
    assert np.allclose(through_zero(t), s(t))


def test_more_points_make_longer_interpolants_and_smaller_errors():
    """ex-more-points: projections on larger and larger spans (thm-rkhs-projection)."""
    rng = np.random.default_rng(3)
    f = RKHSFunction(Laplace(1.0), rng.normal(size=(20, 2)), rng.normal(size=20))
    X, T = rng.normal(size=(8, 2)), rng.normal(size=(30, 2))
    sizes = [norm(project(f, X[:n])) for n in range(1, 9)]
    assert (np.diff(sizes) > 0).all() and sizes[-1] < norm(f)
    bounds = np.array([power_function(Laplace(1.0), X[:n], T) for n in range(1, 9)])
    assert (np.diff(bounds, axis=0) < 1e-12).all()


def test_interpolation_with_dependent_sections():
    """thm-interpolant: y in the range of a singular K works, other y do not."""
    square = interpolate(Polynomial(2), np.arange(6.0), np.arange(6.0) ** 2)
    assert np.allclose(square([7.0, -2.0]), [49, 4])
    assert np.isclose(norm(square), 1)
    twice = interpolate(Gaussian(1.0), [0.0, 0.0, 1.0], [2.0, 2.0, 3.0])
    assert np.allclose(twice([0.0, 1.0]), [2, 3])
    assert np.isclose(twice.weights[0], twice.weights[1])
    with pytest.raises(ValueError, match="y must"):
        interpolate(Polynomial(2), np.arange(6.0), np.arange(6.0) ** 3)
    with pytest.raises(ValueError, match="y must"):
        interpolate(Gaussian(1.0), [0.0, 0.0], [1.0, 1.01])
    assert norm(interpolate(Gaussian(1.0), [0.0, 0.0], [0.0, 0.0])) == 0


def test_two_values_at_one_point_are_refused_beside_a_large_value():
    """thm-interpolant: the miss of 1 is small against 1e7, but no function has it."""
    k = Gaussian(1.0)
    with pytest.raises(ValueError, match="y must.*points 0 and 1 .* 1 and 2"):
        interpolate(k, [0.0, 0.0, 50.0], [1.0, 2.0, 1e7])
    with pytest.raises(ValueError, match="points 0 and 2 "):
        interpolate(k, [3.0, 50.0, 3.0, 7.0], [1.0, 1e7, 0.0, 5.0])
    s = interpolate(k, [0.0, 0.0, 50.0], [2.0, 2.0, 1e7])
    assert np.allclose(s([0.0, 50.0]), [2, 1e7])


@pytest.mark.parametrize("n", [10, 40, 200])
def test_smooth_values_are_interpolated_though_the_matrix_is_singular(n):
    """thm-interpolant: a function of the space has values that K reaches up to √ε."""
    x = np.linspace(0, 1, n)
    s = interpolate(Gaussian(0.5), x, np.sin(3 * x))
    assert np.abs(s(x) - np.sin(3 * x)).max() < 1e-6
    t = np.linspace(0, 1, 77)
    assert np.abs(s(t) - np.sin(3 * t)).max() < 1e-5


def test_interpolant_is_a_riesz_representer():
    """thm-interpolant: ℓ(k_x) = y, and ⟨s, f⟩ = ℓ(f) on the span."""
    rng = np.random.default_rng(8)
    x, y, k = np.arange(4.0), rng.normal(size=4), Gaussian(1.0)
    s = interpolate(k, x, y)
    assert np.allclose(s.weights, riesz_representer(k(x), y))
    f = RKHSFunction(k, x, rng.normal(size=4))
    assert np.isclose(inner(s, f), f.weights @ y)


def test_interpolation_of_strings():
    k = FeatureKernel(substrings(2))
    X = ["banana", "bandana", "cabana"]
    assert np.allclose(interpolate(k, X, [1.0, 2.0, 3.0])(X), [1, 2, 3])


def test_functions_that_are_no_kernels_are_refused():
    """thm-interpolant needs a positive definite kernel: 1 on the diagonal of K and c beside it
    have the eigenvalues 1 - c and 1 + c, and c = 1 leaves no answer to two values."""
    for c in (2.0, -2.0, 1.1):
        broken = FunctionKernel(lambda x, y, c=c: 1.0 if x == y else c)
        for call in (lambda: interpolate(broken, [0, 1], [1.0, -1.0]),
                     lambda: project(RKHSFunction(broken, [0], [1.0]), [0, 1])):
            with pytest.raises(ValueError, match="kernel must be positive definite"):
                call()
    for c in (0.9, -0.9):
        kernel = FunctionKernel(lambda x, y, c=c: 1.0 if x == y else c)
        assert np.allclose(interpolate(kernel, [0, 1], [1.0, -1.0])([0, 1]), [1, -1])
        assert np.allclose(project(RKHSFunction(kernel, [0], [1.0]), [0, 1])([0, 1]), [1, c])


@pytest.mark.filterwarnings("ignore::rkhs_lit.conventions.PrecisionWarning")
@settings(max_examples=30, deadline=None)
@given(seeds, st.sampled_from(KERNELS))
def test_power_function_bounds_the_error(seed, kernel):
    """thm-power-function: |f - s| <= P ‖f - s‖ at every point."""
    rng = np.random.default_rng(seed)
    f, X, T = random_function(kernel, rng), rng.normal(size=(4, 2)), rng.normal(size=(9, 2))
    s = project(f, X)
    bound = power_function(kernel, X, T) * norm(f - s)
    assert (np.abs(f(T) - s(T)) <= bound * (1 + 1e-6) + 1e-5 * (1 + norm(f))).all()


def test_power_function_is_the_distance_and_is_attained():
    """thm-power-function: P(t) = ‖k_t - P_V k_t‖, and that function has the error P²."""
    kernel, X, T = Laplace(0.7), np.array([0.0, 0.4, 1.0]), np.array([0.2, 0.9, 2.0])
    for t, P in zip(T, power_function(kernel, X, T)):
        k_t = RKHSFunction(kernel, [t], [1.0])
        f = k_t - project(k_t, X)
        assert np.isclose(norm(f), P)
        assert np.allclose(f(X), 0, atol=1e-12) and np.isclose(f([t])[0], P * norm(f))


def test_power_function_of_min_is_that_of_a_brownian_bridge():
    """thm-power-function, ex-bridge: √((t - a)(b - t)/(b - a)), then √(t - b)."""
    X, T = [0.2, 0.5, 0.9], np.array([0.1, 0.3, 0.5, 0.6, 0.97])
    squares = [0.1 * 0.1 / 0.2, 0.1 * 0.2 / 0.3, 0, 0.1 * 0.3 / 0.4, 0.07]
    # The root of a rounding error of 1e-16 is 1e-8.
    assert np.allclose(power_function(MINIMUM, X, T), np.sqrt(squares), atol=1e-7)


def test_power_function_of_a_singular_system():
    """thm-power-function: with as many points as features nothing is unknown."""
    with pytest.warns(PrecisionWarning, match="power function at point 0 of T"):
        P = power_function(Polynomial(2), [0.0, 1.0, 1.0, 2.0, 3.0], [5.0, -1.0])
    assert np.allclose(P, 0, atol=1e-4)
    P = power_function(Delta(), ["a", "a"], ["a", "b"])
    assert np.array_equal(P, [0, 1])


def test_scipy_interpolates_alike():
    """thm-interpolant: RBFInterpolator with epsilon = 1/(√2 σ) and no polynomial."""
    rng = np.random.default_rng(11)
    X, y, T = rng.normal(size=(8, 2)), rng.normal(size=8), rng.normal(size=(5, 2))
    theirs = RBFInterpolator(
        X, y, kernel="gaussian", epsilon=1 / (np.sqrt(2) * 0.6), degree=-1
    )
    # The Gram matrix of these points has a condition of about 1e2.
    assert np.allclose(interpolate(Gaussian(0.6), X, y)(T), theirs(T), rtol=1e-9)


def test_power_function_is_the_standard_deviation_of_a_gaussian_process():
    """thm-power-function: scikit-learn without noise; its alpha is 1e-12."""
    X, T = np.linspace(0, 3, 5)[:, None], np.linspace(-1, 4, 9)[:, None]
    process = GaussianProcessRegressor(RBF(0.7), alpha=1e-12, optimizer=None)
    deviation = process.fit(X, np.sin(X[:, 0])).predict(T, return_std=True)[1]
    assert np.allclose(power_function(Gaussian(0.7), X, T), deviation, atol=1e-5)
    s = interpolate(Gaussian(0.7), X, np.sin(X[:, 0]))
    assert np.allclose(s(T), process.predict(T), atol=1e-9)


def test_power_function_notices_a_kernel_that_is_not_positive_definite():
    """thm-power-function: P² = 1 - 2·2 = -3 is no square of a distance, 1 - 0.6² is one."""
    bad = FunctionKernel(lambda x, y: 1.0 if x == y else 2.0)
    with pytest.raises(ValueError, match="kernel must be positive definite.*point 1.*-3"):
        power_function(bad, [0], [0, 1])
    negative = FunctionKernel(lambda x, y: 1.0 if x == y == 0 else -1.0 * (x == y))
    with pytest.raises(ValueError, match="kernel must be positive definite"):
        power_function(negative, [0], [1])
    good = FunctionKernel(lambda x, y: 1.0 if x == y else 0.6)
    assert np.allclose(power_function(good, [0], [0, 1]), [0, 0.8])


def test_power_function_does_not_blame_a_good_kernel_for_rounding():
    """thm-power-function: a badly conditioned pair of points leaves P² = 0 ± 1e-3."""
    X, T = [[1.0, 1e-7], [1.0, 0.0]], [[0.0, 1.0], [1.0, -1.0], [1.0, 0.0]]
    with pytest.warns(PrecisionWarning):
        P = power_function(Linear(), X, T)
    # P = 0, and the bound is no worse than the one without any point.
    assert (P >= 0).all() and (P <= np.linalg.norm(T, axis=1)).all() and P[2] == 0


# Digits that rounding has taken


def test_no_power_function_is_wrong_in_silence():
    """thm-power-function: in the Hardy space P(t)² is Π ((t - x_i)/(1 - t x_i))² / (1 - t²),
    checked by elimination; a value without warning is right, another is a bound."""
    rng = np.random.default_rng(1)
    k, silent, doubtful = FunctionKernel(szego), 0, 0
    for n in (1, 2, 3, 5, 8, 12, 20, 30):
        X = np.round(rng.uniform(-0.95, 0.95, size=n), 3)
        for t in np.round(rng.uniform(-0.99, 0.99, size=6), 3):
            x, u = {Fraction(s) for s in X.tolist()}, Fraction(float(t))
            square = math.prod(((u - s) / (1 - u * s)) ** 2 for s in x) / (1 - u * u)
            exact = math.sqrt(square)
            (P,), doubt = quietly(power_function, k, X, [t])
            if doubt:
                doubtful += 1
                assert P >= exact * (1 - 1e-9) and P <= (1 - t * t) ** -0.5 * (1 + 1e-9)
            else:
                silent += 1
                assert np.isclose(P, exact, rtol=0.05)
    assert silent > 15 and doubtful > 10
    # The product formula itself, by the definition, in fractions.
    x, u = [Fraction(1, 3), Fraction(-1, 2)], Fraction(1, 5)
    (a, b), (_, d) = [[szego(s, r) for r in x] for s in x]
    p, q = (szego(s, u) for s in x)
    rest = szego(u, u) - (d * p * p - 2 * b * p * q + a * q * q) / (a * d - b * b)
    assert rest == math.prod(((u - s) / (1 - u * s)) ** 2 for s in x) / (1 - u * u)


def gaussian_power_by_decimals(X, t):
    """P(t) for the Gaussian kernel of width one, in 80 digits by elimination."""
    with localcontext() as context:
        context.prec = 80
        points = [Decimal(float(s)) for s in (*X, t)]
        rows = [[(-(a - b) ** 2 / 2).exp() for b in points] for a in points]
        for k in range(len(X)):
            for r in range(k + 1, len(rows)):
                factor = rows[r][k] / rows[k][k]
                rows[r] = [v - factor * w for v, w in zip(rows[r], rows[k])]
        return float(rows[-1][-1].sqrt())       # the last Schur complement


def test_power_function_of_twenty_nodes_is_a_bound():
    """thm-power-function: 0.0227 at t = 3 and 2e-9 and less near the nodes cannot be
    computed from a Gram matrix in double precision; with five nodes they can."""
    X, T = np.linspace(-1, 1, 20), np.array([3.0, 0.51, 1.1, 1.5])
    exact = [gaussian_power_by_decimals(X, t) for t in T]
    assert np.isclose(exact[0], 0.0226617, rtol=1e-5)
    with pytest.warns(PrecisionWarning, match="power function at point 0 of T"):
        P = power_function(Gaussian(1.0), X, T)
    assert (P >= exact).all() and (P <= 1).all() and P[1] < 1e-6
    assert np.array_equal(power_function(Gaussian(1.0), X, X), np.zeros(20))
    few = [gaussian_power_by_decimals(X[::4], t) for t in T]
    assert np.allclose(power_function(Gaussian(1.0), X[::4], T), few, rtol=1e-4)


def test_values_that_cannot_be_told_from_impossible_ones():
    """thm-interpolant, prop-hidden: the interpolant exists and has norm 349873.77; a
    function with these values cannot be excluded, and is not."""
    x = np.linspace(-1, 1, 10)
    with pytest.raises(ValueError, match="^y must.*cannot be decided at this prec") as caught:
        interpolate(Gaussian(3.0), x, np.sin(3 * x))
    bound = float(re.search(r"norm below (\S+) has", str(caught.value))[1])
    assert 1e3 < bound < 349873.77
    # Of the half with fewer points nothing is lost.
    s = interpolate(Gaussian(3.0), x[::2], np.sin(3 * x[::2]))
    assert np.abs(s(x[::2]) - np.sin(3 * x[::2])).max() < 1e-8


def test_an_interpolant_that_misses_says_so():
    """thm-interpolant: independent sections, and weights of 1e12 that cancel."""
    x = np.linspace(-1, 1, 7)
    s, doubt = quietly(interpolate, Gaussian(3.0), x, (-1.0) ** np.arange(7))
    miss = np.abs(s(x) - (-1.0) ** np.arange(7)).max()
    assert doubt == (miss > 1e-6)


def test_a_doubtful_interpolant_and_projection_warn_in_the_callers_line():
    """thm-interpolant, thm-rkhs-projection: the message has the norm of the projection."""
    x = np.linspace(-1, 1, 7)
    with pytest.warns(PrecisionWarning, match="^y is missed by") as record:
        interpolate(Gaussian(4.0), x, (-1.0) ** np.arange(7))
    assert record[0].filename == __file__
    X = -0.3 + 1e-4 * np.arange(7)
    w = [(-1.0) ** i * math.comb(6, i) for i in range(7)]
    with pytest.warns(PrecisionWarning) as record:
        g = project(RKHSFunction(FunctionKernel(szego), X, w), X)
    assert record[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert f"the projection came out as {norm(g):.3g}," in str(record[0].message)


def test_no_projection_is_wrong_in_silence():
    """thm-rkhs-projection: differences of high order on clustered points of the Hardy
    space. ‖Pf - g‖² = r'K⁻¹r for the residual r of g, in fractions."""
    rng = np.random.default_rng(0)
    k, counts = FunctionKernel(szego), [0, 0]
    for trial in range(60):
        n, h = int(rng.integers(3, 9)), 10.0 ** -rng.integers(1, 5)
        X = np.round(rng.uniform(-0.5, 0) + h * np.arange(n), 9)
        Z = X if trial % 2 else np.round(X + h * rng.uniform(-0.4, 0.4, size=n), 9)
        w = np.array([(-1.0) ** i * math.comb(n - 1, i) for i in range(n)]) / h
        g, doubt = quietly(project, RKHSFunction(k, Z, w), X)
        x, z, a, c = ([Fraction(v) for v in u.tolist()] for u in (X, Z, w, g.weights))
        K = [[szego(s, t) for t in x] for s in x]
        v = [sum(b * szego(s, t) for b, t in zip(a, z)) for s in x]
        r = [b - sum(q * d for q, d in zip(row, c)) for row, b in zip(K, v)]
        error, size = (sum(p * q for p, q in zip(u, solve_exactly(K, u))) for u in (r, v))
        counts[doubt] += 1
        assert doubt or error < size / 2     # some digit of the norm is right
    assert min(counts) > 10
    # A smooth function on many points is projected without any doubt.
    t = np.linspace(0, 1, 60)
    smooth = RKHSFunction(Gaussian(0.5), [0.31, 0.77], [1.0, -2.0])
    g, doubt = quietly(project, smooth, t)
    assert not doubt and np.abs(g(t) - smooth(t)).max() < 1e-7
    # Hidden values are no doubt where ‖f - Pf‖, which bounds what they do, is below ‖Pf‖.
    for size, wanted in ((1.0, False), (3.0, True)):
        f = RKHSFunction(Gaussian(0.5), [0.0, 1e-8, 2.0], [1.0, 1.0, size])
        assert quietly(project, f, [0.0, 1e-8, 1.0])[1] == wanted


# Polynomials


@pytest.mark.parametrize("n", [0, 1, 4, 8])
def test_monomials_and_legendre_polynomials_give_the_christoffel_darboux_kernel(n):
    """prop-christoffel-darboux: three roads to one kernel."""
    x, y = np.linspace(-1, 1, 9), np.linspace(-0.93, 0.9, 7)
    V, W = (legendre.legvander(z, n + 1) for z in (x, y))
    total = V[:, :-1] @ np.diag(np.arange(n + 1) + 0.5) @ W[:, :-1].T
    closed = np.outer(V[:, -1], W[:, -2]) - np.outer(V[:, -2], W[:, -1])
    closed *= (n + 1) / 2 / np.subtract.outer(x, y)
    # The Gram matrix of monomials has a condition of 1e6 at n = 8.
    for k in (monomial_kernel(n), legendre_kernel(n)):
        assert np.allclose(k(x, y), total, rtol=1e-8, atol=1e-8)
        assert np.allclose(k(x, y), closed, rtol=1e-8, atol=1e-8)
        assert np.isclose(k.diag([1.0])[0], (n + 1) ** 2 / 2)
        assert np.allclose(k.diag(x), k(x).diagonal())


def test_christoffel_darboux_holds_in_exact_arithmetic():
    """prop-christoffel-darboux, in fractions at x = 1/3, y = -2/5."""

    def values(x, n):
        p = [Fraction(1), x]
        for i in range(1, n):
            p.append(((2 * i + 1) * x * p[i] - i * p[i - 1]) / (i + 1))
        return p

    x, y = Fraction(1, 3), Fraction(-2, 5)
    P, Q = values(x, 13), values(y, 13)
    for n in range(12):
        total = sum(Fraction(2 * i + 1, 2) * P[i] * Q[i] for i in range(n + 1))
        assert total == Fraction(n + 1, 2) * (P[n + 1] * Q[n] - P[n] * Q[n + 1]) / (x - y)


# Sums of spaces


@settings(max_examples=30, deadline=None)
@given(seeds, st.floats(-3, 3))
def test_norm_in_a_sum_is_the_cost_of_the_cheapest_decomposition(seed, tau):
    """thm-sum-rkhs: linear functions lie in both spaces; moving τx costs 3τ²/2."""
    rng = np.random.default_rng(seed)
    line, square = Linear(), Polynomial(2)
    f = RKHSFunction(line + square, rng.normal(size=4), rng.normal(size=4))
    f1, f2 = decompose(f)
    T = rng.normal(size=6)
    assert f1.kernel == line and f2.kernel == square
    assert np.allclose(f(T), f1(T) + f2(T), **CLOSE)
    assert np.isclose(norm(f) ** 2, norm(f1) ** 2 + norm(f2) ** 2, rtol=1e-9, atol=1e-9)
    h1 = RKHSFunction(line, [1.0], [tau])
    h2 = RKHSFunction(square, [1.0, -1.0], [tau / 4, -tau / 4])
    assert np.allclose(h1(T), h2(T), **CLOSE)
    cost = norm(f1 + h1) ** 2 + norm(f2 - h2) ** 2
    assert np.isclose(cost, norm(f) ** 2 + 1.5 * tau**2, rtol=1e-8, atol=1e-8)


def test_norm_in_a_sum_is_the_shortest_vector_of_features():
    """thm-sum-rkhs, thm-feature-rkhs: a second road by least squares."""
    rng = np.random.default_rng(10)
    X, k = rng.normal(size=(5, 2)), Polynomial(2) + Polynomial(3, 0.5)
    f = RKHSFunction(k, X, rng.normal(size=5))
    T = rng.normal(size=(40, 2))
    Phi = np.hstack([polynomial_features(T, 2), polynomial_features(T, 3, 0.5)])
    # 16 features, 10 different monomials: least squares finds the shortest.
    shortest = np.linalg.lstsq(Phi, f(T), rcond=1e-10)[0]
    assert np.isclose(shortest @ shortest, norm(f) ** 2, rtol=1e-8)


def test_spaces_that_share_nothing_add_their_squared_norms():
    """thm-sum-rkhs: constants and linear functions meet in zero only."""
    constant = FunctionKernel(lambda x, y: 1.0)
    f = RKHSFunction(Sum(constant, Linear()), [2.0, -1.0], [1.0, 1.0])   # 2 + t
    f1, f2 = decompose(f)
    assert np.allclose(f1([7.0]), 2) and np.allclose(f2([7.0]), 7)
    assert np.isclose(norm(f) ** 2, 2**2 + 1**2)


def test_membership_is_positive_definiteness():
    """ex-membership: a² k - f ⊗ f is positive definite iff ‖f‖ <= a; ‖t²‖² = 4/3."""
    t = np.linspace(0.05, 1, 20)
    K, F = np.minimum.outer(t, t), np.outer(t**2, t**2)
    assert is_positive_definite(4 / 3 * K - F)
    assert not is_positive_definite(1.3 * K - F)


@pytest.mark.parametrize("value, square, total", [(4.0, 0.0, 16.0), (4.0 + 2e-9, 0.0, 16.0)])
def test_a_distance_in_doubt_is_bounded_by_its_rounding_errors(value, square, total):
    """thm-power-function: 0 ± (n + 5) ε (√k(t, t) + Σ |c_i| √k(x_i, x_i))², also where rounding
    has made the square negative."""
    k = FunctionKernel(lambda s, t: 4.0 if s == t else value)
    with pytest.warns(PrecisionWarning, match="the power function at point 0 of T"):
        P = power_function(k, [0], [1])
    assert np.isclose(P[0] ** 2, square + 6 * np.finfo(float).eps * total, rtol=1e-8, atol=0)


@pytest.mark.parametrize("slant, good", [(5e-9, True), (3e-8, False), (0.1, False)])
def test_a_negative_square_of_a_distance_is_rounding_or_no_kernel(slant, good):
    """thm-power-function: eight digits of (√k(t, t) + Σ |c_i| √k(x_i, x_i))², here 4."""
    k = FunctionKernel(lambda s, t: 1.0 if s == t else 1.0 + slant)
    if good:
        with pytest.warns(PrecisionWarning):
            assert power_function(k, [0], [1])[0] < 1e-7
    else:
        with pytest.raises(ValueError, match="^kernel must be positive definite, but at point 0"):
            power_function(k, [0], [1])
