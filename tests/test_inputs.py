"""Bad input: every public callable, every argument, every bad value of its kind.

The outcome is an error whose text names the argument or, for a value that may
be right, a finite result. Callables and arguments are found by looking at the
package; `calls` has a good call of each, of which one argument is spoilt.
"""

import contextlib
import dataclasses
import inspect
import re
import signal
import warnings
from decimal import Decimal
from fractions import Fraction

import calls
import numpy as np
import pytest
from rkhs_lit import (
    Features,
    FunctionKernel,
    Gaussian,
    GaussianEmbedding,
    Kernel,
    Laplace,
    Pairs,
    PrecisionWarning,
    RKHSFunction,
    Sigmoid,
)
from scipy.sparse import csr_array

# Bad values


def spoilt(entry):
    """Puts the entry first in numbers of the good value's shape."""

    def spoil(good):
        values = np.array(good, dtype=object)
        values.flat[0] = entry
        return values.astype(float) if isinstance(entry, float) else values.tolist()

    return spoil


def masked(good):
    """Masks the first number."""
    values = np.ma.array(good, dtype=float, mask=False)
    values.mask.flat[0] = True
    return values


def masked_inside(good):
    """A list, or rows in a list, with a masked number."""
    values = masked(good)
    return [*values] if values.ndim else values


def large(good):
    """In units in which the largest number is near the largest float."""
    values = np.array(good, dtype=float)
    return 1e308 * (values / np.abs(values).max())


def same(s, t):
    """Whether two points are one."""
    return np.array_equal(s, t)


def elsewhere(good):
    """A function like the good one, for points of another dimension."""
    return RKHSFunction(good.kernel, np.ones((1, 5)), [1.0])


def always(**values):
    """Bad values that do not depend on the good one."""
    return {label: lambda good, value=value: value for label, value in values.items()}


def gives(value):
    """A function with the same value for a point or for each of many."""

    def function(points, *more):
        many = not isinstance(points, str) and hasattr(points, "__len__")
        return np.full(len(points), value) if many else value

    return function


def gives_masked(points, *more):
    """Masked numbers, one for a point."""
    return np.ma.masked_all(len(points) if hasattr(points, "__len__") else ())


def only(values, labels):
    return {label: values[label] for label in labels.split()}


# Symmetric functions that are no kernels: their Gram matrices have negative
# eigenvalues, of which centring leaves none (hostile, distance), all (steep) or zeros.
FAKES = always(
    indefinite=Sigmoid(1.0, -1.0),
    steep=FunctionKernel(lambda s, t: 1.0 if same(s, t) else 2.0),
    hostile=FunctionKernel(lambda s, t: 1.0 if same(s, t) else -2.0),
    negative=FunctionKernel(lambda s, t: -1.0),
    distance=FunctionKernel(lambda s, t: -float(np.abs(np.subtract(s, t)).sum())),
)

