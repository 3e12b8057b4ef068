"""Mercer: the norm as a spectral penalty

The exported cells of the chapter ``book/mercer.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: f4f2aea2b1b7a1d5

# %% [1] Mercer: the norm as a spectral penalty
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import eigh, eigvalsh_tridiagonal
from scipy.sparse.linalg import LinearOperator, eigsh

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points
from rkhs_lit.kernels import Gaussian, Kernel
from rkhs_lit.moore_aronszajn import Features, RKHSFunction


# %% [2] From a price list to a space
def spectral_inner(a, b, eigenvalues) -> float:
    """The inner product Σ a_j b_j* / λ_j (:prf:ref:`thm-weighted-l2`).

    Complex Fourier coefficients a, b of real functions must come for all
    l = -L, ..., L. Where an eigenvalue λ_j >= 0 is 0, and a_j or b_j is
    not, a ValueError says that the function is not in the space.

    >>> spectral_inner([1.0, 1.0], [3.0, 1.0], [1.0, 0.5])
    5.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        terms = (_over_root(a, "a", eigenvalues)
                 * np.conj(_over_root(b, "b", eigenvalues)))
        total, size = terms.sum(), np.abs(terms).sum()
    if not np.isfinite(size):
        j = np.abs(terms).argmax()
        raise ValueError("a or b is not in the space, as far as floats can "
                         f"tell: coefficient {j} makes the sum infinite")
    if abs(total.imag) > 1e-8 * size:
        raise ValueError("a and b must be coefficients of real functions, "
                         "but the sum is complex")
    return float(total.real)


def spectral_norm(a, eigenvalues) -> float:
    """The norm √(Σ a_j a_j* / λ_j) (:prf:ref:`thm-weighted-l2`).

    Arguments as in `spectral_inner`. It is ``inf`` where λ_j = 0 and a_j
    is not: the function is not in the space. A finite list cannot prove
    that a function is in a space of infinite dimension; see how the norm
    grows with its length.

    >>> spectral_norm([3.0, 2.0], [1.0, 0.25])
    5.0
    >>> spectral_norm([3.0, 2.0], [1.0, 0.0])
    inf
    """
    with np.errstate(over="ignore"):
        return float(np.linalg.norm(_over_root(a, "a", eigenvalues)))


