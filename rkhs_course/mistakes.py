"""Wrong answers that students write, so that a check can recognise them.

Each is the book's function with one thing done wrong. They are compared with a
student's numbers on the same data: what agrees is the likely cause. Mistakes that
need no function (a wrong sign, a transposed matrix, a root, a factor) are in
``judge.py``.
"""

from types import SimpleNamespace

import numpy as np
import rkhs_lit as r

solve, eye = np.linalg.solve, np.eye


def _H(n):
    return eye(n) - 1 / n


def _ridge(shift, kernel, X, y, centred=False):
    K, n = kernel(X), len(X)
    shifted = y - y.mean() if centred else y
    return r.RKHSFunction(kernel, X, solve(K + shift * eye(n), shifted))


def _left_out(block):
    """Residuals of all points, less the wrong system in each fold."""
    def wrong(k, X, y, lam, folds):
        S, e = r.smoother_matrix(k, X, lam), np.empty(len(y))
        residual = y - S @ y
        for F in folds:
            e[F] = solve(block(S[np.ix_(F, F)]), residual[F])
        return e

    return wrong


def _gp(kernel, X, y, noise, T, sign=-1, more=0.0):
    C = kernel(T, X)
    explained = C @ solve(kernel(X) + noise * eye(len(X)), C.T)
    return None, kernel(T) + sign * explained + more * eye(len(T))


def _quadratic(basis, A):
    """The kernel b(x)' A b(y)."""
    L = np.linalg.cholesky(A)
    return r.Mapped(r.Linear(), lambda X: basis(X) @ L)


def _wide(kernel):
    """exp(-‖x-y‖²/σ²), where 2σ² is meant."""
    return r.Gaussian(kernel.sigma / np.sqrt(2))


def _tiles(visited, whole=False):
    """Sums over tiles in which the wrong ones of a symmetric matrix are visited."""
    def reduce_tiles(visit, start, n, m=None):
        total = start()
        rows, columns = ([slice(a, min(a + 256, size)) for a in range(0, size, 256)
                          if not whole or a + 256 <= size] for size in (n, m or n))
        for u, i in enumerate(rows):
            for v, j in enumerate(columns):
                if m or visited(u, v):
                    visit(total, i, j)
        return total

    return reduce_tiles


def _sums(K, L):
    return (K * L).sum(), K.sum(axis=1) @ L.sum(axis=1), K.sum() * L.sum()


def _biased(K, L):
    n, (S, T, U) = len(K), _sums(K, L)
    return (S - 2 * T / n + U / n**2) / n**2


def _unbiased(K, L, middle=2.0):
    """The formula of the theorem, for matrices with any diagonal."""
    n, (S, T, U) = len(K), _sums(K, L)
    return (S - middle * T / (n - 2) + U / (n - 1) / (n - 2)) / n / (n - 3)


def _off(K):
    return K - np.diag(np.diag(K))


def _mmd(k, X, Y, m, n, cross=2.0, off=False):
    xx, yy, xy = k(X), k(Y), k(X, Y)
    if off:
        xx, yy = _off(xx), _off(yy)
    return xx.sum() / m + yy.sum() / n - cross * xy.mean()


def _coco(k, l, X, Y, centred=True, scale=lambda n: 1, weights=None):
    """COCO with f and g, by part 1 of the theorem."""
    n = len(X)
    H = _H(n) if centred else eye(n)
    F, G = (np.linalg.eigh(H @ M @ H) for M in (k(X), l(Y)))
    F, G = (V * np.sqrt(np.maximum(d, 0)) for d, V in (F, G))
    U, s, Vt = np.linalg.svd(F.T @ G / n)
    f, g = (G @ Vt[0] / n / s[0], F @ U[:, 0] / n / s[0])
    if weights == "crossed":
        f, g = g, f
    elif weights == "bare":
        f, g = G @ Vt[0] / n, F @ U[:, 0] / n
    return SimpleNamespace(value=s[0] * scale(n),
                           f=r.RKHSFunction(k, X, f), g=r.RKHSFunction(l, Y, g))


def _squared_coco(k, l, X, Y):
    found = _coco(k, l, X, Y)
    found.value **= 2
    return found


