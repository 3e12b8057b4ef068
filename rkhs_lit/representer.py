"""The representer theorem: a search in infinite dimension that ends in n numbers

The exported cells of the chapter ``book/representer.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: 101574442dd918b0

# %% [1] The representer theorem: a search in infinite dimension that ends in n numbers
import math
import warnings
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import xlog1py, xlogy

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_sequence
from rkhs_lit.kernels import Kernel
from rkhs_lit.moore_aronszajn import RKHSFunction, as_function, norm


# %% [2] Seven losses
_SHAPES = {
    "squared": lambda _: (-np.inf, np.inf, 0.5),
    "absolute": lambda _: (-1.0, 1.0, 0.0),
    "huber": lambda delta: (-2 * delta, 2 * delta, 0.5),
    "quantile": lambda tau: (tau - 1, tau, 0.0),
    "hinge": lambda _: (0.0, 1.0, 0.0),
    "squared_hinge": lambda _: (0.0, np.inf, 0.5),
    "logistic": lambda _: (0.0, 1.0, 0.0)}
_DEFAULTS = {"huber": 1.0, "quantile": 0.5}
_ON_LABELS = {"hinge", "squared_hinge", "logistic"}


def _parameter(name, value):
    if name not in _DEFAULTS:
        if value is not None:
            raise ValueError(f"parameter must be None for the {name} loss, "
                             f"got {value!r}")
        return None
    value = _DEFAULTS[name] if value is None else value
    value = check.positive(value, "parameter")
    if name == "quantile" and not value < 1:
        raise ValueError("parameter must be a number between 0 and 1 for "
                         f"the quantile loss, got {value!r}")
    return float(value)


def _targets(y, n, loss):
    y = check.vector(y, "y", n)
    if loss.name in _ON_LABELS and not (np.abs(y) == 1).all():
        wrong = y[np.abs(y) != 1][0]
        raise ValueError(f"y must be -1 or +1 for the {loss.name} loss, "
                         f"got {wrong:g}")
    return y


# %% [3] Seven losses
@dataclass(frozen=True)
class _Law:
    """φ as the maximum of s γ - φ*(γ) over lower <= γ <= upper, with
    φ*(γ) = q γ²/2, or with the entropy for the logistic loss."""

    lower: float
    upper: float
    q: float
    entropy: bool

    def best(self, s):
        """The γ of the maximum for a quadratic φ*: a slope of φ at s."""
        if self.q == 0:
            return np.where(s > 0, self.upper, self.lower)
        with np.errstate(over="ignore"):
            return np.clip(s / self.q, self.lower, self.upper)

    def value(self, s):
        """φ(s)."""
        if self.entropy:
            return np.logaddexp(0, s - 1)
        gamma = self.best(s)
        return gamma * (s - self.q / 2 * gamma)


# %% [4] Seven losses
@dataclass(frozen=True)
class Loss:
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
        if not isinstance(self.name, str) or self.name not in _SHAPES:
            raise ValueError(f"name must be one of {', '.join(_SHAPES)}; "
                             f"got {self.name!r}")
        object.__setattr__(self, "parameter",
                           _parameter(self.name, self.parameter))

    def __call__(self, y, z) -> np.ndarray:
        """The losses of the predictions z, one for each y."""
        n = len(as_sequence(y, "y"))
        y, z = _targets(y, n, self), check.vector(z, "z", n)
        return _representable(self._values(y, z), "y or z")

    def _values(self, y, z):
        law = _Law(*_SHAPES[self.name](self.parameter),
                   self.name == "logistic")
        with np.errstate(over="ignore"):
            s = 1 - y * z if self.name in _ON_LABELS else y - z
            return law.value(s)


# %% [5] Seven losses
def _representable(numbers, name):
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be smaller: the loss overflows")
    return numbers


def _loss(loss):
    if isinstance(loss, str) and loss in _SHAPES:
        return Loss(loss)
    if not isinstance(loss, Loss):
        raise ValueError("loss must be a Loss or one of "
                         f"{', '.join(_SHAPES)}; got {loss!r}")
    return loss


# %% [6] Seven losses
def regularised_risk(f: RKHSFunction, X, y, loss: Loss | str,
                     lam: float) -> float:
    """The risk Σ ℓ(y_i, f(x_i)) + λ‖f‖² of a function
    (:prf:ref:`def-losses`).

    Parameters
    ----------
    f : RKHSFunction
        Any function of the space; its points need not be X.
    X : sequence of n points
    y : (n,) array
        Numbers, or labels -1 and +1 for a loss of classification.
    loss : Loss or str
    lam : float
        λ > 0. The losses are summed, not averaged.

    Returns
    -------
    float
    """
    as_function(f, "f")
    X, loss = as_sequence(X), _loss(loss)
    y = _targets(y, len(X), loss)
    lam = check.positive(lam, "lam")
    with np.errstate(over="ignore"):
        risk = np.sum(loss._values(y, _at(f, X))) + np.square(
            math.sqrt(lam) * _length(f))
    return float(_representable(risk, "y or f"))


def _length(f):
    # As a term of the risk it needs no digits of its own.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", check.PrecisionWarning)
        return norm(f)


def _at(f, X):
    try:
        return f(X)
    except ValueError as error:
        raise ValueError(str(error).replace("T ", "X ", 1)) from None


# %% [7] What the gap says about predictions
def _fenchel_young(law, s, gamma):
    if law.entropy:
        bits = (xlogy(gamma, gamma) + gamma * np.logaddexp(0, 1 - s)
                + xlog1py(1 - gamma, -gamma)
                + (1 - gamma) * np.logaddexp(0, s - 1))
        return np.maximum(bits, 0.0)
    best = law.best(s)
    missing = best - gamma
    return (np.maximum(missing * (s - law.q * best), 0.0)
            + law.q / 2 * missing**2)


# %% [8] What the gap says about predictions
@dataclass(frozen=True, eq=False)
class _Problem:
    """Shortfalls s = a - c f(x) in units of `size`, slopes γ in units of
    `force`, and weights in units of `unit`; the risk is then in units of
    size times force."""

    a: np.ndarray
    c: np.ndarray
    law: _Law
    size: float
    force: float
    unit: float


def _problem(y, n, loss, lam):
    loss = _loss(loss)
    y = _targets(y, n, loss)
    lam = check.positive(lam, "lam")
    lower, upper, q = _SHAPES[loss.name](loss.parameter)
    ones, size, force = np.ones(n), 1.0, 1.0
    a, c = ones, y
    if loss.name not in _ON_LABELS:
        size = float(np.abs(y).max()) or 1.0
        force = 1.0 if q == 0 else min(size, upper)
        a, c = y / size, ones
    law = _Law(lower / force, upper / force, q * (force / size),
               loss.name == "logistic")
    unit = force / (2 * lam)
    if not 0 < unit < np.inf:
        raise ValueError(f"lam must be {'larger' if unit else 'smaller'}: "
                         "y divided by it is beyond all floats")
    return _Problem(a, c, law, size, force, unit)


# %% [9] What the gap says about predictions
def _certificate(f, problem):
    """The gap and the risk of f, in units of size times force."""
    c, law, unit = problem.c, problem.law, problem.unit
    s = problem.a - c * (f(f.points) / problem.size)
    gamma = np.clip(c * f.weights / unit, law.lower, law.upper)
    reach = np.sqrt(np.abs(f.kernel.diag(f.points)))
    error = np.finfo(float).eps * reach * (
        reach / problem.size @ np.abs(f.weights))
    excess = replace(f, weights=f.weights - c * gamma * unit)
    scale = 1 / math.sqrt(2 * unit) / math.sqrt(problem.size)
    with np.errstate(over="ignore"):
        gap = np.sum(np.maximum(_fenchel_young(law, s - error, gamma),
                                _fenchel_young(law, s + error, gamma)))
        gap += np.square(scale * norm(excess))
        risk = np.sum(law.value(s)) + np.square(scale * _length(f))
    return float(gap), float(risk)


# %% [10] What the gap says about predictions
def duality_gap(f: RKHSFunction, y, loss: Loss | str, lam: float) -> float:
    """A bound on how far f is from optimal (:prf:ref:`thm-risk-gap`).

    With G the gap, P(f) - P(f*) <= G, and at every point t the optimum f*
    differs from f by at most √(k(t, t) G / λ); the G may be halved if all
    2 λ c_i α_i lie in the interval of the loss, as they do for the result
    of `minimize_risk` (:prf:ref:`thm-risk-certificate`).

    Parameters
    ----------
    f : RKHSFunction
        Any weights, at the points of the data.
    y : (n,) array
        One number or label for each point of f.
    loss : Loss or str
    lam : float
        λ > 0.

    Returns
    -------
    float
        P(f) - D(γ), where γ_i is 2 λ c_i α_i moved into the interval,
        and an allowance for the rounding errors of the values of f.

    Examples
    --------
    >>> from rkhs_lit.kernels import Linear
    >>> f = RKHSFunction(Linear(), [1.0], [0.5])
    >>> duality_gap(f, [1.0], "squared", 1.0) < 1e-30    # f is optimal
    True
    """
    as_function(f, "f")
    problem = _problem(y, len(f.points), loss, lam)
    gap, _ = _certificate(f, problem)
    return float(_representable(gap * problem.force * problem.size,
                                "y or f"))


# %% [11] Newton's method along the path
def _factor(Q, H):
    """Solve (Q + H) Δ = r for a positive diagonal H."""
    h = np.sqrt(H)
    M = Q / h[:, None]
    M /= h
    M[np.diag_indices(len(h))] += 1
    factor = cho_factor(M, lower=True, overwrite_a=True,
                        check_finite=False)
    return lambda r: cho_solve(factor, r / h, check_finite=False) / h


def _room(values, steps):
    """How far one can go, at most 1, without crossing zero."""
    down = steps < 0
    return min(1.0, 0.99 * np.min(values[down] / -steps[down],
                                  initial=np.inf))


# %% [12] Newton's method along the path
def _newton(Q, s, law, sign, gamma, Z, W):
    """Steps 2 and 3 of the algorithm: new γ, Z and W."""
    if law.entropy:
        slope, curvature = 1 + np.log(Z[0] / Z[1]), 1 / Z[0] + 1 / Z[1]
    else:
        slope, curvature = law.q * gamma, np.full(len(s), law.q)
    H = curvature + np.sum(W / Z, axis=0)
    try:
        solve = _factor(Q, H)
    except LinAlgError:
        # A proximal term as large as the rounding errors in Q.
        floor = 4 * len(s) * np.finfo(float).eps * Q.diagonal().max()
        solve = _factor(Q, np.maximum(H, floor))
    rest = s - slope + np.sum(sign * W, axis=0)

    def step(target):
        d = solve(rest + np.sum(sign * target / Z, axis=0))
        return d, (target - W * sign * d) / Z

    d, dW = step(-W * Z)
    if W.any():
        t = min(_room(Z, sign * d), _room(W, dW))
        mu, ahead = np.mean(W * Z), np.mean((W + t * dW)
                                            * (Z + t * sign * d))
        d, dW = step((ahead / mu) ** 3 * mu - W * Z - sign * d * dW)
    t = min(_room(Z, sign * d), _room(W, dW))
    return gamma + t * d, Z + t * sign * d, W + t * dW


# %% [13] Newton's method along the path
def _start(law, n):
    """Signs and places of the finite ends, and the first γ, Z and W."""
    ends = [(sign, end) for sign, end in ((1.0, law.lower),
                                          (-1.0, law.upper))
            if np.isfinite(end)]
    sign, end = np.array(ends).reshape(-1, 2).T[..., None]
    middle = (0.0, law.lower + 1, (law.lower + law.upper) / 2)[len(ends)]
    gamma = np.full(n, middle)
    Z = sign * (gamma - end)
    return sign, end, gamma, Z, 1 / Z


def _guess(Q, problem, gamma, end, at_end):
    """γ at the ends where told, and the free equations solved."""
    a, law, gamma = problem.a, problem.law, gamma.copy()
    for here, place in zip(at_end, end):
        gamma[here] = place
    free = ~at_end.any(axis=0)
    if law.entropy or not free.any():
        return gamma
    floor = 4 * len(a) * np.finfo(float).eps * Q.diagonal().max()
    try:
        solve = _factor(Q[np.ix_(free, free)],
                        np.full(free.sum(), max(law.q, floor, 1e-300)))
    except LinAlgError:
        return gamma
    gamma[free] += solve((a - Q @ gamma - law.q * gamma)[free])
    return np.clip(gamma, law.lower, law.upper)


# %% [14] Newton's method along the path
def _follow_path(Q, problem, tol):
    """γ with a gap of at most tol times the risk, or the best found."""
    a, law = problem.a, problem.law
    sign, end, gamma, Z, W = _start(law, len(a))

    def gap_and_risk(gamma):
        Qg = Q @ gamma
        s = a - Qg
        return (s, np.sum(_fenchel_young(law, s, gamma)),
                np.sum(law.value(s)) + gamma @ Qg / 2)

    best, age = (np.inf, gamma), 0
    with np.errstate(all="ignore"):
        for _ in range(200):
            s, gap, risk = gap_and_risk(gamma)
            best, age = ((gap, gamma), 0) if gap < best[0] else (
                best, age + 1)
            if gap <= tol * risk / 2 or age > 20 or not np.isfinite(gap):
                break
            try:
                gamma, Z, W = _newton(Q, s, law, sign, gamma, Z, W)
            except LinAlgError:          # Q/H is beyond all rounding
                break
        guess = _guess(Q, problem, best[1], end, Z < W)
        _, gap, risk = gap_and_risk(guess)
    return guess if gap < best[0] else best[1]


# %% [15] Newton's method along the path
def _scaled_gram(kernel, X, problem):
    """Q, after a factorisation of the Gram matrix that fails for negative
    eigenvalues."""
    K, c = kernel(X), problem.c
    d = np.sqrt(np.abs(K.diagonal()))
    d[d == 0] = 1.0
    S = K / d[:, None]
    S /= d
    S[np.diag_indices(len(d))] += 1e-8 * len(d)
    try:
        cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        raise ValueError("kernel must be positive definite, but its Gram "
                         "matrix at X has a negative eigenvalue") from None
    with np.errstate(over="ignore", invalid="ignore"):
        K *= c[:, None] * (problem.unit / problem.size)
        K *= c
    if not np.isfinite(K).all():
        raise ValueError("lam must be larger: the kernel divided by it "
                         "overflows")
    return K


# %% [16] Newton's method along the path
def minimize_risk(kernel: Kernel, X, y, loss: Loss | str, lam: float, *,
                  tol: float = 1e-8) -> RKHSFunction:
    """The minimiser of the risk over the whole RKHS, to a certified gap
    (:prf:ref:`thm-representer`, :prf:ref:`alg-certified-minimiser`).

    Parameters
    ----------
    kernel : Kernel
    X : sequence of n points, which may repeat
    y : (n,) array of numbers, or of labels -1 and +1
    loss : Loss or str
    lam : float
        λ > 0 in the risk Σ ℓ(y_i, f(x_i)) + λ‖f‖².
    tol : float
        The largest `duality_gap` allowed, relative to the risk. If it
        cannot be reached, a ValueError says so.

    Returns
    -------
    RKHSFunction
        With the points X.

    Examples
    --------
    >>> from rkhs_lit.kernels import Linear
    >>> f = minimize_risk(Linear(), [1.0, 2.0], [1.0, 3.0], "squared", 2.0)
    >>> f([1.0]).round(6)                         # (1 + 6) / (1 + 4 + 2)
    array([1.])
    """
    X = as_sequence(X)
    blank = RKHSFunction(kernel, X, np.zeros(len(X)))
    problem = _problem(y, len(X), loss, lam)
    tol = check.tolerance(tol)
    Q = _scaled_gram(kernel, blank.points, problem)
    if not problem.a.any():
        return blank                               # all y are zero
    gamma = _follow_path(Q, problem, tol)
    f = replace(blank, weights=problem.c * gamma * problem.unit)
    gap, risk = _certificate(f, problem)
    if not gap <= tol * risk:
        raise ValueError(f"tol = {tol:g} cannot be reached: the gap is "
                         f"{gap / risk:.1e} of the risk; lam = {lam:g} may "
                         "be too small for rounding errors")
    return f
