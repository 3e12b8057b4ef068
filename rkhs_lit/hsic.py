"""HSIC: one number for dependence"""
# The exported cells of book/hsic.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: f942c3f089bf15bd

# %% [1] HSIC: one number for dependence
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain
from numbers import Rational

import numpy as np
from scipy.special import gammaincc

import rkhs_lit.conventions as check
from rkhs_lit.cross_covariance import is_constant
from rkhs_lit.kernels import TILE, Gaussian, Kernel, reduce_tiles
from rkhs_lit.low_rank import NystromFeatures, pivoted_cholesky
from rkhs_lit.mean_embedding import moved, squared_norm
from rkhs_lit.moore_aronszajn import Features, paired
from rkhs_lit.pca import centre
from rkhs_lit.tiles import reduce_runs
from rkhs_lit.two_samples import PermutationTest, permutation_pvalue

# %% [2] The biased estimate
@np.errstate(over="ignore", invalid="ignore")
def hsic_biased(K, L) -> float | Fraction:
    """The estimate tr(K H L H) / n² of HSIC from two Gram matrices, not
    negative (:prf:ref:`thm-hsic-biased`). Two arrays of Python integers or
    fractions (``dtype=object``) are treated exactly.

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
    (:prf:ref:`thm-hsic-unbiased`). It does not use the diagonals, and is
    often negative for independent variables, because its mean is then 0.

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
    constant = not (K.any() and L.any())
    scale = 0.0 if constant else tops[0] * q + tops[1] * p + r * s
    if square:
        value = squared_norm(value, scale, "K and L")
    return check.certain(float(value), ROUNDING * scale,
                         "HSIC of K and L", p * q)

# %% [6] Fine print
def _landmarks(Phi, tol, max_rank):
    """A map of Nyström features that misses at most tol tr K, unless
    max_rank is too small for that, and the trace ρ of what it misses."""
    n, d, some = Phi.n, Phi.diag(), 4096
    rows, seen = (np.linspace(0, n - 1, min(n, many)).astype(int)
                  for many in (some, 2**16))
    for rounds in range(12):
        F, P = pivoted_cholesky(Phi.kernel, Phi[rows], tol=tol / 2,
                                max_rank=max_rank, return_pivots=True)
        phi = NystromFeatures(Phi.kernel, Phi[rows[P]], F[P])
        missed = d[seen] - np.concatenate([
            np.sum(phi(Phi[seen[i:i + some]]) ** 2, axis=1)
            for i in range(0, len(seen), some)])
        trace = float(d[seen].sum())
        rho = max(float(missed.sum()), 0.0) + 1e-12 * trace
        if rho <= tol * trace or len(P) == max_rank or rounds > 9:
            if len(seen) == n:
                break
            seen = np.arange(n)
            continue
        worst = seen[np.argsort(missed)[-some:]]
        rows = np.union1d(rows[P], worst)
    return phi, rho

# %% [7] Fine print
@dataclass(frozen=True)
class GammaTest(check.Record):
    """What a test with the gamma approximation has found: a statistic, and
    its mean and standard deviation under the hypothesis. The p-value is a
    gamma tail, 1 if nothing varies (:prf:ref:`thm-hsic-null-moments`)."""

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

# %% [8] As many pairs as you like
@np.errstate(over="ignore", invalid="ignore")
def _visit(k, l, c, d, total, i, j):
    """Add what the tiles (i, j) of K and L contribute to the sums."""
    K, L = k(i, j), l(i, j)
    for row, (M, common) in enumerate(((K, c), (L, d))):
        if common:
            M -= common
        total[row, i] += np.einsum("ij->i", M)
        if i != j:
            total[row, j] += M.sum(axis=0)
    for sums, (M, N) in zip(total[2:], ((K, L), (K, K), (L, L))):
        sums[i] += (1 + (i != j)) * np.vecdot(M, N)


def tile_sums(Phi: Features, Psi: Features, *,
              less: tuple[float, float] = (0.0, 0.0),
              squares: bool = True) -> tuple:
    """All that HSIC needs of K = Φ*Φ - c and of L = Ψ*Ψ - d
    (:prf:ref:`thm-hsic-unbiased`): for each its diagonal, its row sums and
    the sum of its squares, and the sum of K∘L; in tiles if n is large.
    HSIC does not see the constants c and d in `less`, but sums without
    them keep more digits. Without `squares` many tiles leave these at 0.

    >>> from rkhs_lit.kernels import Linear
    >>> Phi, Psi = paired(Linear(), Linear(), [1.0, 2.0], [1.0, -1.0])
    >>> (diagonal, K1, squares), _, S = tile_sums(Phi, Psi)
    >>> diagonal, K1, squares, S
    (array([1., 4.]), array([3., 6.]), 25.0, 1.0)
    """
    if not (isinstance(Phi, Features) and isinstance(Psi, Features)
            and Phi.n == Psi.n):
        raise ValueError("Phi and Psi must be Features of as many points")
    n, (c, d), rows = Phi.n, less, 3 + 2 * check.flag(squares, "squares")
    if n <= TILE:
        K, L = Phi.gram() - c, Psi.gram() - d
        sums = [(M.diagonal().copy(), M.sum(axis=1), float(np.vdot(M, M)))
                for M in (K, L)]
        return *sums, float(np.vdot(K, L))
    visit = partial(_visit, Phi.summands(), Psi.summands(), c, d)
    K1, L1, *sums = reduce_tiles(visit, partial(np.zeros, (rows, n)), n)
    S, KK, LL = [float(row.sum()) for row in sums] + [0.0] * (5 - rows)
    return (Phi.diag() - c, K1, KK), (Psi.diag() - d, L1, LL), S


@np.errstate(over="ignore", invalid="ignore")
def hsic(k: Kernel, l: Kernel, X, Y, *, unbiased: bool = True) -> float:
    """HSIC estimated from n pairs (x_i, y_i), in tiles: `hsic_unbiased`,
    for n >= 4, or `hsic_biased` of two Gram matrices that are never stored
    (:prf:ref:`thm-hsic-unbiased`, :prf:ref:`thm-hsic-biased`).

    >>> from rkhs_lit.kernels import Linear
    >>> x = [0.0, 1.0, 2.0, 3.0, 4.0]
    >>> hsic(Linear(), Linear(), x, x, unbiased=False)    # variance²
    4.0
    """
    least = 4 if check.flag(unbiased, "unbiased") else 1
    Phi, Psi = (moved(F)[0] for F in paired(k, l, X, Y, least))
    few = (F.gram(None, FEW, FEW) for F in (Phi, Psi))
    c, d = (np.median(K) * (2 * np.ptp(K) < np.abs(K).max()) for K in few)
    (a, K1, _), (b, L1, _), S = tile_sums(Phi, Psi, less=(c, d),
                                          squares=False)
    n = Phi.n                          # p = tr(HKH) / n, q = tr(HLH) / n
    p, q = a.mean() - K1.mean() / n, b.mean() - L1.mean() / n
    top, low = (squared_norm(D, 0, "k and l").max() for D in (a + c, b + d))
    scale = (top * abs(q) + low * abs(p)
             + np.abs(K1).max() * np.abs(L1).max() / n**2)
    if unbiased:                       # without the diagonals
        K1, L1, S = K1 - a, L1 - b, S - a @ b
    T, U = K1 @ L1, K1.sum() * L1.sum()
    if unbiased:
        value = (S - 2 * T / (n-2) + U / ((n-1) * (n-2))) / (n * (n-3))
    else:
        value = squared_norm((S - 2 * T / n + U / n**2) / n**2, scale,
                             "k and l")
    error = ROUNDING * scale
    if abs(value) <= error and (is_constant(Phi) or is_constant(Psi)):
        return 0.0
    return check.certain(float(value), error, "HSIC for k and l", abs(p*q))

# %% [9] A million pairs
@dataclass(frozen=True)
class BoundedHSIC(check.Record):
    """An estimate of HSIC from factors of these ranks: `hsic` of the same
    pairs is in value ± error (:prf:ref:`thm-hsic-low-rank`)."""

    value: float
    error: float
    ranks: tuple[int, int]


def _u_form(C, m, m_, n):
    """⟨PK, PL⟩ for K = FF' and L = GG' without their diagonals."""
    p, p_ = np.append(m[:-1], -1.0), np.append(m_[:-1], -1.0)
    S = np.sum(C[:-1, :-1] ** 2) - C[-1, -1]
    T, U = p @ C @ p_, (p @ m) * (p_ @ m_)
    return float(S - 2 * T / (n - 2) + U / ((n - 1) * (n - 2)))

# %% [10] A million pairs
def hsic_low_rank(k: Kernel, l: Kernel, X, Y, *, tol: float = 1e-6,
                  max_rank: int = 500) -> BoundedHSIC:
    """The unbiased estimate of HSIC from n >= 4 pairs by low-rank factors,
    with a bound of its error, in O(n r²) operations
    (:prf:ref:`thm-hsic-low-rank`). The factors may miss the share `tol` of
    the traces of K and L, and more where `max_rank` columns do not do.

    >>> x = np.linspace(-1, 1, 1000)
    >>> found = hsic_low_rank(Gaussian(1.0), Gaussian(1.0), x, x**2)
    >>> exact = hsic(Gaussian(1.0), Gaussian(1.0), x, x**2)
    >>> abs(found.value - exact) <= found.error < 1e-6
    True
    """
    Phi, Psi = (moved(F)[0] for F in paired(k, l, X, Y, 4))
    tol = check.number(tol, "tol", "between 1e-11 and 1", 1e-11, 1.0)
    max_rank, n = check.whole(max_rank, "max_rank", 1), Phi.n
    if not all(pivoted_cholesky(M.kernel, M, max_rank=1).any()
               for M in (Phi, Psi)):                    # a kernel that is 0
        return BoundedHSIC(0.0, 0.0, (0, 0))
    (phi, rho), (psi, rho_) = (_landmarks(M, tol, max_rank)
                               for M in (Phi, Psi))
    f, g = phi(Phi[:4096]).mean(axis=0), psi(Psi[:4096]).mean(axis=0)
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
def _by_factors(F, G, orders):
    """‖F' P_π G‖² for each row π of orders."""
    V = F.T @ G[orders]
    return np.einsum("bij,bij->b", V, V).tolist()


