"""benchmarks/growth.py: slopes, ratios and the regression check, and one tiny point."""

import json
import os

import pytest

from support.scripts import script

TINY = {"rows": 600, "domains": 4, "classes": 3, "features": 4}


@pytest.fixture(scope="module")
def growth():
    with script("benchmarks/growth.py") as module:
        yield module


@pytest.fixture(scope="module")
def tiny(growth):
    """One point, measured in a process of its own."""
    return growth.in_own_process(TINY, {"DDFA.fit/by_hand": "left out: a test"})


def made(value, ours, by_hand=1.0, factor="rows"):
    sides = {"ours": {"seconds": ours}, "by_hand": {"seconds": by_hand}}
    size = TINY | {factor: value}
    return {"factor": factor, "value": value, "size": size, "tasks": {"adjust": sides}}


def test_slope_is_the_exponent_of_a_power_law(growth):
    points = [made(n, 3e-6 * n**1.25) for n in (10, 100, 1_000, 10_000)]
    found = growth.slopes(points)["rows"]["adjust"]
    assert found["all"] == pytest.approx(1.25)
    assert found["last three"] == pytest.approx(1.25)


def test_slope_of_the_end_sees_what_the_whole_hides(growth):
    points = [made(n, max(1.0, n / 1_000)) for n in (10, 100, 1_000, 10_000, 100_000)]
    found = growth.slopes(points)["rows"]["adjust"]
    assert found["last three"] == pytest.approx(1.0)
    assert found["all"] < 0.7


def test_points_that_were_left_out_have_no_slope_and_no_ratio(growth):
    points = [made(n, n / 10) for n in (10, 100, 1_000)]
    points[1]["tasks"]["adjust"]["ours"] = {"reason": "left out: about 90 s"}
    assert growth.slopes(points) == {"rows": {}}
    assert growth.ratios(points[1]) == {}
    assert growth.ratios(points[2]) == {"adjust": 100.0}


def test_times_too_short_to_compare_are_not(growth):
    assert growth.ratios(made(10, ours=1e-4, by_hand=2e-4)) == {}


@pytest.mark.parametrize(
    ("before", "after", "worse"),
    [
        (1.0, 1.4, False),  # within the tolerance
        (1.0, 1.6, True),
        (3.0, 4.4, False),
        (3.0, 4.6, True),
        (0.1, 0.5, False),  # still faster than by hand
        (0.1, 1.1, True),
        (2.0, 0.5, False),  # better is not worse
    ],
)
def test_a_regression_is_a_ratio_that_grew(growth, before, after, worse):
    """Seconds do not matter: the second machine is ten times slower on both sides."""
    known, now = made(10, before), made(10, 10 * after, by_hand=10.0)
    lines = growth.regressions(known, now)
    assert bool(lines) == worse
    assert set(lines) <= {"adjust"}


def test_what_would_take_too_long_is_left_out_with_its_reason(growth):
    record = {"points": [made(10, 1.0, by_hand=0.1), made(100, 9.0, by_hand=1.0)]}
    reasons = growth.too_much(record, "rows", 1_000, limit=40, memory=8)
    assert reasons == {"adjust/ours": "left out: about 81 s"}
    assert growth.too_much(record, "rows", 100, limit=40, memory=8) == {}
    assert growth.too_much(record, "domains", 1_000, limit=40, memory=8) == {}
    columns = {"points": [made(10, 30.0, by_hand=30.0, factor="features")]}
    found = growth.too_much(columns, "features", 1_000, limit=40, memory=8)
    assert found == {}  # no such growth


def test_what_would_take_too_much_memory_is_left_out_with_its_reason(growth):
    point = made(10, 0.1)
    point["tasks"]["adjust"]["ours"]["peak_mib"] = 1024.0
    reasons = growth.too_much({"points": [point]}, "rows", 100, limit=40, memory=8)
    assert reasons == {"adjust/ours": "left out: about 10 GiB"}


def test_a_higher_limit_measures_what_was_left_out_and_nothing_else(growth):
    point = made(1_000, 2.0)
    point["tasks"]["adjust"]["ours"] = {"reason": "left out: about 90 s"}
    assert growth.measured(point) == {"adjust/by_hand": "measured"}
    low = growth.measured(point) | {"adjust/ours": "left out: about 90 s"}
    assert not growth.still_wanted(point, low)
    assert growth.still_wanted(point, growth.measured(point))
    found = made(1_000, 7.0)
    found["tasks"]["adjust"]["by_hand"] = {"reason": "measured"}
    growth.merge(point, found)
    assert growth.ratios(point) == {"adjust": 7.0}


