"""A small valid call of every public callable, for the tests that look at all.

A key is a function, a class or a method; a word behind a colon tells
two calls of one callable apart. The arguments are data, so that a test can
spoil one.
"""

import functools
import inspect

import numpy as np
import rkhs_lit
from rkhs_lit import (
    Features,
    Gaussian,
    Linear,
    Loss,
    Pairs,
    RKHSFunction,
    cross_covariance,
    kernel_pca,
    words,
)

_RNG = np.random.default_rng(0)
X, Y, Z, T = _RNG.normal(size=(4, 8, 2))
T = T[:3]
y, w = _RNG.normal(size=8), np.full(8, 1 / 8)
LABELS = np.array([1.0, -1, 1, 1, -1, -1, 1, -1])
SIGNAL = np.sin(np.arange(8.0))
LINE = SIGNAL[:, None]
k, l = Gaussian(1.0), Gaussian(2.0)
K, L, M = k(X), l(Y), k(Z)
f, g = RKHSFunction(k, X, y), RKHSFunction(l, Y, w)
PHI, PSI = Features(k, X), Features(k, T)
A = cross_covariance(k, k, X, X)
PCA = kernel_pca(k, X, 2)
FOLDS = [[0, 1, 2], [3, 4], [5, 6, 7]]
GRID = np.array([0.1, 1.0])


def squares(points):
    """A function of points of the plane."""
    return np.sum(np.square(points), axis=1)


def one(points):
    """The function 1."""
    return np.ones(len(points))


def table(points):
    """Two functions of points of the plane, one a column."""
    return np.array(points)


def halves(n):
    """Coefficients of a series."""
    return 0.5**n


def visit(total, i, j):
    """Counts the entries of a tile."""
    total += (i.stop - i.start) * (j.stop - j.start)


def start():
    """An empty total."""
    return np.zeros(1)


def start_at(item):
    """A total with one item."""
    return np.zeros(1) + item


PAIR = dict(k=k, l=l, X=X, Y=Y)
FIT = dict(kernel=k, X=X, y=y)
TRIPLE = dict(kx=k, ky=l, kz=k, X=X, Y=Y, Z=Z)
BAYES = dict(**PAIR, prior=g, lam=0.1, eps=0.1)
RECORDING = dict(states=X, observations=Y, lam=0.1, eps=0.1)

