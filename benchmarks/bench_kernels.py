"""Gram matrices and products with them: time against scikit-learn, and memory.

Times are the best of three, and only their ratio in one run means anything.
Run with ``make bench``.
"""

import time

import numpy as np
from measure import best, peak
from sklearn.metrics.pairwise import rbf_kernel

from rkhs_lit import Gaussian, gram_dot


def main():
    rng = np.random.default_rng(0)
    k = Gaussian(1.0)
    print("Gaussian Gram matrix, n = 5000: scikit-learn's time / ours")
    for d in (2, 10, 64, 300):
        X = rng.normal(size=(5000, d))
        peer = best(lambda: rbf_kernel(X, gamma=0.5))
        ours = best(lambda: k(X))
        print(f"  d = {d:3}: {peer:6.3f} s / {ours:6.3f} s = {peer / ours:4.1f}")

    n = 50_000
    X, w = rng.normal(size=(n, 2)), rng.normal(size=n)
    before = peak()
    start = time.perf_counter()
    gram_dot(k, X, None, w)
    seconds = time.perf_counter() - start
    print(f"K w for n = {n} (the matrix would take {8 * n * n / 2**30:.0f} GiB): "
          f"{seconds:.1f} s, {peak() - before:.0f} MiB more than the peak before")


if __name__ == "__main__":
    main()
