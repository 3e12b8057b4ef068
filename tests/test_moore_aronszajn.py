"""Identities of the chapter on the Moore–Aronszajn theorem."""

import tracemalloc
import warnings
from dataclasses import FrozenInstanceError, dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import legendre

from rkhs_lit import (
    Delta,
    FeatureKernel,
    Features,
    FunctionKernel,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Pairs,
    Polynomial,
    RKHSFunction,
    Sigmoid,
    TensorProduct,
    as_function,
    as_points,
    gaussian_features,
    inner,
    interpolate,
    is_positive_definite,
    kernel_from_basis,
    norm,
    norm_and_error,
    paired,
    polynomial_features,
    project,
    riesz_representer,
    words,
)
from rkhs_lit.conventions import PrecisionWarning


@dataclass(frozen=True)
class Minimum(Kernel):
    """min(s, t) on the half-line; its RKHS has the inner product ∫ f'g'."""

    def _prepare(self, X, name):
        X = as_points(X, name)
        if X.shape[1] != 1 or X.min() < 0:
            raise ValueError(f"{name} must hold numbers of [0, ∞)")
        return X

    def _gram(self, X, Y):
        return np.minimum.outer(X[:, 0], Y[:, 0])

    def _diag(self, X):
        return X[:, 0]


KERNELS = [Gaussian(0.8), Laplace(1.5), Polynomial(3, 0.5), Linear(), Gaussian(1.0) + Linear()]
seeds = st.integers(0, 10_000)


def random_function(kernel, rng, n=6, d=2):
    return RKHSFunction(kernel, rng.normal(size=(n, d)), rng.normal(size=n))


def polygon(knots, values):
    """The expansion in min(s, t) that is linear between the knots."""
    slopes = np.diff(values, prepend=0.0) / np.diff(knots, prepend=0.0)
    return RKHSFunction(Minimum(), knots, slopes - np.append(slopes[1:], 0.0))


def even(n):
    return np.arange(1, n + 1) / n


def section(kernel, x):
    """The function k(x, ·)."""
    return RKHSFunction(kernel, np.atleast_2d(x), [1.0])


# Rounding in a sum of n products of numbers of size s is below n ε s; the
# functions here have at most 100 terms of size 100.
CLOSE = dict(rtol=1e-10, atol=1e-10)


# RKHSFunction: evaluation and vector space


@pytest.mark.parametrize("kernel", KERNELS)
def test_function_is_the_sum_of_its_terms(kernel):
    """lem-expansion-inner, eq-expansion: written out with Python loops."""
    rng = np.random.default_rng(1)
    f, T = random_function(kernel, rng), rng.normal(size=(4, 2))
    by_hand = [
        sum(w * kernel([x], [t])[0, 0] for w, x in zip(f.weights, f.points)) for t in T
    ]
    assert np.allclose(f(T), by_hand, **CLOSE)


@settings(max_examples=30, deadline=None)
@given(seeds, st.sampled_from(KERNELS), st.floats(-5, 5), st.floats(0.5, 3))
def test_functions_form_a_vector_space(seed, kernel, a, b):
    """def-expansions: operations on expansions are operations on functions."""
    rng = np.random.default_rng(seed)
    f, g = random_function(kernel, rng), random_function(kernel, rng, n=3)
    T = rng.normal(size=(5, 2))
    assert np.allclose((f + g)(T), f(T) + g(T), **CLOSE)
    assert np.allclose((f - g)(T), f(T) - g(T), **CLOSE)
    assert np.allclose((a * f)(T), a * f(T), **CLOSE)
    assert np.allclose((f * a)(T), a * f(T), **CLOSE)
    assert np.allclose((f / b)(T), f(T) / b, **CLOSE)
    assert np.allclose((-f)(T), -f(T), **CLOSE)
    assert np.allclose(sum([f, g, f])(T), 2 * f(T) + g(T), **CLOSE)


def test_numpy_numbers_are_scalars_on_both_sides():
    f = RKHSFunction(Linear(), [1.0], [2.0])
    for c in (np.float64(3), np.float32(3), np.int64(3), 3, Fraction(3)):
        for g in (c * f, f * c):
            assert isinstance(g, RKHSFunction) and g([1.0])[0] == 6
        assert (f / c)([3.0])[0] == 2
    # An array is no number: the product must not become an array of functions.
    for bad in (lambda: np.ones(2) * f, lambda: f * np.ones(2), lambda: f + np.ones(1)):
        with pytest.raises(TypeError):
            bad()


def test_zero_times_a_function_is_the_zero_function():
    zero = 0 * RKHSFunction(Gaussian(1.0), [1.0, 2.0], [3.0, 4.0])
    assert norm(zero) == 0 and not zero([0.0, 1.0]).any()


def test_one_list_of_points_is_not_repeated_by_a_sum():
    f = RKHSFunction(Gaussian(1.0), np.arange(5.0), np.ones(5))
    assert len((f - 0.5 * f).points) == 5
    assert np.array_equal((f - 0.5 * f).weights, np.full(5, 0.5))
    g = RKHSFunction(Gaussian(1.0), np.arange(5.0), np.ones(5))
    assert len((f + g).points) == 10


def test_points_of_a_sum_keep_their_kind():
    """Arrays stay arrays, numbers stay numbers, objects stay objects."""
    k = Gaussian(1.0)
    line, column = np.array([1.0, 2.0]), np.array([[3.0], [4.0]])
    for a, b, shape in (
        (line, line + 1, (4,)),
        (line, column, (4, 1)),
        (column, [5.0], (3, 1)),
        (line, [5.0], (3,)),
    ):
        f, g = RKHSFunction(k, a, np.ones(len(a))), RKHSFunction(k, b, np.ones(len(b)))
        assert (f + g).points.shape == shape
        assert np.allclose((f + g)(column), f(column) + g(column))
    whole = RKHSFunction(FunctionKernel(np.gcd), np.array([4, 6]), [1.0, 1.0])
    other = RKHSFunction(whole.kernel, np.array([9]), [1.0])
    assert (whole + other)(np.array([6]))[0] == 2 + 6 + 3


def test_strings_and_other_objects_are_points():
    """The theory asks nothing of the set X."""
    k = FeatureKernel(words)
    f = RKHSFunction(k, ["a cat", "a dog"], [1.0, 2.0])
    g = RKHSFunction(k, ["a cat and a dog"], [-1.0])
    assert np.array_equal(f(["cat", "dog", "bird"]), [1, 2, 0])
    assert np.array_equal((f + g)(["cat", "dog", "a"]), [0, 1, 1])
    # <f, g> = -(k(cat, both) + 2 k(dog, both)) = -(3 + 2 * 3)
    assert inner(f, g) == -9
    h = RKHSFunction(Delta(), [("x", 1), frozenset("ab")], [3.0, 4.0])
    assert norm(h) == 5 and h([frozenset("ba")])[0] == 4


def test_pairs_are_points():
    k = TensorProduct(Linear(), Delta())
    f = RKHSFunction(k, Pairs([1.0, 2.0], ["a", "b"]), [1.0, 1.0])
    g = RKHSFunction(k, Pairs([3.0], ["a"]), [1.0])
    assert np.array_equal((f + g)(Pairs([10.0, 10.0], ["a", "b"])), [40, 20])
    assert inner(f, g) == 3
    assert np.allclose(project(f, Pairs([5.0, 5.0], ["a", "b"]))(f.points), f(f.points))


