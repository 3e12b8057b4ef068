"""Bochner: kernels as averages of waves

The exported cells of the chapter ``book/bochner.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: f6f06bbb75af2ee6

# %% [1] Bochner: kernels as averages of waves
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gamma, gammaln, kv

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points
from rkhs_lit.kernels import (Gaussian, Kernel, Laplace, Power, Product,
                              Scaled, Sinc, Sum, as_kernel, reduce_tiles,
                              squared_distances)
from rkhs_lit.moore_aronszajn import Features


# %% [2] Mixtures of Gaussians
def _matern(nu, z):
    """M_ν(z): Bessel functions of order up to 2, then the recursion."""
    z = np.minimum(z, 1e3)                    # e^-1000 is 0 already

    def bessel(nu):
        if nu == 0.5:
            return np.exp(-z)
        if nu == 1.5:
            return (1 + z) * np.exp(-z)
        # Below this, K_ν overflows for ν > 1, and M_ν is 1 to rounding.
        w = np.maximum(z, 1e-300 if nu <= 1 else 1e-100)
        M = 2 ** (1 - nu) / gamma(nu) * w**nu * kv(nu, w)
        return np.where(z == 0, 1.0, np.minimum(M, 1.0))

    steps = math.ceil(nu) - 1
    orders = nu - steps + np.arange(steps + 1)      # from (0, 1] up to ν
    M = [bessel(order) for order in orders[:2]]
    for v in orders[1:-1]:
        M = M[1], M[1] + z**2 / (4 * v * (v - 1)) * M[0]
    return M[-1]


@dataclass(frozen=True)
class Matern(Kernel):
    """The Matérn kernel 2^(1-ν)/Γ(ν) z^ν K_ν(z) with
    z = √(2ν) ‖x - y‖ / σ (:prf:ref:`thm-matern`).

    The smoothness ν is at most 1000; 1/2 gives `Laplace`, 3/2 and 5/2 have
    closed forms, ν → ∞ gives `Gaussian`. In scikit-learn's words σ is
    ``length_scale``.

    >>> Matern(1.5, 1.0)([0.0, 1.0]).round(6)      # (1 + √3) e^-√3
    array([[1.      , 0.483358],
           [0.483358, 1.      ]])
    """

    nu: float
    sigma: float

    _prepare = staticmethod(as_points)

    def __post_init__(self):
        wanted = "from 1e-300 to 1000 (above, use its limit Gaussian)"
        vars(self).update(
            nu=check.number(self.nu, "nu", wanted, 1e-300, 1000),
            sigma=check.width(self.sigma, "sigma"))

    def _gram(self, X, Y):
        r = np.sqrt(squared_distances(X, Y))
        return _matern(self.nu, math.sqrt(2 * self.nu) / self.sigma * r)

    def _diag(self, X):
        return np.ones(len(X))


# %% [3] Rules for spectral measures
def _log_density(kernel, omega):
    d, length = omega.shape[1], np.hypot.reduce(omega, axis=1)
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
    if isinstance(kernel, Sinc):
        inside = (np.abs(omega) <= np.pi / kernel.width).all(axis=1)
        return np.where(inside, d * math.log(kernel.width / (2 * np.pi)),
                        -np.inf)
    if isinstance(kernel, Scaled):
        return np.log(kernel.c) + _log_density(kernel.kernel, omega)
    if isinstance(kernel, Sum):
        return np.logaddexp(_log_density(kernel.first, omega),
                            _log_density(kernel.second, omega))
    raise ValueError("kernel must have a spectral density that is known "
                     f"here, got {kernel!r}")


def spectral_density(kernel: Kernel, omega) -> np.ndarray:
    """The density of the spectral measure (:prf:ref:`thm-bochner`), of
    integral k(0) over all frequencies.

    Gaussian, Laplace and Matérn kernels by
    :prf:ref:`prop-gaussian-spectrum` and :prf:ref:`thm-matern-spectrum`;
    sums, multiples and sinc by :prf:ref:`prop-spectral-rules`. Times
    (2π)^d it is the Fourier transform of the kernel, and one over this
    is what the space charges for a wave (:prf:ref:`thm-fourier-space`).
    The frequencies ω are the rows of an (n, d) array.

    >>> (np.pi * spectral_density(Laplace(1.0), [0.0, 1.0])).round(6)
    array([1. , 0.5])
    """
    as_kernel(kernel)
    omega = as_points(omega, "omega")
    with np.errstate(divide="ignore", over="ignore"):
        return check.finite(np.exp(_log_density(kernel, omega)), "kernel")


# %% [4] Rules for spectral measures
def _mass(kernel, dim):
    """k(0), the total mass of the spectral measure."""
    return float(kernel.diag(np.zeros((1, dim)))[0])


def _frequencies(kernel, n, dim, rng):
    if isinstance(kernel, Gaussian):
        return rng.normal(size=(n, dim)) / kernel.sigma
    if isinstance(kernel, (Laplace, Matern)):
        nu = getattr(kernel, "nu", 0.5)
        G = rng.standard_gamma(nu, size=(n, 1))
        # For small ν a draw can underflow to 0: an infinite frequency.
        G = np.maximum(G, np.finfo(float).tiny)
        Z = rng.normal(size=(n, dim))
        return Z / np.sqrt(G / nu) / kernel.sigma
    if isinstance(kernel, Sinc):
        return rng.uniform(-1, 1, size=(n, dim)) * np.pi / kernel.width
    if isinstance(kernel, Scaled):
        return _frequencies(kernel.kernel, n, dim, rng)
    if isinstance(kernel, Power):
        return sum((_frequencies(kernel.kernel, n, dim, rng)
                    for _ in range(int(kernel.m))), np.zeros((n, dim)))
    if type(kernel) in (Product, Sum):        # no product on pairs
        first, second = (_frequencies(k, n, dim, rng)
                         for k in (kernel.first, kernel.second))
        if isinstance(kernel, Product):
            return first + second
        share = _mass(kernel.first, dim) / (_mass(kernel, dim) or 1.0)
        return np.where(rng.random((n, 1)) < share, first, second)
    raise ValueError("kernel must be shift-invariant with a spectral "
                     f"measure that is known here, got {kernel!r}")


def spectral_sample(kernel: Kernel, n: int, *, dim: int,
                    rng=None) -> np.ndarray:
    """Independent frequencies ω, the rows of an (n, dim) array, with
    E cos⟨ω, x - y⟩ = k(x, y) / k(0) (:prf:ref:`thm-bochner`).

    For the kernels of `spectral_density`, if not zero, and their products
    and powers (:prf:ref:`prop-spectral-rules`), on points in dimension
    `dim`.
    """
    as_kernel(kernel)
    n, dim = check.whole(n, "n", 1), check.whole(dim, "dim", 1)
    with np.errstate(over="ignore", invalid="ignore"):
        omega = _frequencies(kernel, n, dim, check.generator(rng))
    if _mass(kernel, dim) == 0:
        raise ValueError("kernel must not be zero: a zero kernel has no "
                         "frequencies")
    return check.finite(omega, "kernel")


# %% [5] Which form wins?
@dataclass(frozen=True, eq=False)
class FourierFeatures(check.Record):
    """Cosines and sines with given frequencies (:prf:ref:`def-rff`).

    With q frequencies and D features, the first q columns are
    √(2 mass/D) cos(⟨ω_l, x⟩ + b_l) and the other D - q the sines of the
    first D - q frequencies. So D = 2q is the paired form, D = q the
    phase form, and D = 2q - 1 has pairs and one feature left over.

    Parameters
    ----------
    frequencies, phases : (q, d) and (q,) arrays
    n_features, mass : D, from q to 2q, and k(0)
    """

    frequencies: np.ndarray
    phases: np.ndarray
    n_features: int
    mass: float = 1.0

    def __post_init__(self):
        omega = check.frozen(as_points(self.frequencies, "frequencies"))
        q, D = len(omega), check.whole(self.n_features, "n_features", 1)
        if not q <= D <= 2 * q:
            raise ValueError(f"n_features must be from {q} to {2 * q} for "
                             f"{q} frequencies, got {D}")
        vars(self).update(
            frequencies=omega, n_features=D,
            phases=check.vector(self.phases, "phases", q),
            mass=check.nonnegative(self.mass, "mass"))

    def __call__(self, X) -> np.ndarray:
        """The features of the points X, an (n, n_features) array."""
        X, omega, D = as_points(X), self.frequencies, self.n_features
        if X.shape[1] != omega.shape[1]:
            raise ValueError("X must have points in dimension "
                             f"{omega.shape[1]}, got {X.shape[1]}")
        scale, q = math.sqrt(2 / D) * math.sqrt(self.mass), len(omega)
        Z, pairs = np.empty((len(X), D)), D - q

        def fill(total, i, j):
            with np.errstate(over="ignore", invalid="ignore"):
                alpha = check.finite(X[i] @ omega.T + self.phases, "X")
            t = np.tan(alpha[:, :pairs] / 2)
            w = 2 * scale / (1 + t * t)
            Z[i, :pairs], Z[i, q:] = w - scale, w * t
            Z[i, pairs:q] = scale * np.cos(alpha[:, pairs:])

        reduce_tiles(fill, lambda: 0, len(X), 1)
        return Z


# %% [6] Which form wins?
def random_fourier_features(kernel: Kernel, n_features: int, *, dim: int,
                            rng=None, paired: bool = True,
                            ) -> FourierFeatures:
    """A random feature map whose inner products have the kernel as
    their mean: ``map(X) @ map(Y).T`` estimates ``kernel(X, Y)``
    (:prf:ref:`thm-rff-unbiased`).

    Kernel, `dim` and `rng` as in `spectral_sample`. With D features the
    error falls like 1/√D, with the variance of `rff_variance`. They are
    the cosine and the sine of each frequency (better for Gaussian, Laplace
    and Matérn kernels with ν >= 1/2: :prf:ref:`thm-pairs-win`), or with
    ``paired=False`` one cosine with a random phase. An odd D in the paired
    form has one feature with a phase.

    >>> z = random_fourier_features(Gaussian(1.0), 2000, dim=1, rng=0)
    >>> Z = z([0.0, 1.0])
    >>> bool(abs(Z @ Z.T - Gaussian(1.0)([0.0, 1.0])).max() < 0.05)
    True
    """
    D, rng = check.whole(n_features, "n_features", 1), check.generator(rng)
    q = (D + 1) // 2 if check.flag(paired, "paired") else D
    omega = spectral_sample(kernel, q, dim=dim, rng=rng)
    alone = rng.uniform(0, 2 * np.pi, size=2 * q - D)    # have no sine
    b = np.append(np.zeros(D - q), alone)
    return FourierFeatures(omega, b, D, _mass(kernel, omega.shape[1]))


def rff_variance(kernel: Kernel, X, Y, n_features: int, *,
                 paired: bool = True) -> np.ndarray:
    """The exact variances of z(x_i)'z(y_j), an (n, m) array, where z is
    made by `random_fourier_features` (:prf:ref:`thm-rff-variance`)."""
    X, Y = as_points(X), as_points(Y, "Y")
    D = check.whole(n_features, "n_features", 1)
    pairs = D // 2 if check.flag(paired, "paired") else 0
    # Refuses kernels that are not shift-invariant.
    spectral_sample(kernel, 1, dim=X.shape[1], rng=0)
    c, alone = _mass(kernel, X.shape[1]), D - 2 * pairs
    with np.errstate(over="ignore"):
        V = (1 + kernel(2 * X, 2 * Y) / c) / 2 - (kernel(X, Y) / c) ** 2
        V = np.maximum(V, 0.0)                # rounding at x = y
        variance = c * (4 * pairs * V + alone * (V + 0.5)) / D / D * c
    return check.finite(variance, "kernel")


# %% [7] Without luck: pivoted Cholesky
def pivoted_cholesky(kernel: Kernel, X, *, tol: float = 1e-6,
                     max_rank: int | None = None,
                     return_pivots: bool = False):
    """A factor F with F F' ≈ K(X), from few columns of K
    (:prf:ref:`thm-pivoted-cholesky`).

    Takes O(n r²) operations and O(n r) memory; K is never formed. A
    kernel that is not positive definite is reported if the diagonal of
    K - F F' shows it, not always.

    Parameters
    ----------
    kernel, X : Kernel, sequence of n points of any kind
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
        With ``return_pivots=True``; ``F[pivots]`` is lower triangular.

    Examples
    --------
    Three points of which two coincide have a Gram matrix of rank two:

    >>> pivoted_cholesky(Gaussian(1.0), [0.0, 5.0, 0.0]).shape
    (3, 2)
    """
    Phi = Features(kernel, X)
    n, d, P = Phi.n, Phi.diag(), []          # d: the diagonal of R = K
    tol = check.number(tol, "tol", "a number between 0 and 1", 0.0,
                       1 - 2.0**-53)
    if return_pivots is not False:
        return_pivots = check.flag(return_pivots, "return_pivots")
    max_rank = n if max_rank is None else min(
        n, check.whole(max_rank, "max_rank", 1))
    with np.errstate(over="ignore"):
        trace, largest = d.sum(), d.max()
    if not np.isfinite(trace):
        raise ValueError("kernel must be smaller: the trace of its Gram "
                         "matrix overflows")
    G = np.empty((min(max_rank, 64), n))     # F', its rows filled so far
    while (r := len(P)) < max_rank and d.sum() > tol * trace:
        p = int(d.argmax())
        if d[p] <= 16 * (r + 1) * np.finfo(float).eps * largest:
            break                            # only rounding is left
        K_p = Phi.gram(None, columns=slice(p, p + 1))[:, 0]
        f = (K_p - G[:r, p] @ G[:r]) / math.sqrt(d[p])
        f[P], f[p] = 0.0, math.sqrt(d[p])    # exact, despite rounding
        d = d - f**2
        if not d.min() >= -1e-8 * largest:
            raise ValueError("kernel must be positive definite, but what "
                             "is left of its Gram matrix has the diagonal "
                             f"entry {d.min():.6g}")
        if r == len(G):                      # full: twice the room
            G = np.concatenate([G, np.empty((min(r, max_rank - r), n))])
        G[r], d = f, np.maximum(d, 0.0)
        P.append(p)
    F = G[:len(P)].T
    return (F, np.array(P, dtype=int)) if return_pivots else F


# %% [8] Nyström features, and why the two are one
@dataclass(frozen=True, eq=False, repr=False)
class NystromFeatures(check.Record):
    """The features L⁻¹ K(U, x) of landmarks U, for the lower triangular
    factor L of their Gram matrix (:prf:ref:`thm-nystrom`). Made by
    `nystrom_features`."""

    kernel: Kernel
    landmarks: Sequence
    factor: np.ndarray

    def __post_init__(self):
        Phi = Features(self.kernel, self.landmarks, "landmarks")
        vars(self).update(landmarks=Phi.points, span=Phi,
                          factor=check.frozen(self.factor))

    def __repr__(self):
        return f"NystromFeatures({self.kernel}, r={len(self.factor)})"

    def __call__(self, X) -> np.ndarray:
        """The features of the points X, an (n, r) array."""
        K = Features(self.kernel, X).gram(self.span)
        return solve_triangular(self.factor, K.T, lower=True,
                                overwrite_b=True).T


def nystrom_features(kernel: Kernel, landmarks) -> NystromFeatures:
    """Features with inner products K(x, U) K(U)⁺ K(U, y): the kernel,
    projected on the span of the landmarks U (:prf:ref:`thm-nystrom`).

    As many features as the Gram matrix of the landmarks has numerical
    rank; exact where one of x and y is a landmark. The pivots of
    `pivoted_cholesky` are a good choice.

    >>> phi = nystrom_features(Gaussian(1.0), [0.0, 1.0, 1.0])
    >>> phi([0.0, 0.5, 1.0]).shape
    (3, 2)
    """
    Phi = Features(kernel, landmarks, "landmarks")
    F, P = pivoted_cholesky(kernel, Phi, tol=0, return_pivots=True)
    if len(P) == 0:
        raise ValueError("landmarks must have k(u, u) > 0 for at least one "
                         "of them")
    return NystromFeatures(kernel, Phi[P], F[P])
