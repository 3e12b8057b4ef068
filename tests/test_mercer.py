"""Identities of the chapter on Mercer's theorem."""

import copy
import math
import pickle
import tracemalloc
from dataclasses import FrozenInstanceError, dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss, legvander
from scipy.integrate import quad
from scipy.special import eval_hermitenorm

from rkhs_lit import (
    Delta,
    Eigensystem,
    FeatureKernel,
    Features,
    FourierKernel,
    FunctionKernel,
    Gaussian,
    JacobiTheta,
    Kernel,
    Laplace,
    Linear,
    Mapped,
    Polynomial,
    RKHSFunction,
    as_points,
    eigensystem,
    fourier_eigensystem,
    gaussian_features,
    hermite_eigensystem,
    inner,
    integral_operator,
    interpolate,
    is_positive_definite,
    norm,
    power_function,
    spectral_inner,
    spectral_norm,
    substrings,
)

seeds = st.integers(0, 10_000)


@dataclass(frozen=True)
class Minimum(Kernel):
    """min(s, t) on the half-line."""

    def _gram(self, X, Y):
        return np.minimum.outer(as_points(X)[:, 0], as_points(Y)[:, 0])

    def diag(self, X):
        return as_points(X)[:, 0]


def random_function(kernel, rng, n=6, span=1.0):
    return RKHSFunction(kernel, rng.uniform(-span, span, n), rng.normal(size=n))


def plain(f):
    """f as a function that does not show that it is an expansion."""
    return lambda x: f(x)


# Integral operator


X40, W40 = leggauss(40)
KERNELS = [Gaussian(0.5), Polynomial(3, 0.5), Gaussian(1.0) + Linear()]


@pytest.mark.parametrize("kernel", KERNELS)
def test_integral_operator_is_the_integral(kernel):
    """:prf:ref:`def-integral-operator`, by adaptive quadrature."""
    s = integral_operator(kernel, X40, W40, np.exp)
    for t in (-1.5, 0.3):
        exact = quad(lambda y: kernel([t], [y])[0, 0] * np.exp(y), -1, 1)[0]
        assert np.isclose(s([t])[0], exact, rtol=1e-10)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_integral_operator_is_the_adjoint_of_the_inclusion(seed):
    """:prf:ref:`prop-integral-operator`: for any rule, <S f, g>_H = ∫ f g dμ,
    T is self-adjoint, positive and bounded by κ² μ(X)."""
    rng = np.random.default_rng(seed)
    kernel = KERNELS[seed % 3]
    x, w = rng.uniform(-1, 1, 12), rng.uniform(0, 1, 12)
    f, h = (dict(zip(x, rng.normal(size=12))) for _ in range(2))
    F, H = (lambda p, d=d: np.array([d[v] for v in p]) for d in (f, h))
    g = random_function(kernel, rng)
    Sf, Sh = (integral_operator(kernel, x, w, u) for u in (F, H))
    size = 1 + norm(Sf) * (norm(g) + norm(Sh))
    assert abs(inner(Sf, g) - w @ (F(x) * g(x))) < 1e-10 * size
    assert abs(w @ (F(x) * Sh(x)) - w @ (Sf(x) * H(x))) < 1e-10 * size
    assert abs(w @ (F(x) * Sf(x)) - norm(Sf) ** 2) < 1e-10 * size
    kappa2, mass = kernel.diag(x).max(), w.sum()
    in_l2 = np.sqrt(w @ F(x) ** 2)
    assert np.sqrt(w @ Sf(x) ** 2) <= kappa2 * mass * in_l2 * (1 + 1e-9)
    assert norm(Sf) <= np.sqrt(kappa2 * mass) * in_l2 * (1 + 1e-7)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_functions_of_the_space_are_continuous_with_the_modulus_of_the_kernel(seed):
    """:eq:`eq-kernel-metric`"""
    rng = np.random.default_rng(seed)
    k = Laplace(0.5)
    g = random_function(k, rng)
    x, y = rng.uniform(-1, 1, (2, 30))
    distance = np.sqrt(k.diag(x) - 2 * np.diag(k(x, y)) + k.diag(y))
    assert (np.abs(g(x) - g(y)) <= norm(g) * distance * (1 + 1e-9) + 1e-12).all()


def test_bessels_inequality_is_an_equation_for_a_basis():
    """:prf:ref:`lem-onb`: Σ <f, u_j>² <= ‖f‖², with equality if none is missing."""
    whole = eigensystem(Laplace(0.5), X40, W40)
    assert len(whole.eigenvalues) == 40
    for f in (np.exp, np.sign):
        squares = np.cumsum(whole.coefficients(f) ** 2)
        total = W40 @ f(X40) ** 2
        assert (squares[:-1] < total).all() and np.isclose(squares[-1], total, rtol=1e-12)


# Eigensystems by quadrature


def check_system(system, r, tol):
    """What :prf:ref:`prop-nystrom` claims for any rule."""
    x, w, lam = system.nodes, system.weights, system.eigenvalues
    assert system.vectors.shape == (len(x), r) and lam.shape == (r,)
    assert (np.diff(lam) <= 0).all() and (lam > 0).all()
    assert np.allclose(system.vectors.T @ system.vectors, np.eye(r), atol=1e-12)
    E = system.functions(x)
    assert np.allclose(np.sqrt(w)[:, None] * E, system.vectors, atol=tol)
    assert np.allclose(E.T @ (w[:, None] * E), np.eye(r), atol=tol)


