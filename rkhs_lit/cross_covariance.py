"""Cross-covariance: one operator for all covariances"""
# The exported cells of book/cross_covariance.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 6b967a893ab49d60

# %% [1] Cross-covariance: one operator for all covariances
import functools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.linalg import (LinAlgError, LinAlgWarning, block_diag, eigh,
                          eigh_tridiagonal, matrix_balance, solve, svdvals)

import rkhs_lit.conventions as check
from rkhs_lit.kernels import Kernel, Pairs, reduce_tiles
from rkhs_lit.mean_embedding import moved, squared_norm
from rkhs_lit.moore_aronszajn import (Features, RKHSFunction, as_function,
                                      paired)

# %% [2] The type `RKHSOperator`
_free = np.errstate(over="ignore", invalid="ignore")    # checked later


@dataclass(frozen=True, eq=False, repr=False)
class LowRank(check.Record, check.Vectors):
    """The matrix W = diag(d) + U V', kept as its parts; only a square one
    can have a diagonal d (:prf:ref:`lem-centring-matrix`).

    It has ``W @ B``, ``B @ W``, ``c * W``, ``W / c`` and ``W.T``;
    ``np.asarray(W)`` writes it out."""

    U: np.ndarray
    V: np.ndarray
    diagonal: np.ndarray | None = None

    def __post_init__(self):
        U, V = check.as_points(self.U, "U"), check.as_points(self.V, "V")
        d = self.diagonal
        if U.shape[1] != V.shape[1]:
            raise ValueError("V must have as many columns as U, got shapes "
                             f"{U.shape} and {V.shape}")
        if d is not None and len(U) != len(V):
            raise ValueError("diagonal must be None for a matrix that is "
                             f"not square, {len(U)} × {len(V)}")
        d = d if d is None else check.vector(d, "diagonal", len(U))
        vars(self).update(U=check.frozen(U), V=check.frozen(V), diagonal=d,
                          shape=(len(U), len(V)))

    def __repr__(self):
        return f"LowRank(shape={self.shape})"

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

    @_free
    def __mul__(self, c):
        c, d = _number(c), self.diagonal
        return LowRank(c * self.U, self.V, d if d is None else c * d)

    def __truediv__(self, c):
        return self * (1 / _number(c, zero=False))

    def __abs__(self):          # at least |W_ij|, which needs all entries
        d = self.diagonal
        return LowRank(abs(self.U), abs(self.V), d if d is None else abs(d))

    def __array__(self, dtype=None, copy=None):
        d = self.diagonal
        return self.U @ self.V.T + (0 if d is None else np.diag(d))

