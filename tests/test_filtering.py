"""Identities of the chapter on filtering."""

import copy
import pickle
import tracemalloc
from dataclasses import FrozenInstanceError
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rkhs_lit import (
    Delta,
    FeatureKernel,
    Features,
    FunctionKernel,
    Gaussian,
    GaussianEmbedding,
    Laplace,
    Linear,
    Matern,
    Pairs,
    RKHSFunction,
    RKHSOperator,
    TensorProduct,
    cross_covariance,
    embedding_distance,
    inner,
    mean_embedding,
    median_heuristic,
    norm,
    normalised,
    preimage,
    regularised_solve,
    substrings,
)
from rkhs_lit.bayes_rule import kernel_bayes_rule, posterior_weights
from rkhs_lit.conditional_embedding import conditional_embedding
from rkhs_lit.filtering import (
    Filtered,
    FilterValidation,
    KernelBayesFilter,
    unit_mass,
    validate_filter,
)
from scipy.optimize import minimize
from scipy.stats import norm as normal

K, L = Gaussian(0.6), Gaussian(0.8)
LAM, EPS = 1e-2, 1e-3


def drift(n, d=2, seed=0):
    """A stationary trajectory, and its noisy observations."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    for i in range(1, n):
        x[i] = 0.8 * x[i - 1] + 0.6 * x[i]
    return x, x + 0.5 * rng.normal(size=(n, d))


def trained(n=40, d=2, **options):
    x, y = drift(n + 1, d)
    options = {"tol": 1e-14, **options}
    return KernelBayesFilter(K, L, x, y, LAM, EPS, **options)


def by_matrices(f, ys, second_form=False):
    """The recursion as printed in the theorem, without features."""
    X, Y, Z, n = f.states, f.observations, f.next_states, len(f.states)
    I, gram, obs = np.eye(n), f.k(X), f.l(Y)
    ridge = np.linalg.inv(gram + n * f.lam * I)
    B = ridge @ f.k(X, Z) @ ridge @ gram
    alpha, found = None, []
    for y in ys:
        ly = f.l(Y, [y])[:, 0]
        if alpha is None:
            alpha = np.linalg.solve(obs + n * f.lam * I, ly)
        else:
            w = B @ alpha
            if second_form:
                A = w[:, None] * obs
                alpha = A @ np.linalg.solve(A @ A + f.eps * I, w * ly)
            else:
                A = obs * w
                alpha = w * np.linalg.solve(A @ A + f.eps * I, A @ ly)
        found.append(alpha)
    return np.array(found)


# -- The recursion of probabilities ----------------------------------------


def exact_filter(start, move, emit, ys):
    """Prediction and update in fractions."""
    p, found = list(start), []
    for t, y in enumerate(ys):
        if t:
            p = [sum(p[x] * move[x][z] for x in range(len(p))) for z in range(len(p))]
        p = [p[x] * emit[x][y] for x in range(len(p))]
        p = [value / sum(p) for value in p]
        found.append(p)
    return found


def rows(table):
    return [[Fraction(c, sum(row)) for c in row] for row in table]


def test_prediction_and_update_give_the_conditional_distribution_of_all_paths():
    """thm-filter-bayes, against the sum over all paths of states, in exact arithmetic."""
    move, emit = rows([[3, 1, 1], [0, 2, 3], [4, 1, 2]]), rows([[1, 5], [3, 3], [7, 1]])
    start, ys = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], [0, 1, 1, 0]
    found = exact_filter(start, move, emit, ys)
    for t in range(1, 5):
        mass = [Fraction(0)] * 3
        for path in product(range(3), repeat=t):
            p = start[path[0]]
            for a, b in zip(path, path[1:]):
                p *= move[a][b]
            for x, y in zip(path, ys):
                p *= emit[x][y]
            mass[path[-1]] += p
        assert found[t - 1] == [value / sum(mass) for value in mass]


# -- The recursion of embeddings -------------------------------------------


def test_one_step_is_the_composition_of_the_empirical_operators():
    """thm-filter-recursion, by operators that know nothing of Gram matrices."""
    f = trained(25, normalise=False)
    X, Y, Z = f.states, f.observations, f.next_states
    y0, y1 = Y[10], Y[11]
    Cxx, Cyy = (cross_covariance(k, k, v, v, centred=False) for k, v in ((K, X), (L, Y)))
    start = cross_covariance(K, L, X, Y, centred=False)(
        regularised_solve(Cyy, RKHSFunction(L, [y0], [1.0]), LAM))
    assert np.allclose(f.step(y0).weights, start.weights, rtol=0, atol=1e-8)

    prediction = cross_covariance(K, K, Z, X, centred=False)(regularised_solve(Cxx, start, LAM))
    assert np.allclose(f.predict(start)(X), prediction(X), rtol=0, atol=1e-8)
    ratio = regularised_solve(Cxx, prediction, LAM)
    pairs = cross_covariance(TensorProduct(K, L), K, Pairs(X, Y), X, centred=False)(ratio)
    twice = cross_covariance(TensorProduct(L, L), K, Pairs(Y, Y), X, centred=False)(ratio)
    Ct_xy = RKHSOperator(K, X, L, Y, pairs.weights)
    Ct_yy = RKHSOperator(L, Y, L, Y, twice.weights)
    wanted = Ct_xy(regularised_solve(Ct_yy @ Ct_yy, Ct_yy(RKHSFunction(L, [y1], [1.0])), EPS))
    # Conditioning 1/ε = 1000 of the squared operator, times the tolerance.
    assert np.abs(wanted.weights).max() > 0.1
    assert np.allclose(f.step(y1, start).weights, wanted.weights, rtol=0, atol=1e-7)


@pytest.mark.parametrize("second_form", [False, True])
def test_the_filter_is_the_matrix_recursion(second_form):
    """thm-filter-recursion: B once, then either form of the posterior weights, for ten steps."""
    f = trained(30, normalise=False)
    ys = f.observations[10:20]
    wanted = by_matrices(f, ys, second_form)
    assert (np.abs(wanted).max(axis=1) > 0.01).all()           # nothing has faded away
    assert np.allclose(f.filter(ys).weights, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", ["squared", "clipped"])
def test_the_filter_divides_the_recursion_by_its_mass(method):
    """thm-filter-recursion, def-filter-mass, eq-kbr-tikhonov: the same matrices, with weights of
    mass one before and after each observation."""
    f = trained(30, method=method)
    X, Y, Z, n = f.states, f.observations, f.next_states, 30
    ys, I, obs = drift(12, seed=5)[1], np.eye(n), L(Y)
    ridge = np.linalg.inv(K(X) + n * LAM * I)
    B = ridge @ K(X, Z) @ ridge @ K(X)

    def unit(w):
        return w / max(w.sum(), np.abs(w).sum() / 10)

    alpha, signs = unit(np.linalg.solve(obs + n * LAM * I, L(Y, ys[:1])[:, 0])), []
    wanted = [alpha]
    for y in ys[1:]:
        w, ly = unit(B @ alpha), L(Y, [y])[:, 0]
        signs.append(w.min() < 0)
        if method == "clipped":
            w = np.maximum(w, 0)
            alpha = w * np.linalg.solve(obs * w + EPS * I, ly)
        else:
            A = obs * w
            alpha = w * np.linalg.solve(A @ A + EPS * I, A @ ly)
        alpha = unit(alpha)
        wanted.append(alpha)
    found = f.filter(ys)
    assert any(signs) and found.notes == ("start",) + ("posterior",) * 11
    # Conditioning 1/EPS = 1000 of the squared operator, times the tolerance of the factors.
    assert np.allclose(found.weights, wanted, rtol=0, atol=1e-6)


def test_the_mixed_form_is_another_recursion():
    """thm-filter-recursion: with (L Λ)² in the second form the weights differ."""
    f = trained(30, normalise=False)
    ys = f.observations[10:12]
    w = f.prior @ (f.M @ (f.F.T @ f.step(ys[0]).weights))
    A, ly = L(f.observations) * w, L(f.observations, ys[1:])[:, 0]
    mixed = A.T @ np.linalg.solve(A @ A + EPS * np.eye(30), w * ly)
    assert np.abs(mixed - f.filter(ys).weights[1]).max() > 0.01


def test_prediction_and_update_are_the_rules_of_the_last_chapters():
    """thm-filter-recursion: transport of the conditional embedding, and the kernel Bayes rule."""
    f = trained(30, normalise=False)
    X, Y, Z = f.states, f.observations, f.next_states
    m = mean_embedding(K, X[[3, 7]] + 0.1, [0.7, 0.3])
    predicted = conditional_embedding(K, K, X, Z, LAM).transport(m)
    assert np.allclose(f.predict(m).weights, predicted.weights, rtol=0, atol=1e-7)
    y = Y[4]
    posterior = kernel_bayes_rule(L, K, Y, X, predicted, LAM, EPS)(y)
    assert np.abs(posterior.weights).max() > 0.1
    assert np.allclose(f.update(y, predicted).weights, posterior.weights, rtol=0, atol=1e-7)
    assert np.allclose(f.step(y, m).weights, posterior.weights, rtol=0, atol=1e-7)
    clipped = trained(30, normalise=False, method="clipped")
    posterior = kernel_bayes_rule(L, K, Y, X, predicted, LAM, EPS, method="clipped")(y)
    assert np.allclose(clipped.step(y, m).weights, posterior.weights, rtol=0, atol=1e-7)


def test_the_start_is_the_conditional_embedding_of_the_state():
    """thm-filter-recursion, part 4; and its normalised version."""
    y = np.array([0.3, -0.2])
    f = trained(30, normalise=False)
    wanted = conditional_embedding(L, K, f.observations, f.states, LAM)(y).weights
    assert np.allclose(f.step(y).weights, wanted, rtol=0, atol=1e-8)
    assert np.allclose(trained(30).step(y).weights, wanted / wanted.sum(), rtol=0, atol=1e-8)


def test_a_normal_prior_may_be_given_in_closed_form():
    """thm-filter-recursion with a GaussianEmbedding as prior or as the state before."""
    f = trained(40)
    goal = GaussianEmbedding(K, [0.1, 0.2], 0.3)
    draws = np.random.default_rng(0).multivariate_normal([0.1, 0.2], 0.3 * np.eye(2), size=20_000)
    sample, y = mean_embedding(K, draws), np.array([0.3, 0.0])
    # The embedding of 20 000 draws is off by 1/√20000 = 0.007.
    for ours, other in ((f.update(y, goal), f.update(y, sample)),
                        (f.step(y, goal), f.step(y, sample)),
                        (f.predict(goal), f.predict(sample))):
        assert norm(ours - other) < 0.05


# -- Tables -----------------------------------------------------------------


def copies(counts):
    """A recording with counts[x][y][z] transitions from x, seen as y, to z."""
    return [list(v) for v in zip(*(
        (x, y, z) for x, a in enumerate(counts) for y, b in enumerate(a)
        for z, c in enumerate(b) for _ in range(c)))]


@settings(max_examples=25)
@given(data=st.data(), lam=st.floats(1e-6, 10), eps=st.floats(1e-8, 10),
       method=st.sampled_from(["squared", "clipped"]))
def test_with_equal_counts_the_filter_is_the_forward_algorithm(data, lam, eps, method):
    """thm-filter-tables: for every λ and ε, against fractions."""
    counts = []
    for _ in range(3):                            # twelve transitions from each state
        cells = data.draw(st.lists(st.integers(0, 5), min_size=12, max_size=12))
        table = np.ones((2, 3), dtype=int)
        for cell in cells[:6]:
            table.flat[cell] += 1
        counts.append(table.tolist())
    move = rows([[sum(b[z] for b in a) for z in range(3)] for a in counts])
    emit = rows([[sum(b) for b in a] for a in counts])
    ys = data.draw(st.lists(st.integers(0, 1), min_size=1, max_size=6))
    wanted = exact_filter([Fraction(1, 3)] * 3, move, emit, ys)
    x, y, z = copies(counts)
    d = Delta()
    found = KernelBayesFilter(d, d, x, y, lam, eps, next_states=z, method=method).filter(ys)
    states = found.expectation(lambda s: np.eye(3)[list(s)])
    assert np.allclose(states, np.array(wanted, dtype=float), rtol=1e-9, atol=0)
    assert found.estimates == tuple(int(np.argmax(row)) for row in states)


def test_with_unequal_counts_the_filter_shrinks_as_the_theorem_says():
    """thm-filter-tables, the explicit values for λ and ε that are not small."""
    counts = [[[3, 1], [2, 0]], [[1, 1], [5, 4]]]
    x, y, z = copies(counts)
    n, lam, eps, d = len(x), 0.03, 0.02, Delta()
    size = np.array([6, 11])
    s = size / (size + n * lam)
    move = np.array([[5, 1], [6, 5]]) / size[:, None]
    emit = np.array([[4, 2], [2, 9]]) / size[:, None]
    pi = np.array([0.3, 0.7])
    minus = (s * pi) @ move
    q = np.sum(s * minus * emit[:, 1])
    for method, c in (("squared", q / (q**2 + eps)), ("clipped", 1 / (q + eps))):
        f = KernelBayesFilter(d, d, x, y, lam, eps, next_states=z, method=method,
                              normalise=False)
        prior = RKHSFunction(d, [0, 1], pi)
        assert np.allclose(f.predict(prior)([0, 1]), minus, rtol=1e-12)
        assert np.allclose(f.step(1, prior)([0, 1]), c * s * minus * emit[:, 1], rtol=1e-10)


def test_with_vanishing_parameters_unequal_counts_do_no_harm():
    """thm-filter-tables: the limit, and the start with the frequencies of the recording."""
    counts = [[[3, 1], [2, 0]], [[1, 1], [5, 4]]]
    x, y, z = copies(counts)
    d, ys = Delta(), [1, 0, 0, 1, 1, 0]
    wanted = exact_filter([Fraction(6, 17), Fraction(11, 17)], rows([[5, 1], [6, 5]]),
                          rows([[4, 2], [2, 9]]), ys)
    f = KernelBayesFilter(d, d, x, y, 1e-9, 1e-12, next_states=z)
    found = f.filter(ys).expectation(lambda s: np.eye(2)[list(s)])
    # Each step errs by about λ n / n_x < 3e-9.
    assert np.allclose(found, np.array(wanted, dtype=float), rtol=1e-7)


# -- Coordinates ------------------------------------------------------------


def test_coordinates_move_by_one_matrix():
    """prop-filter-coordinates: M, the weights, and features at a rank that is too small to be
    exact, for the kernel that these features have."""
    x, y = drift(51)
    f = KernelBayesFilter(K, L, x, y, LAM, EPS, max_rank=7, normalise=False)
    F, F_next, G = f.F, f.F_next, f.G
    assert F.shape == F_next.shape == G.shape == (50, 7)
    gram, I = F @ F.T, np.eye(50)
    ridge = np.linalg.inv(gram + 50 * LAM * I)
    alpha = np.linalg.solve(G @ G.T + 50 * LAM * I, G @ f.gamma(Features(L, y[:1]))[0])
    beta = ridge @ gram @ alpha
    w = ridge @ (F @ F_next.T) @ beta
    theta = F.T @ alpha
    assert np.allclose(f.M @ theta, F_next.T @ beta)
    assert np.allclose(f.prior @ (f.M @ theta), w)
    A, ly = (G @ G.T) * w, G @ f.gamma(Features(L, y[1:2]))[0]
    wanted = w * np.linalg.solve(A @ A + EPS * I, A @ ly)
    assert np.allclose(f.filter(y[:2]).weights, [alpha, wanted], rtol=0, atol=1e-8)


def test_a_coarse_tolerance_changes_little():
    """prop-filter-coordinates: features up to 1e-6 of the trace against exact ones."""
    ys = drift(20, seed=5)[1]
    exact, coarse = trained(120).filter(ys), trained(120, tol=1e-7).filter(ys)
    gaps = [norm(a - b) for a, b in zip(exact.embeddings, coarse.embeddings)]
    assert max(gaps) < 0.02


def test_no_square_matrix_is_stored():
    """prop-filter-coordinates: O(n r) memory, with n² numbers taking 128 MB."""
    x, y = drift(4001)
    tracemalloc.start()
    KernelBayesFilter(K, L, x, y, LAM, EPS, max_rank=30).filter(y[:3])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6


def test_the_order_of_the_transitions_does_not_matter():
    """thm-filter-recursion: the recording is a set of transitions."""
    x, y = drift(31)
    ys, order = drift(6, seed=2)[1], np.random.default_rng(0).permutation(30)
    f = trained(30)
    other = KernelBayesFilter(K, L, x[:-1][order], y[:-1][order], LAM, EPS,
                              next_states=x[1:][order], tol=1e-14)
    assert np.allclose(other.filter(ys).weights, f.filter(ys).weights[:, order], rtol=0,
                       atol=1e-6)
    explicit = KernelBayesFilter(K, L, x[:-1], y[:-1], LAM, EPS, next_states=x[1:], tol=1e-14)
    assert np.allclose(explicit.filter(ys).weights, f.filter(ys).weights, rtol=0, atol=1e-6)
    assert np.array_equal(f.states, x[:-1]) and np.array_equal(f.next_states, x[1:])
    assert np.array_equal(f.observations, y[:-1])


def test_a_recording_that_is_played_twice_says_the_same():
    """thm-filter-recursion: duplicates double n and the sums, and change no embedding."""
    x, y = drift(31)
    ys = drift(6, seed=2)[1]
    twice = KernelBayesFilter(K, L, np.tile(x[:-1], (2, 1)), np.tile(y[:-1], (2, 1)), LAM, EPS,
                              next_states=np.tile(x[1:], (2, 1)), tol=1e-14)
    once = trained(30).filter(ys).weights
    assert np.allclose(twice.filter(ys).weights, np.hstack([once, once]) / 2, rtol=0, atol=1e-6)


# -- Mass -------------------------------------------------------------------


def a_prior(seed, n=12):
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(n, 4))
    return G, rng.normal(size=n), G[3] + 0.1 * rng.normal(size=4)


@given(seed=st.integers(0, 1000), c=st.floats(0.01, 100), eps=st.floats(1e-3, 10))
def test_a_factor_of_the_prior_is_a_factor_of_the_regulariser(seed, c, eps):
    """prop-filter-scale, part 1."""
    G, w, phi = a_prior(seed)
    for method, power in (("squared", 2), ("clipped", 1)):
        scaled = posterior_weights(G, c * w, phi, eps, method)
        other = posterior_weights(G, w, phi, eps / c**power, method)
        assert np.allclose(scaled, other, rtol=1e-7, atol=1e-9 * np.abs(other).max())


@given(seed=st.integers(0, 1000), eps=st.floats(1e-6, 10), size=st.floats(1e-3, 10))
def test_posterior_weights_are_bounded(seed, eps, size):
    """prop-filter-scale, part 2: both bounds of the squared method, and that of the clipped."""
    G, w, phi = a_prior(seed)
    w = size * w
    kappa2 = max(np.sum(G**2, axis=1).max(), phi @ phi)
    room = 1 + 1e-9
    squared = np.abs(posterior_weights(G, w, phi, eps, "squared"))
    assert (squared <= room * kappa2 * np.abs(w) / (2 * eps**0.5)).all()
    assert (squared <= room * kappa2**2 * np.abs(w) * np.abs(w).sum() / eps).all()
    clipped = np.abs(posterior_weights(G, w, phi, eps, "clipped"))
    assert (clipped <= room * kappa2 * np.abs(w) / eps).all()


def test_the_update_is_the_formula_of_the_chapter():
    """eq-filter-coordinates, third line, and eq-kbr-tikhonov."""
    for seed in range(20):
        G, w, phi = a_prior(seed)
        S, P = G.T @ (w[:, None] * G), np.maximum(w, 0)
        I = np.eye(len(S))
        assert np.allclose(posterior_weights(G, w, phi, 0.1, "squared"),
                           w * (G @ np.linalg.solve(S @ S + 0.1 * I, S @ phi)), rtol=1e-9)
        assert np.allclose(posterior_weights(G, w, phi, 0.1, "clipped"), P * (G @ np.linalg.solve(
            G.T @ (P[:, None] * G) + 0.1 * I, phi)), rtol=1e-9)


def test_the_sign_of_the_prior_is_not_seen():
    """ex-filter-sign."""
    G, w, phi = a_prior(1)
    assert np.allclose(*(posterior_weights(G, sign * w, phi, 0.1, "squared") for sign in (1, -1)))
    assert not posterior_weights(G, -np.abs(w), phi, 0.1, "clipped").any()


def test_the_bare_recursion_collapses_doubly_exponentially():
    """prop-filter-scale, part 3: each inequality, and the collapse itself."""
    f = trained(40, normalise=False).retune(LAM, 0.5)
    ys = drift(7, seed=3)[1]
    W, n = f.filter(ys).weights, 40
    ridge = np.linalg.inv(K(f.states) + n * LAM * np.eye(n))
    B = ridge @ K(f.states, f.next_states) @ ridge @ K(f.states)
    a = np.abs(B).sum(axis=0).max() ** 2 / 0.5       # kappa = 1
    sizes = a * np.abs(W).sum(axis=1)
    assert (sizes[1:] <= sizes[:-1] ** 2).all()
    assert np.abs(W[-1]).sum() < 1e-12
    assert np.allclose(trained(40).retune(LAM, 0.5).filter(ys).weights.sum(axis=1), 1)


FINITE = st.floats(-1e6, 1e6).filter(lambda v: v == 0 or abs(v) > 1e-6)


@given(w=arrays(float, 5, elements=FINITE), c=st.floats(1e-200, 1e200))
def test_weights_of_mass_one(w, c):
    """def-filter-mass and prop-filter-bounded, parts 1 and 2."""
    u = unit_mass(w)
    if not w.any():
        assert not u.any()
        return
    assert np.allclose(unit_mass(c * w), u, rtol=1e-9, atol=1e-12)
    assert np.abs(u).sum() <= 10 + 1e-9 and u.sum() <= 1 + 1e-12
    positive, negative = np.maximum(w, 0).sum(), np.maximum(-w, 0).sum()
    if 9 * positive >= (11 + 1e-6) * negative:
        assert np.isclose(u.sum(), 1) and np.allclose(u, w / w.sum())
    if 9 * positive <= (11 - 1e-6) * negative:
        assert np.isclose(np.abs(u).sum(), 10) and u.sum() < 1
    assert (np.sign(u) * np.sign(w) >= 0).all()


@pytest.mark.parametrize("method", ["squared", "clipped"])
def test_only_the_direction_of_the_state_before_matters(method):
    """prop-filter-bounded, part 1, for the whole step, at scales from 1e-200 to 1e200."""
    f = trained(40, method=method)
    m = f.step([0.1, 0.2])
    wanted = f.step([0.3, 0.1], m).weights
    for c in (1e-200, 1e-3, 7.0, 1e200):
        assert np.allclose(f.step([0.3, 0.1], c * m).weights, wanted, rtol=1e-7, atol=1e-12)
    assert np.isclose(wanted.sum(), 1)


def test_usable_means_nearer_than_zero():
    """lem-filter-usable, and the test that the filter makes of it."""
    f = trained(20)
    for seed in range(20):
        w = np.random.default_rng(seed).normal(size=20)
        m = RKHSFunction(K, f.states, w)
        for x, value in zip(f.states, m(f.states)):
            c = max(value, 0.0)
            nearer = norm(m - RKHSFunction(K, [x], [c])) < norm(m) - 1e-12 if c else False
            assert nearer == (value > 0)
    # Of the resorts the filter takes the first usable one.
    prior = RKHSFunction(K, f.states, np.ones(20))
    for sign, note in ((1, "posterior"), (-1, "restart")):
        clipped = trained(20, method="clipped").filter([f.observations[3]], sign * prior)
        assert clipped.notes == (note,)


# -- Resorts ----------------------------------------------------------------


def test_an_observation_that_cannot_be_seen_leaves_the_prediction():
    """alg-kernel-filter, step 2: the prior weights, as if nothing had been observed."""
    f, ys = trained(40), drift(5, seed=3)[1]
    ys[3] = 1e6
    found = f.filter(ys)
    assert found.notes == ("start", "posterior", "posterior", "prediction", "posterior")
    w = conditional_embedding(K, K, f.states, f.states, LAM).transport(
        conditional_embedding(K, K, f.states, f.next_states, LAM).transport(
            found.embeddings[2])).weights
    assert np.allclose(found.weights[3], w / w.sum(), rtol=0, atol=1e-6)


def test_how_far_an_observation_can_be_seen():
    """alg-kernel-filter: twelve widths away the kernel is e^-72, not zero, but cannot be seen."""
    f, ys = trained(40), drift(3, seed=3)[1]
    edge = f.observations[np.argmax(f.observations[:, 0])]
    for widths, note in ((2, "posterior"), (12, "prediction")):
        ys[2] = edge + [0.8 * widths, 0.0]
        assert L(f.observations, ys[2:]).max() > 0
        assert f.filter(ys).notes[2] == note


@pytest.mark.parametrize("c", [1e-12, 1e12])
def test_what_can_be_seen_does_not_depend_on_the_units_of_the_kernels(c):
    """alg-kernel-filter: 1e-8 of the root of l(y, y), and usable means above 1e-8 of the terms.
    With c k and c l, λ is c times as large and ε is c² times as large."""
    x, y = drift(21)
    one = KernelBayesFilter(K, L, x, y, LAM, EPS)
    other = KernelBayesFilter(c * K, c * L, x, y, c * LAM, c * c * EPS)
    ys = drift(3, seed=3)[1]
    edge = one.observations[np.argmax(one.observations[:, 0])]
    for far, note in ((1e-10, "prediction"), (1e-5, "posterior")):
        ys[2] = edge + [0.8 * np.sqrt(-2 * np.log(far)), 0.0]      # where L is `far`
        a, b = one.filter(ys), other.filter(ys)
        assert a.notes == b.notes and a.notes[2] == note
        assert np.allclose(a.weights, b.weights, rtol=1e-6, atol=1e-8)


def test_without_any_information_the_recording_itself_is_the_answer():
    """alg-kernel-filter, step 4."""
    f = trained(40)
    found = f.filter([[1e9, 0.0], [0.1, 0.2]])
    assert found.notes == ("training", "posterior")
    assert np.allclose(found.weights[0], 1 / 40)
    assert np.allclose(trained(40, normalise=False).filter([[1e9, 0.0]]).weights, 1 / 40)
    far = RKHSFunction(K, [[1e6, 0.0]], [1.0])
    assert np.allclose(f.step([1e9, 0.0], far).weights, 1 / 40)


def test_a_state_before_that_says_nothing_makes_a_new_start():
    """alg-kernel-filter, step 3."""
    f, y = trained(40), [[0.1, 0.2]]
    for previous in (RKHSFunction(K, [[1e6, 0.0]], [1.0]), 0 * f.step(y[0])):
        found = f.filter(y, previous)
        assert found.notes == ("restart",)
        assert np.allclose(found.weights[0], f.step(y[0]).weights)


HARD = {
    "outliers": lambda y: np.where(np.arange(len(y))[:, None] % 3 == 1, 1e3, y),
    "huge": lambda y: np.where(np.arange(len(y))[:, None] % 4 == 2, -1e200, y),
    "constant": lambda y: np.tile(y[:1], (len(y), 1)),
    "jumps": lambda y: y + 4 * (np.arange(len(y))[:, None] % 2),
    "edge": lambda y: 7 * y,
}


@pytest.mark.parametrize("method", ["squared", "clipped"])
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("name", HARD)
def test_no_sequence_produces_a_number_that_is_not_finite(name, d, method):
    """prop-filter-bounded: hostile observations, ε from tiny to large, for 25 steps."""
    ys = HARD[name](drift(25, d, seed=9)[1])
    if d == 1:
        x, y = (v[:, 0] for v in drift(41, 1))
        ys = ys[:, 0]
    else:
        x, y = drift(41, d)
    f = KernelBayesFilter(Gaussian(0.4), Gaussian(0.3), x, y, 1e-3, 1e-3, method=method)
    for eps in (1e-12, 1e-3, 10.0):
        found = f.retune(1e-3, eps).filter(ys)
        assert np.isfinite(found.weights).all() and np.isfinite(found.estimates).all()
        assert found.estimates.shape == ((25,) if d == 1 else (25, 3))
        # Every estimate is near the recording: pre-images do not run away.
        assert np.abs(found.estimates).max() < np.abs(x).max() + 1.0


def test_the_units_do_not_matter():
    """thm-filter-recursion: states, observations and widths in other units, at extreme scales."""
    x, y = drift(31)
    ys = drift(6, seed=2)[1]
    wanted = KernelBayesFilter(K, L, x, y, LAM, EPS).filter(ys)
    for a, b in ((1e80, 1e-80), (1e-80, 1e80)):
        f = KernelBayesFilter(Gaussian(0.6 * a), Gaussian(0.8 * b), a * x, b * y, LAM, EPS)
        found = f.filter(b * ys)
        assert np.allclose(found.weights, wanted.weights, rtol=1e-5, atol=1e-7)
        assert np.allclose(found.estimates / a, wanted.estimates, rtol=0, atol=1e-4)


# -- Points of any kind -----------------------------------------------------


def test_strings_may_be_observations_and_states():
    """alg-kernel-filter on a set without vectors: a walk on words."""
    words = ["aaaa", "aaab", "aabb", "abbb", "bbbb"]
    rng = np.random.default_rng(0)
    place, path = 2, []
    for _ in range(80):
        place = min(4, max(0, place + rng.integers(-1, 2)))
        path.append(words[place])
    seen = [word[:2] + word[2:][::-1] for word in path]
    k = normalised(FeatureKernel(substrings(2)))
    f = KernelBayesFilter(k, k, path, seen, 1e-3, 1e-4)
    found = f.filter(seen[:10])
    assert found.estimates == tuple(path[:10])
    assert f.step("aaab").kernel == k
    number = KernelBayesFilter(Gaussian(0.5), k, np.array([float(words.index(w)) for w in path]),
                               seen, 1e-3, 1e-4).filter(seen[:10])
    assert number.estimates.shape == (10,)
    assert np.abs(number.estimates - [words.index(w) for w in path[:10]]).mean() < 0.4


def test_pairs_may_be_observations():
    """thm-filter-recursion with observations from two sensors."""
    x, y = drift(31)
    both = TensorProduct(L, L)
    f = KernelBayesFilter(K, both, x, Pairs(y, x + 0.1), LAM, EPS)
    found = f.filter(Pairs(y[:4], x[:4] + 0.1))
    m = f.step(Pairs(y[:1], x[:1] + 0.1))
    assert np.allclose(m.weights, found.weights[0])


def test_one_transition_is_enough_to_run():
    """thm-filter-recursion with n = 1: all weights are one."""
    f = KernelBayesFilter(K, L, [[0.0], [0.1]], [[1.0], [1.2]], LAM, EPS)
    found = f.filter([[1.0], [1.1], [0.9]])
    assert np.allclose(found.weights, 1) and np.allclose(found.estimates, 0.0)


# -- Estimates --------------------------------------------------------------


def test_the_estimate_is_the_preimage_from_the_best_state():
    """thm-radial-preimage, alg-preimage: many at once as one by one."""
    f, ys = trained(60), drift(12, seed=4)[1]
    found = f.filter(ys)
    for m, z in zip(found.embeddings, found.estimates):
        best = f.states[np.argmax(m(f.states))]
        assert np.allclose(z, preimage(m, best), atol=1e-5)
        assert m([z])[0] >= m(f.states).max() - 1e-9
        bumps = m.weights * K(f.states, [z])[:, 0]
        assert np.allclose(bumps @ f.states / bumps.sum(), z, atol=1e-5)


def test_the_other_estimates():
    """alg-kernel-filter: the weighted mean and the best state."""
    ys = drift(12, seed=4)[1]
    mean, state = (trained(60, estimate=e).filter(ys) for e in ("mean", "state"))
    assert np.allclose(mean.estimates, mean.weights @ mean.states)       # mass one
    assert np.allclose(mean.expectation(lambda x: x), mean.estimates)
    for m, z in zip(state.embeddings, state.estimates):
        assert np.isclose(m([z])[0], m(m.points).max())
    laplace = KernelBayesFilter(Laplace(0.6), L, *drift(61), LAM, EPS)
    assert laplace.estimate == "state" and trained().estimate == "preimage"


def three_states(estimate, k=K):
    """A filter with the states 0, 1 and 2."""
    return KernelBayesFilter(k, L, [0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0], LAM, EPS,
                             estimate=estimate)


def test_cancelling_weights_do_not_move_the_mean_to_infinity():
    """def-filter-mass: where the sum is a small part, the positive parts are used."""
    W = np.array([[1.0, -2.0, 1.0], [1.0, -1.9, 1.1], [2.0, -0.5, 1.0], [0.0, 0.0, 0.0],
                  [2e-300, -0.5e-300, 1e-300]])
    found = three_states("mean").locate(W)
    assert np.allclose(found, [1.0, 2.2 / 2.1, 1.5 / 2.5, 0.0, 0.6])
    # A tenth is the share: the sum is 0.095 and 0.105 of the sum of absolute values.
    edge = np.array([[0.0, 0.5475, -0.4525], [0.0, 0.5525, -0.4475]])
    assert np.allclose(three_states("mean").locate(edge), [1.0, (0.5525 - 2 * 0.4475) / 0.105])
    # For the linear kernel an embedding can be positive although no weight is.
    assert three_states("mean", Linear()).locate(np.array([[0.0, -1.0, -1.0]])) == 0.0


def test_where_no_preimage_exists_the_best_state_is_taken():
    """prop-preimage: f < 0 everywhere has no pre-image; the others are not affected."""
    f = three_states("preimage")
    W = np.array([[1.0, 0.2, 0.0], [-1.0, -1.0, -0.5], [0.0, 0.5, 1.0]])
    found = f.locate(W)
    assert found[1] == 2.0
    with pytest.raises(ValueError, match="^W must"):
        f.locate(W[:, :2])
    for t, x in ((0, 0.0), (2, 2.0)):
        assert np.allclose(found[t], preimage(RKHSFunction(K, f.states, W[t]), x), atol=1e-6)


# -- Pre-images of radial kernels -------------------------------------------


def gaussian_profile(sigma):
    def slope(s):
        return -np.exp(-s / (2 * sigma**2)) / (2 * sigma**2)

    return Gaussian(sigma), slope, 2 * np.exp(-1.5) / sigma**2


def matern_profile(sigma):
    def slope(s):
        z = np.sqrt(5 * s) / sigma
        return -5 / (6 * sigma**2) * (1 + z) * np.exp(-z)

    return Matern(2.5, sigma), slope, 25 * np.exp(-3) / (3 * sigma**2)


PROFILES = [gaussian_profile, matern_profile]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_preimage_is_a_fixed_point(profile):
    """thm-radial-preimage, parts 1 and 2, at minima of the distance found by an optimiser."""
    kernel, slope, _ = profile(0.8)
    rng = np.random.default_rng(0)
    for _ in range(5):
        X, w = rng.normal(size=(6, 2)), rng.normal(size=6)
        w[0] = 2.0
        m = RKHSFunction(kernel, X, w)

        def square(z, m=m):
            k_z = RKHSFunction(m.kernel, [z], [1.0])
            value = norm(k_z - m) ** 2
            assert np.isclose(value, 1 - 2 * m([z])[0] + norm(m) ** 2)
            return value

        z = minimize(square, X[np.argmax(m(X))], tol=1e-10).x
        P = w * slope(np.sum((z - X) ** 2, axis=1))
        assert np.allclose(P @ X / P.sum(), z, atol=1e-4)


@pytest.mark.parametrize("profile", PROFILES)
@given(seed=st.integers(0, 10_000), sigma=st.floats(0.2, 5), extra=st.floats(1, 10))
@settings(max_examples=40)
def test_a_safe_step_gains(profile, seed, sigma, extra):
    """thm-radial-preimage, parts 3 and 4: signed weights, every denominator from the safe one on."""
    kernel, slope, c = profile(sigma)
    rng = np.random.default_rng(seed)
    X, z = rng.normal(size=(5, 2)), rng.normal(size=2)
    for w in (rng.normal(size=5), np.abs(rng.normal(size=5))):
        m = RKHSFunction(kernel, X, w)
        P = w * slope(np.sum((z - X) ** 2, axis=1))
        gradient = 2 * (P.sum() * z - P @ X)
        safe = -P[w > 0].sum() + c / 2 * np.maximum(-w, 0).sum()
        if (w > 0).all():
            assert np.isclose(safe, -P.sum())
        for D in (safe, extra * safe):
            gain = m([z + gradient / (2 * D)])[0] - m([z])[0]
            assert gain >= gradient @ gradient / (4 * D) * (1 - 1e-9) - 1e-13


def test_the_plain_iteration_can_find_the_farthest_feature():
    """thm-radial-preimage, part 2: downhill where the denominator is negative."""
    x, w = np.array([0.0, 3.0]), np.array([1.0, -0.8])
    m, z = RKHSFunction(Gaussian(1.0), x, w), 2.2
    for _ in range(200):
        P = w * m.kernel(x, [z])[:, 0]
        z = P @ x / P.sum()
    grid = np.linspace(-5, 8, 500)
    assert m([z])[0] <= m(grid).min() + 1e-9
    assert m(preimage(m, 2.2))[0] >= m(grid).max() - 1e-6


def test_at_a_kink_there_is_no_fixed_point():
    """ex-filter-laplace: the pre-image is the point with the dominating weight."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 2))
    m = RKHSFunction(Laplace(0.7), X, [2.0, 0.5, 0.3, 0.4, 0.7])
    assert m(X[:1])[0] > m(rng.normal(size=(4000, 2))).max()
    assert m(X[:1])[0] > m(X[0] + 1e-6 * rng.normal(size=(100, 2))).max()


