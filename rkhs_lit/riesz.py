"""Riesz: every continuous functional is an inner product

The exported cells of the chapter ``book/riesz.ipynb``, in its order.
"""
# Generated. Edit the chapter, then `make tangle`; or edit inside the cells
# below, then `make untangle`. `make test` fails while the two differ.
# Cells: e13cf53e6329d5b5

# %% [1] Riesz: every continuous functional is an inner product
from numbers import Real

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, qr
from scipy.linalg.lapack import dpocon

import rkhs_lit.conventions as check


# %% [2] Three numerical decisions
def _system(gram, values, tol):
    G = check.real_array(gram, "gram")
    l = check.real_array(values, "values")
    if G.ndim != 2 or G.shape[0] != G.shape[1]:
        raise ValueError(f"gram must be square, got shape {G.shape}")
    n = len(G)
    if l.ndim not in (1, 2) or len(l) != n:
        raise ValueError(f"values must have shape ({n},) or ({n}, r) like "
                         f"gram, got shape {l.shape}")
    if tol is None:
        tol = 10 * n * np.finfo(float).eps
    if not (isinstance(tol, Real) and 0 < tol < 1):
        raise ValueError("tol must be a number between 0 and 1, got "
                         f"{tol!r}")
    return G, l, tol


def _check_size(numbers):
    if not np.isfinite(numbers).all():
        raise ValueError("values are too large for gram: the "
                         "coefficients overflow")


# %% [3] Three numerical decisions
def _scaled_gram(G, tol):
    """Norms d of the elements, and the Gram matrix S of the b_i / d_i."""
    diagonal = G.diagonal()
    i, largest = diagonal.argmin(), diagonal.max()
    if diagonal[i] < -tol * max(largest, 0):
        raise ValueError("gram must satisfy a'Ga >= 0 for all a, but "
                         f"gram[{i}, {i}] = {G[i, i]:.6g} is negative")
    d = np.sqrt(np.maximum(diagonal, 0))
    d[d <= tol * d.max()] = d.max() if largest > 0 else 1

    def place(excess):
        return np.unravel_index(excess.argmax(), excess.shape)

    with np.errstate(over="ignore"):
        S = G / d[:, None] / d
        gap = np.abs(G - G.T) / d[:, None] / d
    if gap.max() > tol:
        i, j = place(gap)
        raise ValueError(f"gram must be symmetric, but gram[{i}, {j}] = "
                         f"{G[i, j]:.6g}, gram[{j}, {i}] = {G[j, i]:.6g}")
    if np.abs(S).max() > 1 + tol:
        i, j = place(np.abs(S))
        raise ValueError(
            "gram must satisfy Cauchy–Schwarz, but "
            f"gram[{i}, {j}] = {G[i, j]:.6g} against gram[{i}, {i}] = "
            f"{G[i, i]:.6g}, gram[{j}, {j}] = {G[j, j]:.6g}")
    return d[:, None], (S + S.T) / 2


# %% [4] Three numerical decisions
def _solve_independent(S, right, tol):
    try:
        factor = cho_factor(S)
    except LinAlgError:
        return None
    reciprocal, _ = dpocon(factor[0], np.abs(S).sum(axis=0).max())
    return cho_solve(factor, right) if reciprocal > tol else None


def _solve_on_range(S, right, tol):
    eigenvalues, v = eigh(S)
    largest = np.abs(eigenvalues).max()
    if eigenvalues[0] < -tol * largest:
        raise ValueError("gram must satisfy a'Ga >= 0 for all a, but "
                         "scaled to unit diagonal it has the eigenvalue "
                         f"{eigenvalues[0]:.6g}")
    positive = eigenvalues > tol * largest
    basis, null = v[:, positive], v[:, ~positive]
    peak = np.abs(right).max(axis=0)
    right = right / np.where(peak > 0, peak, 1)
    s = basis @ ((basis.T @ right) / eigenvalues[positive, None])
    # Values at elements of norm zero: what rounding in S can explain, and
    # in no case more than a millionth of all values.
    excess = np.linalg.norm(null.T @ right, axis=0)
    size = np.linalg.norm(right, axis=0)
    allowed = tol * (largest * np.linalg.norm(s, axis=0) + size)
    wrong = np.flatnonzero(excess > np.minimum(allowed, 1e-6 * size))
    if wrong.size:
        j = wrong[0]
        column = f"[:, {j}]" if right.shape[1] > 1 else ""
        raise ValueError(
            f"values{column} must be those of a bounded functional, but a "
            "combination of the elements with norm zero has the value "
            f"{excess[j] * peak[j]:.6g}: there is no representer")
    return s * peak, null


# %% [5] Three numerical decisions
def riesz_representer(gram, values, *,
                      tol: float | None = None) -> np.ndarray:
    """Coefficients of a Riesz representer (:prf:ref:`thm-riesz-gram`).

    The functional with values ℓ(b_i) = l_i on the span of b_1, ..., b_n
    is the inner product with c_1 b_1 + ... + c_n b_n, where G c = l.

    Parameters
    ----------
    gram : (n, n) array
        Inner products G_ij = ⟨b_i, b_j⟩; the b_i may be dependent.
    values : (n,) or (n, r) array
        Values at b_1, ..., b_n of one functional, or of r in columns.
    tol : float, optional
        What counts as zero relative to one; by default 10 n ε.

    Returns
    -------
    array
        The coefficients c, of the shape of `values`; for dependent
        elements those of least Euclidean norm. If `values` contradict a
        dependence there is no representer, and a ValueError says so.

    Examples
    --------
    Evaluation at 1 of a + b x on [0, 1] is represented by 6 x - 2:

    >>> print(riesz_representer([[1, 1/2], [1/2, 1/3]], [1, 1]).round(6))
    [-2.  6.]
    """
    G, l, tol = _system(gram, values, tol)
    d, S = _scaled_gram(G, tol)
    null = np.empty((len(G), 0))
    with np.errstate(over="ignore"):
        right = l.reshape(len(G), -1) / d
        _check_size(right)
        s = _solve_independent(S, right, tol)
        if s is None:    # the elements are dependent
            s, null = _solve_on_range(S, right, tol)
        c = s / d
        _check_size(c)
    if null.size:
        null = qr(null / d, mode="economic")[0]
        c = c - null @ (null.T @ c)
    return c.reshape(l.shape)
