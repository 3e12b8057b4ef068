"""What is timed: one function for each row of the table "How fast, how large".

A row's function takes a size n and returns what is to be called: ``ours``,
and where they exist ``peer`` (the usual library), ``floor`` (work that no
way of computing the same can do without) and ``gap`` (how far ours and the
peer's answers are apart). ``run.py`` calls them in turn and keeps the best
times, so that only ratios in one run mean anything.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

ROWS = []
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


@dataclass
class Row:
    """A line of the table: what, against whom, at which sizes."""

    title: str
    peer: str
    sizes: tuple
    make: object
    share: dict = field(default_factory=dict)    # part of the work that is run
    repeats: int = 3


def row(title, peer, sizes, **options):
    def register(make):
        ROWS.append(Row(title, peer, sizes, make, **options))
        return make

    return register


def exponentials(entries):
    """``exp`` of so many numbers, a tile at a time on every core."""
    tile = np.random.default_rng(0).normal(size=(256, 256))

    def work(count):
        out = np.empty_like(tile)
        for _ in range(count):
            np.exp(tile, out=out)

    with ThreadPoolExecutor(CORES) as pool:
        list(pool.map(work, [int(entries / tile.size / CORES)] * CORES))


def gram(d):
    def make(n):
        from rkhs_lit import Gaussian
        from sklearn.metrics.pairwise import rbf_kernel

        X, sigma = np.random.default_rng(0).normal(size=(n, d)), d**0.5
        k = Gaussian(sigma)
        return dict(ours=lambda: k(X), peer=lambda: rbf_kernel(X, gamma=0.5 / sigma**2),
                    floor=lambda: exponentials(n * n / 2),
                    gap=lambda: np.abs(k(X) - rbf_kernel(X, gamma=0.5 / sigma**2)).max())

    return make


for d in (2, 10, 64):
    row(f"Gaussian Gram matrix, d = {d}", "scikit-learn", (1250, 2500, 5000), repeats=7)(gram(d))
row("Gaussian Gram matrix, d = 300", "scikit-learn", (750, 1500, 3000), repeats=7)(gram(300))


def dependent(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, 0.1 * X + rng.normal(size=(n, d))


@row("HSIC, the statistic, d = 5", "hyppo", (1000, 2000, 5000))
def statistic(n):
    from hyppo.independence import Hsic
    from rkhs_lit import Gaussian, hsic

    X, Y = dependent(n, 5)
    k = Gaussian(2.0)
    return dict(ours=lambda: hsic(k, k, X, Y),
                peer=lambda: Hsic(gamma=1 / 8).statistic(X, Y),
                floor=lambda: exponentials(n * n))


@row("exact HSIC in tiles, d = 1", "KeOps", (12_500, 25_000, 50_000), repeats=2)
def tiles(n):
    from pykeops.numpy import Vi, Vj
    from rkhs_lit import Gaussian, hsic

    x, y = dependent(n, 1)
    k = Gaussian(1.0)
    K, L = ((-((Vi(z) - Vj(z)) ** 2).sum(-1) / 2).exp() for z in (x, y))

    def biased():
        K1, L1 = K.sum(1).ravel(), L.sum(1).ravel()
        S = float((K * L).sum(1).sum())
        return (S - 2 * (K1 @ L1) / n + K1.sum() * L1.sum() / n**2) / n**2

    return dict(ours=lambda: hsic(k, k, x, y, unbiased=False), peer=biased,
                floor=lambda: exponentials(n * n),
                gap=lambda: abs(hsic(k, k, x, y, unbiased=False) / biased() - 1))


@row("exact HSIC in tiles, d = 1", "none", (100_000,), repeats=1)
def many_tiles(n):
    from rkhs_lit import Gaussian, hsic

    x, y = dependent(n, 1)
    k = Gaussian(1.0)
    return dict(ours=lambda: hsic(k, k, x, y), floor=lambda: exponentials(n * n))


def factors(d):
    def make(n):
        from rkhs_lit import Gaussian, hsic_low_rank

        X, Y = dependent(n, d)
        k = Gaussian(1.0)
        return dict(ours=lambda: hsic_low_rank(k, k, X, Y))

    return make


for d in (1, 2):
    row(f"HSIC, unbiased from factors, d = {d}", "none", (10_000, 100_000, 1_000_000),
        repeats=1)(factors(d))


def permutations(d, test):
    share = 0.02                                   # 20 of 1000 permutations

    def make(n):
        from hyppo.independence import Hsic
        from hyppo.ksample import MMD
        from rkhs_lit import Gaussian, hsic_test, median_heuristic, mmd_test

        if test == "HSIC":
            X, Y = dependent(n, d)
            k, l = (Gaussian(median_heuristic(Z)) for Z in (X, Y))
            return dict(
                ours=lambda: hsic_test(k, l, X, Y, n_permutations=1000, rng=0),
                peer=lambda: Hsic().test(X, Y, reps=int(1000 * share), auto=False, workers=1))
        X, Y = dependent(n // 2, d)
        k = Gaussian(median_heuristic(np.concatenate([X, Y])))
        return dict(ours=lambda: mmd_test(k, X, Y, n_permutations=1000, rng=0),
                    peer=lambda: MMD().test(X, Y, reps=int(1000 * share), auto=False, workers=1))

    return make, {"peer": share}


for d in (1, 5):
    make, share = permutations(d, "HSIC")
    row(f"HSIC test, 1000 permutations, d = {d}", "hyppo", (500, 1000, 2000), share=share)(make)
make, share = permutations(5, "MMD")
row("MMD test, 1000 permutations, d = 5", "hyppo", (500, 1000, 2000), share=share)(make)


def components(d, sigma):
    def make(n):
        from rkhs_lit import Gaussian, kernel_pca
        from sklearn.decomposition import KernelPCA

        X = np.random.default_rng(0).normal(size=(n, d))
        k = Gaussian(sigma)
        peer = KernelPCA(10, kernel="rbf", gamma=0.5 / sigma**2, eigen_solver="arpack",
                         random_state=0)
        return dict(ours=lambda: kernel_pca(k, X, 10), peer=lambda: peer.fit(X),
                    gap=lambda: np.abs(n * kernel_pca(k, X, 10).eigenvalues
                                       / peer.fit(X).eigenvalues_ - 1).max())

    return make


for d, sigma in ((2, 1.0), (10, 3.0)):
    row(f"kernel PCA, 10 components, d = {d}", "scikit-learn (arpack)",
        (1250, 2500, 5000))(components(d, sigma))


def penalties(folds):
    def make(n):
        from rkhs_lit import Gaussian, cross_validate, ridge_path
        from sklearn.kernel_ridge import KernelRidge
        from sklearn.model_selection import GridSearchCV

        rng, lams = np.random.default_rng(0), np.geomspace(1e-3, 1e2, 30)
        X = rng.normal(size=(n, 5))
        y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)
        k = Gaussian(2.0)
        search = GridSearchCV(KernelRidge(kernel="rbf", gamma=1 / 8), {"alpha": lams}, cv=5,
                              scoring="neg_mean_squared_error", refit=False)
        return dict(ours=lambda: (cross_validate(k, X, y, lams, folds=5, rng=0) if folds
                                  else ridge_path(k, X, y, lams)),
                    peer=lambda: search.fit(X, y))

    return make


row("ridge, 30 penalties, 5 folds", "scikit-learn (GridSearchCV)", (250, 500, 1000))(penalties(5))
row("ridge, 30 penalties, exact leave-one-out", "scikit-learn (5 folds)",
    (250, 500, 1000))(penalties(0))


def machine(sigma, C):
    def make(n):
        from rkhs_lit import Gaussian, svm
        from sklearn.svm import SVC

        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 2))
        y = np.where(np.sum(X**2, axis=1) + 0.5 * rng.normal(size=n) > 1.3, 1, -1)
        k, peer = Gaussian(sigma), SVC(C=C, gamma=0.5 / sigma**2)
        return dict(ours=lambda: svm(k, X, y, C), peer=lambda: peer.fit(X, y))

    return make


for word, sigma in (("wide", 1.0), ("narrow", 0.1)):
    for C in (1.0, 100.0):
        row(f"C-SVM, {word} kernel, C = {C:g}", "libsvm (tolerance 1e-3)",
            (1000, 2000, 5000))(machine(sigma, C))


row("C-SVM, wide kernel, C = 1, no n × n matrix", "libsvm (tolerance 1e-3)", (20_000,),
    repeats=1)(machine(1.0, 1.0))


def waves(paired):
    def make(n):
        from rkhs_lit import Gaussian, random_fourier_features
        from sklearn.kernel_approximation import RBFSampler

        X = np.random.default_rng(0).normal(size=(n, 10))
        z = random_fourier_features(Gaussian(1.0), 500, dim=10, rng=0, paired=paired)
        peer = RBFSampler(gamma=0.5, n_components=500, random_state=0).fit(X)
        return dict(ours=lambda: z(X), peer=lambda: peer.transform(X))

    return make


for word, paired in (("pairs", True), ("phases", False)):
    row(f"500 random Fourier features, {word}", "scikit-learn (RBFSampler)",
        (25_000, 50_000, 100_000))(waves(paired))


@row("COCO with witnesses, d = 5", "its two Gram matrices", (1000, 2000, 5000))
def constrained(n):
    from rkhs_lit import Gaussian, coco

    X, Y = dependent(n, 5)
    k = Gaussian(2.0)
    return dict(ours=lambda: coco(k, k, X, Y), peer=lambda: (k(X), k(Y)))


def conditional(family, peer):
    def make(n):
        import rkhs_lit as R

        rng = np.random.default_rng(0)
        z, u, v = rng.normal(size=(3, n, 1))
        points = z**2 + u / 2, z**2 + v / 2, z
        kernels = [getattr(R, family)(R.median_heuristic(p)) for p in points]

        def full(lam=1e-6):
            Kx, Ky, Kz = (k(p) for k, p in zip(kernels, points))
            A = n * lam * np.linalg.inv(R.centre(Kz) + n * lam * np.eye(n))
            W = (A @ R.centre(Kx) @ A) * (A @ R.centre(Ky) @ A) * (1 + Kz) / 2
            return np.linalg.eigvalsh(W)

        def kci():
            from causallearn.utils.KCI.KCI import KCI_CInd

            return KCI_CInd().compute_pvalue(*points)

        return dict(ours=lambda: R.conditional_independence_test(*kernels, *points, lam=1e-6),
                    peer=kci if peer == "causal-learn" else full)

    return make


row("conditional independence, Gaussian", "causal-learn", (500, 1000, 2000),
    repeats=2)(conditional("Gaussian", "causal-learn"))
row("conditional independence, Laplace", "full matrices", (500, 1000, 2000),
    repeats=2)(conditional("Laplace", "full"))


def bayes(n):
    import rkhs_lit as R

    rng, k, lam, eps = np.random.default_rng(0), R.Gaussian(0.5), 1e-4, 1e-4
    Y = rng.normal(size=n)
    X, x = Y + 0.5 * rng.normal(size=n), np.array([1.4])
    prior = R.GaussianEmbedding(k, 0.6, 0.25)

    def printed():
        w = np.linalg.solve(k(Y) + n * lam * np.eye(n), prior(Y))
        A = k(X) * w
        return w * np.linalg.solve(A @ A + eps * np.eye(n), A @ k(X, x)[:, 0])

    def ours():
        return R.kernel_bayes_rule(k, k, X, Y, prior, lam, eps, method="squared").weights_at(x)

    return dict(ours=ours, peer=printed,
                gap=lambda: np.abs(ours()[:, 0] - printed()).max() / np.abs(printed()).max())


row("kernel Bayes rule, one update", "the printed form by LU", (500, 1000, 2000))(bayes)


@row("import rkhs_lit", "NumPy and the parts of SciPy", (1,), repeats=5)
def importing(n):
    def run(code):
        subprocess.run([sys.executable, "-c", code], check=True)

    return dict(ours=lambda: run("import rkhs_lit"),
                peer=lambda: run("import numpy, scipy.linalg, scipy.spatial, scipy.sparse, "
                                 "scipy.special"),
                floor=lambda: run("import numpy"))
