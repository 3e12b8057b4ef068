"""Filtering: Bayes' rule, again and again"""
# The exported cells of book/filtering.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 57afd2815d3b4979

# %% [1] Filtering: Bayes' rule, again and again
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy.linalg import cho_solve

import rkhs_lit.conventions as check
from rkhs_lit.bayes_rule import (METHODS, Coordinates, Embedding,
                                 posterior_weights)
from rkhs_lit.conditional_embedding import one_point, values_at
from rkhs_lit.kernels import Gaussian, Kernel
from rkhs_lit.moore_aronszajn import Features, RKHSFunction
from rkhs_lit.pca import modes
from rkhs_lit.ridge import ridge_factor

# %% [2] The mass must be watched
def unit_mass(w) -> np.ndarray:
    """Weights divided by their sum, or by a tenth of the sum of their
    absolute values where that is more (:prf:ref:`def-filter-mass`)."""
    w = w / (np.abs(w).max() or 1.0)
    return w / (max(w.sum(), np.abs(w).sum() / 10) or 1.0)

# %% [3] The filter
@dataclass(frozen=True, eq=False, repr=False)
class Filtered(check.Record):
    """What a `KernelBayesFilter` has made of T observations
    (:prf:ref:`alg-kernel-filter`). Notes say how an embedding was found:
    "start", "posterior", "prediction", "restart" or "training"."""

    kernel: Kernel
    states: Sequence
    weights: np.ndarray       #: those of the embedding at time t in row t
    estimates: Sequence       #: a point for each embedding
    notes: tuple[str, ...]    #: how each of them was found

    def __repr__(self):
        T, n = self.weights.shape
        return f"Filtered({self.kernel}, T={T}, n={n})"

    @property
    def embeddings(self) -> tuple[RKHSFunction, ...]:
        """The embeddings of the hidden states, as functions."""
        Phi = Features(self.kernel, self.states, "states")
        return tuple(Phi @ w for w in self.weights)

    def expectation(self, g) -> np.ndarray:
        """Estimates Σ w_i g(x_i) of the expectation of g at each time,
        with g as for `ConditionalEmbedding.expectation`."""
        Phi = Features(self.kernel, self.states, "states")
        return self.weights @ values_at(g, Phi)