# {label: what it makes of the good value}
HUGE = 10**400
ODD = always(none=None, object=object(), text="abc", dict={})
INSIDE = {
    "nan": spoilt(np.nan),
    "inf": spoilt(np.inf),
    "minus_inf": spoilt(-np.inf),
    "huge": spoilt(HUGE),
    "none_inside": spoilt(None),
    "text_inside": spoilt("abc"),
    "list_inside": spoilt([1.0, 2.0]),
    "complex": lambda good: np.array(good) + 1j,
    "texts": lambda good: np.array(good).astype(str),
    "masked": masked,
    "masked_inside": masked_inside,
    "long": spoilt(np.longdouble("1e400")),
    "sparse": lambda good: csr_array(np.atleast_2d(good)),
    **always(empty=[]),
}
ARRAY = {
    **ODD,
    **INSIDE,
    **always(scalar=0.5),
    "no_rows": lambda good: np.array(good)[:0],
    "short": lambda good: np.array(good)[:-1],
    "large": large,
}
POINTS = {
    **ARRAY,
    "cube": lambda good: np.stack([good, good], axis=-1)[..., None],
    "one": lambda good: good[:1],
    "point": lambda good: good[0],
    "wide": lambda good: np.column_stack([good, good]),
    "narrow": lambda good: np.atleast_2d(good)[:, :1],
}
THINGS = {
    **ODD,
    **always(scalar=0.5, zero_axes=np.array(0.5), bytes=b"abc", empty=[]),
    **always(masked_inside=[np.ma.masked], sparse=csr_array(np.eye(8))),
    "iterator": iter,
    "one": lambda good: good[:1],
    "short": lambda good: good[:-1],
}
NUMBER = {
    **ODD,
    **always(nan=np.nan, inf=np.inf, minus_inf=-np.inf, huge=HUGE, complex=1j),
    **always(list=[1.0, 2.0], array=np.ones(2), empty=[], masked=np.ma.masked),
    **always(minus_huge=-HUGE, giant=10**5000, fraction=Fraction(HUGE), decimal=Decimal(1)),
}
TYPES = {**ODD, **always(number=1.0, array=np.eye(2), function=np.sum, kind=Gaussian)}
CALLABLE = only(TYPES, "none object text dict number array")
ROWS = {
    **only(TYPES, "none object text dict array function kind"),
    **always(nan=np.nan, half=1.5, negative=-1, huge=HUGE, many=99),
}
BAD = {
    "points": POINTS,
    "places": POINTS,  # of the dimension of other points
    "things": THINGS,  # points of any kind
    "point": {
        **ODD,
        **INSIDE,
        **always(cube=np.ones((2, 2, 2))),
        "two": lambda good: np.stack([good, good]),
    },
    "vector": {**ARRAY, "table": lambda good: np.column_stack([good, good])},
    "columns": {
        **ARRAY,
        "one": lambda good: np.array(good)[:1],
        "more": lambda good: np.concatenate([good, good[:1]]),
        "cube": lambda good: np.stack([[good, good]] * 2),
    },
    "computed": only(INSIDE, "nan inf minus_inf"),
    "labels": {
        **ARRAY,
        "zeros": lambda good: 0 * good,
        "three": lambda good: [0, *good[1:]],
        "one_class": np.abs,
        "from_zero": lambda good: (good + 1) / 2,
    },
    "classes": {
        **THINGS,
        **only(INSIDE, "nan masked"),
        "three": lambda good: [0, *good[1:]],
        "one_class": np.abs,
        "table": lambda good: np.column_stack([good, good]),
    },
    "gram": {
        **ARRAY,
        "vector": lambda good: np.array(good)[0],
        "cube": lambda good: [good],
        "tall": lambda good: np.array(good)[:, :-1],
        "lopsided": lambda good: good + np.triu(np.ones_like(good), 1),
        "indefinite": lambda good: -np.array(good),
        "minor": lambda good: np.array(good)[:-1, :-1],
    },
    "matrices": {
        **TYPES,
        "nan": spoilt(np.nan),
        **always(small=[np.eye(2)], one_number=[np.eye(1)], vector=[np.ones(8)]),
        "tall": lambda good: [good[0][:, :-1]],
        "lopsided": lambda good: [np.triu(good[0])],
    },
    "number": NUMBER,
    "positive": {**NUMBER, **always(zero=0.0, negative=-1.0, tiny=5e-324, large=1e308)},
    "nonnegative": {**NUMBER, **always(negative=-1.0, large=1e308)},
    "share": {**NUMBER, **always(zero=0.0, two=2.0, negative=-0.1)},
    "tolerance": {
        **NUMBER,
        **always(negative=-0.1, zero=0.0, one=1, above=1.5, narrow=np.float32(2)),
    },
    "whole": {**NUMBER, **always(half=1.5, negative=-1, zero=0)},
    "place": {**NUMBER, **always(half=1.5, negative=-1, zero=0, many=99)},
    "flag": {**ODD, **always(one=1, nan=np.nan, list=[True], array=np.ones(2, bool))},
    "choice": {**TYPES, **always(nan=np.nan, no_text="")},
    "rng": {**ODD, **always(nan=np.nan, negative=-1, half=1.5, complex=1j, huge=HUGE)},
    "kernel": {**TYPES, **FAKES, "large": lambda good: 1e308 * (good or Gaussian(1.0))},
    "gaussian": {**TYPES, **FAKES, **always(laplace=Laplace(1.0))},
    "kernels": {
        **TYPES,
        **always(empty=[]),
        "mixed": lambda good: [*good, None],
        **{label: lambda good, fake=fake: [*good, fake(0)] for label, fake in FAKES.items()},
    },
    "rkhs": {
        **TYPES,
        **always(kernel=Gaussian(1.0)),
        **always(other_space=RKHSFunction(Gaussian(7.0), [[0.0, 0.0]], [1.0])),
        **always(other_normal=GaussianEmbedding(Gaussian(7.0), [0.0, 0.0], 1.0)),
        "elsewhere": elsewhere,
        **always(normal_elsewhere=GaussianEmbedding(Gaussian(2.0), np.zeros(5), 1.0)),
        "large": lambda good: RKHSFunction(good.kernel, good.points, large(good.weights)),
    },
    "instance": {**TYPES, **always(kernel=Gaussian(1.0))},
    "callable": CALLABLE,
    "function": {
        **CALLABLE,
        **always(gives_none=gives(None), gives_text=gives("abc"), gives_nan=gives(np.nan)),
        **always(gives_complex=gives(1j), gives_more=lambda *points: np.ones((3, 2))),
        **always(gives_masked=gives_masked),
    },
    "grid": {
        **ODD,
        **INSIDE,
        **always(scalar=0.5),
        "zero": spoilt(0.0),
        "negative": spoilt(-1.0),
        "table": lambda good: [[*good], [*good]],
    },
    "masses": {**ARRAY, "negative": spoilt(-1.0)},
    "bounds": {
        **ODD,
        **only(INSIDE, "nan complex texts masked empty"),
        **always(three=[0.0, 0.0, 0.0]),
    },
    "folds": {
        **ROWS,
        **always(number=1.0, halves=[[0.5, 1.5], [2.5]], texts=[["a"], ["b"]]),
        **always(outside=[[0, 1, 2, 3], [4, 5, 6, 99]], none_left=[[], [*range(8)]]),
        **always(before=[[-1, 0], [*range(1, 8)]], nested=[[0, [1]], [*range(2, 8)]]),
        **always(deep=[[[0]], [*range(1, 8)]]),
        **always(masked_fold=[masked(np.arange(4)), np.arange(4, 8)]),
        **always(twice=[[0, 1, 2, 3], [3, 4, 5, 6, 7]]),
    },
    "rows": {
        **ROWS,
        **always(halves=[0.5, 1.5], texts=["a", "b"], outside=[0, 99], twice=[0, 0]),
    },
    "document": only(TYPES, "none object dict number array"),
    # words of messages and settings of checks, which stand in the code that
    # calls; a copy of anything; an argument that is not used; arrays of the
    # formulas `posterior_weights` and `unit_mass`, which a filter takes at
    # every step with arrays that it has made itself
    "free": {},
}
# Values that may be right: then the result must be finite.
MAY = set(
    "points.short points.one points.point points.wide points.narrow points.large "
    "places.short places.one places.large things.short things.one point.two "
    "vector.short vector.large columns.short columns.one columns.more columns.large "
    "labels.one_class classes.short classes.one gram.minor gram.large masses.short "
    "masses.large nonnegative.large rng.none rng.huge "
    "kernel.large rkhs.large".split()
)
# Of two arguments that do not fit together a message may name the other.
MISFITS = "short one more point wide narrow minor two tall one_class".split()
MISFITS += ["other_space", "elsewhere", "normal_elsewhere", *FAKES]
# What it may say in place of the name, where only a computation shows what is wrong.
INSTEAD = {
    "large": "finite|too large|overflow|inf$|as far as floats can tell",
    "elsewhere": "points in dimension",
    "normal_elsewhere": "points in dimension",
    **dict.fromkeys(FAKES, "kernel must be positive definite"),
}
# What the message must say besides: in general, or for one argument.
SAYS = {
    "masked": "masked",
    "masked_inside": "masked",
    "gives_masked": "masked",
    "leave_fold_out.folds masked_fold": "masked",
    "as_points.X sparse": r"X\.toarray\(\)",
    "as_points.X texts": "real numbers",
    "as_points.X complex": "real numbers",
    "as_points.X huge": "finite",
    "as_points.X cube": r"\(n, d\) array",
    "real_array.values sparse": r"values\.toarray\(\)",
    "real_array.values list_inside": "rows of one length",
    "real_array.values texts": "real numbers",
    "svm.y from_zero": r"np\.where\(y == one_of_them, 1, -1\)",
    "nu_svm.y from_zero": r"np\.where\(y == one_of_them, 1, -1\)",
    "ridge.lam zero": "interpolate",
}

