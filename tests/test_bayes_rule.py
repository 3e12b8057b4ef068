"""Kernel sum, chain and Bayes rules: the identities of the chapter `bayes_rule`."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rkhs_lit import (
    Delta,
    Features,
    FunctionKernel,
    Gaussian,
    GaussianEmbedding,
    Laplace,
    Linear,
    Pairs,
    RKHSFunction,
    RKHSOperator,
    TensorProduct,
    cross_covariance,
    embedding_distance,
    hs_norm,
    inner,
    interpolate,
    mean_embedding,
    norm,
    regularised_solve,
)
from rkhs_lit.bayes_rule import (
    BayesValidation,
    Coordinates,
    KernelPosterior,
    kernel_bayes_rule,
    kernel_chain_rule,
    kernel_sum_rule,
    posterior_weights,
    validate_bayes_rule,
)
from rkhs_lit.conditional_embedding import conditional_embedding

seeds = st.integers(0, 2**32 - 1)


def table(rng, shape):
    """A table of positive probabilities, none of them tiny."""
    p = rng.uniform(0.2, 1.0, size=shape)
    return p / p.sum()


def sample(rng, n=25):
    Y = rng.normal(size=n)
    return Y + 0.5 * rng.normal(size=n), Y


def gram_weights(k, l, X, Y, prior, lam):
    """Equation eq-kbr-prior-weights as it stands."""
    n = len(Y)
    return np.linalg.solve(l(Y) + n * lam * np.eye(n), prior(Y))


def gram_posterior(K, w, kx, eps):
    """Both forms of eq-kbr-posterior-weights as they stand."""
    A, I = K * w, np.eye(len(w))
    first = w * np.linalg.solve(A @ A + eps * I, A @ kx)
    second = A.T @ np.linalg.solve(A.T @ A.T + eps * I, w * kx)
    return first, second


# The lemma and the theorems on the population


@given(seeds, st.floats(1e-6, 10.0))
def test_regularised_inverses_obey_their_bounds(seed, shift):
    """lem-kbr-limits: all inequalities, for a positive and for an indefinite matrix."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    h, u, size = rng.normal(size=5), rng.normal(size=5), np.linalg.norm
    slack = 1 + 1e-9  # rounding
    A = (Q * np.array([2.0, 0.5, 1e-3, 0.0, 0.1])) @ Q.T
    d = shift * np.linalg.solve(A + shift * np.eye(5), h)
    assert size(d) <= size(h) * slack
    assert d @ A @ d <= shift * h @ h / 4 * slack
    assert size(shift * np.linalg.solve(A + shift * np.eye(5), A @ u)) <= shift * size(u) * slack
    B = (Q * np.array([-2.0, 0.5, 1e-3, 0.0, -0.1])) @ Q.T
    inverse = np.linalg.inv(B @ B + shift * np.eye(5))
    assert size(inverse @ B, 2) <= slack / (2 * shift**0.5)
    assert size(shift * inverse @ h) <= size(h) * slack
    assert size(shift * inverse @ B @ u) <= shift**0.5 * size(u) / 2 * slack


def test_the_limit_of_a_regularised_inverse_is_the_part_in_the_null_space():
    """lem-kbr-limits: λ(A + λ)⁻¹h tends to h - Πh, and so does the squared form."""
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    A, h = (Q * [1.0, 0.5, 0.0]) @ Q.T, np.ones(3)
    limit = Q[:, 2] * (Q[:, 2] @ h)
    for matrix in (A, A @ A):
        d = 1e-9 * np.linalg.solve(matrix + 1e-9 * np.eye(3), h)
        assert np.allclose(d, limit, atol=1e-7)  # λ over the least eigenvalue


@settings(deadline=None, max_examples=30)
@given(seeds, st.sampled_from([1e-1, 1e-3, 1e-5]))
def test_the_sum_rule_errs_less_than_its_bounds(seed, lam):
    """thm-kernel-sum-rule: both bounds of part 2, on random tables with Gaussian kernels."""
    rng = np.random.default_rng(seed)
    p, pi = table(rng, (3, 4)), table(rng, 4)
    k, l, xs, ys = Gaussian(0.7), Gaussian(0.5), np.arange(3.0), np.arange(4.0)
    marginal = p.sum(axis=0)
    eta = interpolate(l, ys, pi / marginal)
    Cxy, Cyy = RKHSOperator(k, xs, l, ys, p), RKHSOperator(l, ys, l, ys, marginal)
    mu_pi, wanted = mean_embedding(l, ys, pi), mean_embedding(k, xs, p @ (pi / marginal))
    assert np.allclose(Cyy(eta)(ys), mu_pi(ys)) and np.allclose(Cxy(eta)(xs), wanted(xs))
    estimate = Cxy(regularised_solve(Cyy, mu_pi, lam))
    assert norm(estimate - wanted) <= np.sqrt(lam) * norm(eta) / 2 + 1e-7
    f = RKHSFunction(k, xs, rng.normal(size=3))
    h = interpolate(l, ys, f(xs) @ p / marginal)
    gap = abs(inner(f, estimate) - inner(f, wanted))
    assert gap <= lam * norm(h) * norm(eta) + 1e-10


def test_the_sum_rule_needs_only_one_of_the_two_functions_in_the_space():
    """thm-kernel-sum-rule, part 1: a conditional expectation in H_l is enough. With the linear
    kernel l the density ratio of y = 1, 2 is not in the space, but E[f(X) | Y = y] = y is."""
    k, l, points = Linear(), Linear(), [1.0, 2.0]
    Cxy = RKHSOperator(k, points, l, points, [0.5, 0.5])  # X = Y
    Cyy = RKHSOperator(l, points, l, points, [0.5, 0.5])
    prior = mean_embedding(l, points, [0.9, 0.1])
    estimate = Cxy(regularised_solve(Cyy, prior, 1e-9))
    assert np.isclose(estimate([1.0])[0], 1.1)  # E_Q X
    with pytest.raises(ValueError):
        interpolate(l, points, [1.8, 0.2])


