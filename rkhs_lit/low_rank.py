"""Low rank: a thin factor for a large matrix"""
# The exported cells of book/low_rank.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: fb6228cc7f3688c8

# %% [1] Low rank: a thin factor for a large matrix
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

import rkhs_lit.conventions as check
from rkhs_lit.bochner import spectral_sample
from rkhs_lit.conventions import as_points
from rkhs_lit.kernels import Gaussian
from rkhs_lit.moore_aronszajn import Features
from rkhs_lit.rules import Kernel
from rkhs_lit.tiles import TILE, reduce_tiles

# %% [2] Which form wins?
@dataclass(frozen=True, eq=False)
class FourierFeatures(check.Record):
    """Cosines and sines of q frequencies ω_l, the rows of a (q, d) array
    (:prf:ref:`def-rff`).

    Of the D features the first q are √(2 mass/D) cos(⟨ω_l, x⟩ + b_l), the
    other D - q the sines of the first D - q frequencies. So D = 2q is the
    paired form and D = q the phase form. The mass is k(0).
    """

    frequencies: np.ndarray
    phases: np.ndarray
    n_features: int
    mass: float = 1.0

    def __post_init__(self):
        omega = check.frozen(as_points(self.frequencies, "frequencies"))
        q, D = len(omega), check.whole(self.n_features, "n_features")
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
        check.same_dimension(X, omega, "X", "the frequencies")
        scale, q = math.sqrt(2 / D) * math.sqrt(self.mass), len(omega)
        Z, pairs = np.empty((len(X), D)), D - q

        def fill(_, i, j):
            with np.errstate(over="ignore", invalid="ignore"):
                alpha = check.finite(X[i] @ omega.T + self.phases, "X")
            t = np.tan(alpha / 2)
            w = 2 * scale / (1 + t * t)
            Z[i, :q], Z[i, q:] = w - scale, (w * t)[:, :pairs]

        reduce_tiles(fill, None, len(X), 1)
        return Z