# %% [3] The type `RKHSOperator`
@dataclass(frozen=True, eq=False, repr=False)
class RKHSOperator(check.Record, check.Vectors):
    """The operator A = Φ W Ψ* = Σ W_ij k(x_i, ·) ⊗ l(y_j, ·) from H_l to
    H_k (:prf:ref:`thm-operator-calculus`).

    The weights are an array, a `LowRank`, or one-dimensional, for a
    diagonal. Operators can be added and multiplied by numbers; ``A @ B``
    is the composition.

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
        W, n, m = self.weights, Phi.n, Psi.n
        if not isinstance(W, LowRank):
            W = check.frozen(check.real_array(W, "weights"))
        if W.shape == (n,) == (m,):
            W = LowRank(0 * W, 0 * W, W)
        if W.shape != (n, m):
            raise ValueError(f"weights must be {n} × {m}, or for n = m "
                             f"their diagonal, got shape {W.shape}")
        vars(self).update(X=Phi.points, Y=Psi.points, Phi=Phi, Psi=Psi,
                          weights=W)

    def __repr__(self):
        return (f"RKHSOperator({self.l} -> {self.k}, n={self.Phi.n}, "
                f"m={self.Psi.n})")

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
        _as_operator(other, "B", k=self.l)
        V, W = self.weights, other.weights
        if _thin(V) and not _thin(W):
            return (other.adjoint() @ self.adjoint()).adjoint()
        VLW = _left(lambda U: V @ _dot(self.Psi, U, other.Phi), W)
        return _operator(self.Phi, VLW, other.Psi)

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
        _as_operator(other, "B", self.k, self.l)
        same = _same((self.X, self.Y), (other.X, other.Y))
        W = _sum(self.weights, other.weights, same)
        if same:
            return _operator(self.Phi, W, self.Psi)
        return _operator(self.Phi.joined(other.Phi), W,
                         self.Psi.joined(other.Psi))

    @_free
    def __mul__(self, c):
        return _operator(self.Phi, _number(c) * self.weights, self.Psi)

    def __truediv__(self, c):
        return self * (1 / _number(c, zero=False))


def _operator(Phi, W, Psi):
    """The operator Φ W Ψ*."""
    return RKHSOperator(Phi.kernel, Phi, Psi.kernel, Psi, W)


def tensor(f: RKHSFunction, g: RKHSFunction) -> RKHSOperator:
    """The rank-one operator f ⊗ g from H_l to H_k, which maps h to
    ⟨g, h⟩ f, for f in H_k and g in H_l (:prf:ref:`prop-rank-one`)."""
    Phi, Psi = as_function(f, "f").features, as_function(g, "g").features
    return _operator(Phi, LowRank(f.weights, g.weights), Psi)

# %% [4] The type `RKHSOperator`
def hs_inner(A: RKHSOperator, B: RKHSOperator) -> float:
    """The Hilbert–Schmidt inner product of two operators between the same
    spaces (:prf:ref:`thm-operator-calculus`), a tile at a time."""
    _as_operator(B, "B", _as_operator(A).k, A.l)
    (a, U), (b, V) = _units(A, B)
    return check.finite(a * float(b * _trace(U, V)), "A")

# %% [5] Fine print
def _as_operator(A, name="A", k=None, l=None):
    """The operator itself, if it is one, from H_l to H_k."""
    if not isinstance(A, RKHSOperator):
        raise ValueError(f"{name} must be an RKHSOperator, got "
                         f"{type(A).__name__}")
    for wanted, kernel in ((k, A.k), (l, A.l)):
        if not (wanted is None or kernel is wanted or kernel == wanted):
            raise ValueError(f"{name} must have the kernel {wanted} where "
                             f"it meets A, got {kernel}")
    return A


def _number(c, zero=True):
    if not isinstance(c, Real):
        raise TypeError(f"not a number, but of type {type(c).__name__}")
    if not zero and c == 0:
        raise ValueError("the divisor must not be 0")
    return check.number(c, "the factor")


def _same(a, b):
    """Whether two lists of points are surely the same."""
    if a is b or type(a) is not type(b):
        return a is b
    if isinstance(a, Pairs):
        return _same((a.first, a.second), (b.first, b.second))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype != object and np.array_equal(a, b)
    return isinstance(a, (str, float, int)) and a == b

# %% [6] Fine print
def _thin(W):
    """Whether W = U V' without a diagonal."""
    return isinstance(W, LowRank) and W.diagonal is None


def _sum(V, W, same):
    """The weights of a sum, over other points blocks side by side."""
    thin, d = _thin(V) and _thin(W), None
    if not (thin or all(isinstance(P, LowRank)
                        and len(P.U) == len(P.V) for P in (V, W))):
        V, W = np.asarray(V), np.asarray(W)
        return V + W if same else block_diag(V, W)
    if not thin:
        d = [np.zeros(len(P.U)) if P.diagonal is None else P.diagonal
             for P in (V, W)]
        d = sum(d) if same else np.concatenate(d)
    U, V = (np.hstack(parts) if same else block_diag(*parts)
            for parts in ((V.U, W.U), (V.V, W.V)))
    return LowRank(U, V, d)


def _left(apply, W):
    """What a product from the left makes of W, or of U in W = U V'."""
    return LowRank(apply(W.U), W.V) if _thin(W) else apply(W)


def _dot(Phi, W, Psi):
    """The matrix Φ*Ψ W, with half the work for Ψ = Φ."""
    if isinstance(W, LowRank):
        return Phi.gram(Psi) @ W
    return Phi.dot(W, None if Phi.points is Psi.points else Psi)