@pytest.mark.parametrize("rule", ["legendre", "sample", "zero weights"])
def test_nystrom_functions_are_orthonormal_eigenfunctions_in_both_spaces(rule):
    """:prf:ref:`prop-nystrom`; errors are ε λ_1/λ_j, about 1e-11 here."""
    rng = np.random.default_rng(3)
    x, w = X40, W40
    if rule == "sample":
        x, w = rng.uniform(-1, 1, 60), np.full(60, 1 / 30)
    if rule == "zero weights":
        w = np.where(np.arange(40) % 7 == 0, 0.0, W40)
    k = Gaussian(0.5)
    system = eigensystem(k, x, w, 6)
    check_system(system, 6, 1e-8)
    t = np.linspace(-2, 2, 9)
    E, lam = system.functions(x), system.eigenvalues
    assert np.allclose(k(t, x) @ (w[:, None] * E), lam * system.functions(t), atol=1e-9)
    e = [RKHSFunction(k, x, w * E[:, j] / lam[j]) for j in range(6)]
    G = np.array([[np.sqrt(lam[i] * lam[j]) * inner(e[i], e[j]) for i in range(6)]
                  for j in range(6)])
    assert np.allclose(G, np.eye(6), atol=1e-8)


def test_nystrom_agrees_with_the_closed_form_of_min():
    """Exercise on min(s, t): λ_j = 1/((j - 1/2)² π²), e_j = √2 sin((j - 1/2) π t).
    The kink limits the rule to O(n⁻²)."""
    x, w = leggauss(300)
    system = eigensystem(Minimum(), (x + 1) / 2, w / 2, 5)
    j, t = np.arange(1, 6) - 0.5, np.linspace(0, 1, 21)
    assert np.allclose(system.eigenvalues, 1 / (j * np.pi) ** 2, atol=3e-6)
    wanted = np.sqrt(2) * np.sin(np.pi * np.outer(t, j))
    assert np.allclose(np.abs(system.functions(t)), np.abs(wanted), atol=1e-3)
    whole = eigensystem(Minimum(), (x + 1) / 2, w / 2)
    assert np.isclose(whole.eigenvalues.sum(), 0.5, rtol=1e-12)


def test_eigenvalues_do_not_depend_on_the_weights_of_the_remainder():
    """:eq:`eq-nystrom-power`: with all eigenvalues, k(t, t) - Σ λ e² is the
    squared power function, for any positive weights."""
    rng = np.random.default_rng(0)
    x, t = np.linspace(-1, 1, 7), np.linspace(-2, 2, 21)
    k = Laplace(0.8)
    for w in (np.ones(7), rng.uniform(0.1, 2, 7)):
        rest = k.diag(t) - np.sum(eigensystem(k, x, w).features(t) ** 2, axis=1)
        assert np.allclose(rest, power_function(k, x, t) ** 2, atol=1e-12)


def test_trace_and_hilbert_schmidt_identities():
    """:prf:ref:`prop-truncation`, for a smooth, a finite-rank and a rough kernel."""
    for k in (Gaussian(0.5), Polynomial(3), Laplace(1.0)):
        lam = eigensystem(k, X40, W40).eigenvalues
        assert abs(lam.sum() - W40 @ k.diag(X40)) < 1e-12 * lam.sum()
        assert abs(np.sum(lam**2) - W40 @ k(X40) ** 2 @ W40) < 1e-12 * lam.sum() ** 2
    # ∫ (xy + 1)³ over the diagonal of [-1, 1] in exact numbers: Σ C(3, m) 2/(2m + 1).
    exact = sum(Fraction(2 * math.comb(3, m), 2 * m + 1) for m in range(4))
    assert abs(eigensystem(Polynomial(3), X40, W40).eigenvalues.sum() - exact) < 1e-12


def test_mercer_series_converges_uniformly_not_below_the_tail():
    """:prf:ref:`thm-mercer` and :prf:ref:`prop-truncation`: the error is
    largest on the diagonal, falls, and is at least the mean tail."""
    k, t = Gaussian(0.5), np.linspace(-1, 1, 81)
    system = eigensystem(k, X40, W40)
    Phi, lam = system.features(t), system.eigenvalues
    previous = np.inf
    for n in range(1, 12):
        R = k(t) - Phi[:, :n] @ Phi[:, :n].T
        error = np.abs(R).max()
        assert np.isclose(error, R.diagonal().max(), atol=1e-12)
        assert lam[n:].sum() / 2 <= error <= previous
        assert R.diagonal().min() > -1e-12
        previous = error
    assert error < 1e-6


def test_mercer_features_have_the_kernel_as_inner_product():
    """:prf:ref:`thm-mercer`: the Mercer feature map."""
    t = np.linspace(-1, 1, 31)
    for system in (eigensystem(Gaussian(0.7), X40, W40), hermite_eigensystem(0.7, 0.5, 60),
                   fourier_eigensystem(JacobiTheta(0.4), 30)):
        Phi = system.features(t)
        assert np.allclose(Phi @ Phi.T, system.kernel(t), atol=1e-8)
        assert np.allclose(np.sum(Phi**2, axis=1), system.kernel.diag(t), atol=1e-8)


def test_truncation_error_on_the_circle_equals_the_tail():
    """:prf:ref:`prop-truncation`: after complete pairs of waves."""
    k = JacobiTheta(0.5)
    system = fourier_eigensystem(k, 40)
    x = np.linspace(-3, 3, 50)
    for n in (1, 5, 11):
        Phi = system.features(x)[:, :n]
        error = np.abs(k(x) - Phi @ Phi.T).max()
        assert abs(error - system.eigenvalues[n:].sum()) < 1e-13


