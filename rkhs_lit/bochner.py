"""Bochner: kernels as averages of waves"""
# The exported cells of book/bochner.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: fb0bcb6d1c9dad8a

# %% [1] Bochner: kernels as averages of waves
import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import gamma, gammaln, kv

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points
from rkhs_lit.kernels import Gaussian, Laplace, Sinc, squared_distances
from rkhs_lit.rules import (Kernel, Power, Product, Scaled, Sum, as_kernel,
                            checked)

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

    nu: float = checked(partial(
        check.number, low=1e-300, high=1000.0,
        wanted="from 1e-300 to 1000 (above, use its limit Gaussian)"))
    sigma: float = checked(check.width)

    _prepare = staticmethod(as_points)

    def _gram(self, X, Y):
        r = np.sqrt(squared_distances(X, Y))
        return _matern(self.nu, math.sqrt(2 * self.nu) / self.sigma * r)

    def _diag(self, X):
        return np.ones(len(X))

# %% [3] Rules for spectral measures
def spectral_density(kernel: Kernel, omega) -> np.ndarray:
    """The density of the spectral measure (:prf:ref:`thm-bochner`) at the
    rows ω of an (n, d) array; its integral is k(0).

    For Gaussian, Laplace, Matérn (:prf:ref:`thm-matern-spectrum`) and sinc
    kernels, sums and multiples. Times (2π)^d it is the Fourier transform
    of the kernel, and one over this is what the space charges for a wave
    (:prf:ref:`thm-fourier-space`).

    >>> (np.pi * spectral_density(Laplace(1.0), [0.0, 1.0])).round(6)
    array([1. , 0.5])
    """
    kernel, omega = as_kernel(kernel), as_points(omega, "omega")
    d, length = omega.shape[1], np.hypot.reduce(omega, axis=1)     # ‖ω‖
    with np.errstate(divide="ignore", over="ignore"):
        if isinstance(kernel, Scaled):
            p = kernel.c * spectral_density(kernel.kernel, omega)
        elif isinstance(kernel, Sum):
            p = (spectral_density(kernel.first, omega)
                 + spectral_density(kernel.second, omega))
        elif isinstance(kernel, Gaussian):
            p = np.exp(d * math.log(kernel.sigma / math.sqrt(2 * np.pi))
                       - (kernel.sigma * length) ** 2 / 2)
        elif isinstance(kernel, (Laplace, Matern)):
            # Γ(ν+d/2)/Γ(ν) (a/√π)^d q^(-ν-d/2), q = 1 + a²‖ω‖², a² = σ²/2ν
            nu = getattr(kernel, "nu", 0.5)
            log_a = math.log(kernel.sigma) - math.log(2 * nu) / 2
            log_q = np.logaddexp(0, 2 * (log_a + np.log(length)))
            p = np.exp(gammaln(nu + d / 2) - gammaln(nu)
                       + d * (log_a - math.log(np.pi) / 2)
                       - (nu + d / 2) * log_q)
        elif isinstance(kernel, Sinc):
            inside = (np.abs(omega) <= np.pi / kernel.width).all(axis=1)
            p = inside * np.exp(d * math.log(kernel.width / (2 * np.pi)))
        else:
            raise ValueError("kernel must have a spectral density that is "
                             f"known here, got {kernel!r}")
        return check.finite(p, "kernel")

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
    E cos⟨ω, x - y⟩ = k(x, y) / k(0) (:prf:ref:`thm-bochner`), for the
    kernels of `spectral_density` and their products and powers
    (:prf:ref:`prop-spectral-rules`)."""
    as_kernel(kernel)
    n, dim = check.whole(n, "n", 1), check.whole(dim, "dim", 1)
    with np.errstate(over="ignore", invalid="ignore"):
        omega = _frequencies(kernel, n, dim, check.generator(rng))
    if _mass(kernel, dim) == 0:
        raise ValueError("kernel must not be zero: a zero kernel has no "
                         "frequencies")
    return check.finite(omega, "kernel")
