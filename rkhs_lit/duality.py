"""Duality: the price of a constraint

The exported cells of the chapter ``book/duality.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 7a11c0d3e9068b23

# %% [1] Duality: the price of a constraint
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, svd

import rkhs_lit.conventions as check


# %% [2] One Newton step
class _Program(NamedTuple):
    """Minimise x'Px/2 + q'x subject to Ax = b, lower <= x <= upper.

    P is a matrix, or a vector if it is diagonal, or None if it is FF'.
    """

    P: np.ndarray | None
    F: np.ndarray | None
    q: np.ndarray
    A: np.ndarray
    b: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def times(self, x):
        if self.P is None:
            return self.F @ (self.F.T @ x)
        return self.P * x if self.P.ndim == 1 else self.P @ x

    def among(self, keep, x):
        """The programme of the variables `keep`, the others fixed at x."""
        x = np.where(keep, 0.0, x)
        return _Program(
            None if self.P is None else self.P[np.ix_(keep, keep)],
            None if self.F is None else self.F[keep],
            (self.q + self.times(x))[keep], self.A[:, keep],
            self.b - self.A @ x, self.lower[keep], self.upper[keep])


# %% [3] One Newton step
class _Sides(NamedTuple):
    """The finite bounds: on x[index], sign +1 below and -1 above."""

    index: np.ndarray
    sign: np.ndarray
    edge: np.ndarray
    n: int

    def along(self, dx):
        return self.sign * dx[self.index]

    def gather(self, z):
        return np.bincount(self.index, self.sign * z, minlength=self.n)


def _sides(lower, upper):
    below, above = np.isfinite(lower), np.isfinite(upper)
    return _Sides(
        np.concatenate([np.flatnonzero(below), np.flatnonzero(above)]),
        np.repeat([1.0, -1.0], [below.sum(), above.sum()]),
        np.concatenate([lower[below], upper[above]]), len(lower))


# %% [4] One Newton step
_EPS = np.finfo(float).eps
_DELTA = 1e-12


def _factored(P, A, theta, free):
    """A function that solves with H = P + diag(theta) (+ A'A if free)."""
    n = len(theta)
    if P.ndim == 1:
        h = P + theta
        h = h + 4 * _EPS * (h + (h == 0))
        return lambda v: (v.T / h).T
    H = P + A.T @ A if free else P.copy()
    h = H.diagonal() + theta
    h, shift = h + (h == 0), n * _EPS
    while True:
        H.flat[::n + 1] = h * (1 + shift)
        try:
            factor = cho_factor(H, lower=True, check_finite=False)
            return lambda v: cho_solve(factor, v, check_finite=False)
        except LinAlgError:
            shift *= 10
            if not shift < 1:
                raise


# %% [5] One Newton step
def _newton(P, A, theta, free):
    """A function (f, g) -> (dx, dy) that solves the system of a step."""
    free = free and P.ndim == 2
    solve_H = _factored(P, A, theta, free)
    V = solve_H(A.T)
    S = A @ V
    S.flat[::len(S) + 1] += 4 * _EPS * len(theta) * S.diagonal() + _DELTA
    if not np.isfinite(S).all():
        raise LinAlgError
    factor = cho_factor(S) if len(S) else None

    def once(f, g):
        u = solve_H(f + A.T @ g if free else f)
        if factor is None:
            return u, g
        dy = cho_solve(factor, A @ u - g, check_finite=False)
        return u - V @ dy, dy

    def solve(f, g):
        dx, dy = once(f, g)
        for _ in range(2):
            Pdx = P * dx if P.ndim == 1 else P @ dx
            more = once(f - Pdx - theta * dx - A.T @ dy,
                        g - A @ dx + _DELTA * dy)
            dx, dy = dx + more[0], dy + more[1]
        return dx, dy
    return solve


# %% [6] Predictor and corrector
def _top(*arrays):
    return max(np.abs(v).max(initial=0.0) for v in arrays)


def _relative(program, x, Px, r_d, r_p, gap):
    """The largest of the three residuals, each against its own terms."""
    _, _, q, A, b, _, _ = program
    sizes = (_top(Px, q), _top(b, np.abs(A) @ np.abs(x)),
             max(abs(x @ Px), np.abs(q) @ np.abs(x)))
    return max(residual / max(size, 1e-3) for residual, size in
               zip((_top(r_d), _top(r_p), gap), sizes))


def _direction(sides, solve, point, r_d, r_p, c):
    """The Newton step towards s z = s z + c."""
    _, _, s, z = point
    dx, dy = solve(sides.gather(c / s) - r_d, -r_p)
    ds = sides.along(dx)
    return dx, dy, ds, (c - z * ds) / s


def _longest(point, step):
    """How far the step can go until a slack or multiplier is zero."""
    v, dv = np.concatenate(point[2:]), np.concatenate(step[2:])
    down = dv < 0
    return (v[down] / -dv[down]).min(initial=np.inf)


def _predict_and_correct(program, sides, point, r_d, r_p, cautious):
    _, _, s, z = point
    free = bool(np.isinf(np.minimum(-program.lower, program.upper)).any())
    theta = np.bincount(sides.index, z / s, minlength=sides.n)
    solve = _newton(program.P, program.A, theta, free)
    step = _direction(sides, solve, point, r_d, r_p, -s * z)
    if not len(s):
        return step, 1.0
    alpha = min(1.0, _longest(point, step))
    ds, dz = step[2:]
    sigma = ((s + alpha * ds) @ (z + alpha * dz) / (s @ z)) ** 3
    if cautious:
        sigma, dz = 0.5, 0.0
    c = sigma * (s @ z) / len(s) - s * z - ds * dz
    step = _direction(sides, solve, point, r_d, r_p, c)
    return step, min(1.0, 0.995 * _longest(point, step))


# %% [7] Predictor and corrector
def _interior_point(program, trace=None):
    """The best point (x, y, s, z) met, and the number of steps."""
    _, _, q, A, b, lower, upper = program
    sides = _sides(lower, upper)
    half = np.minimum(1.0, (upper - lower) / 2)
    x = np.clip(0.0, lower + half, upper - half)
    s = sides.sign * (x[sides.index] - sides.edge)
    point = x, np.zeros(len(b)), s, 1 / np.maximum(1e-8 * s, 1.0)
    best, least, mark, stalled = point, np.inf, np.inf, 0
    for count in range(150):
        x, y, s, z = point
        Px = program.times(x)
        r_d = Px + q + A.T @ y - sides.gather(z)
        r_p = A @ x - b
        merit = _relative(program, x, Px, r_d, r_p, s @ z)
        if trace is not None:
            trace.append((*point, merit))
        if not merit < np.inf:
            break
        stalled = 0 if merit < mark / 2 else stalled + 1
        mark = mark if stalled else merit
        if merit < least:
            best, least = point, merit
        if least < 1e-15 or stalled > (5 if least < 1e-9 else 25):
            break
        try:
            step, alpha = _predict_and_correct(
                program, sides, point, r_d, r_p,
                cautious=stalled > 5 and least > 1e-6)
        except LinAlgError:
            break
        point = tuple(v + alpha * dv for v, dv in zip(point, step))
    return best, count


# %% [8] A thin factor
def _with_factor(program):
    """The programme in (x, v) with v = F'x, whose quadratic is diagonal."""
    _, F, q, A, b, lower, upper = program
    n, r = F.shape
    none = np.full(r, np.inf)
    return _Program(
        np.repeat([0.0, 1.0], [n, r]), None,
        np.concatenate([q, np.zeros(r)]),
        np.block([[A, np.zeros((len(A), r))], [F.T, -np.eye(r)]]),
        np.concatenate([b, np.zeros(r)]),
        np.concatenate([lower, -none]), np.concatenate([upper, none]))


def _central(program):
    """Solution x, multipliers of all equations, number of steps."""
    n, F = len(program.q), program.F
    if F is not None and np.isinf(np.minimum(
            -program.lower, program.upper)).any():
        program = program._replace(P=F @ F.T, F=None)
    if program.P is None:
        program = _with_factor(program)
    (x, y, _, _), count = _interior_point(program)
    return x[:n], y, count


# %% [9] Certificates
def _bound_multipliers(r, lower, upper):
    """Split r into at_lower - at_upper as far as the bounds allow."""
    return (np.where(np.isfinite(lower), np.maximum(r, 0.0), 0.0),
            np.where(np.isfinite(upper), np.maximum(-r, 0.0), 0.0))


def _bound_sum(at_lower, at_upper, lower, upper):
    """lower'at_lower - upper'at_upper, where 0 times infinity is 0."""
    return (at_lower @ np.where(at_lower > 0, lower, 0.0)
            - at_upper @ np.where(at_upper > 0, upper, 0.0))


def _certificate(program, x, y):
    """The multipliers of x and y, their residuals, and the largest."""
    _, _, q, A, b, lower, upper = program
    Px, r_p = program.times(x), A @ x - b
    r = Px + q + A.T @ y
    at_lower, at_upper = _bound_multipliers(r, lower, upper)
    r_d = r - at_lower + at_upper
    products = np.concatenate([
        at_lower * np.where(at_lower > 0, x - lower, 0.0),
        at_upper * np.where(at_upper > 0, upper - x, 0.0)])
    size = products.sum() + abs(r_d @ x) + abs(r_p @ y)
    return dict(at_lower=at_lower, at_upper=at_upper,
                objective=x @ Px / 2 + q @ x,
                gap=products.sum() + r_d @ x - r_p @ y,
                stationarity=_top(r_d),
                complementarity=_top(products)), _relative(
                    program, x, Px, r_d, r_p, size)


# %% [10] Certificates
_SMALL = 1e-9


def _farkas(program, y):
    """A certificate that there is no feasible point, or None."""
    _, _, _, A, b, lower, upper = program
    y = y / (_top(y) or 1.0)
    r = A.T @ y
    at_lower, at_upper = _bound_multipliers(r, lower, upper)
    margin = _bound_sum(at_lower, at_upper, lower, upper) - b @ y
    size = np.abs(b) @ np.abs(y) + _bound_sum(
        at_lower, at_upper, np.abs(lower), -np.abs(upper))
    left = _top(r - at_lower + at_upper)
    rounding = 50 * _EPS * _top(np.abs(A.T) @ np.abs(y))
    if margin > _SMALL * size and left <= _SMALL * _top(r) + rounding:
        return dict(status="infeasible", y=y, at_lower=at_lower,
                    at_upper=at_upper, margin=margin, stationarity=left)
    return None


def _nearest(program):
    """The point of the box with the least norm of Ax - b, and Ax - b."""
    A, b = program.A, program.b
    x, v, _ = _interior_point(_with_factor(program._replace(
        F=A.T, q=-A.T @ b, A=A[:0], b=b[:0])))[0][:3]
    return x[:A.shape[1]], v - b


# %% [11] Certificates
def _recession(program):
    """A direction of unlimited descent, with its certificate, or None."""
    P, F, q, A, _, lower, upper = program
    below, above = np.isfinite(lower), np.isfinite(upper)
    m = ~(below & above)
    if not m.any():
        return None
    P = F @ F.T if P is None else P
    lam, v = eigh(P[np.ix_(m, m)] / (_top(P) or 1.0)
                  + A[:, m].T @ A[:, m])
    N = v[:, lam <= 1e-11 * max(lam.max(), 1.0)]
    N[np.abs(N) < 1e-12] = 0.0
    G, z = N @ N.T, np.zeros(m.sum())
    one = (below | above)[m]
    if one.any():
        z[one] = _interior_point(_Program(
            G[np.ix_(one, one)], None, -(G @ q[m])[one],
            np.zeros((0, one.sum())), np.zeros(0),
            np.where(above[m], -np.inf, 0.0)[one],
            np.where(below[m], np.inf, 0.0)[one]))[0][0]
    d = np.zeros(len(q))
    d[m] = G @ (z - q[m])
    d = np.clip(d / (_top(d) or 1.0), np.where(below, 0.0, -np.inf),
                np.where(above, 0.0, np.inf))
    left = _top(P @ d), _top(A @ d)
    if (left[0] <= _SMALL * _top(P) and left[1] <= _SMALL
            and q @ d < -_SMALL * np.abs(q) @ np.abs(d)):
        return dict(status="unbounded", direction=d, margin=-(q @ d),
                    stationarity=left[0])
    return None


# %% [12] The order of the work
def _row_basis(A, b, size):
    """W with orthonormal rows of W'A, and w with w'A = 0 > w'b if any."""
    p, n = A.shape
    if p == 0 or n == 0:
        wrong = (np.abs(b) > 1e-10 * size).any()
        return np.zeros((p, 0)), -b if wrong else None
    U, sigma, _ = svd(A, full_matrices=p > n)
    sigma = np.concatenate([sigma, np.zeros(U.shape[1] - len(sigma))])
    zero = sigma <= 1e-12 * max(p, n) * sigma.max()
    excess = U[:, zero].T @ b
    room = 1e-10 * np.abs(U[:, zero]).T @ size
    wrong = (np.abs(excess) > room).any()
    return (U[:, ~zero] / sigma[~zero],
            -U[:, zero] @ excess if wrong else None)


def _crossed(program):
    _, _, q, _, b, lower, upper = program
    i = np.argmax(lower - upper)
    e = np.zeros(len(q))
    e[i] = 1.0
    return dict(status="infeasible", x=np.clip(0.0, upper, lower),
                y=np.zeros(len(b)), at_lower=e, at_upper=e,
                margin=lower[i] - upper[i])


# %% [13] The order of the work
def _solve(program):
    """Status, point and certificate of a programme in good units."""
    _, _, q, A, b, lower, upper = program
    if (lower > upper).any():
        return _crossed(program)
    keep = lower < upper
    x = np.where(keep, 0.0, lower)
    rest = program.among(keep, x)
    W, w = _row_basis(rest.A, rest.b,
                      np.abs(b) + np.abs(A) @ np.abs(x))
    proof = None if w is None else _farkas(program, w)
    if proof:
        x[keep] = np.clip(0.0, rest.lower, rest.upper)
        return dict(x=x, **proof)
    rest = rest._replace(A=W.T @ rest.A, b=W.T @ rest.b)
    y, count = np.zeros(len(b)), 0
    if keep.any():
        x_rest, y_rest, count = _central(rest)
        x[keep] = np.clip(x_rest, rest.lower, rest.upper)
        y = W @ y_rest[:len(rest.b)]
    found, error = _certificate(program, x, y)
    # Where rounding of Px could hide a slope, look for a direction first.
    noise = _EPS * _top(program._replace(
        P=None if program.P is None else np.abs(program.P),
        F=None if program.F is None else np.abs(program.F),
    ).times(np.abs(x)))
    if error < 1e-8 and (noise < 1e-8 * max(_top(q), 1e-3)
                         or _recession(rest) is None):
        return dict(status="optimal", x=x, y=y, iterations=count, **found)
    if program.F is not None:
        return _solve(program._replace(P=program.F @ program.F.T, F=None))
    return _no_solution(program, rest, keep, x, W, error)


# %% [14] The order of the work
def _no_solution(program, rest, keep, x, W, error):
    nearest, excess = _nearest(rest)
    x[keep] = np.clip(nearest, rest.lower, rest.upper)
    proof = _farkas(program, W @ excess)
    if proof:
        return dict(x=x, **proof)
    proof = _recession(rest)
    if proof:
        shortest = _interior_point(rest._replace(
            P=np.ones(len(rest.q)), F=None, q=0 * rest.q))[0][0]
        x[keep] = np.clip(shortest, rest.lower, rest.upper)
        direction = np.zeros(len(x))
        direction[keep] = proof.pop("direction")
        return dict(x=x, direction=direction, **proof)
    raise RuntimeError(
        "solve_qp found neither a solution nor a certificate that there "
        f"is none; the relative KKT residual is {error:.1e}")


# %% [15] The order of the work
@dataclass(frozen=True, eq=False)
class QPSolution:
    """Answer to a quadratic programme (:prf:ref:`thm-qp-trichotomy`).

    The arrays are read-only. Write d for `direction`, and y, z, w for
    `equality`, `at_lower` and `at_upper`. The status says what they prove:

    * "optimal": x solves the programme, with the multipliers y, z, w.
    * "infeasible": no x is feasible, since A'y - z + w = 0 and yet
      lower'z - upper'w - b'y = margin > 0. Then x is some point within
      the bounds, if there is one.
    * "unbounded": x is feasible, and the objective falls for ever along
      d, since Pd = 0, Ad = 0, d never meets a bound, and
      q'd = -margin < 0. Then y, z, w are zero.

    Attributes
    ----------
    status : str
        "optimal", "infeasible" or "unbounded".
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
        Largest entry of Px + q + A'y - z + w; of A'y - z + w if the
        programme is infeasible; of Pd if it is unbounded.
    primal_residual : float
        Largest entry of Ax - b. The bounds hold exactly.
    complementarity : float
        Largest product of a multiplier and its slack.
    iterations : int
        Steps of the interior-point method.
    direction : (n,) array or None
        The direction d of an unbounded programme.
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

    def __post_init__(self):
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


# %% [16] The order of the work
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


# %% [17] The order of the work
def _checked(P, q, A, b, lower, upper, factor):
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
    if A is None:
        if b is not None:
            raise ValueError("A must be given together with b")
        A, b = np.zeros((0, n)), np.zeros(0)
    else:
        A = np.atleast_2d(check.real_array(A, "A"))
        if A.ndim != 2 or A.shape[1] != n:
            raise ValueError(f"A must have shape (p, {n}) to go with q, "
                             f"got shape {A.shape}")
        if b is None:
            raise ValueError("b must be given together with A")
        b = np.atleast_1d(check.real_array(b, "b"))
        if b.shape != (len(A),):
            raise ValueError(f"b must have shape ({len(A)},), one number "
                             f"for each row of A, got shape {b.shape}")
    return _Program(P, factor, q, A, b, _bound(lower, n, "lower", -np.inf),
                    _bound(upper, n, "upper", np.inf))


# %% [18] The order of the work
def _exponent(values):
    return int(np.frexp(np.abs(values).max(initial=0.0))[1])


def _units(program):
    """Exponents s, t, r: x in 2^s, the objective in 2^t, rows in 2^r."""
    P, F, q, A, b, lower, upper = program
    r = np.frexp(np.abs(A).max(axis=1, initial=0.0))[1]
    curved = bool((F if P is None else P).any())
    e_P = _exponent(P) if F is None else 2 * _exponent(F)
    e_q = _exponent(q)
    bounds = np.concatenate([lower, upper])
    bounds = np.sort(np.abs(bounds[np.isfinite(bounds) & (bounds != 0)]))
    typical, least = [], []
    if curved and q.any():
        typical.append(e_q - e_P)
    if len(bounds):
        typical.append(_exponent(bounds[(len(bounds) - 1) // 2]))
    near = np.maximum(np.maximum(lower, -upper), 0.0)
    if near.any():
        least.append(_exponent(near))
    if b.any():
        least.append(int((np.frexp(b)[1] - r)[b != 0].max()))
    s = max(least + ([min(typical)] if typical else []), default=0)
    t = max([e_P + 2 * s] * curved + [e_q + s] * bool(q.any()),
            default=0)
    return s, t + t % 2, r


def _reachable(bound):
    """Bounds that are astronomically far away count as infinite."""
    return np.where(np.abs(bound) < 1e60, bound, np.copysign(np.inf, bound))


def _in_units(program, s, t, r):
    P, F, q, A, b, lower, upper = program
    return _Program(
        None if P is None else np.ldexp(P, 2 * s - t),
        None if F is None else np.ldexp(F, s - t // 2),
        np.ldexp(q, s - t), np.ldexp(A, -r[:, None]),
        np.ldexp(b, -r - s), _reachable(np.ldexp(lower, -s)),
        _reachable(np.ldexp(upper, -s)))


# %% [19] The order of the work
def _answer(program, found, s, t, r):
    """The record, in the units of the caller."""
    n, p = len(program.q), len(program.b)
    optimal = found["status"] == "optimal"
    k = t - s if optimal else 0
    residual = program.A @ found["x"] - program.b
    worst = {"optimal": np.inf, "infeasible": np.inf,
             "unbounded": -np.inf}[found["status"]]
    answer = QPSolution(
        status=found["status"], x=np.ldexp(found["x"], s),
        equality=np.ldexp(found.get("y", np.zeros(p)), k - r),
        at_lower=np.ldexp(found.get("at_lower", np.zeros(n)), k),
        at_upper=np.ldexp(found.get("at_upper", np.zeros(n)), k),
        objective=float(np.ldexp(found.get("objective", worst), t)),
        gap=float(np.ldexp(found.get("gap", np.inf), t)),
        stationarity=float(np.ldexp(
            found.get("stationarity", 0.0),
            t - 2 * s if "direction" in found else k)),
        primal_residual=float(_top(np.ldexp(residual, r + s))),
        complementarity=float(np.ldexp(
            found.get("complementarity", 0.0), t)),
        iterations=found.get("iterations", 0),
        direction=found.get("direction"),
        margin=float(np.ldexp(found.get("margin", 0.0),
                              t - s if "direction" in found else s)))
    numbers = np.concatenate([answer.x, answer.equality, answer.at_lower,
                              answer.at_upper, [answer.margin],
                              [answer.objective] * optimal])
    if not np.isfinite(numbers).all():
        raise ValueError("q, b and the bounds must be of a size such that "
                         "the solution does not overflow")
    return answer


# %% [20] The order of the work
def solve_qp(P, q, A=None, b=None, lower=None, upper=None, *,
             factor=None) -> QPSolution:
    """Solve a convex quadratic programme (:prf:ref:`thm-qp-trichotomy`).

    Minimise x'Px/2 + q'x subject to Ax = b and lower <= x <= upper, by a
    predictor-corrector interior-point method (:prf:ref:`alg-qp`).

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
    factor : (n, r) array, optional
        F with P = FF', in place of P. If every variable has a bound, a
        step then costs of the order of n r² instead of n³ operations.

    Returns
    -------
    QPSolution
        With ``status`` "optimal", "infeasible" or "unbounded", and a
        certificate in each case. If none can be found, as for a programme
        that is feasible only within rounding, a RuntimeError says so.

    Examples
    --------
    The point of the line x + y = 1 that is closest to (0, 3), with x, y
    at least 0:

    >>> found = solve_qp([[1, 0], [0, 1]], [0, -3], [1, 1], 1, lower=0)
    >>> print(found.status, found.x.round(6), found.equality.round(6))
    optimal [0. 1.] [2.]
    """
    program = _checked(P, q, A, b, lower, upper, factor)
    s, t, r = _units(program)
    with np.errstate(all="ignore"):
        scaled = _in_units(program, s, t, r)
        found = _solve(scaled)
        if found["status"] == "unbounded" and not all(
                np.array_equal(np.isinf(old), np.isinf(new))
                for old, new in zip(program[-2:], scaled[-2:])):
            raise ValueError("lower and upper must be of the size of the "
                             "other numbers, or infinite")
        return _answer(scaled, found, s, t, r)
