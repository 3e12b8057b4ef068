"""Quadratic programmes: an answer that comes with its proof"""
# The exported cells of book/quadratic.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: d535052c00c6f062

# %% [1] Quadratic programmes: an answer that comes with its proof
from collections import namedtuple
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, lu_solve
from scipy.linalg.lapack import dgetrf

import rkhs_lit.conventions as check
from rkhs_lit.kernels import is_positive_definite

_EPS = np.finfo(float).eps
_SMALL = 16

# %% [2] One Newton step
# Minimise x'Px/2 + q'x for Ax = b, lower <= x <= upper; P is a sparse
# matrix if it is diagonal. The model has the bounds as E'x >= e.
_Programme = namedtuple("_Programme", "P q A b lower upper")
_Model = namedtuple("_Model", "P q A b E e")
# A point of the homogeneous model, or a step.
_Point = namedtuple("_Point", "x y s z tau kappa")


def _model(programme):
    P, q, A, b, lower, upper = programme
    below, above = np.isfinite(lower), np.isfinite(upper)
    unit = sparse.eye_array(len(q), format="csc")
    E = sparse.hstack([unit[:, below], -unit[:, above]]).tocsr()
    return _Model(P, q, A, b, E, np.append(lower[below], -upper[above]))


def _residuals(model, v):
    """The left sides of the homogeneous model."""
    P, q, A, b, E, e = model
    x, y, s, z, tau, kappa = v
    return (P @ x + A.T @ y - E @ z + tau * q,
            A @ x - tau * b,
            E.T @ x - tau * e - s,
            q @ x + b @ y - e @ z + x @ (P @ x) / tau + kappa)

# %% [3] One Newton step
def _reduced(P, A, theta):
    """A function (f, g) -> (x, y): (P + Θ) x + A'y = f, Ax = g, and x = 0
    where θ is infinite."""
    h, finite = P.diagonal() + theta, np.isfinite(theta)
    inner, dense = finite & (h == 0), isinstance(P, np.ndarray)
    if dense:
        inner |= finite & (np.count_nonzero(P, axis=1) > 1)
    theta = np.where(finite, theta, 0.0)
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
    P, q, A, b, E, e = model
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
def _error(programme, x, y):
    """The largest error of x and y as a solution, against its terms."""
    P, q, A, b, lower, upper = programme
    X, Y, Px, PX = np.abs(x), np.abs(y), P @ x, abs(P) @ np.abs(x)
    r, r_p = Px + q + A.T @ y, A @ x - b
    slack = np.where(r > 0, x - lower, upper - x)
    left = np.where(np.isfinite(slack), 0.0, r)
    z = np.abs(r - left)                # the prices, and what they leave
    terms = (PX + np.abs(q) + np.abs(A.T) @ Y, np.abs(A) @ X + np.abs(b))
    flaws = [(np.abs(v) / (t + 1e-8 * t.max(initial=1e-12) + 1e-300)
              ).max(initial=0.0) for v, t in zip((left, r_p), terms)]
    gap = np.where(z > 0, slack, 0.0) @ z + np.abs(left) @ X + np.abs(
        r_p) @ Y
    size = x @ Px + np.abs(q) @ X + 1e-8 * (X @ PX + np.abs(b) @ Y)
    return np.max([*flaws, gap / (size + 1e-300)])


