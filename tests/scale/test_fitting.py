"""What is learned from a sample, and what is exact over all rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.scale.conftest import PART_ROWS

import shoal
from shoal import DDFA, DiscreteMixture, DomainMixture, scale
from shoal.exceptions import InputError
from shoal.probability import canonical_order, class_posterior, match_rows
from shoal.scale._exact import next_solution

SAMPLE = 2_000


def fit(estimator, data, **options):
    settings = {"domain": "site", "sample": SAMPLE, "workers": 1}
    return scale.fit(estimator, data, **settings | {"part_rows": PART_ROWS} | options)


def error_of(prevalence, truth):
    order = match_rows(truth.T, prevalence.T)
    return np.abs(prevalence[:, order] - truth).mean()


def test_with_few_rows_it_is_the_fit_itself(world, estimator):
    model = fit(estimator, world.folder, sample=20_000)
    plain = clone(estimator).fit(world.X, world.frame["site"])
    assert np.array_equal(model.prevalence_, plain.prevalence_)
    assert np.array_equal(model.labels_, plain.labels_)
    assert model.scale_["exact"] == "the sample is all of the data"


def test_the_table_of_a_ddfa_is_exact(world):
    """Every row once: the sample out of fold, all others by a model without them."""
    estimator = DDFA(3, discriminator="logistic", cross_fit=3, random_state=0)
    model = fit(estimator, world.folder)
    sample = scale.draw(world.folder, SAMPLE, domain="site", workers=1)
    learned = clone(estimator).fit(sample.X, sample.domains)
    points = learned.discriminator_.predict_proba(world.X)
    clusters = learned.discretizer_.predict(points)
    clusters[sample.ids - 1] = learned.discretizer_.labels_
    table = pd.crosstab(world.frame["site"], clusters, normalize="index").to_numpy()
    known = model.factorization_
    assert known.class_given_domain.shape == (5, 3)
    rebuilt = known.class_given_domain @ known.cluster_given_class
    residual = np.abs(rebuilt - table).max()
    learned._random = np.random.RandomState(0)
    again = learned._factorizer(table).fit(table).factorization_
    np.testing.assert_allclose(again.class_given_domain, model.prevalence_, atol=1e-12)
    assert residual == pytest.approx(
        np.abs(again.class_given_domain @ again.cluster_given_class - table).max()
    )


def test_prevalences_of_a_mixture_maximize_the_likelihood_of_all_rows(world):
    """No step of slow EM, written out over all rows, moves them any more."""
    model = fit(DomainMixture(3, search=False, random_state=0), world.folder, passes=9)
    codes = np.searchsorted(model.domains_, world.frame["site"])
    g, T = model._class_given_x(world.X), model.domain_given_class_
    posterior = g * T.T[codes]
    posterior /= posterior.sum(axis=1, keepdims=True)
    mean = np.array([posterior[codes == d].mean(axis=0) for d in range(5)])
    assert np.abs(mean - model.prevalence_).max() < 2e-4
    moved = model.scale_["moved"]
    assert moved[-1] < 1e-5
    assert len(moved) < 9
    assert moved[-1] < moved[-2] / 5  # Newton's last steps square the error


def test_all_rows_tell_more_than_a_sample(world):
    """The likelihood of all rows rises with every pass."""
    estimator = DomainMixture(3, search=False, random_state=0)
    models = [fit(estimator, world.folder, passes=passes) for passes in (0, 1, 4)]
    scores = [model.score(world.X, world.frame["site"]) for model in models]
    assert scores == sorted(scores)
    assert scores[0] < scores[-1]
    assert error_of(models[-1].prevalence_, world.prevalence) < 0.02


def test_a_step_solves_the_problem_in_two_dimensions():
    """Newton by hand: one class pair, all rows sure, the answer is the counts."""
    sure = np.array([[30.0, 10.0], [20.0, 40.0]])  # rows of each domain and class
    sums = {
        "first": sure,
        "second": np.stack([np.diag(row) for row in sure]),
        "count": sure.sum(axis=1).astype(int),
    }
    T = np.array([[0.5, 0.5], [0.4, 0.6]])
    weight = np.array([0.5, 0.5])
    for _ in range(30):
        scaled = {**sums}
        T, prevalence = next_solution(scaled, T, weight, 1e-9)
    expected = sure / sure.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(prevalence, expected, atol=1e-6)


def test_classes_are_in_canonical_order(world, estimator):
    model = fit(estimator, world.folder)
    assert canonical_order(model.prevalence_).tolist() == [0, 1, 2]
    sample = scale.draw(world.folder, SAMPLE, domain="site", workers=1)
    assert np.array_equal(model.labels_, model.predict(sample.X, sample.domains))


def test_workers_do_not_matter(world):
    estimator = DomainMixture(3, search=False, random_state=0)
    one, two = (
        fit(estimator, world.folder, workers=workers, passes=1) for workers in (1, 2)
    )
    assert np.array_equal(one.prevalence_, two.prevalence_)


@pytest.mark.parametrize("part_rows", [700, 100_000])
def test_parts_do_not_matter(world, estimator, part_rows):
    one = fit(estimator, world.folder)
    other = scale.fit(
        estimator, world.folder, domain="site", sample=SAMPLE, workers=1,
        part_rows=part_rows,
    )  # fmt: skip
    assert np.abs(one.prevalence_ - other.prevalence_).max() < 1e-9


def test_domain_weight_by_size_means_all_rows(world):
    model = fit(
        DomainMixture(3, search=False, domain_weight="size", random_state=0),
        world.folder,
    )
    sizes = world.frame["site"].value_counts(normalize=True).sort_index()
    np.testing.assert_allclose(model.domain_weight_, sizes)
    assert model.get_params()["domain_weight"] == "size"


def test_corners_instead_of_clusters(world):
    model = fit(
        DDFA(3, discriminator="logistic", discretizer=None, random_state=0),
        world.folder,
    )
    assert "maximum likelihood" in model.scale_["exact"]
    # what is said of rows follows the prevalences of all rows
    X, sites = world.X[:50], world.frame["site"][:50]
    codes = np.searchsorted(model.domains_, sites)
    shifted = class_posterior(
        model._class_given_x(X), model.domain_given_class_, codes, model.class_weight_
    )
    np.testing.assert_allclose(shifted, model.predict_proba(X, sites))


def test_the_model_is_like_any_other(world, estimator, tmp_path):
    model = fit(estimator, world.folder)
    loaded = shoal.load(shoal.save(model, tmp_path / "model"))
    X, domains = world.X[:200], world.frame["site"][:200]
    assert np.array_equal(
        loaded.predict_proba(X, domains), model.predict_proba(X, domains)
    )
    assert loaded.scale_ == model.scale_
    sample = scale.draw(world.folder, SAMPLE, domain="site", workers=1)
    intervals = model.bootstrap(sample.X, sample.domains, n_resamples=5, random_state=0)
    assert (intervals.low <= model.prevalence_).all()


def test_what_is_sampled_and_what_it_costs_is_said(world, caplog):
    caplog.set_level("INFO", "shoal.scale")
    seen = []
    model = fit(
        DomainMixture(3, search=False, random_state=0),
        world.folder,
        progress=lambda stage, share: seen.append((stage, share)),
    )
    record = model.scale_
    assert (record["rows"], record["sampled"], record["parts"]) == (12_000, SAMPLE, 10)
    assert record["rows_per_domain"] == (
        world.frame["site"].value_counts().sort_index().tolist()
    )
    names = [stage["stage"] for stage in record["stages"]]
    assert names[:4] == [
        "count domains", "draw a sample", "learn", "prevalences, pass 1",
    ]  # fmt: skip
    assert "2,000 of 12,000 rows sampled" in caplog.text
    for name in names:
        shares = [share for stage, share in seen if stage == name]
        assert shares[-1] == 1
        assert shares == sorted(shares)
        assert name in caplog.text


def test_passes_that_end_too_early_say_so(world, caplog):
    estimator = DomainMixture(3, search=False, random_state=0)
    short = fit(estimator, world.folder, passes=1).scale_
    said = f"not converged, last move {short['moved'][-1]:.1g}"
    assert short["exact"].endswith(f"1 passes; {said}")
    assert [one["code"] for one in short["messages"]] == ["W161"]
    assert said in caplog.text
    enough = fit(estimator, world.folder, passes=20).scale_
    assert enough["moved"][-1] < 1e-5
    assert "not converged" not in enough["exact"]
    assert enough["messages"] == []


def test_what_is_noticed_about_rows_is_kept(world, tmp_path):
    """Of the sample (W144), and of rows beyond it (W143: a category of its own)."""
    kinds = np.where(np.arange(12_000) % 2, "p", "q").astype(object)
    sites = world.frame["site"].where(world.frame.index > 9, None)
    frame = world.frame.assign(kind=kinds, site=sites)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=1_000)
    estimator = DomainMixture(3, search=False, random_state=0)
    options = {"drop_missing_domain": True, "passes": 1}
    sampled = scale.draw(
        tmp_path, SAMPLE, domain="site", workers=1, drop_missing_domain=True
    )
    beyond = sorted(set(range(5_000, 12_000)) - set(sampled.ids - 1))[0]
    frame.loc[beyond, "kind"] = "new"
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=1_000)
    found = fit(estimator, tmp_path, **options).scale_["messages"]
    assert [one["code"] for one in found] == ["W144", "W143", "W161"]


def test_a_lean_copy_says_the_same(world, estimator):
    model = clone(estimator).fit(world.X[:2_000], world.frame["site"][:2_000])
    copied = model._lean()
    assert np.array_equal(copied.predict_proba(world.X), model.predict_proba(world.X))
    assert not hasattr(copied, "labels_")
    assert hasattr(model, "labels_")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"engine": "dask"}, ValueError, "engine must be one of 'local', 'ray'"),
        ({"address": "auto"}, ValueError, "address='auto' needs engine='ray'"),
        ({"workers": 0}, ValueError, "workers must be a whole number from 1, got 0"),
        ({"sample": 1}, ValueError, "sample must be a whole number from 2, got 1"),
        ({"passes": -1}, ValueError, "passes must be a whole number from 0, got -1"),
        ({"part_rows": 0}, ValueError, "part_rows must be a whole number from 1"),
    ],
    ids=["engine", "address", "workers", "sample", "passes", "part_rows"],
)
def test_settings_are_checked_before_any_file_is_read(options, error, message):
    with pytest.raises(error, match=message):
        fit(DomainMixture(3), "absent.parquet", **options)


def test_other_models_are_refused(world):
    with pytest.raises(TypeError, match="a DomainMixture or a DDFA"):
        fit(DiscreteMixture(3), world.folder)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bad_row_beyond_the_sample_is_named(world, tmp_path, workers):
    """As it would be in memory: by its number in the data set, with the fix."""
    bad = world.frame.copy()
    bad.loc[9_123, "x2"] = np.nan
    bad.to_parquet(tmp_path / "rows.parquet", row_group_size=1_000)
    with pytest.raises(InputError, match="row 9124, x2") as error:
        fit(DomainMixture(3, search=False, random_state=0), tmp_path, workers=workers)
    assert error.value.code == "E115"
