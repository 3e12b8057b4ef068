"""What may go in: numbers, flags, choices, generators, points."""

import copy
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
import rkhs_lit as r
from hypothesis import given
from hypothesis import strategies as st
from rkhs_lit import (
    PrecisionWarning,
    as_points,
    as_sequence,
    certain,
    choice,
    finite,
    flag,
    frozen,
    function,
    generator,
    nonnegative,
    number,
    plain_array,
    positive,
    positives,
    real_array,
    same_columns,
    same_dimension,
    tolerance,
    vector,
    whole,
    width,
)

NARROW = [np.uint8, np.int8, np.int16, np.int32, np.float16, np.float32, np.longdouble]


@pytest.mark.parametrize("kind", NARROW)
@pytest.mark.parametrize("read", [number, nonnegative, positive, width])
def test_a_number_of_any_type_becomes_a_float(read, kind):
    """def-numbers: 20 is 20, and its square is 400."""
    x = read(kind(20), "x")
    assert type(x) is float and x * x == 400.0


@pytest.mark.parametrize("kind", [int, float, Fraction, *NARROW])
def test_a_whole_number_of_any_type_becomes_an_int(kind):
    """def-numbers."""
    n = whole(kind(100), "n", 1)
    assert type(n) is int and n * n == 10_000


@given(st.fractions())
def test_fractions_are_rounded_to_the_nearest_float(q):
    """def-numbers."""
    assert number(q, "q") == float(q)


def test_the_limits_of_each_kind_of_number():
    """def-numbers."""
    assert nonnegative(0, "x") == 0.0 and whole(0, "n") == 0
    assert positive(1e-300, "x") == 1e-300 and tolerance(1e-300) == 1e-300
    assert tolerance(0, zero=True) == 0.0
    for read, bad in [
        (nonnegative, -1e-300),
        (positive, 0.0),
        (positive, -1.0),
        (width, 1e-200),
        (width, 1e200),
        (width, -1.0),
        (tolerance, 0.0),
        (tolerance, 1.0),
        (tolerance, 2.0),
        (whole, 2.5),
        (whole, -1),
    ]:
        with pytest.raises(ValueError, match="^tol must be"):
            read(bad, "tol")
    with pytest.raises(ValueError, match="at least 3, got 2"):
        whole(2, "n", 3)


def test_the_limits_are_the_last_floats_that_do():
    """def-numbers: widths whose squares are floats, tolerances below one."""
    assert width(2.0**-537, "x") ** 2 > 0 and (width(r.conventions.MAX**0.5, "x") ** 2) < np.inf
    assert tolerance(1 - 2.0**-53) == np.nextafter(1.0, 0.0)
    for bad in (2.0**-538, np.nextafter(r.conventions.MAX**0.5, np.inf)):
        with pytest.raises(ValueError, match="^x must be a positive number, and so its square"):
            width(bad, "x")


def test_what_is_shown_of_a_bad_value_is_short():
    """def-numbers: 80 characters are shown, of more the first 60."""
    for length, shown in ((80, "7" * 80), (81, "7" * 60 + "...")):
        with pytest.raises(ValueError) as error:
            number(int("7" * length), "x", high=1.0)
        assert str(error.value) == f"x must be a finite number, got {shown}"


def test_flags_choices_and_functions():
    """def-numbers."""
    assert flag(np.bool_(True), "centred") is True
    assert choice("b", "method", ("a", "b")) == "b"
    assert function(abs, "f") is abs
    with pytest.raises(ValueError, match="centred must be True or False, got 1"):
        flag(1, "centred")
    with pytest.raises(ValueError, match='method must be "a" or "b", got \'c\''):
        choice("c", "method", ("a", "b"))
    with pytest.raises(ValueError, match="method must be"):
        choice(np.array(["a"]), "method", ("a", "b"))
    with pytest.raises(ValueError, match="f must be a function, got 3"):
        function(3, "f")


def test_a_seed_repeats_and_a_generator_moves_on():
    """def-rng."""
    assert generator(3).random() == generator(3).random()
    rng = np.random.default_rng(3)
    assert generator(rng) is rng
    assert generator(None).random() != generator(None).random()
    for bad in ("seed", -1, 1.5):
        with pytest.raises(ValueError, match="^rng must be a seed"):
            generator(bad)