def _interior_point(programme, trace=None):
    """The best x and y that were met, 1 and -1 where a lower or an upper
    bound seems tight, and the number of steps."""
    P, q, A, b, lower, upper = programme
    free = lower < upper
    x, side = np.where(free, 0.0, lower), np.zeros(len(free))
    model = _model(programme if free.all() else _Programme(
        P[free][:, free], (q + P @ x)[free], A[:, free], b - A @ x,
        lower[free], upper[free]))
    E, N = model.E, len(model.e)
    v = _Point(np.zeros(len(model.q)), np.zeros(len(b)), np.ones(N),
               np.ones(N), 1.0, 1.0)
    best, least, mark, stalled = None, np.inf, np.inf, 0
    for count in range(150):
        mu = (v.s @ v.z + v.tau * v.kappa) / (N + 1)
        stalled = 0 if mu < mark / 2 else stalled + 1
        mark = mark if stalled else mu
        x[free] = np.clip(v.x / v.tau, lower[free], upper[free])
        side[free] = E @ (v.s < v.z)
        error = _error(programme, x, v.y / v.tau)
        if error < least or not count:
            best, least = (x.copy(), v.y / v.tau, side.copy()), error
        if trace is not None:
            trace.append(v)
        if least < 1e-9 or v.tau < 1e-12 * v.kappa or stalled > 8:
            break
        rho, theta = _residuals(model, v), v.z / v.s
        solve = _reduced(model.P, model.A, abs(E) @ theta)
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
def _dot(a, v):
    """a'v for floats a and fractions v."""
    return sum(Fraction(s) * t for s, t in zip(a, v) if s and t)


def _exactly(M, right, v, held, weight):
    """v with Mv = right, entries in `held` changed, or None; as few as it
    takes, those of large weight first."""
    v, pivots, work = [Fraction(t) for t in v], {}, 0
    for a, t in zip(M, right):
        row = {j: Fraction(a[j]) for j in np.flatnonzero(a * held).tolist()}
        row[-1] = Fraction(t) - _dot(a, v)         # the right side
        for j, other in pivots.items():
            if f := row.pop(j, 0):
                work += len(other)
                row |= {k: row.get(k, 0) - f * s for k, s in other.items()}
        row = {k: s for k, s in row.items() if s}
        if work > 100_000 or [*row] == [-1]:
            return None
        if row:
            j = max((k for k in row if k >= 0), key=weight.__getitem__)
            f = row.pop(j)
            pivots[j] = {k: s / f for k, s in row.items()}
    change = {-1: -1}
    for j, row in reversed(pivots.items()):
        change[j] = -sum(s * change.get(k, 0) for k, s in row.items())
        v[j] += change[j]
    return v


def _exact(programme, x, y, side):
    """The solution in exact arithmetic, or None."""
    P, q, A, b, lower, upper = programme
    n, p, fixed = len(q), len(b), lower == upper
    K = np.block([[P @ np.eye(n), A.T], [A, np.zeros((p, p))]])
    right, price = np.append(-q, b), np.abs(P @ x + q + A.T @ y)
    side = np.where(fixed, 0, side)
    for count in range(60 if n + p <= _SMALL else 5):
        tight = fixed | (side != 0)
        held = np.append(~tight, np.full(p, True))
        if held.sum() > _SMALL:
            return None
        v = np.where(tight, np.where(side < 0, upper, lower), x)
        v = _exactly(K[held], right[held], [*v, *y], held, np.ones(n + p))
        if v is None:        # too many: let go the bound of least price
            if not side.any():
                return None
            side[np.argmin(np.where(side, price, np.inf))] = 0
            continue
        r = [_dot(row, v) - Fraction(t) for row, t in zip(K, right)]
        wrong = [j for j in np.flatnonzero(~fixed) if side[j] * r[j] < 0
                 or not lower[j] <= v[j] <= upper[j]]
        if not wrong:
            v = np.array(v, dtype=float)
            return v[:n], v[n:]
        for j in wrong[:1 if count > 3 else n]:
            side[j] = 0 if side[j] else 1 if v[j] < lower[j] else -1
    return None


def _semidefinite(P):
    """Is P positive semidefinite, as the floats describe it?"""
    S = np.array([[*map(Fraction, row)] for row in P @ np.eye(P.shape[0])])
    while len(S):
        d, a, S = S[0, 0], S[0, 1:], S[1:, 1:]
        if d < 0 or (not d and a.any()):
            return False
        S = S - np.outer(a, a) / d if d else S     # Schur complement
    return True

