"""HSIC: one number for dependence

The exported cells of the chapter ``book/hsic.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 81dc67f121f08c9e

# %% [1] HSIC: one number for dependence
import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational

import numpy as np
from scipy.linalg import eigh
from scipy.special import gammaincc

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points, as_sequence
from rkhs_lit.cross_covariance import is_constant
from rkhs_lit.kernels import TILE, Gaussian, Kernel, reduce_tiles
from rkhs_lit.low_rank import NystromFeatures, pivoted_cholesky
from rkhs_lit.mean_embedding import (GaussianEmbedding, embedding_distance,
                                     moved, squared_norm)
from rkhs_lit.mmd import PermutationTest, permutation_pvalue
from rkhs_lit.moore_aronszajn import Features, paired
from rkhs_lit.pca import centre


# %% [2] The biased estimate
@np.errstate(over="ignore", invalid="ignore")
def hsic_biased(K, L) -> float | Fraction:
    """The estimate tr(K H L H) / n² of HSIC from two Gram matrices, not
    negative (:prf:ref:`thm-hsic-biased`).

    Two arrays of Python integers or fractions (``dtype=object``) are
    treated exactly, and the result is a Fraction.

    >>> hsic_biased(np.eye(2), np.eye(2))
    0.25
    """
    K, L, tops = _gram_pair(K, L)
    n, K1, L1 = len(K), K.sum(axis=1), L.sum(axis=1)
    S, T, U = np.vdot(K, L), K1 @ L1, K1.sum() * L1.sum()
    value = (S - 2 * T / n + U / n**2) / n**2
    return _estimate(value, K, L, tops, square=True)


# %% [3] Unbiased, by counting
@np.errstate(over="ignore", invalid="ignore")
def hsic_unbiased(K, L) -> float | Fraction:
    """Unbiased estimate of HSIC from two Gram matrices as in `hsic_biased`,
    n >= 4: the average over all tuples of distinct indices, in O(n²)
    (:prf:ref:`thm-hsic-unbiased`).

    Often negative for independent variables, because its mean is then 0.
    The diagonals of K and L are not used.

    >>> K = np.eye(4, dtype=int)[[1, 0, 3, 2]].astype(object)
    >>> hsic_unbiased(K, K)
    Fraction(2, 3)
    """
    K, L, tops = _gram_pair(K, L, at_least=4)
    n, K0, L0 = len(K), *(M - np.diag(M.diagonal()) for M in (K, L))
    K1, L1 = K0.sum(axis=1), L0.sum(axis=1)
    S, T, U = np.vdot(K0, L0), K1 @ L1, K1.sum() * L1.sum()
    value = (S - 2 * T / (n - 2) + U / ((n - 1) * (n - 2))) / (n * (n - 3))
    return _estimate(value, K, L, tops)


# %% [4] Fine print
FEW = slice(32)


def _gram_pair(K, L, at_least=1):
    """Two Gram matrices, less a constant each, and their largest entries;
    fractions stay as they are."""
    exact = all(isinstance(M, np.ndarray) and M.dtype == object and M.size
                and all(isinstance(v, Rational) for v in M.flat)
                for M in (K, L))
    pair = [np.vectorize(Fraction, otypes=[object])(M) if exact
            else check.real_array(M, name, 2)
            for M, name in ((K, "K"), (L, "L"))]
    tops = [np.abs(M).max() for M in pair]
    for M, top, name in zip(pair, tops, "KL"):
        if M.shape != M.T.shape or np.any(
                abs(M - M.T) > (0 if exact else 1e-8 * top)):
            raise ValueError(f"{name} must be square and symmetric, as a "
                             f"Gram matrix is, got shape {M.shape}")
        if M.shape != pair[0].shape or len(M) < at_least:
            raise ValueError(f"{name} must belong to the same points as K, "
                             f"at least {at_least}, got shape {M.shape}")
    K, L = (M if exact else M - np.median(M[FEW, FEW]) for M in pair)
    return K, L, tops


# %% [5] Fine print
ROUNDING = 16 * np.finfo(float).eps


def _estimate(value, K, L, tops, *, square=False):
    """The value, with a warning if rounding leaves it in doubt."""
    if isinstance(value, Fraction):
        return squared_norm(value, 0, "K and L") if square else value
    p, q = (abs(M.trace() / len(M) - M.mean()) for M in (K, L))
    r, s = (np.abs(M.mean(axis=1)).max() for M in (K, L))
    scale = tops[0] * q + tops[1] * p + r * s
    if not (K.any() and L.any()):
        scale = 0.0                                   # a constant matrix
    if square:
        value = squared_norm(value, scale, "K and L")
    return check.certain(float(value), ROUNDING * scale,
                         "HSIC of K and L", p * q)


# %% [6] Fine print
def _whitened(X):
    """Points with mean zero and covariance I; the maps of directions
    back to those of X and forth."""
    if X.shape[1] < 2 or len(X) <= X.shape[1]:
        raise ValueError("X must have at least two columns and more rows "
                         f"than columns, got shape {X.shape}")
    Z = X - X.mean(axis=0)
    size = np.abs(Z).max(axis=0)
    lost = size <= 1e-13 * np.abs(X).max(axis=0)   # rounding of the mean
    Z = Z / np.where(lost, 1.0, size)
    lam, V = eigh(Z.T @ Z / len(Z))
    if lost.any() or lam[0] <= 1e-13 * lam[-1]:
        raise ValueError("X must have an invertible covariance matrix")
    root = np.sqrt(lam)
    return Z @ (V / root), (V / root).T / size, size[:, None] * (V * root)


def _directions(start, forth):
    """The rows of start as unit vectors for whitened points."""
    A = check.real_array(start, "start", ndim=2)
    if A.shape != (2, len(forth)):
        raise ValueError(f"start must have shape (2, {len(forth)}), got "
                         f"{A.shape}")
    with np.errstate(all="ignore"):
        W = A @ forth
        W = W / np.linalg.norm(W, axis=1, keepdims=True)
    if not np.isfinite(W).all() or np.linalg.matrix_rank(W, 1e-8) < 2:
        raise ValueError("start must have two rows that are not parallel")
    return W


# %% [7] Normal variables: a closed form
def hsic_gaussian(k: Gaussian, l: Gaussian, covariance, *,
                  split: int = 1) -> float:
    """HSIC of a normal vector (X, Y) for Gaussian kernels, in closed
    form (:prf:ref:`prop-hsic-gaussian`).

    Parameters
    ----------
    k, l : Gaussian
    covariance : (d, d) array
        Of the vector that has the coordinates of X first.
    split : int
        The number of coordinates of X.

    Examples
    --------
    >>> S = [[1.0, 0.5], [0.5, 1.0]]
    >>> round(hsic_gaussian(Gaussian(1.0), Gaussian(1.0), S), 6)
    0.010763
    """
    for name, kernel in (("k", k), ("l", l)):
        if not isinstance(kernel, Gaussian):
            raise ValueError(f"{name} must be Gaussian, got {kernel}")
    zero = np.zeros(len(as_points(covariance, "covariance")))
    unit = Gaussian(1.0)
    S = GaussianEmbedding(unit, zero, covariance).covariance     # checked
    if check.whole(split, "split", 1) >= len(S):
        raise ValueError("split must leave a coordinate for Y: less than "
                         f"{len(S)}, got {split}")
    first = np.arange(len(S)) < split
    widths = np.where(first, k.sigma, l.sigma)
    with np.errstate(over="ignore"):
        S = S / widths / widths[:, None]
    apart = np.where(first == first[:, None], S, 0.0)
    return embedding_distance(GaussianEmbedding(unit, zero, S),
                              GaussianEmbedding(unit, zero, apart)) ** 2


# %% [8] As many pairs as you like
def tile_sums(Phi: Features, Psi: Features, *,
              less: tuple[float, float] = (0.0, 0.0)) -> tuple:
    """All that HSIC needs of K = Φ*Φ - c and of L = Ψ*Ψ - d
    (:prf:ref:`thm-hsic-unbiased`): for each its diagonal, its row sums and
    the sum of its squares, and the sum of K∘L; in tiles if n is large.

    HSIC does not see the constants c and d in `less`, but without what all
    entries have in common the sums keep more digits.

    >>> from rkhs_lit.kernels import Linear
    >>> Phi, Psi = paired(Linear(), Linear(), [1.0, 2.0], [1.0, -1.0])
    >>> (diagonal, K1, squares), _, S = tile_sums(Phi, Psi)
    >>> diagonal, K1, squares, S
    (array([1., 4.]), array([3., 6.]), 25.0, 1.0)
    """
    if not (isinstance(Phi, Features) and isinstance(Psi, Features)
            and Phi.n == Psi.n):
        raise ValueError("Phi and Psi must be Features of as many points")
    n, (c, d) = Phi.n, less
    if n <= TILE:
        K, L = Phi.gram() - c, Psi.gram() - d
        sums = [(M.diagonal().copy(), M.sum(axis=1), float(np.vdot(M, M)))
                for M in (K, L)]
        return *sums, float(np.vdot(K, L))

    def visit(total, i, j):
        K, L = Phi.gram(None, i, j) - c, Psi.gram(None, i, j) - d
        total[:2, i] += K.sum(axis=1), L.sum(axis=1)
        if i != j:
            total[:2, j] += K.sum(axis=0), L.sum(axis=0)
        for row, (M, N) in enumerate(((K, K), (L, L), (K, L)), 2):
            total[row, i] += (1 + (i != j)) * np.einsum("ij,ij->i", M, N)

    K1, L1, *squares = reduce_tiles(visit, lambda: np.zeros((5, n)), n)
    KK, LL, S = (float(row.sum()) for row in squares)
    return (Phi.diag() - c, K1, KK), (Psi.diag() - d, L1, LL), S


@np.errstate(over="ignore", invalid="ignore")
def hsic(k: Kernel, l: Kernel, X, Y, *, unbiased: bool = True) -> float:
    """HSIC estimated from pairs of points, in tiles: `hsic_unbiased` or
    `hsic_biased` of two Gram matrices that are never stored
    (:prf:ref:`thm-hsic-unbiased`, :prf:ref:`thm-hsic-biased`).

    Parameters
    ----------
    k, l : Kernel
    X, Y : sequences of n points
        The pairs (x_i, y_i).
    unbiased : bool
        Whether to average over distinct indices only, for n >= 4.

    Examples
    --------
    >>> from rkhs_lit.kernels import Linear
    >>> x = [0.0, 1.0, 2.0, 3.0, 4.0]
    >>> hsic(Linear(), Linear(), x, x, unbiased=False)    # variance²
    4.0
    """
    least = 4 if check.flag(unbiased, "unbiased") else 1
    Phi, Psi = (moved(F)[0] for F in paired(k, l, X, Y, least))
    c, d = (np.median(F.gram(None, FEW, FEW)) for F in (Phi, Psi))
    (a, K1, _), (b, L1, _), S = tile_sums(Phi, Psi, less=(c, d))
    n = Phi.n                          # p = tr(HKH) / n, q = tr(HLH) / n
    p, q = a.mean() - K1.mean() / n, b.mean() - L1.mean() / n
    top, low = (squared_norm(D, 0, "k and l").max() for D in (a + c, b + d))
    scale = (top * abs(q) + low * abs(p)
             + np.abs(K1).max() * np.abs(L1).max() / n**2)

    if unbiased:                       # without the diagonals
        K1, L1, S = K1 - a, L1 - b, S - a @ b
        T, U = K1 @ L1, K1.sum() * L1.sum()
        value = (S - 2 * T / (n-2) + U / ((n-1) * (n-2))) / (n * (n-3))
    else:
        T, U = K1 @ L1, K1.sum() * L1.sum()
        value = (S - 2 * T / n + U / n**2) / n**2
        value = squared_norm(value, scale, "k and l")
    if abs(value) <= ROUNDING * scale and (is_constant(Phi)
                                           or is_constant(Psi)):
        return 0.0
    return check.certain(float(value), ROUNDING * scale,
                         "HSIC for k and l", abs(p * q))


# %% [9] A million pairs
@dataclass(frozen=True)
class BoundedHSIC(check.Record):
    """An estimate of HSIC from low-rank factors, with a bound of the
    difference to the exact one (:prf:ref:`thm-hsic-low-rank`).

    Attributes
    ----------
    value, error : float
        `hsic` of the same pairs is in value ± error.
    ranks : (int, int)
        The numbers of columns of F and G.
    """

    value: float
    error: float
    ranks: tuple[int, int]


def _landmarks(Phi, tol, max_rank):
    """A map of Nyström features that misses at most tol tr K, unless
    max_rank is too small for that, and the trace ρ of what it misses."""
    d, some, share = Phi.diag(), 4096, tol
    rows = np.linspace(0, Phi.n - 1, min(Phi.n, some)).astype(int)
    for _ in range(8):
        F, P = pivoted_cholesky(Phi.kernel, Phi[rows], tol=share / 2,
                                max_rank=max_rank, return_pivots=True)
        phi = NystromFeatures(Phi.kernel, Phi[rows[P]], F[P])
        missed = d - np.concatenate([
            np.sum(phi(Phi[i:i + some]) ** 2, axis=1)
            for i in range(0, Phi.n, some)])
        rho = max(float(missed.sum()), 0.0) + 1e-12 * float(d.sum())
        if rho <= tol * d.sum() or len(P) == max_rank:
            break
        worst = np.argsort(missed)[-some:]
        rows = np.union1d(rows[P], worst)      # may miss what is left over
        left = tol * d.sum() - rho + missed[worst].sum()
        share = min(max(tol, left / d[rows].sum()), 0.1)
    return phi, rho


def _u_form(C, m, m_, n):
    """⟨PK, PL⟩ for K = FF' and L = GG' without their diagonals."""
    p, p_ = np.append(m[:-1], -1.0), np.append(m_[:-1], -1.0)
    S = np.sum(C[:-1, :-1] ** 2) - C[-1, -1]
    T, U = p @ C @ p_, (p @ m) * (p_ @ m_)
    return float(S - 2 * T / (n - 2) + U / ((n - 1) * (n - 2)))


# %% [10] A million pairs
def hsic_low_rank(k: Kernel, l: Kernel, X, Y, *, tol: float = 1e-6,
                  max_rank: int = 500) -> BoundedHSIC:
    """The unbiased estimate of HSIC from low-rank factors, with a bound
    of its error, in O(n r²) operations (:prf:ref:`thm-hsic-low-rank`).

    Parameters
    ----------
    k, l : Kernel
    X, Y : sequences of n >= 4 points
        The pairs (x_i, y_i).
    tol : float
        The share of the traces of K and L that the factors may miss.
    max_rank : int
        At most so many columns, whatever they miss: see the bound.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 1000)
    >>> found = hsic_low_rank(Gaussian(1.0), Gaussian(1.0), x, x**2)
    >>> exact = hsic(Gaussian(1.0), Gaussian(1.0), x, x**2)
    >>> abs(found.value - exact) <= found.error < 1e-6
    True
    """
    Phi, Psi = (moved(F)[0] for F in paired(k, l, X, Y, 4))
    tol = check.number(tol, "tol", "between 1e-11 and 1", 1e-11, 1.0)
    max_rank, n = check.whole(max_rank, "max_rank", 1), Phi.n
    if not (Phi.diag().any() and Psi.diag().any()):     # a kernel that is 0
        return BoundedHSIC(0.0, 0.0, (0, 0))
    (phi, rho), (psi, rho_) = (_landmarks(M, tol, max_rank)
                               for M in (Phi, Psi))
    f, g = (features(M[:4096]).mean(axis=0)
            for features, M in ((phi, Phi), (psi, Psi)))
    total = 0.0
    for i in range(0, n, 4096):
        F, G = phi(Phi[i:i + 4096]) - f, psi(Psi[i:i + 4096]) - g
        Z = np.column_stack([F, np.sum(F**2, axis=1), G,
                             np.sum(G**2, axis=1), np.ones(len(F))])
        total = total + Z.T @ Z
    r = len(f) + 1
    A, B = slice(0, r), slice(r, -1)
    m, m_ = total[A, -1], total[B, -1]
    KL, KK, LL = (_u_form(total[a, b], total[a, -1], total[b, -1], n)
                  for a, b in ((A, B), (A, A), (B, B)))
    error = (rho * math.sqrt(max(LL, 0.0)) + rho_ * math.sqrt(max(KK, 0.0))
             + rho * rho_ + ROUNDING * m[-1] * m_[-1])
    return BoundedHSIC(KL / (n * (n - 3)), float(error) / (n * (n - 3)),
                       (len(f), len(g)))


# %% [11] Fast permutations
def _factor(Phi):
    """The largest k(x, x) = a, a centred factor F of Φ*Φ / a of limited
    rank, and the trace ε of what it misses."""
    d = Phi.diag()
    a = float(d.max()) or 1.0
    F = pivoted_cholesky(Phi.kernel, Phi, tol=1e-12, max_rank=math.ceil(
        8 * math.sqrt(Phi.n))) / math.sqrt(a)
    missed = float(np.sum(d / a) - np.sum(F**2))
    return a, F - F.mean(axis=0), max(missed, 0.0)


def _by_matrices(K, L, orders):
    """Σ K_ij L_π(i)π(j) for each row π of orders, 64 rows at a time, where
    an entry above the diagonal stands for both of its kind."""
    K = 2 * np.triu(K) - np.diag(K.diagonal())
    parts = [(i, K[i:i + 64, i:].ravel()) for i in range(0, len(K), 64)]
    B = len(orders)

    def visit(T, rows, _):
        T[rows] = [sum(part @ L[order[i:i + 64]].take(order[i:], 1).ravel()
                       for i, part in parts) for order in orders[rows]]

    return reduce_tiles(visit, lambda: np.zeros(B), B, 1)


# %% [12] Fast permutations
@np.errstate(over="ignore", invalid="ignore")
def hsic_test(k: Kernel, l: Kernel, X, Y, *, n_permutations: int = 999,
              rng=None) -> PermutationTest:
    """Test whether two variables are independent, with the biased
    estimate as the statistic. If they are, the p-value is at most α with
    a probability of at most α, for every n and B
    (:prf:ref:`cor-hsic-level`).

    Where both kernels have a small rank on the points, a permutation
    takes O(n r s) operations (:prf:ref:`prop-hsic-factors`), otherwise
    O(n²) and two stored Gram matrices. `hsic_gamma_test` stores none.

    Parameters
    ----------
    k, l : Kernel
        They may be chosen by looking at the points of X and at those of
        Y, but not at who is paired with whom.
    X, Y : sequences of n points
        The pairs (x_i, y_i).
    n_permutations : int
        The number B of random permutations of Y.
    rng : seed or numpy.random.Generator, optional

    Examples
    --------
    >>> x = np.linspace(-1, 1, 30)
    >>> hsic_test(Gaussian(0.5), Gaussian(0.5), x, x**2, rng=0).pvalue
    0.002
    """
    Phi, Psi = (moved(F)[0] for F in paired(k, l, X, Y))
    B = check.whole(n_permutations, "n_permutations", 1)
    n, rng = Phi.n, check.generator(rng)
    (a, F, eps_K), (b, G, eps_L) = _factor(Phi), _factor(Psi)
    p, q = np.linalg.norm(F.T @ F), np.linalg.norm(G.T @ G)   # ‖K‖, ‖L‖
    delta = eps_K * q + eps_L * p + eps_K * eps_L   # of the missing parts
    factors = (eps_K <= 1e-8 * np.sum(F**2)
               and eps_L <= 1e-8 * np.sum(G**2)
               and F.shape[1] * G.shape[1] <= 16 * n)
    if not factors:
        K, L = centre(Phi.gram() / a), centre(Psi.gram() / b)
        p, q, delta = np.linalg.norm(K), np.linalg.norm(L), 0.0
    ties = 1e-10 * p * q + n * ROUNDING * (p * q / 4 + p + q) + delta
    if 0 < p * q <= ties and not (is_constant(Phi) or is_constant(Psi)):
        check.certain(p * q, ties, "the largest possible n² HSIC, in units "
                      "of the kernels,")

    T, orders = [], np.arange(n)[None]        # first the pairs themselves
    step = min(256, 1 + 2**19 // (1 + G.size)) if factors else 4 * TILE
    while len(T) <= B:
        if factors:
            V = F.T @ G[orders]                     # F' P_π G
            T.extend(np.einsum("bij,bij->b", V, V))
        else:
            T.extend(_by_matrices(K, L, orders))
        orders = np.tile(np.arange(n), (min(step, 1 + B - len(T)), 1))
        orders = rng.permuted(orders, axis=1)
    T = np.array(T)                           # n² HSIC / (a b)
    if not factors:
        T = squared_norm(T, p * q + 1e8 * ties, "k and l")
    pvalue = permutation_pvalue(T[0], T[1:], tol=ties)
    T = T * (a * b / n**2)
    check.number(T.max(), "the largest HSIC for k and l")
    return PermutationTest(T[0], pvalue, T[1:])


# %% [13] The null distribution without permutations
def _null_moments(*sums):
    """Mean and variance of T (:prf:ref:`thm-hsic-null-moments`) from the
    diagonal, the row sums and the sum of squares of K and of L."""
    tqs = []
    for diagonal, rows, squares in sums:
        n = len(rows)
        d = diagonal - 2 * rows / n + rows.sum() / n**2
        s = squares - 2 * (rows @ rows) / n + rows.sum() ** 2 / n**2
        tqs.append((d.sum(), (d * d).sum(), s))
    (t, q, s), (t_, q_, s_) = tqs
    mean = t * t_ / (n - 1)
    second = (q * q_ / n
              + ((t**2 - q) * (t_**2 - q_) + 2 * (s - q) * (s_ - q_)
                 + 4 * q * q_) / math.perm(n, 2)
              + (2 * (2 * q - t**2) * (2 * q_ - t_**2)
                 + 4 * (2 * q - s) * (2 * q_ - s_)) / math.perm(n, 3)
              + (t**2 + 2 * s - 6 * q) * (t_**2 + 2 * s_ - 6 * q_)
              / math.perm(n, 4))
    return mean / n**2, max(second - mean**2, 0) / n**4


@np.errstate(over="ignore", invalid="ignore")
def hsic_null_moments(K, L) -> tuple[float, float]:
    """Mean and variance of the biased estimate over all permutations of
    the pairs, in O(n²), from two Gram matrices as in `hsic_biased`,
    n >= 4 (:prf:ref:`thm-hsic-null-moments`).

    >>> K = np.diag([3, 0, 0, 0]).astype(object)
    >>> hsic_null_moments(K, K)
    (Fraction(27, 256), Fraction(243, 16384))
    """
    mean, variance = _null_moments(*(
        (M.diagonal(), M.sum(axis=1), np.vdot(M, M))
        for M in _gram_pair(K, L, at_least=4)[:2]))
    if isinstance(mean, Fraction):
        return mean, variance
    check.finite(np.array([mean, variance]), "K and L")
    return float(mean), float(variance)


# %% [14] The gamma approximation
@dataclass(frozen=True)
class GammaTest(check.Record):
    """What a test with the gamma approximation has found: the null
    distribution is replaced by the gamma distribution with its mean and
    its standard deviation (:prf:ref:`thm-hsic-null-moments`).

    Attributes
    ----------
    statistic : float
        Large values speak against the hypothesis.
    pvalue : float
        The probability that a gamma variable is at least as large; 1
        if nothing but rounding errors varies.
    mean, std : float
        Of the statistic under the hypothesis.
    """

    statistic: float
    pvalue: float
    mean: float
    std: float

    def __post_init__(self):
        vars(self).update({name: check.number(vars(self)[name], name) for
                           name in ("statistic", "pvalue", "mean", "std")})

    @property
    def null_distribution(self):
        """The gamma distribution with this mean and deviation, of SciPy."""
        if not (self.std > 0 and self.mean > 0):
            raise ValueError("null_distribution needs a positive mean and "
                             "std, but nothing varies here")
        from scipy.stats import gamma                  # rare, slow

        return gamma((self.mean / self.std) ** 2,
                     scale=self.std * (self.std / self.mean))


def gamma_pvalue(statistic: float, mean: float, variance: float) -> float:
    """The probability that a gamma variable with this mean and variance is
    at least the statistic; 1 if it does not vary
    (:prf:ref:`thm-hsic-null-moments`).

    >>> round(gamma_pvalue(3.0, 1.0, 1.0), 6)                  # e^-3
    0.049787
    """
    T, m, v = (check.number(value, name) for value, name in (
        (statistic, "statistic"), (mean, "mean"), (variance, "variance")))
    if m <= 0 or v <= 0:
        return 1.0
    return float(gammaincc(m / v * m, m / v * max(T, 0.0)))


@np.errstate(over="ignore", invalid="ignore")
def hsic_gamma_test(k: Kernel, l: Kernel, X, Y) -> GammaTest:
    """Test of independence without permutations, in tiles: the exact mean
    and variance over all of them (:prf:ref:`thm-hsic-null-moments`), and
    a gamma tail.

    Arguments as in `hsic_test`, n >= 4. The p-value is approximate: its
    level is not guaranteed, as that of `hsic_test` is.

    >>> x = np.linspace(-1, 1, 30)
    >>> hsic_gamma_test(Gaussian(0.5), Gaussian(0.5), x, x**2).pvalue < 1e-4
    True
    """
    (u, Phi), (v, Psi) = (moved(F)[0].unit()
                          for F in paired(k, l, X, Y, at_least=4))
    c, d = (np.median(F.gram(None, FEW, FEW)) for F in (Phi, Psi))
    first, second, S = tile_sums(Phi, Psi, less=(c, d))
    mean, variance = _null_moments(first, second)
    (a, K1, _), (b, L1, _), n = first, second, Phi.n
    T = (S - 2 * K1 @ L1 / n + K1.sum() * L1.sum() / n**2) / n**2

    p, q = a.mean() - K1.mean() / n, b.mean() - L1.mean() / n
    spread = min(p, q)                 # below 1e-14 all of it is rounding
    if 0 < spread <= 1e-14 and not (is_constant(Phi) or is_constant(Psi)):
        check.certain(spread, 1e-14, "the spread of the features, in units "
                      "of the kernels,")
    T = squared_norm(T, abs(p) + abs(q), "k and l")
    varies = spread > 1e-14 and variance > 1e-13 * mean**2
    pvalue = gamma_pvalue(T, mean, variance) if varies else 1.0
    T, mean, std = check.finite(u * v * np.array(
        [T, max(mean, 0.0), math.sqrt(variance)]), "k and l")
    return GammaTest(T, pvalue, mean, std)


# %% [15] Two classes
def balanced_labels(y) -> np.ndarray:
    """Numbers for two classes, with sum zero: 1/n₊ where y, a sequence of
    numbers or strings, has the larger of its two values, -1/n₋ elsewhere
    (:prf:ref:`thm-balanced-labels`).

    >>> balanced_labels(["no", "yes", "no", "no"]).round(3)
    array([-0.333,  1.   , -0.333, -0.333])
    """
    y = [*as_sequence(y, "y")]
    if not all(isinstance(label, (str, bytes)) for label in y):
        y = check.real_array(y, "y", 1)
    classes, which = np.unique(y, return_inverse=True)
    if len(classes) != 2:
        raise ValueError("y must have exactly two different values, got "
                         f"{len(classes)}")
    plus = which == 1
    return np.where(plus, 1 / plus.sum(), -1 / (~plus).sum())


# %% [16] Greedy selection
@dataclass(frozen=True)
class FeatureSelection(check.Record):
    """Features that keep HSIC large (:prf:ref:`thm-hsic-unbiased`).

    Attributes
    ----------
    features : tuple of int
        The selected columns, in increasing order.
    path : tuple of int
        The columns in the order in which they were added or removed.
    values : tuple of float
        The unbiased HSIC of the set after each of these steps.
    """

    features: tuple[int, ...]
    path: tuple[int, ...]
    values: tuple[float, ...]


def select_features(k: Kernel, l: Kernel, X, Y, n_features: int, *,
                    direction: str = "backward") -> FeatureSelection:
    """Greedy selection of the columns of X on which Y depends most
    (:prf:ref:`thm-hsic-unbiased`).

    Parameters
    ----------
    k : Kernel
        On vectors of any length: it is applied to columns of X.
    l : Kernel
    X : (n, d) array
        n at least 4.
    Y : sequence of n points
    n_features : int
        How many columns to select, from 1 to d.
    direction : "backward" or "forward"
        Remove columns from all, or add columns to none. Backward finds
        columns that matter together only.
    """
    X = as_points(X)
    d, m = X.shape[1], check.whole(n_features, "n_features", 1)
    if m > d:
        raise ValueError(f"n_features must be at most {d}, the number of "
                         f"columns of X, got {m}")
    check.choice(direction, "direction", ("backward", "forward"))
    forward, Psi = direction == "forward", paired(k, l, X, Y, 4)[1]
    chosen, path, values = set() if forward else {*range(d)}, [], []
    while len(chosen) != m:
        steps = [a for a in range(d) if (a in chosen) != forward]
        scores = [hsic(k, l, X[:, sorted(chosen ^ {a})], Psi)
                  for a in steps]
        best = int(np.argmax(scores))
        chosen ^= {steps[best]}
        path.append(steps[best])
        values.append(scores[best])
    return FeatureSelection(tuple(sorted(chosen)), tuple(path),
                            tuple(values))


# %% [17] Unmixing
def _unmix_objective(flat, k, Z):
    """HSIC_b of u = Z w and v = Z z for the unit vectors w and z along the
    halves of flat, and its gradient (:prf:ref:`prop-unmix-gradient`)."""
    W = flat.reshape(2, -1)
    length = np.linalg.norm(W, axis=1, keepdims=True)
    unit, n = W / length, len(Z)
    u, v = unit @ Z.T
    U, V = Features(k, u), Features(k, v)
    p, q = U.dot(np.ones(n)) / n, V.dot(np.ones(n)) / n

    def visit(total, i, j):
        K, L = U.gram(None, i, j), V.gram(None, i, j)
        tilted = (K * (L - np.add.outer(q[i] - q.mean(), q[j])),
                  L * (K - np.add.outer(p[i] - p.mean(), p[j])))
        for row, (M, z) in enumerate(zip(tilted, (u, v))):
            total[row, i] += M.sum(axis=1)
            total[row + 2, i] += np.einsum("ij,j->i", M, z[j])
            if i != j:
                total[row, j] += M.sum(axis=0)
                total[row + 2, j] += np.einsum("ij,i->j", M, z[i])

    total = reduce_tiles(visit, lambda: np.zeros((4, n)), n)
    pull = -2 / (n * k.sigma) ** 2 * (total[:2] * [u, v] - total[2:])
    slope = pull @ Z
    slope -= np.sum(slope * unit, axis=1, keepdims=True) * unit
    return float(total[0].sum()) / n**2, (slope / length).ravel()


# %% [18] Unmixing
@dataclass(frozen=True, eq=False, repr=False)
class Unmixing(check.Record):
    """Two linear components ``(X - X.mean(axis=0)) @ matrix.T`` that are
    nearly independent (:prf:ref:`prop-unmix-gradient`).

    Attributes
    ----------
    matrix : (2, d) array
        A, with rows scaled so that both components have variance one.
    value : float
        The biased HSIC of the two components.
    path, values : (steps, 2, d) and (steps,) arrays
        The matrices on the way, the start first, and their HSIC.
    converged : bool
        Whether the gradient has become small.
    """

    matrix: np.ndarray
    value: float
    path: np.ndarray
    values: np.ndarray
    converged: bool

    def __post_init__(self):
        vars(self).update({name: check.frozen(vars(self)[name])
                           for name in ("matrix", "path", "values")})

    def __repr__(self):
        return (f"Unmixing(value={self.value:.6g}, steps="
                f"{len(self.values) - 1}, converged={self.converged})")


def hsic_unmix(k: Gaussian, X, start, *, tol: float = 1e-6,
               max_steps: int = 200) -> Unmixing:
    """Two linear functions of a vector that are as independent as
    possible: a local minimum of HSIC (:prf:ref:`prop-unmix-gradient`).

    Which of many minima is found depends on the start; for normal X there
    is a whole family (:prf:ref:`prop-unmix-normal`).

    Parameters
    ----------
    k : Gaussian
        For both components, which are scaled to variance one: a width
        near 1 is the median heuristic.
    X : (n, d) array
        d at least 2, with an invertible sample covariance matrix.
    start : (2, d) array
        Two rows that are not parallel.
    tol : float
        Stop when no entry of the gradient is larger.
    max_steps : int
    """
    if not isinstance(k, Gaussian):
        raise ValueError(f"k must be Gaussian, got {k}")
    Z, back, forth = _whitened(as_points(X))
    W = _directions(start, forth)
    tol = check.tolerance(tol, zero=True)
    max_steps = check.whole(max_steps, "max_steps", 1)
    start = W.ravel()
    path, values = [start], [_unmix_objective(start, k, Z)[0]]

    def note(intermediate_result):
        path.append(intermediate_result.x.copy())
        values.append(float(intermediate_result.fun))

    from scipy.optimize import minimize                # rare, slow

    found = minimize(_unmix_objective, start, (k, Z), "BFGS", jac=True,
                     callback=note,
                     options={"gtol": tol, "maxiter": max_steps})
    W = np.reshape(path, (len(path), 2, -1))
    path = W / np.linalg.norm(W, axis=2, keepdims=True) @ back
    return Unmixing(path[-1], values[-1], path, values,
                    bool(np.abs(found.jac).max() <= tol))
