"""Cross-covariance: one operator for all covariances

The exported cells of the chapter ``book/cross_covariance.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: dac12299762162e9

# %% [1] Cross-covariance: one operator for all covariances
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.linalg import (LinAlgError, LinAlgWarning, block_diag,
                          eigh, eigh_tridiagonal, qr, solve, svdvals)

import rkhs_lit.conventions as check
from rkhs_lit.kernels import Kernel, Pairs, reduce_tiles
from rkhs_lit.mean_embedding import moved
from rkhs_lit.moore_aronszajn import (Features, RKHSFunction, as_function,
                                      paired)


# %% [2] The type `RKHSOperator`
# No warnings, for results that are checked when complete.
_free = np.errstate(over="ignore", invalid="ignore")


@dataclass(frozen=True, eq=False, repr=False)
class LowRank(check.Record):
    """The matrix W = diag(d) + U V', kept as its parts, with ``W @ B``,
    ``B @ W``, ``c * W``, ``W / c`` and ``W.T``; ``np.asarray(W)`` writes
    it out (:prf:ref:`lem-centring-matrix`).

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
        U, V = (check.as_points(getattr(self, name), name) for name in "UV")
        d = self.diagonal
        if U.shape[1] != V.shape[1]:
            raise ValueError("V must have as many columns as U, got shapes "
                             f"{U.shape} and {V.shape}")
        if d is not None and len(U) != len(V):
            raise ValueError("diagonal must be None for a matrix that is "
                             f"not square, {len(U)} × {len(V)}")
        d = d if d is None else check.vector(d, "diagonal", len(U))
        for name, value in (("U", check.frozen(U)), ("V", check.frozen(V)),
                            ("diagonal", d)):
            object.__setattr__(self, name, value)

    def __repr__(self):
        return f"LowRank(shape={len(self.U), len(self.V)})"

    # NumPy arrays must leave ``B @ W`` and ``c * W`` to this class.
    __array_ufunc__ = None

    @property
    def T(self):
        return LowRank(self.V, self.U, self.diagonal)

    @_free
    def __matmul__(self, B):
        B = check.plain_array(B, "B")
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
        return LowRank(c * self.U, self.V, d if d is None else c * d)

    __rmul__ = __mul__

    @_free
    def __truediv__(self, c):
        if not isinstance(c, Real):
            return NotImplemented
        c, d = _divisor(c), self.diagonal
        return LowRank(self.U / c, self.V, d if d is None else d / c)

    def __array__(self, dtype=None, copy=None):
        d = self.diagonal
        return self.U @ self.V.T + (0 if d is None else np.diag(d))