@settings(deadline=None, max_examples=30)
@given(seeds, st.sampled_from([1e-1, 1e-3, 1e-5]))
def test_the_sum_rule_with_a_density_ratio_near_the_space(seed, lam):
    """thm-kernel-sum-rule, part 3: eq-kbr-near for any u, with a kernel l of rank one."""
    rng = np.random.default_rng(seed)
    p, pi = table(rng, (3, 4)), table(rng, 4)
    k, l, xs, ys = Gaussian(0.7), Linear(), np.arange(3.0), np.arange(1.0, 5.0)
    marginal = p.sum(axis=0)
    Cxy, Cyy = RKHSOperator(k, xs, l, ys, p), RKHSOperator(l, ys, l, ys, marginal)
    wanted = mean_embedding(k, xs, p @ (pi / marginal))
    error = norm(Cxy(regularised_solve(Cyy, mean_embedding(l, ys, pi), lam)) - wanted)
    for slope in rng.normal(size=5):
        delta = np.sqrt(marginal @ (slope * ys - pi / marginal) ** 2)
        assert error <= 2 * delta + np.sqrt(lam) * abs(slope) / 2 + 1e-9


def test_a_jump_of_the_density_ratio_costs_the_rate_and_a_poor_kernel_the_limit():
    """thm-kernel-sum-rule, part 3: with X = Y the Gaussian kernel converges, the linear one does not."""
    y = np.linspace(-1, 1, 200)
    pi = (np.abs(y) <= 0.5) / np.sum(np.abs(y) <= 0.5)
    k, goal = Laplace(0.5), RKHSFunction(Laplace(0.5), y, pi)
    for l, last in ((Gaussian(0.5), 0.03), (Linear(), np.inf)):
        error = [norm(kernel_sum_rule(k, l, y, y, RKHSFunction(l, y, pi), lam) - goal) for lam in (1e-2, 1e-6)]
        assert error[1] < last
        if l == Gaussian(0.5):
            assert 1e-3 < error[1] < 0.5 * error[0]  # far above the sqrt(λ) of part 2
        else:
            assert np.isclose(error[1], norm(goal))


def test_both_chain_rules_converge_and_differ_before_the_limit():
    """thm-kernel-chain-rule: one limit, two estimators."""
    rng = np.random.default_rng(0)
    p, pi = table(rng, (3, 4)), table(rng, 4)
    k, l, xs, ys = Gaussian(0.7), Gaussian(0.8), np.arange(3.0), np.arange(4.0)
    marginal = p.sum(axis=0)
    eta = interpolate(l, ys, pi / marginal)
    Cxy, Cyy = RKHSOperator(k, xs, l, ys, p), RKHSOperator(l, ys, l, ys, marginal)
    Cpi = RKHSOperator(l, ys, l, ys, pi)
    pairs = Pairs(np.repeat(xs, 4), np.tile(ys, 3))
    joint = RKHSOperator(TensorProduct(k, l), pairs, l, np.tile(ys, 3), p.ravel())
    wanted = RKHSOperator(k, xs, l, ys, p * pi / marginal)
    errors = []
    for lam in (1e-2, 1e-5):
        first = Cxy @ regularised_solve(Cyy, Cpi, lam)
        q = joint(regularised_solve(Cyy, mean_embedding(l, ys, pi), lam)).weights
        second = RKHSOperator(k, xs, l, ys, q.reshape(3, 4))
        assert hs_norm(second - wanted) <= np.sqrt(lam) * norm(eta) / 2
        errors.append([hs_norm(first - wanted), hs_norm(second - wanted), hs_norm(first - second)])
    assert min(errors[0]) > 1e-3 and max(errors[1]) < 1e-3
    assert np.allclose(q.reshape(3, 4), p * pi / marginal, atol=1e-3)


def test_bayes_rule_inverts_the_operators_of_the_prior():
    """thm-kernel-bayes-rule: C h = C_XY g for posterior expectations, and both inverses find h."""
    rng = np.random.default_rng(1)
    q = table(rng, (3, 4))
    k, l, xs, ys = Gaussian(0.6), Gaussian(0.8), np.arange(3.0), np.arange(4.0)
    C = RKHSOperator(k, xs, k, xs, q.sum(axis=1))
    Cxy = RKHSOperator(k, xs, l, ys, q)
    g = RKHSFunction(l, ys, rng.normal(size=4))
    h = interpolate(k, xs, q @ g(ys) / q.sum(axis=1))
    assert np.allclose(C(h)(xs), Cxy(g)(xs))
    u = interpolate(k, xs, np.linalg.solve(k(xs) * q.sum(axis=1), h(xs)))
    assert np.allclose(C(u)(xs), h(xs))
    for eps in (1e-2, 1e-4):
        plain = regularised_solve(C, Cxy(g), eps)
        squared = regularised_solve(C @ C, C(Cxy(g)), eps)
        assert norm(plain - h) <= eps * norm(u) + 1e-7
        assert norm(squared - h) <= eps**0.5 * norm(u) / 2 + 1e-7


# From a sample


@settings(deadline=None, max_examples=20)
@given(seeds, st.floats(1e-3, 1.0), st.floats(1e-4, 1.0))
def test_gram_formulas_equal_compositions_of_operators(seed, lam, eps):
    """thm-kbr-gram: weights of the three rules from operators that never see a Gram matrix."""
    rng = np.random.default_rng(seed)
    X, Y = sample(rng, 12)
    k, l = Gaussian(0.8), Laplace(0.6)
    prior = RKHSFunction(l, rng.normal(size=4), 0.3 * rng.normal(size=4))  # signed
    Cyy = cross_covariance(l, l, Y, Y, centred=False)
    Cxy = cross_covariance(k, l, X, Y, centred=False)
    eta = regularised_solve(Cyy, prior, lam)
    w = gram_weights(k, l, X, Y, prior, lam)
    assert np.allclose(eta(Y), 12 * w)
    t = rng.normal(size=5)
    assert np.allclose(kernel_sum_rule(k, l, X, Y, prior, lam)(t), Cxy(eta)(t), atol=1e-7)
    pairs = cross_covariance(TensorProduct(k, l), l, Pairs(X, Y), Y, centred=False)
    chain = kernel_chain_rule(k, l, X, Y, prior, lam)
    flat = Pairs(np.repeat(t, 5), np.tile(t, 5))
    assert np.allclose(chain.values(t, t).ravel(), pairs(eta)(flat), atol=1e-7)
    Cpi = RKHSOperator(k, X, k, X, w)
    at_x = RKHSFunction(k, [0.4], [1.0])
    by_operators = chain.adjoint()(regularised_solve(Cpi @ Cpi, Cpi(at_x), eps))
    posterior = kernel_bayes_rule(k, l, X, Y, prior, lam, eps)
    # The square in the peer loses digits: 1e-16 over eps.
    assert np.allclose(posterior(0.4)(t), by_operators(t), atol=1e-6)