MEASURES = {"uniform": np.ones(40), "right": 4 * np.exp(3 * X40), "tiny": 1e-6 * (1.1 + X40)}


@pytest.mark.parametrize("name", MEASURES)
def test_norms_do_not_depend_on_the_measure(name):
    """:prf:ref:`cor-measure-free` and :prf:ref:`thm-mercer`: norms and inner
    products from coefficients agree with those of expansions."""
    rng = np.random.default_rng(5)
    k = Gaussian(0.5)
    system = eigensystem(k, X40, W40 * MEASURES[name])
    for _ in range(5):
        f, g = random_function(k, rng), random_function(k, rng)
        for wrap in (lambda h: h, plain):
            a, b = (system.coefficients(wrap(h)) for h in (f, g))
            lam = system.eigenvalues
            assert abs(spectral_inner(a, b, lam) - inner(f, g)) < 1e-8
            assert abs(spectral_norm(a, lam) ** 2 - norm(f) ** 2) < 1e-8


def test_root_of_the_operator_is_an_isometry():
    """:prf:ref:`thm-root-isometry`"""
    rng = np.random.default_rng(2)
    k = Gaussian(0.5)
    system = eigensystem(k, X40, W40, 10)
    lam, E = system.eigenvalues, system.vectors / np.sqrt(W40)[:, None]
    c = rng.normal(size=10)
    root = RKHSFunction(k, X40, W40 * (E @ (c / np.sqrt(lam))))
    assert np.allclose(root(X40), E @ (np.sqrt(lam) * c), atol=1e-9)
    assert np.isclose(norm(root), np.sqrt(W40 @ (E @ c) ** 2), rtol=1e-8)
    assert np.isclose(norm(root), np.linalg.norm(c), rtol=1e-8)
    twice = E @ (np.sqrt(lam) * system.coefficients(root))
    assert np.allclose(twice, integral_operator(k, X40, W40, lambda x: E @ c)(X40), atol=1e-9)
    # A function orthogonal to all e_j is sent to zero.
    few = eigensystem(Polynomial(1), X40, W40)
    sixth = plain(lambda x: legvander(np.asarray(x), 6)[:, 6])
    assert np.allclose(few.coefficients(sixth), 0, atol=1e-13)
    assert np.allclose(integral_operator(Polynomial(1), X40, W40, sixth)([0.3]), 0, atol=1e-13)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_four_conditions_hold_together(seed):
    """:prf:ref:`thm-four-conditions`: K1 a Gram matrix, K2 the operator, K3
    the series and K4 the reproducing property, for a kernel; and K1 and K2
    fail together for a function that is none."""
    rng = np.random.default_rng(seed)
    k = [Gaussian(0.6), Laplace(0.9), Polynomial(2)][seed % 3]
    x, w, a = rng.uniform(-1, 1, 8), rng.uniform(0.1, 1, 8), rng.normal(size=8)
    assert is_positive_definite(k(x))
    assert (w * a) @ k(x) @ (w * a) >= -1e-12
    system = eigensystem(k, x, w)
    Phi = system.features(x)
    assert np.allclose(Phi @ Phi.T, k(x), atol=1e-7)
    f = RKHSFunction(k, x, a)
    at = RKHSFunction(k, x[:1], [1.0])
    assert np.isclose(inner(f, at), f(x[:1])[0])

    sign = FunctionKernel(lambda s, t: float(np.cos(s - t) - 0.9))
    grid, mass = leggauss(12)
    assert not is_positive_definite(sign(grid * 3))
    assert mass @ sign(grid * 3) @ mass < 0
    with pytest.raises(ValueError, match="positive definite"):
        eigensystem(sign, grid * 3, mass)


def test_positive_operator_gives_positive_gram_matrices_by_spreading():
    """:prf:ref:`thm-four-conditions`, K2 implies K1: means over short
    intervals tend to the Gram form, with an error of the order of r."""
    points, a = np.array([0.2, 0.5, 0.9]), np.array([1.0, -2.0, 1.5])
    gram = a @ Minimum()(points) @ a
    u, w = leggauss(40)
    for r in (0.1, 0.01, 0.001):
        balls = points[:, None] + r * u
        spread = a @ np.array([[w @ Minimum()(p, q) @ w / 4 for q in balls] for p in balls]) @ a
        # On the diagonal the mean of min(s, t) over a ball is p - r/3; the
        # rule integrates the kink with an error of r/n².
        assert abs(spread - (gram - r / 3 * (a @ a))) < 2 * r / 40**2 * (a @ a)
        assert spread >= 0


def test_without_full_support_k2_does_not_imply_k1():
    """-xy has the operator 0 for a mass at 0, and is no kernel."""
    assert not is_positive_definite(-np.outer([0.0, 1.0], [0.0, 1.0]))
    with pytest.raises(ValueError, match="zero at all nodes"):
        eigensystem(FunctionKernel(lambda s, t: float(-s * t)), [0.0], [1.0])