def _pvalue(count):
    def wrong(k, l, X, Y, *, n_permutations=999, rng=None):
        found = r.coco_test(k, l, X, Y, n_permutations=n_permutations, rng=rng)
        above = int(np.sum(found.null_distribution >= found.statistic))
        return SimpleNamespace(statistic=found.statistic,
                               pvalue=count(above, n_permutations))

    return wrong


def _uncentred_test(k, l, X, Y, *, n_permutations=999, rng=None):
    found = r.coco_test(k, l, X, Y, n_permutations=n_permutations, rng=rng)
    return SimpleNamespace(statistic=_coco(k, l, X, Y, centred=False).value,
                           pvalue=found.pvalue)


def _conditional(Kx, Ky, Kz, shift, centred=True):
    n = len(Kx)
    H = _H(n) if centred else eye(n)
    A, B, C = (H @ K @ H for K in (Kx, Ky, Kz))
    R = shift * np.linalg.inv(C + shift * eye(n))
    return np.trace(A @ R @ B @ R) / n**2


def _prior_weights(l, Y, prior, shift):
    return solve(l(Y) + shift * eye(len(Y)), prior(Y))


def _sum_rule(shift):
    def wrong(k, l, X, Y, prior, lam, eps=None):
        w = _prior_weights(l, Y, prior, shift(len(Y), lam))
        return r.RKHSFunction(k, X, w)

    return wrong


def _chain_rule(shift, weights=np.diag):
    def wrong(k, l, X, Y, prior, lam, eps=None):
        w = _prior_weights(l, Y, prior, shift(len(Y), lam))
        return r.RKHSOperator(k, X, l, Y, weights(w))

    return wrong


def _embedding_at(matrix):
    def wrong(self, x):
        K, L, n = self.k(self.X), self.l(self.Y), len(self.X)
        return r.RKHSFunction(self.l, self.Y, solve(matrix(self, K, L, n),
                                                    self.k(self.X, [x])[:, 0]))

    return wrong


def _squared_posterior(LG, G, S, phi, eps):
    return LG @ solve(S @ S + eps * eye(len(S)), S @ phi)


def _posterior(zeta, clip=True):
    def wrong(G, w, phi, eps, method="squared"):
        clipped = method == "clipped"
        LG = (np.maximum(w, 0) if clipped and clip else w)[:, None] * G
        S = G.T @ LG
        if clipped:
            return LG @ solve(S + eps * eye(len(S)), phi)
        return zeta(LG, G, S, phi, eps)

    return wrong


def _null_moments(K, L, centred=True, ddof=0):
    from itertools import permutations

    n = len(K)
    H = _H(n) if centred else eye(n)
    A, B = H @ K @ H, H @ L @ H
    T = [np.sum(A * B[np.ix_(p, p)]) / n**2 for p in permutations(range(n))]
    return np.mean(T), np.var(T, ddof=ddof)


def _predict(shift, at="next", mass=True):
    def wrong(self, f):
        X = self.states
        w = solve(self.k(X) + shift(len(X), self.lam) * eye(len(X)), f(X))
        w = r.unit_mass(w) if mass else w
        return r.RKHSFunction(self.k, self.next_states if at == "next" else X, w)

    return wrong


def _qp(sign=1.0, constrained=True):
    def wrong(P, q, A, b):
        if not constrained:
            return SimpleNamespace(x=solve(P, -q))
        p = len(b)
        M = np.block([[P, A.T], [A, np.zeros((p, p))]])
        return SimpleNamespace(x=solve(M, np.append(sign * q, b))[: len(q)])

    return wrong


def _folds(what):
    def wrong(kernels, X, y, Cs, *, folds):
        def errors(k, C, F):
            rest = np.setdiff1d(np.arange(len(y)), F)
            rows = {"all": np.arange(len(y)), "swapped": F}.get(what, rest)
            asked = rest if what == "swapped" else F
            return np.sum(r.svm(k, X[rows], y[rows], C).predict(X[asked]) != y[asked])

        found = np.array([[sum(errors(k, C, F) for F in folds) for C in Cs] for k in kernels])
        return SimpleNamespace(errors=found if what == "counts" else found / len(y))

    return wrong


