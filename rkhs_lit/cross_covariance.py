"""Cross-covariance: one operator for all covariances

The exported cells of the chapter ``book/cross_covariance.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 9b52ff0baef8dad4

# %% [1] Cross-covariance: one operator for all covariances
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from scipy.linalg import (LinAlgError, LinAlgWarning, block_diag,
                          eigh, eigh_tridiagonal, qr, solve, svdvals)

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points, as_sequence
from rkhs_lit.kernels import Kernel, Pairs, _kernel, gram_dot, reduce_tiles
from rkhs_lit.moore_aronszajn import (RKHSFunction, _copied, _finite_sum,
                                      _fixed, _function, _joined)


# %% [2] The type `RKHSOperator`
class _Parts:
    # NumPy arrays must leave ``B @ W`` and ``c * W`` to this class.
    __array_ufunc__ = None

    @property
    def T(self):
        return LowRank(self.V, self.U, self.diagonal)

    def __matmul__(self, B):
        B = check.plain_array(B, "B")
        with np.errstate(over="ignore", invalid="ignore"):
            WB = self.U @ (self.V.T @ B)
            if self.diagonal is not None:
                WB += (self.diagonal * B.T).T
        return WB

    def __rmatmul__(self, B):
        return (self.T @ np.transpose(B)).T

    def __mul__(self, c):
        if not isinstance(c, Real):
            return NotImplemented
        c, d = check.number(c, "the factor"), self.diagonal
        return LowRank(c * self.U, self.V, None if d is None else c * d)

    __rmul__ = __mul__

    def __truediv__(self, c):
        if not isinstance(c, Real):
            return NotImplemented
        if (c := check.number(c, "the divisor")) == 0:
            raise ValueError("the divisor must not be 0")
        d = self.diagonal
        with np.errstate(over="ignore"):  # infinite parts are refused
            return LowRank(self.U / c, self.V,
                           None if d is None else d / c)

    def __array__(self, dtype=None, copy=None):
        d = self.diagonal
        return self.U @ self.V.T + (0 if d is None else np.diag(d))


# %% [3] The type `RKHSOperator`
@dataclass(frozen=True, eq=False, repr=False)
class LowRank(_Parts):
    """The matrix diag(d) + U V', kept as its parts
    (:prf:ref:`lem-centring-matrix`).

    It has products ``W @ B``, ``B @ W`` and ``c * W`` with arrays B
    and numbers c, and a transpose ``W.T``; ``np.asarray(W)`` writes it
    out.

    Parameters
    ----------
    U, V : (n, r) and (m, r) arrays
        A one-dimensional array is one column.
    diagonal : (n,) array, optional
        The numbers d; only for n = m.

    Examples
    --------
    >>> W = LowRank([1.0, 2.0], [3.0, 0.0], diagonal=[1.0, 1.0])
    >>> np.asarray(W)
    array([[4., 0.],
           [6., 1.]])
    """

    U: np.ndarray
    V: np.ndarray
    diagonal: np.ndarray | None = None

    def __post_init__(self):
        for name in "UV":
            object.__setattr__(self, name, _copied(
                as_points(getattr(self, name), name)))
        U, V = self.U, self.V
        if U.shape[1] != V.shape[1]:
            raise ValueError("V must have as many columns as U, got shapes "
                             f"{U.shape} and {V.shape}")
        if self.diagonal is not None:
            if len(U) != len(V):
                raise ValueError("diagonal must be None for a matrix that "
                                 f"is not square, {len(U)} × {len(V)}")
            object.__setattr__(self, "diagonal", check.vector(
                self.diagonal, "diagonal", len(U)))

    def __repr__(self):
        return f"LowRank(shape={len(self.U), len(self.V)})"


# %% [4] The type `RKHSOperator`
def _named_space(kernel, name):
    _kernel(kernel, name)
    if not kernel.positive_definite:
        raise ValueError(f"{name} must be positive definite, but {kernel} "
                         "is known not to be")


def _points(kernel, points, name):
    points = as_sequence(points, name)
    kernel._prepare(points, name)
    try:
        return _fixed(points)
    except ValueError as error:
        raise ValueError(str(error).replace("points", name, 1)) from None


def _weights(W, n, m):
    if isinstance(W, LowRank):
        shape = len(W.U), len(W.V)
    else:
        array = as_points(W, "weights")
        shape = np.shape(W)
        if shape == (n,) == (m,):
            zero = np.zeros((n, 1))
            return LowRank(zero, zero, array[:, 0])
        W = _copied(array)
    if shape != (n, m):
        raise ValueError(f"weights must be a {n} × {m} array, a LowRank of "
                         "that shape, or for as many x as y their diagonal,"
                         f" got shape {shape}")
    return W


# %% [5] The type `RKHSOperator`
def _same_points(a, b):
    """Whether two lists of points are surely the same."""
    if a is b:
        return True
    if isinstance(a, Pairs) and isinstance(b, Pairs):
        return (_same_points(a.first, b.first)
                and _same_points(a.second, b.second))
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return (a.dtype == b.dtype and a.dtype.kind in "biufU"
                and np.array_equal(a, b))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same_points, a, b))
    return isinstance(a, (str, float, int)) and a == b


def _same_space(k, l):
    return k is l or k == l


def _one_kind(kernel, X, Z, who):
    try:
        kernel(X[:1], Z[:1])
    except ValueError as error:
        raise ValueError(f"{who} must have points of one kind: {error}"
                         ) from None


def _one_pair_of_spaces(A, B):
    if not (_same_space(A.k, B.k) and _same_space(A.l, B.l)):
        raise ValueError("A and B must act between the same spaces, got "
                         f"{A.l} -> {A.k} and {B.l} -> {B.k}")
    _one_kind(A.k, A.X, B.X, "A and B")
    _one_kind(A.l, A.Y, B.Y, "A and B")


# %% [6] The type `RKHSOperator`
def _times(V, W):
    """V W without a warning: infinite weights are refused later."""
    with np.errstate(over="ignore", invalid="ignore"):
        return V @ W


def _added(V, W):
    """The weights V + W of two operators over the same points."""
    if isinstance(V, np.ndarray) or isinstance(W, np.ndarray):
        with np.errstate(over="ignore"):
            return np.asarray(V) + np.asarray(W)
    parts = [P.diagonal for P in (V, W) if P.diagonal is not None]
    return LowRank(np.hstack([V.U, W.U]), np.hstack([V.V, W.V]),
                   sum(parts) if parts else None)


def _stacked(V, W):
    """The block diagonal weights of two operators side by side."""
    if isinstance(V, np.ndarray) or isinstance(W, np.ndarray):
        return block_diag(np.asarray(V), np.asarray(W))
    U, V_ = block_diag(V.U, W.U), block_diag(V.V, W.V)
    if V.diagonal is None and W.diagonal is None:
        return LowRank(U, V_)
    if len(V.U) != len(V.V) or len(W.U) != len(W.V):
        return block_diag(np.asarray(V), np.asarray(W))
    return LowRank(U, V_, np.concatenate(
        [np.zeros(len(P.U)) if P.diagonal is None else P.diagonal
         for P in (V, W)]))


def _composed(A, B):
    """The weights of A B."""
    V, W = A.weights, B.weights
    if isinstance(V, LowRank) and V.diagonal is None:
        return LowRank(V.U, _times(W.T, gram_dot(A.l, B.X, A.Y, V.V)))
    if isinstance(W, LowRank) and W.diagonal is None:
        return LowRank(_times(V, gram_dot(A.l, A.Y, B.X, W.U)), W.V)
    return _times(_times(V, A.l(A.Y, B.X)), W)


# %% [7] The type `RKHSOperator`
@dataclass(frozen=True, eq=False, repr=False)
class RKHSOperator:
    """The operator A = Σ W_ij k(x_i, ·) ⊗ l(y_j, ·) from H_l to H_k
    (:prf:ref:`thm-operator-calculus`).

    Operators between the same spaces can be added and multiplied by
    numbers; ``A @ B`` is the composition.

    Parameters
    ----------
    k, l : Kernel
        Positive definite; A maps functions of H_l to functions of H_k.
    X, Y : sequences of n and m points
    weights : (n, m) array, LowRank, or (n,) array
        The numbers W_ij; one-dimensional, their diagonal for n = m.

    Examples
    --------
    >>> from rkhs_lit.kernels import Linear
    >>> A = RKHSOperator(Linear(), [1.0, 2.0], Linear(), [1.0, -1.0],
    ...                  [[1.0, 0.0], [0.0, 3.0]])
    >>> A(RKHSFunction(Linear(), [1.0], [1.0]))([1.0])     # 1·1 - 2·3
    array([-5.])
    """

    k: Kernel
    X: Sequence
    l: Kernel
    Y: Sequence
    weights: np.ndarray | LowRank

    def __post_init__(self):
        for name, points in ("k", "X"), ("l", "Y"):
            kernel = getattr(self, name)
            _named_space(kernel, name)
            object.__setattr__(self, points, _points(
                kernel, getattr(self, points), points))
        object.__setattr__(self, "weights", _weights(
            self.weights, len(self.X), len(self.Y)))

    # NumPy numbers must leave ``c * A`` to this class.
    __array_ufunc__ = None

    def __repr__(self):
        return (f"RKHSOperator({self.l} -> {self.k}, n={len(self.X)}, "
                f"m={len(self.Y)})")

    def __add__(self, other):
        if not isinstance(other, RKHSOperator):
            return NotImplemented
        _one_pair_of_spaces(self, other)
        V, W = self.weights, other.weights
        if _same_points(self.X, other.X) and _same_points(self.Y, other.Y):
            return replace(self, weights=_added(V, W))
        return RKHSOperator(
            self.k, _joined(self.X, other.X), self.l,
            _joined(self.Y, other.Y), _stacked(V, W))

    def __radd__(self, other):
        # sum(operators) starts from the number 0.
        return self if isinstance(other, Real) and other == 0 else (
            NotImplemented)

    def __mul__(self, c):
        if not isinstance(c, Real):
            return NotImplemented
        c = check.number(c, "the factor")
        return replace(self, weights=c * self.weights)

    __rmul__ = __mul__

    def __truediv__(self, c):
        if not isinstance(c, Real):
            return NotImplemented
        if (c := check.number(c, "the divisor")) == 0:
            raise ValueError("the divisor must not be 0")
        with np.errstate(over="ignore"):  # infinite weights are refused
            return replace(self, weights=self.weights / c)

    def __neg__(self):
        return -1 * self

    def __sub__(self, other):
        return self + -other if isinstance(other, RKHSOperator) else (
            NotImplemented)

    def __matmul__(self, other):
        if not isinstance(other, RKHSOperator):
            return NotImplemented
        if not _same_space(self.l, other.k):
            raise ValueError("B in A @ B must map into the space on which "
                             f"A acts, with kernel {self.l}, got {other.k}")
        _one_kind(self.l, self.Y, other.X, "A and B in A @ B")
        return RKHSOperator(self.k, self.X, other.l, other.Y,
                            _composed(self, other))

    def __call__(self, g: RKHSFunction) -> RKHSFunction:
        """The function A g of H_k, for g in H_l."""
        return RKHSFunction(self.k, self.X, _times(
            self.weights, _read(g, self.l, self.Y)))

    def adjoint(self) -> "RKHSOperator":
        """The operator A* from H_k to H_l, with transposed weights."""
        return RKHSOperator(self.l, self.Y, self.k, self.X, self.weights.T)

    def values(self, S, T) -> np.ndarray:
        """The numbers ⟨k(s, ·), A l(t, ·)⟩, a row for each s."""
        right = _times(self.weights, _gram(self.l, self.Y, T, "T"))
        return _finite_sum(_times(_gram(self.k, self.X, S, "S").T, right))


# %% [8] The type `RKHSOperator`
def _gram(kernel, X, T, name):
    T = as_sequence(T, name)
    kernel._prepare(T, name)
    try:
        return kernel(X, T)
    except ValueError as error:
        raise ValueError(f"{name} does not suit the points of the operator:"
                         f" {error}") from None


def _read(g, l, Y, name="g"):
    """The values g(Y) of a function of H_l."""
    _function(g, name)
    if not _same_space(g.kernel, l):
        raise ValueError(f"{name} must be a function of the kernel {l}, "
                         f"got {g.kernel}")
    try:
        return g(Y)
    except ValueError as error:
        raise ValueError(f"{name} does not suit the points Y of the "
                         f"operator: {error}") from None


def _operator(A, name):
    if not isinstance(A, RKHSOperator):
        raise ValueError(f"{name} must be an RKHSOperator, got "
                         f"{type(A).__name__}")


# %% [9] The type `RKHSOperator`
def tensor(f: RKHSFunction, g: RKHSFunction) -> RKHSOperator:
    """The rank-one operator f ⊗ g, which maps h to ⟨g, h⟩ f
    (:prf:ref:`prop-rank-one`).

    Parameters
    ----------
    f, g : RKHSFunction
        Of two spaces H_k and H_l.

    Returns
    -------
    RKHSOperator
        From H_l to H_k.
    """
    _function(f, "f")
    _function(g, "g")
    return RKHSOperator(f.kernel, f.points, g.kernel, g.points,
                        LowRank(f.weights, g.weights))


# %% [10] The type `RKHSOperator`
def _tiles_of(kernel, X, Z, W):
    """Tiles of the matrix K(X, Z) W, by their rows and columns."""
    if isinstance(W, np.ndarray):
        KW = gram_dot(kernel, X, Z, W)
        return lambda i, j: KW[i, j]
    KU = gram_dot(kernel, X, Z, W.U)
    X, Z = kernel._prepare(X, "X"), kernel._prepare(Z, "Z")
    return lambda i, j: (kernel._block(X[i], Z[j]) * W.diagonal[j]
                         + KU[i] @ W.V[j].T)


def _trace(A, B):
    V, W = A.weights, B.weights
    if isinstance(V, LowRank) and V.diagonal is None:
        return np.sum(gram_dot(A.k, B.X, A.X, V.U)
                      * (W @ gram_dot(A.l, B.Y, A.Y, V.V)))
    if isinstance(W, LowRank) and W.diagonal is None:
        return _trace(B, A)
    left = _tiles_of(A.k, A.X, B.X, W)
    right = _tiles_of(A.l, B.Y, A.Y, V.T)

    def visit(total, i, j):
        total += np.sum(left(i, j) * right(j, i).T)

    return reduce_tiles(visit, lambda: np.zeros(()), len(A.X), len(B.Y))


# %% [11] The type `RKHSOperator`
def _power(x):
    """A power of two of the size of x: to divide by it is exact."""
    return math.ldexp(1.0, min(math.frexp(x)[1], 1023)) if x > 0 else 0.0


def _root_scale(name, *lists):
    largest = 0.0
    for kernel, points in lists:
        diagonal = kernel.diag(points)
        if diagonal.min() < 0:
            raise ValueError("A must have positive definite kernels, but "
                             f"{name} is negative at two equal points")
        largest = max(largest, float(diagonal.max()))
    # A kernel must not be divided by less than 2^-1000.
    return max(_power(math.sqrt(largest)), 2.0**-500) if largest else 0.0


def _scales(*operators):
    """Sizes of k_x and of l_y over the points of the operators."""
    return (_root_scale("k", *((A.k, A.X) for A in operators)),
            _root_scale("l", *((A.l, A.Y) for A in operators)))


def _unit(A, r, s):
    """A number c and an operator U with A = c U, where the weights of U
    are at most one and the kernels are divided by r² and s²."""
    W = A.weights
    if isinstance(W, np.ndarray):
        w = _power(np.abs(W).max())
        c, W = _finite_sum(w * (r * s)), W / (w or 1.0)
    else:
        u, v = (np.array([*map(_power, np.abs(part).max(axis=0))])
                for part in (W.U, W.V))
        d = 0.0 if W.diagonal is None else _power(np.abs(W.diagonal).max())
        with np.errstate(over="ignore", invalid="ignore"):
            a, b = (u * r) * (v * s), d * (r * s)
        c = _finite_sum(max(float(a.max()), b))
        u[u == 0] = v[v == 0] = 1.0
        W = LowRank(W.U / u, W.V / v * (a / (c or 1.0)),
                    None if W.diagonal is None else
                    W.diagonal / (d or 1.0) * (b / (c or 1.0)))
    r, s = r or 1.0, s or 1.0
    return c, RKHSOperator(r**-2 * A.k, A.X, s**-2 * A.l, A.Y, W)


# %% [12] The type `RKHSOperator`
def hs_inner(A: RKHSOperator, B: RKHSOperator) -> float:
    """The Hilbert–Schmidt inner product of two operators
    (:prf:ref:`thm-operator-calculus`).

    Parameters
    ----------
    A, B : RKHSOperator
        Between the same spaces.

    Returns
    -------
    float
        Gram matrices are computed a tile at a time; none is stored.
    """
    _operator(A, "A")
    _operator(B, "B")
    _one_pair_of_spaces(A, B)
    scales = _scales(A, B)
    (a, U), (b, V) = _unit(A, *scales), _unit(B, *scales)
    return _finite_sum(a * (b * float(_trace(U, V))))


# %% [13] Norms
def _factor(kernel, X, U=None):
    """A matrix F with U' K U = F F'; without U with K = F F'."""
    sizes = np.sqrt(kernel.diag(X))
    t = sizes if U is None else np.abs(U).T @ sizes
    t = np.where(t > 0, t, 1.0)
    if U is None:
        S = kernel(X) / t[:, None] / t
    else:
        U = U / t
        S = U.T @ gram_dot(kernel, X, None, U)
    lam, V = eigh(S)
    top = max(lam[-1], 1.0)
    if lam[0] < -1e-8 * top:
        raise ValueError("A must have positive definite kernels, but a "
                         "Gram matrix has the scaled eigenvalue "
                         f"{lam[0]:.6g}")
    kept = lam > len(S) * np.finfo(float).eps * top
    # Equal rows of S give equal rows here, and cancel to the last digit.
    return t[:, None] * (S @ V[:, kept]) / np.sqrt(lam[kept])