def test_large_functions_are_evaluated_in_tiles():
    """prop-tiles: more points than one tile, against the Gram matrix."""
    rng = np.random.default_rng(2)
    f = RKHSFunction(Gaussian(1.0), rng.normal(size=(1500, 2)), rng.normal(size=1500))
    g = RKHSFunction(Gaussian(1.0), rng.normal(size=(700, 2)), rng.normal(size=700))
    K = f.kernel(f.points, g.points)
    assert np.allclose(f(g.points), K.T @ f.weights)
    assert np.isclose(inner(f, g), f.weights @ K @ g.weights)
    assert np.isclose(norm(f) ** 2, f.weights @ f.kernel(f.points) @ f.weights)


def test_a_function_cannot_be_changed_from_outside():
    X, w = np.array([1.0, 2.0]), np.array([1.0, 1.0])
    f = RKHSFunction(Linear(), X, w)
    before = f([1.0])[0]
    X[0], w[0] = 100.0, 100.0
    assert f([1.0])[0] == before
    with pytest.raises(ValueError):
        f.weights[0] = 2.0
    with pytest.raises(ValueError):
        f.points[0] = 2.0
    with pytest.raises(FrozenInstanceError):
        f.weights = w


@pytest.mark.parametrize("kind", ["list of arrays", "list of lists", "pairs", "view", "nested"])
def test_points_inside_other_things_cannot_be_changed_from_outside(kind):
    A = np.array([[1.0], [2.0]])
    rows = [[1.0], [2.0]]
    kernel, points, T = {
        "list of arrays": (Linear(), [A[0], A[1]], [1.0]),
        "list of lists": (Linear(), rows, [1.0]),
        "pairs": (TensorProduct(Linear(), Delta()), Pairs(A, ["a", "a"]), Pairs([1.0], ["a"])),
        "view": (Linear(), np.broadcast_to(A, A.shape), [1.0]),
        "nested": (
            TensorProduct(TensorProduct(Linear(), Delta()), Linear()),
            Pairs(Pairs([A[0], A[1]], ["a", "a"]), A),
            Pairs(Pairs([1.0], ["a"]), [1.0]),
        ),
    }[kind]
    f = RKHSFunction(kernel, points, [1.0, 1.0])
    before = f(T)[0]
    A[0], rows[0][0] = 50.0, 50.0
    assert f(T)[0] == before
    # One list of points is still one: the copy is made once.
    assert len((f - 0.5 * f).points) == 2 and (2 * f).points is f.points


def test_a_function_prints_short():
    f = RKHSFunction(Gaussian(1.0), np.arange(1000.0), np.ones(1000))
    assert repr(f) == "RKHSFunction(Gaussian(sigma=1.0), n=1000)"


def test_sums_are_of_functions_of_one_space():
    """def-synthesis: f + g needs one kernel, and points of one dimension; a multiple is by a
    number, and a quotient by one that is not 0."""
    f = RKHSFunction(Gaussian(1.0), [1.0], [1.0])
    wide = RKHSFunction(Gaussian(2.0), [1.0], [1.0])
    plane = RKHSFunction(Gaussian(1.0), [[1.0, 2.0]], [1.0])
    for other in (wide, RKHSFunction(Linear(), [1.0], [1.0])):
        for operation in (lambda: f + other, lambda: f - other):
            with pytest.raises(ValueError, match="same kernel"):
                operation()
        with pytest.raises(ValueError, match="same kernel"):
            inner(f, other)
    for one, other in ((f, plane), (plane, RKHSFunction(Gaussian(1.0), np.ones((1, 3)), [1.0]))):
        with pytest.raises(ValueError, match="points"):
            one + other
    for c in (np.nan, np.inf):
        with pytest.raises(ValueError, match="factor"):
            c * f
        with pytest.raises(ValueError, match="divisor"):
            f / c
    with pytest.raises(ValueError, match="divisor"):
        f / 0
    for bad in (lambda: f + 1, lambda: 1 + f, lambda: f - 1, lambda: f * "a", lambda: f / f, lambda: f * 1j):
        with pytest.raises(TypeError):
            bad()
    assert np.allclose((f + RKHSFunction(Gaussian(1.0), [1], [2.0]) / 4)([1.0]), 1.5)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("attempt, value", [
    (lambda f: f([1e10])[0], 2e140), (lambda f: inner(f, f), 4e260), (norm, 2e130)],
    ids=["value", "inner", "norm"])
def test_overflow_is_an_error_and_not_infinity(attempt, value):
    """def-synthesis in floats: a sum over the points that no float can hold; a hundred digits
    fewer, and it is one."""
    with pytest.raises(ValueError, match="overflow"):
        attempt(RKHSFunction(Linear(), [1e10, 1e10], [1e300, 1e300]))
    assert np.isclose(attempt(RKHSFunction(Linear(), [1e10, 1e10], [1e120, 1e120])), value)


# The inner product of expansions


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from(KERNELS))
def test_inner_product_has_two_readings(seed, kernel):
    """lem-expansion-inner: Σ a_i b_j k(x_i, y_j) = Σ a_i g(x_i) = Σ b_j f(y_j)."""
    rng = np.random.default_rng(seed)
    f, g = random_function(kernel, rng), random_function(kernel, rng, n=4)
    double_sum = sum(
        a * b * kernel([x], [y])[0, 0]
        for a, x in zip(f.weights, f.points)
        for b, y in zip(g.weights, g.points)
    )
    for value in (inner(f, g), inner(g, f), f.weights @ g(f.points), g.weights @ f(g.points)):
        assert np.isclose(value, double_sum, rtol=1e-9, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from(KERNELS), st.floats(-3, 3))
def test_inner_product_is_bilinear_and_reproduces(seed, kernel, c):
    """lem-expansion-inner."""
    rng = np.random.default_rng(seed)
    f, g, h = (random_function(kernel, rng) for _ in range(3))
    assert np.isclose(inner(f + c * g, h), inner(f, h) + c * inner(g, h), rtol=1e-9, atol=1e-8)
    for x in rng.normal(size=(3, 2)):
        assert np.isclose(inner(f, section(kernel, x)), f([x])[0], **CLOSE)


def test_two_expansions_of_one_function_have_equal_inner_products():
    """lem-expansion-inner, eq-third-difference: exact in whole numbers."""
    k = Polynomial(2)
    f = RKHSFunction(k, [0, 2], [1, 3])
    again = RKHSFunction(k, [1, 3], [3, 1])
    g = RKHSFunction(k, [-1, 4, 5], [2, -1, 7])
    assert np.array_equal(f(np.arange(-9, 10)), again(np.arange(-9, 10)))
    assert inner(f, g) == inner(again, g) == 2312
    assert inner(f, f) == inner(f, again) == inner(again, again)
    with pytest.warns(PrecisionWarning):     # it cannot know that nothing was rounded
        assert norm(f - again) == 0


