"""Identities of the chapter on Bochner's theorem."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from scipy.special import comb, gamma
from scipy.stats import cauchy, kstest, multivariate_t, norm, t, uniform
from sklearn.gaussian_process.kernels import Matern as PeerMatern

from rkhs_lit import (
    BSpline,
    Delta,
    FunctionKernel,
    Gaussian,
    JacobiTheta,
    Kernel,
    Laplace,
    Linear,
    Matern,
    RKHSFunction,
    Sinc,
    inner,
    interpolate,
    is_positive_definite,
    spectral_density,
    spectral_sample,
)
from rkhs_lit import norm as rkhs_norm

SPECTRAL = [
    Gaussian(0.7), Laplace(1.4), Matern(1.5, 0.8), Matern(2.5, 1.0), Matern(0.3, 1.0),
    Matern(4.2, 2.0), Sinc(1.3), 2.5 * Gaussian(1.0), Gaussian(1.0) * Laplace(2.0),
    Matern(1.5, 1.0) ** 3, 2.0 * Gaussian(0.4) + 0.5 * Laplace(1.0), Gaussian(1.0) ** 0,
]
names = lambda k: repr(k)[:45]  # noqa: E731


def sample(n=12, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


# -- Bochner's theorem ----------------------------------------------------


@given(arrays(float, (3, 2), elements=st.integers(-400, 400).map(lambda v: v / 100)),
       arrays(float, 3, elements=st.integers(0, 200).map(lambda v: v / 100)), st.integers(0, 99))
def test_an_average_of_waves_is_a_kernel_with_cosines_and_sines_as_features(omega, mass, seed):
    """thm-bochner, the direction that is used: ∫ cos⟨ω, x - y⟩ dΛ(ω)."""
    X = sample(8, seed=seed)
    K = np.cos((X[:, None] - X) @ omega.T) @ mass
    features = np.hstack([np.cos(X @ omega.T) * np.sqrt(mass),
                          np.sin(X @ omega.T) * np.sqrt(mass)])
    # Eight roundings of terms that are at most the total mass.
    assert np.allclose(K, features @ features.T, rtol=0, atol=1e-14 * (1 + mass.sum()))
    assert is_positive_definite(features @ features.T)
    assert np.linalg.matrix_rank(features @ features.T) <= 6


@pytest.mark.parametrize("omega", [0.3, 2.0, 5.7])
@pytest.mark.parametrize("kappa", [
    lambda u: np.exp(-np.abs(u)),
    lambda u: np.maximum(0, 1 - np.abs(u)),
    lambda u: np.maximum(0, 1 - u**2),
], ids=["laplace", "hat", "parabola"])
def test_the_quadratic_form_of_a_wave_is_the_windowed_transform(kappa, omega):
    """lem-wave-witness: both sides of eq-wave-form."""
    eps, h = 0.1, 0.02
    x = np.arange(-8, 8 + h / 2, h)
    window = h * np.exp(-2 * eps * x**2)
    K = kappa(np.subtract.outer(x, x))
    form = sum(a @ K @ a for a in (window * np.cos(omega * x), window * np.sin(omega * x)))
    integral = 2 * quad(lambda u: kappa(u) * np.exp(-eps * u**2), 0, 12, weight="cos",
                        wvar=omega, limit=200)[0]
    # The trapezoidal rule with kinks in κ has an error of order h².
    assert abs(form - np.sqrt(np.pi / (4 * eps)) * integral) < 4 * h**2


def test_a_negative_frequency_gives_a_witness_and_none_gives_none():
    """cor-negative-frequency, exm-parabola: the parabola fails at 2π, the hat does not."""
    transform = 4 * (np.sin(2 * np.pi) - 2 * np.pi) / (2 * np.pi) ** 3
    assert np.isclose(transform, -1 / np.pi**2)
    assert np.isclose(transform, 2 * quad(lambda t: 1 - t**2, 0, 1, weight="cos",
                                          wvar=2 * np.pi)[0])
    x = np.arange(-8, 8, 0.1)
    a = np.exp(-0.1 * x**2) * np.cos(2 * np.pi * x)
    differences = np.subtract.outer(x, x)
    parabola, hat = np.maximum(0, 1 - differences**2), np.maximum(0, 1 - np.abs(differences))
    assert a @ parabola @ a < -1
    assert not is_positive_definite(parabola) and is_positive_definite(hat)


def test_the_box_of_the_earlier_chapter_fails_at_a_negative_frequency():
    """exm-box: its witness is the wave of frequency π/0.4."""
    box = np.array([[1.0, 1, 0], [1, 1, 1], [0, 1, 1]])
    a = np.cos(np.pi / 0.4 * np.array([0.0, 0.4, 0.8])) * [1, np.sqrt(2), 1]
    assert np.isclose(a @ box @ a / (a @ a), 1 - np.sqrt(2))
    assert np.sin(np.pi / 0.8) / (np.pi / 0.8) < 0


def test_the_windowed_transform_is_a_density_and_gives_the_function_back():
    """lem-windowed-bochner, for the Laplace kernel on the line."""
    eps, h = 0.05, 0.02
    u = np.arange(0, 20, h)
    windowed = np.exp(-u - eps * u**2)
    weight = np.full(len(u), h)
    weight[0] = h / 2
    omega = np.arange(0, 140, 0.02)
    transform = 2 * np.cos(np.outer(omega, u)) @ (weight * windowed)
    # The sum over the grid is periodic in ω: it is 2/(1 + ω²) up to h²/6.
    assert transform.min() > -1e-9
    ends = np.full(len(omega), 0.02 / np.pi)
    ends[0] /= 2
    for point in (0.0, 0.7, 2.0):
        back = ends @ (transform * np.cos(omega * point))
        # What lies above ω = 140 has the mass 2/(140 π).
        assert abs(back - np.exp(-point - eps * point**2)) < 2 / (140 * np.pi) + 1e-3


# -- spectral measures ----------------------------------------------------


def test_gaussian_kernel_is_the_characteristic_function_of_a_normal():
    """prop-gaussian-spectrum, by quadrature."""
    for sigma, delta in product((0.5, 1.0, 2.0), (0.0, 0.4, 1.7)):
        integral = quad(lambda w: 2 * norm.pdf(w, scale=1 / sigma) * np.cos(w * delta),
                        0, 40 / sigma, limit=200)[0]
        assert np.isclose(integral, Gaussian(sigma)([0.0], [delta])[0, 0], atol=1e-9)


@pytest.mark.parametrize("nu", [0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.3])
def test_matern_is_a_scale_mixture_of_gaussians(nu):
    """def-matern: quadrature over the gamma distribution."""
    for r in (0.1, 1.0, 3.0):
        z = np.sqrt(2 * nu) * r / 0.8
        integral = quad(lambda v: 2 * v ** (2 * nu - 1) * np.exp(-v**2 - z**2 / (4 * v**2)),
                        0, np.inf)[0] / gamma(nu)
        assert np.isclose(Matern(nu, 0.8)([0.0], [r])[0, 0], integral, rtol=1e-6)


@pytest.mark.parametrize("nu", [0.05, 0.2, 0.5, 0.9, 1.0, 1.5, 2.0, 2.5, 3.0, 7.3, 20.0, 100.0])
@pytest.mark.parametrize("sigma", [0.3, 2.0])
def test_matern_equals_scikit_learns(nu, sigma):
    """thm-matern, part 1, in the same convention as scikit-learn."""
    X, Y = sample(20, 3), sample(15, 3, seed=1)
    peer = PeerMatern(length_scale=sigma, nu=nu)
    # scikit-learn regularises distances by machine precision, which small ν amplifies.
    atol = 1e-12 if nu > 0.15 else 1e-2
    assert np.allclose(Matern(nu, sigma)(X, Y), peer(X, Y), rtol=1e-9, atol=atol)
    assert isinstance(Matern(nu, sigma), Kernel)


def test_matern_recurrence_and_closed_forms():
    """thm-matern, parts 2 and 3, and the exercise on 7/2."""
    r = np.linspace(0, 5, 40)
    forms = {0.5: lambda z: 1, 1.5: lambda z: 1 + z, 2.5: lambda z: 1 + z + z**2 / 3,
             3.5: lambda z: 1 + z + 2 * z**2 / 5 + z**3 / 15}
    for nu, polynomial in forms.items():
        z = np.sqrt(2 * nu) * r / 1.7
        assert np.allclose(Matern(nu, 1.7)([0.0], r)[0], polynomial(z) * np.exp(-z), rtol=1e-13)
    for nu in (1.2, 2.0, 4.7):
        # The same z for all orders: σ = √(2ν).
        M = {v: Matern(v, np.sqrt(2 * v))([0.0], r)[0] for v in (nu - 1, nu, nu + 1)}
        assert np.allclose(M[nu + 1], M[nu] + r**2 / (4 * nu * (nu - 1)) * M[nu - 1], rtol=1e-12)
    assert np.allclose(Matern(0.5, 0.9)(sample()), Laplace(0.9)(sample()), rtol=1e-14)


def test_matern_tends_to_gaussian_like_one_over_nu():
    """thm-matern, part 4."""
    r = np.linspace(0, 4, 60)
    gaps = [np.abs(Matern(nu, 1.3)([0.0], r) - Gaussian(1.3)([0.0], r)).max()
            for nu in (10, 100, 1000)]
    assert gaps[2] < 5e-4
    assert np.allclose(np.divide(gaps[:-1], gaps[1:]), 10, rtol=0.1)


def test_matern_is_continuous_in_nu_and_never_nan():
    """thm-matern: closed forms meet the Bessel functions; extreme distances are finite."""
    r = np.array([0.0, 1e-160, 1e-120, 1e-9, 1e-3, 1.0, 30.0, 1e3, 1e9, 1e150])
    for nu in (0.5, 1.5, 2.5):
        near = Matern(nu * (1 + 1e-9), 1.0)([0.0], r)
        assert np.allclose(near, Matern(nu, 1.0)([0.0], r), rtol=1e-6, atol=1e-12)
    for nu in (1e-3, 0.2, 1.0, 2.0, 3.999, 50.0, 1000.0):
        K = Matern(nu, 1.0)([0.0], r)[0]
        assert (0 <= K).all() and (K <= 1).all() and K[0] == 1 and K[-1] == 0
        # Decreasing, up to the rounding of Bessel functions.
        assert (np.diff(K) <= 1e-12).all()
    for nu in (1.2, 2.0, 3.0, 1000.0):
        # The width takes z to 1e-165 and 1e160, where K_ν and z² overflow.
        assert Matern(nu, 1e10)([0.0], [1e-155])[0, 0] == 1
        assert Matern(nu, 1e-10)([0.0], [1e150])[0, 0] == 0
    assert is_positive_definite(Matern(1.7, 1.0)(sample(40, 3)))


@pytest.mark.parametrize("nu", [1e-3, 3e-3, 0.1])
def test_a_rough_matern_falls_at_the_tiniest_distances(nu):
    """thm-matern: K_ν(z) near zero gives M_ν(z) = 1 - Γ(1-ν)/Γ(1+ν) (z/2)^2ν, up to z²; for
    small ν that is far below one at distances whose squares a float hardly holds."""
    z = np.array([1e-130, 1e-110, 1e-60, 1e-20])
    wanted = 1 - gamma(1 - nu) / gamma(1 + nu) * (z / 2) ** (2 * nu)
    assert np.allclose(Matern(nu, 1.0)([0.0], z / np.sqrt(2 * nu))[0], wanted, rtol=1e-12)


@pytest.mark.parametrize("k", [0.0 * Gaussian(1.0), 0.0 * Gaussian(1.0) + 0.0 * Laplace(1.0)])
def test_a_kernel_that_is_zero_has_no_frequencies(k):
    """thm-bochner: its measure is zero, and no multiple of it is a distribution."""
    with pytest.raises(ValueError, match="^kernel must not be zero"):
        spectral_sample(k, 5, dim=2, rng=0)
    assert spectral_sample(k + 1e-9 * Gaussian(1.0), 5, dim=2, rng=0).shape == (5, 2)


@pytest.mark.parametrize("k, d", [(Laplace(0.6), 1), (Laplace(0.6), 3), (Matern(1.5, 2.0), 2),
                                  (Matern(0.3, 1.0), 2), (Matern(1000, 1.0), 3)])
def test_the_density_of_student_frequencies(k, d):
    """thm-matern-spectrum: eq-student is SciPy's multivariate t density."""
    omega = sample(6, d) * 3
    peer = multivariate_t(np.zeros(d), np.eye(d) / k.sigma**2, df=2 * getattr(k, "nu", 0.5))
    # Rounding is multiplied by the exponent ν + d/2.
    assert np.allclose(spectral_density(k, omega), peer.pdf(omega), rtol=1e-9, atol=0)