# -- Kalman and the wheel ----------------------------------------------------


def kalman(ys, a=0.8, q=0.36, r=0.49):
    mean, P, found = 0.0, 1.0, []
    for t, y in enumerate(ys):
        if t:
            mean, P = a * mean, a * P * a + q
        J = P / (P + r)
        mean, P = mean + J * (y - mean), P - J * P
        found.append((mean, P))
    return np.array(found)


def line(n, rng):
    x = rng.normal(size=n)
    for i in range(1, n):
        x[i] = 0.8 * x[i - 1] + 0.6 * x[i]
    return x, x + 0.7 * rng.normal(size=n)


def test_kalman_solves_the_filter_equations():
    """prop-kalman against thm-filter-bayes by quadrature on a grid."""
    grid = np.linspace(-7, 7, 701)
    step, ys = grid[1] - grid[0], line(6, np.random.default_rng(1))[1]
    density = normal.pdf(grid)
    for t, (y, (mean, P)) in enumerate(zip(ys, kalman(ys))):
        if t:
            density = step * normal.pdf(grid[:, None], 0.8 * grid, 0.6) @ density
        density = density * normal.pdf(y, grid, 0.7)
        density /= step * density.sum()
        assert np.isclose(step * density @ grid, mean, atol=1e-9)
        assert np.isclose(step * density @ (grid - mean) ** 2, P, atol=1e-9)