def test_the_product_form_of_the_chain_rule_has_the_same_first_marginal():
    """thm-kbr-gram, part 2: the weights (L + nλI)⁻¹ L' diag(γ), with row sums w."""
    X, Y = sample(np.random.default_rng(2), 10)
    k = l = Gaussian(0.7)
    prior = RKHSFunction(l, [0.1, 0.8], [0.7, 0.3])
    Cyy = cross_covariance(l, l, Y, Y, centred=False)
    Cxy = cross_covariance(k, l, X, Y, centred=False)
    Cpi = RKHSOperator(l, prior.points, l, prior.points, prior.weights)
    W = np.linalg.solve(l(Y) + 10 * 0.05 * np.eye(10), l(Y, prior.points) * prior.weights)
    composed = Cxy @ regularised_solve(Cyy, Cpi, 0.05)
    assert np.allclose(composed.values(X, Y), k(X) @ W @ l(prior.points, Y))
    assert np.allclose(W.sum(axis=1), kernel_sum_rule(k, l, X, Y, prior, 0.05).weights, atol=1e-9)


def exact(A):
    return np.array([[Fraction(int(a)) for a in row] for row in A])


def solve_exact(A, B):
    """A⁻¹ B by elimination in fractions."""
    M = np.concatenate([A, B], axis=1)
    for i in range(len(A)):
        p = next(j for j in range(i, len(A)) if M[j, i] != 0)
        M[[i, p]] = M[[p, i]]
        M[i] = M[i] / M[i, i]
        for j in range(len(A)):
            if j != i:
                M[j] = M[j] - M[j, i] * M[i]
    return M[:, len(A) :]


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(-3, 3), min_size=4, max_size=4), seeds)
def test_both_forms_of_the_posterior_weights_are_equal_in_fractions(w, seed):
    """thm-kbr-gram, part 3: exact equality for signed weights and a singular Gram matrix; the
    form that mixes them is another one unless K and Λ commute."""
    B = np.random.default_rng(seed).integers(-2, 3, size=(4, 3))
    K, eps = exact(B @ B.T), Fraction(1, 7)
    w = np.array([Fraction(v, 5) for v in w])
    A, I = K * w, exact(np.eye(4))
    first = w[:, None] * solve_exact(A @ A + eps * I, A @ K)
    second = A.T @ solve_exact(A.T @ A.T + eps * I, w[:, None] * K)
    assert (first == second).all()


def test_the_printed_second_form_differs():
    """thm-kbr-gram, part 3: (K Λ)² in the second form is wrong, by hand on two points."""
    K, w, eps = exact([[2, 1], [1, 2]]), np.array([Fraction(1), Fraction(2)]), Fraction(1)
    A, I = K * w, exact(np.eye(2))
    first = w[:, None] * solve_exact(A @ A + eps * I, A @ K)
    printed = A.T @ solve_exact(A @ A + eps * I, w[:, None] * K)
    assert (first != printed).any()
    same = np.array([Fraction(2), Fraction(2)])  # Λ commutes with everything
    A = K * same
    assert (same[:, None] * solve_exact(A @ A + eps * I, A @ K)
            == A.T @ solve_exact(A @ A + eps * I, same[:, None] * K)).all()


