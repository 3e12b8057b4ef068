"""The kernel Bayes filter: n = 2000 recorded points and 100 steps; and a table of errors.

The straightforward version computes the matrix B and each posterior as printed in the
theorem, with full Gram matrices. Its time is that of training and one step; the filter's is
that of training and 100 steps. Only ratios in one run mean anything, and BLAS should have
one thread (OMP_NUM_THREADS=1), because the loop makes many small products.

The table has mean squared errors on the wobbling wheel of the chapter: for each length of
the recording five recordings, for each of them a filter that was chosen by validation on
this recording alone, and twenty test runs of 100 steps. Behind ± are standard errors over
the recordings; for the competitors, which need no recording, over the test runs. Run with
``make bench``.
"""

import time

import numpy as np
from measure import best, peak

from rkhs_lit import Gaussian, KernelBayesFilter, median_heuristic, validate_filter

PUSH, NOISE = 0.1, 0.4


def advance(x):
    theta = np.arctan2(x[..., 1], x[..., 0]) + 0.4
    radius = 1 + 0.4 * np.sin(8 * theta)
    return radius[..., None] * np.stack([np.cos(theta), np.sin(theta)], axis=-1)


def wheel(n, rng):
    theta = rng.uniform(0, 2 * np.pi)
    x, states = np.array([np.cos(theta), np.sin(theta)]), []
    for push in PUSH * rng.normal(size=(n, 2)):
        x = advance(x) + push
        states.append(x)
    return np.array(states), np.array(states) + NOISE * rng.normal(size=(n, 2))


def extended(mean, P, h=1e-6):
    A = np.stack([(advance(mean + e) - advance(mean - e)) / (2 * h) for e in h * np.eye(2)],
                 axis=-1)
    return advance(mean), A @ P @ A.T


def unscented(mean, P):
    C, share = np.linalg.cholesky(3 * P).T, np.array([2, 1, 1, 1, 1]) / 6
    moved = advance(np.vstack([mean, mean + C, mean - C]))
    mean = share @ moved
    return mean, (moved - mean).T @ (share[:, None] * (moved - mean))


def kalman_like(ys, predict):
    mean, P, found = ys[0], NOISE**2 * np.eye(2), [ys[0]]
    for y in ys[1:]:
        mean, P = predict(mean, P)
        P = P + PUSH**2 * np.eye(2)
        J = np.linalg.solve(P + NOISE**2 * np.eye(2), P).T
        mean, P = mean + J @ (y - mean), P - J @ P
        found.append(mean)
    return np.array(found)


def particles(ys, rng, N=5000):
    theta, means = rng.uniform(0, 2 * np.pi, size=N), []
    x = np.column_stack([np.cos(theta), np.sin(theta)])
    for y in ys:
        x = advance(x) + PUSH * rng.normal(size=x.shape)
        w = np.exp(-np.sum((y - x) ** 2, axis=1) / (2 * NOISE**2))
        w /= w.sum()
        means.append(w @ x)
        x = x[rng.choice(N, size=N, p=w)]
    return np.array(means)


def error(found, truth):
    return np.mean(np.sum((found - truth) ** 2, axis=1))


def as_printed(k, l, X, Y, lam, eps, y0, y1):
    """Training and one step with full matrices."""
    S, Z, O, n = X[:-1], X[1:], Y[:-1], len(X) - 1
    K, L, I = k(S), l(O), np.eye(n)
    ridge = np.linalg.inv(K + n * lam * I)
    B = ridge @ k(S, Z) @ ridge @ K
    alpha = np.linalg.solve(L + n * lam * I, l(O, y0[None])[:, 0])
    w = B @ (alpha / alpha.sum())
    w /= w.sum()
    A = L * w
    alpha = w * np.linalg.solve(A @ A + eps * I, A @ l(O, y1[None])[:, 0])
    return alpha / alpha.sum()


def choose(X, Y):
    wide = [median_heuristic(v, max_points=500, rng=0) for v in (X, Y)]
    kernels = [(Gaussian(a * wide[0]), Gaussian(b * wide[1]))
               for a in (0.15, 0.3) for b in (0.3, 0.6)]
    return validate_filter(kernels, X, Y, [1e-2, 1e-3], [1e-2, 1e-3],
                           held_out=min(100, len(X) // 3), tol=1e-6, max_rank=60).filter


def main():
    rng = np.random.default_rng(0)
    X, Y = wheel(2001, rng)
    x, y = wheel(100, rng)
    k, l, lam, eps = Gaussian(0.35), Gaussian(0.5), 1e-2, 1e-3
    before = peak()
    for tol in (1e-6, 1e-10):
        def train(tol=tol):
            return KernelBayesFilter(k, l, X, Y, lam, eps, tol=tol)

        model = train()
        learn, run = best(train), best(lambda model=model: model.filter(y))
        print(f"n = 2000, tol = {tol:g}, ranks {model.F.shape[1]} and {model.G.shape[1]}: "
              f"training {learn:.2f} s, 100 steps {run:.2f} s, peak {peak():.0f} MiB "
              f"({before:.0f} before)", flush=True)
    start = time.perf_counter()
    weights = as_printed(k, l, X, Y, lam, eps, *y[:2])
    full = time.perf_counter() - start
    gap = np.abs(model.filter(y[:2]).weights[1] - weights).max() / np.abs(weights).max()
    print(f"as printed: training and one step {full:.2f} s; relative difference {gap:.0e}",
          flush=True)

    tests = [wheel(100, rng) for _ in range(20)]
    for name, found in (("sensor", [y for _, y in tests]),
                        ("extended Kalman", [kalman_like(y, extended) for _, y in tests]),
                        ("unscented Kalman", [kalman_like(y, unscented) for _, y in tests]),
                        ("5000 particles", [particles(y, rng) for _, y in tests])):
        errors = [error(z, x) for z, (x, _) in zip(found, tests)]
        print(f"{name:16} {np.mean(errors):.3f} ± {np.std(errors, ddof=1) / 20**0.5:.3f}")
    for n in (100, 300, 1000, 2000):
        errors = []
        for _ in range(5):
            chosen = choose(*wheel(n + 1, rng))
            errors.append(np.mean([error(chosen.filter(y).estimates, x) for x, y in tests]))
        print(f"kernel, n = {n:4}  {np.mean(errors):.3f} ± "
              f"{np.std(errors, ddof=1) / 5**0.5:.3f}", flush=True)


if __name__ == "__main__":
    main()
