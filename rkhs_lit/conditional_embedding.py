"""Conditional embeddings: a distribution for every x

The exported cells of the chapter ``book/conditional_embedding.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: bf30a0ef4c13f63d

# %% [1] Conditional embeddings: a distribution for every x
import re
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.linalg import cho_solve

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points
from rkhs_lit.bochner import pivoted_cholesky
from rkhs_lit.cross_covariance import (RKHSOperator, _named_space, _points,
                                       _power, _read)
from rkhs_lit.kernels import Kernel, Pairs, gram_dot
from rkhs_lit.moore_aronszajn import RKHSFunction
from rkhs_lit.ridge import (_MAX, _at, ridge_factor, _penalty, _shrinkage,
                            _spectrum)


# %% [2] The estimator
@contextmanager
def _reworded(old, new):
    """Errors in this block say `new` where they said `old`."""
    try:
        yield
    except ValueError as error:
        raise ValueError(re.sub(old, new, str(error))) from None


_KERNEL = "^(the )?kernel"                  # what earlier chapters say


def _sample(k, l, X, Y):
    """The two kernels and the pairs of points, checked."""
    for name, kernel in ("k", k), ("l", l):
        _named_space(kernel, name)
    X, Y = _points(k, X, "X"), _points(l, Y, "Y")
    if len(X) != len(Y):
        raise ValueError(f"Y must have as many points as X ({len(X)}), got "
                         f"{len(Y)}")
    for name, kernel, points in ("k", k, X), ("l", l, Y):
        with _reworded(_KERNEL, name):
            least = kernel.diag(points).min()
        if least < 0:
            raise ValueError(f"{name} must be positive definite, but at two"
                             f" equal points it is {least:.6g}")
    return X, Y


def _shift(n, lam, name="lam"):
    """The number nλ beside a Gram matrix."""
    if not np.all(np.asarray(lam) <= _MAX / n):
        raise ValueError(f"{name} must be smaller: n lam overflows")
    return n * lam


# %% [3] The estimator
def _one_point(x):
    """A list with the one point x."""
    if isinstance(x, Pairs):
        if len(x) != 1:
            raise ValueError(f"x must be one point, got {len(x)} pairs")
        return x
    return [x]


def _table(g, l, Y):
    """The numbers g(y_i), one row for each y."""
    if isinstance(g, RKHSFunction):
        with _reworded(" of the operator", ""):
            return _read(g, l, Y, "g")
    if isinstance(Y, tuple) and all(isinstance(y, Real) for y in Y):
        Y = np.array(Y)                      # so that g can compute
    values = g(Y) if callable(g) else g
    table = as_points(values, "g")
    if len(table) != len(Y):
        raise ValueError(f"g must give one value, or one row, for each of "
                         f"{len(Y)} points, got shape {np.shape(values)}")
    return table[:, 0] if np.ndim(values) == 1 else table


def _bounded(values, otherwise):
    if not np.isfinite(values).all():
        raise ValueError(otherwise)
    return values


# %% [4] The estimator
class _Fit:
    def __post_init__(self):
        X, Y = _sample(self.k, self.l, self.X, self.Y)
        lam = _penalty(self.lam)
        with _reworded(_KERNEL, "k"):
            L, lower = ridge_factor(self.k(X), _shift(len(X), lam), "n lam")
        L.setflags(write=False)
        for name, value in (("X", X), ("Y", Y), ("lam", lam),
                            ("_cholesky", (L, lower))):
            object.__setattr__(self, name, value)

    def __repr__(self):
        return (f"ConditionalEmbedding({self.k} -> {self.l}, "
                f"n={len(self.X)}, lam={self.lam:.6g})")

    def _solve(self, B):
        with np.errstate(over="ignore", invalid="ignore"):
            return _bounded(cho_solve(self._cholesky, B), "lam must be "
                            "larger, or the values smaller: the weights "
                            "overflow")

    def _weights_at(self, x):
        with _reworded("^T ", "x must be one point like those of X, but as "
                       "a list of one, T "):
            return self.weights(_one_point(x))[:, 0]

    def _ridge(self, values, T):
        size = _power(np.abs(values).max()) or 1.0
        w = self._solve(values / size)
        with np.errstate(over="ignore", invalid="ignore"):
            return _bounded(size * _at(self.k, T, lambda T: gram_dot(
                self.k, T, self.X, w)), "g or T is too large: the "
                "expectations overflow")


# %% [5] The estimator
@dataclass(frozen=True, eq=False, repr=False)
class ConditionalEmbedding(_Fit):
    """What `conditional_embedding` makes: estimates of the embeddings of
    Y given X = x, for all x (:prf:ref:`thm-ce-estimator`).

    Attributes
    ----------
    k : Kernel
    l : Kernel
    X : sequence of n points
    Y : sequence of n points
    lam : float
        The number λ that is added to the operator C_XX.
    """

    k: Kernel
    l: Kernel
    X: Sequence
    Y: Sequence
    lam: float

    def __call__(self, x) -> RKHSFunction:
        """The embedding for one point x, a function of H_l."""
        return RKHSFunction(self.l, self.Y, self._weights_at(x))

    def weights(self, T) -> np.ndarray:
        """(K + nλI)⁻¹ k_X(t) for the points T, an (n, m) array."""
        return self._solve(_at(self.k, T, lambda T: self.k(self.X, T)))

    def expectation(self, g, T) -> np.ndarray:
        """Estimates of E[g(Y) | X = t] for the points T. Here g is a
        function of H_l, a function that makes n numbers (or n rows of
        numbers) of the sequence Y, or the array of these numbers."""
        return self._ridge(_table(g, self.l, self.Y), T)

    def transport(self, f: RKHSFunction) -> RKHSFunction:
        """The function C_YX (C_XX + λ)⁻¹ f of H_l, for f in H_k."""
        with _reworded("Y of the operator", "X"):
            values = _read(f, self.k, self.X, "f")
        return RKHSFunction(self.l, self.Y, self._solve(values))

    def operator(self) -> RKHSOperator:
        """The operator C_YX (C_XX + λ)⁻¹ from H_k to H_l."""
        return RKHSOperator(self.l, self.Y, self.k, self.X,
                            self._solve(np.eye(len(self.X))))


# %% [6] The estimator
def conditional_embedding(k: Kernel, l: Kernel, X, Y,
                          lam: float) -> ConditionalEmbedding:
    """Estimate the embeddings of the conditional distributions of Y
    given X = x, for all x (:prf:ref:`thm-ce-estimator`).

    Parameters
    ----------
    k, l : Kernel
        Positive definite, on the points X and on the points Y.
    X, Y : sequences of n points
        The pairs (x_i, y_i).
    lam : float
        The number λ > 0 that is added to the operator C_XX, so that nλ
        is added to the Gram matrix of X.

    Returns
    -------
    ConditionalEmbedding
        m with m(x) the function Σ w_i(x) l(y_i, ·), where
        w(x) = (K + nλI)⁻¹ k_X(x).

    Examples
    --------
    Two groups, which a delta kernel keeps apart; with nλ = 1 a group of
    three is averaged with the weights 1/(3 + 1):

    >>> from rkhs_lit.kernels import Delta
    >>> m = conditional_embedding(Delta(), Delta(), list("aaabb"),
    ...                           list("uuvvv"), 0.2)
    >>> m("a")(["u", "v"]).round(6)
    array([0.5 , 0.25])
    """
    return ConditionalEmbedding(k, l, X, Y, lam)


# %% [7] Choosing lambda
def embedding_leave_one_out(k: Kernel, l: Kernel, X, Y,
                            lams) -> np.ndarray:
    """Squared distances of l(y_i, ·) from the embedding at x_i that was
    estimated without pair i (:prf:ref:`prop-ce-loo`).

    Parameters
    ----------
    k, l, X, Y : as for `conditional_embedding`
    lams : (L,) array
        Numbers λ > 0 in any order.

    Returns
    -------
    (L, n) array
        A row for each λ; its mean is the criterion to minimise. The
        other n - 1 pairs are fitted with the same nλ.

    Examples
    --------
    Two points that the kernel cannot compare predict 0 for each other:

    >>> from rkhs_lit.kernels import Gaussian
    >>> embedding_leave_one_out(Gaussian(1.0), Gaussian(1.0),
    ...                         [0.0, 100.0], [3.0, 5.0], [0.1])
    array([[1., 1.]])
    """
    X, Y = _sample(k, l, X, Y)
    shifts = _shift(len(X), check.positives(lams, "lams"), "lams")
    with _reworded(_KERNEL, "l"):
        G = pivoted_cholesky(l, Y, tol=0)
    with _reworded(_KERNEL, "k"):
        d, U, size = _spectrum(k(X))
    c = _shrinkage(d, size, shifts, "n lams")
    Z, squares = U.T @ G, U**2
    with np.errstate(over="ignore", invalid="ignore"):
        return _bounded(np.array([
            np.sum((U @ (row[:, None] * Z)) ** 2, axis=1)
            / (squares @ row) ** 2 for row in c]),
            "l is too large: the squared distances overflow")
