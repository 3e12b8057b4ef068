"""Support vector machines: the widest street between two classes

The exported cells of the chapter ``book/svm.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 4ff996c8eca11721

# %% [1] Support vector machines: the widest street between two classes
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lstsq

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_sequence
from rkhs_lit.bochner import _take, pivoted_cholesky
from rkhs_lit.duality import _quadratic, solve_qp
from rkhs_lit.kernels import Gaussian, Kernel, Linear
from rkhs_lit.moore_aronszajn import RKHSFunction, _function, _space


# %% [2] From the theorem to the function
def _labels(y, n):
    given = check.plain_array(y, "y")
    if given.shape != (n,):
        raise ValueError(f"y must be one label for each of {n} points, got "
                         f"shape {np.shape(given)}")
    if given.dtype.kind not in "iuf" or not np.isin(given, (-1, 1)).all():
        raise ValueError("y must hold the labels -1 and +1 only: recode "
                         "two classes with np.where(y == one_of_them, 1, "
                         "-1)")
    return given.astype(float)


def _data(kernel, X, y):
    """Points, labels, the matrix y_i y_j k(x_i, x_j) / κ, and κ, the
    largest k(x, x)."""
    _space(kernel)
    X = as_sequence(X)
    y, Q = _labels(y, len(X)), kernel(X)
    diagonal = Q.diagonal()
    if diagonal.min() < 0:
        i = diagonal.argmin()
        raise ValueError("kernel must be positive definite, but k(x, x) = "
                         f"{diagonal[i]:.6g} at point {i}")
    size = float(diagonal.max()) or 1.0
    # One factor at a time: the product may leave the range of floats.
    Q = Q / size
    Q *= y
    Q *= y[:, None]
    return X, y, Q, size


# %% [3] From the theorem to the function
def _faces(Q, q, A, cap, u, lam):
    """Which weights are 0, and which are at their upper bound."""
    f = Q @ u
    g, size = f - q + A.T @ lam, u.max()
    # A gradient of rounding errors says nothing.
    noise = 1e-11 * (np.abs(f).max() + np.abs(q).max())
    slope = max(np.abs(g).max(), noise)
    room = np.minimum(cap - u, size)
    return u * slope < g * size, room * slope < -g * size


def _violation(Q, q, A, c, cap, u, lam, size):
    """By how much u and λ miss the conditions, for weights of a size."""
    g = Q @ u - q + A.T @ lam
    room = np.minimum(cap - u, size)
    return (room @ np.maximum(-g, 0) + u @ np.maximum(g, 0)
            + np.abs(c - A @ u) @ (1 + np.abs(lam)))


# %% [4] From the theorem to the function
def _solved(Q, q, A, c, F, v, lam):
    """v and λ with Au = c, and with gradient 0 in the entries F."""
    m, p = len(F), len(c)
    system = np.zeros((m + p, m + p))
    system[:m, :m] = Q[np.ix_(F, F)]
    system[:m, m:] = A[:, F].T
    system[m:, :m] = A[:, F]
    right = np.concatenate([q[F] - Q[F] @ v - A[:, F].T @ lam, c - A @ v])
    step = lstsq(system, right, lapack_driver="gelsy")[0] if (
        m + p) else right
    v[F] += step[:m]
    return v, lam + step[m:]


# %% [5] From the theorem to the function
def _finish(Q, q, A, c, cap, u, lam):
    """The solution u, λ of a quadratic programme, with exact bounds."""
    low, high = _faces(Q, q, A, cap, u, lam)
    size = u.max()
    start, best, least = (u, lam), (u, lam), np.inf
    enough = (10 * _violation(Q, q, A, c, cap, u, lam, size)
              + 1e-14 * (np.abs(q) @ u + u @ (Q @ u)))
    for _ in range(10):
        F = np.flatnonzero(~(low | high))
        v = np.where(low, 0.0, np.where(high, cap, u))
        v, lam = _solved(Q, q, A, c, F, v, lam)
        g = Q @ v - q + A.T @ lam
        low = (low & (g >= 0)) | (v < 0)
        high = (high & (g <= 0)) | (v > cap)
        u = np.clip(v, 0.0, cap)
        violation = _violation(Q, q, A, c, cap, u, lam, size)
        if violation < least:
            best, least = (u, lam), violation
        if least <= enough:
            return best
    # Never good enough: the start, with its smallest weights removed.
    u, lam = start
    u = np.where(cap - u > 1e-11 * u.max(), u, cap)
    return np.where(u > 1e-11 * u.max(), u, 0.0), lam


# %% [6] From the theorem to the function
@dataclass(frozen=True, eq=False)
class _Entries(Kernel):
    """A matrix, as a kernel on its indices."""

    Q: np.ndarray

    def _gram(self, X, Y):
        return self.Q[np.ix_(X, Y)]

    def _diag(self, X):
        return self.Q.diagonal()[X]


def _thin(Q):
    """F with few columns and FF' = Q up to rounding, or None."""
    n, trace = len(Q), np.trace(Q)
    if n < 300:
        return None
    F = pivoted_cholesky(_Entries(Q), np.arange(n), tol=1e-14,
                         max_rank=n // 5)
    v = np.random.default_rng(0).normal(size=n)
    rest = np.linalg.norm(Q @ v - F @ (F.T @ v))
    if (trace - np.sum(F**2) <= 1e-12 * trace
            and rest <= 1e-11 * trace * np.linalg.norm(v)):
        return F
    return None


# %% [7] From the theorem to the function
def _definite(Q):
    try:
        _quadratic(Q)
    except ValueError as error:
        raise ValueError("kernel must be positive definite, but its Gram "
                         "matrix at X is not") from error


def _programme(Q, q, A, c, cap):
    """Minimise u'Qu/2 - q'u for A u = c, 0 <= u <= cap; or None."""
    rows = (A, c) if len(A) else (None, None)
    for F in (_thin(Q), None):
        try:
            found = (solve_qp(Q, -q, *rows, 0.0, cap) if F is None else
                     solve_qp(None, -q, *rows, 0.0, cap, factor=F))
        except (ValueError, RuntimeError):
            _definite(Q)
            continue                             # out of scale
        if found.status == "optimal":
            u, lam = _finish(Q, q, A, c, cap, np.clip(found.x, 0.0, cap),
                             found.equality)
            if F is None or _violation(
                    Q, q, A, c, cap, u, lam, u.max()) <= 1e-12 * (
                    np.abs(q) @ u + u @ (Q @ u)):
                return u
    return None


# %% [8] From the theorem to the function
class _Machine:
    """What follows from the fields of an SVM."""

    def decision(self, T) -> np.ndarray:
        """The numbers f(t) + b at the points T."""
        return self.function(T) + self.b

    def predict(self, T) -> np.ndarray:
        """Labels: +1 where f(t) + b >= 0, otherwise -1."""
        return np.where(self.decision(T) >= 0, 1, -1)

    @property
    def support(self) -> np.ndarray:
        return np.flatnonzero(self.alpha > 0)

    @property
    def margin(self) -> np.ndarray:
        return np.flatnonzero((self.alpha > 0) & (self.alpha < self.C))

    @property
    def non_margin(self) -> np.ndarray:
        return np.flatnonzero(self.alpha == self.C)

    @property
    def slack(self) -> np.ndarray:
        return np.where(self.alpha < self.C, 0.0,
                        np.maximum(0.0, 1 - self.margins))

    def __post_init__(self):
        _function(self.function, "function")
        alpha = check.vector(self.alpha, "alpha", np.size(self.alpha))
        margins = check.vector(self.margins, "margins", len(alpha))
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "margins", margins)

    def __repr__(self):
        return (f"SVM({self.function.kernel}, n={len(self.alpha)}, "
                f"support={len(self.support)})")