@pytest.mark.parametrize("n", [3, 6, 40])
@pytest.mark.parametrize("kind", ["legendre", "sample"])
def test_eigenvalue_errors_are_bounded_by_the_rule(n, kind):
    """:prf:ref:`thm-eigenvalue-error`; E is a root, so rounding enters as √ε."""
    k = Gaussian(0.5)
    fine, v = leggauss(80)
    exact = eigensystem(k, fine, v, 12).eigenvalues
    x, w = leggauss(n) if kind == "legendre" else (
        np.random.default_rng(n).uniform(-1, 1, n), np.full(n, 2 / n))
    both, signed = np.append(fine, x), np.append(v, -w)
    bound = np.sqrt(max(signed @ k(both) ** 2 @ signed, 0.0))
    found = np.zeros(12)
    lam = eigensystem(k, x, w).eigenvalues[:12]
    found[:len(lam)] = lam
    assert np.abs(found - exact).max() <= bound + 1e-7
    if n == 3:
        assert bound < 1.0


def test_iterative_solvers_agree_with_the_dense_one():
    """:prf:ref:`prop-nystrom`: Lanczos iterations with a stored matrix (more
    than 1000 nodes) and with products in tiles (more than 4000) give the same
    functions as all eigenvectors."""
    t, k, r = np.linspace(-1, 1, 11), Gaussian(0.6), 5
    reference = eigensystem(k, *leggauss(60), r)
    for n in (1200, 4001):
        x = np.linspace(-1, 1, n)  # symmetric: odd functions must be found too
        w = np.full(n, 2 / (n - 1))
        w[[0, -1]] /= 2
        tracemalloc.start()
        few = eigensystem(k, x, w, r)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 64e6             # with 4001 nodes the matrix takes 128 MB
        # The trapezoidal rule errs by a multiple of h².
        assert np.allclose(few.eigenvalues, reference.eigenvalues, rtol=0, atol=4 / n**2)
        assert np.allclose(few.functions(t), reference.functions(t), atol=100 / n**2)
        U = few.vectors
        assert np.allclose(U.T @ U, np.eye(r), atol=1e-10)
        v = integral_operator(k, x, w, lambda x: U[:, -1] / np.sqrt(w))(x)
        assert np.abs(v * np.sqrt(w) - few.eigenvalues[-1] * U[:, -1]).max() < 1e-10
    with pytest.raises(ValueError, match="n_components"):
        eigensystem(Polynomial(3), np.linspace(-1, 1, 1200), np.full(1200, 1.0), 10)


@dataclass(frozen=True)
class Indefinite(Kernel):
    """Gaussian minus 3 x y."""

    def _gram(self, X, Y):
        x, y = as_points(X)[:, 0], as_points(Y)[:, 0]
        return np.exp(-(np.subtract.outer(x, y) ** 2) / 2) - 3 * np.outer(x, y)

    def diag(self, X):
        return 1 - 3 * as_points(X)[:, 0] ** 2


@pytest.mark.parametrize("end", [1.0, -1.0])
def test_the_sign_is_that_of_the_last_large_entry(end):
    """prop-nystrom: eigenvectors have a sign each, and small values at the end do not choose it;
    here for u(s) u(t) with one eigenfunction, large at zero and with another sign at one."""
    x, w = leggauss(40)
    x, w = (x + 1) / 2, w / 2
    system = eigensystem(FeatureKernel(lambda s: {"u": end * (1 - 1.2 * s**2)}), x, w)
    f = system.functions([0.0, 1.0])[:, 0]
    assert len(system.eigenvalues) == 1 and f[0] > 0 > f[1]


@pytest.mark.parametrize("n", [400, 1001, 4001], ids=["all", "Lanczos", "tiles"])
def test_every_solver_reports_a_negative_eigenvalue(n):
    """:prf:ref:`thm-four-conditions`: all eigenvectors, Lanczos, tiles. Without the term that
    makes one negative the two largest are found."""
    x, w = np.linspace(-1, 1, n), np.full(n, 2 / n)
    with pytest.raises(ValueError, match="kernel must be positive definite.*-1"):
        eigensystem(Indefinite(), x, w, 2)
    one, two = eigensystem(Gaussian(1.0), x, w, 2).eigenvalues
    assert one > two > 0 and one + two < w.sum()


@pytest.mark.parametrize("k", [Laplace(0.5), Gaussian(0.7)], ids=str)
def test_the_operator_is_the_sum_over_its_eigenfunctions(k):
    """:prf:ref:`thm-spectral`: T f = Σ λ_j <f, e_j> e_j, and T f = 0 exactly
    where f is orthogonal to all e_j."""
    system = eigensystem(k, X40, W40)
    lam, E = system.eigenvalues, system.functions(X40)
    for f in (np.exp, np.abs):
        a = system.coefficients(f)
        once = integral_operator(k, X40, W40, f)(X40)
        # Eigenvalues left out are below 40 ε λ_1.
        assert np.allclose(E @ (lam * a), once, atol=1e-12)
    one = eigensystem(Linear(), X40, W40)
    assert abs(one.coefficients(np.cos)[0]) < 1e-14              # even, against x
    assert np.abs(integral_operator(Linear(), X40, W40, np.cos)(X40)).max() < 1e-14
    assert np.abs(integral_operator(Linear(), X40, W40, np.sin)(X40)).max() > 0.1


def test_eigensystems_of_kernels_on_strings():
    """:prf:ref:`prop-nystrom` asks nothing of the points."""
    texts = ["banana", "ananas", "bandana", "cabana"]
    k = FeatureKernel(substrings(2))
    system = eigensystem(k, texts, [0.25] * 4)
    Phi = system.features(texts)
    assert np.allclose(Phi @ Phi.T, k(texts))
    assert system.functions(["nab", "zzz"]).shape == (2, len(system.eigenvalues))


