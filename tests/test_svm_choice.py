"""Choosing a machine: wide kernels, cross-validation, and scikit-learn as the second road."""

import numpy as np
import pytest
from rkhs_lit import (
    FeatureKernel,
    Gaussian,
    Laplace,
    Linear,
    Polynomial,
    substrings,
    svm,
    svm_cross_validate,
)
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC


def sample(n=40, noise=0.7, seed=0, level=1.3):
    """A disc and what is around it, with noise in the labels; both occur."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(np.sum(X**2, axis=1) + noise * rng.normal(size=n) > level, 1, -1)
    y[:2] = 1, -1
    return X, y


def test_a_wide_gaussian_with_growing_C_is_linear():
    """thm-svm-wide: the error falls like σ⁻²."""
    X, y = sample(40, noise=2.0)
    T = np.random.default_rng(3).normal(size=(20, 2))
    linear = svm(Linear(), X, y, 0.4)
    assert len(linear.on_margin) > 0
    errors = [np.abs(svm(Gaussian(s), X, y, 0.4 * s**2).decision(T) - linear.decision(T)).max()
              for s in (20.0, 40.0, 80.0)]
    assert errors[-1] < 0.02
    assert 3 < errors[0] / errors[1] < 5 and 3 < errors[1] / errors[2] < 5


def test_a_wide_gaussian_with_fixed_C_is_the_majority():
    """thm-svm-wide, second part: the value tends to the label of the larger class."""
    X, y = sample(40, noise=0.5)
    s = 1 if np.sum(y == 1) > 20 else -1
    T = np.random.default_rng(3).normal(size=(20, 2))
    errors = [np.abs(svm(Gaussian(width), X, y, 0.4).decision(T) - s).max()
              for width in (10.0, 100.0, 1000.0)]
    assert errors[-1] < 1e-3 and errors[0] > 10 * errors[1] > 100 * errors[2]


@pytest.mark.parametrize("offset", [True, False])
def test_the_errors_are_those_of_machines_trained_without_the_fold(offset):
    """alg-svm-cv: counted by hand, for two kernels, two prices and a test set."""
    X, y = sample(36)
    kernels, Cs = [Gaussian(0.5), Polynomial(2)], [0.3, 3.0]
    found = svm_cross_validate(kernels, X, y, Cs, folds=4, test=6, rng=3, offset=offset)
    assert sorted([*found.train, *found.test]) == list(range(36))
    assert sorted(np.concatenate(found.folds)) == list(found.train) and len(found.folds) == 4
    for k, row in zip(kernels, found.errors, strict=True):
        for C, error in zip(Cs, row, strict=True):
            wrong = 0
            for fold in found.folds:
                rest = np.setdiff1d(found.train, fold)
                machine = svm(k, X[rest], y[rest], C, offset=offset)
                wrong += np.sum(machine.predict(X[fold]) != y[fold])
            assert error == wrong / 30
    q, j = np.unravel_index(found.errors.argmin(), (2, 2))
    best = svm(kernels[q], X[found.train], y[found.train], Cs[j], offset=offset)
    assert found.machine.C == Cs[j] and found.machine.function.kernel is kernels[q]
    assert np.allclose(found.machine.decision(X), best.decision(X))
    assert found.test_error == np.mean(best.predict(X[found.test]) != y[found.test])


def test_a_point_on_the_boundary_is_called_positive():
    """alg-svm-cv: sign(0) counts as +1. Trained on the other four, f(0) = 0; trained on the
    fifth alone, all are called negative, and two of the four are not."""
    x, y = [-1.0, 1.0, -2.0, 2.0, 0.0], [-1, 1, -1, 1, -1]
    machine = svm(Linear(), x[:4], y[:4], 1.0)
    assert machine.decision([0.0]) == 0.0 and machine.predict([0.0]) == 1
    found = svm_cross_validate(Linear(), x, y, [1.0], folds=[[4], [0, 1, 2, 3]])
    assert np.isclose(found.errors, 3 / 5)


def test_five_folds_are_the_default():
    """alg-svm-cv: each has a fifth of the points."""
    X, y = sample(40)
    assert [*map(len, svm_cross_validate(Linear(), X, y, [1.0], rng=0).folds)] == [8] * 5


def test_the_grid_search_of_scikit_learn_takes_our_kernels_as_they_are():
    """alg-svm-cv against GridSearchCV over SVC(kernel=k), where k is a Kernel."""
    X, y = sample(60, noise=0.4)
    kernels, Cs = [Gaussian(0.3), Gaussian(1.5), Laplace(1.0)], [0.2, 2.0]
    found = svm_cross_validate(kernels, X, y, Cs, folds=5, rng=0)
    splits = [(np.setdiff1d(np.arange(60), fold), fold) for fold in found.folds]
    search = GridSearchCV(SVC(tol=1e-8), {"C": Cs, "kernel": kernels}, cv=splits).fit(X, y)
    assert np.allclose(1 - search.cv_results_["mean_test_score"].reshape(2, 3).T, found.errors)


def test_svc_with_our_kernel_is_svc_with_its_own():
    """def-c-svm: SVC(kernel=Gaussian(σ)) is SVC(gamma=1/(2σ²)), and so are the values at new points."""
    X, y = sample(50)
    T = np.random.default_rng(1).normal(size=(20, 2))
    ours = SVC(C=2.0, kernel=Gaussian(0.7), tol=1e-8).fit(X, y).decision_function(T)
    theirs = SVC(C=2.0, gamma=1 / (2 * 0.7**2), tol=1e-8).fit(X, y).decision_function(T)
    assert np.allclose(ours, theirs, atol=1e-6)
    assert np.allclose(ours, svm(Gaussian(0.7), X, y, 2.0).decision(T), atol=1e-5)


def test_folds_of_words_and_a_repr():
    """alg-svm-cv asks nothing of the points; one kernel need not be a list."""
    words = ["uno", "due", "tre", "sei", "otto", "one", "two", "three", "six", "eight"]
    y = np.repeat([1, -1], 5)
    found = svm_cross_validate(FeatureKernel(substrings(1)), words, y, [1.0],
                               folds=[[0, 5], [1, 6], [2, 7], [3, 8], [4, 9]])
    assert found.test_error is None and found.errors.shape == (1, 1)
    assert repr(found).startswith("SVMCrossValidation(FeatureKernel")
    with pytest.raises(ValueError, match="read-only"):
        found.errors[0, 0] = 0.0
    with pytest.raises(ValueError, match="^kernels must"):
        svm_cross_validate([], words, y, [1.0])


def test_leaving_out_a_point_makes_at_most_as_many_errors_as_support_vectors():
    """thm-svm-types, part 4, with as many folds as points and without offset."""
    X, y = sample(30)
    found = svm_cross_validate(Gaussian(1.0), X, y, [2.0], folds=30, offset=False)
    assert 30 * found.errors[0, 0] <= len(svm(Gaussian(1.0), X, y, 2.0, offset=False).support)


def test_the_smallest_of_many_errors_is_too_small():
    """prop-svm-cv: coin flips have the error 1/2; the mean over draws of the minimum is below."""
    gaps = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(20, 1)), np.tile([-1, 1], 10)
        kernels = [Linear(), Gaussian(0.2), Gaussian(1.0)]
        errors = svm_cross_validate(kernels, X, y, [0.1, 10.0], folds=4, rng=rng).errors
        gaps.append(errors.mean() - errors.min())
    assert np.min(gaps) >= 0 and np.mean(gaps) > 0.05