# %% [3] Which form wins?
def random_fourier_features(kernel: Kernel, n_features: int, *, dim: int,
                            rng=None, paired: bool = True,
                            ) -> FourierFeatures:
    """A random feature map whose inner products have the kernel as
    their mean: ``map(X) @ map(Y).T`` estimates ``kernel(X, Y)``
    (:prf:ref:`thm-rff-unbiased`).

    Kernel, `dim` and `rng` as in `spectral_sample`. The features are the
    cosine and the sine of each frequency (better for Gaussian, Laplace and
    Matérn kernels with ν >= 1/2: :prf:ref:`thm-pairs-win`), or if not
    `paired`, and for the last if D is odd, a cosine with a random phase.

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
    c, = kernel.diag(omega[:1])              # k(0), at any point
    return FourierFeatures(omega, b, D, c)


def rff_variance(kernel: Kernel, X, Y, n_features: int, *,
                 paired: bool = True) -> np.ndarray:
    """The exact variances of z(x_i)'z(y_j), an (n, m) array, where z is
    made by `random_fourier_features` (:prf:ref:`thm-rff-variance`)."""
    X, Y = as_points(X), as_points(Y, "Y")
    D = check.whole(n_features, "n_features", 1)
    pairs = D // 2 if check.flag(paired, "paired") else 0
    # Refuses kernels that are not shift-invariant.
    spectral_sample(kernel, 1, dim=X.shape[1], rng=0)
    (c,), alone = kernel.diag(X[:1]), D - 2 * pairs         # c = k(0)
    with np.errstate(over="ignore"):
        V = (1 + kernel(2 * X, 2 * Y) / c) / 2 - (kernel(X, Y) / c) ** 2
        V = np.maximum(V, 0.0)                # rounding at x = y
        variance = c * (4 * pairs * V + alone * (V + 0.5)) / D / D * c
    return check.finite(variance, "kernel")

# %% [4] Without luck: pivoted Cholesky
def pivoted_cholesky(kernel: Kernel, X, *, tol: float = 1e-6,
                     max_rank: int | None = None,
                     return_pivots: bool = False):
    """A factor F with F F' ≈ K(X), from few columns of K
    (:prf:ref:`thm-pivoted-cholesky`): an (n, r) array, and with
    ``return_pivots=True`` also the (r,) array of the pivots.

    Stops when tr(K - F F') <= tol tr(K), or at the rank `max_rank`. Then
    K - F F' is positive definite, and zero at the pivots; ``F[pivots]`` is
    lower triangular. Takes O(n r²) operations and O(n r) memory. A negative
    entry on the diagonal is reported. Points that coincide cost one column:

    >>> pivoted_cholesky(Gaussian(1.0), [0.0, 5.0, 0.0]).shape
    (3, 2)
    """
    known = isinstance(X, Features) and X.kernel is kernel
    Phi = X if known else Features(kernel, X)
    n, d, P = Phi.n, Phi.diag(), []          # d: the diagonal of R = K
    tol = check.number(tol, "tol", "between 0 and 1", 0.0, 1 - 2.0**-53)
    if return_pivots is not False:
        check.flag(return_pivots, "return_pivots")
    max_rank = n if max_rank is None else min(
        n, check.whole(max_rank, "max_rank", 1))
    with np.errstate(over="ignore"):
        trace, largest = d.sum(), d.max()
    some = slice(None, None, 1 + n // 64)
    if trace == np.inf or not trace and Phi.gram(None, some, some).any():
        raise ValueError(f"{Phi.kernel_name} must have a finite trace, and "
                         "must be zero if its diagonal is")
    G = np.empty((min(max_rank, 64), n))     # F', its rows filled so far
    while (r := len(P)) < max_rank and d.sum() > tol * trace:
        p = int(d.argmax())
        if d[p] <= 16 * (r + 1) * np.finfo(float).eps * largest:
            break                            # only rounding is left
        K_p = Phi.gram(None, columns=slice(p, p + 1))[:, 0]
        f = (K_p - G[:r, p] @ G[:r]) / math.sqrt(d[p])   # R e_p / √R_pp
        f[P], f[p] = 0.0, math.sqrt(d[p])    # exact, despite rounding
        d = d - f**2
        if not d.min() >= -1e-8 * largest:
            raise ValueError("kernel must be positive definite, but what "
                             "is left of its Gram matrix has the diagonal "
                             f"entry {d.min():.6g}")
        if r == len(G):                      # full: twice the room
            G = np.concatenate([G, np.empty_like(G)])
        G[r], d = f, np.maximum(d, 0.0)
        P.append(p)
    F = G[:len(P)].T
    return (F, np.array(P, dtype=int)) if return_pivots else F

# %% [5] Nyström features, and why the two are one
@dataclass(frozen=True, eq=False, repr=False)
class NystromFeatures(check.Record):
    """The features L⁻¹ K(U, x) of landmarks U with the Gram matrix L L'
    (:prf:ref:`thm-nystrom`). Made by `nystrom_features`."""

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
        Phi, few = Features(self.kernel, X), max(TILE**2 // self.span.n, 1)
        K = np.concatenate([Phi.gram(self.span, slice(i, i + few))
                            for i in range(0, Phi.n, few)])
        return solve_triangular(self.factor, K.T, lower=True,
                                overwrite_b=True).T


def nystrom_features(kernel: Kernel, landmarks) -> NystromFeatures:
    """Features with inner products K(x, U) K(U)⁺ K(U, y): the kernel,
    projected on the span of the landmarks U (:prf:ref:`thm-nystrom`).

    As many features as K(U) has numerical rank; exact where x or y is a
    landmark. The pivots of `pivoted_cholesky` are a good choice.

    >>> phi = nystrom_features(Gaussian(1.0), [0.0, 1.0, 1.0])
    >>> phi([0.0, 0.5, 1.0]).shape
    (3, 2)
    """
    Phi = Features(kernel, landmarks, "landmarks")
    F, P = pivoted_cholesky(kernel, Phi, tol=0, return_pivots=True)
    if len(P) == 0:
        raise ValueError("landmarks must have k(u, u) > 0 somewhere")
    return NystromFeatures(kernel, Phi[P], F[P])
