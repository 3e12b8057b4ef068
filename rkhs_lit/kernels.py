"""Kernels: inner products of features you need not see

The exported cells of the chapter ``book/kernels.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 66dd55454cf72a92

# %% [1] Kernels: inner products of features you need not see
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import combinations_with_replacement, product
from numbers import Real

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points, as_sequence
from rkhs_lit.tiles import TILE, reduce_tiles


# %% [2] A check that explains itself
@dataclass(frozen=True, eq=False)
class Definiteness(check.Record):
    """Verdict on a matrix, with a witness (:prf:ref:`prop-witness`); true
    in a condition if the matrix is positive definite."""

    positive_definite: bool       #: whether a'Ka >= 0 for all a
    strict: bool                  #: whether a'Ka > 0 for all a except 0
    reason: str                   #: a sentence that says why
    witness: np.ndarray | None    #: a vector a with a'Ka < 0, if any
    value: float                  #: its a'Ka, or the smallest eigenvalue

    def __bool__(self) -> bool:
        return self.positive_definite


# %% [3] A check that explains itself
def _rounding(K):
    return len(K) * np.finfo(float).eps * np.abs(K).sum(axis=1).max()


def _verdict(K, tol):
    diagonal, entries, reason = K.diagonal(), np.arange(len(K)), ""
    minors = np.outer(diagonal, diagonal) - K**2
    p = diagonal.argmin()
    i, j = np.unravel_index(minors.argmin(), K.shape)
    if diagonal[p] < -tol:
        entries, reason = [p], f"K[{p}, {p}] = {K[p, p]:.6g} is negative"
    elif minors[i, j] < -2 * tol * np.abs(K).max():
        entries, reason = [i, j], (
            f"K[{i}, {j}]² = {K[i, j]**2:.6g} exceeds K[{i}, {i}] "
            f"K[{j}, {j}] = {K[i, i] * K[j, j]:.6g}")
    values, vector = eigh(K[np.ix_(entries, entries)],
                          subset_by_index=[0, 0])
    smallest = float(values[0])
    if reason or smallest < -tol:
        witness = np.zeros(len(K))
        witness[entries] = vector[:, 0]
        reason = reason or f"the smallest eigenvalue is {smallest:.6g}"
        return Definiteness(False, False, reason, witness, smallest)
    strict = bool(smallest > tol)
    sign = "positive" if strict else "zero up to rounding"
    return Definiteness(True, strict, f"the smallest eigenvalue is {sign}",
                        None, smallest)


# %% [4] A check that explains itself
def is_positive_definite(K, tol: float | None = None) -> Definiteness:
    """Check a matrix, and say why it fails (:prf:ref:`prop-witness`).

    Parameters
    ----------
    K : (n, n) array
    tol : float, optional
        What counts as zero; by default n times the machine precision
        times the largest sum of absolute values in a row, and the
        matrix scaled to unit diagonal must pass as well.

    Examples
    --------
    >>> print(is_positive_definite([[1.0, 2.0], [2.0, 1.0]]).reason)
    K[0, 1]² = 4 exceeds K[0, 0] K[1, 1] = 1
    """
    K = as_points(K, "K")
    n = len(K)
    if K.shape != (n, n):
        raise ValueError(f"K must be square, got shape {K.shape}")
    zero = _rounding(K) if tol is None else check.nonnegative(tol, "tol")

    gap = np.abs(K - K.T)
    if gap.max() > zero:
        i, j = np.unravel_index(gap.argmax(), K.shape)
        return Definiteness(
            False, False, f"K is not symmetric: K[{i}, {j}] = "
            f"{K[i, j]:.6g}, K[{j}, {i}] = {K[j, i]:.6g}", None, np.nan)
    verdict = _verdict(K, zero)
    if tol is not None or not verdict or verdict.strict or not K.any():
        return verdict
    # Once more, with unit diagonal where K has a large row.
    rows, top = np.abs(K).max(axis=1), math.sqrt(K.diagonal().max())
    d = np.maximum(np.sqrt(np.maximum(K.diagonal(), 0)), rows / top)
    d[rows <= 4 * zero] = top
    S = K / d[:, None] / d
    verdict = _verdict(S, _rounding(S))
    if verdict:
        return verdict
    a = verdict.witness / d
    a /= np.linalg.norm(a)
    return Definiteness(False, False, "after scaling " + verdict.reason, a,
                        float(a @ K @ a))


# %% [5] The type `Kernel`
def checked(read: Callable, **default):
    """A parameter of a kernel that ``read(value, name)`` makes a number,
    a function or a kernel, or refuses (:prf:ref:`def-numbers`).

    >>> Gaussian(np.uint8(20))      # sigma: float = checked(check.width)
    Gaussian(sigma=20.0)
    """
    return field(metadata={"read": check.function(read, "read")},
                 **default)


class Kernel:
    """A function k(x, y) of two points (:prf:ref:`def-kernel`).

    ``k(X)`` and ``k(X, Y)`` are Gram matrices, ``k.diag(X)`` is the
    diagonal. New kernels come by ``k + l``, ``c * k`` with c >= 0,
    ``k * l`` and ``k ** m``. A subclass defines ``_gram(X, Y)``, and
    for speed ``_diag(X)``, for points that ``_prepare`` has checked.
    """

    #: False for a function that is not known to be a kernel.
    positive_definite = True
    # NumPy numbers must leave ``c * k`` to this class.
    __array_ufunc__ = None

    def __post_init__(self):
        for part in fields(self):
            if read := part.metadata.get("read"):
                value = getattr(self, part.name)
                vars(self)[part.name] = read(value, part.name)

    def __call__(self, X, Y=None) -> np.ndarray:
        return self._matrix(*_prepared(self, X, Y))

    def diag(self, X) -> np.ndarray:
        """The numbers k(x, x), without the Gram matrix."""
        with np.errstate(over="ignore", invalid="ignore"):
            return check.finite(self._diag(self._prepare(X, "X")),
                                "the kernel")

    _prepare = staticmethod(as_sequence)

    def _gram(self, X, Y) -> np.ndarray:
        raise NotImplementedError

    def _diag(self, X) -> np.ndarray:
        return np.array([self._gram(X[i:i + 1], X[i:i + 1])[0, 0]
                         for i in range(len(X))])

    def _matrix(self, X, Y, name="the kernel"):
        """K for points that are prepared; half the work if Y is X."""
        if len(X) * len(Y) <= TILE**2:
            with np.errstate(over="ignore", invalid="ignore"):
                return check.finite(self._gram(X, Y), name)
        K = np.empty((len(X), len(Y)))

        def fill(_, i, j):
            K[i, j] = self._matrix(X[i], Y[j], name)
            if Y is X:
                K[j, i] = K[i, j].T

        reduce_tiles(fill, None, len(X), None if Y is X else len(Y))
        return K

    def _dot(self, X, Y, W, name="the kernel"):
        """The product K W, in the same way, without K."""
        add, m = partial(self._add, X, Y, W, name), len(Y)
        return reduce_tiles(partial(add, Y is X), partial(
            np.zeros, (len(X), *W.shape[1:])), len(X),
            None if Y is X else m)

    def _add(self, X, Y, W, name, symmetric, total, i, j):
        K = self._matrix(X[i], Y[j], name)
        total[i] += K @ W[j]
        if symmetric and i != j:
            total[j] += K.T @ W[i]

    def __add__(self, other):
        return Sum(self, other) if isinstance(other, Kernel) else (
            NotImplemented)

    def __radd__(self, other):
        # sum([k1, k2]) starts from 0.
        return self if isinstance(other, Real) and other == 0 else (
            NotImplemented)

    def __mul__(self, other):
        return Product(self, other) if isinstance(other, Kernel) else (
            Scaled(other, self))

    __rmul__ = __mul__

    def __pow__(self, m):
        return Power(self, m)

    def __sub__(self, other):
        raise ValueError("a difference of kernels need not be a kernel: "
                         "subtract Gram matrices and check the result "
                         "with is_positive_definite")


# %% [6] The type `Kernel`
def _prepared(kernel, X, Y):
    """Both lists of points, checked; twice the first if it is alone."""
    check.same_columns(X, Y)
    A = kernel._prepare(X, "X")
    if Y is None or Y is X:
        return A, A
    B = kernel._prepare(Y, "Y")
    d, e = (getattr(Z, "shape", ())[1:] for Z in (A, B))
    if d and e and d != e:
        raise ValueError(f"Y must have points in dimension {d[0]} like X, "
                         f"got dimension {e[0]}")
    return A, B


def as_kernel(kernel, name: str = "kernel", definite: bool = False):
    """The kernel itself, if it is one (:prf:ref:`def-kernel`); with
    ``definite=True`` not one that is known to be indefinite."""
    if not isinstance(kernel, Kernel):
        raise ValueError(f"{name} must be a Kernel, got "
                         f"{type(kernel).__name__}")
    if definite and not kernel.positive_definite:
        raise ValueError(f"{name} must be positive definite, but {kernel} "
                         "is known not to be: some expansions would have a "
                         "negative squared norm")
    return kernel


# %% [7] The type `Kernel`
class _OnVectors(Kernel):
    _prepare = staticmethod(as_points)

    def _diag(self, X):
        return np.ones(len(X))


class _OfProduct(_OnVectors):
    def _gram(self, X, Y):
        return self._of(X @ Y.T)

    def _diag(self, X):
        return self._of(np.sum(X**2, axis=1))


@dataclass(frozen=True)
class Linear(_OfProduct):
    """The kernel ⟨x, y⟩ on R^d (:prf:ref:`def-kernel`).

    >>> Linear()([[1.0, 2.0], [0.0, 1.0]])
    array([[5., 2.],
           [2., 1.]])
    """

    def _of(self, z):
        return z


# %% [8] Kernels on documents, strings and anything else
def _text(value, name):
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string, got "
                         f"{type(value).__name__}")
    return value


def words(document: str) -> Counter:
    """How often each word occurs (:prf:ref:`def-histogram`).

    >>> words("To be, or not to be")
    Counter({'to': 2, 'be': 2, 'or': 1, 'not': 1})
    """
    return Counter(re.findall(r"\w+", _text(document, "document").lower()))


@dataclass(frozen=True)
class substrings:
    """The function that counts substrings of length p
    (:prf:ref:`def-histogram`).

    >>> substrings(2)("banana")
    Counter({'an': 2, 'na': 2, 'ba': 1})
    """

    p: int

    def __post_init__(self):
        vars(self).update(p=check.whole(self.p, "p", 1))

    def __repr__(self):
        return f"substrings({self.p})"

    def __call__(self, text: str) -> Counter:
        text, p = _text(text, "text"), self.p
        return Counter(text[i:i + p] for i in range(len(text) - p + 1))


# %% [9] Kernels on documents, strings and anything else
@dataclass(frozen=True)
class FeatureKernel(Kernel):
    """Σ_w φ_w(x) φ_w(y), where ``features(x)`` is a mapping from names w
    to numbers φ_w(x) (:prf:ref:`def-histogram`).

    >>> FeatureKernel(words)(["a cat", "a cat and a dog", "birds"])
    array([[2., 3., 0.],
           [3., 7., 0.],
           [0., 0., 1.]])
    """

    features: Callable = checked(check.function)

    def _prepare(self, X, name):
        rows = [self.features(x) for x in as_sequence(X, name)]
        for row in rows:
            if not (isinstance(row, Mapping)
                    and np.isfinite([*map(float, row.values())]).all()):
                raise ValueError("features must return a mapping from "
                                 f"names to finite numbers, got {row!r}")
        return rows

    def _gram(self, X, Y):
        column = {}
        for row in (*X, *Y):
            for name in row:
                column.setdefault(name, len(column))

        def sparse(rows):
            data = [float(v) for row in rows for v in row.values()]
            indices = [column[name] for row in rows for name in row]
            ends = np.cumsum([0, *map(len, rows)])
            return csr_array((data, indices, ends),
                             shape=(len(rows), max(1, len(column))))

        return (sparse(X) @ sparse(Y).T).toarray()

    def _diag(self, X):
        return np.array([float(sum(v * v for v in row.values()))
                         for row in X])


# %% [10] Kernels on documents, strings and anything else
@dataclass(frozen=True)
class FunctionKernel(Kernel):
    """A kernel given by a Python function (:prf:ref:`def-kernel`).

    That ``function(x, y)`` is symmetric and positive definite is the
    caller's promise. Each tile of a Gram matrix tests the symmetry on a
    few pairs, at most one for each row and column; a function that is
    asymmetric on rare pairs may pass.

    >>> shared = FunctionKernel(lambda a, b: len(set(a) & set(b)))
    >>> shared(["cat", "car"], ["art"])
    array([[2.],
           [2.]])
    """

    function: Callable = checked(check.function)

    def _prepare(self, X, name):
        return list(as_sequence(X, name))

    def _gram(self, X, Y):
        k, n, m = self.function, len(X), len(Y)
        # On one list of points half of the calls are enough.
        same = n == m and all(map(operator.is_, X, Y))
        values = [0.0 if same and j < i else k(X[i], Y[j])
                  for i, j in product(range(n), range(m))]
        K = check.real_array(values, "function", 1).reshape(n, m)
        if same:
            K = np.triu(K) + np.triu(K, 1).T
        pairs = [(i, ~i) if n <= m else (~i, i)
                 for i in range(n // 2 if same else min(n, m))]
        mirrored = [float(k(Y[j], X[i])) for i, j in pairs]
        if not np.allclose(mirrored, [K[pair] for pair in pairs],
                           atol=1e-8 * np.abs(K).max()):
            raise ValueError("function must be symmetric in its arguments")
        return K

    def _diag(self, X):
        return check.real_array([self.function(x, x) for x in X],
                                "function", 1)


# %% [11] Kernels on documents, strings and anything else
@dataclass(frozen=True)
class Delta(Kernel):
    """1 where x = y, 0 elsewhere, on any set (:prf:ref:`lem-delta`).

    >>> Delta()(["a", "b"], ["b", "b", "c"])
    array([[0., 0., 0.],
           [1., 1., 0.]])
    """

    def _prepare(self, X, name):
        # Rows become tuples; a point of the line is a plain number.
        X = as_sequence(X, name)
        items = X.tolist() if isinstance(X, np.ndarray) else list(X)
        keys = [x if not isinstance(x, (list, np.ndarray)) else tuple(x)
                if len(x) > 1 else x[0] for x in items]
        try:
            distinct = set(keys)
        except TypeError:
            raise ValueError(f"{name} must hold hashable objects") from None
        if any(map(_has_nan, distinct)) or (
                isinstance(X, np.ndarray) and (X != X).any()):
            raise ValueError(f"{name} must not hold NaN")
        return keys

    def _gram(self, X, Y):
        number = {}
        x, y = ([number.setdefault(key, len(number)) for key in keys]
                for keys in (X, Y))
        return np.equal.outer(x, y).astype(float)

    def _diag(self, X):
        return np.ones(len(X))


def _has_nan(key):
    if isinstance(key, (tuple, frozenset)):
        return any(map(_has_nan, key))
    return key != key


# %% [12] The rules as code
@dataclass(frozen=True, eq=False)
class Pairs(check.Record):
    """Points (x_i, y_i) of a product set, in two sequences of equal
    length (:prf:ref:`thm-product`).

    >>> pairs = Pairs([1.0, 2.0, 3.0], ["a", "b", "a"])
    >>> len(pairs), pairs[1]
    (3, (2.0, 'b'))
    """

    first: Sequence
    second: Sequence

    def __post_init__(self):
        n, m = (len(as_sequence(getattr(self, name), name))
                for name in ("first", "second"))
        if n != m:
            raise ValueError(f"second must have as many points as first "
                             f"({n}), got {m}")

    def __len__(self):
        return len(self.first)

    def __getitem__(self, index):
        x, y = self.first[index], self.second[index]
        return Pairs(x, y) if isinstance(index, slice) else (x, y)

    @property
    def shape(self):
        """The number of pairs, and the shapes of the two points."""
        return len(self), *(getattr(part, "shape", ())[1:]
                            for part in (self.first, self.second))

    @property
    def columns(self):
        """The names of columns that the two lists have, or None."""
        return tuple(name for part in (self.first, self.second)
                     for name in getattr(part, "columns", None) or ()
                     ) or None


# %% [13] The rules as code
@dataclass(frozen=True)
class _Two(Kernel):
    first: Kernel = checked(as_kernel)
    second: Kernel = checked(as_kernel)

    @property
    def positive_definite(self):
        return (self.first.positive_definite
                and self.second.positive_definite)

    def _prepare(self, X, name):
        return Pairs(self.first._prepare(X, name),
                     self.second._prepare(X, name))

    def _gram(self, X, Y):
        return self._combine(self.first._gram(X.first, Y.first),
                          self.second._gram(X.second, Y.second))

    def _diag(self, X):
        return self._combine(self.first._diag(X.first),
                          self.second._diag(X.second))


# %% [14] The rules as code
class Sum(_Two):
    """The kernel k1 + k2 (:prf:ref:`lem-sum`); write ``k1 + k2``."""

    _combine = staticmethod(np.add)


class Product(_Two):
    """The kernel k1(x, y) k2(x, y) (:prf:ref:`thm-product`); write
    ``k1 * k2``."""

    _combine = staticmethod(np.multiply)


class TensorProduct(Product):
    """k1(x, x') k2(y, y') on pairs (:prf:ref:`thm-product`).

    >>> pairs = Pairs([1.0, 2.0, 3.0], ["a", "b", "a"])
    >>> TensorProduct(Linear(), Delta())(pairs)
    array([[1., 0., 3.],
           [0., 4., 0.],
           [3., 0., 9.]])
    """

    def _prepare(self, X, name):
        if not isinstance(X, Pairs):
            raise ValueError(f"{name} must be Pairs(x, y), got "
                             f"{type(X).__name__}")
        return Pairs(self.first._prepare(X.first, name),
                     self.second._prepare(X.second, name))


# %% [15] The rules as code
class _One(Kernel):
    @property
    def positive_definite(self):
        return self.kernel.positive_definite

    def _prepare(self, X, name):
        return self.kernel._prepare(X, name)

    def _gram(self, X, Y):
        return self._of(self.kernel._gram(X, Y))

    def _diag(self, X):
        return self._of(self.kernel._diag(X))


@dataclass(frozen=True)
class Scaled(_One):
    """The kernel c k with c >= 0 (:prf:ref:`lem-sum`); write ``c * k``."""

    c: float = checked(partial(
        check.nonnegative, why=": with c < 0 the diagonal is negative"))
    kernel: Kernel = checked(as_kernel)

    def _of(self, k):
        return self.c * k


@dataclass(frozen=True)
class Power(_One):
    """The kernel k(x, y)^m (:prf:ref:`thm-product`); write ``k ** m``."""

    kernel: Kernel = checked(as_kernel)
    m: int = checked(check.whole)

    def _of(self, k):
        return k**self.m


# %% [16] The rules as code
@dataclass(frozen=True)
class Mapped(_One):
    """The kernel k(A(x), A(y)) (:prf:ref:`lem-mapping`); the map A takes
    a whole sequence of points and returns as many points."""

    kernel: Kernel = checked(as_kernel)
    map: Callable = checked(check.function)

    def _prepare(self, X, name):
        X = as_sequence(X, name)
        image = as_sequence(self.map(X), f"map({name})")
        if len(image) != len(X):
            raise ValueError(f"map must return one point for each of "
                             f"{len(X)} points, got {len(image)}")
        return self.kernel._prepare(image, f"map({name})")

    def _of(self, k):
        return k


# %% [17] The rules as code
@dataclass(frozen=True)
class Conjugated(_One):
    """The kernel f(x) k(x, y) f(y) (:prf:ref:`lem-conjugation`); the
    function f takes a whole sequence of points and returns as many
    numbers."""

    kernel: Kernel = checked(as_kernel)
    function: Callable = checked(check.function)

    def _prepare(self, X, name):
        X = as_sequence(X, name)
        f = check.real_array(self.function(X), "function")
        if f.shape != (len(X),):
            raise ValueError(f"function must return {len(X)} numbers, got "
                             f"shape {f.shape}")
        return Pairs(f, self.kernel._prepare(X, name))

    def _gram(self, X, Y):
        return np.outer(X.first, Y.first) * self.kernel._gram(X.second,
                                                              Y.second)

    def _diag(self, X):
        return X.first**2 * self.kernel._diag(X.second)


@dataclass(frozen=True)
class _InverseNorm:
    kernel: Kernel

    def __call__(self, X):
        diagonal = self.kernel.diag(X)
        if not (diagonal > 0).all():
            raise ValueError("X must have k(x, x) > 0 for all points, but "
                             f"point {np.argmin(diagonal)} has not")
        return 1 / np.sqrt(diagonal)


def normalised(kernel: Kernel) -> Kernel:
    """k(x, y) / √(k(x, x) k(y, y)), the cosine between features
    (:prf:ref:`lem-conjugation`).

    >>> normalised(FeatureKernel(words))(["a cat", "a cat a cat"]).round(6)
    array([[1., 1.],
           [1., 1.]])
    """
    return Conjugated(as_kernel(kernel), _InverseNorm(kernel))


# %% [18] Polynomial kernels, and all their monomials
@dataclass(frozen=True)
class Polynomial(_OfProduct):
    """The kernel (⟨x, y⟩ + c)^degree for degree >= 1 and c >= 0, which
    is homogeneous if c = 0 (:prf:ref:`lem-polynomial`)."""

    degree: int = checked(partial(check.whole, least=1))
    c: float = checked(partial(
        check.nonnegative, why=": it is no kernel if c < 0"), default=1.0)

    def _of(self, z):
        return (z + self.c) ** self.degree


def polynomial_features(X, degree: int, c: float = 1.0) -> np.ndarray:
    """All monomials, weighted so that their inner products are
    (⟨x, y⟩ + c)^degree (:prf:ref:`thm-monomials`).

    Parameters
    ----------
    X : (n, d) array
    degree : int >= 0
    c : float >= 0
        There are C(d + degree, degree) monomials if c > 0,
        C(d + degree - 1, degree) if c = 0.

    The features of (xy + 1)² on the line are 1, √2 x and x²:

    >>> polynomial_features([3.0], 2) ** 2
    array([[ 1., 18., 81.]])
    """
    X = as_points(X)
    degree = check.whole(degree, "degree", 0)
    if check.nonnegative(c, "c") > 0:
        X = np.column_stack([np.full(len(X), math.sqrt(c)), X])
    multisets = list(combinations_with_replacement(range(X.shape[1]),
                                                   degree))
    weights = [math.factorial(degree) / math.prod(
        math.factorial(j) for j in Counter(chosen).values())
        for chosen in multisets]
    features = np.sqrt(weights) * np.ones((len(X), 1))
    with np.errstate(over="ignore"):
        for column in np.array(multisets, dtype=int).T:
            features *= X[:, column]
    return check.finite(features, "degree")


# %% [19] Volterra filters are linear
def lag_vectors(signal, memory: int) -> np.ndarray:
    """The last `memory` values at each time, newest first, as the rows of
    a (T - memory + 1, memory) array (:prf:ref:`prop-volterra`).

    >>> lag_vectors([1.0, 2.0, 3.0, 4.0], 2)
    array([[2., 1.],
           [3., 2.],
           [4., 3.]])
    """
    signal = check.vector(signal, "signal")
    memory = check.whole(memory, "memory", 1)
    if memory > len(signal):
        raise ValueError(f"memory must be at most the signal's length "
                         f"{len(signal)}, got {memory}")
    windows = np.lib.stride_tricks.sliding_window_view(signal, memory)
    return windows[:, ::-1].copy()


# %% [20] Taylor series
@dataclass(frozen=True)
class Exponential(_OfProduct):
    """The kernel exp⟨x, y⟩ (:prf:ref:`exm-exponential`)."""

    def _of(self, z):
        return np.exp(z)


# %% [21] Taylor series
def _terms(coefficients, radius, R):
    """The a_n that matter for |z| <= R."""
    if not callable(coefficients):
        return coefficients
    if R == 0:
        return [check.nonnegative(coefficients(0), "coefficients: a_0")]
    rho = 2 * R if radius == np.inf else math.sqrt(R) * radius**0.5
    ratio = math.log(R / rho)
    terms, largest, bound, size, last = [], -np.inf, -np.inf, np.inf, 0
    for n in range(100_000):
        a = check.nonnegative(coefficients(n), f"coefficients: a_{n}")
        terms.append(a)
        if a > 0:
            size, last = math.log(a) + n * math.log(R), n    # of a_n R^n
            largest = max(largest, size)
            bound = max(bound, size - n * ratio)           # of a_n rho^n
        tail = bound + (n + 1) * ratio - math.log1p(-R / rho)
        tiny = largest + math.log(np.finfo(float).eps)
        if n >= 20 and max(tail, size) < tiny:
            return terms
        if n > last + 50:
            raise ValueError("coefficients vanish before the series has "
                             "converged: they underflow or have a gap; "
                             "give them as a sequence")
    raise ValueError("X is too near the radius of convergence: the series "
                     "needs more than 100 000 terms")


# %% [22] Taylor series
@dataclass(frozen=True)
class Taylor(_OfProduct):
    """The kernel Σ a_n ⟨x, y⟩^n with a_n >= 0 (:prf:ref:`thm-taylor`).

    A sequence of coefficients is the whole series, a function of n gives
    all a_n. Points must have ‖x‖² < radius, the radius of convergence.

    >>> geometric = Taylor(lambda n: 1.0, radius=1.0)   # 1 / (1 - xy)
    >>> geometric([0.5, 0.9], [0.5]).ravel().round(6)
    array([1.333333, 1.818182])
    """

    coefficients: Sequence | Callable
    radius: float = np.inf

    def __post_init__(self):
        vars(self).update(radius=check.positive(
            self.radius, "radius", infinite=True))
        if not callable(self.coefficients):
            vars(self).update(coefficients=tuple(check.nonnegative(
                a, f"coefficients: a_{n}") for n, a in enumerate(
                    as_sequence(self.coefficients, "coefficients"))))

    def _prepare(self, X, name):
        X = as_points(X, name)
        with np.errstate(over="ignore"):
            largest = np.sum(X**2, axis=1).max()
        if not largest < self.radius:
            raise ValueError(f"{name} must lie inside the radius of conver"
                             f"gence: ‖x‖² < {self.radius}, got "
                             f"{largest:.6g}")
        return X

    def _of(self, z):
        value, R = np.zeros_like(z), np.abs(z).max()
        for a in reversed(_terms(self.coefficients, self.radius, R)):
            value = value * z + a
        return value


# %% [23] The Gaussian kernel, and two of its feature maps
def _product(A, B):
    """A @ B, so few rows at a time that BLAS starts no threads, which
    would be in the way of those that the tiles run on."""
    AB, few = np.empty((len(A), B.shape[1])), max(4, 250_000 // B.size)
    for i in range(0, len(A), few):
        np.matmul(A[i:i + few], B, out=AB[i:i + few])
    return AB


def _squares(X, Y):
    (n, d), m = X.shape, len(Y)
    if d == 1:                                   # (x - y)², as a product
        D = (np.hstack([X, np.ones((n, 1))])
             @ np.vstack([np.ones(m), -Y.T]))
        return np.square(D, out=D)
    if d >= 8:                                # ‖a‖² - 2⟨a, b⟩ + ‖b‖²
        A, B = X - Y.mean(axis=0), Y - Y.mean(axis=0)
        a, b = (np.einsum("ij,ij->i", M, M) for M in (A, B))
        D = _product(np.column_stack([A, a, np.ones(n)]),
                     np.vstack([-2 * B.T, np.ones(m), b]))
        i, j = np.nonzero(~(D >= 1e-3 * (a.max() + b.max())))
        if len(i) <= n + m:             # cancelled: the differences instead
            D[i, j] = np.sum((X[i] - Y[j]) ** 2, axis=1)
            return D
    return cdist(X, Y, "sqeuclidean")


def squared_distances(X, Y=None) -> np.ndarray:
    """The (n, m) matrix of ‖x_i - y_j‖², or of ‖x_i - x_j‖², accurate
    also for points that nearly coincide (:prf:ref:`thm-gaussian`)."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _squares(*_prepared(Linear(), X, Y))


