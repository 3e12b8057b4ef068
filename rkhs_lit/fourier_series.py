"""Fourier series: a norm as a price list"""
# The exported cells of book/fourier_series.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: ad7181b0d17c69f5

# %% [1] Fourier series: a norm as a price list
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points
from rkhs_lit.rules import Kernel, checked

# %% [2] From a price list to a space
def spectral_inner(a, b, eigenvalues) -> float:
    """The inner product Σ a_j b_j* / λ_j (:prf:ref:`thm-weighted-l2`).

    Complex coefficients of real functions must come for all waves
    l = -L, ..., L. Where λ_j is 0, a_j and b_j must be.

    >>> spectral_inner([1.0, 1.0], [3.0, 1.0], [1.0, 0.5])
    5.0
    """
    a, b, lam = _coefficients(eigenvalues, a=a, b=b)
    with np.errstate(all="ignore"):
        terms = (a / np.sqrt(lam)) * np.conj(b / np.sqrt(lam))
        total, size = terms.sum(), np.abs(terms).sum()
    if not np.isfinite(size):
        raise ValueError("a or b is not in the space, as far as floats can "
                         f"tell: see coefficient {np.abs(terms).argmax()}")
    if abs(total.imag) > 1e-8 * size:
        raise ValueError("a and b must be coefficients of real functions, "
                         "but the sum is complex")
    return float(total.real)


def spectral_norm(a, eigenvalues) -> float:
    """The norm √(Σ a_j a_j* / λ_j) (:prf:ref:`thm-weighted-l2`), infinite
    where λ_j = 0 and a_j is not.

    >>> spectral_norm([3.0, 2.0], [1.0, 0.25])
    5.0
    """
    a, lam = _coefficients(eigenvalues, a=a)
    with np.errstate(divide="ignore", over="ignore"):
        return float(np.linalg.norm(np.abs(a) / np.sqrt(lam)))


def _coefficients(eigenvalues, **lists):
    """The lists, and λ_j, or 1 where a zero is to cost nothing."""
    lam = check.vector(eigenvalues, "eigenvalues")
    if lam.min() < 0:
        raise ValueError("eigenvalues must be nonnegative")
    lists = {name: check.plain_array(a, name) for name, a in lists.items()}
    parts = [check.vector(a.real, name, len(lam)) + (
        1j * check.vector(a.imag, name, len(lam)) if np.iscomplexobj(a)
        else 0) for name, a in lists.items()]
    return *parts, np.where(np.any(parts, axis=0), lam, 1.0)

# %% [3] The circle: Fourier series
def fourier_coefficients(f: Callable, degree: int, *,
                         period: float = 2 * np.pi,
                         n_points: int | None = None) -> np.ndarray:
    """Fourier coefficients of a periodic function, a complex array for
    l = -L, ..., L (:prf:ref:`def-fourier-coefficients`).

    The function, of an array of points of [-period / 2, period / 2], is
    evaluated at more than 2 L equidistant ones, by default the larger of
    1024 and 8 L. Where it jumps, the error is of the order of 1 /
    n_points. Moduli of at most 4 ε times its largest value are set to 0.
    """
    L = check.whole(degree, "degree")
    period = check.positive(period, "period")
    n = max(1024, 8 * L) if n_points is None else check.whole(
        n_points, "n_points", 2 * L + 1)
    # One period around zero, in the order that the FFT wants.
    x = period * ((np.arange(n) / n + 0.5) % 1 - 0.5)
    values = check.vector(check.function(f, "f")(x), "f", n)
    c = np.fft.fft(values)[np.arange(-L, L + 1) % n] / n
    c[np.abs(c) <= 4 * np.finfo(float).eps * np.abs(values).max()] = 0
    return c

# %% [4] A top hat, and why it is expensive
def as_line(X, name: str = "X") -> np.ndarray:
    """Points of the line as an (n,) array (:prf:ref:`def-points`)."""
    x = as_points(X, name)
    if x.shape[1] != 1:
        raise ValueError(f"{name} must be one number a point")
    return x[:, 0]