def _svm(what):
    def wrong(kernel, X, y, C):
        found = r.svm(kernel, X, y, C, offset=what != "no offset")
        b = {"no offset": 0.0, "b forgotten": 0.0, "b negated": -found.b}[what]
        return SimpleNamespace(decision=lambda T: found.function(T) + b)

    return wrong


def _features(weight):
    def wrong(X, degree, c=1.0):
        from collections import Counter
        from itertools import combinations_with_replacement
        from math import factorial, prod, sqrt

        Z = np.column_stack([np.full(len(X), sqrt(c)), X])
        if weight == "c for its root":
            Z[:, 0] = c
        columns = []
        for chosen in combinations_with_replacement(range(Z.shape[1]), degree):
            count = factorial(degree) / prod(map(factorial, Counter(chosen).values()))
            if weight == "none":
                count = 1.0
            elif weight == "square":
                count = count**2
            columns.append(np.sqrt(count) * Z[:, list(chosen)].prod(axis=1))
        return np.column_stack(columns)

    return wrong


def _first_columns(kernel, X, *, max_rank):
    K = kernel(X)
    return np.linalg.cholesky(K + 1e-12 * eye(len(K)))[:, :max_rank]


def _largest_once(kernel, X, *, max_rank):
    K = kernel(X)
    P = np.argsort(-np.diag(K), kind="stable")[:max_rank]
    L = np.linalg.cholesky(K[np.ix_(P, P)])
    return solve(L, K[P]).T


def _no_root(kernel, X, *, max_rank):
    R, F = kernel(X).copy(), []
    for _ in range(max_rank):
        p = np.argmax(np.diag(R))
        F.append(R[:, p] / R[p, p])
        R = R - np.outer(R[:, p], R[:, p]) / R[p, p]
    return np.array(F).T


def _risk(f, X, y, loss, lam, *, mean=False, square=True, n=1):
    values = r.Loss(loss)(y, f(X))
    size = r.norm(f) ** (2 if square else 1)
    return (values.mean() if mean else values.sum()) + lam * size * (
        len(X) if n else 1)


def _operator(weights):
    def wrong(k, l, X, Y):
        return r.RKHSOperator(k, X, l, Y, weights(len(X)))

    return wrong


N_LAMBDA = "nλ was added where the statement has λ"
LAMBDA = "λ was added where the statement has nλ"
NOT_CENTRED = "the matrices were not centred"
NO_RIDGE = "λ was forgotten"
WIDTH = "the kernel was taken as exp(-‖x-y‖²/σ²): it is exp(-‖x-y‖²/(2σ²))"