def test_signs_put_the_last_large_value_first():
    """:prf:ref:`prop-nystrom`: the same functions whatever LAPACK's signs are."""
    system = eigensystem(Gaussian(0.5), X40, W40, 6)
    last = [column[np.abs(column) >= 0.5 * np.abs(column).max()][-1] for column in system.vectors.T]
    assert min(last) > 0


# Hermite


SHAPES = [(1.0, 0.3), (1.0, 1.0), (0.5, 1.0), (0.3, 1.2), (2.0, 0.2)]


@pytest.mark.parametrize("sigma, width", SHAPES)
def test_hermite_closed_form_agrees_with_quadrature(sigma, width):
    """:prf:ref:`thm-hermite` to 1e-8, on eigenvalues above 1e-6: the
    functions by quadrature carry errors of ε/λ_j."""
    x = np.linspace(-9 * width, 9 * width, 401)
    density = np.exp(-((x / width) ** 2) / 2)
    closed = hermite_eigensystem(sigma, width, 80 if width >= 0.3 * sigma else 20)
    r = int(np.sum(closed.eigenvalues > 1e-6))
    found = eigensystem(Gaussian(sigma), x, density / density.sum(), r)
    t = np.linspace(-2, 2, 33) * width
    assert np.allclose(found.eigenvalues, closed.eigenvalues[:r], rtol=0, atol=1e-12)
    assert np.allclose(found.functions(t), closed.functions(t)[:, :r], rtol=0, atol=1e-8)


@pytest.mark.parametrize("n", [40, 60])
def test_hermite_closed_form_agrees_with_gauss_hermite_nodes(n):
    """:prf:ref:`thm-hermite`"""
    x, w = hermegauss(n)
    found = eigensystem(Gaussian(1.5), x, w / w.sum(), 8)
    closed = hermite_eigensystem(1.5, 1.0, 8)
    t = np.linspace(-2, 2, 21)
    assert np.allclose(found.eigenvalues, closed.eigenvalues, rtol=0, atol=1e-12)
    assert np.allclose(found.functions(t), closed.functions(t), atol=1e-8)


@pytest.mark.parametrize("sigma, width", SHAPES)
def test_hermite_functions_match_their_formula_and_are_orthonormal(sigma, width):
    """:eq:`eq-hermite`, with SciPy's Hermite polynomials."""
    system = hermite_eigensystem(sigma, width, 12)
    omega = np.sqrt(1 + 4 * width**2 / sigma**2)
    B = (omega - 1) / (omega + 1)
    t = np.linspace(-3, 3, 13) * width
    for j in range(12):
        wanted = omega**0.25 * np.exp(-(omega - 1) * (t / width) ** 2 / 4) * eval_hermitenorm(
            j, np.sqrt(omega) * t / width) / math.sqrt(math.factorial(j))
        assert np.allclose(system.functions(t)[:, j], wanted, rtol=1e-10, atol=1e-12)
        assert np.isclose(system.eigenvalues[j], (1 - B) * B**j, rtol=1e-9, atol=0)
    E = system.functions(system.nodes)
    assert np.allclose(E.T @ (system.weights[:, None] * E), np.eye(12), atol=1e-12)
    check_system(system, 12, 1e-12)


def test_hermite_eigenfunctions_satisfy_the_integral_equation():
    """:prf:ref:`thm-hermite`, by adaptive quadrature."""
    system = hermite_eigensystem(0.8, 1.3, 5)
    for j in range(5):
        for x in (0.0, 1.1):
            integral = quad(lambda y: np.exp(-((x - y) ** 2) / (2 * 0.64)) * system.functions(
                [y])[0, j] * np.exp(-(y**2) / (2 * 1.69)) / np.sqrt(2 * np.pi * 1.69), -15, 15)[0]
            assert abs(integral - system.eigenvalues[j] * system.functions([x])[0, j]) < 1e-9


def test_eigenvalues_are_geometric_and_golden_for_equal_widths():
    """:prf:ref:`thm-hermite`: they sum to one, with a constant ratio."""
    lam = hermite_eigensystem(2.0, 2.0, 60).eigenvalues
    golden = (1 + math.sqrt(5)) / 2
    assert abs(lam.sum() - 1) < 1e-14
    assert np.allclose(lam[1:] / lam[:-1], 1 / golden**2, rtol=1e-12)
    assert abs(lam[0] - 1 / golden) < 1e-15
    for ratio in (1e-6, 1e-3, 0.1, 30.0):  # no cancellation in ω - 1
        first = hermite_eigensystem(1.0, ratio, 2).eigenvalues
        if ratio <= 1e-3:
            assert abs(first[1] / ratio**2 - 1) < 10 * ratio**2 + 1e-14


def test_mehlers_formula_in_two_ways():
    """:prf:ref:`lem-mehler`"""
    u, v, rho = 1.3, -0.4, 0.55
    series = sum(rho**j / math.factorial(j) * eval_hermitenorm(j, u) * eval_hermitenorm(j, v)
                 for j in range(100))
    closed = math.exp((2 * rho * u * v - rho**2 * (u * u + v * v)) / (2 * (1 - rho**2)))
    assert abs(series - closed / math.sqrt(1 - rho**2)) < 1e-12


