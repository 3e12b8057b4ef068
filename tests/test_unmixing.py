"""Identities of the chapter on features and sources."""

import copy
import pickle
from dataclasses import FrozenInstanceError
from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rkhs_lit import (
    Delta,
    FeatureSelection,
    Gaussian,
    Laplace,
    Linear,
    Unmixing,
    balanced_labels,
    centre,
    hsic,
    hsic_biased,
    hsic_gaussian,
    hsic_unmix,
    median_heuristic,
    mmd2_biased,
    select_features,
)

K1 = Gaussian(1.0)


# -- features ---------------------------------------------------------------


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 99))
def test_balanced_labels_make_hsic_an_mmd_and_a_difference_of_means(a, b, seed):
    """thm-balanced-labels."""
    rng, n = np.random.default_rng(seed), a + b
    labels = rng.permutation(["no"] * a + ["yes"] * b)
    X = rng.normal(size=(n, 3))
    y, plus = balanced_labels(labels), labels == "yes"
    assert np.allclose(y[plus], 1 / b) and np.allclose(y[~plus], -1 / a)
    L = np.outer(y, y)
    assert np.allclose(centre(L), L, atol=1e-15)
    for k in (Linear(), Gaussian(1.0)):
        value = hsic(k, Linear(), X, y, unbiased=False)
        assert np.isclose(n**2 * value, mmd2_biased(k, X[plus], X[~plus]), atol=1e-12)
    gap = X[plus].mean(axis=0) - X[~plus].mean(axis=0)
    single = [hsic(Linear(), Linear(), X[:, c], y, unbiased=False) for c in range(3)]
    assert np.allclose(n**2 * np.array(single), gap**2, atol=1e-12)
    assert np.isclose(sum(single), hsic(Linear(), Linear(), X, y, unbiased=False), atol=1e-13)


def test_balanced_labels_take_numbers_and_truth_values():
    y = [3, 1, 3, 3]
    assert np.allclose(balanced_labels(y), [1 / 3, -1, 1 / 3, 1 / 3])
    assert np.allclose(balanced_labels([True, False]), [1, -1])
    assert np.allclose(balanced_labels(np.array(["b", "a", "a"], dtype=object)), [1, -0.5, -0.5])


def test_features_that_matter_together_are_found_backward():
    """select_features: every step is the best one, and exclusive or needs the way back."""
    rng, k = np.random.default_rng(0), Gaussian(2.0)
    X = rng.normal(size=(100, 5))
    y = np.sign(X[:, 1] * X[:, 3])
    found = select_features(k, Delta(), X, y, 2)
    assert isinstance(found, FeatureSelection) and found.features == (1, 3)
    left = [0, 1, 2, 3, 4]
    for column, value in zip(found.path, found.values, strict=True):
        scores = {c: hsic(k, Delta(), X[:, [d for d in left if d != c]], y) for c in left}
        assert column == max(scores, key=scores.get) and value == scores[column]
        left.remove(column)
    pairs = {p: hsic(k, Delta(), X[:, p], y) for p in combinations(range(5), 2)}
    assert max(pairs, key=pairs.get) == (1, 3)


def test_with_linear_kernels_the_greedy_choice_is_the_largest_mean_differences():
    """thm-balanced-labels, part 3: additive scores; forward and backward agree."""
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 1.0], 30)
    X = rng.normal(size=(60, 6)) + np.outer(y, [0, 3, 0, 2, 0, 1])
    forward, backward = (select_features(Linear(), Linear(), X, balanced_labels(y), 3,
                                         direction=d) for d in ("forward", "backward"))
    assert forward.features == backward.features == (1, 3, 5)
    assert forward.path == (1, 3, 5) and len(backward.path) == 3
    everything = select_features(Linear(), Linear(), X, y, 6)
    assert everything.features == tuple(range(6)) and everything.path == everything.values == ()


# -- normal variables -------------------------------------------------------


@given(st.floats(-0.95, 0.95), st.floats(0.3, 3), st.floats(0.3, 3), st.floats(0.5, 2))
def test_hsic_of_a_normal_pair(rho, sigma, tau, s):
    """prop-hsic-gaussian: the determinant form and the form for two numbers."""
    S = np.array([[s * s, rho * s], [rho * s, 1.0]])
    m, c = (1 + 2 * s**2 / sigma**2) * (1 + 2 / tau**2), rho * s / (sigma * tau)
    value = (m - 4 * c * c) ** -0.5 - 2 * (m - c * c) ** -0.5 + m**-0.5
    # A difference of numbers of size one.
    assert np.isclose(hsic_gaussian(Gaussian(sigma), Gaussian(tau), S), value, atol=1e-14, rtol=1e-7)


