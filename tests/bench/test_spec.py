"""A spec has one name, for ever; the grids hold every cell of the paper."""

import json
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal_bench.grids import (
    GRIDS,
    PAPER_METHODS,
    cluster_specs,
    make_specs,
    naive_specs,
    pair_specs,
    paper_specs,
    select,
    tiny_specs,
    twin_specs,
)
from shoal_bench.methods import METHODS
from shoal_bench.problems import DATASETS
from shoal_bench.published import PAPER_ALPHAS, PAPER_DATASETS, paper_results
from shoal_bench.spec import Spec

SPEC = Spec("cifar20", 20, 3, 0, "ddfa_si", settings={"n_clusters": 50})

# ---- names -----------------------------------------------------------------------


def test_a_name_never_changes():
    """Records of years ago are found by these names: do not edit them."""
    assert SPEC.canonical == (
        '{"alpha":3,"dataset":"cifar20","method":"ddfa_si","n_domains":20,'
        '"settings":{"n_clusters":50},"wave":0}'
    )
    assert SPEC.name == "5bf9d170e6272f44"
    plain = Spec("gauss2", 3, 0.5, 1, "kmeans", n_rows=300)
    assert plain.canonical == (
        '{"alpha":0.5,"dataset":"gauss2","method":"kmeans","n_domains":3,'
        '"n_rows":300,"wave":1}'
    )
    assert plain.name == "f6ac4d7f954bda97"


def test_a_name_is_the_same_in_another_process():
    code = f"from shoal_bench.spec import Spec; print(Spec(**{SPEC.to_dict()}).name)"
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() == SPEC.name


settings = st.dictionaries(
    st.text(min_size=1, max_size=5),
    st.none() | st.booleans() | st.integers() | st.floats(-1e6, 1e6) | st.text(),
    max_size=4,
)


@given(settings)
def test_order_and_spelling_of_settings_change_nothing(chosen):
    spec = Spec("cifar10", 10, 3, 0, "kmeans", settings=chosen)
    backwards = dict(reversed(chosen.items()))
    twin = Spec("cifar10", 10, 3.0, 0, "kmeans", settings=backwards)
    assert spec == twin
    assert spec.name == twin.name
    assert hash(spec) == hash(twin)
    assert Spec.from_dict(json.loads(json.dumps(spec.to_dict()))).name == spec.name


def test_whatever_differs_gives_another_name():
    changes = [
        {"dataset": "cifar10"},
        {"n_domains": 25},
        {"alpha": 10},
        {"wave": 1},
        {"method": "ddfa_ri"},
        {"n_rows": 100},
        {"settings": {"n_clusters": 35}},
        {"settings": {"n_clusters": "50"}},
        {"settings": {"n_clusters": True}},
        {"settings": {}},
    ]
    names = {Spec(**(SPEC.to_dict() | change)).name for change in changes}
    assert len(names | {SPEC.name}) == len(changes) + 1


def test_a_spec_cannot_change_and_reads_well():
    with pytest.raises(AttributeError):
        SPEC.wave = 1
    assert str(SPEC) == "cifar20 r=20 alpha=3 wave=0 ddfa_si n_clusters=50"
    assert SPEC.cell == ("cifar20", 20, 3.0)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n_domains": 0}, ValueError, "n_domains must be a whole number from 1"),
        ({"wave": 1.0}, ValueError, "wave must be a whole number from 0, got 1.0"),
        ({"n_rows": 0}, ValueError, "n_rows must be a whole number from 1, got 0"),
        ({"alpha": 0}, ValueError, "alpha must be a number above 0, got 0"),
        ({"alpha": float("nan")}, ValueError, "alpha must be a number above 0"),
        ({"settings": {"m": [1]}}, TypeError, r"settings\['m'\] must be .* got list"),
        ({"settings": {1: 2}}, TypeError, "settings must be named by strings, got 1"),
        ({"settings": {"m": float("inf")}}, ValueError, "finite numbers, got inf"),
    ],
)
def test_bad_specs_are_refused(change, error, message):
    with pytest.raises(error, match=message):
        Spec(**(SPEC.to_dict() | change))


# ---- grids -----------------------------------------------------------------------