@pytest.mark.parametrize("k", [Gaussian(0.7), Laplace(1.4), Matern(2.5, 1.0), Matern(0.3, 1.0),
                               Sinc(1.3), 2.5 * Gaussian(1.0),
                               2.0 * Gaussian(0.4) + 0.5 * Laplace(1.0)], ids=names)
def test_the_waves_of_the_density_add_up_to_the_kernel(k):
    """thm-bochner, prop-spectral-rules: ∫ p(ω) cos ωδ dω = κ(δ) on the line."""
    top = np.pi / k.width if isinstance(k, Sinc) else np.inf
    for delta in (0.3, 1.7):
        back, _ = quad(lambda w: 2 * spectral_density(k, [w])[0], 0, top, weight="cos",
                       wvar=delta, limit=400)
        assert abs(back - k([0.0], [delta])[0, 0]) < 1e-6


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_density_of_gaussian_and_sinc_frequencies(d):
    """prop-gaussian-spectrum, prop-spectral-rules: products over the coordinates."""
    omega = sample(20, d, seed=2) * 2
    assert np.allclose(spectral_density(Gaussian(0.8), omega),
                       norm(scale=1 / 0.8).pdf(omega).prod(axis=1))
    flat = uniform(-np.pi / 1.5, 2 * np.pi / 1.5).pdf(omega).prod(axis=1)
    assert np.allclose(spectral_density(Sinc(1.5), omega), flat) and 0 < flat.max()
    assert np.array_equal(spectral_density(0.0 * Gaussian(1.0), omega), np.zeros(20))