def test_the_filter_approaches_kalman():
    """thm-filter-recursion on a linear model: whole posteriors, in the norm of the space."""
    k, rng = Gaussian(1.0), np.random.default_rng(0)
    ys = line(30, rng)[1]
    truth = kalman(ys)
    gaps = []
    for n in (60, 900):
        runs = []
        for _ in range(4):
            f = KernelBayesFilter(k, k, *line(n + 1, rng), 0.1 / n**0.5, 0.1 / n)
            runs.append(np.mean([embedding_distance(m, GaussianEmbedding(k, *goal))
                                 for m, goal in zip(f.filter(ys).embeddings[::5], truth[::5])]))
        gaps.append(np.mean(runs))
    # The embeddings have norm 0.8; a factor of √15 would be 3.9.
    assert gaps[1] < gaps[0] / 2 and gaps[1] < 0.08


def advance(x):
    theta = np.arctan2(x[..., 1], x[..., 0]) + 0.4
    return (1 + 0.4 * np.sin(8 * theta))[..., None] * np.stack(
        [np.cos(theta), np.sin(theta)], axis=-1)


def wheel(n, rng):
    x, states = np.array([1.0, 0.0]), []
    for push in 0.1 * rng.normal(size=(n, 2)):
        x = advance(x) + push
        states.append(x)
    return np.array(states), np.array(states) + 0.4 * rng.normal(size=(n, 2))