def test_an_array_of_floats_is_taken_as_it_is_and_a_view_with_gaps_is_copied():
    """def-points: X itself where it is one, in either order of its entries."""
    X = np.arange(12.0).reshape(3, 4)
    turned = X.T
    assert as_points(X) is X and as_points(turned) is turned
    gaps = X[:, ::2]
    assert as_points(gaps).flags.c_contiguous and np.array_equal(as_points(gaps), gaps)
    assert plain_array([1, 2], "a").dtype.kind == "i"         # no need for floats


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_an_array_without_numbers_is_called_empty(shape):
    """def-points: for an array that need not be points."""
    with pytest.raises(ValueError, match=r"^K must not be empty, got shape \(\d, ?\d?\)"):
        real_array(np.zeros(shape), "K")


def test_the_first_bad_row_and_the_first_column_of_text_are_named():
    """def-points: of a table, the columns of numbers are points."""
    with pytest.raises(ValueError, match="^X must be finite, but row 1 is not"):
        as_points([[0.0], [np.nan], [1.0], [np.inf]])
    with pytest.raises(ValueError, match="column 'town' does not"):
        as_points(Frame(age=[1.0, 2.0], town=["Bonn", "Ulm"], name=["Ada", "Ben"]))
    assert as_points(Frame(age=[1.0, 2.0], size=[3, 4])).tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_numbers_lists_and_tables_are_arrays_and_cubes_are_not():
    """def-points: at most two axes, or as many as are asked for."""
    assert real_array(3, "x").shape == () and real_array(3, "x", 0) == 3.0
    assert real_array([[1, 2]], "x").shape == (1, 2)
    for bad, ndim in ((np.ones((1, 1, 1)), None), (3, 1), ([3], 0)):
        with pytest.raises(ValueError, match="^x must have .* axes, got shape"):
            real_array(bad, "x", ndim)


def test_unmasked_arrays_and_all_real_types_are_welcome():
    """def-points."""
    assert real_array(np.ma.array([1.0, 2.0]), "X").tolist() == [1.0, 2.0]
    for kind in (bool, *NARROW):
        array = as_points(np.ones((2, 3), dtype=kind))
        assert array.dtype == float and array.shape == (2, 3)
    assert as_points([1, 2, 3]).shape == (3, 1)
    assert real_array([[1, 2]], "A", 2).shape == (1, 2)
    with pytest.raises(ValueError, match="A must have 2 axes, got shape"):
        real_array([1, 2], "A", 2)


class Frame:
    """As much of a data frame as matters here."""

    def __init__(self, **columns):
        self.columns = list(columns)
        self.dtypes = {name: np.asarray(v).dtype for name, v in columns.items()}
        self.values = np.array(list(columns.values()), dtype=object).T

    def __array__(self, dtype=None, copy=None):
        return self.values


def test_one_point_and_points_to_come_are_told_apart():
    """def-points: the error says what to write."""
    for read in (as_points, as_sequence):
        for one in (0.5, np.array(3.0), None):
            with pytest.raises(ValueError, match=r"^T must be .* a single \w+: write \[T\]$"):
                read(one, "T")
        for more in (iter([1]), (x for x in [1]), map(abs, [1])):
            with pytest.raises(ValueError, match=r"^T must be .*: write list\(T\)$"):
                read(more, "T")
    with pytest.raises(ValueError, match=r"got a set: write list\(X\)$"):
        as_points({1, 2})
    assert as_sequence({1: "a"}.keys()) == [1]


def test_points_of_another_dimension_are_refused():
    """def-points: also in a sum of kernels; a row that may be one point is recognised."""
    x = np.array([1.0, 2.0, 3.0])
    X, one = x[None, :].repeat(4, 0), r" for a single point$"
    for kernel in (r.Gaussian(1.0), r.Linear() + (r.Linear() + r.Gaussian(1.0))):
        f = r.RKHSFunction(kernel, X, np.ones(4))
        assert f([x]).shape == (1,)
        for call, name in ((f, "T"), (lambda x: kernel(X, x), "Y"), (f.features.joined, "other")):
            what = f"^{name} must have points in dimension 3 like \\w+, got"
            with pytest.raises(ValueError, match=rf"{what} 1: write \[{name}\]{one}"):
                call(x)
            with pytest.raises(ValueError, match=f"{what} 1$"):
                call(x[:2])
            with pytest.raises(ValueError, match=f"{what} 2$"):
                call(X[:, :2])
    assert same_dimension(X, X[:2]) is None
    pairs, wide = (r.Pairs(X, r.Pairs(X[:, 0], Z)) for Z in (X, X.repeat(2, 1)))
    with pytest.raises(ValueError, match="^points must .* 6 like those, got 3$"):
        same_dimension(pairs, wide, "points", "those")


