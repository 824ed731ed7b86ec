"""The paper's matrices come back from their seeds; its tables are read unharmed."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from shoal.probability import condition_number
from shoal_bench.published import (
    PAPER_ALPHAS,
    PAPER_DATASETS,
    PAPER_SEEDS,
    paper_prevalence,
    paper_results,
    paper_seeds,
)

SUBSET = Path(__file__).with_name("paper_prevalence_subset.csv")
PAPER_DIR = os.environ.get("SHOAL_PAPER_DIR")
needs_paper = pytest.mark.skipif(not PAPER_DIR, reason="SHOAL_PAPER_DIR is not set")


def released_rows():
    """Read some rows of the released matrices: (problem, {domain: row})."""
    problems = {}
    with SUBSET.open() as lines:
        for row in csv.DictReader(lines):
            key = row["dataset"], int(row["n_domains"]), float(row["alpha"])
            values = np.array(row["prevalence"].split(), dtype=float)
            problem = problems.setdefault((*key, int(row["wave"])), {})
            problem[int(row["domain"])] = values
    return problems


def all_problems():
    """List the 162 released matrices; some of r = k take seconds of redrawing."""
    for dataset, problem in PAPER_DATASETS.items():
        for n_domains in problem.n_domains:
            marks = [pytest.mark.slow] if n_domains == problem.n_classes > 2 else []
            for alpha in PAPER_ALPHAS:
                for wave in range(3):
                    yield pytest.param(dataset, n_domains, alpha, wave, marks=marks)


@pytest.mark.parametrize(
    "problem", released_rows(), ids=lambda p: "-".join(map(str, p))
)
def test_released_matrices_come_back_from_their_seeds(problem):
    matrix = paper_prevalence(*problem)
    assert len(matrix) == problem[1]
    for domain, row in released_rows()[problem].items():
        assert_allclose(matrix[domain], row, atol=1e-8, rtol=0)


@needs_paper
@pytest.mark.parametrize(
    ("dataset", "n_domains", "alpha", "wave"), list(all_problems())
)
def test_all_released_matrices(dataset, n_domains, alpha, wave):
    with np.load(Path(PAPER_DIR) / "prevalence_matrices.npz") as released:
        expected = released[f"{dataset}-r{n_domains}-alpha{alpha:g}-wave{wave}"]
    matrix = paper_prevalence(dataset, n_domains, alpha, wave)
    assert_allclose(matrix, expected, atol=1e-6, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("wave", range(5))
@pytest.mark.parametrize(
    ("dataset", "n_domains", "alpha"), [("cifar20", 20, 0.5), ("cifar20", 20, 3)]
)
def test_stored_matrices_are_what_the_seeds_give(dataset, n_domains, alpha, wave):
    """Those of ImageNet-50 and FieldGuide-28 would take minutes to an hour each."""
    stored = paper_prevalence(dataset, n_domains, alpha, wave)
    drawn = paper_prevalence(dataset, n_domains, alpha, wave, redraw=True)
    assert_allclose(stored, drawn, atol=1e-12)


def test_there_are_162_released_problems():
    assert len(list(all_problems())) == 162


@pytest.mark.parametrize("wave", range(5))
def test_matrices_keep_their_limit(wave):
    for alpha, limit in PAPER_DATASETS["cifar10"].max_condition.items():
        matrix = paper_prevalence("cifar10", 25, alpha, wave)
        assert matrix.shape == (25, 10)
        assert condition_number(matrix) <= limit * (1 + 1e-6)


def test_a_matrix_can_be_changed_without_changing_the_next_one():
    first = paper_prevalence("fieldguide2", 2, 3, 0)
    kept = first.copy()
    first[:] = 0
    assert_allclose(paper_prevalence("fieldguide2", 2, 3, 0), kept)


def test_seeds_follow_the_order_of_the_runs():
    """Counting r downwards, FieldGuide-28 r=47 shares its seed with CIFAR-10 r=10."""
    assert paper_seeds("fieldguide28", 47, 2) == paper_seeds("cifar10", 10, 2)
    assert paper_seeds("fieldguide28", 28, 2) == paper_seeds("cifar10", 25, 2)
    generator = np.random.RandomState(PAPER_SEEDS[2][0])
    one_by_one = [generator.randint(1, 4_000_000_000, dtype="q") for _ in range(3)]
    assert list(paper_seeds("cifar10", 10, 2)) == one_by_one


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (("cifar100", 10, 3, 0), "dataset must be one of .*'cifar10'.*got 'cifar100'"),
        (("cifar10", 12, 3, 0), r"n_domains must be one of \[10, 15, 20, 25\] for"),
        (("cifar10", 10, 1, 0), r"alpha must be one of \(0.5, 3, 10\), got 1"),
        (("cifar10", 10, 3, 5), "wave must be a whole number from 0 to 4, got 5"),
    ],
)
def test_problems_the_paper_has_not_are_refused(problem, message):
    with pytest.raises(ValueError, match=message):
        paper_prevalence(*problem)


# Tables


def test_results_describe_the_problems_of_the_paper():
    results = paper_results()
    assert len(results) == 228
    for cell in results:
        problem = PAPER_DATASETS[cell.dataset]
        assert cell.n_domains in problem.n_domains
        assert cell.max_condition == problem.max_condition[cell.alpha]
        assert 0 <= cell.accuracy <= 1
        assert 0 <= cell.prevalence_error <= 1


def test_main_tables_repeat_the_appendix():
    """The same runs are printed twice: the packaged numbers agree with themselves."""
    appendix = {
        (cell.dataset, cell.n_domains, cell.alpha, cell.method): cell
        for cell in paper_results()
        if cell.table.startswith("appendix_E")
    }
    main = [cell for cell in paper_results() if cell.table.startswith("main")]
    assert len(main) == 45
    for cell in main:
        twin = appendix[cell.dataset, cell.n_domains, cell.alpha, cell.method]
        assert cell.accuracy == twin.accuracy
        assert cell.prevalence_error == twin.prevalence_error
        assert cell.accuracy_std is None
        assert twin.accuracy_std is not None


def test_doubtful_cells_are_marked():
    """ERRATA 7: SCAN's prevalence errors. ERRATA 8: everything of the naive rows."""
    expected = {
        "SCAN": {"prevalence_error"},
        "Naive": {"accuracy", "prevalence_error"},
        "Naive (ICA)": {"accuracy", "prevalence_error"},
        "Naive (PCA)": {"accuracy", "prevalence_error"},
    }
    for cell in paper_results():
        assert cell.doubtful == expected.get(cell.method, set())
    assert {cell.method for cell in paper_results()} == {
        *expected,
        "DDFA (RI)",
        "DDFA (SI)",
        "DDFA (SPI)",
    }


@needs_paper
def test_packaged_results_are_the_published_ones():
    with (Path(PAPER_DIR) / "results.csv").open() as lines:
        published = list(csv.DictReader(lines))
    for cell, row in zip(paper_results(), published, strict=True):
        assert PAPER_DATASETS[cell.dataset].title == row["dataset"]
        assert (cell.table, cell.method) == (row["table"], row["method"])
        assert cell.accuracy == float(row["test_acc_mean"])
        assert cell.prevalence_error == float(row["qyd_err_mean"])
        if row["test_acc_std"]:
            assert cell.accuracy_std == float(row["test_acc_std"])
            assert cell.prevalence_error_std == float(row["qyd_err_std"])
