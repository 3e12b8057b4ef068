"""Riesz: every continuous functional is an inner product"""
# The exported cells of book/riesz.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 7eb63c18c49da2d9

# %% [1] Riesz: every continuous functional is an inner product
import warnings
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, qr
from scipy.linalg.lapack import dpocon

import rkhs_lit.conventions as check

# %% [2] Fine print: three numerical decisions
def _system(gram, values, tol):
    G = check.real_array(gram, "gram")
    l = check.real_array(values, "values")
    if G.ndim != 2 or len(G) != G.shape[1]:
        raise ValueError(f"gram must be square, got shape {G.shape}")
    if l.ndim == 0 or len(l) != len(G):
        raise ValueError("values must have one row for each row of gram, "
                         f"got shape {l.shape}")
    if tol is None:
        tol = min(10 * len(G) * np.finfo(float).eps, 0.1)
    return G, l, check.tolerance(tol)

# %% [3] Fine print: three numerical decisions
def _scaled_gram(G, tol):
    """Norms d of the elements, and the Gram matrix S of the b_i / d_i."""
    d = np.sqrt(np.maximum(G.diagonal(), 0))
    d[d <= tol * d.max()] = d.max() or 1.0
    with np.errstate(over="ignore"):
        return d[:, None], G / d[:, None] / d


def _flaw(G, S, d):
    """What keeps S, the scaled G, from being a Gram matrix: how large,
    and in words."""
    with np.errstate(over="ignore"):
        gaps = {"be symmetric": np.abs(G - G.T) / d / d.T,
                "satisfy Cauchy–Schwarz": np.abs(S) - 1}
    wanted = max(gaps, key=lambda name: gaps[name].max())
    i, j = np.unravel_index(gaps[wanted].argmax(), G.shape)
    return gaps[wanted].max(), (
        f"{wanted}, but its entry [{i}, {j}] is {G[i, j]:.6g}, [{j}, {i}] "
        f"is {G[j, i]:.6g}, against {G[i, i]:.6g} and {G[j, j]:.6g} on the "
        "diagonal")

# %% [4] Fine print: three numerical decisions
@dataclass(frozen=True, eq=False)
class GramSolution(check.Record):
    """What `gram_solve` finds, column by column
    (:prf:ref:`prop-hidden`)."""

    coefficients: np.ndarray     #: c with G c = values
    hidden: np.ndarray           #: share of the values that rounding hides
    missing: np.ndarray          #: share of the values that G c misses
    least_norm: np.ndarray       #: every representer is at least as long
    rank: int                    #: so many directions are surely not zero
    #: two equal elements and the column in which their values differ
    twins: tuple | None = None

# %% [5] Fine print: three numerical decisions
def _solve_independent(S, right, tol):
    """The solution of S s = right if S is far from singular, or None."""
    try:
        factor = cho_factor(S)
    except LinAlgError:
        return None
    reciprocal, _ = dpocon(factor[0], np.abs(S).sum(axis=0).max())
    return cho_solve(factor, right) if reciprocal > tol else None


def _solve_on_range(lam, v, right, tol):
    """The same on the range of S = v diag(lam) v', and its null space."""
    largest = np.abs(lam).max()
    noise = (len(v) + 10) * np.finfo(float).eps * largest
    u = v.T @ right
    small = (lam <= tol * largest)[:, None]
    zero = small & (np.abs(u) <= tol)
    used = (lam > noise)[:, None] & ~zero
    s = v @ np.divide(u, lam[:, None], where=used, out=np.zeros_like(u))
    hidden, missing = (np.linalg.norm(np.where(part, u, 0), axis=0)
                       for part in (small & ~zero, ~used & ~zero))
    return GramSolution(s, hidden, missing,
                        missing / np.sqrt(4 * noise or 1),
                        int(np.sum(~small))), v[:, zero.all(axis=1)]

# %% [6] Fine print: three numerical decisions
def _contradiction(G, l):
    """Places of two equal rows of G with unequal values, or None."""
    _, first, group = np.unique(G, axis=0, return_index=True,
                                return_inverse=True)
    twin = first[group.reshape(-1)]
    gap = np.abs(l - l[twin])
    wrong = gap > 1e-10 * np.maximum(np.abs(l), np.abs(l[twin]))
    if not wrong.any():
        return None
    j, column = np.argwhere(wrong)[0]
    return int(twin[j]), int(j), int(column)

