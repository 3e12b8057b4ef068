"""Support vector machines: time and duality gap, ours and scikit-learn's.

Both begin with pairs of points. The peer (libsvm, compiled) stops at its
tolerance; ours goes on to the last digits, and its time includes that. Times
are the best of three, and only their ratio in one run means anything. Run with
``make bench``; with ``large`` as an argument also 20 000 points, in minutes.
"""

import sys

import numpy as np
from measure import best, peak
from sklearn.svm import SVC

from rkhs_lit import Gaussian, RKHSFunction, inner, svm


def gap(kernel, X, y, C, alpha, b):
    """P(f, b) - D(alpha) of any machine with these weights and offset."""
    held = np.flatnonzero(alpha)
    f = RKHSFunction(kernel, X[held], (alpha * y)[held])
    slack = np.maximum(0, 1 - y * (f(X) + b)).sum()
    return inner(f, f) + C * slack - alpha.sum()


def row(X, y, width, C, repeats=3):
    k, found = Gaussian(width), {}
    peer = SVC(C=C, gamma=1 / (2 * width**2))
    theirs = best(lambda: peer.fit(X, y), repeats)
    ours = best(lambda: found.update(machine=svm(k, X, y, C)), repeats)
    machine, alpha = found["machine"], np.zeros(len(y))
    alpha[peer.support_] = np.abs(peer.dual_coef_[0])
    left = gap(k, X, y, C, alpha, peer.intercept_[0]) / machine.primal
    print(f"  n = {len(y):5}, C = {C:5}: SVC {theirs:7.3f} s, gap {left:.0e}; ours "
          f"{ours:7.3f} s, gap {machine.gap / machine.primal:.0e}; ratio {theirs / ours:.2f}")
    return machine


def main():
    rng = np.random.default_rng(0)
    sizes = (500, 1000, 2000, 5000)
    data = {}
    for n in (*sizes, 20_000):
        X = rng.normal(size=(n, 2))
        data[n] = X, np.where(np.sum(X**2, axis=1) + 0.5 * rng.normal(size=n) > 1.3, 1, -1)
    print("a noisy disc in the plane, Gaussian kernel: seconds, the duality gap relative to the "
          "objective, and peer time / ours")
    for width, name in ((1.0, "wide"), (0.1, "narrow")):
        print(f" width {width}, {name}")
        for n in sizes:
            for C in (1.0, 100.0):
                row(*data[n], width, C)
    if "large" in sys.argv:
        before = peak()
        print(" width 1.0, more points than a working set")
        row(*data[20_000], 1.0, 1.0, 1)
        print(f"  peak memory {before:.0f} -> {peak():.0f} MiB; the Gram matrix would take 3052")


if __name__ == "__main__":
    main()