@settings(deadline=None, max_examples=25)
@given(seeds, st.floats(1e-4, 10.0), st.booleans())
def test_the_low_rank_form_equals_the_gram_forms(seed, eps, repeat):
    """thm-bayes-low-rank: with signed weights, also for repeated points."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=15)
    if repeat:
        X[5:10] = X[:5]
    k, w, T = Gaussian(0.7), rng.normal(size=15) / 15, rng.normal(size=3)
    phi = Coordinates(Features(k, X), 1e-15)
    G = phi.G
    assert np.allclose(G @ G.T, k(X), atol=1e-13)
    assert not repeat or G.shape[1] <= 10
    assert np.allclose(G @ phi(Features(k, T)).T, k(X, T), atol=1e-6)
    zeta = posterior_weights(G, w, phi(Features(k, X[:3])).T, eps, "squared")
    for form in gram_posterior(k(X), w, k(X, X[:3]).T[0], eps):
        assert np.allclose(zeta[:, 0], form, atol=1e-9 / eps)
    plus = np.maximum(w, 0)
    clipped = posterior_weights(G, w, phi(Features(k, X[:3])).T, eps, "clipped")
    wanted = plus[:, None] * np.linalg.solve(k(X) * plus + eps * np.eye(15), k(X, X[:3]))
    assert np.allclose(clipped, wanted, atol=1e-9 / eps)


def test_the_resolvent_keeps_the_digits_that_squaring_loses():
    """thm-bayes-low-rank, part 2: a matrix with eigenvalues from 1 to 1e-9, √ε = 1e-9."""
    s = np.logspace(0, -9, 30) * np.where(np.arange(30) % 2, 1, -1)
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(30, 30)))[0]
    # G = Q and w = s: S = Q' diag(s) Q, so ζ = s ∘ (s/(s² + ε)) ∘ Qφ.
    phi = np.ones(30)
    zeta = posterior_weights(Q, s, phi, 1e-18, "squared")
    wanted = s**2 / (s**2 + 1e-18) * (Q @ phi)
    # Condition number 1e9 times machine precision.
    assert np.abs(zeta - wanted).max() < 1e-6 * np.abs(wanted).max()
    many = posterior_weights(Q, s, np.eye(30), 1e-18, "squared") @ phi  # by eigenvectors
    assert np.abs(many - wanted).max() < 1e-6 * np.abs(wanted).max()
    A = Q.T @ (s[:, None] * Q)
    naive = s * (Q @ np.linalg.solve(A @ A + 1e-18 * np.eye(30), A @ phi))
    assert np.abs(naive - wanted).max() > 1e-3 * np.abs(wanted).max()


@pytest.mark.parametrize("method", ["squared", "clipped"])
def test_a_kernel_of_full_rank(method):
    """thm-bayes-low-rank: nothing is left out for the Laplace kernel, and many points T are one solve."""
    rng = np.random.default_rng(15)
    X, Y = sample(rng, 60)
    k, w, T = Laplace(0.5), rng.normal(size=60) / 60, rng.normal(size=90)
    fit = KernelPosterior(k, k, X, Y, w, 1e-4, method)
    if method == "squared":
        wanted = w[:, None] * np.linalg.solve((k(X) * w) @ (k(X) * w) + 1e-4 * np.eye(60), (k(X) * w) @ k(X, T))
    else:
        plus = np.maximum(w, 0)
        wanted = plus[:, None] * np.linalg.solve(k(X) * plus + 1e-4 * np.eye(60), k(X, T))
    assert np.allclose(fit.weights_at(T), wanted, atol=1e-9)
    assert np.allclose(fit.expectation(Y, T), Y @ wanted, atol=1e-9)


@pytest.mark.parametrize("lam", [1e-2, 1e-5])
def test_prior_weights_agree_with_the_full_system_and_with_transport(lam):
    """thm-bayes-low-rank, part 3: against Cholesky of L + nλI, in the plane, off the sample."""
    rng = np.random.default_rng(3)
    Y = rng.normal(size=(60, 2))
    X, k, l = Y[:, 0], Gaussian(0.5), Gaussian(1.0)
    prior = RKHSFunction(l, rng.normal(size=(5, 2)) * 1.5, rng.normal(size=5))
    mu = kernel_sum_rule(k, l, X, Y, prior, lam)
    w = gram_weights(k, l, X, Y, prior, lam)
    # tol = 1e-14 leaves 1e-7 in values off the sample, over λ at worst.
    assert np.allclose(mu.weights, w, rtol=0, atol=1e-8 / lam * np.abs(w).max())
    other = conditional_embedding(l, k, Y, X, lam).transport(prior)
    assert np.allclose(mu([0.3]), other([0.3]), atol=1e-6)


def test_a_coarse_tolerance_is_the_rule_for_the_projected_kernel():
    """thm-bayes-low-rank and thm-nystrom: with few pivots, the exact rule for k̂ = φ'φ."""
    rng = np.random.default_rng(4)
    X, Y = sample(rng, 40)
    k, w = Gaussian(0.5), rng.normal(size=40) / 40
    posterior = KernelPosterior(k, Gaussian(0.5), X, Y, w, 1e-3, tol=1e-2)
    phi = Coordinates(Features(k, X), 1e-2)
    G = phi.G
    assert G.shape[1] < 15
    first, _ = gram_posterior(G @ G.T, w, G @ phi(Features(k, [0.2]))[0], 1e-3)
    assert np.allclose(posterior.weights_at([0.2])[:, 0], first, atol=1e-10)


# Tables


