"""HSIC: 100 000 pairs in tiles, the statistic, and the test with 1000 permutations.

The statistic is compared with the trace of a product of centred Gram matrices,
the test with a loop that permutes the rows and columns of a centred Gram
matrix. Times are the best of three (the long ones run once), and only their
ratio in one run means anything. Run with ``make bench``.
"""

import time

import numpy as np
from measure import best, peak

from rkhs_lit import Gaussian, centre, hsic, hsic_gamma_test, hsic_test, median_heuristic

B = 1000


def by_trace(k, X, Y):
    """tr(KHLH) / n² with stored matrices, as a sum of products."""
    return np.sum(centre(k(X)) * centre(k(Y))) / len(X) ** 2


def loop(k, X, Y, rng):
    """The p-value from permuted Gram matrices, one after the other."""
    K, L = centre(k(X)), centre(k(Y))
    actual = np.sum(K * L)
    null = np.empty(B)
    for b in range(B):
        order = rng.permutation(len(K))
        null[b] = np.sum(K * L[np.ix_(order, order)])
    return (1 + np.sum(null >= actual - 1e-9 * abs(actual))) / (1 + B)


def pairs(n, d, rng):
    X = rng.normal(size=(n, d))
    return X, 0.1 * X + rng.normal(size=(n, d))


def main():
    rng, k = np.random.default_rng(0), Gaussian(1.0)

    # First of all, while the peak of the process is still low.
    n = 100_000
    X, Y = pairs(n, 1, rng)
    before, start = peak(), time.perf_counter()
    value = hsic(k, k, X, Y)
    seconds = time.perf_counter() - start
    print(f"unbiased HSIC of {n} pairs (each matrix would take {8 * n * n / 2**30:.0f} GiB): "
          f"{value:.6f}\n  {seconds:.1f} s, peak of the process {peak():.0f} MiB "
          f"({before:.0f} before)")

    print("biased HSIC: time with stored matrices / in tiles")
    for n in (2000, 5000):
        X, Y = pairs(n, 5, rng)
        stored = best(lambda: by_trace(k, X, Y))
        ours = best(lambda: hsic(k, k, X, Y, unbiased=False))
        gap = abs(hsic(k, k, X, Y, unbiased=False) / by_trace(k, X, Y) - 1)
        print(f"  n = {n}: {stored:5.2f} s / {ours:5.2f} s = {stored / ours:4.1f}   "
              f"(relative difference {gap:.0e})")

    print(f"test with {B} permutations: time of the loop / ours, and the gamma approximation")
    for n in (1000, 2000):
        for d in (1, 5):
            X, Y = pairs(n, d, rng)
            k = Gaussian(median_heuristic(X))
            start = time.perf_counter()
            slow = loop(k, X, Y, rng)
            peer = time.perf_counter() - start
            ours = best(lambda: hsic_test(k, k, X, Y, n_permutations=B, rng=0), 1 if d > 1 else 3)
            fast = best(lambda: hsic_gamma_test(k, k, X, Y))
            result = hsic_test(k, k, X, Y, n_permutations=B, rng=0)
            print(f"  n = {n}, d = {d}: {peer:6.2f} s / {ours:6.2f} s = {peer / ours:5.1f}   gamma "
                  f"{fast:.2f} s   (p-values {slow:.3f}, {result.pvalue:.3f}, "
                  f"{hsic_gamma_test(k, k, X, Y).pvalue:.3f})")


if __name__ == "__main__":
    main()