def extended_kalman(ys):
    mean, P, found, h = ys[0], 0.16 * np.eye(2), [ys[0]], 1e-6
    for y in ys[1:]:
        A = np.stack([(advance(mean + e) - advance(mean - e)) / (2 * h) for e in h * np.eye(2)],
                     axis=-1)
        mean, P = advance(mean), A @ P @ A.T + 0.01 * np.eye(2)
        J = P @ np.linalg.inv(P + 0.16 * np.eye(2))
        mean, P = mean + J @ (y - mean), P - J @ P
        found.append(mean)
    return np.array(found)


def test_the_filter_beats_extended_kalman_on_the_wheel():
    """alg-kernel-filter: parameters from the recording alone; the difference is several
    standard errors."""
    rng = np.random.default_rng(0)
    X, Y = wheel(1001, rng)
    wide = median_heuristic(X[:300]), median_heuristic(Y[:300])
    chosen = validate_filter(
        [(Gaussian(0.3 * wide[0]), Gaussian(b * wide[1])) for b in (0.3, 0.6)], X, Y,
        [1e-2, 1e-3], [1e-2, 1e-3], held_out=60, tol=1e-6, max_rank=60).filter
    gains = []
    for _ in range(10):
        x, y = wheel(60, rng)
        ours, other = (np.mean(np.sum((z - x) ** 2, axis=1))
                       for z in (chosen.filter(y).estimates, extended_kalman(y)))
        gains.append(other - ours)
    assert np.mean(gains) > 3 * np.std(gains, ddof=1) / 10**0.5
    assert np.mean(gains) > 0.04


