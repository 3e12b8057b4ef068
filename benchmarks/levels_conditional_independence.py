"""Level and power of the test of conditional independence: a campaign of an hour or two.

The default λ was chosen on other models: independent normal variables; X and Y equal to the sum of
the z, a² with a the first coordinate of z, the sum of sin 2z, ab with b the last one, a tanh and
a cube of a sum; and sizes of noise that depend on z. The models below were fixed before the test
was run on any of them, and were not changed afterwards. Of the test one thing was: that it checks
what the regressions leave against single coordinates of z was added after "sines" and "wiggle" had
been seen to fail with d = 10. Its details were chosen on the models above, on sin 2a and on a
square wave sign sin πa in both X and Y. θ = 0 is the hypothesis; "wiggle" is there to fail: in many
dimensions nobody can learn it from so few points.

    python levels_conditional_independence.py RUNS N [THETA [MODEL ...]]

prints for each model and each dimension of Z how often the test rejects at 5 % and at 1 %, how
often it is undecided, and how often the former form of the test (λ = 1e-6, residuals taken as
independent) and, if it is installed, KCI of causal-learn reject at 5 %. The last two see the
first 100 samples only, or 40 for n above 100. Run number r has the seed (r, n, d); RUNS is their
number, or FIRST:LAST for r = FIRST to LAST - 1.
"""

import sys
import time

import numpy as np

from rkhs_lit import Gaussian, centre, conditional_independence_test, median_heuristic
from scipy.stats import gamma

try:
    from causallearn.utils.KCI.KCI import KCI_CInd
except ImportError:
    KCI_CInd = None

MODELS = "independent", "linear", "post-nonlinear", "products", "sines", "wiggle"


def draw(model, d, n, theta, rng):
    """A sample (x, y, z); x and y are independent given z if θ = 0."""
    z = rng.normal(size=(n, d))
    u, v = rng.normal(size=(2, n))
    s, a, b = z.sum(axis=1) / np.sqrt(d), z[:, 0], z[:, min(1, d - 1)]
    if model == "independent":
        u, v = rng.uniform(-1, 1, size=n), rng.standard_t(5, size=n)
        return u, v + 2 * theta * u, rng.exponential(size=(n, d))
    if model == "linear":
        z = rng.uniform(-np.sqrt(3), np.sqrt(3), size=(n, d))
        u, v = rng.laplace(scale=np.sqrt(0.5), size=(2, n))
        c = 1 / np.arange(1, d + 1)
        s = z @ c / np.linalg.norm(c)
        return s + u, (s - z[:, -1]) / 2 + v + theta * u, z
    if model == "post-nonlinear":
        t = s + v + theta * u
        return np.exp((s + u) / 2), np.sign(t) * np.sqrt(np.abs(t)), z
    if model == "products":
        return a * b + b + u, a * (b - 1) + v + theta * u, z
    if model == "sines":
        u, v = 0.7 * u, 0.7 * v
        return np.sin(1.5 * a) + u, np.sin(1.5 * a) * np.cos(b) + v + theta * u, z
    return np.cos(4 * a) + u / 2, np.cos(4 * a) + v / 2 + theta * u, z


def former(kernels, points, lam=1e-6):
    """The p-value without the degrees of freedom of the regression."""
    n, (Kx, Ky, Kz) = len(points[0]), (k(v) for k, v in zip(kernels, points))
    R = n * lam * np.linalg.inv(centre(Kz) + n * lam * np.eye(n))
    W = (R @ centre(Kx) @ R) * (R @ centre(Ky) @ R) * (1 + Kz) / 2
    mean, variance = np.trace(W), 2 * np.sum(W**2)
    return gamma(mean**2 / variance, scale=variance / mean).sf(W.sum())


def cell(model, d, n, theta, runs):
    """Rejections at 5 % and at 1 % of the three tests, and the share undecided."""
    found, others, undecided = [], [], 0
    for r in runs:
        points = draw(model, d, n, theta, np.random.default_rng((r, n, d)))
        kernels = [Gaussian(median_heuristic(v)) for v in points]
        record = conditional_independence_test(*kernels, *points)
        found.append(record.pvalue)
        undecided += bool(record.undecided)
        if len(others) < (100 if n <= 100 else 40):
            kci = np.nan if KCI_CInd is None else KCI_CInd().compute_pvalue(
                *(v.reshape(n, -1) for v in points))[0]
            others.append((former(kernels, points), kci))
    found, others = np.array(found), np.array(others)
    return (np.mean(found <= 0.05), np.mean(found <= 0.01), undecided / len(runs),
            *np.mean(np.where(np.isnan(others), np.nan, others <= 0.05), axis=0), len(others))


def main(runs, n, theta=0.0, models=MODELS):
    for model in models:
        for d in (1, 3, 5, 10):
            start = time.perf_counter()
            five, one, undecided, old, kci, fewer = cell(model, d, n, theta, runs)
            print(f"n = {n}, theta = {theta:g}, {model:14} d = {d:2}: 5 % {100 * five:5.1f}  1 % "
                  f"{100 * one:5.1f}  undecided {100 * undecided:5.1f}  | former {100 * old:5.1f}"
                  f"  KCI {100 * kci:5.1f}  (of {len(runs)}, {fewer}; {time.perf_counter() - start:.0f}"
                  " s)", flush=True)


if __name__ == "__main__":
    main(range(*map(int, sys.argv[1].split(":"))), int(sys.argv[2]), *map(float, sys.argv[3:4]),
         *([sys.argv[4:]] if sys.argv[4:] else []))
