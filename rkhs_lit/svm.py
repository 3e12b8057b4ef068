"""Support vector machines: the widest street between two classes

The exported cells of the chapter ``book/svm.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 986479c8969950b1

# %% [1] Support vector machines: the widest street between two classes
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor

import rkhs_lit.conventions as check
from rkhs_lit.bochner import pivoted_cholesky
from rkhs_lit.duality import solve_qp
from rkhs_lit.kernels import Gaussian, Kernel, Linear
from rkhs_lit.moore_aronszajn import Features, RKHSFunction


# %% [2] From the theorem to the function
@dataclass(frozen=True, eq=False, repr=False)
class SVM(check.Record):
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

    def __post_init__(self):
        if not isinstance(self.function, RKHSFunction):
            raise ValueError("function must be an RKHSFunction")
        alpha = check.vector(self.alpha, "alpha")
        margins = check.vector(self.margins, "margins", len(alpha))
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "margins", margins)

    def __repr__(self):
        return (f"SVM({self.function.kernel}, n={len(self.alpha)}, "
                f"support={len(self.support)})")

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


# %% [3] From the theorem to the function
def _offset(s, alpha, c):
    """The interval of optimal offsets, and the one that we take."""
    if not s.offset:
        return (0.0, 0.0), 0.0
    t, share = s.y * (1 - s.Q @ alpha), alpha / c
    weights = share * (1 - share)
    if weights.any():
        b = float(weights @ t / weights.sum())
        return (b, b), b
    low = t[np.where(s.y > 0, alpha < c, alpha > 0)].max()
    high = t[np.where(s.y > 0, alpha > 0, alpha < c)].min()
    return (float(low), float(high)), float(low + (high - low) / 2)


# %% [4] From the theorem to the function
def _dual(s, q, A, b, lower, upper):
    """Minimise u'Qu/2 - q'u for Au = b, lower <= u <= upper; or None."""
    A, b = (A, b) if len(A) else (None, None)
    found = solve_qp(s.Q if s.F is None else None, -q, A, b, lower, upper,
                     factor=s.F)
    return found.x if found.status == "optimal" else None


def _groups(s):
    return [s.y > 0, s.y < 0] if s.offset else [s.y != 0]


def _hulls(s, h):
    """Weights of the nearest points of two reduced hulls, or None."""
    lower, A = np.zeros(len(s.y)), []
    for group in _groups(s):
        if group.sum() * h <= 1 + 1e-12:      # the mean alone
            lower[group] = h
        else:
            A.append(group.astype(float))
    return _dual(s, 0 * s.y, A, np.ones(len(A)), lower, h)


def _street(levels):
    """ρ and b from r₊ and r₋, or from one r without offset."""
    if len(levels) == 1:
        return levels[0], 0.0
    return (levels[0] + levels[1]) / 2, (levels[1] - levels[0]) / 2


# %% [5] From the theorem to the function
def _hard(s, C):
    """The hard margin, if its weights are at most C, or None."""
    u = _hulls(s, np.inf)
    if u is None:
        return None
    g = s.Q @ u
    rho, b = _street([g[group].min() for group in _groups(s)])
    if not rho > 1e-13:
        return None
    alpha, b = u / rho, float(b / rho)
    for _ in range(10):
        short = 1 - np.min(s.Q @ alpha + s.y * b)
        if short <= 0:
            return _machine(s, C, alpha, b, (b, b)) if (
                alpha.max() <= C * s.unit) else None
        alpha, b = alpha * (1 + 2 * short), b * (1 + 2 * short)
    return None


# %% [6] From the theorem to the function
def _soft(s, C):
    """The C-SVM, by its dual."""
    y, c, n = s.y, C * s.unit, len(s.y)
    if c > 1e50:                  # as good as infinite
        return None
    if s.offset and c * n < 1:
        h = 1 / min((y > 0).sum(), (y < 0).sum())
        u = _hulls(s, h)
        alpha = None if u is None else np.where(u == h, c, c / h * u)
    else:
        alpha = _dual(s, np.ones(n), y[None][:s.offset],
                      np.zeros(int(s.offset)), 0.0, c)
    if alpha is None:
        return None
    interval, b = _offset(s, alpha, c)
    return _machine(s, C, alpha, b, interval)


# %% [7] From the theorem to the function
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
    s, n = _signed(kernel, X, y, offset), len(y)
    C = check.positive(C, "C", ", or np.inf for a hard margin",
                       infinite=True)
    if s.offset and abs(s.y.sum()) == n:          # one class: f = 0
        b, ends = s.y[0], (1.0, np.inf)
        return _machine(s, C, np.zeros(n), b,
                        ends if b > 0 else (-np.inf, -1.0))
    if C < np.inf and not 1e-301 < C * s.unit < np.inf:
        raise ValueError(f"C = {C:.3g} is out of proportion to the kernel, "
                         f"whose largest value is {s.Phi.diag().max():.3g}")
    found = _certified(s, (_hard,) if C == np.inf else (_soft, _hard), C)
    if found is None:
        raise ValueError(
            "C = inf asks for classes that can be separated, and these "
            "cannot, to working precision: take a finite C"
            if C == np.inf else
            f"C = {C:.3g} is too large for these data: the duality gap "
            "stays above a millionth of the objective. Take a smaller C")
    return found


# %% [8] Fine print
# The functions y_i k(x_i, ·), Q = y_i y_j k(x_i, x_j) / unit, and maybe a
# thin F with FF' = Q up to rounding.
_Signed = namedtuple("_Signed", "Phi y offset unit Q F")


def _signed(kernel, X, y, offset):
    Phi, offset = Features(kernel, X), check.flag(offset, "offset")
    y, n, eps = check.plain_array(y, "y"), len(Phi), np.finfo(float).eps
    if y.shape != (n,):
        raise ValueError(f"y must be one label for each of {n} points, got "
                         f"shape {y.shape}")
    if y.dtype.kind not in "iuf" or not np.isin(y, (-1, 1)).all():
        raise ValueError("y must hold the labels -1 and +1 only: recode "
                         "two classes with np.where(y == one_of_them, 1, "
                         "-1)")
    y = y.astype(float)
    unit, Psi = Phi.unit()
    Q = y[:, None] * Psi.gram() * y
    if n >= 300:                                   # a thin factor?
        F = y[:, None] * pivoted_cholesky(Psi.kernel, Psi.points,
                                          tol=1e-14, max_rank=n // 5)
        trace, v = np.trace(Q), np.random.default_rng(0).normal(size=n)
        rest = np.linalg.norm(Q @ v - F @ (F.T @ v))
        if (trace - np.sum(F**2) <= 1e-12 * trace
                and rest <= 1e-11 * trace * np.linalg.norm(v)):
            return _Signed(Phi, y, offset, unit, Q, F)
    d = np.sqrt(np.maximum(Q.diagonal(), n * eps * Q.max() or 1.0))
    S = Q / d[:, None] / d
    S.flat[::n + 1] += 2 * n * eps * max(1.0, np.abs(S).sum(0).max())
    try:
        cho_factor(S, overwrite_a=True)
    except LinAlgError:
        raise ValueError("kernel must be positive definite, but its Gram "
                         "matrix at X is not") from None
    return _Signed(Phi, y, offset, unit, Q, None)


# %% [9] Fine print
def _machine(s, C, alpha, b, interval, **more):
    """The record, from weights for the kernel k / unit."""
    f, c = s.Q @ alpha, C * s.unit
    m, square = f + s.y * b, alpha @ f
    inside, outside = np.maximum(0.0, 1 - m), np.maximum(0.0, m - 1)
    # A hard margin has no slack; its caller has made m_i >= 1.
    slack, room = (0.0, 0.0) if C == np.inf else (
        c * inside.sum(), (c - alpha) * inside)
    gap = np.sum(room + alpha * outside) + abs(b * (alpha @ s.y))
    weights = alpha / s.unit
    held = np.flatnonzero(alpha) if alpha.any() else np.array([0])
    return SVM(s.Phi[held] @ (weights * s.y)[held], float(b), interval,
               weights, float(C), m, float(square / 2 + slack) / s.unit,
               float(weights.sum() - square / 2 / s.unit),
               float(gap) / s.unit, **more)


def _certified(s, roads, parameter):
    """The first machine whose gap is small, or None."""
    for s in (s, s._replace(F=None))[s.F is None:]:
        for road in roads:
            machine = road(s, parameter)
            if machine is not None and machine.gap <= machine.primal * (
                    1e-6 if s.F is None else 1e-11):
                return machine
    return None


# %% [10] The ν-SVM: a parameter with a meaning
def _level(g, u, h):
    """The r with g <= r where u > 0, and g >= r where u < h."""
    u = np.where(np.abs(u - h) <= 1e-9 * h, h, np.where(u < 1e-9 * h, 0, u))
    weights = u * (1 - u / h)
    if weights.any():
        return weights @ g / weights.sum()
    low, high = g[u > 0].max(), g[u < h].min(initial=np.inf)
    return low if high == np.inf else low + (high - low) / 2


def _reduced(s, nu):
    """The ν-SVM, or None if f = 0."""
    n = len(s.y)
    h = (2.0 if s.offset else 1.0) / (nu * n)
    u = _hulls(s, h)
    if u is None:
        return None
    g = s.Q @ u
    rho, b = _street([_level(g[group], u[group], h)
                      for group in _groups(s)])
    if not rho > 1e-13:
        return None
    c, b = h / rho, float(b / rho)
    alpha = np.where(u == h, c, u / rho)
    low, high = _offset(s, alpha, c)[0]
    return _machine(s, c / s.unit, alpha, b,
                    (low, high) if low < high else (b, b), nu=nu,
                    rho=float(s.unit / (c * n)))


# %% [11] The ν-SVM: a parameter with a meaning
def nu_svm(kernel: Kernel, X, y, nu: float, *, offset: bool = True) -> SVM:
    """The ν-SVM, as the C-SVM that it is (:prf:ref:`thm-nu-c`).

    The ν-SVM minimises ‖f‖²/2 - νρ + (1/n) Σ (ρ - y_i (f(x_i) + b))₊ over
    f, b and ρ. The result holds f/ρ, b/ρ and the weights divided by ρ,
    which solve the C-SVM with C = 1/(nρ), like scikit-learn's ``NuSVC``.

    Parameters
    ----------
    kernel, X, y, offset
        As in `svm`.
    nu : float
        At least this fraction of the points are support vectors, at most
        this fraction have y_i (f(x_i) + b) < 1
        (:prf:ref:`thm-nu-fractions`). Positive, and with offset at most
        2 min(n₊, n₋)/n, without offset at most 1.

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
    s, n = _signed(kernel, X, y, offset), len(y)
    least = min((s.y > 0).sum(), (s.y < 0).sum())
    most = float(2 * least / n) if s.offset else 1.0
    wanted = f" of at most {most:.6g} for these labels"
    if (nu := check.positive(nu, "nu", wanted)) > most * (1 + 1e-12):
        raise ValueError(f"nu must be a positive number{wanted}, got {nu}")
    found = _certified(s, (_reduced,), nu)
    if found is None:
        raise ValueError(f"nu = {nu} is too small for these data: the "
                         "classes overlap so much that f = 0, up to "
                         "rounding. Take a larger nu")
    return found