# %% [7] Fine print: three numerical decisions
def gram_solve(gram, values, *, tol: float | None = None,
               slack: float = 0.0, name: str = "gram") -> GramSolution:
    """Solve G c = l for a Gram matrix of any condition, and say what
    rounding leaves in doubt (:prf:ref:`prop-hidden`).

    `gram`, `values` and `tol` are those of `riesz_representer`. A matrix
    that cannot be a Gram matrix raises a ValueError, which calls it by
    `name`; one that fails by at most `slack` is solved with that as `tol`.

    >>> gram_solve([[1, 1], [1, 1]], [3, 2]).least_norm > 1e6
    array([ True])
    """
    G, l, tol = _system(gram, values, tol)
    slack = check.tolerance(slack, "slack", zero=True)
    d, S = _scaled_gram(G, tol)
    size, flaw = _flaw(G, S, d)
    if size > max(tol, slack):
        raise ValueError(f"{name} must {flaw}")
    l, null = l.reshape(len(G), -1), np.empty((len(G), 0))
    with np.errstate(over="ignore", invalid="ignore"):
        right = check.finite(l / d, "values, divided by gram,")
        peak = np.abs(right).max(axis=0)  # whose square may overflow
        peak[peak == 0] = 1
        scale = peak * np.linalg.norm(right / peak, axis=0)
        scale[scale == 0] = 1
        right, none = right / scale, np.zeros(len(scale))
        S = (S + S.T) / 2
        found = GramSolution(_solve_independent(S, right, tol), none, none,
                             none, len(G))
        if found.coefficients is None:    # they may be dependent
            lam, v = eigh(S)
            if -lam[0] > size * np.abs(lam).max():
                size = -lam[0] / np.abs(lam).max()
                flaw = ("satisfy a'Ga >= 0 for all a, but scaled to unit "
                        f"diagonal it has the eigenvalue {lam[0]:.6g}")
            found, null = _solve_on_range(lam, v, right, tol)
            found = replace(found, least_norm=scale * found.least_norm,
                            twins=_contradiction(G, l))
    if tol < size <= slack:
        return gram_solve(G, values, tol=slack, name=name)
    if size > tol:
        raise ValueError(f"{name} must {flaw}")
    with np.errstate(over="ignore", invalid="ignore"):
        c = check.finite(found.coefficients * scale / d,
                         "values, divided by gram,")
    if null.size:
        null = qr(null / d, mode="economic")[0]
        c = c - null @ (null.T @ c)
    return replace(found, coefficients=c.reshape(np.shape(values)))

# %% [8] Fine print: three numerical decisions
def _judge(found, l):
    """Refuse what no representer explains; warn of what rounding hides."""
    def name(j):
        return f"values[:, {j}]" if found.hidden.size > 1 else "values"

    if found.twins:
        i, j, column = found.twins
        a, b = l.reshape(len(l), -1)[[i, j], column]
        raise ValueError(
            f"{name(column)} must be equal at equal elements, but at "
            f"elements {i} and {j} they are {a:.6g} and {b:.6g}: there is "
            "no representer")
    j = int(found.missing.argmax())
    if found.missing[j] > 1e-6:
        raise ValueError(
            f"{name(j)} must be those of a bounded functional, but at "
            "combinations of the elements whose norm is zero up to "
            "rounding they are not zero: there is no representer of norm "
            f"below {found.least_norm[j]:.3g}, and whether there is a "
            "longer one cannot be decided at this precision")
    j = int(found.hidden.argmax())
    if found.hidden[j] > 0:
        warnings.warn(
            f"{name(j)} at combinations of the elements whose norm is zero "
            "up to rounding decide the coefficients: none of their digits "
            "is certain", check.PrecisionWarning, stacklevel=3)

# %% [9] The representer on a computer
def riesz_representer(gram, values, *,
                      tol: float | None = None) -> np.ndarray:
    """Coefficients of a Riesz representer (:prf:ref:`thm-riesz-gram`).

    The functional with values ℓ(b_i) = l_i on the span of b_1, ..., b_n
    is the inner product with c_1 b_1 + ... + c_n b_n, where G c = l, for
    the inner products G_ij = ⟨b_i, b_j⟩ in `gram`; the b_i may be
    dependent, and `values` may have several functionals in columns. For
    dependent elements c has the least Euclidean norm. If `values`
    contradict a dependence there is no representer, and a ValueError says
    so. A `PrecisionWarning` says that rounding in `gram` decides c. What
    counts as zero relative to one is `tol`, by default 10 n ε.

    Evaluation at 1 of a + b x on [0, 1] is represented by 6 x - 2:

    >>> print(riesz_representer([[1, 1/2], [1/2, 1/3]], [1, 1]).round(6))
    [-2.  6.]
    """
    found = gram_solve(gram, values, tol=tol)
    _judge(found, np.asarray(values, dtype=float))
    return np.array(found.coefficients)