GOOD = {
    # conventions: the name of the argument is the caller's
    "as_points": dict(X=X),
    "as_sequence": dict(X=X),
    "certain": dict(value=2.0, error=0.1, name="value"),
    "choice": dict(value="a", name="value", options=("a", "b")),
    "finite": dict(values=y, name="values"),
    "flag": dict(value=True, name="value"),
    "frozen": dict(array=X),
    "function": dict(value=squares, name="value"),
    "generator": dict(rng=0),
    "nonnegative": dict(value=0.0, name="value"),
    "number": dict(value=-1.0, name="value"),
    "plain_array": dict(values=X, name="values"),
    "positive": dict(value=1.0, name="value"),
    "positives": dict(values=GRID, name="values"),
    "real_array": dict(values=X, name="values"),
    "same_columns": dict(X=X, Y=Y),
    "same_dimension": dict(X=X, Y=T),
    "tolerance": dict(value=0.1, name="value"),
    "vector": dict(values=y, name="values", n=8),
    "whole": dict(value=3, name="value"),
    "width": dict(value=1.0, name="value"),
    # tiles
    "parallel": dict(executor=None, progress=False),
    "reduce_runs": dict(work=start_at, items=[1.0, 2.0]),
    "reduce_tiles": dict(visit=visit, start=start, n=3, m=4),
    # riesz
    "gram_solve": dict(gram=K, values=y),
    "riesz_representer": dict(gram=K, values=y),
    # kernels
    "BSpline": dict(width=1.0, degree=3),
    "Conjugated": dict(kernel=k, function=one),
    "Delta": dict(),
    "Exponential": dict(),
    "FeatureKernel": dict(features=words),
    "FunctionKernel": dict(function=np.dot),
    "Gaussian": dict(sigma=1.0),
    "Laplace": dict(sigma=1.0),
    "Linear": dict(),
    "Mapped": dict(kernel=k, map=table),
    "Pairs": dict(first=X, second=Y),
    "Polynomial": dict(degree=2),
    "Power": dict(kernel=k, m=2),
    "Product": dict(first=k, second=l),
    "Scaled": dict(c=2.0, kernel=k),
    "Sigmoid": dict(a=1.0, c=0.5),
    "Sinc": dict(width=1.0),
    "Sum": dict(first=k, second=l),
    "Taylor": dict(coefficients=[1.0, 0.5]),
    "Taylor:series": dict(coefficients=halves),
    "TensorProduct": dict(first=k, second=l),
    "as_kernel": dict(kernel=k),
    "gaussian_bumps": dict(X=X, T=T, sigma=1.0),
    "gaussian_features": dict(X=X, sigma=1.0, degree=2),
    "checked": dict(read=squares),
    "gram_dot": dict(kernel=k, X=T, Y=X, W=y),
    "is_positive_definite": dict(K=K),
    "lag_vectors": dict(signal=SIGNAL, memory=3),
    "normalised": dict(kernel=Linear() + 1.0 * k),
    "polynomial_features": dict(X=X, degree=2),
    "squared_distances": dict(X=X, Y=T),
    "substrings": dict(p=2),
    "substrings.__call__": dict(text="banana"),
    "words": dict(document="to be or not to be"),
    # moore_aronszajn
    "Features": dict(kernel=k, points=X, name="points"),
    "Features.dot": dict(W=w[:3], other=PSI),
    "Features.gram": dict(other=PSI),
    "Features.joined": dict(other=PSI),
    "Features.sample": dict(f=f),
    "RKHSFunction": dict(kernel=k, points=X, weights=y),
    "RKHSFunction:pairs": dict(
        kernel=rkhs_lit.TensorProduct(k, rkhs_lit.Delta()), points=Pairs(X, X), weights=y
    ),
    "RKHSFunction:texts": dict(
        kernel=rkhs_lit.FeatureKernel(words), points=["a cat", "a dog"], weights=[1.0, 2.0]
    ),
    "RKHSFunction.__call__": dict(T=T),
    "as_function": dict(f=f),
    "inner": dict(f=f, g=f),
    "kernel_from_basis": dict(basis=table, gram=np.eye(2)),
    "norm": dict(f=f),
    "norm_and_error": dict(f=f),
    "paired": PAIR,
    # interpolation
    "decompose": dict(f=RKHSFunction(k + l, X, y)),
    "interpolate": FIT,
    "power_function": dict(kernel=k, X=X, T=T),
    "project": dict(f=f, X=T),
    # fourier_series
    "FourierKernel": dict(coefficients=[1.0, 0.5]),
    "FourierKernel:series": dict(coefficients=halves, degree=3),
    "FourierKernel.spectrum": dict(degree=2),
    "JacobiTheta": dict(sigma=1.0),
    "JacobiTheta.spectrum": dict(degree=2),
    "as_line": dict(X=X[:, 0]),
    "fourier_coefficients": dict(f=np.cos, degree=2, n_points=8),
    "spectral_inner": dict(a=[1.0, 1.0], b=[3.0, 1.0], eigenvalues=[1.0, 0.5]),
    "spectral_norm": dict(a=[1.0, 1.0], eigenvalues=[1.0, 0.5]),
    "waves": dict(T=T[:, 0], l=[0.0, 1.0, -1.0, 2.0]),
    # mercer
    "Eigensystem.coefficients": dict(f=one),
    "Eigensystem.features": dict(T=T),
    "eigensystem": dict(kernel=k, nodes=X, weights=w, n_components=2),
    "fourier_eigensystem": dict(kernel=rkhs_lit.JacobiTheta(1.0), degree=2),
    "hermite_eigensystem": dict(sigma=1.0, width=1.0, n_components=2),
    "integral_operator": dict(kernel=k, nodes=X, weights=w, f=one),
    # bochner
    "Matern": dict(nu=1.5, sigma=1.0),
    "spectral_density": dict(kernel=k, omega=X),
    "spectral_sample": dict(kernel=k, n=4, dim=2, rng=0),
    # low_rank
    "FourierFeatures": dict(frequencies=X, phases=y, n_features=16),
    "FourierFeatures.__call__": dict(X=T),
    "NystromFeatures.__call__": dict(X=T),
    "nystrom_features": dict(kernel=k, landmarks=X),
    "pivoted_cholesky": dict(kernel=k, X=X),
    "random_fourier_features": dict(kernel=k, n_features=4, dim=2, rng=0),
    "rff_variance": dict(kernel=k, X=X, Y=T, n_features=4),
    # representer
    "Loss": dict(name="huber", parameter=1.0),
    "Loss.__call__": dict(y=y, z=w),
    "duality_gap": dict(f=f, y=y, loss="squared", lam=0.1),
    "minimize_risk": dict(**FIT, loss="squared", lam=0.1),
    "minimize_risk:hinge": dict(kernel=k, X=X, y=LABELS, loss=Loss("hinge"), lam=0.1),
    "minimize_risk:offset": dict(**FIT, loss="absolute", lam=0.1, offset=True),
    "regularised_risk": dict(f=f, X=X, y=y, loss="squared", lam=0.1),
    "Shifted": dict(function=f, b=1.0),
    "Shifted.__call__": dict(T=T),
    # ridge
    "RidgePath.__call__": dict(T=T),
    "RidgePath.function": dict(j=0),
    "cross_validate": dict(kernels=[k, l], X=X, y=y, lams=GRID, folds=2, test=2, rng=0),
    "cross_validate:folds": dict(kernels=[k], X=X, y=y, lams=GRID, folds=FOLDS),
    "degrees_of_freedom": dict(kernel=k, X=X, lam=0.1),
    "leave_fold_out": dict(**FIT, lam=0.1, folds=FOLDS),
    "leave_one_out": dict(**FIT, lam=0.1),
    "ridge": dict(**FIT, lam=0.1),
    "ridge:offset": dict(**FIT, lam=0.1, offset=True),
    "standardise": dict(X=X),
    "Standardisation.__call__": dict(T=T),
    "ridge_factor": dict(K=K, lam=0.1),
    "split_folds": dict(n=8, folds=2, test=2, rng=0),
    "ridge_path": dict(**FIT, lams=GRID),
    "ridge_spectrum": dict(K=K, lam=0.1),
    "smoother_matrix": dict(kernel=k, X=X, lam=0.1),
    # gaussian_process
    "gaussian_derivative": dict(X=X, sigma=1.0),
    "gp_posterior": dict(**FIT, noise=0.1, T=T),
    "log_marginal_likelihood": dict(
        **FIT, noise=0.1, derivatives=[K], return_gradient=True
    ),
    # pca
    "PrincipalComponents.first": dict(r=1),
    "PrincipalComponents.reconstruct": dict(T=T),
    "PrincipalComponents.transform": dict(T=T),
    "centre": dict(K=K),
    "modes": dict(Phi=PHI, W=np.stack([w, w]), start=X[:2]),
    "denoise": dict(pca=PCA, T=T),
    "kernel_pca": dict(kernel=k, X=X, n_components=2),
    "kernel_pca:rank": dict(kernel=k, X=X, n_components=2, max_rank=4),
    "preimage": dict(f=RKHSFunction(k, X, w), start=X[0]),
    # duality
    "conjugate": dict(points=[-1.0, 0.0, 2.0], values=[1.0, 0.0, 4.0], slopes=[0.0, 1.0]),
    # quadratic
    "solve_qp": dict(
        P=np.eye(2), q=[0.0, -3.0], A=[[1.0, 1.0]], b=[1.0], lower=[0.0, 0.0],
        upper=[2.0, 2.0], C=[[1.0, -1.0]], c=[1.0],
    ),
    "solve_qp:factor": dict(P=None, q=[0.0, -3.0], lower=0.0, factor=np.eye(2)),
    # svm
    "SVM.decision": dict(T=T),
    "SVM.predict": dict(T=T),
    "nu_svm": dict(kernel=k, X=X, y=LABELS, nu=0.5),
    "pair_steps": dict(
        K=np.eye(2), t=np.array([1.0, -1.0]), a=np.zeros(2), low=np.array([0.0, -1.0]),
        high=np.array([1.0, 0.0]), tol=1e-9, steps=5,
    ),
    "svm": dict(kernel=k, X=X, y=LABELS, C=1.0),
    # svm_choice
    "svm_cross_validate": dict(kernels=[k, l], X=X, y=LABELS, Cs=GRID, folds=2, test=2, rng=0),
    # mean_embedding
    "GaussianEmbedding": dict(kernel=k, mean=np.zeros(2), covariance=np.eye(2)),
    "GaussianEmbedding.__call__": dict(T=T),
    "embedding_distance": dict(mu=f, nu=RKHSFunction(k, T, w[:3])),
    "embedding_error": dict(kernel=k, X=X),
    "embedding_inner": dict(mu=f, nu=f),
    "is_characteristic": dict(kernel=k, X=X),
    "mean_embedding": dict(kernel=k, X=X, weights=w),
    "moved": dict(Phi=PHI),
    "squared_norm": dict(value=2.0, size=1.0, name="kernel"),
    # mmd
    "median_heuristic": dict(X=X, max_points=6, rng=0),
    "mmd2_biased": dict(kernel=k, X=X, Y=T),
    "mmd2_unbiased": dict(kernel=k, X=X, Y=T),
    "sample_maps": dict(kernel=k, X=X, Y=T),
    "witness": dict(kernel=k, X=X, Y=T),
    # two_samples
    "PermutationTest": dict(statistic=2.0, pvalue=0.5, null_distribution=y),
    "mmd_test": dict(kernel=k, X=X, Y=T, n_permutations=9, rng=0),
    "mmd_test:unbiased": dict(kernel=k, X=X, Y=T, n_permutations=9, rng=0, unbiased=True),
    "permutation_pvalue": dict(statistic=2.0, null_distribution=y),
    "split_statistics": dict(K=K - K.mean(0) - K.mean(1)[:, None] + K.mean(),
                             S=np.eye(8)[:, :3]),
    # cross_covariance
    "LowRank": dict(U=X, V=Y, diagonal=y),
    "RKHSOperator": dict(k=k, X=X, l=l, Y=T, weights=np.ones((8, 3))),
    "RKHSOperator.__call__": dict(g=RKHSFunction(l, Y, w)),
    "RKHSOperator.values": dict(S=X, T=T),
    "cross_covariance": PAIR,
    "is_constant": dict(Phi=PHI),
    "hs_inner": dict(A=A, B=A),
    "hs_norm": dict(A=A),
    "lanczos": dict(A=A),
    "op_norm": dict(A=A),
    "operator_core": dict(A=A),
    "regularised_solve": dict(A=A, f=f, lam=0.1),
    "tensor": dict(f=f, g=g),
    # coco
    "coco": PAIR,
    "coco:tol": dict(**PAIR, tol=1e-6),
    "coco_test": dict(**PAIR, n_permutations=9, rng=0),
    # hsic
    "hsic": PAIR,
    "hsic:biased": dict(**PAIR, unbiased=False),
    "hsic_biased": dict(K=K, L=L),
    "gamma_pvalue": dict(statistic=2.0, mean=1.0, variance=0.5),
    "hsic_gamma_test": PAIR,
    "hsic_low_rank": PAIR,
    "hsic_null_moments": dict(K=K, L=L),
    "hsic_test": dict(**PAIR, n_permutations=9, rng=0),
    "hsic_unbiased": dict(K=K, L=L),
    "tile_sums": dict(Phi=PHI, Psi=Features(l, Y)),
    # unmixing
    "balanced_labels": dict(y=LABELS),
    "hsic_gaussian": dict(k=k, l=l, covariance=[[1.0, 0.5], [0.5, 1.0]], split=1),
    "hsic_unmix": dict(k=k, X=X, start=np.eye(2), max_steps=50),
    "select_features": dict(**PAIR, n_features=1),
    # conditional_independence
    "conditional_covariance": dict(**TRIPLE, lam=0.1),
    "conditional_hsic": dict(Kx=K, Ky=L, Kz=M, lam=0.1),
    "conditional_independence_test": dict(**TRIPLE, lam=0.1),
    "normalised_conditional_hsic": dict(Kx=K, Ky=L, Kz=M, lam=0.1),
    # conditional_embedding
    "ConditionalEmbedding": dict(**PAIR, lam=0.1),
    "ConditionalEmbedding.__call__": dict(x=X[0]),
    "ConditionalEmbedding.expectation": dict(g=g, T=T),
    "ConditionalEmbedding.transport": dict(f=f),
    "ConditionalEmbedding.weights_at": dict(T=T),
    "conditional_embedding": dict(**PAIR, lam=0.1),
    "embedding_leave_one_out": dict(**PAIR, lams=GRID),
    "one_point": dict(kernel=k, x=X[0]),
    "values_at": dict(g=f, Psi=PHI),
    # bayes_rule
    "Coordinates": dict(Phi=PHI, tol=1e-10),
    "Coordinates.__call__": dict(T=T),
    "Coordinates.of": dict(f=f),
    "KernelPosterior": dict(**PAIR, prior_weights=w, eps=0.1),
    "KernelPosterior.__call__": dict(x=X[0]),
    "KernelPosterior.expectation": dict(g=g, T=T),
    "KernelPosterior.weights_at": dict(T=T),
    "kernel_bayes_rule": BAYES,
    "posterior_weights": dict(G=X, w=w, phi=T[0], eps=0.1),
    "kernel_chain_rule": BAYES,
    "kernel_sum_rule": BAYES,
    "validate_bayes_rule": dict(
        **PAIR, prior=g, lams=GRID, epsilons=GRID, folds=2, rng=0
    ),
    # filtering
    "Filtered.expectation": dict(g=f),
    "KernelBayesFilter": dict(k=k, l=l, **RECORDING),
    "KernelBayesFilter:jumps": dict(k=k, l=l, **RECORDING, next_states=Z),
    "KernelBayesFilter.filter": dict(ys=T, previous=f),
    "KernelBayesFilter.locate": dict(W=w[None, :7]),
    "KernelBayesFilter.predict": dict(f=f),
    "KernelBayesFilter.retune": dict(lam=0.2, eps=0.2),
    "KernelBayesFilter.step": dict(y=T[0], previous=f),
    "KernelBayesFilter.update": dict(y=T[0], prior=f),
    "unit_mass": dict(w=w),
    "validate_filter": dict(
        kernels=[(k, l)], states=X, observations=Y, lams=GRID, epsilons=GRID,
        held_out=2,
    ),
}