# Kind of an argument: all of that name, or that of one callable
KINDS = {
    "points": "X Y Z points states observations next_states nodes landmarks omega "
    "frequencies",
    "places": "T ys squared_distances.Y project.X FourierFeatures.__call__.X "
    "NystromFeatures.__call__.X rff_variance.Y regularised_risk.X mmd2_biased.Y "
    "mmd2_unbiased.Y mmd_test.Y witness.Y RKHSOperator.values.S conjugate.slopes",
    "things": "as_sequence.X Pairs.first Pairs.second RKHSFunction:pairs.points "
    "RKHSFunction:texts.points",
    "point": "x start mean KernelBayesFilter.step.y KernelBayesFilter.update.y",
    "vector": "y z a b w phi weights values signal phases diagonal prior_weights q "
    "null_distribution waves.l",
    "columns": "W U V S G modes.start real_array.values gram_solve.values riesz_representer.values "
    "solve_qp.A solve_qp.C solve_qp.factor RKHSOperator.weights hsic_unmix.start",
    "computed": "finite.values",
    "labels": "minimize_risk:hinge.y nu_svm.y svm.y svm_cross_validate.y duality_gap:hinge.y "
    "duality_gap:logistic.y duality_gap:squared_hinge.y regularised_risk:hinge.y "
    "regularised_risk:logistic.y regularised_risk:squared_hinge.y Loss:hinge.__call__.y "
    "Loss:logistic.__call__.y Loss:squared_hinge.__call__.y",
    "classes": "balanced_labels.y",
    "gram": "K L Kx Ky Kz gram covariance P",
    "matrices": "derivatives",
    "number": "statistic value Shifted.b Sigmoid.a Sigmoid.c gamma_pvalue.mean gamma_pvalue.variance",
    "positive": "sigma lam eps noise width period parameter radius C Matern.nu "
    "positive.value width.value",
    "nonnegative": "c mass slack nonnegative.value lanczos.zero",
    "share": "nu pvalue",
    "tolerance": "tol tolerance.value",
    "whole": "degree n_components n_features n_permutations max_rank max_points m n r "
    "max_steps dim p n_points whole.value",
    "place": "memory split held_out RidgePath.function.j PrincipalComponents.first.r "
    "select_features.n_features kernel_pca.n_components",
    "flag": "squares centred unbiased offset paired normalise return_pivots return_gradient "
    "progress flag.value",
    "choice": "method direction solver estimate loss Loss.name choice.value",
    "rng": "rng",
    "kernel": "kernel k l kx ky kz first second",
    "gaussian": "GaussianEmbedding.kernel hsic_gaussian.k hsic_gaussian.l hsic_unmix.k",
    "kernels": "kernels",
    "rkhs": "f g mu prior previous Shifted.function embedding_distance.nu embedding_inner.nu",
    "instance": "A B Phi Psi other pca executor",
    "callable": "function.value checked.read reduce_tiles.start reduce_tiles.visit",
    "function": "function features map basis coefficients Eigensystem.coefficients.f "
    "fourier_coefficients.f integral_operator.f ConditionalEmbedding.expectation.g "
    "KernelPosterior.expectation.g values_at.g Filtered.expectation.g Taylor:series.coefficients "
    "FourierKernel:series.coefficients",
    "grid": "lams epsilons Cs positives.values",
    "masses": "eigenvalues Taylor.coefficients FourierKernel.coefficients",
    "bounds": "lower upper solve_qp.b solve_qp.c",
    "folds": "folds",
    "rows": "test",
    "document": "document text",
    "free": "less name kernel_name why wanted low high seen columns rows options size least "
    "ndim at_least infinite zero definite error vector.n certain.value squared_norm.value frozen.array "
    "plain_array.values same_columns.X same_columns.Y same_dimension.X same_dimension.Y "
    "like checked.default "
    "ridge_factor.kernel ridge_spectrum.kernel kernel_sum_rule.eps kernel_chain_rule.eps "
    "posterior_weights.G posterior_weights.w posterior_weights.phi unit_mass.w "
    "pair_steps.K pair_steps.t pair_steps.a pair_steps.tol pair_steps.steps "
    "reduce_runs.work reduce_runs.items reduce_runs.threads",
}
KIND = {word: kind for kind, words in KINDS.items() for word in words.split()}
# Kernels that leave it to a function, or to equality, what a point is.
FREE = "Conjugated Delta FeatureKernel FunctionKernel Mapped TensorProduct".split()
LINE = "FourierKernel FourierKernel:series JacobiTheta".split()
for _kernel in calls.KERNELS:
    _kind = "things" if _kernel in FREE else "points" if _kernel in LINE else "places"
    KIND |= {f"{_kernel}.__call__.X": _kind, f"{_kernel}.__call__.Y": _kind}
    KIND[f"{_kernel}.diag.X"] = "things" if _kernel in FREE else "points"
