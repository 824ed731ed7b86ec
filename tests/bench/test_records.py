"""What the committed records must hold, and the tables built from them repeat."""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from shoal_bench.panel import METHODS, PROBLEMS
from shoal_bench.published import paper_results

RESULTS = Path(__file__).parents[2] / "results" / "tabular"


def read(name):
    return [json.loads(line) for line in (RESULTS / name).read_text().splitlines()]


# ---- the panel --------------------------------------------------------------------

# What was measured before the library was written, one to three seeds a problem: DDFA
# with anchors by SPA and likelihood adjustment, m = k and m = 3k clusters; the mixture;
# and the reference with labels, in the same runs.
BEFORE = {
    "gauss k10 a0.5": (0.811, 0.879, 0.953, 0.953),
    "gauss k10 a3": (0.727, 0.787, 0.874, 0.879),
    "gauss k10 a10": (0.595, 0.634, 0.817, 0.830),
    "gauss k20 a3": (0.691, 0.745, 0.945, 0.948),
    "gauss k20 a10": (0.563, 0.593, 0.882, 0.907),
    "fashion-mnist": (0.810, 0.823, 0.875, 0.905),
    "mnist": (0.897, 0.887, 0.954, 0.951),
    "penguins": (0.962, 0.844, 1.000, 1.000),
    "rodents 4": (0.846, 0.790, 0.902, 0.951),
    "rodents 6": (0.746, 0.623, 0.891, 0.950),
    "xor": (0.962, 0.956, 0.977, 0.976),
}
PUBLISHED = ("ddfa published, logit", "ddfa published, mlp")


@pytest.fixture(scope="module")
def accuracy():
    """Mean accuracy by problem and method; every cell has five seeds or more."""
    cells = defaultdict(dict)
    for record in read("panel.jsonl"):
        cells[record["problem"], record["method"]][record["seed"]] = record["accuracy"]
    needed = set(METHODS)
    assert {(p, m) for p in PROBLEMS for m in needed} <= set(cells)
    assert min(len(seeds) for key, seeds in cells.items() if key[1] in needed) >= 5
    return {key: np.mean(list(seeds.values())) for key, seeds in cells.items()}


def share(accuracy, problem, method):
    return accuracy[problem, method] / accuracy[problem, "reference"]


def test_our_ddfa_keeps_what_anchors_and_likelihood_gave(accuracy):
    ours = {p: share(accuracy, p, "ddfa") for p in BEFORE}
    before = np.array([[b[0] / b[3], b[1] / b[3]] for b in BEFORE.values()])
    assert np.mean(list(ours.values())) >= before.mean(axis=0).max()
    for problem, best in zip(BEFORE, before.max(axis=1), strict=True):
        assert ours[problem] >= best - 0.05, problem


def test_the_mixture_keeps_what_was_found(accuracy):
    for problem, (*_, mixture, reference) in BEFORE.items():
        got = share(accuracy, problem, "mixture")
        assert got >= mixture / reference - 0.015, problem


def test_the_mixture_beats_ddfa_as_published_everywhere(accuracy):
    for problem in PROBLEMS:
        published = max(accuracy[problem, method] for method in PUBLISHED)
        assert accuracy[problem, "mixture"] > published, problem


# ---- CIFAR features ---------------------------------------------------------------

# Accuracy in the paper's 21 cells (alpha .5, 3, 10) by one fixed fit that was written
# before the library: 128 components, one start, waves 0 to 2.
CIFAR_BEFORE = {
    ("cifar20", 20): (0.939, 0.826, 0.698),
    ("cifar20", 25): (0.922, 0.806, 0.671),
    ("cifar20", 30): (0.904, 0.801, 0.660),
    ("cifar10", 10): (0.979, 0.930, 0.870),
    ("cifar10", 15): (0.974, 0.934, 0.874),
    ("cifar10", 20): (0.976, 0.924, 0.866),
    ("cifar10", 25): (0.976, 0.925, 0.873),
}


@pytest.fixture(scope="module")
def cifar():
    """Records of the fit without search, by cell: three waves each."""
    cells = defaultdict(list)
    for record in read("cifar_features.jsonl"):
        if not record["search"]:
            cell = record["dataset"], record["n_domains"], record["alpha"]
            cells[cell].append(record)
    assert len(cells) == 21
    assert all({r["wave"] for r in cell} == {0, 1, 2} for cell in cells.values())
    return cells


