"""Identities of the chapter on ridge regression."""

import copy
import decimal
import pickle
import tracemalloc
import warnings
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rkhs_lit import (
    CrossValidation,
    Delta,
    FeatureKernel,
    FunctionKernel,
    Gaussian,
    JacobiTheta,
    Laplace,
    Linear,
    Matern,
    Pairs,
    Polynomial,
    PrecisionWarning,
    RidgePath,
    RKHSFunction,
    Shifted,
    Standardisation,
    TensorProduct,
    cross_validate,
    degrees_of_freedom,
    gaussian_bumps,
    gp_posterior,
    interpolate,
    leave_fold_out,
    leave_one_out,
    log_marginal_likelihood,
    minimize_risk,
    norm,
    polynomial_features,
    ridge,
    ridge_factor,
    ridge_path,
    ridge_spectrum,
    smoother_matrix,
    split_folds,
    standardise,
    substrings,
)
from scipy.linalg import cho_solve
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.preprocessing import StandardScaler

KERNELS = [Gaussian(0.8), Laplace(1.5), Polynomial(2), Matern(1.5, 1.0), Linear(),
           2.5 * Gaussian(0.5) + Linear()]
names = lambda k: repr(k)[:40]  # noqa: E731
seeds = st.integers(0, 10_000)
# From a ridge that hardly matters to one that hides the data.
penalties = st.integers(-4, 3).map(lambda e: 10.0**e)


def sample(n=15, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)


def exact_solve(A, b):
    """Gauss-Jordan in fractions, for a matrix A and a list of right-hand sides."""
    n = len(A)
    M = [[*row, *right] for row, right in zip(A, b, strict=True)]
    for i in range(n):
        p = next(r for r in range(i, n) if M[r][i])
        M[i], M[p] = M[p], M[i]
        M[i] = [v / M[i][i] for v in M[i]]
        for r in range(n):
            if r != i:
                M[r] = [v - M[r][i] * w for v, w in zip(M[r], M[i], strict=True)]
    return [row[n:] for row in M]


def rational_gram(points, degree=2):
    return [[(1 + x * y) ** degree for y in points] for x in points]


def plus_ridge(K, lam):
    return [[v + lam * (i == j) for j, v in enumerate(row)] for i, row in enumerate(K)]


# -- primal and dual ------------------------------------------------------


@given(seeds, penalties)
def test_the_primal_objective_is_a_completed_square(seed, lam):
    """thm-ridge-primal: J(w) = J(ŵ) + (w - ŵ)'A(w - ŵ)."""
    rng = np.random.default_rng(seed)
    Phi, y, w = rng.normal(size=(6, 4)), rng.normal(size=6), rng.normal(size=4)
    A = Phi.T @ Phi + lam * np.eye(4)
    best = np.linalg.solve(A, Phi.T @ y)
    J = np.sum((y - Phi @ w) ** 2) + lam * w @ w
    assert np.isclose(J, y @ (y - Phi @ best) + (w - best) @ A @ (w - best), rtol=1e-9)
    # The formula on the kernel of these features is the package's function.
    f = ridge(Linear(), Phi, y, lam)
    assert np.allclose(f(Phi), Phi @ best, rtol=1e-7, atol=1e-9)
    assert np.isclose(norm(f) ** 2, best @ best, rtol=1e-6)


@given(st.integers(1, 6), st.integers(1, 6), seeds, penalties)
def test_dual_primal_and_singular_values_agree_for_every_rank(n, N, seed, lam):
    """thm-ridge-dual: repeated points and copied features included."""
    rng = np.random.default_rng(seed)
    Phi, y = rng.normal(size=(n, N)), rng.normal(size=n)
    Phi[-1], Phi[:, -1] = Phi[0], Phi[:, 0]
    primal = np.linalg.solve(Phi.T @ Phi + lam * np.eye(N), Phi.T @ y)
    dual = Phi.T @ np.linalg.solve(Phi @ Phi.T + lam * np.eye(n), y)
    U, s, Vt = np.linalg.svd(Phi, full_matrices=False)
    filtered = Vt.T @ (s / (s**2 + lam) * (U.T @ y))
    # The condition number is at most about 1e6.
    assert np.allclose(primal, dual, rtol=1e-8, atol=1e-8)
    assert np.allclose(primal, filtered, rtol=1e-8, atol=1e-8)


def test_push_through_exactly():
    """lem-push-through, in fractions: (P⁻¹ + B'R⁻¹B)⁻¹B'R⁻¹ = PB'(BPB' + R)⁻¹."""
    P = np.array([[Fraction(2), 1, 0], [1, 3, 1], [0, 1, 4]], dtype=object)
    R = np.array([[Fraction(5), 2], [2, 1]], dtype=object)
    B = np.array([[Fraction(1), 2, -1], [0, 3, 1]], dtype=object)
    one = lambda n: np.array([[Fraction(int(i == j)) for j in range(n)]  # noqa: E731
                              for i in range(n)], dtype=object)
    inverse = lambda A: np.array(exact_solve(A.tolist(), one(len(A)).tolist()),  # noqa: E731
                                 dtype=object)
    left = inverse(inverse(P) + B.T @ inverse(R) @ B) @ B.T @ inverse(R)
    assert (left == P @ B.T @ inverse(B @ P @ B.T + R)).all()


def test_regression_in_a_basis_is_kernel_regression():
    """thm-ridge-dual for all quadratic functions of the space R^4."""
    X, y = sample(12, 4)
    Phi = polynomial_features(X, 2)
    assert Phi.shape[1] == 15 > len(X)
    w = np.linalg.solve(Phi.T @ Phi + 0.2 * np.eye(15), Phi.T @ y)
    T = sample(7, 4, seed=1)[0]
    assert np.allclose(ridge(Polynomial(2), X, y, 0.2)(T), polynomial_features(T, 2) @ w)


# -- the RKHS -------------------------------------------------------------


@pytest.mark.parametrize("k", KERNELS, ids=names)
@given(seeds, penalties)
@settings(max_examples=15)
def test_every_other_function_is_worse_by_the_gap(k, seed, lam):
    """thm-ridge-rkhs: J(f) = J(f̂) + Σ(f - f̂)(x_i)² + λ‖f - f̂‖²."""
    X, y = sample(seed=seed)
    best = ridge(k, X, y, lam)
    J = lambda f: np.sum((y - f(X)) ** 2) + lam * norm(f) ** 2  # noqa: E731
    f = RKHSFunction(k, sample(4, seed=seed + 1)[0], [1.0, -2.0, 0.5, 1.0])
    gap = np.sum((f(X) - best(X)) ** 2) + lam * norm(f - best) ** 2
    assert np.isclose(J(f), J(best) + gap, rtol=1e-6)
    # y - Kα = λα; both sides carry the error of a system with condition |K|/λ.
    assert np.allclose(y - best(X), lam * best.weights, rtol=1e-6, atol=1e-8)
    assert np.isclose(J(best), lam * y @ best.weights, rtol=1e-6)


def test_weights_exactly():
    """thm-ridge-rkhs against rational arithmetic."""
    points, y, lam = [Fraction(v) for v in (-1, 0, 2, 3)], [1, -2, 4, 1], Fraction(1, 2)
    exact = exact_solve(plus_ridge(rational_gram(points), lam), [[v] for v in y])
    f = ridge(Polynomial(2), [float(p) for p in points], y, 0.5)
    # Condition number about 400.
    assert np.allclose(f.weights, [float(v[0]) for v in exact], rtol=1e-12)


