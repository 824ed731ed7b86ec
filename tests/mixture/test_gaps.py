"""DomainMixture of rows in which values miss: masks, what is expected, the choice."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from scipy.stats import multivariate_normal

import shoal
from shoal import DensityMixture, DomainMixture
from shoal.datasets import load_penguins, make_latent_shift
from shoal.metrics import matched_accuracy
from shoal.mixture._gaps import choose_filling, mask
from shoal.mixture._options import read_options

Array = np.ndarray[Any, Any]


def with_gaps(X: Array, share: float, seed: int = 0) -> Array:
    X = X.astype(float)
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


@pytest.fixture(scope="module")
def birds() -> tuple[Array, Array, Array]:
    penguins = load_penguins()
    return with_gaps(penguins.X, 0.3), penguins.domains, penguins.labels


@pytest.fixture(scope="module")
def fitted(birds: tuple[Array, Array, Array]) -> DomainMixture:
    X, domains, _ = birds
    return DomainMixture(3, by="shift", random_state=0).fit(X, domains)


def test_a_third_of_the_cells_may_be_missing(birds, fitted) -> None:
    X, domains, labels = birds
    assert fitted.filling_.how == "expected"
    assert fitted.filling_.n_missing.tolist() == np.isnan(X).sum(axis=0).tolist()
    assert (fitted.predict(X, domains) == fitted.labels_).all()
    assert matched_accuracy(labels, fitted.labels_) > 0.9


def test_what_is_expected_is_the_mean_given_the_cells_that_are_there() -> None:
    """Against the conditional means of Gaussians, weighed by their classes."""
    X, domains, _ = make_latent_shift(600, n_classes=2, n_domains=3, random_state=0)
    X = with_gaps(X[:, :3] @ [[1.0, 0.5, 0.2], [0, 1, 0.7], [0, 0, 1]], 0.2)
    looks = DensityMixture(2, covariance="full", tail=np.inf, random_state=0)
    looks.fit(X, domains)
    filled = looks._filled(X)
    row = int(np.flatnonzero(np.isnan(X).sum(axis=1) == 1)[0])
    gap, there = np.isnan(X[row]), ~np.isnan(X[row])
    columns, density = looks.columns_, looks.density_
    z = columns.standardize(X)[row, there]
    logs, means = [], []
    for y in range(2):
        S, mean = density.covariance[y], density.means[y]
        seen = S[np.ix_(there, there)]
        logs.append(multivariate_normal(mean[there], seen).logpdf(z))
        pull = S[np.ix_(gap, there)] @ np.linalg.solve(seen, z - mean[there])
        means.append(mean[gap] + pull)
    weight = softmax(np.array(logs) + np.log(looks.class_weight_))
    wanted = columns.mean[gap] + columns.scale[gap] * (weight @ np.array(means))
    np.testing.assert_allclose(filled[row, gap], wanted, rtol=1e-6)
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])


def test_masked_cells_say_nothing(birds) -> None:
    """A single optimization masks: a row without any value is the mean row."""
    X, domains, _ = birds
    model = DomainMixture(3, search=False, random_state=0).fit(X, domains)
    assert model.filling_.how == "mask"
    assert model.filling_.held_out == {}
    np.testing.assert_allclose(model.filling_.mean, np.nanmean(X, axis=0))
    nothing, mean = np.full((1, 4), np.nan), np.nanmean(X, axis=0)[None]
    np.testing.assert_allclose(model.predict_proba(nothing), model.predict_proba(mean))
    filled = model.filling_.fill(X)
    again = DomainMixture(3, search=False, random_state=0).fit(filled, domains)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.prevalence_, model.prevalence_)


def test_masks_win_where_what_is_expected_is_wrong() -> None:
    """Densities in other units expect nonsense; those of these, what was there."""
    X, domains, _ = make_latent_shift(
        1500, n_classes=3, n_domains=4, separation=3.0, random_state=1
    )
    X = np.column_stack([X[:, :2], X[:, :2] + 0.1 * np.sin(9 * X[:, :2])])
    gappy = with_gaps(X, 0.3)
    options = read_options(DomainMixture(3))
    codes = np.unique(domains, return_inverse=True)[1]
    right = DensityMixture(3, random_state=0).fit(gappy, domains)
    wrong = DensityMixture(3, random_state=0).fit(20 - 5 * gappy, domains)
    best = choose_filling(mask(gappy), right, gappy, codes, options)
    assert best.how == "expected"
    assert best.held_out["expected"][0] > best.held_out["mask"][0]
    assert choose_filling(mask(gappy), wrong, gappy, codes, options).how == "mask"


def test_without_gaps_later_rows_are_masked() -> None:
    penguins = load_penguins()
    model = DomainMixture(3, search=False, random_state=0)
    model.fit(penguins.X, penguins.domains)
    assert not model.filling_.n_missing.any()
    rows = penguins.X[:5].copy()
    rows[:, 1] = np.nan
    masked = np.where(np.isnan(rows), penguins.X.mean(axis=0), rows)
    np.testing.assert_allclose(model.predict_proba(rows), model.predict_proba(masked))


def test_the_order_of_rows_does_not_matter(birds, fitted) -> None:
    X, domains, _ = birds
    order = np.random.default_rng(1).permutation(len(X))
    other = DomainMixture(3, by="shift", random_state=0).fit(X[order], domains[order])
    np.testing.assert_array_equal(other.labels_, fitted.labels_[order])


def test_all_that_is_asked_of_a_fit_takes_gaps(birds, fitted, tmp_path: Path) -> None:
    X, domains, _ = birds
    shoal.save(fitted, tmp_path / "model")
    loaded = shoal.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.predict_proba(X, domains), fitted.predict_proba(X, domains)
    )
    assert loaded.filling_.held_out == fitted.filling_.held_out
    intervals = fitted.bootstrap(X, domains, n_resamples=5, random_state=0)
    assert np.isfinite(intervals.low).all()
    arrived = fitted.adapt(X[domains == "Dream"])
    np.testing.assert_allclose(
        arrived.prevalence, fitted.prevalence_[fitted.domains_ == "Dream"][0], atol=0.1
    )
    assert fitted.diagnose(X, domains, n_permutations=2).findings
    why = fitted.explain(X[[1]], domains[1])
    parts = why.domain_evidence + why.base + why.evidence.sum()
    assert parts == pytest.approx(why.log_odds)
    assert np.isfinite(fitted.score(X, domains))


def test_looks_take_gaps_as_they_are(birds) -> None:
    X, domains, _ = birds
    model = DomainMixture(3, by="looks", random_state=0).fit(X, domains)
    twin = DensityMixture(3, random_state=0).fit(X, domains)
    np.testing.assert_array_equal(model.labels_, twin.labels_)
    np.testing.assert_array_equal(model.predict(X, domains), model.labels_)


def test_gaps_of_sparse_rows_are_refused(birds) -> None:
    X, domains, _ = birds
    with pytest.raises(ValueError, match="NaN or infinite values"):
        DomainMixture(3).fit(sparse.csr_array(X), domains)


def test_models_from_before_refuse_gaps(birds, fitted) -> None:
    """They do not know what to put there."""
    import copy

    old = copy.copy(fitted)
    del old.filling_
    with pytest.raises(ValueError, match="NaN or infinite values"):
        old.predict(birds[0])
    assert old.predict(np.nan_to_num(birds[0])).shape == birds[2].shape


def test_weights_are_checked_before_gaps_are_filled(birds) -> None:
    X, domains, _ = birds
    with pytest.raises(ValueError, match="sample_weight must have one entry per row"):
        DomainMixture(3).fit(X, domains, sample_weight=np.ones(3))


def test_large_numbers_of_single_precision_are_no_gaps() -> None:
    X = np.full((4, 3), 2e38, dtype=np.float32)
    assert mask(X).fill(X) is X