def test_hsic_of_a_normal_vector_by_gauss_hermite_quadrature():
    """prop-hsic-gaussian with two coordinates of X and one of Y: A, B and D by quadrature."""
    S = np.array([[1.0, 0.3, 0.5], [0.3, 2.0, -0.4], [0.5, -0.4, 1.5]])
    k, l = Gaussian(2.5), Gaussian(2.0)
    t, w = np.polynomial.hermite_e.hermegauss(24)
    w = w / w.sum()
    z, weight = np.array(list(product(t, repeat=3))), np.array([prod(v) for v in product(w, repeat=3)])

    def mean(covariance):
        """E of k l at a difference with this covariance."""
        u = z @ np.linalg.cholesky(covariance).T
        return weight @ (k(u[:, :2], np.zeros((1, 2))) * l(u[:, 2:], np.zeros((1, 1))))[:, 0]

    apart = S.copy()
    apart[:2, 2] = apart[2, :2] = 0
    value = mean(2 * S) - 2 * mean(S + apart) + mean(2 * apart)
    assert np.isclose(hsic_gaussian(k, l, S, split=2), value, rtol=1e-6)
    assert hsic_gaussian(k, l, apart, split=2) < 1e-15
    flipped = S[np.ix_([2, 0, 1], [2, 0, 1])]
    assert np.isclose(hsic_gaussian(l, k, flipped), value, rtol=1e-6)
    singular = np.ones((2, 2))
    assert np.isclose(hsic_gaussian(k, k, singular), hsic_gaussian(k, k, singular * (1 - 1e-12)))


# -- unmixing ---------------------------------------------------------------


