"""Mercer: the norm as a spectral penalty

The exported cells of the chapter ``book/mercer.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: c0620405383b6b60

# %% [1] Mercer: the norm as a spectral penalty
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, eigvalsh_tridiagonal
from scipy.sparse.linalg import (ArpackNoConvergence, LinearOperator,
                                 eigsh)

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points, as_sequence
from rkhs_lit.kernels import Gaussian, Kernel, gram_dot
from rkhs_lit.moore_aronszajn import RKHSFunction


# %% [2] From a price list to a space
def _coefficients(a, name):
    a = check.plain_array(a, name)
    if a.ndim != 1 or a.size == 0 or a.dtype.kind not in "biufc":
        raise ValueError(f"{name} must be a list of numbers, got shape "
                         f"{a.shape}")
    if not np.isfinite(a).all():
        raise ValueError(f"{name} must be finite")
    return a


def _prices(eigenvalues, *lists):
    lam = _coefficients(eigenvalues, "eigenvalues")
    if lam.dtype.kind == "c" or not (lam >= 0).all():
        raise ValueError("eigenvalues must be nonnegative numbers")
    for name, a in lists:
        if len(a) != len(lam):
            raise ValueError(f"{name} must have {len(lam)} coefficients, "
                             f"one for each eigenvalue, got {len(a)}")
    return lam.astype(float)


# %% [3] From a price list to a space
def spectral_inner(a, b, eigenvalues) -> float:
    """The inner product Σ a_j b_j* / λ_j (:prf:ref:`thm-weighted-l2`).

    Parameters
    ----------
    a, b : (r,) arrays
        Coefficients of f and g. Complex Fourier coefficients of real
        functions must come for all l = -L, ..., L.
    eigenvalues : (r,) array
        Nonnegative. Where λ_j = 0 and a_j or b_j is not, a ValueError
        says that the function is not in the space.

    Returns
    -------
    float

    Examples
    --------
    >>> spectral_inner([1.0, 1.0], [3.0, 1.0], [1.0, 0.5])
    5.0
    """
    a, b = _coefficients(a, "a"), _coefficients(b, "b")
    lam = _prices(eigenvalues, ("a", a), ("b", b))
    outside = np.flatnonzero((lam == 0) & ((a != 0) | (b != 0)))
    if outside.size:
        raise ValueError(f"a or b is not in the space: coefficient "
                         f"{outside[0]} is not zero, its eigenvalue is")
    keep = lam > 0
    # The root on both sides: a product of small numbers may underflow.
    root = np.sqrt(lam[keep])
    with np.errstate(over="ignore", invalid="ignore"):
        terms = (a[keep] / root) * np.conj(b[keep] / root)
        total, size = terms.sum(), np.abs(terms).sum()
    if not np.isfinite(size):
        raise ValueError("eigenvalues are too small for the coefficients: "
                         "the sum overflows")
    if abs(total.imag) > 1e-8 * size:
        raise ValueError("a and b must be coefficients of real functions, "
                         "but the sum is complex")
    return float(total.real)


# %% [4] From a price list to a space
def spectral_norm(a, eigenvalues) -> float:
    """The norm √(Σ a_j a_j* / λ_j) (:prf:ref:`thm-weighted-l2`).

    Parameters
    ----------
    a : (r,) array
        Real or complex coefficients.
    eigenvalues : (r,) array
        Nonnegative.

    Returns
    -------
    float
        ``inf`` where λ_j = 0 and a_j is not: the function is not in the
        space. A λ_j that underflows to 0 counts as an infinite price. A
        finite list cannot prove that a function is in a space of infinite
        dimension; see how the norm grows with its length.

    Examples
    --------
    >>> spectral_norm([3.0, 2.0], [1.0, 0.25])
    5.0
    >>> spectral_norm([3.0, 2.0], [1.0, 0.0])
    inf
    """
    a = np.abs(_coefficients(a, "a"))
    lam = _prices(eigenvalues, ("a", a))
    if ((lam == 0) & (a > 0)).any():
        return float("inf")
    keep = lam > 0
    with np.errstate(over="ignore"):
        return float(np.linalg.norm(a[keep] / np.sqrt(lam[keep])))


# %% [5] From a price list to a space
def _measure(nodes, weights):
    nodes = as_sequence(nodes, "nodes")
    w = _coefficients(weights, "weights")
    if w.shape != (len(nodes),) or w.dtype.kind == "c":
        raise ValueError(f"weights must be one number for each of "
                         f"{len(nodes)} nodes, got shape {w.shape}")
    if not (w >= 0).all() or not w.any():
        raise ValueError("weights must be nonnegative and not all zero: "
                         "they are the masses of a measure")
    return nodes, w.astype(float)


def _values(f, nodes):
    check.function(f, "f")
    values = check.plain_array(f(nodes), "f")
    if values.dtype.kind not in "biuf":
        raise ValueError("f must return real numbers")
    values = values.astype(float)
    if values.shape != (len(nodes),) or not np.isfinite(values).all():
        raise ValueError(f"f must return {len(nodes)} finite numbers, one "
                         f"for each node, got shape {values.shape}")
    return values


# %% [6] From a price list to a space
@dataclass(frozen=True, eq=False, repr=False)
class Eigensystem:
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

    def __repr__(self):
        return (f"Eigensystem({self.kernel}, n={len(self.nodes)}, "
                f"r={len(self.eigenvalues)})")

    def features(self, T) -> np.ndarray:
        """The Mercer features √λ_j e_j(t_i), an (m, r) array whose rows
        have inner products k(s, t), up to the truncation."""
        return np.sqrt(self.eigenvalues) * self.functions(T)

    def coefficients(self, f: Callable) -> np.ndarray:
        """The integrals of f e_j over μ, an (r,) array.

        For an `RKHSFunction` Σ w_i k(x_i, ·) of this kernel they are
        λ_j Σ w_i e_j(x_i). Points of f far from the nodes need eigenvalues
        below rounding: the norm then comes out too small; compare with
        ``norm(f)``. For other functions the rule is used; its
        errors ε are divided by √λ_j in a norm: leave out λ_j below ε.
        """
        if isinstance(f, RKHSFunction) and f.kernel == self.kernel:
            return self.eigenvalues * (f.weights @ self.functions(f.points))
        return self.vectors.T @ (
            np.sqrt(self.weights) * _values(f, self.nodes))


# %% [7] The circle: Fourier series
def fourier_coefficients(f: Callable, degree: int, *,
                         period: float = 2 * np.pi,
                         n_points: int | None = None) -> np.ndarray:
    """Fourier coefficients of a periodic function
    (:prf:ref:`def-fourier-coefficients`).

    Parameters
    ----------
    f : function
        Takes an array of points of [-period / 2, period / 2] and returns
        as many numbers.
    degree : int
        L, at least 0.
    period : float
    n_points : int, optional
        More than 2 L equidistant points; by default the larger of 1024
        and 8 L. Where f jumps, the error is of the order of 1 / n_points.

    Returns
    -------
    (2 L + 1,) complex array
        The coefficients for l = -L, ..., L. Those of modulus at most
        4 ε times the largest value of f are set to zero.

    Examples
    --------
    >>> fourier_coefficients(lambda x: 2 * np.cos(x), 1).round(6).real
    array([1., 0., 1.])
    """
    degree = check.whole(degree, "degree", 0)
    period = check.positive(period, "period")
    n = max(1024, 8 * degree) if n_points is None else check.whole(
        n_points, "n_points", 1)
    if n <= 2 * degree:
        raise ValueError(f"n_points must be more than {2 * degree} for "
                         f"degree {degree}, got {n}")
    # One period around zero, in the order that the FFT wants.
    x = period * ((np.arange(n) / n + 0.5) % 1 - 0.5)
    values = _values(f, x)
    l = np.arange(-degree, degree + 1)
    c = np.fft.fft(values)[l % n] / n
    c[np.abs(c) <= 4 * np.finfo(float).eps * np.abs(values).max()] = 0
    return c


# %% [8] A top hat, and why it is expensive
def _angles(X, name="X"):
    x = as_points(X, name)
    if x.shape[1] != 1:
        raise ValueError(f"{name} must be angles, one number a point, got "
                         f"dimension {x.shape[1]}")
    return x[:, 0]


def _waves(x, degree):
    """Columns 1, √2 cos x, √2 sin x, √2 cos 2x, √2 sin 2x, ..."""
    angles = np.outer(x, np.arange(1, degree + 1))
    W = np.ones((len(x), 2 * degree + 1))
    W[:, 1::2] = np.sqrt(2) * np.cos(angles)
    W[:, 2::2] = np.sqrt(2) * np.sin(angles)
    return W


def _half_spectrum(k, L):
    """k_0, ..., k_L from a list or from a function and L."""
    if callable(k):
        k = [k(l) for l in range(check.whole(L, "degree", 0) + 1)]
    k = _coefficients(k, "coefficients")
    if L is not None and L != len(k) - 1:
        raise ValueError(f"degree must be {len(k) - 1} for {len(k)} "
                         f"coefficients, got {L}")
    if k.dtype.kind == "c" or not (k >= 0).all():
        raise ValueError("coefficients must be nonnegative: a negative "
                         "one is a negative eigenvalue")
    return k


class _Periodic(Kernel):
    def _prepare(self, X, name):
        return _angles(X, name)

    def _diag(self, X):
        origin = np.zeros(1)
        return np.full(len(X), self._gram(origin, origin)[0, 0])

    def spectrum(self, degree: int) -> np.ndarray:
        """The coefficients k_l for l = -degree, ..., degree."""
        half = self._half(check.whole(degree, "degree", 0))
        return np.concatenate([half[:0:-1], half])


# %% [9] A top hat, and why it is expensive
@dataclass(frozen=True)
class FourierKernel(_Periodic):
    """The kernel Σ k_l exp(i l (x - y)) on the circle
    (:prf:ref:`thm-fourier-rkhs`).

    Parameters
    ----------
    coefficients : sequence, or function of l
        k_0, k_1, ..., k_L, nonnegative; k_{-l} = k_l.
    degree : int, optional
        L, wanted if `coefficients` is a function. The kernel is then the
        sum up to L; it differs from the whole series by at most
        2 (k_{L+1} + k_{L+2} + ...).

    Examples
    --------
    >>> FourierKernel([1.0, 0.5])([0.0, np.pi / 2]).round(6)
    array([[2., 1.],
           [1., 2.]])
    """

    coefficients: Sequence | Callable
    degree: int | None = None

    def __post_init__(self):
        k = _half_spectrum(self.coefficients, self.degree)
        object.__setattr__(self, "coefficients", tuple(map(float, k)))
        object.__setattr__(self, "degree", len(k) - 1)

    def _half(self, degree):
        k = np.zeros(degree + 1)
        known = self.coefficients[:degree + 1]
        k[:len(known)] = known
        return k

    def _gram(self, X, Y):
        V = _waves(X, self.degree)
        W = V if Y is X else _waves(Y, self.degree)
        k = np.repeat(self.coefficients, 2)[1:]
        return (V * k) @ W.T


# %% [10] The Jacobi theta kernel
@dataclass(frozen=True)
class JacobiTheta(_Periodic):
    """A Gaussian wrapped around the circle (:prf:ref:`prop-theta`).

    k(x, y) = Σ exp(-σ² l² / 2 + i l (x - y)) / (2π), over all whole l.

    Parameters
    ----------
    sigma : float
        The width σ in radians.

    Examples
    --------
    >>> k = JacobiTheta(0.5)
    >>> bool(np.isclose(k([0.1], [2 * np.pi - 0.1])[0, 0],
    ...                 k([0.0], [0.2])[0, 0]))
    True
    """

    sigma: float

    def __post_init__(self):
        object.__setattr__(
            self, "sigma", check.width(self.sigma, "sigma"))

    def _half(self, degree):
        l = np.arange(degree + 1)
        return np.exp(-(self.sigma * l) ** 2 / 2) / (2 * np.pi)

    def _gram(self, X, Y):
        turn = 2 * np.pi
        d = np.abs(np.subtract.outer(X, Y)) % turn
        if self.sigma**2 < turn:
            total = sum(np.exp(-((d + turn * n) / self.sigma) ** 2 / 2)
                        for n in range(-4, 5))
            return total / (np.sqrt(turn) * self.sigma)
        k = self._half(4)
        return k[0] + 2 * sum(k[l] * np.cos(l * d) for l in range(1, 5))


# %% [11] The Jacobi theta kernel
def fourier_eigensystem(kernel: FourierKernel | JacobiTheta,
                        degree: int) -> Eigensystem:
    """Waves and Fourier coefficients of a kernel on the circle, for the
    measure dx / (2π) (:prf:ref:`thm-fourier-rkhs`).

    Parameters
    ----------
    kernel : FourierKernel or JacobiTheta
    degree : int
        Waves up to cos(degree x), sin(degree x); those with coefficient 0
        are left out.

    Returns
    -------
    Eigensystem
        With 8 degree + 64 equidistant nodes.

    Examples
    --------
    >>> fourier_eigensystem(FourierKernel([1.0, 0.25, 0.5]), 2).eigenvalues
    array([1.  , 0.5 , 0.5 , 0.25, 0.25])
    """
    if not isinstance(kernel, _Periodic):
        raise ValueError("kernel must be a FourierKernel or a JacobiTheta, "
                         f"got {type(kernel).__name__}")
    degree = check.whole(degree, "degree", 0)
    lam = np.repeat(kernel.spectrum(degree)[degree:], 2)[1:]
    order = np.argsort(-lam, kind="stable")
    order = order[lam[order] > 0]
    if not order.size:
        raise ValueError("kernel has no positive coefficient up to degree "
                         f"{degree}")

    def functions(T):
        return _waves(_angles(T, "T"), degree)[:, order]

    n = 8 * degree + 64
    nodes, weights = 2 * np.pi * np.arange(n) / n, np.full(n, 1 / n)
    return Eigensystem(kernel, nodes, weights, lam[order],
                       functions(nodes) / np.sqrt(n), functions)


# %% [12] The integral operator of a kernel
def integral_operator(kernel: Kernel, nodes, weights,
                      f: Callable) -> RKHSFunction:
    """S_k f, the integral of k(x, ·) f(x) over μ = Σ w_i δ(x_i)
    (:prf:ref:`prop-integral-operator`).

    Parameters
    ----------
    kernel : Kernel
    nodes : sequence of n points
    weights : (n,) array
        Nonnegative masses: of a quadrature rule, or 1 / n for a sample.
    f : function
        Takes a sequence of points and returns as many numbers.

    Returns
    -------
    RKHSFunction
        With ⟨S_k f, g⟩ = Σ w_i f(x_i) g(x_i) for all g of the space.
    """
    nodes, w = _measure(nodes, weights)
    return RKHSFunction(kernel, nodes, w * _values(f, nodes))


# %% [13] Eigenfunctions by quadrature
# Up to this many nodes all eigenvectors are computed, and up to that many
# the matrix is stored.
_DENSE, _STORED = 1000, 4000


def _nonnegative(lam):
    if lam.min() < -1e-8 * np.abs(lam).max():
        raise ValueError("kernel must be positive definite, but the "
                         f"operator has the eigenvalue {lam.min():.6g}")
    return lam


def _leading(kernel, nodes, root, r):
    """Eigenvalues, largest first, and eigenvectors of D K D."""
    n = len(root)
    if r is None or n <= _DENSE or r > n // 20:
        lam, U = eigh(root[:, None] * kernel(nodes) * root)
        return _nonnegative(lam)[::-1], U[:, ::-1]
    if n <= _STORED:
        A = root[:, None] * kernel(nodes) * root
    else:
        A = LinearOperator((n, n), dtype=float, matvec=lambda v: (
            root * gram_dot(kernel, nodes, None, root * v.ravel())))
    # A fixed start, and one without symmetry: an even vector would never
    # find an odd eigenfunction.
    start = np.random.default_rng(0).normal(size=n)
    try:
        lam, U = eigsh(A, k=r, v0=start)
    except ArpackNoConvergence:
        raise ValueError(f"n_components must be smaller: {r} eigenvalues "
                         "cannot be told apart") from None
    return _nonnegative(lam)[::-1], U[:, ::-1]


# %% [14] Eigenfunctions by quadrature
def _rank(lam, n, r):
    rank = np.sum(lam > n * np.finfo(float).eps * abs(lam[0]))
    if rank == 0:
        raise ValueError("kernel must not be zero at all nodes")
    if (r or 1) > rank:
        raise ValueError(f"n_components must be at most {rank}, the number "
                         f"of eigenvalues above rounding, got {r}")
    return r or rank


def _signed(U):
    """Each column with its last large entry positive."""
    large = np.abs(U) >= 0.5 * np.abs(U).max(axis=0)
    last = len(U) - 1 - large[::-1].argmax(axis=0)
    return U * np.sign(U[last, np.arange(U.shape[1])])


# %% [15] Eigenfunctions by quadrature
def eigensystem(kernel: Kernel, nodes, weights,
                n_components: int | None = None) -> Eigensystem:
    """Eigenvalues and eigenfunctions of T_k by quadrature
    (:prf:ref:`prop-nystrom`).

    Parameters
    ----------
    kernel : Kernel
    nodes : sequence of n points
        Of any kind: a quadrature rule, or a sample.
    weights : (n,) array
        Nonnegative: the rule's weights times the density of μ, or 1 / n
        for a sample from μ.
    n_components : int, optional
        By default all eigenvalues above rounding, n ε λ_1; asking for
        more is an error.

    Returns
    -------
    Eigensystem
        Functions orthonormal for the rule, evaluated anywhere with errors
        of the order ε λ_1 / λ_j; features with errors ε √(λ_1 / λ_j).

    Examples
    --------
    The kernel xy on [-1, 1] has one eigenfunction, √(3/2) x:

    >>> from rkhs_lit.kernels import Linear
    >>> x, w = np.polynomial.legendre.leggauss(5)
    >>> system = eigensystem(Linear(), x, w)
    >>> system.eigenvalues.round(6), system.functions([2.0]).round(6)
    (array([0.666667]), array([[2.44949]]))
    """
    rule = RKHSFunction(kernel, *_measure(nodes, weights))   # a copy
    nodes, w = rule.points, rule.weights
    root, r = np.sqrt(w), n_components
    r = None if r is None else check.whole(r, "n_components", 1)
    lam, U = _leading(kernel, nodes, root, r)
    r = _rank(lam, len(w), r)
    lam, U = lam[:r].copy(), _signed(U[:, :r])
    expansion = root[:, None] * U / lam

    def functions(T):
        return gram_dot(kernel, as_sequence(T, "T"), nodes, expansion)

    return Eigensystem(kernel, nodes, w, lam, U, functions)


# %% [16] The Gaussian kernel and a Gaussian measure
def _hermite_functions(z, omega, r):
    """The r functions e_j at z = x / s."""
    u = np.sqrt(omega) * z
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


def _hermite_rule(omega, n):
    """Nodes, roots of the weights, and √w_i e_j(z_i)."""
    z = eigvalsh_tridiagonal(np.zeros(n), np.sqrt(np.arange(1, n)))
    z /= np.sqrt(omega)
    E = _hermite_functions(z, omega, n)
    # Scaled: the squares of the largest values may overflow.
    largest = np.abs(E).max(axis=1)
    size = largest * np.linalg.norm(E / largest[:, None], axis=1)
    return z, 1 / size, E / size[:, None]


# %% [17] The Gaussian kernel and a Gaussian measure
def hermite_eigensystem(sigma: float, width: float,
                        n_components: int) -> Eigensystem:
    """Eigenvalues and eigenfunctions of the Gaussian kernel for the
    measure N(0, width²), in closed form (:prf:ref:`thm-hermite`).

    Parameters
    ----------
    sigma : float
        Of the kernel exp(-(x - y)² / (2σ²)) on the line.
    width : float
        Standard deviation of the measure.
    n_components : int

    Returns
    -------
    Eigensystem
        With λ_j = (1 - B) B^j. In several dimensions the products of
        these eigenvalues and functions, one for each coordinate, are
        those of the Gaussian kernel and a product of normal measures.
        The rule is exact for products e_i e_j, i + j < 2 (r + 64), not
        for polynomials. For σ much smaller than `width` it does not reach
        the tails of μ.

    Examples
    --------
    >>> hermite_eigensystem(1.0, 1.0, 3).eigenvalues.round(6)
    array([0.618034, 0.236068, 0.09017 ])
    """
    sigma = check.width(sigma, "sigma")
    width = check.width(width, "width")
    r = check.whole(n_components, "n_components", 1)
    omega = np.hypot(1.0, 2 * width / sigma)
    B = (2 * width / sigma / (omega + 1)) ** 2      # (ω - 1) / (ω + 1)
    lam = 2 / (omega + 1) * B ** np.arange(r)
    if not lam[-1] > np.finfo(float).tiny:
        raise ValueError(f"n_components must be smaller: λ_{r - 1} is 0")

    def functions(T):
        x = as_points(T, "T")
        if x.shape[1] != 1:
            raise ValueError("T must be points of the line")
        # The recursion multiplies numbers up to 1e100 by √ω x / s.
        if np.abs(x).max() > 1e100 * width / np.sqrt(omega):
            raise ValueError("T is too far from zero")
        return _hermite_functions(x[:, 0] / width, omega, r)

    z, root, vectors = _hermite_rule(omega, r + 64)
    return Eigensystem(Gaussian(sigma), width * z, root**2, lam,
                       vectors[:, :r], functions)