def waves(T, l) -> np.ndarray:
    """Orthonormal functions on the circle, a column √2 cos(l t) for l > 0,
    1 for l = 0 and √2 sin(-l t) for l < 0 (:prf:ref:`thm-fourier-rkhs`)."""
    l = check.vector(l, "l")
    with np.errstate(over="ignore"):
        angles = check.finite(np.outer(as_line(T, "T"), np.abs(l)), "T l")
    return np.sqrt(1 + (l != 0)) * np.cos(angles - (l < 0) * (np.pi / 2))


@dataclass(frozen=True)
class FourierKernel(Kernel):
    """The kernel Σ k_l exp(i l (x - y)) on the circle
    (:prf:ref:`thm-fourier-rkhs`).

    The coefficients are a list of k_0, ..., k_L >= 0, or a function of l
    and the degree L.

    >>> FourierKernel([1.0, 0.5])([0.0, np.pi / 2]).round(6)
    array([[2., 1.],
           [1., 2.]])
    """

    coefficients: Sequence | Callable
    degree: int | None = None

    _prepare = staticmethod(as_line)

    def __post_init__(self):
        k, L = self.coefficients, self.degree
        if callable(k):
            k = [k(l) for l in range(check.whole(L, "degree") + 1)]
        k = check.vector(k, "coefficients")
        if L is not None and check.whole(L, "degree") != len(k) - 1:
            raise ValueError(f"degree must be {len(k) - 1} for {len(k)} "
                             f"coefficients, got {L}")
        if k.min() < 0:
            raise ValueError("coefficients must be nonnegative: a negative "
                             "one is a negative eigenvalue")
        vars(self).update(coefficients=(*k.tolist(),), degree=len(k) - 1)

    def spectrum(self, degree: int) -> np.ndarray:
        """The coefficients k_l for l = -degree, ..., degree."""
        L = check.whole(degree, "degree")
        l = np.minimum(np.abs(np.arange(-L, L + 1)), self.degree + 1)
        return np.array([*self.coefficients, 0.0])[l]

    def _gram(self, X, Y):
        l = np.arange(-self.degree, self.degree + 1)
        V = waves(X, l)
        W = V if Y is X else waves(Y, l)
        return (V * self.spectrum(self.degree)) @ W.T

    def _diag(self, X):
        return np.full(len(X), self.spectrum(self.degree).sum())

# %% [5] The Jacobi theta kernel
@dataclass(frozen=True)
class JacobiTheta(Kernel):
    """A Gaussian wrapped around the circle, of width σ in radians:
    Σ exp(-σ² l² / 2 + i l (x - y)) / (2π) (:prf:ref:`prop-theta`).

    >>> JacobiTheta(0.5)([0.0, 2 * np.pi]).round(6)
    array([[0.797885, 0.797885],
           [0.797885, 0.797885]])
    """

    sigma: float = checked(check.width)

    _prepare = staticmethod(as_line)

    def spectrum(self, degree: int) -> np.ndarray:
        """The coefficients k_l for l = -degree, ..., degree."""
        L = check.whole(degree, "degree")
        l = np.arange(-L, L + 1)
        return np.exp(-(self.sigma * l) ** 2 / 2) / (2 * np.pi)

    def _gram(self, X, Y):
        s, turn = self.sigma, 2 * np.pi
        d = np.abs(np.subtract.outer(X, Y)) % turn
        if s**2 < turn:
            return sum(np.exp(-((d + turn * n) / s) ** 2 / 2)
                       for n in range(-4, 5)) / (np.sqrt(turn) * s)
        k = self.spectrum(4)[4:]
        return k[0] + 2 * sum(k[l] * np.cos(l * d) for l in range(1, 5))

    def _diag(self, X):
        return np.full(len(X), self([0.0])[0, 0])