def _core(A):
    """A matrix with the singular values of A
    (:prf:ref:`thm-operator-core`)."""
    W = A.weights
    if isinstance(W, LowRank) and W.diagonal is None:
        return _factor(A.k, A.X, W.U).T @ _factor(A.l, A.Y, W.V)
    return _factor(A.k, A.X).T @ (W @ _factor(A.l, A.Y))


# %% [14] Norms
DENSE = 1000


def _largest_square(A):
    """The bound (Σ |W_ij| ‖k_i‖ ‖l_j‖)² for the square of the norm."""
    W = A.weights
    if isinstance(W, np.ndarray):
        W = np.abs(W)
    else:
        d = W.diagonal
        W = LowRank(np.abs(W.U), np.abs(W.V),
                    None if d is None else np.abs(d))
    return float(np.sqrt(A.k.diag(A.X))
                 @ (W @ np.sqrt(A.l.diag(A.Y)))) ** 2


def hs_norm(A: RKHSOperator) -> float:
    """The Hilbert–Schmidt norm of an operator
    (:prf:ref:`thm-operator-calculus`).

    Parameters
    ----------
    A : RKHSOperator

    Returns
    -------
    float
        The root of ``hs_inner(A, A)``. Where that sum cancels, and for
        up to a thousand points, by way of :prf:ref:`thm-operator-core`.
    """
    _operator(A, "A")
    c, U = _unit(A, *_scales(A))
    if c == 0:
        return 0.0
    square, bound = float(_trace(U, U)), _largest_square(U)
    if square < -1e-8 * bound:
        raise ValueError("A must have positive definite kernels, but its "
                         "squared norm is negative")
    if square > 1e-9 * bound or max(len(A.X), len(A.Y)) > DENSE:
        return _finite_sum(c * max(square, 0.0) ** 0.5)
    return _finite_sum(c * float(np.linalg.norm(_core(U))))