def test_sequences_are_taken_as_they_are():
    """def-points."""
    points = ["a", "b"]
    assert as_sequence(points) is points
    assert as_sequence({"a": 1}.keys()) == ["a"]


def test_vectors_are_copied_checked_and_fixed():
    """def-points."""
    mine = np.array([1.0, 2.0])
    w = vector(mine, "weights", 2)
    mine[0] = 5.0
    assert w.tolist() == [1.0, 2.0] and not w.flags.writeable
    assert not frozen(mine).flags.writeable and mine.flags.writeable
    assert positives([1, 2], "lams").tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="weights must be one number for each of 3"):
        vector([1.0, 2.0], "weights", 3)
    with pytest.raises(ValueError, match="weights must be a list of numbers"):
        vector([[1.0, 2.0]], "weights")
    for bad in ([1.0, 0.0], [[1.0]], [-1.0]):
        with pytest.raises(ValueError, match="lams must be a list of (positive )?numbers"):
            positives(bad, "lams")


def test_a_result_that_overflows_is_an_error():
    """def-results."""
    assert finite(2.0, "the kernel") == 2.0
    with pytest.raises(ValueError, match="the kernel gave a value that is not finite"):
        finite(np.array([1.0, np.inf]), "the kernel")


def test_an_infinite_number_is_taken_only_where_it_is_asked_for():
    """def-numbers."""
    assert positive(np.float32(np.inf), "C", infinite=True) == np.inf
    for bad in (10**400, -np.inf, np.nan, 0):
        with pytest.raises(ValueError, match="^C must be a positive number"):
            positive(bad, "C", infinite=True)


def test_lists_of_fractions_become_floats():
    """def-points: also among whole numbers, and in rows."""
    quarters = [[Fraction(1, 4), 2], [3, Fraction(3, 4)]]
    for read in (as_points, plain_array):
        array = read(quarters, "X")
        assert array.dtype == float and array.tolist() == [[0.25, 2.0], [3.0, 0.75]]
    assert plain_array([1j], "a").dtype == complex


# -- every function reads its arguments through these doors ----------------

X = 20 * np.random.default_rng(0).normal(size=(12, 1))
Y = X + np.random.default_rng(1).normal(size=(12, 1))
y, labels = np.sin(X[:, 0] / 20), np.tile([1.0, -1.0], 6)
k = r.Gaussian(20.0)
prior = r.mean_embedding(k, Y[:5])
fit = r.ridge(k, X, y, 1.0)
C = r.cross_covariance(k, k, X, Y)
K = k(X)


def low_rank(c=1.0):
    return r.LowRank(np.ones((3, 1)), np.ones((3, 1)))