# %% [7] Fine print
def _trace(A, B):
    """The sum of all entries of (K' W') ∘ (W L')."""
    V, W = A.weights, B.weights
    if _thin(V):
        return np.sum(_dot(B.Phi, V.U, A.Phi)
                      * (W @ _dot(B.Psi, V.V, A.Psi)))
    if _thin(W):
        return _trace(B, A)
    if not (isinstance(V, LowRank) and isinstance(W, LowRank)):
        return np.sum(_dot(A.Phi, W, B.Phi) * _dot(B.Psi, V.T, A.Psi).T)
    KU, LV = _dot(A.Phi, W.U, B.Phi), _dot(B.Psi, V.V, A.Psi)
    return reduce_tiles(functools.partial(_visit, A, B, KU, LV),
                        functools.partial(np.zeros, ()), A.Phi.n, B.Psi.n)


def _visit(A, B, KU, LV, total, i, j):
    V, W = A.weights, B.weights
    left = A.Phi.gram(B.Phi, i, j) * W.diagonal[j] + KU[i] @ W.V[j].T
    right = (V.diagonal[i, None] * A.Psi.gram(B.Psi, i, j)
             + V.U[i] @ LV[j].T)
    total += np.sum(left * right)

# %% [8] Fine print
def _factor(Phi, U=None):
    """A matrix F with U' K U = F F'; without U with K = F F'."""
    t = np.sqrt(Phi.diag())
    t = t if U is None else np.abs(U).T @ t
    t = np.where(t > 0, t, 1.0)
    S = (Phi.gram() / t[:, None] / t if U is None
         else (U / t).T @ Phi.dot(U / t))
    lam, V = eigh(S)
    top = max(lam[-1], 1.0)
    squared_norm(lam, top, Phi.kernel_name)
    kept = lam > len(S) * np.finfo(float).eps * top
    # Equal rows of S give equal rows here, and cancel to the last digit.
    return t[:, None] * (S @ V[:, kept]) / np.sqrt(lam[kept])


def _square(Phi, b, values):
    """The squared norm b' Φ*Φ b, 0 if it is lost in rounding errors."""
    size = (np.abs(b) @ np.sqrt(Phi.diag())) ** 2
    square = squared_norm(b @ values, size, Phi.kernel_name)
    return square if square > 4 * np.finfo(float).eps * size else 0.0

# %% [9] Fine print
def _solved(A, M, values, lam):
    """The solution c of (M + lam) c = values, for the operator A."""
    try:
        if lam <= np.finfo(float).eps * _bound(A):
            raise LinAlgError              # rounding alone is larger
        # M = T B T⁻¹, where B has rows as large as its columns.
        B, (t, _) = matrix_balance(check.finite(M, "A"), permute=False,
                                   separate=True)
        B[np.diag_indices(len(B))] += lam
        values = (check.finite(values, "f").T / t).T
        with warnings.catch_warnings():
            warnings.simplefilter("error", LinAlgWarning)
            return (t * solve(B, values).T).T
    except (LinAlgError, LinAlgWarning):
        raise ValueError(f"lam must be larger: A + {lam:g} I cannot be "
                         "inverted in floating point") from None

# %% [10] Fine print
@_free
def _vanish(W):
    """Whether all rows of W sum to zero, up to rounding."""
    one = np.ones(W.shape[1])
    sums, size = np.abs(W @ one).max(), (abs(W) @ one).max()
    return sums <= 4 * len(one) * np.finfo(float).eps * size < np.inf


@_free
def _bound(A):
    """The number Σ |W_ij| ‖k_i‖ ‖l_j‖, which no norm of A exceeds."""
    t, s = np.sqrt(A.Phi.diag()), np.sqrt(A.Psi.diag())
    return float(check.finite(t @ (abs(A.weights) @ s), "A"))


def _balanced(W):
    """The matrix W, where U and V are of one size, column by column."""
    if isinstance(W, np.ndarray):
        return W
    u, v = (np.frexp(abs(part).max(axis=0))[1] for part in (W.U, W.V))
    e = (v - u) // 2
    return LowRank(np.ldexp(W.U, e), np.ldexp(W.V, -e), W.diagonal)