@pytest.mark.parametrize("k", KERNELS, ids=names)
def test_both_decompositions_solve_the_ridge_equation(k):
    """thm-ridge-rkhs, prop-ridge-smoother: (K + λI) α = y by Cholesky's and by eigenvectors."""
    X, y = sample()
    for lam in (1e-3, 1.0):
        K = k(X)
        L, lower = factor = ridge_factor(K, lam)
        d, U = ridge_spectrum(K, lam)
        assert lower and np.allclose(np.tril(L) @ np.tril(L).T, K + lam * np.eye(15))
        assert np.allclose((U * d) @ U.T, K, atol=1e-12 * d[-1]) and d.min() >= 0
        alpha = cho_solve(factor, y)
        assert np.allclose(alpha, U @ (U.T @ y / (d + lam)), rtol=1e-7, atol=1e-9)
        assert np.allclose(alpha, ridge(k, X, y, lam).weights, rtol=1e-12)
        assert np.array_equal(K, k(X))                     # nothing is overwritten


def test_a_penalty_below_the_flaws_of_a_kernel_is_too_small():
    """prop-ridge-rounding: of a kernel right to eight digits, K + λI may be indefinite."""
    K = np.ones((4, 4)) - 1e-9 * np.eye(4)                 # the least eigenvalue is -1e-9
    flawed = FunctionKernel(lambda s, t: K[int(s), int(t)])
    x, y = np.arange(4.0), np.ones(4)
    for call, name in ((lambda lam: ridge(flawed, x, y, lam), "^lam must be larger"),
                       (lambda lam: cross_validate(flawed, x, y, [1.0, lam], folds=2, rng=0),
                        "^lams must be larger")):
        with pytest.raises(ValueError, match=name):
            call(1e-10)
        call(1e-8)
    d, _ = ridge_spectrum(K, 1e-10)
    assert d.min() == 0


@pytest.mark.parametrize("sigma", [0.3, 2.0])
@pytest.mark.parametrize("lam", [1e-3, 1.0, 50.0])
def test_ridge_agrees_with_scikit_learn(sigma, lam):
    """thm-ridge-rkhs: alpha = λ, gamma = 1/(2σ²)."""
    X, y = sample(40, 3)
    T = sample(9, 3, seed=2)[0]
    peer = KernelRidge(alpha=lam, kernel="rbf", gamma=1 / (2 * sigma**2)).fit(X, y)
    assert np.allclose(ridge(Gaussian(sigma), X, y, lam)(T), peer.predict(T), rtol=1e-8)


def test_repeated_points_give_one_function_and_the_mean():
    """thm-ridge-rkhs with a singular Gram matrix; weights are residuals over λ."""
    f = ridge(Gaussian(1.0), [0.0, 0.0, 5.0], [1.0, 2.0, 0.0], 1e-7)
    assert np.isclose(f([0.0])[0], 1.5, atol=1e-6)
    assert np.allclose(f.weights[:2], [-0.5e7, 0.5e7], rtol=1e-6)


@pytest.mark.parametrize("c", [1e-200, 1e-3, 1e200])
def test_scales_of_kernel_and_penalty_cancel(c):
    """prop-ridge-bumps, part 3: (ck, cλ) and (k, λ) give one fit."""
    X, y = sample()
    T = sample(5, seed=3)[0]
    f, g = ridge(c * Gaussian(1.0), X, y, 0.1 * c), ridge(Gaussian(1.0), X, y, 0.1)
    assert np.allclose(f(T), g(T), rtol=1e-9)
    assert np.allclose(leave_one_out(c * Gaussian(1.0), X, y, 0.1 * c),
                       leave_one_out(Gaussian(1.0), X, y, 0.1), rtol=1e-9)
    assert np.isclose(degrees_of_freedom(c * Gaussian(1.0), X, 0.1 * c),
                      degrees_of_freedom(Gaussian(1.0), X, 0.1))
    one = [cross_validate(k, X, y, [lam], folds=3, rng=0).errors[0, 0]
           for k, lam in ((c * Gaussian(1.0), 0.1 * c), (Gaussian(1.0), 0.1))]
    assert np.isclose(*one)


@pytest.mark.parametrize("scale", [1e-250, 1e250])
def test_data_of_every_size(scale):
    """Everything but squared errors is linear in y."""
    X, y = sample()
    k, lams = Gaussian(1.0), [0.1, 1.0]
    assert np.allclose(ridge(k, X, scale * y, 0.1).weights / scale, ridge(k, X, y, 0.1).weights)
    path, unit = ridge_path(k, X, scale * y, lams), ridge_path(k, X, y, lams)
    assert np.allclose(path.norms / scale, unit.norms)
    assert np.allclose(path.leave_one_out / scale, unit.leave_one_out)


def test_points_of_any_kind():
    """thm-ridge-rkhs asks nothing of the set: strings and pairs."""
    texts, y = ["kernel", "colonel", "matrix", "matrices"], [1.0, 2.0, 0.0, 1.0]
    k = FeatureKernel(substrings(2))
    alpha = np.linalg.solve(k(texts) + 0.5 * np.eye(4), y)
    assert np.allclose(ridge(k, texts, y, 0.5)(["kern"]), k(["kern"], texts) @ alpha)
    e = leave_one_out(k, texts, y, 0.5)
    assert np.isclose(e[0], 1.0 - ridge(k, texts[1:], y[1:], 0.5)(texts[:1])[0])
    found = cross_validate(k, texts, y, [0.5], folds=[[0, 1], [2], [3]])
    assert np.allclose(found.errors, np.mean(leave_fold_out(
        k, texts, y, 0.5, [[0, 1], [2], [3]]) ** 2))

    pairs = Pairs(np.arange(6.0), list("ababab"))
    both = TensorProduct(Gaussian(2.0), Delta())
    found = cross_validate(both, pairs, np.arange(6.0), [0.1], folds=2, test=2, rng=0)
    f = ridge(both, Pairs(np.arange(6.0)[found.train], [list("ababab")[i] for i in found.train]),
              np.arange(6.0)[found.train], 0.1)
    assert np.allclose(found.function(pairs), f(pairs))


@pytest.mark.parametrize("d", [1, 2])
def test_bumps_in_l2(d):
    """prop-ridge-bumps: integrals of bumps, and the primal on a grid."""
    s, lam = 0.7, 0.4
    X, y = sample(6, d)
    h = 0.4
    axis = np.arange(-6.4, 6.4 + h / 2, h)
    grid = np.array(list(product(axis, repeat=d)))
    D = np.sum((X[:, None] - grid) ** 2, axis=2)
    bumps = np.exp(-D / (2 * s**2))
    factor = (s * np.sqrt(np.pi)) ** d
    # The trapezoidal rule is exact to rounding for such functions.
    assert np.allclose(h**d * bumps @ bumps.T, factor * Gaussian(np.sqrt(2) * s)(X), rtol=1e-9)
    assert np.allclose(bumps, np.sqrt(factor) * gaussian_bumps(X, grid, np.sqrt(2) * s))

    root = h ** (d / 2) * bumps
    w = np.linalg.solve(root.T @ root + lam * np.eye(len(grid)), root.T @ y) / h ** (d / 2)
    f = ridge(Gaussian(np.sqrt(2) * s), X, y, lam / factor)
    assert np.allclose(w, (f.weights / factor) @ bumps, atol=1e-9)
    assert np.allclose(h**d * bumps @ w, f(X), atol=1e-9)


# -- the smoother ---------------------------------------------------------


