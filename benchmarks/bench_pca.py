"""Ten components of kernel PCA, n = 5000, against scikit-learn; and many points.

Times are the best of three, and only their ratio in one run means anything.
Run with ``make bench``.
"""

import time

import numpy as np
from measure import best, peak
from sklearn.decomposition import KernelPCA

from rkhs_lit import Gaussian, kernel_pca


def main():
    rng = np.random.default_rng(0)

    # First of all, while the peak of the process is still low.
    n = 100_000
    X = rng.normal(size=(n, 2))
    before, start = peak(), time.perf_counter()
    pca = kernel_pca(Gaussian(1.0), X, 10, max_rank=100)
    seconds = time.perf_counter() - start
    print(f"low rank, n = {n}, 100 landmarks (the matrix would take "
          f"{8 * n * n / 2**30:.0f} GiB):\n  {seconds:.1f} s, peak of the process "
          f"{peak():.0f} MiB ({before:.0f} before), "
          f"{pca.eigenvalues.sum() / pca.variance:.0%} of the variance in ten components")

    n = 5000
    print(f"10 components, n = {n}: scikit-learn's time / ours (largest relative "
          "difference of the eigenvalues)")
    for d, sigma in ((2, 1.0), (10, 3.0)):
        X = rng.normal(size=(n, d))
        ours = best(lambda: kernel_pca(Gaussian(sigma), X, 10))
        low = best(lambda: kernel_pca(Gaussian(sigma), X, 10, max_rank=200))
        exact = kernel_pca(Gaussian(sigma), X, 10).eigenvalues
        approximate = kernel_pca(Gaussian(sigma), X, 10, max_rank=200).eigenvalues
        print(f"  d = {d:2}: ours {ours:5.2f} s, with 200 landmarks {low:5.2f} s "
              f"(eigenvalues differ by {max(1 - approximate / exact):.1e})")
        for solver, repeats in (("dense", 1), ("arpack", 3)):
            peer = KernelPCA(10, kernel="rbf", gamma=0.5 / sigma**2,
                             eigen_solver=solver, random_state=0)
            theirs = best(lambda: peer.fit(X), repeats)
            gap = np.abs(n * exact / peer.eigenvalues_ - 1).max()
            print(f"    {solver:6}: {theirs:5.2f} s / {ours:5.2f} s = "
                  f"{theirs / ours:4.1f} ({gap:.0e})")


if __name__ == "__main__":
    main()