def _units(*operators):
    """Numbers s and operators U of size one: s U has the norms of A."""
    Phi, Psi = [A.Phi for A in operators], [A.Psi for A in operators]
    if all(_vanish(A.weights.T) for A in operators):
        Phi = moved(*Phi)
    if all(_vanish(A.weights) for A in operators):
        Psi = moved(*Psi)
    for A, P, Q in zip(operators, Phi, Psi):
        bound = _bound(_operator(P, A.weights, Q))
        s = 2.0 ** (math.frexp(bound)[1] - 1)     # so no digit changes
        yield s, _operator(P, _balanced(A.weights / s), Q)

# %% [11] Fine print
def is_constant(Phi: Features) -> bool:
    """Whether all points are the same, so that every covariance is zero
    (:prf:ref:`thm-empirical-covariance`)."""
    if not isinstance(Phi, Features):
        raise ValueError(f"Phi must be Features, got {type(Phi).__name__}")
    return all(np.array_equal(x, Phi.points[0]) for x in Phi.points)


def _reach(Phi, centred):
    """The root mean square of ‖k_i‖, or of ‖k_i - μ‖, and its error."""
    if centred and is_constant(Phi):
        return 0.0, 0.0
    d = Phi.diag()
    mean = Phi.dot(np.ones(Phi.n)).mean() / Phi.n if centred else 0.0
    reach = math.sqrt(max(d.mean() - mean, 0.0))
    least = math.sqrt(np.finfo(float).eps * d.max())
    return reach, least**2 / max(reach, least) if least else 0.0


def _certain(value, s, U, many, name):
    """s times the norm of U, with a warning where that is in doubt."""
    W, bound, error, size = U.weights, _bound(U), 0.0, 0.0
    if value**2 <= 1e-9 * bound**2:                    # much has cancelled
        total = float((abs(W) @ np.ones(U.Psi.n)).sum())
        p, dp = _reach(U.Phi, _vanish(W.T))
        q, dq = _reach(U.Psi, _vanish(W))
        size, most = total * p * q, total * (p + dp) * (q + dq)
        if most > 0:
            error = most - size + (3e-8 * most if many else 0.0)
            error += max(W.shape) * np.finfo(float).eps * bound
    return check.certain(s * value, s * error, name, s * size)

# %% [12] Norms
def operator_core(A: RKHSOperator) -> np.ndarray:
    """The matrix F'WG with FF' = Φ*Φ and GG' = Ψ*Ψ, which has the singular
    values of A = Φ W Ψ* (:prf:ref:`thm-operator-core`); for weights UV'
    the matrix F'G with FF' = U'Φ*ΦU and GG' = V'Ψ*ΨV."""
    W = _as_operator(A).weights
    if _thin(W):
        return _factor(A.Phi, W.U).T @ _factor(A.Psi, W.V)
    return _factor(A.Phi).T @ (W @ _factor(A.Psi))

# %% [13] Norms
DENSE = 1000


def hs_norm(A: RKHSOperator) -> float:
    """The Hilbert–Schmidt norm of an operator, the root of
    ``hs_inner(A, A)`` (:prf:ref:`thm-operator-calculus`), where that sum
    cancels by way of :prf:ref:`thm-operator-core`. A `PrecisionWarning`
    says that features far from zero, although moved if possible
    (:prf:ref:`lem-operator-moved`), leave no digit."""
    (s, U), = _units(_as_operator(A))
    bound, many = _bound(U) ** 2, max(A.Phi.n, A.Psi.n) > DENSE
    square = squared_norm(float(_trace(U, U)), bound, "the kernels of A")
    value = (math.sqrt(square) if square > 1e-9 * bound or many
             else float(np.linalg.norm(operator_core(U))))
    return _certain(value, s, U, many, "hs_norm(A)")