# Kinds whose bad values are made from the good one, which so must be there.
SHAPED = set("points places point vector columns labels gram grid masses bounds rkhs".split())

# What looks bad and is right -> why.
ALLOWED = {
    "real_array.values scalar": "any number of axes, unless ndim says how many",
    "Taylor.radius inf": "the series converges everywhere",
    "Taylor:series.radius inf": "the series converges everywhere",
    "gram_dot.Y none": "the matrix K(X)",
    "reduce_tiles.start none": "nothing is summed",
    "Features.joined.other array": "points are welcome too",
    "ridge_factor.K lopsided": "its lower half is read",
    "ridge_spectrum.K lopsided": "its lower half is read",
    "is_positive_definite.K lopsided": "it says why not",
    "normalised.kernel indefinite": "it refuses points with k(x, x) <= 0",
    "spectral_norm.a complex": "Fourier coefficients",
    "RidgePath.function.j negative": "counts from the end",
    "centre.K lopsided": "HKH for any square K",
    "ridge.y table": "two outputs, two functions",
    "ridge:offset.y table": "two outputs, two functions",
    "split_statistics.K lopsided": "a quadratic form sees the symmetric part only",
    "svm.C inf": "the hard margin",
    "conjugate.values inf": "never",
    "conjugate.values long": "never",
    "decompose.f elsewhere": "no matter where its points are",
    "normalised.kernel negative": "it refuses points with k(x, x) <= 0",
    "normalised.kernel distance": "it refuses points with k(x, x) <= 0",
    "hsic_low_rank.tol one": "nothing is kept, and the bound says so",
    "svm.y one_class": "every large offset is optimal",
    "svm_cross_validate.y one_class": "every large offset is optimal",
    "GaussianEmbedding.covariance scalar": "multiplies the identity",
}
# The same for many at once: why, labels, places.
NO_KERNEL = "indefinite steep hostile negative distance"
MANY = [
    (
        "it makes other kernels, which are checked where they are used",
        NO_KERNEL,
        "Conjugated.kernel Mapped.kernel Power.kernel Product.first Product.second "
        "Scaled.kernel Sum.first Sum.second TensorProduct.first TensorProduct.second "
        "as_kernel.kernel gram_dot.kernel normalised.kernel",
    ),
    (
        "it asks for values of the kernel only, or for none",
        NO_KERNEL.partition(" ")[2],
        "Features.kernel RKHSFunction.kernel RKHSOperator.k RKHSOperator.l cross_covariance.k "
        "cross_covariance.l integral_operator.kernel mean_embedding.kernel one_point.kernel "
        "paired.k paired.l sample_maps.kernel witness.kernel ConditionalEmbedding.l "
        "KernelPosterior.l conditional_covariance.kx conditional_covariance.ky "
        "conditional_embedding.l kernel_chain_rule.k kernel_sum_rule.k "
        "RKHSFunction:pairs.kernel RKHSFunction:texts.kernel",
    ),
    (
        "centred, its Gram matrix is positive definite",
        "hostile distance",
        "conditional_covariance.kz hsic.k hsic.l hsic:biased.k hsic:biased.l "
        "hsic_gamma_test.k hsic_gamma_test.l "
        "kernel_pca.kernel mmd2_biased.kernel mmd2_unbiased.kernel mmd_test.kernel "
        "mmd_test:unbiased.kernel "
        "select_features.k select_features.l",
    ),
    (
        "an unbiased estimate may be negative, and a difference of squares",
        "steep",
        "conditional_covariance.kz hsic.k hsic.l mmd2_unbiased.kernel "
        "mmd_test:unbiased.kernel select_features.k select_features.l",
    ),
    (
        "any symmetric matrix has these sums",
        "indefinite",
        "centre.K split_statistics.K hsic_null_moments.K hsic_null_moments.L hsic_unbiased.K "
        "hsic_unbiased.L is_positive_definite.K",
    ),
    (
        "no matter where its points are, or in which space it is",
        "elsewhere other_space",
        "as_function.f norm.f norm_and_error.f Shifted.function tensor.f tensor.g",
    ),
    (
        "no matter in which space it is",
        "other_space",
        "project.f preimage.f regularised_risk.f regularised_risk:hinge.f "
        "regularised_risk:squared_hinge.f regularised_risk:logistic.f",
    ),
    (
        "a power, a polynomial or a series of degree 0, the first of all",
        "zero",
        "Power.m "
        "gaussian_features.degree polynomial_features.degree FourierKernel:series.degree "
        "FourierKernel.spectrum.degree JacobiTheta.spectrum.degree "
        "fourier_coefficients.degree fourier_eigensystem.degree RidgePath.function.j "
        "whole.value",
    ),
    (
        "everything is kept that is not zero",
        "zero",
        "is_positive_definite.tol pivoted_cholesky.tol permutation_pvalue.tol coco.tol "
        "coco:tol.tol coco_test.tol hsic_unmix.tol Coordinates.tol KernelPosterior.tol "
        "kernel_bayes_rule.tol kernel_chain_rule.tol kernel_sum_rule.tol "
        "validate_bayes_rule.tol KernelBayesFilter.tol KernelBayesFilter:jumps.tol "
        "validate_filter.tol",
    ),
    (
        "not relative, but a number in the units of what it is compared with",
        "one above narrow",
        "is_positive_definite.tol permutation_pvalue.tol",
    ),
    ("distances, norms and prices may be infinite", "large",
     "squared_distances.X squared_distances.Y spectral_norm.a"),
    ("any size is a unit", "tiny large",
     "positive.value fourier_coefficients.period Loss.parameter"),
    ("a small number is no harm where nothing is solved", "tiny",
     "regularised_risk.lam regularised_risk:hinge.lam regularised_risk:squared_hinge.lam "
     "regularised_risk:logistic.lam KernelBayesFilter.eps KernelBayesFilter:jumps.eps "
     "KernelBayesFilter.retune.eps"),
    ("beside so large a number nothing else counts", "large",
     "degrees_of_freedom.lam leave_fold_out.lam leave_one_out.lam ridge.lam ridge:offset.lam "
     "ridge_factor.lam ridge_spectrum.lam smoother_matrix.lam gp_posterior.noise "
     "log_marginal_likelihood.noise svm.C regularised_solve.lam conditional_covariance.lam "
     "KernelPosterior.eps kernel_bayes_rule.eps posterior_weights.eps KernelBayesFilter.eps "
     "KernelBayesFilter:jumps.eps KernelBayesFilter.retune.eps Taylor.radius "
     "Taylor:series.radius"),
    ("the points are numbers", "narrow", "waves.T conjugate.slopes"),
    (
        "only pairs will do, whatever else it is",
        "masked_inside",
        "TensorProduct.__call__.X TensorProduct.__call__.Y TensorProduct.diag.X",
    ),
]
for _why, _labels, _places in MANY:
    for _place in _places.split():
        ALLOWED |= {f"{_place} {_label}": _why for _label in _labels.split()}
