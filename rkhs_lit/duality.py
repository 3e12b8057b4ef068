"""Duality: the price of a constraint

The exported cells of the chapter ``book/duality.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: ef250a5073d95f8f

# %% [1] Duality: the price of a constraint
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, lu_solve
from scipy.linalg.lapack import dgetrf

import rkhs_lit.conventions as check


# %% [2] One Newton step
class _Form(NamedTuple):
    """Minimise x'(P + diag p)x/2 + q'x for Ax = b, lower <= x <= upper.

    P belongs to the first len(P) variables.
    """

    P: np.ndarray
    p: np.ndarray
    q: np.ndarray
    A: np.ndarray
    b: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def times(self, x):
        Px, k = self.p * x, len(self.P)
        Px[:k] += self.P @ x[:k]
        return Px

    def gradient(self, x, y):
        return self.times(x) + self.q + self.A.T @ y

    def sizes(self):
        return self._replace(**{
            name: np.abs(getattr(self, name)) for name in "PpqAb"})

    def among(self, keep, x):
        """The programme of the variables `keep`, the others fixed at x."""
        x, k = np.where(keep, 0.0, x), len(self.P)
        return _Form(self.P[np.ix_(keep[:k], keep[:k])], self.p[keep],
                     (self.q + self.times(x))[keep], self.A[:, keep],
                     self.b - self.A @ x, self.lower[keep],
                     self.upper[keep])


# %% [3] One Newton step
class _Sides(NamedTuple):
    """The finite bounds, as sign * x[index] >= edge."""

    index: np.ndarray
    sign: np.ndarray
    edge: np.ndarray
    n: int

    def along(self, x):
        return self.sign * x[self.index]

    def gather(self, z):
        return np.bincount(self.index, self.sign * z, minlength=self.n)

    def total(self, z):
        return np.bincount(self.index, z, minlength=self.n)


def _sides(lower, upper):
    below, above = np.isfinite(lower), np.isfinite(upper)
    return _Sides(
        np.concatenate([np.flatnonzero(below), np.flatnonzero(above)]),
        np.repeat([1.0, -1.0], [below.sum(), above.sum()]),
        np.concatenate([lower[below], -upper[above]]), len(lower))


class _Point(NamedTuple):
    """A point of the homogeneous model, or a step."""

    x: np.ndarray
    y: np.ndarray
    s: np.ndarray
    z: np.ndarray
    tau: float
    kappa: float

    def plus(self, alpha, step):
        """The point after a step, of size one."""
        moved = [a + alpha * d for a, d in zip(self, step)]
        size = max(np.abs(v).max(initial=0.0) for v in moved[2:])
        return _Point(*(v / size for v in moved))

    def mean(self):
        """The mean of the products, s z and tau kappa."""
        return (self.s @ self.z + self.tau * self.kappa) / (
            len(self.s) + 1)


# %% [4] One Newton step
def _residuals(form, sides, v):
    Px = form.times(v.x)
    return (Px + form.A.T @ v.y - sides.gather(v.z) + v.tau * form.q,
            form.A @ v.x - v.tau * form.b,
            sides.along(v.x) - v.s - v.tau * sides.edge,
            form.q @ v.x + form.b @ v.y - sides.edge @ v.z
            + v.x @ Px / v.tau + v.kappa)


# %% [5] One Newton step
_EPS = np.finfo(float).eps
_SHIFT = 1e-14


def _units_of(K, m):
    """Factors that bring the entries of K near one, H in m rows first."""
    u, B = np.abs(K.diagonal()), np.abs(K[m:, :m])
    u[:m] = np.where(u[:m] > 0, u[:m], B.max(axis=0, initial=0.0) ** 2)
    u[:m] = 1 / np.sqrt(np.where(u[:m] > 0, u[:m], 1.0))
    u[m:] = np.maximum(np.sqrt(u[m:]),
                       (B * u[:m]).max(axis=1, initial=0.0))
    u[m:] = 1 / np.where(u[m:] > 0, u[m:], 1.0)
    return u


# %% [6] One Newton step
def _by_lu(K, m):
    """A function that solves Kv = w."""
    factor = dgetrf(K.T, overwrite_a=True)[:2] if len(K) else None
    return lambda w: w if factor is None else lu_solve(
        factor, w, check_finite=False)


def _by_cholesky(K, m):
    """The same for K = [H B'; B -D], with H positive definite."""
    H = cho_factor(K[:m, :m], lower=True, check_finite=False)
    W = cho_solve(H, K[:m, m:], check_finite=False)
    S = K[m:, m:] - K[m:, :m] @ W

    def inverse(w):
        y = np.linalg.solve(S, w[m:] - W.T @ w[:m])
        x = cho_solve(H, w[:m], check_finite=False)
        return np.concatenate([x - W @ y, y])
    return inverse


def _newton(form, theta):
    """A function (f, g) -> (dx, dy) that solves the system of a step."""
    h, k = form.p + theta, len(form.P)
    inner = h == 0
    inner[:k] |= form.P.any(axis=1)
    m, B, D, d = inner.sum(), form.A[:, inner], form.A[:, ~inner], h[~inner]
    P = form.P if inner[:k].all() else form.P[
        np.ix_(inner[:k], inner[:k])]
    N = m + len(B)
    K = np.zeros((N, N))
    K[:len(P), :len(P)] = P
    K[m:, :m] = B
    K[m:, m:] = -(D / d) @ D.T
    K.flat[:m * N:N + 1] += h[inner]
    u = _units_of(K, m)
    K *= u
    K *= u[:, None]
    K.flat[::N + 1] += np.repeat([_SHIFT, -_SHIFT], [m, N - m])
    K[:m, m:] = K[m:, :m].T
    if not np.isfinite(K.sum()):
        raise LinAlgError
    large = m >= 100 and 4 * len(B) <= m and theta[inner].all()
    inverse = (_by_cholesky if large else _by_lu)(K, m)

    def once(f, g):
        right = np.concatenate([f[inner], g - D @ (f[~inner] / d)])
        left = u * inverse(u * right)
        dx, dy = np.empty(len(f)), left[m:]
        dx[inner] = left[:m]
        dx[~inner] = (f[~inner] - D.T @ dy) / d
        return dx, dy

    def solve(f, g):
        dx, dy = once(f, g)
        more = once(f - form.times(dx) - theta * dx - form.A.T @ dy,
                    g - form.A @ dx)
        return dx + more[0], dy + more[1]
    return solve


# %% [7] One Newton step
def _step(form, sides, v, solve, first, residuals, eta, c, c_tau):
    """The step that removes the fraction eta of the residuals."""
    r_d, r_p, r_s, r_g = (eta * r for r in residuals)
    theta, xi = v.z / v.s, v.x / v.tau
    x1, y1, z1 = first
    x2, y2 = solve(sides.gather(c / v.s - theta * r_s) - r_d, -r_p)
    z2 = c / v.s - theta * (sides.along(x2) + r_s)
    w, e = form.q + 2 * form.times(xi), xi - x1
    dtau = (r_g + c_tau / v.tau + w @ x2 + form.b @ y2 - sides.edge @ z2
            ) / (v.kappa / v.tau + e @ form.times(e) + z1 @ (z1 / theta))
    dx = x2 + dtau * x1
    return _Point(dx, y2 + dtau * y1,
                  sides.along(dx) - dtau * sides.edge + r_s,
                  z2 + dtau * z1, dtau, (c_tau - v.kappa * dtau) / v.tau)


# %% [8] Predictor and corrector
def _longest(v, dv):
    """How far the step can go until s, z, tau or kappa is zero."""
    a, d = np.hstack(v[2:]), np.hstack(dv[2:])
    return (a[d < 0] / -d[d < 0]).min(initial=np.inf)


def _predict_and_correct(form, sides, v, residuals, cautious):
    theta, mu = v.z / v.s, v.mean()
    solve = _newton(form, sides.total(theta))
    x1, y1 = solve(sides.gather(theta * sides.edge) - form.q, form.b)
    first = x1, y1, theta * (sides.edge - sides.along(x1))
    c, c_tau = -v.s * v.z, -v.tau * v.kappa
    step = _step(form, sides, v, solve, first, residuals, 1.0, c, c_tau)
    sigma = (1 - min(1.0, _longest(v, step))) ** 3
    if cautious:
        sigma = 0.5
    else:
        c, c_tau = c - step.s * step.z, c_tau - step.tau * step.kappa
    step = _step(form, sides, v, solve, first, residuals, 1 - sigma,
                 sigma * mu + c, sigma * mu + c_tau)
    return v.plus(min(1.0, 0.995 * _longest(v, step)), step)


# %% [9] Predictor and corrector
class _Errors(NamedTuple):
    """How far a point is from a solution, and from a proof of none."""

    flaw: float      # residuals, entry by entry against their terms
    gap: float       # sum of the products against the objective
    apart: float     # the smaller of s and z against the larger
    proof: float     # residuals of a proof, and tau / kappa


def _top(*arrays):
    return max(np.abs(v).max(initial=0.0) for v in arrays)


def _ratio(a, b, floor=1e-8):
    """The largest |a| / b, where very small b count as larger."""
    return (np.abs(a) / (b + floor * (_top(b) + 1e-12) + 1e-300)
            ).max(initial=0.0)


def _errors(form, sizes, sides, v, residuals):
    r_d, r_p, r_s, _ = residuals
    X, Y = np.abs(v.x), np.abs(v.y)
    PX, AYZ = sizes.times(X), sizes.A.T @ Y + sides.total(v.z)
    t_d, t_p = PX + AYZ + v.tau * sizes.q, sizes.A @ X + v.tau * sizes.b
    t_s = X[sides.index] + v.tau * np.abs(sides.edge) + v.s
    farkas = (_ratio(form.A.T @ v.y - sides.gather(v.z), AYZ)
              if sides.edge @ v.z > form.b @ v.y else np.inf)
    ray = max(_ratio(form.times(v.x), PX), _ratio(form.A @ v.x, t_p),
              _ratio(sides.along(v.x) - v.s, t_s)
              ) if form.q @ v.x < 0 else np.inf
    value = X @ PX / v.tau + sizes.q @ X + sizes.b @ Y
    apart = np.minimum(
        np.minimum(v.s / v.z, v.z / v.s),
        1e10 * (v.s / _top(v.s)) * (v.z / _top(v.z)))
    return _Errors(
        max(_ratio(r_d, t_d), _ratio(r_p, t_p), _ratio(r_s, t_s)),
        v.s @ v.z / v.tau / (value + 1e-300), apart.max(initial=0.0),
        max(v.tau / v.kappa, min(farkas, ray)))


# %% [10] Predictor and corrector
def _interior_point(form, trace=None):
    """Two points (error, v), one with s and z apart and one with a small
    gap, and the number of steps."""
    sides, sizes = _sides(form.lower, form.upper), form.sizes()
    N = len(sides.edge)
    v = _Point(np.zeros(len(form.q)), np.zeros(len(form.b)), np.ones(N),
               np.ones(N), 1.0, 1.0)
    sharp = fair = (np.inf, v)
    flaw, mark, stalled = np.inf, np.inf, 0
    for count in range(150):
        residuals, mu = _residuals(form, sides, v), v.mean()
        error = _errors(form, sizes, sides, v, residuals)
        if trace is not None:
            trace.append((v, error))
        stalled = 0 if mu < mark / 2 else stalled + 1
        mark, flaw = mark if stalled else mu, min(flaw, error.flaw)
        sharp = min(sharp, (max(error.flaw, error.apart), v),
                    key=lambda pair: pair[0])
        fair = min(fair, (max(error.flaw, error.gap), v),
                   key=lambda pair: pair[0])
        if (min(sharp[0], error.proof) < 1e-9 or stalled > 8
                or mu < 1e-14 and error.flaw > 100 * max(flaw, 1e-14)):
            break
        try:
            v = _predict_and_correct(form, sides, v, residuals, stalled > 5)
        except LinAlgError:
            break
        if not np.isfinite(np.hstack(v)).all():
            break
    return sharp, fair, count


# %% [11] Slacks and a thin factor
class _Program(NamedTuple):
    """Minimise x'Px/2 + q'x for Ax = b, Cx <= c, lower <= x <= upper.

    P is None if it is FF'.
    """

    P: np.ndarray | None
    F: np.ndarray | None
    q: np.ndarray
    A: np.ndarray
    b: np.ndarray
    C: np.ndarray
    c: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def times(self, x):
        return self.F @ (self.F.T @ x) if self.P is None else self.P @ x


def _with_columns(form, block, p, lower):
    """The programme with further variables, A times which is `block`."""
    k = block.shape[1]
    return form._replace(
        p=np.concatenate([form.p, np.full(k, p)]),
        q=np.concatenate([form.q, np.zeros(k)]),
        A=np.hstack([form.A, block]),
        lower=np.concatenate([form.lower, np.full(k, lower)]),
        upper=np.concatenate([form.upper, np.full(k, np.inf)]))


def _form(program, p, q, P=np.zeros((0, 0))):
    """The constraints Ax = b and Cx + t = c, t >= 0, and an objective."""
    k = len(program.b)
    rows = np.vstack([program.A, program.C])
    return _with_columns(
        _Form(P, p, q, rows, np.concatenate([program.b, program.c]),
              program.lower, program.upper), np.eye(len(rows))[:, k:],
        0.0, 0.0)


# %% [12] Slacks and a thin factor
def _standard(program):
    """The programme with slacks, and with v = F'x for a thin factor."""
    n, P, F = len(program.q), program.P, program.F
    if P is None and F.shape[1] >= n:
        P = F @ F.T
    if P is not None:
        alone = np.count_nonzero(P, axis=1) == (P.diagonal() != 0)
        return _form(program, np.where(alone, P.diagonal(), 0.0),
                     program.q, np.where(alone, 0.0, P))
    form, r = _form(program, np.zeros(n), program.q), F.shape[1]
    rows = np.pad(F.T, ((0, 0), (0, form.A.shape[1] - n)))
    form = form._replace(A=np.vstack([form.A, rows]),
                         b=np.concatenate([form.b, np.zeros(r)]))
    return _with_columns(form, -np.eye(len(form.b))[:, -r:], 1.0, -np.inf)


# %% [13] The tight bounds
def _misfit(form, sizes, x, y, low, high, floor=1e-8):
    """The largest relative error of x and y as a solution."""
    X, Y, r, r_p = (np.abs(x), np.abs(y), form.gradient(x, y),
                    form.A @ x - form.b)
    r = np.maximum(r, 0.0) * ~low + np.minimum(r, 0.0) * ~high
    PX = sizes.times(X)
    return max(_ratio(r, PX + sizes.q + sizes.A.T @ Y, floor),
               _ratio(r_p, sizes.A @ X + sizes.b, floor),
               abs(r @ x - r_p @ y) / (X @ PX + sizes.q @ X + sizes.b @ Y
                                       + 1e-20))


def _refined(form, sizes, x, y, low, high):
    """x and y with these bounds tight; the best of them, and its error."""
    free, best, least = ~(low | high), (x, y), np.inf
    x = np.where(low, form.lower, np.where(high, form.upper, x))
    part = form.among(free, x)
    solve = _newton(part, np.zeros(free.sum()))
    rows = part.A.any(axis=1)        # no step mends the others
    for _ in range(6):
        inside = np.clip(x, form.lower, form.upper)
        error = _misfit(form, sizes, inside, y, low | (x < form.lower),
                        high | (x > form.upper))
        if error < least:
            best, least = (inside, y), error
        if least < 1e-15 or not error < np.inf:
            break
        dx, dy = solve(-form.gradient(x, y)[free],
                       rows * (form.b - form.A @ x))
        x, y = x.copy(), y + dy
        x[free] += dx
    return x, y, best, least


def _polished(form, x, y, low, high, fixed):
    """The best x and y after changes of the tight bounds, and its error."""
    best, least, sizes = (x, y), np.inf, form.sizes()
    for _ in range(8):
        try:
            x, y, point, error = _refined(form, sizes, x, y, low, high)
        except LinAlgError:
            break
        if error < least:
            best, least = point, error
        r = form.gradient(x, y)
        noise = 1e-13 * sizes.gradient(np.abs(x), np.abs(y))
        old = low, high
        low = fixed | (low & (r >= -noise)) | (x < form.lower)
        high = fixed | (high & (r <= noise)) | (x > form.upper)
        if least < 1e-13 or np.array_equal(old, (low, high)):
            break
    return best, least, low, high


# %% [14] Exact arithmetic
_WORK = 100_000


def _fractions(v):
    return [Fraction(float(t)) for t in v]


def _dot(a, v):
    """a'v for floats a and fractions v."""
    return sum((Fraction(float(s)) * t for s, t in zip(a, v) if s and t),
               Fraction(0))


def _exactly(M, right, v, weight):
    """Mv = right, with as few entries of v changed as it takes, or None.

    Where there is a choice, entries of large weight change.
    """
    pivots, work = [], 0
    for a, t in zip(M, right):
        t = t - _dot(a, v)
        row = {int(j): Fraction(float(a[j])) for j in np.flatnonzero(a)}
        for j, other, value in pivots:
            if j in row:
                f = row.pop(j)
                t -= f * value
                work += len(other)
                for k, s in other.items():
                    row[k] = row.get(k, 0) - f * s
                    if not row[k]:
                        del row[k]
        if work > _WORK or (t and not row):
            return None
        if row:
            j = max(row, key=weight.__getitem__)
            f = row.pop(j)
            pivots.append((j, {k: s / f for k, s in row.items()}, t / f))
    v = list(v)
    change = {}
    for j, row, t in reversed(pivots):
        change[j] = t - sum(s * change.get(k, 0) for k, s in row.items())
        v[j] += change[j]
    return v


# %% [15] Exact arithmetic
def _exactly_on(held, M, right, v, weight):
    """The same, with only the entries of v in the set `held` changed."""
    held, others = np.flatnonzero(held), np.flatnonzero(~held)
    part = _exactly(
        M[:, held], [t - _dot(row[others], [v[j] for j in others])
                     for row, t in zip(M, right)],
        [v[j] for j in held], [weight[j] for j in held])
    if part is None:
        return None
    v = list(v)
    for j, t in zip(held, part):
        v[j] = t
    return v


# %% [16] Exact arithmetic
_SMALL = 16


def _exact(form, x, y, low, high, fixed, doubt):
    """The solution in exact arithmetic, if the programme is small.

    Of tight bounds that contradict each other the most doubtful one goes.
    """
    k, n, rows = len(form.P), len(form.q), len(form.b)
    if n + rows > 40:
        return None
    H = np.diag(form.p)
    H[:k, :k] += form.P
    K = np.block([[H, form.A.T], [form.A, np.zeros((rows, rows))]])
    right = _fractions(np.concatenate([-form.q, form.b]))
    for count in range(60 if n + rows <= _SMALL else 5):
        v = _fractions(np.concatenate([np.where(
            low, form.lower, np.where(high, form.upper, x)), y]))
        held = np.concatenate([~(low | high), np.full(rows, True)])
        if held.sum() > _SMALL:
            return None
        v = _exactly_on(held, K[held], [
            t for t, h in zip(right, held) if h], v, [1] * len(v))
        low, high = low.copy(), high.copy()
        if v is None:
            loose = (low | high) & ~fixed
            if not loose.any():
                return None
            j = np.argmax(np.where(loose, doubt, -1.0))
            low[j] = high[j] = False
            continue
        r = [_dot(row, v) - t for row, t in zip(K, right)]
        wrong = [j for j in range(n) if not fixed[j] and (
            low[j] and r[j] < 0 or high[j] and r[j] > 0
            or not form.lower[j] <= v[j] <= form.upper[j])]
        if not wrong:
            v = np.array(v, dtype=float)
            return v[:n], v[n:]
        for j in wrong[:1 if count > 3 else n]:
            free = not (low[j] or high[j])
            low[j] = free and v[j] < form.lower[j]
            high[j] = free and v[j] > form.upper[j]
    return None


# %% [17] Exact arithmetic
def _optimum(form):
    """A solution (x, y), its error (0 if exact), the number of steps."""
    fixed = form.lower == form.upper
    part = form.among(~fixed, form.lower)
    (_, v), (rough, w), count = _interior_point(part)
    sides, x = _sides(part.lower, part.upper), form.lower.copy()
    x[~fixed], y = v.x / v.tau, v.y / v.tau
    face, doubt = np.zeros((2, len(x)))
    face[~fixed] = sides.gather(v.s < v.z)
    doubt[~fixed] = sides.total(np.minimum(v.s / v.z, 1.0))
    start = fixed | (face > 0), fixed | (face < 0)
    (x, y), error, *end = _polished(form, x, y, *start, fixed)
    for y0, faces in ((0 * y, start), (y, start), (y, end)):
        exact = _exact(form, x, y0, *faces, fixed, doubt)
        if exact is not None:
            return *exact, 0.0, count
    if rough < min(error, 1e-8):
        x, y, error = form.lower.copy(), w.y / w.tau, rough
        x[~fixed] = np.clip(w.x / w.tau, part.lower, part.upper)
    return x, y, error, count


# %% [18] Exact arithmetic
def _certificate(program, x, y, lam):
    """The multipliers of the bounds, and all residuals."""
    Px, r_p, r_c = (program.times(x), program.A @ x - program.b,
                    program.C @ x - program.c)
    r = Px + program.q + program.A.T @ y + program.C.T @ lam
    at_lower = np.where(np.isfinite(program.lower), np.maximum(r, 0), 0.0)
    at_upper = np.where(np.isfinite(program.upper), np.maximum(-r, 0), 0.0)
    r_d = r - at_lower + at_upper
    products = np.concatenate([
        at_lower * np.where(at_lower > 0, x - program.lower, 0.0),
        at_upper * np.where(at_upper > 0, program.upper - x, 0.0),
        -lam * r_c])
    return dict(x=x, y=y, lam=lam, at_lower=at_lower, at_upper=at_upper,
                objective=x @ Px / 2 + program.q @ x,
                gap=products.sum() + r_d @ x - r_p @ y, left=r_d,
                complementarity=_top(products))


# %% [19] Proofs that there is no solution
def _nearest(program):
    """The point within the bounds that is closest to obeying the rows,
    and by how much it fails."""
    n = len(program.q)
    form = _form(program, np.zeros(n), np.zeros(n))
    x, y, _, _ = _optimum(_with_columns(
        form, -np.eye(len(form.b)), 1.0, -np.inf))
    return x[:n], y


def _descent(program):
    """The projection of -q on the directions that no constraint ends."""
    n = len(program.q)
    flat = program.F.T if program.P is None else program.P
    cone = program._replace(
        A=np.vstack([program.A, flat]),
        b=np.zeros(len(program.b) + len(flat)), c=0 * program.c,
        lower=np.where(np.isfinite(program.lower), 0.0, -np.inf),
        upper=np.where(np.isfinite(program.upper), 0.0, np.inf))
    return _optimum(_form(cone, np.ones(n),
                          program.q / (_top(program.q) or 1.0)))[0][:n]


# %% [20] Proofs that there is no solution
_TOLERANCES = 1e-13, 1e-10, 1e-7, 1e-4


def _near(M, v, tol):
    """w near v with Mw = 0 exactly, zero where v is nearly zero."""
    v = np.round(v / (_top(v) or 1.0) * 2.0**40) / 2.0**40
    held = np.abs(v) > tol
    return _exactly_on(held, M, [Fraction(0)] * len(M),
                       _fractions(np.where(held, v, 0.0)), np.abs(v))


def _farkas(program, y, tol):
    """An exact proof near y that no point is feasible, or None."""
    p, rows = len(program.b), np.vstack([program.A, program.C])
    r, size = rows.T @ y, tol * (np.abs(rows.T) @ np.abs(y))
    zero = ~((np.isfinite(program.lower) | (r < -size))
             & (np.isfinite(program.upper) | (r > size)))
    y = _near(rows[:, zero].T, y, tol)
    if y is None or min(y[p:], default=0) < 0:
        return None
    r = [_dot(column, y) for column in rows.T]
    edges = [lower if t > 0 else upper if t < 0 else 0.0 for t, lower, upper
             in zip(r, program.lower, program.upper)]
    if not np.isfinite(edges).all():
        return None
    margin = _dot(edges, r) - _dot(
        np.concatenate([program.b, program.c]), y)
    if margin <= 0:
        return None
    y, r = np.array(y, dtype=float), np.array(r, dtype=float)
    return dict(status="infeasible", y=y[:p], lam=y[p:],
                margin=float(margin),
                at_lower=np.maximum(r, 0.0), at_upper=np.maximum(-r, 0.0),
                left=rows.T @ y - r)


# %% [21] Proofs that there is no solution
def _ray(program, d, tol):
    """An exact direction of unlimited descent near d, or None."""
    below, above = np.isfinite(program.lower), np.isfinite(program.upper)
    d = np.where((below & (d < 0)) | (above & (d > 0)), 0.0, d)
    flat = program.F.T if program.P is None else program.P
    tight = program.C @ d > -tol * (np.abs(program.C) @ np.abs(d))
    d = _near(np.vstack([flat, program.A, program.C[tight]]), d, tol)
    if d is None:
        return None
    slope = _dot(program.q, d)
    if slope >= 0 or any(_dot(row, d) > 0 for row in program.C) or any(
            t < 0 and lower or t > 0 and upper
            for t, lower, upper in zip(d, below, above)):
        return None
    d = np.array(d, dtype=float)
    return dict(status="unbounded", direction=d, margin=float(-slope),
                left=program.times(d))


def _feasible(program, x, tol):
    """A point near x that is exactly feasible, as floats, or None."""
    lower, upper = program.lower, program.upper
    x = np.clip(x, lower, upper)
    room = np.minimum(x - lower, upper - x)
    inner = room > tol * (1 + np.abs(x))
    x = np.where(inner, x, np.where(x - lower < upper - x, lower, upper))
    tight = program.C @ x - program.c > -tol * (
        np.abs(program.C) @ np.abs(x) + np.abs(program.c))
    x = _exactly_on(inner, np.vstack([program.A, program.C[tight]]),
                    _fractions(np.concatenate([program.b,
                                               program.c[tight]])),
                    _fractions(x), room)
    if x is None or any(t < a or t > b for t, a, b in zip(x, lower, upper)
                        ) or any(_dot(row, x) > Fraction(float(c))
                                 for row, c in zip(program.C, program.c)):
        return None
    return np.array(x, dtype=float)


# %% [22] The order of the work
def _first(search, *arguments):
    """The first success, from strict to generous ideas of zero."""
    found = (search(*arguments, tol) for tol in _TOLERANCES)
    return next((one for one in found if one is not None), None)


def _hidden(program, x, found):
    """Can the rounding errors of Px hide that q'x < 0 is a descent?"""
    sizes = program._replace(**{name: np.abs(getattr(program, name))
                                for name in "PF" if getattr(
                                    program, name) is not None})
    terms = (np.abs(program.q) + np.abs(program.A.T) @ np.abs(found["y"])
             + np.abs(program.C.T) @ found["lam"])
    return program.q @ x < 0 and 8 * len(x) * _EPS * _top(
        sizes.times(np.abs(x))) > 0.01 * _top(terms)


def _semidefinite(P):
    """Is P positive semidefinite, as the floats describe it?"""
    rows = [] if P is None else [_fractions(row) for row in P]
    while rows:
        (d, *first), *rest = rows
        if d < 0 or (not d and any(first)):
            return False
        rows = [[a - row[0] * b / d if d else a
                 for a, b in zip(row[1:], first)] for row in rest]
    return True


# %% [23] The order of the work
def _solve(program):
    """Status, point and certificate of a programme in good units."""
    n, p, m = len(program.q), len(program.b), len(program.c)
    if (program.lower > program.upper).any():
        return _crossed(program)
    form = _standard(program)
    x, y, error, count = _optimum(form)
    slack, lam = x[n:n + m], y[p:p + m]
    lam = np.where(lam < 1e-10 * slack, 0.0, np.maximum(lam, 0.0))
    found = dict(_certificate(program, x[:n], y[:p], lam),
                 iterations=count)
    good = error < 1e-7 and (not _hidden(program, x[:n], found)
                             or not error and _semidefinite(program.P))
    if good and (not error or len(form.q) + len(form.b) > _SMALL):
        return dict(found, status="optimal")
    point, excess = _nearest(program)
    proof = _first(_farkas, program, excess)
    if proof:
        return dict(proof, x=np.clip(point, program.lower, program.upper))
    proof = _first(_ray, program, _descent(program))
    if proof:
        exact = _first(_feasible, program, point)
        if exact is not None:
            return dict(proof, x=exact)
        return dict(found, status="not decided", reason=(
            "the objective falls for ever along some direction, but no "
            "point is known to be feasible exactly"))
    if good and _misfit(form, form.sizes(), x, y, x == form.lower,
                        x == form.upper, 0.0) < 4 * _EPS:
        return dict(found, status="optimal")
    return dict(found, status="not decided", reason=(
        f"the relative error of the best point is {error:.0e}, and no "
        "proof that there is no solution holds exactly"))


def _crossed(program):
    i = np.argmax(program.lower - program.upper)
    e = np.zeros(len(program.q))
    e[i] = 1.0
    return dict(status="infeasible", at_lower=e, at_upper=e,
                x=np.clip(0.0, program.upper, program.lower),
                margin=program.lower[i] - program.upper[i])


# %% [24] Fine print
@dataclass(frozen=True, eq=False)
class QPSolution:
    """Answer to a quadratic programme (:prf:ref:`thm-qp-trichotomy`).

    The arrays are read-only. Write d for `direction`, and y, λ, z, w for
    `equality`, `inequality`, `at_lower` and `at_upper`. The status says
    what they prove:

    * "optimal": x solves the programme, with the multipliers y, λ, z, w:
      exactly, up to the last rounding, if the programme is small; else up
      to 1e-7 of the terms of each condition.
    * "infeasible": no x is feasible, since A'y + C'λ - z + w = 0 and yet
      lower'z - upper'w - b'y - c'λ = margin > 0. Then x is the point
      within the bounds that is closest to obeying the other constraints.
    * "unbounded": x is feasible, and the objective falls for ever along
      d, since Pd = 0, Ad = 0, Cd <= 0, d never meets a bound, and
      q'd = -margin < 0. Then y, λ, z, w are zero.
    * "not decided": x is the best point that was met, and proves nothing.

    "infeasible" and "unbounded" have been checked in exact arithmetic:
    the arrays are the fractions of a proof, rounded.

    Attributes
    ----------
    status : str
        "optimal", "infeasible", "unbounded" or "not decided".
    x : (n,) array
        The solution, or a point as said above.
    equality : (p,) array
        Multipliers of Ax = b.
    at_lower : (n,) array
        Multipliers of the lower bounds, not negative.
    at_upper : (n,) array
        Multipliers of the upper bounds, not negative.
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
    direction : (n,) array or None
        The direction d of an unbounded programme.
    margin : float
        The number that proves that there is no solution, or 0.
    inequality : (m,) array
        Multipliers of Cx <= c, not negative.
    reason : str
        Why nothing was decided, or "".
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


# %% [25] Fine print
def _quadratic(P):
    P = check.real_array(P, "P")
    n = len(P) if P.ndim else 0
    if P.shape != (n, n):
        raise ValueError(f"P must be square, got shape {P.shape}")
    largest = np.abs(P).max()
    with np.errstate(over="ignore"):
        gap = np.abs(P - P.T)
    if gap.max() > max(n, 10) * _EPS * largest:
        i, j = np.unravel_index(gap.argmax(), P.shape)
        raise ValueError(f"P must be symmetric, but P[{i}, {j}] = "
                         f"{P[i, j]:.6g}, P[{j}, {i}] = {P[j, i]:.6g}")
    P = P / 2 + P.T / 2
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


def _bound(values, n, name, missing):
    if values is None:
        return np.full(n, missing)
    bound = check.plain_array(values, name)
    if bound.dtype.kind not in "biuf" or bound.shape not in ((), (n,)):
        raise ValueError(f"{name} must be a real number or an array of "
                         f"{n} real numbers, one for each variable")
    if np.isnan(bound).any() or (bound == -missing).any():
        raise ValueError(f"{name} must hold numbers or {missing}, but "
                         f"not {-missing} or nan")
    return np.array(np.broadcast_to(bound, n), dtype=float)


# %% [26] Fine print
def _rows(A, b, n, names):
    """The two sides of equations or inequalities."""
    if (A is None) != (b is None):
        missing, given = names if A is None else names[::-1]
        raise ValueError(f"{missing} must be given together with {given}")
    if A is None:
        return np.zeros((0, n)), np.zeros(0)
    A = np.atleast_2d(check.real_array(A, names[0]))
    if A.ndim != 2 or A.shape[1] != n:
        raise ValueError(f"{names[0]} must have shape (p, {n}) to go with "
                         f"q, got shape {A.shape}")
    b = np.atleast_1d(check.real_array(b, names[1]))
    if b.shape != (len(A),):
        raise ValueError(
            f"{names[1]} must have shape ({len(A)},), one number for each "
            f"row of {names[0]}, got shape {b.shape}")
    return A, b


def _checked(P, q, A, b, C, c, lower, upper, factor):
    q = check.real_array(q, "q")
    if q.ndim != 1:
        raise ValueError(f"q must have shape (n,), got shape {q.shape}")
    n = len(q)
    if (P is None) == (factor is None):
        raise ValueError("P must be a matrix, or None together with a "
                         "factor F with P = FF'")
    if factor is None:
        P = _quadratic(P)
        if len(P) != n:
            raise ValueError(f"P must have shape ({n}, {n}) to go with q, "
                             f"got shape {P.shape}")
    else:
        factor = check.real_array(factor, "factor")
        if factor.ndim != 2 or len(factor) != n:
            raise ValueError(f"factor must have shape ({n}, r) to go with "
                             f"q, got shape {factor.shape}")
    return _Program(P, factor, q, *_rows(A, b, n, "Ab"),
                    *_rows(C, c, n, "Cc"),
                    _bound(lower, n, "lower", -np.inf),
                    _bound(upper, n, "upper", np.inf))


# %% [27] Fine print
class _Units(NamedTuple):
    """Powers of two: variables, objective, rows of A and of C."""

    x: np.ndarray
    objective: int
    A: np.ndarray
    C: np.ndarray


def _finite(v, otherwise=0.0):
    return np.where(np.isfinite(v), v, otherwise)


def _balanced(h, G):
    """Exponents of variables and rows that bring the entries near one."""
    h = h - _finite(h.max())
    x, r = np.zeros(len(h)), -_finite(G.max(axis=1, initial=-np.inf))
    for _ in range(20):
        top = (G + r[:, None]).max(axis=0, initial=-np.inf) + x
        x = x - _finite(np.maximum(h + x, top / 2))
        r = r - _finite((G + x).max(axis=1, initial=-np.inf) + r) / 2
    return np.round(x).astype(int), np.round(r).astype(int)


def _units(program):
    def size(v):
        return np.log2(np.abs(v))

    h = (size(program.F).max(axis=1) if program.P is None
         else size(program.P.diagonal()) / 2)
    x, r = _balanced(h, size(np.vstack([program.A, program.C])))
    e_P, e_q = 2 * (h + x).max(), (size(program.q) + x).max()
    bounds = np.concatenate([program.lower, program.upper])
    near = np.maximum(np.maximum(program.lower, -program.upper), 0.0)
    right = np.concatenate([program.b, program.c])
    least = max((size(near) - x).max(), (size(right) + r).max(
        initial=-np.inf))
    far = (size(bounds) - np.tile(x, 2))[np.isfinite(bounds)
                                         & (bounds != 0)]
    typical = min(_finite(e_q - e_P, np.inf),
                  np.median(far) if len(far) else np.inf)
    s = int(_finite(max(least, _finite(typical, -np.inf))))
    t = int(_finite(max(e_P + 2 * s, e_q + s)))
    p = len(program.b)
    return _Units(x + s, t + t % 2, r[:p] - s, r[p:] - s)


# %% [28] Fine print
def _reachable(bound):
    """Bounds that are astronomically far away count as infinite."""
    return np.where(np.abs(bound) < 1e60, bound, np.copysign(np.inf, bound))


def _in_units(program, u):
    P, F = program.P, program.F
    return _Program(
        None if P is None else np.ldexp(
            P, u.x + u.x[:, None] - u.objective),
        None if F is None else np.ldexp(F, u.x[:, None] - u.objective // 2),
        np.ldexp(program.q, u.x - u.objective),
        np.ldexp(program.A, u.x + u.A[:, None]), np.ldexp(program.b, u.A),
        np.ldexp(program.C, u.x + u.C[:, None]), np.ldexp(program.c, u.C),
        _reachable(np.ldexp(program.lower, -u.x)),
        _reachable(np.ldexp(program.upper, -u.x)))


def _translated(found, u, sizes):
    """The vectors of the answer in the units of the caller."""
    powers = dict(y=u.A, lam=u.C, at_lower=-u.x, at_upper=-u.x, left=-u.x)
    k, top, d = u.objective, 1.0, found.get("direction")
    if found["status"] == "infeasible":     # a proof may have any length
        k = 1 - max(int((np.frexp(found[name])[1] + power)[
            found[name] != 0].max(initial=-9999))
            for name, power in powers.items() if name in found)
    if d is not None:
        g = int((np.frexp(d)[1] + u.x)[d != 0].max())
        d, k = np.ldexp(d, u.x - g), k - g
        d, top = d / _top(d), _top(d)
    return dict({name: np.ldexp(found.get(name, np.zeros(size)), k + powers[
        name]) / top for name, size in sizes.items()}, direction=d,
        scale=lambda value: float(np.ldexp(value, k) / top))


# %% [29] Fine print
def _answer(program, found, u):
    """The record."""
    n, status = len(u.x), found["status"]
    here = _translated(found, u, dict(
        y=len(u.A), lam=len(u.C), at_lower=n, at_upper=n, left=n))
    scale, x = here.pop("scale"), found["x"]
    worst = -np.inf if status == "unbounded" else np.inf
    answer = QPSolution(
        status=status, x=np.ldexp(x, u.x), equality=here["y"],
        at_lower=here["at_lower"], at_upper=here["at_upper"],
        objective=scale(found.get("objective", worst)),
        gap=scale(found.get("gap", np.inf)),
        stationarity=float(_top(here["left"])),
        primal_residual=float(_top(
            np.ldexp(program.A @ x - program.b, -u.A),
            np.ldexp(np.maximum(program.C @ x - program.c, 0.0), -u.C))),
        complementarity=scale(found.get("complementarity", 0.0)),
        iterations=found.get("iterations", 0),
        direction=here.pop("direction"),
        margin=scale(found.get("margin", 0.0)), inequality=here["lam"],
        reason=found.get("reason", ""))
    numbers = np.concatenate([answer.x, *here.values(), [answer.margin],
                              [answer.objective] * (status == "optimal")])
    if not np.isfinite(numbers).all():
        raise ValueError("q, b and the bounds must be of a size such that "
                         "the solution does not overflow")
    return answer


# %% [30] The solver
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
    A : (p, n) or (n,) array, optional
        Equations; the rows may be dependent.
    b : (p,) array or float, optional
        Right sides of the equations.
    lower : (n,) array or float, optional
        Lower bounds, by default minus infinity.
    upper : (n,) array or float, optional
        Upper bounds, by default infinity. Variables with equal bounds
        are fixed.
    C : (m, n) or (n,) array, optional
        Inequalities.
    c : (m,) array or float, optional
        Right sides of the inequalities.
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
    program = _checked(P, q, A, b, C, c, lower, upper, factor)
    with np.errstate(all="ignore"):
        units = _units(program)
        scaled = _in_units(program, units)
        found = _solve(scaled)
        if found["status"] == "unbounded" and not all(
                np.array_equal(np.isinf(old), np.isinf(new)) for old, new in
                ((program.lower, scaled.lower),
                 (program.upper, scaled.upper))):
            raise ValueError("lower and upper must be of the size of the "
                             "other numbers, or infinite")
        if found["status"] in ("infeasible", "unbounded"):
            back = _in_units(scaled, _Units(
                -units.x, -units.objective, -units.A, -units.C))
            if not all(map(np.array_equal, back[:-2], program[:-2])):
                raise ValueError("P, q, A, b, C and c must not span more "
                                 "orders of magnitude than a float has")
        return _answer(scaled, found, units)