def test_duplicate_points_are_one_point_with_the_sum_of_weights():
    """lem-expansion-inner: another way to write one function twice."""
    f = RKHSFunction(Gaussian(1.0), [0.5, 0.5, 2.0], [1.0, 2.0, -1.0])
    g = RKHSFunction(Gaussian(1.0), [0.5, 2.0], [3.0, -1.0])
    assert np.isclose(norm(f), norm(g), rtol=1e-14) and norm(f - g) == 0


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(1, 4), st.floats(0.0, 2.0))
def test_polynomial_inner_products_are_those_of_the_features(seed, degree, c):
    """thm-feature-rkhs: the second road, with all monomials written out."""
    rng = np.random.default_rng(seed)
    f, g = (random_function(Polynomial(degree, c), rng) for _ in range(2))
    u, v = (h.weights @ polynomial_features(h.points, degree, c) for h in (f, g))
    size = np.linalg.norm(u) * np.linalg.norm(v) + 1
    assert abs(inner(f, g) - u @ v) < 1e-10 * size * 100
    assert np.isclose(norm(f), np.linalg.norm(u), rtol=1e-6, atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_min_inner_products_are_integrals_of_slopes(seed):
    """prop-min-rkhs, eq-min-inner."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0.01, 1, size=(2, 5))
    f = RKHSFunction(Minimum(), x, rng.normal(size=5))
    g = RKHSFunction(Minimum(), y, rng.normal(size=5))
    knots = np.unique(np.concatenate([[0.0, 1.0], x, y]))
    integral = np.sum(np.diff(f(knots)) * np.diff(g(knots)) / np.diff(knots))
    # Differences of nearly equal knots cost digits: 1e-16 / 1e-4.
    assert np.isclose(inner(f, g), integral, rtol=1e-6, atol=1e-6)


def test_gaussian_coefficients_are_square_summable_with_the_norm_as_sum():
    """thm-feature-rkhs, eq-coefficients: f_l = Σ a_i φ_l(x_i)."""
    x, a = np.array([-1.5, 0.2, 2.0]), np.array([1.0, -2.0, 0.5])
    f = RKHSFunction(Gaussian(0.8), x, a)
    coefficients = a @ gaussian_features(x, 0.8, 60)
    # Beyond degree 60 a Poisson variable with mean (2 / 0.8)² has 1e-30.
    assert np.isclose(coefficients @ coefficients, norm(f) ** 2, rtol=1e-12)
    assert np.allclose(gaussian_features([0.7], 0.8, 60) @ coefficients, f([0.7]))
    assert norm(f) <= np.abs(a).sum()


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from(KERNELS))
def test_values_are_bounded_by_the_norm(seed, kernel):
    """thm-evaluation-bound, lem-expansion-definite: |f(x)| <= √k(x, x) ‖f‖."""
    rng = np.random.default_rng(seed)
    f, T = random_function(kernel, rng), rng.normal(size=(20, 2))
    bound = np.sqrt(kernel.diag(T)) * norm(f)
    assert (np.abs(f(T)) <= bound * (1 + 1e-9) + 1e-6).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_bound_of_evaluation_is_attained_by_the_section(kernel):
    """thm-evaluation-bound: ‖δ_x‖ = √k(x, x), at f = k(x, ·)."""
    x = np.array([[0.7, -1.2]])
    k_x = section(kernel, x)
    root = np.sqrt(kernel.diag(x)[0])
    assert np.isclose(norm(k_x), root) and np.isclose(k_x(x)[0], root * norm(k_x))


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_cauchy_schwarz_holds_where_the_form_is_only_semidefinite(seed):
    """lem-semi-cauchy-schwarz, lem-expansion-definite: a'Kb for singular K,
    with weights in the null space among the cases."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(6, 3))
    K = F @ F.T
    null = np.linalg.svd(F.T)[2][-1]
    a, b = rng.normal(size=(2, 6))
    assert (a @ K @ b) ** 2 <= (a @ K @ a) * (b @ K @ b) * (1 + 1e-10)
    assert abs(null @ K @ null) < 1e-10 and abs(a @ K @ null) < 1e-10
    # The same as functions: norm zero means zero at every point.
    f = RKHSFunction(Linear(), F, null)
    with pytest.warns(PrecisionWarning):
        assert norm(f) < 1e-6
    assert np.abs(f(rng.normal(size=(5, 3)))).max() < 1e-10


def test_reproducing_kernels_are_positive_definite():
    """cor-reproducing-pd: the Gram matrix holds inner products of sections."""
    X = np.random.default_rng(3).normal(size=(5, 2))
    for kernel in KERNELS:
        sections = [section(kernel, x) for x in X]
        K = [[inner(f, g) for g in sections] for f in sections]
        assert np.allclose(K, kernel(X)) and is_positive_definite(kernel(X))


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_a_positive_form_need_not_be_symmetric(seed):
    """prop-nonsymmetric: the antisymmetric part cancels."""
    rng = np.random.default_rng(seed)
    x, c = rng.integers(-9, 10, size=(2, 6))
    H = np.multiply.outer(x, x) + np.subtract.outer(x, x)
    assert c @ H @ c == (c @ x) ** 2
    assert not np.array_equal(H, H.T) or len(set(x)) == 1
    B = rng.normal(size=(4, 4))
    assert is_positive_definite(B @ B.T) and np.allclose(
        c[:4] @ (B @ B.T + B - B.T) @ c[:4], c[:4] @ B @ B.T @ c[:4]
    )


def test_norm_notices_a_kernel_that_is_not_positive_definite():
    minkowski = FunctionKernel(lambda x, y: x[0] * y[0] - x[1] * y[1])
    space = RKHSFunction(minkowski, [(0.0, 1.0)], [1.0])
    light = RKHSFunction(minkowski, [(1.0, 1.0)], [1.0])
    assert inner(space, space) == -1 and inner(light, light) == 0
    assert light([(1.0, 0.0)])[0] == 1
    with pytest.raises(ValueError, match="positive definite"):
        norm(space)
    cosh = FunctionKernel(lambda x, y: 1.0 if x == y else 2.0)
    with pytest.raises(ValueError, match="squared norm is -2"):
        norm(RKHSFunction(cosh, [0, 1], [1.0, -1.0]))


def test_norm_of_a_function_that_cancels_is_a_small_number():
    """Rounding leaves ±1e-16 for ⟨f, f⟩; a root of it must not be NaN."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        f = random_function(Gaussian(1.0), rng, n=30)
        g = RKHSFunction(f.kernel, f.points[::-1], f.weights[::-1])
        assert norm(f - g) == 0              # the same points in another order
        near = RKHSFunction(f.kernel, f.points + 1e-9, -f.weights)
        with pytest.warns(PrecisionWarning, match=r"norm\(f\) came out"):
            assert 0 <= norm(f + near) < 1e-6


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-170, 1e160, 1e200, 1e300])
def test_norm_is_homogeneous_where_its_square_is_not_representable(size):
    """def-norm: ‖c f‖ = |c| ‖f‖, also where c² is 0 or infinite."""
    f = RKHSFunction(Gaussian(1.0), [0.0, 1.0], [3.0, -1.0])
    assert np.isclose(norm(size * f) / size, norm(f), rtol=1e-14)
    assert np.isclose(norm(-size * f) / size, norm(f), rtol=1e-14)


def test_a_negative_square_is_refused_at_every_size():
    """lem-expansion-inner: α'Kα >= 0 for a kernel, here 2 (1 - c) α² for 1 on the diagonal of K and c
    beside it."""
    for size in (1.0, 1e100, 1e200):
        bad, good = (RKHSFunction(FunctionKernel(lambda x, y, c=c: 1.0 if x == y else c), [0, 1],
                                  [size, -size]) for c in (2.0, 0.5))
        with pytest.raises(ValueError, match="positive definite"):
            norm(bad)
        assert np.isclose(norm(good), size)


# The completion


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20])
def test_polygons_of_the_parabola_have_the_exact_norm(n):
    """lem-limit-inner, eq-parabola-norm: 4/3 - 1/(3 n²), in fractions."""
    x = [Fraction(i, n) for i in range(1, n + 1)]
    slopes = [Fraction(2 * i - 1, n) for i in range(1, n + 1)]
    w = [s - t for s, t in zip(slopes, [*slopes[1:], 0])]
    exact = sum(a * b * min(s, t) for a, s in zip(w, x) for b, t in zip(w, x))
    assert exact == Fraction(4, 3) - Fraction(1, 3 * n * n)
    f = polygon(even(n), even(n) ** 2)
    assert np.isclose(norm(f) ** 2, float(exact), rtol=1e-12)
    assert np.allclose(f.weights, [float(a) for a in w])


def test_inner_products_of_limits_do_not_depend_on_the_sequences():
    """lem-limit-inner: three pairs of sequences for t² and t(1 - t), one limit
    ∫ 2t (1 - 2t) = -1/3, at the rate 1/n² of the even grid or better than 1/n."""
    n = 400
    grids = even(n), even(n) ** 2, np.sqrt(even(n))
    for x in grids:
        for y in grids:
            value = inner(polygon(x, x**2), polygon(y, y * (1 - y)))
            assert abs(value + 1 / 3) < 1 / n**1.5


def test_cauchy_sequence_that_vanishes_pointwise_vanishes_in_norm():
    """lem-pre-rkhs, lem-limit-definite."""
    previous = np.inf
    for n in (4, 16, 64, 256):
        x = even(n) ** 2
        difference = polygon(even(n), even(n) ** 2) - polygon(x, x**2)
        assert np.abs(difference(np.linspace(0, 1, 50))).max() <= norm(difference)
        assert norm(difference) < previous / 3
        previous = norm(difference)


def test_expansions_are_dense():
    """lem-h0-dense: ‖t² - s_n‖² = 1/(3n²) is the limit of ‖s_m - s_n‖²."""
    s = {n: polygon(even(n), even(n) ** 2) for n in (5, 50, 500)}
    for m in (50, 500):
        assert np.isclose(norm(s[m] - s[5]) ** 2, (1 / 25 - 1 / m**2) / 3, rtol=1e-9)


def test_norm_convergence_is_uniform_convergence_on_the_interval():
    """cor-pointwise: |t² - s_n(t)| <= √t ‖t² - s_n‖ = √t / (√3 n)."""
    t = np.linspace(0, 1, 333)
    for n in (1, 3, 10, 30):
        error = np.abs(t**2 - polygon(even(n), even(n) ** 2)(t))
        assert (error <= np.sqrt(t) / (np.sqrt(3) * n) + 1e-14).all()
        assert error.max() > 0.2 / n**2


def test_limit_has_the_reproducing_property():
    """lem-h-reproducing: ⟨s_n, k_x⟩ = s_n(x) → x²."""
    x = 0.71
    k_x = RKHSFunction(Minimum(), [x], [1.0])
    s = polygon(even(500), even(500) ** 2)
    assert np.isclose(inner(s, k_x), s([x])[0]) and abs(inner(s, k_x) - x**2) < 1e-5


def test_neighbours_of_a_cauchy_sequence_are_a_cauchy_sequence():
    """lem-h-complete, eq-neighbours: f_n = t^(2 + 1/n) and polygons within 1/n."""

    def neighbour(n):
        p = 2 + 1 / n
        g = polygon(even(n), even(n) ** p)
        distance = np.sqrt(p**2 / (2 * p - 1) - norm(g) ** 2)
        assert distance <= 1 / n
        return g

    def distance(n, m):
        """‖t^p - t^q‖ from ∫ p q t^(p + q - 2) = p q / (p + q - 1)."""
        p, q = 2 + 1 / n, 2 + 1 / m
        return np.sqrt(p**2 / (2 * p - 1) - 2 * p * q / (p + q - 1) + q**2 / (2 * q - 1))

    for n, m in ((2, 4), (10, 20), (50, 200)):
        gap = norm(neighbour(n) - neighbour(m))
        assert gap <= 1 / n + distance(n, m) + 1 / m
    assert abs(norm(neighbour(200)) ** 2 - 4 / 3) < 0.01


def test_evaluation_on_the_completion_is_bounded():
    """lem-h-evaluation: t² is no expansion in min(s, t), its norm is √(4/3), the limit of those
    of its polygons, and |t²| <= √t √(4/3); t -> min(t, x) attains the bound at x, in the
    limit of expansions at other points too."""
    square = 4 / 3
    assert np.isclose(norm(polygon(even(400), even(400) ** 2)) ** 2, square, atol=1e-5)
    t = np.linspace(0, 2, 201)
    value = np.where(t <= 1, t**2, 1.0)             # polygons are constant beyond 1
    assert (value <= np.sqrt(Minimum().diag(t) * square)).all()
    x, ratios = 0.71, []
    for n in (10, 100, 1000):
        f = polygon(even(n), np.minimum(even(n), x))
        ratios.append(f([x])[0] / norm(f))
    assert (np.array(ratios) <= np.sqrt(x) * (1 + 1e-12)).all()
    assert np.isclose(ratios[-1], np.sqrt(x), rtol=1e-3)


@settings(max_examples=25, deadline=None)
@given(seeds, st.integers(1, 5))
def test_a_kernel_has_one_space_in_which_expansions_are_dense(seed, p):
    """thm-moore-aronszajn: from polynomials with the inner product c'Gd comes k, and from k
    alone, by its expansions and α'K(X, Y)β, comes the same space: every polynomial is an
    expansion, with the same inner products."""
    rng = np.random.default_rng(seed)
    F = rng.uniform(-1, 1, size=(p, p))
    G = F.T @ F + np.eye(p)

    def basis(t):
        return legendre.legvander(np.ravel(t), p - 1)

    k = kernel_from_basis(basis, G)
    x, y = np.sort(rng.uniform(-1, 1, size=(2, p + 2)), axis=1)
    alpha, beta = rng.normal(size=(2, p + 2))
    f, g = RKHSFunction(k, x, alpha), RKHSFunction(k, y, beta)
    c, d = (np.linalg.solve(G, basis(h.points).T @ h.weights) for h in (f, g))
    t = np.linspace(-1, 1, 9)
    assert np.allclose(f(t), basis(t) @ c)
    assert np.isclose(inner(f, g), c @ G @ d, atol=1e-8)
    assert np.isclose(inner(f, g), alpha @ k(x, y) @ beta, atol=1e-8)
    # Dense: the sections at p places span. e has any coefficients, and is an expansion.
    e, nodes = rng.normal(size=p), np.cos(np.pi * (np.arange(p) + 0.5) / p)
    h = interpolate(k, nodes, basis(nodes) @ e)
    assert np.allclose(h(t), basis(t) @ e, atol=1e-6)
    assert np.isclose(norm(h) ** 2, e @ G @ e, rtol=1e-6)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 5), st.booleans())
def test_kernels_are_the_positive_definite_functions_and_the_reproducing_ones(seed, n, good):
    """cor-three-notions on a set of n points, where a function of two of them is a matrix M.
    Positive definite: features by its root give M back, and the form reproduces, and the
    norms of evaluations give M back. Not: some expansion has a negative square."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, n))
    M = F @ F.T
    if not good:                                  # the smallest eigenvalue is then -1/10
        M -= (np.linalg.eigvalsh(M)[0] + 0.1) * np.eye(n)
    verdict = is_positive_definite(M)
    assert bool(verdict) == good
    k = FunctionKernel(lambda i, j: M[i, j])
    points = [*range(n)]
    if not good:
        a = verdict.witness
        assert np.isclose(a @ k(points) @ a, verdict.value) and verdict.value < 0
        with pytest.raises(ValueError, match="positive definite"):
            norm(RKHSFunction(k, points, a))
        return
    lam, V = np.linalg.eigh(M)
    phi = V * np.sqrt(np.maximum(lam, 0))
    assert np.allclose(phi @ phi.T, M)
    f = RKHSFunction(k, points, rng.normal(size=n))
    k_x = [RKHSFunction(k, [i], [1.0]) for i in points]
    assert np.allclose([inner(f, s) for s in k_x], f(points))
    # One space, one kernel: ‖δ_x + δ_y‖² = k(x, x) + 2 k(x, y) + k(y, y).
    squares = np.array([[norm(s + t) ** 2 for t in k_x] for s in k_x])
    diagonal = squares.diagonal() / 4
    assert np.allclose((squares - diagonal[:, None] - diagonal) / 2, M)


def test_one_kernel_has_one_space_and_one_space_one_kernel():
    """prop-kernel-unique: bases of one space of functions give one kernel, and another
    inner product gives another. lem-space-unique: what is orthogonal to all k_x is zero."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(3, 3)) + 3 * np.eye(3)
    G = np.diag([1.0, 2.0, 0.5])

    def basis(x):
        return np.stack([np.ones_like(x), x, np.sin(x)], axis=-1)

    k = kernel_from_basis(basis, G)
    same = kernel_from_basis(lambda x: basis(x) @ A.T, A @ G @ A.T)
    other = kernel_from_basis(basis, 2 * G)
    x = rng.normal(size=8)
    assert np.allclose(k(x), same(x)) and np.allclose(other(x), k(x) / 2)
    f = RKHSFunction(k, x, rng.normal(size=8))
    g = RKHSFunction(2 * k, x, f.weights / 2)
    assert np.allclose(f(x), g(x)) and np.isclose(norm(g) ** 2, norm(f) ** 2 / 2)
    # k_x has the coefficients G⁻¹ b(x), so ⟨h, k_x⟩ = c'b(x): the inner products with the
    # k_x determine c, and h = Σ c_j b_j with all of them zero is zero.
    sections = np.linalg.solve(G, basis(x).T)
    c = rng.normal(size=3)
    assert np.allclose(c @ G @ sections, basis(x) @ c)
    assert np.linalg.matrix_rank(G @ sections) == 3


def test_a_space_may_lie_in_a_larger_one_with_its_norms():
    """lem-space-unique: 1 + xy has the functions of xy, as long as before, and constants."""
    thrice = RKHSFunction(Linear(), [1.0, 2.0], [1.0, 1.0])
    larger = interpolate(Polynomial(1), [0.0, 1.0], [0.0, 3.0])
    constant = interpolate(Polynomial(1), [0.0, 1.0], [1.0, 1.0])
    T = np.linspace(-2, 2, 5)
    assert np.allclose(thrice(T), larger(T)) and np.allclose(constant(T), 1)
    assert np.isclose(norm(thrice), 3) and np.isclose(norm(larger), 3)
    with pytest.raises(ValueError, match="y must"):
        interpolate(Linear(), [0.0, 1.0], [1.0, 1.0])


def test_powers_converge_in_l2_but_not_at_one():
    """prop-l2-not-rkhs: ∫ x^(2n) = 1/(2n + 1), exactly by Gauss quadrature."""
    x, w = legendre.leggauss(201)
    x, w = (x + 1) / 2, w / 2
    norms = [np.sqrt(w @ x ** (2 * n)) for n in (1, 10, 100, 200)]
    assert np.allclose(norms, [1 / np.sqrt(2 * n + 1) for n in (1, 10, 100, 200)])
    # In the RKHS of polynomials of degree <= 20 the bound at 1 does hold.
    k = legendre_kernel(20)
    for n in (1, 10, 20):
        assert 1 <= np.sqrt(k.diag([1.0])[0]) * np.sqrt(2 / (2 * n + 1))


def test_spikes_converge_in_l2_and_grow_at_zero():
    """prop-l2-not-rkhs: the SQUARED norm of √n 1[|x| <= 1/n²] is 2/n."""
    for n in (1, 7, 50):
        x, w = legendre.leggauss(3)
        half = 1 / n**2
        square = (half * w) @ np.full(3, float(n))
        assert np.isclose(square, 2 / n)
        # No bound |f(0)| <= c ‖f‖: the quotient is n / √2.
        assert np.isclose(np.sqrt(n) / np.sqrt(square), n / np.sqrt(2))


def test_bounded_evaluation_is_not_enough_for_a_space_of_functions():
    """exm-forgetful: Cauchy, zero at every point in the limit, norm one."""

    def form(f, g):
        return sum(a * b for a, b in zip(f, g)) + sum(f) * sum(g)

    def flat(n, length):
        return [Fraction(1, n)] * n + [Fraction(0)] * (length - n)

    for n, m in ((2, 3), (5, 20), (30, 40)):
        f, g = flat(n, 40), flat(m, 40)
        d = [a - b for a, b in zip(f, g)]
        assert form(f, f) == 1 + Fraction(1, n)
        assert form(d, d) == abs(Fraction(1, n) - Fraction(1, m))


def test_xor_space_is_larger_than_its_set_of_features():
    """sec-ma-puzzle: (1, 1, 1) is the feature of (1, 1); (1, 1, -1) is none, and is
    in the span with norm √3."""
    k = kernel_from_basis(
        [lambda X: X[:, 0], lambda X: X[:, 1], lambda X: X[:, 0] * X[:, 1]], np.eye(3)
    )
    f = RKHSFunction(k, np.array([[1.0, 0], [0, 1], [1, 1]]), [2.0, 2.0, -1.0])
    P = np.random.default_rng(6).normal(size=(9, 2))
    assert np.allclose(f(P), P.sum(axis=1) - P.prod(axis=1))
    assert np.isclose(norm(f) ** 2, 3)
    one = RKHSFunction(k, np.array([[1.0, 1.0]]), [1.0])
    assert np.allclose(one(P), P.sum(axis=1) + P.prod(axis=1))


# Digits that rounding has taken


def szego(s, t):
    """The kernel 1 / (1 - st) of the Hardy space on (-1, 1)."""
    return 1 / (1 - s * t)


def quietly(function, *arguments):
    """The value, and whether it came with a PrecisionWarning."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        value = function(*arguments)
    return value, any(w.category is PrecisionWarning for w in heard)


def test_a_difference_quotient_has_a_norm_in_doubt():
    """prop-norm-error: ‖(k_0 - k_h)/h‖ = 1, of which no digit is left at h = 1e-8."""
    for h in (1e-3, 1e-5):
        f = RKHSFunction(Gaussian(1.0), [0.0, h], [1 / h, -1 / h])
        assert np.isclose(norm(f), 1, rtol=10 * 2.2e-16 / h**2 + h**2)
    f = RKHSFunction(Gaussian(1.0), [0.0, 1e-8], [1e8, -1e8])
    with pytest.warns(PrecisionWarning, match=r"norm\(f\) came out as .* within"):
        norm(f)


def test_no_norm_is_wrong_in_silence():
    """prop-norm-error: 300 functions with weights that cancel, against fractions."""
    rng = np.random.default_rng(0)
    eps, silent = np.finfo(float).eps, 0
    for trial in range(300):
        n, h = int(rng.integers(2, 9)), 10.0 ** rng.integers(-6, 1)
        x = np.round(rng.uniform(-0.6, 0.6) + h * rng.uniform(size=n) / 10, 12)
        w = rng.normal(size=n)
        w[-1] -= w.sum() * (trial % 3 > 0)       # a difference, two times of three
        f = RKHSFunction(FunctionKernel(szego), x, w)
        terms = [(Fraction(a), Fraction(s)) for a, s in zip(w.tolist(), x.tolist())]
        exact = sum(a * b / (1 - s * t) for a, s in terms for b, t in terms)
        sigma = np.abs(w) @ np.sqrt(1 / (1 - x**2))
        error = (n + 4) * eps * sigma**2
        assert abs(inner(f, f) - float(exact)) <= error
        value, doubt = quietly(norm, f)
        assert doubt == (max(value, 0) ** 2 <= error * (1 + 1e-9)) or abs(
            value**2 - error) < 1e-9 * error
        if not doubt:
            silent += 1
            assert abs(value**2 - float(exact)) <= 1.1 * error
    assert 50 < silent < 290


def test_the_error_of_a_norm_covers_the_truth():
    """prop-norm-error: |√a - √b| <= |a - b| / max(√a, √|a - b|), against fractions."""
    rng = np.random.default_rng(1)
    for h in 10.0 ** np.arange(-9, 1):
        x, w = 1 + h * np.arange(4), np.array([1.0, -3.0, 3.0, -1.0]) * rng.uniform(1, 1 + h, 4)
        f = RKHSFunction(Polynomial(2), x, w)
        terms = [(Fraction(a), Fraction(s)) for a, s in zip(w.tolist(), x.tolist())]
        exact = float(sum(a * b * (1 + s * t) ** 2 for a, s in terms for b, t in terms)) ** 0.5
        size, error = norm_and_error(f)
        assert abs(size - exact) <= error
        assert error <= size / 2 or h < 1e-3              # and says something
    assert norm_and_error(0 * f) == (0.0, 0.0)
    # Of a square 0 ± 24 ε, with 24 = (n + 4)(Σ |α_i| √k(x_i, x_i))², the root is within √(24 ε).
    f = RKHSFunction(Gaussian(1.0), [0.0, 1e-12], [1.0, -1.0])
    size, error = norm_and_error(3 * f)
    assert size == 0 and np.isclose(error, 3 * np.sqrt(24 * np.finfo(float).eps), rtol=1e-12,
                                    atol=0)


def test_equal_points_are_merged_before_weights_are_squared():
    """lem-expansion-inner: the norm of a difference on one set of points, of any kind."""
    for kernel, points in (
        (Gaussian(1.0), np.arange(3.0)),
        (Gaussian(1.0), [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]),
        (Gaussian(1.0), [np.array([0.0]), np.array([1.0]), np.array([2.0])]),
        (FeatureKernel(words), ["a", "b", "c"]),
        (TensorProduct(Gaussian(1.0), Delta()), Pairs(np.arange(3.0), ["a", "b", "a"])),
        (Delta(), [("a", 1), frozenset("bc"), 3]),
    ):
        f = RKHSFunction(kernel, points, [1e9, 1e9, 1e9])
        g = RKHSFunction(kernel, points, [1e9, 1e9 + 1, 1e9])
        one = RKHSFunction(kernel, points, [0.0, 1.0, 0.0])
        assert np.isclose(norm(g - f), norm(one), rtol=1e-12)
    # Sums of weights lose nothing: 1e16 + 1 - 1e16 = 1.
    f = RKHSFunction(Gaussian(1.0), [0.0, 0.0, 0.0], [1e16, 1.0, -1e16])
    assert norm(f) == 1


# Kernels of finite-dimensional spaces


def legendre_kernel(n):
    return kernel_from_basis(
        lambda x: legendre.legvander(x, n), np.diag(2 / (2 * np.arange(n + 1) + 1))
    )


def monomial_kernel(n):
    powers = np.arange(n + 1)
    degree = np.add.outer(powers, powers)
    gram = np.where(degree % 2 == 0, 2 / (degree + 1), 0)
    return kernel_from_basis(lambda x: np.power.outer(x, powers), gram)


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(0, 7))
def test_kernel_of_polynomials_reproduces_them(seed, n):
    """thm-basis-kernel: ∫ k(x, y) p(y) dy = p(x), norms are ∫ f²."""
    rng = np.random.default_rng(seed)
    nodes, w = legendre.leggauss(n + 1)
    p = np.polynomial.Polynomial(rng.normal(size=n + 1))
    x, k = rng.uniform(-1, 1, size=4), monomial_kernel(n)
    assert np.allclose(k(x, nodes) @ (w * p(nodes)), p(x), rtol=1e-7, atol=1e-7)
    f = RKHSFunction(k, x, rng.normal(size=4))
    assert np.isclose(norm(f) ** 2, w @ f(nodes) ** 2, rtol=1e-7, atol=1e-9)


