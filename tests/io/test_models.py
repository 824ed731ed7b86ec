import copy
import json
import pickle
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from tests.io.conftest import Fitted, fit, rows

import shoal
from shoal.exceptions import CodedError, ModelFileError
from shoal.io.model import _card as history
from shoal.io.model._models import canonical_digest, read_manifest
from shoal.io.model._parts import ALLOWED
from shoal.io.model._values import CLASSES, MODELS, Reader, Writer


def test_probabilities_come_back_bit_by_bit(fitted: Fitted, tmp_path: Path) -> None:
    again = shoal.load(shoal.save(fitted.model, tmp_path / "model"))
    for domains in (None, fitted.domains):
        assert_array_equal(
            again.predict_proba(fitted.X, domains),
            fitted.model.predict_proba(fitted.X, domains),
        )
    assert_array_equal(again.labels_, fitted.model.labels_)
    assert again.labels_.dtype == fitted.model.labels_.dtype
    assert_array_equal(again.domains_, fitted.model.domains_)
    assert again.domains_.dtype == fitted.model.domains_.dtype
    assert again.class_names_ == fitted.model.class_names_
    assert again.score(fitted.X, fitted.domains) == fitted.model.score(
        fitted.X, fitted.domains
    )


def test_what_follows_a_fit_works_after_loading(fitted: Fitted, tmp_path: Path) -> None:
    again = shoal.load(shoal.save(fitted.model, tmp_path / "model"))
    one = fitted.X[np.asarray(fitted.domains) == fitted.domains[0]]
    new, old = (
        model.adapt(one, random_state=0).prevalence for model in (again, fitted.model)
    )
    assert_array_equal(new, old)
    assert again.set_names({"c0": "x"}).class_names_[0] == "x"
    if again.n_classes_ > 2:
        assert_array_equal(
            again.merge("c0", "c1").predict_proba(fitted.X),
            fitted.model.merge("c0", "c1").predict_proba(fitted.X),
        )
    twice = shoal.load(shoal.save(again, tmp_path / "again"))
    assert_array_equal(
        twice.predict_proba(fitted.X), fitted.model.predict_proba(fitted.X)
    )


@pytest.mark.parametrize("name", ["mixture", "ddfa_logistic", "merged"])
def test_bootstrap_and_diagnosis_after_loading(
    name: str, all_fitted: dict[str, Fitted], tmp_path: Path
) -> None:
    from tests.io.conftest import fit

    fitted = all_fitted.get(name) or fit(name)
    again = shoal.load(shoal.save(fitted.model, tmp_path / "model"))
    both = (again, fitted.model)
    intervals = [
        model.bootstrap(fitted.X, fitted.domains, n_resamples=5, random_state=0)
        for model in both
    ]
    assert_array_equal(intervals[0].low, intervals[1].low)
    verdicts = [
        model.diagnose(fitted.X, fitted.domains, n_permutations=2, random_state=0)
        for model in both
    ]
    assert verdicts[0].verdict == verdicts[1].verdict


def test_no_training_row_is_stored(mixture: Fitted, tmp_path: Path) -> None:
    """Planted numbers of single rows are nowhere in the files."""
    X, domains = rows()
    rare = 1.2345678901234567
    X[5, 1] = rare
    model = shoal.DomainMixture(3, search=False, random_state=0).fit(X, domains)
    path = shoal.save(model, tmp_path / "model")
    for file in path.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert np.float64(rare).tobytes() not in content
            assert b"1.2345678901" not in content
    discriminator = shoal.DDFA(3, discriminator="logistic", random_state=0)
    ddfa = shoal.load(shoal.save(discriminator.fit(X, domains), tmp_path / "ddfa"))
    assert not hasattr(ddfa.discriminator_, "domain_given_x_")


