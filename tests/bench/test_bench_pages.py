"""Tables of results/performance: each is what its script makes of the record."""

import json
import shutil
from pathlib import Path

import pytest

from support.scripts import script

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "results" / "performance"


@pytest.fixture(scope="module")
def pages():
    """The modules that write the pages, as the scripts import them."""
    with (
        script("benchmarks/_pages.py") as pages,
        script("benchmarks/_growth_pages.py") as growth_pages,
    ):
        yield pages, growth_pages


def read(name):
    return json.loads((RECORDS / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["bars", "kmeans", "scale"])
def test_tables_are_those_of_the_record(pages, name):
    write = getattr(pages[0], f"{name}_page")
    shown = (RECORDS / f"{name}.md").read_text(encoding="utf-8")
    assert shown == write(read(f"{name}.json")) + "\n"


def test_growth_tables_sentences_and_arithmetic_are_those_of_the_records(
    pages, tmp_path
):
    for record in RECORDS.glob("*.json"):
        shutil.copy(record, tmp_path)
    pages[1].write_pages(read("growth.json"), tmp_path)
    for name in ("growth", "reading", "arithmetic"):
        shown = (RECORDS / f"{name}.md").read_text(encoding="utf-8")
        assert (tmp_path / f"{name}.md").read_text(encoding="utf-8") == shown


def test_arithmetic_is_of_the_largest_sizes(pages):
    """A billion rows cost what the largest size cost, times what is missing."""
    import _arithmetic

    record = {
        "points": [
            {"factor": "rows", "value": n, "tasks": {"adjust": {"ours": ours}}}
            for n, ours in (
                (1_000, {"seconds": 9.0}),
                (1_000_000, {"seconds": 7.2}),
                (10_000_000, {"reason": "left out: about 72 s"}),
            )
        ]
    }
    lines = _arithmetic.arithmetic(record, Path("nowhere"))
    assert lines[2:] == ["| adjust | 1,000,000 rows | 2.00 | 113 s |"]


def test_rows_in_parts_count_the_passes_and_not_the_learning(pages, tmp_path):
    import _arithmetic

    stages = [
        {"stage": "learn", "seconds": 1e6},
        {"stage": "count domains", "seconds": 3.0},
        {"stage": "prevalences, pass 1", "seconds": 6.0},
    ]
    size = {"scale": {"stages": stages}, "predict_seconds": 18.0}
    record = {
        "workers": 2,
        "sizes": {"5": size, "1000000": size},
        "DDFA": {"scale": {"stages": stages[:2]}},
    }
    (tmp_path / "scale.json").write_text(json.dumps(record))
    _, *lines = _arithmetic.in_parts(tmp_path)
    hours = [line.split(" | ")[2] for line in lines[2:]]
    assert hours == ["5.00", "1.67", "10.00"]  # of one core, both workers together


def test_hot_spots_show_both_states_and_their_ratio(pages):
    spot = {"spot": "~.argmax", "seconds": 0.5, "share": 0.25}
    before, now = (
        {"profile": {"predict": {"seconds": seconds, "largest": [spot]}}}
        for seconds in (4.0, 2.0)
    )
    last = pages[0].hot_spot_table(before, now)[-1]
    assert last == (
        "| predict | 4.00 s: `argmax` 0.50 s, 25% | 2.00 s: `argmax` 0.50 s, 25% "
        "| 0.50 |"
    )