# -- Interface ---------------------------------------------------------------


def test_in_pieces_as_at_once():
    """alg-kernel-filter: steps, and a filter that goes on where another stopped."""
    f, ys = trained(40), drift(8, seed=3)[1]
    whole = f.filter(ys)
    rest = f.filter(ys[3:], whole.embeddings[2])
    assert np.allclose(rest.weights, whole.weights[3:], rtol=1e-9, atol=1e-12)
    assert rest.notes == whole.notes[3:]
    m = None
    for y, w in zip(ys, whole.weights):
        m = f.step(y, m)
        assert np.allclose(m.weights, w, rtol=1e-9, atol=1e-12)
    apart = RKHSFunction(K, np.array(m.points), m.weights)      # not the filter's own points
    assert np.allclose(f.step(ys[0], apart).weights, f.step(ys[0], m).weights, rtol=0, atol=1e-6)
    p = f.predict(m)
    apart = RKHSFunction(K, np.array(p.points), p.weights)
    assert np.allclose(f.update(ys[0], apart).weights, f.update(ys[0], p).weights, rtol=0,
                       atol=1e-6)
    assert np.allclose(f.update(ys[0], p).weights, f.step(ys[0], m).weights, rtol=0, atol=1e-9)


def test_missing_observations_are_predictions():
    """ex-filter-missing: predict, again and again, forgets the past."""
    f = trained(80)
    p, q = f.step([1.5, 1.5]), f.step([-1.5, -1.5])
    apart = [norm(p - q)]
    for _ in range(12):
        p, q = f.predict(p), f.predict(q)
        apart.append(norm(p - q))
        assert np.isclose(p.weights.sum(), 1)
    assert apart[-1] < 0.2 * apart[0]