@dataclass(frozen=True)
class Gaussian(_OnVectors):
    """The kernel exp(-‖x - y‖² / (2σ²)) (:prf:ref:`thm-gaussian`).

    In scikit-learn's words gamma = 1 / (2σ²).

    >>> Gaussian(1.0)([0.0, 2.0]).round(6)
    array([[1.      , 0.135335],
           [0.135335, 1.      ]])
    """

    sigma: float = checked(check.width)

    def _gram(self, X, Y):
        D = _squares(X, Y)
        D *= -0.5 / self.sigma**2
        return np.exp(D, out=D)


# %% [24] Features one can list, and a Poisson law
def gaussian_features(X, sigma: float, degree: int) -> np.ndarray:
    """Features of the Gaussian kernel up to a degree
    (:prf:ref:`thm-poisson`).

    Parameters
    ----------
    X : (n, d) array
    sigma : float
    degree : int
        The highest degree m; the error is a Poisson tail. There are
        C(d + m, m) features, ordered by degree.
    """
    z = as_points(X) / check.width(sigma, "sigma")
    degree = check.whole(degree, "degree", 0)
    envelope = np.exp(-np.sum(z**2, axis=1, keepdims=True) / 2)
    return envelope * np.hstack([
        polynomial_features(z, n, c=0) / math.sqrt(math.factorial(n))
        for n in range(degree + 1)])


