"""One update of the kernel Bayes rule, against the formula as it is printed.

The straightforward version solves (L + nλI) w = prior(Y), squares KΛ and
solves a system of n equations that is not symmetric, by LU. Ours are the
low-rank forms: one complex symmetric solve of the size of the rank, or
Cholesky for clipped weights. A third peer is the clipped form by Cholesky of
the full matrix. Times include the Gram matrices and their factors, are the
best of three (one run for the peers), and only their ratios in one run mean
anything. Run with ``make bench``.
"""

import time

import numpy as np
from measure import best, peak
from scipy.linalg import cho_factor, cho_solve

from rkhs_lit import Gaussian, GaussianEmbedding, Laplace, kernel_bayes_rule

LAM, EPS = 1e-4, 1e-4


def printed(k, l, X, Y, prior, x):
    """The first form of the weights, with n × n matrices."""
    n = len(X)
    w = np.linalg.solve(l(Y) + n * LAM * np.eye(n), prior(Y))
    A = k(X) * w
    return w * np.linalg.solve(A @ A + EPS * np.eye(n), A @ k(X, x)[:, 0])


def full_clipped(k, l, X, Y, prior, x):
    """Λ½ (Λ½ K Λ½ + εI)⁻¹ Λ½ k(x) for the positive parts of the weights."""
    n = len(X)
    w = cho_solve(cho_factor(l(Y) + n * LAM * np.eye(n)), prior(Y))
    root = np.sqrt(np.maximum(w, 0.0))
    A = root[:, None] * k(X) * root + EPS**0.5 * np.eye(n)
    return root * cho_solve(cho_factor(A), root * k(X, x)[:, 0])


def timed(function, *arguments):
    start = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - start, result


def main():
    rng = np.random.default_rng(0)
    k = l = Gaussian(0.5)
    before = peak()
    for n in (1000, 2000, 20000):
        Y = rng.normal(size=n)
        X = Y + 0.5 * rng.normal(size=n)
        prior, x = GaussianEmbedding(l, 0.6, 0.25), np.array([1.4])
        data = k, l, X, Y, prior

        def ours(method, eps):
            return kernel_bayes_rule(*data, LAM, eps, method=method).weights_at(x)[:, 0]

        squared = best(lambda: ours("squared", EPS))
        clipped = best(lambda: ours("clipped", EPS**0.5))
        memory = peak()
        text = (f"n = {n:5}: low rank squared {squared:.3f} s, clipped {clipped:.3f} s, peak {memory:.0f} MiB "
                f"({before:.0f} before)")
        if n <= 2000:
            lu, wanted = timed(printed, *data, x)
            cholesky, plus = timed(full_clipped, *data, x)
            gaps = (np.abs(ours("squared", EPS) - wanted).max() / np.abs(wanted).max(),
                    np.abs(ours("clipped", EPS**0.5) - plus).max() / np.abs(plus).max())
            text += (f"; printed form by LU {lu:.2f} s = {lu / squared:.0f} times, full clipped Cholesky "
                     f"{cholesky:.2f} s = {cholesky / clipped:.0f} times; relative gaps {gaps[0]:.0e} and {gaps[1]:.0e}")
        print(text, flush=True)

    # A Gram matrix without decay has full rank, and the printed form wins.
    data = Laplace(0.5), l, X[:1000], Y[:1000], prior
    ours = best(lambda: kernel_bayes_rule(*data, LAM, EPS).weights_at(x))
    lu, _ = timed(printed, *data, x)
    print(f"Laplace kernel, n = 1000, rank 1000: ours {ours:.2f} s, printed form {lu:.2f} s")


if __name__ == "__main__":
    main()
