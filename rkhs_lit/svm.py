"""Support vector machines: the widest street between two classes"""
# The exported cells of book/svm.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 516efc3691b0a520

# %% [1] Support vector machines: the widest street between two classes
from collections import namedtuple
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, blas, cho_factor, cho_solve

import rkhs_lit.conventions as check
from rkhs_lit.kernels import Gaussian, Kernel, Linear
from rkhs_lit.low_rank import pivoted_cholesky
from rkhs_lit.moore_aronszajn import Features, RKHSFunction, as_function
from rkhs_lit.quadratic import solve_qp

# %% [2] Two weights at a time
def pair_steps(K, t, a, low, high, tol, steps):
    """Raise the dual by violating pairs (:prf:ref:`thm-svm-pairs`).

    Takes at most `steps` steps, until no pair violates by more than `tol`.
    `K` is the Gram matrix, a are the coefficients α_i y_i, `low` and `high`
    their bounds, t is y - Ka. Returns the new a and t; trusts its arrays.

    >>> K, y = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([1.0, -1.0])
    >>> pair_steps(K, y, 0 * y, np.minimum(5 * y, 0),
    ...            np.maximum(5 * y, 0), 1e-9, 10)
    (array([ 0.5, -0.5]), array([0., 0.]))
    """
    t, a, d = np.array(t), np.array(a), K.diagonal()
    up = np.where(a < high, 0.0, -np.inf)               # zero on I
    down = np.where(a > low, 0.0, np.inf)               # zero on J
    for _ in range(steps):
        i = (t + up).argmax()
        v = t[i] - t - down
        eta = np.maximum(d[i] + d - 2 * K[i], 1e-14)
        j = np.where(v > tol, v * v / eta, 0.0).argmax()
        if v[j] <= tol:
            break
        best, rise, fall = v[j] / eta[j], high[i] - a[i], a[j] - low[j]
        s = min(best, rise, fall)
        t -= s * (K[i] - K[j])
        a[i] = high[i] if s == rise else a[i] + s
        a[j] = low[j] if s == fall else a[j] - s
        up[i], down[i] = -np.inf if s == rise else 0.0, 0.0
        up[j], down[j] = 0.0, np.inf if s == fall else 0.0
    return a, t

# %% [3] Weights, offset and certificate
@dataclass(frozen=True, eq=False, repr=False)
class SVM(check.Record):
    """A support vector machine f + b, certified (:prf:ref:`thm-svm-dual`).

    ``support``, ``on_margin`` and ``inside_margin`` are the indices of
    all, the margin and the non-margin support vectors, ``slack`` the
    numbers ξ_i (:prf:ref:`thm-svm-types`). f differs from the best one by
    at most √(gap k(x, x)) at x (:prf:ref:`cor-svm-error`).
    """

    function: RKHSFunction    #: f = Σ α_i y_i k(x_i, ·) on the support
    b: float                  #: the offset; 0 without offset
    #: all optimal offsets (:prf:ref:`thm-svm-offset`)
    b_interval: tuple[float, float]
    alpha: np.ndarray         #: n weights, exactly 0 or C at the bounds
    C: float                  #: the price of slack, or np.inf
    margins: np.ndarray       #: the numbers m_i = y_i (f(x_i) + b)
    primal: float             #: P(f, b) = ‖f‖²/2 + C Σ (1 - m_i)₊
    dual: float               #: D(α) = Σ α_i - ‖f‖²/2
    gap: float                #: P - D (:prf:ref:`lem-svm-gap`)
    nu: float | None = None   #: that of `nu_svm` (:prf:ref:`thm-nu-c`)
    rho: float | None = None  #: rho * f and rho * b solve the ν-SVM

    def __post_init__(self):
        as_function(self.function, "function")
        alpha = check.vector(self.alpha, "alpha")
        margins = check.frozen(self.margins)
        if margins.shape != alpha.shape or not np.isfinite(margins).all():
            raise ValueError("margins must be finite, one for each weight")
        vars(self).update(alpha=alpha, margins=margins)

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
    def on_margin(self) -> np.ndarray:
        return np.flatnonzero((self.alpha > 0) & (self.alpha < self.C))

    @property
    def inside_margin(self) -> np.ndarray:
        return np.flatnonzero(self.alpha == self.C)

    @property
    def slack(self) -> np.ndarray:
        return np.where(self.alpha < self.C, 0.0,
                        np.maximum(0.0, 1 - self.margins))

