"""Bochner: kernels as averages of waves

The exported cells of the chapter ``book/bochner.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 136b4e88fdc6c5f4

# %% [1] Bochner: kernels as averages of waves
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gamma, gammaln, kv

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points, as_sequence
from rkhs_lit.kernels import (TILE, Gaussian, Kernel, Laplace, Pairs, Power,
                              Product, Scaled, Sinc, Sum, as_kernel,
                              _OnVectors, reduce_tiles, squared_distances)
from rkhs_lit.moore_aronszajn import _fixed


# %% [2] Mixtures of Gaussians
def _matern_start(nu, z):
    """M_nu(z) for 0 < nu <= 2, by Bessel functions."""
    if nu == 0.5:
        return np.exp(-z)
    if nu == 1.5:
        return (1 + z) * np.exp(-z)
    # Below this, K_nu overflows for nu > 1, and M_nu is 1 to rounding.
    w = np.maximum(z, 1e-300 if nu <= 1 else 1e-100)
    M = 2 ** (1 - nu) / gamma(nu) * w**nu * kv(nu, w)
    return np.where(z == 0, 1.0, np.minimum(M, 1.0))


def _matern(nu, z):
    z = np.minimum(z, 1e3)                    # e^-1000 is 0 already
    steps = math.ceil(nu) - 1
    start = nu - steps                        # in (0, 1]
    previous = _matern_start(start, z)
    if steps == 0:
        return previous
    current = _matern_start(start + 1, z)
    for order in start + np.arange(1, steps):
        factor = z**2 / (4 * order * (order - 1))
        previous, current = current, current + factor * previous
    return current


# %% [3] Mixtures of Gaussians
@dataclass(frozen=True)
class Matern(_OnVectors):
    """The Matérn kernel 2^(1-ν)/Γ(ν) z^ν K_ν(z) with
    z = √(2ν) ‖x - y‖ / σ (:prf:ref:`thm-matern`).

    Parameters
    ----------
    nu : float
        The smoothness ν, at most 1000. 1/2 gives `Laplace`, 3/2 and 5/2
        have closed forms, ν → ∞ gives `Gaussian`.
    sigma : float
        The width σ, scikit-learn's ``length_scale``.

    Examples
    --------
    >>> Matern(1.5, 1.0)([0.0, 1.0]).round(6)      # (1 + √3) e^-√3
    array([[1.      , 0.483358],
           [0.483358, 1.      ]])
    """

    nu: float
    sigma: float

    def __post_init__(self):
        object.__setattr__(
            self, "nu", check.positive(self.nu, "nu"))
        if self.nu > 1000:
            raise ValueError(f"nu must be at most 1000, got {self.nu}: use "
                             "Gaussian(sigma), which is its limit")
        object.__setattr__(
            self, "sigma", check.width(self.sigma, "sigma"))

    def _gram(self, X, Y):
        r = np.sqrt(squared_distances(X, Y))
        nu = float(self.nu)                  # a Fraction, a float32
        return _matern(nu, math.sqrt(2 * nu) / self.sigma * r)


# %% [4] Rules for spectral measures
def _log_density(kernel, omega):
    d, length = omega.shape[1], np.hypot.reduce(omega, axis=1)
    if isinstance(kernel, Sinc):
        inside = (np.abs(omega) <= np.pi / kernel.width).all(axis=1)
        return np.where(inside, d * math.log(kernel.width / (2 * np.pi)),
                        -np.inf)
    if isinstance(kernel, Gaussian):
        return (d * (math.log(kernel.sigma) - math.log(2 * np.pi) / 2)
                - (kernel.sigma * length) ** 2 / 2)
    if isinstance(kernel, (Laplace, Matern)):
        nu = getattr(kernel, "nu", 0.5)
        scale = math.log(kernel.sigma) - math.log(2 * nu) / 2
        growth = np.logaddexp(0, 2 * (scale + np.log(length)))
        return (gammaln(nu + d / 2) - gammaln(nu)
                + d * (scale - math.log(np.pi) / 2)
                - (nu + d / 2) * growth)
    if isinstance(kernel, Scaled):
        return np.log(kernel.c) + _log_density(kernel.kernel, omega)
    if isinstance(kernel, Sum):
        return np.logaddexp(_log_density(kernel.first, omega),
                            _log_density(kernel.second, omega))
    raise ValueError("kernel must have a spectral density that is known "
                     "here (Gaussian, Laplace, Matern, Sinc, and their "
                     f"sums and multiples), got {kernel!r}")


# %% [5] Rules for spectral measures
def spectral_density(kernel: Kernel, omega) -> np.ndarray:
    """The density of the spectral measure (:prf:ref:`thm-bochner`).

    Gaussian, Laplace and Matérn kernels by
    :prf:ref:`prop-gaussian-spectrum` and :prf:ref:`thm-matern-spectrum`;
    sums, multiples and sinc by :prf:ref:`prop-spectral-rules`. Times
    (2π)^d it is the Fourier transform of the kernel, and one over this
    is what the space charges for a wave (:prf:ref:`thm-fourier-space`).

    Parameters
    ----------
    kernel : Kernel
    omega : (n, d) array
        Frequencies; a 1-D array for kernels on the line.

    Returns
    -------
    (n,) array
        Of integral k(0) over all frequencies.

    Examples
    --------
    >>> (np.pi * spectral_density(Laplace(1.0), [0.0, 1.0])).round(6)
    array([1. , 0.5])
    """
    as_kernel(kernel)
    omega = as_points(omega, "omega")
    with np.errstate(divide="ignore", over="ignore"):
        p = np.exp(_log_density(kernel, omega))
    if not np.isfinite(p).all():
        raise ValueError("kernel has a width so large that its density "
                         "overflows")
    return p


# %% [6] Rules for spectral measures
def _frequencies(kernel, n, dim, rng):
    if isinstance(kernel, Gaussian):
        return rng.normal(size=(n, dim)) / kernel.sigma
    if isinstance(kernel, (Laplace, Matern)):
        nu = getattr(kernel, "nu", 0.5)
        G = rng.standard_gamma(nu, size=(n, 1))
        # For small nu a draw can underflow to 0: an infinite frequency.
        G = np.maximum(G, np.finfo(float).tiny)
        Z = rng.normal(size=(n, dim))
        return Z / np.sqrt(G / nu) / kernel.sigma
    if isinstance(kernel, Sinc):
        return rng.uniform(-1, 1, size=(n, dim)) * np.pi / kernel.width
    if isinstance(kernel, Scaled):
        return _frequencies(kernel.kernel, n, dim, rng)
    if type(kernel) in (Product, Power):      # no product on pairs
        factors = ([kernel.first, kernel.second]
                   if isinstance(kernel, Product)
                   else [kernel.kernel] * int(kernel.m))
        return sum((_frequencies(k, n, dim, rng) for k in factors),
                   np.zeros((n, dim)))
    if isinstance(kernel, Sum):
        first, second = (_frequencies(k, n, dim, rng)
                         for k in (kernel.first, kernel.second))
        share = _mass(kernel.first, dim) / (_mass(kernel, dim) or 1.0)
        return np.where(rng.random((n, 1)) < share, first, second)
    raise ValueError("kernel must be shift-invariant with a spectral "
                     "measure that is known here (Gaussian, Laplace, "
                     "Matern, Sinc, and their sums, multiples, products "
                     f"and powers), got {kernel!r}")


def _mass(kernel, dim):
    """k(0), the total mass of the spectral measure."""
    return float(kernel.diag(np.zeros((1, dim)))[0])


# %% [7] Rules for spectral measures
def spectral_sample(kernel: Kernel, n: int, *, dim: int,
                    rng) -> np.ndarray:
    """Frequencies drawn from the spectral measure of a kernel, divided
    by its mass (:prf:ref:`thm-bochner`).

    Gaussian, Laplace and Matérn kernels by
    :prf:ref:`prop-gaussian-spectrum` and :prf:ref:`thm-matern-spectrum`;
    sums, multiples, products, powers and sinc by
    :prf:ref:`prop-spectral-rules`.

    Parameters
    ----------
    kernel : Kernel
        Shift-invariant, not zero.
    n : int
        How many.
    dim : int
        The dimension d of the points.
    rng : seed or numpy.random.Generator

    Returns
    -------
    (n, dim) array
        Independent rows ω with E cos⟨ω, x - y⟩ = k(x, y) / k(0).
    """
    as_kernel(kernel)
    n, dim = check.whole(n, "n", 1), check.whole(dim, "dim", 1)
    with np.errstate(over="ignore", invalid="ignore"):
        omega = _frequencies(kernel, n, dim, check.generator(rng))
    if _mass(kernel, dim) == 0:
        raise ValueError("kernel must not be zero: a zero kernel has no "
                         "frequencies")
    if not np.isfinite(omega).all():
        raise ValueError("kernel has a width so small that frequencies "
                         "overflow")
    return omega


# %% [8] Which form wins?
@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """Cosines and sines with given frequencies (:prf:ref:`def-rff`).

    With q frequencies and D features, the first q columns are
    √(2 mass/D) cos(⟨ω_l, x⟩ + b_l) and the other D - q the sines of the
    first D - q frequencies. So D = 2q is the paired form, D = q the
    phase form, and D = 2q - 1 has pairs and one feature left over.

    Parameters
    ----------
    frequencies : (q, d) array
    phases : (q,) array
    n_features : int
        D, from q to 2q.
    mass : float
        k(0).
    """

    frequencies: np.ndarray
    phases: np.ndarray
    n_features: int
    mass: float = 1.0

    def __post_init__(self):
        omega = as_points(self.frequencies, "frequencies").copy()
        b = as_points(self.phases, "phases").ravel().copy()
        q, D = len(omega), check.whole(self.n_features, "n_features", 1)
        if np.shape(self.phases) != (q,):
            raise ValueError(f"phases must be {q} numbers, one for each "
                             f"frequency, got {np.shape(self.phases)}")
        if not q <= D <= 2 * q:
            raise ValueError(f"n_features must be from {q} to {2 * q} for "
                             f"{q} frequencies, got {D}")
        mass = check.nonnegative(self.mass, "mass")
        omega.setflags(write=False)
        b.setflags(write=False)
        for name, value in (("frequencies", omega), ("phases", b),
                            ("n_features", D), ("mass", mass)):
            object.__setattr__(self, name, value)

    def __call__(self, X) -> np.ndarray:
        """The features of the points X, an (n, n_features) array."""
        return _waves(as_points(X), self.frequencies, self.phases,
                      self.n_features, self.mass)


# %% [9] Which form wins?
def _waves(X, omega, b, D, mass):
    n, q = len(X), len(omega)
    if X.shape[1] != omega.shape[1]:
        raise ValueError("X must have points in dimension "
                         f"{omega.shape[1]}, got {X.shape[1]}")
    with np.errstate(over="ignore"):
        largest = np.abs(X).sum(axis=1).max() * np.abs(omega).max()
    if not np.isfinite(largest):
        raise ValueError("X must be smaller: ⟨ω, x⟩ overflows")
    scale, pairs = math.sqrt(2 / D) * math.sqrt(mass), D - q
    Z = np.empty((n, D))
    np.matmul(X, omega.T, out=Z[:, :q])

    def fill(total, i, j):
        alpha = Z[i, :q]
        if b.any():
            alpha += b
        alone = alpha[:, pairs:]
        np.cos(alone, out=alone)
        alone *= scale
        t = np.tan(alpha[:, :pairs] / 2)
        w = t * t
        w += 1
        np.divide(2 * scale, w, out=w)
        np.multiply(w, t, out=Z[i, q:])
        np.subtract(w, scale, out=Z[i, :pairs])

    if n <= TILE:
        fill(0, slice(n), None)              # not worth a thread
    else:
        reduce_tiles(fill, lambda: 0, n, 1)
    return Z


# %% [10] Which form wins?
def random_fourier_features(kernel: Kernel, n_features: int, *, dim: int,
                            rng, paired: bool = True) -> FourierFeatures:
    """A random feature map whose inner products have the kernel as
    their mean (:prf:ref:`thm-rff-unbiased`).

    Parameters
    ----------
    kernel : Kernel
        One that `spectral_sample` knows.
    n_features : int
        The number D of features. The error falls like 1/√D, with the
        variance of `rff_variance`.
    dim : int
        The dimension of the points.
    rng : seed or numpy.random.Generator
    paired : bool
        Cosine and sine of each frequency (the default, better for
        Gaussian, Laplace and Matérn kernels with ν >= 1/2:
        :prf:ref:`thm-pairs-win`), or one cosine with a random phase.
        An odd D in the paired form has one feature with a phase.

    Returns
    -------
    FourierFeatures
        A function: ``map(X)`` has shape (n, n_features), and
        ``map(X) @ map(Y).T`` estimates ``kernel(X, Y)``.

    Examples
    --------
    >>> z = random_fourier_features(Gaussian(1.0), 2000, dim=1, rng=0)
    >>> Z = z([0.0, 1.0])
    >>> bool(abs(Z @ Z.T - Gaussian(1.0)([0.0, 1.0])).max() < 0.05)
    True
    """
    D = check.whole(n_features, "n_features", 1)
    paired = check.flag(paired, "paired")
    rng = check.generator(rng)
    q = (D + 1) // 2 if paired else D
    omega = spectral_sample(kernel, q, dim=dim, rng=rng)
    b = np.zeros(q)
    alone = slice(D - q, q)              # those without a sine
    b[alone] = rng.uniform(0, 2 * np.pi, size=2 * q - D)
    return FourierFeatures(omega, b, D, _mass(kernel, omega.shape[1]))


# %% [11] Which form wins?
def rff_variance(kernel: Kernel, X, Y, n_features: int, *,
                 paired: bool = True) -> np.ndarray:
    """The exact variance of z(x)'z(y) (:prf:ref:`thm-rff-variance`).

    Parameters
    ----------
    kernel : Kernel
        One that `spectral_sample` knows.
    X, Y : (n, d) and (m, d) arrays
    n_features : int
    paired : bool
        As for `random_fourier_features`.

    Returns
    -------
    (n, m) array
    """
    X, Y = as_points(X), as_points(Y, "Y")
    D = check.whole(n_features, "n_features", 1)
    paired = check.flag(paired, "paired")
    # Refuses kernels that are not shift-invariant.
    spectral_sample(kernel, 1, dim=X.shape[1], rng=0)
    c = _mass(kernel, X.shape[1])
    with np.errstate(over="ignore"):
        V = (1 + kernel(2 * X, 2 * Y) / c) / 2 - (kernel(X, Y) / c) ** 2
        V = np.maximum(V, 0.0)                # rounding at x = y
        pairs = D // 2 if paired else 0
        alone = D - 2 * pairs
        variance = c * (4 * pairs * V + alone * (V + 0.5)) / D / D * c
    if not np.isfinite(variance).all():
        raise ValueError("kernel must be smaller: the variance overflows "
                         f"for k(0) = {c:.6g}")
    return variance


# %% [12] Without luck: pivoted Cholesky
def _step(kernel, X, G, pivots, d):
    """The next column f, and what it leaves of the diagonal d."""
    p, r = int(d.argmax()), len(pivots)
    column = kernel._block(X, X[p:p + 1])[:, 0] - G[:r, p] @ G[:r]
    f = column / math.sqrt(d[p])
    f[pivots], f[p] = 0.0, math.sqrt(d[p])     # exact, despite rounding
    return p, f, d - f**2


# %% [13] Without luck: pivoted Cholesky
def pivoted_cholesky(kernel: Kernel, X, *, tol: float = 1e-6,
                     max_rank: int | None = None,
                     return_pivots: bool = False):
    """A factor F with F F' ≈ K(X), from few columns of K
    (:prf:ref:`thm-pivoted-cholesky`).

    Takes O(n r²) operations and O(n r) memory; K is never formed.

    Parameters
    ----------
    kernel : Kernel
        Positive definite, on any kind of points. A function that is not
        is reported if the diagonal of K - F F' shows it, not always.
    X : sequence of n points
    tol : float
        Stop when tr(K - F F') <= tol tr(K).
    max_rank : int, optional
        Stop at this rank even if the error is larger; by default n.
    return_pivots : bool

    Returns
    -------
    F : (n, r) array
        K - F F' is positive definite, and zero at the pivots.
    pivots : (r,) array of int
        Only with ``return_pivots=True``. ``F[pivots]`` is lower
        triangular.

    Examples
    --------
    Three points of which two coincide have a Gram matrix of rank two:

    >>> pivoted_cholesky(Gaussian(1.0), [0.0, 5.0, 0.0]).shape
    (3, 2)
    """
    as_kernel(kernel, definite=True)
    tol = check.tolerance(tol, zero=True)
    return_pivots = check.flag(return_pivots, "return_pivots")
    X = kernel._prepare(X, "X")          # checked, with features, once
    with np.errstate(over="ignore", invalid="ignore"):
        d = check.finite(kernel._diag(X), "the kernel")
        trace = d.sum()
    if not np.isfinite(trace):
        raise ValueError("kernel must be smaller: the trace of its Gram "
                         "matrix overflows")
    max_rank = len(d) if max_rank is None else min(
        len(d), check.whole(max_rank, "max_rank", 1))
    if d.min() < 0:
        raise ValueError("kernel must be positive definite, but k(x, x) = "
                         f"{d.min():.6g} at point {d.argmin()}")
    G, pivots = _columns(kernel, X, d, tol, max_rank)
    F = G.T
    return (F, np.array(pivots, dtype=int)) if return_pivots else F


# %% [14] Without luck: pivoted Cholesky
def _columns(kernel, X, d, tol, max_rank):
    enough, largest = tol * d.sum(), d.max()
    G, pivots = np.empty((min(max_rank, 64), len(d))), []
    while len(pivots) < max_rank and d.sum() > enough:
        r = len(pivots)
        if d.max() <= 16 * (r + 1) * np.finfo(float).eps * largest:
            break
        p, f, d = _step(kernel, X, G, pivots, d)
        if not d.min() >= -1e-8 * largest:
            raise ValueError("kernel must be positive definite, but what "
                             "is left of its Gram matrix has the diagonal "
                             f"entry {d.min():.6g}")
        d = np.maximum(d, 0.0)
        if r == len(G):
            G = np.concatenate([G, np.empty((min(r, max_rank - r),
                                             len(d)))])
        G[r] = f
        pivots.append(p)
    return G[:len(pivots)], pivots


# %% [15] Nyström features, and why the two are one
@dataclass(frozen=True, eq=False, repr=False)
class NystromFeatures:
    """The features L⁻¹ K(U, x) of landmarks U (:prf:ref:`thm-nystrom`).

    Made by `nystrom_features`.

    Parameters
    ----------
    kernel : Kernel
    landmarks : sequence of r points
        With an invertible Gram matrix.
    factor : (r, r) array
        Lower triangular L with L L' = kernel(landmarks).
    """

    kernel: Kernel
    landmarks: Sequence
    factor: np.ndarray

    def __post_init__(self):
        as_kernel(self.kernel, "kernel")
        U = as_sequence(self.landmarks, "landmarks")
        self.kernel._prepare(U, "landmarks")     # says what is wrong
        object.__setattr__(self, "landmarks", _fixed(U))
        r, L = len(U), as_points(self.factor, "factor").copy()
        if L.shape != (r, r) or not (L.diagonal() > 0).all() or (
                np.triu(L, 1).any()):
            raise ValueError(f"factor must be an ({r}, {r}) lower "
                             "triangular array with a positive diagonal, "
                             f"got shape {L.shape}")
        L.setflags(write=False)
        object.__setattr__(self, "factor", L)

    def __repr__(self):
        return f"NystromFeatures({self.kernel}, r={len(self.factor)})"

    def __call__(self, X) -> np.ndarray:
        """The features of the points X, an (n, r) array."""
        X = as_sequence(X)
        try:
            K = self.kernel(X, self.landmarks)
        except ValueError as error:
            self.kernel._prepare(X, "X")         # says what X must be
            raise ValueError("X does not suit the landmarks: "
                             f"{error}") from None
        return solve_triangular(self.factor, K.T, lower=True,
                                overwrite_b=True).T


# %% [16] Nyström features, and why the two are one
def _take(X, index):
    if isinstance(X, Pairs):
        return Pairs(_take(X.first, index), _take(X.second, index))
    if isinstance(X, np.ndarray):
        return X[index]
    return [X[i] for i in index]


def nystrom_features(kernel: Kernel, landmarks) -> NystromFeatures:
    """Features with inner products K(x, U) K(U)⁺ K(U, y): the kernel,
    projected on the span of the landmarks U (:prf:ref:`thm-nystrom`).

    Parameters
    ----------
    kernel : Kernel
        Positive definite, on any kind of points.
    landmarks : sequence of m points
        May repeat points. The pivots of `pivoted_cholesky` are a good
        choice.

    Returns
    -------
    NystromFeatures
        A function: ``map(X)`` has shape (n, r), where r <= m is the
        numerical rank of the landmarks' Gram matrix, and
        ``map(X) @ map(Y).T`` approximates ``kernel(X, Y)``, exactly if
        one of the points is a landmark.

    Examples
    --------
    >>> phi = nystrom_features(Gaussian(1.0), [0.0, 1.0, 1.0])
    >>> phi([0.0, 0.5, 1.0]).shape
    (3, 2)
    """
    as_kernel(kernel, definite=True)
    landmarks = as_sequence(landmarks, "landmarks")
    kernel._prepare(landmarks, "landmarks")
    F, pivots = pivoted_cholesky(kernel, landmarks, tol=0,
                                 return_pivots=True)
    if len(pivots) == 0:
        raise ValueError("landmarks must have k(u, u) > 0 for at least one "
                         "of them")
    return NystromFeatures(kernel, _take(landmarks, pivots), F[pivots])