# %% [9] From the theorem to the function
@dataclass(frozen=True, eq=False, repr=False)
class SVM(_Machine):
    """A support vector machine f + b with its certificate
    (:prf:ref:`thm-svm-dual`).

    ``decision(T)`` gives f + b at points T, ``predict(T)`` its signs.
    The arrays ``support``, ``margin`` and ``non_margin`` hold the indices
    of all, the margin and the non-margin support vectors, ``slack`` the
    numbers ξ_i (:prf:ref:`thm-svm-types`).

    Attributes
    ----------
    function : RKHSFunction
        f = Σ α_i y_i k(x_i, ·), on the support vectors only.
    b : float
        The offset; 0 without offset.
    b_interval : (float, float)
        All optimal offsets (:prf:ref:`thm-svm-offset`).
    alpha : (n,) array
        The weights, from 0 to `C`, exactly 0 or `C` at the bounds.
    C : float
        The price of slack; ``np.inf`` for the hard margin.
    margins : (n,) array
        The numbers m_i = y_i (f(x_i) + b).
    primal : float
        P(f, b) = ‖f‖²/2 + C Σ (1 - m_i)₊.
    dual : float
        D(α) = Σ α_i - ‖f‖²/2.
    gap : float
        P - D (:prf:ref:`lem-svm-gap`). f differs from the best one by at
        most √(gap k(x, x)) at x (:prf:ref:`cor-svm-error`).
    nu : float or None
        The parameter of `nu_svm` (:prf:ref:`thm-nu-c`).
    rho : float or None
        ``rho * f`` and ``rho * b`` solve the ν-SVM.
    """

    function: RKHSFunction
    b: float
    b_interval: tuple[float, float]
    alpha: np.ndarray
    C: float
    margins: np.ndarray
    primal: float
    dual: float
    gap: float
    nu: float | None = None
    rho: float | None = None


