"""Filtering: Bayes' rule, again and again

The exported cells of the chapter ``book/filtering.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: fe3080371c1bc3dc

# %% [1] Filtering: Bayes' rule, again and again
import copy
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy.linalg import cho_solve

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points, as_sequence
from rkhs_lit.bayes_rule import (METHODS, _called, _coordinates,
                                 _is_prior, _low_rank,
                                 _posterior_weights)
from rkhs_lit.bochner import _take
from rkhs_lit.conditional_embedding import _bounded, _reworded, _table
from rkhs_lit.cross_covariance import (_named_space, _one_kind, _points,
                                       _power)
from rkhs_lit.kernels import TILE, Gaussian, Kernel, Pairs
from rkhs_lit.mean_embedding import GaussianEmbedding
from rkhs_lit.moore_aronszajn import RKHSFunction, _joined
from rkhs_lit.pca import _modes
from rkhs_lit.ridge import ridge_factor


# %% [2] The mass must be watched
_NET, _FAINT = 0.1, 1e-8


def _unit(w):
    """Weights divided by their sum, or by a tenth of the sum of their
    absolute values where that is more (:prf:ref:`def-filter-mass`)."""
    w = w / (np.abs(w).max() or 1.0)
    return w / (max(w.sum(), _NET * np.abs(w).sum()) or 1.0)


# %% [3] The mass must be watched
def _transitions(k, l, states, observations, next_states):
    """States, observations and successors, checked; and all states."""
    for name, kernel in ("k", k), ("l", l):
        _named_space(kernel, name)
    X = _points(k, states, "states")
    Y = _points(l, observations, "observations")
    if len(X) != len(Y):
        raise ValueError("observations must be as many as states "
                         f"({len(X)}), got {len(Y)}")
    if next_states is None:
        if len(X) < 2:
            raise ValueError("states must be a trajectory of at least two "
                             "points")
        return (_points(k, X[:-1], "states"),
                _points(l, Y[:-1], "observations"),
                _points(k, X[1:], "states"), X)
    Z = _points(k, next_states, "next_states")
    if len(Z) != len(X):
        raise ValueError("next_states must be as many as states "
                         f"({len(X)}), got {len(Z)}")
    _one_kind(k, X, Z, "states and next_states")
    return X, Y, Z, _joined(X, Z)


# %% [4] The mass must be watched
def _features(k, l, trajectory, Y, tol, max_rank):
    """Features of the recording, and the maps that give them."""
    parts = []
    for name, kernel, points in ("k", k, trajectory), ("l", l, Y):
        factor, features = _called(name, lambda: _low_rank(
            kernel, points, tol, max_rank))
        if factor.shape[1] == 0:
            raise ValueError(f"{name} must not be zero at all points")
        parts += factor, features
    return parts


def _solver(name, E, shift):
    """E (E'E + shift I)⁻¹, from coordinates to weights."""
    return _called(name, lambda: cho_solve(ridge_factor(
        E.T @ E, shift, "n lam"), E.T).T)


# %% [5] The mass must be watched
class _Embeddings:
    def _regularise(self, lam, eps):
        lam = check.positive(lam, "lam")
        eps = check.positive(eps, "eps")
        prior, start = (_solver(name, E, len(E) * float(lam))
                        for name, E in (("k", self._F), ("l", self._G)))
        self._set(lam=float(lam), eps=float(eps), _prior=prior,
                  _start=start, _M=self._F_next.T @ prior)

    def _set(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _theta(self, f, name):
        """The coordinates of an embedding."""
        with (_reworded("^prior", name), _reworded("points Y", "states"),
              np.errstate(over="ignore", invalid="ignore")):
            _is_prior(f, self.k)
            points = getattr(f, "points", None)
            if points is self.states:
                theta = self._F.T @ f.weights
            elif points is self.next_states:
                theta = self._F_next.T @ f.weights
            else:
                theta = _coordinates(f, self._state_map)
        if not np.isfinite(theta).all():
            raise ValueError(f"{name} must have smaller weights")
        return theta

    def _mass_one(self, w):
        return _unit(w) if self.normalise else w

    def _usable(self, w):
        w = w / (np.abs(w).max() or 1.0)
        values = self._F @ (self._F.T @ w)
        rounding = _FAINT * (np.abs(w) @ self._sizes) * self._sizes
        return bool((values > rounding).any())


# %% [6] The mass must be watched
class _Recursion(_Embeddings):
    def _weights(self, phi, seen, theta):
        """The weights after an observation with features phi, and how
        they were found; theta are the coordinates of the prediction,
        None at the start (:prf:ref:`alg-kernel-filter`)."""
        n, roads = len(self._F), []
        if theta is not None:
            w = self._mass_one(self._prior @ theta)
            if seen:
                roads.append(("posterior", lambda: _posterior_weights(
                    self._G, w, phi, self.eps, self.method)))
            roads.append(("prediction", lambda: w))
        if seen:
            roads.append(("start" if theta is None else "restart",
                          lambda: self._start @ phi))
        roads.append(("training", lambda: np.full(n, 1 / n)))
        for note, compute in roads:
            alpha = compute()
            if self._usable(alpha):
                break
        return self._mass_one(alpha), note

    def _seen(self, T, name):
        """Features of observations, and whether they can be seen."""
        try:
            phi, diagonal = self._observation_map(T), self.l.diag(T)
        except ValueError as error:
            self.l._prepare(T, name)             # says what T must be
            raise ValueError(f"{name} does not suit the observations: "
                             f"{error}") from None
        return phi, np.abs(phi).max(axis=1) > _FAINT * np.sqrt(
            np.maximum(diagonal, 0.0))

    def _observe(self, y, theta):
        one = isinstance(y, Pairs) and len(y) == 1
        phi, seen = self._seen(y if one else [y], "y")
        return self._weights(phi[0], seen[0], theta)[0]


# %% [7] From an embedding to a point
def _estimates(f, W):
    """A point for each row of weights of the filter f."""
    best = np.argmax((W @ f._F) @ f._F.T, axis=1)
    if f.estimate == "state":
        return _points(f.k, _take(f.states, best), "states")
    X = f._vectors
    if f.estimate == "mean":
        found = np.array([_mean(w, X, b) for w, b in zip(W, best)])
    else:
        found = np.vstack([_climb(f.k, X, W[t:t + TILE], best[t:t + TILE])
                           for t in range(0, len(W), TILE)])
    return check.frozen(found[:, 0] if np.ndim(f.states) == 1 else found)


def _mean(w, X, best):
    w = w / (np.abs(w).max() or 1.0)
    if w.sum() < _NET * np.abs(w).sum():
        w = np.maximum(w, 0.0)
    return w @ X / w.sum() if w.any() else X[best]


def _climb(k, X, W, best):
    """Pre-images for the rows of W, many at once, from these states."""
    try:
        return _modes(k, X, W, X[best], 1e-6, 10_000, "W")
    except ValueError:            # one is nowhere positive, or too slow
        if len(W) == 1:
            return X[best]
        return np.vstack([_climb(k, X, W[t:t + 1], best[t:t + 1])
                          for t in range(len(W))])


# %% [8] From an embedding to a point
def _estimator(k, states, name):
    """The name of the estimate, and the states as vectors."""
    if name not in ("auto", "preimage", "mean", "state"):
        raise ValueError("estimate must be 'auto', 'preimage', 'mean' or "
                         f"'state', got {name!r}")
    gaussian = isinstance(k, Gaussian)
    if name == "preimage" and not gaussian:
        raise ValueError("estimate must not be 'preimage' for a kernel k "
                         f"that is not Gaussian, {k}")
    if name == "auto":
        name = "preimage" if gaussian else "state"
    if name == "state":
        return name, None
    try:
        return name, as_points(states, "states")
    except ValueError:
        raise ValueError("estimate must be 'state' for states that are not "
                         "vectors") from None


# %% [9] The filter
@dataclass(frozen=True, eq=False, repr=False)
class _Trained(_Recursion):
    k: Kernel
    l: Kernel
    states: Sequence
    observations: Sequence
    lam: float
    eps: float
    _: KW_ONLY
    next_states: Sequence | None = None
    method: str = "squared"
    estimate: str = "auto"
    normalise: bool = True
    tol: float = 1e-10
    max_rank: int | None = None

    def __post_init__(self):
        X, Y, Z, trajectory = _transitions(
            self.k, self.l, self.states, self.observations,
            self.next_states)
        check.choice(self.method, "method", METHODS)
        name, vectors = _estimator(self.k, X, self.estimate)
        if not isinstance(self.normalise, (bool, np.bool_)):
            raise ValueError("normalise must be True or False, got "
                             f"{self.normalise!r}")
        F, state_map, G, observation_map = _features(
            self.k, self.l, trajectory, Y, self.tol, self.max_rank)
        self._set(states=X, observations=Y, next_states=Z, estimate=name,
                  _vectors=vectors, _F=F[:len(X)], _F_next=F[-len(X):],
                  _G=G, _state_map=state_map,
                  _observation_map=observation_map,
                  _sizes=np.sqrt(np.maximum(self.k.diag(X), 0.0)))
        self._regularise(self.lam, self.eps)

    def __repr__(self):
        return (f"{type(self).__name__}({self.k}, {self.l}, "
                f"n={len(self.states)}, lam={self.lam:.6g}, "
                f"eps={self.eps:.6g})")

    def _embedding(self, w):
        return RKHSFunction(self.k, self.states, w)

    def _after(self, previous):
        return None if previous is None else (
            self._M @ self._theta(previous, "previous"))


# %% [10] The filter
@dataclass(frozen=True, eq=False, repr=False)
class KernelBayesFilter(_Trained):
    """The kernel Bayes filter: hidden states from observations, learnt
    from a recording of both (:prf:ref:`thm-filter-recursion`).

    Parameters
    ----------
    k, l : Kernel
        On the states, and on the observations.
    states, observations : sequences of n + 1 points
        A trajectory and what was observed of it. The last state is a
        successor only: the attributes keep the first n points.
    lam : float
        λ > 0, added to the covariance operator of the states, and for
        the first observation to that of the observations.
    eps : float
        ε > 0, the regulariser of Bayes' rule.
    next_states : sequence of n points, optional
        The successors of n states with n observations, in place of one
        trajectory.
    method : "squared" or "clipped"
        The form of Bayes' rule, as for `kernel_bayes_rule`.
    estimate : "auto", "preimage", "mean" or "state"
        How an embedding becomes a point: by its pre-image (for a
        Gaussian k), as the weighted mean of the states, or as the state
        at which it is largest (for states of any kind).
    normalise : bool
        Whether weights get mass one (:prf:ref:`def-filter-mass`). If
        not, they may fade away (:prf:ref:`prop-filter-scale`).
    tol, max_rank
        Accuracy of the features, as for `pivoted_cholesky`.

    Examples
    --------
    >>> from rkhs_lit.kernels import Delta
    >>> lamp = KernelBayesFilter(Delta(), Delta(), ["on", "off"] * 9,
    ...                          ["red", "dark"] * 9, 1e-3, 1e-6)
    >>> lamp.filter(["red", "dark", "red"]).estimates
    ('on', 'off', 'on')
    """

    def predict(self, f: RKHSFunction | GaussianEmbedding) -> RKHSFunction:
        """The embedding of the next state, from that of a state."""
        beta = self._prior @ self._theta(f, "f")
        return RKHSFunction(self.k, self.next_states, self._mass_one(beta))

    def update(self, y, prior: RKHSFunction | GaussianEmbedding
               ) -> RKHSFunction:
        """The embedding of a state, from the embedding of its prior
        distribution and an observation y of it."""
        return self._embedding(self._observe(y, self._theta(prior,
                                                            "prior")))

    def step(self, y, previous: RKHSFunction | GaussianEmbedding | None
             = None) -> RKHSFunction:
        """The embedding of a state, from an observation y of it and the
        embedding of the state before, if there was one."""
        return self._embedding(self._observe(y, self._after(previous)))

    def filter(self, ys, previous: RKHSFunction | GaussianEmbedding | None
               = None) -> "Filtered":
        """The embeddings and estimates for a sequence of observations,
        the first of which follows on `previous`, if that is given."""
        theta, W, notes = self._after(previous), [], []
        for phi, seen in zip(*self._seen(as_sequence(ys, "ys"), "ys")):
            w, note = self._weights(phi, seen, theta)
            theta = self._M @ (self._F.T @ w)
            W.append(w)
            notes.append(note)
        W = np.array(W)
        return Filtered(self.k, self.states, W, _estimates(self, W),
                        tuple(notes))

    def retune(self, lam: float, eps: float) -> "KernelBayesFilter":
        """The same filter with other regularisers; the features are
        not computed again."""
        other = copy.copy(self)
        other._regularise(lam, eps)
        return other


# %% [11] The filter
@dataclass(frozen=True, eq=False, repr=False)
class Filtered:
    """What a `KernelBayesFilter` has made of T observations
    (:prf:ref:`alg-kernel-filter`).

    Attributes
    ----------
    kernel : Kernel
        On the states.
    states : sequence of n points
        Those of the recording.
    weights : (T, n) array
        In row t the weights of the embedding at time t.
    estimates : (T, d) or (T,) array, or sequence of T states
        A point for each embedding.
    notes : tuple of T strings
        How each embedding was found: "start", "posterior", or one of
        the resorts "prediction", "restart" and "training".
    """

    kernel: Kernel
    states: Sequence
    weights: np.ndarray
    estimates: Sequence
    notes: tuple[str, ...]

    def __post_init__(self):
        object.__setattr__(self, "weights", check.frozen(self.weights))

    def __repr__(self):
        T, n = self.weights.shape
        return f"Filtered({self.kernel}, T={T}, n={n})"

    @property
    def embeddings(self) -> tuple[RKHSFunction, ...]:
        """The embeddings of the hidden states, as functions."""
        return tuple(RKHSFunction(self.kernel, self.states, w)
                     for w in self.weights)

    def expectation(self, g) -> np.ndarray:
        """Estimates Σ w_i g(x_i) of the expectation of g at each time,
        for g a function of the space, any function that takes the
        states and returns n numbers (or n rows), or these numbers."""
        return self.weights @ _table(g, self.kernel, self.states)


# %% [12] Choosing the parameters
@dataclass(frozen=True, eq=False, repr=False)
class FilterValidation:
    """The choice of `validate_filter` (:prf:ref:`def-filter-validation`).

    Attributes
    ----------
    filter : KernelBayesFilter
        The best one, trained on the whole trajectory.
    kernels : tuple of p pairs (k, l)
    lams : (q,) array
    epsilons : (r,) array
        What was tried.
    errors : (p, q, r) array
        The validation error for each pair of kernels, λ and ε.
    best : tuple of three int
        The place of the least error.
    """

    filter: KernelBayesFilter
    kernels: tuple[tuple[Kernel, Kernel], ...]
    lams: np.ndarray
    epsilons: np.ndarray
    errors: np.ndarray
    best: tuple[int, int, int]

    def __post_init__(self):
        object.__setattr__(self, "errors", check.frozen(self.errors))

    def __repr__(self):
        return (f"FilterValidation({self.filter}, "
                f"error={self.errors[self.best]:.6g})")


# %% [13] Choosing the parameters
def _held_out(states, observations, held_out):
    X, Y = as_points(states, "states"), as_sequence(observations,
                                                    "observations")
    X = X[:, 0] if np.ndim(states) == 1 else X
    if len(X) != len(Y):
        raise ValueError("observations must be as many as states "
                         f"({len(X)}), got {len(Y)}")
    cut = len(X) - check.whole(held_out, "held_out", 1)
    if cut < 2:
        raise ValueError("held_out must leave at least two of "
                         f"{len(X)} states for training, got {held_out}")
    return X, Y, cut


def _kernel_pairs(kernels):
    pairs = list(as_sequence(kernels, "kernels"))
    for pair in pairs:
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and all(
                isinstance(kernel, Kernel) for kernel in pair)):
            raise ValueError("kernels must be a list of pairs (k, l) of "
                             f"kernels, got {pair!r} in it")
    return tuple(map(tuple, pairs))


def _squared_error(found, truth, unit):
    gap = (as_points(found, "estimates") / unit
           - as_points(truth, "states") / unit)
    return float(np.mean(np.sum(gap**2, axis=1)))


def _in_units(errors, unit):
    with np.errstate(over="ignore"):
        return _bounded(errors * unit * unit, "states must be smaller: "
                        "their squared errors overflow")


# %% [14] Choosing the parameters
def validate_filter(kernels: Sequence[tuple[Kernel, Kernel]], states,
                    observations, lams, epsilons, *, held_out: int,
                    method: str = "squared", estimate: str = "auto",
                    normalise: bool = True, tol: float = 1e-10,
                    max_rank: int | None = None) -> FilterValidation:
    """Choose kernels, λ and ε of a filter by its error at the end of
    the recording (:prf:ref:`def-filter-validation`).

    Parameters
    ----------
    kernels : list of pairs (k, l)
    states : (n + 1, d) or (n + 1,) array
    observations : sequence of n + 1 points
    lams, epsilons : (q,) and (r,) arrays
        Candidates for λ and ε.
    held_out : int
        How many of the last states are estimated and not trained on.
    method, estimate, normalise, tol, max_rank
        As for `KernelBayesFilter`.

    Returns
    -------
    FilterValidation
    """
    X, Y, cut = _held_out(states, observations, held_out)
    lams = check.positives(lams, "lams")
    epsilons = check.positives(epsilons, "epsilons")
    kernels = _kernel_pairs(kernels)
    options = dict(method=method, estimate=estimate, normalise=normalise,
                   tol=tol, max_rank=max_rank)
    errors = np.empty((len(kernels), len(lams), len(epsilons)))
    unit = _power(np.abs(X).max()) or 1.0       # so that no square is lost
    for p, (k, l) in enumerate(kernels):
        trained = KernelBayesFilter(k, l, X[:cut], Y[:cut], lams[0],
                                    epsilons[0], **options)
        for q, lam in enumerate(lams):
            for r, eps in enumerate(epsilons):
                found = trained.retune(lam, eps).filter(Y[cut:]).estimates
                errors[p, q, r] = _squared_error(found, X[cut:], unit)
    p, q, r = np.unravel_index(errors.argmin(), errors.shape)
    chosen = KernelBayesFilter(*kernels[p], X, Y, lams[q], epsilons[r],
                               **options)
    return FilterValidation(chosen, kernels, lams, epsilons,
                            _in_units(errors, unit),
                            (int(p), int(q), int(r)))