def test_hermite_functions_far_out_and_of_high_order():
    """The recursion neither overflows nor underflows: features at a point
    where the first is below the smallest float add up to k(x, x) = 1."""
    system = hermite_eigensystem(1.0, 4.0, 600)
    x = np.array([60.0, -60.0, 0.0])
    assert np.isfinite(system.functions(x)).all()
    # Eigenvalues down to 1e-300; in the last case squares of values overflow.
    for width, r in ((0.2, 200), (1e-3, 50), (math.sqrt(15) / 2, 1384)):
        narrow = hermite_eigensystem(1.0, width, r)
        assert np.allclose(narrow.vectors.T @ narrow.vectors, np.eye(r), atol=1e-10)
        assert np.isfinite(narrow.weights).all()
    Phi = system.features(np.array([0.0, 10.0, -14.0]))
    assert np.allclose(np.sum(Phi**2, axis=1), 1, atol=1e-10)
    big = hermite_eigensystem(0.1, 1.0, 1700).features([13.0])
    assert big[0, 0] == 0 and abs(np.sum(big**2) - 1) < 1e-9


def test_hermite_functions_refuse_points_where_the_recursion_overflows():
    """The last points allowed give zeros, and no warning."""
    for sigma, width in ((1.0, 1.0), (1.0, 1e-3), (1e-3, 1.0)):
        system = hermite_eigensystem(sigma, width, 40)
        edge = 1e100 * width / np.hypot(1.0, 2 * width / sigma) ** 0.5
        with np.errstate(all="raise", under="ignore"):
            assert not system.functions([0.99 * edge, -0.99 * edge]).any()
            for far in (1.01 * edge, -1e200, 1.7e308):
                with pytest.raises(ValueError, match="T is too far from zero"):
                    system.functions([0.0, far])


@pytest.mark.parametrize("sigma", [0.05, 1.0])
def test_hermite_rule_is_exact_for_products_of_eigenfunctions(sigma):
    """:prf:ref:`thm-hermite`: all i + j < 2(r + 64), for r = 1; the weights
    are 1 / Σ e_j(x_i)². Not for polynomials: the variance is missed."""
    system = hermite_eigensystem(sigma, 1.0, 1)
    E = hermite_eigensystem(sigma, 1.0, 130).functions(system.nodes)
    G = E.T @ (system.weights[:, None] * E)
    i, j = np.indices(G.shape)
    exact = i + j < 2 * 65
    assert len(system.nodes) == 65 and np.allclose(G[exact], (i == j)[exact], atol=1e-10)
    assert abs(G[65, 65] - 1) > 0.1
    assert np.allclose(1 / np.sum(E[:, :65] ** 2, axis=1), system.weights, rtol=1e-8)
    if sigma < 0.1:
        assert np.abs(system.nodes).max() < 3
        assert abs(system.weights @ system.nodes**2 - 1) > 1e-3


def test_the_rule_of_a_short_hermite_system_still_resolves_a_bump():
    """:prf:ref:`thm-hermite`: a_j by the rule and as λ_j e_j(x_0)."""
    f = RKHSFunction(Gaussian(1.0), [0.8], [1.0])
    system = hermite_eigensystem(1.0, 1.0, 4)
    exact = system.eigenvalues * system.functions([0.8])[0]
    assert np.allclose(system.coefficients(f), exact, rtol=1e-14)
    assert np.allclose(system.coefficients(plain(f)), exact, atol=1e-14)


def test_two_dimensions_are_products():
    """:prf:ref:`thm-hermite` in the plane."""
    x, w = hermegauss(24)
    w = w / w.sum()
    grid = np.array([(p, q) for p in x for q in x])
    mass = np.array([p * q for p in w for q in w])
    found = eigensystem(Gaussian(1.0), grid, mass, 6).eigenvalues
    lam = hermite_eigensystem(1.0, 1.0, 6).eigenvalues
    assert np.allclose(found, np.sort(np.outer(lam, lam).ravel())[::-1][:6], atol=1e-8)


@pytest.mark.parametrize("width", [0.5, 1.0, 3.0])
def test_the_two_inner_products_of_two_bumps(width):
    """exp(-2) in the RKHS, by the expansion and by Hermite coefficients for
    every width; √π/e in L2(R)."""
    k = Gaussian(1.0)
    f, g = (RKHSFunction(k, [c], [1.0]) for c in (1.0, -1.0))
    assert abs(inner(f, g) - math.exp(-2)) < 1e-15
    in_l2 = quad(lambda x: (f([x]) * g([x]))[0], -10, 10)[0]
    assert abs(in_l2 - math.sqrt(math.pi) / math.e) < 1e-10
    system = hermite_eigensystem(1.0, width, 60)
    kept = system.eigenvalues > 1e-16
    exact = system.coefficients(f), system.coefficients(g)
    by_rule = system.coefficients(plain(f)), system.coefficients(plain(g))
    for a, b in (exact, by_rule):
        found = spectral_inner(a[kept], b[kept], system.eigenvalues[kept])
        assert abs(found - math.exp(-2)) < (1e-8 if width < 3 else 1e-5)
    density = quad(lambda x: (f([x]) * g([x]))[0] * math.exp(-((x / width) ** 2) / 2), -9, 9)[0]
    assert abs(exact[0] @ exact[1] - density / (math.sqrt(2 * math.pi) * width)) < 1e-10


# What is in the space, and what is not


def test_constants_have_a_divergent_norm_in_the_gaussian_space():
    """:prf:ref:`prop-no-constants`, in exact arithmetic."""

    def b(m):
        return Fraction(math.comb(2 * m, m), 4**m)

    for M in (0, 1, 7, 60):
        assert sum(b(m) for m in range(M + 1)) == (2 * M + 1) * b(M)
    # c_{2m}² from the power series of exp(x²/2), σ = 1.
    for m in range(20):
        assert Fraction(math.factorial(2 * m), (2**m * math.factorial(m)) ** 2) == b(m)
    assert (2 * 10**4 + 1) * math.exp(math.lgamma(2e4 + 1) - 2 * math.lgamma(1e4 + 1)
                                      - 2e4 * math.log(2)) > 100


