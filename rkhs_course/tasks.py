"""The tasks: what a student writes, what is asked of it, and on which data.

Right answers are not here: they are the functions of ``rkhs_lit``. Wrong answers
that students write are in ``mistakes.py``.

A task is checked for its mathematics: `ask` is an expression in the names of the
data, evaluated with the student's function and with the book's. The data are drawn
from a seed, so that every student has their own.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Task:
    """One task.

    Attributes
    ----------
    name, chapter : str
    function : str
        The exported function, or ``Class.method``, whose body is to be written.
    label : str
        Of the statement that the function computes.
    points : int
    ask : str
        The expression that is compared.
    data : function
        Of a random generator; the names in `ask`, and their values.
    hint : str
        Points to the step of the proof.
    scope : str
        What is asked, where that is less than the docstring promises.
    rtol : float
        The largest error, relative to the largest number of the right answer.
    robust : bool
        Whether there is a mark for refusing a NaN.
    also : tuple of str
        Functions that would give the answer away, and are masked with this one until
        its check holds: of the same chapter, or as ``module:name`` of another.
    blank : dict
        Others of the chapter, which must not raise meanwhile, each with the line that
        stands for its body.
    """

    name: str
    chapter: str
    function: str
    label: str
    points: int
    ask: str
    data: Callable
    hint: str
    scope: str = ""
    rtol: float = 1e-6
    robust: bool = True
    also: tuple = ()
    blank: dict = field(default_factory=dict)

    @property
    def place(self):
        """The function with its module, as in ``ridge:leave_one_out``."""
        return f"{self.chapter}:{self.function}"


@dataclass(frozen=True)
class Make:
    """An object of ``rkhs_lit``, as data: the name of its class, and arguments."""

    name: str
    args: tuple

    def __init__(self, name, *args):
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "args", args)


def encode(value):
    """A value as JSON can hold it; see `runner.build`."""
    if isinstance(value, Make):
        return {"make": value.name, "args": [encode(part) for part in value.args]}
    if isinstance(value, np.ndarray):
        return {"array": value.astype(float).ravel().tolist(), "shape": value.shape}
    if isinstance(value, (list, tuple)):
        return [encode(part) for part in value]
    return value


ROUNDS = 3                                 # data sets for each task


def draws(task, seed):
    """The data sets of a task for one student, as dictionaries."""
    for number in range(ROUNDS):
        text = f"{seed}/{task.name}/{number}".encode()
        digest = hashlib.sha256(text).digest()
        yield task.data(np.random.default_rng(list(digest)))


# Data


def size(rng):
    return int(rng.integers(6, 9))


def points(rng, n, d=2):
    """n points of which no two are close."""
    X = rng.normal(size=(n, d))
    while n > 1 and (np.linalg.norm(X[:, None] - X, axis=2) + np.eye(n)).min() < 0.3:
        X = rng.normal(size=(n, d))
    return X


def gaussian(rng):
    return Make("Gaussian", float(rng.uniform(0.7, 1.2)))


def gram(rng, n):
    """The Gram matrix of a Gaussian kernel and n points."""
    X = points(rng, n)
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    return np.exp(-squares / rng.uniform(1.0, 3.0)) * rng.uniform(0.5, 2.0)


def grams(rng, *names):
    n = size(rng)
    return {name: gram(rng, n) for name in names}


def function(rng, kernel, X):
    return Make("RKHSFunction", kernel, X, rng.normal(size=len(X)))


def pairs(rng, n=None):
    n = n or size(rng)
    X = points(rng, n)
    Y = np.column_stack([X[:, 0] + X[:, 1] ** 2, X[:, 1]]) + 0.3 * points(rng, n)
    return dict(k=gaussian(rng), l=gaussian(rng), X=X, Y=Y)


def sample(rng):
    """A kernel, points, values, places to look at, and λ."""
    n = size(rng)
    X = points(rng, n)
    return dict(k=gaussian(rng), X=X, y=np.sin(2 * X[:, 0]) + 2 + rng.normal(size=n),
                T=points(rng, 4), lam=float(rng.uniform(0.2, 0.6)))


def _fold_data(rng):
    """Three folds, of two or three points each."""
    some = sample(rng)
    folds = np.array_split(rng.permutation(len(some["y"])), 3)
    return {name: some[name] for name in ("k", "X", "y", "lam")} | {
        "folds": [fold.tolist() for fold in folds]}


def only(maker, *names):
    """The maker, with these names kept."""
    def some(rng):
        data = maker(rng)
        return {name: data[name] for name in names}

    return some


def two_samples(rng):
    return dict(k=gaussian(rng), X=points(rng, size(rng)),
                Y=points(rng, size(rng) - 2) + 0.5)


def _points_data(rng):
    n = size(rng)
    return dict(X=rng.normal(size=n), Z=rng.normal(size=(n, 2)))


def _tiles_data(rng):
    n, m = (int(size) for size in rng.integers(300, 700, 2))
    return dict(x=rng.uniform(size=n), y=rng.uniform(size=m))


def _riesz_data(rng):
    B = rng.normal(size=(size(rng), 4))
    return dict(G=B.T @ B + np.eye(4), l=rng.normal(size=4))


def _cosine_data(rng):
    return dict(k=Make("Polynomial", 2, float(rng.uniform(0.5, 2.0))),
                X=points(rng, 5), Y=points(rng, 4))


def _monomials_data(rng):
    return dict(X=points(rng, 5), Y=points(rng, 4), m=int(rng.integers(2, 5)),
                c=float(rng.uniform(0.5, 2.0)))


def _inner_data(rng):
    k = gaussian(rng)
    return dict(f=function(rng, k, points(rng, size(rng))),
                g=function(rng, k, points(rng, 4)))


def _project_data(rng):
    k = gaussian(rng)
    return dict(f=function(rng, k, points(rng, 5)), X=points(rng, 4), T=points(rng, 4))


def _basis_data(rng):
    B = rng.normal(size=(5, 3))
    return dict(G=B.T @ B + np.eye(3), T=points(rng, 5))


def _spectral_data(rng):
    n = size(rng)
    return dict(a=rng.normal(size=n), b=rng.normal(size=n),
                lam=2.0 ** -np.arange(n) * rng.uniform(0.5, 2.0))


def _operator_data(rng):
    some = sample(rng)
    return dict(k=some["k"], X=some["X"], w=rng.uniform(0.2, 1.0, len(some["X"])),
                f=function(rng, gaussian(rng), points(rng, 3)), T=some["T"])


def _rff_data(rng):
    return dict(k=gaussian(rng), X=points(rng, 5), Y=points(rng, 4),
                D=2 * int(rng.integers(3, 20)))


def _cholesky_data(rng):
    # Two points with the largest k(x, x) that are close to each other: once one is a
    # pivot, the other is no good one.
    X = points(rng, 7)
    i = int(np.linalg.norm(X, axis=1).argmax())
    X[i] *= 1.5
    X = rng.permutation(np.vstack([X, 0.97 * X[i]]))
    return dict(k=Make("Polynomial", 3, float(rng.uniform(0.5, 1.5))), X=X,
                r=int(rng.integers(2, 5)))


def _risk_data(rng):
    some = sample(rng)
    f = function(rng, some["k"], points(rng, 5))
    n = len(some["y"])
    return dict(f=f, X=some["X"], y=some["y"], lam=some["lam"],
                labels=np.where(rng.permutation(n) < n // 2, -1.0, 1.0))


def _gap_data(rng):
    some = sample(rng)
    return dict(f=function(rng, some["k"], some["X"]), y=some["y"], lam=some["lam"])


def _qp_data(rng):
    B = rng.normal(size=(6, 5))
    return dict(P=B.T @ B + np.eye(5), q=rng.normal(size=5),
                A=rng.normal(size=(2, 5)), b=rng.normal(size=2))


def _svm_folds(rng):
    X = points(rng, 20)
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=20) > np.median(X[:, 0]), 1.0, -1.0)
    y[:10] = np.tile([-1.0, 1.0], 5)
    return dict(kernels=[gaussian(rng), gaussian(rng)], X=X, y=y, Cs=[0.5, 5.0],
                folds=rng.permutation(20).reshape(4, 5).tolist())


def _svm_data(rng):
    n = 8
    X = points(rng, n)
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > np.median(X[:, 0]), 1.0, -1.0)
    y[np.argsort(X[:, 0])[[0, -1]]] = -1.0, 1.0
    return dict(k=gaussian(rng), X=X, y=y, C=float(rng.uniform(0.5, 2.0)),
                T=points(rng, 4))


def _operators_data(rng):
    k, l = gaussian(rng), gaussian(rng)

    def operator(n, m):
        return Make("RKHSOperator", k, points(rng, n), l, points(rng, m),
                    rng.normal(size=(n, m)))

    return dict(A=operator(5, 4), B=operator(3, 6))


def _pvalue_data(rng):
    t = float(rng.integers(1, 9))
    above = t + 1 + np.arange(int(rng.integers(6, 12)))
    return dict(t=t, null=rng.permutation([*above, t, t, t - 1, t - 2, t - 3]))


def _covariance_data(rng):
    return dict(pairs(rng), S=points(rng, 3), T=points(rng, 4))


def _coco_data(rng):
    """One pair occurs twice: both Gram matrices are singular, as in the chapter."""
    some = pairs(rng)
    twice = [0, *range(len(some["X"]))]
    return dict(some, X=some["X"][twice], Y=some["Y"][twice])


def _witness_data(rng):
    return dict(_coco_data(rng), S=points(rng, 3), T=points(rng, 4))


def _coco_test_data(rng):
    n = 12
    x = np.cumsum(rng.uniform(0.3, 1.0, size=n))
    return dict(k=Make("Gaussian", 1.0), l=Make("Gaussian", 1.0), X=x - x.mean(),
                Y=x + 0.05 * rng.normal(size=n), B=19)


def _null_data(rng):
    return dict(K=gram(rng, 5), L=gram(rng, 5))


def _labels_data(rng):
    few, many = sorted(rng.choice(np.arange(2, 7), size=2, replace=False))
    return dict(y=rng.permutation(np.repeat([3.0, -2.0], [few, many])))


def _conditional_data(rng):
    return dict(grams(rng, "Kx", "Ky", "Kz"), lam=float(rng.uniform(0.05, 0.2)))


def _embedding_data(rng):
    some = pairs(rng)
    return dict(some, lam=float(rng.uniform(0.02, 0.1)), x=points(rng, 1)[0],
                T=points(rng, 4))


def _bayes_data(rng):
    some = pairs(rng)
    weights = rng.dirichlet(np.ones(4))
    prior = Make("RKHSFunction", some["l"], some["Y"][:4] + 0.2, weights)
    return dict(some, prior=prior, lam=float(rng.uniform(0.02, 0.1)), S=points(rng, 3),
                T=points(rng, 4))


def _posterior_data(rng):
    w = rng.permutation(np.append(rng.uniform(0.1, 0.3, size=6), [-0.05, -0.02]))
    return dict(G=rng.normal(size=(8, 4)), w=w, phi=rng.normal(size=4),
                eps=float(rng.uniform(0.05, 0.2)))


def _mass_data(rng):
    w = rng.dirichlet(np.ones(6)) * rng.uniform(0.2, 3.0)
    return dict(v=np.append(w, -0.1), w=rng.permutation([1.0, -1.0, 0.5, -0.4]) + w[:4]
                * 0.01)


def _filter_data(rng):
    n = 9
    states = np.cumsum(rng.normal(size=(n, 2)), axis=0) / 2
    k = gaussian(rng)
    f = Make("RKHSFunction", k, points(rng, 3) / 2, rng.dirichlet(np.ones(3)))
    return dict(k=k, l=gaussian(rng), states=states,
                observations=states + 0.1 * rng.normal(size=(n, 2)),
                lam=float(rng.uniform(0.02, 0.1)), f=f, T=points(rng, 4))


FRACTIONS = "Asked with floats; the chapter's own cells want fractions kept exact as well."
TASKS = [
    Task("as_points", "conventions", "as_points", "def-points", 2,
         "[*as_points(X).shape, *as_points(X)[:, 0], *as_points(Z).shape,"
         " *as_points(Z).ravel()]", _points_data,
         "The definition says what n numbers are: n points of the line, so n rows "
         "with one column."),
    Task("reduce_tiles", "tiles", "reduce_tiles", "prop-tiles", 3,
         "[sum(reduce_tiles(lambda t, i, j: t.append(x[i].sum() * x[j].sum()"
         " * (1 + (i != j))), list, len(x))), sum(reduce_tiles(lambda t, i, j:"
         " t.append(x[i].sum() * y[j].sum()), list, len(x), len(y)))]", _tiles_data,
         "The equation of the proposition: without m only the tiles with u <= v are "
         "visited. The last tile of a row may be smaller.",
         "One thread will do, and any size of tiles; the chapter's own cells also want "
         "the order of the runs.", robust=False,
         also=("_run",)),
    Task("riesz_representer", "riesz", "riesz_representer", "thm-riesz-gram", 3,
         "riesz_representer(G, l)", _riesz_data,
         "Part 1 of the proof ends with l_i = Σ_j G_ij c_j: solve that for c.",
         also=("gram_solve", "_solve_independent", "_solve_on_range")),
    Task("normalised", "rules", "normalised", "lem-conjugation", 2,
         "normalised(k)(X, Y)", _cosine_data,
         "The sentence after the proof: which f gives the features f(x) φ(x) norm one? "
         "Conjugated multiplies by it.",
         also=("_InverseNorm.__call__",)),
    Task("polynomial_features", "kernels", "polynomial_features", "thm-monomials", 4,
         "polynomial_features(X, m, c) @ polynomial_features(Y, m, c).T",
         _monomials_data,
         "Put x_0 = √c, as the first line of the proof does, and count how many "
         "choices lead to the same monomial. Each factor gets a root of that number.",
         "The columns may come in any order: their inner products are compared."),
    Task("inner", "moore_aronszajn", "inner", "thm-moore-aronszajn", 3, "inner(f, g)",
         _inner_data,
         "The first step of the proof of the lemma on the inner product of expansions: "
         "sum over j first, and Σ_i α_i g(x_i) is left."),
    Task("norm", "moore_aronszajn", "norm", "lem-expansion-definite", 2, "norm(f)",
         only(_inner_data, "f"),
         "The lemma ends with ‖f‖ = √⟨f, f⟩, and the inner product of f with itself is "
         "a sum over the Gram matrix of its own points.", robust=False,
         also=("norm_and_error",)),
    Task("kernel_from_basis", "moore_aronszajn", "kernel_from_basis",
         "thm-basis-kernel", 4,
         "kernel_from_basis(lambda X: np.column_stack([X, X[:, 0]**2]), G)(T)",
         _basis_data,
         "The proof looks for the representer Σ_j c_j b_j of the value at x and finds "
         "c = G⁻¹ b(x); its last line has the features L⁻¹ b(x).",
         "One function that returns an array of values is enough.",
         also=("_OrthonormalBasis.__call__",)),
    Task("interpolate", "interpolation", "interpolate", "thm-interpolant", 4,
         "interpolate(k, X, y)(T)",
         only(sample, "k", "X", "y", "T"),
         "The first line of the proof: s(x_i) = (Kc)_i, so which c gives y?",
         also=("_solve",)),
    Task("project", "interpolation", "project", "thm-rkhs-projection", 4,
         "project(f, X)(T)", _project_data,
         "The displayed line of the proof: 0 = ⟨f - g, k_{x_i}⟩ = f(x_i) - (Kc)_i.",
         also=("_solve",)),
    Task("power_function", "interpolation", "power_function", "thm-power-function", 4,
         "power_function(k, X, T)",
         only(sample, "k", "X", "T"),
         "Pythagoras, in the middle of the proof: P(t)² = ‖k_t‖² - ‖P_V k_t‖², and "
         "P_V k_t has the coefficients K⁺κ(t).",
         also=("_solve",)),
    Task("spectral_inner", "fourier_series", "spectral_inner", "thm-weighted-l2", 2,
         "spectral_inner(a, b, lam)", _spectral_data,
         "In this space the functions √λ_j e_j are orthonormal: what is the "
         "coefficient of f with respect to them?",
         also=("spectral_norm",)),
    Task("integral_operator", "mercer", "integral_operator", "prop-integral-operator", 3,
         "integral_operator(k, X, w, f)(T)", _operator_data,
         "Part 2 of the proof: (S_k f)(x) = ∫ k(x, y) f(y) dμ(y). What is this for "
         "masses w_i at the points x_i?"),
    Task("spectral_density", "bochner", "spectral_density", "prop-gaussian-spectrum", 3,
         "spectral_density(k, X)", only(sample, "k", "X"),
         "The proposition says what ω is: normal with covariance σ⁻² I. Which density "
         "does it have in R^d?",
         "Asked for Gaussian kernels only; the chapter's own cells ask for more."),
    Task("rff_variance", "low_rank", "rff_variance", "thm-rff-variance", 4,
         "rff_variance(k, X, Y, D)", _rff_data,
         "The proof first computes V = Var(U) with 2cos²α = 1 + cos 2α; the estimate "
         "is an average of D/2 copies of U.",
         "Asked for Gaussian kernels, an even number of features, paired."),
    Task("pivoted_cholesky", "low_rank", "pivoted_cholesky", "thm-pivoted-cholesky", 4,
         "pivoted_cholesky(k, X, max_rank=r) @ pivoted_cholesky(k, X, max_rank=r).T",
         _cholesky_data,
         "Part 1 is the loop: a pivot with the largest diagonal entry of R, the column "
         "f = R e_p / √R_pp, and R - ff'.",
         "Asked with `max_rank` only; F F' is compared."),
    Task("regularised_risk", "representer", "regularised_risk", "def-losses", 3,
         "[regularised_risk(f, X, y, 'squared', lam),"
         " regularised_risk(f, X, labels, 'hinge', lam)]", _risk_data,
         "Two terms: the losses are summed, not averaged, and ‖f‖² is the inner "
         "product of f with itself, as in the proof of the representer theorem."),
    Task("minimize_risk", "representer", "minimize_risk", "thm-representer", 5,
         "minimize_risk(k, X, y, 'squared', lam)(T)", sample,
         "The two steps of the proof (the loss does not change, the norm does not "
         "grow) leave f = Σ α_i k(x_i, ·). Write the risk as a function of α, and set "
         "its gradient to zero.",
         "Asked for the squared loss only; the chapter's own cells ask for all seven.",
         also=("_follow_path", "_newton", "_solver", "ridge:ridge", "ridge:ridge_path",
               "gaussian_process:gp_posterior")),
    Task("duality_gap", "representer", "duality_gap", "thm-risk-gap", 5,
         "duality_gap(f, y, 'squared', lam)", _gap_data,
         "The last line of the proof: the gap is Σ FY(s_i, γ_i) + λ‖f - f_γ‖². With "
         "γ = 2λα the second term is zero; for φ(s) = s² what is φ*(γ)?",
         "Asked for the squared loss only; the chapter's own cells ask for all seven.",
         also=("_certificate", "_fenchel_young")),
    Task("ridge", "ridge", "ridge", "thm-ridge-rkhs", 4, "ridge(k, X, y, lam)(T)",
         sample,
         "\"Finding it\" in the proof: where does the gradient 2K((K + λI)a - y) "
         "vanish?",
         also=("ridge_path", "_all_weights", "representer:minimize_risk",
               "gaussian_process:gp_posterior")),
    Task("leave_fold_out", "ridge", "leave_fold_out", "thm-ridge-fold", 4,
         "leave_fold_out(k, X, y, lam, folds)", _fold_data,
         "The residuals r = Ry of the fit to all points are those of the fit without F, "
         "multiplied by a block of R: which system with r_F has the solution e_F?",
         "`folds` are lists of indices in which every point stands once.",
         also=("_left_out", "leave_one_out")),
    Task("gp_posterior", "gaussian_process", "gp_posterior", "thm-gp-posterior", 4,
         "gp_posterior(k, X, y, lam, T)[1]", sample,
         "The proof names A, B and C of the conditioning lemma. The mean is C B⁻¹ y, "
         "and the covariance A - C B⁻¹ C'.",
         "The covariance is compared; the chapter's own cells compare the mean."),
    Task("centre", "pca", "centre", "lem-centre", 2, "centre(K)",
         lambda rng: grams(rng, "K"),
         "The first line of the proof: a centred feature is Σ_s H_is φ(x_s). Insert "
         "it into both arguments of the inner product."),
    Task("conjugate", "duality", "conjugate", "def-fenchel-conjugate", 2,
         "conjugate(s, F, g)",
         lambda rng: dict(s=rng.normal(size=(9, 2)), F=rng.normal(size=9),
                          g=rng.normal(size=(4, 2))),
         "The supremum in the definition is a maximum over the rows of `points`: for all "
         "slopes at once it is the maximum of a matrix along its rows."),
    Task("solve_qp", "quadratic", "solve_qp", "thm-qp-trichotomy", 5, "solve_qp(P, q, A, b).x",
         _qp_data,
         "Without bounds the KKT conditions are linear: Px + q + A'y = 0 and Ax = b. "
         "By part 3 whoever satisfies them is optimal.",
         "Asked with equations only, and only `.x` is compared.",
         also=("_verdict", "_optimum", "_exact", "_polished", "_standard")),
    Task("svm", "svm", "svm", "thm-svm-dual", 5, "svm(k, X, y, C).decision(T)",
         _svm_data,
         "Solve the dual (`solve_qp` does), then find b from a support vector with "
         "0 < α_i < C: it lies on the margin.",
         "Only `.decision(T)` is compared.", rtol=1e-4,
         also=("_working_sets", "_climb", "_face", "_soft", "_hard", "_placed",
               "representer:minimize_risk")),
    Task("svm_cross_validate", "svm_choice", "svm_cross_validate", "alg-svm-cv", 3,
         "svm_cross_validate(kernels, X, y, Cs, folds=folds).errors", _svm_folds,
         "Step 1: for each fold train on the points of the other folds only, and compare "
         "the signs at the points of the fold with their labels.",
         "Asked with lists of folds, and only `.errors` is compared."),
    Task("mean_embedding", "mean_embedding", "mean_embedding", "thm-mean-embedding", 2,
         "np.append(mean_embedding(k, X)(T), mean_embedding(k, X, w)(T))",
         lambda rng: dict(k=gaussian(rng), X=points(rng, 6), T=points(rng, 4),
                          w=rng.dirichlet(np.ones(6))),
         "Part 2: μ(t) = E k(t, X), here for the distribution with these weights."),
    Task("embedding_error", "mean_embedding", "embedding_error", "prop-error-estimate",
         3, "embedding_error(k, X)",
         lambda rng: dict(k=gaussian(rng), X=points(rng, size(rng))),
         "The proof: ê = (nD - A) / (n²(n - 1)) with the sum D over the diagonal and "
         "the sum A over all pairs.",
         also=("_visit",)),
    Task("mmd2_biased", "mmd", "mmd2_biased", "prop-mmd-feature-means", 3,
         "mmd2_biased(k, X, Y)", two_samples,
         "The squared distance of two means: three averages of k.",
         also=("two_samples:mmd_test", "two_samples:split_statistics",
               "two_samples:_splits")),
    Task("mmd2_unbiased", "mmd", "mmd2_unbiased", "thm-mmd-unbiased", 4,
         "mmd2_unbiased(k, X, Y)", two_samples,
         "Only pairs of different points of one sample have the right mean: how many "
         "are there?",
         also=("two_samples:mmd_test", "two_samples:split_statistics",
               "two_samples:_splits"),
         blank={"_mean": "return float(Phi.dot(np.ones((Psi or Phi).n), Psi).mean())"
                         " / (Psi or Phi).n"}),
    Task("permutation_pvalue", "two_samples", "permutation_pvalue",
         "thm-permutation-level", 2, "permutation_pvalue(t, null)", _pvalue_data,
         "The actual sample is one of the 1 + B that the theorem counts, and a tie "
         "counts against rejecting."),
    Task("cross_covariance", "cross_covariance", "cross_covariance",
         "thm-empirical-covariance", 4, "cross_covariance(k, l, X, Y).values(S, T)",
         _covariance_data,
         "The first line of the proof: which weights does μ̂_X ⊗ μ̂_Y have, and which "
         "are left?"),
    Task("hs_inner", "cross_covariance", "hs_inner", "thm-operator-calculus", 4,
         "hs_inner(A, B)", _operators_data,
         "Part 4: the inner product of k_x ⊗ l_y and k_x' ⊗ l_y' is k(x, x') l(y, y'); "
         "sum with the weights of both.",
         also=("_trace", "_visit", "hs_norm")),
    Task("coco_value", "coco", "coco", "thm-coco-spectral", 4, "coco(k, l, X, Y).value",
         _coco_data,
         "Part 3 of the proof: the eigenvalues of K̃L̃. Or part 1, with any factors. A pair "
         "that occurs twice makes both Gram matrices singular.",
         also=("_leading", "_from_range", "_by_lanczos")),
    Task("coco_witnesses", "coco", "coco", "thm-coco-witnesses", 4,
         "(lambda c: np.outer(c.f(S), c.g(T)))(coco(k, l, X, Y))", _witness_data,
         "The proof defines f with the weights (Gv)_i / (nγ), and g with (Fu)_i / (nγ).",
         "f and g may both change their sign: the products f(s) g(t) are compared.",
         also=("_leading", "_from_range", "_by_lanczos")),
    Task("coco_test", "coco", "coco_test", "prop-coco-level", 4,
         "(lambda t: [t.statistic, t.pvalue])"
         "(coco_test(k, l, X, Y, n_permutations=B, rng=0))", _coco_test_data,
         "The sample itself is one of the B + 1 permutations that the proof compares: "
         "look at the fraction in the statement.",
         "On data with a dependence that no permutation reaches.",
         also=("_norm",)),
    Task("hsic_biased", "hsic", "hsic_biased", "thm-hsic-biased", 3,
         "hsic_biased(K, L)", lambda rng: grams(rng, "K", "L"),
         "The last line of the proof divides tr(KHLH) by n²; or take the three sums at "
         "its beginning.", FRACTIONS,
         also=("hsic", "hsic_test", "_by_factors", "_by_matrices", "hsic_gamma_test",
               "conditional_independence:conditional_hsic")),
    Task("hsic_unbiased", "hsic", "hsic_unbiased", "thm-hsic-unbiased", 4,
         "hsic_unbiased(K, L)", lambda rng: grams(rng, "K", "L"),
         "S, T and U are sums without the diagonals. The proof brings them to the "
         "denominator n(n-1)(n-2)(n-3) and collects their factors.", FRACTIONS,
         also=("hsic", "hsic_low_rank", "_u_form")),
    Task("hsic_null_moments", "hsic", "hsic_null_moments", "thm-hsic-null-moments", 5,
         "hsic_null_moments(K, L)", _null_data,
         "For n = 5 there are 120 permutations: the definition of T_π at the beginning "
         "is enough. For large n follow the patterns of the proof.", FRACTIONS,
         also=("_null_moments", "hsic_gamma_test")),
    Task("balanced_labels", "unmixing", "balanced_labels", "thm-balanced-labels", 2,
         "balanced_labels(y)", _labels_data,
         "Both classes weigh the same, and the labels sum to zero: that makes Hy = y in "
         "part 1 of the proof.", "Numbers are enough, strings are not asked for."),
    Task("conditional_hsic", "conditional_independence", "conditional_hsic",
         "thm-conditional-gram", 4, "conditional_hsic(Kx, Ky, Kz, lam)",
         _conditional_data,
         "Part 2: tr(K̃x R K̃y R) / n². The n beside λ comes from pushing Θ through the "
         "inverse, in part 1 of the proof.",
         also=("normalised_conditional_hsic",)),
    Task("conditional_embedding", "conditional_embedding",
         "ConditionalEmbedding.__call__", "thm-ce-estimator", 4,
         "ConditionalEmbedding(k, l, X, Y, lam)(x)(T)", _embedding_data,
         "\"The factors n and 1/n cancel in front and remain beside λ\": the weights "
         "are (K + nλI)⁻¹ k_X(x).",
         "The kernels, the points and λ are `self.k`, `self.l`, `self.X`, `self.Y` and "
         "`self.lam`.",
         also=tuple(f"ConditionalEmbedding.{name}" for name in (
             "_solve", "weights_at", "expectation", "transport", "operator"))
         + ("embedding_leave_one_out",),
         blank={"ConditionalEmbedding.__post_init__": "pass"}),
    Task("kernel_sum_rule", "bayes_rule", "kernel_sum_rule", "thm-kbr-gram", 4,
         "kernel_sum_rule(k, l, X, Y, prior, lam)(T)",
         only(_bayes_data, "k", "l", "X", "Y", "prior", "lam", "T"),
         "Part 1 of the proof: multiply by n. \"This is where the n beside λ comes "
         "from.\"", rtol=1e-5,
         also=("validate_bayes_rule",
               "conditional_embedding:ConditionalEmbedding.transport",
               "conditional_embedding:ConditionalEmbedding.operator")),
    Task("kernel_chain_rule", "bayes_rule", "kernel_chain_rule",
         "thm-kernel-chain-rule", 4,
         "kernel_chain_rule(k, l, X, Y, prior, lam).values(S, T)", _bayes_data,
         "Part 1 is the sum rule for pairs: the same weights w_i, now beside "
         "k_{x_i} ⊗ l_{y_i}.", rtol=1e-5),
    Task("posterior_weights", "bayes_rule", "posterior_weights",
         "thm-bayes-low-rank", 6,
         "np.append(posterior_weights(G, w, phi, eps),"
         " posterior_weights(G, w, phi, eps, 'clipped'))", _posterior_data,
         "Part 1 is enough for \"squared\": G has been pushed through the inverse. Part 4 "
         "is \"clipped\".", "Both methods are asked for.", robust=False, rtol=1e-5,
         also=("validate_bayes_rule",)),
    Task("unit_mass", "filtering", "unit_mass", "def-filter-mass", 2,
         "np.append(unit_mass(v), unit_mass(w))", _mass_data,
         "Two numbers compete in the denominator of the definition.", robust=False),
    Task("filter_predict", "filtering", "KernelBayesFilter.predict",
         "thm-filter-recursion", 4,
         "KernelBayesFilter(k, l, states, observations, lam, 1e-3).predict(f)(T)",
         _filter_data,
         "Part 1 of the proof: the weights (K + nλI)⁻¹ f(X), at the successors; and "
         "weights get mass one.", rtol=1e-3,
         also=("KernelBayesFilter._run",),
         blank={"KernelBayesFilter.retune": "return self"}),
]
BY_NAME = {task.name: task for task in TASKS}


def withheld(tasks):
    """{"module:name": the line for its body, or ""} of what is masked with tasks."""
    found = {}
    for task in tasks:
        for name in (*task.also, *task.blank):
            place = name if ":" in name else f"{task.chapter}:{name}"
            found[place] = task.blank.get(name, "")
    return found


def of_chapter(chapter):
    """The tasks of a chapter, in the order of the table."""
    return [task for task in TASKS if task.chapter == chapter]
