"""Adapting and diagnosing in parts, against the same in memory."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.scale.conftest import PART_ROWS

from shoal import scale
from shoal.exceptions import ModelFileError, ShoalWarning
from shoal.io.table._schema import Schema
from shoal.scale._exact import next_shares


@pytest.fixture
def new_domain(world, tmp_path):
    """Rows of two sites, without any site."""
    rows = world.frame[world.frame["site"].isin(["b", "d"])].drop(columns="site")
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=500)
    return tmp_path / "rows.parquet", rows.to_numpy()


def test_the_mix_of_a_new_domain_is_that_of_all_its_rows(model, new_domain):
    path, X = new_domain
    found = scale.adapt(
        model, path, sample=500, passes=9, workers=1, part_rows=PART_ROWS
    )
    exact = model.adapt(X, random_state=0)
    np.testing.assert_allclose(found.prevalence, exact.prevalence, atol=1e-5)
    # from the curvature instead of 200 resamples, whose spread is itself uncertain
    np.testing.assert_allclose(found.low, exact.low, atol=0.006)
    np.testing.assert_allclose(found.high, exact.high, atol=0.006)
    assert found.fit_score == pytest.approx(exact.fit_score)
    assert found.n_rows == len(X)
    assert (found.low <= found.prevalence).all()
    np.testing.assert_array_equal(found.predict(X), exact.predict(X))


def test_merged_classes_are_adapted_to_as_their_parts(model, new_domain):
    path, X = new_domain
    options = {"sample": 500, "workers": 1}
    merged = model.merge(0, 1)
    merged.schema_ = model.schema_
    parts, whole = (scale.adapt(one, path, **options) for one in (model, merged))
    expected = [parts.prevalence[group].sum() for group in merged.groups]
    np.testing.assert_allclose(whole.prevalence, expected)
    np.testing.assert_allclose(
        whole.as_domain("x").estimator.prevalence_[-1], parts.prevalence
    )
    exact = merged.adapt(X, random_state=0)
    np.testing.assert_allclose(whole.high - whole.low, exact.high - exact.low, rtol=0.3)


def test_few_rows_are_adapted_to_in_memory(model, new_domain):
    path, X = new_domain
    found = scale.adapt(model, path, workers=1)
    exact = model.adapt(X, random_state=0)
    np.testing.assert_array_equal(found.prevalence, exact.prevalence)
    np.testing.assert_array_equal(found.low, exact.low)


def test_a_step_towards_the_best_mix_raises_the_likelihood():
    rng = np.random.default_rng(0)
    ratio = rng.dirichlet(np.ones(3), 4_000) * 3
    shares = np.full(3, 1 / 3)
    values = []
    for _ in range(6):
        density = ratio @ shares
        posterior = ratio * shares / density[:, None]
        sums = {
            "first": posterior.sum(axis=0)[None],
            "second": (posterior.T @ posterior)[None],
            "count": np.array([len(ratio)]),
        }
        values.append(np.log(density).sum())
        shares, covariance = next_shares(sums, shares)
    assert (np.diff(values) > -1e-9).all()
    assert values[0] < values[-1]
    # at the best mix, one step of EM moves nothing
    density = ratio @ shares
    step = (ratio * shares / density[:, None]).mean(axis=0)
    np.testing.assert_allclose(step, shares, atol=1e-9)
    assert (covariance.diagonal() > 0).all()


@pytest.mark.parametrize(
    ("ask", "options", "said"),
    [
        (scale.adapt, {"sample": 0}, "sample must be a whole number from 2, got 0"),
        (scale.adapt, {"passes": 0}, "passes must be a whole number from 1, got 0"),
        (scale.adapt, {"level": 1.5}, "level must lie between 0 and 1, got 1.5"),
        (scale.diagnose, {"sample": 0}, "sample must be a whole number from 2"),
        (scale.diagnose, {"n_permutations": 1}, "n_permutations must be a whole"),
    ],
    ids=["sample", "passes", "level", "diagnose", "permutations"],
)
def test_settings_are_checked_before_any_file_is_read(model, ask, options, said):
    with pytest.raises(ValueError, match=said):
        ask(model, "absent.parquet", **options)


@pytest.mark.parametrize("ask", [scale.adapt, scale.diagnose])
def test_an_option_that_there_is_not_is_told_with_those_that_there_are(model, ask):
    with pytest.raises(TypeError, match="no option 'worker'; there are .*workers"):
        ask(model, "absent.parquet", worker=2)


def test_passes_that_end_too_early_say_so(model, new_domain):
    path, _ = new_domain
    with pytest.warns(ShoalWarning, match="1 passes over all rows have not converged"):
        scale.adapt(model, path, sample=50, passes=1, workers=1)


def test_rows_left_out_of_a_diagnosis_are_said(world, model, tmp_path):
    sites = world.frame["site"].where(world.frame.index > 9, None)
    world.frame.assign(site=sites).to_parquet(tmp_path / "rows.parquet")
    options = {"sample": 500, "workers": 1, "n_permutations": 2}
    with pytest.warns(ShoalWarning, match="10 rows have no domain"):
        scale.diagnose(
            model, tmp_path / "rows.parquet", drop_missing_domain=True, **options
        )


def test_words_are_not_rows(world):
    from shoal import DiscreteMixture

    codes = np.arange(40) % 4
    counts = np.random.default_rng(0).poisson(2 + codes[:, None] * np.arange(6))
    words = DiscreteMixture(2, input="counts", random_state=0).fit(counts, codes)
    with pytest.raises(TypeError, match="not of counts"):
        scale.adapt(words, world.folder)


def test_a_diagnosis_counts_all_rows_and_asks_a_sample(world, model):
    found = scale.diagnose(
        model, world.folder, sample=1_500, workers=1, part_rows=PART_ROWS
    )
    sample = scale.draw(world.folder, 1_500, domain="site", workers=1)
    asked = model.diagnose(sample.X, sample.domains, random_state=0)
    sizes = world.frame["site"].value_counts().sort_index()
    assert found.numbers["n_rows"] == 12_000
    assert found.numbers["rows_per_domain"].tolist() == sizes.tolist()
    assert found.numbers["gain"] == pytest.approx(asked.numbers["gain"], abs=0.02)
    assert [one.code for one in found.findings] == [one.code for one in asked.findings]


def test_domains_judged_thin_are_thin_among_all_rows(world, model):
    """A sample of 20 rows a domain does not make the domains thin."""
    found = scale.diagnose(
        model, world.folder, sample=120, workers=1, part_rows=PART_ROWS
    )
    assert found["W111"].status == "ok"


def test_a_domain_that_the_model_has_not_seen(world, model, tmp_path):
    world.frame.assign(site="z").to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ModelFileError, match='not seen "z"') as error:
        scale.diagnose(model, tmp_path / "rows.parquet", workers=1)
    assert error.value.code == "E134"
    world.frame.drop(columns="site").to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ModelFileError) as error:
        scale.diagnose(model, tmp_path / "rows.parquet", workers=1)
    assert error.value.code == "E133"


def test_a_model_of_files_as_domains_needs_a_column_here(world, model):
    of_files = copy.copy(model)
    rule = model.schema_["domain"] | {"column": None}
    of_files.schema_ = model.schema_ | {"domain": rule}
    with pytest.raises(ModelFileError, match='the model needs "domain"'):
        scale.diagnose(of_files, world.folder, workers=1)


def test_rows_that_fit_would_have_left_out_do_not_count(world, model, tmp_path):
    """A model of impute="drop": as if the rows with gaps were not there."""
    choosy = copy.copy(model)
    choosy.schema_ = model.schema_ | {"drop_incomplete": True}
    first = Schema.from_dict(model.schema_).feature_names[0]
    frame = world.frame
    gaps = frame.assign(**{first: frame[first].mask(frame.index % 4 == 0)})
    gaps.to_parquet(tmp_path / "gaps.parquet")
    gaps[frame.index % 4 > 0].to_parquet(tmp_path / "whole.parquet")
    options = {"workers": 1, "sample": 2_000}
    with pytest.warns(ShoalWarning, match="missing values are left out"):
        found = scale.adapt(choosy, tmp_path / "gaps.parquet", **options)
    assert found.n_rows == 9_000
    wanted = scale.adapt(model, tmp_path / "whole.parquet", **options)
    assert_allclose(found.prevalence, wanted.prevalence, atol=1e-4)
    assert found.fit_score == pytest.approx(wanted.fit_score, abs=1e-9)
    with pytest.warns(ShoalWarning, match="missing values are left out"):
        verdict = scale.diagnose(
            choosy, tmp_path / "gaps.parquet", n_permutations=2, **options
        ).verdict
    assert verdict in ("clear", "caution")
