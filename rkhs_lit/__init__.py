"""Reproducing kernel Hilbert spaces: the package that the book builds.

Each module holds the exported cells of the chapter of the same name. In the
order of the book:

rkhs_lit.conventions -- Conventions: what may go in, and what comes out
    PrecisionWarning, Record, Vectors, as_points, as_sequence, certain, choice,
    finite, flag, frozen, function, generator, nonnegative, number,
    plain_array, positive, positives, real_array, same_columns, same_dimension,
    tolerance, vector, whole, width

rkhs_lit.tiles -- Work in pieces: sums over tiles, in parallel
    parallel, reduce_runs, reduce_tiles

rkhs_lit.riesz -- Riesz: every continuous functional is an inner product
    GramSolution, gram_solve, riesz_representer

rkhs_lit.rules -- Kernels: inner products of features you need not see
    Conjugated, Definiteness, Delta, FeatureKernel, FunctionKernel, Kernel,
    Linear, Mapped, Pairs, Power, Product, Scaled, Sum, TensorProduct,
    as_kernel, checked, is_positive_definite, normalised, substrings, words

rkhs_lit.kernels -- Kernels on vectors: features one can list
    BSpline, Exponential, Gaussian, Laplace, Polynomial, Sigmoid, Sinc, Taylor,
    gaussian_bumps, gaussian_features, gram_dot, lag_vectors,
    polynomial_features, squared_distances

rkhs_lit.moore_aronszajn -- Moore–Aronszajn: every kernel is a space of functions
    Features, RKHSFunction, as_function, inner, kernel_from_basis, norm,
    norm_and_error, paired

rkhs_lit.interpolation -- Interpolation: the shortest function through the data
    decompose, interpolate, power_function, project

rkhs_lit.fourier_series -- Fourier series: a norm as a price list
    FourierKernel, JacobiTheta, as_line, fourier_coefficients, spectral_inner,
    spectral_norm, waves

rkhs_lit.mercer -- Mercer: the norm as a spectral penalty
    Eigensystem, eigensystem, fourier_eigensystem, hermite_eigensystem,
    integral_operator

rkhs_lit.bochner -- Bochner: kernels as averages of waves
    Matern, spectral_density, spectral_sample

rkhs_lit.low_rank -- Low rank: a thin factor for a large matrix
    FourierFeatures, NystromFeatures, nystrom_features, pivoted_cholesky,
    random_fourier_features, rff_variance

rkhs_lit.representer -- The representer theorem: a search in infinite dimension that ends in n numbers
    Loss, Shifted, duality_gap, minimize_risk, regularised_risk

rkhs_lit.ridge -- Ridge regression: leave points out without fitting again
    CrossValidation, RidgePath, Standardisation, cross_validate,
    degrees_of_freedom, leave_fold_out, leave_one_out, ridge, ridge_factor,
    ridge_path, ridge_spectrum, smoother_matrix, split_folds, standardise

rkhs_lit.gaussian_process -- Gaussian processes: how sure is a fit?
    gaussian_derivative, gp_posterior, log_marginal_likelihood

rkhs_lit.pca -- Kernel PCA: principal components that are functions
    PrincipalComponents, centre, denoise, kernel_pca, modes, preimage

rkhs_lit.duality -- Duality: the price of a constraint
    conjugate

rkhs_lit.quadratic -- Quadratic programmes: an answer that comes with its proof
    QPSolution, solve_qp

rkhs_lit.svm -- Support vector machines: the widest street between two classes
    SVM, nu_svm, pair_steps, svm

rkhs_lit.svm_choice -- Choosing a machine: width, price, cross-validation
    SVMCrossValidation, svm_cross_validate

rkhs_lit.mean_embedding -- Mean embeddings: a distribution is a point
    Characteristic, GaussianEmbedding, embedding_distance, embedding_error,
    embedding_inner, is_characteristic, mean_embedding, moved, squared_norm

rkhs_lit.mmd -- MMD: the distance between two distributions
    median_heuristic, mmd2_biased, mmd2_unbiased, sample_maps, witness

rkhs_lit.two_samples -- Two samples: a test whose level is exact
    PermutationTest, mmd_test, permutation_pvalue, split_statistics

rkhs_lit.cross_covariance -- Cross-covariance: one operator for all covariances
    LowRank, RKHSOperator, cross_covariance, hs_inner, hs_norm, is_constant,
    lanczos, op_norm, operator_core, regularised_solve, tensor

rkhs_lit.coco -- COCO: the two functions that covary most
    ConstrainedCovariance, coco, coco_test

rkhs_lit.hsic -- HSIC: one number for dependence
    BoundedHSIC, GammaTest, gamma_pvalue, hsic, hsic_biased, hsic_gamma_test,
    hsic_low_rank, hsic_null_moments, hsic_test, hsic_unbiased, tile_sums

rkhs_lit.unmixing -- Features and sources: HSIC put to use
    FeatureSelection, Unmixing, balanced_labels, hsic_gaussian, hsic_unmix,
    select_features

rkhs_lit.conditional_independence -- Conditional independence: what remains when Z is known
    ConditionalTest, conditional_covariance, conditional_hsic,
    conditional_independence_test, normalised_conditional_hsic

rkhs_lit.conditional_embedding -- Conditional embeddings: a distribution for every x
    ConditionalEmbedding, conditional_embedding, embedding_leave_one_out,
    one_point, values_at

rkhs_lit.bayes_rule -- Bayes' rule: change the prior, keep the sample
    BayesValidation, Coordinates, KernelPosterior, kernel_bayes_rule,
    kernel_chain_rule, kernel_sum_rule, posterior_weights, validate_bayes_rule

rkhs_lit.filtering -- Filtering: Bayes' rule, again and again
    FilterValidation, Filtered, KernelBayesFilter, unit_mass, validate_filter
"""
# Generated from the modules by `make tangle`; the version is pyproject.toml's.