# %% [3] The type `RKHSOperator`
@dataclass(frozen=True, eq=False, repr=False)
class RKHSOperator(check.Record):
    """The operator A = Φ W Ψ* = Σ W_ij k(x_i, ·) ⊗ l(y_j, ·) from H_l to
    H_k (:prf:ref:`thm-operator-calculus`).

    Operators between the same spaces can be added and multiplied by
    numbers; ``A @ B`` is the composition.

    Parameters
    ----------
    k, l : Kernel
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
        Phi = Features(self.k, self.X, "X", "k")
        Psi = Features(self.l, self.Y, "Y", "l")
        W = _weights(self.weights, len(Phi), len(Psi))
        for name, value in (("X", Phi.points), ("Y", Psi.points),
                            ("weights", W), ("Phi", Phi), ("Psi", Psi)):
            object.__setattr__(self, name, value)

    def __repr__(self):
        return (f"RKHSOperator({self.l} -> {self.k}, n={len(self.X)}, "
                f"m={len(self.Y)})")

    @_free
    def __call__(self, g: RKHSFunction) -> RKHSFunction:
        """The function A g = Φ W g(Y) of H_k, for g in H_l."""
        as_function(g, "g", self.l)
        return self.Phi @ (self.weights @ self.Psi.sample(g))

    def adjoint(self) -> "RKHSOperator":
        """The operator A* = Ψ W' Φ* from H_k to H_l."""
        return _operator(self.Psi, self.weights.T, self.Phi)

    @_free
    def __matmul__(self, other):
        if not isinstance(other, RKHSOperator):
            return NotImplemented
        _one_space(self.l, other.k)
        V, W, Theta = self.weights, other.weights, other.Psi
        if _thin(W):                       # W = U V', so U comes first
            VL = V @ _dot(self.Psi, W.U, other.Phi)
            return _operator(self.Phi, LowRank(VL, W.V), Theta)
        if _thin(V):
            return (other.adjoint() @ self.adjoint()).adjoint()
        return _operator(self.Phi, V @ _dot(self.Psi, W, other.Phi), Theta)

    @_free
    def values(self, S, T) -> np.ndarray:
        """The numbers ⟨k(s, ·), A l(t, ·)⟩, a row for each s."""
        S, T = Features(self.k, S, "S"), Features(self.l, T, "T")
        right = self.weights @ T.gram(self.Psi).T
        return check.finite(S.gram(self.Phi) @ right, "A")

    @_free
    def __add__(self, other):
        if not isinstance(other, RKHSOperator):
            return NotImplemented
        _one_space(self.k, other.k)
        _one_space(self.l, other.l)
        same = (_same_points(self.X, other.X)
                and _same_points(self.Y, other.Y))
        W = _sum(self.weights, other.weights, same)
        if same:
            return _operator(self.Phi, W, self.Psi)
        return _operator(self.Phi.joined(other.Phi), W,
                         self.Psi.joined(other.Psi))

    def __radd__(self, other):
        # sum(operators) starts from the number 0.
        return self if isinstance(other, Real) and other == 0 else (
            NotImplemented)

    # NumPy numbers must leave ``c * A`` to this class.
    __array_ufunc__ = None

    @_free
    def __mul__(self, c):
        if not isinstance(c, Real):
            return NotImplemented
        c = check.number(c, "the factor")
        return _operator(self.Phi, c * self.weights, self.Psi)

    __rmul__ = __mul__

    @_free
    def __truediv__(self, c):
        if not isinstance(c, Real):
            return NotImplemented
        return _operator(self.Phi, self.weights / _divisor(c), self.Psi)

    def __neg__(self):
        return -1 * self

    def __sub__(self, other):
        return self + -other if isinstance(other, RKHSOperator) else (
            NotImplemented)


def _operator(Phi, W, Psi):
    """The operator Φ W Ψ*."""
    return RKHSOperator(Phi.kernel, Phi, Psi.kernel, Psi, W)


# %% [4] The type `RKHSOperator`
def tensor(f: RKHSFunction, g: RKHSFunction) -> RKHSOperator:
    """The rank-one operator f ⊗ g from H_l to H_k, which maps h to
    ⟨g, h⟩ f, for f in H_k and g in H_l (:prf:ref:`prop-rank-one`)."""
    as_function(f, "f")
    as_function(g, "g")
    return _operator(f.features, LowRank(f.weights, g.weights), g.features)


# %% [5] The type `RKHSOperator`
def hs_inner(A: RKHSOperator, B: RKHSOperator) -> float:
    """The Hilbert–Schmidt inner product of two operators between the same
    spaces (:prf:ref:`thm-operator-calculus`), a tile at a time."""
    _expect(A, "A", RKHSOperator)
    _expect(B, "B", RKHSOperator)
    _one_space(A.k, B.k)
    _one_space(A.l, B.l)
    (a, U), (b, V) = _units(*_moved(A, B))
    return _grown(_trace(U, V), a + b)


# %% [6] Fine print
def _expect(A, name, kind):
    if not isinstance(A, kind):
        raise ValueError(f"{name} must be an {kind.__name__}, got "
                         f"{type(A).__name__}")


def _one_space(k, l, name="B"):
    if not (k is l or k == l):
        raise ValueError(f"{name} must have the kernel {k} where it meets "
                         f"A, got {l}")


def _divisor(c):
    if (c := check.number(c, "the divisor")) == 0:
        raise ValueError("the divisor must not be 0")
    return c


def _dot(Phi, W, Psi):
    """The matrix Φ*Ψ W, with half the work for Ψ = Φ."""
    if isinstance(W, LowRank):
        return Phi.gram(Psi) @ W
    return Phi.dot(W, None if Phi.points is Psi.points else Psi)


# %% [7] Fine print
def _thin(W):
    """Whether W = U V' without a diagonal."""
    return isinstance(W, LowRank) and W.diagonal is None


