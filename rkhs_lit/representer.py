"""The representer theorem: a search in infinite dimension that ends in n numbers"""
# The exported cells of book/representer.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: b5d5d923bad15145

# %% [1] The representer theorem: a search in infinite dimension that ends in n numbers
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_solve
from scipy.special import xlog1py, xlogy

import rkhs_lit.conventions as check
from rkhs_lit.kernels import Kernel
from rkhs_lit.moore_aronszajn import (Features, RKHSFunction, as_function,
                                      inner, norm)

# %% [2] An offset that is not penalised
@dataclass(frozen=True)
class Shifted(check.Record):
    """The function f + b, for f in an RKHS and a number b that costs
    nothing (:prf:ref:`thm-representer-offset`)."""

    function: RKHSFunction
    b: float

    def __post_init__(self):
        as_function(self.function, "function")
        vars(self).update(b=check.number(self.b, "b"))

    def __call__(self, T) -> np.ndarray:
        """The values f(t) + b at the points T."""
        return self.function(T) + self.b

# %% [3] Seven losses
_SHAPES = {
    "squared": lambda _: (-np.inf, np.inf, 0.5),
    "absolute": lambda _: (-1.0, 1.0, 0.0),
    "huber": lambda delta: (-2 * delta, 2 * delta, 0.5),
    "quantile": lambda tau: (tau - 1, tau, 0.0),
    "hinge": lambda _: (0.0, 1.0, 0.0),
    "squared_hinge": lambda _: (0.0, np.inf, 0.5),
    "logistic": lambda _: (0.0, 1.0, 0.0)}
_ON_LABELS = ("hinge", "squared_hinge", "logistic")
_PARAMETERS = {"huber": (1.0, check.positive),
               "quantile": (0.5, check.tolerance)}


def _as_loss(loss):
    return loss if isinstance(loss, Loss) else Loss(
        check.choice(loss, "loss", _SHAPES))


@dataclass(frozen=True)
class Loss(check.Record):
    """A convex loss ℓ(y, z) of the prediction z (:prf:ref:`def-losses`):
    "squared", "absolute", "huber" or "quantile" for any numbers y, "hinge",
    "squared_hinge" or "logistic" for labels y = -1 and +1. The parameter
    is the δ of "huber" (1 by default) or the τ of "quantile" (1/2).

    >>> Loss("quantile", 0.9)([1.0, 1.0], [0.0, 2.0]).round(6)
    array([0.9, 0.1])
    """

    name: str
    parameter: float | None = None

    def __post_init__(self):
        check.choice(self.name, "name", _SHAPES)
        usual, within = _PARAMETERS.get(self.name, (None, None))
        value = usual if self.parameter is None else self.parameter
        if within:
            value = within(value, "parameter")
        elif value is not None:
            check.number(value, "parameter", f"None for {self.name}", 1, 0)
        vars(self).update(parameter=value, _shape=_SHAPES[self.name](value))

    def __call__(self, y, z) -> np.ndarray:
        """The losses of the predictions z, one for each y."""
        a, c = self._terms(y)
        return check.finite(self._phi(
            a - c * check.vector(z, "z", len(a))), "y or z")

    def _terms(self, y, n=None):
        """The a and c of the shortfalls s = a - c f(x)."""
        y = check.vector(y, "y", n)
        if self.name not in _ON_LABELS:
            return y, np.ones(len(y))
        if not (np.abs(y) == 1).all():
            raise ValueError(f"y must be -1 or +1 for the {self.name} "
                             f"loss, got {y[np.abs(y) != 1][0]:g}")
        return np.ones(len(y)), y

    def _slope(self, s):
        """The γ of the maximum, for a loss that is not the logistic."""
        lower, upper, q = self._shape
        return np.clip(s / q, lower, upper) if q else np.where(
            s > 0, upper, lower)

    def _phi(self, s):
        if self.name == "logistic":
            return np.logaddexp(0, s - 1)
        with np.errstate(over="ignore"):
            gamma, q = self._slope(s), self._shape[2]
            return gamma * (s - q / 2 * gamma)

# %% [4] Seven losses
def regularised_risk(f: RKHSFunction, X, y, loss: Loss | str,
                     lam: float) -> float:
    """The risk Σ ℓ(y_i, f(x_i)) + λ‖f‖² of a function, for n points X of
    any kind, n numbers y, or labels -1 and +1, a `Loss` or its name, and
    λ > 0 (:prf:ref:`def-losses`). The losses are summed, not averaged."""
    Phi, loss = Features(as_function(f).kernel, X), _as_loss(loss)
    y, lam = check.vector(y, "y", Phi.n), check.positive(lam, "lam")
    losses, square = loss(y, Phi.sample(f)), max(inner(f, f), 0.0)
    return float(check.finite(losses.sum() + lam * square, "y or f"))

