"""Short answers to the tasks of the coursework, as a student might write them.

They use NumPy and the data types of the package, and not the functions that they
stand for. `SimpleNamespace` is a record with the fields that are asked for.
"""

from itertools import combinations_with_replacement, permutations
from math import factorial, prod
from types import SimpleNamespace

import numpy as np
from rkhs_lit import Conjugated, Linear, Mapped, RKHSFunction, RKHSOperator  # noqa: F401
from scipy.optimize import minimize


def as_points(X, name="X"):
    X = np.asarray(X, dtype=float)
    return X[:, None] if X.ndim == 1 else X


def reduce_tiles(visit, start, n, m=None):
    total, rows = start(), range(0, n, 100)
    columns = rows if m is None else range(0, m, 100)
    for u, a in enumerate(rows):
        for b in columns[u if m is None else 0:]:
            visit(total, slice(a, min(a + 100, n)), slice(b, min(b + 100, m or n)))
    return total


def riesz_representer(gram, values, *, tol=None):
    return np.linalg.solve(gram, values)


def normalised(kernel):
    return Conjugated(kernel, lambda X: 1 / np.sqrt(kernel.diag(X)))


def polynomial_features(X, degree, c=1.0):
    Z = np.column_stack([np.full(len(X), np.sqrt(c)), X])
    columns = []
    for chosen in combinations_with_replacement(range(Z.shape[1]), degree):
        count = factorial(degree) / prod(factorial(chosen.count(i)) for i in {*chosen})
        columns.append(np.sqrt(count) * Z[:, chosen].prod(axis=1))
    return np.array(columns).T


def inner(f, g):
    return f.weights @ f.kernel(f.points, g.points) @ g.weights


def norm(f):
    return np.sqrt(f.weights @ f.kernel(f.points) @ f.weights)


def kernel_from_basis(basis, gram):
    L = np.linalg.cholesky(gram)
    return Mapped(Linear(), lambda X: np.linalg.solve(L, basis(X).T).T)


def interpolate(kernel, X, y):
    return RKHSFunction(kernel, X, np.linalg.solve(kernel(X), y))


def project(f, X):
    return RKHSFunction(f.kernel, X, np.linalg.solve(f.kernel(X), f(X)))


def power_function(kernel, X, T):
    kappa = kernel(X, T)
    square = kernel.diag(T) - (kappa * np.linalg.solve(kernel(X), kappa)).sum(axis=0)
    return np.sqrt(square)


def spectral_inner(a, b, eigenvalues):
    return np.sum(np.array(a) * b / eigenvalues)


def integral_operator(kernel, nodes, weights, f):
    return RKHSFunction(kernel, nodes, weights * f(nodes))


def spectral_density(kernel, omega):
    s = kernel.sigma
    factor = (s / np.sqrt(2 * np.pi)) ** omega.shape[1]
    return factor * np.exp(-s**2 * (omega**2).sum(axis=1) / 2)


def rff_variance(kernel, X, Y, n_features, *, paired=True):
    k, k2 = kernel(X, Y), kernel(2 * X, 2 * Y)
    return (1 + k2 - 2 * k**2) / n_features


def pivoted_cholesky(kernel, X, *, tol=1e-6, max_rank=None, return_pivots=False):
    R, F = kernel(X).copy(), []
    for _ in range(max_rank):
        p = np.argmax(np.diag(R))
        F.append(R[:, p] / np.sqrt(R[p, p]))
        R = R - np.outer(F[-1], F[-1])
    return np.array(F).T


def regularised_risk(f, X, y, loss, lam):
    z, K = f(X), f.kernel(f.points)
    losses = (y - z) ** 2 if loss == "squared" else np.maximum(0, 1 - y * z)
    return losses.sum() + lam * f.weights @ K @ f.weights


def minimize_risk(kernel, X, y, loss, lam, *, tol=1e-8):
    alpha = np.linalg.inv(kernel(X) + lam * np.eye(len(X))) @ y
    return RKHSFunction(kernel, X, alpha)


def duality_gap(f, y, loss, lam):
    s, gamma = y - f(f.points), 2 * lam * f.weights
    return np.sum(s**2 + gamma**2 / 4 - s * gamma)