# ---- domains and values of any kind --------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ["a", "b", "ü\U0001f427"],
        [1, 2, 3],
        [0.5, 1.5, 2.5],
        [True, False, True],
        [("a", 1), ("a", 2), ("b", (1, 2.5))],
        [1, "1", ("1",)],
        [np.int32(4), "x", np.str_("y")],
        [2**80, 3, 4],
        [b"a", b"b", b"c"],
        np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="datetime64[D]"),
        np.array([1, 2, 3], dtype=np.uint8),
        np.array([1, 2, 3], dtype=np.float32),
        np.array(["a", "bb", "c"], dtype="<U7"),
    ],
    ids=str,
)
def test_domains_of_any_kind(names: Any, tmp_path: Path) -> None:
    X, domains = rows(300)
    codes = np.unique(domains, return_inverse=True)[1] % 3
    column = [list(names)[code] for code in codes]
    column = column if isinstance(names, list) else names[codes]
    model = shoal.DomainMixture(2, search=False, random_state=0).fit(X, column)
    again = shoal.load(shoal.save(model, tmp_path / "model"))
    assert again.domains_.dtype == model.domains_.dtype
    for new, old in zip(again.domains_, model.domains_, strict=True):
        assert type(new) is type(old)
        assert new == old
    assert_array_equal(again.predict_proba(X, column), model.predict_proba(X, column))


def test_domains_without_a_form_are_refused(tmp_path: Path) -> None:
    X, domains = rows(300)
    column = [frozenset({name}) for name in domains]
    model = shoal.DomainMixture(2, search=False, random_state=0).fit(X, column)
    with pytest.raises(TypeError, match="cannot save .*domains_, a builtins.frozenset"):
        shoal.save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(max_size=9),
    st.floats(width=32).map(np.float32),
    st.integers(-(2**31), 2**31 - 1).map(np.int32),
    st.text(max_size=5).map(np.str_),
    st.booleans().map(np.bool_),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=4),
    ),
    max_leaves=8,
)


def same(new: Any, old: Any) -> bool:
    if type(new) is not type(old):
        return False
    if isinstance(old, dict):
        return list(map(same, new.items(), old.items())) == [True] * len(old)
    if isinstance(old, (list, tuple)):
        return len(new) == len(old) and all(map(same, new, old))
    return bool(new == old or (new != new and old != old))


@given(value=values)
def test_every_value_survives_strict_json(value: Any) -> None:
    writer = Writer(lambda part: b"")
    text = json.dumps(writer.encode(value, "value"), allow_nan=False)
    assert same(
        Reader(writer.arrays, lambda name: None).decode(json.loads(text)), value
    )


@given(
    kind=st.sampled_from(["b1", "i1", "<i8", ">i4", "u2", "f2", "<f4", ">f8", "<U3"]),
    shape=st.lists(st.integers(0, 3), max_size=3),
    fortran=st.booleans(),
)
def test_every_array_survives(kind: str, shape: list[int], fortran: bool) -> None:
    numbers = np.random.default_rng(len(shape)).integers(0, 90, size=shape)
    array = np.asarray(numbers.astype(kind), order="F" if fortran else "C")
    writer = Writer(lambda part: b"")
    node = json.loads(json.dumps(writer.encode(array, "array")))
    again = Reader(writer.arrays, lambda name: None).decode(node)
    assert_array_equal(again, array)
    assert again.dtype == array.dtype
    assert again.flags.c_contiguous == array.flags.c_contiguous or kind == "<U3"
    # stored in the machine's own byte order: safetensors knows no other
    assert all(stored.dtype.isnative for stored in writer.arrays.values())


# ---- scikit-learn's parts ------------------------------------------------------------


@pytest.mark.parametrize("discriminator", [
    RandomForestClassifier(5, max_depth=3, random_state=0),
    LogisticRegression(),
])  # fmt: skip
def test_other_discriminators(discriminator: Any, tmp_path: Path) -> None:
    X, domains = rows()
    model = shoal.DDFA(3, discriminator=discriminator, cross_fit=0, random_state=0)
    model.fit(X, domains)
    again = shoal.load(shoal.save(model, tmp_path / "model"))
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.get_params()["discriminator"].get_params() == (
        discriminator.get_params()
    )