# %% [4] Fine print
# The map of the kernel k / unit, K its Gram matrix up to _MANY points; for
# programmes Q = y_i y_j k(x_i, x_j) / unit, or a thin F with FF' = Q.
_Signed = namedtuple("_Signed", "Phi Psi unit y offset groups K Q F")
_MANY = 5000


def _signed(kernel, X, y, offset):
    Phi, offset = Features(kernel, X), check.flag(offset, "offset")
    y, eps = check.vector(y, "y", Phi.n), np.finfo(float).eps
    if not np.isin(y, (-1, 1)).all():
        raise ValueError("y must hold the labels -1 and +1 only: recode "
                         "with np.where(y == one_of_them, 1, -1)")
    unit, Psi = Phi.unit()
    K = Psi.gram() if Phi.n <= _MANY else None
    n = min(Phi.n, 300)
    some = np.linspace(0, Phi.n - 1, n).astype(int)
    S = Psi[some].gram() if K is None else K[np.ix_(some, some)]
    d = np.sqrt(np.maximum(S.diagonal(), n * eps * S.max() or 1.0))
    S = S / d[:, None] / d
    S.flat[::n + 1] += 2 * n * eps * max(1.0, np.abs(S).sum(0).max())
    try:
        np.linalg.cholesky(S)
    except LinAlgError:
        raise ValueError("kernel must be positive definite, but its Gram "
                         "matrix at X is not") from None
    groups = [y > 0, y < 0] if offset else [y != 0]
    return _Signed(Phi, Psi, unit, y, offset, groups, K, None, None)


def _values(s, u):
    """The numbers y_i f_u(x_i), or Qu."""
    a, held = s.y * u, np.flatnonzero(u)
    return s.y * (s.Psi.dot(a[held], s.Psi[held]) if s.K is None
                  else s.K @ a)

# %% [5] Fine print
def _face(K, d, a, low, high, mu):
    """The p of the linear system; entries stop at the edge of the box."""
    p, S, rest = a.copy(), np.array([], int), np.full(len(a), True)
    H, kind = S, np.float32 if mu > 1e-4 and len(a) > 500 else float
    K.flat[::len(a) + 1] += mu
    while rest.any():
        e = np.where(rest, 0.0, p - a)
        if len(S) < max(200, 8 * len(H)):      # too many stopped since
            S, H = np.flatnonzero(rest), H[:0]
            A = (K if rest.all() else K[np.ix_(S, S)]).astype(kind)
            factor = cho_factor(A.T, True, True, check_finite=False)
            W, Z = np.empty((len(S), 0)), np.ones((len(S), 2), kind)
            Z[:, 0] = (d - blas.dsymv(1.0, K.T, e))[S]
        else:
            Z = (S[:, None] == H[W.shape[1] - 2:]).astype(kind)
        W = np.hstack([W, cho_solve(factor, Z, check_finite=False)])
        M = np.vstack([W.sum(axis=0), W[np.searchsorted(S, H)]])
        g = np.append(e[S].sum() - e.sum(), e[H])
        x = W[:, 0] - W[:, 1:] @ np.linalg.solve(M[:, 1:], M[:, 0] - g)
        R, x = S[rest[S]], x[rest[S]]
        x += a[R] - (x.sum() + e.sum()) / len(R)       # to the last digit
        p[R] = np.clip(x, low[R], high[R])
        rest[R] = p[R] == x
        if rest[R].all():
            return p
        H = np.append(H, R[~rest[R]])
    return a