# %% [10] From the theorem to the function
def _record(kernel, X, y, Q, size, C, alpha, interval, b, **more):
    """The record, from weights for the kernel k / size."""
    f = Q @ alpha
    m, square, c = f + y * b, float(alpha @ f), C * size
    inside = np.maximum(0.0, 1 - m)
    # A hard margin has no slack; its caller has made m_i >= 1.
    room = np.zeros_like(m) if C == np.inf else (c - alpha) * inside
    slack = 0.0 if C == np.inf else c * inside.sum()
    gap = np.sum(room + alpha * np.maximum(0.0, m - 1)) + abs(
        b * (alpha @ y))
    held = np.flatnonzero(alpha)
    held = held if len(held) else np.array([0])
    bound = alpha == c
    alpha = np.where(bound, C, alpha / size)
    return SVM(RKHSFunction(kernel, _take(X, held), (alpha * y)[held]),
               float(b), interval, alpha, float(C), m,
               float(square / 2 + slack) / size,
               float(alpha.sum()) - square / 2 / size, float(gap) / size,
               **more)


# %% [11] From the theorem to the function
def _middle(low, high):
    if np.isinf(high):
        return float(low)
    return float(high if np.isinf(low) else low + (high - low) / 2)


def _offset(t, y, alpha, c):
    """The interval of optimal offsets, and the one that we take."""
    share = alpha / c
    weights = share * (1 - share)
    if weights.any():
        b = float(weights @ t / weights.sum())
        return (b, b), b
    lower = t[np.where(y > 0, alpha < c, alpha > 0)]
    upper = t[np.where(y > 0, alpha > 0, alpha < c)]
    low, high = lower.max(initial=-np.inf), upper.min(initial=np.inf)
    return (float(low), float(high)), _middle(low, high)


# %% [12] From the theorem to the function
def _hulls(Q, y, cap, offset):
    """Weights of the nearest points of two reduced hulls, or None."""
    groups = _groups(y, offset)
    u, rest = np.zeros(len(y)), np.full(len(y), True)
    for group in groups:
        if group.sum() * cap <= 1 + 1e-12:       # no choice
            u[group], rest[group] = cap, False
    if not rest.all():                       # no programme sees all of Q
        _definite(Q)
    if not rest.any():
        return u
    A = np.array([group[rest] for group in groups if (group & rest).any()],
                 dtype=float)
    part = _programme(Q[np.ix_(rest, rest)], -Q[rest] @ u, A,
                      np.ones(len(A)), cap)
    if part is None:
        return None
    u[rest] = part
    return u


def _groups(y, offset):
    return [y > 0, y < 0] if offset else [np.full(len(y), True)]


def _street(levels):
    """ρ and b from r₊ and r₋, or from one r without offset."""
    if len(levels) == 1:
        return levels[0], 0.0
    return (levels[0] + levels[1]) / 2, (levels[1] - levels[0]) / 2


# %% [13] From the theorem to the function
def _rigid(Q, y, offset):
    """Weights and b with all m_i >= 1, or None if there are none."""
    u = _hulls(Q, y, np.inf, offset)
    if u is None:
        return None
    g = Q @ u
    rho, b = _street([g[group].min() for group in _groups(y, offset)])
    if not rho > 1e-13:
        return None
    alpha, b = u / rho, float(b / rho)
    for _ in range(10):
        short = 1 - np.min(Q @ alpha + y * b)
        if short <= 0:
            return alpha, b
        alpha, b = alpha * (1 + 2 * short), b * (1 + 2 * short)
    return None


