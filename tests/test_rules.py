"""The identities of the chapter on the rules, one test each."""

import math
import pickle
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rkhs_lit import (
    Conjugated,
    Definiteness,
    Delta,
    FeatureKernel,
    FunctionKernel,
    Gaussian,
    Kernel,
    Linear,
    Mapped,
    Pairs,
    Polynomial,
    Power,
    Product,
    Scaled,
    Sigmoid,
    Sum,
    TensorProduct,
    as_kernel,
    as_sequence,
    checked,
    cross_covariance,
    embedding_error,
    gram_dot,
    hs_norm,
    hsic,
    is_positive_definite,
    mean_embedding,
    mmd2_unbiased,
    norm,
    normalised,
    polynomial_features,
    substrings,
    words,
    whole,
    width,
)

EPS = np.finfo(float).eps


numbers = st.floats(-3, 3, allow_subnormal=False).map(lambda v: round(v, 6))


def points(dimension=2, least=1, most=7):
    return st.integers(least, most).flatmap(
        lambda n: arrays(float, (n, dimension), elements=numbers))


def sample(n=9, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


class Labelled:
    """A column with labels, as a data frame has: indexing goes by label."""

    def __init__(self, values, labels):
        self.table = dict(zip(labels, values))

    def __len__(self):
        return len(self.table)

    def __getitem__(self, label):
        return self.table[label]

    def __array__(self, dtype=None, copy=None):
        return np.array(list(self.table.values()), dtype=dtype)


def test_two_feature_maps_of_one_kernel():
    """exm-two-features: x and (x, x)/√2 have the same inner products."""
    x = np.array([-3.0, 1.0, 5.0])
    two = Mapped(Linear(), lambda x: np.column_stack([x, x]) / math.sqrt(2))
    assert np.allclose(two(x), Linear()(x)) and np.allclose(two(x), np.outer(x, x))
    assert not np.allclose(two._prepare(x, "X")[:, :1], x[:, None])


@given(points(3), st.data())
def test_quadratic_form_is_the_norm_of_the_combined_features(X, data):
    """lem-features-pd: a'Ka = ‖Σ a_i φ(x_i)‖²."""
    a = data.draw(arrays(float, len(X), elements=numbers))
    Phi = polynomial_features(X, 3)
    left = a @ Polynomial(3)(X) @ a
    right = np.sum((a @ Phi) ** 2)
    # Rounding is relative to the sum of the terms' sizes.
    size = np.abs(a) @ np.abs(Polynomial(3)(X)) @ np.abs(a) + 1e-300
    assert abs(left - right) <= 1e3 * EPS * size


def test_the_check_names_each_kind_of_failure():
    """prop-witness."""
    cases = {
        "symmetric": [[1.0, 0.5], [0.4, 1.0]],
        "K[1, 1] = -2 is negative": [[1.0, 0.0], [0.0, -2.0]],
        "K[0, 1]² = 4 exceeds": [[1.0, 2.0], [2.0, 1.0]],
        "smallest eigenvalue is -0.414214": [[1.0, 1, 0], [1, 1, 1], [0, 1, 1]],
    }
    for reason, K in cases.items():
        verdict = is_positive_definite(K)
        assert isinstance(verdict, Definiteness)
        assert not verdict and not verdict.strict and reason in verdict.reason


def test_the_check_tells_strict_from_not_strict():
    """prop-witness: λ_min > 0 against λ_min = 0."""
    """prop-witness: λ_min > 0 against λ_min = 0, also in words."""
    for K, word in ((np.eye(3), "positive"), (np.ones((3, 3)), "zero up to rounding")):
        assert is_positive_definite(K).reason == f"the smallest eigenvalue is {word}"
    assert is_positive_definite(np.eye(3)).strict
    flat = is_positive_definite(np.ones((3, 3)))
    assert flat and not flat.strict
    assert is_positive_definite(np.zeros((2, 2)))


@given(arrays(float, (4, 4), elements=numbers))
def test_the_witness_is_a_witness_exactly_when_an_eigenvalue_is_negative(A):
    """prop-witness."""
    K = A + A.T
    verdict = is_positive_definite(K)
    smallest = np.linalg.eigvalsh(K)[0]
    tolerance = 4 * EPS * np.abs(K).sum(axis=1).max()
    if smallest < -4 * tolerance:
        assert not verdict
    if smallest > 4 * tolerance:
        assert verdict.strict
    if not verdict:
        a = verdict.witness
        assert np.isclose(np.linalg.norm(a), 1)
        assert a @ K @ a < 0
        assert np.isclose(a @ K @ a, verdict.value, atol=1e-12)


def test_a_visible_failure_has_a_witness_on_its_entries():
    """prop-witness: one entry, or two."""
    K = np.eye(5)
    K[3, 3] = -1
    assert np.array_equal(np.flatnonzero(is_positive_definite(K).witness), [3])
    K[3, 3], K[1, 4], K[4, 1] = 1, 2, 2
    assert np.array_equal(np.flatnonzero(is_positive_definite(K).witness), [1, 4])


def test_tolerance_of_the_check_is_the_callers_to_set():
    """prop-witness: what counts as zero."""
    K = np.diag([1.0, -1e-6])
    assert not is_positive_definite(K) and is_positive_definite(K, tol=1e-5)


def test_the_check_sees_past_a_large_entry():
    """prop-witness: scaling by a diagonal matrix changes neither definiteness."""
    for corner in (1e-20, 0.0):
        K = np.array([[1.0, 1e-9], [1e-9, corner]])
        verdict = is_positive_definite(K)
        assert not verdict and verdict.reason.startswith("after scaling K[0, 1]²")
        assert not verdict.strict
        a = verdict.witness
        assert np.isclose(np.linalg.norm(a), 1) and a @ K @ a < 0
        assert np.isclose(a @ K @ a, verdict.value)
    three = np.array([[1.0, 1, 0], [1, 1, 1], [0, 1, 1]])      # eigenvalue 1 - √2
    strict = three + np.eye(3)
    for D in (np.diag([1.0, 1e-9, 1e4]), np.diag([1e6, 1.0, 10.0])):
        assert not is_positive_definite(D @ three @ D)
        assert is_positive_definite(D @ strict @ D).strict
        assert is_positive_definite(D @ np.ones((3, 3)) @ D)
        assert not is_positive_definite(D @ np.ones((3, 3)) @ D).strict


def test_rows_of_rounding_errors_are_not_magnified():
    """prop-witness: centred points of which several are at the mean."""
    rng = np.random.default_rng(0)
    for n in (5, 20, 100):
        X = rng.normal(size=(n, 3))
        X[:3] = X[3:].mean(axis=0)
        K = X @ X.T
        H = np.eye(n) - 1 / n
        centred = H @ K @ H
        assert is_positive_definite((centred + centred.T) / 2)


def test_histogram_kernel_counts_words():
    """def-histogram."""
    documents = ["A dog, a DOG!", "the dog and the cat", "birds"]
    assert words("Été, été; l'Éte") == {"été": 2, "l": 1, "éte": 1}
    names = sorted(set().union(*map(words, documents)))
    Phi = np.array([[words(d)[w] for w in names] for d in documents])
    k = FeatureKernel(words)
    assert np.array_equal(k(documents), Phi @ Phi.T)
    assert np.array_equal(k.diag(documents), (Phi**2).sum(axis=1))
    assert np.array_equal(k(documents[:1], documents), (Phi @ Phi.T)[:1])


@given(st.lists(st.text("abc", max_size=8), min_size=1, max_size=5),
       st.integers(1, 3))
def test_spectrum_kernel_counts_common_substrings(texts, p):
    """def-histogram: Σ over pairs of places with equal substrings."""
    def by_pairs(x, y):
        return sum(x[i:i + p] == y[j:j + p] for i in range(len(x) - p + 1)
                   for j in range(len(y) - p + 1))

    assert np.array_equal(FeatureKernel(substrings(p))(texts),
                          FunctionKernel(by_pairs)(texts))


def test_histograms_work_in_tiles_and_through_every_rule():
    """def-histogram: nothing is asked of the set."""
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abcd"), 6)) for _ in range(300)]
    k = normalised(FeatureKernel(substrings(2))) + 0.5 * Delta()
    K = k(texts)
    assert is_positive_definite(K)
    assert np.allclose(K.diagonal(), 1.5)
    w = rng.normal(size=300)
    assert np.allclose(gram_dot(k, texts, texts, w), K @ w)


def test_delta_kernel_on_numbers_rows_and_strings():
    """lem-delta."""
    assert np.array_equal(Delta()([3, 1, 3]), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    assert np.array_equal(Delta()([1, 2], np.array([1.0, 2.0])), np.eye(2))
    assert np.array_equal(Delta()(np.array([[1.0], [2.0]]), [1, 2]), np.eye(2))
    assert np.array_equal(Delta()(["a"], np.array(["a", "b"])), [[1, 0]])
    rows = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])
    assert np.array_equal(Delta()(rows), [[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    assert np.array_equal(Delta()(["a", "b"], ["b"]), [[0], [1]])
    assert is_positive_definite(Delta()(list("abcde"))).strict
    assert np.array_equal(Delta().diag("x y z".split()), np.ones(3))


@given(points(2))
def test_each_rule_has_the_features_that_its_proof_names(X):
    """lem-sum, thm-product, lem-mapping, lem-conjugation."""
    k, l = Linear(), Mapped(Linear(), lambda X: X**2)
    Phi, Psi = X, X**2
    f = np.cos(X[:, 0])
    expected = {
        k + l: np.hstack([Phi, Psi]),
        3.0 * k: math.sqrt(3) * Phi,
        k * l: np.einsum("na,nb->nab", Phi, Psi).reshape(len(X), -1),
        k**2: np.einsum("na,nb->nab", Phi, Phi).reshape(len(X), -1),
        Mapped(k, np.sin): np.sin(X),
        Conjugated(k, lambda X: np.cos(X[:, 0])): f[:, None] * Phi,
    }
    for kernel, features in expected.items():
        assert np.allclose(kernel(X), features @ features.T, rtol=1e-12, atol=1e-10)


def test_operators_build_the_rules():
    """lem-sum, thm-product."""
    k, l = Gaussian(1.0), Linear()
    assert k + l == Sum(k, l) and k * l == Product(k, l)
    assert 2.0 * k == Scaled(2.0, k) == k * 2.0 and k**3 == Power(k, 3)
    assert np.float64(2.0) * k == Scaled(2.0, k)
    assert sum([k, l]) == Sum(k, l)
    for bad in (lambda: k + 1.0, lambda: 1.0 + k):
        with pytest.raises(TypeError):
            bad()


def test_a_power_is_a_repeated_product():
    """thm-product."""
    X = sample()
    k = Gaussian(1.0) + Linear()
    assert np.allclose((k**3)(X), (k * k * k)(X), rtol=1e-12)
    assert np.array_equal((k**0)(X), np.ones((9, 9)))


def test_trace_argument_for_products():
    """thm-product: tr((uv')'(u'v'')) = (u·u')(v·v'), exactly."""
    rng = np.random.default_rng(0)
    u, u2, v, v2 = (np.array([Fraction(int(a)) for a in rng.integers(-9, 9, n)])
                    for n in (3, 3, 4, 4))
    A, B = np.outer(u, v), np.outer(u2, v2)
    assert np.trace(A.T @ B) == (u @ u2) * (v @ v2)
    # What the kernel computes is the inner product of these matrices.
    pairs = Pairs(np.array([u, u2], float), np.array([v, v2], float))
    K = TensorProduct(Linear(), Linear())(pairs)
    assert K[0, 1] == float(np.sum(A * B)) and K[0, 0] == float(np.sum(A * A))


def test_tensor_product_on_pairs_of_different_kinds():
    """thm-product: k1(x, x') k2(y, y') with numbers and words."""
    pairs = Pairs(sample(300, 1)[:, 0], ["ab"[i % 2] for i in range(300)])
    k = TensorProduct(Gaussian(1.0), Delta())
    expected = Gaussian(1.0)(pairs.first) * Delta()(pairs.second)
    assert np.array_equal(k(pairs), expected)
    assert np.array_equal(k(pairs[:3], pairs), expected[:3])
    assert np.array_equal(k.diag(pairs), np.ones(300))
    both = TensorProduct(Linear(), Polynomial(2))
    numbers = Pairs(sample(4, 1), sample(4, 3, 1))
    assert np.allclose(both.diag(numbers), both(numbers).diagonal())
    assert np.allclose(both(numbers), Linear()(numbers.first)
                       * Polynomial(2)(numbers.second))
    assert pairs[2] == (pairs.first[2], "a") and len(pairs) == 300


def test_tensor_features_span_the_whole_tensor_product():
    """prop-tensor-dense: rank p·q when the features span R^p and R^q."""
    X = sample(30, 2)
    Phi, Psi = polynomial_features(X, 1), polynomial_features(X[::-1], 2)
    both = np.einsum("na,nb->nab", Phi, Psi).reshape(30, -1)
    assert np.linalg.matrix_rank(both) == both.shape[1] == 3 * 6


@settings(max_examples=50)
@given(arrays(float, (4, 3), elements=numbers), arrays(float, (4, 3), elements=numbers))
def test_schur_product_of_positive_definite_matrices(A, B):
    """cor-schur, with matrices of deficient rank."""
    K, L = A @ A.T, B @ B.T
    # Rounding in A A' is relative to its largest entry.
    scale = np.abs(K).max() * np.abs(L).max()
    assert is_positive_definite(K * L, tol=50 * EPS * scale)


def test_schur_product_of_strict_matrices_is_strict():
    """cor-schur: λ_min(K∘L) >= λ_min(K) min_i L_ii, which the proof gives
    after replacing K by K - λ_min(K) I."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        A, B = rng.normal(size=(2, 5, 5))
        K, L = A @ A.T, B @ B.T
        bound = np.linalg.eigvalsh(K)[0] * L.diagonal().min()
        smallest = np.linalg.eigvalsh(K * L)[0]
        assert smallest > 0 and smallest >= bound * (1 - 1e-9)


def test_normalised_kernel_is_the_cosine():
    """lem-conjugation with f = 1/√k(x, x)."""
    X = sample()
    Phi = polynomial_features(X, 2)
    cosine = Phi @ Phi.T / np.outer(*[np.linalg.norm(Phi, axis=1)] * 2)
    assert np.allclose(normalised(Polynomial(2))(X), cosine, rtol=1e-12)
    with pytest.raises(ValueError, match="X must have.*point 1 has not"):
        normalised(Linear())([2.0, 0.0, 1.0])


def test_the_diagonal_of_a_conjugated_kernel_has_the_square_of_the_function():
    """lem-conjugation: f(x)² k(x, x), also where it is not one."""
    X = sample(6)
    k = Conjugated(Polynomial(2, 1.0), lambda X: 3 + X[:, 0])
    np.testing.assert_allclose(k.diag(X), np.diag(k(X)), rtol=1e-13)
    np.testing.assert_allclose(k.diag(X), (3 + X[:, 0]) ** 2 * Polynomial(2, 1.0).diag(X))


@pytest.mark.parametrize("wrong", [lambda X: X, lambda X: X[1:, 0], lambda X: 1.0,
                                   lambda X: np.append(X[:, 0], 1.0)])
def test_the_function_of_a_conjugated_kernel_gives_one_number_for_each_point(wrong):
    """lem-conjugation: f is a function on the points; no more numbers than points, and no fewer."""
    with pytest.raises(ValueError, match="^function must return 6 numbers, got shape"):
        Conjugated(Linear(), wrong)(sample(6))


def test_a_map_sees_all_points_at_once_and_only_once():
    """lem-mapping: also for more points than a tile, and so for features."""
    X = sample(600)
    centred = Mapped(Linear(), lambda X: X - X.mean(axis=0))
    assert np.allclose(centred(X), (X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T)
    calls = Counter()

    def features(text):
        calls[text] += 1
        return words(text)

    texts = [f"word{i} word" for i in range(600)]
    K = normalised(FeatureKernel(features))(texts)
    assert np.allclose(K.diagonal(), 1)
    assert max(calls.values()) <= 2            # once for k, once for k(x, x)


def test_a_root_of_a_kernel_can_fail():
    """thm-product needs a whole power."""
    K = Linear()([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert is_positive_definite(K) and not is_positive_definite(np.sqrt(K))


def test_a_difference_of_kernels_can_fail():
    """exm-difference, exactly."""
    x, a = (-1, 1), (1, -1)
    value = sum(a[i] * a[j] * (x[i] * x[j] - 1) ** 2 for i in (0, 1) for j in (0, 1))
    assert value == -8
    with pytest.raises(ValueError, match="difference of kernels"):
        Linear() - Gaussian(1.0)


@pytest.mark.parametrize("c", [0.5, 10.0, 1e4])
def test_no_value_at_zero_makes_the_inverse_distance_a_kernel(c):
    """ex-limit: two points nearer than 1/c."""
    k = FunctionKernel(lambda s, t: c if s == t else 1 / abs(s - t))
    assert is_positive_definite(k([0.0, 1.5 / c]))
    assert not is_positive_definite(k([0.0, 0.9 / c]))


def test_points_with_labels_are_taken_in_their_order():
    """as_sequence: a series is read as an array, not by its labels."""
    for values in ([3.0, 1.0, 2.0], ["c", "a", "b"]):
        points = as_sequence(Labelled(values, [2, 0, 1]))
        assert list(points) == values


def test_two_counters_of_substrings_are_one_kernel():
    """def-histogram: equal functions, equal kernels; they can be sent to another process."""
    one, other = FeatureKernel(substrings(2)), FeatureKernel(substrings(2))
    assert one == other != FeatureKernel(substrings(3))
    assert "substrings(2)" in repr(one) and pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize("n", [1, 2, 30, 256, 257, 300, 600])
def test_a_function_is_called_for_half_of_a_gram_matrix_and_a_sample(n):
    """def-kernel: at every size, n (n + 1) / 2 calls and at most n / 2 more a tile."""
    calls = Counter()

    def k(x, y):
        calls[x, y] += 1
        return min(x, y)

    points = list(range(1, n + 1))
    K = FunctionKernel(k)(points)
    assert np.array_equal(K, np.minimum.outer(points, points))
    tiles = math.ceil(n / 256)
    assert sum(calls.values()) <= n * (n + 1) / 2 + n * tiles


def asymmetric(x, y):
    return math.exp(-abs(x - y)) * (1 + 0.01 * (x > y))


@pytest.mark.parametrize("n", [2, 3, 256, 257, 300])
@pytest.mark.parametrize("points", [list, np.array], ids=["list", "array"])
def test_an_asymmetric_function_is_refused_at_every_size(n, points):
    """def-kernel: 257 points come in tiles, 256 do not. The symmetric part is not refused."""
    x = points(np.linspace(0, 1, n))
    symmetric = FunctionKernel(lambda s, t: asymmetric(s, t) + asymmetric(t, s))
    for use in (
        lambda k: k(x),
        lambda k: k(x[: n // 2], x[n // 2 :]),
        lambda k: (2 * k + Delta())(x),
        lambda k: gram_dot(k, x, None, np.ones(n)),
        lambda k: gram_dot(k, x, x[:1], np.ones(1)),
    ):
        with pytest.raises(ValueError, match="function must be symmetric"):
            use(FunctionKernel(asymmetric))
        assert np.isfinite(use(symmetric)).all()


@pytest.mark.parametrize("n", [60, 300])
def test_an_asymmetric_function_is_refused_by_sums_over_tiles(n):
    """prop-tiles: hsic, mmd and embedding_error never make the whole matrix. A symmetric function
    passes."""
    x = np.linspace(0, 1, n)
    for use in (
        lambda k: hsic(k, Gaussian(1.0), x, x),
        lambda k: mmd2_unbiased(k, x, x + 0.5),
        lambda k: embedding_error(k, x),
        lambda k: norm(mean_embedding(k, x)),
        lambda k: hs_norm(cross_covariance(k, Gaussian(1.0), x, x)),
    ):
        with pytest.raises(ValueError, match="function must be symmetric"):
            use(FunctionKernel(asymmetric))
        assert use(FunctionKernel(lambda s, t: np.exp(-abs(s - t)))) > 0


def test_small_values_do_not_hide_an_asymmetry():
    """def-kernel: symmetric to eight digits of the largest value in the tile."""
    with pytest.raises(ValueError, match="function must be symmetric"):
        FunctionKernel(lambda x, y: 1e-12 * asymmetric(x, y))([0.0, 1.0])
    rounded = FunctionKernel(lambda x, y: x * y * (1 + 1e-15 * (x > y)))
    assert rounded([1.0, 3.0]).shape == (2, 2)


@pytest.mark.parametrize(
    "points, instead",
    [
        ([[1.0, np.nan], [2.0, 3.0]], [[1.0, 4.0], [2.0, 3.0]]),
        (np.array([[1.0, 2.0], [np.nan, 3.0]]), np.array([[1.0, 2.0], [4.0, 3.0]])),
        ([("a", np.nan), ("b", 1.0)], [("a", 1.0), ("b", 1.0)]),
        ([("a", ("b", np.nan)), "c"], [("a", ("b", 0.0)), "c"]),
        ([frozenset([np.nan]), frozenset()], [frozenset([0.0]), frozenset()]),
        ([np.nan, 1.0], [0.0, 1.0]),
        (np.array(["NaT", "2020-01-01"], dtype="datetime64[D]"),
         np.array(["2020-01-02", "2020-01-01"], dtype="datetime64[D]")),
    ],
)
def test_delta_refuses_what_is_not_equal_to_itself(points, instead):
    """lem-delta: NaN in a row, in an object, or in a part of one; two points that are equal to
    themselves have the matrix I."""
    with pytest.raises(ValueError, match="^X must not hold NaN"):
        Delta()(points)
    assert np.array_equal(Delta()(instead), np.eye(2))


def test_a_kernel_may_be_its_gram_matrix_alone():
    """def-kernel: the diagonal comes from the entries k(x, x)."""
    class Shifted(Kernel):
        def _prepare(self, X, name):
            return np.asarray(X, dtype=float)

        def _gram(self, X, Y):
            return (X + 1) @ (Y + 1).T

    X = sample(5)
    np.testing.assert_allclose(Shifted().diag(X), np.diag(Shifted()(X)), rtol=1e-14)


def test_a_parameter_is_read_by_its_check():
    """def-numbers: bytes, whole floats and defaults."""
    @dataclass(frozen=True)
    class Bell(Kernel):
        sigma: float = checked(width)
        degree: int = checked(whole, default=2)

    assert Bell(np.uint8(20)).sigma ** 2 == 400 and Bell(1, 3.0) == Bell(1.0, 3)
    assert type(Bell(1, 3.0).degree) is int and Bell(1).degree == 2
    with pytest.raises(ValueError, match="^sigma must be a positive number"):
        Bell(-1.0)
    with pytest.raises(ValueError, match="^read must be a function"):
        checked(3)


def test_what_is_no_kernel_is_refused_by_name():
    """def-kernel, prop-sigmoid."""
    k, s = Gaussian(1.0), Sigmoid(1.0, 0.0)
    assert as_kernel(k) is k and as_kernel(s) is s and as_kernel(k, definite=True) is k
    with pytest.raises(ValueError, match="^l must be a Kernel, got str"):
        as_kernel("rbf", "l")
    with pytest.raises(ValueError, match="^l must be positive definite, but Sigmoid"):
        as_kernel(s, "l", definite=True)
    for part in (s + k, k + s, k * s, 2 * s, s**2):
        assert not part.positive_definite
    assert (k + k).positive_definite


@pytest.mark.parametrize("d, e", [(1, 2), (2, 1), (3, 2)])
def test_points_of_two_dimensions_do_not_meet(d, e):
    """def-kernel: one set of points, and what has no dimension meets anything."""
    with pytest.raises(ValueError, match=f"^Y must have points in dimension {d} like X, got {e}"):
        Gaussian(1.0)(np.ones((2, d)), np.ones((3, e)))
    assert Delta()(np.ones((2, d)), ["a"]).shape == (2, 1)


def test_what_counts_as_zero_is_compared_with_entries_and_minors():
    """prop-witness: a diagonal entry above -tol, a minor above -2 tol max |K|, and a smallest
    eigenvalue above -tol pass; an eigenvalue of tol is not above it."""
    for least, good in ((-0.01, True), (-0.0101, False)):
        verdict = is_positive_definite(np.diag([1.0, least]), tol=0.01)
        assert bool(verdict) == good and not verdict.strict
        assert good or "is negative" in verdict.reason
    assert not is_positive_definite(np.diag([1.0, 0.01]), tol=0.01).strict
    assert is_positive_definite(np.diag([1.0, 0.0101]), tol=0.01).strict
    for off, reason in ((1.01, "eigenvalue"), (1.02, "exceeds")):
        K = np.array([[1.0, off], [off, 1.0]])       # minor 1 - off², eigenvalue 1 - off
        verdict = is_positive_definite(K, tol=0.00996)
        assert not verdict and reason in verdict.reason
        assert np.isclose(verdict.value, 1 - off) and np.isclose(
            verdict.witness @ K @ verdict.witness, 1 - off)
    assert is_positive_definite([[1.0, 1.0], [1.0 + 1e-3, 1.0]], tol=1e-3 * (1 + 1e-12))
    assert "symmetric" in is_positive_definite([[1.0, 1.0], [1.0 + 1e-3, 1.0]], tol=0.9e-3).reason


def test_pairs_have_the_names_of_the_columns_of_both_lists():
    """thm-product, def-points: or none, if neither has."""
    class Frame(list):
        columns = ["height", "weight"]

    class Column(list):
        columns = ["age"]

    table, column, plain = Frame([[1.0, 2.0]]), Column([3.0]), [4.0]
    assert Pairs(table, column).columns == ("height", "weight", "age")
    assert Pairs(plain, column).columns == ("age",) and Pairs(plain, plain).columns is None