PARAMETERS = {
    "Gaussian": (20, lambda c: r.Gaussian(c)(X)),
    "Laplace": (20, lambda c: r.Laplace(c)(X)),
    "Sinc": (20, lambda c: r.Sinc(c)(X)),
    "BSpline": (20, lambda c: r.BSpline(c)(X)),
    "Polynomial c": (20, lambda c: r.Polynomial(2, c)(X)),
    "Polynomial degree": (20, lambda c: r.Polynomial(c, 1.0)(X / 20)),
    "power": (20, lambda c: (k**c)(X)),
    "multiple": (20, lambda c: (c * r.Polynomial(3))(X)),
    "Sigmoid": (20, lambda c: r.Sigmoid(c, c)(X / 1000)),
    "Matern sigma": (20, lambda c: r.Matern(2.5, c)(X)),
    "Matern nu": (20, lambda c: r.Matern(c, 20.0)(X)),
    "JacobiTheta": (20, lambda c: r.JacobiTheta(c)(X)),
    "Taylor": (120, lambda c: r.Taylor([c, c, c])(X)),
    "Taylor radius": (20, lambda c: r.Taylor(lambda n: 20.0**-n, c)(X / 50)),
    "FourierKernel": (120, lambda c: r.FourierKernel([c, c, c])(X)),
    "FourierKernel function": (120, lambda c: r.FourierKernel(lambda n: c, 5)(X)),
    "polynomial_features": (20, lambda c: r.polynomial_features(X, 3, c)),
    "gaussian_features": (20, lambda c: r.gaussian_features(X, c, 4)),
    "gaussian_bumps": (20, lambda c: r.gaussian_bumps(X, X, c)),
    "gaussian_derivative": (20, lambda c: r.gaussian_derivative(X, c)),
    "hermite_eigensystem": (20, lambda c: r.hermite_eigensystem(c, c, 5).functions(X)),
    "eigensystem": (2, lambda c: r.eigensystem(k, X, np.ones(12), c).eigenvalues),
    "integral_operator": (20, lambda c: r.integral_operator(k, X, [c] * 12, np.ravel).weights),
    "rff_variance": (100, lambda c: r.rff_variance(r.Gaussian(c), X, Y, c)),
    "random_fourier_features": (
        100,
        lambda c: r.random_fourier_features(k, c, dim=1, rng=0)(X),
    ),
    "ridge": (20, lambda c: r.ridge(k, X, y, c).weights),
    "ridge_path": (20, lambda c: r.ridge_path(k, X, y, [c]).weights),
    "leave_one_out": (20, lambda c: r.leave_one_out(k, X, y, c)),
    "smoother_matrix": (20, lambda c: r.smoother_matrix(k, X, c)),
    "gp_posterior": (20, lambda c: r.gp_posterior(k, X, y, c, X[:3])[0]),
    "minimize_risk": (20, lambda c: r.minimize_risk(k, X, y, r.Loss("huber", c), c).weights),
    "duality_gap": (20, lambda c: r.duality_gap(fit, y, "squared", c)),
    "kernel_pca": (3, lambda c: r.kernel_pca(k, X, c).weights),
    "preimage": (20, lambda c: r.preimage(prior, c)),
    "svm": (20, lambda c: r.svm(k, X, labels, c).alpha),
    "nu_svm": (1, lambda c: r.nu_svm(k, X, labels, c).alpha),
    "c * f": (20, lambda c: (c * fit).weights),
    "f / c": (20, lambda c: (fit / c).weights),
    "c * A": (20, lambda c: np.asarray((c * C).weights)),
    "A / c": (20, lambda c: np.asarray((C / c).weights)),
    "c * W": (20, lambda c: np.asarray(low_rank() * c)),
    "W / c": (20, lambda c: np.asarray(low_rank() / c)),
    "regularised_solve": (
        20,
        lambda c: r.regularised_solve(r.cross_covariance(k, k, X, X), prior, c).weights,
    ),
    "GaussianEmbedding": (20, lambda c: r.GaussianEmbedding(k, c, c)(X)),
    "permutation_pvalue": (20, lambda c: r.permutation_pvalue(c, np.arange(40))),
    "conditional_hsic": (20, lambda c: r.conditional_hsic(K, K, k(Y), c)),
    "conditional_embedding": (
        20,
        lambda c: r.conditional_embedding(k, k, X, Y, c)(X[0]).weights,
    ),
    "kernel_sum_rule": (20, lambda c: r.kernel_sum_rule(k, k, X, Y, prior, c).weights),
    "kernel_bayes_rule": (
        20,
        lambda c: r.kernel_bayes_rule(k, k, X, Y, prior, c, c)(X[0]).weights,
    ),
    "KernelBayesFilter": (
        20,
        lambda c: r.KernelBayesFilter(k, k, X, Y, c, c).filter(Y[:3]).weights,
    ),
    "validate_filter": (
        20,
        lambda c: r.validate_filter([(k, k)], X, Y, [c], [c], held_out=3).errors,
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_of_any_type_gives_the_result_of_the_float(name):
    """def-numbers: every public parameter, and no warning of a narrow type."""
    value, call = PARAMETERS[name]
    wanted = call(float(value))
    for kind in (int, Fraction, *NARROW):
        assert np.allclose(call(kind(value)), wanted, rtol=1e-12, atol=0), kind


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["power", "multiple", "c * f", "f / c", "c * A", "A / c", "c * W",
                                  "W / c"])
def test_operators_refuse_numbers_that_no_float_can_hold_in_words(name):
    """def-numbers: no bare OverflowError, UFuncTypeError or ZeroDivisionError; the numbers between
    the smallest and the largest float are numbers."""
    for bad in (10**400, -(10**400), 10**5000, Fraction(10**400), np.nan):
        with pytest.raises(ValueError, match="must"):
            PARAMETERS[name][1](bad)
    for good in (Fraction(10**400, 10**400 + 1), 10**400 // 10**399):
        assert np.isfinite(PARAMETERS[name][1](1 if name == "power" else good)).all()


class Table(Frame):
    """A data frame of numbers, in the columns' own order."""

    def __init__(self, **columns):
        super().__init__(**columns)
        self.values = self.values.astype(float)

    def __len__(self):
        return len(self.values)


a, b = np.random.default_rng(2).normal(size=(2, 12))
MEETINGS = {
    "Gaussian": lambda A, B: k(A, B),
    "Matern": lambda A, B: r.Matern(1.5, 1.0)(A, B),
    "Linear": lambda A, B: r.Linear()(A, B),
    "BSpline": lambda A, B: r.BSpline(1.0)(A, B),
    "Delta": lambda A, B: r.Delta()(A, B),
    "FunctionKernel": lambda A, B: r.FunctionKernel(lambda x, z: float(x @ z))(A, B),
    "sum": lambda A, B: (k + r.Delta())(A, B),
    "TensorProduct": lambda A, B: r.TensorProduct(k, k)(r.Pairs(A, y), r.Pairs(B, y)),
    "squared_distances": r.squared_distances,
    "gram_dot": lambda A, B: r.gram_dot(k, A, B, y),
    "ridge": lambda A, B: r.ridge(k, A, y, 1.0)(B),
    "gp_posterior": lambda A, B: r.gp_posterior(k, A, y, 1.0, B)[0],
    "svm": lambda A, B: r.svm(k, A, labels, 1.0).decision(B),
    "kernel_pca": lambda A, B: r.kernel_pca(k, A, 2).transform(B),
    "denoise": lambda A, B: r.denoise(r.kernel_pca(k, A, 2), B),
    "nystrom_features": lambda A, B: r.nystrom_features(k, A)(B),
    "mmd": lambda A, B: r.mmd2_biased(k, A, B),
    "mmd of labels": lambda A, B: r.mmd2_biased(r.Delta(), A, B),
    "f + g": lambda A, B: (r.mean_embedding(k, A) + r.mean_embedding(k, B)).weights,
    "f + g of labels": lambda A, B: (
        r.mean_embedding(r.Delta(), A) + r.mean_embedding(r.Delta(), B)
    ).weights,
    "operator": lambda A, B: r.cross_covariance(k, k, A, y)(prior)(B),
    "conditional_embedding": lambda A, B: r.conditional_embedding(
        k, k, A, y, 1.0
    ).expectation(np.ravel, B),
    "kernel_sum_rule": lambda A, B: r.kernel_sum_rule(
        k, k, y, A, r.mean_embedding(k, B), 1.0
    ).weights,
    "filter": lambda A, B: r.KernelBayesFilter(k, k, y, A, 1.0, 1.0).filter(B).weights,
    "next states": lambda A, B: r.KernelBayesFilter(
        k, k, A, y, 1.0, 1.0, next_states=B
    ).filter(y[:2]).weights,
}


@pytest.mark.parametrize("name", MEETINGS)
def test_columns_in_another_order_are_refused_where_two_frames_meet(name):
    """def-points: at once, or long after the first one was read."""
    meet, plain = MEETINGS[name], np.column_stack([a, b])
    wanted = meet(plain, plain + 0.0)
    same = meet(Table(a=a, b=b), Table(a=a, b=b))
    assert np.allclose(same, wanted) and type(same) is type(wanted)
    assert np.allclose(meet(Table(a=a, b=b), plain), wanted)
    for other in (Table(b=b, a=a), Table(a=a, c=b)):
        with pytest.raises(ValueError, match="the same columns in the same order"):
            meet(Table(a=a, b=b), other)


def test_names_of_columns_must_agree_where_both_have_them():
    """def-points: frames, pairs of frames, and feature maps made from frames."""
    frame, turned, plain = Table(a=a, b=b), Table(b=b, a=a), np.ones((12, 2))
    assert type(as_points(frame)) is np.ndarray
    same_columns(frame, plain)
    same_columns(frame, r.Features(k, frame))
    for left, right in (
        (frame, turned),
        (r.Pairs(frame, y), r.Pairs(turned, y)),
        (r.Features(k, frame)[:3], turned),
        (r.Features(k, r.Features(k, frame)), turned),
    ):
        with pytest.raises(ValueError, match="same columns"):
            same_columns(left, right)


@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.floats(1e-12, 0.1))
def test_entries_right_to_delta_have_no_eigenvalue_below_minus_delta_times_the_trace(
    n, seed, delta
):
    """prop-rounded-gram, on random positive definite matrices of any scale.

    The eigenvalues themselves carry an error of about eps times the trace.
    """
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, max(1, n - 2))) * 10.0 ** rng.integers(-3, 4, size=(n, 1))
    K = F @ F.T
    size = np.sqrt(np.outer(K.diagonal(), K.diagonal()))
    E = np.triu(rng.uniform(-1, 1, size=(n, n)))
    rounded = K + delta * size * (E + np.triu(E, 1).T)
    least = np.linalg.eigvalsh(rounded)[0]
    assert least >= -(delta + 20 * n * np.finfo(float).eps) * np.trace(K)


