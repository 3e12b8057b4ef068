"""Reproducing kernel Hilbert spaces: the package that the book builds.

Each module holds the exported cells of the chapter of the same name; this
file only gathers the public names.
"""

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
    FourierFeatures,
    Matern,
    NystromFeatures,
    nystrom_features,
    pivoted_cholesky,
    random_fourier_features,
    rff_variance,
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
    lanczos,
    op_norm,
    operator_core,
    regularised_solve,
    tensor,
)
from rkhs_lit.duality import (
    QPSolution,
    solve_qp,
)
from rkhs_lit.filtering import (
    FilterValidation,
    Filtered,
    KernelBayesFilter,
    unit_mass,
    validate_filter,
)
from rkhs_lit.hsic import (
    FeatureSelection,
    GammaTest,
    Unmixing,
    balanced_labels,
    hsic,
    hsic_biased,
    hsic_gamma_test,
    hsic_gaussian,
    hsic_null_moments,
    hsic_test,
    hsic_unbiased,
    hsic_unmix,
    select_features,
)
from rkhs_lit.kernels import (
    BSpline,
    Conjugated,
    Definiteness,
    Delta,
    Exponential,
    FeatureKernel,
    FunctionKernel,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Mapped,
    Pairs,
    Polynomial,
    Power,
    Product,
    Scaled,
    Sigmoid,
    Sinc,
    Sum,
    Taylor,
    TensorProduct,
    as_kernel,
    gaussian_bumps,
    gaussian_features,
    gram_dot,
    is_positive_definite,
    lag_vectors,
    normalised,
    polynomial_features,
    reduce_tiles,
    squared_distances,
    substrings,
    words,
)
from rkhs_lit.mean_embedding import (
    Characteristic,
    GaussianEmbedding,
    embedding_distance,
    embedding_error,
    embedding_inner,
    is_characteristic,
    mean_embedding,
)
from rkhs_lit.mercer import (
    Eigensystem,
    FourierKernel,
    JacobiTheta,
    eigensystem,
    fourier_coefficients,
    fourier_eigensystem,
    hermite_eigensystem,
    integral_operator,
    spectral_inner,
    spectral_norm,
)
from rkhs_lit.mmd import (
    PermutationTest,
    median_heuristic,
    mmd2_biased,
    mmd2_unbiased,
    mmd_test,
    moved,
    permutation_pvalue,
    split_statistics,
    witness,
)
from rkhs_lit.moore_aronszajn import (
    Features,
    RKHSFunction,
    as_function,
    decompose,
    inner,
    interpolate,
    kernel_from_basis,
    norm,
    paired,
    power_function,
    project,
)
from rkhs_lit.pca import (
    PrincipalComponents,
    centre,
    denoise,
    kernel_pca,
    modes,
    preimage,
)
from rkhs_lit.representer import (
    Loss,
    duality_gap,
    minimize_risk,
    regularised_risk,
)
from rkhs_lit.ridge import (
    CrossValidation,
    RidgePath,
    cross_validate,
    degrees_of_freedom,
    gaussian_derivative,
    gp_posterior,
    leave_fold_out,
    leave_one_out,
    log_marginal_likelihood,
    ridge,
    ridge_factor,
    ridge_path,
    ridge_spectrum,
    smoother_matrix,
)
from rkhs_lit.riesz import (
    GramSolution,
    gram_solve,
    riesz_representer,
)
from rkhs_lit.svm import (
    SVM,
    nu_svm,
    svm,
)