def test_kernel_of_a_basis_is_the_riesz_representer_of_evaluation():
    """thm-basis-kernel, thm-evaluation-bound: c = G⁻¹ b(x)."""
    rng = np.random.default_rng(9)
    A = rng.normal(size=(3, 3))
    G = A @ A.T + np.eye(3)
    functions = [np.ones_like, np.sin, np.exp]
    k = kernel_from_basis(functions, G)
    y = rng.normal(size=5)
    B = np.column_stack([b(y) for b in functions])
    for x in (0.3, -1.0):
        c = riesz_representer(G, [1.0, np.sin(x), np.exp(x)])
        assert np.allclose(k([x], y)[0], B @ c)
    # A function Σ c_j b_j has the squared norm c'Gc.
    f = RKHSFunction(k, y, rng.normal(size=5))
    c = np.linalg.solve(G, B.T @ f.weights)
    assert np.isclose(norm(f) ** 2, c @ G @ c)


def test_kernel_of_a_basis_on_any_points():
    """Lists, columns, planes and strings."""
    line = kernel_from_basis([lambda x: x], [[4.0]])
    for points in ([1.0, 2.0], np.array([1.0, 2.0]), np.array([[1.0], [2.0]]), [[1.0], [2.0]]):
        assert np.allclose(line(points), [[0.25, 0.5], [0.5, 1.0]])
    square = kernel_from_basis([lambda x: x**2], [[1.0]])
    assert np.allclose(square([1.0, 3.0]), [[1, 9], [9, 81]])
    plane = kernel_from_basis(lambda X: X, np.eye(2))
    assert np.allclose(plane(np.eye(2)), np.eye(2))
    lengths = kernel_from_basis([lambda X: [len(x) for x in X]], [[1.0]])
    assert np.allclose(lengths(["a", "abc"]), [[1, 3], [3, 9]])
    f = RKHSFunction(lengths, ["ab"], [1.0]) + RKHSFunction(lengths, ["abc"], [1.0])
    assert np.allclose(f(["abcd"]), 20)
    assert np.allclose(line(np.arange(600.0))[599, 598], 599 * 598 / 4)
    either = kernel_from_basis([lambda X: [n * len(x) for n, x in X]], [[1.0]])
    assert np.allclose(either([(2, "a"), (1, "abc")]), [[4, 6], [6, 9]])