def test_the_bound_on_rounded_eigenvalues_is_attained():
    """prop-rounded-gram, ex-conventions-sharp."""
    s = (-1.0) ** np.arange(6)
    rounded = np.outer(s, s) - 0.01
    assert np.isclose(np.linalg.eigvalsh(rounded)[0], -0.01 * 6)


@pytest.mark.parametrize(
    "value, error, doubt",
    [(1.0, 0.5, False), (1.0, 1.0, True), (-1.0, 2.0, True), (0.0, 1e-9, True),
     (0.0, 0.0, False)],
)
def test_an_answer_without_a_certain_digit_warns(value, error, doubt):
    """def-precision: in doubt if e >= |v| > 0, or v = 0 although e > 0."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert certain(value, error, "norm") == value
    assert [w.category for w in heard] == [PrecisionWarning] * doubt
    assert all("norm" in str(w.message) for w in heard)


@pytest.mark.parametrize("error, doubt", [(1e-8, False), (1.001e-8, True), (1e-7, True)])
def test_a_small_error_beside_what_matters_is_no_doubt(error, doubt):
    """def-precision: in doubt only if e is above eight digits of the size that matters."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        certain(1e-12, error, "norm", 1.0)
    assert len(heard) == doubt


def test_a_warning_points_to_the_line_that_asked():
    """def-precision: the caller's line, and not one of the library."""
    with pytest.warns(PrecisionWarning) as heard:
        r.norm(r.RKHSFunction(r.Gaussian(1.0), [0.0, 1e-8], [1e8, -1e8]))
    assert heard[0].filename == __file__