@pytest.mark.parametrize("k", KERNELS, ids=names)
@pytest.mark.parametrize("lam", [1e-3, 1.0, 100.0])
def test_ridge_is_a_linear_smoother(k, lam):
    """prop-ridge-smoother: S y are the fitted values, for every y."""
    X, y = sample()
    S = smoother_matrix(k, X, lam)
    for values in (y, np.arange(15.0), y**2):
        assert np.allclose(S @ values, ridge(k, X, values, lam)(X), atol=1e-8)
    assert np.allclose(S, S.T)
    assert np.allclose(S, np.linalg.solve(k(X) + lam * np.eye(15), k(X)), atol=1e-9)
    eigenvalues = np.linalg.eigvalsh(S)
    assert eigenvalues.min() > -1e-12 and eigenvalues.max() < 1
    assert np.isclose(degrees_of_freedom(k, X, lam), np.trace(S))


def test_the_smoother_exactly():
    """prop-ridge-smoother and def-ridge-df in fractions."""
    points, lam = [Fraction(v) for v in (-1, 0, 2)], Fraction(3, 2)
    K = rational_gram(points)
    S = exact_solve(plus_ridge(K, lam), K)
    ours = smoother_matrix(Polynomial(2), [-1.0, 0.0, 2.0], 1.5)
    assert np.allclose(ours, np.array(S, dtype=float), rtol=1e-12)
    df = float(sum(S[i][i] for i in range(3)))
    assert np.isclose(degrees_of_freedom(Polynomial(2), [-1.0, 0.0, 2.0], 1.5), df, rtol=1e-13)


@given(seeds)
def test_the_tradeoff_is_monotone(seed):
    """prop-ridge-smoother, part 2, and def-ridge-df."""
    X, y = sample(seed=seed)
    path = ridge_path(Laplace(1.0), X, y, np.geomspace(1e-4, 1e4, 20))
    assert (np.diff(path.norms) <= 0).all()
    assert (np.diff(np.sum(path.residuals**2, axis=1)) >= 0).all()
    df = path.degrees_of_freedom
    assert (np.diff(df) <= 0).all() and 0 < df[-1] < 0.01 and 14.9 < df[0] < 15


def test_limits_of_the_penalty():
    """prop-ridge-smoother, part 3, with and without contradictions."""
    X, y = sample(6)
    k = Laplace(1.0)
    s = interpolate(k, X, y)
    assert norm(ridge(k, X, y, 1e-9) - s) < 1e-7 * norm(s)
    assert np.allclose((1e9 * ridge(k, X, y, 1e9)).weights, y, rtol=1e-7)
    twice, values = np.vstack([X, X[:2]]), np.concatenate([y, y[:2] + 1])
    means = np.concatenate([y[:2] + 0.5, y[2:]])
    least, T = interpolate(k, X, means), sample(20, seed=1)[0]
    # The twins have weights ±5e7, which cost eight of sixteen digits.
    assert np.allclose(ridge(k, twice, values, 1e-8)(T), least(T), atol=1e-6)
    assert np.isclose(degrees_of_freedom(k, twice, 1e-9), 6)
    # A polynomial of degree 2 with three features: least squares.
    x = np.linspace(-1, 1, 9)
    fit = np.polyval(np.polyfit(x, np.exp(x), 2), x)
    assert np.allclose(ridge(Polynomial(2), x, np.exp(x), 1e-9)(x), fit, atol=1e-7)


def test_risk_of_a_smoother_by_exact_enumeration():
    """thm-ridge-risk for all 2^5 signs of the errors, in fractions."""
    n, tau = 5, Fraction(2, 3)
    mu = [Fraction(v) for v in (1, 0, -2, 3, 1)]
    S = [[Fraction((i + 2 * j) % 5, 7) for j in range(n)] for i in range(n)]
    times = lambda v: [sum(a * b for a, b in zip(row, v, strict=True)) for row in S]  # noqa: E731
    square = lambda u, v: sum((a - b) ** 2 for a, b in zip(u, v, strict=True))  # noqa: E731
    data = [[m + tau * e for m, e in zip(mu, signs, strict=True)]
            for signs in product((-1, 1), repeat=n)]
    fits = [times(y) for y in data]
    mean = lambda values: sum(values) / len(data)  # noqa: E731
    risk = mean([square(f, mu) for f in fits])
    trace = sum(S[i][i] for i in range(n))
    squares = sum(v**2 for row in S for v in row)
    assert risk == square(times(mu), mu) + tau**2 * squares
    assert risk == mean([square(y, f) for y, f in zip(data, fits, strict=True)]) + (
        2 * tau**2 * trace - n * tau**2)
    covariance = sum(mean([f[i] * y[i] for f, y in zip(fits, data, strict=True)])
                     - mean([f[i] for f in fits]) * mu[i] for i in range(n))
    assert covariance == tau**2 * trace


@pytest.mark.parametrize("n", [7, 16])
@pytest.mark.parametrize("lam", [0.01, 3.0])
def test_on_the_circle_ridge_is_a_filter(n, lam):
    """prop-ridge-circle, with aliasing: k_l + k_{l±n} + ..."""
    k = JacobiTheta(0.2)
    x = 2 * np.pi * np.arange(n) / n
    coefficients = k.spectrum(100)
    l = np.arange(-100, 101)  # noqa: E741
    folded = np.array([coefficients[(l - j) % n == 0].sum() for j in range(n)])
    y = np.random.default_rng(0).normal(size=n)
    ratio = np.fft.fft(ridge(k, x, y, lam)(x)) / np.fft.fft(y)
    assert np.allclose(ratio, folded / (folded + lam / n), atol=1e-9)


# -- the path -------------------------------------------------------------


@pytest.mark.parametrize("k", KERNELS, ids=names)
def test_the_path_is_one_fit_for_each_penalty(k):
    """prop-ridge-smoother: all attributes of the record, unsorted penalties."""
    X, y = sample()
    T = sample(4, seed=5)[0]
    lams = [1.0, 1e-2, 30.0]
    path = ridge_path(k, X, y, lams)
    assert isinstance(path, RidgePath) and np.array_equal(path.lams, lams)
    assert path(T).shape == (3, 4)
    for j, lam in enumerate(lams):
        f = ridge(k, X, y, lam)
        assert np.allclose(path.weights[j], f.weights, rtol=1e-7, atol=1e-9)
        assert np.allclose(path.residuals[j], y - f(X), atol=1e-8)
        assert np.allclose(path.leave_one_out[j], leave_one_out(k, X, y, lam), atol=1e-8)
        assert np.isclose(path.degrees_of_freedom[j], degrees_of_freedom(k, X, lam))
        assert np.isclose(path.norms[j], norm(f), rtol=1e-6)
        assert np.allclose(path(T)[j], f(T), atol=1e-8)
        assert np.allclose(path.function(j)(T), f(T), atol=1e-8)
        assert norm(path.function(j) - f) < 1e-6 * norm(f)
    assert np.array_equal(path.function(-1).weights, path.weights[2])
    for j in (3, -4):
        with pytest.raises(ValueError, match="j must"):
            path.function(j)


def test_records_survive_pickling_and_copying():
    """prop-ridge-smoother, alg-ridge-cv: copies have the same numbers, read-only."""
    X, y = sample()
    path = ridge_path(Gaussian(1.0), X, y, [0.1, 1.0])
    found = cross_validate(Gaussian(1.0), X, y, [0.1, 1.0], folds=3, test=2, rng=0)
    for remade in (lambda r: pickle.loads(pickle.dumps(r)), copy.deepcopy, copy.copy):
        one, two = remade(path), remade(found)
        assert np.array_equal(one(X), path(X)) and np.array_equal(two.errors, found.errors)
        assert np.array_equal(two.function(X), found.function(X)) and repr(two) == repr(found)
        for array in (one.lams, one.weights, one.residuals, one.leave_one_out, one.norms,
                      one.degrees_of_freedom, two.lams, two.errors, two.train, two.test,
                      *two.folds):
            assert not array.flags.writeable


