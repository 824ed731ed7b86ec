"""Tables say what the records say, beside what the paper printed; figures follow."""

import csv
import io
import re
import shlex
import statistics
import subprocess
import sys

import numpy as np
import pytest

from shoal_bench import figures as figure_module
from shoal_bench.figures import (
    draw_against_alpha,
    draw_against_clusters,
    draw_prevalence,
    matched_prevalence,
)
from shoal_bench.grids import GRIDS, cluster_specs, paper_specs, select, tiny_specs
from shoal_bench.markdown import markdown
from shoal_bench.methods import METHODS
from shoal_bench.published import paper_results
from shoal_bench.run import run_missing
from shoal_bench.spec import Spec
from shoal_bench.store import Store
from shoal_bench.tables import best_of, commands, csv_text, summarize, winners_of

CELL = ("cifar20", 20, 3.0)


def fake_records(specs, accuracy, error):
    """Records with chosen numbers, as a store would return them."""
    return {
        spec.name: {
            "name": spec.name,
            "spec": spec.to_dict(),
            "metrics": {"accuracy": accuracy(spec), "prevalence_error": error(spec)},
            "seconds": 2.0,
            "device": "a machine",
        }
        for spec in specs
    }


@pytest.fixture
def cell_specs() -> tuple[Spec, ...]:
    methods = ["scan", "ddfa_si", "naive", "ours_frozen", "oracle"]
    return select(paper_specs(), datasets=["cifar20"], n_domains=[20], alphas=[3],
                  methods=methods, waves=[0, 1, 2])  # fmt: skip


@pytest.fixture
def lines(cell_specs):
    level = {"ddfa_si": 0.6, "ours_frozen": 0.8, "oracle": 0.9, "naive": 0.3}
    ran = [spec for spec in cell_specs if spec.method != "scan" and spec.wave < 2]
    records = fake_records(
        ran,
        lambda spec: level[spec.method] + 0.01 * spec.wave,
        lambda spec: None if spec.method == "oracle" else 0.1 - level[spec.method] / 10,
    )
    return summarize(cell_specs, records)


def by_method(lines):
    return {line.method: line for line in lines}


# ---- lines -----------------------------------------------------------------------


def test_mean_and_spread_over_waves(lines):
    line = by_method(lines)["ours_frozen"]
    spread = line.values["accuracy"]
    assert spread.mean == pytest.approx(0.805)
    assert spread.sd == pytest.approx(statistics.stdev([0.8, 0.81]))
    assert (line.waves, line.missing) == ((0, 1), (2,))
    assert spread.text(3) == "0.805 ± 0.007 (2)"
    assert line.cell == CELL


def test_the_paper_s_number_stands_beside_ours(lines):
    line = by_method(lines)["ddfa_si"]
    assert line.published("accuracy") == 0.582
    assert line.difference("accuracy") == pytest.approx(0.605 - 0.582)
    assert by_method(lines)["ours_frozen"].difference("accuracy") is None


def test_doubtful_numbers_are_shown_but_not_compared_with(lines):
    scan, naive = by_method(lines)["scan"], by_method(lines)["naive"]
    assert scan.printed("prevalence_error") == 0.081
    assert scan.published("prevalence_error") is None
    assert scan.published("accuracy") == 0.432
    assert naive.published("accuracy") is None
    assert naive.difference("accuracy") is None
    assert "0.081 †" in markdown(lines, "paper")


def test_every_published_number_finds_its_line():
    """Each cell and method of the paper is beside a line, five seeds before three."""
    lines = summarize(paper_specs(waves=[0]), {})
    shown = {
        (*line.cell, METHODS[line.method].title): line.paper
        for line in lines
        if line.paper is not None
    }
    printed = {(r.dataset, r.n_domains, r.alpha, r.method) for r in paper_results()}
    assert set(shown) == printed
    assert {r.table for r in shown.values() if r.method == "DDFA (SI)"} == {
        "appendix_E_cifar10",
        "appendix_E_cifar20",
        "appendix_E_imagenet50",
    }


def test_a_setting_makes_it_another_line_without_a_published_number():
    lines = summarize(cluster_specs(), {})
    titles = [line.title for line in lines if line.cell == CELL]
    assert "DDFA (SI), n_clusters=50" in titles
    assert len(titles) == 9
    for line in lines:
        assert (line.paper is None) == (
            bool(line.settings) or line.method not in ("scan", "ddfa_si")
        )


