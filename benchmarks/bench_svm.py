"""Support vector machines: time and duality gap, ours and scikit-learn's.

The peer (libsvm) decomposes the problem into pairs of points and wins in time
by a wide margin. Ours factors the whole matrix and wins in the gap. Times are
the best of three, and only their ratio in one run means anything. Run with
``make bench``.
"""

import numpy as np
from measure import best
from sklearn.svm import SVC

from rkhs_lit import Gaussian, RKHSFunction, norm, svm


def gap(kernel, X, y, C, alpha, b):
    """P(f, b) - D(alpha) of any machine with these weights and offset."""
    f = RKHSFunction(kernel, X, alpha * y)
    slack = np.maximum(0, 1 - y * (f(X) + b)).sum()
    return norm(f) ** 2 + C * slack - alpha.sum()


def main():
    rng = np.random.default_rng(0)
    k = Gaussian(1.0)
    print("a noisy disc in the plane, Gaussian kernel of width 1: seconds, and the "
          "duality gap relative to the objective")
    for n in (500, 1000, 2000):
        X = rng.normal(size=(n, 2))
        y = np.where(np.sum(X**2, axis=1) + 0.5 * rng.normal(size=n) > 1.3, 1, -1)
        for C in (1.0, 100.0):
            machine = svm(k, X, y, C)
            ours = best(lambda: svm(k, X, y, C))
            print(f"  n = {n:4}, C = {C:5}: ours {ours:6.2f} s, gap "
                  f"{machine.gap / machine.primal:.0e}")
            for tol in (1e-3, 1e-6):
                peer = SVC(C=C, gamma=0.5, tol=tol)
                theirs = best(lambda: peer.fit(X, y))
                alpha = np.zeros(n)
                alpha[peer.support_] = np.abs(peer.dual_coef_[0])
                left = gap(k, X, y, C, alpha, peer.intercept_[0]) / machine.primal
                away = np.abs(peer.decision_function(X) - machine.decision(X)).max()
                print(f"    SVC(tol={tol:g}): {theirs:6.3f} s, {ours / theirs:4.0f} times "
                      f"faster, gap {left:.0e}, decision values off by {away:.0e}")


if __name__ == "__main__":
    main()