def test_every_cifar_cell_keeps_what_was_found(cifar):
    for (dataset, r), before in CIFAR_BEFORE.items():
        for alpha, accuracy in zip((0.5, 3, 10), before, strict=True):
            got = np.mean([run["accuracy"] for run in cifar[dataset, r, alpha]])
            assert got >= accuracy - 0.01, (dataset, r, alpha)


def test_every_cifar_cell_is_above_the_best_published(cifar):
    for cell, runs in cifar.items():
        published = [
            result.accuracy
            for result in paper_results()
            if (result.dataset, result.n_domains, result.alpha) == cell
        ]
        assert np.mean([run["accuracy"] for run in runs]) > max(published), cell


# ---- intervals and new domains ----------------------------------------------------


def test_intervals_cover_what_they_say():
    """90% intervals, over cells and over problems, on 200 problems or more."""
    found = json.loads((RESULTS / "coverage.json").read_text())["summary"]
    assert found["problems"] >= 200
    assert 0.85 <= found["coverage_of_cells"] <= 0.95
    assert 0.85 <= found["mean_coverage"] <= 0.95


def test_comparisons_are_calibrated_and_see_what_a_t_test_sees():
    found = json.loads((RESULTS / "compare.json").read_text())["summary"]
    every = found["all"]
    assert every["sets"] >= 1000
    assert 0.88 <= every["coverage"] <= 0.92
    assert 0.03 <= every["p"]["null_below_0.05"] <= 0.065
    assert every["p"]["power_at_0.05"] >= every["p_logit"]["power_at_0.05"] - 0.05
    assert found["cells"]["directions_as_published"] == "7 of 7"


def test_trends_gain_in_thin_years_and_seldom_cry_wolf():
    found = json.loads((RESULTS / "trend.json").read_text())["summary"]
    for kind in ("sets, still", "sets, walk", "sets, jump", "rodents, real"):
        own = found[kind]
        assert own["smoothed"][0] < 0.8 * own["plain"][0]
        assert own["smoothed_thin"][0] < 0.7 * own["plain_thin"][0]
    for mix in ("still", "scatter", "growing"):
        many = found.get(f"alarms, {mix}", found[f"sets, {mix}"])
        assert many["alarms"] <= 0.09
    assert found["sets, jump"]["jump_near"] >= 0.9


def test_trees_find_planted_pairs():
    found = json.loads((RESULTS / "tree.json").read_text())["summary"]
    assert found["near"]["right"] == found["shift"]["right"] == 1.0
    assert found["shift"]["ward"][0] < 0.7  # looks alone would join others
    assert found["olive"]["cut"][0] >= found["olive"]["free"][0]


def test_new_domains_are_read_as_rows_allow():
    found = json.loads((RESULTS / "new_domain.json").read_text())["summary"]
    assert -0.55 <= found["slope_10_to_1000"] <= -0.4
    assert found["worst_error_at_1000"] <= 0.02


def test_updates_say_no_class_where_none_is():
    """Nor much drift; a class with 40% of two domains is found, and a moved column."""
    cells = json.loads((RESULTS / "update.json").read_text())["summary"].values()
    still = [cell["nothing"] for cell in cells]
    assert sum(one["updates"] for one in still) >= 200
    assert not any(one["new_class"] for one in still)
    for key in ("mix_moved", "looks_moved"):
        assert sum(one[key] for one in still) / len(still) <= 0.05
    for cell in cells:
        assert cell["40% unseen"]["new_class"] >= 0.8
        assert cell["looks moved"]["right_column"] >= 0.8


def test_components_find_the_classes_where_all_columns_find_the_domains():
    record = json.loads((RESULTS / "wide.json").read_text(encoding="utf-8"))
    found = {
        (one["n_rows"], one["n_columns"], one["expansion"]): one
        for one in record["summary"]
    }
    assert len(found) == 12
    for (n_rows, n_columns, expansion), one in found.items():
        assert one["seeds"] == 5
        if expansion == "auto":
            assert one["components"] >= 4
            columns = found[n_rows, n_columns, "linear"]
            assert one["accuracy"] > columns["accuracy"] + 0.02
            assert one["as_domains"] < 0.75
    lost = [one for one in found.values() if one["as_domains"] > 0.99]
    assert len(lost) == 4
    assert max(one["accuracy"] for one in lost) < 0.71
