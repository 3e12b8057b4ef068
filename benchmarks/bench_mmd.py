"""The MMD test with 1000 permutations: all splits at once, and one by one.

The loop permutes the rows and columns of the same Gram matrix and takes the
means of its blocks, once for each permutation. Times are the best of three
(the loop runs once), and only their ratio in one run means anything. Run with
``make bench``.
"""

import time

import numpy as np
from measure import best, peak

from rkhs_lit import Gaussian, median_heuristic, mmd2_biased, mmd2_unbiased, mmd_test

B = 1000


def loop(kernel, X, Y, rng):
    """The p-value, with the statistic computed anew for each permutation."""
    m = len(X)
    K = kernel(np.concatenate([X, Y]))

    def statistic(K):
        return K[:m, :m].mean() + K[m:, m:].mean() - 2 * K[:m, m:].mean()

    actual = statistic(K)
    null = np.empty(B)
    for b in range(B):
        order = rng.permutation(len(K))
        null[b] = statistic(K[np.ix_(order, order)])
    return (1 + np.sum(null >= actual - 1e-12)) / (1 + B)


def main():
    rng = np.random.default_rng(0)

    # First of all, while the peak of the process is still low.
    n = 10_000
    X, Y, k = rng.normal(size=(n, 2)), rng.normal(size=(n, 2)), Gaussian(1.0)
    before, start = peak(), time.perf_counter()
    mmd2_biased(k, X, Y)
    seconds = time.perf_counter() - start
    print(f"MMD² of two samples of {n} points (the matrix would take "
          f"{8 * 4 * n * n / 2**30:.0f} GiB):\n  {seconds:.1f} s, unbiased "
          f"{best(lambda: mmd2_unbiased(k, X, Y), 1):.1f} s, peak of the process "
          f"{peak():.0f} MiB ({before:.0f} before)")

    print(f"test with {B} permutations: time of the loop / ours")
    for N in (1000, 2000):
        X = rng.normal(size=(N // 2, 5))
        Y = rng.normal(size=(N // 2, 5)) + 0.1
        k = Gaussian(median_heuristic(np.concatenate([X, Y])))
        ours = best(lambda: mmd_test(k, X, Y, n_permutations=B, rng=0))
        start = time.perf_counter()
        pvalue = loop(k, X, Y, rng)
        peer = time.perf_counter() - start
        result = mmd_test(k, X, Y, n_permutations=B, rng=0)
        print(f"  N = {N}: {peer:6.2f} s / {ours:6.2f} s = {peer / ours:5.1f}   "
              f"(p-values {pvalue:.3f} and {result.pvalue:.3f})")

    Z = rng.normal(size=(5000, 2))
    print(f"median heuristic of 5000 points, all pairs: "
          f"{best(lambda: median_heuristic(Z), 1):.1f} s; of 1000 of them: "
          f"{best(lambda: median_heuristic(Z, max_points=1000, rng=0)):.2f} s")


if __name__ == "__main__":
    main()
