"""The representer theorem: a search in infinite dimension that ends in n numbers

The exported cells of the chapter ``book/representer.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 10e6924f6d2a7875

# %% [1] The representer theorem: a search in infinite dimension that ends in n numbers
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import xlog1py, xlogy

import rkhs_lit.conventions as check
from rkhs_lit.kernels import Kernel
from rkhs_lit.moore_aronszajn import (Features, RKHSFunction, as_function,
                                      inner, norm)


# %% [2] Seven losses
_SHAPES = {
    "squared": lambda _: (-np.inf, np.inf, 0.5),
    "absolute": lambda _: (-1.0, 1.0, 0.0),
    "huber": lambda delta: (-2 * delta, 2 * delta, 0.5),
    "quantile": lambda tau: (tau - 1, tau, 0.0),
    "hinge": lambda _: (0.0, 1.0, 0.0),
    "squared_hinge": lambda _: (0.0, np.inf, 0.5),
    "logistic": lambda _: (0.0, 1.0, 0.0)}
_ON_LABELS = ("hinge", "squared_hinge", "logistic")


def _as_loss(loss):
    return loss if isinstance(loss, Loss) else Loss(
        check.choice(loss, "loss", _SHAPES))


@dataclass(frozen=True)
class Loss(check.Record):
    """A convex loss ℓ(y, z) of the prediction z (:prf:ref:`def-losses`).

    Parameters
    ----------
    name : str
        "squared", "absolute", "huber", "quantile" for any numbers y;
        "hinge", "squared_hinge", "logistic" for labels y = -1 or +1.
    parameter : float, optional
        The δ of "huber" (1 by default) or the τ of "quantile" (1/2).

    Examples
    --------
    >>> Loss("quantile", 0.9)([1.0, 1.0], [0.0, 2.0]).round(6)
    array([0.9, 0.1])
    """

    name: str
    parameter: float | None = None

    def __post_init__(self):
        check.choice(self.name, "name", _SHAPES)
        value = self.parameter
        if self.name == "huber":
            value = check.positive(1.0 if value is None else value,
                                   "parameter")
        elif self.name == "quantile":
            value = check.tolerance(0.5 if value is None else value,
                                    "parameter")
        elif value is not None:
            raise ValueError(f"parameter must be None for the {self.name} "
                             f"loss, got {value!r}")
        vars(self).update(parameter=value)

    def __call__(self, y, z) -> np.ndarray:
        """The losses of the predictions z, one for each y."""
        a, c = self._terms(y)
        s = a - c * check.vector(z, "z", len(a))
        return check.finite(self._phi(s), "y or z")

    def _terms(self, y, n=None):
        """The a and c of the shortfalls s = a - c f(x)."""
        y = check.vector(y, "y", n)
        if self.name not in _ON_LABELS:
            return y, np.ones(len(y))
        if not (np.abs(y) == 1).all():
            raise ValueError(f"y must be -1 or +1 for the {self.name} "
                             f"loss, got {y[np.abs(y) != 1][0]:g}")
        return np.ones(len(y)), y

    def _shape(self):
        return _SHAPES[self.name](self.parameter)

    def _slope(self, s):
        """The γ of the maximum, for a loss that is not the logistic."""
        lower, upper, q = self._shape()
        with np.errstate(over="ignore"):
            return np.clip(s / q, lower, upper) if q else np.where(
                s > 0, upper, lower)

    def _phi(self, s):
        """φ(s)."""
        if self.name == "logistic":
            return np.logaddexp(0, s - 1)
        gamma, q = self._slope(s), self._shape()[2]
        with np.errstate(over="ignore"):
            return gamma * (s - q / 2 * gamma)


# %% [3] Seven losses
def regularised_risk(f: RKHSFunction, X, y, loss: Loss | str,
                     lam: float) -> float:
    """The risk Σ ℓ(y_i, f(x_i)) + λ‖f‖² of a function
    (:prf:ref:`def-losses`).

    Parameters
    ----------
    f : RKHSFunction
        Any function of the space; its points need not be X.
    X, y : sequence of n points, (n,) array
        In y numbers, or labels -1 and +1 for a loss of classification.
    loss : Loss or str
    lam : float
        λ > 0. The losses are summed, not averaged.
    """
    Phi, loss = Features(as_function(f).kernel, X), _as_loss(loss)
    y, lam = check.vector(y, "y", Phi.n), check.positive(lam, "lam")
    losses, square = loss(y, Phi.sample(f)), max(inner(f, f), 0.0)
    return float(check.finite(losses.sum() + lam * square, "y or f"))


# %% [4] What the gap says about predictions
def _fenchel_young(loss, s, gamma):
    """FY(s, γ) as a sum of terms that are not negative."""
    if loss.name == "logistic":
        bits = (xlogy(gamma, gamma) + gamma * np.logaddexp(0, 1 - s)
                + xlog1py(1 - gamma, -gamma)
                + (1 - gamma) * np.logaddexp(0, s - 1))
        return np.maximum(bits, 0.0)
    best, q = loss._slope(s), loss._shape()[2]
    missing = best - gamma
    return (np.maximum(missing * (s - q * best), 0.0)
            + q / 2 * missing**2)


# %% [5] Newton's method along the path
def _room(values, steps):
    """How far one can go, at most 1, without crossing zero."""
    down = steps < 0
    return min(1.0, 0.99 * np.min(values[down] / -steps[down],
                                  initial=np.inf))


def _newton(Q, s, loss, sign, gamma, Z, W):
    """Steps 2 and 3 of the algorithm: new γ, Z and W."""
    if loss.name == "logistic":
        slope, curvature = 1 + np.log(Z[0] / Z[1]), 1 / Z[0] + 1 / Z[1]
    else:
        q = loss._shape()[2]
        slope, curvature = q * gamma, q
    solve = _solver(Q, curvature + np.sum(W / Z, axis=0))
    rest = s - slope + np.sum(sign * W, axis=0)

    def step(target):
        d = solve(rest + np.sum(sign * target / Z, axis=0))
        dZ = sign * d
        dW = (target - W * dZ) / Z
        return d, dZ, dW, min(_room(Z, dZ), _room(W, dW))

    d, dZ, dW, t = step(-W * Z)
    if len(W):
        mu, ahead = np.mean(W * Z), np.mean((W + t * dW) * (Z + t * dZ))
        d, dZ, dW, t = step((ahead / mu) ** 3 * mu - W * Z - dZ * dW)
    return gamma + t * d, Z + t * dZ, W + t * dW


# %% [6] Newton's method along the path
def _follow_path(Q, a, loss, tol):
    """γ with a gap of at most tol times the risk, or the best found."""
    lower, upper, q = loss._shape()
    gamma = np.full(len(a), (max(lower, -1.0) + min(upper, 1.0)) / 2)
    ends = [(sign, end) for sign, end in ((1.0, lower), (-1.0, upper))
            if np.isfinite(end)]
    sign, end = np.array(ends).reshape(-1, 2).T[..., None]
    Z = sign * (gamma - end)
    W = 1 / np.maximum(Z, 0.5)

    def gap_and_risk(gamma):
        Qg = Q @ gamma
        s = a - Qg
        return (s, np.sum(_fenchel_young(loss, s, gamma)),
                np.sum(loss._phi(s)) + gamma @ Qg / 2)

    best, least, age = gamma, np.inf, 0
    for _ in range(200):
        s, gap, risk = gap_and_risk(gamma)
        age += 1
        if gap < least:
            best, least, age = gamma, gap, 0
        if gap <= tol * risk / 2 or age > 20 or not np.isfinite(gap):
            break
        gamma, Z, W = _newton(Q, s, loss, sign, gamma, Z, W)
    guess, free = best.copy(), ~(Z < W).any(axis=0)
    for here, place in zip(Z < W, end):
        guess[here] = place
    if free.any() and loss.name != "logistic":
        solve = _solver(Q[np.ix_(free, free)], np.full(free.sum(), q))
        guess[free] += solve((a - Q @ guess - q * guess)[free])
        guess = np.clip(guess, lower, upper)
    return guess if gap_and_risk(guess)[1] < least else best


# %% [7] Fine print
def _in_units(loss, y, n, lam):
    """The problem of f / size: its loss, a, c and λ; size; and the unit
    of the slopes γ, which times size is that of the risk."""
    loss, lam = _as_loss(loss), check.positive(lam, "lam")
    a, c = loss._terms(y, n)
    size = float(np.abs(a).max()) or 1.0
    if loss.name == "huber":
        loss = Loss("huber", loss.parameter / size)
    slope = size if loss.name in ("squared", "huber") else 1.0
    check.positive(slope / lam, "y / lam")           # the size of weights
    lam = check.positive(lam * (size / slope), "lam times y")
    return loss, a / size, c, lam, size, slope


def _certificate(f, loss, a, c, lam):
    """The gap and the risk of f, with an allowance for rounding."""
    Phi, alpha = f.features, f.weights
    values, reach = Phi.sample(f), np.sqrt(Phi.diag())
    error = np.finfo(float).eps * reach * (reach @ np.abs(alpha))
    s = a - c * values
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = check.finite(2 * lam * c * alpha, "lam")
        gamma = np.clip(slopes, *loss._shape()[:2])
        excess = norm(Phi @ (alpha - c * gamma / (2 * lam)))
        gap = lam * excess**2 + np.sum(np.maximum(
            _fenchel_young(loss, s - error, gamma),
            _fenchel_young(loss, s + error, gamma)))
        risk = np.sum(loss._phi(s)) + lam * (alpha @ values)
    return float(gap), float(risk)


# %% [8] Fine print
def _solver(Q, H):
    """The map r -> (Q + H)⁻¹ r for a diagonal H >= 0, which is raised to
    the rounding errors of Q."""
    rounding = 4 * len(H) * np.finfo(float).eps * Q.diagonal().max()
    h = np.sqrt(np.maximum(H, max(rounding, check.TINY)))
    M = Q / h[:, None] / h
    M[np.diag_indices(len(h))] += 1
    try:
        factor = cho_factor(M, lower=True, overwrite_a=True,
                            check_finite=False)
    except LinAlgError:
        return np.zeros_like
    return lambda r: cho_solve(factor, r / h, check_finite=False) / h


def _dual_matrix(Phi, c, lam):
    """Q, of a Gram matrix without negative eigenvalues."""
    K, d = Phi.gram(), np.sqrt(Phi.diag())
    d[d == 0] = 1.0
    S = K / d[:, None] / d
    S[np.diag_indices(len(d))] += 1e-8 * len(d)
    try:
        cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        raise ValueError("kernel must be positive definite, but its Gram "
                         "matrix at X has a negative eigenvalue") from None
    with np.errstate(over="ignore"):
        return check.finite(c[:, None] * K * c / (2 * lam), "kernel / lam")


# %% [9] Certified fits
def duality_gap(f: RKHSFunction, y, loss: Loss | str, lam: float) -> float:
    """A bound on how far f is from optimal (:prf:ref:`thm-risk-gap`).

    It is G = P(f) - D(γ), where γ_i is 2 λ c_i α_i moved into the interval
    of the loss, with an allowance for the rounding errors of the values
    of f. Then P(f) - P(f*) <= G, and at every point t the optimum f*
    differs from f by at most √(k(t, t) G / λ); here G may be halved if no
    number had to be moved, as for the result of `minimize_risk`
    (:prf:ref:`thm-risk-certificate`).

    Parameters
    ----------
    f : RKHSFunction, with any weights at the points of the data
    y, loss, lam : as in `regularised_risk`

    Examples
    --------
    >>> from rkhs_lit.kernels import Linear
    >>> f = RKHSFunction(Linear(), [1.0], [0.5])
    >>> duality_gap(f, [1.0], "squared", 1.0) < 1e-30    # f is optimal
    True
    """
    *problem, size, slope = _in_units(loss, y, as_function(f).features.n,
                                      lam)
    gap, _ = _certificate(f / size, *problem)
    return check.finite(gap * slope * size, "y or f")


# %% [10] Certified fits
def minimize_risk(kernel: Kernel, X, y, loss: Loss | str, lam: float, *,
                  tol: float = 1e-8) -> RKHSFunction:
    """The minimiser of the risk over the whole RKHS, to a certified gap
    (:prf:ref:`thm-representer`, :prf:ref:`alg-certified-minimiser`).

    Parameters
    ----------
    kernel, X, y, loss, lam : as in `regularised_risk`; points may repeat
    tol : float
        The largest `duality_gap` allowed, relative to the risk. If it
        cannot be reached, a ValueError says so.

    Examples
    --------
    >>> from rkhs_lit.kernels import Linear
    >>> f = minimize_risk(Linear(), [1.0, 2.0], [1.0, 3.0], "squared", 2.0)
    >>> f([1.0]).round(6)                         # (1 + 6) / (1 + 4 + 2)
    array([1.])
    """
    Phi, tol = Features(kernel, X), check.tolerance(tol)
    *problem, size, _ = _in_units(loss, y, Phi.n, lam)
    unit_loss, a, c, unit_lam = problem         # those of f / size
    Q = _dual_matrix(Phi, c, unit_lam)
    if not a.any():                                # all y are zero
        return Phi @ a
    with np.errstate(all="ignore"):
        # the maximum of a'γ - γ'Qγ/2 - Σ φ*(γ_i), the dual problem
        gamma = _follow_path(Q, a, unit_loss, tol)
    f = Phi @ (c * gamma / (2 * unit_lam))               # α = cγ / 2λ
    gap, risk = _certificate(f, *problem)
    if not gap <= tol * risk:
        raise ValueError(f"tol = {tol:g} cannot be reached: the gap is "
                         f"{gap / risk:.1e} of the risk; lam = {lam:g} may "
                         "be too small for rounding errors")
    return size * f