def test_without_an_observation_the_posterior_is_the_prediction():
    """alg-kernel-filter: predict and update by hand, where the third and fourth are missing."""
    f, ys = trained(40), drift(6, seed=3)[1]
    X = f.states
    m, wanted = None, []
    for t, y in enumerate(ys):
        if t in (2, 3):
            prior = conditional_embedding(K, K, X, X, LAM).transport(f.predict(m))
            m = prior / prior.weights.sum()
        else:
            m = f.step(y) if m is None else f.update(y, f.predict(m))
        wanted.append(m.weights)
    gaps, nothing = ys.copy(), [None if t in (2, 3) else y for t, y in enumerate(ys)]
    gaps[2:4] = np.nan
    found = f.filter(gaps)
    assert np.allclose(found.weights, wanted, rtol=0, atol=1e-7)
    assert np.array_equal(f.filter(nothing).weights, found.weights)
    assert found.notes == ("start", *["posterior"] * 1, *["prediction"] * 2, *["posterior"] * 2)
    tuned, m = (f.retune(lam, EPS) for lam in (1e-1, 1e-3, 1e-5)), found.embeddings[1]
    apart = [norm(g.predict(m) - g.filter([None], m).embeddings[0]) for g in tuned]
    assert apart[0] > 2 * apart[1] > 4 * apart[2]           # one embedding as λ vanishes
    rest = f.filter(gaps[2:], found.embeddings[1])          # in pieces as at once
    assert np.allclose(rest.weights, found.weights[2:], rtol=1e-9, atol=1e-12)
    silent = f.filter([None, np.nan])
    assert silent.notes == ("training", "prediction") and np.allclose(silent.weights[0], 1 / 40)
    assert np.isfinite(silent.estimates).all()