@pytest.mark.parametrize("c, message", [(1.0, "gram must be strictly"), (-1.0, "gram must be strictly"),
                                        (1.5, "gram"), (0.999, None), (-0.999, None)])
def test_the_gram_matrix_of_a_basis_is_strictly_positive(c, message):
    """thm-basis-kernel: [[1, c], [c, 1]] is that of a basis if and only if |c| < 1; and there
    is a row for each function of the basis."""
    gram, basis = [[1.0, c], [c, 1.0]], [np.sin, np.cos]
    if message:
        with pytest.raises(ValueError, match=message):
            kernel_from_basis(basis, gram)
        return
    K, Phi = kernel_from_basis(basis, gram)([0.0, 1.0]), np.array([[0.0, 1.0], [np.sin(1), np.cos(1)]])
    assert np.allclose(K, Phi @ np.linalg.solve(gram, Phi.T))
    for few in ([np.sin], [np.sin, 3.0]):
        with pytest.raises(ValueError, match="basis"):
            kernel_from_basis(few, gram)


@pytest.mark.parametrize(
    "basis, shape",
    [
        (lambda x: np.array([np.ones_like(x), x]), r"\(2, 3\)"),
        ([np.ones_like, lambda x: 1.0], r"\(\)"),
        ([np.ones_like, lambda x: x[:2]], r"\(2,\)"),
        (lambda x: np.ones((len(x), 2, 1)), r"\(3, 2, 1\)"),
        (lambda x: np.ones((len(x), 1)), r"\(3, 1\)"),
    ],
)
def test_basis_with_values_in_the_wrong_places(basis, shape):
    """thm-basis-kernel: a transposed array of values must not be read row by row; the columns
    are the functions 1 and x of the kernel 1 + xy."""
    k = kernel_from_basis(basis, np.eye(2))
    with pytest.raises(ValueError, match=f"basis must (give one row|have).*{shape}"):
        k([1.0, 2.0, 3.0])
    good = kernel_from_basis(lambda x: np.array([np.ones_like(x), x]).T, np.eye(2))
    assert np.allclose(good([1.0, 2.0, 3.0]), 1 + np.outer([1, 2, 3], [1, 2, 3]))


