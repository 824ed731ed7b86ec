"""Predictions in parts are those of the model, each row once."""

import copy
import os

import numpy as np
import pandas as pd
import pytest
from tests.scale.conftest import PART_ROWS

from shoal import DomainMixture, scale
from shoal.exceptions import CodedError
from shoal.io import _swap, assign, batches
from shoal.io.table._schema import Schema
from shoal.scale import _predicting as predicting


def predict(model, data, out, **options):
    settings = {"part_rows": PART_ROWS, "workers": 1, **options}
    return scale.predict(model, data, out, **settings)


@pytest.mark.parametrize("workers", [1, 2])
def test_every_row_once_as_the_model_says(world, model, tmp_path, workers):
    found = predict(model, world.folder, tmp_path / "out.parquet", workers=workers)
    written = pd.read_parquet(found.path)
    assert written["row_id"].tolist() == list(range(1, 12_001))
    assert written["domain"].tolist() == world.frame["site"].tolist()
    proba = model.predict_proba(world.X, world.frame["site"])
    np.testing.assert_array_equal(written[["p_c0", "p_c1", "p_c2"]], proba)
    assert (written["unsure"] == (proba.max(axis=1) < 0.8)).all()
    assert found.n_rows == 12_000
    assert found.unsure == int(written["unsure"].sum())
    table = written.groupby(["domain", "class"]).size()
    counts = found.counts.set_index(["domain", "class"])["rows"]
    assert counts.to_dict() == table.to_dict()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.parquet"]
    assert len(list(found.path.iterdir())) == 10


def test_it_is_what_reading_in_batches_gives(world, model, tmp_path):
    first = world.folder / "first.parquet"
    found = predict(model, first, tmp_path / "out", pooled=True)
    tables = batches(first, model.schema_, require_domain=False)
    expected = pd.concat(assign(model, tables, pooled=True), ignore_index=True)
    written = pd.read_parquet(found.path).drop(columns="unsure")
    pd.testing.assert_frame_equal(written, expected, check_dtype=False)


def test_a_class_mix_for_all_rows(world, model, tmp_path):
    mix = [0.1, 0.2, 0.7]
    no_site = tmp_path / "no_site.parquet"
    world.frame.drop(columns="site").to_parquet(no_site)
    found = predict(model, no_site, tmp_path / "out", prevalence=mix)
    written = pd.read_parquet(found.path)
    proba = model.predict_proba(world.X, prevalence=mix)
    np.testing.assert_array_equal(written[["p_c0", "p_c1", "p_c2"]], proba)
    assert written["domain"].isna().all()


def test_merged_and_named_classes(world, model, tmp_path):
    merged = model.set_names({0: "big"}).merge("big", "c2", name="rest")
    merged.schema_ = model.schema_
    found = predict(merged, world.folder, tmp_path / "out")
    assert set(found.counts["class"]) == {"rest", "c1"}


def test_rows_keep_the_names_they_have(world, model, tmp_path):
    named = world.frame.assign(key=[f"k{number}" for number in range(12_000)])
    named.to_parquet(tmp_path / "rows.parquet")
    fitted = scale.fit(
        DomainMixture(3, search=False, random_state=0), tmp_path / "rows.parquet",
        domain="site", id="key", sample=1_000, passes=0, workers=1,
    )  # fmt: skip
    found = predict(fitted, tmp_path / "rows.parquet", tmp_path / "out")
    assert pd.read_parquet(found.path)["row_id"].tolist() == named["key"].tolist()


def test_nothing_is_overwritten_unasked(world, model, tmp_path):
    predict(model, world.folder / "first.parquet", tmp_path / "out")
    with pytest.raises(CodedError, match="exists already") as error:
        predict(model, world.folder, tmp_path / "out")
    assert error.value.code == "E136"
    found = predict(model, world.folder, tmp_path / "out", force=True)
    assert len(pd.read_parquet(found.path)) == 12_000


def refused(model, data, out):
    with pytest.raises(CodedError) as error:
        predict(model, data, out, force=True)
    assert error.value.code == "E136"
    return error.value.text


def test_force_never_costs_the_data_or_other_files(world, model, tmp_path):
    data = tmp_path / "data"
    (data / "inner").mkdir(parents=True)
    world.frame.to_parquet(data / "inner" / "part-0.parquet")
    for out in (data, tmp_path, data / "inner", data / "inner" / "part-0.parquet"):
        assert "the data" in refused(model, data, out)
    assert "among the data" in refused(model, data, data / "out")
    assert "holds the data" in refused(model, data / "inner" / "part-0.parquet", data)
    (tmp_path / "link").symlink_to(data)
    assert "holds the data" in refused(model, data, tmp_path / "link")
    own = tmp_path / "own"
    own.mkdir()
    (own / "thesis.txt").write_text("years of work")
    assert "thesis.txt" in refused(model, data, own)
    assert (own / "thesis.txt").read_text() == "years of work"
    pd.testing.assert_frame_equal(pd.read_parquet(data / "inner"), world.frame)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["data", "link", "own"]