# %% [15] Many points
def _square(kernel, X, b, values, name):
    """The squared norm of the function with weights b, 0 if it is lost
    in rounding errors."""
    square = b @ values
    size = (np.abs(b) @ np.sqrt(kernel.diag(X))) ** 2
    # 1e-8 allows for kernels that are computed to eight digits.
    if square < -1e-8 * size:
        raise ValueError(f"{name} must be positive definite, but a "
                         "squared norm is negative")
    return square if square > 4 * np.finfo(float).eps * size else 0.0


def _lanczos(A, zero=0.0):
    """The largest eigenvalue of A* A and weights of an eigenfunction,
    None if A* A = 0 (:prf:ref:`prop-lanczos`). Ten steps without an
    eigenvalue above `zero` are enough to give up."""
    W, b = A.weights, np.random.default_rng(0).normal(size=len(A.Y))
    Q, R, alpha, beta = [], [], [], []
    theta, last, s = 0.0, 1.0, None
    while len(Q) < len(A.Y):
        values = gram_dot(A.l, A.Y, None, b)
        size = np.sqrt(_square(A.l, A.Y, b, values, "l"))
        if size * last <= 1e-13 * max(theta, 0.0) or (
                len(Q) >= 10 and theta <= zero):
            break
        if Q:
            beta.append(size)
        Q.append(b / size)
        R.append(values / size)
        c = W @ R[-1]                              # the weights of A u
        values = gram_dot(A.k, A.X, None, c)
        alpha.append(_square(A.k, A.X, c, values, "k"))
        b = W.T @ values
        for _ in range(2):                         # twice is enough
            b = b - (np.array(R) @ b) @ np.array(Q)
        lam, S = eigh_tridiagonal(alpha, beta)
        theta, s, last = lam[-1], S[:, -1], abs(S[-1, -1])
    return (theta, s @ np.array(Q)) if theta > 0 else (0.0, None)


