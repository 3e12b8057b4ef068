"""Cross-validation of ridge regression: our time, and scikit-learn's.

Times are the best of three, and only their ratio in one run means anything.
Run with ``make bench``.
"""

from importlib import import_module

import numpy as np
from measure import best
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, PredefinedSplit

from rkhs_lit import Gaussian, cross_validate, leave_fold_out, ridge_path


def main():
    rng = np.random.default_rng(0)
    n, sigma, lams = 1000, 2.0, np.geomspace(1e-3, 1e2, 30)
    X = rng.normal(size=(n, 5))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)
    k = Gaussian(sigma)

    print(f"n = {n}, {len(lams)} penalties, one kernel: scikit-learn's time / ours")
    for m in (5, 10):
        found = cross_validate(k, X, y, lams, folds=m, rng=0)
        label = np.empty(n, dtype=int)
        for number, fold in enumerate(found.folds):
            label[fold] = number
        search = GridSearchCV(
            KernelRidge(kernel="rbf", gamma=1 / (2 * sigma**2)), {"alpha": lams},
            cv=PredefinedSplit(label), scoring="neg_mean_squared_error", refit=False)
        peer = best(lambda: search.fit(X, y))
        theirs = -search.cv_results_["mean_test_score"]
        gap = np.abs(found.errors[0] / theirs - 1).max()
        ours = best(lambda: cross_validate(k, X, y, lams, folds=m, rng=0))
        print(f"  {m:2} folds: {peer:5.2f} s / {ours:5.2f} s = {peer / ours:4.1f}, "
              f"largest relative difference of an error {gap:.1e}")
        if m == 5:
            path = best(lambda: ridge_path(k, X, y, lams))
            print(f"  exact leave-one-out for all penalties: {path:5.2f} s, "
                  f"{peer / path:4.1f} times as fast as their 5 folds")

    # Which of the two ways is faster for how many folds (alg-ridge-cv).
    chapter = import_module("rkhs_lit.ridge")
    K = k(X)
    print("one fit for each fold / all folds at once, in seconds")
    for m in (2, 5, 8, 10, 20):
        folds = np.array_split(rng.permutation(n), m)
        again, once = (best(lambda: method(K, y, lams, folds))
                       for method in (chapter._errors_again, chapter._errors_at_once))
        print(f"  {m:2} folds: {again:5.2f} / {once:5.2f}")
    one = best(lambda: leave_fold_out(k, X, y, 0.1, folds))
    print(f"one penalty, {len(folds)} folds, leave_fold_out: {one:5.2f} s")


if __name__ == "__main__":
    main()
