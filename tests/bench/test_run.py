"""A run is a function of its spec; grids resume, fail apart, and use no label."""

import itertools
import json
import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from shoal.exceptions import CodedError
from shoal_bench import meter, methods, problems
from shoal_bench.grids import make_specs, select, tiny_specs
from shoal_bench.methods import Answer, find_method
from shoal_bench.problems import Source, Truth, load_problem, pair_labels, shifted
from shoal_bench.published import paper_prevalence
from shoal_bench.run import run, run_missing, score
from shoal_bench.spec import Spec
from shoal_bench.store import Store

TINY = select(tiny_specs(), waves=[0], methods=["kmeans", "reference"])
FEATURE_METHODS = [
    name
    for name, entry in methods.METHODS.items()
    if entry.view == "features"
]  # fmt: skip


def spec_of(method: str, **changes) -> Spec:
    return Spec(**({**TINY[0].to_dict(), "method": method} | changes))


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store")


# ---- problems --------------------------------------------------------------------


@pytest.fixture
def feature_dir(tmp_path) -> Path:
    """Features of a small CIFAR-100: 100 fine classes of 48 rows, sorted by class."""
    rng = np.random.default_rng(0)
    fine = np.tile(np.repeat(np.arange(100), 24), 2)
    coarse = fine // 5
    folder = tmp_path / "features"
    folder.mkdir()
    centres = rng.normal(size=(100, 8))
    np.savez(
        folder / "cifar20_simclr_pca128.npz",
        features=(centres[fine] + 0.1 * rng.normal(size=(4800, 8))).astype(np.float16),
        labels=coarse.astype(np.uint8),
        n_train=2400,
    )
    (tmp_path / "cifar100").mkdir()
    np.savez(
        tmp_path / "cifar100" / "labels.npz",
        fine_tr=fine[:2400],
        fine_te=fine[2400:],
        coarse_tr=coarse[:2400],
        coarse_te=coarse[2400:],
    )
    return tmp_path


def test_rows_follow_the_paper_s_matrix():
    labels = np.concatenate([np.repeat(np.arange(2), 500), np.repeat(np.arange(2), 99)])
    rows = np.arange(1198)
    spec = Spec("pairs2", 3, 3, 1, "kmeans")
    problem = shifted(spec, Source(rows, labels, 1000))
    expected = paper_prevalence("fieldguide2", 3, 3, 1)
    assert_array_equal(problem.truth.prevalence, expected)
    assert problem.X.max() < 1000 <= problem.X_test.min()
    assert_array_equal(problem.truth.labels, labels[problem.X])
    assert_array_equal(problem.truth.labels_test, labels[problem.X_test])
    counts = np.histogram2d(problem.domains, problem.truth.labels, bins=(3, 2))[0]
    assert_allclose(counts / counts.sum(1, keepdims=True), expected, atol=0.01)


def test_rows_and_limits_are_a_function_of_the_spec():
    source = Source(np.arange(1200), np.tile([0, 1, -1], 400), 900)
    spec = Spec("pairs2", 3, 3, 0, "kmeans", n_rows=200)
    one, two = shifted(spec, source), shifted(spec, source)
    assert_array_equal(one.X, two.X)
    assert_array_equal(one.domains_test, two.domains_test)
    assert len(one.X) <= 200
    assert (source.labels[one.X] >= 0).all()
    # another method sees the same rows, another wave does not
    same = shifted(replace(spec, method="gmm"), source)
    assert_array_equal(same.X, one.X)
    assert not np.array_equal(shifted(replace(spec, wave=1), source).X, one.X)


@pytest.mark.parametrize("n_classes", [2, 28])
def test_pairs_look_unlike_and_siblings_are_apart(n_classes):
    fine = np.arange(100)
    coarse = fine % 20
    labels = pair_labels(fine, coarse, n_classes)
    for number in range(n_classes):
        members = coarse[labels == number]
        assert len(members) == 2
        assert members[0] != members[1]
    used = labels >= 0
    assert used.sum() == 2 * n_classes
    # members of one superclass are all in different classes
    for superclass in np.unique(coarse[used]):
        siblings = labels[used & (coarse == superclass)]
        assert len(siblings) == len(set(siblings)) >= 2