# %% [16] Many points
def op_norm(A: RKHSOperator) -> float:
    """The operator norm of an operator, its largest singular value
    (:prf:ref:`thm-operator-core`).

    Parameters
    ----------
    A : RKHSOperator

    Returns
    -------
    float
        The largest ‖A g‖ for ‖g‖ = 1. Above a thousand points by
        Lanczos' method, which stores no Gram matrix.
    """
    _operator(A, "A")
    c, U = _unit(A, *_scales(A))
    if c == 0:
        return 0.0
    small = isinstance(U.weights, LowRank) and U.weights.diagonal is None
    if small or max(len(A.X), len(A.Y)) <= DENSE:
        core = _core(U)
        largest = svdvals(core)[0] if core.size else 0.0
    else:
        largest = np.sqrt(_lanczos(U)[0])
    return _finite_sum(c * float(largest))


# %% [17] From a sample
def cross_covariance(k: Kernel, l: Kernel, X, Y, *,
                     centred: bool = True) -> RKHSOperator:
    """The empirical cross-covariance operator
    (:prf:ref:`thm-empirical-covariance`).

    Parameters
    ----------
    k, l : Kernel
    X, Y : sequences of n points
        The pairs (x_i, y_i).
    centred : bool
        Whether the means are subtracted.

    Returns
    -------
    RKHSOperator
        C from H_l to H_k, where ⟨f, C g⟩ is the covariance of the values
        f(x_i) and g(y_i); without centring the mean of f(x_i) g(y_i).
    """
    n, m = len(as_sequence(X, "X")), len(as_sequence(Y, "Y"))
    if n != m:
        raise ValueError(f"Y must have as many points as X ({n}), got {m}")
    if not isinstance(centred, (bool, np.bool_)):
        raise ValueError(f"centred must be True or False, got {centred!r}")
    mean = np.full(n, 1 / n)
    return RKHSOperator(k, X, l, Y, LowRank(-mean, mean, mean)
                        if centred else mean)