def _diagonal(d):
    zero = np.zeros((len(d), 1))
    return LowRank(zero, zero, d)


def _weights(W, n, m):
    if isinstance(W, LowRank):
        shape = len(W.U), len(W.V)
    else:
        array, shape = check.as_points(W, "weights"), np.shape(W)
        if shape == (n,) == (m,):
            return _diagonal(array[:, 0])
        W = check.frozen(array)
    if shape != (n, m):
        raise ValueError(f"weights must be a {n} × {m} array, a LowRank of "
                         "that shape, or for as many x as y their diagonal,"
                         f" got shape {shape}")
    return W


def _sum(V, W, same):
    """The weights of a sum of operators: a sum over the same points,
    otherwise blocks side by side."""
    parts = [P for P in (V, W) if isinstance(P, LowRank)]
    thin = _thin(V) and _thin(W)
    if not thin and [len(P.U) - len(P.V) for P in parts] != [0, 0]:
        V, W = np.asarray(V), np.asarray(W)
        return V + W if same else block_diag(V, W)
    U, V = ([P.U for P in parts], [P.V for P in parts])
    d = None if thin else [np.zeros(len(P.U)) if P.diagonal is None
                           else P.diagonal for P in parts]
    if same:
        return LowRank(np.hstack(U), np.hstack(V), d and sum(d))
    return LowRank(block_diag(*U), block_diag(*V), d and np.concatenate(d))


def _same_points(a, b):
    """Whether two lists of points are surely the same."""
    if a is b or type(a) is not type(b):
        return a is b
    if isinstance(a, Pairs):
        return (_same_points(a.first, b.first)
                and _same_points(a.second, b.second))
    if isinstance(a, np.ndarray):
        return (a.dtype == b.dtype and a.dtype.kind in "biufU"
                and np.array_equal(a, b))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same_points, a, b))
    return isinstance(a, (str, float, int)) and a == b


# %% [8] Fine print
def _exponent(array, axis=None):
    """The least e with |entries| < 2^e, very small for zeros."""
    top = np.abs(array).max(axis=axis)
    return np.where(top > 0, np.frexp(top)[1], -5000)


def _unit_weights(W):
    """e and 2^-e W, with entries of size one."""
    if isinstance(W, np.ndarray):
        e = _exponent(W)
        return e, np.ldexp(W, -e)
    u, v = _exponent(W.U, 0), _exponent(W.V, 0)
    e, d = (u + v).max(), W.diagonal
    if d is not None:
        e = max(e, _exponent(d))
        d = np.ldexp(d, -e)
    return e, LowRank(np.ldexp(W.U, -u), np.ldexp(W.V, u - e), d)


def _units(*operators):
    """Numbers e and operators U of size one with A = 2^e U; the kernels
    of all U are divided by the same c and d."""
    c = max(A.Phi.unit()[0] for A in operators)
    d = max(A.Psi.unit()[0] for A in operators)
    for A in operators:
        e, W = _unit_weights(A.weights)
        yield e + (math.log2(c) + math.log2(d)) / 2, RKHSOperator(
            1 / c * A.k, A.Phi, 1 / d * A.l, A.Psi, W)