# %% [6] Fine print
def _polished(programme, x, y, side):
    """Take bounds as tight, solve for the rest, and mend the guess."""
    P, q, A, b, lower, upper = programme
    best, least = (x, y), _error(programme, x, y)
    for _ in range(8):
        tight = (lower == upper) | (side != 0)
        x = np.where(tight, np.where(side < 0, upper, lower), x)
        solve = _reduced(P, A, np.where(tight, np.inf, 0.0))
        for _ in range(4):
            dx, dy = solve(-(P @ x + q + A.T @ y), b - A @ x)
            x, y = x + dx, y + dy
            inside = np.clip(x, lower, upper)
            error = _error(programme, inside, y)
            if error < least:
                best, least = (inside, y), error
        r, old = P @ x + q + A.T @ y, side
        noise = 1e-13 * (abs(P) @ np.abs(x) + np.abs(q)
                         + np.abs(A.T) @ np.abs(y))
        price = np.where(np.isfinite(np.where(r > 0, lower, upper)) & (
            np.abs(r) > 1e4 * noise), np.sign(r), 0.0)
        side = np.where(x < lower, 1, np.where(x > upper, -1, np.where(
            side == 0, price, np.where(side * r >= -noise, side, 0))))
        if least < 1e-13 or np.array_equal(old, side):
            break
    return *best, least, side


def _optimum(programme):
    """A solution x, its multipliers y, the error (0 if the solution is
    exact, infinite if it cannot be known), and the number of steps."""
    P, q, A, b, lower, upper = programme
    x, y, start, count = _interior_point(programme)
    x, y, error, end = _polished(programme, x, y, start)
    guesses = ((0 * y, start), (y, start), (y, end))
    for guess, side in guesses if len(x) + len(y) <= 40 else ():
        if exact := _exact(programme, x, guess, side):
            (x, y), error = exact, 0.0
            break
    # Can rounding errors hide what Px or Ax lacks, far out?
    X, tiny = np.abs(x), 800 * len(x) * _EPS
    terms = np.abs(q) + np.abs(A.T) @ np.abs(y)
    if (q @ x < 0 and tiny * (abs(P) @ X).max() > terms.max()) or (
            tiny * (np.abs(A) @ X).max(initial=0.0)
            > np.abs(b).max(initial=1.0)):
        error = 0.0 if error == 0 and _semidefinite(P) else np.inf
    return x, y, error, count

# %% [7] Fine print
def _nearest(programme):
    """Minimise ‖s‖²/2 for Ax - s = b within the bounds."""
    P, q, A, b, lower, upper = programme
    n, p, free = len(q), len(b), np.full(len(b), np.inf)
    return _Programme(
        sparse.diags_array(np.repeat([0.0, 1.0], [n, p])).tocsr(),
        np.zeros(n + p), np.hstack([A, -np.eye(p)]), b,
        np.append(lower, -free), np.append(upper, free))


def _cone(programme):
    """Minimise ‖d‖²/2 + q'd over the d that no constraint ends."""
    P, q, A, b, lower, upper = programme
    A = np.vstack([A, P[abs(P) @ np.ones(len(q)) > 0] @ np.eye(len(q))])
    return _Programme(
        sparse.eye_array(len(q), format="csr"), q, A, np.zeros(len(A)),
        np.where(np.isfinite(lower), 0.0, -np.inf),
        np.where(np.isfinite(upper), 0.0, np.inf))


def _near(M, v, tol):
    """w near v with Mw = 0 exactly, zero where v is nearly zero."""
    v = np.round(v / (np.abs(v).max(initial=0.0) or 1.0) * 2.0**40) / 2**40
    held = np.abs(v) > tol
    return _exactly(M, np.zeros(len(M)), v * held, held, np.abs(v))