# %% [6] Fine print
def _climb(K, t, a, low, high, tol):
    """The dual on few points: pairs first, then all free weights."""
    n, c, mark, stalled = len(a), (high - low).min(), np.inf, 0
    a, t = pair_steps(K, t, a, low, high, max(tol, 1e-3), n)
    for _ in range(60):
        up, down = a < high, a > low
        v, free = t[up].max() - t[down].min(), up & down
        mark, stalled = (v, 0) if v < mark / 2 else (mark, stalled + 1)
        if v <= tol or (stalled and v <= 1e-15 * c * n):
            break
        d = t - (np.median(t[free]) if free.any() else t[up].max() - v / 2)
        S = np.flatnonzero(free | up & (d > tol) | down & (d < -tol))
        p, K_S, box = a.copy(), K[np.ix_(S, S)], (a[S], low[S], high[S])
        if stalled > 2:
            p[S], _ = pair_steps(K_S, d[S], *box, v / 1000, 2 * len(S))
            mark, stalled = np.inf, 0
        else:
            with suppress(LinAlgError):        # indefinite, by rounding
                p[S] = _face(K_S, d[S], *box, v / c + 1e-13 * n)
        e = p - a
        if (rise := e @ d) > 0:
            Ke = (e[S] @ K[S] if 4 * len(S) < n
                  else blas.dsymv(1.0, K.T, e))
            theta = rise / (e @ Ke) if rise < e @ Ke else 1.0
            a, t = p if theta == 1 else a + theta * e, t - theta * Ke
    return a, t

# %% [7] Fine print
def _working_sets(s, C):
    """The dual on at most _MANY points at a time, or None if C is tiny."""
    c, n, y = C * s.unit, s.Psi.n, s.y
    if s.offset and c * n < 1:
        return None
    low, high, a, t = np.minimum(c * y, 0), np.maximum(c * y, 0), 0 * y, +y
    if not s.offset:                   # a point with k = 0 and no bounds
        low, high, a, t = (np.append(*pair) for pair in (
            (low, -np.inf), (high, np.inf), (a, 0.0), (t, 0.0)))
    B, tol, half = np.arange(n), max(1e-11, 1e-15 * c * n), _MANY // 2
    for _ in range(100):
        up, down = np.where(a < high, t, -np.inf), np.where(
            a > low, t, np.inf)
        if (violation := up.max() - down.min()) <= tol:
            break
        if n > _MANY:
            B = np.union1d(np.argpartition(-up[:n], half)[:half],
                           np.argpartition(down[:n], half)[:half])
        Psi_B = s.Psi[B]
        K = Psi_B.gram() if s.K is None else s.K
        rows, K = (B, K) if s.offset else (np.append(B, n),
                                           np.pad(K, (0, 1)))
        new, _ = _climb(K, t[rows], a[rows], low[rows], high[rows],
                        1e-11 if n <= _MANY else max(tol, violation / 10))
        change = (new - a[rows])[:len(B)]
        a[rows], moved = new, np.flatnonzero(change)
        if n <= _MANY or not len(moved):
            break
        t[:n] -= s.Psi.dot(change[moved], Psi_B[moved])
    return _placed(s, C, np.abs(a[:n]))

# %% [8] Fine print
def _dual(s, q, A, b, lower, upper):
    """Minimise u'Qu/2 - q Σ u_i for Au = b and bounds on u; or None."""
    found = solve_qp(s.Q, np.full(s.Psi.n, -q), A or None,
                     [b] * len(A) or None, lower, upper, factor=s.F)
    return found.x if found.status == "optimal" else None


def _hulls(s, h):
    """Weights of the nearest points of two reduced hulls, or None."""
    alone = [group.sum() * h <= 1 + 1e-12 for group in s.groups]
    lower = sum(h * group for group, mean in zip(s.groups, alone) if mean)
    A = [1.0 * group for group, mean in zip(s.groups, alone) if not mean]
    return _dual(s, 0.0, A, 1.0, lower, h)

