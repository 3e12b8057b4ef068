"""Kernels: inner products of features you need not see"""
# The exported cells of book/rules.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 9531d5b6edadb3c0

# %% [1] Kernels: inner products of features you need not see
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import product

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array

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
    row = check.finite(np.abs(K).sum(axis=1).max(), "a row of K")
    return len(K) * np.finfo(float).eps * row


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
@np.errstate(over="ignore", invalid="ignore")
def is_positive_definite(K, tol: float | None = None) -> Definiteness:
    """Check an (n, n) matrix, and say why it fails
    (:prf:ref:`prop-witness`).

    What counts as zero is `tol`, by default n times the machine precision
    times the largest sum of absolute values in a row; then the matrix
    scaled to unit diagonal must pass as well.

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

    >>> Scaled(np.uint8(20), Linear())    # c: float = checked(...)
    Scaled(c=20.0, kernel=Linear())
    """
    return field(metadata={"read": check.function(read, "read")}, **default)


class Kernel(check.Vectors):
    """A function k(x, y) of two points (:prf:ref:`def-kernel`).

    ``k(X)`` and ``k(X, Y)`` are Gram matrices, ``k.diag(X)`` is the
    diagonal. New kernels come by ``k + l``, ``c * k`` with c >= 0,
    ``k * l`` and ``k ** m``. A subclass defines ``_gram(X, Y)``, and
    for speed ``_diag(X)``, for points that ``_prepare`` has checked.
    """

    #: False for a function that is not known to be a kernel.
    positive_definite = True

    def __post_init__(self):
        for part in fields(self):
            if read := part.metadata.get("read"):
                value = getattr(self, part.name)
                vars(self)[part.name] = read(value, part.name)

    def __call__(self, X, Y=None) -> np.ndarray:
        return self._matrix(*self._both(X, Y))

    def diag(self, X) -> np.ndarray:
        """The numbers k(x, x), without the Gram matrix."""
        with np.errstate(over="ignore", invalid="ignore"):
            return check.finite(self._diag(self._prepare(X, "X")),
                                "the kernel")

    _prepare = staticmethod(as_sequence)

    def _both(self, X, Y):
        """Both lists of points, checked; twice the first if it is alone."""
        check.same_columns(X, Y)
        A = self._prepare(X, "X")
        if Y is None or Y is X:
            return A, A
        B = self._prepare(Y, "Y")
        check.same_dimension(B, A)
        return A, B

    def _diag(self, X) -> np.ndarray:
        return np.array([self._gram(X[i:i + 1], X[i:i + 1])[0, 0]
                         for i in range(len(X))])

    def _tile(self, X, Y, K):
        """What gives the entries K[i, j] for two slices, with room in K."""
        return lambda i, j: self._gram(X[i], Y[j])

    def _summands(self, X):
        """The same function for X twice if a faster one will do in sums."""

    def _matrix(self, X, Y, name="the kernel"):
        """K for points that are prepared; half the work if Y is X."""
        if len(X) * len(Y) <= TILE**2:
            with np.errstate(over="ignore", invalid="ignore"):
                return check.finite(self._gram(X, Y), name)
        K = np.empty((len(X), len(Y)))
        with np.errstate(over="ignore", invalid="ignore"):
            tile = self._tile(X, Y, K)

        def fill(_, i, j):
            with np.errstate(over="ignore", invalid="ignore"):
                K[i, j] = check.finite(tile(i, j), name)
            if Y is X:
                K[j, i] = K[i, j].T

        reduce_tiles(fill, None, len(X), None if Y is X else len(Y))
        return K

    def _dot(self, X, Y, W, name="the kernel"):
        """The product K W, in the same way, without K."""
        shape, same = (len(X), *W.shape[1:]), Y is X
        return reduce_tiles(partial(self._add, X, Y, W, name, same),
                            partial(np.zeros, shape), len(X),
                            None if same else len(Y))

    def _add(self, X, Y, W, name, same, total, i, j):
        K = self._matrix(X[i], Y[j], name)
        total[i] += K @ W[j]
        if same and i != j:
            total[j] += K.T @ W[i]

    def __add__(self, other):
        return Sum(self, other) if isinstance(other, Kernel) else (
            NotImplemented)

    def __mul__(self, other):
        return Product(self, other) if isinstance(other, Kernel) else (
            Scaled(other, self))

    def __pow__(self, m):
        return Power(self, m)

    def __sub__(self, other):
        raise ValueError("a difference of kernels need not be a kernel: "
                         "subtract Gram matrices and check the result "
                         "with is_positive_definite")

# %% [6] The type `Kernel`
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
@dataclass(frozen=True)
class Linear(Kernel):
    """The kernel ⟨x, y⟩ on R^d (:prf:ref:`def-kernel`).

    >>> Linear()([[1.0, 2.0], [0.0, 1.0]])
    array([[5., 2.],
           [2., 1.]])
    """

    _prepare = staticmethod(as_points)

    def _gram(self, X, Y):
        return X @ Y.T

    def _diag(self, X):
        return np.sum(X**2, axis=1)

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
    caller's promise; each tile of a Gram matrix tests a few pairs.

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
        """The number of pairs, and the dimensions of their parts."""
        return len(self), *(d for part in (self.first, self.second)
                            for d in getattr(part, "shape", ())[1:])

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