# What is wrong today: (labels, arguments). Whoever mends one takes it out.
KNOWN = [
    # a bare error of Python, which cannot print the number
    ("giant", "reduce_tiles.n reduce_tiles.m"),
    # a warning of NumPy's, or a bare error, in place of an error that names the argument
    ("large",
     "gaussian_features.X kernel_pca.kernel KernelBayesFilter.locate.W duality_gap.f "
     "duality_gap:hinge.f duality_gap:squared_hinge.f duality_gap:logistic.f "
     "regularised_risk:hinge.f regularised_risk:logistic.f"),
    # the message names something else
    ("large", "eigensystem.weights hsic_unmix.X"),
    ("negative", "conditional_covariance.kz"),
    ("distance", "coco:tol.k coco:tol.l"),
]


def kind_of(name, argument):
    plain = re.sub(r":\w+", "", name)
    for place in (f"{name}.{argument}", f"{plain}.{argument}", argument):
        if place in KIND:
            return KIND[place]
    raise LookupError(f"KINDS does not say what {argument} of {name} is")


def arguments(name):
    """{argument: its default} of a callable."""
    found = inspect.signature(calls.target(name)).parameters.values()
    return {p.name: p.default for p in found if p.kind is not p.VAR_POSITIONAL}


def tied(name, argument):
    """Whether another argument of the good call has as many entries."""
    sizes = {
        other: len(value)
        for other, value in calls.GOOD[name].items()
        if isinstance(value, (list, np.ndarray, Pairs, Features))
    }
    size = sizes.pop(argument, None)
    return size in sizes.values()