@pytest.mark.parametrize("n, d", [(40, 2), (30, 3), (300, 2)])
def test_the_gradient_of_hsic_agrees_with_differences(n, d):
    """prop-unmix-gradient, also over tile borders: the first step goes down the gradient."""
    rng, k = np.random.default_rng(n), Gaussian(0.8)
    Z = rng.normal(size=(n, d)) ** 3
    Z -= Z.mean(axis=0)
    Z = Z @ np.linalg.inv(np.linalg.cholesky(Z.T @ Z / n)).T           # covariance I
    W = rng.normal(size=(2, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)

    def objective(W):
        u, v = (Z @ w / np.linalg.norm(w) for w in W)
        return hsic_biased(k(u), k(v))

    h = 1e-5
    E = h * np.eye(2 * d).reshape(-1, 2, d)
    # Central differences: h² in truncation, 1e-16 / h in rounding.
    slope = np.array([objective(W + e) - objective(W - e) for e in E]).reshape(2, d) / (2 * h)
    result = hsic_unmix(k, Z, W)
    assert np.allclose(result.path[0], W) and np.isclose(result.values[0], objective(W), rtol=1e-10)
    along = np.sum(result.path[1] * W, axis=1, keepdims=True)
    step = result.path[1] / along - W                 # the step before it was scaled to length one
    factor = -np.sum(step * slope) / np.sum(slope**2)
    assert factor > 0 and np.allclose(step, -factor * slope, rtol=1e-5, atol=1e-6 * factor)
    assert result.converged and result.value < result.values[0]


def test_the_gradient_has_the_size_that_differences_say():
    """prop-unmix-gradient: a search ends at once where no entry is above the tolerance. The
    covariance is diagonal, so that whitening changes no more than the order of the entries."""
    rng, k = np.random.default_rng(1), Gaussian(0.8)
    Z = rng.normal(size=(60, 2)) ** 3
    Z -= Z.mean(axis=0)
    Z = Z @ np.linalg.inv(np.linalg.cholesky(Z.T @ Z / 60)).T           # covariance I
    W = np.array([[0.8, 0.6], [-0.28, 0.96]])

    def objective(W):
        u, v = (Z @ w / np.linalg.norm(w) for w in W)
        return hsic_biased(k(u), k(v))

    E = 1e-5 * np.eye(4).reshape(4, 2, 2)
    size = max(abs(objective(W + e) - objective(W - e)) for e in E) / 2e-5
    assert len(hsic_unmix(k, Z, W, tol=1.001 * size).path) == 1
    assert len(hsic_unmix(k, Z, W, tol=0.999 * size, max_steps=1).path) == 2


def test_unmixing_a_normal_vector_makes_its_components_uncorrelated():
    """prop-unmix-normal: the covariance of the components becomes diagonal, not the axes."""
    rng, M = np.random.default_rng(0), np.array([[2.0, 0.6], [1.2, 1.0]])
    X = rng.normal(size=(300, 2)) @ M.T + 5.0
    result = hsic_unmix(Gaussian(1.0), X, [[1.0, 0.0], [1.0, 0.3]])
    A, C = result.matrix, (X - X.mean(axis=0)) @ result.matrix.T
    assert isinstance(result, Unmixing) and result.converged
    assert (np.diff(result.values) <= 1e-15).all() and result.values[0] > 20 * result.value
    assert np.allclose(C.std(axis=0), 1) and abs(np.mean(C[:, 0] * C[:, 1])) < 0.15
    assert np.isclose(result.value, hsic(Gaussian(1.0), Gaussian(1.0), *C.T, unbiased=False))
    assert abs((A @ M @ M.T @ A.T)[0, 1]) < 0.2
    for step in (0, -1):
        u, v = result.path[step] @ (X - X.mean(axis=0)).T
        assert np.isclose(result.values[step], hsic(Gaussian(1.0), Gaussian(1.0), u, v,
                                                    unbiased=False))
    assert np.array_equal(result.path[-1], A)
    with pytest.raises(ValueError):
        result.matrix[0, 0] = 1.0


def test_unmixing_finds_uniform_sources_in_any_units():
    """prop-unmix-gradient: the rows of A M become multiples of unit vectors."""
    rng, M = np.random.default_rng(1), np.array([[1.0, 0.7], [-0.4, 1.0]])
    S = rng.uniform(-1, 1, size=(300, 2))
    start = np.array([[1.0, -0.3], [0.2, 1.0]])
    A = hsic_unmix(Gaussian(0.7), S @ M.T, start).matrix
    gain = np.abs(A @ M)
    assert (gain.min(axis=1) < 0.15 * gain.max(axis=1)).all()
    units = np.array([1e180, 1e-150])
    B = hsic_unmix(Gaussian(0.7), S @ M.T * units, start / units).matrix
    assert np.allclose(B * units, A, rtol=1e-3, atol=1e-3)
    # An offset costs digits, not the result: the points are centred before they are scaled.
    B = hsic_unmix(Gaussian(0.7), S @ M.T + [1e8, 0.0], start).matrix
    assert np.allclose(B, A, rtol=1e-3, atol=1e-3)


def test_the_median_bandwidth_of_a_standardised_component_is_near_one():
    """What hsic_unmix recommends: 0.954 for a normal variable."""
    x = np.random.default_rng(0).normal(size=2000)
    assert abs(median_heuristic(x / x.std()) - 0.954) < 0.03

# -- corners ----------------------------------------------------------------


def test_hsic_unmix_checks_its_input():
    X, start = np.random.default_rng(0).normal(size=(20, 2)), np.eye(2)
    with pytest.raises(ValueError, match="^k must be Gaussian"):
        hsic_unmix(Laplace(1.0), X, start)
    for bad in (X[:, 0], X[:2], X[:, [0, 0]], np.full((9, 2), np.nan), X * [1, 0], "X",
                np.column_stack([X[:, 0], X[:, 0] + 1e-7 * X[:, 1]]), X * [1, 0] + [0, 0.1]):
        with pytest.raises(ValueError, match="^X"):
            hsic_unmix(K1, bad, start)
    for bad in (np.eye(3), [[1.0], [2.0]], [1.0, 0.0], [[1, 1], [2, 2]], [[0, 0], [1, 0]],
                np.full((2, 2), np.inf)):
        with pytest.raises(ValueError, match="^start"):
            hsic_unmix(K1, X, bad)
    with pytest.raises(ValueError, match="^tol"):
        hsic_unmix(K1, X, start, tol=-1.0)
    with pytest.raises(ValueError, match="^max_steps"):
        hsic_unmix(K1, X, start, max_steps=0)
    short = hsic_unmix(K1, X, [[1.0, 0.0], [1.0, 0.2]], max_steps=1)
    assert len(short.values) == 2 and not short.converged
    exact = hsic_unmix(K1, X, start, tol=0.0, max_steps=1)         # asks for all that it can have
    assert len(exact.values) <= 2 and not exact.converged


def test_records_cannot_be_changed():
    X = np.random.default_rng(0).normal(size=(20, 2))
    selection = select_features(K1, K1, X, X, 1)
    record = hsic_unmix(K1, X, np.eye(2), max_steps=2)
    for value, name in ((selection, "path"), (record, "value")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, 0)
    for again in (record, copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
        assert np.array_equal(again.path, record.path) and again.value == record.value
        for array in (again.matrix, again.path, again.values):
            with pytest.raises(ValueError):
                array[0] = 1.0
    assert pickle.loads(pickle.dumps(selection)) == selection and "np." not in repr(selection)
    assert hash(selection) is not None and repr(record).startswith("Unmixing(value=")


class Frame:
    """As much of a data frame as the package looks at."""

    def __init__(self, values, columns):
        self.values, self.columns = values, columns

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


def test_a_selection_carries_the_names_of_the_columns():
    """thm-hsic-unbiased: the names stand beside the indices; without names there are none."""
    rng, names = np.random.default_rng(0), ["noise", "one", "other", "rest"]
    X = rng.normal(size=(80, 4))
    y = np.sign(X[:, 1] * X[:, 2])
    plain, named = (select_features(Gaussian(2.0), Delta(), Z, y, 2)
                    for Z in (X, Frame(X, names)))
    assert named.features == plain.features == (1, 2)
    assert named.names == ("one", "other") and plain.names == ()
    assert (named.path, named.values) == (plain.path, plain.values)
    assert pickle.loads(pickle.dumps(named)) == named != plain