def test_features_are_read_from_their_file(feature_dir):
    spec = Spec("cifar20", 20, 3, 0, "kmeans")
    problem = load_problem(spec, data_dir=feature_dir)
    assert problem.n_classes == problem.n_domains == 20
    assert problem.X.shape[1] == 8
    pairs = load_problem(Spec("pairs28", 28, 10, 0, "kmeans"), data_dir=feature_dir)
    assert pairs.n_classes == 28
    assert set(pairs.truth.labels) == set(range(28))


def test_labels_of_another_order_are_noticed(feature_dir):
    file = feature_dir / "cifar100" / "labels.npz"
    with np.load(file) as data:
        content = dict(data)
    np.savez(file, **(content | {"coarse_tr": content["coarse_tr"][::-1]}))
    with pytest.raises(ValueError, match="not in the same order"):
        load_problem(Spec("pairs2", 3, 3, 0, "kmeans"), data_dir=feature_dir)


def test_absent_data_say_what_to_place_where(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="imagenet50_simclr_pca128.npz"):
        load_problem(Spec("imagenet50", 50, 3, 0, "kmeans"), data_dir=tmp_path)
    monkeypatch.delenv("SHOAL_DATA_DIR", raising=False)
    with pytest.raises(FileNotFoundError, match="SHOAL_DATA_DIR is not set"):
        load_problem(Spec("imagenet50", 50, 3, 0, "kmeans"))


def test_unknown_data_and_views_are_refused():
    with pytest.raises(ValueError, match="dataset must be one of .* got 'mnist'"):
        load_problem(spec_of("kmeans", dataset="mnist"))
    with pytest.raises(ValueError, match="no view 'sounds'; it has .'features'"):
        load_problem(TINY[0], view="sounds")


def test_a_view_can_be_added(monkeypatch):
    monkeypatch.setattr(problems, "_MAKERS", dict(problems._MAKERS))
    problems.register_view("gauss2", "sounds", lambda spec, folder: (spec, folder))
    assert load_problem(TINY[0], "sounds", "/there") == (TINY[0], Path("/there"))
    with pytest.raises(ValueError, match="dataset must be one of"):
        problems.register_view("gauss3", "features", problems.gaussian_problem)


# ---- methods ---------------------------------------------------------------------


# naive_ica makes words of few rows that tell nothing
@pytest.mark.filterwarnings("ignore::shoal.exceptions.IdentifiabilityWarning")
@pytest.mark.parametrize("name", FEATURE_METHODS)
def test_answers_have_a_class_per_row_and_proper_prevalences(name):
    problem = load_problem(spec_of(name))
    answer = find_method(name).answer(problem, 0)
    assert answer.classes.shape == problem.domains_test.shape
    assert set(np.unique(answer.classes)) <= {0, 1}
    if answer.prevalence is not None:
        assert answer.prevalence.shape == (3, 2)
        assert_allclose(answer.prevalence.sum(axis=1), 1)


UNLABELLED = [n for n in FEATURE_METHODS if not methods.METHODS[n].labelled]


@pytest.mark.filterwarnings("ignore::shoal.exceptions.IdentifiabilityWarning")
@pytest.mark.parametrize("name", UNLABELLED)
def test_planted_labels_change_nothing(name):
    """Whatever the truth says, a method that competes answers the same."""
    problem = load_problem(spec_of(name))
    rng = np.random.default_rng(0)
    planted = Truth(
        rng.integers(2, size=len(problem.domains)),
        rng.integers(2, size=len(problem.domains_test)),
        np.full((3, 2), 0.5),
    )
    method = find_method(name).answer
    plain, misled = method(problem, 0), method(replace(problem, truth=planted), 0)
    assert_array_equal(plain.classes, misled.classes)
    assert_array_equal(plain.prevalence, misled.prevalence)


def test_majority_is_the_largest_true_prevalence():
    problem = load_problem(spec_of("majority"))
    answer = find_method("majority").answer(problem, 0)
    for domain, row in enumerate(problem.truth.prevalence):
        assert set(answer.classes[problem.domains_test == domain]) == {row.argmax()}


def test_absent_packages_are_named(monkeypatch):
    monkeypatch.setattr(methods, "_REGISTERED", {})
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    with pytest.raises(CodedError, match="'scan' fits on images and needs torch") as e:
        find_method("scan")
    assert (e.value.code, e.value.hint) == ("E132", 'pip install "shoal[vision]"')
    monkeypatch.setattr(methods, "find_spec", lambda name: name != "nowhere" or None)
    monkeypatch.setattr(methods, "IMAGE_METHODS", "nowhere")
    assert "which this version of shoal cannot" in methods.absent("scan").text