def test_sides_take_turns_until_they_have_run_long_enough(growth, monkeypatch):
    from _measure import Clock

    order = []
    runs = {side: (lambda side=side: order.append(side)) for side in growth.SIDES}
    found = growth.race(runs, turns=3)
    assert order == 3 * list(growth.SIDES)
    assert {one["turns"] for one in found.values()} == {3}
    monkeypatch.setattr(Clock, "LONG", 0.0)  # now any first run is long enough
    assert {one["turns"] for one in growth.race(runs, turns=3).values()} == {1}


def test_exponent_of_one_iteration_where_iterations_are_counted(growth):
    points = [made(n, 2.0 * n**1.5) for n in (10, 100, 1_000)]
    assert "one iteration" not in growth.slopes(points)["rows"]["adjust"]
    for point in points:
        point["tasks"]["adjust"]["ours"]["iterations"] = point["value"]
    found = growth.slopes(points)["rows"]["adjust"]["one iteration"]
    assert found == pytest.approx(0.5)


def test_every_scan_grows_and_keeps_classes_below_domains(growth):
    for factor in growth.SCANS:
        sizes = growth.sizes_of(factor)
        values = [size[factor] for size in sizes]
        assert values == sorted(values)
        assert all(size["classes"] <= size["domains"] for size in sizes)
        assert set(growth.CHECKED.get(factor, [])) <= set(values)


def test_a_point_measures_both_sides_of_every_task(tiny):
    assert tiny["size"] == TINY
    stages = {"discriminate", "discretize", "factorize", "adjust"}
    models, verbs = ("DDFA", "DomainMixture"), ("fit", "predict")
    whole = {f"{model}.{verb}" for model in models for verb in verbs}
    assert set(tiny["tasks"]) == stages | whole
    assert tiny["tasks"]["DDFA.fit"]["by_hand"] == {"reason": "left out: a test"}
    for name, sides in tiny["tasks"].items():
        for side, result in sides.items():
            if (name, side) != ("DDFA.fit", "by_hand"):
                assert 0 < result["seconds"]
                assert 0 < result["wall"]


def test_check_of_a_measured_point_against_itself_finds_nothing(growth, tiny):
    assert growth.regressions(tiny, tiny) == {}


# What a careless change would do, for the process that measures: Python imports a
# module of this name by itself.
PLANTED = """
import time
from shoal.stages.discriminate import Discriminator

honest = Discriminator.fit

def slowly(self, *args, **kwargs):
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    return honest(self, *args, **kwargs)

Discriminator.fit = slowly
"""


@pytest.mark.parametrize("planted", [False, True])
def test_check_finds_a_planted_slow_down(
    growth, monkeypatch, tmp_path, capsys, planted
):
    size = {"rows": 3_000, "domains": 5, "classes": 3, "features": 10}
    others = growth.DERIVED.keys() - {"discriminate", "DDFA.predict"}
    skip = {f"{name}/{side}": "a test" for name in others for side in growth.SIDES}
    point = {"factor": "rows", "value": 3_000, **growth.in_own_process(size, skip)}
    middle = {factor: size[factor] for factor in ("domains", "classes", "features")}
    monkeypatch.setattr(growth, "SCANS", {"rows": (middle, [3_000])})
    monkeypatch.setattr(growth, "CHECKED", {"rows": [3_000]})
    monkeypatch.setattr(growth, "too_much", lambda *args: skip)
    # The honest run may be disturbed by whatever else this machine does.
    monkeypatch.setattr(growth, "TOLERANCE", 5.0)
    # On a fast machine the library's side takes less than what a record may hold.
    monkeypatch.setattr(growth, "SHORTEST", 0.0)
    if planted:
        (tmp_path / "sitecustomize.py").write_text(PLANTED)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    assert growth.check({"points": [point]}, 40, 8) == planted
    printed = capsys.readouterr().out
    assert ("discriminate took" in printed) == planted
    assert "DDFA.predict took" not in printed


def test_pages_show_every_point(growth, tiny, tmp_path):
    from _growth_pages import write_pages

    points = [{"factor": "rows", "value": n, **tiny} for n in (600, 700, 800)]
    record = {"command": "x", "points": points, "slopes": growth.slopes(points)}
    write_pages(record, tmp_path)
    page = (tmp_path / "growth.md").read_text()
    assert "left out" not in page  # of DDFA.fit, our side was measured
    assert all(name in page for name in tiny["tasks"])
    assert "<svg" in (tmp_path / "growth.svg").read_text()


def rounded(content):
    """Nested numbers, without the digits in which machines differ."""
    return json.loads(json.dumps(content), parse_float=lambda x: round(float(x), 9))


def test_the_committed_record_has_all_scans(growth):
    record = json.loads((growth.ROOT / growth.RECORD).read_text())
    assert {point["factor"] for point in record["points"]} == set(growth.SCANS)
    assert rounded(record["slopes"]) == rounded(growth.slopes(record["points"]))
    assert growth.regressions(record["points"][0], record["points"][0]) == {}