# %% [18] Dividing by an operator
def _symmetric_root(W):
    """A matrix R with W = R R', or None if there is none."""
    if isinstance(W, np.ndarray):
        # W = s S s with ones on the diagonal of S.
        scale = np.sqrt(np.maximum(W.diagonal(), 0.0))
        scale[scale == 0] = 1.0
        S, Z = W / scale[:, None] / scale, None
    elif W.diagonal is not None and W.diagonal.min() > 0:
        # W = s (I + Z B Z') s with orthonormal columns Z.
        scale = np.sqrt(W.diagonal)
        U, V = (part / scale[:, None] for part in (W.U, W.V))
        Z = qr(np.hstack([U, V]), mode="economic")[0]
        S = np.eye(Z.shape[1]) + Z.T @ U @ (V.T @ Z)
    else:
        return None
    tol = len(scale) * np.finfo(float).eps * np.abs(S).sum(axis=1).max()
    if not np.abs(S - S.T).max() <= tol < np.inf:
        return None
    lam, Q = eigh(S)
    if lam[0] < -tol:
        return None
    root = Q * np.sqrt(np.where(lam > tol, lam, 0.0))
    if Z is None:
        return scale[:, None] * root
    return LowRank(scale[:, None] * (Z @ (root @ Q.T - np.eye(len(Q)))), Z,
                   scale)


