"""Gaussian processes: how sure is a fit?"""
# The exported cells of book/gaussian_process.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 1700aa6dadcce541

# %% [1] Gaussian processes: how sure is a fit?
import numpy as np
from scipy.linalg import cho_solve, solve_triangular

import rkhs_lit.conventions as check
from rkhs_lit.kernels import Gaussian, Kernel, squared_distances
from rkhs_lit.moore_aronszajn import Features
from rkhs_lit.ridge import ridge_factor

# %% [2] The Bayesian view
def gp_posterior(kernel: Kernel, X, y, noise: float,
                 T) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the covariance of a Gaussian process f at points T,
    given noisy values at X (:prf:ref:`thm-gp-posterior`). The mean is
    that of ``ridge(kernel, X, y, noise)``; for the covariance of new
    observations add `noise` to the diagonal.

    The kernel is the covariance of the process, and noise the *variance* of
    the noise, scikit-learn's ``GaussianProcessRegressor(alpha=noise)``.

    >>> gp_posterior(Gaussian(1.0), [0.0], [2.0], 1.0, [0.0, 100.0])
    (array([1., 0.]), array([[0.5, 0. ],
           [0. , 1. ]]))
    """
    eps = np.finfo(float).eps
    Phi, Psi = Features(kernel, X), Features(kernel, T, "T")
    y = check.vector(y, "y", Phi.n)
    K_tx, K_tt = Psi.gram(Phi), Psi.gram()
    L, _ = factor = ridge_factor(Phi.gram(), noise, "noise")
    V = solve_triangular(L, K_tx.T, lower=True)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = check.finite(K_tx @ cho_solve(factor, y), "y")
    covariance = K_tt - V.T @ V
    # No variance is negative: rounding where the posterior is sure.
    variance = np.maximum(covariance.diagonal(), 0.0)
    np.fill_diagonal(covariance, variance)
    i = np.argmin(variance - 4 * eps * K_tt.diagonal())
    check.certain(variance[i], 4 * eps * K_tt[i, i],
                  f"the variance at point {i} of T")
    return mean, covariance

# %% [3] Choosing parameters by the evidence
def gaussian_derivative(X, sigma: float) -> np.ndarray:
    """The derivative exp(-q/2) q / σ, q = ‖x_i - x_j‖² / σ², of the
    Gaussian Gram matrix with respect to its width, for
    `log_marginal_likelihood` (:prf:ref:`thm-gp-evidence`).

    >>> gaussian_derivative([0.0, 2.0], 1.0).round(6)
    array([[0.      , 0.541341],
           [0.541341, 0.      ]])
    """
    k = Gaussian(sigma)
    X = Features(k, X).seen
    with np.errstate(over="ignore"):
        q = np.minimum(squared_distances(X, X) / k.sigma**2, 1e4)
    return np.exp(-q / 2) * q / k.sigma


def log_marginal_likelihood(kernel: Kernel, X, y, noise: float, *,
                            derivatives=(), return_gradient: bool = False):
    """The log density of noisy values of a Gaussian process, and with
    ``return_gradient=True`` its derivatives (:prf:ref:`thm-gp-evidence`):
    the first for `noise`, then one for each of `derivatives`, (n, n) arrays
    like `gaussian_derivative` that differentiate the Gram matrix by a
    parameter of the kernel. Other arguments as for `gp_posterior`.

    >>> round(log_marginal_likelihood(Gaussian(1.0), [0.0], [0.0], 1.0), 6)
    -1.265512
    """
    Phi = Features(kernel, X)
    n, y = Phi.n, check.vector(y, "y", Phi.n)
    if not isinstance(derivatives, (list, tuple, np.ndarray)):
        derivatives = [derivatives]
    slopes = [check.real_array(D, "derivatives", 2) for D in derivatives]
    for D in slopes:
        if D.shape != (n, n) or (
                np.abs(D - D.T).max() > 1e-8 * np.abs(D).max()):
            raise ValueError(f"derivatives must be symmetric ({n}, {n}) "
                             f"arrays, got shape {D.shape}")
    if not check.flag(return_gradient, "return_gradient") and slopes:
        raise ValueError("derivatives are for return_gradient=True")

    L, _ = factor = ridge_factor(Phi.gram(), noise, "noise")
    with np.errstate(over="ignore", invalid="ignore"):
        alpha = cho_solve(factor, y)
        value = float(check.finite(
            -y @ alpha / 2 - np.log(L.diagonal()).sum()
            - n / 2 * np.log(2 * np.pi), "y"))
        if not return_gradient:
            return value
        P = cho_solve(factor, np.eye(n))
        gradient = [alpha @ dC @ alpha - np.sum(P * dC)
                    for dC in (np.eye(n), *slopes)]
    return value, check.finite(np.array(gradient) / 2, "y")