# Records that calls give and nobody makes by hand -> a call that gives one.
MADE_BY = {
    "BayesValidation": "validate_bayes_rule",
    "Characteristic": "is_characteristic",
    "ConditionalTest": "conditional_independence_test",
    "ConstrainedCovariance": "coco",
    "CrossValidation": "cross_validate",
    "Definiteness": "is_positive_definite",
    "Eigensystem": "eigensystem",
    "FeatureSelection": "select_features",
    "FilterValidation": "validate_filter",
    "Filtered": "KernelBayesFilter.filter",
    "BoundedHSIC": "hsic_low_rank",
    "GammaTest": "hsic_gamma_test",
    "GramSolution": "gram_solve",
    "NystromFeatures": "nystrom_features",
    "PrincipalComponents": "kernel_pca",
    "QPSolution": "solve_qp",
    "RidgePath": "ridge_path",
    "SVM": "svm",
    "SVMCrossValidation": "svm_cross_validate",
    "Standardisation": "standardise",
    "Unmixing": "hsic_unmix",
}
# Classes that are no callable of their own -> why.
ABSTRACT = {
    "Kernel": "what all kernels have in common",
    "PrecisionWarning": "a warning",
    "Record": "what all results have in common",
    "Vectors": "what functions and operators have in common",
}
# Kernels on points that are not vectors -> such points.
POINTS = {
    "FeatureKernel": ["a cat", "a dog", "a cat and a dog"],
    "FourierKernel": LINE,
    "FourierKernel:series": LINE,
    "JacobiTheta": LINE,
    "Taylor:series": 0.1 * X,
    "TensorProduct": Pairs(X, Y),
}
KERNELS = [
    name
    for name in GOOD
    if inspect.isclass(found := getattr(rkhs_lit, name.partition(":")[0], None))
    and issubclass(found, rkhs_lit.Kernel)
]
for _name in KERNELS:
    _points = POINTS.get(_name, X)
    GOOD[f"{_name}.__call__"] = dict(X=_points, Y=_points[:2])
    GOOD[f"{_name}.diag"] = dict(X=_points)