# %% [19] Dividing by an operator
def _factors(A):
    """Matrices P and Q with A = (Φ P) (Ψ Q)*."""
    W = A.weights
    if isinstance(W, LowRank) and W.diagonal is None:
        return W.U, W.V
    R = _symmetric_root(W) if _same_points(A.X, A.Y) else None
    return (W, None) if R is None else (R, R)


def _response(A, values, lam):
    """The weights c of A h = Φ c for (A + lam) h = f, from f(Y)."""
    with np.errstate(over="ignore", invalid="ignore"):
        P, Q = _factors(A)
        M = A.k(A.Y, A.X) @ P if isinstance(P, LowRank) else gram_dot(
            A.k, A.Y, A.X, P)
        if Q is not None:
            M, values = Q.T @ M, Q.T @ values
    _finite_sum(M)[np.diag_indices(len(M))] += lam
    try:
        with warnings.catch_warnings(), np.errstate(over="ignore",
                                                    invalid="ignore"):
            warnings.simplefilter("error", LinAlgWarning)
            return _finite_sum(P @ solve(
                M, values, assume_a="pos" if P is Q else "gen"))
    except (LinAlgError, LinAlgWarning):
        raise ValueError(f"lam must be larger: A + {lam:g} I cannot be "
                         "inverted in floating point") from None