def test_the_density_at_extreme_frequencies_and_widths():
    """thm-matern-spectrum: powers and squares that overflow on their way do no harm."""
    far = spectral_density(Laplace(1.0), [1e150, 1e170])
    assert np.isclose(far[0], 1 / (np.pi * 1e300), rtol=1e-10, atol=0) and far[1] == 0
    tiny = spectral_density(Matern(0.01, 1e150), [1e200])        # σω = 1e350
    assert np.isclose(np.log10(tiny[0]), 150 - 1.02 * 350, atol=3)
    assert spectral_density(Gaussian(1e100), [1e200])[0] == 0
    assert np.isclose(spectral_density(Gaussian(1e150), [[0.0, 0.0]])[0], 1e300 / (2 * np.pi))
    with pytest.raises(ValueError, match="^kernel gave a value that is not finite"):
        spectral_density(Gaussian(1e150), np.zeros((1, 3)))


@pytest.mark.parametrize("k", [Linear(), Delta(), Gaussian(1.0) * Laplace(1.0), Gaussian(1.0) ** 2,
                               Gaussian(1.0) + Linear()], ids=names)
def test_kernels_without_a_known_density_are_refused(k):
    """prop-spectral-rules has no formula for the density of a product, and none for kernels
    that are not translation-invariant or not continuous; sums and multiples have one."""
    with pytest.raises(ValueError, match="^kernel must have a spectral density"):
        spectral_density(k, [1.0])
    one, other = (spectral_density(l, [1.0]) for l in (Gaussian(1.0), Laplace(1.0)))
    both = spectral_density(Gaussian(1.0) + 2 * Laplace(1.0), [1.0])
    assert np.isclose(both[0], one[0] + 2 * other[0], rtol=1e-15, atol=0)