def test_methods_register_under_known_names_only(monkeypatch):
    monkeypatch.setattr(methods, "_REGISTERED", dict(methods._REGISTERED))

    @methods.register("oracle", depth=18)
    def cheat(problem, seed, depth):
        return Answer(problem.truth.labels_test)

    assert methods.absent("oracle") is None
    assert find_method("oracle").settings == {"depth": 18}
    with pytest.raises(ValueError, match="method must be one of .* got 'deep'"):
        methods.register("deep")
    with pytest.raises(ValueError, match="method must be one of .* got 'deep'"):
        find_method("deep")


# ---- runs ------------------------------------------------------------------------


def test_scores_are_those_of_the_best_permutation():
    """A slow formula: all permutations, accuracy first, then the error it implies."""
    rng = np.random.default_rng(3)
    labels = rng.integers(3, size=60)
    classes = np.where(rng.random(60) < 0.6, (labels + 1) % 3, rng.integers(3, size=60))
    true, estimated = rng.dirichlet(np.ones(3), size=(2, 4))
    truth = Truth(labels, labels, true)
    metrics, matching = score(Answer(classes, estimated), truth)
    best = max(
        itertools.permutations(range(3)),
        key=lambda label_of: np.mean(np.array(label_of)[classes] == labels),
    )
    assert matching == dict(enumerate(best))
    assert metrics["accuracy"] == np.mean(np.array(best)[classes] == labels)
    error = np.mean([abs(estimated[:, c] - true[:, best[c]]) for c in range(3)])
    assert_allclose(metrics["prevalence_error"], error)


def test_labels_are_not_matched_where_a_method_reads_them():
    truth = Truth(np.array([0, 1]), np.array([0, 1]), np.array([[0.5, 0.5]]))
    swapped = Answer(np.array([1, 0]))
    assert score(swapped, truth, labelled=True)[0]["accuracy"] == 0
    assert score(swapped, truth)[0]["accuracy"] == 1


def test_a_run_is_a_function_of_its_spec():
    costs = {"seconds", "peak_mib", "gpu_mib", "finished"}
    spec = spec_of("ours_frozen")
    one, two = ({**run(spec)} for _ in range(2))
    assert {k: v for k, v in one.items() if k not in costs} == {
        k: v for k, v in two.items() if k not in costs
    }
    assert one["name"] == spec.name
    assert Spec.from_dict(json.loads(json.dumps(one))["spec"]) == spec
    assert one["seed"] == spec.wave == 0
    assert one["seconds"] > 0
    assert one["peak_mib"] > 10
    assert one["device"]
    assert {"shoal", "numpy", "scikit-learn", "python"} <= set(one["versions"])
    assert np.shape(one["prevalence"]) == (3, 2)
    assert sorted(label for _, label in one["matching"]) == [0, 1]


def test_settings_reach_the_method_and_strange_ones_are_refused():
    plain = run(spec_of("ddfa_mlp"))
    more = run(spec_of("ddfa_mlp", settings={"n_clusters": 6}))
    assert plain["prevalence"] != more["prevalence"]
    with pytest.raises(ValueError, match=r"may be \['features', 'n_clusters'\], got"):
        run(spec_of("ddfa_mlp", settings={"n_cluster": 6}))


def test_warnings_are_kept_with_the_record():
    record = run(spec_of("ddfa_mlp", settings={"n_clusters": 1}))
    assert any("IdentifiabilityWarning" in text for text in record["warnings"])


def test_any_note_can_be_stored(store, monkeypatch):
    monkeypatch.setattr(methods, "_REGISTERED", dict(methods._REGISTERED))

    @methods.register("kmeans")
    def noted(problem, seed):
        notes = {
            "loss": np.float32(0.5),
            "curve": np.array([1.0, np.nan]),
            "nested": {"best": np.int64(3), "none": float("inf")},
        }
        return Answer(np.zeros(len(problem.domains_test), dtype=int), None, notes)

    assert run_missing([TINY[0]], store).failed == []
    assert store.records()[TINY[0].name]["notes"] == {
        "loss": 0.5,
        "curve": [1.0, None],
        "nested": {"best": 3, "none": None},
    }