# %% [9] Fine print
def _forms(s):
    """The programme with a thin factor F, if there is one, and with Q."""
    Q = s.y[:, None] * (s.Psi.gram() if s.K is None else s.K) * s.y
    if (n := s.Psi.n) >= 300:
        F = s.y[:, None] * pivoted_cholesky(
            s.Psi.kernel, s.Psi, tol=1e-14, max_rank=n // 5)
        if np.trace(Q) - np.sum(F**2) <= 1e-12 * np.trace(Q):
            yield s._replace(F=F)
    yield s._replace(Q=Q)


def _hard(s, C):
    """The hard margin, if its weights are at most C, or None."""
    if (u := _hulls(s, np.inf)) is None:
        return None
    f = _values(s, u)
    r = [f[group].min() for group in s.groups]
    rho, b = (r[0] + r[-1]) / 2, (r[-1] - r[0]) / 2
    if not rho > 1e-13:
        return None
    alpha, f, b = u / rho, f / rho, float(b / rho)
    for _ in range(10):
        if (short := 1 - np.min(f + s.y * b)) <= 0:
            break
        alpha, b = alpha * (1 + 2 * short), b * (1 + 2 * short)
        f = _values(s, alpha)
    return _machine(s, C, alpha, f, b, (b, b)) if (
        short <= 0 and alpha.max() <= C * s.unit) else None


def _soft(s, C):
    """The C-SVM, by its dual as one programme."""
    c, h = C * s.unit, 1 / min(group.sum() for group in s.groups)
    if s.offset and c * s.Psi.n < 1:
        u = _hulls(s, h)
        alpha = None if u is None else np.where(u == h, c, c / h * u)
    else:
        alpha = _dual(s, 1.0, [s.y] if s.offset else [], 0.0, 0.0, c)
    return None if alpha is None else _placed(s, C, alpha)

# %% [10] Fine print
def _placed(s, C, alpha, b=None, **more):
    """The machine with these weights, and b or the middle optimal one."""
    c, f = C * s.unit, _values(s, alpha)
    t, weights = s.y * (1 - f), alpha / c * (1 - alpha / c)
    if not s.offset:
        low = high = 0.0
    elif weights.any():
        low = high = weights @ t / weights.sum()
    else:
        low = t[np.where(s.y > 0, alpha < c, alpha > 0)].max()
        high = t[np.where(s.y > 0, alpha > 0, alpha < c)].min()
    b = float(low + (high - low) / 2 if b is None else b)
    return _machine(s, C, alpha, f, b, (float(low), float(high))
                    if low < high else (b, b), **more)


def _machine(s, C, alpha, f, b, interval, **more):
    """The record, from weights for the kernel k / unit and f = Qα."""
    c, m, square = C * s.unit, f + s.y * b, alpha @ f
    inside, outside = np.maximum(0.0, 1 - m), np.maximum(0.0, m - 1)
    slack, room = (0.0, 0.0) if C == np.inf else (      # m_i >= 1 there
        c * inside.sum(), (c - alpha) @ inside)
    gap = room + alpha @ outside + abs(b * (alpha @ s.y))
    weights = alpha / s.unit
    held = np.flatnonzero(alpha) if alpha.any() else np.array([0])
    return SVM(s.Phi[held] @ (weights * s.y)[held], float(b), interval,
               weights, float(C), m, float(square / 2 + slack) / s.unit,
               float(weights.sum() - square / 2 / s.unit),
               float(gap) / s.unit, **more)


def _certified(machines, problem):
    """The first with a tiny gap, or the best if its gap is small."""
    best = None
    for one in filter(None, machines):
        best = one if best is None or one.gap < best.gap else best
        if best.gap <= 1e-10 * best.primal:
            break
    if not (best and best.gap <= 1e-6 * best.primal):
        raise ValueError(problem)
    return best

# %% [11] Fine print
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
    h = len(s.groups) / (nu * s.Psi.n)
    if (u := _hulls(s, h)) is None:
        return None
    f = _values(s, u)
    r = [_level(f[group], u[group], h) for group in s.groups]
    rho, b = (r[0] + r[-1]) / 2, (r[-1] - r[0]) / 2
    if not rho > 1e-13:
        return None
    c = h / rho
    return _placed(s, c / s.unit, np.where(u == h, c, u / rho), b / rho,
                   nu=nu, rho=float(s.unit / (c * s.Psi.n)))

# %% [12] The machine
def svm(kernel: Kernel, X, y, C: float, *, offset: bool = True) -> SVM:
    """The C-SVM: minimise ‖f‖²/2 + C Σ (1 - y_i (f(x_i) + b))₊
    (:prf:ref:`thm-svm-dual`).

    The kernel is positive definite, and `y` holds a label -1 or +1 for
    each of the points X. ``C = np.inf`` asks for the hard margin
    (:prf:ref:`thm-svm-hard`), and a ValueError where the classes cannot
    be separated. Of several optimal b it takes the middle one; without
    offset b = 0. If one label only occurs, f = 0 and b is that label.
    scikit-learn's ``SVC(C=C)`` solves the same problem, and without offset
    so does `minimize_risk` with the hinge loss and lam = 1 / (2C).

    >>> machine = svm(Linear(), [-1.0, 1.0, 5.0], [-1, 1, 1], 10.0)
    >>> machine.support, machine.decision([3.0]).round(6)
    (array([0, 1]), array([3.]))
    """
    s = _signed(kernel, X, y, offset)
    C = check.positive(C, "C", ", or np.inf for a hard margin",
                       infinite=True)
    if s.offset and abs(s.y.sum()) == s.Psi.n:    # one class: f = 0
        return _machine(s, C, 0 * s.y, 0 * s.y, s.y[0], (
            1.0, np.inf) if s.y[0] > 0 else (-np.inf, -1.0))
    if C < np.inf and not 1e-301 < C * s.unit < np.inf:
        raise ValueError(f"C = {C:.3g} is out of proportion to the kernel, "
                         f"whose largest value is {s.Phi.diag().max():.3g}")

    def roads():
        if soft := C * s.unit <= 1e50:
            yield _working_sets(s, C)
        for form in _forms(s):
            yield _soft(form, C) if soft else None
            yield _hard(form, C)

    return _certified(roads(), (
        "C = inf asks for classes that can be separated, and these cannot, "
        "to working precision: take a finite C" if C == np.inf else
        f"C = {C:.3g} is too large for these data: the duality gap stays "
        "above a millionth of the objective. Take a smaller C"))

# %% [13] The ν-SVM: a parameter with a meaning
def nu_svm(kernel: Kernel, X, y, nu: float, *, offset: bool = True) -> SVM:
    """The ν-SVM, as the C-SVM that it is (:prf:ref:`thm-nu-c`).

    The ν-SVM minimises ‖f‖²/2 - νρ + (1/n) Σ (ρ - y_i (f(x_i) + b))₊ over
    f, b and ρ. The result holds f/ρ, b/ρ and the weights divided by ρ,
    which solve the C-SVM with C = 1/(nρ), like scikit-learn's ``NuSVC``.
    If several ρ are optimal, as for the largest ν, it takes the middle
    one, or the smallest if there is no largest.

    At least the fraction `nu` of the points are support vectors, at most
    that fraction have margins below 1 (:prf:ref:`thm-nu-fractions`); it is
    at most 2 min(n₊, n₋)/n, without offset 1. A ValueError if f = 0
    (:prf:ref:`prop-nu-small`). Other arguments as in `svm`.

    >>> machine = nu_svm(Gaussian(1.0), [0.0, 1.0, 2.0, 3.0],
    ...                  [-1, -1, 1, 1], 0.5)
    >>> len(machine.support), machine.predict([-1.0, 4.0])
    (2, array([-1,  1]))
    """
    s = _signed(kernel, X, y, offset)
    most = min(float(len(s.groups) * group.mean()) for group in s.groups)
    wanted = f" of at most {most:.6g} for these labels"
    if (nu := check.positive(nu, "nu", wanted)) > most * (1 + 1e-12):
        raise ValueError(f"nu must be a positive number{wanted}, got {nu}")
    return _certified((_reduced(form, nu) for form in _forms(s)), (
        f"nu = {nu} is too small for these data: the classes overlap so "
        "much that f = 0, up to rounding. Take a larger nu"))