def test_what_was_there_stays_until_the_new_is_in_its_place(
    world, model, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    predict(model, world.folder / "first.parquet", out)
    rename = os.replace

    def fail(source, target):
        if str(source).endswith(".partial"):
            raise OSError("no")
        rename(source, target)

    monkeypatch.setattr(os, "replace", fail)
    monkeypatch.setattr(_swap, "exchange", lambda one, other: False)  # another system
    with pytest.raises(OSError, match="no"):
        predict(model, world.folder, out, force=True)
    assert len(pd.read_parquet(out)) == 7_000
    monkeypatch.undo()
    predict(model, world.folder, out, force=True)
    assert len(pd.read_parquet(out)) == 12_000
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda frame: frame.drop(columns="x1"), "E133"),
        (lambda frame: frame.drop(columns="site"), "E133"),
        (lambda frame: frame.assign(site="z"), "E134"),
        (lambda frame: frame.assign(site=frame["site"].where(frame.index > 3)), "E115"),
        (lambda frame: frame.assign(x2=np.inf), "E115"),
    ],
    ids=["column", "domain", "unseen", "no domain", "infinite"],
)
def test_what_cannot_be_classed_is_said_and_nothing_appears(
    world, model, tmp_path, change, code
):
    change(world.frame).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(CodedError) as error:
        predict(model, tmp_path / "rows.parquet", tmp_path / "out")
    assert error.value.code == code
    assert [one.name for one in tmp_path.iterdir()] == ["rows.parquet"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_refusal_in_the_middle_leaves_nothing(world, model, tmp_path, workers):
    """The eighth part cannot be classed; those before it are of no use to anybody."""
    bad = world.frame.assign(x2=world.frame["x2"].where(world.frame.index != 11_000))
    bad.to_parquet(tmp_path / "rows.parquet", row_group_size=PART_ROWS)
    for options in ({}, {"checkpoint": tmp_path / "kept"}):
        with pytest.raises(CodedError, match="row 11001, x2"):
            predict(
                model, tmp_path / "rows.parquet", tmp_path / "out", workers=workers,
                **options,
            )  # fmt: skip
    assert {one.name for one in tmp_path.iterdir()} == {"rows.parquet", "kept"}
    assert not any((tmp_path / "kept").iterdir())
    with pytest.raises(CodedError, match="no Ray cluster answers"):
        predict(
            model, world.folder, tmp_path / "out", engine="ray", address="127.0.0.1:1"
        )
    assert {one.name for one in tmp_path.iterdir()} == {"rows.parquet", "kept"}


def test_a_checkpoint_keeps_parts_that_are_done(world, model, tmp_path):
    """Nothing is classed twice, whichever output it is for; no room is taken twice."""
    kept, first, again = (tmp_path / name for name in ("kept", "first", "again"))
    found = predict(model, world.folder, first, checkpoint=kept)
    assert found.stages[0]["resumed"] == 0
    found = predict(model, world.folder, again, checkpoint=kept)
    assert found.stages[0]["resumed"] == 10
    for part in first.iterdir():
        assert part.samefile(again / part.name)
    assert len(pd.read_parquet(again)) == found.n_rows == 12_000
    assert {one.name for one in tmp_path.iterdir()} == {"kept", "first", "again"}


def test_another_disk_gets_copies(world, model, tmp_path, monkeypatch):
    def no_links(source, target):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", no_links)
    found = predict(model, world.folder, tmp_path / "out", checkpoint=tmp_path / "kept")
    assert len(pd.read_parquet(found.path)) == 12_000
    assert len(list(tmp_path.glob("kept/predicted-*/part-*.parquet"))) == 10


def test_what_killed_calls_have_left_goes_with_the_next(world, model, tmp_path):
    """Parts of other settings for the same output; those of another output stay."""
    out, key = tmp_path / "out", "0123456789abcdef"
    own = [f".out.{key}.partial", f".out.{key}.01234567.old", f".out.{key}.partial2"]
    for name in (*own, f".other.{key}.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part-00000.parquet").touch()
    predict(model, world.folder, out)
    left = sorted(one.name for one in tmp_path.iterdir())
    assert left == [f".other.{key}.partial", f".out.{key}.partial2", "out"]


def test_a_part_that_a_killed_worker_was_at_is_not_published(
    world, model, tmp_path, monkeypatch
):
    publish = predicting.publish

    def half(folder, out, **options):
        (folder / ".part-00003.01234567.tmp.parquet").touch()
        publish(folder, out, **options)

    monkeypatch.setattr(predicting, "publish", half)
    found = predict(model, world.folder, tmp_path / "out")
    names = sorted(one.name for one in found.path.iterdir())
    assert names == [f"part-{number:05d}.parquet" for number in range(10)]


def test_parts_that_cannot_be_seen_are_not_taken_for_done(
    world, model, tmp_path, monkeypatch
):
    """As where a node writes to a disk of its own."""
    monkeypatch.setattr(predicting, "_refuse_absent", lost(predicting._refuse_absent))
    with pytest.raises(CodedError, match="was written where it cannot be seen") as e:
        predict(model, world.folder, tmp_path / "out")
    assert e.value.code == "E140"
    assert not any(tmp_path.iterdir())
    monkeypatch.undo()
    assert predict(model, world.folder, tmp_path / "out").n_rows == 12_000


def lost(check):
    """A check that comes after a part has vanished."""

    def after(folder, parts, results):
        (folder / "part-00004.parquet").unlink()
        check(folder, parts, results)

    return after


def test_rows_without_domain_are_left_out_when_asked(world, model, tmp_path):
    gaps = world.frame.assign(site=world.frame["site"].where(world.frame.index > 3))
    gaps.to_parquet(tmp_path / "rows.parquet")
    found = predict(
        model, tmp_path / "rows.parquet", tmp_path / "out", drop_missing_domain=True
    )
    assert pd.read_parquet(found.path)["row_id"].tolist() == list(range(5, 12_001))
    assert [message.code for message in found.messages] == ["W144"]


def test_a_part_without_any_domain_is_left_out(world, model, tmp_path):
    gaps = world.frame.assign(site=world.frame["site"].where(world.frame.index > 2_999))
    data = tmp_path / "rows.parquet"
    gaps.to_parquet(data, row_group_size=PART_ROWS)
    found = predict(model, data, tmp_path / "out", drop_missing_domain=True)
    assert found.n_rows == int(found.counts["rows"].sum()) == 9_000
    assert pd.read_parquet(found.path)["row_id"].tolist() == list(range(3_001, 12_001))
    gaps.assign(site=gaps["site"].where(gaps.index < 0)).to_parquet(data)
    with pytest.raises(CodedError, match="no row has a domain"):
        predict(model, data, tmp_path / "none", drop_missing_domain=True)
    assert {one.name for one in tmp_path.iterdir()} == {"rows.parquet", "out"}


def test_rows_that_fit_would_have_left_out_are_left_out(world, model, tmp_path):
    """A model of impute="drop"; one message for gaps, one for lacking domains."""
    choosy = copy.copy(model)
    choosy.schema_ = model.schema_ | {"drop_incomplete": True}
    first = Schema.from_dict(model.schema_).feature_names[0]
    frame, data = world.frame, tmp_path / "rows.parquet"
    gaps = frame.assign(
        **{first: frame[first].mask(frame.index.isin([5, 700, 4_000]))},
        site=frame["site"].where(frame.index > 3),
    )
    gaps.to_parquet(data, row_group_size=PART_ROWS)
    found = predict(choosy, data, tmp_path / "out", drop_missing_domain=True)
    left = np.delete(np.arange(1, 12_001), [0, 1, 2, 3, 5, 700, 4_000])
    assert pd.read_parquet(found.path)["row_id"].tolist() == left.tolist()
    said = {message.code: message.text for message in found.messages}
    assert [*said] == ["W144"]
    assert len(found.messages) == 2
    assert any("first: row 6" in message.text for message in found.messages)
    with pytest.raises(CodedError, match="missing value"):
        predict(model, data, tmp_path / "other", drop_missing_domain=True)
    gaps.assign(**{first: np.nan}).to_parquet(data)
    with pytest.raises(CodedError, match="every row has a missing value"):
        predict(choosy, data, tmp_path / "none", drop_missing_domain=True)


def test_rows_without_domain_are_counted_as_such(world, model, tmp_path):
    gaps = world.frame.assign(site=world.frame["site"].where(world.frame.index > 99))
    gaps.to_parquet(tmp_path / "rows.parquet")
    found = predict(model, tmp_path / "rows.parquet", tmp_path / "out", pooled=True)
    nowhere = found.counts[found.counts["domain"].isna()]
    assert int(nowhere["rows"].sum()) == 100
    assert set(found.counts["domain"].dropna()) == set("abcde")


def test_parts_classed_by_other_columns_are_not_taken_for_these(
    world, model, tmp_path, monkeypatch
):
    """What is finished is known by the schema, and by the version of shoal."""
    names = []
    for version, missing in (("1", []), ("1", ["?"]), ("2", [])):
        monkeypatch.setattr("shoal.scale._running.__version__", version)
        monkeypatch.setattr(model, "schema_", {**model.schema_, "missing": missing})
        monkeypatch.setattr(
            predicting, "take_place", lambda partial, *_: names.append(partial.name)
        )
        predict(model, world.folder / "first.parquet", tmp_path / "out")
    assert len(set(names)) == 3


def test_a_model_without_columns_is_refused(world, tmp_path):
    plain = DomainMixture(3, search=False, random_state=0).fit(
        world.X[:900], world.frame["site"][:900]
    )
    with pytest.raises(CodedError, match="which columns it takes") as error:
        predict(plain, world.folder, tmp_path / "out")
    assert error.value.code == "E135"