def test_power_series_coefficients_have_the_norm_of_an_expansion():
    """:eq:`eq-gaussian-power` with the features of the Gaussian kernel."""
    rng = np.random.default_rng(0)
    f = random_function(Gaussian(0.8), rng)
    c = gaussian_features(f.points, 0.8, 60).T @ f.weights
    assert np.isclose(c @ c, norm(f) ** 2)


@pytest.mark.parametrize("sigma", [0.7, 1.0])
def test_interpolants_of_a_constant_grow_without_bound(sigma):
    """:prf:ref:`thm-interpolant`: at least n/θ on a grid with spacing one."""
    theta = np.sum(np.exp(-(np.arange(-30.0, 31) ** 2) / (2 * sigma**2)))
    squares = []
    for n in (5, 50, 200):
        s = interpolate(Gaussian(sigma), np.arange(n), np.ones(n))
        squares.append(norm(s) ** 2)
        assert squares[-1] >= n / theta
    assert squares[2] > 3.5 * squares[1] > 20 * squares[0]


def test_gaussian_space_is_dense_in_continuous_functions():
    """:prf:ref:`prop-universal`: |x| on [-1, 1], which is not in the space,
    to within 0.06 and then 0.006, by exp(-x²/2) times polynomials."""
    x = np.linspace(-1, 1, 2001)
    nodes = np.cos(np.pi * (np.arange(400) + 0.5) / 400)
    errors = []
    for degree in (10, 120):
        fit = np.polynomial.chebyshev.Chebyshev.fit(
            nodes, np.abs(nodes) * np.exp(nodes**2 / 2), degree)
        errors.append(np.abs(np.exp(-(x**2) / 2) * fit(x) - np.abs(x)).max())
    assert errors[0] < 0.06 and errors[1] < 0.006
    # On the line all functions of the space tend to zero.
    f = random_function(Gaussian(1.0), np.random.default_rng(0))
    assert np.abs(f([-60.0, 60.0])).max() < 1e-200


def test_a_discontinuous_kernel_loses_uniform_convergence():
    """Cells (1/(j+1), 1/j]: the eigenvalues 1/(j(j+1)) sum to one, and the
    error of every truncation is one."""
    k = Mapped(Delta(), lambda X: np.floor(1 / np.asarray(X)))
    edges = 1 / np.arange(1, 102.0)
    middles, lengths = (edges[:-1] + edges[1:]) / 2, -np.diff(edges)
    system = eigensystem(k, middles, lengths)
    j = np.arange(1, 101)
    assert np.allclose(system.eigenvalues, 1 / (j * (j + 1)))
    squares = system.features(middles) ** 2
    for n in (1, 10, 99):
        error = 1 - squares[:, :n].sum(axis=1)
        assert np.isclose(error.max(), 1) and np.isclose(lengths @ error, system.eigenvalues[n:].sum())


def test_a_measure_without_full_support_gives_another_kernel():
    """:prf:ref:`thm-mercer` needs the support: on [0, 1/2] the series of
    min(s, t) is min(s, t, 1/2); the rule is good to O(n⁻¹) at the end."""
    x, w = leggauss(200)
    Phi = eigensystem(Minimum(), (x + 1) / 4, w / 4).features([0.1, 0.5, 0.75, 1.0])
    t = np.array([0.1, 0.5, 0.75, 1.0])
    assert np.allclose(Phi @ Phi.T, np.minimum(np.minimum.outer(t, t), 0.5), atol=1e-3)


def test_rounding_hides_a_bump_far_from_the_nodes():
    """The Gaussian kernel on [0, 1/2] knows k(2, 2) in exact arithmetic only:
    coefficients give too small a norm, `norm` does not."""
    x, w = leggauss(200)
    system = eigensystem(Gaussian(0.5), (x + 1) / 4, w / 4)
    missing = 1 - np.sum(system.features([0.5, 1.0, 2.0]) ** 2, axis=1)
    assert np.allclose(missing, [0, 0.0015, 0.91], atol=2e-3)
    f = RKHSFunction(Gaussian(0.5), [2.0], [1.0])
    found = spectral_norm(system.coefficients(f), system.eigenvalues)
    assert found < 0.4 and np.isclose(norm(f), 1)


def test_on_the_line_convergence_is_not_uniform():
    """:prf:ref:`thm-mercer` needs compactness."""
    for n in (5, 80):
        squares = np.sum(hermite_eigensystem(1.0, 1.0, n).features([100.0]) ** 2)
        assert squares < 1e-12


# Records and corners


def test_an_eigensystem_is_a_frozen_record_that_prints_short():
    """:prf:ref:`thm-mercer`"""
    system = fourier_eigensystem(FourierKernel([1.0, 0.25, 0.5]), 5)
    assert isinstance(system, Eigensystem) and len(repr(system)) < 120
    assert np.array_equal(system.eigenvalues, [1, 0.5, 0.5, 0.25, 0.25])
    check_system(system, 5, 1e-12)
    assert np.allclose(system.functions([0.3])[0, 1:3], np.sqrt(2) * np.array(
        [np.cos(0.6), np.sin(0.6)]))
    with pytest.raises(FrozenInstanceError):
        system.kernel = Linear()