def _farkas(programme, y, tol):
    """An exact proof near y that no point is feasible, or None."""
    _, _, A, b, lower, upper = programme
    r, size = A.T @ y, tol * (np.abs(A.T) @ np.abs(y))
    zero = ~((np.isfinite(lower) | (r < -size))
             & (np.isfinite(upper) | (r > size)))
    if (y := _near(A[:, zero].T, y, tol)) is None:
        return None
    r = [_dot(column, y) for column in A.T]
    edges = [low if t > 0 else high if t < 0 else 0.0
             for t, low, high in zip(r, lower, upper)]
    if not np.isfinite(edges).all():
        return None
    margin = _dot(edges, r) - _dot(b, y)
    return dict(status="infeasible", y=np.array(y, dtype=float),
                margin=float(margin)) if margin > 0 else None


def _ray(cone, d, tol):
    """An exact direction of unlimited descent near d, or None."""
    _, q, A, _, lower, upper = cone
    d = _near(A, np.clip(d, lower, upper), tol)
    if d is None or _dot(q, d) >= 0 or any(
            t < a or t > b for t, a, b in zip(d, lower, upper)):
        return None
    return dict(status="unbounded", direction=np.array(d, dtype=float),
                margin=float(-_dot(q, d)))


def _feasible(programme, x, tol):
    """A point near x that is exactly feasible, as floats, or None."""
    _, _, A, b, lower, upper = programme
    room = np.minimum(x - lower, upper - x)
    inner = room > tol * (1 + np.abs(x))
    x = np.where(inner, x, np.where(x - lower < upper - x, lower, upper))
    x = _exactly(A, b, x, inner, room)
    if x is None or any(t < a or t > b for t, a, b in zip(x, lower, upper)):
        return None
    return np.array(x, dtype=float)

# %% [8] Fine print
def _verdict(programme, small):
    """The status with its proof, for `_answer`."""
    def first(search, programme, start):
        found = (search(programme, start, tol)
                 for tol in (1e-13, 1e-10, 1e-7, 1e-4))
        return next((one for one in found if one is not None), None)

    x, y, error, count = _optimum(programme)
    found = dict(status="optimal", x=x, y=y, iterations=count)
    if error == 0 or (error < 1e-7 and not small):
        return found
    point, excess, _, _ = _optimum(_nearest(programme))
    point = np.clip(point[:len(x)], programme.lower, programme.upper)
    if proof := first(_farkas, programme, excess):
        return found | proof | dict(x=point)
    cone = _cone(programme)
    if proof := first(_ray, cone, _optimum(cone)[0]):
        if (point := first(_feasible, programme, point)) is not None:
            return found | proof | dict(x=point)
        return found | dict(status="not decided", reason=(
            "the objective falls for ever along some direction, but no "
            "point is known to be feasible exactly"))
    return found if error < 4 * _EPS else found | dict(
        status="not decided", reason=(
            f"the relative error of the best point is {error:.0e}, and no "
            "proof that there is no solution holds exactly"))

# %% [9] Fine print
@dataclass(frozen=True, eq=False)
class QPSolution(check.Record):
    """Answer to a quadratic programme (:prf:ref:`thm-qp-trichotomy`).

    Write d for `direction`, and y, λ, z, w for the multipliers
    `equality`, `inequality`, `at_lower` and `at_upper` of Ax = b, Cx <= c
    and the bounds; λ, z, w are not negative. What the status says, the
    read-only arrays prove:

    * "optimal": x is a solution, with these multipliers: to the last
      digit if the programme is small, else up to 1e-7 of the terms of
      each condition and of the objective.
    * "infeasible" (exactly, before rounding): A'y + C'λ - z + w = 0 and
      yet lower'z - upper'w - b'y - c'λ = margin > 0; x is the point
      within the bounds that is closest to obeying the other constraints.
    * "unbounded" (likewise): x is feasible, Pd = 0, Ad = 0, Cd <= 0, d
      never meets a bound, and q'd = -margin < 0. The multipliers are zero.
    * "not decided": `reason` says why; x is the best point that was met.
    """

    status: str
    x: np.ndarray
    equality: np.ndarray
    at_lower: np.ndarray
    at_upper: np.ndarray
    objective: float         #: x'Px/2 + q'x, or plus or minus infinity
    gap: float               #: less the dual objective, or infinity
    stationarity: float      #: error of the first equation above, or of
    #: Px + q + A'y + C'λ - z + w = 0 or Pd = 0
    primal_residual: float   #: largest violation of Ax = b and Cx <= c
    complementarity: float   #: largest product of a multiplier and slack
    iterations: int          #: steps of the interior-point method
    direction: np.ndarray | None = None
    margin: float = 0.0      #: proves that there is no solution, or 0
    inequality: np.ndarray | None = None
    reason: str = ""