def test_sums_and_multiples_are_enough_for_a_vector():
    """def-results: NumPy's numbers too, and only vectors of one space."""
    f, g = r.RKHSFunction(k, [0.0], [2.0]), r.RKHSFunction(k, [1.0], [3.0])
    A = r.tensor(f, g)
    assert isinstance(f, r.Vectors) and isinstance(A, r.Vectors)
    T = [0.0, 0.5]
    assert np.array_equal((-f)(T), -f(T))
    # One sum of two products against two products: where a processor multiplies and adds
    # in one step it rounds once less, each time by half of eps times a number below 5.
    rounding = 2 * 5 * np.finfo(float).eps
    assert np.allclose((f - g)(T), f(T) - g(T), rtol=0, atol=rounding)
    assert np.allclose(sum([f, g])(T), f(T) + g(T), rtol=0, atol=rounding)
    assert np.array_equal((np.float64(2) * f)(T), 2 * f(T))
    assert r.hs_norm(sum([A, A]) - np.float64(2) * A) == 0
    for wrong in (lambda: f - A, lambda: 1 + f, lambda: -1 + f, lambda: A - 1, lambda: f - 1):
        with pytest.raises(TypeError, match="unsupported operand"):
            wrong()


def test_copies_of_a_record_cannot_be_changed_either():
    """def-results: by copying, and by a file."""

    found = r.cross_validate(k, X, y, [0.1, 1.0], folds=2, rng=0)
    assert isinstance(found, r.Record) and not found.lams.flags.writeable
    for twin in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert not twin.lams.flags.writeable
        assert not any(fold.flags.writeable for fold in twin.folds)
        assert np.array_equal(twin.lams, found.lams)