def test_a_frozen_discriminator(tmp_path: Path) -> None:
    X, domains = rows()
    given = FrozenEstimator(LogisticRegression().fit(X, domains))
    model = shoal.DDFA(3, discriminator=given, random_state=0).fit(X, domains)
    again = shoal.load(shoal.save(model, tmp_path / "model"))
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_neighbours_which_are_rows_are_refused(tmp_path: Path) -> None:
    X, domains = rows()
    model = shoal.DDFA(
        3, discriminator=KNeighborsClassifier(20), cross_fit=0, random_state=0
    )
    with pytest.raises(TypeError, match="KNeighborsClassifier.* not among the classes"):
        shoal.save(model.fit(X, domains), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_function_is_refused(tmp_path: Path) -> None:
    X, domains = rows()
    known = LogisticRegression().fit(X, domains)
    oracle = lambda X: known.predict_proba(X)  # noqa: E731
    model = shoal.DDFA(3, discriminator=oracle, random_state=0).fit(X, domains)
    with pytest.raises(
        TypeError, match=r"cannot save DDFA\.discriminator, a .*function"
    ):
        shoal.save(model, tmp_path / "model")


# ---- what is in the folder -----------------------------------------------------------


def test_manifest_and_classes(mixture: Fitted, tmp_path: Path) -> None:
    summary = {"source": {"rows": 400, "fingerprint": "ab" * 32}, "verdict": "clear"}
    named = history.rename(mixture.model, {"c0": "A|<b>"})
    path = shoal.save(named, tmp_path / "model", summary=summary)
    manifest = read_manifest(path)
    assert (manifest["format"], manifest["class"]) == (1, "DomainMixture")
    assert manifest["domains"] == ["east", "north", "south", "west"]
    assert manifest["seed"] == 0
    assert manifest["model"]["params"]["n_classes"] == 3
    assert manifest["summary"] == summary
    assert set(manifest["versions"]) >= {"shoal", "numpy", "scikit-learn", "python"}
    classes = json.loads((path / "classes.json").read_text())
    assert [one["id"] for one in classes["classes"]] == ["c0", "c1", "c2"]
    assert classes["classes"][0]["name"] == "A|<b>"
    assert classes["history"][0]["step"] == "rename"
    card = (path / "README.md").read_text()
    assert "ab" * 32 in card
    assert "clear" in card
    assert "| domain | A\\|&lt;b> | c1 | c2 |" in card
    for domain, shares in zip(
        mixture.model.domains_, mixture.model.prevalence_, strict=True
    ):
        assert f"| {domain} | {100 * shares[0]:.1f} |" in card


def test_the_card_tells_the_verdict(mixture: Fitted, tmp_path: Path) -> None:
    verdict = {"word": "caution", "sentences": ["Look at {c1} and {c0}.", "Twice."]}
    source = {"path": "/home/somebody/birds.csv"}
    named = mixture.model.set_names({"c1": "Gentoo"})
    summary = {"verdict": verdict, "source": source}
    path = shoal.save(named, tmp_path / "model", summary=summary)
    card = (path / "README.md").read_text()
    assert "**caution** Look at Gentoo and c0. Twice." in card
    assert "- **data**: birds.csv" in card
    assert "somebody" not in card


def test_the_run_folder_will_do(folder: Path, mixture: Fitted) -> None:
    again = shoal.load(folder.parent)
    assert_array_equal(
        again.predict_proba(mixture.X), mixture.model.predict_proba(mixture.X)
    )
    assert read_manifest(folder.parent) == read_manifest(folder)


def test_a_schema_travels_with_the_model(mixture: Fitted, tmp_path: Path) -> None:
    path = shoal.save(mixture.model, tmp_path / "model", schema={"kind": "table"})
    again = shoal.load(path)
    assert again.schema_ == {"kind": "table"}
    merged = again.merge("c0", "c1")
    assert shoal.load(shoal.save(merged, tmp_path / "merged")).schema_ == again.schema_


def test_a_model_that_nobody_may_write_to(folder: Path, mixture: Fitted) -> None:
    """It is read where it lies, and nothing is left there."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for path in folder.rglob("*"):
        path.chmod(0o500 if path.is_dir() else 0o400)
    again = shoal.load(folder).predict_proba(mixture.X)
    assert_array_equal(again, mixture.model.predict_proba(mixture.X))
    assert {path: path.read_bytes() for path in before} == before


def test_merged_twice_with_a_file_between(tmp_path: Path) -> None:
    """The columns that a model takes are still known."""
    X, domains = rows()
    model = shoal.DomainMixture(4, search=False, random_state=0).fit(X, domains)
    schema = {"kind": "table"}
    path = shoal.save(model.merge("c0", "c1"), tmp_path / "first", schema=schema)
    again = shoal.load(path).merge("c0", "c1")
    assert read_manifest(shoal.save(again, tmp_path / "second"))["schema"] == schema


def test_names_and_merges_can_be_undone(mixture: Fitted, tmp_path: Path) -> None:
    model = history.rename(mixture.model, {"c0": "zero"})
    model = history.merge(model, ["zero", "c2"], name="both")
    model = history.rename(model, {"both": "pair"})
    model = shoal.load(shoal.save(model, tmp_path / "model"))
    assert sorted(model.class_names_) == ["c1", "pair"]
    model = history.undo(model)
    assert sorted(model.class_names_) == ["both", "c1"]
    model = history.undo(model)
    assert model.class_names_ == ["zero", "c1", "c2"]
    model = history.undo(model)
    assert model.class_names_ == ["c0", "c1", "c2"]
    assert_array_equal(
        model.predict_proba(mixture.X), mixture.model.predict_proba(mixture.X)
    )
    with pytest.raises(ValueError, match="nothing to undo"):
        history.undo(model)


def test_the_summary_must_be_json(mixture: Fitted, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="plain JSON without NaN"):
        shoal.save(mixture.model, tmp_path / "m", summary={"x": float("nan")})
    assert not list(tmp_path.iterdir())


class Shifted(shoal.DomainMixture):
    """A class that the table of models does not know yet."""


def test_a_class_can_join(
    mixture: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name, from a module that is only imported when such a model turns up."""
    model = Shifted(3, search=False, random_state=0).fit(mixture.X, mixture.domains)
    with pytest.raises(TypeError, match="must be one of .* got Shifted"):
        shoal.save(model, tmp_path / "model")
    monkeypatch.setitem(MODELS, "Shifted", __name__)
    again = shoal.load(shoal.save(model, tmp_path / "model"))
    assert type(again).__name__ == "Shifted"
    assert_array_equal(again.predict_proba(mixture.X), model.predict_proba(mixture.X))


def test_only_models_of_shoal(tmp_path: Path) -> None:
    X, domains = rows()
    with pytest.raises(TypeError, match="estimator must be one of CountMixture, DDFA"):
        shoal.save(LogisticRegression().fit(X, domains), tmp_path / "model")
    with pytest.raises(ValueError, match="not fitted"):
        shoal.save(shoal.DomainMixture(2), tmp_path / "model")


# ---- nobody's files are harmed -------------------------------------------------------


def test_nothing_is_replaced_unasked(folder: Path, mixture: Fitted) -> None:
    before = (folder / "manifest.json").read_bytes()
    with pytest.raises(CodedError, match="already holds a model") as caught:
        shoal.save(mixture.model, folder)
    assert caught.value.code == "E136"
    assert (folder / "manifest.json").read_bytes() == before
    renamed = mixture.model.set_names({"c0": "new"})
    assert shoal.load(shoal.save(renamed, folder, force=True)).class_names_[0] == "new"
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_force_replaces_models_only(mixture: Fitted, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("years of work")
    with pytest.raises(CodedError, match="not a shoal model"):
        shoal.save(mixture.model, tmp_path / "thesis", force=True)
    assert (tmp_path / "thesis" / "thesis.tex").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    shoal.load(shoal.save(mixture.model, tmp_path / "empty"))


def test_a_failed_save_keeps_the_old_model(
    folder: Path, mixture: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def interrupted(path: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("shoal.io.model._models.load", interrupted)
    with pytest.raises(KeyboardInterrupt):
        shoal.save(mixture.model, folder, force=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_folder_that_cannot_be_written(mixture: Fitted, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CodedError, match="cannot write") as caught:
        shoal.save(mixture.model, tmp_path / "file" / "model")
    assert caught.value.code == "E140"


# ---- what cannot be loaded -----------------------------------------------------------


def resign(folder: Path, manifest: dict[str, Any]) -> None:
    """Write a manifest whose digest is right, as a forger would."""
    manifest = manifest | {"digest": canonical_digest(manifest)}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match='absent" does not exist') as caught:
        shoal.load(tmp_path / "absent")
    assert caught.value.code == "E135"
    with pytest.raises(ModelFileError, match="is not a shoal model"):
        shoal.load(tmp_path)
    (tmp_path / "manifest.json").write_text('{"name": "something else"}')
    with pytest.raises(ModelFileError, match="is not a shoal model"):
        shoal.load(tmp_path)


def test_a_newer_format_is_named(folder: Path) -> None:
    resign(folder, read_manifest(folder) | {"format": 3})
    with pytest.raises(ModelFileError, match=r"newer format \(3 > 1\); upgrade shoal"):
        shoal.load(folder)


@pytest.mark.parametrize("name", ["arrays.safetensors", "classes.json"])
def test_a_changed_or_absent_file_is_named(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[-3] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(ModelFileError, match=f"{name} was changed after it was saved"):
        shoal.load(folder)
    (folder / name).write_bytes(content[:-1])
    with pytest.raises(ModelFileError, match=f"{name} has .* bytes instead of"):
        shoal.load(folder)
    (folder / name).unlink()
    with pytest.raises(ModelFileError, match=f"lacks {name}"):
        shoal.load(folder)


def test_white_space_is_no_damage(folder: Path, mixture: Fitted) -> None:
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()), indent=7))
    assert_array_equal(
        shoal.load(folder).predict_proba(mixture.X),
        mixture.model.predict_proba(mixture.X),
    )


def test_other_probabilities_than_stored(folder: Path) -> None:
    """A library that computes something else is noticed, whatever the digests say."""
    manifest = read_manifest(folder)
    manifest["model"]["state"]["weights_"]["$array"] = manifest["model"]["state"][
        "weights_"
    ]["$array"]
    manifest["model"]["state"]["features_"]["state"]["scale"] = "column"
    manifest["probe"]["$dict"][1][1] = manifest["probe"]["$dict"][2][1]
    resign(folder, manifest)
    with pytest.raises(ModelFileError, match="other probabilities than when"):
        shoal.load(folder)


def test_errors_can_be_copied() -> None:
    import copy
    import pickle

    error = ModelFileError("E135", "text", "hint")
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (again.code, again.text, again.hint) == ("E135", "text", "hint")
        assert str(again) == "text; hint"


def test_loading_needs_no_pandas_and_no_skops(folder: Path) -> None:
    """A bare machine can load a model without scikit-learn's parts."""
    code = (
        "import sys\n"
        "sys.modules.update(pandas=None, skops=None, typer=None, rich=None)\n"
        f"import shoal; model = shoal.load({str(folder)!r})\n"
        "print(model.predict([[0.0, 0.0, 0.0]]).shape)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "(1,)"


# ---- the lists of classes ------------------------------------------------------------


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_of_the_list_lives_where_it_says(name: str) -> None:
    found = getattr(import_module(CLASSES[name]), name)
    assert found.__module__ == CLASSES[name]


def test_every_allowed_class_of_scikit_learn_exists() -> None:
    for name in ALLOWED["ObjectNode"] | ALLOWED["TreeNode"] | ALLOWED["LossNode"]:
        home, _, last = name.rpartition(".")
        assert name.startswith("sklearn.")
        assert hasattr(import_module(home), last), name


def test_parts_are_scikit_learn_s_alone(tmp_path: Path) -> None:
    """shoal's own classes go by name, never by the module they happen to live in."""
    X, domains = rows()
    for discriminator in ("rbf", "mlp"):
        model = shoal.DDFA(3, discriminator=discriminator, random_state=0)
        path = shoal.save(model.fit(X, domains), tmp_path / discriminator)
        for part in (path / "parts").iterdir():
            assert b"shoal" not in zipfile.ZipFile(part).read("schema.json")
        again = shoal.load(path)
        assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        steps = again.discriminator_.estimator_.named_steps
        assert list(steps) == list(model.discriminator_.estimator_.named_steps)


# ---- models of images ----------------------------------------------------------------


@pytest.fixture(scope="module")
def of_images() -> Fitted:
    pytest.importorskip("torch")
    return fit("images")


def test_a_fine_tuned_network_comes_back_as_it_was(
    of_images: Fitted, tmp_path: Path
) -> None:
    from shoal.vision._settings import FineTuning

    fitted, setting = of_images, FineTuning(epochs=1, batch_size=32)
    before = fitted.model.backbone_.state_dict()
    eager = copy.copy(fitted.model).set_params(doubt=-1e9)  # keep it, however good
    tuned = eager.tune(fitted.X, fitted.domains, setting)
    assert tuned.fine_tuned_
    again = shoal.load(shoal.save(tuned.set_names({"c0": "across"}), tmp_path / "m"))
    assert_array_equal(
        again.predict_proba(fitted.X, fitted.domains),
        tuned.predict_proba(fitted.X, fitted.domains),
    )
    assert again.class_names_ == ["across", "c1"]
    assert again.fine_tuning == setting
    assert again.history_ == tuned.history_
    weights = again.backbone_.state_dict()
    assert weights.keys() == before.keys()
    assert any(not weights[name].equal(before[name]) for name in before)


def test_a_loaded_model_of_images_can_be_tuned_and_knows_new_domains(
    of_images: Fitted, tmp_path: Path
) -> None:
    from shoal.vision._settings import FineTuning

    fitted = of_images
    again = shoal.load(shoal.save(fitted.model, tmp_path / "m"))
    setting = FineTuning(epochs=1, batch_size=32)
    both = [
        model.tune(fitted.X, fitted.domains, setting).held_out_
        for model in (fitted.model, again)
    ]
    assert both[0] == pytest.approx(both[1])
    adapted = again.adapt(fitted.X[:30], random_state=0).as_domain(9)
    known = shoal.load(shoal.save(adapted, tmp_path / "adapted"))
    assert known.domains_.tolist() == [0, 1, 2, 9]
    assert_array_equal(
        known.predict_proba(fitted.X[:5], 9), adapted.predict_proba(fitted.X[:5], 9)
    )


def test_a_network_of_ones_own_is_refused_with_a_way_out(
    of_images: Fitted, tmp_path: Path
) -> None:
    model = copy.copy(of_images.model)
    model.backbone_ = copy.deepcopy(model.backbone_.layer1)
    with pytest.raises(TypeError, match="Sequential: only shoal.vision.resnet"):
        shoal.save(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("frozen", [False, True])
def test_ddfa_with_a_network_is_refused_with_a_way_out(
    of_images: Fitted, tmp_path: Path, frozen: bool
) -> None:
    from shoal.vision import ImageDiscriminator

    X, domains = of_images.X.reshape(len(of_images.X), -1), of_images.domains
    network = ImageDiscriminator(
        of_images.model.backbone_, epochs=1, image_shape=of_images.X.shape[1:],
        device="cpu", random_state=0,
    )  # fmt: skip
    given = FrozenEstimator(network.fit(X, domains)) if frozen else network
    model = shoal.DDFA(2, discriminator=given, cross_fit=0, random_state=0)
    model.fit(X, domains)
    with pytest.raises(
        TypeError, match=r"of the class ImageDiscriminator: .*only ImageMixture.*pickle"
    ):
        shoal.save(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()
    again = pickle.loads(pickle.dumps(model))  # the way out is one
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda network: network["weights"].pop("conv1.weight"),
        lambda network: network["weights"].update({"fc.weight": {"$float": "nan"}}),
        lambda network: network["weights"].update(
            {"conv1.weight": network["weights"]["bn1.weight"]}
        ),
        lambda network: network["weights"].pop("bn1.num_batches_tracked"),
        lambda network: network.update(name="resnet34-cifar"),
        lambda network: network.update(name=["resnet18-cifar"]),
        lambda network: network.update(name="resnet18-imagenet"),
        lambda network: network.update(name="vgg"),
    ],
    ids=["missing", "unknown", "shape", "count", "depth", "list", "stem", "strange"],
)
def test_another_network_than_the_one_saved_is_damage(
    of_images: Fitted, tmp_path: Path, spoil: Any
) -> None:
    path = shoal.save(of_images.model, tmp_path / "m")
    manifest = json.loads((path / "manifest.json").read_text())
    spoil(manifest["model"]["network"])
    manifest["digest"] = canonical_digest(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelFileError) as raised:
        shoal.load(path)
    assert raised.value.code == "E135"
