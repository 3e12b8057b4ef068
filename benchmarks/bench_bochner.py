"""Low-rank factors of 100 000 points: time, memory, and scikit-learn's time.

Times are the best of three, and only their ratio in one run means anything.
Run with ``make bench``.
"""

import time

import numpy as np
from measure import best, peak
from sklearn.kernel_approximation import RBFSampler

from rkhs_lit import (
    Gaussian,
    nystrom_features,
    pivoted_cholesky,
    random_fourier_features,
)


def main():
    rng = np.random.default_rng(0)
    n, k = 100_000, Gaussian(1.0)
    X = rng.normal(size=(n, 2))

    # First of all, while the peak of the process is still low.
    before, start = peak(), time.perf_counter()
    F, pivots = pivoted_cholesky(k, X, tol=0, max_rank=100, return_pivots=True)
    seconds = time.perf_counter() - start
    error = (n - np.sum(F**2)) / n
    print(f"pivoted Cholesky, n = {n}, rank {F.shape[1]} (the matrix would take "
          f"{8 * n * n / 2**30:.0f} GiB):\n  {seconds:.1f} s, peak of the process "
          f"{peak():.0f} MiB ({before:.0f} before), relative trace error {error:.1e}")

    phi = nystrom_features(k, X[pivots])
    print(f"Nyström features of the same points from 100 landmarks: "
          f"{best(lambda: phi(X)):.1f} s")

    D = 500
    print(f"random Fourier features, n = {n}, D = {D}: scikit-learn's time / ours")
    for d in (2, 10, 50):
        X = rng.normal(size=(n, d))
        sampler = RBFSampler(gamma=0.5, n_components=D, random_state=0).fit(X)
        peer = best(lambda: sampler.transform(X))
        for paired in (True, False):
            z = random_fourier_features(k, D, dim=d, rng=0, paired=paired)
            ours = best(lambda: z(X))
            form = "paired" if paired else "phase"
            print(f"  d = {d:2}, {form:6}: {peer:5.2f} s / {ours:5.2f} s = "
                  f"{peer / ours:4.1f}")


if __name__ == "__main__":
    main()