for _loss in ("hinge", "squared_hinge", "logistic"):   # on labels
    GOOD |= {
        f"Loss:{_loss}": dict(name=_loss),
        f"Loss:{_loss}.__call__": dict(y=LABELS, z=w),
        f"duality_gap:{_loss}": dict(f=f, y=LABELS, loss=_loss, lam=0.1),
        f"regularised_risk:{_loss}": dict(f=f, X=X, y=LABELS, loss=_loss, lam=0.1),
    }


def public():
    """The functions and classes of the package, by name."""
    found = inspect.getmembers(rkhs_lit, callable)
    return {name: value for name, value in found if name[0] != "_"}


def methods(kind):
    """The public methods of a class that take arguments."""
    for name, value in inspect.getmembers(kind, inspect.isfunction):
        if name == "__call__" or name[0] != "_":
            if len(inspect.signature(value).parameters) > 1:
                yield name


def parts(name):
    """The key of the object and the name of the method, or None."""
    owner, _, method = name.partition(".")
    return owner, method or None


@functools.cache
def made(name):
    """The result of the good call."""
    return call(name)


def target(name):
    """The function, class or bound method that a key stands for."""
    owner, method = parts(name)
    if method:
        return getattr(made(MADE_BY.get(owner, owner)), method)
    return getattr(rkhs_lit, owner.partition(":")[0])


def call(name, **changed):
    """Call it with the good arguments, but for those changed."""
    return target(name)(**{**GOOD[name], **changed})
