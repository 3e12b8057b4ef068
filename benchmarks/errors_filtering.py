"""The kernel Bayes filter and its competitors: a table of errors.

The table has mean squared errors on the wobbling wheel of the chapter: for each length of
the recording five recordings, for each of them a filter that was chosen by validation on
this recording alone, and twenty test runs of 100 steps. Behind ± are standard errors over
the recordings; for the competitors, which need no recording, over the test runs. Run as
``python benchmarks/errors_filtering.py``.
"""

import numpy as np
from rkhs_lit import Gaussian, median_heuristic, validate_filter

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


def choose(X, Y):
    wide = [median_heuristic(v, max_points=500, rng=0) for v in (X, Y)]
    kernels = [(Gaussian(a * wide[0]), Gaussian(b * wide[1]))
               for a in (0.15, 0.3) for b in (0.3, 0.6)]
    return validate_filter(kernels, X, Y, [1e-2, 1e-3], [1e-2, 1e-3],
                           held_out=min(100, len(X) // 3), tol=1e-6, max_rank=60).filter


def main():
    rng = np.random.default_rng(0)
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
