"""Reproducing kernel Hilbert spaces: the package that the book builds.

Each module holds the exported cells of the chapter of the same name; this
file only gathers the public names.
"""

from rkhs_lit.bochner import (
    FourierFeatures,
    Matern,
    NystromFeatures,
    nystrom_features,
    pivoted_cholesky,
    random_fourier_features,
    rff_variance,
    spectral_sample,
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
    as_points,
    as_sequence,
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
from rkhs_lit.moore_aronszajn import (
    RKHSFunction,
    decompose,
    inner,
    interpolate,
    kernel_from_basis,
    norm,
    power_function,
    project,
)
from rkhs_lit.riesz import riesz_representer