# %% [4] The filter
@dataclass(frozen=True, eq=False, repr=False)
class KernelBayesFilter(check.Record):
    """The kernel Bayes filter: hidden states from observations, learnt
    from a recording of both (:prf:ref:`thm-filter-recursion`).

    The recording is a trajectory of n + 1 states (kernel k) and their
    observations (kernel l), of which the first n are kept, or n states of
    any origin, observations and `next_states`. λ is added to the covariance
    operator of the states, at first to that of the observations; ε and
    `method` are those of `kernel_bayes_rule`, tol and max_rank those of
    `pivoted_cholesky`. The estimate is the "preimage" of an embedding if k
    is Gaussian, the weighted "mean" of the states, or the "state" where it
    is largest. Without `normalise` weights get no mass of one and may fade
    (:prf:ref:`def-filter-mass`, :prf:ref:`prop-filter-scale`).

    >>> from rkhs_lit.kernels import Delta
    >>> lamp = KernelBayesFilter(Delta(), Delta(), ["on", "off"] * 9,
    ...                          ["red", "dark"] * 9, 1e-3, 1e-6)
    >>> lamp.filter(["red", "dark", "red"]).estimates
    ('on', 'off', 'on')
    """

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
        k, after = self.k, self.next_states
        Phi = whole = Features(k, self.states, "states", "k")
        Psi = Features(self.l, self.observations, "observations", "l")
        if after is None:                            # one trajectory
            Phi, Phi_next, Psi = Phi[:-1], Phi[1:], Psi[:-1]
        else:
            Phi_next = Features(k, after, "next_states", "k")
            whole = Phi.joined(Phi_next)
        for other in (Psi, Phi_next):
            if not 0 < Phi.n == other.n:
                raise ValueError(f"{other.name} must be as many as states, "
                                 "at least two for one trajectory")

        check.choice(self.method, "method", METHODS)
        check.flag(self.normalise, "normalise")
        own = "preimage" if isinstance(k, Gaussian) else "state"
        estimate = check.choice(self.estimate, "estimate",
                                ("auto", "mean", "state", own))
        if estimate == "mean":
            check.as_points(Phi.points, "states")    # must be vectors

        phi = Coordinates(whole, self.tol, self.max_rank)
        gamma = Coordinates(Psi, self.tol, self.max_rank)
        vars(self).update(
            states=Phi.points, observations=Psi.points, Phi=Phi,
            next_states=Phi_next.points, Phi_next=Phi_next, phi=phi,
            gamma=gamma, F=phi.G[:Phi.n], F_next=phi.G[-Phi.n:], G=gamma.G,
            estimate=own if estimate == "auto" else estimate,
            sizes=check.frozen(np.sqrt(Phi.diag())),
            mass=unit_mass if self.normalise else np.asarray)
        vars(self).update(vars(self.retune(self.lam, self.eps)))

    def __repr__(self):
        return (f"KernelBayesFilter({self.k}, {self.l}, n={self.Phi.n}, "
                f"lam={self.lam:.6g}, eps={self.eps:.6g})")

    def predict(self, f: Embedding) -> RKHSFunction:
        """The embedding of the next state, from that of a state."""
        return self.Phi_next @ self.mass(self.prior @ self.phi.of(f, "f"))

    def update(self, y, prior: Embedding) -> RKHSFunction:
        """The embedding of a state, from the embedding of its prior
        distribution and an observation y of it."""
        W, _ = self._run(one_point(self.l, y, "y", "l"),
                         theta=self.phi.of(prior, "prior"))
        return self.Phi @ W[0]

    def step(self, y, previous: Embedding | None = None) -> RKHSFunction:
        """The embedding of a state, from an observation y of it and the
        embedding of the state before, if there was one."""
        W, _ = self._run(one_point(self.l, y, "y", "l"), previous)
        return self.Phi @ W[0]

    def filter(self, ys, previous: Embedding | None = None) -> Filtered:
        """The embeddings and estimates for a sequence of observations,
        the first of which follows on `previous`, if that is given. One
        that is None, or NaN, or a row of NaN of an array, is missing."""
        rows = ys if type(ys) is np.ndarray and ys.ndim else (
            check.as_sequence(ys, "ys"))
        there = np.array([y is not None and np.any(y == y) for y in rows])
        if not there.all():             # what stands there is not used
            check.same_columns(ys, self.gamma.Phi)
            ys = [y if t else self.observations[0]
                  for y, t in zip(rows, there)]
        W, notes = self._run(Features(self.l, ys, "ys", "l"), previous,
                             there=there)
        return Filtered(self.k, self.states, W, self._estimates(W), notes)

    def _run(self, at_ys, previous=None, theta=None, there=True):
        """The weights α⁺ after each observation that is there, and how
        they were found (:prf:ref:`alg-kernel-filter`, its list from the
        end); θ⁻ are the coordinates of the first prediction, if any."""
        if previous is not None:
            theta = self.M @ self.phi.of(previous, "previous")
        F, gammas, W, notes = self.F, self.gamma(at_ys), [], []
        seen = np.abs(gammas).max(axis=1) > 1e-8 * np.sqrt(at_ys.diag())
        for gamma, visible in zip(gammas, seen & there):
            resorts = [("training", np.full(len(F), 1 / len(F)))]
            if visible:
                resorts.append(("start" if theta is None else "restart",
                                self.start @ gamma))
            if theta is not None:
                w = self.mass(self.prior @ theta)
                resorts.append(("prediction", w))
                if visible:
                    resorts.append(("posterior", posterior_weights(
                        self.G, w, gamma, self.eps, self.method)))
            for note, alpha in resorts[::-1]:
                u = alpha / (np.abs(alpha).max() or 1.0)
                rounding = 1e-8 * (np.abs(u) @ self.sizes) * self.sizes
                if (F @ (F.T @ u) > rounding).any():         # usable
                    break
            W.append(self.mass(alpha))
            notes.append(note)
            theta = self.M @ (F.T @ W[-1])
        return check.frozen(W), tuple(notes)

    def locate(self, W) -> Sequence:
        """A point for each row of W, the weights of an embedding at the
        states, in the way that `estimate` says."""
        W = check.as_points(W, "W")
        if W.shape[1] != self.Phi.n:
            raise ValueError("W must have a weight for each of "
                             f"{self.Phi.n} states, got shape {W.shape}")
        return self._estimates(W)

    def _estimates(self, W):
        best = np.argmax((W @ self.F) @ self.F.T, axis=1)
        if self.estimate == "state":
            return self.Phi[best].points
        if self.estimate == "mean":
            X, means = check.as_points(self.states, "states"), []
            for j, u in zip(best, map(unit_mass, W)):
                if u.sum() < np.abs(u).sum() / 10:         # they cancel
                    u = unit_mass(np.maximum(u, 0.0))
                means.append(u @ X if u.any() else X[j])
            found = np.array(means)
        else:
            found, _ = modes(self.Phi, W, self.Phi[best])
        return check.frozen(found[:, 0] if np.ndim(self.states) == 1
                            else found)

    def retune(self, lam: float, eps: float) -> "KernelBayesFilter":
        """The same filter and features with other regularisers."""
        lam, eps = check.positive(lam, "lam"), check.positive(eps, "eps")
        prior, start = (check.frozen(cho_solve(ridge_factor(
            E.T @ E, self.Phi.n * lam, "n lam", name), E.T).T)
            for E, name in ((self.F, "k"), (self.G, "l")))
        other, M = object.__new__(KernelBayesFilter), self.F_next.T @ prior
        vars(other).update(vars(self), lam=lam, eps=eps, prior=prior,
                           start=start, M=check.frozen(M))
        return other