# %% [10] Fine print
# The programme of the caller: rows after the first `equations` are
# inequalities, and P is FF' if it is None.
_Given = namedtuple("_Given", "P F q A b lower upper equations")


def _quadratic(P, n):
    P = check.real_array(P, "P", 2)
    if P.shape != (n, n):
        raise ValueError(f"P must have shape ({n}, {n}) to go with q, got "
                         f"shape {P.shape}")
    largest, P, odd = np.abs(P).max(), P / 2 + P.T / 2, P / 2 - P.T / 2
    if odd.max() > max(n, 10) * _EPS * largest / 2:
        i, j = np.unravel_index(odd.argmax(), P.shape)
        raise ValueError(f"P must be symmetric, but P[{i}, {j}] - P[{j}, "
                         f"{i}] = {2 * odd[i, j]:.6g}")
    d = np.sqrt(np.maximum(P.diagonal(), n * _EPS * largest or 1.0))
    S = P / d[:, None] / d
    tol = 2 * n * _EPS * max(1.0, np.abs(S).sum(axis=1).max())
    try:
        cho_factor(S + tol * np.eye(n), overwrite_a=True)
    except LinAlgError:
        raise ValueError(
            "P must be positive semidefinite, but a'Pa = "
            f"{is_positive_definite(P, 0.0).value:.6g} for some a of "
            "length one") from None
    return P


def _checked(P, q, A, b, C, c, lower, upper, factor):
    q = check.real_array(q, "q", 1)
    n, rows, right, bounds = len(q), [], [], []
    if (P is None) == (factor is None):
        raise ValueError("P must be a matrix, or None together with a "
                         "factor F with P = FF'")
    if factor is None:
        P = _quadratic(P, n)
    elif len(factor := check.real_array(factor, "factor", 2)) != n:
        raise ValueError(f"factor must have {n} rows to go with q, got "
                         f"shape {factor.shape}")
    for M, v, (left, name) in ((A, b, "Ab"), (C, c, "Cc")):
        none = M is None and v is None
        M = np.atleast_2d(np.zeros((0, n)) if none
                          else check.real_array(M, left))
        v = np.atleast_1d([] if none else check.real_array(v, name))
        if M.ndim != 2 or M.shape[1] != n:
            raise ValueError(f"{left} must have shape (p, {n}) to go with "
                             f"q, got shape {M.shape}")
        if v.shape != (len(M),):
            raise ValueError(f"{name} must be one number for each row of "
                             f"{left}, got shape {v.shape}")
        rows, right = rows + [M], right + [v]
    for v, name, none in ((lower, "lower", -np.inf),
                          (upper, "upper", np.inf)):
        v = check.plain_array(none if v is None else v, name)
        if (v.dtype.kind not in "biuf" or v.shape not in ((), (n,))
                or np.isnan(v).any() or (v == -none).any()):
            raise ValueError(f"{name} must be a number or {none}, or {n} "
                             "of them, one for each variable")
        bounds.append(np.array(np.broadcast_to(v, n), dtype=float))
    return _Given(P, factor, q, np.vstack(rows), np.concatenate(right),
                  *bounds, len(right[0]))