# %% [5] What the gap says about predictions
def _fenchel_young(loss, s, gamma):
    """FY(s, γ) as a sum of terms that are not negative."""
    if loss.name == "logistic":
        bits = (xlogy(gamma, gamma) + gamma * np.logaddexp(0, 1 - s)
                + xlog1py(1 - gamma, -gamma)
                + (1 - gamma) * np.logaddexp(0, s - 1))
        return np.maximum(bits, 0.0)
    best, q = loss._slope(s), loss._shape[2]
    missing = best - gamma
    return (np.maximum(missing * (s - q * best), 0.0) + q / 2 * missing**2)

# %% [6] Newton's method along the path
def _newton(Q, s, loss, sign, gamma, b, Z, W, c):
    """Steps 2 and 3 of the algorithm: new γ, b, Z and W; c'γ = 0."""
    curvature = loss._shape[2]
    slope = curvature * gamma
    if loss.name == "logistic":
        slope, curvature = 1 + np.log(Z[0] / Z[1]), 1 / Z[0] + 1 / Z[1]
    solve = _solver(Q, curvature + np.sum(W / Z, axis=0), c)
    rest = s - slope + np.sum(sign * W, axis=0)

    def step(target):
        d, db = solve(rest + np.sum(sign * target / Z, axis=0), c @ gamma)
        dZ = sign * d
        dW = (target - W * dZ) / Z
        fall = np.max([-dZ / Z, -dW / W], initial=0.99)
        return d, db, dZ, dW, 0.99 / fall        # Z and W stay positive

    d, db, dZ, dW, t = step(-W * Z)
    if len(W):
        mu, ahead = np.mean(W * Z), np.mean((W + t * dW) * (Z + t * dZ))
        d, db, dZ, dW, t = step((ahead / mu) ** 3 * mu - W * Z - dZ * dW)
    return gamma + t * d, b + t * db, Z + t * dZ, W + t * dW

# %% [7] Newton's method along the path
def _follow_path(Q, a, c, loss, tol, offset):
    """γ and b with a gap of at most tol times the risk, or the best."""
    lower, upper, q = loss._shape
    gamma = np.full(len(a), (max(lower, -1.0) + min(upper, 1.0)) / 2)
    if offset:
        gamma = (1 - c * c.mean()) / 2                        # c'γ = 0
    ends = np.array([(1.0, lower), (-1.0, upper)])
    sign, end = ends[np.isfinite(ends[:, 1])].T[..., None]
    Z = sign * (gamma - end)
    W, border, b = 1 / np.maximum(Z, 0.5), offset * c, 0.0

    def judged(gamma, b):
        Qg = Q @ gamma
        s = a - Qg - b * c
        return (s, np.sum(_fenchel_young(loss, s, gamma))
                + (1 + abs(b)) * abs(border @ gamma),
                np.sum(loss._phi(s)) + gamma @ Qg / 2)

    best, least, last = (gamma, b), np.inf, 0
    for now in range(200):
        s, gap, risk = judged(gamma, b)
        if gap < least:
            best, least, last = (gamma, b), gap, now
        if gap <= tol * risk / 2 or now > last + 20 or not gap < np.inf:
            break
        gamma, b, Z, W = _newton(Q, s, loss, sign, gamma, b, Z, W, border)
    free, guess, b = ~(Z < W).any(axis=0), best[0].copy(), best[1]
    for here, place in zip(Z < W, end):
        guess[here] = place
    if free.any() and loss.name != "logistic":
        solve = _solver(Q[np.ix_(free, free)], np.full(free.sum(), q),
                        border[free])
        d, db = solve((a - Q @ guess - q * guess - b * c)[free],
                      border @ guess)
        guess[free] += d
        guess, b = np.clip(guess, lower, upper), b + db
    return (guess, b) if judged(guess, b)[1] < least else best

# %% [8] Fine print
def _in_units(loss, y, n, lam, offset=False):
    """The problem of (f + b - level) / size: its loss, a, c and λ; size;
    the unit of the slopes γ, which times size is the risk's; level."""
    loss, lam = _as_loss(loss), check.positive(lam, "lam")
    a, c = loss._terms(y, n)
    on_labels, level = loss.name in _ON_LABELS, 0.0
    if offset and not on_labels:
        level = a.max() / 2 + a.min() / 2       # all zero if y is constant
    elif offset and abs(c.sum()) == n:
        raise ValueError("y must have both labels where there is an offset")
    size = float(np.abs(a - level).max()) or 1.0
    if loss.name == "huber":
        loss = Loss("huber", loss.parameter / size)
    slope = size if loss.name in ("squared", "huber") else 1.0
    check.positive(slope / lam, "y / lam")           # the size of weights
    lam = check.positive(lam * (size / slope), "lam times y")
    return loss, (a - level) / size, c, lam, size, slope, level


def _certificate(f, loss, a, c, lam):
    """The gap and the risk of f, with an allowance for rounding."""
    Phi, alpha = f.features, f.weights
    values, reach = Phi.sample(f), np.sqrt(Phi.diag())
    error = np.finfo(float).eps * reach * (reach @ np.abs(alpha))
    s = a - c * values
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = check.finite(2 * lam * c * alpha, "lam")
        gamma = np.clip(slopes, *loss._shape[:2])
        excess = norm(Phi @ (alpha - c * gamma / (2 * lam)))
        gap = lam * excess**2 + np.sum(np.maximum(
            _fenchel_young(loss, s - error, gamma),
            _fenchel_young(loss, s + error, gamma)))
        risk = np.sum(loss._phi(s)) + lam * (alpha @ values)
    return float(gap), float(risk)

