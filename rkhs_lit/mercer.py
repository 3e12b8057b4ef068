"""Mercer: the norm as a spectral penalty"""
# The exported cells of book/mercer.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 3072f45f4547e357

# %% [1] Mercer: the norm as a spectral penalty
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import eigh, eigvalsh_tridiagonal
from scipy.sparse.linalg import LinearOperator, eigsh

import rkhs_lit.conventions as check
from rkhs_lit.fourier_series import (FourierKernel, JacobiTheta, as_line,
                                     waves)
from rkhs_lit.kernels import Gaussian
from rkhs_lit.moore_aronszajn import Features, RKHSFunction
from rkhs_lit.rules import Kernel

# %% [2] The integral operator of a kernel
def integral_operator(kernel: Kernel, nodes, weights,
                      f: Callable) -> RKHSFunction:
    """S_k f, the integral of k(x, ·) f(x) over μ = Σ w_i δ(x_i), with
    ⟨S_k f, g⟩ = Σ w_i f(x_i) g(x_i) for all g of the space
    (:prf:ref:`prop-integral-operator`).

    The nodes x_i are points of any kind. The weights w_i >= 0 are those of
    a quadrature rule, times the density of μ, or 1 / n for a sample.
    """
    Phi, w = _measure(kernel, nodes, weights)
    return Phi @ (w * _values(f, Phi.points))


def _measure(kernel, nodes, weights):
    """Φ and the masses w >= 0 of the measure Σ w_i δ(x_i)."""
    Phi = Features(kernel, nodes, "nodes")
    w = check.vector(weights, "weights", Phi.n)
    if w.min() < 0 or not w.any():
        raise ValueError("weights must be nonnegative and not all zero: "
                         "they are the masses of a measure")
    return Phi, w


def _values(f, nodes):
    return check.vector(check.function(f, "f")(nodes), "f", len(nodes))

# %% [3] Functions, numbers and a rule, in one record
@dataclass(frozen=True, eq=False, repr=False)
class Eigensystem(check.Record):
    """Functions e_j and numbers λ_j with k = Σ λ_j e_j e_j
    (:prf:ref:`thm-mercer`), and a rule Σ w_i f(x_i) for ∫ f dμ.

    The nodes x_i and the `weights` w_i are n points of any kind and an
    (n,) array, the `eigenvalues` an (r,) array, the largest first. The
    `vectors`, an (n, r) array, are √w_i e_j(x_i): columns orthonormal for
    the rule. ``functions(T)`` is the (m, r) array of e_j(t_i).
    """

    kernel: Kernel
    nodes: Sequence
    weights: np.ndarray
    eigenvalues: np.ndarray
    vectors: np.ndarray
    functions: Callable

    def __post_init__(self):
        Phi, w = _measure(self.kernel, self.nodes, self.weights)
        lam = check.positives(self.eigenvalues, "eigenvalues")
        U = check.frozen(check.real_array(self.vectors, "vectors", 2))
        if U.shape != (len(w), len(lam)):
            raise ValueError(f"vectors must have the shape {len(w)} × "
                             f"{len(lam)}, got {U.shape}")
        vars(self).update(nodes=Phi.points, weights=w, eigenvalues=lam,
                          vectors=U)

    def __repr__(self):
        return (f"Eigensystem({self.kernel}, n={len(self.nodes)}, "
                f"r={len(self.eigenvalues)})")

    def features(self, T) -> np.ndarray:
        """The Mercer features √λ_j e_j(t_i), an (m, r) array."""
        return np.sqrt(self.eigenvalues) * self.functions(T)

    def coefficients(self, f: Callable) -> np.ndarray:
        """The integrals of f e_j over μ, an (r,) array: λ_j Σ α_i e_j(x_i)
        for an expansion (if its points are far from the nodes, eigenvalues
        below rounding are missed), otherwise by the rule."""
        if isinstance(f, RKHSFunction) and f.kernel == self.kernel:
            return self.eigenvalues * (f.weights @ self.functions(f.points))
        root = np.sqrt(self.weights)       # vectors: √w_i e_j(x_i)
        return self.vectors.T @ (root * _values(f, self.nodes))


def fourier_eigensystem(kernel: FourierKernel | JacobiTheta,
                        degree: int) -> Eigensystem:
    """Waves up to a degree and coefficients k_l > 0 of a kernel on the
    circle, for the measure dx / (2π) (:prf:ref:`thm-fourier-rkhs`).

    >>> fourier_eigensystem(FourierKernel([1.0, 0.25, 0.5]), 2).eigenvalues
    array([1.  , 0.5 , 0.5 , 0.25, 0.25])
    """
    if not isinstance(kernel, (FourierKernel, JacobiTheta)):
        raise ValueError("kernel must be a FourierKernel or a JacobiTheta, "
                         f"got {type(kernel).__name__}")
    k, L = kernel.spectrum(degree), int(degree)        # k_l = k[L + l]
    l = np.array(sorted(np.flatnonzero(k) - L,
                        key=lambda l: (-k[L + l], abs(l), -l)))
    if len(l) == 0:
        raise ValueError(f"kernel has no positive coefficient up to {L}")
    functions, n = partial(waves, l=l), 8 * L + 64
    nodes = 2 * np.pi * np.arange(n) / n
    return Eigensystem(kernel, nodes, np.full(n, 1 / n), k[L + l],
                       functions(nodes) / np.sqrt(n), functions)