def test_laplace_norm_is_an_integral():
    """ex-laplace-norm, eq-laplace-norm: of a section, by quadrature, σ = 0.4."""
    sigma, x, z = 0.4, 0.3, 0.8
    f = RKHSFunction(Laplace(sigma), [x, z], [1.0, -2.0])
    u, w = legendre.leggauss(30)
    total = 0.0
    for a, b in ((0, x), (x, z), (z, 1)):
        t = (a + b) / 2 + (b - a) / 2 * u
        e, g = np.exp(-np.abs(t - x) / sigma), np.exp(-np.abs(t - z) / sigma)
        slope = np.sign(x - t) * e / sigma - 2 * np.sign(z - t) * g / sigma
        total += (b - a) / 2 * w @ (sigma * slope**2 + f(t) ** 2 / sigma) / 2
    ends = f([0.0, 1.0])
    assert np.isclose(total + ends @ ends / 2, norm(f) ** 2, rtol=1e-12)


# Features


@pytest.mark.parametrize("points, places", [
    (np.array([1.0, 2.0, 1.0, 2.0, 3.0]), [0, 1, 0, 1, 4]),
    (np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]]), [0, 0, 2]),
    (["b", "a", "b"], [0, 1, 0]),
    (Pairs(np.array([1.0, 1.0, 1.0]), ["a", "b", "a"]), [0, 1, 0]),
])
def test_a_label_is_the_place_of_the_first_equal_point(points, places):
    """def-synthesis: what a sum over points may merge."""
    kernel = TensorProduct(Delta(), Delta()) if isinstance(points, Pairs) else Delta()
    assert Features(kernel, points).labels().tolist() == places