@pytest.mark.parametrize("system", [
    lambda: eigensystem(Laplace(0.5), X40, W40), lambda: hermite_eigensystem(1.0, 0.7, 8),
    lambda: fourier_eigensystem(JacobiTheta(0.6), 5),
    lambda: eigensystem(FeatureKernel(substrings(2)), ["banana", "ananas", "cabana"], [0.2, 0.5, 0.3]),
], ids=["quadrature", "Hermite", "Fourier", "strings"])
def test_eigensystems_are_pickled_and_copied_read_only(system):
    """:prf:ref:`thm-mercer`: the copy has the same functions, and is as frozen."""
    system = system()
    for twin in (system, pickle.loads(pickle.dumps(system)), copy.copy(system), copy.deepcopy(system)):
        assert np.array_equal(twin.functions(twin.nodes), system.functions(system.nodes))
        for array in (twin.weights, twin.eigenvalues, twin.vectors):
            assert not array.flags.writeable
        assert twin.kernel == system.kernel


def test_nodes_that_were_checked_before_are_not_looked_at_again():
    """:prf:ref:`prop-nystrom`, on a feature map that exists already."""
    seen, texts = [], ["banana", "ananas", "cabana"]
    k = FeatureKernel(lambda text: seen.append(text) or substrings(2)(text))
    Phi = Features(k, texts)
    system = eigensystem(k, Phi, [0.2, 0.5, 0.3])
    assert seen == texts
    assert np.array_equal(system.functions(Phi), system.functions(texts))
    assert integral_operator(k, Phi, [0.2, 0.5, 0.3], lambda t: [1.0] * 3).features.seen is Phi.seen


def test_coefficients_of_an_expansion_with_another_kernel_use_the_rule():
    """The shortcut λ_j Σ w_i e_j(x_i) is for the system's kernel only."""
    f = RKHSFunction(Gaussian(0.9), [0.2], [1.0])
    system = eigensystem(Gaussian(0.5), X40, W40, 6)
    assert np.allclose(system.coefficients(f), system.coefficients(plain(f)), atol=1e-14)
    g = RKHSFunction(Gaussian(0.5), [0.2], [1.0])
    assert np.allclose(system.coefficients(g), system.coefficients(plain(g)), atol=1e-13)


@pytest.mark.parametrize("wrong, right, name", [
    (lambda: fourier_eigensystem(Gaussian(1.0), 3), lambda: fourier_eigensystem(JacobiTheta(1.0), 3),
     "kernel must be a FourierKernel"),
    (lambda: fourier_eigensystem(FourierKernel([0.0, 0.0, 1.0]), 1),
     lambda: fourier_eigensystem(FourierKernel([0.0, 0.0, 1.0]), 2), "no positive coeff"),
    (lambda: eigensystem(Linear(), X40, 0 * W40), lambda: eigensystem(Linear(), X40, W40),
     "weights must be nonneg"),
    (lambda: eigensystem(Linear(), X40, W40, 2), lambda: eigensystem(Linear(), X40, W40, 1),
     "n_components must be at most 1"),
    (lambda: eigensystem(Gaussian(1.0), X40, W40, 40), lambda: eigensystem(Laplace(1.0), X40, W40, 40),
     "n_components must be at most"),
    (lambda: Eigensystem(Linear(), X40, W40, [1.0, 0.0], np.ones((40, 2)), np.sin),
     lambda: Eigensystem(Linear(), X40, W40, [1.0, 0.5], np.ones((40, 2)), np.sin), "eigenvalues"),
    (lambda: Eigensystem(Linear(), X40, W40, [1.0], np.ones((40, 2)), np.sin),
     lambda: Eigensystem(Linear(), X40, W40, [1.0], np.ones((40, 1)), np.sin), "vectors"),
    (lambda: hermite_eigensystem(1.0, 0.1, 900), lambda: hermite_eigensystem(1.0, 0.1, 60),
     "n_components must be smaller"),
])
def test_what_the_theorems_ask_for_is_checked(wrong, right, name):
    """:prf:ref:`thm-fourier-rkhs`, :prf:ref:`prop-nystrom`, :prf:ref:`thm-hermite`: as many
    eigenvalues as the rank, all positive, and no smaller than the smallest float."""
    with pytest.raises(ValueError, match=name):
        wrong()
    assert (right().eigenvalues > 0).all()


def test_functions_far_from_zero_are_no_floats():
    """:prf:ref:`thm-hermite`: polynomials times exp(c t²), which overflows for 1e200; ten widths
    away they do not."""
    system = hermite_eigensystem(1.0, 1.0, 5)
    with pytest.raises(ValueError, match="T is too far from zero"):
        system.functions([1e200])
    assert np.isfinite(system.functions([10.0])).all()


def test_hermite_functions_are_known_up_to_a_point_far_out():
    """thm-hermite: of the size 1e100 in units of the functions, where they are 0."""
    system = hermite_eigensystem(1.0, 1.0, 3)
    last = 1e100 * 1.0 / np.sqrt(np.hypot(1.0, 2.0))
    assert not system.functions([last, -last]).any()
    with pytest.raises(ValueError, match="^T is too far from zero"):
        system.functions([0.0, -np.nextafter(last, np.inf)])


def test_one_component_is_the_least_that_can_be_asked_for():
    """prop-nystrom: the first of all."""
    k, (x, w) = Gaussian(0.7), leggauss(20)
    assert np.allclose(eigensystem(k, x, w, 1).eigenvalues, eigensystem(k, x, w, 3).eigenvalues[:1])
    with pytest.raises(ValueError, match="^n_components must be a whole number of at least 1"):
        eigensystem(k, x, w, 0)
