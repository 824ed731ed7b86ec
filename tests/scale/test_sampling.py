"""The sample is stated: it depends on seed, file and row alone; counts are exact."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from shoal.exceptions import InputError
from shoal.io._options import SourceOptions
from shoal.scale import _sampling as sampling
from shoal.scale import draw
from shoal.scale._running import Where, begin
from shoal.scale._sampling import draw_table
from shoal.scale._settings import SETTINGS
from shoal.validation._rows import even_quota


def drawn_from(data, n_rows, *, part_rows=1_500, workers=1, **options):
    with begin(data, Where(workers=workers, part_rows=part_rows)) as running:
        return draw_table(running, n_rows, SourceOptions(domain="site", **options))


def test_domains_are_counted_exactly(world):
    found = drawn_from(world.folder, 500).domains
    sizes = world.frame["site"].value_counts().sort_index()
    assert found.names.tolist() == sizes.index.tolist()
    assert found.sizes.tolist() == sizes.tolist()


def test_the_sample_is_even_and_made_of_rows(world):
    drawn = drawn_from(world.folder, 1_000)
    table = drawn.table
    sizes = world.frame["site"].value_counts().sort_index().to_numpy()
    names, counts = np.unique(table.domains, return_counts=True)
    assert counts.tolist() == even_quota(sizes, 1_000).tolist() == [200] * 5
    rows = world.frame.iloc[table.ids - 1]
    assert np.array_equal(rows[table.feature_names].to_numpy(), table.X)
    assert np.array_equal(rows["site"], table.domains)
    assert not drawn.is_everything


def test_the_sample_depends_on_neither_parts_nor_workers(world):
    ids = draw(world.folder, 1_000, domain="site", workers=1).ids
    for part_rows, workers in ((700, 2), (50_000, 1)):
        other = drawn_from(world.folder, 1_000, part_rows=part_rows, workers=workers)
        assert np.array_equal(other.table.ids, ids)
    assert not np.array_equal(drawn_from(world.folder, 1_000, seed=1).table.ids, ids)


def test_a_row_knows_whether_it_is_in_the_sample(world):
    """By its own number and the cut of its domain, without any list of rows."""
    drawn = drawn_from(world.folder, 1_000)
    inside = []
    with begin(world.folder, Where(part_rows=900)) as running:
        for part in running.data.parts:
            for batch in drawn.rows.batches(part, []):
                chosen = batch.chance <= drawn.cut[batch.codes]
                inside += (batch.frame.index[chosen] + 1).tolist()
    assert inside == drawn.table.ids.tolist()


def test_rows_are_drawn_as_if_at_random(world):
    """In many samples, every row is as likely as any other of its domain."""
    hits = np.zeros(len(world.frame))
    for seed in range(40):
        hits[
            draw(world.folder, 2_000, domain="site", seed=seed, workers=1).ids - 1
        ] += 1
    for _, rows in world.frame.groupby("site"):
        share = 400 / len(rows)
        mean, variance = hits[rows.index].mean(), hits[rows.index].var()
        assert mean == pytest.approx(40 * share)
        assert variance == pytest.approx(40 * share * (1 - share), rel=0.15)


def test_few_rows_are_all_taken(world):
    drawn = drawn_from(world.folder, 50_000)
    assert drawn.is_everything
    assert drawn.table.ids.tolist() == list(range(1, 12_001))


def test_thin_domains_are_merged_by_their_exact_size(world, tmp_path):
    rare = world.frame["site"].where(world.frame.index >= 20, "rare")
    rare = rare.where(world.frame.index < 11_990, "rarer")
    world.frame.assign(site=rare).to_parquet(tmp_path / "rows.parquet")
    drawn = drawn_from(tmp_path, 140, merge_small="other")  # so few that all are thin
    assert drawn.domains.names.tolist() == ["a", "b", "c", "d", "e", "other"]
    assert drawn.domains.sizes[-1] == 30
    assert {one.code for one in drawn.domains.messages} == {"W111"}
    assert drawn.table.schema.domain.merged == ("rare", "rarer")


@pytest.mark.parametrize("kind", ["int", "bool", "text"])
def test_domains_keep_their_kind(world, tmp_path, kind):
    values = {
        "int": np.arange(12_000) % 3 + 8,
        "bool": np.arange(12_000) % 2 == 0,
        "text": np.where(np.arange(12_000) % 2, "no", "yes"),
    }[kind]
    world.frame.assign(site=values).to_parquet(tmp_path / "rows.parquet")
    drawn = drawn_from(tmp_path, 600)
    assert drawn.table.schema.domain.kind == kind
    assert drawn.table.domains.tolist() == values[drawn.table.ids - 1].tolist()
    assert drawn.domains.names.tolist() == sorted(set(values.tolist()))


def test_rows_without_a_domain(world, tmp_path):
    gaps = world.frame["site"].where(world.frame.index % 100 > 0, None)
    world.frame.assign(site=gaps).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="120 rows have no domain") as error:
        drawn_from(tmp_path, 600)
    assert error.value.code == "E115"
    drawn = drawn_from(tmp_path, 50_000, drop_missing_domain=True)
    assert len(drawn.table.X) == 11_880 == drawn.domains.sizes.sum()
    assert [one.code for one in drawn.domains.messages] == ["W144"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"domain": "Site"}, "E107"),
        ({"domain": None}, "E106"),
        ({"domain": "x0"}, "E109"),
        ({"features": ["x9"]}, "E107"),
        ({"drop": ["x9"]}, "E107"),
        ({"domain_bins": 4}, "E002"),
        ({"impute": "drop"}, "E002"),
        ({"impute": "keep"}, "E002"),
    ],
    ids=["name", "none", "number", "features", "drop", "bins", "impute", "keep"],
)
def test_what_cannot_be_sampled_is_said(world, options, code):
    with begin(world.folder, Where()) as running, pytest.raises(InputError) as error:
        draw_table(running, 500, SourceOptions(**{"domain": "site", **options}))
    assert error.value.code == code


def test_too_many_domains_are_refused_also_where_each_part_has_few(
    world, tmp_path, monkeypatch
):
    sites = [f"s{number // 10}" for number in range(12_000)]
    world.frame.assign(site=sites).to_parquet(
        tmp_path / "rows.parquet", row_group_size=1_500
    )
    monkeypatch.setattr(sampling, "SETTINGS", replace(SETTINGS, most_domains=1_000))
    with pytest.raises(InputError, match="more than 1,000 values") as error:
        drawn_from(tmp_path, 5_000)
    assert error.value.code == "E109"


def test_a_sample_has_rows_of_every_domain(world):
    with pytest.raises(ValueError, match="n_rows must be a whole number from 2"):
        draw("absent.parquet", 1, domain="site")
    with pytest.raises(InputError, match="4 rows cannot hold rows of all 5") as error:
        drawn_from(world.folder, 4)
    assert error.value.code == "E002"


def test_drawing_leaves_no_folder_that_is_not_a_stage(world, tmp_path):
    first = draw(world.folder, 500, domain="site", workers=1, checkpoint=tmp_path)
    stages = sorted(one.name.rpartition("-")[0] for one in tmp_path.iterdir())
    assert stages == ["count-domains", "draw-a-sample"]
    again = draw(world.folder, 900, domain="site", workers=1)
    assert first.source["fingerprint"] == again.source["fingerprint"]


def test_gaps_are_filled_by_values_of_the_sample(world, tmp_path):
    gaps = world.frame.copy()
    gaps.loc[gaps.index % 50 == 0, "x1"] = np.nan
    gaps["kind"] = pd.Series(["p", "q", None, "p"] * 3_000)
    gaps.to_parquet(tmp_path / "rows.parquet")
    drawn = drawn_from(tmp_path, 1_000, impute="median")
    assert np.isfinite(drawn.table.X).all()
    assert drawn.table.feature_names == [*world.features, "kind=p", "kind=q"]