# %% [5] Choosing the parameters
@dataclass(frozen=True, eq=False, repr=False)
class FilterValidation(check.Record):
    """What `validate_filter` chose (:prf:ref:`def-filter-validation`)."""

    filter: KernelBayesFilter     #: the best, trained on the whole
    kernels: tuple[tuple[Kernel, Kernel], ...]
    lams: np.ndarray
    epsilons: np.ndarray
    errors: np.ndarray            #: for each pair of kernels, λ and ε
    best: tuple[int, int, int]    #: the place of the least of them

    def __repr__(self):
        return (f"FilterValidation({self.filter}, "
                f"error={self.errors[self.best]:.6g})")


def validate_filter(kernels: Sequence[tuple[Kernel, Kernel]], states,
                    observations, lams, epsilons, *, held_out: int,
                    method: str = "squared", estimate: str = "auto",
                    normalise: bool = True, tol: float = 1e-10,
                    max_rank: int | None = None) -> FilterValidation:
    """Choose kernels, λ and ε of a filter by its error at the end of
    the recording, where the last `held_out` states are estimated and not
    trained on (:prf:ref:`def-filter-validation`). The kernels are pairs
    (k, l), the states an array; the options are those of
    `KernelBayesFilter`."""
    X = check.as_points(states, "states").reshape(np.shape(states))
    Y = check.as_sequence(observations, "observations")
    if len(X) != len(Y):
        raise ValueError("observations must be as many as states "
                         f"({len(X)}), got {len(Y)}")
    cut = len(X) - check.whole(held_out, "held_out", 1)
    if cut < 2:
        raise ValueError("held_out must leave at least two of "
                         f"{len(X)} states for training, got {held_out}")
    for pair in check.as_sequence(kernels, "kernels"):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError("kernels must be a list of pairs (k, l) of "
                             f"kernels, got {pair!r} in it")
    lams = check.positives(lams, "lams")
    epsilons = check.positives(epsilons, "epsilons")
    options = dict(method=method, estimate=estimate, normalise=normalise,
                   tol=tol, max_rank=max_rank)
    errors = np.empty((len(kernels), len(lams), len(epsilons)))
    unit = np.abs(X).max() or 1.0               # so that no square is lost
    for p, (k, l) in enumerate(kernels):
        trained = KernelBayesFilter(k, l, X[:cut], Y[:cut], lams[0],
                                    epsilons[0], **options)
        for i, j in np.ndindex(*errors.shape[1:]):
            found = trained.retune(lams[i], epsilons[j]).filter(Y[cut:])
            gaps = (np.asarray(found.estimates) - X[cut:]) / unit
            errors[p, i, j] = np.sum(gaps**2) / len(gaps)    # Σ‖gap‖² / h
    p, i, j = map(int, np.unravel_index(errors.argmin(), errors.shape))
    chosen = KernelBayesFilter(*kernels[p], X, Y, lams[i], epsilons[j],
                               **options)                # on the whole
    with np.errstate(over="ignore"):
        errors = check.finite(errors * unit * unit, "states")
    return FilterValidation(chosen, tuple(map(tuple, kernels)), lams,
                            epsilons, errors, (p, i, j))