def test_missing_observations_on_tables_are_steps_of_the_chain():
    """thm-filter-tables: without an observation only the transitions act, for every λ and ε."""
    counts = [[[2, 1], [2, 1]], [[1, 1], [1, 3]]]
    move, emit = rows([[4, 2], [2, 4]]), rows([[3, 3], [2, 4]])
    p, wanted, ys = [Fraction(1, 2)] * 2, [], ["b", None, None, "a", None]
    for t, y in enumerate(ys):
        if t:
            p = [sum(p[x] * move[x][z] for x in range(2)) for z in range(2)]
        if y is not None:
            p = [p[x] * emit[x]["ab".index(y)] for x in range(2)]
            p = [value / sum(p) for value in p]
        wanted.append(p)
    x, y, z = copies(counts)
    f = KernelBayesFilter(Delta(), Delta(), x, ["ab"[i] for i in y], 0.3, 0.2, next_states=z)
    found = f.filter(ys)
    states = found.expectation(lambda s: np.eye(2)[list(s)])
    assert np.allclose(states, np.array(wanted, dtype=float), rtol=1e-12)
    assert found.notes == ("start", "prediction", "prediction", "posterior", "prediction")


def test_what_is_missing_on_the_line_and_what_is_not():
    """alg-kernel-filter: NaN among numbers is missing, half a row is an error, and so are
    columns in another order."""

    class Frame:
        dtypes = {}

        def __init__(self, values, columns):
            self.values, self.columns = values, columns

        def __array__(self, dtype=None, copy=None):
            return np.array(self.values, dtype=dtype)

        def __len__(self):
            return len(self.values)

    x, y = drift(31, 1)
    f = KernelBayesFilter(K, L, x[:, 0], y[:, 0], LAM, EPS)
    for ys in ([0.3, np.nan, 0.1], np.array([0.3, np.nan, 0.1]), (0.3, None, 0.1)):
        assert f.filter(ys).notes == ("start", "prediction", "posterior")
    x, y = drift(31)
    f = KernelBayesFilter(K, L, x, Frame(y, ["a", "b"]), LAM, EPS)
    for ys in ([[0.1, np.nan]], np.array([[0.1, np.nan], [0.1, 0.2]]), [[np.nan, np.nan]], [None, 1.0]):
        with pytest.raises(ValueError, match="^ys "):
            f.filter(ys)
    gaps = np.array([[0.1, 0.2], [np.nan, np.nan]])
    assert f.filter(Frame(gaps, ["a", "b"])).notes == ("start", "prediction")
    with pytest.raises(ValueError, match="same columns"):
        f.filter(Frame(gaps, ["b", "a"]))


def test_expectations():
    """thm-filter-recursion: ⟨f, m⟩ for functions of the space, sums for all others."""
    found = trained(40).filter(drift(5, seed=3)[1])
    g = RKHSFunction(K, [[0.0, 0.1], [1.0, 0.0]], [1.0, -2.0])
    assert np.allclose(found.expectation(g), [inner(g, m) for m in found.embeddings])
    values = np.cos(found.states[:, 0])
    assert np.allclose(found.expectation(values), found.weights @ values)
    assert np.allclose(found.expectation(lambda x: np.cos(x[:, 0])), found.weights @ values)
    assert found.expectation(found.states).shape == (5, 2)
    for bad in (values[:-1], "a", [np.nan] * 40):
        with pytest.raises(ValueError, match="g"):
            found.expectation(bad)


def test_other_regularisers_without_new_features():
    """prop-filter-coordinates: retune is a new filter with the same features."""
    x, y = drift(41)
    f, ys = trained(40), drift(5, seed=3)[1]
    fresh = KernelBayesFilter(K, L, x, y, 0.1, 0.2, tol=1e-14)
    other = f.retune(0.1, 0.2)
    assert np.allclose(other.filter(ys).weights, fresh.filter(ys).weights)
    assert other.F is f.F and (f.lam, f.eps) == (LAM, EPS) and (other.lam, other.eps) == (0.1, 0.2)
    assert np.array_equal(f.filter(ys).weights, trained(40).filter(ys).weights)