import sys as _sys

from rkhs_lit.bayes_rule import (
    BayesValidation,
    Coordinates,
    KernelPosterior,
    kernel_bayes_rule,
    kernel_chain_rule,
    kernel_sum_rule,
    posterior_weights,
    validate_bayes_rule,
)
from rkhs_lit.bochner import (
    Matern,
    spectral_density,
    spectral_sample,
)
from rkhs_lit.coco import (
    ConstrainedCovariance,
    coco,
    coco_test,
)
from rkhs_lit.conditional_embedding import (
    ConditionalEmbedding,
    conditional_embedding,
    embedding_leave_one_out,
    one_point,
    values_at,
)
from rkhs_lit.conditional_independence import (
    ConditionalTest,
    conditional_covariance,
    conditional_hsic,
    conditional_independence_test,
    normalised_conditional_hsic,
)
from rkhs_lit.conventions import (
    PrecisionWarning,
    Record,
    Vectors,
    as_points,
    as_sequence,
    certain,
    choice,
    finite,
    flag,
    frozen,
    function,
    generator,
    nonnegative,
    number,
    plain_array,
    positive,
    positives,
    real_array,
    same_columns,
    same_dimension,
    tolerance,
    vector,
    whole,
    width,
)
from rkhs_lit.cross_covariance import (
    LowRank,
    RKHSOperator,
    cross_covariance,
    hs_inner,
    hs_norm,
    is_constant,
    lanczos,
    op_norm,
    operator_core,
    regularised_solve,
    tensor,
)
from rkhs_lit.duality import (
    conjugate,
)
from rkhs_lit.filtering import (
    FilterValidation,
    Filtered,
    KernelBayesFilter,
    unit_mass,
    validate_filter,
)
from rkhs_lit.fourier_series import (
    FourierKernel,
    JacobiTheta,
    as_line,
    fourier_coefficients,
    spectral_inner,
    spectral_norm,
    waves,
)
from rkhs_lit.gaussian_process import (
    gaussian_derivative,
    gp_posterior,
    log_marginal_likelihood,
)
from rkhs_lit.hsic import (
    BoundedHSIC,
    GammaTest,
    gamma_pvalue,
    hsic,
    hsic_biased,
    hsic_gamma_test,
    hsic_low_rank,
    hsic_null_moments,
    hsic_test,
    hsic_unbiased,
    tile_sums,
)
from rkhs_lit.interpolation import (
    decompose,
    interpolate,
    power_function,
    project,
)
from rkhs_lit.kernels import (
    BSpline,
    Exponential,
    Gaussian,
    Laplace,
    Polynomial,
    Sigmoid,
    Sinc,
    Taylor,
    gaussian_bumps,
    gaussian_features,
    gram_dot,
    lag_vectors,
    polynomial_features,
    squared_distances,
)
from rkhs_lit.low_rank import (
    FourierFeatures,
    NystromFeatures,
    nystrom_features,
    pivoted_cholesky,
    random_fourier_features,
    rff_variance,
)
from rkhs_lit.mean_embedding import (
    Characteristic,
    GaussianEmbedding,
    embedding_distance,
    embedding_error,
    embedding_inner,
    is_characteristic,
    mean_embedding,
    moved,
    squared_norm,
)
from rkhs_lit.mercer import (
    Eigensystem,
    eigensystem,
    fourier_eigensystem,
    hermite_eigensystem,
    integral_operator,
)
from rkhs_lit.mmd import (
    median_heuristic,
    mmd2_biased,
    mmd2_unbiased,
    sample_maps,
    witness,
)
from rkhs_lit.moore_aronszajn import (
    Features,
    RKHSFunction,
    as_function,
    inner,
    kernel_from_basis,
    norm,
    norm_and_error,
    paired,
)
from rkhs_lit.pca import (
    PrincipalComponents,
    centre,
    denoise,
    kernel_pca,
    modes,
    preimage,
)
from rkhs_lit.quadratic import (
    QPSolution,
    solve_qp,
)
from rkhs_lit.representer import (
    Loss,
    Shifted,
    duality_gap,
    minimize_risk,
    regularised_risk,
)
from rkhs_lit.ridge import (
    CrossValidation,
    RidgePath,
    Standardisation,
    cross_validate,
    degrees_of_freedom,
    leave_fold_out,
    leave_one_out,
    ridge,
    ridge_factor,
    ridge_path,
    ridge_spectrum,
    smoother_matrix,
    split_folds,
    standardise,
)
from rkhs_lit.riesz import (
    GramSolution,
    gram_solve,
    riesz_representer,
)
from rkhs_lit.rules import (
    Conjugated,
    Definiteness,
    Delta,
    FeatureKernel,
    FunctionKernel,
    Kernel,
    Linear,
    Mapped,
    Pairs,
    Power,
    Product,
    Scaled,
    Sum,
    TensorProduct,
    as_kernel,
    checked,
    is_positive_definite,
    normalised,
    substrings,
    words,
)
from rkhs_lit.svm import (
    SVM,
    nu_svm,
    pair_steps,
    svm,
)
from rkhs_lit.svm_choice import (
    SVMCrossValidation,
    svm_cross_validate,
)
from rkhs_lit.tiles import (
    parallel,
    reduce_runs,
    reduce_tiles,
)
from rkhs_lit.two_samples import (
    PermutationTest,
    mmd_test,
    permutation_pvalue,
    split_statistics,
)
from rkhs_lit.unmixing import (
    FeatureSelection,
    Unmixing,
    balanced_labels,
    hsic_gaussian,
    hsic_unmix,
    select_features,
)

