"""Duality: the price of a constraint"""
# The exported cells of book/duality.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: a1cbfe009c144e57

# %% [1] Duality: the price of a constraint
import numpy as np

import rkhs_lit.conventions as check
from rkhs_lit.conventions import as_points

# %% [2] Fenchel duality: a price for every loss
def conjugate(points, values, slopes) -> np.ndarray:
    """F*(γ) = max_i (⟨γ, s_i⟩ - F(s_i)) at the m `slopes` γ, for the
    function with the n `values` F(s_i), not all of them infinite, at the
    `points` s_i and infinite elsewhere (:prf:ref:`def-fenchel-conjugate`).

    >>> s = np.linspace(-4, 4, 9)
    >>> conjugate(s, s**2 / 2, [0.0, 1.0, 2.0])
    array([0. , 0.5, 2. ])
    """
    s, gamma = as_points(points, "points"), as_points(slopes, "slopes")
    F = check.plain_array(values, "values")
    if (F.dtype.kind not in "biuf" or F.shape != (len(s),)
            or not -np.inf < F.min() < np.inf):             # F is proper
        raise ValueError("values must be a number or inf for each point, "
                         "and a number for one")
    if gamma.shape[1] != s.shape[1]:
        raise ValueError(f"slopes must have {s.shape[1]} coordinates as "
                         f"the points have, got shape {gamma.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        top = np.max(gamma @ s.T - F, axis=1)    # max_i ⟨γ, s_i⟩ - F(s_i)
    return check.finite(top, "slopes")