def _image(A, B, lam):
    """The operator A (A + lam)⁻¹ B."""
    if not _same_space(A.k, B.k):
        raise ValueError(f"f must map into the space of A, of the kernel "
                         f"{A.k}, got {B.k}")
    _one_kind(A.k, A.X, B.X, "A and f")
    W = B.weights
    thin = isinstance(W, LowRank) and W.diagonal is None
    c = _response(A, gram_dot(A.k, A.Y, B.X, W.U if thin
                              else np.asarray(W)), lam)
    return RKHSOperator(A.k, A.X, B.l, B.Y, LowRank(c, W.V) if thin else c)


# %% [20] Dividing by an operator
def regularised_solve(A: RKHSOperator, f: RKHSFunction | RKHSOperator,
                      lam: float) -> RKHSFunction | RKHSOperator:
    """The solution of (A + λI) h = f (:prf:ref:`thm-regularised-solve`).

    Parameters
    ----------
    A : RKHSOperator
        From H_k to itself; if it is positive, as a covariance operator
        is, every lam will do.
    f : RKHSFunction or RKHSOperator
        A function of H_k, or an operator B into H_k.
    lam : float
        The number λ > 0.

    Returns
    -------
    RKHSFunction or RKHSOperator
        The function (A + λI)⁻¹ f, or the operator (A + λI)⁻¹ B.
    """
    _operator(A, "A")
    if not _same_space(A.k, A.l):
        raise ValueError("A must map a space to itself, got "
                         f"{A.l} -> {A.k}")
    _one_kind(A.k, A.X, A.Y, "A")
    lam = check.positive(lam, "lam")
    if isinstance(f, RKHSOperator):
        image = _image(A, f, lam)
    else:
        c = _response(A, _read(f, A.k, A.Y, "f"), lam)
        X = f.points if _same_points(f.points, A.X) else A.X
        image = RKHSFunction(A.k, X, c)
    with np.errstate(over="ignore"):      # infinite weights are refused
        return (f - image) / lam