# ---- winners ---------------------------------------------------------------------


def test_the_best_published_is_the_best_of_all_tables(lines):
    """A slow formula over every printed number of the cell."""
    cell = [r for r in paper_results() if (r.dataset, r.n_domains, r.alpha) == CELL]
    best = best_of(lines, "accuracy", published=True)[CELL]
    assert best.value == max(r.accuracy for r in cell)
    error = best_of(lines, "prevalence_error", published=True)[CELL]
    trusted = [r for r in cell if "prevalence_error" not in r.doubtful]
    assert error.value == min(r.prevalence_error for r in trusted)


def test_methods_that_read_labels_do_not_compete(lines):
    assert best_of(lines, "accuracy")[CELL].title == "ours, frozen features"
    assert winners_of(lines, "accuracy")[CELL].title == "ours, frozen features"
    assert winners_of(lines, "prevalence_error")[CELL].value == pytest.approx(0.02)


def test_the_paper_wins_where_it_is_better(cell_specs):
    ran = [spec for spec in cell_specs if spec.method == "ours_frozen"]
    lines = summarize(cell_specs, fake_records(ran, lambda _: 0.2, lambda _: 0.5))
    winner = winners_of(lines, "accuracy")[CELL]
    assert winner.title.endswith("(paper)")
    text = markdown(lines, "paper")
    assert "ours is better in 0 of 1 cells run" in text
    assert "**0.200" not in text


# ---- Markdown and CSV ------------------------------------------------------------


def test_markdown_and_csv_say_the_same(lines):
    rows = list(csv.DictReader(io.StringIO(csv_text(lines))))
    text = markdown(lines, "paper")
    assert len(rows) == len(lines)
    for row, line in zip(rows, lines, strict=True):
        assert row["method"] == line.method
        assert float(row["max_condition"]) == 12
        if row["accuracy"]:
            assert float(row["accuracy"]) == line.values["accuracy"].mean
            shown = f"{float(row['accuracy']):.3f} ± {float(row['accuracy_sd']):.3f}"
            assert shown in text
        if row["accuracy_difference"]:
            assert f"{float(row['accuracy_difference']):+.3f}" in text
    won = [row["method"] for row in rows if row["accuracy_wins"] == "True"]
    assert won == ["ours_frozen"]
    assert "**0.805 ± 0.007 (2)**" in text


def test_every_row_of_a_table_has_its_columns(lines):
    for table in re.findall(r"(?:^\|.*\|\n)+", markdown(lines, "paper"), re.MULTILINE):
        assert len({row.count("|") for row in table.splitlines()}) == 1


def test_what_is_not_run_stands_with_its_command(lines):
    text = markdown(lines, "cifar-b")
    assert "| SCAN | not run | 0.432 |" in text
    wanted = "shoal bench run cifar-b --dataset cifar20 --method scan "
    assert f"{wanted}--wave 0 --wave 1 --wave 2 --store DIR" in text
    assert len(commands(lines, "cifar-b")) == 5
    for command in commands(lines, "cifar-b", "a b"):
        assert shlex.split(command)[-2:] == ["--store", "a b"]
    done = summarize([], {})
    assert commands(done, "tiny") == []


def test_ours_stands_as_a_share_of_the_supervised_accuracy(lines):
    share = 0.805 / 0.905
    row = f"| *ours, best, as a share of: supervised network* | {share:.1%} |"
    assert row in markdown(lines, "paper")


def test_shares_are_of_the_waves_that_both_have(cell_specs):
    ran = [
        spec
        for spec in cell_specs
        if spec.method == "ours_frozen" or (spec.method == "oracle" and spec.wave == 1)
    ]
    accuracy = {"ours_frozen": [0.9, 0.6, 0.9], "oracle": [None, 0.8, None]}
    records = fake_records(
        ran, lambda spec: accuracy[spec.method][spec.wave], lambda _: 0.1
    )
    text = markdown(summarize(cell_specs, records), "paper")
    assert "as a share of: supervised network* | 75.0% |" in text