__version__ = "0.1.0"
__all__ = [
    "BSpline",
    "BayesValidation",
    "BoundedHSIC",
    "Characteristic",
    "ConditionalEmbedding",
    "ConditionalTest",
    "Conjugated",
    "ConstrainedCovariance",
    "Coordinates",
    "CrossValidation",
    "Definiteness",
    "Delta",
    "Eigensystem",
    "Exponential",
    "FeatureKernel",
    "FeatureSelection",
    "Features",
    "FilterValidation",
    "Filtered",
    "FourierFeatures",
    "FourierKernel",
    "FunctionKernel",
    "GammaTest",
    "Gaussian",
    "GaussianEmbedding",
    "GramSolution",
    "JacobiTheta",
    "Kernel",
    "KernelBayesFilter",
    "KernelPosterior",
    "Laplace",
    "Linear",
    "Loss",
    "LowRank",
    "Mapped",
    "Matern",
    "NystromFeatures",
    "Pairs",
    "PermutationTest",
    "Polynomial",
    "Power",
    "PrecisionWarning",
    "PrincipalComponents",
    "Product",
    "QPSolution",
    "RKHSFunction",
    "RKHSOperator",
    "Record",
    "RidgePath",
    "SVM",
    "SVMCrossValidation",
    "Scaled",
    "Shifted",
    "Sigmoid",
    "Sinc",
    "Standardisation",
    "Sum",
    "Taylor",
    "TensorProduct",
    "Unmixing",
    "Vectors",
    "as_function",
    "as_kernel",
    "as_line",
    "as_points",
    "as_sequence",
    "balanced_labels",
    "centre",
    "certain",
    "checked",
    "choice",
    "coco",
    "coco_test",
    "conditional_covariance",
    "conditional_embedding",
    "conditional_hsic",
    "conditional_independence_test",
    "conjugate",
    "cross_covariance",
    "cross_validate",
    "decompose",
    "degrees_of_freedom",
    "denoise",
    "duality_gap",
    "eigensystem",
    "embedding_distance",
    "embedding_error",
    "embedding_inner",
    "embedding_leave_one_out",
    "finite",
    "flag",
    "fourier_coefficients",
    "fourier_eigensystem",
    "frozen",
    "function",
    "gamma_pvalue",
    "gaussian_bumps",
    "gaussian_derivative",
    "gaussian_features",
    "generator",
    "gp_posterior",
    "gram_dot",
    "gram_solve",
    "hermite_eigensystem",
    "hs_inner",
    "hs_norm",
    "hsic",
    "hsic_biased",
    "hsic_gamma_test",
    "hsic_gaussian",
    "hsic_low_rank",
    "hsic_null_moments",
    "hsic_test",
    "hsic_unbiased",
    "hsic_unmix",
    "inner",
    "integral_operator",
    "interpolate",
    "is_characteristic",
    "is_constant",
    "is_positive_definite",
    "kernel_bayes_rule",
    "kernel_chain_rule",
    "kernel_from_basis",
    "kernel_pca",
    "kernel_sum_rule",
    "lag_vectors",
    "lanczos",
    "leave_fold_out",
    "leave_one_out",
    "log_marginal_likelihood",
    "mean_embedding",
    "median_heuristic",
    "minimize_risk",
    "mmd2_biased",
    "mmd2_unbiased",
    "mmd_test",
    "modes",
    "moved",
    "nonnegative",
    "norm",
    "norm_and_error",
    "normalised",
    "normalised_conditional_hsic",
    "nu_svm",
    "number",
    "nystrom_features",
    "one_point",
    "op_norm",
    "operator_core",
    "pair_steps",
    "paired",
    "parallel",
    "permutation_pvalue",
    "pivoted_cholesky",
    "plain_array",
    "polynomial_features",
    "positive",
    "positives",
    "posterior_weights",
    "power_function",
    "preimage",
    "project",
    "random_fourier_features",
    "real_array",
    "reduce_runs",
    "reduce_tiles",
    "regularised_risk",
    "regularised_solve",
    "rff_variance",
    "ridge",
    "ridge_factor",
    "ridge_path",
    "ridge_spectrum",
    "riesz_representer",
    "same_columns",
    "same_dimension",
    "sample_maps",
    "select_features",
    "smoother_matrix",
    "solve_qp",
    "spectral_density",
    "spectral_inner",
    "spectral_norm",
    "spectral_sample",
    "split_folds",
    "split_statistics",
    "squared_distances",
    "squared_norm",
    "standardise",
    "substrings",
    "svm",
    "svm_cross_validate",
    "tensor",
    "tile_sums",
    "tolerance",
    "unit_mass",
    "validate_bayes_rule",
    "validate_filter",
    "values_at",
    "vector",
    "waves",
    "whole",
    "width",
    "witness",
    "words",
]