# %% [14] Many points
def lanczos(A: RKHSOperator, zero: float = 0.0,
            ) -> tuple[float, np.ndarray | None]:
    """The largest eigenvalue of A*A and the weights b of an eigenfunction
    Ψb of norm one, by Lanczos' method (:prf:ref:`prop-lanczos`); 0 and None
    if A*A = 0. Ten steps without one above `zero` are enough to give up."""
    Phi, W, Psi = _as_operator(A).Phi, A.weights, A.Psi
    zero = check.nonnegative(zero, "zero")
    b = np.random.default_rng(0).normal(size=Psi.n)
    Q, R, alpha, beta = [], [], [], []
    theta, last, s = 0.0, 1.0, None
    while len(Q) < Psi.n:
        values = Psi.dot(b)
        size = np.sqrt(_square(Psi, b, values))
        if size * last <= 1e-13 * max(theta, 0.0) or (
                len(Q) >= 10 and theta <= zero):
            break
        beta.append(size)
        Q.append(b / size)
        R.append(values / size)
        c = W @ R[-1]                              # the weights of A u
        values = Phi.dot(c)
        alpha.append(_square(Phi, c, values))
        b = W.T @ values                           # those of A* A u
        for _ in range(2):                         # twice is enough
            b = b - (np.array(R) @ b) @ np.array(Q)
        lam, S = eigh_tridiagonal(alpha, beta[1:])
        theta, s, last = lam[-1], S[:, -1], abs(S[-1, -1])
    return (float(theta), s @ np.array(Q)) if theta > 0 else (0.0, None)


def op_norm(A: RKHSOperator) -> float:
    """The operator norm, the largest singular value of an operator
    (:prf:ref:`thm-operator-core`), above a thousand points by Lanczos'
    method. With a `PrecisionWarning` as in `hs_norm`."""
    (s, U), = _units(_as_operator(A))
    many = max(A.Phi.n, A.Psi.n) > DENSE and not _thin(A.weights)
    if many:
        value = math.sqrt(lanczos(U)[0])      # of ‖A*A‖
    else:
        core = operator_core(U)
        value = float(svdvals(core)[0]) if core.size else 0.0
    return _certain(value, s, U, many, "op_norm(A)")

# %% [15] From a sample
def cross_covariance(k: Kernel, l: Kernel, X, Y, *,
                     centred: bool = True) -> RKHSOperator:
    """The empirical cross-covariance operator C from H_l to H_k of pairs
    (x_i, y_i): ⟨f, C g⟩ is the covariance of the values f(x_i) and g(y_i),
    or for ``centred=False`` the mean of f(x_i) g(y_i)
    (:prf:ref:`thm-empirical-covariance`)."""
    Phi, Psi = paired(k, l, X, Y)
    mean = np.full(Phi.n, 1 / Phi.n)
    centred = check.flag(centred, "centred")
    return _operator(Phi, LowRank(-mean, mean, mean) if centred else mean,
                     Psi)

# %% [16] Dividing by an operator
@_free
def regularised_solve(A: RKHSOperator, f: RKHSFunction | RKHSOperator,
                      lam: float) -> RKHSFunction | RKHSOperator:
    """The solution h of (A + λI) h = f, for an operator A on H_k and a
    function f of H_k or an operator f into it
    (:prf:ref:`thm-regularised-solve`). If A is positive, every λ > 0 will
    do that is larger than rounding errors."""
    _as_operator(A, "A", l=_as_operator(A).k)
    Phi, W, Psi = A.Phi, A.weights, A.Psi
    lam = check.positive(lam, "lam")
    if _thin(W):
        P, Q = W.U, W.V
    else:                                # Q = H where W 1 = 0, otherwise I
        one = np.ones(Psi.n)
        mean = one / Psi.n if _vanish(W) else 0 * one
        P, Q = W, LowRank(-mean, one, one)
    M = Q.T @ _dot(Psi, P, Phi)

    def quotient(U, Theta):              # the weights of A (A + λI)⁻¹ ΘU
        return P @ _solved(A, M, Q.T @ _dot(Psi, U, Theta), lam)

    if isinstance(f, RKHSOperator):
        _as_operator(f, "f", k=A.k)
        c = _left(lambda U: quotient(U, f.Phi), f.weights)
        return (f - _operator(Phi, c, f.Psi)) / lam
    c = quotient(as_function(f, "f", A.k).weights, f.features)
    return (f - (f.features if _same(f.points, A.X) else Phi) @ c) / lam