@_free
def _grown(value, e):
    """The number 2^e · value, where 2 e is whole."""
    return check.finite(float(np.ldexp(value * 2 ** (e % 1), int(e // 1))),
                        "A")


# %% [9] Fine print
def _tiles(Phi, Psi, W):
    """Tiles of the matrix Φ*Ψ W, by their rows and columns."""
    if isinstance(W, np.ndarray):
        KW = _dot(Phi, W, Psi)
        return lambda i, j: KW[i, j]
    KU = _dot(Phi, W.U, Psi)
    return lambda i, j: (Phi.gram(Psi, i, j) * W.diagonal[j]
                         + KU[i] @ W.V[j].T)


def _trace(A, B):
    """The sum of all entries of (K' W') ∘ (W L')."""
    V, W = A.weights, B.weights
    if _thin(V):
        return np.sum(_dot(B.Phi, V.U, A.Phi)
                      * (W @ _dot(B.Psi, V.V, A.Psi)))
    if _thin(W):
        return _trace(B, A)
    left, right = _tiles(A.Phi, B.Phi, W), _tiles(B.Psi, A.Psi, V.T)

    def visit(total, i, j):
        total += np.sum(left(i, j) * right(j, i).T)

    return reduce_tiles(visit, lambda: np.zeros(()), len(A.Phi), len(B.Psi))


def _absolute(W):
    """Weights of at least the sizes |W_ij|."""
    if isinstance(W, np.ndarray):
        return np.abs(W)
    d = W.diagonal
    return LowRank(np.abs(W.U), np.abs(W.V), d if d is None else np.abs(d))


def _bound(A):
    """The number Σ |W_ij| ‖k_i‖ ‖l_j‖, which no norm of A exceeds."""
    t, s = np.sqrt(A.Phi.diag()), np.sqrt(A.Psi.diag())
    return float(t @ (_absolute(A.weights) @ s))


# %% [10] Fine print
def _factor(Phi, U=None):
    """A matrix F with U' K U = F F'; without U with K = F F'."""
    sizes = np.sqrt(Phi.diag())
    t = sizes if U is None else np.abs(U).T @ sizes
    t = np.where(t > 0, t, 1.0)
    S = (Phi.gram() / t[:, None] / t if U is None
         else (U / t).T @ Phi.dot(U / t))
    lam, V = eigh(S)
    top = max(lam[-1], 1.0)
    if lam[0] < -1e-8 * top:
        raise ValueError("A must have positive definite kernels, but a "
                         "Gram matrix has the scaled eigenvalue "
                         f"{lam[0]:.6g}")
    kept = lam > len(S) * np.finfo(float).eps * top
    # Equal rows of S give equal rows here, and cancel to the last digit.
    return t[:, None] * (S @ V[:, kept]) / np.sqrt(lam[kept])


def _square(Phi, b, values):
    """The squared norm b' Φ*Φ b, 0 if it is lost in rounding errors."""
    square = b @ values
    size = (np.abs(b) @ np.sqrt(Phi.diag())) ** 2
    # 1e-8 allows for kernels that are computed to eight digits.
    if square < -1e-8 * size:
        raise ValueError(f"{Phi.kernel_name} must be positive definite, "
                         "but a squared norm is negative")
    return square if square > 4 * np.finfo(float).eps * size else 0.0


# %% [11] Fine print
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


def _factors(A):
    """Matrices P and Q with A = (Φ P) (Ψ Q)*."""
    W = A.weights
    if _thin(W):
        return W.U, W.V
    R = _symmetric_root(W) if _same_points(A.X, A.Y) else None
    return (W, _diagonal(np.ones(len(A.Y)))) if R is None else (R, R)


def _solved(M, values, lam, symmetric):
    """The solution c of (M + lam) c = values."""
    M = check.finite(M, "A")
    M[np.diag_indices(len(M))] += lam
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", LinAlgWarning)
            return solve(M, check.finite(values, "f"),
                         assume_a="pos" if symmetric else "gen")
    except (LinAlgError, LinAlgWarning):
        raise ValueError(f"lam must be larger: A + {lam:g} I cannot be "
                         "inverted in floating point") from None


# %% [12] Fine print
@_free
def _vanish(W):
    """Whether all rows of W sum to zero, up to rounding."""
    one = np.ones(W.T.shape[0] if isinstance(W, np.ndarray) else len(W.V))
    sums, size = np.abs(W @ one).max(), (_absolute(W) @ one).max()
    return sums <= 4 * len(one) * np.finfo(float).eps * size < np.inf


def _moved(*operators):
    """The operators over features less fixed vectors, where the sums of
    their weights allow it (:prf:ref:`lem-operator-moved`)."""
    Phi, Psi = [A.Phi for A in operators], [A.Psi for A in operators]
    if all(_vanish(A.weights.T) for A in operators):
        Phi = moved(*Phi)
    if all(_vanish(A.weights) for A in operators):
        Psi = moved(*Psi)
    return [_operator(P, A.weights, Q)
            for A, P, Q in zip(operators, Phi, Psi)]


def is_constant(Phi: Features) -> bool:
    """Whether all points are the same, so that every covariance is zero
    (:prf:ref:`thm-empirical-covariance`)."""
    return all(np.array_equal(x, Phi.points[0]) for x in Phi.points)


def _reach(Phi, centred):
    """The root mean square of the norms of the features, or of their
    distances from the mean, and what rounding can add to it."""
    if centred and is_constant(Phi):
        return 0.0, 0.0
    d = Phi.diag()
    mean = Phi.dot(np.ones(len(d))).mean() / len(d) if centred else 0.0
    reach = math.sqrt(max(d.mean() - mean, 0.0))
    least = math.sqrt(np.finfo(float).eps * d.max())
    return reach, least**2 / max(reach, least) if least else 0.0


def _certain(value, A, e, many, name):
    """2^e times the norm of A, with a warning if rounding leaves it in
    doubt."""
    W, bound, error, size = A.weights, _bound(A), 0.0, 0.0
    if value**2 <= 1e-9 * bound**2:                    # much has cancelled
        total = float((_absolute(W) @ np.ones(len(A.Y))).sum())
        p, dp = _reach(A.Phi, _vanish(W.T))
        q, dq = _reach(A.Psi, _vanish(W))
        size, most = total * p * q, total * (p + dp) * (q + dq)
        if most > 0:
            n = max(len(A.X), len(A.Y))
            error = (most - size + n * np.finfo(float).eps * bound
                     + (3e-8 * most if many else 0.0))  # from a square
    return check.certain(_grown(value, e), _grown(error, e), name,
                         _grown(size, e))


# %% [13] Norms
def operator_core(A: RKHSOperator) -> np.ndarray:
    """The matrix F'WG with factors FF' of Φ*Φ and GG' of Ψ*Ψ, which has
    the singular values of A = Φ W Ψ* (:prf:ref:`thm-operator-core`).

    For weights UV' the factors are those of U'Φ*ΦU and V'Ψ*ΨV, and the
    matrix is F'G.

    Examples
    --------
    >>> from rkhs_lit.kernels import Linear
    >>> A = RKHSOperator(Linear(), [3.0], Linear(), [1.0], [[2.0]])
    >>> np.abs(operator_core(A))
    array([[6.]])
    """
    _expect(A, "A", RKHSOperator)
    W = A.weights
    if _thin(W):
        return _factor(A.Phi, W.U).T @ _factor(A.Psi, W.V)
    return _factor(A.Phi).T @ (W @ _factor(A.Psi))


# %% [14] Norms
DENSE = 1000


def hs_norm(A: RKHSOperator) -> float:
    """The Hilbert–Schmidt norm of an operator, the root of
    ``hs_inner(A, A)`` (:prf:ref:`thm-operator-calculus`).

    Where that sum cancels, and for up to a thousand points, by way of
    :prf:ref:`thm-operator-core`. With a `PrecisionWarning` where features
    far from zero leave no digit, although they were moved if possible
    (:prf:ref:`lem-operator-moved`).
    """
    _expect(A, "A", RKHSOperator)
    e, U = next(_units(*_moved(A)))
    square, bound = float(_trace(U, U)), _bound(U) ** 2
    if square < -1e-8 * bound:
        raise ValueError("A must have positive definite kernels, but its "
                         "squared norm is negative")
    many = max(len(A.X), len(A.Y)) > DENSE
    if square > 1e-9 * bound or many:
        value = math.sqrt(max(square, 0.0))
    else:
        value = float(np.linalg.norm(operator_core(U)))
    return _certain(value, U, e, many, "hs_norm(A)")


# %% [15] Many points
def lanczos(A: RKHSOperator, zero: float = 0.0,
            ) -> tuple[float, np.ndarray | None]:
    """The largest eigenvalue of A*A and an eigenfunction, by Lanczos'
    method (:prf:ref:`prop-lanczos`).

    Returns the eigenvalue and the weights b of an eigenfunction Ψb of
    norm one; 0 and None if A*A = 0. Ten steps without an eigenvalue above
    `zero` are enough to give up.
    """
    _expect(A, "A", RKHSOperator)
    zero = check.nonnegative(zero, "zero")
    Phi, W, Psi = A.Phi, A.weights, A.Psi
    b = np.random.default_rng(0).normal(size=len(Psi))
    Q, R, alpha, beta = [], [], [], []
    theta, last, s = 0.0, 1.0, None
    while len(Q) < len(Psi):
        values = Psi.dot(b)
        size = np.sqrt(_square(Psi, b, values))
        if size * last <= 1e-13 * max(theta, 0.0) or (
                len(Q) >= 10 and theta <= zero):
            break
        if Q:
            beta.append(size)
        Q.append(b / size)
        R.append(values / size)
        c = W @ R[-1]                              # the weights of A u
        values = Phi.dot(c)
        alpha.append(_square(Phi, c, values))
        b = W.T @ values                           # those of A* A u
        for _ in range(2):                         # twice is enough
            b = b - (np.array(R) @ b) @ np.array(Q)
        lam, S = eigh_tridiagonal(alpha, beta)
        theta, s, last = lam[-1], S[:, -1], abs(S[-1, -1])
    return (float(theta), s @ np.array(Q)) if theta > 0 else (0.0, None)


# %% [16] Many points
def op_norm(A: RKHSOperator) -> float:
    """The operator norm of an operator, its largest singular value
    (:prf:ref:`thm-operator-core`).

    Above a thousand points by Lanczos' method, which stores no Gram
    matrix. With a `PrecisionWarning` as in `hs_norm`.
    """
    _expect(A, "A", RKHSOperator)
    e, U = next(_units(*_moved(A)))
    many = max(len(A.X), len(A.Y)) > DENSE and not _thin(A.weights)
    if many:
        value = math.sqrt(lanczos(U)[0])
    else:
        core = operator_core(U)
        value = float(svdvals(core)[0]) if core.size else 0.0
    return _certain(value, U, e, many, "op_norm(A)")


# %% [17] From a sample
def cross_covariance(k: Kernel, l: Kernel, X, Y, *,
                     centred: bool = True) -> RKHSOperator:
    """The empirical cross-covariance operator C from H_l to H_k
    (:prf:ref:`thm-empirical-covariance`).

    Parameters
    ----------
    k, l : Kernel
    X, Y : sequences of n points
        The pairs (x_i, y_i).
    centred : bool
        Whether ⟨f, C g⟩ is the covariance of the values f(x_i) and
        g(y_i), or the mean of f(x_i) g(y_i).
    """
    Phi, Psi = paired(k, l, X, Y)
    mean = np.full(len(Phi), 1 / len(Phi))
    centred = check.flag(centred, "centred")
    return _operator(Phi, LowRank(-mean, mean, mean) if centred else mean,
                     Psi)


# %% [18] Dividing by an operator
@_free
def regularised_solve(A: RKHSOperator, f: RKHSFunction | RKHSOperator,
                      lam: float) -> RKHSFunction | RKHSOperator:
    """The solution (A + λI)⁻¹ f of (A + λI) h = f
    (:prf:ref:`thm-regularised-solve`).

    Parameters
    ----------
    A : RKHSOperator
        From H_k to itself; if it is positive, as a covariance operator
        is, every lam will do.
    f : RKHSFunction or RKHSOperator
        A function of H_k, or an operator into H_k.
    lam : float
        The number λ > 0.
    """
    _expect(A, "A", RKHSOperator)
    if not (A.k is A.l or A.k == A.l):
        raise ValueError("A must map a space to itself, got "
                         f"{A.l} -> {A.k}")
    lam = check.positive(lam, "lam")
    Phi, Psi, (P, Q) = A.Phi, A.Psi, _factors(A)  # A = (Φ P) (Ψ Q)*
    M = Q.T @ _dot(Psi, P, Phi)
    if isinstance(f, RKHSOperator):
        _one_space(A.k, f.k, "f")
        U, V = (f.weights.U, f.weights.V) if _thin(f.weights) else (
            np.asarray(f.weights), None)
        c = P @ _solved(M, Q.T @ _dot(Psi, U, f.Phi), lam, P is Q)
        W = c if V is None else LowRank(c, V)
        return (f - _operator(Phi, W, f.Psi)) / lam
    values = Psi.sample(as_function(f, "f", A.k))
    c = P @ _solved(M, Q.T @ values, lam, P is Q)
    Phi = f.features if _same_points(f.points, A.X) else Phi
    return (f - Phi @ c) / lam