def _by_matrices(K, L, orders):
    """Σ_i<=j K_ij L_π(i)π(j) for each row π of orders."""
    T = np.zeros(len(orders))
    for i in range(0, len(K), 64):
        part = K[i:i + 64, i:]          # stays in the cache for all orders
        T += [np.vecdot(part, L[order[i:i + 64]].take(  # looks once
            order[i:], 1, mode="clip")).sum() for order in orders]
    return T.tolist()

# %% [12] Fast permutations
@np.errstate(over="ignore", invalid="ignore")
def hsic_test(k: Kernel, l: Kernel, X, Y, *, n_permutations: int = 999,
              rng=None) -> PermutationTest:
    """Test whether two variables are independent, from pairs (x_i, y_i)
    and B = `n_permutations` permutations of Y, with the biased estimate as
    the statistic. If they are, the p-value is at most α with a probability
    of at most α, for every n and B (:prf:ref:`cor-hsic-level`).

    The kernels may be chosen by looking at the points of X and at those of
    Y, but not at who is paired with whom. Where both have small ranks, a
    permutation takes O(n r s) operations (:prf:ref:`prop-hsic-factors`),
    otherwise O(n²) and two stored Gram matrices.

    >>> x = np.linspace(-1, 1, 30)
    >>> hsic_test(Gaussian(0.5), Gaussian(0.5), x, x**2, rng=0).pvalue
    0.002
    """
    Phi, Psi = (moved(F)[0] for F in paired(k, l, X, Y))
    B = check.whole(n_permutations, "n_permutations", 1)
    n, rng = Phi.n, check.generator(rng)
    a, b = (float(M.diag().max()) or 1.0 for M in (Phi, Psi))
    few = {"tol": 1e-12, "max_rank": math.ceil(8 * math.sqrt(n))}
    F = pivoted_cholesky(Phi.kernel, Phi, **few) / math.sqrt(a)
    G = pivoted_cholesky(Psi.kernel, Psi, **few) / math.sqrt(b)
    eps_K = max(float(np.sum(Phi.diag() / a) - np.sum(F**2)), 0.0)
    eps_L = max(float(np.sum(Psi.diag() / b) - np.sum(G**2)), 0.0)
    F, G = F - F.mean(axis=0), G - G.mean(axis=0)
    p, q = np.linalg.norm(F.T @ F), np.linalg.norm(G.T @ G)   # ‖K‖, ‖L‖
    delta = eps_K * q + eps_L * p + eps_K * eps_L   # of the missing parts
    factors = (eps_K <= 1e-8 * np.sum(F**2) and eps_L <= 1e-8 * np.sum(G**2)
               and F.shape[1] * G.shape[1] <= 16 * n)
    statistics = partial(_by_factors, F, G)
    step = min(256, 1 + 2**19 // (1 + G.size))     # permutations at a time
    if not factors:
        K, L = centre(Phi.gram() / a), centre(Psi.gram() / b)
        p, q, delta = np.linalg.norm(K), np.linalg.norm(L), 0.0
        K = 2 * np.triu(K) - np.diag(K.diagonal())     # both halves in one
        statistics, step = partial(_by_matrices, K, L), 64
    ties = 1e-10 * p * q + n * ROUNDING * (p * q / 4 + p + q) + delta
    if 0 < p * q <= ties and not (is_constant(Phi) or is_constant(Psi)):
        check.certain(p * q, ties, "the largest possible n² HSIC, in units "
                      "of the kernels,")

    some = np.arange(n)[None]                 # first the pairs themselves
    orders = chain([some], (
        rng.permuted(np.repeat(some, min(step, B - done), axis=0), axis=1)
        for done in range(0, B, step)))
    T = np.array(reduce_runs(statistics, orders, threads=not factors))
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
        d = diagonal - 2 * rows / n + rows.sum() / n**2     # (HKH)_ii
        s = squares - 2 * (rows @ rows) / n + rows.sum() ** 2 / n**2
        tqs.append((d.sum(), (d * d).sum(), s))
    (t, q, s), (t_, q_, s_) = tqs       # tr HKH, Σ (HKH)_ii², ‖HKH‖²
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
    K, L, _ = _gram_pair(K, L, at_least=4)
    mean, variance = _null_moments(*(          # of tr(HKH L_π) / n² over π
        (M.diagonal(), M.sum(axis=1), np.vdot(M, M)) for M in (K, L)))
    if isinstance(mean, Fraction):
        return mean, variance
    check.finite(np.array([mean, variance]), "K and L")
    return float(mean), float(variance)

# %% [14] The gamma approximation
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
    """Test of independence from n >= 4 pairs, in tiles: the exact mean and
    variance over all permutations (:prf:ref:`thm-hsic-null-moments`), and
    a gamma tail. Its level is not guaranteed, as that of `hsic_test` is.

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
    T = squared_norm(T, abs(p) + abs(q), "k and l")
    spread = min(p, q)                 # below 1e-14 all of it is rounding
    if 0 < spread <= 1e-14 and not (is_constant(Phi) or is_constant(Psi)):
        check.certain(spread, 1e-14, "the spread of the features, in units "
                      "of the kernels,")
    varies = spread > 1e-14 and variance > 1e-13 * mean**2
    pvalue = gamma_pvalue(T, mean, variance) if varies else 1.0
    T, mean, std = check.finite(u * v * np.array(
        [T, max(mean, 0.0), math.sqrt(variance)]), "k and l")
    return GammaTest(T, pvalue, mean, std)