def ridge(kernel, X, y, lam):
    return RKHSFunction(kernel, X, np.linalg.inv(kernel(X) + lam * np.eye(len(X))) @ y)


def leave_fold_out(kernel, X, y, lam, folds):
    errors = np.zeros(len(X))
    for F in folds:
        rest = np.setdiff1d(np.arange(len(X)), F)
        K = kernel(X[rest]) + lam * np.eye(len(rest))
        errors[F] = y[F] - kernel(X[F], X[rest]) @ np.linalg.solve(K, y[rest])
    return errors


def gp_posterior(kernel, X, y, noise, T):
    G, C = np.linalg.inv(kernel(X) + noise * np.eye(len(X))), kernel(T, X)
    return C @ G @ y, kernel(T) - C @ G @ C.T


def centre(K):
    n = len(K)
    H = np.eye(n) - np.ones((n, n)) / n
    return H @ K @ H


def conjugate(points, values, slopes):
    return np.array([max(np.dot(g, s) - v for s, v in zip(points, values, strict=True))
                     for g in slopes])


def solve_qp(P, q, A=None, b=None, lower=None, upper=None, *, C=None, c=None,
             factor=None):
    KKT = np.block([[P, A.T], [A, np.zeros((len(b), len(b)))]])
    return SimpleNamespace(x=np.linalg.solve(KKT, np.append(-q, b))[: len(q)])


def svm(kernel, X, y, C, *, offset=True):
    Q = kernel(X) * np.outer(y, y)
    found = minimize(lambda a: a @ Q @ a / 2 - a.sum(), np.zeros(len(y)),
                     jac=lambda a: Q @ a - 1, method="SLSQP", bounds=[(0, C)] * len(y),
                     constraints={"type": "eq", "fun": lambda a: a @ y,
                                  "jac": lambda a: y}, options={"ftol": 1e-15})
    f = RKHSFunction(kernel, X, found.x * y)
    r, some = y - f(X), 1e-6 * C
    free = (found.x > some) & (found.x < C - some)
    above = r[((found.x <= some) & (y > 0)) | ((found.x >= C - some) & (y < 0))]
    below = r[((found.x <= some) & (y < 0)) | ((found.x >= C - some) & (y > 0))]
    b = r[free].mean() if free.any() else (above.max() + below.min()) / 2
    return SimpleNamespace(decision=lambda T: f(T) + b)


def svm_cross_validate(kernels, X, y, Cs, *, folds=5, test=0, rng=None, offset=True):
    errors = np.zeros((len(kernels), len(Cs)))
    for q, j in np.ndindex(errors.shape):
        for F in folds:
            keep = np.delete(np.arange(len(y)), F)
            f = svm(kernels[q], X[keep], y[keep], Cs[j]).decision(X[F])
            errors[q, j] += np.sum(np.sign(f) != y[F]) / len(y)
    return SimpleNamespace(errors=errors)


def mean_embedding(kernel, X, weights=None):
    n = len(X)
    return RKHSFunction(kernel, X, np.ones(n) / n if weights is None else weights)


def embedding_error(kernel, X):
    K, n = kernel(X), len(X)
    return (n * np.trace(K) - K.sum()) / (n**2 * (n - 1))


def mmd2_biased(kernel, X, Y):
    return kernel(X).mean() + kernel(Y).mean() - 2 * kernel(X, Y).mean()


def mmd2_unbiased(kernel, X, Y):
    K, L, m, n = kernel(X), kernel(Y), len(X), len(Y)
    within = (K.sum() - np.trace(K)) / (m * (m - 1))
    return within + (L.sum() - np.trace(L)) / (n * (n - 1)) - 2 * kernel(X, Y).mean()


def permutation_pvalue(statistic, null_distribution, *, tol=0.0):
    null = np.asarray(null_distribution)
    return (1 + np.sum(null >= statistic - tol)) / (1 + len(null))


def cross_covariance(k, l, X, Y, *, centred=True):
    n = len(X)
    return RKHSOperator(k, X, l, Y, (np.eye(n) - 1 / n) / n)


def hs_inner(A, B):
    K, L = A.k(A.X, B.X), A.l(A.Y, B.Y)
    return np.trace(np.asarray(A.weights).T @ K @ np.asarray(B.weights) @ L.T)