@settings(deadline=None, max_examples=20)
@given(seeds, st.floats(1e-6, 0.5), st.floats(1e-6, 0.5))
def test_the_rules_on_tables_for_any_parameters(seed, lam, eps):
    """thm-kbr-tables, part 1: closed forms for delta kernels, on strings."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, size=(3, 2)) + np.array([[1, 0], [0, 1], [1, 1]])
    pairs = [(i, j) for i in range(3) for j in range(2) for _ in range(counts[i, j])]
    X, Y = ["abc"[i] for i, _ in pairs], ["uv"[j] for _, j in pairs]
    pi = table(rng, 2)
    d, n = Delta(), len(pairs)
    prior = RKHSFunction(d, ["u", "v"], pi)
    q = counts * pi / (counts.sum(axis=0) + n * lam)
    total = q.sum(axis=1, keepdims=True)
    assert np.allclose(kernel_sum_rule(d, d, X, Y, prior, lam)(list("abc")), total[:, 0])
    chain = kernel_chain_rule(d, d, X, Y, prior, lam)
    assert np.allclose(chain.values(list("abc"), ["u", "v"]), q)
    for method, wanted in (("squared", q * total / (total**2 + eps)), ("clipped", q / (total + eps))):
        fit = kernel_bayes_rule(d, d, X, Y, prior, lam, eps, method=method)
        assert np.allclose([fit(x)(["u", "v"]) for x in "abc"], wanted)


CLINIC = [[8, 2, 0], [1, 5, 2], [1, 1, 4]]
PATIENTS = [(i, j) for i in range(3) for j in range(3) for _ in range(CLINIC[i][j])]


def test_vanishing_parameters_give_bayes_theorem_to_twelve_digits():
    """thm-kbr-tables: the posterior of the town, computed in fractions, from the package."""
    town = [Fraction(9, 10), Fraction(2, 25), Fraction(1, 50)]
    joint = [[Fraction(CLINIC[i][j], sum(row[j] for row in CLINIC)) * town[j] for j in range(3)]
             for i in range(3)]
    wanted = [[float(v / sum(row)) for v in row] for row in joint]
    assert joint[2][2] / sum(joint[2]) == Fraction(2, 17)
    d = Delta()
    X, Y = zip(*PATIENTS)
    prior = RKHSFunction(d, [0, 1, 2], [float(p) for p in town])
    for method, eps in (("squared", 1e-28), ("clipped", 1e-14)):
        fit = kernel_bayes_rule(d, d, list(X), list(Y), prior, 1e-14, eps, method=method)
        assert np.allclose([fit(i)([0, 1, 2]) for i in range(3)], wanted, rtol=1e-12, atol=1e-15)
    total = kernel_sum_rule(d, d, list(X), list(Y), prior, 1e-14)([0, 1, 2])
    assert np.allclose(total, [float(sum(row)) for row in joint], rtol=1e-12)


def test_other_strict_kernels_have_the_same_limit():
    """thm-kbr-tables, part 2: Gaussian and Laplace kernels give the embedding of the posterior."""
    X, Y = (np.array(v, dtype=float) for v in zip(*PATIENTS))
    k, l = Gaussian(0.8), Laplace(1.0)
    prior = RKHSFunction(l, [0.0, 1.0, 2.0], [0.9, 0.08, 0.02])
    fit = kernel_bayes_rule(k, l, X, Y, prior, 1e-11, 1e-20)
    wanted = mean_embedding(l, [0.0, 1.0, 2.0], [27 / 34, 3 / 34, 2 / 17])
    t = np.linspace(-1, 3, 9)
    assert np.allclose(fit(2.0)(t), wanted(t), atol=1e-7)


def test_a_prior_on_unseen_causes_loses_its_mass():
    """def-kbr-setting: without a density the weights sum to the mass of the causes seen."""
    d = Delta()
    X, Y = (list(v) for v in zip(*PATIENTS))
    prior = RKHSFunction(d, [0, 1, 2, 3], [0.6, 0.1, 0.1, 0.2])
    assert np.isclose(kernel_sum_rule(d, d, X, Y, prior, 1e-13).weights.sum(), 0.8)


def test_two_observations_in_either_order():
    """thm-kbr-tables, applied twice: posteriors of independent observations multiply."""
    d = Delta()
    X, Y = (list(v) for v in zip(*PATIENTS))
    prior = RKHSFunction(d, [0, 1, 2], [0.9, 0.08, 0.02])
    likelihood = np.array(CLINIC) / np.sum(CLINIC, axis=0)
    wanted = np.array([0.9, 0.08, 0.02]) * likelihood[1] * likelihood[2]
    for a, b in ((1, 2), (2, 1)):
        first = kernel_bayes_rule(d, d, X, Y, prior, 1e-14, 1e-28)(a)
        second = kernel_bayes_rule(d, d, X, Y, first, 1e-14, 1e-28)(b)
        assert np.allclose(second([0, 1, 2]), wanted / wanted.sum(), rtol=1e-10)


# With more data


@given(seeds, st.floats(1e-4, 1.0), st.floats(1e-3, 0.1))
def test_the_bound_of_the_consistency_proof(seed, eps, scale):
    """thm-kbr-consistency: eq-kbr-split and eq-kbr-bound for matrices, and eq-kbr-eta-error."""
    rng = np.random.default_rng(seed)
    size, I = np.linalg.norm, np.eye(4)
    B = rng.normal(size=(4, 4))
    C, E = B @ B.T / 4, rng.normal(size=(2, 4, 4)) * scale
    C_hat, h, g = C + E[0] + E[0].T, rng.normal(size=4), rng.normal(size=4)
    Cxy = np.outer(C @ h, g) / (g @ g)
    Cxy_hat = Cxy + E[1]
    delta = max(size(C_hat - C, 2), size(E[1], 2))
    h_n = np.linalg.solve(C_hat @ C_hat + eps * I, C_hat @ Cxy_hat @ g)
    bias = size(eps * np.linalg.solve(C @ C + eps * I, h))
    bound = delta / (2 * eps**0.5) * (size(g) + 3 * size(h)) + bias
    assert size(h_n - h) <= bound * (1 + 1e-9)
    D = E[0] @ E[0].T  # keeps the estimate positive
    eta, m = rng.normal(size=4), rng.normal(size=4) * scale
    gap = max(size(D, 2), size(m))
    eta_hat = np.linalg.solve(C + D + eps * I, C @ eta + m)
    bias = size(eps * np.linalg.solve(C + eps * I, eta))
    assert size(eta_hat - eta) <= (gap / eps * (1 + 2 * size(eta)) + bias) * (1 + 1e-9)


def normal_posterior(l, x):
    """Prior N(0.6, 1/4), likelihood N(y, 1/4): eq-kbr-conjugate."""
    return GaussianEmbedding(l, (0.6 + x) / 2, 1 / 8)


@pytest.mark.parametrize("method", ["squared", "clipped"])
def test_the_normal_posterior_is_approached(method):
    """thm-kbr-consistency on the normal model: the error falls, and is small at 3000 points."""
    k = l = Gaussian(0.5)
    prior = GaussianEmbedding(l, 0.6, 0.25)
    rng = np.random.default_rng(0)
    errors = []
    for n in (60, 3000):
        X, Y = sample(rng, n)
        eps = 0.1 / n if method == "squared" else (0.1 / n) ** 0.5
        fit = kernel_bayes_rule(k, l, X, Y, prior, 0.1 * n**-0.5, eps, method=method)
        errors.append(max(embedding_distance(fit(x), normal_posterior(l, x)) for x in (0.0, 1.0)))
        w = fit.weights_at([1.0])[:, 0]
    assert errors[1] < 0.06 < errors[0]
    assert abs(w @ Y / w.sum() - 0.8) < 0.05
    assert np.isclose(fit.expectation(lambda y: y, [1.0])[0], w @ Y)


def test_the_conjugate_posterior_by_quadrature():
    """eq-kbr-conjugate, against the product of the two densities on a grid."""
    y = np.linspace(-6, 6, 4001)
    density = np.exp(-((y - 0.6) ** 2) / (2 * 0.25) - (1.4 - y) ** 2 / (2 * 0.25))
    density /= density.sum()
    mu = normal_posterior(Gaussian(0.5), 1.4)
    assert np.isclose(density @ y, mu.mean[0]) and np.isclose(density @ y**2 - (density @ y) ** 2, 1 / 8)


# Weights and scores


def test_the_prior_weights_minimise_the_least_squares_objective():
    """prop-density-ratio: n w_i are the values of the minimiser, and eq-kbr-lsif on a table."""
    rng = np.random.default_rng(5)
    X, Y = sample(rng, 20)
    l, lam = Gaussian(0.6), 0.05
    prior = RKHSFunction(l, [0.0, 1.0], [0.5, 0.5])
    w = kernel_sum_rule(Linear(), l, X, Y, prior, lam).weights

    # η̂ = (prior - Ψ w)/λ, from the equation (Ĉ + λ) η̂ = prior.
    eta = (prior - RKHSFunction(l, Y, w)) / lam
    assert np.allclose(eta(Y), 20 * w, atol=1e-6)

    def objective(d):
        return np.mean(d(Y) ** 2) / 2 - inner(d, prior) + lam * inner(d, d) / 2

    for _ in range(5):
        d = RKHSFunction(l, rng.normal(size=3), 0.1 * rng.normal(size=3))
        assert objective(eta + d) > objective(eta)
    p, ratio, d = table(rng, 4), rng.uniform(0, 2, size=4), rng.normal(size=4)
    left = p @ d**2 / 2 - (p * ratio) @ d
    assert np.isclose(left, p @ (d - ratio) ** 2 / 2 - p @ ratio**2 / 2)


def test_negative_weights_occur_and_clipping_brings_them_nearer():
    """prop-density-ratio, part 3, on the normal model."""
    X, Y = sample(np.random.default_rng(0), 400)
    l = Gaussian(0.5)
    w = kernel_sum_rule(l, l, X, Y, GaussianEmbedding(l, 0.6, 0.25), 1e-4).weights
    truth = 2 * np.exp(-2 * (Y - 0.6) ** 2 + Y**2 / 2) / 400
    below = w < 0
    assert below.sum() > 5 and abs(w.sum() - 1) < 0.01
    assert (np.abs(truth[below]) < np.abs(w[below] - truth[below])).all()
    assert np.mean((w - truth) ** 2) < 0.05 * np.mean(truth**2)


def test_the_risk_splits_into_the_error_and_a_constant():
    """prop-kbr-scores, part 2: eq-kbr-risk on a table, for arbitrary u."""
    rng = np.random.default_rng(6)
    p, pi = table(rng, (3, 4)), table(rng, 4)
    L = Gaussian(1.0)(np.arange(4.0))
    eta = pi / p.sum(axis=0)
    q = p * eta
    posterior = q / q.sum(axis=1, keepdims=True)

    def square(c):
        return c @ L @ c

    constants = []
    for _ in range(3):
        u = rng.normal(size=(3, 4))
        risk = sum(p[i, j] * eta[j] * square(np.eye(4)[j] - u[i]) for i in range(3) for j in range(4))
        error = sum(q[i].sum() * square(posterior[i] - u[i]) for i in range(3))
        constants.append(risk - error)
    assert np.ptp(constants) < 1e-12 and constants[0] > 0


@pytest.mark.parametrize("method", ["squared", "clipped"])
def test_validation_equals_fitting_again_without_each_fold(method):
    """prop-kbr-scores: both scores from their definitions, one fold at a time."""
    X, Y = sample(np.random.default_rng(7), 24)
    k, l = Gaussian(0.7), Gaussian(0.6)
    prior = RKHSFunction(l, [0.2, 0.9], [0.5, 0.5])
    lams, epsilons, folds = [1e-2, 1e-1], [1e-3, 1e-1], [range(0, 8), range(8, 15), range(15, 24)]
    folds = [list(f) for f in folds]
    found = validate_bayes_rule(k, l, X, Y, prior, lams, epsilons, folds=folds, method=method)

    scores, ratios = np.zeros(2), np.zeros((2, 24))
    for f in folds:
        rest = np.setdiff1d(np.arange(24), f)
        for a, lam in enumerate(lams):
            eta = regularised_solve(cross_covariance(l, l, Y[rest], Y[rest], centred=False), prior, lam)
            ratios[a, f] = eta(Y[f])
            scores[a] += np.sum(eta(Y[f]) ** 2 / 2 - inner(eta, prior)) / 24
    assert np.allclose(found.ratio_scores, scores, atol=1e-6)
    best = scores.argmin()
    weight = np.maximum(ratios[best], 0)
    risks = np.zeros(2)
    for f in folds:
        rest = np.setdiff1d(np.arange(24), f)
        for b, eps in enumerate(epsilons):
            fit = kernel_bayes_rule(k, l, X[rest], Y[rest], prior, lams[best], eps, method=method)
            for i in f:
                gap = RKHSFunction(l, Y[i : i + 1], [1.0]) - fit(X[i])
                risks[b] += weight[i] * inner(gap, gap)
    assert np.allclose(found.risks, risks / weight.sum(), atol=1e-6)
    assert found.lam == lams[best] and found.eps == epsilons[risks.argmin()]
    assert isinstance(found, BayesValidation) and "lam=" in repr(found)
    for record in (found, pickle.loads(pickle.dumps(found))):
        with pytest.raises(ValueError):
            record.risks[0] = 0.0


def test_validation_draws_its_folds_from_rng():
    """prop-kbr-scores: one seed, one result; and the choice is from the lists."""
    X, Y = sample(np.random.default_rng(8), 60)
    k = l = Gaussian(0.5)
    prior = GaussianEmbedding(l, 0.6, 0.25)
    results = [validate_bayes_rule(k, l, X, Y, prior, [1e-3, 1e-1], [1e-4, 1e-2], folds=4, rng=s)
               for s in (0, 0, 1)]
    assert (results[0].risks == results[1].risks).all()
    assert (results[0].risks != results[2].risks).any()
    assert results[0].lam in (1e-3, 1e-1) and results[0].eps in (1e-4, 1e-2)
    five, same = (validate_bayes_rule(k, l, X, Y, prior, [1e-3], [1e-4], rng=0, **folds)
                  for folds in ({}, {"folds": 5}))
    assert np.array_equal(five.risks, same.risks)


@given(seeds, st.floats(1e-3, 1e3))
def test_scaling_the_prior_scales_the_regularisation(seed, c):
    """ex-kbr-invariance: cπ with c²ε (squared) or cε (clipped) has the same posterior."""
    rng = np.random.default_rng(seed)
    G, w, phi = rng.normal(size=(8, 3)), rng.normal(size=8), rng.normal(size=3)
    for method, factor in (("squared", c * c), ("clipped", c)):
        one = posterior_weights(G, w, phi, 0.1, method)
        two = posterior_weights(G, c * w, phi, 0.1 * factor, method)
        assert np.allclose(one, two, rtol=1e-6, atol=1e-9)


def test_equal_weights_give_the_conditional_embedding():
    """ex-kbr-ridge: clipped with w = 1/n is (K + nεI)⁻¹ k(x)."""
    X, Y = sample(np.random.default_rng(9), 30)
    k = Gaussian(0.5)
    fit = KernelPosterior(k, k, X, Y, np.full(30, 1 / 30), 1e-2, "clipped")
    other = conditional_embedding(k, k, X, Y, 1e-2)
    assert np.allclose(fit.weights_at([0.3, 1.0]), other.weights_at([0.3, 1.0]), atol=1e-7)


# The record, its inputs, and extremes


def fitted(**options):
    X, Y = sample(np.random.default_rng(10), 20)
    l = Gaussian(0.6)
    prior = RKHSFunction(l, [0.0, 0.5], [0.5, 0.5])
    return kernel_bayes_rule(Gaussian(0.8), l, X, Y, prior, 1e-2, 1e-3, **options)


def test_weights_functions_and_expectations_agree():
    """thm-kbr-gram: posterior(x), weights_at(T) and expectation(g, T) are one thing."""
    fit = fitted()
    T = [0.2, 1.0, -0.5]
    W = fit.weights_at(T)
    assert W.shape == (20, 3) and np.allclose(W[:, 1], fit(1.0).weights)
    g = RKHSFunction(fit.l, [0.3], [2.0])
    assert np.allclose(fit.expectation(g, T), [inner(g, fit(t)) for t in T])
    values = np.column_stack([fit.Y, fit.Y**2])
    assert np.allclose(fit.expectation(values, T), W.T @ values)
    assert np.allclose(fit.expectation(lambda y: y**2, T), W.T @ fit.Y**2)
    assert "squared" in repr(fit) and fit.eps == 1e-3


def test_points_of_any_kind():
    """thm-kbr-gram: vectors, strings and pairs as observations."""
    rng = np.random.default_rng(11)
    Y = rng.normal(size=12)
    l = Gaussian(1.0)
    prior = RKHSFunction(l, [0.0], [1.0])
    X = rng.normal(size=(12, 2))
    fit = kernel_bayes_rule(Gaussian(1.0), l, X, Y, prior, 0.1, 0.1)
    assert np.allclose(fit(X[3]).weights, fit.weights_at(X[3:4])[:, 0])
    words = list("abcabcabcabc")
    fit = kernel_bayes_rule(Delta(), l, words, Y, prior, 0.1, 0.1)
    assert np.allclose(fit("a").weights, fit.weights_at(["a"])[:, 0])
    pairs = Pairs(Y, words)
    kernel = TensorProduct(Gaussian(1.0), Delta())
    fit = kernel_bayes_rule(kernel, l, pairs, Y, prior, 0.1, 0.1)
    assert np.allclose(fit(Pairs(Y[:1], ["a"])).weights, fit.weights_at(pairs[:1])[:, 0])


def test_the_record_does_not_change_with_its_inputs():
    """KernelPosterior holds copies, which cannot be written to."""
    X, Y = sample(np.random.default_rng(12), 10)
    w = np.full(10, 0.1)
    fit = KernelPosterior(Gaussian(0.5), Gaussian(0.5), X, Y, w, 0.1)
    before = fit(0.3)([0.0, 1.0])
    X[:], Y[:], w[:] = 7.0, 7.0, 7.0
    assert (fit(0.3)([0.0, 1.0]) == before).all()
    for array in (fit.prior_weights, fit.Z, fit.phi.G):
        with pytest.raises(ValueError):
            array[0] = 1.0
    for twin in (pickle.loads(pickle.dumps(fit)), copy.deepcopy(fit)):
        assert (twin(0.3)([0.0, 1.0]) == before).all() and repr(twin) == repr(fit)
        assert not twin.Z.flags.writeable and not twin.phi.G.flags.writeable
    assert repr(fit.phi) == f"Coordinates({Features(fit.k, fit.X)}, r={fit.phi.G.shape[1]})"


def test_one_point_repeated_points_and_zero_kernels():
    """thm-kbr-gram: n = 1 by hand; copies of one point; a kernel that vanishes at the points."""
    k = Gaussian(1.0)
    prior = RKHSFunction(k, [0.0], [1.0])
    one = kernel_bayes_rule(k, k, [1.0], [0.0], prior, 0.5, 0.25)
    w = 1 / 1.5
    assert np.isclose(one(1.0).weights[0], w * w / (w * w + 0.25))
    copies = kernel_bayes_rule(k, k, np.ones(7), np.zeros(7), prior, 0.5, 0.25)
    assert np.isclose(copies(1.0).weights.sum(), one(1.0).weights[0])
    zero = kernel_bayes_rule(Linear(), k, [0.0, 0.0], [0.0, 1.0], prior, 0.5, 0.25)
    assert (zero.weights_at([3.0]) == 0).all()
    flat = kernel_bayes_rule(k, Linear(), [0.0, 1.0], [0.0, 0.0], RKHSFunction(Linear(), [1.0], [1.0]),
                             0.5, 0.25)
    assert (flat.weights_at([3.0]) == 0).all()


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_extreme_scales(scale):
    """thm-bayes-low-rank: kernels of size c need λ and √ε of size c, and then nothing changes."""
    X, Y = sample(np.random.default_rng(13), 15)
    g = Gaussian(0.6)
    plain = kernel_bayes_rule(g, g, X, Y, RKHSFunction(g, [0.4], [1.0]), 1e-2, 1e-3)
    big = scale * g
    fit = kernel_bayes_rule(big, big, X, Y, RKHSFunction(big, [0.4], [1.0]), 1e-2 * scale, 1e-3 * scale**2)
    assert np.allclose(fit(0.3).weights, plain(0.3).weights, atol=1e-8)


def test_a_prior_far_away_leaves_nothing():
    """def-kbr-setting: values that underflow give weights zero and a posterior zero, not NaN."""
    X, Y = sample(np.random.default_rng(14), 15)
    g = Gaussian(0.6)
    for method in ("squared", "clipped"):
        fit = kernel_bayes_rule(g, g, X, Y, RKHSFunction(g, [1e6], [1.0]), 1e-2, 1e-3, method=method)
        assert (fit.prior_weights == 0).all() and (fit(0.2).weights == 0).all()
        fit = kernel_bayes_rule(g, g, X, Y, RKHSFunction(g, [0.0], [1.0]), 1e-2, 1e-3, method=method)
        assert np.isfinite(fit(1e6).weights).all()
        for eps in (1e-300, 1e300):
            fit = kernel_bayes_rule(g, g, X, Y, RKHSFunction(g, [0.0], [0.0]), 1e-2, eps, method=method)
            assert (fit(0.2).weights == 0).all() and (fit.expectation(Y, [0.2]) == 0).all()
    with pytest.raises(ValueError, match="^eps "):
        kernel_bayes_rule(g, g, X, Y, RKHSFunction(g, [0.0], [0.0]), 1e-2, 5e-324, method="clipped")(0.2)


def beside(c):
    """1 on the diagonal of a Gram matrix and c beside it."""
    return FunctionKernel(lambda x, y: 1.0 if x == y else c)

GOOD = dict(k=Gaussian(0.5), l=Gaussian(0.5), X=[0.0, 1.0, 2.0], Y=[0.0, 0.5, 1.0],
            prior=RKHSFunction(Gaussian(0.5), [0.2], [1.0]), lam=0.1)


def test_an_indefinite_kernel_is_refused_where_its_gram_matrix_is_used():
    """thm-bayes-low-rank needs K = GG': of the matrix with 1 on its diagonal and c beside it
    there is such a factor for n = 3 if and only if -1/2 <= c <= 1."""
    with pytest.raises(ValueError, match="must be positive definite"):
        kernel_bayes_rule(**{**GOOD, "k": beside(2.0), "eps": 0.1})
    for c, definite in ((-0.51, False), (-0.49, True), (0.99, True), (2.0, False)):
        l = beside(c)
        changed = {**GOOD, "l": l, "prior": RKHSFunction(l, [0.0], [1.0])}
        for rule in (kernel_sum_rule, kernel_chain_rule):
            if definite:
                rule(**changed)
                continue
            with pytest.raises(ValueError, match="must be positive definite"):
                rule(**changed)
    assert norm(kernel_bayes_rule(**{**GOOD, "k": beside(0.99), "eps": 0.1})(0.0)) > 0


def test_regularisers_that_no_one_can_see_are_refused():
    """thm-bayes-low-rank: nλ beside the Gram matrix, and √ε or ε beside the operator, count only
    above its rounding errors; a little more gives weights."""
    for lam in (0.0, 1e-300, 1e308):
        with pytest.raises(ValueError, match="lam must"):
            kernel_sum_rule(**{**GOOD, "lam": lam})
    assert kernel_sum_rule(**{**GOOD, "lam": 1e-14}).weights.any()
    for method in ("squared", "clipped"):
        with pytest.raises(ValueError, match="eps must"):
            kernel_bayes_rule(**GOOD, eps=1e-60, method=method)
        assert kernel_bayes_rule(**GOOD, eps=1e-10, method=method)(0.0).weights.any()
    good = {name: GOOD[name] for name in ("k", "l", "X", "Y", "prior")} | dict(folds=3, rng=0)
    for name, value in (("lams", [1e-300, 0.1]), ("lams", [1e-20, 0.1]), ("epsilons", [1e-300, 0.1]),
                        ("epsilons", [1e-40])):
        with pytest.raises(ValueError, match=name):
            validate_bayes_rule(**{**good, "lams": [0.1], "epsilons": [0.1], name: value})


@pytest.mark.parametrize("c", [1e-8, 1e8])
def test_what_can_be_seen_grows_with_the_kernel(c):
    """thm-bayes-low-rank: ε compares with the operator, which c k multiplies by c."""
    X, Y = sample(np.random.default_rng(1), 20)
    k, l = c * Gaussian(0.5), Gaussian(0.5)
    prior = GaussianEmbedding(l, 0.6, 0.25)
    for eps, visible in ((1e-12 * c, True), (1e-18 * c, False)):
        rules = (lambda: kernel_bayes_rule(k, l, X, Y, prior, 1e-2, eps, method="clipped"),
                 lambda: validate_bayes_rule(k, l, X, Y, prior, [1e-2], [eps], method="clipped", rng=0))
        for rule in rules:
            if visible:
                assert rule() is not None
            else:
                with pytest.raises(ValueError, match="must be larger"):
                    rule()


def test_a_kernel_that_is_zero_at_the_points_has_one_coordinate():
    """thm-bayes-low-rank: K = GG' = 0 with a column of zeros, also for a single point."""
    for X in ([0.0], [0.0, 0.0]):
        phi = Coordinates(Features(Linear(), X), 1e-10)
        assert np.array_equal(phi.G, np.zeros((len(X), 1)))
        assert np.array_equal(phi([3.0, 1.0]), np.zeros((2, 1)))


