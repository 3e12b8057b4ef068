"""Duality: the price of a constraint

The exported cells of the chapter ``book/duality.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 00c5fcad89f82ca5

# %% [1] Duality: the price of a constraint
import math
from collections import namedtuple
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, eigh, lu_solve
from scipy.linalg.lapack import dgetrf

import rkhs_lit.conventions as check

_EPS = np.finfo(float).eps


# %% [2] One Newton step
# Minimise x'Px/2 + q'x for Ax = b and E'x >= e; P is sparse if diagonal.
_Model = namedtuple("_Model", "P q A b lower upper E e")
# A point of the homogeneous model, or a step.
_Point = namedtuple("_Point", "x y s z tau kappa")


def _model(P, q, A, b, lower, upper):
    """The programme with the list of its finite bounds."""
    below, above = (np.flatnonzero(np.isfinite(v)) for v in (lower, upper))
    sign = np.repeat([1.0, -1.0], [len(below), len(above)])
    E = sparse.csr_array((sign, (np.append(below, above), np.arange(
        len(sign)))), (len(q), len(sign)))
    return _Model(P, q, A, b, lower, upper, E,
                  np.append(lower[below], -upper[above]))


def _residuals(model, v):
    """The left sides of the homogeneous model."""
    P, q, A, b, _, _, E, e = model
    x, y, s, z, tau, kappa = v
    return (P @ x + A.T @ y - E @ z + tau * q,
            A @ x - tau * b,
            E.T @ x - tau * e - s,
            q @ x + b @ y - e @ z + x @ (P @ x) / tau + kappa)


# %% [3] One Newton step
def _reduced(model, theta):
    """A function (f, g) -> (x, y): (P + Θ) x + A'y = f, Ax = g.

    Where θ is infinite, x is zero.
    """
    P, A, finite = model.P, model.A, np.isfinite(theta)
    h, theta = P.diagonal() + theta, np.where(finite, theta, 0.0)
    inner, dense = finite & (h == 0), isinstance(P, np.ndarray)
    if dense:
        inner |= finite & (np.count_nonzero(P, axis=1) > 1)
    m, B, D, d = inner.sum(), A[:, inner], A[:, ~inner], h[~inner]
    N = m + len(B)
    K = np.zeros((N, N))
    if dense:
        K[:m, :m] = P[np.ix_(inner, inner)]
    K[m:, :m], K[:m, m:], K[m:, m:] = B, B.T, -(D / d) @ D.T
    K.flat[:m * N:N + 1] = h[inner]
    top = np.abs(K).max(axis=1, initial=0.0)       # of each row
    u = 1 / np.sqrt(np.where(top > 0, top, 1.0))   # no entry above one
    K *= u
    K *= u[:, None]
    K.flat[::N + 1] += np.where(
        top > 0, 1e-14, 1.0) * np.repeat([1, -1], [m, N - m])
    factors = dgetrf(K)[:2] if N else None

    def solve(f, g):
        x, y = np.zeros(len(h)), np.zeros(len(A))
        for _ in range(2):              # once, and a refinement
            r = f - P @ x - theta * x - A.T @ y
            w = np.append(r[inner], g - A @ x - D @ (r[~inner] / d))
            if N:
                w = u * lu_solve(factors, u * w, check_finite=False)
            x[inner] += w[:m]
            x[~inner] += (r[~inner] - D.T @ w[m:]) / d
            y += w[m:]
        return x, y
    return solve


def _step(model, v, solve, first, rho, eta, c, c_tau):
    """The Newton step, and how much of it keeps v nonnegative."""
    P, q, _, b, _, _, E, e = model
    rho_d, rho_p, rho_s, rho_g = (eta * r for r in rho)
    theta, xi, (x1, y1) = v.z / v.s, v.x / v.tau, first
    x2, y2 = solve(E @ (c / v.s - theta * rho_s) - rho_d, -rho_p)
    z1 = theta * (e - E.T @ x1)
    z2 = c / v.s - theta * (E.T @ x2 + rho_s)
    w, a = q + 2 * (P @ xi), xi - x1
    dtau = ((rho_g + c_tau / v.tau + w @ x2 + b @ y2 - e @ z2)
            / (v.kappa / v.tau + a @ (P @ a) + z1 @ (z1 / theta)))
    dx = x2 + dtau * x1
    step = _Point(dx, y2 + dtau * y1, E.T @ dx - dtau * e + rho_s,
                  z2 + dtau * z1, dtau, (c_tau - v.kappa * dtau) / v.tau)
    a, d = np.hstack(v[2:]), np.hstack(step[2:])
    return step, (a[d < 0] / -d[d < 0]).min(initial=np.inf)


# %% [4] Predictor and corrector
def _error(model, x, y):
    """The largest error of x and y as a solution, against its terms."""
    P, q, A, b, lower, upper, _, _ = model
    X, Y, Px = np.abs(x), np.abs(y), P @ x
    r, r_p = Px + q + A.T @ y, A @ x - b
    slack = np.where(r > 0, x - lower, upper - x)
    left = np.where(np.isfinite(slack), 0.0, r)
    z = np.abs(r - left)                # the prices, and what they leave
    PX = abs(P) @ X
    terms = (PX + np.abs(q) + np.abs(A.T) @ Y, np.abs(A) @ X + np.abs(b))
    flaws = [(np.abs(v) / (t + 1e-8 * t.max(initial=1e-12) + 1e-300)
              ).max(initial=0.0) for v, t in zip((left, r_p), terms)]
    gap = np.where(z > 0, slack, 0.0) @ z + np.abs(left) @ X + np.abs(
        r_p) @ Y
    size = x @ Px + np.abs(q) @ X + 1e-8 * (X @ PX + np.abs(b) @ Y)
    return np.max([*flaws, gap / (size + 1e-300)])


def _interior_point(whole, trace=None):
    """The best x and y that were met, 1 and -1 where a lower or an upper
    bound seems tight, and the number of steps."""
    free = whole.lower < whole.upper
    x, tight = np.where(free, 0.0, whole.lower), np.zeros(len(free))
    model = whole if free.all() else _model(
        whole.P[free][:, free], (whole.q + whole.P @ x)[free],
        whole.A[:, free], whole.b - whole.A @ x, whole.lower[free],
        whole.upper[free])
    E, N = model.E, len(model.e)
    v = _Point(np.zeros(len(model.q)), np.zeros(len(model.b)), np.ones(N),
               np.ones(N), 1.0, 1.0)
    best, least, mark, stalled = None, np.inf, np.inf, 0
    for count in range(150):
        mu = (v.s @ v.z + v.tau * v.kappa) / (N + 1)
        stalled = 0 if mu < mark / 2 else stalled + 1
        mark = mark if stalled else mu
        x[free] = np.clip(v.x / v.tau, model.lower, model.upper)
        tight[free] = E @ (v.s < v.z)
        error = _error(whole, x, v.y / v.tau)
        if error < least or not count:
            best, least = (x.copy(), v.y / v.tau, tight.copy()), error
        if trace is not None:
            trace.append(v)
        if least < 1e-9 or v.tau < 1e-12 * v.kappa or stalled > 8:
            break
        rho, theta = _residuals(model, v), v.z / v.s
        solve = _reduced(model, abs(E) @ theta)
        first = solve(E @ (theta * model.e) - model.q, model.b)
        c, c_tau = -v.s * v.z, -v.tau * v.kappa              # predictor
        step, alpha = _step(model, v, solve, first, rho, 1.0, c, c_tau)
        sigma = (1 - min(1.0, alpha)) ** 3                   # corrector
        step, alpha = _step(model, v, solve, first, rho, 1 - sigma,
                            sigma * mu + c - step.s * step.z,
                            sigma * mu + c_tau - step.tau * step.kappa)
        v = [a + min(1.0, 0.995 * alpha) * d for a, d in zip(v, step)]
        size = max(np.max(a, initial=0.0) for a in v[2:])
        v = _Point(*(a / size for a in v))
        if not np.isfinite(np.hstack(v)).all():
            break
    return *best, count


# %% [5] Fine print
# Minimise x'Px/2 + q'x for Ax = b, Cx <= c, lower <= x <= upper, with the
# factor F, or P if there is none.
_Programme = namedtuple("_Programme", "P F q A b C c lower upper")


def _standard(program):
    """The model with slacks, and with v = F'x for a thin factor."""
    P, F, q, A, b, C, c, lower, upper = program
    n, p, m = len(q), len(b), len(c)
    if F is not None and F.shape[1] >= n:
        P, F = F @ F.T, None
    F = np.zeros((n, 0)) if F is None else F
    r = F.shape[1]
    P, none = np.zeros((n, n)) if P is None else P, np.zeros(r)
    if np.count_nonzero(P, axis=1).max() > 1:
        P = np.pad(P, (0, m))
    else:
        P = sparse.diags_array(np.concatenate(
            [P.diagonal(), np.zeros(m), none + 1])).tocsr()
    A = np.block([[A, np.zeros((p, m)), np.zeros((p, r))],
                  [C, np.eye(m), np.zeros((m, r))],
                  [F.T, np.zeros((r, m)), -np.eye(r)]])
    return _model(P, np.append(q, np.zeros(m + r)), A,
                  np.concatenate([b, c, none]),
                  np.concatenate([lower, np.zeros(m), none - np.inf]),
                  np.append(upper, np.full(m + r, np.inf)))