@pytest.mark.parametrize("grid", GRIDS)
def test_every_grid_has_a_table_before_anything_ran(grid):
    text = markdown(summarize(GRIDS[grid].specs(), {}), grid)
    assert "not run" in text
    assert f"shoal bench run {grid} --dataset" in text


# ---- figures ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Real records of a tiny grid."""
    store = Store(tmp_path_factory.mktemp("store"))
    specs = select(tiny_specs(), methods=["kmeans", "majority", "ours_frozen"])
    run_missing(specs, store)
    return specs, store.records()


def pixels(path) -> np.ndarray:
    from matplotlib.image import imread

    return imread(path)


@pytest.fixture
def drawn(monkeypatch):
    """Figures as they are when they are saved."""
    figures = []
    save = figure_module._save

    def keep(figure, path):
        figures.append(
            [
                {
                    "title": panel.get_title(),
                    "lines": {
                        bars.get_label(): np.transpose(bars.lines[0].get_data()).astype(
                            float
                        )
                        for bars in panel.containers
                    },
                }
                for panel in figure.axes
            ]
        )
        return save(figure, path)

    monkeypatch.setattr(figure_module, "_save", keep)
    return figures


def test_accuracy_against_alpha_shows_the_table_s_means(tiny, tmp_path, drawn):
    specs, records = tiny
    lines = summarize((*specs, *paper_specs(["cifar20"], ["scan"])), records)
    first = draw_against_alpha(lines, tmp_path / "one.png")
    again = draw_against_alpha(lines, tmp_path / "two.png")
    assert first.read_bytes() == again.read_bytes()
    panels = {panel["title"]: panel["lines"] for panel in drawn[0]}
    assert set(panels) >= {"Gaussian, 2, 3 domains", "CIFAR-20, 25 domains"}
    for name, points in panels["Gaussian, 2, 3 domains"].items():
        expected = [
            (line.cell[2], line.values["accuracy"].mean)
            for line in lines
            if line.title == name
        ]
        np.testing.assert_allclose(points, expected)


def test_appendix_g_shows_every_m(tmp_path, drawn):
    specs = cluster_specs()
    records = fake_records(
        [spec for spec in specs if spec.method in ("ddfa_si", "ours_frozen")],
        lambda spec: spec.options.get("n_clusters", 20) / 200,
        lambda spec: 0.1,
    )
    path = draw_against_clusters(summarize(specs, records), tmp_path / "deep" / "m.svg")
    assert "<svg" in path.read_text()
    assert len(drawn[0]) == 6
    first = drawn[0][0]["lines"]
    m = np.array([10, 20, 35, 50, 100, 150])
    np.testing.assert_allclose(first["DDFA (SI)"], np.column_stack([m, m / 200]))
    # a method without m is a level line
    level = np.column_stack([m, np.full(6, 0.1)])
    np.testing.assert_allclose(first["ours, frozen features"], level)


def test_true_and_estimated_prevalences(tiny, tmp_path):
    specs, records = tiny
    cell = select(specs, alphas=[3], waves=[0], methods=["kmeans", "ours_frozen"])
    path = draw_prevalence([records[spec.name] for spec in cell], tmp_path / "p.png")
    assert pixels(path).std() > 0


def test_prevalences_are_drawn_in_the_order_of_the_labels():
    record = {"prevalence": [[0.1, 0.2, 0.7]], "matching": [[0, 2], [2, 0]]}
    np.testing.assert_array_equal(matched_prevalence(record), [[0.7, 0.1, 0.2]])


def test_a_bare_machine_runs_a_grid_and_makes_its_table(tmp_path):
    """Without pandas, typer, rich, skops, matplotlib, torch and ray."""
    code = """
import sys
class Bare:
    absent = {"pandas", "typer", "rich", "skops", "matplotlib", "torch", "ray"}
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.absent:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Bare())
import shoal_bench.figures
from shoal_bench.grids import select, tiny_specs
from shoal_bench.markdown import markdown
from shoal_bench.run import run_missing
from shoal_bench.store import Store
from shoal_bench.tables import summarize
store = Store(sys.argv[1])
specs = select(tiny_specs(), methods=["kmeans"], waves=[0])
run_missing(specs, store)
print(markdown(summarize(specs, store.records()), "tiny"))
"""
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.search(r"\| k-means \| .*0\.\d{3} \(1\)", found.stdout)
    assert "not run" not in found.stdout