def _hard(kernel, X, y, Q, size, offset):
    found = _rigid(Q, y, offset)
    if found is not None:
        alpha, b = found
        machine = _record(kernel, X, y, Q, size, np.inf, alpha, (b, b), b)
        if machine.gap <= 1e-6 * machine.primal:
            return machine
    raise ValueError("C = inf asks for classes that can be separated, and "
                     "these cannot, to working precision: take a finite C")


# %% [14] From the theorem to the function
def _large(kernel, X, y, Q, size, C, offset):
    found = _rigid(Q, y, offset)
    if found is not None and found[0].max() <= C * size:
        alpha, b = found
        machine = _record(kernel, X, y, Q, size, C, alpha, (b, b), b)
        if machine.gap <= 1e-6 * machine.primal:
            return machine
    raise ValueError(f"C = {C:.3g} is too large for these data: the "
                     "duality gap stays above a millionth of the "
                     "objective. Take a smaller C")


# %% [15] From the theorem to the function
def svm(kernel: Kernel, X, y, C: float, *, offset: bool = True) -> SVM:
    """The C-SVM: minimise ‖f‖²/2 + C Σ (1 - y_i (f(x_i) + b))₊
    (:prf:ref:`thm-svm-dual`).

    scikit-learn's ``SVC(C=C)`` solves the same problem. In the words of
    `minimize_risk` it is the hinge loss with lam = 1 / (2C).

    Parameters
    ----------
    kernel : Kernel
        Positive definite, on any kind of points.
    X : sequence of n points
        May repeat points, also with different labels.
    y : (n,) array
        The labels -1 and +1. If only one of them occurs, the answer with
        offset is that label everywhere: f = 0, b = ±1.
    C : float
        Positive; ``np.inf`` asks for the hard margin
        (:prf:ref:`thm-svm-hard`) and a ValueError where the classes
        cannot be separated.
    offset : bool
        Whether there is a b. Without, b = 0.

    Returns
    -------
    SVM
        With the middle of the interval as b if several are optimal.

    Examples
    --------
    >>> machine = svm(Linear(), [-1.0, 1.0, 5.0], [-1, 1, 1], 10.0)
    >>> machine.support, machine.decision([3.0]).round(6)
    (array([0, 1]), array([3.]))
    """
    X, y, Q, size = _data(kernel, X, y)
    C, parts = _price(C, offset), (kernel, X, y, Q, size)
    if offset and abs(y.sum()) == len(y):
        return _constant(*parts, C)
    if C == np.inf:
        return _hard(*parts, offset)
    return _soft(*parts, C, offset)


# %% [16] From the theorem to the function
def _price(C, offset):
    _truth(offset)
    return check.positive(C, "C", ", or np.inf for a hard margin",
                          infinite=True)


def _truth(offset):
    if not isinstance(offset, (bool, np.bool_)):
        raise ValueError(f"offset must be True or False, got {offset!r}")


# %% [17] From the theorem to the function
def _constant(kernel, X, y, Q, size, C):
    """One class only: f = 0, and b is the label."""
    _definite(Q)
    interval = (1.0, np.inf) if y[0] > 0 else (-np.inf, -1.0)
    return _record(kernel, X, y, Q, size, C, np.zeros(len(y)), interval,
                   float(y[0]))


def _soft(kernel, X, y, Q, size, C, offset):
    parts, c, n = (kernel, X, y, Q, size, C), C * size, len(y)
    if not 0 < c < np.inf:
        raise ValueError(f"C = {C:.3g} is out of proportion to the kernel, "
                         f"whose largest value is {size:.3g}")
    if offset and c * n < 1:
        cap = 1 / int(min((y > 0).sum(), (y < 0).sum()))
        a, u = c / cap, _hulls(Q, y, cap, True)
    else:
        A = y[None] if offset else np.zeros((0, n))
        a = min(c, 1.0)
        cap = c / a
        u = _programme(a * Q, np.ones(n), A, np.zeros(len(A)), cap)
    if u is not None:
        alpha = np.where(u == cap, c, a * u)
        machine = _with_offset(*parts, alpha, offset)
        if machine.gap <= 1e-6 * machine.primal:
            return machine
    return _large(*parts, offset)