def _polished(model, x, y, low, high):
    """Take bounds as tight, solve for the rest, and mend the guess."""
    P, q, A, b, lower, upper, _, _ = model
    best, least, fixed = (x, y), _error(model, x, y), lower == upper
    for _ in range(8):
        x = np.where(low, lower, np.where(high, upper, x))
        solve = _reduced(model, np.where(low | high, np.inf, 0.0))
        for _ in range(4):
            dx, dy = solve(-(P @ x + q + A.T @ y), b - A @ x)
            x, y = x + dx, y + dy
            inside = np.clip(x, lower, upper)
            error = _error(model, inside, y)
            if error < least:
                best, least = (inside, y), error
        r, old = P @ x + q + A.T @ y, (low, high)
        noise = 1e-13 * (abs(P) @ np.abs(x) + np.abs(q)
                         + np.abs(A.T) @ np.abs(y))
        low = fixed | (low & (r >= -noise)) | (x < lower)
        high = fixed | (high & (r <= noise)) | (x > upper)
        if least < 1e-13 or np.array_equal(old, (low, high)):
            break
    return *best, least, low, high


# %% [6] Fine print
_SMALL = 16


def _dot(a, v):
    """a'v for floats a and fractions v."""
    return sum((Fraction(s) * t for s, t in zip(a, v) if s and t),
               Fraction(0))