def coco(k, l, X, Y, *, tol=None, max_rank=None):
    n = len(X)
    H = np.eye(n) - 1 / n
    (r, A), (s, B) = (np.linalg.eigh(H @ K @ H) for K in (k(X), l(Y)))
    F, G = A * np.sqrt(np.maximum(r, 0)), B * np.sqrt(np.maximum(s, 0))
    U, s, Vt = np.linalg.svd(F.T @ G / n)
    f = RKHSFunction(k, X, G @ Vt[0] / (n * s[0]))
    return SimpleNamespace(value=s[0], f=f,
                           g=RKHSFunction(l, Y, F @ U[:, 0] / (n * s[0])))


def coco_test(k, l, X, Y, *, n_permutations=999, rng=None, tol=None, max_rank=None):
    n, rng = len(X), np.random.default_rng(rng)
    H = np.eye(n) - 1 / n
    K, L = H @ k(X) @ H, H @ l(Y) @ H
    orders = [np.arange(n), *(rng.permutation(n) for _ in range(n_permutations))]
    T = [np.sqrt(np.linalg.eigvals(K @ L[np.ix_(p, p)]).real.max()) / n for p in orders]
    return SimpleNamespace(statistic=T[0],
                           pvalue=np.sum(np.array(T) >= T[0]) / (1 + n_permutations))


def hsic_biased(K, L):
    n = len(K)
    H = np.eye(n) - 1 / n
    return np.trace(K @ H @ L @ H) / n**2


def hsic_unbiased(K, L):
    n, K, L = len(K), K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    total = np.trace(K @ L) + K.sum() * L.sum() / (n - 1) / (n - 2)
    return (total - 2 * (K @ L).sum() / (n - 2)) / (n * (n - 3))


def hsic_null_moments(K, L):
    n = len(K)
    H = np.eye(n) - 1 / n
    K, L = H @ K @ H, H @ L @ H
    T = [np.sum(K * L[np.ix_(p, p)]) / n**2 for p in permutations(range(n))]
    return np.mean(T), np.var(T)


def balanced_labels(y):
    plus = np.asarray(y) == max(y)
    return plus / plus.sum() - ~plus / (~plus).sum()


def conditional_hsic(Kx, Ky, Kz, lam):
    n = len(Kx)
    H = np.eye(n) - 1 / n
    R = n * lam * np.linalg.inv(H @ Kz @ H + n * lam * np.eye(n))
    return np.trace(H @ Kx @ H @ R @ H @ Ky @ H @ R) / n**2


def ConditionalEmbedding___call__(self, x):
    K, n = self.k(self.X), len(self.X)
    w = np.linalg.solve(K + n * self.lam * np.eye(n), self.k(self.X, [x])[:, 0])
    return RKHSFunction(self.l, self.Y, w)


def kernel_sum_rule(k, l, X, Y, prior, lam, eps=None, *, tol=1e-14):
    return RKHSFunction(k, X, np.linalg.solve(l(Y) + len(Y) * lam * np.eye(len(Y)),
                                              prior(Y)))


def kernel_chain_rule(k, l, X, Y, prior, lam, eps=None, *, tol=1e-14):
    w = np.linalg.solve(l(Y) + len(Y) * lam * np.eye(len(Y)), prior(Y))
    return RKHSOperator(k, X, l, Y, np.diag(w))


def posterior_weights(G, w, phi, eps, method="squared"):
    if method == "clipped":
        w = np.maximum(w, 0)
    LG = np.diag(w) @ G
    S, I = G.T @ LG, np.eye(G.shape[1])
    if method == "clipped":
        return LG @ np.linalg.solve(S + eps * I, phi)
    return LG @ np.linalg.solve(S @ S + eps * I, S @ phi)


def unit_mass(w):
    return w / max(w.sum(), np.abs(w).sum() / 10)


def KernelBayesFilter_predict(self, f):
    X, n = self.states, len(self.states)
    w = np.linalg.solve(self.k(X) + n * self.lam * np.eye(n), f(X))
    return RKHSFunction(self.k, self.next_states,
                        w / max(w.sum(), np.abs(w).sum() / 10))