# %% [25] Features one can draw
def gaussian_bumps(X, T, sigma: float) -> np.ndarray:
    """The (n, m) matrix of values Φ(x_i)(t_j) of the feature functions in
    L2 (:prf:ref:`prop-gaussian-l2`).

    Parameters
    ----------
    X, T : (n, d) and (m, d) arrays
        Points, and where to evaluate their features.
    sigma : float
        The width of the kernel; the bumps have width σ/√2.
    """
    sigma = check.width(sigma, "sigma")
    T = as_points(T, "T")
    D, d = squared_distances(X, T), T.shape[1]
    return (2 / (np.pi * sigma**2)) ** (d / 4) * np.exp(-D / sigma**2)


# %% [26] More kernels on $\R^d$ from features
@dataclass(frozen=True)
class Laplace(_OnVectors):
    """The kernel exp(-‖x - y‖ / σ) (:prf:ref:`prop-laplace`).

    The norm is Euclidean; scikit-learn's ``laplacian_kernel`` sums
    absolute differences instead.
    """

    sigma: float = checked(check.width)

    def _gram(self, X, Y):
        return np.exp(-np.sqrt(_squares(X, Y)) / self.sigma)


@dataclass(frozen=True)
class _ByCoordinate(_OnVectors):
    width: float = checked(check.width, default=1.0)

    def _gram(self, X, Y):
        K = np.ones((len(X), len(Y)))
        for x, y in zip(X.T, Y.T):
            K *= self._profile(np.subtract.outer(x, y) / self.width)
        return K