@pytest.mark.parametrize("k", [Gaussian(0.8), Laplace(1.3), Matern(1.5, 0.7)], ids=names)
def test_the_density_is_the_fourier_transform_of_the_kernel(k):
    """cor-spectral-density: (2π)^-1 times the transform of κ, on the line."""
    for w in (0.0, 0.6, 2.5):
        transform = 2 * quad(lambda u: k([0.0], [u])[0, 0], 0, np.inf, weight="cos", wvar=w)[0] if w \
            else 2 * quad(lambda u: k([0.0], [u])[0, 0], 0, np.inf)[0]
        assert np.isclose(transform / (2 * np.pi), spectral_density(k, [w])[0], rtol=1e-6)


def test_a_mixture_of_gaussians_has_a_mixture_of_normal_frequencies():
    """thm-scale-mixture: S of two values in the plane, and S gamma on the line."""
    S, share, omega = np.array([0.25, 4.0]), np.array([0.3, 0.7]), sample(8)
    k = 0.3 * Gaussian(2.0) + 0.7 * Gaussian(0.5)                # σ = 1/√S
    delta = np.array([[0.7, -0.4]])
    assert np.isclose(k(delta, np.zeros((1, 2)))[0, 0], share @ np.exp(-S * np.sum(delta**2) / 2))
    normals = [norm(scale=np.sqrt(s)).pdf(omega).prod(axis=1) for s in S]
    assert np.allclose(spectral_density(k, omega), share @ normals)
    # S with the density s e^-s: κ = (1 + δ²/2)^-2, and √S Z has the density p.
    def p(w):
        return quad(lambda s: s * np.exp(-s) * norm.pdf(w, scale=np.sqrt(s)), 0, 60)[0]
    for d in (0.5, 2.0):
        back = 2 * quad(lambda w: p(w) * np.cos(w * d), 0, 25, limit=100)[0]
        assert np.isclose(back, (1 + d**2 / 2) ** -2, atol=1e-7)


