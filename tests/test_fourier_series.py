"""Identities of the chapter on Fourier series."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.legendre import leggauss, legvander
from scipy.integrate import quad

from rkhs_lit import (
    FourierKernel,
    JacobiTheta,
    RKHSFunction,
    as_line,
    fourier_coefficients,
    inner,
    is_positive_definite,
    kernel_from_basis,
    norm,
    spectral_inner,
    spectral_norm,
    waves,
)

seeds = st.integers(0, 10_000)


def random_function(kernel, rng, n=6, span=1.0):
    return RKHSFunction(kernel, rng.uniform(-span, span, n), rng.normal(size=n))


# Weighted sequences


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_inner_product_divides_products_of_coefficients_by_eigenvalues(seed):
    """:prf:ref:`thm-weighted-l2`, against the kernel of a basis whose Gram
    matrix is diag(1/λ)."""
    rng = np.random.default_rng(seed)
    lam = rng.uniform(0.1, 2.0, 5)

    def legendre(x):
        return legvander(np.ravel(np.asarray(x, float)), 4) * np.sqrt(np.arange(5) + 0.5)

    k = kernel_from_basis(legendre, np.diag(1 / lam))
    f, g = random_function(k, rng), random_function(k, rng)
    x, w = leggauss(10)  # exact up to degree 19
    a, b = (legendre(x).T @ (w * h(x)) for h in (f, g))
    size = norm(f) * norm(g) + 1
    assert abs(spectral_inner(a, b, lam) - inner(f, g)) < 1e-10 * size
    assert abs(spectral_norm(a, lam) - norm(f)) < 1e-7 * (norm(f) + 1)
    assert np.isclose(a @ b, w @ (f(x) * g(x)))


def test_spectral_inner_in_exact_numbers():
    """:prf:ref:`thm-weighted-l2`"""
    # Powers of four have exact roots: no rounding.
    assert spectral_inner([1, 2], [3, 4], [1.0, 0.25]) == 3 + 32
    assert spectral_norm([3.0, 1.0], [1.0, 0.0625]) == 5.0
    assert spectral_inner([1j, 1, -1j], [1j, 1, -1j], [1, 1, 1]) == 3.0


def test_a_function_outside_the_space_has_infinite_norm():
    """:prf:ref:`thm-weighted-l2`"""
    assert spectral_norm([1.0, 1.0], [1.0, 0.0]) == np.inf
    assert spectral_norm([1.0, 0.0], [1.0, 0.0]) == 1.0
    assert spectral_inner([1.0, 0.0], [2.0, 0.0], [1.0, 0.0]) == 2.0
    for a, b in (([1.0, 1.0], [1.0, 0.0]), ([1.0, 0.0], [1.0, 1.0])):
        with pytest.raises(ValueError, match="not in the space.*see coefficient 1"):
            spectral_inner(a, b, [1.0, 0.0])


def test_small_eigenvalues_do_not_underflow():
    """The product of two small coefficients is below the smallest float,
    its quotient by λ is not."""
    assert np.isclose(spectral_inner([1e-200], [1e-200], [1e-300]), 1e-100, atol=0)
    assert np.isclose(spectral_norm([1e-200], [1e-300]), 1e-50, atol=0)


# Fourier series


T, L = 3.0, 14
OMEGA = 2 * np.pi / T
l_all = np.arange(-L, L + 1)


def smooth(x):
    return np.exp(np.sin(OMEGA * x) + 0.5 * np.cos(2 * OMEGA * x))


def even(x):
    return 1 / (2 + np.cos(OMEGA * x))


def hat(f, period=T):
    return fourier_coefficients(f, L, period=period)


def test_coefficients_are_the_integrals():
    """:prf:ref:`def-fourier-coefficients`, by adaptive quadrature."""
    for l in (-3, 0, 1, 5):
        real = quad(lambda x: smooth(x) * np.cos(OMEGA * l * x), -T / 2, T / 2)[0]
        imag = quad(lambda x: -smooth(x) * np.sin(OMEGA * l * x), -T / 2, T / 2)[0]
        assert abs(hat(smooth)[L + l] - (real + 1j * imag) / T) < 1e-10


def test_waves_are_orthonormal_for_the_mean_over_a_period():
    """:prf:ref:`prop-fourier-rules`: the factor is 1/T, not 1/2."""
    for l in range(-3, 4):
        for m in range(-3, 4):
            real = quad(lambda x: np.cos((l - m) * x), -np.pi, np.pi)[0] / (2 * np.pi)
            assert abs(real - (l == m)) < 1e-12


@pytest.mark.parametrize("shift", [0.4, -1.7, 5.0])
def test_shift_multiplies_coefficients_by_a_phase(shift):
    """:prf:ref:`prop-fourier-rules`, rule 1"""
    moved = hat(lambda x: smooth(x - shift))
    assert np.allclose(moved, np.exp(-1j * l_all * OMEGA * shift) * hat(smooth), atol=1e-14)


def test_real_functions_have_conjugate_coefficients():
    """:prf:ref:`prop-fourier-rules`, rule 2; not f_l = -conj(f_l)."""
    a = hat(smooth)
    assert np.allclose(a[::-1], a.conj(), atol=1e-14)
    assert not np.allclose(a, -a.conj(), atol=1e-3)


def test_real_even_functions_have_real_even_coefficients():
    """:prf:ref:`prop-fourier-rules`, rule 3"""
    a = hat(even)
    assert np.allclose(a.imag, 0, atol=1e-14) and np.allclose(a[::-1], a, atol=1e-14)


def test_scaling_changes_the_period_and_no_coefficient():
    """:prf:ref:`prop-fourier-rules`, rule 4"""
    assert np.allclose(hat(lambda x: smooth(2 * x), T / 2), hat(smooth), atol=1e-14)


def test_derivative_multiplies_coefficients_by_the_frequency():
    """:prf:ref:`prop-fourier-rules`, rule 5"""

    def derivative(x):
        return smooth(x) * OMEGA * (np.cos(OMEGA * x) - np.sin(2 * OMEGA * x))

    assert np.allclose(hat(derivative), 1j * OMEGA * l_all * hat(smooth), atol=1e-12)


def test_derivative_rule_holds_for_a_function_with_corners():
    """:prf:ref:`prop-fourier-rules`, rule 5: |x| is the integral of its sign.
    The coefficients of the jump by exact integrals, not by sampling."""
    l = np.arange(-2001, 2002)
    odd = l % 2 == 1
    a = np.where(l == 0, np.pi / 2, np.where(odd, -2 / (np.pi * np.maximum(l**2, 1.0)), 0))
    assert np.allclose(fourier_coefficients(np.abs, 5, n_points=20_000), a[1996:2007], atol=1e-7)
    slope = [-1j * quad(lambda x: np.sin(m * x), 0, np.pi)[0] / np.pi for m in range(-5, 6)]
    assert np.allclose(slope, 1j * l[1996:2007] * a[1996:2007], atol=1e-12)
    square = spectral_norm(a, 1 / (1.0 + l**2)) ** 2
    assert 0 < np.pi**2 / 3 + 1 - square < 4 / (np.pi**2 * 2001)  # the tail


@pytest.mark.parametrize("degree", [5, 40, 100, 1000])
def test_rounding_noise_in_coefficients_is_set_to_zero(degree):
    """:prf:ref:`thm-fourier-rkhs`: high prices would take noise for a wave."""
    a = fourier_coefficients(np.cos, degree)
    assert np.flatnonzero(a).tolist() == [degree - 1, degree + 1]
    prices = JacobiTheta(0.5).spectrum(degree)
    wanted = math.sqrt(math.pi * math.exp(0.125))
    assert np.isclose(spectral_norm(a, prices), wanted, rtol=1e-13)
    assert np.isclose(spectral_inner(a, a, prices), wanted**2, rtol=1e-13)
    assert np.array_equal(fourier_coefficients(lambda x: 1e-30 * np.cos(x), degree) != 0, a != 0)
    assert not fourier_coefficients(lambda x: 0 * x, degree).any()


def test_small_waves_above_rounding_are_kept():
    """Only noise is dropped: 1e-14 next to 1 is a wave."""
    a = fourier_coefficients(lambda x: np.cos(x) + 1e-14 * np.cos(7 * x), 9)
    assert np.flatnonzero(a).tolist() == [2, 8, 10, 16]
    assert np.isclose(a[16], 5e-15, rtol=0.1, atol=0)


def test_a_rule_is_exact_if_no_wave_aliases():
    """n points are exact up to degree L without waves |m| >= n - L."""
    for m, exact in ((6, True), (7, False)):
        a = fourier_coefficients(lambda x: np.cos(m * x), 3, n_points=10)
        assert np.allclose(a, 0, atol=1e-14) == exact


def test_parseval_has_the_mean_and_not_the_integral():
    """:prf:ref:`prop-fourier-rules`, rule 6"""
    integral = quad(lambda x: smooth(x) * even(x), -T / 2, T / 2)[0]
    a, b = (fourier_coefficients(f, 40, period=T) for f in (smooth, even))
    total = np.sum(a * b.conj())
    assert abs(total - integral / T) < 1e-12
    assert abs(total - integral) > 0.1


def test_summable_coefficients_give_the_function_back():
    """:prf:ref:`prop-fourier-rules`, rule 7"""
    x = np.linspace(-4, 4, 33)
    l = np.arange(-40, 41)
    series = np.exp(1j * OMEGA * np.outer(x, l)) @ fourier_coefficients(smooth, 40, period=T)
    assert np.allclose(series, smooth(x), atol=1e-12)


def test_too_few_points_alias():
    """The mean over n points adds the coefficients l ± n, ..."""
    coarse = fourier_coefficients(smooth, 2, period=T, n_points=6)
    fine = fourier_coefficients(smooth, 200, period=T)
    folded = sum(fine[200 - 2 + 6 * m:200 + 3 + 6 * m] for m in range(-20, 21))
    assert np.allclose(coarse, folded, atol=1e-14)


def top_hat(L, c):
    l = np.arange(1, L + 1)
    half = np.sin(l * c) / (l * np.pi)
    return np.concatenate([half[::-1], [c / np.pi], half])


@pytest.mark.parametrize("c", [0.5, 1.0, 2.5])
def test_top_hat_has_the_coefficients_sin_lc_over_l_pi(c):
    """:prf:ref:`exm-top-hat`; sampled at n points with an error of order 1/n."""
    sampled = fourier_coefficients(lambda x: (np.abs(x) < c) * 1.0, 10, n_points=100_000)
    assert np.allclose(sampled, top_hat(10, c), atol=1e-4)
    for l in (1, 4):
        exact = quad(lambda x: np.cos(l * x), -c, c)[0] / (2 * np.pi)
        assert abs(top_hat(10, c)[10 + l] - exact) < 1e-12


def test_21_terms_of_the_top_hat_count_the_constant_once():
    """:prf:ref:`exm-top-hat`: away from the jumps the 21 terms are near 0
    and 1; with the constant doubled they are off by c/π."""
    c = 1.0
    x = np.array([0.0, np.pi])
    l = np.arange(1, 11)
    cosines = np.cos(np.outer(x, l)) @ (2 * np.sin(l * c) / (l * np.pi))
    once = c / np.pi + cosines
    waves = np.exp(1j * np.outer(x, np.arange(-10, 11))) @ top_hat(10, c)
    assert np.allclose(once, waves)
    assert np.abs(once - [1, 0]).max() < 0.06
    assert np.abs(once + c / np.pi - [1, 0]).min() > 0.2


@pytest.mark.parametrize("kernel", [JacobiTheta(0.5), JacobiTheta(0.2),
                                    FourierKernel(lambda l: 1 / (1 + l**2), degree=400)])
def test_norm_of_the_top_hat_diverges(kernel):
    """:prf:ref:`thm-fourier-rkhs`: in L2 the sums stay below c/π, in the RKHS
    each doubling of the number of waves at least multiplies the squared norm
    by a factor above 1 that does not tend to 1."""
    degrees = (25, 50, 100) if isinstance(kernel, JacobiTheta) else (100, 200, 400)
    squares = [spectral_norm(top_hat(n, 1.0), kernel.spectrum(n)) ** 2 for n in degrees]
    assert squares[1] > 1.8 * squares[0] and squares[2] > 1.8 * squares[1]
    assert all(np.sum(top_hat(n, 1.0) ** 2) < 1 / np.pi for n in degrees)


coefficient_lists = st.lists(st.floats(0, 3, allow_subnormal=False).map(
    lambda v: round(v, 3)), min_size=1, max_size=6)


@given(coefficient_lists, seeds)
@settings(max_examples=40, deadline=None)
def test_fourier_kernel_is_the_sum_of_waves_and_positive_definite(coefficients, seed):
    """:prf:ref:`thm-fourier-rkhs`"""
    rng = np.random.default_rng(seed)
    X, Y = rng.uniform(-9, 9, 7), rng.uniform(-9, 9, 5)
    k = FourierKernel(coefficients)
    wanted = sum(c * np.exp(1j * s * l * np.subtract.outer(X, Y))
                 for l, c in enumerate(coefficients) for s in ((1, -1) if l else (1,)))
    size = 1 + 2 * sum(coefficients)
    assert np.allclose(k(X, Y), np.real(wanted), rtol=0, atol=1e-12 * size)
    assert np.allclose(k.diag(X), coefficients[0] + 2 * sum(coefficients[1:]))
    assert is_positive_definite(k(X), tol=1e-12 * size)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_fourier_inner_product_reproduces_values_and_agrees_with_expansions(seed):
    """:prf:ref:`thm-fourier-rkhs` and :eq:`eq-fourier-reproducing`"""
    rng = np.random.default_rng(seed)
    for k, n in ((FourierKernel(rng.uniform(0.1, 1, 8)), 7), (JacobiTheta(0.7), 10)):
        f, g = random_function(k, rng, span=4), random_function(k, rng, span=4)
        a, b = fourier_coefficients(f, n), fourier_coefficients(g, n)
        prices = k.spectrum(n)
        assert abs(spectral_inner(a, b, prices) - inner(f, g)) < 1e-8
        assert abs(spectral_norm(a, prices) ** 2 - norm(f) ** 2) < 1e-8
        z = rng.uniform(-4, 4)
        at_z = prices * np.exp(-1j * np.arange(-n, n + 1) * z)
        assert abs(spectral_inner(a, at_z, prices) - f([z])[0]) < 1e-8
        # Without the conjugate one finds f(-z).
        assert abs(np.sum(a * at_z / prices) - f([-z])[0]) < 1e-8


def test_prices_one_plus_l_squared_are_the_integral_of_f_and_its_slope():
    """Exercise on k_l = 1/(1 + l²): closed form of kernel and norm."""
    k = FourierKernel(lambda l: 1 / (1 + l**2), degree=20_000)
    x = np.array([0.0, 0.3, 2.0, np.pi, 5.0])
    closed = np.pi * np.cosh(np.pi - x) / np.sinh(np.pi)
    assert np.allclose(k(x, [0.0])[:, 0], closed, atol=2 / 20_000)  # 2 Σ_{l>L} 1/l²
    wrapped = np.pi * sum(np.exp(-np.abs(x + 2 * np.pi * n)) for n in range(-9, 10))
    assert np.allclose(closed, wrapped)
    a = fourier_coefficients(lambda x: np.exp(np.sin(x)), 30)
    integral = quad(lambda x: np.exp(2 * np.sin(x)) * (1 + np.cos(x) ** 2), -np.pi, np.pi)[0]
    found = spectral_norm(a, k.spectrum(30)) ** 2
    assert np.isclose(found, integral / (2 * np.pi), rtol=1e-12)


def test_a_kernel_on_the_circle_with_a_negative_coefficient_is_none():
    """:prf:ref:`thm-fourier-rkhs`, the converse."""
    x = 2 * np.pi * np.arange(12) / 12
    d = np.subtract.outer(x, x)
    assert not is_positive_definite(1 + 0.5 * np.cos(d) - 0.1 * np.cos(2 * d))
    with pytest.raises(ValueError, match="nonnegative"):
        FourierKernel([1.0, 0.25, -0.05])


@pytest.mark.parametrize("sigma", [0.02, 0.2, 1.0, 2.5, 2.506, 2.507, 4.0, 9.0])
def test_theta_kernel_has_three_forms(sigma):
    """:prf:ref:`prop-theta`: waves, turns, and Jacobi's triple product. All
    forms are relative to κ(0); each of the two sums rounds at ε κ(0)."""
    x = np.linspace(-8, 8, 101)
    kernel = JacobiTheta(sigma)(x, [0.0])[:, 0]
    l = np.arange(-500, 501)
    waves = np.exp(1j * np.outer(x, l)) @ JacobiTheta(sigma).spectrum(500)
    turns = np.exp(-(((x[:, None] + 2 * np.pi * l) / sigma) ** 2) / 2).sum(axis=1)
    turns /= np.sqrt(2 * np.pi) * sigma
    assert np.allclose(kernel, waves, rtol=0, atol=1e-13 * kernel.max())
    assert np.allclose(kernel, turns, rtol=1e-10, atol=1e-300)
    if sigma >= 0.2:
        q, m = np.exp(-(sigma**2) / 2), np.arange(1, 2000)[:, None]
        triple = np.prod((1 - q ** (2 * m)) * (
            1 + 2 * q ** (2 * m - 1) * np.cos(x) + q ** (4 * m - 2)), axis=0) / (2 * np.pi)
        assert np.allclose(kernel, triple, rtol=1e-10)


def test_theta_kernel_has_gaussian_coefficients():
    """:prf:ref:`prop-theta`: exactly, not approximately."""
    k = JacobiTheta(0.6)
    a = fourier_coefficients(lambda x: k(x, [0.0])[:, 0], 12)
    wanted = np.exp(-((0.6 * np.arange(-12, 13)) ** 2) / 2) / (2 * np.pi)
    assert np.allclose(a, wanted, atol=1e-15) and np.allclose(k.spectrum(12), wanted, rtol=1e-14)
    assert abs(quad(lambda x: k([x], [0.0])[0, 0], -np.pi, np.pi)[0] - 1) < 1e-10


def test_theta_kernel_does_not_lose_digits_where_it_is_small():
    """Poisson's form has no cancellation: at x = π two turns are equal."""
    found = JacobiTheta(0.3)([np.pi], [0.0])[0, 0]
    wanted = 2 * math.exp(-(math.pi / 0.3) ** 2 / 2) / (math.sqrt(2 * math.pi) * 0.3)
    assert abs(found / wanted - 1) < 1e-13 and found < 1e-23