def _exactly(M, right, v, held, weight):
    """v with Mv = right, entries in `held` changed, or None.

    As few entries change as it takes, those of large weight first.
    """
    v, pivots, work = [Fraction(t) for t in v], [], 0
    for a, t in zip(M, right):
        t = Fraction(t) - _dot(a, v)
        row = {j: Fraction(a[j]) for j in np.flatnonzero(a * held).tolist()}
        for j, other, value in pivots:
            if j in row:
                f = row.pop(j)
                t -= f * value
                work += len(other)
                for k, s in other.items():
                    row[k] = row.get(k, 0) - f * s
                    if not row[k]:
                        del row[k]
        if work > 100_000 or (t and not row):
            return None
        if row:
            j = max(row, key=weight.__getitem__)
            f = row.pop(j)
            pivots.append((j, {k: s / f for k, s in row.items()}, t / f))
    change = {}
    for j, row, t in reversed(pivots):
        change[j] = t - sum(s * change.get(k, 0) for k, s in row.items())
        v[j] += change[j]
    return v


def _exact(model, x, y, low, high):
    """The solution in exact arithmetic, or None."""
    P, q, A, b, lower, upper, _, _ = model
    n, p, fixed = len(q), len(b), lower == upper
    P = P if isinstance(P, np.ndarray) else P.toarray()
    K = np.block([[P, A.T], [A, np.zeros((p, p))]])
    right, price = np.append(-q, b), np.abs(P @ x + q + A.T @ y)
    for count in range(60 if n + p <= _SMALL else 5):
        held = np.append(~(low | high), np.full(p, True))
        if held.sum() > _SMALL:
            return None
        v = np.append(np.where(low, lower, np.where(high, upper, x)), y)
        v = _exactly(K[held], right[held], v, held, np.ones(n + p))
        low, high, loose = low.copy(), high.copy(), (low | high) & ~fixed
        if v is None:        # too many: let go the bound of least price
            if not loose.any():
                return None
            j = np.argmin(np.where(loose, price, np.inf))
            low[j] = high[j] = False
            continue
        r = [_dot(row, v) - Fraction(t) for row, t in zip(K, right)]
        wrong = [j for j in range(n) if not fixed[j] and (
            low[j] and r[j] < 0 or high[j] and r[j] > 0
            or not lower[j] <= v[j] <= upper[j])]
        if not wrong:
            v = np.array(v, dtype=float)
            return v[:n], v[n:]
        for j in wrong[:1 if count > 3 else n]:
            low[j] = not loose[j] and v[j] < lower[j]
            high[j] = not loose[j] and v[j] > upper[j]
    return None