@pytest.mark.parametrize("k, law", [
    (Gaussian(0.4), norm(scale=2.5)),
    (Laplace(2.0), cauchy(scale=0.5)),
    (Matern(1.5, 0.5), t(3, scale=2.0)),
    (Matern(0.3, 4.0), t(0.6, scale=0.25)),
    (Matern(6.0, 1.0), t(12)),
    (Sinc(2.0), uniform(-np.pi / 2, np.pi)),
    (Gaussian(0.5) * Gaussian(1 / np.sqrt(5)), norm(scale=3.0)),
    (Laplace(1.0) ** 3, cauchy(scale=3.0)),
    (7.0 * Gaussian(1.0), norm()),
], ids=lambda v: names(v) if isinstance(v, Kernel) else "")
def test_the_marginals_of_the_frequencies(k, law):
    """prop-gaussian-spectrum, thm-matern-spectrum, prop-spectral-rules: Kolmogorov-Smirnov."""
    omega = spectral_sample(k, 4000, dim=3, rng=1)
    # Fixed seed; every direction of a radial law has the same marginal.
    for column in omega.T:
        assert kstest(column, law.cdf).pvalue > 1e-3
    if isinstance(k, (Gaussian, Laplace, Matern)):
        direction = np.array([0.6, 0.0, -0.8])
        assert kstest(omega @ direction, law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("k", SPECTRAL, ids=names)
@pytest.mark.parametrize("dim", [1, 3])
def test_the_mean_wave_is_the_kernel(k, dim):
    """thm-bochner for every sampler: E cos⟨ω, δ⟩ = κ(δ)/κ(0)."""
    N = 40_000
    omega = spectral_sample(k, N, dim=dim, rng=0)
    assert omega.shape == (N, dim) and np.isfinite(omega).all()
    delta, origin = sample(6, dim, seed=3), np.zeros((1, dim))
    wanted = k(delta, origin)[:, 0] / k(origin)[0, 0]
    waves = np.exp(1j * delta @ omega.T).mean(axis=1)
    # Each mean has a standard deviation of at most 1/√N; 24 of them, fixed seed.
    assert np.abs(waves - wanted).max() < 4 / np.sqrt(N)


def test_radial_frequencies_have_dependent_coordinates():
    """thm-matern-spectrum: independent Cauchy coordinates would give another kernel."""
    N, delta = 40_000, np.array([1.0, 1.0])
    found = np.cos(spectral_sample(Laplace(1.0), N, dim=2, rng=0) @ delta).mean()
    euclidean, by_coordinate = np.exp(-np.sqrt(2)), np.exp(-2)
    assert abs(found - euclidean) < 4 / np.sqrt(N) < abs(found - by_coordinate)


def test_sampling_is_reproducible():
    """thm-bochner: a seed, or a generator that moves on."""
    k = Matern(1.5, 1.0) + Gaussian(1.0)
    assert np.array_equal(spectral_sample(k, 5, dim=2, rng=7), spectral_sample(k, 5, dim=2, rng=7))
    rng = np.random.default_rng(7)
    first, second = (spectral_sample(k, 5, dim=2, rng=rng) for _ in range(2))
    assert not np.array_equal(first, second)


# -- the space by its Fourier transform -----------------------------------


def test_the_space_of_finitely_many_frequencies():
    """thm-wave-space: A cos ωx + B sin ωx costs (A² + B²)/mass, added over frequencies."""
    omega, mass = np.array([0.4, 1.3, 2.9]), np.array([0.5, 2.0, 0.1])
    k = FunctionKernel(lambda s, t: float(mass @ np.cos(omega * (s - t))))
    x, alpha = np.array([-1.0, 0.2, 0.9, 3.0]), np.array([1.0, -0.5, 2.0, 0.7])
    f = RKHSFunction(k, x, alpha)
    A, B = mass * (np.cos(np.outer(omega, x)) @ alpha), mass * (np.sin(np.outer(omega, x)) @ alpha)
    grid = np.linspace(-4, 4, 9)
    assert np.allclose(f(grid), np.cos(np.outer(grid, omega)) @ A + np.sin(np.outer(grid, omega)) @ B)
    assert np.isclose(rkhs_norm(f) ** 2, np.sum((A**2 + B**2) / mass), rtol=1e-12)
    # Three frequencies have six dimensions, so six points know every function of the space.
    X = np.arange(6.0)
    s = interpolate(k, X, np.sin(1.3 * X))
    assert np.isclose(rkhs_norm(s) ** 2, 1 / 2.0, rtol=1e-8)
    assert np.allclose(s(grid), np.sin(1.3 * grid), atol=1e-6)


@pytest.mark.parametrize("k, highest", [(Gaussian(0.8), 7.0), (Matern(2.5, 0.7), 80.0),
                                        (3 * Matern(3.5, 1.0) + Matern(2.5, 1.5), 80.0)], ids=names)
def test_inner_products_are_integrals_over_frequencies(k, highest):
    """thm-fourier-space, part 2: the transforms come from values of f and g alone."""
    x, omega = np.arange(-25, 25, 0.02), np.arange(-highest, highest, 0.05)
    waves = 0.02 * np.exp(-1j * np.outer(omega, x))
    f = RKHSFunction(k, [-1.0, 0.2, 1.5], [1.0, -2.0, 1.5])
    g = RKHSFunction(k, [0.0, 1.1], [0.3, 1.0])
    f_hat, g_hat = waves @ f(x), waves @ g(x)
    kappa_hat = 2 * np.pi * spectral_density(k, omega)
    for a, b, wanted in ((f_hat, f_hat, rkhs_norm(f) ** 2), (f_hat, g_hat, inner(f, g))):
        found = np.sum(a * b.conj() / kappa_hat) * 0.05 / (2 * np.pi)
        assert abs(found - wanted) < 2e-6


def test_the_norm_in_the_plane():
    """thm-fourier-space in dimension two: the factor is (2π)^-2."""
    k, f_grid = Gaussian(0.9), np.arange(-8, 8, 0.1)
    omega = np.arange(-6, 6, 0.1)
    f = RKHSFunction(k, np.array([[0.0, 0.3], [-1.0, 0.5], [0.7, -0.6]]), [1.0, -0.8, 0.5])
    values = f(np.stack(np.meshgrid(f_grid, f_grid, indexing="ij"), axis=-1).reshape(-1, 2))
    waves = 0.1 * np.exp(-1j * np.outer(omega, f_grid))
    f_hat = waves @ values.reshape(160, 160) @ waves.T
    pairs = np.stack(np.meshgrid(omega, omega, indexing="ij"), axis=-1).reshape(-1, 2)
    kappa_hat = (2 * np.pi) ** 2 * spectral_density(k, pairs).reshape(120, 120)
    found = np.sum(np.abs(f_hat) ** 2 / kappa_hat) * 0.01 / (2 * np.pi) ** 2
    assert np.isclose(found, rkhs_norm(f) ** 2, rtol=1e-5)      # cut at ω = 6: e^-14


def test_plancherel_for_a_bump_and_a_top_hat():
    """lem-plancherel: ∫|f̂|² = 2π ∫f², also where f̂ is not integrable."""
    h = 0.01
    omega = np.arange(-4000, 4000, h) + h / 2
    box = 2 * np.sin(omega) / omega                             # of 1 on [-1, 1]
    # The tail of 4 sin²/ω² beyond 4000 is about 4/4000.
    assert abs(np.sum(box**2) * h - 2 * np.pi * 2) < 1.01 * 4 / 4000
    bump = 0.7 * np.sqrt(2 * np.pi) * np.exp(-0.49 * omega**2 / 2)
    assert np.isclose(np.sum(bump**2) * h, 2 * np.pi * 0.7 * np.sqrt(np.pi), rtol=1e-12)


@pytest.mark.parametrize("w", [0.7, 2.0])
def test_band_limited_functions_are_known_by_their_samples(w):
    """prop-paley-wiener: norm² = ∫f²/w = Σ f(wj)², and the samples give f back."""
    f = RKHSFunction(Sinc(w), [-1.0, 0.2, 1.5], [1.0, -2.0, 1.5])
    j = np.arange(-40_000, 40_001)
    samples, t = f(w * j), np.linspace(-3, 3, 13)
    # f falls like 1/x, so what is cut off is about 1/40 000.
    assert abs(np.sum(samples**2) - rkhs_norm(f) ** 2) < 1e-3
    assert abs(np.sum(f(w / 3 * j) ** 2) / 3 - rkhs_norm(f) ** 2) < 1e-3
    assert np.abs(np.sinc(t[:, None] / w - j) @ samples - f(t)).max() < 1e-4
    # Twice the spacing is too wide: waves of the band take each other's place.
    assert abs(2 * np.sum(f(2 * w * j) ** 2) - rkhs_norm(f) ** 2) > 0.05 * rkhs_norm(f) ** 2


def derivatives(k, t, s):
    """κ and its first s derivatives at t, for ν = s - 1/2: a polynomial times e^-z."""
    polynomial = np.polynomial.Polynomial({1: [1.0], 2: [1, 1], 3: [1, 1, 1 / 3]}[s])
    a = k.sigma / np.sqrt(2 * s - 1)
    z, rows = np.abs(t) / a, []
    for order in range(s + 1):
        rows.append(polynomial(z) * np.exp(-z) * (np.sign(t) / a) ** order)
        polynomial = polynomial.deriv() - polynomial
    return np.array(rows)


@pytest.mark.parametrize("k, s", [(Laplace(0.6), 1), (Laplace(2.0), 1), (Matern(1.5, 0.6), 2),
                                  (Matern(2.5, 1.3), 3)], ids=str)
def test_matern_inner_products_are_integrals_of_derivatives(k, s):
    """thm-matern-sobolev, part 2, and eq-sobolev-line for s = 1 and 2."""
    nu, h = s - 0.5, 0.001
    a = k.sigma / np.sqrt(2 * nu)
    C = gamma(s) / gamma(nu) * np.sqrt(4 * np.pi) * a
    prices = comb(s, np.arange(s + 1)) * a ** (2.0 * np.arange(s + 1)) / C
    if s == 1:
        assert np.allclose(prices, [0.5 / k.sigma, k.sigma / 2])
    if s == 2:
        assert np.allclose(prices, np.sqrt(3) / (4 * k.sigma)
                           * np.array([1, 2 * k.sigma**2 / 3, k.sigma**4 / 9]))
    x = np.arange(-40, 40, h) + h / 2
    expansions = ([-1.0, 0.2, 1.5], [1.0, -2.0, 1.5]), ([-0.3, 0.9], [1.0, 0.5])
    f, g = (RKHSFunction(k, *expansion) for expansion in expansions)
    f_x, g_x = (sum(w * derivatives(k, x - c, s) for c, w in zip(*expansion))
                for expansion in expansions)
    assert np.allclose(f_x[0], f(x), atol=1e-12)
    assert abs(h * np.sum(f_x * g_x, axis=1) @ prices - inner(f, g)) < 1e-5
    assert abs(h * np.sum(f_x * f_x, axis=1) @ prices - rkhs_norm(f) ** 2) < 1e-5


@pytest.mark.parametrize("nu, d", [(0.5, 1), (1.5, 3), (0.8, 2)])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
def test_matern_and_sobolev_norms_bound_each_other(nu, d, sigma):
    """thm-matern-sobolev, part 1: eq-sobolev-equivalent, for bumps of several widths."""
    s, a = nu + d / 2, sigma / np.sqrt(2 * nu)
    C = gamma(s) / gamma(nu) * (4 * np.pi * a**2) ** (d / 2)
    k = Matern(nu, sigma)
    assert np.isclose(C, (2 * np.pi) ** d * spectral_density(k, np.zeros((1, d)))[0])
    for tau in (0.2, 1.0, 5.0):
        def integral(price):          # radial, f̂ = e^(-τ²ω²/2), constants left out
            return quad(lambda r: r ** (d - 1) * price(r) * np.exp(-(tau * r) ** 2), 0, 60 / tau)[0]
        sobolev = integral(lambda r: (1 + r**2) ** s)
        matern = integral(lambda r: C / ((2 * np.pi) ** d * spectral_density(
            k, np.r_[r, np.zeros(d - 1)][None])[0]))
        assert min(1, a) ** (2 * s) * sobolev <= matern * (1 + 1e-9)
        assert matern <= max(1, a) ** (2 * s) * sobolev * (1 + 1e-9)


@pytest.mark.parametrize("tau", [0.8, 1.0, 2.0])
def test_the_price_of_a_bump(tau):
    """exm-bump-price: by the integral over frequencies, and by interpolants from below."""
    f_hat = lambda w: tau * np.sqrt(2 * np.pi) * np.exp(-(tau * w) ** 2 / 2)  # noqa: E731
    formulas = {
        Laplace(1.0): np.sqrt(np.pi) / 2 * (tau + 1 / (2 * tau)),
        Matern(1.5, 1.0): np.sqrt(3 * np.pi) / 4 * (tau + 1 / (3 * tau) + 1 / (12 * tau**3)),
        Gaussian(1.0): tau**2 / np.sqrt(2 * tau**2 - 1),
    }
    for k, price in formulas.items():
        integral, _ = quad(lambda w: f_hat(w) ** 2 / spectral_density(k, [w])[0] / (2 * np.pi) ** 2,
                           -30, 30, points=[0.0], limit=200)
        assert np.isclose(integral, price, rtol=1e-7)
        step = 0.6 if isinstance(k, Gaussian) else 0.1
        x = np.arange(-6 * tau - 3, 6 * tau + 3, step)
        found = rkhs_norm(interpolate(k, x, np.exp(-x**2 / (2 * tau**2)))) ** 2
        assert 0.95 * price < found < price + 1e-6


def test_a_narrow_bump_is_not_in_the_gaussian_space():
    """exm-bump-price: for τ <= σ/√2 the norms of interpolants have no bound."""
    norms = []
    for step in (2.0, 1.0, 0.5):
        x = np.arange(-6, 6.1, step)
        norms.append(rkhs_norm(interpolate(Gaussian(1.0), x, np.exp(-x**2 / (2 * 0.4**2)))) ** 2)
    assert norms[1] > 3 * norms[0] and norms[2] > 1000 * norms[1]


def test_gaussian_spaces_are_nested():
    """ex-gaussian-nested: the norm in the narrow space is at most (σ/τ)^(1/2) times."""
    x = np.arange(-14, 15.0, 0.5)
    for weights in ([1.0, -1.5, 1.0], [1.0, 2.0, 3.0]):
        f = RKHSFunction(Gaussian(2.0), [-1.0, 0.5, 2.0], weights)
        narrow = rkhs_norm(interpolate(Gaussian(1.0), x, f(x)))
        assert narrow < np.sqrt(2) * rkhs_norm(f)


# -- strict positive definiteness -----------------------------------------


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6))
def test_the_quadratic_form_is_an_integral_over_frequencies(seed):
    """thm-strict-spectrum: eq-gram-spectrum for the Gaussian kernel in the plane."""
    rng = np.random.default_rng(seed)
    X, a = rng.uniform(-1, 1, size=(5, 2)), rng.normal(size=5)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    omega = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    mass = np.outer(weights, weights).ravel() / (2 * np.pi)
    P = np.exp(1j * omega @ X.T) @ a
    assert np.isclose(mass @ np.abs(P) ** 2, a @ Gaussian(1.0)(X) @ a, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("k", [Gaussian(0.5), Laplace(1.0), Matern(1.5, 0.7), Matern(0.2, 1.0),
                               Matern(4.0, 0.5), Sinc(0.4), BSpline(0.8), BSpline(1.0, degree=1),
                               Gaussian(0.5) + Linear()], ids=names)
@pytest.mark.parametrize("d", [1, 2])
def test_kernels_with_a_ball_of_frequencies_are_strictly_positive_definite(k, d):
    """cor-strict-kernels: at distinct points any values can be interpolated."""
    X = np.stack(np.meshgrid(*[np.arange(3) * 0.5] * d), axis=-1).reshape(-1, d)
    X = X + 0.1 * np.cos(np.arange(X.size)).reshape(X.shape)
    assert is_positive_definite(k(X)).strict
    y = np.sin(5 * np.arange(len(X)))
    assert np.allclose(interpolate(k, X, y)(X), y, atol=1e-6)


def test_isolated_frequencies_are_not_enough():
    """thm-strict-spectrum, what breaks: a cosine, and a periodic kernel on the line."""
    wave = FunctionKernel(lambda s, t: float(np.cos(1.7 * (s - t))))
    for k, X in ((wave, [0.0, 0.3, 1.0]), (JacobiTheta(0.5), [0.0, 1.0, 2 * np.pi])):
        verdict = is_positive_definite(k(X))
        assert verdict and not verdict.strict


# -- corners --------------------------------------------------------------


def test_matern_of_other_kinds_of_numbers():
    """def-matern: ν may be a fraction, a float32 or an int."""
    r = np.linspace(0, 3, 7)
    assert np.array_equal(Matern(Fraction(7, 3), 1.0)([0.0], r), Matern(7 / 3, 1.0)([0.0], r))
    assert np.array_equal(Matern(np.float32(1.75), 1.0)([0.0], r), Matern(1.75, 1.0)([0.0], r))
    assert np.array_equal(Matern(2, 1)([0.0], r), Matern(2.0, 1.0)([0.0], r))


def test_frequencies_that_overflow_are_refused():
    """thm-matern-spectrum: heavy tails with a tiny width."""
    assert np.isfinite(spectral_sample(Matern(0.001, 1.0), 2000, dim=1, rng=0)).all()
    with pytest.raises(ValueError, match="^kernel gave a value that is not finite"):
        spectral_sample(Matern(0.001, 1e-161), 2000, dim=1, rng=0)
    with pytest.raises(ValueError, match="^kernel gave a value that is not finite"):
        spectral_sample(Matern(0.001, 1e-161) ** 2, 2000, dim=1, rng=0)


def test_the_smoothness_of_a_matern_kernel_is_at_most_a_thousand():
    """def-matern: beyond it is Gaussian to the digits that its formula has."""
    assert Matern(1000.0, 1.0).nu == 1000.0
    with pytest.raises(ValueError, match="^nu must be"):
        Matern(1000.5, 1.0)


def test_the_shares_of_a_sum_do_not_depend_on_its_scale():
    """prop-spectral-rules, part 2, for masses that are nearly zero."""
    for c in (1e-310, 1e-200, 1.0, 1e200):
        omega = spectral_sample(c * Gaussian(1.0) + c * Gaussian(1e-6), 2000, dim=1, rng=0)
        # Half of 2000 draws, with a standard deviation of √500.
        assert abs(np.sum(np.abs(omega) < 10) - 1000) < 5 * np.sqrt(500)