def test_kernels_on_the_circle_are_periodic_symmetric_and_work_in_tiles():
    """:prf:ref:`thm-fourier-rkhs`"""
    x = np.random.default_rng(0).uniform(-3, 3, 300)
    for k in (JacobiTheta(0.5), FourierKernel([1.0, 0.5, 0.0, 0.25])):
        K = k(x)
        assert np.allclose(K, K.T, atol=1e-15) and np.allclose(K.diagonal(), k.diag(x))
        assert np.allclose(k(x + 2 * np.pi, x), K, atol=1e-13)
        f = RKHSFunction(k, x[:9], x[9:18])
        assert np.isclose(norm(2 * f - f), norm(f))  # equal kernels compare equal
        assert k == type(k)(*[v for v in vars(k).values()])


def test_bandwidth_of_the_kernel_limits_that_of_its_functions():
    """:prf:ref:`thm-fourier-rkhs`: k_l = 0 forces f_l = 0."""
    rng = np.random.default_rng(1)
    k = FourierKernel([1.0, 0.0, 0.5])
    a = fourier_coefficients(random_function(k, rng, 12, 3.0), 6)
    outside = np.isin(np.abs(np.arange(-6, 7)), [1, 3, 4, 5, 6])
    assert np.allclose(a[outside], 0, atol=1e-13) and np.abs(a[~outside]).min() > 1e-3
    assert spectral_norm([0, 1, 0, 1, 0], k.spectrum(2)) == np.inf


