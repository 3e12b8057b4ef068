"""What may go in: numbers, flags, choices, generators, points."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rkhs_lit import (
    as_points,
    as_sequence,
    choice,
    finite,
    flag,
    frozen,
    function,
    generator,
    nonnegative,
    number,
    positive,
    positives,
    real_array,
    tolerance,
    vector,
    whole,
    width,
)

NARROW = [np.uint8, np.int8, np.int16, np.int32, np.float16, np.float32, np.longdouble]
OF_NUMBERS = [number, nonnegative, positive, width, whole]
NO_NUMBERS = [None, "1", 1j, [1.0], np.array([1.0]), Decimal(1), np.nan, np.inf, object()]


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


@pytest.mark.parametrize("read", [*OF_NUMBERS, tolerance])
def test_what_is_no_number_is_refused_by_name(read):
    """def-numbers; 10**400 is no float, 10**5000 cannot even be printed."""
    for bad in (*NO_NUMBERS, 10**400, -(10**400), 10**5000):
        with pytest.raises(ValueError, match=r"^lam must be .{1,140}$"):
            read(bad, "lam")


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


class Sparse:
    def toarray(self):
        raise AssertionError("nobody asked")


MASKED = np.ma.array([[1.0], [2.0]], mask=[[False], [True]])


@pytest.mark.parametrize("read", [real_array, as_points])
@pytest.mark.parametrize(
    "bad, words",
    [
        (MASKED, "masked"),
        ([MASKED[0], MASKED[1]], "masked"),
        ((MASKED,), "masked"),
        (Sparse(), r"X\.toarray\(\)"),
        ([[1.0], [2.0, 3.0]], "rows of one length"),
        (["1", "2"], "real numbers"),
        ([1j], "real numbers"),
        ([None], "real numbers"),
        ([10**400], "finite"),
        ([np.longdouble("1e400")], "finite"),
        ([np.nan], "finite"),
        ([[0.0, 1.0], [2.0, np.inf]], r"row 1|entry \[1, 1\]"),
        ([], "empty|at least one"),
    ],
)
def test_arrays_that_cannot_be_used_are_refused_by_name(read, bad, words):
    """def-points: in particular what would be misread in silence."""
    with pytest.raises(ValueError, match=rf"^X must .*({words})"):
        read(bad, "X")


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


def test_a_column_of_text_is_named():
    """def-points."""
    with pytest.raises(ValueError, match="column 'town' does not"):
        as_points(Frame(age=[1.0, 2.0], town=["Bonn", "Ulm"]))


@pytest.mark.parametrize(
    "bad", ["text", b"bytes", {"a": 1}, 3.0, np.array(3.0), [], [MASKED], iter([1])]
)
def test_what_is_no_sequence_of_points_is_refused(bad):
    """def-points."""
    with pytest.raises(ValueError, match="^Y must "):
        as_sequence(bad, "Y")


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
    with pytest.raises(ValueError, match="weights must be one number"):
        vector([[1.0, 2.0]], "weights")
    for bad in ([1.0, 0.0], [[1.0]], [-1.0]):
        with pytest.raises(ValueError, match="lams must be a list of positive"):
            positives(bad, "lams")


def test_a_result_that_overflows_is_an_error():
    """def-points."""
    assert finite(2.0, "the kernel") == 2.0
    with pytest.raises(ValueError, match="the kernel gave a value that is not finite"):
        finite(np.array([1.0, np.inf]), "the kernel")


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