def test_validation_is_the_error_at_the_end_of_the_recording():
    """def-filter-validation, by hand, in one and in two dimensions."""
    kernels, lams, epsilons = [(K, L), (Gaussian(1.5), L)], [1e-3, 1e-1], [1e-3, 1e-1, 1e1]
    for d in (1, 2):
        x, y = drift(60, d)
        if d == 1:
            x = x[:, 0]
        v = validate_filter(kernels, x, y, lams, epsilons, held_out=15, estimate="mean",
                            method="clipped")
        assert isinstance(v, FilterValidation) and v.errors.shape == (2, 2, 3)
        for p, q, r in product(range(2), range(2), range(3)):
            f = KernelBayesFilter(*kernels[p], x[:45], y[:45], lams[q], epsilons[r],
                                  estimate="mean", method="clipped")
            gap = (f.filter(y[45:]).estimates - x[45:]).reshape(15, -1)
            assert np.isclose(v.errors[p, q, r], np.sum(gap**2) / 15)
        p, q, r = v.best
        assert v.errors[v.best] == v.errors.min()
        assert (v.filter.k, v.filter.l) == kernels[p] == v.kernels[p]
        assert np.array_equal(v.lams, lams) and np.array_equal(v.epsilons, epsilons)
        assert (v.filter.lam, v.filter.eps) == (lams[q], epsilons[r])
        assert (v.filter.method, v.filter.estimate) == ("clipped", "mean")
        assert np.array_equal(v.filter.states, x[:-1])
        assert not v.errors.flags.writeable and "FilterValidation" in repr(v)


def test_validation_in_units_in_which_squares_are_lost():
    """def-filter-validation: states of size 1e-170 have squares of zero, those of 1e170 overflow;
    the choice is that of units in which they do neither."""
    path = np.random.default_rng(0).integers(0, 3, size=60)
    seen = np.where(np.arange(60) % 4 == 0, 2, path)
    d, calls = Delta(), dict(kernels=[(Delta(), FunctionKernel(lambda a, b: 1.0)), (Delta(),) * 2],
                             observations=seen, lams=[1e-3], epsilons=[1e-3], held_out=20)
    plain = validate_filter(states=path.astype(float), **calls)
    assert plain.best == (1, 0, 0) and plain.errors[0, 0, 0] > plain.errors[1, 0, 0] > 0
    tiny = validate_filter(states=path * 1e-170, **calls)
    assert tiny.best == plain.best and tiny.filter.l == d
    with pytest.raises(ValueError, match="states"):
        validate_filter(states=path * 1e170, **calls)


def test_records_do_not_change_with_their_makers():
    """Frozen records: arrays are copied, and cannot be written."""
    x, y = drift(31)
    f = KernelBayesFilter(K, L, x, y, LAM, EPS)
    ys = drift(4, seed=3)[1]
    before = f.filter(ys)
    x[:] = y[:] = 0.0
    after = f.filter(ys)
    assert isinstance(after, Filtered) and np.array_equal(before.weights, after.weights)
    with pytest.raises(ValueError, match="read-only"):
        before.weights[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        before.estimates[0, 0] = 1.0
    with pytest.raises(FrozenInstanceError):
        f.lam = 1.0
    with pytest.raises(FrozenInstanceError):
        f.M = None                      # not a field, frozen all the same
    with pytest.raises(FrozenInstanceError):
        before.notes = ()
    assert repr(f) == ("KernelBayesFilter(Gaussian(sigma=0.6), Gaussian(sigma=0.8), n=30, "
                       "lam=0.01, eps=0.001)")
    assert repr(before) == "Filtered(Gaussian(sigma=0.6), T=4, n=30)"


X, Y = drift(12)


def test_records_can_be_copied_and_pickled():
    """KernelBayesFilter, Filtered and FilterValidation: the same numbers, read-only as before."""
    f, ys = trained(20), drift(4, seed=3)[1]
    found = f.filter(ys)
    choice = validate_filter([(K, L)], X, Y, [LAM], [EPS], held_out=3)
    for make in (copy.copy, copy.deepcopy, lambda record: pickle.loads(pickle.dumps(record))):
        twin = make(f)
        assert np.array_equal(twin.filter(ys).weights, found.weights) and repr(twin) == repr(f)
        assert np.array_equal(make(found).estimates, found.estimates)
        for array in (twin.M, twin.F, make(found).weights, make(found).estimates,
                      make(choice).errors):
            assert not array.flags.writeable


@pytest.mark.parametrize("match, wrong, right", [
    ("must be positive definite",
     dict(l=FunctionKernel(lambda a, b: float(max(0.0, 1 - np.sum((a - b) ** 2))) - 0.5)),
     dict(l=FunctionKernel(lambda a, b: float(max(0.0, 1 - np.abs(a - b).max())) + 0.5))),
    ("n lam", dict(lam=1e-100), dict(lam=1e-13)), ("n lam", dict(lam=1e308), dict(lam=1e300)),
    ("estimate", dict(estimate="preimage", k=Laplace(1.0)), dict(estimate="preimage")),
    ("states", dict(k=Delta(), states=list("abcabcabcabc"), estimate="mean"),
     dict(k=Delta(), states=list("abcabcabcabc"), estimate="state"))])
def test_recordings_without_a_filter_are_refused(match, wrong, right):
    """thm-filter-recursion: kernels, a visible λ, and estimates that the states have: letters
    have no mean, and pre-images are those of a Gaussian kernel."""
    arguments = dict(k=K, l=L, states=X, observations=Y, lam=LAM, eps=EPS)
    with pytest.raises(ValueError, match=match):
        KernelBayesFilter(**arguments | wrong)
    assert len(KernelBayesFilter(**arguments | right).filter(Y[:2]).notes) == 2


def test_a_kernel_that_is_zero_says_nothing():
    """alg-kernel-filter: without features only the recording itself is left."""
    for change in (dict(k=Linear(), states=0 * X, estimate="mean"),
                   dict(l=Linear(), observations=0 * Y)):
        f = KernelBayesFilter(**dict(k=K, l=L, states=X, observations=Y, lam=LAM, eps=EPS) | change)
        assert f.filter(Y[:1]).notes == ("training",)


def test_weights_that_overflow_and_regularisers_that_are_lost():
    """thm-filter-recursion: weights of 1e307 overflow where they are added, those of 1e300 do
    not; ε beside the operator counts above rounding errors."""
    f = KernelBayesFilter(K, L, X, Y, LAM, EPS)
    with pytest.raises(ValueError, match="too large"):
        f.step(Y[0], RKHSFunction(K, f.states, np.full(11, 1.7e308)))
    less = f.step(Y[0], RKHSFunction(K, f.states, np.full(11, 1e300)))
    assert np.isclose(less.weights.sum(), 1)
    with pytest.raises(ValueError, match="eps must be larger"):
        f.retune(LAM, 1e-40).filter(Y[:2])
    assert np.isfinite(f.retune(LAM, 1e-12).filter(Y[:2]).weights).all()


def test_validation_needs_pairs_of_kernels_and_points_to_train_on():
    """def-filter-validation: h < n."""
    good = dict(kernels=[(K, L)], states=X, observations=Y, lams=[LAM], epsilons=[EPS], held_out=3)
    assert validate_filter(**(good | dict(held_out=10))).errors.shape == (1, 1, 1)     # two are left
    for match, change in (("kernels", dict(kernels=[K, L])), ("kernels", dict(kernels=[(K,)])),
                          ("kernels", dict(kernels=K)), ("kernels", dict(kernels=[(K, L, L)])),
                          ("observations", dict(observations=Y[:-1])),
                          ("observations", dict(states=X[:-1])),
                          ("held_out", dict(held_out=11)), ("held_out", dict(held_out=0))):
        with pytest.raises(ValueError, match=match):
            validate_filter(**(good | change))