# Waves


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_waves_are_cosines_and_sines_orthonormal_on_the_circle(seed):
    """:prf:ref:`thm-fourier-rkhs`: e_l for every whole l, in any order."""
    rng = np.random.default_rng(seed)
    l = rng.permutation(np.arange(-6, 7))
    x = 2 * np.pi * np.arange(16) / 16  # exact for products up to degree 15
    assert np.allclose(waves(x, l).T @ waves(x, l) / 16, np.eye(13), atol=1e-13)
    for t in rng.uniform(-9, 9, 3):
        for j, value in zip(l, waves([t], l)[0]):
            wanted = np.sqrt(2) * (np.cos(j * t) if j > 0 else np.sin(-j * t)) if j else 1.0
            assert abs(value - wanted) < 1e-14


def test_points_of_the_line_are_numbers():
    """:prf:ref:`def-points`: a column or a list; waves take both."""
    assert np.array_equal(as_line([[1.0], [2.0]]), [1.0, 2.0])
    assert np.array_equal(waves([[1.0], [2.0]], [1, -2]), waves([1.0, 2.0], [1, -2]))
    with pytest.raises(ValueError, match="^T must be one number a point"):
        waves([[1.0, 2.0]], [1])


def test_the_gaussian_of_the_arc_length_is_no_kernel():
    """:prf:ref:`thm-fourier-rkhs`, the converse: the corner has negative
    coefficients for large even l, whatever the width."""

    def bump(x, sigma):
        arc = np.abs((x + np.pi) % (2 * np.pi) - np.pi)
        return np.exp(-((arc / sigma) ** 2) / 2)

    x = 2 * np.pi * np.arange(60) / 60
    for sigma in (0.8, 1.0, 2.0):
        k = fourier_coefficients(lambda x: bump(x, sigma), 20).real[20:]
        assert k[1:16:2].min() > 0 > k[8::2].max()
        assert not is_positive_definite(bump(np.subtract.outer(x, x), sigma))