def test_the_paper_has_54_cells():
    cells = {spec.cell for spec in paper_specs()}
    assert len(cells) == 54
    assert Counter(dataset for dataset, _, _ in cells) == {
        "cifar10": 12,
        "cifar20": 9,
        "imagenet50": 6,
        "fieldguide2": 15,
        "fieldguide28": 12,
    }
    assert len(PAPER_METHODS) == 13
    assert len({spec.name for spec in paper_specs()}) == 54 * 5 * 13


def test_every_published_number_has_its_specs():
    """Each cell and method of the paper's tables is among the specs, by title."""
    known = {(*spec.cell, METHODS[spec.method].title) for spec in paper_specs()}
    for result in paper_results():
        cell = (result.dataset, result.n_domains, result.alpha, result.method)
        assert cell in known


def test_appendix_g():
    specs = cluster_specs()
    assert {spec.cell for spec in specs} == {("cifar20", 20, a) for a in PAPER_ALPHAS}
    per_cell = Counter(spec.method for spec in specs if spec.alpha == 3)
    # six m, one of them (m = k) without the setting; three waves each
    assert per_cell == {
        "ddfa_si": 18,
        "scan": 3,
        "ours_frozen": 3,
        "ours_end_to_end": 3,
    }
    given = {spec.options.get("n_clusters", 20) for spec in specs}
    assert given == {10, 20, 35, 50, 100, 150}
    shared = {spec.name for spec in specs} & {spec.name for spec in paper_specs()}
    assert len(shared) == 3 * 3 * 4


def test_appendix_h_is_part_of_the_tables():
    published = {
        (r.dataset, r.n_domains, r.alpha, r.method)
        for r in paper_results()
        if r.table == "appendix_H_naive_ablation"
    }
    ours = {(*spec.cell, METHODS[spec.method].title) for spec in naive_specs()}
    assert ours == published
    assert {s.name for s in naive_specs()} <= {s.name for s in paper_specs()}


def test_every_grid_has_only_known_parts_and_no_spec_twice():
    for grid in GRIDS.values():
        specs = grid.specs()
        assert len({spec.name for spec in specs}) == len(specs) > 0
        for spec in specs:
            assert spec.method in METHODS
            assert spec.n_domains in DATASETS[spec.dataset].n_domains
            assert spec.alpha in DATASETS[spec.dataset].max_condition


def test_sizes_of_the_other_grids():
    assert len(twin_specs(waves=[0])) == 3 * 3 * 10
    assert len(tiny_specs()) == 2 * 3 * 5
    assert len(pair_specs(waves=[0])) == (5 + 2) * 3 * 6
    in_order = [GRIDS[f"cifar-{step}"].specs() for step in "abcde"]
    assert [len(specs) for specs in in_order] == [210, 63, 84, 315, 63]
    names = [spec.name for specs in in_order for spec in specs]
    assert len(set(names)) == len(names)
    assert set(names) <= {spec.name for spec in paper_specs()}
    assert len(GRIDS["cifar-24"].specs()) == 21 * 3 * 2


def test_waves_come_one_after_the_other():
    waves = [spec.wave for spec in make_specs(["cifar10"], ["kmeans"], waves=[0, 1])]
    assert waves == [0] * 12 + [1] * 12


def test_kappa_and_k_are_the_paper_s():
    for key, paper in PAPER_DATASETS.items():
        assert DATASETS[key].n_classes == paper.n_classes
        assert DATASETS[key].max_condition == paper.max_condition
        assert DATASETS[key].n_domains == tuple(sorted(paper.n_domains))


def test_select_takes_what_is_asked_for():
    specs = select(paper_specs(), datasets=["cifar10"], methods=["scan"], alphas=[3])
    assert {spec.cell for spec in specs} == {
        ("cifar10", r, 3.0) for r in (10, 15, 20, 25)
    }
    assert len(select(specs, waves=[0], n_domains=[10, 25])) == 2
    assert select(specs) == specs


def test_what_would_select_nothing_is_refused():
    with pytest.raises(ValueError, match=r"method must be among .* got \['skan'\]"):
        select(paper_specs(), methods=["skan"])
    with pytest.raises(ValueError, match=r"datasets must be among .* got \['mnist'\]"):
        make_specs(["mnist"], ["kmeans"])
