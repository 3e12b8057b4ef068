"""Choosing a machine: width, price, cross-validation"""
# The exported cells of book/svm_choice.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 32b77b78681dd0c9

# %% [1] Choosing a machine: width, price, cross-validation
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import rkhs_lit.conventions as check
from rkhs_lit.kernels import Gaussian, Kernel, Linear
from rkhs_lit.moore_aronszajn import Features
from rkhs_lit.ridge import split_folds
from rkhs_lit.svm import SVM, svm

# %% [2] Points that were not used
@dataclass(frozen=True, eq=False, repr=False)
class SVMCrossValidation(check.Record):
    """What `svm_cross_validate` found (:prf:ref:`alg-svm-cv`): the chosen
    `machine`, trained on the points `train`, with the fraction of errors
    `test_error` at the points `test`, if there are any. ``errors[q, j]``
    is the fraction of the training points that ``kernels[q]`` and
    ``Cs[j]`` put on the wrong side when their fold is left out."""

    kernels: tuple
    Cs: np.ndarray
    errors: np.ndarray
    machine: SVM
    test_error: float | None
    train: np.ndarray
    test: np.ndarray
    folds: tuple

    def __repr__(self):
        return (f"SVMCrossValidation({self.machine.function.kernel}, "
                f"C={self.machine.C:.6g}, error={self.errors.min():.6g})")


def svm_cross_validate(kernels: Kernel | Sequence[Kernel], X, y, Cs, *,
                       folds=5, test=0, rng=None,
                       offset: bool = True) -> SVMCrossValidation:
    """Choose one of the kernels and one of the prices `Cs` of `svm` by
    cross-validation (:prf:ref:`alg-svm-cv`). `folds`, `test` and `rng` as
    for `cross_validate`.

    >>> x, y = np.arange(12.0), np.repeat([-1, 1, -1], 4)
    >>> found = svm_cross_validate([Linear(), Gaussian(2.0)], x, y,
    ...                            [1.0, 10.0], folds=4, rng=0)
    >>> found.machine.function.kernel, found.errors.shape
    (Gaussian(sigma=2.0), (2, 2))
    """
    kernels = tuple(kernels) if np.iterable(kernels) else (kernels,)
    if not kernels:
        raise ValueError("kernels must hold at least one kernel")
    Phi = Features(kernels[0], X, "X", "kernels")
    maps = [Features(k, Phi, "X", "kernels") for k in kernels]
    y, Cs = check.vector(y, "y", Phi.n), check.positives(Cs, "Cs")
    folds, test = split_folds(Phi.n, folds, test, rng)
    train = np.sort(np.concatenate(folds))

    def trained(Phi, rows, C):
        return svm(Phi.kernel, Phi[rows], y[rows], C, offset=offset)

    def wrong(Phi, machine, rows):
        f = Phi[rows].sample(machine.function) + machine.b
        return np.sum((f >= 0) != (y[rows] > 0))

    errors = np.array([[sum(wrong(Phi, trained(Phi, np.setdiff1d(
        train, fold), C), fold) for fold in folds) for C in Cs]
        for Phi in maps]) / len(train)
    best, j = np.unravel_index(errors.argmin(), errors.shape)
    machine = trained(maps[best], train, float(Cs[j]))
    test_error = float(wrong(maps[best], machine, test) / len(test)
                       ) if len(test) else None
    return SVMCrossValidation(kernels, Cs, errors, machine, test_error,
                              train, test, folds)