# ---- grids -----------------------------------------------------------------------


def test_a_second_call_runs_only_what_is_missing(store):
    seen = []
    first = run_missing(TINY[:4], store, on_result=lambda spec, _: seen.append(spec))
    assert seen == list(TINY[:4])
    assert first.done == [spec.name for spec in TINY[:4]]
    second = run_missing(TINY, store)
    assert second.known == first.done
    assert second.done == [spec.name for spec in TINY[4:]]
    assert set(store.records()) == {spec.name for spec in TINY}
    assert run_missing(TINY, store).done == []


def test_failures_stand_apart_with_their_traceback(store):
    bad = spec_of("kmeans", settings={"n_init": "many"})
    tally = run_missing([bad, TINY[0]], store)
    assert tally.failed == [bad.name]
    assert tally.done == [TINY[0].name]
    assert bad.name not in store
    failure = store.failures()[bad.name]
    assert failure["failure"]["kind"] == "InvalidParameterError"
    assert "Traceback" in failure["failure"]["traceback"]
    again = run_missing([bad], store)
    assert (again.failed, again.failed_before) == ([], [bad.name])
    assert run_missing([bad], store, retry_failed=True).failed == [bad.name]


def test_what_another_process_runs_is_left_to_it(store):
    with Store(store.folder).claim(TINY[1]):
        tally = run_missing(TINY[:3], store)
    assert tally.elsewhere == [TINY[1].name]
    assert tally.done == [TINY[0].name, TINY[2].name]


def test_claims_are_freed_when_a_grid_is_interrupted(store):
    def stop(spec, record):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_missing(TINY, store, on_result=stop)
    assert list(store.records()) == [TINY[0].name]
    assert store.running() == {}
    assert len(run_missing(TINY, store).done) == len(TINY) - 1


def test_a_grid_in_processes_survives_kill_9_and_gives_the_same_records(
    store, tmp_path
):
    """Two workers, one of them killed as soon as the first record is there."""
    specs = make_specs(
        ["gauss2"], ["kmeans", "ours_frozen"], n_domains=[3], waves=[0], n_rows=200
    )
    killed = threading.Event()

    def kill_a_worker(spec, record):
        if not killed.is_set():
            killed.set()
            os.kill(worker_pids()[0], signal.SIGKILL)

    tally = run_missing(
        specs, store, where="processes", workers=2, on_result=kill_a_worker
    )
    assert killed.is_set()
    assert sorted(tally.done) == sorted(spec.name for spec in specs)
    here = Store(tmp_path / "here")
    run_missing(specs, here)
    for name, record in here.records().items():
        assert store.records()[name]["metrics"] == record["metrics"]
        assert store.records()[name]["prevalence"] == record["prevalence"]


def worker_pids() -> list[int]:
    """Children of this process that loky started as workers."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
        pids = [int(pid) for pid in children.split()]
        workers = [pid for pid in pids if b"LokyProcess" in command_line(pid)]
        if workers:
            return workers
    raise AssertionError("no worker found")


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return b""


@pytest.mark.parametrize(
    ("name", "sign"), [("src/shoal/probability.py", "+"), ("results/store.jsonl", "")]
)
def test_a_store_that_is_filled_does_not_make_a_checkout_differ(
    tmp_path, monkeypatch, name, sign
):
    path = tmp_path / name
    for file in (path, tmp_path / "src" / "shoal" / "__init__.py"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("first\n")
    known = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=0"]
    for arguments in (["init"], ["add", "."], [*known, "commit", "-m", "first"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True, timeout=60)
    monkeypatch.setattr(meter.shoal, "__file__", tmp_path / "src/shoal/__init__.py")
    path.write_text("second\n")
    meter._revision.cache_clear()
    try:
        revision = meter.provenance()["revision"]
    finally:
        meter._revision.cache_clear()
    assert re.fullmatch("[0-9a-f]{12}" + re.escape(sign), revision)


def test_machines_without_git_are_told_the_revision(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("SHOAL_REVISION", "abc123")
    meter._revision.cache_clear()
    assert meter.provenance()["revision"] == "abc123"
    monkeypatch.delenv("SHOAL_REVISION")
    meter._revision.cache_clear()
    assert meter.provenance()["revision"] is None
    meter._revision.cache_clear()