def spoilings(name):
    """(argument, label, bad value, whether a result may be right)."""
    for argument, default in arguments(name).items():
        good = calls.GOOD[name].get(argument, default)
        kind = kind_of(name, argument)
        for label, spoil in BAD[kind].items():
            if good is None and kind in SHAPED or default is None and label == "none":
                continue
            misfit = label in ("short", "one", "more") and tied(name, argument)
            if misfit and len(good) == 1:
                continue
            yield argument, label, spoil(good), f"{kind}.{label}" in MAY and not misfit


# Outcomes


def numbers(value, path="it"):
    """(path, numbers) of a result and of its parts."""
    if isinstance(value, (float, complex, np.number, np.ndarray)):
        if np.asarray(value).dtype.kind in "fc":
            yield path, value
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from numbers(part, f"{path}[{i}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from numbers(getattr(value, field.name), f"{path}.{field.name}")


def not_finite(value):
    return {path for path, x in numbers(value) if not np.isfinite(x).all()}


def form(value):
    return type(value), getattr(value, "ndim", None)


def used(name, result):
    """The result; of a kernel, its Gram matrix at some points."""
    if isinstance(result, Kernel):
        return result(calls.POINTS.get(name, calls.X))
    return result


def named(argument, text):
    """Whether the text names the argument, as a word of its own."""
    if argument == "a":  # no article
        return re.match("a (and b )?must", text)
    return re.search(rf"(?<!\w){re.escape(argument)}(?!\w)", text)


@contextlib.contextmanager
def at_most(seconds):
    """Ends a call that does not end by itself; seconds of the processor."""

    def stop(*_):
        raise TimeoutError("it does not end")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def wrong(name, argument, label, value, may):
    """What is wrong with the answer to this value, or None."""
    try:
        with warnings.catch_warnings(), at_most(0.5):
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", PrecisionWarning)
            result = used(name, calls.call(name, **{argument: value}))
    except Warning as warning:
        return f"warns: {warning!r}"
    except (ValueError, TypeError) as error:
        text = str(error)
        words = arguments(name) if label in MISFITS else [argument]
        shown = re.search(INSTEAD.get(label, "(?!)"), text)
        if not shown and not any(named(word, text) for word in words):
            return f"the error does not name it: {error!r}"
        for key in (label, f"{name}.{argument} {label}"):
            if not re.search(SAYS.get(key, ""), text):
                return f"the error does not say {SAYS[key]!r}: {error!r}"
        if len(text) > 400:
            return f"the error has {len(text)} characters"
    except Exception as error:
        return f"raises {error!r}"
    else:
        if not may:
            return "is accepted"
        good = used(name, calls.made(name))
        if form(result) != form(good):
            return f"the result has another form: {result!r}"
        if new := not_finite(result) - not_finite(good):
            return f"the result is not finite: {', '.join(sorted(new))}"


def wrongs(name):
    """{argument and label: what is wrong}, over all bad values."""
    found = {
        f"{name}.{argument} {label}": wrong(name, argument, label, value, may)
        for argument, label, value, may in spoilings(name)
    }
    return {place: what for place, what in found.items() if what}


@pytest.mark.parametrize("name", calls.GOOD)
def test_bad_input_is_refused_by_name(name):
    known = {
        f"{place} {label}"
        for labels, places in KNOWN
        for place in places.split()
        for label in labels.split()
    }
    known = {x for x in known | {*ALLOWED} if x.split()[0].rpartition(".")[0] == name}
    found = wrongs(name)
    lines = [f"{place} {what}" for place, what in found.items() if place not in known]
    lines += [f"{place} is refused: take it out of the list" for place in known - {*found}]
    assert not lines, "\n".join(lines)


def test_known_wrongs_and_exceptions_are_of_arguments_that_exist():
    listed = {place for _, places in KNOWN for place in places.split()}
    listed |= {place.split()[0] for place in ALLOWED}
    found = {f"{name}.{argument}" for name in calls.GOOD for argument in arguments(name)}
    found |= {place.rpartition(".")[2] for place in found}
    stale = sorted((listed | {*KIND}) - found)
    assert not stale, f"no such argument: {', '.join(stale)}"


# How many points an estimate needs, where one is too few. A good call is cut to
# fewer, and so are all arguments that have as many rows.
LEAST = {
    2: "coco coco:tol coco_test embedding_error is_characteristic median_heuristic mmd2_unbiased "
    "balanced_labels mmd_test:unbiased KernelBayesFilter validate_bayes_rule eigensystem nu_svm hsic_gaussian",
    3: "hsic_unmix kernel_pca lag_vectors split_statistics",
    4: "hsic hsic_gamma_test hsic_low_rank hsic_null_moments hsic_unbiased select_features "
    "conditional_independence_test validate_filter cross_validate svm_cross_validate",
}
LEAST = {name: least for least, names in LEAST.items() for name in names.split()}
ROWED = set("points places things vector columns labels classes gram masses".split())


def samples(name):
    """Arguments that have as many rows, of those that the good call may do with fewer."""
    found = {}
    for argument in arguments(name):
        good = calls.GOOD[name].get(argument)
        if kind_of(name, argument) in ROWED and isinstance(good, (list, np.ndarray, Pairs)):
            found.setdefault(len(good), []).append(argument)
    return found


def cut(name, argument, n):
    """The first n points, or what belongs to them in a Gram matrix."""
    good = calls.GOOD[name][argument]
    return np.array(good)[:n, :n] if kind_of(name, argument) == "gram" else good[:n]


@pytest.mark.parametrize("name", LEAST)
def test_too_few_points_are_refused_and_enough_are_not(name):
    for size, names in samples(name).items():
        if size < LEAST[name]:
            continue
        for n in range(1, size + 1):
            few = {argument: cut(name, argument, n) for argument in names}
            if n >= LEAST[name]:
                assert not not_finite(used(name, calls.call(name, **few))), n
                continue
            with pytest.raises(ValueError) as error:
                calls.call(name, **few)
            assert any(named(word, str(error.value)) for word in arguments(name)), n


def test_every_argument_is_spoilt_in_some_call():
    """Optional arrays too, which need a good value before a bad one."""
    spoilable, spoilt_ones = set(), set()
    for name in calls.GOOD:
        plain = re.sub(r":\w+", "", name)
        spoilable |= {f"{plain}.{a}" for a in arguments(name) if kind_of(name, a) != "free"}
        spoilt_ones |= {f"{plain}.{argument}" for argument, *_ in spoilings(name)}
    missing = sorted(spoilable - spoilt_ones)
    assert not missing, f"no call gives {', '.join(missing)}"