def test_large_values_have_expectations_as_long_as_these_are_numbers():
    """thm-kbr-gram, part 3, for values near the largest float."""
    good = dict(k=Gaussian(0.5), l=Gaussian(0.5), X=[0.0, 0.0], Y=[0.0, 1.0])
    loud = KernelPosterior(**good, prior_weights=[3.0, -2.5], eps=0.1)
    with pytest.raises(ValueError, match="^g "):
        loud.expectation([1.7e308, 0.0], [0.0])
    calm = KernelPosterior(**good, prior_weights=[1.0, 1.0], eps=1.0)
    assert np.isclose(calm.expectation([1e308, 1.7e308], [0.0])[0] / 1e308, 2.7 * 2 / 5)


def test_the_validation_needs_a_partition_and_a_prior_near_the_sample():
    """prop-kbr-scores: every point is left out once, and some ratio is positive."""
    good = {name: GOOD[name] for name in ("k", "l", "X", "Y", "prior")} | dict(lams=[0.1], epsilons=[0.1], rng=0)
    assert validate_bayes_rule(**good, folds=3).lam == 0.1
    for folds in (1, 4, [[0, 1]], [[0, 1], [1, 2]], [[0, 1, 2]], [[0, 1, 2], []]):
        with pytest.raises(ValueError, match="folds"):
            validate_bayes_rule(**good, folds=folds)
    for prior in (RKHSFunction(GOOD["l"], [1e5], [1.0]), RKHSFunction(GOOD["l"], [0.2], [1e200])):
        with pytest.raises(ValueError, match="prior"):
            validate_bayes_rule(**{**good, "prior": prior}, folds=3)


def test_the_three_rules_take_the_same_arguments():
    """kernel_sum_rule, kernel_chain_rule: eps has no part in them."""
    k, l = Gaussian(0.7), Gaussian(1.0)
    y = np.random.default_rng(0).normal(size=12)
    x, prior = y**2, RKHSFunction(l, [0.0, 0.5], [0.5, 0.5])
    sums, chains = ([rule(k, l, x, y, prior, 0.1, *more).weights for more in ((), (0.2,))]
                    for rule in (kernel_sum_rule, kernel_chain_rule))
    assert np.array_equal(*sums)
    assert np.array_equal(*map(np.asarray, chains))
    assert kernel_bayes_rule(k, l, x, y, prior, 0.1, 0.2)(0.3).kernel == l