def _semidefinite(P):
    """Is P positive semidefinite, as the floats describe it?"""
    rows = [] if P is None else [[*map(Fraction, row)] for row in P]
    while rows:
        (d, *first), *rest = rows
        if d < 0 or (not d and any(first)):
            return False
        rows = [[a - row[0] * b / d if d else a
                 for a, b in zip(row[1:], first)] for row in rest]
    return True


# %% [7] Fine print
def _optimum(program):
    """A solution x, the multipliers of Ax = b and Cx <= c, the error (0
    if the solution is exact, infinite if it cannot be known), and the
    number of steps."""
    P, F, q, A, b, C, c, _, _ = program
    n, p, m, model = len(q), len(b), len(c), _standard(program)
    x, y, tight, count = _interior_point(model)
    fixed = model.lower == model.upper
    start = fixed | (tight > 0), fixed | (tight < 0)
    x, y, error, *end = _polished(model, x, y, *start)
    guesses = ((0 * y, start), (y, start), (y, end))
    for guess, faces in guesses if len(x) + len(y) <= 40 else ():
        if exact := _exact(model, x, guess, *faces):
            (x, y), error = exact, 0.0
            break
    slack, lam = x[n:n + m], y[p:p + m]
    lam = np.where(lam < 1e-10 * slack, 0.0, np.maximum(lam, 0.0))
    x, y, tiny = x[:n], y[:p], 800 * n * _EPS
    # Can rounding errors hide what Px or Ax and Cx lack, far out?
    X = np.abs(x)
    PX = np.abs(F) @ (np.abs(F.T) @ X) if P is None else np.abs(P) @ X
    terms = np.abs(q) + np.abs(A.T) @ np.abs(y) + np.abs(C.T) @ lam
    rows, right = np.vstack([A, C]), np.append(b, c)
    if (q @ x < 0 and tiny * PX.max() > terms.max()) or (
            tiny * (np.abs(rows) @ X).max(initial=0.0)
            > np.abs(right).max(initial=1.0)):
        error = 0.0 if error == 0 and _semidefinite(P) else np.inf
    return x, y, lam, error, count


# %% [8] Fine print
def _nearest(program):
    """The point within the bounds that is closest to obeying the rows,
    and by how much it fails."""
    n, p, m = len(program.q), len(program.b), len(program.c)
    free = np.full(p + m, np.inf)
    x, y, lam, _, _ = _optimum(program._replace(
        P=np.diag(np.repeat([0.0, 1.0], [n, p + m])), F=None,
        q=np.zeros(n + p + m), lower=np.append(program.lower, -free),
        A=np.hstack([program.A, -np.eye(p, p + m)]),
        C=np.hstack([program.C, -np.eye(m, p + m, p)]),
        upper=np.append(program.upper, free)))
    return np.clip(x[:n], program.lower, program.upper), np.append(y, lam)


def _descent(program):
    """The projection of -q on the directions that no constraint ends."""
    flat = program.F.T if program.P is None else program.P
    return _optimum(program._replace(
        P=np.eye(len(program.q)), F=None,
        q=program.q / (np.abs(program.q).max() or 1.0),
        A=np.vstack([program.A, flat]),
        b=np.zeros(len(program.b) + len(flat)), c=0 * program.c,
        lower=np.where(np.isfinite(program.lower), 0.0, -np.inf),
        upper=np.where(np.isfinite(program.upper), 0.0, np.inf)))[0]


# %% [9] Fine print
def _near(M, v, tol):
    """w near v with Mw = 0 exactly, zero where v is nearly zero."""
    v = np.round(v / (np.abs(v).max(initial=0.0) or 1.0) * 2.0**40) / 2**40
    held = np.abs(v) > tol
    return _exactly(M, np.zeros(len(M)), v * held, held, np.abs(v))