# %% [4] Eigenfunctions by quadrature
def eigensystem(kernel: Kernel, nodes, weights,
                n_components: int | None = None) -> Eigensystem:
    """Eigenvalues and eigenfunctions of T_k by quadrature
    (:prf:ref:`prop-nystrom`), with a rule as in `integral_operator`.

    By default all with λ_j above rounding, n ε λ_1; asking for more is an
    error. Errors of the functions are of the order ε λ_1 / λ_j, those of
    the features ε √(λ_1 / λ_j). The kernel xy has one, √(3/2) x:

    >>> from rkhs_lit.kernels import Linear
    >>> x, w = np.polynomial.legendre.leggauss(5)
    >>> system = eigensystem(Linear(), x, w)
    >>> system.eigenvalues.round(6), system.functions([2.0]).round(6)
    (array([0.666667]), array([[2.44949]]))
    """
    Phi, w = _measure(kernel, nodes, weights)
    root = np.sqrt(w)
    lam, U = _leading(Phi, root, n_components)         # D K D U = U λ
    e = partial(_expansions, Phi, root[:, None] * U / lam)
    return Eigensystem(kernel, Phi, w, lam, U, e)


def _expansions(Phi, W, T):
    """The functions Φ W at the points T."""
    return Features(Phi.kernel, T, "T").dot(W, Phi)


def _leading(Phi, root, r):
    """The r largest eigenvalues of D K D, by default those above rounding,
    and eigenvectors whose last large entry is positive."""
    n, few = Phi.n, False
    if r is not None:
        r = check.whole(r, "n_components", 1)
        few = n > 1000 and r <= n // 20
    if few and n > 4000:                       # too many to store K
        A = LinearOperator((n, n), dtype=float, matvec=lambda v: (
            root * Phi.dot(root * v.ravel())))
    else:
        A = root[:, None] * Phi.gram() * root
    # A fixed start, and one without symmetry: an even vector would never
    # find an odd eigenfunction.
    start = np.random.default_rng(0).normal(size=n)
    lam, U = eigsh(A, k=r, v0=start) if few else eigh(A)
    if lam.min() < -1e-8 * np.abs(lam).max():
        raise ValueError("kernel must be positive definite, but the "
                         f"operator has the eigenvalue {lam.min():.6g}")
    rank = np.sum(lam > n * np.finfo(float).eps * abs(lam[-1]))
    if (r or 1) > rank:
        raise ValueError(f"n_components must be at most {rank}, the number "
                         "of eigenvalues above rounding (0 if kernel is "
                         f"zero at all nodes), got {r}")
    lam, U = lam[::-1][:r or rank], U[:, ::-1][:, :r or rank]
    large = np.abs(U) >= 0.5 * np.abs(U).max(axis=0)
    last = n - 1 - large[::-1].argmax(axis=0)
    return lam, U * np.sign(U[last, np.arange(len(lam))])

# %% [5] The Gaussian kernel and a Gaussian measure
def hermite_eigensystem(sigma: float, width: float,
                        n_components: int) -> Eigensystem:
    """Eigenvalues λ_j = (1 - B) B^j and eigenfunctions of the Gaussian
    kernel for the measure N(0, width²), in closed form
    (:prf:ref:`thm-hermite`).

    The rule is exact for products e_i e_j, i + j < 2 (r + 64), not for
    polynomials. For σ much smaller than `width` it does not reach the
    tails of μ.

    >>> hermite_eigensystem(1.0, 1.0, 3).eigenvalues.round(6)
    array([0.618034, 0.236068, 0.09017 ])
    """
    sigma, s = check.width(sigma, "sigma"), check.width(width, "width")
    r = check.whole(n_components, "n_components", 1)
    omega = np.hypot(1.0, 2 * s / sigma)
    B = (2 * s / sigma / (omega + 1)) ** 2          # (ω - 1) / (ω + 1)
    lam = 2 / (omega + 1) * B ** np.arange(r)
    if not lam[-1] > np.finfo(float).tiny:
        raise ValueError(f"n_components must be smaller: λ_{r - 1} is 0")
    n = r + 64
    # The rule of Gauss: nodes are the zeros of a Hermite polynomial.
    z = eigvalsh_tridiagonal(np.zeros(n), np.sqrt(np.arange(1, n)))
    nodes = s / np.sqrt(omega) * z
    E = _hermite_functions(s, omega, n, nodes)
    # 1 / w_i = Σ_{j < n} e_j(x_i)², scaled, as squares may overflow.
    largest = np.abs(E).max(axis=1)
    root = largest * np.linalg.norm(E / largest[:, None], axis=1)
    return Eigensystem(Gaussian(sigma), nodes, (1 / root) ** 2, lam,
                       E[:, :r] / root[:, None],
                       partial(_hermite_functions, s, omega, r))


def _hermite_functions(s, omega, r, T):
    """The r functions e_j at the points T."""
    x = as_line(T, "T")
    # The recursion multiplies numbers up to 1e100 by u.
    if np.abs(x).max() > 1e100 * s / np.sqrt(omega):
        raise ValueError("T is too far from zero")
    z, u = x / s, np.sqrt(omega) * x / s
    log = np.log(omega) / 4 - (omega - 1) * z**2 / 4
    E = np.empty((len(z), r))
    h, previous = np.ones_like(z), np.zeros_like(z)
    for j in range(r):
        E[:, j] = h * np.exp(log)
        h, previous = (u * h - np.sqrt(j) * previous) / np.sqrt(j + 1), h
        large = np.abs(h) > 1e100
        h[large] *= 1e-100
        previous[large] *= 1e-100
        log[large] += 100 * np.log(10)
    return E