def test_heat_makes_a_wide_theta_kernel_of_a_narrow_one():
    """:prf:ref:`prop-theta`: coefficients times exp(-l² t / 2) have the width √(σ² + t)."""
    l = np.arange(-9, 10)
    for sigma, t in ((0.5, 0.75), (1.2, 0.1)):
        later = JacobiTheta(sigma).spectrum(9) * np.exp(-(l**2) * t / 2)
        assert np.allclose(later, JacobiTheta(math.sqrt(sigma**2 + t)).spectrum(9), rtol=1e-12)


@pytest.mark.parametrize("wrong, right, name", [
    (lambda: spectral_inner([1.0], [1j], [1.0]), lambda: spectral_inner([1.0], [2.0], [1.0]),
     "real functions"),
    (lambda: spectral_inner([1e200], [1e200], [1e-300]),
     lambda: spectral_inner([1e2], [1e2], [1e-300]), "as far as floats can tell"),
    (lambda: fourier_coefficients(np.sin, 2, n_points=4),
     lambda: fourier_coefficients(np.sin, 2, n_points=5)[3],
     "n_points must be a whole number of at least 5"),
    (lambda: fourier_coefficients(lambda x: np.exp(1j * x), 2),
     lambda: fourier_coefficients(lambda x: np.exp(1j * x).real, 2)[3], "f must hold real"),
    (lambda: FourierKernel(lambda l: 1.0), lambda: FourierKernel(lambda l: 1.0, 2).diag([1.0]),
     "degree"),
    (lambda: FourierKernel([1.0, 2.0], degree=3),
     lambda: FourierKernel([1.0, 2.0], degree=1).diag([1.0]), "degree must be 1"),
])
def test_what_the_theorems_ask_for_is_checked(wrong, right, name):
    """:prf:ref:`thm-weighted-l2`, :prf:ref:`thm-fourier-rkhs`: real functions in the space, as
    many points as there are waves of the degree, and as many prices as the degree says."""
    with pytest.raises(ValueError, match=name):
        wrong()
    assert np.isfinite(right()).all() and np.any(right())


@pytest.mark.parametrize("degree, n_points, n", [(3, None, 1024), (128, None, 1024),
                                                 (129, None, 1032), (3, 7, 7)])
def test_a_function_is_asked_once_at_equidistant_points_of_one_period_around_zero(degree, n_points, n):
    """def-fourier-coefficients: the larger of 1024 and 8 L, or as many as are asked for."""
    asked = []
    fourier_coefficients(lambda x: asked.append(x) or np.cos(x), degree, period=3.0, n_points=n_points)
    x = np.sort(asked[0])
    assert len(asked) == 1 and len(x) == n
    assert np.allclose(np.diff(x), 3.0 / n) and -1.5 <= x[0] and x[-1] <= 1.5
    assert asked[0][0] == 0                        # the order that the FFT wants


def test_a_wave_that_is_not_listed_has_the_coefficient_zero():
    """thm-fourier-rkhs: beyond the degree, and within it the coefficients on both sides."""
    assert FourierKernel([1.0, 0.5]).spectrum(3).tolist() == [0, 0, 0.5, 1, 0.5, 0, 0]
    assert FourierKernel([1.0, 0.5]).spectrum(0).tolist() == [1.0]