@dataclass(frozen=True)
class Sinc(_ByCoordinate):
    """Π_i sinc((x_i - y_i) / width) (:prf:ref:`prop-sinc`)."""

    def _profile(self, t):
        return np.sinc(t)


# %% [27] More kernels on $\R^d$ from features
@dataclass(frozen=True)
class BSpline(_ByCoordinate):
    """Π_i b_p((x_i - y_i) / width) / b_p(0) for odd degree p
    (:prf:ref:`prop-bspline`); the knots of the spline are at the distance
    `width`, and an even degree does not give a kernel."""

    degree: int = checked(partial(check.whole, least=1), default=3)

    def __post_init__(self):
        super().__post_init__()
        if self.degree % 2 == 0:
            raise ValueError(f"degree must be odd, got {self.degree}: "
                             "even B-splines are not positive definite")

    def _profile(self, t):
        from scipy.interpolate import BSpline as SplineBasis   # rare, slow

        half = (self.degree + 1) / 2
        spline = SplineBasis.basis_element(np.arange(-half, half + 1),
                                           extrapolate=False)
        return np.nan_to_num(spline(t)) / spline(0.0)


# %% [28] Gram matrices too large to store
def gram_dot(kernel: Kernel, X, Y, W) -> np.ndarray:
    """The product K(X, Y) W, a tile at a time (:prf:ref:`prop-tiles`).

    Parameters
    ----------
    kernel : Kernel
    X, Y : sequences of n and m points
        With ``Y=None`` the symmetric matrix K(X), half computed.
    W : (m,) or (m, r) array
    """
    X, Y = _prepared(as_kernel(kernel), X, Y)
    W = check.real_array(W, "W")
    if W.shape[:1] != (len(Y),):
        raise ValueError(f"W must have one row for each of {len(Y)} points,"
                         f" got shape {W.shape}")
    return kernel._dot(X, Y, W)


# %% [29] The sigmoid "kernel"
@dataclass(frozen=True)
class Sigmoid(_OfProduct):
    """tanh(a ⟨x, y⟩ + c): *not* positive definite for any a > 0
    (:prf:ref:`prop-sigmoid`)."""

    a: float = checked(check.positive)
    c: float = checked(check.number)
    positive_definite = False

    def _of(self, z):
        return np.tanh(self.a * z + self.c)