def test_records_cannot_be_changed_from_outside():
    """Inputs are copied, and the arrays of both records are read-only."""
    X, y = sample()
    lams = np.array([0.1, 1.0])
    path = ridge_path(Gaussian(1.0), X, y, lams)
    found = cross_validate(Gaussian(1.0), X, y, lams, folds=3, test=2, rng=0)
    before = path.function(0)(X[:2] + 1)
    T = X[:2] + 1
    X[:], lams[:] = 0, 5
    assert np.allclose(path.function(0)(T), before) and path.lams[0] == 0.1
    arrays = [path.lams, path.weights, path.residuals, path.leave_one_out, path.norms,
              path.degrees_of_freedom, found.lams, found.errors, found.train, found.test,
              *found.folds, path.points, found.function.points]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert repr(path) == "RidgePath(Gaussian(sigma=1.0), n=15, L=2)"
    assert repr(found).startswith("CrossValidation(Gaussian(sigma=1.0), lam=0.1")


# -- leaving out ----------------------------------------------------------


@pytest.mark.parametrize("k", KERNELS, ids=names)
@given(seeds, penalties)
@settings(max_examples=15)
def test_leave_one_out_is_a_fit_without_the_point(k, seed, lam):
    """cor-ridge-loo against n fits."""
    X, y = sample(8, seed=seed)
    brute = [y[i] - ridge(k, np.delete(X, i, 0), np.delete(y, i), lam)(X[i:i + 1])[0]
             for i in range(8)]
    assert np.allclose(leave_one_out(k, X, y, lam), brute, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("k", KERNELS, ids=names)
@pytest.mark.parametrize("folds", [
    [[0, 3, 5], [1, 2], [4, 6, 7]],
    [[7], [0, 1, 2, 3, 4, 5, 6]],
    np.arange(8).reshape(4, 2),
    [[i] for i in range(8)],
], ids=["three", "two", "array", "single"])
def test_leave_fold_out_is_a_fit_without_the_fold(k, folds):
    """thm-ridge-fold against one fit for each fold."""
    X, y = sample(8)
    e = leave_fold_out(k, X, y, 0.2, folds)
    for F in folds:
        rest = np.setdiff1d(np.arange(8), F)
        assert np.allclose(e[F], y[F] - ridge(k, X[rest], y[rest], 0.2)(X[F]))
    if len(folds) == 8:
        assert np.allclose(e, leave_one_out(k, X, y, 0.2))


@given(st.integers(2, 30), st.integers(2, 5), st.integers(0, 9), seeds)
def test_folds_and_test_set_have_each_point_once(n, m, held, seed):
    """thm-ridge-fold, alg-ridge-cv: folds of one size, up to one point, and a test set."""
    if n - held < m:
        with pytest.raises(ValueError, match="folds|test"):
            split_folds(n, m, held, seed)
        return
    folds, test = split_folds(n, m, held, seed)
    sizes = [len(F) for F in folds]
    assert len(folds) == m and len(test) == held and max(sizes) - min(sizes) <= 1
    assert np.array_equal(np.sort(np.concatenate([*folds, test])), np.arange(n))
    again, same = split_folds(n, m, held, seed)
    assert all(map(np.array_equal, folds, again)) and np.array_equal(test, same)
    listed, other = split_folds(n, folds, test)
    assert all(map(np.array_equal, folds, listed)) and np.array_equal(test, other)
    drawn = {tuple(split_folds(30, 2)[0][0]) for _ in range(3)}
    assert len(drawn) > 1                                  # fresh each time


def test_a_fold_of_everything_leaves_zero():
    """thm-ridge-fold with F = all points: the fit to nothing is zero."""
    X, y = sample(8)
    assert np.allclose(leave_fold_out(Gaussian(1.0), X, y, 0.3, [range(8)]), y)


def test_a_moved_point_does_not_move_the_fit():
    """thm-ridge-fold, the idea of the proof."""
    X, y = sample(10)
    k, F, rest = Gaussian(1.0), [2, 5], [0, 1, 3, 4, 6, 7, 8, 9]
    without = ridge(k, X[rest], y[rest], 0.1)
    moved = y.copy()
    moved[F] = without(X[F])
    # A norm is the root of rounding errors.
    assert norm(ridge(k, X, moved, 0.1) - without) < 1e-6 * norm(without)


def test_leave_out_exactly():
    """thm-ridge-fold and cor-ridge-loo in fractions: r_F = R_FF e_F."""
    points, y, lam = [Fraction(v) for v in (-1, 0, 1, 3)], [1, -2, 4, 1], Fraction(1, 3)
    K = rational_gram(points, 1)

    def fit_without(F):
        rest = [i for i in range(4) if i not in F]
        alpha = exact_solve(plus_ridge([[K[i][j] for j in rest] for i in rest], lam),
                            [[y[i]] for i in rest])
        return [y[i] - sum(K[i][j] * a[0] for j, a in zip(rest, alpha, strict=True))
                for i in F]

    x = [float(p) for p in points]
    for F, other in (([0, 2], [1, 3]), ([1, 3], [0, 2])):
        ours = leave_fold_out(Polynomial(1), x, y, 1 / 3, [F, other])[F]
        assert np.allclose(ours, [float(v) for v in fit_without(F)], rtol=1e-11)
    ours = leave_one_out(Polynomial(1), x, y, 1 / 3)
    assert np.allclose(ours, [float(fit_without([i])[0]) for i in range(4)], rtol=1e-11)


def test_leave_one_out_where_the_fit_nearly_interpolates():
    """cor-ridge-loo: 1 - S_ii of 1e-12 keeps its digits."""
    X, y = np.arange(6.0), np.array([1.0, -1, 2, 0, 3, 1])
    k = Laplace(1.0)                           # condition number below 10
    brute = [y[i] - interpolate(k, np.delete(X, i), np.delete(y, i))(X[i:i + 1])[0]
             for i in range(6)]
    assert np.allclose(leave_one_out(k, X, y, 1e-12), brute, rtol=1e-9)
    folds = [[0, 1], [2, 3], [4, 5]]
    e = leave_fold_out(k, X, y, 1e-12, folds)
    assert np.allclose(e[:2], y[:2] - interpolate(k, X[2:], y[2:])(X[:2]), rtol=1e-9)


def test_generalised_cross_validation_is_leave_one_out_on_the_circle():
    """ex-ridge-gcv."""
    n, lams = 12, [0.01, 1.0]
    x = 2 * np.pi * np.arange(n) / n
    path = ridge_path(JacobiTheta(0.5), x, np.random.default_rng(0).normal(size=n), lams)
    gcv = np.mean(path.residuals**2, axis=1) / (1 - path.degrees_of_freedom / n) ** 2
    assert np.allclose(gcv, np.mean(path.leave_one_out**2, axis=1))


# -- cross-validation -----------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 20])
@pytest.mark.parametrize("k", [Gaussian(1.0), Linear()], ids=names)
def test_a_tridiagonal_matrix_serves_every_penalty(k, n):
    """lem-ridge-tridiagonal: two folds are fits of n points and of one, for every penalty."""
    X, y = sample(n + 1)
    lams, first, rest = [0.1, 10.0], X[:1], X[1:]
    found = cross_validate(k, X, y, lams, folds=[[0], range(1, n + 1)])
    for error, lam in zip(found.errors[0], lams, strict=True):
        alone = y[0] - k(first, rest) @ np.linalg.solve(k(rest) + lam * np.eye(n), y[1:])
        others = y[1:] - k(rest, first)[:, 0] * y[0] / (k(first)[0, 0] + lam)
        assert np.isclose(error, (alone @ alone + others @ others) / (n + 1))


@pytest.mark.parametrize("m", [2, 5, 8, 9, 13, 24])
def test_cross_validation_is_the_algorithm_word_for_word(m):
    """alg-ridge-cv against loops over kernels, penalties and folds."""
    X, y = sample(30)
    kernels, lams = [Gaussian(0.5), Laplace(2.0)], [0.01, 0.3, 5.0]
    found = cross_validate(kernels, X, y, lams, folds=m, test=6, rng=3)
    assert isinstance(found, CrossValidation)
    everything = np.concatenate([*found.folds, found.test])
    assert np.array_equal(np.sort(everything), np.arange(30)) and len(found.test) == 6
    assert np.array_equal(found.train, np.sort(np.concatenate(found.folds)))
    sizes = [len(F) for F in found.folds]
    assert len(sizes) == m and max(sizes) - min(sizes) <= 1

    errors = np.zeros((2, 3))
    for (i, k), (j, lam), F in product(enumerate(kernels), enumerate(lams), found.folds):
        rest = np.setdiff1d(found.train, F)
        errors[i, j] += np.sum((y[F] - ridge(k, X[rest], y[rest], lam)(X[F])) ** 2) / 24
    assert np.allclose(found.errors, errors)
    i, j = np.unravel_index(errors.argmin(), (2, 3))
    assert found.kernel is kernels[i] and found.lam == lams[j]
    f = ridge(kernels[i], X[found.train], y[found.train], lams[j])
    assert np.allclose(found.function(X), f(X))
    assert np.isclose(found.test_error, np.mean((y[found.test] - f(X[found.test])) ** 2))


def test_the_test_set_is_not_used_for_the_choice():
    """alg-ridge-cv: other test values change the test error only."""
    X, y = sample(30)
    kernels, lams, held = [Gaussian(0.5), Gaussian(2.0)], [0.01, 1.0], [3, 7, 20]
    other = y.copy()
    other[held] += 100
    one, two = (cross_validate(kernels, X, v, lams, folds=4, test=held, rng=0)
                for v in (y, other))
    assert np.array_equal(one.errors, two.errors) and one.lam == two.lam
    assert np.array_equal(one.function.weights, two.function.weights)
    assert two.test_error > one.test_error + 1000


def test_as_many_folds_as_points_is_leave_one_out():
    """alg-ridge-cv with m = n, and cor-ridge-loo."""
    X, y = sample(12)
    lams = [0.1, 2.0]
    found = cross_validate(Gaussian(1.0), X, y, lams, folds=12, rng=0)
    for j, lam in enumerate(lams):
        assert np.isclose(found.errors[0, j], np.mean(leave_one_out(Gaussian(1.0), X, y, lam) ** 2))
    assert found.test_error is None and len(found.test) == 0


@pytest.mark.parametrize("m", [5, 10])
def test_cross_validation_agrees_with_scikit_learn(m):
    """alg-ridge-cv against GridSearchCV with the same folds."""
    X, y = sample(60, 3)
    lams = np.geomspace(1e-3, 10, 5)
    found = cross_validate([Gaussian(s) for s in (0.5, 2.0)], X, y, lams, folds=m, rng=1)
    label = np.empty(60, dtype=int)
    for number, F in enumerate(found.folds):
        label[F] = number
    peer = GridSearchCV(KernelRidge(kernel="rbf"), {"gamma": [2.0, 0.125], "alpha": lams},
                        cv=PredefinedSplit(label), scoring="neg_mean_squared_error").fit(X, y)
    mean = {(p["gamma"], p["alpha"]): -score for p, score in
            zip(peer.cv_results_["params"], peer.cv_results_["mean_test_score"], strict=True)}
    theirs = [[mean[gamma, lam] for lam in lams] for gamma in (2.0, 0.125)]
    assert np.allclose(found.errors, theirs, rtol=1e-7)
    assert found.lam == peer.best_params_["alpha"]


def test_folds_and_test_set_can_be_given():
    """alg-ridge-cv with lists of indices: no random number is needed."""
    X, y = sample(9)
    folds = [[0, 5], [1, 2, 8], [3]]
    found = cross_validate(Gaussian(1.0), X, y, [0.1], folds=folds, test=[4, 6, 7])
    assert [list(F) for F in found.folds] == folds and list(found.test) == [4, 6, 7]
    train = [0, 1, 2, 3, 5, 8]
    inside = [[train.index(i) for i in F] for F in folds]
    e = leave_fold_out(Gaussian(1.0), X[train], y[train], 0.1, inside)
    assert np.isclose(found.errors[0, 0], np.mean(e**2))
    whole = cross_validate(Gaussian(1.0), X, y, [0.1], folds=3, test=[], rng=0)
    assert len(whole.test) == 0 and whole.test_error is None
    drawn = cross_validate(Gaussian(1.0), X, y, [0.1], folds=2, test=[4, 6, 7], rng=0)
    assert np.array_equal(drawn.train, train)
    assert len(cross_validate(Gaussian(1.0), X, y, [0.1]).folds) == 5
    one, two = (cross_validate(Gaussian(1.0), X, y, [0.1], folds=3, rng=s) for s in (0, 1))
    assert [list(F) for F in one.folds] != [list(F) for F in two.folds]
    fresh = [cross_validate(Gaussian(1.0), X, y, [0.1], folds=9).folds for _ in range(5)]
    assert len({tuple(int(F[0]) for F in folds) for folds in fresh}) > 1   # one of 9!^4 fails


def test_copies_in_different_folds_deceive():
    """What breaks: leave-one-out on data entered twice chooses a tiny penalty."""
    rng = np.random.default_rng(0)
    x = np.linspace(-3, 3, 40)
    y = np.sin(x) + 0.4 * rng.normal(size=40)
    X2, y2 = np.tile(x, 2), np.tile(y, 2)
    lams = np.geomspace(1e-5, 1e2, 15)
    alone = cross_validate(Gaussian(0.3), X2, y2, lams, folds=80, rng=0)
    together = cross_validate(Gaussian(0.3), X2, y2, lams, folds=[[i, i + 40] for i in range(40)])
    assert alone.lam < 1e-3 < 0.1 < together.lam
    assert alone.errors.min() < together.errors.min()


# -- several outputs and an offset ----------------------------------------


@pytest.mark.parametrize("k", KERNELS, ids=names)
def test_several_outputs_share_one_factorisation(k):
    """thm-ridge-rkhs, column by column, and scikit-learn."""
    X, y = sample()
    Y = np.column_stack([y, X[:, 1] ** 2, 3 - y])
    fits = ridge(k, X, Y, 0.3)
    assert isinstance(fits, tuple) and len(fits) == 3
    for f, column in zip(fits, Y.T, strict=True):
        assert np.allclose(f.weights, ridge(k, X, column, 0.3).weights)
    peer = KernelRidge(alpha=0.3, kernel="precomputed").fit(k(X), Y)
    T = sample(4, seed=2)[0]
    assert np.allclose(np.transpose([f(T) for f in fits]), peer.predict(k(T, X)), atol=1e-9)
    (only,) = ridge(k, X, y[:, None], 0.3)            # one column is a tuple of one
    assert np.array_equal(only.weights, ridge(k, X, y, 0.3).weights)
    with pytest.raises(ValueError, match="^y must be one number, or one row, for each of 15"):
        ridge(k, X, Y.T, 0.3)


@given(seeds, penalties)
@settings(max_examples=40)
def test_a_free_offset_by_four_roads(seed, lam):
    """prop-ridge-offset: a border, centred features, the mean residual, and a certified fit."""
    X, y = sample(9, seed=seed)
    k, n, one, y = Laplace(1.0), 9, np.ones(9), y + 20
    f = ridge(k, X, y, lam, offset=True)
    alpha, K, H = f.function.weights, k(X), np.eye(9) - 1 / 9
    bordered = np.block([[K + lam * np.eye(n), one[:, None]], [one, 0.0]])
    *border, b = np.linalg.solve(bordered, np.append(y, 0))
    # The system is as well conditioned as K + λI, here 1e6 at worst.
    close = dict(rtol=1e-7, atol=1e-9)
    assert np.allclose(alpha, border, **close) and np.isclose(f.b, b)
    assert np.allclose(alpha, np.linalg.solve(H @ K @ H + lam * np.eye(n), H @ y), **close)
    assert np.isclose(f.b, np.mean(y - f.function(X)))
    assert abs(alpha.sum()) < 1e-9 * max(1, np.abs(alpha).sum())
    assert np.allclose(lam * alpha, y - f(X), atol=1e-8)
    certified = minimize_risk(k, X, y, "squared", lam, offset=True)
    assert np.allclose(f(X), certified(X), atol=1e-6)


def test_an_offset_moves_with_the_data_and_costs_nothing():
    """prop-ridge-offset: f + b is best among all f' + b'; y + c has the offset b + c."""
    X, y = sample(12)
    k, lam = Gaussian(1.0), 0.2
    f, higher = (ridge(k, X, y + c, lam, offset=True) for c in (0.0, 100.0))
    assert np.allclose(f.function.weights, higher.function.weights, atol=1e-9)
    assert np.isclose(higher.b - f.b, 100.0)

    def objective(g, b):
        return np.sum((y - g(X) - b) ** 2) + lam * norm(g) ** 2

    rng, least = np.random.default_rng(0), objective(f.function, f.b)
    for _ in range(20):
        h = RKHSFunction(k, rng.normal(size=(3, 2)), 0.1 * rng.normal(size=3))
        assert objective(f.function + h, f.b + 0.1 * rng.normal()) > least
    both = ridge(k, X, np.column_stack([y, y + 100]), lam, offset=True)
    assert [type(g) for g in both] == [Shifted, Shifted]
    assert np.allclose([g.b for g in both], [f.b, higher.b])
    assert np.allclose(ridge(k, X, np.full(12, 7.0), lam, offset=True)(X), 7.0)


# -- standardised data ----------------------------------------------------


@given(seeds, st.integers(1, 4))
def test_standardised_data_have_no_units(seed, d):
    """prop-standardise, both parts."""
    rng = np.random.default_rng(seed)
    X, T = rng.normal(size=(7, d)) * 5 + 3, rng.normal(size=(4, d))
    s = standardise(X)
    assert np.allclose(s(X).mean(axis=0), 0) and np.allclose(s(X).std(axis=0), 1)
    a = rng.choice([-1, 1], size=d) * 10.0 ** rng.integers(-3, 4, size=d)
    b = 10 * rng.normal(size=d)
    other = standardise(a * X + b)
    assert np.allclose(other(a * T + b), np.sign(a) * s(T), atol=1e-7)
    for k in (Gaussian(1.0), Linear()):
        assert np.allclose(k(other(a * T + b), other(a * X + b)), k(s(T), s(X)), atol=1e-6)


def test_standardisation_agrees_with_scikit_learn_and_keeps_the_shape():
    """prop-standardise."""
    X, _ = sample(20, 3)
    X[:, 1] = 0.1                                     # constant: 0.1 has no exact mean
    T = sample(5, 3, seed=1)[0]
    peer = StandardScaler().fit(X)
    s = standardise(X)
    assert np.allclose(s(T), peer.transform(T))
    assert np.array_equal(s(X)[:, 1], np.zeros(20))
    assert s.scales[1] == 1 and np.allclose(s(T)[:, 1], T[:, 1] - 0.1)
    line = standardise(X[:, 0])
    assert line(X[:4, 0]).shape == (4,) and line(X[:4, :1]).shape == (4, 1)
    assert np.array_equal(line(X[:4, 0]), s(X[:4])[:, 0])
    with pytest.raises(ValueError, match="^T must have 3 columns, as the data had"):
        s(T[:, :2])


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_standardised_data_of_every_size(scale):
    """prop-standardise where squares overflow or vanish."""
    X, _ = sample(10)
    assert np.allclose(standardise(scale * X)(scale * X), standardise(X)(X))


def test_one_point_is_a_constant_in_every_column():
    """prop-standardise: the mean is the point, and the scales are old."""
    s = standardise([[3.0, -1.0]])
    assert np.array_equal(s([[3.0, -1.0], [5.0, 0.0]]), [[0, 0], [2, 1]])


def test_standardisation_remembers_the_names_of_columns():
    """prop-standardise: a frame whose columns come in another order is refused."""

    class Frame:
        def __init__(self, **columns):
            self.columns, self.values = list(columns), np.column_stack([*columns.values()])

        def __array__(self, dtype=None, copy=None):
            return self.values

    age, weight = np.array([[3.0, 9.0, 6.0], [20.0, 50.0, 35.0]])
    s = standardise(Frame(age=age, weight=weight))
    assert isinstance(s, Standardisation) and s.columns == ("age", "weight")
    assert np.allclose(s(Frame(age=age, weight=weight)), s(np.column_stack([age, weight])))
    with pytest.raises(ValueError, match="same columns in the same order"):
        s(Frame(weight=weight, age=age))
    again = pickle.loads(pickle.dumps(s))
    assert again.columns == s.columns and np.array_equal(again.scales, s.scales)
    for array in (s.means, s.scales, again.means):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


# -- exercises ------------------------------------------------------------


def test_stopping_early_is_a_filter():
    """ex-ridge-descent: fitted values U diag(1 - (1 - ηd)^t) U'y."""
    X, y = sample(12)
    K = Gaussian(1.0)(X)
    d, U = np.linalg.eigh(K)
    alpha, step = np.zeros(12), 0.9 / d[-1]
    for _ in range(15):
        alpha = alpha + step * (y - K @ alpha)
    assert np.allclose(K @ alpha, U @ ((1 - (1 - step * d) ** 15) * (U.T @ y)))


def test_a_point_more_costs_one_product():
    """ex-ridge-grow: the inverse with a row and a column more."""
    X, y = sample(8)
    A = Laplace(1.0)(X) + 0.3 * np.eye(8)
    G = np.linalg.inv(A[:7, :7])
    u = np.append(G @ A[:7, 7], -1.0)
    grown = np.pad(G, (0, 1)) + np.outer(u, u) / (A[7, 7] - A[:7, 7] @ u[:7])
    assert np.allclose(grown @ y, ridge(Laplace(1.0), X, y, 0.3).weights)


def test_one_point():
    """ex-ridge-one-point."""
    k, x, y, lam = 2.0 * Gaussian(1.0), [0.5], [3.0], 0.5
    assert np.isclose(ridge(k, x, y, lam)(x)[0], 3 * 2 / 2.5)
    assert np.isclose(degrees_of_freedom(k, x, lam), 0.8)
    assert np.isclose(leave_one_out(k, x, y, lam)[0], 3.0)
    assert np.allclose(smoother_matrix(k, x, lam), 0.8)


def test_a_constant_in_the_kernel_is_an_offset():
    """ex-ridge-offset."""
    X, y = sample(10)
    k, lam, c, one = Gaussian(1.0), 0.3, 50.0, np.ones(10)
    C = k(X) + lam * np.eye(10)
    b = one @ np.linalg.solve(C, y) / (one @ np.linalg.solve(C, one) + 1 / c)
    f = ridge(k + c * k**0, X, y, lam)
    assert np.allclose(f.weights, np.linalg.solve(C, y - b))
    assert np.isclose(c * f.weights.sum(), b)
    free = ridge(k + 1e7 * k**0, X, y, lam).weights
    assert abs(free.sum()) < 1e-6 * np.abs(free).sum()


# -- corners --------------------------------------------------------------


def test_a_zero_kernel_fits_zero():
    """Every result is defined for k = 0."""
    k, (X, y) = 0.0 * Gaussian(1.0), sample(5)
    assert np.allclose(ridge(k, X, y, 1.0)(X), 0) and degrees_of_freedom(k, X, 1.0) == 0
    assert np.allclose(leave_one_out(k, X, y, 1.0), y)
    assert np.allclose(ridge_path(k, X, y, [1.0]).residuals, y)
    assert np.isclose(cross_validate(k, X, y, [1.0], folds=2, rng=0).errors[0, 0], np.mean(y**2))
    mean, covariance = gp_posterior(k, X, y, 1.0, X)
    assert not mean.any() and not covariance.any()


def test_integers_lists_and_columns():
    """Points and values may come as lists of whole numbers."""
    f = ridge(Gaussian(1.0), [0, 1, 2], [1, 2, 3], 1)
    g = ridge(Gaussian(1.0), np.array([[0.0], [1.0], [2.0]]), (1.0, 2.0, 3.0), np.float64(1))
    assert np.allclose(f([0.5]), g(np.array([[0.5]])))
    with pytest.raises(ValueError, match="T must be a sequence"):  # a set has no order
        gp_posterior(Gaussian(1.0), [0, 1], [1, 2], 1, {5})


def test_memory_is_that_of_a_few_gram_matrices():
    """ridge keeps K and two factors, not more."""
    X, y = sample(600)
    tracemalloc.start()
    ridge(Gaussian(1.0), X, y, 0.1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * 8 * 600**2


def test_two_points_are_enough():
    """alg-ridge-cv with a training set of one point for each fold."""
    found = cross_validate(Gaussian(1.0), [0.0, 1.0], [2.0, 3.0], [0.5, 1.0], folds=2, rng=0)
    k = np.exp(-0.5)
    for j, lam in enumerate((0.5, 1.0)):
        expected = ((2 - 3 * k / (1 + lam)) ** 2 + (3 - 2 * k / (1 + lam)) ** 2) / 2
        assert np.isclose(found.errors[0, j], expected)
    with pytest.raises(ValueError, match="positive definite"):
        cross_validate(FunctionKernel(lambda s, t: -1.0), [0.0, 1.0], [2.0, 3.0], [2.0],
                       folds=2, rng=0)


# -- bad input ------------------------------------------------------------

XY = sample(8)
BOX = FunctionKernel(lambda s, t: float(abs(s - t) <= 0.5))
count = lambda X: len(X) if hasattr(X, "__len__") and len(X) > 1 else 8  # noqa: E731
WITH_DATA = {
    "ridge": lambda k, X, y, lam: ridge(k, X, y, lam),
    "ridge_path": lambda k, X, y, lam: ridge_path(k, X, y, [lam, lam]),
    "leave_one_out": lambda k, X, y, lam: leave_one_out(k, X, y, lam),
    "leave_fold_out": lambda k, X, y, lam: leave_fold_out(
        k, X, y, lam, np.array_split(np.arange(count(X)), 2)),
    "few folds": lambda k, X, y, lam: cross_validate(k, X, y, [lam], folds=2, rng=0),
    "many folds": lambda k, X, y, lam: cross_validate(k, X, y, [lam], folds=count(X), rng=0),
    "gp_posterior": lambda k, X, y, lam: gp_posterior(k, X, y, lam, X),
    "evidence": lambda k, X, y, lam: log_marginal_likelihood(k, X, y, lam),
}
WITHOUT_Y = {
    "smoother_matrix": lambda k, X, y, lam: smoother_matrix(k, X, lam),
    "degrees_of_freedom": lambda k, X, y, lam: degrees_of_freedom(k, X, lam),
}
every = pytest.mark.parametrize("call", (WITH_DATA | WITHOUT_Y).values(),
                                ids=(WITH_DATA | WITHOUT_Y).keys())


@every
def test_a_penalty_lost_in_rounding_is_refused(call):
    """prop-ridge-rounding: K + λI is K to the computer for λ = 1e-40, but not for 1e-12."""
    with pytest.raises(ValueError, match="(lams?|noise) must be at least .* rounding errors"):
        call(Gaussian(1.0), *XY, 1e-40)
    assert call(Gaussian(1.0), *XY, 1e-12) is not None


def test_a_penalty_of_zero_is_refused_with_advice():
    """prop-ridge-smoother, part 3: the limit is the interpolant."""
    X, y = XY
    for lam, advice in ((0.0, "interpolate"), (1e-18, "rounding errors")):
        with pytest.raises(ValueError, match=advice):
            ridge(Gaussian(1.0), X, y, lam)
    limit = interpolate(Gaussian(1.0), X, y)(X + 0.1)
    gaps = [np.abs(ridge(Gaussian(1.0), X, y, lam)(X + 0.1) - limit).max() for lam in (1e-4, 1e-6, 1e-8)]
    assert gaps[2] < 0.2 * gaps[1] < 0.04 * gaps[0]


@every
def test_a_function_that_is_no_kernel_is_refused(call):
    """K + λI may be invertible all the same (What breaks)."""
    x = np.array([0.0, 0.4, 0.8, 1.2, 1.6, 2.0])
    assert np.linalg.eigvalsh(BOX(x) + 0.9 * np.eye(6)).min() > 0
    with pytest.raises(ValueError, match="kernel must be positive definite"):
        call(BOX, x, np.ones(6), 0.9)


@pytest.mark.parametrize("folds", [2, 12])
def test_no_kernel_of_a_list_escapes_the_check(folds):
    """thm-ridge-rkhs asks for kernels, also for one that would not be chosen; a triangle is one
    where a box is none."""
    x = np.linspace(0, 2, 12)
    for kernels in ([BOX, Gaussian(1.0)], [Gaussian(1.0), BOX]):
        with pytest.raises(ValueError, match="positive definite"):
            cross_validate(kernels, x, np.sin(x), [2.0], folds=folds, rng=0)
    triangle = FunctionKernel(lambda s, t: max(0.0, 1 - 2 * abs(s - t)))
    found = cross_validate([triangle, Gaussian(1.0)], x, np.sin(x), [2.0], folds=folds, rng=0)
    assert found.kernel == Gaussian(1.0) and found.errors[0, 0] > found.errors[1, 0] > 0


def test_overflow_is_reported():
    """thm-ridge-rkhs in floats: weights and errors that no float can hold are refused under
    the name of y; those of values 1e50 times smaller scale with them."""
    X, y = XY
    tiny, k = 1e-300 * Gaussian(1.0), Gaussian(1.0)
    huge, halves = np.full(8, 1.7e308), [range(4), range(4, 8)]
    for call in (lambda v: ridge(tiny, X, v, 1e-300).weights,
                 lambda v: ridge_path(tiny, X, v, [1e-300]).weights,
                 lambda v: cross_validate(k, X, v, [1.0], folds=2, rng=0).errors,
                 lambda v: cross_validate(k, X, v, [1.0], folds=8, rng=0).errors,
                 lambda v: log_marginal_likelihood(k, X, v, 1.0),
                 lambda v: gp_posterior(tiny, X, v, 1e-300, X)[0],
                 # Only the test set has large values.
                 lambda v: cross_validate(k, X, [v[0], 0, 0, 0, 0, 0, 0, 0], [1.0], folds=2,
                                          test=[0], rng=0).test_error):
        with pytest.raises(ValueError, match="^y gave"):
            call(1e200 * y)
        assert np.isfinite(call(1e2 * y)).all()
    for call in (lambda v: leave_one_out(k, X, v, 1.0), lambda v: leave_fold_out(k, X, v, 1.0, halves),
                 lambda v: ridge_path(k, X, v, [1.0]).leave_one_out[0]):
        with pytest.raises(ValueError, match="^y gave"):
            call(huge)
        assert np.allclose(call(1e-10 * huge) / 1e298, call(np.full(8, 1.7)))
    with pytest.raises(ValueError, match="kernel"):
        ridge(1e308 * Gaussian(10.0), X, y, 1e308)
    assert np.allclose(ridge(1e300 * k, X, y, 1e300)(X), ridge(k, X, y, 1.0)(X))


@pytest.mark.parametrize("wrong, right, name", [
    ({"folds": 9}, {"folds": 8}, "folds"), ({"folds": 1}, {"folds": 2}, "folds"),
    ({"folds": [range(8)]}, {"folds": [range(4), range(4, 8)]}, "folds"),
    ({"folds": 7, "test": 2}, {"folds": 6, "test": 2}, "folds"),
    ({"test": 7}, {"test": 5}, "test"), ({"test": list(range(7))}, {"test": list(range(5))}, "test"),
    ({"test": None}, {"test": []}, "test"), ({"test": [8]}, {"test": [7]}, "test"),
    ({"test": [[0], [1, 2]]}, {"test": [0, 1, 2]}, "test"),
    ({"test": np.array(2)}, {"test": np.int64(2)}, "test"),
    ({"folds": [[0, 1], [2, 3]], "test": 4}, {"folds": [[0, 1], [2, 3]], "test": [4, 5, 6, 7]}, "test"),
    ({"folds": [[0, 1, 2], [2, 3], [4, 5, 6, 7]]}, {"folds": [[0, 1, 2], [3], [4, 5, 6, 7]]}, "folds"),
    ({"folds": [[0, 1], [2, 3], [4, 5, 6]], "test": [6, 7]},
     {"folds": [[0, 1], [2, 3], [4, 5]], "test": [6, 7]}, "folds"),
])
def test_folds_and_a_test_set_are_a_partition(wrong, right, name):
    """alg-ridge-cv: every point once, at least two folds, and a point in each."""
    call = partial(cross_validate, Gaussian(1.0), *XY, [1.0])
    with pytest.raises(ValueError, match=f"^{name} must"):
        call(**{"rng": 0, "folds": 3} | wrong)
    found = call(**{"rng": 0, "folds": 3} | right)
    assert sorted(np.concatenate([*found.folds, found.test]).tolist()) == list(range(8))


def exact_ridge(x, y, lam):
    """Weights and leave-one-out errors for the Gaussian kernel of width one, in sixty digits."""
    D = decimal.Decimal
    with decimal.localcontext() as context:
        context.prec = 60
        x, n = [D(float(v)) for v in x], len(x)
        K = [[(-(a - b) ** 2 / 2).exp() + (D(lam) if a is b else 0) for b in x] for a in x]
        right = [[D(float(v)), *(D(int(i == j)) for j in range(n))] for i, v in enumerate(y)]
        rows = exact_solve(K, right)
        return (np.array([float(row[0]) for row in rows]),
                np.array([float(row[0] / row[1 + i]) for i, row in enumerate(rows)]))


@pytest.mark.parametrize(("n", "factors_in_doubt"), [(12, ()), (24, (1.01, 4, 16))])
def test_a_penalty_near_rounding_gives_a_warning_or_right_weights(n, factors_in_doubt):
    """prop-ridge-rounding: silence means that the digits are there."""
    rng = np.random.default_rng(n)
    x = np.sort(rng.uniform(-3, 3, size=n))
    y, k = np.sin(x) + 0.4 * rng.normal(size=n), Gaussian(1.0)
    # The Cholesky factor gives an estimate of the eigenvalue within √n.
    for factor in (1.01, 4, 16, 400, 4000):
        lam = factor * np.finfo(float).eps * k(x).sum(axis=1).max()
        weights, left_out = exact_ridge(x, y, lam)
        calls = {"ridge": (lambda lam=lam: ridge(k, x, y, lam).weights, weights),
                 "path": (lambda lam=lam: ridge_path(k, x, y, [lam]).weights[0], weights),
                 "one": (lambda lam=lam: leave_one_out(k, x, y, lam), left_out),
                 "fold": (lambda lam=lam: leave_fold_out(k, x, y, lam, np.arange(n)[:, None]),
                          left_out)}
        for name, (call, exact) in calls.items():
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                found = call()
            in_doubt = [w for w in heard if w.category is PrecisionWarning]
            assert bool(in_doubt) == (factor in factors_in_doubt), (name, factor)
            # Measured: at most 1 % where no warning was given.
            if not in_doubt:
                assert np.abs(found - exact).max() < 0.03 * np.abs(exact).max(), (name, factor)


def test_every_function_of_a_small_penalty_warns():
    """prop-ridge-rounding: Cholesky, eigenvalues and tridiagonal matrices."""
    x, k = np.linspace(-3, 3, 40), Gaussian(1.0)
    y, lam = np.sin(x), 4 * np.finfo(float).eps * k(x).sum(axis=1).max()
    for call in (lambda: smoother_matrix(k, x, lam), lambda: degrees_of_freedom(k, x, lam),
                 lambda: gp_posterior(k, x, y, lam, [0.0]),
                 lambda: log_marginal_likelihood(k, x, y, lam),
                 lambda: cross_validate(k, x, y, [lam, 1.0], folds=4, rng=0),
                 lambda: cross_validate(k, x, y, [lam, 1.0], folds=40, rng=0)):
        with pytest.warns(PrecisionWarning, match="least eigenvalue"):
            call()


@given(seeds, st.floats(0.01, 0.95))
def test_rounding_errors_beside_a_penalty(seed, theta):
    """prop-ridge-rounding, and that its first bound is attained."""
    rng = np.random.default_rng(seed)
    F, E, y = rng.normal(size=(6, 4)), rng.normal(size=(6, 6)), rng.normal(size=6)
    A = F @ F.T + 0.1 * np.eye(6)
    mu, E = np.linalg.eigvalsh(A)[0], E + E.T
    G, H = np.linalg.inv(A), np.linalg.inv(A + theta * mu * E / np.linalg.norm(E, 2))
    alpha, beta, g, h = G @ y, H @ y, G.diagonal(), H.diagonal()
    size, room = np.linalg.norm(alpha), 1 + 1e-9
    assert np.linalg.norm(beta - alpha) <= room * theta / (1 - theta) * size
    assert (h >= g / (1 + theta) / room).all() and (h <= room * g / (1 - theta)).all()
    bound = theta * abs(alpha / g) + theta * np.sqrt((1 + theta) / (1 - theta) * mu / g) * size
    assert (abs(beta / h - alpha / g) <= room * bound).all()
    v = np.linalg.eigh(A)[1][:, 0]
    worst = np.linalg.solve(A - theta * mu * np.outer(v, v), v)
    assert np.isclose(np.linalg.norm(worst - v / mu), theta / (1 - theta) / mu)


@pytest.mark.parametrize("lam, doubt", [(63.5, True), (64.5, False)])
@pytest.mark.parametrize("factor", [ridge_factor, ridge_spectrum])
def test_a_penalty_has_a_certain_digit_above_64_rounding_errors(factor, lam, doubt):
    """prop-ridge-rounding: the least eigenvalue of K + λI is λ, beside ‖K‖ = 2."""
    K = np.diag([2.0, 0.0])
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        factor(K, 2 * lam * np.finfo(float).eps)
    assert len(heard) == doubt