def test_rows_and_columns_of_a_gram_matrix():
    """def-synthesis: parts of Φ*Φ and of Φ*Ψ."""
    rng = np.random.default_rng(2)
    Phi, Psi = (Features(Laplace(1.0), rng.normal(size=(n, 2))) for n in (5, 4))
    for other in (None, Phi, Psi):
        K = Phi.gram(other)
        for rows, columns in ((slice(2), slice(1, 4)), (slice(1, 3), slice(1, 3))):
            assert np.array_equal(Phi.gram(other, rows, columns), K[rows, columns])


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Gaussian(30.0), Gaussian(0.01), Laplace(1.0),
                                    Linear(), Gaussian(1.0) + Linear(), 3 * Gaussian(1.0)])
@pytest.mark.parametrize("d", [1, 3, 20])
def test_the_entries_of_a_sum_are_those_of_the_gram_matrix(kernel, d):
    """prop-tiles: eq-gaussian-exp2 keeps thirteen digits of each, wherever the points lie."""
    X = 100.0 + np.random.default_rng(d).normal(size=(70, d))
    Phi = Features(kernel, X)
    entries, K = Phi.summands(), Phi.gram()
    for i, j in ((slice(9), slice(20, 70)), (slice(30, 60), slice(30, 60))):
        assert np.allclose(entries(i, j), K[i, j], rtol=1e-13, atol=0)
    words_of = Features(FeatureKernel(words), ["a", "a b", "c"])
    assert np.array_equal(words_of.summands()(slice(2), slice(3)), words_of.gram()[:2])


def test_names_of_columns_may_be_any_sequence():
    """def-points: an index of names, whose truth value is an error in pandas."""
    class Frame(list):
        columns = np.array(["height", "weight"])

    Phi = Features(Linear(), Frame([[1.0, 2.0], [3.0, 4.0]]))
    assert Phi[:1].columns == Phi.columns == ("height", "weight")
    assert Phi.joined(Phi).columns == Phi.columns

    class Turned(Frame):
        columns = ["weight", "height"]

    with pytest.raises(ValueError, match="columns"):
        Phi.gram(Features(Linear(), Turned([[1.0, 2.0]]), "Y"))


def test_synthesis_and_sampling_are_adjoint():
    """def-synthesis: ⟨Φα, g⟩ = α'Φ*g, Φ*Φ is the Gram matrix, and Φ*Ψ that of two lists."""
    rng = np.random.default_rng(0)
    for n, m in ((5, 7), (300, 520)):                        # one tile, and several
        X, Y, w = rng.normal(size=(n, 2)), rng.normal(size=(m, 2)), rng.normal(size=m)
        k = Gaussian(0.8)
        Phi, Psi = Features(k, X), Features(k, Y, "Y")
        a, g = rng.normal(size=n), Psi @ w
        assert np.allclose(Phi.gram(), k(X)) and np.allclose(Phi.gram(Psi), k(X, Y))
        assert np.allclose(Phi.diag(), np.diag(k(X)))
        assert np.allclose(Phi.sample(g), g(X))
        assert np.isclose(inner(Phi @ a, g), a @ Phi.sample(g))
        assert np.allclose(Phi.dot(np.column_stack([a, a])).T, k(X) @ a)
        assert np.allclose(Phi.dot(np.column_stack([w, w]), Psi).T, k(X, Y) @ w)
        assert np.allclose(Phi.gram(Psi, slice(1, 3), slice(0, 4)), k(X[1:3], Y[:4]))


def test_features_are_rows_of_a_list_of_any_points():
    """def-synthesis for vectors, strings and pairs: rows, joining, length."""
    words_kernel = FeatureKernel(words)
    pairs = Pairs([1.0, 2.0, 3.0], ["a", "b", "a"])
    for k, X in ((Gaussian(1.0), np.arange(3.0)), (words_kernel, ["a cat", "a dog", "cats"]),
                 (TensorProduct(Linear(), Delta()), pairs)):
        Phi, K = Features(k, X), k(X)
        assert len(Phi) == 3 and "n=3" in repr(Phi)
        for rows in (slice(0, 2), [2, 0], np.array([1])):
            index = np.arange(3)[rows]
            assert np.allclose(Phi[rows].gram(), K[np.ix_(index, index)])
        double = Phi.joined(Phi[[1]])
        assert np.allclose(double.gram(), K[np.ix_([0, 1, 2, 1], [0, 1, 2, 1])])
        assert Features(k, Phi).points is Phi.points
        f = RKHSFunction(k, Phi, [1.0, 0.0, -2.0])
        assert f.points is Phi.points and np.allclose(f(X), K @ [1.0, 0.0, -2.0])