def _over_root(a, name, eigenvalues):
    """The numbers a_j / √λ_j; where only λ_j is 0, infinity."""
    lam = check.vector(eigenvalues, "eigenvalues")
    if lam.min() < 0:
        raise ValueError("eigenvalues must be nonnegative")
    parts = a if isinstance(a, (list, tuple)) else [a]
    if any(map(np.iscomplexobj, parts)):
        a = (check.vector(np.real(a), name, len(lam))
             + 1j * check.vector(np.imag(a), name, len(lam)))
    else:
        a = check.vector(a, name, len(lam))
    quotients = np.where(a == 0, a, np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.divide(a, np.sqrt(lam), out=quotients, where=lam > 0)


# %% [3] From a price list to a space
@dataclass(frozen=True, eq=False, repr=False)
class Eigensystem(check.Record):
    """Functions e_j and numbers λ_j with k = Σ λ_j e_j e_j
    (:prf:ref:`thm-mercer`).

    Attributes
    ----------
    kernel : Kernel
    nodes, weights : sequence of n points, (n,) array
        A rule Σ w_i f(x_i) for the integral of f over μ.
    eigenvalues : (r,) array
        Positive, the largest first.
    vectors : (n, r) array
        The numbers √w_i e_j(x_i): columns orthonormal for the rule.
    functions : function
        ``functions(T)`` is the (m, r) array of e_j(t_i), for any points.
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
        check.function(self.functions, "functions")
        vars(self).update(nodes=Phi.points, weights=w, eigenvalues=lam,
                          vectors=U)

    def __repr__(self):
        return (f"Eigensystem({self.kernel}, n={len(self.nodes)}, "
                f"r={len(self.eigenvalues)})")

    def features(self, T) -> np.ndarray:
        """The Mercer features √λ_j e_j(t_i), an (m, r) array whose rows
        have inner products k(s, t), up to the truncation."""
        return np.sqrt(self.eigenvalues) * self.functions(T)

    def coefficients(self, f: Callable) -> np.ndarray:
        """The integrals of f e_j over μ, an (r,) array.

        For f = Σ w_i k(x_i, ·) they are λ_j Σ w_i e_j(x_i). If its points
        are far from the nodes, they need eigenvalues below rounding, and
        the norm comes out too small: compare with ``norm(f)``. For other
        functions the rule is used; leave out λ_j below its errors.
        """
        if isinstance(f, RKHSFunction) and f.kernel == self.kernel:
            # ∫ k(x, ·) e_j dμ = λ_j e_j(x)
            return self.eigenvalues * (f.weights @ self.functions(f.points))
        # Σ_i w_i f(x_i) e_j(x_i); the vectors hold √w_i e_j(x_i)
        return self.vectors.T @ (
            np.sqrt(self.weights) * _values(f, self.nodes))


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


# %% [4] The circle: Fourier series
def fourier_coefficients(f: Callable, degree: int, *,
                         period: float = 2 * np.pi,
                         n_points: int | None = None) -> np.ndarray:
    """Fourier coefficients of a periodic function, a complex array for
    l = -L, ..., L (:prf:ref:`def-fourier-coefficients`).

    Those of modulus at most 4 ε times the largest value of f are set to
    zero.

    Parameters
    ----------
    f : function
        Of an array of points of [-period / 2, period / 2].
    degree : int, the L >= 0
    n_points : int, optional
        More than 2 L equidistant points; by default the larger of 1024
        and 8 L. Where f jumps, the error is of the order of 1 / n_points.
    """
    L = check.whole(degree, "degree", 0)
    period = check.positive(period, "period")
    n = max(1024, 8 * L) if n_points is None else check.whole(
        n_points, "n_points", 2 * L + 1)
    # One period around zero, in the order that the FFT wants.
    values = _values(f, period * ((np.arange(n) / n + 0.5) % 1 - 0.5))
    c = np.fft.fft(values)[np.arange(-L, L + 1) % n] / n
    c[np.abs(c) <= 4 * np.finfo(float).eps * np.abs(values).max()] = 0
    return c


def _line(X, name):
    x = as_points(X, name)
    if x.shape[1] != 1:
        raise ValueError(f"{name} must be one number a point, got "
                         f"dimension {x.shape[1]}")
    return x[:, 0]


# %% [5] A top hat, and why it is expensive
def _waves(T, degree, order=slice(None)):
    """Columns 1, √2 cos x, √2 sin x, √2 cos 2x, ..., in this order."""
    angles = np.outer(_line(T, "T"), np.arange(1, degree + 1))
    W = np.ones((len(angles), 2 * degree + 1))
    W[:, 1::2] = np.sqrt(2) * np.cos(angles)
    W[:, 2::2] = np.sqrt(2) * np.sin(angles)
    return W[:, order]


@dataclass(frozen=True)
class FourierKernel(Kernel):
    """The kernel Σ k_l exp(i l (x - y)) on the circle
    (:prf:ref:`thm-fourier-rkhs`).

    The coefficients k_{-l} = k_l are a list of k_0, ..., k_L >= 0, or a
    function of l and the degree L.

    >>> FourierKernel([1.0, 0.5])([0.0, np.pi / 2]).round(6)
    array([[2., 1.],
           [1., 2.]])
    """

    coefficients: Sequence | Callable
    degree: int | None = None

    _prepare = staticmethod(_line)

    def __post_init__(self):
        k, L = self.coefficients, self.degree
        if callable(k):
            k = [k(l) for l in range(check.whole(L, "degree", 0) + 1)]
        k = check.vector(k, "coefficients")
        if L is not None and check.whole(L, "degree", 0) != len(k) - 1:
            raise ValueError(f"degree must be {len(k) - 1} for {len(k)} "
                             f"coefficients, got {L}")
        if k.min() < 0:
            raise ValueError("coefficients must be nonnegative: a negative "
                             "one is a negative eigenvalue")
        vars(self).update(coefficients=tuple(k.tolist()),
                          degree=len(k) - 1)

    def spectrum(self, degree: int) -> np.ndarray:
        """The coefficients k_l for l = -degree, ..., degree."""
        L = check.whole(degree, "degree", 0)
        l = np.abs(np.arange(-L, L + 1))
        return np.array([*self.coefficients, 0.0])[
            np.minimum(l, self.degree + 1)]

    def _gram(self, X, Y):
        V = _waves(X, self.degree)
        W = V if Y is X else _waves(Y, self.degree)
        k = np.repeat(self.coefficients, 2)[1:]    # k_0, k_1, k_1, k_2, …
        return (V * k) @ W.T

    def _diag(self, X):
        return np.full(len(X), self.spectrum(self.degree).sum())


# %% [6] The Jacobi theta kernel
@dataclass(frozen=True)
class JacobiTheta(Kernel):
    """A Gaussian wrapped around the circle (:prf:ref:`prop-theta`).

    k(x, y) = Σ exp(-σ² l² / 2 + i l (x - y)) / (2π), over all whole l;
    σ is the width in radians.

    >>> JacobiTheta(0.5)([0.0, 2 * np.pi]).round(6)
    array([[0.797885, 0.797885],
           [0.797885, 0.797885]])
    """

    sigma: float

    _prepare = staticmethod(_line)

    def __post_init__(self):
        vars(self).update(sigma=check.width(self.sigma, "sigma"))

    def spectrum(self, degree: int) -> np.ndarray:
        """The coefficients k_l for l = -degree, ..., degree."""
        L = check.whole(degree, "degree", 0)
        l = np.arange(-L, L + 1)
        return np.exp(-(self.sigma * l) ** 2 / 2) / (2 * np.pi)

    def _gram(self, X, Y):
        turn = 2 * np.pi
        d = np.abs(np.subtract.outer(X, Y)) % turn
        if self.sigma**2 < turn:
            total = sum(np.exp(-((d + turn * n) / self.sigma) ** 2 / 2)
                        for n in range(-4, 5))
            return total / (np.sqrt(turn) * self.sigma)
        k = self.spectrum(4)[4:]
        return k[0] + 2 * sum(k[l] * np.cos(l * d) for l in range(1, 5))

    def _diag(self, X):
        return np.full(len(X), self([0.0])[0, 0])


def fourier_eigensystem(kernel: FourierKernel | JacobiTheta,
                        degree: int) -> Eigensystem:
    """Waves and Fourier coefficients of a kernel on the circle, for the
    measure dx / (2π) (:prf:ref:`thm-fourier-rkhs`).

    Waves up to cos(degree x), sin(degree x), without those of coefficient
    0, and 8 degree + 64 equidistant nodes.

    >>> fourier_eigensystem(FourierKernel([1.0, 0.25, 0.5]), 2).eigenvalues
    array([1.  , 0.5 , 0.5 , 0.25, 0.25])
    """
    if not isinstance(kernel, (FourierKernel, JacobiTheta)):
        raise ValueError("kernel must be a FourierKernel or a JacobiTheta, "
                         f"got {type(kernel).__name__}")
    L = check.whole(degree, "degree", 0)
    lam = np.repeat(kernel.spectrum(L)[L:], 2)[1:]
    if not lam.any():
        raise ValueError(f"kernel has no positive coefficient up to {L}")
    order = np.argsort(-lam, kind="stable")[:np.count_nonzero(lam)]
    functions, n = partial(_waves, degree=L, order=order), 8 * L + 64
    nodes = 2 * np.pi * np.arange(n) / n
    return Eigensystem(kernel, nodes, np.full(n, 1 / n), lam[order],
                       functions(nodes) / np.sqrt(n), functions)


# %% [7] The integral operator of a kernel
def integral_operator(kernel: Kernel, nodes, weights,
                      f: Callable) -> RKHSFunction:
    """S_k f, the integral of k(x, ·) f(x) over μ = Σ w_i δ(x_i), with
    ⟨S_k f, g⟩ = Σ w_i f(x_i) g(x_i) for all g of the space
    (:prf:ref:`prop-integral-operator`).

    The nodes x_i are points of any kind, and ``f(nodes)`` as many numbers.
    The weights w_i >= 0 are those of a quadrature rule, times the density
    of μ, or 1 / n for a sample from μ.
    """
    Phi, w = _measure(kernel, nodes, weights)
    return Phi @ (w * _values(f, Phi.points))


# %% [8] Eigenfunctions by quadrature
def eigensystem(kernel: Kernel, nodes, weights,
                n_components: int | None = None) -> Eigensystem:
    """Eigenvalues and eigenfunctions of T_k by quadrature
    (:prf:ref:`prop-nystrom`).

    The functions are orthonormal for the rule, and evaluated anywhere
    with errors of the order ε λ_1 / λ_j; features with errors
    ε √(λ_1 / λ_j). The kernel xy on [-1, 1] has one, √(3/2) x:

    >>> from rkhs_lit.kernels import Linear
    >>> x, w = np.polynomial.legendre.leggauss(5)
    >>> system = eigensystem(Linear(), x, w)
    >>> system.eigenvalues.round(6), system.functions([2.0]).round(6)
    (array([0.666667]), array([[2.44949]]))

    Parameters
    ----------
    kernel, nodes, weights : as in `integral_operator`
    n_components : int, optional
        By default all eigenvalues above rounding, n ε λ_1; asking for
        more is an error.
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
    n = Phi.n
    if r is not None:
        r = check.whole(r, "n_components", 1)
    few = n > 1000 and r is not None and r <= n // 20
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
    if rank == 0:
        raise ValueError("kernel must not be zero at all nodes")
    if (r or 1) > rank:
        raise ValueError(f"n_components must be at most {rank}, the number "
                         f"of eigenvalues above rounding, got {r}")
    lam, U = lam[::-1][:r or rank], U[:, ::-1][:, :r or rank]
    large = np.abs(U) >= 0.5 * np.abs(U).max(axis=0)
    last = n - 1 - large[::-1].argmax(axis=0)
    return lam, U * np.sign(U[last, np.arange(len(lam))])


# %% [9] The Gaussian kernel and a Gaussian measure
def hermite_eigensystem(sigma: float, width: float,
                        n_components: int) -> Eigensystem:
    """Eigenvalues and eigenfunctions of the Gaussian kernel for the
    measure N(0, width²), in closed form (:prf:ref:`thm-hermite`).

    In several dimensions the products of these eigenvalues
    λ_j = (1 - B) B^j and functions, one for each coordinate, are those of
    the Gaussian kernel and a product of normal measures. The rule is
    exact for products e_i e_j, i + j < 2 (r + 64), not for polynomials.
    For σ much smaller than `width` it does not reach the tails of μ.

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
    x = _line(T, "T")
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
