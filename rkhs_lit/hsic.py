"""HSIC: one number for dependence

The exported cells of the chapter ``book/hsic.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 4532815f0a604b4a

# %% [1] HSIC: one number for dependence
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from numbers import Rational
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.special import gammaincc
from scipy.stats import gamma

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points, as_sequence
from rkhs_lit.bochner import pivoted_cholesky
from rkhs_lit.kernels import Gaussian, Kernel, reduce_tiles
from rkhs_lit.mean_embedding import GaussianEmbedding, embedding_distance
from rkhs_lit.mmd import PermutationTest, permutation_pvalue
from rkhs_lit.moore_aronszajn import Features, paired
from rkhs_lit.pca import centre


# %% [2] The biased estimate
class _Sums(NamedTuple):
    """What one pass over two Gram matrices leaves."""

    unit: float               # of K times that of L
    K1: np.ndarray            # row sums
    L1: np.ndarray
    K0: np.ndarray            # diagonals
    L0: np.ndarray
    KL: float                 # the sum of K_ij L_ij
    KK: float = 0.0           # the sum of K_ij²
    LL: float = 0.0


def _v_statistic(s):
    """(S - 2 T / n + U / n²) / n², in which S, T and U are the sums of
    A_b, B_b and D_b (:prf:ref:`thm-hsic-biased`)."""
    n, S, T, U = len(s.K1), s.KL, s.K1 @ s.L1, s.K1.sum() * s.L1.sum()
    return (S - 2 * T / n + U / n**2) / n**2


# %% [3] The biased estimate
def hsic_biased(K, L) -> float | Fraction:
    """The estimate tr(K H L H) / n² of HSIC from two Gram matrices
    (:prf:ref:`thm-hsic-biased`).

    Parameters
    ----------
    K, L : (n, n) arrays
        Gram matrices of the first and of the second variable. Two
        arrays of Python integers or fractions (``dtype=object``) are
        treated exactly.

    Returns
    -------
    float
        The squared Hilbert–Schmidt norm of the empirical
        cross-covariance operator: not negative. A Fraction if K and L
        are exact.

    Examples
    --------
    >>> K = [[1.0, 0.0], [0.0, 1.0]]
    >>> hsic_biased(K, K)
    0.25
    """
    s = _gram_sums(K, L, at_least=1)
    return _estimate(_squared(_v_statistic(s), s), s)


# %% [4] Unbiased, by counting
def _u_statistic(s):
    """(S - 2 T / (n-2) + U / ((n-1)(n-2))) / (n (n-3)), without the
    diagonals (:prf:ref:`thm-hsic-unbiased`)."""
    n, K1, L1 = len(s.K1), s.K1 - s.K0, s.L1 - s.L0
    S, T, U = s.KL - s.K0 @ s.L0, K1 @ L1, K1.sum() * L1.sum()
    return (S - 2 * T / (n - 2) + U / ((n - 1) * (n - 2))) / (n * (n - 3))


def hsic_unbiased(K, L) -> float | Fraction:
    """Unbiased estimate of HSIC from two Gram matrices, in O(n²)
    (:prf:ref:`thm-hsic-unbiased`).

    Parameters
    ----------
    K, L : (n, n) arrays
        Gram matrices of at least four pairs; their diagonals are not
        used. Two arrays of Python integers or fractions
        (``dtype=object``) are treated exactly.

    Returns
    -------
    float
        The average over all tuples of distinct indices. Often negative
        for independent variables, because its mean is then 0. A
        Fraction if K and L are exact.

    Examples
    --------
    >>> K = np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1],
    ...               [0, 0, 1, 0]], dtype=object)
    >>> hsic_unbiased(K, K)
    Fraction(2, 3)
    """
    s = _gram_sums(K, L, at_least=4)
    return _estimate(_u_statistic(s), s)


# %% [5] Fine print
def _fractions(K):
    return (isinstance(K, np.ndarray) and K.dtype == object and K.size
            and all(isinstance(v, Rational) for v in K.flat))


def _scaled(K, name, exact):
    """A Gram matrix in units of a power of two, less the mean of its
    entries, and the unit; fractions stay as they are."""
    M, unit = (np.vectorize(Fraction, otypes=[object])(K) if exact
               else as_points(K, name)), 1
    if np.ndim(K) != 2 or M.shape[0] != M.shape[1]:
        raise ValueError(f"{name} must be a square Gram matrix, got shape "
                         f"{np.shape(K)}")
    if not exact:
        size = math.frexp(max(M.max(), -M.min()))[1]
        unit = 2.0 ** min(max(size, -1000), 1000)
        M = M / unit
    if np.any(abs(M - M.T) > (0 if exact else 1e-8)):
        raise ValueError(f"{name} must be symmetric, as Gram matrices are")
    return (M if exact else M - M.mean()), unit


def _gram_sums(K, L, at_least, *, squares=False):
    """The sums of two Gram matrices."""
    exact = _fractions(K) and _fractions(L)
    (K, a), (L, b) = _scaled(K, "K", exact), _scaled(L, "L", exact)
    n = len(K)
    if len(L) != n:
        raise ValueError(f"L must have the shape of K, ({n}, {n}), got "
                         f"{L.shape}")
    if n < at_least:
        raise ValueError(f"K must belong to at least {at_least} points, "
                         f"got {n}")
    products = [(K, L), (K, K), (L, L)][:3 if squares else 1]
    return _Sums(a * b, K.sum(axis=1), L.sum(axis=1), K.diagonal(),
                 L.diagonal(), *(np.vdot(M, N) for M, N in products))


# %% [6] Fine print
def _traces(s):
    """tr(K~) / n and tr(L~) / n; their product bounds HSIC_b."""
    n = len(s.K1)
    return ((s.K0.sum() - s.K1.sum() / n) / n,
            (s.L0.sum() - s.L1.sum() / n) / n)


def _squared(value, s, names="K and L"):
    """The value of a squared norm: not negative."""
    # 1e-8 allows for kernels that are computed to eight digits.
    slack = 0 if isinstance(value, Fraction) else (
        1e-8 * abs(math.prod(_traces(s))) + 1e-12)
    if value < -slack:
        raise ValueError(f"{names} must be positive definite, but the "
                         "squared norm is negative")
    return max(value, 0)


def _in_units(value, unit, names="K and L"):
    if isinstance(value, Fraction):
        return value
    value = float(value) * unit
    if not math.isfinite(value):
        raise ValueError(f"{names} are too large: HSIC overflows")
    return value


def _estimate(value, s, names="K and L"):
    """The value in the units of the kernels, with a warning if a bound
    for the rounding errors of both estimates leaves it in doubt."""
    value = _in_units(value, s.unit, names)
    if not isinstance(value, Fraction):
        (p, q), n = _traces(s), len(s.K1)
        rows = np.abs(s.K1).max() / n * (np.abs(s.L1).max() / n)
        error = 16 * np.finfo(float).eps * float(p + q + rows)
        check.certain(value, error * s.unit, "HSIC", p * q * s.unit)
    return value


# %% [7] Fine print
def _near(Phi):
    """The features less a fixed vector that they are near to
    (:prf:ref:`lem-features-moved`)."""
    return Features(Phi.kernel._about(Phi.points), Phi, Phi.name,
                    Phi.kernel_name)


# %% [8] Fine print
def _whitened(X):
    """Points with mean zero and covariance I; the maps of directions
    back to those of X and forth."""
    if X.shape[1] < 2 or len(X) <= X.shape[1]:
        raise ValueError("X must have at least two columns and more rows "
                         f"than columns, got shape {X.shape}")
    size = np.abs(X).max(axis=0)
    X = X / np.where(size > 0, size, 1.0)
    X = X - X.mean(axis=0)
    spread = np.abs(X).max(axis=0)          # less is rounding of the mean
    X, size = X / np.maximum(spread, 1e-13), size * spread
    lam, V = eigh(X.T @ X / len(X))
    if lam[0] <= 1e-13 * lam[-1] or spread.min() <= 1e-13:
        raise ValueError("X must have an invertible covariance matrix")
    root = np.sqrt(lam)
    return X @ (V / root), (V / root).T / size, size[:, None] * (V * root)


def _directions(start, forth):
    """The rows of start as unit vectors for whitened points."""
    A = check.real_array(start, "start", ndim=2)
    if A.shape != (2, len(forth)):
        raise ValueError(f"start must have shape (2, {len(forth)}), got "
                         f"{A.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        W = A @ forth
        size = np.abs(W).max(axis=1, keepdims=True)
        W = W / np.where(size > 0, size, 1.0)
    if not (0 < size.min() and size.max() < np.inf
            and np.linalg.matrix_rank(W, tol=1e-8) == 2):
        raise ValueError("start must have two rows that are not parallel")
    return W / np.linalg.norm(W, axis=1, keepdims=True)


# %% [9] Normal variables: a closed form
def hsic_gaussian(k: Gaussian, l: Gaussian, covariance, *,
                  split: int = 1) -> float:
    """HSIC of a normal vector (X, Y) for Gaussian kernels, in closed
    form (:prf:ref:`prop-hsic-gaussian`).

    Parameters
    ----------
    k, l : Gaussian
        The kernels of X and of Y.
    covariance : (d, d) array
        Of the vector that has the coordinates of X first.
    split : int
        The number of coordinates of X.

    Returns
    -------
    float
        The squared Hilbert–Schmidt norm of the population's operator.

    Examples
    --------
    >>> S = [[1.0, 0.5], [0.5, 1.0]]
    >>> round(hsic_gaussian(Gaussian(1.0), Gaussian(1.0), S), 6)
    0.010763
    """
    for name, kernel in (("k", k), ("l", l)):
        if not isinstance(kernel, Gaussian):
            raise ValueError(f"{name} must be Gaussian, got {kernel}")
    d = len(as_points(covariance, "covariance"))
    unit, zero = Gaussian(1.0), np.zeros(d)
    S = GaussianEmbedding(unit, zero, covariance).covariance     # checked
    split = check.whole(split, "split", 1)
    if split >= d:
        raise ValueError(f"split must leave a coordinate for Y: less than "
                         f"{d}, got {split}")
    widths = np.where(np.arange(d) < split, k.sigma, l.sigma)
    with np.errstate(over="ignore"):
        S = S / widths / widths[:, None]
    apart = S.copy()
    apart[:split, split:] = apart[split:, :split] = 0.0
    return embedding_distance(GaussianEmbedding(unit, zero, S),
                              GaussianEmbedding(unit, zero, apart)) ** 2


# %% [10] As many pairs as you like
def _tile_sums(Phi, Psi, *, squares=False):
    """The sums of two Gram matrices, a tile at a time."""
    (a, Phi), (b, Psi) = Phi.unit(), Psi.unit()
    few = slice(32)
    c, d = Phi.tile(few, few).mean(), Psi.tile(few, few).mean()

    def visit(total, i, j):
        K, L = Phi.tile(i, j) - c, Psi.tile(i, j) - d
        for row, M in enumerate((K, L)):
            total[row, i] += M.sum(axis=1)
            if i != j:
                total[row, j] += M.sum(axis=0)
        products = [(K, L), (K, K), (L, L)][:len(total) - 2]
        for row, (M, N) in enumerate(products, 2):
            total[row, i] += (1 + (i != j)) * np.einsum("ij,ij->i", M, N)

    n, rows = len(Phi), 5 if squares else 3
    total = reduce_tiles(visit, lambda: np.zeros((rows, n)), n)
    return _Sums(a * b, total[0], total[1], Phi.diag() - c, Psi.diag() - d,
                 *(float(row.sum()) for row in total[2:]))


# %% [11] As many pairs as you like
def hsic(k: Kernel, l: Kernel, X, Y, *, unbiased: bool = True) -> float:
    """HSIC estimated from pairs of points, in tiles
    (:prf:ref:`thm-hsic-unbiased`, :prf:ref:`thm-hsic-biased`).

    Parameters
    ----------
    k, l : Kernel
        Positive definite, on any kind of points.
    X, Y : sequences of n points
        The pairs (x_i, y_i).
    unbiased : bool
        Whether to average over distinct indices, for n >= 4, or over
        all of them.

    Returns
    -------
    float
        As `hsic_unbiased` or `hsic_biased` of the two Gram matrices,
        which are never stored.

    Examples
    --------
    >>> from rkhs_lit.kernels import Linear
    >>> x = [0.0, 1.0, 2.0, 3.0, 4.0]
    >>> hsic(Linear(), Linear(), x, x, unbiased=False)    # variance²
    4.0
    """
    least = 4 if check.flag(unbiased, "unbiased") else 1
    Phi, Psi = map(_near, paired(k, l, X, Y, least))
    s = _tile_sums(Phi, Psi)
    value = (_u_statistic(s) if unbiased
             else _squared(_v_statistic(s), s, "k and l"))
    return _estimate(value, s, "k and l")


# %% [12] Fast permutations
def _factor(Phi):
    """A centred factor of Φ*Φ and the trace ε of what it misses; None
    if it misses too much, because its rank is limited."""
    F = pivoted_cholesky(Phi.kernel, Phi.points, tol=1e-12,
                         max_rank=math.ceil(8 * math.sqrt(len(Phi))))
    missed = float(np.sum(Phi.diag()) - np.sum(F**2))
    F = F - F.mean(axis=0)
    return (F, max(missed, 0.0)) if missed <= 1e-8 * np.sum(F**2) else None


def _by_factors(F, G, orders):
    """‖F' P G‖² for the permutation P of each row of orders."""
    step = max(1, 2**19 // max(1, G.size))
    values = [np.matmul(F.T, G[orders[b:b + step]])
              for b in range(0, len(orders), step)]
    return np.concatenate([np.einsum("bij,bij->b", V, V) for V in values])


# %% [13] Fast permutations
def _by_matrices(K, L, orders):
    """Σ K_ij L_π(i)π(j) for each row π of orders."""
    def visit(total, rows, _):
        for b in range(rows.start, rows.stop):
            order = orders[b]
            for a in range(0, len(K), 64):
                some = L[order[a:a + 64]].take(order[a:], axis=1)
                part = K[a:a + 64, a:]
                total[b] += (2 * np.einsum("ij,ij->", part, some)
                             - np.einsum("ij,ij->", part[:, :64],
                                         some[:, :64]))

    return reduce_tiles(visit, lambda: np.zeros(len(orders)),
                        len(orders), 1)


# %% [14] Fast permutations
def _permuted(Phi, Psi):
    """A function of permutations with the values n² T_π, a bound for
    them, and what counts as a tie."""
    n, eps = len(Phi), np.finfo(float).eps
    first = _factor(Phi)
    second = None if first is None else _factor(Psi)
    if second is not None and (first[0].shape[1] * second[0].shape[1]
                               <= 16 * n):
        (F, e), (G, f) = first, second
        p, q = np.linalg.norm(F.T @ F), np.linalg.norm(G.T @ G)
        delta = e * q + f * p + e * f
        statistics = partial(_by_factors, F, G)
    else:
        K, L = centre(Phi.gram()), centre(Psi.gram())
        p, q, delta = np.linalg.norm(K), np.linalg.norm(L), 0.0
        statistics = partial(_by_matrices, K, L)
    ties = (1e-10 + 4 * n * eps) * p * q + 16 * n * eps * (p + q) + delta
    return statistics, float(p * q), float(ties)


def _orders(n, B, rng):
    """The actual order, and B random ones in blocks."""
    order = np.arange(n)[None]
    yield order
    for done in range(0, B, 256):
        yield rng.permuted(np.repeat(order, min(256, B - done), axis=0),
                           axis=1)


# %% [15] Fast permutations
def hsic_test(k: Kernel, l: Kernel, X, Y, *, n_permutations: int = 999,
              rng=None) -> PermutationTest:
    """Test whether two variables are independent
    (:prf:ref:`cor-hsic-level`).

    The statistic is the biased estimate. Where both kernels have a
    small rank on the points, a permutation takes O(n r s) operations
    (:prf:ref:`prop-hsic-factors`), otherwise O(n²) and two stored
    Gram matrices. `hsic_gamma_test` stores none.

    Parameters
    ----------
    k, l : Kernel
        On any kind of points. They may be chosen by looking at the
        points of X and at those of Y, but not at who is paired with
        whom.
    X, Y : sequences of n points
        The pairs (x_i, y_i).
    n_permutations : int
        The number B of random permutations of Y.
    rng : seed or numpy.random.Generator, optional

    Returns
    -------
    PermutationTest
        For independent variables the p-value is at most α with a
        probability of at most α, for every n and B.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 30)
    >>> hsic_test(Gaussian(0.5), Gaussian(0.5), x, x**2,
    ...           n_permutations=199, rng=0).pvalue
    0.005
    """
    Phi, Psi = map(_near, paired(k, l, X, Y))
    n, B = len(Phi), check.whole(n_permutations, "n_permutations", 1)
    rng = check.generator(rng)
    (a, Phi), (b, Psi) = Phi.unit(), Psi.unit()
    statistics, bound, ties = _permuted(Phi, Psi)
    check.certain(bound, ties if bound else 0.0, "the largest possible n² "
                  "HSIC, in units of the kernels,")
    T = np.concatenate([*map(statistics, _orders(n, B, rng))])
    if T.min() < -1e-8 * bound - ties:
        raise ValueError("k and l must be positive definite, but the "
                         "squared norm is negative")
    pvalue = permutation_pvalue(T[0], T[1:], tol=ties)
    T = np.maximum(T, 0.0) * _in_units(1 / n**2, a * b, "k and l")
    return PermutationTest(float(T[0]), pvalue, T[1:])


# %% [16] The null distribution without permutations
def _tqs(rows, diagonal, squares):
    """t, q and s of a centred matrix, from sums of the matrix."""
    n = len(rows)
    d = diagonal - 2 * rows / n + rows.sum() / n**2
    return (d.sum(), (d * d).sum(),
            squares - 2 * (rows @ rows) / n + rows.sum() ** 2 / n**2)


def _null_moments(sums):
    """Mean and variance of T (:prf:ref:`thm-hsic-null-moments`)."""
    n = len(sums.K1)
    t, q, s = _tqs(sums.K1, sums.K0, sums.KK)
    t_, q_, s_ = _tqs(sums.L1, sums.L0, sums.LL)
    mean = t * t_ / (n - 1)
    second = (q * q_ / n
              + ((t**2 - q) * (t_**2 - q_) + 2 * (s - q) * (s_ - q_)
                 + 4 * q * q_) / math.perm(n, 2)
              + (2 * (2 * q - t**2) * (2 * q_ - t_**2)
                 + 4 * (2 * q - s) * (2 * q_ - s_)) / math.perm(n, 3)
              + (t**2 + 2 * s - 6 * q) * (t_**2 + 2 * s_ - 6 * q_)
              / math.perm(n, 4))
    return mean / n**2, max(second - mean**2, 0) / n**4


# %% [17] The null distribution without permutations
def hsic_null_moments(K, L) -> tuple[float, float]:
    """Mean and variance of the biased estimate over all permutations
    of the pairs, in O(n²) (:prf:ref:`thm-hsic-null-moments`).

    Parameters
    ----------
    K, L : (n, n) arrays
        Gram matrices of at least four pairs. Two arrays of Python
        integers or fractions (``dtype=object``) are treated exactly.

    Returns
    -------
    mean, variance : float
        Over the n! values of ``hsic_biased(K, L[pi][:, pi])``.

    Examples
    --------
    >>> K = np.diag([3, 0, 0, 0]).astype(object)
    >>> hsic_null_moments(K, K)
    (Fraction(27, 256), Fraction(243, 16384))
    """
    s = _gram_sums(K, L, at_least=4, squares=True)
    mean, variance = _null_moments(s)
    return (_in_units(mean, s.unit),
            _in_units(_in_units(variance, s.unit), s.unit))


# %% [18] The gamma approximation
@dataclass(frozen=True)
class GammaTest:
    """What a test with the gamma approximation has found: the null
    distribution is replaced by the gamma distribution with its mean and
    its standard deviation (:prf:ref:`thm-hsic-null-moments`).

    Attributes
    ----------
    statistic : float
        The value of the actual sample; large values speak against the
        hypothesis.
    pvalue : float
        The probability that a gamma variable is at least as large; 1
        if nothing but rounding errors varies.
    mean : float
        Mean of the statistic under the hypothesis. The function that
        returns the record says how it knows: `hsic_gamma_test` takes
        the exact mean over all permutations.
    std : float
        Its standard deviation under the hypothesis.
    """

    statistic: float
    pvalue: float
    mean: float
    std: float

    def __post_init__(self):
        for name in ("statistic", "pvalue", "mean", "std"):
            value = check.number(getattr(self, name), name)
            object.__setattr__(self, name, value)

    @property
    def null_distribution(self):
        """The gamma distribution with this mean and deviation, a frozen
        distribution of ``scipy.stats``."""
        if not (self.std > 0 and self.mean > 0):
            raise ValueError("null_distribution needs a positive mean and "
                             "std, but nothing varies here")
        return gamma((self.mean / self.std) ** 2,
                     scale=self.std * (self.std / self.mean))


# %% [19] The gamma approximation
def hsic_gamma_test(k: Kernel, l: Kernel, X, Y) -> GammaTest:
    """Test of independence without permutations: exact mean and
    variance (:prf:ref:`thm-hsic-null-moments`), gamma tail.

    Parameters
    ----------
    k, l : Kernel
        On any kind of points.
    X, Y : sequences of n >= 4 points
        The pairs (x_i, y_i).

    Returns
    -------
    GammaTest
        With an approximate p-value: its level is not guaranteed, as
        that of `hsic_test` is. Mean and std are exact, over all
        permutations. Computed in tiles, for any n.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 30)
    >>> hsic_gamma_test(Gaussian(0.5), Gaussian(0.5), x, x**2).pvalue < 1e-4
    True
    """
    Phi, Psi = map(_near, paired(k, l, X, Y, at_least=4))
    s = _tile_sums(Phi, Psi, squares=True)
    T, spread = _squared(_v_statistic(s), s, "k and l"), min(_traces(s))
    mean, variance = _null_moments(s)
    # Less may be the rounding of the kernels and of the sums.
    least = 1e-14 if spread else 0.0
    check.certain(spread, least, "the spread of the features, in units of "
                  "the kernels,")
    pvalue = 1.0
    if spread > least and variance > 1e-13 * mean**2:
        pvalue = float(gammaincc(mean**2 / variance, T * mean / variance))
    T, mean, std = (_in_units(value, s.unit, "k and l") for value in (
        T, max(mean, 0.0), math.sqrt(variance)))
    return GammaTest(T, pvalue, mean, std)


# %% [20] Two classes
def balanced_labels(y) -> np.ndarray:
    """Numbers for two classes: 1/n₊ and -1/n₋, with sum zero
    (:prf:ref:`thm-balanced-labels`).

    Parameters
    ----------
    y : sequence of n labels
        Numbers or strings, with exactly two different values.

    Returns
    -------
    (n,) array
        1/n₊ where y has the larger of its values, -1/n₋ elsewhere.

    Examples
    --------
    >>> balanced_labels(["no", "yes", "no", "no"]).round(3)
    array([-0.333,  1.   , -0.333, -0.333])
    """
    labels = check.plain_array([*as_sequence(y, "y")], "y")
    if (labels.ndim != 1 or labels.dtype.kind not in "biufUS"
            or labels.dtype.kind == "f" and not np.isfinite(labels).all()):
        raise ValueError("y must be a list of finite numbers or of strings,"
                         f" got shape {labels.shape} of {labels.dtype}")
    classes, which = np.unique(labels, return_inverse=True)
    if len(classes) != 2:
        raise ValueError("y must have exactly two different values, got "
                         f"{len(classes)}")
    plus = which == 1
    return np.where(plus, 1 / plus.sum(), -1 / (~plus).sum())


# %% [21] Greedy selection
@dataclass(frozen=True)
class FeatureSelection:
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


# %% [22] Greedy selection
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
    Y : sequence of n points
        n at least 4.
    n_features : int
        How many columns to select, from 1 to d.
    direction : "backward" or "forward"
        Remove columns from all, or add columns to none. Backward finds
        columns that matter together only.

    Returns
    -------
    FeatureSelection
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


# %% [23] Unmixing
def _pull(k, u, v):
    """HSIC_b and its derivatives by u and by v
    (:prf:ref:`prop-unmix-gradient`)."""
    n, one, U, V = len(u), np.ones(len(u)), Features(k, u), Features(k, v)
    p, q = U.dot(one) / n, V.dot(one) / n

    def visit(total, i, j):
        K, L = U.tile(i, j), V.tile(i, j)
        tilted = (K * (L - np.add.outer(q[i] - q.mean(), q[j])),
                  L * (K - np.add.outer(p[i] - p.mean(), p[j])))
        for row, (M, z) in enumerate(zip(tilted, (u, v))):
            total[row, i] += M.sum(axis=1)
            total[row + 2, i] += np.einsum("ij,j->i", M, z[j])
            if i != j:
                total[row, j] += M.sum(axis=0)
                total[row + 2, j] += np.einsum("ij,i->j", M, z[i])

    total = reduce_tiles(visit, lambda: np.zeros((4, n)), n)
    slopes = [-2 / (n * k.sigma) ** 2 * (z * ones - pulled)
              for z, ones, pulled in zip((u, v), total[:2], total[2:])]
    return float(total[0].sum()) / n**2, *slopes


def _unmix_objective(k, Z, flat):
    W = flat.reshape(2, -1)
    length = np.linalg.norm(W, axis=1, keepdims=True)
    unit = W / length
    value, *slopes = _pull(k, Z @ unit[0], Z @ unit[1])
    slope = np.array(slopes) @ Z
    slope -= np.sum(slope * unit, axis=1, keepdims=True) * unit
    return value, (slope / length).ravel()


# %% [24] Unmixing
@dataclass(frozen=True, eq=False, repr=False)
class Unmixing:
    """Two linear components that are nearly independent
    (:prf:ref:`prop-unmix-gradient`).

    Attributes
    ----------
    matrix : (2, d) array
        A, with rows scaled so that both components have variance one.
    value : float
        The biased HSIC of the two components.
    path : (steps, 2, d) array
        The matrices on the way, the start first.
    values : (steps,) array
        The biased HSIC of each of them.
    converged : bool
        Whether the gradient has become small.
    """

    matrix: np.ndarray
    value: float
    path: np.ndarray
    values: np.ndarray
    converged: bool

    def __repr__(self):
        return (f"Unmixing(value={self.value:.6g}, steps="
                f"{len(self.values) - 1}, converged={self.converged})")


# %% [25] Unmixing
def hsic_unmix(k: Gaussian, X, start, *, tol: float = 1e-6,
               max_steps: int = 200) -> Unmixing:
    """Two linear functions of a vector that are as independent as
    possible: a local minimum of HSIC (:prf:ref:`prop-unmix-gradient`).

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

    Returns
    -------
    Unmixing
        ``(X - X.mean(axis=0)) @ matrix.T`` are the components. Which of
        many minima is found depends on the start; for normal X there
        is a whole family (:prf:ref:`prop-unmix-normal`).
    """
    if not isinstance(k, Gaussian):
        raise ValueError(f"k must be Gaussian, got {k}")
    Z, back, forth = _whitened(as_points(X))
    W = _directions(start, forth)
    tol = check.tolerance(tol, zero=True)
    max_steps = check.whole(max_steps, "max_steps", 1)
    J = partial(_unmix_objective, k, Z)
    path, values = [W.ravel()], [J(W.ravel())[0]]

    def note(intermediate_result):
        path.append(intermediate_result.x.copy())
        values.append(intermediate_result.fun)

    found = minimize(J, path[0], jac=True, method="BFGS", callback=note,
                     options={"gtol": tol, "maxiter": max_steps})
    W = np.reshape(path, (len(path), 2, -1))
    W = W / np.linalg.norm(W, axis=2, keepdims=True)
    path, values = check.frozen(W @ back), check.frozen(values)
    return Unmixing(path[-1], float(values[-1]), path, values,
                    bool(np.abs(found.jac).max() <= tol))