def _with_offset(kernel, X, y, Q, size, C, alpha, offset):
    interval, b = (0.0, 0.0), 0.0
    if offset:
        interval, b = _offset(y * (1 - Q @ alpha), y, alpha, C * size)
    return _record(kernel, X, y, Q, size, C, alpha, interval, b)


# %% [18] The ν-SVM: a parameter with a meaning
def _level(g, u, cap):
    """The r with g <= r where u > 0, and g >= r where u < cap."""
    weights = u * (1 - u / cap)
    if weights.any():
        return weights @ g / weights.sum()
    return _middle(g[u > 0].max(), g[u < cap].min(initial=np.inf))


# %% [19] The ν-SVM: a parameter with a meaning
def nu_svm(kernel: Kernel, X, y, nu: float, *, offset: bool = True) -> SVM:
    """The ν-SVM, as the C-SVM that it is (:prf:ref:`thm-nu-c`).

    The ν-SVM minimises ‖f‖²/2 - νρ + (1/n) Σ (ρ - y_i (f(x_i) + b))₊ over
    f, b and ρ. The result holds f/ρ, b/ρ and the weights divided by ρ,
    which solve the C-SVM with C = 1/(nρ), like scikit-learn's ``NuSVC``.

    Parameters
    ----------
    kernel : Kernel
        Positive definite, on any kind of points.
    X : sequence of n points
    y : (n,) array
        The labels -1 and +1.
    nu : float
        At least this fraction of the points are support vectors, at most
        this fraction have y_i (f(x_i) + b) < 1
        (:prf:ref:`thm-nu-fractions`). Positive, and with offset at most
        2 min(n₊, n₋)/n, without offset at most 1.
    offset : bool
        Whether there is a b. Without, b = 0.

    Returns
    -------
    SVM
        With `nu` and `rho`. If several ρ are optimal, as for the largest
        ν, the middle one, or the smallest if there is no largest. A
        ValueError if ν is so small that f = 0 (:prf:ref:`prop-nu-small`).

    Examples
    --------
    >>> machine = nu_svm(Gaussian(1.0), [0.0, 1.0, 2.0, 3.0],
    ...                  [-1, -1, 1, 1], 0.5)
    >>> len(machine.support), machine.predict([-1.0, 4.0])
    (2, array([-1,  1]))
    """
    X, y, Q, size = _data(kernel, X, y)
    cap = _cap(nu, y, offset)
    u = _hulls(Q, y, cap, offset)
    if u is not None:
        g = Q @ u
        rho, b = _street([_level(g[group], u[group], cap)
                          for group in _groups(y, offset)])
        if rho > 1e-13:
            return _scaled(kernel, X, y, Q, size, u, cap, rho, b, nu)
    raise ValueError(f"nu = {nu} is too small for these data: the classes "
                     "overlap so much that f = 0. Take a larger nu")


# %% [20] The ν-SVM: a parameter with a meaning
def _cap(nu, y, offset):
    """The bound h of the reduced hulls."""
    _truth(offset)
    least, n = min((y > 0).sum(), (y < 0).sum()), len(y)
    most = float(2 * least / n) if offset else 1.0
    wanted = f" of at most {most:.6g} for these labels"
    if (nu := check.positive(nu, "nu", wanted)) > most * (1 + 1e-12):
        raise ValueError(f"nu must be a positive number{wanted}, got {nu}")
    return (2.0 if offset else 1.0) / (nu * n)


def _scaled(kernel, X, y, Q, size, u, cap, rho, b, nu):
    c, b = cap / rho, float(b / rho)
    alpha = np.where(u == cap, c, u / rho)
    interval = _offset(y * (1 - Q @ alpha), y, alpha, c)[0]
    if interval[0] == interval[1]:
        interval = (b, b)
    machine = _record(kernel, X, y, Q, size, c / size, alpha, interval, b,
                      nu=float(nu), rho=float(size / (c * len(y))))
    if machine.gap <= 1e-6 * machine.primal:
        return machine
    raise ValueError(f"nu = {nu} is too close to the smallest possible "
                     "value for these data. Take a larger nu")