# %% [11] Fine print
def _scaled(given, units, far=np.inf):
    """The programme in these units; bounds beyond `far` are infinite."""
    P, F, q, A, b, lower, upper, p = given
    x, t, r = units
    return _Given(
        None if P is None else np.ldexp(P, x + x[:, None] - t),
        None if F is None else np.ldexp(F, x[:, None] - t // 2),
        np.ldexp(q, x - t), np.ldexp(A, x + r[:, None]), np.ldexp(b, r),
        *(np.where(np.abs(v) < far, v, np.copysign(np.inf, v))
          for v in np.ldexp((lower, upper), -x)), p)


def _units(given):
    """Powers of two for variables, objective, rows: numbers near one."""
    def some(v, otherwise=0.0):         # minus infinity: no entry
        return np.where(np.isfinite(v), v, otherwise)

    P, F, q, A, b, lower, upper, _ = given
    h, G, e_q, e_b, near, far = (np.log2(np.abs(v)) for v in (
        np.sqrt(P.diagonal()) if F is None else np.abs(F).max(axis=1),
        np.vstack([A, 0 * q]), q, np.append(b, 0.0),
        np.maximum(np.maximum(lower, -upper), 0.0),
        np.append(lower, upper)))
    x, r = np.zeros(len(q)), -some(G.max(axis=1))
    for _ in range(20):                 # rows and columns in turn
        column = (G + r[:, None]).max(axis=0) + x
        x = x - some(np.maximum(h - some(h.max()) + x, column / 2))
        r = r - some((G + x).max(axis=1) + r) / 2
    x, r = np.round(x).astype(int), np.round(r).astype(int)
    e_P, e_q, far = 2 * (h + x).max(), (e_q + x).max(), far - np.tile(x, 2)
    far = far[np.isfinite(far)]
    typical = min(some(e_q - e_P, np.inf),
                  np.median(far) if len(far) else np.inf)
    s = int(some(max((near - x).max(), (e_b + r).max(),
                     some(typical, -np.inf))))
    t = int(some(max(e_P + 2 * s, e_q + s)))
    return x + s, t + t % 2, r[:-1] - s

# %% [12] Fine print
def _standard(given):
    """With slacks, and with v = F'x for a thin factor."""
    P, F, q, A, b, lower, upper, p = given
    n, m = len(q), len(b) - p
    if F is None or F.shape[1] >= n:
        P, F = F @ F.T if P is None else P, np.zeros((n, 0))
    P, r = np.zeros((n, n)) if P is None else P, F.shape[1]
    P = (np.pad(P, (0, m)) if np.count_nonzero(P, axis=1).max() > 1
         else sparse.diags_array(np.concatenate(
             [P.diagonal(), np.zeros(m), np.ones(r)])).tocsr())
    A = np.block([[A, np.eye(p + m, m, -p), np.zeros((p + m, r))],
                  [F.T, np.zeros((r, m)), -np.eye(r)]])
    return _Programme(
        P, np.append(q, np.zeros(m + r)), A, np.append(b, np.zeros(r)),
        np.concatenate([lower, np.zeros(m), np.full(r, -np.inf)]),
        np.append(upper, np.full(m + r, np.inf)))

# %% [13] Fine print
def _answer(given, units, status, x, y, z=None, w=None, *, direction=None,
            margin=0.0, **more):
    """The record, in the units and from the numbers of the caller."""
    P, F, q, A, b, lower, upper, p = given
    n, (unit, k, rows) = len(q), units
    k = 0 if status == "infeasible" else k
    x, y = np.ldexp(x[:n], unit), np.ldexp(y[:len(b)], rows + k)
    objective, gap, worst, margin = np.inf, np.inf, 0.0, np.ldexp(margin, k)
    r_p, size = A @ x - b, 1.0

    def curved(v):
        return F @ (F.T @ v) if P is None else P @ v

    if status == "unbounded":
        direction = np.ldexp(direction[:n], unit)
        size, objective = np.abs(direction).max(), -np.inf
        direction, y, z, w = direction / size, 0 * y, 0 * x, 0 * x
        left = curved(direction)
    elif status == "infeasible":
        left = A.T @ y
    else:
        y[p:] = np.where(y[p:] > -1e-10 * r_p[p:], y[p:], 0.0).clip(0.0)
        left, objective = curved(x) + q + A.T @ y, x @ curved(x) / 2 + q @ x
    if z is None:
        z = np.where(np.isfinite(lower), np.maximum(left, 0.0), 0.0)
        w = np.where(np.isfinite(upper), np.maximum(-left, 0.0), 0.0)
        left = left - z + w
    if status in ("optimal", "not decided"):
        products = np.concatenate([z * np.where(z > 0, x - lower, 0.0),
                                   w * np.where(w > 0, upper - x, 0.0),
                                   -y[p:] * r_p[p:]])
        worst = np.abs(products).max()
        gap = products.sum() + left @ x - r_p[:p] @ y[:p]
    if not np.isfinite(np.hstack([
            x, y, z, w, margin, status == "optimal" and objective])).all():
        raise ValueError("q, b and the bounds must be of a size such that "
                         "the solution does not overflow")
    r_p[p:] = np.maximum(r_p[p:], 0.0)
    return QPSolution(
        status, x, y[:p], z, w, *map(float, (
            objective, gap, np.abs(left).max(),
            np.abs(r_p).max(initial=0.0), worst)),
        direction=direction, margin=float(margin / size),
        inequality=y[p:], **more)

# %% [14] The solver
def solve_qp(P, q, A=None, b=None, lower=None, upper=None, *, C=None,
             c=None, factor=None) -> QPSolution:
    """Minimise x'Px/2 + q'x for Ax = b, Cx <= c and lower <= x <= upper
    (:prf:ref:`thm-qp-trichotomy`, :prf:ref:`alg-qp`).

    The (n, n) matrix P is symmetric and positive semidefinite up to
    rounding, maybe zero; or it is None, and `factor` is an (n, r) array F
    with P = FF'. If every variable has a bound, a step then costs of the
    order of n r² instead of n³ operations. The rows of A and C may be
    dependent; one row may come with a plain number. Each bound is a
    number or n of them, by default infinite; equal ones fix x.

    >>> found = solve_qp([[1, 0], [0, 1]], [0, -3], [1, 1], 1, lower=0)
    >>> print(found.status, found.x.round(6), found.equality.round(6))
    optimal [0. 1.] [2.]
    """
    given = _checked(P, q, A, b, C, c, lower, upper, factor)
    lower, upper = given.lower, given.upper
    with np.errstate(all="ignore"):
        i = np.argmax(lower - upper)
        if lower[i] > upper[i]:                    # a proof at first sight
            e = np.eye(len(lower))[i]
            return _answer(
                given, (0, 0, 0), "infeasible", np.clip(0.0, upper, lower),
                0 * given.b, e, e, margin=lower[i] - upper[i], iterations=0)
        units = _units(given)
        scaled = _scaled(given, units, 1e60)
        found = _verdict(_standard(scaled), len(given.q) + 2 * len(
            given.b) - given.equations <= _SMALL)     # one of three answers
        back = _scaled(scaled, [-u for u in units])
        same = [*map(np.array_equal, back, given)]
        if not {"infeasible": all(same[:5]), "unbounded": all(same)}.get(
                found["status"], True):
            raise ValueError("lower and upper must be of the size of P, q, "
                             "A, b, C and c, and these must not span more "
                             "orders of magnitude than a float has")
        return _answer(back, units, **found)