MISTAKES = {
    "as_points": {
        "n numbers are n points of the line, not one point with n coordinates":
            lambda X: np.atleast_2d(np.asarray(X)),
    },
    "reduce_tiles": {
        "the tiles below the diagonal were visited too": _tiles(lambda u, v: True),
        "only the tiles on the diagonal were visited": _tiles(lambda u, v: u == v),
        "the last tiles, which are smaller, were left out": _tiles(
            lambda u, v: u <= v, whole=True),
    },
    "riesz_representer": {
        "G was multiplied where its system is to be solved": lambda G, l: G @ l,
        "the values were taken for the coefficients": lambda G, l: l,
        "only the diagonal of G was used": lambda G, l: l / np.diag(G),
    },
    "normalised": {
        "the root of k(x, x) was forgotten":
            lambda k: r.Conjugated(k, lambda X: 1 / k.diag(X)),
        "k(x, x) was multiplied where it divides":
            lambda k: r.Conjugated(k, lambda X: np.sqrt(k.diag(X))),
        "nothing was divided": lambda k: k,
    },
    "polynomial_features": {
        "the multinomial coefficients were forgotten": _features("none"),
        "the multinomial coefficients stand without their root": _features("square"),
        "c was used where its root is needed": _features("c for its root"),
    },
    "inner": {
        "only the diagonal terms i = j were summed": lambda f, g: sum(
            a * b * f.kernel([x], [y])[0, 0] for a, b, x, y in zip(
                f.weights, g.weights, f.points, g.points)),
        "the weights of g were forgotten":
            lambda f, g: f.weights @ f.kernel(f.points, g.points).sum(axis=1),
        "the weights of f were forgotten": lambda f, g: g(f.points).sum(),
        WIDTH: lambda f, g:
            f.weights @ _wide(f.kernel)(f.points, g.points) @ g.weights,
    },
    "norm": {
        "this is the length of the vector of weights: the kernel was forgotten":
            lambda f: np.linalg.norm(f.weights),
        "the square root was forgotten: this is ‖f‖²": lambda f: r.norm(f) ** 2,
        WIDTH: lambda f: np.sqrt(
            f.weights @ _wide(f.kernel)(f.points) @ f.weights),
    },
    "kernel_from_basis": {
        "the Gram matrix was forgotten: this is b(x)'b(y)":
            lambda b, G: r.Mapped(r.Linear(), b),
        "G was multiplied where its system is to be solved":
            lambda b, G: _quadratic(b, G),
        "G⁻¹ was taken twice": lambda b, G: _quadratic(b, solve(G @ G, eye(len(G)))),
    },
    "interpolate": {
        "y was taken for the weights: K c = y was not solved":
            lambda k, X, y: r.RKHSFunction(k, X, y),
        "K was multiplied where its system is to be solved":
            lambda k, X, y: r.RKHSFunction(k, X, k(X) @ y),
        "1 was added to the diagonal of K: that is ridge regression, and does not "
        "interpolate": lambda k, X, y: _ridge(1.0, k, X, y),
        "y was centred first": lambda k, X, y: _ridge(0.0, k, X, y, centred=True),
    },
    "project": {
        "the values f(x_i) were taken for the weights: K c = v was not solved":
            lambda f, X: r.RKHSFunction(f.kernel, X, f(X)),
        "f itself was returned, which is not in the span of the k(x_i, ·)":
            lambda f, X: f,
    },
    "power_function": {
        "the square root was forgotten: this is P(t)²":
            lambda k, X, T: r.power_function(k, X, T) ** 2,
        "this is the norm of the projection, not the distance from it":
            lambda k, X, T: np.sqrt(k.diag(T) - r.power_function(k, X, T) ** 2),
        "K⁺ was forgotten": lambda k, X, T: np.sqrt(
            np.abs(k.diag(T) - (k(X, T) ** 2).sum(axis=0))),
    },
    "spectral_inner": {
        "multiplied by λ_j: a large eigenvalue makes a function cheap, so divide":
            lambda a, b, lam: np.sum(a * b * lam),
        "the eigenvalues were forgotten: this is the inner product of L²":
            lambda a, b, lam: a @ b,
        "divided by the root of λ_j": lambda a, b, lam: np.sum(a * b / np.sqrt(lam)),
    },
    "integral_operator": {
        "the weights of the measure were forgotten":
            lambda k, X, w, f: r.RKHSFunction(k, X, f(X)),
        "f was forgotten: this is the integral of the kernel alone":
            lambda k, X, w, f: r.RKHSFunction(k, X, w),
        "averaged over the points: the weights do that already":
            lambda k, X, w, f: r.RKHSFunction(k, X, w * f(X) / len(X)),
    },
    "spectral_density": {
        "σ was taken for 1/σ: a wide kernel has low frequencies": lambda k, X:
            r.spectral_density(r.Gaussian(1 / k.sigma), X),
        "(2π) in front was forgotten": lambda k, X:
            r.spectral_density(k, X) * (2 * np.pi) ** (X.shape[1] / 2),
        "the factor of one dimension was taken": lambda k, X:
            r.spectral_density(k, X) * (2 * np.pi / k.sigma**2) ** ((X.shape[1] - 1) / 2),
    },
    "rff_variance": {
        "averaged over D copies: the paired features make D/2":
            lambda k, X, Y, D: r.rff_variance(k, X, Y, D) / 2,
        "κ(δ)² was forgotten: this is E U², not the variance": lambda k, X, Y, D:
            r.rff_variance(k, X, Y, D) + 2 * k(X, Y) ** 2 / D,
        "the variance for random phases was taken":
            lambda k, X, Y, D: r.rff_variance(k, X, Y, D, paired=False),
        "κ(2δ) was taken for κ(δ)": lambda k, X, Y, D:
            (1 + k(X, Y) - 2 * k(X, Y) ** 2) / D,
    },
    "pivoted_cholesky": {
        "the pivots were taken in the order of the points": _first_columns,
        "the pivots were chosen once: the diagonal changes with every step":
            _largest_once,
        "divided by R_pp, not by its root": _no_root,
    },
    "regularised_risk": {
        "the losses were averaged (1/n against the sum)":
            lambda f, X, y, loss, lam: _risk(f, X, y, loss, lam, mean=True, n=0),
        "the norm stands without its square":
            lambda f, X, y, loss, lam: _risk(f, X, y, loss, lam, square=False, n=0),
        N_LAMBDA: lambda f, X, y, loss, lam: _risk(f, X, y, loss, lam),
        "the penalty was forgotten":
            lambda f, X, y, loss, lam: _risk(f, X, y, loss, 0.0),
    },
    "minimize_risk": {
        N_LAMBDA: lambda k, X, y, loss, lam: _ridge(len(X) * lam, k, X, y),
        NO_RIDGE: lambda k, X, y, loss, lam: _ridge(0.0, k, X, y),
        "2λ was added: both terms of the risk have a factor 2 in their gradient":
            lambda k, X, y, loss, lam: _ridge(2 * lam, k, X, y),
        "λ/2 was added: both terms of the risk have a factor 2 in their gradient":
            lambda k, X, y, loss, lam: _ridge(lam / 2, k, X, y),
    },
    "duality_gap": {
        "γ = λα was taken where 2λα is right": lambda f, y, loss, lam:
            np.sum((y - f(f.points)) ** 2 + (lam * f.weights) ** 2 / 4
                   - (y - f(f.points)) * lam * f.weights),
        "φ*(γ) = γ²/2 was taken: for φ(s) = s² it is γ²/4": lambda f, y, loss, lam:
            np.sum((y - f(f.points)) ** 2 + 2 * (lam * f.weights) ** 2
                   - 2 * (y - f(f.points)) * lam * f.weights),
        "φ*(γ) was forgotten": lambda f, y, loss, lam:
            np.sum((y - f(f.points)) ** 2 - 2 * (y - f(f.points)) * lam * f.weights),
        "this is the risk, not the gap": lambda f, y, loss, lam:
            r.regularised_risk(f, f.points, y, loss, lam),
    },
    "ridge": {
        N_LAMBDA: lambda k, X, y, lam: _ridge(len(X) * lam, k, X, y),
        NO_RIDGE: lambda k, X, y, lam: _ridge(0.0, k, X, y),
        "y was centred, and its mean not added again":
            lambda k, X, y, lam: _ridge(lam, k, X, y, centred=True),
        WIDTH: lambda k, X, y, lam: _ridge(lam, _wide(k), X, y),
    },
    "leave_fold_out": {
        "this is the residual of the fit to all points: solve with the block of 1 - S":
            lambda k, X, y, lam, folds: y - _ridge(lam, k, X, y)(X),
        "every point was left out alone: a fold needs its whole block":
            lambda k, X, y, lam, folds: r.leave_one_out(k, X, y, lam),
        N_LAMBDA: lambda k, X, y, lam, folds:
            r.leave_fold_out(k, X, y, len(X) * lam, folds),
        "this is the prediction, not its error":
            lambda k, X, y, lam, folds: y - r.leave_fold_out(k, X, y, lam, folds),
        "the block of S was taken, not that of 1 - S": _left_out(
            lambda S: S),
        "the block was multiplied where its system is to be solved": _left_out(
            lambda S: np.linalg.inv(eye(len(S)) - S)),
    },
    "gp_posterior": {
        "`noise` is a variance, and was squared":
            lambda k, X, y, noise, T: r.gp_posterior(k, X, y, noise**2, T),
        "the noise was added to the covariance: that is of new observations":
            lambda k, X, y, noise, T: _gp(k, X, y, noise, T, more=noise),
        "this is the covariance of the prior: nothing was subtracted":
            lambda k, X, y, noise, T: _gp(k, X, y, noise, T, sign=0),
        "what the data explain was added: it must be subtracted":
            lambda k, X, y, noise, T: _gp(k, X, y, noise, T, sign=1),
    },
    "centre": {
        "only the rows were centred: H stands on one side only":
            lambda K: K - K.mean(axis=1, keepdims=True),
        "only the columns were centred: H stands on one side only":
            lambda K: K - K.mean(axis=0),
        "the mean of all entries was subtracted from all":
            lambda K: K - K.mean(),
        "the mean of all entries was not added again": lambda K:
            K - K.mean(axis=0) - K.mean(axis=1, keepdims=True),
    },
    "conjugate": {
        "F was added, not subtracted": lambda S, F, G: np.max(G @ S.T + F, axis=1),
        "a minimum in place of the maximum": lambda S, F, G: np.min(G @ S.T - F, axis=1),
        "the sign is wrong: this is the height of the line, -F*":
            lambda S, F, G: np.min(F - G @ S.T, axis=1),
    },
    "solve_qp": {
        "the equations were forgotten": _qp(constrained=False),
        "q has the wrong sign in Px + q + A'y = 0": _qp(),
    },
    "svm": {
        "the offset b was forgotten": _svm("b forgotten"),
        "the machine without offset was trained": _svm("no offset"),
        "b has the wrong sign": _svm("b negated"),
    },
    "svm_cross_validate": {
        "the machines were trained on all points, also on the fold": _folds("all"),
        "trained on the fold and asked at the others": _folds("swapped"),
        "errors were counted, not divided by the number of points": _folds("counts"),
    },
    "mean_embedding": {
        "summed, not averaged (1 against 1/n)": lambda k, X, w=None: r.RKHSFunction(
            k, X, np.ones(len(X)) if w is None else w),
        "the weights were ignored": lambda k, X, w=None: r.mean_embedding(k, X),
        "divided by n in spite of the weights": lambda k, X, w=None: r.RKHSFunction(
            k, X, (np.ones(len(X)) if w is None else w) / len(X)),
    },
    "embedding_error": {
        "the diagonal was not removed from the second sum": lambda k, X: (
            k.diag(X).mean() - k(X).mean()) / len(X),
        "this is V, not V/n": lambda k, X: len(X) * r.embedding_error(k, X),
        "the square root was taken": lambda k, X: np.sqrt(r.embedding_error(k, X)),
    },
    "mmd2_biased": {
        "the diagonals were removed: that is the unbiased estimate": r.mmd2_unbiased,
        "the cross term was counted once, not twice": lambda k, X, Y: _mmd(
            k, X, Y, len(X) ** 2, len(Y) ** 2, cross=1.0),
        "the cross term has the wrong sign": lambda k, X, Y: _mmd(
            k, X, Y, len(X) ** 2, len(Y) ** 2, cross=-2.0),
        "the square root was taken: this is the MMD, not its square":
            lambda k, X, Y: np.sqrt(r.mmd2_biased(k, X, Y)),
        "divided by n, not by n²": lambda k, X, Y: _mmd(k, X, Y, len(X), len(Y)),
        WIDTH: lambda k, X, Y: r.mmd2_biased(_wide(k), X, Y),
    },
    "mmd2_unbiased": {
        "the diagonals were not removed: that is the biased estimate": r.mmd2_biased,
        "the diagonals were removed, but n² was not made n(n-1)": lambda k, X, Y: _mmd(
            k, X, Y, len(X) ** 2, len(Y) ** 2, off=True),
        "n² was made n(n-1), but the diagonals were not removed": lambda k, X, Y: _mmd(
            k, X, Y, len(X) * (len(X) - 1), len(Y) * (len(Y) - 1)),
        "the cross term was counted once, not twice": lambda k, X, Y: _mmd(
            k, X, Y, len(X) * (len(X) - 1), len(Y) * (len(Y) - 1), 1.0, off=True),
        "the cross term has the wrong sign": lambda k, X, Y: _mmd(
            k, X, Y, len(X) * (len(X) - 1), len(Y) * (len(Y) - 1), -2.0, off=True),
    },
    "permutation_pvalue": {
        "the actual sample was not counted: p can be 0":
            lambda t, null: np.mean(np.asarray(null) >= t),
        "only strictly larger values were counted": lambda t, null: (
            1 + np.sum(np.asarray(null) > t)) / (1 + len(null)),
        "the values below the statistic were counted": lambda t, null: (
            1 + np.sum(np.asarray(null) <= t)) / (1 + len(null)),
        "divided by B, not by 1 + B": lambda t, null: (
            1 + np.sum(np.asarray(null) >= t)) / len(null),
    },
    "cross_covariance": {
        "not centred": _operator(lambda n: eye(n) / n),
        "divided by n - 1: the theorem has n": _operator(lambda n: _H(n) / (n - 1)),
        "not divided by n": _operator(_H),
    },
    "hs_inner": {
        "the two operators were multiplied entry by entry, without the kernels":
            lambda A, B: np.sum(np.asarray(A.weights)[:3, :4]
                                * np.asarray(B.weights)[:3, :4]),
        "the weights of B were forgotten": lambda A, B: np.sum(
            (A.k(A.X, B.X).T @ A.weights @ A.l(A.Y, B.Y))),
    },
    "coco_value": {
        NOT_CENTRED: lambda *a: _coco(*a, centred=False),
        "the square root was forgotten": _squared_coco,
        "not divided by n": lambda *a: _coco(*a, scale=lambda n: n),
        "divided by n², not by n": lambda *a: _coco(*a, scale=lambda n: 1 / n),
    },
    "coco_witnesses": {
        "the weights of f and g were exchanged: each carries the other":
            lambda *a: _coco(*a, weights="crossed"),
        "the weights were not divided by γ: f and g do not have norm one":
            lambda *a: _coco(*a, weights="bare"),
        NOT_CENTRED: lambda *a: _coco(*a, centred=False),
    },
    "coco_test": {
        "the sample itself was not counted: (1 + #)/(1 + B), never 0":
            _pvalue(lambda above, B: above / B),
        "1 was added to the numerator only": _pvalue(lambda above, B: (1 + above) / B),
        "the permutations below the statistic were counted":
            _pvalue(lambda above, B: (1 + B - above) / (1 + B)),
        "the statistic was not centred": _uncentred_test,
    },
    "hsic_biased": {
        NOT_CENTRED: lambda K, L: np.trace(K @ L) / len(K) ** 2,
        "only one of the matrices was centred, and with H on one side":
            lambda K, L: np.sum((_H(len(K)) @ K) * L) / len(K) ** 2,
        "divided by (n-1)², as some papers do; the theorem has n²":
            lambda K, L: r.hsic_biased(K, L) * len(K) ** 2 / (len(K) - 1) ** 2,
        "divided by n, not by n²": lambda K, L: r.hsic_biased(K, L) * len(K),
        "the square root was taken": lambda K, L: np.sqrt(r.hsic_biased(K, L)),
        "the diagonals were removed: that is the unbiased estimate": r.hsic_unbiased,
    },
    "hsic_unbiased": {
        "this is the biased estimate": r.hsic_biased,
        "this is the biased estimate with (n-1)² for n², which does not remove the bias":
            lambda K, L: r.hsic_biased(K, L) * len(K) ** 2 / (len(K) - 1) ** 2,
        "the diagonals of K and L were not removed": _unbiased,
        "the diagonals were removed, but the factors are those of the biased "
        "estimate (1/n² and so on)": lambda K, L: _biased(_off(K), _off(L)),
        "the factor 2 of the middle term was forgotten":
            lambda K, L: _unbiased(_off(K), _off(L), middle=1.0),
        "the middle term has the wrong sign":
            lambda K, L: _unbiased(_off(K), _off(L), middle=-2.0),
    },
    "hsic_null_moments": {
        NOT_CENTRED: lambda K, L: _null_moments(K, L, centred=False),
        "the standard deviation was returned, not the variance": lambda K, L:
            (_null_moments(K, L)[0], np.sqrt(_null_moments(K, L)[1])),
        "the sum over all permutations was divided by one less than their number":
            lambda K, L: _null_moments(K, L, ddof=1),
    },
    "balanced_labels": {
        "the labels are ±1, and do not sum to zero":
            lambda y: np.where(np.asarray(y) == np.max(y), 1.0, -1.0),
        "the classes are exchanged: the larger value is the positive one":
            lambda y: -r.balanced_labels(y),
        "each class was divided by the size of the other":
            lambda y: np.where(np.asarray(y) == np.max(y), 1 / np.sum(y == np.min(y)),
                               -1 / np.sum(y == np.max(y))),
    },
    "conditional_hsic": {
        LAMBDA: lambda Kx, Ky, Kz, lam: _conditional(Kx, Ky, Kz, lam),
        NOT_CENTRED: lambda Kx, Ky, Kz, lam: _conditional(
            Kx, Ky, Kz, len(Kx) * lam, centred=False),
        "Z was ignored: this is HSIC": lambda Kx, Ky, Kz, lam: r.hsic_biased(Kx, Ky),
        "divided by n, not by n²":
            lambda Kx, Ky, Kz, lam: len(Kx) * r.conditional_hsic(Kx, Ky, Kz, lam),
    },
    "conditional_embedding": {
        LAMBDA: _embedding_at(lambda self, K, L, n: K + self.lam * eye(n)),
        NO_RIDGE: _embedding_at(lambda self, K, L, n: K),
        "the weights k_X(x) were used without (K + nλI)⁻¹":
            _embedding_at(lambda self, K, L, n: eye(n)),
        "the Gram matrix of Y was used for that of X":
            _embedding_at(lambda self, K, L, n: L + n * self.lam * eye(n)),
    },
    "kernel_sum_rule": {
        LAMBDA: _sum_rule(lambda n, lam: lam),
        NO_RIDGE: _sum_rule(lambda n, lam: 0.0),
        "the Gram matrix of X was used for that of Y":
            lambda k, l, X, Y, prior, lam: r.RKHSFunction(k, X, solve(
                k(X) + len(X) * lam * eye(len(X)), prior(Y))),
        "the values prior(Y) were taken for the weights":
            lambda k, l, X, Y, prior, lam: r.RKHSFunction(k, X, prior(Y)),
    },
    "kernel_chain_rule": {
        LAMBDA: _chain_rule(lambda n, lam: lam),
        "the product of the marginals was taken: all pairs (x_i, y_j) where only "
        "(x_i, y_i) belong together": _chain_rule(
            lambda n, lam: n * lam, lambda w: np.outer(w, np.ones(len(w)) / len(w))),
        "divided by n: the weights w have it already": _chain_rule(
            lambda n, lam: n * lam, lambda w: np.diag(w) / len(w)),
    },
    "posterior_weights": {
        "S + εI was inverted: the statement has its square, S² + εI, and S":
            _posterior(lambda LG, G, S, phi, eps: LG @ solve(S + eps * eye(len(S)), phi)),
        "Λ was forgotten in front": _posterior(lambda LG, G, S, phi, eps: G @ solve(
            S @ S + eps * eye(len(S)), S @ phi)),
        "S was forgotten beside the inverse": _posterior(
            lambda LG, G, S, phi, eps: LG @ solve(S @ S + eps * eye(len(S)), phi)),
        "iε was added to S: the statement has i√ε": _posterior(
            lambda LG, G, S, phi, eps: LG @ solve(S + 1j * eps * eye(len(S)), phi).real),
        "for \"clipped\" the negative weights were kept": _posterior(
            _squared_posterior, clip=False),
    },
    "unit_mass": {
        "divided by the sum only: it may be zero or negative": lambda w: w / w.sum(),
        "divided by the sum of the absolute values": lambda w: w / np.abs(w).sum(),
        "divided by the Euclidean norm": lambda w: w / np.linalg.norm(w),
    },
    "filter_predict": {
        LAMBDA: _predict(lambda n, lam: lam),
        "the weights stand at the states, not at their successors":
            _predict(lambda n, lam: n * lam, at="here"),
        "the weights did not get mass one":
            _predict(lambda n, lam: n * lam, mass=False),
    },
}