# %% [9] Fine print
def _solver(Q, H, c):
    """The map of r, m to Δ, δ with (Q + H) Δ + δ c = r and c'Δ = -m, for a
    diagonal H >= 0, raised to the rounding errors of Q; if c = 0, δ = 0."""
    rounding = 4 * len(H) * np.finfo(float).eps * Q.diagonal().max()
    h = np.sqrt(np.maximum(H, max(rounding, check.TINY)))
    try:
        L = np.linalg.cholesky(Q / h[:, None] / h + np.eye(len(h)))
    except LinAlgError:
        return lambda r, m: (0 * r, 0.0)

    def solve(r, m):
        d, u = cho_solve((L, True), (np.array([r, c]) / h).T,
                         check_finite=False).T / h
        delta = (c @ d + m) / (c @ u or 1.0)
        return d - delta * u, delta

    return solve


def _dual_matrix(Phi, c, lam):
    """Q, of a Gram matrix without negative eigenvalues."""
    K, d = Phi.gram(), np.sqrt(Phi.diag())
    d[d == 0] = 1.0
    try:
        np.linalg.cholesky(K / d[:, None] / d
                           + 1e-8 * len(d) * np.eye(len(d)))
    except LinAlgError:
        raise ValueError("kernel must be positive definite, but its Gram "
                         "matrix at X has a negative eigenvalue") from None
    with np.errstate(over="ignore"):
        return check.finite(c[:, None] * K * c / (2 * lam), "kernel / lam")

# %% [10] Certified fits
def duality_gap(f: RKHSFunction, y, loss: Loss | str, lam: float) -> float:
    """G = P(f) - D(γ), where γ_i is 2 λ c_i α_i moved into the interval of
    the loss, with an allowance for rounding (:prf:ref:`thm-risk-gap`). For
    f with any weights at the points of the data, P(f) - P(f*) <= G, and the
    optimum f* is within √(k(t, t) G / λ) of f at every point t, or within
    √(k(t, t) G / 2λ) if no number was moved, as after `minimize_risk`
    (:prf:ref:`thm-risk-certificate`). Arguments of `regularised_risk`.

    >>> from rkhs_lit.kernels import Linear
    >>> f = RKHSFunction(Linear(), [1.0], [0.5])
    >>> duality_gap(f, [1.0], "squared", 1.0) < 1e-30    # f is optimal
    True
    """
    *problem, size, slope, _ = _in_units(loss, y,
                                         as_function(f).features.n, lam)
    gap, _ = _certificate(f / size, *problem)
    return check.finite(gap * slope * size, "y or f")

# %% [11] Certified fits
def minimize_risk(kernel: Kernel, X, y, loss: Loss | str, lam: float, *,
                  tol: float = 1e-8, offset: bool = False,
                  ) -> RKHSFunction | Shifted:
    """The minimiser f = Σ α_i k(x_i, ·) of Σ ℓ(y_i, f(x_i)) + λ‖f‖² over
    the whole RKHS (:prf:ref:`thm-representer`), with a `duality_gap` of at
    most tol times the risk (:prf:ref:`alg-certified-minimiser`).

    With ``offset=True`` the minimiser f + b of Σ ℓ(y_i, f(x_i) + b) + λ‖f‖²
    over f and b, a `Shifted` (:prf:ref:`thm-representer-offset`). The other
    arguments are those of `regularised_risk`; points may repeat.

    >>> from rkhs_lit.kernels import Linear
    >>> f = minimize_risk(Linear(), [1.0, 2.0], [1.0, 3.0], "squared", 2.0)
    >>> f([1.0]).round(6)                         # (1 + 6) / (1 + 4 + 2)
    array([1.])
    """
    Phi, tol = Features(kernel, X), check.tolerance(tol)
    loss, a, c, unit_lam, size, _, level = _in_units(
        loss, y, Phi.n, lam, check.flag(offset, "offset"))
    Q, gamma, b = _dual_matrix(Phi, c, unit_lam), 0 * a, 0.0
    if a.any():
        with np.errstate(all="ignore"):
            # the maximum of D(γ) = a'γ - γ'Qγ/2 - Σ φ*(γ_i)
            gamma, b = _follow_path(Q, a, c, loss, tol, offset)
    f = Phi @ (c * gamma / (2 * unit_lam))                # the f_γ of D
    gap, risk = _certificate(f, loss, a - b * c, c, unit_lam)
    gap += offset * (1 + abs(b)) * abs(c @ gamma)
    if not gap <= tol * risk:
        raise ValueError(f"tol = {tol:g} cannot be reached: the gap is "
                         f"{gap / risk:.1e} of the risk; lam = {lam:g} may "
                         "be too small for rounding errors")
    return Shifted(size * f, level + size * b) if offset else size * f