def _farkas(program, y, tol):
    """An exact proof near y that no point is feasible, or None."""
    _, _, _, A, b, C, c, lower, upper = program
    rows = np.vstack([A, C])
    r, size = rows.T @ y, tol * (np.abs(rows.T) @ np.abs(y))
    zero = ~((np.isfinite(lower) | (r < -size))
             & (np.isfinite(upper) | (r > size)))
    y = _near(rows[:, zero].T, y, tol)
    if y is None or min(y[len(b):], default=0) < 0:
        return None
    r = [_dot(column, y) for column in rows.T]
    edges = [low if t > 0 else high if t < 0 else 0.0
             for t, low, high in zip(r, lower, upper)]
    if not np.isfinite(edges).all():
        return None
    margin = _dot(edges, r) - _dot(np.append(b, c), y)
    if margin <= 0:
        return None
    y, r = np.array(y, dtype=float), np.array(r, dtype=float)
    return dict(status="infeasible", y=y[:len(b)], lam=y[len(b):],
                z=np.maximum(r, 0.0), w=np.maximum(-r, 0.0),
                left=rows.T @ y - r, margin=float(margin))


def _ray(program, d, tol):
    """An exact direction of unlimited descent near d, or None."""
    P, F, q, A, _, C, _, lower, upper = program
    below, above = np.isfinite(lower), np.isfinite(upper)
    d = np.where((below & (d < 0)) | (above & (d > 0)), 0.0, d)
    tight = C @ d > -tol * (np.abs(C) @ np.abs(d))
    flat = F.T if P is None else P
    d = _near(np.vstack([flat, A, C[tight]]), d, tol)
    if (d is None or _dot(q, d) >= 0 or any(_dot(row, d) > 0 for row in C)
            or any(t < 0 and a or t > 0 and b
                   for t, a, b in zip(d, below, above))):
        return None
    margin, d = float(-_dot(q, d)), np.array(d, dtype=float)
    return dict(status="unbounded", direction=d, margin=margin,
                left=F @ (F.T @ d) if P is None else P @ d)


def _feasible(program, x, tol):
    """A point near x that is exactly feasible, as floats, or None."""
    _, _, _, A, b, C, c, lower, upper = program
    room = np.minimum(x - lower, upper - x)
    inner = room > tol * (1 + np.abs(x))
    x = np.where(inner, x, np.where(x - lower < upper - x, lower, upper))
    tight = C @ x - c > -tol * (np.abs(C) @ np.abs(x) + np.abs(c))
    x = _exactly(np.vstack([A, C[tight]]), np.append(b, c[tight]), x, inner,
                 room)
    if x is None or any(t < a or t > b for t, a, b in zip(x, lower, upper)
                        ) or any(_dot(row, x) > t for row, t in zip(C, c)):
        return None
    return np.array(x, dtype=float)


# %% [10] Fine print
def _no_solution(program):
    """A proof that there is no solution, or why it is not one."""
    def first(search, start):
        found = (search(program, start, tol)
                 for tol in (1e-13, 1e-10, 1e-7, 1e-4))
        return next((one for one in found if one is not None), None)

    point, excess = _nearest(program)
    if proof := first(_farkas, excess):
        return dict(proof, x=point)
    if proof := first(_ray, _descent(program)):
        if (point := first(_feasible, point)) is not None:
            return dict(proof, x=point)
        return dict(status="not decided", reason=(
            "the objective falls for ever along some direction, but no "
            "point is known to be feasible exactly"))
    return None


