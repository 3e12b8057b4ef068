"""The test of conditional independence, against full matrices and eigenvalues.

The straightforward version inverts an n × n matrix, multiplies the residual
Gram matrices out, and draws the null distribution, a weighted sum of squares
of normal variables, with the eigenvalues of their product as weights. It takes
the residuals for independent errors, so its p-values differ. Smooth
kernels (Gaussian) need few columns of their Gram matrices; those of Laplace
kernels have full rank and are factorised whole. Times are the best of three
for the test and one run for the peer, and only their ratio in one run means
anything. Run with ``make bench``.
"""

import time

import numpy as np
from measure import best, peak

from rkhs_lit import Gaussian, Laplace, centre, conditional_independence_test, median_heuristic


def by_eigenvalues(kernels, points, lam, draws=1000, keep=1e-5):
    """Statistic and p-value by eigendecompositions, as it is often coded."""
    n = len(points[0])
    Kx, Ky, Kz = (k(v) for k, v in zip(kernels, points))
    R = n * lam * np.linalg.inv(centre(Kz) + n * lam * np.eye(n))
    W = (R @ centre(Kx) @ R) * (R @ centre(Ky) @ R) * (1 + Kz) / 2
    weights = np.linalg.eigvalsh(W)
    weights = weights[weights > keep * weights[-1]]
    null = np.random.default_rng(0).chisquare(1, size=(draws, len(weights))) @ weights
    statistic = W.sum()
    return statistic / n**2, (1 + np.sum(null >= statistic)) / (1 + draws)


def main():
    rng = np.random.default_rng(0)
    before = peak()
    for family in (Gaussian, Laplace):
        for n in (1000, 2000):
            z, u, v = rng.normal(size=(3, n))
            points = z**2 + u / 2, z**2 + v / 2, z
            kernels = [family(median_heuristic(p)) for p in points]
            found = conditional_independence_test(*kernels, *points, lam=1e-6)
            ours = best(lambda: conditional_independence_test(*kernels, *points, lam=1e-6))
            memory = peak()
            start = time.perf_counter()
            statistic, pvalue = by_eigenvalues(kernels, points, 1e-6)
            peer = time.perf_counter() - start
            print(f"{family.__name__:8} n = {n}: eigenvalues {peer:5.2f} s / ours {ours:5.2f} s = "
                  f"{peer / ours:4.1f}; p-values {pvalue:.3f} and {found.pvalue:.3f}; relative "
                  f"gap of the statistics {abs(found.statistic / statistic - 1):.0e}; peak "
                  f"{memory:.0f} MiB ({before:.0f} before)", flush=True)


if __name__ == "__main__":
    main()