# Names that have moved to another chapter are found where they were as well.
for _home, _names in {
    "bochner": [
        "FourierFeatures",
        "NystromFeatures",
        "nystrom_features",
        "pivoted_cholesky",
        "random_fourier_features",
        "rff_variance",
    ],
    "duality": [
        "QPSolution",
        "solve_qp",
    ],
    "hsic": [
        "FeatureSelection",
        "Unmixing",
        "balanced_labels",
        "hsic_gaussian",
        "hsic_unmix",
        "select_features",
    ],
    "kernels": [
        "Conjugated",
        "Definiteness",
        "Delta",
        "FeatureKernel",
        "FunctionKernel",
        "Kernel",
        "Linear",
        "Mapped",
        "Pairs",
        "Power",
        "Product",
        "Scaled",
        "Sum",
        "TensorProduct",
        "as_points",
        "as_sequence",
        "is_positive_definite",
        "normalised",
        "reduce_tiles",
        "substrings",
        "words",
    ],
    "mercer": [
        "fourier_coefficients",
        "spectral_inner",
        "spectral_norm",
    ],
    "mmd": [
        "PermutationTest",
        "mmd_test",
        "permutation_pvalue",
    ],
    "moore_aronszajn": [
        "decompose",
        "interpolate",
        "power_function",
        "project",
    ],
    "ridge": [
        "gaussian_derivative",
        "gp_posterior",
        "log_marginal_likelihood",
    ],
}.items():
    vars(_sys.modules[f"rkhs_lit.{_home}"]).update(
        {_name: globals()[_name] for _name in _names}
    )