# %% [11] Fine print
@dataclass(frozen=True, eq=False)
class QPSolution(check.Record):
    """Answer to a quadratic programme (:prf:ref:`thm-qp-trichotomy`).

    Write d for `direction`, and y, λ, z, w for the multipliers
    `equality`, `inequality`, `at_lower` and `at_upper` of Ax = b, Cx <= c
    and the bounds; λ, z, w are not negative. The status says what the
    read-only arrays prove:

    * "optimal": x solves the programme, with these multipliers: exactly,
      up to the last rounding, if the programme is small; else up to 1e-7
      of the terms of each condition and of the objective.
    * "infeasible": no x is feasible, since A'y + C'λ - z + w = 0 and yet
      lower'z - upper'w - b'y - c'λ = margin > 0. Then x is the point
      within the bounds that is closest to obeying the other constraints.
    * "unbounded": x is feasible, and the objective falls for ever along
      d, since Pd = 0, Ad = 0, Cd <= 0, d never meets a bound, and
      q'd = -margin < 0. Then y, λ, z, w are zero.
    * "not decided": x is the best point that was met, and proves nothing;
      `reason` says why.

    "infeasible" and "unbounded" have been checked in exact arithmetic:
    the arrays are the fractions of a proof, rounded.

    Attributes
    ----------
    objective : float
        The value x'Px/2 + q'x, or plus or minus infinity.
    gap : float
        Objective less dual objective, or infinity.
    stationarity : float
        Largest entry of Px + q + A'y + C'λ - z + w; of A'y + C'λ - z + w
        if the programme is infeasible; of Pd if it is unbounded.
    primal_residual : float
        Largest entry of Ax - b, and of Cx - c where that is positive.
        The bounds hold exactly.
    complementarity : float
        Largest product of a multiplier and its slack.
    iterations : int
        Steps of the interior-point method.
    margin : float
        The number that proves that there is no solution, or 0.
    """

    status: str
    x: np.ndarray
    equality: np.ndarray
    at_lower: np.ndarray
    at_upper: np.ndarray
    objective: float
    gap: float
    stationarity: float
    primal_residual: float
    complementarity: float
    iterations: int
    direction: np.ndarray | None = None
    margin: float = 0.0
    inequality: np.ndarray | None = None
    reason: str = ""

    def __post_init__(self):
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


# %% [12] Fine print
def _quadratic(P, n):
    P = check.real_array(P, "P", 2)
    if P.shape != (n, n):
        raise ValueError(f"P must have shape ({n}, {n}) to go with q, got "
                         f"shape {P.shape}")
    largest, P, odd = np.abs(P).max(), P / 2 + P.T / 2, P / 2 - P.T / 2
    if np.abs(odd).max() > max(n, 10) * _EPS * largest / 2:
        i, j = np.unravel_index(odd.argmax(), P.shape)
        raise ValueError(f"P must be symmetric, but P[{i}, {j}] - P[{j}, "
                         f"{i}] = {2 * odd[i, j]:.6g}")
    # Divide by the diagonal: every variable has a scale of its own.
    d = np.sqrt(np.maximum(P.diagonal(), 0.0))
    d = np.maximum(d, math.sqrt(n * _EPS) * math.sqrt(largest) or 1.0)
    S = P / d[:, None] / d
    tol = 2 * n * _EPS * max(1.0, np.abs(S).sum(axis=1).max())
    try:
        cho_factor(S + tol * np.eye(n), overwrite_a=True)
    except LinAlgError:
        a = eigh(S, subset_by_index=[0, 0])[1][:, 0] / d
        a = a / np.linalg.norm(a)
        raise ValueError(
            "P must be positive semidefinite, but a'Pa = "
            f"{a @ P @ a:.6g} for some a of length one") from None
    return P


def _checked(P, q, A, b, C, c, lower, upper, factor):
    q = check.real_array(q, "q", 1)
    n, rest = len(q), []
    if (P is None) == (factor is None):
        raise ValueError("P must be a matrix, or None together with a "
                         "factor F with P = FF'")
    if factor is None:
        P = _quadratic(P, n)
    else:
        factor = check.real_array(factor, "factor", 2)
        if len(factor) != n:
            raise ValueError(f"factor must have {n} rows to go with q, got "
                             f"shape {factor.shape}")
    for M, v, (left, right) in ((A, b, "Ab"), (C, c, "Cc")):
        if M is None and v is None:
            M, v = np.zeros((0, n)), np.zeros(0)
        else:
            M = np.atleast_2d(check.real_array(M, left))
            v = np.atleast_1d(check.real_array(v, right))
        if M.ndim != 2 or M.shape[1] != n:
            raise ValueError(f"{left} must have shape (p, {n}) to go with "
                             f"q, got shape {M.shape}")
        if v.shape != (len(M),):
            raise ValueError(f"{right} must be one number for each row of "
                             f"{left}, got shape {v.shape}")
        rest += [M, v]
    for v, name, none in ((lower, "lower", -np.inf),
                          (upper, "upper", np.inf)):
        v = check.plain_array(none if v is None else v, name)
        if (v.dtype.kind not in "biuf" or v.shape not in ((), (n,))
                or np.isnan(v).any() or (v == -none).any()):
            raise ValueError(f"{name} must be a number or {none}, or {n} "
                             "of them, one for each variable")
        rest.append(np.array(np.broadcast_to(v, n), dtype=float))
    return _Programme(P, factor, q, *rest)