def test_a_function_of_another_space_is_refused():
    """lem-expansion-inner: the form is one of functions with one kernel."""
    f = RKHSFunction(Gaussian(1.0), [0.0], [1.0])
    assert as_function(f) is f and as_function(f, "f", Gaussian(1.0)) is f
    with pytest.raises(ValueError, match="^prior must have the same kernel, Gaussian.sigma=2.0"):
        as_function(f, "prior", Gaussian(sigma=2.0))
    with pytest.raises(ValueError, match="^prior must be an RKHSFunction, got function"):
        as_function(lambda t: t, "prior")


@pytest.mark.parametrize("k", [Gaussian(1.0), Delta()])
def test_features_do_not_see_through_a_view(k):
    """def-synthesis: what a view shows can be changed by whoever holds the array, although the
    view itself cannot be written to."""
    X = np.arange(4.0)
    view = X[:]
    view.flags.writeable = False
    Phi, rows = Features(k, view), Features(Delta(), [view, view])
    X[:] = 7.0
    assert np.array_equal(Phi.points, np.arange(4.0)) and np.array_equal(Phi.gram(), k(Phi.points))
    assert np.array_equal(rows.points[0], np.arange(4.0))


def test_one_pair_is_enough_unless_more_are_asked_for():
    """def-synthesis: two maps of the same number of points, by default at least one."""
    k = Gaussian(1.0)
    assert [len(F) for F in paired(k, k, [0.0], [1.0])] == [1, 1]
    assert [len(F) for F in paired(k, k, [0.0, 1.0], [1.0, 2.0], 2)] == [2, 2]
    with pytest.raises(ValueError, match="at least 2"):
        paired(k, k, [0.0], [1.0], 2)


def test_numbers_are_finite_whatever_the_kernel():
    """def-synthesis: also for a kernel that asks for equality only."""
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError, match="^states must be finite"):
            Features(Delta(), np.array([0.0, wrong]), "states")
    assert Features(Delta(), np.array([0.0, 1.0])).n == 2


def test_a_product_with_many_points_stores_no_gram_matrix():
    """prop-tiles: Φ*Φ W for 3000 points in a tenth of the memory of Φ*Φ."""
    X = np.random.default_rng(0).normal(size=(3000, 2))
    Phi, w = Features(Gaussian(1.0), X), np.ones(3000)
    tracemalloc.start()
    values = Phi.dot(w)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 3000**2 / 10
    assert np.allclose(values[:20], Phi[:20].gram(Phi) @ w, rtol=1e-12)


@pytest.mark.parametrize("rows", [slice(1, 3), np.array([2, 0])])
def test_some_rows_of_a_map_cannot_be_changed(rows):
    """def-synthesis: arrays, lists and pairs, by a slice and by a list of indices."""
    X, letters = np.arange(4.0), list("abca")
    for Phi in (
        Features(Gaussian(1.0), X),
        Features(Gaussian(1.0), X[:, None]),
        Features(Delta(), letters),
        Features(TensorProduct(Gaussian(1.0), Delta()), Pairs(X, letters)),
    ):
        some = Phi[rows]
        assert np.array_equal(some.gram(), Phi.gram()[rows][:, rows]) and len(some) == 2
        parts = (some.points.first, some.points.second) if isinstance(some.points, Pairs) else (
            some.points,)
        for part in parts:
            assert isinstance(part, tuple) or not part.flags.writeable


def test_features_are_checked_once_under_the_callers_names():
    """def-synthesis: the object may be trusted, and does not change with the caller's array."""
    X = np.arange(4.0)
    Phi = Features(Gaussian(1.0), X)
    before, X[:] = Phi.gram(), 7.0
    assert np.array_equal(Phi.gram(), before)
    with pytest.raises(ValueError, match="^states must be finite"):
        Features(Gaussian(1.0), [0.0, np.nan], "states")
    with pytest.raises(ValueError, match="^l must be positive definite"):
        Features(Sigmoid(1.0, 0.0), [0.0], "Y", "l")
    with pytest.raises(ValueError, match="^X must have points in dimension 2 like Y"):
        Phi.gram(Features(Gaussian(1.0), [[0.0, 1.0]], "Y"))


@pytest.mark.parametrize("size", [1e-250, 1e-3, 1.0, 3.0, 1e250])
def test_a_map_in_units_of_its_kernel_has_the_same_digits(size):
    """def-synthesis for k / c, with c a power of two."""
    k = size * Gaussian(1.0)
    Phi = Features(k, np.arange(4.0))
    c, unit = Phi.unit()
    assert 1 <= unit.diag().max() < 2 and np.log2(c) == np.round(np.log2(c))
    assert np.array_equal(c * unit.gram(), Phi.gram())
    assert Features(Linear(), [0.0, 2.0]).diag().tolist() == [0.0, 4.0]
    for largest, power in ((1e305, 1000), (1e-305, -1000)):      # c and 1 / c are floats
        assert Features(largest * Gaussian(1.0), [0.0]).unit()[0] == 2.0**power
    with pytest.raises(ValueError, match="^l must be positive definite"):
        Features(FunctionKernel(lambda s, t: -1.0), [0.0], "Y", "l").unit()


def test_pairs_have_one_length_and_enough_points():
    """def-synthesis for both parts of a sample of pairs."""
    Phi, Psi = paired(Gaussian(1.0), Delta(), [1.0, 2.0, 3.0], ["a", "b", "a"], 3)
    assert np.array_equal(Psi.gram(), Delta()(["a", "b", "a"]))
    assert np.array_equal(Phi.points, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="^Y must have as many points as X"):
        paired(Gaussian(1.0), Delta(), [1.0, 2.0], ["a"])
    with pytest.raises(ValueError, match="^X must hold at least 4 points, got 2"):
        paired(Gaussian(1.0), Delta(), [1.0, 2.0], ["a", "b"], 4)
    with pytest.raises(ValueError, match="^l must be a Kernel"):
        paired(Gaussian(1.0), 3, [1.0], ["a"])
    with pytest.raises(ValueError, match="^Y must"):
        paired(Gaussian(1.0), Gaussian(1.0), [1.0], ["a"])


def test_a_gram_matrix_asks_a_function_once_for_each_pair():
    """def-synthesis: Φ*Φ is symmetric; a sample of the mirrored pairs is asked again."""
    calls = []
    k = FunctionKernel(lambda s, t: calls.append(1) or min(s, t))
    n = 300
    K = Features(k, list(range(1, n + 1))).gram()
    assert np.array_equal(K, np.minimum.outer(np.arange(1.0, n + 1), np.arange(1.0, n + 1)))
    assert len(calls) < 0.6 * n * n
    with pytest.raises(ValueError, match="symmetric"):
        Features(FunctionKernel(lambda s, t: s - 2 * t), list(range(n))).gram()


def test_a_list_of_points_is_copied_and_a_copied_one_is_kept():
    """def-synthesis: what the caller does to the list later changes nothing."""
    texts = ["a cat", "a dog"]
    f = RKHSFunction(FeatureKernel(words), texts, [1.0, 2.0])
    texts[0] = "birds"
    texts.append("fish")
    assert list(f.points) == ["a cat", "a dog"] and (2 * f).points is f.points


def test_points_that_differ_by_little_are_two_and_the_two_zeros_one():
    """def-synthesis: labels of numbers go by their digits."""
    assert Features(Gaussian(1.0), [0.0, 1e-20, -0.0]).labels().tolist() == [0, 1, 0]


def test_pairs_and_a_list_of_pairs_are_joined_as_objects():
    """def-synthesis: for a kernel that takes both."""
    k = FunctionKernel(lambda s, t: float(s == t))
    both = Features(k, Pairs([1, 2], ["a", "b"])).joined(Features(k, [(2, "b"), (3, "a")]))
    assert both.labels().tolist() == [0, 1, 1, 3]