# %% [13] Fine print
# Powers of two: variables, objective, rows of A and of C.
_Units = namedtuple("_Units", "x objective A C")


def _scaled(program, units):
    """The programme in these units; absurdly far bounds are infinite."""
    P, F, q, A, b, C, c, *bounds = program
    x, t, r_A, r_C = units
    bounds = [np.ldexp(v, -x) for v in bounds]
    return _Programme(
        None if P is None else np.ldexp(P, x + x[:, None] - t),
        None if F is None else np.ldexp(F, x[:, None] - t // 2),
        np.ldexp(q, x - t), np.ldexp(A, x + r_A[:, None]),
        np.ldexp(b, r_A), np.ldexp(C, x + r_C[:, None]), np.ldexp(c, r_C),
        *(np.where(np.abs(v) < 1e60, v, np.copysign(np.inf, v))
          for v in bounds))


def _units(program):
    """Units that bring the numbers near one."""
    def some(v, otherwise=0.0):         # minus infinity: no entry
        return np.where(np.isfinite(v), v, otherwise)

    P, F, q, A, b, C, c, lower, upper = program
    h, G, e_q, e_b, near, far = (np.log2(np.abs(v)) for v in (
        np.sqrt(P.diagonal()) if F is None else np.abs(F).max(axis=1),
        np.vstack([A, C, 0 * q]), q, np.concatenate([b, c, [0.0]]),
        np.maximum(np.maximum(lower, -upper), 0.0),
        np.append(lower, upper)))
    x, r = np.zeros(len(q)), -some(G.max(axis=1))
    for _ in range(20):                 # rows and columns in turn
        column = (G + r[:, None]).max(axis=0) + x
        x = x - some(np.maximum(h - some(h.max()) + x, column / 2))
        r = r - some((G + x).max(axis=1) + r) / 2
    x, r, p = np.round(x).astype(int), np.round(r).astype(int), len(b)
    e_P, e_q, far = 2 * (h + x).max(), (e_q + x).max(), far - np.tile(x, 2)
    far = far[np.isfinite(far)]
    typical = min(some(e_q - e_P, np.inf),
                  np.median(far) if len(far) else np.inf)
    s = int(some(max((near - x).max(), (e_b + r).max(),
                     some(typical, -np.inf))))
    t = int(some(max(e_P + 2 * s, e_q + s)))
    return _Units(x + s, t + t % 2, r[:p] - s, r[p:-1] - s)


# %% [14] Fine print
def _answer(program, u, status, x, y=None, lam=None, z=None, w=None, *,
            left=None, direction=None, margin=0.0, **more):
    """The record, in the units of the caller."""
    P, F, q, A, b, C, c, lower, upper = program
    r_p, r_c = A @ x - b, C @ x - c
    k = 0 if status == "infeasible" else u.objective
    size, objective, gap, worst = 1.0, np.inf, np.inf, 0.0
    if status in ("optimal", "not decided"):
        Px = F @ (F.T @ x) if P is None else P @ x
        r = Px + q + A.T @ y + C.T @ lam
        z = np.where(np.isfinite(lower), np.maximum(r, 0.0), 0.0)
        w = np.where(np.isfinite(upper), np.maximum(-r, 0.0), 0.0)
        left = r - z + w
        products = np.concatenate([z * np.where(z > 0, x - lower, 0.0),
                                   w * np.where(w > 0, upper - x, 0.0),
                                   -lam * r_c])
        objective, worst = x @ Px / 2 + q @ x, np.abs(products).max()
        gap = products.sum() + left @ x - r_p @ y
    elif status == "unbounded":
        direction, objective = np.ldexp(direction, u.x), -np.inf
        size = np.abs(direction).max()
        direction = direction / size
        y, lam, z, w = 0 * b, 0 * c, 0 * x, 0 * x

    def here(v, exponent=0):
        return np.ldexp(v, k + exponent) / size

    x, y, lam = np.ldexp(x, u.x), here(y, u.A), here(lam, u.C)
    z, w, margin = here(z, -u.x), here(w, -u.x), float(here(margin))
    objective = float(here(objective))
    if not np.isfinite(np.hstack([
            x, y, lam, z, w, margin, status == "optimal" and objective])
            ).all():
        raise ValueError("q, b and the bounds must be of a size such that "
                         "the solution does not overflow")
    return QPSolution(
        status, x, y, z, w, objective, float(here(gap)),
        float(np.abs(here(left, -u.x)).max()),
        float(max(np.abs(np.ldexp(r_p, -u.A)).max(initial=0.0),
                  np.ldexp(r_c, -u.C).max(initial=0.0))),
        float(here(worst)), direction=direction, margin=margin,
        inequality=lam, **more)


# %% [15] The solver
def solve_qp(P, q, A=None, b=None, lower=None, upper=None, *, C=None,
             c=None, factor=None) -> QPSolution:
    """Solve a convex quadratic programme (:prf:ref:`thm-qp-trichotomy`).

    Minimise x'Px/2 + q'x subject to Ax = b, Cx <= c and
    lower <= x <= upper, by a predictor-corrector method for the
    homogeneous model (:prf:ref:`alg-qp`).

    Parameters
    ----------
    P : (n, n) array or None
        Symmetric and positive semidefinite up to rounding, maybe zero.
    q : (n,) array
    A, b : (p, n) and (p,) array, or (n,) array and float, optional
        Equations; the rows may be dependent.
    lower, upper : (n,) array or float, optional
        Bounds, by default infinite. Where they are equal, x is fixed.
    C, c : (m, n) and (m,) array, or (n,) array and float, optional
        Inequalities.
    factor : (n, r) array, optional
        F with P = FF', in place of P. If every variable has a bound, a
        step then costs of the order of n r² instead of n³ operations.

    Returns
    -------
    QPSolution
        With ``status`` "optimal", "infeasible" or "unbounded" and a
        certificate, or with "not decided" and a reason. The programme is
        taken as the floats describe it: that it is infeasible or
        unbounded is said only if it is proved in exact arithmetic.

    Examples
    --------
    The point of the line x + y = 1 that is closest to (0, 3), with x, y
    at least 0:

    >>> found = solve_qp([[1, 0], [0, 1]], [0, -3], [1, 1], 1, lower=0)
    >>> print(found.status, found.x.round(6), found.equality.round(6))
    optimal [0. 1.] [2.]
    """
    given = _checked(P, q, A, b, C, c, lower, upper, factor)
    with np.errstate(all="ignore"):
        # Presolve: good units, and bounds that cross.
        units = _units(given)
        program = _scaled(given, units)
        P, F, q, A, b, C, c, lower, upper = program
        i, none = np.argmax(lower - upper), 0 * q
        if lower[i] > upper[i]:
            e = np.ldexp(np.eye(len(q))[i], units.x)
            return _answer(program, units, "infeasible", np.clip(
                none, upper, lower), 0 * b, 0 * c, e, e, left=none,
                margin=e[i] * (lower[i] - upper[i]), iterations=0)
        # Interior point; then a certificate of one kind or another.
        x, y, lam, error, count = _optimum(program)
        small = len(q) + len(b) + 2 * len(c) <= _SMALL
        proof = None
        if error >= 1e-7 or (error and small):
            proof = _no_solution(program)
        if proof is None and error < (4 * _EPS if small else 1e-7):
            proof = dict(status="optimal")
        proof = proof or dict(status="not decided", reason=(
            f"the relative error of the best point is {error:.0e}, and no "
            "proof that there is no solution holds exactly"))
        if proof["status"] in ("optimal", "not decided"):
            return _answer(program, units, x=x, y=y, lam=lam,
                           iterations=count, **proof)
        back = _scaled(program, _Units(*(-u for u in units)))
        if not all(map(np.array_equal, back[:-2], given[:-2])):
            raise ValueError("P, q, A, b, C and c must not span more "
                             "orders of magnitude than a float has")
        if proof["status"] == "unbounded" and not np.array_equal(
                np.isinf(given[-2:]), np.isinf(program[-2:])):
            raise ValueError("lower and upper must be of the size of the "
                             "other numbers, or infinite")
        return _answer(program, units, iterations=0, **proof)
